"""Plans the experiments, runs what is not on disk yet, and writes tables, figures and the page."""

from collections.abc import Sequence
from pathlib import Path

from gplc.paper.experiments import fits, races
from gplc.paper.jobs import Job, Store, run_all
from gplc.paper.settings import CHOSEN, FULL, QUICK, VARIANTS, Settings

PARTS = ("performance", "samplers", "operations", "illustrations", "sensitivity")


def _jobs(part: str, settings: Settings) -> list[Job]:
    """The jobs a part needs; a part that computes next to nothing has none."""
    if part == "performance":
        return list(fits(settings, CHOSEN, settings.sets).values())
    if part == "samplers":
        return list(races(settings).values())
    if part == "sensitivity":
        sets = min(settings.sets, settings.sensitivity_sets)
        return [
            job for variant in VARIANTS.values() for job in fits(settings, variant, sets).values()
        ]
    return []


def reproduce(
    out: Path = Path("out/paper"),
    only: Sequence[str] | None = None,
    sets: int | None = None,
    quick: bool = False,
    jobs: int | None = None,
    seed: int = 2012,
) -> Path:
    """Reproduce the paper's experiments and write a page about them.

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
        The page, ``index.html`` in `out`.
    """
    out = Path(out)
    settings = (QUICK if quick else FULL).changed(seed=seed)
    if sets is not None:
        settings = settings.changed(sets=sets)
    parts = PARTS[:-1] if only is None else only
    (out / "jobs").mkdir(parents=True, exist_ok=True)
    store = Store(out / "jobs")
    run_all(store, [job for part in parts for job in _jobs(part, settings)], jobs or -1)
    return out / "index.html"
