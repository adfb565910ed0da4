"""The command that predicts."""

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from gplc.cli import options
from gplc.cli.oddities import Outside
from gplc.cli.shared import command, say, warn, working

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from gplc._types import Array


class Asked(NamedTuple):
    """What a prediction is to tell."""

    interval: float
    quantiles: list[float]
    parts: bool
    prefix: str

    @property
    def columns(self) -> list[str]:
        """Names of the columns that are added."""
        names = ["mean", "sd", "lower", "upper", *(f"q{level:g}" for level in self.quantiles)]
        names += ["function_sd", "residual_sd"] if self.parts else []
        return [f"{self.prefix}{name}" for name in names]


@command(
    "gplc predict motorcycle.fit.nc new.csv",
    "gplc predict fit.nc new.parquet --interval 0.5 --quantiles 0.1,0.9 --out predicted.parquet",
    "head -5 new.csv | gplc predict fit.nc - --json",
)
def predict(
    fit: options.Fit,
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
    noise_column: Annotated[
        str | None,
        typer.Option(
            "--noise-column",
            help="Column of NEW with the SD of the known noise of each new measurement.",
        ),
    ] = None,
    prefix: Annotated[str, typer.Option(help="Before the names of the new columns.")] = "",
    out: Annotated[
        str, typer.Option("--out", "-o", help=".csv, .xlsx, .parquet or .jsonl; - is stdout.")
    ] = "-",
    drop_missing: Annotated[
        bool,
        typer.Option(
            "--drop-missing", help="Leave out rows with missing inputs; else they stay empty."
        ),
    ] = False,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write a JSON object for each row.")
    ] = False,
) -> None:
    """Predict y for new rows: mean, SD, an interval, and quantiles.

    The columns of NEW are copied; mean, sd, lower and upper follow. Files of any length are
    read and written a piece at a time.
    """
    import numpy as np

    from gplc import _cells, _fitted, _tables
    from gplc._files import name_of

    options.probabilities(str(interval), "--interval")
    asked = Asked(interval, options.probabilities(quantiles, "--quantiles"), parts, prefix)
    options.check_out(out, stream=True)
    form = "jsonl" if as_json else _tables.table_format(out)
    how = options.reading(delimiter, decimal, encoding, sheet)
    model = options.load_fit(fit, stacks=True)
    if parts and not hasattr(model, "residual_sd"):
        raise ValueError(f"--parts needs a fit of one model, and {fit} is a stack; leave it out")
    one = next(iter(getattr(model, "models_", {"": model}).values()))  # all were given these rows
    columns = getattr(one, "columns_", None)
    plain = list(range(one.n_features_in_)) if columns is None else list(columns.numbers)
    names = _fitted.feature_names(one)
    outside = Outside(_fitted.training_data(one)[0][:, plain], [names[k] for k in plain])
    done = missing = 0
    with _tables.writing(out, form, how.decimal) as append, working("predicting"):
        for frame in _tables.read_chunks(new, how):
            inputs, given = _inputs(one, frame, new, how.decimal)
            noise = None
            if noise_column is not None:
                noise = _cells.sds(
                    frame, noise_column, new, decimal=how.decimal, keep_missing=True
                )
            there = inputs.notna().all(axis=1).to_numpy()
            whole = np.flatnonzero(there if noise is None else there & ~np.isnan(noise))
            missing += len(frame) - whole.size
            if drop_missing:
                frame, inputs = frame.iloc[whole], inputs.iloc[whole]
                noise = None if noise is None else noise[whole]
                whole = np.arange(whole.size)
            if taken := [name for name in asked.columns if name in frame.columns]:
                raise ValueError(
                    f"{name_of(new)} has a column {taken[0]!r} already; give a --prefix"
                )
            predicted = _predicted(model, inputs, whole, asked, noise)
            if plain and whole.size:
                outside.look(_fitted.as_numbers(one, inputs.iloc[whole])[:, plain])
            if form not in ("csv", "tsv"):  # there numbers are numbers
                frame = frame.assign(**{given[k]: inputs.iloc[:, k].array for k in plain})
            append(frame.assign(**predicted))
            done += whole.size
    if missing:
        told = "are left out" if drop_missing else "have empty predictions"
        say(f"{missing} of {done + missing} rows have missing entries and {told}.")
    for oddity in outside.told(done):
        warn(oddity)
    if out != "-":
        say(f"Predicted {done} rows; they are in {out}.")


def _inputs(
    model: Any, frame: "pd.DataFrame", path: str, decimal: str | None
) -> "tuple[pd.DataFrame, list[str]]":
    """Inputs of new rows, empty where missing, and the columns they come from."""
    from gplc import _fitted
    from gplc._cells import mixed

    given = _fitted.feature_names(model)
    if getattr(model, "feature_names_in_", None) is None and len(frame.columns) == len(given):
        given = [str(name) for name in frame.columns]  # fitted without names: by position
    columns = getattr(model, "columns_", None)
    words = (
        [] if columns is None else [each.name for each in columns.each if each.kind != "number"]
    )
    found = mixed(frame, given, path, as_words=words, decimal=decimal, keep_missing=True)
    return found, given


def _predicted(
    model: Any,
    inputs: "pd.DataFrame",
    whole: "NDArray[np.intp]",
    asked: Asked,
    noise: "Array | None",
) -> "dict[str, Array]":
    """The columns that prediction adds, by name; nan in rows that are not whole."""
    import numpy as np

    from gplc import _fitted

    found = np.full((len(asked.columns), len(inputs)), np.nan)
    if whole.size:
        known = None if noise is None else noise[whole]
        rows: Any = inputs.iloc[whole]
        if getattr(model, "columns_", None) is None:
            rows = _fitted.as_table(model, rows.to_numpy(dtype=np.float64))
        found[:, whole] = _values(model, rows, asked, known)
    return dict(zip(asked.columns, found, strict=True))


def _values(model: Any, rows: Any, asked: Asked, noise: "Array | None") -> "list[Array]":
    """What is asked for of rows that can be predicted, in the order of the columns."""
    dist = model.predict_dist(rows, noise)
    values = list(dist.summary(asked.interval))
    if asked.quantiles:
        values += list(dist.quantile(asked.quantiles).T)
    if asked.parts:
        values += [model.regression_function(rows).std(), model.residual_sd(rows).mean]
    return values
