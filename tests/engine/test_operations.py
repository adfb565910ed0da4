"""No wasted work: the ledger shows what each update computes, as in the paper's table."""

from collections import Counter

import numpy as np
import pytest

from gplc.kernels import SquaredExponential
from gplc.models import LatentCovariate, LatentVariance, Standard, Unknowns
from gplc.samplers import SliceSweep

X = np.random.default_rng(0).normal(size=(12, 2))
Y = np.random.default_rng(1).normal(size=12)


def spent(model, update, steps=5):
    """What `steps` steps of one update enter in the ledger."""
    rng = np.random.default_rng(2)
    state = model.state(model.sample_prior(rng))
    model.ledger.clear()
    evaluations = 0
    for _ in range(steps):
        state, info = model.step(rng, state, update)
        evaluations += info.n_evaluations
    return Counter(model.ledger), evaluations


def updates(model, *schemes):
    return [(scheme, update) for scheme in schemes for update in model.scheme(scheme)]


GPLV = LatentVariance(X, Y)
# The default moves everything at once, and single hyperparameters only now and then.
GPLV_SCHEMES = [scheme for scheme in GPLV.schemes if scheme != "default"]
GPLV_UPDATES = updates(GPLV, *GPLV_SCHEMES)


def named(pairs):
    return [f"{scheme}-{update.part}" for scheme, update in pairs]


@pytest.mark.parametrize(("scheme", "update"), GPLV_UPDATES, ids=named(GPLV_UPDATES))
def test_gplv_update_leaves_the_other_process_alone(scheme, update):
    model = LatentVariance(X, Y)
    ledger, evaluations = spent(model, update)
    if update.part.endswith("_y") or "_y[" in update.part:
        assert ledger["C_z"] == ledger["chol(C_z)"] == 0
        assert 0 < ledger["chol(C_y)"] <= evaluations  # one each, none where it cannot be
    elif update.part in model.names:
        assert ledger["C_y"] == ledger["chol(C_y)"] == 0
        assert 0 < ledger["chol(C_z)"] <= evaluations
    else:
        assert ledger["C_z"] == ledger["chol(C_z)"] == ledger["C_y"] == 0
        assert ledger["chol(C_y)"] == (evaluations if update.part == "z" else 5)


@pytest.mark.parametrize("cls", [Standard, LatentCovariate])
def test_only_a_length_scale_needs_new_correlations(cls):
    model = cls(X, Y)
    for update in model.scheme("paper"):
        if update.part not in model.names:
            continue
        ledger, evaluations = spent(model, update)
        of_inputs = update.part.startswith("length_scale")
        assert ledger["C"] == (evaluations if of_inputs else 0), update.part
        assert ledger["chol(C)"] == evaluations, update.part


def test_gplv_signal_sd_needs_no_new_correlations():
    for update in GPLV.scheme("paper"):
        if update.part.startswith("signal_sd"):
            ledger, _ = spent(LatentVariance(X, Y), update)
            assert ledger["C_y"] == ledger["C_z"] == 0


def test_gplc_latent_sweep_does_no_factorisation():
    model = LatentCovariate(X, Y)
    (update,) = [u for u in model.scheme("paper") if u.part == "w"]
    ledger, evaluations = spent(model, update)
    assert ledger["chol(C)"] == ledger["C"] == 0
    assert ledger["sweep of chol(C)"] == 5
    assert evaluations > 5 * model.n


def test_gplc_free_moves_cost_nothing():
    model = LatentCovariate(X, Y)
    for update in model.scheme("default"):
        if update.part in ("shift", "scale", "reflection"):
            ledger, _ = spent(model, update)
            assert not +ledger, update.part


def test_gplc_fold_factorises_once_a_proposal():
    model = LatentCovariate(X, Y)
    (update,) = [u for u in model.scheme("latents") if u.part == "fold"]
    ledger, evaluations = spent(model, update)
    assert ledger["chol(C)"] == evaluations > 0
    assert ledger["C"] == 0


def test_free_moves_leave_the_likelihood_as_it_was():
    model, rng = LatentCovariate(X, Y, SquaredExponential(constant=0.7)), np.random.default_rng(3)
    state = model.state(model.sample_prior(rng))
    before = state.solved[0].factor.log_density
    for update in model.scheme("default"):
        if update.part in ("shift", "scale", "reflection"):
            state, _ = model.step(rng, state, update)
            fresh = model.state(state.unknowns)
            assert fresh.solved[0].factor.log_density == pytest.approx(before, abs=1e-8), (
                update.part
            )
            assert fresh.log_density == pytest.approx(state.log_density, abs=1e-8), update.part


def test_an_iteration_of_the_papers_gplv_scheme_costs_what_its_table_says():
    # p + 1 Metropolis updates of theta_y and of theta_z, m updates of z after each of the latter.
    model, m = LatentVariance(X, Y), 7
    rng = np.random.default_rng(4)
    state = model.state(model.sample_prior(rng))
    model.ledger.clear()
    for update in model.scheme("paper", repeats=m):
        state, _ = model.step(rng, state, update)
    assert model.ledger["chol(C_y)"] == 3 + 3 * m
    assert model.ledger["chol(C_z)"] == 3
    assert model.ledger["C_y"] == model.ledger["C_z"] == 2


def test_sweep_of_one_site_at_a_time_factorises_once_whatever_n():
    for n in (3, 12):
        model = LatentVariance(X[:n], Y[:n])
        rng = np.random.default_rng(5)
        state = model.state(model.sample_prior(rng))
        model.ledger.clear()
        for name in ("metropolis", "slice"):
            state, _ = model.step(rng, state, model.scheme(name)[-1])
        assert model.ledger["chol(C_y)"] == 2  # to see how far the running inverse had drifted
        assert model.ledger["chol(C_z)"] == 0


def test_counting_changes_nothing():
    model = LatentCovariate(X, Y)
    unknowns = model.sample_prior(np.random.default_rng(6))
    one = model.log_density(unknowns)
    model.ledger["chol(C)"] += 1000
    assert model.log_density(Unknowns(*unknowns)) == one
    assert isinstance(model.scheme("paper")[-1].sampler, SliceSweep)
