"""Leave-one-out against fits without the row, and a twin that keeps the fitted latent value.

For U1 and U2 and every model, some rows are left out one at a time and the model is sampled again
without each, in the units of the whole. Judged is the sum over these rows of the difference of log
densities, in units of its Monte Carlo error, and in that of elpd's own standard error. The twin
takes the density of y_i given the others at the w_i or z_i that was fitted.

    python benchmarks/loo.py --rows 20
"""

import argparse
import json
import math
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

import gplc
from gplc.chains import run_chains
from gplc.comparison import every_model
from gplc.loo import Kept, estimated, kept_of, thinned, unknowns_of
from gplc.models.base import Unknowns


def refitted(model, row, settings, seed):
    """Log p(y_i | y_-i) and its Monte Carlo error, from chains without the row."""
    from arviz_stats.base import array_stats

    whole = model.model_
    fewer = model._model(np.delete(whole.X, row, axis=0), np.delete(whole.y, row), None)
    chains = run_chains(
        fewer, "default", seed, settings["chains"], settings["draws"], settings["warmup"]
    )
    logs = np.empty((len(chains), settings["draws"]))
    for number, chain in enumerate(chains):
        for draw in range(settings["draws"]):
            latent = chain.latent[draw]
            if latent.size:
                latent = np.insert(latent, row, 0.0)
            given = whole.left_out(Unknowns(chain.theta[draw], latent))
            logs[number, draw] = given.log_density(whole.y)[row]
    shares = np.exp(logs - logs.max())
    error = float(array_stats.mcse(shares, chain_axis=0, draw_axis=1) / shares.mean())
    return float(logsumexp(logs) - math.log(logs.size)), error


def twin(model):
    """Log p(y_i | y_-i) of every row by a version that keeps w_i or z_i, in standard units."""
    whole, draws = model.model_, model.draws_
    picked = thinned(draws, 1000)
    logs = np.array(
        [
            [_kept(whole, unknowns) for unknowns in of_chain]
            for of_chain in unknowns_of(draws, picked)
        ]
    )
    nothing = np.zeros((*logs.shape, 1))
    kept = Kept(logs, np.zeros_like(logs), nothing, nothing + 1.0)
    return estimated(kept, np.random.SeedSequence(0)).log_density


def _kept(whole, unknowns):
    mean, variance = whole.state(unknowns).solved[0].left_out()
    return norm.logpdf(whole.y, mean, np.sqrt(variance))


def judged(found, expected, errors, own):
    """Differences of sums, in Monte Carlo errors of both together, and the largest of a row."""
    total = float(np.sum(found - expected))
    error = math.sqrt(float(np.sum(errors**2) + np.sum(own**2)))
    return {
        "difference": total,
        "monte_carlo_error": error,
        "in_errors": total / error,
        "largest": float(np.abs(found - expected).max()),
    }


def one(kind, key, n, rows, settings):
    data = gplc.datasets.make_paper(kind, n=n, random_state=7)
    began = time.process_time()
    model = every_model(**settings, random_state=0)[key].fit(data.X, data.y)
    whole, picked = model.model_, thinned(model.draws_, 1000)
    seed = np.random.SeedSequence(0)
    found = estimated(kept_of(whole, unknowns_of(model.draws_, picked), seed), seed)
    chosen = np.linspace(0, n - 1, rows).round().astype(int)
    pairs = [refitted(model, row, settings, 1000 + int(row)) for row in chosen]
    expected, errors = np.array(pairs).T
    good = judged(found.log_density[chosen], expected, errors, found.mcse[chosen])
    se = math.sqrt(rows) * float(expected.std(ddof=1))
    told = {"kind": kind, "model": key, "rows": rows, "elpd_se": se, "psis": good}
    told["within_two_standard_errors"] = abs(good["difference"]) < 2.0 * se
    told["within_two_monte_carlo_errors"] = abs(good["in_errors"]) < 2.0
    again = model.loo(refit=n)
    unit = math.log(float(model.y_scaling_.scale))
    told["refit"] = judged(again.log_density[chosen] + unit, expected, errors, again.mcse[chosen])
    told["refitted"] = len(again.refitted)
    if whole.n_latent:
        told["twin"] = judged(twin(model)[chosen], expected, errors, found.mcse[chosen])
    told["cpu_seconds"] = time.process_time() - began
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--n", type=int, default=60)
    parser.add_argument("--kinds", default="U1,U2")
    parser.add_argument("--models", default="std,gplv,gplc")
    parser.add_argument("--out", default="benchmarks/results/loo.json")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    settings = {"chains": 2, "draws": 400, "warmup": 300}
    pairs = [(kind, key) for kind in given.kinds.split(",") for key in given.models.split(",")]
    # What is not asked for stays as an earlier run has left it.
    results = []
    if Path(given.out).exists():
        earlier = json.loads(Path(given.out).read_text())["results"]
        results = [each for each in earlier if (each["kind"], each["model"]) not in pairs]
    for kind, key in pairs:
        rows = 30 if key == "std" else given.rows
        results.append(one(kind, key, given.n, rows, settings))
        with open(given.out, "w") as file:
            json.dump({"settings": vars(given) | settings, "results": results}, file, indent=1)
        print(json.dumps(results[-1]), flush=True)


if __name__ == "__main__":
    main()
