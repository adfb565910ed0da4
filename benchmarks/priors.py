"""Which prior of length scales suits several inputs? Held-out NLPD of STD on real tables.

    python benchmarks/priors.py FOLDER [--sets yacht ...] [--priors BoTorch ...]
                                [--rows 60 200] [--splits 4] [--out FILE.jsonl]

Every CSV file of the folder is a data set: numbers only, perhaps with a line of names, the
response last. Scikit-learn's diabetes data and new draws of the paper's M1 and M2, which are not
those it is judged on, come in addition. A split takes some rows at random for
training and others (at most 500) for judging; all priors see the same splits and seeds. What is
shown is the mean NLPD with the default for one input, and the difference to it of every other
prior in nats, with its standard error over splits: below zero is better.

Length scales are in SDs of their input. BoTorch's prior (since 0.12, after Hvarfner, Hellsten and
Nardi, 2024) is for inputs that fill the unit interval, whose SD is 0.29, and an exponent with a
factor 1/2; its median is translated.
"""

import argparse
import json
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning

from gplc import StandardGP, metrics
from gplc.datasets import make_paper
from gplc.priors import LogNormal

Array = NDArray[np.float64]

SEED = 20241120
MOST_TEST_ROWS = 500
CHAINS = {"chains": 2, "warmup": 300, "draws": 300}

# The prior of the log of each length scale, given the number of inputs.
CANDIDATES: Mapping[str, Callable[[int], LogNormal]] = {
    "median 1, e^1": lambda p: LogNormal(0.0, 1.0),
    "median 1, e^1.5": lambda p: LogNormal(0.0, 1.5),
    "sqrt(p), e^1": lambda p: LogNormal(0.5 * math.log(p), 1.0),
    "sqrt(p), e^1.5": lambda p: LogNormal(0.5 * math.log(p), 1.5),
    "2 sqrt(p), e^1.5": lambda p: LogNormal(math.log(2.0) + 0.5 * math.log(p), 1.5),
    "BoTorch": lambda p: LogNormal(
        math.sqrt(2.0) + math.log(math.sqrt(2.0 * 12.0)) + 0.5 * math.log(p), math.sqrt(3.0)
    ),
}
BEFORE = next(iter(CANDIDATES))


def tables(folder: Path, names: Iterable[str]) -> dict[str, Array]:
    """Data sets by name, the response in the last column."""
    found = {path.stem: path for path in sorted(folder.glob("*.csv"))}
    made = {"diabetes": np.column_stack(load_diabetes(return_X_y=True))}
    for name in ("M1", "M2"):
        data = make_paper(name, n=1000, random_state=SEED)
        made[name] = np.column_stack([data.X, data.y])
    return {
        name: made[name] if name in made else numbers(found[name])
        for name in names or [*found, *made]
    }


def numbers(path: Path) -> Array:
    """A table of numbers, with or without a line of names."""
    table = np.genfromtxt(path, delimiter=",")
    return table[~np.isnan(table).any(axis=1)]


def one_fit(table: Array, prior: str, rows: int, split: int) -> float:
    """NLPD on held-out rows."""
    order = np.random.default_rng([SEED, split]).permutation(len(table))
    rows = min(rows, 2 * len(table) // 3)
    train, test = table[order[:rows]], table[order[rows : rows + MOST_TEST_ROWS]]
    model = StandardGP(
        priors={"length_scale": CANDIDATES[prior](table.shape[1] - 1)},
        random_state=split,
        **CHAINS,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(train[:, :-1], train[:, -1])
    return metrics.nlpd(model.predict_dist(test[:, :-1]), test[:, -1])


def compared(
    name: str, table: Array, priors: Sequence[str], rows: int, splits: int, jobs: int
) -> dict[str, Any]:
    """All priors on all splits of one data set: their NLPD, (priors, splits)."""
    values = Parallel(n_jobs=jobs)(
        delayed(one_fit)(table, prior, rows, split) for prior in priors for split in range(splits)
    )
    return {
        "set": name,
        "priors": list(priors),
        "inputs": table.shape[1] - 1,
        "rows": min(rows, 2 * len(table) // 3),
        "nlpd": np.reshape(values, (len(priors), splits)).tolist(),
    }


def report(record: Mapping[str, Any]) -> str:
    """One line for a data set."""
    nlpd = np.array(record["nlpd"])
    of_set = [record["set"], f"{record['inputs']}", f"{record['rows']}", f"{nlpd[0].mean():.3f}"]
    return " | ".join([*of_set, *cells((nlpd[1:] - nlpd[0]).T)])


def together(records: list[dict[str, Any]]) -> str:
    """The mean over data sets, with its standard error over these."""
    means = np.array([np.mean(each["nlpd"], axis=1) for each in records])
    return " | ".join(
        ["mean", "", "", f"{means[:, 0].mean():.3f}", *cells(means[:, 1:] - means[:, :1])]
    )


def cells(gaps: Array) -> list[str]:
    """Means of columns, with their standard errors if there are several rows."""
    error = (
        gaps.std(axis=0, ddof=1) / math.sqrt(len(gaps))
        if len(gaps) > 1
        else np.full(gaps.shape[1], math.nan)
    )
    return [f"{mean:+.3f} ({se:.3f})" for mean, se in zip(gaps.mean(axis=0), error, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="folder of CSV files, the response last")
    parser.add_argument("--sets", nargs="+", default=[], help="names of sets; all by default")
    parser.add_argument("--priors", nargs="+", default=[], help="to compare; all by default")
    parser.add_argument("--rows", type=int, nargs="+", default=[60, 200], help="for training")
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=1, help="fits at once")
    parser.add_argument("--out", type=Path, help="file for the figures, a line of JSON each")
    settings = parser.parse_args()
    priors = [BEFORE, *(each for each in settings.priors or CANDIDATES if each != BEFORE)]
    for rows in settings.rows:
        records = []
        print(" | ".join(["set", "inputs", "rows", *priors]))
        for name, table in tables(settings.folder, settings.sets).items():
            records.append(compared(name, table, priors, rows, settings.splits, settings.jobs))
            print(report(records[-1]), flush=True)
            if settings.out:
                with settings.out.open("a") as file:
                    file.write(json.dumps(records[-1]) + "\n")
        print(together(records), flush=True)


if __name__ == "__main__":
    main()
