"""A process known by its values at a few points: for more inputs than a grid of functions has.

With Z the points and L L' = K(Z, Z), the Nystroem form of a process is

    f(x) = k(x, Z) L^-T v,   v ~ N(0, I),

whose covariance Q(x, x') = k(x, Z) K(Z, Z)^-1 k(Z, x') is the exact one wherever x or x' is one of
the points. Its functions follow theta. What it leaves out, k(x, x) - Q(x, x), is never negative;
`Induced.error` has its share. As a model of new rows it is added to the variance of f there
(the deterministic training conditional of Quinonero-Candela and Rasmussen 2005).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import blas, lapack
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from gplc import _check
from gplc._linalg import weights_through_lower
from gplc._types import Array
from gplc.kernels import Constant, Kernel, SquaredExponential
from gplc.kernels.base import Pairs
from gplc.kernels.bound import Bound, Pieces
from gplc.kernels.shaped import Shaped
from gplc.processes.hilbert import Axis, axis_from

# Points by default, and at most.
DEFAULT_POINTS, MOST_POINTS = 300, 2000
# Points are the centres of so many rows, found in at most so many rounds.
ROWS_FOR_POINTS, ROUNDS_FOR_POINTS = 10_000, 50
# Added to the diagonal of K(Z, Z), as a share of its mean.
JITTER = 1e-8
# Rows at which the error is measured.
COMPARED_ROWS = 500


@dataclass(frozen=True)
class Inducing:
    """An approximation by the values of f at a few points, for 4 to about 15 inputs.

    The points are centres of the rows of X (k-means), chosen from the data alone. See
    docs/large.md for how good it is.

    Parameters
    ----------
    points : int
        How many. A density of STD costs rows times points squared, one of GPLC and GPLV rows
        times points.

    Examples
    --------
    >>> Inducing(points=2).chosen(np.array([[0.0], [0.2], [5.0], [5.2]])).array.round(3).tolist()
    [[0.1], [5.1]]
    """

    points: int = DEFAULT_POINTS

    def __post_init__(self) -> None:
        _check.integer(
            "points", self.points, at_least=1, at_most=MOST_POINTS, advice="300 is a good start"
        )

    def chosen(self, X: Array) -> "Points":
        """Centres of the rows of X; all rows, if there are no more different ones."""
        rows = np.unique(X[:: -(-len(X) // ROWS_FOR_POINTS)], axis=0)
        if len(rows) > self.points:
            # On one thread sums have one order, so that the same data give the same points.
            with threadpool_limits(limits=1):
                found = KMeans(
                    self.points, n_init=1, max_iter=ROUNDS_FOR_POINTS, random_state=0
                ).fit(rows)
            rows = np.unique(found.cluster_centers_, axis=0)
        return Points(tuple(tuple(row) for row in rows.tolist()))


@dataclass(frozen=True)
class Points:
    """Where processes are known by their values, in standard units.

    For models that sample these values there are also the hyperparameters at which the functions
    between the points are made (`gplc.processes.interpolated`), of every process, and the axis
    of w.
    """

    rows: tuple[tuple[float, ...], ...]
    references: tuple[tuple[float, ...], ...] = ()
    latent: Axis | None = None

    @cached_property
    def array(self) -> Array:
        """The points, (m, p)."""
        return np.array(self.rows, dtype=np.float64)

    def record(self) -> dict[str, Any]:
        """In JSON's terms."""
        return {
            "points": [list(row) for row in self.rows],
            "references": [list(each) for each in self.references],
            "latent": None if self.latent is None else [float(each) for each in self.latent],
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "Points":
        """From what `record` gave.

        Examples
        --------
        >>> points = Points(((0.1, 0.2), (1.0, 2.0)))
        >>> Points.from_record(points.record()) == points
        True
        """
        rows = np.array(record["points"], dtype=np.float64)
        if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
            raise ValueError("the points of its approximation are no table of numbers")
        references = tuple(tuple(map(float, each)) for each in record.get("references", ()))
        if not all(np.isfinite(each).all() for each in references):
            raise ValueError("the references of its approximation are no numbers")
        latent = record.get("latent")
        return cls(
            tuple(tuple(row) for row in rows.tolist()),
            references,
            None if latent is None else axis_from(latent),
        )


class Root(NamedTuple):
    """K(Z, Z) at one theta."""

    theta: Array
    pieces: Pieces
    lower: Array  # L


class Between(NamedTuple):
    """k(x, Z) for some rows, with what its derivatives are made from."""

    matrix: Array  # (rows, m)
    pairs: tuple[Pairs, ...]
    pieces: Pieces
    values: tuple[Array, ...]  # of each leaf


class Induced:
    """A kernel with the points that stand for its process.

    Examples
    --------
    >>> from gplc.kernels import SquaredExponential
    >>> induced = Induced(SquaredExponential(), Points(((0.0,), (1.0,))))
    >>> root = induced.root(np.zeros(2))
    >>> induced.functions(root, np.array([[0.0], [1.0]])).round(2).tolist()  # L itself
    [[1.41, 0.0], [0.97, 1.03]]
    """

    def __init__(self, kernel: Kernel, points: Points) -> None:
        self.bound = Bound(kernel, points.array)
        self.size = self.width = len(points.rows)

    def root(self, theta: Array) -> Root | None:
        """L; None if it cannot be computed."""
        pieces = self.bound.pieces(theta)
        matrix = self.bound.matrix(theta, pieces)
        matrix[np.diag_indices_from(matrix)] += JITTER * float(np.mean(np.diagonal(matrix)))
        if not np.all(np.isfinite(matrix)):
            return None
        lower, status = lapack.dpotrf(matrix.T, lower=1, clean=1)
        return Root(theta, pieces, lower) if status == 0 else None

    def between(self, theta: Array, X: Array) -> Between:
        """k(x, Z) for the rows of X."""
        bound, none = self.bound, np.empty((0, 1))
        pairs, inner, units, values = [], [], [], []
        for place, points in zip(bound.places, bound.observed, strict=True):
            own, leaf, mine = place.observed(X), place.leaf, theta[place.where]
            pairs.append(Pairs(own, points))
            inner.append(leaf.inner(mine, pairs[-1], 0))
            units.append(leaf.unit(mine, inner[-1], pairs[-1], none, none))
            values.append(leaf.scaled(mine, units[-1]))
        matrix = np.broadcast_to(bound.kernel.value(iter(values)), (len(X), self.size))
        return Between(matrix, tuple(pairs), Pieces(tuple(inner), tuple(units)), tuple(values))

    def pulled(self, theta: Array, between: Between, weights: Array) -> Array:
        """d/d theta of the sum of weights times k(x, Z): (k,)."""
        result, none = np.zeros(len(self.bound.names)), np.empty((0, len(weights)))
        of_leaves = self.bound.kernel.weights_of_leaves(between.values, weights)
        for k, (place, own) in enumerate(zip(self.bound.places, of_leaves, strict=True)):
            leaf, rows, points = place.leaf, between.pairs[k].X, self.bound.observed[k]
            pairs = Pairs(rows, points, leaf.bases(rows, points))
            # That of the squared exponential itself goes over half of a symmetric matrix.
            one = Shaped if isinstance(leaf, SquaredExponential) else type(leaf)
            mine, pieces = theta[place.where], between.pieces.of(k)
            result[place.where], _ = one.gradient(leaf, mine, pairs, *pieces, none, own)
        return result

    def pulled_through_root(self, root: Root, inside: Array) -> Array:
        """d/d theta of a function of L: `inside` as in `weights_through_factor`."""
        weights = weights_through_lower(root.lower, np.asfortranarray(inside))
        weights[np.diag_indices_from(weights)] += JITTER * float(np.trace(weights)) / self.size
        return self.bound.gradient(root.theta, root.pieces, None, weights)[0]

    def functions(self, root: Root, X: Array) -> Array:
        """k(x, Z) L^-T for the rows of X: (rows, m)."""
        return through(root, self.between(root.theta, X).matrix)

    def left_out(self, root: Root, X: Array, functions: Array) -> Array:
        """k(x, x) - Q(x, x): (rows,)."""
        own = self.bound.variance(root.theta, X)
        return np.maximum(own - np.einsum("ij,ij->i", functions, functions), 0.0)

    def error(self, theta: Array, X: Array) -> float:
        """The share of the variance of f between rows that the points leave out."""
        X = X[:: -(-len(X) // COMPARED_ROWS)]
        root = self.root(theta)
        if root is None:
            return 1.0
        lost = float(np.mean(self.left_out(root, X, self.functions(root, X))))
        whole = self.bound.kernel.matrix(theta, X, X)
        spread = float(np.mean(np.diagonal(whole)) - np.mean(whole))
        return lost / max(spread, lost, np.finfo(float).tiny)


def through(root: Root, matrix: Array) -> Array:
    """`matrix` L^-T: (rows, m)."""
    return np.asarray(blas.dtrsm(1.0, root.lower, matrix.T, lower=1).T)


def without_points(kernel: Kernel) -> str:
    """Why a kernel is not approximated by points; empty if it is.

    Examples
    --------
    >>> from gplc.kernels import Periodic, SquaredExponential
    >>> without_points(SquaredExponential() * Periodic())
    ''
    """
    for leaf in kernel.leaves:
        if not isinstance(leaf, Shaped | Constant):
            return f"{leaf!r} has no derivatives between rows and points"
    return ""
