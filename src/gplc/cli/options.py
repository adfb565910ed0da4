"""Options that several commands have, and what is made of them."""

import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from gplc.cli import oddities
from gplc.cli.shared import say, warn

if TYPE_CHECKING:
    import pandas as pd

    from gplc._tables import Reading
    from gplc.kernels import Kernel

DEFAULT_SECONDS = 120.0
MAX_ROWS = 5000
# With a basis the cost grows as the rows do.
MAX_BASIS_ROWS = 2_000_000

Data = Annotated[
    str,
    typer.Argument(metavar="DATA", help="CSV, Excel or Parquet file; - reads CSV from stdin."),
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
Exclude = Annotated[
    list[str] | None,
    typer.Option("--exclude", help="Columns that are no inputs, with commas between."),
]
NoiseColumn = Annotated[
    str | None,
    typer.Option("--noise-column", help="Column with the SD of the known noise of each row."),
]
WeightColumn = Annotated[
    str | None,
    typer.Option("--weight-column", help="Column that counts how often each row was seen."),
]
Resolution = Annotated[
    str | None,
    typer.Option("--resolution", help="Step that the target was rounded to; auto finds it."),
]
Transform = Annotated[
    str | None,
    typer.Option("--transform", help="Model log, logit or boxcox of the target instead."),
]
Delimiter = Annotated[
    str | None, typer.Option(help="Between the fields of a CSV file; found by itself.")
]
Decimal = Annotated[
    str | None,
    typer.Option(
        metavar=". or ,",
        help="Decimal mark; the other one then marks thousands. Needed if numbers have either.",
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(help="Of a CSV file, as latin-1 or cp1252; UTF-8, or as its mark says."),
]
Sheet = Annotated[
    str | None, typer.Option(help="Sheet of an Excel file; needed if there are several.")
]
KernelText = Annotated[
    str | None,
    typer.Option("--kernel", help="As in Python: 'Matern32 + Linear'; the model's by default."),
]
MeanName = Annotated[
    str | None,
    typer.Option("--mean", help="zero, constant or linear; zero by default."),
]
Priors = Annotated[
    list[str] | None,
    typer.Option(
        "--prior",
        metavar="NAME=MEDIAN,FACTOR",
        help=(
            "Prior of a hyperparameter, with data in SDs: noise_sd=0.3,3 is within a factor "
            "of 3 of 0.3 with probability 2/3. May be given several times."
        ),
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace a fit that is there already.")]
FitRows = Annotated[
    int | None,
    typer.Option(
        "--max-rows",
        help="Refuse larger tables. By default 5,000 if the model is exact, 2 million if not.",
    ),
]
Fast = Annotated[
    bool,
    typer.Option(
        "--fast",
        help="A first answer in seconds: a Gaussian around the mode, with a verdict.",
    ),
]
ApproximationName = Annotated[
    str,
    typer.Option(
        "--approximation",
        metavar="auto or none",
        help="Beyond 1,000 rows: in a basis where there is one (auto), or exact (none).",
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Of a Dask scheduler, whose workers read CSV or Parquet and do the sums.",
    ),
]
MaxRows = Annotated[int, typer.Option(help="Refuse larger tables: the cost grows as rows^3.")]
DropMissing = Annotated[
    bool, typer.Option("--drop-missing", help="Leave out rows with missing inputs.")
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same draws.")]
Jobs = Annotated[int, typer.Option(help="Processes at once; -1 is one for each core.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 3 unless the verdict is fine.")]
MaxSeconds = Annotated[
    float | None,
    typer.Option(
        help=f"Stop after so long; {DEFAULT_SECONDS:.0f} if draws are auto.", show_default=False
    ),
]


def check_out(path: str, *, stream: bool = False, replace: bool = True) -> None:
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
    if not replace and Path(path).exists():
        raise ValueError(f"{path} is there already; give another --out, or --force to replace it")


def names_in(given: list[str] | None, whole: Iterable[str] = ()) -> list[str]:
    """Names with commas between, each once; a name in `whole` may have a comma of its own."""
    found: list[str] = []
    for text in given or []:
        found += [text] if text in whole else [name.strip() for name in text.split(",")]
    return [name for name in dict.fromkeys(found) if name]


def probabilities(text: str, option: str) -> list[float]:
    """Probabilities with commas between."""
    try:
        values = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        values = [math.nan]
    if not all(0.0 < value < 1.0 for value in values):
        raise ValueError(f"{option} must be probabilities between 0 and 1, got {text!r}")
    return values


def reading(
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
) -> "Reading":
    """How a table is to be read, as given on a command line, where tabs are hard to type."""
    from gplc._tables import Reading

    separator = {"tab": "\t", "\\t": "\t"}.get(delimiter or "", delimiter)
    if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
        raise ValueError(f"--delimiter must be one character, or tab, got {delimiter!r}")
    mark = {"point": ".", "comma": ","}.get(decimal or "", decimal)
    if mark not in (None, ".", ","):
        raise ValueError(f"--decimal must be . or , (point or comma), got {decimal!r}")
    if mark is not None and mark == separator:
        raise ValueError(f"--decimal and --delimiter cannot both be {mark!r}; change one of them")
    if encoding is not None:
        _check_encoding(encoding)
    return Reading(separator, mark, encoding, sheet)


def _check_encoding(name: str) -> None:
    try:
        b" ".decode(name)
    except UnicodeError:
        pass  # a space is more than a byte in it
    except (LookupError, ValueError) as error:
        raise ValueError(
            f"--encoding must be one that Python knows, got {name!r}; try latin-1, cp1252 "
            "or utf-16"
        ) from error


def draws_in(text: str) -> Any:
    """A number of draws, or auto."""
    if text == "auto":
        return "auto"
    if not text.isdigit() or int(text) < 1:
        raise ValueError(f"--draws must be a whole number of at least 1, or auto, got {text!r}")
    return int(text)


class Columns(NamedTuple):
    """What the columns of a table are for."""

    target: str
    features: list[str] | None  # all others by default
    exclude: list[str] | None
    noise: str | None = None
    weight: str | None = None

    def inputs(self, table: "pd.DataFrame", path: str) -> list[str]:
        """Names of the columns that are inputs."""
        from gplc._files import name_of

        left_out = names_in(self.exclude, table.columns)
        for name in left_out:
            if name not in table.columns:
                raise ValueError(
                    f"--exclude: {name_of(path)} has no column {name!r}; check the name"
                )
        asked = names_in(self.features, table.columns)
        if self.target in asked:
            raise ValueError(f"--features must not hold the target {self.target!r}")
        left_out += [name for name in (self.target, self.noise, self.weight) if name is not None]
        chosen = [name for name in asked or map(str, table.columns) if name not in left_out]
        if not chosen:
            raise ValueError(
                f"{name_of(path)} has no column but {', '.join(table.columns)}; an input is "
                "needed too. If that is several columns, give their --delimiter"
            )
        return chosen


class TableData(NamedTuple):
    """Inputs and response of a table, and what is known of the noise of each row."""

    X: "pd.DataFrame"
    y: "pd.Series[Any]"
    noise_std: "pd.Series[Any] | None" = None
    sample_weight: "pd.Series[Any] | None" = None

    def known(self) -> dict[str, Any]:
        """What `fit` is to be told besides."""
        told = {"noise_std": self.noise_std, "sample_weight": self.sample_weight}
        return {name: values for name, values in told.items() if values is not None}

    def given(self) -> tuple[Any, Any, dict[str, Any]]:
        """What `fit` is to be given."""
        return self.X, self.y, self.known()

    def with_response(self) -> "TableData":
        """Rows whose response is there."""
        kept = self.y.notna()
        more = (self.noise_std, self.sample_weight)
        return TableData(
            self.X[kept], self.y[kept], *(None if each is None else each[kept] for each in more)
        )


def approximation_in(text: str) -> Any:
    """Auto, or none.

    Examples
    --------
    >>> approximation_in("auto"), approximation_in("none")
    ('auto', None)
    """
    if text not in ("auto", "none"):
        raise ValueError(f"--approximation must be auto or none, got {text!r}")
    return "auto" if text == "auto" else None


def check_rows(estimator: Any, X: Any, known: dict[str, Any], data: str) -> None:
    """Refuse a table that is too large for an exact model, if that is what would be fitted."""
    from gplc._tables import too_large

    if len(X) > MAX_ROWS and not estimator.in_basis(X, known.get("noise_std")):
        raise too_large(data, MAX_ROWS)


def rows_elsewhere(
    data: str,
    columns: Columns,
    how: "Reading",
    drop_missing: bool,
    scheduler: str | None,
) -> tuple[Any, Any]:
    """X and y of a large table, which is read in parts: here, or by workers of a cluster."""
    from gplc._tables import read_chunks
    from gplc.estimators import open_rows

    frame = next(read_chunks(data, how))
    chosen = columns.inputs(frame, data)
    if scheduler is None:
        return open_rows(data, columns.target, chosen, reading=how, drop_missing=drop_missing)
    # Looks at the first rows as any table is looked at, before the workers do.
    from gplc._cells import numbers
    from gplc.estimators.distant import read_on_cluster

    used = [*chosen, columns.target]
    numbers(frame, used, data, decimal=how.decimal, keep_missing=drop_missing, optional=chosen)
    return read_on_cluster(data, columns.target, chosen, how, drop_missing, scheduler)


def resolution_in(text: str | None) -> Any:
    """A step, or auto.

    Examples
    --------
    >>> resolution_in("0.5"), resolution_in("auto"), resolution_in(None)
    (0.5, 'auto', None)
    """
    if text is None or text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--resolution must be a number or auto, got {text!r}") from None


def read_data(
    data: str,
    columns: Columns,
    how: "Reading",
    max_rows: int,
    drop_missing: bool,
    transform: str | None = None,
) -> TableData:
    """Inputs and response of a table, as numbers, levels or dates; says what is odd about them.

    Rows without a response are kept: whoever fits leaves them out, and counts them.
    """
    import numpy as np
    import pandas as pd

    from gplc._cells import mixed, numbers, sds, whole_numbers
    from gplc._files import name_of
    from gplc._tables import read_table

    table = read_table(data, max_rows, how)
    target, chosen = columns.target, columns.inputs(table, data)
    response = numbers(table, [target], data, decimal=how.decimal, keep_missing=True)
    if transform is not None:
        _check_transform(transform, table[target], data, response[:, 0])
    inputs = mixed(
        table,
        chosen,
        data,
        decimal=how.decimal,
        keep_missing=drop_missing,
        optional=chosen,
    )
    there = inputs.notna().all(axis=1).to_numpy()
    for name in (columns.noise, columns.weight) if drop_missing else ():
        if name is not None:  # it may be missing where there is no response
            known = numbers(table, [name], data, decimal=how.decimal, keep_missing=True)
            there = there & (~np.isnan(known[:, 0]) | np.isnan(response[:, 0]))
    kept = np.flatnonzero(there)
    usable = int(np.sum(~np.isnan(response[kept])))
    if usable < 2:
        raise ValueError(f"{name_of(data)} has {usable} usable rows; 2 are needed")
    y = pd.Series(response[kept, 0], name=target)
    inputs = inputs.reset_index(drop=True)
    X = inputs.iloc[kept].reset_index(drop=True)
    if len(kept) < len(table):
        left_out_rows = f"{len(table) - len(kept)} of {len(table)} rows with missing entries"
        say(f"Left out {left_out_rows}.")
        X.attrs["left_out"] = left_out_rows
    # Rows are counted before some are left out.
    for oddity in [
        *oddities.of_counters(inputs),
        *oddities.of_data(pd.concat([y, X], axis=1)[y.notna()], target),
    ]:
        warn(oddity)
    with_response = table.iloc[kept][y.notna().to_numpy()]

    def of_rows(name: str | None, read: Any) -> "pd.Series[Any] | None":
        """A further column, which may be empty where there is no response."""
        if name is None:
            return None
        values = pd.Series(1.0, index=y.index, name=name)
        values[y.notna()] = read(with_response, name, data, decimal=how.decimal)
        return values

    return TableData(X, y, of_rows(columns.noise, sds), of_rows(columns.weight, whole_numbers))


def _check_transform(name: str, column: "pd.Series[Any]", path: str, response: Any) -> None:
    """Refuse responses that a transform does not take, where the file has them."""
    from gplc._cells import refuse_outside
    from gplc.transforms import checked_transform, transform_of

    checked_transform(name)
    found = transform_of(name, response)
    if found is not None:
        ends = (found.lower, found.upper)
        refuse_outside(column, path, response, ends, f"--transform {name}")


def kernel_in(text: str | None) -> "Kernel | None":
    """A kernel written as in Python."""
    from gplc.kernels import from_text

    return None if text is None else from_text(text)


def priors_in(given: list[str] | None) -> dict[str, tuple[float, float]] | None:
    """Priors of log hyperparameters, from name=median,factor.

    Examples
    --------
    >>> priors_in(["noise_sd=1,2.718281828459045"])
    {'noise_sd': (0.0, 1.0)}
    """
    priors = {}
    for text in given or []:
        name, _, numbers = text.partition("=")
        try:
            median, factor = (float(part) for part in numbers.split(","))
        except ValueError:
            median, factor = math.nan, math.nan
        if not (0.0 < median < math.inf and 1.0 < factor < math.inf):
            raise ValueError(
                f"--prior must be name=median,factor with a median above 0 and a factor above 1, "
                f"got {text!r}; try noise_sd=0.3,3"
            )
        priors[name.strip()] = (math.log(median), math.log(factor))
    return priors or None


@contextmanager
def keeping_draws() -> Iterator[None]:
    """Go on with what there is when sampling is interrupted: it is saved, and then told."""
    from gplc.estimators import Interrupted

    with suppress(Interrupted):
        yield


def load_fit(fit: str, stacks: bool = False) -> Any:
    """A fit from its file; a stack of several only if a command can do with it."""
    from gplc.estimators import Stack, load

    model = load(fit)
    if isinstance(model, Stack) and not stacks:
        raise ValueError(f"{fit} is a stack of models, which only gplc predict takes; give a fit")
    return model
