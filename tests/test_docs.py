"""Documentation that is true: its code runs, its map matches the source, its links lead on."""

import dataclasses
import importlib.util
import re
import shlex
from pathlib import Path
from types import ModuleType

import joblib
import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
import pytest
from typer.testing import CliRunner

import gplc
from gplc.cli import app
from gplc.cli.studies import write_demo_data
from gplc.estimators import BaseGP

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "gplc"
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "docs").glob("*.md")),
    )
}
SMALL = {"chains": 2, "draws": 12, "warmup": 8, "predictive_draws": 10, "n_jobs": 1}


def blocks(page: str, language: str) -> list[str]:
    """Fenced code blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)


def load(path: Path, name: str) -> ModuleType:
    """A Python file that is not part of the package."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --- code -----------------------------------------------------------------------------------


@pytest.fixture
def short_fits(monkeypatch):
    """Cut every fit short, in this process, and open no windows."""
    fit, extend = BaseGP.fit, BaseGP.extend

    def short_fit(self, X, y, **known):
        return fit(self.set_params(**SMALL), X, y, **known)

    monkeypatch.setattr(BaseGP, "fit", short_fit)
    monkeypatch.setattr(BaseGP, "extend", lambda self, draws: extend(self, min(draws, 4)))
    monkeypatch.setattr("gplc.comparison.Parallel", lambda **settings: joblib.Parallel(n_jobs=1))
    with mpl.rc_context({"backend": "Agg"}):
        yield
    plt.close("all")


def few_rows(read):
    """A reader of tables that gives every k-th row, 150 or so: enough for a page."""

    def reader(path):
        table = read(path)
        return table.iloc[:: max(1, len(table) // 150)]

    return reader


@pytest.mark.filterwarnings("ignore::gplc.estimators.DataWarning")  # of what a page is about
@pytest.mark.parametrize("page", [page for page, text in PAGES.items() if blocks(text, "python")])
def test_code_runs(page, short_fits, monkeypatch, tmp_path):
    """All blocks of a page, one after the other in one namespace; fits are cut short."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples", target_is_directory=True)
    monkeypatch.setattr("pandas.read_csv", few_rows(pd.read_csv))
    namespace = {"__name__": "documentation"}
    for number, block in enumerate(blocks(PAGES[page], "python"), start=1):
        exec(compile(block, f"{page}, block {number}", "exec"), namespace)


def test_readme_and_architecture_have_code():
    assert len(blocks(PAGES["README.md"], "python")) >= 2
    assert len(blocks(PAGES["docs/architecture.md"], "python")) >= 2


@pytest.mark.parametrize("page", [page for page, text in PAGES.items() if blocks(text, "sh")])
def test_commands_run(page, short_fits, tmp_path, monkeypatch):
    """Every line of a page's shell blocks, in a folder with the data of `gplc demo`."""
    monkeypatch.chdir(tmp_path)
    for name in ("motorcycle", "lidar"):
        data = getattr(gplc.datasets, f"load_{name}")()
        few = dataclasses.replace(data, X=data.X[::5], y=data.y[::5])  # enough for a command
        write_demo_data(few, f"{name}.csv")
    for block in blocks(PAGES[page], "sh"):
        for line in block.splitlines():
            program, *arguments = shlex.split(line)
            assert program == "gplc", f"{page}: only gplc is run here, not {line!r}"
            result = CliRunner().invoke(app, arguments)
            wanted = (0, 3) if arguments[0] == "diagnose" else (0,)  # so short a fit is not good
            assert result.exit_code in wanted, f"{page}: {line}\n{result.output}"


# Each example with what it is given here to be quick, and a word it must print.
EXAMPLES = {
    "motorcycle": (lambda folder: {"path": folder / "new" / "picture.png"}, "Verdict"),
    "which_noise": (lambda folder: {"rows": 24}, "Does the noise depend on x?"),
    "long_run": (lambda folder: {"folder": folder}, "draws a chain"),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(name, short_fits, tmp_path, capsys):
    arguments, word = EXAMPLES[name]
    load(ROOT / "examples" / f"{name}.py", name).main(**arguments(tmp_path))
    assert word in capsys.readouterr().out
    if name == "motorcycle":
        assert (tmp_path / "new" / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_every_example_is_run():
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == set(EXAMPLES)


# --- the map of rooms -----------------------------------------------------------------------


def drawn_rooms(page: str) -> list[str]:
    """Rooms in the first text block: the first word of each line, without .py or a slash."""
    names = [line.split()[0] for line in blocks(page, "text")[0].splitlines()]
    return [name.removesuffix(".py").rstrip("/") for name in names]


def room_problems(drawn: list[str], rooms: tuple[str, ...], existing: set[str]) -> list[str]:
    """Everything wrong with a map of rooms."""
    known = [room for room in drawn if room in rooms]
    problems = [f"{room} is not in ROOMS" for room in drawn if room not in rooms]
    problems += [f"{room} does not exist" for room in known if room not in existing]
    problems += [f"{room} is missing" for room in rooms if room in existing and room not in drawn]
    if known != sorted(known, key=rooms.index):
        problems.append("the order is not that of ROOMS")
    return problems


def test_the_map_shows_every_room_in_order():
    rooms = load(ROOT / "tests" / "test_architecture.py", "architecture").ROOMS
    modules = {path.stem for path in SOURCE.glob("*.py")}
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    drawn = drawn_rooms(PAGES["docs/architecture.md"])
    assert room_problems(drawn, rooms, (modules | packages) & set(rooms)) == []


@pytest.mark.parametrize(
    ("drawn", "problem"),
    [
        (["b", "a"], "the order is not that of ROOMS"),
        (["a"], "b is missing"),
        (["a", "b", "c"], "c does not exist"),
        (["a", "b", "attic"], "attic is not in ROOMS"),
    ],
)
def test_a_wrong_map_is_caught(drawn, problem):
    assert room_problems(drawn, ("a", "b", "c"), {"a", "b"}) == [problem]


# --- words ----------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page):
    targets = re.findall(r"\]\(([^)#\s]+)", PAGES[page])
    local = [target for target in targets if not target.startswith(("http:", "https:"))]
    assert [target for target in local if not (ROOT / page).parent.joinpath(target).exists()] == []


def test_notation_names_exist():
    """Every hyperparameter of every model has its line, and every metric cited exists."""
    page = PAGES["docs/notation.md"]
    x, y = [[0.0], [1.0]], [0.0, 1.0]
    for model in gplc.models.MODELS.values():
        for name in model(x, y).names:
            assert f"`{name.removesuffix('_y').removesuffix('_z')}`" in page
    for name in re.findall(r"`metrics\.(\w+)`", page):
        assert hasattr(gplc.metrics, name)


def test_pictures_are_small():
    sizes = {path.name: path.stat().st_size for path in (ROOT / "docs" / "images").glob("*.png")}
    assert {name: size for name, size in sizes.items() if size >= 200_000} == {}


def words(page: str) -> int:
    """Words of a page, tables included and blocks of code and output not."""
    return len(re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL).split())


def long_lines(page: str) -> list[str]:
    """Lines of prose over 100 characters; tables, code, pictures and links cannot be wrapped."""
    prose = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    return [
        line
        for line in prose.splitlines()
        if len(line) > 100 and not line.startswith(("|", "![", "    "))
    ]


def test_readme_and_documentation_are_short():
    assert len(PAGES["README.md"].split()) < 900  # code and output too
    documentation = {page: text for page, text in PAGES.items() if page.startswith("docs/")}
    assert sum(map(words, documentation.values())) < 16_000


@pytest.mark.parametrize("page", PAGES)
def test_lines_of_prose_are_short(page):
    assert long_lines(PAGES[page]) == []


def test_long_pages_and_lines_are_noticed():
    assert words("one two\n```python\nthree\n```\n| four |\n") == 5
    assert long_lines("x" * 101 + "\n| " + "x" * 101 + "\n```text\n" + "x" * 101 + "\n```\n") == [
        "x" * 101
    ]


# --- outputs ---------------------------------------------------------------------------------

PAGE = """Before.

```python
import matplotlib.pyplot as plt

print("a", 1)
figure = plt.figure(figsize=(1, 1))
```

```text
old
```

![A picture](images/new.png)

```python
print("b")
```

Words between.

```text
kept
```
"""


def test_outputs_are_put_where_pages_show_them(tmp_path):
    outputs = load(ROOT / "docs" / "outputs.py", "outputs")
    (tmp_path / "images").mkdir()
    with mpl.rc_context({"backend": "Agg"}):
        found = outputs.filled(PAGE, tmp_path, tmp_path)
    assert found == PAGE.replace("old\n", "a 1\n")
    assert (tmp_path / "images" / "new.png").read_bytes().startswith(b"\x89PNG")


def test_outputs_are_on_the_pages():
    """Empty blocks of text are waiting for `make outputs`."""
    outputs = load(ROOT / "docs" / "outputs.py", "outputs")
    assert [page for page in outputs.PAGES if "" in blocks(PAGES[page], "text")] == []
