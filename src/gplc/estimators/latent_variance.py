"""Gaussian noise whose SD is a second process (GPLV)."""

from dataclasses import dataclass, field
from types import MappingProxyType

from gplc.estimators.base import BaseGP
from gplc.kernels import Kernel
from gplc.models import LatentVariance


@dataclass(eq=False, repr=False)
class LatentVarianceGP(BaseGP):
    """Gaussian process regression whose noise SD is given by a second process (GPLV).

    y = f(x) + e,  e ~ N(0, SD(x)^2),  SD(x) = exp(z(x)) or abs(z(x)),  f and z ~ GPs

    Parameters
    ----------
    kernel, priors, mean, chains, draws, warmup, max_draws, max_seconds, sampler, standardize
        As in `StandardGP`; `kernel` serves both processes unless there is a `kernel_z`.
    nodes : int
        Values of z for a new case per draw.
    node_rule, predictive_draws, n_jobs, random_state, progress, checkpoint
        As in `StandardGP`.
    learned_noise, resolution, target_transform, approximation
        As in `StandardGP`.
    link : {"log", "abs", "learned"}
        Whether the second process is the log SD, or the SD its absolute value, or a positive and
        rising function of it that is learned (see `gplc.models.LatentVariance`).
    kernel_z : Kernel, optional
        Covariance function of the second process.
    mean_z : float
        Centre of the second process; with ``link="log"``, of the log SD of the noise in units of
        the SD of y.
    scale : str, optional
        The old name of `link`, which warns.

    Attributes
    ----------
    draws_, diagnostics_, chains_, n_features_in_, feature_names_in_, target_name_
        As in `StandardGP`; ``draws_["z"]`` are the latent values.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = LatentVarianceGP(chains=1, draws=50, warmup=50, random_state=0).fit(X, y)
    >>> model.residual_sd([[0.25], [0.75]]).mean.shape
    (2,)
    """

    model_class = LatentVariance
    old_names = MappingProxyType({"scale": "link"})

    link: str = field(default="log", kw_only=True)
    kernel_z: Kernel | None = field(default=None, kw_only=True)
    mean_z: float = field(default=0.0, kw_only=True)
    scale: str | None = field(default=None, kw_only=True)
