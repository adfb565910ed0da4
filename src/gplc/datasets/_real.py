"""Two real data sets whose noise changes with the input, shipped with the package."""

from dataclasses import dataclass, field
from importlib.resources import files

import numpy as np

from gplc._types import Array


@dataclass(frozen=True, eq=False)
class RealData:
    """A real data set with one input.

    Attributes
    ----------
    name : str
        Short name of the data set.
    X : ndarray, shape (n, 1)
        Input.
    y : ndarray, shape (n,)
        Target.
    feature_names : tuple of str
        Names of the columns of `X`.
    target_name : str
        Name of the target.
    description : str
        What was measured, in which units, and where the data come from.

    Examples
    --------
    >>> from gplc.datasets import load_lidar
    >>> load_lidar()
    RealData(name='lidar', feature_names=('range',), target_name='logratio')
    """

    name: str
    X: Array = field(repr=False)
    y: Array = field(repr=False)
    feature_names: tuple[str, ...]
    target_name: str
    description: str = field(repr=False)


def load_motorcycle() -> RealData:
    r"""Load 133 head accelerations in a simulated motorcycle crash.

    The regression is :math:`\mathrm{accel}_i = f(\mathrm{times}_i) + \epsilon_i`. There is next to
    no noise before the impact is felt and much afterwards. Some times of measurement are repeated.

    Returns
    -------
    RealData
        Arrays are fresh copies: changing them does not change the next call's.

    References
    ----------
    Silverman, B. W. (1985). Some aspects of the spline smoothing approach to non-parametric
    regression curve fitting. Journal of the Royal Statistical Society B, 47, 1-52.

    Examples
    --------
    >>> from gplc.datasets import load_motorcycle
    >>> data = load_motorcycle()
    >>> data.X.shape, data.feature_names, data.target_name
    ((133, 1), ('times',), 'accel')
    """
    return _load(
        "motorcycle",
        "Acceleration of the head (accel, in g) against time after impact (times, in ms) "
        "in a simulated motorcycle crash; Silverman (1985).",
    )


def load_lidar() -> RealData:
    r"""Load 221 LIDAR measurements whose noise grows with range.

    The regression is :math:`\mathrm{logratio}_i = f(\mathrm{range}_i) + \epsilon_i`.

    Returns
    -------
    RealData
        Arrays are fresh copies: changing them does not change the next call's.

    References
    ----------
    Sigrist, M. W., ed. (1994). Air Monitoring by Spectroscopic Techniques. Wiley.

    Ruppert, D., Wand, M. P. and Carroll, R. J. (2003). Semiparametric Regression.
    Cambridge University Press.

    Examples
    --------
    >>> from gplc.datasets import load_lidar
    >>> data = load_lidar()
    >>> data.X.shape, data.feature_names, data.target_name
    ((221, 1), ('range',), 'logratio')
    """
    return _load(
        "lidar",
        "Log ratio of the light received from two laser sources (logratio) against the distance "
        "travelled before reflection (range); Sigrist (1994), Ruppert, Wand and Carroll (2003).",
    )


def _load(name: str, description: str) -> RealData:
    """Read ``data/<name>.csv``: a header, then one input and one target per line."""
    resource = files("gplc.datasets").joinpath("data", f"{name}.csv")
    with resource.open("r", encoding="utf-8") as file:
        feature, target = file.readline().strip().split(",")
        table = np.loadtxt(file, delimiter=",", dtype=np.float64)
    # Copies: two contiguous arrays instead of two views of one table.
    return RealData(
        name=name,
        X=table[:, :1].copy(),
        y=table[:, 1].copy(),
        feature_names=(feature,),
        target_name=target,
        description=description,
    )
