"""What is kept of a draw at the landmarks is what the model predicts there, given that draw."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import ndtr

import gplc
from gplc.chains import run_chain
from gplc.kernels import Linear, Matern32, SquaredExponential
from gplc.models import MODELS, LatentCovariate
from gplc.models.landmarks import (
    KINDS,
    MOST_LANDMARKS,
    landmarks_of,
    standard_nodes,
    summarised,
)

MADE = gplc.datasets.make_paper("M1", n=40, random_state=1)
X = (MADE.X - MADE.X.mean(axis=0)) / MADE.X.std(axis=0)
Y = (MADE.y - MADE.y.mean()) / MADE.y.std()

CASES = {key: (cls, {}) for key, cls in MODELS.items()} | {
    "gplc two": (LatentCovariate, {"n_latent": 2}),
    "gplc sum": (LatentCovariate, {"kernel": SquaredExponential() + Linear()}),
    "gplc matern": (LatentCovariate, {"kernel": Matern32()}),
    "gplc mean": (LatentCovariate, {"mean": "linear"}),
    "gplv abs": (MODELS["gplv"], {"link": "abs"}),
}
each_case = pytest.mark.parametrize("case", CASES)


@functools.cache
def drawn(case):
    """A model, and a chain that suits its data."""
    cls, own = CASES[case]
    model = cls(X, Y, **own)
    return model, run_chain(model, seed=1, draws=2, warmup=30)


@each_case
def test_it_is_what_the_model_predicts_given_the_draw(case):
    """Against the mixture over many nodes, with nothing left out and nothing used again."""
    model, chain = drawn(case)
    at = model.landmarks
    nodes = standard_nodes(model.node_size, 128)
    # GPLC has the variance of g at few nodes, none of them far out.
    coarse = 0.1 if model.key == "gplc" else 0.02
    for theta, latent, kept in zip(chain.theta, chain.latent, chain.judged, strict=True):
        conditioned = model.condition(model.unknowns(theta, latent))
        means, sds = conditioned.components(at.X, nodes)
        exact = summarised(means, sds, at.levels)
        scale = np.exp(exact[1])
        function, _ = conditioned.function(at.X)
        assert np.max(np.abs(kept[0] - function) / scale) < 0.02
        assert np.max(np.abs(kept[1] - exact[1])) < coarse
        assert np.max(np.abs(kept[2:4] - exact[2:])) < 0.5 * coarse


@each_case
def test_it_is_what_predictive_says(case):
    """`Predictive` has moments and tails of the same components by code of its own."""
    model, chain = drawn(case)
    state = model.state(model.unknowns(chain.theta[-1], chain.latent[-1]))
    means, sds = model._components_at_landmarks(model._conditioned(state))
    dist = gplc.Predictive.from_arrays(means, sds)
    lower, upper = model.landmarks.levels
    expected = [dist.mean(), np.log(dist.std()), dist.cdf(lower), dist.sf(upper)]
    np.testing.assert_allclose(model.judged(state)[:4], expected, atol=1e-9)


@pytest.mark.parametrize("key", [key for key in MODELS if key != "gplc"])
def test_it_is_exact_where_the_function_does_not_depend_on_nodes(key):
    model, chain = drawn(key)
    conditioned = model.condition(model.unknowns(chain.theta[-1], chain.latent[-1]))
    mean, _ = conditioned.function(model.landmarks.X)
    np.testing.assert_allclose(chain.judged[-1, 0], mean, atol=1e-8)
    _, sds = conditioned.components(model.landmarks.X, standard_nodes(1, 32))
    np.testing.assert_allclose(
        chain.judged[-1, 1], 0.5 * np.log(np.mean(sds**2, axis=1)), atol=1e-8
    )


@each_case
def test_kinds_have_names(case):
    model, chain = drawn(case)
    assert chain.judged.shape[1:] == model.judged_shape
    assert model.judged_shape[0] == len(KINDS) + len(model.signature_kinds)
    assert np.isfinite(chain.judged).all()


@pytest.mark.parametrize("case", [case for case in CASES if case.startswith("gplc")])
def test_mirrored_covariates_change_the_signature_alone(case):
    model, chain = drawn(case)
    theta, latent = chain.theta[-1], chain.latent[-1]
    before = model.judged(model.state(model.unknowns(theta, latent)))
    after = model.judged(model.state(model.unknowns(theta, -latent)))
    if case == "gplc sum":
        return  # a term that is linear in w and x at once changes
    np.testing.assert_allclose(after[:4], before[:4], atol=1e-8)
    np.testing.assert_allclose(after[4:], -before[4:], atol=1e-8)
    assert np.max(np.abs(before[4:])) > 1e-3


def test_the_signature_of_a_function_that_rises_with_w_is_its_slope():
    rng = np.random.default_rng(3)
    x, w = rng.uniform(-1.0, 1.0, (60, 1)), rng.standard_normal(60)
    model = LatentCovariate(x, (0.5 + x[:, 0]) * w)
    theta = np.log([1.0, 1.0, 3.0, 0.01])
    found = model.judged(model.state(model.unknowns(theta, w)))[4]
    np.testing.assert_allclose(found, 0.5 + model.landmarks.X[:, 0], atol=0.2)


@pytest.mark.parametrize("key", MODELS)
def test_an_impossible_state_is_nan_and_no_error(key):
    model = MODELS[key](X, Y)
    state = model.state(model.prior_mean())._replace(log_density=-np.inf)
    assert np.isnan(model.judged(state)).all()


@pytest.mark.parametrize("key", MODELS)
def test_other_data_have_other_levels(key):
    model = MODELS[key](X, Y)
    assert model.landmarks is model.landmarks
    moved = model.with_data(Y + 5.0).landmarks
    np.testing.assert_array_equal(moved.rows, model.landmarks.rows)
    np.testing.assert_allclose(moved.levels, model.landmarks.levels + 5.0)


# --- the choice of landmarks -----------------------------------------------------------------


FLOATS = st.floats(-1e300, 1e300) | st.sampled_from([0.0, 1.0, -2.7])


@st.composite
def tables(draw):
    n, p = draw(st.integers(1, 40)), draw(st.integers(1, 3))
    return draw(arrays(float, (n, p), elements=FLOATS)), draw(arrays(float, n, elements=FLOATS))


@settings(max_examples=60, deadline=None)
@given(tables())
def test_landmarks_of_any_table(data):
    x, y = data
    found, again = landmarks_of(x, y), landmarks_of(x, y)
    assert all(map(np.array_equal, found, again))
    assert np.isfinite(found.levels).all()
    assert 1 <= found.rows.size <= min(MOST_LANDMARKS, len(x))
    assert np.all(np.diff(found.rows) > 0)
    np.testing.assert_array_equal(found.X, x[found.rows])
    assert len(np.unique(found.X, axis=0)) == found.rows.size


@settings(max_examples=60, deadline=None)
@given(arrays(float, st.integers(1, 40), elements=st.integers(-5, 5).map(float)))
def test_levels_are_apart_and_never_at_an_observed_value(y):
    (lower,), (upper,) = landmarks_of(np.zeros((y.size, 1)), y).levels
    assert lower < upper
    near = y[:21]
    assert lower not in near
    assert upper not in near
    assert np.mean(near < lower) <= 0.2
    assert np.mean(near > upper) <= 0.2


def test_few_rows_are_all_landmarks():
    x = np.random.default_rng(2).standard_normal((15, 2))
    np.testing.assert_array_equal(landmarks_of(x, x[:, 0]).rows, np.arange(15))


def test_landmarks_are_spread_and_not_all_at_the_edge():
    x = np.random.default_rng(2).standard_normal((400, 3))
    found = landmarks_of(x, x[:, 0])
    assert found.rows.size == MOST_LANDMARKS
    distance = np.linalg.norm(x, axis=1)
    inside = np.mean(distance[found.rows] < np.median(distance))
    assert 0.1 < inside < 0.7
    gaps = np.linalg.norm(found.X[:, None] - found.X, axis=2) + 9.0 * np.eye(MOST_LANDMARKS)
    assert gaps.min() > 0.3


def test_nodes_stand_for_a_standard_normal():
    for columns in (1, 2, 3, 5):
        nodes = standard_nodes(columns, 32).reshape(columns, -1)
        np.testing.assert_allclose(nodes.mean(axis=1), 0.0, atol=1e-12)
        np.testing.assert_allclose(nodes @ nodes.T / nodes.shape[1], np.eye(columns), atol=1e-12)
    fine = standard_nodes(1, 32)
    for level in (-1.3, 0.2, 1.7):
        assert abs(np.mean(fine < level) - ndtr(level)) <= 1.0 / fine.size
