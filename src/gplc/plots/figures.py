"""Whole figures, put together from single pictures."""

import math
from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gplc._fitted import as_fitted
from gplc.plots.noise import residual_sd
from gplc.plots.response import fan
from gplc.plots.style import Fitted, new_figure


def overview(model: Fitted) -> Figure:
    """Fan above residual SD, with a column for each input (the first four, if there are more)."""
    model = as_fitted(model)
    columns = min(model.n_features_in_, 4)
    width = 7.2 if columns == 1 else 3.6 * columns
    figure, axes = new_figure(
        2,
        columns,
        figsize=(width, 6.2),
        squeeze=False,
        sharex="col",
        sharey="row",
        height_ratios=(2.2, 1),
        layout="constrained",
    )
    for k in range(columns):
        fan(model, k, ax=axes[0, k]).set_xlabel("")
        residual_sd(model, k, ax=axes[1, k]).set_title("", loc="right")
        if k:
            for ax in axes[:, k]:
                ax.set_ylabel("")
                ax.get_legend().remove()
    return figure


def alone(draw: Callable[..., Axes]) -> Callable[[Fitted], Figure]:
    """A figure with one picture."""

    def figure_of(model: Fitted) -> Figure:
        figure = draw(model).get_figure(root=True)
        assert figure is not None
        return figure

    return figure_of


def each_input(draw: Callable[..., Axes]) -> Callable[[Fitted], Figure]:
    """A figure with one picture for every input (the first six, if there are more)."""

    def figure_of(model: Fitted) -> Figure:
        model = as_fitted(model)
        count = min(model.n_features_in_, 6)
        columns = min(count, 3)
        rows = math.ceil(count / columns)
        width = 6.4 if columns == 1 else 3.7 * columns
        figure, axes = new_figure(
            rows,
            columns,
            figsize=(width, 3.8 * rows),
            squeeze=False,
            layout="constrained",
        )
        for k, ax in enumerate(axes.flat):
            if k < count:
                draw(model, feature=k, ax=ax)
            else:
                ax.set_visible(False)
        return figure

    return figure_of
