"""Can these chains be trusted? R-hat, effective sample sizes, the paper's tau, and a verdict.

What is judged is what people look at: predictions at a few rows, besides the hyperparameters and
the log density. Latent covariates w_i are not: the model is the same under w -> -w, so that
chains may disagree on them and both be right.
"""

import dataclasses
import functools
import itertools
import math
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import irfft, next_fast_len, rfft

from gplc import _html
from gplc._types import Array
from gplc.chains import Chain, labels
from gplc.draws import Draws
from gplc.models.landmarks import KINDS, TAILS

MOST_RHAT = 1.01
LEAST_ESS = 400.0
# With these, predictions can be used: their Monte Carlo error is at most a tenth of their SD.
USABLE_RHAT = 1.05
USABLE_ESS = 100.0
# Shape k of the tail of importance weights: below the first they have a variance, and beyond the
# second nothing can be said.
FINE_K, USABLE_K = 0.5, 0.7
# Share of updates that may end in a numerical event before the verdict mentions it.
MOST_EVENTS = 0.01
# A probability with a smaller SD over the draws is the same in all, whatever its digits do.
LEAST_SPREAD = 1e-3
# Beyond it a sum of squares may overflow.
LARGEST = 1e150
# Between the kind of a quantity and the row it is about, in its name.
AT_ROW = " at row "
# Chains are in different modes if R-hat - 1 is so large, and so many times smaller within groups.
LEAST_APART, CLEARER = 0.1, 4.0
# Predictions of modes agree if they are less than so many SDs apart.
SAME_PREDICTIONS = 0.5
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

    @property
    def fine(self) -> bool:
        """R-hat below 1.01, bulk and tail ESS above 400; nan, which tells nothing, is not fine."""
        return self.rhat < MOST_RHAT and self.ess_bulk > LEAST_ESS and self.ess_tail > LEAST_ESS

    @property
    def usable(self) -> bool:
        """R-hat below 1.05, bulk and tail ESS above 100."""
        return (
            self.rhat < USABLE_RHAT and self.ess_bulk > USABLE_ESS and self.ess_tail > USABLE_ESS
        )

    @property
    def badness(self) -> float:
        """The larger, the farther from fine: to find the worst of several."""
        effective = min(self.ess_bulk, self.ess_tail)
        if math.isnan(self.rhat) or math.isnan(effective):
            return math.inf
        return max(self.rhat - 1.0, 0.0) / (MOST_RHAT - 1.0) + LEAST_ESS / max(effective, 1.0)


class Level(StrEnum):
    """The verdict in three levels."""

    FINE = "fine"
    USABLE = "usable"
    DO_NOT_USE = "do not use"


class Advice(NamedTuple):
    """What to do next, in the language that the reader is using."""

    longer: str  # {draws} is how many
    chains: str
    noise: str

    @classmethod
    def in_shell(cls, fit: str) -> "Advice":
        """For somebody at the command line, who has a file with the fit."""
        name = shlex.quote(fit)
        return cls(
            f"gplc resume {name}",
            "gplc fit ... --chains 4",
            "gplc fit ... --prior noise_sd=0.4,2.7, or look for repeated rows",
        )


IN_PYTHON = Advice(
    "model.extend({draws})",
    "fit again with chains=4",
    'fit again with priors={"noise_sd": (-1.0, 1.0)}, or look for repeated rows',
)
# Numbers of draws that are advised are rounded up to the next of these steps, with a margin.
DRAWS_STEP, DRAWS_MARGIN = 500, 1.2


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

    Log hyperparameters, the log density, and what people look at: mean, log SD and tails of a new
    y at the landmarks of the model. A tail whose probability is the same in all draws, to three
    digits, is left out.
    """
    result = {f"log {name}": draws.theta[:, :, k] for k, name in enumerate(draws.names)}
    result["log_density"] = draws.log_density
    for kind, values in zip(KINDS, np.moveaxis(draws.judged, 2, 0), strict=False):
        for row, series in zip(draws.landmarks, np.moveaxis(values, 2, 0), strict=False):
            if not (kind in TAILS and series.size and series.std() < LEAST_SPREAD):
                result[f"{kind}{AT_ROW}{row}"] = series
    return result


def table(draws: Draws, seconds_per_draw: float = math.nan) -> dict[str, Row]:
    """One row for every quantity that is judged; R-hat, ESS and MCSE are arviz-stats' own."""
    series = judged(draws)
    values = np.stack(list(series.values()), axis=-1)
    # With an impossible state among the draws nothing can be told, which counts as bad; nor of
    # numbers whose squares are no numbers.
    told = (np.abs(values) < LARGEST).all(axis=(0, 1))
    columns = np.full((len(Row._fields), told.size), np.nan)
    columns[:, told] = _columns(values[:, :, told], seconds_per_draw)
    return dict(zip(series, map(Row._make, columns.T.tolist()), strict=True))


def _columns(values: Array, seconds_per_draw: float) -> Array:
    """The numbers of a `Row`, for finite series (chains, draws, quantities): a column for each."""
    from arviz_stats.base import array_stats  # it takes a second to import: only when needed

    def of(function: str, **settings: object) -> Array:
        if values.shape[1] < 4 or values.shape[2] == 0:  # four draws make two halves of a chain
            return np.full(values.shape[2], np.nan)
        with np.errstate(all="ignore"):
            answer = getattr(array_stats, function)(values, chain_axis=0, draw_axis=1, **settings)
        return np.asarray(answer, dtype=np.float64)

    tau = np.array([autocorrelation_time(series) for series in np.moveaxis(values, 2, 0)])
    return np.array(
        [
            values.mean(axis=(0, 1)),
            values.std(axis=(0, 1)),
            of("mcse", method="mean"),
            of("rhat", method="rank"),
            of("ess", method="bulk"),
            of("ess", method="tail", prob=(0.05, 0.95)),
            tau,
            tau * seconds_per_draw,
        ]
    )


def worst_rhat(draws: Draws) -> float:
    """The largest R-hat of all that is judged, of split chains but without ranks: a quick look.

    Examples
    --------
    >>> import numpy as np
    >>> theta = np.random.default_rng(0).standard_normal((2, 100, 1))
    >>> empty = np.empty((2, 100, 0))
    >>> draws = Draws(("noise_sd",), theta, empty, theta[:, :, 0], empty[..., None], empty)
    >>> round(worst_rhat(draws), 2)
    1.0
    """
    return float(np.max(_plain_rhat(np.stack(list(judged(draws).values()), axis=-1))))


def _plain_rhat(values: Array) -> Array:
    """R-hat of split chains (chains, draws, quantities), each in its own units: (quantities,)."""
    half = values.shape[1] // 2
    if half < 2:
        return np.full(values.shape[2], np.nan)
    split = np.concatenate([values[:, :half], values[:, -half:]])
    with np.errstate(all="ignore"):
        within = split.var(axis=1, ddof=1).mean(axis=0)
        between = split.mean(axis=1).var(axis=0, ddof=1)
        return np.sqrt((half - 1) / half + between / within)


class Modes(NamedTuple):
    """Chains in different modes: groups that agree within themselves and not with each other."""

    groups: tuple[tuple[int, ...], ...]  # numbers of the chains of each, from 0
    gap: float  # how far apart predictions of two groups are at most, in SDs within groups
    worst: str  # the prediction that is so far apart
    # The largest R-hat of anything that is compared; nan in files from before it was kept.
    within: float = math.nan  # of the chains of a group
    overall: float = math.nan  # of all chains

    @property
    def agree(self) -> bool:
        """Whether the groups predict the same, more or less."""
        return self.gap < SAME_PREDICTIONS

    def __str__(self) -> str:
        chains = [", ".join(str(number + 1) for number in group) for group in self.groups]
        kept = f"; R-hat {self.within:.2f} within them, {self.overall:.2f} over all"
        which = f"{' against '.join(chains)}{kept if self.within < math.inf else ''}"
        told = f"the chains are in {len(self.groups)} modes ({which})"
        if not self.worst:
            return told
        if self.agree:
            return f"{told}, whose predictions agree within {self.gap:.0%} of their SD"
        return f"{told}, whose predictions differ, {self.worst} by {self.gap:.1f} SD"


def find_modes(draws: Draws) -> Modes | None:
    """Groups of chains in different modes, or None: then chains that disagree are slow.

    Beginning with single chains, the two groups that agree best become one, again and again. If
    R-hat (less 1) is at least four times smaller within some groups than over all chains, these
    are modes. Chains that are slow disagree with their own halves too, and no grouping helps
    (unless they are so slow that they hardly move in the whole run: nobody can tell that from
    modes). Compared are all quantities that are judged, and the signature of the model.

    Examples
    --------
    >>> import numpy as np
    >>> theta = np.random.default_rng(0).standard_normal((4, 200, 1))
    >>> theta[::2] += 5.0
    >>> empty = np.empty((4, 200, 0))
    >>> draws = Draws(("noise_sd",), theta, empty, theta[:, :, 0], empty[..., None], empty)
    >>> find_modes(draws).groups
    ((0, 2), (1, 3))
    """
    series = judged(draws)
    values = np.concatenate(
        [np.stack(list(series.values()), axis=-1), relative_signature(draws)], axis=-1
    )
    values = values[:, :, np.isfinite(values).all(axis=(0, 1))]
    if values.shape[0] < 2 or values.shape[1] < 4 or values.shape[2] == 0:
        return None
    *finer, (overall, _) = _partitions(values)
    apart = [found for found in finer if CLEARER * found[0] <= overall]
    if overall < LEAST_APART or not apart:
        return None
    within, groups = apart[-1][0], tuple(sorted(apart[-1][1]))
    gaps = {name: _gap(each, groups) for name, each in series.items() if AT_ROW in name}
    worst = max(gaps, key=lambda name: gaps[name], default="")
    return Modes(groups, gaps.get(worst, math.nan), worst, 1.0 + within, 1.0 + overall)


def relative_signature(draws: Draws) -> Array:
    """The signature, with signs relative to the landmark where it is largest: (chains, draws, s).

    The model is the same if all signs change, and chains change them all the time. A landmark
    whose values change sign has been mirrored relative to that one.

    Examples
    --------
    >>> import numpy as np
    >>> kept = np.zeros((1, 2, 5, 2))
    >>> kept[0, :, 4] = [[1.0, 3.0], [1.0, -3.0]]
    >>> empty, density = np.empty((1, 2, 0)), np.zeros((1, 2))
    >>> relative_signature(Draws((), empty, empty, density, kept, empty)).tolist()
    [[[1.0, 3.0], [-1.0, 3.0]]]
    """
    signature = draws.judged[:, :, len(KINDS) :]
    if signature.size == 0:
        return np.empty((*draws.log_density.shape, 0))
    with np.errstate(over="ignore"):
        largest = np.argmax(np.mean(np.abs(signature), axis=(0, 1)), axis=-1)
    reference = np.take_along_axis(signature, largest[None, None, :, None], axis=-1)
    return (signature * np.sign(reference)).reshape(*draws.log_density.shape, -1)


def _partitions(values: Array) -> Iterator[tuple[float, list[tuple[int, ...]]]]:
    """Ever fewer groups of chains, from single ones to all, and the worst R-hat - 1 in a group."""

    @functools.cache
    def excess(group: tuple[int, ...]) -> float:
        found = _plain_rhat(values[list(group)]) - 1.0
        return float(np.max(found, where=~np.isnan(found), initial=0.0))

    groups: list[tuple[int, ...]] = [(number,) for number in range(values.shape[0])]
    while True:
        yield max(map(excess, groups)), groups
        if len(groups) == 1:
            return
        pairs = itertools.combinations(groups, 2)
        one, other = min(pairs, key=lambda pair: excess(tuple(sorted(pair[0] + pair[1]))))
        rest = [group for group in groups if group not in (one, other)]
        groups = [*rest, tuple(sorted(one + other))]


def _gap(values: Array, groups: Sequence[Sequence[int]]) -> float:
    """The largest difference between means of two groups, in SDs within groups."""
    each = [values[list(group)] for group in groups]
    with np.errstate(all="ignore"):
        means = [float(group.mean()) for group in each]
        sd = math.sqrt(np.mean([group.var() for group in each]))
    return (max(means) - min(means)) / sd if sd > 0.0 else math.nan


def converged(rows: Mapping[str, Row]) -> bool:
    """Whether every quantity has R-hat below 1.01 and bulk and tail ESS above 400."""
    return all(row.fine for row in rows.values())


class Weighed(NamedTuple):
    """How good the draws of the fast method are (`gplc.fast`)."""

    k: float  # shape of the tail of the importance weights
    effective: float  # candidates that the weights leave
    candidates: int
    settled: bool  # whether short chains made the draws, for k was too large

    @property
    def fine(self) -> bool:
        """Weights have a variance, and leave enough."""
        return self.k < FINE_K and self.effective > LEAST_ESS

    @property
    def usable(self) -> bool:
        """Weights can be trusted (min(1 - 1 / log10(candidates), 0.7)), and leave some."""
        most = min(1.0 - 1.0 / math.log10(max(self.candidates, 11)), USABLE_K)
        return self.k < most and self.effective > USABLE_ESS

    def __str__(self) -> str:
        if not self.candidates:
            return "A first answer by short chains, for this model has no Gaussian to begin with"
        how = "short chains from around the mode" if self.settled else "a Gaussian around the mode"
        return (
            f"A first answer by {how}: of {self.candidates} candidates the weights leave "
            f"{self.effective:.0f}, k {self.k:.2f}"
        )


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
    modes : Modes, optional
        Groups of chains in different modes, if something has not converged for that reason.
    weighed : Weighed, optional
        How good the draws are, if they are those of the fast method.
    """

    rows: Mapping[str, Row]
    acceptance: Mapping[str, float]
    events: Counter[str]
    seconds: Mapping[str, float]
    tuned: Mapping[str, str]
    n_chains: int
    n_draws: int
    stopped: str = ""
    modes: Modes | None = None
    weighed: Weighed | None = None

    def to_record(self) -> dict[str, Any]:
        """All of it in JSON's terms."""
        record = dataclasses.asdict(self)
        record["rows"] = {name: list(row) for name, row in self.rows.items()}
        record["events"] = dict(self.events)
        record["modes"] = None if self.modes is None else self.modes._asdict()
        record["weighed"] = None if self.weighed is None else list(self.weighed)
        return record

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Diagnostics":
        """The diagnostics that `to_record` gave."""
        rows = {name: Row(*row) for name, row in record["rows"].items()}
        modes = record["modes"]
        if modes is not None:
            groups = tuple(tuple(group) for group in modes["groups"])
            modes = Modes(**{**modes, "groups": groups})
        events = Counter(record["events"])
        weighed = None if record.get("weighed") is None else Weighed(*record["weighed"])
        told = {"rows": rows, "events": events, "modes": modes, "weighed": weighed}
        return cls(**{**record, **told})

    def to_frame(self) -> Any:
        """The rows as a pandas data frame, labelled by quantity."""
        import pandas as pd

        return pd.DataFrame.from_dict(
            {name: row._asdict() for name, row in self.rows.items()}, orient="index"
        )

    @property
    def predictions(self) -> dict[str, Row]:
        """The rows that are about predictions; all rows if none is."""
        found = {name: row for name, row in self.rows.items() if AT_ROW in name}
        return found or dict(self.rows)

    @property
    def prediction_error(self) -> float:
        """Monte Carlo error of predictions, in SDs of their posterior: the largest there is.

        With m effective draws it is 1 / sqrt(m). It is what another run would change.
        """
        rows = self.predictions.values()
        errors = [row.mcse / row.sd if row.sd > 0.0 else math.nan for row in rows]
        return max(errors) if errors and not any(map(math.isnan, errors)) else math.nan

    @property
    def level(self) -> Level:
        """Fine, usable (for predictions), or do not use.

        Fine: two or more chains, all that is judged has R-hat below 1.01 and bulk and tail ESS
        above 400, and numerical events are rare. Usable: predictions have R-hat below 1.05 and
        ESS above 100. Hyperparameters of a fit that is usable may not have converged.
        """
        if self._by_weights is not None:
            if self._by_weights.fine:
                return Level.FINE
            return Level.USABLE if self._by_weights.usable else Level.DO_NOT_USE
        if not self.problems:
            return Level.FINE
        usable = all(row.usable for row in self.predictions.values())
        return Level.USABLE if usable else Level.DO_NOT_USE

    @property
    def problems(self) -> list[str]:
        """What keeps the fit from being fine, in sentences without their full stops."""
        if self._by_weights is not None:
            if self._by_weights.fine:
                return []
            return [
                f"The Gaussian is not close to the posterior (k below {FINE_K} and more than "
                f"{LEAST_ESS:.0f} left would be fine, k below {USABLE_K} usable)"
            ]
        found = []
        poor = [name for name, row in self.rows.items() if not row.fine]
        if self.n_chains < 2:
            found.append("There is one chain only, which cannot be compared with others")
        if poor:
            worst = max(poor, key=lambda name: self.rows[name].badness)
            row = self.rows[worst]
            found.append(
                f"{len(poor)} of {len(self.rows)} quantities {'is' if len(poor) == 1 else 'are'} "
                "not fine (R-hat below "
                f"{MOST_RHAT} and ESS above {LEAST_ESS:.0f} would be); worst is {worst}: R-hat "
                f"{row.rhat:.3f}, bulk ESS {row.ess_bulk:.0f}, tail ESS {row.ess_tail:.0f}"
            )
            if self.n_chains > 1:
                found.append(
                    "The chains are slow rather than apart"
                    if self.modes is None
                    else _sentence(str(self.modes))
                )
        found += [
            f"{_sentence(event)}: {count} times in {self.n_chains * self.n_draws} iterations, "
            "for the covariance is close to singular"
            for event, count in self._frequent_events.items()
        ]
        return found

    @property
    def _by_weights(self) -> Weighed | None:
        """What the weights say, if draws are judged by these; chains are judged as chains."""
        return None if self.weighed is None or self.weighed.settled else self.weighed

    @property
    def _frequent_events(self) -> dict[str, int]:
        least = MOST_EVENTS * self.n_chains * self.n_draws
        return {k: count for k, count in sorted(self.numerical_events.items()) if count > least}

    def next_step(self, advice: Advice = IN_PYTHON) -> str:
        """What to do, in Python by default; empty if the fit is fine."""
        steps = []
        if self.weighed is not None:
            return "" if self.ok else advice.longer.format(draws=DRAWS_STEP)
        if not converged(self.rows):
            steps.append(advice.longer.format(draws=self._more_draws))
        if self.n_chains < 2:
            steps.append(advice.chains)
        if self._frequent_events:
            steps.append(advice.noise)
        return "; ".join(steps)

    @property
    def _more_draws(self) -> int:
        """Draws to add to each chain, if R-hat and ESS go on as they did: at most ten times."""
        rows = self.rows.values()
        factors = [(row.rhat - 1.0) / (MOST_RHAT - 1.0) for row in rows]
        factors += [LEAST_ESS / max(min(row.ess_bulk, row.ess_tail), 1.0) for row in rows]
        factor = max((each for each in factors if math.isfinite(each)), default=1.0)
        more = (min(DRAWS_MARGIN * max(factor, 1.0), 11.0) - 1.0) * self.n_draws
        return DRAWS_STEP * max(1, math.ceil(more / DRAWS_STEP))

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
        """Whether the fit is fine."""
        return self.level is Level.FINE

    @property
    def verdict(self) -> str:
        """The level, the Monte Carlo error of predictions, what is wrong and what to do."""
        return self.verdict_for(IN_PYTHON)

    def verdict_for(self, advice: Advice) -> str:
        """The verdict, with the next step in the language of the reader.

        Examples
        --------
        >>> row = Row(0.0, 1.0, 0.02, 1.004, 2500.0, 2500.0, 1.0, 1.0)
        >>> rows = {"f(x) at row 3": row}
        >>> Diagnostics(rows, {}, Counter(), {}, {}, 4, 1000).verdict
        'fine. The Monte Carlo error of predictions is at most 2% of their SD.'
        """
        error = self.prediction_error
        told = [] if self.weighed is None else [str(self.weighed)]
        if not math.isnan(error):
            share = f"{100.0 * error:.2g}%"
            told.append(f"The Monte Carlo error of predictions is at most {share} of their SD")
        sentences = [str(self.level), *told, *self.problems]
        # No full stop after a command: it would be copied with it.
        step = self.next_step(advice)
        return " ".join(f"{each}." for each in sentences) + (f" Next: {step}" if step else "")

    @property
    def leading(self) -> dict[str, str]:
        """What is shown, by its title: every single quantity, and the worst row of each kind.

        Examples
        --------
        >>> poor, good = Row(0, 1, 0, 1.1, 50, 50, 1, 1), Row(0, 1, 0, 1.0, 500, 500, 1, 1)
        >>> rows = {"log_density": good, "f(x) at row 3": good, "f(x) at row 7": poor}
        >>> Diagnostics(rows, {}, Counter(), {}, {}, 4, 1000).leading
        {'log_density': 'log_density', 'f(x), worst of 2': 'f(x) at row 7'}
        """
        kinds: dict[str, list[str]] = {}
        for name in self.rows:
            kinds.setdefault(name.partition(AT_ROW)[0], []).append(name)
        return {
            kind if names == [kind] else f"{kind}, worst of {len(names)}": max(
                names, key=lambda name: self.rows[name].badness
            )
            for kind, names in kinds.items()
        }

    def __str__(self) -> str:
        return self.told(IN_PYTHON)

    def _repr_html_(self) -> str:
        size = f"{self.n_chains} chains of {self.n_draws} draws. {self.stopped}".rstrip()
        rows = [
            [
                title,
                row.mean,
                row.sd,
                f"{row.rhat:.3f}",
                f"{row.ess_bulk:.0f}",
                f"{row.ess_tail:.0f}",
            ]
            for title, row in ((title, self.rows[name]) for title, name in self.leading.items())
        ]
        head = ["", "mean", "sd", "R-hat", "bulk ESS", "tail ESS"]
        return _html.sentences(f"Verdict: {self.verdict}", size) + _html.table(head, rows)

    def told(self, advice: Advice) -> str:
        """The table and the verdict, with the next step in the language of the reader."""
        leading = self.leading
        width = max(map(len, leading))
        lines = [
            f"{self.n_chains} chains of {self.n_draws} draws. {self.stopped}".rstrip(),
            "",
            f"{'':{width}}  {'mean':>10} {'sd':>10} {'mcse':>9} {'R-hat':>6} "
            f"{'bulk':>7} {'tail':>7} {'tau':>7} {'tau CPU s':>9}",
        ]
        for title, name in leading.items():
            row = self.rows[name]
            lines.append(
                f"{title:{width}}  {row.mean:10.4g} {row.sd:10.4g} {row.mcse:9.2g} "
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
        lines.append(f"Verdict: {self.verdict_for(advice)}")
        return "\n".join(lines)


def _sentence(text: str) -> str:
    """With a capital letter, and the rest as it is."""
    return text[:1].upper() + text[1:]


def diagnose(
    draws: Draws, chains: Sequence[Chain], stopped: str = "", weighed: Weighed | None = None
) -> Diagnostics:
    """Diagnostics of a set of chains.

    Parameters
    ----------
    draws : Draws
        Their draws.
    chains : sequence of Chain
        What else they tell: acceptance, events, seconds.
    stopped : str
        Why sampling stopped.
    weighed : Weighed, optional
        Of the fast method: without short chains, what is known comes from the weights.

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
    rows = table(draws, per_draw)
    if weighed is not None and not weighed.settled:
        return Diagnostics(
            _of_weights(rows, n_chains * n_draws, weighed),
            acceptance,
            events,
            dict(seconds),
            {},
            n_chains,
            n_draws,
            stopped,
            None,
            weighed,
        )
    return Diagnostics(
        rows,
        acceptance,
        events,
        dict(seconds),
        tuned,
        n_chains,
        n_draws,
        stopped,
        None if converged(rows) else find_modes(draws),
        weighed,
    )


def _of_weights(rows: Mapping[str, Row], kept: int, weighed: Weighed) -> dict[str, Row]:
    """Rows of draws that are no chains: what they are worth is what the weights leave."""
    worth = 1.0 / (1.0 / max(weighed.effective, 1e-9) + 1.0 / kept)
    return {
        name: Row(row.mean, row.sd, row.sd / math.sqrt(worth), math.nan, worth, worth, 1.0, 0.0)
        for name, row in rows.items()
    }


def _learned(sampler: object) -> str:
    """The settings of a sampler that warm-up tunes, in few words."""
    for name in ("step_size", "step_sizes", "width"):
        value = getattr(sampler, name, None)
        if value is not None:
            return f"{name.replace('_', ' ')} {np.median(value):.3g}"
    return ""
