"""Coordinates in which a latent Gaussian vector is nearly N(0, I) given the data too.

Let z ~ N(0, C), C = L L', and let surrogate data be one observation of every z_i, Gaussian, with
mean m_i and precision F_i. Given these,

    z = L u,   u = R^-T (v + R^-1 L' F m),   R R' = I + L' F L,

is N((C^-1 + F)^-1 F m, (C^-1 + F)^-1) if v ~ N(0, I). So v is a good coordinate for z if the
surrogate data say about it what the true ones say: then it hardly depends on the parameters of C.
Held fixed while they move, z itself would hold them back, and so does u where the data say much.
Without surrogate data, F = 0, v is u.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from gplc._compiled import covariance
from gplc._linalg import Factor, add_to_diagonal, transposed_multiply, weights_through_factor
from gplc._types import Array


class Surrogate(NamedTuple):
    """R and what goes with it."""

    lower: Array  # R, in Fortran order, of which only the lower triangle counts
    shift: Array  # R^-1 L' F m
    log_determinant: float  # of R

    def coloured(self, v: Array) -> Array:
        """The u that belongs to v."""
        u, _ = lapack.dtrtrs(self.lower, v + self.shift, lower=1, trans=1)
        return u

    def whitened(self, u: Array) -> Array:
        """The v that belongs to u."""
        return blas.dtrmv(self.lower, u, lower=1, trans=1) - self.shift

    def gradient(self, factor: Factor, by_z: Array) -> tuple[Array, Array]:
        """How log p(v) changes, and with it a function of z whose gradient is `by_z`.

        Given are the factor of C, with u as its whitened vector. The first is the gradient with
        respect to v, g = R^-1 (L' by_z - u); the second, with v held fixed, are the weights W with
        which it changes by the sum of W_ij dC_ij. With t = v + s, s = R^-1 L' F m, and Q the lower
        triangle of t g' + g s', mirrored, plus I,

            L' dL = L' by_z u' + (L' F m) (R^-T g)' - (R - R^-T) Q R^-1

        is the derivative by L, from which `weights_through_factor` goes on.
        """
        R, s, u = self.lower, self.shift, factor.whitened
        by_u = transposed_multiply(factor, by_z)
        by_v, _ = lapack.dtrtrs(R, by_u - u, lower=1)
        back, _ = lapack.dtrtrs(R, by_v, lower=1, trans=1)
        t = blas.dtrmv(R, u, lower=1, trans=1)
        Q = covariance.unit_and_products(t, by_v, by_v, s)
        right = blas.dtrsm(1.0, R, Q.T, side=1, lower=1, overwrite_b=1)
        through = blas.dtrmm(1.0, R, right, lower=1)
        through -= blas.dtrsm(1.0, R, right, lower=1, trans_a=1, overwrite_b=1)
        pulls = blas.dtrmv(R, s, lower=1)
        inside = covariance.halved_triangle(u, by_u, back, pulls, through.T)
        return by_v, weights_through_factor(factor, inside.T)


def surrogate_of(upper: Array, sites: Array) -> Surrogate | None:
    """The coordinates for C = L L', `upper` = L', and surrogate data with precisions F.

    `sites` are F and F m; None if the factorisation fails.

    Examples
    --------
    >>> import numpy as np
    >>> surrogate = surrogate_of(np.eye(1), np.array([[3.0], [3.0]]))
    >>> surrogate.coloured(np.zeros(1))
    array([0.75])
    """
    precisions, pulls = sites
    scaled = upper * np.sqrt(precisions)
    matrix, _ = lapack.dlauum(scaled.T, lower=1, overwrite_c=1)
    lower, status = lapack.dpotrf(add_to_diagonal(matrix, 1.0), lower=1, clean=0, overwrite_a=1)
    if status != 0:
        return None
    shift, _ = lapack.dtrtrs(lower, blas.dtrmv(upper.T, pulls, lower=1, trans=1), lower=1)
    log_determinant = float(np.log(np.diagonal(lower)).sum())
    return Surrogate(lower, shift, log_determinant) if np.isfinite(log_determinant) else None
