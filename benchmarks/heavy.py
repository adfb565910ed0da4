"""The heavy checks, part by part, and what they found: `make test-heavy`.

    python benchmarks/heavy.py                       # all parts, two processes
    python benchmarks/heavy.py --processes 1 simulation "geweke gplc"

Each part is a run of pytest with GPLC_HEAVY=1. benchmarks/results/heavy.json keeps, for each part
that was run last, the number of tests, failures, CPU seconds, the largest memory of a process,
and the figures that its tests told (smallest p-values, numbers of inputs and files).
"""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "heavy.json"
GEWEKE = "tests/statistical/test_geweke.py"
# name: what pytest is given
PARTS = {
    "geweke gplc": [GEWEKE, "-k", "joint_distribution and gplc-default"],
    "geweke gplv": [GEWEKE, "-k", "joint_distribution and gplv-default"],
    "geweke std": [GEWEKE, "-k", "joint_distribution and std-default"],
    "simulation": ["tests/statistical/test_simulation.py"],
    "geweke others": [GEWEKE, "-k", "joint_distribution and not -default"],
    "geweke broken twins": [GEWEKE, "-k", "not joint_distribution"],
    "geweke kernels": ["tests/kernels/test_statistics.py"],
    "quadrature": [
        "tests/statistical/test_quadrature.py",
        "tests/statistical/test_bounds.py",
        "tests/statistical/test_motorcycle.py",
    ],
    "fuzz": ["tests/fuzz"],
    "stops": ["tests/chains/test_resuming.py"],
    "files": ["tests/chains/test_checkpoints.py", "tests/chains/test_files.py"],
    "faults": [
        "tests/chains",
        "-k",
        "not test_resuming and not test_checkpoints and not test_files",
    ],
}


def run(arguments: list[str], processes: int) -> dict[str, Any]:
    """One part: its counts and figures."""
    several = ["-n", str(processes), "--dist", "worksteal"] if processes > 1 else []
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *several]
        process = subprocess.Popen(
            [*command, *arguments], cwd=ROOT, env=os.environ | {"GPLC_HEAVY": "1"}
        )
        _, process.returncode, usage = os.wait4(process.pid, 0)
        cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    failed = [
        case.get("name", "?")
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    return {
        "tests": len(cases),
        "skipped": sum(case.find("skipped") is not None for case in cases),
        "failed": failed,
        # Of this process and of those that it has waited for.
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime),
        "largest_mb": usage.ru_maxrss // 1024,
        "seconds": round(time.monotonic() - began),
        "figures": figures(cases),
    }


def figures(cases: list[ElementTree.Element]) -> dict[str, Any]:
    """What tests told: all of it, or of p-values of many tests the smallest."""
    told = {
        f"{case.get('name')}: {told.get('name')}": told.get("value", "")
        for case in cases
        for told in case.iter("property")
        if not str(told.get("name")).startswith("hypothesis-statistics")
    }
    smallest = {k: float(v) for k, v in told.items() if k.endswith(": smallest p")}
    rest = {k: value(v) for k, v in told.items() if k not in smallest}
    if smallest:
        worst = min(smallest, key=smallest.__getitem__)
        rest |= {"smallest p": smallest[worst], "of": worst.partition(": ")[0]}
        rest["tests with a p-value"] = len(smallest)
    return rest


def value(text: str) -> Any:
    """A number or table if it is one."""
    try:
        return ast.literal_eval(re.sub(r"np\.float64\(([^)]*)\)", r"\1", text))
    except (ValueError, SyntaxError):
        return text


def main() -> int:
    parser = argparse.ArgumentParser(description="heavy checks of gplc")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--processes", type=int, default=2, help="of pytest at once")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"there is no part {sorted(unknown)}; there are {', '.join(PARTS)}")
    found: dict[str, Any] = {}
    for part in arguments.parts or PARTS:
        found[part] = run(PARTS[part], arguments.processes)
        print(part, json.dumps(found[part] | {"figures": ...}, default=str), flush=True)
        before = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
        merged = before | {part: found[part]}
        ordered = {name: merged[name] for name in PARTS if name in merged}
        RESULTS.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
    return int(any(part["failed"] or not part["tests"] for part in found.values()))


if __name__ == "__main__":
    sys.exit(main())
