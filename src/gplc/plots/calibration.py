"""Are predictions as sure as they should be? PIT values, and coverage along an input."""

import math

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from gplc._check import interval_probabilities
from gplc._fitted import as_fitted, feature_index
from gplc._types import Array
from gplc.checks.calibrated import rows_to_judge
from gplc.plots.style import INK, INNER, LINE, Fitted, axes_or_new, label_input


def pit(
    model: Fitted,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    noise_std: ArrayLike | None = None,
    bins: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Draw where observations fall in their predictive distributions: PIT_i = cdf_i(y_i).

    Flat if the model is right. A hump in the middle means that predictions are too wide, a
    valley that they are too narrow, a slope that they are too low or too high.

    Parameters
    ----------
    model : fitted estimator
    X, y : array-like, optional
        Rows to judge by that were not used in the fit; by default the training rows, each
        predicted without itself (`loo`).
    noise_std : float or array-like, optional
        Known noise of the rows given.
    bins : int
    ax : Axes, optional

    Returns
    -------
    Axes
        With the band that holds 95% of the bars of a perfect model.

    Examples
    --------
    >>> import gplc
    >>> data = gplc.datasets.make_paper("U1", n=12, random_state=0)
    >>> model = gplc.StandardGP(draws=15, warmup=10, random_state=0).fit(data.X, data.y)
    >>> pit(model).get_xlabel()
    'PIT of 12 rows left out'
    """
    model = as_fitted(model)
    ax = axes_or_new(ax)
    _, probabilities, called = rows_to_judge(model, X, y, noise_std)
    count = probabilities.size
    ax.hist(
        probabilities,
        bins=np.linspace(0, 1, bins + 1).tolist(),
        weights=np.full(count, bins / count),
        color=INNER,
        edgecolor="white",
    )
    spread = 1.96 * math.sqrt((bins - 1) / count)
    ax.axhspan(max(0.0, 1 - spread), 1 + spread, color=INK, alpha=0.12, lw=0, zorder=3)
    ax.axhline(1.0, color=INK, lw=1, ls="--", zorder=4)
    ax.set_xlim(0, 1)
    ax.set_xlabel(f"PIT of {count} {called}")
    ax.set_ylabel("density (1 is right)")
    return ax


def coverage(
    model: Fitted,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    feature: int | str | None = None,
    *,
    noise_std: ArrayLike | None = None,
    coverage: float = 0.9,
    bins: int = 8,
    ax: Axes | None = None,
) -> Axes:
    """Draw which share of observations lies in its interval, along an input.

    Coverage can be right on average and wrong everywhere; this shows where.

    Parameters
    ----------
    model : fitted estimator
    X, y, noise_std : array-like, optional
        As in `pit`.
    feature : int or str, optional
        Input to look along; needed if there are several.
    coverage : float
        Probability of the intervals.
    bins : int
        Groups of rows, equally large.
    ax : Axes, optional

    Returns
    -------
    Axes
        With 95% Wilson intervals of each share.

    Examples
    --------
    >>> import gplc
    >>> data = gplc.datasets.make_paper("U1", n=12, random_state=0)
    >>> model = gplc.StandardGP(draws=15, warmup=10, random_state=0).fit(data.X, data.y)
    >>> coverage(model, bins=3).get_ylabel()
    'share inside'
    """
    model = as_fitted(model)
    ax = axes_or_new(ax)
    k = feature_index(model, feature)
    inputs, probabilities, called = rows_to_judge(model, X, y, noise_std)
    low, high = interval_probabilities(coverage)
    inside = (probabilities >= low) & (probabilities <= high)
    column = inputs[:, k]
    groups = np.array_split(np.argsort(column, kind="stable"), min(bins, column.size))
    middles = np.array([np.median(column[group]) for group in groups])
    shares = np.array([inside[group].mean() for group in groups])
    lower, upper = _wilson(shares, np.array([group.size for group in groups]))
    ax.axhline(coverage, color=INK, lw=1, ls="--", label=f"wanted: {coverage:.0%}")
    ax.errorbar(
        middles,
        shares,
        yerr=[shares - lower, upper - shares],
        fmt="o",
        color=LINE,
        ms=5,
        lw=1.2,
        capsize=3,
        label=f"{column.size} {called} in {len(groups)} groups",
    )
    ax.set_ylim(min(0.45, lower.min() - 0.03), 1.03)
    label_input(ax, model, k)
    ax.set_ylabel("share inside")
    ax.legend(frameon=False, fontsize="small", loc="lower right")
    return ax


def _wilson(share: Array, count: Array) -> tuple[Array, Array]:
    """95% interval of a proportion (Wilson 1927)."""
    z = 1.96
    centre = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z * np.sqrt(share * (1 - share) / count + z**2 / (4 * count**2)) / (1 + z**2 / count)
    # In exact arithmetic the interval holds the share; rounding must not put it outside.
    return np.clip(centre - half, 0.0, share), np.clip(centre + half, share, 1.0)
