"""What is odd about data, in sentences: it may be meant, and it may be a mistake."""

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from gplc._types import Array

FEW_ROWS = 10
# Rounded measurements agree by chance now and then; a larger share was copied.
MOST_COPIES = 0.1
# A row is far outside if an input is beyond the data by more than this part of their range.
FAR = 0.1


def of_counters(inputs: "pd.DataFrame") -> list[str]:
    """Columns that count the rows, from 0 or 1, in the order of the file.

    Examples
    --------
    >>> import pandas as pd
    >>> of_counters(pd.DataFrame({"x": [3.0, 1.0, 2.0], "id": [1.0, 2.0, 3.0]}))
    ["'id' counts the rows: if it is no input, leave it out with --exclude id"]
    """
    if inputs.shape[1] == 1:
        return []  # without it there would be no input
    return [
        f"{name!r} counts the rows: if it is no input, leave it out with --exclude "
        f"{shlex.quote(str(name))}"
        for name, values in inputs.select_dtypes("number").items()
        if values.iloc[0] in (0, 1) and (values.diff().iloc[1:] == 1).all()
    ]


def of_data(table: "pd.DataFrame", target: str) -> list[str]:
    """Oddities of a table that a model is to be fitted to.

    Examples
    --------
    >>> import pandas as pd
    >>> of_data(pd.DataFrame({"x": [1.0] * 12, "y": range(12)}), "y")
    ["'x' is 1 in every row: it tells nothing"]
    """
    found = []
    if len(table) < FEW_ROWS:
        found.append(f"{len(table)} rows are very few: what comes out is mostly the prior")
    for name, values in table.items():
        if values.nunique() == 1:
            tells = "there is nothing to predict" if name == target else "it tells nothing"
            only = values.iloc[0]
            shown = f"{only:g}" if isinstance(only, float | int) else repr(str(only))
            found.append(f"{name!r} is {shown} in every row: {tells}")
    copies = int(table.duplicated().sum())
    if copies > MOST_COPIES * len(table):
        found.append(
            f"{copies} of {len(table)} rows are exact copies of others: if these are not separate "
            "measurements, remove them, or the noise will be taken for smaller than it is"
        )
    return found


class Outside:
    """Counts new rows that are far outside the data, as they come.

    Parameters
    ----------
    X : (n, p) array
        Inputs of the data.
    names : list of str
        Of the inputs.

    Examples
    --------
    >>> import numpy as np
    >>> outside = Outside(np.array([[0.0], [1.0]]), ["x"])
    >>> outside.look(np.array([[0.5], [1.05], [3.0]]))
    >>> outside.told(rows=3)
    ["1 of 3 rows are far outside the data ('x' from 0 to 1): there predictions say little"]
    """

    def __init__(self, X: "Array", names: list[str]) -> None:
        self.lowest, self.highest = X.min(axis=0), X.max(axis=0)
        self.names = names
        self.count = 0
        self.inputs: set[int] = set()

    def look(self, rows: "Array") -> None:
        """Look at some more rows."""
        reach = FAR * (self.highest - self.lowest)
        far = (rows < self.lowest - reach) | (rows > self.highest + reach)
        self.count += int(far.any(axis=1).sum())
        self.inputs.update(far.any(axis=0).nonzero()[0].tolist())

    def told(self, rows: int) -> list[str]:
        """What was found, of so many rows."""
        if not self.count:
            return []
        where = ", ".join(
            f"{self.names[k]!r} from {self.lowest[k]:g} to {self.highest[k]:g}"
            for k in sorted(self.inputs)
        )
        return [
            f"{self.count} of {rows} rows are far outside the data ({where}): there predictions "
            "say little"
        ]
