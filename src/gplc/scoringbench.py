"""Our estimators for ScoringBench, a benchmark of predictive distributions on tables.

It asks of a model for three methods: ``fit``, ``predict`` and ``predict_distribution``, the last
as a histogram for each row. Its container is used where ScoringBench is installed, else one with
the same fields.

>>> from gplc import StandardGP
>>> from gplc.scoringbench import GPWrapper
>>> model = GPWrapper(StandardGP(chains=1, draws=10, warmup=10, random_state=0))
>>> model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.5]).predict([[0.5]]).shape
(1,)
"""

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from gplc._types import Array
from gplc.estimators import BaseGP, LatentCovariateGP
from gplc.predictive import Predictive

BASE = "scoringbench.univariate.wrappers.base"
# Bins of a row lie between these quantiles; what is beyond belongs to the first and the last.
ENDS = (1e-5, 1.0 - 1e-5)


class Histogram(NamedTuple):
    """The fields of ScoringBench's ``DistributionPrediction``."""

    probas: Array  # (rows, bins), with sum 1
    bin_edges: Array  # (rows, bins + 1)
    bin_midpoints: Array  # (rows, bins)
    mean: Array  # (rows,)


def histogram(dist: Predictive, bins: int = 1000) -> Histogram:
    """Exact probabilities of equally wide bins, for each row.

    Examples
    --------
    >>> found = histogram(Predictive.from_arrays([[0.0]], [[1.0]]), bins=4)
    >>> found.probas.round(3).tolist(), found.bin_edges.round(2).tolist()
    ([[0.016, 0.484, 0.484, 0.016]], [[-4.26, -2.13, 0.0, 2.13, 4.26]])
    """
    ends = dist.quantile(ENDS)
    edges = np.linspace(ends[:, 0], ends[:, 1], bins + 1, axis=1)
    below = dist.cdf(edges)
    below[:, 0], below[:, -1] = 0.0, 1.0
    middles = 0.5 * (edges[:, :-1] + edges[:, 1:])
    return Histogram(np.diff(below, axis=1), edges, middles, dist.mean())


class GPWrapper:
    """An estimator of ours as ScoringBench takes it.

    Parameters
    ----------
    estimator : BaseGP, optional
        By default `LatentCovariateGP` with its defaults.
    bins : int
        Of each histogram.

    Attributes
    ----------
    estimator_ : BaseGP
        The same, fitted.
    """

    def __init__(self, estimator: BaseGP | None = None, bins: int = 1000) -> None:
        self.estimator = estimator
        self.bins = bins

    def fit(self, X: ArrayLike, y: ArrayLike) -> "GPWrapper":
        """Fit to rows X (n, p) and responses y (n,)."""
        given = LatentCovariateGP() if self.estimator is None else clone(self.estimator)
        self.estimator_ = given.fit(X, y)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Means, (n,)."""
        return self.estimator_.predict_dist(X).mean()

    def predict_distribution(self, X: ArrayLike) -> Any:
        """Histograms, in ScoringBench's own container if there is one."""
        found = histogram(self.estimator_.predict_dist(X), self.bins)
        try:
            container = import_module(BASE).DistributionPrediction
        except ImportError:
            return found
        return container(**found._asdict())
