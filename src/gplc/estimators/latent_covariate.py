"""Noise of any shape, through a latent covariate (GPLC)."""

from dataclasses import dataclass, field

from gplc.estimators.base import BaseGP
from gplc.models import LatentCovariate


@dataclass(eq=False, repr=False)
class LatentCovariateGP(BaseGP):
    """Gaussian process regression with a latent covariate (GPLC).

    y = g(x, w) + e,  g ~ GP(0, K),  w ~ N(0, 1),  e ~ N(0, sigma^2)

    The unobserved input w makes the residuals y - E(y | x) change with x in variance and in
    shape: they can be skewed, or have several modes.

    Parameters
    ----------
    kernel : Kernel, optional
        Covariance function of x and w; by default `SquaredExponential`, of both.
    priors, mean, chains, draws, warmup, max_draws, max_seconds, sampler, standardize
        As in `StandardGP`.
    nodes : int
        Values of w for a new case per draw.
    node_rule, predictive_draws, n_jobs, random_state, progress, checkpoint
        As in `StandardGP`.
    learned_noise, resolution, target_transform, approximation
        As in `StandardGP`.
    n_latent : int
        Number of latent covariates; 2 for residuals that one cannot describe.
    noise_sd : float, optional
        sigma, fixed, in units of the SD of y; learned by default.

    Attributes
    ----------
    draws_, diagnostics_, chains_, n_features_in_, feature_names_in_, target_name_
        As in `StandardGP`; ``draws_["w"]`` are the latent covariates.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = LatentCovariateGP(chains=1, draws=50, warmup=50, random_state=0).fit(X, y)
    >>> model.predict_interval([[0.25], [0.75]]).shape
    (2, 2)
    """

    model_class = LatentCovariate

    n_latent: int = field(default=1, kw_only=True)
    noise_sd: float | None = field(default=None, kw_only=True)
