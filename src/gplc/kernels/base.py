"""The algebra of covariance functions: leaves, sums and products, and the inputs each sees.

A kernel is a tree of frozen dataclasses. Its leaves are functions of some columns of the inputs
[x, w]; sums and products join them. It holds no numbers but fixed settings: hyperparameters come
as a vector theta of logarithms, in the order of `Kernel.names`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from functools import reduce
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from gplc import _check
from gplc.priors import DEFAULTS, LogNormal, kind

Array = NDArray[np.float64]

# Step of finite differences, for kernels that come without a gradient: about the cube root of the
# rounding error, which balances it with the error of the difference.
STEP = 6e-6


class Touches(IntEnum):
    """What has to be computed again when a hyperparameter changes; each includes those before."""

    SCALE = 0  # nothing but multiplications
    LATENT = 1  # what depends on the latent columns
    INPUTS = 2  # everything


class Hyperparameter(NamedTuple):
    """A positive number that a kernel learns, sampled as its logarithm."""

    name: str
    prior: LogNormal
    touches: Touches = Touches.INPUTS


class Seen(NamedTuple):
    """The columns that a leaf sees, by their numbers, and how many there are of each kind."""

    observed: tuple[int, ...]
    latent: tuple[int, ...]
    n_observed: int
    n_latent: int

    def names(self, stem: str, ard: bool, touches: Touches) -> list[Hyperparameter]:
        """A hyperparameter for each observed column (or one for all), one for each latent one."""
        several = ard and len(self.observed) > 1
        observed = [f"{stem}[{k}]" for k in self.observed] if several else [stem]
        indexed = self.n_latent > 1
        latent = [f"latent_{stem}[{c}]" if indexed else f"latent_{stem}" for c in self.latent]
        return [
            *(default(name, touches) for name in observed if self.observed),
            *(default(name, min(touches, Touches.LATENT)) for name in latent),
        ]


def default(name: str, touches: Touches = Touches.INPUTS) -> Hyperparameter:
    """A hyperparameter with the prior that `gplc.priors` has for its kind."""
    return Hyperparameter(name, DEFAULTS[kind(name)], touches)


class LatentMoves(NamedTuple):
    """Changes of one latent column, of all cases at once, under which a kernel stays the same."""

    shift: bool = False  # w + a
    reflection: bool = False  # -w
    # s w, if log s is added to these places of theta with these signs; None: no such change
    scale: tuple[tuple[int, float], ...] | None = None


class Kernel(ABC):
    """A covariance function: a leaf, a sum or a product.

    ``a + b`` and ``a * b`` are kernels, and a number stands for `Constant` (its SD is the square
    root). `on` chooses the inputs that every leaf of a kernel sees, `named` marks its
    hyperparameters.
    """

    @property
    @abstractmethod
    def leaves(self) -> "tuple[Leaf, ...]":
        """The leaves, from left to right."""

    @abstractmethod
    def value(self, values: "Iterator[Array]") -> Array:
        """K from the values of the leaves."""

    @abstractmethod
    def weights_of_leaves(self, values: Sequence[Array], weights: Array) -> list[Array]:
        """d/d leaf of sum_ij weights_ij K_ij, for each leaf."""

    @abstractmethod
    def products(self, first: int = 0) -> list[tuple[int, ...]]:
        """The kernel as a sum of products of leaves, these by their numbers."""

    @abstractmethod
    def on(self, *inputs: int | str) -> "Kernel":
        """The same function of some inputs only.

        Parameters
        ----------
        *inputs : int or str
            Numbers of columns of X, ``"x"`` (all of these), ``"w"`` (the latent covariates of
            GPLC), ``"w0"``, ``"w1"``, ... (one of several).

        Returns
        -------
        Kernel

        Examples
        --------
        >>> from gplc.kernels import SquaredExponential
        >>> SquaredExponential().on(0, "w").names(n_observed=3, n_latent=1)
        ('signal_sd', 'length_scale', 'latent_length_scale')
        """

    @abstractmethod
    def named(self, label: str) -> "Kernel":
        """The same kernel, with ``label.`` before the names of its hyperparameters.

        Parameters
        ----------
        label : str

        Returns
        -------
        Kernel

        Examples
        --------
        >>> from gplc.kernels import Matern32
        >>> (Matern32() + Matern32().named("slow")).names(n_observed=1)
        ('signal_sd', 'length_scale', 'slow.signal_sd', 'slow.length_scale')
        """

    def __add__(self, other: "Kernel | float") -> "Sum":
        return Sum((*_terms(self), *_terms(_as_kernel(other))))

    def __radd__(self, other: float) -> "Sum":
        return Sum((*_terms(_as_kernel(other)), *_terms(self)))

    def __mul__(self, other: "Kernel | float") -> "Product":
        return Product((*_factors(self), *_factors(_as_kernel(other))))

    def __rmul__(self, other: float) -> "Product":
        return Product((*_factors(_as_kernel(other)), *_factors(self)))

    def names(self, n_observed: int, suffix: str = "", n_latent: int = 0) -> tuple[str, ...]:
        """Names of the hyperparameters, in the order of theta.

        Parameters
        ----------
        n_observed : int
            Columns of X.
        suffix : str
            Put behind each name (before its index).
        n_latent : int
            Latent columns.

        Returns
        -------
        tuple of str
        """
        return tuple(
            each.name
            for place in places(self, n_observed, n_latent, suffix)
            for each in place.hyperparameters
        )

    def matrix(self, theta: Array, A: Array, B: Array, n_latent: int = 0) -> Array:
        """K between the rows of A and those of B.

        Parameters
        ----------
        theta : (k,) array
            Log hyperparameters.
        A, B : (n, d) and (m, d) array
            Inputs: the columns of X, then the latent ones.
        n_latent : int
            How many of the columns are latent.

        Returns
        -------
        (n, m) array

        Examples
        --------
        >>> import numpy as np
        >>> from gplc.kernels import Constant, Linear
        >>> a = np.array([[1.0], [2.0]])
        >>> (Constant(1.0) + Linear()).matrix(np.log([3.0]), a, a).round(12).tolist()
        [[10.0, 19.0], [19.0, 37.0]]
        """
        return self.matrix_at(places(self, A.shape[1] - n_latent, n_latent), theta, A, B)

    def matrix_at(self, placed: "Sequence[Place]", theta: Array, A: Array, B: Array) -> Array:
        """`matrix`, where the places of the leaves are known already."""
        values = []
        for place in placed:
            leaf, mine, first = place.leaf, theta[place.where], place.seen.n_observed
            X, X_other = place.observed(A), place.observed(B)
            W, W_other = place.latent(A[:, first:].T), place.latent(B[:, first:].T)
            inner = leaf.inner_between(mine, X, X_other, len(W))
            unit = leaf.unit(mine, inner, (X, X_other), W, W_other)
            values.append(leaf.scaled(mine, unit))
        result = np.empty((A.shape[0], B.shape[0]))
        result[:] = self.value(iter(values))
        return result


def _as_kernel(value: Any) -> Kernel:
    if isinstance(value, Kernel):
        return value
    from gplc.kernels.leaves import Constant

    number = _check.number(
        "a number in a sum or product of kernels",
        value,
        at_least=0.0,
        advice="add or multiply kernels, or numbers that are not negative",
    )
    return Constant(math.sqrt(number))


def _terms(kernel: Kernel) -> tuple[Kernel, ...]:
    return kernel.terms if isinstance(kernel, Sum) else (kernel,)


def _factors(kernel: Kernel) -> tuple[Kernel, ...]:
    return kernel.factors if isinstance(kernel, Product) else (kernel,)


def _split(kernels: Sequence[Kernel], values: Sequence[Array]) -> list[Sequence[Array]]:
    """The values of all leaves, kernel by kernel."""
    result, first = [], 0
    for kernel in kernels:
        result.append(values[first : first + len(kernel.leaves)])
        first += len(kernel.leaves)
    return result


@dataclass(frozen=True, repr=False)
class Sum(Kernel):
    """K = K_1 + K_2 + ...; written ``a + b``."""

    terms: tuple[Kernel, ...]

    @property
    def leaves(self) -> "tuple[Leaf, ...]":
        """Those of the terms."""
        return tuple(leaf for term in self.terms for leaf in term.leaves)

    def value(self, values: Iterator[Array]) -> Array:
        """The sum."""
        return reduce(np.add, [term.value(values) for term in self.terms])

    def weights_of_leaves(self, values: Sequence[Array], weights: Array) -> list[Array]:
        """Each term has the weights of the sum."""
        parts = zip(self.terms, _split(self.terms, values), strict=True)
        return [each for term, own in parts for each in term.weights_of_leaves(own, weights)]

    def products(self, first: int = 0) -> list[tuple[int, ...]]:
        """Those of all terms."""
        result = []
        for term in self.terms:
            result += term.products(first)
            first += len(term.leaves)
        return result

    def on(self, *inputs: int | str) -> "Sum":
        """Every term on these inputs."""
        return Sum(tuple(term.on(*inputs) for term in self.terms))

    def named(self, label: str) -> "Sum":
        """Every term with this label."""
        return Sum(tuple(term.named(label) for term in self.terms))

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.terms))


@dataclass(frozen=True, repr=False)
class Product(Kernel):
    """K = K_1 K_2 ...; written ``a * b``."""

    factors: tuple[Kernel, ...]

    @property
    def leaves(self) -> "tuple[Leaf, ...]":
        """Those of the factors."""
        return tuple(leaf for factor in self.factors for leaf in factor.leaves)

    def value(self, values: Iterator[Array]) -> Array:
        """The product."""
        return reduce(np.multiply, [factor.value(values) for factor in self.factors])

    def weights_of_leaves(self, values: Sequence[Array], weights: Array) -> list[Array]:
        """Each factor has the weights of the product times the other factors."""
        parts = _split(self.factors, values)
        own = [factor.value(iter(part)) for factor, part in zip(self.factors, parts, strict=True)]
        result = []
        for k, (factor, part) in enumerate(zip(self.factors, parts, strict=True)):
            others = reduce(np.multiply, own[:k] + own[k + 1 :], weights)
            result += factor.weights_of_leaves(part, others)
        return result

    def products(self, first: int = 0) -> list[tuple[int, ...]]:
        """Every term of one factor with every term of the others."""
        result: list[tuple[int, ...]] = [()]
        for factor in self.factors:
            more = factor.products(first)
            result = [left + right for left in result for right in more]
            first += len(factor.leaves)
        return result

    def on(self, *inputs: int | str) -> "Product":
        """Every factor on these inputs."""
        return Product(tuple(factor.on(*inputs) for factor in self.factors))

    def named(self, label: str) -> "Product":
        """Every factor with this label."""
        return Product(tuple(factor.named(label) for factor in self.factors))

    def __repr__(self) -> str:
        return " * ".join(f"({f!r})" if isinstance(f, Sum) else repr(f) for f in self.factors)


# A part of x, and a part of w (None: it does not depend on w).
Separated = tuple[Array | float, Array | None]


class Site(NamedTuple):
    """A leaf as a function of one latent column alone: rest + amplitude phi(w, w')."""

    rest: Array | float
    amplitude: Array | float
    code: int  # which phi, in `_compiled.covariate_sweep`
    weight: float  # what multiplies (w - w')^2, or the like, inside phi
    extra: float = 0.0
    offset: Array | None = None  # what is added to that, for each pair of cases


@dataclass(frozen=True, repr=False)
class Leaf(Kernel):
    """A covariance function of some inputs that is not made of others: the base of your own.

    A subclass is a frozen dataclass with `hyperparameters` and `evaluate`. Gradients come from
    finite differences unless it has better. Two settings come from here.

    Parameters
    ----------
    inputs : tuple of int or str
        The inputs it sees, as in `on`; empty for all.
    label : str
        Put before the names of the hyperparameters, as in `named`.

    Examples
    --------
    >>> import numpy as np
    >>> @dataclass(frozen=True)
    ... class Brownian(Leaf):
    ...     def hyperparameters(self, n_columns):
    ...         return {"signal_sd": LogNormal(0.0, 1.0)}
    ...     def evaluate(self, theta, A, B):
    ...         return np.exp(2 * theta[0]) * np.minimum(A, B.T)
    >>> a = np.array([[1.0], [2.0]])
    >>> Brownian().matrix(np.zeros(1), a, a).tolist()
    [[1.0, 1.0], [1.0, 2.0]]
    """

    inputs: tuple[int | str, ...] = field(default=(), kw_only=True)
    label: str = field(default="", kw_only=True)
    blind: ClassVar[bool] = False  # whether it is the same whatever the inputs
    # Whether it is A + B phi(w, w'), with A and B that do not depend on w, and a smooth phi that
    # can be interpolated: (w w')^d exp(-b (w - w')^2).
    separates: ClassVar[bool] = False

    # What a kernel of your own says.

    def hyperparameters(self, n_columns: int) -> Mapping[str, LogNormal]:
        """Names and priors of the hyperparameters, for a kernel that sees so many columns."""
        raise NotImplementedError(
            f"{type(self).__name__} must say what it learns: define hyperparameters(n_columns), "
            "a mapping of names to LogNormal(mean, sd)"
        )

    def evaluate(self, theta: Array, A: Array, B: Array) -> Array:
        """K between the rows of A and those of B, columns as chosen: (n, m)."""
        raise NotImplementedError(
            f"{type(self).__name__} has no formula: define evaluate(theta, A, B)"
        )

    # The algebra.

    @property
    def leaves(self) -> "tuple[Leaf, ...]":
        """Itself."""
        return (self,)

    def value(self, values: Iterator[Array]) -> Array:
        """Its own value."""
        return next(values)

    def weights_of_leaves(self, values: Sequence[Array], weights: Array) -> list[Array]:
        """The weights themselves."""
        return [weights]

    def products(self, first: int = 0) -> list[tuple[int, ...]]:
        """Itself."""
        return [(first,)]

    def on(self, *inputs: int | str) -> Self:
        """The same function of these inputs."""
        return replace(self, inputs=inputs)

    def named(self, label: str) -> Self:
        """The same kernel with a label."""
        return replace(self, label=label)

    def __repr__(self) -> str:
        settings = ", ".join(
            f"{each.name}={getattr(self, each.name)!r}"
            for each in fields(self)
            if each.name not in ("inputs", "label") and getattr(self, each.name) != each.default
        )
        inputs = f".on({', '.join(map(repr, self.inputs))})" if self.inputs else ""
        label = f".named({self.label!r})" if self.label else ""
        return f"{type(self).__name__}({settings}){inputs}{label}"

    # What the models use. X and X_other are (n, p) and (m, p), the observed columns it sees; W and
    # W_other (q, n) and (q, m), the latent ones. Built-in kernels do better than these.

    def specify(self, seen: Seen) -> list[Hyperparameter]:
        """Its hyperparameters, given the columns it sees."""
        given = self.hyperparameters(len(seen.observed) + len(seen.latent))
        return [Hyperparameter(name, LogNormal(*prior)) for name, prior in given.items()]

    def moves(self, seen: Seen, column: int) -> LatentMoves:
        """What can be done to a latent column that it sees; nothing, unless it says so."""
        return LatentMoves()

    def exchanged(self, seen: Seen, first: int, second: int) -> tuple[int, int] | None:
        """Places of theta that change with two latent columns which it sees, if these change.

        None if it is not the same function of both, as far as is known.
        """
        return None

    def bases(self, X: Array, X_other: Array) -> Any:
        """What can be computed before any hyperparameter is known."""
        return X, X_other

    def inner(self, theta: Array, bases: Any, n_latent: int) -> Array:
        """What depends on observed columns only, between the cases; `bases` are theirs."""
        X, X_other = bases
        return self.inner_between(theta, X, X_other, n_latent)

    def inner_between(self, theta: Array, X: Array, X_other: Array, n_latent: int) -> Array:
        """The same between any rows."""
        return self.evaluate(theta, X, X_other) if n_latent == 0 else np.empty((1, 1))

    def unit(self, theta: Array, inner: Array, bases: Any, W: Array, W_other: Array) -> Array:
        """The leaf, up to what `scaled` does. W may have one column for all rows."""
        if len(W) == 0:
            return inner
        X, X_other = bases
        A = np.hstack([X, np.broadcast_to(W.T, (X.shape[0], len(W)))])
        return self.evaluate(theta, A, np.hstack([X_other, W_other.T]))

    def scaled(self, theta: Array, unit: Array) -> Array:
        """K from what `unit` gave."""
        return unit

    def at_rows(self, theta: Array, X: Array, W: Array) -> Array:
        """K((x, w), (x, w')) for every row x of X and all pairs w, w' of columns of W.

        (rows, q, q), or (1, q, q) if it is the same for all rows.
        """
        size = W.shape[1]
        result = np.empty((X.shape[0], size, size))
        for row, x in enumerate(X):
            A = np.hstack([np.broadcast_to(x, (size, x.size)), W.T])
            result[row] = self.evaluate(theta, A, A)
        return result

    def split(
        self, theta: Array, inner: Array, W: Array, W_other: Array
    ) -> list[Separated] | None:
        """The leaf as a sum of products of a part of x and one of w; None if it is none.

        `inner` is what `inner_between` gave; parts of w are for all pairs of columns of W and
        W_other.
        """
        return [(inner, None)] if len(W) == 0 else None

    def gradient(
        self, theta: Array, bases: Any, inner: Array, unit: Array, W: Array, weights: Array
    ) -> tuple[Array, Array]:
        """d/d theta and d/d W of sum_ij weights_ij K_ij, for symmetric weights: (k,), (q, n)."""
        X, _ = bases
        A = np.hstack([X, W.T])

        def change(step: Array, moved: Array) -> Array:
            ends = (self.evaluate(theta + sign * step, A + sign * moved, A) for sign in (1, -1))
            return (next(ends) - next(ends)) / (2.0 * STEP)

        still = np.zeros(A.shape)
        by_theta = [
            float(np.sum(weights * change(step, still))) for step in STEP * np.eye(theta.size)
        ]
        by_latent = np.zeros(W.shape)
        for column in range(len(W)):
            moved = still.copy()
            moved[:, X.shape[1] + column] = STEP
            # Each w_i comes in row i and in column i, which are alike.
            by_latent[column] = 2.0 * np.sum(weights * change(np.zeros(theta.size), moved), axis=1)
        return np.array(by_theta), by_latent

    def site(self, theta: Array, bases: Any, inner: Array, W: Array, column: int) -> Site | None:
        """The leaf as a function of one latent column; None if no compiled sweep knows it."""
        return None


class Place(NamedTuple):
    """A leaf in a model: the columns it sees, and its part of theta."""

    leaf: Leaf
    seen: Seen
    where: slice
    hyperparameters: tuple[Hyperparameter, ...]

    def observed(self, X: Array) -> Array:
        """The columns of X that it sees."""
        return np.ascontiguousarray(X[:, list(self.seen.observed)])

    def latent(self, W: Array) -> Array:
        """The latent columns that it sees, from all of them as rows of W."""
        return W if len(self.seen.latent) == len(W) else W[list(self.seen.latent)]


def seen_by(leaf: Leaf, n_observed: int, n_latent: int) -> Seen:
    """The columns that a leaf sees, checked."""
    observed: list[int] = []
    latent: list[int] = []
    if leaf.blind:
        return Seen((), (), n_observed, n_latent)
    for each in leaf.inputs or ("x", "w"):
        if each == "x":
            observed += range(n_observed)
        elif each == "w":
            latent += range(n_latent)
            if n_latent == 0 and leaf.inputs:
                raise ValueError(
                    f"kernel {type(leaf).__name__} is on 'w', but this model or process has no "
                    "latent covariate; use it in GPLC, or choose columns of X"
                )
        elif isinstance(each, str) and each[:1] == "w" and each[1:].isdigit():
            latent.append(int(each[1:]))
        elif isinstance(each, int | np.integer) and not isinstance(each, bool):
            observed.append(int(each))
        else:
            raise ValueError(
                f"kernel inputs must be column numbers, 'x', 'w', 'w0', 'w1', ..., got {each!r}"
            )
    for what, columns, count in (("X", observed, n_observed), ("w", latent, n_latent)):
        bad = [k for k in columns if not 0 <= k < count]
        if bad or len(set(columns)) < len(columns):
            raise ValueError(
                f"kernel {type(leaf).__name__} is on {leaf.inputs!r}, but there are {count} "
                f"columns of {what}; name each at most once, counting from 0"
            )
    return Seen(tuple(observed), tuple(latent), n_observed, n_latent)


def places(kernel: Kernel, n_observed: int, n_latent: int = 0, suffix: str = "") -> list[Place]:
    """Every leaf of a kernel with its columns, its names and its part of theta.

    A leaf whose names are taken gets ``k2.`` before them, if it is the second leaf, and so on.

    Examples
    --------
    >>> from gplc.kernels import SquaredExponential
    >>> two = SquaredExponential() + SquaredExponential()
    >>> [each.name for place in places(two, 1) for each in place.hyperparameters]
    ['signal_sd', 'length_scale', 'k2.signal_sd', 'k2.length_scale']
    """
    result: list[Place] = []
    taken: set[str] = set()
    first = 0
    for number, leaf in enumerate(kernel.leaves, start=1):
        seen = seen_by(leaf, n_observed, n_latent)
        own = leaf.specify(seen)
        labels = [leaf.label, f"{leaf.label}.k{number}" if leaf.label else f"k{number}"]
        for label in labels:
            renamed = [each._replace(name=_full_name(each.name, label, suffix)) for each in own]
            if not taken & {each.name for each in renamed}:
                break
        taken |= {each.name for each in renamed}
        result.append(Place(leaf, seen, slice(first, first + len(own)), tuple(renamed)))
        first += len(own)
    return result


def _full_name(name: str, label: str, suffix: str) -> str:
    stem, bracket, index = name.partition("[")
    return (
        f"{label}.{stem}{suffix}{bracket}{index}" if label else f"{stem}{suffix}{bracket}{index}"
    )
