"""The two kinds of job: a model fitted to a training set and judged, and a run of a sampler."""

import time
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from gplc import metrics
from gplc.chains import advance, labels, run_chain, start
from gplc.datasets import PaperData, make_paper
from gplc.diagnostics import autocorrelation_time, judged
from gplc.draws import Draws
from gplc.models.base import Model
from gplc.paper.jobs import Result
from gplc.paper.settings import CHOSEN, DATASETS, METHODS, SAMPLERS, Beliefs, Settings, Variant
from gplc.posterior import Posterior, ResponseComponents
from gplc.predictive import Predictive

# What a seed is for.
TRAINING, TEST, FIT, NODES, RACE = range(5)


def seed_for(seed: int, dataset: str, purpose: int, *numbers: int) -> np.random.SeedSequence:
    """A seed that depends on what it is for, and on nothing else."""
    return np.random.SeedSequence([seed, DATASETS.index(dataset), purpose, *numbers])


def training_set(seed: int, dataset: str, number: int, n: int) -> PaperData:
    """Training set `number`, which counts from 1 as in the paper."""
    return make_paper(dataset, n, seed_for(seed, dataset, TRAINING, number))


def held_out(seed: int, dataset: str, n: int) -> PaperData:
    """The one test set of a data set."""
    return make_paper(dataset, n, seed_for(seed, dataset, TEST))


@dataclass(frozen=True)
class Fit:
    """A model fitted to a training set, judged on the test set.

    The result holds ``nlpd`` and ``mse`` as the paper defines them, CPU seconds of
    ``sampling`` and ``predicting``, and ``effective``, the least number of effective draws of
    any quantity that convergence is judged on.
    """

    dataset: str
    number: int
    method: str
    beliefs: Beliefs
    n_train: int
    n_test: int
    iterations: int
    predictive_draws: int
    nodes: int
    seed: int
    sampler: str = "paper"
    repeat: int = 0

    @property
    def name(self) -> str:
        """Data set, number and method."""
        return f"fit-{self.dataset}-{self.number:02d}-{self.method}"

    def model(self) -> Model:
        """The model of the training set."""
        data = training_set(self.seed, self.dataset, self.number, self.n_train)
        return self.beliefs.model(self.method, self.dataset, data.X, data.y)

    def scheme(self) -> str:
        """The scheme in full."""
        return str(self.model().scheme(self.sampler))

    def run(self) -> Result:
        """Sample, drop the first quarter, predict the test set, judge."""
        model = self.model()
        test = held_out(self.seed, self.dataset, self.n_test)
        numbers = (self.number, METHODS.index(self.method), self.repeat)
        warmup = self.iterations // 4
        began = time.process_time()
        chain = run_chain(
            model,
            self.sampler,
            seed_for(self.seed, self.dataset, FIT, *numbers),
            draws=self.iterations - warmup,
            warmup=warmup,
        )
        sampled = time.process_time()
        draws = Draws.from_chains(
            [chain],
            [seed_for(self.seed, self.dataset, NODES, *numbers)],
            model,
            self.nodes,
        )
        posterior = Posterior(model, draws.thinned(self.predictive_draws))
        dist = Predictive(ResponseComponents(posterior, test.X))
        nlpd, mse = metrics.nlpd(dist, test.y), metrics.mse(dist, test.f)
        predicted = time.process_time()
        slowest = max(autocorrelation_time(values) for values in judged(draws).values())
        return {
            "nlpd": np.asarray(nlpd),
            "mse": np.asarray(mse),
            "sampling": np.asarray(sampled - began),
            "predicting": np.asarray(predicted - sampled),
            # Estimates of tau from a handful of draws can be zero.
            "effective": np.asarray(chain.log_density.size / max(slowest, 1.0)),
        }


# Quantities whose autocorrelation is compared, in the order of a race's values.
QUANTITIES = ("eta_y", "rho_y", "eta_z", "rho_z", "sum z", "sum z^2")


@dataclass(frozen=True)
class Race:
    """One run of a sampler of GPLV on U1, from the prior mean.

    The first quarter tunes, as everywhere. The result holds ``values``, (iterations,
    quantities): log hyperparameters, the sum of z and of z^2; ``log_density``; ``tuning``, how
    many iterations that was; ``seconds``, CPU time of an iteration while tuning and afterwards;
    ``acceptance`` of z and ``evaluations``, likelihoods looked at for z, both after tuning and
    for one iteration.
    """

    sampler: str
    number: int
    beliefs: Beliefs
    n_train: int
    iterations: int
    seed: int
    dataset: ClassVar[str] = "U1"

    @property
    def name(self) -> str:
        """Jitter, sampler and number."""
        return f"race-{self.beliefs.jitter:g}-{self.sampler}-{self.number}"

    def model(self) -> Model:
        """The model of the first training set of U1."""
        data = training_set(self.seed, self.dataset, 1, self.n_train)
        return self.beliefs.model("gplv", self.dataset, data.X, data.y)

    def scheme(self) -> str:
        """The scheme in full."""
        return str(self.model().scheme(self.sampler))

    def run(self) -> Result:
        """All iterations, from the first."""
        model = self.model()
        place = SAMPLERS.index(self.sampler)
        seed = seed_for(self.seed, self.dataset, RACE, self.number, place)
        tuning = self.iterations // 4
        # A short run first: compilation is not the sampler's work.
        origin = start(model, model.scheme(self.sampler), seed, model.prior_mean())
        advance(model, origin, 2, tune=True)
        tuned = advance(model, origin, tuning, tune=True)
        frozen = advance(model, tuned.position, self.iterations - tuning, tune=False)
        latent = np.concatenate([tuned.latent, frozen.latent])
        theta = np.concatenate([tuned.theta, frozen.theta])
        scheme = origin.scheme
        latent_updates = [
            key
            for key, update in zip(labels(scheme), scheme, strict=True)
            if update.part not in model.names
        ]
        return {
            "values": np.column_stack([theta, latent.sum(axis=1), (latent**2).sum(axis=1)]),
            "log_density": np.concatenate([tuned.log_density, frozen.log_density]),
            "origin": np.asarray(model.log_density(model.prior_mean())),
            "tuning": np.asarray(tuning),
            "seconds": np.array(
                [
                    tuned.seconds["warmup"] / tuning,
                    frozen.seconds["draws"] / (self.iterations - tuning),
                ]
            ),
            "acceptance": np.asarray(np.mean([frozen.acceptance[k] for k in latent_updates])),
            "evaluations": np.asarray(
                sum(frozen.events[f"{key}: evaluations"] for key in latent_updates)
                / (self.iterations - tuning)
            ),
        }


def fits(settings: Settings, variant: Variant, sets: int) -> dict[tuple[str, int, str], Fit]:
    """Fits of all methods to the first `sets` training sets, by data set, number and method."""
    # Only GPLV has a jitter: what changes nothing must not make the others do their work again.
    usual = replace(variant.beliefs, jitter=CHOSEN.beliefs.jitter)
    return {
        (dataset, number, method): Fit(
            dataset,
            number,
            method,
            variant.beliefs if method == "gplv" else usual,
            settings.n_train,
            settings.n_test,
            round(settings.iterations[method] * variant.length),
            round(settings.predictive_draws * variant.length),
            settings.nodes,
            settings.seed,
            variant.sampler,
            variant.repeat,
        )
        for dataset in DATASETS
        for number in range(1, sets + 1)
        for method in METHODS
    }


def races(settings: Settings) -> dict[tuple[float, str, int], Race]:
    """All runs of all samplers, by jitter, sampler and number."""
    return {
        (jitter, sampler, number): Race(
            sampler,
            number,
            Beliefs(jitter=jitter),
            settings.n_train,
            round(length * settings.race_iterations[sampler]),
            settings.seed,
        )
        for jitter, length in settings.jitters.items()
        for number in range(1, settings.races + 1)
        for sampler in SAMPLERS
    }


def starting_density(seed: int, n_train: int, jitter: float) -> float:
    """Log density of GPLV where races start, at the prior mean."""
    model = Race("paper", 1, Beliefs(jitter=jitter), n_train, 0, seed).model()
    return model.log_density(model.prior_mean())
