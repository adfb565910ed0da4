"""Dense linear algebra on covariance matrices, straight on LAPACK.

A factor is kept as U = L' in C order, of which only the upper triangle counts: the form the
compiled sweeps work on.
"""

import math
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.linalg import blas, lapack

from gplc._compiled import covariance, triangular
from gplc._types import Array

T = TypeVar("T")

LOG_2PI = math.log(2.0 * math.pi)

# Variances below this share of the largest are rounding.
RANK_SHARE = 1e-12


class Factor(NamedTuple):
    """Cholesky factor of a covariance C = L L' and what it says about a vector y."""

    upper: Array  # U = L'; its lower triangle is not part of it
    whitened: Array  # L^-1 y
    log_density: float  # log N(y | 0, C)


def factorise(matrix: Array, vector: Array, whitened: bool = False) -> Factor | None:
    """Factor of a covariance `matrix` (C order, overwritten); None if not positive definite.

    `vector` is y or, if `whitened`, L^-1 y.

    Examples
    --------
    >>> import numpy as np
    >>> factor = factorise(np.array([[4.0, 0.0], [0.0, 1.0]]), np.array([2.0, 1.0]))
    >>> factor.whitened.tolist()
    [1.0, 1.0]
    >>> factorise(np.array([[1.0, 2.0], [2.0, 1.0]]), np.zeros(2)) is None
    True
    """
    # The transpose of a symmetric C-ordered matrix is itself, in the order LAPACK overwrites.
    lower, status = lapack.dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
    if status != 0:
        return None
    return (with_whitened if whitened else factor_of)(lower.T, vector)


def factor_of(upper: Array, y: Array) -> Factor | None:
    """The factor of a covariance whose U = L' is known, for the vector y."""
    whitened, status = lapack.dtrtrs(upper.T, y, lower=1)
    return with_whitened(upper, whitened) if status == 0 else None


def with_whitened(upper: Array, whitened: Array) -> Factor | None:
    """The factor with L^-1 y known too; None if the density cannot be computed."""
    log_density = triangular.log_density(upper, whitened) - 0.5 * whitened.size * LOG_2PI
    return Factor(upper, whitened, log_density) if math.isfinite(log_density) else None


def usable(factor: T | None) -> T:
    """The factor, or an error that says what to do if there is none."""
    if factor is None:
        raise ValueError(
            "the covariance matrix at this draw is not positive definite; it was not made by a "
            "chain of this model, or the noise SD is too small: sample again, or raise the prior "
            "mean of noise_sd"
        )
    return factor


def add_to_diagonal(matrix: Array, values: float | Array) -> Array:
    """The matrix itself, with `values` added to its diagonal."""
    matrix.flat[:: matrix.shape[0] + 1] += values
    return matrix


def draw_gaussian(rng: np.random.Generator, covariance: Array) -> Array:
    """A draw from N(0, covariance), which may be singular to rounding.

    Examples
    --------
    >>> import numpy as np
    >>> draw_gaussian(np.random.default_rng(0), np.ones((2, 2))).shape
    (2,)
    """
    # Eigenvalues, not a factorisation: priors draw length scales at which it would fail.
    values, vectors = np.linalg.eigh(covariance)
    roots = np.sqrt(np.maximum(values, 0.0))
    return vectors @ (roots * rng.standard_normal(values.size))


def solve(factor: Factor) -> Array:
    """C^-1 y."""
    solved, _ = lapack.dtrtrs(factor.upper.T, factor.whitened, lower=1, trans=1)
    return solved


def solve_both(factor: Factor, right: Array) -> Array:
    """C^-1 right."""
    solved, _ = lapack.dpotrs(factor.upper.T, right, lower=1)
    return solved


def solve_lower(factor: Factor, right: Array, overwrite: bool = False) -> Array:
    """L^-1 right, for right (n,) or (n, q); in place if `right` is in Fortran order."""
    solved, _ = lapack.dtrtrs(factor.upper.T, right, lower=1, overwrite_b=int(overwrite))
    return solved


def inverse_triangle(factor: Factor) -> Array:
    """C^-1 in C order, of which only the upper triangle counts."""
    lower, _ = lapack.dpotri(factor.upper.T, lower=1)
    return lower.T


def inverse(factor: Factor) -> Array:
    """C^-1, symmetric, in C order."""
    triangle = inverse_triangle(factor)
    return np.triu(triangle) + np.triu(triangle, 1).T


def multiply_lower(factor: Factor, vector: Array) -> Array:
    """L vector: a draw from N(0, C) if `vector` is standard normal."""
    return blas.dtrmv(factor.upper.T, vector, lower=1)


def transposed_multiply(factor: Factor, vector: Array) -> Array:
    """L' vector."""
    return blas.dtrmv(factor.upper.T, vector, lower=1, trans=1)


def thin_root(matrix: Array) -> Array:
    """R (n, r) with R R' = `matrix`, which may be singular; r is its rank, to rounding.

    Examples
    --------
    >>> import numpy as np
    >>> thin_root(np.full((3, 3), 4.0)).tolist()
    [[2.0], [2.0], [2.0]]
    """
    return pivoted_root(matrix)[0]


def pivoted_root(matrix: Array) -> tuple[Array, Array]:
    """The same, with the rows that say all about the others: R[rows] is lower triangular."""
    largest = float(np.max(np.diagonal(matrix)))
    root, order, rank, _ = lapack.dpstrf(matrix.T, tol=RANK_SHARE * largest, lower=1)
    rows = order - 1
    result = np.empty((matrix.shape[0], rank))
    result[rows] = np.tril(root[:, :rank])
    return result, rows[:rank]


def weights_through_factor(factor: Factor, inside: Array) -> Array:
    """How a function of L changes with C = L L'.

    Its derivative is the sum of the entries of these weights times those of dC. They are
    L^-T P L^-1, made symmetric, where P is the lower triangle of L' D with its diagonal halved and
    D the derivative with respect to L (Murray 2016, "Differentiation of the Cholesky
    decomposition"). `inside` is P in Fortran order, overwritten.
    """
    return weights_through_lower(factor.upper.T, inside)


def weights_through_lower(lower: Array, inside: Array) -> Array:
    """The same, given L."""
    half = blas.dtrsm(1.0, lower, inside, side=0, lower=1, trans_a=1, overwrite_b=1)
    whole = blas.dtrsm(1.0, lower, half, side=1, lower=1, overwrite_b=1)
    return covariance.symmetric_part(whole.T)
