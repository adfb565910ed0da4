"""Have residuals the shape of Gaussian noise? A test that sees skewness best."""

from functools import cache

import numpy as np
from scipy.stats import kurtosistest, skewtest

from gplc._types import Array

# Simulated sets, and the most rows of each: with more the statistic is distributed as with these.
SIMULATIONS, MOST_SIMULATED = 1999, 1000
# With fewer rows the shape of residuals says nothing.
LEAST_ROWS = 20
# What the square of kurtosis counts, beside that of skewness. GPLC has y = g(x, w), and noise is
# Gaussian if w has a long length scale l. As l becomes shorter, skewness comes first and other
# departures later: in the score test for it the squares of the Hermite sums of degree 4 and 3 have
# the ratio 4 lambda_3 / (3 lambda_2) of the kernel's Hermite coefficients. That is 0.24 at l = e.
KURTOSIS_COUNTS = 0.25


def unlike_gaussian(scores: Array) -> float:
    """How often Gaussian noise would be as skewed or as peaked as these residuals.

    The statistic is z_3^2 + z_4^2 / 4, with z_3 and z_4 the skewness and kurtosis as standard
    normal numbers (D'Agostino 1970; Anscombe and Glynn 1983), and simulation tells what chance
    does. With both squares in equal parts, as in the test of D'Agostino and Pearson, skewness is
    seen less often.

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
    return np.asarray(skewness**2 + KURTOSIS_COUNTS * kurtosis**2)


@cache
def _by_chance(n: int) -> Array:
    """The statistic in sets of n standard normal numbers, always the same ones."""
    return _statistic(np.random.default_rng(0).standard_normal((SIMULATIONS, n)))
