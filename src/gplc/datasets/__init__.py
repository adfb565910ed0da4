"""Data to try the models on: the paper's synthetic problems and two real data sets.

=====================  ======================================================================
`make_paper`           U1, U2, M1 or M2 of Wang and Neal (2012), with the truth attached
`load_motorcycle`      133 head accelerations in a simulated motorcycle crash
`load_lidar`           221 LIDAR measurements whose noise grows with range
=====================  ======================================================================
"""

from gplc.datasets._paper import (
    PaperData,
    make_paper,
    multivariate_mean,
    multivariate_sd,
    standard_extreme_value_logpdf,
    univariate_mean,
    univariate_sd,
)
from gplc.datasets._real import RealData, load_lidar, load_motorcycle

__all__ = [
    "PaperData",
    "RealData",
    "load_lidar",
    "load_motorcycle",
    "make_paper",
    "multivariate_mean",
    "multivariate_sd",
    "standard_extreme_value_logpdf",
    "univariate_mean",
    "univariate_sd",
]
