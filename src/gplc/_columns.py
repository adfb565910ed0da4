"""Columns of a data frame as numbers: levels by their place, dates in a unit that is told."""

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from gplc._types import Array

NUMBER, CATEGORY, ORDERED, DATE = "number", "category", "ordered", "date"
# In seconds; taken is the largest unit of which the dates span two or more.
UNITS: Mapping[str, float] = {"days": 86400.0, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0}
# Levels that a sentence lists.
LISTED = 5


class Column(NamedTuple):
    """What one column holds."""

    name: str
    kind: str = NUMBER
    levels: tuple[str, ...] = ()
    unit: str = ""  # of dates
    origin: str = ""  # the day that dates are counted from

    @property
    def has_levels(self) -> bool:
        """Whether it holds levels, in an order or not."""
        return self.kind in (CATEGORY, ORDERED)


class Columns(NamedTuple):
    """What the columns of a data frame hold, as it was when a model was fitted.

    Examples
    --------
    >>> table = pd.DataFrame({"dose": [1.0, 2.0, 4.0], "group": ["b", "a", "b"]})
    >>> columns = Columns.learned(table)
    >>> columns.encoded(table)["group"].tolist(), columns.told()
    ([1.0, 0.0, 1.0], ["'group' is taken as a category with 2 levels: a, b."])
    >>> columns.decoded(np.array([[3.0, 0.0]]))
       dose group
    0   3.0     a
    """

    each: tuple[Column, ...]

    @classmethod
    def learned(cls, X: Any) -> "Columns | None":
        """What a data frame holds; None if it holds numbers only, or is no data frame."""
        names = getattr(X, "columns", None)
        if names is None or not hasattr(X, "shape") or not all(isinstance(n, str) for n in names):
            return None
        found = tuple(_learned(str(name), _series(X, k)) for k, name in enumerate(names))
        return cls(found) if any(column.kind != NUMBER for column in found) else None

    @classmethod
    def from_record(cls, record: Any) -> "Columns | None":
        """The columns that `record` told."""
        if record is None:
            return None
        return cls(tuple(Column(**{**each, "levels": tuple(each["levels"])}) for each in record))

    def record(self) -> list[dict[str, Any]]:
        """In JSON's terms."""
        return [{**each._asdict(), "levels": list(each.levels)} for each in self.each]

    def label(self, k: int) -> str:
        """A column for an axis: its name, with what its numbers mean."""
        column = self.each[k]
        if column.kind == DATE:
            return f"{column.name} ({column.unit} since {column.origin})"
        return column.name

    def grid(self, k: int) -> Array | None:
        """The numbers of all levels of a column; None if it has none."""
        column = self.each[k]
        return np.arange(float(len(column.levels))) if column.has_levels else None

    @property
    def numbers(self) -> tuple[int, ...]:
        """Places of columns of numbers and dates."""
        return tuple(k for k, column in enumerate(self.each) if not column.has_levels)

    @property
    def unordered(self) -> tuple[int, ...]:
        """Places of columns of levels without an order."""
        return tuple(k for k, column in enumerate(self.each) if column.kind == CATEGORY)

    @property
    def ordered(self) -> tuple[int, ...]:
        """Places of columns of levels in an order."""
        return tuple(k for k, column in enumerate(self.each) if column.kind == ORDERED)

    @property
    def levels_in(self) -> list[str]:
        """Names of the columns that hold levels."""
        return [column.name for column in self.each if column.has_levels]

    def encoded(self, X: Any) -> Any:
        """The same rows, all columns of them numbers; nan where something is missing."""
        names = getattr(X, "columns", None)
        wide = _wide(X)
        if len(wide) != 2 or wide[1] != len(self.each):
            return np.zeros(wide) if names is None else pd.DataFrame(0.0, range(wide[0]), names)
        if names is not None and list(names) != [column.name for column in self.each]:
            return pd.DataFrame(0.0, index=range(wide[0]), columns=list(names))
        made = [_encoded(column, _series(X, k)) for k, column in enumerate(self.each)]
        if names is None:
            return np.column_stack([np.asarray(values) for values in made])
        return pd.DataFrame(dict(zip(names, made, strict=True)))

    def decoded(self, X: Array) -> pd.DataFrame:
        """Rows of numbers as a data frame that can be encoded: levels by name, dates in units."""
        made: dict[str, Any] = {}
        for column, values in zip(self.each, X.T, strict=True):
            if column.has_levels:
                labels = np.array([*column.levels, "another level"], dtype=object)
                places = np.clip(np.rint(values), 0, len(column.levels)).astype(int)
                made[column.name] = labels[places]
            else:
                made[column.name] = values
        return pd.DataFrame(made)

    def unseen(self, X: Any) -> str:
        """A sentence about levels that were not in training; empty if there are none."""
        told = []
        for k, column in enumerate(self.each):
            if not column.has_levels or _wide(X)[1:] != (len(self.each),):
                continue
            known = {*column.levels, None}
            new = sorted({str(each) for each in _labels(_series(X, k))} - {str(e) for e in known})
            if new:
                shown = ", ".join(map(repr, new[:LISTED])) + (", ..." if len(new) > LISTED else "")
                told.append(f"{shown} in column {column.name!r}")
        if not told:
            return ""
        return f"levels not seen in training are predicted from the prior: {'; '.join(told)}"

    def told(self) -> list[str]:
        """What was made of columns that do not hold numbers, in sentences."""
        notes = []
        for column in self.each:
            if column.kind == DATE:
                since = f"{column.unit} since {column.origin}"
                notes.append(f"{column.name!r} holds dates, taken as {since}.")
            elif column.has_levels:
                shown = ", ".join(column.levels[:LISTED])
                shown += ", ..." if len(column.levels) > LISTED else ""
                order = "levels in this order" if column.kind == ORDERED else "levels"
                notes.append(
                    f"{column.name!r} is taken as a category with {len(column.levels)} {order}: "
                    f"{shown}."
                )
        return notes


def _wide(X: Any) -> tuple[int, ...]:
    """The shape of whatever X is."""
    shape = getattr(X, "shape", None)
    return tuple(np.asarray(X, dtype=object).shape if shape is None else shape)


def _series(X: Any, k: int) -> "pd.Series[Any]":
    """A column of whatever X is."""
    if isinstance(X, pd.DataFrame):
        return X.iloc[:, k]
    if hasattr(X, "get_columns"):  # polars
        column = X.get_columns()[k]
        return pd.Series(column.to_numpy() if column.dtype.is_numeric() else column.to_list())
    return pd.Series(np.asarray(X, dtype=object)[:, k]).infer_objects()


def _labels(values: "pd.Series[Any]") -> list[str | None]:
    """Levels by name, whatever they are; None where one is missing."""
    return [
        None if missing else _label(each)
        for each, missing in zip(values, values.isna(), strict=True)
    ]


def _label(value: Any) -> str:
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _learned(name: str, values: "pd.Series[Any]") -> Column:
    kind = _kind(values)
    if kind == DATE:
        times = _times(name, values)
        first = times.min()
        span = (times.max() - first).total_seconds()
        fitting = [unit for unit, seconds in UNITS.items() if span >= 2.0 * seconds]
        origin = "" if pd.isna(first) else str(first.date())
        return Column(name, DATE, unit=fitting[0] if fitting else "seconds", origin=origin)
    if kind == NUMBER:
        return Column(name)
    if isinstance(values.dtype, pd.CategoricalDtype):
        there = {_label(each) for each in values.dropna().unique()}
        levels = [_label(each) for each in values.cat.categories]
        levels = levels if kind == ORDERED else [each for each in levels if each in there]
    else:
        levels = sorted({each for each in _labels(values) if each is not None})
        there = set(levels)
    if len(there) == len(values) > 1:
        raise ValueError(
            f"column {name!r} has as many levels as rows, {len(values)} ({levels[0]!r} in one of "
            "them): nothing can be learned of any; leave the column out (--exclude), or join "
            "levels"
        )
    return Column(name, kind, tuple(levels))


def _kind(values: "pd.Series[Any]") -> str:
    types = pd.api.types
    if isinstance(values.dtype, pd.CategoricalDtype):
        return ORDERED if values.cat.ordered else CATEGORY
    if types.is_bool_dtype(values.dtype):
        return CATEGORY
    if types.is_datetime64_any_dtype(values.dtype):
        return DATE
    if types.is_numeric_dtype(values.dtype):
        return NUMBER
    there = values.dropna().tolist()
    if there and all(isinstance(each, datetime.date) for each in there):
        return DATE
    if there and all(isinstance(each, str | bool | np.bool_) for each in there):
        # Numbers that are written as text are numbers, as scikit-learn takes them.
        return NUMBER if all(map(_is_number, there)) else CATEGORY
    return NUMBER


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return not isinstance(value, bool | np.bool_)


def _times(name: str, values: "pd.Series[Any]") -> "pd.Series[Any]":
    times = pd.to_datetime(values, utc=True, errors="coerce").dt.tz_localize(None)
    wrong = np.flatnonzero(times.isna() & values.notna())
    if wrong.size:
        raise ValueError(
            f"X has {str(values.iloc[wrong[0]])[:40]!r} in row {wrong[0]}, column {name!r}, which "
            "is no date; write it like 2026-03-31"
        )
    return times


def _encoded(column: Column, values: "pd.Series[Any]") -> Sequence[Any] | Array:
    if column.has_levels:
        places = {level: float(place) for place, level in enumerate(column.levels)}
        # All levels that are not known have one number: they are as far from all others.
        new = float(len(column.levels))
        if column.kind == ORDERED:
            new = 1e6
        found = _labels(values)
        return np.array([np.nan if each is None else places.get(each, new) for each in found])
    if column.kind == DATE and not pd.api.types.is_numeric_dtype(values.dtype):
        since = _times(column.name, values) - pd.Timestamp(column.origin)
        return np.asarray(since.dt.total_seconds(), dtype=np.float64) / UNITS[column.unit]
    return values.to_numpy()
