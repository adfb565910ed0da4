"""Correlation matrices of the squared exponential."""

import math

import numpy as np
from numba import njit

from gplc._compiled.exponential import exp_of_negative
from gplc._types import Array


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def _add_multiple(total: Array, weight: float, row: Array) -> None:
    """Total += weight row."""
    for j in range(total.size):
        total[j] += weight * row[j]


@njit(cache=True)
def _mirror(matrix: Array) -> None:
    """Copy the lower triangle to the upper one, a block at a time."""
    n, block = matrix.shape[0], 32
    for low in range(0, n, block):
        for left in range(0, low + 1, block):
            for i in range(low, min(low + block, n)):
                for j in range(left, min(left + block, i)):
                    matrix[j, i] = matrix[i, j]


@njit(cache=True)
def correlation(distances: Array, weights: Array) -> Array:
    """exp(-sum_k weights[k] distances[k]), symmetric; distances (d, n, n), weights (d,)."""
    n = distances.shape[1]
    result = np.zeros((n, n))
    for i in range(n):
        row = result[i, :i]
        for k in range(weights.size):
            _add_multiple(row, weights[k], distances[k, i, :i])
        _exponentiate(row, 1.0, 0.0)
        result[i, i] = 1.0
    _mirror(result)
    return result


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def _decayed(result: Array, row: Array, value: float, others: Array, weight: float) -> None:
    """Result = row exp(-weight (value - others)^2)."""
    for j in range(result.size):
        gap = value - others[j]
        result[j] = row[j] * exp_of_negative(-weight * gap * gap)


@njit(cache=True)
def times_latent_correlation(correlation: Array, w: Array, inverse_square: float) -> Array:
    """correlation_ij exp(-inverse_square (w_i - w_j)^2)."""
    n = w.size
    result = np.empty((n, n))
    for i in range(n):
        _decayed(result[i, :i], correlation[i, :i], w[i], w[:i], inverse_square)
        result[i, i] = correlation[i, i]
    _mirror(result)
    return result


@njit(cache=True, error_model="numpy")
def _multiply(result: Array, a: Array, b: Array) -> None:
    """Result = a b, entry by entry."""
    for j in range(result.size):
        result[j] = a[j] * b[j]


@njit(cache=True, forceinline=True, fastmath={"reassoc"}, error_model="numpy")
def _total(values: Array) -> float:
    """Sum of values."""
    total = 0.0
    for j in range(values.size):
        total += values[j]
    return total


@njit(cache=True, forceinline=True, fastmath={"contract", "reassoc"}, error_model="numpy")
def _dot(a: Array, b: Array) -> float:
    """Sum of a b."""
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@njit(cache=True, forceinline=True, fastmath={"contract", "reassoc"}, error_model="numpy")
def _gaps(row: Array, value: float, others: Array) -> tuple[float, float]:
    """Sums of row (value - others) and row (value - others)^2."""
    first, second = 0.0, 0.0
    for j in range(row.size):
        gap = value - others[j]
        term = row[j] * gap
        first += term
        second += term * gap
    return first, second


@njit(cache=True, error_model="numpy")
def _pull_back(pulls: Array, row: Array, value: float, others: Array) -> None:
    """Pulls -= row (value - others)."""
    for j in range(row.size):
        pulls[j] -= row[j] * (value - others[j])


@njit(cache=True)
def correlation_gradient(
    distances: Array,
    W: Array,
    unit: Array,
    weights: Array,
    theta: Array,
    n_scales: int,
    amplitude: float,
) -> tuple[Array, Array]:
    """Gradient, by theta and by W, of the sum of weights amplitude unit, both symmetric.

    `unit` is the squared exponential; theta has the log of the root of `amplitude`, if `n_scales`
    is 1 and not 0, and log length scales, first of the `distances` (d, n, n), then of the latent
    columns W (q, n).
    """
    d, (q, n) = distances.shape[0], W.shape
    by_theta, by_latent = np.zeros(theta.size), np.zeros((q, n))
    by_distances, by_gaps = by_theta[n_scales : n_scales + d], by_theta[n_scales + d :]
    total, row = 0.0, np.empty(n)
    for i in range(n):
        product = row[:i]
        _multiply(product, weights[i, :i], unit[i, :i])
        total += 2.0 * _total(product)
        total += weights[i, i] * unit[i, i]
        for k in range(d):
            by_distances[k] += 2.0 * _dot(product, distances[k, i, :i])
        for c in range(q):
            first, second = _gaps(product, W[c, i], W[c, :i])
            _pull_back(by_latent[c, :i], product, W[c, i], W[c, :i])
            by_latent[c, i] += first
            by_gaps[c] += 2.0 * second
    for k in range(n_scales, theta.size):
        by_theta[k] *= 2.0 * amplitude * math.exp(-2.0 * theta[k])
    if n_scales:
        by_theta[0] = 2.0 * amplitude * total
    for c in range(q):
        by_latent[c] *= -4.0 * amplitude * math.exp(-2.0 * theta[n_scales + d + c])
    return by_theta, by_latent


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def _weights_row(result: Array, pull: float, pulls: Array, inverse: Array) -> None:
    """Result = (pull pulls - inverse) / 2."""
    for j in range(result.size):
        result[j] = 0.5 * (pull * pulls[j] - inverse[j])


@njit(cache=True)
def likelihood_weights(pulls: Array, inverse: Array) -> Array:
    """(a a' - C^-1) / 2 from a = C^-1 y and the upper triangle of C^-1, symmetric."""
    n = pulls.size
    result = np.empty((n, n))
    for i in range(n):
        _weights_row(result[i, i:], pulls[i], pulls[i:], inverse[i, i:])
    _mirror(result.T)
    return result


@njit(cache=True)
def unit_and_products(a: Array, b: Array, c: Array, d: Array) -> Array:
    """I + the lower triangle of a b' + c d', mirrored."""
    n = a.size
    result = np.empty((n, n))
    for i in range(n):
        for j in range(i + 1):
            result[i, j] = a[i] * b[j] + c[i] * d[j]
        result[i, i] += 1.0
    _mirror(result)
    return result


@njit(cache=True)
def halved_triangle(a: Array, b: Array, c: Array, d: Array, less: Array) -> Array:
    """The upper triangle of a b' + c d' - less, its diagonal halved."""
    n = a.size
    result = np.zeros((n, n))
    for i in range(n):
        for j in range(i, n):
            result[i, j] = a[i] * b[j] + c[i] * d[j] - less[i, j]
        result[i, i] *= 0.5
    return result


@njit(cache=True)
def symmetric_part(matrix: Array) -> Array:
    """(A + A') / 2."""
    n, block = matrix.shape[0], 32
    result = np.empty((n, n))
    for low in range(0, n, block):
        for left in range(0, low + 1, block):
            for i in range(low, min(low + block, n)):
                for j in range(left, min(left + block, i + 1)):
                    result[i, j] = 0.5 * (matrix[i, j] + matrix[j, i])
    _mirror(result)
    return result


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def _add_square(total: Array, value: float, others: Array) -> None:
    """Total += (value - others)^2."""
    for j in range(total.size):
        gap = value - others[j]
        total[j] += gap * gap


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def _exponentiate(row: Array, factor: float, constant: float) -> None:
    """Overwrite row by constant + factor exp(-row)."""
    for j in range(row.size):
        row[j] = constant + factor * exp_of_negative(-row[j])


@njit(cache=True)
def cross_covariance(a: Array, b: Array, factor: float, constant: float) -> Array:
    """K_ij = constant + factor exp(-|a_i - b_j|^2): a (n, p), b (p, m), result (n, m)."""
    result = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        # A row at a time, which stays in the cache. Differences first: |a|^2 + |b|^2 - 2ab
        # cancels where length scales are short.
        row = result[i]
        for k in range(a.shape[1]):
            _add_square(row, a[i, k], b[k])
        _exponentiate(row, factor, constant)
    return result
