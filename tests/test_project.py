"""The checkout itself: nothing tied to one machine, nothing huge, and the promised commands."""

import importlib.metadata
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

import gplc

ROOT = Path(__file__).parents[1]
MAX_BYTES = 1_000_000
# Directories in which paths of one particular machine begin. Neither this pattern nor the examples
# below may be written out as a path, because this file is checked as well.
MACHINE_PATH = re.compile(r"(^|[^A-Za-z0-9_.])/(tmp|work|root|home)/[A-Za-z0-9_.]")


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    """Files known to git that exist in the working tree."""
    git = shutil.which("git")
    if git is None:
        pytest.skip("git is not installed, so tracked files cannot be listed")

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [git, *arguments], cwd=ROOT, capture_output=True, text=True, encoding="utf-8"
        )
        if done.returncode != 0:
            pytest.skip(f"not a git checkout: {done.stderr.strip()}")
        return done.stdout

    if Path(run("rev-parse", "--show-toplevel").strip()).resolve() != ROOT.resolve():
        pytest.skip("not a git checkout of its own: the files belong to an enclosing repository")
    paths = [ROOT / name for name in run("ls-files", "-z").split("\0") if name]
    if not paths:
        pytest.skip("git tracks no file yet")
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def machine_paths(text: str) -> list[str]:
    """Lines of `text` that contain a path of one particular machine."""
    return [line for line in text.splitlines() if MACHINE_PATH.search(line)]


def test_no_machine_paths(tracked):
    found = {}
    for path in tracked:
        try:
            text = path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            continue  # not a text file
        if lines := machine_paths(text):
            found[str(path.relative_to(ROOT))] = lines
    assert found == {}


def test_machine_paths_are_recognised():
    slash = "/"
    for directory in ("tmp", "work", "root", "home"):
        path = f"{slash}{directory}{slash}somebody"
        for line in (path, f"see {path}/data.csv", f'open("{path}")', f"first\n{path}\nlast"):
            assert len(machine_paths(line)) == 1
    for harmless in ("src/work/x", "https://example.org/home/x", "./tmp/x", "/usr/bin/env", "a/b"):
        assert machine_paths(harmless) == []


def test_no_large_files(tracked):
    sizes = {str(path.relative_to(ROOT)): path.stat().st_size for path in tracked}
    assert {name: size for name, size in sizes.items() if size > MAX_BYTES} == {}


def test_ci_runs_the_tests():
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert any(re.match(r"\s*(exec\s+)?make test\b", line) for line in lines)


@pytest.mark.parametrize("command", ["make demo", "make test"])
def test_readme_gives_the_two_commands(command):
    assert command in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def project() -> dict:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return settings["project"]


def read_yaml(name: str) -> dict:
    yaml = pytest.importorskip("yaml", reason="comes with dask and the documentation's tools")
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_citation_is_of_this_version(project):
    citation = read_yaml("CITATION.cff")
    assert citation["version"] == gplc.__version__
    assert citation["license"] == project["license"]
    assert citation["references"][0]["url"] == project["urls"]["Paper"]


def test_conda_recipe_wants_what_pip_does(project):
    recipe = read_yaml("conda/recipe.yaml")
    assert recipe["context"]["version"] == gplc.__version__
    # Conda has no extras: its package is the one with the command line.
    extras = project["optional-dependencies"]
    more = [each for name in ("plots", "report", "cli", "paper") for each in extras[name]]
    asked = [*project["dependencies"], *(each for each in more if not each.startswith("gplc["))]
    wanted = {each.replace(">=", " >=") for each in asked}
    listed = {
        each.replace("matplotlib-base", "matplotlib") for each in recipe["requirements"]["run"]
    }
    assert listed == wanted | {f"python {project['requires-python']}"}


def test_workflow_tries_every_python_that_is_promised(project):
    matrix = read_yaml(".github/workflows/test.yml")["jobs"]["tests"]["strategy"]["matrix"]
    promised = [each.rpartition(" ")[2] for each in project["classifiers"] if ":: 3." in each]
    assert matrix["python"] == promised
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}


def test_only_the_publishing_job_may_identify_itself():
    """Trusted publishing: no password, and no more rights than it takes."""
    workflow = read_yaml(".github/workflows/release.yml")
    assert workflow["permissions"] == {"contents": "read"}
    rights = {name: job.get("permissions") for name, job in workflow["jobs"].items()}
    assert rights == {"build": None, "publish": {"id-token": "write"}}
    assert "secrets." not in (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")


def test_site_is_built_as_by_make():
    settings = read_yaml(".readthedocs.yaml")
    assert (ROOT / settings["sphinx"]["configuration"]).exists()
    assert settings["python"]["install"][0]["extra_requirements"] == ["all", "docs"]


def test_oldest_versions_are_those_of_the_bounds(project):
    import runpy

    constraints = runpy.run_path(str(ROOT / ".ci" / "oldest.py"))["constraints"](project)
    assert {each.replace(">=", "==") for each in project["dependencies"]} <= set(constraints)
    assert "pyarrow==16" in constraints
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9.]+", each) for each in constraints)


def test_version_has_one_source():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in settings["project"]["dynamic"]
    source = ROOT / settings["tool"]["hatch"]["version"]["path"]
    assert source.resolve() == Path(gplc._version.__file__).resolve()
    assert importlib.metadata.version("gplc") == gplc.__version__, (
        "the installed metadata are out of date; install the package again"
    )
