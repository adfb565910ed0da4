"""What a fit says of new rows: laws that must hold, whatever the data."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from gplc import LatentCovariateGP, LatentVarianceGP, SquaredExponential, StandardGP
from gplc.chains import run_chains
from gplc.draws import Draws, latent_nodes
from gplc.estimators import Scaling
from gplc.models import LatentCovariate, LatentVariance, Standard
from gplc.models.base import Unknowns
from gplc.posterior import Posterior, ResponseComponents

SOME = {"chains": 2, "draws": 25, "warmup": 25, "nodes": 4, "random_state": 0}
MODELS = {
    "std": (StandardGP, {}),
    "gplc": (LatentCovariateGP, {}),
    "gplv log": (LatentVarianceGP, {"link": "log"}),
    "gplv abs": (LatentVarianceGP, {"link": "abs"}),
}

RNG = np.random.default_rng(1)
X = RNG.uniform(-2, 2, size=(20, 2))
Y = np.sin(2 * X[:, 0]) + 0.3 * np.exp(0.5 * X[:, 1]) * RNG.standard_normal(20)
NEW = RNG.uniform(-3, 3, size=(11, 2))


def make(name, **settings):
    estimator, own = MODELS[name]
    return estimator(**SOME | own | settings)


each_model = pytest.mark.parametrize("name", MODELS)


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    return make(request.param).fit(X, Y)


def test_laws_of_total_expectation_and_variance(fitted):
    dist = fitted.predict_dist(NEW)
    means, sds = dist.components()
    assert means.shape == sds.shape == (11, dist.n_components)
    # The paper's equations: E(y*) = average of means; V(y*) = average of variances + variance
    # of means.
    mean = means.mean(axis=1)
    variance = (sds**2).mean(axis=1) + means.var(axis=1)
    np.testing.assert_allclose(dist.mean(), mean, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(dist.var(), variance, rtol=1e-12)
    # NLPD's equation too.
    y = dist.mean() + 1.7 * dist.std()
    log_densities = logsumexp(norm.logpdf(y[:, None], means, sds), axis=1)
    np.testing.assert_allclose(dist.logpdf(y), log_densities - np.log(means.shape[1]), rtol=1e-12)


def test_all_ways_to_ask_agree(fitted):
    dist = fitted.predict_dist(NEW)
    mean, std = fitted.predict(NEW, return_std=True)
    np.testing.assert_allclose(fitted.predict(NEW), mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(mean, dist.moments().mean)
    np.testing.assert_array_equal(std, dist.std())
    q = [0.05, 0.5, 0.95]
    np.testing.assert_array_equal(fitted.predict_quantiles(NEW, q), dist.quantile(q))
    np.testing.assert_array_equal(fitted.predict_interval(NEW), dist.interval(0.9))
    np.testing.assert_array_equal(
        fitted.sample_y(NEW, 3, random_state=np.random.default_rng(2)).shape, (11, 3)
    )


def test_means_alone_are_the_means_of_components(fitted):
    source = ResponseComponents(fitted.posterior_, fitted.x_scaling_.apply(NEW))
    means, _ = source.components(slice(0, 11))
    np.testing.assert_allclose(source.component_means(slice(0, 11)), means, rtol=1e-10, atol=1e-10)


def test_a_row_stands_alone(fitted):
    together = np.array(fitted.predict_dist(NEW).summary())
    again = np.array(fitted.predict_dist(NEW).summary())
    np.testing.assert_array_equal(again, together)
    backwards = np.array(fitted.predict_dist(NEW[::-1]).summary())[:, ::-1]
    many = np.array(fitted.predict_dist(np.vstack([X, NEW, NEW])).summary())[:, 20:31]
    alone = np.hstack([np.array(fitted.predict_dist(row[None]).summary()) for row in NEW])
    function = fitted.regression_function(NEW).mean()
    lone_function = [fitted.regression_function(row[None]).mean()[0] for row in NEW]
    band = np.array(fitted.residual_sd(NEW))
    lone_band = np.hstack([np.array(fitted.residual_sd(row[None])) for row in NEW])
    for other in (backwards, many, alone):
        np.testing.assert_allclose(other, together, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(lone_function, function, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(lone_band, band, rtol=1e-10)


def test_small_blocks_change_nothing(fitted, monkeypatch):
    dist, band = fitted.predict_dist(NEW).summary(), fitted.residual_sd(NEW)
    monkeypatch.setattr("gplc.components.BLOCK_COMPONENTS", 3 * len(fitted.posterior_))
    monkeypatch.setattr("gplc.components.KEPT_COMPONENTS", 0)
    monkeypatch.setattr("gplc.estimators.base.BLOCK_COMPONENTS", 3 * len(fitted.posterior_))
    monkeypatch.setattr("gplc.posterior.KEPT_NUMBERS", 0)
    fresh = Posterior(fitted.model_, fitted.draws_.thinned(None))
    monkeypatch.setattr(fitted, "posterior_", fresh)
    np.testing.assert_allclose(fitted.predict_dist(NEW).summary(), dist, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(fitted.residual_sd(NEW), band, rtol=1e-10)
    assert fresh._kept is None


@each_model
def test_units_do_not_matter(name):
    """Powers of two change no digit, so the same draws come out, and predictions are mapped."""
    stretch, shift, unit, level = np.array([8.0, 2.0**-5]), np.array([16.0, 0.0]), 2.0**7, 2.0**9
    X_round, Y_round, new_round = (np.round(values * 2**20) / 2**20 for values in (X, Y, NEW))
    # Not by long trajectories, which blow up the last digits that standardizing leaves different.
    estimators = [make(name).set_params(sampler="paper") for _ in range(2)]
    plain = estimators[0].fit(X_round, Y_round)
    other = estimators[1].fit(X_round * stretch + shift, Y_round * unit + level)
    np.testing.assert_allclose(other.draws_.theta, plain.draws_.theta, atol=1e-8)
    dist = plain.predict_dist(new_round)
    mapped = other.predict_dist(new_round * stretch + shift)
    mean, std, lower, upper = dist.summary()
    np.testing.assert_allclose(
        mapped.summary(),
        [level + unit * mean, unit * std, level + unit * lower, level + unit * upper],
        rtol=1e-8,
    )
    y = mean + 0.3 * std
    np.testing.assert_allclose(
        mapped.logpdf(level + unit * y), dist.logpdf(y) - np.log(unit), rtol=1e-8
    )
    np.testing.assert_allclose(mapped.pdf(level + unit * y), dist.pdf(y) / unit, rtol=1e-8)
    np.testing.assert_allclose(mapped.cdf(level + unit * y), dist.cdf(y), rtol=1e-8)
    np.testing.assert_allclose(mapped.skewness(), dist.skewness(), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(
        other.residual_sd(new_round * stretch + shift),
        unit * np.array(plain.residual_sd(new_round)),
        rtol=1e-8,
    )
    np.testing.assert_allclose(
        other.regression_function(new_round * stretch + shift).std(),
        unit * plain.regression_function(new_round).std(),
        rtol=1e-8,
    )


def test_scaling_brings_to_mean_0_and_sd_1():
    scaling = Scaling.of(1e200 * X)
    inside = scaling.apply(1e200 * X)
    np.testing.assert_allclose(inside.mean(axis=0), 0, atol=1e-14)
    np.testing.assert_allclose(inside.std(axis=0), 1)


@each_model
def test_without_standardizing_it_is_the_model_itself(name):
    estimator = make(name, standardize=False, chains=1).fit(X, Y)
    kind = {"std": Standard, "gplc": LatentCovariate}.get(name, LatentVariance)
    model = kind(X, Y, **MODELS[name][1])
    np.testing.assert_array_equal(estimator.model_.X, X)
    (chain,) = run_chains(model, seed=estimator.seed_, chains=1, draws=25, warmup=25)
    np.testing.assert_array_equal(estimator.draws_.theta[0], chain.theta)
    np.testing.assert_array_equal(estimator.draws_.latent[0], chain.latent)
    means, sds = estimator.predict_dist(NEW).components()
    width = 1 if name == "std" else 4
    for draw in (0, 24):
        given = model.condition(Unknowns(chain.theta[draw], chain.latent[draw]))
        by_hand = given.components(NEW, estimator.draws_.nodes[0, draw])
        here = slice(draw * width, (draw + 1) * width)
        np.testing.assert_allclose(means[:, here], by_hand[0], rtol=1e-12)
        np.testing.assert_allclose(sds[:, here], by_hand[1], rtol=1e-12)


def dense_conditional(covariance, cross, variance, y):
    """Mean and SD of a Gaussian given y, by plain solves."""
    weights = np.linalg.solve(covariance, cross.T).T
    return weights @ y, np.sqrt(variance - np.sum(weights * cross, axis=1))


@each_model
def test_components_are_the_papers_formulas(name):
    """Written out densely: K' C^-1 y and K(x, x) + sigma^2 - k' C^-1 k."""
    model = make(name, standardize=False, chains=1).fit(X, Y)
    theta, latent = model.draws_.theta[0, -1], model.draws_.latent[0, -1]
    nodes = model.draws_.nodes[0, -1]
    given = model.model_.condition(Unknowns(theta, latent))

    def kernel(a, b, log_signal, log_scales):
        gaps = (a[:, None, :] - b[None, :, :]) / np.exp(log_scales)
        return 1.0 + np.exp(2 * log_signal - (gaps**2).sum(axis=2))

    means, sds = given.components(NEW, nodes)
    for s, node in enumerate(nodes[:1] if name == "std" else nodes):
        if name in ("std", "gplc"):
            inputs, rows = X, NEW
            if name == "gplc":
                inputs = np.c_[X, latent]
                rows = np.c_[NEW, np.full(11, node)]
            cross = kernel(rows, inputs, theta[0], theta[1:-1])
            covariance = kernel(inputs, inputs, theta[0], theta[1:-1])
            noise = np.exp(2 * theta[-1])
            mean, sd = dense_conditional(
                covariance + noise * np.eye(20), cross, 1 + np.exp(2 * theta[0]) + noise, Y
            )
        else:
            link = np.exp if name == "gplv log" else np.abs
            z_covariance = kernel(X, X, theta[3], theta[4:]) + 1e-6 * np.eye(20)
            z_mean, z_sd = dense_conditional(
                z_covariance,
                kernel(NEW, X, theta[3], theta[4:]),
                1 + np.exp(2 * theta[3]) + 1e-6,
                latent,
            )
            noise = link(z_mean + z_sd * node) ** 2
            covariance = kernel(X, X, theta[0], theta[1:3]) + np.diag(link(latent) ** 2)
            cross = kernel(NEW, X, theta[0], theta[1:3])
            mean, sd = dense_conditional(covariance, cross, 1 + np.exp(2 * theta[0]) + noise, Y)
        np.testing.assert_allclose(means[:, s], mean, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(sds[:, s], sd, rtol=1e-6)


def residual_variance(model, rows):
    """E V(y | f) over the draws; `residual_sd` gives means of SDs, not of variances."""
    inputs = model.x_scaling_.apply(rows)
    variances = [
        given.residual_variance(inputs, nodes) for given, nodes in model.posterior_.conditioned()
    ]
    return np.mean(variances, axis=0) * model.y_scaling_.scale**2


@pytest.mark.parametrize("name", ["std", "gplv log", "gplv abs"])
def test_the_two_uncertainties_add_up(name):
    """V(y) = V(f) + E V(y | f): exactly, because f is Gaussian whatever the nodes."""
    model = make(name).fit(X, Y)
    dist, function = model.predict_dist(NEW), model.regression_function(NEW)
    residual = residual_variance(model, NEW)
    np.testing.assert_allclose(dist.mean(), function.mean(), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(dist.var(), function.var() + residual, rtol=1e-10)


def test_the_two_uncertainties_of_gplc_add_up_with_many_nodes():
    model = LatentCovariateGP(
        **SOME | {"draws": 5, "nodes": 4000}, priors={"latent_length_scale": (0.0, 0.5)}
    ).fit(X, Y)
    dist, function = model.predict_dist(NEW), model.regression_function(NEW)
    residual = residual_variance(model, NEW)
    np.testing.assert_allclose(dist.mean(), function.mean(), atol=1e-3)
    np.testing.assert_allclose(dist.var(), function.var() + residual, rtol=2e-3)
    assert (residual > 0).all()


def test_residual_sd_finds_the_true_one():
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, size=100)
    sd = 0.1 * np.exp(1.2 * x)
    y = np.sin(3 * x) + sd * rng.standard_normal(100)
    grid = np.linspace(-0.8, 0.8, 9)
    truth = 0.1 * np.exp(1.2 * grid)
    model = LatentVarianceGP(chains=1, draws=40, warmup=40, random_state=0).fit(x[:, None], y)
    band = model.residual_sd(grid[:, None])
    assert np.abs(np.log(band.mean / truth)).mean() < 0.25
    assert ((band.lower < truth) & (truth < band.upper)).sum() >= 6
    # It grows sixfold from end to end; the mean is known better than single responses are.
    assert 3 < band.mean[-1] / band.mean[0] < 15
    function = model.regression_function(grid[:, None])
    assert np.abs(function.mean() - np.sin(3 * grid)).max() < 0.15
    assert (function.std() < band.mean).all()


def test_gplc_says_skewed_where_it_is():
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, size=80)
    y = x + 0.5 * (rng.exponential(size=80) - 1)
    model = LatentCovariateGP(chains=1, draws=100, warmup=150, random_state=0).fit(x[:, None], y)
    grid = np.linspace(-0.8, 0.8, 5)[:, None]
    assert model.predict_dist(grid).skewness().mean() > 0.4
    gaussian = StandardGP(chains=1, draws=100, warmup=100, random_state=0).fit(x[:, None], y)
    assert np.abs(gaussian.predict_dist(grid).skewness()).max() < 0.2


def test_stratified_nodes_are_one_to_a_stratum():
    nodes = latent_nodes(np.random.default_rng(0), draws=500, count=7)
    strata = np.floor(norm.cdf(nodes) * 7)
    np.testing.assert_array_equal(strata, np.tile(np.arange(7.0), (500, 1)))
    # One shift for all nodes of a draw, another in the next draw.
    shifts = norm.cdf(nodes) * 7 - strata
    np.testing.assert_allclose(shifts, shifts[:, :1].repeat(7, axis=1), atol=1e-9)
    assert np.unique(shifts[:, 0]).size == 500
    # Together they are standard normal: their average is far closer to it than random ones.
    assert np.isfinite(nodes).all()
    assert abs((nodes**2).mean() - 1) < 0.03


@pytest.mark.parametrize("rule", ["stratified", "random"])
def test_the_rule_for_nodes_is_used(rule):
    model = LatentCovariateGP(**SOME | {"node_rule": rule}).fit(X, Y)
    nodes = model.draws_.nodes
    assert nodes.shape == (2, 25, 4)
    strata = np.floor(norm.cdf(nodes) * 4)
    assert (strata == np.arange(4)).all() == (rule == "stratified")
    # Different between draws and chains, whatever the rule.
    assert np.unique(nodes[:, :, 0]).size == 50
    assert model.predict_dist(NEW).n_components == 200


def test_fewer_draws_for_prediction():
    full = LatentCovariateGP(**SOME | {"predictive_draws": None}).fit(X, Y)
    assert len(full.posterior_) == 50
    means, sds = full.predict_dist(NEW).components()
    thin = LatentCovariateGP(**SOME | {"predictive_draws": 10}).fit(X, Y)
    assert len(thin.posterior_) == 10
    # Every fifth draw, from both chains, with the nodes that belong to it.
    picked = (np.arange(50) % 5 == 0).repeat(4)
    np.testing.assert_allclose(thin.predict_dist(NEW).components()[0], means[:, picked])
    np.testing.assert_allclose(thin.predict_dist(NEW).components()[1], sds[:, picked])
    np.testing.assert_array_equal(thin.draws_.theta, full.draws_.theta)
    many = LatentCovariateGP(**SOME | {"predictive_draws": 1000}).fit(X, Y)
    assert len(many.posterior_) == 50


EXPECTED_DRAWS = {
    "std": {"signal_sd": (), "length_scale": (2,), "noise_sd": ()},
    "gplc": {
        "signal_sd": (),
        "length_scale": (2,),
        "latent_length_scale": (),
        "noise_sd": (),
        "w": (20,),
    },
    "gplv log": {
        "signal_sd_y": (),
        "length_scale_y": (2,),
        "signal_sd_z": (),
        "length_scale_z": (2,),
        "z": (20,),
    },
}


@pytest.mark.parametrize("name", EXPECTED_DRAWS)
def test_draws_by_name(name):
    draws = make(name).fit(X, Y).draws_.standardized()
    expected = EXPECTED_DRAWS[name] | {"log_density": ()}
    assert list(draws) == list(expected)
    assert len(draws) == len(expected)
    assert {key: value.shape for key, value in draws.items()} == {
        key: (2, 25, *shape) for key, shape in expected.items()
    }
    # Hyperparameters as they are, not their logarithms.
    first = next(iter(expected))
    np.testing.assert_array_equal(draws[first], np.exp(draws.theta[:, :, 0]))
    assert all((draws[key] > 0).all() for key in expected if key not in ("w", "z", "log_density"))
    with pytest.raises(KeyError, match="there are"):
        draws["nothing"]
    assert "2 chains of 25" in repr(draws)
    assert isinstance(draws, Draws)


def test_one_length_scale_has_no_axis():
    isotropic = StandardGP(**SOME, kernel=SquaredExponential(ard=False)).fit(X, Y)
    assert isotropic.draws_["length_scale"].shape == (2, 25)


def test_log_density_belongs_to_the_draw(fitted):
    draws = fitted.draws_
    for chain, draw in ((0, 0), (1, 24)):
        unknowns = Unknowns(draws.theta[chain, draw], draws.latent[chain, draw])
        assert fitted.model_.log_density(unknowns) == pytest.approx(
            draws.log_density[chain, draw], abs=1e-6
        )
