"""What several chains, checkpoints and progress cost, as ratios measured in one run.

    python benchmarks/chains.py [--quick] [--out FILE]

Each setting is timed in turn, the whole round several times over, and a ratio is the median over
rounds: the machine's moods hit both sides of a ratio alike.
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


def timed(run: Callable[[], object]) -> float:
    """Wall-clock seconds of one call."""
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


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
    draws, rounds = (60, 3) if arguments.quick else (400, 5)
    data = gplc.datasets.make_paper("U1", n=200, random_state=1)

    ratios: dict[str, list[float]] = {"two chains": [], "checkpoint": [], "progress": []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.ckpt"
        fit(data, 4, chains=2, n_jobs=2)  # workers started and code compiled
        fit(data, 4, chains=1)
        for _ in range(rounds):
            one = timed(lambda: fit(data, draws, chains=1))
            two = timed(lambda: fit(data, draws, chains=2, n_jobs=2))
            path.unlink(missing_ok=True)
            saved = timed(lambda: fit(data, draws, chains=1, checkpoint=path))
            shown = timed(lambda: fit(data, draws, chains=1, progress=True))
            ratios["two chains"].append(two / one)
            ratios["checkpoint"].append(saved / one)
            ratios["progress"].append(shown / one)

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
