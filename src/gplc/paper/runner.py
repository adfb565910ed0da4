"""Plans the experiments, runs what is not on disk yet, and writes tables, figures and the page."""

from collections.abc import Sequence
from pathlib import Path

PARTS = ("performance", "samplers", "operations", "illustrations", "sensitivity")


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
    raise NotImplementedError
