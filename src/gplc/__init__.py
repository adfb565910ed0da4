"""Gaussian-process regression when the noise depends on the inputs and need not be Gaussian."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gplc._version import __version__

if TYPE_CHECKING:
    from gplc import checks, datasets, kernels, means, metrics, plots, report
    from gplc.comparison import compare
    from gplc.estimators import (
        LatentCovariateGP,
        LatentVarianceGP,
        StandardGP,
        load,
        open_rows,
        stack,
    )
    from gplc.kernels import SquaredExponential
    from gplc.predictive import Predictive
    from gplc.processes import Hilbert, Inducing

# Where each public name lives. They are imported when first used: scikit-learn alone takes longer
# to import than the engine takes for a small chain.
_HOMES = {
    "Hilbert": "gplc.processes",
    "Inducing": "gplc.processes",
    "LatentCovariateGP": "gplc.estimators",
    "LatentVarianceGP": "gplc.estimators",
    "Predictive": "gplc.predictive",
    "SquaredExponential": "gplc.kernels",
    "StandardGP": "gplc.estimators",
    "compare": "gplc.comparison",
    "load": "gplc.estimators",
    "open_rows": "gplc.estimators",
    "stack": "gplc.estimators",
}
_ROOMS = ("checks", "datasets", "kernels", "means", "metrics", "plots", "report")

__all__ = [
    "Hilbert",
    "Inducing",
    "LatentCovariateGP",
    "LatentVarianceGP",
    "Predictive",
    "SquaredExponential",
    "StandardGP",
    "__version__",
    "checks",
    "compare",
    "datasets",
    "kernels",
    "load",
    "means",
    "metrics",
    "open_rows",
    "plots",
    "report",
    "stack",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _ROOMS:
        try:
            return import_module(f"gplc.{name}")
        except ModuleNotFoundError as error:
            if error.name and error.name.startswith("gplc"):
                raise
            raise ModuleNotFoundError(
                f"gplc.{name} needs {str(error.name).partition('.')[0]}, which is not installed; "
                f"pip install 'gplc[{name}]'",
                name=error.name,
            ) from error
    raise AttributeError(f"module 'gplc' has no attribute {name!r}; it has {__all__}")


def __dir__() -> list[str]:
    return sorted(__all__)
