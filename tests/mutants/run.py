"""Do the tests notice when the source is wrong? One mutant of mutants.toml after the other.

    python tests/mutants/run.py                   # all of them
    python tests/mutants/run.py --share 1/4       # the first quarter
    python tests/mutants/run.py "metropolis: ratio the wrong way round"

A mutant is one change of one file of a copy of the checkout, which itself is never touched. It is
caught if one of the tests it names fails there, survives if all pass, and is broken if the text
it changes is not in the file exactly once, or if pytest could not run. Equivalent ones, which no
test can notice, say why and are not run. Exit status 1 if any survived or was broken.
"""

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("mutants.toml")
COMPILED = "src/gplc/_compiled"
COPIED = ("src", "tests", "docs", "examples", "benchmarks")
# One that makes a loop endless is noticed too.
MOST_SECONDS = 600.0

Mutant = dict[str, Any]


def mutants() -> list[Mutant]:
    """All of the list: name, file, old, new, tests, and perhaps why it is equivalent."""
    return tomllib.loads(LIST.read_text(encoding="utf-8"))["mutant"]


def changed(mutant: Mutant) -> str:
    """The text of its file with the change made."""
    text = (ROOT / mutant["file"]).read_text(encoding="utf-8")
    if text.count(mutant["old"]) != 1 or mutant["old"] == mutant["new"]:
        raise ValueError(
            f"mutant {mutant['name']!r}: old must be in {mutant['file']} once, and is there "
            f"{text.count(mutant['old'])} times, and new must differ; mend it in {LIST.name}"
        )
    return text.replace(mutant["old"], mutant["new"])


def dependents(module: str, folder: Path) -> set[str]:
    """Names of a compiled module and of all that import it, at first or at second hand."""
    imports = {
        path.stem: {
            node.module.rpartition(".")[2]
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom) and node.module
        }
        for path in folder.glob("*.py")
    }
    found = {module}
    while more := {name for name, used in imports.items() if used & found} - found:
        found |= more
    return found


def forget(copy: Path, file: str) -> None:
    """Delete compiled code that a change of `file` makes stale.

    Numba looks at a function's own file only, not at those of the functions it calls.
    """
    if file.startswith(COMPILED):
        for module in dependents(Path(file).stem, copy / COMPILED):
            for cached in (copy / COMPILED / "__pycache__").glob(f"{module}.*.nb?"):
                cached.unlink()


def tried(mutant: Mutant) -> str:
    """Caught, survived or broken."""
    try:
        text = changed(mutant)
    except ValueError as error:
        return f"broken: {error}"
    with tempfile.TemporaryDirectory(prefix="gplc-mutant-") as folder:
        copy = Path(folder)
        # Times of files are kept, and with them the code that Numba has compiled.
        for name in COPIED:
            shutil.copytree(ROOT / name, copy / name)
        shutil.copy2(ROOT / "pyproject.toml", copy)
        (copy / mutant["file"]).write_text(text, encoding="utf-8")
        forget(copy, mutant["file"])
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        try:
            done = subprocess.run(
                [*command, *mutant["tests"]],
                cwd=copy,
                env=os.environ | {"PYTHONPATH": str(copy / "src")},
                capture_output=True,
                text=True,
                timeout=MOST_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return "caught"
    if done.returncode in (0, 1):
        return "survived" if done.returncode == 0 else "caught"
    last = "; ".join(done.stdout.strip().splitlines()[-3:])
    return f"broken: pytest ended with {done.returncode}: {last}"


def chosen(names: list[str], share: str) -> list[Mutant]:
    """Those with the names given, or the share k of n, in the order of the list."""
    everything = mutants()
    if unknown := set(names) - {each["name"] for each in everything}:
        raise SystemExit(f"there is no mutant {sorted(unknown)}; the names are in {LIST.name}")
    if names:
        return [each for each in everything if each["name"] in names]
    k, n = (int(number) for number in share.split("/"))
    return everything[len(everything) * (k - 1) // n : len(everything) * k // n]


def main() -> int:
    parser = argparse.ArgumentParser(description="mutation testing of gplc")
    parser.add_argument("names", nargs="*", help="mutants to try; all by default")
    parser.add_argument("--share", default="1/1", metavar="K/N", help="the k-th of n parts")
    arguments = parser.parse_args()
    results: dict[str, str] = {}
    for mutant in chosen(arguments.names, arguments.share):
        began = time.monotonic()
        result = "equivalent" if "equivalent" in mutant else tried(mutant)
        results[mutant["name"]] = result
        print(f"{result:10} {time.monotonic() - began:5.0f} s  {mutant['name']}", flush=True)
    counts = {kind: sum(r.startswith(kind) for r in results.values()) for kind in KINDS}
    print("\n" + "\n".join(f"{kind:10} {count:4}" for kind, count in counts.items()))
    return int(counts["survived"] + counts["broken"] > 0)


KINDS = ("caught", "survived", "broken", "equivalent")

if __name__ == "__main__":
    sys.exit(main())
