"""Pools of values of a latent covariate, and what a function says about each of them.

A pool has `size` values for each case, the present one among them, and could have been made from
any of its members with the same probability. Its values are spread evenly over

    t = w / sqrt(SPREAD^2 + w^2),   -1 < t < 1,

which is nearly how N(0, 1) spreads them; what is missing comes as a weight, N(w | 0, 1) dw / dt.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gplc._compiled.exponential import exp_of_negative
from gplc._types import Array

SPREAD = 2.0
# No |w| is larger: there is less than 1e-9 of N(0, 1) outside.
END = 6.2


class DrawnFunction(NamedTuple):
    """g_i(w) = w^power s(w)^side sum_p coefficients[i, p] exp(-decay (w - nodes[p])^2).

    One function for each case i; s is the sign.
    """

    nodes: Array  # (p,)
    coefficients: Array  # (n, p)
    decay: float
    power: int
    side: int  # 0 or 1


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def fill(
    w: Array,
    zoom: float,
    starts: NDArray[np.int64],
    jitters: Array,
    candidates: Array,
    weights: Array,
) -> None:
    """Candidates and weights (n, size), of which the present w is number `starts` for each case.

    `jitters` (n, size) are uniform on (0, 1): there is one candidate in each of `size` cells of
    the same width, anywhere in it. With a zoom of 1 the cells go round the whole interval; with
    less they are a window on it, of that share of its width, and those outside have no weight.
    """
    n, size = candidates.shape
    last = END / math.sqrt(SPREAD * SPREAD + END * END)
    cell = 2.0 * last / size * min(zoom, 1.0)
    for i in range(n):
        # The present value has a place in its cell like the others.
        origin = w[i] / math.sqrt(SPREAD * SPREAD + w[i] * w[i])
        origin -= cell * (starts[i] + jitters[i, starts[i]])
        for j in range(size):
            t = origin + cell * (j + jitters[i, j])
            if zoom >= 1.0:
                t = t - 2.0 * last if t > last else t
                t = t + 2.0 * last if t < -last else t
            rest = max(1.0 - t * t, 1e-9)
            value = SPREAD * t / math.sqrt(rest)
            inside = 1.0 if abs(t) <= last else 0.0
            candidates[i, j] = value
            weights[i, j] = (
                inside * exp_of_negative(-0.5 * value * value) / (rest * math.sqrt(rest))
            )
        # Exactly: a case that stays does not drift by rounding.
        candidates[i, starts[i]] = w[i]


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def add_function(values: Array, candidates: Array, drawn: DrawnFunction) -> None:
    """Add g_i(w) to values[i], for each candidate w of every case i."""
    n, size = candidates.shape
    row = np.empty(size)
    for i in range(n):
        row[:] = 0.0
        for p in range(drawn.nodes.size):
            factor, node = drawn.coefficients[i, p], drawn.nodes[p]
            for j in range(size):
                gap = candidates[i, j] - node
                row[j] += factor * exp_of_negative(-drawn.decay * gap * gap)
        for _ in range(drawn.power):
            for j in range(size):
                row[j] *= candidates[i, j]
        for j in range(size):
            values[i, j] += -row[j] if drawn.side and candidates[i, j] < 0.0 else row[j]


@njit(cache=True, forceinline=True, error_model="numpy", fastmath={"contract", "reassoc"})
def _row(squares: Array, weights: Array, half: float) -> tuple[float, float]:
    """Sum of weights exp(-half (squares - least)), and the least of squares."""
    least = squares[0]
    for j in range(1, squares.size):
        least = min(least, squares[j])
    total = 0.0
    for j in range(squares.size):
        total += weights[j] * exp_of_negative(-half * (squares[j] - least))
    return total, least


@njit(cache=True, error_model="numpy")
def log_likelihood(squares: Array, weights: Array, variances: Array) -> float:
    """Log of prod_i sum_j weights_ij N(r_ij | 0, v_i), up to a constant; squares are r^2."""
    result = 0.0
    for i in range(squares.shape[0]):
        half = 0.5 / variances[i]
        total, least = _row(squares[i], weights[i], half)
        if not total > 0.0:
            return -np.inf
        result += math.log(total) - half * least - 0.5 * math.log(variances[i])
    return result


@njit(cache=True, error_model="numpy")
def choose(
    uniforms: Array, squares: Array, weights: Array, variances: Array, chosen: NDArray[np.int64]
) -> None:
    """One candidate of each case, in proportion to its weight and likelihood."""
    n, size = squares.shape
    for i in range(n):
        half = 0.5 / variances[i]
        total, least = _row(squares[i], weights[i], half)
        left = uniforms[i] * total
        for j in range(size):
            share = weights[i, j] * exp_of_negative(-half * (squares[i, j] - least))
            # Rounding must not end the loop at a value without weight.
            if share > 0.0:
                chosen[i] = j
                left -= share
                if left <= 0.0:
                    break
