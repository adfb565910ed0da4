"""The covariance functions that come with the package.

All but `Constant` have one form. With b_k a simple function of input k of two cases,

    K = c^2 + eta^2 phi(t),   t = sum_k s_k b_k,

and only phi, b and what is learned differ. Length scales are in the paper's convention: what is
squared is (x - x') / rho, without a factor 1/2.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gplc import _check
from gplc._compiled import covariance
from gplc._compiled.covariate_sweep import (
    EXP_GAP,
    EXP_SINE,
    MATERN32,
    MATERN52,
    PRODUCT,
    RATIONAL,
    SIDES,
)
from gplc.kernels.base import (
    Hyperparameter,
    LatentMoves,
    Leaf,
    Seen,
    Separated,
    Site,
    Touches,
    default,
)

Array = NDArray[np.float64]

ONE: Array = np.ones((1, 1))
ZERO: Array = np.zeros((1, 1))


def _check_sd(sd: float | None) -> None:
    if sd is not None:
        _check.number("sd", sd, at_least=0.0, advice="None means that it is learned")


def _check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}")


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
        _check_sd(self.sd)

    def specify(self, seen: Seen) -> list[Hyperparameter]:
        """c, if it is not given."""
        return [default("constant_sd", Touches.SCALE)] if self.sd is None else []

    def bases(self, X: Array, X_other: Array) -> None:
        """Nothing."""

    def inner(self, theta: Array, bases: Any, n_latent: int) -> Array:
        """1, whatever the inputs."""
        return ONE

    def inner_between(self, theta: Array, X: Array, X_other: Array, n_latent: int) -> Array:
        """1, whatever the inputs."""
        return ONE

    def scaled(self, theta: Array, unit: Array) -> Array:
        """c^2."""
        return unit * (math.exp(2.0 * theta[0]) if self.sd is None else self.sd**2)

    def split(
        self, theta: Array, inner: Array, W: Array, W_other: Array
    ) -> list[Separated] | None:
        """c^2."""
        return [(self.scaled(theta, inner), None)]

    def at_rows(self, theta: Array, X: Array, W: Array) -> Array:
        """c^2."""
        return self.scaled(theta, np.ones((1, W.shape[1], W.shape[1])))

    def gradient(
        self, theta: Array, bases: Any, inner: Array, unit: Array, W: Array, weights: Array
    ) -> tuple[Array, Array]:
        """2 c^2 times the sum of weights."""
        by_sd = 2.0 * np.exp(2.0 * theta) * np.sum(weights)
        return by_sd, np.zeros(W.shape)


class Shaped(Leaf):
    """c^2 + eta^2 phi(t): what built-in kernels share; see the docstring of the module.

    theta holds what `_split` says: perhaps the amplitude, the scales of observed columns, those of
    latent ones, and perhaps one number that shapes phi or b.
    """

    code: ClassVar[int]  # of phi and b, in the compiled sweep
    sign: ClassVar[float] = -2.0  # s = exp(sign theta): a length scale divides, a slope multiplies
    multiplies: ClassVar[bool] = False  # phi(t + u) = phi(t) phi(u)
    zero: ClassVar[Array] = ZERO  # what `inner` is without observed columns
    ard: bool
    sd: float | None
    constant: float = 0.0

    @property
    def n_extra(self) -> int:
        """Learned numbers that shape phi or b: 0 or 1."""
        return 0

    def extra(self, theta: Array) -> float:
        """The number that shapes phi or b."""
        return 0.0

    @abstractmethod
    def phi(self, t: Array, extra: float) -> Array:
        """phi(t)."""

    @abstractmethod
    def slope(self, t: Array, unit: Array, extra: float) -> Array:
        """Derivative of phi at t, where it is `unit`."""

    @abstractmethod
    def by_extra(self, t: Array, unit: Array, extra: float) -> Array | float:
        """Derivative of phi by log extra."""

    def basis(self, a: Array, b: Array, extra: float) -> Array:
        """b_k, of entries of one column, which broadcast."""
        return (a - b) ** 2

    def basis_slope(self, a: Array, b: Array, extra: float) -> Array:
        """Derivative of `basis` by a."""
        return 2.0 * (a - b)

    # The parts of theta.

    def _amplitude(self, theta: Array) -> float:
        """eta^2."""
        return math.exp(2.0 * theta[0]) if self.sd is None else self.sd**2

    def _split(self, theta: Array, n_latent: int) -> tuple[int, int, int]:
        """Where the scales of observed columns begin, those of latent ones, and the rest."""
        last = theta.size - self.n_extra
        return int(self.sd is None), last - n_latent, last

    def _observed_weights(self, theta: Array, n_latent: int) -> Array:
        first, middle, _ = self._split(theta, n_latent)
        return np.exp(self.sign * theta[first:middle])

    def _latent_weights(self, theta: Array, n_latent: int) -> Array:
        _, middle, last = self._split(theta, n_latent)
        return np.exp(self.sign * theta[middle:last])

    # What models use.

    def specify(self, seen: Seen) -> list[Hyperparameter]:
        """Eta, then every rho."""
        amplitude = [default("signal_sd", Touches.SCALE)] if self.sd is None else []
        return amplitude + seen.names("length_scale", self.ard, Touches.INPUTS)

    def _latent_place(self, seen: Seen, column: int) -> int:
        """Where in theta the scale of a latent column is."""
        observed = 0 if not seen.observed else len(seen.observed) if self.ard else 1
        return int(self.sd is None) + observed + seen.latent.index(column)

    def moves(self, seen: Seen, column: int) -> LatentMoves:
        """Only differences of w count, and in units of its length scale."""
        scale = ((self._latent_place(seen, column), 1.0),)
        return LatentMoves(shift=True, reflection=True, scale=scale)

    def exchanged(self, seen: Seen, first: int, second: int) -> tuple[int, int] | None:
        """The two length scales."""
        return self._latent_place(seen, first), self._latent_place(seen, second)

    def bases(self, X: Array, X_other: Array) -> Array:
        """`basis` of every observed column, or their sum if isotropic: (d, n, m)."""
        each = self.basis(X.T[:, :, None], X_other.T[:, None, :], 0.0)
        return each if self.ard or len(each) == 0 else each.sum(axis=0, keepdims=True)

    def _observed_sum(self, theta: Array, bases: Array, n_latent: int) -> Array:
        """The part of t that comes from observed columns."""
        return np.tensordot(self._observed_weights(theta, n_latent), bases, 1)

    def inner(self, theta: Array, bases: Any, n_latent: int) -> Array:
        """Of observed columns: their part of t, or phi of it if phi multiplies."""
        if len(bases) == 0:
            return self.zero
        t = self._observed_sum(theta, bases, n_latent)
        return self.phi(t, 0.0) if self.multiplies else t

    def inner_between(self, theta: Array, X: Array, X_other: Array, n_latent: int) -> Array:
        """The same between any rows."""
        return self.inner(theta, self.bases(X, X_other), n_latent)

    def _latent_sum(self, theta: Array, W: Array, W_other: Array) -> Array:
        """The part of t that comes from latent columns, for all pairs."""
        weights, extra = self._latent_weights(theta, len(W)), self.extra(theta)
        total = weights[0] * self.basis(W[0][:, None], W_other[0], extra)
        for c in range(1, len(W)):
            total += weights[c] * self.basis(W[c][:, None], W_other[c], extra)
        return total

    def unit(self, theta: Array, inner: Array, bases: Any, W: Array, W_other: Array) -> Array:
        """phi(t)."""
        if len(W) == 0:
            return inner if self.multiplies else self.phi(inner, self.extra(theta))
        t = self._latent_sum(theta, W, W_other)
        if self.multiplies:
            return inner * self.phi(t, 0.0)
        return self.phi(inner + t, self.extra(theta))

    def scaled(self, theta: Array, unit: Array) -> Array:
        """c^2 + eta^2 phi."""
        result = unit * self._amplitude(theta)
        if self.constant:
            result += self.constant**2
        return result

    def split(
        self, theta: Array, inner: Array, W: Array, W_other: Array
    ) -> list[Separated] | None:
        """Split where phi multiplies, or where there is nothing of x in t."""
        if len(W) == 0:
            return [(self.scaled(theta, self.unit(theta, inner, None, W, W_other)), None)]
        if not self.multiplies and inner is not self.zero:
            return None
        of_latent = self.phi(self._latent_sum(theta, W, W_other), self.extra(theta))
        of_x = self._amplitude(theta) * (inner if self.multiplies else ONE)
        return [(self.constant**2, None), (of_x, of_latent)]

    def at_rows(self, theta: Array, X: Array, W: Array) -> Array:
        """The same for all rows: differences of x are zero."""
        return self.scaled(theta, self.unit(theta, self.zero, None, W, W)[None])

    def gradient(
        self, theta: Array, bases: Any, inner: Array, unit: Array, W: Array, weights: Array
    ) -> tuple[Array, Array]:
        """By the chain rule through t."""
        amplitude, extra = self._amplitude(theta), self.extra(theta)
        first, middle, last = self._split(theta, len(W))
        weighted = weights * amplitude
        t = self._latent_sum(theta, W, W) if len(W) else ZERO
        if not self.multiplies:
            t = inner + t
        by_t = weighted * self.slope(t, unit, extra)
        result = np.zeros(theta.size)
        if first:
            result[0] = 2.0 * np.sum(weighted * unit)
        if middle > first:
            each = np.einsum("ij,kij->k", by_t, self._current_bases(theta, bases))
            result[first:middle] = self.sign * self._observed_weights(theta, len(W)) * each
        by_latent = np.zeros(W.shape)
        for c, weight in enumerate(self._latent_weights(theta, len(W))):
            w = W[c][:, None]
            result[middle + c] = self.sign * weight * np.sum(by_t * self.basis(w, W[c], extra))
            slopes = self.basis_slope(w, W[c], extra)
            by_latent[c] = 2.0 * weight * np.sum(by_t * slopes, axis=1)
        if self.n_extra:
            result[last] = np.sum(weighted * self.by_extra(t, unit, extra))
        return result, by_latent

    def _current_bases(self, theta: Array, bases: Array) -> Array:
        return bases

    def site(self, theta: Array, bases: Any, inner: Array, W: Array, column: int) -> Site:
        """As a function of one latent column."""
        amplitude = self._amplitude(theta)
        weight = float(self._latent_weights(theta, len(W))[column])
        others = self._others(theta, W, column)
        offset = None
        if self.multiplies:
            of_others = ONE if others is ZERO else self.phi(others, 0.0)
            return Site(
                self.constant**2,
                inner * (amplitude * of_others),
                self.code,
                weight,
                self.extra(theta),
            )
        if inner is not self.zero or len(W) > 1:
            offset = np.broadcast_to(inner + others, (W.shape[1], W.shape[1]))
        return Site(self.constant**2, amplitude, self.code, weight, self.extra(theta), offset)

    def _others(self, theta: Array, W: Array, column: int) -> Array:
        """The part of t that comes from all latent columns but one."""
        if len(W) == 1:
            return ZERO
        weights, extra = self._latent_weights(theta, len(W)), self.extra(theta)
        return sum(
            weights[c] * self.basis(W[c][:, None], W[c], extra)
            for c in range(len(W))
            if c != column
        )


class _Exponential(Shaped):
    """phi(t) = exp(-t), which multiplies."""

    multiplies = True
    zero = ONE

    def phi(self, t: Array, extra: float) -> Array:
        return np.exp(-t)

    def slope(self, t: Array, unit: Array, extra: float) -> Array:
        return -unit

    def by_extra(self, t: Array, unit: Array, extra: float) -> float:
        return 0.0


@dataclass(frozen=True, repr=False)
class SquaredExponential(_Exponential):
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
    code: ClassVar[int] = EXP_GAP
    separates: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_flag("ard", self.ard)
        _check.number("constant", self.constant, at_least=0.0, advice="1.0 suits standardized y")
        _check_sd(self.sd)

    def inner(self, theta: Array, bases: Any, n_latent: int) -> Array:
        """Correlation due to observed columns: half the exponentials, because it is symmetric."""
        if len(bases) == 0:
            return self.zero
        return covariance.correlation(bases, self._observed_weights(theta, n_latent))

    def inner_between(self, theta: Array, X: Array, X_other: Array, n_latent: int) -> Array:
        """The same between any rows."""
        if X.shape[1] == 0:
            return self.zero
        roots = np.sqrt(self._observed_weights(theta, n_latent))
        return covariance.cross_covariance(
            np.ascontiguousarray(X * roots), np.ascontiguousarray((X_other * roots).T), 1.0, 0.0
        )

    def unit(self, theta: Array, inner: Array, bases: Any, W: Array, W_other: Array) -> Array:
        """Correlation."""
        if len(W) == 0:
            return inner
        if W is not W_other or inner is self.zero:
            return super().unit(theta, inner, bases, W, W_other)
        for w, weight in zip(W, self._latent_weights(theta, len(W)), strict=True):
            inner = covariance.times_latent_correlation(inner, w, weight)
        return inner

    def gradient(
        self, theta: Array, bases: Any, inner: Array, unit: Array, W: Array, weights: Array
    ) -> tuple[Array, Array]:
        """The same sums in one pass over half the entries."""
        if unit.ndim != 2 or not unit.shape == weights.shape == bases.shape[1:]:
            return super().gradient(theta, bases, inner, unit, W, weights)
        return covariance.correlation_gradient(
            bases, W, unit, weights, theta, int(self.sd is None), self._amplitude(theta)
        )


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
    code: ClassVar[int] = MATERN32

    def __post_init__(self) -> None:
        _check_flag("ard", self.ard)
        _check_sd(self.sd)

    def phi(self, t: Array, extra: float) -> Array:
        """(1 + sqrt(3 t)) exp(-sqrt(3 t))."""
        r = np.sqrt(3.0 * t)
        return (1.0 + r) * np.exp(-r)

    def slope(self, t: Array, unit: Array, extra: float) -> Array:
        """Derivative of phi."""
        return -1.5 * np.exp(-np.sqrt(3.0 * t))

    def by_extra(self, t: Array, unit: Array, extra: float) -> float:
        """Nothing shapes it."""
        return 0.0


@dataclass(frozen=True, repr=False)
class Matern52(Matern32):
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

    code: ClassVar[int] = MATERN52

    def phi(self, t: Array, extra: float) -> Array:
        """(1 + r + r^2 / 3) exp(-r), r^2 = 5 t."""
        r = np.sqrt(5.0 * t)
        return (1.0 + r + 5.0 / 3.0 * t) * np.exp(-r)

    def slope(self, t: Array, unit: Array, extra: float) -> Array:
        """Derivative of phi."""
        r = np.sqrt(5.0 * t)
        return -5.0 / 6.0 * (1.0 + r) * np.exp(-r)


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
    code: ClassVar[int] = RATIONAL

    def __post_init__(self) -> None:
        _check_flag("ard", self.ard)
        _check_sd(self.sd)
        if self.shape is not None:
            _check.number("shape", self.shape, above=0.0, advice="None means that it is learned")

    @property
    def n_extra(self) -> int:
        """Alpha."""
        return int(self.shape is None)

    def extra(self, theta: Array) -> float:
        """Alpha."""
        return math.exp(theta[-1]) if self.shape is None else self.shape

    def specify(self, seen: Seen) -> list[Hyperparameter]:
        """Eta, every rho, and alpha."""
        shape = [default("shape", Touches.LATENT)] if self.shape is None else []
        return super().specify(seen) + shape

    def phi(self, t: Array, extra: float) -> Array:
        """(1 + t / alpha)^-alpha."""
        return np.exp(-extra * np.log1p(t / extra))

    def slope(self, t: Array, unit: Array, extra: float) -> Array:
        """Derivative of phi."""
        return -unit / (1.0 + t / extra)

    def by_extra(self, t: Array, unit: Array, extra: float) -> Array:
        """Derivative of phi by log alpha."""
        return unit * (t / (1.0 + t / extra) - extra * np.log1p(t / extra))


@dataclass(frozen=True, repr=False)
class Periodic(_Exponential):
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
    code: ClassVar[int] = EXP_SINE

    def __post_init__(self) -> None:
        _check_flag("ard", self.ard)
        _check_sd(self.sd)
        if self.period is not None:
            _check.number("period", self.period, above=0.0, advice="None means that it is learned")

    @property
    def n_extra(self) -> int:
        """The period."""
        return int(self.period is None)

    def extra(self, theta: Array) -> float:
        """The period."""
        return math.exp(theta[-1]) if self.period is None else self.period

    def specify(self, seen: Seen) -> list[Hyperparameter]:
        """Eta, every rho, and the period."""
        period = [default("period", Touches.INPUTS)] if self.period is None else []
        return super().specify(seen) + period

    def moves(self, seen: Seen, column: int) -> LatentMoves:
        """A change of scale is one of the period, which must belong to this column alone."""
        alone = self.period is None and not seen.observed and len(seen.latent) == 1
        place = len(self.specify(seen)) - 1
        return LatentMoves(shift=True, reflection=True, scale=((place, 1.0),) if alone else None)

    def basis(self, a: Array, b: Array, extra: float) -> Array:
        """4 sin^2(pi (a - b) / period)."""
        return 4.0 * np.sin(np.pi / extra * (a - b)) ** 2

    def basis_slope(self, a: Array, b: Array, extra: float) -> Array:
        """Derivative of `basis` by a."""
        return 4.0 * np.pi / extra * np.sin(2.0 * np.pi / extra * (a - b))

    def bases(self, X: Array, X_other: Array) -> Array:
        """Differences: the sines have to wait for the period."""
        return X.T[:, :, None] - X_other.T[:, None, :]

    def _current_bases(self, theta: Array, bases: Array) -> Array:
        each = self.basis(bases, np.zeros(()), self.extra(theta))
        return each if self.ard else each.sum(axis=0, keepdims=True)

    def _observed_sum(self, theta: Array, bases: Array, n_latent: int) -> Array:
        return super()._observed_sum(theta, self._current_bases(theta, bases), n_latent)

    def gradient(
        self, theta: Array, bases: Any, inner: Array, unit: Array, W: Array, weights: Array
    ) -> tuple[Array, Array]:
        """By the chain rule through t; the period is in every b."""
        by_theta, by_latent = super().gradient(theta, bases, inner, unit, W, weights)
        if self.n_extra:
            period = self.extra(theta)
            # b is a function of (a - b) / period: d b / d log period = -(a - b) d b / d a.
            t = np.zeros_like(unit)
            observed = self._observed_weights(theta, len(W))
            for k, gap in enumerate(bases):
                slope = self.basis_slope(gap, np.zeros(()), period)
                t = t - observed[k if self.ard else 0] * gap * slope
            for w, weight in zip(W, self._latent_weights(theta, len(W)), strict=True):
                gap = w[:, None] - w
                t = t - weight * gap * self.basis_slope(gap, np.zeros(()), period)
            by_theta[-1] = -self._amplitude(theta) * np.sum(weights * unit * t)
        return by_theta, by_latent


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
    code: ClassVar[int] = PRODUCT
    separates: ClassVar[bool] = True
    sign: ClassVar[float] = 2.0
    learns: ClassVar[str] = "slope_sd"

    def __post_init__(self) -> None:
        _check_flag("ard", self.ard)
        _check_sd(self.sd)

    def specify(self, seen: Seen) -> list[Hyperparameter]:
        """Every gamma."""
        return seen.names(self.learns, self.ard, Touches.INPUTS) if self.sd is None else []

    def moves(self, seen: Seen, column: int) -> LatentMoves:
        """A scale of w is one of gamma."""
        scale = ((self._latent_place(seen, column), -1.0),) if self.sd is None else None
        return LatentMoves(reflection=True, scale=scale)

    def _latent_place(self, seen: Seen, column: int) -> int:
        observed = 0 if not seen.observed else len(seen.observed) if self.ard else 1
        return observed + seen.latent.index(column)

    def exchanged(self, seen: Seen, first: int, second: int) -> tuple[int, int] | None:
        """The two slopes; none that are given."""
        return super().exchanged(seen, first, second) if self.sd is None else (0, 0)

    def _amplitude(self, theta: Array) -> float:
        return 1.0

    def _split(self, theta: Array, n_latent: int) -> tuple[int, int, int]:
        return 0, max(theta.size - n_latent, 0), theta.size

    def _observed_weights(self, theta: Array, n_latent: int) -> Array:
        if self.sd is None:
            return super()._observed_weights(theta, n_latent)
        return np.array([self.sd**2])

    def _latent_weights(self, theta: Array, n_latent: int) -> Array:
        if self.sd is None:
            return super()._latent_weights(theta, n_latent)
        return np.full(n_latent, self.sd**2)

    def phi(self, t: Array, extra: float) -> Array:
        """The identity."""
        return t

    def slope(self, t: Array, unit: Array, extra: float) -> Array:
        """1."""
        return np.ones((1, 1))

    def by_extra(self, t: Array, unit: Array, extra: float) -> float:
        """Nothing shapes it."""
        return 0.0

    def basis(self, a: Array, b: Array, extra: float) -> Array:
        """A b."""
        return a * b

    def basis_slope(self, a: Array, b: Array, extra: float) -> Array:
        """Derivative of `basis` by a."""
        return b + np.zeros_like(a)

    def bases(self, X: Array, X_other: Array) -> Array:
        """b_k of every observed column, or their sum."""
        each = self.basis(X.T[:, :, None], X_other.T[:, None, :], 0.0)
        pooled = not self.ard or self.sd is not None
        return each.sum(axis=0, keepdims=True) if pooled and len(each) else each

    def split(
        self, theta: Array, inner: Array, W: Array, W_other: Array
    ) -> list[Separated] | None:
        """Of x, and of w."""
        of_x: list[Separated] = [(inner, None)]
        return of_x + ([(1.0, self._latent_sum(theta, W, W_other))] if len(W) else [])

    def at_rows(self, theta: Array, X: Array, W: Array) -> Array:
        """gamma^2 x^2, and gamma^2 w w'."""
        n_latent = len(W)
        squares = self.basis(X, X, 0.0)
        if squares.shape[1]:
            if not self.ard or self.sd is not None:
                squares = squares.sum(axis=1, keepdims=True)
            observed = (squares @ self._observed_weights(theta, n_latent))[:, None, None]
        else:
            observed = np.zeros((1, 1, 1))
        size = W.shape[1]
        latent = self._latent_sum(theta, W, W) if n_latent else np.zeros((size, size))
        return observed + latent

    def gradient(
        self, theta: Array, bases: Any, inner: Array, unit: Array, W: Array, weights: Array
    ) -> tuple[Array, Array]:
        """By the chain rule, or by w alone if gamma is given."""
        if self.sd is None:
            return super().gradient(theta, bases, inner, unit, W, weights)
        return np.empty(0), 2.0 * self.sd**2 * (W @ weights)

    def site(self, theta: Array, bases: Any, inner: Array, W: Array, column: int) -> Site:
        """As a function of one latent column, and what does not depend on it."""
        weight = float(self._latent_weights(theta, len(W))[column])
        return Site(inner + self._others(theta, W, column), weight, self.code, 1.0)


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

    code: ClassVar[int] = SIDES
    learns: ClassVar[str] = "step_sd"

    def moves(self, seen: Seen, column: int) -> LatentMoves:
        """Of w only the sign counts."""
        return LatentMoves(reflection=True, scale=())

    def basis(self, a: Array, b: Array, extra: float) -> Array:
        """s(a) s(b)."""
        return np.where((a < 0.0) == (b < 0.0), 1.0, -1.0)

    def basis_slope(self, a: Array, b: Array, extra: float) -> Array:
        """Flat on both sides of the step."""
        return np.zeros(np.broadcast_shapes(a.shape, b.shape))

    def gradient(
        self, theta: Array, bases: Any, inner: Array, unit: Array, W: Array, weights: Array
    ) -> tuple[Array, Array]:
        """By gamma, if it is learned."""
        by_theta, _ = super().gradient(theta, bases, inner, unit, W, weights)
        return by_theta, np.zeros(W.shape)


KERNELS: dict[str, type[Leaf]] = {
    each.__name__: each
    for each in (
        Constant,
        Linear,
        Matern32,
        Matern52,
        Periodic,
        RationalQuadratic,
        Sign,
        SquaredExponential,
    )
}
