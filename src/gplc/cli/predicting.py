"""The command that predicts."""

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from gplc.cli.options import Delimiter, Fit, check_out, load_fit, probabilities, separator
from gplc.cli.shared import command, say, working

if TYPE_CHECKING:
    import pandas as pd

    from gplc._types import Array


class Asked(NamedTuple):
    """What a prediction is to tell."""

    interval: float
    quantiles: list[float]
    parts: bool
    prefix: str


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

    probabilities(str(interval), "--interval")
    asked = Asked(interval, probabilities(quantiles, "--quantiles"), parts, prefix)
    check_out(out, stream=True)
    model = load_fit(fit)
    form = "jsonl" if as_json else _tables.table_format(out)
    done = 0
    with _tables.writing(out, form) as append, working("predicting"):
        for frame in _tables.read_chunks(new, separator(delimiter)):
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
        say(f"Predicted {done} rows; they are in {out}.")


def _inputs(model: Any, frame: "pd.DataFrame", path: str) -> "tuple[Array, list[str]]":
    """Inputs of new rows (rows, p), and the columns they come from."""
    from gplc import _fitted, _tables

    given = _fitted.feature_names(model)
    if getattr(model, "feature_names_in_", None) is None and len(frame.columns) == len(given):
        given = [str(name) for name in frame.columns]  # fitted without names: by position
    return _tables.numbers(frame, given, path), given


def _predicted(model: Any, numbers: "Array", asked: Asked) -> "dict[str, Array]":
    """The columns that prediction adds, by name."""
    from gplc import _fitted

    rows = _fitted.as_table(model, numbers)
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
