"""From standard units, in which chains run, to those of the user's data."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Units(NamedTuple):
    """What hyperparameters and predictions are in the user's units.

    Examples
    --------
    >>> units = Units(("noise_sd",), ("noise_sd",), (20.0,), ("accel",), location=5.0, scale=20.0)
    >>> units.affine("f(x) at row 3"), units.affine("upper tail at row 3")
    ((5.0, 20.0), (0.0, 1.0))
    >>> shift, factor = units.affine("log noise_sd")
    >>> shift == math.log(20.0), factor
    (True, 1.0)
    """

    names: tuple[str, ...]  # of the hyperparameters, inside
    labels: tuple[str, ...]  # the same with names of columns
    factors: tuple[float, ...]  # times these they are in the user's units
    units: tuple[str, ...]  # what these are called
    location: float = 0.0  # of y
    scale: float = 1.0

    @classmethod
    def standard(cls, names: Sequence[str]) -> "Units":
        """Standard units, for those who want them."""
        count = len(names)
        return cls(tuple(names), tuple(names), (1.0,) * count, ("",) * count)

    def affine(self, quantity: str) -> tuple[float, float]:
        """(a, b) so that a + b v is in the user's units: of anything that is judged."""
        for name, label, factor in zip(self.names, self.labels, self.factors, strict=True):
            if quantity in (f"log {name}", f"log {label}"):
                return math.log(factor), 1.0
        if quantity.startswith("f(x)"):
            return self.location, self.scale
        if quantity.startswith("log SD(x)"):
            return float(np.log(self.scale)), 1.0
        return 0.0, 1.0
