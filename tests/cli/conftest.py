"""Small tables and a small fit that the tests of commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from gplc.cli import app
from gplc.datasets import make_paper

SHORT = ["--chains", "2", "--draws", "14", "--warmup", "8", "--jobs", "1"]

Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    """Run a command in this process, as a shell would: text in, text and a code out."""

    def call(*arguments: Any, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(app, [str(each) for each in arguments], input=stdin)

    return call


@pytest.fixture
def one_line() -> Callable[..., str]:
    """What a command that failed said on standard error: one line, and no traceback."""

    def said(result: Result, code: int = 2) -> str:
        assert result.exit_code == code, result.output
        lines = result.stderr.splitlines()
        told = [line for line in lines if not line.startswith("Warning: ")]
        assert len(told) == 1, result.stderr
        assert "Traceback" not in result.output
        return told[0]

    return said


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with data.csv (x, y), wide.csv (a, b, y, name) and new.csv (x and a label)."""
    path = tmp_path_factory.mktemp("cli")
    data = make_paper("U1", n=18, random_state=0)
    rows = np.column_stack([data.X, data.y])
    np.savetxt(path / "data.csv", rows, delimiter=",", header="x,y", comments="", fmt="%.8g")
    wide = "".join(
        f"{a:.4f};{b:.4f};{y:.4f};row {k}\n"
        for k, (a, b, y) in enumerate(zip(data.X[:, 0], data.X[::-1, 0], data.y, strict=True))
    )
    (path / "wide.csv").write_text("a;b;y;name\n" + wide)
    (path / "new.csv").write_text("label,x\nfirst,0.25\nsecond,0.75\n")
    return path


@pytest.fixture(scope="session")
def fitted(folder: Path) -> Path:
    """A fit of GPLC to data.csv."""
    out = folder / "session.fit.nc"
    arguments = ["fit", str(folder / "data.csv"), "-y", "y", "-o", str(out), *SHORT]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return out


@pytest.fixture(scope="session")
def fitted_wide(folder: Path) -> Path:
    """A fit of GPLV to two inputs."""
    out = folder / "wide.fit.nc"
    arguments = ["fit", str(folder / "wide.csv"), "-y", "y", "-x", "a,b", "-m", "gplv"]
    result = CliRunner().invoke(app, [*arguments, "-o", str(out), *SHORT])
    assert result.exit_code == 0, result.output
    return out
