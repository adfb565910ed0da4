"""Tables from and to files: CSV, Excel, Parquet, JSON lines, and the standard streams.

A file is read a chunk of rows at a time and one line never takes more than `LONGEST_LINE`
characters, so that no file, however large or odd, fills the memory. The index of a chunk says
where its rows are in the file: line numbers of a CSV file, row numbers of other files.
Errors name the file, the place, and what to do.
"""

import csv
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import pandas as pd

from gplc import _excel
from gplc._cells import COMMA, IN_DOUBT, number
from gplc._files import STREAM, FileError, name_of, optional, replacing
from gplc._text import lines, opened

Append = Callable[[pd.DataFrame], None]

CHUNK_ROWS = 20_000
# A table with more rows is large, and a CSV file with more bytes.
LARGE_ROWS, LARGE_BYTES = 500_000, 50_000_000
DELIMITERS = (",", "\t", ";", "|")
FORMATS: Mapping[str, str] = {
    **dict.fromkeys(("", ".csv", ".txt", ".dat"), "csv"),
    ".tsv": "tsv",
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    ".xlsx": "excel",
    ".jsonl": "jsonl",
}
# Endings of files that would be read as text otherwise, with an error about their first line.
UNREADABLE = (".jsonl", ".json", ".xls", ".xlsb", ".ods", ".numbers", ".gz", ".zip", ".feather")


class Reading(NamedTuple):
    """How a table is to be read; None is found out.

    Attributes
    ----------
    delimiter : str, optional
        Between the fields of a CSV file.
    decimal : {".", ","}, optional
        Decimal mark of numbers in text; see `gplc._cells.number`.
    encoding : str, optional
        Of a CSV file.
    sheet : str, optional
        Of a workbook.
    """

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    sheet: str | None = None


def table_format(path: str) -> str:
    """The format in which a table is written to a path, by its ending.

    Examples
    --------
    >>> table_format("new.parquet"), table_format("-"), table_format("data.txt")
    ('parquet', 'csv', 'csv')
    >>> table_format("predicted.docx")
    Traceback (most recent call last):
    gplc._files.FileError: predicted.docx: a table cannot be written with the ending .docx; ...
    """
    ending = Path(path).suffix.lower()
    if ending not in FORMATS:
        raise FileError(
            f"{path}: a table cannot be written with the ending {ending}; choose one of "
            f"{', '.join(filter(None, FORMATS))}"
        )
    form = FORMATS[ending]
    if form == "excel":
        _excel.library(path)
    return form


def read_chunks(
    path: str, reading: Reading | None = None, rows: int | None = None
) -> Iterator[pd.DataFrame]:
    """The rows of a table, some at a time; cells of a CSV file are text as it stands there."""
    reading, rows = reading or Reading(), rows or CHUNK_ROWS
    ending = Path(path).suffix.lower()
    if ending in UNREADABLE:
        raise FileError(
            f"{path}: a table cannot be read from {ending}; give CSV, .xlsx or Parquet"
        )
    form = FORMATS.get(ending, "csv")
    if form == "parquet":
        chunks = _parquet_chunks(path, rows)
    elif form == "excel":
        chunks = _excel_chunks(path, reading.sheet, rows)
    else:
        chunks = _csv_chunks(path, reading, rows)
    first = next(chunks, None)
    if first is None:
        raise FileError(f"{name_of(path)} has a header but no rows; nothing can be done with it")
    yield from chain([first], chunks)


def is_large(path: str) -> bool:
    """Whether a table is better read in parts than held as a whole."""
    if path == STREAM or not Path(path).is_file():
        return False
    form = FORMATS.get(Path(path).suffix.lower(), "csv")
    if form == "parquet":
        return _parquet_file(path).metadata.num_rows > LARGE_ROWS
    return form in ("csv", "tsv") and Path(path).stat().st_size > LARGE_BYTES


def too_large(path: str, max_rows: int) -> FileError:
    """The error for a table with more rows than were allowed."""
    return FileError(
        f"{name_of(path)} has more than {max_rows} rows, and the cost of a fit grows as "
        "their cube; give a sample of them, or raise --max-rows if you have the patience"
    )


def read_table(path: str, max_rows: int, reading: Reading | None = None) -> pd.DataFrame:
    """A whole table, refused as soon as it turns out to have more than `max_rows` rows."""
    chunks, count = [], 0
    for frame in read_chunks(path, reading, min(max_rows + 1, CHUNK_ROWS)):
        count += len(frame)
        if count > max_rows:
            raise too_large(path, max_rows)
        chunks.append(frame)
    whole = pd.concat(chunks)
    whole.attrs = chunks[0].attrs
    return whole


@contextmanager
def writing(path: str, form: str, decimal: str | None = None) -> Iterator[Append]:
    """A function that appends rows to a table, which appears at `path` if all goes well.

    What goes to standard output is held back until it is whole, too.

    Parameters
    ----------
    path : str
    form : str
        As `table_format` says.
    decimal : {".", ","}, optional
        Decimal mark of numbers in a CSV file; with a comma its fields are divided by semicolons.
    """
    if path == STREAM:
        with tempfile.TemporaryFile() as file:
            with _appender(cast(IO[bytes], file), form, decimal) as append:
                yield append
            file.seek(0)
            shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.buffer.flush()
    else:
        with replacing(path) as draft, open(draft, "wb") as file:
            with _appender(file, form, decimal) as append:
                yield append
            file.flush()


# --- reading --------------------------------------------------------------------------------


def delimiter_of(path: str) -> str:
    """What is most frequent in the first line of a CSV file."""
    with opened(path) as file:
        return _delimiter_in(next(lines(file, path), ""))


def _delimiter_in(header: str) -> str:
    return max(DELIMITERS, key=header.count)


def _csv_chunks(path: str, reading: Reading, rows: int) -> Iterator[pd.DataFrame]:
    with opened(path) as file:
        text = lines(file, path, reading.encoding)
        header_line = next(text, "")
        if not header_line.strip():
            raise FileError(
                f"{name_of(path)} is empty; its first line must name the columns, the others "
                "hold a row each"
            )
        separator = reading.delimiter or _delimiter_in(header_line)
        reader = csv.reader(chain([header_line], text), delimiter=separator)
        try:
            names = _header(next(reader), path)
            whole = _full_rows(reader, names, separator, path)
            for number_of_chunk, frame in enumerate(_frames(whole, names, rows, "line")):
                # Later chunks are read as the first was.
                frame.attrs[IN_DOUBT] = separator != COMMA and number_of_chunk == 0
                yield frame
        except csv.Error as error:
            raise FileError(
                f"{name_of(path)}, line {reader.line_num}: {error}; check the quotes there"
            ) from error


def _full_rows(
    reader: Any, names: list[str], separator: str, path: str
) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank, each with the number of its line."""
    for row in reader:
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(names):
            raise FileError(
                f"{name_of(path)}, line {reader.line_num}: {len(row)} fields where the "
                f"header has {len(names)}; is {separator!r} the delimiter?"
            )
        yield reader.line_num, row


def _excel_chunks(path: str, sheet: str | None, rows: int) -> Iterator[pd.DataFrame]:
    numbered = (
        (place, row)
        for place, row in enumerate(_excel.rows(path, sheet), start=1)
        if any(cell is not None for cell in row)
    )
    _, header = next(numbered, (0, ()))
    if not header:
        raise FileError(f"{path} is empty; its first row must name the columns")
    while header[-1] is None:
        header = header[:-1]
    names = _header(["" if cell is None else str(cell) for cell in header], path)
    # A sheet is as wide as its widest row, and short rows end where their cells do.
    padding = [None] * len(names)
    whole = ((place, [*row, *padding][: len(names)]) for place, row in numbered)
    yield from _frames(whole, names, rows, "row")


def _frames(
    numbered: Iterator[tuple[int, Sequence[Any]]], names: list[str], rows: int, place: str
) -> Iterator[pd.DataFrame]:
    """Rows with their places, so many in a frame."""
    cells: list[Sequence[Any]] = []
    places: list[int] = []

    def frame() -> pd.DataFrame:
        return pd.DataFrame(cells, index=pd.Index(places, name=place), columns=names, dtype=object)

    for where, row in numbered:
        cells.append(row)
        places.append(where)
        if len(cells) == rows:
            yield frame()
            cells, places = [], []
    if cells:
        yield frame()


def _header(cells: Sequence[str], path: str) -> list[str]:
    """Names of columns, if that is what these are; those without get one."""
    if all(number(cell) is not None for cell in cells):
        raise FileError(
            f"{name_of(path)}, line 1: there are only numbers ({', '.join(cells[:3])} ...) where "
            "the names of the columns are wanted; add a header"
        )
    names = [cell.strip() or f"column {k}" for k, cell in enumerate(cells, start=1)]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise FileError(f"{name_of(path)}, line 1: two columns are named {twice[0]!r}; rename one")
    return names


def _parquet_file(path: str) -> Any:
    parquet = optional("pyarrow.parquet", f"{path}: Parquet", "parquet")
    try:
        return parquet.ParquetFile(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise FileError(f"{path} cannot be read as Parquet ({reason}); check the file") from error


def _parquet_chunks(path: str, rows: int) -> Iterator[pd.DataFrame]:
    file = _parquet_file(path)
    done = 0
    with file:
        for batch in file.iter_batches(batch_size=rows):
            frame = batch.to_pandas()
            frame.index = pd.RangeIndex(done + 1, done + 1 + len(frame), name="row")
            done += len(frame)
            if len(frame):
                yield frame


# --- writing --------------------------------------------------------------------------------


def _appender(file: IO[bytes], form: str, decimal: str | None) -> AbstractContextManager[Append]:
    if form == "parquet":
        return _parquet_appender(file)
    return _excel.appender(file) if form == "excel" else _text_appender(file, form, decimal)


@contextmanager
def _text_appender(file: IO[bytes], form: str, decimal: str | None) -> Iterator[Append]:
    begun = False
    between = "\t" if form == "tsv" else ";" if decimal == COMMA else ","

    def append(frame: pd.DataFrame) -> None:
        nonlocal begun
        if form == "jsonl":
            text = frame.to_json(orient="records", lines=True)
        else:
            text = frame.to_csv(
                index=False,
                header=not begun,
                float_format="%.10g",
                sep=between,
                decimal=decimal or ".",
            )
        file.write(text.encode())
        begun = True

    yield append


@contextmanager
def _parquet_appender(file: IO[bytes]) -> Iterator[Append]:
    parquet = optional("pyarrow.parquet", "output: Parquet", "parquet")
    import pyarrow

    writer = None

    def append(frame: pd.DataFrame) -> None:
        nonlocal writer
        schema = None if writer is None else writer.schema
        table = pyarrow.Table.from_pandas(frame, schema=schema, preserve_index=False)
        if writer is None:
            writer = parquet.ParquetWriter(file, table.schema)
        writer.write_table(table)

    try:
        yield append
    finally:
        if writer is not None:
            writer.close()
