"""GPLC in a basis: g has coefficients, and every w_i is summed out over cells."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
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
from gplc.priors import kind
from gplc.processes.hilbert import LATENT_END, Basis

# Cells of w.
N_CELLS = 48
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
