"""The algebra of covariance functions: leaves, sums and products, and the inputs each sees.

A kernel is a tree of frozen dataclasses. Its leaves are functions of some columns of the inputs
[x, w]; sums and products join them. It holds no numbers but fixed settings: hyperparameters come
as a vector theta of logarithms, in the order of `Kernel.names`.
"""

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np

from gplc import _check
from gplc._types import Array
from gplc.kernels.hyperparameters import Hyperparameter, LatentMoves, Seen
from gplc.kernels.separable import Separable
from gplc.priors import LogNormal

# Covariances, or descriptions of them: whatever can be added and multiplied.
Value = TypeVar("Value")
L = TypeVar("L", bound="type[Leaf]")

# Step of finite differences, for kernels that come without a gradient: about the cube root of the
# rounding error, which balances it with the error of the difference.
STEP = 6e-6


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
    def value(self, values: Iterator[Value]) -> Value:
        """K from the values of the leaves, or its description from theirs."""

    @abstractmethod
    def weights_of_leaves(self, values: Sequence[Array], weights: Array) -> list[Array]:
        """d/d leaf of sum_ij weights_ij K_ij, for each leaf."""

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
        return Sum.of(self, _as_kernel(other))

    def __radd__(self, other: float) -> "Sum":
        return Sum.of(_as_kernel(other), self)

    def __mul__(self, other: "Kernel | float") -> "Product":
        return Product.of(self, _as_kernel(other))

    def __rmul__(self, other: float) -> "Product":
        return Product.of(_as_kernel(other), self)

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
            pairs = Pairs(X, X_other)
            unit = leaf.unit(mine, leaf.inner(mine, pairs, len(W)), pairs, W, W_other)
            values.append(leaf.scaled(mine, unit))
        result = np.empty((A.shape[0], B.shape[0]))
        result[:] = self.value(iter(values))
        return result


def _as_kernel(value: Any) -> Kernel:
    if isinstance(value, Kernel):
        return value
    from gplc.kernels.linear import Constant

    number = _check.number(
        "a number in a sum or product of kernels",
        value,
        at_least=0.0,
        advice="add or multiply kernels, or numbers that are not negative",
    )
    return Constant(math.sqrt(number))


@dataclass(frozen=True, repr=False)
class _Joined(Kernel):
    """Kernels that are added or multiplied."""

    parts: tuple[Kernel, ...]
    joins: ClassVar[Callable[[Any, Any], Any]]

    @classmethod
    def of(cls, *kernels: Kernel) -> Self:
        """Some kernels joined; those that are joined alike already are not nested."""
        own = [each.parts if isinstance(each, cls) else (each,) for each in kernels]
        return cls(tuple(part for parts in own for part in parts))

    @property
    def leaves(self) -> "tuple[Leaf, ...]":
        """Those of all parts."""
        return tuple(leaf for part in self.parts for leaf in part.leaves)

    def value(self, values: Iterator[Value]) -> Value:
        """The sum, or the product."""
        return reduce(type(self).joins, [part.value(values) for part in self.parts])

    def _by_part(self, values: Sequence[Array]) -> Iterator[tuple[Kernel, Sequence[Array]]]:
        """Every part with the values of its leaves."""
        first = 0
        for part in self.parts:
            last = first + len(part.leaves)
            yield part, values[first:last]
            first = last

    def on(self, *inputs: int | str) -> Self:
        """Every part on these inputs."""
        return type(self)(tuple(part.on(*inputs) for part in self.parts))

    def named(self, label: str) -> Self:
        """Every part with this label."""
        return type(self)(tuple(part.named(label) for part in self.parts))


@dataclass(frozen=True, repr=False)
class Sum(_Joined):
    """K = K_1 + K_2 + ...; written ``a + b``."""

    joins = operator.add

    def weights_of_leaves(self, values: Sequence[Array], weights: Array) -> list[Array]:
        """Each term has the weights of the sum."""
        return [
            each
            for part, own in self._by_part(values)
            for each in part.weights_of_leaves(own, weights)
        ]

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))


@dataclass(frozen=True, repr=False)
class Product(_Joined):
    """K = K_1 K_2 ...; written ``a * b``."""

    joins = operator.mul

    def weights_of_leaves(self, values: Sequence[Array], weights: Array) -> list[Array]:
        """Each factor has the weights of the product times the other factors."""
        factors = [part.value(iter(own)) for part, own in self._by_part(values)]
        result = []
        for k, (part, own) in enumerate(self._by_part(values)):
            others = reduce(np.multiply, factors[:k] + factors[k + 1 :], weights)
            result += part.weights_of_leaves(own, others)
        return result

    def __repr__(self) -> str:
        return " * ".join(f"({f!r})" if isinstance(f, Sum) else repr(f) for f in self.parts)


class Pairs(NamedTuple):
    """Pairs of rows between which a leaf is computed, in the observed columns that it sees.

    All pairs of a row of X and one of `others`; or, without others, each row of X with itself, at
    all pairs of some values of the latent columns.
    """

    X: Array  # (n, p)
    others: Array | None = None  # (m, p)
    kept: Any = None  # what `Leaf.bases` gave for them, if it is used more than once


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
    of_levels: ClassVar[bool] = False  # whether its columns hold levels: none of them is latent

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
        """The kernel itself, which is a tree of one leaf."""
        return (self,)

    def value(self, values: Iterator[Value]) -> Value:
        """The next value is that of this leaf."""
        return next(values)

    def weights_of_leaves(self, values: Sequence[Array], weights: Array) -> list[Array]:
        """The weights of K are those of its one leaf."""
        return [weights]

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

    # What a kernel bound to inputs uses. W and W_other are (q, n) and (q, m), the latent columns
    # that the leaf sees. Kernels of the package do better than these.

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

    def bases(self, X: Array, others: Array) -> Any:
        """What can be computed between rows before any hyperparameter is known."""
        return None

    def inner(self, theta: Array, pairs: Pairs, n_latent: int) -> Array:
        """What depends on observed columns only."""
        if n_latent:
            return np.empty((1, 1))
        if pairs.others is None:
            return self._at_rows(theta, pairs.X, np.empty((0, 1)))
        return self.evaluate(theta, pairs.X, pairs.others)

    def unit(self, theta: Array, inner: Array, pairs: Pairs, W: Array, W_other: Array) -> Array:
        """The leaf, up to what `scaled` does. W may have one column for all rows.

        For rows with themselves (rows, q, q), or (q, q) if it is the same for all rows.
        """
        if len(W) == 0:
            return inner
        X, others, _ = pairs
        if others is None:
            return self._at_rows(theta, X, W)
        A = np.hstack([X, np.broadcast_to(W.T, (X.shape[0], len(W)))])
        return self.evaluate(theta, A, np.hstack([others, W_other.T]))

    def _at_rows(self, theta: Array, X: Array, W: Array) -> Array:
        """K((x, w), (x, w')) for every row x of X and all pairs w, w' of columns of W."""
        size = W.shape[1]
        result = np.empty((X.shape[0], size, size))
        for row, x in enumerate(X):
            A = np.hstack([np.broadcast_to(x, (size, x.size)), W.T])
            result[row] = self.evaluate(theta, A, A)
        return result

    def scaled(self, theta: Array, unit: Array) -> Array:
        """K from what `unit` gave."""
        return unit

    def gradient(
        self, theta: Array, pairs: Pairs, inner: Array, unit: Array, W: Array, weights: Array
    ) -> tuple[Array, Array]:
        """d/d theta and d/d W of sum_ij weights_ij K_ij, for symmetric weights: (k,), (q, n)."""
        A = np.hstack([pairs.X, W.T])

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
            moved[:, pairs.X.shape[1] + column] = STEP
            # Each w_i comes in row i and in column i, which are alike.
            by_latent[column] = 2.0 * np.sum(weights * change(np.zeros(theta.size), moved), axis=1)
        return np.array(by_theta), by_latent

    def in_latent(
        self, theta: Array, inner: Array, seen: Seen, W: Array, columns: Sequence[int]
    ) -> Separable | None:
        """The leaf as a function of some latent columns, of which it sees at least one.

        The others that it sees are held at W. None if it is not known as such a function.
        """
        return None


# The kernels that come with the package, by the names of their classes.
KERNELS: dict[str, type[Leaf]] = {}


def shipped(kernel: L) -> L:
    """Enter a kernel of the package in `KERNELS`; written over its class."""
    KERNELS[kernel.__name__] = kernel
    return kernel


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
    for each in leaf.inputs or (("x",) if leaf.of_levels else ("x", "w")):
        if leaf.of_levels and isinstance(each, str) and each[:1] == "w":
            raise ValueError(
                f"kernel {type(leaf).__name__} is of levels, and cannot be on {each!r}; choose "
                "columns of X"
            )
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
                f"kernel inputs must be column numbers, 'x', 'w', 'w0', 'w1', ..., got "
                f"{_check.shown(each)}"
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
