"""Gaussian-process regression when the noise depends on the inputs and need not be Gaussian."""

from gplc import datasets, metrics
from gplc.estimators import LatentCovariateGP, LatentVarianceGP, StandardGP
from gplc.kernels import SquaredExponential
from gplc.predictive import Predictive

__all__ = [
    "LatentCovariateGP",
    "LatentVarianceGP",
    "Predictive",
    "SquaredExponential",
    "StandardGP",
    "datasets",
    "metrics",
]

__version__ = "0.1.0.dev0"
