"""Covariance functions."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gplc import _check
from gplc._compiled import covariance

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SquaredExponential:
    """Squared exponential covariance with a constant, isotropic or ARD.

    K(x, x') = c^2 + eta^2 exp(-sum_k (x_k - x'_k)^2 / rho_k^2)

    with one rho for all inputs if `ard` is false. Note: the exponent has no factor 1/2, as in
    the paper; scikit-learn's length scale is rho / sqrt(2).

    Parameters
    ----------
    ard : bool
        Whether every input has a length scale of its own.
    constant : float
        c, fixed: the prior SD of the overall level.

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

    def __post_init__(self) -> None:
        _check.number("constant", self.constant, at_least=0.0, advice="1.0 suits standardized y")

    def names(self, n_features: int, suffix: str = "") -> tuple[str, ...]:
        """Hyperparameters in the order of theta: eta, then every rho."""
        if self.ard and n_features > 1:
            scales = tuple(f"length_scale{suffix}[{k}]" for k in range(n_features))
        else:
            scales = (f"length_scale{suffix}",)
        return (f"signal_sd{suffix}", *scales)

    def distances(self, X: Array) -> Array:
        """(x_ik - x_jk)^2 of every input, or their sum if isotropic: (d, n, n)."""
        each = (X.T[:, :, None] - X.T[:, None, :]) ** 2
        return each if self.ard else each.sum(axis=0, keepdims=True)

    def correlation(self, theta: Array, distances: Array) -> Array:
        """exp(-sum_k distances_k / rho_k^2): the only part that needs exponentials."""
        return covariance.correlation(distances, np.exp(-2.0 * theta[1:]))

    def scale(self, theta: Array, correlation: Array) -> Array:
        """c^2 + eta^2 correlation, as a new array."""
        result = correlation * np.exp(2.0 * theta[0])
        result += self.constant**2
        return result

    def matrix(self, theta: Array, X: Array, X_other: Array) -> Array:
        """K between the rows of X and those of X_other: (n, m)."""
        scales = np.exp(theta[1:])
        return covariance.cross_covariance(
            np.ascontiguousarray(X / scales),
            np.ascontiguousarray((X_other / scales).T),
            np.exp(2.0 * theta[0]),
            self.constant**2,
        )

    def variance(self, theta: Array) -> float:
        """K(x, x) = c^2 + eta^2."""
        return float(self.constant**2 + np.exp(2.0 * theta[0]))

    def gradient(
        self, theta: Array, distances: Array, correlation: Array, weights: Array
    ) -> Array:
        """d/d theta of sum_ij weights_ij K_ij."""
        weighted = weights * correlation * np.exp(2.0 * theta[0])
        by_scale = np.einsum("ij,kij->k", weighted, distances) * np.exp(-2.0 * theta[1:])
        return 2.0 * np.concatenate([[weighted.sum()], by_scale])
