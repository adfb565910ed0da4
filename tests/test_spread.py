"""Sizes of residuals along the inputs: what chance does, what is seen, and wrong twins."""

import numpy as np
import pytest

from gplc.checks import spread
from gplc.checks.spread import spread_along_inputs

LEVEL, SETS = 0.1, 300
# A right test says "yes" in 10% of sets: 3.3 SDs of a count on either side, so that one run in a
# thousand would fail by chance (the seeds are fixed).
MARGIN = 3.3 * np.sqrt(LEVEL * (1.0 - LEVEL) / SETS)


@pytest.fixture(autouse=True)
def fewer_orders(monkeypatch):
    monkeypatch.setattr(spread, "PERMUTATIONS", 199)


def share_found(made, sets=SETS, inputs=1, test=spread_along_inputs, n=60):
    """How often the test finds that sizes vary, in sets whose residuals `made` gives."""
    rng = np.random.default_rng(3)
    found = 0
    for _ in range(sets):
        X = rng.standard_normal((n, inputs))
        found += test(X, made(rng, X)) <= LEVEL
    return found / sets


def gaussian(rng, X):
    return rng.standard_normal(len(X))


def heavy(rng, X):
    return rng.standard_t(3, len(X))


def skewed(rng, X):
    return rng.exponential(size=len(X)) - 1.0


@pytest.mark.parametrize("noise", [gaussian, heavy, skewed])
@pytest.mark.parametrize("inputs", [1, 3])
def test_the_same_noise_everywhere_is_found_to_vary_as_often_as_said(noise, inputs):
    assert share_found(noise, inputs=inputs) == pytest.approx(LEVEL, abs=MARGIN)


def test_a_p_value_from_the_normal_theory_of_correlations_is_caught():
    """A twin that takes the best of several correlations with powers of x, as if it were one."""
    from scipy.stats import pearsonr

    def twin(X, scores):
        return min(pearsonr(X[:, 0] ** power, abs(scores)).pvalue for power in (1, 2, 3))

    assert share_found(gaussian, test=twin) > LEVEL + MARGIN


def test_rows_that_are_counted_twice_are_caught():
    """A twin that gives neighbours one size: orders then change what they should leave alone."""

    def twin(X, scores):
        order = np.argsort(X[:, 0])
        return spread_along_inputs(X[order], np.repeat(scores[order][::2], 2))

    assert share_found(gaussian, test=twin) > LEVEL + MARGIN


def slope(x):
    return 0.7 * x


def bump(x):
    return 1.5 * np.exp(-0.5 * x**2)


# In sets of 100 rows. A bump along one of three inputs is hard to see: 58% of 60 sets.
@pytest.mark.parametrize(
    ("log_sd", "inputs", "at_least"),
    [(slope, 1, 0.8), (slope, 3, 0.8), (bump, 1, 0.8), (bump, 3, 0.4)],
)
def test_noise_that_varies_is_found(log_sd, inputs, at_least):
    def varying(rng, X):
        return np.exp(log_sd(X[:, 0])) * rng.standard_normal(len(X))

    assert share_found(varying, sets=60, inputs=inputs, n=100) > at_least


def test_signs_of_residuals_do_not_count():
    rng = np.random.default_rng(0)
    X, scores = rng.standard_normal((50, 2)), rng.standard_normal(50)
    assert spread_along_inputs(X, scores) == spread_along_inputs(X, -np.abs(scores))


def test_edges():
    """Sizes that are all the same say nothing, many rows are thinned, and nothing is random."""
    X = np.linspace(-1.0, 1.0, 30)[:, None]
    assert spread_along_inputs(X, np.ones(30)) == 1.0
    assert spread_along_inputs(X[:1], np.ones(1)) == 1.0
    assert spread_along_inputs(np.zeros((30, 1)), np.arange(30.0)) > 0.0
    rng = np.random.default_rng(0)
    X = rng.standard_normal((9001, 1))
    scores = np.exp(0.2 * X[:, 0]) * rng.standard_normal(9001)
    assert spread_along_inputs(X, scores) == spread_along_inputs(X, scores) == 1.0 / 200.0
