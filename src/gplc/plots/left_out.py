"""Which rows does a model not expect? Leave-one-out, row by row."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes

from gplc._fitted import as_fitted, feature_index, training_data
from gplc._types import Array
from gplc.loo import LeaveOneOut
from gplc.plots.style import CHAIN_COLOURS, GREY, INK, Fitted, axes_or_new, label_input

# Marks of rows above and below what was expected, and models told apart by size and colour.
ABOVE, BELOW = "^", "v"
# Rows that are as rare as this are numbered, up to so many of each model.
RARE, MOST_NUMBERS = 1.7, 5


def surprise(
    model: Fitted | Mapping[str, Fitted],
    feature: int | str | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw how far out each row is in its distribution given all other rows.

    A row at "1 in 100" lies where the model, without that row, expects one in a hundred, on
    either side: triangles point to the side. Open ones have importance weights that cannot be
    trusted (`LeaveOneOut.bad_rows`). Of n rows, about n / 10 should be above the line at 1 in 10.

    Parameters
    ----------
    model : fitted estimator, or mapping of str to fitted estimators
        Several models are drawn over each other, each under its name.
    feature : int or str, optional
        Input to look along; needed if there are several.
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import gplc
    >>> data = gplc.datasets.make_paper("U1", n=12, random_state=0)
    >>> model = gplc.StandardGP(draws=15, warmup=10, random_state=0).fit(data.X, data.y)
    >>> surprise(model).get_ylabel()
    'as rare as'
    """
    given = (
        {name: as_fitted(each) for name, each in model.items()}
        if isinstance(model, Mapping)
        else {"": as_fitted(model)}
    )
    if not given:
        raise ValueError("model has no fitted estimators; give one, or a mapping with some")
    first = next(iter(given.values()))
    k = feature_index(first, feature)
    ax = axes_or_new(ax)
    highest = 3.2
    for number, (name, each) in enumerate(given.items()):
        loo, x = each.loo(), training_data(each)[0][:, k]
        _triangles(ax, x, loo, name, number)
        highest = max(highest, float(loo.surprise.max()) * 1.08)
    for level in range(1, int(highest) + 1):
        ax.axhline(level, color=GREY, lw=0.6, ls=":", zorder=0)
    levels = np.arange(0, int(highest) + 1, max(1, int(highest) // 5))
    ax.set_yticks(levels, ["any" if level == 0 else f"1 in {10**level:,}" for level in levels])
    ax.set_ylim(-0.05 * highest, highest)
    label_input(ax, first, k)
    ax.set_ylabel("as rare as")
    if len(given) > 1:
        ax.legend(frameon=False, fontsize="small", loc="upper right")
    return ax


def _triangles(ax: Axes, x: Array, loo: LeaveOneOut, name: str, number: int) -> None:
    colour = CHAIN_COLOURS[number % len(CHAIN_COLOURS)]
    surprises, bad = loo.surprise, np.isin(np.arange(x.size), loo.bad_rows)
    label: str | None = name or None
    for upper, marker in ((True, ABOVE), (False, BELOW)):
        for open_mark in (False, True):
            here = ((loo.pit > 0.5) == upper) & (bad == open_mark)
            ax.plot(
                x[here],
                surprises[here],
                ls="none",
                marker=marker,
                ms=5.5 + 1.5 * number,
                mec=colour,
                mew=0.9,
                mfc="none" if open_mark or number else colour,
                alpha=0.85,
                label=label,
            )
            label = None
    far = np.argsort(-surprises, kind="stable")[:MOST_NUMBERS]
    for row in far[surprises[far] > RARE]:
        ax.annotate(
            str(row),
            (x[row], surprises[row]),
            xytext=(5, 3),
            textcoords="offset points",
            fontsize="x-small",
            color=INK,
        )
