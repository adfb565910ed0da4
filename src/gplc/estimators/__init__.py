"""Estimators on scikit-learn's contract: the only place that validates and scales data."""

from gplc.estimators.base import BaseGP
from gplc.estimators.cases import DataWarning
from gplc.estimators.distant import open_rows
from gplc.estimators.files import ESTIMATORS, load
from gplc.estimators.latent_covariate import LatentCovariateGP
from gplc.estimators.latent_variance import LatentVarianceGP
from gplc.estimators.results import Band, Interrupted
from gplc.estimators.scaling import Scaling
from gplc.estimators.stacking import Stack, stack
from gplc.estimators.standard import StandardGP

__all__ = [
    "ESTIMATORS",
    "Band",
    "BaseGP",
    "DataWarning",
    "Interrupted",
    "LatentCovariateGP",
    "LatentVarianceGP",
    "Scaling",
    "Stack",
    "StandardGP",
    "load",
    "open_rows",
    "stack",
]
