"""What a new response would be: fans of intervals, ridges of densities."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from gplc._check import interval_probabilities
from gplc._fitted import (
    as_fitted,
    feature_index,
    grid_of,
    has_data,
    known_noise,
    near_slice,
    slice_inputs,
    training_data,
)
from gplc._types import Array
from gplc.plots import style
from gplc.plots.style import Fitted


def fan(
    model: Fitted,
    feature: int | str | None = None,
    at: ArrayLike | None = None,
    *,
    coverages: Sequence[float] = (0.5, 0.9),
    data: bool = True,
    points: int = 200,
    ax: Axes | None = None,
) -> Axes:
    """Draw what a new y would be: median and central intervals along an input.

    Parameters
    ----------
    model : fitted estimator
    feature : int or str, optional
        Input to look along; needed if there are several.
    at : (p,) array-like, optional
        Values of the inputs that stay; medians by default.
    coverages : sequence of float
        Probabilities of the intervals.
    data : bool
        Whether to draw the training data, with bars of one SD where their noise is known. With
        several inputs it is the quarter of the rows that is nearest to the slice. Pale parts of
        the picture have no data near.
    points : int
        Points of the grid.
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import gplc
    >>> data = gplc.datasets.make_paper("U1", n=12, random_state=0)
    >>> model = gplc.StandardGP(draws=15, warmup=10, random_state=0).fit(data.X, data.y)
    >>> fan(model, coverages=[0.5, 0.8, 0.95]).get_xlabel()
    'x'
    """
    model = as_fitted(model)
    ax = style.axes_or_new(ax)
    k = feature_index(model, feature)
    grid, names = grid_of(model, k, points), style.levels_of(model, k)
    widest_first = sorted(coverages, reverse=True)
    ends = [interval_probabilities(coverage) for coverage in widest_first]
    levels = [0.5, *(float(level) for pair in ends for level in pair)]
    quantiles = model.predict_dist(slice_inputs(model, k, grid, at)).quantile(levels)
    shades = _shades(len(widest_first))
    for number, (coverage, shade) in enumerate(zip(widest_first, shades, strict=True)):
        lower, upper = quantiles[:, 1 + 2 * number], quantiles[:, 2 + 2 * number]
        told = f"{coverage:.0%} of new y"
        style.band(ax, grid, lower, upper, names, color=shade, label=told)
    style.middle(ax, grid, quantiles[:, 0], names, color=style.LINE, lw=2, label="median")
    if data:
        X, y = training_data(model)
        near = near_slice(model, k, at)
        told = "data" if near.size == y.size else "nearest rows"
        if (known := known_noise(model)) is not None:
            sds = known[near]
            ax.errorbar(X[near, k], y[near], sds, fmt="none", ecolor=style.GREY, elinewidth=0.7)
        ax.plot(X[near, k], y[near], label=f"{told} ({near.size:,})", **style.marks(near.size))
    style.veil(ax, grid, has_data(model, slice_inputs(model, k, grid, at)), names)
    ax.set_ylabel(style.target_label(model))
    style.label_input(ax, model, k)
    style.note_slice(ax, model, at)
    ax.legend(frameon=False, fontsize="small")
    return ax


def _inside(grid: Array) -> Array:
    """The values of a grid without its ends; of levels, which are fewer, all."""
    return grid[1:-1] if len(grid) == 8 else grid


def _place(value: float, levels: list[str] | None) -> str:
    """A value of an input: a number, or the level that has it."""
    if levels is None:
        return f"{value:.3g}"
    k = round(value)
    return levels[k] if 0 <= k < len(levels) else "another level"


def _shades(count: int) -> list[Any]:
    """From the lightest to the darkest blue of a fan."""
    if count <= 2:
        return [style.OUTER, style.INNER][-count:] if count else []
    return [plt.get_cmap("Blues")(level) for level in np.linspace(0.2, 0.6, count)]


def ridge(
    model: Fitted,
    feature: int | str | None = None,
    at: ArrayLike | None = None,
    *,
    values: Sequence[float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the density of a new y at some values of an input, one above the other.

    Parameters
    ----------
    model : fitted estimator
    feature, at
        As in `fan`.
    values : sequence of float, optional
        Where to look; by default six places between the ends of the data.
    ax : Axes, optional

    Returns
    -------
    Axes
        Each density is as high as the others, so that shapes can be compared; dots mark medians.

    Examples
    --------
    >>> import gplc
    >>> data = gplc.datasets.make_paper("U1", n=12, random_state=0)
    >>> model = gplc.StandardGP(draws=15, warmup=10, random_state=0).fit(data.X, data.y)
    >>> [label.get_text() for label in ridge(model, values=[0.2, 0.5]).get_yticklabels()]
    ['0.2', '0.5']
    """
    model = as_fitted(model)
    ax = style.axes_or_new(ax, (5.6, 4.2))
    k = feature_index(model, feature)
    places = np.asarray(
        _inside(grid_of(model, k, 8)) if values is None else sorted(values), dtype=np.float64
    )
    dist = model.predict_dist(slice_inputs(model, k, places, at))
    ends = dist.quantile([0.001, 0.5, 0.999])
    grid = np.linspace(ends[:, 0].min(), ends[:, 2].max(), 400)
    densities = dist.smooth_pdf(np.tile(grid, (len(places), 1)))
    for level in range(len(places) - 1, -1, -1):  # from the back to the front
        # A density may be so narrow that the grid steps over it.
        height = 1.4 * densities[level] / max(densities[level].max(), np.finfo(float).tiny)
        shown = height > 1.4e-3
        order = 2 * (len(places) - level)
        ax.fill_between(
            grid, level, level + height, where=shown, color=style.OUTER, alpha=0.9, zorder=order
        )
        ax.plot(
            grid,
            np.where(shown, level + height, np.nan),
            color=style.LINE,
            lw=1.4,
            zorder=order + 1,
        )
    ax.plot(
        ends[:, 1], range(len(places)), "o", color=style.LINE, ms=4, zorder=2 * len(places) + 2
    )
    names = style.levels_of(model, k)
    ax.set_yticks(range(len(places)), [_place(value, names) for value in places])
    ax.set_ylabel(style.feature_label(model, k))
    ax.set_xlabel(f"{style.target_label(model)} (dots: medians)")
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    style.note_slice(ax, model, at)
    return ax
