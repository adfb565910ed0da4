"""Models whose noise is known for each case: against scipy, and against what they are made of."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal, norm

from gplc.models import MODELS, LatentVariance, Standard

X = np.linspace(-1.5, 1.5, 9)[:, None]
SDS = np.geomspace(0.05, 0.5, 9)
rng = np.random.default_rng(3)
Y = np.sin(2.0 * X[:, 0]) + SDS * rng.standard_normal(9)
NEW = np.array([[-1.0], [0.3], [2.5]])


def squared_exponential(a, b, theta):
    return 1.0 + np.exp(2.0 * theta[0] - (a - b.T) ** 2 * np.exp(-2.0 * theta[1]))


@pytest.mark.parametrize("learned", [True, False])
def test_the_standard_model_is_the_textbook_formula(learned):
    model = Standard(X, Y, known_sd=SDS, learned_noise=learned)
    theta = np.array([0.2, -0.3, -1.5])[: 3 if learned else 2]
    sigma = np.exp(theta[2]) if learned else 0.0
    C = squared_exponential(X, X, theta) + np.diag(SDS**2 + sigma**2)
    prior = norm.logpdf(theta, model.priors.means, model.priors.sds).sum()
    exact = multivariate_normal.logpdf(Y, np.zeros(9), C) + prior
    unknowns = model.unknowns(theta)
    assert abs(model.log_density(unknowns) - exact) < 1e-9
    cross = squared_exponential(NEW, X, theta)
    mean = cross @ np.linalg.solve(C, Y)
    left = squared_exponential(NEW, NEW, theta) - cross @ np.linalg.solve(C, cross.T)
    found, variance = model.condition(unknowns).function(NEW)
    np.testing.assert_allclose(found, mean, atol=1e-9)
    np.testing.assert_allclose(variance, np.diag(left), atol=1e-9)
    # Of a new measurement nothing is known but what is learned.
    _, sds = model.condition(unknowns).components(NEW, np.zeros(1))
    np.testing.assert_allclose(sds[:, 0], np.sqrt(np.diag(left) + sigma**2), atol=1e-9)


@pytest.mark.parametrize("key", MODELS)
def test_variances_add(key):
    model, plain = MODELS[key](X, Y, known_sd=SDS), MODELS[key](X, Y)
    unknowns = plain.sample_prior(np.random.default_rng(1))
    added = model.covariance(unknowns) - plain.covariance(unknowns)
    np.testing.assert_allclose(added, np.diag(SDS**2), atol=1e-12)
    assert model.names == plain.names
    # A new case has no part in it.
    nodes = np.zeros(1)
    known, other = model.condition(unknowns), plain.condition(unknowns)
    spread = [each.components(NEW[2:], nodes)[1] ** 2 for each in (known, other)]
    left = [each.function(NEW[2:])[1] for each in (known, other)]
    if key != "gplc":
        np.testing.assert_allclose(spread[0] - left[0], spread[1] - left[1], rtol=1e-9)


@pytest.mark.parametrize("key", MODELS)
def test_gradient_is_that_of_the_density(key):
    model = MODELS[key](X, Y, known_sd=SDS)
    start = np.concatenate(model.sample_prior(np.random.default_rng(2)))
    size = len(model.names)

    def density(vector):
        return model.log_density(model.unknowns(vector[:size], vector[size:]))

    exact = np.concatenate(model.gradient(model.unknowns(start[:size], start[size:])))
    np.testing.assert_allclose(approx_fprime(start, density, 1e-7), exact, rtol=1e-3, atol=1e-3)


def test_function_view_gradient():
    model = MODELS["gplc"](X, Y, known_sd=SDS)
    state = model.state(model.sample_prior(np.random.default_rng(5)))
    point, target = model.parts["marginal"](state)
    opened = target.opened(np.random.default_rng(6), point)
    flat = opened.position
    exact = opened.evaluate(flat).payload
    step = 1e-6 * np.eye(flat.size)[-1]  # log sigma
    ends = [opened.evaluate(flat + sign * step).log_density for sign in (1.0, -1.0)]
    assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(exact[-1], rel=1e-5, abs=1e-5)


def test_equal_known_sds_are_a_fixed_noise():
    sds = np.full(9, 0.3)
    fixed = MODELS["gplc"](X, Y, noise_sd=0.3)
    known = MODELS["gplc"](X, Y, known_sd=sds, learned_noise=False)
    unknowns = fixed.sample_prior(np.random.default_rng(4))
    assert fixed.names == known.names
    assert fixed.log_density(unknowns) == pytest.approx(known.log_density(unknowns), abs=1e-9)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="9 entries, got 2"):
        Standard(X, Y, known_sd=[1.0, 2.0])
    with pytest.raises(ValueError, match="no noise at all"):
        Standard(X, Y, learned_noise=False)
    with pytest.raises(ValueError, match="the standard model"):
        LatentVariance(X, Y, known_sd=SDS, learned_noise=False)
