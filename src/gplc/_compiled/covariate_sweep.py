"""One slice-sampling update of every latent covariate w_i of GPLC, O(n^3) for the sweep.

Given everything else, only y_i | y_-i depends on w_i, and it is Gaussian (C = L L'):

    y_i | y_-i ~ N(v' b, k(i, i) + sigma^2 - v' v),   v = L_-i^-1 k_i,   b = L_-i^-1 y_-i

so a candidate costs a triangular solve, not a factorisation. The covariance as a function of w
comes as a small program: a matrix that does not depend on w, and terms that are each a matrix
times simple functions of w_i and w_j. The factor L_-i is never computed anew. Cases are kept in
cyclic order and go through in blocks: a block is dropped from the front (`drop_leading`), its
cases are updated one by one given all others, and it is appended at the back. After the last
block the order is the original one again.

What makes it fast is that nearly all solves of a block are done together, at the speed of a matrix
product. A slice update is a walk (`_walk`): which points it looks at is a function of random
numbers drawn beforehand and of the densities met on the way. The first points are known
before any density is: the present value, the two ends of the first interval, and the proposals
that follow while every one is rejected, because an interval shrinks towards the present point
whatever the density. Which points come next is guessed by walking with densities that leave the
rest of the block out: few cases of many, so the guess is nearly always right. The update itself
walks with the exact densities. A point that was not foreseen is solved for when it is
needed; one that was foreseen in vain is not looked at.
"""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gplc._compiled.exponential import exp_of_negative
from gplc._compiled.triangular import PANEL, drop_leading, solve_lower, solve_lower_rows

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

# What a walk asks for at a time: ends of the interval that are not known yet, and proposals.
PROPOSALS = 2
BATCH = PROPOSALS + 3  # the most, with the present value at first
GUESSED = 4  # most batches that follow the first and are guessed
SLOTS = BATCH + GUESSED * (PROPOSALS + 2)

# Functions of w and w' that a covariance can have as factors, t being weight (w - w')^2 + offset.
EXP_GAP = 0  # exp(-weight (w - w')^2)
PRODUCT = 1  # weight w w'
MATERN32 = 2  # (1 + sqrt(3 t)) exp(-sqrt(3 t))
MATERN52 = 3  # (1 + sqrt(5 t) + 5 t / 3) exp(-sqrt(5 t))
RATIONAL = 4  # (1 + t / extra)^-extra
EXP_SINE = 5  # exp(-4 weight sin^2(pi (w - w') / extra))
SIDES = 6  # weight if w and w' are on the same side of zero, -weight if not

# Places in the array of counts that a sweep adds to.
EVALUATIONS, PASSES, CLAMPED, IMPOSSIBLE, EXHAUSTED = 0, 1, 2, 3, 4
N_COUNTS = 5


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def _multiply(
    row: Array,
    here: float,
    w_others: Array,
    code: int,
    weight: float,
    extra: float,
    offsets: Array,
) -> None:
    """Multiply row by one function of w = here and w' = each of w_others.

    `offsets` is empty where none are added.
    """
    if code == EXP_GAP:
        for r in range(row.size):
            gap = w_others[r] - here
            row[r] *= exp_of_negative(-weight * gap * gap)
    elif code == PRODUCT:
        for r in range(row.size):
            row[r] *= weight * here * w_others[r]
    elif code == SIDES:
        for r in range(row.size):
            row[r] *= weight if (here < 0.0) == (w_others[r] < 0.0) else -weight
    elif code == EXP_SINE:
        for r in range(row.size):
            sine = math.sin(math.pi / extra * (w_others[r] - here))
            row[r] *= exp_of_negative(-4.0 * weight * sine * sine)
    else:
        for r in range(row.size):
            gap = w_others[r] - here
            t = weight * gap * gap
            if offsets.size > 0:
                t += offsets[r]
            if code == MATERN32:
                distance = math.sqrt(3.0 * t)
                row[r] *= (1.0 + distance) * exp_of_negative(-distance)
            elif code == MATERN52:
                distance = math.sqrt(5.0 * t)
                row[r] *= (1.0 + distance + 5.0 / 3.0 * t) * exp_of_negative(-distance)
            else:
                row[r] *= math.exp(-extra * math.log1p(t / extra))


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def _covariances(
    rows: Array,
    values: Array,
    free: Array,
    amplitudes: Array,
    offsets: Array,
    w_others: Array,
    codes: Counts,
    numbers: Array,
    scratch: Array,
) -> None:
    """Covariances of one case, at each of some values of its w, with other cases.

    `free` (m,), `amplitudes` (terms, m) and `offsets` (offsets, m) are the rows of that case.
    """
    size = w_others.size
    term_row = scratch[:size]
    for c in range(values.size):
        row = rows[c]
        here = values[c]
        below = free  # what the next term is added to
        f = 0
        while f < codes.shape[0]:
            term = codes[f, 0]
            alone = f + 1 == codes.shape[0] or codes[f + 1, 0] != term
            if alone and codes[f, 1] == EXP_GAP:
                # By far the commonest: in one loop.
                weight = numbers[f, 0]
                amplitude = amplitudes[term]
                for r in range(size):
                    gap = w_others[r] - here
                    row[r] = below[r] + amplitude[r] * exp_of_negative(-weight * gap * gap)
                f += 1
                below = row
                continue
            term_row[:] = amplitudes[term]
            while f < codes.shape[0] and codes[f, 0] == term:
                offset = offsets[codes[f, 2]] if codes[f, 2] >= 0 else term_row[:0]
                _multiply(
                    term_row, here, w_others, codes[f, 1], numbers[f, 0], numbers[f, 1], offset
                )
                f += 1
            for r in range(size):
                row[r] = below[r] + term_row[r]
            below = row


@njit(cache=True)
def _own_variance(
    case: int, value: float, free: Array, amplitudes: Array, codes: Counts, numbers: Array
) -> float:
    """K of a case with itself, where w is `value`: all functions of w - w' are 1 there."""
    total = free[case, case]
    f = 0
    while f < codes.shape[0]:
        term = codes[f, 0]
        product = amplitudes[term, case, case]
        while f < codes.shape[0] and codes[f, 0] == term:
            if codes[f, 1] == PRODUCT:
                product *= numbers[f, 0] * value * value
            elif codes[f, 1] == SIDES:
                product *= numbers[f, 0]
            f += 1
        total += product
    return total


@njit(cache=True)
def _mended(variance: float, floor: float, counts: Counts) -> float:
    """A conditional variance, at least `floor`: it is in exact arithmetic, less is rounding."""
    if variance >= floor:
        return variance
    counts[CLAMPED] += variance < floor * (1.0 - 1e-6) or variance != variance
    return floor


@njit(cache=True)
def _log_density(value: float, gap: float, variance: float) -> float:
    """Log N(gap | 0, variance) + log N(value | 0, 1), up to a constant; -inf if not a number."""
    result = -0.5 * (math.log(variance) + gap * gap / variance + value * value)
    return result if math.isfinite(result) else -math.inf


@njit(cache=True, error_model="numpy")
def _factor_without(
    schur: Array, left_out: int, floor: float, factor: Array, counts: Counts
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
                factor[i, i] = math.sqrt(_mended(total, floor, counts))
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
    result: Array,
    values: Array,
    gaps: Array,
    variances: Array,
    cross: Array,
    place: int,
    factor: Array,
    whitened_residual: Array,
    floor: float,
    counts: Counts,
) -> None:
    """Log p(y_i | y_-i, w_i) + log p(w_i) at each of some values, up to a constant.

    `gaps` (y_i minus its mean), `variances` and `cross` (covariances with the block) are given the
    cases outside the block. What the block adds to that comes from `factor` and
    `whitened_residual`, in which case i, at `place`, is left out.
    """
    solved = np.empty(cross.shape[1])
    for c in range(values.size):
        solved[:] = cross[c]
        solved[place] = 0.0
        _solve_small(factor, solved)
        gap = gaps[c]
        variance = variances[c]
        for j in range(solved.size):
            gap -= solved[j] * whitened_residual[j]
            variance -= solved[j] * solved[j]
        result[c] = _log_density(values[c], gap, _mended(variance, floor, counts))
        counts[IMPOSSIBLE] += result[c] == -math.inf


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
def _find(points: Array, known: int, point: float) -> int:
    """Where `point` is among the known points; -1 if nowhere."""
    for k in range(known):
        if points[k] == point:
            return k
    return -1


@njit(cache=True)
def _walk(
    rng: np.random.Generator,
    points: Array,
    density: Array,
    known: int,
    left: float,
    width: float,
    steps_left: int,
    steps_right: int,
    exponential: float,
    uniforms: Array,
    drawn: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Walk through a step-out slice update as far as the known densities lead.

    Parameters
    ----------
    rng : numpy.random.Generator
    points, density : (capacity,)
        The present value, then points in any order; log densities at the first `known`.
        Points that the walk wants to know next are written behind these.
    known : int
    left, width : float
        Of the first interval.
    steps_left, steps_right : int
        Most steps out.
    exponential : float
        The slice is where the log density exceeds that at the present value minus this.
    uniforms : (max_shrinks,)
        For the proposals; drawn when first needed, `drawn[0]` of them so far.
    drawn : (1,)

    Returns
    -------
    chosen : int
        Place of the new value; 0 if it is the present one; -1 if not known yet or, with no point
        wanted, if all proposals are used up.
    wanted : int
        Number of points written.
    used : int
        Number of densities looked at.
    """
    here = points[0]
    right = left + width
    wanted = 0
    if known == 0:
        wanted = 1  # the present value itself
        level = 0.0
    else:
        level = density[0] - exponential
        if level == -math.inf:
            return 0, 0, 1  # nothing can be said from an impossible state: leave it
    used = 1
    while True:
        at = _find(points, known, left)
        if at < 0:
            points[known + wanted] = left
            wanted += 1
            break
        used += 1
        if not density[at] > level or steps_left == 0:
            break
        left -= width
        steps_left -= 1
    while True:
        at = _find(points, known, right)
        if at < 0:
            points[known + wanted] = right
            wanted += 1
            break
        used += 1
        if not density[at] > level or steps_right == 0:
            break
        right += width
        steps_right -= 1
    # Beyond the first point that is not known, go on as if all were rejected.
    most = wanted + PROPOSALS
    for k in range(uniforms.size):
        if wanted == most:
            break
        if k == drawn[0]:
            uniforms[k] = rng.random()
            drawn[0] += 1
        point = left + uniforms[k] * (right - left)
        at = _find(points, known, point) if wanted == 0 else -1
        if at >= 0:
            used += 1
            if density[at] > level:
                return at, 0, used
        else:
            points[known + wanted] = point
            wanted += 1
        if point < here:
            left = point
        else:
            right = point
    return -1, wanted, used


@njit(cache=True)
def slice_sweep(
    rng: np.random.Generator,
    w: Array,
    y: Array,
    free: Array,
    amplitudes: Array,
    offsets: Array,
    codes: Counts,
    numbers: Array,
    noise_variance: float,
    upper: Array,
    whitened: Array,
    width: float,
    max_steps: int,
    max_shrinks: int,
    block_size: int,
    counts: Counts,
) -> None:
    """Update every w_i once by step-out slice sampling, in place.

    Parameters
    ----------
    rng : numpy.random.Generator
    w, y : (n,)
        Latent covariates (updated) and responses.
    free, amplitudes, offsets : (n, n), (terms, n, n), (any number, n, n)
    codes : (factors, 3)
        For each factor its term, which function it is, and which offset it has (-1: none); those
        of one term together.
    numbers : (factors, 2)
        For each factor its weight and extra:
        C_ij = free_ij + sum_t amplitudes[t]_ij prod_f phi_f(w_i, w_j) + sigma^2 [i = j].
    noise_variance : float
        sigma^2.
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
    all_solved = np.empty(most * SLOTS * n)
    all_batch = np.empty(n * most * BATCH)
    all_columns = np.empty(n * most * BATCH)
    panel = np.empty(PANEL * n)
    product = np.empty(PANEL * most * BATCH)
    all_current = np.empty(n * most)
    n_terms, n_offsets = amplitudes.shape[0], offsets.shape[0]
    all_free = np.empty(n * most)
    all_amplitudes = np.empty(n_terms * n * most)
    all_offsets = np.empty(n_offsets * n * most)
    scratch = np.empty(n)
    w_others = np.empty(n)
    # Every end comes with the other end and proposals that may turn out to be in vain.
    capacity = SLOTS + (PROPOSALS + 2) * (max_steps + 1) + max_shrinks + PROPOSALS
    points = np.empty((most, capacity))
    density = np.empty((most, capacity))
    fit = np.empty((most, SLOTS))
    left_over = np.empty((most, SLOTS))
    exponentials = np.empty(most)
    lefts = np.empty(most)
    steps = np.empty(most, np.int64)
    uniforms = np.empty((most, max_shrinks))
    all_cross = np.empty(SLOTS * most)

    for start in range(0, n, most):
        block = min(most, n - start)
        size = n - block
        drop_leading(upper, whitened, block, rows)
        outside = whitened[:size]
        others = w_others[:size]
        behind = n - start - block
        others[:behind] = w[start + block :]
        others[behind:] = w[:start]
        solved = all_solved[: block * SLOTS * size].reshape(block, SLOTS, size)
        current = all_current[: block * size].reshape(block, size)
        far_free = all_free[: block * size].reshape(block, size)
        far_amplitudes = all_amplitudes[: block * n_terms * size].reshape(block, n_terms, size)
        far_offsets = all_offsets[: block * n_offsets * size].reshape(block, n_offsets, size)
        near_free = np.empty((block, block))
        near_amplitudes = np.empty((block, n_terms, block))
        near_offsets = np.empty((block, n_offsets, block))
        known = np.zeros(block, np.int64)
        drawn = np.zeros((block, 1), np.int64)
        fresh = np.zeros(block, np.int64)
        for p in range(block):
            _gather(free[start + p], start, block, far_free[p], near_free[p])
            for t in range(n_terms):
                of_case = amplitudes[t, start + p]
                _gather(of_case, start, block, far_amplitudes[p, t], near_amplitudes[p, t])
            for t in range(n_offsets):
                of_case = offsets[t, start + p]
                _gather(of_case, start, block, far_offsets[p, t], near_offsets[p, t])
            points[p, 0] = w[start + p]
            exponentials[p] = rng.standard_exponential()
            lefts[p] = w[start + p] - width * rng.random()
            steps[p] = int(max_steps * rng.random())

        # Solve for the points that the block will need, as far as they can be guessed.
        for _ in range(1 + GUESSED):
            total = 0
            wanting = 0
            for p in range(block):
                _, fresh[p], _ = _walk(
                    rng,
                    points[p],
                    density[p],
                    known[p],
                    lefts[p],
                    width,
                    steps[p],
                    max_steps - 1 - steps[p],
                    exponentials[p],
                    uniforms[p],
                    drawn[p],
                )
                total += fresh[p]
                wanting += fresh[p] > 0
            if wanting <= block // 4:
                break  # few points are solved for as fast one case at a time
            batch = all_batch[: total * size].reshape(total, size)
            columns = all_columns[: size * total].reshape(size, total)
            c = 0
            for p in range(block):
                _covariances(
                    batch[c : c + fresh[p]],
                    points[p][known[p] : known[p] + fresh[p]],
                    far_free[p],
                    far_amplitudes[p],
                    far_offsets[p],
                    others,
                    codes,
                    numbers,
                    scratch,
                )
                c += fresh[p]
            _transpose(batch, columns)
            solve_lower(upper, size, columns, panel, product)
            _transpose(columns, batch)
            c = 0
            for p in range(block):
                case = start + p
                for k in range(known[p], known[p] + fresh[p]):
                    solved[p, k, :] = batch[c]
                    fit[p, k] = np.dot(batch[c], outside)
                    own = _own_variance(case, points[p, k], free, amplitudes, codes, numbers)
                    left_over[p, k] = own + noise_variance - np.dot(batch[c], batch[c])
                    density[p, k] = _log_density(
                        points[p, k], y[case] - fit[p, k], max(left_over[p, k], noise_variance)
                    )
                    c += 1
                known[p] += fresh[p]

        # The block's own covariance and residuals given the cases outside it.
        inside = w[start : start + block]
        schur = np.empty((block, block))
        residual = np.empty(block)
        for p in range(block):
            current[p, :] = solved[p, 0]
            residual[p] = y[start + p] - fit[p, 0]
        for p in range(block):
            _covariances(
                schur[p : p + 1],
                inside[p : p + 1],
                near_free[p],
                near_amplitudes[p],
                near_offsets[p],
                inside,
                codes,
                numbers,
                scratch,
            )
            schur[p, p] += noise_variance
        if size > 0:
            schur -= np.dot(current, current.T)

        factor = np.empty((block, block))
        whitened_residual = np.empty(block)
        for p in range(block):
            case = start + p
            _factor_without(schur, p, noise_variance, factor, counts)
            whitened_residual[:] = residual
            whitened_residual[p] = 0.0
            _solve_small(factor, whitened_residual)
            first = 0  # place in the list of points of the first row that is solved
            count = known[p]
            while True:
                values = points[p][first : first + count]
                cross = all_cross[: count * block].reshape(count, block)
                _covariances(
                    cross,
                    values,
                    near_free[p],
                    near_amplitudes[p],
                    near_offsets[p],
                    inside,
                    codes,
                    numbers,
                    scratch,
                )
                if size > 0:
                    cross -= np.dot(solved[p][:count], current.T)
                _log_densities(
                    density[p][first:],
                    values,
                    y[case] - fit[p],
                    left_over[p],
                    cross,
                    p,
                    factor,
                    whitened_residual,
                    noise_variance,
                    counts,
                )
                chosen, wanted, used = _walk(
                    rng,
                    points[p],
                    density[p],
                    first + count,
                    lefts[p],
                    width,
                    steps[p],
                    max_steps - 1 - steps[p],
                    exponentials[p],
                    uniforms[p],
                    drawn[p],
                )
                if wanted == 0:
                    break
                # Not foreseen. What was solved before is needed no more.
                first += count
                count = wanted
                new = solved[p][:count]
                _covariances(
                    new,
                    points[p][first : first + count],
                    far_free[p],
                    far_amplitudes[p],
                    far_offsets[p],
                    others,
                    codes,
                    numbers,
                    scratch,
                )
                solve_lower_rows(upper, size, new)
                for k in range(count):
                    fit[p, k] = np.dot(new[k], outside)
                    value = points[p, first + k]
                    own = _own_variance(case, value, free, amplitudes, codes, numbers)
                    left_over[p, k] = own + noise_variance - np.dot(new[k], new[k])
                counts[PASSES] += 1

            counts[EVALUATIONS] += used
            counts[EXHAUSTED] += chosen < 0
            if chosen > 0:
                row = chosen - first
                w[case] = points[p, chosen]
                current[p, :] = solved[p, row]
                schur[p, :] = cross[row]
                schur[:, p] = cross[row]
                schur[p, p] = left_over[p, row]
                residual[p] = y[case] - fit[p, row]

        # Append the block at the back.
        _factor_without(schur, -1, noise_variance, factor, counts)
        _solve_small(factor, residual)
        whitened[size:] = residual
        _transpose(current, upper[:size, size:])
        for p in range(block):
            for j in range(p + 1):
                upper[size + j, size + p] = factor[p, j]
