"""How often models stay inside the envelopes of `gplc.checks.calibration`: right and wrong ones.

Sets of data whose noise is the same everywhere, fitted by STD, which is right; and sets of U1,
whose noise varies, fitted by STD, which is wrong. Each row is judged without itself
(leave-one-out), and new rows are judged too. Told are the shares of sets whose whole curve is
inside.

    python benchmarks/envelopes.py --sets 200
"""

import argparse
import json
import warnings

import numpy as np

import gplc
from gplc.checks import calibration


def made(kind, n, seed):
    data = gplc.datasets.make_paper("U1", n=n, random_state=seed)
    if kind == "wrong":
        return data.X, data.y
    return data.X, data.f + 0.35 * (data.y - data.f) / data.sd


def inside(kind, n, seed):
    """Whether coverage and PIT are inside, for rows left out and for new rows."""
    X, y = made(kind, n, seed)
    model = gplc.StandardGP(chains=2, draws=150, warmup=100, random_state=0, progress=False)
    model.fit(X, y)
    found = [calibration(model), calibration(model, *made(kind, n, 100_000 + seed))]
    return [[each.coverage_inside, each.pit_inside] for each in found]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--out", default="benchmarks/results/envelopes.json")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    found = {"right": [], "wrong": []}
    for seed in range(given.sets):
        for kind, told in found.items():
            told.append(inside(kind, given.n, seed))
        shares = {
            kind: {
                rows: dict(
                    zip(("coverage", "pit"), np.mean(told, axis=0)[k].tolist(), strict=True)
                )
                for k, rows in enumerate(("left out", "new"))
            }
            for kind, told in found.items()
        }
        with open(given.out, "w") as file:
            json.dump(
                {"settings": vars(given), "sets": seed + 1, "inside": shares}, file, indent=1
            )
    print(json.dumps(shares, indent=1))


if __name__ == "__main__":
    main()
