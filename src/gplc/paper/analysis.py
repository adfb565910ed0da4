"""From results of jobs to the numbers that tables, figures and verdicts show."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from gplc._types import Array
from gplc.diagnostics import autocorrelation_time, autocorrelations
from gplc.paper import published
from gplc.paper.experiments import QUANTITIES, Fit, Race, held_out, starting_density
from gplc.paper.jobs import CPU, Result
from gplc.paper.settings import DATASETS, METHODS, SAMPLERS

MEASURES = ("nlpd", "mse")


class Paired(NamedTuple):
    """First method minus second over the same training sets."""

    mean: float
    error: float  # standard error of the mean
    wins: int  # sets on which the first is smaller
    sets: int


def paired(scores: Array, first: str, second: str) -> Paired:
    """Compare two methods, set by set.

    Parameters
    ----------
    scores : (sets, methods) array
        Columns in the order of `METHODS`.
    first, second : str
        Keys of the methods.

    Examples
    --------
    >>> import numpy as np
    >>> paired(np.array([[3.0, 1.0, 0.0], [3.0, 2.0, 0.0]]), "gplc", "std")
    Paired(mean=-1.5, error=0.5, wins=2, sets=2)
    """
    gaps = scores[:, METHODS.index(first)] - scores[:, METHODS.index(second)]
    return Paired(float(gaps.mean()), standard_error(gaps), int((gaps < 0).sum()), gaps.size)


def standard_error(values: Array) -> float:
    """SD / sqrt(count); nan for a single value."""
    return float(values.std(ddof=1) / math.sqrt(values.size)) if values.size > 1 else math.nan


@dataclass(frozen=True)
class Scores:
    """Predictive performance of the three methods.

    Attributes
    ----------
    nlpd, mse : mapping of str to (sets, methods) array
        By data set.
    oracle : mapping of str to float
        NLPD of the true density on the same test set.
    effective : mapping of str to (sets, methods) array
        Least effective draws of any quantity that convergence is judged on.
    seconds : mapping of str to (sets, methods) array
        CPU time of the whole job.
    """

    nlpd: Mapping[str, Array]
    mse: Mapping[str, Array]
    oracle: Mapping[str, float]
    effective: Mapping[str, Array]
    seconds: Mapping[str, Array]

    def of(self, measure: str) -> Mapping[str, Array]:
        """NLPD or MSE."""
        return self.nlpd if measure == "nlpd" else self.mse

    @property
    def sets(self) -> int:
        """Training sets of each data set."""
        return self.nlpd[DATASETS[0]].shape[0]

    def regret(self, dataset: str) -> Array:
        """Mean NLPD of each method minus that of the truth."""
        return self.nlpd[dataset].mean(axis=0) - self.oracle[dataset]


def published_regret(dataset: str) -> Array:
    """The same for the paper, against the expected NLPD of the truth: its test sets are lost."""
    return published.nlpd(dataset).mean(axis=0) - published.ORACLE[dataset]


def scores_from(results: Mapping[tuple[str, int, str], tuple[Fit, Result]]) -> Scores:
    """Gather fits, given by data set, number and method."""
    numbers = sorted({number for _, number, _ in results})

    def gather(name: str) -> dict[str, Array]:
        return {
            dataset: np.array(
                [
                    [float(results[dataset, number, method][1][name]) for method in METHODS]
                    for number in numbers
                ]
            )
            for dataset in DATASETS
        }

    oracle = {}
    for dataset in DATASETS:
        fit, _ = results[dataset, numbers[0], METHODS[0]]
        oracle[dataset] = held_out(fit.seed, dataset, fit.n_test).oracle_nlpd()
    return Scores(gather("nlpd"), gather("mse"), oracle, gather("effective"), gather(CPU))


# A run shorter than this many autocorrelation times does not determine the time.
FEW = 20


@dataclass(frozen=True)
class Lap:
    """All runs of one sampler of GPLV.

    Attributes
    ----------
    values : (runs, iterations, quantities) array
        Everything from the first iteration; quantities as in `QUANTITIES`.
    log_density : (runs, iterations) array
        Everything from the first iteration.
    origin : float
        Log density where all runs start.
    tuning : int
        Iterations that tuned, and are not used for autocorrelation.
    seconds : (runs, 2) array
        CPU time of an iteration while tuning and afterwards.
    acceptance, evaluations : float
        Share of accepted updates of z, and likelihoods looked at for z in one iteration.
    """

    values: Array
    log_density: Array
    origin: float
    tuning: int
    seconds: Array
    acceptance: float
    evaluations: float

    @property
    def used(self) -> Array:
        """Values after tuning."""
        return self.values[:, self.tuning :]

    @property
    def cost(self) -> float:
        """CPU seconds of an iteration."""
        return float(self.seconds[:, 1].mean())

    def tau(self) -> Array:
        """Autocorrelation time in iterations, each run by itself as in the paper.

        Returns
        -------
        (runs, quantities) array
        """
        return np.array([[autocorrelation_time(column) for column in run.T] for run in self.used])

    def tau_cpu(self) -> Array:
        """The paper's tau-tilde: tau times CPU seconds of an iteration, (runs, quantities)."""
        return self.tau() * self.seconds[:, 1:]

    def too_short(self) -> NDArray[np.bool_]:
        """Quantities for which the runs are too short to tell tau: then it is at least this."""
        return np.asarray(self.used.shape[1] < FEW * self.tau().mean(axis=0))

    def gamma(self, quantity: int, run: int = 0) -> Array:
        """Autocorrelations of a quantity in one run."""
        return autocorrelations(self.used[run, :, quantity])

    def times(self, run: int = 0) -> Array:
        """CPU time at the end of each iteration."""
        iterations = self.values.shape[1]
        costs = np.repeat(self.seconds[run], [self.tuning, iterations - self.tuning])
        return np.cumsum(costs)


Laps = Mapping[str, Lap]


def laps_from(
    results: Mapping[tuple[float, str, int], tuple[Race, Result]],
) -> dict[float, dict[str, Lap]]:
    """Gather runs, given by jitter, sampler and number, by jitter and sampler."""
    jitters = dict.fromkeys(jitter for jitter, _, _ in results)
    return {
        jitter: {
            sampler: _lap(
                [
                    result
                    for key, (_, result) in sorted(results.items())
                    if key[:2] == (jitter, sampler)
                ]
            )
            for sampler in SAMPLERS
        }
        for jitter in jitters
    }


def _lap(runs: Sequence[Result]) -> Lap:
    return Lap(
        np.stack([run["values"] for run in runs]),
        np.stack([run["log_density"] for run in runs]),
        float(runs[0]["origin"]),
        int(runs[0]["tuning"]),
        np.stack([run["seconds"] for run in runs]),
        float(np.mean([run["acceptance"] for run in runs])),
        float(np.mean([run["evaluations"] for run in runs])),
    )


def implied_jitter(seed: int, n_train: int) -> float:
    """The sigma_J with which the log density at the prior mean is the paper's, about -13."""

    def gap(log_jitter: float) -> float:
        density = starting_density(seed, n_train, math.exp(log_jitter))
        return density - published.STARTING_DENSITY

    return math.exp(brentq(gap, math.log(1e-3), 0.0, xtol=1e-3))


class Arrival(NamedTuple):
    """How long runs take to get where the posterior is."""

    seconds: Array  # CPU time of each run; inf if it never did
    iterations: Array


def equilibrium(laps: Laps) -> tuple[float, float]:
    """Where 95% of the sum of z lies, by the samplers that move z as a whole.

    Runs that have not arrived themselves, one value at a time, can not say where to.
    """
    place = QUANTITIES.index("sum z")
    draws = np.concatenate(
        [laps[name].used[:, :, place].ravel() for name in ("paper", "elliptical")]
    )
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(low), float(high)


def arrival(lap: Lap, within: tuple[float, float]) -> Arrival:
    """When each run first has a sum of z inside an interval."""
    sums = lap.values[:, :, QUANTITIES.index("sum z")]
    inside = (sums >= within[0]) & (sums <= within[1])
    seconds, iterations = [], []
    for run, row in enumerate(inside):
        first = int(np.argmax(row)) if row.any() else -1
        seconds.append(float(lap.times(run)[first]) if row.any() else math.inf)
        iterations.append(first + 1 if row.any() else math.inf)
    return Arrival(np.array(seconds), np.array(iterations))


def lost(laps: Laps) -> set[str]:
    """Samplers that mostly do not arrive while they tune: their draws say nothing of tau."""
    within = equilibrium(laps)
    return {
        name
        for name, lap in laps.items()
        if np.median(arrival(lap, within).iterations) > lap.tuning
    }
