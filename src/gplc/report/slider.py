"""Numbers for the slider of the page: densities of y along every input."""

from typing import Any

import numpy as np

from gplc._fitted import feature_names, grid_of, has_data, slice_inputs

# Inputs that get pictures and a slider of their own; the others are in the tables.
MOST_INPUTS = 6


def places(model: Any) -> int:
    """Positions of the slider: fewer if there are more inputs to choose from."""
    return 41 if model.n_features_in_ == 1 else 21


def densities(model: Any) -> list[dict[str, Any]]:
    """Densities of y along every input, with what the slider says of each."""
    return [
        _densities_along(model, k, name)
        for k, name in enumerate(feature_names(model)[:MOST_INPUTS])
    ]


def _densities_along(model: Any, feature: int, name: str) -> dict[str, Any]:
    values = grid_of(model, feature, places(model))
    columns = getattr(model, "columns_", None)
    levels = () if columns is None else columns.each[feature].levels
    rows = slice_inputs(model, feature, values)
    dist = model.predict_dist(rows)
    near = has_data(model, rows)
    moments = dist.moments()
    ends = dist.quantile([0.0005, 0.05, 0.95, 0.9995])
    # Every place has a grid of its own: noise may be a hundred times narrower at one place.
    grids = np.linspace(ends[:, 0], ends[:, 3], 101, axis=1)
    densities = dist.smooth_pdf(grids)
    z = (grids - moments.mean[:, None]) / moments.std[:, None]
    gaussians = np.exp(-0.5 * z**2) / (np.sqrt(2 * np.pi) * moments.std[:, None])
    shown = [
        {
            "at": levels[k] if levels else _short(values[k]),
            "near": bool(near[k]),
            "mean": _short(moments.mean[k]),
            "sd": _short(moments.std[k]),
            "skewness": _short(moments.skewness[k]),
            "lower": _short(ends[k, 1]),
            "upper": _short(ends[k, 2]),
            "y": [_short(value) for value in grids[k]],
            "density": [_short(value, 3) for value in densities[k]],
            "gaussian": [_short(value, 3) for value in gaussians[k]],
        }
        for k in range(len(values))
    ]
    low, high = _short(ends[:, 0].min()), _short(ends[:, 3].max())
    return {"name": name, "low": low, "high": high, "places": shown}


def _short(value: float, digits: int = 5) -> float:
    return float(f"{value:.{digits}g}")
