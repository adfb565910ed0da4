"""Rows as they come: gaps and known noise, checked where the user hands them over.

Every error is one line that names the column and the first row that is wrong, counted from 0.
"""

from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing

from gplc import _check
from gplc._types import Array

# Row numbers that an error lists.
LISTED = 5
# Of all counts together.
MOST_ROWS = 1_000_000


class DataWarning(UserWarning):
    """What was done to data before a fit, or is odd about them."""


class Cases(NamedTuple):
    """What a model is fitted to, as it was given but for the rows that are left out."""

    X: Any
    y: Any
    noise_std: Array | None  # (n,)
    given: int  # rows there were
    dropped: int = 0  # of these, without a response
    rows: NDArray[np.intp] | None = None  # their numbers, if these are not 0, 1, ...


def cases_of(
    X: Any, y: Any, noise_std: ArrayLike | None = None, sample_weight: ArrayLike | None = None
) -> Cases:
    """Rows that have a response, each as often as it was seen, with what is known of it.

    Examples
    --------
    >>> found = cases_of([[0.0], [1.0], [2.0]], [1.0, float("nan"), 3.0], 0.5)
    >>> found.X, found.y, found.noise_std.tolist(), found.dropped
    ([[0.0], [2.0]], [1.0, 3.0], [0.5, 0.5], 1)
    """
    missing = _missing_responses(X, y)
    count, label = len(missing), _label("noise_std", noise_std)
    noise = None if noise_std is None else _of_rows("noise_std", noise_std, count)
    counts = None if sample_weight is None else counts_of(sample_weight, count)
    if not missing.any() and (counts is None or (counts == 1).all()):
        return Cases(X, y, known_noise(label, noise), count)
    kept = np.flatnonzero(~missing)
    if kept.size < 2:
        raise ValueError(
            f"y has NaN in {count - kept.size} of {count} rows, which leaves {kept.size}; 2 rows "
            "with a response are needed"
        )
    dropped = count - kept.size
    if counts is not None:
        kept = np.repeat(kept, counts[kept])
        if kept.size < 2:
            raise ValueError(
                f"sample_weight is zero for nearly all rows and leaves {kept.size}; 2 are needed"
            )
    known = known_noise(label, None if noise is None else noise[kept], kept)
    left = _safe_indexing(X, kept), _safe_indexing(y, kept)
    return Cases(*left, known, count, dropped, kept)


def counts_of(sample_weight: ArrayLike, count: int) -> NDArray[np.intp]:
    """How often each row was seen.

    Examples
    --------
    >>> counts_of([1, 2.5], 2)
    Traceback (most recent call last):
    ValueError: sample_weight must be whole numbers, how often each row was seen, got 2.5 in row \
1; for rows that are measured better than others give noise_std
    """
    values = _of_rows("sample_weight", sample_weight, count)
    wrong = ~((values >= 0.0) & (values == np.floor(values)) & (values <= MOST_ROWS))
    if wrong.any():
        first = int(np.argmax(wrong))
        found = "NaN" if np.isnan(values[first]) else f"{values[first]}"
        raise ValueError(
            f"{_label('sample_weight', sample_weight)} must be whole numbers, how often each row "
            f"was seen, got {found} in row {first}; for rows that are measured better than others "
            "give noise_std"
        )
    if values.sum() > MOST_ROWS:
        raise ValueError(
            f"sample_weight counts {values.sum():.0f} rows in all, more than {MOST_ROWS}; divide "
            "them by a common factor, or take fewer rows"
        )
    return values.astype(np.intp)


def _missing_responses(X: Any, y: Any) -> NDArray[np.bool_]:
    """Which rows have no y; none if y is anything but numbers, one for each row of X."""
    values = _floats(y)
    if values is None or values.shape != (_rows(X),):
        return np.zeros(_rows(y), dtype=bool)  # scikit-learn refuses it
    return np.isnan(values)


def _rows(values: Any) -> int:
    shape = getattr(values, "shape", None)
    shape = np.asarray(values, dtype=object).shape if shape is None else shape
    return int(shape[0]) if len(shape) else 0


def _floats(values: Any) -> Array | None:
    """Values as floats, nan where they are missing; None if they are no numbers."""
    try:
        if hasattr(values, "to_numpy") and hasattr(values, "isna"):  # pandas and its own NA
            return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
        array = np.asarray(values)
        return None if array.dtype.kind == "c" else array.astype(np.float64)
    except (OverflowError, TypeError, ValueError):
        return None


def _of_rows(name: str, values: ArrayLike, count: int) -> Array:
    """One number for each row; a single one is that of all."""
    found = _floats(values)
    if found is None:
        raise ValueError(
            f"{_label(name, values)} must hold numbers, got {type(values).__name__}; convert "
            "text first"
        )
    if found.ndim == 0:
        return np.full(count, float(found))
    if found.shape != (count,):
        raise ValueError(
            f"{_label(name, values)} must be one number or have one for each of {count} rows, "
            f"got shape {found.shape}"
        )
    return found


def _label(name: str, values: Any) -> str:
    """The argument, and the column that was given for it, if that has a name."""
    column = getattr(values, "name", None)
    return f"{name} (column {column!r})" if isinstance(column, str) else name


def known_noise(
    name: str, values: Array | None, rows: NDArray[np.intp] | None = None
) -> Array | None:
    """SDs that are finite and above 0; `rows` are their numbers, if others than 0, 1, ...

    Examples
    --------
    >>> known_noise("noise_std", np.array([0.5, -1.0]))
    Traceback (most recent call last):
    ValueError: noise_std must be above 0, got -1.0 in row 1; give the SD of each measurement
    """
    if values is None:
        return None
    wrong = ~((values > 0.0) & (values <= _check.LARGEST_SD))
    if wrong.any():
        first = int(np.argmax(wrong))
        more = f" (and {wrong.sum() - 1} more)" if wrong.sum() > 1 else ""
        row = first if rows is None else rows[first]
        found = "NaN" if np.isnan(values[first]) else f"{values[first]}"
        raise ValueError(
            f"{name} must be above 0, got {found} in row {row}{more}; give the SD of each "
            "measurement"
        )
    return values


def new_noise(noise_std: ArrayLike | None, count: int) -> Array | None:
    """Noise SDs of new measurements: none if not given; 0 is a measurement without noise."""
    if noise_std is None or (np.ndim(noise_std) == 0 and noise_std == 0):
        return None
    return known_noise(_label("noise_std", noise_std), _of_rows("noise_std", noise_std, count))


def refuse_missing(X: Any) -> None:
    """Refuse NaN among the inputs, and say where it is and what can be done.

    Examples
    --------
    >>> refuse_missing([[0.0, 1.0], [2.0, float("nan")]])
    Traceback (most recent call last):
    ValueError: X contains NaN in row 1, column 1 (1 row in all); drop such rows, or fill them in \
first: make_pipeline(SimpleImputer(), model)
    """
    values = _floats(X)
    if values is not None and values.ndim == 2 and np.isnan(values).any():
        _refuse(X, np.isnan(values))


def _refuse(X: Any, missing: NDArray[np.bool_]) -> NoReturn:
    rows = np.flatnonzero(missing.any(axis=1))
    column = int(np.argmax(missing[rows[0]]))
    names = getattr(X, "columns", None)
    shown = column if names is None else repr(names[column])
    if rows.size == 1:
        listed = "1 row in all"
    else:
        first = ", ".join(str(row) for row in rows[:LISTED])
        listed = f"rows {first}{', ...' if rows.size > LISTED else ''}: {rows.size} in all"
    raise ValueError(
        f"X contains NaN in row {rows[0]}, column {shown} ({listed}); drop such rows, or fill "
        "them in first: make_pipeline(SimpleImputer(), model)"
    )
