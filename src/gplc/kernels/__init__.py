"""Covariance functions: building blocks, and sums and products of them.

A kernel is a function of observed inputs x and, in GPLC, latent covariates w.

>>> from gplc.kernels import Linear, SquaredExponential
>>> kernel = SquaredExponential() + Linear()
>>> kernel.names(n_observed=1, n_latent=1)
('signal_sd', 'length_scale', 'latent_length_scale', 'slope_sd', 'latent_slope_sd')
"""

from gplc.kernels.base import Hyperparameter, Kernel, LatentMoves, Leaf, Product, Sum, Touches
from gplc.kernels.bound import Bound, Program
from gplc.kernels.leaves import (
    KERNELS,
    Constant,
    Linear,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
    Sign,
    SquaredExponential,
)
from gplc.kernels.records import from_record, to_record

__all__ = [
    "KERNELS",
    "Bound",
    "Constant",
    "Hyperparameter",
    "Kernel",
    "LatentMoves",
    "Leaf",
    "Linear",
    "Matern32",
    "Matern52",
    "Periodic",
    "Product",
    "Program",
    "RationalQuadratic",
    "Sign",
    "SquaredExponential",
    "Sum",
    "Touches",
    "from_record",
    "to_record",
]
