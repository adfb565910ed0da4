"""Weights of components and of draws, against NumPy and SciPy written out."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import kstest, norm

import gplc
from gplc import metrics
from gplc.components import ArrayComponents, ShiftedComponents
from gplc.posterior import (
    FunctionComponents,
    Posterior,
    ResponseComponents,
    _quantiles,
    residual_band,
)
from gplc.predictive import Predictive

Q = np.array([1e-9, 0.01, 0.3, 0.5, 0.9, 1 - 1e-6])
ROWS = 3


class Mixture(NamedTuple):
    means: np.ndarray
    sds: np.ndarray
    weights: np.ndarray


def make_mixture(components: int) -> Mixture:
    """Skewed rows; the heaviest weights are hundreds of times the lightest."""
    rng = np.random.default_rng(components)
    shape = (ROWS, components)
    weights = rng.exponential(size=components) ** 2
    means = np.exp(0.5 * rng.standard_normal(shape)) + 2.0 * (weights > np.median(weights))
    return Mixture(means, 0.2 * np.exp(0.5 * rng.standard_normal(shape)), weights / weights.sum())


@pytest.fixture(params=[1, 2, 7, 60, 300])
def mixture(request) -> Mixture:
    return make_mixture(request.param)


def places(mixture: Mixture) -> np.ndarray:
    """(n, k) values of y, from the middle to where only logs are not 0 or 1."""
    centre = mixture.means @ mixture.weights
    return centre[:, None] + np.array([-60.0, -5.0, -1.0, 0.0, 0.4, 3.0, 60.0])


# The twin: every question answered by brute force.


def log_average(mixture: Mixture, function: Callable[..., np.ndarray]) -> np.ndarray:
    """Log of the weighted mean of exp(function)."""
    y = places(mixture)[:, :, None]
    values = function(y, mixture.means[:, None, :], mixture.sds[:, None, :])
    return logsumexp(values, axis=2, b=mixture.weights)


def twin_moments(mixture: Mixture) -> np.ndarray:
    centre = mixture.means @ mixture.weights
    d, v = mixture.means - centre[:, None], mixture.sds**2
    second = (d**2 + v) @ mixture.weights
    third = (d**3 + 3 * d * v) @ mixture.weights
    fourth = (d**4 + 6 * d**2 * v + 3 * v**2) @ mixture.weights
    return np.array([centre, np.sqrt(second), third / second**1.5, fourth / second**2 - 3])


def twin_crps(mixture: Mixture) -> np.ndarray:
    def expected_absolute(mean, sd):
        return mean * (2 * norm.cdf(mean / sd) - 1) + 2 * sd * norm.pdf(mean / sd)

    w = mixture.weights
    rows = zip(places(mixture), mixture.means, mixture.sds, strict=True)
    return np.array(
        [
            expected_absolute(y[:, None] - means, sds) @ w
            - 0.5 * w @ expected_absolute(means[:, None] - means, np.hypot(sds[:, None], sds)) @ w
            for y, means, sds in rows
        ]
    )


def twin_quantiles(mixture: Mixture, q: np.ndarray = Q) -> np.ndarray:
    """Roots by plain halving of the smaller tail's log."""

    def log_tails(y, function):
        values = function(y[:, :, None], mixture.means[:, None, :], mixture.sds[:, None, :])
        return logsumexp(values, axis=2, b=mixture.weights)

    low = np.full((ROWS, q.size), -1e3)
    high = np.full((ROWS, q.size), 1e3)
    for _ in range(100):
        middle = 0.5 * (low + high)
        below = np.where(
            q <= 0.5,
            log_tails(middle, norm.logcdf) < np.log(q),
            log_tails(middle, norm.logsf) > np.log1p(-q),
        )
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high


def twin_summary(mixture: Mixture) -> np.ndarray:
    ends = twin_quantiles(mixture, np.array([0.1, 0.9]))
    return np.vstack([twin_moments(mixture)[:2], ends.T])


def at_places(name: str) -> Callable[[Predictive, Mixture], np.ndarray]:
    return lambda dist, mixture: getattr(dist, name)(places(mixture))


Question = tuple[Callable[[Predictive, Mixture], Any], Callable[[Mixture], np.ndarray]]
QUESTIONS: dict[str, Question] = {
    "moments": (lambda dist, _: dist.moments(), twin_moments),
    "mean": (lambda dist, _: dist.mean(), lambda mixture: twin_moments(mixture)[0]),
    "var": (lambda dist, _: dist.var(), lambda mixture: twin_moments(mixture)[1] ** 2),
    "std": (lambda dist, _: dist.std(), lambda mixture: twin_moments(mixture)[1]),
    "skewness": (lambda dist, _: dist.skewness(), lambda mixture: twin_moments(mixture)[2]),
    "kurtosis": (lambda dist, _: dist.kurtosis(), lambda mixture: twin_moments(mixture)[3]),
    "logpdf": (at_places("logpdf"), lambda mixture: log_average(mixture, norm.logpdf)),
    "pdf": (at_places("pdf"), lambda mixture: np.exp(log_average(mixture, norm.logpdf))),
    "cdf": (at_places("cdf"), lambda mixture: np.exp(log_average(mixture, norm.logcdf))),
    "sf": (at_places("sf"), lambda mixture: np.exp(log_average(mixture, norm.logsf))),
    "logcdf": (at_places("logcdf"), lambda mixture: log_average(mixture, norm.logcdf)),
    "logsf": (at_places("logsf"), lambda mixture: log_average(mixture, norm.logsf)),
    "crps": (at_places("crps"), twin_crps),
    "quantile": (lambda dist, _: dist.quantile(Q), twin_quantiles),
    "interval": (
        lambda dist, _: dist.interval(0.8),
        lambda mixture: twin_quantiles(mixture, np.array([0.1, 0.9])),
    ),
    "summary": (lambda dist, _: dist.summary(0.8), twin_summary),
    "components": (
        lambda dist, _: [*dist.components(), np.tile(dist.weights, (ROWS, 1))],
        lambda mixture: np.array([*mixture[:2], np.tile(mixture.weights, (ROWS, 1))]),
    ),
}


def test_every_method_has_a_twin():
    methods = {name for name, value in vars(Predictive).items() if callable(value)}
    public = {name for name in methods if not name.startswith("_")}
    # A curve to look at is made of such a mixture; its own test is with the predictive ones.
    assert public == set(QUESTIONS) | {"sample", "ppf", "smooth_pdf"}


def answers(name: str, dist: Predictive, mixture: Mixture) -> np.ndarray:
    return np.array(QUESTIONS[name][0](dist, mixture))


def check(name: str, dist: Predictive, mixture: Mixture) -> None:
    expected = QUESTIONS[name][1](mixture)
    np.testing.assert_allclose(answers(name, dist, mixture), expected, rtol=2e-9, atol=1e-13)


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_answer_is_the_twins(name, mixture):
    check(name, Predictive.from_arrays(*mixture), mixture)


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("components", [7, 60, 300])
def test_ignoring_the_weights_is_found_out(name, components):
    mixture = make_mixture(components)
    with pytest.raises(AssertionError):
        check(name, Predictive.from_arrays(*mixture[:2]), mixture)


@pytest.mark.parametrize("name", QUESTIONS)
def test_equal_weights_are_no_weights(name, mixture):
    y_of = mixture._replace(weights=np.full_like(mixture.weights, 1 / mixture.weights.size))
    without = answers(name, Predictive.from_arrays(*mixture[:2]), y_of)
    ones = Predictive.from_arrays(*mixture[:2], weights=np.full(mixture.weights.size, 0.3))
    np.testing.assert_allclose(answers(name, ones, y_of), without, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("name", [name for name in QUESTIONS if name != "components"])
def test_whole_weights_repeat_a_component(name, mixture):
    times = np.random.default_rng(2).integers(1, 5, mixture.weights.size)
    mixture = mixture._replace(weights=times / times.sum())
    weighted = Predictive.from_arrays(*mixture[:2], weights=times)
    repeated = Predictive.from_arrays(*(np.repeat(x, times, axis=1) for x in mixture[:2]))
    # Above 256 components the CRPS is a quadrature, right to 1e-9.
    np.testing.assert_allclose(
        answers(name, weighted, mixture),
        answers(name, repeated, mixture),
        rtol=3e-9 if name == "crps" else 1e-12,
        atol=1e-13,
    )


@pytest.mark.parametrize("place", [0, 3, 7])
@pytest.mark.parametrize("weight", [0.0, 1e-70])
def test_a_component_without_weight_does_not_matter_wherever_it_is(place, weight):
    mixture = make_mixture(7)
    means = np.insert(mixture.means, place, [1e300, -1e300, 0.0], axis=1)
    sds = np.insert(mixture.sds, place, [1e-300, 1e300, 1e-300], axis=1)
    weights = np.insert(mixture.weights, place, weight)
    dist = Predictive.from_arrays(means, sds, weights)
    assert dist.n_components == 7
    without = Predictive.from_arrays(*mixture)
    for name in QUESTIONS:
        np.testing.assert_allclose(
            answers(name, dist, mixture), answers(name, without, mixture), 1e-13, err_msg=name
        )
    np.testing.assert_array_equal(dist.sample(9, 0), without.sample(9, 0))


def test_light_components_far_out_keep_their_place():
    # Of weight 1e-40 at 1e50: nothing of the mean, all of the variance, and of the far tail.
    dist = Predictive.from_arrays([[0.0, 1e50]], [[1.0, 1.0]], weights=[1.0, 1e-40])
    mean, std, skewness, kurtosis = (float(moment[0]) for moment in dist.moments())
    np.testing.assert_allclose([mean, std], [1e10, 1e30], rtol=1e-12)
    np.testing.assert_allclose([skewness, kurtosis], [1e20, 1e40], rtol=1e-12)
    np.testing.assert_allclose(dist.logsf(1e49), np.log(1e-40), rtol=1e-12)
    np.testing.assert_allclose(dist.quantile([0.5, 0.975]), [norm.ppf([0.5, 0.975])], atol=1e-14)
    mirrored = Predictive.from_arrays([[0.0, -1e50]], [[1.0, 1.0]], weights=[1.0, 1e-40])
    np.testing.assert_allclose(mirrored.quantile(1e-41), [-1e50], rtol=1e-15)


def test_weights_need_not_have_any_particular_sum(mixture):
    dist = Predictive.from_arrays(*mixture)
    for factor in (1e-300, 1e300, 7.0):
        other = Predictive.from_arrays(*mixture[:2], weights=factor * mixture.weights)
        np.testing.assert_allclose(other.weights, mixture.weights, rtol=1e-14)
        np.testing.assert_allclose(other.quantile(Q), dist.quantile(Q), rtol=1e-11, atol=1e-13)


def test_samples_come_from_the_weighted_mixture():
    mixture = make_mixture(20)
    dist = Predictive.from_arrays(*mixture)
    equal = Predictive.from_arrays(*mixture[:2])
    draws = dist.sample(5000, random_state=11)
    for row in range(ROWS):
        # False alarm 1 in 10,000 for each row and a fresh seed; equal weights are found out.
        assert kstest(draws[row], lambda y, row=row: dist[row].cdf(y[None])[0]).pvalue > 1e-4
        assert kstest(draws[row], lambda y, row=row: equal[row].cdf(y[None])[0]).pvalue < 1e-4


def test_rows_and_blocks_keep_their_weights(monkeypatch):
    mixture = make_mixture(60)
    whole = Predictive.from_arrays(*mixture)
    expected, draws = whole.summary(), whole.sample(5, 0)
    monkeypatch.setattr("gplc.components.BLOCK_COMPONENTS", 60)
    monkeypatch.setattr("gplc.components.KEPT_COMPONENTS", 0)
    dist = Predictive.from_arrays(*mixture)
    np.testing.assert_array_equal(dist.summary(), expected)
    np.testing.assert_array_equal(dist.sample(5, 0), draws)
    np.testing.assert_array_equal(dist[1].weights, whole.weights)
    np.testing.assert_array_equal(dist[[2, 0]].summary().upper, expected.upper[[2, 0]])


def test_metrics_use_the_weights():
    mixture = make_mixture(60)
    dist, y = Predictive.from_arrays(*mixture), np.array([0.5, 1.5, 4.0])
    densities = norm.pdf(y[:, None], *mixture[:2]) @ mixture.weights
    assert metrics.nlpd(dist, y) == pytest.approx(-np.log(densities).mean(), rel=1e-12)
    errors = mixture.means @ mixture.weights - y
    assert metrics.mse(dist, y) == pytest.approx((errors**2).mean(), rel=1e-12)
    np.testing.assert_allclose(
        metrics.pit(dist, y), norm.cdf(y[:, None], *mixture[:2]) @ mixture.weights, rtol=1e-12
    )


# Sources


def test_a_shift_keeps_weights_and_short_cuts():
    mixture = make_mixture(7)

    class Cheap(ArrayComponents):
        def component_means(self, rows):
            return self.means[rows]

    offsets = np.array([1.0, 2.0, 3.0])
    for source in (ArrayComponents(*mixture), Cheap(*mixture), Cheap(*mixture[:2], None)):
        shifted = Predictive(ShiftedComponents(source, offsets))
        expected = Predictive(source).mean() + offsets
        np.testing.assert_allclose(shifted.mean(), expected, rtol=1e-14)
        np.testing.assert_allclose(shifted.moments().mean, expected, rtol=1e-14)


BAD_WEIGHTS = [
    ([1.0, -0.5], "at least 0, got -0.5"),
    ([1.0, np.nan], "finite"),
    ([np.inf, 1.0], "finite"),
    ([1.0], r"shape \(2,\)"),
    ([1.0, 1.0, 1.0], r"shape \(2,\)"),
    ([[1.0, 1.0]], r"shape \(2,\)"),
    (1.0, r"shape \(2,\)"),
    ([0.0, 0.0], "all 0"),
    (["a", "b"], "real numbers"),
    ([10**400, 1], "too large"),
]


@pytest.mark.parametrize(("weights", "message"), BAD_WEIGHTS)
def test_bad_weights(weights, message):
    with pytest.raises(ValueError, match=message) as caught:
        Predictive.from_arrays([[0.0, 1.0]], [[1.0, 1.0]], weights)
    assert "\n" not in str(caught.value)

    class Source(ArrayComponents):
        pass

    source = Source([[0.0, 1.0]], [[1.0, 1.0]])
    source.weights = weights
    with pytest.raises(ValueError, match=message):
        Predictive(source)


# Draws

X = np.linspace(-1.0, 1.0, 12)[:, None]
NEW = np.array([[-0.3], [0.2], [1.4]])


@pytest.fixture(
    scope="module", params=[gplc.StandardGP, gplc.LatentCovariateGP, gplc.LatentVarianceGP]
)
def fitted(request) -> Any:
    y = np.sin(2.0 * X[:, 0]) + 0.2 * np.random.default_rng(0).standard_normal(12)
    settings = {"chains": 1, "draws": 6, "warmup": 5, "nodes": 4, "random_state": 1}
    return request.param(**settings).fit(X, y)


TIMES = np.array([3, 1, 0, 2, 1, 5])


@pytest.mark.parametrize("kind", [ResponseComponents, FunctionComponents])
def test_weights_of_draws_repeat_them(fitted, kind):
    draws = fitted.draws_.thinned(None)
    weighted = Posterior(fitted.model_, draws, weights=TIMES)
    assert len(weighted) == 5  # one has no weight
    repeated = Posterior(
        fitted.model_, [draw for draw, k in zip(draws, TIMES, strict=True) for _ in range(k)]
    )
    one, other = (Predictive(kind(posterior, NEW)) for posterior in (weighted, repeated))
    assert one.weights.sum() == pytest.approx(1.0, rel=1e-14)
    np.testing.assert_allclose(one.mean(), other.mean(), rtol=1e-10)
    np.testing.assert_allclose(one.moments(), other.moments(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(one.quantile(Q), other.quantile(Q), rtol=1e-9)
    plain = Predictive(kind(Posterior(fitted.model_, draws), NEW))
    assert not np.allclose(one.mean(), plain.mean(), rtol=1e-6)


def test_the_band_of_residual_sds_has_the_weights(fitted):
    draws, ends = fitted.draws_.thinned(None), np.array([0.0, 0.25, 1.0])
    plain = residual_band(Posterior(fitted.model_, draws), NEW, ends)
    even = residual_band(Posterior(fitted.model_, draws, weights=np.full(6, 2.0)), NEW, ends)
    np.testing.assert_allclose(even, plain, rtol=1e-12)
    weighted = residual_band(Posterior(fitted.model_, draws, weights=TIMES), NEW, ends)
    alone = [residual_band(Posterior(fitted.model_, [draw]), NEW, ends)[0] for draw in draws]
    np.testing.assert_allclose(weighted[0], TIMES @ np.array(alone) / TIMES.sum(), rtol=1e-12)
    np.testing.assert_allclose(weighted[1], np.min(np.array(alone)[TIMES > 0], axis=0))
    one = residual_band(Posterior(fitted.model_, draws, weights=np.eye(6)[2]), NEW, ends)
    np.testing.assert_allclose(one, np.tile(alone[2], (4, 1)))


def test_weighted_quantiles_of_numbers():
    rng = np.random.default_rng(3)
    values, weights, q = rng.standard_normal((2, 500)), rng.exponential(size=500), Q[1:-1]
    got = _quantiles(values, q, weights / weights.sum())
    for row in range(2):
        below = [weights[values[row] <= value].sum() / weights.sum() for value in got[:, row]]
        # Within the weight of the two values between which it lies.
        assert np.abs(below - q).max() < 2 * weights.max() / weights.sum()
    np.testing.assert_allclose(
        _quantiles(values, q, np.full(500, 1 / 500)), np.quantile(values, q, axis=1), rtol=1e-10
    )


def test_a_value_stands_in_the_middle_of_its_weight():
    values, weights = np.array([[0.0, 1.0, 3.0]]), np.array([0.2, 0.5, 0.3])
    middles = np.array([0.1, 0.45, 0.85])  # of the weights, one beside the other
    q = (middles - 0.1) / 0.75  # the first is at 0, the last at 1
    np.testing.assert_allclose(_quantiles(values, q, weights)[:, 0], [0.0, 1.0, 3.0], atol=1e-12)


def test_bad_weights_of_draws(fitted):
    draws = fitted.draws_.thinned(None)
    for weights, message in (([1.0], r"shape \(6,\)"), (-TIMES, "at least 0"), ([0] * 6, "all 0")):
        with pytest.raises(ValueError, match=message):
            Posterior(fitted.model_, draws, weights=weights)
