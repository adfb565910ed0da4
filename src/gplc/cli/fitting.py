"""Commands that sample: fit and resume."""

import math
import re
import shlex
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from gplc._version import __version__
from gplc.cli import options
from gplc.cli.shared import INTERRUPTED, UNCONVERGED, command, fail, print_json, say

DEFAULT_MODEL = "gplc"
# A run that was stopped by the clock goes on to so many draws: with fewer nothing can be said.
LEAST_DRAWS = 200
RESUME_GROWTH = 0.3
# Draws that chains begin with after the fast method.
FIRST_DRAWS = 500
# Up to so many rows it costs little to say how the residual SD varies.
TELLING_ROWS = 1000


class NamingModels(TyperCommand):
    """A command whose help says which models there are: asked for it, not before."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        from gplc.models import MODELS

        option: Any = next(each for each in self.params if each.name == "model")
        told = (f"{key}: {MODELS[key].noise_summary}" for key in _model_keys())
        option.help = "; ".join(told) + "."
        super().format_help(ctx, formatter)


def _model_keys() -> list[str]:
    from gplc.comparison import every_model

    return list(every_model())


def _known_model(key: str) -> str:
    if key not in _model_keys():
        raise typer.BadParameter(f"{key!r} is not one of {', '.join(_model_keys())}.")
    return key


@command(
    "gplc fit motorcycle.csv --target accel --out motorcycle.fit.nc",
    "gplc fit data.parquet -y price -x area,age --model gplv --max-seconds 600",
    "gplc fit data.csv -y y --exclude id,date --decimal , --drop-missing",
    "gplc fit stars.csv -y flux --noise-column flux_error",
    "gplc fit data.csv -y y --fast",
    "cat data.csv | gplc fit - -y y --draws 1000 --out fit.nc --json",
    "gplc fit big.parquet -y y --scheduler tcp://10.0.0.1:8786 --checkpoint big.ckpt",
    kind=NamingModels,
)
def fit(
    data: options.Data,
    target: options.Target,
    features: options.Features = None,
    exclude: options.Exclude = None,
    noise_column: options.NoiseColumn = None,
    weight_column: options.WeightColumn = None,
    resolution: options.Resolution = None,
    transform: options.Transform = None,
    model: Annotated[
        str,
        typer.Option("--model", "-m", callback=_known_model, autocompletion=_model_keys),
    ] = DEFAULT_MODEL,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", help="File for the fit; DATA-TARGET-MODEL.fit.nc by default."),
    ] = None,
    force: options.Force = False,
    kernel: options.KernelText = None,
    mean: options.MeanName = None,
    prior: options.Priors = None,
    chains: Annotated[int, typer.Option(min=1, help="Number of chains.")] = 4,
    draws: Annotated[str, typer.Option(help="Of each chain; auto: until converged.")] = "auto",
    warmup: Annotated[int, typer.Option(min=0, help="Iterations before them.")] = 500,
    max_seconds: options.MaxSeconds = None,
    approximation: options.ApproximationName = "auto",
    fast: options.Fast = False,
    scheduler: options.Scheduler = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = -1,
    checkpoint: Annotated[
        str | None, typer.Option(help="Keep the run here; the same command goes on with it.")
    ] = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    max_rows: options.FitRows = None,
    drop_missing: options.DropMissing = False,
    strict: options.Strict = False,
    as_json: options.AsJson = False,
) -> None:
    """Fit a model to a table and save it."""
    from gplc._tables import is_large
    from gplc.comparison import every_model

    count = options.draws_in(draws)
    name = out or _fit_name(data, target, model)
    # The same command with the same checkpoint goes on with a run, and so replaces its fit.
    goes_on = checkpoint is not None and Path(checkpoint).exists()
    options.check_out(name, replace=force or goes_on)
    how = options.reading(delimiter, decimal, encoding, sheet)
    columns = options.Columns(target, features, exclude, noise_column, weight_column)
    in_memory = (noise_column, weight_column, resolution, transform) != (None,) * 4
    in_memory = in_memory or max_rows is not None or approximation == "none"
    if max_seconds is None and count == "auto":
        max_seconds = options.DEFAULT_SECONDS
    models = every_model(
        kernel=options.kernel_in(kernel),
        mean=mean,
        priors=options.priors_in(prior),
        resolution=options.resolution_in(resolution),
        target_transform=transform,
        chains=chains,
        draws=count,
        warmup=warmup,
        max_seconds=max_seconds,
        random_state=seed,
        n_jobs=jobs,
        checkpoint=checkpoint,
        progress="auto",
        approximation=options.approximation_in(approximation),
        method="fast" if fast else "mcmc",
        scheduler=scheduler,
    )
    estimator = models[model]
    if scheduler is not None or (is_large(data) and not in_memory):
        X, y = options.rows_elsewhere(data, columns, how, drop_missing, scheduler)
        known: dict[str, Any] = {}
    else:
        most = options.MAX_BASIS_ROWS if max_rows is None else max_rows
        table = options.read_data(data, columns, how, most, drop_missing, transform)
        X, y, known = table.given()
        if max_rows is None:
            options.check_rows(estimator, X, known, data)
    with options.keeping_draws():
        estimator.fit(X, y, **known)
    estimator.origin_ |= _origin(data, name, X)
    done = estimator.diagnostics_
    if done.stopped.startswith("Stopped by max_seconds") and done.n_draws < LEAST_DRAWS:
        say(f"Only {done.n_draws} draws in that time; going on to {LEAST_DRAWS}.")
        with options.keeping_draws():
            estimator.set_params(max_seconds=None).extend(LEAST_DRAWS - done.n_draws)
    _finish(estimator, name, as_json, strict)


def _origin(data: str, out: str, X: Any) -> dict[str, str]:
    """Where a fit comes from, for its report."""
    told = {"file": data, "fit": out}
    if Path(sys.argv[0]).stem in ("gplc", "__main__"):
        told["command"] = shlex.join(["gplc", *sys.argv[1:]])
    if "left_out" in getattr(X, "attrs", {}):
        told["left out"] = X.attrs["left_out"]
    return told


def _fit_name(data: str, target: str, model: str) -> str:
    """A name that fits of other targets and models do not have.

    Examples
    --------
    >>> _fit_name("data/crash.csv", "accel (g)", "gplc")
    'crash-accel_g-gplc.fit.nc'
    """
    stem = [] if data == "-" else [Path(data).stem]
    return "-".join([*stem, re.sub(r"\W+", "_", target).strip("_"), model]) + ".fit.nc"


@command("gplc resume motorcycle.fit.nc", "gplc resume fit.nc --draws 2000 --out longer.nc")
def resume(
    fit: options.Fit,
    draws: Annotated[str, typer.Option(help="To add to each chain; auto: until good.")] = "auto",
    max_seconds: options.MaxSeconds = None,
    out: Annotated[str | None, typer.Option("--out", "-o", help="By default FIT itself.")] = None,
    force: options.Force = False,
    jobs: options.Jobs = -1,
    strict: options.Strict = False,
    as_json: options.AsJson = False,
) -> None:
    """Go on sampling where a fit stopped."""
    count = options.draws_in(draws)
    name = out or fit
    options.check_out(name, replace=force or name == fit)
    model = options.load_fit(fit)
    if max_seconds is None and count == "auto":
        max_seconds = options.DEFAULT_SECONDS
    model.set_params(n_jobs=jobs, progress="auto", max_seconds=max_seconds)
    with options.keeping_draws():
        if count == "auto":
            _extend_until_good(model, float(max_seconds or math.inf))
        else:
            model.extend(count)
    _finish(model, name, as_json, strict)


def _extend_until_good(model: Any, seconds: float) -> None:
    """Extend by a share of what there is, until converged or the time is up."""
    ends = time.monotonic() + seconds
    if model.diagnostics_.weighed is not None:  # its few draws say nothing of how many are needed
        model.set_params(max_seconds=seconds).extend(FIRST_DRAWS)
    while not model.diagnostics_.ok and (left := ends - time.monotonic()) > 0:
        model.set_params(max_seconds=left)
        model.extend(max(LEAST_DRAWS, round(RESUME_GROWTH * model.diagnostics_.n_draws)))


def _finish(model: Any, out: str, as_json: bool, strict: bool) -> None:
    """Save a fit, say what came out, and end with the code that goes with it.

    The file says how many draws there are, not how long they took: so the fit can be repeated.
    """
    told = model.diagnostics_
    fast = {} if told.weighed is not None else {"method": "mcmc"}
    model.set_params(draws=told.n_draws, max_seconds=None, **fast).save(out)
    record = _fit_record(model, out)
    if as_json:
        print_json(record)
    else:
        typer.echo(_in_words(record))
    if told.stopped.startswith("Interrupted"):
        fail(f"interrupted; `gplc resume {out}` goes on", INTERRUPTED)
    if strict and not told.ok:
        raise typer.Exit(UNCONVERGED)


def _fit_record(model: Any, out: str) -> dict[str, Any]:
    from gplc import _fitted
    from gplc.diagnostics import Advice

    X, y = _fitted.training_data(model)
    told = model.diagnostics_
    record = {
        "fit": out,
        "model": type(model).__name__,
        "rows": _fitted.n_rows(model),
        "target": _fitted.target_name(model),
        "features": _fitted.feature_names(model),
        "notes": model.notes_,
        "chains": told.n_chains,
        "draws": told.n_draws,
        "stopped": told.stopped,
        "cpu_seconds": dict(told.seconds),
        "converged": told.ok,
        "level": str(told.level),
        "prediction_error": told.prediction_error,
        "verdict": told.verdict_for(Advice.in_shell(out)),
        "method": "mcmc" if told.weighed is None else "fast",
        "version": __version__,
    }
    if len(y) <= TELLING_ROWS:
        sd = model.residual_sd(_fitted.as_table(model, X)).mean
        record["residual_sd"] = {"smallest": float(sd.min()), "largest": float(sd.max())}
    return record


def _in_words(record: dict[str, Any]) -> str:
    inputs = ", ".join(record["features"])
    lines = [
        f"{record['model']}: {record['target']} given {inputs}, {record['rows']} rows.",
        f"{record['chains']} chains of {record['draws']} draws. {record['stopped']}".rstrip(),
    ]
    if "residual_sd" in record:
        low, high = record["residual_sd"]["smallest"], record["residual_sd"]["largest"]
        same = high - low <= 1e-6 * high
        told = f"{high:.3g} everywhere" if same else f"from {low:.3g} to {high:.3g}"
        lines.append(f"Residual SD of {record['target']}: {told}.")
    lines.append(f"Verdict: {record['verdict']}")
    if record["method"] == "fast":
        lines.append(
            "This is a first answer, not a run of chains: "
            f"`gplc resume {shlex.quote(record['fit'])}` samples from here on."
        )
    lines.append(f"Saved in {record['fit']}.")
    return "\n".join(lines)
