"""GPLV: a Gaussian process whose noise SD is given by a second Gaussian process."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gplc import _check
from gplc._compiled import variance_sweep
from gplc._linalg import LOG_2PI, draw_gaussian, inverse, multiply_lower, usable
from gplc._types import Array
from gplc.kernels import Kernel
from gplc.means import Mean
from gplc.models.base import Given, Model, Part, State, Unknowns, Update, checked_kernel
from gplc.models.left_out import LeftOut, gaussian_rule
from gplc.models.standard import ConditionedOnNoise
from gplc.models.surrogate import Surrogate, surrogate_of
from gplc.priors import LOG_LIMIT, PriorLike
from gplc.processes import Dense, FixedNoise, Gradient, Layout, Noise, Process
from gplc.processes.dense import likelihood_weights
from gplc.processes.links import LINKS, LinkedNoise
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

# A running inverse that has drifted further than this from a fresh one is an event.
DRIFT = 1e-6


class LatentVariance(Model):
    """y_i = f(x_i) + e_i,  e_i ~ N(0, SD_i^2),  SD_i = exp(z_i) or |z_i|,  z_i = m + r(x_i) + J_i.

    f and r are independent Gaussian processes, J_i is jitter of SD sigma_J.
    C_y = K_y + diag(SD^2), C_z = K_z + sigma_J^2 I.

    theta = (theta_y, theta_z), by default (log eta_y, log rho_y..., log eta_z, log rho_z...);
    `names` end in ``_y`` and ``_z``. Besides its hyperparameters it has the parts ``z`` (the whole
    vector, with its Gaussian prior) and ``z sites`` (sweeps over single values).

    Parameters
    ----------
    X, y, kernel, priors, mean, known_sd, merge_rows
        As in every model; `kernel` and `mean` are those of f. Merged rows share one z.
    link : {"log", "abs", "learned"}
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
    learned_noise : bool
        True: without z this is the standard model.

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
    merges = True

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        kernel: Kernel | None = None,
        priors: Mapping[str, PriorLike] | None = None,
        mean: Mean = None,
        link: str = "log",
        kernel_z: Kernel | None = None,
        mean_z: float = 0.0,
        jitter: float = 1e-3,
        *,
        known_sd: ArrayLike | None = None,
        learned_noise: bool = True,
        merge_rows: bool = False,
    ) -> None:
        if not learned_noise:
            raise ValueError(
                "learned_noise=False is the standard model with known noise alone; use that"
            )
        self.link = LINKS[_check.one_of("link", link, LINKS)]
        self.jitter = _check.number("jitter", jitter, above=0.0, advice="the paper has 0.001")
        self.mean_z = _check.number(
            "mean_z",
            mean_z,
            at_least=-LOG_LIMIT,
            at_most=LOG_LIMIT,
            advice="0.0 is the paper's",
        )
        self._given_kernel_z = kernel_z
        super().__init__(X, y, kernel, priors, mean, known_sd=known_sd, merge_rows=merge_rows)

    def _processes(self, layout: Layout) -> tuple[Process, ...]:
        self.kernel_z = checked_kernel("kernel_z", self._given_kernel_z, self.kernel)
        jitter, none = FixedNoise(self.jitter), FixedNoise(0.0)
        of_y = Process.placed(
            layout,
            "C_y",
            self._main_kernel(),
            self.bound_rows,
            none,
            suffix="_y",
            replicates=self.replicates,
        )
        of_z = Process.placed(layout, "C_z", self.kernel_z, self.bound_rows, jitter, suffix="_z")
        # The noise of y is known with z alone; what its link learns comes last in theta.
        return replace(of_y, noise_place=layout.place(self.link.hyperparameters)), of_z

    def _latent_parts(self) -> dict[str, Part]:
        parts: dict[str, Part] = {"z": self._latent_part, "surrogate": self._surrogate_part}
        if self.link.code is not None and self.replicates is None:
            parts["z sites"] = lambda state: (
                Point(state.latent, state.log_density, state),
                VarianceSweep(self, state),
            )
        return parts

    @property
    def n_latent(self) -> int:
        """One z per case, or per place, if several cases have the same inputs."""
        return self.n if self.replicates is None else self.replicates.first.size

    @classmethod
    def rows_apart(cls, scheme: Any) -> bool:
        """Sweeps over single z know of one row for each."""
        if isinstance(scheme, str):
            return scheme in ("metropolis", "slice")
        return any(update.part == "z sites" for update in scheme)

    def of_rows(self, z: Array) -> Array:
        """The z of every case."""
        return z if self.replicates is None else z[self.replicates.place]

    def linked(self, z: Array) -> LinkedNoise:
        """The noise that z gives."""
        return LinkedNoise(self.link, z)

    def noise(self, z: Array) -> Noise:
        """The noise of y at the cases, given the latent values."""
        return self._with_known(self.linked(self.of_rows(z)))

    def _given(self, unknowns: Unknowns) -> tuple[Given, ...]:
        z = unknowns.latent
        return Given(self.y, noise=self.noise(z)), Given(z - self.mean_z)

    def _latent_part(self, state: State) -> tuple[Point, GaussianTarget]:
        """The centred z, z - m, with its prior N(0, C_z) and the likelihood N(y | 0, C_y(z))."""
        of_y, of_z = state.solved
        if of_z.factor is None:
            # Without C_z there is no prior to move under; theta_z has to move first.
            nowhere = GaussianTarget(lambda u: u, lambda z: Point(z, -np.inf))
            return Point(state.latent, -np.inf, state), nowhere

        def evaluate(centred: Array) -> Point:
            z = centred + self.mean_z
            moved = of_y.with_noise(self.noise(z))
            # The density of z itself does not enter; it is computed once z is settled.
            payload = state._replace(latent=z, solved=(moved, of_z), log_density=np.nan)
            return Point(centred, moved.log_density, payload)

        target = GaussianTarget(lambda u: multiply_lower(usable(of_z.factor), u), evaluate)
        return Point(state.latent - self.mean_z, of_y.log_density, state), target

    def _settled(self, state: State) -> State:
        if not np.isnan(state.log_density):
            return state._replace(coordinates=None)
        of_y, of_z = state.solved
        return self._assembled(
            state.theta, state.latent, (of_y, of_z.with_data(state.latent - self.mean_z))
        )

    def _latent_gradient(self, state: State, gradients: Sequence[Gradient]) -> Array:
        return self._by_z(state, gradients[0]) - state.solved[1].pulls()

    def _by_z(self, state: State, gradient: Gradient) -> Array:
        """Gradient of the likelihood by z, which is in the diagonal of C_y."""
        place = state.solved[0].process.noise_place
        by_row = gradient.diagonal * self._slopes(state.latent, state.theta[place])
        return by_row if self.replicates is None else self.replicates.sums(by_row)

    def _slopes(self, z: Array, theta: Array) -> Array:
        """Derivative of the variance of every case by its z."""
        return self.linked(self.of_rows(z)).slope(theta)

    # All unknowns at once, with v in the place of z: nearly N(0, I) given theta and the data, so
    # that neither theta_z nor z is tied to what the other is now (see `gplc.models.surrogate`).

    def _surrogate_part(self, state: State) -> tuple[Point, SurrogateTarget]:
        def given(sites: float | Array) -> tuple[Point, GradientTarget]:
            return self._whole_part(state, np.broadcast_to(sites, (2, self.n_latent)))

        return Point(state.unknowns, state.log_density, state), SurrogateTarget(
            given, lambda point: self._evidence(point.payload)
        )

    def gathered(self, rng: np.random.Generator, state: State) -> Array:
        """Surrogate data that say of z what y says near a state."""
        if self.link.n_weights or impossible(state.log_density):
            return np.zeros((2, self.n_latent))
        z, by_z, information = self._evidence(state)
        return np.stack([information, information * z + by_z])

    def around(self, state: State, gathered: Array) -> tuple[Point, GradientTarget]:
        """Theta and v, given surrogate data."""
        return self._whole_part(state, gathered)

    def _evidence(self, state: State) -> Array:
        """The centred z, and what y says of it: gradient and information of the likelihood.

        With V' the derivative of the variance of the noise by z_i, the information about z_i is
        (V' (C_y^-1)_ii)^2 / 2.
        """
        of_y = state.solved[0]
        theta = state.theta[of_y.process.noise_place]
        if self.replicates is not None:
            # Of rows that are repeated, nearly all the information is in their spread.
            by_z = self._by_z(state, of_y.gradient())
            share = self._slopes(state.latent, theta) / of_y.noise.variance(theta)
            information = 0.5 * self.replicates.sums(share**2)
            return np.stack([state.latent - self.mean_z, by_z, information])
        on_diagonal = np.diagonal(likelihood_weights(usable(of_y.factor)))
        slope = self._slopes(state.latent, theta)
        precision = of_y.pulls() ** 2 - 2.0 * on_diagonal
        return np.stack(
            [state.latent - self.mean_z, on_diagonal * slope, 0.5 * (slope * precision) ** 2]
        )

    def _vector(self, state: State, sites: Array | None = None) -> tuple[Array, float, State]:
        factor = state.solved[1].factor
        surrogate = None if factor is None else self._surrogate(factor.upper, sites)
        if factor is None or surrogate is None:
            return np.concatenate(state.unknowns), -np.inf, state
        v = surrogate.whitened(factor.whitened)
        state = state._replace(coordinates=surrogate)
        return np.concatenate([state.theta, v]), self._surrogate_density(state), state

    def _surrogate(self, upper: Array, sites: Array | None) -> Surrogate | None:
        self.ledger["chol(I + L_z' F L_z)"] += 1
        return surrogate_of(upper, np.zeros((2, self.n_latent)) if sites is None else sites)

    def _surrogate_density(self, state: State) -> float:
        """Log p(theta, v, y)."""
        if impossible(state.log_density):
            return -np.inf
        of_y, of_z = state.solved
        u = usable(of_z.factor).whitened
        of_v = -0.5 * (float(u @ u) + u.size * LOG_2PI) - usable(state.coordinates).log_determinant
        return of_y.log_density + of_v + self.priors.log_density(state.theta)

    def _at_vector(
        self, theta: Array, latent: Array, sites: Array | None = None
    ) -> tuple[State | None, float]:
        of_y, of_z = self.processes
        # u is not known before L is.
        prior = Dense.at(of_z, theta, None)
        surrogate = None if prior.factor is None else self._surrogate(prior.factor.upper, sites)
        if surrogate is None:
            return None, -np.inf
        prior = prior.with_whitened(surrogate.coloured(latent))
        z = self.mean_z + prior.y
        likelihood = Dense.at(of_y, theta, self.y, noise=self.noise(z))
        state = self._assembled(theta, z, (likelihood, prior))._replace(coordinates=surrogate)
        return state, self._surrogate_density(state)

    def _gradient_of_vector(self, state: State) -> Array:
        of_y, of_z = state.solved
        likelihood = of_y.gradient()
        by_v, weights = usable(state.coordinates).gradient(
            usable(of_z.factor), self._by_z(state, likelihood)
        )
        by_theta = self._by_theta([likelihood, of_z.pulled(weights)])
        return np.concatenate([by_theta + self.priors.gradient(state.theta), by_v])

    def sample_latent(self, rng: np.random.Generator, theta: Array) -> Array:
        """Z ~ N(m, C_z)."""
        return self.mean_z + draw_gaussian(rng, self.processes[1].covariance(theta))

    def prior_mean(self) -> Unknowns:
        """Log hyperparameters at their prior means, z at its centre."""
        return Unknowns(self.priors.means.copy(), np.full(self.n_latent, self.mean_z))

    def _conditioned(self, state: State) -> "ConditionedVariance":
        return ConditionedVariance(self, state)

    def _left_out(self, state: State) -> LeftOut:
        """z_i from its distribution given the other z, by a rule; y_i given f and z_i."""
        of_y, of_z = state.solved
        theta = state.theta[of_y.process.noise_place]
        centre, variance = of_z.left_out()
        if self.replicates is not None:
            # Where other rows share it, z is known without the row that is left out.
            shared = self.replicates.sums(np.ones(self.n)) > 1
            centre = np.where(shared, state.latent - self.mean_z, centre)
            variance = np.where(shared, 0.0, variance)
        centre, variance = self.of_rows(centre), self.of_rows(variance)
        nodes, weights = gaussian_rule()
        z = self.mean_z + centre[:, None] + np.sqrt(variance)[:, None] * nodes
        mean, with_noise = of_y.left_out()
        # What is not known of f(x_i): the noise of the case at its own z is taken off.
        of_f = np.maximum(with_noise - of_y.noise.variance(theta), 0.0)
        noise = np.column_stack(
            [self._with_known(self.linked(each)).variance(theta) for each in z.T]
        )
        sds = np.sqrt(of_f[:, None] + noise)
        return LeftOut(np.broadcast_to(mean[:, None], sds.shape), sds, weights)

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
        updates, first = self._by_hyperparameters(), self.processes[1].place.start
        scheme = updates[:first]
        for update in updates[first:]:
            scheme += [update, Update("z", sampler)]
        return scheme

    def _check_sites(self, scheme: str) -> None:
        if self.replicates is not None:
            raise ValueError(
                f"scheme {scheme!r} updates single values of z, of which rows with the same "
                "inputs share one; give merge_rows=False"
            )
        if self.link.code is None:
            raise ValueError(
                f"scheme {scheme!r} updates single values of z, which "
                f"link={self.link.name!r} does not offer; use 'default', 'elliptical' or 'paper'"
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

    def __init__(self, model: LatentVariance, state: State) -> None:
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
        of_y, of_z = state.solved
        if of_y.factor is None or of_z.factor is None:
            return Point(state.latent, state.log_density, state), Info(0.0, 0, n_impossible=1)
        counts = np.zeros(variance_sweep.N_COUNTS, dtype=np.int64)
        z = state.latent.copy()
        alpha, pull = of_y.pulls(), of_z.pulls()
        running = variance_sweep.Running(
            z,
            model.link.code or 0,
            inverse(of_y.factor),
            alpha,
            inverse(of_z.factor),
            pull,
            counts,
        )
        sweep(rng, running, *settings)
        model.ledger["sweep of C_y^-1"] += 1
        # The running inverse ends here; a fresh factor shows how far it had drifted.
        fresh = of_y.with_noise(model.noise(z))
        moved = model._settled(state._replace(latent=z, solved=(fresh, of_z), log_density=np.nan))
        if fresh.factor is not None:
            pulls = fresh.pulls()
            if np.max(np.abs(alpha - pulls)) > DRIFT * (1.0 + np.max(np.abs(pulls))):
                model.ledger["inverse drifted"] += 1
        info = Info(
            float(np.mean(z != state.latent)),
            int(counts[variance_sweep.EVALUATIONS]),
            int(counts[variance_sweep.IMPOSSIBLE]),
            int(counts[variance_sweep.EXHAUSTED]),
            int(counts[variance_sweep.OUT]),
            int(counts[variance_sweep.IN]),
        )
        return Point(z, moved.log_density, moved), info


class ConditionedVariance(ConditionedOnNoise):
    """Prediction for one draw of theta and z."""

    def __init__(self, model: LatentVariance, state: State) -> None:
        super().__init__(state.solved[0])
        self._model = model
        self._of_z = state.solved[1]

    def _noise_variance(self, X: Array, nodes: Array) -> Array:
        """SD(z*)^2 with z* = its mean given z + its SD times each node: (rows, nodes)."""
        process, theta = self._of_z.process, self._of_z.theta
        mean, variance = self._of_z.conditional(X)
        sd = np.sqrt(variance + process.noise.at(theta[process.noise_place], X))
        z = self._model.mean_z + mean[:, None] + sd[:, None] * nodes
        return self._model.linked(z).variance(theta[self._solved.process.noise_place])
