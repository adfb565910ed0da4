"""The page: facts and pictures of a fit, put into the templates beside this file."""

import base64
import hashlib
import importlib.metadata
import io
import math
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from gplc import plots
from gplc._files import replacing
from gplc._fitted import (
    Piped,
    as_fitted,
    as_table,
    feature_names,
    known_noise,
    n_rows,
    target_name,
    training_data,
)
from gplc._templates import rendered
from gplc._types import Array
from gplc._version import __version__
from gplc.checks import influence, posterior_predictive
from gplc.diagnostics import IN_PYTHON, LEAST_ESS, MOST_RHAT, Advice
from gplc.plots.style import levels_of
from gplc.report.slider import MOST_INPUTS, densities, places

PACKAGES = ("gplc", "numpy", "scipy", "numba", "scikit-learn", "arviz-stats", "matplotlib")
# Settings that do not decide what the draws are.
UNTOLD = ("checkpoint", "max_draws", "max_seconds", "n_jobs", "progress")
# Sets of replicated data for the checks.
CHECK_DRAWS = 400
# Beyond so many rows a picture of points is smaller as pixels than as lines.
MOST_VECTOR_ROWS = 1500
# So many SDs from the middle of a Gaussian there are 5% beyond.
FIVE_PERCENT = 1.6449

# What the template of a section is filled with.
Facts = Mapping[str, Any]


class Section(NamedTuple):
    """A part of the page: the name of its template, where links lead too, and its heading."""

    key: str
    title: str
    facts: Facts


class Picture(NamedTuple):
    """A picture inside the page, and words for those who cannot see it."""

    alt: str
    source: str  # a data: address


def write_report(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a page about a fit.

    Parameters
    ----------
    model : fitted estimator, or a Pipeline that ends in one
    path : path
        HTML file; replaced if it exists, whole or not at all.

    Examples
    --------
    >>> import tempfile, pathlib, gplc
    >>> model = gplc.StandardGP(chains=2, draws=20, warmup=20, random_state=0)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "report.html"
    >>> write_report(model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.5]), path)
    >>> path.exists()
    True
    """
    page = render_report(model)
    with replacing(path) as draft:
        draft.write_text(page, encoding="utf-8")


def render_report(model: Any) -> str:
    """The page about a fit as text: HTML with everything it needs inside.

    Parameters
    ----------
    model : fitted estimator, or a Pipeline that ends in one

    Returns
    -------
    str

    Examples
    --------
    >>> import gplc
    >>> model = gplc.StandardGP(chains=2, draws=20, warmup=20, random_state=0)
    >>> page = render_report(model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.5]))
    >>> page.startswith("<!DOCTYPE html>") and "http://" not in page and "https://" not in page
    True
    """
    model = as_fitted(model)
    # Lines and letters as such, not as outlines: small, sharp on paper, and searchable.
    with mpl.rc_context({"svg.fonttype": "none", "font.size": 11}):
        found = [(key, title, facts_of(model)) for key, (title, facts_of) in SECTIONS.items()]
    names = feature_names(model)
    listed = ", ".join(names[:6]) + (" ..." if len(names) > 6 else "")
    return rendered(
        "gplc.report",
        "page.html",
        title=f"{target_name(model)} given {listed}",
        model=model.model_,
        origin=model.origin_,
        sections=[Section(key, title, facts) for key, title, facts in found if facts is not None],
        densities=densities(model),
        version=__version__,
    )


# --- pictures -------------------------------------------------------------------------------


def _picture(model: Any, draw: Callable[..., object], alt: str, height: float = 3.1) -> Picture:
    """One picture in the page, narrow enough for its letters to be read on a phone."""
    figure, ax = plt.subplots(figsize=(4.7, height), layout="constrained")
    try:
        draw(model, ax=ax)
        form = "svg" if len(model.model_.y) <= MOST_VECTOR_ROWS else "png"
        kind = "image/svg+xml" if form == "svg" else "image/png"
        buffer = io.BytesIO()
        figure.savefig(
            buffer, format=form, dpi=150, metadata={"Date": None} if form == "svg" else None
        )
    finally:
        plt.close(figure)
    code = base64.b64encode(buffer.getvalue()).decode()
    return Picture(alt, f"data:{kind};base64,{code}")


def _for_inputs(model: Any, draw: Callable[..., Axes], what: str) -> list[tuple[str, Picture]]:
    """A picture for every input, with its name, up to `MOST_INPUTS`."""
    return [
        (name, _picture(model, partial(draw, feature=k), f"{what} along {name}"))
        for k, name in enumerate(feature_names(model)[:MOST_INPUTS])
    ]


# --- sections: what they are filled with, or None where they do not apply -------------------


def _verdict(model: Any) -> Facts:
    told = model.diagnostics_
    return {
        "told": told,
        "rhat": max(row.rhat for row in told.rows.values()),
        "ess": min(min(row.ess_bulk, row.ess_tail) for row in told.rows.values()),
        "error": told.prediction_error,
        "next_step": told.next_step(
            Advice.in_shell(model.origin_["fit"]) if "fit" in model.origin_ else IN_PYTHON
        ),
        "most_rhat": MOST_RHAT,
        "least_ess": LEAST_ESS,
    }


def _data(model: Any) -> Facts:
    X, y = training_data(model)
    known = known_noise(model)
    named = list(zip([target_name(model), *feature_names(model)], [y, *X.T], strict=True))
    held = getattr(model, "columns_", None)
    levels = {} if held is None else {c.name: c.levels for c in held.each if c.has_levels}
    return {
        "count": n_rows(model),
        "origin": model.origin_,
        "repeated": len(X) - len(np.unique(X, axis=0)),
        "notes": model.notes_,
        "rounded": _of_rounded_values(model),
        "known": None if known is None else [f"{end:.3g}" for end in (known.min(), known.max())],
        "rows": [
            [name, *(f"{value:.4g}" for value in _summary(values)), np.unique(values).size]
            for name, values in named
            if name not in levels
        ],
        "levels": [
            [name, len(levels[name]), *_commonest(values, levels[name])]
            for name, values in named[1:]
            if name in levels
        ],
    }


def _commonest(places: Array, levels: Sequence[str]) -> tuple[str, int]:
    """The level that most rows have, and how many have it."""
    counts = np.bincount(places.astype(int), minlength=len(levels))
    return levels[int(counts.argmax())], int(counts.max())


def _of_rounded_values(model: Any) -> dict[str, str] | None:
    """NLPD of rows left out as a density, and as a probability of the rounded values."""
    if model.resolution_ is None:
        return None
    density = -float(np.mean(model.loo().log_density))
    # With the noise of rounding in it, a density is that probability over the step.
    probability = density - math.log(model.resolution_)
    return {"density": f"{density:.3f}", "probability": f"{probability:.3f}"}


def _summary(values: Array) -> tuple[Any, ...]:
    return values.mean(), values.std(), values.min(), np.median(values), values.max()


def _prediction(model: Any) -> Facts:
    what = "Median and central intervals of a new response"
    return {"pictures": _for_inputs(model, plots.fan, what)}


def _noise(model: Any) -> Facts:
    X, _ = training_data(model)
    sd = model.residual_sd(as_table(model, X)).mean
    return {
        "low": sd.min(),
        "high": sd.max(),
        "pictures": _for_inputs(model, plots.residual_sd, "Residual SD"),
    }


def _shape(model: Any) -> Facts:
    names = feature_names(model)[:MOST_INPUTS]
    alt = f"Densities of a new response at six values of {names[0]}"
    return {
        "names": names,
        "levels": any(levels_of(model, k) for k in range(model.n_features_in_)),
        "places": places(model),
        "ridge": _picture(model, partial(plots.ridge, feature=0), alt, height=3.8),
    }


def _calibration(model: Any) -> Facts:
    levels, pit = (0.5, 0.8, 0.9, 0.95), model.loo().pit
    shares = [float(np.mean(np.abs(pit - 0.5) <= 0.5 * level)) for level in levels]
    what = "Share of observations inside 90% intervals"
    return {
        "head": ["interval", *(f"{level:.0%}" for level in levels)],
        "rows": [["rows inside", *(f"{share:.0%}" for share in shares)]],
        "pit": _picture(model, plots.pit, "Histogram of PIT values", 3.0),
        "pictures": _for_inputs(model, plots.calibration, what),
    }


def _checks(model: Any) -> Facts:
    loo, made, rows = model.loo(), posterior_predictive(model, draws=CHECK_DRAWS), influence(model)
    return {
        "loo": loo,
        "made": made,
        "rows": rows,
        "surprise": _for_inputs(model, plots.surprise, "How rare each row is"),
        "replicates": _picture(model, plots.replicates, "Density of data and of replicates", 3.0),
        "residuals": _for_inputs(model, plots.residuals, "Residuals"),
        "influence": _picture(model, plots.influence, "Influence of each row", 3.0),
    }


def _relevance(model: Any) -> Facts | None:
    count = len(feature_names(model))
    if count == 1:
        return None
    alt = "Inverse length scale of each input"
    try:
        scales = _picture(model, plots.relevance, alt, 1.2 + 0.4 * count)
    except ValueError:  # a kernel without a length scale for each input
        return None
    return {
        "scales": scales,
        "pictures": _for_inputs(model, plots.partial_dependence, "Mean of the response"),
    }


def _latent(model: Any) -> Facts | None:
    if not model.model_.latent_of_cases:
        return None
    return {"picture": _picture(model, plots.latent, "Latent values against residuals")}


def _chains(model: Any) -> Facts:
    told = model.diagnostics_
    shown = {title: told.rows[name] for title, name in told.leading.items()}
    rows = [
        [
            title,
            f"{row.mean:.4g}",
            f"{row.sd:.3g}",
            f"{row.rhat:.3f}",
            f"{row.ess_bulk:.0f}",
            f"{row.ess_tail:.0f}",
            f"{row.tau:.3g}",
        ]
        for title, row in shown.items()
    ]
    worst = max(told.leading.values(), key=lambda name: told.rows[name].rhat)
    return {
        "rows": rows,
        "events": told.numerical_events,
        "traces": [
            _picture(model, partial(plots.trace, name=name), name, 2.2)
            for name in dict.fromkeys(["log_density", worst])
        ],
    }


def _settings(model: Any) -> Facts:
    X, y = training_data(model)
    digest = hashlib.sha256(np.ascontiguousarray(np.column_stack([X, y])).tobytes()).hexdigest()
    steps = [step for _, step in model.before.steps] if isinstance(model, Piped) else []
    estimator = model.estimator if isinstance(model, Piped) else model
    settings = {k: v for k, v in estimator.get_params(deep=False).items() if k not in UNTOLD}
    # So many draws, however it was decided that they are enough: that repeats the fit.
    settings["draws"] = model.diagnostics_.n_draws
    usual = type(estimator)().get_params(deep=False)
    call = ", ".join(
        f"{name}={value!r}" for name, value in settings.items() if value != usual[name]
    )
    made = f"gplc.{type(estimator).__name__}({call})"
    if steps:
        made = f"sklearn.pipeline.make_pipeline({', '.join(map(repr, steps))}, {made})"
    return {
        "command": model.origin_.get("command", ""),
        "code": f"model = {made}\nmodel.fit(X, y)",
        "priors": _priors(model),
        "settings": [
            *((name, repr(value)) for name, value in settings.items()),
            ("seed of the chains", model.seed_.entropy),
            ("digest of the data", digest[:16]),
        ],
        "versions": [
            *((name, importlib.metadata.version(name)) for name in PACKAGES),
            ("Python", platform.python_version()),
            ("system", f"{platform.system()} {platform.machine()}"),
        ],
    }


def _priors(model: Any) -> list[list[str]]:
    """Median and 90% range of each hyperparameter, before and after, in the units of the data."""
    units, priors = model.draws_.units, model.model_.priors
    lower, middle, upper = (
        priors.quantile(share) * np.array(units.factors) for share in (0.05, 0.5, 0.95)
    )
    found = np.quantile(np.exp(model.draws_.theta), (0.05, 0.5, 0.95), axis=(0, 1))
    found = (found * np.array(units.factors)).T
    return [
        [
            label,
            f"{middle[k]:.3g} ({lower[k]:.2g} to {upper[k]:.2g})",
            f"{found[k][1]:.3g} ({found[k][0]:.2g} to {found[k][2]:.2g})",
            units.units[k] or "-",
        ]
        for k, label in enumerate(units.labels)
    ]


SECTIONS: Mapping[str, tuple[str, Callable[[Any], Facts | None]]] = {
    "verdict": ("Verdict", _verdict),
    "data": ("Data", _data),
    "prediction": ("Prediction", _prediction),
    "noise": ("Size of the noise", _noise),
    "shape": ("Shape of the noise", _shape),
    "calibration": ("Calibration", _calibration),
    "checks": ("Rows left out, and data that the model makes", _checks),
    "relevance": ("Relevance of the inputs", _relevance),
    "latent": ("Latent values", _latent),
    "chains": ("Chains", _chains),
    "settings": ("Settings and versions", _settings),
}
