"""Can these chains be trusted? R-hat, effective sample sizes, the paper's tau, and a verdict.

Raw latent covariates w_i are never judged: the model is the same under w -> -w, so that chains may
disagree on them and both be right. Sums of squares are.
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import irfft, next_fast_len, rfft

from gplc._types import Array
from gplc.chains import Chain, labels
from gplc.draws import Draws

MOST_RHAT = 1.01
LEAST_ESS = 400.0
# Share of updates that may end in a numerical event before the verdict mentions it.
MOST_EVENTS = 0.01
# The sum of autocorrelations stops at the first lag that is at least this many tau.
CUT_OFF = 5.0


class Row(NamedTuple):
    """What is known of one quantity."""

    mean: float
    sd: float
    mcse: float  # Monte Carlo standard error of the mean
    rhat: float
    ess_bulk: float
    ess_tail: float
    tau: float  # autocorrelation time, in iterations
    tau_cpu: float  # the same in CPU seconds: the paper's tau-tilde


def autocorrelation_time(values: ArrayLike) -> float:
    """The paper's tau = 1 + 2 sum_{i <= k} gamma_i, gamma_i the lag-i autocorrelation.

    The cut-off k is the first lag that is at least five times the sum so far: beyond it
    the estimates are noise around zero.

    Parameters
    ----------
    values : (draws,) or (chains, draws) array-like
        Autocorrelations are averaged over chains, around the mean of all.

    Returns
    -------
    float
        At least one iteration's worth; nan if the values do not vary.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).standard_normal(10_000)
    >>> bool(0.9 < autocorrelation_time(x) < 1.1)
    True
    """
    gamma = autocorrelations(values)
    if not math.isfinite(gamma[0]):
        return math.nan
    sums = 2.0 * np.cumsum(gamma) - 1.0
    beyond = np.flatnonzero(np.arange(sums.size) >= CUT_OFF * sums)
    return float(sums[beyond[0] if beyond.size else -1])


def autocorrelations(values: ArrayLike) -> Array:
    """gamma_0 = 1, gamma_1, ...: averaged over chains, around the mean of all.

    Examples
    --------
    >>> autocorrelations([1.0, -1.0, 1.0, -1.0])[:2].tolist()
    [1.0, -0.75]
    """
    chains = np.atleast_2d(np.asarray(values, dtype=np.float64))
    draws = chains.shape[1]
    centred = chains - chains.mean()
    spectrum = rfft(centred, next_fast_len(2 * draws), axis=1)
    products = irfft(np.abs(spectrum) ** 2, next_fast_len(2 * draws), axis=1)[:, :draws]
    total = products.mean(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return total / total[0] if total[0] > 0.0 else np.full(draws, np.nan)


def judged(draws: Draws) -> dict[str, Array]:
    """The quantities that convergence is judged on: (chains, draws) each.

    Log hyperparameters, the log density, and what the model says of its latent values.
    """
    result = {f"log {name}": draws.theta[:, :, k] for k, name in enumerate(draws.names)}
    result["log_density"] = draws.log_density
    return result | draws.model_class.judged(draws.latent)


def table(draws: Draws, seconds_per_draw: float = math.nan) -> dict[str, Row]:
    """One row for every quantity that is judged; R-hat, ESS and MCSE are arviz-stats' own."""
    return {name: _row(values, seconds_per_draw) for name, values in judged(draws).items()}


def _row(values: Array, seconds_per_draw: float) -> Row:
    if not np.isfinite(values).all():
        # An impossible state among the draws: nothing can be told, which counts as bad.
        return Row(*[math.nan] * len(Row._fields))

    from arviz_stats.base import array_stats  # it takes a second to import: only when needed

    def of(function: str, **settings: object) -> float:
        with np.errstate(all="ignore"):
            answer = getattr(array_stats, function)(values, chain_axis=0, draw_axis=1, **settings)
        return float(answer)

    tau = autocorrelation_time(values)
    short = values.shape[1] < 4  # arviz-stats needs four draws to split a chain in two
    return Row(
        float(values.mean()),
        float(values.std()),
        math.nan if short else of("mcse", method="mean"),
        math.nan if short else of("rhat", method="rank"),
        math.nan if short else of("ess", method="bulk"),
        math.nan if short else of("ess", method="tail", prob=(0.05, 0.95)),
        tau,
        tau * seconds_per_draw,
    )


def converged(rows: Mapping[str, Row]) -> bool:
    """Whether every quantity has R-hat below 1.01 and bulk and tail ESS above 400."""
    return not _unconverged(rows)


def _unconverged(rows: Mapping[str, Row]) -> list[str]:
    # Written so that nan, which says nothing can be told, counts as not converged.
    return [
        name
        for name, row in rows.items()
        if not (row.rhat < MOST_RHAT and row.ess_bulk > LEAST_ESS and row.ess_tail > LEAST_ESS)
    ]


@dataclass(frozen=True)
class Diagnostics:
    """What happened while sampling, and whether to trust it. Prints as a table and a verdict.

    Attributes
    ----------
    rows : dict of str to Row
        R-hat, ESS and the rest, by quantity.
    acceptance : dict of str to float
        Mean share of accepted proposals, by update.
    events : Counter
        Operations and numerical events of all chains.
    seconds : dict of str to float
        CPU seconds of all chains by phase.
    tuned : dict of str to str
        What the samplers of the first chain had learned when warm-up ended.
    n_chains, n_draws : int
        Chains, and draws kept of each.
    stopped : str
        Why sampling stopped, in plain words.
    """

    rows: Mapping[str, Row]
    acceptance: Mapping[str, float]
    events: Counter[str]
    seconds: Mapping[str, float]
    tuned: Mapping[str, str]
    n_chains: int
    n_draws: int
    stopped: str = ""

    def to_record(self) -> dict[str, Any]:
        """All of it in JSON's terms."""
        record = dataclasses.asdict(self)
        record["rows"] = {name: list(row) for name, row in self.rows.items()}
        record["events"] = dict(self.events)
        return record

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Diagnostics":
        """The diagnostics that `to_record` gave."""
        rows = {name: Row(*row) for name, row in record["rows"].items()}
        return cls(**{**record, "rows": rows, "events": Counter(record["events"])})

    def to_frame(self) -> Any:
        """The rows as a pandas data frame, labelled by quantity."""
        import pandas as pd

        return pd.DataFrame.from_dict(
            {name: row._asdict() for name, row in self.rows.items()}, orient="index"
        )

    @property
    def problems(self) -> list[str]:
        """What is wrong and what to do about it; empty if nothing is."""
        found = []
        poor = _unconverged(self.rows)
        if self.n_chains < 2:
            found.append(
                "there is one chain only, so that it cannot be compared with others: use chains=4"
            )
        if poor:
            worst = max(poor, key=lambda name: _badness(self.rows[name]))
            row = self.rows[worst]
            found.append(
                f"{len(poor)} of {len(self.rows)} quantities have not converged (R-hat below "
                f"{MOST_RHAT} and ESS above {LEAST_ESS:.0f} are wanted); worst is {worst}: R-hat "
                f"{row.rhat:.3f}, bulk ESS {row.ess_bulk:.0f}, tail ESS {row.ess_tail:.0f}. "
                'Sample longer (more draws, or draws="auto"); if R-hat stays high, look at the '
                "traces"
            )
        iterations = self.n_chains * self.n_draws
        for event, count in sorted(self.numerical_events.items()):
            if count > MOST_EVENTS * iterations:
                found.append(
                    f"{event}: {count} times in {iterations} iterations. The covariance is close "
                    "to singular: raise the prior mean of noise_sd, or check for repeated rows"
                )
        return found

    @property
    def numerical_events(self) -> dict[str, int]:
        """Events that should be rare, without the counts of ordinary work."""
        signs = ("not positive definite", "drifted", "mended", "exhausted", "beyond limits")
        return {
            event: count
            for event, count in self.events.items()
            if count and any(sign in event for sign in signs)
        }

    @property
    def ok(self) -> bool:
        """Whether there is no problem."""
        return not self.problems

    @property
    def verdict(self) -> str:
        """Fine, or what is wrong and what to do."""
        return "fine" if self.ok else "; ".join(self.problems)

    def __str__(self) -> str:
        width = max(len(name) for name in self.rows)
        lines = [
            f"{self.n_chains} chains of {self.n_draws} draws. {self.stopped}".rstrip(),
            "",
            f"{'':{width}}  {'mean':>10} {'sd':>10} {'mcse':>9} {'R-hat':>6} "
            f"{'bulk':>7} {'tail':>7} {'tau':>7} {'tau CPU s':>9}",
        ]
        for name, row in self.rows.items():
            lines.append(
                f"{name:{width}}  {row.mean:10.4g} {row.sd:10.4g} {row.mcse:9.2g} "
                f"{row.rhat:6.3f} {row.ess_bulk:7.0f} {row.ess_tail:7.0f} {row.tau:7.1f} "
                f"{row.tau_cpu:9.3g}"
            )
        lines.append("")
        rates = ", ".join(f"{name} {rate:.0%}" for name, rate in self.acceptance.items())
        lines.append(f"Accepted: {rates}")
        if self.tuned:
            lines.append("Tuned: " + ", ".join(f"{k} {v}" for k, v in self.tuned.items()))
        times = ", ".join(f"{name} {value:.1f}" for name, value in self.seconds.items())
        lines.append(f"CPU seconds: {times}")
        events = ", ".join(f"{name} {count}" for name, count in self.numerical_events.items())
        lines.append(f"Numerical events: {events or 'none'}")
        lines.append(f"Verdict: {self.verdict}")
        return "\n".join(lines)


def _badness(row: Row) -> float:
    if math.isnan(row.rhat) or math.isnan(row.ess_bulk):
        return math.inf
    return max(row.rhat - 1.0, 0.0) / (MOST_RHAT - 1.0) + LEAST_ESS / max(row.ess_bulk, 1.0)


def diagnose(draws: Draws, chains: Sequence[Chain], stopped: str = "") -> Diagnostics:
    """Diagnostics of a set of chains.

    Parameters
    ----------
    draws : Draws
        Their draws.
    chains : sequence of Chain
        What else they tell: acceptance, events, seconds.
    stopped : str
        Why sampling stopped.

    Returns
    -------
    Diagnostics

    Examples
    --------
    >>> import numpy as np
    >>> from gplc.chains import run_chains
    >>> from gplc.models import Standard
    >>> model = Standard([[0.0], [1.0]], [0.5, -0.5])
    >>> chains = run_chains(model, seed=1, chains=2, draws=20, warmup=5)
    >>> seeds = np.random.SeedSequence(2).spawn(2)
    >>> diagnose(Draws.from_chains(chains, seeds, model, 1), chains).ok
    False
    """
    seconds: Counter[str] = Counter()
    events: Counter[str] = Counter()
    for chain in chains:
        events.update(chain.events)
        for phase, spent in chain.seconds.items():
            seconds[phase] += spent  # type: ignore[assignment]
    n_chains, n_draws = draws.log_density.shape
    per_draw = seconds["draws"] / (n_chains * n_draws)
    scheme = chains[0].position.scheme
    tuned = {
        label: summary
        for label, update in zip(labels(scheme), scheme, strict=True)
        if (summary := _learned(update.sampler))
    }
    acceptance = {
        name: float(np.mean([chain.acceptance[name] for chain in chains]))
        for name in chains[0].acceptance
    }
    return Diagnostics(
        table(draws, per_draw),
        acceptance,
        events,
        dict(seconds),
        tuned,
        n_chains,
        n_draws,
        stopped,
    )


def _learned(sampler: object) -> str:
    """The settings of a sampler that warm-up tunes, in few words."""
    for name in ("step_size", "step_sizes", "width"):
        value = getattr(sampler, name, None)
        if value is not None:
            return f"{name.replace('_', ' ')} {np.median(value):.3g}"
    return ""
