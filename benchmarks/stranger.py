"""A stranger's path, timed: fresh environments, from ``pip install`` to an open report.

Three paths, each in an environment of its own: the library with its hard dependencies alone (fit
and predict in Python), the command line on the motorcycle data, and the command line on a file as
people have them, with decimal commas, a category and gaps. Results are printed and written to
``benchmarks/results/stranger.json``, with the load of the machine. Nothing is cached but pip's
downloads. ``python benchmarks/stranger.py own_file`` walks one of them.
"""

import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "stranger.json"

LIBRARY = """
import gplc, sys, warnings
warnings.simplefilter("ignore")
data = gplc.datasets.load_motorcycle()
model = gplc.StandardGP(random_state=0).fit(data.X, data.y)
print(model.predict_interval([[10.0], [30.0]]).round(1).tolist())
print(model.diagnostics_.level)
missing = [name for name in ("matplotlib", "typer", "rich", "jinja2") if name in sys.modules]
assert missing == [], missing
"""


class Walk:
    """An environment and a folder, with a clock that runs from the beginning."""

    def __init__(self, folder: Path, what: str) -> None:
        self.began = time.perf_counter()
        self.folder = folder
        self.steps: dict[str, float] = {}
        subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
        self.bin = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
        self.run("install", self.bin / "python", "-m", "pip", "install", "-q", what)

    def run(self, step: str, *command: Any, fine: tuple[int, ...] = (0,)) -> str:
        """Run a command, add its time, and return what it prints; `fine` are its exit codes."""
        began = time.perf_counter()
        # Compiled code of earlier runs is not there for a stranger.
        own = {"NUMBA_CACHE_DIR": str(self.folder / "numba"), "PYTHONPATH": ""}
        done = subprocess.run(
            list(map(str, command)),
            cwd=self.folder,
            capture_output=True,
            text=True,
            env=os.environ | own,
        )
        self.steps[step] = round(time.perf_counter() - began, 1)
        if done.returncode not in fine:
            raise RuntimeError(f"{step}: {done.stderr[-2000:]}")
        return done.stdout

    def told(self, **more: Any) -> dict[str, Any]:
        """What is kept of it."""
        whole = round(time.perf_counter() - self.began, 1)
        return {"seconds": whole, "steps": self.steps, **more}


def load() -> list[float]:
    """How busy the machine is, where it says so: running processes, over 1, 5 and 15 minutes."""
    return list(os.getloadavg()) if hasattr(os, "getloadavg") else []


def library(folder: Path) -> dict[str, Any]:
    """Hard dependencies alone: fit and predict."""
    path = Walk(folder, str(ROOT))
    *_, level = path.run("fit and predict", path.bin / "python", "-c", LIBRARY).split("\n")[:-1]
    return path.told(level=level)


def motorcycle(folder: Path) -> dict[str, Any]:
    """The demonstration, up to its report."""
    path = Walk(folder, f"{ROOT}[cli]")
    path.run("demo", path.bin / "gplc", "demo", "--out", "out")
    asked = path.bin / "gplc", "diagnose", "out/motorcycle.fit.nc", "--json"
    record = json.loads(path.run("diagnose", *asked, fine=(0, 3)))  # 3: do not use this fit
    report = folder / "out" / "motorcycle.html"
    return path.told(level=record["level"], report_bytes=report.stat().st_size)


def own_file(folder: Path) -> dict[str, Any]:
    """A file with decimal commas, a category and gaps."""
    path = Walk(folder, f"{ROOT}[cli]")
    write_messy(folder / "costs.csv")
    fit = [path.bin / "gplc", "fit", "costs.csv", "-y", "cost", "--decimal", ","]
    fit += ["--drop-missing", "--model", "gplv", "--out", "costs.fit.nc", "--json"]
    record = json.loads(path.run("fit", *fit))
    path.run("report", path.bin / "gplc", "report", "costs.fit.nc", "--out", "costs.html")
    return path.told(level=record["level"], rows=record["rows"], inputs=record["features"])


def write_messy(name: Path) -> None:
    """120 rows: a cost whose spread grows with age, by region, with decimal commas and gaps."""
    rng = random.Random(1)
    lines = ["age;region;cost"]
    for number in range(120):
        age, region = rng.uniform(20.0, 80.0), rng.choice(["north", "south"])
        spread = 2.0 + 0.2 * age
        cost = 30.0 + age + (15.0 if region == "south" else 0.0) + rng.gauss(0.0, spread)
        shown = [f"{age:.1f}".replace(".", ","), region, f"{cost:.2f}".replace(".", ",")]
        if number % 15 == 7:
            shown[0] = ""
        lines.append(";".join(shown))
    name.write_text("\n".join(lines) + "\n", encoding="latin-1")


def main() -> None:
    """Walk the paths that are asked for, all by default; what others have found is kept."""
    walks = {walk.__name__: walk for walk in (library, motorcycle, own_file)}
    machine = {
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }
    for name in sys.argv[1:] or walks:
        before = load()
        with tempfile.TemporaryDirectory() as folder:
            found = walks[name](Path(folder))
        found |= {"load before": before, "load after": load()} | machine
        print(name, json.dumps(found), flush=True)
        kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(kept | {name: found}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
