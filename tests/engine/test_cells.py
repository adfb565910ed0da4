"""Cells of w, compiled: against the same in NumPy and SciPy, finite differences, and quadrature.

The twin is written from the formulas of `gplc._compiled.cells`, with logarithms and SciPy's own
densities. What cells leave of error against a fine quadrature has bounds here, not because any
result depended on it (an acceptance allows for it) but because few moves would be accepted.
"""

import math

import numpy as np
import pytest
from scipy.special import logsumexp, ndtr
from scipy.stats import kstest, norm

from gplc._compiled import cells as compiled
from gplc.kernels import Linear, Matern52, Sign, SquaredExponential
from gplc.models import LatentCovariate
from gplc.models.latent_covariate.marginal import Metric, features_of, grid
from gplc.priors import HalfNormal
from gplc.samplers import Hamiltonian

pytestmark = pytest.mark.usefixtures("one_blas_thread")

GRID = grid()
W = GRID.cells.centres
# Functions of w, as steep as fits have them: a line, a wave, two branches, next to nothing.
FUNCTIONS = {
    "line": lambda w: 0.8 * w,
    "wave": lambda w: np.sin(1.5 * w) + 0.3 * w,
    "branches": lambda w: np.where(w < 0.0, -1.0, 1.0) + 0.2 * w,
    "flat": lambda w: 0.01 * w**2 + 0.3,
}
Y = np.array([0.9, -0.4, 1.1, 0.25])
# Noise that is known for every case, besides what is learned: from little to much.
VARIANCES = np.array([0.02, 0.1, 0.4, 0.05]) ** 2 + 0.01**2
VALUES = np.stack([function(W) for function in FUNCTIONS.values()])
LOG_2PI = math.log(2.0 * math.pi)


def slopes_between_neighbours(values):
    """Differences within either half of the cells: central ones, one-sided at its ends."""
    result = []
    for part, w in zip(np.split(values, 2, axis=-1), np.split(W, 2), strict=True):
        before, after = np.r_[0, 0 : w.size - 1], np.r_[1 : w.size, w.size - 1]
        result.append((part[..., after] - part[..., before]) / (w[after] - w[before]))
    return np.concatenate(result, axis=-1)


def log_terms(values, y, variances):
    """Log p_k N(y_i | g_k, v_k): (n, K)."""
    total = variances[:, None] + GRID.cells.variances * slopes_between_neighbours(values) ** 2
    return GRID.cells.log_weights + norm.logpdf(y[:, None], values, np.sqrt(total))


def twin(values, y, variances):
    """Log p(y_i) of every case, with all constants."""
    return logsumexp(log_terms(values, y, variances), axis=1)


def mixtures(values, y, variances):
    """W given g and y: log shares with log p(y) in them, means and SDs of every cell."""
    slopes = slopes_between_neighbours(values)
    precisions = 1.0 / GRID.cells.variances + slopes**2 / variances[:, None]
    gaps = (y[:, None] - values) / variances[:, None]
    return log_terms(values, y, variances), W + slopes * gaps / precisions, precisions**-0.5


def on_fine_grid(function, y, variance):
    """log N(w | 0, 1) N(y | g(w), s^2) on so fine a grid that sums over it are integrals."""
    fine = (np.arange(100_000) + 0.5) / 100_000 * 16.0 - 8.0
    log_joint = norm.logpdf(fine) + norm.logpdf(y, function(fine), math.sqrt(variance))
    return fine, log_joint, 16.0 / 100_000


def drawn(values, y, variances, w, random=()):
    """Log shares, w being changed in place if there are random numbers."""
    log_shares, nothing = np.empty(y.size), np.empty(0)
    uniforms, normals = random or (nothing, nothing)
    compiled.draw(values, y, variances, GRID.cells, uniforms, normals, w, log_shares)
    return log_shares


# The grid itself.


def test_cells_make_up_the_standard_normal_distribution():
    """Their mixture has its density, and integrals of polynomials come out right."""
    assert abs(GRID.weights.sum() - 1.0) < 1e-6
    assert np.allclose(np.exp(GRID.cells.log_weights), GRID.weights, rtol=1e-12)
    assert abs(GRID.weights @ W**2 + GRID.weights @ GRID.cells.variances - 1.0) < 3e-3
    at = np.linspace(-3.0, 3.0, 61)
    mixture = norm.pdf(at[:, None], W, np.sqrt(GRID.cells.variances)) @ GRID.weights
    assert np.allclose(mixture, norm.pdf(at), rtol=0.02)
    products = (GRID.moments * GRID.weights) @ GRID.moments.T
    assert np.allclose(products, np.eye(len(products)), atol=2e-4)


def test_slopes_are_never_taken_across_the_middle():
    slopes = compiled.slopes_of(VALUES, GRID.cells)
    assert np.allclose(slopes, slopes_between_neighbours(VALUES), rtol=1e-12)
    assert np.allclose(slopes[list(FUNCTIONS).index("branches")], 0.2)


# Densities and scores.


@pytest.mark.parametrize("known", [True, False], ids=["known noise", "one variance"])
def test_densities_are_those_of_the_twin(known):
    variances = VARIANCES if known else np.full(Y.size, 0.03)
    expected = twin(VALUES, Y, variances).sum() + 0.5 * Y.size * LOG_2PI
    scores, by_variance = np.empty_like(VALUES), np.empty(Y.size)
    found = compiled.log_likelihood(VALUES, Y, variances, GRID.cells, scores, by_variance)
    assert found == pytest.approx(expected, rel=1e-12)
    assert compiled.log_density(VALUES, Y, variances, GRID.cells) == pytest.approx(
        expected, rel=1e-12
    )


def test_scores_agree_with_differences_of_the_twin():
    scores, by_variance = np.empty_like(VALUES), np.empty(Y.size)
    compiled.log_likelihood(VALUES, Y, VARIANCES, GRID.cells, scores, by_variance)
    # Every case at once: none says anything of another's values.
    step = 1e-6
    for k in range(W.size):
        move = step * (np.arange(W.size) == k)
        change = twin(VALUES + move, Y, VARIANCES) - twin(VALUES - move, Y, VARIANCES)
        np.testing.assert_allclose(scores[:, k], change / (2 * step), rtol=1e-4, atol=1e-6)
    share = 1e-5 * VARIANCES
    change = twin(VALUES, Y, VARIANCES + share) - twin(VALUES, Y, VARIANCES - share)
    np.testing.assert_allclose(by_variance, change / (2 * share), rtol=1e-5)


def test_what_cannot_be_computed_is_minus_infinity():
    for values, y in ((VALUES, Y * np.inf), (VALUES * np.nan, Y), (VALUES, Y * np.nan)):
        scores, by_variance = np.empty_like(VALUES), np.empty(Y.size)
        assert compiled.log_density(values, y, VARIANCES, GRID.cells) == -np.inf
        found = compiled.log_likelihood(values, y, VARIANCES, GRID.cells, scores, by_variance)
        assert found == -np.inf


# How near the sum over cells is to the integral over w.

# Errors of log p(y_i) over these functions, at every size of the noise: median, and largest.
# That is where y is a few SDs beyond a crest of g: no line is like g there.
ERRORS = {0.5: (3e-4, 1e-3), 0.1: (2e-3, 0.02), 0.02: (2e-3, 0.4)}


@pytest.mark.parametrize("sd", ERRORS)
def test_the_sum_over_cells_is_nearly_the_integral(sd, note):
    errors, variance = {}, np.array([sd**2])
    for name, function in FUNCTIONS.items():
        for y in (-1.3, -0.2, 0.3, 0.9, 1.4):
            _, log_joint, width = on_fine_grid(function, y, sd**2)
            exact = logsumexp(log_joint) + math.log(width)
            if exact > -8.0:  # a case that the function is not far away from
                found = compiled.log_density(
                    function(W)[None], np.array([y]), variance, GRID.cells
                )
                errors[name, y] = abs(found - 0.5 * LOG_2PI - exact)
    note("errors", errors)
    typical, largest = ERRORS[sd]
    assert len(errors) >= 12
    assert np.median(list(errors.values())) < typical
    assert max(errors.values()) < largest


# W given g.


def test_log_shares_are_the_log_of_what_is_drawn_from():
    log_shares, means, sds = mixtures(VALUES, Y, VARIANCES)
    rng = np.random.default_rng(1)
    w = np.empty(Y.size)
    for _ in range(50):
        found = drawn(VALUES, Y, VARIANCES, w, (rng.random(Y.size), rng.standard_normal(Y.size)))
        expected = logsumexp(log_shares + norm.logpdf(w[:, None], means, sds), axis=1)
        np.testing.assert_allclose(found, expected + LOG_2PI, rtol=1e-9, atol=1e-9)
        # Without random numbers w stays, and is told the same.
        again = w.copy()
        assert np.array_equal(drawn(VALUES, Y, VARIANCES, again), found)
        assert np.array_equal(again, w)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_w_is_drawn_from_its_mixture_and_that_is_nearly_the_posterior(name, note):
    """Kolmogorov-Smirnov, four functions: a false alarm in 2,500 sets of seeds."""
    case, n = list(FUNCTIONS).index(name), 4000
    y, variance = np.full(n, Y[case]), np.full(n, VARIANCES[case])
    values, w = np.tile(VALUES[case], (n, 1)), np.empty(n)
    rng = np.random.default_rng([2, case])
    drawn(values, y, variance, w, (rng.random(n), rng.standard_normal(n)))
    log_shares, means, sds = (each[0] for each in mixtures(values[:1], y[:1], variance[:1]))
    shares = np.exp(log_shares - logsumexp(log_shares))

    def cdf(at):
        return ndtr((np.asarray(at)[:, None] - means) / sds) @ shares

    p = kstest(w, cdf).pvalue
    fine, log_joint, _ = on_fine_grid(FUNCTIONS[name], Y[case], VARIANCES[case])
    posterior = np.exp(log_joint - logsumexp(log_joint))
    some = slice(24, None, 25)
    distance = np.abs(np.cumsum(posterior)[some] - cdf(fine[some])).max()
    note("p", p)
    note("largest gap to the posterior", distance)
    assert p > 1e-4
    assert distance < 0.01


# The whole chain: coefficients to density and back.

KERNELS = {
    "default": None,
    "variance": Matern52().on("x")
    + Linear(sd=1.0).on("w") * SquaredExponential(constant=0.5).on("x"),
    "branches": SquaredExponential().on("x") + Sign(sd=0.8).on("w") * SquaredExponential(),
}


def opened_model(kernel, **options):
    """A model, its features somewhere, and coefficients."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(7, 2)), rng.normal(size=7)
    model = LatentCovariate(X, y, kernel, known_sd=np.linspace(0.05, 0.4, 7), **options)
    theta = 0.3 * rng.normal(size=len(model.names))
    state = model.state(model.unknowns(theta, rng.normal(size=7)))
    features = features_of(model, state, 0)
    return model, state, features, rng.standard_normal(features.size)


@pytest.mark.parametrize("name", KERNELS)
def test_gradient_by_coefficients(name):
    model, state, features, flat = opened_model(KERNELS[name])
    variances, by_flat = model.noise_variances(state.theta), np.empty(flat.size)
    density, by_noise = compiled.gradient(
        flat, model.y, variances, GRID.cells, features.basis, by_flat
    )
    # Step by step: features, cells, and back.
    values = features.at_cases(flat) @ features.on_grid.T
    scores, by_variance = np.empty_like(values), np.empty(model.n)
    expected = compiled.log_likelihood(values, model.y, variances, GRID.cells, scores, by_variance)
    assert density == pytest.approx(expected, rel=1e-12)
    assert by_noise == pytest.approx(by_variance.sum(), rel=1e-10)
    np.testing.assert_allclose(by_flat, features.pulled(scores @ features.on_grid), atol=1e-9)
    # And by differences of the twin, along some directions and some single coefficients.
    rng, step = np.random.default_rng(4), 1e-6
    some = rng.choice(flat.size, min(10, flat.size), replace=False)
    for direction in [*np.eye(flat.size)[some], *rng.standard_normal((5, flat.size))]:
        ends = [
            twin(
                features.at_cases(flat + sign * step * direction) @ features.on_grid.T,
                model.y,
                variances,
            ).sum()
            for sign in (1.0, -1.0)
        ]
        assert by_flat @ direction == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=2e-5)


NOISES = {
    "sigma learned": {},
    "another prior": {"priors": {"noise_sd": HalfNormal(0.5)}},
    "known noise alone": {"learned_noise": False},
}


@pytest.mark.parametrize("noise", NOISES)
def test_gradient_of_a_position_and_in_learned_coordinates(noise):
    """With prior and sigma; and in other coordinates, which some information asks for."""
    model, state, *_ = opened_model(None, **NOISES[noise])
    point, target = model.parts["marginal"](state)
    rng = np.random.default_rng(5)
    opened = target.opened(rng, point)
    information = 2.0 * rng.standard_normal((model.n, 6, 6))
    for here, whole in (
        (opened.evaluate(opened.position), None),
        opened.whitened(0.0),
        opened.whitened(information),
    ):
        evaluate = opened.evaluate if whole is None else whole.evaluate
        slope = here.payload if whole is None else whole.gradient(here)
        for direction in rng.standard_normal((6, here.position.size)):
            ends = [
                evaluate(here.position + sign * 1e-6 * direction).log_density
                for sign in (1.0, -1.0)
            ]
            assert slope @ direction == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=2e-4)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("size", [0.02, 50.0])
def test_a_compiled_trajectory_is_the_one_made_leap_by_leap(noise, size):
    """Also where it is given up: steps so long leave the energy behind, or all that is allowed."""
    model, state, *_ = opened_model(None, **NOISES[noise])
    point, target = model.parts["marginal"](state)
    rng = np.random.default_rng(7)
    opened = target.opened(rng, point)
    for information in (0.0, 2.0 * rng.standard_normal((model.n, 6, 6))):
        here, whole = opened.whitened(information)
        momentum = rng.standard_normal(here.position.size)
        if noise == "another prior":
            assert whole.journey is None
            continue
        expected = Hamiltonian()._journey(whole, here, whole.gradient(here), momentum, size, 12)
        before = here.position.copy(), here.payload.payload.copy(), momentum.copy()
        found = whole.journey(here, momentum, size, 12)
        now = here.position, here.payload.payload, momentum
        assert all(map(np.array_equal, before, now))
        assert found.n_leaps == expected.n_leaps
        assert found.log_ratio == pytest.approx(expected.log_ratio, abs=1e-8)
        assert (size < 1.0) == (found.n_leaps == 12) == (found.log_ratio > -math.inf)
        if size < 1.0:
            np.testing.assert_allclose(found.end.position, expected.end.position, atol=1e-9)
            np.testing.assert_allclose(found.gradient, expected.gradient, atol=1e-6)
            end, reached = found.end.payload, expected.end.payload
            np.testing.assert_allclose(end.position, reached.position, atol=1e-9)
            assert end.log_density == pytest.approx(reached.log_density, rel=1e-10)


def test_coordinates_have_the_precision_of_their_docstring():
    """I + sum_i U_i F_i U_i', where everything is informed; and there and back is nothing."""
    model, _, features, _ = opened_model(None)
    rng = np.random.default_rng(6)
    roots = 5.0 * rng.standard_normal((model.n, 6, 6))
    size = features.size + 1
    metric = Metric.at(features, roots, size)
    position = rng.standard_normal(size)
    np.testing.assert_allclose(metric.whitened(metric.coloured(position)), position, atol=1e-9)
    # U_i: how the moments of g(x_i, .) under N(0, 1), and log sigma, depend on a position.
    U = np.zeros((model.n, size, 6))
    for k, unit in enumerate(np.eye(features.size)):
        values = features.at_cases(unit) @ features.on_grid.T
        U[:, k, :5] = (values * GRID.weights) @ GRID.moments.T
    U[:, -1, 5] = 1.0
    told = np.einsum("iab,ibc->ac", U, roots @ roots.transpose(0, 2, 1) @ U.transpose(0, 2, 1))
    precision = np.eye(size) + told
    places = metric.places
    assert places.size > 20
    assert places[-1] == size - 1
    np.testing.assert_allclose(
        metric.lower @ metric.lower.T, precision[np.ix_(places, places)], rtol=1e-8, atol=1e-8
    )
