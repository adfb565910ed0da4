"""Major operations of one iteration, counted while it runs: the ledger of the model tells."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from gplc.chains import run_chain
from gplc.models.base import Model
from gplc.paper.experiments import training_set
from gplc.paper.settings import Beliefs, Settings

# Schemes that are counted, with what the paper's tables print for them by part. Slice updates look
# at several densities, which the paper does not count.
PRINTED: dict[tuple[str, str], dict[str, str]] = {
    ("std", "paper"): {"theta": "p + 2 times C, chol(C)"},
    ("gplc", "paper"): {
        "theta": "p + 3 times C, chol(C)",
        "w": "n times 1/n of C, all of chol(C)",
    },
    ("gplv", "paper"): {
        "theta_y": "p + 1 times C_y, chol(C_y)",
        "theta_z": "p + 1 times C_z, chol(C_z)",
        "z": "m (p + 1) times C_y, chol(C_y)",
    },
    ("gplv", "metropolis"): {
        "theta_y": "p + 1 times C_y, chol(C_y)",
        "theta_z": "p + 1 times C_z, chol(C_z)",
        "z": "n times rank-1 update of chol(C_y)",
    },
    ("gplv", "slice"): {
        "theta_y": "p + 1 times C_y, chol(C_y)",
        "theta_z": "p + 1 times C_z, chol(C_z)",
        "z": "n times rank-1 update of chol(C_y)",
    },
    ("gplv", "elliptical"): {},
    ("gplv", "default"): {},
}

COUNTED_ITERATIONS = 20


@dataclass(frozen=True)
class Count:
    """What the updates of one group of parts do in one iteration, on average."""

    model: str
    scheme: str
    p: int
    part: str
    updates: float
    evaluations: float
    operations: str
    printed: str


def group(model: Model, part: str) -> str:
    """The paper's name for what an update changes.

    Examples
    --------
    >>> from gplc.models import LatentVariance
    >>> group(LatentVariance([[0.0]], [0.0]), "length_scale_z")
    'theta_z'
    """
    if part in model.names:
        for suffix in ("_y", "_z"):
            if part.split("[")[0].endswith(suffix):
                return f"theta{suffix}"
        return "theta"
    return part.split(" ")[0]


def count(settings: Settings) -> list[Count]:
    """Operations of all schemes of the paper's tables, for one input (U1) and three (M1)."""
    counts = []
    for dataset in ("U1", "M1"):
        data = training_set(settings.seed, dataset, 1, settings.n_train)
        for (key, scheme), printed in PRINTED.items():
            model = Beliefs().model(key, dataset, data.X, data.y)
            counts += count_scheme(model, scheme, printed)
    return counts


def count_scheme(model: Model, scheme: str, printed: dict[str, str]) -> list[Count]:
    """Operations of one scheme, by group of parts."""
    rng = np.random.default_rng(1)
    # From a point the chain has found: on the way there, updates look at more densities.
    chain = run_chain(model, scheme, seed=1, draws=1, warmup=COUNTED_ITERATIONS)
    state = model.state(chain.position.unknowns)
    ledgers: dict[str, Counter[str]] = {}
    evaluations: Counter[str] = Counter()
    updates: Counter[str] = Counter()
    for _ in range(COUNTED_ITERATIONS):
        for update in chain.position.scheme:
            name = group(model, update.part)
            model.ledger.clear()
            state, info = model.step(rng, state, update)
            ledgers.setdefault(name, Counter()).update(model.ledger)
            evaluations[name] += info.n_evaluations
            updates[name] += 1
    return [
        Count(
            model.title,
            scheme,
            model.X.shape[1],
            name,
            updates[name] / COUNTED_ITERATIONS,
            evaluations[name] / COUNTED_ITERATIONS,
            _in_words(ledger),
            printed.get(name, ""),
        )
        for name, ledger in ledgers.items()
    ]


def _in_words(ledger: Counter[str]) -> str:
    per_iteration = {name: total / COUNTED_ITERATIONS for name, total in ledger.items() if total}
    return ", ".join(f"{value:.3g} {name}" for name, value in sorted(per_iteration.items()))
