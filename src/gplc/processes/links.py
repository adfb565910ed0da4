"""Noise whose SD is a function of a latent value of each case: the link."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from gplc._compiled import variance_sweep
from gplc._types import Array
from gplc.priors import DEFAULTS, LogNormal


class Link(NamedTuple):
    """How a value z of the secondary process gives the SD of the noise.

    `log_weights` are those of the link's own hyperparameters, empty for most links.
    """

    name: str
    code: int | None  # for the compiled sweeps; None if they do not know it
    variance: Callable[..., Array]  # of z and log_weights
    derivative: Callable[..., Array]  # of the variance, by z
    n_weights: int = 0
    by_weights: Callable[..., Array] | None = None  # derivative by log_weights: (n_weights, n)

    @property
    def hyperparameters(self) -> Mapping[str, LogNormal]:
        """Names and default priors of the weights."""
        return {f"link_weight[{k}]": DEFAULTS["link_weight"] for k in range(self.n_weights)}


def _exp_variance(z: Array, log_weights: Array | None = None) -> Array:
    return np.exp(np.minimum(2.0 * z, 700.0))


def _exp_derivative(z: Array, log_weights: Array | None = None) -> Array:
    return 2.0 * _exp_variance(z)


def _square(z: Array, log_weights: Array | None = None) -> Array:
    return np.square(z)


def _square_derivative(z: Array, log_weights: Array | None = None) -> Array:
    return 2.0 * z


# A learned link is sum_k a_k log(1 + exp(z - knot_k)), a_k > 0: smooth, positive and rising.
KNOTS = np.array([-2.0, 0.0, 2.0])


def _softplus_parts(z: Array, log_weights: Array) -> Array:
    """a_k log(1 + exp(z - knot_k)), for each k along a new last axis."""
    return np.exp(log_weights) * np.logaddexp(0.0, z[..., None] - KNOTS)


def _softplus_variance(z: Array, log_weights: Array) -> Array:
    return _softplus_parts(z, log_weights).sum(axis=-1) ** 2


def _softplus_derivative(z: Array, log_weights: Array) -> Array:
    sd = _softplus_parts(z, log_weights).sum(axis=-1)
    slope = expit(z[..., None] - KNOTS) @ np.exp(log_weights)
    return 2.0 * sd * slope


def _softplus_by_weights(z: Array, log_weights: Array) -> Array:
    parts = _softplus_parts(z, log_weights)
    return 2.0 * parts.sum(axis=-1) * parts.T


# Functions with names, not lambdas: a model can be pickled.
LINKS: Mapping[str, Link] = {
    "log": Link("log", variance_sweep.LOG_LINK, _exp_variance, _exp_derivative),
    "abs": Link("abs", variance_sweep.ABS_LINK, _square, _square_derivative),
    "learned": Link(
        "learned",
        None,
        _softplus_variance,
        _softplus_derivative,
        len(KNOTS),
        _softplus_by_weights,
    ),
}


@dataclass(frozen=True, eq=False)
class LinkedNoise:
    """The variance that a link gives to latent values z.

    Parameters
    ----------
    link : Link
    z : array
        A value for each case.

    Examples
    --------
    >>> import numpy as np
    >>> LinkedNoise(LINKS["abs"], np.array([0.5, -2.0])).variance(np.empty(0)).tolist()
    [0.25, 4.0]
    """

    link: Link
    z: Array

    @property
    def hyperparameters(self) -> Mapping[str, LogNormal]:
        """The weights of the link."""
        return self.link.hyperparameters

    def variance(self, theta: Array) -> Array:
        """SD^2 at every z."""
        return self.link.variance(self.z, theta)

    def gradient(self, theta: Array, weights: Array) -> Array:
        """By the weights of the link."""
        if self.link.by_weights is None:
            return np.empty(0)
        return self.link.by_weights(self.z, theta) @ weights

    def slope(self, theta: Array) -> Array:
        """Derivative of the variance by each z."""
        return self.link.derivative(self.z, theta)

    def at(self, theta: Array, X: Array) -> Array:
        """A new case has a z of its own: ask for the variance there."""
        raise TypeError("the noise of a new case depends on its z: ask LinkedNoise(link, z)")
