"""Inducing points: against the exact model, against differences, and in the estimators."""

import re

import numpy as np
import pytest
from scipy.stats import ks_2samp

import gplc
from gplc.chains import advance, go_on, start
from gplc.estimators import base
from gplc.kernels import Constant, Linear, Matern32, Periodic, SquaredExponential
from gplc.kernels.base import Leaf
from gplc.models import MODELS
from gplc.models.in_basis import IN_BASIS, WITH_POINTS, Points
from gplc.models.in_basis import inducing as models

KERNELS = {
    "default": None,
    "with a line": SquaredExponential(ard=False) + Linear(),
    "products": Matern32() * Constant() + Periodic().on(0),
}
# Those of the others are in test_interpolated.py.
WITH = pytest.mark.parametrize("cls", [WITH_POINTS["std"]])
OF_KERNELS = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
SETTINGS = {"chains": 2, "draws": 20, "warmup": 30, "random_state": 0}

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:the points leave out"),
]


def data(n=30, inputs=4):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, inputs))
    return X, np.sin(X).sum(axis=1) + 0.3 * rng.standard_normal(n)


def made(cls, points, kernel=None, n=30, **settings):
    X, y = data(n)
    return cls(X, y, kernel=kernel, axes=gplc.Inducing(points).chosen(X), **settings)


def somewhere(model, seed=0):
    rng = np.random.default_rng(seed)
    theta = model.priors.means + 0.3 * rng.uniform(-1.0, 1.0, len(model.names))
    return model.unknowns(theta, model.sample_latent(rng, theta))


def test_every_model_with_points_has_a_basis_too():
    assert WITH_POINTS.keys() <= IN_BASIS.keys() <= MODELS.keys()


@OF_KERNELS
def test_with_all_rows_as_points_it_is_the_exact_model(kernel):
    near = made(WITH_POINTS["std"], 100, kernel)
    exact = MODELS["std"](near.X, near.y, kernel=kernel)
    here, there = (model.state(somewhere(model)) for model in (near, exact))
    assert here.log_density == pytest.approx(there.log_density, abs=1e-4)
    np.testing.assert_allclose(
        near.gradient_at(here).theta, exact.gradient_at(there).theta, atol=1e-4
    )
    new = np.random.default_rng(1).standard_normal((8, 4))
    for ask in (lambda g: g.function(new), lambda g: g.components(new, np.zeros(1))):
        mine, right = (ask(model.condition(somewhere(model))) for model in (near, exact))
        np.testing.assert_allclose(mine, right, atol=1e-4)
    mine, right = (m.left_out(somewhere(m)).log_density(m.y) for m in (near, exact))
    np.testing.assert_allclose(mine, right, atol=1e-4)


@WITH
@OF_KERNELS
def test_gradient_agrees_with_differences(cls, kernel):
    model = made(cls, 8, kernel)
    unknowns = somewhere(model)
    together, k = np.concatenate(unknowns), len(model.names)

    def density(vector):
        return model.log_density(model.unknowns(vector[:k], vector[k:]))

    moves = 1e-5 * np.eye(together.size)
    wanted = [(density(together + m) - density(together - m)) / 2e-5 for m in moves]
    found = np.concatenate(model.gradient(unknowns))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_a_density_over_several_blocks_of_rows_is_that_of_its_covariance():
    model = made(WITH_POINTS["std"], 10, n=1500)
    unknowns = somewhere(model)
    root = model._induced.root(unknowns.theta[model.processes[0].place])
    A = model._induced.functions(root, model.X)
    variance = model._noise_variance(unknowns.theta)
    C = A @ A.T + variance * np.eye(model.n)
    value = -0.5 * (model.y @ np.linalg.solve(C, model.y) + np.linalg.slogdet(2 * np.pi * C)[1])
    wanted = value + model.priors.log_density(unknowns.theta)
    assert model.log_density(unknowns) == pytest.approx(wanted, rel=1e-8)


def test_the_error_shrinks_with_more_points():
    errors = [
        (model := made(WITH_POINTS["std"], points, n=300)).errors(model.priors.means)
        for points in (5, 20, 80, 300)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] < 1.0
    assert errors[-1] < 1e-6


def test_far_from_all_points_there_is_the_prior():
    model = made(WITH_POINTS["std"], 8)
    unknowns, far = somewhere(model), np.full((1, 4), 1e3)
    mean, variance = model.condition(unknowns).function(far)
    kernel = model._induced.bound
    prior = kernel.variance(unknowns.theta[model.processes[0].place], far)
    assert abs(mean[0]) < 1.5
    assert 0.4 * prior[0] < variance[0] <= prior[0] + 1e-9


@WITH
def test_a_chain_goes_on_bit_for_bit(cls):
    model = made(cls, 8)
    begun = go_on(model, start(model, model.scheme(), seed=1), 12, warmup=12).position
    whole = advance(model, begun, 6, tune=False)
    half = advance(model, begun, 3, tune=False)
    rest = advance(model, half.position, 3, tune=False)
    assert np.array_equal(whole.theta[3:], rest.theta)


# Geweke's test: unknowns and data from their joint distribution must stay in it.

REPLICATES, STEPS = 200, 4
# Nine statistics: a right sampler fails once in 10,000 runs.
THRESHOLD = 1e-5


def geweke(cls, seed):
    """P-values of statistics after updates, against direct draws."""
    rng = np.random.default_rng(seed)
    priors = {"length_scale": (0.5, 0.5), "signal_sd": (0.0, 0.5), "noise_sd": (-1.0, 0.5)}
    model = made(cls, 6, n=25, priors=priors)
    after, direct = [], []
    scheme = model.scheme()
    for _ in range(REPLICATES):
        unknowns = model.sample_prior(rng)
        for _ in range(STEPS):
            given = model.with_data(model.sample_data(rng, unknowns))
            state = given.state(unknowns)
            point, target = given.parts["all"](state)
            unknowns = scheme[0].sampler.step(rng, point, target)[0].payload.unknowns
        after.append([*unknowns.theta, given.y[0], np.abs(given.y).sum()])
    for _ in range(1500):
        unknowns = model.sample_prior(rng)
        y = model.sample_data(rng, unknowns)
        direct.append([*unknowns.theta, y[0], np.abs(y).sum()])
    pairs = zip(np.array(after).T, np.array(direct).T, strict=True)
    return np.array([ks_2samp(one, other).pvalue for one, other in pairs])


@WITH
def test_updates_leave_the_joint_distribution(cls):
    assert geweke(cls, seed=3).min() > THRESHOLD


def test_broken_updates_are_noticed(monkeypatch):
    right = models.ProductsTask.__call__

    def forgets_half_of_the_products(self, X, y):
        squares, products, total = right(self, X, y)
        return squares, 0.5 * products, total

    monkeypatch.setattr(models.ProductsTask, "__call__", forgets_half_of_the_products)
    assert geweke(WITH_POINTS["std"], seed=3).min() < THRESHOLD


# Points, and estimators.


def test_points_come_from_the_data_alone():
    X, _ = data(400)
    first, again = (gplc.Inducing(20).chosen(X) for _ in range(2))
    assert first == again
    assert len(first.rows) == 20
    assert Points.from_record(first.record()) == first
    assert len(gplc.Inducing(20).chosen(np.repeat(X[:3], 50, axis=0)).rows) == 3
    for wrong in (0, 10_000, 2.5, "many"):
        with pytest.raises(ValueError, match="points must be"):
            gplc.Inducing(wrong)
    with pytest.raises(ValueError, match="no table of numbers"):
        Points.from_record({"points": [[0.0], [np.nan]]})


def fitted(cls=gplc.StandardGP, **settings):
    X, y = data(120)
    given = {"approximation": gplc.Inducing(15)} | settings
    return cls(**SETTINGS | given).fit(X, y), X, y


ESTIMATORS = [each for each in base.ESTIMATORS.values() if each.model_class.key in WITH_POINTS]


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_a_fit_predicts_and_survives_a_file(cls, tmp_path):
    model, X, y = fitted(cls)
    assert isinstance(model.model_, WITH_POINTS[cls.model_class.key])
    assert np.corrcoef(model.predict(X), y)[0, 1] > 0.9
    assert "15 inducing points" in str(model.approximation_)
    model.save(tmp_path / "fit.nc")
    again = gplc.load(tmp_path / "fit.nc")
    assert again.approximation == gplc.Inducing(15)
    assert again.approximation_ == model.approximation_
    assert np.array_equal(again.predict_dist(X).var(), model.predict_dist(X).var())
    more = [each.extend(5).draws_.theta for each in (model, again)]
    assert np.array_equal(*more)


def test_auto_has_points_where_a_grid_has_no_functions(monkeypatch):
    monkeypatch.setattr(base, "EXACT_ROWS", 50)
    X, _ = data(120)
    for cls in base.ESTIMATORS.values():
        known = cls.model_class.key in WITH_POINTS
        assert cls().in_basis(X) == known
    model = gplc.StandardGP(**SETTINGS, approximation="auto")
    assert not model.in_basis(np.tile(X, 4)[:, :16])
    assert isinstance(model._wanted_basis(X, False), gplc.Inducing)
    assert isinstance(model._wanted_basis(X[:, :3], False), gplc.Hilbert)
    assert model._wanted_basis(X, True) is None


class Own(Leaf):
    """A kernel of a user's."""

    def hyperparameters(self, n_columns):
        return {}

    def evaluate(self, theta, A, B):
        return A @ B.T


@pytest.mark.parametrize(
    ("cls", "settings", "why"),
    [
        (gplc.LatentCovariateGP, {"kernel": Matern32()}, "no product of functions of x and w"),
        (gplc.LatentVarianceGP, {"kernel": Matern32() * Constant()}, "is not one leaf"),
        (gplc.StandardGP, {"sampler": "paper"}, "is of the exact model"),
        (gplc.StandardGP, {"resolution": 0.1}, "resolution is given"),
        (gplc.StandardGP, {"kernel": Own()}, "no derivatives between rows and points"),
    ],
)
def test_what_has_no_points_is_refused(cls, settings, why):
    with pytest.raises(ValueError, match=re.escape(why)) as caught:
        fitted(cls, **settings)
    assert "approximation=None" in str(caught.value)


def test_few_points_are_warned_of_and_the_fast_method_has_them_too():
    with pytest.warns(gplc.estimators.results.ApproximationWarning, match="points leave out"):
        model, X, y = fitted(approximation=gplc.Inducing(2), method="fast")
    assert np.isfinite(model.predict_dist(X).logpdf(y)).all()
