"""The compiled sweeps with every index checked: compiled code itself does not look.

Compiling it all once more takes half a minute, so this is for the long run only.
"""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import numpy as np
from gplc.chains import run_chain
from gplc.models import MODELS, Update
from gplc.samplers import SliceSweep

rng = np.random.default_rng(0)
for n in (1, 2, 5, 17, 40):
    X, y = rng.normal(size=(n, 1)), rng.normal(size=n)
    for model in (cls(X, y) for cls in MODELS.values()):
        for scheme in model.schemes:
            run_chain(model, scheme, seed=1, draws=3, warmup=3)
        # Intervals so narrow that stepping out uses all of its steps, and so wide that
        # shrinking takes long.
        for part in {"w", "z sites"} & set(model.parts):
            for width in (1e-3, 1e3, 1e12):
                for max_steps, max_shrinks in ((100, 200), (1, 1), (7, 3)):
                    sampler = SliceSweep(width, max_steps, max_shrinks)
                    run_chain(model, [Update(part, sampler)], seed=2, draws=5, warmup=0)
print("no index out of bounds")
"""


@pytest.mark.skipif(os.environ.get("GPLC_HEAVY") != "1", reason="needs GPLC_HEAVY=1")
def test_compiled_code_stays_inside_its_arrays(tmp_path):
    settings = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "no index out of bounds" in result.stdout
