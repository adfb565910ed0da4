"""The page: sections of words, tables and pictures, put into the template beside this file."""

import base64
import hashlib
import html
import importlib.metadata
import io
import json
import os
import platform
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib.resources import files
from string import Template
from typing import Any, NamedTuple

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from gplc import metrics, plots
from gplc._files import replacing
from gplc._version import __version__

Array = NDArray[np.float64]

PACKAGES = ("gplc", "numpy", "scipy", "numba", "scikit-learn", "arviz-stats", "matplotlib")
MODEL_WORDS = {
    "StandardGP": "STD: Gaussian noise, the same everywhere",
    "LatentVarianceGP": "GPLV: Gaussian noise whose SD depends on the inputs",
    "LatentCovariateGP": "GPLC: noise whose size and shape depend on the inputs",
}
# Settings that do not decide what the draws are.
UNTOLD = ("checkpoint", "max_draws", "max_seconds", "n_jobs", "progress")
# Inputs that get pictures and a slider of their own; the others are in the tables.
MOST_INPUTS = 6
# Beyond so many rows a picture of points is smaller as pixels than as lines.
MOST_VECTOR_ROWS = 1500


class Section(NamedTuple):
    """A part of the page: where links lead, its heading, and its HTML."""

    key: str
    title: str
    body: str


def write_report(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a page about a fit.

    Parameters
    ----------
    model : fitted estimator
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
    model : fitted estimator

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
    # Lines and letters as such, not as outlines: small, sharp on paper, and searchable.
    with mpl.rc_context({"svg.fonttype": "none", "font.size": 11}):
        sections = [make(model) for make in SECTIONS]
    kept = [section for section in sections if section is not None]
    target = html.escape(plots.target_name(model))
    names = plots.feature_names(model)
    listed = html.escape(", ".join(names[:6]) + (" ..." if len(names) > 6 else ""))
    called = type(model).__name__
    return Template(_part("page.html")).substitute(
        title=f"{target} given {listed}",
        lead=f"{MODEL_WORDS.get(called, called)}. {len(model.model_.y)} rows.",
        contents=" ".join(f'<a href="#{each.key}">{each.title}</a>' for each in kept),
        sections="\n".join(
            f'<section id="{each.key}">\n<h2>{each.title}</h2>\n{each.body}\n</section>'
            for each in kept
        ),
        style=_part("style.css"),
        script=_part("slider.js"),
        densities=_for_script(_densities(model)),
        version=__version__,
    )


def _part(name: str) -> str:
    return files("gplc.report").joinpath(name).read_text(encoding="utf-8")


def _for_script(record: Any) -> str:
    """JSON that no name in it can break out of."""
    return json.dumps(record, separators=(",", ":")).replace("<", "\\u003c")


# --- pieces of HTML -------------------------------------------------------------------------


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], css: str = "") -> str:
    cells = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in head)
    lines = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    start = f'<div class="table" tabindex="0"><table class="{css}">'
    return f"{start}<thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table></div>"


def _picture(model: Any, draw: Callable[[Axes], object], alt: str, height: float = 3.1) -> str:
    """One picture in the page, narrow enough for its letters to be read on a phone."""
    figure, ax = plt.subplots(figsize=(4.7, height), layout="constrained")
    draw(ax)
    form = "svg" if len(model.model_.y) <= MOST_VECTOR_ROWS else "png"
    kind = "image/svg+xml" if form == "svg" else "image/png"
    buffer = io.BytesIO()
    figure.savefig(
        buffer, format=form, dpi=150, metadata={"Date": None} if form == "svg" else None
    )
    plt.close(figure)
    code = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{html.escape(alt)}" src="data:{kind};base64,{code}">'


def _draw_on(draw: Callable[..., object], model: Any, ax: Axes, **choice: Any) -> None:
    draw(model, ax=ax, **choice)


def _figure(picture: str, caption: str) -> str:
    return f"<figure>{picture}<figcaption>{caption}</figcaption></figure>"


def _for_inputs(model: Any, draw: Callable[..., object], what: str, caption: str) -> str:
    """A figure for every input, up to `MOST_INPUTS`."""
    names = plots.feature_names(model)
    figures = [
        _figure(
            _picture(model, partial(_draw_on, draw, model, feature=k), f"{what} along {name}"),
            caption if k == 0 else f"The same along {html.escape(name)}.",
        )
        for k, name in enumerate(names[:MOST_INPUTS])
    ]
    return "\n".join(figures)


# --- sections -------------------------------------------------------------------------------


def _verdict(model: Any) -> Section:
    told = model.diagnostics_
    heading = "&#10003; These chains agree." if told.ok else "&#9888; Do not trust this fit yet."
    rhat = max(row.rhat for row in told.rows.values())
    ess = min(min(row.ess_bulk, row.ess_tail) for row in told.rows.values())
    problems = "".join(f"<p>{html.escape(problem)}.</p>" for problem in told.problems)
    body = (
        f'<div class="verdict{"" if told.ok else " bad"}"><strong>{heading}</strong>'
        f"<p>{told.n_chains} chains of {told.n_draws} draws. {html.escape(told.stopped)} Largest "
        f"R-hat {rhat:.3f} (wanted: below 1.01), smallest effective sample size {ess:.0f} "
        f"(wanted: above 400).</p>{problems}</div>"
    )
    return Section("verdict", "Verdict", body)


def _data(model: Any) -> Section:
    X, y = plots.training_data(model)
    columns = zip([plots.target_name(model), *plots.feature_names(model)], [y, *X.T], strict=True)
    rows = [
        [name, *(f"{value:.4g}" for value in _summary(values)), str(np.unique(values).size)]
        for name, values in columns
    ]
    head = ["column", "mean", "SD", "smallest", "median", "largest", "distinct"]
    repeated = len(X) - len(np.unique(X, axis=0))
    words = f"<p>{len(y)} rows; {repeated} repeat the inputs of another.</p>"
    return Section("data", "Data", words + _table(head, rows))


def _summary(values: Array) -> tuple[float, ...]:
    return tuple(
        float(value)
        for value in (values.mean(), values.std(), values.min(), np.median(values), values.max())
    )


def _prediction(model: Any) -> Section:
    return Section(
        "prediction",
        "Prediction",
        _for_inputs(
            model,
            plots.fan,
            "Median and central intervals of a new response",
            "Median of what a new measurement would show, and the intervals that hold 50% and 90% "
            "of new measurements.",
        ),
    )


def _noise(model: Any) -> Section:
    X, _ = plots.training_data(model)
    sd = model.residual_sd(plots.as_table(model, X)).mean
    ratio = sd.max() / sd.min()
    words = (
        f"<p>Over the rows of the data the residual SD goes from {sd.min():.3g} to "
        f"{sd.max():.3g}, a ratio of {ratio:.2g}.</p>"
    )
    return Section(
        "noise",
        "Size of the noise",
        words
        + _for_inputs(
            model,
            plots.residual_sd,
            "Residual SD",
            "SD of what would stay if the mean were known: posterior mean and 90% band.",
        ),
    )


def _shape(model: Any) -> Section:
    names = [html.escape(name) for name in plots.feature_names(model)[:MOST_INPUTS]]
    options = "".join(f"<option>{name}</option>" for name in names)
    choice = (
        f'<label>Input <select id="input-choice">{options}</select></label>'
        if len(names) > 1
        else ""
    )
    called = "Place" if len(names) > 1 else names[0]
    others = " Other inputs stay at their medians." if len(names) > 1 else ""
    body = f"""<div class="controls">{choice}
<label>{called} <input type="range" id="place" min="0" max="{_places(model) - 1}" step="1"
 value="{(_places(model) - 1) // 2}"><output id="place-value" for="place"></output></label></div>
<figure><svg id="curves" viewBox="0 0 640 285" role="img" aria-labelledby="shape-words">
<path id="density-curve" class="density" d=""/><path id="gaussian-curve" class="gaussian" d=""/>
<line class="axis" x1="15" x2="625" y1="250" y2="250"/><g id="shape-ticks"></g></svg>
<figcaption><span id="shape-words"></span> Shaded: density of a new measurement. Dashed: the
Gaussian with the same mean and SD; where the two differ, the noise is not Gaussian.{others}
<noscript>The slider needs JavaScript; the next picture does not.</noscript></figcaption></figure>
"""
    picture = _picture(
        model,
        lambda ax: plots.ridge(model, feature=0, ax=ax),
        f"Densities of a new response at six values of {names[0]}",
        height=3.8,
    )
    return Section(
        "shape",
        "Shape of the noise",
        body + _figure(picture, "The same at six places, all equally high."),
    )


def _calibration(model: Any) -> Section:
    X, y = plots.training_data(model)
    dist = model.predict_dist(plots.as_table(model, X))
    shares = [(level, metrics.coverage(dist, y, level)) for level in (0.5, 0.8, 0.9, 0.95)]
    table = _table(
        ["interval", *(f"{level:.0%}" for level, _ in shares)],
        [["rows inside", *(f"{share:.0%}" for _, share in shares)]],
    )
    words = (
        "<p>Judged by the rows the model was fitted to, which flatters it a little. For a "
        "judgement by rows left out: <code>gplc compare</code>.</p>"
    )
    pit = _figure(
        _picture(model, lambda ax: plots.pit(model, ax=ax), "Histogram of PIT values", 3.0),
        "Where observations fall in their predictive distributions. Flat is right; a hump means "
        "that predictions are too wide. 95% of the bars of a perfect model end in the grey band.",
    )
    local = _for_inputs(
        model,
        plots.coverage,
        "Share of observations inside 90% intervals",
        "Share of observations inside their 90% intervals, with 95% confidence bars.",
    )
    return Section("calibration", "Calibration", words + table + pit + local)


def _relevance(model: Any) -> Section | None:
    names = plots.feature_names(model)
    if len(names) == 1:
        return None
    try:
        picture = _picture(
            model,
            lambda ax: plots.relevance(model, ax=ax),
            "Inverse length scale of each input",
            1.2 + 0.4 * len(names),
        )
    except ValueError:  # a kernel without a length scale for each input
        plt.close()
        return None
    caption = (
        "How much each input matters: 1 / length scale, in SDs of the input. At 0 the response "
        "does not depend on it."
    )
    dependence = _for_inputs(
        model,
        plots.partial_dependence,
        "Mean of the response",
        "Mean of the response as one input changes, averaged over the others (thick), and for "
        "single rows (thin).",
    )
    return Section("relevance", "Relevance of the inputs", _figure(picture, caption) + dependence)


def _latent(model: Any) -> Section | None:
    words = {
        "w": "The latent covariate of each row against its residual. A straight line means "
        "Gaussian residuals, a bent one skewed residuals.",
        "z": "The residual SD of each row against the size of its residual.",
    }
    name = model.draws_.latent_name
    if name not in words:
        return None
    picture = _picture(
        model, lambda ax: plots.latent(model, ax=ax), "Latent values against residuals"
    )
    return Section("latent", "Latent values", _figure(picture, words[name]))


def _chains(model: Any) -> Section:
    rows = [
        [
            name,
            f"{row.mean:.4g}",
            f"{row.sd:.3g}",
            f"{row.rhat:.3f}",
            f"{row.ess_bulk:.0f}",
            f"{row.ess_tail:.0f}",
            f"{row.tau:.3g}",
        ]
        for name, row in model.diagnostics_.rows.items()
    ]
    head = ["quantity", "mean", "SD", "R-hat", "bulk ESS", "tail ESS", "tau"]
    worst = max(model.diagnostics_.rows.items(), key=lambda item: item[1].rhat)[0]
    pictures = "".join(
        _figure(
            _picture(model, partial(_draw_on, plots.trace, model, name=name), name, 2.2),
            f"{html.escape(name)}, draw by draw, a line for each chain.",
        )
        for name in dict.fromkeys(["log_density", worst])
    )
    events = model.diagnostics_.numerical_events
    told = ", ".join(f"{html.escape(name)} {count}" for name, count in events.items())
    words = f"<p>Numerical events: {told or 'none'}.</p>"
    return Section("chains", "Chains", _table(head, rows) + words + pictures)


def _settings(model: Any) -> Section:
    X, y = plots.training_data(model)
    digest = hashlib.sha256(np.ascontiguousarray(np.column_stack([X, y])).tobytes()).hexdigest()
    settings = {k: v for k, v in model.get_params(deep=False).items() if k not in UNTOLD}
    # So many draws, however it was decided that they are enough: that repeats the fit.
    settings["draws"] = model.diagnostics_.n_draws
    shown = {name: value for name, value in settings.items() if value != _default(model, name)}
    call = ", ".join(f"{name}={value!r}" for name, value in shown.items())
    code = f"model = gplc.{type(model).__name__}({call})\nmodel.fit(X, y)"
    versions = [[name, importlib.metadata.version(name)] for name in PACKAGES]
    system = f"{platform.system()} {platform.machine()}"
    versions += [["Python", platform.python_version()], ["system", system]]
    rows = [[name, repr(value)] for name, value in settings.items()]
    rows += [["seed of the chains", str(model.seed_.entropy)], ["digest of the data", digest[:16]]]
    body = (
        f"<p>To repeat the fit:</p><pre>{html.escape(code)}</pre>"
        "<details><summary>All settings</summary>"
        + _table(["setting", "value"], rows, "plain")
        + "</details><details open><summary>Versions</summary>"
        + _table(["package", "version"], versions, "plain")
        + "</details>"
    )
    return Section("settings", "Settings and versions", body)


def _default(model: Any, name: str) -> Any:
    return type(model)().get_params(deep=False)[name]


SECTIONS: tuple[Callable[[Any], Section | None], ...] = (
    _verdict,
    _data,
    _prediction,
    _noise,
    _shape,
    _calibration,
    _relevance,
    _latent,
    _chains,
    _settings,
)


# --- numbers for the slider -----------------------------------------------------------------


def _places(model: Any) -> int:
    """Positions of the slider: fewer if there are more inputs to choose from."""
    return 41 if model.n_features_in_ == 1 else 21


def _densities(model: Any) -> list[dict[str, Any]]:
    """Densities of y along every input, with what the slider says of each."""
    return [
        _densities_along(model, k, name)
        for k, name in enumerate(plots.feature_names(model)[:MOST_INPUTS])
    ]


def _densities_along(model: Any, feature: int, name: str) -> dict[str, Any]:
    values = plots.grid_of(model, feature, _places(model))
    dist = model.predict_dist(plots.slice_inputs(model, feature, values))
    moments = dist.moments()
    ends = dist.quantile([0.0005, 0.05, 0.95, 0.9995])
    # Every place has a grid of its own: noise may be a hundred times narrower at one place.
    grids = np.linspace(ends[:, 0], ends[:, 3], 101, axis=1)
    densities = dist.pdf(grids)
    z = (grids - moments.mean[:, None]) / moments.std[:, None]
    gaussians = np.exp(-0.5 * z**2) / (np.sqrt(2 * np.pi) * moments.std[:, None])
    places = [
        {
            "at": _short(values[k]),
            "mean": _short(moments.mean[k]),
            "sd": _short(moments.std[k]),
            "skewness": _short(moments.skewness[k]),
            "lower": _short(ends[k, 1]),
            "upper": _short(ends[k, 2]),
            "y": [_short(value) for value in grids[k]],
            "density": [_short(value, 3) for value in densities[k]],
            "gaussian": [_short(value, 3) for value in gaussians[k]],
        }
        for k in range(len(values))
    ]
    low, high = _short(ends[:, 0].min()), _short(ends[:, 3].max())
    return {"name": name, "low": low, "high": high, "places": places}


def _short(value: float, digits: int = 5) -> float:
    return float(f"{value:.{digits}g}")
