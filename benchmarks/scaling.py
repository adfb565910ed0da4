"""How time, memory and effective draws change with the number of rows.

    python benchmarks/scaling.py [--models gplc std gplv] [--schemes default paper]
                                 [--n 50 100 ... 1600] [--seconds 60] [--warmup 500]
                                 [--sweeps N] [--data U1] [--out FILE.json] [--figure FILE.png]

For every n the schemes run on the same data in turn, a few iterations at a time, so that a busy
machine slows all alike; times are CPU time on one thread. Measured are

- the time of an iteration ("sweep": every update of the scheme once), the median over rounds;
- peak memory of model and chain, above that of the loaded package, in a fresh process (less than
  3 MB, up to n = 200, are hardly more than noise);
- effective draws (bulk) of the slowest hyperparameter for each iteration, and the time of one.

``--seconds`` is the budget of one scheme at one n for its draws; the warm-up has twice as much.
Where the warm-up did not get to its end, or the draws are few (see `ENOUGH`), effective draws are
not given. Chains begin at the mean of the hyperparameters that the scheme found for the n before.

``--sweeps N`` has that many iterations done instead, however long they take: `--n 1000 --sweeps
1000 --schemes default` measures a thousand at n = 1000.

The paper's way of computing, with a factorisation for every density of a latent value, is listed
as well: draws are those of the paper's scheme, and the time of its sweep over w is replaced by
that of `sweep.time_baseline`, timed on a few latent values and scaled up.

Exponents are slopes of log time (or memory) on log n by least squares, over all n and over those
from `LARGE` on, where there are three points or more.
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import race
import sweep
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from gplc.chains import Chain, Position, advance, start
from gplc.models import LatentCovariate, Model
from gplc.models.base import Unknowns

Array = NDArray[np.float64]

SIZES = (50, 100, 200, 400, 800, 1600)
LARGE = 200  # from here on costs of n^3 outweigh those of calls
ROUNDS = 10  # that a budget is used up in
ENOUGH = (100, 25.0)  # draws, and effective ones, for the latter to be believed
SMALL_N = 20  # whose chain loads the code before memory is measured
SEED = 1
# What has an exponent: column of a row, words
MEASURES: Mapping[str, str] = {
    "seconds": "CPU seconds of an iteration",
    "seconds_per_effective": "CPU seconds of an effective draw",
    "megabytes": "peak memory in MB",
}


class Entrant(NamedTuple):
    """A model with a scheme of updates."""

    model: str
    scheme: str

    def __str__(self) -> str:
        return f"{self.model.upper()} {self.scheme}"


# Memory


def kilobytes(field: str) -> int:
    """A line of this process's status."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(f"{field}:"))


def few_iterations(entrant: Entrant, data: str, n: int) -> None:
    """A short chain, with tuning and without; of the paper's way, one latent value."""
    model = race.model_of(entrant.model, data, n)
    unknowns = settled(model, None)
    if entrant.scheme == race.NAIVE:
        assert isinstance(model, LatentCovariate)
        sweep.time_baseline(model, model.state(unknowns), SEED, latents=1)
        return
    position = start(model, model.scheme(entrant.scheme), SEED, unknowns)
    chain = advance(model, position, 1, tune=True)
    advance(model, chain.position, 1, tune=False)


def measure_memory(entrant: Entrant, data: str, n: int) -> float:
    """Peak megabytes above those of a small chain; to be called in a fresh process."""
    few_iterations(entrant, data, SMALL_N)
    before = kilobytes("VmRSS")
    few_iterations(entrant, data, n)
    # The peak of this process alone: ru_maxrss would include the parent's.
    return (kilobytes("VmHWM") - before) / 1024


def memory(entrant: Entrant, data: str, n: int) -> float | None:
    """`measure_memory` in another Python; None where /proc does not exist."""
    if not Path("/proc/self/status").exists():
        return None
    command = [sys.executable, __file__, "--memory-of", *entrant, data, str(n)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


# Time


def settled(model: Model, theta: Array | None) -> Unknowns:
    """Where a chain begins: given hyperparameters or the prior's means, latent values a draw."""
    theta = model.priors.means if theta is None else theta
    return Unknowns(theta, model.sample_latent(np.random.default_rng(SEED), theta))


class Running:
    """One entrant at one n: goes on for a while when told to."""

    def __init__(self, entrant: Entrant, model: Model, theta: Array | None) -> None:
        self.entrant, self.model = entrant, model
        scheme = model.scheme(entrant.scheme)
        self.position: Position = start(model, scheme, SEED, settled(model, theta))
        self.chain: Chain | None = None
        self.warmup_done, self.warmup_seconds = 0, 0.0
        self.rounds: list[float] = []  # seconds of an iteration

    def warm_up(self, warmup: int, seconds: float) -> None:
        """Tune until all iterations are done or the budget is."""
        while (left := warmup - self.warmup_done) > 0 and self.warmup_seconds < seconds:
            each = self.warmup_seconds / max(self.warmup_done, 1)
            more = (
                1 if each == 0.0 else int(np.clip((seconds - self.warmup_seconds) / each, 1, 50))
            )
            begun = advance(self.model, self.position, min(more, left), tune=True)
            self.position = begun.position
            self.warmup_done += min(more, left)
            self.warmup_seconds += begun.seconds["warmup"]

    @property
    def spent(self) -> float:
        """CPU time of the draws."""
        return 0.0 if self.chain is None else self.chain.seconds["draws"]

    @property
    def done(self) -> int:
        """Draws."""
        return 0 if self.chain is None else self.chain.log_density.size

    def go_on(self, iterations: int) -> None:
        """So many draws more."""
        more = advance(self.model, self.position, iterations, tune=False)
        self.position = more.position
        self.chain = more if self.chain is None else self.chain.followed_by(more)
        self.rounds.append(more.seconds["draws"] / iterations)

    def go_on_within(self, seconds: float) -> None:
        """A round's share of a budget, at least one iteration."""
        each = statistics.median(self.rounds) if self.rounds else 0.0
        share = min(seconds / ROUNDS, seconds - self.spent)
        self.go_on(1 if each == 0.0 else max(1, int(share / each)))

    def row(self, warmup: int) -> dict[str, Any]:
        """What was measured."""
        assert self.chain is not None
        sizes = {
            name: race.effective(series)
            for name, series in zip(self.model.names, self.chain.theta.T, strict=True)
        }
        slowest = min(sizes, key=lambda name: sizes[name])
        draws, least = ENOUGH
        believed = self.warmup_done >= warmup and self.done >= draws and sizes[slowest] >= least
        per_iteration = sizes[slowest] / self.done if believed else None
        seconds = statistics.median(self.rounds)
        return {
            "model": self.entrant.model,
            "scheme": self.entrant.scheme,
            "n": self.model.n,
            "seconds": seconds,
            "best_seconds": min(self.rounds),
            "iterations": self.done,
            "total_seconds": self.spent,
            "warmup": self.warmup_done,
            "warmup_seconds": self.warmup_seconds,
            "slowest": slowest if believed else None,
            "effective_per_iteration": per_iteration,
            "seconds_per_effective": seconds / per_iteration if per_iteration else None,
        }


def factorising_row(running: Running, row: Mapping[str, Any], data: str) -> dict[str, Any]:
    """The paper's scheme as the paper computes it: only the time of its sweep over w differs."""
    model = running.model
    assert isinstance(model, LatentCovariate)
    state = model.state(running.position.unknowns)
    latents = min(model.n, 40 if model.n <= 400 else 8)
    sweep.time_baseline(model, state, 0, latents=1)
    pairs = [
        (sweep.time_ours(model, state, seed), sweep.time_baseline(model, state, seed, latents))
        for seed in (1, 2, 3)
    ]
    extra = statistics.median(
        theirs.seconds * model.n / latents - ours.seconds for ours, theirs in pairs
    )
    seconds = row["seconds"] + extra
    per_iteration = row["effective_per_iteration"]
    return {
        **row,
        "scheme": race.NAIVE,
        "seconds": seconds,
        "best_seconds": None,
        "iterations": 0,
        "total_seconds": None,
        "latents_timed": latents,
        "seconds_per_effective": seconds / per_iteration if per_iteration else None,
        "megabytes": memory(Entrant(row["model"], race.NAIVE), data, model.n),
    }


def measure(
    entrants: Sequence[Entrant],
    data: str,
    n: int,
    options: argparse.Namespace,
    means: dict[Entrant, Array],
) -> list[dict[str, Any]]:
    """All entrants at one n; brings up to date `means`, where they have been so far."""
    models = {key: race.model_of(key, data, n) for key, _ in entrants}
    field = [Running(each, models[each.model], means.get(each)) for each in entrants]
    for running in field:
        running.warm_up(options.warmup, 2.0 * options.seconds)
    unfinished = list(field)
    while unfinished:
        for running in unfinished:
            if options.sweeps is None:
                running.go_on_within(options.seconds)
            else:
                share = max(1, options.sweeps // ROUNDS)
                running.go_on(min(share, options.sweeps - running.done))
        unfinished = [
            running
            for running in unfinished
            if (
                running.spent < 0.95 * options.seconds
                if options.sweeps is None
                else running.done < options.sweeps
            )
        ]
    rows = []
    for running in field:
        row = running.row(options.warmup)
        row["megabytes"] = memory(running.entrant, data, n)
        rows.append(row)
        assert running.chain is not None
        means[running.entrant] = running.chain.theta[running.done // 2 :].mean(axis=0)
        if running.entrant == Entrant("gplc", "paper"):
            rows.append(factorising_row(running, row, data))
    return rows


def exponents(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Slopes on log n, for every entrant and measure."""
    result = []
    for entrant in dict.fromkeys(Entrant(row["model"], row["scheme"]) for row in rows):
        own = [row for row in rows if (row["model"], row["scheme"]) == entrant]
        found: dict[str, Any] = {"model": entrant.model, "scheme": entrant.scheme}
        for measure_name in MEASURES:
            for name, least in ((measure_name, 0), (f"{measure_name}_large", LARGE)):
                pairs = [
                    (row["n"], row[measure_name])
                    for row in own
                    if row["n"] >= least and (row[measure_name] or 0.0) > 0.0
                ]
                found[name] = None
                if len(pairs) > 2:  # two points fit any line
                    sizes, values = np.log(np.array(pairs)).T
                    found[name] = float(np.polyfit(sizes, values, 1)[0])
        result.append(found)
    return result


# Showing


def cell(value: float | None, width: int, digits: int = 3) -> str:
    """A number, or a dash."""
    return f"{'-' if value is None else f'{value:.{digits}g}':>{width}}"


def show_head() -> None:
    print(
        f"{'':24} {'n':>5} {'s / iteration':>13} {'done':>6} {'MB':>7} {'n^2 doubles':>11} "
        f"{'effective':>9} {'s / effective':>13}  slowest"
    )


def show(row: Mapping[str, Any]) -> None:
    """A line of the table."""
    megabytes = row["megabytes"]
    squares = None if megabytes is None else megabytes * 2**20 / (8.0 * row["n"] ** 2)
    print(
        f"{Entrant(row['model'], row['scheme'])!s:24} {row['n']:5} {cell(row['seconds'], 13)} "
        f"{row['iterations'] or 'scaled':>6} {cell(megabytes, 7)} {cell(squares, 11)} "
        f"{cell(row['effective_per_iteration'], 9, 2)} {cell(row['seconds_per_effective'], 13)}  "
        f"{row['slowest'] or ''}",
        flush=True,
    )


def show_total(row: Mapping[str, Any]) -> None:
    """What a number of iterations that was asked for took."""
    if row["iterations"]:
        print(
            f"  {row['iterations']} iterations at n = {row['n']}: {row['total_seconds']:.1f} CPU "
            f"seconds, after {row['warmup']} of warm-up in {row['warmup_seconds']:.1f}"
        )


def show_exponents(found: Sequence[Mapping[str, Any]]) -> None:
    """Exponents of n: over all n, and over large ones."""
    print(f"\nexponents of n: over all, and from n = {LARGE} on")
    print(f"{'':24} " + "".join(f"{words:>36}" for words in MEASURES.values()))
    for row in found:
        cells = (f"{cell(row[name], 29)}{cell(row[f'{name}_large'], 7)}" for name in MEASURES)
        print(f"{Entrant(row['model'], row['scheme'])!s:24} " + "".join(cells))


def draw(
    rows: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]], path: Path
) -> None:
    """Time of an iteration, of an effective draw, and memory, on log scales."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter

    figure, axes = plt.subplots(1, len(MEASURES), figsize=(4.0 * len(MEASURES), 4.6))
    sizes = sorted({row["n"] for row in rows})
    for axis, (name, words) in zip(axes, MEASURES.items(), strict=True):
        for place, slopes in enumerate(found):
            entrant = Entrant(slopes["model"], slopes["scheme"])
            pairs = [
                (row["n"], row[name])
                for row in rows
                if (row["model"], row["scheme"]) == entrant and row[name]
            ]
            if not pairs:
                continue
            slope = slopes[f"{name}_large"] or slopes[name]
            label = f"{entrant}" + ("" if slope is None else f": $n^{{{slope:.1f}}}$")
            scaled = entrant.scheme == race.NAIVE
            axis.plot(
                *zip(*pairs, strict=True),
                marker="o",
                ms=4,
                lw=1.3,
                ls="--" if scaled else "-",
                color=f"C{place}",
                label=label,
            )
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xticks(sizes, [str(n) for n in sizes])
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.set_xlabel("n")
        axis.set_title(words, size=10)
        axis.grid(color="0.92")
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16))
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", nargs="+", choices=list(race.SCHEMES), default=["gplc"])
    parser.add_argument(
        "--schemes", nargs="+", default=["default", "paper"], help="of GPLC; others run 'default'"
    )
    parser.add_argument("--n", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--data", default="U1")
    parser.add_argument("--seconds", type=float, default=60.0, help="CPU time of one run")
    parser.add_argument("--warmup", type=int, default=500, help="iterations")
    parser.add_argument("--sweeps", type=int, help="iterations to do, however long they take")
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    parser.add_argument("--figure", type=Path, help="PNG file for a picture")
    parser.add_argument("--memory-of", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_of:
        key, scheme, data, n = options.memory_of
        with threadpool_limits(limits=1):
            print(measure_memory(Entrant(key, scheme), data, int(n)))
        return
    entrants = [
        Entrant(key, scheme)
        for key in options.models
        for scheme in (options.schemes if key == "gplc" else ["default"])
    ]
    rows: list[dict[str, Any]] = []
    means: dict[Entrant, Array] = {}
    show_head()
    with threadpool_limits(limits=1):
        for each in entrants:
            few_iterations(each, options.data, SMALL_N)  # compiles
        for n in sorted(options.n):
            new = measure(entrants, options.data, n, options, means)
            for row in new:
                show(row)
                if options.sweeps is not None:
                    show_total(row)
            rows += new
            found = exponents(rows)
            if options.out:
                options.out.write_text(json.dumps({"rows": rows, "exponents": found}, indent=2))
    if len(options.n) > 1:
        show_exponents(found)
    if options.figure:
        draw(rows, found, options.figure)


if __name__ == "__main__":
    main()
