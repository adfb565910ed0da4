"""A race between samplers: effective draws per CPU second of the slowest quantity.

    python benchmarks/race.py [--models gplv ...] [--data U1 M1 motorcycle lidar] [--seeds 3]
                              [--seconds 20] [--schemes default latents] [--n 100] [--set 2]
                              [--peers] [--out FILE.json] [--figure FILE.png]

Every scheme of a model runs on the same data, in turn, once for each seed, so that a busy machine
slows all alike. A run has a warm-up that is not counted, and draws until its CPU time is used up.
What counts is the smallest effective sample size (bulk, arviz-stats) among all that
`gplc.diagnostics` judges (hyperparameters, the log density, and predictions at landmarks), per CPU
second. Ratios are taken seed by seed, to the first scheme; the table shows their median and
range. The effective sample size of one short chain is too large if the chain has not been
everywhere. So rates of all seeds together are given too ("pooled"): there the size counts what
chains differ by.

A second table compares posterior means of the hyperparameters with those of all schemes together,
in Monte Carlo standard errors: every scheme has to find the same posterior.

With ``--peers`` NumPyro's NUTS runs on the identical posteriors, if it is installed (`pip install
-e .[bench]`): whitened for GPLV, in double precision, on one thread; compilation and warm-up are
not counted against it (see `numpyro_peer.py`). For GPLC it runs twice: on (theta, w), and on the
function with w summed out over the cells of our own default.

GPLC is listed twice with the paper's scheme: with our compiled sweep, and as the paper computes
it, with a factorisation for every density. The draws are the same, so that the second is the first
with the time of its sweeps multiplied by the ratio that `benchmarks/sweep.py` measures.
"""

import argparse
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpyro_peer
import sweep
from arviz_stats.base import array_stats
from numpy.typing import NDArray

from gplc import datasets
from gplc.chains import advance, judged_of, start
from gplc.diagnostics import judged
from gplc.draws import Draws
from gplc.models import MODELS, Model

Array = NDArray[np.float64]

SCHEMES: Mapping[str, tuple[str, ...]] = {
    "std": ("paper", "default"),
    "gplc": ("paper", "latents", "default"),
    "gplv": ("paper", "elliptical", "default"),
}
NUTS = "NumPyro NUTS"
NUTS_ON_FUNCTION = "NumPyro NUTS, function"
NAIVE = "paper, factorising"
NAIVE_RUNS = 3  # of which the median counts


class Run(NamedTuple):
    """Draws of one scheme, and the CPU time they took."""

    theta: Array  # (draws, k)
    quantities: dict[str, Array]
    seconds: float


REAL = {"motorcycle": datasets.load_motorcycle, "lidar": datasets.load_lidar}


def model_of(key: str, data: str, n: int, number: int = 1) -> Model:
    """One of the models on real data or on data of one of the paper's problems, standardized."""
    made = REAL[data]() if data in REAL else datasets.make_paper(data, n=n, random_state=number)
    X = (made.X - made.X.mean(axis=0)) / made.X.std(axis=0)
    return MODELS[key](X, (made.y - made.y.mean()) / made.y.std())


def quantities(
    model: Model, theta: Array, latent: Array, log_density: Array, kept: Array
) -> dict[str, Array]:
    """What is judged: one series for each quantity."""
    rows = tuple(model.landmarks.rows.tolist())
    chain = (each[None] for each in (theta, latent, log_density, kept, np.empty((len(theta), 0))))
    draws = Draws(model.names, *chain, type(model), model.node_size, rows)
    return {name: series[0] for name, series in judged(draws).items()}


def run_scheme(model: Model, scheme: str, seed: int, seconds: float, warmup: int) -> Run:
    """A chain with one of our schemes, for so many seconds of CPU time after warm-up."""
    position = start(model, model.scheme(scheme), seed)
    chain = advance(model, position, warmup, tune=True)
    chain = advance(model, chain.position, 50, tune=False)
    while (spent := chain.seconds["draws"]) < seconds:
        each = spent / len(chain.log_density)
        more = int(np.clip((seconds - spent) / each, 20, 2000))
        chain = chain.followed_by(advance(model, chain.position, more, tune=False))
    found = quantities(model, chain.theta, chain.latent, chain.log_density, chain.judged)
    return Run(chain.theta, found, chain.seconds["draws"])


def effective(series: Array) -> float:
    """Bulk effective sample size of one chain (draws,), or of several (chains, draws)."""
    return float(array_stats.ess(np.atleast_2d(series)))


def score(run: Run) -> tuple[float, str]:
    """Effective draws per CPU second of the slowest quantity, and its name."""
    sizes = {name: effective(series) for name, series in run.quantities.items()}
    slowest = min(sizes, key=lambda name: sizes[name])
    return sizes[slowest] / run.seconds, slowest


def pooled(runs: Sequence[Run]) -> float:
    """Effective draws per CPU second of the slowest quantity, of all chains together."""
    # As many draws of each as the shortest has, and that share of the time.
    draws = min(len(run.theta) for run in runs)
    seconds = sum(run.seconds * draws / len(run.theta) for run in runs)
    # A tail that is empty in all draws of a run is not judged there.
    names = set.intersection(*(set(run.quantities) for run in runs))
    sizes = (effective(np.stack([run.quantities[name][:draws] for run in runs])) for name in names)
    return min(sizes) / seconds


def naive_share(model: Model, run: Run) -> float:
    """How much longer the paper's scheme takes with a factorisation for every density."""
    theta = run.theta[-1]
    state = sweep.settled_state(model, theta, 2)
    some = min(model.n, 40)
    # Of the first run nothing counts: it may compile.
    runs = range(NAIVE_RUNS + 1)
    ours = [sweep.time_ours(model, state, seed).seconds for seed in runs]
    theirs = [sweep.time_baseline(model, state, seed, some).seconds for seed in runs]
    each = run.seconds / len(run.theta)
    longer = model.n / some * statistics.median(theirs[1:]) - statistics.median(ours[1:])
    return 1.0 + longer / each


# The peer


def numpyro_runner(
    warmup: int, of_function: bool = False
) -> Callable[[Model, int, float], Run] | None:
    """A function like `run_scheme` for NumPyro's NUTS, or None if it is not installed."""
    sample = numpyro_peer.sampler(warmup, of_function)
    if sample is None:
        print("NumPyro is not installed: pip install -e '.[bench]'")
        return None

    def run(model: Model, seed: int, seconds: float) -> Run:
        drawn = sample(model, seed, seconds)
        if drawn.divergences:
            print(f"NumPyro: {drawn.divergences} divergences in {len(drawn.theta)} draws")
        kept = judged_of(model, drawn.theta, drawn.latent)
        found = quantities(model, drawn.theta, drawn.latent, drawn.log_density, kept)
        return Run(drawn.theta, found, drawn.seconds)

    return run


# The race


def race(key: str, data: str, settings: argparse.Namespace) -> dict[str, Any]:
    """All schemes of a model on one data set."""
    model = model_of(key, data, settings.n, settings.set)
    seconds, warmup = settings.seconds, settings.warmup
    entrants: dict[str, Callable[[int], Run]] = {
        scheme: lambda seed, scheme=scheme: run_scheme(model, scheme, seed, seconds, warmup)
        for scheme in SCHEMES[key]
        if scheme in (settings.schemes or SCHEMES[key])
    }
    peers = {NUTS: False, NUTS_ON_FUNCTION: True} if key == "gplc" else {NUTS: False}
    for name, of_function in peers.items() if settings.peers else ():
        nuts = numpyro_runner(warmup, of_function)
        if nuts is not None:
            entrants[name] = lambda seed, nuts=nuts: nuts(model, seed, seconds)
    runs: dict[str, list[Run]] = {name: [] for name in entrants}
    for seed in range(1, settings.seeds + 1):
        for name, enter in entrants.items():
            runs[name].append(enter(seed))
    scores = {name: [score(run) for run in own] for name, own in runs.items()}
    if key == "gplc" and "paper" in scores:
        scores[NAIVE] = [
            (rate / naive_share(model, run), slowest)
            for run, (rate, slowest) in zip(runs["paper"], scores["paper"], strict=True)
        ]
    together = {name: pooled(own) for name, own in runs.items()}
    first = scores[next(iter(entrants))]
    nuts_rates = [scores[name] for name in peers if name in scores]
    # The better of the peers, seed by seed.
    best_nuts = [max(each) for each in zip(*nuts_rates, strict=True)] if nuts_rates else None
    rows = []
    for name, own in scores.items():
        ratios = [r / base for (r, _), (base, _) in zip(own, first, strict=True)]
        rows.append(
            {
                "scheme": name,
                "rate": statistics.median(rate for rate, _ in own),
                "rates": [rate for rate, _ in own],
                "slowest": statistics.mode(slowest for _, slowest in own),
                "ratio": statistics.median(ratios),
                "ratio_range": (min(ratios), max(ratios)),
                "to_nuts": ratio_to(best_nuts, own),
                "pooled": together.get(name, float("nan")),
            }
        )
    what = {"model": key, "data": data, "n": model.n, "set": settings.set}
    return what | {"rows": rows, "means": means(model, runs)}


def ratio_to(peer: list[tuple[float, str]] | None, own: list[tuple[float, str]]) -> float:
    """Median ratio of rates to those of a peer, seed by seed; NaN if it did not run."""
    if peer is None:
        return float("nan")
    return statistics.median(mine / its for (mine, _), (its, _) in zip(own, peer, strict=True))


def means(model: Model, runs: Mapping[str, list[Run]]) -> dict[str, dict[str, list[float]]]:
    """Posterior means, and how far each scheme is from all together, in standard errors."""
    centres: dict[str, list[tuple[float, float]]] = {}
    for name, own in runs.items():
        found = []
        for k in range(len(model.names)):
            series = [run.theta[:, k] for run in own]
            size = sum(effective(each) for each in series)
            pooled = np.concatenate(series)
            found.append((float(pooled.mean()), float(pooled.std() / np.sqrt(size))))
        centres[name] = found
    result: dict[str, dict[str, list[float]]] = {}
    for k, quantity in enumerate(model.names):
        all_means = np.array([centres[name][k][0] for name in runs])
        errors = np.array([centres[name][k][1] for name in runs])
        weights = errors**-2 / np.sum(errors**-2)
        centre = float(weights @ all_means)
        # The common mean holds a share of each scheme's own.
        spread = errors * np.sqrt(np.maximum(1.0 - weights, 1e-9))
        result[quantity] = {
            name: [float(mean), float((mean - centre) / error)]
            for name, mean, error in zip(runs, all_means, spread, strict=True)
        }
    return result


def show(result: Mapping[str, Any]) -> None:
    """Both tables of one race."""
    print(f"\n{result['model']} on {result['data']}, n = {result['n']}")
    print(
        f"{'scheme':24} {'ESS / CPU s':>12} {'to first':>9} {'range':>16} {'to NUTS':>8} "
        f"{'pooled':>8}  slowest"
    )
    for row in result["rows"]:
        low, high = row["ratio_range"]
        print(
            f"{row['scheme']:24} {row['rate']:12.3f} {row['ratio']:9.2f} "
            f"{low:7.2f} to {high:6.2f} {row['to_nuts']:8.2f} "
            f"{row['pooled']:8.3f}  {row['slowest']}"
        )
    for quantity, by_scheme in result["means"].items():
        cells = "  ".join(f"{n} {m:.2f} ({t:+.1f})" for n, (m, t) in by_scheme.items())
        print(f"  mean log {quantity}: {cells}")


def draw(results: list[dict[str, Any]], path: Path) -> None:
    """Rates as points on a log scale, one panel for each race."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        len(results), 1, figsize=(7.0, 1.1 + 1.1 * len(results)), squeeze=False, sharex=True
    )
    for axis, result in zip(axes[:, 0], results, strict=True):
        rows = sorted(result["rows"], key=lambda row: row["rate"])
        names, rates = [row["scheme"] for row in rows], [row["rate"] for row in rows]
        colours = ["#08306b" if name == "default" else "0.65" for name in names]
        axis.barh(names, rates, color=colours, height=0.6)
        axis.set_xscale("log")
        axis.invert_yaxis()
        axis.set_title(f"{result['model'].upper()}, {result['data']}, n = {result['n']}", size=9)
        for place, rate in enumerate(rates):
            label = f" {rate:.0f}" if rate >= 100 else f" {rate:.2g}"
            axis.annotate(label, (rate, place), va="center", size=8)
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    axes[-1, 0].set_xlabel("effective draws of the slowest quantity per CPU second")
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", nargs="+", choices=list(SCHEMES), default=list(SCHEMES))
    parser.add_argument("--data", nargs="+", default=["U1", "M1"])
    parser.add_argument("--schemes", nargs="+", help="only these; the first is the yardstick")
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--set", type=int, default=2, help="which data; 1 has been tuned on")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0, help="CPU time of one run")
    parser.add_argument("--warmup", type=int, default=500, help="iterations that do not count")
    parser.add_argument("--peers", action="store_true", help="NumPyro too")
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    parser.add_argument("--figure", type=Path, help="PNG file for a picture")
    settings = parser.parse_args()
    results = []
    for key in settings.models:
        for data in settings.data:
            results.append(race(key, data, settings))
            show(results[-1])
            if settings.out:
                settings.out.write_text(json.dumps(results, indent=2))
    if settings.figure:
        draw(results, settings.figure)


if __name__ == "__main__":
    main()
