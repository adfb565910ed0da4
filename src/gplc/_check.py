"""Checks at the door: each raises a ValueError naming the argument, the value, and what to do."""

import math
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike

from gplc._types import Array

# Characters of a value that an error shows.
SHOWN = 200
# Of SDs, whose squares are added and multiplied; no standardized data need more.
LARGEST_SD = 1e20


def shown(value: object) -> str:
    """`value` as an error shows it: in one line, and not too long.

    Examples
    --------
    >>> shown([1, 2])
    '[1, 2]'
    """
    try:
        text = " ".join(repr(value).split())
    except (ValueError, RecursionError):  # more digits, or nested deeper, than Python writes down
        text = f"a huge {type(value).__name__}"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def finite_array(name: str, value: ArrayLike, ndim: int) -> Array:
    """`value` as a C-ordered float64 array of `ndim` dimensions with finite entries."""
    try:
        array = np.array(value, dtype=np.float64, order="C")
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be an array of real numbers, got {type(value).__name__}; "
            "convert text and missing values first"
        ) from error
    if array.ndim != ndim:
        advice = f"reshape {name} to (rows, columns)" if ndim == 2 else f"flatten {name}"
        raise ValueError(
            f"{name} must have {ndim} dimension(s), got shape {array.shape}; {advice}"
        )
    bad = ~np.isfinite(array)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"{name} must be finite, got {array[where]} at index {where}; "
            "remove or impute such entries"
        )
    return array


def number(
    name: str,
    value: object,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    at_most: float = math.inf,
    advice: str,
) -> float:
    """`value` as a float within its range."""
    try:
        real = math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    except OverflowError:  # an integer of more than 308 digits
        real = math.inf
    if not (math.isfinite(real) and above < real and at_least <= real <= at_most):
        low = f"above {above}" if above > -math.inf else f"at least {at_least}"
        high = f" and at most {at_most}" if at_most < math.inf else ""
        raise ValueError(
            f"{name} must be a finite number {low}{high}, got {shown(value)}; {advice}"
        )
    return real


def integer(
    name: str, value: object, *, at_least: int, at_most: float = math.inf, advice: str
) -> int:
    """`value` as an int within its range."""
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    if not (is_integer and at_least <= value <= at_most):  # type: ignore[operator]
        high = f" and at most {at_most}" if at_most < math.inf else ""
        raise ValueError(
            f"{name} must be an integer of at least {at_least}{high}, got {shown(value)}; {advice}"
        )
    return int(value)  # type: ignore[call-overload]


def one_of(name: str, value: object, choices: object) -> str:
    """`value`, one of the names in `choices`."""
    known = list(choices)  # type: ignore[call-overload]
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} must be one of {known}, got {shown(value)}; choose from these")
    return str(value)


def interval_probabilities(coverage: float) -> Array:
    """(1 - coverage) / 2 and (1 + coverage) / 2: the two ends of an equal-tailed interval.

    Parameters
    ----------
    coverage : float
        In (0, 1).

    Returns
    -------
    (2,) array

    Examples
    --------
    >>> interval_probabilities(0.5)
    array([0.25, 0.75])
    """
    if not (isinstance(coverage, Real) and 0 < coverage < 1):
        raise ValueError(
            f"coverage must be between 0 and 1, got {shown(coverage)}; for 90% pass 0.9"
        )
    return np.array([0.5 * (1.0 - coverage), 0.5 * (1.0 + coverage)])
