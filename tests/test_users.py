"""Three strangers with the README in hand: each finds what once was missing.

An applied scientist has a file from a spreadsheet and the command line; a data scientist has
scikit-learn's habits and a notebook; a statistician reads the draws. What they met in earlier
versions, and is mended, is an assertion here.
"""

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

import gplc
from gplc.cli import app

SHORT = {"chains": 2, "draws": 20, "warmup": 15, "random_state": 0}
FEW = ["--chains", "2", "--draws", "14", "--warmup", "8"]


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """A command line in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments, fails=False):
        result = CliRunner().invoke(app, list(map(str, arguments)))
        assert (result.exit_code != 0) == fails, result.output
        return result

    return call


# --- the applied scientist -----------------------------------------------------------------------


def spreadsheet(path):
    """Semicolons, decimal commas, a date, a gap, a column that counts the rows."""
    rng = np.random.default_rng(0)
    rows = [
        f"{k};{20 + k / 3:.1f};2024-03-{k % 28 + 1:02d};{3 + k / 5 + rng.normal():.2f}"
        for k in range(1, 31)
    ]
    rows[7] = "8;;2024-03-09;4.1"
    text = "\n".join(["no;temp;day;yield", *rows]).replace(".", ",")
    path.write_text(text + "\n", encoding="utf-8")


def test_the_applied_scientist(shell, tmp_path):
    spreadsheet(tmp_path / "plant.csv")
    told = shell("fit", "plant.csv", "-y", "yield", *FEW, fails=True)
    assert len(told.output.strip().splitlines()) == 1
    assert "--decimal" in told.output

    options = ["--decimal", ",", "--exclude", "day", "--drop-missing", "-m", "std"]
    told = shell("fit", "plant.csv", "-y", "yield", *options, *FEW)
    assert "Left out 1 of 30 rows" in told.output
    assert "'no' counts the rows" in told.output
    assert re.search(r"^Verdict: (fine|usable|do not use)\. ", told.output, flags=re.MULTILINE)
    assert "Next: gplc resume plant-yield-std.fit.nc" in told.output
    assert "draws=" not in told.output  # no Python where a shell is in use

    again = shell("fit", "plant.csv", "-y", "yield", *options, *FEW, fails=True)
    assert "--force" in again.output  # nothing is replaced in silence
    shell("fit", "plant.csv", "-y", "temp", *options, *FEW)  # another target, another file
    assert (tmp_path / "plant-temp-std.fit.nc").exists()

    (tmp_path / "new.csv").write_text("no;temp\n31;25,5\n32;\n33;900,0\n", encoding="utf-8")
    told = shell(
        "predict", "plant-yield-std.fit.nc", "new.csv", "--decimal", ",", "--out", "p.xlsx"
    )
    assert "far outside the data" in told.output
    predicted = pd.read_excel(tmp_path / "p.xlsx")
    assert predicted["mean"].isna().tolist() == [False, True, False]  # one gap fails no file

    shell("report", "plant-yield-std.fit.nc", "--out", "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for wanted in ("plant.csv", "Left out: 1 of 30 rows", "length_scale[temp]", "fitted on"):
        assert wanted in page
    record = json.loads(shell("diagnose", "plant-yield-std.fit.nc", "--json", fails=True).stdout)
    assert record["level"] == "do not use"
    assert record["prediction_error"] > 0.1


# --- the data scientist --------------------------------------------------------------------------

TABLE = pd.DataFrame({"age": np.linspace(20.0, 70.0, 24), "dose": np.tile([1.0, 2.0, 4.0], 8)})
COST = pd.Series(TABLE["age"] * 2.0 + TABLE["dose"] ** 2, name="cost")


def test_the_data_scientist(tmp_path):
    model = gplc.StandardGP(kernel=gplc.SquaredExponential(), **SHORT)
    assert len(cross_val_score(clone(model), TABLE, COST, cv=2)) == 2
    search = GridSearchCV(model, {"kernel__ard": [True, False]}, cv=2).fit(TABLE, COST)
    assert search.best_params_.keys() == {"kernel__ard"}
    with pytest.raises(ValueError, match="kernel__nonsense is no setting"):
        clone(model).set_params(kernel__nonsense=1)

    pipeline = make_pipeline(StandardScaler(), clone(model)).fit(TABLE, COST)
    assert gplc.plots.fan(pipeline, "age").get_xlabel() == "age"
    gplc.report.write_report(pipeline, tmp_path / "pipeline.html")

    model.fit(TABLE, COST)
    frame = model.predict_interval(TABLE, coverage=[0.5, 0.9], as_frame=True)
    assert list(frame.columns) == ["lower_0.5", "upper_0.5", "lower_0.9", "upper_0.9"]
    np.testing.assert_array_equal(model.sample_y(TABLE), model.sample_y(TABLE))
    assert model.predict_dist(TABLE).ppf(0.5).shape == (24,)
    for shown in (model.diagnostics_, model.draws_, model.predict_dist(TABLE)):
        html = shown._repr_html_()
        assert "<table>" in html
        assert html.count("<tr>") < 20  # a table to read, not a dump
    assert "Verdict: do not use." in model._repr_mimebundle_()["text/html"]


# --- the statistician ----------------------------------------------------------------------------


def test_the_statistician():
    model = gplc.LatentCovariateGP(**SHORT)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(TABLE, COST)
    (warning,) = [each for each in told if "Verdict" in str(each.message)]
    assert "Monte Carlo error of predictions is at most" in str(warning.message)
    assert "Next: model.extend(" in str(warning.message)

    # Everything is on the scale of the data, and says so.
    draws = model.draws_.to_frame()
    assert draws.attrs["units"]["length_scale[age]"] == "age"
    assert draws["signal_sd"].median() > 1.0  # francs, not SDs
    assert model.draws_.to_arviz()["posterior"]["length_scale"].coords["input"].size == 2
    row = next(name for name in model.diagnostics_.rows if name.startswith("f(x)"))
    assert COST.min() - 50 < model.diagnostics_.rows[row].mean < COST.max() + 50
    assert "log length_scale[dose]" in str(model.diagnostics_)


def test_limits_have_one_home():
    """The numbers of the verdict are written down once, in code and on one page."""
    from gplc import diagnostics

    assert (diagnostics.MOST_RHAT, diagnostics.LEAST_ESS) == (1.01, 400.0)
    assert (diagnostics.USABLE_RHAT, diagnostics.USABLE_ESS) == (1.05, 100.0)
