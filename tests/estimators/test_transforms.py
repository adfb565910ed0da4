"""Responses on another scale: densities with the Jacobian, exact quantiles, means by mixture."""

import warnings

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import lognorm, norm

import gplc
from gplc import Predictive, _fitted, metrics
from gplc.estimators import ESTIMATORS, DataWarning
from gplc.transforms import NAMED, TransformedPredictive, transform_of

FEW = {"chains": 2, "draws": 20, "warmup": 20, "predictive_draws": 20, "random_state": 0}
DATA = gplc.datasets.make_paper("U1", n=40, random_state=5)
POSITIVE = np.exp(DATA.y)
pytestmark = pytest.mark.filterwarnings("ignore::gplc.estimators.DataWarning")
MEANS, SDS = np.array([[0.0, 1.0], [-0.5, 0.2]]), np.array([[0.5, 0.3], [1.0, 0.7]])
SAMPLE = np.random.default_rng(0).gamma(3.0, size=200)
SAMPLES = {"log": SAMPLE, "boxcox": SAMPLE, "logit": SAMPLE / 20.0}


def made(name):
    transform = transform_of(name, SAMPLES[name])
    return TransformedPredictive(Predictive.from_arrays(MEANS, SDS), transform)


@pytest.mark.parametrize("estimator", ESTIMATORS.values())
def test_log_is_a_fit_to_logs_with_the_jacobian(estimator):
    X, y = DATA.X[:30], POSITIVE[:30]
    model = estimator(**FEW, target_transform="log").fit(X, y)
    logs = estimator(**FEW).fit(X, np.log(y))
    new, held_out = DATA.X[30:], POSITIVE[30:]
    by_hand = metrics.nlpd(logs.predict_dist(new), np.log(held_out)) + np.log(held_out).mean()
    assert metrics.nlpd(model.predict_dist(new), held_out) == pytest.approx(by_hand, abs=1e-9)
    quantiles = np.exp(logs.predict_quantiles(new, [0.1, 0.5, 0.9]))
    np.testing.assert_allclose(model.predict_quantiles(new, [0.1, 0.5, 0.9]), quantiles)
    shift = model.loo().log_density - logs.loo().log_density
    np.testing.assert_allclose(shift, -np.log(y), atol=1e-9)
    np.testing.assert_allclose(_fitted.training_data(model)[1], y)
    assert model.predict(new).min() > 0.0


@pytest.mark.parametrize("name", NAMED)
def test_distributions_are_whole(name):
    """The density integrates to one, and to the mean, the SD and the cdf that are given."""
    dist = made(name)
    end = 1.0 if name == "logit" else np.inf
    for row in range(2):
        one = dist[row]

        def weighted(v, power, one=one):
            return v**power * float(one.pdf(v)[0])

        total, mean, square = (
            quad(weighted, 0.0, end, args=(power,), limit=200)[0] for power in (0, 1, 2)
        )
        middle = float(one.quantile(0.3)[0])
        assert total == pytest.approx(1.0, abs=2e-3 if name == "boxcox" else 1e-6)
        assert one.mean()[0] == pytest.approx(mean, rel=1e-3 if name == "boxcox" else 1e-6)
        if name != "boxcox":  # which ends at 0 with a little probability
            assert one.std()[0] == pytest.approx(np.sqrt(square - mean**2), rel=1e-5)
            assert quad(weighted, 0.0, middle, args=(0,))[0] == pytest.approx(0.3, abs=1e-6)
        assert one.cdf(middle)[0] == pytest.approx(0.3, abs=1e-10)
        outside = one.logpdf([[-1.0, 0.0]])
        assert np.all(outside == -np.inf)


def test_one_lognormal_is_that_of_scipy():
    log = transform_of("log")
    dist = TransformedPredictive(Predictive.from_arrays([[0.3]], [[0.8]]), log)
    exact = lognorm(0.8, scale=np.exp(0.3))
    mean, variance, skewness, kurtosis = exact.stats(moments="mvsk")
    found = dist.moments()
    np.testing.assert_allclose(found.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(found.std**2, variance, rtol=1e-9)
    np.testing.assert_allclose(found.skewness, skewness, rtol=1e-6)
    np.testing.assert_allclose(found.kurtosis, kurtosis, rtol=1e-4)
    for y in (0.01, 0.5, 1.0, 20.0):
        assert dist.logpdf(y)[0] == pytest.approx(exact.logpdf(y), abs=1e-10)
        # CRPS of a lognormal (Baran and Lerch 2015).
        w = (np.log(y) - 0.3) / 0.8
        crps = y * (2 * norm.cdf(w) - 1) - 2 * np.exp(0.3 + 0.32) * (
            norm.cdf(w - 0.8) + norm.cdf(0.8 / np.sqrt(2)) - 1
        )
        assert dist.crps(y)[0] == pytest.approx(crps, rel=1e-6)
    draws = dist.sample(20_000, 1)[0]
    assert abs(np.log(draws).mean() - 0.3) < 5.0 * 0.8 / np.sqrt(20_000)
    assert dist.sf(-3.0)[0] == 1.0
    with pytest.raises(TypeError, match="of_transformed"):
        dist.components()


def test_mixtures_of_transformed_distributions():
    dist = made("log")
    both = Predictive.mixture([dist, dist], [1, 3])
    np.testing.assert_allclose(both.logpdf(1.3), dist.logpdf(1.3))
    with pytest.raises(ValueError, match="same transform"):
        Predictive.mixture([dist, dist.of_transformed], [1, 1])


def test_files_and_functions_of_the_users(tmp_path):
    functions = (np.cbrt, lambda t: t**3, lambda y: np.cbrt(y) ** -2 / 3.0)
    for setting in (*NAMED, functions):
        y = POSITIVE / (1.0 + POSITIVE) if setting == "logit" else POSITIVE
        model = gplc.StandardGP(**FEW, target_transform=setting).fit(DATA.X, y)
        model.save(tmp_path / "fit.nc")
        mine = {} if isinstance(setting, str) else {"target_transform": setting}
        again = gplc.load(tmp_path / "fit.nc", **mine)
        np.testing.assert_array_equal(again.predict(DATA.X), model.predict(DATA.X))
        assert again.notes_ == model.notes_
        np.testing.assert_allclose(_fitted.training_data(again)[1], y, rtol=1e-9)
        gplc.plots.fan(model)
    with pytest.raises(ValueError, match=r"gplc.load\(path, target_transform=...\)"):
        gplc.load(tmp_path / "fit.nc")


def test_known_noise_goes_through_to_first_order():
    model = gplc.StandardGP(**FEW, target_transform="log").fit(DATA.X, POSITIVE, 0.1 * POSITIVE)
    on_logs = model.model_.known_noise.sds * model.y_scaling_.scale
    np.testing.assert_allclose(on_logs, np.full(40, 0.1))
    np.testing.assert_allclose(_fitted.known_noise(model), 0.1 * POSITIVE)
    with pytest.raises(ValueError, match="noise_std of new rows"):
        model.predict_dist(DATA.X, noise_std=0.1)


def test_fit_says_what_was_modelled():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", DataWarning)
        model = gplc.StandardGP(**FEW, target_transform="boxcox").fit(DATA.X, POSITIVE)
    assert "boxcox with power" in str([str(each.message) for each in told])
    page = gplc.report.render_report(model)
    assert "transformed response (boxcox" in " ".join(page.split())


@pytest.mark.parametrize(
    ("setting", "y", "told"),
    [
        ("log", {3: 0.0}, "'log' is not finite at y = 0.0 in row 3; it takes y above 0"),
        ("boxcox", {5: -1.0}, "'boxcox' is not finite at y = -1.0 in row 5"),
        ("logit", {2: 1.0}, "'logit' is not finite at y = 1.0 in row 2; it takes y above 0 and"),
        (
            (np.reciprocal, np.reciprocal, np.ones_like),
            {7: 0.0},
            "is not finite at y = 0.0 in row 7",
        ),
        ((np.negative, np.negative, lambda y: -np.ones_like(y)), {}, "derivative must be above 0"),
        ("sqrt", {}, r"must be one of \['log', 'logit', 'boxcox'\] or three functions"),
        ((np.log, np.exp), {}, "or three functions"),
    ],
)
def test_bad_transforms_are_one_line(setting, y, told):
    response = np.linspace(0.1, 0.9, 40)
    response[list(y)] = list(y.values())
    with pytest.raises(ValueError, match=told) as error:
        gplc.StandardGP(**FEW, target_transform=setting).fit(DATA.X, response)
    assert "\n" not in str(error.value)
