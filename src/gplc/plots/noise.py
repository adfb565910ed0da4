"""What is left when the mean is known: its SD along an input, and the latent values behind it."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from gplc._check import interval_probabilities
from gplc._fitted import (
    as_fitted,
    as_table,
    feature_index,
    grid_of,
    has_data,
    slice_inputs,
    training_data,
)
from gplc._types import Array
from gplc.models import MODELS
from gplc.plots import style
from gplc.plots.style import Fitted


def residual_sd(
    model: Fitted,
    feature: int | str | None = None,
    at: ArrayLike | None = None,
    *,
    coverage: float = 0.9,
    points: int = 120,
    ax: Axes | None = None,
) -> Axes:
    """Draw the SD of y - f(x) along an input: posterior mean and band.

    Parameters
    ----------
    model : fitted estimator
    feature, at
        As in `fan`.
    coverage : float
        Posterior probability of the band.
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
    >>> residual_sd(model, "x2").get_xlabel()
    'x2'
    """
    model = as_fitted(model)
    ax = style.axes_or_new(ax)
    k = feature_index(model, feature)
    grid, names = grid_of(model, k, points), style.levels_of(model, k)
    band = model.residual_sd(slice_inputs(model, k, grid, at), coverage)
    told = f"{coverage:.0%} band"
    style.band(ax, grid, band.lower, band.upper, names, color=style.SD_BAND, label=told)
    style.middle(ax, grid, band.mean, names, color=style.SD_LINE, lw=2, label="posterior mean")
    style.veil(ax, grid, has_data(model, slice_inputs(model, k, grid, at)), names)
    ax.autoscale(axis="y")  # again, if the axis is shared with a picture that fixed it
    ax.set_ylim(bottom=0)
    ax.set_ylabel(f"residual SD of {style.target_label(model)}")
    style.label_input(ax, model, k)
    style.note_slice(ax, model, at)
    ax.legend(frameon=False, fontsize="small")
    return ax


def latent(model: Fitted, *, coverage: float = 0.9, ax: Axes | None = None) -> Axes:
    """Draw the latent values of the training rows against their residuals y_i - E f(x_i).

    For a latent covariate w it shows the shape of the noise: a straight line means Gaussian
    residuals, a bent one skewed residuals, flat pieces several modes. The model is the same under
    w -> -w, so that every draw is turned to go up with the residuals; several covariates of a row
    are put in order of how much they do. Where noise is Gaussian at a given x, as with a latent
    variance, it shows the SD of each row against the size of its residual.

    Parameters
    ----------
    model : fitted estimator
        Of a model that has latent values.
    coverage : float
        Posterior probability of the bars.
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import gplc
    >>> data = gplc.datasets.make_paper("U1", n=12, random_state=0)
    >>> model = gplc.LatentCovariateGP(draws=15, warmup=10, random_state=0).fit(data.X, data.y)
    >>> latent(model).get_xlabel()
    'residual of y'
    """
    model = as_fitted(model)
    if not model.model_.latent_of_cases:
        having = [each.title for each in MODELS.values() if each.latent_name]
        raise ValueError(
            f"latent needs latent values of the cases, which this fit of {model.model_.title} has "
            f"not; fit one of {', '.join(having)}, with approximation=None"
        )
    X, y = training_data(model)
    table = as_table(model, X)
    residuals = y - model.regression_function(table).mean()
    draw = _latent_sd if model.model_.noise_is_gaussian else _latent_covariate
    return draw(model, table, residuals, coverage, style.axes_or_new(ax))


def _latent_covariate(
    model: Fitted, table: Any, residuals: Array, coverage: float, ax: Axes
) -> Axes:
    low, high = interval_probabilities(coverage)
    values = _aligned(model.draws_.latent, residuals)
    lower, middle, upper = np.quantile(values, [low, 0.5, high], axis=0)
    for k in range(len(middle)):
        marks = dict(style.MARKS) | ({"mfc": style.LINE, "mec": style.LINE} if k % 2 else {})
        bars = [middle[k] - lower[k], upper[k] - middle[k]]
        ax.errorbar(residuals, middle[k], yerr=bars, fmt="none", ecolor=style.INNER, lw=0.6)
        ax.plot(residuals, middle[k], label=f"number {k + 1}", **marks)
    if len(middle) > 1:
        ax.legend(title="by how much it follows\nthe residuals", frameon=False)
    ax.axvline(0, color=style.GREY, lw=0.8, ls=":")
    ax.axhline(0, color=style.GREY, lw=0.8, ls=":")
    ax.set_xlabel(f"residual of {style.target_label(model)}")
    ax.set_ylabel(f"latent covariate {model.model_.latent_name} ({coverage:.0%} bars)")
    return ax


def _aligned(latent: Array, residuals: Array) -> Array:
    """Draws of all latent covariates, turned to go up with the residuals: (draws, q, n).

    The model may be the same whatever their order, so that in every draw the one that follows the
    residuals most comes first.
    """
    columns = latent.reshape(-1, latent.shape[-1] // residuals.size, residuals.size)
    pulls = columns @ residuals
    columns = columns * np.sign(pulls)[..., None]
    return np.take_along_axis(columns, np.argsort(-np.abs(pulls), axis=1)[..., None], axis=1)


def _latent_sd(model: Fitted, table: Any, residuals: Array, coverage: float, ax: Axes) -> Axes:
    band = model.residual_sd(table, coverage)
    size = np.abs(residuals)
    bars = [band.mean - band.lower, band.upper - band.mean]
    ax.errorbar(size, band.mean, yerr=bars, fmt="none", ecolor=style.SD_BAND, lw=1)
    ax.plot(size, band.mean, **style.MARKS)
    top = max(size.max(), band.upper.max())
    ax.plot([0, top], [0, top], color=style.GREY, lw=0.8, ls=":", label="equal")
    ax.set_ylim(bottom=0)
    ax.set_xlim(left=0)
    ax.set_xlabel(f"size of the residual of {style.target_label(model)}")
    ax.set_ylabel(f"residual SD ({coverage:.0%} bars)")
    ax.legend(frameon=False, fontsize="small")
    return ax
