"""Metrics against their formulas written out with SciPy."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import kstest, norm

from gplc import metrics
from gplc.components import ArrayComponents
from gplc.predictive import Predictive


@pytest.fixture
def components() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((40, 25)), np.exp(0.5 * rng.standard_normal((40, 25)))


@pytest.fixture
def dist(components) -> Predictive:
    return Predictive.from_arrays(*components)


@pytest.fixture
def y() -> np.ndarray:
    return 1.5 * np.random.default_rng(1).standard_normal(40)


def test_nlpd_is_the_papers_equation(components, dist, y):
    densities = norm.pdf(y[:, None], *components)
    assert metrics.nlpd(dist, y) == pytest.approx(
        -np.log(densities.mean(axis=1)).mean(), rel=1e-12
    )


def test_nlpd_does_not_underflow(components, dist):
    y = np.full(40, 1e4)
    expected = -(logsumexp(norm.logpdf(y[:, None], *components), axis=1) - np.log(25)).mean()
    assert np.isfinite(metrics.nlpd(dist, y))
    assert metrics.nlpd(dist, y) == pytest.approx(expected, rel=1e-12)


def test_mse_is_the_papers_equation(components, dist, y):
    expected = ((components[0].mean(axis=1) - y) ** 2).mean()
    assert metrics.mse(dist, y) == pytest.approx(expected, rel=1e-13)
    assert metrics.rmse(dist, y) == pytest.approx(np.sqrt(expected), rel=1e-13)


def test_rmse_is_right_where_mse_is_not():
    dist = Predictive(ArrayComponents([[1.0], [2.0]], [[1.0], [1.0]]), scale=1e200)
    assert metrics.mse(dist, [0.0, 0.0]) == np.inf
    assert metrics.rmse(dist, [0.0, 0.0]) == pytest.approx(1e200 * np.sqrt(2.5))
    assert metrics.rmse(dist, dist.mean()) == 0


def test_crps_is_the_mean_of_the_rows(dist, y):
    assert metrics.crps(dist, y) == pytest.approx(dist.crps(y).mean(), rel=1e-15)


def test_crps_of_a_certain_prediction_is_the_absolute_error(y):
    dist = Predictive.from_arrays(np.zeros((40, 1)), np.full((40, 1), 1e-12))
    assert metrics.crps(dist, y) == pytest.approx(np.abs(y).mean(), rel=1e-10)


def test_pit_is_the_cdf(components, dist, y):
    np.testing.assert_allclose(
        metrics.pit(dist, y), norm.cdf(y[:, None], *components).mean(axis=1), rtol=1e-12
    )


def test_coverage_counts_what_the_intervals_hold(dist, y):
    for probability in (0.2, 0.5, 0.9):
        lower, upper = dist.interval(probability).T
        expected = ((lower <= y) & (y <= upper)).mean()
        assert metrics.coverage(dist, y, coverage=probability) == expected
    assert metrics.coverage(dist, y) == metrics.coverage(dist, y, 0.9)


def test_interval_score_is_the_formula(dist, y):
    score = 0.0
    for row, observed in zip(dist, y, strict=True):
        lower, upper = row.interval(0.8)[0]
        score += upper - lower
        if observed < lower:
            score += 2 / 0.2 * (lower - observed)
        if observed > upper:
            score += 2 / 0.2 * (observed - upper)
    assert metrics.interval_score(dist, y, coverage=0.8) == pytest.approx(score / 40, rel=1e-12)


def test_the_truth_scores_best():
    # 4,000 rows from a skewed mixture. Against each rival the mean difference of the scores is
    # more than 3 of its SDs above 0 in expectation, so a false alarm is below 1 in 700.
    rng = np.random.default_rng(4)
    means = np.tile(np.exp(np.linspace(-1.5, 1.5, 30)), (4000, 1))
    truth = Predictive.from_arrays(means, np.full_like(means, 0.2))
    y = truth.sample(random_state=rng)[:, 0]
    matched = Predictive.from_arrays(truth.mean()[:, None], truth.std()[:, None])
    too_wide = Predictive.from_arrays(means, np.full_like(means, 0.8))
    shifted = Predictive.from_arrays(means + 0.4, np.full_like(means, 0.2))
    for score in (metrics.nlpd, metrics.crps, metrics.interval_score):
        best = score(truth, y)
        for rival in (matched, too_wide, shifted):
            assert best < score(rival, y), score.__name__
    # 1 in 1,000 for a fresh seed; the matched Gaussian is found out.
    assert kstest(metrics.pit(truth, y), "uniform").pvalue > 1e-3
    assert kstest(metrics.pit(matched, y), "uniform").pvalue < 1e-3
    # SD of the coverage 0.0047; 4 SD, 1 in 16,000.
    assert metrics.coverage(truth, y) == pytest.approx(0.9, abs=0.019)


METRICS = (
    metrics.nlpd,
    metrics.mse,
    metrics.rmse,
    metrics.crps,
    metrics.pit,
    metrics.coverage,
    metrics.interval_score,
)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.__name__)
def test_result_types_and_bad_input(metric, dist, y):
    result = metric(dist, y)
    if metric is metrics.pit:
        assert result.shape == (40,)
    else:
        assert type(result) is float
    assert np.array_equal(metric(dist, list(y)), result)
    for wrong, message in (
        (y[:-1], r"has shape \(39,\), but dist has 40 rows"),
        (y[:, None], r"has shape \(40, 1\)"),
        (1.0, r"has shape \(\)"),
        (np.where(np.arange(40) == 7, np.nan, y), "is nan in row 7"),
        (np.where(np.arange(40) == 3, np.inf, y), "is inf in row 3"),
        (["a"] * 40, "real numbers"),
        (1j * y, "real numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            metric(dist, wrong)
    with pytest.raises(ValueError, match="no rows"):
        metric(dist[:0], y[:0])
    with pytest.raises(TypeError, match="dist must be a Predictive, got ndarray"):
        metric(y, y)


def test_bad_coverage(dist, y):
    for metric in (metrics.coverage, metrics.interval_score):
        with pytest.raises(ValueError, match="coverage must be between 0 and 1"):
            metric(dist, y, coverage=90)
