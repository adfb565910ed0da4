"""How often `gplc.compare` is right, what it costs, and how well stacks predict.

Ten sets of n rows of each kind are compared by leave-one-out. U1 has Gaussian noise whose SD
varies (the right advice is gplv), U2 skewed noise (gplc), U0 the noise of U1 with the same SD
everywhere (std). M1 and M2 are the same as U1 and U2 with three inputs; there no advice is judged.
Every model, and the stack of all, predicts new rows. With --folds, the first sets are compared by
ten-fold cross-validation too, for the signs of differences.

    python benchmarks/which_noise.py --sets 10 --first 100
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np

import gplc
from gplc.comparison import comparison_of, every_model

RIGHT = {"U0": "std", "U1": "gplv", "U2": "gplc", "M1": "", "M2": ""}
NEW_ROWS = 1000


def made(kind, n, seed):
    """Inputs and responses; U0 has an SD of 0.35 everywhere, about the average of U1."""
    data = gplc.datasets.make_paper("U1" if kind == "U0" else kind, n=n, random_state=seed)
    if kind != "U0":
        return data.X, data.y
    return data.X, data.f + (data.y - data.f) / data.sd * 0.35


def fitted(kind, n, seed, settings, keep):
    """Every model fitted to a set, and the CPU seconds that took; kept in a folder, if given."""
    stem = None if keep is None else Path(keep) / f"{kind}-{n}-{seed}"
    models = every_model(**settings)
    if stem is not None and stem.with_suffix(".json").exists():
        seconds = json.loads(stem.with_suffix(".json").read_text())
        return {name: gplc.load(f"{stem}-{name}.nc") for name in models}, seconds
    X, y = made(kind, n, seed)
    began = time.process_time()
    models = {name: model.fit(X, y) for name, model in models.items()}
    seconds = time.process_time() - began
    if stem is not None:
        stem.parent.mkdir(parents=True, exist_ok=True)
        for name, model in models.items():
            model.save(f"{stem}-{name}.nc")
        stem.with_suffix(".json").write_text(json.dumps(seconds))
    return models, seconds


def in_folds(kind, n, seed, settings, keep):
    """The record of ten-fold cross-validation with fits half as long; kept as well."""
    path = None if keep is None else Path(keep) / f"{kind}-{n}-{seed}-folds.json"
    if path is not None and path.exists():
        return json.loads(path.read_text())
    shorter = {**settings, "draws": settings["draws"] // 2, "warmup": settings["warmup"] // 2}
    record = gplc.compare(*made(kind, n, seed), every_model(**shorter), folds=10).to_record()
    if path is not None:
        path.write_text(json.dumps(record))
    return record


def one(kind, n, seed, settings, folds, refit, keep):
    models, fits = fitted(kind, n, seed, settings, keep)
    began = time.process_time()
    result = comparison_of(models, refit)
    record = result.to_record()
    beyond = time.process_time() - began
    told = {
        "kind": kind,
        "seed": seed,
        "right": RIGHT[kind],
        "advice": result.advice,
        "answers": result.answers,
        "record": record,
        "cpu_fits": fits,
        "cpu_beyond_fits": beyond,
    }
    new = made(kind, NEW_ROWS, 10_000 + seed)
    stacked = {**result.models, "stack": gplc.stack(result.models)}
    logs = {name: model.predict_dist(new[0]).logpdf(new[1]) for name, model in stacked.items()}
    told["new_nlpd"] = {name: float(-each.mean()) for name, each in logs.items()}
    if keep is not None:
        left_out = {f"{name} left out": -each for name, each in result.scores.items()}
        pit = {f"{name} pit": each.pit for name, each in result.loo.items()}
        np.savez(Path(keep) / f"{kind}-{n}-{seed}-logs.npz", **logs, **left_out, **pit)
    if folds:
        told["folds"] = in_folds(kind, n, seed, settings, keep)
    return told


def mean_nlpd(sets):
    """Average over sets, by kind and over all, of each model and of the stack."""
    kinds = sorted({each["kind"] for each in sets})
    groups = {kind: [each for each in sets if each["kind"] == kind] for kind in kinds}
    return {
        kind: {
            name: float(np.mean([each["new_nlpd"][name] for each in some]))
            for name in some[0]["new_nlpd"]
        }
        for kind, some in {**groups, "all": sets}.items()
    }


def share_beyond_fits(sets):
    """CPU time of leave-one-out and words, as a share of that of the fits."""
    return sum(s["cpu_beyond_fits"] for s in sets) / sum(s["cpu_fits"] for s in sets)


def agreement(sets):
    """Pairs of models that ten folds tell apart clearly, and how many have the same sign here."""
    told = [
        gap["mean"] * each["record"]["differences"][pair]["mean"] > 0.0
        for each in sets
        if "folds" in each
        for pair, gap in each["folds"]["differences"].items()
        if abs(gap["mean"]) > 2.0 * gap["se"]
    ]
    return {"clear": len(told), "agree": sum(told)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="seed of the first set")
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--kinds", default="U0,U1,U2,M1,M2")
    parser.add_argument("--folds", type=int, default=0, help="sets of each kind in ten folds too")
    parser.add_argument("--refit", type=int, default=0)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--warmup", type=int, default=300)
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--keep", help="a folder for fits, used again if they are there")
    parser.add_argument("--out", default="benchmarks/results/which_noise.json")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    settings = {
        "chains": given.chains,
        "draws": given.draws,
        "warmup": given.warmup,
        "random_state": 0,
        "predictive_draws": 200,
        # In this process: CPU time of others would not be counted.
        "n_jobs": 1,
    }
    # Where files are is nothing that a result depends on.
    shown_settings = {k: v for k, v in vars(given).items() if k not in ("keep", "out")}
    sets = []
    for seed in range(given.first, given.first + given.sets):
        for kind in given.kinds.split(","):
            folds = seed < given.first + given.folds
            sets.append(one(kind, given.n, seed, settings, folds, given.refit, given.keep))
            right = {
                each: sum(s["advice"] == s["right"] for s in sets if s["kind"] == each)
                for each in given.kinds.split(",")
            }
            shown = {
                "settings": shown_settings,
                "signs": agreement(sets),
                "right": {kind: count for kind, count in right.items() if RIGHT[kind]},
                "new_nlpd": mean_nlpd(sets),
                "share_beyond_fits": share_beyond_fits(sets),
                "sets": sets,
            }
            with open(given.out, "w") as file:
                json.dump(shown, file, indent=1)
            print(seed, kind, sets[-1]["advice"], right, flush=True)


if __name__ == "__main__":
    main()
