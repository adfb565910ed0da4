"""GPLV: a Gaussian process whose noise SD is given by a second Gaussian process."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from gplc import _check
from gplc._compiled import variance_sweep
from gplc._linalg import (
    LOG_2PI,
    Factor,
    factor_of,
    inverse,
    multiply_lower,
    solve,
    with_whitened,
)
from gplc.kernels import Bound, Kernel, Touches
from gplc.kernels.bound import Pieces
from gplc.means import Mean
from gplc.models.base import (
    Model,
    Part,
    Unknowns,
    Update,
    add_to_diagonal,
    checked_kernel,
    draw_gaussian,
    priors_of,
    weights_of_gradient,
)
from gplc.models.standard import gaussian_conditional, usable
from gplc.models.surrogate import Surrogate, surrogate_of
from gplc.priors import DEFAULTS, LogNormal
from gplc.samplers.gaussian_prior import EllipticalSlice, ModifiedMetropolis
from gplc.samplers.hamiltonian import Hamiltonian, SurrogateHamiltonian
from gplc.samplers.metropolis import Metropolis
from gplc.samplers.protocol import (
    GaussianTarget,
    GradientTarget,
    Info,
    Point,
    SurrogateTarget,
    impossible,
)
from gplc.samplers.sweeps import MetropolisSweep, SliceSweep

Array = NDArray[np.float64]

# A running inverse that has drifted further than this from a fresh one is an event.
DRIFT = 1e-6


class Link(NamedTuple):
    """How a value z of the secondary process gives the SD of the noise.

    `log_weights` are those of the link's own hyperparameters, empty for most links.
    """

    name: str
    code: int | None  # for the compiled sweeps; None if they do not know it
    variance: Callable[..., Array]  # of z and log_weights
    derivative: Callable[..., Array]  # of the variance, by z
    n_weights: int = 0
    by_weights: Callable[..., Array] | None = None  # derivative by log_weights: (n_weights, n)


def _exp_variance(z: Array, log_weights: Array | None = None) -> Array:
    return np.exp(np.minimum(2.0 * z, 700.0))


def _exp_derivative(z: Array, log_weights: Array | None = None) -> Array:
    return 2.0 * _exp_variance(z)


def _square(z: Array, log_weights: Array | None = None) -> Array:
    return np.square(z)


def _square_derivative(z: Array, log_weights: Array | None = None) -> Array:
    return 2.0 * z


# A learned link is sum_k a_k log(1 + exp(z - knot_k)), a_k > 0: smooth, positive and rising.
KNOTS = np.array([-2.0, 0.0, 2.0])


def _softplus_parts(z: Array, log_weights: Array) -> Array:
    """a_k log(1 + exp(z - knot_k)), for each k along a new last axis."""
    return np.exp(log_weights) * np.logaddexp(0.0, z[..., None] - KNOTS)


def _softplus_variance(z: Array, log_weights: Array) -> Array:
    return _softplus_parts(z, log_weights).sum(axis=-1) ** 2


def _softplus_derivative(z: Array, log_weights: Array) -> Array:
    sd = _softplus_parts(z, log_weights).sum(axis=-1)
    slope = expit(z[..., None] - KNOTS) @ np.exp(log_weights)
    return 2.0 * sd * slope


def _softplus_by_weights(z: Array, log_weights: Array) -> Array:
    parts = _softplus_parts(z, log_weights)
    return 2.0 * parts.sum(axis=-1) * parts.T


# Functions with names, not lambdas: a model can be pickled.
LINKS: Mapping[str, Link] = {
    "log": Link("log", variance_sweep.LOG_LINK, _exp_variance, _exp_derivative),
    "abs": Link("abs", variance_sweep.ABS_LINK, _square, _square_derivative),
    "learned": Link(
        "learned",
        None,
        _softplus_variance,
        _softplus_derivative,
        len(KNOTS),
        _softplus_by_weights,
    ),
}


class VarianceState(NamedTuple):
    """theta and z, with correlations and the factors of C_y and C_z.

    `surrogate` is there only while z moves in the coordinates it makes.
    """

    theta: Array
    z: Array
    y_correlation: Pieces
    z_correlation: Pieces
    y_factor: Factor | None
    z_factor: Factor | None
    log_density: float
    surrogate: Surrogate | None = None

    @property
    def unknowns(self) -> Unknowns:
        """Theta and z."""
        return Unknowns(self.theta, self.z)


class LatentVariance(Model):
    """y_i = f(x_i) + e_i,  e_i ~ N(0, SD_i^2),  SD_i = exp(z_i) or |z_i|,  z_i = m + r(x_i) + J_i.

    f and r are independent Gaussian processes, J_i is jitter of SD sigma_J.
    C_y = K_y + diag(SD^2), C_z = K_z + sigma_J^2 I.

    theta = (theta_y, theta_z), by default (log eta_y, log rho_y..., log eta_z, log rho_z...);
    `names` end in ``_y`` and ``_z``. Besides its hyperparameters it has the parts ``z`` (the whole
    vector, with its Gaussian prior) and ``z sites`` (sweeps over single values).

    Parameters
    ----------
    X, y, kernel, priors, mean
        As in every model; `kernel` and `mean` are those of f.
    scale : {"log", "abs", "learned"}
        z is the log SD of the noise; or the SD is abs(z); or it is a rising function of z that
        is learned, sum_k a_k log(1 + exp(z - knot_k)) with knots -2, 0 and 2 and hyperparameters
        a_k, ``link_weight`` (in the spirit of Wilson and Ghahramani 2010). The last has no ``z
        sites``.
    kernel_z : Kernel, optional
        Covariance function of r; that of f by default.
    mean_z : float
        m, the centre of z. The level of z around it is not known if `kernel_z` has a constant, as
        it has by default: then it is N(m, c^2), integrated out.
    jitter : float
        sigma_J, fixed.

    Examples
    --------
    >>> import numpy as np
    >>> model = LatentVariance([[0.0], [1.0]], [0.5, -0.5])
    >>> model.names
    ('signal_sd_y', 'length_scale_y', 'signal_sd_z', 'length_scale_z')
    >>> round(model.log_density(model.prior_mean()), 4)
    -8.8646
    """

    key = "gplv"
    title = "GPLV"
    noise_summary = "Gaussian noise whose SD depends on the inputs"
    noise_varies = True
    noise_is_gaussian = True
    latent_name = "z"

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        kernel: Kernel | None = None,
        priors: Mapping[str, Sequence[float]] | None = None,
        mean: Mean = None,
        scale: str = "log",
        kernel_z: Kernel | None = None,
        mean_z: float = 0.0,
        jitter: float = 1e-3,
    ) -> None:
        self.link = LINKS[_check.one_of("scale", scale, LINKS)]
        self.jitter = _check.number("jitter", jitter, above=0.0, advice="the paper has 0.001")
        self.mean_z = _check.number("mean_z", mean_z, advice="0.0 is the paper's")
        self._given_kernel_z = kernel_z
        super().__init__(X, y, kernel, priors, mean)

    def _hyperparameters(self) -> dict[str, LogNormal]:
        self.kernel_z = checked_kernel("kernel_z", self._given_kernel_z, self.kernel)
        self._y_bound = self._bind_main(suffix="_y")
        self._z_bound = self._bind(self.kernel_z, suffix="_z")
        self._split = len(self._y_bound.names)
        self._end = self._split + len(self._z_bound.names)
        weights = {
            f"link_weight[{k}]": DEFAULTS["link_weight"] for k in range(self.link.n_weights)
        }
        return priors_of(self._y_bound) | priors_of(self._z_bound) | weights

    def _kernels(self) -> list[Bound]:
        return [self._y_bound, self._z_bound]

    def _latent_parts(self) -> dict[str, Part]:
        parts: dict[str, Part] = {"z": self._latent_part, "surrogate": self._surrogate_part}
        if self.link.code is not None:
            parts["z sites"] = lambda state: (
                Point(state.z, state.log_density, state),
                VarianceSweep(self, state),
            )
        return parts

    @property
    def n_latent(self) -> int:
        """One z per case."""
        return self.n

    @staticmethod
    def judged(latent: Array) -> dict[str, Array]:
        """Sums of z and of its squares."""
        return {"sum z": np.sum(latent, axis=-1), "sum z^2": np.sum(latent**2, axis=-1)}

    def _of_y(self, theta: Array) -> Array:
        return theta[: self._split]

    def _of_z(self, theta: Array) -> Array:
        return theta[self._split : self._end]

    def noise_variance(self, theta: Array, z: Array) -> Array:
        """SD^2 at values of z."""
        return self.link.variance(z, theta[self._end :])

    def state(self, unknowns: Unknowns) -> VarianceState:
        """The state at theta and z, computed from nothing."""
        theta, z = unknowns
        y_correlation, z_correlation = self._y_correlation(theta), self._z_correlation(theta)
        return self._state(
            theta,
            z,
            y_correlation,
            z_correlation,
            self._y_factor(theta, z, y_correlation),
            self._z_factor(theta, z, z_correlation),
        )

    def _y_correlation(self, theta: Array) -> Pieces:
        self.ledger["C_y"] += 1
        return self._y_bound.pieces(self._of_y(theta))

    def _z_correlation(self, theta: Array) -> Pieces:
        self.ledger["C_z"] += 1
        return self._z_bound.pieces(self._of_z(theta))

    def _y_factor(self, theta: Array, z: Array, correlation: Pieces) -> Factor | None:
        matrix = self._y_bound.matrix(self._of_y(theta), correlation)
        add_to_diagonal(matrix, self.noise_variance(theta, z))
        return self._factorise(matrix, self.y, "C_y")

    def _z_factor(self, theta: Array, z: Array, correlation: Pieces) -> Factor | None:
        return self._factorise(self._z_covariance(theta, correlation), z - self.mean_z, "C_z")

    def _z_covariance(self, theta: Array, correlation: Pieces) -> Array:
        matrix = self._z_bound.matrix(self._of_z(theta), correlation)
        return add_to_diagonal(matrix, self.jitter**2)

    def _state(
        self,
        theta: Array,
        z: Array,
        y_correlation: Pieces,
        z_correlation: Pieces,
        y_factor: Factor | None,
        z_factor: Factor | None,
    ) -> VarianceState:
        density = -np.inf
        if y_factor is not None and z_factor is not None:
            density = y_factor.log_density + z_factor.log_density + self.priors.log_density(theta)
        return VarianceState(theta, z, y_correlation, z_correlation, y_factor, z_factor, density)

    def _with_hyperparameter(
        self, state: VarianceState, index: int, theta: Array
    ) -> VarianceState:
        _, z, y_correlation, z_correlation, y_factor, z_factor, *_ = state
        of_z = index - self._split
        if index < self._split:
            if self._y_bound.touches(index) is not Touches.SCALE:
                self.ledger["C_y"] += 1
                y_correlation = self._y_bound.changed(index, self._of_y(theta), y_correlation)
        elif index < self._end:
            if self._z_bound.touches(of_z) is not Touches.SCALE:
                self.ledger["C_z"] += 1
                z_correlation = self._z_bound.changed(of_z, self._of_z(theta), z_correlation)
            z_factor = self._z_factor(theta, z, z_correlation)
        if not self._split <= index < self._end:
            y_factor = self._y_factor(theta, z, y_correlation)
        return self._state(theta, z, y_correlation, z_correlation, y_factor, z_factor)

    def _latent_part(self, state: VarianceState) -> tuple[Point, GaussianTarget]:
        """The centred z, z - m, with its prior N(0, C_z) and the likelihood N(y | 0, C_y(z))."""
        theta, z_factor = state.theta, state.z_factor
        if z_factor is None:
            # Without C_z there is no prior to move under; theta_z has to move first.
            nowhere = GaussianTarget(lambda u: u, lambda z: Point(z, -np.inf))
            return Point(state.z, -np.inf, state), nowhere

        def evaluate(centred: Array) -> Point:
            z = centred + self.mean_z
            y_factor = self._y_factor(theta, z, state.y_correlation)
            # The density of z itself does not enter; it is computed once z is settled.
            moved = state._replace(z=z, y_factor=y_factor, log_density=np.nan)
            return Point(centred, -np.inf if y_factor is None else y_factor.log_density, moved)

        now = -np.inf if state.y_factor is None else state.y_factor.log_density
        target = GaussianTarget(lambda u: multiply_lower(z_factor, u), evaluate)
        return Point(state.z - self.mean_z, now, state), target

    def _settled(self, state: VarianceState) -> VarianceState:
        if not np.isnan(state.log_density):
            return state._replace(surrogate=None)
        z_factor = factor_of(usable(state.z_factor).upper, state.z - self.mean_z)
        return self._state(*state[:5], z_factor)

    def gradient_at(self, state: VarianceState) -> Unknowns:
        """Gradient with respect to theta and z."""
        z_factor = usable(state.z_factor)
        by_y, by_weights, by_z = self._likelihood_gradient(state)
        by_theta_z = self._z_gradient(state, weights_of_gradient(z_factor))
        by_theta = np.concatenate([by_y, by_theta_z, by_weights])
        return Unknowns(by_theta + self.priors.gradient(state.theta), by_z - solve(z_factor))

    def _likelihood_gradient(self, state: VarianceState) -> tuple[Array, Array, Array]:
        """Gradient of log N(y | 0, C_y) by theta_y, by the weights of the link, and by z."""
        theta, z = state.unknowns
        weights = weights_of_gradient(usable(state.y_factor))
        by_y, _ = self._y_bound.gradient(self._of_y(theta), state.y_correlation, None, weights)
        on_diagonal, log_weights = np.diagonal(weights), theta[self._end :]
        by_weights = np.empty(0)
        if self.link.by_weights is not None:
            by_weights = self.link.by_weights(z, log_weights) @ on_diagonal
        return by_y, by_weights, on_diagonal * self.link.derivative(z, log_weights)

    def _z_gradient(self, state: VarianceState, weights: Array) -> Array:
        """d/d theta_z of sum_ij weights_ij (C_z)_ij."""
        own = self._of_z(state.theta)
        return self._z_bound.gradient(own, state.z_correlation, None, weights)[0]

    # All unknowns at once, with v in the place of z: nearly N(0, I) given theta and the data, so
    # that neither theta_z nor z is tied to what the other is now (see `gplc.models.surrogate`).

    def _surrogate_part(self, state: VarianceState) -> tuple[Point, SurrogateTarget]:
        def given(sites: float | Array) -> tuple[Point, GradientTarget]:
            return self._whole_part(state, np.broadcast_to(sites, (2, self.n)))

        return Point(state.unknowns, state.log_density, state), SurrogateTarget(
            given, lambda point: self._evidence(point.payload)
        )

    def _evidence(self, state: VarianceState) -> Array:
        """The centred z, and what y says of it: gradient and information of the likelihood.

        With V' the derivative of the variance of the noise by z_i, the information about z_i is
        (V' (C_y^-1)_ii)^2 / 2.
        """
        factor = usable(state.y_factor)
        on_diagonal = np.diagonal(weights_of_gradient(factor))
        slope = self.link.derivative(state.z, state.theta[self._end :])
        precision = solve(factor) ** 2 - 2.0 * on_diagonal
        return np.stack(
            [state.z - self.mean_z, on_diagonal * slope, 0.5 * (slope * precision) ** 2]
        )

    def _vector(
        self, state: VarianceState, sites: Array | None = None
    ) -> tuple[Array, float, VarianceState]:
        z_factor = state.z_factor
        surrogate = None if z_factor is None else self._surrogate(z_factor.upper, sites)
        if z_factor is None or surrogate is None:
            return np.concatenate(state.unknowns), -np.inf, state
        v = surrogate.whitened(z_factor.whitened)
        state = state._replace(surrogate=surrogate)
        return np.concatenate([state.theta, v]), self._surrogate_density(state), state

    def _surrogate(self, upper: Array, sites: Array | None) -> Surrogate | None:
        self.ledger["chol(I + L_z' F L_z)"] += 1
        return surrogate_of(upper, np.zeros((2, self.n)) if sites is None else sites)

    def _surrogate_density(self, state: VarianceState) -> float:
        """Log p(theta, v, y)."""
        if impossible(state.log_density):
            return -np.inf
        u = usable(state.z_factor).whitened
        of_v = -0.5 * (float(u @ u) + u.size * LOG_2PI) - usable(state.surrogate).log_determinant
        return usable(state.y_factor).log_density + of_v + self.priors.log_density(state.theta)

    def _at_vector(
        self, theta: Array, latent: Array, sites: Array | None = None
    ) -> tuple[VarianceState | None, float]:
        z_correlation = self._z_correlation(theta)
        covariance = self._z_covariance(theta, z_correlation)
        # u is not known before L is.
        z_factor = self._factorise(covariance, np.zeros(self.n), "C_z", whitened=True)
        surrogate = None if z_factor is None else self._surrogate(z_factor.upper, sites)
        if z_factor is None or surrogate is None:
            return None, -np.inf
        u = surrogate.coloured(latent)
        z = self.mean_z + multiply_lower(z_factor, u)
        y_correlation = self._y_correlation(theta)
        state = self._state(
            theta,
            z,
            y_correlation,
            z_correlation,
            self._y_factor(theta, z, y_correlation),
            with_whitened(z_factor.upper, u),
        )._replace(surrogate=surrogate)
        return state, self._surrogate_density(state)

    def _gradient_of_vector(self, state: VarianceState) -> Array:
        by_y, by_weights, by_z = self._likelihood_gradient(state)
        by_v, weights = usable(state.surrogate).gradient(usable(state.z_factor), by_z)
        by_theta = np.concatenate([by_y, self._z_gradient(state, weights), by_weights])
        by_theta += self.priors.gradient(state.theta)
        return np.concatenate([by_theta, by_v])

    def sample_latent(self, rng: np.random.Generator, theta: Array) -> Array:
        """Z ~ N(m, C_z)."""
        covariance = self._z_covariance(theta, self._z_correlation(theta))
        return self.mean_z + draw_gaussian(rng, covariance)

    def prior_mean(self) -> Unknowns:
        """Log hyperparameters at their prior means, z at its centre."""
        return Unknowns(self.priors.means.copy(), np.full(self.n, self.mean_z))

    def covariance(self, unknowns: Unknowns) -> Array:
        """C_y = K_y + diag(SD^2)."""
        theta, z = unknowns
        matrix = self._y_bound.matrix(self._of_y(theta), self._y_correlation(theta))
        return add_to_diagonal(matrix, self.noise_variance(theta, z))

    def condition(self, unknowns: Unknowns) -> "ConditionedVariance":
        """Fix theta and z, for prediction."""
        return ConditionedVariance(self, self.state(unknowns))

    def _by_hyperparameters(self) -> list[Update]:
        return [Update(name, Metropolis()) for name in self.names]

    def paper_scheme(
        self, step_size: float = 0.3, repeats: int = 40, wanted: float | None = None
    ) -> list[Update]:
        """Metropolis for hyperparameters; m modified Metropolis updates of z after each theta_z.

        `step_size` is a and `repeats` m of the paper; with `wanted`, a adapts during warm-up to
        that rate of acceptance.
        """
        return self._with_latent_updates(ModifiedMetropolis(step_size, repeats, wanted))

    def elliptical_scheme(self, repeats: int = 10) -> list[Update]:
        """The same with elliptical slice sampling of z: the paper's closing question."""
        return self._with_latent_updates(EllipticalSlice(repeats))

    def _with_latent_updates(self, sampler: ModifiedMetropolis | EllipticalSlice) -> list[Update]:
        updates = self._by_hyperparameters()
        scheme = updates[: self._split]
        for update in updates[self._split :]:
            scheme += [update, Update("z", sampler)]
        return scheme

    def _check_sites(self, scheme: str) -> None:
        if self.link.code is None:
            raise ValueError(
                f"scheme {scheme!r} updates single values of z, which "
                f"scale={self.link.name!r} does not offer; use 'default', 'elliptical' or 'paper'"
            )

    def metropolis_scheme(self) -> list[Update]:
        """Baseline of the paper: Metropolis for hyperparameters and one z_i at a time."""
        self._check_sites("metropolis")
        return [*self._by_hyperparameters(), Update("z sites", MetropolisSweep())]

    def slice_scheme(self, width: float = 1.0) -> list[Update]:
        """Baseline of the paper: Metropolis for hyperparameters, slice for one z_i at a time."""
        self._check_sites("slice")
        return [*self._by_hyperparameters(), Update("z sites", SliceSweep(width))]

    def default_scheme(self, leaps: int = 10) -> list[Update]:
        """Hamiltonian Monte Carlo of all hyperparameters together with z, on surrogate data.

        With a learned link z = m + L_z u, without surrogate data and with twice as many leaps:
        what z has to be depends on the weights of the link, and surrogate data would hold both.
        """
        together = Update("surrogate", SurrogateHamiltonian(leaps))
        if self.link.n_weights:
            together = Update("all", Hamiltonian(2 * leaps))
        return [together, *self._wide_moves()]

    schemes = {  # noqa: RUF012
        "default": default_scheme,
        "paper": paper_scheme,
        "elliptical": elliptical_scheme,
        "metropolis": metropolis_scheme,
        "slice": slice_scheme,
    }


class VarianceSweep:
    """The latent values of a state, offering compiled sweeps over single ones."""

    def __init__(self, model: LatentVariance, state: VarianceState) -> None:
        self._model = model
        self._state = state

    def metropolis_sweep(self, rng: np.random.Generator, steps: Array) -> tuple[Point, Info]:
        """Random-walk Metropolis of every z_i in turn."""
        accepted = np.zeros(steps.size)
        point, info = self._run(variance_sweep.metropolis_sweep, rng, steps, accepted)
        return point, info._replace(acceptance=accepted)

    def slice_sweep(
        self, rng: np.random.Generator, width: float, max_steps: int, max_shrinks: int
    ) -> tuple[Point, Info]:
        """Step-out slice sampling of every z_i in turn."""
        return self._run(variance_sweep.slice_sweep, rng, width, max_steps, max_shrinks)

    def _run(
        self, sweep: Callable[..., None], rng: np.random.Generator, *settings: Any
    ) -> tuple[Point, Info]:
        model, state = self._model, self._state
        if state.y_factor is None or state.z_factor is None:
            return Point(state.z, state.log_density, state), Info(0.0, 0, n_impossible=1)
        counts = np.zeros(variance_sweep.N_COUNTS, dtype=np.int64)
        z = state.z.copy()
        alpha, pull = solve(state.y_factor), solve(state.z_factor)
        sweep(
            rng,
            z,
            model.link.code,
            inverse(state.y_factor),
            alpha,
            inverse(state.z_factor),
            pull,
            *settings,
            counts,
        )
        model.ledger["sweep of C_y^-1"] += 1
        # The running inverse ends here; a fresh factor shows how far it had drifted.
        y_factor = model._y_factor(state.theta, z, state.y_correlation)
        moved = model._settled(state._replace(z=z, y_factor=y_factor, log_density=np.nan))
        if y_factor is not None:
            fresh = solve(y_factor)
            if np.max(np.abs(alpha - fresh)) > DRIFT * (1.0 + np.max(np.abs(fresh))):
                model.ledger["inverse drifted"] += 1
        info = Info(
            float(np.mean(z != state.z)),
            int(counts[variance_sweep.EVALUATIONS]),
            int(counts[variance_sweep.IMPOSSIBLE]),
            int(counts[variance_sweep.EXHAUSTED]),
            int(counts[variance_sweep.OUT]),
            int(counts[variance_sweep.IN]),
        )
        return Point(z, moved.log_density, moved), info


class ConditionedVariance:
    """Prediction for one draw of theta and z."""

    def __init__(self, model: LatentVariance, state: VarianceState) -> None:
        self._model = model
        self._theta = state.theta
        self._y_factor = usable(state.y_factor)
        self._z_factor = usable(state.z_factor)

    def _noise_variance(self, X: Array, nodes: Array) -> Array:
        """SD(z*)^2 with z* = its mean given z + its SD times each node: (rows, nodes)."""
        model = self._model
        bound, theta = model._z_bound, model._of_z(self._theta)
        mean, variance = gaussian_conditional(
            self._z_factor, bound.cross(theta, X).at(), bound.variance(theta, X)
        )
        sd = np.sqrt(variance + model.jitter**2)
        z = model.mean_z + mean[:, None] + sd[:, None] * nodes
        return model.noise_variance(self._theta, z)

    def components(self, X: Array, nodes: Array) -> tuple[Array, Array]:
        """Means and SDs of y given each z*."""
        mean, variance = self.function(X)
        sds = np.sqrt(variance[:, None] + self._noise_variance(X, nodes))
        return np.broadcast_to(mean[:, None], sds.shape), sds

    def means(self, X: Array, nodes: Array) -> Array:
        """The mean of f(x), whatever the node."""
        cross = self._cross(X)
        return np.repeat((cross @ solve(self._y_factor))[:, None], nodes.size, axis=1)

    def _cross(self, X: Array) -> Array:
        return self._model._y_bound.cross(self._model._of_y(self._theta), X).at()

    def function(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of f(x)."""
        variance = self._model._y_bound.variance(self._model._of_y(self._theta), X)
        return gaussian_conditional(self._y_factor, self._cross(X), variance)

    def residual_variance(self, X: Array, nodes: Array) -> Array:
        """The mean of SD(z*)^2 over the nodes."""
        return self._noise_variance(X, nodes).mean(axis=1)
