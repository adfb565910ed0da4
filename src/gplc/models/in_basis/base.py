"""Models in a basis that does not depend on the rows: everything is a sum over these.

The unknowns are theta and the coefficients of a basis (`gplc.processes.hilbert`), b = s(theta) u
with u ~ N(0, I) a priori; or b = C(theta) s(theta) u, where functions interpolate between points
(`gplc.models.in_basis.mixing`). The latent vector of a state is u. A value of the density and its
gradient is one pass over the rows; theta enters through the prior of b alone, apart from what the
noise learns.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gplc._linalg import LOG_2PI, usable
from gplc._types import Array
from gplc.models.base import Model, Part, Unknowns, Update
from gplc.models.in_basis.frame import Evidence, Frame, dense_places
from gplc.models.in_basis.mixing import Mixed, Mixing
from gplc.models.landmarks import Landmarks, landmarks_of
from gplc.models.left_out import LeftOut
from gplc.processes.distant import RowsGone
from gplc.processes.hilbert import Axes, Basis
from gplc.processes.inducing import Points
from gplc.processes.rows import CountedRows, Rows, RowsHere, Task
from gplc.samplers.framed import FramedHamiltonian
from gplc.samplers.protocol import FrameTarget, GradientTarget, Point
from gplc.samplers.slice import OccasionalSlice

# Rows that a kernel is tried on, that landmarks are chosen from, that evidence comes from, and
# that a chain begins with.
TRIED, LANDMARK_ROWS, EVIDENCE_ROWS, FIRST_ROWS = 50, 5000, 1024, 1000
# A chain of more rows than these begins with a part of them.
SMALLEST_START = 2000
# The fast method gathers evidence so often, and has the curvature from so many rows.
GATHERED, CURVED_ROWS = 16, 20_000
# What the noise learns is sampled by slices besides, in such a share of the iterations: little
# noise can be nearly no noise, over a wide range.
WIDE_SHARE = 0.5


class Sums(NamedTuple):
    """What the rows say at one value of the unknowns."""

    log_likelihood: float
    by_b: Array  # its gradient by the coefficients
    by_noise: Array  # and by what the noise learns
    by_e: Array  # and by the coefficients before they are mixed, s u


class BasisState(NamedTuple):
    """A value of the unknowns, with what the rows say there."""

    theta: Array
    latent: Array  # u
    sums: Sums | None
    log_density: float
    coordinates: Any = None  # in which the unknowns are moving just now
    mixing: Mixing | None = None  # C at theta

    @property
    def unknowns(self) -> Unknowns:
        """The unknowns alone."""
        return Unknowns(self.theta, self.latent)


class InBasis(Model):
    """What models in a basis share. A subclass is made of it and of an exact model.

    Rows are summed over, repeated or not.

    Parameters
    ----------
    X, y, kernel, priors, mean, ...
        As in the exact model.
    axes : Axes or Points
        Where the functions live, or the points.
    """

    merges = False
    orders_rows = False

    def __init__(
        self, X: ArrayLike, y: ArrayLike, *settings: Any, axes: Axes | Points, **more: Any
    ) -> None:
        if more.get("known_sd") is not None:
            raise ValueError("a model in a basis takes no known_sd; fit without an approximation")
        self.axes = axes
        super().__init__(X, y, *settings, **more)
        self.bases = self._bases()
        self.rows: Rows = RowsHere(self.X, self.y)

    @property
    def _grid(self) -> Axes:
        """The axes, of a model that has functions on these."""
        assert isinstance(self.axes, Axes)
        return self.axes

    # What a model says.

    @abstractmethod
    def _bases(self) -> tuple[Basis, ...]:
        """A basis for every process, in their order."""

    @property
    def row_size(self) -> int:
        """Functions of x."""
        return sum(basis.width for basis in self.bases)

    @property
    def conditioned_size(self) -> int:
        """Coefficients."""
        return sum(basis.size for basis in self.bases)

    @property
    def bound_rows(self) -> Array:
        """A few rows: kernels are known by their spectral densities."""
        return self.X[:: max(1, self.n // TRIED)][:TRIED]

    def outside(self, X: Array) -> tuple[int, int] | None:
        """Row and column of the first input that the basis does not reach; None if all are in."""
        axes = self._grid.inputs
        gaps = np.abs(X - [axis.centre for axis in axes])
        beyond = np.argwhere(~(gaps <= [axis.reach for axis in axes]))
        return (int(beyond[0][0]), int(beyond[0][1])) if len(beyond) else None

    def errors(self, theta: Array) -> float:
        """The largest relative error of a covariance at theta, of all processes."""
        pairs = zip(self.processes, self.bases, strict=True)
        return max(basis.error(theta[process.place]) for process, basis in pairs)

    # What changes in a model that has a basis.

    def with_rows(self, X: Array, y: Array) -> Self:
        """The same model of other rows."""
        return self.on_rows(RowsHere(np.ascontiguousarray(X), np.ascontiguousarray(y)))

    def on_rows(self, rows: Rows) -> Self:
        """The same model of rows wherever they are."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.__dict__.pop("landmarks", None)
        other.X, other.y, other.rows = rows.X, rows.y, rows
        other._begin_ledger()
        return other

    def on_axes(self, axes: Axes | Points) -> Self:
        """The same model of the same processes in another basis, to measure its error."""
        other = self.on_rows(self.rows)
        other.axes = axes
        other.bases = other._bases()
        return other

    @property
    def in_threads(self) -> bool:
        """Whether chains are threads, since others do the sums."""
        return self.rows.shared

    def told(self) -> dict[str, Array]:
        """What a file has to keep of rows that it does not hold."""
        return {}

    def with_told(self, arrays: Mapping[str, Array]) -> Self:
        """The model with that."""
        return self

    def check_rows(self) -> None:
        """Refuse to sample if the rows are out of reach."""
        if isinstance(self.rows, RowsGone):
            self.rows.total(lambda X, y: ())

    def apart(self) -> Self:
        """The same model with a ledger of its own, for another thread."""
        return self.on_rows(self.rows)

    def _landmarks(self) -> Landmarks:
        stride = -(-self.n // LANDMARK_ROWS)
        found = landmarks_of(self.X[::stride], self.y[::stride])
        return found._replace(rows=found.rows * stride)

    @property
    def work(self) -> float:
        """What a density costs: a pass over the rows."""
        return self.n / 5000.0

    def may_settle(self, rows: int, cases: int) -> bool:
        """With at most so many rows."""
        return self.n <= rows

    def with_data(self, y: ArrayLike) -> Self:
        """The same model of other responses."""
        return self.with_rows(self.X, super().with_data(y).y)

    def left_out(self, unknowns: Unknowns) -> LeftOut:
        """Each y_i given one draw of the function: a row hardly tells more than the others do."""
        means, sds = self.condition(unknowns).components(self.X, np.empty(0))
        weights = self.component_weights
        return LeftOut(means, sds, np.ones(1) if weights is None else weights)

    def ignoring(self, row: int) -> Self:
        """There is no such model."""
        raise ValueError(
            "refit must be 0 for a fit in a basis, which has many rows; take refit=0, or fit with "
            "approximation=None"
        )

    def covariance(self, unknowns: Unknowns) -> Array:
        """There is none: the rows are independent given the coefficients."""
        raise NotImplementedError("a model in a basis makes no matrix of rows x rows")


class WithCoefficients(InBasis):
    """A model in a basis whose coefficients are sampled."""

    latent_name = "coefficients"

    @property
    def latent_of_cases(self) -> bool:
        """They are coefficients."""
        return False

    def __init__(self, *data: Any, **settings: Any) -> None:
        super().__init__(*data, **settings)
        self.dense_places: NDArray[np.intp] = dense_places(self._importance)
        self.mixed = self._mixed()

    @property
    def _importance(self) -> Array:
        """The smaller, the more a coefficient matters."""
        return np.concatenate([basis.importance() for basis in self.bases])

    def with_fewer_correlations(self, most: int) -> Self:
        """The same model, whose coordinates allow for correlations of fewer coefficients."""
        other = self.on_rows(self.rows)
        other.dense_places = dense_places(self._importance, most)
        return other

    @property
    def n_latent(self) -> int:
        """Coefficients of all processes."""
        return self.conditioned_size if hasattr(self, "bases") else 0

    # What a model with coefficients says.

    @abstractmethod
    def _task(self, theta: Array, coefficients: tuple[Array, ...]) -> Task:
        """What gives, for a block of rows, the entries of `Sums`."""

    @abstractmethod
    def _scores(
        self, rng: np.random.Generator, X: Array, theta: Array, coefficients: tuple[Array, ...]
    ) -> tuple[tuple[Array, ...], Array]:
        """Scores of responses drawn from the model at rows of X.

        By what each row has of every function of w, (rows, kinds), for each basis; and by what
        the noise learns, (rows, k).
        """

    @property
    def noise_place(self) -> slice:
        """Where theta has what the noise learns."""
        return self.processes[0].noise_place

    # What follows from it.

    def _splits(self, vector: Array) -> tuple[Array, ...]:
        """The coefficients of each basis."""
        ends = np.cumsum([basis.size for basis in self.bases])[:-1]
        return tuple(np.split(vector, ends))

    def log_sds(self, theta: Array) -> Array:
        """Log prior SDs of all coefficients."""
        pairs = zip(self.processes, self.bases, strict=True)
        return np.concatenate([basis.log_sds(theta[p.place]) for p, basis in pairs])

    def slopes(self, theta: Array) -> Array:
        """Derivatives of `log_sds` by theta: (k, size)."""
        result = np.zeros((theta.size, self.n_latent))
        first = 0
        for process, basis in zip(self.processes, self.bases, strict=True):
            result[process.place, first : first + basis.size] = basis.slopes(theta[process.place])
            first += basis.size
        return result

    def mixing(self, theta: Array) -> Mixing | None:
        """C of all terms that have one; None if it cannot be computed."""
        roots = [each.root(theta) for each in self.mixed]
        return None if None in roots else Mixing([root for root in roots if root is not None])

    def _mixed(self) -> tuple[Mixed, ...]:
        found, first = [], 0
        for process, basis in zip(self.processes, self.bases, strict=True):
            for term, own in basis.mixed:
                there = slice(first + own.start, first + own.stop)
                found.append(Mixed(term, there, process.place))
            first += basis.size
        return tuple(found)

    def coefficients(
        self, theta: Array, u: Array, mixing: Mixing | None = None
    ) -> tuple[Array, ...]:
        """B = C(theta) s(theta) u, of each basis."""
        mixing = usable(self.mixing(theta)) if mixing is None else mixing
        with np.errstate(all="ignore"):
            return self._splits(mixing.applied(np.exp(self.log_sds(theta)) * u))

    def state(  # type: ignore[override]
        self, unknowns: Unknowns, mixing: Mixing | None = None
    ) -> BasisState:
        """The state at `unknowns`: one pass over the rows."""
        theta, u = unknowns
        self.ledger["passes over the rows"] += 1
        with np.errstate(all="ignore"):
            mixing = self.mixing(theta) if mixing is None else mixing
            if mixing is None:
                return BasisState(theta, u, None, -math.inf)
            task = self._task(theta, self.coefficients(theta, u, mixing))
            value, by_b, by_noise = self.rows.total(task)
            density = float(value) - 0.5 * float(u @ u) - 0.5 * u.size * LOG_2PI
            density += self.priors.log_density(theta)
            sums = Sums(float(value), by_b, by_noise, mixing.transposed(by_b))
        possible = math.isfinite(density) and bool(np.all(np.isfinite(sums.by_e)))
        found = density if possible else -math.inf
        return BasisState(theta, u, sums, found, mixing=mixing)

    def _with_hyperparameter(  # type: ignore[override]
        self, state: BasisState, index: int, theta: Array
    ) -> BasisState:
        return self.state(Unknowns(theta, state.latent))

    def gradient_at(self, state: BasisState) -> Unknowns:  # type: ignore[override]
        """Gradient of the log density by theta and u."""
        assert state.sums is not None
        assert state.mixing is not None
        _, by_b, by_noise, by_e = state.sums
        sds = np.exp(self.log_sds(state.theta))
        e = sds * state.latent
        by_theta = self.slopes(state.theta) @ (e * by_e)
        by_theta += state.mixing.pulled(state.theta, state.mixing.products(by_b, e))
        by_theta[self.noise_place] += by_noise
        by_theta += self.priors.gradient(state.theta)
        return Unknowns(by_theta, sds * by_e - state.latent)

    def condition(self, unknowns: Unknowns) -> Any:
        """Fix the unknowns at one draw: no pass over the rows is needed."""
        state: Any = BasisState(*unknowns, None, 0.0)
        return self._conditioned(state)

    def smaller(self, rng: np.random.Generator) -> Self | None:
        """A tenth of the rows, unless that is few."""
        if self.rows.n <= SMALLEST_START:
            return None
        return self.on_rows(self.rows.fewer(rng, max(self.rows.n // 10, SMALLEST_START // 2)))

    def sample_latent(self, rng: np.random.Generator, theta: Array) -> Array:
        """U ~ N(0, I)."""
        return rng.standard_normal(self.n_latent)

    # The exact model that a subclass is made of has its own ways for these.

    def prior_mean(self) -> Unknowns:
        """Log hyperparameters at their prior means, coefficients at zero."""
        return Model.prior_mean(self)

    def _settled(self, state: Any) -> Any:
        return state._replace(coordinates=None)

    def _components_at_landmarks(self, conditioned: Any) -> tuple[Array, Array]:
        return Model._components_at_landmarks(self, conditioned)

    def _vector(self, state: Any, *_: Any) -> Any:
        return Model._vector(self, state)

    def _at_vector(self, theta: Array, latent: Array, *_: Any) -> Any:
        return Model._at_vector(self, theta, latent)

    def _gradient_of_vector(self, state: Any) -> Array:
        return Model._gradient_of_vector(self, state)

    # Theta and u together, in coordinates that suit what the rows say (`Frame`).

    def _latent_parts(self) -> dict[str, Part]:
        return {"framed": self._framed_part}

    def _framed_part(self, state: Any) -> tuple[Point, FrameTarget]:
        target = FrameTarget(
            lambda frame: self._given_frame(state, frame),
            lambda rng, point: self.evidence(rng, point.payload),
        )
        return Point(state.unknowns, state.log_density, state), target

    def evidence(self, rng: np.random.Generator, state: BasisState) -> Array:
        """Where the state is, and what rows tell about the coefficients there."""
        X, _ = self.rows.some(rng, EVIDENCE_ROWS)
        with np.errstate(all="ignore"):
            coefficients = self.coefficients(state.theta, state.latent, state.mixing)
            scores, of_noise = self._scores(rng, X, state.theta, coefficients)
            told = [
                basis.functions(basis.features(X))[:, basis.row_place] * each[:, basis.kind_place]
                for basis, each in zip(self.bases, scores, strict=True)
            ]
        share = self.rows.n / len(X)
        return Evidence.of(*state.unknowns, np.hstack(told), of_noise, share, self.dense_places)

    # What the fast method asks.

    def gathered(self, rng: np.random.Generator, state: Any) -> Array:
        """What rows tell of the coefficients near a state, several times."""
        told = [self.evidence(rng, state) for _ in range(GATHERED)]
        return np.asarray(np.mean(told, axis=0))

    def around(self, state: Any, gathered: Array) -> tuple[Point, GradientTarget]:
        """Theta and the coefficients in the coordinates of a frame."""
        return self._given_frame(state, gathered)

    def fewer_rows(self, rng: np.random.Generator) -> Self:
        """Some rows, each of which counts for many."""
        if self.rows.n <= CURVED_ROWS:
            return self
        X, y = self.rows.some(rng, CURVED_ROWS)
        X, y = map(np.ascontiguousarray, (X, y))
        return self.on_rows(CountedRows(X, y, self.rows.n / len(y)))

    def _given_frame(self, state: BasisState, frame: Array) -> tuple[Point, GradientTarget]:
        framed = Frame(self, frame)

        def evaluate(position: Array) -> Point:
            return Point(position, *framed.evaluated(position))

        target = GradientTarget(evaluate, lambda point: framed.gradient(point.payload))
        return Point(*framed.entered(state)), target

    def default_scheme(self, leaps: int = 12) -> list[Update]:
        """Theta and the coefficients together, in coordinates that suit what the rows say.

        Then slice updates of what the noise learns, in many of the iterations.
        """
        noise = self.names[self.noise_place]
        wide = [Update(name, OccasionalSlice(least=WIDE_SHARE)) for name in noise]
        return [Update("framed", FramedHamiltonian(leaps)), *wide]

    schemes = {"default": default_scheme}  # noqa: RUF012
    former_schemes = {}  # noqa: RUF012

    def _regressed(
        self,
        rng: np.random.Generator,
        features: Array,
        target: Array,
        sd: float,
        log_sds: Array,
        spread: float = 1.0,
    ) -> Array:
        """A draw of u given Gaussian observations e' features + N(0, sd^2) of `target`.

        With less `spread` it is nearer to the mean.
        """
        sizes = log_sds
        if any(basis.mixed for basis in self.bases):  # whose functions are not all of one size
            squares = np.mean(features**2, axis=0)
            sizes = log_sds + 0.5 * np.log(np.maximum(squares, np.finfo(float).tiny))
        places = np.argsort(-sizes, kind="stable")[: len(self.dense_places)]
        scaled = features[:, places] * (np.exp(np.clip(log_sds[places], -50.0, 50.0)) / sd)
        precision = scaled.T @ scaled
        precision[np.diag_indices_from(precision)] += 1.0
        lower = np.linalg.cholesky(precision)
        pull = np.linalg.solve(lower, scaled.T @ target / sd)
        u = 0.1 * rng.standard_normal(log_sds.size)
        u[places] = np.linalg.solve(lower.T, pull + spread * rng.standard_normal(places.size))
        return u

    def sample_data(self, rng: np.random.Generator, unknowns: Unknowns) -> Array:
        """A draw of y given the unknowns."""
        return self._drawn(rng, *self.condition(unknowns).components(self.X, np.empty(0)))

    def _drawn(self, rng: np.random.Generator, means: Array, sds: Array) -> Array:
        """One response from the mixture of each row."""
        weights, rows = self.component_weights, np.arange(self.n)
        chosen = 0 if weights is None else rng.choice(weights.size, size=self.n, p=weights)
        return np.asarray(means[rows, chosen] + sds[rows, chosen] * rng.standard_normal(self.n))

    def replicate(self, rng: np.random.Generator, unknowns: Unknowns) -> Array:
        """New responses at the same inputs: the function is one of the unknowns."""
        return self.sample_data(rng, unknowns)
