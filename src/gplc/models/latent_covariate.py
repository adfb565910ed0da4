"""GPLC: a Gaussian process with a latent covariate."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gplc._compiled import covariance as compiled_covariance
from gplc._compiled import covariate_sweep
from gplc._linalg import LOG_2PI, Factor, inverse, solve, with_whitened
from gplc.models.base import (
    LOG_LIMIT,
    Model,
    Part,
    Unknowns,
    Update,
    add_to_diagonal,
    weights_of_gradient,
)
from gplc.models.standard import gaussian_conditional, usable
from gplc.samplers.protocol import Info, Point, ScalarTarget
from gplc.samplers.slice import Slice
from gplc.samplers.sweeps import Direct, SliceSweep, SymmetricProposal

Array = NDArray[np.float64]

# Noise variance that is tried for prediction if C cannot be factored, in units of K(x, x).
RAISED_NOISE = (1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10)

# Cases per block of the compiled sweep: a matter of speed only.
BLOCK_SIZE = 16


class CovariateState(NamedTuple):
    """theta and w, with correlations and the factor of C."""

    theta: Array
    w: Array
    x_correlation: Array  # of x alone
    correlation: Array  # of (x, w)
    factor: Factor | None
    log_density: float

    @property
    def unknowns(self) -> Unknowns:
        """Theta and w."""
        return Unknowns(self.theta, self.w)


class LatentCovariate(Model):
    """y_i = g(x_i, w_i) + e_i,  g ~ GP(0, K),  w_i ~ N(0, 1),  e_i ~ N(0, sigma^2).

    K((x, w), (x', w')) = c^2 + eta^2 exp(-sum_k (x_k - x'_k)^2 / rho_k^2 - (w - w')^2 / rho_w^2)

    theta = (log eta, log rho_1, ..., log rho_p, log rho_w, log sigma); `names` = ``signal_sd``,
    ``length_scale`` (with an index if ARD), ``latent_length_scale``, ``noise_sd``.

    Besides its hyperparameters it has these parts: ``w`` (sweep over single values); three under
    which the likelihood does not change at all: ``shift`` of all w, joint ``scale`` of w and
    rho_w, and ``reflection`` of w; and ``fold``, a reflection of w in a stretch of one input.

    Examples
    --------
    >>> import numpy as np
    >>> model = LatentCovariate([[0.0], [1.0]], [0.5, -0.5])
    >>> model.names
    ('signal_sd', 'length_scale', 'latent_length_scale', 'noise_sd')
    >>> round(model.log_density(model.prior_mean()), 4)
    -8.5772
    """

    key = "gplc"

    @property
    def n_latent(self) -> int:
        """One w per case."""
        return self.n

    def _hyperparameter_names(self) -> tuple[str, ...]:
        self._distances = self.kernel.distances(self.X)
        return (*self.kernel.names(self.X.shape[1]), "latent_length_scale", "noise_sd")

    def _latent_parts(self) -> dict[str, Part]:
        return {
            "w": lambda state: (
                Point(state.w, state.log_density, state),
                CovariateSweep(self, state),
            ),
            "shift": lambda state: (
                Point(0.0, state.log_density, state),
                LatentShift(self, state),
            ),
            "scale": self._scale_part,
            "reflection": lambda state: (
                Point(1.0, state.log_density, state),
                LatentReflection(state),
            ),
            "fold": lambda state: (
                Point(state.w, state.log_density, state),
                LatentFold(self),
            ),
        }

    def state(self, unknowns: Unknowns) -> CovariateState:
        """The state at theta and w, computed from nothing."""
        x_correlation = self._x_correlation(unknowns.theta)
        return self._state(
            unknowns.theta,
            unknowns.latent,
            x_correlation,
            self._correlation(unknowns.theta, unknowns.latent, x_correlation),
        )

    def _x_correlation(self, theta: Array) -> Array:
        self.ledger["C"] += 1
        return self.kernel.correlation(theta[:-2], self._distances)

    def _correlation(self, theta: Array, w: Array, x_correlation: Array) -> Array:
        return compiled_covariance.times_latent_correlation(
            x_correlation, w, math.exp(-2.0 * theta[-2])
        )

    def _state(
        self, theta: Array, w: Array, x_correlation: Array, correlation: Array
    ) -> CovariateState:
        matrix = self.kernel.scale(theta[:-2], correlation)
        factor = self._factorise(add_to_diagonal(matrix, np.exp(2.0 * theta[-1])), self.y, "C")
        density = -np.inf if factor is None else self._log_density(theta, w, factor)
        return CovariateState(theta, w, x_correlation, correlation, factor, density)

    def _log_density(self, theta: Array, w: Array, factor: Factor) -> float:
        return factor.log_density + self.log_latent_prior(w) + self.priors.log_density(theta)

    def log_latent_prior(self, w: Array) -> float:
        """Log N(w | 0, I)."""
        return -0.5 * (float(w @ w) + w.size * LOG_2PI)

    def _with_hyperparameter(
        self, state: CovariateState, index: int, theta: Array
    ) -> CovariateState:
        x_correlation, correlation = state.x_correlation, state.correlation
        if 0 < index < theta.size - 2:
            x_correlation = self._x_correlation(theta)
        if 0 < index < theta.size - 1:
            correlation = self._correlation(theta, state.w, x_correlation)
        return self._state(theta, state.w, x_correlation, correlation)

    def gradient(self, unknowns: Unknowns) -> Unknowns:
        """Gradient with respect to theta and w."""
        theta, w = unknowns
        state = self.state(unknowns)
        if state.factor is None:
            return Unknowns(np.full(theta.size, np.nan), np.full(w.size, np.nan))
        weights = weights_of_gradient(solve(state.factor), inverse(state.factor))
        by_kernel = self.kernel.gradient(theta[:-2], self._distances, state.correlation, weights)
        gaps = w[:, None] - w
        weighted = weights * state.correlation * np.exp(2.0 * theta[0])
        inverse_square = np.exp(-2.0 * theta[-2])
        by_scale = 2.0 * inverse_square * np.sum(weighted * gaps**2)
        by_noise = 2.0 * np.exp(2.0 * theta[-1]) * np.trace(weights)
        by_w = -4.0 * inverse_square * np.sum(weighted * gaps, axis=1) - w
        by_theta = np.concatenate([by_kernel, [by_scale, by_noise]])
        return Unknowns(by_theta + self.priors.gradient(theta), by_w)

    def sample_latent(self, rng: np.random.Generator, theta: Array) -> Array:
        """W ~ N(0, I)."""
        return rng.standard_normal(self.n)

    def covariance(self, unknowns: Unknowns) -> Array:
        """K((x_i, w_i), (x_j, w_j)) + sigma^2 [i = j]."""
        theta, w = unknowns
        correlation = self._correlation(theta, w, self._x_correlation(theta))
        matrix = self.kernel.scale(theta[:-2], correlation)
        return add_to_diagonal(matrix, np.exp(2.0 * theta[-1]))

    def _scale_part(self, state: CovariateState) -> tuple[Point, ScalarTarget]:
        """Joint scaling w -> s w, rho_w -> s rho_w, as a density of log s.

        The likelihood stays. What is left is the prior of both, and the Jacobian s^n of w (the
        scale of rho_w is logarithmic already).
        """

        def evaluate(log_s: float) -> Point:
            theta = state.theta.copy()
            theta[-2] += log_s
            if state.factor is None or not (
                abs(log_s) <= LOG_LIMIT and abs(theta[-2]) <= LOG_LIMIT
            ):
                return Point(log_s, -np.inf, None)
            w = state.w * math.exp(log_s)
            density = self._log_density(theta, w, state.factor)
            moved = state._replace(theta=theta, w=w, log_density=density)
            return Point(log_s, density + self.n * log_s, moved)

        return Point(0.0, state.log_density, state), ScalarTarget(evaluate)

    def condition(self, unknowns: Unknowns) -> "ConditionedCovariate":
        """Fix theta and w, for prediction.

        Where responses have hardly any noise, chains live at the edge of what can be factored,
        and a factor that a sweep left may not be had again. Then sigma is raised, to the least
        of a few values with which it can.
        """
        theta, w = unknowns
        state = self.state(unknowns)
        for share in RAISED_NOISE:
            if state.factor is not None:
                break
            theta = theta.copy()
            theta[-1] = max(theta[-1], 0.5 * math.log(share * self.kernel.variance(theta[:-2])))
            state = self.state(Unknowns(theta, w))
        return ConditionedCovariate(self, state)

    def paper_scheme(self, width: float = 1.0, latent_width: float = 4.0) -> list[Update]:
        """Step-out slice sampling of each hyperparameter, then of each w_i, as in the paper."""
        return [
            *(Update(name, Slice(width)) for name in self.names),
            Update("w", SliceSweep(latent_width)),
        ]

    def default_scheme(
        self, width: float = 1.0, latent_width: float = 4.0, folds: int = 5
    ) -> list[Update]:
        """The paper's scheme, the moves under which the likelihood does not change, and folds."""
        return [
            *self.paper_scheme(width, latent_width),
            Update("shift", Direct()),
            Update("scale", Slice(0.5)),
            Update("reflection", Direct()),
            Update("fold", SymmetricProposal(folds)),
        ]

    schemes = {"default": default_scheme, "paper": paper_scheme}  # noqa: RUF012


class CovariateSweep:
    """The latent covariates of a state, offering a compiled sweep."""

    def __init__(self, model: LatentCovariate, state: CovariateState) -> None:
        self._model = model
        self._state = state

    def slice_sweep(
        self, rng: np.random.Generator, width: float, max_steps: int, max_shrinks: int
    ) -> tuple[Point, Info]:
        """One slice-sampling update of every w_i; O(n^3) for all, without a factorisation."""
        model, state = self._model, self._state
        if state.factor is None:
            # Without a factor there is nothing to sweep over; a hyperparameter has to move first.
            return Point(state.w, state.log_density, state), Info(0.0, 0, n_impossible=1)
        theta, w = state.theta, state.w.copy()
        upper, whitened = state.factor.upper.copy(), state.factor.whitened.copy()
        counts = np.zeros(covariate_sweep.N_COUNTS, dtype=np.int64)
        covariate_sweep.slice_sweep(
            rng,
            w,
            model.y,
            state.x_correlation * np.exp(2.0 * theta[0]),
            model.kernel.constant**2,
            math.exp(-2.0 * theta[-2]),
            math.exp(2.0 * theta[-1]),
            upper,
            whitened,
            width,
            max_steps,
            max_shrinks,
            BLOCK_SIZE,
            counts,
        )
        model.ledger["sweep of chol(C)"] += 1
        model.ledger["conditional variance mended"] += int(counts[covariate_sweep.CLAMPED])
        factor = with_whitened(upper, whitened)
        density = -np.inf if factor is None else model._log_density(theta, w, factor)
        moved = CovariateState(
            theta,
            w,
            state.x_correlation,
            model._correlation(theta, w, state.x_correlation),
            factor,
            density,
        )
        info = Info(
            float(np.mean(w != state.w)),
            int(counts[covariate_sweep.EVALUATIONS]),
            int(counts[covariate_sweep.IMPOSSIBLE]),
            int(counts[covariate_sweep.EXHAUSTED]),
        )
        return Point(w, density, moved), info


class LatentShift:
    """A shift of all w: given the rest, N(-mean(w), 1/n), because K sees differences only."""

    def __init__(self, model: LatentCovariate, state: CovariateState) -> None:
        self._model = model
        self._state = state

    def draw(self, rng: np.random.Generator) -> Point:
        """The state with w shifted."""
        state, n = self._state, self._state.w.size
        w = state.w - state.w.mean() + rng.standard_normal() / math.sqrt(n)
        density = (
            -np.inf
            if state.factor is None
            else self._model._log_density(state.theta, w, state.factor)
        )
        return Point(0.0, density, state._replace(w=w, log_density=density))


class LatentReflection:
    """w or -w, each with probability one half."""

    def __init__(self, state: CovariateState) -> None:
        self._state = state

    def draw(self, rng: np.random.Generator) -> Point:
        """The state with w as it is or reflected."""
        sign = 1.0 if rng.random() < 0.5 else -1.0
        state = self._state._replace(w=sign * self._state.w)
        return Point(sign, state.log_density, state)


class LatentFold:
    """w of all cases in a random stretch of one input, reflected.

    Where the residuals are small g hardly depends on w, and on either side of such a place the
    sign of w can be chosen freely: the posterior has modes that single-site updates cannot
    cross, and this proposal can. It is its own inverse, and N(0, I) does not see it.
    """

    def __init__(self, model: LatentCovariate) -> None:
        self._model = model

    def propose(self, rng: np.random.Generator, point: Point) -> Point:
        """The state with w folded in a stretch between two cases, drawn at random."""
        model, state = self._model, point.payload
        values = model.X[:, rng.integers(model.X.shape[1])]
        ends = values[rng.integers(model.n, size=2)]
        inside = (values >= ends.min()) & (values <= ends.max())
        w = np.where(inside, -state.w, state.w)
        correlation = model._correlation(state.theta, w, state.x_correlation)
        moved = model._state(state.theta, w, state.x_correlation, correlation)
        return Point(w, moved.log_density, moved)


class ConditionedCovariate:
    """Prediction for one draw of theta and w."""

    def __init__(self, model: LatentCovariate, state: CovariateState) -> None:
        self._kernel = model.kernel
        self._X = model.X
        self._w = state.w
        self._theta = state.theta
        self._factor = usable(state.factor)
        self._signal = float(np.exp(2.0 * state.theta[0]))
        self._rho_square = float(np.exp(2.0 * state.theta[-2]))
        self._noise_variance = float(np.exp(2.0 * state.theta[-1]))

    def _x_part(self, X: Array) -> Array:
        """eta^2 times the correlation due to x: (rows, n)."""
        return self._kernel.matrix(self._theta[:-2], X, self._X) - self._kernel.constant**2

    def _by_latent(self, nodes: Array) -> Array:
        """Correlation due to w, of each node with each case: (nodes, n)."""
        return np.exp(-((nodes[:, None] - self._w) ** 2) / self._rho_square)

    def _given_latent(self, X: Array, nodes: Array) -> tuple[Array, Array]:
        """Mean and variance of g(x, w) at each node w: each (rows, nodes)."""
        x_part, constant = self._x_part(X), self._kernel.constant**2
        mean, variance = np.empty((2, X.shape[0], nodes.size))
        # One node at a time: what is computed for one stays in the processor's cache.
        for s, by_latent in enumerate(self._by_latent(nodes)):
            cross = x_part * by_latent
            cross += constant
            mean[:, s], variance[:, s] = gaussian_conditional(
                self._factor, cross, constant + self._signal
            )
        return mean, variance

    def components(self, X: Array, nodes: Array) -> tuple[Array, Array]:
        """Means and SDs of y given w* = each node."""
        mean, variance = self._given_latent(X, nodes)
        return mean, np.sqrt(variance + self._noise_variance)

    def means(self, X: Array, nodes: Array) -> Array:
        """Means of y given w* = each node: a matrix product, because K is one of x and w."""
        alpha = solve(self._factor)
        return self._x_part(X) @ (self._by_latent(nodes) * alpha).T + (
            self._kernel.constant**2 * alpha.sum()
        )

    def function(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of f(x), the average of g(x, w) over w ~ N(0, 1).

        The averages of the squared exponential over one and over two standard normal w are
        E exp(-(w - w_j)^2 / r) = sqrt(r / (r + 2)) exp(-w_j^2 / (r + 2)) and sqrt(r / (r + 4)),
        with r = rho_w^2, so that f given the draw is Gaussian, exactly.
        """
        r = self._rho_square
        by_latent = math.sqrt(r / (r + 2.0)) * np.exp(-(self._w**2) / (r + 2.0))
        cross = self._x_part(X) * by_latent + self._kernel.constant**2
        variance = self._kernel.constant**2 + self._signal * math.sqrt(r / (r + 4.0))
        return gaussian_conditional(self._factor, cross, variance)

    def residual_variance(self, X: Array, nodes: Array) -> Array:
        """E[Var(y | x, g)]: the variance of g over w, and sigma^2."""
        mean, variance = self._given_latent(X, nodes)
        centre, spread = self.function(X)
        # E over g of (integral of g^2) - f^2. The nodes are a sample: never below the noise.
        inside = np.mean((mean - centre[:, None]) ** 2 + variance, axis=1) - spread
        return np.maximum(inside, 0.0) + self._noise_variance
