"""Many rows: gplc in a basis beside the packages that go as far.

    python benchmarks/large.py [--data U1 U2 M1 M2] [--rows 1000 10000] [--peers GPLC GPBoost ...]
                               [--draws N] [--warmup N] [--out FILE.json] [--figure FILE.png]
    python benchmarks/large.py --exact [--data ...] [--peers ...] [--out FILE.json]  # exact fits
    python benchmarks/large.py --passes [--out FILE.json]                 # time of one gradient

- GPLC and GPLV: two chains, one process, `approximation=Hilbert()`; "fast" is method="fast";
- GPBoost: processes for mean and log variance (Vecchia, Fisher-Laplace), Gaussian noise;
- NGBoost: a Gaussian whose mean and SD are boosted trees;
- HGB: scikit-learn's HistGradientBoosting, one for each of 19 quantiles. It has no density, and
  its CRPS is that of a sample at these quantiles;
- hetgpy: hetGP, up to 1,000 rows.

Training rows are standardized. 5,000 test rows within the range of the training rows; NLPD is
judged beside that of the true density (regret). Each fit is a process of its own, whose wall-clock
and CPU seconds and peak memory are counted; CPU seconds of chains, which run in workers, are
`chain_cpu`. Coverage is of 90%
intervals, over all rows and at worst over ten equal parts of the first input.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

Array = NDArray[np.float64]

N_TEST, CHAINS = 5000, 2
# Predictions of exact fits are slow.
FEW_TEST = 400
LEVELS = np.arange(1, 20) / 20.0
SEED_TRAIN, SEED_TEST = 1, 99
HETGPY_ROWS = 1000
# Bases for the comparison with exact fits, good for all that 300 rows leave open.
EXACT_BASES = {
    "U1": {"functions": 32, "boundary": 2.2, "latent_functions": 16, "latent_boundary": 3.0},
    "U2": {"functions": 18, "boundary": 2.5, "latent_functions": 16, "latent_boundary": 3.0},
}


class Answer:
    """Log densities (None if there are none), a sample for CRPS, and 90% intervals."""

    def __init__(self, log_density: Array | None, crps: float, lower: Array, upper: Array) -> None:
        self.log_density, self.crps, self.lower, self.upper = log_density, crps, lower, upper


def gaussian(mean: Array, sd: Array, y: Array) -> Answer:
    z = (y - mean) / sd
    crps = sd * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - np.pi**-0.5)
    reach = norm.ppf(0.95) * sd
    return Answer(norm.logpdf(y, mean, sd), float(crps.mean()), mean - reach, mean + reach)


def ours(name: str, method: str = "mcmc") -> Any:
    def run(X: Array, y: Array, X_new: Array, y_new: Array, settings: Any) -> Answer:
        import gplc

        classes = {"GPLC": gplc.LatentCovariateGP, "GPLV": gplc.LatentVarianceGP}
        model = classes[name](
            chains=CHAINS,
            draws=settings.draws,
            warmup=settings.warmup,
            n_jobs=1,
            method=method,
            random_state=0,
            approximation=None if settings.fit_exact else gplc.Hilbert(**settings.basis),
            progress=False,
        ).fit(X, y)
        dist = model.predict_dist(X_new)
        settings.told = {
            "chain_cpu": sum(sum(each.seconds.values()) for each in model.chains_),
            "basis": str(model.approximation_),
            "level": str(model.diagnostics_.level),
            "rhat": max(row.rhat for row in model.diagnostics_.rows.values()),
            "k": None if model.diagnostics_.weighed is None else model.diagnostics_.weighed.k,
            "error": getattr(model.approximation_, "error", None),
        }
        settings.f, settings.sd = model.regression_function(X_new).mean(), dist.std()
        if settings.keep:
            left_out = model.loo()
            settings.told |= {"elpd": float(left_out.log_density.sum())}
            settings.told |= {"worst_loo_k": float(left_out.pareto_k.max())}
        lower, upper = dist.interval(0.9).T
        return Answer(dist.logpdf(y_new), float(gplc.metrics.crps(dist, y_new)), lower, upper)

    return run


def gpboost(X: Array, y: Array, X_new: Array, y_new: Array, settings: Any) -> Answer:
    import gpboost as gpb

    model = gpb.GPModel(
        gp_coords=X,
        cov_function="gaussian" if X.shape[1] == 1 else "gaussian_ard",
        likelihood="gaussian_heteroscedastic",
        gp_approx="vecchia",
    )
    model.fit(y=y, X=np.ones((len(y), 1)))
    found = model.predict(
        gp_coords_pred=X_new,
        X_pred=np.ones((len(y_new), 1)),
        predict_var=True,
        predict_response=True,
    )
    return gaussian(np.asarray(found["mu"]), np.sqrt(np.asarray(found["var"])), y_new)


def ngboost(X: Array, y: Array, X_new: Array, y_new: Array, settings: Any) -> Answer:
    from ngboost import NGBRegressor

    keep = np.random.default_rng(0).random(len(y)) < 0.8
    model = NGBRegressor(verbose=False, n_estimators=1000, random_state=0)
    model.fit(X[keep], y[keep], X_val=X[~keep], Y_val=y[~keep], early_stopping_rounds=20)
    found = model.pred_dist(X_new)
    return gaussian(found.loc, found.scale, y_new)


def boosted_quantiles(X: Array, y: Array, X_new: Array, y_new: Array, settings: Any) -> Answer:
    from sklearn.ensemble import HistGradientBoostingRegressor

    quantiles = np.column_stack(
        [
            HistGradientBoostingRegressor(
                loss="quantile", quantile=level, early_stopping=True, random_state=0
            )
            .fit(X, y)
            .predict(X_new)
            for level in LEVELS
        ]
    )
    quantiles.sort(axis=1)
    gaps = y_new[:, None] - quantiles
    pinball = np.maximum(LEVELS * gaps, (LEVELS - 1.0) * gaps)
    return Answer(None, float(2.0 * pinball.mean()), quantiles[:, 0], quantiles[:, -1])


def hetgpy(X: Array, y: Array, X_new: Array, y_new: Array, settings: Any) -> Answer:
    from hetgpy import hetGP

    model = hetGP()
    model.mle(X=X, Z=y, covtype="Gaussian")
    found = model.predict(X_new)
    return gaussian(found["mean"], np.sqrt(found["sd2"] + found["nugs"]), y_new)


PEERS: dict[str, tuple[Any, str, int | None]] = {
    "GPLC": (ours("GPLC"), "gplc", None),
    "GPLV": (ours("GPLV"), "gplc", None),
    "GPLC fast": (ours("GPLC", "fast"), "gplc", None),
    "GPLV fast": (ours("GPLV", "fast"), "gplc", None),
    "GPBoost": (gpboost, "gpboost", 100_000),
    "NGBoost": (ngboost, "ngboost", 100_000),
    "HGB": (boosted_quantiles, "sklearn", None),
    "hetgpy": (hetgpy, "hetgpy", HETGPY_ROWS),
}


def split(name: str, n: int, tests: int = N_TEST) -> tuple[Any, Any, NDArray[np.bool_]]:
    from gplc.datasets import make_paper

    train = make_paper(name, n=n, random_state=SEED_TRAIN)
    test = make_paper(name, n=tests, random_state=SEED_TEST)
    lowest, highest = train.X.min(0), train.X.max(0)
    inside = np.all(np.clip(test.X, lowest, highest) == test.X, axis=1)
    return train, test, inside


def one(settings: Any) -> dict[str, Any]:
    """One fit, in this process."""
    warnings.simplefilter("ignore")
    name, n, peer = settings.data[0], settings.rows[0], settings.peers[0]
    settings.basis = EXACT_BASES.get(name, {}) if settings.keep else {}
    train, test, inside = split(name, n, FEW_TEST if settings.keep else N_TEST)
    location, scale = train.X.mean(0), train.X.std(0)
    y_location, y_scale = train.y.mean(), train.y.std()
    X, X_new = (train.X - location) / scale, (test.X[inside] - location) / scale
    y, y_new = (train.y - y_location) / y_scale, (test.y[inside] - y_location) / y_scale
    began, cpu = time.perf_counter(), _cpu()
    answer = PEERS[peer][0](X, y, X_new, y_new, settings)
    result = {"data": name, "n": n, "peer": peer, "wall": time.perf_counter() - began}
    result["cpu"] = _cpu() - cpu
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    result["peak_mb"] = max(resource.getrusage(kind).ru_maxrss for kind in kinds) / 1024.0
    if answer.log_density is not None:
        log_density = answer.log_density - np.log(y_scale)
        loss = test.logpdf(test.y)[inside] - log_density
        result["nlpd"] = float(-log_density.mean())
        result["regret"] = float(loss.mean())
        result["regret_se"] = float(loss.std() / np.sqrt(loss.size))
    result["crps"] = answer.crps * float(y_scale)
    hit = (answer.lower <= y_new) & (y_new <= answer.upper)
    parts = np.array_split(np.argsort(X_new[:, 0]), 10)
    by_part = np.array([hit[part].mean() for part in parts])
    result["coverage"] = float(hit.mean())
    result["worst_coverage"] = float(by_part[np.argmax(np.abs(by_part - 0.9))])
    result |= getattr(settings, "told", {})
    if settings.keep:
        np.savez(settings.keep, f=settings.f, sd=settings.sd, log_density=answer.log_density)
    return result


def _cpu() -> float:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    used = [resource.getrusage(kind) for kind in kinds]
    return sum(each.ru_utime + each.ru_stime for each in used)


def in_a_process(settings: Any, *more: str) -> dict[str, Any] | None:
    command = [sys.executable, __file__, "--one", *more]
    command += ["--draws", str(settings.draws), "--warmup", str(settings.warmup)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)
    if done.returncode:
        print(f"{' '.join(more)} failed: {done.stderr.strip().splitlines()[-1:]}", flush=True)
        return None
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    print(json.dumps(found), flush=True)
    return found


def race(settings: Any) -> list[dict[str, Any]]:
    """All peers on all data."""
    results = []
    for name in settings.data:
        for n in settings.rows:
            for peer in settings.peers:
                _, package, most = PEERS[peer]
                if find_spec(package) is None:
                    print(f"{peer} is left out: {package} is not installed", flush=True)
                    continue
                if most is not None and n > most:
                    continue
                found = in_a_process(settings, "--data", name, "--rows", str(n), "--peers", peer)
                results += [] if found is None else [found]
    return results


def against_exact(settings: Any) -> list[dict[str, Any]]:
    """Fits in a basis beside exact ones, on 300 rows."""
    results: list[dict[str, Any]] = []
    folder = tempfile.mkdtemp()
    for name in settings.data:
        for peer in [each for each in ("GPLV", "GPLC") if each in settings.peers]:
            common = ["--data", name, "--rows", "300", "--peers", peer, "--keep"]
            paths = [str(Path(folder) / f"{kind}.npz") for kind in ("basis", "exact")]
            found = [
                in_a_process(settings, *common, paths[0]),
                in_a_process(settings, *common, paths[1], "--fit-exact"),
            ]
            if None in found:
                continue
            basis, exact = (np.load(path) for path in paths)
            gap = np.abs(basis["f"] - exact["f"]) / exact["sd"]
            change = float(np.mean(exact["log_density"] - basis["log_density"]))
            row = {"data": name, "peer": peer, "nlpd_basis_less_exact": change}
            row |= {"f_gap_mean": float(gap.mean()), "f_gap_most": float(gap.max())}
            for key in ("cpu", "elpd", "worst_loo_k", "rhat", "level"):
                row |= {f"{key}_basis": found[0][key], f"{key}_exact": found[1][key]}
            row["covariance_error"] = found[0]["error"]
            print(json.dumps(row), flush=True)
            results.append(row)
            for path in paths:
                Path(path).unlink()
    return results


def passes(settings: Any) -> list[dict[str, Any]]:
    """CPU seconds of one value and gradient of the log density, and how they grow."""
    from threadpoolctl import threadpool_limits

    from gplc.estimators.sizes import ranges_of
    from gplc.models.in_basis import IN_BASIS
    from gplc.processes.hilbert import Hilbert, Scales

    results = []
    for key in ("gplv", "gplc"):
        for n in settings.rows:
            train, _, _ = split("U2", n)
            X, y = (train.X - train.X.mean(0)) / train.X.std(0), train.y / train.y.std()
            scales = Scales(((1.1, 1.9),), (3.5, 7.0))
            axes = Hilbert().axes(ranges_of(X), scales, key == "gplc")
            model = IN_BASIS[key](X, y, axes=axes)
            unknowns = model.unknowns(model.priors.means, np.zeros(model.n_latent))
            seconds = []
            with threadpool_limits(limits=1, user_api="blas"):
                for _ in range(4):
                    began = time.process_time()
                    model.state(unknowns)
                    seconds.append(time.process_time() - began)
            results.append(
                {"model": key, "n": n, "coefficients": model.n_latent, "cpu": min(seconds)}
            )
            print(json.dumps(results[-1]), flush=True)
    for key in ("gplv", "gplc"):
        own = [each for each in results if each["model"] == key]
        logs = np.log([[each["n"], each["cpu"]] for each in own])
        if len(own) > 1:
            exponent = float(np.polyfit(*logs.T, 1)[0])
            results.append({"model": key, "exponent": exponent})
            print(json.dumps(results[-1]), flush=True)
    return results


def draw(results: list[dict[str, Any]], path: str) -> None:
    """Regret against CPU seconds."""
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(each["data"] for each in results))
    figure, axes = plt.subplots(1, len(names), figsize=(3.4 * len(names), 3.2), squeeze=False)
    for ax, name in zip(axes[0], names, strict=True):
        for number, peer in enumerate(PEERS):
            own = [
                each
                for each in results
                if (each["data"], each["peer"]) == (name, peer) and "regret" in each
            ]
            if own:
                cpu, regret = [e["cpu"] for e in own], [max(e["regret"], 1e-4) for e in own]
                ax.plot(cpu, regret, "o-", ms=4, lw=1, color=f"C{number}", label=peer)
                for each, x, y in zip(own, cpu, regret, strict=True):
                    ax.annotate(
                        f"{each['n']:g}",
                        (x, y),
                        fontsize=6,
                        xytext=(3, 3),
                        textcoords="offset points",
                    )
        ax.set(xscale="log", yscale="log", title=name, xlabel="CPU seconds")
    axes[0][0].set_ylabel("NLPD less that of the truth")
    axes[0][-1].legend(frameon=False, fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", nargs="+", default=["U1", "U2", "M1", "M2"])
    parser.add_argument("--rows", nargs="+", type=int, default=[1000, 10_000])
    parser.add_argument("--peers", nargs="+", default=list(PEERS))
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--warmup", type=int, default=150)
    parser.add_argument("--out")
    parser.add_argument("--figure")
    for flag in ("--one", "--exact", "--passes", "--fit-exact"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--keep")
    settings = parser.parse_args()
    if settings.one:
        print(json.dumps(one(settings)))
        return
    todo = passes if settings.passes else against_exact if settings.exact else race
    results = todo(settings)
    if settings.out:
        Path(settings.out).write_text(json.dumps(results, indent=1) + "\n")
    if settings.figure and todo is race:
        draw(results, settings.figure)


if __name__ == "__main__":
    main()
