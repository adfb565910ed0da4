"""Tables: values once, shown as Markdown and written as CSV."""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gplc import _files
from gplc.paper import published
from gplc.paper.analysis import (
    Array,
    Laps,
    Scores,
    arrival,
    equilibrium,
    lost,
    paired,
    published_regret,
    standard_error,
)
from gplc.paper.experiments import QUANTITIES
from gplc.paper.operations import Count
from gplc.paper.settings import DATASETS, METHODS, NAMES, SAMPLER_NAMES, SAMPLERS

Cell = str | int | float

PAIRS = (("gplc", "std"), ("gplv", "std"), ("gplc", "gplv"))


@dataclass(frozen=True)
class Table:
    """A table with a name for its file, a caption, and a format for each column of numbers.

    Examples
    --------
    >>> print(Table("t", "Two", ("a", "b"), [("x", 0.5)], ("", ".2f")).markdown())
    **Two**
    <BLANKLINE>
    | a | b |
    | --- | --- |
    | x | 0.50 |
    """

    name: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    formats: Sequence[str]

    def markdown(self) -> str:
        """The table as Markdown."""
        lines = [
            f"**{self.caption}**",
            "",
            _line(self.columns),
            _line(["---"] * len(self.columns)),
        ]
        for row in self.rows:
            lines.append(_line([_shown(*pair) for pair in zip(row, self.formats, strict=True)]))
        return "\n".join(lines)

    def write(self, folder: Path) -> None:
        """The values, unrounded, as CSV."""
        with (
            _files.replacing(folder / f"{self.name}.csv") as draft,
            draft.open("w", newline="", encoding="utf-8") as file,
        ):
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows(self.rows)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _shown(value: Cell, form: str) -> str:
    if isinstance(value, str):
        return value
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return "never"
    return format(value, form)


# --- predictive performance -----------------------------------------------------------------


def appendix(scores: Scores, dataset: str) -> Table:
    """One table of the appendix: ours, then theirs, a row for each training set."""
    columns = ["set"]
    for who in ("ours", "paper"):
        for measure in ("NLPD", "MSE"):
            columns += [f"{measure} {NAMES[method]} ({who})" for method in METHODS]
    ours = np.hstack([scores.nlpd[dataset], scores.mse[dataset]])
    # Their training sets are others: rows stand side by side to be read, not to be compared.
    theirs = np.full_like(ours, np.nan)
    rows = min(len(ours), 10)
    theirs[:rows] = published.APPENDIX[dataset][:rows]
    body: list[list[Cell]] = [
        [str(number), *mine.tolist(), *printed.tolist()]
        for number, (mine, printed) in enumerate(zip(ours, theirs, strict=True), start=1)
    ]
    printed_all = published.APPENDIX[dataset]
    body.append(["mean", *ours.mean(axis=0).tolist(), *printed_all.mean(axis=0).tolist()])
    body.append(["s.e.", *_errors(ours), *_errors(printed_all)])
    forms = [".4f"] * 12
    return Table(
        f"appendix_{dataset}",
        f"Appendix, {dataset}: NLPD and MSE (NLPD of the truth on our test set: "
        f"{scores.oracle[dataset]:.4f})",
        columns,
        body,
        ["", *forms],
    )


def _errors(values: Array) -> list[float]:
    return [standard_error(column) for column in values.T]


def means(scores: Scores, measure: str) -> Table:
    """Mean NLPD or MSE of every method on every data set, ours and theirs."""
    digits = ".3f" if measure == "nlpd" else ".4f"
    rows: list[list[Cell]] = []
    for dataset in DATASETS:
        ours = scores.of(measure)[dataset]
        theirs = (published.nlpd if measure == "nlpd" else published.mse)(dataset)
        row: list[Cell] = [dataset]
        for place in range(len(METHODS)):
            row += [
                float(ours[:, place].mean()),
                standard_error(ours[:, place]),
                float(theirs[:, place].mean()),
            ]
        rows.append(row)
    columns = ["data"]
    for method in METHODS:
        columns += [NAMES[method], "s.e.", "paper"]
    return Table(
        f"mean_{measure}",
        f"Mean {measure.upper()} over training sets",
        columns,
        rows,
        ["", *[digits] * 9],
    )


def regrets(scores: Scores) -> Table:
    """NLPD above that of the truth, ours and theirs."""
    rows: list[list[Cell]] = []
    for dataset in DATASETS:
        row: list[Cell] = [dataset, scores.oracle[dataset], published.ORACLE[dataset]]
        for ours, theirs in zip(scores.regret(dataset), published_regret(dataset), strict=True):
            row += [float(ours), float(theirs)]
        rows.append(row)
    columns = ["data", "truth, our test set", "truth, expected"]
    for method in METHODS:
        columns += [NAMES[method], "paper"]
    return Table(
        "regret",
        "Regret: mean NLPD minus that of the true density (the paper's against its expectation)",
        columns,
        rows,
        ["", *[".3f"] * 8],
    )


def differences(scores: Scores, measure: str) -> Table:
    """Paired differences and win counts, ours and theirs."""
    rows: list[list[Cell]] = []
    for dataset in DATASETS:
        theirs = (published.nlpd if measure == "nlpd" else published.mse)(dataset)
        for first, second in PAIRS:
            mine = paired(scores.of(measure)[dataset], first, second)
            printed = paired(theirs, first, second)
            rows.append(
                [
                    dataset,
                    f"{NAMES[first]} - {NAMES[second]}",
                    mine.mean,
                    mine.error,
                    f"{mine.wins} of {mine.sets}",
                    printed.mean,
                    printed.error,
                    f"{printed.wins} of {printed.sets}",
                ]
            )
    digits = "+.3f" if measure == "nlpd" else "+.4f"
    errors = digits[1:]
    return Table(
        f"differences_{measure}",
        f"Paired differences in {measure.upper()}; a win is a training set on which the first "
        "method has the smaller value",
        ("data", "methods", "mean", "s.e.", "wins", "paper: mean", "s.e.", "wins"),
        rows,
        ("", "", digits, errors, "", digits, errors, ""),
    )


def effort(scores: Scores) -> Table:
    """CPU time and effective draws of the fits."""
    rows: list[list[Cell]] = []
    for dataset in DATASETS:
        row: list[Cell] = [dataset]
        for place in range(len(METHODS)):
            row += [
                float(scores.seconds[dataset][:, place].mean()),
                float(np.median(scores.effective[dataset][:, place])),
            ]
        rows.append(row)
    columns = ["data"]
    for method in METHODS:
        columns += [f"{NAMES[method]}: CPU s", "effective draws"]
    return Table(
        "effort",
        "Mean CPU time of a fit with its predictions, and the median over training sets of the "
        "effective draws of the quantity that mixes worst",
        columns,
        rows,
        ["", *[".1f", ".0f"] * len(METHODS)],
    )


# --- samplers of GPLV -----------------------------------------------------------------------


def autocorrelation_times(laps: Laps, jitter: float) -> Table:
    """The paper's table of adjusted autocorrelation times, ours and theirs."""
    rows: list[list[Cell]] = []
    away = lost(laps)
    for sampler in SAMPLERS:
        lap = laps[sampler]
        times, short = lap.tau_cpu().mean(axis=0), lap.too_short()
        cells = [
            f"> {time:.3g}" if bound else f"{time:.3g}"
            for time, bound in zip(times, short, strict=True)
        ]
        if sampler in away:
            cells = ["not there"] * len(QUANTITIES)
        rows.append([SAMPLER_NAMES[sampler], "CPU s", *cells])
        if sampler in published.AUTOCORRELATION_TIMES:
            printed = published.AUTOCORRELATION_TIMES[sampler]
            rows.append(["", "paper", *(f"{time:.2f}" for time in printed)])
    return Table(
        f"autocorrelation_cpu_{jitter:g}",
        f"Autocorrelation times adjusted for computation time, sigma_J = {jitter:g} (mean of the "
        "runs; >: the runs are shorter than 20 times that; not there: most runs had not reached "
        "the posterior when tuning ended)",
        ("sampler", "unit", *QUANTITIES),
        rows,
        [""] * (2 + len(QUANTITIES)),
    )


def autocorrelation_iterations(laps: Laps, jitter: float) -> Table:
    """Autocorrelation times in iterations, and what an iteration costs."""
    rows: list[list[Cell]] = []
    away = lost(laps)
    for sampler in SAMPLERS:
        lap = laps[sampler]
        taus = lap.tau().mean(axis=0)
        if sampler in away:
            taus = np.full_like(taus, np.nan)
        rows.append(
            [
                SAMPLER_NAMES[sampler],
                lap.values.shape[1],
                1e3 * lap.cost,
                lap.evaluations,
                lap.acceptance,
                *taus.tolist(),
            ]
        )
    return Table(
        f"autocorrelation_iterations_{jitter:g}",
        f"The same in iterations, without CPU time, and what an iteration costs, "
        f"sigma_J = {jitter:g}",
        (
            "sampler",
            "iterations a run",
            "CPU ms an iteration",
            "likelihoods for z",
            "moves accepted",
            *QUANTITIES,
        ),
        rows,
        ("", "d", ".2f", ".0f", ".1%", *[".1f"] * len(QUANTITIES)),
    )


def speed_ratios(laps: Laps, jitter: float) -> Table:
    """How many times longer than modified Metropolis the others take."""
    rows: list[list[Cell]] = []
    base = laps["paper"]
    for sampler in (name for name in SAMPLERS[1:] if name not in lost(laps)):
        lap = laps[sampler]
        in_iterations = lap.tau().mean(axis=0) / base.tau().mean(axis=0)
        in_seconds = lap.tau_cpu().mean(axis=0) / base.tau_cpu().mean(axis=0)
        name = SAMPLER_NAMES[sampler]
        rows.append([name, "CPU time", *in_seconds.tolist()])
        rows.append([name, "iterations", *in_iterations.tolist()])
        if sampler in published.AUTOCORRELATION_TIMES:
            printed = np.array(published.AUTOCORRELATION_TIMES[sampler])
            printed = printed / np.array(published.AUTOCORRELATION_TIMES["paper"])
            rows.append([name, "paper, CPU time", *printed.tolist()])
    return Table(
        f"autocorrelation_ratios_{jitter:g}",
        f"Autocorrelation times relative to modified Metropolis, sigma_J = {jitter:g} (above 1: "
        "slower than it)",
        ("sampler", "in", *QUANTITIES),
        rows,
        ("", "", *[".3g"] * len(QUANTITIES)),
    )


def arrivals(laps: Laps, jitter: float) -> Table:
    """Time from the prior mean to equilibrium."""
    within = equilibrium(laps)
    rows: list[list[Cell]] = []
    for sampler in SAMPLERS:
        times = arrival(laps[sampler], within)
        rows.append(
            [
                SAMPLER_NAMES[sampler],
                float(np.median(times.seconds)),
                float(times.seconds.max()),
                float(np.median(times.iterations)),
                float(laps[sampler].times()[-1]),
            ]
        )
    return Table(
        f"arrival_{jitter:g}",
        f"From the prior mean until the sum of z first lies where 95% of it does "
        f"({within[0]:.0f} to {within[1]:.0f}), sigma_J = {jitter:g}",
        (
            "sampler",
            "CPU s (median run)",
            "CPU s (slowest run)",
            "iterations (median run)",
            "CPU s of a whole run",
        ),
        rows,
        ("", ".2f", ".2f", ".0f", ".1f"),
    )


# --- operations -----------------------------------------------------------------------------


def operations(counts: Sequence[Count]) -> Table:
    """What one iteration does, counted while it ran, beside the paper's formulas."""
    return Table(
        "operations",
        "Major operations of one iteration, counted by the program",
        ("model", "scheme", "p", "update of", "updates", "evaluations", "operations", "paper"),
        [
            (
                count.model,
                count.scheme,
                count.p,
                count.part,
                count.updates,
                count.evaluations,
                count.operations,
                count.printed,
            )
            for count in counts
        ],
        ("", "", "d", "", ".0f", ".0f", "", ""),
    )


# --- sensitivity ----------------------------------------------------------------------------


def sensitivity(scores: Mapping[str, Scores]) -> Table:
    """Mean differences in NLPD on the same training sets under every variant."""
    rows: list[list[Cell]] = []
    for variant, its in scores.items():
        for first, second in PAIRS:
            row: list[Cell] = [variant, f"{NAMES[first]} - {NAMES[second]}"]
            for dataset in DATASETS:
                row.append(paired(its.nlpd[dataset], first, second).mean)
            rows.append(row)
    return Table(
        "sensitivity",
        "Mean differences in NLPD when what the paper leaves open is doubled or halved",
        ("settings", "methods", *DATASETS),
        rows,
        ("", "", *["+.3f"] * len(DATASETS)),
    )


def sensitivity_levels(scores: Mapping[str, Scores]) -> Table:
    """Mean change in NLPD of each method under every variant, against the settings chosen."""
    base = scores["as chosen"]
    rows: list[list[Cell]] = []
    for variant, its in scores.items():
        if variant == "as chosen":
            continue
        row: list[Cell] = [variant]
        for place in range(len(METHODS)):
            row += [
                float((its.nlpd[dataset] - base.nlpd[dataset])[:, place].mean())
                for dataset in DATASETS
            ]
        rows.append(row)
    columns = ["settings", *(f"{NAMES[m]} {dataset}" for m in METHODS for dataset in DATASETS)]
    return Table(
        "sensitivity_levels",
        "Mean change in NLPD of each method against the settings chosen",
        columns,
        rows,
        ["", *["+.3f"] * len(METHODS) * len(DATASETS)],
    )
