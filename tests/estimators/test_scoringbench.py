"""The wrapper for ScoringBench: its three methods, and two modes that stay two."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import gplc
from gplc.scoringbench import BASE, GPWrapper, histogram


def two_modes(n, seed):
    """ScoringBench's bimodal problem: y = 3 x +- 10 + N(0, 1.5^2), x uniform on (-1, 1)."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, n)
    y = 3.0 * x + rng.choice([-10.0, 10.0], n) + rng.normal(0.0, 1.5, n)
    return x[:, None], y


def right_log_score(X, y):
    centres = 3.0 * X + [-10.0, 10.0]
    density = np.exp(-0.5 * ((y[:, None] - centres) / 1.5) ** 2).mean(axis=1)
    return -np.log(density / (1.5 * np.sqrt(2.0 * np.pi)))


@pytest.fixture(scope="module")
def fitted():
    estimator = gplc.LatentCovariateGP(chains=1, draws=60, warmup=80, random_state=0)
    return GPWrapper(estimator).fit(*two_modes(80, 7))


def log_scores(found, y):
    """Of the histograms themselves: minus log of probability over width, at y."""
    bins = (found.bin_edges[:, 1:-1] < y[:, None]).sum(axis=1)
    rows = np.arange(len(y))
    return -np.log(found.probas[rows, bins] / np.diff(found.bin_edges, axis=1)[rows, bins])


def test_two_modes_are_found(fitted):
    """How far the score is from that of the truth: 0.19 to 0.41 with 80 rows, in five seeds.

    One Gaussian at each x, with the right mean and SD, is 1.2 from it.
    """
    X, y = two_modes(300, 8)
    found = fitted.predict_distribution(X)
    excess = (log_scores(found, y) - right_log_score(X, y)).mean()
    assert excess < 0.6
    blurred = gplc.Predictive.from_arrays(3.0 * X, np.full_like(X, np.hypot(10.0, 1.5)))
    twin = (log_scores(histogram(blurred), y) - right_log_score(X, y)).mean()
    assert twin > 1.0


def test_histograms_are_whole_and_ours(fitted):
    X, y = two_modes(20, 9)
    found = fitted.predict_distribution(X)
    dist = fitted.estimator_.predict_dist(X)
    np.testing.assert_allclose(found.probas.sum(axis=1), 1.0)
    np.testing.assert_allclose(found.mean, fitted.predict(X))
    np.testing.assert_allclose(
        (found.probas * found.bin_midpoints).sum(axis=1), found.mean, atol=0.01
    )
    np.testing.assert_allclose(log_scores(found, y), -dist.logpdf(y), atol=0.1)
    assert not hasattr(fitted.estimator, "draws_")


def test_the_container_of_scoringbench_is_used_if_there_is_one(fitted, monkeypatch):
    made = []
    parts = BASE.split(".")
    for k in range(1, len(parts) + 1):
        monkeypatch.setitem(sys.modules, ".".join(parts[:k]), ModuleType(parts[k - 1]))
    sys.modules[BASE].DistributionPrediction = lambda **fields: (
        made.append(fields) or SimpleNamespace()
    )
    fitted.predict_distribution([[0.0]])
    assert list(made[0]) == ["probas", "bin_edges", "bin_midpoints", "mean"]
