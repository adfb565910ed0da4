"""Rows with the same inputs: exact, and at the cost of the different ones."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal

import gplc
from gplc.models import MODELS, LatentVariance, Standard

rng = np.random.default_rng(8)
X = np.repeat([[-1.0, 0.0], [0.3, 0.4], [1.2, -0.5], [2.0, 0.1]], [3, 1, 2, 4], axis=0)
ORDER = rng.permutation(10)
X = X[ORDER]
Y = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(10)
# Known noise that differs between rows of the same place, too.
SDS = rng.uniform(0.1, 0.6, size=10)
NEW = np.array([[0.0, 0.0], [0.3, 0.4], [3.0, 1.0]])
MERGING = [key for key, model in MODELS.items() if model.merges]
each_noise = pytest.mark.parametrize("known", [None, SDS], ids=["learned", "known too"])


def pair(key, known):
    """The same model with rows merged and apart, and unknowns of both."""
    merged = MODELS[key](X, Y, known_sd=known, merge_rows=True)
    apart = MODELS[key](X, Y, known_sd=known)
    theta = merged.priors.sample(np.random.default_rng(1))
    latent = np.random.default_rng(2).normal(-1.0, 0.5, size=merged.n_latent)
    rows = latent[merged.replicates.place] if latent.size else latent
    return merged, apart, merged.unknowns(theta, latent), apart.unknowns(theta, rows)


@each_noise
@pytest.mark.parametrize("key", MERGING)
def test_likelihood_is_that_of_all_rows(key, known):
    merged, apart, unknowns, of_rows = pair(key, known)
    assert len(merged.bound_rows) == 4
    exact = multivariate_normal.logpdf(Y, np.zeros(10), apart.covariance(of_rows))
    assert merged.state(unknowns).solved[0].log_density == pytest.approx(exact, abs=1e-9)
    np.testing.assert_allclose(merged.covariance(unknowns), apart.covariance(of_rows))
    if key == "std":
        assert merged.log_density(unknowns) == pytest.approx(apart.log_density(of_rows), abs=1e-9)


@each_noise
@pytest.mark.parametrize("key", MERGING)
def test_gradient_is_that_of_the_density(key, known):
    merged, _, unknowns, _ = pair(key, known)
    start, size = np.concatenate(unknowns), len(merged.names)

    def density(vector):
        return merged.log_density(merged.unknowns(vector[:size], vector[size:]))

    exact = np.concatenate(merged.gradient(unknowns))
    np.testing.assert_allclose(approx_fprime(start, density, 1e-7), exact, rtol=1e-4, atol=1e-3)


@each_noise
@pytest.mark.parametrize("key", MERGING)
def test_predictions_are_those_of_all_rows(key, known):
    merged, apart, unknowns, of_rows = pair(key, known)
    found, wanted = (
        merged.condition(unknowns).function(NEW),
        apart.condition(of_rows).function(NEW),
    )
    np.testing.assert_allclose(found[0], wanted[0], atol=1e-9)
    np.testing.assert_allclose(found[1], wanted[1], atol=1e-9)


@each_noise
def test_each_row_is_left_out_alone(known):
    merged, apart, unknowns, of_rows = pair("std", known)
    found, wanted = merged.left_out(unknowns), apart.left_out(of_rows)
    np.testing.assert_allclose(found.means, wanted.means, atol=1e-8)
    np.testing.assert_allclose(found.sds, wanted.sds, atol=1e-8)


@each_noise
def test_rows_left_out_of_gplv(known):
    """Given z of all places: rows that share it by hand, single ones with z summed out."""
    merged, apart, unknowns, of_rows = pair("gplv", known)
    found = merged.left_out(unknowns).log_density(Y)
    mean, variance = apart.state(of_rows).solved[0].left_out()
    by_hand = -0.5 * (np.log(2 * np.pi * variance) + (Y - mean) ** 2 / variance)
    shared = np.bincount(merged.replicates.place)[merged.replicates.place] > 1
    np.testing.assert_allclose(found[shared], by_hand[shared], atol=1e-8)
    assert not np.allclose(found[~shared], by_hand[~shared])


@pytest.mark.parametrize("key", MERGING)
def test_data_can_be_exchanged(key):
    merged, _, unknowns, _ = pair(key, SDS)
    other = merged.sample_data(np.random.default_rng(3), unknowns)
    again = MODELS[key](X, other, known_sd=SDS, merge_rows=True)
    one = merged.with_data(other).state(unknowns).solved[0]
    assert one.log_density == pytest.approx(again.state(unknowns).solved[0].log_density, abs=1e-9)
    moved = merged.state(unknowns).solved[0].with_data(other)
    assert moved.log_density == pytest.approx(one.log_density, abs=1e-9)
    assert merged.replicate(np.random.default_rng(4), unknowns).shape == (10,)


def test_different_rows_are_left_as_they_are():
    assert Standard(X[:2] + np.array([[0.0], [0.1]]), Y[:2], merge_rows=True).replicates is None
    assert MODELS["gplc"](X, Y).replicates is None


def test_sweeps_over_single_z_take_rows_apart():
    with pytest.raises(ValueError, match="merge_rows=False"):
        LatentVariance(X, Y, merge_rows=True).scheme("slice")
    few = {"chains": 1, "draws": 5, "warmup": 5, "random_state": 0}
    model = gplc.LatentVarianceGP(**few, sampler="slice").fit(X, Y)
    assert model.draws_["z"].shape == (1, 5, 10)
    assert gplc.LatentVarianceGP(**few).fit(X, Y).draws_["z"].shape == (1, 5, 4)
