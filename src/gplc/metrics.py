"""How good predictive distributions are, judged on data: from a `Predictive` and arrays only.

Each function takes the distributions of n rows and one number for each row, and gives the average
over the rows (`pit` gives an array). Scores of single rows are methods of the distributions:
``-dist.logpdf(y)``, ``dist.crps(y)``.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRequest

from gplc import _check
from gplc._check import interval_probabilities
from gplc._types import Array
from gplc.components import real_array
from gplc.predictive import Predictive


def nlpd(dist: Predictive, y: ArrayLike) -> float:
    """Average negative log probability density, the paper's equation nlpd.

    NLPD = -(1/N) sum_i log( (1/M) sum_j N(y_i | mean_ij, sd_ij^2) ), by log-sum-exp, or with the
    weights of the components instead of 1/M. Small is good; differences between models are in
    nats a row.

    Parameters
    ----------
    dist : Predictive
        Distributions of n rows.
    y : (n,) array-like
        What was observed.

    Returns
    -------
    float

    Examples
    --------
    >>> dist = Predictive.from_arrays([[0.0], [0.0]], [[1.0], [1.0]])
    >>> round(nlpd(dist, [0.0, 2.0]), 4)
    1.9189
    """
    observed = _one_per_row(dist, "y", y)
    return float(-dist.logpdf(observed).mean())


def mse(dist: Predictive, f: ArrayLike) -> float:
    """Mean squared error of the predictive mean, the paper's equation mse.

    MSE = (1/N) sum_i (mean_i - f_i)^2, where the paper has the true function in f. With responses
    in f it is the squared error of prediction. Inf when the squares are beyond float64.

    Parameters
    ----------
    dist : Predictive
        Distributions of n rows.
    f : (n,) array-like
        True function values, or responses.

    Returns
    -------
    float

    Examples
    --------
    >>> dist = Predictive.from_arrays([[0.0], [0.0]], [[1.0], [1.0]])
    >>> mse(dist, [0.0, 2.0])
    2.0
    """
    truth = _one_per_row(dist, "f", f)
    errors = dist.mean() - truth
    with np.errstate(over="ignore", under="ignore"):
        return float((errors**2).mean())


def rmse(dist: Predictive, f: ArrayLike) -> float:
    """Root of the mean squared error, sqrt((1/N) sum_i (mean_i - f_i)^2).

    Right even where `mse` is beyond float64.

    Parameters
    ----------
    dist : Predictive
        Distributions of n rows.
    f : (n,) array-like
        True function values, or responses.

    Returns
    -------
    float

    Examples
    --------
    >>> dist = Predictive.from_arrays([[0.0], [0.0]], [[1.0], [1.0]])
    >>> round(rmse(dist, [0.0, 2.0]), 4)
    1.4142
    """
    truth = _one_per_row(dist, "f", f)
    errors = np.abs(dist.mean() - truth)
    largest = errors.max()
    if largest == 0:
        return 0.0
    with np.errstate(under="ignore"):
        return float(largest * np.sqrt(((errors / largest) ** 2).mean()))


def crps(dist: Predictive, y: ArrayLike) -> float:
    """Average continuous ranked probability score, in the units of y; small is good.

    CRPS = E|Y - y| - E|Y - Y'| / 2 = integral of (cdf(t) - 1{y <= t})^2 dt, which for a
    distribution without spread is the absolute error. `Predictive.crps` gives the rows and says
    how accurate it is.

    Parameters
    ----------
    dist : Predictive
        Distributions of n rows.
    y : (n,) array-like
        What was observed.

    Returns
    -------
    float

    Examples
    --------
    >>> dist = Predictive.from_arrays([[0.0], [0.0]], [[1.0], [1.0]])
    >>> round(crps(dist, [0.0, 2.0]), 4)
    0.8432
    """
    observed = _one_per_row(dist, "y", y)
    return float(dist.crps(observed).mean())


def pit(dist: Predictive, y: ArrayLike) -> Array:
    """Probability integral transform, cdf_i(y_i): uniform on [0, 1] if the model is right.

    Parameters
    ----------
    dist : Predictive
        Distributions of n rows.
    y : (n,) array-like
        What was observed.

    Returns
    -------
    (n,) array

    Examples
    --------
    >>> dist = Predictive.from_arrays([[0.0], [0.0]], [[1.0], [1.0]])
    >>> pit(dist, [0.0, 2.0]).round(4)
    array([0.5   , 0.9772])
    """
    observed = _one_per_row(dist, "y", y)
    return dist.cdf(observed)


def coverage(dist: Predictive, y: ArrayLike, coverage: float = 0.9) -> float:
    """Fraction of rows whose equal-tailed interval holds y; near `coverage` if the model is right.

    Found from the cdf at y, which is cheaper than the ends of the interval.

    Parameters
    ----------
    dist : Predictive
        Distributions of n rows.
    y : (n,) array-like
        What was observed.
    coverage : float
        Probability of the intervals, in (0, 1).

    Returns
    -------
    float

    Examples
    --------
    >>> dist = Predictive.from_arrays([[0.0], [0.0]], [[1.0], [1.0]])
    >>> coverage(dist, [0.0, 2.0], coverage=0.9)
    0.5
    """
    low, high = interval_probabilities(coverage)
    probability = pit(dist, y)
    return float(((probability >= low) & (probability <= high)).mean())


def interval_score(dist: Predictive, y: ArrayLike, coverage: float = 0.9) -> float:
    """Average interval score: width, plus a penalty for each y outside; small is good.

    With a = 1 - coverage and the equal-tailed interval (l, u): u - l + (2/a) max(l - y, 0)
    + (2/a) max(y - u, 0) (Gneiting and Raftery 2007, equation 43).

    Parameters
    ----------
    dist : Predictive
        Distributions of n rows.
    y : (n,) array-like
        What was observed.
    coverage : float
        Probability of the intervals, in (0, 1).

    Returns
    -------
    float

    Examples
    --------
    >>> dist = Predictive.from_arrays([[0.0], [0.0]], [[1.0], [1.0]])
    >>> round(interval_score(dist, [0.0, 2.0], coverage=0.9), 4)
    6.8412
    """
    observed = _one_per_row(dist, "y", y)
    lower, upper = dist.interval(coverage).T
    outside = np.maximum(lower - observed, 0) + np.maximum(observed - upper, 0)
    return float((upper - lower + 2 / (1 - coverage) * outside).mean())


def rounded_nlpd(dist: Predictive, y: ArrayLike, step: float) -> float:
    """Average negative log probability of values that were rounded to multiples of a step.

    -(1/N) sum_i log( cdf_i(y_i + step/2) - cdf_i(y_i - step/2) ). Unlike a density it cannot be
    made as small as one likes by finding ties: it is never below 0.

    Parameters
    ----------
    dist : Predictive
        Distributions of n rows, before rounding.
    y : (n,) array-like
        What was observed.
    step : float
        Above 0.

    Returns
    -------
    float

    Examples
    --------
    >>> dist = Predictive.from_arrays([[0.0], [0.0]], [[1.0], [1.0]])
    >>> round(rounded_nlpd(dist, [0.0, 1.0], step=0.5), 4)
    1.8673
    """
    observed = _one_per_row(dist, "y", y)
    _check.number("step", step, above=0.0, advice="give the distance between rounded values")
    ends = np.column_stack([observed - 0.5 * step, observed + 0.5 * step])
    below, above = dist.cdf(ends), dist.sf(ends)
    # From the tail in which the value is, where small differences have all their digits.
    lower = below[:, 1] < above[:, 0]
    inside = np.where(lower, below[:, 1] - below[:, 0], above[:, 0] - above[:, 1])
    with np.errstate(divide="ignore"):
        # Beyond the smallest number there is, the density is the same from end to end.
        found = np.where(inside > 0.0, np.log(inside), dist.logpdf(observed) + np.log(step))
    return float(-found.mean())


def _one_per_row(dist: Predictive, name: str, values: ArrayLike) -> Array:
    """One finite number for each row of dist."""
    if not isinstance(dist, Predictive):
        raise TypeError(
            f"dist must be a Predictive, got {type(dist).__name__}; "
            "use model.predict_dist(X) or Predictive.from_arrays(means, sds)"
        )
    if len(dist) == 0:
        raise ValueError("dist has no rows, so there is nothing to average")
    array = real_array(name, values)
    if array.shape != (len(dist),):
        raise ValueError(
            f"{name} has shape {array.shape}, but dist has {len(dist)} rows: it must have shape "
            f"({len(dist)},)"
        )
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(
            f"{name} must be finite, but is {array[row]} in row {row}; drop such rows from "
            f"{name} and from dist, for example dist[keep] and {name}[keep]"
        )
    return array


class NLPDScorer:
    """Minus the NLPD of an estimator's predictions: a scorer for scikit-learn, large is good.

    `nlpd_scorer` is one. With scikit-learn's metadata routing
    ``nlpd_scorer.set_score_request(noise_std=True)`` judges rows with the known noise of each.

    Parameters
    ----------
    requests : mapping of str to bool or str, optional
        What it wants of the metadata, as `set_score_request` takes it.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> import gplc
    >>> data = gplc.datasets.make_paper("U1", n=20, random_state=0)
    >>> model = gplc.StandardGP(chains=1, draws=20, warmup=20, random_state=0)
    >>> cross_val_score(model, data.X, data.y, cv=2, scoring=nlpd_scorer).shape
    (2,)
    """

    def __init__(self, requests: Mapping[str, bool | str | None] | None = None) -> None:
        self._requests = dict(requests or {"noise_std": None})

    def set_score_request(self, *, noise_std: bool | str | None) -> "NLPDScorer":
        """A scorer that wants `noise_std` routed to it, or (False) does not."""
        return NLPDScorer({"noise_std": noise_std})

    def get_metadata_routing(self) -> Any:
        """What it wants, for scikit-learn."""
        wanted = MetadataRequest(owner=self)
        for name, request in self._requests.items():
            wanted.score.add_request(param=name, alias=request)
        return wanted

    def __call__(
        self, estimator: Any, X: ArrayLike, y: ArrayLike, noise_std: ArrayLike | None = None
    ) -> float:
        """The score of a fitted estimator with ``predict_dist``, or a pipeline that ends in one.

        Parameters
        ----------
        estimator : fitted estimator
        X : (n, p) array-like
        y : (n,) array-like
        noise_std : float or (n,) array-like, optional
            Known noise of the rows.
        """
        if isinstance(estimator, Pipeline):
            # A pipeline passes on scikit-learn's own methods only.
            X = estimator[:-1].transform(X) if len(estimator.steps) > 1 else X
            estimator = estimator[-1]
        more = {} if noise_std is None else {"noise_std": noise_std}
        return -nlpd(estimator.predict_dist(X, **more), y)


nlpd_scorer = NLPDScorer()
