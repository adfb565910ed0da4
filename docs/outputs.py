"""Run the code of pages and put what it prints, and draws, where the pages show it.

    make outputs                              # all pages below, a quarter of an hour
    python docs/outputs.py docs/gallery.md    # one page

A block of text right after one of Python or shell is replaced by what that prints. A picture
``![...](images/NAME.png)`` after a block of Python, with no other block between, is replaced by
the figure that is open then. Shell blocks run in a folder with the data of ``gplc demo``.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md",
    "docs/tutorial.md",
    "docs/diagnostics.md",
    "docs/gallery.md",
)
WIDTH = 98
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"!\[[^\]]*\]\(((?:docs/)?images/[\w-]+\.png)\)")


def filled(page: str, folder: Path, commands: Path) -> str:
    """A page with its outputs.

    Parameters
    ----------
    page : str
    folder : Path
        Where the page is: paths of its pictures begin there.
    commands : Path
        Where shell commands run.
    """
    namespace: dict[str, Any] = {"__name__": "documentation"}
    pieces, end, printed = [], 0, None
    drawn: int | None = None  # where the block of Python ends whose pictures are due
    for block in BLOCK.finditer(page):
        between = page[end : block.start()]
        language, body = block.groups()
        if drawn is not None and language != "text":
            _save_pictures(page[drawn : block.start()], folder)
            drawn = None
        if language == "text" and printed is not None and not between.strip():
            body = printed
        pieces += [between, f"```{language}\n{body}```"]
        end = block.end()
        printed = None
        if language == "python":
            drawn = end
            printed = _wrapped(run_python(body, namespace))
        elif language == "sh":
            printed = _wrapped(run_shell(body, commands))
    if drawn is not None:
        _save_pictures(page[drawn:], folder)
    return "".join(pieces) + page[end:]


def run_python(code: str, namespace: dict[str, Any]) -> str:
    """What code prints; fits say nothing on the way."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(code, "documentation", "exec"), namespace)
    return out.getvalue()


def run_shell(code: str, folder: Path) -> str:
    """What commands print on standard output; a fit that is not fine is no error."""
    printed = ""
    for line in code.splitlines():
        arguments = shlex.split(line)[1:]
        done = subprocess.run(
            [sys.executable, "-m", "gplc", *arguments],
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
        )
        if done.returncode not in (0, 3):
            raise RuntimeError(f"{line} ended with {done.returncode}")
        printed += done.stdout
    return printed


def _wrapped(text: str) -> str:
    lines = [
        textwrap.fill(line, WIDTH, subsequent_indent="    ")
        if len(line) > WIDTH
        else line.rstrip()
        for line in text.rstrip().splitlines()
    ]
    return "".join(f"{line}\n" for line in lines)


def _save_pictures(text: str, folder: Path) -> None:
    import matplotlib.pyplot as plt

    for name in PICTURE.findall(text):
        if plt.get_fignums():
            plt.savefig(folder / name, dpi=110)
    plt.close("all")


def main(names: list[str]) -> None:
    """Fill pages, and draw the picture of the README."""
    import matplotlib as mpl

    import gplc
    from gplc.cli.studies import write_demo_data

    mpl.use("Agg")
    if not names:
        picture = "docs/images/motorcycle.png"
        example = [sys.executable, "examples/motorcycle.py", picture]
        subprocess.run(example, check=True, cwd=ROOT)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # what the code writes is gone in the end
        Path("examples").symlink_to(ROOT / "examples", target_is_directory=True)
        for data in ("motorcycle", "lidar"):
            loaded = getattr(gplc.datasets, f"load_{data}")()
            write_demo_data(loaded, str(Path(folder) / f"{data}.csv"))
        for name in names or PAGES:
            path = ROOT / name
            print(name, flush=True)
            page = filled(path.read_text(encoding="utf-8"), path.parent, Path(folder))
            path.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
