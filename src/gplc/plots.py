"""Pictures of a fit: each function takes a fitted estimator and gives back matplotlib Axes.

With one input there is nothing to choose. With several, `feature` says along which one to look,
and the others stay at `at`, by default the medians of the training data.

Bands go from light to dark in one hue and everything else differs in shape or line style, so that
pictures survive greyscale printing and colour blindness.

Examples
--------
>>> import gplc
>>> data = gplc.datasets.make_paper("U1", n=20, random_state=0)
>>> model = gplc.StandardGP(chains=1, draws=20, warmup=20, random_state=0).fit(data.X, data.y)
>>> fan(model).get_ylabel()
'y'
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from gplc import _check
from gplc.diagnostics import autocorrelation_time, autocorrelations, judged
from gplc.draws import Draws
from gplc.metrics import pit as pit_values
from gplc.predictive import Predictive, interval_probabilities

Array = NDArray[np.float64]

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
ICE_ROWS = 40
LONGEST_LABEL = 40


class Fitted(Protocol):
    """What pictures need of a fitted estimator."""

    model_: Any
    x_scaling_: Any
    y_scaling_: Any
    mean: Any
    n_features_in_: int

    @property
    def draws_(self) -> Draws:
        """Posterior draws."""
        ...

    def predict_dist(self, X: ArrayLike) -> Predictive:
        """Distribution of y."""
        ...

    def regression_function(self, X: ArrayLike) -> Predictive:
        """Posterior of f."""
        ...

    def residual_sd(self, X: ArrayLike, coverage: float = 0.9) -> Any:
        """Posterior of the residual SD."""
        ...


# --- the data of a fit, and slices through its inputs ---------------------------------------


def training_data(model: Fitted) -> tuple[Array, Array]:
    """Inputs (n, p) and responses (n,) a model was fitted to, on their own scale.

    Examples
    --------
    >>> import gplc
    >>> model = gplc.StandardGP(chains=1, draws=10, warmup=10, random_state=0)
    >>> training_data(model.fit([[1.0], [3.0]], [5.0, 9.0]))[1].tolist()
    [5.0, 9.0]
    """
    x, y = model.x_scaling_, model.y_scaling_
    inputs = model.model_.X * x.scale + x.location
    known = model.mean(inputs) if callable(model.mean) else 0.0
    return inputs, model.model_.y * y.scale + y.location + known


def feature_names(model: Fitted) -> list[str]:
    """Names of the inputs: those of the columns, or x, or x1, x2, ...

    Examples
    --------
    >>> import gplc
    >>> model = gplc.StandardGP(chains=1, draws=10, warmup=10, random_state=0)
    >>> feature_names(model.fit([[1.0, 2.0], [3.0, 5.0]], [5.0, 9.0]))
    ['x1', 'x2']
    """
    given = getattr(model, "feature_names_in_", None)
    if given is not None:
        return [str(name) for name in given]
    count = model.n_features_in_
    return ["x"] if count == 1 else [f"x{k + 1}" for k in range(count)]


def target_name(model: Fitted) -> str:
    """Name of the response, or y."""
    return getattr(model, "target_name_", None) or "y"


def _feature_label(model: Fitted, k: int) -> str:
    return _as_it_stands(feature_names(model)[k])


def _target_label(model: Fitted) -> str:
    return _as_it_stands(target_name(model))


def _as_it_stands(name: str) -> str:
    """A name as matplotlib draws it letter by letter: dollars would begin a formula."""
    short = name if len(name) <= LONGEST_LABEL else f"{name[: LONGEST_LABEL - 3]}..."
    return short.replace("$", r"\$")


def feature_index(model: Fitted, feature: int | str | None) -> int:
    """Number of an input given by its number or name; it must be given if there are several."""
    names = feature_names(model)
    if feature is None:
        if len(names) == 1:
            return 0
        raise ValueError(f"feature must be given, for there are several inputs; choose of {names}")
    if isinstance(feature, str):
        return names.index(_check.one_of("feature", feature, names))
    if not -len(names) <= feature < len(names):
        raise ValueError(f"feature must be one of {names} or its number, got {feature!r}")
    return feature % len(names)


def slice_inputs(
    model: Fitted, feature: int | str | None, values: ArrayLike, at: ArrayLike | None = None
) -> Any:
    """Rows with given values of one input, the others at `at` (medians by default).

    Returns
    -------
    (len(values), p) array, or a data frame if the model was fitted to one
    """
    X, _ = training_data(model)
    k = feature_index(model, feature)
    base = np.median(X, axis=0) if at is None else _check.finite_array("at", at, 1)
    if base.shape != (X.shape[1],):
        raise ValueError(
            f"at must have a value for each of {X.shape[1]} inputs, got shape {base.shape}"
        )
    rows = np.repeat(base[None, :], np.size(values), axis=0)
    rows[:, k] = np.asarray(values, dtype=np.float64)
    return as_table(model, rows)


def as_table(model: Fitted, X: Array) -> Any:
    """Rows of inputs in the form a model was fitted to, so that their names are checked."""
    if getattr(model, "feature_names_in_", None) is None:
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=feature_names(model))


def grid_of(model: Fitted, feature: int | str | None, count: int) -> Array:
    """Evenly spaced values of an input, from its smallest to its largest in the data."""
    X, _ = training_data(model)
    column = X[:, feature_index(model, feature)]
    return np.linspace(column.min(), column.max(), count)


def _given(model: Fitted, X: ArrayLike | None, y: ArrayLike | None) -> tuple[Any, Array, str]:
    """Rows to judge a model on and what to call them: those given, or the training rows."""
    if (X is None) != (y is None):
        raise ValueError("X and y must be given both or neither; neither means the training rows")
    if X is None or y is None:
        inputs, response = training_data(model)
        return as_table(model, inputs), response, "training rows"
    return X, _check.finite_array("y", y, 1), "given rows"


# --- drawing --------------------------------------------------------------------------------


def _axes(ax: Axes | None, figsize: tuple[float, float] = (5.6, 3.6)) -> Axes:
    if ax is None:
        _, ax = plt.subplots(figsize=figsize, layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _note_slice(ax: Axes, model: Fitted, k: int, at: ArrayLike | None) -> None:
    if model.n_features_in_ > 1:
        where = "medians" if at is None else "given values"
        ax.set_title(f"other inputs at their {where}", fontsize="small", loc="right", color=GREY)
    ax.set_xlabel(_feature_label(model, k))


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
        Whether to draw the training data: as points if there is one input. With several, points
        do not lie in the slice, so that only marks on the axis are drawn.
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
    ax = _axes(ax)
    k = feature_index(model, feature)
    grid = grid_of(model, k, points)
    widest_first = sorted(coverages, reverse=True)
    ends = [interval_probabilities(coverage) for coverage in widest_first]
    levels = [0.5, *(float(level) for pair in ends for level in pair)]
    quantiles = model.predict_dist(slice_inputs(model, k, grid, at)).quantile(levels)
    shades = _shades(len(widest_first))
    for number, (coverage, shade) in enumerate(zip(widest_first, shades, strict=True)):
        lower, upper = quantiles[:, 1 + 2 * number], quantiles[:, 2 + 2 * number]
        ax.fill_between(grid, lower, upper, color=shade, lw=0, label=f"{coverage:.0%} of new y")
    ax.plot(grid, quantiles[:, 0], color=LINE, lw=2, label="median")
    if data:
        X, y = training_data(model)
        if X.shape[1] == 1:
            ax.plot(X[:, 0], y, label=f"data ({y.size})", **MARKS)
        else:
            _rug(ax, X[:, k])
    ax.set_ylabel(_target_label(model))
    _note_slice(ax, model, k, at)
    ax.legend(frameon=False, fontsize="small")
    return ax


def _shades(count: int) -> list[Any]:
    """From the lightest to the darkest blue of a fan."""
    if count <= 2:
        return [OUTER, INNER][-count:] if count else []
    return [plt.get_cmap("Blues")(level) for level in np.linspace(0.2, 0.6, count)]


def _rug(ax: Axes, values: Array) -> None:
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
    ax = _axes(ax)
    k = feature_index(model, feature)
    grid = grid_of(model, k, points)
    band = model.residual_sd(slice_inputs(model, k, grid, at), coverage)
    ax.fill_between(
        grid, band.lower, band.upper, color=SD_BAND, lw=0, label=f"{coverage:.0%} band"
    )
    ax.plot(grid, band.mean, color=SD_LINE, lw=2, label="posterior mean")
    ax.autoscale(axis="y")  # again, if the axis is shared with a picture that fixed it
    ax.set_ylim(bottom=0)
    ax.set_ylabel(f"residual SD of {_target_label(model)}")
    _note_slice(ax, model, k, at)
    ax.legend(frameon=False, fontsize="small")
    return ax


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
    ax = _axes(ax)
    k = feature_index(model, feature)
    X, _ = training_data(model)
    grid = grid_of(model, k, points)
    picked = X[np.unique(np.linspace(0, len(X) - 1, ICE_ROWS).astype(int))]
    rows = np.repeat(picked, points, axis=0)
    rows[:, k] = np.tile(grid, len(picked))
    means = model.regression_function(as_table(model, rows)).mean().reshape(len(picked), points)
    for number, line in enumerate(means):
        label = f"{len(picked)} training rows" if number == 0 else None
        ax.plot(grid, line, color=INNER, lw=0.6, alpha=0.7, label=label)
    ax.plot(grid, means.mean(axis=0), color=LINE, lw=2.2, label="average")
    _rug(ax, X[:, k])
    ax.set_xlabel(_feature_label(model, k))
    ax.set_ylabel(f"mean of {_target_label(model)}")
    ax.legend(frameon=False, fontsize="small")
    return ax


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
    ax = _axes(ax, (5.6, 4.2))
    k = feature_index(model, feature)
    places = np.asarray(
        grid_of(model, k, 8)[1:-1] if values is None else sorted(values), dtype=np.float64
    )
    dist = model.predict_dist(slice_inputs(model, k, places, at))
    ends = dist.quantile([0.001, 0.5, 0.999])
    grid = np.linspace(ends[:, 0].min(), ends[:, 2].max(), 400)
    densities = dist.pdf(np.tile(grid, (len(places), 1)))
    for level in range(len(places) - 1, -1, -1):  # from the back to the front
        height = 1.4 * densities[level] / densities[level].max()
        shown = height > 1.4e-3
        order = 2 * (len(places) - level)
        ax.fill_between(
            grid, level, level + height, where=shown, color=OUTER, alpha=0.9, zorder=order
        )
        ax.plot(
            grid, np.where(shown, level + height, np.nan), color=LINE, lw=1.4, zorder=order + 1
        )
    ax.plot(ends[:, 1], range(len(places)), "o", color=LINE, ms=4, zorder=2 * len(places) + 2)
    ax.set_yticks(range(len(places)), [f"{value:.3g}" for value in places])
    ax.set_ylabel(_feature_label(model, k))
    ax.set_xlabel(f"{_target_label(model)} (dots: medians)")
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    if model.n_features_in_ > 1:
        where = "medians" if at is None else "given values"
        ax.set_title(f"other inputs at their {where}", fontsize="small", loc="right", color=GREY)
    return ax


def pit(
    model: Fitted,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
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
        Rows to judge by, best not used in the fit; by default the training rows, which flatter
        a model a little.
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
    'PIT of 12 training rows'
    """
    ax = _axes(ax)
    rows, response, called = _given(model, X, y)
    probabilities = pit_values(model.predict_dist(rows), response)
    ax.hist(
        probabilities,
        bins=np.linspace(0, 1, bins + 1).tolist(),
        weights=np.full(response.size, bins / response.size),
        color=INNER,
        edgecolor="white",
    )
    spread = 1.96 * math.sqrt((bins - 1) / response.size)
    ax.axhspan(max(0.0, 1 - spread), 1 + spread, color=INK, alpha=0.12, lw=0, zorder=3)
    ax.axhline(1.0, color=INK, lw=1, ls="--", zorder=4)
    ax.set_xlim(0, 1)
    ax.set_xlabel(f"PIT of {response.size} {called}")
    ax.set_ylabel("density (1 is right)")
    return ax


def coverage(
    model: Fitted,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    feature: int | str | None = None,
    *,
    coverage: float = 0.9,
    bins: int = 8,
    ax: Axes | None = None,
) -> Axes:
    """Draw which share of observations lies in its interval, along an input.

    Coverage can be right on average and wrong everywhere; this shows where.

    Parameters
    ----------
    model : fitted estimator
    X, y : array-like, optional
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
    ax = _axes(ax)
    k = feature_index(model, feature)
    rows, response, called = _given(model, X, y)
    low, high = interval_probabilities(coverage)
    probabilities = pit_values(model.predict_dist(rows), response)
    inside = (probabilities >= low) & (probabilities <= high)
    column = np.asarray(rows, dtype=np.float64)[:, k]
    groups = np.array_split(np.argsort(column, kind="stable"), min(bins, response.size))
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
        label=f"{response.size} {called} in {len(groups)} groups",
    )
    ax.set_ylim(min(0.45, lower.min() - 0.03), 1.03)
    ax.set_xlabel(_feature_label(model, k))
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


def _quantity(model: Fitted, name: str) -> Array:
    known = judged(model.draws_)
    return known[_check.one_of("name", name, known)]


def trace(model: Fitted, name: str = "log_density", *, ax: Axes | None = None) -> Axes:
    """Draw a quantity draw by draw, a line for each chain.

    Chains that have converged look alike and show no drift.

    Parameters
    ----------
    model : fitted estimator
    name : str
        A quantity that `diagnostics_` lists.
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import gplc
    >>> data = gplc.datasets.make_paper("U1", n=12, random_state=0)
    >>> model = gplc.StandardGP(draws=15, warmup=10, random_state=0).fit(data.X, data.y)
    >>> len(trace(model, "log noise_sd").get_lines())  # chains
    4
    """
    ax = _axes(ax)
    for number, chain in enumerate(_quantity(model, name)):
        ax.plot(
            chain,
            color=CHAIN_COLOURS[number % len(CHAIN_COLOURS)],
            ls=CHAIN_STYLES[number % len(CHAIN_STYLES)],
            lw=0.8,
            alpha=0.85,
            label=f"chain {number + 1}",
        )
    ax.set_xlabel("draw")
    ax.set_ylabel(name)
    return ax


def autocorrelation(model: Fitted, name: str = "log_density", *, ax: Axes | None = None) -> Axes:
    """Draw the autocorrelations of a quantity, averaged over chains.

    Parameters
    ----------
    model : fitted estimator
    name : str
        A quantity that `diagnostics_` lists.
    ax : Axes, optional

    Returns
    -------
    Axes
        Titled with the autocorrelation time: so many draws are worth an independent one.

    Examples
    --------
    >>> import gplc
    >>> data = gplc.datasets.make_paper("U1", n=12, random_state=0)
    >>> model = gplc.StandardGP(draws=15, warmup=10, random_state=0).fit(data.X, data.y)
    >>> autocorrelation(model, "log noise_sd").get_xlabel()
    'lag (draws)'
    """
    ax = _axes(ax)
    values = _quantity(model, name)
    gamma = autocorrelations(values)
    tau = autocorrelation_time(values)
    most = int(min(gamma.size, max(20, 6 * tau))) if math.isfinite(tau) else gamma.size
    ax.axhline(0, color=INK, lw=0.8)
    ax.bar(np.arange(most), gamma[:most], width=1.0, color=INNER, edgecolor="none")
    ax.set_xlim(-0.5, most - 0.5)
    ax.set_ylim(min(0.0, float(np.nanmin(gamma[:most], initial=0.0))) - 0.02, 1.02)
    ax.set_xlabel("lag (draws)")
    ax.set_ylabel(f"autocorrelation of {name}" if len(name) < 14 else "autocorrelation")
    ax.set_title(f"tau = {tau:.3g} draws", fontsize="small", loc="right")
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
    names = feature_names(model)
    scales = {
        name: model.draws_[name]
        for name in model.draws_
        if name.startswith("length_scale")
        and (model.draws_[name].ndim == 3 or len(names) == 1)
        and np.size(model.draws_[name][0, 0]) == len(names)
    }
    if not scales:
        raise ValueError(
            "relevance needs a length scale for each input, and this kernel has none; "
            "fit with kernel=SquaredExponential(ard=True)"
        )
    ax = _axes(ax, (5.6, 1.2 + 0.42 * len(names)))
    low, high = interval_probabilities(coverage)
    height = np.arange(len(names))[::-1].astype(float)
    meanings = {"length_scale_y": "mean", "length_scale_z": "noise"}
    for number, (name, draws) in enumerate(scales.items()):
        inverse = 1.0 / draws.reshape(-1, len(names))
        lower, middle, upper = np.quantile(inverse, [low, 0.5, high], axis=0)
        ax.errorbar(
            middle,
            height - 0.18 * (number - (len(scales) - 1) / 2) * 2,
            xerr=[middle - lower, upper - middle],
            fmt="os"[number % 2],
            color=(LINE, SD_LINE)[number % 2],
            mfc=(LINE, "white")[number % 2],
            ms=6,
            lw=1.6,
            capsize=3,
            label=meanings.get(name, name),
        )
    ax.set_yticks(height, [_as_it_stands(name) for name in names])
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.set_xlim(left=0)
    ax.set_xlabel(f"1 / length scale, per SD of the input ({coverage:.0%} bars)")
    if len(scales) > 1:
        ax.legend(frameon=False, fontsize="small")
    return ax


def latent(model: Fitted, *, coverage: float = 0.9, ax: Axes | None = None) -> Axes:
    """Draw the latent values of the training rows against their residuals y_i - E f(x_i).

    For a latent covariate w it shows the shape of the noise: a straight line means Gaussian
    residuals, a bent one skewed residuals, flat pieces several modes. The model is the same under
    w -> -w, so that every draw is turned to go up with the residuals; several covariates of a row
    are put in order of how much they do. For a latent variance it shows the SD of each row
    against the size of its residual.

    Parameters
    ----------
    model : fitted LatentCovariateGP or LatentVarianceGP
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
    name = model.draws_.latent_name
    if not name:
        raise ValueError(
            "latent needs a model with a latent variable, and this one has none; "
            "fit LatentCovariateGP or LatentVarianceGP"
        )
    X, y = training_data(model)
    table = as_table(model, X)
    residuals = y - model.regression_function(table).mean()
    draw = _latent_covariate if name == "w" else _latent_sd
    return draw(model, table, residuals, coverage, _axes(ax))


def _latent_covariate(
    model: Fitted, table: Any, residuals: Array, coverage: float, ax: Axes
) -> Axes:
    low, high = interval_probabilities(coverage)
    values = _aligned(model.draws_.latent, residuals)
    lower, middle, upper = np.quantile(values, [low, 0.5, high], axis=0)
    for k in range(len(middle)):
        marks = dict(MARKS) | ({"mfc": LINE, "mec": LINE} if k % 2 else {})
        bars = [middle[k] - lower[k], upper[k] - middle[k]]
        ax.errorbar(residuals, middle[k], yerr=bars, fmt="none", ecolor=INNER, lw=0.6)
        ax.plot(residuals, middle[k], label=f"number {k + 1}", **marks)
    if len(middle) > 1:
        ax.legend(title="by how much it follows\nthe residuals", frameon=False)
    ax.axvline(0, color=GREY, lw=0.8, ls=":")
    ax.axhline(0, color=GREY, lw=0.8, ls=":")
    ax.set_xlabel(f"residual of {_target_label(model)}")
    ax.set_ylabel(f"latent covariate w ({coverage:.0%} bars)")
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
    ax.errorbar(size, band.mean, yerr=bars, fmt="none", ecolor=SD_BAND, lw=1)
    ax.plot(size, band.mean, **MARKS)
    top = max(size.max(), band.upper.max())
    ax.plot([0, top], [0, top], color=GREY, lw=0.8, ls=":", label="equal")
    ax.set_ylim(bottom=0)
    ax.set_xlim(left=0)
    ax.set_xlabel(f"size of the residual of {_target_label(model)}")
    ax.set_ylabel(f"residual SD ({coverage:.0%} bars)")
    ax.legend(frameon=False, fontsize="small")
    return ax


# --- whole figures --------------------------------------------------------------------------


def overview(model: Fitted) -> Figure:
    """Fan above residual SD, with a column for each input (the first four, if there are more)."""
    columns = min(model.n_features_in_, 4)
    width = 7.2 if columns == 1 else 3.6 * columns
    figure, axes = plt.subplots(
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


def chains(model: Fitted) -> Figure:
    """Traces, and autocorrelations beside them, of everything that convergence is judged by."""
    names = list(judged(model.draws_))
    figure, axes = plt.subplots(
        len(names),
        2,
        figsize=(8.6, 1.5 * len(names) + 0.6),
        squeeze=False,
        width_ratios=(2.4, 1),
        layout="constrained",
    )
    for row, name in enumerate(names):
        left, right = axes[row]
        trace(model, name, ax=left).set_ylabel(name.replace(" ", "\n", 1), fontsize="small")
        autocorrelation(model, name, ax=right).set_ylabel("")
        if row < len(names) - 1:
            left.set_xlabel("")
            left.tick_params(labelbottom=False)
            right.set_xlabel("")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles[:4], labels[:4], loc="outside upper left", ncols=4, frameon=False)
    return figure


def _figure(ax: Axes) -> Figure:
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def _each_input(draw: Callable[..., Axes]) -> Callable[[Fitted], Figure]:
    """A figure with one picture for every input (the first six, if there are more)."""

    def figure_of(model: Fitted) -> Figure:
        count = min(model.n_features_in_, 6)
        columns = min(count, 3)
        rows = math.ceil(count / columns)
        width = 6.4 if columns == 1 else 3.7 * columns
        figure, axes = plt.subplots(
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


KINDS: Mapping[str, Callable[[Fitted], Figure]] = {
    "overview": overview,
    "fan": _each_input(fan),
    "sd": _each_input(residual_sd),
    "dependence": _each_input(partial_dependence),
    "ridge": _each_input(ridge),
    "pit": lambda model: _figure(pit(model)),
    "coverage": _each_input(coverage),
    "chains": chains,
    "relevance": lambda model: _figure(relevance(model)),
    "latent": lambda model: _figure(latent(model)),
}
"""What `gplc plot` can draw: a function that gives a whole figure, by name."""
