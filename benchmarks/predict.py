"""Predictions: their memory, their time against bare triangular solves, and the mixture's speed.

``python benchmarks/predict.py`` measures

1. the peak memory of mean, SD and 90% interval (`Predictive.summary`) of many rows with 1,000
   draws, above that of the fitted model and a first small prediction, in a fresh process: a
   million rows for the standard model; fewer for the others, whose memory for a million is
   extrapolated from two runs (what grows with the rows is X and the result);
2. the time of `Predictive.summary` and of `Predictive.moments` for 5,000 rows, against the
   triangular solves of the same sizes alone: for every draw one LAPACK call L^-1 K* with as many
   columns as rows (GPLC: times nodes; GPLV: twice, for two processes). The two are timed in turn,
   on one BLAS thread, so that a busy machine slows both;
3. the mixture by itself, on made-up components: nanoseconds of one evaluation of its cdf, against
   the C library's erfc and exp; evaluations a quantile; CRPS.

Ratios are what to compare between machines. ``--quick`` takes seconds, ``--out`` writes JSON.
"""

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.linalg import lapack
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from gplc import LatentCovariateGP, LatentVarianceGP, StandardGP, datasets
from gplc._compiled import mixture_crps, mixture_quantiles

Array = NDArray[np.float64]

ESTIMATORS: Mapping[str, Any] = {
    "std": StandardGP,
    "gplc": LatentCovariateGP,
    "gplv": LatentVarianceGP,
}
MEMORY_TARGET = 1000.0  # MB
TIME_TARGET = 3.0  # times the bare solves
MANY_ROWS, MANY_DRAWS, SMALL_N = 1_000_000, 1000, 20
TIMED_ROWS = 5000


def fitted(key: str, n: int, draws: int, warmup: int = 20) -> Any:
    """A model fitted to the paper's data set U1, with all draws used for prediction."""
    data = datasets.make_paper("U1", n=n, random_state=0)
    model = ESTIMATORS[key](
        chains=1, draws=draws, warmup=warmup, predictive_draws=None, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(data.X, data.y)


def rows_of_x(count: int) -> Array:
    """Rows to predict."""
    return np.linspace(0.0, 1.0, count)[:, None]


# Memory


def peak_megabytes() -> float:
    """Largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_memory(key: str, rows: int, draws: int) -> dict[str, float]:
    """Peak memory of `summary` above the fitted model; to be called in a fresh process."""
    model = fitted(key, SMALL_N, draws)
    model.predict_dist(rows_of_x(3)).summary()  # compiles, and conditions on every draw
    before = peak_megabytes()
    began = time.perf_counter()
    summary = model.predict_dist(rows_of_x(rows)).summary(0.9)
    seconds = time.perf_counter() - began
    if not np.isfinite(summary).all():
        raise RuntimeError("predictions are not finite")
    return {"rows": rows, "megabytes": peak_megabytes() - before, "seconds": seconds}


def in_fresh_process(key: str, rows: int, draws: int) -> dict[str, float]:
    """Run `measure_memory` in another Python."""
    command = [sys.executable, __file__, "--memory-of", key, str(rows), str(draws)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def memory(quick: bool) -> list[dict[str, Any]]:
    """Memory of every model, for a million rows."""
    draws = 100 if quick else MANY_DRAWS
    many = 20_000 if quick else MANY_ROWS
    results = []
    for key in ESTIMATORS:
        if key == "std":
            measured = in_fresh_process(key, many, draws)
            total = measured["megabytes"]
        else:
            fewer = in_fresh_process(key, many // 100, draws)
            measured = in_fresh_process(key, many // 25, draws)
            slope = (measured["megabytes"] - fewer["megabytes"]) / (
                measured["rows"] - fewer["rows"]
            )
            # Never below what the rows and the result must take: X twice, four numbers.
            slope = max(slope, 6 * 8 / 1e6)
            total = measured["megabytes"] + slope * (many - measured["rows"])
        results.append(
            {"model": key, "draws": draws, **measured, "at": many, "megabytes_at": total}
        )
        print(
            f"{key:5} {draws:6} draws {int(measured['rows']):9,} rows: "
            f"{measured['megabytes']:6.0f} MB, {measured['seconds']:6.1f} s, "
            f"{1e6 * measured['seconds'] / measured['rows']:7.1f} us a row; "
            f"{many:,} rows: {total:6.0f} MB{'' if total < MEMORY_TARGET else ' !'}",
            flush=True,
        )
    return results


# Time


def bare_solves(key: str, model: Any, rows: int) -> Callable[[], float]:
    """The triangular solves of a prediction alone: returns a function giving its seconds."""
    n, count = model.model_.n, len(model.posterior_)
    columns = rows * model.posterior_.n_nodes if key == "gplc" else rows
    rng = np.random.default_rng(0)
    lower = np.asfortranarray(np.tril(0.1 * rng.standard_normal((n, n))) + 2.0 * np.eye(n))
    # The columns come in the blocks that predictions work in.
    block = min(columns, max(1, 1_000_000 // count))
    right = np.asfortranarray(rng.standard_normal((n, block)))
    solves = count * (2 if key == "gplv" else 1) * math.ceil(columns / block)
    scale = columns / (block * math.ceil(columns / block))

    def run() -> float:
        spent = 0.0
        for _ in range(solves):
            work = right.copy(order="F")
            began = time.perf_counter()
            lapack.dtrtrs(lower, work, lower=1, overwrite_b=1)
            spent += time.perf_counter() - began
        return spent * scale

    return run


def seconds_of(function: Callable[[], object]) -> float:
    """Wall time of one call."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def compare_times(key: str, n: int, draws: int, rows: int, repeats: int) -> dict[str, Any]:
    """Median times of the solves alone and of predictions, taken in turn."""
    model = fitted(key, n, draws)
    X = rows_of_x(rows)
    model.predict_dist(X[:3]).summary()
    solves = bare_solves(key, model, rows)
    times: dict[str, list[float]] = {"solves": [], "mean": [], "moments": [], "summary": []}
    for _ in range(repeats):
        times["solves"].append(solves())
        times["mean"].append(seconds_of(lambda: model.predict_dist(X).mean()))
        times["moments"].append(seconds_of(lambda: model.predict_dist(X).moments()))
        times["summary"].append(seconds_of(lambda: model.predict_dist(X).summary()))
    result: dict[str, Any] = {"model": key, "n": n, "draws": draws, "rows": rows}
    for name, taken in times.items():
        result[f"{name}_seconds"] = statistics.median(taken)
        result[f"{name}_ratio"] = statistics.median(
            one / bare for one, bare in zip(taken, times["solves"], strict=True)
        )
    return result


def times(quick: bool) -> list[dict[str, Any]]:
    """Ratios of every model, at two sizes."""
    rows, repeats = (500, 1) if quick else (TIMED_ROWS, 5)
    print("model    n  draws   rows   solves  moments  summary   (times the solves: mean, both)")
    results = []
    with threadpool_limits(limits=1, user_api="blas"):
        for n in (50,) if quick else (100, 300):
            for key in ESTIMATORS:
                draws = 20 if key == "gplc" and n > 100 else 40
                one = compare_times(key, n, draws, rows, repeats)
                results.append(one)
                late = one["summary_ratio"] > TIME_TARGET
                print(
                    f"{key:5} {n:4} {draws:6} {rows:6} {one['solves_seconds']:7.3f}s "
                    f"{one['moments_seconds']:7.3f}s {one['summary_seconds']:7.3f}s   "
                    f"{one['mean_ratio']:5.2f} {one['moments_ratio']:5.2f} "
                    f"{one['summary_ratio']:5.2f}{' !' if late else ''}",
                    flush=True,
                )
    return results


# The mixture by itself


@njit
def library_evaluation(t: float, d: Array, precisions: Array, out: Array) -> None:
    """What `_tails_densities_slopes` does, with erfc and exp from the C library."""
    for j in range(d.shape[0]):
        u = (t - d[j]) * precisions[j]
        density = math.exp(-0.5 * u * u) * precisions[j]
        out[j] = 0.5 * math.erfc(-u * math.sqrt(0.5)) + density - u * density * precisions[j]


def best_seconds(function: Callable[[], object], repeats: int = 5) -> float:
    """Best of several runs: the machine may be busy."""
    function()
    return min(seconds_of(function) for _ in range(repeats))


def mixtures(quick: bool) -> dict[str, float]:
    """Speed of the mixture's functions on skewed mixtures of 1,000 components."""
    count, rows, loops = 1000, 50 if quick else 500, 1000
    rng = np.random.default_rng(0)
    means = np.sin(np.arange(rows))[:, None] + np.exp(0.5 * rng.standard_normal(count))
    sds = np.tile(0.1 * np.exp(0.3 * rng.standard_normal(count)), (rows, 1))
    d, precisions = means[0], 1 / sds[0]
    scratch = [np.empty(count) for _ in range(3)]

    def ours() -> None:
        for _ in range(loops):
            mixture_quantiles._tails_densities_slopes(1.0, d, precisions, -1.0, *scratch)

    def library() -> None:
        for _ in range(loops):
            library_evaluation(1.0, d, precisions, scratch[0])

    q = np.array([0.05, 0.95])
    _, evaluations = mixture_quantiles.quantiles(means, sds, None, q)
    y = np.ones((20, 1))
    result = {
        "evaluation_ns": best_seconds(ours) * 1e9 / loops / count,
        "library_ns": best_seconds(library) * 1e9 / loops / count,
        "evaluations_a_quantile": evaluations / rows / q.size,
        "quantile_us": best_seconds(lambda: mixture_quantiles.quantiles(means, sds, None, q))
        * 1e6
        / rows
        / q.size,
        "crps_us": best_seconds(lambda: mixture_crps.crps(means[:20], sds[:20], None, y))
        * 1e6
        / 20,
    }
    print(
        f"cdf, density and slope: {result['evaluation_ns']:.1f} ns a component, C library "
        f"{result['library_ns']:.1f}; quantile of 1,000: {result['evaluations_a_quantile']:.2f} "
        f"evaluations, {result['quantile_us']:.0f} us; CRPS: {result['crps_us']:.0f} us"
    )
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run?")
    parser.add_argument("--only", choices=["memory", "time", "mixture"], help="one part")
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    parser.add_argument("--memory-of", nargs=3, help=argparse.SUPPRESS)
    settings = parser.parse_args()
    if settings.memory_of:
        key, rows, draws = settings.memory_of
        print(json.dumps(measure_memory(key, int(rows), int(draws))))
        return
    parts: dict[str, Callable[[bool], Any]] = {
        "time": times,
        "memory": memory,
        "mixture": mixtures,
    }
    results = {}
    for name, part in parts.items():
        if settings.only in (None, name):
            print(f"{name}:")
            results[name] = part(settings.quick)
    if settings.out:
        settings.out.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
