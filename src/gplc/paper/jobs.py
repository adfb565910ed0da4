"""Jobs that are done once: each result is kept on disk, under a name that says all of it."""

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed

from gplc import __version__, _files
from gplc._types import Array

Result = Mapping[str, Array]

KIND = "result of a paper job"
CPU = "cpu_seconds"  # added to every result: what the whole job took


class Job(Protocol):
    """Something to compute, as a frozen dataclass of all that decides the answer."""

    @property
    def name(self) -> str:
        """A short name, for file names and people."""

    def scheme(self) -> str:
        """The updates of the chain with their settings, in full."""

    def run(self) -> Result:
        """The answer: numbers and arrays by name. Seeds belong to the job."""


def facts(job: Any) -> dict[str, Any]:
    """All that decides the answer of a job, in JSON's terms.

    The scheme is spelled out: a name such as ``"default"`` may come to mean something else.
    """
    return {
        "job": type(job).__name__,
        **asdict(job),
        "scheme in full": job.scheme(),
        "version": __version__,
    }


@dataclass(frozen=True)
class Store:
    """Results in a folder, one file for each job.

    Parameters
    ----------
    folder : Path
        It has to exist.
    """

    folder: Path

    def path(self, job: Job) -> Path:
        """The file for a job; other settings are another file."""
        text = json.dumps(facts(job), sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()
        return self.folder / f"{job.name}-{digest[:16]}.nc"

    def load(self, job: Job) -> Result | None:
        """The result of a job, or None if it has to be done (again)."""
        path = self.path(job)
        if not path.exists():
            return None
        try:
            return _files.read(path, KIND).arrays
        except _files.FileError:
            return None  # damaged: the job can be done again, and gives the same numbers

    def save(self, job: Job, result: Result) -> None:
        """Keep a result, whole or not at all."""
        import xarray

        dataset = xarray.Dataset(
            {
                name: ([f"{name} {axis}" for axis in range(np.ndim(values))], values)
                for name, values in result.items()
            },
            attrs={"facts": json.dumps(facts(job), sort_keys=True)},
        )
        _files.write(self.path(job), dataset, KIND)


def _do(store: Store, job: Job) -> str:
    began = time.process_time()
    result = job.run()
    store.save(job, {**result, CPU: np.asarray(time.process_time() - began)})
    return job.name


def run_all(store: Store, jobs: Sequence[Job], n_jobs: int) -> int:
    """Do all jobs that have no result yet, in parallel, and say how it goes.

    Returns
    -------
    int
        How many had to be done.
    """
    waiting = [job for job in jobs if store.load(job) is None]
    if not waiting:
        return 0
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    with _progress(len(jobs), len(jobs) - len(waiting)) as tell:
        for name in parallel(delayed(_do)(store, job) for job in waiting):
            tell(name)
    return len(waiting)


@contextmanager
def _progress(total: int, done: int) -> Iterator[Any]:
    """A bar on a terminal; elsewhere a line now and then."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    if not console.is_terminal:
        count = done
        step = max(1, total // 20)

        def tell(name: str) -> None:
            nonlocal count
            count += 1
            if count % step == 0 or count == total:
                console.print(f"{count} of {total} jobs done; last: {name}")

        yield tell
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("jobs", total=total, completed=done)
        yield lambda name: progress.update(task, advance=1, description=name)
