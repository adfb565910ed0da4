"""Cells of a latent covariate w, over which it is summed out, given a function of it.

N(0, 1) is taken as a mixture of narrow Gaussians that overlap, one in each cell, and a function
g(w) as linear in every one. Then y given g is a mixture too, and so is w given g and y:

    p(y) = sum_k p_k N(y | g_k, v_k),   v_k = sigma^2 + (g'_k delta_k)^2.

Points instead of cells would make a row of spikes where sigma is small, and g could not move.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from gplc._compiled.exponential import exp_of_negative
from gplc._types import Array

# Shares of less than exp of this are nothing.
NOTHING = -35.0


class Cells(NamedTuple):
    """Where the cells are, in two halves: no slope of g is taken across the middle."""

    centres: Array  # (K,)
    log_weights: Array  # log p_k
    variances: Array  # delta_k^2
    inverse_gaps: Array  # one over the distance between the cells that a slope is taken between


@njit(cache=True, forceinline=True, error_model="numpy", fastmath={"contract"})
def _neighbours(k: int, size: int) -> tuple[int, int]:
    """The cells between which the slope in a cell is taken."""
    half = size // 2
    first = k if k in (0, half) else k - 1
    last = k if k in (half - 1, size - 1) else k + 1
    return first, last


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def slopes_of(values: Array, cells: Cells) -> Array:
    """Slopes g'_k of functions with `values` (n, K) in the cells."""
    n, size = values.shape
    slopes = np.empty((n, size))
    for i in range(n):
        for k in range(size):
            a, b = _neighbours(k, size)
            slopes[i, k] = (values[i, b] - values[i, a]) * cells.inverse_gaps[k]
    return slopes


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def _shares(
    values: Array, y: float, variance: float, cells: Cells, slopes: Array, v: Array, e: Array
) -> tuple[float, float]:
    """Fill slopes g'_k, variances v_k, and shares e_k up to a factor; their sum, and its log."""
    size = values.size
    # A plain loop, so that it works on several cells at once, and then the four at the ends.
    for k in range(1, size - 1):
        slopes[k] = (values[k + 1] - values[k - 1]) * cells.inverse_gaps[k]
    for k in (0, size // 2 - 1, size // 2, size - 1):
        a, b = _neighbours(k, size)
        slopes[k] = (values[b] - values[a]) * cells.inverse_gaps[k]
    for k in range(size):
        v[k] = variance + cells.variances[k] * slopes[k] * slopes[k]
        gap = y - values[k]
        e[k] = cells.log_weights[k] - 0.5 * gap * gap / v[k]
    best = e[0]
    for k in range(1, size):
        best = max(best, e[k])
    total = 0.0
    for k in range(size):
        below = e[k] - best
        if below > NOTHING:
            e[k] = exp_of_negative(below) / math.sqrt(v[k])
            total += e[k]
        else:
            e[k] = 0.0
    return total, best


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def log_density(values: Array, y: Array, variances: Array, cells: Cells) -> float:
    """sum_i log p(y_i), up to a constant; -inf if it cannot be computed."""
    n, size = values.shape
    slopes, v, e = np.empty(size), np.empty(size), np.empty(size)
    result = 0.0
    for i in range(n):
        total, best = _shares(values[i], y[i], variances[i], cells, slopes, v, e)
        if not (total > 0.0 and total < np.inf):
            return -np.inf
        result += math.log(total) + best
    return result


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def log_likelihood(
    values: Array,
    y: Array,
    variances: Array,
    cells: Cells,
    scores: Array,
    by_variance: Array,
) -> float:
    """sum_i log p(y_i), up to a constant, for functions with `values` (n, K) in the cells.

    `scores` (n, K) and `by_variance` (n,) get its derivatives by the values and by the noise
    variances; -inf if it cannot be computed, and then they say nothing.
    """
    n, size = values.shape
    slopes, v, e = np.empty(size), np.empty(size), np.empty(size)
    result = 0.0
    for i in range(n):
        total, best = _shares(values[i], y[i], variances[i], cells, slopes, v, e)
        if not (total > 0.0 and total < np.inf):
            return -np.inf
        result += math.log(total) + best
        scores[i, :] = 0.0
        sum_of_variance = 0.0
        for k in range(size):
            if e[k] > 0.0:
                share, gap, precision = e[k] / total, y[i] - values[i, k], 1.0 / v[k]
                scores[i, k] += share * gap * precision
                by_v = share * precision * (gap * gap * precision - 1.0)
                sum_of_variance += 0.5 * by_v
                a, b = _neighbours(k, size)
                by_slope = by_v * cells.variances[k] * slopes[k] * cells.inverse_gaps[k]
                scores[i, b] += by_slope
                scores[i, a] -= by_slope
        by_variance[i] = sum_of_variance
    return result


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def draw(
    values: Array,
    y: Array,
    variances: Array,
    cells: Cells,
    uniforms: Array,
    normals: Array,
    w: Array,
    log_shares: Array,
) -> None:
    """One w for every case from its mixture given g and y, and log of p(y) times its density.

    Without `uniforms` (an empty array) w is as it is, and only the densities are computed. The
    constants of `log_shares` are those of log N(w | 0, 1) N(y | g(w), sigma^2) without 2 pi.
    """
    n, size = values.shape
    slopes, v, e = np.empty(size), np.empty(size), np.empty(size)
    means, precisions = np.empty(size), np.empty(size)
    for i in range(n):
        total, best = _shares(values[i], y[i], variances[i], cells, slopes, v, e)
        for k in range(size):
            steep = slopes[k] / variances[i]
            precisions[k] = 1.0 / cells.variances[k] + slopes[k] * steep
            means[k] = cells.centres[k] + steep * (y[i] - values[i, k]) / precisions[k]
        if uniforms.size:
            left, chosen = uniforms[i] * total, 0
            for k in range(size):
                # Rounding must not end the loop at a cell without a share.
                if e[k] > 0.0:
                    chosen = k
                    left -= e[k]
                    if left <= 0.0:
                        break
            w[i] = means[chosen] + normals[i] / math.sqrt(precisions[chosen])
        density = 0.0
        for k in range(size):
            if e[k] > 0.0:
                gap = w[i] - means[k]
                density += (
                    e[k]
                    * math.sqrt(precisions[k])
                    * exp_of_negative(-0.5 * precisions[k] * gap * gap)
                )
        log_shares[i] = best + math.log(density) if density > 0.0 else -np.inf
