"""Do the sizes of residuals change along the inputs? A test that chance alone calibrates."""

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from gplc._types import Array
from gplc.priors import LogNormal, default_prior

# Permutations, the most rows that are looked at, and the points that stand for their inputs.
PERMUTATIONS, MOST_ROWS, POINTS = 1999, 4000, 100


def spread_along_inputs(X: Array, scores: Array) -> float:
    """How often chance would make sizes of residuals follow the inputs as much as these do.

    With e the sizes |r_i| about their mean and K a covariance of the inputs, e' K e is the score
    test of GPLV against STD: the first sign of a variance that is a Gaussian process (Lin 1997).
    If the noise is the same everywhere, the sizes could as well be in any other order, so that
    permutations tell what chance does. K is the average of squared exponentials at three length
    scales of the default prior, not of a fit, which would follow chance as well.

    Parameters
    ----------
    X : (n, p) array
        Inputs, in standard units.
    scores : (n,) array
        Residuals of rows left out, of SD 1.

    Returns
    -------
    float
        A p-value, at least 1 / 2000.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, noise = rng.standard_normal((100, 1)), rng.standard_normal(100)
    >>> spread_along_inputs(X, noise) > 0.1, spread_along_inputs(X, noise * np.exp(0.5 * X[:, 0]))
    (True, 0.0005)
    """
    rng = np.random.default_rng(0)  # which orders chance tries is no property of the data
    stride = -(-len(X) // MOST_ROWS)
    X, sizes = X[::stride], np.abs(scores[::stride])
    sizes = sizes - sizes.mean()
    features = _features(X, X[:: max(1, len(X) // POINTS)][:POINTS])
    found = float(np.sum((features.T @ sizes) ** 2))
    orders = (features.T @ rng.permutation(sizes) for _ in range(PERMUTATIONS))
    # Equal but for rounding, as all orders are of sizes that are all the same, is as much.
    beaten = sum(float(np.sum(each**2)) >= found * (1.0 - 1e-9) for each in orders)
    return (1.0 + beaten) / (1.0 + PERMUTATIONS)


def _features(X: Array, points: Array) -> Array:
    """Phi with Phi Phi' close to K, from its values at some points: (n, points)."""
    prior = default_prior("length_scale", inputs=X.shape[1])
    assert isinstance(prior, LogNormal)
    scales = np.exp(prior.mean + prior.sd * np.array([-1.0, 0.0, 1.0]))
    middle = _kernel(points, points, scales) + 1e-6 * np.eye(len(points))
    return solve_triangular(cholesky(middle, lower=True), _kernel(points, X, scales), lower=True).T


def _kernel(one: Array, two: Array, scales: Array) -> Array:
    """The average of squared exponentials at these length scales."""
    squares = np.sum((one[:, None, :] - two[None, :, :]) ** 2, axis=2)
    return np.mean([np.exp(-0.5 * squares / scale**2) for scale in scales], axis=0)
