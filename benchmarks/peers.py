"""Predictions side by side: gplc and the packages a user might take instead, on the same data.

    python benchmarks/peers.py [--data U1 U2 M1 M2 motorcycle] [--sets 3] [--peers GPLC ...]
                               [--draws N] [--warmup N] [--chains N]
                               [--out FILE.json] [--figure FILE.png]

The paper's problems have 100 training and 1,000 test rows, and NLPD is judged beside that of the
true density ("oracle", on the same test rows). The motorcycle data have no truth: their sets are
the five folds of a cross-validation, and MSE is against what was observed, not against the true
function.

- gplc's three estimators, with their defaults unless `--draws`, `--warmup` or `--chains` differ;
- scikit-learn: GaussianProcessRegressor, a constant times RBF with a length scale for each input,
  plus white noise; 3 restarts;
- hetgpy: homGP (constant noise) and hetGP (noise SD a second process), by maximum likelihood;
- NGBoost: a Gaussian whose mean and SD are boosted trees, with its defaults.

All get data standardized by their training rows. On each set all peers run in turn, on one
thread; times are CPU seconds of `fit`, and of the mean and log density of all test rows. Code is
compiled before. Peers that are not installed (`pip install -e '.[bench]' hetgpy ngboost`) are
left out and named; a peer that fails on a set is reported with its error, and its figures are
those of its other sets. "Warned" counts fits with a ConvergenceWarning: optimisers or chains that
did not get there.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from gplc import LatentCovariateGP, LatentVarianceGP, StandardGP, datasets

Array = NDArray[np.float64]

N_TRAIN, N_TEST, FOLDS = 100, 1000, 5
SEED = 20121212
PAPER = ("U1", "U2", "M1", "M2")
MOTORCYCLE = "motorcycle"
REFERENCE = "GPLC"
# The figure's scale reaches so many times the median's distance from the best.
REACH = 3.0


class Split(NamedTuple):
    """Rows to learn from, and rows to be judged by."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    f_test: Array  # what MSE is against: the true function, or y_test
    oracle: float | None  # NLPD of the true density


# Mean and log density of each test row
Prediction = tuple[Array, Array]


class Peer(NamedTuple):
    """One competitor."""

    package: str
    fit: Callable[[Array, Array, int], Any]  # X, y and a seed to whatever `predict` needs
    predict: Callable[[Any, Array, Array], Prediction]  # that, X and y
    rehearse: Callable[[Array, Array], Any]  # a short `fit`, so that all code is compiled


# Data


def paper_splits(name: str, sets: int) -> Iterator[Split]:
    """Training and test rows of one of the paper's problems."""
    for number in range(sets):
        seeds = np.random.SeedSequence([SEED, number]).spawn(2)
        train = datasets.make_paper(name, N_TRAIN, seeds[0])
        test = datasets.make_paper(name, N_TEST, seeds[1])
        yield Split(train.X, train.y, test.X, test.y, test.f, test.oracle_nlpd())


def motorcycle_splits() -> Iterator[Split]:
    """Folds of the motorcycle data."""
    data = datasets.load_motorcycle()
    for rest, fold in KFold(FOLDS, shuffle=True, random_state=SEED).split(data.X):
        y = data.y[fold]
        yield Split(data.X[rest], data.y[rest], data.X[fold], y, y, None)


def splits_of(name: str, sets: int) -> Iterator[Split]:
    """The sets of a problem."""
    return motorcycle_splits() if name == MOTORCYCLE else paper_splits(name, sets)


# Peers


def gaussian(mean: Array, sd: Array, y: Array) -> Prediction:
    """A prediction that is one Gaussian for each row."""
    return np.asarray(mean), np.asarray(norm.logpdf(y, mean, sd))


def gplc_peer(estimator: Any, settings: Mapping[str, Any]) -> Peer:
    """One of our own."""

    def fit(X: Array, y: Array, seed: int) -> Any:
        return estimator(random_state=seed, **settings).fit(X, y)

    def predict(model: Any, X: Array, y: Array) -> Prediction:
        dist = model.predict_dist(X)
        return dist.mean(), dist.logpdf(y)

    def rehearse(X: Array, y: Array) -> Any:
        return estimator(chains=1, draws=10, warmup=10, random_state=0).fit(X, y)

    return Peer("gplc", fit, predict, rehearse)


def sklearn_peer() -> Peer:
    """scikit-learn's Gaussian process."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    def fit(X: Array, y: Array, seed: int) -> Any:
        kernel = ConstantKernel() * RBF(np.ones(X.shape[1])) + WhiteKernel()
        model = GaussianProcessRegressor(kernel, n_restarts_optimizer=3, random_state=seed)
        return model.fit(X, y)

    def predict(model: Any, X: Array, y: Array) -> Prediction:
        mean, sd = model.predict(X, return_std=True)
        return gaussian(mean, sd, y)

    return Peer("sklearn", fit, predict, lambda X, y: fit(X, y, 0))


def hetgpy_peer(name: str) -> Peer:
    """One of hetgpy's models; its predictive variance is the sum of two."""
    import hetgpy

    def fit(X: Array, y: Array, seed: int) -> Any:
        model = getattr(hetgpy, name)()
        getattr(model, f"mle{name[0].upper()}{name[1:]}")(X=X, Z=y)
        return model

    def predict(model: Any, X: Array, y: Array) -> Prediction:
        found = model.predict(x=X)
        return gaussian(found["mean"], np.sqrt(found["sd2"] + found["nugs"]), y)

    return Peer("hetgpy", fit, predict, lambda X, y: fit(X, y, 0))


def ngboost_peer() -> Peer:
    """NGBoost with Gaussians."""
    from ngboost import NGBRegressor

    def fit(X: Array, y: Array, seed: int) -> Any:
        return NGBRegressor(verbose=False, random_state=seed).fit(X, y)

    def predict(model: Any, X: Array, y: Array) -> Prediction:
        dist = model.pred_dist(X)
        return gaussian(dist.loc, dist.scale, y)

    return Peer("ngboost", fit, predict, lambda X, y: fit(X, y, 0))


# Name: (package, how it is made). gplc's take the settings of the command line.
PEERS: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], Peer]]] = {
    "STD": ("gplc", lambda settings: gplc_peer(StandardGP, settings)),
    "GPLV": ("gplc", lambda settings: gplc_peer(LatentVarianceGP, settings)),
    "GPLC": ("gplc", lambda settings: gplc_peer(LatentCovariateGP, settings)),
    "scikit-learn": ("sklearn", lambda _: sklearn_peer()),
    "hetgpy homGP": ("hetgpy", lambda _: hetgpy_peer("homGP")),
    "hetgpy hetGP": ("hetgpy", lambda _: hetgpy_peer("hetGP")),
    "NGBoost": ("ngboost", lambda _: ngboost_peer()),
}


def installed_peers(names: Sequence[str], settings: Mapping[str, Any]) -> dict[str, Peer]:
    """Those that are there; the others are named."""
    found = {}
    for name in names:
        package, make = PEERS[name]
        if find_spec(package) is None:
            print(f"{name} is left out: {package} is not installed")
        else:
            found[name] = make(settings)
    return found


# Judging


def judge(peer: Peer, split: Split, seed: int) -> dict[str, Any]:
    """Fit and predict once; what an error says, if there is one."""
    location, scale = split.y.mean(), split.y.std()
    x_location, x_scale = split.X.mean(axis=0), split.X.std(axis=0)
    X, X_test = ((inputs - x_location) / x_scale for inputs in (split.X, split.X_test))
    y, y_test = ((values - location) / scale for values in (split.y, split.y_test))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            began = time.process_time()
            model = peer.fit(X, y, seed)
            fitted = time.process_time()
            mean, logpdf = peer.predict(model, X_test, y_test)
            ended = time.process_time()
        except Exception as error:  # whatever a peer raises is its result
            return {"error": f"{type(error).__name__}: {error}"}
    result = {
        "nlpd": float(np.log(scale) - np.mean(logpdf)),
        "mse": float(np.mean((location + scale * mean - split.f_test) ** 2)),
        "fit_seconds": fitted - began,
        "predict_seconds": ended - fitted,
        "warned": any(issubclass(each.category, ConvergenceWarning) for each in caught),
    }
    if not np.isfinite(result["nlpd"]):
        return {"error": f"the log density of {np.sum(~np.isfinite(logpdf))} rows is not finite"}
    return result


def standard_error(values: Array) -> float | None:
    """Of a mean over sets; None if there is one set."""
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else None


def summary(
    records: list[dict[str, Any]], reference: list[dict[str, Any]] | None, oracles: list[Any]
) -> dict[str, Any] | None:
    """Means over the sets that a peer managed, and paired differences; None if there are none."""
    good = [number for number, record in enumerate(records) if "error" not in record]
    if not good:
        return None
    nlpd = np.array([records[number]["nlpd"] for number in good])
    result: dict[str, Any] = {
        "sets": len(good),
        "nlpd": float(nlpd.mean()),
        "nlpd_error": standard_error(nlpd),
        "warned": sum(records[number]["warned"] for number in good),
    }
    for key in ("mse", "fit_seconds", "predict_seconds"):
        result[key] = float(np.mean([records[number][key] for number in good]))
    if oracles[0] is not None:
        excess = nlpd - np.array([oracles[number] for number in good])
        result |= {"excess": float(excess.mean()), "excess_error": standard_error(excess)}
    if reference is not None:
        both = [number for number in good if "error" not in reference[number]]
        gaps = np.array([records[number]["nlpd"] - reference[number]["nlpd"] for number in both])
        if gaps.size:
            result |= {"gap": float(gaps.mean()), "gap_error": standard_error(gaps)}
    return result


def compare(name: str, sets: int, peers: Mapping[str, Peer]) -> dict[str, Any]:
    """All peers on the sets of one problem."""
    records: dict[str, list[dict[str, Any]]] = {peer: [] for peer in peers}
    oracles = []
    for number, split in enumerate(splits_of(name, sets)):
        oracles.append(split.oracle)
        for peer_name, peer in peers.items():
            record = judge(peer, split, number)
            records[peer_name].append(record)
            if "error" in record:
                print(f"{peer_name} failed on {name}, set {number}: {record['error']}")
    reference = records.get(REFERENCE)
    summaries = {
        peer: summary(own, None if peer == REFERENCE else reference, oracles)
        for peer, own in records.items()
    }
    return {"data": name, "oracles": oracles, "records": records, "summaries": summaries}


# Showing


def number(value: float | None, error: float | None = None, signed: bool = False) -> str:
    """A value with its standard error; a dash if there is none."""
    if value is None:
        return "-"
    text = f"{value:+.3f}" if signed else f"{value:.3f}"
    return text if error is None else f"{text} ({error:.3f})"


def show(result: Mapping[str, Any]) -> None:
    """The table of one problem."""
    oracles = result["oracles"]
    known = "" if oracles[0] is None else f", oracle's NLPD {np.mean(oracles):.3f}"
    print(f"\n{result['data']}: {len(oracles)} sets{known}; standard errors in brackets")
    print(
        f"{'':14} {'NLPD':>15} {'less oracle':>15} {'less GPLC':>16} {'MSE':>9} "
        f"{'fit [s]':>8} {'predict':>8}  sets  warned"
    )
    for peer, row in result["summaries"].items():
        if row is None:
            print(f"{peer:14} failed on every set")
            continue
        cells = (
            number(row["nlpd"], row["nlpd_error"]),
            number(row.get("excess"), row.get("excess_error")),
            number(row.get("gap"), row.get("gap_error"), signed=True),
        )
        print(
            f"{peer:14} {cells[0]:>15} {cells[1]:>15} {cells[2]:>16} {row['mse']:9.4g} "
            f"{row['fit_seconds']:8.2f} {row['predict_seconds']:8.3f}  {row['sets']:4}  "
            f"{row['warned']:6}",
            flush=True,
        )


def draw(results: list[dict[str, Any]], path: Path) -> None:
    """A panel for each problem: means with standard errors, single sets as small marks."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(results[0]["summaries"])
    figure, axes = plt.subplots(
        1,
        len(results),
        figsize=(1.6 + 2.2 * len(results), 1.2 + 0.3 * len(names)),
        squeeze=False,
        sharey=True,
    )
    for axis, result in zip(axes[0], results, strict=True):
        known = result["oracles"][0] is not None
        key = "excess" if known else "nlpd"
        rows = {
            place: result["summaries"][name]
            for place, name in enumerate(names)
            if result["summaries"][name] is not None
        }
        middles = [row[key] for row in rows.values()] or [0.0]
        # One peer far off must not hide how the others differ.
        lowest = min(middles)
        highest = lowest + REACH * max(float(np.median(middles)) - lowest, 1e-3)
        for place, row in rows.items():
            if row[key] > highest:
                axis.annotate(
                    f"{row[key]:.2g} \N{RIGHTWARDS ARROW}",
                    (1.0, place),
                    xycoords=("axes fraction", "data"),
                    ha="right",
                    va="center",
                    size=8,
                )
                continue
            own = names[place] in ("STD", "GPLV", "GPLC")
            axis.errorbar(
                row[key],
                place,
                xerr=row[f"{key}_error"],
                fmt="o",
                ms=5,
                color="C0" if own else "0.35",
                capsize=2,
            )
            singles = [
                record["nlpd"] - (oracle or 0.0)
                for record, oracle in zip(
                    result["records"][names[place]], result["oracles"], strict=True
                )
                if "error" not in record
            ]
            axis.plot(singles, [place] * len(singles), "|", color="0.6", ms=7, zorder=0)
        axis.set_xlim(min(0.0, lowest) if known else None, highest)
        axis.set_title(result["data"], size=9)
        axis.set_xlabel("NLPD less the oracle's" if known else "NLPD", size=8)
        axis.tick_params(labelsize=8)
        axis.grid(axis="x", color="0.9")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_yticks(range(len(names)), names)
    axes[0, 0].set_ylim(len(names) - 0.5, -0.5)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--data", nargs="+", choices=[*PAPER, MOTORCYCLE], default=[*PAPER, MOTORCYCLE]
    )
    parser.add_argument("--sets", type=int, default=3, help="training sets of a paper's problem")
    parser.add_argument("--peers", nargs="+", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--draws", type=int, help="of gplc's chains")
    parser.add_argument("--warmup", type=int, help="of gplc's chains")
    parser.add_argument("--chains", type=int, help="gplc's")
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    parser.add_argument("--figure", type=Path, help="PNG file for a picture")
    options = parser.parse_args()
    settings = {
        key: value
        for key in ("draws", "warmup", "chains")
        if (value := getattr(options, key)) is not None
    }
    peers = installed_peers(options.peers, settings)
    results = []
    with threadpool_limits(limits=1):
        small = datasets.make_paper("M1", 25, SEED)
        for peer in peers.values():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                peer.predict(peer.rehearse(small.X, small.y), small.X, small.y)
        for name in options.data:
            results.append(compare(name, options.sets, peers))
            show(results[-1])
            if options.out:
                options.out.write_text(json.dumps(results, indent=2))
    if options.figure:
        draw(results, options.figure)


if __name__ == "__main__":
    main()
