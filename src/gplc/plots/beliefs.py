"""What is believed before the data, and what they change."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from scipy.stats import gaussian_kde

from gplc import _check
from gplc._fitted import as_fitted
from gplc._types import Array
from gplc.plots import style
from gplc.plots.style import Fitted
from gplc.priors import HELD

SHOWN_SETS = 8


def prior_predictive(
    x: ArrayLike,
    made: ArrayLike,
    y: ArrayLike | None = None,
    *,
    shown: int = SHOWN_SETS,
    ax: Axes | None = None,
) -> Axes:
    """Draw data that the priors make, along an input, before any fit.

    Parameters
    ----------
    x : (n,) array-like
        The input.
    made : (draws, n) array-like
        What `prior_predictive` of an estimator gives.
    y : (n,) array-like, optional
        The data, to compare.
    shown : int
        Sets to draw; the band holds 90% of all.
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import gplc
    >>> data = gplc.datasets.make_paper("U1", n=12, random_state=0)
    >>> made = gplc.StandardGP(random_state=0).prior_predictive(data.X, data.y, 20)
    >>> prior_predictive(data.X[:, 0], made, data.y).get_ylabel()
    'y that the priors make'
    """
    column = _check.finite_array("x", x, 1)
    sets = _check.finite_array("made", made, 2)
    _check.integer("shown", shown, at_least=1, advice="8 can still be told apart")
    if sets.shape[1] != column.size:
        raise ValueError(
            f"made must have a column for each of {column.size} values of x, got shape "
            f"{sets.shape}; give what prior_predictive returned for these rows"
        )
    ax = style.axes_or_new(ax)
    order = np.argsort(column, kind="stable")
    low, high = np.quantile(sets, [0.05, 0.95], axis=0)[:, order]
    ax.fill_between(column[order], low, high, color=style.OUTER, lw=0, label="90% of all sets")
    for number, each in enumerate(sets[:shown]):
        ax.plot(
            column[order],
            each[order],
            color=style.CHAIN_COLOURS[number % len(style.CHAIN_COLOURS)],
            ls=style.CHAIN_STYLES[number % len(style.CHAIN_STYLES)],
            lw=0.9,
            alpha=0.8,
        )
    if y is not None:
        ax.plot(
            column, _check.finite_array("y", y, 1), **style.MARKS, label=f"data ({column.size})"
        )
    ax.set_xlabel("x")
    ax.set_ylabel("y that the priors make")
    ax.legend(frameon=False, fontsize="small")
    return ax


def priors(model: Fitted) -> Figure:
    """Prior against posterior of every hyperparameter, in the units of the data.

    Where both are alike the data say nothing.

    Parameters
    ----------
    model : fitted estimator

    Returns
    -------
    Figure

    Examples
    --------
    >>> import gplc
    >>> data = gplc.datasets.make_paper("U1", n=12, random_state=0)
    >>> model = gplc.StandardGP(draws=15, warmup=10, random_state=0).fit(data.X, data.y)
    >>> len(priors(model).axes)
    3
    """
    model = as_fitted(model)
    draws = model.draws_
    units, names = draws.units, draws.names
    labels = names if units is None else units.labels
    factors = np.ones(len(names)) if units is None else np.array(units.factors)
    columns = min(3, len(names))
    rows = math.ceil(len(names) / columns)
    figure, axes = style.new_figure(
        rows,
        columns,
        figsize=(3.4 * columns, 2.5 * rows + 0.3),
        squeeze=False,
        layout="constrained",
    )
    for place, ax in enumerate(axes.flat):
        if place >= len(names):
            ax.set_visible(False)
            continue
        _prior_and_posterior(model, place, ax, math.log(factors[place]))
        ax.set_xlabel(style.as_it_stands(labels[place]))
        ax.set_title("")
    axes.flat[0].legend(frameon=False, fontsize="small")
    return figure


def _prior_and_posterior(model: Fitted, place: int, ax: Axes, shift: float) -> None:
    """Densities of one log hyperparameter, on a logarithmic axis."""
    known, values = model.model_.priors, model.draws_.theta[:, :, place].ravel()
    mean, sd = known.means[place], known.sds[place]
    low = min(mean - 3 * sd, values.min())
    high = max(mean + 3 * sd, values.max())
    grid = np.linspace(low, high, 300)
    theta = np.tile(known.means, (grid.size, 1))
    theta[:, place] = grid
    prior = _normalized(np.exp(_stable(known.log_densities(theta)[:, place])), grid)
    ax.fill_between(np.exp(grid + shift), prior, color=style.OUTER, lw=0, label="prior")
    if np.ptp(values) > 0.0:
        posterior = gaussian_kde(values)(grid)
        ax.plot(np.exp(grid + shift), posterior, color=style.LINE, lw=1.6, label="posterior")
    ax.set_xscale("log")
    if sd <= HELD:  # a few digits of a value that is held are enough
        ax.minorticks_off()
        ax.set_xticks([math.exp(mean + shift)], [f"{math.exp(mean + shift):.3g} (held)"])
    ax.set_ylim(bottom=0.0)
    ax.set_yticks([])
    ax.spines[["top", "right", "left"]].set_visible(False)


def _stable(logs: Array) -> Array:
    return logs - np.max(logs)


def _normalized(density: Array, grid: Array) -> Array:
    return density / (density.sum() * (grid[1] - grid[0]))
