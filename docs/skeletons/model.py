"""A model of your own in one file: noise whose SD is proportional to the size of an input.

    y = f(x) + e,   f ~ GP(0, K),   e ~ N(0, rate^2 (x_1^2 + SMALLEST^2))

Once this file is imported, ``ProportionalGP`` is an estimator like the others, and the commands
and the tests that go over all models know ``prop``.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gplc.estimators import BaseGP
from gplc.models import Standard
from gplc.priors import LogNormal

SMALLEST = 0.05  # without it, a case at x_1 = 0 would be known exactly


@dataclass(frozen=True, eq=False)
class ProportionalNoise:
    """A kind of noise: what it learns, its variance, how that changes, and at new rows.

    Parameters
    ----------
    X : (n, p) array
        Inputs of the cases.
    """

    X: np.ndarray
    hyperparameters: ClassVar = {"noise_rate": LogNormal(-1.0, 1.0)}

    def variance(self, theta):
        """At the cases; theta is the log of the rate."""
        return self.at(theta, self.X)

    def gradient(self, theta, weights):
        """d/d theta of sum_i weights_i variance_i."""
        return np.array([2.0 * self.variance(theta) @ weights])

    def at(self, theta, X):
        """At any rows."""
        return np.exp(2.0 * theta[0]) * (X[:, 0] ** 2 + SMALLEST**2)


class Proportional(Standard):
    """STD with that noise."""

    key = "prop"
    title = "PROP"
    noise_summary = "Gaussian noise whose SD is proportional to an input"
    noise_varies = True
    noise_is_gaussian = True

    def _noise(self):
        return ProportionalNoise(self.X)


class ProportionalGP(BaseGP):
    """The estimator of it, with the settings that all have."""

    model_class = Proportional
