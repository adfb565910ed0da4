"""What known noise, rounding, replicates, categories and transforms are worth, in figures.

``python benchmarks/data_as_they_come.py PART ...`` runs some of `PARTS` (all by default) and
writes what it finds into ``benchmarks/results/data_as_they_come.json``, a part at a time. Seeds
are fixed, and the way of measuring is in the docstring of each part.
"""

import json
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import gplc
from gplc import metrics
from gplc.estimators import ESTIMATORS
from gplc.estimators.rounding import step_of

Array = NDArray[np.float64]
OUT = Path(__file__).parent / "results" / "data_as_they_come.json"
FIT: Mapping[str, Any] = {"chains": 2, "draws": 300, "warmup": 200, "random_state": 0}


def measured_function(number: int, rows: int) -> tuple[Array, Array, Array, Array]:
    """Inputs, f, noise SDs that vary tenfold, and y; f is a draw of a Gaussian process."""
    rng = np.random.default_rng([2026, number])
    X = rng.uniform(-2.0, 2.0, size=(rows, 1))
    scale = np.exp(rng.normal(0.0, 0.3))
    K = np.exp(-((X - X.T) ** 2) / scale**2)
    f = np.linalg.cholesky(K + 1e-8 * np.eye(rows)) @ rng.standard_normal(rows)
    sds = 0.05 * 10.0 ** rng.uniform(size=rows)
    y = f + np.sqrt(sds**2 + 0.05**2) * rng.standard_normal(rows)
    return X, f, sds, y


def peer_nlpd(
    X: Array, y: Array, sds: Array, train: slice, test: slice, white: bool = True
) -> float:
    """NLPD of scikit-learn's GPR with alpha = SD^2, and perhaps a white kernel for the rest."""
    kernel = ConstantKernel() * RBF()
    kernel = kernel + WhiteKernel(0.01) if white else kernel
    peer = GaussianProcessRegressor(
        kernel, alpha=sds[train] ** 2, n_restarts_optimizer=3, random_state=0
    ).fit(X[train], y[train])
    mean, sd = peer.predict(X[test], return_std=True)  # the white kernel is in it
    return gaussian_nlpd(y[test], mean, np.hypot(sd, sds[test]))


def gaussian_nlpd(y: Array, mean: Array, sd: Array) -> float:
    """NLPD of Gaussians."""
    return float(np.mean(0.5 * ((y - mean) / sd) ** 2 + np.log(sd) + 0.5 * np.log(2.0 * np.pi)))


def known_noise() -> dict[str, Any]:
    """10 sets of 60 rows with SDs from 0.05 to 0.5 and 0.05 of noise that is not known.

    NLPD of 200 other rows, measured with SDs of their own: each model with the SDs and without,
    and scikit-learn's GPR with alpha = SD^2.
    """
    train, test = slice(60), slice(60, 260)
    sets = []
    for number in range(10):
        X, _, sds, y = measured_function(number, 260)
        found = {
            "sklearn": peer_nlpd(X, y, sds, train, test),
            "sklearn alpha alone": peer_nlpd(X, y, sds, train, test, white=False),
        }
        for key, make in ESTIMATORS.items():
            told = make(**FIT).fit(X[train], y[train], noise_std=sds[train])
            found[key] = metrics.nlpd(told.predict_dist(X[test], noise_std=sds[test]), y[test])
            plain = make(**FIT).fit(X[train], y[train])
            found[f"{key} without"] = metrics.nlpd(plain.predict_dist(X[test]), y[test])
        sets.append(found)
    keys = list(ESTIMATORS)
    return {
        "sets": sets,
        "better than without": {k: sum(s[k] < s[f"{k} without"] for s in sets) for k in keys},
        "better than sklearn": {k: sum(s[k] < s["sklearn"] for s in sets) for k in keys},
        "better than sklearn with alpha alone": {
            k: sum(s[k] < s["sklearn alpha alone"] for s in sets) for k in keys
        },
    }


def coverage() -> dict[str, Any]:
    """50 such sets of 40 rows: share of 90% intervals of f, at 100 other places, that hold f.

    The standard error is over sets.
    """
    train, test = slice(40), slice(40, 140)
    shares = []
    for number in range(100, 150):
        X, f, sds, y = measured_function(number, 140)
        model = gplc.StandardGP(**FIT).fit(X[train], y[train], noise_std=sds[train])
        dist = model.regression_function(X[test])
        shares.append(metrics.coverage(dist, f[test], 0.9))
    return {
        "coverage": float(np.mean(shares)),
        "standard error": float(np.std(shares, ddof=1) / np.sqrt(len(shares))),
        "sets": len(shares),
    }


def rounding() -> dict[str, Any]:
    """U1 rounded to 0.1, 10 sets of 60 rows: log probability of 500 other rounded values.

    With and without ``resolution="auto"``; and sigma of GPLC, its median in units of y.
    """
    sets = []
    for number in range(10):
        data = gplc.datasets.make_paper("U1", n=560, random_state=2000 + number)
        X, y = data.X, np.round(data.y, 1)
        found: dict[str, float] = {}
        for name, resolution in (("with", "auto"), ("without", None)):
            model = gplc.LatentCovariateGP(**FIT, resolution=resolution).fit(X[:60], y[:60])
            dist = model.predict_dist(X[60:])
            found[name] = -metrics.rounded_nlpd(dist, y[60:], 0.1)
            found[f"sigma {name}"] = float(np.median(model.draws_["noise_sd"]))
        sets.append(found)
    left_alone = sum(
        step_of(gplc.datasets.make_paper("U1", n=100, random_state=seed).y) is None
        for seed in range(100)
    )
    return {
        "sets": sets,
        "better with": sum(s["with"] > s["without"] for s in sets),
        "sets without ties left alone, of 100": left_alone,
    }


def replicates() -> dict[str, Any]:
    """Seconds of 40 iterations: 1,000 rows at 100 places as a ratio to 100 rows.

    The smallest of three runs each. And hyperparameters of STD with 60 rows at 20 places, merged
    and apart, 8 chains of 500 draws: the largest difference of means in standard errors.
    """
    rng = np.random.default_rng(7)
    places = rng.uniform(-2.0, 2.0, size=(100, 1))
    many = np.repeat(places, 10, axis=0)

    def seconds(make: Any, X: Array) -> float:
        y = np.sin(2.0 * X[:, 0]) + 0.3 * rng.standard_normal(len(X))
        best = np.inf
        for _ in range(3):
            begin = time.perf_counter()
            make(chains=1, draws=20, warmup=20, random_state=0, approximation=None).fit(X, y)
            best = min(best, time.perf_counter() - begin)
        return best

    ratios = {
        key: seconds(make, many) / seconds(make, places)
        for key, make in ESTIMATORS.items()
        if make.model_class.merges
    }
    X = np.repeat(places[:20], 3, axis=0)
    y = np.sin(2.0 * X[:, 0]) + 0.3 * rng.standard_normal(60)
    long = {"chains": 8, "draws": 500, "warmup": 300, "standardize": False}
    merged = gplc.StandardGP(**long, random_state=1).fit(X, y)
    # So little apart that it makes no difference, and yet not merged.
    nudged = X + 1e-9 * np.arange(60)[:, None]
    apart = gplc.StandardGP(**long, random_state=2).fit(nudged, y)
    means = [each.draws_.theta.mean(axis=1) for each in (merged, apart)]
    gap = means[0].mean(axis=0) - means[1].mean(axis=0)
    error = np.sqrt(sum(each.var(axis=0, ddof=1) / len(each) for each in means))
    return {
        "cost ratio": ratios,
        "largest gap in standard errors": float(np.max(np.abs(gap / error))),
    }


def three_groups(number: int, each: int) -> tuple[pd.DataFrame, Array]:
    """Rows of three groups that share a shape, with means and noise of their own."""
    rng = np.random.default_rng([20, number])
    group = np.tile(np.arange(3), each)
    x = rng.uniform(-2.0, 2.0, group.size)
    f = np.sin(2.0 * x) + np.array([0.0, 2.0, -1.0])[group]
    y = f + np.array([0.1, 0.3, 0.9])[group] * rng.standard_normal(group.size)
    return pd.DataFrame({"x": x, "group": np.array(["a", "b", "c"])[group]}), y


def categories() -> dict[str, Any]:
    """3 sets of three groups with means and noise of their own: NLPD of 200 other rows of each.

    50 rows of each group: GPLV and GPLC with the column of text, and with three columns of 0 and
    1 instead; and `StandardGP` for each group alone, the true model there, with 500 rows of it.
    """
    short = {**FIT, "draws": 200, "chains": 1}
    sets = []
    for number in range(3):
        X, y = three_groups(number, 50)
        new, new_y = three_groups(100 + number, 200)
        more, more_y = three_groups(200 + number, 500)
        found: dict[str, float] = {}
        apart = []
        for level in "abc":
            rows, others = more["group"] == level, new["group"] == level
            alone = gplc.StandardGP(**short).fit(more.loc[rows, ["x"]], more_y[rows])
            apart.append(metrics.nlpd(alone.predict_dist(new.loc[others, ["x"]]), new_y[others]))
        found["apart, ten times the rows"] = float(np.mean(apart))
        hot, new_hot = (pd.get_dummies(each, dtype=float) for each in (X, new))
        for key in ("gplv", "gplc"):
            model = ESTIMATORS[key](**short).fit(X, y)
            found[key] = metrics.nlpd(model.predict_dist(new), new_y)
            model = ESTIMATORS[key](**short).fit(hot, y)
            found[f"{key} one-hot"] = metrics.nlpd(model.predict_dist(new_hot), new_y)
        sets.append(found)
    keys = ("gplv", "gplc")
    return {
        "sets": sets,
        "mean": {name: float(np.mean([s[name] for s in sets])) for name in sets[0]},
        "better than one-hot": {k: sum(s[k] < s[f"{k} one-hot"] for s in sets) for k in keys},
    }


def groups_covariance(first: pd.DataFrame, second: pd.DataFrame, settings: Array) -> Array:
    """Of f + offset: (height, length, SD of offsets, correlation between groups)."""
    height, length, offset, alike = settings
    x, others = (each["x"].to_numpy() for each in (first, second))
    same = first["group"].to_numpy()[:, None] == second["group"].to_numpy()
    shape = height**2 * np.exp(-((x[:, None] - others) ** 2) / length**2)
    return np.asarray(shape * np.where(same, 1.0, alike) + offset**2 * same)


def most_likely(X: pd.DataFrame, y: Array, start: Array, alike: float, known: bool) -> Array:
    """Height, length, SD of offsets, three noise SDs at the mode; the last as given if known."""
    group = X["group"].map({"a": 0, "b": 1, "c": 2}).to_numpy()

    def minus_log_density(logs: Array) -> float:
        settings = np.exp(np.where(np.arange(6) < 3, logs, np.log(start) if known else logs))
        C = groups_covariance(X, X, np.append(settings[:3], alike))
        factor = np.linalg.cholesky(C + np.diag(settings[3:][group] ** 2))
        z = np.linalg.solve(factor, y)
        prior = 0.5 * np.sum((logs[:3] - [0.0, 0.3, 0.3]) ** 2)
        return float(0.5 * z @ z + np.log(np.diag(factor)).sum() + prior)

    found = np.exp(minimize(minus_log_density, np.log(start), method="L-BFGS-B").x)
    return np.append(found[:3], start[3:]) if known else np.asarray(found)


def categories_at_best() -> dict[str, Any]:
    """The sets of `categories` and 9 more: NLPD of Gaussian processes that know more than ours.

    "one shape known": that f is the same in all groups but for offsets, its hyperparameters (from
    ten times the rows) and the three noise SDs; "apart, known": the same with nothing shared
    between groups; "one shape": these numbers found from the 150 rows themselves; "truth": the
    density that made the data.
    """
    sds, means = np.array([0.1, 0.3, 0.9]), np.array([0.0, 2.0, -1.0])
    start = np.concatenate([[1.0, 1.3, 1.3], sds])
    sets = []
    for number in range(12):
        (X, y), (new, new_y) = three_groups(number, 50), three_groups(100 + number, 200)
        more, more_y = (each[:450] for each in three_groups(200 + number, 500))
        group = new["group"].map({"a": 0, "b": 1, "c": 2}).to_numpy()
        own = X["group"].map({"a": 0, "b": 1, "c": 2}).to_numpy()
        shape = np.sin(2.0 * new["x"].to_numpy()) + means[group]
        found = {"truth": gaussian_nlpd(new_y, shape, sds[group])}
        for name, alike, known in (
            ("one shape known", 1.0, True),
            ("apart, known", 0.0, True),
            ("one shape", 1.0, False),
        ):
            given = (more, more_y) if known else (X, y)
            numbers = most_likely(*given, start, alike, known)
            kernel, noise = np.append(numbers[:3], alike), numbers[3:]
            C = groups_covariance(X, X, kernel) + np.diag(noise[own] ** 2)
            K = groups_covariance(new, X, kernel)
            solved = np.linalg.solve(C, np.column_stack([y, K.T]))
            variance = numbers[0] ** 2 + numbers[2] ** 2 - np.sum(K.T * solved[:, 1:], axis=0)
            sd = np.sqrt(variance + noise[group] ** 2)
            found[name] = gaussian_nlpd(new_y, K @ solved[:, 0], sd)
        sets.append(found)
    return {
        "sets": sets,
        "mean of the first 3": {k: float(np.mean([s[k] for s in sets[:3]])) for k in sets[0]},
        "less truth": {k: float(np.mean([s[k] - s["truth"] for s in sets])) for k in sets[0]},
    }


def known_and_learned() -> dict[str, Any]:
    """5 sets of 60 rows of U1, its own noise not known, with SDs from 0.05 to 0.5 known on top.

    NLPD of 200 other rows, measured with SDs of their own: each model, and scikit-learn's GPR with
    alpha = SD^2, alone and with a white kernel.
    """
    sets = []
    for number in range(5):
        data = gplc.datasets.make_paper("U1", n=260, random_state=3000 + number)
        rng = np.random.default_rng([21, number])
        sds = 0.05 * 10.0 ** rng.uniform(size=260)
        X, y = data.X, data.y + sds * rng.standard_normal(260)
        train, test = slice(60), slice(60, 260)
        found = {
            "sklearn": peer_nlpd(X, y, sds, train, test),
            "sklearn alpha alone": peer_nlpd(X, y, sds, train, test, white=False),
        }
        for key, make in ESTIMATORS.items():
            told = make(**FIT).fit(X[train], y[train], noise_std=sds[train])
            found[key] = metrics.nlpd(told.predict_dist(X[test], noise_std=sds[test]), y[test])
        sets.append(found)
    return {
        "sets": sets,
        "mean": {name: float(np.mean([s[name] for s in sets])) for name in sets[0]},
        "better than sklearn": {k: sum(s[k] < s["sklearn"] for s in sets) for k in ESTIMATORS},
        "better than sklearn with alpha alone": {
            k: sum(s[k] < s["sklearn alpha alone"] for s in sets) for k in ESTIMATORS
        },
    }


def coarse_rounding() -> dict[str, Any]:
    """As `rounding`, with steps of 0.5, where rounding is as large as the noise; 5 sets."""
    sets = []
    for number in range(5):
        data = gplc.datasets.make_paper("U1", n=560, random_state=4000 + number)
        X, y = data.X, np.round(2.0 * data.y) / 2.0
        found: dict[str, float] = {}
        for name, resolution in (("with", 0.5), ("without", None)):
            model = gplc.LatentCovariateGP(**FIT, resolution=resolution).fit(X[:60], y[:60])
            found[name] = -metrics.rounded_nlpd(model.predict_dist(X[60:]), y[60:], 0.5)
            found[f"sigma {name}"] = float(np.median(model.draws_["noise_sd"]))
        sets.append(found)
    return {
        "sets": sets,
        "mean": {name: float(np.mean([s[name] for s in sets])) for name in sets[0]},
        "better with": sum(s["with"] > s["without"] for s in sets),
    }


PARTS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "known noise": known_noise,
    "coverage": coverage,
    "rounding": rounding,
    "replicates": replicates,
    "categories": categories,
    "categories at best": categories_at_best,
    "known and learned": known_and_learned,
    "coarse rounding": coarse_rounding,
}


def main() -> None:
    """Run the parts that are asked for, and keep what the others have found."""
    warnings.simplefilter("ignore")  # of few draws, and of what was done to the data
    for name in sys.argv[1:] or PARTS:
        found = PARTS[name]()
        kept = json.loads(OUT.read_text()) if OUT.exists() else {}
        OUT.parent.mkdir(exist_ok=True)
        OUT.write_text(json.dumps(kept | {name: found}, indent=1) + "\n")
        print(name, json.dumps({k: v for k, v in found.items() if k != "sets"}))


if __name__ == "__main__":
    main()
