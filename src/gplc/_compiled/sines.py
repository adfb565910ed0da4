"""Products of sines, the functions of a Hilbert-space basis, at many rows."""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gplc._types import Array


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def products_of_sines(
    X: Array,
    lowest: Array,
    rates: Array,
    numbers: NDArray[np.int64],
    factor: float,
    out: Array,
) -> None:
    """out[i, m] = factor prod_k sin(numbers[m, k] rates[k] (X[i, k] - lowest[k])).

    Sines of multiples of an angle follow from each other: sin((j + 1) t) = 2 cos(t) sin(j t) -
    sin((j - 1) t).
    """
    n, d = X.shape
    count = numbers.shape[0]
    most = 1
    for m in range(count):
        for k in range(d):
            most = max(most, numbers[m, k])
    table = np.zeros((d, most + 1))
    for i in range(n):
        for k in range(d):
            angle = rates[k] * (X[i, k] - lowest[k])
            twice = 2.0 * math.cos(angle)
            table[k, 1] = math.sin(angle)
            for j in range(2, most + 1):
                table[k, j] = twice * table[k, j - 1] - table[k, j - 2]
        for m in range(count):
            value = factor * table[0, numbers[m, 0]]
            for k in range(1, d):
                value *= table[k, numbers[m, k]]
            out[i, m] = value
