"""Rows with the same inputs: the function is the same there, so that averages say all.

With v_i the noise variance of row i, and sums over the rows of a place j,

    V_j = 1 / sum_i 1 / v_i,    m_j = V_j sum_i y_i / v_i,
    prod_i N(y_i | f_j, v_i) = N(m_j | f_j, V_j) prod_i N(y_i | m_j, v_i) / N(0 | 0, V_j)

So N(y | 0, C) of all rows is N(m | 0, K + diag(V)) of the places, times what does not depend on f:
exact, at the cost of the places.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gplc._linalg import LOG_2PI
from gplc._types import Array


class Averages(NamedTuple):
    """What the rows of every place say together."""

    variance: Array  # V, (places,)
    mean: Array  # m, (places,)
    rest: float  # log of all that does not depend on the function


class Replicates(NamedTuple):
    """Which rows are at the same place.

    Examples
    --------
    >>> import numpy as np
    >>> replicates = Replicates.of(np.array([[1.0], [0.0], [1.0]]))
    >>> replicates.place.tolist(), replicates.first.tolist()
    ([1, 0, 1], [1, 0])
    >>> replicates.averaged(np.array([1.0, 1.0, 3.0]), np.array([0.0, 5.0, 4.0])).mean.tolist()
    [5.0, 1.0]
    >>> Replicates.of(np.array([[1.0], [0.0]])) is None
    True
    """

    place: NDArray[np.intp]  # (rows,)
    first: NDArray[np.intp]  # (places,): one of the rows of each

    @classmethod
    def of(cls, X: Array) -> "Replicates | None":
        """Those of some inputs; None if all are different."""
        _, first, place = np.unique(X, axis=0, return_index=True, return_inverse=True)
        return None if first.size == len(X) else cls(place.reshape(-1), first)

    def sums(self, values: Array) -> Array:
        """Sums over the rows of each place."""
        found = np.bincount(self.place, values, minlength=self.first.size)
        return np.asarray(found, dtype=np.float64)

    def averaged(self, variance: float | Array, y: Array) -> Averages:
        """Rows with noise variances v, as places."""
        rows = np.broadcast_to(variance, y.shape)
        with np.errstate(all="ignore"):
            together = 1.0 / self.sums(1.0 / rows)
            mean = together * self.sums(y / rows)
            gaps = y - mean[self.place]
            rest = -0.5 * float(np.sum(gaps * gaps / rows + np.log(rows)))
            rest += 0.5 * float(np.sum(np.log(together)))
        rest -= 0.5 * (y.size - mean.size) * LOG_2PI
        return Averages(together, mean, rest)

    def by_variance(self, variance: float | Array, y: Array, mean: Array, spread: Array) -> Array:
        """How the log density changes with the noise variance of every row.

        ((y_i - f)^2 / v_i - 1) / (2 v_i) on average over f, which is N(mean, spread) at the
        places, given y (Fisher's identity).
        """
        rows = np.broadcast_to(variance, y.shape)
        squares = (y - mean[self.place]) ** 2 + spread[self.place]
        with np.errstate(all="ignore"):  # with next to no noise it is larger than any number
            return np.nan_to_num(0.5 * (squares / rows - 1.0) / rows)
