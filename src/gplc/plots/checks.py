"""Does the model say what the data say? Replicated data, residuals, calibration, influence."""

from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike
from scipy.stats import gaussian_kde

from gplc import _check
from gplc._fitted import as_fitted, as_table, feature_index, training_data, training_dist
from gplc._types import Array
from gplc.checks import calibration as calibration_check
from gplc.checks import influence as influence_check
from gplc.checks.calibrated import CURVES
from gplc.plots import style
from gplc.plots.style import Fitted

# Lines of replicated data.
SHOWN_SETS = 40


def replicates(model: Fitted, *, draws: int = SHOWN_SETS, ax: Axes | None = None) -> Axes:
    """Draw the density of the responses over those of data that the model makes.

    Parameters
    ----------
    model : fitted estimator
    draws : int
        Sets of replicated responses; each is a thin line.
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import gplc
    >>> data = gplc.datasets.make_paper("U1", n=12, random_state=0)
    >>> model = gplc.StandardGP(draws=15, warmup=10, random_state=0).fit(data.X, data.y)
    >>> replicates(model, draws=8).get_ylabel()
    'density'
    """
    model = as_fitted(model)
    ax = style.axes_or_new(ax)
    _, y = training_data(model)
    made = model.replicate_y(draws)
    low, high = np.quantile(np.concatenate([y, made.ravel()]), [0.001, 0.999])
    reach = 0.1 * (high - low) or 1.0
    grid = np.linspace(low - reach, high + reach, 200)
    for number, each in enumerate(made):
        label = f"{len(made)} sets that the model makes" if number == 0 else None
        ax.plot(grid, _density(each, grid), color=style.INNER, lw=0.7, alpha=0.7, label=label)
    ax.plot(grid, _density(y, grid), color=style.INK, lw=2.0, label=f"data ({y.size})")
    ax.set_ylim(bottom=0.0)
    ax.set_xlabel(style.target_label(model))
    ax.set_ylabel("density")
    ax.legend(frameon=False, fontsize="small")
    return ax


def _density(values: Array, grid: Array) -> Array:
    """A smooth density; of values that are all the same, none."""
    if np.ptp(values) == 0.0:
        return np.full(grid.shape, np.nan)
    return np.asarray(gaussian_kde(values)(grid))


def residuals(
    model: Fitted,
    feature: int | str | None = None,
    *,
    coverage: float = 0.9,
    ax: Axes | None = None,
) -> Axes:
    """Draw residuals y - E f(x) along an input, over the intervals in which they should be.

    Parameters
    ----------
    model : fitted estimator
    feature : int or str, optional
        Input to look along; needed if there are several.
    coverage : float
        Probability of the intervals, those of each row given all data.
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import gplc
    >>> data = gplc.datasets.make_paper("U1", n=12, random_state=0)
    >>> model = gplc.StandardGP(draws=15, warmup=10, random_state=0).fit(data.X, data.y)
    >>> residuals(model).get_ylabel()
    'y - f(x)'
    """
    model = as_fitted(model)
    k = feature_index(model, feature)
    ax = style.axes_or_new(ax)
    X, y = training_data(model)
    order = np.argsort(X[:, k], kind="stable")
    x = X[order, k]
    f = np.asarray(model.regression_function(as_table(model, X)).mean())
    ends = training_dist(model).interval(coverage) - f[:, None]
    outside = ((y - f < ends[:, 0]) | (y - f > ends[:, 1]))[order]
    if model.n_features_in_ == 1:
        ax.fill_between(
            x, *ends[order].T, color=style.OUTER, lw=0, label=f"{coverage:.0%} of new responses"
        )
    else:  # intervals depend on the other inputs too
        ax.vlines(
            x, *ends[order].T, color=style.OUTER, lw=2, label=f"{coverage:.0%} of new responses"
        )
    ax.axhline(0.0, color=style.INK, lw=1, ls="--")
    shown = (y - f)[order]
    ax.plot(x[~outside], shown[~outside], **style.MARKS, label=f"data ({y.size})")
    marks = {**style.MARKS, "mfc": "black"}
    ax.plot(x[outside], shown[outside], **marks, label=f"outside ({int(outside.sum())})")
    style.label_input(ax, model, k)
    ax.set_ylabel(f"{style.target_label(model)} - f(x)")
    ax.legend(frameon=False, fontsize="small")
    return ax


def calibration(
    model: Fitted,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    feature: int | str | None = None,
    *,
    what: Literal["coverage", "pit", "spread"] = "coverage",
    noise_std: ArrayLike | None = None,
    coverage: float = 0.9,
    ax: Axes | None = None,
) -> Axes:
    """Draw coverage, or the mean PIT, in windows along an input, with what chance would do.

    A calibrated model has all three curves inside their bands with probability 0.95.

    Parameters
    ----------
    model : fitted estimator
    X, y : array-like, optional
        Rows to judge by that were not used in the fit; by default the training rows, each
        predicted without itself (`loo`).
    feature : int or str, optional
        Input to look along; needed if there are several.
    what : {"coverage", "pit", "spread"}
        Whether predictions are wide enough, in the right place, or as wide as they should be:
        the mean of abs(2 PIT - 1) sees the latter soonest.
    noise_std : float or array-like, optional
        Known noise of the rows given.
    coverage : float
        Probability of the intervals.
    ax : Axes, optional

    Returns
    -------
    Axes
        It says whether the curve is inside.

    Examples
    --------
    >>> import gplc
    >>> data = gplc.datasets.make_paper("U1", n=20, random_state=0)
    >>> model = gplc.StandardGP(draws=15, warmup=10, random_state=0).fit(data.X, data.y)
    >>> calibration(model, what="pit").get_ylabel()
    'mean PIT'
    """
    _check.one_of("what", what, CURVES)
    model = as_fitted(model)
    k = feature_index(model, feature)
    found = calibration_check(model, X, y, k, noise_std=noise_std, coverage=coverage)
    ax = style.axes_or_new(ax)
    values, band = getattr(found, what), getattr(found, f"{what}_band")
    wanted = coverage if what == "coverage" else 0.5
    inside = bool(((values >= band[0]) & (values <= band[1])).all())
    ax.fill_between(found.places, *band, color=style.OUTER, lw=0, label="95% of calibrated models")
    ax.axhline(wanted, color=style.INK, lw=1, ls="--", label=f"wanted: {wanted:g}")
    ax.plot(found.places, values, color=style.LINE, lw=1.6, marker="o", ms=4, label=found.called)
    out = (values < band[0]) | (values > band[1])
    ax.plot(found.places[out], values[out], ls="none", marker="X", ms=10, color=style.SD_LINE)
    style.label_input(ax, model, k)
    labels = {"coverage": "share inside", "pit": "mean PIT", "spread": "mean |2 PIT - 1|"}
    ax.set_ylabel(labels[what])
    ax.set_ylim(min(band[0].min(), values.min()) - 0.05, max(band[1].max(), values.max()) + 0.02)
    ax.text(
        0.99,
        0.02,
        "inside the band" if inside else "outside the band",
        transform=ax.transAxes,
        ha="right",
        fontsize="small",
    )
    ax.legend(
        frameon=False,
        fontsize="x-small",
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=3,
    )
    return ax


def influence(model: Fitted, *, ax: Axes | None = None) -> Axes:
    """Draw how far predictions move without each row, and whether that can be told.

    Parameters
    ----------
    model : fitted estimator
    ax : Axes, optional

    Returns
    -------
    Axes
        Rows that are influential have their numbers. To the right of the dashed line the
        importance weights of a row cannot be trusted: it is influential in any case.

    Examples
    --------
    >>> import gplc
    >>> data = gplc.datasets.make_paper("U1", n=12, random_state=0)
    >>> model = gplc.StandardGP(draws=15, warmup=10, random_state=0).fit(data.X, data.y)
    >>> influence(model).get_xlabel()
    'k of the importance weights'
    """
    model = as_fitted(model)
    ax = style.axes_or_new(ax)
    found = influence_check(model)
    k = np.clip(np.nan_to_num(found.pareto_k, posinf=1.5), -0.5, 1.5)
    ax.plot(k, found.shift, **style.MARKS)
    ax.axvline(found.k_threshold, color=style.INK, lw=1, ls="--")
    for row in found.influential[:12].tolist():
        ax.annotate(
            str(row),
            (k[row], found.shift[row]),
            xytext=(5, 2),
            textcoords="offset points",
            fontsize="x-small",
        )
    ax.set_ylim(0.0, max(1.05, 1.1 * float(found.shift.max())))
    ax.axhline(1.0, color=style.INK, lw=1, ls=":")
    ax.set_xlabel("k of the importance weights")
    ax.set_ylabel("predictions move by (SD)")
    return ax
