"""Kernels that are functions of the differences between inputs."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from gplc import _check
from gplc._compiled import covariance
from gplc._types import Array
from gplc.kernels.base import Pairs, shipped
from gplc.kernels.hyperparameters import LatentMoves, Seen
from gplc.kernels.separable import Form
from gplc.kernels.shaped import Shaped
from gplc.kernels.shapes import Basis, Exponential, Matern, Rational, Shape, SquaredSine

__all__ = ["Matern32", "Matern52", "Periodic", "RationalQuadratic", "SquaredExponential"]


@shipped
@dataclass(frozen=True, repr=False)
class SquaredExponential(Shaped):
    """Squared exponential covariance with a constant, isotropic or ARD.

    K(x, x') = c^2 + eta^2 exp(-sum_k (x_k - x'_k)^2 / rho_k^2)

    with one rho for all inputs if `ard` is false. Note: the exponent has no factor 1/2, as in
    the paper; scikit-learn's length scale is rho / sqrt(2).

    Parameters
    ----------
    ard : bool
        Whether every input has a length scale of its own; a latent covariate always has.
    constant : float
        c, fixed: the prior SD of the overall level.
    sd : float, optional
        eta; ``signal_sd``, learned, by default.

    Examples
    --------
    >>> import numpy as np
    >>> kernel = SquaredExponential(ard=False, constant=0.0)
    >>> x = np.array([[0.0], [1.0]])
    >>> kernel.matrix(np.log([2.0, 1.0]), x, x).round(3).tolist()
    [[4.0, 1.472], [1.472, 4.0]]
    """

    ard: bool = True
    constant: float = 1.0
    sd: float | None = field(default=None, kw_only=True)
    phi: ClassVar[Shape] = Exponential()

    def __post_init__(self) -> None:
        super().__post_init__()
        _check.number("constant", self.constant, at_least=0.0, advice="1.0 suits standardized y")

    # The paper's kernel is the default: compiled, with half the exponentials where it is
    # symmetric.

    def inner(self, theta: Array, pairs: Pairs, n_latent: int) -> Array:
        """Correlation due to observed columns."""
        X, others, kept = pairs
        if X.shape[1] == 0 or others is None:
            return self._nothing
        weights = np.exp(self.sign * theta[self._n_scales : theta.size - n_latent])
        if kept is not None:
            return covariance.correlation(kept, weights)
        roots = np.sqrt(weights)
        return covariance.cross_covariance(
            np.ascontiguousarray(X * roots), np.ascontiguousarray((others * roots).T), 1.0, 0.0
        )

    def unit(self, theta: Array, inner: Array, pairs: Pairs, W: Array, W_other: Array) -> Array:
        """Correlation."""
        if len(W) == 0:
            return inner
        if W is not W_other or inner is self._nothing:
            return super().unit(theta, inner, pairs, W, W_other)
        for w, weight in zip(W, np.exp(self.sign * theta[-len(W) :]), strict=True):
            inner = covariance.times_latent_correlation(inner, w, weight)
        return inner

    def _form(self, weight: float, extra: float, offset: Array | None) -> Form:
        """exp(-weight (w - w')^2)."""
        return Form(decay=weight)

    def gradient(
        self, theta: Array, pairs: Pairs, inner: Array, unit: Array, W: Array, weights: Array
    ) -> tuple[Array, Array]:
        """The same sums as in general, in one pass over half the entries."""
        if unit.ndim != 2 or not unit.shape == weights.shape == pairs.kept.shape[1:]:
            return super().gradient(theta, pairs, inner, unit, W, weights)
        return covariance.correlation_gradient(
            pairs.kept, W, unit, weights, theta, self._n_scales, self._amplitude(theta)
        )


@shipped
@dataclass(frozen=True, repr=False)
class Matern32(Shaped):
    """Matern covariance with smoothness 3/2: functions with one derivative.

    K(x, x') = eta^2 (1 + sqrt(3) r) exp(-sqrt(3) r),   r^2 = sum_k (x_k - x'_k)^2 / rho_k^2

    Parameters
    ----------
    ard, sd
        As in `SquaredExponential`.

    Examples
    --------
    >>> import numpy as np
    >>> Matern32().matrix(np.zeros(2), np.zeros((1, 1)), np.ones((1, 1))).round(4)
    array([[0.4834]])
    """

    ard: bool = True
    sd: float | None = field(default=None, kw_only=True)
    phi: ClassVar[Shape] = Matern(1)


@shipped
@dataclass(frozen=True, repr=False)
class Matern52(Shaped):
    """Matern covariance with smoothness 5/2: functions with two derivatives.

    K(x, x') = eta^2 (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r), with r as in `Matern32`.

    Parameters
    ----------
    ard, sd
        As in `SquaredExponential`.

    Examples
    --------
    >>> import numpy as np
    >>> Matern52().matrix(np.zeros(2), np.zeros((1, 1)), np.ones((1, 1))).round(4)
    array([[0.524]])
    """

    ard: bool = True
    sd: float | None = field(default=None, kw_only=True)
    phi: ClassVar[Shape] = Matern(2)


@shipped
@dataclass(frozen=True, repr=False)
class RationalQuadratic(Shaped):
    """Rational quadratic covariance: a mixture of squared exponentials of many length scales.

    K(x, x') = eta^2 (1 + t / alpha)^-alpha,   t = sum_k (x_k - x'_k)^2 / rho_k^2

    which is the squared exponential as alpha goes to infinity.

    Parameters
    ----------
    ard, sd
        As in `SquaredExponential`.
    shape : float, optional
        alpha; ``shape``, learned, by default.

    Examples
    --------
    >>> import numpy as np
    >>> RationalQuadratic(shape=1.0).matrix(np.zeros(2), np.zeros((1, 1)), np.ones((1, 1)))
    array([[0.5]])
    """

    ard: bool = True
    sd: float | None = field(default=None, kw_only=True)
    shape: float | None = field(default=None, kw_only=True)
    phi: ClassVar[Shape] = Rational()
    extra: ClassVar[str] = "shape"


@shipped
@dataclass(frozen=True, repr=False)
class Periodic(Shaped):
    """Periodic covariance: the squared exponential of points on a circle, for each input.

    K(x, x') = eta^2 exp(-sum_k 4 sin^2(pi (x_k - x'_k) / period) / rho_k^2)

    2 sin(pi (x - x') / period) is the distance on a circle of radius 1; scikit-learn's length
    scale is rho / sqrt(2).

    Parameters
    ----------
    ard, sd
        As in `SquaredExponential`.
    period : float, optional
        In units of the inputs as the model sees them (standardized, in an estimator);
        ``period``, learned, by default.

    Examples
    --------
    >>> import numpy as np
    >>> kernel = Periodic(period=2.0)
    >>> kernel.matrix(np.zeros(2), np.zeros((1, 1)), np.array([[2.0], [4.0]])).round(12).tolist()
    [[1.0, 1.0]]
    """

    ard: bool = True
    sd: float | None = field(default=None, kw_only=True)
    period: float | None = field(default=None, kw_only=True)
    phi: ClassVar[Shape] = Exponential()
    basis: ClassVar[Basis] = SquaredSine()
    extra: ClassVar[str] = "period"

    def moves(self, seen: Seen, column: int) -> LatentMoves:
        """A change of scale is one of the period, which must belong to this column alone."""
        alone = self.period is None and not seen.observed and len(seen.latent) == 1
        place = len(self.specify(seen)) - 1
        return LatentMoves(shift=True, reflection=True, scale=((place, 1.0),) if alone else None)
