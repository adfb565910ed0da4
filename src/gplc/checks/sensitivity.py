"""Sensitivity to priors: how far answers move if a prior counts twice, or half as much.

Draws are weighted by a power of one prior (power scaling; Kallioinen, Paananen, Bürkner and
Vehtari 2023), so that nothing has to be sampled again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gplc import _html
from gplc._fitted import as_fitted
from gplc._types import Array
from gplc.checks.influential import MOVED
from gplc.loo import good_k, smoothed

# A prior is told if predictions move by so many posterior SDs when it is doubled or halved.
MUCH = 0.3
POWERS = (0.5, 2.0)


class Moved(NamedTuple):
    """What one prior does."""

    predictions: float  # largest shift of f(x) or log SD(x) at a landmark, in posterior SDs
    itself: float  # shift of the log hyperparameter, in posterior SDs
    pareto_k: float  # the larger of both powers


@dataclass(frozen=True)
class Sensitivity:
    """How far answers move with each prior. Prints as a table and a verdict.

    Attributes
    ----------
    rows : dict of str to Moved
        By hyperparameter.
    k_threshold : float
        Above it the weights cannot be trusted, and the shift is a rough guess.
    """

    rows: Mapping[str, Moved]
    k_threshold: float

    @property
    def sensitive(self) -> list[str]:
        """Hyperparameters whose priors move predictions by much, or by what cannot be told."""
        return [
            name
            for name, row in self.rows.items()
            if not (row.predictions < MUCH and row.pareto_k < self.k_threshold)
        ]

    @property
    def ok(self) -> bool:
        """Whether predictions hang on no single prior."""
        return not self.sensitive

    @property
    def verdict(self) -> str:
        """In words."""
        most = max(row.predictions for row in self.rows.values())
        if self.ok:
            return (
                "the data decide: with any prior doubled or halved, predictions move by at most "
                f"{most:.2f} posterior SDs"
            )
        if most < MUCH:
            return (
                f"it cannot be told for the prior of {', '.join(self.sensitive)}: k is above "
                f"{self.k_threshold:.2f}, so that the weights say little; take more draws"
            )
        return (
            f"predictions hang on the prior of {', '.join(self.sensitive)} (up to {most:.1f} "
            "posterior SDs): say why it is what it is, or fit with another"
        )

    @property
    def _table(self) -> tuple[list[str], list[list[str]]]:
        rows = [
            [name, f"{row.predictions:.2f}", f"{row.itself:.2f}", f"{row.pareto_k:.2f}"]
            for name, row in self.rows.items()
        ]
        return ["prior of", "predictions (SD)", "itself (SD)", "k"], rows

    def __str__(self) -> str:
        head, rows = self._table
        width = max(len(row[0]) for row in [head, *rows])
        lines = [f"{a:{width}}  {b:>16} {c:>12} {d:>6}" for a, b, c, d in [head, *rows]]
        return "\n".join([*lines, "", f"Verdict: {self.verdict}."])

    def _repr_html_(self) -> str:
        return _html.table(*self._table) + _html.sentences(f"Verdict: {self.verdict}.")

    def to_record(self) -> dict[str, Any]:
        """The table in JSON's terms."""
        rows = {name: row._asdict() for name, row in self.rows.items()}
        return {"priors": rows, "ok": self.ok, "verdict": self.verdict}


def sensitivity(model: Any) -> Sensitivity:
    """How far predictions move if the prior of a hyperparameter is doubled or halved.

    With p(theta_k)^a in the place of p(theta_k), a = 2 and 1/2, draws have the weights
    p(theta_k)^(a - 1), smoothed as those of leave-one-out are.

    Parameters
    ----------
    model : fitted estimator, or a Pipeline that ends in one

    Returns
    -------
    Sensitivity

    Examples
    --------
    >>> import gplc
    >>> data = gplc.datasets.make_paper("U1", n=20, random_state=0)
    >>> model = gplc.StandardGP(chains=2, draws=100, warmup=50, random_state=0)
    >>> list(sensitivity(model.fit(data.X, data.y)).rows)
    ['signal_sd', 'length_scale', 'noise_sd']
    """
    model = as_fitted(model)
    draws = model.draws_
    chains, length = draws.log_density.shape
    logs = model.model_.priors.log_densities(draws.theta)
    kept = draws.judged[:, :, : len(MOVED)].reshape(chains * length, -1)
    kept = kept[:, np.isfinite(kept).all(axis=0)]
    theta = draws.theta.reshape(chains * length, -1)
    labels = draws.units.labels if draws.units is not None else draws.names
    rows = {}
    for place, label in enumerate(labels):
        # `smoothed` takes one over what it gets.
        pair = [smoothed((1.0 - power) * logs[:, :, [place]]) for power in POWERS]
        weights = np.exp(np.array([each.log_weights[0] for each in pair]))
        rows[label] = Moved(
            float(_shift(kept, weights).max(initial=0.0)),
            float(_shift(theta[:, [place]], weights).max(initial=0.0)),
            float(max(each.pareto_k[0] for each in pair)),
        )
    return Sensitivity(rows, good_k(chains * length))


def _shift(values: Array, weights: Array) -> Array:
    """Change of means of columns under weights (w, draws), in SDs: (w, columns)."""
    spread = values.std(axis=0)
    # What is the same in all draws does not move.
    return np.abs(weights @ values - values.mean(axis=0)) / np.where(spread > 0.0, spread, np.inf)
