"""Kernels of functions with few coefficients: levels, lines and steps."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from gplc import _check
from gplc._types import Array
from gplc.kernels.base import Leaf, Pairs, shipped
from gplc.kernels.hyperparameters import Hyperparameter, LatentMoves, Seen, Touches, default
from gplc.kernels.shaped import Numbers, Shaped
from gplc.kernels.shapes import Basis, Identity, Shape, Sides, Times

__all__ = ["Constant", "Linear", "Sign"]


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
            _check.number(
                "sd",
                self.sd,
                at_least=0.0,
                at_most=_check.LARGEST_SD,
                advice="None means that it is learned",
            )

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


@shipped
@dataclass(frozen=True, repr=False)
class Linear(Shaped):
    """Linear covariance through the origin: K(x, x') = sum_k gamma_k^2 x_k x'_k.

    Add `Constant` for a line with an intercept. On a latent covariate, with ``sd=1.0``, it is
    w w', which turns another kernel K_2(x, x') into the covariance of w h(x), h ~ GP(0, K_2).

    Parameters
    ----------
    ard : bool
        Whether every input has a gamma of its own; a latent covariate always has.
    sd : float, optional
        gamma, for all inputs; ``slope_sd``, learned, by default.

    Examples
    --------
    >>> import numpy as np
    >>> Linear(sd=2.0).matrix(np.empty(0), np.array([[3.0]]), np.array([[1.0], [-1.0]])).tolist()
    [[12.0, -12.0]]
    """

    ard: bool = True
    sd: float | None = field(default=None, kw_only=True)
    phi: ClassVar[Shape] = Identity()
    basis: ClassVar[Basis] = Times()
    sign: ClassVar[float] = 2.0
    learns: ClassVar[str] = "slope_sd"

    # sd is gamma here, which is an s and not an eta.

    @property
    def _n_scales(self) -> int:
        return 0

    def _amplitude(self, theta: Array) -> float:
        return 1.0

    def _numbers(self, theta: Array, n_latent: int) -> Numbers:
        if self.sd is None:
            return super()._numbers(theta, n_latent)
        return Numbers(1.0, np.array([self.sd**2]), np.full(n_latent, self.sd**2), 0.0)

    def _pooled(self, each: Array) -> Array:
        shared = (not self.ard or self.sd is not None) and len(each)
        return each.sum(axis=0, keepdims=True) if shared else each

    def specify(self, seen: Seen) -> list[Hyperparameter]:
        """Every gamma."""
        return seen.names(self.learns, self.ard, Touches.INPUTS) if self.sd is None else []

    def moves(self, seen: Seen, column: int) -> LatentMoves:
        """A scale of w is one of gamma."""
        scale = ((self._latent_place(seen, column), -1.0),) if self.sd is None else None
        return LatentMoves(reflection=True, scale=scale)

    def exchanged(self, seen: Seen, first: int, second: int) -> tuple[int, int] | None:
        """The two slopes; none that are given."""
        return super().exchanged(seen, first, second) if self.sd is None else (0, 0)

    def gradient(
        self, theta: Array, pairs: Pairs, inner: Array, unit: Array, W: Array, weights: Array
    ) -> tuple[Array, Array]:
        """By the chain rule, or by w alone if gamma is given."""
        if self.sd is None:
            return super().gradient(theta, pairs, inner, unit, W, weights)
        return np.empty(0), 2.0 * self.sd**2 * (W @ weights)


@shipped
@dataclass(frozen=True, repr=False)
class Sign(Linear):
    """A step at zero: K(x, x') = sum_k gamma_k^2 s(x_k) s(x'_k), s(x) = -1 if x < 0, else 1.

    On a latent covariate, with ``sd=1.0``, it turns another kernel K_2(x, x') into the covariance
    of s(w) h(x), h ~ GP(0, K_2): two branches, h above and below what else there is, of which
    each case takes one at random.

    Parameters
    ----------
    ard : bool
        Whether every input has a gamma of its own; a latent covariate always has.
    sd : float, optional
        gamma, for all inputs; ``step_sd``, learned, by default.

    Examples
    --------
    >>> import numpy as np
    >>> Sign(sd=2.0).matrix(np.empty(0), np.array([[3.0]]), np.array([[1.0], [-1.0]])).tolist()
    [[4.0, -4.0]]
    """

    basis: ClassVar[Basis] = Sides()
    learns: ClassVar[str] = "step_sd"

    def moves(self, seen: Seen, column: int) -> LatentMoves:
        """Of w only the sign counts."""
        return LatentMoves(reflection=True, scale=())

    def gradient(
        self, theta: Array, pairs: Pairs, inner: Array, unit: Array, W: Array, weights: Array
    ) -> tuple[Array, Array]:
        """By gamma, if it is learned."""
        by_theta, _ = super().gradient(theta, pairs, inner, unit, W, weights)
        return by_theta, np.zeros(W.shape)
