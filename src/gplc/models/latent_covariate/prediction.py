"""GPLC given one draw: y at new inputs, with w* at nodes or averaged over N(0, 1)."""

import math

import numpy as np
from numpy.typing import NDArray

from gplc._linalg import usable
from gplc.processes import Dense
from gplc.processes.dense import gaussian_conditional

Array = NDArray[np.float64]

# The rule by which g(x, w) is averaged over w ~ N(0, 1) where no formula is at hand: trapezoidal,
# with so many nodes for each of 1, 2, ... latent covariates, up to so far out.
RULE_NODES, RULE_END = (120, 22, 10), (7.5, 5.0, 4.0)


def latent_rule(n_covariates: int) -> tuple[Array, Array]:
    """Nodes (n_covariates, s) and weights (s,) of a rule for averages over w ~ N(0, I).

    Examples
    --------
    >>> nodes, weights = latent_rule(1)
    >>> round(float(weights @ nodes[0] ** 4), 6)
    3.0
    """
    which = min(n_covariates, len(RULE_NODES)) - 1
    each = np.linspace(-RULE_END[which], RULE_END[which], RULE_NODES[which])
    axes = np.meshgrid(*[each] * n_covariates, indexing="ij")
    nodes = np.array([axis.ravel() for axis in axes])
    weights = np.exp(-0.5 * np.sum(nodes**2, axis=0))
    return nodes, weights / weights.sum()


class ConditionedCovariate:
    """Prediction for one draw of theta and w, with any kernel."""

    def __init__(self, solved: Dense) -> None:
        process = solved.process
        self._bound, self._theta = process.bound, solved.theta[process.place]
        self._W = usable(solved.W)
        self._factor = usable(solved.factor)
        self._pulls = solved.pulls()
        self._noise_variance = solved.noise.variance(solved.theta[process.noise_place])

    def _nodes(self, nodes: Array) -> Array:
        """Values of w* as columns: (n_covariates, s)."""
        return nodes.reshape(len(self._W), -1)

    def _given_latent(self, X: Array, nodes: Array) -> tuple[Array, Array]:
        """Mean and variance of g(x, w) at each node w: each (rows, nodes)."""
        cross = self._bound.cross(self._theta, X, self._W)
        values = self._nodes(nodes).T
        mean, variance = np.empty((2, X.shape[0], len(values)))
        # One node at a time: what is computed for one stays in the processor's cache.
        for s, w in enumerate(values):
            own = self._bound.variance(self._theta, X, w)
            mean[:, s], variance[:, s] = gaussian_conditional(
                self._factor, self._pulls, cross.at(w), own
            )
        return mean, variance

    def components(self, X: Array, nodes: Array) -> tuple[Array, Array]:
        """Means and SDs of y given w* = each node."""
        mean, variance = self._given_latent(X, nodes)
        return mean, np.sqrt(variance + self._noise_variance)

    def means(self, X: Array, nodes: Array) -> Array:
        """Means of y given w* = each node."""
        cross = self._bound.cross(self._theta, X, self._W)
        return np.column_stack([cross.at(w) @ self._pulls for w in self._nodes(nodes).T])

    def function(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of f(x), the average of g(x, w) over w ~ N(0, 1), by a fine rule."""
        nodes, weights = latent_rule(len(self._W))
        average = self._bound.cross(self._theta, X, self._W).average(nodes, weights)
        variance = self._bound.average_variance(self._theta, X, nodes, weights)
        return gaussian_conditional(self._factor, self._pulls, average, variance)

    def residual_variance(self, X: Array, nodes: Array) -> Array:
        """E[Var(y | x, g)]: the variance of g over w, and sigma^2."""
        mean, variance = self._given_latent(X, nodes)
        centre, spread = self.function(X)
        # E over g of (integral of g^2) - f^2. The nodes are a sample: never below the noise.
        inside = np.mean((mean - centre[:, None]) ** 2 + variance, axis=1) - spread
        return np.maximum(inside, 0.0) + self._noise_variance


class ConditionedPlain(ConditionedCovariate):
    """The same with the paper's kernel: eta^2 times one factor of x and one of w, and c^2."""

    def __init__(self, solved: Dense) -> None:
        super().__init__(solved)
        (self._w,) = self._W
        self._constant = self._bound.kernel.constant**2  # type: ignore[attr-defined]
        self._signal = float(np.exp(2.0 * self._theta[0]))
        self._rho_square = float(np.exp(2.0 * self._theta[-1]))

    def _x_part(self, X: Array) -> Array:
        """eta^2 times the correlation due to x: (rows, n)."""
        (place,) = self._bound.places
        cases = self._bound.observed[0]
        inner = place.leaf.inner_between(self._theta, X, cases, 1)
        inner *= self._signal
        return inner

    def _by_latent(self, nodes: Array) -> Array:
        """Correlation due to w, of each node with each case: (nodes, n)."""
        return np.exp(-((nodes[:, None] - self._w) ** 2) / self._rho_square)

    def _given_latent(self, X: Array, nodes: Array) -> tuple[Array, Array]:
        x_part = self._x_part(X)
        variance = np.empty((X.shape[0], nodes.size))
        for s, by_latent in enumerate(self._by_latent(nodes)):
            cross = x_part * by_latent
            cross += self._constant
            _, variance[:, s] = gaussian_conditional(
                self._factor, self._pulls, cross, self._constant + self._signal
            )
        return self._means(x_part, nodes), variance

    def means(self, X: Array, nodes: Array) -> Array:
        """Means of y given w* = each node."""
        return self._means(self._x_part(X), nodes)

    def _means(self, x_part: Array, nodes: Array) -> Array:
        """A matrix product, because K is one of x and w."""
        by_latent = self._by_latent(nodes) * self._pulls
        return x_part @ by_latent.T + self._constant * self._pulls.sum()

    def function(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of f(x), the average of g(x, w) over w ~ N(0, 1).

        The averages of the squared exponential over one and over two standard normal w are
        E exp(-(w - w_j)^2 / r) = sqrt(r / (r + 2)) exp(-w_j^2 / (r + 2)) and sqrt(r / (r + 4)),
        with r = rho_w^2, so that f given the draw is Gaussian, exactly.
        """
        r = self._rho_square
        by_latent = math.sqrt(r / (r + 2.0)) * np.exp(-(self._w**2) / (r + 2.0))
        cross = self._x_part(X) * by_latent + self._constant
        variance = self._constant + self._signal * math.sqrt(r / (r + 4.0))
        return gaussian_conditional(self._factor, self._pulls, cross, variance)
