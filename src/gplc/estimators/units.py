"""Hyperparameters in the units of the user's columns."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gplc._fitted import HasData, feature_names, target_name, with_names
from gplc._units import Units
from gplc.diagnostics import Row
from gplc.kernels.base import Kernel, Product
from gplc.priors import kind

if TYPE_CHECKING:
    from gplc.estimators.base import BaseGP

# Powers of the units of y and of an input, by kind; what is not here has no units.
POWERS: Mapping[str, tuple[int, int]] = {
    "signal_sd": (1, 0),
    "noise_sd": (1, 0),
    "constant_sd": (1, 0),
    "slope_sd": (1, -1),
    "step_sd": (1, 0),
    "level_sd": (1, 0),
    "latent_slope_sd": (1, 0),
    "latent_step_sd": (1, 0),
    "length_scale": (0, 1),
    "period": (0, 1),
}


def units_of(estimator: "BaseGP") -> Units:
    """What the hyperparameters of a fitted estimator are in the user's units.

    Some stay as they are, in SDs: what describes z, factors of a product of kernels, one length
    scale for several inputs, and the length scale of a periodic kernel, which is one of angles.
    """
    model, fitted = estimator.model_, cast(HasData, estimator)
    x_scale, y_scale = estimator.x_scaling_.scale, float(estimator.y_scaling_.scale)
    inputs, target = feature_names(fitted), target_name(fitted)
    joined = any(isinstance(each, Product) for each in _parts(model.kernel))
    factors, units = [], []
    for name in model.names:
        of_y, of_x = POWERS.get(kind(name), (0, 0))
        place = _input_of(name, len(inputs)) if of_x else None
        if joined and of_y and kind(name) != "noise_sd":
            of_y = of_x = 0
        if name.split("[")[0].endswith("_z") or (of_x and place is None):
            of_y = of_x = 0
        if of_x and kind(name) == "length_scale" and _is_angle(name, model.names):
            of_x = 0
        x_factor, x_unit = (1.0, "") if place is None else (float(x_scale[place]), inputs[place])
        with np.errstate(over="ignore", under="ignore"):
            factor = float(np.float64(y_scale) ** of_y * np.float64(x_factor) ** of_x)
        usable = 0.0 < factor < np.inf
        factors.append(factor if usable else 1.0)
        units.append(_unit(target if of_y else "", x_unit, of_x) if usable else "")
    return Units(
        model.names,
        tuple(with_names(fitted, name) for name in model.names),
        tuple(factors),
        tuple(units),
        float(estimator.y_scaling_.location),
        y_scale,
    )


def _parts(kernel: Any) -> list[Kernel]:
    """A kernel and all that it is made of."""
    return [kernel, *(part for each in getattr(kernel, "parts", ()) for part in _parts(each))]


def _input_of(name: str, count: int) -> int | None:
    """Number of the input that a hyperparameter belongs to; None if there are several."""
    if kind(name).startswith("latent"):
        return None
    _, bracket, index = name.partition("[")
    if bracket:
        return int(index.rstrip("]"))
    return 0 if count == 1 else None


def _is_angle(name: str, names: tuple[str, ...]) -> bool:
    """Whether some leaf with this label has a period."""
    label = name.rpartition(".")[0]
    return any(kind(each) == "period" and each.rpartition(".")[0] == label for each in names)


def _unit(of_y: str, of_x: str, power: int) -> str:
    if power == 0 or not of_x:
        return of_y
    return of_x if power > 0 else f"{of_y} / {of_x}"


def rows_in(units: Units, rows: Mapping[str, Row], *, back: bool = False) -> dict[str, Row]:
    """Rows of diagnostics in the user's units, or back in standard ones.

    Examples
    --------
    >>> units = Units(("noise_sd",), ("noise_sd",), (20.0,), ("accel",), location=5.0, scale=20.0)
    >>> rows = {"f(x) at row 3": Row(1.0, 0.5, 0.01, 1.0, 900.0, 900.0, 1.0, 1.0)}
    >>> found = rows_in(units, rows)
    >>> found["f(x) at row 3"][:3]
    (25.0, 10.0, 0.2)
    >>> rows_in(units, found, back=True)["f(x) at row 3"][:3]
    (1.0, 0.5, 0.01)
    """
    result = {}
    for name, row in rows.items():
        shift, factor = units.affine(name)
        mean = (row.mean - shift) / factor if back else shift + factor * row.mean
        sd, mcse = (each / factor if back else factor * each for each in (row.sd, row.mcse))
        result[name] = row._replace(mean=mean, sd=sd, mcse=mcse)
    return result
