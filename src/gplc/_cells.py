"""Cells of a table as numbers: decimal and thousands marks, missing values, what is neither.

Whether "1.234" is a little more than one or a little more than a thousand is never guessed. Cells
that a computer writes are numbers as they stand. Others need `decimal`, and an error says so.
"""

import difflib
import re
import shlex
from collections.abc import Collection, Sequence
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gplc._files import FileError, name_of
from gplc._types import Array

MISSING = ("", "na", "n/a", "nan", "null", "none", "?")
POINT, COMMA = ".", ","
# Marks between groups of three digits: the one of point and comma that is not the decimal mark,
# an apostrophe, or a space of some kind.
APART = "'\u2019 \u00a0\u2009\u202f"
# Set by the reader of a CSV file where points may well mark thousands: fields are not divided by
# commas, so that the file can come from where commas are decimal marks.
IN_DOUBT = "points in doubt"


def _written(decimal: str) -> re.Pattern[str]:
    """Numbers as people write them, plain or in groups of three digits."""
    groups = rf"[1-9]\d{{0,2}}(?:(?P<mark>[{re.escape(APART + _other(decimal))}])\d{{3}}"
    groups += r"(?:(?P=mark)\d{3})*)"
    mark = re.escape(decimal)
    return re.compile(
        rf"[+-]?(?:{groups}(?:{mark}\d*)?|\d+(?:{mark}\d*)?|{mark}\d+)(?:e[+-]?\d+)?",
        re.ASCII | re.IGNORECASE,
    )


def _other(decimal: str) -> str:
    return POINT if decimal == COMMA else COMMA


WRITTEN = {decimal: _written(decimal) for decimal in (POINT, COMMA)}


def number(cell: Any, decimal: str | None = None) -> float | None:
    """A cell as a number, nan if it is missing, None if it is neither.

    Parameters
    ----------
    cell : object
    decimal : {".", ","}, optional
        The decimal mark; the other one, apostrophes and spaces then mark thousands. Without it
        a number is what a computer writes.

    Examples
    --------
    >>> number("1.234"), number("1.234", ","), number("1,234", ".")
    (1.234, 1234.0, 1234.0)
    >>> number("78,5"), number("78,5", ","), number("n/a")
    (None, 78.5, nan)
    """
    text = "" if cell is None else str(cell).strip()
    if text.lower() in MISSING:
        return float("nan")
    if decimal is not None and WRITTEN[decimal].fullmatch(text):
        for mark in APART + _other(decimal):
            text = text.replace(mark, "")
        return float(text.replace(decimal, "."))
    if decimal == COMMA and POINT in text:  # neither a decimal nor a thousands mark: a slip
        return None
    try:
        return float(text)
    except ValueError:
        return None


def numbers(
    frame: pd.DataFrame,
    columns: Sequence[str],
    path: str,
    *,
    decimal: str | None = None,
    keep_missing: bool = False,
    optional: Collection[str] = (),
) -> Array:
    """Some columns as a (rows, columns) array, every entry a finite number.

    Parameters
    ----------
    frame : data frame
        Its index says where rows are in the file.
    columns : sequence of str
    path : str
        File that the frame is from, for errors.
    decimal : {".", ","}, optional
        As for `number`.
    keep_missing : bool
        Whether entries that are missing are nan; otherwise they are an error too.
    optional : collection of str
        Columns that could be left out, of which an error says so.

    Examples
    --------
    >>> frame = pd.DataFrame({"x": ["1", "2,5"], "label": ["a", "b"]})
    >>> numbers(frame, ["x"], "data.csv", decimal=",").tolist()
    [[1.0], [2.5]]
    >>> numbers(frame, ["x"], "data.csv")
    Traceback (most recent call last):
    gplc._files.FileError: data.csv, row 1, column 'x': '2,5' has a decimal comma; give --decimal ,
    """
    for column in columns:
        if column not in frame.columns:
            _refuse_column(frame, column, path)
    if decimal is None and frame.attrs.get(IN_DOUBT):
        _refuse_points_in_doubt(frame[list(columns)], path)
    result = np.empty((len(frame), len(columns)))
    for k, column in enumerate(columns):
        values = _as_floats(frame[column], decimal)
        if values is None:
            _refuse_text(frame[column], path, decimal, column in optional)
        wrong = np.isinf(values) if keep_missing else ~np.isfinite(values)
        if wrong.any():
            first = int(np.argmax(wrong))
            missing = np.isnan(values[first])
            found = "is missing" if missing else "is infinite"
            advice = "leave such rows out with --drop-missing" if missing else "correct them"
            raise FileError(
                f"{_place(frame[column], path, frame.index[first])}: the value {found} "
                f"({int(wrong.sum())} of {len(frame)} in this column); fill such entries in, or "
                f"{advice}"
            )
        result[:, k] = values
    return result


# Dates as computers write them.
ISO_DATE = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
)


def holds_words(column: "pd.Series[Any]") -> bool:
    """Whether a column holds levels or dates: most of its cells are no numbers of any kind.

    Examples
    --------
    >>> holds_words(pd.Series(["a", "b", "1", "a"])), holds_words(pd.Series(["1", "2,5", "x"]))
    (True, False)
    """
    if pd.api.types.is_numeric_dtype(column.dtype):
        return pd.api.types.is_bool_dtype(column.dtype)
    if not (column.dtype == object or pd.api.types.is_string_dtype(column.dtype)):
        return True  # categories or dates, as a Parquet file has them
    there = [cell for cell in column if not _is_missing(cell)]
    words = [cell for cell in there if all(number(cell, d) is None for d in (None, *WRITTEN))]
    return 2 * len(words) > len(there)


def _is_missing(cell: Any) -> bool:
    return (
        cell is None
        or (not isinstance(cell, str) and cell != cell)
        or (str(cell).strip().lower() in MISSING)
    )


def words(column: "pd.Series[Any]", path: str, *, keep_missing: bool = False) -> "pd.Series[Any]":
    """A column of levels, or of dates if all are written as such; None where one is missing.

    Examples
    --------
    >>> words(pd.Series([" a", "n/a"], name="kind"), "data.csv", keep_missing=True).tolist()
    ['a', None]
    >>> words(pd.Series(["2026-03-31"], name="day"), "data.csv").dtype.kind
    'M'
    """
    missing = np.array([_is_missing(cell) for cell in column], dtype=bool)
    if missing.any() and not keep_missing:
        first = column.index[int(np.argmax(missing))]
        raise FileError(
            f"{_place(column, path, first)}: the value is missing ({int(missing.sum())} of "
            f"{len(column)} in this column); fill such entries in, or leave such rows out with "
            "--drop-missing"
        )
    if not (column.dtype == object or pd.api.types.is_string_dtype(column.dtype)):
        return column
    texts = [
        None if gone else cell.strip() if isinstance(cell, str) else cell
        for cell, gone in zip(column, missing, strict=True)
    ]
    there = [cell for cell in texts if cell is not None]
    if there and all(isinstance(cell, str) and ISO_DATE.fullmatch(cell) for cell in there):
        dates = pd.to_datetime(pd.Series(texts, dtype=object), utc=True, errors="coerce")
        if dates.notna().sum() == len(there):
            return pd.Series(dates.dt.tz_localize(None).to_numpy(), column.index, name=column.name)
    return pd.Series(texts, index=column.index, name=column.name, dtype=object)


def mixed(
    frame: pd.DataFrame,
    columns: Sequence[str],
    path: str,
    *,
    as_words: Collection[str] | None = None,
    decimal: str | None = None,
    keep_missing: bool = False,
    optional: Collection[str] = (),
) -> pd.DataFrame:
    """Some columns, each of numbers or of words; `as_words` says which, or they do themselves.

    Examples
    --------
    >>> frame = pd.DataFrame({"x": ["1", "2"], "kind": ["a", "b"]})
    >>> found = mixed(frame, ["x", "kind"], "data.csv")
    >>> [pd.api.types.is_numeric_dtype(kind) for kind in found.dtypes]
    [True, False]
    """
    for column in columns:
        if column not in frame.columns:
            _refuse_column(frame, column, path)
    if as_words is None:
        as_words = [column for column in columns if holds_words(frame[column])]
    plain = [column for column in columns if column not in as_words]
    found = numbers(
        frame, plain, path, decimal=decimal, keep_missing=keep_missing, optional=optional
    )
    by_name: dict[str, Any] = dict(zip(plain, found.T, strict=True))
    for column in as_words:
        by_name[column] = words(frame[column], path, keep_missing=keep_missing).array
    return pd.DataFrame({column: by_name[column] for column in columns}, index=frame.index)


def sds(
    frame: pd.DataFrame,
    column: str,
    path: str,
    *,
    decimal: str | None = None,
    keep_missing: bool = False,
) -> Array:
    """A column of SDs, all above 0; nan where one is missing, if that is allowed.

    Examples
    --------
    >>> sds(pd.DataFrame({"error": ["0.5", "0"]}), "error", "data.csv")
    Traceback (most recent call last):
    gplc._files.FileError: data.csv, row 1, column 'error': a noise SD must be above 0, got 0; \
correct it
    """
    found = numbers(frame, [column], path, decimal=decimal, keep_missing=keep_missing)[:, 0]
    _refuse_values(frame[column], path, found, found <= 0.0, "a noise SD must be above 0")
    return found


def refuse_outside(
    column: "pd.Series[Any]", path: str, found: Array, ends: tuple[float, float], what: str
) -> None:
    """Refuse values that are not between two ends; those that are missing pass.

    Examples
    --------
    >>> y = pd.Series(["0.5", "-1"], name="y")
    >>> refuse_outside(y, "data.csv", np.array([0.5, -1.0]), (0.0, np.inf), "--transform log")
    Traceback (most recent call last):
    gplc._files.FileError: data.csv, row 1, column 'y': --transform log takes values above 0, got \
-1; correct it
    """
    lower, upper = ends
    told = [f"above {lower:g}"] if lower > -np.inf else []
    told += [f"below {upper:g}"] if upper < np.inf else []
    wrong = (found <= lower) | (found >= upper)
    _refuse_values(column, path, found, wrong, f"{what} takes values {' and '.join(told)}")


def whole_numbers(
    frame: pd.DataFrame, column: str, path: str, *, decimal: str | None = None
) -> Array:
    """A column of counts.

    Examples
    --------
    >>> whole_numbers(pd.DataFrame({"seen": ["2", "1.5"]}), "seen", "data.csv")
    Traceback (most recent call last):
    gplc._files.FileError: data.csv, row 1, column 'seen': a count must be a whole number of at \
least 0, got 1.5; correct it
    """
    found = numbers(frame, [column], path, decimal=decimal)[:, 0]
    wrong = (found < 0.0) | (found != np.floor(found))
    told = "a count must be a whole number of at least 0"
    _refuse_values(frame[column], path, found, wrong, told)
    return found


def _refuse_values(
    column: "pd.Series[Any]", path: str, found: Array, wrong: NDArray[np.bool_], told: str
) -> None:
    """Refuse values that are wrong, and show the first of them."""
    if wrong.any():
        first = int(np.argmax(wrong))
        place = _place(column, path, column.index[first])
        raise FileError(f"{place}: {told}, got {found[first]:g}; correct it")


def _place(column: "pd.Series[Any]", path: str, where: object) -> str:
    return f"{name_of(path)}, {column.index.name or 'row'} {where}, column {column.name!r}"


def _as_floats(column: "pd.Series[Any]", decimal: str | None) -> Array | None:
    """A column as floats, or None if that cannot be."""
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    if decimal != COMMA:
        try:
            return np.array(column.tolist(), dtype=np.float64)
        except (TypeError, ValueError):
            pass  # some cell has to be looked at
    found = [number(cell, decimal) for cell in column]
    return None if None in found else np.array(found, dtype=np.float64)


def _refuse_text(
    column: "pd.Series[Any]", path: str, decimal: str | None, optional: bool
) -> NoReturn:
    bad = [entry for entry in column.items() if number(entry[1], decimal) is None]
    where, cell = bad[0]
    text = str(cell)[:40]
    place = f"{_place(column, path, where)}: {text!r}"
    if decimal is None:
        meant = {mark: value for mark in WRITTEN if (value := number(cell, mark)) is not None}
        if len(meant) == 2:
            raise FileError(f"{place} {_two_meanings(meant)}")
        if meant:
            told = "has a decimal comma" if COMMA in meant else "has marks between thousands"
            raise FileError(f"{place} {told}; give --decimal {next(iter(meant))}")
    more = f" ({len(bad)} such entries)" if len(bad) > 1 else ""
    if decimal == COMMA and number(cell, POINT) is not None:
        advice = "with --decimal , points can only mark thousands; write it like the others"
    elif optional and len(bad) > len(column) / 2:
        name = shlex.quote(str(column.name))
        advice = f"leave such a column out with --exclude {name}, or choose the inputs with -x"
    else:
        advice = "correct or remove it"
    raise FileError(f"{place} is not a number{more}; {advice}")


def _refuse_points_in_doubt(frame: pd.DataFrame, path: str) -> None:
    """Refuse points that may all be thousands marks, if nothing says that they are not."""
    first = None
    for name in frame.columns:
        for where, cell in frame[name].items():
            if POINT in str(cell) and number(cell) is not None:
                if number(cell, COMMA) is None:
                    return  # a decimal point, and so are the others
                first = first or (name, where, cell)
    if first is not None:
        name, where, cell = first
        meant = {mark: number(cell, mark) for mark in WRITTEN}
        place = _place(frame[name], path, where)
        raise FileError(f"{place}: {cell!r} {_two_meanings(meant)}")


def _two_meanings(meant: dict[str, Any]) -> str:
    shown = " or ".join(f"{value:.15g} (--decimal {mark})" for mark, value in meant.items())
    return f"may be {shown}; give one of these options"


def _refuse_column(frame: pd.DataFrame, column: str, path: str) -> NoReturn:
    names = [str(name) for name in frame.columns]
    close = difflib.get_close_matches(column, names, n=1)
    if len(names) == 1 and not close:
        advice = "if that is several columns, give their --delimiter"
    else:
        advice = f"did you mean {close[0]!r}?" if close else "choose among these"
    shown = ", ".join(names[:8]) + (f", ... ({len(names)} in all)" if len(names) > 8 else "")
    raise FileError(f"{name_of(path)} has no column {column!r}, but {shown}; {advice}")
