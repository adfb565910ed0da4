"""GPLV and GPLC with points: values of the processes at these are sampled.

Functions between the points are those of `gplc.processes.interpolated`. What they leave out of a
process is added at new rows, not at those that are sampled.
"""

from typing import Any

import numpy as np

from gplc._linalg import usable
from gplc._types import Array
from gplc.models.in_basis.base import WithCoefficients
from gplc.models.in_basis.latent_covariate import (
    ConditionedOnFunction,
    LatentCovariateInBasis,
    cells,
)
from gplc.models.in_basis.latent_variance import (
    ConditionedOnBoth,
    LatentVarianceInBasis,
    VarianceTask,
)
from gplc.models.in_basis.mixing import Mixing
from gplc.models.landmarks import standard_nodes
from gplc.models.left_out import LeftOut
from gplc.processes.inducing import Points
from gplc.processes.interpolated import PointBasis
from gplc.processes.links import LinkedNoise

# A pass over the rows in units of that of a Hilbert-space basis of usual size.
RELATIVE_WORK = 5.0
# Nodes for what is left out of z, on either side of zero, for rows left out.
HALF_NODES = 4


class WithPoints(WithCoefficients):
    """What both share."""

    bases: tuple[PointBasis, ...]

    def _bases(self) -> tuple[PointBasis, ...]:
        points = self.axes
        assert isinstance(points, Points)
        given = points.references or [self.priors.means[p.place] for p in self.processes]
        kernels = [each.bound.kernel for each in self.processes]
        return tuple(
            PointBasis(kernel, points, np.array(reference))
            for kernel, reference in zip(kernels, given, strict=True)
        )

    @property
    def work(self) -> float:
        """That of a pass over the rows, and of roots of the priors."""
        return RELATIVE_WORK * super().work + 1.0

    def may_settle(self, rows: int, cases: int) -> bool:
        """No: roots of priors cost as much as many rows."""
        return False

    def outside(self, X: Array) -> tuple[int, int] | None:
        """None: far from all points there is the prior."""
        return None

    def errors(self, theta: Array) -> float:
        """The share of the variance that is wrong at the rows, of all processes."""
        pairs = zip(self.processes, self.bases, strict=True)
        return max(basis.error(theta[each.place], self.X) for each, basis in pairs)

    def _lost(self, X: Array, theta: Array, mixing: Mixing) -> list[Array]:
        """What is left out of the variance of every process at new rows."""
        roots, result = mixing.roots, []
        for process, basis in zip(self.processes, self.bases, strict=True):
            own, roots = roots[: len(basis.mixed)], roots[len(basis.mixed) :]
            result.append(basis.lost(theta[process.place], X, own))
        return result

    def sample_data(self, rng: np.random.Generator, unknowns: Any) -> Array:
        """A draw of y given the unknowns, at the rows themselves."""
        return self._drawn(rng, *self.condition(unknowns).at_own_rows(self.X))

    def left_out(self, unknowns: Any) -> LeftOut:
        """Each y_i given one draw of the functions, as if at a new row."""
        nodes = standard_nodes(self.node_size, HALF_NODES)
        means, sds = self.condition(unknowns).components(self.X, nodes)
        weights = self.component_weights
        count = means.shape[1]
        return LeftOut(means, sds, np.full(count, 1.0 / count) if weights is None else weights)


class LatentVarianceWithPoints(WithPoints, LatentVarianceInBasis):
    """`LatentVariance` with f and z interpolated between points.

    Examples
    --------
    >>> points = Points(((0.0,), (0.5,), (1.0,)))
    >>> model = LatentVarianceWithPoints([[0.0], [1.0]], [0.5, -0.5], axes=points)
    >>> model.n_latent  # three and a constant, of both
    8
    """

    def components_of(self, nodes: int) -> int:
        """One for every value of what is left out of z."""
        return nodes

    def _conditioned(self, state: Any) -> Any:
        mixing = state.mixing or usable(self.mixing(state.theta))
        task = self._task(state.theta, self.coefficients(state.theta, state.latent, mixing))
        return ConditionedOnValues(self, task, state.theta, mixing)


class ConditionedOnValues(ConditionedOnBoth):
    """Prediction for one draw: what is left out of f is Gaussian, that of z is in the nodes."""

    def __init__(
        self, model: LatentVarianceWithPoints, task: VarianceTask, theta: Array, mixing: Mixing
    ) -> None:
        super().__init__(task)
        self._model, self._theta, self._mixing = model, theta, mixing

    def at_own_rows(self, X: Array) -> tuple[Array, Array]:
        """With nothing added."""
        return super().components(X, np.empty(0))

    def _parts(self, X: Array, nodes: Array) -> tuple[Array, Array, Array]:
        """f(x), what is left out of it, and the variance of the noise at each node."""
        lost_f, lost_z = self._model._lost(X, self._theta, self._mixing)
        _, f, noise = self._task.at(X)
        z = noise.z[:, None] + np.sqrt(lost_z)[:, None] * nodes
        return f, lost_f, LinkedNoise(self._task.link, z).variance(self._task.learned)

    def components(self, X: Array, nodes: Array) -> tuple[Array, Array]:
        """The mean of f(x), and SDs of f(x) and the noise together."""
        f, lost, variance = self._parts(X, nodes)
        sds = np.sqrt(lost[:, None] + variance)
        return np.broadcast_to(f[:, None], sds.shape), sds

    def means(self, X: Array, nodes: Array) -> Array:
        """The mean of f(x)."""
        _, f, _ = self._task.at(X)
        return np.broadcast_to(f[:, None], (f.size, nodes.size))

    def function(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of f(x)."""
        f, lost, _ = self._parts(X, np.zeros(1))
        return f, lost

    def residual_variance(self, X: Array, nodes: Array) -> Array:
        """The variance of the noise, on average over the nodes."""
        return np.asarray(self._parts(X, nodes)[2].mean(axis=1))


class LatentCovariateWithPoints(WithPoints, LatentCovariateInBasis):  # type: ignore[misc]
    """`LatentCovariate` with g interpolated between points in x, in a basis of functions of w.

    Examples
    --------
    >>> from gplc.processes.hilbert import latent_axis
    >>> points = Points(((0.0,), (1.0,)), latent=latent_axis(2.0, 3.0))
    >>> model = LatentCovariateWithPoints([[0.0], [1.0]], [0.5, -0.5], axes=points)
    >>> model.n_latent
    25
    """

    def _conditioned(self, state: Any) -> Any:
        mixing = state.mixing or usable(self.mixing(state.theta))
        (b,) = self.coefficients(state.theta, state.latent, mixing)
        variance = self.noise_variance(state.theta)
        return ConditionedOnInterpolation(self, b, variance, state.theta, mixing)


class ConditionedOnInterpolation(ConditionedOnFunction):
    """Prediction for one draw: what is left out of g(x, w) is Gaussian."""

    def __init__(
        self,
        model: LatentCovariateWithPoints,
        b: Array,
        variance: float,
        theta: Array,
        mixing: Mixing,
    ) -> None:
        super().__init__(model.bases[0], b, variance)
        self._model, self._theta, self._mixing = model, theta, mixing

    def _lost(self, X: Array) -> Array:
        return self._model._lost(X, self._theta, self._mixing)[0]

    def at_own_rows(self, X: Array) -> tuple[Array, Array]:
        """With nothing added."""
        return super().components(X, np.empty(0))

    def components(self, X: Array, nodes: Array) -> tuple[Array, Array]:
        """g(x, w*) in each cell, and SDs of y."""
        means, sds = super().components(X, nodes)
        return means, np.sqrt(sds**2 + self._lost(X)[:, None])

    def at_nodes(self, X: Array, nodes: Array) -> tuple[Array, Array]:
        """g(x, w*) at each node, and SDs of y."""
        means, sds = super().at_nodes(X, nodes)
        return means, np.sqrt(sds**2 + self._lost(X)[:, None])

    def function(self, X: Array) -> tuple[Array, Array]:
        """The mean and variance of f(x): g(x, w) with other w is left out alike, in part."""
        mean, _ = super().function(X)
        return mean, self._shared * self._lost(X)

    def residual_variance(self, X: Array, nodes: Array) -> Array:
        """The variance of g over w, and sigma^2."""
        return super().residual_variance(X, nodes) + (1.0 - self._shared) * self._lost(X)

    @property
    def _shared(self) -> float:
        """The mean correlation of g(x, w) and g(x, w') over both."""
        weights = cells().weights / cells().weights.sum()
        term = self._mixing.parts[0].mixed.term
        sds = np.exp(term.log_sds(self._theta[self._model.processes[0].place])[0][0])
        means = weights @ (term.of_latent(cells().cells.centres) * sds)
        return float(min(means @ means, 1.0))
