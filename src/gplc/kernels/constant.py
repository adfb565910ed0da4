"""A constant level."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gplc import _check
from gplc._types import Array
from gplc.kernels.base import Leaf, Pairs, shipped
from gplc.kernels.hyperparameters import Hyperparameter, Seen, Touches, default

__all__ = ["Constant"]


@shipped
@dataclass(frozen=True, repr=False)
class Constant(Leaf):
    """K = c^2: a level that is not known.

    Parameters
    ----------
    sd : float, optional
        c, the prior SD of the level; ``constant_sd``, learned, by default.

    Examples
    --------
    >>> import numpy as np
    >>> Constant(2.0).matrix(np.empty(0), np.zeros((1, 1)), np.zeros((2, 1))).tolist()
    [[4.0, 4.0]]
    """

    sd: float | None = None
    blind: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.sd is not None:
            _check.number("sd", self.sd, at_least=0.0, advice="None means that it is learned")

    def specify(self, seen: Seen) -> list[Hyperparameter]:
        """c, if it is not given."""
        return [default("constant_sd", Touches.SCALE)] if self.sd is None else []

    def inner(self, theta: Array, pairs: Pairs, n_latent: int) -> Array:
        """1, whatever the inputs."""
        return np.ones((1, 1))

    def scaled(self, theta: Array, unit: Array) -> Array:
        """c^2."""
        return unit * (math.exp(2.0 * theta[0]) if self.sd is None else self.sd**2)

    def gradient(
        self, theta: Array, pairs: Pairs, inner: Array, unit: Array, W: Array, weights: Array
    ) -> tuple[Array, Array]:
        """2 c^2 times the sum of weights."""
        by_sd = 2.0 * np.exp(2.0 * theta) * np.sum(weights)
        return by_sd, np.zeros(W.shape)
