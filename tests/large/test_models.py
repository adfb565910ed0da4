"""The models in a basis: against the exact ones, against differences, and their samplers."""

import functools

import numpy as np
import pytest
from scipy.stats import ks_2samp, norm
from threadpoolctl import threadpool_limits

from gplc.chains import advance, go_on, start
from gplc.kernels import Linear, SquaredExponential
from gplc.models import LatentCovariate, Standard
from gplc.models.in_basis import (
    IN_BASIS,
    LatentCovariateInBasis,
    LatentVarianceInBasis,
    StandardInBasis,
    base,
)
from gplc.models.in_basis.frame import Frame
from gplc.processes.hilbert import Axes, axis_for, latent_axis
from gplc.samplers.framed import FramedHamiltonian

WITH_COEFFICIENTS = (LatentVarianceInBasis, LatentCovariateInBasis)


@pytest.fixture(autouse=True)
def one_blas_thread():
    with threadpool_limits(limits=1, user_api="blas"):
        yield


def axes(count=1, shortest=0.8, longest=1.6):
    return Axes((axis_for(-1.7, 1.7, shortest, longest),) * count, latent_axis(2.0, 4.0))


@functools.cache
def data(n, inputs=1):
    rng = np.random.default_rng(5)
    X = rng.uniform(-1.7, 1.7, (n, inputs))
    w = rng.standard_normal(n)
    y = np.sin(X).sum(axis=1) + np.exp(0.4 * w) - 1.0 + 0.1 * rng.standard_normal(n)
    return X, y


def somewhere(model, seed=0, spread=0.3):
    rng = np.random.default_rng(seed)
    theta = model.priors.means + spread * rng.uniform(-1.0, 1.0, len(model.names))
    return model.unknowns(theta, model.sample_latent(rng, theta))


@pytest.mark.parametrize("inputs", [1, 2])
def test_standard_model_is_the_exact_one(inputs):
    X, y = data(60, inputs)
    theta = np.array([0.2] + [0.1] * inputs + [-0.8])
    approximate, exact = StandardInBasis(X, y, axes=axes(inputs)), Standard(X, y)
    here, there = (model.state(model.unknowns(theta)) for model in (approximate, exact))
    assert here.log_density == pytest.approx(there.log_density, abs=2e-3)
    np.testing.assert_allclose(
        approximate.gradient_at(here).theta, exact.gradient_at(there).theta, atol=2e-2
    )
    new = np.random.default_rng(1).uniform(-1.5, 1.5, (8, inputs))
    near, right = (
        model.condition(model.unknowns(theta)).function(new) for model in (approximate, exact)
    )
    np.testing.assert_allclose(near, right, atol=2e-3)


def test_a_row_that_is_left_out_is_as_in_the_exact_model():
    X, y = data(60)
    theta = np.array([0.2, 0.1, -0.8])
    near, right = (
        model.left_out(model.unknowns(theta)).log_density(y)
        for model in (StandardInBasis(X, y, axes=axes()), Standard(X, y))
    )
    np.testing.assert_allclose(near, right, atol=2e-3)


def test_a_row_that_is_left_out_of_gplc_is_as_in_the_exact_model_with_the_same_w():
    X, y = data(60)
    near, exact = LatentCovariateInBasis(X, y, axes=axes()), LatentCovariate(X, y)
    assert near.names == exact.names
    theta, w = np.array([0.0, 0.2, 1.0, -1.2]), np.random.default_rng(2).standard_normal(60)
    here = near.left_out_given(theta, w).log_density(y)
    there = exact.left_out(exact.unknowns(theta, w)).log_density(y)
    np.testing.assert_allclose(here, there, atol=0.02)
    # Its w come from the draw itself: the same each time.
    unknowns = somewhere(near)
    again = [near.left_out(unknowns).log_density(y) for _ in range(2)]
    assert np.array_equal(*again)


@pytest.mark.parametrize("cls", IN_BASIS.values())
def test_replicates_are_like_the_data(cls):
    X, y = data(200)
    model = cls(X, y, axes=axes())
    chain = go_on(model, start(model, model.scheme(), seed=1), 40, warmup=39)
    unknowns = model.unknowns(chain.theta[0], chain.latent[0])
    again = model.replicate(np.random.default_rng(0), unknowns)
    assert np.corrcoef(again, y)[0, 1] > 0.5
    assert model.left_out(unknowns).log_density(y).mean() > -1.5


def gradient_of(model, unknowns):
    k = len(model.names)
    together = np.concatenate(unknowns)

    def density(vector):
        return model.log_density(model.unknowns(vector[:k], vector[k:]))

    moves = 1e-5 * np.eye(together.size)
    return np.array([(density(together + m) - density(together - m)) / 2e-5 for m in moves])


@pytest.mark.parametrize("cls", IN_BASIS.values())
@pytest.mark.parametrize("kernel", [None, SquaredExponential(ard=False) + Linear()])
def test_gradient_agrees_with_differences(cls, kernel):
    model = cls(*data(20), kernel=kernel, axes=axes(shortest=1.2))
    unknowns = somewhere(model)
    found = np.concatenate(model.gradient(unknowns))
    np.testing.assert_allclose(found, gradient_of(model, unknowns), rtol=1e-4, atol=1e-4)


def test_w_is_summed_out():
    model = LatentCovariateInBasis(*data(6), axes=axes())
    unknowns = somewhere(model)
    model = model.with_data(model.sample_data(np.random.default_rng(1), unknowns))
    state = model.state(unknowns)
    w = np.linspace(-4.5, 4.5, 4001)
    values, _ = model.condition(unknowns).at_nodes(model.X, w)
    sd = np.sqrt(model.noise_variance(unknowns.theta))
    density = np.trapezoid(norm.pdf(model.y[:, None], values, sd) * norm.pdf(w), w, axis=1)
    assert state.sums.log_likelihood == pytest.approx(np.log(density).sum(), abs=0.03)


def test_components_of_a_prediction_are_what_was_fitted():
    model = LatentCovariateInBasis(*data(6), axes=axes())
    unknowns = somewhere(model)
    means, sds = model.condition(unknowns).components(model.X, np.empty(0))
    density = norm.pdf(model.y[:, None], means, sds) @ model.component_weights
    state = model.state(unknowns)
    assert np.log(density).sum() == pytest.approx(state.sums.log_likelihood, abs=1e-3)


def framed(model, state, seed=0):
    told = model.evidence(np.random.default_rng(seed), state)
    return model._given_frame(state, told)


@pytest.mark.parametrize("cls", WITH_COEFFICIENTS)
@pytest.mark.parametrize("dense", [None, 5], ids=["all together", "most by themselves"])
def test_gradient_in_a_frame_agrees_with_differences(cls, dense):
    model = cls(*data(30), axes=axes(shortest=1.2))
    if dense is not None:
        model.dense_places = model.dense_places[:dense]
    point, target = framed(model, model.state(somewhere(model)))
    moved = target.evaluate(point.position + 0.01)
    found = target.gradient(moved)
    for k in range(0, found.size, 5):
        move = np.zeros(found.size)
        move[k] = 1e-5
        there, back = (target.evaluate(moved.position + side * move) for side in (1.0, -1.0))
        change = (there.log_density - back.log_density) / 2e-5
        assert found[k] == pytest.approx(change, rel=1e-4, abs=1e-4), k


@pytest.mark.parametrize("cls", WITH_COEFFICIENTS)
def test_a_frame_leads_back(cls):
    model = cls(*data(30), axes=axes())
    state = model.state(somewhere(model))
    point, target = framed(model, state)
    again = target.evaluate(point.position)
    np.testing.assert_allclose(again.payload.latent, state.latent, rtol=1e-8, atol=1e-10)
    assert again.log_density == pytest.approx(point.log_density, rel=1e-10)


@pytest.mark.parametrize("cls", IN_BASIS.values())
def test_a_chain_goes_on_bit_for_bit(cls):
    model = cls(*data(40), axes=axes(shortest=1.2))
    begun = go_on(model, start(model, model.scheme(), seed=1), 12, warmup=12).position
    whole = advance(model, begun, 6, tune=False)
    half = advance(model, begun, 3, tune=False)
    rest = advance(model, half.position, 3, tune=False)
    assert np.array_equal(whole.theta[3:], rest.theta)
    assert np.array_equal(whole.latent[3:], rest.latent)


# Geweke's test: unknowns and data from their joint distribution must stay in it.

REPLICATES, STEPS = 400, 5
# Nine statistics and four broken twins: a right sampler fails once in 10,000 runs.
THRESHOLD = 1e-5
X_FEW = np.repeat([[-1.4], [-0.5], [0.1], [0.8], [1.5]], 6, axis=0)
NARROW = {
    "length_scale": (0.3, 0.3),
    "latent_length_scale": (0.8, 0.2),
    "signal_sd": (0.0, 0.4),
    "noise_sd": (-1.0, 0.4),
}


def few(cls):
    usable = {LatentVarianceInBasis: ("length_scale", "signal_sd")}.get(cls, tuple(NARROW))
    priors = {name: NARROW[name] for name in usable}
    return cls(X_FEW, np.zeros(30), priors=priors, axes=axes(shortest=1.0, longest=1.6))


def statistics(model, unknowns, y):
    given = model.condition(unknowns)
    gaps = (y - given.function(model.X)[0]) ** 2 / given.residual_variance(model.X, np.empty(0))
    # The last does not depend on the unknowns: it shows at once whether data are left out.
    return [*unknowns.theta, y[0], np.abs(y).sum(), gaps.sum()]


def geweke(cls, seed):
    """P-values of statistics after updates, against direct draws."""
    rng, model = np.random.default_rng(seed), few(cls)
    vector = model.evidence(rng, model.state(model.prior_mean()))
    sampler = FramedHamiltonian(leaps=6, step_size=0.3, frame=vector)
    after, direct = [], []
    for _ in range(REPLICATES):
        unknowns = model.sample_prior(rng)
        for _ in range(STEPS):
            given = model.with_data(model.sample_data(rng, unknowns))
            state = given.state(unknowns)
            point, target = given.parts["framed"](state)
            unknowns = sampler.step(rng, point, target)[0].payload.unknowns
        after.append(statistics(model, unknowns, given.y))
    for _ in range(2000):
        unknowns = model.sample_prior(rng)
        direct.append(statistics(model, unknowns, model.sample_data(rng, unknowns)))
    pairs = zip(np.array(after).T, np.array(direct).T, strict=True)
    return np.array([ks_2samp(one, other).pvalue for one, other in pairs])


@pytest.mark.parametrize("cls", WITH_COEFFICIENTS)
def test_updates_in_a_frame_leave_the_joint_distribution(cls):
    assert geweke(cls, seed=3).min() > THRESHOLD


def forgets_the_determinant(monkeypatch):
    monkeypatch.setattr(Frame, "_density", lambda self, state, at: state.log_density)


def forgets_the_data(monkeypatch):
    right = LatentVarianceInBasis.state

    def state(self, unknowns, *mixing):
        found = right(self, unknowns, *mixing)
        value, *gradients = found.sums
        sums = found.sums._replace(
            by_b=0.0 * gradients[0], by_noise=0.0 * gradients[1], by_e=0.0 * gradients[2]
        )
        return found._replace(sums=sums, log_density=found.log_density - value)

    monkeypatch.setattr(LatentVarianceInBasis, "state", state)


@pytest.mark.parametrize("broken", [forgets_the_determinant, forgets_the_data])
def test_broken_updates_are_noticed(broken, monkeypatch):
    broken(monkeypatch)
    assert geweke(LatentVarianceInBasis, seed=3).min() < THRESHOLD


def test_a_chain_of_many_rows_begins_with_a_part_of_them(monkeypatch):
    monkeypatch.setattr(base, "SMALLEST_START", 50)
    X, y = data(200)
    model = LatentVarianceInBasis(X, y, axes=axes(shortest=1.2))
    part = model.smaller(np.random.default_rng(0))
    assert 20 <= part.n <= 25
    assert part.smaller(np.random.default_rng(0)) is None
    assert model.with_rows(X[:3], y[:3]).landmarks.rows.max() < 3
    first, again, other = (start(model, model.scheme(), seed).unknowns for seed in (1, 1, 2))
    assert np.array_equal(first.latent, again.latent)
    assert not np.array_equal(first.theta, other.theta)
    # It has found the data.
    far = model.unknowns(model.priors.means, np.zeros(model.n_latent))
    assert model.log_density(first) > model.log_density(far)


def test_rows_that_stand_for_many_count_as_often(monkeypatch):
    """Every second row, each twice, tells what a model of twice these rows tells."""
    monkeypatch.setattr(base, "CURVED_ROWS", 100)
    X, y = data(200)
    model = LatentVarianceInBasis(X, y, axes=axes(shortest=1.2))
    some = model.fewer_rows(np.random.default_rng(0))
    own = some.rows
    twice = model.with_rows(np.repeat(own.X, 2, axis=0), np.repeat(own.y, 2))
    unknowns = somewhere(model)
    assert some.rows.n == twice.n == 200
    assert some.log_density(unknowns) == pytest.approx(twice.log_density(unknowns), rel=1e-9)
    mine, right = (np.concatenate(each.gradient(unknowns)) for each in (some, twice))
    np.testing.assert_allclose(mine, right, rtol=1e-7, atol=1e-7)


def test_a_latent_covariate_begins_smooth():
    model = LatentCovariateInBasis(*data(30), axes=axes())
    lowest = model.starting_theta(-np.ones(len(model.names)))
    place = model.names.index("latent_length_scale")
    assert lowest[place] > model.priors.means[place]
    assert lowest[0] == pytest.approx(model.priors.means[0] - model.priors.sds[0])
