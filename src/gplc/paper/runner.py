"""Plans the experiments, runs what is not on disk yet, and writes tables, figures and the page."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from gplc import _check
from gplc.paper import operations, page
from gplc.paper.analysis import Scores, implied_jitter, laps_from, scores_from
from gplc.paper.experiments import Fit, fits, races
from gplc.paper.jobs import CPU, Job, Result, Store, run_all
from gplc.paper.settings import CHOSEN, FULL, QUICK, VARIANTS, Settings

PARTS = ("performance", "samplers", "operations", "illustrations", "sensitivity")
# What is done if nothing is asked for: all that is in the paper.
USUAL = PARTS[:-1]

# A file by which a part without jobs is known to have been made before.
TRACES: Mapping[str, str] = {
    "operations": "operations.csv",
    "illustrations": "extreme_value.png",
}

Key = TypeVar("Key")
J = TypeVar("J", bound=Job)


def reproduce(
    out: Path = Path("out/paper"),
    only: Sequence[str] | None = None,
    sets: int | None = None,
    quick: bool = False,
    jobs: int | None = None,
    seed: int = 2012,
) -> Path:
    """Reproduce the paper's experiments and write a page about them.

    Results of finished jobs are kept in ``out/jobs``. A run that was interrupted goes on where it
    was and gives the same numbers, because seeds belong to jobs and CPU times are kept with them.
    The page shows the parts asked for and those that were finished before with the same settings.

    Parameters
    ----------
    out : Path
        Folder for everything that is written; it is made if it does not exist.
    only : sequence of str, optional
        Parts to run, of `PARTS`; all but ``"sensitivity"`` by default.
    sets : int, optional
        Training sets of each data set: 10, or 2 if `quick`, by default.
    quick : bool
        A look in under two minutes, too short to conclude anything from.
    jobs : int, optional
        Jobs at once, as in joblib; all cores by default.
    seed : int
        All random numbers follow from it.

    Returns
    -------
    Path
        The page, ``index.html`` in `out`; the same as Markdown is beside it.

    Examples
    --------
    >>> import tempfile
    >>> page = reproduce(Path(tempfile.mkdtemp()), only=["illustrations"], quick=True)
    >>> page.name, page.with_name("heteroscedasticity.png").exists()
    ('index.html', True)
    """
    settings = (QUICK if quick else FULL).changed(
        seed=_check.integer("seed", seed, at_least=0, advice="2012 is the default")
    )
    if sets is not None:
        sets = _check.integer("sets", sets, at_least=1, advice="the paper has 10")
        settings = settings.changed(sets=sets)
    if isinstance(only, str):
        only = [only]
    parts = [_check.one_of("only", part, PARTS) for part in (USUAL if only is None else only)]
    if jobs is not None and jobs == 0:
        raise ValueError("jobs must not be 0; give a number of jobs, or -1 for all cores")
    return make(Path(out), settings, parts, -1 if jobs is None else jobs)


def make(out: Path, settings: Settings, parts: Sequence[str], n_jobs: int) -> Path:
    """Run some parts with given settings and write the page."""
    store = Store(out / "jobs")
    store.folder.mkdir(parents=True, exist_ok=True)
    plans = {part: planned(part, settings) for part in PARTS}
    run_all(store, [job for part in parts for job in plans[part]], n_jobs)
    return _write(
        out, settings, [part for part in PARTS if part in parts or _done(part, out, plans)]
    )


def planned(part: str, settings: Settings) -> list[Job]:
    """The jobs that a part needs; one that computes next to nothing has none."""
    if part == "performance":
        return [*fits(settings, CHOSEN, settings.sets).values()]
    if part == "samplers":
        return [*races(settings).values()]
    if part == "sensitivity":
        return [job for its in _variant_fits(settings).values() for job in its.values()]
    return []


def _variant_fits(settings: Settings) -> dict[str, dict[tuple[str, int, str], Fit]]:
    sets = min(settings.sets, settings.sensitivity_sets)
    return {name: fits(settings, variant, sets) for name, variant in VARIANTS.items()}


def _done(part: str, out: Path, plans: Mapping[str, Sequence[Job]]) -> bool:
    """Whether a part that was not asked for has been made before."""
    if part in TRACES:
        return (out / TRACES[part]).exists()
    store = Store(out / "jobs")
    return all(store.path(job).exists() for job in plans[part])


class _Results:
    """Results from the store, with the CPU time they took."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seconds: dict[Path, float] = {}

    @property
    def seconds(self) -> float:
        """CPU time of all jobs looked at, each counted once."""
        return sum(self._seconds.values())

    def of(self, jobs: Mapping[Key, J]) -> dict[Key, tuple[J, Result]]:
        """Each job with its result."""
        found: dict[Key, tuple[J, Result]] = {}
        for key, job in jobs.items():
            result = self._store.load(job)
            if result is None:
                raise RuntimeError(
                    f"the result of {job.name} is gone from {self._store.folder}; run again"
                )
            self._seconds[self._store.path(job)] = float(result[CPU])
            found[key] = (job, result)
        return found

    def scores(self, jobs: Mapping[Any, Fit]) -> Scores:
        """Fits, gathered."""
        return scores_from(self.of(jobs))


def _write(out: Path, settings: Settings, parts: Sequence[str]) -> Path:
    results = _Results(Store(out / "jobs"))
    written = page.Page(out)
    if "performance" in parts:
        page.add_performance(written, results.scores(fits(settings, CHOSEN, settings.sets)))
    if "samplers" in parts:
        laps = laps_from(results.of(races(settings)))
        page.add_samplers(written, laps, implied_jitter(settings.seed, settings.n_train))
    if "operations" in parts:
        page.add_operations(written, operations.count(settings))
    if "illustrations" in parts:
        page.add_illustrations(written, settings.seed)
    if "sensitivity" in parts:
        scores = {name: results.scores(its) for name, its in _variant_fits(settings).items()}
        page.add_sensitivity(written, scores)
    page.add_settings(written, settings)
    return written.write(settings, results.seconds)
