"""Gaussian-process regression when the noise depends on the inputs and need not be Gaussian."""

from gplc import datasets, metrics
from gplc._version import __version__
from gplc.estimators import LatentCovariateGP, LatentVarianceGP, StandardGP, load
from gplc.kernels import SquaredExponential
from gplc.predictive import Predictive

__all__ = [
    "LatentCovariateGP",
    "LatentVarianceGP",
    "Predictive",
    "SquaredExponential",
    "StandardGP",
    "__version__",
    "datasets",
    "load",
    "metrics",
]
