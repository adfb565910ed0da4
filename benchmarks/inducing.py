"""STD with inducing points, 8 inputs: NLPD and CPU seconds beside an exact fit of 1,000 rows.

    python benchmarks/inducing.py --rows 2000 5000
    python benchmarks/inducing.py --varying --rows 2000 --points 100

writes benchmarks/results/inducing.json, or inducing-varying.json. Friedman's function of five
inputs, three more that mean nothing, and Gaussian noise of SD 1; the truth has an NLPD of about
1.419 on average. Boosting has the SD of its residuals on a tenth of the rows that it has not seen.
Chains are short: the point is whether more rows with points say more than fewer rows without.

With --varying the SD of the noise rises from 0.5 to 2 with the first input, the models are STD,
GPLV and GPLC, and NGBoost (if it is installed) has a Gaussian for each row.
"""

import argparse
import json
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from scipy.stats import norm
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor

import gplc

RESULTS = Path(__file__).parent / "results" / "inducing.json"
VARYING = RESULTS.with_name("inducing-varying.json")
INPUTS, TEST_ROWS, EXACT = 8, 2000, 1000
SETTINGS = {"chains": 2, "warmup": 60, "draws": 60, "predictive_draws": 40, "n_jobs": 1}


def by_gp(X, y, new, response, approximation, estimator=gplc.StandardGP):
    """NLPD, CPU seconds, and what the points leave out."""
    begun = time.process_time()
    model = estimator(approximation=approximation, random_state=0, **SETTINGS).fit(X, y)
    nlpd = float(np.mean(-model.predict_dist(new).logpdf(response)))
    found = model.approximation_
    return {
        "nlpd": nlpd,
        "cpu_seconds": time.process_time() - begun,
        "left_out": None if found is None else found.error,
        "worst_rhat": float(max(row.rhat for row in model.diagnostics_.rows.values())),
    }


def by_boosting(X, y, new, response):
    """The same of a Gaussian around boosted trees."""
    begun, kept = time.process_time(), len(y) // 10
    trees = HistGradientBoostingRegressor(random_state=0).fit(X[kept:], y[kept:])
    sd = np.std(y[:kept] - trees.predict(X[:kept]))
    nlpd = float(-np.mean(norm.logpdf(response, trees.predict(new), sd)))
    return {"nlpd": nlpd, "cpu_seconds": time.process_time() - begun}


def by_ngboost(X, y, new, response):
    """A Gaussian whose mean and SD are boosted trees."""
    from ngboost import NGBRegressor

    begun = time.process_time()
    keep = np.random.default_rng(0).random(len(y)) < 0.8
    model = NGBRegressor(verbose=False, n_estimators=1000, random_state=0)
    model.fit(X[keep], y[keep], X_val=X[~keep], Y_val=y[~keep], early_stopping_rounds=20)
    found = model.pred_dist(new)
    nlpd = float(-np.mean(norm.logpdf(response, found.loc, found.scale)))
    return {"nlpd": nlpd, "cpu_seconds": time.process_time() - begun}


def varying(rows, points) -> dict:
    """Noise whose SD varies."""
    n = max(rows) + TEST_ROWS
    X, f = make_friedman1(n, INPUTS, noise=0.0, random_state=0)
    sd = 0.5 + 1.5 * X[:, 0]
    y = f + sd * np.random.default_rng(0).standard_normal(n)
    new, response = X[:TEST_ROWS], y[:TEST_ROWS]
    truth = float(-np.mean(norm.logpdf(response, f[:TEST_ROWS], sd[:TEST_ROWS])))
    found = {"truth": {"nlpd": truth}}
    for count in rows:
        own = X[TEST_ROWS : TEST_ROWS + count], y[TEST_ROWS : TEST_ROWS + count], new, response
        if find_spec("ngboost") is not None:
            found[f"NGBoost, {count} rows"] = by_ngboost(*own)
        for number in points:
            for estimator in (gplc.StandardGP, gplc.LatentVarianceGP, gplc.LatentCovariateGP):
                key = f"{estimator.__name__}, {number} points, {count} rows"
                found[key] = by_gp(*own, gplc.Inducing(number), estimator)
                print(key, found[key], flush=True)
                VARYING.write_text(json.dumps(found, indent=1) + "\n")
    return found


def main() -> None:
    """Every fit of every number of rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[2000, 5000])
    parser.add_argument("--points", type=int, nargs="+", default=[150, 300])
    parser.add_argument("--varying", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.varying:
        print(json.dumps(varying(given.rows, given.points), indent=1))
        return
    X, y = make_friedman1(max(given.rows) + TEST_ROWS, INPUTS, noise=1.0, random_state=0)
    new, response, X, y = X[:TEST_ROWS], y[:TEST_ROWS], X[TEST_ROWS:], y[TEST_ROWS:]
    f = make_friedman1(max(given.rows) + TEST_ROWS, INPUTS, noise=0.0, random_state=0)[1]
    found = {"truth": {"nlpd": float(-np.mean(norm.logpdf(response, f[:TEST_ROWS], 1.0)))}}
    for n in given.rows:
        found[f"boosting, {n} rows"] = by_boosting(X[:n], y[:n], new, response)
        for points in given.points:
            key = f"{points} points, {n} rows"
            found[key] = by_gp(X[:n], y[:n], new, response, gplc.Inducing(points))
            print(key, found[key], flush=True)
    found[f"exact, {EXACT} rows"] = by_gp(X[:EXACT], y[:EXACT], new, response, None)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
