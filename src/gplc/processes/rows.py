"""Rows of data as something that answers sums: whoever holds them, and however many there are.

A *task* is a function of a block of rows that gives a tuple of arrays; its `total` over all rows
is the sum of these over the blocks. Nothing of the size of the data is ever made.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gplc._types import Array

# What a task makes of the rows of X, and of y.
Task = Callable[[Array, Array], tuple[Array | float, ...]]

# Rows of a block: what is computed for them stays in the processor's cache.
BLOCK_ROWS = 1024


class Rows(Protocol):
    """Rows of X and y, somewhere."""

    @property
    def n(self) -> int:
        """How many there are."""

    def total(self, task: Task) -> tuple[Array, ...]:
        """The sum of what a task gives for each block of rows."""

    def some(self, rng: np.random.Generator, most: int) -> tuple[Array, Array]:
        """At most so many rows, chosen evenly."""


@dataclass(frozen=True, eq=False)
class RowsHere:
    """Rows in the memory of this process.

    Examples
    --------
    >>> rows = RowsHere(np.ones((3000, 1)), np.arange(3000.0))
    >>> [float(each) for each in rows.total(lambda X, y: (X.sum(), y.sum()))]
    [3000.0, 4498500.0]
    """

    X: Array
    y: Array

    @property
    def n(self) -> int:
        """The length of y."""
        return self.y.size

    def total(self, task: Task) -> tuple[Array, ...]:
        """Block after block, always in the same order."""
        sums: list[Array] = []
        for begin in range(0, self.n, BLOCK_ROWS):
            block = slice(begin, begin + BLOCK_ROWS)
            found = task(self.X[block], self.y[block])
            if not sums:
                sums = [np.array(each, dtype=np.float64) for each in found]
            else:
                for each, more in zip(sums, found, strict=True):
                    each += more
        return tuple(sums)

    def some(self, rng: np.random.Generator, most: int) -> tuple[Array, Array]:
        """Every k-th row, from a random one on."""
        stride = -(-self.n // most)
        first = int(rng.integers(stride))
        return self.X[first::stride], self.y[first::stride]


@dataclass(frozen=True, eq=False)
class CountedRows:
    """Some rows that stand for many: each counts several times.

    Examples
    --------
    >>> rows = CountedRows(RowsHere(np.ones((3, 1)), np.arange(3.0)), 10.0)
    >>> [float(each) for each in rows.total(lambda X, y: (y.sum(),))]
    [30.0]
    """

    rows: Rows
    times: float

    @property
    def n(self) -> int:
        """Of those they stand for."""
        return round(self.rows.n * self.times)

    def total(self, task: Task) -> tuple[Array, ...]:
        """The sum, as often as each row counts."""
        return tuple(np.asarray(self.times * each) for each in self.rows.total(task))

    def some(self, rng: np.random.Generator, most: int) -> tuple[Array, Array]:
        """Of the rows that there are."""
        return self.rows.some(rng, most)
