"""Correlation matrices of the squared exponential."""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

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
