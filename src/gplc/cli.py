"""The command line: from a table to an answer without writing Python.

Exit codes: 0 done; 2 something is wrong with the command or a file, told in one line on standard
error; 3 the chains have not converged (`gplc diagnose`, and `--strict`); 130 interrupted. 1 is a
fault of the program. Results go to standard output, everything else to standard error.

Modules that take long to import are imported by the commands that need them.
"""

import functools
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NoReturn

import typer

from gplc._version import __version__

if TYPE_CHECKING:
    import pandas as pd

    from gplc._tables import Array

BAD_INPUT, UNCONVERGED, INTERRUPTED, BROKEN_PIPE = 2, 3, 130, 141

DEFAULT_SECONDS = 30.0
# A run that was stopped by the clock goes on to so many draws: with fewer nothing can be said.
LEAST_DRAWS = 200
RESUME_GROWTH = 0.3
MAX_ROWS = 5000
# Up to so many rows it costs little to say how the residual SD varies.
TELLING_ROWS = 1000

app = typer.Typer(
    name="gplc",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help=(
        "Regression when the noise depends on the inputs and need not be Gaussian."
        "\n\nStart with: gplc demo, or: gplc fit DATA.csv --target y"
    ),
    epilog=(
        "Exit codes: 0 done, 2 wrong command or file, 3 chains have not converged "
        "(diagnose, --strict), 130 interrupted."
    ),
)


class ModelName(StrEnum):
    """The three models."""

    gplc = "gplc"
    gplv = "gplv"
    std = "std"


class Asked(NamedTuple):
    """What a prediction is to tell."""

    interval: float
    quantiles: list[float]
    parts: bool
    prefix: str


# --- what all commands share ----------------------------------------------------------------


def command(*examples: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Enter a function as a command whose errors are one line and an exit code."""

    def enter(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> None:
            try:
                with warnings.catch_warnings():
                    _ignore_convergence_warnings()
                    function(*args, **kwargs)
            except KeyboardInterrupt:
                _fail("interrupted; nothing was written", INTERRUPTED)
            except BrokenPipeError:
                # Somebody closed our output, as `head` does: not worth a word.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise typer.Exit(BROKEN_PIPE) from None
            except (ValueError, OSError) as error:
                if os.environ.get("GPLC_TRACEBACK"):
                    raise
                _fail(" ".join(str(error).split()), BAD_INPUT)

        shown = "".join(f"\n\n  {example}" for example in examples)
        return app.command(epilog=f"Examples:{shown}")(guarded)

    return enter


def _ignore_convergence_warnings() -> None:
    """Every command tells the verdict itself."""
    from sklearn.exceptions import ConvergenceWarning

    warnings.simplefilter("ignore", ConvergenceWarning)


def _fail(message: str, code: int) -> NoReturn:
    _say(f"gplc: {message}")
    raise typer.Exit(code)


def _say(message: str) -> None:
    typer.echo(message, err=True)


def _print_json(record: Any) -> None:
    typer.echo(json.dumps(_plain(record), indent=2))


def _plain(value: Any) -> Any:
    """A record as strict JSON takes it: no nan, no infinity."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _check_out(path: str, *, stream: bool = False) -> None:
    """Refuse an output before the work is done, not after."""
    if path == "-":
        if not stream:
            raise ValueError("--out cannot be standard output here; give a file")
        return
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise ValueError(f"--out {path}: there is no folder {folder}; make it first")
    if Path(path).is_dir() or not os.access(folder, os.W_OK):
        raise ValueError(f"--out {path} cannot be written; give another file")


def _names(given: list[str] | None, whole: Iterable[str] = ()) -> list[str]:
    """Names with commas between, each once; a name in `whole` may have a comma of its own."""
    found: list[str] = []
    for text in given or []:
        found += [text] if text in whole else [name.strip() for name in text.split(",")]
    return [name for name in dict.fromkeys(found) if name]


def _probabilities(text: str, option: str) -> list[float]:
    try:
        values = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        values = [math.nan]
    if not all(0.0 < value < 1.0 for value in values):
        raise ValueError(f"{option} must be probabilities between 0 and 1, got {text!r}")
    return values


def _separator(text: str | None) -> str | None:
    """A delimiter as given on a command line, where tabs are hard to type."""
    separator = {"tab": "\t", "\\t": "\t"}.get(text or "", text)
    if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
        raise ValueError(f"--delimiter must be one character, or tab, got {text!r}")
    return separator


def _draws(text: str) -> Any:
    if text == "auto":
        return "auto"
    if not text.isdigit() or int(text) < 1:
        raise ValueError(f"--draws must be a whole number of at least 1, or auto, got {text!r}")
    return int(text)


def _read_data(
    data: str,
    target: str,
    features: list[str] | None,
    delimiter: str | None,
    max_rows: int,
    drop_missing: bool,
) -> "tuple[pd.DataFrame, pd.Series[Any]]":
    """Inputs and response of a table, all of them numbers."""
    import numpy as np
    import pandas as pd

    from gplc import _tables

    table = _tables.read_table(data, max_rows, _separator(delimiter))
    chosen = _names(features, table.columns) or [
        str(name) for name in table.columns if name != target
    ]
    if target in chosen:
        raise ValueError(f"--features must not hold the target {target!r}")
    if not chosen:
        raise ValueError(
            f"{_tables.name_of(data)} has no column but {', '.join(table.columns)}; an input is "
            "needed too. If that is several columns, give their --delimiter"
        )
    numbers = _tables.numbers(table, [target, *chosen], data, keep_missing=drop_missing)
    kept = numbers[~np.isnan(numbers).any(axis=1)]
    if len(kept) < len(numbers):
        _say(f"Left out {len(numbers) - len(kept)} of {len(numbers)} rows with missing values.")
    if len(kept) < 2:
        raise ValueError(f"{_tables.name_of(data)} has {len(kept)} usable rows; 2 are needed")
    return pd.DataFrame(kept[:, 1:], columns=chosen), pd.Series(kept[:, 0], name=target)


def _estimator(name: ModelName, **settings: Any) -> Any:
    from gplc.comparison import three_models

    return three_models(**settings)[name.value]


def _load(fit: str) -> Any:
    from gplc.estimators import load

    return load(fit)


@contextmanager
def _working(what: str) -> Iterator[None]:
    """A spinner where somebody can see it."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(what):
        yield


# --- saying how a fit went ------------------------------------------------------------------


def _finish(model: Any, out: str, as_json: bool, strict: bool) -> None:
    """Save a fit, say what came out, and end with the code that goes with it.

    The file says how many draws there are, not how long they took: so the fit can be repeated.
    """
    told = model.diagnostics_
    model.set_params(draws=told.n_draws, max_seconds=None).save(out)
    record = _fit_record(model, out)
    if as_json:
        _print_json(record)
    else:
        typer.echo(_in_words(record))
    if told.stopped.startswith("Interrupted"):
        _fail(f"interrupted; `gplc resume {out}` goes on", INTERRUPTED)
    if strict and not told.ok:
        raise typer.Exit(UNCONVERGED)


def _fit_record(model: Any, out: str) -> dict[str, Any]:
    from gplc import plots

    X, y = plots.training_data(model)
    told = model.diagnostics_
    record = {
        "fit": out,
        "model": type(model).__name__,
        "rows": len(y),
        "target": plots.target_name(model),
        "features": plots.feature_names(model),
        "chains": told.n_chains,
        "draws": told.n_draws,
        "stopped": told.stopped,
        "cpu_seconds": dict(told.seconds),
        "converged": told.ok,
        "verdict": told.verdict,
        "version": __version__,
    }
    if len(y) <= TELLING_ROWS:
        sd = model.residual_sd(plots.as_table(model, X)).mean
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
    if record["converged"]:
        lines.append("Verdict: fine.")
    else:
        lines.append(f"Verdict: do not trust this fit yet: {record['verdict']}.")
        lines.append(f"To go on sampling: gplc resume {record['fit']}")
    lines.append(f"Saved in {record['fit']}.")
    return "\n".join(lines)


# --- options that several commands have -----------------------------------------------------

Data = Annotated[
    str, typer.Argument(metavar="DATA", help="CSV or Parquet file; - reads CSV from stdin.")
]
Fit = Annotated[str, typer.Argument(metavar="FIT", help="File that gplc fit wrote.")]
Target = Annotated[
    str, typer.Option("--target", "-y", help="Column to predict.", show_default=False)
]
Features = Annotated[
    list[str] | None,
    typer.Option(
        "--features", "-x", help="Input columns, with commas between; all others by default."
    ),
]
Delimiter = Annotated[
    str | None, typer.Option(help="Between the fields of a CSV file; found by itself.")
]
MaxRows = Annotated[int, typer.Option(help="Refuse larger tables: the cost grows as rows^3.")]
DropMissing = Annotated[
    bool, typer.Option("--drop-missing", help="Leave out rows with missing values.")
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same draws.")]
Jobs = Annotated[int, typer.Option(help="Processes at once; -1 is one for each core.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Strict = Annotated[
    bool, typer.Option("--strict", help="Exit with 3 if the chains have not converged.")
]
MaxSeconds = Annotated[
    float | None,
    typer.Option(
        help=f"Stop after so long; {DEFAULT_SECONDS:.0f} if draws are auto.", show_default=False
    ),
]


def _version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


# --- commands -------------------------------------------------------------------------------


@command(
    "gplc fit motorcycle.csv --target accel",
    "gplc fit data.parquet -y price -x area,age --model gplv --max-seconds 600",
    "cat data.csv | gplc fit - -y y --draws 1000 --out fit.nc --json",
)
def fit(
    data: Data,
    target: Target,
    features: Features = None,
    model: Annotated[
        ModelName,
        typer.Option(
            "--model", "-m", help="gplc: noise of any shape; gplv: Gaussian noise, SD varies; std."
        ),
    ] = ModelName.gplc,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", help="File for the fit; named after DATA by default."),
    ] = None,
    chains: Annotated[int, typer.Option(min=1, help="Number of chains.")] = 4,
    draws: Annotated[str, typer.Option(help="Of each chain; auto: until converged.")] = "auto",
    warmup: Annotated[int, typer.Option(min=0, help="Iterations before them.")] = 500,
    max_seconds: MaxSeconds = None,
    seed: Seed = 0,
    jobs: Jobs = -1,
    checkpoint: Annotated[
        str | None, typer.Option(help="Keep the run here; the same command goes on with it.")
    ] = None,
    delimiter: Delimiter = None,
    max_rows: MaxRows = MAX_ROWS,
    drop_missing: DropMissing = False,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Fit a model to a table and save it."""
    count = _draws(draws)
    name = out or ("fit.nc" if data == "-" else f"{Path(data).stem}.fit.nc")
    _check_out(name)
    X, y = _read_data(data, target, features, delimiter, max_rows, drop_missing)
    if max_seconds is None and count == "auto":
        max_seconds = DEFAULT_SECONDS
    estimator = _estimator(
        model,
        chains=chains,
        draws=count,
        warmup=warmup,
        max_seconds=max_seconds,
        random_state=seed,
        n_jobs=jobs,
        checkpoint=checkpoint,
        progress="auto",
    )
    estimator.fit(X, y)
    done = estimator.diagnostics_
    if done.stopped.startswith("Stopped by max_seconds") and done.n_draws < LEAST_DRAWS:
        _say(f"Only {done.n_draws} draws in that time; going on to {LEAST_DRAWS}.")
        estimator.set_params(max_seconds=None).extend(LEAST_DRAWS - done.n_draws)
    _finish(estimator, name, as_json, strict)


@command("gplc resume motorcycle.fit.nc", "gplc resume fit.nc --draws 2000 --out longer.nc")
def resume(
    fit: Fit,
    draws: Annotated[str, typer.Option(help="To add to each chain; auto: until good.")] = "auto",
    max_seconds: MaxSeconds = None,
    out: Annotated[str | None, typer.Option("--out", "-o", help="By default FIT itself.")] = None,
    jobs: Jobs = -1,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Go on sampling where a fit stopped."""
    count = _draws(draws)
    name = out or fit
    _check_out(name)
    model = _load(fit)
    if max_seconds is None and count == "auto":
        max_seconds = DEFAULT_SECONDS
    model.set_params(n_jobs=jobs, progress="auto", max_seconds=max_seconds)
    if count == "auto":
        _extend_until_good(model, float(max_seconds or math.inf))
    else:
        model.extend(count)
    _finish(model, name, as_json, strict)


def _extend_until_good(model: Any, seconds: float) -> None:
    """Extend by a share of what there is, until converged or the time is up."""
    ends = time.monotonic() + seconds
    while not model.diagnostics_.ok and (left := ends - time.monotonic()) > 0:
        model.set_params(max_seconds=left)
        model.extend(max(LEAST_DRAWS, round(RESUME_GROWTH * model.diagnostics_.n_draws)))
        if model.diagnostics_.stopped.startswith("Interrupted"):
            break


@command(
    "gplc predict motorcycle.fit.nc new.csv",
    "gplc predict fit.nc new.parquet --interval 0.5 --quantiles 0.1,0.9 --out predicted.parquet",
    "head -5 new.csv | gplc predict fit.nc - --json",
)
def predict(
    fit: Fit,
    new: Annotated[
        str, typer.Argument(metavar="NEW", help="Table with the input columns; - reads stdin.")
    ],
    interval: Annotated[float, typer.Option(help="Probability of the interval.")] = 0.9,
    quantiles: Annotated[str, typer.Option(help="More quantiles, with commas between.")] = "",
    parts: Annotated[
        bool,
        typer.Option(
            "--parts", help="Also SD of the regression function and of the residuals, apart."
        ),
    ] = False,
    prefix: Annotated[str, typer.Option(help="Before the names of the new columns.")] = "",
    out: Annotated[
        str, typer.Option("--out", "-o", help=".csv, .parquet or .jsonl; - is stdout.")
    ] = "-",
    delimiter: Delimiter = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write a JSON object for each row.")
    ] = False,
) -> None:
    """Predict y for new rows: mean, SD, an interval, and quantiles.

    The columns of NEW are copied; mean, sd, lower and upper follow. Files of any length are
    read and written a piece at a time.
    """
    from gplc import _tables

    _probabilities(str(interval), "--interval")
    asked = Asked(interval, _probabilities(quantiles, "--quantiles"), parts, prefix)
    _check_out(out, stream=True)
    model = _load(fit)
    form = "jsonl" if as_json else _tables.table_format(out)
    done = 0
    with _tables.writing(out, form) as append, _working("predicting"):
        for frame in _tables.read_chunks(new, _separator(delimiter)):
            numbers, given = _inputs(model, frame, new)
            predicted = _predicted(model, numbers, asked)
            if taken := [name for name in predicted if name in frame.columns]:
                raise ValueError(
                    f"{_tables.name_of(new)} has a column {taken[0]!r} already; give a --prefix"
                )
            if form != "csv":  # there numbers are numbers
                frame = frame.assign(**dict(zip(given, numbers.T, strict=True)))
            append(frame.assign(**predicted))
            done += len(frame)
    if out != "-":
        _say(f"Predicted {done} rows; they are in {out}.")


def _inputs(model: Any, frame: "pd.DataFrame", path: str) -> "tuple[Array, list[str]]":
    """Inputs of new rows (rows, p), and the columns they come from."""
    from gplc import _tables, plots

    given = plots.feature_names(model)
    if getattr(model, "feature_names_in_", None) is None and len(frame.columns) == len(given):
        given = [str(name) for name in frame.columns]  # fitted without names: by position
    return _tables.numbers(frame, given, path), given


def _predicted(model: Any, numbers: "Array", asked: Asked) -> "dict[str, Array]":
    """The columns that prediction adds, by name."""
    from gplc import plots

    rows = plots.as_table(model, numbers)
    dist = model.predict_dist(rows)
    told = dist.summary(asked.interval)
    new = {"mean": told.mean, "sd": told.std, "lower": told.lower, "upper": told.upper}
    if asked.quantiles:
        found = dist.quantile(asked.quantiles)
        new |= {f"q{level:g}": found[:, k] for k, level in enumerate(asked.quantiles)}
    if asked.parts:
        new["function_sd"] = model.regression_function(rows).std()
        new["residual_sd"] = model.residual_sd(rows).mean
    return {f"{asked.prefix}{name}": values for name, values in new.items()}


@command("gplc diagnose motorcycle.fit.nc", "gplc diagnose fit.nc --json > diagnostics.json")
def diagnose(fit: Fit, as_json: AsJson = False) -> None:
    """Tell whether the chains of a fit can be trusted; exit with 3 if not."""
    told = _load(fit).diagnostics_
    if as_json:
        rows = {name: row._asdict() for name, row in told.rows.items()}
        _print_json(
            {**told.to_record(), "rows": rows, "converged": told.ok, "problems": told.problems}
        )
    else:
        typer.echo(str(told))
    if not told.ok:
        raise typer.Exit(UNCONVERGED)


@command(
    "gplc plot motorcycle.fit.nc",
    "gplc plot fit.nc --kind ridge --out shapes.pdf",
    "gplc plot fit.nc --kind fan,sd,chains",
)
def plot(
    fit: Fit,
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            "-k",
            help=(
                "overview, fan, sd, dependence, ridge, pit, coverage, chains, relevance, latent; "
                "with commas between, or all."
            ),
        ),
    ] = "overview",
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", help=".png, .pdf or .svg; named after FIT by default."),
    ] = None,
) -> None:
    """Draw a fit."""
    import matplotlib as mpl

    mpl.use("Agg")  # a command opens no windows
    from gplc import _check, plots

    every = kind == "all"
    kinds = list(plots.KINDS) if every else _names([kind])
    for each in kinds:
        _check.one_of("--kind", each, plots.KINDS)
    if out is not None and len(kinds) != 1:
        raise ValueError(f"--out names one file, and {len(kinds)} pictures are asked for")
    if out is not None:
        _check_out(out)
    model = _load(fit)
    for each in kinds:
        try:
            figure = plots.KINDS[each](model)
        except ValueError as error:
            if not every:  # of all pictures, some do not go with every model
                raise
            _say(f"gplc: no {each}: {error}")
            continue
        name = out or f"{Path(fit).name.removesuffix('.nc').removesuffix('.fit')}-{each}.png"
        _save_figure(figure, name)
        typer.echo(name)


def _save_figure(figure: Any, path: str) -> None:
    import matplotlib.pyplot as plt

    from gplc._files import replacing

    known = figure.canvas.get_supported_filetypes()
    if Path(path).suffix.lstrip(".").lower() not in known:
        raise ValueError(f"--out {path}: give a name that ends in .png, .pdf or .svg")
    with replacing(path) as draft:
        figure.savefig(draft, dpi=150)
    plt.close(figure)


@command("gplc report motorcycle.fit.nc --out report.html")
def report(
    fit: Fit,
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="HTML file; named after FIT by default.")
    ] = None,
) -> None:
    """Write one self-contained HTML page about a fit."""
    from gplc.report import write_report

    name = out or f"{Path(fit).name.removesuffix('.nc').removesuffix('.fit')}-report.html"
    _check_out(name)
    model = _load(fit)
    with _working("drawing"):
        write_report(model, name)
    typer.echo(name)


@command(
    "gplc compare motorcycle.csv --target accel",
    "gplc compare data.csv -y y -x a,b --folds 10 --json",
)
def compare(
    data: Data,
    target: Target,
    features: Features = None,
    folds: Annotated[int, typer.Option(min=2, help="Parts, each left out in turn.")] = 5,
    chains: Annotated[int, typer.Option(min=1, help="Chains of each fit.")] = 2,
    draws: Annotated[int, typer.Option(min=1, help="Draws of each chain.")] = 400,
    warmup: Annotated[int, typer.Option(min=0, help="Iterations before them.")] = 300,
    seed: Seed = 0,
    jobs: Jobs = -1,
    delimiter: Delimiter = None,
    max_rows: MaxRows = MAX_ROWS,
    drop_missing: DropMissing = False,
    as_json: AsJson = False,
) -> None:
    """Does the noise depend on x, and is it Gaussian? The three models by cross-validation."""
    from rich.console import Console
    from rich.progress import Progress

    from gplc.comparison import compare, three_models

    X, y = _read_data(data, target, features, delimiter, max_rows, drop_missing)
    models = three_models(chains=chains, draws=draws, warmup=warmup, random_state=seed)
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("fits", total=None)
        result = compare(
            X,
            y,
            models,
            folds=folds,
            n_jobs=jobs,
            random_state=seed,
            watch=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if as_json:
        _print_json(result.to_record())
    else:
        typer.echo(str(result))


@command("gplc demo", "gplc demo --data lidar --out lidar")
def demo(
    data: Annotated[str, typer.Option(help="motorcycle or lidar.")] = "motorcycle",
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for what it writes.")] = Path(
        "out"
    ),
    max_seconds: Annotated[float, typer.Option(help="Stop sampling after so long.")] = 20.0,
    jobs: Jobs = -1,
) -> None:
    """Fit shipped data as you would your own, and show each command as it goes."""
    from gplc import _check, datasets

    loaders = {"motorcycle": datasets.load_motorcycle, "lidar": datasets.load_lidar}
    loaded = loaders[_check.one_of("--data", data, loaders)]()
    out.mkdir(parents=True, exist_ok=True)
    name = os.path.relpath(out / data)
    target = loaded.target_name
    _write_demo_data(loaded, f"{name}.csv")
    typer.echo(f"{loaded.description}\n{len(loaded.y)} rows are in {name}.csv.")

    def step(told: str, run: Callable[[], None]) -> None:
        typer.echo(f"\n$ gplc {told}")
        run()

    fitted = f"{name}.fit.nc"
    step(
        f"fit {name}.csv --target {target} --out {fitted} --warmup 300 "
        f"--max-seconds {max_seconds:g}",
        lambda: fit(
            f"{name}.csv", target, out=fitted, warmup=300, max_seconds=max_seconds, jobs=jobs
        ),
    )
    step(f"predict {fitted} {name}.new.csv", lambda: predict(fitted, f"{name}.new.csv"))
    step(f"plot {fitted} --out {name}.png", lambda: plot(fitted, out=f"{name}.png"))
    step(f"report {fitted} --out {name}.html", lambda: report(fitted, out=f"{name}.html"))
    typer.echo(f"\nLook at {name}.png, and open {name}.html in a browser.")


def _write_demo_data(loaded: Any, path: str) -> None:
    """The data, and a few rows of inputs to predict at."""
    import numpy as np
    import pandas as pd

    from gplc import _tables

    feature = loaded.feature_names[0]
    ends = loaded.X.min(), loaded.X.max()
    new = pd.DataFrame({feature: np.round(np.linspace(*ends, 7)[1:-1], 3)})
    all_rows = pd.DataFrame({feature: loaded.X[:, 0], loaded.target_name: loaded.y})
    for name, frame in ((path, all_rows), (f"{path.removesuffix('.csv')}.new.csv", new)):
        with _tables.writing(name, "csv") as append:
            append(frame)


@command("gplc paper --quick", "gplc paper --only samplers --out out/paper")
def paper(
    only: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "Parts to run, with commas between: performance, samplers, operations, "
                "illustrations, sensitivity; all but the last by default."
            )
        ),
    ] = None,
    sets: Annotated[int | None, typer.Option(min=1, help="Training sets of each kind.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A look in a few minutes.")] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for what it writes.")] = Path(
        "out/paper"
    ),
    jobs: Jobs = -1,
    seed: Seed = 2012,
) -> None:
    """Reproduce the tables and figures of Wang and Neal (2012)."""
    from gplc import _check
    from gplc.paper import PARTS, reproduce

    parts = _names(only) or None
    for part in parts or []:
        _check.one_of("--only", part, PARTS)
    typer.echo(reproduce(out=out, only=parts, sets=sets, quick=quick, jobs=jobs, seed=seed))


def main() -> None:
    """Run the command line."""
    app()
