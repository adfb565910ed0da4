"""Quantiles of the mixtures of `gplc._compiled.mixture`: roots of their cdfs."""

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
from gplc._compiled.normal import FARTHEST, SQRT_2PI, mills_ratio, normal_quantile
from gplc._types import Array

# A step is taken on trust, without evaluating the cdf again, when the relative error of the tail
# probability is below TRUSTED_ERROR and the step is below TRUSTED_STEP of the narrowest SD. The
# Taylor remainder is then about 1e-12 of the tail probability.
TRUSTED_ERROR = 1e-6
TRUSTED_STEP = 1e-3
ROUNDING_ERROR = 1e-13
SMALLEST_TAIL = 1e-300  # below, the tail probabilities underflow
MAX_NEWTON_STEPS = 40
MAX_HALVINGS = 70  # 64 halvings of the bit pattern empty any bracket

# In units of a row's scale, numbers as large as the bracket's ends are rounded to 2e-16 of them.
# A component narrower than this share of them would be seen too coarsely.
RESOLVED = 1e-6


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def _tails_densities_slopes(
    t: float,
    d: Array,
    precisions: Array,
    side: float,
    tails: Array,
    densities: Array,
    slopes: Array,
) -> None:
    """Tail probability, density and slope of the density (these two times sqrt(2 pi)) at t."""
    for j in range(d.shape[0]):
        precision = precisions[j]
        u = (t - d[j]) * precision
        v = min(abs(u), FARTHEST)
        kernel = exp_of_negative(-0.5 * v * v)
        tail = kernel * mills_ratio(v)
        tails[j] = tail if u * side >= 0.0 else 1.0 - tail
        density = kernel * precision
        densities[j] = density
        slopes[j] = -u * density * precision


@njit(cache=True)
def _middle_float(low: float, high: float) -> float:
    """The float64 half-way between two others, counting the floats between them."""
    smallest = np.int64(-0x7FFFFFFFFFFFFFFF - 1)
    # Negative floats sort backwards as integers; turning them round makes one ordered line.
    i = np.float64(low).view(np.int64)
    j = np.float64(high).view(np.int64)
    i = i if i >= 0 else smallest - i
    j = j if j >= 0 else smallest - j
    middle = (i >> 1) + (j >> 1) + (i & j & 1)
    middle = middle if middle >= 0 else smallest - middle
    return np.int64(middle).view(np.float64)


@njit(cache=True)
def _start(z: float, sd: float, skewness: float, kurtosis: float) -> float:
    """Cornish-Fisher guess of a quantile from four moments, kept to where it is monotone."""
    skewness = min(max(skewness, -1.0), 1.0)
    kurtosis = min(max(kurtosis, -1.0), 2.0)
    cube = z * z * z
    bend = (z * z - 1.0) * skewness / 6.0
    bend += (cube - 3.0 * z) * kurtosis / 24.0
    bend -= (2.0 * cube - 5.0 * z) * skewness * skewness / 36.0
    # Far out the expansion is worthless, so it may move the guess by 1 SD only.
    return sd * (z + min(max(bend, -1.0), 1.0))


@njit(cache=True)
def _bracket(means: Array, sds: Array, z: float) -> tuple[float, float]:
    """Smallest and largest of mean_j + sd_j z, between which the root lies."""
    low = math.inf
    high = -math.inf
    for j in range(means.shape[0]):
        one = means[j] + sds[j] * z
        low = min(low, one)
        high = max(high, one)
    return low, high


@njit(cache=True, forceinline=True, error_model="numpy")
def _root(
    t: float,
    bracket: tuple[float, float],
    z: float,
    side: float,
    standardized: tuple[Array, Array, Weights],
    narrowest: float,
    scratch: Array,
) -> tuple[float, int]:
    """The root from a guess t, in units of the row's scale, and the number of cdf evaluations.

    Solved as g(t) = Phi^-1(cdf(t)) = z with z = Phi^-1(q): g is straight for a single Gaussian
    and nearly so for the usual mixture. Halley's step, which needs the density and its slope,
    converges cubically. A step that leaves the bracket, or follows one that hardly reduced the
    error, is replaced by a halving of the bracket, and after MAX_NEWTON_STEPS only the bracket's
    bit patterns are halved, so the loop always ends with the root between neighbouring floats.
    """
    low, high = bracket
    d, precisions, weights = standardized
    m = d.shape[0]
    tails, densities, slopes = scratch[0], scratch[1], scratch[2]
    evaluations = 0
    last_error = math.inf
    for step in range(MAX_NEWTON_STEPS + MAX_HALVINGS):
        if not low < high:
            t = low
            break
        _tails_densities_slopes(t, d, precisions, side, tails, densities, slopes)
        evaluations += 1
        g = -side * normal_quantile(weighted_sum(tails, weights) / m)
        density = weighted_sum(densities, weights) / m / SQRT_2PI
        slope = weighted_sum(slopes, weights) / m / SQRT_2PI
        error = g - z
        if error > 0.0:
            high = t
        elif error < 0.0:
            low = t
        else:
            break
        relative_error = abs(error) * (1.0 + abs(z))
        if step >= MAX_NEWTON_STEPS:
            middle = _middle_float(low, high)
            if middle in (low, high):
                break
            t = middle
            continue
        # g' = f / phi(g), g'' / g' = f' / f + g g'.
        g_slope = density * SQRT_2PI * math.exp(0.5 * g * g)
        newton = -error / g_slope
        bend = 0.5 * newton * (slope / density + g * g_slope)
        halley = newton / min(max(1.0 + bend, 0.5), 2.0)
        candidate = t + halley
        inside = low <= candidate <= high  # false for NaN too
        if inside and relative_error <= TRUSTED_ERROR and abs(halley) <= TRUSTED_STEP * narrowest:
            t = candidate
            break
        # In a gap between components the cdf is flat: any t there is as good.
        if relative_error <= ROUNDING_ERROR or candidate == t:
            break
        if not inside or abs(error) > 0.9 * last_error:
            candidate = low + 0.5 * (high - low)
        last_error = abs(error)
        t = candidate
    return t, evaluations


@njit(cache=True, forceinline=True)
def _root_by_halving(
    means: Array, sds: Array, weights: Weights, tail: float, side: float, z: float, scratch: Array
) -> tuple[float, int]:
    """The smallest float64 at which the cdf has reached q, and the number of cdf evaluations.

    Slow, but in the units of the row: right to the last bit for any finite components.
    """
    m = means.shape[0]
    low, high = _bracket(means, sds, z)
    low = np.nextafter(low, -math.inf)  # so that the bracket's own end can be the answer
    evaluations = 0
    middle = _middle_float(low, high)
    while low < middle < high:
        component_tails(middle, means, sds, side, scratch)
        evaluations += 1
        # (cdf - q) for side = -1, (1 - q) - (1 - cdf) for side = +1.
        if side * (tail - weighted_sum(scratch, weights) / m) >= 0.0:
            high = middle
        else:
            low = middle
        middle = _middle_float(low, high)
    return high, evaluations


@njit(cache=True, error_model="numpy")
def quantiles(
    means: Array, sds: Array, weights: Weights, probabilities: Array
) -> tuple[Array, int]:
    """(n, k) roots t of cdf(t) = q for q (k,) in [0, 1], and the number of cdf evaluations.

    Whichever of cdf and 1 - cdf is the smaller is used, which keeps q = 1e-12 and 1 - 1e-12
    exact. Every q is solved on its own: a root does not depend on what else was asked for.
    """
    n, m = means.shape
    n_q = probabilities.shape[0]
    out = np.empty((n, n_q))
    d = np.empty(m)
    s = np.empty(m)
    precisions = np.empty(m)
    scratch = np.empty((3, m))
    evaluations = 0
    for i in range(n):
        centre, scale, sd, skewness, kurtosis = row_moments(means[i], sds[i], weights)
        standardize(means[i], sds[i], centre, scale, d, s)
        for j in range(m):
            precisions[j] = 1.0 / s[j]
        narrowest = s.min()
        for c in range(n_q):
            q = probabilities[c]
            if q <= 0.0 or q >= 1.0:
                out[i, c] = -math.inf if q <= 0.0 else math.inf
                continue
            side = -1.0 if q <= 0.5 else 1.0
            # z as the quantile of the smaller tail, so that 1 - q is not rounded away.
            tail = max(q if q <= 0.5 else 1.0 - q, SMALLEST_TAIL)
            z = -side * normal_quantile(tail)
            low, high = _bracket(d, s, z)
            if narrowest >= RESOLVED * max(1.0, -low, high):
                t = min(max(_start(z, sd, skewness, kurtosis), low), high)
                t, count = _root(
                    t, (low, high), z, side, (d, precisions, weights), narrowest, scratch
                )
                out[i, c] = centre + scale * t
            else:  # so too if the centre or the scale is beyond float64, and low is NaN
                out[i, c], count = _root_by_halving(
                    means[i], sds[i], weights, tail, side, z, scratch[0]
                )
            evaluations += count
    return out, evaluations
