"""The sweep over GPLC's latent covariates: its speed, memory and start-up.

``python benchmarks/sweep.py`` measures, on one thread and in one run,

1. a sweep of gplc against the same step-out slice updates with a Cholesky factorisation for every
   density, as in Wang and Neal (2012). The two are timed in turn from the same state, in CPU
   time, so that a busy machine matters little. The baseline is compiled, changes only row and
   column i of C, and calls LAPACK without any detour. Where a whole sweep of it would take long, a
   random subset of the latents is timed, a new one each time, and scaled up (column "timed");
2. how the cost of a sweep grows with n;
3. the peak memory of a sweep with its model and state, in a fresh process;
4. the time to import gplc and to fit 10 rows, in fresh processes with warm caches.

Ratios are what to compare between machines. ``--quick`` takes seconds, ``--out`` writes JSON.
"""

import argparse
import ctypes
import json
import math
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import get_cython_function_address
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from gplc._compiled import covariate_sweep
from gplc._compiled.slice_walk import Limits
from gplc.chains import run_chain
from gplc.datasets import make_paper
from gplc.models import LatentCovariate
from gplc.models.base import State, Unknowns, Update
from gplc.models.latent_covariate.sweep import BLOCK_SIZE
from gplc.samplers.sweeps import SliceSweep

Array = NDArray[np.float64]

SAMPLER = SliceSweep(width=4.0)  # as in the default scheme
UPDATE = Update("w", SAMPLER)
LIMITS = Limits(SAMPLER.width, SAMPLER.max_steps, SAMPLER.max_shrinks)
TARGETS = {100: 8.0, 400: 25.0, 1000: 60.0}  # least ratio to the baseline
GROWTH_TARGET, GROWTH_FROM = 3.2, 250  # largest exponent, and from which n
MEMORY_TARGET = 10.0  # times n^2 doubles
IMPORT_TARGET, FIT_TARGET = 1.0, 2.0  # seconds

# LAPACK and BLAS as scipy has them, called from compiled code with no copy in between.
_POINTER = ctypes.c_void_p
_dpotrf = ctypes.CFUNCTYPE(None, *[_POINTER] * 5)(
    get_cython_function_address("scipy.linalg.cython_lapack", "dpotrf")
)
_dtrsv = ctypes.CFUNCTYPE(None, *[_POINTER] * 8)(
    get_cython_function_address("scipy.linalg.cython_blas", "dtrsv")
)


@njit
def log_density(
    i: int,
    here: float,
    w: Array,
    y: Array,
    base: Array,
    constant: float,
    inverse_square: float,
    noise_variance: float,
    covariance: Array,
    factor: Array,
    whitened: Array,
    integers: NDArray[np.int32],
    letters: NDArray[np.uint8],
) -> float:
    """Log p(y, w_i | the rest), from a factorisation of C with w_i = here.

    `covariance` is right but for case i, of which this writes the row and the column.
    """
    n = w.size
    for j in range(n):
        gap = w[j] - here
        entry = constant + base[i, j] * math.exp(-inverse_square * gap * gap)
        covariance[i, j] = entry
        covariance[j, i] = entry
    covariance[i, i] = constant + base[i, i] + noise_variance
    factor[:] = covariance
    whitened[:] = y
    lower, no, order, one, status = (
        letters[0:].ctypes,
        letters[1:].ctypes,
        integers[0:].ctypes,
        integers[1:].ctypes,
        integers[2:].ctypes,
    )
    _dpotrf(lower, order, factor.ctypes, order, status)
    if integers[2] != 0:
        return -math.inf
    _dtrsv(lower, no, no, order, factor.ctypes, order, whitened.ctypes, one)
    log_determinant = 0.0
    for j in range(n):
        log_determinant += math.log(factor[j, j])
    return -log_determinant - 0.5 * (np.dot(whitened, whitened) + here * here)


@njit
def factorising_updates(
    rng: np.random.Generator,
    cases: NDArray[np.int64],
    w: Array,
    y: Array,
    base: Array,
    constant: float,
    inverse_square: float,
    noise_variance: float,
    width: float,
    max_steps: int,
    max_shrinks: int,
) -> int:
    """Step-out slice updates of some w_i, in place, factorising C for every density.

    Returns the number of densities evaluated.
    """
    n = w.size
    covariance = np.empty((n, n))
    factor = np.empty((n, n))
    whitened = np.empty(n)
    integers = np.array([n, 1, 0], dtype=np.int32)
    letters = np.array([ord("L"), ord("N")], dtype=np.uint8)
    for i in range(n):
        for j in range(n):
            gap = w[i] - w[j]
            covariance[i, j] = constant + base[i, j] * math.exp(-inverse_square * gap * gap)
        covariance[i, i] += noise_variance
    shared = (w, y, base, constant, inverse_square, noise_variance)
    work = (covariance, factor, whitened, integers, letters)
    evaluations = 0
    for i in cases:
        here = w[i]
        level = log_density(i, here, *shared, *work) - rng.standard_exponential()
        left = here - width * rng.random()
        right = left + width
        steps_left = int(max_steps * rng.random())
        steps_right = max_steps - 1 - steps_left
        evaluations += 3
        while log_density(i, left, *shared, *work) > level and steps_left > 0:
            left -= width
            steps_left -= 1
            evaluations += 1
        while log_density(i, right, *shared, *work) > level and steps_right > 0:
            right += width
            steps_right -= 1
            evaluations += 1
        for _ in range(max_shrinks):
            point = left + rng.random() * (right - left)
            evaluations += 1
            if log_density(i, point, *shared, *work) > level:
                w[i] = point
                break
            if point < here:
                left = point
            else:
                right = point
        else:
            # C holds the last point tried: put the present one back.
            log_density(i, here, *shared, *work)
    return evaluations


class Timing(NamedTuple):
    """One timed run."""

    seconds: float
    densities: float  # evaluated per latent
    latents: int  # updated


def model_of(n: int) -> LatentCovariate:
    """GPLC on standardized data of the problem U1."""
    data = make_paper("U1", n, random_state=1)
    X, y = data.X, data.y
    return LatentCovariate((X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std())


def settled_state(model: LatentCovariate, theta: Array, sweeps: int) -> State:
    """A state with w from its prior and then a few sweeps."""
    rng = np.random.default_rng(2)
    unknowns = Unknowns(theta, model.sample_latent(rng, theta))
    for _ in range(sweeps):
        unknowns = model.step(rng, model.state(unknowns), UPDATE)[0].unknowns
    return model.state(unknowns)


def time_ours(model: LatentCovariate, state: State, seed: int) -> Timing:
    """A whole sweep as a chain does it: with copies, the new density and correlations."""
    rng = np.random.default_rng(seed)
    start = time.process_time()
    _, info = model.step(rng, state, UPDATE)
    return Timing(time.process_time() - start, info.n_evaluations / model.n, model.n)


def time_baseline(model: LatentCovariate, state: State, seed: int, latents: int) -> Timing:
    """Updates of a random subset of the latents with a factorisation for every density."""
    rng = np.random.default_rng(seed)
    cases = np.sort(rng.permutation(model.n)[:latents])
    w = state.latent.copy()
    start = time.process_time()
    evaluations = factorising_updates(rng, cases, w, model.y, *arguments(model, state), *LIMITS)
    return Timing(time.process_time() - start, evaluations / latents, latents)


def arguments(model: LatentCovariate, state: State) -> tuple[Array, float, float, float]:
    """eta^2 times the correlation due to x, c^2, 1 / rho_w^2 and sigma^2."""
    theta = state.theta
    return (
        state.solved[0].pieces.inner[0] * math.exp(2.0 * theta[0]),
        model.kernel.constant**2,
        math.exp(-2.0 * theta[-2]),
        math.exp(2.0 * theta[-1]),
    )


def extra_passes(model: LatentCovariate, state: State, sweeps: int = 3) -> float:
    """Passes over the factor per latent, beyond the one that a block of latents shares."""
    assert state.solved[0].factor is not None
    counts = np.zeros(covariate_sweep.N_COUNTS, dtype=np.int64)
    own, W = state.theta[:-1], model.columns(state.latent)
    described = model.bound.in_latent(own, state.solved[0].pieces, W, 0)
    terms = None if described is None else described.compiled(0, model.n)
    assert terms is not None
    for seed in range(sweeps):
        sweep = covariate_sweep.Sweep(
            state.latent.copy(),
            model.y,
            terms,
            model.noise_variances(state.theta),
            state.solved[0].factor.upper.copy(),
            state.solved[0].factor.whitened.copy(),
            counts,
        )
        covariate_sweep.slice_sweep(np.random.default_rng(seed), sweep, LIMITS, BLOCK_SIZE)
    return int(counts[covariate_sweep.PASSES]) / (sweeps * model.n)


def compare(theta: Array, n: int, repeats: int, latents: int) -> dict[str, Any]:
    """Sweeps of gplc and of the baseline in turn, from one state."""
    model = model_of(n)
    state = settled_state(model, theta, sweeps=3)
    time_ours(model, state, seed=0)
    time_baseline(model, state, 0, latents=1)
    pairs = [
        (time_ours(model, state, seed), time_baseline(model, state, seed, latents))
        for seed in range(1, repeats + 1)
    ]
    mine = [our.seconds for our, _ in pairs]
    theirs = [base.seconds * n / latents for _, base in pairs]
    ratios = [base / our for our, base in zip(mine, theirs, strict=True)]
    return {
        "n": n,
        "repeats": repeats,
        "latents_timed": latents,
        "seconds": statistics.median(mine),
        "best_seconds": min(mine),
        "baseline_seconds": statistics.median(theirs),
        "ratio": statistics.median(ratios),
        "ratios": sorted(ratios),
        "target": TARGETS.get(n),
        "densities": statistics.mean(our.densities for our, _ in pairs),
        "baseline_densities": statistics.mean(base.densities for _, base in pairs),
        "extra_passes": extra_passes(model, state),
    }


def growth(rows: list[dict[str, Any]]) -> float:
    """Exponent of n in the best time of a sweep, by least squares on logs."""
    used = [row for row in rows if row["n"] >= GROWTH_FROM]
    sizes = np.log([row["n"] for row in used])
    seconds = np.log([row["best_seconds"] for row in used])
    return float(np.polyfit(sizes, seconds, 1)[0])


def in_fresh_process(script: str) -> list[float]:
    """The numbers that a Python script prints."""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
    return [float(word) for word in done.stdout.split()]


# The peak is that of this process image (VmHWM): ru_maxrss would include the parent's. Code is
# loaded before by a sweep of few cases.
MEMORY_SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np
from sweep import UPDATE, model_of, settled_state
def kilobytes(field):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field + ":"))
theta = np.array({theta})
settled_state(model_of(20), theta, sweeps=1)
before = kilobytes("VmRSS")
settled_state(model_of({n}), theta, sweeps=2)
print(1024 * (kilobytes("VmHWM") - before))
"""

# Seconds by the wall clock and of CPU: they differ on a busy machine.
STARTUP_SCRIPT = """
import time
start, cpu = time.perf_counter(), time.process_time()
import gplc, gplc.models, gplc.chains
print(time.perf_counter() - start, time.process_time() - cpu)
x = [[0.1 * i] for i in range(10)]
model = gplc.models.LatentCovariate(x, [row[0] ** 2 for row in x])
start, cpu = time.perf_counter(), time.process_time()
gplc.chains.run_chain(model, seed=1, draws=20, warmup=10)
print(time.perf_counter() - start, time.process_time() - cpu)
"""


def peak_memory(theta: Array, n: int) -> float:
    """Peak memory of model, state and sweep, in n^2 doubles; NaN where /proc does not exist."""
    if not Path("/proc/self/status").exists():
        return math.nan
    folder = str(Path(__file__).parent)
    script = MEMORY_SCRIPT.format(folder=folder, theta=theta.tolist(), n=n)
    return in_fresh_process(script)[0] / (8.0 * n * n)


def startup(repeats: int) -> list[float]:
    """Median seconds to import (wall, CPU), then to fit 10 rows (wall, CPU).

    A first run, not counted, warms the caches.
    """
    runs = [in_fresh_process(STARTUP_SCRIPT) for _ in range(repeats + 1)][1:]
    return [statistics.median(times) for times in zip(*runs, strict=True)]


def verdict(value: float, limit: float | None, least: bool = False) -> str:
    """The target beside a measured value, and whether it is met."""
    if limit is None:
        return ""
    met = value >= limit if least else value <= limit
    return f"({'at least' if least else 'at most'} {limit:g}: {'met' if met else 'MISSED'})"


def measure(quick: bool) -> dict[str, Any]:
    """Run everything, print it as it comes, and return it."""
    # n: (repeats, latents of the baseline that are timed)
    plan = {100: (25, 100), 250: (15, 60), 400: (9, 40), 500: (9, 40), 1000: (7, 40)}
    if quick:
        plan = {100: (7, 50), 250: (5, 20), 400: (5, 20)}
    theta = run_chain(model_of(100), seed=1, draws=30, warmup=30).theta[-1]
    print("hyperparameters:", np.round(np.exp(theta), 3))
    print(
        "    n  sweep [s]  baseline [s]  timed   ratio (min to max)   densities per latent  "
        "extra passes"
    )
    rows = []
    for n, (repeats, latents) in plan.items():
        row = compare(theta, n, repeats, latents)
        rows.append(row)
        spread = f"({row['ratios'][0]:.1f} to {row['ratios'][-1]:.1f})"
        print(
            f"{n:5d}  {row['seconds']:9.4f}  {row['baseline_seconds']:12.3f}"
            f"  {latents:5d}  {row['ratio']:6.1f} {spread:15s}"
            f" {row['densities']:8.2f} and {row['baseline_densities']:5.2f}"
            f"  {row['extra_passes']:12.2f}  {verdict(row['ratio'], row['target'], least=True)}",
            flush=True,
        )
    result: dict[str, Any] = {"theta": theta.tolist(), "sweeps": rows}
    result["growth"] = growth(rows)
    print(f"cost grows as n^{result['growth']:.2f}", verdict(result["growth"], GROWTH_TARGET))
    n = max(plan)
    result["memory"] = peak_memory(theta, n)
    print(
        f"peak memory {result['memory']:.1f} n^2 doubles at n = {n}",
        verdict(result["memory"], MEMORY_TARGET),
    )
    wall, cpu, fit_wall, fit_cpu = startup(2 if quick else 5)
    result |= {"import": wall, "import_cpu": cpu, "first_fit": fit_wall, "first_fit_cpu": fit_cpu}
    print(f"import {wall:.2f} s (CPU {cpu:.2f} s)", verdict(wall, IMPORT_TARGET))
    print(
        f"first fit of 10 rows {fit_wall:.2f} s more (CPU {fit_cpu:.2f} s)",
        verdict(fit_wall, FIT_TARGET),
    )
    return result


def main() -> None:
    """Read the command line, measure, and write the file asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few repeats, n up to 400")
    parser.add_argument("--out", type=Path, help="where to write the results as JSON")
    options = parser.parse_args()
    with threadpool_limits(limits=1):
        result = measure(options.quick)
    if options.out is not None:
        options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
