"""Can the chains be trusted? Traces and autocorrelations of what convergence is judged by."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gplc import _check
from gplc._fitted import as_fitted, with_names
from gplc._types import Array
from gplc.diagnostics import autocorrelation_time, autocorrelations, judged
from gplc.plots.style import (
    CHAIN_COLOURS,
    CHAIN_STYLES,
    INK,
    INNER,
    Fitted,
    axes_or_new,
    new_figure,
)


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
    model = as_fitted(model)
    ax = axes_or_new(ax)
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
    model = as_fitted(model)
    ax = axes_or_new(ax)
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


def chains(model: Fitted) -> Figure:
    """Traces, and autocorrelations beside them, of what `diagnostics_` shows."""
    model = as_fitted(model)
    known = _quantities(model)
    names = [name for name in model.diagnostics_.leading.values() if name in known]
    figure, axes = new_figure(
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


def _quantity(model: Fitted, name: str) -> Array:
    known = _quantities(model)
    return known[_check.one_of("name", name, known)]


def _quantities(model: Fitted) -> dict[str, Array]:
    """What convergence is judged by, with names and units as in `diagnostics_`."""
    units = model.draws_.units
    found = {}
    for name, values in judged(model.draws_).items():
        shift, factor = (0.0, 1.0) if units is None else units.affine(name)
        # A pipeline knows names of columns that its last step, which was diagnosed, does not.
        known = name if name in model.diagnostics_.rows else with_names(model, name)
        found[known] = shift + factor * values
    return found
