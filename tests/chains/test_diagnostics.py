"""The verdict on chains: right where chains are good, harsh where they are not."""

import json
from collections import Counter

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy.signal import lfilter

from gplc.chains import Chain, Position
from gplc.diagnostics import (
    MOST_RHAT,
    Advice,
    Diagnostics,
    Row,
    autocorrelation_time,
    converged,
    diagnose,
    find_modes,
    judged,
    table,
    worst_rhat,
)
from gplc.draws import Draws
from gplc.models import LatentCovariate, Standard
from gplc.models.base import Unknowns
from gplc.models.landmarks import KINDS


def draws_of(theta, kept=None, model_class=Standard):
    """Draws made up: log hyperparameters, and what is kept at landmarks (none by default)."""
    chains, draws = theta.shape[:2]
    kept = np.empty((chains, draws, len(KINDS), 0)) if kept is None else kept
    names = tuple(f"length_scale[{k}]" for k in range(theta.shape[2]))
    latent, nodes = np.empty((chains, draws, 0)), np.zeros((chains, draws, 1))
    rows = tuple(range(0, 10 * kept.shape[3], 10))
    density = theta.sum(axis=2)
    return Draws(names, theta, latent, density, kept, nodes, model_class, 1, rows)


def chains_of(draws):
    position = Position(Unknowns(np.zeros(1), np.empty(0)), {}, (), 0)
    return [
        Chain(*arrays, {"w": 0.5}, Counter(), {"draws": 1.0}, position, draws.names)
        for arrays in zip(draws.theta, draws.latent, draws.log_density, draws.judged, strict=True)
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
    assert found.level == "fine"
    assert found.verdict.startswith("fine. The Monte Carlo error of predictions is at most 1.")
    assert "Next" not in found.verdict
    assert "Verdict: fine. " in str(found)


def rows_of(**parameters):
    """A hyperparameter that is fine and a prediction that may not be."""
    good = Row(0.0, 1.0, 0.01, 1.005, 1000.0, 1000.0, 4.0, 0.1)
    return {"log noise_sd": good, "f(x) at row 3": good._replace(**parameters)}


def judged_by(rows, chains=4, events=()):
    return Diagnostics(rows, {}, Counter(dict(events)), {}, {}, chains, 1000)


@pytest.mark.parametrize(
    ("level", "parameters"),
    [
        ("fine", {}),
        ("usable", {"rhat": 1.007, "ess_bulk": 115.0}),
        ("usable", {"rhat": 1.049}),
        ("usable", {"ess_tail": 101.0}),
        ("do not use", {"rhat": 1.051}),
        ("do not use", {"ess_bulk": 99.0}),
        ("do not use", {"ess_tail": 99.0}),
        ("do not use", {"rhat": np.nan}),
    ],
)
def test_three_levels_by_what_is_predicted(level, parameters):
    assert judged_by(rows_of(**parameters)).level == level


def test_hyperparameters_alone_do_not_make_a_fit_useless():
    rows = rows_of()
    rows["log noise_sd"] = rows["log noise_sd"]._replace(rhat=1.4, ess_bulk=9.0)
    assert judged_by(rows).level == "usable"


def test_the_error_of_predictions_is_the_worst_in_their_own_sds():
    rows = rows_of(mcse=0.3, sd=4.0)
    assert judged_by(rows).prediction_error == pytest.approx(0.075)
    assert "at most 7.5% of their SD" in judged_by(rows).verdict
    rows["log noise_sd"] = rows["log noise_sd"]._replace(mcse=5.0)
    assert judged_by(rows).prediction_error == pytest.approx(0.075)
    assert np.isnan(judged_by(rows_of(mcse=np.nan)).prediction_error)
    assert np.isnan(judged_by(rows_of(sd=0.0)).prediction_error)


def test_the_next_step_is_in_the_language_of_the_reader():
    poor = judged_by(rows_of(ess_bulk=160.0))
    assert poor.next_step() == "model.extend(2000)"  # 1.2 * 400 / 160 = 3 times as many
    assert poor.next_step(Advice.in_shell("my fit.nc")) == "gplc resume 'my fit.nc'"
    hopeless = judged_by(rows_of(rhat=3.0))
    assert hopeless.next_step() == "model.extend(10000)"
    alone = judged_by(rows_of(), chains=1)
    assert (alone.level, alone.next_step()) == ("usable", "fit again with chains=4")
    singular = judged_by(rows_of(), events={"C not positive definite": 400})
    assert singular.level == "usable"
    assert "--prior" in singular.next_step(Advice.in_shell("a.nc"))
    assert "priors=" in singular.next_step()


def autoregressions(rng, shape, phi):
    """Stationary series along the second axis, of variance one and tau (1 + phi) / (1 - phi)."""
    noise = rng.standard_normal(shape) * np.sqrt(1.0 - phi**2)
    noise[:, 0] /= np.sqrt(1.0 - phi**2)
    return lfilter([1.0], [1.0, -phi], noise, axis=1)


def made_up(rng, phi=0.0, signs=None):
    """Draws of four chains, with predictions and a signature at five landmarks."""
    kept = autoregressions(rng, (4, 1000, len(KINDS) + 1, 5), phi)
    kept[:, :, -1] += 5.0 if signs is None else signs
    # Chains change the sign of all w at will.
    kept[:, :, -1] *= rng.choice([-1.0, 1.0], (4, 1000, 1))
    return draws_of(autoregressions(rng, (4, 1000, 2), phi), kept, LatentCovariate)


def test_two_far_modes_with_other_predictions_are_told():
    draws = made_up(np.random.default_rng(8))
    draws.theta[:2] += 10.0
    draws.judged[:2, :, 0, 3] += 3.0
    found = diagnose(draws, chains_of(draws))
    assert found.modes.groups == ((0, 1), (2, 3))
    assert found.modes.worst == "f(x) at row 30"
    assert found.modes.gap == pytest.approx(3.0, abs=0.2)
    assert not found.modes.agree
    assert found.modes.within < 1.1 < found.modes.overall
    assert "in 2 modes (1, 2 against 3, 4; R-hat 1.0" in found.verdict
    assert "f(x) at row 30 by 3." in found.verdict
    again = Diagnostics.from_record(json.loads(json.dumps(found.to_record())))
    assert (again.modes, again.verdict) == (found.modes, found.verdict)


def test_two_far_modes_with_the_same_predictions_are_told():
    draws = made_up(np.random.default_rng(9))
    draws.theta[[0, 3]] += 10.0
    found = diagnose(draws, chains_of(draws))
    assert found.modes.groups == ((0, 3), (1, 2))
    assert found.modes.agree
    assert "predictions agree within" in found.verdict
    assert not found.ok


def test_mirrored_stretches_are_modes_only_relative_to_each_other():
    """In chain 3 the signature of two landmarks has the other sign than that of the rest."""
    rng = np.random.default_rng(10)
    signs = np.full((4, 1, 5), 5.0)
    signs[2, :, :2] *= -1.0
    draws = made_up(rng, signs=signs)
    assert find_modes(draws).groups == ((0, 1, 3), (2,))
    assert find_modes(made_up(rng, signs=np.full((4, 1, 5), 5.0))) is None


def test_a_single_slow_quantity_is_rarely_taken_for_modes():
    # Halves of a single quantity can agree by chance: in 2 of 100 seeds. 3 of 20 are too many.
    found = [
        find_modes(draws_of(autoregressions(np.random.default_rng(seed), (4, 1000, 1), 0.99)))
        for seed in range(20)
    ]
    assert sum(modes is not None for modes in found) < 3


@pytest.mark.parametrize("phi", [0.98, 0.99, 0.998])
def test_slow_chains_are_not_taken_for_modes(phi):
    # No false alarm in 100 seeds with 5 or 60 quantities at any of these; here are 22.
    draws = made_up(np.random.default_rng(11), phi)
    found = diagnose(draws, chains_of(draws))
    assert not found.ok
    assert found.modes is None
    assert "slow rather than apart" in found.verdict
    assert "Next: model.extend(" in found.verdict


@pytest.mark.parametrize(
    "poor", [{"rhat": 1.02}, {"ess_bulk": 390.0}, {"ess_tail": 390.0}, {"rhat": np.nan}], ids=str
)
def test_each_limit_counts_by_itself(poor):
    good = Row(0.0, 1.0, 0.01, 1.005, 1000.0, 1000.0, 4.0, 0.1)
    assert converged({"log_density": good})
    assert not converged({"log_density": good, "f(x) at row 3": good._replace(**poor)})


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
    assert "There is one chain only" in diagnose(alone, chains_of(alone)).verdict


def test_many_numerical_events_get_a_bad_verdict(independent):
    chains = chains_of(independent)
    chains[0].events["C not positive definite"] = 1000
    assert "not positive definite" in diagnose(independent, chains).verdict


def kept_at_landmarks(rng, chains=4, draws=1000, landmarks=3, kinds=4):
    return 0.1 * rng.standard_normal((chains, draws, kinds, landmarks))


def test_every_kind_at_every_landmark_is_judged_and_only_the_worst_shown():
    rng = np.random.default_rng(4)
    kept = kept_at_landmarks(rng)
    kept[:2, :, 1, 2] += 1.0
    draws = draws_of(rng.standard_normal((4, 1000, 1)), kept)
    np.testing.assert_array_equal(judged(draws)["log SD(x) at row 20"], kept[:, :, 1, 2])
    found = diagnose(draws, chains_of(draws))
    assert len(found.rows) == 2 + 3 * len(KINDS)
    assert found.leading["log SD(x), worst of 3"] == "log SD(x) at row 20"
    assert "1 of 14 quantities" in found.verdict
    assert "worst is log SD(x) at row 20" in found.verdict
    assert str(found).count("worst of 3") == len(KINDS)
    assert worst_rhat(draws) > 1.5 > worst_rhat(draws_of(draws.theta))


def test_what_could_not_be_computed_counts_as_bad():
    rng = np.random.default_rng(5)
    kept = kept_at_landmarks(rng)
    kept[3, 17] = np.nan
    draws = draws_of(rng.standard_normal((4, 1000, 1)), kept)
    rows = table(draws)
    assert np.isnan(rows["f(x) at row 0"].rhat)
    assert rows["log length_scale[0]"].rhat < MOST_RHAT
    assert not converged(rows)
    assert np.isnan(worst_rhat(draws))


def test_a_tail_that_is_empty_in_all_draws_is_not_judged():
    rng = np.random.default_rng(6)
    kept = kept_at_landmarks(rng)
    kept[:, :, KINDS.index("upper tail"), 1] = 0.0
    names = judged(draws_of(rng.standard_normal((4, 1000, 1)), kept))
    assert "upper tail at row 10" not in names
    assert "lower tail at row 10" in names


def test_the_signature_is_not_judged():
    rng = np.random.default_rng(7)
    theta = rng.standard_normal((4, 100, 1))
    kept = kept_at_landmarks(rng, draws=100, kinds=len(KINDS) + 1)
    assert list(judged(draws_of(theta, kept))) == list(judged(draws_of(theta, kept[:, :, :-1])))


def test_record_and_back(independent):
    found = diagnose(independent, chains_of(independent), "Stopped.")
    again = Diagnostics.from_record(found.to_record())
    assert str(again) == str(found)
