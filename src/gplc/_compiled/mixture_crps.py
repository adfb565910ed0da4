"""CRPS of the mixtures of `gplc._compiled.mixture`."""

import math

import numpy as np
from numba import njit

from gplc._compiled.exponential import exp_of_negative
from gplc._compiled.mixture import (
    Weights,
    component_tails,
    row_moments,
    standardize,
    weighted_sum,
)
from gplc._compiled.normal import FARTHEST, SQRT_2PI, mills_ratio
from gplc._types import Array

# Up to here every pair of components is visited; above, a quadrature is usually cheaper.
MAX_COMPONENTS_PAIRWISE = 256
QUADRATURE_TOLERANCE = 3e-9


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def _absolute_differences(d: float, s: float, ds: Array, ss: Array, out: Array) -> None:
    """out_j = E|x| for x ~ N(d - ds_j, s^2 + ss_j^2).

    E|x| = |mu| + 2 sigma (phi(u) - u Phi(-u)) with u = |mu| / sigma.
    """
    for j in range(ds.shape[0]):
        distance = abs(d - ds[j])
        sigma = math.sqrt(s * s + ss[j] * ss[j])
        v = min(distance / sigma, FARTHEST)
        kernel = exp_of_negative(-0.5 * v * v)
        out[j] = distance + 2.0 * sigma * kernel * (1.0 / SQRT_2PI - v * mills_ratio(v))


@njit(cache=True, forceinline=True)
def _spread_pairwise(d: Array, s: Array, weights: Weights, scratch: Array) -> float:
    """E|t - t'| / 2 for two draws t, t' of the mixture: the sum over all pairs, O(M^2)."""
    m = d.shape[0]
    off_diagonal = 0.0
    diagonal = 0.0
    for j in range(m):
        weight = 1.0 if weights is None else weights[j]
        _absolute_differences(d[j], s[j], d[:j], s[:j], scratch[:j])
        off_diagonal += weight * weighted_sum(scratch[:j], weights)
        diagonal += weight * weight * s[j]
    # A component against itself: E|N(0, 2 s^2)| = 2 s / sqrt(pi).
    return (off_diagonal + diagonal / math.sqrt(math.pi)) / m / m


@njit(cache=True, forceinline=True, error_model="numpy")
def _spread(d: Array, s: Array, weights: Weights, sd: float, scratch: Array) -> float:
    """E|t - t'| / 2 = integral of F (1 - F) for one row, to about 1e-9 relative.

    For few components by pairs. Otherwise by the trapezoidal rule in x with t = sd sinh(x), which
    converges exponentially (the integrand is analytic and dies out at both ends) and reaches
    far-out components in few points; the step is halved until two results agree. When that would
    cost more than the pairs, the pairs are summed after all.
    """
    m = d.shape[0]
    if m <= MAX_COMPONENTS_PAIRWISE:
        return _spread_pairwise(d, s, weights, scratch)
    reach = 8.5  # Phi(-8.5) = 1e-17
    low = math.asinh((d - reach * s).min() / sd)
    high = math.asinh((d + reach * s).max() / sd)
    offset = 0.0
    spacing = 0.2
    width = spacing
    total = 0.0
    previous = math.inf
    evaluations = 0
    while evaluations + (high - low) / spacing <= 0.5 * m:
        for i in range(math.ceil((high - low - offset) / spacing)):
            x = low + offset + i * spacing
            component_tails(sd * math.sinh(x), d, s, -1.0, scratch)
            below = weighted_sum(scratch, weights) / m
            total += below * (1.0 - below) * math.cosh(x)
            evaluations += 1
        estimate = sd * total * width
        if abs(estimate - previous) <= QUADRATURE_TOLERANCE * estimate:
            return estimate
        previous = estimate
        # The next points lie half-way between all those before.
        spacing = width
        width *= 0.5
        offset = width
    return _spread_pairwise(d, s, weights, scratch)


@njit(cache=True)
def crps(means: Array, sds: Array, weights: Weights, y: Array) -> Array:
    """(n, k): E|t - y| - E|t - t'| / 2 for y (n, k); t, t' independent draws of the row."""
    n, m = means.shape
    k = y.shape[1]
    out = np.empty((n, k))
    d = np.empty(m)
    s = np.empty(m)
    scratch = np.empty(m)
    for i in range(n):
        centre, scale, sd, _, _ = row_moments(means[i], sds[i], weights)
        standardize(means[i], sds[i], centre, scale, d, s)
        spread = _spread(d, s, weights, sd, scratch)
        for c in range(k):
            _absolute_differences((y[i, c] - centre) / scale, 0.0, d, s, scratch)
            out[i, c] = scale * (weighted_sum(scratch, weights) / m - spread)
    return out
