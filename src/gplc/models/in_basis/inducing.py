"""STD with inducing points: their values are integrated out, in a pass over the rows."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from gplc._linalg import LOG_2PI, usable
from gplc._types import Array
from gplc.models.base import Unknowns
from gplc.models.in_basis.base import InBasis
from gplc.models.left_out import LeftOut
from gplc.models.standard import Standard
from gplc.processes.inducing import Induced, Points, Root, through


@dataclass(frozen=True, eq=False)
class ProductsTask:
    """With A = k(X, Z) L^-T of a block of rows: A' A, A' y, y' y."""

    induced: Induced
    root: Root

    def __call__(self, X: Array, y: Array) -> tuple[Array | float, ...]:
        """The products, of the first the lower triangle."""
        functions = self.induced.functions(self.root, X)
        return blas.dsyrk(1.0, functions.T, lower=1), functions.T @ y, float(y @ y)


@dataclass(frozen=True, eq=False)
class PullTask:
    """d/d theta of sum_i E(log N(y_i | f(x_i), sigma^2)), through k(x_i, Z).

    With b = L^-T v, E over v given y, the weights of k(x_i, Z) are
    (y_i E(b)' - k(x_i, Z) E(b b')) / sigma^2.
    """

    induced: Induced
    theta: Array
    mean: Array  # E(b)
    squares: Array  # E(b b')
    variance: float

    def __call__(self, X: Array, y: Array) -> tuple[Array | float, ...]:
        """Of a block of rows."""
        between = self.induced.between(self.theta, X)
        weights = (np.outer(y, self.mean) - between.matrix @ self.squares) / self.variance
        return (self.induced.pulled(self.theta, between, weights),)


class Values(NamedTuple):
    """v given theta and all rows: a Gaussian."""

    root: Root
    lower: Array  # R, with R R' the precision of v
    mean: Array  # of v
    pull: Array  # A' y / sigma^2
    total: float  # y' y


class InducingState(NamedTuple):
    """A value of theta, with the values at the points given it."""

    theta: Array
    latent: Array
    values: Values | None
    log_density: float

    @property
    def unknowns(self) -> Unknowns:
        """The unknowns alone."""
        return Unknowns(self.theta, self.latent)


class StandardWithPoints(InBasis, Standard):
    """`Standard` with f = A v, A = k(X, Z) L^-T, v integrated out: log N(y | 0, A A' + sigma^2 I).

    At new rows what the points leave out is added to the variance of f.

    Examples
    --------
    >>> import numpy as np
    >>> points = Points(((0.0,), (1.0,)))
    >>> model = StandardWithPoints([[0.0], [1.0]], [0.5, -0.5], axes=points)
    >>> round(model.log_density(model.prior_mean()), 4)  # the exact model has -5.8204
    -5.8204
    """

    def _bases(self) -> tuple[Any, ...]:
        assert isinstance(self.axes, Points)
        return (Induced(self._main_kernel(), self.axes),)

    @property
    def _induced(self) -> Induced:
        found: Any = self.bases[0]
        return found

    @property
    def conditioned_size(self) -> int:
        """Two factors of the matrix of the points."""
        return 2 * self._induced.size**2

    @property
    def work(self) -> float:
        """That of a pass over the rows."""
        return self.rows.n * (self._induced.size / 5000.0) ** 2 / 10.0

    def outside(self, X: Array) -> tuple[int, int] | None:
        """None: far from all points there is the prior."""
        return None

    def errors(self, theta: Array) -> float:
        """The share of the variance of f that the points leave out at the rows."""
        return self._induced.error(theta[self.processes[0].place], self.X)

    def _noise_variance(self, theta: Array) -> float:
        process = self.processes[0]
        return float(process.noise.variance(theta[process.noise_place]))

    def state(self, unknowns: Unknowns) -> InducingState:  # type: ignore[override]
        """The state at theta: one pass over the rows."""
        theta, process, induced = unknowns.theta, self.processes[0], self._induced
        self.ledger["passes over the rows"] += 1
        nowhere = InducingState(theta, unknowns.latent, None, -math.inf)
        with np.errstate(all="ignore"):
            variance = self._noise_variance(theta)
            root = induced.root(theta[process.place])
            if root is None or not variance > 0.0:
                return nowhere
            squares, products, total = self.rows.total(ProductsTask(induced, root))
            precision = squares / variance
            precision[np.diag_indices_from(precision)] += 1.0
            if not np.all(np.isfinite(precision)):
                return nowhere
            lower, status = lapack.dpotrf(precision, lower=1, clean=1)
            if status != 0:
                return nowhere
            pull = products / variance
            half, _ = lapack.dtrtrs(lower, pull, lower=1)
            mean, _ = lapack.dtrtrs(lower, half, lower=1, trans=1)
            density = -0.5 * (float(total) / variance - float(half @ half))
            density -= float(np.log(np.diagonal(lower)).sum())
            density -= 0.5 * self.rows.n * (math.log(variance) + LOG_2PI)
            density += self.priors.log_density(theta)
        found = density if math.isfinite(density) else -math.inf
        values = Values(root, lower, mean, pull, float(total))
        return InducingState(theta, unknowns.latent, values, found)

    def _with_hyperparameter(  # type: ignore[override]
        self, state: InducingState, index: int, theta: Array
    ) -> InducingState:
        return self.state(Unknowns(theta, state.latent))

    def gradient_at(self, state: InducingState) -> Unknowns:  # type: ignore[override]
        """The mean of that of log p(y | v, theta), over v given y: another pass.

        Through L it is that of -tril(E(v v') - I), with half the diagonal.
        """
        root, lower, mean, pull, total = usable(state.values)
        process, induced, theta = self.processes[0], self._induced, state.theta
        self.ledger["passes over the rows"] += 1
        variance = self._noise_variance(theta)
        inverse, _ = lapack.dtrtri(lower, lower=1)
        spread = inverse.T @ inverse
        squares = spread + np.outer(mean, mean)
        inside = np.tril(np.eye(mean.size) - squares)
        inside[np.diag_indices_from(inside)] *= 0.5
        by_theta = np.zeros(theta.size)
        by_theta[process.place] = induced.pulled_through_root(root, inside)
        b, _ = lapack.dtrtrs(root.lower, mean, lower=1, trans=1)
        half, _ = lapack.dtrtrs(root.lower, squares, lower=1, trans=1)
        of_b, _ = lapack.dtrtrs(root.lower, half.T, lower=1, trans=1)
        (pulled,) = self.rows.total(PullTask(induced, root.theta, b, of_b, variance))
        by_theta[process.place] += pulled
        left = total / variance - float(mean @ pull) - float(mean @ mean)
        told = mean.size - float(np.trace(spread))
        weights = np.full(1, 0.5 * (left + told - self.rows.n) / variance)
        by_theta[process.noise_place] = process.noise.gradient(theta[process.noise_place], weights)
        return Unknowns(by_theta + self.priors.gradient(theta), np.empty(0))

    def condition(self, unknowns: Unknowns) -> Any:
        """Fix theta at one draw, for prediction: a pass over the rows."""
        return self._conditioned(self.state(unknowns))

    def _conditioned(self, state: Any) -> Any:
        return ConditionedOnValues(
            self._induced, usable(state.values), self._noise_variance(state.theta)
        )

    def left_out(self, unknowns: Unknowns) -> LeftOut:
        """Each y_i given all others and theta, as if at a new row.

        As in `StandardInBasis`, with what the points leave out.
        """
        given = self.condition(unknowns)
        mean, told, lost = given.parts(self.X)
        rest = np.maximum(1.0 - told / given.variance, 1e-12)
        found = self.y - (self.y - mean) / rest
        return LeftOut(found[:, None], np.sqrt(given.variance / rest + lost)[:, None], np.ones(1))

    def _drawn(self, rng: np.random.Generator, unknowns: Unknowns, root: Root, v: Array) -> Array:
        f = self._induced.functions(root, self.X) @ v
        sd = math.sqrt(self._noise_variance(unknowns.theta))
        return np.asarray(f + sd * rng.standard_normal(self.n))

    def replicate(self, rng: np.random.Generator, unknowns: Unknowns) -> Array:
        """New responses at the same inputs, given y: the function is drawn as a whole."""
        root, lower, mean, _, _ = usable(self.state(unknowns).values)
        noise = rng.standard_normal(mean.size)
        v = mean + lapack.dtrtrs(lower, noise, lower=1, trans=1)[0]
        return self._drawn(rng, unknowns, root, v)

    def sample_data(self, rng: np.random.Generator, unknowns: Unknowns) -> Array:
        """A draw of y from its prior given theta."""
        root = usable(self._induced.root(unknowns.theta[self.processes[0].place]))
        return self._drawn(rng, unknowns, root, rng.standard_normal(self._induced.size))


class ConditionedOnValues:
    """Prediction for one draw of theta: v is Gaussian."""

    def __init__(self, induced: Induced, values: Values, variance: float) -> None:
        self._induced, self._values, self.variance = induced, values, variance

    def parts(self, X: Array) -> tuple[Array, Array, Array]:
        """The mean of f(x), its variance given the rows, and what the points leave out."""
        root, lower, mean, _, _ = self._values
        functions = through(root, self._induced.between(root.theta, X).matrix)
        half, _ = lapack.dtrtrs(lower, functions.T, lower=1)
        lost = self._induced.left_out(root, X, functions)
        return functions @ mean, np.einsum("ij,ij->j", half, half), lost

    def components(self, X: Array, nodes: Array) -> tuple[Array, Array]:
        """The mean of f(x), and SDs of f(x) and the noise together."""
        mean, variance = self.function(X)
        return mean[:, None], np.sqrt(variance + self.variance)[:, None]

    def means(self, X: Array, nodes: Array) -> Array:
        """The mean of f(x) alone."""
        root, _, mean, _, _ = self._values
        return (self._induced.functions(root, X) @ mean)[:, None]

    def function(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of f(x)."""
        mean, told, lost = self.parts(X)
        return mean, told + lost

    def residual_variance(self, X: Array, nodes: Array) -> Array:
        """sigma^2."""
        return np.full(X.shape[0], self.variance)
