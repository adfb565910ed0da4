"""The page: our numbers beside the paper's, as Markdown and as HTML."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gplc import __version__, _files
from gplc._templates import rendered
from gplc.paper import claims, figures, operations, tables
from gplc.paper.analysis import Laps, Scores
from gplc.paper.claims import Claim
from gplc.paper.settings import DATASETS, METHODS, NAMES, SAMPLER_NAMES, SHORT, Beliefs, Settings

TITLE = "Wang and Neal (2012), again"


@dataclass
class Page:
    """Sections in Markdown, with the folder that tables and figures go to."""

    folder: Path
    blocks: list[str] = field(default_factory=list)
    found: list[Claim] = field(default_factory=list)

    def say(self, *paragraphs: str) -> None:
        """Add paragraphs."""
        self.blocks += paragraphs

    def table(self, table: tables.Table) -> None:
        """Add a table, and write it as CSV."""
        table.write(self.folder)
        self.blocks.append(f"{table.markdown()}\n\n[CSV]({table.name}.csv)")

    def figure(self, figure: figures.Figure, name: str, caption: str) -> None:
        """Add a figure, and write it as PNG and PDF."""
        figures.write(figure, self.folder, name)
        self.blocks.append(f"![{caption}]({name}.png)\n\n*{caption}* [PDF]({name}.pdf)")

    def write(self, settings: Settings, seconds: float) -> Path:
        """Write the page as Markdown and HTML, the claims first."""
        from markdown_it import MarkdownIt

        head = [f"# {TITLE}", *_introduction(settings, seconds)]
        if self.found:
            table = claims.as_table(self.found)
            table.write(self.folder)
            head += ["## Claims", table.markdown()]
        text = "\n\n".join([*head, *self.blocks]) + "\n"
        body = MarkdownIt("commonmark").enable("table").render(text)
        whole = rendered("gplc.paper", "page.html", title=TITLE, body=body)
        for name, content in (("index.md", text), ("index.html", whole)):
            with _files.replacing(self.folder / name) as draft:
                draft.write_text(content, encoding="utf-8")
        return self.folder / "index.html"


def _introduction(settings: Settings, seconds: float) -> list[str]:
    lines = [
        f"Made by gplc {__version__}, seed {settings.seed}. The jobs behind this page took "
        f"{seconds / 60:.0f} minutes of CPU time in all."
    ]
    if settings.quick:
        lines.append(
            "**This is a quick look: few training sets, short chains, a small test set. Its "
            "verdicts mean nothing.**"
        )
    return lines


def add_settings(page: Page, settings: Settings) -> None:
    """What the paper leaves open, and what was chosen."""
    lengths = ", ".join(f"{NAMES[key]} {settings.iterations[key]}" for key in METHODS)
    races = ", ".join(f"{SAMPLER_NAMES[key]} {n}" for key, n in settings.race_iterations.items())
    jitters = ", ".join(
        f"{length:.0%} of these with sigma_J = {jitter:g}"
        for jitter, length in settings.jitters.items()
    )
    rows: list[Sequence[tables.Cell]] = []
    for dataset in DATASETS:
        for method in METHODS:
            for kind, (mean, sd) in Beliefs().priors(method, dataset).items():
                rows.append((dataset, NAMES[method], kind, mean, sd))
    page.say(
        "## Settings",
        f"{settings.sets} training sets of {settings.n_train} cases and one test set of "
        f"{settings.n_test} for each data set; raw scale, c = {Beliefs().constant:g}. Iterations: "
        f"{lengths}; the first quarter is dropped (Metropolis step sizes are tuned there). "
        f"Predictions use {settings.predictive_draws} draws, evenly spaced, and {settings.nodes} "
        f"values of w_* or z_* for each. Samplers of GPLV: {settings.races} runs each on the "
        f"first training set of U1, from the prior mean; iterations: {races} "
        f"({jitters}); the first quarter tunes.",
    )
    page.table(
        tables.Table(
            "priors",
            "Priors: mean and SD of the Gaussian on the logarithm",
            ("data", "model", "hyperparameter", "mean", "SD"),
            rows,
            ("", "", "", ".1f", ".1f"),
        )
    )


def add_performance(page: Page, scores: Scores) -> None:
    """Section 4.2 and the appendix."""
    page.found += claims.about_performance(scores)
    page.say("## Predictive performance")
    page.figure(
        figures.summary(scores),
        "summary",
        "Differences in NLPD between methods, and NLPD above that of the truth.",
    )
    for measure in ("nlpd", "mse"):
        page.table(tables.means(scores, measure))
    page.table(tables.regrets(scores))
    for measure in ("nlpd", "mse"):
        page.table(tables.differences(scores, measure))
    page.table(tables.effort(scores))
    page.say("### Pairwise comparisons")
    for dataset in DATASETS:
        page.figure(
            figures.pairwise(scores, dataset),
            f"pairwise_{dataset}",
            f"{dataset}: pairwise comparison of methods, NLPD left and MSE right. Below the "
            "diagonal ours, above it the paper's; one point for each training set, below the line "
            "if the method of the row has the smaller value.",
        )
    page.say("### The appendix")
    for dataset in DATASETS:
        page.table(tables.appendix(scores, dataset))


def add_samplers(page: Page, by_jitter: Mapping[float, Laps], implied: float) -> None:
    """Section 4.3."""
    page.found += claims.about_samplers(by_jitter, implied)
    page.say("## Samplers of GPLV")
    for jitter, laps in by_jitter.items():
        page.say(f"### sigma_J = {jitter:g}")
        page.table(tables.autocorrelation_times(laps, jitter))
        page.table(tables.autocorrelation_iterations(laps, jitter))
        page.table(tables.speed_ratios(laps, jitter))
        page.table(tables.arrivals(laps, jitter))
        page.figure(
            figures.autocorrelation(laps),
            f"autocorrelation_{jitter:g}",
            f"Autocorrelations of one run of each sampler against CPU time, sigma_J = {jitter:g}.",
        )
        page.figure(
            figures.traces(laps),
            f"traces_{jitter:g}",
            f"From the prior mean on, the same CPU time for all, sigma_J = {jitter:g}. Left: log "
            "density, for the time of 400 iterations of the slice sampler, as in the paper (or of "
            "its tuning, if that is shorter). "
            "Right: the sum of z in a whole run.",
        )


def add_operations(page: Page, counts: Sequence[operations.Count]) -> None:
    """The tables of major operations of sections 3 and 4.3."""
    page.say("## Major operations")
    page.table(tables.operations(counts))


def add_illustrations(page: Page, seed: int) -> None:
    """Figures 1, 2 and 3."""
    page.say("## Illustrations")
    page.figure(
        figures.non_gaussian(),
        "non_gaussian",
        "How GPLC can produce a non-Gaussian distribution of residuals: g(x, w) = (x + w)^2 at "
        "x = 2.",
    )
    page.figure(
        figures.heteroscedasticity(seed),
        "heteroscedasticity",
        "Heteroscedasticity from an unobserved covariate: one function g from the prior.",
    )
    page.figure(
        figures.extreme_value(),
        "extreme_value",
        "Density of the extreme value residual with mean 0 and variance 1.",
    )


def add_sensitivity(page: Page, scores: Mapping[str, Scores]) -> None:
    """Whether conclusions hang on what the paper leaves open."""
    page.found += claims.about_sensitivity(scores)
    sets = next(iter(scores.values())).sets
    page.say(
        "## Sensitivity",
        f"The first {sets} training set(s) of each data set, with what the paper leaves open "
        f"doubled and halved. Chains are of gplc's default schemes, which mix faster, with "
        f"{SHORT:.0%} of the iterations of the main experiment. The latter is one of the rows; so "
        "is another chain of the same settings, which shows the Monte Carlo error of one fit.",
    )
    page.figure(
        figures.sensitivity(scores), "sensitivity", "Mean differences in NLPD, settings changed."
    )
    page.table(tables.sensitivity(scores))
    page.table(tables.sensitivity_levels(scores))
