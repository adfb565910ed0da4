"""Rows on the workers of a Dask cluster: shards stay there, sums come back.

Every shard is a future: if its worker dies, the scheduler makes it again from what it came from,
on another one. Which worker has which shard changes nothing in the sums.
"""

import asyncio
import functools
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from gplc._files import optional
from gplc._types import Array
from gplc._version import __version__
from gplc.processes.distant import OfShard
from gplc.processes.rows import shard_rows

# A task that was lost with its worker so often, in a row, is given up.
WORKER_TRIES = 5


def distributed() -> Any:
    """The module, or an error that says how to get it."""
    return optional("distributed", "a Dask cluster", "dask")


def client_at(scheduler: str | None) -> Any | None:
    """A client of the scheduler at an address, or the current one; None if there is none."""
    dask = distributed()
    if scheduler is None:
        try:
            return dask.get_client()
        except ValueError:
            return None
    try:
        return dask.get_client(scheduler, timeout=10)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"there is no Dask scheduler at {scheduler!r} ({type(error).__name__}); check the "
            "address, or start one: dask scheduler"
        ) from error


def check_versions(client: Any) -> None:
    """Refuse workers that have another version of gplc, or none."""
    # By its name, for a worker without gplc could not read a function of ours.
    found = client.run(eval, "__import__('gplc').__version__", on_error="return")
    if not found:
        raise ConnectionError(
            f"the scheduler {client.scheduler.address} has no workers; start some: dask worker"
        )
    for address, version in sorted(found.items()):
        if isinstance(version, Exception):
            raise ValueError(
                f"the Dask worker {address} has no gplc ({version}); install gplc {__version__} "
                "there"
            )
        if version != __version__:
            raise ValueError(_other_version(address, version, __version__))


def _other_version(address: str, version: str, wanted: str) -> str:
    return (
        f"the Dask worker {address} has gplc {version}, and this process {wanted}; install the "
        "same version on all"
    )


@dataclass(frozen=True, eq=False)
class OnWorker:
    """What a worker does with a shard: one thread of BLAS, and the right version of gplc."""

    function: OfShard
    begin: int
    version: str
    process: int  # of the client

    def __call__(self, values: Array) -> Any:
        """What the function gives for the shard."""
        if self.version != __version__:  # it came later than the others
            raise ValueError(_other_version("that has joined", __version__, self.version))
        if os.getpid() != self.process:
            _one_thread()
        return self.function(values, self.begin)


@functools.cache
def _one_thread() -> None:
    """Hold BLAS to one thread for the life of a worker: more would change rounding."""
    threadpool_limits(limits=1, user_api="blas")


class ClusterShards:
    """A table of numbers whose shards are on the workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
    n : int
        Rows.
    parts : list of Future
        The shards, in order.
    """

    shared = True

    def __init__(self, client: Any, n: int, parts: Sequence[Any]) -> None:
        self._client, self.n, self._parts = client, n, list(parts)

    @classmethod
    def of(cls, client: Any, table: Any) -> "ClusterShards":
        """What `table_of` gives, sent once to where it stays."""
        n = int(table.shape[0])
        parts = client.compute(table.to_delayed().ravel().tolist(), optimize_graph=True)
        return cls(client, n, parts)

    def _begins(self) -> list[int]:
        return list(range(0, self.n, shard_rows(self.n)))

    def _submitted(self, function: OfShard) -> list[Any]:
        pairs = zip(self._parts, self._begins(), strict=True)
        return [
            self._client.submit(
                OnWorker(function, begin, __version__, os.getpid()), part, pure=False, retries=0
            )
            for part, begin in pairs
        ]

    def each(self, function: OfShard) -> Iterable[Any]:
        """At once on all workers; the same again if some are lost."""
        return self._tried(lambda: self._client.gather(self._submitted(function)))

    def _tried(self, ask: Callable[[], Any]) -> Any:
        dask = distributed()
        for left in reversed(range(WORKER_TRIES)):
            try:
                return ask()
            except dask.KilledWorker as error:
                if left:
                    # Shards that are given up as well are asked for again.
                    self._client.retry(self._parts)
                    continue
                raise ChildProcessError(
                    f"Dask workers were lost {WORKER_TRIES} times in a row at the same task, "
                    "perhaps for want of memory; give them more, or more workers"
                ) from error
            except (CancelledError, asyncio.CancelledError, dask.CancelledError, OSError) as error:
                raise ConnectionError(
                    f"the Dask scheduler was lost ({type(error).__name__}); start it again, and "
                    "call fit as before: with a checkpoint= it goes on from there"
                ) from error
        raise AssertionError("the last of the tries returns or raises")

    def changed(self, function: OfShard) -> "ClusterShards":
        """With other values, on the same workers; the old ones can be forgotten there."""
        made = ClusterShards(self._client, self.n, self._submitted(function))
        distributed().wait(made._parts)
        return made


def table_of(X: Any, y: Any) -> tuple[Any, list[int]]:
    """Dask's X and y as one array (n, p + 1) in shards, and the rows of each chunk of X.

    Data frames, chunks whose sizes are not known, and chunks of y that are others than those of X
    are all taken.
    """
    import dask.array as da

    inputs, response = _as_array(X), _as_array(y)
    if inputs.ndim != 2 or response.ndim not in (1, 2):
        raise ValueError(
            f"X must have rows and columns and y one number for each row, got X of "
            f"{inputs.ndim} and y of {response.ndim} dimensions; reshape them"
        )
    response = response[:, None] if response.ndim == 1 else response
    if inputs.shape[0] != response.shape[0] or response.shape[1] != 1:
        raise ValueError(
            f"X and y must have the same rows, got X {inputs.shape} and y {response.shape}; give "
            "one number of y for each row of X"
        )
    both = [inputs.astype(np.float64), response.astype(np.float64)]
    table = da.concatenate(both, axis=1).rechunk((shard_rows(inputs.shape[0]), -1))
    return table, [int(rows) for rows in inputs.chunks[0]]


def _as_array(values: Any) -> Any:
    """A Dask array whose chunks are known."""
    import dask.array as da

    if hasattr(values, "to_dask_array"):
        _refuse_levels(values)
        return values.to_dask_array(lengths=True)
    if not isinstance(values, da.Array):
        return da.from_array(np.asarray(values, dtype=np.float64))
    if any(np.isnan(rows) for sizes in values.chunks for rows in sizes):
        # On a copy, for it changes what it is asked of.
        copied = da.Array(values.dask, values.name, values.chunks, dtype=values.dtype)
        return copied.compute_chunk_sizes()
    return values


def _refuse_levels(frame: Any) -> None:
    """Refuse columns of text, categories and dates, by their names."""
    kinds = frame.dtypes.items() if hasattr(frame, "columns") else [(frame.name, frame.dtype)]
    for name, kind in kinds:
        if getattr(kind, "kind", "O") not in "biuf":
            raise ValueError(
                f"column {str(name)!r} of a Dask data frame holds {kind}, and rows in a file or "
                "on a cluster are numbers; turn it into numbers, or leave it out"
            )


def is_dask(values: Any) -> bool:
    """Whether a value is a collection of Dask; nothing is imported to find out."""
    return hasattr(values, "__dask_graph__") and hasattr(values, "dask")
