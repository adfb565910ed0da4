"""Fits and races: data, seeds, and what is measured."""

from dataclasses import replace

import numpy as np
import pytest

from gplc import metrics
from gplc.chains import run_chain
from gplc.draws import Draws
from gplc.paper.experiments import (
    FIT,
    NODES,
    QUANTITIES,
    fits,
    held_out,
    races,
    seed_for,
    starting_density,
    training_set,
)
from gplc.paper.settings import CHOSEN, DATASETS, METHODS, SAMPLERS, VARIANTS, Beliefs
from gplc.posterior import Posterior, ResponseComponents
from gplc.predictive import Predictive

TIMES = {"sampling", "predicting", "seconds"}


@pytest.mark.parametrize("dataset", DATASETS)
def test_all_data_sets_are_different(dataset):
    responses = [training_set(1, dataset, number, 20).y for number in (1, 2, 3)]
    responses += [held_out(1, dataset, 20).y, training_set(2, dataset, 1, 20).y]
    responses += [training_set(1, other, 1, 20).y for other in DATASETS if other != dataset]
    assert np.unique(np.round(responses, 12)).size == 20 * len(responses)


@pytest.mark.parametrize("dataset", DATASETS)
def test_methods_and_variants_see_the_same_data(tiny, dataset):
    job = fits(tiny, CHOSEN, 1)[dataset, 1, "std"]
    for variant in VARIANTS.values():
        for method in METHODS:
            other = fits(tiny, variant, 1)[dataset, 1, method]
            np.testing.assert_array_equal(other.model().y, job.model().y)
            assert (other.seed, other.n_test) == (job.seed, job.n_test)


@pytest.mark.parametrize("method", METHODS)
def test_a_fit_gives_the_same_numbers_again(tiny, method):
    job = fits(tiny, CHOSEN, 1)["M2", 1, method]
    first, second = job.run(), job.run()
    for name in first.keys() - TIMES:
        assert first[name] == second[name]
    assert replace(job, repeat=1).run()["nlpd"] != first["nlpd"]


def test_a_fit_is_what_the_paper_says(tiny):
    """The first quarter dropped, the rest used to predict; equations nlpd and mse by hand."""
    job = replace(
        fits(tiny, CHOSEN, 1)["U1", 1, "gplc"], iterations=20, predictive_draws=15, nodes=2
    )
    model, test = job.model(), held_out(job.seed, "U1", job.n_test)
    numbers = (1, METHODS.index("gplc"), 0)
    chain = run_chain(model, "paper", seed_for(job.seed, "U1", FIT, *numbers), 15, 5)
    nodes = [seed_for(job.seed, "U1", NODES, *numbers)]
    draws = Draws.from_chains([chain], nodes, model, 2)
    dist = Predictive(ResponseComponents(Posterior(model, draws.thinned(15)), test.X))
    means, sds = dist.components()
    densities = np.exp(-0.5 * ((test.y[:, None] - means) / sds) ** 2) / (sds * np.sqrt(2 * np.pi))
    result = job.run()
    assert result["nlpd"] == pytest.approx(-np.log(densities.mean(axis=1)).mean())
    assert result["mse"] == pytest.approx(((means.mean(axis=1) - test.f) ** 2).mean())
    assert result["nlpd"] == pytest.approx(metrics.nlpd(dist, test.y))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_race_holds_everything_from_the_first_iteration(tiny, sampler):
    job = races(tiny)[0.1, sampler, 1]
    result, again = job.run(), job.run()
    iterations = tiny.race_iterations[sampler]
    assert result["values"].shape == (iterations, len(QUANTITIES))
    assert result["log_density"].shape == (iterations,)
    assert result["tuning"] == iterations // 4
    assert (result["seconds"] > 0).all()
    assert 0.0 < result["acceptance"] <= 1.0
    assert result["evaluations"] >= 1.0
    assert result["origin"] == starting_density(job.seed, job.n_train, 0.1)
    for name in result.keys() - TIMES:
        np.testing.assert_array_equal(result[name], again[name])


def test_race_values_belong_to_the_log_density(tiny):
    """Sum z^2 is at least (sum z)^2 / n: columns are where their names say."""
    values = races(tiny)[0.1, "elliptical", 1].run()["values"]
    sums, squares = values[:, QUANTITIES.index("sum z")], values[:, QUANTITIES.index("sum z^2")]
    assert (squares >= sums**2 / tiny.n_train - 1e-9).all()


def test_beliefs_change_what_they_say():
    usual = Beliefs().priors("gplc", "U1")
    doubled = Beliefs(median=2.0, spread=2.0).priors("gplc", "U1")
    for kind, (mean, sd) in usual.items():
        assert doubled[kind] == pytest.approx((mean + np.log(2.0), 2.0 * sd))
    data = training_set(1, "U1", 1, 5)
    model = Beliefs(constant=0.5, jitter=0.1).model("gplv", "U1", data.X, data.y)
    assert (model.kernel.constant, model.jitter) == (0.5, 0.1)


def test_every_choice_is_doubled_and_halved():
    for name in VARIANTS:
        if name.endswith("doubled"):
            assert name.replace("doubled", "halved") in VARIANTS
    assert len(set(VARIANTS.values())) == len(VARIANTS)


def test_longer_chains_are_those_of_the_main_experiment(tiny):
    """They are not made again."""
    assert fits(tiny, VARIANTS["the paper's samplers"], 1) == fits(tiny, CHOSEN, 1)
    assert pytest.approx(2.0) == CHOSEN.length / VARIANTS["as chosen"].length


def test_jitter_concerns_gplv_alone(tiny):
    base, other = (fits(tiny, VARIANTS[name], 1) for name in ("as chosen", "sigma_J 0.1"))
    assert {key[2] for key in base if base[key] != other[key]} == {"gplv"}
