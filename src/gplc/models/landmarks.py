"""Landmarks: a few training rows at which the predictions of every draw are kept and judged.

What people look at are predictions, and hyperparameters can agree between chains where these do
not. So every draw keeps, at each landmark, mean and log SD of a new y given the draw, and how
likely y is to be below one fixed value and above another. All of it depends on the model, its
data and the draw alone, and no random numbers enter.
"""

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from gplc._types import Array

# Kinds of quantities at a landmark, in the order in which they are kept.
KINDS = ("f(x)", "log SD(x)", "lower tail", "upper tail")
# Of which these are probabilities.
TAILS = KINDS[2:]

# How many landmarks there are; files of another number, or of others, are of another format.
MOST_LANDMARKS = 20
# Rounds of moving landmarks to the middle of the rows that are nearest to them.
ROUNDS = 10
# Values of y between which tails are split off: with such shares of so many near cases below.
NEIGHBOURS, SHARES = 21, (0.1, 0.9)


class Landmarks(NamedTuple):
    """Rows of the training data, and two values of y for each."""

    rows: NDArray[np.intp]  # (m,), in increasing order
    X: Array  # (m, p)
    levels: Array  # (2, m): tails are below the first and above the second


def landmarks_of(X: Array, y: Array) -> Landmarks:
    """Rows that stand for all, at most 20, no two with the same inputs.

    Inputs are standardized. The first row is the one nearest to the middle, each of the others the
    one farthest from those before; then each moves to the middle of the rows that are nearest to
    it, a few times (Lloyd's iteration), for the farthest rows are all at the edge.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0.0, 1.0, 101)[:, None]
    >>> landmarks_of(X, X[:, 0]).rows[:5].tolist()
    [1, 6, 12, 18, 25]
    >>> landmarks_of(np.array([[0.0], [1.0], [1.0]]), np.array([1.0, 2.0, 4.0])).rows.tolist()
    [0, 1]
    """
    with np.errstate(all="ignore"):  # of inputs near the largest float
        spread = np.maximum(X.std(axis=0), np.finfo(float).tiny)
        scaled = np.nan_to_num((X - X.mean(axis=0)) / spread)
        centres = _far_apart(scaled)
        for _ in range(ROUNDS):
            nearest = np.argmin([_squares(scaled, centre) for centre in centres], axis=0)
            centres = np.array(
                [
                    scaled[nearest == k].mean(axis=0) if np.any(nearest == k) else centre
                    for k, centre in enumerate(centres)
                ]
            )
        middles = [int(np.argmin(_squares(scaled, centre))) for centre in centres]
        rows = np.unique(np.array(middles, dtype=np.intp))
        near = [
            np.argsort(_squares(scaled, scaled[row]), kind="stable")[:NEIGHBOURS] for row in rows
        ]
        levels = np.array([_levels(y[cases], 0.2 * float(y.std())) for cases in near]).T
    return Landmarks(rows, X[rows], levels)


def _squares(X: Array, centre: Array) -> Array:
    """Squared distances of rows from one point: (n,)."""
    return np.sum((X - centre) ** 2, axis=1)


def _far_apart(X: Array) -> Array:
    """Rows of X that are different, beginning in the middle, each far from those before."""
    chosen = [int(np.argmin(_squares(X, np.median(X, axis=0))))]
    distance = _squares(X, X[chosen[0]])
    while len(chosen) < MOST_LANDMARKS and distance.max() > 0.0:
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, _squares(X, X[chosen[-1]]))
    return X[chosen]


def _levels(y: Array, beyond: float) -> tuple[float, float]:
    """Two different values with about 10% and 90% of some y below.

    They are half-way between neighbours among the values: where one value is frequent, y jumps
    over it or stays just below, and a level in that place would tell rounding.

    Examples
    --------
    >>> _levels(np.arange(10.0), 0.2)
    (0.5, 8.5)
    >>> _levels(np.array([3.0, 3.0]), 0.2)
    (2.9, 3.1)
    """
    values, counts = np.unique(y, return_counts=True)
    edge = beyond if 0.0 < beyond < np.inf else 1.0
    ends = np.concatenate([[values[0] - edge], values, [values[-1] + edge]])
    between = ends[:-1] + 0.5 * np.diff(ends)
    below = np.concatenate([[0.0], np.cumsum(counts) / y.size])
    lower, upper = (float(between[np.argmin(np.abs(below - share))]) for share in SHARES)
    return lower, upper


def standard_nodes(columns: int, half: int) -> Array:
    """Points (columns * s,) that stand for N(0, I) with equal weights, the same for every draw.

    In one dimension they are the middles of 2 * `half` slices of equal probability, brought to
    variance one. In several, each has all its mirror images, for the models are the same under a
    change of sign. Nodes that are the same for all draws add no noise to what is judged.

    Examples
    --------
    >>> standard_nodes(1, 2).round(3).tolist()
    [0.378, 1.363, -0.378, -1.363]
    >>> standard_nodes(2, 8).size
    32
    """
    count = max(1, half // columns)
    # Multiples of an irrational number fill every further dimension evenly.
    shares = [(np.arange(count) + 0.5) / count]
    shares += [(0.5 + np.arange(count) * np.sqrt(prime)) % 1.0 for prime in (2, 3, 5, 7)]
    positive = ndtri(0.5 + 0.5 * np.array(shares[:columns]))
    positive /= np.sqrt(np.mean(positive**2, axis=1, keepdims=True))
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=columns)))
    return np.concatenate([sign[:, None] * positive for sign in signs], axis=1).ravel()


def summarised(means: Array, sds: Array, levels: Array) -> Array:
    """What `KINDS` says of mixtures of Gaussians with equal weights: (kinds, rows).

    Examples
    --------
    >>> import numpy as np
    >>> levels = np.array([[-1.0], [1.0]])
    >>> summarised(np.zeros((1, 2)), np.ones((1, 2)), levels).round(3).ravel().tolist()
    [0.0, 0.0, 0.159, 0.159]
    """
    centre = means.mean(axis=1)
    variance = np.mean((means - centre[:, None]) ** 2 + sds**2, axis=1)
    lower, upper = levels[:, :, None]
    tails = [ndtr((lower - means) / sds).mean(axis=1), ndtr((means - upper) / sds).mean(axis=1)]
    return np.stack([centre, 0.5 * np.log(variance), *tails])
