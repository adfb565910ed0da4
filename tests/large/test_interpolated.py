"""GPLV and GPLC with points: covariances, gradients, samplers, and what is added at new rows."""

import re
import warnings

import dask.array as da
import numpy as np
import pytest
from scipy.stats import ks_2samp

import gplc
from gplc.chains import advance, go_on, start
from gplc.estimators import base, sizes
from gplc.kernels import Constant, Linear, Matern32, Matern52, Periodic, SquaredExponential
from gplc.models.in_basis import SAMPLED_POINTS, WITH_POINTS, Points
from gplc.models.in_basis.frame import Frame
from gplc.models.in_basis.mixing import Mixing
from gplc.processes.hilbert import latent_axis
from gplc.processes.interpolated import PointBasis
from gplc.samplers.framed import FramedHamiltonian

SAMPLED = [WITH_POINTS[key] for key in sorted(SAMPLED_POINTS)]
WITH = pytest.mark.parametrize("cls", SAMPLED, ids=lambda cls: cls.key)
OF_KERNELS = pytest.mark.parametrize(
    "kernel", [None, SquaredExponential(ard=False) + Linear()], ids=["default", "with a line"]
)
SETTINGS = {"chains": 2, "draws": 20, "warmup": 30, "random_state": 0}

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:the points leave out"),
]


def data(n=30, inputs=4):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, inputs))
    return X, np.sin(X).sum(axis=1) + 0.3 * rng.standard_normal(n)


def points(X, count, references=()):
    return Points(gplc.Inducing(count).chosen(X).rows, references, latent_axis(2.0, 4.0))


def points_only(X, count):
    return Points(gplc.Inducing(count).chosen(X).rows)


def made(cls, count=8, kernel=None, n=30, **settings):
    X, y = data(n)
    axes = points(X, count)
    if cls.key != "gplc":
        axes = Points(axes.rows)
    return cls(X, y, kernel=kernel, axes=axes, **settings)


def somewhere(model, seed=0):
    rng = np.random.default_rng(seed)
    theta = model.priors.means + 0.3 * rng.uniform(-1.0, 1.0, len(model.names))
    return model.unknowns(theta, model.sample_latent(rng, theta))


# The basis.


def covariance(basis, theta, A, w=None):
    """That of f(x), or of g(x, w), between rows."""
    scaled = basis.products(A, np.zeros(len(A)) if w is None else w) * np.exp(basis.log_sds(theta))
    for term, own in basis.mixed:
        lower, kinds = term.root(theta), term.shape[1]
        for kind in range(kinds):
            there = np.arange(own.start + kind, own.stop, kinds)
            scaled[:, there] = scaled[:, there] @ lower
    return scaled @ scaled.T


@pytest.mark.parametrize(
    "kernel",
    [
        SquaredExponential(),
        SquaredExponential(ard=False, constant=0.0) + Linear(),
        Matern52() + Constant(2.0),
        SquaredExponential().on(0, 1) + Matern32().on(2, 3),
    ],
)
def test_between_points_the_covariance_is_that_of_the_kernel_at_any_hyperparameters(kernel):
    X, _ = data(25)
    k = len(kernel.names(4))
    rng = np.random.default_rng(1)
    basis = PointBasis(kernel, Points(tuple(map(tuple, X.tolist()))), 0.5 + np.zeros(k))
    theta = 0.5 + 0.3 * rng.uniform(-1.0, 1.0, k)
    np.testing.assert_allclose(covariance(basis, theta, X), kernel.matrix(theta, X, X), atol=1e-4)
    assert basis.error(theta, X) < 1e-4


def test_a_covariance_with_w_is_that_of_the_kernel():
    X, _ = data(25)
    rng, kernel = np.random.default_rng(1), SquaredExponential()
    w = rng.uniform(-2.5, 2.5, 25)
    theta = np.array([0.2, 0.6, 0.3, 0.5, 0.7, 1.0])
    at = Points(tuple(map(tuple, X.tolist())), latent=latent_axis(2.0, 4.0))
    basis = PointBasis(kernel, at, 0.5 + np.zeros(6))
    A = np.column_stack([X, w])
    np.testing.assert_allclose(
        covariance(basis, theta, X, w), kernel.matrix(theta, A, A, 1), atol=5e-3
    )


def test_the_error_shrinks_with_points_and_with_a_nearer_reference():
    X, _ = data(300)
    theta = np.array([0.0, 0.9, 1.0, 1.1, 1.2])

    def error(count, reference):
        return PointBasis(SquaredExponential(), points_only(X, count), reference).error(theta, X)

    near, far = theta, theta + 0.8 * np.array([0.0, 1.0, -1.0, 1.0, -1.0])
    found = [error(count, near) for count in (5, 20, 80, 200)]
    assert found == sorted(found, reverse=True)
    assert found[0] < 1.0
    assert found[-1] < 2e-3
    assert error(40, near) < error(40, far)


# Gradients.


def assert_gradient(density, found, position, step=1e-5):
    for k in range(found.size):
        move = step * (np.arange(found.size) == k)
        change = (density(position + move) - density(position - move)) / (2.0 * step)
        assert found[k] == pytest.approx(change, rel=1e-4, abs=1e-4), k


@WITH
@OF_KERNELS
def test_gradient_agrees_with_differences(cls, kernel):
    model = made(cls, kernel=kernel)
    unknowns, k = somewhere(model), len(model.names)
    found = np.concatenate(model.gradient(unknowns))
    assert_gradient(
        lambda vector: model.log_density(model.unknowns(vector[:k], vector[k:])),
        found,
        np.concatenate(unknowns),
    )


def framed(model, state, seed=0):
    return model._given_frame(state, model.evidence(np.random.default_rng(seed), state))


@WITH
@pytest.mark.parametrize("dense", [400, 12], ids=["all together", "most by themselves"])
def test_gradient_in_a_frame_agrees_with_differences(cls, dense):
    model = made(cls, kernel=SquaredExponential() + Linear()).with_fewer_correlations(dense)
    point, target = framed(model, model.state(somewhere(model)))
    moved = target.evaluate(point.position + 0.01)
    assert_gradient(
        lambda position: target.evaluate(position).log_density,
        target.gradient(moved),
        moved.position,
    )


@WITH
def test_a_frame_leads_back(cls):
    model = made(cls)
    state = model.state(somewhere(model))
    point, target = framed(model, state)
    again = target.evaluate(point.position)
    np.testing.assert_allclose(again.payload.latent, state.latent, rtol=1e-8, atol=1e-10)
    assert again.log_density == pytest.approx(point.log_density, rel=1e-10)


def test_information_about_theta_is_that_of_the_prior_where_all_is_known():
    """1/2 tr(S^-1 dS S^-1 dS'), by differences of the covariance."""
    model = made(WITH_POINTS["gplv"])
    theta = somewhere(model).theta
    found = model.mixing(theta).information(theta, model.slopes(theta), np.ones(model.n_latent))

    def prior(at):
        parts = [np.eye(model.n_latent)]
        rows = model.mixing(at).of_rows(parts[0])
        return rows @ rows.T

    inverse, moves = np.linalg.inv(prior(theta)), 1e-4 * np.eye(theta.size)
    changes = [inverse @ (prior(theta + m) - prior(theta - m)) / 2e-4 for m in moves]
    wanted = [[0.5 * np.trace(one @ other) for other in changes] for one in changes]
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)


# Chains.


@WITH
def test_a_chain_goes_on_bit_for_bit(cls):
    model = made(cls)
    begun = go_on(model, start(model, model.scheme(), seed=1), 12, warmup=12).position
    whole = advance(model, begun, 6, tune=False)
    half = advance(model, begun, 3, tune=False)
    rest = advance(model, half.position, 3, tune=False)
    assert np.array_equal(whole.theta[3:], rest.theta)
    assert np.array_equal(whole.latent[3:], rest.latent)


# Geweke's test: unknowns and data from their joint distribution must stay in it.

REPLICATES, STEPS = 300, 4
# 23 statistics of two models: right samplers fail once in 400 runs.
THRESHOLD = 1e-4


def geweke(cls, seed):
    """P-values of statistics after updates, against direct draws."""
    rng = np.random.default_rng(seed)
    priors = {"length_scale": (0.5, 0.5), "signal_sd": (0.0, 0.5)}
    if cls.key == "gplc":
        priors |= {"noise_sd": (-1.0, 0.4), "latent_length_scale": (0.9, 0.2)}
    model = made(cls, 4, n=25, priors=priors)
    vector = model.evidence(rng, model.state(model.prior_mean()))
    # As of many more rows: any evidence is right, and a mistake in what goes with it shows.
    vector[len(model.names) + model.n_latent :] *= 20.0
    sampler = FramedHamiltonian(leaps=6, step_size=0.3, frame=vector)
    after, direct = [], []
    for _ in range(REPLICATES):
        unknowns = model.sample_prior(rng)
        for _ in range(STEPS):
            given = model.with_data(model.sample_data(rng, unknowns))
            point, target = given.parts["framed"](given.state(unknowns))
            unknowns = sampler.step(rng, point, target)[0].payload.unknowns
        after.append([*unknowns.theta, unknowns.latent[0], given.y[0], np.abs(given.y).sum()])
    for _ in range(1500):
        unknowns = model.sample_prior(rng)
        y = model.sample_data(rng, unknowns)
        direct.append([*unknowns.theta, unknowns.latent[0], y[0], np.abs(y).sum()])
    pairs = zip(np.array(after).T, np.array(direct).T, strict=True)
    return np.array([ks_2samp(one, other).pvalue for one, other in pairs])


@WITH
def test_updates_leave_the_joint_distribution(cls):
    assert geweke(cls, seed=3).min() > THRESHOLD


def forgets_the_determinant(monkeypatch):
    monkeypatch.setattr(Frame, "_density", lambda self, state, at: state.log_density)


def mixes_the_wrong_way(monkeypatch):
    monkeypatch.setattr(Mixing, "applied", lambda self, e: self._through(e, transposed=True))


@pytest.mark.parametrize("broken", [forgets_the_determinant, mixes_the_wrong_way])
def test_broken_parts_are_noticed(broken, monkeypatch):
    right = made(WITH_POINTS["gplv"]).log_density(somewhere(made(WITH_POINTS["gplv"])))
    broken(monkeypatch)
    if broken is mixes_the_wrong_way:  # another model, sampled as exactly: seen in its density
        model = made(WITH_POINTS["gplv"])
        assert abs(model.log_density(somewhere(model)) - right) > 1.0
    else:
        assert geweke(WITH_POINTS["gplc"], seed=3).min() < THRESHOLD


# New rows.


@WITH
def test_far_from_all_points_there_is_the_prior(cls):
    model = made(cls)
    unknowns, far = somewhere(model), np.full((1, 4), 1e3)
    given, theta = model.condition(unknowns), unknowns.theta
    mean, variance = given.function(far)
    prior = np.exp(2.0 * theta[0])
    # The level of the process is the same everywhere, and known.
    level = mean[0]
    if cls.key == "gplv":
        assert variance[0] == pytest.approx(prior)
        _, f, _ = given._task.at(far)
        assert level == f[0]
    else:
        # Of g there is more: its mean over w keeps a part of it.
        own = given.residual_variance(far, np.zeros(1))[0] - model.noise_variance(theta)
        assert variance[0] + own == pytest.approx(prior, rel=1e-6)
        assert 0.0 < variance[0] < prior


@WITH
def test_moments_and_components_of_a_prediction_agree(cls):
    model = made(cls)
    given, new = model.condition(somewhere(model)), np.random.default_rng(2).normal(size=(5, 4))
    nodes = np.linspace(-2.0, 2.0, 9)
    means, sds = given.components(new, nodes)
    weights = model.component_weights
    if weights is None:
        assert means.shape[1] == model.components_of(9) == 9
        weights = np.full(9, 1.0 / 9.0)
    np.testing.assert_allclose(given.means(new, nodes), means)
    mean = means @ weights
    variance = (sds**2 + (means - mean[:, None]) ** 2) @ weights
    f, of_f = given.function(new)
    np.testing.assert_allclose(mean, f, atol=1e-9)
    # Steep functions of w count within cells for components only.
    np.testing.assert_allclose(
        variance,
        of_f + given.residual_variance(new, nodes),
        rtol=1e-9 if cls.key == "gplv" else 0.02,
    )


def test_a_row_that_is_left_out_is_treated_as_new():
    for cls in SAMPLED:
        model = made(cls)
        unknowns = somewhere(model)
        new = model.left_out(unknowns)
        own_means, own_sds = model.condition(unknowns).at_own_rows(model.X)
        assert new.sds.mean() > own_sds.mean()
        assert np.isfinite(new.log_density(model.y)).all()
        assert own_means.shape[0] == model.n


# Estimators.


ESTIMATORS = [gplc.LatentCovariateGP, gplc.LatentVarianceGP]


def test_functions_are_made_for_the_hyperparameters_that_a_few_rows_have(monkeypatch):
    monkeypatch.setattr(sizes, "PILOT_POINTS", 15)
    monkeypatch.setattr(sizes, "PILOT_DRAWS", 15)
    X, y = data(150)
    y = y + 3.0 * np.sin(4.0 * X[:, 0])  # which is short in one input

    def make(X, y, axes):
        return WITH_POINTS["gplv"](X, y, axes=axes)

    first, again = (sizes.chosen_points(make, X, y, gplc.Inducing(20), False) for _ in range(2))
    assert first == again
    assert len(first.rows) == 20
    model = make(X, y, first)
    reference = np.array(first.references[0])
    assert len(first.references) == len(model.processes)
    assert reference[1] < reference[2:].min()
    better = sizes.better_points(model, np.tile(model.priors.means, (3, 1)), first, error=0.9)
    assert better is not None
    assert better.rows == first.rows
    assert sizes.better_points(model, np.zeros((1, 1)), first, error=0.01) is None


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_what_has_no_such_functions_is_refused(cls):
    X, y = data(40)
    cases = [{"kernel": Matern32() * Constant()}, {"kernel": Periodic()}]
    cases += [{"sampler": "paper"}, {"resolution": 0.1}]
    if cls is gplc.LatentCovariateGP:
        cases += [{"kernel": Matern32()}, {"n_latent": 2}]
    for settings in cases:
        model = cls(**SETTINGS, approximation=gplc.Inducing(5), **settings)
        with pytest.raises(ValueError, match=re.escape("use approximation=None")):
            model.fit(X, y)


@pytest.fixture
def short_pilots(monkeypatch):
    monkeypatch.setattr(sizes, "PILOT_POINTS", 6)
    monkeypatch.setattr(sizes, "PILOT_DRAWS", 5)


@pytest.mark.parametrize("cls", ESTIMATORS)
@pytest.mark.parametrize("approximation", ["auto", gplc.Inducing(8)], ids=["auto", "given"])
def test_rows_elsewhere_are_as_those_here(cls, approximation, short_pilots, monkeypatch):
    monkeypatch.setattr(base, "EXACT_ROWS", 50)
    X, y = data(60)
    settings = SETTINGS | {"draws": 3, "warmup": 3, "chains": 1, "approximation": approximation}
    near = cls(**settings).fit(X, y)
    far = cls(**settings).fit(da.from_array(X, chunks=(25, 4)), da.from_array(y))
    assert isinstance(near.model_, WITH_POINTS[cls.model_class.key])
    assert np.array_equal(far.draws_.theta, near.draws_.theta)
    assert np.array_equal(far.predict(X[:5]), near.predict(X[:5]))


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_the_fast_method_has_points_too(cls, short_pilots):
    X, y = data(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = cls(approximation=gplc.Inducing(8), method="fast", random_state=0).fit(X, y)
    assert np.isfinite(model.predict_dist(X).logpdf(y)).all()
    assert not model.diagnostics_.weighed.settled
    assert model.loo(draws=8).log_density.shape == (60,)


def test_a_file_with_odd_points_is_refused():
    record = Points(((0.0,), (1.0,)), ((0.0, 1.0),), latent_axis(2.0, 4.0)).record()
    assert Points.from_record(record).record() == record
    with pytest.raises(ValueError, match="are no numbers"):
        Points.from_record(record | {"references": [[np.nan]]})
