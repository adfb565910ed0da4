"""STD: a Gaussian process with Gaussian noise of constant variance."""

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from gplc._linalg import Factor, solve, solve_lower
from gplc.kernels import Bound, Touches
from gplc.kernels.bound import Pieces
from gplc.models.base import (
    Model,
    Unknowns,
    Update,
    add_to_diagonal,
    priors_of,
    weights_of_gradient,
)
from gplc.priors import DEFAULTS, LogNormal
from gplc.samplers.hamiltonian import Hamiltonian
from gplc.samplers.slice import Slice

Array = NDArray[np.float64]
T = TypeVar("T")


class StandardState(NamedTuple):
    """theta, with correlation matrices and the factor of C."""

    theta: Array
    correlation: Pieces
    factor: Factor | None
    log_density: float

    @property
    def unknowns(self) -> Unknowns:
        """Theta alone: there is nothing latent."""
        return Unknowns(self.theta, np.empty(0))


class Standard(Model):
    """y_i = f(x_i) + e_i,  f ~ GP(0, K),  e_i ~ N(0, sigma^2).

    theta = (theta of the kernel, log sigma). With the default kernel that is (log eta, log rho_1,
    ..., log rho_p, log sigma), `names` = ``signal_sd``, ``length_scale`` (with an index if ARD),
    ``noise_sd``.

    Examples
    --------
    >>> import numpy as np
    >>> model = Standard([[0.0], [1.0]], [0.5, -0.5])
    >>> model.names
    ('signal_sd', 'length_scale', 'noise_sd')
    >>> round(model.log_density(model.prior_mean()), 4)
    -5.8204
    """

    key = "std"
    title = "STD"
    noise_summary = "Gaussian noise, the same everywhere"
    noise_varies = False
    noise_is_gaussian = True

    @property
    def n_latent(self) -> int:
        """None."""
        return 0

    def _hyperparameters(self) -> dict[str, LogNormal]:
        self._bound = self._bind_main()
        return priors_of(self._bound) | {"noise_sd": DEFAULTS["noise_sd"]}

    def _kernels(self) -> list[Bound]:
        return [self._bound]

    def state(self, unknowns: Unknowns) -> StandardState:
        """The state at theta, computed from nothing."""
        return self._state(unknowns.theta, self._correlation(unknowns.theta))

    def _correlation(self, theta: Array) -> Pieces:
        self.ledger["C"] += 1
        return self._bound.pieces(theta[:-1])

    def _state(self, theta: Array, correlation: Pieces) -> StandardState:
        matrix = self._bound.matrix(theta[:-1], correlation)
        factor = self._factorise(add_to_diagonal(matrix, np.exp(2.0 * theta[-1])), self.y, "C")
        if factor is None:
            return StandardState(theta, correlation, None, -np.inf)
        density = factor.log_density + self.priors.log_density(theta)
        return StandardState(theta, correlation, factor, density)

    def _with_hyperparameter(
        self, state: StandardState, index: int, theta: Array
    ) -> StandardState:
        correlation = state.correlation
        if index < theta.size - 1 and self._bound.touches(index) is not Touches.SCALE:
            self.ledger["C"] += 1
            correlation = self._bound.changed(index, theta[:-1], correlation)
        return self._state(theta, correlation)

    def gradient_at(self, state: StandardState) -> Unknowns:
        """Gradient with respect to theta."""
        theta = state.theta
        weights = weights_of_gradient(usable(state.factor))
        by_kernel, _ = self._bound.gradient(theta[:-1], state.correlation, None, weights)
        by_noise = 2.0 * np.exp(2.0 * theta[-1]) * np.trace(weights)
        return Unknowns(np.append(by_kernel, by_noise) + self.priors.gradient(theta), np.empty(0))

    def sample_latent(self, rng: np.random.Generator, theta: Array) -> Array:
        """Nothing."""
        return np.empty(0)

    def covariance(self, unknowns: Unknowns) -> Array:
        """K(x_i, x_j) + sigma^2 [i = j]."""
        theta = unknowns.theta
        matrix = self._bound.matrix(theta[:-1], self._correlation(theta))
        return add_to_diagonal(matrix, np.exp(2.0 * theta[-1]))

    def condition(self, unknowns: Unknowns) -> "ConditionedStandard":
        """Fix theta, for prediction."""
        return ConditionedStandard(self, self.state(unknowns))

    def paper_scheme(self, width: float = 1.0) -> list[Update]:
        """Step-out slice sampling of each hyperparameter in turn, as in the paper."""
        return [Update(name, Slice(width)) for name in self.names]

    def default_scheme(self, leaps: int = 2) -> list[Update]:
        """Hamiltonian Monte Carlo of all hyperparameters together."""
        return [Update("all", Hamiltonian(leaps, dense=True)), *self._wide_moves()]

    schemes = {"default": default_scheme, "paper": paper_scheme}  # noqa: RUF012


class ConditionedStandard:
    """Prediction for one draw of theta."""

    def __init__(self, model: Standard, state: StandardState) -> None:
        self._bound = model._bound
        self._theta = state.theta[:-1]
        self._factor = usable(state.factor)
        self._noise_variance = float(np.exp(2.0 * state.theta[-1]))

    def components(self, X: Array, nodes: Array) -> tuple[Array, Array]:
        """K' C^-1 y and its SD; one component, whatever the nodes."""
        mean, variance = self.function(X)
        return mean[:, None], np.sqrt(variance + self._noise_variance)[:, None]

    def means(self, X: Array, nodes: Array) -> Array:
        """K' C^-1 y alone."""
        cross = self._bound.cross(self._theta, X).at()
        return (cross @ solve(self._factor))[:, None]

    def function(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of f(x)."""
        cross = self._bound.cross(self._theta, X).at()
        return gaussian_conditional(self._factor, cross, self._bound.variance(self._theta, X))

    def residual_variance(self, X: Array, nodes: Array) -> Array:
        """sigma^2."""
        return np.full(X.shape[0], self._noise_variance)


def usable(factor: T | None) -> T:
    """The factor, or an error that says what to do if there is none."""
    if factor is None:
        raise ValueError(
            "the covariance matrix at this draw is not positive definite; it was not made by a "
            "chain of this model, or the noise SD is too small: sample again, or raise the prior "
            "mean of noise_sd"
        )
    return factor


def gaussian_conditional(
    factor: Factor, cross: Array, variance: float | Array
) -> tuple[Array, Array]:
    """K' C^-1 y and v - k' C^-1 k for each row k of `cross` (overwritten)."""
    solved = solve_lower(factor, cross.T, overwrite=True).T
    # Rounding can take the difference below zero where x is close to a case with little noise.
    left = variance - np.einsum("ij,ij->i", solved, solved)
    return solved @ factor.whitened, np.maximum(left, 0.0)
