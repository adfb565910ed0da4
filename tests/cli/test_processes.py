"""The installed command in processes of its own, as a shell starts it."""

import os
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

import gplc

GPLC = Path(sysconfig.get_path("scripts")) / "gplc"
SHORT = "--chains 2 --draws 20 --warmup 10 --jobs 1 --model std"

if sys.platform == "win32":
    pytest.skip("these tests speak to a POSIX shell", allow_module_level=True)


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a line in a shell that finds gplc."""
    places = f"{GPLC.parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["sh", "-c", line],
        cwd=folder,
        env=os.environ | {"PATH": places},
        capture_output=True,
        text=True,
    )


def test_from_a_table_to_predictions_through_pipes(tmp_path):
    (tmp_path / "data.csv").write_text("x,y\n" + "".join(f"{k},{k * k % 37}\n" for k in range(20)))
    done = shell(
        f"cat data.csv | gplc fit - -y y {SHORT} -o fit.nc --json > fit.json && "
        "head -3 data.csv | gplc predict fit.nc - --interval 0.5 > predicted.csv",
        tmp_path,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    lines = (tmp_path / "predicted.csv").read_text().splitlines()
    assert lines[0] == "x,y,mean,sd,lower,upper"
    assert len(lines) == 3


def test_a_file_of_one_gigabyte(tmp_path):
    with open(tmp_path / "huge.csv", "wb") as file:
        file.truncate(1_000_000_000)
    done = shell("gplc fit huge.csv -y y", tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        "gplc: huge.csv, line 1: this is no text table (it has zero bytes or a line without end); "
        "give CSV, or a name that ends in .parquet or .xlsx, or its --encoding\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["huge.csv"]


def test_a_closed_pipe_is_no_error(tmp_path):
    model = gplc.StandardGP(chains=1, draws=10, warmup=10, random_state=0)
    model.fit([[0.0], [1.0]], [0.0, 1.0]).save(tmp_path / "fit.nc")
    (tmp_path / "new.csv").write_text("x\n" + "0.5\n" * 20_000)
    done = shell("gplc predict fit.nc new.csv | head -1", tmp_path)
    assert done.stdout == "x,mean,sd,lower,upper\n"
    assert done.stderr == ""


def test_python_m_gplc(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "gplc", "--version"], capture_output=True, text=True
    )
    assert done.stdout.strip() == gplc.__version__


def test_interrupting_keeps_the_draws(tmp_path):
    (tmp_path / "data.csv").write_text("x,y\n" + "".join(f"{k},{k * k % 37}\n" for k in range(20)))
    arguments = "fit data.csv -y y -m std --draws 1000000 --warmup 5 --chains 2 --jobs 1"
    process = subprocess.Popen(
        [GPLC, *arguments.split(), "--checkpoint", "run.ckpt", "-o", "fit.nc"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    ends = time.monotonic() + 120
    while not (tmp_path / "run.ckpt").exists() and time.monotonic() < ends:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    said, complained = process.communicate(timeout=120)
    assert process.returncode == 130, complained
    assert "Interrupted after" in said
    assert complained == "gplc: interrupted; `gplc resume fit.nc` goes on\n"
    assert gplc.load(tmp_path / "fit.nc").diagnostics_.n_draws > 0


@pytest.mark.parametrize(
    ("command", "module", "imported"),
    [
        ("predict FIT NEW --parts --out OUT.csv", "matplotlib", False),
        ("diagnose FIT", "matplotlib", False),
        # What it judges convergence with, arviz-stats, may import matplotlib for its own settings.
        (f"fit DATA -y y {SHORT} --out OUT.nc", "matplotlib.pyplot", False),
        ("plot FIT --out OUT.png", "matplotlib.pyplot", True),  # the broken twin
    ],
)
def test_only_commands_that_draw_import_matplotlib(
    folder, fitted, tmp_path, command, module, imported
):
    places = {"FIT": fitted, "NEW": folder / "new.csv", "DATA": folder / "data.csv"}
    arguments = [
        str(places.get(word, word.replace("OUT", str(tmp_path / "out"))))
        for word in command.split()
    ]
    program = (
        "import sys, gplc\nfrom gplc.cli import app\n"
        "app(sys.argv[1:], standalone_mode=False)\n"
        f"print({module!r} in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == str(imported), done.stderr
