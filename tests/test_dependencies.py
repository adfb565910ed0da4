"""Only the hard dependencies are needed to fit and predict; what else is missing is told."""

import subprocess
import sys

import pytest

OPTIONAL = (
    "matplotlib",
    "jinja2",
    "typer",
    "rich",
    "markdown_it",
    "openpyxl",
    "pyarrow",
    "polars",
)

# None there means that a module is not installed.
WITHOUT = f"import sys; sys.modules.update(dict.fromkeys({OPTIONAL!r}))\n"

FIT = """
import sys, warnings, gplc
warnings.simplefilter("ignore")
data = gplc.datasets.load_motorcycle()
model = gplc.LatentCovariateGP(chains=1, draws=5, warmup=5, random_state=0, progress=True)
model.fit(data.X, data.y)
model.predict_interval(data.X[:3])
model.predict_dist(data.X[:3]).to_frame()
print(model.diagnostics_.level)
model.save(sys.argv[1])
print(len(gplc.load(sys.argv[1]).predict(data.X[:3])))
gplc.metrics.nlpd(model.predict_dist(data.X), data.y)
"""


def run(code, *arguments):
    command = [sys.executable, "-c", WITHOUT + code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_fit_predict_and_files_without_extras(tmp_path):
    done = run(FIT, tmp_path / "a.nc")
    assert done.stdout.splitlines() == ["do not use", "3"], done.stderr
    assert "iterations, R-hat" in done.stderr


@pytest.mark.parametrize("room", ["plots", "report"])
def test_rooms_say_which_extra_they_need(room):
    done = run(f"import gplc; gplc.{room}")
    assert done.stderr.splitlines()[-1] == (
        f"ModuleNotFoundError: gplc.{room} needs matplotlib, which is not installed; "
        f"pip install 'gplc[{room}]'"
    )


def test_the_command_line_says_which_extra_it_needs():
    done = run("import gplc.__main__ as command; command.main()")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "gplc: the command line needs typer, which is not installed; pip install 'gplc[cli]'\n"
    )
