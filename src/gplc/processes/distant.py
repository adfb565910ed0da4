"""Rows that this process does not hold: in a file that is read in parts, or on a cluster.

Whoever holds them is a value that does something with every *shard* of a table of numbers, its
last column y, and gives the answers in order (`Shards`). A few rows are kept here: all, if there
are few, so that whatever is decided from these does not depend on where the others are.
"""

import os
import tempfile
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gplc._files import FileError
from gplc._types import Array
from gplc.processes.rows import Rows, RowsHere, Task, added, evenly, over_blocks, shard_places

# Rows that are kept here, at most.
KEPT_ROWS = 20_000

# A function of the rows of a shard, (rows, p + 1), and of the number of its first row.
OfShard = Callable[[Array, int], Any]


class Shards(Protocol):
    """Who holds a table of numbers, the last column y."""

    n: int
    shared: bool  # others do the work

    def each(self, function: OfShard) -> Iterable[Any]:
        """What a function gives for each shard, in their order."""

    def changed(self, function: OfShard) -> "Shards":
        """The same rows with other values."""


@dataclass(frozen=True, eq=False)
class Summed:
    """A task as a function of a shard, or of every k-th of its rows from one on."""

    task: Task
    first: int = 0
    stride: int = 1

    def __call__(self, values: Array, begin: int) -> tuple[Array, ...]:
        """The sum over the blocks."""
        # From one row on of all rows, wherever this shard begins.
        rows = values[(self.first - begin) % self.stride :: self.stride]
        return over_blocks(self.task, np.ascontiguousarray(rows[:, :-1]), rows[:, -1].copy())


@dataclass(frozen=True, eq=False)
class Picked:
    """The rows of a shard that have these numbers among all rows."""

    numbers: NDArray[np.intp]

    def __call__(self, values: Array, begin: int) -> Array:
        """A copy of them."""
        first, last = np.searchsorted(self.numbers, [begin, begin + len(values)])
        return values[self.numbers[first:last] - begin]


def kept_numbers(n: int) -> NDArray[np.intp]:
    """Numbers of the rows that are kept here: all, or so many at random; always the same.

    Examples
    --------
    >>> kept_numbers(3).tolist(), len(kept_numbers(10**6))
    ([0, 1, 2], 20000)
    """
    if n <= KEPT_ROWS:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, KEPT_ROWS, replace=False, shuffle=False))


@dataclass(frozen=True, eq=False)
class DistantRows:
    """Rows that somebody else holds, and some of them.

    Examples
    --------
    >>> shards = FileShards.written([np.arange(60_000.0).reshape(-1, 2)])
    >>> rows = DistantRows.of(shards, [(0.0, 59_998.0)])
    >>> rows.n, len(rows.y)
    (30000, 20000)
    >>> [float(each) for each in rows.total(lambda X, y: (X.sum(), len(y)))]
    [899970000.0, 30000.0]
    """

    shards: Shards
    X: Array
    y: Array
    ranges: list[tuple[float, float]]
    first: int = 0
    stride: int = 1

    here = False

    @classmethod
    def of(cls, shards: Shards, ranges: list[tuple[float, float]]) -> "DistantRows":
        """All rows of a table, some of them kept."""
        kept = np.concatenate(list(shards.each(Picked(kept_numbers(shards.n)))))
        return cls(shards, np.ascontiguousarray(kept[:, :-1]), kept[:, -1].copy(), ranges)

    @property
    def n(self) -> int:
        """Rows that are summed over."""
        return len(range(self.first, self.shards.n, self.stride))

    @property
    def shared(self) -> bool:
        """Whether others do the sums."""
        return self.shards.shared

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy in another process cannot have the client of a cluster."""
        if self.shards.shared:
            if self.n == len(self.y):
                return RowsHere, (self.X, self.y)
            return RowsGone, (self.n, self.X, self.y)
        values = (self.shards, self.X, self.y, self.ranges, self.first, self.stride)
        return DistantRows, values

    def total(self, task: Task) -> tuple[Array, ...]:
        """Shard after shard, in their order, whoever has made their sums."""
        return added(
            each for each in self.shards.each(Summed(task, self.first, self.stride)) if each
        )

    def some(self, rng: np.random.Generator, most: int) -> tuple[Array, Array]:
        """From the rows that are kept here."""
        return evenly(self.X, self.y, rng, most)

    def fewer(self, rng: np.random.Generator, most: int) -> Rows:
        """From those as well, or every k-th row where they are if more are wanted."""
        if most <= len(self.y):
            return RowsHere(*map(np.ascontiguousarray, self.some(rng, most)))
        stride = -(-self.n // most)
        first = self.first + self.stride * int(rng.integers(stride))
        return replace(self, first=first, stride=self.stride * stride)


@dataclass(frozen=True, eq=False)
class RowsGone:
    """Rows that a model was fitted to and that are out of reach, but for those that were kept."""

    n: int
    X: Array
    y: Array

    here, shared = False, False

    @property
    def ranges(self) -> list[tuple[float, float]]:
        """Of the rows that were kept."""
        return RowsHere(self.X, self.y).ranges

    def total(self, task: Task) -> tuple[Array, ...]:
        """There is none."""
        raise ValueError(
            f"this fit keeps {len(self.y)} of its {self.n} rows, and sampling needs all; fit "
            "them again, with a checkpoint= to go on from"
        )

    def some(self, rng: np.random.Generator, most: int) -> tuple[Array, Array]:
        """From the rows that were kept."""
        return evenly(self.X, self.y, rng, most)

    def fewer(self, rng: np.random.Generator, most: int) -> Rows:
        """The same, as rows."""
        return RowsHere(*map(np.ascontiguousarray, self.some(rng, most)))


class FileShards:
    """A table of numbers in a file of its own, read a shard at a time.

    It is read, not mapped: so no more than a shard counts as memory of this process. The file
    goes with the last who needs it in the process that made it.
    """

    shared = False

    def __init__(self, path: Path, n: int, columns: int) -> None:
        self.path, self.n, self.columns = path, n, columns

    @classmethod
    def written(cls, parts: Iterable[Array], folder: str | None = None) -> "FileShards":
        """Parts of a table, one after the other, in a file for the time of this process."""
        handle, name = tempfile.mkstemp(prefix="gplc-rows-", dir=folder)
        n = columns = 0
        try:
            with os.fdopen(handle, "wb") as file:
                for part in parts:
                    n, columns = n + len(part), part.shape[1]
                    file.write(np.ascontiguousarray(part, dtype=np.float64).data)
        except BaseException as error:
            os.unlink(name)
            if isinstance(error, OSError) and error.errno is not None and error.filename is None:
                raise FileError(
                    f"rows cannot be kept in {Path(name).parent} ({error.strerror}) after "
                    f"{n * columns * 8 / 1e9:.1f} GB; make room, or set TMPDIR to another folder"
                ) from error
            raise
        made = cls(Path(name), n, columns)
        weakref.finalize(made, _removed, name, os.getpid())
        return made

    def _shard(self, begin: int, end: int) -> Array:
        width = 8 * self.columns
        if not self.path.exists():
            raise FileError(
                f"the rows of this fit were in {self.path}, which is gone; fit them again, with a "
                "checkpoint= to go on from"
            )
        values = np.fromfile(self.path, count=(end - begin) * self.columns, offset=begin * width)
        return values.reshape(end - begin, self.columns)

    def each(self, function: OfShard) -> Iterable[Any]:
        """One after the other."""
        return (function(self._shard(*ends), ends[0]) for ends in shard_places(self.n))

    def changed(self, function: OfShard) -> "FileShards":
        """In a file of its own."""
        return FileShards.written(self.each(function), str(self.path.parent))


def _removed(name: str, process: int) -> None:
    # A forked process has the same objects, and must leave the file alone.
    if os.getpid() == process:
        with suppress(OSError):
            os.unlink(name)
