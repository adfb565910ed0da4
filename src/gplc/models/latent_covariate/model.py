"""GPLC: a Gaussian process with a latent covariate."""

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from gplc import _check
from gplc._linalg import LOG_2PI, draw_gaussian, solve_lower, usable
from gplc._types import Array
from gplc.kernels import Bound, Kernel
from gplc.means import Mean
from gplc.models.base import Given, Model, Part, State, Unknowns, Update
from gplc.models.landmarks import standard_nodes
from gplc.models.latent_covariate.function import LatentFunction
from gplc.models.latent_covariate.left_out import left_out
from gplc.models.latent_covariate.marginal import MarginalFunction
from gplc.models.latent_covariate.moves import (
    LatentExchange,
    LatentFold,
    LatentReflection,
    LatentShift,
    scale_part,
)
from gplc.models.latent_covariate.prediction import ConditionedCovariate
from gplc.models.latent_covariate.regrowth import FoldRegrowth
from gplc.models.latent_covariate.sweep import CovariateSweep
from gplc.models.left_out import LeftOut
from gplc.priors import PriorLike
from gplc.processes import FixedNoise, Gradient, Layout, LearnedNoise, Noise, Process
from gplc.processes.features import Features
from gplc.samplers.choices import LearnedChoices
from gplc.samplers.hamiltonian import Hamiltonian
from gplc.samplers.marginal import MarginalHamiltonian, MarginalSlice
from gplc.samplers.pools import Pools
from gplc.samplers.protocol import Point, Sampler
from gplc.samplers.slice import Slice
from gplc.samplers.sweeps import Direct, SliceSweep, SymmetricProposal

# A chain begins with w_i correlated so much with the rank of y_i among so many cases near it, and
# with the default scheme holds it for so many iterations, until the hyperparameters suit it.
START_CORRELATION, START_NEIGHBOURS, START_HELD = 0.95, 21, 40

# Of the nodes for y at the landmarks, so many on either side of zero have variances of their own.
HALF_FEW = 2

# Averages over w take a grid with so many axes.
MOST_COVARIATES = 5


class LatentCovariate(Model):
    """y_i = g(x_i, w_i) + e_i,  g ~ GP(0, K),  w_i ~ N(0, 1),  e_i ~ N(0, sigma^2).

    By default

    K((x, w), (x', w')) = c^2 + eta^2 exp(-sum_k (x_k - x'_k)^2 / rho_k^2 - (w - w')^2 / rho_w^2)

    with theta = (log eta, log rho_1, ..., log rho_p, log rho_w, log sigma); `names` =
    ``signal_sd``, ``length_scale`` (with an index if ARD), ``latent_length_scale``, ``noise_sd``.

    Besides its hyperparameters it has these parts: ``w`` (sweep over single values); ``function``
    (w and sigma given g, if the kernel separates); ``fold``, a reflection of w in a stretch of
    one input; and those of three moves under which the likelihood does not change at all that are
    right for its kernel: ``shift`` of all w, joint ``scale`` of w and rho_w, and ``reflection`` of
    w. With several latent covariates all but the first and ``fold`` have an index, and there is an
    ``exchange`` of two of them, if the kernel is the same function of all.

    Parameters
    ----------
    X, y, kernel, priors, mean, known_sd, learned_noise
        As in every model; `kernel` is a function of x and w, and what is learned is sigma.
    n_latent : int
        Number of latent covariates of a case.
    noise_sd : float, optional
        sigma, fixed; learned by default. The paper's zeta = 0 is a small number here: without any
        noise C has no inverse where g is smooth.

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
    title = "GPLC"
    noise_summary = "noise whose size and shape depend on the inputs"
    noise_varies = True
    noise_is_gaussian = False
    latent_name = "w"
    orders_rows = True

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        kernel: Kernel | None = None,
        priors: Mapping[str, PriorLike] | None = None,
        mean: Mean = None,
        n_latent: int = 1,
        noise_sd: float | None = None,
        *,
        known_sd: ArrayLike | None = None,
        learned_noise: bool = True,
    ) -> None:
        self.n_covariates = _check.integer(
            "n_latent", n_latent, at_least=1, at_most=MOST_COVARIATES, advice="try 1"
        )
        if noise_sd is not None:
            _check.number(
                "noise_sd",
                noise_sd,
                above=0.0,
                at_most=_check.LARGEST_SD,
                advice="0.01 is little; None: learned",
            )
        self.noise_sd = noise_sd
        self.latest_features: tuple[Any, Features | None] | None = None
        super().__init__(
            X, y, kernel, priors, mean, known_sd=known_sd, learned_noise=learned_noise
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "latest_features": None}

    @property
    def n_latent(self) -> int:
        """One w per case, or several."""
        return self.n * self.n_covariates

    @property
    def signature_kinds(self) -> tuple[str, ...]:
        """E w g(x, w), of each covariate: its signs say in which direction g goes with w."""
        return tuple(self.part_of("E w g(x, w)", column) for column in range(self.n_covariates))

    def _signature(self, means: Array) -> Array:
        nodes = self._landmark_nodes.reshape(self.n_covariates, -1)
        return nodes @ means.T / nodes.shape[1]

    @functools.cached_property
    def _few_nodes(self) -> tuple[Array, NDArray[np.intp]]:
        """A few nodes, and which of them is the nearest to each of those for the landmarks."""
        few = standard_nodes(self.n_covariates, HALF_FEW)
        shape = self.n_covariates, -1, 1
        gaps = self._landmark_nodes.reshape(shape) - few.reshape(shape).transpose(0, 2, 1)
        return few, np.argmin(np.sum(gaps**2, axis=0), axis=1)

    def _components_at_landmarks(self, conditioned: Any) -> tuple[Array, Array]:
        """The variance of g takes triangular solves: every node has that of one of a few."""
        return conditioned.components_between(
            self.landmarks.X, self._landmark_nodes, *self._few_nodes
        )

    @property
    def node_size(self) -> int:
        """One number for each w*."""
        return self.n_covariates

    def _processes(self, layout: Layout) -> tuple[Process, ...]:
        noise = self._with_known(self._own_noise())
        process = Process.placed(
            layout, "C", self._main_kernel(), self.bound_rows, noise, self.n_covariates
        )
        for column in range(self.n_covariates):
            if not process.bound.sees(column):
                raise ValueError(
                    f"no term of kernel sees the latent covariate w{column}, got {self.kernel!r}; "
                    "let a term see it (kernels are on all inputs unless .on(...) says "
                    "otherwise), or use the standard model"
                )
        return (process,)

    def _own_noise(self) -> Noise | None:
        """What is added to g besides known noise."""
        if self.noise_sd is not None:
            return FixedNoise(self.noise_sd)
        return LearnedNoise() if self.learned_noise else None

    @property
    def learns_noise(self) -> bool:
        """Whether sigma is a hyperparameter."""
        return self.noise_sd is None and self.learned_noise

    @property
    def bound(self) -> Bound:
        """The kernel at the inputs."""
        return self.processes[0].bound

    def _latent_parts(self) -> dict[str, Part]:
        parts = {"w": self._part_of_w(CovariateSweep), "fold": self._part_of_w(LatentFold)}
        for column in range(self.n_covariates):
            parts |= self._parts_of_column(column)
        pairs = list(itertools.combinations(range(self.n_covariates), 2))
        if pairs and all(self.bound.exchanges(*pair) is not None for pair in pairs):
            parts["exchange"] = self._part_of_w(LatentExchange, pairs)
        return parts

    def _part_of_w(self, target: Callable[..., Any], *settings: Any) -> Part:
        """A part whose position is all of w, and whose target is made of model and state."""
        return lambda state: (
            Point(state.latent, state.log_density, state),
            target(self, state, *settings),
        )

    def part_of(self, kind: str, column: int) -> str:
        """The name of a part of one covariate: with an index, if there are several."""
        return f"{kind}[{column}]" if self.n_covariates > 1 else kind

    def _parts_of_column(self, column: int) -> dict[str, Part]:
        """Moves of one latent covariate that its kernel allows."""
        moves = self.bound.moves(column)
        parts: dict[str, Part] = {}
        if self.bound.separates(column):
            parts["function"] = self._part_of_w(LatentFunction, column)
            parts["marginal"] = self._part_of_w(MarginalFunction, column)
            parts["regrowth"] = self._part_of_w(FoldRegrowth, column)
        if moves.shift:
            parts["shift"] = self._part_of_w(LatentShift, column)
        if moves.scale is not None:
            parts["scale"] = functools.partial(scale_part, self, column, moves.scale)
        if moves.reflection:
            parts["reflection"] = self._part_of_w(LatentReflection, column)
        return {self.part_of(kind, column): part for kind, part in parts.items()}

    def columns(self, w: Array) -> Array:
        """The latent covariates as rows: (n_covariates, n), a view."""
        return w.reshape(self.n_covariates, self.n)

    def _given(self, unknowns: Unknowns) -> tuple[Given, ...]:
        return (Given(self.y, self.columns(unknowns.latent)),)

    def noise_variances(self, theta: Array) -> Array:
        """Variance of the noise of every case: (n,)."""
        process = self.processes[0]
        variance = process.noise.variance(theta[process.noise_place])
        return variance if isinstance(variance, np.ndarray) else np.full(self.n, variance)

    def learned_variance(self, theta: Array) -> float:
        """sigma^2; zero if it is not learned."""
        place = self.processes[0].noise_place
        return math.exp(2.0 * theta[place.start]) if self.learns_noise else 0.0

    def log_latent_prior(self, latent: Array) -> float:
        """Log N(w | 0, I)."""
        return -0.5 * (float(latent @ latent) + latent.size * LOG_2PI)

    def moved(self, state: State, w: Array, theta: Array | None = None) -> State:
        """The state after w has changed, and perhaps sigma."""
        solved = state.solved[0].with_latent(self.columns(w), theta)
        return self._assembled(solved.theta, w, (solved,))

    def relabelled(self, state: State, w: Array, theta: Array | None = None) -> State:
        """The state after w, and perhaps theta, have changed in a way that leaves C as it is."""
        theta = state.theta if theta is None else theta
        solved = state.solved[0]._replace(theta=theta, W=self.columns(w))
        return self._assembled(theta, w, (solved,))

    def _latent_gradient(self, state: State, gradients: Sequence[Gradient]) -> Array:
        return gradients[0].latent.ravel() - state.latent

    def sample_latent(self, rng: np.random.Generator, theta: Array) -> Array:
        """W ~ N(0, I)."""
        return rng.standard_normal(self.n_latent)

    def starting_latent(self, rng: np.random.Generator, theta: Array) -> Array:
        """The first covariate rises with y where x is the same, or falls; and noise on top.

        From signs at random a chain can stay for long where w rises with y in some places and
        falls in others, at a lower density. A second covariate rises with y within
        the upper and the lower half of cases that are near each other, a third within quarters.
        """
        W = self.sample_latent(rng, theta).reshape(self.n_covariates, self.n)
        ranks = local_ranks(self.X, self.y, START_NEIGHBOURS)
        edge = 0.5 / START_NEIGHBOURS
        for w in W:
            w *= math.sqrt(1.0 - START_CORRELATION**2)
            rising = START_CORRELATION * ndtri(np.clip(ranks, edge, 1.0 - edge))
            w += rising if rng.random() < 0.5 else -rising
            ranks = 2.0 * ranks % 1.0
        return W.ravel()

    def _conditioned(self, state: State) -> ConditionedCovariate:
        return ConditionedCovariate(*state.solved)

    def _left_out(self, state: State) -> LeftOut:
        return left_out(self, *state.solved)

    def _replicate(self, rng: np.random.Generator, state: State) -> Array:
        """With w drawn anew for every case, and g where these are, given what is known of it."""
        solved, n = state.solved[0], self.n
        both = Bound(self._main_kernel(), np.vstack([self.X, self.X]), self.n_covariates)
        own, variance = state.theta[solved.process.place], self.noise_variances(state.theta)
        new = self.columns(self.sample_latent(rng, state.theta))
        W = np.hstack([self.columns(state.latent), new])
        K = both.matrix(own, both.pieces(own, W))
        told = solve_lower(usable(solved.factor), K[:n, n:])
        mean = K[n:, :n] @ solved.pulls()
        drawn = draw_gaussian(rng, K[n:, n:] - told.T @ told)
        return mean + drawn + np.sqrt(variance) * rng.standard_normal(n)

    def paper_scheme(self, width: float = 1.0, latent_width: float = 4.0) -> list[Update]:
        """Step-out slice sampling of each hyperparameter, then of each w_i, as in the paper."""
        return [
            *(Update(name, Slice(width)) for name in self.names),
            self._sweep(latent_width),
        ]

    def _sweep(self, width: float) -> Update:
        return Update("w", SliceSweep(width))

    def default_scheme(
        self, leaps: int = 3, function_leaps: int = 64, rounds: int = 2, folds: int = 3
    ) -> list[Update]:
        """Hyperparameters given w, in turn with sigma and w; folds; g with w summed out.

        Where g cannot be written as a function of w, for a kernel that does not separate, it is
        the scheme of the latents.
        """
        between = [
            *(Update(part, MarginalSlice()) for part in self._parts_that_exist("marginal")),
            self._after_hyperparameters(leaps, [])[0],
        ] * (rounds - 1)
        return self._in_function(leaps, MarginalHamiltonian(function_leaps), folds, between)

    def function_scheme(
        self, leaps: int = 3, function_leaps: int = 40, rounds: int = 2, folds: int = 2
    ) -> list[Update]:
        """The default of earlier versions: sigma has several updates, hyperparameters one."""
        function = MarginalHamiltonian(function_leaps, rounds=rounds)
        return self._in_function(leaps, function, folds, [])

    def _in_function(
        self, leaps: int, function: MarginalHamiltonian, folds: int, between: list[Update]
    ) -> list[Update]:
        """Hyperparameters given w, folds, other updates, and then g with w summed out."""
        functions = self._parts_that_exist("marginal")
        if len(functions) < self.n_covariates:
            return self.latents_scheme()
        regrowths = self._parts_that_exist("regrowth") if folds else []
        latent_updates = [
            *(Update(part, LearnedChoices(folds)) for part in regrowths),
            *between,
            *(Update(part, function) for part in functions),
            *self._free_moves(),
        ]
        return self._after_hyperparameters(leaps, latent_updates)

    def latents_scheme(
        self,
        leaps: int = 3,
        size: int = 64,
        repeats: int = 4,
        folds: int = 1,
        latent_width: float = 4.0,
    ) -> list[Update]:
        """Hyperparameters along their gradient; w and sigma given g; free moves; folds.

        Where a covariate cannot be updated given g, for a kernel that does not separate, it is the
        paper's sweep over single w_i.
        """
        functions = self._parts_that_exist("function")
        latent_updates = [
            *(Update(part, Pools(size, repeats)) for part in functions),
            *([] if len(functions) == self.n_covariates else [self._sweep(latent_width)]),
            *self._free_moves(),
            *([Update("fold", SymmetricProposal(folds))] if folds else []),
        ]
        return self._after_hyperparameters(leaps, latent_updates)

    def _after_hyperparameters(self, leaps: int, latent_updates: list[Update]) -> list[Update]:
        """A scheme that begins with the hyperparameters, and lets w wait until they suit it."""
        return [
            Update("hyperparameters", Hamiltonian(leaps, dense=True, conditional=True)),
            *self._wide_moves(),
            *(update._replace(rest=START_HELD) for update in latent_updates),
        ]

    def _parts_that_exist(self, kind: str) -> list[str]:
        """Parts of one kind, of all covariates that have it."""
        names = [self.part_of(kind, column) for column in range(self.n_covariates)]
        return [name for name in names if name in self.parts]

    def _free_moves(self) -> list[Update]:
        samplers: dict[str, Sampler] = {
            "shift": Direct(),
            "scale": Slice(0.5),
            "reflection": Direct(),
        }
        free = [
            Update(part, sampler)
            for kind, sampler in samplers.items()
            for part in self._parts_that_exist(kind)
        ]
        exchange = [Update("exchange", SymmetricProposal())] if "exchange" in self.parts else []
        return [*free, *exchange]

    schemes = {  # noqa: RUF012
        "default": default_scheme,
        "function": function_scheme,
        "latents": latents_scheme,
        "paper": paper_scheme,
    }
    former_schemes = {"default": {2: "latents", 4: "function"}}  # noqa: RUF012


def local_ranks(X: Array, y: Array, neighbours: int) -> Array:
    """The share of cases near to each one, itself among them, that have a smaller y.

    Examples
    --------
    >>> import numpy as np
    >>> local_ranks(np.zeros((5, 1)), np.array([5.0, 1.0, 2.0, 3.0, 4.0]), 5).tolist()
    [0.9, 0.1, 0.3, 0.5, 0.7]
    """
    count = min(neighbours, y.size)
    scaled = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), np.finfo(float).tiny)
    squares = np.sum(scaled**2, axis=1)
    # |a - b|^2 less |a|^2, which is the same for all neighbours of a.
    nearest = np.argpartition(squares - 2.0 * scaled @ scaled.T, count - 1, axis=1)[:, :count]
    below = np.sum(y[nearest] < y[:, None], axis=1)
    level = np.sum(y[nearest] == y[:, None], axis=1)
    return (below + 0.5 * level) / count
