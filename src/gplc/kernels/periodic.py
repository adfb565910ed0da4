"""Kernels that repeat themselves."""

from dataclasses import dataclass, field
from typing import ClassVar

from gplc.kernels.base import shipped
from gplc.kernels.hyperparameters import LatentMoves, Seen
from gplc.kernels.shaped import Shaped
from gplc.kernels.shapes import Basis, Exponential, Shape, SquaredSine

__all__ = ["Periodic"]


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
