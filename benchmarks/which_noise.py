"""Does `gplc.compare` answer rightly, and what does it cost? U1, U2 and data of constant noise.

Ten sets of n rows of each kind are compared by leave-one-out. U1 has Gaussian noise whose SD
varies (the right advice is gplv), U2 skewed noise (gplc), U0 the noise of U1 with the same SD
everywhere (std).
With --folds, the first sets are compared by ten-fold cross-validation too, for the signs of
differences; with --refit the rows whose k is bad are sampled again.

    python benchmarks/which_noise.py --sets 10 --out benchmarks/results/which_noise.json
"""

import argparse
import json
import time
import warnings

import numpy as np

import gplc
from gplc.comparison import every_model

RIGHT = {"U0": "std", "U1": "gplv", "U2": "gplc"}


def made(kind, n, seed):
    """Inputs and responses; U0 has the average SD of U1 everywhere."""
    data = gplc.datasets.make_paper("U1" if kind == "U0" else kind, n=n, random_state=seed)
    if kind != "U0":
        return data.X, data.y
    return data.X, data.f + (data.y - data.f) / data.sd * np.mean(data.sd)


def one(kind, n, seed, settings, folds, refit):
    X, y = made(kind, n, seed)
    began = time.process_time()
    result = gplc.compare(X, y, every_model(**settings), refit=refit)
    total = time.process_time() - began
    record = result.to_record()
    fits = sum(sum(each.diagnostics_.seconds.values()) for each in result.models.values())
    told = {
        "kind": kind,
        "seed": seed,
        "right": RIGHT[kind],
        "advice": result.advice,
        "answers": result.answers,
        "record": record,
        "cpu_fits": fits,
        "cpu_beyond_fits": total - fits,
    }
    if folds:
        other = gplc.compare(X, y, every_model(**settings), folds=10)
        told["folds"] = other.to_record()
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="seed of the first set")
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--kinds", default="U0,U1,U2")
    parser.add_argument("--folds", type=int, default=0, help="sets of each kind in ten folds too")
    parser.add_argument("--refit", type=int, default=0)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--warmup", type=int, default=300)
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--out", default="benchmarks/results/which_noise.json")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    settings = {
        "chains": given.chains,
        "draws": given.draws,
        "warmup": given.warmup,
        "random_state": 0,
    }
    sets = []
    for seed in range(given.first, given.first + given.sets):
        for kind in given.kinds.split(","):
            folds = seed < given.first + given.folds
            sets.append(one(kind, given.n, seed, settings, folds, given.refit))
            right = {
                each: sum(s["advice"] == s["right"] for s in sets if s["kind"] == each)
                for each in given.kinds.split(",")
            }
            shown = {"settings": vars(given), "right": right, "sets": sets}
            with open(given.out, "w") as file:
                json.dump(shown, file, indent=1)
            print(seed, kind, sets[-1]["advice"], right, flush=True)


if __name__ == "__main__":
    main()
