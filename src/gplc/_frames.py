"""Answers as data frames, of the kind that the question came in."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from gplc import _html
from gplc._types import Array

SUMMARY = ("mean", "sd", "lower", "upper")
# Rows that a notebook shows.
SHOWN_ROWS = 5


class Rows(NamedTuple):
    """Whose rows an answer is about: the library of their table, and their labels.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = Rows.of(pd.DataFrame({"x": [1.0, 2.0]}, index=["a", "b"]))
    >>> rows.frame({"mean": np.array([5.0, 9.0])})
       mean
    a   5.0
    b   9.0
    >>> Rows.of([[1.0], [2.0]])
    Rows(library='pandas', labels=None)
    """

    library: str = "pandas"
    labels: Any = None  # a pandas Index

    @classmethod
    def of(cls, table: Any) -> "Rows":
        """Those of whatever was given as X."""
        library = type(table).__module__.partition(".")[0]
        if library == "polars":
            return cls("polars")
        return cls(labels=table.index if library == "pandas" else None)

    def chosen(self, numbers: Any) -> "Rows":
        """Some of the rows, by whatever chooses among them in NumPy."""
        if self.labels is None:
            return self
        places = np.arange(len(self.labels))[numbers]
        return self._replace(labels=self.labels[np.atleast_1d(places)])

    def frame(self, columns: Mapping[str, Array]) -> Any:
        """A table of these rows."""
        if self.library == "polars":
            import polars

            return polars.DataFrame(dict(columns))
        import pandas as pd

        return pd.DataFrame(dict(columns), index=self.labels)


class Tidy(ABC):
    """A distribution for each row, as a table and in a notebook."""

    _rows: Rows

    @abstractmethod
    def __getitem__(self, index: Any) -> Self:
        """The distributions of some rows."""

    @abstractmethod
    def summary(self, coverage: float = 0.9) -> tuple[Array, ...]:
        """Mean, SD, and both ends of an interval."""

    @abstractmethod
    def quantile(self, q: ArrayLike) -> Array:
        """Quantiles."""

    def to_frame(self, coverage: float = 0.9, quantiles: Sequence[float] = ()) -> Any:
        """Mean, SD, interval and quantiles as a table, with a row for each row.

        Parameters
        ----------
        coverage : float
            Probability of the interval, in (0, 1).
        quantiles : sequence of float
            More quantiles, in columns called q0.05, ...

        Returns
        -------
        pandas or polars data frame
            As X was, with its index; pandas by default.

        Examples
        --------
        >>> from gplc import Predictive
        >>> dist = Predictive.from_arrays([[0.0, 3.0]], [[1.0, 0.5]])
        >>> dist.to_frame(quantiles=[0.5]).round(3)
           mean     sd  lower  upper  q0.5
        0   1.5  1.696 -1.282  3.641   2.0
        """
        columns = dict(zip(SUMMARY, self.summary(coverage), strict=True))
        if len(quantiles):
            found = self.quantile(quantiles).T
            columns |= {f"q{q:g}": each for q, each in zip(quantiles, found, strict=True)}
        return self._rows.frame(columns)

    def _repr_html_(self) -> str:
        few = self[:SHOWN_ROWS]
        values = np.column_stack(few.summary()).tolist()
        rows = [[number, *row] for number, row in enumerate(values)]
        return _html.table(["row", *SUMMARY], rows) + _html.sentences(repr(self))
