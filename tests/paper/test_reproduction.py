"""The whole of it in miniature: the page, its files, and going on after an interruption."""

import re
import shutil

import numpy as np
import pytest

from gplc.paper import __main__ as command
from gplc.paper import illustrations, reproduce, runner
from gplc.paper.jobs import Store
from gplc.paper.runner import PARTS, make, planned
from gplc.paper.settings import DATASETS, FULL, QUICK

HEADINGS = {
    "performance": "## Predictive performance",
    "samplers": "## Samplers of GPLV",
    "operations": "## Major operations",
    "illustrations": "## Illustrations",
    "sensitivity": "## Sensitivity",
}
# Tables without CPU times in them.
NUMBERS = [f"appendix_{dataset}.csv" for dataset in DATASETS] + [
    "mean_nlpd.csv",
    "regret.csv",
    "differences_mse.csv",
    "sensitivity.csv",
    "operations.csv",
]


def test_the_page_has_everything(made):
    text = (made / "index.md").read_text()
    for heading in [*HEADINGS.values(), "## Claims", "## Settings"]:
        assert f"\n{heading}\n" in text
    assert "quick look" in text
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert (made / link).stat().st_size > 0, link


def test_the_html_page_is_the_same(made):
    page = (made / "index.html").read_text()
    text = (made / "index.md").read_text()
    assert page.startswith("<!doctype html>")
    assert page.count("<table>") == text.count("| --- |\n")
    assert page.count("<img ") == len(re.findall(r"^!\[", text, flags=re.MULTILINE))


def test_pictures_are_pictures(made):
    pictures = sorted(made.glob("*.png"))
    assert len(pictures) == len(list(made.glob("*.pdf"))) >= 11
    for picture in pictures:
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert picture.with_suffix(".pdf").read_bytes().startswith(b"%PDF")


def test_nothing_is_left_behind(made):
    assert not [path for path in made.rglob("*") if path.name.startswith(".")]


@pytest.fixture
def undrawn(monkeypatch):
    """Figures are slow to write, and these tests do not look at them."""
    monkeypatch.setattr("gplc.paper.page.figures.write", lambda *_: None)


@pytest.mark.usefixtures("undrawn")
def test_interrupted_and_restarted_gives_the_same_numbers(made, tmp_path, tiny):
    """Half of the results are lost; the rest of the run does not notice."""
    out = tmp_path / "again"
    shutil.copytree(made, out)
    parts = ("performance", "sensitivity")
    jobs = [job for part in parts for job in planned(part, tiny)]
    store = Store(out / "jobs")
    for job in jobs[::2]:
        store.path(job).unlink(missing_ok=True)
    make(out, tiny, parts, n_jobs=1)
    for name in NUMBERS:
        assert (out / name).read_bytes() == (made / name).read_bytes(), name


@pytest.mark.usefixtures("undrawn")
def test_a_finished_run_is_only_written_again(made, tmp_path, tiny, monkeypatch):
    out = tmp_path / "again"
    shutil.copytree(made, out)
    monkeypatch.setattr("gplc.paper.jobs._do", lambda *_: pytest.fail("a job was done again"))
    make(out, tiny, PARTS[:3], n_jobs=1)
    for name in ("index.md", "index.html", "autocorrelation_cpu_0.1.csv", "claims.csv"):
        assert (out / name).read_bytes() == (made / name).read_bytes(), name


@pytest.mark.usefixtures("undrawn")
def test_only_what_is_asked_for_or_was_made(tmp_path, tiny):
    text = make(tmp_path, tiny, ["illustrations"], n_jobs=1).with_suffix(".md").read_text()
    assert HEADINGS["illustrations"] in text
    for part in PARTS:
        assert (HEADINGS[part] in text) == (part == "illustrations")


def test_settings_reach_the_jobs(monkeypatch, tmp_path):
    asked = {}

    def keep(out, settings, parts, n_jobs):
        asked.update(settings=settings, parts=list(parts), n_jobs=n_jobs)
        return out / "index.html"

    monkeypatch.setattr(runner, "make", keep)
    reproduce(tmp_path)
    assert asked == {"settings": FULL, "parts": list(PARTS[:-1]), "n_jobs": -1}
    reproduce(tmp_path, only=["samplers"], sets=3, quick=True, jobs=2, seed=5)
    assert asked == {
        "settings": QUICK.changed(sets=3, seed=5),
        "parts": ["samplers"],
        "n_jobs": 2,
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"only": ["figures"]}, "only must be one of"),
        ({"sets": 0}, "sets must be an integer of at least 1"),
        ({"jobs": 0}, "jobs must not be 0"),
        ({"seed": -1}, "seed must be an integer of at least 0"),
    ],
)
def test_bad_arguments(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        reproduce(tmp_path, **arguments)


@pytest.mark.usefixtures("undrawn")
def test_the_command(tmp_path, capsys):
    command.main(["--only", "illustrations", "--quick", "--out", str(tmp_path), "--jobs", "1"])
    assert "index.html" in capsys.readouterr().out
    assert HEADINGS["illustrations"] in (tmp_path / "index.md").read_text()


# --- illustrations --------------------------------------------------------------------------


def test_cases_lie_between_the_curves():
    """Both panels show one function: 90% of the cases between the 5th and 95th percentile of w.

    Curves cross, so that the envelope holds more; w itself is outside for 40 cases of 400.
    """
    drawn = illustrations.unobserved(7)
    low = np.interp(drawn.x, drawn.grid, drawn.curves.min(axis=0))
    high = np.interp(drawn.x, drawn.grid, drawn.curves.max(axis=0))
    assert ((drawn.y >= low) & (drawn.y <= high)).mean() > 0.8


def test_extreme_value_moments():
    t, density = illustrations.extreme_value()
    moments = [float(np.trapezoid(t**power * density, t)) for power in range(4)]
    assert moments[:3] == pytest.approx([1.0, 0.0, 1.0], abs=0.01)
    assert moments[3] == pytest.approx(illustrations.skewness(), abs=0.05)


def test_density_of_a_square():
    one = illustrations.squared()
    roots = np.sqrt(one.y)
    phi = [np.exp(-0.5 * (s * roots - 2.0) ** 2) / np.sqrt(2 * np.pi) for s in (1.0, -1.0)]
    np.testing.assert_allclose(one.y_density, sum(phi) / (2 * roots), rtol=1e-6)
