"""The verdict on chains: right where chains are good, harsh where they are not."""

from collections import Counter

import numpy as np
import pytest
from arviz_stats.base import array_stats

from gplc.chains import Chain, Position
from gplc.diagnostics import (
    Diagnostics,
    autocorrelation_time,
    converged,
    diagnose,
    judged,
    table,
)
from gplc.draws import Draws
from gplc.models import LatentCovariate, Standard
from gplc.models.base import Unknowns


def draws_of(theta, latent=None, model_class=Standard):
    chains, draws = theta.shape[:2]
    if latent is None:
        latent = np.empty((chains, draws, 0))
    names = tuple(f"length_scale[{k}]" for k in range(theta.shape[2]))
    nodes = np.zeros((chains, draws, 1))
    return Draws(names, theta, latent, theta.sum(axis=2), nodes, model_class)


def chains_of(draws):
    position = Position(Unknowns(np.zeros(1), np.empty(0)), {}, (), 0)
    return [
        Chain(theta, latent, density, {"w": 0.5}, Counter(), {"draws": 1.0}, position, draws.names)
        for theta, latent, density in zip(
            draws.theta, draws.latent, draws.log_density, strict=True
        )
    ]


@pytest.fixture
def independent():
    return draws_of(np.random.default_rng(1).standard_normal((4, 1000, 2)))


def test_rhat_ess_and_mcse_are_those_of_arviz_stats(independent):
    values = independent.theta[:, :, 0]
    row = table(independent)["log length_scale[0]"]
    axes = {"chain_axis": 0, "draw_axis": 1}
    assert row.rhat == array_stats.rhat(values, method="rank", **axes)
    assert row.ess_bulk == array_stats.ess(values, method="bulk", **axes)
    assert row.ess_tail == array_stats.ess(values, method="tail", prob=(0.05, 0.95), **axes)
    assert row.mcse == array_stats.mcse(values, method="mean", **axes)


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9, 0.98])
def test_tau_of_an_autoregression_is_right_to_ten_percent(phi):
    # tau = (1 + phi) / (1 - phi). With 400,000 / tau independent values the SD of the estimate is
    # below 2% even at tau = 99, so that a false alarm needs more than five SDs.
    rng = np.random.default_rng(2)
    noise = rng.standard_normal(400_000)
    values = np.empty(noise.size)
    values[0] = noise[0] / np.sqrt(1 - phi**2)
    for k in range(1, noise.size):
        values[k] = phi * values[k - 1] + noise[k]
    assert autocorrelation_time(values) == pytest.approx((1 + phi) / (1 - phi), rel=0.1)


def test_tau_of_a_constant_is_not_a_number():
    assert np.isnan(autocorrelation_time(np.ones(100)))


def test_independent_draws_get_a_good_verdict(independent):
    found = diagnose(independent, chains_of(independent))
    assert found.ok
    assert found.verdict == "fine"
    assert "Verdict: fine" in str(found)


def test_two_far_modes_get_a_bad_verdict(independent):
    theta = independent.theta.copy()
    theta[:2] += 10.0
    apart = draws_of(theta)
    found = diagnose(apart, chains_of(apart))
    assert not found.ok
    assert "R-hat" in found.verdict
    assert 'draws="auto"' in found.verdict


def test_a_handful_of_draws_gets_a_bad_verdict():
    few = draws_of(np.random.default_rng(3).standard_normal((4, 3, 1)))
    assert not diagnose(few, chains_of(few)).ok
    assert not converged(table(few))


def test_a_stuck_chain_gets_a_bad_verdict(independent):
    theta = independent.theta.copy()
    theta[:] = 0.0
    stuck = draws_of(theta)
    assert not diagnose(stuck, chains_of(stuck)).ok


def test_one_chain_gets_a_bad_verdict(independent):
    alone = draws_of(independent.theta[:1])
    assert "one chain" in diagnose(alone, chains_of(alone)).verdict


def test_many_numerical_events_get_a_bad_verdict(independent):
    chains = chains_of(independent)
    chains[0].events["C not positive definite"] = 1000
    assert "not positive definite" in diagnose(independent, chains).verdict


def test_latent_covariates_are_judged_without_their_sign():
    rng = np.random.default_rng(4)
    latent = rng.standard_normal((2, 500, 3))
    draws = draws_of(rng.standard_normal((2, 500, 1)), latent, LatentCovariate)
    signs = np.array([1.0, -1.0])[:, None, None]
    mirrored = draws_of(draws.theta, signs * latent, LatentCovariate)
    np.testing.assert_allclose(judged(draws)["sum w^2"], judged(mirrored)["sum w^2"])
    assert not any(name == "w" for name in judged(draws))


def test_record_and_back(independent):
    found = diagnose(independent, chains_of(independent), "Stopped.")
    again = Diagnostics.from_record(found.to_record())
    assert str(again) == str(found)
