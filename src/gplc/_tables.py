"""Tables from and to files: CSV, Parquet, JSON lines, and the standard streams.

A file is read a chunk of rows at a time and one line never takes more than `LONGEST_LINE`
characters, so that no file, however large or odd, fills the memory. The index of a chunk says
where its rows are in the file: line numbers of a CSV file, row numbers of a Parquet file.
Errors name the file, the place, and what to do.
"""

import csv
import difflib
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any, NoReturn, cast

import numpy as np
import pandas as pd

from gplc._files import FileError, replacing
from gplc._types import Array

Append = Callable[[pd.DataFrame], None]

CHUNK_ROWS = 20_000
LONGEST_LINE = 1_000_000
DELIMITERS = (",", "\t", ";", "|")
MISSING = ("", "na", "n/a", "nan", "null", "none", "?")
STREAM = "-"


def name_of(path: str) -> str:
    """A path as messages show it."""
    return "standard input" if path == STREAM else path


def table_format(path: str) -> str:
    """The format a path's ending asks for: "csv", "parquet" or "jsonl".

    Examples
    --------
    >>> table_format("new.parquet"), table_format("-"), table_format("data.txt")
    ('parquet', 'csv', 'csv')
    """
    ending = Path(path).suffix.lower()
    return {".parquet": "parquet", ".pq": "parquet", ".jsonl": "jsonl"}.get(ending, "csv")


def read_chunks(
    path: str, delimiter: str | None = None, rows: int = CHUNK_ROWS
) -> Iterator[pd.DataFrame]:
    """The rows of a table, some at a time; cells of a CSV file are text as it stands there."""
    chunks = (
        _parquet_chunks(path, rows)
        if table_format(path) == "parquet"
        else _csv_chunks(path, delimiter, rows)
    )
    first = next(chunks, None)
    if first is None:
        raise FileError(f"{name_of(path)} has a header but no rows; nothing can be done with it")
    yield from chain([first], chunks)


def read_table(path: str, max_rows: int, delimiter: str | None = None) -> pd.DataFrame:
    """A whole table, refused as soon as it turns out to have more than `max_rows` rows."""
    chunks, count = [], 0
    for frame in read_chunks(path, delimiter, min(max_rows + 1, CHUNK_ROWS)):
        count += len(frame)
        if count > max_rows:
            raise FileError(
                f"{name_of(path)} has more than {max_rows} rows, and the cost of a fit grows as "
                "their cube; give a sample of them, or raise --max-rows if you have the patience"
            )
        chunks.append(frame)
    return pd.concat(chunks)


def numbers(
    frame: pd.DataFrame, columns: Sequence[str], path: str, *, keep_missing: bool = False
) -> Array:
    """Some columns as a (rows, columns) array, every entry a finite number.

    With `keep_missing`, entries that are missing are nan; otherwise they are an error too.
    """
    for column in columns:
        if column not in frame.columns:
            _refuse_column(frame, column, path)
    place = frame.index.name or "row"
    result = np.empty((len(frame), len(columns)))
    for k, column in enumerate(columns):
        values = _as_floats(frame[column])
        if values is None:
            bad = [entry for entry in frame[column].items() if _number(entry[1]) is None]
            line, text = bad[0]
            hint = "write decimals with a point" if "," in str(text) else "correct or remove it"
            more = f" ({len(bad)} such entries)" if len(bad) > 1 else ""
            raise FileError(
                f"{name_of(path)}, {place} {line}, column {column!r}: {str(text)[:40]!r} is not "
                f"a number{more}; {hint}"
            )
        wrong = np.isinf(values) if keep_missing else ~np.isfinite(values)
        if wrong.any():
            line = frame.index[int(np.argmax(wrong))]
            found = "is missing" if np.isnan(values[np.argmax(wrong)]) else "is infinite"
            raise FileError(
                f"{name_of(path)}, {place} {line}, column {column!r}: the value {found} "
                f"({int(wrong.sum())} of {len(frame)} in this column); fill such entries in, or "
                "remove their rows"
            )
        result[:, k] = values
    return result


@contextmanager
def writing(path: str, form: str) -> Iterator[Append]:
    """A function that appends rows to a table, which appears at `path` if all goes well.

    What goes to standard output is held back until it is whole, too.
    """
    if path == STREAM:
        with tempfile.TemporaryFile() as file:
            with _appender(cast(IO[bytes], file), form) as append:
                yield append
            file.seek(0)
            shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.buffer.flush()
    else:
        with replacing(path) as draft, open(draft, "wb") as file:
            with _appender(file, form) as append:
                yield append
            file.flush()


# --- reading --------------------------------------------------------------------------------


def _csv_chunks(path: str, delimiter: str | None, rows: int) -> Iterator[pd.DataFrame]:
    with _opened(path) as file:
        lines = _lines(file, path)
        header_line = next(lines, "")
        if not header_line.strip():
            raise FileError(
                f"{name_of(path)} is empty; its first line must name the columns, the others "
                "hold a row each"
            )
        separator = delimiter or max(DELIMITERS, key=header_line.count)
        reader = csv.reader(chain([header_line], lines), delimiter=separator)
        cells: list[list[str]] = []
        places: list[int] = []
        try:
            names = [name.strip() for name in next(reader)]
            _check_header(names, path)
            for row in reader:
                if not any(cell.strip() for cell in row):
                    continue
                if len(row) != len(names):
                    raise FileError(
                        f"{name_of(path)}, line {reader.line_num}: {len(row)} fields where the "
                        f"header has {len(names)}; is {separator!r} the delimiter?"
                    )
                cells.append(row)
                places.append(reader.line_num)
                if len(cells) == rows:
                    yield _text_frame(cells, places, names)
                    cells, places = [], []
        except csv.Error as error:
            raise FileError(
                f"{name_of(path)}, line {reader.line_num}: {error}; check the quotes there"
            ) from error
        if cells:
            yield _text_frame(cells, places, names)


def _text_frame(cells: list[list[str]], places: list[int], names: list[str]) -> pd.DataFrame:
    index = pd.Index(places, name="line")
    return pd.DataFrame(cells, index=index, columns=names, dtype=object)


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    if path == STREAM:
        yield sys.stdin.buffer
        return
    try:
        file = open(path, "rb")  # noqa: SIM115 (closed below, errors of opening told apart)
    except OSError as error:
        raise FileError(
            f"{path} cannot be read ({error.strerror or error}); check the path and permissions"
        ) from error
    with file:
        yield file


def _lines(file: IO[bytes], path: str) -> Iterator[str]:
    """Lines of text, none of them long enough to fill the memory."""
    number = 0
    while line := file.readline(LONGEST_LINE):
        number += 1
        if b"\0" in line or (len(line) == LONGEST_LINE and not line.endswith(b"\n")):
            raise FileError(
                f"{name_of(path)}, line {number}: this is no text table (it has zero bytes or a "
                "line without end); give CSV or Parquet, with the ending .parquet"
            )
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise FileError(
                f"{name_of(path)}, line {number}: byte {error.start + 1} is not UTF-8; save the "
                "table with that encoding"
            ) from error


def _check_header(names: list[str], path: str) -> None:
    if all(_number(name) is not None for name in names):
        raise FileError(
            f"{name_of(path)}, line 1: there are only numbers ({', '.join(names[:3])} ...) where "
            "the names of the columns are wanted; add a header"
        )
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise FileError(f"{name_of(path)}, line 1: two columns are named {twice[0]!r}; rename one")


def _parquet_chunks(path: str, rows: int) -> Iterator[pd.DataFrame]:
    parquet = _parquet_library(path)
    try:
        file = parquet.ParquetFile(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise FileError(f"{path} cannot be read as Parquet ({reason}); check the file") from error
    done = 0
    with file:
        for batch in file.iter_batches(batch_size=rows):
            frame = batch.to_pandas()
            frame.index = pd.RangeIndex(done + 1, done + 1 + len(frame), name="row")
            done += len(frame)
            if len(frame):
                yield frame


def _parquet_library(path: str) -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise FileError(
            f"{path}: Parquet needs pyarrow, which is not installed; give CSV, or "
            "pip install 'gplc[parquet]'"
        ) from error
    return pyarrow.parquet


def _refuse_column(frame: pd.DataFrame, column: str, path: str) -> NoReturn:
    names = [str(name) for name in frame.columns]
    close = difflib.get_close_matches(column, names, n=1)
    if len(names) == 1 and not close:
        advice = "if that is several columns, give their --delimiter"
    else:
        advice = f"did you mean {close[0]!r}?" if close else "choose among these"
    shown = ", ".join(names[:8]) + (f", ... ({len(names)} in all)" if len(names) > 8 else "")
    raise FileError(f"{name_of(path)} has no column {column!r}, but {shown}; {advice}")


def _number(text: Any) -> float | None:
    """A cell as a number, nan if it is missing, None if it is neither."""
    if text is None or str(text).strip().lower() in MISSING:
        return float("nan")
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def _as_floats(column: "pd.Series[Any]") -> Array | None:
    """A column as floats, or None if that cannot be."""
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    try:
        return np.array(column.tolist(), dtype=np.float64)
    except (TypeError, ValueError):
        found = [_number(text) for text in column]
        return None if None in found else np.array(found, dtype=np.float64)


# --- writing --------------------------------------------------------------------------------


def _appender(file: IO[bytes], form: str) -> AbstractContextManager[Append]:
    return _parquet_appender(file) if form == "parquet" else _text_appender(file, form)


@contextmanager
def _text_appender(file: IO[bytes], form: str) -> Iterator[Append]:
    begun = False

    def append(frame: pd.DataFrame) -> None:
        nonlocal begun
        if form == "jsonl":
            text = frame.to_json(orient="records", lines=True)
        else:
            text = frame.to_csv(index=False, header=not begun, float_format="%.10g")
        file.write(text.encode())
        begun = True

    yield append


@contextmanager
def _parquet_appender(file: IO[bytes]) -> Iterator[Append]:
    parquet = _parquet_library("output")
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
