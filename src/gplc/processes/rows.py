"""Rows of data as something that answers sums: whoever holds them, and however many there are.

A *task* is a function of a block of rows that gives a tuple of arrays; its `total` over all rows
is the sum of these over the blocks. Nothing of the size of the data is ever made.

Blocks are added up within *shards*, and then these. Where a shard begins depends on the number of
rows alone, so that a sum is the same to the last bit whoever makes it, and however many they are.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gplc._types import Array

# What a task makes of the rows of X, and of y.
Task = Callable[[Array, Array], tuple[Array | float, ...]]

# Rows of a block: what is computed for them stays in the processor's cache.
BLOCK_ROWS = 1024
# Up to so many rows there is one shard.
ONE_SHARD = 16 * BLOCK_ROWS


class Rows(Protocol):
    """Rows of X and y, somewhere."""

    @property
    def X(self) -> Array:  # noqa: N802 - the name it has everywhere
        """Inputs that are kept here, of all or some of the rows: for pictures and checks."""

    @property
    def y(self) -> Array:
        """The responses of these."""

    @property
    def n(self) -> int:
        """How many there are."""

    @property
    def here(self) -> bool:
        """Whether this process holds them all."""

    @property
    def shared(self) -> bool:
        """Whether others do the sums, so that chains are threads which share these."""

    @property
    def ranges(self) -> list[tuple[float, float]]:
        """Smallest and largest value of every input."""

    def total(self, task: Task) -> tuple[Array, ...]:
        """The sum of what a task gives for each block of rows."""

    def some(self, rng: np.random.Generator, most: int) -> tuple[Array, Array]:
        """At most so many rows, chosen evenly."""

    def fewer(self, rng: np.random.Generator, most: int) -> "Rows":
        """About so many of the rows, chosen evenly, as rows."""


def shard_rows(n: int) -> int:
    """Rows of a shard: whole blocks, so that there are 8 shards of 10^5 rows, 64 of 10^8.

    Examples
    --------
    >>> [-(-n // shard_rows(n)) for n in (1, 16_384, 16_385, 10**5, 10**6, 10**8)]
    [1, 1, 5, 8, 16, 64]
    """
    if n <= ONE_SHARD:
        return max(n, 1)
    wanted = math.ceil(8.0 * 2.0 ** (math.log10(n) - 5.0) - 1e-9)
    return BLOCK_ROWS * -(-n // (wanted * BLOCK_ROWS))


def shard_places(n: int) -> list[tuple[int, int]]:
    """Where each shard begins and ends.

    Examples
    --------
    >>> shard_places(20_000)[-1]
    (16384, 20000)
    """
    step = shard_rows(n)
    return [(begin, min(begin + step, n)) for begin in range(0, n, step)]


def added(found: Iterable[Sequence[Array | float]]) -> tuple[Array, ...]:
    """The sums of tuples of arrays, in their order."""
    sums: list[Array] = []
    for each in found:
        if not sums:
            sums = [np.array(entry, dtype=np.float64) for entry in each]
        else:
            for entry, more in zip(sums, each, strict=True):
                entry += more
    return tuple(sums)


def over_blocks(task: Task, X: Array, y: Array) -> tuple[Array, ...]:
    """The sum over the blocks of one shard."""
    return added(
        task(X[begin : begin + BLOCK_ROWS], y[begin : begin + BLOCK_ROWS])
        for begin in range(0, len(y), BLOCK_ROWS)
    )


def evenly(X: Array, y: Array, rng: np.random.Generator, most: int) -> tuple[Array, Array]:
    """Every k-th row, from a random one on."""
    stride = -(-len(y) // most)
    first = int(rng.integers(stride))
    return X[first::stride], y[first::stride]


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

    here, shared = True, False

    @property
    def n(self) -> int:
        """The length of y."""
        return self.y.size

    @property
    def ranges(self) -> list[tuple[float, float]]:
        """Smallest and largest value of every input."""
        lowest, highest = self.X.min(axis=0).tolist(), self.X.max(axis=0).tolist()
        return list(zip(lowest, highest, strict=True))

    def total(self, task: Task) -> tuple[Array, ...]:
        """Block after block and shard after shard, always in the same order."""
        return added(
            over_blocks(task, self.X[begin:end], self.y[begin:end])
            for begin, end in shard_places(self.n)
        )

    def some(self, rng: np.random.Generator, most: int) -> tuple[Array, Array]:
        """Every k-th row, from a random one on."""
        return evenly(self.X, self.y, rng, most)

    def fewer(self, rng: np.random.Generator, most: int) -> Rows:
        """The same, as rows."""
        return RowsHere(*map(np.ascontiguousarray, self.some(rng, most)))


@dataclass(frozen=True, eq=False)
class CountedRows(RowsHere):
    """Some rows that stand for many: each counts several times.

    Examples
    --------
    >>> rows = CountedRows(np.ones((3, 1)), np.arange(3.0), times=10.0)
    >>> [float(each) for each in rows.total(lambda X, y: (y.sum(),))]
    [30.0]
    """

    times: float = 1.0

    here = False

    @property
    def n(self) -> int:
        """Of those they stand for."""
        return round(self.y.size * self.times)

    def total(self, task: Task) -> tuple[Array, ...]:
        """The sum, as often as each row counts."""
        once = RowsHere(self.X, self.y).total(task)
        return tuple(np.asarray(self.times * each) for each in once)
