"""Leave-one-out against brute force, against ArviZ, and on the scale of the data."""

import math
import pickle
import types

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.exceptions import NotFittedError

import gplc
from gplc.estimators import ESTIMATORS
from gplc.loo import Kept, estimated, good_k, smoothed
from gplc.models import MODELS, LatentCovariate, LatentVariance, Model, Standard, Unknowns
from gplc.models.left_out import LeftOut

N = 14
RNG = np.random.default_rng(5)
X = RNG.uniform(-1.5, 1.5, (N, 1))
Y = np.sin(2.0 * X[:, 0]) + 0.5 * RNG.standard_normal(N)
Y = np.round(1024.0 * Y) / 1024.0  # so that units can be changed without rounding
SDS = np.linspace(0.1, 0.8, N)
W = np.linspace(-7.0, 7.0, 1001)

VARIANTS = {
    "std": lambda X, y, **known: Standard(X, y, **known),
    "gplv": lambda X, y, **known: LatentVariance(X, y, **known),
    "gplv abs": lambda X, y, **known: LatentVariance(X, y, link="abs", mean_z=1.0, **known),
    "gplc": lambda X, y, **known: LatentCovariate(X, y, **known),
    "gplc matern": lambda X, y, **known: LatentCovariate(
        X, y, gplc.kernels.Matern32() + gplc.kernels.Linear().on("w0"), **known
    ),
}


def drawn(model: Model, seed: int) -> Unknowns:
    """A draw near the prior mean, with latent values from their prior."""
    rng = np.random.default_rng(seed)
    theta = model.priors.means + 0.3 * rng.standard_normal(len(model.names))
    return Unknowns(theta, model.sample_latent(rng, theta))


def brute_force(make, unknowns: Unknowns, row: int, known: float) -> float:
    """log p(y_i | the others), from a model of the others, summing over a fine grid of nodes."""
    keep = np.delete(np.arange(N), row)
    sds = {"known_sd": SDS[keep]} if known else {}
    fewer = make(X[keep], Y[keep], **sds)
    latent = unknowns.latent[keep] if unknowns.latent.size else unknowns.latent
    mean, sd = fewer.condition(Unknowns(unknowns.theta, latent)).components(X[[row]], W)
    sd = np.sqrt(sd**2 + known**2)  # the noise of this case is known to be so large
    weights = norm.pdf(W)
    mean, sd = np.broadcast_to(mean[0], W.shape), np.broadcast_to(sd[0], W.shape)
    return float(np.log(np.sum(weights * norm.pdf(Y[row], mean, sd)) / weights.sum()))


@pytest.mark.parametrize("with_known", [False, True])
@pytest.mark.parametrize("variant", VARIANTS)
def test_each_row_given_the_others_is_what_a_model_of_the_others_says(variant, with_known):
    make = VARIANTS[variant]
    model = make(X, Y, **({"known_sd": SDS} if with_known else {}))
    # A rule for z; cells of w that take g as linear, and variances between some of them.
    tolerance = {"std": 1e-8, "gplv": 1e-5, "gplc": 3e-3}[variant.split()[0]]
    for seed in range(3):
        unknowns = drawn(model, seed)
        found = model.left_out(unknowns).log_density(Y)
        for row in range(seed, N, 3):
            expected = brute_force(make, unknowns, row, SDS[row] if with_known else 0.0)
            assert found[row] == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("variant", ["gplv", "gplc"])
def test_the_latent_value_of_the_row_itself_does_not_enter(variant):
    model = VARIANTS[variant](X, Y)
    unknowns = drawn(model, 1)
    before = model.left_out(unknowns).log_density(Y)
    for row in range(N):
        latent = unknowns.latent.copy()
        latent[row] += 1.0
        after = model.left_out(unknowns._replace(latent=latent)).log_density(Y)
        assert after[row] == pytest.approx(before[row], abs=1e-9)
        assert np.abs(np.delete(after - before, row)).max() > 1e-4  # those of others do


@pytest.mark.parametrize("variant", ["gplv", "gplc"])
def test_a_twin_that_keeps_the_fitted_latent_value_is_caught(variant):
    """The broken twin: y_i given the others at its own w_i or z_i."""
    make = VARIANTS[variant]
    model = make(X, Y)
    unknowns = drawn(model, 1)
    if variant == "gplv":  # z that goes up and down between neighbours is not known from them
        unknowns.theta[model.names.index("length_scale_z")] = -3.0
        latent = model.sample_latent(np.random.default_rng(0), unknowns.theta)
        unknowns = unknowns._replace(latent=latent)
    mean, variance = model.state(unknowns).solved[0].left_out()
    kept = norm.logpdf(Y, mean, np.sqrt(variance))
    wrong = [abs(kept[row] - brute_force(make, unknowns, row, 0.0)) for row in range(N)]
    assert max(wrong) > 0.1


def test_several_latent_covariates_are_summed_out():
    """By points, which are good to a few percent: the sum over a grid of two dimensions."""
    model = LatentCovariate(X, Y, n_latent=2)
    unknowns = drawn(model, 2)
    found = model.left_out(unknowns).log_density(Y)
    axis = np.linspace(-5.0, 5.0, 41)
    grid = np.array([each.ravel() for each in np.meshgrid(axis, axis)])
    weights = norm.pdf(grid).prod(axis=0)
    for row in (0, 7):
        keep = np.delete(np.arange(N), row)
        fewer = LatentCovariate(X[keep], Y[keep], n_latent=2)
        latent = unknowns.latent.reshape(2, N)[:, keep].ravel()
        given = fewer.condition(Unknowns(unknowns.theta, latent))
        mean, sd = given.components(X[[row]], grid.ravel())
        expected = np.log(weights @ norm.pdf(Y[row], mean[0], sd[0]) / weights.sum())
        assert found[row] == pytest.approx(expected, abs=0.05)


def test_every_model_sums_out_its_latent_values_or_says_that_it_does_not():
    for key, each in MODELS.items():
        model = each(X, Y)
        assert model.left_out(drawn(model, 0)).log_density(Y).shape == (N,), key

    class Unfinished(LatentVariance):
        _left_out = Model._left_out

    model = Unfinished(X, Y)
    with pytest.raises(NotImplementedError, match=r"Unfinished does not say .* define _left_out"):
        model.left_out(model.prior_mean())


# Importance sampling, on a model whose answer is known: y_i ~ N(mu, 1) with a flat prior.


def normal_mean(twin: bool = False) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    y = rng.standard_normal(12)
    mu = y.mean() + rng.standard_normal((4, 2000, 1)) / math.sqrt(y.size)
    logs = norm.logpdf(y, mu, 1.0)
    rest = (y.sum() - y) / (y.size - 1)
    exact = norm.logpdf(y, rest, math.sqrt(1.0 + 1.0 / (y.size - 1)))
    # The broken twin has the weights upside down.
    return (-logs if twin else logs), exact


def found_of(logs: np.ndarray, weighted_by: np.ndarray):
    nothing = np.zeros((*logs.shape, 1))
    kept = Kept(weighted_by, np.full(logs.shape, 0.5), nothing, nothing + 1.0)
    result = estimated(kept, np.random.SeedSequence(0))
    shares = np.exp(smoothed(weighted_by).log_weights)
    flat = logs.reshape(-1, logs.shape[2]).T
    return result, np.log(np.sum(shares * np.exp(flat), axis=1))


def test_importance_sampling_finds_what_is_known():
    """Within 5 Monte Carlo errors: 12 rows, false alarm below 1e-5."""
    logs, exact = normal_mean()
    result, by_hand = found_of(logs, logs)
    assert np.all(np.abs(result.log_density - exact) < 5.0 * result.mcse + 1e-3)
    assert result.mcse.max() < 0.02
    np.testing.assert_allclose(result.log_density, by_hand)
    assert result.pareto_k.max() < good_k(8000)
    upside_down, _ = normal_mean(twin=True)
    _, wrong = found_of(logs, upside_down)
    assert np.any(np.abs(wrong - exact) > 5.0 * result.mcse + 1e-3)


def test_few_draws_are_used_but_not_trusted():
    logs, _ = normal_mean()
    result, _ = found_of(logs[:1, :10], logs[:1, :10])
    assert np.isfinite(result.log_density).all()
    assert np.isinf(result.pareto_k).all()


# On the scale of the data.

SMALL = {"chains": 2, "draws": 60, "warmup": 40, "random_state": 0}


@pytest.fixture(scope="module", params=["std", "gplv", "gplc"])
def fitted(request):
    return ESTIMATORS[request.param](**SMALL).fit(X, Y)


def test_scores_follow_the_units_of_y(fitted):
    loo = fitted.loo()
    other = type(fitted)(**SMALL).fit(X, 8.0 * Y).loo()
    np.testing.assert_allclose(other.log_density, loo.log_density - math.log(8.0), atol=1e-6)
    np.testing.assert_allclose(other.pit, loo.pit, atol=1e-6)
    np.testing.assert_allclose(other.dist.mean(), 8.0 * loo.dist.mean(), rtol=1e-6)
    known = type(fitted)(mean=lambda X: np.full(len(X), 7.0), **SMALL).fit(X, Y + 7.0).loo()
    np.testing.assert_allclose(known.log_density, loo.log_density, atol=1e-6)
    np.testing.assert_allclose(known.dist.mean(), loo.dist.mean() + 7.0, atol=1e-6)


def test_distributions_agree_with_densities_and_pit(fitted):
    """The distribution has as many components as draws, times 4: errors of a percent or so."""
    loo = fitted.loo()
    assert len(loo.dist) == N
    np.testing.assert_allclose(loo.dist.cdf(loo.y), loo.pit, atol=0.03)
    np.testing.assert_allclose(loo.dist.logpdf(loo.y), loo.log_density, atol=0.15)
    ends = loo.interval(0.8)
    np.testing.assert_allclose(loo.dist.cdf(ends), [[0.1, 0.9]] * N, atol=1e-6)
    assert loo.to_frame().shape == (N, 6)
    assert loo.elpd == pytest.approx(-N * loo.nlpd)
    assert "elpd" in str(loo)
    assert "Verdict" in loo._repr_html_()
    assert set(loo.to_record()) >= {"elpd", "se", "bad_rows", "verdict"}
    assert fitted.loo() is loo  # nothing is computed twice


def test_a_row_far_off_is_surprising_and_in_words():
    y = Y.copy()
    y[3] += 8.0
    loo = gplc.StandardGP(**SMALL).fit(X, y).loo()
    assert np.argmax(loo.surprise) == 3
    assert loo.pit[3] > 0.99
    assert "Most surprising: row 3" in str(loo)


def test_bad_rows_are_sampled_again_without_them(tmp_path):
    """Row 3 alone says that the noise is large: no weights of draws given it can undo that.

    Both ways within 5 of their Monte Carlo errors; a twin that samples with the row is caught.
    """
    y = Y.copy()
    y[3] += 8.0
    model = gplc.StandardGP(**SMALL | {"draws": 200}).fit(X, y)
    assert 3 in model.loo().bad_rows
    loo = model.loo(refit=3)
    assert 3 in loo.refitted
    assert loo.pareto_k[3] == 0.0
    assert loo.bad_rows.size == max(0, model.loo().bad_rows.size - 3)
    keep = np.delete(np.arange(N), 3)
    alone = gplc.StandardGP(standardize=False, **SMALL | {"draws": 1000})
    standard = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    alone.fit(standard[0][keep], standard[1][keep])
    expected = alone.predict_dist(standard[0][[3]]).logpdf(standard[1][3]) - math.log(y.std())
    assert loo.log_density[3] == pytest.approx(expected[0], abs=5.0 * loo.mcse[3] + 0.3)
    with_the_row = model.predict_dist(X[[3]]).logpdf(y[3])[0]  # the broken twin
    assert abs(with_the_row - expected[0]) > 5.0 * loo.mcse[3] + 0.3
    model.save(tmp_path / "fit.nc")
    again = gplc.load(tmp_path / "fit.nc").loo(refit=3)
    np.testing.assert_allclose(again.log_density, loo.log_density)


@pytest.mark.parametrize("key", ["gplv", "gplc"])
def test_a_row_that_is_ignored_tells_nothing(key):
    model = MODELS[key](X, Y)
    ignoring = model.ignoring(4)
    unknowns = drawn(model, 0)
    moved = Y.copy()
    moved[4] += 5.0
    before = ignoring.log_density(unknowns)
    assert ignoring.with_data(moved).log_density(unknowns) == pytest.approx(before, abs=1e-4)
    assert abs(model.with_data(moved).log_density(unknowns) - model.log_density(unknowns)) > 0.1


def test_what_is_wrong_is_said_in_one_line(fitted):
    with pytest.raises(ValueError, match=r"draws must be an integer of at least 1, got 0; 1000"):
        fitted.loo(draws=0)
    with pytest.raises(ValueError, match=r"refit must be an integer of at least 0, got -1"):
        fitted.loo(refit=-1)
    with pytest.raises(NotFittedError):
        gplc.StandardGP().loo()
    with pytest.raises(ValueError, match="groups"):
        fitted.draws_.to_arviz(["posterior", "likelihood"])


def test_mixtures_are_asked_for_a_few_of_their_components():
    given = LeftOut(np.array([[0.0, 1.0, 2.0]]), np.ones((1, 3)), np.array([0.2, 0.5, 0.3]))
    assert given.some(np.array([0.1, 0.3, 0.69, 0.71, 1.0]))[0].tolist() == [[0, 1, 1, 2, 2]]


# New responses at the same inputs.


@pytest.mark.parametrize("key", ["std", "gplv", "gplc"])
def test_replicates_have_mean_and_variance_of_predictions(key):
    """At each of 14 rows, 300 replicates: |t| below 5.5 for means, false alarm below 1e-6."""
    model = MODELS[key](X, Y)
    unknowns = drawn(model, 4)
    rng = np.random.default_rng(0)
    made = np.array([model.replicate(rng, unknowns) for _ in range(300)])
    given = model.condition(unknowns)
    mean, sd = given.components(X, norm.ppf((np.arange(400) + 0.5) / 400))
    mean, sd = np.broadcast_arrays(mean, sd)
    centre = mean.mean(axis=1)
    spread = np.sqrt(np.mean(sd**2 + (mean - centre[:, None]) ** 2, axis=1))
    t = (made.mean(axis=0) - centre) / (spread / math.sqrt(300))
    assert np.abs(t).max() < 5.5
    np.testing.assert_allclose(made.std(axis=0), spread, rtol=0.3)


# ArviZ takes it all.


@pytest.fixture
def arviz_plots(monkeypatch):
    """ArviZ's plots; with matplotlib 3.11 they look for its styles under a name of before."""
    import matplotlib.style as style

    if not hasattr(style, "core"):
        core = types.SimpleNamespace(
            USER_LIBRARY_PATHS=list(style.USER_LIBRARY_PATHS), reload_library=lambda: None
        )
        monkeypatch.setattr(style, "core", core, raising=False)
    return pytest.importorskip("arviz_plots")


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")
def test_arviz_finds_the_same(fitted):
    import arviz_stats

    tree = fitted.draws_.to_arviz()
    assert set(tree.children) == {
        "posterior",
        "sample_stats",
        "log_likelihood",
        "posterior_predictive",
        "observed_data",
        "prior",
        "prior_predictive",
    }
    theirs, ours = arviz_stats.loo(tree, pointwise=True), fitted.loo()
    # They take another effective number of draws, which moves the beginning of the tail.
    assert theirs.elpd == pytest.approx(ours.elpd, abs=0.3)
    np.testing.assert_allclose(tree["observed_data"]["y"], Y, rtol=1e-12)
    assert tree["posterior_predictive"]["y"].shape == (2, 60, N)
    assert tree["prior_predictive"]["y"].shape == (1, 500, N)
    some = fitted.draws_.to_arviz(["posterior", "observed_data"])
    assert set(some.children) == {"posterior", "observed_data"}
    assert pickle.loads(pickle.dumps(fitted)).loo().elpd == pytest.approx(ours.elpd)


@pytest.mark.usefixtures("no_windows")
@pytest.mark.filterwarnings("ignore")
def test_arviz_compares_and_draws(arviz_plots):
    import arviz_stats

    models = {"std": gplc.StandardGP, "gplv": gplc.LatentVarianceGP}
    trees = {key: each(**SMALL).fit(X, Y).draws_.to_arviz() for key, each in models.items()}
    table = arviz_stats.compare(trees)
    assert sorted(table.index) == ["gplv", "std"]
    arviz_plots.plot_loo_pit(trees["std"], backend="matplotlib")
    arviz_plots.plot_ppc_dist(trees["std"], backend="matplotlib")
