"""What several chains, checkpoints and progress cost, as ratios measured in one run.

    python benchmarks/chains.py [--quick] [--out FILE]

Each setting is timed in turn, the whole round several times over, and a ratio is the median over
rounds: the machine's moods hit both sides of a ratio alike. Two chains are timed by the clock;
what checkpoints and progress add is CPU time of the same process, which other work on the machine
disturbs less.
"""

import argparse
import contextlib
import io
import json
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import gplc


def timed(run: Callable[[], object]) -> tuple[float, float]:
    """Seconds of one call: by the clock, and of CPU time."""
    began, began_cpu = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - began, time.process_time() - began_cpu


def fit(data: gplc.datasets.PaperData, draws: int, **settings: object) -> object:
    """One fit of GPLC without warm-up; `settings` go to the estimator."""
    model = gplc.LatentCovariateGP(draws=draws, warmup=0, random_state=1, **settings)
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        return model.fit(data.X, data.y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer draws and rounds")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    arguments = parser.parse_args()
    draws, rounds = (60, 3) if arguments.quick else (400, 7)
    data = gplc.datasets.make_paper("U1", n=200, random_state=1)

    ratios: dict[str, list[float]] = {"two chains": [], "checkpoint": [], "progress": []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.ckpt"
        fit(data, 4, chains=2, n_jobs=2)  # workers started and code compiled
        fit(data, 4, chains=1)
        for _ in range(rounds):
            one, one_cpu = timed(lambda: fit(data, draws, chains=1))
            two, _ = timed(lambda: fit(data, draws, chains=2, n_jobs=2))
            path.unlink(missing_ok=True)
            _, saved_cpu = timed(lambda: fit(data, draws, chains=1, checkpoint=path))
            _, shown_cpu = timed(lambda: fit(data, draws, chains=1, progress=True))
            ratios["two chains"].append(two / one)
            ratios["checkpoint"].append(saved_cpu / one_cpu)
            ratios["progress"].append(shown_cpu / one_cpu)

    figures = {
        name: {"median": statistics.median(values), "min": min(values), "max": max(values)}
        for name, values in ratios.items()
    }
    print(f"GPLC, n = 200, {draws} draws, {rounds} rounds; time relative to one plain chain")
    for name, figure in figures.items():
        print(f"{name:12} {figure['median']:.3f}  ({figure['min']:.3f} to {figure['max']:.3f})")
    if arguments.out:
        arguments.out.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
