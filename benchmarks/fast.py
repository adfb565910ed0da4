"""The fast method beside chains: how soon there is an answer, and how good it is.

    python benchmarks/fast.py [--sets U1 U2 M1] [--rows 100 300] [--seeds 0 1] [--large 10000]
                              [--out FILE.json]

CPU seconds of `fit` on one thread (compiled before), k of the weights, the verdict, and NLPD on
5,000 test rows, of `method="fast"` and of two chains of 200 + 300 iterations on the same rows. The
model is that whose noise the set has: GPLV for U1 and M1, GPLC for U2. With `--large` so many rows
of U2 besides, of one seed. Results are written after every fit.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import gplc
from gplc.datasets import make_paper

MODELS = {
    "U1": gplc.LatentVarianceGP,
    "U2": gplc.LatentCovariateGP,
    "M1": gplc.LatentVarianceGP,
    "M2": gplc.LatentCovariateGP,
}
N_TEST = 5000
COMMON = {"chains": 2, "n_jobs": 1, "progress": False, "random_state": 0}
CHAINS = {"draws": 300, "warmup": 200}


def one(name: str, n: int, seed: int, method: str) -> dict[str, Any]:
    """Fit once, and score."""
    data = make_paper(name, n=n, random_state=seed)
    test = make_paper(name, n=N_TEST, random_state=1000)
    lowest, highest = data.X.min(axis=0), data.X.max(axis=0)
    within = ((test.X >= lowest) & (test.X <= highest)).all(axis=1)
    settings = COMMON | ({"method": "fast"} if method == "fast" else CHAINS)
    began = time.process_time()
    model = MODELS[name](**settings).fit(data.X, data.y)
    seconds = time.process_time() - began
    scores = model.predict_dist(test.X[within]).logpdf(test.y[within])
    told = model.diagnostics_
    found = {
        "set": name,
        "model": model.model_.key,
        "rows": n,
        "seed": seed,
        "method": method,
        "cpu_seconds": round(seconds, 2),
        "nlpd": round(float(-scores.mean()), 4),
        "level": str(told.level),
        "in_basis": model.approximation_ is not None,
    }
    if told.weighed is not None:
        k = told.weighed.k
        found |= {
            "k": round(k, 3) if np.isfinite(k) else None,
            "effective": round(told.weighed.effective),
            "settled": told.weighed.settled,
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=["U1", "U2", "M1"], choices=list(MODELS))
    parser.add_argument("--rows", nargs="+", type=int, default=[100, 300])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--large", type=int, default=10_000)
    parser.add_argument("--out")
    settings = parser.parse_args()
    warnings.simplefilter("ignore")
    for estimator in set(MODELS.values()):  # compiles
        data = make_paper("U1", n=20, random_state=0)
        estimator(chains=1, draws=2, warmup=2, progress=False).fit(data.X, data.y)
    cases = [(name, n, s) for name in settings.sets for n in settings.rows for s in settings.seeds]
    if settings.large:
        cases.insert(0, ("U2", settings.large, settings.seeds[0]))
    results: list[dict[str, Any]] = []
    for case in cases:
        for method in ("fast", "mcmc"):
            results.append(one(*case, method))
            print(results[-1], flush=True)
            if settings.out:
                Path(settings.out).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
