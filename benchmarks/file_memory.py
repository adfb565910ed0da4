"""Peak memory of `gplc fit` on a table that is read in parts, beside the size of the file.

    python benchmarks/file_memory.py [--rows 2000000] [--out FILE.json]

STD, one input, one chain of 20 + 20 iterations; Parquet and CSV. Each fit is a process, whose
`ru_maxrss` is taken; that of a fit of 2,000 rows shows what Python and the libraries need.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

RUN = """
import resource
from gplc.cli import main
try:
    main()
except SystemExit as ended:
    code = ended.code
print("PEAK", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, code)
"""


def one(path: Path) -> dict[str, Any]:
    """Fit a table in a process of its own."""
    command = [sys.executable, "-c", RUN, "fit", str(path), "-y", "y", "-m", "std", "--jobs", "1"]
    command += ["--chains", "1", "--draws", "20", "--warmup", "20", "--force"]
    command += ["--out", str(path.with_suffix(".fit.nc"))]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    told = next((line for line in done.stdout.splitlines() if line.startswith("PEAK")), None)
    if told is None:
        raise RuntimeError(f"{path.name}: {done.stderr.strip().splitlines()[-1:]}")
    return {
        "file": path.suffix[1:],
        "file_mb": round(path.stat().st_size / 1e6, 1),
        "peak_mb": round(int(told.split()[1]) * 1024 / 1e6),
        "exit_code": told.split()[2],
        "cpu_seconds": round(after.ru_utime - before.ru_utime, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--out")
    settings = parser.parse_args()
    rng = np.random.default_rng(0)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for rows in (2000, settings.rows):
            x = rng.uniform(0.0, 5.0, rows)
            frame = pd.DataFrame({"x": x, "y": np.sin(2.0 * x) + 0.3 * rng.standard_normal(rows)})
            frame.to_parquet(Path(folder) / "rows.parquet")
            frame.to_csv(Path(folder) / "rows.csv", index=False)
            del frame, x
            for ending in ("parquet", "csv"):
                results.append({"rows": rows, **one(Path(folder) / f"rows.{ending}")})
                print(results[-1], flush=True)
    if settings.out:
        Path(settings.out).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
