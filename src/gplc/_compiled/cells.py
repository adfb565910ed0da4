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
from numpy.typing import NDArray

from gplc._compiled.exponential import exp_of_negative
from gplc._compiled.reductions import largest, total_of
from gplc._types import Array


class Cells(NamedTuple):
    """Where the cells are, in two halves: no slope of g is taken across the middle."""

    centres: Array  # (K,)
    log_weights: Array  # log p_k
    variances: Array  # delta_k^2
    inverse_gaps: Array  # one over the distance between the cells that a slope is taken between


class Basis(NamedTuple):
    """Features of a function of x and w: g(x_i, w_k) = sum_t phi_t(x_i)' Z_t a_t(w_k)."""

    roots: Array  # (sum of m, n): phi' of every term, one below the other
    on_grid: Array  # (sum of r, K): a' of every term at the centres of the cells
    shapes: NDArray[np.int64]  # (terms, 2): m and r


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
    values: Array, y: float, variance: float, cells: Cells, slopes: Array, p: Array, e: Array
) -> tuple[float, float]:
    """Fill slopes g'_k, precisions 1 / v_k, and shares e_k up to a factor.

    The result is their sum and the log of the factor. Every cell is computed: leaving out those
    without a share would take longer than they do.
    """
    log_weights, spreads, inverse_gaps = cells.log_weights, cells.variances, cells.inverse_gaps
    size = values.size
    # Plain loops, so that they work on several cells at once, and then the four at the ends.
    for k in range(1, size - 1):
        slopes[k] = (values[k + 1] - values[k - 1]) * inverse_gaps[k]
    for k in (0, size // 2 - 1, size // 2, size - 1):
        a, b = _neighbours(k, size)
        slopes[k] = (values[b] - values[a]) * inverse_gaps[k]
    for k in range(size):
        p[k] = 1.0 / (variance + spreads[k] * slopes[k] * slopes[k])
        gap = y - values[k]
        e[k] = log_weights[k] - 0.5 * gap * gap * p[k]
    best = largest(e)
    for k in range(size):
        e[k] = exp_of_negative(e[k] - best) * math.sqrt(p[k])
    return total_of(e), best


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def log_density(values: Array, y: Array, variances: Array, cells: Cells) -> float:
    """sum_i log p(y_i), up to a constant; -inf if it cannot be computed."""
    n, size = values.shape
    slopes, p, e = np.empty(size), np.empty(size), np.empty(size)
    result = 0.0
    for i in range(n):
        total, best = _shares(values[i], y[i], variances[i], cells, slopes, p, e)
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
    spreads, inverse_gaps = cells.variances, cells.inverse_gaps
    n, size = values.shape
    half = size // 2
    slopes, p, e, handed = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    result = 0.0
    for i in range(n):
        own, gap_to, given = values[i], y[i], scores[i]
        total, best = _shares(own, gap_to, variances[i], cells, slopes, p, e)
        if not (total > 0.0 and total < np.inf):
            return -np.inf
        result += math.log(total) + best
        inverse = 1.0 / total
        for k in range(size):
            gap, pull = gap_to - own[k], e[k] * inverse * p[k]
            given[k] = pull * gap
            e[k] = pull * (gap * gap * p[k] - 1.0)
            handed[k] = e[k] * spreads[k] * slopes[k] * inverse_gaps[k]
        by_variance[i] = 0.5 * total_of(e)
        # What each cell hands to those between which its slope is taken, in either half.
        for k in range(1, half - 1):
            given[k] += handed[k - 1] - handed[k + 1]
        for k in range(half + 1, size - 1):
            given[k] += handed[k - 1] - handed[k + 1]
        for first, last in ((0, half - 1), (half, size - 1)):
            given[first] -= handed[first] + handed[first + 1]
            given[last] += handed[last - 1] + handed[last]
    return result


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def gradient(
    flat: Array, y: Array, variances: Array, cells: Cells, basis: Basis, by_flat: Array
) -> tuple[float, float]:
    """sum_i log p(y_i), up to a constant, for the function with coefficients `flat`.

    `by_flat` gets its gradient. The second number is the sum of the derivatives by the noise
    variances; if nothing can be computed the first is -inf, and the others say nothing.
    """
    roots, on_grid, shapes = basis.roots, basis.on_grid, basis.shapes
    n, total_kinds = y.size, on_grid.shape[0]
    at_cases = np.zeros((total_kinds, n))
    first = root = kind = 0
    for t in range(shapes.shape[0]):
        m, r = shapes[t]
        z = flat[first : first + m * r].reshape(m, r)
        np.dot(z.T, roots[root : root + m], at_cases[kind : kind + r])
        first, root, kind = first + m * r, root + m, kind + r
    values = np.dot(at_cases.T, on_grid)
    scores, by_variance = np.empty_like(values), np.empty(n)
    result = log_likelihood(values, y, variances, cells, scores, by_variance)
    if result == -np.inf:
        return -np.inf, 0.0
    np.dot(on_grid, scores.T, at_cases)
    first = root = kind = 0
    for t in range(shapes.shape[0]):
        m, r = shapes[t]
        by_z = by_flat[first : first + m * r].reshape(m, r)
        np.dot(roots[root : root + m], at_cases[kind : kind + r].T, by_z)
        first, root, kind = first + m * r, root + m, kind + r
    by_noise = 0.0
    for i in range(n):
        by_noise += by_variance[i]
    return result, by_noise


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
    slopes, p, e = np.empty(size), np.empty(size), np.empty(size)
    means, precisions = np.empty(size), np.empty(size)
    for i in range(n):
        total, best = _shares(values[i], y[i], variances[i], cells, slopes, p, e)
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
        for k in range(size):
            gap = w[i] - means[k]
            near = exp_of_negative(-0.5 * precisions[k] * gap * gap)
            p[k] = e[k] * math.sqrt(precisions[k]) * near
        density = total_of(p)
        log_shares[i] = best + math.log(density) if density > 0.0 else -np.inf
