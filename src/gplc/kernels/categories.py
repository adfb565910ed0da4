"""Kernels of columns that hold levels, as numbers 0, 1, ...: groups, kinds, grades."""

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from gplc import _check
from gplc._types import Array
from gplc.kernels.base import Leaf, Pairs, shipped
from gplc.kernels.hyperparameters import Hyperparameter, Seen, Touches, default

__all__ = ["Category", "Ordinal"]


@dataclass(frozen=True, repr=False)
class _Levels(Leaf):
    """K(a, b) = tau^2 exp(-delta gap(a, b)), or tau^2 1[gap = 0] without a delta."""

    sd: float | None = field(default=None, kw_only=True)
    of_levels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.sd is not None:
            learned = "None means that it is learned"
            _check.number("sd", self.sd, at_least=0.0, at_most=_check.LARGEST_SD, advice=learned)

    @property
    @abstractmethod
    def has_distance(self) -> bool:
        """Whether there is a delta."""

    @abstractmethod
    def _gaps(self, a: Array, b: Array) -> Array:
        """How far levels are apart."""

    def specify(self, seen: Seen) -> list[Hyperparameter]:
        """Tau, then every delta."""
        places = [f"[{k}]" if seen.n_observed > 1 else "" for k in seen.observed]
        own = places[0] if len(places) == 1 else ""
        found = [default(f"level_sd{own}", Touches.SCALE)] if self.sd is None else []
        if self.has_distance:
            found += [default(f"level_distance{place}") for place in places]
        return found

    def bases(self, X: Array, others: Array) -> Array:
        """How far the levels of every column are apart: (p, n, m)."""
        return self._gaps(X.T[:, :, None], others.T[:, None, :])

    def inner(self, theta: Array, pairs: Pairs, n_latent: int) -> Array:
        """The kernel without tau."""
        X, others, kept = pairs
        if others is None:  # a level with itself
            return np.ones((1, 1))
        gaps = self.bases(X, others) if kept is None else kept
        if not self.has_distance:
            return (gaps.sum(axis=0) == 0.0).astype(np.float64)
        return np.exp(-np.tensordot(np.exp(theta[theta.size - len(gaps) :]), gaps, 1))

    def scaled(self, theta: Array, unit: Array) -> Array:
        """tau^2 times that."""
        return unit * self._amplitude(theta)

    def _amplitude(self, theta: Array) -> float:
        return math.exp(2.0 * theta[0]) if self.sd is None else self.sd**2

    def gradient(
        self, theta: Array, pairs: Pairs, inner: Array, unit: Array, W: Array, weights: Array
    ) -> tuple[Array, Array]:
        """2 K by log tau, -delta gap K by log delta."""
        weighted = weights * unit * self._amplitude(theta)
        by_theta = [2.0 * np.sum(weighted)] if self.sd is None else []
        if self.has_distance:
            gaps = pairs.kept if pairs.kept is not None else self.bases(pairs.X, pairs.X)
            deltas = np.exp(theta[theta.size - len(gaps) :])
            by_theta += list(-deltas * np.tensordot(gaps, weighted, 2))
        return np.array(by_theta), np.zeros(W.shape)


@shipped
@dataclass(frozen=True, repr=False)
class Category(_Levels):
    """Levels without an order: each has a deviation of its own, and all of them one scale.

    K(a, b) = tau^2 1[a = b],   or, correlated,   K(a, b) = tau^2 exp(-delta 1[a != b])

    Added to another kernel, it lets every level have an offset of its own. Correlated, with
    ``sd=1.0``, and multiplied by a kernel of x (and w), it lets the whole function, and in GPLC
    the noise, differ between levels: exp(-delta) is the correlation of the functions of two
    levels. Of several columns all must be equal for a = b; correlated, each has a delta.

    Parameters
    ----------
    sd : float, optional
        tau; ``level_sd``, learned, by default.
    correlated : bool
        Whether levels are alike, by a ``level_distance`` delta that is learned.

    Examples
    --------
    >>> import numpy as np
    >>> codes = np.array([[0.0], [1.0]])
    >>> Category().matrix(np.log([2.0]), codes, codes).tolist()
    [[4.0, 0.0], [0.0, 4.0]]
    >>> Category(sd=1.0, correlated=True).matrix(np.log([1.0]), codes, codes).round(3).tolist()
    [[1.0, 0.368], [0.368, 1.0]]
    """

    correlated: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.correlated, bool | np.bool_):
            raise ValueError(
                f"correlated must be True or False, got {_check.shown(self.correlated)}"
            )

    @property
    def has_distance(self) -> bool:
        """As it is set."""
        return self.correlated

    def _gaps(self, a: Array, b: Array) -> Array:
        """1 between levels that differ."""
        return (a != b).astype(np.float64)


@shipped
@dataclass(frozen=True, repr=False)
class Ordinal(_Levels):
    """Levels in an order: neighbours are more alike than others.

    K(a, b) = tau^2 exp(-delta |a - b|),   a and b being the numbers of the levels

    Parameters
    ----------
    sd : float, optional
        tau; ``level_sd``, learned, by default.

    Examples
    --------
    >>> import numpy as np
    >>> codes = np.array([[0.0], [1.0], [2.0]])
    >>> Ordinal(sd=1.0).matrix(np.log([0.5]), codes[:1], codes).round(3).tolist()
    [[1.0, 0.607, 0.368]]
    """

    @property
    def has_distance(self) -> bool:
        """Always."""
        return True

    def _gaps(self, a: Array, b: Array) -> Array:
        """How many steps."""
        return np.abs(a - b)
