"""A process solved by the covariance matrix of its n cases: O(n^3), and exact."""

import math
from typing import NamedTuple

import numpy as np

from gplc._compiled import covariance
from gplc._linalg import (
    Factor,
    add_to_diagonal,
    draw_gaussian,
    factor_of,
    factorise,
    inverse_triangle,
    multiply_lower,
    solve,
    solve_both,
    solve_lower,
    usable,
    with_whitened,
)
from gplc._types import Array
from gplc.kernels.bound import Pieces
from gplc.processes.noise import FixedNoise, Noise, SumNoise
from gplc.processes.process import Gradient, Process
from gplc.processes.replicates import Replicates

# SDs of noise that are tried if C cannot be factored, in units of the root of K(x, x): at most
# 1e-5, which nobody can see.
RAISED_NOISE = (3e-8, 1e-7, 3e-7, 1e-6, 3e-6, 1e-5)


class Dense(NamedTuple):
    """A process with data y, at one theta and W: C = K + diag(noise) = L L', and L^-1 y.

    A value: what changes it returns another one, which shares all that stays the same.

    Examples
    --------
    >>> import numpy as np
    >>> from gplc.kernels import SquaredExponential
    >>> from gplc.processes import Layout, LearnedNoise, Process
    >>> process = Process.placed(
    ...     Layout(), "C", SquaredExponential(), np.array([[0.0], [1.0]]), LearnedNoise()
    ... )
    >>> solved = Dense.at(process, np.zeros(3), np.array([0.5, -0.5]))
    >>> round(solved.log_density, 4)
    -2.9731
    >>> mean, variance = solved.left_out()
    >>> mean.round(4).tolist(), variance.round(4).tolist()
    ([-0.228, 0.228], [2.3763, 2.3763])
    """

    process: Process
    theta: Array  # all of it
    y: Array
    W: Array | None  # latent inputs, (q, n)
    noise: Noise
    pieces: Pieces
    factor: Factor | None  # None: C is not positive definite

    @classmethod
    def at(
        cls,
        process: Process,
        theta: Array,
        y: Array | None,
        W: Array | None = None,
        noise: Noise | None = None,
    ) -> "Dense":
        """Solved from nothing; with a noise other than that of the process, if given.

        Without y it is all zeros, until `with_whitened` or `with_data` says more.
        """
        noise = process.noise if noise is None else noise
        pieces, data = process.pieces(theta, W), np.zeros(process.bound.n) if y is None else y
        factor = _factor(process, theta, data, noise, pieces, whitened=y is None)
        return cls(process, theta, data, W, noise, pieces, factor)

    # The same with something changed. Constructors in full where chains spend their time: for
    # few cases `_replace` costs as much as a tenth of a factorisation.

    def with_hyperparameter(self, index: int, theta: Array) -> "Dense":
        """After theta[index] has changed; what does not depend on it is used again."""
        process, _, y, W, noise, pieces, factor = self
        if process.concerns(index):
            pieces = process.changed(index, theta, pieces, W)
            factor = _factor(process, theta, y, noise, pieces)
        return Dense(process, theta, y, W, noise, pieces, factor)

    def with_latent(self, W: Array, theta: Array | None = None) -> "Dense":
        """After the latent inputs have changed, and perhaps what the noise learns."""
        process, before, y, _, noise, pieces, _ = self
        theta = before if theta is None else theta
        pieces = process.moved(theta, pieces, W)
        factor = _factor(process, theta, y, noise, pieces)
        return Dense(process, theta, y, W, noise, pieces, factor)

    def moved(self, W: Array) -> "Dense":
        """With other latent inputs, for a caller who knows the new factor and will set it."""
        return self._replace(W=W, pieces=self.process.moved(self.theta, self.pieces, W))

    def with_noise(self, noise: Noise) -> "Dense":
        """With another noise."""
        process, theta, y, W, _, pieces, _ = self
        factor = _factor(process, theta, y, noise, pieces)
        return Dense(process, theta, y, W, noise, pieces, factor)

    def mended(self) -> "Dense":
        """The same if it has a factor; if not, with as little more noise as it takes to have one.

        Where responses have hardly any noise, chains live at the edge of what can be factored,
        and a factor that a sweep left may not be had again.
        """
        if self.factor is not None:
            return self
        process = self.process
        K = process.bound.matrix(self.theta[process.place], self.pieces)
        largest = math.sqrt(np.max(np.diagonal(K)))
        process.ledger[f"noise of {process.name} raised"] += 1
        for share in RAISED_NOISE:
            raised = self.with_noise(SumNoise((self.noise, FixedNoise(share * largest))))
            if raised.factor is not None:
                return raised
        return self

    def with_data(self, y: Array) -> "Dense":
        """With other data."""
        replicates = self.process.replicates
        if replicates is None:
            return self._replace(y=y, factor=factor_of(usable(self.factor).upper, y))
        averages = replicates.averaged(self._noise_variance(), y)
        factor = factor_of(usable(self.factor).upper, averages.mean)
        return self._replace(y=y, factor=_with_rest(factor, averages.rest))

    def with_whitened(self, u: Array) -> "Dense":
        """With the data y = L u."""
        factor = usable(self.factor)
        return self._replace(y=multiply_lower(factor, u), factor=with_whitened(factor.upper, u))

    # What a solved process answers.

    @property
    def log_density(self) -> float:
        """Log N(y | 0, C); -inf if C is not positive definite."""
        return -np.inf if self.factor is None else self.factor.log_density

    def pulls(self) -> Array:
        """C^-1 y."""
        return solve(usable(self.factor))

    def gradient(self) -> Gradient:
        """How log N(y | 0, C) changes; by the variances of all rows, if some are repeated."""
        weights, replicates = likelihood_weights(usable(self.factor)), self.process.replicates
        if replicates is None:
            return self.pulled(weights)
        theta, variance = self.theta[self.process.noise_place], self._noise_variance()
        by_row = replicates.by_variance(variance, self.y, *self._at_places())
        by_noise = self.noise.gradient(theta, by_row)
        return self.pulled(weights, of_noise=False)._replace(noise=by_noise, diagonal=by_row)

    def _noise_variance(self) -> float | Array:
        return self.noise.variance(self.theta[self.process.noise_place])

    def _at_places(self) -> tuple[Array, Array]:
        """Mean m - V a and variance V - V^2 Q_jj of the function at each place, given y."""
        factor, replicates = usable(self.factor), usable(self.process.replicates)
        variance, mean, _ = replicates.averaged(self._noise_variance(), self.y)
        spread = variance * (1.0 - variance * np.diagonal(inverse_triangle(factor)))
        return mean - variance * solve(factor), np.maximum(spread, 0.0)

    def pulled(self, weights: Array, of_noise: bool = True) -> Gradient:
        """How sum_ij weights_ij C_ij changes, for symmetric weights; by the noise too, or not."""
        process, on_diagonal = self.process, np.diagonal(weights)
        by_kernel, by_latent = process.bound.gradient(
            self.theta[process.place], self.pieces, self.W, weights
        )
        by_noise = np.empty(0)
        if of_noise:
            by_noise = self.noise.gradient(self.theta[process.noise_place], on_diagonal)
        return Gradient(by_kernel, by_noise, by_latent, on_diagonal)

    def conditional(self, X: Array, w: Array | None = None) -> tuple[Array, Array]:
        """Mean k' C^-1 y and variance v - k' C^-1 k of the function at each row of X.

        w is one value of each latent input, for all rows.
        """
        bound, own = self.process.bound, self.theta[self.process.place]
        cross = bound.cross(own, X, self.W).at(w)
        variance = bound.variance(own, X, w)
        return gaussian_conditional(usable(self.factor), self.pulls(), cross, variance)

    def mean(self, X: Array, w: Array | None = None) -> Array:
        """The mean alone, which needs no triangular solve: (rows,)."""
        bound, own = self.process.bound, self.theta[self.process.place]
        return bound.cross(own, X, self.W).at(w) @ self.pulls()

    def left_out(self) -> tuple[Array, Array]:
        """y_i - a_i / Q_ii and 1 / Q_ii, with a = C^-1 y and Q = C^-1.

        Of a row that is one of several at its place: what the others there leave open is
        1 / (1 / spread - 1 / v_i).
        """
        factor, replicates = usable(self.factor), self.process.replicates
        if replicates is not None:
            return self._left_out_of_places(replicates)
        variance = 1.0 / np.diagonal(inverse_triangle(factor))
        return self.y - variance * solve(factor), variance

    def _left_out_of_places(self, replicates: Replicates) -> tuple[Array, Array]:
        """The same where rows are repeated."""
        rows = np.broadcast_to(self._noise_variance(), self.y.shape)
        centre, spread = (each[replicates.place] for each in self._at_places())
        tiny = np.finfo(float).tiny
        precision = np.maximum(1.0 / np.maximum(spread, tiny) - 1.0 / rows, tiny)
        left = (centre / np.maximum(spread, tiny) - self.y / rows) / precision
        return left, 1.0 / precision + rows

    def draw(self, rng: np.random.Generator) -> Array:
        """A draw from the prior, corrected by what it gets wrong about y (Matheron's rule)."""
        process, y, variance = self.process, self.y, self._noise_variance()
        if process.replicates is not None:
            variance, y, _ = process.replicates.averaged(variance, y)
        K = process.bound.matrix(self.theta[process.place], self.pieces)
        function = draw_gaussian(rng, K)
        missed = y - function - np.sqrt(variance) * rng.standard_normal(y.size)
        drawn = function + K @ solve_both(usable(self.factor), missed)
        return drawn if process.replicates is None else drawn[process.replicates.place]


def _factor(
    process: Process,
    theta: Array,
    y: Array,
    noise: Noise,
    pieces: Pieces,
    whitened: bool = False,
) -> Factor | None:
    """The factor of C for the data y (or L^-1 y), entered in the ledger."""
    process.ledger[f"chol({process.name})"] += 1
    if process.replicates is None:
        factor = factorise(process.covariance(theta, pieces=pieces, noise=noise), y, whitened)
    else:
        averages = process.replicates.averaged(noise.variance(theta[process.noise_place]), y)
        K = process.bound.matrix(theta[process.place], pieces)
        matrix = add_to_diagonal(K, averages.variance)
        factor = _with_rest(factorise(matrix, averages.mean), averages.rest)
    if factor is None:
        process.ledger[f"{process.name} not positive definite"] += 1
    return factor


def _with_rest(factor: Factor | None, rest: float) -> Factor | None:
    """With the log of what does not depend on the function; None if that cannot be computed."""
    if factor is None or not math.isfinite(rest):
        return None
    return factor._replace(log_density=factor.log_density + rest)


def likelihood_weights(factor: Factor) -> Array:
    """(a a' - C^-1) / 2, a = C^-1 y: d log N(y | 0, C) is the sum of its entries times dC's."""
    return covariance.likelihood_weights(solve(factor), inverse_triangle(factor))


def gaussian_conditional(
    factor: Factor, pulls: Array, cross: Array, variance: float | Array
) -> tuple[Array, Array]:
    """K' C^-1 y and v - k' C^-1 k for each row k of `cross` (overwritten); `pulls` are C^-1 y."""
    # Not (L^-1 k)' L^-1 y: no more exact, and another number than the mean alone if C is nearly
    # singular.
    mean = cross @ pulls
    solved = solve_lower(factor, cross.T, overwrite=True).T
    # Rounding can take the difference below zero where x is close to a case with little noise.
    left = variance - np.einsum("ij,ij->i", solved, solved)
    return mean, np.maximum(left, 0.0)
