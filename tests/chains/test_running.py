"""Chains in parallel, until good, and what a user sees of it."""

import dataclasses
import warnings

import joblib
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import gplc
from gplc.chains import advance, run_chain, run_chains, start
from gplc.diagnostics import worst_rhat
from gplc.models import LatentCovariate, LatentVariance, Standard
from gplc.models.latent_covariate.model import START_HELD


@pytest.fixture(scope="module")
def data():
    made = gplc.datasets.make_paper("U1", n=15, random_state=3)
    return made.X, made.y


MODELS = {"std": Standard, "gplc": LatentCovariate, "gplv": LatentVariance}


def theta_and_latent(chains):
    return [
        np.concatenate(
            [c.theta, c.latent, c.log_density[:, None], c.judged.reshape(len(c.theta), -1)], axis=1
        )
        for c in chains
    ]


@pytest.mark.parametrize("key", MODELS)
def test_workers_and_backends_do_not_change_the_draws(key, data):
    model = MODELS[key](*data)
    run = {"seed": 1, "chains": 3, "draws": 12, "warmup": 8}
    alone = theta_and_latent(run_chains(model, **run))
    watched = theta_and_latent(run_chains(model, **run, watch=lambda chains: None))
    np.testing.assert_array_equal(alone, watched)
    np.testing.assert_array_equal(alone, theta_and_latent(run_chains(model, **run, n_jobs=2)))
    with joblib.parallel_config(backend="threading", n_jobs=2):
        np.testing.assert_array_equal(alone, theta_and_latent(run_chains(model, **run)))


@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_gives_the_same_draws(data):
    distributed = pytest.importorskip("distributed")
    model = LatentCovariate(*data)
    run = {"seed": 1, "chains": 2, "draws": 12, "warmup": 8}
    alone = theta_and_latent(run_chains(model, **run))
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        on_cluster = theta_and_latent(run_chains(model, **run))
    np.testing.assert_array_equal(alone, on_cluster)


def test_chains_differ_and_start_apart(data):
    chains = run_chains(Standard(*data), seed=1, chains=4, draws=1, warmup=0)
    starts = np.array([chain.theta[0] for chain in chains])
    assert np.unique(starts, axis=0).shape[0] == 4


def test_auto_goes_on_until_converged(data):
    model = gplc.StandardGP(draws="auto", warmup=200, chains=4, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a converged fit does not warn
        model.fit(*data)
    assert model.diagnostics_.ok
    count = model.draws_.log_density.shape[1]
    assert model.diagnostics_.stopped == f"Converged after {count} draws a chain."
    again = gplc.StandardGP(draws="auto", warmup=200, chains=4, random_state=1, n_jobs=2).fit(
        *data
    )
    np.testing.assert_array_equal(model.draws_.theta, again.draws_.theta)


def test_auto_stops_at_max_draws_and_says_so(data):
    model = gplc.StandardGP(draws="auto", max_draws=20, warmup=5, chains=2, random_state=1)
    with pytest.warns(ConvergenceWarning, match="Verdict: do not use"):
        model.fit(*data)
    assert "max_draws = 20" in model.diagnostics_.stopped
    assert model.draws_.log_density.shape == (2, 20)


def test_max_seconds_stops_and_says_so(data):
    model = gplc.StandardGP(draws=100_000, max_seconds=1e-6, warmup=5, random_state=1)
    model.fit(*data)
    assert "max_seconds" in model.diagnostics_.stopped
    assert model.draws_.log_density.shape[1] < 100_000


@pytest.mark.parametrize(
    ("setting", "value"),
    [("draws", "many"), ("max_draws", 0), ("max_seconds", 0.0), ("progress", "loud")],
)
def test_nonsense_is_refused_by_name(data, setting, value):
    with pytest.raises(ValueError, match=setting):
        gplc.StandardGP(**{setting: value}).fit(*data)


def test_progress_is_silent_unless_asked(data, capfd):
    gplc.StandardGP(chains=1, draws=5, warmup=5, progress="auto").fit(*data)
    assert capfd.readouterr() == ("", "")
    gplc.StandardGP(chains=1, draws=5, warmup=5, progress=True).fit(*data)
    assert "10/10 iterations" in capfd.readouterr().err


def test_progress_tells_the_worst_rhat_of_all_that_is_judged(data, capfd):
    model = gplc.StandardGP(chains=2, draws=40, warmup=5, progress=True, random_state=1)
    draws = model.fit(*data).draws_
    assert f"45/45 iterations, R-hat {worst_rhat(draws):.3f}" in capfd.readouterr().err
    without = dataclasses.replace(draws, judged=draws.judged[:, :, :0])
    assert worst_rhat(without) < worst_rhat(draws)


def test_arviz_takes_the_draws(data):
    model = gplc.LatentCovariateGP(chains=2, draws=20, warmup=5, random_state=0).fit(*data)
    tree = model.draws_.to_arviz()
    assert tree["posterior"]["w"].shape == (2, 20, 15)
    import arviz_stats

    summary = arviz_stats.summary(tree, var_names=["noise_sd", "signal_sd"])
    assert list(summary.index) == ["noise_sd", "signal_sd"]


def test_step_sizes_are_learned_in_warm_up_and_frozen_after(data):
    model = LatentVariance(*data)
    warm = run_chains(model, "paper", seed=1, chains=1, draws=1, warmup=50)[0].position.scheme
    long = run_chains(model, "paper", seed=1, chains=1, draws=40, warmup=50)[0].position.scheme
    assert [update.sampler for update in warm] == [update.sampler for update in long]
    assert warm[0].sampler.step_size != 1.0


def test_an_update_may_rest_in_warm_up_only(data):
    """GPLC's chains hold w while warm-up begins; draws never do, however short warm-up was."""
    model = LatentCovariate(*data)
    begun = start(model, model.scheme(), 1)
    held = advance(model, begun, START_HELD, tune=True)
    assert (held.latent == begun.unknowns.latent).all()
    assert (held.theta[-1] != begun.unknowns.theta).all()
    assert (advance(model, held.position, 1, tune=True).latent != held.latent[-1]).any()
    for warmup in (0, 3):
        chain = run_chain(model, seed=1, draws=2, warmup=warmup)
        assert (chain.latent[0] != begun.unknowns.latent).any()
