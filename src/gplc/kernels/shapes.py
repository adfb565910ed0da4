"""Functions of which kernels are made: phi of a sum t, and the basis b of a column in that sum.

    K = c^2 + eta^2 phi(t),   t = sum_k s_k b(x_k, x'_k)

Each is here once, with its derivatives, and with the code of its twin in
`_compiled.latent_terms`, if it has one: the sweep over w is compiled for those that do. Some
have one more number, learned or given, as `extra`.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gplc._compiled import latent_terms
from gplc._types import Array


class Shape(ABC):
    """phi, with phi(0) = 1 unless it adds."""

    code: ClassVar[int | None] = None  # of the compiled twin
    multiplies: ClassVar[bool] = False  # phi(t + u) = phi(t) phi(u)
    adds: ClassVar[bool] = False  # phi(t + u) = phi(t) + phi(u)

    @abstractmethod
    def value(self, t: Array, extra: float) -> Array:
        """phi(t)."""

    @abstractmethod
    def slope(self, t: Array, unit: Array, extra: float) -> Array:
        """Derivative of phi at t, where it is `unit`."""

    def by_extra(self, t: Array, unit: Array, extra: float) -> Array | float:
        """Derivative of phi by log extra; 0 unless `extra` is a number of phi."""
        return 0.0

    def numbers(self, extra: float) -> tuple[float, float, float]:
        """a, b and c of the compiled twin."""
        return 0.0, 0.0, 0.0

    def log_spectrum(self, squares: Array, dimension: int) -> tuple[Array, Array] | None:
        """Log of the spectral density of phi(|r|^2) in so many dimensions, and its slope.

        Both are functions of the squared frequency |omega|^2; None if there is no formula.
        """
        return None


class Exponential(Shape):
    """phi(t) = exp(-t)."""

    code = latent_terms.EXPONENTIAL
    multiplies = True

    def value(self, t: Array, extra: float) -> Array:
        """exp(-t)."""
        return np.exp(-t)

    def slope(self, t: Array, unit: Array, extra: float) -> Array:
        """-phi."""
        return -unit

    def log_spectrum(self, squares: Array, dimension: int) -> tuple[Array, Array]:
        """pi^(d/2) exp(-|omega|^2 / 4)."""
        return 0.5 * dimension * math.log(math.pi) - 0.25 * squares, np.full(squares.shape, -0.25)


class Identity(Shape):
    """phi(t) = t."""

    adds = True

    def value(self, t: Array, extra: float) -> Array:
        """The sum as it is."""
        return t

    def slope(self, t: Array, unit: Array, extra: float) -> Array:
        """1, whatever t."""
        return np.ones((1, 1))


@dataclass(frozen=True)
class Matern(Shape):
    """The Matern correlation of smoothness order + 1/2, for an order of 1 or 2.

    (1 + r) exp(-r) with r^2 = 3 t, or (1 + r + 5 t / 3) exp(-r) with r^2 = 5 t.
    """

    order: int
    code = latent_terms.DAMPED

    @property
    def _rate(self) -> float:
        return 2.0 * self.order + 1.0

    @property
    def _quadratic(self) -> float:
        return 5.0 / 3.0 if self.order == 2 else 0.0

    def value(self, t: Array, extra: float) -> Array:
        """(1 + r + quadratic t) exp(-r)."""
        r = np.sqrt(self._rate * t)
        polynomial = 1.0 + r
        if self._quadratic:
            polynomial += self._quadratic * t
        return polynomial * np.exp(-r)

    def slope(self, t: Array, unit: Array, extra: float) -> Array:
        """-3/2 exp(-r), or -5/6 (1 + r) exp(-r)."""
        r = np.sqrt(self._rate * t)
        fall = -self._rate / (2.0 * (2.0 * self.order - 1.0))
        return (fall if self.order == 1 else fall * (1.0 + r)) * np.exp(-r)

    def numbers(self, extra: float) -> tuple[float, float, float]:
        """r^2 / t, and the coefficients of r and t."""
        return self._rate, 1.0, self._quadratic

    def log_spectrum(self, squares: Array, dimension: int) -> tuple[Array, Array]:
        """Proportional to (2 nu + |omega|^2)^-(nu + d/2), nu being the smoothness."""
        smoothness = 0.5 * self._rate
        power = smoothness + 0.5 * dimension
        constant = (
            dimension * math.log(2.0 * math.sqrt(math.pi))
            + math.lgamma(power)
            - math.lgamma(smoothness)
            + smoothness * math.log(self._rate)
        )
        inside = self._rate + squares
        return constant - power * np.log(inside), -power / inside


class Rational(Shape):
    """phi(t) = (1 + t / alpha)^-alpha, alpha being the extra number."""

    code = latent_terms.RATIONAL

    def value(self, t: Array, extra: float) -> Array:
        """(1 + t / alpha)^-alpha."""
        return np.exp(-extra * np.log1p(t / extra))

    def slope(self, t: Array, unit: Array, extra: float) -> Array:
        """-phi / (1 + t / alpha)."""
        return -unit / (1.0 + t / extra)

    def by_extra(self, t: Array, unit: Array, extra: float) -> Array:
        """Derivative of phi by log alpha."""
        return unit * (t / (1.0 + t / extra) - extra * np.log1p(t / extra))

    def numbers(self, extra: float) -> tuple[float, float, float]:
        """Alpha."""
        return extra, 0.0, 0.0


class Basis(ABC):
    """b(x, x'), of entries of one column, which broadcast."""

    code: ClassVar[int | None] = None  # of the compiled twin
    vanishes: ClassVar[bool] = False  # b(x, x) = 0
    has_extra: ClassVar[bool] = False  # the extra number is one of b, not of phi
    # Where b = q(w) q(w') with q(w) = w^power, or q(w) = 1 with the sign of w.
    power: ClassVar[int] = 0
    side: ClassVar[int] = 0

    @abstractmethod
    def prepared(self, x: Array, other: Array) -> Array:
        """What can be computed of b before any hyperparameter is known."""

    def finished(self, prepared: Array, extra: float) -> Array:
        """What `prepared` gave, made b."""
        return prepared

    def value(self, x: Array, other: Array, extra: float) -> Array:
        """b(x, other)."""
        return self.finished(self.prepared(x, other), extra)

    @abstractmethod
    def slope(self, x: Array, other: Array, extra: float) -> Array:
        """Derivative of b by x."""


class SquaredGap(Basis):
    """b(x, x') = (x - x')^2."""

    code = latent_terms.SQUARED_GAP
    vanishes = True

    def prepared(self, x: Array, other: Array) -> Array:
        """(x - x')^2."""
        return (x - other) ** 2

    def slope(self, x: Array, other: Array, extra: float) -> Array:
        """2 (x - x')."""
        return 2.0 * (x - other)


class SquaredSine(Basis):
    """b(x, x') = 4 sin^2(pi (x - x') / period), the period being the extra number."""

    code = latent_terms.SQUARED_SINE
    vanishes = True
    has_extra = True

    def prepared(self, x: Array, other: Array) -> Array:
        """The difference: the sine has to wait for the period."""
        return x - other

    def finished(self, prepared: Array, extra: float) -> Array:
        """4 sin^2(pi (x - x') / period)."""
        return 4.0 * np.sin(np.pi / extra * prepared) ** 2

    def slope(self, x: Array, other: Array, extra: float) -> Array:
        """4 pi / period sin(2 pi (x - x') / period)."""
        return 4.0 * np.pi / extra * np.sin(2.0 * np.pi / extra * (x - other))


class Times(Basis):
    """b(x, x') = x x'."""

    power = 1

    def prepared(self, x: Array, other: Array) -> Array:
        """The product of the two."""
        return x * other

    def slope(self, x: Array, other: Array, extra: float) -> Array:
        """The other of the two, whatever x."""
        return other + np.zeros_like(x)


class Sides(Basis):
    """b(x, x') = s(x) s(x'), s(x) = -1 if x < 0, else 1."""

    side = 1

    def prepared(self, x: Array, other: Array) -> Array:
        """1 on the same side of zero, -1 on different ones."""
        return np.where((x < 0.0) == (other < 0.0), 1.0, -1.0)

    def slope(self, x: Array, other: Array, extra: float) -> Array:
        """Flat on both sides of the step."""
        return np.zeros(np.broadcast_shapes(x.shape, other.shape))
