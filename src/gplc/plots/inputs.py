"""What each input does: the mean along it, and how much it matters."""

import numpy as np
from matplotlib.axes import Axes

from gplc._check import interval_probabilities
from gplc._fitted import as_fitted, as_table, feature_index, feature_names, grid_of, training_data
from gplc.plots import style
from gplc.plots.style import Fitted

ICE_ROWS = 40


def partial_dependence(
    model: Fitted,
    feature: int | str | None = None,
    *,
    points: int = 40,
    ax: Axes | None = None,
) -> Axes:
    """Draw how the mean of y changes with one input, averaged over the others.

    The thick line is (1/n) sum_i E f(x_k, x_i without x_k) over training rows i, the thin ones are
    terms of this sum. Where thin lines are not parallel, the input interacts with others.

    Parameters
    ----------
    model : fitted estimator
    feature : int or str, optional
        Input to look along; needed if there are several.
    points : int
        Points of the grid.
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import gplc
    >>> data = gplc.datasets.make_paper("M1", n=12, random_state=0)
    >>> model = gplc.StandardGP(draws=15, warmup=10, random_state=0).fit(data.X, data.y)
    >>> partial_dependence(model, 0).get_ylabel()
    'mean of y'
    """
    model = as_fitted(model)
    ax = style.axes_or_new(ax)
    k = feature_index(model, feature)
    X, _ = training_data(model)
    grid = grid_of(model, k, points)
    points = len(grid)  # of levels there are as many as there are
    picked = X[np.unique(np.linspace(0, len(X) - 1, ICE_ROWS).astype(int))]
    rows = np.repeat(picked, points, axis=0)
    rows[:, k] = np.tile(grid, len(picked))
    means = model.regression_function(as_table(model, rows)).mean().reshape(len(picked), points)
    for number, line in enumerate(means):
        label = f"{len(picked)} training rows" if number == 0 else None
        ax.plot(grid, line, color=style.INNER, lw=0.6, alpha=0.7, label=label)
    ax.plot(grid, means.mean(axis=0), color=style.LINE, lw=2.2, label="average")
    style.rug(ax, X[:, k])
    style.label_input(ax, model, k)
    ax.set_ylabel(f"mean of {style.target_label(model)}")
    ax.legend(frameon=False, fontsize="small")
    return ax


def relevance(model: Fitted, *, coverage: float = 0.9, ax: Axes | None = None) -> Axes:
    """Draw how much each input matters: posterior of 1 / length scale, in SDs of the input.

    Near 0 the function does not change over the range of the data; at 1 it changes within one SD.

    Parameters
    ----------
    model : fitted estimator
        With a kernel that has a length scale for each input (ARD).
    coverage : float
        Posterior probability of the bars.
    ax : Axes, optional

    Returns
    -------
    Axes
        Inputs from top to bottom. For a latent variance, hollow marks tell what matters for
        the noise.

    Examples
    --------
    >>> import gplc
    >>> data = gplc.datasets.make_paper("M1", n=12, random_state=0)
    >>> model = gplc.StandardGP(draws=15, warmup=10, random_state=0).fit(data.X, data.y)
    >>> [label.get_text() for label in relevance(model).get_yticklabels()]
    ['x1', 'x2', 'x3']
    """
    model = as_fitted(model)
    names = feature_names(model)
    draws = model.draws_.standardized()
    scales = {
        name: draws[name]
        for name in draws
        if name.startswith("length_scale")
        and (draws[name].ndim == 3 or len(names) == 1)
        and np.size(draws[name][0, 0]) == len(names)
    }
    if not scales:
        raise ValueError(
            "relevance needs a length scale for each input, and this kernel has none; "
            "fit with kernel=SquaredExponential(ard=True)"
        )
    ax = style.axes_or_new(ax, (5.6, 1.2 + 0.42 * len(names)))
    low, high = interval_probabilities(coverage)
    height = np.arange(len(names))[::-1].astype(float)
    meanings = {"length_scale_y": "mean", "length_scale_z": "noise"}
    for number, (name, values) in enumerate(scales.items()):
        inverse = 1.0 / values.reshape(-1, len(names))
        lower, middle, upper = np.quantile(inverse, [low, 0.5, high], axis=0)
        ax.errorbar(
            middle,
            height - 0.18 * (number - (len(scales) - 1) / 2) * 2,
            xerr=[middle - lower, upper - middle],
            fmt="os"[number % 2],
            color=(style.LINE, style.SD_LINE)[number % 2],
            mfc=(style.LINE, "white")[number % 2],
            ms=6,
            lw=1.6,
            capsize=3,
            label=meanings.get(name, name),
        )
    ax.set_yticks(height, [style.as_it_stands(name) for name in names])
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.set_xlim(left=0)
    ax.set_xlabel(f"1 / length scale, per SD of the input ({coverage:.0%} bars)")
    if len(scales) > 1:
        ax.legend(frameon=False, fontsize="small")
    return ax
