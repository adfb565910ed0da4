"""Simulation-based calibration: whether sampler and model agree, for your kernel and priors.

Unknowns are drawn from their prior and data given them; then the unknowns are sampled given these
data. Over many sets, the rank of what was drawn first among the draws of the chain is uniform
(Talts, Betancourt, Simpson, Vehtari and Gelman 2018). Besides the hyperparameters the log density
is ranked, which depends on the data: without it a sampler that ignores them would pass.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import kstest

from gplc import _check, _html
from gplc._fitted import as_fitted
from gplc._types import Array
from gplc.chains import run_chain
from gplc.models import Model, Unknowns

# So seldom a sampler that agrees with its model is said not to.
FALSE_ALARM = 0.01
# Draws of a chain that a rank is taken among: so few that they are nearly independent.
RANKED = 20
# Tries to draw unknowns at which the density of the data can be computed.
TRIES = 50


class Ranks(NamedTuple):
    """Of one quantity, over all sets."""

    shares: Array  # (sets,), uniform on (0, 1) if all is well
    p_value: float  # of a test for that (Kolmogorov and Smirnov)


@dataclass(frozen=True)
class Simulation:
    """Whether sampler and model agree. Prints as a table and a verdict.

    Attributes
    ----------
    rows : dict of str to Ranks
        By quantity.
    sets, n, draws : int
        Sets of data, rows of each, and draws of each chain.
    """

    rows: Mapping[str, Ranks]
    sets: int
    n: int
    draws: int

    @property
    def disagreeing(self) -> list[str]:
        """Quantities whose ranks are not uniform, allowing for how many are looked at."""
        bound = FALSE_ALARM / len(self.rows)
        return [name for name, row in self.rows.items() if row.p_value < bound]

    @property
    def ok(self) -> bool:
        """Whether there are none."""
        return not self.disagreeing

    @property
    def verdict(self) -> str:
        """In words."""
        if self.ok:
            return (
                f"sampler and model agree, as far as {self.sets} simulated sets can tell: what "
                "data were made with has the place among the draws that it should have"
            )
        found = [f"{name} ({_which_way(self.rows[name].shares)})" for name in self.disagreeing]
        return (
            f"sampler and model do not agree: {', '.join(found)}; try more warm-up and draws, and "
            "if that does not help, look at the kernel or the priors"
        )

    @property
    def _table(self) -> tuple[list[str], list[list[str]]]:
        rows = [
            [name, f"{row.shares.mean():.2f}", f"{row.shares.std():.2f}", f"{row.p_value:.3f}"]
            for name, row in self.rows.items()
        ]
        return ["rank of", "mean (0.50)", "SD (0.29)", "p"], rows

    def __str__(self) -> str:
        head, rows = self._table
        width = max(len(row[0]) for row in [head, *rows])
        lines = [f"{a:{width}}  {b:>11} {c:>9} {d:>6}" for a, b, c, d in [head, *rows]]
        size = f"{self.sets} sets of {self.n} rows, chains of {self.draws} draws"
        return "\n".join([size, "", *lines, "", f"Verdict: {self.verdict}."])

    def _repr_html_(self) -> str:
        return _html.table(*self._table) + _html.sentences(f"Verdict: {self.verdict}.")

    def to_record(self) -> dict[str, Any]:
        """The table in JSON's terms."""
        rows = {name: row.p_value for name, row in self.rows.items()}
        return {"sets": self.sets, "p_values": rows, "ok": self.ok, "verdict": self.verdict}


def _which_way(shares: Array) -> str:
    """What is wrong with ranks that are not uniform."""
    if abs(shares.mean() - 0.5) > 1.5 / np.sqrt(12.0 * shares.size):
        return "draws too low" if shares.mean() > 0.5 else "draws too high"
    return "draws too narrow" if shares.std() > 1.0 / np.sqrt(12.0) else "draws too wide"


def simulation(
    model: Any,
    *,
    sets: int = 50,
    rows: int = 20,
    draws: int = 400,
    warmup: int = 300,
    n_jobs: int | None = None,
    random_state: int = 0,
) -> Simulation:
    """Check that chains sample the posterior they should, on data made by the model itself.

    Parameters
    ----------
    model : fitted estimator, or a Pipeline that ends in one
        Its kernel, priors, settings and sampler are checked, at some of its inputs.
    sets : int
        Sets of data; each is sampled by one chain.
    rows : int
        Rows of each set at most, spread over those of the data.
    draws, warmup : int
        Length of the chains; draws are thinned to 20.
    n_jobs : int, optional
        Chains at once, as in joblib.
    random_state : int

    Returns
    -------
    Simulation

    Examples
    --------
    >>> import gplc
    >>> data = gplc.datasets.make_paper("U1", n=8, random_state=0)
    >>> model = gplc.StandardGP(chains=2, draws=20, warmup=20, random_state=0)
    >>> found = simulation(model.fit(data.X, data.y), sets=3, draws=40, warmup=40)
    >>> list(found.rows)
    ['log signal_sd', 'log length_scale', 'log noise_sd', 'log_density']
    """
    _check.integer("sets", sets, at_least=2, advice="50 is a good start")
    _check.integer("rows", rows, at_least=2, advice="20 is a good number")
    _check.integer("draws", draws, at_least=RANKED, advice="400 is a good number")
    _check.integer("warmup", warmup, at_least=1, advice="300 is a good number")
    fitted = as_fitted(model)
    smaller = _with_fewer_rows(fitted, rows)
    scheme = fitted.sampler
    seeds = np.random.SeedSequence(random_state).spawn(sets)
    found = Parallel(n_jobs=n_jobs)(
        delayed(_shares)(smaller, scheme, seed, draws, warmup) for seed in seeds
    )
    shares = np.array(found).T
    names = [*(f"log {name}" for name in smaller.names), "log_density"]
    ranks = {
        name: Ranks(each, float(kstest(each, "uniform").pvalue))
        for name, each in zip(names, shares, strict=True)
    }
    return Simulation(ranks, sets, smaller.n, draws)


def _with_fewer_rows(fitted: Any, rows: int) -> Model:
    """The model of a fit at some of its rows, evenly spaced in the order of the first input."""
    whole = fitted.model_
    order = np.argsort(whole.X[:, 0], kind="stable")
    chosen = np.sort(order[np.linspace(0, whole.n - 1, min(rows, whole.n)).round().astype(int)])
    known = getattr(whole, "known_noise", None)
    noise = None if known is None else known.sds[chosen]
    model: Model = fitted._model(whole.X[chosen], whole.y[chosen], noise)
    return model


def _shares(
    model: Model, scheme: Any, seed: np.random.SeedSequence, draws: int, warmup: int
) -> Array:
    """Ranks of what a set of data was made with, as shares with a random part of a step."""
    rng = np.random.default_rng(seed)
    unknowns, at_data = _made(model, rng)
    chain = run_chain(at_data, scheme, seed.spawn(1)[0], draws, warmup)
    kept = np.linspace(0, draws - 1, RANKED).round().astype(int)
    truth = np.append(unknowns.theta, at_data.log_density(unknowns))
    drawn = np.column_stack([chain.theta[kept], chain.log_density[kept]])
    below = np.sum(drawn < truth, axis=0)
    return (below + rng.random(below.size)) / (RANKED + 1.0)


def _made(model: Model, rng: np.random.Generator) -> tuple[Unknowns, Model]:
    """Unknowns from the prior, and the model of data made with them."""
    for _ in range(TRIES):
        unknowns = model.sample_prior(rng)
        if not model.priors.allows(unknowns.theta):
            continue
        y = model.sample_data(rng, unknowns)
        if not np.isfinite(y).all():
            continue
        at_data = model.with_data(y)
        if at_data.log_density(unknowns) > -np.inf:
            return unknowns, at_data
    raise ValueError(
        f"in {TRIES} draws from the priors there was none at which the density of data can be "
        "computed; make the priors narrower, or raise the prior of noise_sd"
    )
