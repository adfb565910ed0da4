"""Covariance functions: building blocks, and sums and products of them.

A kernel is a function of observed inputs x and, in GPLC, latent covariates w.

>>> from gplc.kernels import Linear, SquaredExponential
>>> kernel = SquaredExponential() + Linear()
>>> kernel.names(n_observed=1, n_latent=1)
('signal_sd', 'length_scale', 'latent_length_scale', 'slope_sd', 'latent_slope_sd')
"""

from gplc.kernels import categories, linear, stationary
from gplc.kernels.base import KERNELS, Kernel, Leaf, Product, Sum
from gplc.kernels.bound import Bound
from gplc.kernels.categories import *  # noqa: F403 (a kernel is entered in its own file only)
from gplc.kernels.hyperparameters import Hyperparameter, LatentMoves, Touches
from gplc.kernels.linear import *  # noqa: F403
from gplc.kernels.records import from_record, to_record
from gplc.kernels.stationary import *  # noqa: F403
from gplc.kernels.text import from_text

__all__ = [
    "KERNELS",
    "Bound",
    "Hyperparameter",
    "Kernel",
    "LatentMoves",
    "Leaf",
    "Product",
    "Sum",
    "Touches",
    "from_record",
    "from_text",
    "to_record",
]
__all__ += categories.__all__
__all__ += linear.__all__
__all__ += stationary.__all__
