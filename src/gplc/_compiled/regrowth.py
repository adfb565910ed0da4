"""Values of w of some cases drawn one after the other, by particles.

Each case has features of its own, with a Gaussian distribution given all cases outside: h, with
y_i = a(w_i)' h_i + noise. Given the cases before it a case has a density for every w_i; one is
drawn, h is updated, and the next case follows. Several particles go side by side and are
resampled by how well they foretell y (sequential Monte Carlo; with one of them held as it is,
conditional sequential Monte Carlo: Andrieu, Doucet and Holenstein 2010).

Features are linear between the edges of cells in t = w / sqrt(SPREAD^2 + w^2).
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from gplc._compiled.exponential import exp_of_negative
from gplc._compiled.pools import SPREAD
from gplc._compiled.reductions import largest, total_of
from gplc._types import Array

# Share of every cell in what is proposed, besides what its density gives it: none is impossible.
FLOOR = 1e-3


class Window(NamedTuple):
    """Cases to draw w for, in this order, and the features h of all of them given the others."""

    y: Array  # (m,)
    variances: Array  # of the noise, (m,)
    mean: Array  # (m q,)
    covariance: Array  # (m q, m q)


class Randomness(NamedTuple):
    """Uniform numbers: for cells, for places in them, for resampling."""

    cells: Array  # (particles, m)
    within: Array  # (particles, m)
    resampling: Array  # (particles, m)
    last: float


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def _cell_shares(
    middles: Array,
    mean: Array,
    block: Array,
    y: float,
    variance: float,
    prior: Array,
    out: Array,
    spread: Array,
) -> float:
    """Probabilities of the cells, up to a factor, at their middles; and their sum.

    `middles` (q, cells) has the features there; `spread` (cells,) is scratch.
    """
    size, q = out.size, mean.size
    out[:] = 0.0
    spread[:] = variance
    # The innermost loops are over cells, so that they work on several at once.
    for r in range(q):
        own = middles[r]
        for k in range(size):
            out[k] += own[k] * mean[r]
            spread[k] += own[k] * own[k] * block[r, r]
        for c in range(r):
            other, twice = middles[c], 2.0 * block[r, c]
            for k in range(size):
                spread[k] += own[k] * other[k] * twice
    for k in range(size):
        inverse = 1.0 / max(spread[k], variance)
        gap = y - out[k]
        out[k] = prior[k] - 0.5 * gap * gap * inverse
        spread[k] = math.sqrt(inverse)
    best = largest(out)
    for k in range(size):
        out[k] = exp_of_negative(out[k] - best) * spread[k]
    given = total_of(out)
    floor = FLOOR * given / size
    for k in range(size):
        out[k] += floor
    return given + floor * size


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def _pick(shares: Array, left: float) -> int:
    for k in range(shares.size):
        left -= shares[k]
        if left <= 0.0:
            return k
    return int(shares.size - 1)


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def _observe(
    feature: Array, i: int, y: float, variance: float, mean: Array, covariance: Array, gain: Array
) -> float:
    """Update h, as far as later cases need it, by y_i; and log N(y_i | what was foretold)."""
    q = feature.size
    first = i * q
    gain[first:] = 0.0
    foretold = 0.0
    for r in range(q):
        foretold += feature[r] * mean[first + r]
        for c in range(first, mean.size):
            gain[c] += covariance[first + r, c] * feature[r]
    v = variance
    for r in range(q):
        v += feature[r] * gain[first + r]
    v = max(v, variance)
    gap = y - foretold
    for c in range(first + q, mean.size):
        mean[c] += gain[c] * gap / v
        share = gain[c] / v
        for d in range(first + q, mean.size):
            covariance[c, d] -= share * gain[d]
    return -0.5 * (gap * gap / v + math.log(v))


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def run(
    window: Window, table: Array, last: float, random: Randomness, held: bool, w: Array
) -> tuple[float, float]:
    """Draw w (m,), or keep it as one particle if `held`.

    `table` (cells + 1, q) has the features at the edges of cells between -last and last in t.
    The result are logs of the estimated density of y in the window, and of its density given the
    w drawn, or kept.
    """
    particles, m = random.cells.shape
    size, q = table.shape[0] - 1, table.shape[1]
    width = 2.0 * last / size
    prior = np.empty(size)
    for k in range(size):
        t = -last + (k + 0.5) * width
        prior[k] = _log_prior(t)
    shape = (particles, m * q)
    mean, covariance = np.empty(shape), np.empty((*shape, m * q))
    paths, given = np.empty((particles, m)), np.zeros(particles)
    offspring = np.zeros(particles, dtype=np.int64)
    for p in range(particles):
        mean[p] = window.mean
        covariance[p] = window.covariance
    middles = np.ascontiguousarray(0.5 * (table[:-1] + table[1:]).T)
    weights, shares, spread = np.empty(particles), np.empty(size), np.empty(size)
    feature, gain = np.empty(q), np.empty(m * q)
    estimate = 0.0
    for i in range(m):
        first = i * q
        y, variance = window.y[i], window.variances[i]
        for p in range(particles):
            block = covariance[p, first : first + q, first : first + q]
            own = mean[p, first : first + q]
            total = _cell_shares(middles, own, block, y, variance, prior, shares, spread)
            if held and p == 0:
                t = w[i] / math.sqrt(SPREAD * SPREAD + w[i] * w[i])
                k = min(max(int((t + last) / width), 0), size - 1)
            else:
                k = _pick(shares, random.cells[p, i] * total)
                t = -last + (k + random.within[p, i]) * width
            place = (t + last) / width - k
            for r in range(q):
                feature[r] = (1.0 - place) * table[k, r] + place * table[k + 1, r]
            paths[p, i] = w[i] if held and p == 0 else SPREAD * t / math.sqrt(1.0 - t * t)
            density = _observe(feature, i, y, variance, mean[p], covariance[p], gain)
            given[p] += density
            weights[p] = density + _log_prior(t) - math.log(shares[k] / (total * width))
        best = np.max(weights)
        if not best > -np.inf:
            return -np.inf, -np.inf
        for p in range(particles):
            weights[p] = math.exp(weights[p] - best)
        total = np.sum(weights)
        estimate += best + math.log(total / particles)
        offspring[:] = 0
        for p in range(particles):
            parent = 0 if held and p == 0 else _pick(weights, random.resampling[p, i] * total)
            offspring[parent] += 1
        # Who has offspring stays where it is; the second and others take places that are free.
        free = 0
        rest = slice(first + q, m * q)
        for p in range(particles):
            while offspring[p] > 1:
                while offspring[free] > 0:
                    free += 1
                mean[free] = mean[p]
                paths[free] = paths[p]
                given[free] = given[p]
                covariance[free, rest, rest] = covariance[p, rest, rest]
                offspring[p] -= 1
                offspring[free] = 1
    chosen = 0 if held else min(int(random.last * particles), particles - 1)
    w[:] = paths[chosen]
    return estimate, given[chosen]


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def _log_prior(t: float) -> float:
    """Log of N(w | 0, 1) dw / dt, without 2 pi."""
    rest = 1.0 - t * t
    return -0.5 * SPREAD * SPREAD * t * t / rest - 1.5 * math.log(rest) + math.log(SPREAD)
