"""The fast method: a mode, a Gaussian around it, weights, and a verdict."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_t, norm

import gplc
from gplc.diagnostics import Diagnostics, Level, Weighed
from gplc.estimators.files import ESTIMATORS
from gplc.fast import FREEDOM, Proposal, first_answer, resampled, weighed
from gplc.models import Standard
from gplc.models.base import Unknowns

DATA = gplc.datasets.make_paper("U1", n=25, random_state=3)
KEYS = ("std", "gplv", "gplc")


@pytest.fixture(scope="module")
def fits():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            key: ESTIMATORS[key](method="fast", chains=2, random_state=1).fit(DATA.X, DATA.y)
            for key in KEYS
        }


@pytest.mark.parametrize("key", KEYS)
def test_a_fast_fit_answers_as_any_other(key, fits, tmp_path):
    model = fits[key]
    told = model.diagnostics_
    assert told.weighed is not None
    assert told.level in Level
    assert "first answer" in told.verdict
    assert np.isfinite(model.predict_dist(DATA.X).logpdf(DATA.y)).all()
    assert model.loo().log_density.shape == DATA.y.shape
    model.save(tmp_path / "fit.nc")
    again = gplc.load(tmp_path / "fit.nc")
    assert np.array_equal(again.predict(DATA.X), model.predict(DATA.X))
    assert again.diagnostics_.weighed == told.weighed
    assert again.diagnostics_.verdict == told.verdict
    assert str(again.diagnostics_) == str(told)
    with pytest.raises(ValueError, match="refit must be 0 after the fast method"):
        model.loo(refit=1)


@pytest.mark.parametrize("key", KEYS)
def test_chains_begin_where_a_fast_fit_ends(key, fits, tmp_path):
    fits[key].save(tmp_path / "fit.nc")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, again = (
            gplc.load(tmp_path / "fit.nc").set_params(warmup=5).extend(8) for _ in range(2)
        )
    assert model.diagnostics_.weighed is None
    assert model.draws_.log_density.shape == (2, 8)
    assert np.array_equal(model.draws_.theta, again.draws_.theta)


def test_the_same_seed_gives_the_same_draws(fits):
    again = ESTIMATORS["std"](method="fast", chains=2, random_state=1).fit(DATA.X, DATA.y)
    assert np.array_equal(again.draws_.theta, fits["std"].draws_.theta)


@pytest.mark.parametrize("key", KEYS)
def test_in_a_basis(key):
    data = gplc.datasets.make_paper("U2", n=300, random_state=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ESTIMATORS[key](
            method="fast",
            chains=2,
            random_state=1,
            approximation=gplc.Hilbert(12, 2.5, 8) if key == "gplc" else gplc.Hilbert(12, 2.5),
        ).fit(data.X, data.y)
    assert model.approximation_ is not None
    assert np.isfinite(model.predict_dist(data.X).logpdf(data.y)).all()


def by_quadrature(model):
    """Means and variances under the posterior of a standard model with three hyperparameters."""
    axes = [np.linspace(m - 4 * s, m + 4 * s, 41) for m, s in zip(*moments(model), strict=True)]
    logs = np.array(
        [
            [
                [model.log_density(Unknowns(np.array([a, b, c]), np.empty(0))) for c in axes[2]]
                for b in axes[1]
            ]
            for a in axes[0]
        ]
    )
    p = np.exp(logs - logs.max())
    p /= p.sum()
    alone = [p.sum(axis=tuple({0, 1, 2} - {k})) for k in range(3)]
    means = [float(each @ axis) for each, axis in zip(alone, axes, strict=True)]
    gaps = [axis - mean for axis, mean in zip(axes, means, strict=True)]
    return np.array(means), np.array(
        [each @ gap**2 for each, gap in zip(alone, gaps, strict=True)]
    )


def moments(model):
    theta = first_answer(model, np.random.SeedSequence(9), 1).chains[0].theta
    return theta.mean(axis=0), theta.std(axis=0)


def test_standard_model_against_quadrature():
    x = np.linspace(-1.5, 1.5, 30)[:, None]
    noise = 0.3 * np.random.default_rng(4).standard_normal(30)
    model = Standard(x, np.sin(2.0 * x[:, 0]) + noise)
    mean, variance = by_quadrature(model)
    answer = first_answer(model, np.random.SeedSequence(0), 4)
    assert answer.weighed.k < 0.7  # no chains have mended it
    assert not answer.weighed.settled
    theta = np.concatenate([chain.theta for chain in answer.chains])
    worth = 1.0 / (1.0 / answer.weighed.effective + 1.0 / len(theta))
    # Six two-sided tests at four standard errors: false alarms in fewer than 1 of 2500 seeds.
    for values, exact in ((theta, mean), ((theta - mean) ** 2, variance)):
        errors = values.std(axis=0) / np.sqrt(worth)
        assert (np.abs(values.mean(axis=0) - exact) < 4.0 * errors).all()


def skewed(log_weights_of):
    """Mean of a gamma variable of shape 4 by candidates from a wide Gaussian, weighed."""
    rng = np.random.default_rng(5)
    x = 5.0 + 3.0 * rng.standard_normal(4000)
    x = x[x > 0.0]
    shares, k = weighed(log_weights_of(x))
    places = resampled(rng, shares, 2000)
    return x[places].mean(), k, 1.0 / np.sum(shares**2)


def test_weights_turn_candidates_into_draws_and_a_broken_twin_does_not():
    def log_q(x):
        return -0.5 * ((x - 5.0) / 3.0) ** 2

    right, _, effective = skewed(lambda x: 3.0 * np.log(x) - x - log_q(x))
    # Four standard errors: false alarms in fewer than 1 of 10,000 seeds.
    error = 2.0 * np.sqrt(1.0 / effective + 1.0 / 2000)
    assert abs(right - 4.0) < 4.0 * error
    for broken in (lambda x: 0.0 * x + log_q(x), lambda x: log_q(x) - 3.0 * np.log(x) + x):
        wrong, _, _ = skewed(broken)
        assert abs(wrong - 4.0) > 4.0 * error


def test_candidates_have_the_density_that_they_are_weighed_by():
    """A t distribution of theta times a Gaussian of v given theta, as scipy has them."""
    curvature = np.array([[4.0, 1.0, 0.5], [1.0, 2.0, 0.3], [0.5, 0.3, 1.0]])
    proposal, rng = Proposal.of(np.array([1.0, 2.0, 3.0]), curvature, 2), np.random.default_rng(8)
    gaps = []
    for _ in range(20):
        position, density = proposal.draw(rng)
        step = position[:2] - proposal.centre[:2]
        v = position[2:] - proposal.centre[2:] - proposal.across @ step
        theta = multivariate_t([0.0, 0.0], proposal.root @ proposal.root.T, df=FREEDOM)
        gaps.append(density - theta.logpdf(step) - norm(0.0, proposal.rest[0, 0]).logpdf(v[0]))
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-9)


def test_k_tells_of_a_proposal_that_is_too_narrow():
    rng = np.random.default_rng(6)
    # In one dimension k is 1 - 0.4^2 in theory, but its estimate comes near only with very many
    # candidates (0.66 with this seed and 2000). In eight the tail is seen at once.
    x = 0.4 * rng.standard_normal((2000, 8))
    squares = np.sum(x**2, axis=1)
    _, k = weighed(-0.5 * squares + 0.5 * squares / 0.4**2)
    assert k > 0.7


def test_the_proposal_has_the_covariance_that_the_curvature_says():
    curvature = np.array([[4.0, 1.0, 0.5], [1.0, 2.0, 0.3], [0.5, 0.3, 1.0]])
    proposal = Proposal.of(np.array([1.0, 2.0, 3.0]), curvature, 1)
    rng = np.random.default_rng(7)
    drawn = np.array([proposal.draw(rng)[0] for _ in range(20_000)])
    expected = np.linalg.inv(curvature)
    # v given theta, whatever the tails of theta are.
    rest = drawn[:, 1:] - (drawn[:, :1] - 1.0) @ (expected[:1, 1:] / expected[0, 0])
    conditional = expected[1:, 1:] - expected[1:, :1] @ expected[:1, 1:] / expected[0, 0]
    # Standard errors are below 0.01 each: five of them.
    assert np.allclose(np.cov(rest.T), conditional, atol=0.05)
    assert np.allclose(rest.mean(axis=0), [2.0, 3.0], atol=0.05)


@pytest.mark.parametrize(
    ("told", "level"),
    [
        (Weighed(0.3, 900.0, 2000, False), Level.FINE),
        (Weighed(0.3, 300.0, 2000, False), Level.USABLE),
        (Weighed(0.6, 900.0, 2000, False), Level.USABLE),
        (Weighed(0.69, 900.0, 300, False), Level.DO_NOT_USE),
        (Weighed(0.8, 900.0, 2000, False), Level.DO_NOT_USE),
        (Weighed(0.3, 50.0, 2000, False), Level.DO_NOT_USE),
        (Weighed(np.inf, 0.0, 0, False), Level.DO_NOT_USE),
    ],
)
def test_the_verdict_follows_k(told, level):
    diagnostics = Diagnostics({}, {}, {}, {}, {}, 4, 100, weighed=told)
    assert diagnostics.level is level
    assert bool(diagnostics.next_step()) == (level is not Level.FINE)


def test_settings_are_checked():
    with pytest.raises(ValueError, match="method must be one of"):
        gplc.StandardGP(method="quick").fit(DATA.X, DATA.y)
    with pytest.raises(ValueError, match="checkpoint is for chains"):
        gplc.StandardGP(method="fast", checkpoint="run.nc").fit(DATA.X, DATA.y)


@pytest.mark.parametrize("key", KEYS)
def test_known_noise_and_levels(key):
    frame = pd.DataFrame({"x": DATA.X[:, 0], "c": np.where(np.arange(25) % 2, "a", "b")})
    few = {"method": "fast", "chains": 2, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ESTIMATORS[key](**few, draws="auto").fit(frame, DATA.y, noise_std=0.1)
    told = model.diagnostics_.weighed
    assert told is not None
    # GPLC has no twin in a basis then: short chains say so.
    assert told.settled or key != "gplc"
    assert np.isfinite(model.predict_dist(frame).logpdf(DATA.y)).all()
