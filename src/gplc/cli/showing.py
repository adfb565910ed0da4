"""Commands that show what is in a fit: diagnose, check, plot and report."""

from pathlib import Path
from typing import Annotated, Any

import typer

from gplc.cli.options import AsJson, Fit, Jobs, Strict, check_out, load_fit, names_in
from gplc.cli.shared import UNCONVERGED, command, print_json, say, working

# Inputs along which calibration is looked at.
MOST_INPUTS = 4


@command("gplc diagnose motorcycle.fit.nc", "gplc diagnose fit.nc --json > diagnostics.json")
def diagnose(fit: Fit, strict: Strict = False, as_json: AsJson = False) -> None:
    """Is a fit fine, usable, or not to be used? Exit with 3 if it is not to be used."""
    from gplc.diagnostics import Advice, Level

    told = load_fit(fit).diagnostics_
    advice = Advice.in_shell(fit)
    if as_json:
        rows = {name: row._asdict() for name, row in told.rows.items()}
        print_json(
            {
                **told.to_record(),
                "rows": rows,
                "converged": told.ok,
                "level": str(told.level),
                "prediction_error": told.prediction_error,
                "problems": told.problems,
                "verdict": told.verdict_for(advice),
            }
        )
    else:
        typer.echo(told.told(advice))
    if told.level is Level.DO_NOT_USE or (strict and not told.ok):
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
                "overview, fan, sd, dependence, ridge, pit, coverage, calibration, surprise, "
                "residuals, replicates, influence, priors, chains, relevance, latent; with commas "
                "between, or all."
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
    kinds = list(plots.KINDS) if every else names_in([kind])
    for each in kinds:
        _check.one_of("--kind", each, plots.KINDS)
    if out is not None and len(kinds) != 1:
        raise ValueError(f"--out names one file, and {len(kinds)} pictures are asked for")
    if out is not None:
        check_out(out)
    model = load_fit(fit)
    for each in kinds:
        try:
            figure = plots.KINDS[each](model)
        except ValueError as error:
            if not every:  # of all pictures, some do not go with every model
                raise
            say(f"gplc: no {each}: {error}")
            continue
        name = out or f"{Path(fit).name.removesuffix('.nc').removesuffix('.fit')}-{each}.png"
        _save_figure(figure, name)
        typer.echo(name)


@command(
    "gplc check motorcycle.fit.nc",
    "gplc check fit.nc --json > checks.json",
    "gplc check fit.nc --simulate 100",
)
def check(
    fit: Fit,
    simulate: Annotated[
        int,
        typer.Option(
            min=0,
            help="Sets of data to make with the model's priors and kernel, and to sample: do "
            "sampler and model agree? 50 is a good start; instead of the other checks.",
        ),
    ] = 0,
    jobs: Jobs = -1,
    as_json: AsJson = False,
) -> None:
    """Tell whether the model of a fit says what its data say: rows left out, replicated data."""
    from gplc import checks
    from gplc._fitted import feature_names

    model = load_fit(fit)
    if simulate:
        with working("simulating"):
            simulated = checks.simulation(model, sets=max(2, simulate), n_jobs=jobs)
        if as_json:
            print_json(simulated.to_record())
        else:
            typer.echo(str(simulated))
        return
    with working("checking"):
        names = feature_names(model)[:MOST_INPUTS]
        found: dict[str, Any] = {
            "Leave-one-out": model.loo(),
            "Data that the model makes": checks.posterior_predictive(model),
            **{
                f"Calibration along {name}": checks.calibration(model, feature=k)
                for k, name in enumerate(names)
            },
            "Influential rows": checks.influence(model),
            "Sensitivity to priors": checks.sensitivity(model),
        }
    if as_json:
        print_json({title: each.to_record() for title, each in found.items()})
        return
    for number, (title, each) in enumerate(found.items()):
        typer.echo(f"{chr(10) if number else ''}# {title}\n\n{each}")


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
    check_out(name)
    model = load_fit(fit)
    with working("drawing"):
        write_report(model, name)
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
