"""Do the tests notice when the source is wrong? One mutant of mutants.toml after the other.

    python tests/mutants/run.py                   # all of them
    python tests/mutants/run.py --share 1/4       # the first quarter
    python tests/mutants/run.py "metropolis: ratio the wrong way round"

A mutant is one change of one file of a copy of the checkout, which itself is never touched. First
the tests are run on the unchanged copy, once, and must pass there; this also compiles what Numba
compiles, so that a mutant compiles only what it changes. A mutant is caught if one of the tests it
names fails, survives if all pass, and is broken if the text it changes is not in the file exactly
once, or if pytest could not run. Equivalent ones, which no test can notice, say why and are not
run. Exit status 1 if any survived or was broken. What was found is kept in
benchmarks/results/mutants.json, mutant by mutant.
"""

import argparse
import ast
import json
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
RESULTS = ROOT / "benchmarks" / "results" / "mutants.json"
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


def stale(copy: Path, file: str) -> list[Path]:
    """Compiled code that a change of `file` makes stale.

    Numba looks at a function's own file only, not at those of the functions it calls.
    """
    if not file.startswith(COMPILED):
        return []
    folder = copy / COMPILED
    names = sorted(dependents(Path(file).stem, folder))
    return [path for name in names for path in (folder / "__pycache__").glob(f"{name}.*.nb?")]


def copied(folder: Path) -> None:
    """A copy of what the tests need; times of files are kept."""
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name)
    for name in ("pyproject.toml", "conftest.py"):
        shutil.copy2(ROOT / name, folder)


def tested(copy: Path, tests: list[str], seconds: float | None) -> tuple[int, str]:
    """Exit status of pytest on these tests, and its last lines."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            # A mutant must not leave bytecode that the next one could take for its own.
            env=os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return 1, f"not done after {seconds:.0f} s"
    return done.returncode, "; ".join(done.stdout.strip().splitlines()[-3:])


def tried(mutant: Mutant, copy: Path) -> str:
    """Caught, survived or broken; the copy is afterwards as it was."""
    try:
        text = changed(mutant)
    except ValueError as error:
        return f"broken: {error}"
    file = copy / mutant["file"]
    with tempfile.TemporaryDirectory(prefix="gplc-compiled-") as aside:
        for path in stale(copy, mutant["file"]):
            shutil.move(path, aside)
        file.write_text(text, encoding="utf-8")
        status, last = tested(copy, mutant["tests"], MOST_SECONDS)
        for path in stale(copy, mutant["file"]):
            path.unlink()
        for path in Path(aside).iterdir():
            shutil.move(path, copy / COMPILED / "__pycache__")
        shutil.copy2(ROOT / mutant["file"], file)
    if status in (0, 1):
        return "survived" if status == 0 else "caught"
    return f"broken: pytest ended with {status}: {last}"


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
    wanted = chosen(arguments.names, arguments.share)
    with tempfile.TemporaryDirectory(prefix="gplc-mutants-") as folder:
        copy = Path(folder)
        copied(copy)
        began = time.monotonic()
        tests = sorted({test for each in wanted for test in each["tests"]})
        status, last = tested(copy, tests, None)
        print(f"{time.monotonic() - began:.0f} s, unchanged: {last}", flush=True)
        if status:
            return status
        for mutant in wanted:
            began = time.monotonic()
            result = "equivalent" if "equivalent" in mutant else tried(mutant, copy)
            results[mutant["name"]] = result
            print(f"{result:10} {time.monotonic() - began:5.0f} s  {mutant['name']}", flush=True)
            kept(results)
    counts = {kind: sum(r.startswith(kind) for r in results.values()) for kind in KINDS}
    print("\n" + "\n".join(f"{kind:10} {count:4}" for kind, count in counts.items()))
    return int(counts["survived"] + counts["broken"] > 0)


def kept(results: dict[str, str]) -> None:
    """Put results into the file, beside those of other mutants that are still in the list."""
    before = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    names = [each["name"] for each in mutants()]
    now = {name: (before | results)[name] for name in names if name in before | results}
    RESULTS.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")


KINDS = ("caught", "survived", "broken", "equivalent")

if __name__ == "__main__":
    sys.exit(main())
