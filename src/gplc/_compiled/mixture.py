"""Mixtures of Gaussians, one per row, in compiled loops: moments, densities and probabilities.

Arrays in, arrays out, nothing validated: `gplc.predictive` is the door. `means` and `sds` are
(n, M) C-contiguous float64 arrays, finite and with ``sds > 0``. `weights` are relative: (M,)
positive numbers with mean 1, the same for every row, or None where all are 1. Row i is the
distribution ``F_i(t) = (1/M) sum_j weights[j] Phi((t - means[i, j]) / sds[i, j])``. Its
quantiles and its CRPS are in `mixture_quantiles` and `mixture_crps`.

Three habits hold everywhere, because they are what makes these loops fast and safe:

* A loop over the M components writes into a scratch array and a second loop adds it up. The first
  loop has no branch, no call into libm and no running total, so the compiler can make it work on
  several components at once. Hence our own `exp_of_negative` and `mills_ratio`: about 4 ns a
  component for the cdf, the density and its slope together, against 17 ns with `math.erfc`.
* Of ``fastmath`` only `contract` (fused multiply-add) is used, and in summing loops `reassoc` and
  `nsz` (any order, either zero). None assumes that NaN and infinity are absent.
* Weights enter where components are added up, and nowhere else. None has a type of its own, for
  which Numba compiles the loops anew without weights: equal ones cost nothing.
"""

import math

import numpy as np
from numba import njit

from gplc._compiled.exponential import exp_of_negative
from gplc._compiled.normal import FARTHEST, SQRT_2PI, mills_ratio
from gplc._types import Array

Weights = Array | None

LOG_2PI = math.log(2.0 * math.pi)

# A component this much narrower than its row's scale is a step at float64 resolution. The floor
# keeps the square of its reciprocal finite.
NARROWEST = 1e-150


@njit(cache=True, forceinline=True, fastmath={"reassoc", "nsz"})
def weighted_sum(values: Array, weights: Weights) -> float:
    """Sum of weights_j values_j; several partial sums at once, which the compiler may arrange."""
    total = 0.0
    for j in range(values.shape[0]):  # iterating over the values would not be vectorised
        total += values[j] if weights is None else weights[j] * values[j]
    return total


@njit(cache=True, forceinline=True, fastmath={"reassoc", "nsz"})
def _centre(means: Array, weights: Weights) -> float:
    """Mean of one row's means; the second pass removes the rounding error of the first."""
    m = means.shape[0]
    origin = means[0]
    shift = 0.0
    for j in range(m):
        weight = 1.0 if weights is None else weights[j]
        shift += weight * (means[j] - origin)
    centre = origin + shift / m
    correction = 0.0
    for j in range(m):
        weight = 1.0 if weights is None else weights[j]
        correction += weight * (means[j] - centre)
    return centre + correction / m


@njit(cache=True, forceinline=True, fastmath={"reassoc", "nsz"})
def _scale(means: Array, sds: Array, weights: Weights, centre: float) -> float:
    """Mean of |mean_j - centre| + sd_j.

    In these units squares neither overflow nor vanish, whatever the user's units.
    """
    m = means.shape[0]
    total = 0.0
    for j in range(m):
        weight = 1.0 if weights is None else weights[j]
        total += weight * (abs(means[j] - centre) + sds[j])
    return total / m


@njit(cache=True)
def centres(means: Array, weights: Weights) -> Array:
    """(n,): mean of every row; the SDs do not enter."""
    n = means.shape[0]
    out = np.empty(n)
    for i in range(n):
        out[i] = _centre(means[i], weights)
    return out


@njit(cache=True, forceinline=True, fastmath={"reassoc", "nsz"}, error_model="numpy")
def row_moments(
    means: Array, sds: Array, weights: Weights
) -> tuple[float, float, float, float, float]:
    """Mean, scale, SD in units of scale, skewness and excess kurtosis of one row.

    With d_j = mean_j - mean: E(t - mean)^2 is the mean of d^2 + s^2 (the law of total variance),
    E(t - mean)^3 that of d^3 + 3 d s^2, E(t - mean)^4 that of d^4 + 6 d^2 s^2 + 3 s^4.
    """
    m = means.shape[0]
    centre = _centre(means, weights)
    scale = _scale(means, sds, weights, centre)
    second = third = fourth = 0.0
    for j in range(m):
        weight = 1.0 if weights is None else weights[j]
        d = (means[j] - centre) / scale
        s = sds[j] / scale
        dd = d * d
        ss = s * s
        second += weight * (dd + ss)
        third += weight * (d * (dd + 3.0 * ss))
        fourth += weight * (dd * dd + 6.0 * dd * ss + 3.0 * ss * ss)
    second /= m
    sd = math.sqrt(second)
    return centre, scale, sd, third / m / (second * sd), fourth / m / (second * second) - 3.0


@njit(cache=True)
def moments(means: Array, sds: Array, weights: Weights) -> Array:
    """(n, 4): mean, SD, skewness and excess kurtosis of every row."""
    n = means.shape[0]
    out = np.empty((n, 4))
    for i in range(n):
        centre, scale, sd, skewness, kurtosis = row_moments(means[i], sds[i], weights)
        out[i, 0] = centre
        out[i, 1] = scale * sd
        out[i, 2] = skewness
        out[i, 3] = kurtosis
    return out


@njit(cache=True, error_model="numpy")
def standardize(means: Array, sds: Array, centre: float, scale: float, d: Array, s: Array) -> None:
    """Fill d_j = (mean_j - centre) / scale and s_j = sd_j / scale."""
    for j in range(means.shape[0]):
        d[j] = (means[j] - centre) / scale
        s[j] = max(sds[j] / scale, NARROWEST)


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def _distances(y: float, means: Array, sds: Array, out: Array) -> None:
    """out_j = |y - mean_j| / sd_j."""
    for j in range(means.shape[0]):
        out[j] = abs(y - means[j]) / sds[j]


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def _relative_densities(distances: Array, nearest: float, sds: Array, narrowest: float) -> None:
    """Overwrite distances v_j by exp((nearest^2 - v_j^2) / 2) narrowest / sd_j."""
    for j in range(distances.shape[0]):
        v = distances[j]
        # The difference of squares as a product: no cancellation however far the tail.
        gap = 0.5 * (v - nearest) * (v + nearest)
        distances[j] = exp_of_negative(-gap) * (narrowest / sds[j])


@njit(cache=True)
def log_density(means: Array, sds: Array, weights: Weights, y: Array) -> Array:
    """(n, k): log of the density at y (n, k); -inf only where it overflows.

    The largest exponent is taken out before the sum, so that nothing underflows in the tail.
    """
    n, m = means.shape
    k = y.shape[1]
    out = np.empty((n, k))
    scratch = np.empty(m)
    for i in range(n):
        narrowest = sds[i].min()
        for c in range(k):
            _distances(y[i, c], means[i], sds[i], scratch)
            nearest = scratch.min()
            if nearest > 1e154:  # its square is beyond float64
                out[i, c] = -math.inf
                continue
            _relative_densities(scratch, nearest, sds[i], narrowest)
            log_sum = math.log(weighted_sum(scratch, weights) / m)
            out[i, c] = log_sum - math.log(narrowest) - 0.5 * LOG_2PI - 0.5 * nearest * nearest
    return out


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def component_tails(y: float, means: Array, sds: Array, side: float, out: Array) -> None:
    """out_j = P(t < y) of component j for side = -1, P(t > y) for side = +1."""
    for j in range(means.shape[0]):
        u = (y - means[j]) / sds[j]
        v = min(abs(u), FARTHEST)
        tail = exp_of_negative(-0.5 * v * v) * mills_ratio(v)
        out[j] = tail if u * side >= 0.0 else 1.0 - tail


@njit(cache=True)
def tail_probability(means: Array, sds: Array, weights: Weights, y: Array, side: float) -> Array:
    """(n, k): the cdf at y (n, k) for side = -1, one minus the cdf for side = +1.

    Each is a sum of positive terms and keeps its relative accuracy in its own tail.
    """
    n, m = means.shape
    k = y.shape[1]
    out = np.empty((n, k))
    scratch = np.empty(m)
    for i in range(n):
        for c in range(k):
            component_tails(y[i, c], means[i], sds[i], side, scratch)
            out[i, c] = min(weighted_sum(scratch, weights) / m, 1.0)
    return out


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def _relative_tails(distances: Array, nearest: float) -> None:
    """Overwrite distances v_j by Phi(-v_j) exp(nearest^2 / 2)."""
    for j in range(distances.shape[0]):
        v = distances[j]
        gap = 0.5 * (v - nearest) * (v + nearest)
        # Beyond 40 SD the ratio is 1 / (v sqrt(2 pi)) (1 - 1/v^2 + 3/v^4 - 15/v^6 + ...).
        w = max(v, FARTHEST)
        ww = 1.0 / (w * w)
        series = (1.0 - ww * (1.0 - ww * (3.0 - ww * (15.0 - 105.0 * ww)))) / (w * SQRT_2PI)
        ratio = mills_ratio(min(v, FARTHEST)) if v <= FARTHEST else series
        distances[j] = exp_of_negative(-gap) * ratio


@njit(cache=True)
def log_tail_probability(
    means: Array, sds: Array, weights: Weights, y: Array, side: float
) -> Array:
    """(n, k): the log of `tail_probability`, finite where the probability itself is 0."""
    n, m = means.shape
    k = y.shape[1]
    out = np.empty((n, k))
    scratch = np.empty(m)
    for i in range(n):
        for c in range(k):
            component_tails(y[i, c], means[i], sds[i], side, scratch)
            probability = weighted_sum(scratch, weights) / m
            if probability > 0.5:
                # log(1 - x) from the other tail, which is small and exact.
                component_tails(y[i, c], means[i], sds[i], -side, scratch)
                out[i, c] = math.log1p(-weighted_sum(scratch, weights) / m)
            elif probability > 1e-250:
                out[i, c] = math.log(probability)
            else:
                # Every component is on the far side: take the largest exponent out.
                _distances(y[i, c], means[i], sds[i], scratch)
                nearest = scratch.min()
                if nearest > 1e154:
                    out[i, c] = -math.inf
                    continue
                _relative_tails(scratch, nearest)
                log_sum = math.log(weighted_sum(scratch, weights) / m)
                out[i, c] = log_sum - 0.5 * nearest * nearest
    return out
