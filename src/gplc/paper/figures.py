"""The paper's figures, and two that sum up: numbers in, a matplotlib Figure out."""

import functools
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ParamSpec

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gplc import _files
from gplc.paper import illustrations, published
from gplc.paper.analysis import Array, Laps, Scores, paired, published_regret
from gplc.paper.experiments import QUANTITIES
from gplc.paper.settings import DATASETS, METHODS, NAMES, SAMPLER_NAMES, SAMPLERS
from gplc.paper.tables import PAIRS

P = ParamSpec("P")

STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "pdf.fonttype": 42,
}

DPI = 130
OURS, THEIRS = "#08519c", "#b35806"
DARK, LIGHT = "#08306b", "#6baed6"
# Okabe and Ito's colours, told apart by the colour-blind; lines differ in dashes too.
SAMPLER_LINES: Mapping[str, tuple[str, Any]] = {
    "paper": ("#0072b2", "-"),
    "metropolis": ("#d55e00", "--"),
    "slice": ("#009e73", "-."),
    "elliptical": ("#cc79a7", (0, (5, 1))),
    "default": ("#000000", ":"),
}
SYMBOLS: Mapping[str, str] = {
    "eta_y": r"$\eta_y$",
    "rho_y": r"$\rho_y$",
    "eta_z": r"$\eta_z$",
    "rho_z": r"$\rho_z$",
    "sum z": r"$\sum_i z_i$",
    "sum z^2": r"$\sum_i z_i^2$",
}
# The hyperparameters are followed on the log scale, on which they are sampled.
LOGGED = frozenset(QUANTITIES[:4])


def write(figure: Figure, folder: Path, name: str) -> None:
    """Save a figure as PNG and PDF."""
    # Without a date, the same numbers give the same file.
    for suffix, metadata in ((".png", {}), (".pdf", {"CreationDate": None})):
        with _files.replacing(folder / f"{name}{suffix}") as draft:
            figure.savefig(draft, format=suffix[1:], dpi=DPI, metadata=metadata)
        figure.set_layout_engine("none")  # it is laid out now, and to do so again is slow


def in_style(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """A drawing function in the style of all of them, whatever the user has set."""

    @functools.wraps(draw)
    def drawn(*args: P.args, **settings: P.kwargs) -> Figure:
        with mpl.rc_context(STYLE):
            return draw(*args, **settings)

    return drawn


def blank(width: float, height: float) -> Figure:
    """An empty figure, in inches."""
    return Figure(figsize=(width, height), layout="constrained")


# --- illustrations --------------------------------------------------------------------------


@in_style
def non_gaussian() -> Figure:
    """How GPLC makes non-Gaussian residuals: w, g(2, w) = (2 + w)^2, and the density of y."""
    one = illustrations.squared()
    figure = blank(4.6, 3.8)
    axes = figure.add_subplot()
    curve = (one.x + one.w) ** 2
    axes.plot(one.w, curve, color="black", lw=1.5)
    axes.annotate(
        r"$y = (2 + w)^2$",
        (1.55, 3.55**2),
        (-1.9, 14.5),
        arrowprops={"arrowstyle": "-", "lw": 0.6},
    )
    # Both densities in units of the axis they stand on; not to scale with each other.
    below, left = -8.5, -5.2
    axes.fill_between(one.w, below, below + 18.0 * one.w_density, color=LIGHT, lw=0)
    axes.plot(one.w, below + 18.0 * one.w_density, color=DARK, lw=1)
    shown = one.y_density < 0.4
    axes.fill_betweenx(
        one.y[shown], left, left + 5.0 * one.y_density[shown], color="#fdd0a2", lw=0
    )
    axes.plot(left + 5.0 * one.y_density[shown], one.y[shown], color=THEIRS, lw=1)
    for w in (-1.0, 0.0, 1.0):
        y = (one.x + w) ** 2
        axes.plot([w, w, left], [below, y, y], color="0.55", lw=0.7, ls=":")
    axes.text(-3.1, -4.9, "density of w", color=DARK)
    axes.text(-4.95, 11.5, "density of y", color=THEIRS)
    axes.set(xlim=(left, 3.3), ylim=(below, 26), xlabel="w", ylabel="y", xticks=range(-3, 4))
    axes.set_yticks(range(0, 26, 5))
    return figure


@in_style
def heteroscedasticity(seed: int) -> Figure:
    """Heteroscedasticity from an unobserved covariate: cases, and curves of g at fixed w."""
    drawn = illustrations.unobserved(seed)
    figure = blank(7.2, 3.4)
    left, right = figure.subplots(1, 2, sharey=True)
    left.plot(drawn.x, drawn.y, "o", ms=2.5, mfc="none", mec="black", mew=0.6)
    left.set_title(f"{drawn.x.size} cases, w not shown", loc="left")
    for percentile, curve in zip(illustrations.PERCENTILES, drawn.curves, strict=True):
        median = percentile == 50
        right.plot(
            drawn.grid,
            curve,
            color=DARK if median else LIGHT,
            lw=1.6 if median else 0.8,
            ls="-" if median else "--",
        )
    right.set_title("g(x, w) at the 5th, 10th, ..., 95th percentile of w", loc="left")
    for axes in (left, right):
        axes.set(xlim=illustrations.X_RANGE, xlabel="x")
    left.set_ylabel("y")
    return figure


@in_style
def extreme_value() -> Figure:
    """Density of the extreme value residual with mean 0 and variance 1, and the normal one."""
    t, density = illustrations.extreme_value()
    figure = blank(4.6, 3.0)
    axes = figure.add_subplot()
    axes.plot(t, density, color="black", lw=1.6, label="extreme value")
    normal = np.exp(-0.5 * t**2) / np.sqrt(2 * np.pi)
    axes.plot(t, normal, color="0.55", lw=1, ls="--", label="Gaussian")
    axes.set(xlim=(-5, 3), ylim=(0, 0.5), xlabel="residual / its SD", ylabel="density")
    axes.legend(loc="upper left")
    return figure


# --- predictive performance -----------------------------------------------------------------


@in_style
def pairwise(scores: Scores, dataset: str) -> Figure:
    """All pairs of methods on one data set: NLPD on the left, MSE on the right.

    Below the diagonal our training sets, above it the paper's. Points below the line mean that the
    method of the row has the smaller value.
    """
    figure = blank(9.6, 4.9)
    halves: Any = figure.subfigures(1, 2, wspace=0.03)
    both = (
        ("Negative log probability density", scores.nlpd[dataset], published.nlpd(dataset)),
        ("Mean squared error", scores.mse[dataset], published.mse(dataset)),
    )
    for half, (title, ours, theirs) in zip(halves, both, strict=True):
        half.suptitle(f"{dataset}: {title}", fontsize=10)
        _matrix(half, ours, theirs)
    return figure


def _matrix(figure: Any, ours: Array, theirs: Array) -> None:
    panels = figure.subplots(len(METHODS), len(METHODS))
    everything = np.vstack([ours, theirs])
    margin = 0.06 * np.ptp(everything)
    limits = (everything.min() - margin, everything.max() + margin)
    for row, across in enumerate(METHODS):
        for column, along in enumerate(METHODS):
            axes = panels[row, column]
            axes.set(xlim=limits, ylim=limits)
            axes.set_box_aspect(1)
            axes.locator_params(nbins=4)
            axes.tick_params(labelsize=7)
            if row == column:
                axes.text(
                    0.5,
                    0.5,
                    NAMES[across],
                    ha="center",
                    va="center",
                    transform=axes.transAxes,
                    fontsize=13,
                    weight="bold",
                )
                axes.set(xticks=[], yticks=[])
                continue
            mine = row > column
            scores = ours if mine else theirs
            colour, marker = (OURS, "o") if mine else (THEIRS, "^")
            axes.plot(limits, limits, color="0.7", lw=0.8, zorder=0)
            axes.plot(
                scores[:, column], scores[:, row], marker, ms=4, mfc="none", mec=colour, mew=1
            )
            wins = paired(scores, across, along)
            whose = "ours" if mine else "paper"
            axes.set_title(
                f"{whose}: {wins.wins} of {wins.sets} below", color=colour, fontsize=7.5, pad=3
            )
            axes.tick_params(labelbottom=row == len(METHODS) - 1, labelleft=column == 0)


@in_style
def summary(scores: Scores) -> Figure:
    """Paired differences in NLPD with two standard errors, and regret; ours and the paper's."""
    figure = blank(9.0, 3.6)
    left, right = figure.subplots(1, 2, width_ratios=(1.5, 1))
    _differences(left, scores)
    _regrets(right, scores)
    return figure


def _differences(axes: Axes, scores: Scores) -> None:
    rows = [(dataset, pair) for pair in PAIRS for dataset in DATASETS]
    for place, (dataset, (first, second)) in enumerate(rows):
        height = -place - place // len(DATASETS)
        for values, colour, marker, shift in (
            (scores.nlpd[dataset], OURS, "o", 0.15),
            (published.nlpd(dataset), THEIRS, "^", -0.15),
        ):
            gap = paired(values, first, second)
            axes.errorbar(
                gap.mean,
                height + shift,
                xerr=2 * gap.error,
                fmt=marker,
                color=colour,
                ms=4,
                lw=1,
                label={"o": "ours", "^": "paper"}[marker] if place == 0 else None,
            )
    heights = [-place - place // len(DATASETS) for place in range(len(rows))]
    axes.set_yticks(heights, [dataset for dataset, _ in rows])
    for number, (first, second) in enumerate(PAIRS):
        axes.text(
            1.01,
            -number * (len(DATASETS) + 1) - 1.5,
            f"{NAMES[first]}\nminus {NAMES[second]}",
            transform=axes.get_yaxis_transform(),
            va="center",
            fontsize=8,
        )
    axes.axvline(0, color="0.6", lw=0.8, zorder=0)
    axes.set_xlabel("difference in NLPD (mean and 2 standard errors)")
    axes.legend(loc="upper left", bbox_to_anchor=(0.0, 1.1), ncols=2)


def _regrets(axes: Axes, scores: Scores) -> None:
    colours = {"std": "0.75", "gplc": DARK, "gplv": LIGHT}
    width = 0.25
    for place, method in enumerate(METHODS):
        spots = np.arange(len(DATASETS)) + (place - 1) * width
        heights = [scores.regret(dataset)[place] for dataset in DATASETS]
        axes.bar(spots, heights, 0.9 * width, color=colours[method], label=NAMES[method])
        theirs = [published_regret(dataset)[place] for dataset in DATASETS]
        axes.plot(
            spots,
            theirs,
            "^",
            ms=4.5,
            color=THEIRS,
            mec="white",
            mew=0.5,
            label="paper" if place == 2 else None,
        )
    axes.set_xticks(range(len(DATASETS)), DATASETS)
    axes.set_ylabel("regret: NLPD minus that of the truth")
    top = axes.get_ylim()[1]
    axes.set_ylim(0, 1.25 * top)
    axes.legend(ncols=2, loc="upper left", fontsize=8)


# --- samplers of GPLV -----------------------------------------------------------------------


@in_style
def autocorrelation(laps: Laps) -> Figure:
    """Autocorrelations against CPU time, for all six quantities; one run of each sampler."""
    figure = blank(9.0, 4.8)
    panels = figure.subplots(2, 3, sharey=True)
    for place, (axes, quantity) in enumerate(zip(panels.flat, QUANTITIES, strict=True)):
        horizon = _horizon(laps, place)
        for sampler in SAMPLERS:
            lap = laps[sampler]
            colour, dashes = SAMPLER_LINES[sampler]
            gamma = lap.gamma(place)
            lags = np.arange(gamma.size) * lap.seconds[0, 1]
            shown = lags <= horizon
            axes.plot(
                lags[shown],
                gamma[shown],
                color=colour,
                ls=dashes,
                lw=1.5,
                label=SAMPLER_NAMES[sampler],
            )
        axes.axhline(0, color="0.6", lw=0.8, zorder=0)
        name = SYMBOLS[quantity]
        axes.set_title(f"log {name}" if quantity in LOGGED else name, fontsize=11)
        axes.set_ylim(-0.25, 1.02)
        axes.set_xlim(0, horizon)
    for axes in panels[1]:
        axes.set_xlabel("lag (CPU seconds)")
    for axes in panels[:, 0]:
        axes.set_ylabel("autocorrelation")
    handles, names = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(SAMPLERS))
    return figure


def _horizon(laps: Laps, place: int) -> float:
    """The longest lag shown, in CPU seconds.

    Far enough to see modified Metropolis come down, and how far the others are by then; but no
    further than a quarter of a run, since estimates at longer lags are noise.
    """
    quarter = min(lap.used.shape[1] * lap.cost / 4 for lap in laps.values())
    time = 8.0 * float(laps["paper"].tau_cpu()[:, place].mean())
    return min(max(time, 0.5), quarter) if math.isfinite(time) else quarter


@in_style
def traces(laps: Laps, slice_iterations: int = 400) -> Figure:
    """Log density and sum of z from the prior mean on, over the same CPU time for all.

    As in the paper the time is that of the first 400 iterations of the slice sampler; a second
    column shows the time it takes the one-at-a-time samplers to arrive.
    """
    figure = blank(9.0, 8.0)
    panels = figure.subplots(len(SAMPLERS), 2, sharex="col", sharey="col")
    span = float(laps["slice"].times()[min(slice_iterations, laps["slice"].tuning) - 1])
    whole = min(float(lap.times()[-1]) for lap in laps.values())
    place = QUANTITIES.index("sum z")
    for row, sampler in zip(panels, SAMPLERS, strict=True):
        lap = laps[sampler]
        colour, _ = SAMPLER_LINES[sampler]
        times = np.concatenate([[0.0], lap.times()])
        densities = np.concatenate([[lap.origin], lap.log_density[0]])
        sums = np.concatenate([[0.0], lap.values[0, :, place]])
        for axes, values, horizon in ((row[0], densities, span), (row[1], sums, whole)):
            shown = times <= horizon
            axes.plot(times[shown], values[shown], color=colour, lw=0.8)
        count = int((lap.times() <= span).sum())
        row[0].set_title(f"{SAMPLER_NAMES[sampler]}: {count} iterations", loc="left")
        row[1].set_title(f"{int((lap.times() <= whole).sum())} iterations", loc="left")
        row[0].set_ylabel("log density")
        row[1].set_ylabel("sum of z")
    panels[-1, 0].set_xlabel("CPU seconds")
    panels[-1, 1].set_xlabel("CPU seconds")
    panels[0, 0].set_xlim(0, span)
    panels[0, 1].set_xlim(0, whole)
    return figure


# --- sensitivity ----------------------------------------------------------------------------


@in_style
def sensitivity(scores: Mapping[str, Scores]) -> Figure:
    """Mean differences in NLPD under every variant."""
    figure = blank(9.0, 3.8)
    panels = figure.subplots(1, len(DATASETS), sharey=True)
    markers = {
        ("gplc", "std"): ("o", OURS),
        ("gplv", "std"): ("s", LIGHT),
        ("gplc", "gplv"): ("^", THEIRS),
    }
    heights = -np.arange(len(scores))
    for axes, dataset in zip(panels, DATASETS, strict=True):
        for (first, second), (marker, colour) in markers.items():
            gaps = [paired(its.nlpd[dataset], first, second).mean for its in scores.values()]
            axes.plot(
                gaps,
                heights,
                marker,
                ms=5,
                color=colour,
                label=f"{NAMES[first]} - {NAMES[second]}",
            )
        axes.axvline(0, color="0.6", lw=0.8, zorder=0)
        axes.grid(axis="y", color="0.92", lw=0.8)
        axes.set_title(dataset)
        axes.set_yticks(heights, list(scores))
    figure.supxlabel("mean difference in NLPD", fontsize=9)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=3)
    return figure
