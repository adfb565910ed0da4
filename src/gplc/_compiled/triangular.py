"""Cholesky factors that follow a changing set of cases, without being computed anew.

Factors are held as U = L', upper triangular and row-major, so that a column of L is a
contiguous row of U and every inner loop runs along memory.
"""

import math

import numpy as np
from numba import njit

from gplc._types import Array

PANEL = 48  # rows solved between two matrix products: small enough for the L1 cache


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def _add_four_to_two(
    x: Array, y: Array, a: Array, b: Array, c: Array, d: Array, weights: Array
) -> None:
    """(x, y) += weights @ (a, b, c, d), weights (2, 4).

    All other work on vectors is made of this: each entry fetched is used four or two times.
    """
    xa, xb, xc, xd = weights[0, 0], weights[0, 1], weights[0, 2], weights[0, 3]
    ya, yb, yc, yd = weights[1, 0], weights[1, 1], weights[1, 2], weights[1, 3]
    for i in range(x.size):
        x[i] += xa * a[i] + xb * b[i] + xc * c[i] + xd * d[i]
        y[i] += ya * a[i] + yb * b[i] + yc * c[i] + yd * d[i]


@njit(cache=True, forceinline=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def _inner(a: Array, b: Array) -> float:
    """Inner product of short vectors, summed in whatever order is fastest."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@njit(cache=True, forceinline=True, error_model="numpy", fastmath={"contract"})
def _reflect(tail: Array, reflector: Array, head: float, scale: float, old: float) -> float:
    """Reflect the column (old, tail), in place; the new first entry, its sign turned."""
    step = scale * (head * old + _inner(reflector, tail))
    for k in range(tail.size):
        tail[k] -= step * reflector[k]
    return head * step - old


@njit(cache=True, forceinline=True, error_model="numpy", fastmath={"contract"})
def drop_leading(upper: Array, whitened: Array, count: int, rows: Array) -> None:
    """Turn the factor of n cases into that of the last n - count, in place.

    With L = [[L11, 0], [L21, L22]], the trailing block has L_new L_new' = L22 L22' + L21 L21':
    a rank-`count` update, done by one Householder reflection per column, four columns at a time.
    Only orthogonal transformations are used and nothing is subtracted, so it is stable.

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
    padded = rows.shape[0]
    rows[count:, :size] = 0.0  # what is there to make a multiple of four stays zero
    for k in range(count):
        rows[k][:size] = upper[k][count:]
    lost = np.zeros(padded)
    lost[:count] = whitened[:count]
    # H = I - scale v v' with v = (head, reflector) sends (pivot, rows) to (-norm, 0); the sign
    # of the row is turned at once, so that the diagonal stays positive.
    reflectors = np.zeros((4, padded))
    heads = np.empty(4)
    scales = np.empty(4)
    weights = np.empty((2, 4))
    steps = np.empty((4, size))
    for start in range(0, size, 4):
        stop = min(start + 4, size)
        # The columns of the panel itself, which give the reflections. A new row may lie on an
        # old one, but never on what is still to be read.
        for j in range(start, stop):
            for k in range(count):
                reflectors[j - start, k] = rows[k, j]
        for j in range(start, stop):
            reflector = reflectors[j - start]
            pivot = upper[count + j, count + j]
            tail = _inner(reflector, reflector)
            norm = math.sqrt(pivot * pivot + tail)
            head = pivot + norm
            scale = 2.0 / (head * head + tail)
            heads[j - start] = head
            scales[j - start] = scale
            upper[j, j] = norm
            for i in range(j + 1, stop):
                old = upper[count + j, count + i]
                upper[j, i] = _reflect(reflectors[i - start], reflector, head, scale, old)
            # The whitened responses are one more column.
            whitened[j] = _reflect(lost, reflector, head, scale, whitened[count + j])
        if stop == size:
            break

        # All columns behind it. Each reflection sees what those before it did to the rows, which
        # is where the products of two reflectors come in.
        for t in range(4):
            old_row = upper[count + start + t][count + stop :]
            step_row = steps[t][stop:]
            factor = heads[t] * scales[t]
            for i in range(step_row.size):
                step_row[i] = factor * old_row[i]
        for t in range(0, 4, 2):
            for k in range(0, padded, 4):
                for u in range(2):
                    for v in range(4):
                        weights[u, v] = scales[t + u] * reflectors[t + u, k + v]
                _add_four_to_two(
                    steps[t][stop:],
                    steps[t + 1][stop:],
                    rows[k][stop:size],
                    rows[k + 1][stop:size],
                    rows[k + 2][stop:size],
                    rows[k + 3][stop:size],
                    weights,
                )
        for t in range(4):
            step_row = steps[t][stop:]
            for u in range(t):
                earlier = steps[u][stop:]
                factor = scales[t] * _inner(reflectors[t], reflectors[u])
                for i in range(step_row.size):
                    step_row[i] -= factor * earlier[i]
            old_row = upper[count + start + t][count + stop :]
            new_row = upper[start + t][stop:size]
            head = heads[t]
            for i in range(step_row.size):
                new_row[i] = head * step_row[i] - old_row[i]
        for k in range(0, padded, 2):
            for t in range(4):
                weights[0, t] = -reflectors[t, k]
                weights[1, t] = -reflectors[t, k + 1]
            _add_four_to_two(
                rows[k][stop:size],
                rows[k + 1][stop:size],
                steps[0][stop:],
                steps[1][stop:],
                steps[2][stop:],
                steps[3][stop:],
                weights,
            )


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


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def solve_lower_rows(upper: Array, size: int, right: Array) -> None:
    """Overwrite each row of right (q, size) with L^-1 row: for a few, without any copy."""
    q = right.shape[0]
    weights = np.empty((2, 4))
    unused = np.zeros(size)  # makes a pair with the last row of an odd number
    for j in range(0, size, 4):
        stop = min(j + 4, size)
        for c in range(0, q, 2):
            weights[1, :] = 0.0
            for u in range(min(2, q - c)):
                row = right[c + u]
                for i in range(j, stop):
                    for k in range(j, i):
                        row[i] -= upper[k, i] * row[k]
                    row[i] /= upper[i, i]
                    weights[u, i - j] = -row[i]
            if stop < size:
                _add_four_to_two(
                    right[c][stop:size],
                    right[c + 1][stop:size] if c + 1 < q else unused[stop:size],
                    upper[j][stop:size],
                    upper[j + 1][stop:size],
                    upper[j + 2][stop:size],
                    upper[j + 3][stop:size],
                    weights,
                )


@njit(cache=True, error_model="numpy")
def log_density(upper: Array, whitened: Array) -> float:
    """-|v|^2 / 2 - log det U of a vector v and a triangle U; NaN or infinite if it has none."""
    result = 0.0
    for i in range(whitened.size):
        result -= 0.5 * whitened[i] * whitened[i] + math.log(upper[i, i])
    return result
