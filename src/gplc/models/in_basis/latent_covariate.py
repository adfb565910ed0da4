"""GPLC in a basis: g has coefficients, and every w_i is summed out over cells."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack
from scipy.special import ndtri

from gplc._compiled import cells as compiled
from gplc._linalg import usable
from gplc._types import Array
from gplc.models.base import Unknowns
from gplc.models.in_basis.base import FIRST_ROWS, WithCoefficients
from gplc.models.latent_covariate.marginal import Grid, grid
from gplc.models.latent_covariate.model import (
    START_NEIGHBOURS,
    LatentCovariate,
    local_ranks,
)
from gplc.models.left_out import LeftOut
from gplc.priors import kind
from gplc.processes.hilbert import LATENT_END, Basis

# Cells of w.
N_CELLS = 48
# Rows are left out with g integrated out, for up to so many coefficients, and rows times squares
# of these; so many of them seed the draws of w that this needs.
MOST_INTEGRATED, MOST_WORK, LEFT_OUT_SEEDS = 1000, 1e8, 4
# A chain begins with g as if the noise had this SD at least.
FIRST_SD = 0.2


def cells() -> Grid:
    """The cells over which w is summed out."""
    return grid(N_CELLS, LATENT_END)


@dataclass(frozen=True, eq=False)
class CovariateTask:
    """What a block of rows says of g, with w summed out."""

    basis: Basis
    b: Array
    on_grid: Array  # functions of w in the cells: (cells, kinds)
    variance: float  # of the noise

    def __call__(self, X: Array, y: Array) -> tuple[Array | float, ...]:
        """Log likelihood, and its gradient by b and by log sigma."""
        features = self.basis.features(X)
        values = self.basis.at_rows(features, self.b) @ self.on_grid.T
        value, scores, by_scale = self.scores(values, y)
        by_b = self.basis.pulled(features, scores @ self.on_grid)
        return value, by_b, np.array([by_scale.sum()])

    def scores(self, values: Array, y: Array) -> tuple[float, Array, Array]:
        """Log likelihood; its derivatives by g in the cells and by log sigma, of each row."""
        scores, by_variance = np.empty_like(values), np.empty(y.size)
        variances = np.full(y.size, self.variance)
        value = compiled.log_likelihood(values, y, variances, cells().cells, scores, by_variance)
        return (
            value - 0.5 * y.size * math.log(2.0 * math.pi),
            scores,
            2.0 * variances * by_variance,
        )


class LatentCovariateInBasis(WithCoefficients, LatentCovariate):  # type: ignore[misc]
    """`LatentCovariate` with g(x, w) = sum of b_jr phi_j(x) psi_r(w), every w_i summed out.

    Examples
    --------
    >>> import numpy as np
    >>> from gplc.models.in_basis import Axes, latent_axis
    >>> from gplc.processes.hilbert import axis_for
    >>> x = axis_for(0.0, 1.0, shortest=1.0, longest=1.0)
    >>> axes = Axes((x,), latent_axis(shortest=2.0, longest=3.0))
    >>> model = LatentCovariateInBasis([[0.0], [1.0]], [0.5, -0.5], axes=axes)
    >>> model.names, model.n_latent
    (('signal_sd', 'length_scale', 'latent_length_scale', 'noise_sd'), 73)
    """

    def _bases(self) -> tuple[Basis, ...]:
        return (Basis(self._main_kernel(), self._grid.inputs, self._grid.latent),)

    def components_of(self, nodes: int) -> int:
        """One for each cell of w, whatever the nodes."""
        return N_CELLS

    @property
    def component_weights(self) -> Array:
        """The probabilities of the cells."""
        return cells().weights / cells().weights.sum()

    def _components_at_landmarks(self, conditioned: Any) -> tuple[Array, Array]:
        return conditioned.at_nodes(self.landmarks.X, self._landmark_nodes)

    def noise_variance(self, theta: Array) -> float:
        """sigma^2."""
        return float(self.processes[0].noise.variance(theta[self.noise_place]))

    def _task(self, theta: Array, coefficients: tuple[Array, ...]) -> CovariateTask:
        basis = self.bases[0]
        on_grid = basis.of_latent(cells().cells.centres)
        return CovariateTask(basis, coefficients[0], on_grid, self.noise_variance(theta))

    def _scores(
        self, rng: np.random.Generator, X: Array, theta: Array, coefficients: tuple[Array, ...]
    ) -> tuple[tuple[Array, ...], Array]:
        task, basis = self._task(theta, coefficients), self.bases[0]
        values = basis.at_rows(basis.features(X), task.b) @ task.on_grid.T
        chosen = np.searchsorted(cells().cumulative, rng.random(len(X)))
        chosen = np.minimum(chosen, N_CELLS - 1)
        noise = math.sqrt(task.variance) * rng.standard_normal(len(X))
        y = values[np.arange(len(X)), chosen] + noise
        _, scores, by_scale = task.scores(values, y)
        learned = self.noise_place.stop - self.noise_place.start
        return (scores @ task.on_grid,), by_scale[:, None][:, :learned]

    def starting_theta(self, units: Array) -> Array:
        """With g smooth in w: from a short length scale a chain can stay where g is folded."""
        of_w = np.array([kind(name) == "latent_length_scale" for name in self.names])
        return super().starting_theta(np.where(of_w, 0.75 + 0.25 * units, units))

    def starting_latent(self, rng: np.random.Generator, theta: Array) -> Array:
        """G through some of the rows, with w rising with y where x is the same, or falling."""
        X, y = self.rows.some(rng, FIRST_ROWS)
        edge = 0.5 / START_NEIGHBOURS
        w = ndtri(np.clip(local_ranks(X, y, START_NEIGHBOURS), edge, 1.0 - edge))
        w = w if rng.random() < 0.5 else -w
        sd = max(FIRST_SD, math.sqrt(self.noise_variance(theta)))
        features = usable(self.mixing(theta)).of_rows(self.bases[0].products(X, w))
        return self._regressed(rng, features, y, sd, self.log_sds(theta), spread=0.1)

    def drawn_covariate(self, rng: np.random.Generator, unknowns: Unknowns) -> Array:
        """Every w_i from its distribution given g, sigma and y_i: (n,)."""
        theta, n = unknowns.theta, self.n
        task, basis = self._task(theta, self.coefficients(*unknowns)), self.bases[0]
        values = basis.at_rows(basis.features(self.X), task.b) @ task.on_grid.T
        w, log_shares = np.empty(n), np.empty(n)
        variances, random = np.full(n, task.variance), (rng.random(n), rng.standard_normal(n))
        compiled.draw(values, self.y, variances, cells().cells, *random, w, log_shares)
        return w

    def left_out(self, unknowns: Unknowns) -> LeftOut:
        """Each y_i given all others, their w and theta: g is integrated out, as far as it pays.

        Given g itself a row would have been seen by every draw of it, and where g is flexible the
        few draws that know least of the row would count for all. For w, a draw given g and y.
        """
        if self.n_latent > MOST_INTEGRATED or self.n * self.n_latent**2 > MOST_WORK:
            return super().left_out(unknowns)
        rng = np.random.default_rng(unknowns.latent[:LEFT_OUT_SEEDS].view(np.uint64))
        found = self.left_out_given(unknowns.theta, self.drawn_covariate(rng, unknowns))
        return super().left_out(unknowns) if found is None else found

    def left_out_given(self, theta: Array, w: Array) -> LeftOut | None:
        """Each y_i given all others and all other w; None if it cannot be computed.

        With u ~ N(m, A^-1) given all rows, p = phi(x_i, w_i) in units of prior SDs and q the same
        for another w, leaving out row i makes the mean of g(x_i, w) q'm - q'A^-1 p d and its
        variance q'A^-1 q + (q'A^-1 p)^2 / (sigma^2 (1 - h)), with h = p'A^-1 p / sigma^2 and
        d = (y_i - p'm) / (sigma^2 (1 - h)).
        """
        basis, variance = self.bases[0], self.noise_variance(theta)
        functions = basis.features(self.X)[:, basis.row_place] * np.exp(self.log_sds(theta))
        of_w = basis.of_latent(w)
        products = functions * of_w[:, basis.kind_place]
        precision = products.T @ products / variance
        precision[np.diag_indices_from(precision)] += 1.0
        lower, status = lapack.dpotrf(precision, lower=1, clean=1)
        if status != 0 or not np.isfinite(precision).all():
            return None
        inverse, _ = lapack.dpotri(lower, lower=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        mean = inverse @ (products.T @ self.y) / variance
        # Of every row: means, and covariances, of what goes with each function of w.
        kinds = [np.flatnonzero(basis.kind_place == r) for r in range(of_w.shape[1])]
        means = np.column_stack([functions[:, own] @ mean[own] for own in kinds])
        spread = np.empty((self.n, len(kinds), len(kinds)))
        for r, one in enumerate(kinds):
            for s, other in enumerate(kinds[: r + 1]):
                half = functions[:, one] @ inverse[np.ix_(one, other)]
                spread[:, r, s] = np.einsum("ij,ij->i", half, functions[:, other])
                spread[:, s, r] = spread[:, r, s]
        own = np.einsum("irs,is->ir", spread, of_w)  # covariances with g(x_i, w_i)
        rest = variance - np.einsum("ir,ir->i", own, of_w)
        rest = np.maximum(rest, 1e-12 * variance)
        gaps = (self.y - np.einsum("ir,ir->i", means, of_w)) / rest
        on_grid = basis.of_latent(cells().cells.centres)
        across = own @ on_grid.T
        values = np.ascontiguousarray(means @ on_grid.T - across * gaps[:, None])
        left = np.einsum("cr,irs,cs->ic", on_grid, spread, on_grid, optimize=True)
        left = np.maximum(left + across**2 / rest[:, None], 0.0)
        steep = cells().cells.variances * compiled.slopes_of(values, cells().cells) ** 2
        return LeftOut(values, np.sqrt(variance + left + steep), self.component_weights)

    def _conditioned(self, state: Any) -> Any:
        (b,) = self.coefficients(state.theta, state.latent)
        return ConditionedOnFunction(self.bases[0], b, self.noise_variance(state.theta))


class ConditionedOnFunction:
    """Prediction for one draw of theta and g."""

    def __init__(self, basis: Basis, b: Array, variance: float) -> None:
        self._basis, self._b, self._variance = basis, b, variance

    def _at_rows(self, X: Array) -> Array:
        return self._basis.at_rows(self._basis.features(X), self._b)

    def components(self, X: Array, nodes: Array) -> tuple[Array, Array]:
        """g(x, w*) in each cell, and SDs of y, which allow for how steep g is there."""
        values = self.means(X, nodes)
        slopes = compiled.slopes_of(values, cells().cells)
        return values, np.sqrt(self._variance + cells().cells.variances * slopes**2)

    def means(self, X: Array, nodes: Array) -> Array:
        """g(x, w*) in each cell."""
        return np.asarray(self._at_rows(X) @ self._basis.of_latent(cells().cells.centres).T)

    def at_nodes(self, X: Array, nodes: Array) -> tuple[Array, Array]:
        """g(x, w*) at each node, and sigma."""
        means = np.asarray(self._at_rows(X) @ self._basis.of_latent(nodes).T)
        return means, np.full(means.shape, math.sqrt(self._variance))

    def _moments(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of g(x, w) over w."""
        values = self.means(X, np.empty(0))
        weights = cells().weights / cells().weights.sum()
        mean = values @ weights
        return mean, (values - mean[:, None]) ** 2 @ weights

    def function(self, X: Array) -> tuple[Array, Array]:
        """f(x), the average of g(x, w) over w, which is known."""
        mean, _ = self._moments(X)
        return mean, np.zeros(mean.size)

    def residual_variance(self, X: Array, nodes: Array) -> Array:
        """The variance of g over w, and sigma^2."""
        return self._moments(X)[1] + self._variance
