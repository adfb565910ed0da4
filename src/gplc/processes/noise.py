"""Gaussian noise, independent between cases: what is added to the diagonal of a covariance.

A kind of noise is a value with four answers: what it learns, the variance at the cases, how a
function of these variances changes with what it learns, and the variance of a new case. Sums of
noises are noises: known errors of measurement and a part that is learned, for example.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from gplc import _check
from gplc._types import Array
from gplc.priors import DEFAULTS, LogNormal


class Noise(Protocol):
    """The variance of independent Gaussian noise, as a function of its hyperparameters.

    `theta` is always the noise's own part of the vector of log hyperparameters.
    """

    @property
    def hyperparameters(self) -> Mapping[str, LogNormal]:
        """Names and default priors of what it learns, in the order of theta."""

    def variance(self, theta: Array) -> float | Array:
        """The variance at the cases: one number for all, or (n,)."""

    def gradient(self, theta: Array, weights: Array) -> Array:
        """d/d theta of sum_i weights_i variance_i, for weights (n,): (k,)."""

    def at(self, theta: Array, X: Array) -> float | Array:
        """The variance of a new case at each row of X: one number for all, or (rows,)."""


@dataclass(frozen=True)
class LearnedNoise:
    """sigma^2, the same everywhere; sigma is learned.

    Parameters
    ----------
    name : str
        Of sigma.
    prior : LogNormal
        Of sigma.

    Examples
    --------
    >>> import numpy as np
    >>> noise = LearnedNoise()
    >>> list(noise.hyperparameters), round(noise.variance(np.log([0.5])), 12)
    (['noise_sd'], 0.25)
    """

    name: str = "noise_sd"
    prior: LogNormal = DEFAULTS["noise_sd"]

    @property
    def hyperparameters(self) -> Mapping[str, LogNormal]:
        """Sigma."""
        return {self.name: self.prior}

    def variance(self, theta: Array) -> float:
        """sigma^2."""
        return math.exp(2.0 * theta[0])

    def gradient(self, theta: Array, weights: Array) -> Array:
        """2 sigma^2 times the sum of the weights."""
        return np.array([2.0 * self.variance(theta) * weights.sum()])

    def at(self, theta: Array, X: Array) -> float:
        """sigma^2."""
        return self.variance(theta)


@dataclass(frozen=True)
class FixedNoise:
    """A variance that is given, the same everywhere.

    Parameters
    ----------
    sd : float
        Its root.

    Examples
    --------
    >>> import numpy as np
    >>> FixedNoise(0.5).variance(np.empty(0))
    0.25
    """

    sd: float

    @property
    def hyperparameters(self) -> Mapping[str, LogNormal]:
        """Nothing is learned."""
        return {}

    def variance(self, theta: Array) -> float:
        """The square of the SD."""
        return self.sd**2

    def gradient(self, theta: Array, weights: Array) -> Array:
        """Nothing to change."""
        return np.empty(0)

    def at(self, theta: Array, X: Array) -> float:
        """The square of the SD."""
        return self.variance(theta)


@dataclass(frozen=True, eq=False)
class KnownNoise:
    """A variance that is known for each case, as that of a calibrated instrument.

    Parameters
    ----------
    sds : (n,) array-like
        SDs at the cases, none negative.
    new_sd : float
        SD of a new case: zero for the quantity itself, without the instrument's error.

    Examples
    --------
    >>> import numpy as np
    >>> KnownNoise([0.5, 1.0]).variance(np.empty(0)).tolist()
    [0.25, 1.0]
    """

    sds: Array
    new_sd: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        sds = _check.finite_array("sds", self.sds, 1)
        if (sds < 0.0).any():
            row = int(np.argmax(sds < 0.0))
            raise ValueError(
                f"sds must not be negative, got {sds[row]} at index {row}; give SDs, not their "
                "logs"
            )
        object.__setattr__(self, "sds", sds)

    @property
    def hyperparameters(self) -> Mapping[str, LogNormal]:
        """Nothing is learned."""
        return {}

    def variance(self, theta: Array) -> Array:
        """The squares of the SDs."""
        return self.sds**2

    def gradient(self, theta: Array, weights: Array) -> Array:
        """Nothing to change."""
        return np.empty(0)

    def at(self, theta: Array, X: Array) -> float:
        """That of a new case, the same wherever it is."""
        return self.new_sd**2


@dataclass(frozen=True)
class SumNoise:
    """The sum of independent noises.

    Parameters
    ----------
    parts : tuple of Noise

    Examples
    --------
    >>> import numpy as np
    >>> both = SumNoise((KnownNoise([0.5, 1.0]), LearnedNoise()))
    >>> both.variance(np.zeros(1)).tolist()
    [1.25, 2.0]
    """

    parts: tuple[Noise, ...]

    @property
    def hyperparameters(self) -> Mapping[str, LogNormal]:
        """Those of all parts."""
        return {name: prior for part in self.parts for name, prior in part.hyperparameters.items()}

    def _each(self, theta: Array) -> list[tuple[Noise, Array]]:
        """Every part with its own stretch of theta."""
        result, first = [], 0
        for part in self.parts:
            last = first + len(part.hyperparameters)
            result.append((part, theta[first:last]))
            first = last
        return result

    def variance(self, theta: Array) -> float | Array:
        """The sum of their variances."""
        return sum(part.variance(own) for part, own in self._each(theta))

    def gradient(self, theta: Array, weights: Array) -> Array:
        """The gradients one after the other."""
        return np.concatenate([part.gradient(own, weights) for part, own in self._each(theta)])

    def at(self, theta: Array, X: Array) -> float | Array:
        """The sum of their variances."""
        return sum(part.at(own, X) for part, own in self._each(theta))
