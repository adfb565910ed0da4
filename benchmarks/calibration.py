"""Whether predictive intervals hold what they promise, on data from each model's own prior.

``python benchmarks/calibration.py`` draws, for every model, unknowns from the prior, and then the
responses of 40 training and 50 test rows jointly from the model given them (one model over all
90 rows, split). A model fitted to the training rows with the same priors must then cover test
responses as often as its intervals say, averaged over data sets: this holds exactly for exact
inference, so a gap beyond chance is an error of the sampler or of the predictions.

Everything is on the scale of the priors (``standardize=False``), x ~ N(0, 1). Priors are the
defaults, except that the latent log SD of GPLV has a smaller signal SD (`PRIORS`): under the
default one data set in ten has residual SDs from 1e-3 to 1e3 in the same picture.

Standard errors are taken over data sets, because the rows of one are dependent. ``--sets`` sets
their number, ``--first`` the number of the first, ``--jobs`` how many run at once, ``--out``
writes JSON. Seeds are fixed: data set k is the same whatever else is asked for, so a run can be
added to later. What has been found so far is printed every 25 sets.
"""

import argparse
import json
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from gplc import LatentCovariateGP, LatentVarianceGP, StandardGP, metrics
from gplc.models import MODELS

Array = NDArray[np.float64]

N_TRAIN, N_TEST = 40, 50
LEVELS = (0.5, 0.9)
TARGET = 0.02  # largest gap to nominal
SEED = 20120612

ESTIMATORS: Mapping[str, Any] = {
    "std": StandardGP,
    "gplc": LatentCovariateGP,
    "gplv": LatentVarianceGP,
}
PRIORS: Mapping[str, Any] = {"std": None, "gplc": None, "gplv": {"signal_sd_z": (-0.5, 0.5)}}


class Outcome(NamedTuple):
    """One data set: share of test responses inside each interval, and the figures of the fit."""

    covered: tuple[float, ...]
    nlpd: float
    seconds: float


def one_set(key: str, number: int, draws: int, warmup: int) -> Outcome:
    """Draw data set `number` from the prior of a model, fit the model to it, and judge."""
    data_seed, fit_seed = np.random.SeedSequence(
        [SEED, list(ESTIMATORS).index(key), number]
    ).spawn(2)
    rng = np.random.default_rng(data_seed)
    X = rng.standard_normal((N_TRAIN + N_TEST, 1))
    truth = MODELS[key](X, np.zeros(N_TRAIN + N_TEST), priors=PRIORS[key])
    y = truth.sample_data(rng, truth.sample_prior(rng))
    model = ESTIMATORS[key](
        priors=PRIORS[key],
        standardize=False,
        chains=1,
        draws=draws,
        warmup=warmup,
        random_state=fit_seed,
    )
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X[:N_TRAIN], y[:N_TRAIN])
    dist = model.predict_dist(X[N_TRAIN:])
    observed = y[N_TRAIN:]
    return Outcome(
        tuple(metrics.coverage(dist, observed, level) for level in LEVELS),
        metrics.nlpd(dist, observed),
        time.process_time() - began,
    )


def summarise(key: str, outcomes: list[Outcome]) -> dict[str, Any]:
    """Coverage of one model over data sets, with standard errors over these."""
    covered = np.array([outcome.covered for outcome in outcomes])
    result: dict[str, Any] = {"model": key, "sets": len(outcomes), "levels": {}}
    for level, column in zip(LEVELS, covered.T, strict=True):
        result["levels"][str(level)] = {
            "coverage": float(column.mean()),
            "standard_error": float(column.std(ddof=1) / np.sqrt(column.size)),
            "within_target": bool(abs(column.mean() - level) <= TARGET),
        }
    result["nlpd"] = float(np.mean([outcome.nlpd for outcome in outcomes]))
    result["seconds"] = float(sum(outcome.seconds for outcome in outcomes))
    result["by_set"] = covered.tolist()
    return result


def calibration(
    key: str, numbers: Sequence[int], jobs: int, draws: int, warmup: int
) -> dict[str, Any]:
    """Fit one model to its data sets, saying now and then how it goes."""
    outcomes: list[Outcome] = []
    for outcome in Parallel(n_jobs=jobs, return_as="generator")(
        delayed(one_set)(key, number, draws, warmup) for number in numbers
    ):
        outcomes.append(outcome)
        if len(outcomes) % 25 == 0 and len(outcomes) < len(numbers):
            print(f"  {report(summarise(key, outcomes))}", flush=True)
    return summarise(key, outcomes)


def report(result: dict[str, Any]) -> str:
    """One line for a model."""
    parts = [f"{result['model']:5} {result['sets']:5}"]
    for level, figures in result["levels"].items():
        gap = 100 * (figures["coverage"] - float(level))
        parts.append(
            f"{100 * figures['coverage']:7.2f} +- {100 * figures['standard_error']:.2f}"
            f" ({gap:+.2f}{'' if figures['within_target'] else ' !'})"
        )
    parts.append(f"{result['seconds']:8.0f} s")
    return "  ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", type=int, default=100, help="data sets for each model")
    parser.add_argument("--first", type=int, default=0, help="number of the first data set")
    parser.add_argument("--jobs", type=int, default=1, help="fits at once")
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--warmup", type=int, default=200)
    parser.add_argument("--models", nargs="+", choices=list(ESTIMATORS), default=list(ESTIMATORS))
    parser.add_argument("--quick", action="store_true", help="a few small fits: does it run?")
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    settings = parser.parse_args()
    if settings.quick:
        settings.sets, settings.draws, settings.warmup = 4, 50, 50
    print(
        f"coverage in % (gap in points; ! beyond {100 * TARGET:.0f}): {N_TRAIN} training and "
        f"{N_TEST} test rows, one chain of {settings.warmup} + {settings.draws}"
    )
    print("model  sets   50% interval             90% interval             CPU")
    results = []
    for key in settings.models:
        numbers = range(settings.first, settings.first + settings.sets)
        results.append(calibration(key, numbers, settings.jobs, settings.draws, settings.warmup))
        print(report(results[-1]), flush=True)
    if settings.out:
        settings.out.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
