"""Have residuals the shape of Gaussian noise? A test that chance alone calibrates."""

from functools import cache

import numpy as np
from scipy.stats import kurtosistest, skewtest

from gplc._types import Array

# Simulated sets, and the most rows of each: with more the statistic is distributed as with these.
SIMULATIONS, MOST_SIMULATED = 1999, 1000
# With fewer rows the shape of residuals says nothing.
LEAST_ROWS = 20


def unlike_gaussian(scores: Array) -> float:
    """How often Gaussian noise would be as skewed or as peaked as these residuals.

    The statistic is z_3^2 + z_4^2, with z_3 and z_4 the skewness and kurtosis as standard normal
    numbers (D'Agostino and Pearson 1973). What chance does is simulated: by the limiting
    distribution, 3.4% of sets of 100 rows would be found at the level of 2.3%.

    Parameters
    ----------
    scores : (n,) array
        Normal scores of residuals of rows left out.

    Returns
    -------
    float
        A p-value, at least 1 / 2000; 1 with less than 20 rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> unlike_gaussian(rng.standard_normal(100)) > 0.1
    True
    >>> unlike_gaussian(rng.exponential(size=100))
    0.0005
    """
    if scores.size < LEAST_ROWS or not np.ptp(scores) > 0.0:
        return 1.0
    by_chance = _by_chance(min(scores.size, MOST_SIMULATED))
    beaten = np.count_nonzero(by_chance >= _statistic(scores[None])[0])
    return (1.0 + float(beaten)) / (1.0 + SIMULATIONS)


def _statistic(scores: Array) -> Array:
    """Of each row of scores."""
    skewness, kurtosis = skewtest(scores, axis=1).statistic, kurtosistest(scores, axis=1).statistic
    return np.asarray(skewness**2 + kurtosis**2)


@cache
def _by_chance(n: int) -> Array:
    """The statistic in sets of n standard normal numbers, always the same ones."""
    return _statistic(np.random.default_rng(0).standard_normal((SIMULATIONS, n)))
