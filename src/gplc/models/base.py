"""What models share: data, hyperparameters and their priors, parts to update, schemes.

A *state* is a value of all unknowns with everything computed from them that later updates can
use again. A *part* is a piece of the state that a sampler can update: a function of the state that
gives the point where the chain is and the target a sampler needs. The payload of every point is
the state that goes with it, so that accepting a point costs nothing more.
"""

import functools
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from gplc import _check
from gplc._linalg import draw_gaussian
from gplc._types import Array
from gplc.kernels import Kernel, SquaredExponential
from gplc.means import Mean, with_mean
from gplc.models.landmarks import KINDS, Landmarks, landmarks_of, standard_nodes, summarised
from gplc.models.left_out import LeftOut
from gplc.priors import LogPriors, PriorLike
from gplc.processes import (
    Dense,
    Gradient,
    KnownNoise,
    Layout,
    Noise,
    Process,
    Replicates,
    SumNoise,
)
from gplc.samplers.protocol import (
    GradientTarget,
    Info,
    Point,
    Sampler,
    ScalarTarget,
    impossible,
)
from gplc.samplers.slice import OccasionalSlice


class Unknowns(NamedTuple):
    """All that a chain samples."""

    theta: Array  # log hyperparameters, in the order of Model.names
    latent: Array  # w or z, (n,); empty for the standard model


class Given(NamedTuple):
    """What a process is solved for."""

    data: Array  # (n,)
    W: Array | None = None  # latent inputs, (q, n)
    noise: Noise | None = None  # instead of its own


class State(NamedTuple):
    """A value of the unknowns, with what was computed from it."""

    theta: Array
    latent: Array
    solved: tuple[Dense, ...]  # the model's processes, in their order
    log_density: float  # log of prior times likelihood; -inf if it cannot be computed
    coordinates: Any = None  # in which the latent values are moving just now, if in others

    @property
    def unknowns(self) -> Unknowns:
        """The unknowns alone."""
        return Unknowns(self.theta, self.latent)


Part = Callable[[Any], tuple[Point, Any]]


class Update(NamedTuple):
    """One entry of a scheme: which part, how, and how much of warm-up goes by before it begins."""

    part: str
    sampler: Sampler
    rest: int = 0


class Conditioned(Protocol):
    """A model with one draw of its unknowns fixed: everything Gaussian, ready to predict.

    `nodes` are standard normal numbers that stand for what is not known of a new case: w* itself,
    or the number that turns the distribution of z* given z into a value. With several w* they are
    all the values of the first, then of the second, and so on (`Model.node_size`).
    """

    def components(self, X: Array, nodes: Array) -> tuple[Array, Array]:
        """Means and SDs of y* given each node: each (rows, nodes)."""

    def means(self, X: Array, nodes: Array) -> Array:
        """The means alone, which need no triangular solve: (rows, nodes)."""

    def function(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of f(x) = E(y | x): each (rows,)."""

    def residual_variance(self, X: Array, nodes: Array) -> Array:
        """Expected variance of y - f(x): (rows,)."""


MODELS: dict[str, type["Model"]] = {}

# Nodes on either side of zero for y at the landmarks. They split a probability in steps of 1/64 at
# the worst, where the noise is tiny: far below what the data leave open.
HALF_NODES = 32

# SD of the noise of a row that is to tell nothing, in standard units.
IGNORED_SD = 1e4

# Of a new y in standard units: less is rounding.
LEAST_VARIANCE = 1e-24


class Model(ABC):
    """A model of n responses y at inputs X.

    Parameters
    ----------
    X : (n, p) array
        Inputs.
    y : (n,) array
        Responses; the prior mean of the process is zero.
    kernel : Kernel, optional
        Covariance function of the (main) process; squared exponential, ARD, with c = 1 by default.
    priors : mapping of str to (mean, sd) or Prior, optional
        Priors of log hyperparameters that replace the defaults in `gplc.priors`.
    mean : {"zero", "constant", "linear"}, ConstantMean or LinearMean, optional
        Mean of the (main) process; its coefficients are integrated out. Zero by default.
    known_sd : (n,) array, optional
        SDs of noise that is known for each case; it is added to what the model learns.
    learned_noise : bool
        Whether there is noise besides that.
    merge_rows : bool
        Whether rows with the same inputs share all that depends on these, in models that can
        (`merges`): exact, and at the cost of the different inputs. Estimators ask for it.

    Attributes
    ----------
    names : tuple of str
        Hyperparameters, in the order of theta.
    ledger : collections.Counter
        Operations done and numerical events met. It is the only thing here that changes, and
        influences nothing.
    """

    # What others need to know of a model: nobody else keeps a list of models.
    key: ClassVar[str]  # in MODELS, on the command line
    title: ClassVar[str]  # in tables and pictures
    noise_summary: ClassVar[str]  # what it says of the noise, in a few words
    noise_varies: ClassVar[bool]  # with the inputs
    noise_is_gaussian: ClassVar[bool]
    latent_name: ClassVar[str] = ""  # of its latent values, among the draws; empty if it has none
    merges: ClassVar[bool] = False  # rows with the same inputs can share what depends on these
    orders_rows: ClassVar[bool] = False  # their order decides the draws, by a latent value each
    schemes: ClassVar[Mapping[str, Callable[..., list[Update]]]]
    # What schemes are called today that had another name in files: by that name, and by the last
    # format in which it meant them, oldest first.
    former_schemes: ClassVar[Mapping[str, Mapping[int, str]]] = {}

    def __init_subclass__(cls) -> None:
        if "key" not in vars(cls):
            return  # a variant of a model, or one that a worker of joblib has half unpacked
        if cls.key in MODELS:
            raise ValueError(f"the model key {cls.key!r} is taken by {MODELS[cls.key].__name__}")
        MODELS[cls.key] = cls

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        kernel: Kernel | None = None,
        priors: Mapping[str, PriorLike] | None = None,
        mean: Mean = None,
        *,
        known_sd: ArrayLike | None = None,
        learned_noise: bool = True,
        merge_rows: bool = False,
    ) -> None:
        self.X = _check.finite_array("X", X, 2)
        self.y = _check.finite_array("y", y, 1)
        if self.X.shape[0] != self.y.size or self.y.size == 0 or self.X.shape[1] == 0:
            raise ValueError(
                f"X and y must have the same positive number of rows, got X {self.X.shape} and "
                f"y {self.y.shape}; give one row of X and one number of y per case"
            )
        self.kernel = checked_kernel("kernel", kernel, SquaredExponential())
        self.mean = mean
        self.known_noise = None if known_sd is None else KnownNoise(np.asarray(known_sd))
        if self.known_noise is not None and self.known_noise.sds.size != self.y.size:
            raise ValueError(
                f"known_sd must have {self.y.size} entries, got {self.known_noise.sds.size}; one "
                "per row of X"
            )
        self.learned_noise = learned_noise
        if not learned_noise and known_sd is None:
            raise ValueError(
                "learned_noise=False leaves no noise at all; give the known noise of each row"
            )
        self.replicates = Replicates.of(self.X) if self.merges and merge_rows else None
        layout = Layout()
        self.processes = self._processes(layout)
        self.names = tuple(layout.hyperparameters)
        self.priors = LogPriors(self.names, priors, layout.hyperparameters)
        for process in self.processes:
            process.check(self.bound_rows, self.priors)
        self._begin_ledger()

    def _begin_ledger(self) -> None:
        """An empty ledger, which the processes write in, and parts that belong to this model."""
        self.ledger: Counter[str] = Counter()
        self.processes = tuple(replace(each, ledger=self.ledger) for each in self.processes)
        self.parts = self._all_parts()

    @property
    def n(self) -> int:
        """Number of cases."""
        return self.y.size

    # What a model has to say.

    @property
    def n_latent(self) -> int:
        """Length of the latent vector."""
        return 0

    @property
    def node_size(self) -> int:
        """Standard normal numbers that stand for what is not known of a new case."""
        return 1

    @property
    def bound_rows(self) -> Array:
        """Rows at which kernels are bound: those that differ, if others are merged with them."""
        return self.X if self.replicates is None else self.X[self.replicates.first]

    @classmethod
    def rows_apart(cls, scheme: Any) -> bool:
        """Whether a scheme, or the name of one, needs rows with the same inputs kept apart."""
        return False

    @property
    def latent_of_cases(self) -> bool:
        """Whether the latent values are those of the cases, and not summed out."""
        return bool(self.latent_name)

    def components_of(self, nodes: int) -> int:
        """Components that one draw with so many nodes gives to a prediction."""
        # The standard model knows all it needs of a new case: one component.
        return nodes // self.node_size if self.n_latent else 1

    @property
    def component_weights(self) -> Array | None:
        """How much each of them counts; None if all count equally."""
        return None

    @property
    def row_size(self) -> int:
        """Numbers computed for a new row, given a draw: a covariance with each case."""
        return len(self.bound_rows)

    @property
    def conditioned_size(self) -> int:
        """Numbers that the model keeps when it is conditioned on a draw: a factor."""
        return len(self.bound_rows) ** 2

    @abstractmethod
    def _processes(self, layout: Layout) -> tuple[Process, ...]:
        """The Gaussian processes it is made of, each with its place in theta; that of y first."""

    def sample_latent(self, rng: np.random.Generator, theta: Array) -> Array:
        """A draw of the latent values from their prior."""
        return np.empty(0)

    def starting_latent(self, rng: np.random.Generator, theta: Array) -> Array:
        """Latent values for a chain to begin with: a draw from their prior."""
        return self.sample_latent(rng, theta)

    def starting_theta(self, units: Array) -> Array:
        """Log hyperparameters for a chain to begin with: so many SDs from the prior means."""
        theta = self.priors.means + self.priors.sds * units
        return np.clip(theta, self.priors.lowest, self.priors.highest)

    @property
    def in_threads(self) -> bool:
        """Whether chains have to be threads of this process, each with a copy (`apart`)."""
        return False

    def apart(self) -> Self:
        """The same model with a ledger of its own."""
        return self.with_data(self.y)

    def smaller(self, rng: np.random.Generator) -> Self | None:
        """The same model of a part of the rows, for a chain to begin with; None for none."""
        return None

    # What the fast method (`gplc.fast`) asks.

    def gathered(self, rng: np.random.Generator, state: Any) -> Any:
        """What a state tells of good coordinates for the density around it; None for nothing."""
        return None

    def around(self, state: Any, gathered: Any) -> tuple[Point, GradientTarget]:
        """Theta, then the latent values, in coordinates in which they are nearly Gaussian."""
        return self._whole_part(state)

    def fewer_rows(self, rng: np.random.Generator) -> Self:
        """A model with about the same density that costs less, where there are very many rows."""
        return self

    @property
    def work(self) -> float:
        """What a density costs, in units of that of 150 cases."""
        return (len(self.bound_rows) / 150.0) ** 2

    def may_settle(self, rows: int, cases: int) -> bool:
        """Whether short chains are cheap: with at most so many rows in a basis, or cases."""
        return len(self.bound_rows) <= cases

    def log_latent_prior(self, latent: Array) -> float:
        """Log prior of latent values that are not a process; that of a process is its own."""
        return 0.0

    @abstractmethod
    def _given(self, unknowns: Unknowns) -> tuple[Given, ...]:
        """What every process is solved for, given the unknowns."""

    def _latent_gradient(self, state: State, gradients: Sequence[Gradient]) -> Array:
        """Gradient of the log density by the latent values, given those of the processes."""
        return np.empty(0)

    @abstractmethod
    def _conditioned(self, state: State) -> Conditioned:
        """The model with its unknowns fixed, ready to predict."""

    def _left_out(self, state: State) -> LeftOut:
        """Each y_i given the other responses and what is known of their latent values."""
        if self.n_latent:
            raise NotImplementedError(
                f"{type(self).__name__} does not say how it sums out the latent value of a row "
                "that is left out; define _left_out, as LatentVariance does"
            )
        mean, variance = state.solved[0].left_out()
        return LeftOut(mean[:, None], np.sqrt(variance)[:, None], np.ones(1))

    # What is kept of a draw at the landmarks, for diagnostics.

    @property
    def signature_kinds(self) -> tuple[str, ...]:
        """Names of what tells modes apart at a landmark, without being judged."""
        return ()

    def _components_at_landmarks(self, conditioned: Any) -> tuple[Array, Array]:
        """Means and SDs of y at the landmarks, given each node: each (landmarks, nodes)."""
        return conditioned.components(self.landmarks.X, self._landmark_nodes)

    def _signature(self, means: Array) -> Array:
        """What tells modes apart, from means at the landmarks: (signature kinds, landmarks)."""
        return np.empty((0, len(means)))

    # What follows from it.

    @functools.cached_property
    def landmarks(self) -> Landmarks:
        """The training rows at which every draw is judged."""
        return self._landmarks()

    def _landmarks(self) -> Landmarks:
        return landmarks_of(self.X, self.y)

    @functools.cached_property
    def _landmark_nodes(self) -> Array:
        """Nodes for y at the landmarks, the same for all draws."""
        return standard_nodes(self.node_size, HALF_NODES)

    @property
    def judged_shape(self) -> tuple[int, int]:
        """The shape of what `judged` gives: kinds, and landmarks."""
        return len(KINDS) + len(self.signature_kinds), self.landmarks.rows.size

    def judged(self, state: State) -> Array:
        """What convergence is judged on at the landmarks, given the draw: (kinds, landmarks).

        Of a new y given the draw: its mean f(x), its log SD (that of f, given the draw, included),
        and how likely it is to be in the lower and in the upper tail; then the model's signature.
        What cannot be computed is nan. It uses what the state has and factorises nothing.
        """
        if impossible(state.log_density):
            return np.full(self.judged_shape, np.nan)
        with np.errstate(all="ignore"):
            means, sds = self._components_at_landmarks(self._conditioned(state))
            result = summarised(means, sds, self.landmarks.levels)
        if self.signature_kinds:
            result = np.concatenate([result, self._signature(means)])
        return np.where(np.isfinite(result), result, np.nan)

    def _main_kernel(self) -> Kernel:
        """The kernel of the main process, with its mean."""
        return with_mean(self.kernel, self.mean)

    def _with_known(self, noise: Noise | None) -> Noise:
        """The noise of y: what is known of each case, and what the model says besides."""
        parts = [each for each in (self.known_noise, noise) if each is not None]
        return parts[0] if len(parts) == 1 else SumNoise(tuple(parts))

    def with_data(self, y: ArrayLike) -> Self:
        """The same model of other responses at the same inputs."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.__dict__.pop("landmarks", None)
        other.y = _check.finite_array("y", y, 1)
        if other.y.size != self.n:
            raise ValueError(f"y must have {self.n} entries, got {other.y.size}; one per row of X")
        other._begin_ledger()
        return other

    def ignoring(self, row: int) -> Self:
        """The same model, told nothing by one row: its noise is as good as infinite.

        It has the same unknowns, so that chains of this model can go on with it.
        """
        other = self.with_data(self.y)
        known = KnownNoise(np.zeros(self.n)) if self.known_noise is None else self.known_noise
        sds = known.sds.copy()
        sds[row] = IGNORED_SD
        other.known_noise = replace(known, sds=sds)
        other.processes = other._processes(Layout())
        other._begin_ledger()
        return other

    def _all_parts(self) -> dict[str, Part]:
        by_name = {name: self._hyperparameter_part(k) for k, name in enumerate(self.names)}
        together = {"hyperparameters": self._theta_part, "all": self._whole_part}
        return by_name | together | self._latent_parts()

    def _latent_parts(self) -> dict[str, Part]:
        """Parts other than the hyperparameters."""
        return {}

    def unknowns(self, theta: ArrayLike, latent: ArrayLike = ()) -> Unknowns:
        """Unknowns of this model, checked."""
        result = Unknowns(
            _check.finite_array("theta", theta, 1), _check.finite_array("latent", latent, 1)
        )
        if result.theta.size != len(self.names) or result.latent.size != self.n_latent:
            raise ValueError(
                f"theta must have {len(self.names)} entries ({', '.join(self.names)}) and latent "
                f"{self.n_latent}, got {result.theta.size} and {result.latent.size}; "
                "see Model.names"
            )
        return result

    def state(self, unknowns: Unknowns) -> State:
        """The state at `unknowns`, computed from nothing."""
        solved = tuple(
            Dense.at(process, unknowns.theta, *given)
            for process, given in zip(self.processes, self._given(unknowns), strict=True)
        )
        return self._assembled(*unknowns, solved)

    def _assembled(self, theta: Array, latent: Array, solved: tuple[Dense, ...]) -> State:
        """A state from its solved processes, with the log density that follows."""
        density = 0.0
        for each in solved:
            density += each.log_density
        if not impossible(density):
            density += self.log_latent_prior(latent)
            density += self.priors.log_density(theta)
        return State(theta, latent, solved, density)

    def _with_hyperparameter(self, state: State, index: int, theta: Array) -> State:
        """The state after theta[index] has changed, reusing all that does not depend on it."""
        solved = [each.with_hyperparameter(index, theta) for each in state.solved]
        return self._assembled(theta, state.latent, tuple(solved))

    def gradient_at(self, state: State) -> Unknowns:
        """Gradient of the log density by theta and the latent values, where it is not zero."""
        gradients = [each.gradient() for each in state.solved]
        by_theta = self._by_theta(gradients) + self.priors.gradient(state.theta)
        return Unknowns(by_theta, self._latent_gradient(state, gradients))

    def _by_theta(self, gradients: Sequence[Gradient]) -> Array:
        """Gradients of the processes, each at its place in theta."""
        result = np.zeros(len(self.names))
        for process, gradient in zip(self.processes, gradients, strict=True):
            result[process.place] += gradient.kernel
            result[process.noise_place] += gradient.noise
        return result

    def log_density(self, unknowns: Unknowns) -> float:
        """Log of prior times likelihood at `unknowns`; -inf if it cannot be computed."""
        return self.state(unknowns).log_density

    def gradient(self, unknowns: Unknowns) -> Unknowns:
        """Gradient of `log_density` with respect to theta and the latent values; NaN if none."""
        state = self.state(unknowns)
        if impossible(state.log_density):
            return Unknowns(np.full(len(self.names), np.nan), np.full(self.n_latent, np.nan))
        return self.gradient_at(state)

    def prior_mean(self) -> Unknowns:
        """Log hyperparameters at their prior means, latent values at zero."""
        return Unknowns(self.priors.means.copy(), np.zeros(self.n_latent))

    def sample_prior(self, rng: np.random.Generator) -> Unknowns:
        """A draw of all unknowns from their prior."""
        theta = self.priors.sample(rng)
        return Unknowns(theta, self.sample_latent(rng, theta))

    def sample_data(self, rng: np.random.Generator, unknowns: Unknowns) -> Array:
        """A draw of y given the unknowns."""
        return draw_gaussian(rng, self.covariance(unknowns))

    def replicate(self, rng: np.random.Generator, unknowns: Unknowns) -> Array:
        """New responses at the same inputs, given y and one draw: a draw of all jointly, (n,).

        The function is drawn as a whole, so that neighbours go together as they do in y.
        """
        return self._replicate(rng, self._mended(unknowns))

    def _replicate(self, rng: np.random.Generator, state: State) -> Array:
        solved = state.solved[0]
        variance = solved.noise.variance(state.theta[solved.process.noise_place])
        return solved.draw(rng) + np.sqrt(variance) * rng.standard_normal(self.n)

    def covariance(self, unknowns: Unknowns) -> Array:
        """C, the covariance matrix of y given the unknowns."""
        _, W, noise = self._given(unknowns)[0]
        return self.processes[0].covariance(unknowns.theta, W, noise=noise)

    def condition(self, unknowns: Unknowns) -> Conditioned:
        """Fix the unknowns at one draw, for prediction.

        A covariance that cannot be factored there, to rounding, gets a little more noise.
        """
        return self._conditioned(self._mended(unknowns))

    def left_out(self, unknowns: Unknowns) -> LeftOut:
        """Each y_i given all other responses and one draw, as a mixture of Gaussians.

        p(y_i | y_-i, theta, latent values of the others): that of the case itself, which its
        own response has been fitted to, is summed out.

        Examples
        --------
        >>> import numpy as np
        >>> from gplc.models import LatentVariance
        >>> model = LatentVariance([[0.0], [1.0], [2.0]], [0.5, -0.5, 0.0])
        >>> model.left_out(model.prior_mean()).log_density(model.y).round(3).tolist()
        [-1.544, -1.473, -1.429]
        """
        return self._left_out(self._mended(unknowns))

    def _mended(self, unknowns: Unknowns) -> State:
        """The state at a draw; where C cannot be factored there is a little more noise."""
        state = self.state(unknowns)
        return state._replace(solved=tuple(each.mended() for each in state.solved))

    def scheme(self, name: str = "default", **settings: Any) -> list[Update]:
        """The updates of one iteration, by name."""
        _check.one_of("scheme", name, self.schemes)
        try:
            return self.schemes[name](self, **settings)
        except TypeError as error:
            raise ValueError(
                f"scheme {name!r} of {type(self).__name__} does not take {sorted(settings)}; "
                f"see its docstring ({error})"
            ) from error

    def step(self, rng: np.random.Generator, state: State, update: Update) -> tuple[State, Info]:
        """One update of one part."""
        point, target = self.parts[update.part](state)
        point, info = update.sampler.step(rng, point, target)
        return self._settled(point.payload), info

    def __getstate__(self) -> dict[str, Any]:
        # Parts are closures over the model: they are made again, not pickled.
        return {name: value for name, value in self.__dict__.items() if name != "parts"}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self.__dict__.update(saved)
        self.parts = self._all_parts()

    # Tools for the models.

    def _wide_moves(self) -> list[Update]:
        """Slice updates of every hyperparameter now and then, for chains that are held somewhere.

        Where all length scales are short a GP can explain y by its noise or by wiggles, and
        trajectories of a few steps do not always find the way out.
        """
        return [Update(name, OccasionalSlice()) for name in self.names]

    def _settled(self, state: State) -> State:
        """The state with anything computed that an update left for later."""
        return state

    def _hyperparameter_part(self, index: int) -> Part:
        def open_part(state: State) -> tuple[Point, ScalarTarget]:
            def evaluate(value: float) -> Point:
                theta = state.theta.copy()
                theta[index] = value
                if not self.priors.allows(theta):
                    self.ledger["beyond limits"] += 1
                    return Point(value, -np.inf, None)
                changed = self._with_hyperparameter(state, index, theta)
                return Point(value, changed.log_density, changed)

            return Point(float(state.theta[index]), state.log_density, state), ScalarTarget(
                evaluate
            )

        return open_part

    def _theta_part(self, state: State) -> tuple[Point, GradientTarget]:
        """All hyperparameters, with the latent values held fixed."""

        def evaluate(theta: Array) -> Point:
            if not self.priors.allows(theta):
                self.ledger["beyond limits"] += 1
                return Point(theta, -np.inf, None)
            moved = self._with_theta(state, theta)
            return Point(theta, moved.log_density, moved)

        def gradient(point: Point) -> Array:
            return self.gradient_at(point.payload).theta

        return Point(state.theta, state.log_density, state), GradientTarget(evaluate, gradient)

    def _with_theta(self, state: State, theta: Array) -> State:
        """The state after all of theta has changed."""
        return self.state(Unknowns(theta, state.unknowns.latent))

    def _whole_part(self, state: State, *coordinates: Any) -> tuple[Point, GradientTarget]:
        """All unknowns at once: theta, then the latent values as `_vector` has them.

        `coordinates` are for a model that has several ways to write its latent values.
        """
        size = len(self.names)

        def evaluate(position: Array) -> Point:
            if not self.priors.allows(position[:size]):
                self.ledger["beyond limits"] += 1
                return Point(position, -np.inf, None)
            moved, density = self._at_vector(position[:size], position[size:], *coordinates)
            return Point(position, density, moved)

        def gradient(point: Point) -> Array:
            return self._gradient_of_vector(point.payload)

        return Point(*self._vector(state, *coordinates)), GradientTarget(evaluate, gradient)

    def _vector(self, state: State) -> tuple[Array, float, State]:
        """The unknowns as one vector, their log density as such, and their state."""
        return np.concatenate(state.unknowns), state.log_density, state

    def _at_vector(self, theta: Array, latent: Array) -> tuple[State | None, float]:
        """The state at both pieces of such a vector, and its log density."""
        state = self.state(Unknowns(theta, latent))
        return state, state.log_density

    def _gradient_of_vector(self, state: State) -> Array:
        """Gradient of that density with respect to the vector."""
        return np.concatenate(self.gradient_at(state))


def checked_kernel(name: str, kernel: Any, instead: Kernel) -> Kernel:
    """The kernel given, or the one to take instead of None."""
    if not (kernel is None or isinstance(kernel, Kernel)):
        raise ValueError(
            f"{name} must be a Kernel or None, got {kernel!r}; try SquaredExponential(ard=False)"
        )
    return instead if kernel is None else kernel
