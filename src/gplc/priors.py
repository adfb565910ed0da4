"""Priors of the hyperparameters: independent Gaussians on their logarithms.

The paper leaves its priors open ("typically independent Gaussian priors on the logarithm of each
hyperparameter"). The defaults below are round numbers for standardized X and y; they were
chosen once, before any test set was looked at. For several inputs the length scales have another
prior, chosen on other data (docs/priors.md).
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gplc import _check
from gplc._types import Array

# Ten prior SDs from the mean the prior has 1e-23 of its mass left: taken to be none. A chain that
# begins far from the data would try such places, where nothing can be computed any more.
PRIOR_REACH = 10.0
# Beyond exp(+-50) a hyperparameter can only overflow, whatever its prior.
LOG_LIMIT = 50.0


class LogNormal(NamedTuple):
    """Prior of a positive quantity whose logarithm is N(mean, sd^2).

    Examples
    --------
    >>> LogNormal(mean=0.0, sd=1.0)
    LogNormal(mean=0.0, sd=1.0)
    """

    mean: float
    sd: float


# One row per kind of hyperparameter; a name with an index or a suffix takes the row of its kind.
DEFAULTS: Mapping[str, LogNormal] = {
    "signal_sd": LogNormal(0.0, 1.0),  # eta: standardized y has SD 1
    "length_scale": LogNormal(0.0, 1.0),  # rho_k: standardized x has SD 1; of one input
    "latent_length_scale": LogNormal(1.0, 1.0),  # rho_{p+1}: w has SD 1, and g is smooth in it
    "noise_sd": LogNormal(-1.0, 1.5),  # sigma: a part of the SD of y, from a percent to all of it
    "constant_sd": LogNormal(0.0, 1.0),  # c: the level of standardized y
    "slope_sd": LogNormal(-1.0, 1.0),  # gamma_k: standardized y changes by less than x does
    "latent_slope_sd": LogNormal(-1.0, 1.5),  # gamma_{p+1}: has the part of noise_sd
    "step_sd": LogNormal(-1.0, 1.0),  # half of what y changes by where an input passes zero
    "latent_step_sd": LogNormal(-1.0, 1.5),  # half of the distance of two branches
    "shape": LogNormal(0.0, 1.0),  # alpha: length scales within a factor of about three
    "period": LogNormal(0.0, 1.0),  # standardized x spans about 3.5
    "link_weight": LogNormal(-1.5, 1.0),  # of each part of a learned SD, three to a sum
}


# Of several inputs some may not matter, which is to say that their length scales are long.
LENGTH_SCALE_SD = 1.5


def default_prior(name: str, inputs: int = 1) -> LogNormal:
    """The default prior of a hyperparameter, in a kernel that sees so many inputs.

    Squared distances of p inputs add up. So that rows are as much related whatever p is, the
    median of each length scale is sqrt(p) SDs of its input; see docs/priors.md.

    Parameters
    ----------
    name : str
    inputs : int
        p, not counting latent ones.

    Returns
    -------
    LogNormal

    Examples
    --------
    >>> default_prior("length_scale[0]", inputs=9)
    LogNormal(mean=1.0986122886681098, sd=1.5)
    >>> default_prior("length_scale"), default_prior("noise_sd", inputs=9)
    (LogNormal(mean=0.0, sd=1.0), LogNormal(mean=-1.0, sd=1.5))
    """
    prior = DEFAULTS[kind(name)]
    if inputs > 1 and kind(name) == "length_scale":
        return LogNormal(prior.mean + 0.5 * math.log(inputs), LENGTH_SCALE_SD)
    return prior


def kind(name: str) -> str:
    """The kind of a hyperparameter: its name without label, suffix and index.

    Examples
    --------
    >>> kind("slow.length_scale_z[2]")
    'length_scale'
    """
    stem = name.split("[")[0].rpartition(".")[2]
    return stem.removesuffix("_y").removesuffix("_z")


def keys_of(name: str) -> tuple[str, str, str]:
    """What a prior of a hyperparameter can be given under, the most specific first.

    Examples
    --------
    >>> keys_of("length_scale_z[2]")
    ('length_scale_z[2]', 'length_scale_z', 'length_scale')
    """
    return name, name.split("[")[0], kind(name)


class LogPriors:
    """Independent Gaussian priors on a vector theta of log hyperparameters.

    log p(theta) = sum_k log N(theta_k | mean_k, sd_k^2)

    Parameters
    ----------
    names : sequence of str
        Names of the hyperparameters, in the order of theta.
    overrides : mapping of str to (mean, sd), optional
        Priors that replace the defaults. Keys are full names (``"length_scale[0]"``), names
        without an index (``"length_scale_z"``), or kinds (``"length_scale"``); the most
        specific one counts.
    defaults : mapping of str to LogNormal, optional
        Defaults by full name; those of `DEFAULTS`, by kind, are for names that are not here.

    Examples
    --------
    >>> priors = LogPriors(["signal_sd", "noise_sd"], {"noise_sd": (0.0, 2.0)})
    >>> priors.means.tolist(), priors.sds.tolist()
    ([0.0, 0.0], [1.0, 2.0])
    """

    def __init__(
        self,
        names: Sequence[str],
        overrides: Mapping[str, Sequence[float]] | None = None,
        defaults: Mapping[str, LogNormal] | None = None,
    ) -> None:
        overrides = dict(overrides or {})
        defaults = dict(defaults or {})
        known = {key for name in names for key in keys_of(name)}
        for key, value in overrides.items():
            if key not in known:
                raise ValueError(
                    f"priors has no hyperparameter {_check.shown(key)}; this model has "
                    f"{sorted(known)}"
                )
            if isinstance(value, str) or not hasattr(value, "__len__") or len(value) != 2:
                raise ValueError(
                    f"priors[{key!r}] must be (mean, sd) of the logarithm, got "
                    f"{_check.shown(value)}; give two numbers"
                )
            _check.number(
                f"priors[{key!r}] mean",
                value[0],
                at_least=-LOG_LIMIT,
                at_most=LOG_LIMIT,
                advice="give that of the logarithm",
            )
            _check.number(
                f"priors[{key!r}] sd", value[1], above=0.0, at_most=LOG_LIMIT, advice="try 1.0"
            )
        chosen = []
        for name in names:
            found = next((key for key in keys_of(name) if key in overrides), None)
            if found:
                chosen.append(overrides[found])
            else:
                chosen.append(defaults[name] if name in defaults else DEFAULTS[kind(name)])
        self.names = tuple(names)
        self.means = np.array([float(mean) for mean, _ in chosen])
        self.sds = np.array([float(sd) for _, sd in chosen])
        reach = PRIOR_REACH * self.sds
        self.lowest = np.maximum(self.means - reach, -LOG_LIMIT)
        self.highest = np.minimum(self.means + reach, LOG_LIMIT)
        self._constant = -float(np.log(self.sds).sum()) - 0.5 * len(chosen) * math.log(2 * math.pi)

    def allows(self, theta: Array) -> bool:
        """Whether theta is where the prior has any mass worth the name, and can be computed."""
        return bool(((theta >= self.lowest) & (theta <= self.highest)).all())

    def log_density(self, theta: Array) -> float:
        """Log p(theta)."""
        gap = (theta - self.means) / self.sds
        return self._constant - 0.5 * float(gap @ gap)

    def log_density_of(self, index: int, value: float) -> float:
        """Log p(theta) as a function of one of its entries, up to a constant; -inf if not allowed.

        Examples
        --------
        >>> LogPriors(["signal_sd"]).log_density_of(0, 2.0)
        -2.0
        """
        if not self.lowest[index] <= value <= self.highest[index]:
            return -math.inf
        gap = (value - float(self.means[index])) / float(self.sds[index])
        return -0.5 * gap * gap

    def gradient(self, theta: Array) -> Array:
        """D log p(theta) / d theta."""
        return (self.means - theta) / self.sds**2

    def sample(self, rng: np.random.Generator) -> Array:
        """A draw of theta."""
        return self.means + self.sds * rng.standard_normal(self.means.size)
