"""Influential rows: what predictions would be without each of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gplc import _html
from gplc._fitted import as_fitted
from gplc._types import Array
from gplc.loo import LeaveOneOut, smoothed

# A row is told as influential if predictions move by so many posterior SDs without it.
MUCH = 1.0
# Rows that are shown.
SHOWN_ROWS = 5
# What is kept of each draw at the landmarks, of which these can be averaged over draws.
MOVED = ("f(x)", "log SD(x)")


@dataclass(frozen=True)
class Influence:
    """How far predictions move without each row. Prints as a table and a verdict.

    Attributes
    ----------
    shift : (n,) array
        Largest change of f(x) or of log SD(x) at any landmark, in posterior SDs.
    what : tuple of str
        Which of the two it is, for each row.
    where : (n,) array of int
        The training row that is that landmark.
    pareto_k : (n,) array
        Of the importance weights of each row.
    k_threshold : float
        Above it a shift is only a rough guess, and the row influential in any case.
    """

    shift: Array
    what: tuple[str, ...]
    where: NDArray[np.intp]
    pareto_k: Array
    k_threshold: float

    @property
    def order(self) -> NDArray[np.intp]:
        """Rows, the most influential first."""
        return np.argsort(-self.shift, kind="stable")

    @property
    def influential(self) -> NDArray[np.intp]:
        """Rows without which predictions move by a posterior SD, or whose k is bad."""
        much = (self.shift > MUCH) | ~(self.pareto_k < self.k_threshold)
        return self.order[much[self.order]]

    @property
    def verdict(self) -> str:
        """In words."""
        rows = self.influential
        if not rows.size:
            return f"no single row moves predictions by more than {MUCH:g} posterior SD"
        shown = ", ".join(map(str, rows[:SHOWN_ROWS])) + (
            ", ..." if rows.size > SHOWN_ROWS else ""
        )
        return f"predictions hang on {rows.size} of {self.shift.size} rows ({shown}): look at them"

    @property
    def _table(self) -> tuple[list[str], list[list[str]]]:
        rows = [
            [
                str(row),
                f"{self.shift[row]:.2f}",
                self.what[row],
                str(self.where[row]),
                f"{self.pareto_k[row]:.2f}",
            ]
            for row in self.order[:SHOWN_ROWS].tolist()
        ]
        return ["row", "moves by (SD)", "of", "at row", "k"], rows

    def __str__(self) -> str:
        head, rows = self._table
        lines = [f"{a:>6} {b:>14} {c:>10} {d:>7} {e:>6}" for a, b, c, d, e in [head, *rows]]
        return "\n".join([*lines, "", f"Verdict: {self.verdict}."])

    def _repr_html_(self) -> str:
        return _html.table(*self._table) + _html.sentences(f"Verdict: {self.verdict}.")

    def to_record(self) -> dict[str, Any]:
        """The rows that count, in JSON's terms."""
        return {"influential": self.influential.tolist(), "verdict": self.verdict}


def influence(model: Any) -> Influence:
    """How far predictions at the landmarks move if a row is left out.

    With the importance weights of leave-one-out, means over the posterior without row i come from
    the draws given all rows.

    Parameters
    ----------
    model : fitted estimator, or a Pipeline that ends in one

    Returns
    -------
    Influence

    Examples
    --------
    >>> import gplc
    >>> data = gplc.datasets.make_paper("U1", n=20, random_state=0)
    >>> model = gplc.StandardGP(chains=2, draws=100, warmup=50, random_state=0)
    >>> influence(model.fit(data.X, data.y)).shift.shape
    (20,)
    """
    model = as_fitted(model)
    loo: LeaveOneOut = model.loo()
    kept = model.draws_.judged[:, loo.picked, : len(MOVED)]
    values = kept.reshape(loo.n_draws, -1)
    told = np.isfinite(values).all(axis=0)
    centre, spread = values[:, told].mean(axis=0), values[:, told].std(axis=0)
    weights = np.exp(smoothed(loo.by_draw).log_weights)
    # What is the same in all draws does not move.
    moved = np.abs(weights @ values[:, told] - centre) / np.where(spread > 0.0, spread, np.inf)
    names = [(kind, row) for kind in MOVED for row in model.draws_.landmarks]
    columns = [name for name, is_told in zip(names, told, strict=True) if is_told]
    chosen = [columns[place] for place in np.argmax(moved, axis=1)]
    return Influence(
        moved.max(axis=1),
        tuple(kind for kind, _ in chosen),
        np.array([row for _, row in chosen], dtype=np.intp),
        loo.pareto_k,
        loo.k_threshold,
    )
