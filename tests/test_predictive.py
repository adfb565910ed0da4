"""Mixtures of Gaussians against SciPy."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import erfcx, logsumexp, ndtri
from scipy.stats import kstest, norm

from gplc._compiled import exponential, mixture_crps, mixture_quantiles, normal
from gplc.components import ArrayComponents
from gplc.predictive import Predictive


class Case(NamedTuple):
    means: np.ndarray
    sds: np.ndarray


def make_case(name: str, rows: int = 4, components: int = 60) -> Case:
    rng = np.random.default_rng(abs(sum(map(ord, name))))
    shape = (rows, components)
    normal = rng.standard_normal(shape)
    match name:
        case "near-gaussian":
            return Case(0.1 * normal, np.exp(0.1 * rng.standard_normal(shape)))
        case "skewed":
            return Case(np.exp(0.5 * normal), 0.1 * np.exp(0.2 * rng.standard_normal(shape)))
        case "heavy-tailed":
            return Case(0.1 * normal, np.exp(2 * rng.standard_normal(shape)))
        case "two-modes":
            return Case(50 * np.sign(normal) + 0.1 * normal, np.full(shape, 0.5))
        case "mixed-scales":
            return Case(normal, 10.0 ** rng.uniform(-8, 3, shape))
        case "far-from-zero":
            return Case(1e6 + normal, 0.2 * np.exp(0.3 * rng.standard_normal(shape)))
        case "one-component":
            return Case(normal[:, :1], np.exp(rng.standard_normal((rows, 1))))
    raise KeyError(name)


CASES = (
    "near-gaussian",
    "skewed",
    "heavy-tailed",
    "two-modes",
    "mixed-scales",
    "far-from-zero",
    "one-component",
)


@pytest.fixture(params=CASES)
def case(request) -> Case:
    return make_case(request.param)


def each_row(case: Case, y: np.ndarray, function) -> np.ndarray:
    """Evaluate function(y, means, sds) of every component: (n, k, M)."""
    return function(y[:, :, None], case.means[:, None, :], case.sds[:, None, :])


def places(case: Case) -> np.ndarray:
    """(n, k) values of y: in the middle, between components and up to 30 SD out."""
    centre = case.means.mean(axis=1, keepdims=True)
    sd = np.sqrt((case.sds**2).mean(axis=1, keepdims=True) + case.means.var(axis=1, keepdims=True))
    steps = np.array([-30, -8, -3, -1, -0.1, 0, 0.3, 1, 2.5, 6, 30])
    return np.hstack([centre + sd * steps, case.means[:, :1], case.means[:, :1] + case.sds[:, :1]])


# Against SciPy


def test_densities_and_probabilities_match_scipy(case):
    dist = Predictive.from_arrays(*case)
    y = places(case)
    m = case.means.shape[1]
    log_density = logsumexp(each_row(case, y, norm.logpdf), axis=2) - np.log(m)
    np.testing.assert_allclose(dist.logpdf(y), log_density, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(dist.pdf(y), np.exp(log_density), rtol=1e-10, atol=0)
    np.testing.assert_allclose(dist.cdf(y), each_row(case, y, norm.cdf).mean(axis=2), rtol=1e-10)
    np.testing.assert_allclose(dist.sf(y), each_row(case, y, norm.sf).mean(axis=2), rtol=1e-10)
    for ours, theirs in ((dist.logcdf, norm.logcdf), (dist.logsf, norm.logsf)):
        expected = logsumexp(each_row(case, y, theirs), axis=2) - np.log(m)
        np.testing.assert_allclose(ours(y), expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("far", [30.0, 37.0, 39.0, 41.0, 100.0, 1e3, 1e8, 1e150])
@pytest.mark.parametrize("sign", [-1, 1])
def test_deep_tails_neither_underflow_nor_become_nan(far, sign):
    case = Case(np.array([[0.0, 0.3, -0.2]]), np.array([[1.0, 0.5, 1.0]]))
    dist = Predictive.from_arrays(*case)
    y = np.array([[sign * far]])
    for ours, theirs in (
        (dist.logpdf, norm.logpdf),
        (dist.logcdf, norm.logcdf),
        (dist.logsf, norm.logsf),
    ):
        expected = logsumexp(each_row(case, y, theirs), axis=2) - np.log(3)
        assert np.isfinite(ours(y)).all()
        # SciPy's sum of logs near 0 is rounded to 2e-16; ours is not, see below.
        np.testing.assert_allclose(ours(y), expected, rtol=1e-10, atol=1e-15)
    if far <= 37:
        np.testing.assert_allclose(dist.logcdf(far), -dist.sf(far), rtol=1e-14, atol=0)


def test_infinite_and_absurd_y():
    dist = Predictive.from_arrays([[0.0, 1.0]], [[1.0, 1e-3]])
    ends = [[-np.inf, -1e300, 1e300, np.inf]]
    np.testing.assert_array_equal(dist.logpdf(ends), np.full((1, 4), -np.inf))
    np.testing.assert_array_equal(dist.pdf(ends), np.zeros((1, 4)))
    np.testing.assert_array_equal(dist.cdf(ends), [[0, 0, 1, 1]])
    np.testing.assert_array_equal(dist.sf(ends), [[1, 1, 0, 0]])
    np.testing.assert_array_equal(dist.logcdf(ends), [[-np.inf, -np.inf, 0, 0]])
    np.testing.assert_array_equal(dist.crps(ends)[0, [0, 3]], [np.inf, np.inf])


def test_moments_are_those_of_the_components(case):
    moments = Predictive.from_arrays(*case).moments()
    # The laws of total expectation and variance, in extended precision where there is one.
    means, sds = case.means.astype(np.longdouble), case.sds.astype(np.longdouble)
    centre = means.mean(axis=1)
    d = means - centre[:, None]
    second = (d**2 + sds**2).mean(axis=1)
    third = (d**3 + 3 * d * sds**2).mean(axis=1)
    fourth = (d**4 + 6 * d**2 * sds**2 + 3 * sds**4).mean(axis=1)
    # Each mean_j - centre is rounded to the size of the components, whatever they cancel to.
    rounding = 4e-16 * np.abs(case.means).max()
    np.testing.assert_allclose(moments.mean, centre.astype(float), rtol=0, atol=rounding)
    np.testing.assert_allclose(moments.std, np.sqrt(second).astype(float), rtol=2e-15)
    # Rounding the mean to float64 moves it by up to 1e-10 near 1e6, and skewness with it.
    np.testing.assert_allclose(moments.skewness, (third / second**1.5).astype(float), atol=1e-9)
    np.testing.assert_allclose(moments.kurtosis, (fourth / second**2 - 3).astype(float), atol=1e-9)


def test_single_moments_agree_with_moments(case):
    dist = Predictive.from_arrays(*case)
    mean, std, skewness, kurtosis = dist.moments()
    np.testing.assert_array_equal(dist.mean(), mean)
    np.testing.assert_array_equal(dist.std(), std)
    np.testing.assert_array_equal(dist.var(), std**2)
    np.testing.assert_array_equal(dist.skewness(), skewness)
    np.testing.assert_array_equal(dist.kurtosis(), kurtosis)


def test_a_gaussian_has_the_moments_of_a_gaussian():
    mean, std, skewness, kurtosis = Predictive.from_arrays([[3.0] * 7], [[2.0] * 7]).moments()
    np.testing.assert_allclose([mean[0], std[0]], [3, 2], rtol=1e-15)
    np.testing.assert_allclose([skewness[0], kurtosis[0]], [0, 0], atol=1e-14)


def test_moments_by_numerical_integration():
    case = make_case("skewed", rows=1, components=5)
    dist = Predictive.from_arrays(*case)

    def central(power: int) -> float:
        def integrand(y):
            return (y - mean) ** power * norm.pdf(y, case.means[0], case.sds[0]).mean()

        return quad(integrand, -3, 8, points=case.means[0], epsabs=1e-13, limit=200)[0]

    mean = dist.mean()[0]
    assert dist.var()[0] == pytest.approx(central(2), rel=1e-10)
    assert dist.skewness()[0] == pytest.approx(central(3) / central(2) ** 1.5, rel=1e-9)
    assert dist.kurtosis()[0] == pytest.approx(central(4) / central(2) ** 2 - 3, rel=1e-9)


# Quantiles

Q = np.array([1e-12, 1e-6, 0.01, 0.05, 0.25, 0.5, 0.6, 0.9, 0.975, 1 - 1e-6, 1 - 1e-12])


def tail_error(dist: Predictive, roots: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Relative error of the smaller of cdf and 1 - cdf at the roots, beyond what rounding y costs.

    A root can only be as good as float64 can place it: half a unit in the last place of y moves
    the cdf by the density times that much.
    """
    smaller = np.where(q <= 0.5, dist.cdf(roots), dist.sf(roots))
    wanted = np.where(q <= 0.5, q, 1 - q)
    placing = dist.pdf(roots) * np.spacing(np.abs(roots))
    return (np.abs(smaller - wanted) - placing) / wanted


@pytest.mark.parametrize("name", [name for name in CASES if name != "mixed-scales"])
def test_quantiles_are_roots_of_the_cdf(name):
    dist = Predictive.from_arrays(*make_case(name))
    roots = dist.quantile(Q)
    assert roots.shape == (4, Q.size)
    assert tail_error(dist, roots, Q).max() < 1e-10
    assert (np.diff(roots, axis=1) > 0).all()


def test_quantiles_with_mixed_scales():
    dist = Predictive.from_arrays(*make_case("mixed-scales"))
    assert tail_error(dist, dist.quantile(Q), Q).max() < 1e-8


def test_quantiles_match_a_root_finder_on_scipy(case):
    dist = Predictive.from_arrays(*case)
    for q in (0.03, 0.5, 0.77):
        for row, (means, sds) in enumerate(zip(*case, strict=True)):
            span = means + sds * ndtri(q)
            if span.min() == span.max():
                expected = span[0]
            else:
                expected = brentq(
                    lambda y, means=means, sds=sds, q=q: norm.cdf(y, means, sds).mean() - q,
                    span.min(),
                    span.max(),
                    xtol=1e-300,
                    rtol=1e-15,
                )
            # Where the cdf is flat, SciPy's rounding error moves its root.
            slack = 4e-15 / norm.pdf(expected, means, sds).mean()
            assert dist[row].quantile(q)[0] == pytest.approx(expected, rel=1e-14, abs=slack)


def test_quantiles_at_the_ends_and_in_a_gap():
    # Two components 200 SD apart: at q = 1/2 the cdf is flat, and every point between will do.
    dist = Predictive.from_arrays([[0.0, 100.0]], [[0.5, 0.5]])
    assert dist.quantile([0, 1]).tolist() == [[-np.inf, np.inf]]
    assert dist.cdf(dist.quantile(0.5))[0] == pytest.approx(0.5, abs=1e-12)
    lower, upper = dist.quantile([0.5 - 1e-9, 0.5 + 1e-9])[0]
    assert lower == pytest.approx(0.5 * norm.isf(2e-9), rel=1e-6)
    assert upper == pytest.approx(100 - 0.5 * norm.isf(2e-9), rel=1e-6)


def test_median_of_a_symmetric_mixture_is_its_centre():
    for sds in ([0.5, 0.5], [0.1, 0.1], [3.0, 3.0]):
        dist = Predictive.from_arrays([[-1.0, 1.0]], [sds])
        assert dist.quantile(0.5)[0] == pytest.approx(0, abs=1e-12)


def test_a_steep_spike_inside_a_wide_component():
    # The spike is 1e12 times narrower than the rest and off every obvious starting point.
    dist = Predictive.from_arrays([[0.0, 0.377, 0.377]], [[1e3, 1e-9, 1e-9]])
    q = np.array([0.2, 0.5, 0.7])
    assert tail_error(dist, dist.quantile(q), q).max() < 1e-8


def test_a_quantile_does_not_depend_on_what_else_is_asked(case):
    dist = Predictive.from_arrays(*case)
    together = dist.quantile(Q)
    for k, q in enumerate(Q):
        np.testing.assert_array_equal(dist.quantile(q), together[:, k])
        assert dist.quantile([q]).shape == (4, 1)
    assert dist.quantile([]).shape == (4, 0)


def test_interval_and_summary_are_the_quantiles_and_moments(case):
    dist = Predictive.from_arrays(*case)
    np.testing.assert_array_equal(dist.interval(0.8), dist.quantile([0.5 * (1 - 0.8), 0.9]))
    summary = dist.summary(0.8)
    np.testing.assert_array_equal(np.c_[summary.lower, summary.upper], dist.interval(0.8))
    np.testing.assert_array_equal(summary.mean, dist.mean())
    np.testing.assert_array_equal(summary.std, dist.std())


def test_a_quantile_takes_few_evaluations():
    # What makes a million rows a matter of a minute: about three on the usual mixtures.
    for name, most in (("near-gaussian", 2.5), ("skewed", 4.5), ("heavy-tailed", 8.0)):
        means, sds = make_case(name, rows=100, components=300)
        _, evaluations = mixture_quantiles.quantiles(means, sds, None, np.array([0.05, 0.95]))
        assert evaluations / 200 < most, name


def test_quantiles_where_the_row_has_no_common_scale():
    # The narrow component is at 0, where float64 is fine; seen from the other it is a point.
    dist = Predictive.from_arrays([[0.0, 1e120]], [[1.0, 1e100]])
    q = np.array([0.05, 0.25, 0.45])
    np.testing.assert_allclose(dist.quantile(q), [norm.ppf(2 * q)], rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(dist.quantile(0.75), 1e120, rtol=1e-14)
    # A step narrower than the gap between two floats; components whose distance overflows.
    np.testing.assert_allclose(
        Predictive.from_arrays([[1e120, 5.0]], [[1e-9, 1e-9]]).quantile([0.1, 0.4, 0.6, 0.9]),
        [[5.0, 5.0, 1e120, 1e120]],
    )
    np.testing.assert_array_equal(
        Predictive.from_arrays([[1.7e308, -1.7e308]], [[1.0, 1.0]]).quantile([0.2, 0.7]),
        [[-1.7e308, 1.7e308]],
    )


FINITE = st.floats(-1.7e308, 1.7e308)
POSITIVE = st.one_of(st.floats(1e-300, 1.7e308), st.floats(-300, 308).map(lambda x: 10.0**x))
# A row in one unit, or in none.
means_and_sds = st.integers(1, 5).flatmap(
    lambda m: st.tuples(
        st.lists(
            st.one_of(FINITE, st.floats(-10, 10), st.sampled_from([-1e120, 3e119, 1e120])),
            min_size=m,
            max_size=m,
        ),
        st.lists(st.one_of(POSITIVE, st.just(1e120)), min_size=m, max_size=m),
        st.lists(st.floats(1e-6, 1.0), min_size=m, max_size=m),
    )
)
# Further apart than the accuracy that is promised.
RISING = np.unique(
    np.concatenate([Q, np.linspace(0.02, 0.98, 25), 0.5 + 10.0 ** -np.arange(2, 10)])
)


@settings(max_examples=200, deadline=None)
@given(means_and_sds)
def test_quantiles_of_any_finite_mixture_never_fall(components):
    means, sds, weights = components
    for given_weights in (None, weights):
        roots = Predictive.from_arrays([means], [sds], given_weights).quantile(RISING)[0]
        assert not np.isnan(roots).any()
        assert (roots[1:] >= roots[:-1]).all()


mixtures = st.integers(1, 6).flatmap(
    lambda m: st.tuples(
        st.lists(st.floats(-10, 10), min_size=m, max_size=m),
        st.lists(st.floats(-3, 3).map(lambda x: 10.0**x), min_size=m, max_size=m),
    )
)


@settings(max_examples=60, deadline=None)
@given(mixtures, st.floats(1e-12, 1 - 1e-12))
def test_any_quantile_of_any_mixture_is_a_root(components, q):
    means, sds = components
    dist = Predictive.from_arrays([means], [sds])
    assert tail_error(dist, dist.quantile([q]), np.array([q])).max() < 1e-8


@settings(max_examples=60, deadline=None)
@given(mixtures, st.floats(-50, 50), st.floats(0, 50))
def test_any_mixture_is_a_distribution(components, y, step):
    means, sds = components
    dist = Predictive.from_arrays([means], [sds])
    low, high = dist.cdf([[y, y + step]])[0]
    assert 0 <= low <= high * (1 + 1e-13)  # to rounding
    assert high <= 1
    assert dist.cdf(y)[0] + dist.sf(y)[0] == pytest.approx(1, abs=1e-14)
    assert np.isfinite(dist.logpdf(y)[0])
    assert dist.std()[0] >= np.sqrt(np.mean(np.square(sds))) * (1 - 1e-12)
    assert 0 < dist.crps(y)[0] <= np.abs(y - dist.mean()[0]) + 2 * dist.std()[0]


# CRPS


def pairwise_crps(y: float, means: np.ndarray, sds: np.ndarray) -> float:
    """Compute the O(M^2) formula (Grimit et al. 2006), with SciPy."""

    def expected_absolute(mean, sd):
        return mean * (2 * norm.cdf(mean / sd) - 1) + 2 * sd * norm.pdf(mean / sd)

    pairs = expected_absolute(means[:, None] - means, np.hypot(sds[:, None], sds))
    return expected_absolute(y - means, sds).mean() - 0.5 * pairs.mean()


def test_crps_of_one_gaussian():
    y = np.array([[-2.0, 0.0, 0.5, 7.0]])
    z = (y - 1) / 3
    expected = 3 * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))
    np.testing.assert_allclose(Predictive.from_arrays([[1.0]], [[3.0]]).crps(y), expected, 1e-13)


@pytest.mark.parametrize("components", [5, 256, 257, 700])
@pytest.mark.parametrize("name", [name for name in CASES if name != "one-component"])
def test_crps_matches_the_pairwise_formula(name, components):
    case = make_case(name, rows=2, components=components)
    dist = Predictive.from_arrays(*case)
    for y in (dist.mean(), dist.mean() + 3 * dist.std(), case.means[:, 0]):
        expected = [pairwise_crps(*row) for row in zip(y, *case, strict=True)]
        np.testing.assert_allclose(dist.crps(y), expected, rtol=1e-8)


def test_crps_is_the_integral_of_the_squared_error_of_the_cdf():
    case = make_case("skewed", rows=1, components=6)
    dist = Predictive.from_arrays(*case)
    y = 1.3
    below = quad(lambda t: dist.cdf(t)[0] ** 2, -2, y, epsabs=1e-12, limit=200)[0]
    above = quad(lambda t: dist.sf(t)[0] ** 2, y, 6, epsabs=1e-12, limit=200)[0]
    assert dist.crps(y)[0] == pytest.approx(below + above, rel=1e-9)


def test_large_mixtures_use_the_quadrature_and_spiky_ones_the_pairs():
    def both(name: str) -> tuple[float, float]:
        means, sds = make_case(name, rows=1, components=600)
        sd = Predictive.from_arrays(means, sds).std()[0]
        d, s, scratch = means[0] - means[0].mean(), sds[0], np.empty(600)
        quadrature = mixture_crps._spread(d, s, None, sd, scratch)
        return quadrature, mixture_crps._spread_pairwise(d, s, None, scratch)

    quadrature, pairs = both("near-gaussian")
    assert quadrature != pairs  # another method: it agrees, but not to the last bit
    assert quadrature == pytest.approx(pairs, rel=1e-9)
    fallback, pairs = both("mixed-scales")
    assert fallback == pairs


# Samples


def test_samples_come_from_the_distribution():
    case = make_case("skewed", rows=3, components=20)
    dist = Predictive.from_arrays(*case)
    draws = dist.sample(5000, random_state=11)
    assert draws.shape == (3, 5000)
    for row in range(3):
        # False alarm 1 in 10,000 for each row and a fresh seed.
        assert kstest(draws[row], lambda y, row=row: dist[row].cdf(y[None, :])[0]).pvalue > 1e-4
    # Rows are independent: a correlation of 5000 pairs has SD 0.014; 4.5 SD, 1 in 150,000.
    assert abs(np.corrcoef(draws[0], draws[1])[0, 1]) < 0.064


def test_a_wrong_distribution_fails_the_ks_test():
    case = make_case("skewed", rows=1, components=20)
    draws = Predictive.from_arrays(*case).sample(5000, random_state=11)[0]
    gaussian = norm(draws.mean(), draws.std())
    assert kstest(draws, gaussian.cdf).pvalue < 1e-4


def test_random_state():
    dist = Predictive.from_arrays(*make_case("skewed"))
    np.testing.assert_array_equal(dist.sample(3, 5), dist.sample(3, np.random.default_rng(5)))
    rng = np.random.default_rng(5)
    assert not np.array_equal(dist.sample(3, rng), dist.sample(3, rng))
    old = [dist.sample(3, np.random.RandomState(1)) for _ in range(2)]
    np.testing.assert_array_equal(*old)
    assert not np.array_equal(dist.sample(3), dist.sample(3))
    assert dist.sample().shape == (4, 1)


def test_samples_do_not_depend_on_the_blocks(monkeypatch):
    dist = Predictive.from_arrays(*make_case("skewed", rows=30, components=20))
    whole = dist.sample(7, random_state=0)
    monkeypatch.setattr("gplc.components.BLOCK_COMPONENTS", 60)
    np.testing.assert_array_equal(dist.sample(7, random_state=0), whole)


# Units

LOCATIONS_AND_SCALES = [(3.0, 2.0), (-1e150, 1e150), (1e-150, 1e-150), (0.0, 1e150), (5.0, 1e-10)]


def values_of(dist: Predictive, y: np.ndarray) -> dict[str, np.ndarray]:
    """Everything that can be asked."""
    return {
        "mean": dist.mean(),
        "std": dist.std(),
        "skewness": dist.skewness(),
        "kurtosis": dist.kurtosis(),
        "logpdf": dist.logpdf(y),
        "pdf": dist.pdf(y),
        "cdf": dist.cdf(y),
        "sf": dist.sf(y),
        "logcdf": dist.logcdf(y),
        "logsf": dist.logsf(y),
        "crps": dist.crps(y),
        "quantile": dist.quantile(Q),
        "sample": dist.sample(5, random_state=0),
    }


@pytest.mark.parametrize(("location", "scale"), LOCATIONS_AND_SCALES)
def test_location_and_scale_change_units_with_the_jacobian(location, scale):
    case = make_case("skewed")
    plain = Predictive.from_arrays(*case)
    moved = Predictive(ArrayComponents(*case), location=location, scale=scale)
    t = plain.quantile([0.01, 0.4, 0.99])
    y = location + scale * t
    expected = values_of(plain, (y - location) / scale)
    got = values_of(moved, y)
    for name in ("mean", "quantile", "sample"):
        expected[name] = location + scale * expected[name]
    for name in ("std", "crps"):
        expected[name] = scale * expected[name]
    expected["logpdf"] = expected["logpdf"] - np.log(scale)
    expected["pdf"] = expected["pdf"] / scale
    for name in expected:
        np.testing.assert_allclose(got[name], expected[name], rtol=2e-13, err_msg=name)
    np.testing.assert_array_equal(moved.components()[0], location + scale * case.means)
    np.testing.assert_array_equal(moved.components()[1], scale * case.sds)
    np.testing.assert_allclose(moved[1:3].std(), scale * plain[1:3].std(), rtol=1e-15)


@pytest.mark.parametrize("scale", [1e150, 1e-150, 1e200, 1e-200, 1e290])
def test_components_in_extreme_units(scale):
    # The same, without telling anybody the scale: the kernels find it themselves.
    case = make_case("skewed")
    plain = Predictive.from_arrays(*case)
    extreme = Predictive.from_arrays(scale * case.means, scale * case.sds)
    t = plain.quantile([0.01, 0.4, 0.99])
    expected, got = values_of(plain, t), values_of(extreme, scale * t)
    for name in ("mean", "std", "crps", "quantile", "sample"):
        expected[name] = scale * expected[name]
    expected["logpdf"] = expected["logpdf"] - np.log(scale)
    expected["pdf"] = expected["pdf"] / scale
    for name in expected:
        np.testing.assert_allclose(got[name], expected[name], rtol=1e-12, err_msg=name)


def test_variance_may_overflow_where_the_sd_does_not():
    source = ArrayComponents([[0.0, 1.0]], [[1.0, 1.0]])
    sd = np.sqrt(1.25)
    for scale, variance in ((1e200, np.inf), (1e-200, 0.0), (1e150, 1.25e300)):
        dist = Predictive(source, scale=scale)
        assert dist.std()[0] == pytest.approx(scale * sd, rel=1e-15)
        assert dist.var()[0] == pytest.approx(variance)


# The compiled parts and their twins


def test_exponential_and_mills_ratio():
    v = np.concatenate([np.linspace(0, 40, 4001), 10.0 ** np.linspace(-300, 1.6, 500)])
    x = -0.5 * v * v
    ours = np.array([exponential.exp_of_negative(value) for value in x])
    theirs = np.where(x >= -708, np.exp(np.maximum(x, -708)), 0)
    np.testing.assert_allclose(ours, theirs, rtol=5e-16, atol=0)
    assert exponential.exp_of_negative(-np.inf) == 0
    ratio = np.array([normal.mills_ratio(value) for value in v])
    np.testing.assert_allclose(ratio, 0.5 * erfcx(v / np.sqrt(2)), rtol=3e-15)


def test_normal_quantile():
    p = np.concatenate([10.0 ** -np.arange(1, 301.0), np.linspace(1e-3, 0.999, 999)])
    ours = np.array([normal.normal_quantile(value) for value in p])
    np.testing.assert_allclose(ours, ndtri(p), rtol=2e-15, atol=1e-16)
    assert normal.normal_quantile(0.0) == -np.inf
    assert normal.normal_quantile(1.0) == np.inf


@settings(max_examples=100, deadline=None)
@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
def test_middle_float_lies_between(a, b):
    low, high = min(a, b) + 0.0, max(a, b) + 0.0
    middle = mixture_quantiles._middle_float(low, high)
    assert low <= middle <= high
    if np.nextafter(low, np.inf) < high:
        assert low < middle < high


def test_halving_bit_patterns_empties_any_bracket():
    low, high, halvings = -1e300, 1e300, 0
    while (middle := mixture_quantiles._middle_float(low, high)) not in (low, high):
        low, high = (middle, high) if middle < 1e-200 else (low, middle)
        halvings += 1
    assert np.nextafter(low, 1) == high
    assert halvings <= mixture_quantiles.MAX_HALVINGS - 1


# --- curves to look at ----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_smooth_densities_have_the_modes_there_are_and_no_more(seed):
    """2,800 narrow components around two places; of the right curve the error is a few percent."""
    rng = np.random.default_rng(seed)
    side = rng.choice([-1.0, 1.0], 2800)
    means = (side + 0.1 * rng.standard_normal(2800))[None]
    dist = Predictive.from_arrays(means, np.full((1, 2800), 1e-4))
    grid = np.linspace(-1.5, 1.5, 61)
    curve = dist.smooth_pdf(grid[None])[0]
    right = sum(np.exp(-0.5 * ((grid - at) / 0.1) ** 2) for at in (-1, 1)) / (
        0.2 * np.sqrt(2 * np.pi)
    )
    spikes = dist.pdf(grid[None])[0]  # the twin that is not smoothed
    assert np.abs(spikes - right).max() > 0.5 * right.max()
    assert np.abs(curve - right).max() < 0.25 * right.max()
    assert curve[30] < 0.01 * right.max()  # the gap stays a gap
    assert np.trapezoid(curve, grid) == pytest.approx(1.0, abs=0.04)


def test_wide_components_are_left_as_they_are():
    means = np.random.default_rng(0).standard_normal((1, 400))
    dist = Predictive.from_arrays(means, np.full((1, 400), 1.0))
    grid = np.linspace(-1.0, 1.0, 9)[None]
    np.testing.assert_allclose(dist.smooth_pdf(grid), dist.pdf(grid), rtol=0.02)


def test_one_component_is_its_own_curve():
    dist = Predictive.from_arrays([[1.0]], [[2.0]])
    np.testing.assert_allclose(dist.smooth_pdf([0.5]), dist.pdf([0.5]))
