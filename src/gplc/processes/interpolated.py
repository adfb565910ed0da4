"""A process by interpolation between points: a basis for more inputs than a grid has room for.

With Z the points and k_0 a kernel of variance 1 with some length scales theta_0,

    f(x) = k_0(x, Z) K_0(Z, Z)^-1 f(Z),   f(Z) ~ N(0, K_theta(Z, Z)).

The functions know nothing of theta, which is in the prior of the values at the points alone: as in
a Hilbert-space basis, rows are met by fixed functions. They are put in order by the eigenvectors U
and eigenvalues D of K_0(Z, Z), of which the largest are kept: with V = U D^-1/2,

    f(x) = k_0(x, Z) V b,   b ~ N(0, C C'),   C C' = V' K_theta(Z, Z) V,

so that C is a multiple of the identity at theta_0. It is good where theta is near theta_0, and
where points are near: `PointBasis.error` measures both. What is left out of the variance,
k_theta(x, x) less that of f(x), is added at new rows.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.linalg import blas, lapack

from gplc._linalg import weights_through_lower
from gplc._types import Array
from gplc.kernels import Constant, Kernel, Linear, SquaredExponential
from gplc.kernels.base import Pairs, Place, Sum, places
from gplc.kernels.shaped import Shaped
from gplc.kernels.shapes import SquaredGap
from gplc.processes.hilbert import (
    Axis,
    Basis,
    Level,
    Sines,
    Term,
    level_of,
    simple_terms,
    sines_of,
)
from gplc.processes.inducing import COMPARED_ROWS, JITTER, Points

# Functions whose size is below this share of the largest are left out, and beyond so many.
LEAST_EIGENVALUE, MOST_OF_POINTS = 1e-7, 200
# Step of log hyperparameters for the derivatives of a prior, which only coordinates depend on.
STEP = 1e-4


class Interpolated(Term):
    """A leaf that sees columns of x, and w if it is a squared exponential.

    Its coefficients are b = C e for each function of w, the entries of e being independent with
    SDs as in `log_sds`.
    """

    def __init__(self, place: Place, points: Array, reference: Array, latent: Axis | None) -> None:
        assert isinstance(place.leaf, Shaped)
        self._leaf, self._where = place.leaf, place.where
        self._columns = list(place.seen.observed)
        self._latent = latent if place.seen.latent else None
        self._points = np.ascontiguousarray(points[:, self._columns])
        self._pairs = Pairs(
            self._points, self._points, self._leaf.bases(self._points, self._points)
        )
        self._reference = reference[self._where]
        values, vectors = np.linalg.eigh(self._unit(self._reference, self._pairs)[1])
        kept = np.flatnonzero(values > LEAST_EIGENVALUE * values[-1])[::-1][:MOST_OF_POINTS]
        self._turn = np.ascontiguousarray(vectors[:, kept] / np.sqrt(values[kept]))  # V
        self._sizes = 0.5 * np.log(values[kept] / len(points))
        self.shape = kept.size, 1 if self._latent is None else self._latent.functions

    @property
    def width(self) -> int:
        """One feature for every point."""
        return len(self._points)

    # Covariances due to x. Those of a leaf that sees w too are between rows with the same w.

    def _unit(self, theta: Array, pairs: Pairs) -> tuple[Array, Array]:
        """What `inner` and `unit` of the leaf give: the second is K without c and eta."""
        leaf, inner = self._leaf, self._leaf.inner(theta, pairs, int(self._latent is not None))
        if self._latent is not None:
            return inner, inner
        none = np.empty((0, 1))
        return inner, leaf.unit(theta, inner, pairs, none, none)

    def _matrix(self, theta: Array, pairs: Pairs) -> Array:
        """K without c."""
        unit = self._unit(theta, pairs)[1]
        return np.asarray(self._leaf.scaled(theta, unit) - self._leaf.constant**2)

    def features(self, X: Array, out: Array) -> None:
        """k_0(x, Z)."""
        rows = np.ascontiguousarray(X[:, self._columns])
        out[:] = self._unit(self._reference, Pairs(rows, self._points))[1]

    def functions(self, features: Array) -> Array:
        """k_0(x, Z) V."""
        return features @ self._turn

    def of_features(self, b: Array) -> Array:
        """V b."""
        return self._turn @ b

    def of_functions(self, gradient: Array) -> Array:
        """V' times it."""
        return self._turn.T @ gradient

    def of_latent(self, w: Array) -> Array:
        """Sines of w."""
        return np.ones((w.size, 1)) if self._latent is None else sines_of(self._latent, w)

    # The prior.

    def _prior(self, theta: Array) -> Array:
        """V' K_theta(Z, Z) V, of the hyperparameters of the leaf."""
        return np.asarray(self._turn.T @ (self._matrix(theta, self._pairs) @ self._turn))

    def root(self, theta: Array) -> Array | None:
        """C; None if it cannot be computed."""
        prior = self._prior(theta[self._where])
        prior[np.diag_indices_from(prior)] += JITTER * float(np.mean(np.diagonal(prior)))
        if not np.all(np.isfinite(prior)):
            return None
        lower, status = lapack.dpotrf(prior.T, lower=1, clean=1)
        return lower if status == 0 else None

    def pulled(self, theta: Array, lower: Array, by_root: Array) -> Array:
        """d/d theta of a function of C, from its derivative by C: (k,)."""
        inside = np.asfortranarray(np.tril(lower.T @ by_root))
        inside[np.diag_indices_from(inside)] *= 0.5
        weights = weights_through_lower(lower, inside)
        weights[np.diag_indices_from(weights)] += JITTER * float(np.trace(weights)) / len(lower)
        of_points = self._turn @ weights @ self._turn.T
        mine, result = theta[self._where], np.zeros(theta.size)
        inner, unit = self._unit(mine, self._pairs)
        W = np.zeros((int(self._latent is not None), len(self._points)))
        result[self._where], _ = self._leaf.gradient(mine, self._pairs, inner, unit, W, of_points)
        return result

    def sensitivities(self, theta: Array, lower: Array) -> Array:
        """C^-1 dS C^-T for each of theta, with S = C C': (k, M, M)."""
        result = np.zeros((theta.size, *lower.shape))
        for k in range(self._where.start, self._where.stop):
            ends = [
                self._prior((theta + side * STEP * (np.arange(theta.size) == k))[self._where])
                for side in (1.0, -1.0)
            ]
            half = blas.dtrsm(1.0, lower, (ends[0] - ends[1]) / (2.0 * STEP), lower=1)
            result[k] = blas.dtrsm(1.0, lower, half, side=1, lower=1, trans_a=1)
        return result

    def log_sds(self, theta: Array) -> tuple[Array, list[tuple[int, Array]]]:
        """Of the functions of w: half the log spectral density of the correlation."""
        if self._latent is None:
            return np.zeros(self.shape), []
        numbers = np.arange(1, self._latent.functions + 1)
        log_scale = theta[self._where.stop - 1]
        squares = (numbers * self._latent.rate) ** 2
        weighted = np.asarray(squares * math.exp(2.0 * log_scale), dtype=np.float64)
        found = self._leaf.phi.log_spectrum(weighted, 1)
        assert found is not None
        value, slope = found[0] + log_scale, 1.0 + 2.0 * weighted * found[1]
        return (
            np.broadcast_to(0.5 * value, self.shape),
            [(self._where.stop - 1, np.broadcast_to(0.5 * slope, self.shape))],
        )

    def log_sizes(self, theta: Array) -> Array:
        """Logs of how large each product is at rows, if eta is 1: (M, R)."""
        return np.asarray(self._sizes[:, None] + self.log_sds(theta)[0])

    def left_out(self, theta: Array, X: Array, lower: Array, functions: Array) -> Array:
        """k(x, x) less the variance of f(x), which may be negative: (rows,)."""
        rows = np.ascontiguousarray(X[:, self._columns])
        own = self._matrix(theta[self._where], Pairs(rows)).reshape(-1)
        mixed = functions @ lower
        return np.asarray(own - np.einsum("ij,ij->i", mixed, mixed))


class PointBasis(Basis):
    """The functions of a whole kernel by interpolation, and their coefficients as one vector b.

    Parameters
    ----------
    kernel : Kernel
        A sum of leaves (see `without_interpolation`).
    points : Points
    reference : array
        theta_0, of the whole kernel.

    Examples
    --------
    >>> basis = PointBasis(SquaredExponential(), Points(((0.0,), (1.0,))), np.zeros(2))
    >>> basis.size, round(basis.error(np.zeros(2), np.array([[0.0], [0.5], [1.0]])), 3)
    (3, 0.158)
    """

    def __init__(self, kernel: Kernel, points: Points, reference: Array) -> None:
        self._points, self._reference = points.array, reference
        none = Axis(0.0, 1.0, 2.0, 1)  # axes that nothing uses: one for every column
        super().__init__(kernel, [none] * self._points.shape[1], points.latent)

    def _terms(self, placed: Sequence[Place]) -> list[Term]:
        result: list[Term] = []
        for place in placed:
            found = simple_terms(place)
            if not found:
                found = [self._main_term(place), *level_of(place)]
            result += found
        return result

    def _main_term(self, place: Place) -> Term:
        if not place.seen.observed:
            return Sines(place, (), self.latent)
        return Interpolated(place, self._points, self._reference, self.latent)

    @property
    def mixed(self) -> list[tuple[Interpolated, slice]]:
        """The terms that are interpolated, and where their coefficients are."""
        pairs = zip(self.terms, self.own, strict=True)
        return [(term, own) for term, own in pairs if isinstance(term, Interpolated)]

    def importance(self) -> Array:
        """The smaller, the larger a product is at the reference."""
        found = []
        for term in self.terms:
            if isinstance(term, Interpolated):
                found.append(-term.log_sizes(self._reference).ravel())
            else:
                found.append(term.importance().ravel() - 10.0)
        return np.concatenate(found)

    def lost(self, theta: Array, X: Array, roots: Sequence[Array]) -> Array:
        """What is left out of the variance of f at rows, given C of the terms in `mixed`."""
        return np.maximum(self._signed(theta, X, roots), 0.0)

    def _signed(self, theta: Array, X: Array, roots: Sequence[Array]) -> Array:
        result = np.zeros(len(X))
        for (term, _), lower in zip(self.mixed, roots, strict=True):
            features = np.empty((len(X), term.width))
            term.features(X, features)
            result += term.left_out(theta, X, lower, term.functions(features))
        return result

    def error(self, theta: Array, X: Array) -> float:  # type: ignore[override]
        """The share of the variance of f between rows that is left out, or is too much."""
        X = X[:: -(-len(X) // COMPARED_ROWS)]
        roots = [root for term, _ in self.mixed if (root := term.root(theta)) is not None]
        if len(roots) < len(self.mixed):
            return 1.0
        lost = float(np.mean(np.abs(self._signed(theta, X, roots))))
        points = np.column_stack([X, np.zeros(len(X))]) if self._n_latent else X
        whole = self.kernel.matrix(theta, points, points, self._n_latent)
        spread = float(np.mean(np.diagonal(whole)) - np.mean(whole))
        return lost / max(spread, lost, np.finfo(float).tiny)


def without_interpolation(kernel: Kernel, inputs: int, n_latent: int) -> str:
    """Why a kernel is not interpolated between points; empty if it is.

    Examples
    --------
    >>> from gplc.kernels import Matern32
    >>> without_interpolation(SquaredExponential() + Linear(), 5, 1)
    ''
    >>> without_interpolation(Matern32(), 5, 1)
    'Matern32() is no product of functions of x and w'
    """
    for part in kernel.parts if isinstance(kernel, Sum) else (kernel,):
        if not isinstance(part, Shaped | Constant):
            return f"{part!r} is not one leaf of the package"
        if not isinstance(part, Constant | Linear) and not isinstance(part.basis, SquaredGap):
            return f"{part!r} is no function of distances"
    for place in places(kernel, inputs, n_latent):
        product = isinstance(place.leaf, SquaredExponential | Linear | Constant)
        if place.seen.latent and not product:
            return f"{place.leaf!r} is no product of functions of x and w"
    return ""


__all__ = ["Interpolated", "Level", "PointBasis", "without_interpolation"]
