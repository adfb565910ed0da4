"""Excel workbooks as tables, a row at a time, through openpyxl."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
import pandas as pd

from gplc._files import FileError, optional

# What a sheet has room for.
MOST_ROWS = 1_048_576


def library(path: str) -> Any:
    """The module openpyxl, or an error that says how to get it."""
    return optional("openpyxl", f"{path}: Excel", "excel")


def rows(path: str, sheet: str | None) -> Iterator[tuple[Any, ...]]:
    """The rows of a sheet as they are on the screen: values, not formulas.

    Parameters
    ----------
    path : str
    sheet : str, optional
        By default the only sheet there is; several are an error that names them.
    """
    openpyxl = library(path)
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except OSError as error:
        raise FileError(
            f"{path} cannot be read ({error.strerror or error}); check the path and permissions"
        ) from error
    # Whatever is wrong inside a workbook, openpyxl stumbles over it in its own way.
    except Exception as error:
        raise FileError(
            f"{path} cannot be read as Excel ({type(error).__name__}); save it again as .xlsx, "
            "or as CSV"
        ) from error
    try:
        names = [each.title for each in book.worksheets]
        if sheet is None and len(names) == 1:
            sheet = names[0]
        if sheet not in names:
            found = f"{len(names)} sheets" if sheet is None else f"no sheet {sheet!r}"
            raise FileError(f"{path} has {found}; give --sheet, one of {', '.join(names)}")
        yield from book[sheet].iter_rows(values_only=True)
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path} is damaged ({error}); save it again") from error
    finally:
        book.close()


@contextmanager
def appender(file: IO[bytes]) -> Iterator[Any]:
    """A function that appends the rows of data frames to a workbook of one sheet."""
    book = library("output").Workbook(write_only=True)
    sheet = book.create_sheet("predictions")
    written = 0

    def append(frame: pd.DataFrame) -> None:
        nonlocal written
        if not written:
            sheet.append(list(frame.columns))
        written += len(frame)
        if written >= MOST_ROWS:
            raise FileError(f"an Excel sheet has room for {MOST_ROWS} rows; write .csv instead")
        for row in frame.astype(object).replace({np.nan: None}).itertuples(index=False):
            sheet.append(list(row))

    yield append
    book.save(file)
