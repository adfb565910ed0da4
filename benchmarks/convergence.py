"""Do default fits end well? Every model on real and made data, several seeds each.

    python benchmarks/convergence.py [--models gplc] [--data motorcycle lidar] [--seeds 5]
                                     [--out FILE]

A fit counts as fine if its own verdict says so: R-hat < 1.01 and bulk and tail ESS > 400 for all
that is judged. Nothing is set but the seed and the number of workers. Seconds are given twice: by
the clock, which other work on the machine lengthens, and of CPU time, warm-up included. The rate
is the worst of all effective draws over the CPU seconds of a run.
"""

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gplc
from gplc.estimators.base import ESTIMATORS


class Table(NamedTuple):
    """Inputs and responses."""

    X: np.ndarray
    y: np.ndarray


def branches(seed: int) -> Table:
    """Two branches that part as x grows: y = +-(0.3 + x) + noise that shrinks."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=150)
    noise = 0.1 * (1.0 - 0.8 * x) * rng.standard_normal(150)
    return Table(x[:, None], rng.choice([-1.0, 1.0], 150) * (0.3 + x) + noise)


def pinch(seed: int) -> Table:
    """Skewed noise of SD 0.4 |x - 0.5|, which has no size at all in the middle."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=200)
    skewed = (rng.gamma(2.0, size=200) - 2.0) / np.sqrt(2.0)
    return Table(x[:, None], 0.4 * np.abs(x - 0.5) * skewed)


def six_inputs(seed: int) -> Table:
    """M1 with n = 300 and three more inputs that have no effect."""
    data = gplc.datasets.make_paper("M1", n=300, random_state=seed)
    others = np.random.default_rng(seed).uniform(size=(300, 3))
    return Table(np.column_stack([data.X, others]), data.y)


def _paper(name: str, n: int = 100) -> Callable[[int], Table]:
    def make(seed: int) -> Table:
        data = gplc.datasets.make_paper(name, n=n, random_state=seed)
        return Table(data.X, data.y)

    return make


# By name: a table for a seed. That of real data is always the same.
DATA: dict[str, Callable[[int], Any]] = {
    "motorcycle": lambda _: gplc.datasets.load_motorcycle(),
    "lidar": lambda _: gplc.datasets.load_lidar(),
    **{name: _paper(name) for name in ("U1", "U2", "M1", "M2")},
    "branches": branches,
    "pinch": pinch,
    "M1, six inputs": six_inputs,
    "U1, n = 1000": _paper("U1", 1000),
}


def one(key: str, name: str, seed: int, sampler: str, jobs: int) -> dict[str, Any]:
    """A fit and what its verdict says."""
    table = DATA[name](seed)
    model = ESTIMATORS[key](random_state=seed, sampler=sampler, n_jobs=jobs, progress=False)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(table.X, table.y)
    clock = time.perf_counter() - began
    told = model.diagnostics_
    rows = told.rows.items()
    ess, worst = min((min(row.ess_bulk, row.ess_tail), label) for label, row in rows)
    cpu = sum(sum(chain.seconds.values()) for chain in model.chains_)
    return {
        "model": key,
        "data": name,
        "seed": seed,
        "sampler": sampler,
        "fine": bool(told.ok),
        "worst ESS": float(ess),
        "of": worst,
        "worst R-hat": float(max(row.rhat for _, row in rows)),
        "draws a chain": int(told.n_draws),
        "seconds": clock,
        "CPU seconds": cpu,
        "per CPU second": float(ess) / cpu,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["gplc"], choices=list(ESTIMATORS))
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=list(DATA))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sampler", default="default")
    parser.add_argument("--jobs", type=int, default=2, help="workers")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    arguments = parser.parse_args()
    # Workers are started, and code is compiled, before anything is timed.
    for key in arguments.models:
        few = {"chains": 2, "draws": 5, "warmup": 60}
        ESTIMATORS[key](**few, n_jobs=arguments.jobs, random_state=0).fit(*branches(0))
    found = []
    for key in arguments.models:
        for name in arguments.data:
            for seed in range(1, arguments.seeds + 1):
                row = one(key, name, seed, arguments.sampler, arguments.jobs)
                found.append(row)
                print(
                    f"{key:4} {name:15} seed {seed}: {'fine' if row['fine'] else 'not fine':8} "
                    f"ESS {row['worst ESS']:5.0f} ({row['of']}), R-hat {row['worst R-hat']:.3f}, "
                    f"{row['draws a chain']} draws, {row['seconds']:.0f} s, "
                    f"{row['CPU seconds']:.0f} CPU s",
                    flush=True,
                )
                if arguments.out:
                    arguments.out.write_text(json.dumps(found, indent=1))
            mine = [row for row in found if row["model"] == key and row["data"] == name]
            rate = statistics.median(row["per CPU second"] for row in mine)
            print(
                f"{key:4} {name:15} {sum(row['fine'] for row in mine)} of {len(mine)} fine, "
                f"{rate:.2f} effective draws per CPU second",
                flush=True,
            )


if __name__ == "__main__":
    main()
