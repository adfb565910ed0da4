"""Everything that decides what an experiment does, in one place.

The paper leaves its priors, the constant c, and the number of iterations open. Those used here are
round numbers on the raw scale of the data, and were not changed once results were seen:

- c = 1 for both processes, and eta ~ log N(0, 1): responses have an SD of about 1.
- rho_k ~ log N(log SD of the input, rounded to a whole number, 1): inputs of U1 and U2 are uniform
  on [0, 1] with SD 0.29, so that the mean is -1; those of M1 and M2 have SD 1, so that it is 0.
- rho_w ~ log N(1, 1): w has SD 1, and g is smooth in it.
- sigma ~ log N(-1, 1.5): a part of the SD of y, from a percent to all of it.
- sigma_J = 0.001, the paper's example; a = 0.3, m = 40 and slice width 1, which it states.

The comparison of samplers is made with sigma_J = 0.1 too. With 0.001 a single z_i is tied tightly
to the others: samplers that move one at a time do not get anywhere, while the paper's do; and
only with about 0.1 does the log density begin where the paper's does.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gplc._types import Array
from gplc.kernels import SquaredExponential
from gplc.models import MODELS, Model

DATASETS = ("U1", "U2", "M1", "M2")
METHODS = ("std", "gplc", "gplv")
NAMES: Mapping[str, str] = {key: MODELS[key].title for key in METHODS}

# Log of the input's SD, rounded: 0.29 on [0, 1], and 1.
LOG_INPUT_SCALE: Mapping[str, float] = {"U1": -1.0, "U2": -1.0, "M1": 0.0, "M2": 0.0}

# The paper's three samplers for GPLV, its closing question, and ours.
SAMPLERS = ("paper", "metropolis", "slice", "elliptical", "default")
SAMPLER_NAMES: Mapping[str, str] = {
    "paper": "Modified Metropolis",
    "metropolis": "Metropolis",
    "slice": "Slice",
    "elliptical": "Elliptical slice",
    "default": "Default of gplc",
}


@dataclass(frozen=True)
class Beliefs:
    """Priors and c, as changes to what the module docstring says.

    Parameters
    ----------
    median : float
        Factor on the prior median of every hyperparameter.
    spread : float
        Factor on the prior SD of every log hyperparameter.
    constant : float
        c.
    jitter : float
        sigma_J of GPLV.
    """

    median: float = 1.0
    spread: float = 1.0
    constant: float = 1.0
    jitter: float = 0.001

    def priors(self, key: str, dataset: str) -> dict[str, tuple[float, float]]:
        """Mean and SD of each kind of log hyperparameter of a model, for one data set.

        Examples
        --------
        >>> Beliefs().priors("std", "U1")
        {'signal_sd': (0.0, 1.0), 'length_scale': (-1.0, 1.0), 'noise_sd': (-1.0, 1.5)}
        """
        chosen = {"signal_sd": (0.0, 1.0), "length_scale": (LOG_INPUT_SCALE[dataset], 1.0)}
        if key == "gplc":
            chosen["latent_length_scale"] = (1.0, 1.0)
        if key != "gplv":
            chosen["noise_sd"] = (-1.0, 1.5)
        return {
            kind: (mean + math.log(self.median), sd * self.spread)
            for kind, (mean, sd) in chosen.items()
        }

    def model(self, key: str, dataset: str, X: Array, y: Array) -> Model:
        """The model of a data set under these beliefs."""
        kernel = SquaredExponential(constant=self.constant)
        settings: dict[str, Any] = {"jitter": self.jitter} if key == "gplv" else {}
        return MODELS[key](X, y, kernel=kernel, priors=self.priors(key, dataset), **settings)


@dataclass(frozen=True)
class Variant:
    """One way to settle what the paper leaves open.

    Parameters
    ----------
    beliefs : Beliefs
        Priors and c.
    length : float
        Factor on the number of iterations and of draws used for prediction.
    sampler : str
        Scheme: the paper's, or gplc's default.
    repeat : int
        Which chain: the same settings with other random numbers.
    """

    beliefs: Beliefs = Beliefs()
    length: float = 1.0
    sampler: str = "paper"
    repeat: int = 0


CHOSEN = Variant()

# Iterations when other choices are tried, as a part of those of the main experiment. Half are
# enough with the default schemes; the paper's would leave more Monte Carlo error than there are
# differences to see.
SHORT = 0.5

# Each open choice twice and half of what it is, and the other sigma_J of the samplers' comparison.
VARIANTS: Mapping[str, Variant] = {
    "as chosen": Variant(Beliefs(), SHORT, "default"),
    "the paper's samplers": CHOSEN,
    "another chain": Variant(Beliefs(), SHORT, "default", repeat=1),
    "prior medians doubled": Variant(Beliefs(median=2.0), SHORT, "default"),
    "prior medians halved": Variant(Beliefs(median=0.5), SHORT, "default"),
    "prior SDs doubled": Variant(Beliefs(spread=2.0), SHORT, "default"),
    "prior SDs halved": Variant(Beliefs(spread=0.5), SHORT, "default"),
    "c doubled": Variant(Beliefs(constant=2.0), SHORT, "default"),
    "c halved": Variant(Beliefs(constant=0.5), SHORT, "default"),
    "sigma_J 0.1": Variant(Beliefs(jitter=0.1), SHORT, "default"),
}


@dataclass(frozen=True)
class Settings:
    """Sizes and lengths of all experiments.

    Attributes
    ----------
    sets : int
        Training sets of each data set.
    n_train, n_test : int
        Cases in a training set, and in the one test set of a data set.
    iterations : mapping of str to int
        Iterations for each model; the first quarter is dropped.
    predictive_draws, nodes : int
        Draws used for prediction, evenly spaced, and values of w_* (z_*) for each.
    races : int
        Runs of each sampler of GPLV.
    race_iterations : mapping of str to int
        Iterations for each sampler, about the same CPU time for all; the first quarter tunes.
    jitters : mapping of float to float
        Values of sigma_J with which samplers are compared, and what part of these iterations.
    sensitivity_sets : int
        Training sets on which other beliefs are tried.
    seed : int
        All random numbers follow from it.
    quick : bool
        Whether this is only a look, too short to conclude anything from.
    """

    sets: int
    n_train: int
    n_test: int
    iterations: Mapping[str, int]
    predictive_draws: int
    nodes: int
    races: int
    race_iterations: Mapping[str, int]
    jitters: Mapping[float, float]
    sensitivity_sets: int
    seed: int = 2012
    quick: bool = False

    def changed(self, **changes: Any) -> "Settings":
        """The same with some entries changed."""
        return replace(self, **changes)


FULL = Settings(
    sets=10,
    n_train=100,
    n_test=5000,
    iterations={"std": 800, "gplc": 2400, "gplv": 1000},
    predictive_draws=300,
    nodes=3,
    races=5,
    race_iterations={
        "paper": 1000,
        "metropolis": 7000,
        "slice": 5500,
        "elliptical": 900,
        "default": 1000,
    },
    jitters={0.1: 1.0, 0.001: 0.2},
    sensitivity_sets=1,
)

QUICK = Settings(
    sets=2,
    n_train=100,
    n_test=1000,
    iterations={"std": 160, "gplc": 200, "gplv": 100},
    predictive_draws=60,
    nodes=3,
    races=2,
    race_iterations={
        "paper": 160,
        "metropolis": 1000,
        "slice": 800,
        "elliptical": 140,
        "default": 140,
    },
    jitters={0.1: 1.0, 0.001: 0.5},
    sensitivity_sets=1,
    quick=True,
)
