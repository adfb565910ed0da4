"""Checks of a fitted model: whether it says what the data say, and what its answers hang on.

Each takes a fitted estimator and gives back something that prints as a table with a verdict.
"""

from gplc.checks.calibrated import Calibration, calibration
from gplc.checks.influential import Influence, influence
from gplc.checks.replicated import STATISTICS, PredictiveCheck, posterior_predictive
from gplc.checks.sensitivity import Sensitivity, sensitivity
from gplc.checks.simulated import Simulation, simulation

__all__ = [
    "STATISTICS",
    "Calibration",
    "Influence",
    "PredictiveCheck",
    "Sensitivity",
    "Simulation",
    "calibration",
    "influence",
    "posterior_predictive",
    "sensitivity",
    "simulation",
]
