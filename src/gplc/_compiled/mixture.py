"""Equally weighted mixtures of Gaussians, one per row, in compiled loops.

Arrays in, arrays out, nothing validated: `gplc.predictive` is the door. `means` and `sds` are
(n, M) C-contiguous float64 arrays, finite and with ``sds > 0``; row i is the distribution
``F_i(t) = (1/M) sum_j Phi((t - means[i, j]) / sds[i, j])``.

Two habits hold everywhere, because they are what makes these loops fast and safe:

* A loop over the M components writes into a scratch array and a second loop adds it up. The first
  loop has no branch, no call into libm and no running total, so the compiler can make it work on
  several components at once. Hence our own `exp_of_negative` and `_mills_ratio`: about 4 ns a
  component for the cdf, the density and its slope together, against 17 ns with `math.erfc`.
* Of ``fastmath`` only `contract` (fused multiply-add) is used, and in summing loops `reassoc` and
  `nsz` (any order, either zero). None assumes that NaN and infinity are absent.
"""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gplc._compiled.exponential import exp_of_negative

Array = NDArray[np.float64]

LOG_2PI = math.log(2.0 * math.pi)
SQRT_2PI = math.sqrt(2.0 * math.pi)

# Beyond 40 SD a Gaussian tail is 0 in float64, so distances are cut there; infinity too.
FARTHEST = 40.0

# A component this much narrower than its row's scale is a step at float64 resolution. The floor
# keeps the square of its reciprocal finite.
NARROWEST = 1e-150

# Quantiles: a step is taken on trust, without evaluating the cdf again, when the relative error of
# the tail probability is below TRUSTED_ERROR and the step is below TRUSTED_STEP of the narrowest
# SD. The Taylor remainder is then about 1e-12 of the tail probability.
TRUSTED_ERROR = 1e-6
TRUSTED_STEP = 1e-3
ROUNDING_ERROR = 1e-13
SMALLEST_TAIL = 1e-300  # below, the tail probabilities underflow
MAX_NEWTON_STEPS = 40
MAX_HALVINGS = 70  # 64 halvings of the bit pattern empty any bracket

# CRPS: up to here every pair of components is visited; above, a quadrature is usually cheaper.
MAX_COMPONENTS_PAIRWISE = 256
QUADRATURE_TOLERANCE = 3e-9


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def _mills_ratio(v: float) -> float:
    """Phi(-v) exp(v^2 / 2) for 0 <= v <= 40, within 1e-15.

    (1 + v/5) times it is smooth in p = (v - 5) / (v + 5): a polynomial of degree 21 (the
    interpolant at Chebyshev nodes, computed with 80 digits) has relative error 4e-17.
    """
    reciprocal = 1.0 / (v + 5.0)
    p = (v - 5.0) * reciprocal
    pp = p * p
    even = 1.5147404913905206e-09
    even = even * pp - 1.3308014802505023e-08
    even = even * pp + 8.686248600209437e-08
    even = even * pp - 5.540529789371985e-07
    even = even * pp + 3.3363388893381767e-06
    even = even * pp - 1.1875173560424339e-05
    even = even * pp - 0.00015957387478938276
    even = even * pp + 0.0041590133594833194
    even = even * pp + 0.03300407323410223
    even = even * pp + 0.09906112319399478
    even = even * pp + 0.15383860995001258
    odd = 4.412372171591377e-10
    odd = odd * pp - 2.1247874879865943e-09
    odd = odd * pp + 8.770472158384658e-09
    odd = odd * pp - 6.752637591289214e-08
    odd = odd * pp + 7.962549846283206e-07
    odd = odd * pp - 9.952577736059616e-06
    odd = odd * pp + 0.00010897981415466318
    odd = odd * pp - 0.0005986753540318707
    odd = odd * pp - 0.013823727741280873
    odd = odd * pp - 0.06270663133425991
    odd = odd * pp - 0.13307650057801135
    return (even + p * odd) * (5.0 * reciprocal)


@njit(cache=True, forceinline=True, fastmath={"reassoc", "nsz"})
def _total(values: Array) -> float:
    """Sum of an array; several partial sums at once, which the compiler may arrange."""
    total = 0.0
    for j in range(values.shape[0]):  # iterating over the values would not be vectorised
        total += values[j]
    return total


@njit(cache=True)
def _normal_quantile(probability: float) -> float:
    """Phi^-1, relative error about 1e-16 (Wichura 1988, algorithm AS 241, PPND16)."""
    q = probability - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        top = 2509.0809287301226727
        top = top * r + 33430.575583588128105
        top = top * r + 67265.770927008700853
        top = top * r + 45921.953931549871457
        top = top * r + 13731.693765509461125
        top = top * r + 1971.5909503065514427
        top = top * r + 133.14166789178437745
        top = top * r + 3.387132872796366608
        bottom = 5226.495278852545925
        bottom = bottom * r + 28729.085735721942674
        bottom = bottom * r + 39307.89580009271061
        bottom = bottom * r + 21213.794301586595867
        bottom = bottom * r + 5394.1960214247511077
        bottom = bottom * r + 687.1870074920579083
        bottom = bottom * r + 42.313330701600911252
        bottom = bottom * r + 1.0
        return q * top / bottom
    tail = probability if q < 0.0 else 1.0 - probability
    if tail <= 0.0:
        return -math.inf if q < 0.0 else math.inf
    r = math.sqrt(-math.log(tail))
    if r <= 5.0:
        r -= 1.6
        top = 7.7454501427834140764e-4
        top = top * r + 0.0227238449892691845833
        top = top * r + 0.24178072517745061177
        top = top * r + 1.27045825245236838258
        top = top * r + 3.64784832476320460504
        top = top * r + 5.7694972214606914055
        top = top * r + 4.6303378461565452959
        top = top * r + 1.42343711074968357734
        bottom = 1.05075007164441684324e-9
        bottom = bottom * r + 5.475938084995344946e-4
        bottom = bottom * r + 0.0151986665636164571966
        bottom = bottom * r + 0.14810397642748007459
        bottom = bottom * r + 0.68976733498510000455
        bottom = bottom * r + 1.6763848301838038494
        bottom = bottom * r + 2.05319162663775882187
        bottom = bottom * r + 1.0
    else:
        r -= 5.0
        top = 2.01033439929228813265e-7
        top = top * r + 2.71155556874348757815e-5
        top = top * r + 0.0012426609473880784386
        top = top * r + 0.026532189526576123093
        top = top * r + 0.29656057182850489123
        top = top * r + 1.7848265399172913358
        top = top * r + 5.4637849111641143699
        top = top * r + 6.6579046435011037772
        bottom = 2.04426310338993978564e-15
        bottom = bottom * r + 1.4215117583164458887e-7
        bottom = bottom * r + 1.8463183175100546818e-5
        bottom = bottom * r + 7.868691311456132591e-4
        bottom = bottom * r + 0.0148753612908506148525
        bottom = bottom * r + 0.13692988092273580531
        bottom = bottom * r + 0.59983220655588793769
        bottom = bottom * r + 1.0
    return -top / bottom if q < 0.0 else top / bottom


@njit(cache=True, forceinline=True, fastmath={"reassoc", "nsz"})
def _centre(means: Array) -> float:
    """Mean of one row's means; the second pass removes the rounding error of the first."""
    m = means.shape[0]
    origin = means[0]
    shift = 0.0
    for j in range(m):
        shift += means[j] - origin
    centre = origin + shift / m
    correction = 0.0
    for j in range(m):
        correction += means[j] - centre
    return centre + correction / m


@njit(cache=True, forceinline=True, fastmath={"reassoc", "nsz"})
def _scale(means: Array, sds: Array, centre: float) -> float:
    """Mean of |mean_j - centre| + sd_j.

    In these units squares neither overflow nor vanish, whatever the user's units.
    """
    m = means.shape[0]
    total = 0.0
    for j in range(m):
        total += abs(means[j] - centre) + sds[j]
    return total / m


@njit(cache=True)
def centres(means: Array) -> Array:
    """(n,): mean of every row; the SDs do not enter."""
    n = means.shape[0]
    out = np.empty(n)
    for i in range(n):
        out[i] = _centre(means[i])
    return out


@njit(cache=True, forceinline=True, fastmath={"reassoc", "nsz"}, error_model="numpy")
def _row_moments(means: Array, sds: Array) -> tuple[float, float, float, float, float]:
    """Mean, scale, SD in units of scale, skewness and excess kurtosis of one row.

    With d_j = mean_j - mean: E(t - mean)^2 is the mean of d^2 + s^2 (the law of total variance),
    E(t - mean)^3 that of d^3 + 3 d s^2, E(t - mean)^4 that of d^4 + 6 d^2 s^2 + 3 s^4.
    """
    m = means.shape[0]
    centre = _centre(means)
    scale = _scale(means, sds, centre)
    second = third = fourth = 0.0
    for j in range(m):
        d = (means[j] - centre) / scale
        s = sds[j] / scale
        dd = d * d
        ss = s * s
        second += dd + ss
        third += d * (dd + 3.0 * ss)
        fourth += dd * dd + 6.0 * dd * ss + 3.0 * ss * ss
    second /= m
    sd = math.sqrt(second)
    return centre, scale, sd, third / m / (second * sd), fourth / m / (second * second) - 3.0


@njit(cache=True)
def moments(means: Array, sds: Array) -> Array:
    """(n, 4): mean, SD, skewness and excess kurtosis of every row."""
    n = means.shape[0]
    out = np.empty((n, 4))
    for i in range(n):
        centre, scale, sd, skewness, kurtosis = _row_moments(means[i], sds[i])
        out[i, 0] = centre
        out[i, 1] = scale * sd
        out[i, 2] = skewness
        out[i, 3] = kurtosis
    return out


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
def log_density(means: Array, sds: Array, y: Array) -> Array:
    """(n, k): log (1/M) sum_j N(y | mean_j, sd_j^2) for y (n, k); -inf only where it overflows.

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
            log_sum = math.log(_total(scratch) / m)
            out[i, c] = log_sum - math.log(narrowest) - 0.5 * LOG_2PI - 0.5 * nearest * nearest
    return out


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def _tails(y: float, means: Array, sds: Array, side: float, out: Array) -> None:
    """out_j = P(t < y) of component j for side = -1, P(t > y) for side = +1."""
    for j in range(means.shape[0]):
        u = (y - means[j]) / sds[j]
        v = min(abs(u), FARTHEST)
        tail = exp_of_negative(-0.5 * v * v) * _mills_ratio(v)
        out[j] = tail if u * side >= 0.0 else 1.0 - tail


@njit(cache=True)
def tail_probability(means: Array, sds: Array, y: Array, side: float) -> Array:
    """(n, k): the cdf at y (n, k) for side = -1, one minus the cdf for side = +1.

    Each is a sum of positive terms and keeps its relative accuracy in its own tail.
    """
    n, m = means.shape
    k = y.shape[1]
    out = np.empty((n, k))
    scratch = np.empty(m)
    for i in range(n):
        for c in range(k):
            _tails(y[i, c], means[i], sds[i], side, scratch)
            out[i, c] = min(_total(scratch) / m, 1.0)
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
        ratio = _mills_ratio(min(v, FARTHEST)) if v <= FARTHEST else series
        distances[j] = exp_of_negative(-gap) * ratio


@njit(cache=True)
def log_tail_probability(means: Array, sds: Array, y: Array, side: float) -> Array:
    """(n, k): the log of `tail_probability`, finite where the probability itself is 0."""
    n, m = means.shape
    k = y.shape[1]
    out = np.empty((n, k))
    scratch = np.empty(m)
    for i in range(n):
        for c in range(k):
            _tails(y[i, c], means[i], sds[i], side, scratch)
            probability = _total(scratch) / m
            if probability > 0.5:
                # log(1 - x) from the other tail, which is small and exact.
                _tails(y[i, c], means[i], sds[i], -side, scratch)
                out[i, c] = math.log1p(-_total(scratch) / m)
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
                out[i, c] = math.log(_total(scratch) / m) - 0.5 * nearest * nearest
    return out


@njit(cache=True, error_model="numpy")
def _standardize(
    means: Array, sds: Array, centre: float, scale: float, d: Array, s: Array
) -> None:
    """Fill d_j = (mean_j - centre) / scale and s_j = sd_j / scale."""
    for j in range(means.shape[0]):
        d[j] = (means[j] - centre) / scale
        s[j] = max(sds[j] / scale, NARROWEST)


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
        tail = kernel * _mills_ratio(v)
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


@njit(cache=True, error_model="numpy")
def quantiles(means: Array, sds: Array, probabilities: Array) -> tuple[Array, int]:
    """(n, k) roots t of cdf(t) = q for q (k,) in [0, 1], and the number of cdf evaluations.

    Solved as g(t) = Phi^-1(cdf(t)) = z with z = Phi^-1(q): g is straight for a single Gaussian
    and nearly so for the usual mixture. Halley's step, which needs the density and its slope,
    converges cubically; min and max over j of mean_j + sd_j z bracket the root. A step that
    leaves the bracket, or follows one that hardly reduced the error, is replaced by a halving of
    the bracket, and after MAX_NEWTON_STEPS only the bracket's bit patterns are halved, so the
    loop always ends with the root between neighbouring floats. Whichever of cdf and 1 - cdf is
    the smaller is used, which keeps q = 1e-12 and 1 - 1e-12 exact.
    Every q is solved on its own: a root does not depend on what else was asked for.
    """
    n, m = means.shape
    n_q = probabilities.shape[0]
    out = np.empty((n, n_q))
    d = np.empty(m)
    s = np.empty(m)
    precisions = np.empty(m)
    tails = np.empty(m)
    densities = np.empty(m)
    slopes = np.empty(m)
    evaluations = 0
    for i in range(n):
        centre, scale, sd, skewness, kurtosis = _row_moments(means[i], sds[i])
        _standardize(means[i], sds[i], centre, scale, d, s)
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
            wanted = max(q if q <= 0.5 else 1.0 - q, SMALLEST_TAIL)
            z = -side * _normal_quantile(wanted)
            low = math.inf
            high = -math.inf
            for j in range(m):
                one = d[j] + s[j] * z
                low = min(low, one)
                high = max(high, one)
            t = min(max(_start(z, sd, skewness, kurtosis), low), high)
            last_error = math.inf
            for step in range(MAX_NEWTON_STEPS + MAX_HALVINGS):
                if not low < high:
                    t = low
                    break
                _tails_densities_slopes(t, d, precisions, side, tails, densities, slopes)
                evaluations += 1
                g = -side * _normal_quantile(_total(tails) / m)
                density = _total(densities) / m / SQRT_2PI
                slope = _total(slopes) / m / SQRT_2PI
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
                if (
                    inside
                    and relative_error <= TRUSTED_ERROR
                    and abs(halley) <= TRUSTED_STEP * narrowest
                ):
                    t = candidate
                    break
                # In a gap between components the cdf is flat: any t there is as good.
                if relative_error <= ROUNDING_ERROR or candidate == t:
                    break
                if not inside or abs(error) > 0.9 * last_error:
                    candidate = low + 0.5 * (high - low)
                last_error = abs(error)
                t = candidate
            out[i, c] = centre + scale * t
    return out, evaluations


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
        out[j] = distance + 2.0 * sigma * kernel * (1.0 / SQRT_2PI - v * _mills_ratio(v))


@njit(cache=True, forceinline=True)
def _spread_pairwise(d: Array, s: Array, scratch: Array) -> float:
    """E|t - t'| / 2 for two draws t, t' of the mixture: the sum over all pairs, O(M^2)."""
    m = d.shape[0]
    off_diagonal = 0.0
    diagonal = 0.0
    for j in range(m):
        _absolute_differences(d[j], s[j], d[:j], s[:j], scratch[:j])
        off_diagonal += _total(scratch[:j])
        diagonal += s[j]
    # A component against itself: E|N(0, 2 s^2)| = 2 s / sqrt(pi).
    return (off_diagonal + diagonal / math.sqrt(math.pi)) / m / m


@njit(cache=True, forceinline=True, error_model="numpy")
def _spread(d: Array, s: Array, sd: float, scratch: Array) -> float:
    """E|t - t'| / 2 = integral of F (1 - F) for one row, to about 1e-9 relative.

    For few components by pairs. Otherwise by the trapezoidal rule in x with t = sd sinh(x), which
    converges exponentially (the integrand is analytic and dies out at both ends) and reaches
    far-out components in few points; the step is halved until two results agree. When that would
    cost more than the pairs, the pairs are summed after all.
    """
    m = d.shape[0]
    if m <= MAX_COMPONENTS_PAIRWISE:
        return _spread_pairwise(d, s, scratch)
    reach = 8.5  # Phi(-8.5) = 1e-17
    low = math.asinh((d - reach * s).min() / sd)
    high = math.asinh((d + reach * s).max() / sd)
    offset = 0.0
    spacing = 0.2
    weight = spacing
    total = 0.0
    previous = math.inf
    evaluations = 0
    while evaluations + (high - low) / spacing <= 0.5 * m:
        for i in range(math.ceil((high - low - offset) / spacing)):
            x = low + offset + i * spacing
            _tails(sd * math.sinh(x), d, s, -1.0, scratch)
            below = _total(scratch) / m
            total += below * (1.0 - below) * math.cosh(x)
            evaluations += 1
        estimate = sd * total * weight
        if abs(estimate - previous) <= QUADRATURE_TOLERANCE * estimate:
            return estimate
        previous = estimate
        # The next points lie half-way between all those before.
        spacing = weight
        weight *= 0.5
        offset = weight
    return _spread_pairwise(d, s, scratch)


@njit(cache=True)
def crps(means: Array, sds: Array, y: Array) -> Array:
    """(n, k): E|t - y| - E|t - t'| / 2 for y (n, k); t, t' independent draws of the row."""
    n, m = means.shape
    k = y.shape[1]
    out = np.empty((n, k))
    d = np.empty(m)
    s = np.empty(m)
    scratch = np.empty(m)
    for i in range(n):
        centre, scale, sd, _, _ = _row_moments(means[i], sds[i])
        _standardize(means[i], sds[i], centre, scale, d, s)
        spread = _spread(d, s, sd, scratch)
        for c in range(k):
            _absolute_differences((y[i, c] - centre) / scale, 0.0, d, s, scratch)
            out[i, c] = scale * (_total(scratch) / m - spread)
    return out
