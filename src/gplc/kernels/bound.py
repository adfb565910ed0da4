"""A kernel with the inputs of a model: covariances computed no more often than need be.

What a leaf computes comes in three steps, and a change of one number repeats only those it
touches (`Touches`): its *inner* part, of observed inputs; its *unit*, with latent ones; a scale.
"""

import functools
import itertools
import operator
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gplc.kernels.base import Kernel, LatentMoves, Site, Touches, places
from gplc.kernels.leaves import KERNELS

Array = NDArray[np.float64]
# A user's kernel is tried at this many draws from the prior, on at most this many rows.
TRIES, TRIED_ROWS = 8, 60
# Entries of covariance matrices that are computed at once where there is a matrix for every row.
AT_ONCE = 1_000_000
# Eigenvalues below this share of the largest are rounding.
ROUNDING = 1e-7


class Pieces(NamedTuple):
    """What is kept of a covariance matrix, for each leaf, to be used again."""

    inner: tuple[Array, ...]  # what depends on observed inputs only
    units: tuple[Array, ...]  # the leaves, up to their scale

    def of(self, k: int) -> tuple[Array, Array]:
        """Both of one leaf."""
        return self.inner[k], self.units[k]


class Program(NamedTuple):
    """C as a function of one latent column, for the compiled sweep.

    C_ij = free_ij + sum_t amplitudes[t]_ij prod_f phi_f(w_i, w_j), with a row of `codes` and of
    `numbers` for every factor f.
    """

    free: Array  # (n, n)
    amplitudes: Array  # (terms, n, n)
    offsets: Array  # (offsets, n, n): what is added inside a phi
    codes: NDArray[np.int64]  # (factors, 3): term, code of phi, number of its offset or -1
    numbers: Array  # (factors, 2): weight and extra of phi


def _expanded(
    product: tuple[int, ...], sites: Mapping[int, Site], values: Mapping[int, Array]
) -> list[tuple[tuple[int, ...], Array | float]]:
    """A product of leaves, multiplied out: leaves that vary with w, and what multiplies them."""
    choices = [[((), values[k])] if k not in sites else _of_site(k, sites[k]) for k in product]
    return [
        (
            tuple(k for key, _ in chosen for k in key),
            functools.reduce(operator.mul, [amount for _, amount in chosen]),
        )
        for chosen in itertools.product(*choices)
    ]


def _of_site(k: int, site: Site) -> list[tuple[tuple[int, ...], Array | float]]:
    varying: list[tuple[tuple[int, ...], Array | float]] = [((k,), site.amplitude)]
    return varying + ([((), site.rest)] if np.any(site.rest) else [])


class Bound:
    """A kernel bound to the inputs of n cases.

    Latent columns come as W, (q, n); None stands for none. Pieces of the matrix come from
    `pieces`, `changed` and `moved`, and are handed back to the other methods.

    Parameters
    ----------
    kernel : Kernel
    X : (n, p) array
        Observed inputs.
    n_latent : int
        q, the number of latent columns.
    suffix : str
        Put behind the names of hyperparameters.

    Examples
    --------
    >>> import numpy as np
    >>> from gplc.kernels import SquaredExponential
    >>> bound = Bound(SquaredExponential(constant=0.0), np.array([[0.0], [1.0]]))
    >>> theta = np.zeros(2)
    >>> bound.matrix(theta, bound.pieces(theta)).round(3).tolist()
    [[1.0, 0.368], [0.368, 1.0]]
    """

    def __init__(self, kernel: Kernel, X: Array, n_latent: int = 0, suffix: str = "") -> None:
        self.kernel = kernel
        self.n, self.n_latent = X.shape[0], n_latent
        self.places = places(kernel, X.shape[1], n_latent, suffix)
        self.hyperparameters = [each for p in self.places for each in p.hyperparameters]
        self.names = tuple(each.name for each in self.hyperparameters)
        self.observed = [place.observed(X) for place in self.places]
        self.bases = [
            place.leaf.bases(x, x) for place, x in zip(self.places, self.observed, strict=True)
        ]
        self._owner = [k for k, p in enumerate(self.places) for _ in p.hyperparameters]
        self._no_latent = np.empty((0, self.n))

    def touches(self, index: int) -> Touches:
        """What a change of theta[index] makes necessary to compute again."""
        return self.hyperparameters[index].touches

    def _inner(self, k: int, theta: Array) -> Array:
        place = self.places[k]
        return place.leaf.inner(theta[place.where], self.bases[k], len(place.seen.latent))

    def _unit(self, k: int, theta: Array, inner: Array, W: Array) -> Array:
        place = self.places[k]
        own = place.latent(W)
        return place.leaf.unit(theta[place.where], inner, self.bases[k], own, own)

    def pieces(self, theta: Array, W: Array | None = None) -> Pieces:
        """Everything, computed from nothing."""
        W = self._no_latent if W is None else W
        inner = tuple(self._inner(k, theta) for k in range(len(self.places)))
        units = tuple(self._unit(k, theta, inner[k], W) for k in range(len(self.places)))
        return Pieces(inner, units)

    def changed(self, index: int, theta: Array, pieces: Pieces, W: Array | None = None) -> Pieces:
        """The pieces after theta[index] has changed."""
        touches, k = self.touches(index), self._owner[index]
        if touches is Touches.SCALE:
            return pieces
        inner, units = pieces
        W = self._no_latent if W is None else W
        if touches is Touches.INPUTS:
            inner = (*inner[:k], self._inner(k, theta), *inner[k + 1 :])
        return Pieces(inner, (*units[:k], self._unit(k, theta, inner[k], W), *units[k + 1 :]))

    def moved(self, theta: Array, pieces: Pieces, W: Array) -> Pieces:
        """The pieces after W has changed."""
        units = tuple(
            self._unit(k, theta, pieces.inner[k], W) if place.seen.latent else pieces.units[k]
            for k, place in enumerate(self.places)
        )
        return pieces._replace(units=units)

    def _values(self, theta: Array, pieces: Pieces) -> list[Array]:
        return [
            place.leaf.scaled(theta[place.where], unit)
            for place, unit in zip(self.places, pieces.units, strict=True)
        ]

    def matrix(self, theta: Array, pieces: Pieces) -> Array:
        """K, as a new array (n, n) in C order."""
        units = pieces.units
        if len(units) == 1:  # by far the commonest: by the shortest way
            value = self.places[0].leaf.scaled(theta, units[0])
        else:
            value = self.kernel.value(iter(self._values(theta, pieces)))
        if value.shape != (self.n, self.n) or (len(units) == 1 and value is units[0]):
            return np.array(np.broadcast_to(value, (self.n, self.n)))
        return value

    def gradient(
        self, theta: Array, pieces: Pieces, W: Array | None, weights: Array
    ) -> tuple[Array, Array]:
        """d/d theta and d/d W of sum_ij weights_ij K_ij, for symmetric weights."""
        W = self._no_latent if W is None else W
        first = self.places[0]
        if len(self.places) == 1 and len(first.seen.latent) == len(W):
            # By far the commonest: by the shortest way.
            return first.leaf.gradient(theta, self.bases[0], *pieces.of(0), W, weights)
        by_theta, by_latent = np.zeros(len(self.names)), np.zeros(W.shape)
        of_leaves = self.kernel.weights_of_leaves(self._values(theta, pieces), weights)
        for k, (place, own) in enumerate(zip(self.places, of_leaves, strict=True)):
            by_theta[place.where], of_latent = place.leaf.gradient(
                theta[place.where],
                self.bases[k],
                *pieces.of(k),
                place.latent(W),
                own,
            )
            for column, of_column in zip(place.seen.latent, of_latent, strict=True):
                by_latent[column] += of_column
        return by_theta, by_latent

    def cross(self, theta: Array, X: Array, W: Array | None = None) -> "Cross":
        """Covariances of new rows of X with the cases, whose latent columns are W."""
        return Cross(self, theta, X, self._no_latent if W is None else W)

    def at_rows(self, theta: Array, X: Array, W: Array | None = None) -> Array:
        """K((x, w), (x, w')) for every row x and all pairs of columns w, w' of W: (rows, s, s).

        The first axis has length 1 if it is the same for all rows.
        """
        W = np.empty((0, 1)) if W is None else W
        value = self.kernel.value(
            place.leaf.at_rows(theta[place.where], place.observed(X), place.latent(W))
            for place in self.places
        )
        return np.broadcast_to(value, (value.shape[0], W.shape[1], W.shape[1]))

    def variance(self, theta: Array, X: Array, w: Array | None = None) -> Array:
        """K((x, w), (x, w)) for every row, w being one value of each latent column: (rows,)."""
        entries = self.at_rows(theta, X, None if w is None else w[:, None])
        return np.broadcast_to(entries[:, 0, 0], (X.shape[0],))

    def average_variance(self, theta: Array, X: Array, nodes: Array, weights: Array) -> Array:
        """Weighted mean of K((x, w), (x, w')) over w and w', for every row x: (rows,).

        Nodes are the columns of a (q, s) array. A few rows at a time: s^2 entries each are many.
        """
        result = np.empty(X.shape[0])
        height = max(2, AT_ONCE // weights.size**2)
        for begin in range(0, X.shape[0], height):
            rows = X[begin : begin + height]
            entries = self.at_rows(theta, rows, nodes)
            averages = np.tensordot(entries @ weights, weights, 1)
            if len(averages) < len(rows):  # it is the same for all
                result[:] = averages[0]
                break
            result[begin : begin + height] = averages
        return result

    def sees(self, column: int) -> bool:
        """Whether any leaf sees a latent column."""
        return any(column in place.seen.latent for place in self.places)

    def separates(self, column: int) -> bool:
        """Whether all leaves that see a latent column are smooth functions of it times others."""
        return all(place.leaf.separates for place in self.places if column in place.seen.latent)

    def moves(self, column: int) -> LatentMoves:
        """What can be done to a latent column, of all cases at once, without changing K."""
        shift, reflection, scale = True, True, []
        can_scale = True
        for place in self.places:
            if column not in place.seen.latent:
                continue
            moves = place.leaf.moves(place.seen, column)
            shift, reflection = shift and moves.shift, reflection and moves.reflection
            can_scale = can_scale and moves.scale is not None
            scale += [(place.where.start + k, sign) for k, sign in moves.scale or ()]
        return LatentMoves(shift, reflection, tuple(scale) if can_scale else None)

    def exchanges(self, first: int, second: int) -> list[tuple[int, int]] | None:
        """Pairs of places of theta to exchange with two latent columns, so that K stays.

        None if K is not the same function of both.
        """
        result = []
        for place in self.places:
            sees = [column in place.seen.latent for column in (first, second)]
            if not any(sees):
                continue
            pair = place.leaf.exchanged(place.seen, first, second) if all(sees) else None
            if pair is None:
                return None
            if pair[0] != pair[1]:
                result.append((place.where.start + pair[0], place.where.start + pair[1]))
        return result

    def program(self, theta: Array, pieces: Pieces, W: Array, column: int) -> Program | None:
        """K as a function of one latent column; None if a leaf is not one the sweep knows."""
        sites: dict[int, Site] = {}
        for k, place in enumerate(self.places):
            if column in place.seen.latent:
                own = place.seen.latent.index(column)
                site = place.leaf.site(
                    theta[place.where], self.bases[k], pieces.inner[k], place.latent(W), own
                )
                if site is None:
                    return None
                sites[k] = site
        values = {
            k: place.leaf.scaled(theta[place.where], pieces.units[k])
            for k, place in enumerate(self.places)
            if k not in sites
        }
        totals: dict[tuple[int, ...], Array | float] = {}
        for product in self.kernel.products():
            for key, amount in _expanded(product, sites, values):
                totals[key] = totals[key] + amount if key in totals else amount
        free = np.empty((self.n, self.n))
        free[:] = totals.pop((), 0.0)
        codes: list[tuple[int, int, int]] = []
        numbers: list[tuple[float, float]] = []
        offsets: list[Array] = []
        for term, key in enumerate(totals):
            for k in key:
                site = sites[k]
                codes.append((term, site.code, -1 if site.offset is None else len(offsets)))
                numbers.append((site.weight, site.extra))
                if site.offset is not None:
                    offsets.append(site.offset)
        return Program(
            free,
            self._stacked(list(totals.values())),
            self._stacked(offsets),
            np.array(codes, dtype=np.int64).reshape(-1, 3),
            np.array(numbers).reshape(-1, 2),
        )

    def _stacked(self, matrices: Sequence[Array | float]) -> Array:
        """Matrices as one array (m, n, n); one that is whole already is not copied."""
        if len(matrices) == 1 and np.shape(matrices[0]) == (self.n, self.n):
            return np.ascontiguousarray(matrices[0])[None]
        result = np.empty((len(matrices), self.n, self.n))
        for place, matrix in zip(result, matrices, strict=True):
            place[:] = matrix
        return result

    def check(self, X: Array, means: Array, sds: Array) -> None:
        """Refuse a kernel of the user's that is no covariance function, as far as can be seen.

        Tried on (some of) the inputs at draws of theta from its prior. Kernels of the package,
        and sums and products of these, need no trial.
        """
        if all(type(place.leaf) in KERNELS.values() for place in self.places):
            return
        rng = np.random.default_rng(0)
        rows = X[np.linspace(0, X.shape[0] - 1, min(TRIED_ROWS, X.shape[0])).astype(int)]
        what = "kernel"
        for attempt in range(TRIES):
            theta = means + (0.0 if attempt == 0 else sds) * rng.standard_normal(means.size)
            A = np.hstack([rows, rng.standard_normal((len(rows), self.n_latent))])
            matrix = self.kernel.matrix(theta, A, A, self.n_latent)
            values = dict(zip(self.names, np.exp(theta).round(4).tolist(), strict=True))
            if not np.isfinite(matrix).all():
                raise ValueError(
                    f"{what} has entries that are not finite at {values}; "
                    "check the formula in evaluate"
                )
            if np.abs(matrix - matrix.T).max() > ROUNDING * np.abs(matrix).max():
                raise ValueError(
                    f"{what} is not symmetric at {values}: K(a, b) must equal K(b, a); "
                    "check the formula in evaluate"
                )
            eigenvalues = np.linalg.eigvalsh(matrix)
            if eigenvalues[0] < -ROUNDING * max(eigenvalues[-1], 0.0) - 1e-300:
                raise ValueError(
                    f"{what} is not positive semi-definite: at {values} its matrix on the inputs "
                    f"has eigenvalue {eigenvalues[0]:.3g}, and no covariance can have a negative "
                    "one; change the formula, or build it as a sum or product of kernels"
                )


class Cross:
    """Covariances of new rows with the cases, for one theta."""

    def __init__(self, bound: Bound, theta: Array, X: Array, W: Array) -> None:
        self._bound, self._theta = bound, theta
        self._X = [place.observed(X) for place in bound.places]
        self._W = [place.latent(W) for place in bound.places]
        self._inner = [
            place.leaf.inner_between(theta[place.where], x, cases, len(w))
            for place, x, cases, w in zip(
                bound.places, self._X, bound.observed, self._W, strict=True
            )
        ]
        self._shape = X.shape[0], bound.n

    def at(self, w: Array | None = None) -> Array:
        """K((x, w), cases) for every row x, with one value for each latent column: (rows, n)."""
        bound, values = self._bound, []
        node = np.empty((0, 1)) if w is None else w[:, None]
        for k, place in enumerate(bound.places):
            theta = self._theta[place.where]
            bases = self._X[k], bound.observed[k]
            unit = place.leaf.unit(theta, self._inner[k], bases, place.latent(node), self._W[k])
            values.append(place.leaf.scaled(theta, unit))
        value = bound.kernel.value(iter(values))
        if value.shape == self._shape:
            return value
        return np.array(np.broadcast_to(value, self._shape))

    def average(self, nodes: Array, weights: Array) -> Array:
        """The weighted mean of `at` over nodes, the columns of a (q, s) array: (rows, n).

        Where every leaf can be split into parts of x and of w, only the latter are computed for
        each node.
        """
        bound, result = self._bound, np.zeros(self._shape)
        parts = [
            place.leaf.split(
                self._theta[place.where], self._inner[k], place.latent(nodes), self._W[k]
            )
            for k, place in enumerate(bound.places)
        ]
        if any(each is None for each in parts):
            for node, weight in zip(nodes.T, weights, strict=True):
                result += weight * self.at(node)
            return result
        for product in bound.kernel.products():
            for chosen in itertools.product(*(parts[k] or [] for k in product)):
                of_x = functools.reduce(np.multiply, [x for x, _ in chosen])
                of_latent = [w for _, w in chosen if w is not None]
                if of_latent:
                    of_x = of_x * (weights @ functools.reduce(np.multiply, of_latent))
                result += of_x
        return result
