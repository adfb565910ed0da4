"""A kernel with the inputs of a model: covariances computed no more often than need be.

What a leaf computes comes in three steps, and a change of one number repeats only those it
touches (`Touches`): its *inner* part, of observed inputs; its *unit*, with latent ones; a scale.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gplc._types import Array
from gplc.kernels.base import KERNELS, Kernel, Pairs, places
from gplc.kernels.cross import Cross, SeparableCross
from gplc.kernels.hyperparameters import LatentMoves, Touches
from gplc.kernels.separable import Separable

# A user's kernel is tried at this many draws from the prior, on at most this many rows.
TRIES, TRIED_ROWS = 8, 60
# Eigenvalues below this share of the largest are rounding.
ROUNDING = 1e-7


class Pieces(NamedTuple):
    """What is kept of a covariance matrix, for each leaf, to be used again."""

    inner: tuple[Array, ...]  # what depends on observed inputs only
    units: tuple[Array, ...]  # the leaves, up to their scale

    def of(self, k: int) -> tuple[Array, Array]:
        """Both of one leaf."""
        return self.inner[k], self.units[k]


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
        self.pairs = [
            Pairs(x, x, place.leaf.bases(x, x))
            for place, x in zip(self.places, self.observed, strict=True)
        ]
        self._owner = [k for k, p in enumerate(self.places) for _ in p.hyperparameters]
        self._no_latent = np.empty((0, self.n))

    def touches(self, index: int) -> Touches:
        """What a change of theta[index] makes necessary to compute again."""
        return self.hyperparameters[index].touches

    def _inner(self, k: int, theta: Array) -> Array:
        place = self.places[k]
        return place.leaf.inner(theta[place.where], self.pairs[k], len(place.seen.latent))

    def _unit(self, k: int, theta: Array, inner: Array, W: Array) -> Array:
        place = self.places[k]
        own = place.latent(W)
        return place.leaf.unit(theta[place.where], inner, self.pairs[k], own, own)

    def pieces(self, theta: Array, W: Array | None = None) -> Pieces:
        """Everything, computed from nothing."""
        W = self._no_latent if W is None else W
        inner = tuple(self.inner(theta, self.pairs))
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
            return first.leaf.gradient(theta, self.pairs[0], *pieces.of(0), W, weights)
        by_theta, by_latent = np.zeros(len(self.names)), np.zeros(W.shape)
        of_leaves = self.kernel.weights_of_leaves(self._values(theta, pieces), weights)
        for k, (place, own) in enumerate(zip(self.places, of_leaves, strict=True)):
            by_theta[place.where], of_latent = place.leaf.gradient(
                theta[place.where],
                self.pairs[k],
                *pieces.of(k),
                place.latent(W),
                own,
            )
            for column, of_column in zip(place.seen.latent, of_latent, strict=True):
                by_latent[column] += of_column
        return by_theta, by_latent

    # Between any rows.

    def inner(self, theta: Array, pairs: Sequence[Pairs]) -> list[Array]:
        """What depends on observed inputs only, of every leaf, between pairs of rows."""
        return [
            place.leaf.inner(theta[place.where], own, len(place.seen.latent))
            for place, own in zip(self.places, pairs, strict=True)
        ]

    def value(
        self, theta: Array, pairs: Sequence[Pairs], inner: Sequence[Array], W: Array, others: Array
    ) -> Array:
        """K between pairs of rows, with latent columns W (q, n or 1) and `others` (q, m)."""
        values = []
        for place, own, of_x in zip(self.places, pairs, inner, strict=True):
            mine = theta[place.where]
            unit = place.leaf.unit(mine, of_x, own, place.latent(W), place.latent(others))
            values.append(place.leaf.scaled(mine, unit))
        return self.kernel.value(iter(values))

    def cross(self, theta: Array, X: Array, W: Array | None = None) -> Cross:
        """Covariances of new rows of X with the cases, whose latent columns are W."""
        cross = Cross(self, theta, X, self._no_latent if W is None else W)
        described = self.between(theta, cross.pairs, cross.inner) if self.n_latent else None
        if described is None or not described.separates:
            return cross
        return SeparableCross(cross, described)

    def at_rows(self, theta: Array, X: Array, W: Array | None = None) -> Array:
        """K((x, w), (x, w')) for every row x and all pairs of columns w, w' of W: (rows, s, s).

        The first axis has length 1 if it is the same for all rows.
        """
        W = np.empty((0, 1)) if W is None else W
        pairs = [Pairs(place.observed(X)) for place in self.places]
        value = self.value(theta, pairs, self.inner(theta, pairs), W, W)
        rows = value.shape[0] if value.ndim == 3 else 1
        return np.broadcast_to(value, (rows, W.shape[1], W.shape[1]))

    def variance(self, theta: Array, X: Array, w: Array | None = None) -> Array:
        """K((x, w), (x, w)) for every row, w being one value of each latent column: (rows,)."""
        entries = self.at_rows(theta, X, None if w is None else w[:, None])
        return np.broadcast_to(entries[:, 0, 0], (X.shape[0],))

    # As a function of latent columns.

    def sees(self, column: int) -> bool:
        """Whether any leaf sees a latent column."""
        return any(column in place.seen.latent for place in self.places)

    def separates(self, column: int) -> bool:
        """Whether all leaves that see a latent column are smooth functions of it times others."""
        for place in self.places:
            if column not in place.seen.latent:
                continue
            theta, W = np.zeros(len(place.hyperparameters)), np.zeros((len(place.seen.latent), 1))
            described = place.leaf.in_latent(theta, np.ones((1, 1)), place.seen, W, (column,))
            if described is None:
                return False
            if not all(term.forms[column].is_smooth for term in described.terms):
                return False
        return True

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

    def in_latent(self, theta: Array, pieces: Pieces, W: Array, column: int) -> Separable | None:
        """K between the cases as a function of one latent column, the others held at W.

        None if a leaf is not known as such a function.
        """
        return self._described(theta, pieces.inner, pieces.units, W, (column,))

    def between(
        self, theta: Array, pairs: Sequence[Pairs], inner: Sequence[Array]
    ) -> Separable | None:
        """K between pairs of rows as a function of all latent columns; None likewise."""
        none = np.empty((0, 1))
        units = [
            leaf.unit(theta[where], of_x, own, none, none) if not seen.latent else of_x
            for (leaf, seen, where, _), own, of_x in zip(self.places, pairs, inner, strict=True)
        ]
        return self._described(theta, inner, units, none, range(self.n_latent))

    def _described(
        self,
        theta: Array,
        inner: Sequence[Array],
        units: Sequence[Array],
        W: Array,
        columns: Sequence[int],
    ) -> Separable | None:
        """The description from those of the leaves; `units` count for those that see no column."""
        found: list[Separable] = []
        for place, of_x, unit in zip(self.places, inner, units, strict=True):
            leaf, seen, mine = place.leaf, place.seen, theta[place.where]
            if not any(column in columns for column in seen.latent):
                found.append(Separable(leaf.scaled(mine, unit)))
                continue
            held = place.latent(W) if len(W) else W  # nothing is, if all columns are asked for
            own = leaf.in_latent(mine, of_x, seen, held, columns)
            if own is None:
                return None
            found.append(own)
        return self.kernel.value(iter(found))

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
