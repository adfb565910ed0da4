"""Largest entry and sum of a vector.

Several numbers at once, and always the same ones: one by one they would wait for each other, and
in any order the last bit of a sum would depend on where the vector lies.
"""

import numpy as np
from numba import njit

from gplc._types import Array


@njit(cache=True, forceinline=True, error_model="numpy", fastmath={"contract"})
def largest(values: Array) -> float:
    """The largest of them; -inf if there is none, or none that is a number."""
    a = b = c = d = -np.inf
    whole = values.size - values.size % 4
    for k in range(0, whole, 4):
        a, b = max(a, values[k]), max(b, values[k + 1])
        c, d = max(c, values[k + 2]), max(d, values[k + 3])
    for k in range(whole, values.size):
        a = max(a, values[k])
    return max(max(a, b), max(c, d))


@njit(cache=True, forceinline=True, error_model="numpy", fastmath={"contract"})
def total_of(values: Array) -> float:
    """Their sum."""
    a = b = c = d = e = f = g = h = 0.0
    whole = values.size - values.size % 8
    for k in range(0, whole, 8):
        a, b = a + values[k], b + values[k + 1]
        c, d = c + values[k + 2], d + values[k + 3]
        e, f = e + values[k + 4], f + values[k + 5]
        g, h = g + values[k + 6], h + values[k + 7]
    for k in range(whole, values.size):
        a += values[k]
    return ((a + b) + (c + d)) + ((e + f) + (g + h))
