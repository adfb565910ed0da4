"""The function g that GPLC draws, and the pools from which w is chosen."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gplc._compiled import pools
from gplc._linalg import pivoted_root, thin_root
from gplc.kernels import Linear, Matern32, Matern52, Periodic, Sign, SquaredExponential
from gplc.models import LatentCovariate, Update
from gplc.models.latent_covariate.function import LatentFunction
from gplc.models.latent_covariate.marginal import Opened, features_of
from gplc.samplers import Pools
from gplc.samplers.protocol import Point

pytestmark = pytest.mark.usefixtures("one_blas_thread")

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(6, 2)), RNG.normal(size=6)
SDS = np.array([0.05, 0.3, 0.1, 0.6, 0.2, 0.4])

KERNELS = {
    "default": None,
    "SE + linear": SquaredExponential() + Linear(),
    "standard": SquaredExponential().on("x") + Linear().on("w"),
    "variance": Matern52().on("x")
    + Linear(sd=1.0).on("w") * SquaredExponential(constant=0.5).on("x"),
    "product": SquaredExponential() * Linear(sd=1.0).on("w") + SquaredExponential().on("w"),
    "branches": SquaredExponential().on("x") + Sign(sd=0.8).on("w") * SquaredExponential(),
    "bent line": Sign(sd=1.0).on("w") * Linear() + Sign(sd=1.0).on("w") * Sign().on("w"),
}


class Unit:
    """A generator whose k-th standard normal number is 1 and all others 0; None: all are 0."""

    def __init__(self, k: int | None) -> None:
        self.k, self.given = k, 0

    def standard_normal(self, size: int | tuple[int, ...]) -> np.ndarray:
        result = np.zeros(size)
        if self.k is not None and self.given <= self.k < self.given + result.size:
            result.flat[self.k - self.given] = 1.0
        self.given += result.size
        return result


def model_and_state(kernel=None, seed=1, **options):
    model = LatentCovariate(X, Y, kernel, **options)
    rng = np.random.default_rng(seed)
    theta = 0.3 * rng.normal(size=len(model.names))
    return model, model.state(model.unknowns(theta, rng.normal(size=model.n_latent)))


def values_of(drawn, target, w):
    """g(x_i, w) of all cases at each value of w: (n, m)."""
    level, coefficients = drawn
    result = np.repeat(level[:, None], w.size, axis=1)
    candidates = np.repeat(w[None], level.size, axis=0)
    for term, own in zip(target._terms, coefficients, strict=True):
        pools.add_function(result, candidates, term.function(own))
    return result


AT = np.array([-2.5, -0.7, 0.0, 1.1, 3.0])


def drawn_for_pools(model, state):
    """What draws g(x_i, .) at AT, as the updates with pools have it."""
    target = LatentFunction(model, state, 0)
    return lambda rng: values_of(target._draw(rng, state), target, AT)


def drawn_for_cells(model, state):
    """The same as the function view has it."""
    features = features_of(model, state, 0)
    opened = Opened(model, state, 0, features)
    at = features.of_latent(AT)
    return lambda rng: features.at_cases(opened.drawn(rng).position) @ at.T


def at_all(w):
    """Rows (x_i, w), of every case at every value of w."""
    return np.column_stack([np.repeat(X, w.size, axis=0), np.tile(w, len(X))])


@pytest.mark.parametrize("drawn_for", [drawn_for_pools, drawn_for_cells])
@pytest.mark.parametrize("name", [*KERNELS, "known noise"])
def test_function_has_its_distribution_given_everything_else(name, drawn_for):
    known = SDS if name == "known noise" else None
    model, state = model_and_state(KERNELS.get(name), known_sd=known)
    draw = drawn_for(model, state)
    # A draw is affine in standard normal numbers: its mean and covariance come out exactly.
    counter = Unit(None)
    mean = draw(counter).ravel()
    root = np.stack([draw(Unit(k)).ravel() - mean for k in range(counter.given)])
    own = state.theta[model.processes[0].place]
    seen, new = np.column_stack([X, state.latent]), at_all(AT)
    kernel = model.bound.kernel
    C = kernel.matrix(own, seen, seen, 1) + np.diag(model.noise_variances(state.theta))
    cross = kernel.matrix(own, new, seen, 1)
    wanted = kernel.matrix(own, new, new, 1) - cross @ np.linalg.solve(C, cross.T)
    scale = np.abs(wanted).max()
    assert np.allclose(mean, cross @ np.linalg.solve(C, Y), atol=1e-7)
    assert np.allclose(root.T @ root, wanted, atol=1e-7 * scale)


@pytest.mark.parametrize("name", [*KERNELS, "two covariates"])
def test_features_have_the_covariance_of_their_kernel(name):
    """To 1e-10 of its largest entry, wherever w is; with another covariate held where it is."""
    n_latent = 2 if name == "two covariates" else 1
    model, state = model_and_state(KERNELS.get(name), n_latent=n_latent)
    features = features_of(model, state, 0)
    roots = np.stack(
        [features.at_cases(unit) @ features.of_latent(AT).T for unit in np.eye(features.size)]
    ).reshape(features.size, -1)
    own, others = state.theta[model.processes[0].place], model.columns(state.latent)[1:]
    new = np.column_stack([at_all(AT), np.repeat(others.T, AT.size, axis=0)])
    wanted = model.bound.kernel.matrix(own, new, new, n_latent)
    assert np.allclose(roots.T @ roots, wanted, rtol=0.0, atol=1e-10 * np.abs(wanted).max())


@pytest.mark.parametrize("name", KERNELS)
def test_pulled_is_the_adjoint_of_at_cases(name):
    model, state = model_and_state(KERNELS[name])
    features, rng = features_of(model, state, 0), np.random.default_rng(2)
    flat = rng.standard_normal(features.size)
    at_cases = features.at_cases(flat)
    by_case = rng.standard_normal(at_cases.shape)
    assert np.sum(at_cases * by_case) == pytest.approx(flat @ features.pulled(by_case))
    # And what is observed of a case is the covariance of its value with the coefficients.
    at_w = features.of_latent(state.latent)
    pulls = rng.standard_normal(model.n)
    values = np.einsum("ij,ij->i", at_cases, at_w)
    assert values @ pulls == pytest.approx(flat @ features.observed(at_w, pulls))


def test_parts_offer_it_only_where_the_kernel_separates():
    for kernel in KERNELS.values():
        assert "function" in LatentCovariate(X, Y, kernel).parts
    for kernel in (Matern32(), SquaredExponential() * Periodic().on("w")):
        model = LatentCovariate(X, Y, kernel)
        assert "function" not in model.parts
        assert "w" in [update.part for update in model.scheme()]
    two = LatentCovariate(
        X, Y, SquaredExponential().on("x", "w0") + Matern32().on("w1"), n_latent=2
    )
    assert "function[0]" in two.parts
    assert "function[1]" not in two.parts
    parts = [update.part for update in two.scheme()]
    assert "function[0]" in parts
    assert "w" in parts


@given(
    seed=st.integers(0, 2**32 - 1),
    zoom=st.sampled_from([1.0, 0.5, 0.01]),
    size=st.integers(2, 9),
)
@settings(max_examples=60, deadline=None)
def test_every_member_of_a_pool_makes_the_same_pool(seed, zoom, size):
    rng = np.random.default_rng(seed)
    w, jitters = rng.normal(size=4), rng.random((4, size))
    starts = rng.integers(size, size=4)
    first, first_weights, other, other_weights = np.empty((4, 4, size))
    pools.fill(w, zoom, starts, jitters, first, first_weights)
    assert np.array_equal(first[np.arange(4), starts], w)
    members = rng.integers(size, size=4)
    inside = first_weights[np.arange(4), members] > 0.0
    begun = np.where(inside, first[np.arange(4), members], 0.0)
    pools.fill(begun, zoom, members, jitters, other, other_weights)
    possible = (first_weights > 0.0) & (other_weights > 0.0) & inside[:, None]
    assert np.allclose(first[possible], other[possible], atol=1e-6)
    assert np.allclose(first_weights[possible], other_weights[possible], rtol=1e-5)


def test_weights_make_up_for_the_spread():
    # Over many pools the weighted candidates are a sample from N(0, 1).
    rng = np.random.default_rng(3)
    w = rng.normal(size=20_000)
    candidates, weights = np.empty((2, w.size, 32))
    pools.fill(
        w,
        1.0,
        rng.integers(32, size=w.size),
        rng.random((w.size, 32)),
        candidates,
        weights,
    )
    weights /= weights.sum()
    assert abs(float((weights * candidates).sum())) < 0.01
    assert abs(float((weights * candidates**2).sum()) - 1.0) < 0.01
    assert abs(float((weights * candidates**4).sum()) - 3.0) < 0.05


def test_choice_is_in_proportion_to_likelihood():
    rng = np.random.default_rng(4)
    n = 40_000
    squares = np.tile([0.0, 1.0, 4.0], (n, 1))
    weights = np.tile([1.0, 2.0, 0.0], (n, 1))
    chosen = np.full(n, 2)
    pools.choose(rng.random(n), squares, weights, np.ones(n), chosen)
    second = 2.0 * np.exp(-0.5) / (1.0 + 2.0 * np.exp(-0.5))
    assert set(chosen) == {0, 1}
    assert abs(np.mean(chosen == 1) - second) < 5.0 * np.sqrt(second * (1.0 - second) / n)
    exact = np.log((weights * np.exp(-0.5 * squares)).sum(axis=1)).sum()
    assert np.isclose(pools.log_likelihood(squares, weights, np.ones(n)), exact)
    assert pools.log_likelihood(squares, 0.0 * weights, np.ones(n)) == -np.inf


def test_states_it_cannot_draw_at_are_left_alone():
    model, state = model_and_state()
    rng = np.random.default_rng(5)
    update = Update("function", Pools())
    far = model.state(state.unknowns._replace(latent=np.append(state.latent[:-1], 2 * pools.END)))
    theta = state.theta.copy()
    theta[model.names.index("latent_length_scale")] = -5.0
    rough = model.state(state.unknowns._replace(theta=theta))
    unsolved = state.solved[0]._replace(factor=None)
    broken = state._replace(solved=(unsolved,), log_density=-np.inf)
    for start in (far, rough, broken):
        after, info = model.step(rng, start, update)
        assert after is start
        assert info.acceptance == 0.0
    assert model.ledger["function not drawn"] == 3 * Pools().repeats


def test_update_moves_sigma_and_w_and_keeps_the_rest():
    model, state = model_and_state(n_latent=2)
    after, info = model.step(np.random.default_rng(6), state, Update("function[1]", Pools(16)))
    assert np.array_equal(after.theta[:-1], state.theta[:-1])
    assert after.theta[-1] != state.theta[-1]
    before, moved = model.columns(state.latent), model.columns(after.latent)
    assert np.array_equal(before[0], moved[0])
    assert np.mean(before[1] != moved[1]) > 0.5
    assert np.isclose(after.log_density, model.log_density(after.unknowns), rtol=1e-10)
    assert 0.0 < info.acceptance <= 1.0


def test_fixed_noise_stays_fixed():
    model, state = model_and_state(noise_sd=0.4)
    after, info = model.step(np.random.default_rng(7), state, Update("function", Pools()))
    assert np.array_equal(after.theta, state.theta)
    assert np.mean(after.latent != state.latent) > 0.5
    assert info.n_evaluations == 0


class Still:
    """Hardly anything moves unless windows are narrower than a tenth."""

    scale = None

    def pool(self, rng, point, size, zoom):
        self.zoom = zoom
        return self

    def choose(self, rng, scale):
        return Point(0.0, 0.0), 0.2 if self.zoom > 0.1 else 0.98


def test_windows_narrow_until_values_move():
    rng, sampler, point = np.random.default_rng(8), Pools(), Point(0.0, 0.0)
    for iteration in range(1, 301):
        _, info = sampler.step(rng, point, Still())
        sampler = sampler.tuned(info, iteration)
    assert 0.05 < sampler.zoom < 0.2


@pytest.mark.parametrize("density", [-np.inf, np.nan])
def test_a_choice_that_turns_out_impossible_is_not_made(density, monkeypatch):
    monkeypatch.setattr(Still, "choose", lambda *_: (Point(1.0, density), 0.5))
    here = Point(0.0, 0.0)
    point, info = Pools(repeats=1).step(np.random.default_rng(8), here, Still())
    assert point is here
    assert (info.acceptance, info.n_impossible) == (0.0, 1)


@pytest.mark.parametrize(
    ("settings_", "word"),
    [
        ({"size": 1}, "size"),
        ({"repeats": 0}, "repeats"),
        ({"zoom": 0.0}, "zoom"),
        ({"width": -1.0}, "width"),
        ({"wanted": 1.0}, "wanted"),
    ],
)
def test_bad_settings_are_refused(settings_, word):
    with pytest.raises(ValueError, match=word):
        Pools(**settings_)


@pytest.mark.parametrize("rank", [1, 3, 7])
def test_roots(rank):
    half = np.random.default_rng(rank).normal(size=(7, rank))
    matrix = half @ half.T
    root = thin_root(matrix)
    assert root.shape == (7, rank)
    assert np.allclose(root @ root.T, matrix, atol=1e-10)
    root, rows = pivoted_root(matrix)
    assert np.array_equal(root[rows], np.tril(root[rows]))
