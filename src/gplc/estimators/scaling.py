"""An affine map between the scale of the data and standard units."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gplc._types import Array

# Inputs further than this many SDs from the data are all equally far: no correlation is left.
FARTHEST = 1e100


class Scaling(NamedTuple):
    """An affine map to standard units: (value - location) / scale."""

    location: Array
    scale: Array

    @classmethod
    def of(cls, values: Array) -> "Scaling":
        """Mean and SD of each column; SD 1 where a column is constant."""
        # Divided by the largest first, so that squares of 1e200 or 1e-200 do no harm.
        largest = np.max(np.abs(values), axis=0)
        largest = np.where(largest > 0.0, largest, 1.0)
        inside = values / largest
        location = inside.mean(axis=0)
        sd = inside.std(axis=0)
        # A column is constant if it varies by no more than rounding; that may be much, in 1e150.
        constant = sd <= 1e-12 * np.abs(location)
        sd *= largest
        return cls(location * largest, np.where(constant | (sd == 0.0), np.maximum(sd, 1.0), sd))

    @classmethod
    def none(cls, columns: tuple[int, ...]) -> "Scaling":
        """The identity."""
        return cls(np.zeros(columns), np.ones(columns))

    def except_for(self, columns: Sequence[int]) -> "Scaling":
        """The same, but that some columns stay as they are."""
        location, scale = self.location.copy(), self.scale.copy()
        location[list(columns)], scale[list(columns)] = 0.0, 1.0
        return Scaling(location, scale)

    def apply(self, values: Array) -> Array:
        """Values in standard units."""
        with np.errstate(over="ignore"):
            return np.clip((values - self.location) / self.scale, -FARTHEST, FARTHEST)
