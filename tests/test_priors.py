"""Families of priors, what they do to models and chains, and how answers hang on them."""

import json
import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import gplc
from gplc import checks
from gplc.chains import run_chain
from gplc.models import MODELS, LatentCovariate, Standard
from gplc.models.latent_covariate.marginal import MarginalFunction
from gplc.priors import (
    FAMILIES,
    Gamma,
    HalfNormal,
    InverseGamma,
    LogPriors,
    UserPrior,
    fixed,
    prior_from_record,
    prior_record,
)
from gplc.samplers.protocol import Point

CAUCHY = UserPrior(lambda v: -np.log1p(v**2), lambda v: -2.0 * v / (1.0 + v**2), 1.0, 3.0)
REFERENCES = {
    "half-normal": (HalfNormal(0.7), stats.halfnorm(scale=0.7)),
    "gamma": (Gamma(2.5, 1.5), stats.gamma(2.5, scale=1.0 / 1.5)),
    "inverse gamma": (InverseGamma(3.0, 2.0), stats.invgamma(3.0, scale=2.0)),
    "your own": (CAUCHY, stats.halfcauchy()),
}
X = np.random.default_rng(0).uniform(-1.5, 1.5, (9, 1))
Y = np.sin(2.0 * X[:, 0])


def test_every_family_has_a_reference():
    assert FAMILIES.keys() <= REFERENCES.keys()


@pytest.mark.parametrize("family", REFERENCES)
def test_families_are_those_of_scipy(family):
    prior, reference = REFERENCES[family]
    theta = np.linspace(-2.0, 1.5, 9)
    expected = reference.logpdf(np.exp(theta)) + theta  # of the logarithm
    differences = prior.log_density(theta) - expected
    np.testing.assert_allclose(differences, differences[0], atol=1e-9)
    by_hand = (prior.log_density(theta + 1e-6) - prior.log_density(theta - 1e-6)) / 2e-6
    np.testing.assert_allclose(prior.slope(theta), by_hand, atol=1e-5)
    for share in (0.05, 0.5, 0.9):
        assert prior.quantile(share) == pytest.approx(reference.ppf(share), rel=0.01)
    rng = np.random.default_rng(0)
    drawn = np.exp([prior.sample(rng) for _ in range(2000)])
    assert stats.kstest(drawn, reference.cdf).pvalue > 1e-4  # false alarm 1e-4


@pytest.mark.parametrize("family", [key for key in REFERENCES if key != "your own"])
def test_where_most_of_the_mass_is(family):
    prior, reference = REFERENCES[family]
    logs = np.log(reference.rvs(20_000, random_state=1))
    assert prior.mean == pytest.approx(logs.mean(), abs=0.05)
    assert prior.sd == pytest.approx(logs.std(), rel=0.05)
    assert prior_from_record(json.loads(json.dumps(prior_record(prior)))) == prior


@pytest.mark.parametrize("key", MODELS)
def test_models_have_the_gradient_of_their_density(key):
    scale = "length_scale" if key != "gplv" else "length_scale_y"
    first = HalfNormal(1.0)
    model = MODELS[key](X, Y, priors={scale: InverseGamma(3.0, 2.0), "signal_sd": first})
    rng = np.random.default_rng(1)
    unknowns = model.sample_prior(rng)
    gradient = model.gradient(unknowns).theta
    for place in range(len(model.names)):
        ends = []
        for step in (1e-5, -1e-5):
            theta = unknowns.theta.copy()
            theta[place] += step
            ends.append(model.log_density(unknowns._replace(theta=theta)))
        assert gradient[place] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-3, abs=1e-4)


def test_the_function_view_has_the_prior_of_sigma():
    """Its positions are in units of a Gaussian; what another family is more comes on top."""
    model = LatentCovariate(X, Y, priors={"noise_sd": HalfNormal(0.5)})
    rng = np.random.default_rng(2)
    state = model.state(model.sample_prior(rng))
    opened = MarginalFunction(model, state, 0).opened(rng, Point(state.latent, 0.0, state))
    flat = opened.position
    gradient = opened.evaluate(flat).payload
    ends = []
    for step in (1e-5, -1e-5):
        moved = flat.copy()
        moved[-1] += step
        ends.append(opened.evaluate(moved).log_density)
    assert gradient[-1] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-3, abs=1e-4)
    _, target = opened.scale
    other = LatentCovariate(X, Y)  # with a Gaussian of other numbers
    assert not math.isclose(model.priors.means[-1], other.priors.means[-1])
    a, b = target.evaluate(0.3).log_density, target.evaluate(-0.2).log_density
    full = [opened.evaluate(np.append(flat[:-1], value)).log_density for value in (0.3, -0.2)]
    assert a - b == pytest.approx(full[0] - full[1], abs=1e-6)


def test_chains_find_the_posterior_of_a_family():
    """Mean of log sigma against a grid, STD with one case of known signal: |t| < 5 of 16 chains.

    t has 15 degrees of freedom: false alarm below 2e-4. The twin without the prior is caught.
    """
    priors = {"noise_sd": HalfNormal(0.3), "signal_sd": fixed(1.0), "length_scale": fixed(1.0)}
    y = Y + 0.3 * np.random.default_rng(3).standard_normal(9)
    model = Standard(X, y, priors=priors)
    grid = np.linspace(-12.0, 2.0, 1400)
    theta = np.array([0.0, 0.0, 0.0])
    logs = []
    for value in grid:
        theta[2] = value
        logs.append(model.log_density(model.unknowns(theta)))
    weights = np.exp(logs - logsumexp(logs))
    exact = float(weights @ grid)
    means = [run_chain(model, seed=k, draws=150, warmup=100).theta[:, 2].mean() for k in range(16)]
    t = (np.mean(means) - exact) / (np.std(means, ddof=1) / 4.0)
    assert abs(t) < 5.0
    flat = np.array(logs) - HalfNormal(0.3).log_density(grid)
    without = np.exp(flat - logsumexp(flat)) @ grid
    assert abs(np.mean(means) - without) / (np.std(means, ddof=1) / 4.0) > 5.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HalfNormal(-1.0), "scale must be a finite number above 0.0, got -1.0"),
        (lambda: Gamma(0.0, 1.0), "shape must be a finite number above 0.0"),
        (lambda: InverseGamma(1.0, math.inf), "scale must be a finite number above 0.0"),
        (lambda: fixed(0.0), "value must be a finite number above 0.0"),
        (lambda: UserPrior(1.0, 2.0, 1.0, 2.0), "log_p and gradient must be functions, got 1.0"),
        (lambda: UserPrior(lambda v: -v, lambda v: v, 1.0, 2.0), "gradient is not that of log_p"),
        (lambda: UserPrior(lambda v: v * np.nan, np.abs, 1.0, 2.0), "log_p must be finite"),
        (lambda: LogPriors(["noise_sd"], {"noise_sd": 3.0}), "give two numbers, or HalfNormal"),
    ],
)
def test_bad_priors_are_refused_in_one_line(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# In estimators.

SMALL = {"chains": 2, "draws": 60, "warmup": 60, "random_state": 0}


def test_fits_keep_their_priors(tmp_path):
    given = {"noise_sd": HalfNormal(1.0), "length_scale": InverseGamma(3.0, 2.0)}
    model = gplc.StandardGP(priors=given, **SMALL).fit(X, Y)
    model.save(tmp_path / "fit.nc")
    again = gplc.load(tmp_path / "fit.nc")
    assert again.priors["noise_sd"] == HalfNormal(1.0)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    again.extend(5)
    own = gplc.StandardGP(priors={"noise_sd": CAUCHY}, **SMALL).fit(X, Y)
    with pytest.raises(ValueError, match="a fit with a prior of your own cannot be saved"):
        own.save(tmp_path / "own.nc")
    held = gplc.StandardGP(priors={"length_scale": fixed(0.7)}, **SMALL).fit(X, Y)
    scales = held.draws_.standardized()["length_scale"]
    np.testing.assert_allclose(scales, 0.7, rtol=0.02)


def test_priors_are_told_in_the_units_of_the_data():
    model = gplc.StandardGP(priors={"noise_sd": HalfNormal(1.0)}, **SMALL).fit(100.0 * X, 20.0 * Y)
    table = model.priors_
    assert table.families["noise_sd"] == "half-normal"
    low, middle, high = table.rows["noise_sd"]
    assert middle == pytest.approx(0.6745 * 20.0 * Y.std(), rel=0.01)
    assert low < middle < high
    assert "half-normal" in str(table)
    assert table.to_frame().shape == (3, 5)
    assert "<table>" in table._repr_html_()


def test_the_prior_makes_data_before_any_fit():
    model = gplc.LatentCovariateGP(random_state=0)
    made = model.prior_predictive(X, 50.0 + 10.0 * Y, 300)
    assert made.shape == (300, 9)
    assert np.median(made) == pytest.approx(50.0, abs=5.0)
    assert not hasattr(model, "model_")
    np.testing.assert_array_equal(made, model.prior_predictive(X, 50.0 + 10.0 * Y, 300))
    with pytest.raises(ValueError, match="draws must be an integer"):
        model.prior_predictive(X, Y, 0)


def test_sensitivity_finds_the_prior_that_decides():
    """A prior that says there is hardly any noise is in conflict with the data."""
    data = gplc.datasets.make_paper("U1", n=25, random_state=0)
    wrong = gplc.StandardGP(priors={"noise_sd": (-4.0, 0.4)}, **SMALL | {"draws": 400})
    found = checks.sensitivity(wrong.fit(data.X, data.y))
    assert "noise_sd" in found.sensitive
    assert "predictions hang on the prior of" in found.verdict
    data = gplc.datasets.make_paper("U1", n=80, random_state=0)
    many = checks.sensitivity(gplc.StandardGP(**SMALL | {"draws": 400}).fit(data.X, data.y))
    assert many.rows["noise_sd"].predictions < 0.3
    assert "prior of" in str(many)
    json.dumps(many.to_record())


def test_power_scaling_is_what_another_prior_gives():
    """N(m, s^2) to the power of two is N(m, s^2 / 2): against a fit with that, within 0.15 SDs."""
    data = gplc.datasets.make_paper("U1", n=30, random_state=0)
    settings = {"chains": 4, "draws": 1000, "warmup": 200, "random_state": 0}
    one = gplc.StandardGP(**settings).fit(data.X, data.y)
    other = gplc.StandardGP(priors={"length_scale": (0.0, 1.0 / math.sqrt(2.0))}, **settings)
    other.fit(data.X, data.y)
    place = one.model_.names.index("length_scale")
    before, after = (each.draws_.theta[:, :, place] for each in (one, other))
    moved = abs(after.mean() - before.mean()) / before.std()
    told = checks.sensitivity(one).rows["length_scale"].itself
    assert told == pytest.approx(moved, abs=0.15) or told > moved  # the larger of both powers


def test_powers_of_a_prior_go_the_way_they_say():
    """By plain weights p(theta)^(a - 1), and not by a twin with 1 - a."""
    data = gplc.datasets.make_paper("U1", n=25, random_state=0)
    model = gplc.StandardGP(priors={"noise_sd": (-4.0, 1.0)}, **SMALL | {"draws": 500})
    model.fit(data.X, data.y)
    draws, place = model.draws_, model.model_.names.index("noise_sd")
    logs = model.model_.priors.log_densities(draws.theta)[:, :, place].ravel()
    values = draws.theta[:, :, place].ravel()

    def moved(exponents):
        weights = [np.exp(e * (logs - logs.max())) for e in exponents]
        means = np.array([w @ values / w.sum() for w in weights])
        return np.abs(means - values.mean()).max() / values.std()

    told = checks.sensitivity(model).rows["noise_sd"].itself
    assert told == pytest.approx(moved([-0.5, 1.0]), rel=0.02)
    assert told != pytest.approx(moved([0.5, -1.0]), rel=0.1)


@pytest.mark.usefixtures("no_windows")
def test_pictures_of_priors():
    model = gplc.StandardGP(priors={"noise_sd": HalfNormal(1.0)}, **SMALL).fit(X, Y)
    figure = gplc.plots.priors(model)
    assert [ax.get_xlabel() for ax in figure.axes] == ["signal_sd", "length_scale", "noise_sd"]
    made = model.prior_predictive(X, Y, 20)
    ax = gplc.plots.prior_predictive(X[:, 0], made, Y)
    assert len(ax.get_lines()) == 9  # eight sets, and the data
    with pytest.raises(ValueError, match="made must have a column for each of 9 values of x"):
        gplc.plots.prior_predictive(X[:, 0], made[:, :3])
