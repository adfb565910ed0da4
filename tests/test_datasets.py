"""The data sets against scipy, quadrature and their own definition.

Checks on random numbers have fixed seeds. Each compares z-scores with ``Z_LIMIT`` (two-sided rate
1e-5 per z-score) or a Kolmogorov-Smirnov p-value with 1e-5. With about 30 such comparisons, a
correct program and fresh seeds would fail this file about 3 times in 10,000.
"""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid

from gplc import datasets

NAMES = ["U1", "U2", "M1", "M2"]
N_LARGE = 200_000
ALPHA = 1e-5
Z_LIMIT = stats.norm.isf(ALPHA / 2)

SCALE = np.sqrt(6) / np.pi
EXTREME_VALUE = stats.gumbel_l(loc=np.euler_gamma * SCALE, scale=SCALE)
RESIDUAL = {
    "U1": stats.norm(),
    "U2": EXTREME_VALUE,
    "M1": stats.norm(),
    "M2": EXTREME_VALUE,
}
ORACLE_NLPD = {"U1": 0.1469, "U2": 0.0564, "M1": 0.1962, "M2": 0.1056}


@pytest.fixture(scope="module", params=NAMES)
def large(request):
    return datasets.make_paper(request.param, n=N_LARGE, random_state=2012)


def standardized(data):
    return (data.y - data.f) / data.sd


def moment_z_scores(sample, distribution):
    """z-scores of the sample's first three moments about the distribution's own."""
    scores = []
    for power in (1, 2, 3):
        values = sample**power
        standard_error = values.std(ddof=1) / np.sqrt(values.size)
        scores.append((values.mean() - distribution.moment(power)) / standard_error)
    return np.array(scores)


def exact_oracle_nlpd(name):
    """Entropy of the residual plus E log sd(x), by Gauss quadrature."""
    if name.startswith("U"):
        nodes, weights = np.polynomial.legendre.leggauss(200)
        mean_log_sd = (weights / 2) @ np.log(datasets.univariate_sd((nodes + 1) / 2))
    else:
        nodes, weights = np.polynomial.hermite_e.hermegauss(50)
        weights = weights / weights.sum()
        X = np.stack(np.meshgrid(nodes, nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 3)
        product = np.einsum("i,j,k->ijk", weights, weights, weights).ravel()
        mean_log_sd = product @ np.log(datasets.multivariate_sd(X))
    return float(RESIDUAL[name].entropy() + mean_log_sd)


# --- the true functions ---------------------------------------------------------------------


def test_functions_at_points_where_they_are_known_by_hand():
    # sin is 1 at pi/2 and -1 at 3 pi/2: the powers are of 2 and of 0.
    np.testing.assert_allclose(datasets.univariate_mean([np.pi / 8]), [2**1.1])
    np.testing.assert_allclose(datasets.univariate_mean([3 * np.pi / 8]), [0], atol=1e-12)
    np.testing.assert_allclose(datasets.univariate_sd(0.5), 0.5)
    np.testing.assert_allclose(datasets.univariate_sd(100.0), 0.2)
    x1 = 1.5 * (np.pi / 2 - 2)
    x3 = 3 * (2 + np.pi / 2)
    np.testing.assert_allclose(
        datasets.multivariate_mean([[x1, 0, x3]]), [2**0.9 - 2**1.5], rtol=1e-12
    )
    np.testing.assert_allclose(datasets.multivariate_sd([[1, 2, -2]]), [0.8])
    np.testing.assert_allclose(datasets.multivariate_sd([[99, 99, 99]]), [0.1])
    np.testing.assert_allclose(
        datasets.multivariate_sd([[0, 1, -1]]), [0.1 + 0.4 * np.exp(-0.5) + 0.3 * np.exp(-0.3)]
    )


def test_univariate_functions_keep_the_shape():
    for shape in [(), (4,), (4, 1)]:
        assert datasets.univariate_mean(np.zeros(shape)).shape == shape
        assert datasets.univariate_sd(np.zeros(shape)).shape == shape


@pytest.mark.parametrize("function", [datasets.multivariate_mean, datasets.multivariate_sd])
@pytest.mark.parametrize("shape", [(3,), (4, 2), (2, 2, 3)])
def test_multivariate_functions_want_three_columns(function, shape):
    with pytest.raises(ValueError, match=r"X must have shape \(n, 3\)"):
        function(np.zeros(shape))


# --- the densities --------------------------------------------------------------------------


def test_standard_extreme_value_has_mean_0_and_variance_1():
    np.testing.assert_allclose(EXTREME_VALUE.mean(), 0, atol=1e-15)
    np.testing.assert_allclose(EXTREME_VALUE.var(), 1)
    t = np.linspace(-40, 6, 200_001)
    density = np.exp(datasets.standard_extreme_value_logpdf(t))
    for power, moment in [(0, 1), (1, 0), (2, 1)]:
        np.testing.assert_allclose(trapezoid(density * t**power, t), moment, atol=1e-7)
    assert trapezoid(density * t**3, t) < -1.1  # skewed to the left


def test_standard_extreme_value_logpdf_is_scipys():
    t = np.linspace(-60, 60, 1001)
    np.testing.assert_allclose(
        datasets.standard_extreme_value_logpdf(t), EXTREME_VALUE.logpdf(t), rtol=1e-12
    )


def test_extreme_value_tails_are_minus_infinity_without_warnings():
    far = np.array([554.0, 1e3, 1e6, 1e308, np.inf, -np.inf])
    with np.errstate(all="raise"):
        assert np.all(datasets.standard_extreme_value_logpdf(far) == -np.inf)
        left = datasets.standard_extreme_value_logpdf([-1e3, -1e300])
    assert np.all(np.isfinite(left))  # the left tail is only exponential
    assert np.isnan(datasets.standard_extreme_value_logpdf(np.nan))


@pytest.mark.parametrize("name", NAMES)
def test_logpdf_is_scipys(name):
    data = datasets.make_paper(name, n=500, random_state=3)
    expected = RESIDUAL[name].logpdf(standardized(data)) - np.log(data.sd)
    np.testing.assert_allclose(data.logpdf(data.y), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(data.oracle_nlpd(), -expected.mean())


@pytest.mark.parametrize("name", NAMES)
def test_logpdf_in_far_tails_is_never_nan(name):
    data = datasets.make_paper(name, n=8, random_state=4)
    y = np.array([-np.inf, -1.7e308, -1e200, -1e3, 1e3, 1e200, 1.7e308, np.inf])
    with np.errstate(all="raise"):
        values = data.logpdf(y)
    assert not np.isnan(values).any()
    assert np.all(values < -1e3)
    assert values[0] == values[-1] == -np.inf


def test_logpdf_of_one_row_ignores_the_others():
    data = datasets.make_paper("M2", n=20, random_state=5)
    other = np.where(np.arange(20) == 7, data.y, data.y + 1)
    assert data.logpdf(other)[7] == data.logpdf(data.y)[7]


@pytest.mark.parametrize("y", [0.0, np.zeros(4), np.zeros((5, 1))])
def test_logpdf_wants_one_value_per_row(y):
    data = datasets.make_paper("U1", n=5, random_state=0)
    with pytest.raises(ValueError, match=r"y must have shape \(5,\)"):
        data.logpdf(y)


# --- large samples --------------------------------------------------------------------------


def test_inputs_have_the_papers_distribution(large):
    expected = stats.uniform() if large.name.startswith("U") else stats.norm()
    for column in large.X.T:
        assert stats.kstest(column, expected.cdf).pvalue > ALPHA
    if large.X.shape[1] > 1:
        correlations = np.corrcoef(large.X.T)[np.triu_indices(3, k=1)]
        assert np.all(np.abs(correlations) * np.sqrt(N_LARGE) < Z_LIMIT)


def test_residuals_have_the_papers_distribution(large):
    sample = standardized(large)
    assert np.all(np.abs(moment_z_scores(sample, RESIDUAL[large.name])) < Z_LIMIT)
    assert stats.kstest(sample, RESIDUAL[large.name].cdf).pvalue > ALPHA


def test_truth_is_the_functions_at_the_inputs(large):
    if large.name.startswith("U"):
        x = large.X[:, 0]
        f, sd = datasets.univariate_mean(x), datasets.univariate_sd(x)
    else:
        f, sd = datasets.multivariate_mean(large.X), datasets.multivariate_sd(large.X)
    np.testing.assert_array_equal(large.f, f)
    np.testing.assert_array_equal(large.sd, sd)


def test_oracle_nlpd_is_its_expectation(large):
    exact = exact_oracle_nlpd(large.name)
    assert exact == pytest.approx(ORACLE_NLPD[large.name], abs=6e-5)  # as documented
    standard_error = large.logpdf(large.y).std(ddof=1) / np.sqrt(N_LARGE)
    assert standard_error < 0.003
    assert abs(large.oracle_nlpd() - exact) < Z_LIMIT * standard_error


def wrong_sign_of_the_mean(rng):
    """Residuals shifted as if the mean were mu + gamma sigma, as the paper prints."""
    return SCALE * (-rng.gumbel(size=N_LARGE) - np.euler_gamma)


def wrong_side_of_the_tail(rng):
    """Gumbel for maxima: the right mean and variance, the wrong skewness."""
    return SCALE * (rng.gumbel(size=N_LARGE) - np.euler_gamma)


def wrong_variance(rng):
    """Scale 0.8 instead of sqrt(6)/pi = 0.78."""
    return 0.8 * (np.euler_gamma - rng.gumbel(size=N_LARGE))


@pytest.mark.parametrize(
    ("broken", "seen_in_moment"),
    [(wrong_sign_of_the_mean, 1), (wrong_side_of_the_tail, 3), (wrong_variance, 2)],
)
def test_broken_twins_are_caught(broken, seen_in_moment):
    sample = broken(np.random.default_rng(6))
    z = moment_z_scores(sample, EXTREME_VALUE)
    assert abs(z[seen_in_moment - 1]) > 2 * Z_LIMIT
    assert stats.kstest(sample, EXTREME_VALUE.cdf).pvalue < ALPHA


# --- make_paper as a function ---------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_shapes_and_types(name):
    data = datasets.make_paper(name, n=np.int64(7), random_state=0)
    assert data.name == name
    assert data.X.shape == (7, 1 if name.startswith("U") else 3)
    for array in (data.y, data.f, data.sd):
        assert array.shape == (7,)
        assert array.dtype == np.float64
    assert isinstance(data.oracle_nlpd(), float)
    with pytest.raises(FrozenInstanceError):
        data.name = "U3"


def test_default_is_the_papers_hundred_rows():
    assert datasets.make_paper("U1").y.shape == (100,)


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_data(name):
    first = datasets.make_paper(name, n=10, random_state=8)
    for again in (8, np.random.SeedSequence(8), np.random.default_rng(8)):
        second = datasets.make_paper(name, n=10, random_state=again)
        np.testing.assert_array_equal(first.X, second.X)
        np.testing.assert_array_equal(first.y, second.y)


@pytest.mark.parametrize("name", NAMES)
def test_different_seeds_differ(name):
    first = datasets.make_paper(name, n=10, random_state=8)
    for other in (9, None):
        second = datasets.make_paper(name, n=10, random_state=other)
        assert not np.isin(first.X, second.X).any()
        assert not np.isin(first.y, second.y).any()


def test_a_generator_moves_on():
    rng = np.random.default_rng(10)
    first, second = (datasets.make_paper("U1", n=5, random_state=rng) for _ in range(2))
    assert not np.isin(first.X, second.X).any()


@pytest.mark.parametrize(("gaussian", "skewed"), [("U1", "U2"), ("M1", "M2")])
def test_pairs_share_their_inputs(gaussian, skewed):
    first = datasets.make_paper(gaussian, n=10, random_state=11)
    second = datasets.make_paper(skewed, n=10, random_state=11)
    np.testing.assert_array_equal(first.X, second.X)
    assert not np.isin(first.y, second.y).any()


@pytest.mark.parametrize("name", ["U3", "u1", "", None, 1, ["U1"]])
def test_unknown_name(name):
    with pytest.raises(ValueError, match=r"name must be one of 'U1', 'U2', 'M1', 'M2', got"):
        datasets.make_paper(name)


@pytest.mark.parametrize("n", [0, -3, 2.0, "10", None, True])
def test_bad_number_of_rows(n):
    with pytest.raises(ValueError, match="n must be a positive integer, got") as caught:
        datasets.make_paper("U1", n=n)
    assert repr(n) in str(caught.value)


# --- real data ------------------------------------------------------------------------------

REAL = [
    (
        datasets.load_motorcycle,
        ("motorcycle", 133, ("times",), "accel"),
        {0: (2.4, 0.0), 1: (2.6, -1.3), 59: (20.2, -123.1), 132: (57.6, 10.7)},
    ),
    (
        datasets.load_lidar,
        ("lidar", 221, ("range",), "logratio"),
        {0: (390, -0.05035573), 1: (391, -0.06009706), 99: (538, -0.1035686)},
    ),
]


@pytest.mark.parametrize(("load", "facts", "rows"), REAL)
def test_real_data(load, facts, rows):
    data = load()
    name, n, feature_names, target_name = facts
    assert (data.name, data.feature_names, data.target_name) == (name, feature_names, target_name)
    assert data.description
    assert data.X.shape == (n, 1)
    assert data.y.shape == (n,)
    assert data.X.dtype == data.y.dtype == np.float64
    assert np.isfinite(data.X).all()
    assert np.isfinite(data.y).all()
    assert np.all(np.diff(data.X[:, 0]) >= 0)
    for row, (x, y) in rows.items():
        assert (data.X[row, 0], data.y[row]) == (x, y)


@pytest.mark.parametrize("load", [datasets.load_motorcycle, datasets.load_lidar])
def test_real_data_are_fresh_copies(load):
    first = load()
    first.X[:] = 0
    first.y[:] = 0
    second = load()
    assert second.X.all()
    assert second.y.any()
    assert not np.shares_memory(second.X, second.y)
    with pytest.raises(FrozenInstanceError):
        first.name = "other"


def test_motorcycle_has_repeated_times():
    x = datasets.load_motorcycle().X[:, 0]
    assert np.unique(x).size < x.size


def test_all_lists_every_public_name():
    public = {name for name in vars(datasets) if not name.startswith("_")}
    assert public == set(datasets.__all__)
