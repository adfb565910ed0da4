"""Priors of the hyperparameters: independent, Gaussian on their logarithms unless said otherwise.

The paper leaves its priors open ("typically independent Gaussian priors on the logarithm of each
hyperparameter"). The defaults below are round numbers for standardized X and y; they were
chosen once, before any test set was looked at. For several inputs the length scales have another
prior, chosen on other data (docs/priors.md).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import digamma, ndtri, polygamma

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


class Prior(ABC):
    """Prior of a positive quantity v, other than log-normal, through theta = log v.

    A family has the density of theta (that of v times v), its slope, and where most of it is:
    chains begin there, and samplers take steps of that size.
    """

    family: ClassVar[str]

    @property
    @abstractmethod
    def mean(self) -> float:
        """Mean of log v, or about."""

    @property
    @abstractmethod
    def sd(self) -> float:
        """SD of log v, or about."""

    @abstractmethod
    def log_density(self, theta: Array) -> Array:
        """Log density of theta, up to a constant."""

    @abstractmethod
    def slope(self, theta: Array) -> Array:
        """Its derivative."""

    def quantile(self, probability: float) -> float:
        """Quantile of v, from a fine grid of its logarithm."""
        grid, shares = self._grid()
        return math.exp(float(np.interp(probability, shares, grid)))

    def sample(self, rng: np.random.Generator) -> float:
        """A draw of theta."""
        grid, shares = self._grid()
        return float(np.interp(rng.random(), shares, grid))

    def _grid(self) -> tuple[Array, Array]:
        """Values of theta, and the share of the density below each."""
        reach = PRIOR_REACH * self.sd
        grid = np.linspace(self.mean - reach, self.mean + reach, GRID_POINTS)
        with np.errstate(all="ignore"):
            logs = np.nan_to_num(self.log_density(grid), nan=-np.inf)
            density = np.exp(logs - logs.max())
        # Each point stands in the middle of its cell.
        return grid, (np.cumsum(density) - 0.5 * density) / density.sum()

    def to_record(self) -> dict[str, Any]:
        """The family and its numbers, in JSON's terms."""
        return {"family": self.family, **{k: float(v) for k, v in vars(self).items()}}


# Points of the grid by which quantiles are found and draws made.
GRID_POINTS = 4001
# Half of the mean of log |Z|^2 of a standard normal Z, and its SD.
HALF_NORMAL_MEAN, HALF_NORMAL_SD = -0.6351814227307391, 1.1107207345395915


@dataclass(frozen=True)
class HalfNormal(Prior):
    """p(v) is proportional to exp(-v^2 / (2 scale^2)): small values are as likely as any.

    Parameters
    ----------
    scale : float
        Two thirds of the values are below.

    Examples
    --------
    >>> round(HalfNormal(2.0).quantile(0.95), 2)
    3.92
    """

    scale: float
    family: ClassVar[str] = "half-normal"

    def __post_init__(self) -> None:
        _check.number("scale", self.scale, above=0.0, advice="1.0 is the SD of y, or of an input")

    @property
    def mean(self) -> float:
        """Of log v."""
        return math.log(self.scale) + HALF_NORMAL_MEAN

    @property
    def sd(self) -> float:
        """Of log v."""
        return HALF_NORMAL_SD

    def log_density(self, theta: Array) -> Array:
        """Log v - v^2 / (2 scale^2)."""
        return theta - 0.5 * np.exp(2.0 * (theta - math.log(self.scale)))

    def slope(self, theta: Array) -> Array:
        """1 - v^2 / scale^2."""
        return 1.0 - np.exp(2.0 * (theta - math.log(self.scale)))


@dataclass(frozen=True)
class Gamma(Prior):
    """p(v) is proportional to v^(shape - 1) exp(-rate v).

    Parameters
    ----------
    shape, rate : float
        The mean is shape / rate.

    Examples
    --------
    >>> round(Gamma(2.0, 1.0).quantile(0.5), 2)
    1.68
    """

    shape: float
    rate: float
    family: ClassVar[str] = "gamma"

    def __post_init__(self) -> None:
        _check.number("shape", self.shape, above=0.0, advice="2.0 keeps values from zero")
        _check.number("rate", self.rate, above=0.0, advice="shape / rate is the mean")

    @property
    def mean(self) -> float:
        """Of log v."""
        return float(digamma(self.shape)) - math.log(self.rate)

    @property
    def sd(self) -> float:
        """Of log v."""
        return math.sqrt(float(polygamma(1, self.shape)))

    def log_density(self, theta: Array) -> Array:
        """Shape log v - rate v."""
        return self.shape * theta - self.rate * np.exp(theta)

    def slope(self, theta: Array) -> Array:
        """Shape - rate v."""
        return self.shape - self.rate * np.exp(theta)


@dataclass(frozen=True)
class InverseGamma(Prior):
    """p(v) is proportional to v^(-shape - 1) exp(-scale / v): hardly any mass near zero.

    For length scales, of which the data cannot tell those shorter than the gaps between rows.

    Parameters
    ----------
    shape, scale : float
        The mode is scale / (shape + 1).

    Examples
    --------
    >>> prior = InverseGamma(3.0, 2.0)
    >>> round(prior.quantile(0.01), 2), round(prior.quantile(0.99), 1)
    (0.24, 4.6)
    """

    shape: float
    scale: float
    family: ClassVar[str] = "inverse gamma"

    def __post_init__(self) -> None:
        _check.number("shape", self.shape, above=0.0, advice="3.0 has a long upper tail")
        _check.number("scale", self.scale, above=0.0, advice="scale / (shape + 1) is the mode")

    @property
    def mean(self) -> float:
        """Of log v."""
        return math.log(self.scale) - float(digamma(self.shape))

    @property
    def sd(self) -> float:
        """Of log v."""
        return math.sqrt(float(polygamma(1, self.shape)))

    def log_density(self, theta: Array) -> Array:
        """-shape log v - scale / v."""
        return -self.shape * theta - self.scale * np.exp(-theta)

    def slope(self, theta: Array) -> Array:
        """-shape + scale / v."""
        return -self.shape + self.scale * np.exp(-theta)


# A value that is held may move by so much, relative to itself: nobody can see it.
HELD = 1e-3


def fixed(value: float) -> LogNormal:
    """A prior that holds a hyperparameter at a value, to within a tenth of a percent.

    Examples
    --------
    >>> fixed(2.0).mean == math.log(2.0)
    True
    """
    _check.number("value", value, above=0.0, advice="give it in standard units")
    return LogNormal(math.log(value), HELD)


@dataclass(frozen=True)
class UserPrior(Prior):
    """Any density of your own.

    Parameters
    ----------
    log_p, gradient : callable
        log p(v) up to a constant, and its derivative by v, of arrays.
    median, factor : float
        About where it is: most of the values are between median / factor^2 and median factor^2.
        Beyond the fifth power nothing is looked at.

    Examples
    --------
    >>> cauchy = UserPrior(lambda v: -np.log1p(v**2), lambda v: -2 * v / (1 + v**2), 1.0, 3.0)
    >>> round(cauchy.quantile(0.5), 2)
    1.0
    """

    log_p: Callable[[Array], Array]
    gradient: Callable[[Array], Array]
    median: float
    factor: float
    family: ClassVar[str] = "your own"

    def __post_init__(self) -> None:
        if not (callable(self.log_p) and callable(self.gradient)):
            raise ValueError(
                f"log_p and gradient must be functions, got {_check.shown(self.log_p)} and "
                f"{_check.shown(self.gradient)}; both map an array of v to one of numbers"
            )
        _check.number("median", self.median, above=0.0, advice="about where the density is")
        _check.number("factor", self.factor, above=1.0, advice="3.0 is wide")
        at = self.mean + self.sd * np.linspace(-1.0, 1.0, 5)
        with np.errstate(all="ignore"):
            found = np.asarray(self.log_density(at), dtype=np.float64)
            step = 1e-5
            by_hand = (self.log_density(at + step) - self.log_density(at - step)) / (2.0 * step)
            slopes = np.asarray(self.slope(at), dtype=np.float64)
        if found.shape != at.shape or not np.isfinite(found).all():
            raise ValueError("log_p must be finite near the median; check median and log_p")
        if not np.allclose(slopes, by_hand, rtol=1e-3, atol=1e-4):
            raise ValueError(
                f"gradient is not that of log_p: at v = {math.exp(at[0]):.3g} it is "
                f"{slopes[0]:.4g} and differences give {by_hand[0]:.4g} (for log v); check it"
            )

    @property
    def mean(self) -> float:
        """Of log v, about."""
        return math.log(self.median)

    @property
    def sd(self) -> float:
        """Of log v, about."""
        return math.log(self.factor)

    def log_density(self, theta: Array) -> Array:
        """Log p(v) + log v."""
        return np.asarray(self.log_p(np.exp(theta)) + theta)

    def slope(self, theta: Array) -> Array:
        """V times the derivative, + 1."""
        v = np.exp(theta)
        return np.asarray(v * self.gradient(v) + 1.0)

    def to_record(self) -> dict[str, Any]:
        """There is none: functions are code."""
        raise ValueError(
            "a fit with a prior of your own cannot be saved, for files hold no code; keep "
            "draws_.to_arviz(), or use one of the families of gplc.priors"
        )


FAMILIES: Mapping[str, type[Prior]] = {
    each.family: each for each in (HalfNormal, Gamma, InverseGamma)
}
"""Priors that files know by name."""

PriorLike = Prior | Sequence[float]


def prior_record(prior: PriorLike) -> Any:
    """A prior in JSON's terms: its family and numbers, or mean and SD of the logarithm.

    Examples
    --------
    >>> prior_record(Gamma(2.0, 1.0)), prior_record((0.0, 1.0))
    ({'family': 'gamma', 'shape': 2.0, 'rate': 1.0}, [0.0, 1.0])
    """
    return prior.to_record() if isinstance(prior, Prior) else [float(value) for value in prior]


def prior_from_record(record: Any) -> PriorLike:
    """The prior that `prior_record` told."""
    if not isinstance(record, Mapping):
        return LogNormal(*record)
    settings = dict(record)
    return FAMILIES[settings.pop("family")](**settings)


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
    "level_sd": LogNormal(-0.5, 1.0),  # tau: levels differ by a part of the SD of y
    "level_distance": LogNormal(0.0, 1.5),  # delta: correlations of levels from 0.0 to 0.95
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
    """Independent priors on a vector theta of log hyperparameters.

    log p(theta) = sum_k log p_k(theta_k), each N(theta_k | mean_k, sd_k^2) or of another family

    Parameters
    ----------
    names : sequence of str
        Names of the hyperparameters, in the order of theta.
    overrides : mapping of str to (mean, sd) or Prior, optional
        Priors that replace the defaults. Keys are full names (``"length_scale[0]"``), names
        without an index (``"length_scale_z"``), or kinds (``"length_scale"``); the most
        specific one counts.
    defaults : mapping of str to LogNormal, optional
        Defaults by full name; those of `DEFAULTS`, by kind, are for names that are not here.

    Attributes
    ----------
    means, sds : (k,) array
        Of log hyperparameters; of other families about.
    others : dict of int to Prior
        Those that are not log-normal, by their place in theta.

    Examples
    --------
    >>> priors = LogPriors(["signal_sd", "noise_sd"], {"noise_sd": (0.0, 2.0)})
    >>> priors.means.tolist(), priors.sds.tolist()
    ([0.0, 0.0], [1.0, 2.0])
    >>> LogPriors(["noise_sd"], {"noise_sd": HalfNormal(1.0)}).quantile(0.5).round(2).tolist()
    [0.67]
    """

    def __init__(
        self,
        names: Sequence[str],
        overrides: Mapping[str, PriorLike] | None = None,
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
            if not isinstance(value, Prior):
                _check_gaussian(key, value)
        self.others: dict[int, Prior] = {}
        chosen: list[tuple[float, float]] = []
        for place, name in enumerate(names):
            found = next((key for key in keys_of(name) if key in overrides), None)
            prior: PriorLike
            if found:
                prior = overrides[found]
            else:
                prior = defaults[name] if name in defaults else DEFAULTS[kind(name)]
            if isinstance(prior, Prior):
                self.others[place] = prior
                chosen.append((prior.mean, prior.sd))
            else:
                chosen.append((float(prior[0]), float(prior[1])))
        self.names = tuple(names)
        self.means = np.array([mean for mean, _ in chosen])
        self.sds = np.array([sd for _, sd in chosen])
        reach = PRIOR_REACH * self.sds
        self.lowest = np.maximum(self.means - reach, -LOG_LIMIT)
        self.highest = np.minimum(self.means + reach, LOG_LIMIT)
        self._constant = -float(np.log(self.sds).sum()) - 0.5 * len(chosen) * math.log(2 * math.pi)

    def allows(self, theta: Array) -> bool:
        """Whether theta is where the prior has any mass worth the name, and can be computed."""
        return bool(((theta >= self.lowest) & (theta <= self.highest)).all())

    def log_density(self, theta: Array) -> float:
        """Log p(theta); of families other than the log-normal up to a constant."""
        gap = (theta - self.means) / self.sds
        density = self._constant - 0.5 * float(gap @ gap)
        for place in self.others:
            density += self.beyond_gaussian(place, float(theta[place]))
        return density

    def beyond_gaussian(self, index: int, value: float) -> float:
        """What the log density of theta[index] is more than N(mean, sd^2); 0 if that is it."""
        other = self.others.get(index)
        if other is None:
            return 0.0
        gap = (value - float(self.means[index])) / float(self.sds[index])
        found = float(other.log_density(np.asarray(value))) + 0.5 * gap * gap
        return found if math.isfinite(found) else -math.inf

    def slope_beyond_gaussian(self, index: int, value: float) -> float:
        """The derivative of `beyond_gaussian`."""
        other = self.others.get(index)
        if other is None:
            return 0.0
        pull = (value - float(self.means[index])) / float(self.sds[index]) ** 2
        return float(other.slope(np.asarray(value))) + pull

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
        return -0.5 * gap * gap + self.beyond_gaussian(index, value)

    def log_densities(self, theta: Array) -> Array:
        """Log density of every entry of theta (..., k), each up to a constant: (..., k)."""
        result = -0.5 * ((theta - self.means) / self.sds) ** 2
        for place, other in self.others.items():
            result[..., place] = other.log_density(theta[..., place])
        return np.asarray(result)

    def gradient(self, theta: Array) -> Array:
        """D log p(theta) / d theta."""
        slopes = (self.means - theta) / self.sds**2
        for place, other in self.others.items():
            slopes[place] = float(other.slope(np.asarray(theta[place])))
        return slopes

    def sample(self, rng: np.random.Generator) -> Array:
        """A draw of theta."""
        theta = self.means + self.sds * rng.standard_normal(self.means.size)
        for place, other in self.others.items():
            theta[place] = other.sample(rng)
        return theta

    def quantile(self, probability: float) -> Array:
        """Quantiles of the hyperparameters themselves, in standard units: (k,)."""
        found = np.exp(self.means + float(ndtri(probability)) * self.sds)
        for place, other in self.others.items():
            found[place] = other.quantile(probability)
        return found

    def families(self) -> list[str]:
        """What each is, in a word or two."""
        return [
            self.others[place].family
            if place in self.others
            else ("fixed" if self.sds[place] <= HELD else "log-normal")
            for place in range(len(self.names))
        ]


def _check_gaussian(key: str, value: Any) -> None:
    """Refuse what is no (mean, sd) of a logarithm."""
    if isinstance(value, str) or not hasattr(value, "__len__") or len(value) != 2:
        raise ValueError(
            f"priors[{key!r}] must be (mean, sd) of the logarithm, or one of gplc.priors, got "
            f"{_check.shown(value)}; give two numbers, or HalfNormal(1.0)"
        )
    _check.number(
        f"priors[{key!r}] mean",
        value[0],
        at_least=-LOG_LIMIT,
        at_most=LOG_LIMIT,
        advice="give that of the logarithm",
    )
    _check.number(f"priors[{key!r}] sd", value[1], above=0.0, at_most=LOG_LIMIT, advice="try 1.0")
