"""Correlation matrices of the squared exponential."""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gplc._compiled.exponential import exp_of_negative

Array = NDArray[np.float64]


@njit(cache=True)
def correlation(distances: Array, weights: Array) -> Array:
    """exp(-sum_k weights[k] distances[k]), symmetric; distances (d, n, n), weights (d,)."""
    n = distances.shape[1]
    result = np.empty((n, n))
    for i in range(n):
        for j in range(i):
            total = 0.0
            for k in range(weights.size):
                total += weights[k] * distances[k, i, j]
            value = math.exp(-total)
            result[i, j] = value
            result[j, i] = value
        result[i, i] = 1.0
    return result


@njit(cache=True)
def times_latent_correlation(correlation: Array, w: Array, inverse_square: float) -> Array:
    """correlation_ij exp(-inverse_square (w_i - w_j)^2)."""
    n = w.size
    result = np.empty((n, n))
    for i in range(n):
        for j in range(i):
            gap = w[i] - w[j]
            value = correlation[i, j] * math.exp(-inverse_square * gap * gap)
            result[i, j] = value
            result[j, i] = value
        result[i, i] = correlation[i, i]
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
