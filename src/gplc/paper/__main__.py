"""``python -m gplc.paper``: reproduce the paper."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from gplc.paper import PARTS, reproduce


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse, call, print."""
    parser = argparse.ArgumentParser(
        prog="python -m gplc.paper",
        description="Every table and figure of Wang and Neal (2012), with our numbers beside "
        "theirs. Finished jobs are kept: an interrupted run goes on where it was.",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=PARTS,
        metavar="PART",
        help=f"parts to run: {', '.join(PARTS)}; all but the last by default",
    )
    parser.add_argument("--sets", type=int, help="training sets of each data set (10)")
    parser.add_argument("--quick", action="store_true", help="a look, in under two minutes")
    parser.add_argument(
        "--out", type=Path, default=Path("out/paper"), help="folder for results (%(default)s)"
    )
    parser.add_argument("--jobs", type=int, help="jobs at once (all cores)")
    parser.add_argument("--seed", type=int, default=2012, help="all random numbers (%(default)s)")
    given = parser.parse_args(arguments)
    page = reproduce(given.out, given.only, given.sets, given.quick, given.jobs, given.seed)
    print(f"The page is {page}.")


if __name__ == "__main__":
    main()
