"""GPLC given one draw: y at new inputs, with w* at nodes or averaged over N(0, 1)."""

import numpy as np
from numpy.typing import NDArray

from gplc._linalg import usable
from gplc._types import Array
from gplc.kernels.cross import Cross
from gplc.models.base import LEAST_VARIANCE
from gplc.processes import Dense
from gplc.processes.dense import gaussian_conditional


class ConditionedCovariate:
    """Prediction for one draw of theta and w."""

    def __init__(self, solved: Dense) -> None:
        process = solved.process
        self._bound, self._theta = process.bound, solved.theta[process.place]
        self._W = usable(solved.W)
        self._factor, self._pulls = usable(solved.factor), solved.pulls()
        self._noise, self._noise_theta = solved.noise, solved.theta[process.noise_place]

    def _noise_variance(self, X: Array) -> Array:
        """Variance of the noise of a new case, (rows, 1)."""
        variance = self._noise.at(self._noise_theta, X)
        return np.broadcast_to(variance, X.shape[:1])[:, None]

    def _sds(self, X: Array, variance: Array) -> Array:
        """SDs of y from variances of g."""
        # Without learned noise g may be known to rounding at a new row.
        return np.sqrt(np.maximum(variance + self._noise_variance(X), LEAST_VARIANCE))

    def _nodes(self, nodes: Array) -> Array:
        """Values of w* as columns: (n_covariates, s)."""
        return nodes.reshape(len(self._W), -1)

    def _cross(self, X: Array) -> Cross:
        return self._bound.cross(self._theta, X, self._W)

    def _given_latent(self, cross: Cross, nodes: Array) -> tuple[Array, Array]:
        """Mean and variance of g(x, w) at each node w: each (rows, nodes)."""
        values = self._nodes(nodes)
        own = cross.variances(values)
        variance = np.empty(own.shape)
        # One node at a time: what is computed for one stays in the processor's cache.
        for s, matrix in enumerate(cross.each(values)):
            _, variance[:, s] = gaussian_conditional(self._factor, self._pulls, matrix, own[:, s])
        return cross.times(values, self._pulls), variance

    def components(self, X: Array, nodes: Array) -> tuple[Array, Array]:
        """Means and SDs of y given w* = each node."""
        mean, variance = self._given_latent(self._cross(X), nodes)
        return mean, self._sds(X, variance)

    def components_between(
        self, X: Array, nodes: Array, few: Array, nearest: NDArray[np.intp]
    ) -> tuple[Array, Array]:
        """The same, where the variance at each node is that at the nearest of a few others."""
        cross = self._cross(X)
        _, variance = self._given_latent(cross, few)
        sds = self._sds(X, variance)
        return cross.times(self._nodes(nodes), self._pulls), sds[:, nearest]

    def means(self, X: Array, nodes: Array) -> Array:
        """Means of y given w* = each node."""
        return self._cross(X).times(self._nodes(nodes), self._pulls)

    def function(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of f(x), the average of g(x, w) over w ~ N(0, 1)."""
        return self._function(self._cross(X))

    def _function(self, cross: Cross) -> tuple[Array, Array]:
        average, variance = cross.average(), cross.average_variance()
        return gaussian_conditional(self._factor, self._pulls, average, variance)

    def residual_variance(self, X: Array, nodes: Array) -> Array:
        """E[Var(y | x, g)]: the variance of g over w, and sigma^2."""
        cross = self._cross(X)
        mean, variance = self._given_latent(cross, nodes)
        centre, spread = self._function(cross)
        # E over g of (integral of g^2) - f^2. The nodes are a sample: never below the noise.
        inside = np.mean((mean - centre[:, None]) ** 2 + variance, axis=1) - spread
        return np.maximum(inside, 0.0) + self._noise_variance(X)[:, 0]
