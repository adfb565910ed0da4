"""GPLV in a basis: f and z both have coefficients, and rows are independent given these."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gplc._linalg import usable
from gplc._types import Array
from gplc.models.in_basis.base import FIRST_ROWS, WithCoefficients
from gplc.models.latent_variance import LatentVariance
from gplc.processes.hilbert import Basis
from gplc.processes.links import Link, LinkedNoise

# Mean and SD of log |e|, e ~ N(0, 1).
LOG_MEAN, LOG_SD = -0.635, 1.11
# A chain begins with f as if the noise had this SD.
FIRST_SD = 0.5


@dataclass(frozen=True, eq=False)
class VarianceTask:
    """What a block of rows says of f = Phi a and z = m + Psi b."""

    bases: tuple[Basis, ...]
    coefficients: tuple[Array, ...]
    link: Link
    learned: Array
    mean_z: float

    def at(self, X: Array) -> tuple[tuple[Array, ...], Array, LinkedNoise]:
        """Features of both, f, and the noise."""
        features = tuple(basis.features(X) for basis in self.bases)
        f, z = (
            basis.at_rows(phi, b).sum(axis=1)
            for basis, phi, b in zip(self.bases, features, self.coefficients, strict=True)
        )
        return features, f, LinkedNoise(self.link, self.mean_z + z)

    def scores(self, noise: LinkedNoise, gap: Array) -> tuple[float, Array, Array, Array]:
        """Log likelihood, and its derivatives by f, z and what the link learns, of each row."""
        variance = noise.variance(self.learned)
        value = -0.5 * float(np.sum(gap * gap / variance + np.log(2.0 * np.pi * variance)))
        by_variance = 0.5 * (gap * gap / variance - 1.0) / variance
        by_learned = np.empty((0, gap.size))
        if self.link.by_weights is not None:
            by_learned = self.link.by_weights(noise.z, self.learned) * by_variance
        by_z = by_variance * noise.slope(self.learned)
        return value, gap / variance, by_z, by_learned.T

    def __call__(self, X: Array, y: Array) -> tuple[Array | float, ...]:
        """Log likelihood, and its gradient by the coefficients and what the link learns."""
        features, f, noise = self.at(X)
        value, by_f, by_z, by_learned = self.scores(noise, y - f)
        by_b = [
            basis.pulled(phi, np.repeat(each[:, None], _kinds(basis), axis=1))
            for basis, phi, each in zip(self.bases, features, (by_f, by_z), strict=True)
        ]
        return value, np.concatenate(by_b), by_learned.sum(axis=0)


def _kinds(basis: Basis) -> int:
    return len(basis.terms)


class LatentVarianceInBasis(WithCoefficients, LatentVariance):
    """`LatentVariance` with f = Phi a and z = m + Psi b, without jitter.

    Examples
    --------
    >>> import numpy as np
    >>> from gplc.models.in_basis import Axes
    >>> from gplc.processes.hilbert import axis_for
    >>> axes = Axes((axis_for(0.0, 1.0, shortest=1.0, longest=1.0),))
    >>> model = LatentVarianceInBasis([[0.0], [1.0]], [0.5, -0.5], axes=axes)
    >>> model.n_latent
    14
    """

    def _bases(self) -> tuple[Basis, ...]:
        inputs = self._grid.inputs
        return Basis(self._main_kernel(), inputs), Basis(self.kernel_z, inputs)

    def components_of(self, nodes: int) -> int:
        """One: z at a new row is known with the coefficients."""
        return 1

    def _task(self, theta: Array, coefficients: tuple[Array, ...]) -> VarianceTask:
        return VarianceTask(
            self.bases, coefficients, self.link, theta[self.noise_place], self.mean_z
        )

    def _scores(
        self, rng: np.random.Generator, X: Array, theta: Array, coefficients: tuple[Array, ...]
    ) -> tuple[tuple[Array, ...], Array]:
        task = self._task(theta, coefficients)
        _, _, noise = task.at(X)
        gap = np.sqrt(noise.variance(task.learned)) * rng.standard_normal(len(X))
        _, by_f, by_z, by_learned = task.scores(noise, gap)
        scores = tuple(
            np.repeat(each[:, None], _kinds(basis), axis=1)
            for basis, each in zip(self.bases, (by_f, by_z), strict=True)
        )
        return scores, by_learned

    def starting_latent(self, rng: np.random.Generator, theta: Array) -> Array:
        """F through some of the rows, then z through the logs of what is left."""
        X, y = self.rows.some(rng, FIRST_ROWS)
        log_sds = self._splits(self.log_sds(theta))
        functions = [basis.functions(basis.features(X)) for basis in self.bases]
        together = np.hstack(
            [each[:, basis.row_place] for each, basis in zip(functions, self.bases, strict=True)]
        )
        mixed = usable(self.mixing(theta)).of_rows(together)
        features = np.split(mixed, [self.bases[0].size], axis=1)
        first = self._regressed(rng, features[0], y, FIRST_SD, log_sds[0])
        gap = y - features[0] @ (np.exp(np.clip(log_sds[0], -300.0, 300.0)) * first)
        size = np.maximum(np.abs(gap), 1e-3 * np.abs(gap).max())
        level = np.log(size) - LOG_MEAN - self.mean_z
        if self.link.name != "log":
            level = size * np.exp(-LOG_MEAN) - self.mean_z
        second = self._regressed(rng, features[1], level, LOG_SD, log_sds[1])
        return np.concatenate([first, second])

    def _conditioned(self, state: Any) -> Any:
        return ConditionedOnBoth(
            self._task(state.theta, self.coefficients(state.theta, state.latent))
        )


class ConditionedOnBoth:
    """Prediction for one draw of theta and all coefficients: f and z are known."""

    def __init__(self, task: VarianceTask) -> None:
        self._task = task

    def components(self, X: Array, nodes: Array) -> tuple[Array, Array]:
        """f(x), and the SD of the noise there."""
        _, f, noise = self._task.at(X)
        return f[:, None], np.sqrt(noise.variance(self._task.learned))[:, None]

    def means(self, X: Array, nodes: Array) -> Array:
        """f(x)."""
        return self.components(X, nodes)[0]

    def function(self, X: Array) -> tuple[Array, Array]:
        """f(x), which is known."""
        f = self.components(X, np.empty(0))[0][:, 0]
        return f, np.zeros(f.size)

    def residual_variance(self, X: Array, nodes: Array) -> Array:
        """The variance of the noise."""
        return np.asarray(self.components(X, nodes)[1][:, 0] ** 2)
