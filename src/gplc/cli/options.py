"""Options that several commands have, and what is made of them."""

import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gplc.cli.shared import say

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_SECONDS = 30.0
MAX_ROWS = 5000

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


def check_out(path: str, *, stream: bool = False) -> None:
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


def separator(text: str | None) -> str | None:
    """A delimiter as given on a command line, where tabs are hard to type."""
    separator = {"tab": "\t", "\\t": "\t"}.get(text or "", text)
    if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
        raise ValueError(f"--delimiter must be one character, or tab, got {text!r}")
    return separator


def draws_in(text: str) -> Any:
    """A number of draws, or auto."""
    if text == "auto":
        return "auto"
    if not text.isdigit() or int(text) < 1:
        raise ValueError(f"--draws must be a whole number of at least 1, or auto, got {text!r}")
    return int(text)


def read_data(
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

    table = _tables.read_table(data, max_rows, separator(delimiter))
    chosen = names_in(features, table.columns) or [
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
        say(f"Left out {len(numbers) - len(kept)} of {len(numbers)} rows with missing values.")
    if len(kept) < 2:
        raise ValueError(f"{_tables.name_of(data)} has {len(kept)} usable rows; 2 are needed")
    return pd.DataFrame(kept[:, 1:], columns=chosen), pd.Series(kept[:, 0], name=target)


def load_fit(fit: str) -> Any:
    """A fit from its file."""
    from gplc.estimators import load

    return load(fit)
