"""Priors as people read them: quantiles in the units of the data."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gplc import _html
from gplc._units import Units
from gplc.models import Model

SHARES = (0.05, 0.5, 0.95)


@dataclass(frozen=True)
class PriorTable:
    """Where the priors have their mass. Prints as a table.

    Attributes
    ----------
    rows : dict of str to (low, median, high)
        5%, 50% and 95% points of each hyperparameter, in the units of the data.
    families : dict of str to str
        What each is.
    units : dict of str to str
        What its unit is called; empty if it has none.
    """

    rows: dict[str, tuple[float, float, float]]
    families: dict[str, str]
    units: dict[str, str]

    @property
    def _table(self) -> tuple[list[str], list[list[str]]]:
        rows = [
            [name, self.families[name], *(f"{end:.3g}" for end in ends), self.units[name] or "-"]
            for name, ends in self.rows.items()
        ]
        return ["", "prior", "5%", "50%", "95%", "unit"], rows

    def __str__(self) -> str:
        head, rows = self._table
        width = max(len(row[0]) for row in rows)
        return "\n".join(
            f"{name:{width}}  {family:>13} {low:>9} {middle:>9} {high:>9}  {unit}"
            for name, family, low, middle, high, unit in [head, *rows]
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return _html.table(*self._table)

    def to_frame(self) -> Any:
        """The table as a pandas data frame, labelled by hyperparameter."""
        import pandas as pd

        head, rows = self._table
        return pd.DataFrame([row[1:] for row in rows], columns=head[1:], index=list(self.rows))


def prior_table(model: Model, units: Units) -> PriorTable:
    """The priors of a model, in some units."""
    ends = np.array([model.priors.quantile(share) for share in SHARES]) * np.array(units.factors)
    low, middle, high = ends.tolist()
    return PriorTable(
        dict(zip(units.labels, zip(low, middle, high, strict=True), strict=True)),
        dict(zip(units.labels, model.priors.families(), strict=True)),
        dict(zip(units.labels, units.units, strict=True)),
    )
