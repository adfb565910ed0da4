"""Posterior predictive checks: whether data that the model makes look like those it was given."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import kurtosis, rankdata, skew

from gplc import _check, _html
from gplc._fitted import as_fitted, as_table, training_data
from gplc._types import Array

# A statistic of so few replicates beyond it is told as surprising.
SURPRISING = 0.05

Statistic = Callable[[Array, Array], float]


def _spread_with_size(y: Array, f: Array) -> float:
    """Rank correlation between the size of residuals and f."""
    sizes, places = rankdata(np.abs(y - f)), rankdata(f)
    if min(np.ptp(sizes), np.ptp(places)) == 0.0:
        return 0.0
    return float(np.corrcoef(sizes, places)[0, 1])


def _neighbours(y: Array, f: Array) -> float:
    """Correlation of residuals of rows that follow each other in f."""
    order = np.argsort(f, kind="stable")
    residuals = (y - f)[order]
    one, other = residuals[:-1], residuals[1:]
    if one.size < 2 or min(np.ptp(one), np.ptp(other)) == 0.0:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])


STATISTICS: Mapping[str, Statistic] = {
    "SD of y": lambda y, f: float(np.std(y)),
    "smallest y": lambda y, f: float(np.min(y)),
    "largest y": lambda y, f: float(np.max(y)),
    "SD of residuals": lambda y, f: float(np.std(y - f)),
    "skewness of residuals": lambda y, f: _or_zero(skew(y - f)),
    "kurtosis of residuals": lambda y, f: _or_zero(kurtosis(y - f)),
    "residual size along f": _spread_with_size,
    "residuals of neighbours": _neighbours,
}
"""What is compared by default: functions of responses y and of f(x), both (n,)."""


def _or_zero(value: Any) -> float:
    """A number; zero where residuals do not vary."""
    return float(np.nan_to_num(value))


class Compared(NamedTuple):
    """One statistic of the data, and of data that the model makes."""

    observed: float
    low: float  # 5% of the replicates are below
    high: float  # 95%
    p_value: float  # two-sided: how often a replicate is as far out


@dataclass(frozen=True)
class PredictiveCheck:
    """Statistics of the data against those of replicates. Prints as a table and a verdict.

    Attributes
    ----------
    rows : dict of str to Compared
        By statistic.
    y : (n,) array
        Responses.
    f : (n,) array
        Posterior mean of f(x) at the rows.
    replicates : (draws, n) array
        New responses at the same inputs, one set for each draw.
    """

    rows: Mapping[str, Compared]
    y: Array
    f: Array
    replicates: Array

    @property
    def surprising(self) -> list[str]:
        """Statistics that fewer than 5% of the replicates reach, in either direction."""
        return [name for name, row in self.rows.items() if row.p_value < SURPRISING]

    @property
    def ok(self) -> bool:
        """Whether the data look like data of the model, by all statistics together.

        The smallest of k p-values is below 0.05 / k once in twenty times, if they are independent.
        """
        return min(row.p_value for row in self.rows.values()) >= SURPRISING / len(self.rows)

    @property
    def verdict(self) -> str:
        """In words."""
        if self.ok and not self.surprising:
            return "the data look like data that the model makes"
        if self.ok:
            return (
                f"the data look like data that the model makes, if {len(self.rows)} statistics "
                f"are looked at; the farthest out: {', '.join(self.surprising)}"
            )
        return f"data that the model makes look different: {', '.join(self.surprising)}"

    @property
    def _table(self) -> tuple[list[str], list[list[str]]]:
        head = ["", "data", "5%", "95%", "of replicates as far out"]
        rows = [
            [
                name,
                f"{row.observed:.3g}",
                f"{row.low:.3g}",
                f"{row.high:.3g}",
                f"{row.p_value:.1%}",
            ]
            for name, row in self.rows.items()
        ]
        return head, rows

    def __str__(self) -> str:
        head, rows = self._table
        width = max(len(row[0]) for row in rows)
        lines = [
            f"{name:{width}}  {data:>9} {low:>9} {high:>9}  {share:>24}"
            for name, data, low, high, share in [head, *rows]
        ]
        return "\n".join([*lines, "", f"Verdict: {self.verdict}."])

    def _repr_html_(self) -> str:
        return _html.table(*self._table) + _html.sentences(f"Verdict: {self.verdict}.")

    def to_record(self) -> dict[str, Any]:
        """The table in JSON's terms."""
        rows = {name: row._asdict() for name, row in self.rows.items()}
        return {"statistics": rows, "ok": self.ok, "verdict": self.verdict}


def posterior_predictive(
    model: Any, statistics: Mapping[str, Statistic] | None = None, *, draws: int = 500
) -> PredictiveCheck:
    """Compare the data with data that the fitted model makes at the same inputs.

    Parameters
    ----------
    model : fitted estimator, or a Pipeline that ends in one
    statistics : mapping of str to callable, optional
        Functions of y and f, both (n,), that give a number; `STATISTICS` by default. Those of the
        residuals tell most: what a GP can fit it fits.
    draws : int
        Sets of responses to make, each from another draw of the posterior.

    Returns
    -------
    PredictiveCheck

    Examples
    --------
    >>> import gplc
    >>> data = gplc.datasets.make_paper("U1", n=20, random_state=0)
    >>> model = gplc.StandardGP(chains=2, draws=50, warmup=50, random_state=0)
    >>> check = posterior_predictive(model.fit(data.X, data.y), {"range": lambda y, f: np.ptp(y)})
    >>> list(check.rows), check.replicates.shape
    (['range'], (100, 20))
    """
    _check.integer("draws", draws, at_least=1, advice="200 is a good number")
    asked = STATISTICS if statistics is None else statistics
    if not asked:
        raise ValueError("statistics is empty; give functions of y and f, or None for all")
    model = as_fitted(model)
    X, y = training_data(model)
    f = np.asarray(model.regression_function(as_table(model, X)).mean())
    made = model.replicate_y(draws)
    rows = {name: _compared(of, y, f, made) for name, of in asked.items()}
    return PredictiveCheck(rows, y, f, made)


def _compared(of: Statistic, y: Array, f: Array, made: Array) -> Compared:
    observed = float(of(y, f))
    others = np.array([float(of(each, f)) for each in made])
    as_far = min(int(np.sum(others <= observed)), int(np.sum(others >= observed)))
    low, high = np.quantile(others, [0.05, 0.95])
    # One more, so that no finite number of replicates makes it impossible.
    p_value = 2.0 * (as_far + 1.0) / (len(made) + 1.0)
    return Compared(observed, float(low), float(high), min(1.0, p_value))
