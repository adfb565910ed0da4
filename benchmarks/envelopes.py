"""How often models stay inside the envelopes of `gplc.checks.calibration`: right and wrong ones.

Two hundred sets of U1 are judged by their true density, which is calibrated, and by a Gaussian
with the same SD everywhere, which is right on average only. With --fits, some sets are fitted by
STD besides and judged by leave-one-out: sets whose noise is the same everywhere, for which it is
right, and sets of U1. Told are the shares of sets whose whole curve is inside.

    python benchmarks/envelopes.py --sets 200 --fits 20
"""

import argparse
import json
import warnings

import numpy as np
from scipy.stats import norm

import gplc
from gplc.checks import calibration
from gplc.checks.calibrated import calibration_of


def known(n, seed):
    """Calibrations of the true density, and of one with the average SD."""
    data = gplc.datasets.make_paper("U1", n=n, random_state=seed)
    gaps, average = data.y - data.f, np.sqrt(np.mean(data.sd**2))
    pits = {"true density": norm.cdf(gaps / data.sd), "average SD": norm.cdf(gaps / average)}
    return {kind: calibration_of(data.X[:, 0], pit) for kind, pit in pits.items()}


def fitted(n, seed):
    """Calibrations of STD by leave-one-out, where it is right and where it is wrong."""
    data = gplc.datasets.make_paper("U1", n=n, random_state=seed)
    constant = data.f + 0.35 * (data.y - data.f) / data.sd
    settings = {"chains": 2, "draws": 150, "warmup": 100, "random_state": 0, "progress": False}
    return {
        kind: calibration(gplc.StandardGP(**settings).fit(data.X, y))
        for kind, y in (("STD, constant noise", constant), ("STD, noise of U1", data.y))
    }


def shares(found):
    """Shares of sets inside, by kind."""
    return {
        kind: {
            "sets": len(found),
            "coverage": float(np.mean([each[kind].coverage_inside for each in found])),
            "pit": float(np.mean([each[kind].pit_inside for each in found])),
            "spread": float(np.mean([each[kind].spread_inside for each in found])),
            "all": float(np.mean([each[kind].ok for each in found])),
        }
        for kind in (found[0] if found else {})
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--fits", type=int, default=20)
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--out", default="benchmarks/results/envelopes.json")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    first = shares([known(given.n, seed) for seed in range(given.sets)])
    by_fits = []
    for seed in range(given.fits + 1):
        told = {"settings": vars(given), "inside": first | shares(by_fits)}
        with open(given.out, "w") as file:
            json.dump(told, file, indent=1)
        if seed < given.fits:
            by_fits.append(fitted(given.n, seed))
    print(json.dumps(told["inside"], indent=1))


if __name__ == "__main__":
    main()
