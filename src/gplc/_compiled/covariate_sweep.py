"""One slice-sampling update of every latent covariate w_i of GPLC, O(n^3) for the sweep.

Given everything else, only y_i | y_-i depends on w_i, and it is Gaussian (C = L L'):

    y_i | y_-i ~ N(v' b, k(i, i) + sigma^2 - v' v),   v = L_-i^-1 k_i,   b = L_-i^-1 y_-i

so a candidate costs a triangular solve, not a factorisation. The factor L_-i is never computed
anew. Cases are kept in cyclic order and go through in blocks: a block is dropped from the front
(`drop_leading`), its cases are updated one by one given all others, and it is appended at
the back. After the last block the order is the original one again.

Two things make it fast. A block is dropped in one pass over the factor. And the first points
that each slice update of the block will look at are known before any density is: the two ends
of the first interval, and the proposals that follow if every earlier one is rejected, because an
interval shrinks towards the present point whatever the density. They are all solved for together,
at the speed of a matrix product. Points beyond those (stepping out, long shrinking) are solved
for when they are needed.
"""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gplc._compiled.triangular import PANEL, drop_leading, solve_lower, solve_lower_rows

Array = NDArray[np.float64]

CANDIDATES = (
    8  # points solved for at once for each case: the present value, two ends, five proposals
)
PROPOSALS = CANDIDATES - 3

# Places in the array of counts that a sweep adds to.
EVALUATIONS, PASSES, CLAMPED, IMPOSSIBLE, EXHAUSTED = 0, 1, 2, 3, 4
N_COUNTS = 5


@njit(cache=True)
def _covariances(
    rows: Array,
    values: Array,
    amplitudes: Array,
    w_others: Array,
    constant: float,
    inverse_square: float,
) -> None:
    """Covariances of one case, at each of its candidate values, with other cases."""
    for c in range(CANDIDATES):
        row = rows[c]
        here = values[c]
        for r in range(w_others.size):
            gap = w_others[r] - here
            row[r] = constant + amplitudes[r] * math.exp(-inverse_square * gap * gap)


@njit(cache=True)
def _factor_without(
    schur: Array, left_out: int, floor: float, factor: Array, counts: NDArray[np.int64]
) -> None:
    """Lower Cholesky factor of `schur` with one case left out (-1: none).

    The row of the case that is left out becomes a row of the identity, which changes nothing
    for the others. Pivots cannot be below `floor` in exact arithmetic; rounding is mended.
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
                if not total >= floor:
                    counts[CLAMPED] += total < floor * (1.0 - 1e-6) or total != total
                    total = floor
                factor[i, i] = math.sqrt(total)
            else:
                factor[i, j] = total / factor[j, j]


@njit(cache=True)
def _solve_small(factor: Array, right: Array) -> None:
    """Overwrite right (b,) with factor^-1 right."""
    for i in range(right.size):
        total = right[i]
        for j in range(i):
            total -= factor[i, j] * right[j]
        right[i] = total / factor[i, i]


@njit(cache=True)
def _log_densities(
    values: Array,
    solved_rows: Array,
    place: int,
    target: float,
    prior_variance: float,
    floor: float,
    whitened: Array,
    current: Array,
    cross: Array,
    explained: Array,
    fit: Array,
    square: Array,
    factor: Array,
    residual: Array,
    result: Array,
    counts: NDArray[np.int64],
) -> None:
    """Log p(y_i | y_-i, w) + log p(w_i) at each candidate, up to a constant.

    `solved_rows` holds v = L_O^-1 k for the cases O outside the block. On entry `cross` holds
    the covariances with the rest of the block; on return, what the cases outside leave of them.
    """
    block = current.shape[1]
    fit[:] = 0.0
    square[:] = 0.0
    if current.shape[0] > 0:
        np.dot(solved_rows, whitened, fit)
        np.dot(solved_rows, current, explained)
        for c in range(CANDIDATES):
            square[c] = np.dot(solved_rows[c], solved_rows[c])
            for j in range(block):
                cross[c, j] -= explained[c, j]
    solved = np.empty(block)
    for c in range(CANDIDATES):
        for j in range(block):
            solved[j] = 0.0 if j == place else cross[c, j]
        _solve_small(factor, solved)
        mean = fit[c]
        variance = prior_variance - square[c]
        for j in range(block):
            mean += solved[j] * residual[j]
            variance -= solved[j] * solved[j]
        if not variance >= floor:
            # sigma^2 bounds it from below in exact arithmetic: this is rounding.
            counts[CLAMPED] += variance < floor * (1.0 - 1e-6) or variance != variance
            variance = floor
        gap = target - mean
        value = -0.5 * (math.log(variance) + gap * gap / variance + values[c] * values[c])
        if not math.isfinite(value):
            counts[IMPOSSIBLE] += 1
            value = -math.inf
        result[c] = value


@njit(cache=True)
def _propose(left: float, right: float, centre: float, uniforms: Array, proposals: Array) -> None:
    """Points that a shrinking interval yields while every one of them is rejected."""
    for k in range(uniforms.size):
        point = left + uniforms[k] * (right - left)
        proposals[k] = point
        if point < centre:
            left = point
        else:
            right = point


@njit(cache=True)
def slice_sweep(
    rng: np.random.Generator,
    w: Array,
    y: Array,
    base: Array,
    constant: float,
    inverse_square: float,
    noise_variance: float,
    upper: Array,
    whitened: Array,
    width: float,
    max_steps: int,
    max_shrinks: int,
    block_size: int,
    counts: NDArray[np.int64],
) -> None:
    """Update every w_i once by step-out slice sampling, in place.

    Parameters
    ----------
    rng : numpy.random.Generator
    w, y : (n,)
        Latent covariates (updated) and responses.
    base : (n, n)
        eta^2 times the correlation due to x.
    constant, inverse_square, noise_variance : float
        c^2, 1 / rho_w^2 and sigma^2:
        C_ij = c^2 + base_ij exp(-(w_i - w_j)^2 / rho_w^2) + sigma^2 [i = j].
    upper : (n, n)
        L' with C = L L' at entry; that of the new C on return (only its upper triangle counts).
    whitened : (n,)
        L^-1 y, likewise.
    width, max_steps, max_shrinks
        Of the slice sampler: initial interval, most steps out, most proposals.
    block_size : int
        Cases per block; a matter of speed only.
    counts : (N_COUNTS,)
        Added to: densities used, extra passes over the factor, variances mended, densities that
        could not be computed, updates that ran out of proposals.
    """
    n = w.size
    most = min(block_size, n)
    rows = np.empty((4 * ((most + 3) // 4), n))
    all_columns = np.empty(n * most * CANDIDATES)
    all_candidate = np.empty(n * CANDIDATES)
    panel = np.empty(PANEL * n)
    product = np.empty(PANEL * most * CANDIDATES)
    all_current = np.empty(n * most)
    w_others = np.empty(n)
    base_rows = np.empty((most, n))
    values = np.empty((most, CANDIDATES))
    exponentials = np.empty(most)
    uniforms = np.empty((most, PROPOSALS))
    fit = np.empty(CANDIDATES)
    square = np.empty(CANDIDATES)
    density = np.empty(CANDIDATES)
    points = np.empty(CANDIDATES)

    for start in range(0, n, most):
        block = min(most, n - start)
        size = n - block
        drop_leading(upper, whitened, block, rows)
        for r in range(size):
            w_others[r] = w[(start + block + r) % n]
        others = w_others[:size]
        columns = all_columns[: size * block * CANDIDATES].reshape(size, block * CANDIDATES)
        candidate = all_candidate[: size * CANDIDATES].reshape(CANDIDATES, size)
        current = all_current[: size * block].reshape(size, block)

        for p in range(block):
            case = start + p
            for r in range(size):
                base_rows[p, r] = base[case, (start + block + r) % n]
            exponentials[p] = rng.standard_exponential()
            left = w[case] - width * rng.random()
            values[p, 0] = w[case]
            values[p, 1] = left
            values[p, 2] = left + width
            for k in range(PROPOSALS):
                uniforms[p, k] = rng.random()
            _propose(left, left + width, w[case], uniforms[p], values[p, 3:])
            _covariances(candidate, values[p], base_rows[p], others, constant, inverse_square)
            for r in range(size):
                for c in range(CANDIDATES):
                    columns[r, p * CANDIDATES + c] = candidate[c, r]
        solve_lower(upper, size, columns, panel, product)

        # The block's own covariance and means given the cases outside it.
        schur = np.empty((block, block))
        outside = np.empty(block)
        for p in range(block):
            outside[p] = y[start + p]
            for j in range(p + 1):
                gap = w[start + p] - w[start + j]
                schur[p, j] = constant + base[start + p, start + j] * math.exp(
                    -inverse_square * gap * gap
                )
            schur[p, p] += noise_variance
        for r in range(size):
            for p in range(block):
                current[r, p] = columns[r, p * CANDIDATES]
            for p in range(block):
                outside[p] -= current[r, p] * whitened[r]
                for j in range(p + 1):
                    schur[p, j] -= current[r, p] * current[r, j]
        for p in range(block):
            for j in range(p):
                schur[j, p] = schur[p, j]
        factor = np.zeros((block, block))
        residual = np.empty(block)
        cross = np.empty((CANDIDATES, block))
        explained = np.empty((CANDIDATES, block))

        for p in range(block):
            case = start + p
            prior_variance = constant + base[case, case] + noise_variance
            _factor_without(schur, p, noise_variance, factor, counts)
            for j in range(block):
                residual[j] = 0.0 if j == p else outside[j]
            _solve_small(factor, residual)

            here = w[case]
            left = values[p, 1]
            right = values[p, 2]
            points[:] = values[p]
            steps_left = int(max_steps * rng.random())
            steps_right = max_steps - 1 - steps_left
            open_left = True  # not yet known whether the interval ends here
            open_right = True
            for r in range(size):
                for c in range(CANDIDATES):
                    candidate[c, r] = columns[r, p * CANDIDATES + c]
            level = -math.inf
            chosen = -1
            shrinks = 0
            # Every batch holds the present value, both ends, and proposals that are right if
            # the interval goes no further.
            while True:
                _covariances(
                    cross,
                    points,
                    base[case][start : start + block],
                    w[start : start + block],
                    constant,
                    inverse_square,
                )
                _log_densities(
                    points,
                    candidate,
                    p,
                    y[case],
                    prior_variance,
                    noise_variance,
                    whitened[:size],
                    current,
                    cross,
                    explained,
                    fit,
                    square,
                    factor,
                    residual,
                    density,
                    counts,
                )
                if level == -math.inf:
                    counts[EVALUATIONS] += 1
                    level = density[0] - exponentials[p]
                    if level == -math.inf:
                        break  # nothing can be said from an impossible state: leave it
                if open_left:
                    counts[EVALUATIONS] += 1
                    open_left = density[1] > level and steps_left > 0
                    if open_left:
                        left -= width
                        steps_left -= 1
                if open_right:
                    counts[EVALUATIONS] += 1
                    open_right = density[2] > level and steps_right > 0
                    if open_right:
                        right += width
                        steps_right -= 1
                if not (open_left or open_right):
                    for c in range(3, CANDIDATES):
                        counts[EVALUATIONS] += 1
                        if density[c] > level:
                            chosen = c
                            break
                        if points[c] < here:
                            left = points[c]
                        else:
                            right = points[c]
                    if chosen >= 0:
                        break
                    shrinks += PROPOSALS
                    if shrinks >= max_shrinks:
                        counts[EXHAUSTED] += 1
                        break
                    for k in range(PROPOSALS):
                        uniforms[p, k] = rng.random()
                points[1] = left
                points[2] = right
                _propose(left, right, here, uniforms[p], points[3:])
                _covariances(candidate, points, base_rows[p], others, constant, inverse_square)
                solve_lower_rows(upper, size, candidate)
                counts[PASSES] += 1

            if chosen >= 0:
                w[case] = points[chosen]
                for r in range(size):
                    current[r, p] = candidate[chosen, r]
                for j in range(block):
                    if j != p:
                        schur[p, j] = cross[chosen, j]
                        schur[j, p] = cross[chosen, j]
                schur[p, p] = prior_variance - square[chosen]
                outside[p] = y[case] - fit[chosen]

        # Append the block at the back.
        _factor_without(schur, -1, noise_variance, factor, counts)
        _solve_small(factor, outside)
        for r in range(size):
            for p in range(block):
                upper[r, size + p] = current[r, p]
        for p in range(block):
            whitened[size + p] = outside[p]
            for j in range(p + 1):
                upper[size + j, size + p] = factor[p, j]
