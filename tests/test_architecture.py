"""Imports point down the list of rooms, and nobody touches NumPy's global random state.

The checks read the source with `ast`, so an import counts wherever it stands: inside a function or
under ``TYPE_CHECKING`` too.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "gplc"

# Top first. A module may import its own room and any room below it.
ROOMS = (
    "cli",
    "report",
    "paper",
    "comparison",
    "scoringbench",
    "skpro",
    "estimators",
    "plots",
    "checks",
    "metrics",
    "fast",
    "sampling",
    "storage",
    "diagnostics",
    "loo",
    "posterior",
    "transforms",
    "predictive",
    "components",
    "draws",
    "chains",
    "models",
    "samplers",
    "processes",
    "means",
    "kernels",
    "priors",
    "datasets",
    "_compiled",
)

# Rooms that may import less than everything below them.
NARROWER = {
    "models": {"samplers", "processes", "means", "kernels", "priors", "_compiled"},
    "samplers": {"_compiled"},  # a sampler knows nothing of Gaussian processes
}

# The public face, src/gplc/__init__.py: imports anything, is imported by nobody.
FACE = "gplc"
# Helpers src/gplc/_name.py: imported by everybody, import only each other and _compiled.
LEAF = "a helper module"
# `python -m gplc` is the command line.
SAME_ROOM = {"__main__": "cli"}

# What numpy.random offers apart from its global state.
STATELESS_RANDOM = {
    "BitGenerator",
    "Generator",
    "MT19937",
    "PCG64",
    "PCG64DXSM",
    "Philox",
    "RandomState",
    "SFC64",
    "SeedSequence",
    "default_rng",
}


def room_of(module: str) -> str:
    """Room of a dotted module name, for example gplc.models.standard -> models."""
    parts = module.split(".")
    if len(parts) == 1:
        return FACE
    name = SAME_ROOM.get(parts[1], parts[1])
    if name in ROOMS:
        return name
    if len(parts) == 2 and name.startswith("_") and not name.startswith("__"):
        return LEAF
    return f"unknown room {name!r}"


def is_known(room: str) -> bool:
    return room in ROOMS or room in (FACE, LEAF)


def allowed(importer: str, imported: str) -> bool:
    """Whether a module of room `importer` may import one of room `imported`."""
    if importer == FACE:
        return is_known(imported)
    if imported == FACE:
        return False
    if imported in (LEAF, importer):
        return True
    if importer == LEAF:
        return imported == "_compiled"
    if importer in NARROWER:
        return imported in NARROWER[importer]
    return imported in ROOMS[ROOMS.index(importer) :]


def imported_modules(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and dotted name of every module imported by its absolute name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            if node.module != "gplc":
                yield node.lineno, node.module
                continue
            for alias in node.names:
                if alias.name == "__version__":
                    continue
                # `from gplc import models` imports a room, `from gplc import StandardGP` the face.
                is_room = is_known(room_of(f"gplc.{alias.name}"))
                yield node.lineno, f"gplc.{alias.name}" if is_room else "gplc"


def import_problems(module: str, source: str) -> list[str]:
    """Everything wrong with the imports of one module."""
    room = room_of(module)
    if not is_known(room):
        return [f"{module}: {room}; give it a place in ROOMS"]
    tree = ast.parse(source)
    problems = [
        f"{module}:{node.lineno}: relative import; write the full name"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level > 0
    ]
    for line, name in imported_modules(tree):
        if name.split(".")[0] == "gplc" and not allowed(room, room_of(name)):
            problems.append(f"{module}:{line}: {room} must not import {name} ({room_of(name)})")
    return problems


def dotted(node: ast.expr) -> str:
    """Return a.b.c for an attribute chain that starts at a name, else ''."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(names)])


def global_random_problems(module: str, source: str) -> list[str]:
    """Every use of a function of numpy.random that reads or sets its global state."""
    tree = ast.parse(source)
    meaning = {}  # local name -> what it stands for
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                local = alias.asname or alias.name.split(".")[0]
                meaning[local] = alias.name if alias.asname else local
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                meaning[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                found.append((node.lineno, f"{node.module}.{alias.name}"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            first, _, rest = dotted(node).partition(".")
            found.append((node.lineno, f"{meaning.get(first, '')}.{rest}"))
    return [
        f"{module}:{line}: {name}; pass a numpy.random.Generator instead"
        for line, name in found
        if name.startswith("numpy.random.") and name.split(".")[2] not in STATELESS_RANDOM
    ]


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}


# --- the package ----------------------------------------------------------------------------


def test_the_package_was_found():
    assert {"gplc", "gplc.datasets", "gplc.datasets._paper"} <= set(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down(module):
    assert import_problems(module, MODULES[module].read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("module", MODULES)
def test_no_global_random_state(module):
    assert global_random_problems(module, MODULES[module].read_text(encoding="utf-8")) == []


# --- the checker: broken twins --------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("gplc.models.standard", "import gplc.chains"),
        ("gplc.models.standard", "import numpy, gplc.estimators as e"),
        ("gplc.models.standard", "from gplc import draws"),
        ("gplc.models", "from gplc.datasets import make_paper"),
        ("gplc.metrics", "def late():\n    from gplc.plots import band"),
        ("gplc.metrics", "if TYPE_CHECKING:\n    from gplc.estimators import StandardGP"),
        ("gplc.samplers.slice", "from gplc.kernels import KERNELS"),
        ("gplc.samplers.slice", "from gplc.priors import Normal"),
        ("gplc.priors", "import gplc.kernels"),
        ("gplc._compiled.sweep", "from gplc.datasets import make_paper"),
        ("gplc._check", "from gplc.priors import Normal"),
        ("gplc._check", "import gplc"),
        ("gplc.chains", "import gplc"),
        ("gplc.chains", "from gplc import StandardGP"),
        ("gplc.chains", "from gplc import *"),
        ("gplc.cli", "import gplc.attic"),
        ("gplc", "from gplc.attic import junk"),
        ("gplc.models.standard", "from .base import Model"),
        ("gplc.models.standard", "from . import base"),
        ("gplc.models.standard", "from ..chains import run"),
        ("gplc", "from .models import Model"),
        ("gplc.attic", ""),
        ("gplc.attic.box", "import numpy"),
        ("gplc._attic.box", ""),
        ("gplc.__attic__", ""),
    ],
)
def test_a_bad_import_is_caught(module, source):
    assert len(import_problems(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("gplc", "from gplc.cli import app\nfrom gplc._check import check\nimport gplc.models"),
        ("gplc.__main__", "from gplc.cli import app\nfrom gplc import __version__"),
        ("gplc.cli", "from gplc import datasets, metrics, _check"),
        ("gplc.models.standard", "from gplc.models.base import Model\nimport gplc.samplers.base"),
        ("gplc.models.standard", "from gplc._compiled.covariance import gram"),
        ("gplc.samplers.slice", "import gplc._compiled\nfrom gplc._check import check"),
        ("gplc.kernels", "from gplc.priors import Normal\nfrom gplc._registry import Registry"),
        ("gplc._linalg", "from gplc._check import check\nfrom gplc._compiled import cholesky"),
        ("gplc.priors", "import numpy as np\nfrom gplcother import thing\nimport gplc_tools.x"),
    ],
)
def test_a_good_import_is_not(module, source):
    assert import_problems(module, source) == []


@pytest.mark.parametrize("importer", ROOMS)
def test_no_room_may_import_any_room_above(importer):
    for above in ROOMS[: ROOMS.index(importer)]:
        assert import_problems(f"gplc.{importer}", f"from gplc.{above} import thing")


@pytest.mark.parametrize(
    "source",
    [
        "import numpy as np\nnp.random.seed(0)",
        "import numpy as np\nx = np.random.normal(size=3)",
        "import numpy\nnumpy.random.shuffle(x)",
        "import numpy.random\nnumpy.random.rand()",
        "import numpy.random as npr\nnpr.rand()",
        "from numpy import random\nrandom.rand()",
        "from numpy import random as r\ndraw = r.uniform",
        "from numpy.random import seed",
        "from numpy.random import *",
    ],
)
def test_global_random_state_is_caught(source):
    assert len(global_random_problems("gplc.fake", source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "import numpy as np\nrng = np.random.default_rng(0)\nrng.normal()",
        "import numpy as np\ndef draw(rng: np.random.Generator): return rng.random.seed",
        "from numpy.random import SeedSequence\nSeedSequence(0).spawn(2)",
        "import numpy.random as npr\nnpr.Generator(npr.PCG64(0))",
        "x.random.seed(0)",
    ],
)
def test_generators_are_not(source):
    assert global_random_problems("gplc.fake", source) == []
