"""A process in a Hilbert-space basis: functions that know neither rows nor hyperparameters.

On an interval of half width L around m, with zero at both ends, the Laplacian has eigenfunctions

    phi_j(x) = sin(pi j (x - m + L) / (2 L)) / sqrt(L),   frequencies pi j / (2 L),

and a stationary process is sum_j b_j phi_j(x), b_j ~ N(0, S(pi j / (2 L))), S being the spectral
density of its kernel (Solin and Sarkka 2020). Theta is in S alone. In several dimensions the
functions are products. It is exact in the limit of many functions and a far boundary; how far off
it is can be measured (`Basis.error`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gplc import _check
from gplc._compiled.sines import products_of_sines
from gplc._types import Array
from gplc.kernels import Constant, Kernel, Linear
from gplc.kernels.base import Place, Sum, places
from gplc.kernels.shaped import Shaped

# |w| up to which a basis of functions of w is good, and where w ends: 7 in a million are beyond.
LATENT_RANGE, LATENT_END = 4.0, 4.5
# Points between which the covariance of a basis is compared with that of its kernel.
COMPARED_POINTS = 200


class Axis(NamedTuple):
    """An interval, and how many functions there are on it.

    Examples
    --------
    >>> axis = Axis(centre=0.0, half_range=1.0, boundary=2.0, functions=3)
    >>> axis.reach
    1.5
    """

    centre: float
    half_range: float  # the basis is good for x within so much of the centre
    boundary: float  # L, beyond half_range: all functions are zero there
    functions: int

    @property
    def rate(self) -> float:
        """The lowest frequency."""
        return math.pi / (2.0 * self.boundary)

    @property
    def reach(self) -> float:
        """Half-way to the boundary: beyond it the basis says nothing of the process."""
        return 0.5 * (self.half_range + self.boundary)


# Good to a part in a thousand each: the boundary is so many length scales ell from the range
# (a correlation of exp(-(2 * 1.86)^2 / 2) with a mirror image), and frequencies go up to so many
# over ell (the share of a Gaussian beyond). With ell = rho / sqrt(2) for the squared exponential.
MARGIN, HIGHEST = 1.86, 3.3
# New rows may be a little beyond the range of the data: by so much of it.
SLACK = 0.05


@dataclass(frozen=True)
class Hilbert:
    """An approximation by products of sines, for up to three inputs and any number of rows.

    What is not given is chosen from the data (see docs/large.md).

    Parameters
    ----------
    functions : int or sequence of int, optional
        How many functions there are of each input.
    boundary : float or sequence of float, optional
        Where all functions are zero, in units of half the range of each input, from its middle.
    latent_functions, latent_boundary
        The same for the latent covariate of GPLC, which ranges over -4 to 4.

    Examples
    --------
    >>> Hilbert(functions=30, boundary=1.5).axes([(0.0, 1.0)], None).inputs[0].functions
    30
    """

    functions: int | Sequence[int] | None = None
    boundary: float | Sequence[float] | None = None
    latent_functions: int | None = None
    latent_boundary: float | None = None

    def __post_init__(self) -> None:
        # As tuples they can be compared, and are the same after a file.
        for name in ("functions", "boundary"):
            if isinstance(value := getattr(self, name), list | np.ndarray):
                object.__setattr__(self, name, tuple(np.asarray(value).tolist()))
        for value in _each(self.functions):
            _check.integer("functions", value, at_least=2, advice="30 is a good start")
        for value in _each(self.boundary):
            _check.number("boundary", value, at_least=1.05, advice="1.5 is a good start")
        for value in _each(self.latent_functions):
            _check.integer("latent_functions", value, at_least=2, advice="12 is a good start")
        for value in _each(self.latent_boundary):
            _check.number("latent_boundary", value, at_least=1.2, advice="2.0 is a good start")

    def is_complete(self, with_latent: bool) -> bool:
        """Whether nothing is left to choose."""
        wanted = [self.functions, self.boundary]
        wanted += [self.latent_functions, self.latent_boundary] if with_latent else []
        return all(each is not None for each in wanted)

    def axes(
        self,
        ranges: Sequence[tuple[float, float]],
        scales: "Scales | None",
        with_latent: bool = False,
    ) -> "Axes":
        """Axes for inputs in these ranges, with what is not given taken from length scales."""
        count = len(ranges)
        functions = _per_input("functions", self.functions, count)
        boundary = _per_input("boundary", self.boundary, count)
        inputs = tuple(
            _with(_axis(ranges[k], scales, k), functions[k], boundary[k]) for k in range(count)
        )
        if not with_latent:
            return Axes(inputs)
        of_w = latent_axis(*(scales.latent if scales else (2.0, 4.0)))
        return Axes(inputs, _with(of_w, self.latent_functions, self.latent_boundary))


def _each(value: Any) -> Sequence[Any]:
    if value is None:
        return ()
    return value if isinstance(value, tuple) else (value,)


def _per_input(name: str, value: Any, count: int) -> Sequence[Any]:
    if not isinstance(value, tuple):
        return [value] * count
    if len(value) != count:
        raise ValueError(
            f"{name} must be one number, or one for each of the {count} inputs, got {value!r}"
        )
    return value


def _with(axis: "Axis", functions: int | None, boundary: float | None) -> "Axis":
    if boundary is not None:
        axis = axis._replace(boundary=float(boundary) * axis.half_range)
    return axis if functions is None else axis._replace(functions=int(functions))


def _axis(ends: tuple[float, float], scales: "Scales | None", k: int) -> "Axis":
    lowest, highest = ends
    slack = SLACK * 0.5 * (highest - lowest)
    half = max(0.5 * (highest - lowest), 1e-3)
    shortest, longest = scales.inputs[k] if scales else (half, half)
    return axis_for(lowest - slack, highest + slack, shortest, longest)


class Scales(NamedTuple):
    """Shortest and longest length scale that a basis has to be good for."""

    inputs: tuple[tuple[float, float], ...]
    latent: tuple[float, float] = (2.0, 4.0)


class Axes(NamedTuple):
    """Where the functions of a basis live: an axis for every input, and one for w."""

    inputs: tuple[Axis, ...]
    latent: Axis | None = None

    def record(self) -> dict[str, Any]:
        """In JSON's terms."""
        latent = None if self.latent is None else [float(each) for each in self.latent]
        return {"inputs": [[float(v) for v in axis] for axis in self.inputs], "latent": latent}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "Axes":
        """From what `record` gave.

        Examples
        --------
        >>> axes = Axes((axis_for(0.0, 1.0, 0.5, 1.0),), latent_axis(2.0, 4.0))
        >>> Axes.from_record(axes.record()) == axes
        True
        """
        latent = record["latent"]
        return cls(
            tuple(axis_from(each) for each in record["inputs"]),
            None if latent is None else axis_from(latent),
        )


def axis_from(values: Sequence[float]) -> Axis:
    """An axis from its record."""
    centre, half_range, boundary, functions = map(float, values)
    return Axis(centre, half_range, boundary, int(functions))


def axis_for(lowest: float, highest: float, shortest: float, longest: float) -> Axis:
    """An axis that is good to 1e-3 for a squared exponential with rho in the range given.

    Parameters
    ----------
    lowest, highest : float
        Range of the inputs.
    shortest, longest : float
        Range of rho.

    Examples
    --------
    >>> axis_for(-1.0, 1.0, 0.5, 1.0).functions
    14
    """
    half_range = float(max(0.5 * (highest - lowest), 1e-3))
    boundary = half_range + MARGIN * longest / math.sqrt(2.0)
    functions = math.ceil(HIGHEST * math.sqrt(2.0) / shortest * 2.0 * boundary / math.pi)
    return Axis(float(0.5 * (lowest + highest)), half_range, boundary, max(functions, 3))


def latent_axis(shortest: float, longest: float) -> Axis:
    """The axis of w, good for a squared exponential with rho_w in the range given.

    Examples
    --------
    >>> latent_axis(2.0, 4.0).functions
    14
    """
    return axis_for(-LATENT_RANGE, LATENT_RANGE, shortest, longest)


class Term:
    """One leaf of a kernel in the basis: M functions of x times R functions of w.

    Its coefficients b are independent a priori, with SDs of which `log_sds` has the logs, (M, R);
    or they are mixed from such ones (`gplc.processes.interpolated`).
    """

    shape: tuple[int, int] = (1, 1)

    @property
    def width(self) -> int:
        """How many features of x the functions are made from."""
        return self.shape[0]

    def features(self, X: Array, out: Array) -> None:
        """What functions of x are made from at some rows, into out (rows, width)."""
        out[:] = 1.0

    def functions(self, features: Array) -> Array:
        """Functions of x, from features: (rows, M)."""
        return features

    def of_features(self, b: Array) -> Array:
        """The coefficients of the features, from those of the functions: (width, R)."""
        return b

    def of_functions(self, gradient: Array) -> Array:
        """The gradient by coefficients of functions, from that by those of features."""
        return gradient

    def of_latent(self, w: Array) -> Array:
        """Functions of w: (size of w, R)."""
        return np.ones((w.size, 1))

    def log_sds(self, theta: Array) -> tuple[Array, list[tuple[int, Array]]]:
        """Log SDs, and their derivatives by those entries of theta that they depend on."""
        raise NotImplementedError

    def importance(self) -> Array:
        """The larger, the less the term's coefficients matter: (M, R), 0 to about 1."""
        return np.zeros(self.shape)


class Level(Term):
    """A constant."""

    def __init__(self, place: Place, sd: float | None) -> None:
        self._where, self._sd = place.where.start, sd

    def log_sds(self, theta: Array) -> tuple[Array, list[tuple[int, Array]]]:
        """Log c."""
        if self._sd is not None:
            return np.full((1, 1), math.log(self._sd)), []
        return np.full((1, 1), theta[self._where]), [(self._where, np.ones((1, 1)))]


class Line(Term):
    """Slopes, or steps: of some columns of x, or of w."""

    def __init__(self, place: Place, of_w: bool) -> None:
        leaf, seen = place.leaf, place.seen
        assert isinstance(leaf, Linear)
        self._leaf, self._columns, self._of_w = leaf, list(seen.observed), of_w
        if not of_w:
            self.shape = len(self._columns), 1
        observed = 0 if not self._columns else len(self._columns) if leaf.ard else 1
        first = place.where.start
        own = [first + observed] if of_w else [first + k * leaf.ard for k in range(observed)]
        self._places = [] if leaf.sd is not None else own

    def _value(self, x: Array) -> Array:
        if self._leaf.basis.side:
            return np.where(x < 0.0, -1.0, 1.0)
        return x**self._leaf.basis.power

    def features(self, X: Array, out: Array) -> None:
        """The columns themselves, or their sides."""
        out[:] = 1.0 if self._of_w else self._value(X[:, self._columns])

    def of_latent(self, w: Array) -> Array:
        """W itself, or its side."""
        return self._value(w)[:, None] if self._of_w else super().of_latent(w)

    def log_sds(self, theta: Array) -> tuple[Array, list[tuple[int, Array]]]:
        """Log gamma of each."""
        if self._leaf.sd is not None:
            return np.full(self.shape, math.log(self._leaf.sd)), []
        count = self.shape[0]
        value = np.broadcast_to(theta[self._places], (count,))[:, None]
        if len(self._places) < count:
            return value, [(self._places[0], np.ones(self.shape))]
        return value, [(p, np.eye(count)[:, [k]]) for k, p in enumerate(self._places)]


class Sines(Term):
    """A stationary leaf: products of sines."""

    def __init__(self, place: Place, axes: Sequence[Axis], latent: Axis | None) -> None:
        leaf, seen = place.leaf, place.seen
        assert isinstance(leaf, Shaped)
        self._leaf, self._where = leaf, place.where
        self._columns = list(seen.observed)
        own = [axes[k] for k in self._columns]
        self._numbers = _inside(np.array([axis.functions for axis in own], dtype=np.int64))
        self._lowest = np.array([axis.centre - axis.boundary for axis in own])
        self._rates = np.array([axis.rate for axis in own])
        self._factor = math.prod(axis.boundary for axis in own) ** -0.5
        self._sizes = np.array([axis.functions for axis in own], dtype=np.float64)
        self._latent = latent if seen.latent else None
        count = self._latent.functions if self._latent else 1
        self.shape = len(self._numbers), count
        self._of_w = np.arange(1, count + 1, dtype=np.int64)[:, None]
        squares = (self._numbers * self._rates) ** 2
        self._observed = np.broadcast_to(squares.T[:, :, None], (len(own), *self.shape))
        self._squares_of_w = np.empty((0, *self.shape))
        if self._latent:
            of_w = (self._of_w[:, 0] * self._latent.rate) ** 2
            self._squares_of_w = np.broadcast_to(of_w, (1, *self.shape))

    def features(self, X: Array, out: Array) -> None:
        """Products of sines."""
        if not self._columns:
            out[:] = 1.0
            return
        columns = np.ascontiguousarray(X[:, self._columns])
        values = np.empty((len(X), self.shape[0]))
        products_of_sines(columns, self._lowest, self._rates, self._numbers, self._factor, values)
        out[:] = values

    def of_latent(self, w: Array) -> Array:
        """Sines of w."""
        return np.ones((w.size, 1)) if self._latent is None else sines_of(self._latent, w)

    def log_sds(self, theta: Array) -> tuple[Array, list[tuple[int, Array]]]:
        """Half the log spectral density."""
        where = self._where
        value, slopes = self._leaf.log_spectrum(theta[where], self._observed, self._squares_of_w)
        return 0.5 * value, [(where.start + k, 0.5 * each) for k, each in enumerate(slopes)]

    def importance(self) -> Array:
        """Squares of the numbers, each as a share of how many there are."""
        result = np.sum((self._numbers / self._sizes) ** 2, axis=1)[:, None]
        return np.asarray(result + (self._of_w[:, 0] / len(self._of_w)) ** 2)


def sines_of(axis: Axis, w: Array) -> Array:
    """The functions of an axis of w, which ends at a few SDs: (size of w, functions)."""
    end = min(LATENT_END, axis.boundary)
    inside = np.clip(w, -end, end)[:, None]
    numbers = np.arange(1, axis.functions + 1, dtype=np.int64)[:, None]
    values = np.empty((w.size, axis.functions))
    lowest, rate = np.array([axis.centre - axis.boundary]), np.array([axis.rate])
    products_of_sines(inside, lowest, rate, numbers, axis.boundary**-0.5, values)
    return values


def _inside(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers 1, ..., size of each axis, in all combinations within an ellipsoid: (M, d)."""
    if sizes.size == 0:
        return np.zeros((1, 0), dtype=np.int64)
    numbers = np.indices(tuple(sizes)).reshape(sizes.size, -1).T + 1
    # The first function of every other axis must not push out the last of one.
    size = np.sum(((numbers - 1) / np.maximum(sizes - 1, 1)) ** 2, axis=1)
    return np.asarray(numbers[size <= 1.0 + 1e-12], dtype=np.int64)


class Basis:
    """The functions of a whole kernel, and their coefficients as one vector b.

    Parameters
    ----------
    kernel : Kernel
        A sum of stationary kernels that have a spectral density, `Linear`, `Sign` and `Constant`.
    axes : sequence of Axis
        One for every column of X.
    latent : Axis, optional
        That of w.

    Examples
    --------
    >>> from gplc.kernels import SquaredExponential
    >>> axis = axis_for(-1.0, 1.0, shortest=1.0, longest=1.0)
    >>> basis = Basis(SquaredExponential(), [axis])
    >>> basis.size, bool(basis.error(np.zeros(2)) < 2e-3)
    (8, True)
    """

    def __init__(self, kernel: Kernel, axes: Sequence[Axis], latent: Axis | None = None) -> None:
        self.kernel, self.axes, self.latent = kernel, tuple(axes), latent
        self._n_latent = 0 if latent is None else 1
        self.terms = self._terms(places(kernel, len(self.axes), self._n_latent))
        shapes = [term.shape for term in self.terms]
        self.size = sum(m * r for m, r in shapes)
        self.width = sum(term.width for term in self.terms)
        self._rows = _slices([term.width for term in self.terms])
        self._kinds = _slices([r for _, r in shapes])
        self.own = _slices([m * r for m, r in shapes])
        # Of every coefficient: which function of x, and which of w, it goes with.
        functions = _slices([m for m, _ in shapes])
        pairs = [
            np.indices(shape).reshape(2, -1) + np.array([[rows.start], [kinds.start]])
            for shape, rows, kinds in zip(shapes, functions, self._kinds, strict=True)
        ]
        self.row_place, self.kind_place = np.concatenate(pairs, axis=1)

    def _terms(self, placed: Sequence[Place]) -> list[Term]:
        """A term for every leaf, or two."""
        found = [
            term
            for place in placed
            for term in simple_terms(place)
            or [Sines(place, self.axes, self.latent), *level_of(place)]
        ]
        return [term for term in found if math.prod(term.shape)]

    @property
    def mixed(self) -> list[Any]:
        """The terms whose coefficients are mixed, with their places: none here."""
        return []

    def features(self, X: Array) -> Array:
        """What all functions of x are made from: (rows, width)."""
        result = np.empty((X.shape[0], self.width))
        for term, columns in zip(self.terms, self._rows, strict=True):
            term.features(X, result[:, columns])
        return result

    def functions(self, features: Array) -> Array:
        """All functions of x, from features: (rows, functions)."""
        pairs = zip(self._rows, self.terms, strict=True)
        return np.concatenate([term.functions(features[:, rows]) for rows, term in pairs], axis=1)

    def of_latent(self, w: Array) -> Array:
        """All functions of w: (size of w, kinds)."""
        return np.concatenate([term.of_latent(w) for term in self.terms], axis=1)

    def _by_term(self, b: Array) -> list[Array]:
        return [
            term.of_features(b[own].reshape(term.shape))
            for own, term in zip(self.own, self.terms, strict=True)
        ]

    def at_rows(self, features: Array, b: Array) -> Array:
        """What every row has of every function of w: (rows, kinds)."""
        pairs = zip(self._rows, self._by_term(b), strict=True)
        return np.concatenate([features[:, rows] @ each for rows, each in pairs], axis=1)

    def pulled(self, features: Array, by_rows: Array) -> Array:
        """The gradient by b, from that by `at_rows`."""
        triples = zip(self.terms, self._rows, self._kinds, strict=True)
        return np.concatenate(
            [
                term.of_functions(features[:, rows].T @ by_rows[:, kinds]).ravel()
                for term, rows, kinds in triples
            ]
        )

    def log_sds(self, theta: Array) -> Array:
        """Log prior SD of every coefficient."""
        return np.concatenate([term.log_sds(theta)[0].ravel() for term in self.terms])

    def slopes(self, theta: Array) -> Array:
        """Derivatives of `log_sds` by theta: (k, size)."""
        result = np.zeros((theta.size, self.size))
        for term, own in zip(self.terms, self.own, strict=True):
            for place, each in term.log_sds(theta)[1]:
                result[place, own] = each.ravel()
        return result

    def importance(self) -> Array:
        """The smaller, the more a coefficient matters."""
        return np.concatenate([term.importance().ravel() for term in self.terms])

    def products(self, X: Array, w: Array) -> Array:
        """Every function of (x, w) at rows with their own w: (rows, size)."""
        return np.asarray(
            self.functions(self.features(X))[:, self.row_place]
            * self.of_latent(w)[:, self.kind_place]
        )

    def error(self, theta: Array) -> float:
        """The largest error of a covariance, as a share of the largest variance of the terms.

        It is measured between pairs of points all over the range that the axes are made for.
        """
        rng = np.random.default_rng(0)
        corners = rng.choice([-1.0, 0.0, 1.0], size=(COMPARED_POINTS // 4, len(self.axes)))
        inner = rng.uniform(-1.0, 1.0, size=(COMPARED_POINTS - len(corners), len(self.axes)))
        units = np.concatenate([corners, inner])
        X = np.array([a.centre for a in self.axes]) + units * [a.half_range for a in self.axes]
        reach = LATENT_RANGE if self.latent is None else self.latent.half_range
        w = rng.uniform(-reach, reach, len(X))
        functions = self.products(X, w) * np.exp(self.log_sds(theta))
        points = np.column_stack([X, w]) if self._n_latent else X
        exact = self.kernel.matrix(theta, points, points, self._n_latent)
        moving = [each for each in self.terms if not isinstance(each, Level)]
        if not moving:
            return 0.0
        level = sum(
            math.exp(2.0 * float(each.log_sds(theta)[0][0, 0]))
            for each in self.terms
            if isinstance(each, Level)
        )
        size = float(np.max(np.diagonal(exact))) - level
        gap = float(np.max(np.abs(functions @ functions.T - exact)))
        return gap / max(size, np.finfo(float).tiny)


def _slices(sizes: Sequence[int]) -> list[slice]:
    ends = np.cumsum(sizes).tolist()
    return [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]


def unsupported(kernel: Kernel) -> str:
    """Why a kernel has no basis; empty if it has one.

    Examples
    --------
    >>> from gplc.kernels import Linear, Periodic, SquaredExponential
    >>> unsupported(SquaredExponential() + Linear())
    ''
    >>> unsupported(Periodic())
    'Periodic() has no spectral density here'
    """
    parts = kernel.parts if isinstance(kernel, Sum) else (kernel,)
    for part in parts:
        stationary = isinstance(part, Shaped) and part.is_stationary
        if not (stationary or isinstance(part, Linear | Constant)):
            leaf = isinstance(part, Shaped)
            why = "has no spectral density here" if leaf else "is not one leaf"
            return f"{part!r} {why}"
    return ""


def simple_terms(place: Place) -> list[Term]:
    """The terms of a leaf that is constant or linear; none of others."""
    leaf, result = place.leaf, list[Term]()
    if isinstance(leaf, Constant):
        result.append(Level(place, leaf.sd))
    elif isinstance(leaf, Linear):
        result += [Line(place, of_w=False)] * bool(place.seen.observed)
        result += [Line(place, of_w=True)] * bool(place.seen.latent)
    return result


def level_of(place: Place) -> list[Term]:
    """The constant that a leaf has besides."""
    constant = getattr(place.leaf, "constant", 0.0)
    return [Level(place, constant)] if constant else []
