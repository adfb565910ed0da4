"""STD in a basis: the coefficients are integrated out, and one pass over the rows is enough."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import lapack

from gplc._linalg import LOG_2PI, usable
from gplc._types import Array
from gplc.models.base import Unknowns
from gplc.models.in_basis.base import InBasis
from gplc.models.left_out import LeftOut
from gplc.models.standard import Standard
from gplc.processes.hilbert import Basis
from gplc.processes.rows import Rows


class Moments(NamedTuple):
    """All that the rows say: Phi' Phi, Phi' y, y' y and n."""

    squares: Array
    products: Array
    total: float
    n: int


@dataclass(frozen=True, eq=False)
class MomentsTask:
    """The moments of a block of rows."""

    basis: Basis

    def __call__(self, X: Array, y: Array) -> tuple[Array | float, ...]:
        """Phi' Phi, Phi' y, y' y."""
        features = self.basis.features(X)
        return features.T @ features, features.T @ y, float(y @ y)


class Coefficients(NamedTuple):
    """b given theta and all rows: a Gaussian, in units of its prior SDs."""

    sds: Array  # prior SDs s
    lower: Array  # L, with L L' the precision of u = b / s
    mean: Array  # of u


class StandardState(NamedTuple):
    """A value of theta, with the coefficients given it."""

    theta: Array
    latent: Array
    coefficients: Coefficients | None
    log_density: float

    @property
    def unknowns(self) -> Unknowns:
        """The unknowns alone."""
        return Unknowns(self.theta, self.latent)


class StandardInBasis(InBasis, Standard):
    """`Standard` with f = Phi b, b integrated out: log N(y | 0, Phi S Phi' + sigma^2 I).

    After one pass over the rows nothing depends on their number.

    Examples
    --------
    >>> import numpy as np
    >>> from gplc.models.in_basis import Axes
    >>> from gplc.processes.hilbert import axis_for
    >>> axes = Axes((axis_for(0.0, 1.0, shortest=1.0, longest=1.0),))
    >>> model = StandardInBasis([[0.0], [1.0]], [0.5, -0.5], axes=axes)
    >>> round(model.log_density(model.prior_mean()), 3)  # the exact model has -5.820
    -5.82
    """

    def __init__(self, *data: Any, **settings: Any) -> None:
        super().__init__(*data, **settings)
        self._moments: Moments | None = None

    def _bases(self) -> tuple[Basis, ...]:
        return (Basis(self._main_kernel(), self._grid.inputs),)

    @property
    def conditioned_size(self) -> int:
        """A factor of the matrix of coefficients."""
        return self.bases[0].size ** 2

    @property
    def work(self) -> float:
        """That of a factor of the coefficients."""
        return (self.bases[0].size / 150.0) ** 2

    def on_rows(self, rows: Rows) -> Self:
        """The same model of rows wherever they are."""
        other = super().on_rows(rows)
        if rows is not self.rows:
            other._moments = None
        return other

    def told(self) -> dict[str, Array]:
        """The moments, if there are rows that are not kept."""
        if self.rows.n == self.n:
            return {}
        squares, products, total, _ = self.moments
        return {"squares": squares, "products": products, "total": np.array(total)}

    def with_told(self, arrays: Mapping[str, Array]) -> Self:
        """With the moments of a file."""
        values = arrays["squares"], arrays["products"], float(arrays["total"])
        if arrays["squares"].shape != (self.bases[0].size,) * 2:
            raise ValueError("what its rows have told is not of its basis; use another copy")
        self._moments = Moments(*values, self.rows.n)
        return self

    def check_rows(self) -> None:
        """Nothing more is wanted of the rows."""

    @property
    def moments(self) -> Moments:
        """What the rows say, computed when first asked for."""
        if self._moments is None:
            squares, products, total = self.rows.total(MomentsTask(self.bases[0]))
            self._moments = Moments(squares, products, float(total), self.rows.n)
        return self._moments

    def state(self, unknowns: Unknowns) -> StandardState:  # type: ignore[override]
        """The state at theta: a factor of the matrix of coefficients."""
        theta, process, moments = unknowns.theta, self.processes[0], self.moments
        self.ledger["chol(I + s Phi' Phi s / sigma^2)"] += 1
        with np.errstate(all="ignore"):
            variance = float(process.noise.variance(theta[process.noise_place]))
            sds = np.exp(np.minimum(self.bases[0].log_sds(theta[process.place]), 300.0))
            precision = moments.squares * (sds[:, None] * sds / variance)
            precision[np.diag_indices_from(precision)] += 1.0
            pull = sds * moments.products / variance
            if not (variance > 0.0 and np.all(np.isfinite(precision))):
                return StandardState(theta, unknowns.latent, None, -math.inf)
            lower, status = lapack.dpotrf(precision, lower=1, clean=1)
            if status != 0:
                return StandardState(theta, unknowns.latent, None, -math.inf)
            half, _ = lapack.dtrtrs(lower, pull, lower=1)
            mean, _ = lapack.dtrtrs(lower, half, lower=1, trans=1)
            density = -0.5 * (moments.total / variance - float(half @ half))
            density -= float(np.log(np.diagonal(lower)).sum())
            density -= 0.5 * moments.n * (math.log(variance) + LOG_2PI)
            density += self.priors.log_density(theta)
        found = density if math.isfinite(density) else -math.inf
        return StandardState(theta, unknowns.latent, Coefficients(sds, lower, mean), found)

    def _with_hyperparameter(  # type: ignore[override]
        self, state: StandardState, index: int, theta: Array
    ) -> StandardState:
        return self.state(Unknowns(theta, state.latent))

    def gradient_at(self, state: StandardState) -> Unknowns:  # type: ignore[override]
        """By log s_k it is E(u_k^2) - 1, by log sigma E(|y - Phi b|^2) / sigma^2 - n."""
        assert state.coefficients is not None
        process, moments, theta = self.processes[0], self.moments, state.theta
        sds, lower, mean = state.coefficients
        inverse, _ = lapack.dtrtri(lower, lower=1)
        spread = np.einsum("ij,ij->j", inverse, inverse)
        by_theta = np.zeros(theta.size)
        slopes = self.bases[0].slopes(theta[process.place])
        by_theta[process.place] = slopes @ (mean**2 + spread - 1.0)
        variance = float(process.noise.variance(theta[process.noise_place]))
        b = sds * mean
        left = moments.total - 2.0 * float(b @ moments.products)
        left += float(b @ moments.squares @ b)
        # tr(Phi' Phi Cov(b)) / sigma^2 is what the data have told: size - tr(Cov(u)).
        told = mean.size - float(spread.sum())
        by_scale = left / variance + told - moments.n
        weights = np.full(1, 0.5 * by_scale / variance)
        by_theta[process.noise_place] = process.noise.gradient(theta[process.noise_place], weights)
        return Unknowns(by_theta + self.priors.gradient(theta), np.empty(0))

    def condition(self, unknowns: Unknowns) -> Any:
        """Fix theta at one draw, for prediction."""
        return self._conditioned(self.state(unknowns))

    def _conditioned(self, state: Any) -> Any:
        process = self.processes[0]
        variance = float(process.noise.variance(state.theta[process.noise_place]))
        return ConditionedOnCoefficients(self.bases[0], state.coefficients, variance)

    def left_out(self, unknowns: Unknowns) -> LeftOut:
        """Each y_i given all others and theta.

        Its mean is y_i - r_i / (1 - h_i), its variance sigma^2 / (1 - h_i), with r_i the residual
        and h_i the variance of f(x_i) over sigma^2.
        """
        conditioned = self.condition(unknowns)
        mean, variance = conditioned.function(self.X)
        rest = np.maximum(1.0 - variance / conditioned.variance, 1e-12)
        found = self.y - (self.y - mean) / rest
        return LeftOut(found[:, None], np.sqrt(conditioned.variance / rest)[:, None], np.ones(1))

    def replicate(self, rng: np.random.Generator, unknowns: Unknowns) -> Array:
        """New responses at the same inputs, given y: the function is drawn as a whole."""
        sds, lower, mean = usable(self.state(unknowns).coefficients)
        noise = rng.standard_normal(mean.size)
        u = mean + lapack.dtrtrs(lower, noise, lower=1, trans=1)[0]
        f = self.bases[0].at_rows(self.bases[0].features(self.X), sds * u).sum(axis=1)
        process = self.processes[0]
        sd = math.sqrt(float(process.noise.variance(unknowns.theta[process.noise_place])))
        return np.asarray(f + sd * rng.standard_normal(self.n))

    def sample_data(self, rng: np.random.Generator, unknowns: Unknowns) -> Array:
        """A draw of y from its prior given theta."""
        process, basis = self.processes[0], self.bases[0]
        sds = np.exp(basis.log_sds(unknowns.theta[process.place]))
        b = sds * rng.standard_normal(basis.size)
        f = basis.at_rows(basis.features(self.X), b).sum(axis=1)
        sd = math.sqrt(float(process.noise.variance(unknowns.theta[process.noise_place])))
        return np.asarray(f + sd * rng.standard_normal(self.n))


class ConditionedOnCoefficients:
    """Prediction for one draw of theta: b is Gaussian."""

    def __init__(self, basis: Basis, coefficients: Coefficients, variance: float) -> None:
        self._basis, self._coefficients, self.variance = basis, coefficients, variance

    def components(self, X: Array, nodes: Array) -> tuple[Array, Array]:
        """The mean of f(x), and SDs of f(x) and the noise together."""
        mean, variance = self.function(X)
        return mean[:, None], np.sqrt(variance + self.variance)[:, None]

    def means(self, X: Array, nodes: Array) -> Array:
        """The mean of f(x) alone."""
        sds, _, mean = self._coefficients
        return self._basis.at_rows(self._basis.features(X), sds * mean).sum(axis=1)[:, None]

    def function(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of f(x)."""
        sds, lower, mean = self._coefficients
        features = self._basis.features(X) * sds
        half, _ = lapack.dtrtrs(lower, features.T, lower=1)
        return features @ mean, np.einsum("ij,ij->j", half, half)

    def residual_variance(self, X: Array, nodes: Array) -> Array:
        """sigma^2."""
        return np.full(X.shape[0], self.variance)
