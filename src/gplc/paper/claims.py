"""The paper's claims, each with what was found here and a verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gplc.paper import published
from gplc.paper.analysis import Lap, Laps, Paired, Scores, arrival, equilibrium, paired
from gplc.paper.experiments import QUANTITIES
from gplc.paper.settings import DATASETS, NAMES, SAMPLER_NAMES
from gplc.paper.tables import Table

HOLDS, IN_PART, FAILS = "holds", "holds in part", "does not hold"

# What counts as "all", "clear winner" and "almost as good", for ten training sets.
ALL, CLEAR, USUAL, NEAR = 0.9, 0.8, 0.7, 0.03
HYPERPARAMETERS = slice(0, 4)
LATENTS = slice(4, 6)


@dataclass(frozen=True)
class Claim:
    """A claim with the paper's figures, ours, and a verdict."""

    claim: str
    theirs: str
    ours: str
    verdict: str


def as_table(claims: Sequence[Claim]) -> Table:
    """All claims as one table."""
    return Table(
        "claims",
        "The paper's claims",
        ("claim", "paper", "ours", "verdict"),
        [(each.claim, each.theirs, each.ours, each.verdict) for each in claims],
        [""] * 4,
    )


def verdict(*parts: bool) -> str:
    """Holds if all parts do, in part if some do.

    Examples
    --------
    >>> verdict(True, False)
    'holds in part'
    """
    return HOLDS if all(parts) else IN_PART if any(parts) else FAILS


# --- predictive performance -----------------------------------------------------------------


def about_performance(scores: Scores) -> list[Claim]:
    """Claims of section 4.2."""
    return [
        _beats_standard(scores, "gplc"),
        _beats_standard(scores, "gplv"),
        _better_means(scores),
        _almost_as_good(scores),
        _variance_wins_on_u1(scores),
        _clear_winner(scores, "nlpd"),
        _clear_winner(scores, "mse"),
        _same_differences(scores),
    ]


def _both(
    scores: Scores, measure: str, first: str, second: str, datasets: Sequence[str]
) -> tuple[dict[str, Paired], dict[str, Paired]]:
    """The comparison of two methods on some data sets: ours and the paper's."""
    printed = published.nlpd if measure == "nlpd" else published.mse
    ours = {name: paired(scores.of(measure)[name], first, second) for name in datasets}
    return ours, {name: paired(printed(name), first, second) for name in datasets}


def _wins(comparisons: Mapping[str, Paired]) -> str:
    return ", ".join(f"{name} {each.wins} of {each.sets}" for name, each in comparisons.items())


def _means(comparisons: Mapping[str, Paired], digits: int = 3) -> str:
    return ", ".join(f"{name} {each.mean:+.{digits}f}" for name, each in comparisons.items())


def _share(each: Paired) -> float:
    return each.wins / each.sets


def _beats_standard(scores: Scores, method: str) -> Claim:
    ours, theirs = _both(scores, "nlpd", method, "std", DATASETS)
    return Claim(
        f"{NAMES[method]} has a smaller NLPD than STD on all data sets (at least 9 sets of 10)",
        _wins(theirs),
        _wins(ours),
        verdict(*(_share(each) >= ALL for each in ours.values())),
    )


def _better_means(scores: Scores) -> Claim:
    ours, theirs, parts = [], [], []
    for method in ("gplc", "gplv"):
        mine, printed = _both(scores, "mse", method, "std", ("M1", "M2"))
        ours.append(f"{NAMES[method]} {_wins(mine)} ({_means(mine, 4)})")
        theirs.append(f"{NAMES[method]} {_wins(printed)} ({_means(printed, 4)})")
        parts += [each.mean < 0 and _share(each) > 0.5 for each in mine.values()]
    return Claim(
        "On M1 and M2 both have smaller MSEs than STD (on average, and on most sets)",
        "; ".join(theirs),
        "; ".join(ours),
        verdict(*parts),
    )


def _almost_as_good(scores: Scores) -> Claim:
    ours, theirs = _both(scores, "nlpd", "gplc", "gplv", ("U1", "M1"))
    return Claim(
        "With Gaussian residuals GPLC is almost as good as GPLV (mean NLPD within 0.03)",
        _means(theirs),
        _means(ours),
        verdict(*(abs(each.mean) <= NEAR for each in ours.values())),
    )


def _variance_wins_on_u1(scores: Scores) -> Claim:
    ours, theirs = _both(scores, "nlpd", "gplv", "gplc", ("U1",))
    return Claim(
        "On U1 GPLV has the smaller NLPD 8 times out of 10 (7 in its appendix)",
        _wins(theirs),
        _wins(ours),
        verdict(_share(ours["U1"]) >= USUAL),
    )


def _clear_winner(scores: Scores, measure: str) -> Claim:
    ours, theirs = _both(scores, measure, "gplc", "gplv", ("U2", "M2"))
    wanted = CLEAR if measure == "nlpd" else 0.5
    meaning = "at least 8 sets of 10" if measure == "nlpd" else "more than half of the sets"
    enough = [
        _share(each) >= wanted if measure == "nlpd" else _share(each) > wanted
        for each in ours.values()
    ]
    return Claim(
        f"With non-Gaussian residuals GPLC has smaller {measure.upper()}s than GPLV most of the "
        f"time ({meaning})",
        _wins(theirs),
        _wins(ours),
        verdict(*enough),
    )


def _same_differences(scores: Scores) -> Claim:
    """Whether our mean differences in NLPD are the paper's, up to chance."""
    ours, theirs, near = [], [], []
    for second in ("std", "gplv"):
        mine, printed = _both(scores, "nlpd", "gplc", second, DATASETS)
        ours.append(f"GPLC - {NAMES[second]}: {_means(mine)}")
        theirs.append(f"GPLC - {NAMES[second]}: {_means(printed)}")
        for dataset in DATASETS:
            gap = mine[dataset].mean - printed[dataset].mean
            error = float(np.hypot(mine[dataset].error, printed[dataset].error))
            near.append(abs(gap) <= 2.0 * error)
    return Claim(
        f"Mean differences in NLPD are the paper's within two standard errors "
        f"({sum(near)} of {len(near)} are)",
        "; ".join(theirs),
        "; ".join(ours),
        verdict(*near),
    )


# --- samplers of GPLV -----------------------------------------------------------------------


def about_samplers(by_jitter: Mapping[float, Laps], implied: float) -> list[Claim]:
    """Claims of section 4.3, judged with the largest sigma_J: there all samplers arrive."""
    laps = by_jitter[max(by_jitter)]
    ours = {name: lap.tau_cpu().mean(axis=0) for name, lap in laps.items()}
    theirs = {name: np.array(t) for name, t in published.AUTOCORRELATION_TIMES.items()}
    return [
        _latents(ours, theirs),
        _hyperparameters(ours, theirs),
        _slice_is_worst(ours, theirs),
        *(_first_to_arrive(its, jitter) for jitter, its in by_jitter.items()),
        _acceptance(laps["paper"]),
        _start({jitter: its["paper"].origin for jitter, its in by_jitter.items()}, implied),
        _elliptical(ours),
    ]


Times = Mapping[str, np.ndarray]


def _ratio(times: Times, first: str, second: str, which: slice) -> np.ndarray:
    return (times[first] / times[second])[which]


def _listed(ratios: np.ndarray, which: slice) -> str:
    names = QUANTITIES[which]
    return ", ".join(f"{name} {value:.3g}" for name, value in zip(names, ratios, strict=True))


def _latents(ours: Times, theirs: Times) -> Claim:
    def told(times: Times) -> str:
        return "; ".join(
            f"{SAMPLER_NAMES[name]} {_listed(_ratio(times, name, 'paper', LATENTS), LATENTS)}"
            for name in ("metropolis", "slice")
        )

    ratios = np.concatenate(
        [_ratio(ours, name, "paper", LATENTS) for name in ("metropolis", "slice")]
    )
    return Claim(
        "Modified Metropolis samples the latents 50 to 100 times faster than Metropolis and slice "
        "(ratios of adjusted autocorrelation times; in part: faster, by another factor)",
        told(theirs),
        told(ours),
        verdict(bool((ratios > 1).all()), bool((ratios >= 50).all() and (ratios <= 100).all())),
    )


def _hyperparameters(ours: Times, theirs: Times) -> Claim:
    mine = _ratio(ours, "metropolis", "paper", HYPERPARAMETERS)
    printed = _ratio(theirs, "metropolis", "paper", HYPERPARAMETERS)
    return Claim(
        "On hyperparameters modified and regular Metropolis are roughly the same (within a factor "
        "of 3)",
        _listed(printed, HYPERPARAMETERS),
        _listed(mine, HYPERPARAMETERS),
        verdict(*(bool(1 / 3 <= ratio <= 3) for ratio in mine)),
    )


def _slice_is_worst(ours: Times, theirs: Times) -> Claim:
    def told(times: Times) -> str:
        return "; ".join(
            f"slice / {name} "
            + _listed(_ratio(times, "slice", key, HYPERPARAMETERS), HYPERPARAMETERS)
            for key, name in (("paper", "modified"), ("metropolis", "Metropolis"))
        )

    ratios = np.concatenate(
        [_ratio(ours, "slice", key, HYPERPARAMETERS) for key in ("paper", "metropolis")]
    )
    return Claim(
        "On hyperparameters both are better than the slice sampler",
        told(theirs),
        told(ours),
        verdict(*(bool(ratio > 1) for ratio in ratios)),
    )


def _first_to_arrive(laps: Laps, jitter: float) -> Claim:
    within = equilibrium(laps)
    times = {
        name: float(np.median(arrival(laps[name], within).seconds))
        for name in ("paper", "metropolis", "slice")
    }
    told = ", ".join(
        f"{SAMPLER_NAMES[name]} {f'{time:.2f} s' if np.isfinite(time) else 'never'}"
        for name, time in times.items()
    )
    return Claim(
        "Modified Metropolis takes the least time from the prior mean to equilibrium "
        f"(sigma_J = {jitter:g})",
        "by trace plots",
        told,
        verdict(times["paper"] < times["metropolis"], times["paper"] < times["slice"]),
    )


def _acceptance(lap: Lap) -> Claim:
    moved = 1.0 - (1.0 - lap.acceptance) ** lap.evaluations
    return Claim(
        "Modified Metropolis with a = 0.3 accepts 1.4% of its proposals, so that z has a chance "
        "of about 60% to change in an iteration",
        "1.4%, 60% (by its own count of 80 proposals: 68%)",
        f"{lap.acceptance:.1%}, {moved:.0%}",
        verdict(0.5 <= lap.acceptance / published.ACCEPTANCE <= 2.0),
    )


def _start(origins: Mapping[float, float], implied: float) -> Claim:
    told = ", ".join(f"{value:.0f} with sigma_J = {jitter:g}" for jitter, value in origins.items())
    return Claim(
        "Runs start from a log density of about -13, at the prior mean (sigma_J is not given; "
        "0.001 is its example)",
        "-13",
        f"{told}; -13 with {implied:.2f}",
        verdict(any(abs(value - published.STARTING_DENSITY) < 5.0 for value in origins.values())),
    )


def _elliptical(ours: Times) -> Claim:
    told = _listed(_ratio(ours, "elliptical", "paper", slice(None)), slice(None))
    faster = _ratio(ours, "elliptical", "paper", slice(None)) < 1
    how = "faster" if faster.all() else "slower" if not faster.any() else "faster on some"
    return Claim(
        "It would be interesting to see how elliptical slice sampling compares",
        "not tried",
        f"adjusted autocorrelation times relative to modified Metropolis: {told}",
        how,
    )


# --- sensitivity ----------------------------------------------------------------------------


def about_sensitivity(scores: Mapping[str, Scores]) -> list[Claim]:
    """Whether the conclusions hang on what the paper leaves open."""
    changed = [its for name, its in scores.items() if name != "as chosen"]

    def held(first: str, second: str, datasets: Sequence[str], most: float) -> tuple[int, int]:
        gaps = [paired(its.nlpd[name], first, second).mean for its in changed for name in datasets]
        return sum(gap < most for gap in gaps), len(gaps)

    claims = []
    for text, first, second, datasets, most in (
        ("GPLC has the smaller mean NLPD than STD", "gplc", "std", DATASETS, 0.0),
        ("GPLV has the smaller mean NLPD than STD", "gplv", "std", DATASETS, 0.0),
        (
            "GPLC has the smaller mean NLPD than GPLV on U2 and M2",
            "gplc",
            "gplv",
            ("U2", "M2"),
            0.0,
        ),
        ("GPLC is at most 0.03 worse than GPLV on U1 and M1", "gplc", "gplv", ("U1", "M1"), NEAR),
    ):
        good, total = held(first, second, datasets, most)
        claims.append(
            Claim(
                f"{text}, whatever is doubled or halved",
                "not tried",
                f"{good} of {total} data sets and settings",
                verdict(good == total, good > total // 2),
            )
        )
    return claims
