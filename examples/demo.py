"""Fit GPLC to the motorcycle data, say what came out, and draw it.

Run it with ``make demo``. It writes ``out/motorcycle.png``, or the file named as an argument:
``python examples/demo.py docs/images/motorcycle.png``.
"""

import os
import sys
import time
import warnings
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

import gplc
from gplc.datasets import RealData
from gplc.estimators import Band

ROOT = Path(__file__).resolve().parents[1]

CHAINS, DRAWS, WARMUP = 2, 300, 200
TIMES = (5.0, 15.0, 20.0, 30.0, 45.0)  # ms; where the prediction is printed
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

# Each panel goes from dark to light in one hue, so that its order survives greyscale and colour
# blindness.
MEDIAN, INNER, OUTER = "#08306b", "#6baed6", "#cfe1f2"
SD_LINE, SD_BAND = "#7f2704", "#fdd0a2"


def picture(data: RealData, grid: np.ndarray, quantiles: np.ndarray, sd: Band) -> plt.Figure:
    """Two panels over time: predictive quantiles with the data, and the SD of the residuals."""
    low, lower, median, upper, high = quantiles.T
    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(7.2, 6.2), sharex=True, height_ratios=(2.4, 1), layout="constrained"
    )
    top.fill_between(grid, low, high, color=OUTER, lw=0, label="90% of new measurements")
    top.fill_between(grid, lower, upper, color=INNER, lw=0, label="50% of new measurements")
    top.plot(grid, median, color=MEDIAN, lw=2, label="median")
    marks = {"marker": "o", "markersize": 3.6, "mfc": "white", "mec": "black", "mew": 0.8}
    top.plot(data.X[:, 0], data.y, ls="none", label=f"data ({data.y.size})", **marks)
    top.set_title("Motorcycle crash: predictive distribution of GPLC", loc="left")
    top.set_ylabel("Head acceleration (g)")
    top.legend(loc="lower right", frameon=False)

    bottom.fill_between(grid, sd.lower, sd.upper, color=SD_BAND, lw=0, label="90% band")
    bottom.plot(grid, sd.mean, color=SD_LINE, lw=2, label="posterior mean")
    bottom.set_ylabel("Residual SD (g)")
    bottom.set_xlabel("Time after impact (ms)")
    bottom.set_xlim(0, 60)
    bottom.set_ylim(bottom=0)
    bottom.legend(loc="upper left", frameon=False)
    figure.align_ylabels()
    return figure


def sampling_in_words(model: gplc.LatentCovariateGP) -> str:
    """How many updates moved, what went wrong numerically, and whether the chains agree."""
    told = model.diagnostics_
    moved = np.mean(list(told.acceptance.values()))
    events = ", ".join(f"{name} {count}" for name, count in told.numerical_events.items())
    rhat = max(row.rhat for row in told.rows.values())
    return (
        f"{moved:.0%} of the updates moved; numerical events: {events or 'none'}; "
        f"largest R-hat {rhat:.2f}."
    )


def chains_in_words(dist: gplc.Predictive, grid: np.ndarray) -> str:
    """Where the predictions of the two chains differ most, judged by their SDs."""
    means, sds = dist.components()
    halves = np.split(np.arange(means.shape[1]), CHAINS)  # components come chain by chain
    first, second = (
        gplc.Predictive.from_arrays(means[:, half], sds[:, half]).std() for half in halves
    )
    place = int(np.argmax(np.abs(np.log(first / second))))
    ratio = max(first[place] / second[place], second[place] / first[place])
    where = f"an SD of {first[place]:.0f} and of {second[place]:.0f} g at {grid[place]:.0f} ms"
    if ratio < 1.5:
        return f"The chains agree: where they differ most they predict {where}."
    return (
        f"The chains differ; most where they predict {where}.\n"
        "Each has settled on an explanation of its own and is too short to leave it. The picture\n"
        "averages the two; for results that matter run more and longer chains."
    )


def main(path: Path) -> None:
    """Fit, print, draw."""
    data = gplc.datasets.load_motorcycle()
    print(
        f"Fitting GPLC to {data.y.size} head accelerations from a simulated motorcycle crash:\n"
        f"{CHAINS} chains of {WARMUP} warm-up iterations and {DRAWS} draws ...",
        flush=True,
    )
    start = time.perf_counter()
    model = gplc.LatentCovariateGP(
        chains=CHAINS,
        draws=DRAWS,
        warmup=WARMUP,
        predictive_draws=200,
        n_jobs=2,
        random_state=1,
    )
    with warnings.catch_warnings():
        # That so short a run has not converged is said below, in the demo's own words.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(data.X, data.y)
    sampled = time.perf_counter()

    grid = np.linspace(data.X.min(), data.X.max(), 221)
    dist = model.predict_dist(grid[:, None])
    figure = picture(data, grid, dist.quantile(QUANTILES), model.residual_sd(grid[:, None]))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    at_times = model.predict_dist(np.array(TIMES)[:, None]).summary(0.9)
    done = time.perf_counter()

    print(f"Sampled in {sampled - start:.0f} s, predicted and drew in {done - sampled:.0f} s.")
    print(sampling_in_words(model))
    print(chains_in_words(dist, grid))
    print("\nAcceleration of the head that a new measurement would show, in g:")
    print("  ms after impact    mean    90% interval")
    for t, mean, lower, upper in zip(
        TIMES, at_times.mean, at_times.lower, at_times.upper, strict=True
    ):
        print(f"  {t:15.0f} {mean:7.0f}    {lower:4.0f} to {upper:3.0f}")
    print(f"\nThe picture is in {os.path.relpath(path)}.")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "out" / "motorcycle.png")
