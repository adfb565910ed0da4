"""Responses that were rounded: the step between them, and values that are far too frequent.

A density rewards a model without bound for finding ties. A value that was rounded to a multiple of
a step stands for all values within half a step, and so has noise of SD step / sqrt(12).
"""

import math
from typing import Any

import numpy as np

from gplc import _check
from gplc._types import Array

# With fewer different values any of them are evenly spaced.
FEWEST_VALUES = 5
# How far values may be from the grid, as a share of the step; with many of them, how far on
# average, for the grid itself may be rounded. Of values without a grid the average is 0.29.
MOST_OFF, MANY_VALUES, MEAN_OFF = 0.05, 15, 0.12
# The step may be so many times smaller than the smallest gap.
MOST_PARTS = 6
# A value that so large a share of so many rows has is no accident.
ATOM_SHARE, ATOM_ROWS = 0.2, 20


def rounding_sd(step: float | None) -> float:
    """SD of what rounding to multiples of a step takes away.

    Examples
    --------
    >>> round(rounding_sd(0.1), 4)
    0.0289
    """
    return 0.0 if step is None else step / math.sqrt(12.0)


def with_rounding(noise_std: Array | None, step: float | None, count: int) -> Array | None:
    """Known noise of so many rows, with that of rounding among it."""
    if step is None:
        return noise_std
    return np.hypot(0.0 if noise_std is None else noise_std, np.full(count, rounding_sd(step)))


def checked_resolution(value: Any) -> None:
    """Refuse what is neither None, "auto" nor a number above 0."""
    if value is None or (isinstance(value, str) and value == "auto"):
        return
    _check.number(
        "resolution", value, above=0.0, advice='"auto" finds the step; None: not rounded'
    )


def step_of(y: Array) -> float | None:
    """The step between values that have ties; None if there are no ties, or no step.

    Neighbouring values are whole multiples of it apart. Values that are themselves printed with
    few digits (1.3, 2.7, 4.0 for steps of 1.34) are on such a grid within a tenth of a step.

    Examples
    --------
    >>> import numpy as np
    >>> step_of(np.array([0.1, 0.3, 0.3, 0.4, 0.7, 0.8]))
    0.1
    >>> step_of(np.array([0.13, 0.31, 0.36, 0.42, 0.79, 0.88])) is None
    True
    """
    values = np.unique(y)
    if values.size == y.size or values.size < FEWEST_VALUES:
        return None
    gaps = np.diff(values)
    smallest = float(np.median(gaps[gaps < 1.5 * gaps.min()]))
    for parts in range(1, MOST_PARTS + 1):
        numbers = np.concatenate([[0.0], np.cumsum(np.round(gaps / (smallest / parts)))])
        step, first = np.polyfit(numbers, values, 1)
        if _on_grid((values - first) / step - numbers):
            return _short(float(step), float(numbers[-1]))
    return None


def _on_grid(off: Array) -> bool:
    """Whether values are so close to multiples of a step, in units of it, that it is no chance."""
    if off.size >= MANY_VALUES:
        return bool(np.sqrt(np.mean(off**2)) <= MEAN_OFF)
    return bool(np.abs(off).max() <= MOST_OFF)


def _short(step: float, most: float) -> float:
    """The number with the fewest digits that stays on the grid to its end."""
    for digits in range(1, 12):
        rounded = float(f"{step:.{digits}g}")
        if abs(rounded - step) * most < 0.02 * step:
            return rounded
    return step


def atom_of(y: Array) -> str | None:
    """A sentence about a value that a fifth of the rows have, if there is one.

    Examples
    --------
    >>> import numpy as np
    >>> atom_of(np.r_[np.zeros(30), np.arange(1.0, 71.0)])
    '30 of 100 responses are exactly 0: no model with a density can say so. If it is a limit of \
the instrument, or a special case, take these rows out or model them apart.'
    """
    if y.size < ATOM_ROWS:
        return None
    values, counts = np.unique(y, return_counts=True)
    most = int(np.argmax(counts))
    if counts[most] < ATOM_SHARE * y.size or values.size == 1:
        return None
    return (
        f"{counts[most]} of {y.size} responses are exactly {values[most]:g}: no model with a "
        "density can say so. If it is a limit of the instrument, or a special case, take these "
        "rows out or model them apart."
    )
