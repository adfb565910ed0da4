"""Kernels of your own from functions that exist, and from one that does not."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from gplc.kernels.shaped import Shaped
from gplc.kernels.shapes import Basis, Matern, Shape, SquaredSine


@dataclass(frozen=True, repr=False)  # in the package, under @shipped, which enters it in KERNELS
class PeriodicMatern(Shaped):
    """A kernel that repeats itself and is rough: Matern 3/2 of distances on a circle."""

    ard: bool = True
    sd: float | None = field(default=None, kw_only=True)
    period: float | None = field(default=None, kw_only=True)
    phi: ClassVar[Shape] = Matern(1)
    basis: ClassVar[Basis] = SquaredSine()
    extra: ClassVar[str] = "period"


class ExponentialOfRoot(Shape):
    """phi(t) = exp(-sqrt(t))."""

    def value(self, t, extra):
        """phi(t)."""
        return np.exp(-np.sqrt(t))

    def slope(self, t, unit, extra):
        """Derivative of phi at t, where it is `unit`."""
        return -0.5 * unit / np.sqrt(np.maximum(t, 1e-300))


@dataclass(frozen=True, repr=False)
class Rough(Shaped):
    """eta^2 exp(-r): Matern 1/2."""

    ard: bool = True
    sd: float | None = field(default=None, kw_only=True)
    phi: ClassVar[Shape] = ExponentialOfRoot()
