"""Cholesky factors that follow a changing set of cases, without being computed anew.

Factors are held as U = L', upper triangular and row-major, so that a column of L is a
contiguous row of U and every inner loop runs along memory.
"""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]

PANEL = 48  # rows solved between two matrix products: small enough for the L1 cache


@njit(cache=True)
def _add_four(total: Array, a: Array, b: Array, c: Array, d: Array, weights: Array) -> None:
    """Total += weights @ (a, b, c, d). Four at a time: the sum stays in registers."""
    first, second, third, fourth = weights[0], weights[1], weights[2], weights[3]
    for i in range(total.size):
        total[i] += (first * a[i] + second * b[i]) + (third * c[i] + fourth * d[i])


@njit(cache=True)
def _subtract_two(step: Array, a: Array, b: Array, weights: Array) -> None:
    """(a, b) -= weights * step."""
    first, second = weights[0], weights[1]
    for i in range(step.size):
        a[i] -= first * step[i]
        b[i] -= second * step[i]


@njit(cache=True)
def drop_leading(upper: Array, whitened: Array, count: int, rows: Array) -> None:
    """Turn the factor of n cases into that of the last n - count, in place.

    With L = [[L11, 0], [L21, L22]], the trailing block has L_new L_new' = L22 L22' + L21 L21':
    a rank-`count` update, done by one Householder reflection per column. Only orthogonal
    transformations are used and nothing is subtracted, so it is stable.

    Parameters
    ----------
    upper : (n, n)
        U = L'. On return its leading (n - count) block holds the new factor.
    whitened : (n,)
        L^-1 y. On return its first n - count entries hold the new one.
    count : int
        Number of leading cases to drop.
    rows : (m, n)
        Work space, m at least `count` and a multiple of four.
    """
    size = upper.shape[0] - count
    for k in range(rows.shape[0]):
        for i in range(size):
            # Rows that pad to a multiple of four are zero, and stay so.
            rows[k, i] = upper[k, count + i] if k < count else 0.0
    reflector = np.zeros(rows.shape[0])
    lost = np.zeros(rows.shape[0])
    lost[:count] = whitened[:count]
    buffer = np.empty(size)
    for j in range(size):
        # H = I - scale v v' with v = (head, reflector) sends (pivot, reflector) to (-norm, 0);
        # the sign of the row is turned at once, so that the diagonal stays positive.
        pivot = upper[count + j, count + j]
        tail = 0.0
        for k in range(count):
            reflector[k] = rows[k, j]
            tail += reflector[k] * reflector[k]
        norm = math.sqrt(pivot * pivot + tail)
        head = pivot + norm
        scale = 2.0 / (head * head + tail)
        # arr[k][a:b], not arr[k, a:b]: only the first is known to be contiguous.
        old = upper[count + j][count + j : count + size]
        new = upper[j][j:size]
        step = buffer[j:size]
        for i in range(step.size):
            step[i] = head * old[i]
        for k in range(0, count, 4):
            _add_four(
                step,
                rows[k][j:size],
                rows[k + 1][j:size],
                rows[k + 2][j:size],
                rows[k + 3][j:size],
                reflector[k : k + 4],
            )
        for i in range(step.size):
            step[i] *= scale
        for i in range(step.size):
            new[i] = step[i] * head - old[i]
        for k in range(0, count, 2):
            _subtract_two(step, rows[k][j:size], rows[k + 1][j:size], reflector[k : k + 2])
        # The whitened responses are one more row under the same reflections.
        y_step = head * whitened[count + j]
        for k in range(count):
            y_step += reflector[k] * lost[k]
        y_step *= scale
        whitened[j] = y_step * head - whitened[count + j]
        for k in range(count):
            lost[k] -= reflector[k] * y_step


@njit(cache=True)
def solve_lower(upper: Array, size: int, right: Array, panel: Array, product: Array) -> None:
    """Overwrite right (size, q) with L^-1 right, L the leading block of U'.

    Left-looking in panels, so that nearly all of the work is matrix products. `panel` needs
    PANEL * size entries and `product` PANEL * q.
    """
    q = right.shape[1]
    for start in range(0, size, PANEL):
        stop = min(start + PANEL, size)
        height = stop - start
        if start > 0:
            above = panel[: start * height].reshape(start, height)
            for j in range(start):
                for i in range(height):
                    above[j, i] = upper[j, start + i]
            done = product[: height * q].reshape(height, q)
            np.dot(above.T, right[:start], done)
            for i in range(height):
                for c in range(q):
                    right[start + i, c] -= done[i, c]
        for i in range(start, stop):
            for j in range(start, i):
                entry = upper[j, i]
                for c in range(q):
                    right[i, c] -= entry * right[j, c]
            inverse = 1.0 / upper[i, i]
            for c in range(q):
                right[i, c] *= inverse


@njit(cache=True)
def solve_lower_rows(upper: Array, size: int, right: Array) -> None:
    """Overwrite each row of right (q, size) with L^-1 row: for a few, without any copy."""
    weights = np.empty(4)
    whole = size - size % 4
    for j in range(0, whole, 4):
        for c in range(right.shape[0]):
            row = right[c]
            for i in range(j, j + 4):
                for k in range(j, i):
                    row[i] -= upper[k, i] * row[k]
                row[i] /= upper[i, i]
                weights[i - j] = -row[i]
            _add_four(
                row[j + 4 : size],
                upper[j][j + 4 : size],
                upper[j + 1][j + 4 : size],
                upper[j + 2][j + 4 : size],
                upper[j + 3][j + 4 : size],
                weights,
            )
    for c in range(right.shape[0]):
        row = right[c]
        for i in range(whole, size):
            for k in range(whole, i):
                row[i] -= upper[k, i] * row[k]
            row[i] /= upper[i, i]
