"""What pictures share: colours, axes, labels, and what they need of a fitted estimator.

Bands go from light to dark in one hue and everything else differs in shape or line style, so that
pictures survive greyscale printing and colour blindness.
"""

import io
from collections.abc import Mapping
from typing import Any, Protocol

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from gplc._fitted import HasData, feature_names, target_name
from gplc._types import Array
from gplc.diagnostics import Diagnostics
from gplc.draws import Draws
from gplc.loo import LeaveOneOut
from gplc.predictive import Predictive

# Each picture goes from dark to light in one hue: blue for the response, brown for its spread.
LINE, INNER, OUTER = "#08306b", "#6baed6", "#cfe1f2"
SD_LINE, SD_BAND = "#7f2704", "#fdd0a2"
GREY, INK = "#8a8a8a", "#222222"
# Chains: dark to light, and told apart by line style too.
CHAIN_COLOURS = ("#08306b", "#d95f02", "#6baed6", "#1b1b1b")
CHAIN_STYLES = ("-", "--", "-", ":")
MARKS: Mapping[str, Any] = {
    "ls": "none",
    "marker": "o",
    "markersize": 3.6,
    "mfc": "white",
    "mec": "black",
    "mew": 0.7,
}
# Of many points, which would hide what is behind them.
DUST: Mapping[str, Any] = {
    "ls": "none",
    "marker": ".",
    "ms": 2.5,
    "mec": "none",
    "mfc": "#22222255",
}
MOST_MARKS = 1000
LONGEST_LABEL = 40
# Names of levels side by side with more letters than this are written aslant.
LETTERS_ALONG = 36
# Of the bar of a level, whose neighbour is 1 away.
LEVEL_WIDTH = 0.6


class Fitted(HasData, Protocol):
    """What pictures need of a fitted estimator."""

    @property
    def draws_(self) -> Draws:
        """Posterior draws."""

    @property
    def diagnostics_(self) -> Diagnostics:
        """Whether they can be trusted."""

    def predict_dist(self, X: ArrayLike, noise_std: ArrayLike | None = None) -> Predictive:
        """Distribution of y."""

    def regression_function(self, X: ArrayLike) -> Predictive:
        """Posterior of f."""

    def residual_sd(self, X: ArrayLike, coverage: float = 0.9) -> Any:
        """Posterior of the residual SD."""

    def replicate_y(self, draws: int = ...) -> Array:
        """New responses at the training inputs."""

    def loo(self, draws: int = ..., refit: int = ...) -> LeaveOneOut:
        """What it says of each row without that row."""


class ShownOnce(Figure):
    """A figure that a notebook shows once, though it is both open and the value of a cell."""

    def _ipython_display_(self) -> None:
        if plt.fignum_exists(self.number):
            return  # the notebook shows all open figures when the cell ends
        from IPython.display import display_png

        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        display_png(buffer.getvalue(), raw=True)


def new_figure(*shape: int, **settings: Any) -> tuple[Figure, Any]:
    """A figure that is given back whole, and its axes."""
    return plt.subplots(*shape, FigureClass=ShownOnce, **settings)


def marks(count: int) -> Mapping[str, Any]:
    """How so many points are drawn."""
    return MARKS if count <= MOST_MARKS else DUST


def feature_label(model: Fitted, k: int) -> str:
    """Name of input k, for an axis."""
    columns = getattr(model, "columns_", None)
    return as_it_stands(feature_names(model)[k] if columns is None else columns.label(k))


def levels_of(model: Fitted, k: int) -> list[str] | None:
    """Names of the levels that input k holds, for an axis; None if it holds numbers."""
    columns = getattr(model, "columns_", None)
    if columns is None or not columns.each[k].has_levels:
        return None
    return [as_it_stands(level) for level in columns.each[k].levels]


def label_input(ax: Axes, model: Fitted, k: int) -> None:
    """Put input k on the axis along the bottom: its name, and its levels by name."""
    ax.set_xlabel(feature_label(model, k))
    if levels := levels_of(model, k):
        crowded = sum(map(len, levels)) > LETTERS_ALONG
        ax.set_xticks(
            range(len(levels)),
            levels,
            rotation=40 if crowded else 0,
            ha="right" if crowded else "center",
            rotation_mode="anchor",
        )
        ax.set_xlim(-0.5, len(levels) - 0.5)


def band(
    ax: Axes, grid: Array, lower: Array, upper: Array, levels: list[str] | None, **settings: Any
) -> None:
    """A band along an input; of levels, between which there is nothing, a bar for each."""
    if levels is None:
        ax.fill_between(grid, lower, upper, lw=0, **settings)
    else:
        for bar in ax.bar(grid, upper - lower, LEVEL_WIDTH, lower, **settings):
            bar.sticky_edges.y.clear()  # a little room below the lowest, as above the highest


def middle(
    ax: Axes, grid: Array, values: Array, levels: list[str] | None, **settings: Any
) -> None:
    """A line along an input; of levels a piece for each."""
    if levels is None:
        ax.plot(grid, values, **settings)
    else:
        half = 0.5 * LEVEL_WIDTH
        ax.hlines(values, grid - half, grid + half, **settings)


def target_label(model: Fitted) -> str:
    """Name of the response, for an axis."""
    return as_it_stands(target_name(model))


def as_it_stands(name: str) -> str:
    """A name as matplotlib draws it letter by letter: dollars would begin a formula."""
    short = name if len(name) <= LONGEST_LABEL else f"{name[: LONGEST_LABEL - 3]}..."
    return short.replace("$", r"\$")


def axes_or_new(ax: Axes | None, figsize: tuple[float, float] = (5.6, 3.6)) -> Axes:
    """The axes given, or those of a new figure, without a box around them."""
    if ax is None:
        _, ax = new_figure(figsize=figsize, layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def note_slice(ax: Axes, model: Fitted, at: ArrayLike | None) -> None:
    """Say where the other inputs are, if there are any."""
    if model.n_features_in_ > 1:
        where = "medians" if at is None else "given values"
        if at is None and any(levels_of(model, k) for k in range(model.n_features_in_)):
            where = "medians or commonest level"
        ax.set_title(f"other inputs at their {where}", fontsize="small", loc="right", color=GREY)


def veil(
    ax: Axes, grid: Array, covered: NDArray[np.bool_], levels: list[str] | None = None
) -> None:
    """Make the parts of a picture pale that have no data near."""
    beyond = 0.0 if levels is None else 0.5
    middles = 0.5 * (grid[1:] + grid[:-1])
    ends = np.concatenate([[grid[0] - beyond], middles, [grid[-1] + beyond]])
    edges = np.flatnonzero(np.diff(np.concatenate([[True], covered, [True]])))
    for number, (begin, end) in enumerate(edges.reshape(-1, 2)):
        ax.axvspan(
            ends[begin],
            ends[end],
            facecolor="white",
            edgecolor=GREY,
            hatch="//",
            lw=0,
            alpha=0.65,
            zorder=2.5,
            label="no data near" if number == 0 else None,
        )


def rug(ax: Axes, values: Array) -> None:
    """Mark the values of the data on the axis."""
    ax.plot(
        values,
        np.zeros_like(values),
        ls="none",
        marker="|",
        color=INK,
        ms=7,
        mew=0.5,
        alpha=0.5,
        transform=ax.get_xaxis_transform(),
        clip_on=False,
        label=f"data ({values.size})",
    )
