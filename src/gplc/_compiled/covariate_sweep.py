"""One slice-sampling update of every latent covariate w_i of GPLC, O(n^3) for the sweep.

Given everything else, only y_i | y_-i depends on w_i, and it is Gaussian (C = L L'):

    y_i | y_-i ~ N(v' b, k(i, i) + s_i^2 - v' v),   v = L_-i^-1 k_i,   b = L_-i^-1 y_-i

so a candidate costs a triangular solve, not a factorisation. The covariance as a function of w
comes as `LatentTerms`. The factor L_-i is never computed anew. Cases are kept in
cyclic order and go through in blocks: a block is dropped from the front (`drop_leading`), its
cases are updated one by one given all others, and it is appended at the back. After the last
block the order is the original one again.

What makes it fast is that nearly all solves of a block are done together, at the speed of a matrix
product. A slice update is a walk (`slice_walk`): which points it looks at is a function of random
numbers drawn beforehand and of the densities met on the way. The first points are known
before any density is: the present value, the two ends of the first interval, and the proposals
that follow while every one is rejected, because an interval shrinks towards the present point
whatever the density. Which points come next is guessed by walking with densities that leave the
rest of the block out: few cases of many, so the guess is nearly always right. The update itself
walks with the exact densities. A point that was not foreseen is solved for when it is
needed; one that was foreseen in vain is not looked at.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gplc._compiled.latent_terms import LatentTerms, covariances, own_variance
from gplc._compiled.slice_walk import (
    PROPOSALS,
    Limits,
    Walks,
    begin_walks,
    no_walks,
    walk_all,
    walk_on,
)
from gplc._compiled.triangular import PANEL, drop_leading, solve_lower, solve_lower_rows
from gplc._types import Array

Counts = NDArray[np.int64]

# What a walk asks for at a time.
BATCH = PROPOSALS + 3  # the most, with the present value at first
GUESSED = 4  # most batches that follow the first and are guessed
SLOTS = BATCH + GUESSED * (PROPOSALS + 2)

# Places in the array of counts that a sweep adds to: densities used, extra passes over the
# factor, variances mended, densities that could not be computed, updates out of proposals.
EVALUATIONS, PASSES, CLAMPED, IMPOSSIBLE, EXHAUSTED = 0, 1, 2, 3, 4
N_COUNTS = 5


class Sweep(NamedTuple):
    """What a sweep works on; `w`, `upper`, `whitened` and `counts` are updated in place."""

    w: Array  # (n,) latent covariates
    y: Array  # (n,) responses
    terms: LatentTerms
    noise: Array  # (n,) variances, added to the diagonal of what `terms` say: that is C
    upper: Array  # (n, n): L' with C = L L' (only its upper triangle counts)
    whitened: Array  # (n,): L^-1 y
    counts: Counts  # (N_COUNTS,)


class Memory(NamedTuple):
    """Memory that all blocks of a sweep share; flat where its shape depends on the block."""

    rows: Array  # (a multiple of four, n), for `drop_leading`
    solved: Array
    batch: Array
    columns: Array
    panel: Array
    product: Array
    current: Array
    free: Array
    amplitudes: Array
    offsets: Array
    scratch: Array  # (2, n)
    w_others: Array  # (n,)
    cross: Array


class Block(NamedTuple):
    """Some cases in a row, updated while the m others stay; b is their number."""

    start: int
    others: Array  # (m,): w of the others, in cyclic order
    far_free: Array  # (b, m): rows of what `LatentTerms` holds, between the block and the others
    far_amplitudes: Array  # (b, terms, m)
    far_offsets: Array  # (b, any number, m)
    near_free: Array  # (b, b): the same within the block
    near_amplitudes: Array  # (b, terms, b)
    near_offsets: Array  # (b, any number, b)
    solved: Array  # (b, SLOTS, m): L^-1 k of every case at points of its walk
    fit: Array  # (b, SLOTS): the mean of y there given the others
    left_over: Array  # (b, SLOTS): and its variance
    current: Array  # (b, m): L^-1 k at the present w
    covariance: Array  # (b, b): of the block's y given the others, at the present w
    residual: Array  # (b,): y less its mean given the others


class Rest(NamedTuple):
    """A block without one of its cases, given the cases outside it."""

    place: int  # of the case that is left out
    factor: Array  # (b, b): of the covariance, the identity in its place
    whitened_residual: Array  # (b,): zero in its place
    floor: float  # no variance is below it
    work: Array  # (b,): memory


@njit(cache=True)
def mended(variance: float, floor: float, counts: Counts) -> float:
    """A conditional variance, at least `floor`: it is in exact arithmetic, less is rounding."""
    if variance >= floor:
        return variance
    counts[CLAMPED] += variance < floor * (1.0 - 1e-6) or variance != variance
    return floor


@njit(cache=True)
def log_density(value: float, gap: float, variance: float) -> float:
    """Log N(gap | 0, variance) + log N(value | 0, 1), up to a constant; -inf if not a number."""
    result = -0.5 * (math.log(variance) + gap * gap / variance + value * value)
    return result if math.isfinite(result) else -math.inf


@njit(cache=True, error_model="numpy")
def _factor_without(
    schur: Array, left_out: int, floors: Array, factor: Array, counts: Counts
) -> None:
    """Lower Cholesky factor of `schur` with one case left out (-1: none).

    The row of the case that is left out becomes a row of the identity, which changes nothing
    for the others.
    """
    size = schur.shape[0]
    for i in range(size):
        for j in range(i + 1):
            if i == left_out or j == left_out:
                factor[i, j] = 1.0 if i == j else 0.0
                continue
            total = schur[i, j]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            if i == j:
                factor[i, i] = math.sqrt(mended(total, floors[i], counts))
            else:
                factor[i, j] = total / factor[j, j]


@njit(cache=True, error_model="numpy")
def _solve_small(factor: Array, right: Array) -> None:
    """Overwrite right (b,) with factor^-1 right."""
    for i in range(right.size):
        total = right[i]
        for j in range(i):
            total -= factor[i, j] * right[j]
        right[i] = total / factor[i, i]


@njit(cache=True, error_model="numpy")
def _log_densities(
    density: Array,
    points: Array,
    y: float,
    fit: Array,
    left_over: Array,
    cross: Array,
    rest: Rest,
    counts: Counts,
) -> None:
    """Log p(y_i | y_-i, w_i) + log p(w_i) at each of some points, up to a constant.

    Mean (`fit`) and variance (`left_over`) of y_i and its covariances with the block, `cross`
    (points, b), are given the cases outside the block at every point.
    """
    place, factor, whitened_residual, floor, solved = rest
    for c in range(points.size):
        solved[:] = cross[c]
        solved[place] = 0.0
        _solve_small(factor, solved)
        gap = y - fit[c]
        variance = left_over[c]
        for j in range(solved.size):
            gap -= solved[j] * whitened_residual[j]
            variance -= solved[j] * solved[j]
        density[c] = log_density(points[c], gap, mended(variance, floor, counts))
        counts[IMPOSSIBLE] += density[c] == -math.inf


@njit(cache=True)
def _transpose(source: Array, target: Array) -> None:
    """Target = source', a strip of eight (a line of the cache) at a time."""
    for start in range(0, source.shape[1], 8):
        for i in range(source.shape[0]):
            for j in range(start, min(start + 8, source.shape[1])):
                target[j, i] = source[i, j]


@njit(cache=True)
def _gather(row: Array, start: int, block: int, far: Array, near: Array) -> None:
    """Split a row of a matrix: cases behind the block, then those before it; and the block."""
    behind = row.size - start - block
    far[:behind] = row[start + block :]
    far[behind:] = row[:start]
    near[:] = row[start : start + block]


@njit(cache=True)
def _memory(n: int, most: int, n_terms: int, n_offsets: int) -> Memory:
    """Memory for blocks of at most so many cases."""
    return Memory(
        np.empty((4 * ((most + 3) // 4), n)),
        np.empty(most * SLOTS * n),
        np.empty(n * most * BATCH),
        np.empty(n * most * BATCH),
        np.empty(PANEL * n),
        np.empty(PANEL * most * BATCH),
        np.empty(n * most),
        np.empty(n * most),
        np.empty(n_terms * n * most),
        np.empty(n_offsets * n * most),
        np.empty((2, n)),
        np.empty(n),
        np.empty(SLOTS * most),
    )


@njit(cache=True, forceinline=True)
def _taken_out(sweep: Sweep, start: int, count: int, memory: Memory) -> Block:
    """The next cases, dropped from the front of the factor; nothing is solved for yet."""
    n, terms = sweep.w.size, sweep.terms
    size, n_terms, n_offsets = n - count, terms.amplitudes.shape[0], terms.offsets.shape[0]
    drop_leading(sweep.upper, sweep.whitened, count, memory.rows)
    block = Block(
        start,
        memory.w_others[:size],
        memory.free[: count * size].reshape(count, size),
        memory.amplitudes[: count * n_terms * size].reshape(count, n_terms, size),
        memory.offsets[: count * n_offsets * size].reshape(count, n_offsets, size),
        np.empty((count, count)),
        np.empty((count, n_terms, count)),
        np.empty((count, n_offsets, count)),
        memory.solved[: count * SLOTS * size].reshape(count, SLOTS, size),
        np.empty((count, SLOTS)),
        np.empty((count, SLOTS)),
        memory.current[: count * size].reshape(count, size),
        np.empty((count, count)),
        np.empty(count),
    )
    _gather(sweep.w, start, count, block.others, block.residual)
    for p in range(count):
        case = start + p
        _gather(terms.free[case], start, count, block.far_free[p], block.near_free[p])
        for t in range(n_terms):
            row = terms.amplitudes[t, case]
            far, near = block.far_amplitudes[p, t], block.near_amplitudes[p, t]
            _gather(row, start, count, far, near)
        for t in range(n_offsets):
            row = terms.offsets[t, case]
            _gather(row, start, count, block.far_offsets[p, t], block.near_offsets[p, t])
    return block


@njit(cache=True)
def _foresee(
    rng: np.random.Generator,
    sweep: Sweep,
    block: Block,
    walks: Walks,
    limits: Limits,
    memory: Memory,
) -> None:
    """Solve for the points that the block will need, as far as they can be guessed."""
    count, size = block.current.shape
    fresh = np.zeros(count, np.int64)
    for _ in range(1 + GUESSED):
        if walk_all(rng, walks, limits, fresh) <= count // 4:
            break  # few points are solved for as fast one case at a time
        total = fresh.sum()
        batch = memory.batch[: total * size].reshape(total, size)
        columns = memory.columns[: size * total].reshape(size, total)
        _fill(batch, sweep, block, walks, fresh, memory.scratch)
        _transpose(batch, columns)
        solve_lower(sweep.upper, size, columns, memory.panel, memory.product)
        _transpose(columns, batch)
        _keep(batch, sweep, block, walks, fresh)


@njit(cache=True)
def _fill(
    batch: Array, sweep: Sweep, block: Block, walks: Walks, fresh: Counts, scratch: Array
) -> None:
    """Covariances of every case at its fresh points with the cases outside the block."""
    points, known, forms, others = walks.points, walks.known, sweep.terms.forms, block.others
    free, amplitudes, offsets = block.far_free, block.far_amplitudes, block.far_offsets
    c = 0
    for p in range(fresh.size):
        values = points[p][known[p] : known[p] + fresh[p]]
        rows = batch[c : c + fresh[p]]
        covariances(rows, values, forms, free[p], amplitudes[p], offsets[p], others, scratch)
        c += fresh[p]


@njit(cache=True)
def _keep(batch: Array, sweep: Sweep, block: Block, walks: Walks, fresh: Counts) -> None:
    """Keep what was solved for, and guess the densities: those without the rest of the block."""
    points, density, known = walks.points, walks.density, walks.known
    solved, fit, left_over = block.solved, block.fit, block.left_over
    free, amplitudes, powers = block.near_free, block.near_amplitudes, sweep.terms.forms.powers
    outside, noise = sweep.whitened[: batch.shape[1]], sweep.noise[block.start :]
    y = sweep.y[block.start : block.start + fresh.size]
    c = 0
    for p in range(fresh.size):
        for k in range(known[p], known[p] + fresh[p]):
            point, row = points[p, k], batch[c]
            solved[p, k, :] = row
            fit[p, k] = np.dot(row, outside)
            own = own_variance(point, p, free[p], amplitudes[p], powers)
            left_over[p, k] = own + noise[p] - np.dot(row, row)
            density[p, k] = log_density(point, y[p] - fit[p, k], max(left_over[p, k], noise[p]))
            c += 1
        known[p] += fresh[p]


@njit(cache=True)
def _condition(sweep: Sweep, block: Block, scratch: Array) -> None:
    """The block's own covariance and residuals given the cases outside it."""
    count, size = block.current.shape
    forms, noise, covariance = sweep.terms.forms, sweep.noise[block.start :], block.covariance
    free, amplitudes, offsets = block.near_free, block.near_amplitudes, block.near_offsets
    inside, y = sweep.w[block.start :][:count], sweep.y[block.start :][:count]
    for p in range(count):
        block.current[p, :] = block.solved[p, 0]
        block.residual[p] = y[p] - block.fit[p, 0]
        row, value = covariance[p : p + 1], inside[p : p + 1]
        covariances(row, value, forms, free[p], amplitudes[p], offsets[p], inside, scratch)
        covariance[p, p] += noise[p]
    if size > 0:
        covariance -= np.dot(block.current, block.current.T)


@njit(cache=True)
def _update_cases(
    rng: np.random.Generator,
    sweep: Sweep,
    block: Block,
    walks: Walks,
    limits: Limits,
    memory: Memory,
) -> None:
    """Update every w of the block, one by one, given all others."""
    count, size = block.current.shape
    noise, counts, forms = sweep.noise[block.start :], sweep.counts, sweep.terms.forms
    current, covariance, residual = block.current, block.covariance, block.residual
    inside, outside = sweep.w[block.start :][:count], sweep.whitened[:size]
    scratch, crosses, factor = memory.scratch, memory.cross, np.empty((count, count))
    whitened_residual, work = np.empty((2, count))
    for p in range(count):
        y, points, density = sweep.y[block.start + p], walks.points[p], walks.density[p]
        solved, fit, left_over = block.solved[p], block.fit[p], block.left_over[p]
        free, amplitudes = block.near_free[p], block.near_amplitudes[p]
        offsets = block.near_offsets[p]
        _factor_without(covariance, p, noise, factor, counts)
        whitened_residual[:] = residual
        whitened_residual[p] = 0.0
        _solve_small(factor, whitened_residual)
        rest = Rest(p, factor, whitened_residual, noise[p], work)
        first, fresh = 0, walks.known[p]  # of its points, those that are solved for
        while True:
            values = points[first : first + fresh]
            cross = crosses[: fresh * count].reshape(fresh, count)
            covariances(cross, values, forms, free, amplitudes, offsets, inside, scratch)
            if size > 0:
                cross -= np.dot(solved[:fresh], current.T)
            _log_densities(density[first:], values, y, fit, left_over, cross, rest, counts)
            chosen, wanted, used = walk_on(rng, walks, p, first + fresh, limits)
            if wanted == 0:
                break
            # Not foreseen. What was solved before is needed no more.
            first, fresh = first + fresh, wanted
            values, new = points[first : first + fresh], solved[:fresh]
            covariances(
                new,
                values,
                forms,
                block.far_free[p],
                block.far_amplitudes[p],
                block.far_offsets[p],
                block.others,
                scratch,
            )
            solve_lower_rows(sweep.upper, size, new)
            for k in range(fresh):
                fit[k] = np.dot(new[k], outside)
                own = own_variance(values[k], p, free, amplitudes, forms.powers)
                left_over[k] = own + noise[p] - np.dot(new[k], new[k])
            counts[PASSES] += 1
        counts[EVALUATIONS] += used
        counts[EXHAUSTED] += chosen < 0
        if chosen > 0:
            slot = chosen - first
            inside[p] = points[chosen]
            current[p, :] = solved[slot]
            covariance[p, :] = cross[slot]
            covariance[:, p] = cross[slot]
            covariance[p, p] = left_over[slot]
            residual[p] = y - fit[slot]


@njit(cache=True)
def _append(sweep: Sweep, block: Block) -> None:
    """Append the block at the back of the factor."""
    count, size = block.current.shape
    factor = np.empty((count, count))
    noise = sweep.noise[block.start :]
    _factor_without(block.covariance, -1, noise, factor, sweep.counts)
    _solve_small(factor, block.residual)
    sweep.whitened[size:] = block.residual
    _transpose(block.current, sweep.upper[:size, size:])
    for p in range(count):
        for j in range(p + 1):
            sweep.upper[size + j, size + p] = factor[p, j]


@njit(cache=True)
def slice_sweep(rng: np.random.Generator, sweep: Sweep, limits: Limits, block_size: int) -> None:
    """Update every w_i once by step-out slice sampling, in place.

    `block_size` is a matter of speed only.
    """
    n, terms = sweep.w.size, sweep.terms
    most = min(block_size, n)
    memory = _memory(n, most, terms.amplitudes.shape[0], terms.offsets.shape[0])
    walks = no_walks(most, SLOTS, limits)
    for start in range(0, n, most):
        count = min(most, n - start)
        block = _taken_out(sweep, start, count, memory)
        begin_walks(rng, sweep.w[start : start + count], limits, walks)
        _foresee(rng, sweep, block, walks, limits, memory)
        _condition(sweep, block, memory.scratch)
        _update_cases(rng, sweep, block, walks, limits, memory)
        _append(sweep, block)
