"""What a change of the code does to the numbers: draws and predictions of every model and scheme.

    python benchmarks/digests.py write before.npz     # at one commit
    python benchmarks/digests.py compare before.npz   # at another

Comparing says of every entry whether it is the same to the last bit, and if not, in which
iteration it parts and how far apart the first iterations are.
"""

import sys
import warnings

import numpy as np

import gplc
from gplc.chains import run_chain
from gplc.kernels import Constant, Linear, Matern32, Matern52, Periodic, Sign, SquaredExponential
from gplc.models import MODELS

ROWS, WARMUP, DRAWS = 30, 20, 20
# Over so many first iterations of a chain two versions of the same arithmetic stay together.
EARLY = 5
KERNELS = {
    "default": None,
    "isotropic": SquaredExponential(ard=False),
    "linear": SquaredExponential() + Linear(),
    "signs": SquaredExponential().on("x") + Sign(sd=1.0).on("w") * Matern52().on("x"),
    "matern": Constant(1.0) + Matern32(),
    "periodic": SquaredExponential() * Periodic(period=2.0).on(0),
}


def data(inputs: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(20261118)
    X = rng.standard_normal((ROWS, inputs))
    y = np.sin(2.0 * X[:, 0]) + 0.3 * np.exp(0.5 * X[:, 0]) * rng.standard_normal(ROWS)
    return X, (y - y.mean()) / y.std()


def chains() -> dict[str, np.ndarray]:
    """Unknowns and log densities of short chains, the first half of them tuning."""
    result = {}
    for inputs in (1, 2):
        X, y = data(inputs)
        for key, model_class in MODELS.items():
            for kernel_name, kernel in KERNELS.items():
                if kernel_name == "signs" and key != "gplc":
                    continue
                model = model_class(X, y, kernel=kernel)
                for scheme in model.schemes:
                    chain = run_chain(model, scheme, seed=5, draws=DRAWS, warmup=WARMUP)
                    result[f"{key}/{inputs}/{kernel_name}/{scheme}"] = np.column_stack(
                        [chain.theta, chain.latent, chain.log_density]
                    )
    return result


def predictions() -> dict[str, np.ndarray]:
    """What estimators say of new rows after a short fit."""
    result = {}
    X, y = data(2)
    new = np.random.default_rng(3).standard_normal((7, 2))
    estimators = {
        "std": gplc.StandardGP,
        "gplc": gplc.LatentCovariateGP,
        "gplv": gplc.LatentVarianceGP,
    }
    for key, estimator in estimators.items():
        for kernel_name in ("default", "linear", "matern"):
            model = estimator(
                kernel=KERNELS[kernel_name], chains=2, draws=30, warmup=20, random_state=1
            ).fit(X, y)
            dist = model.predict_dist(new)
            result[f"{key}/{kernel_name}/predictions"] = np.column_stack(
                [
                    dist.mean(),
                    dist.std(),
                    dist.quantile([0.05, 0.5, 0.95]),
                    dist.logpdf(0.3),
                    dist.crps(0.3),
                    dist.sample(2, random_state=0),
                    model.predict(new),
                    model.regression_function(new).std(),
                    *model.residual_sd(new),
                ]
            )
    return result


def compare(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> int:
    """Print what differs; the number of entries that do."""
    differing = 0
    for name in sorted(before.keys() | after.keys()):
        if name not in before or name not in after:
            print(f"{name}: only {'after' if name in after else 'before'}")
            differing += 1
            continue
        old, new = before[name], after[name]
        if np.array_equal(old, new, equal_nan=True):
            continue
        differing += 1
        if old.shape != new.shape:
            print(f"{name}: shape {old.shape} and {new.shape}")
            continue
        first = int(np.argmax((old != new).any(axis=1)))
        early = np.abs(old - new)[:EARLY].max()
        print(f"{name}: parts at row {first}; largest gap in the first {EARLY}: {early:.2e}")
    print(f"{differing} of {len(before)} entries differ")
    return differing


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    action, path = sys.argv[1:]
    now = chains() | predictions()
    if action == "write":
        np.savez(path, **now)
    else:
        sys.exit(compare(dict(np.load(path)), now) > 0)
