"""Compiled code against dense twins: the same thing done the plain way, with scipy."""

import math

import numpy as np
import pytest
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.stats import ks_2samp

from gplc._compiled import covariance, covariate_sweep, latent_terms, variance_sweep
from gplc._compiled.exponential import exp_of_negative
from gplc._compiled.slice_walk import Limits
from gplc._compiled.triangular import PANEL, drop_leading, solve_lower, solve_lower_rows
from gplc._linalg import inverse, solve
from gplc.kernels import SquaredExponential
from gplc.models import LatentCovariate, LatentVariance, Unknowns
from gplc.models import latent_variance as variance_module
from gplc.models.latent_covariate import sweep as covariate_module
from gplc.samplers import SliceSweep

SIZES = [1, 2, 3, 4, 5, 8, 15, 16, 17, 33, 47, 48, 49, 60]


def positive_definite(n, rng):
    root = rng.normal(size=(n, n + 3))
    return root @ root.T + 0.1 * np.eye(n)


def upper_with_rubbish_below(matrix, rng):
    """U = L' whose lower triangle holds numbers that nobody may use."""
    upper = cholesky(matrix, lower=False)
    return np.ascontiguousarray(upper + np.tril(rng.normal(size=upper.shape) * 1e3, -1))


# Triangular tools.


@pytest.mark.parametrize("n", SIZES)
def test_dropping_leading_cases_is_the_factor_of_the_rest(n):
    rng = np.random.default_rng(n)
    for count in sorted({1, 2, 3, 4, 5, 7, 8, 16, n - 1, n} & set(range(1, n + 1))):
        matrix, y = positive_definite(n, rng), rng.normal(size=n)
        upper = upper_with_rubbish_below(matrix, rng)
        whitened = solve_triangular(cholesky(matrix, lower=True), y, lower=True)
        rows = np.full((4 * ((count + 3) // 4), n), np.nan)  # work space needs no preparation
        drop_leading(upper, whitened, count, rows)
        left = n - count
        expected = cholesky(matrix[count:, count:], lower=False) if left else np.empty((0, 0))
        np.testing.assert_allclose(np.triu(upper[:left, :left]), expected, atol=1e-12)
        if left:
            np.testing.assert_allclose(
                whitened[:left], solve_triangular(expected.T, y[count:], lower=True), atol=1e-11
            )


@pytest.mark.parametrize("n", [*SIZES, 2 * PANEL + 1])
@pytest.mark.parametrize("q", [1, 3, 8, 33])
def test_triangular_solves_agree_with_scipy(n, q):
    rng = np.random.default_rng(n * 100 + q)
    matrix = positive_definite(n + 2, rng)
    upper = upper_with_rubbish_below(matrix, rng)  # of n + 2 cases: the leading n are asked for
    lower = cholesky(matrix, lower=True)[:n, :n]
    right = rng.normal(size=(n, q))
    expected = solve_triangular(lower, right, lower=True)
    by_column = right.copy()
    solve_lower(upper, n, by_column, np.full(PANEL * n, np.nan), np.full(PANEL * q, np.nan))
    np.testing.assert_allclose(by_column, expected, rtol=1e-10, atol=1e-11)
    by_row = np.ascontiguousarray(right.T)
    solve_lower_rows(upper, n, by_row)
    np.testing.assert_allclose(by_row.T, expected, rtol=1e-10, atol=1e-11)


def test_correlations_agree_with_numpy():
    rng = np.random.default_rng(0)
    X, w, weights = rng.normal(size=(9, 3)), rng.normal(size=9), np.array([0.3, 2.0, 0.01])
    distances = SquaredExponential().bases(X, X)
    expected = np.exp(-np.einsum("k,kij->ij", weights, distances))
    result = covariance.correlation(distances, weights)
    np.testing.assert_allclose(result, expected, rtol=1e-14)
    np.testing.assert_allclose(
        covariance.times_latent_correlation(result, w, 0.7),
        expected * np.exp(-0.7 * (w[:, None] - w) ** 2),
        rtol=1e-13,
    )


def test_exponential_agrees_with_the_libraries():
    x = np.concatenate([-np.logspace(-300, np.log10(708.0), 4000), [0.0, -0.0, -709.0, -np.inf]])
    result = np.array([exp_of_negative(value) for value in x])
    np.testing.assert_allclose(result, np.where(x < -708.0, 0.0, np.exp(x)), rtol=5e-16)


# The sweep over latent covariates.


def gplc_case(n, sigma, seed, constant=1.0):
    """A model with data from it, and the unknowns behind the data."""
    rng = np.random.default_rng(seed)
    model = LatentCovariate(
        np.sort(rng.uniform(-2, 2, size=n))[:, None],
        np.zeros(n),
        SquaredExponential(constant=constant),
    )
    unknowns = Unknowns(np.log([1.0, 0.8, 1.5, sigma]), rng.normal(size=n))
    return model.with_data(model.sample_data(rng, unknowns)), unknowns


LIMITS = Limits(4.0, 100, 200)


def sweep_of(model, unknowns):
    """What the compiled sweep is given: everything from scipy, nothing from the model."""
    lower = cholesky(model.covariance(unknowns), lower=True)
    theta = unknowns.theta
    distances = (model.X - model.X.T) ** 2
    part = np.exp(2.0 * theta[0]) * np.exp(-distances * np.exp(-2.0 * theta[1]))
    forms = latent_terms.Forms(
        np.array([math.exp(-2.0 * theta[2])]),
        np.zeros((1, 3), dtype=np.int64),
        np.empty((0, 4), dtype=np.int64),
        np.empty((0, latent_terms.N_NUMBERS)),
    )
    free = np.full_like(part, model.kernel.constant**2)
    return covariate_sweep.Sweep(
        unknowns.latent.copy(),
        model.y,
        latent_terms.LatentTerms(free, part[None], np.empty((0, *part.shape)), forms),
        np.full(model.n, math.exp(2.0 * theta[3])),
        np.ascontiguousarray(lower.T),
        solve_triangular(lower, model.y, lower=True),
        np.zeros(covariate_sweep.N_COUNTS, dtype=np.int64),
    )


def single_site_conditional(model, unknowns, case, values, inside):
    """Log densities of w_case at some values, by the code that the sweep runs.

    `inside` are the cases of its block; what is known from the others comes from scipy.
    """
    sweep = sweep_of(model, unknowns)
    (free, amplitudes, offsets, forms), counts = sweep.terms, sweep.counts
    noise, floors = sweep.noise[case], sweep.noise[inside]
    w, y, matrix = unknowns.latent, model.y, model.covariance(unknowns)
    outside = np.setdiff1d(np.arange(model.n), inside)
    place, many, block = int(case - inside[0]), values.size, inside.size

    def solved(right):
        if not outside.size:
            return right
        lower = cholesky(matrix[np.ix_(outside, outside)], lower=True)
        return solve_triangular(lower, right, lower=True)

    whitened = solved(y[outside])
    current = solved(matrix[np.ix_(outside, inside)])
    factor = np.empty((block, block))
    schur = matrix[np.ix_(inside, inside)] - current.T @ current
    covariate_sweep._factor_without(np.ascontiguousarray(schur), place, floors, factor, counts)
    residual = y[inside] - current.T @ whitened
    residual[place] = 0.0
    covariate_sweep._solve_small(factor, residual)
    rows, cross = np.empty((many, outside.size)), np.empty((many, block))
    for each, cases in ((rows, outside), (cross, inside)):
        latent_terms.covariances(
            each,
            values,
            forms,
            free[case][cases],
            np.ascontiguousarray(amplitudes[:, case][:, cases]),
            np.ascontiguousarray(offsets[:, case][:, cases]),
            w[cases],
            np.empty((2, model.n)),
        )
    rows = solved(rows.T)
    result = np.empty(many)
    covariate_sweep._log_densities(
        result,
        values,
        y[case],
        rows.T @ whitened,
        free[case, case] + amplitudes[0, case, case] + noise - (rows**2).sum(axis=0),
        cross - rows.T @ current,
        covariate_sweep.Rest(place, factor, residual, noise, np.empty(block)),
        counts,
    )
    assert counts[covariate_sweep.CLAMPED] == counts[covariate_sweep.IMPOSSIBLE] == 0
    return result


@pytest.mark.parametrize(
    ("n", "block"), [(1, 1), (2, 1), (2, 2), (7, 1), (7, 3), (7, 7), (30, 16)]
)
@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_single_site_conditional_is_the_full_density_up_to_a_constant(n, block, constant, note):
    model, unknowns = gplc_case(n, 0.1, seed=n, constant=constant)
    rng, worst = np.random.default_rng(5), 0.0
    for start in range(0, n - block + 1, block):
        for case in range(start, start + block):
            values = rng.normal(size=6) * 1.5
            full = []
            for value in values:
                w = unknowns.latent.copy()
                w[case] = value
                full.append(model.log_density(Unknowns(unknowns.theta, w)))
            inside = np.arange(start, start + block)
            single = single_site_conditional(model, unknowns, case, values, inside)
            gaps = np.diff(single) - np.diff(full)
            worst = max(worst, float(np.max(np.abs(gaps) / np.maximum(1.0, np.abs(full[1:])))))
    note("error", worst)
    assert worst < 1e-9


@pytest.mark.parametrize("n", [1, 2, 5, 16, 17, 33])
def test_factor_after_a_sweep_is_that_of_the_new_covariance(n):
    for block_size in (1, 2, 3, 4, 5, 16, n, n + 5):
        model, unknowns = gplc_case(n, 0.1, seed=n)
        sweep = sweep_of(model, unknowns)
        w, upper, whitened, counts = sweep.w, sweep.upper, sweep.whitened, sweep.counts
        covariate_sweep.slice_sweep(np.random.default_rng(1), sweep, LIMITS, block_size)
        assert (w != unknowns.latent).all()
        assert counts[covariate_sweep.EVALUATIONS] >= 2 * n
        assert (counts[covariate_sweep.CLAMPED :] == 0).all()
        lower = cholesky(model.covariance(Unknowns(unknowns.theta, w)), lower=True)
        np.testing.assert_allclose(np.triu(upper), lower.T, atol=1e-11)
        np.testing.assert_allclose(
            whitened, solve_triangular(lower, model.y, lower=True), atol=1e-9
        )


def test_running_factor_survives_twenty_sweeps_at_small_noise(note):
    # n = 400, sigma = 0.01: where updating an inverse breaks down within one sweep.
    model, unknowns = gplc_case(400, 0.01, seed=20)
    sweep, rng = sweep_of(model, unknowns), np.random.default_rng(2)
    w, upper, whitened, counts = sweep.w, sweep.upper, sweep.whitened, sweep.counts
    for _ in range(20):
        covariate_sweep.slice_sweep(rng, sweep, LIMITS, 16)
    lower = cholesky(model.covariance(Unknowns(unknowns.theta, w)), lower=True)
    of_factor = float(np.abs(np.triu(upper) - lower.T).max())
    of_whitened = float(
        np.abs(whitened - solve_triangular(lower, model.y, lower=True)).max()
        / np.abs(whitened).max()
    )
    note("factor", of_factor)
    note("whitened", of_whitened)
    assert of_factor < 1e-8
    assert of_whitened < 1e-8
    assert (counts[covariate_sweep.CLAMPED :] == 0).all()
    assert np.mean(w != unknowns.latent) == 1.0


def test_block_size_does_not_matter_for_the_distribution(monkeypatch):
    # Independent short chains with blocks of 1 and 4 cases, 5 cases in all; two-sample KS on 3
    # statistics at 1e-5 each: false alarm 3e-5.
    model, unknowns = gplc_case(5, 0.2, seed=3)
    ends = {}
    for block_size in (1, 4):
        monkeypatch.setattr(covariate_module, "BLOCK_SIZE", block_size)
        rng, sampler = np.random.default_rng(block_size), SliceSweep(2.0)
        ends[block_size] = []
        for _ in range(1500):
            state = model.state(unknowns)
            for _ in range(4):
                point, target = model.parts["w"](state)
                state = sampler.step(rng, point, target)[0].payload
            w = state.latent
            ends[block_size].append([w @ w, (w[0] - w[4]) ** 2, state.log_density])
    for one, four in zip(*(np.transpose(ends[b]) for b in (1, 4)), strict=True):
        assert ks_2samp(one, four).pvalue > 1e-5


def test_sweep_from_a_hopeless_state_leaves_it_and_counts_it():
    model, unknowns = gplc_case(6, 0.2, seed=4)
    sweep = sweep_of(model, unknowns)
    w, counts = sweep.w, sweep.counts
    sweep.whitened[:] = np.nan  # every density is NaN
    covariate_sweep.slice_sweep(np.random.default_rng(1), sweep, LIMITS, 4)
    assert np.array_equal(w, unknowns.latent)
    assert counts[covariate_sweep.IMPOSSIBLE] > 0


# Sweeps over the latent log SDs.


def gplv_case(n, scale, seed):
    rng = np.random.default_rng(seed)
    model = LatentVariance(
        rng.normal(size=(n, 1)), np.zeros(n), link=scale, jitter=0.05, kernel=SquaredExponential()
    )
    theta = np.log([1.2, 0.9, 0.8, 0.7])
    unknowns = Unknowns(theta, model.sample_latent(rng, theta))
    return model.with_data(model.sample_data(rng, unknowns)), unknowns


def running(model, unknowns):
    """Q = C_y^-1, a = Q y, P = C_z^-1 and g = P z."""
    state = model.state(unknowns)
    return (
        inverse(state.solved[0].factor),
        solve(state.solved[0].factor),
        inverse(state.solved[1].factor),
        solve(state.solved[1].factor),
    )


@pytest.mark.parametrize("scale", ["log", "abs"])
@pytest.mark.parametrize("n", [1, 2, 9])
def test_cheap_ratio_is_the_difference_of_full_densities(n, scale, note):
    model, unknowns = gplv_case(n, scale, seed=n)
    rng, worst = np.random.default_rng(0), 0.0
    counts = np.zeros(variance_sweep.N_COUNTS, dtype=np.int64)
    here = model.log_density(unknowns)
    arrays = running(model, unknowns)
    for i in range(n):
        for value in unknowns.latent[i] + rng.normal(size=5) * 0.3:
            z = unknowns.latent.copy()
            z[i] = value
            full = model.log_density(Unknowns(unknowns.theta, z)) - here
            running_here = variance_sweep.Running(
                unknowns.latent, model.link.code, *arrays, counts
            )
            ratio = variance_sweep.log_ratio(value, i, running_here)
            worst = max(worst, abs(ratio - full) / max(1.0, abs(full)))
    note("error", worst)
    assert worst < 1e-9
    assert counts[variance_sweep.EVALUATIONS] == 5 * n
    assert counts[variance_sweep.IMPOSSIBLE] == 0


@pytest.mark.parametrize("sweep", ["metropolis", "slice"])
@pytest.mark.parametrize("scale", ["log", "abs"])
@pytest.mark.parametrize("n", [1, 2, 40])
def test_running_inverse_after_a_sweep_is_a_fresh_one(n, scale, sweep, note):
    model, unknowns = gplv_case(n, scale, seed=n + 1)
    q, a, p, g = running(model, unknowns)
    z, counts = unknowns.latent.copy(), np.zeros(variance_sweep.N_COUNTS, dtype=np.int64)
    rng, accepted = np.random.default_rng(1), np.zeros(n)
    arrays = variance_sweep.Running(z, model.link.code, q, a, p, g, counts)
    for _ in range(5):
        if sweep == "metropolis":
            variance_sweep.metropolis_sweep(rng, arrays, np.full(n, 0.05), accepted)
        else:
            variance_sweep.slice_sweep(rng, arrays, 1.0, 100, 200)
    assert (z != unknowns.latent).any()
    c = cho_factor(model.covariance(Unknowns(unknowns.theta, z)))
    fresh = cho_solve(c, np.eye(n))
    error = float(np.abs(q - fresh).max() / np.abs(fresh).max())
    note("error", error)
    assert error < 1e-8
    np.testing.assert_allclose(a, cho_solve(c, model.y), atol=1e-8 * np.abs(a).max())
    np.testing.assert_allclose(g, p @ z, atol=1e-8 * np.abs(g).max())


def test_link_in_compiled_code_is_the_models():
    z = np.array([-3.0, -0.2, 0.0, 1.7, 400.0])
    for link in variance_module.LINKS.values():
        if link.code is None:
            continue  # no sweep over single values
        compiled = [variance_sweep.noise_variance(value, link.code) for value in z]
        np.testing.assert_allclose(compiled, link.variance(z), rtol=1e-14)
