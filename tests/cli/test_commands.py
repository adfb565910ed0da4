"""Every command with good input."""

import io
import json
import re
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import gplc
from gplc import _fitted, checks, cli, comparison, paper, plots
from gplc.cli import fitting
from gplc.estimators import ESTIMATORS
from gplc.models import MODELS, Standard

SHORT = ["--chains", "2", "--draws", "14", "--warmup", "8", "--jobs", "1"]


# --- fit and resume -------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_fit_says_what_came_out(run, folder, tmp_path, model):
    out = tmp_path / "a.nc"
    result = run("fit", folder / "data.csv", "--target", "y", "-m", model, "-o", out, *SHORT)
    assert result.exit_code == 0
    assert "y given x, 18 rows" in result.stdout
    assert "2 chains of 14 draws" in result.stdout
    told = "from" if MODELS[model].noise_varies else "everywhere"
    assert re.search(rf"Residual SD of y: .*{told}", result.stdout)
    assert "Verdict: do not use." in result.stdout
    assert f"Next: gplc resume {out}" in result.stdout
    assert f"Saved in {out}." in result.stdout
    model = gplc.load(out)
    assert list(model.feature_names_in_) == ["x"]
    assert model.target_name_ == "y"


def test_fit_is_what_the_estimator_gives(fitted, folder):
    """The command adds nothing to the estimator but reading and writing."""
    table = pd.read_csv(folder / "data.csv")
    model = gplc.LatentCovariateGP(chains=2, draws=14, warmup=8, random_state=0)
    model.fit(table[["x"]], table["y"])
    np.testing.assert_array_equal(gplc.load(fitted).draws_["w"], model.draws_["w"])


def test_fit_as_json(run, folder, tmp_path):
    out = tmp_path / "a.nc"
    arguments = ["-y", "y", "-m", "std", "-o", out, "--json", *SHORT]
    record = json.loads(run("fit", folder / "data.csv", *arguments).stdout)
    assert record["model"] == "StandardGP"
    assert record["converged"] is False
    assert record["residual_sd"]["smallest"] <= record["residual_sd"]["largest"]
    assert record["draws"] == 14


def test_strict_fit_exits_with_3_but_keeps_the_fit(run, folder, tmp_path):
    out = tmp_path / "a.nc"
    arguments = ["-y", "y", "-m", "std", "-o", out, "--strict", *SHORT]
    assert run("fit", folder / "data.csv", *arguments).exit_code == 3
    assert out.exists()


def test_fit_of_chosen_columns_with_a_found_delimiter(fitted_wide):
    model = gplc.load(fitted_wide)
    assert list(model.feature_names_in_) == ["a", "b"]
    assert type(model).__name__ == "LatentVarianceGP"


def test_fit_from_standard_input_and_parquet_agree(run, folder, tmp_path):
    text = (folder / "data.csv").read_bytes()
    pd.read_csv(folder / "data.csv").to_parquet(tmp_path / "data.parquet")
    for name, source, stdin in (
        ("a.nc", "-", text),
        ("b.nc", tmp_path / "data.parquet", None),
    ):
        arguments = ["-y", "y", "-m", "std", "-o", tmp_path / name, *SHORT]
        assert run("fit", source, *arguments, stdin=stdin).exit_code == 0
    first, second = gplc.load(tmp_path / "a.nc"), gplc.load(tmp_path / "b.nc")
    np.testing.assert_array_equal(first.draws_["noise_sd"], second.draws_["noise_sd"])


def test_the_same_command_goes_on_from_a_checkpoint(run, folder, tmp_path):
    common = ["-y", "y", "-m", "std", "--chains", "2", "--warmup", "8", "--jobs", "1"]
    for name, draws, checkpoint in (
        ("part.nc", "6", "run.ckpt"),
        ("whole.nc", "14", "run.ckpt"),
        ("at once.nc", "14", "other.ckpt"),
    ):
        places = ["-o", tmp_path / name, "--checkpoint", tmp_path / checkpoint]
        result = run("fit", folder / "data.csv", *common, "--draws", draws, *places)
        assert result.exit_code == 0, result.output
    resumed, at_once = gplc.load(tmp_path / "whole.nc"), gplc.load(tmp_path / "at once.nc")
    np.testing.assert_array_equal(resumed.draws_["noise_sd"], at_once.draws_["noise_sd"])


def test_fit_with_odd_delimiters_and_names(run, tmp_path):
    (tmp_path / "a.tsv").write_text("x,1\t  y\n1\t2\n2\t5\n3\t4\n")
    for delimiter in ("tab", "\\t"):
        out = tmp_path / "a.nc"
        arguments = ["-x", "x,1", "-m", "std", "-o", out, "--delimiter", delimiter, "--force"]
        assert run("fit", tmp_path / "a.tsv", "-y", "y", *arguments, *SHORT).exit_code == 0
        assert list(gplc.load(out).feature_names_in_) == ["x,1"]


def test_a_fit_says_how_to_repeat_it(run, folder, tmp_path, monkeypatch):
    """A run that the clock stopped is kept as so many draws, which another run gives again."""
    monkeypatch.setattr("gplc.chains.BATCH_SECONDS", 0.0)
    out = tmp_path / "a.nc"
    arguments = ["-y", "y", "-m", "std", "-o", out, "--chains", "2", "--jobs", "1"]
    run("fit", folder / "data.csv", *arguments, "--warmup", "3", "--max-seconds", "0.05")
    kept = gplc.load(out)
    settings = kept.get_params()
    assert settings["max_seconds"] is None
    assert settings["draws"] == kept.diagnostics_.n_draws
    table = pd.read_csv(folder / "data.csv")
    again = gplc.StandardGP(**settings).fit(table[["x"]], table["y"])
    np.testing.assert_array_equal(again.draws_["noise_sd"], kept.draws_["noise_sd"])


def test_fit_drops_missing_rows_when_told(run, tmp_path):
    path = tmp_path / "gaps.csv"
    path.write_text("x,y\n0,1\n1,NA\n2,3\n,4\n4,5\n")
    out = tmp_path / "a.nc"
    result = run("fit", path, "-y", "y", "-m", "std", "-o", out, "--drop-missing", *SHORT)
    assert result.exit_code == 0
    assert "Left out 1 of 5 rows with missing entries." in result.stderr
    assert "Warning: 1 of 4 rows have no response and are left out." in result.stderr
    model = gplc.load(out)
    assert model.model_.n == 3
    assert model.notes_ == ["1 of 4 rows have no response and are left out."]


def test_noise_column(run, tmp_path):
    path, out = tmp_path / "stars.csv", tmp_path / "a.nc"
    path.write_text("x,y,error\n0,1,0.5\n1,2,0.25\n2,3,1\n3,,\n4,5,2\n")
    options = ["-y", "y", "-m", "std", "-o", out, "--noise-column", "error", *SHORT]
    assert run("fit", path, *options).exit_code == 0
    model = gplc.load(out)
    assert list(model.feature_names_in_) == ["x"]
    np.testing.assert_allclose(_fitted.known_noise(model), [0.5, 0.25, 1.0, 2.0])
    new = "x,error\n0.5,3\n,1\n"
    told = run("predict", out, "-", "--noise-column", "error", "--prefix", "p_", stdin=new)
    lines = told.stdout.splitlines()
    exact = model.predict_dist(pd.DataFrame({"x": [0.5]}), noise_std=[3.0]).std()[0]
    assert float(lines[1].split(",")[3]) == pytest.approx(exact, rel=1e-6)
    assert lines[2] == ",1,,,,"
    path.write_text("x,y,error\n0,1,0.5\n1,2,-0.25\n2,3,1\n")
    refused = run("fit", path, *options, "--force")
    assert refused.exit_code == 2
    assert "line 3, column 'error': a noise SD must be above 0, got -0.25" in refused.stderr
    path.write_text("x,y,error\n0,1,0.5\n1,2,\n2,3,1\n")
    refused = run("fit", path, *options, "--force")
    assert "line 3, column 'error': the value is missing" in refused.stderr
    path.write_text("x,y,error\n0,1,0.5\n1,2,\n2,3,1\n3,,\n")  # without a response none is needed
    left_out = run("fit", path, *options, "--force", "--drop-missing")
    assert left_out.exit_code == 0
    assert "Left out 1 of 4 rows with missing entries." in left_out.stderr
    np.testing.assert_allclose(_fitted.known_noise(gplc.load(out)), [0.5, 1.0])
    told = run("predict", out, "-", "--noise-column", "error", stdin="x,error\n0.5,3\n1,\n")
    assert told.stdout.splitlines()[2] == "1,,,,,"
    assert "1 of 2 rows have missing entries and have empty predictions" in told.stderr


def test_resolution(run, tmp_path):
    path, out = tmp_path / "a.csv", tmp_path / "a.nc"
    path.write_text("x,y\n" + "".join(f"{k},{k % 7 * 0.5}\n" for k in range(12)))
    for given, step in (("auto", 0.5), ("0.25", 0.25)):
        options = ["-y", "y", "-m", "std", "-o", out, "--resolution", given, "--force", *SHORT]
        result = run("fit", path, *options)
        assert result.exit_code == 0
        assert f"Warning: Responses are rounded to steps of {step}" in result.stderr
        assert gplc.load(out).resolution_ == step
    refused = run("fit", path, "-y", "y", "-o", out, "--resolution", "fine", "--force")
    assert "--resolution must be a number or auto, got 'fine'" in refused.stderr


def test_transform(run, tmp_path):
    path, out = tmp_path / "a.csv", tmp_path / "a.nc"
    path.write_text("x,y\n" + "".join(f"{k},{1 + k % 5}\n" for k in range(12)))
    options = ["-y", "y", "-m", "std", "-o", out, "--force", *SHORT]
    assert run("fit", path, *options, "--transform", "log").exit_code == 0
    told = run("predict", out, "-", stdin="x\n0.5\n").stdout.splitlines()[1]
    assert float(told.split(",")[3]) > 0.0
    refused = run("fit", path, *options, "--transform", "cube")
    assert "target_transform must be one of" in refused.stderr
    path.write_text("x,y\n0,1\n1,0\n2,3\n")
    refused = run("fit", path, *options, "--transform", "log")
    assert refused.stderr.splitlines()[-1] == (
        f"gplc: {path}, line 3, column 'y': --transform log takes values above 0, got 0; correct "
        "it"
    )
    refused = run("fit", path, *options, "--transform", "logit")
    assert "line 2, column 'y': --transform logit takes values above 0 and below 1, got 1" in (
        refused.stderr
    )


def test_weight_column(run, tmp_path):
    path, out = tmp_path / "a.csv", tmp_path / "a.nc"
    path.write_text("x,y,seen\n0,1,2\n1,2,1\n2,3,3\n3,,\n")
    options = ["-y", "y", "-m", "std", "-o", out, "--weight-column", "seen", "--force", *SHORT]
    assert run("fit", path, *options).exit_code == 0
    assert gplc.load(out).model_.n == 6
    path.write_text("x,y,seen\n0,1,2\n1,2,0.5\n2,3,3\n")
    refused = run("fit", path, *options).stderr
    assert "line 3, column 'seen': a count must be a whole number of at least 0" in refused


def test_compare_with_noise_column(run, tmp_path):
    path = tmp_path / "a.csv"
    rows = [f"{k},{k % 3},{0.1 + k % 2}" for k in range(12)]
    path.write_text("\n".join(["x,y,e", *rows, "12,,1"]))
    few = ["--folds", "2", "--chains", "1", "--draws", "10", "--warmup", "10", "--jobs", "1"]
    result = run("compare", path, "-y", "y", "--noise-column", "e", *few)
    assert result.exit_code == 0
    assert "12 rows in 2 folds" in result.stdout


def test_fit_names_its_output_after_the_data(run, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("fit", folder / "data.csv", "-y", "y", "-m", "std", *SHORT).exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["data-y-std.fit.nc"]


def test_fit_goes_on_if_the_clock_leaves_too_few_draws(run, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(fitting, "LEAST_DRAWS", 17)
    monkeypatch.setattr("gplc.chains.BATCH_SECONDS", 0.0)  # a look after every iteration
    out = tmp_path / "a.nc"
    arguments = ["-y", "y", "-m", "std", "-o", out, "--chains", "2", "--warmup", "3"]
    result = run("fit", folder / "data.csv", *arguments, "--max-seconds", "1e-9", "--jobs", "1")
    assert result.exit_code == 0
    assert "going on to 17" in result.stderr
    assert gplc.load(out).draws_.log_density.shape == (2, 17)


def test_interrupted_fit_keeps_its_draws(run, folder, tmp_path, monkeypatch):
    """An interrupt while sampling is told by the estimator, which keeps what it has."""
    fit = gplc.StandardGP.fit

    def interrupted(self, X, y):
        fit(self, X, y)
        object.__setattr__(self.diagnostics_, "stopped", "Interrupted after 14 draws a chain.")
        return self

    monkeypatch.setattr(gplc.StandardGP, "fit", interrupted)
    out = tmp_path / "a.nc"
    result = run("fit", folder / "data.csv", "-y", "y", "-m", "std", "-o", out, *SHORT)
    assert result.exit_code == 130
    assert "gplc resume" in result.stderr
    assert gplc.load(out).diagnostics_.n_draws == 14


def test_interrupt_before_any_draw_leaves_nothing(run, one_line, folder, tmp_path, monkeypatch):
    def interrupted(self, X, y):
        raise KeyboardInterrupt

    monkeypatch.setattr(gplc.LatentCovariateGP, "fit", interrupted)
    result = run("fit", folder / "data.csv", "-y", "y", "-o", tmp_path / "a.nc", *SHORT)
    assert one_line(result, 130) == "gplc: interrupted; nothing was written"
    assert list(tmp_path.iterdir()) == []


def test_resume_is_the_same_as_a_longer_fit(run, folder, fitted, tmp_path):
    out = tmp_path / "longer.nc"
    assert run("resume", fitted, "--draws", "20", "-o", out, "--jobs", "1").exit_code == 0
    table = pd.read_csv(folder / "data.csv")
    model = gplc.LatentCovariateGP(chains=2, draws=34, warmup=8, random_state=0)
    model.fit(table[["x"]], table["y"])
    np.testing.assert_array_equal(gplc.load(out).draws_["w"], model.draws_["w"])


def test_resume_until_good_replaces_the_fit(run, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(fitting, "LEAST_DRAWS", 200)
    out = tmp_path / "a.nc"
    run("fit", folder / "data.csv", "-y", "y", "-m", "std", "-o", out, *SHORT)
    result = run("resume", out, "--max-seconds", "120", "--jobs", "1", "--strict", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["converged"] is True
    assert gplc.load(out).diagnostics_.ok


# --- predict --------------------------------------------------------------------------------


def test_predict_to_standard_output(run, fitted, folder):
    result = run("predict", fitted, folder / "new.csv", "--quantiles", "0.1,0.5", "--parts")
    assert result.exit_code == 0
    table = pd.read_csv(io.StringIO(result.stdout))
    assert list(table.columns) == [
        *("label", "x", "mean", "sd", "lower", "upper", "q0.1", "q0.5"),
        *("function_sd", "residual_sd"),
    ]
    assert table["label"].tolist() == ["first", "second"]
    model = gplc.load(fitted)
    rows = pd.DataFrame({"x": [0.25, 0.75]})
    dist = model.predict_dist(rows)
    np.testing.assert_allclose(table["mean"], dist.mean(), rtol=1e-8)
    np.testing.assert_allclose(table[["lower", "upper"]], dist.interval(0.9), rtol=1e-8)
    np.testing.assert_allclose(table[["q0.1", "q0.5"]], dist.quantile([0.1, 0.5]), rtol=1e-8)
    np.testing.assert_allclose(table["residual_sd"], model.residual_sd(rows).mean, rtol=1e-8)


def test_predict_from_and_to_every_format(run, fitted, folder, tmp_path):
    pd.read_csv(folder / "new.csv").to_parquet(tmp_path / "new.parquet")
    expected = pd.read_csv(io.StringIO(run("predict", fitted, folder / "new.csv").stdout))
    for source in (folder / "new.csv", tmp_path / "new.parquet"):
        for name, read in (
            ("a.csv", pd.read_csv),
            ("a.parquet", pd.read_parquet),
            ("a.jsonl", lambda path: pd.read_json(path, lines=True)),
        ):
            out = tmp_path / name
            assert run("predict", fitted, source, "-o", out).exit_code == 0
            pd.testing.assert_frame_equal(read(out), expected, check_dtype=False)


def test_predict_in_pieces_is_the_same(run, fitted, tmp_path, monkeypatch):
    path = tmp_path / "many.csv"
    path.write_text("x\n" + "\n".join(f"{x:.3f}" for x in np.linspace(0, 1, 23)) + "\n")
    whole = run("predict", fitted, path).stdout
    monkeypatch.setattr("gplc._tables.CHUNK_ROWS", 5)
    assert run("predict", fitted, path).stdout == whole
    assert whole.count("\n") == 24


def test_predict_json_lines_from_standard_input(run, fitted):
    result = run("predict", fitted, "-", "--json", stdin="x\n0.5\n0.6\n")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["x"] for row in rows] == [0.5, 0.6]
    assert all(row["lower"] < row["mean"] < row["upper"] for row in rows)


def test_predict_columns_in_another_order(run, fitted_wide, tmp_path):
    (tmp_path / "new.csv").write_text("b,a\n0.1,0.9\n")
    (tmp_path / "turned.csv").write_text("a,b\n0.9,0.1\n")
    one, other = (
        pd.read_csv(io.StringIO(run("predict", fitted_wide, tmp_path / name).stdout))
        for name in ("new.csv", "turned.csv")
    )
    assert one["mean"].tolist() == other["mean"].tolist()


def test_predict_with_a_fit_made_without_names(run, tmp_path):
    model = gplc.StandardGP(chains=1, draws=20, warmup=20, random_state=0)
    model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.5]).save(tmp_path / "a.nc")
    result = run("predict", tmp_path / "a.nc", "-", stdin="anything\n0.5\n")
    assert result.exit_code == 0
    assert pd.read_csv(io.StringIO(result.stdout))["mean"].tolist() == pytest.approx(
        model.predict([[0.5]]).tolist()
    )


# --- diagnose, plot, report -----------------------------------------------------------------


def test_diagnose_exits_with_3_if_the_fit_is_not_to_be_used(run, fitted):
    result = run("diagnose", fitted)
    assert result.exit_code == 3
    assert "R-hat" in result.stdout
    assert "Verdict: do not use." in result.stdout
    assert f"Next: gplc resume {fitted}" in result.stdout
    assert "model.extend" not in result.stdout
    result = run("diagnose", fitted, "--json")
    record = json.loads(result.stdout)
    assert record["converged"] is False
    assert record["level"] == "do not use"
    assert record["rows"]["log noise_sd"]["rhat"] > 0


def test_diagnose_exits_with_0_if_the_fit_is_usable_unless_strict(run, fitted, monkeypatch):
    monkeypatch.setattr("gplc.diagnostics.USABLE_RHAT", 9.0)
    monkeypatch.setattr("gplc.diagnostics.USABLE_ESS", 1.0)
    assert run("diagnose", fitted).exit_code == 0
    assert run("diagnose", fitted, "--strict").exit_code == 3


def test_plot_writes_a_picture(run, fitted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("plot", fitted).stdout == "session-overview.png\n"
    assert Path("session-overview.png").read_bytes().startswith(b"\x89PNG")
    assert run("plot", fitted, "-k", "pit", "-o", "a.svg").exit_code == 0
    assert b"<svg" in Path("a.svg").read_bytes()


def test_plot_of_all_kinds_leaves_out_what_does_not_apply(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = gplc.StandardGP(chains=2, draws=20, warmup=20, random_state=0)
    model.fit(np.arange(6.0)[:, None], [0.0, 1.0, 0.5, 0.3, 0.9, 0.1]).save("a.nc")
    result = run("plot", "a.nc", "--kind", "all")
    assert result.exit_code == 0
    assert "no latent" in result.stderr
    assert result.stdout.split() == [f"a-{kind}.png" for kind in plots.KINDS if kind != "latent"]


def test_report_writes_a_page(run, fitted, tmp_path):
    out = tmp_path / "page.html"
    assert run("report", fitted, "--out", out).exit_code == 0
    assert out.read_text().startswith("<!DOCTYPE html>")


# --- check ----------------------------------------------------------------------------------


def test_check_tells_what_the_model_gets_wrong(run, fitted):
    told = run("check", fitted).stdout
    assert [line for line in told.splitlines() if line.startswith("# ")] == [
        "# Leave-one-out",
        "# Data that the model makes",
        "# Calibration along x",
        "# Influential rows",
        "# Sensitivity to priors",
    ]
    assert told.count("Verdict: ") == 5
    record = json.loads(run("check", fitted, "--json").stdout)
    assert record["Leave-one-out"]["rows"] == 18


def test_check_simulates_if_asked(run, fitted, monkeypatch):
    monkeypatch.setattr(
        checks, "simulation", partial(checks.simulation, rows=5, draws=30, warmup=30)
    )
    told = run("check", fitted, "--simulate", "3", "--jobs", "1").stdout
    assert "3 sets of 5 rows" in told
    assert "Verdict: sampler and model" in told
    record = json.loads(run("check", fitted, "--simulate", "2", "--json").stdout)
    assert set(record) == {"sets", "p_values", "ok", "verdict"}


# --- compare, demo, paper -------------------------------------------------------------------


def test_compare_answers_in_words_and_json(run, folder, monkeypatch):
    arguments = ["-y", "y", "--folds", "2", "--chains", "1", "--draws", "15", "--warmup", "15"]
    seen = []
    kept = comparison.compare

    def once(*args, **settings):
        seen.append(kept(*args, **settings) if not seen else seen[0])
        return seen[-1]

    monkeypatch.setattr(comparison, "compare", once)
    told = run("compare", folder / "data.csv", *arguments, "--jobs", "1").stdout
    assert "Does the noise depend on x?" in told
    assert "Use " in told
    record = json.loads(run("compare", folder / "data.csv", *arguments, "--json").stdout)
    assert record["nlpd"].keys() == MODELS.keys()
    assert record["rows"] == 18


def test_compare_saves_the_stack_of_all_models(run, folder, tmp_path):
    data, out = folder / "data.csv", tmp_path / "stack.nc"
    few = ["-y", "y", "--chains", "2", "--draws", "15", "--warmup", "15", "--jobs", "1"]
    result = run("compare", data, *few, "--out", out, "--json")
    assert result.exit_code == 0, result.output
    stack = gplc.load(out)
    assert stack.weights_ == pytest.approx(json.loads(result.stdout)["weights"])
    rows = pd.read_csv(io.StringIO(run("predict", out, data).stdout))
    inputs = pd.read_csv(data)[list(stack.feature_names_in_)]
    np.testing.assert_allclose(rows["mean"], stack.predict(inputs), rtol=1e-5)
    refused = [
        (["compare", data, *few, "--out", out], "is there already"),
        (["compare", data, *few, "--out", out, "--force", "--folds", "2"], "leave out --folds"),
        (["diagnose", out], "is a stack of models, which only gplc predict takes"),
        (["predict", out, data, "--parts"], "is a stack; leave it out"),
    ]
    for arguments, told in refused:
        result = run(*arguments)
        assert result.exit_code == 2, result.output
        assert told in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1


def test_demo_shows_each_command(run, tmp_path, monkeypatch):
    fit = gplc.LatentCovariateGP.fit
    small = {"chains": 2, "draws": 12, "warmup": 8, "predictive_draws": 10, "n_jobs": 1}
    monkeypatch.setattr(
        gplc.LatentCovariateGP, "fit", lambda self, X, y: fit(self.set_params(**small), X, y)
    )
    monkeypatch.chdir(tmp_path)
    result = run("demo", "--out", "somewhere")
    assert result.exit_code == 0, result.output
    for step in ("fit", "predict", "plot", "report"):
        assert f"$ gplc {step} " in result.stdout
    assert {path.name for path in (tmp_path / "somewhere").iterdir()} == {
        f"motorcycle.{ending}"
        for ending in ("csv", "new.csv", "predicted.csv", "fit.nc", "png", "html")
    }


def test_paper_passes_its_options_on(run, tmp_path, monkeypatch):
    seen = {}

    def reproduce(**options):
        seen.update(options)
        return tmp_path / "index.html"

    monkeypatch.setattr(paper, "reproduce", reproduce)
    result = run("paper", "--quick", "--only", "samplers", "--sets", "2", "--out", tmp_path)
    assert result.exit_code == 0
    assert result.stdout == f"{tmp_path / 'index.html'}\n"
    assert seen == {
        "out": tmp_path,
        "only": ["samplers"],
        "sets": 2,
        "quick": True,
        "jobs": -1,
        "seed": 2012,
    }


# --- a model of somebody else's -------------------------------------------------------------


@pytest.fixture
def fourth():
    """A fourth model and its estimator, known for one test."""
    kept = dict(MODELS), dict(ESTIMATORS)

    class Fourth(Standard):
        key = "fourth"
        title = "FOURTH"
        noise_summary = "Gaussian noise that somebody else knows more about"

    class FourthGP(gplc.StandardGP):
        model_class = Fourth

    yield FourthGP
    for registry, before in zip((MODELS, ESTIMATORS), kept, strict=True):
        registry.clear()
        registry.update(before)


def test_a_fourth_model_needs_no_edit_here(run, folder, fourth, tmp_path):
    data, out = folder / "data.csv", tmp_path / "a.nc"
    told = " ".join(run("fit", "--help").stdout.replace("│", " ").split())
    assert f"fourth: {fourth.model_class.noise_summary}" in told
    assert run("fit", data, "-y", "y", "-m", "fourth", "-o", out, *SHORT).exit_code == 0
    assert type(gplc.load(out)) is fourth
    assert run("plot", out, "-o", tmp_path / "a.png").exit_code == 0
    assert run("report", out, "-o", tmp_path / "a.html").exit_code == 0
    assert f"FOURTH: {fourth.model_class.noise_summary}" in (tmp_path / "a.html").read_text()
    arguments = ["--folds", "2", "--chains", "1", "--draws", "12", "--warmup", "8", "--jobs", "1"]
    result = run("compare", data, "-y", "y", *arguments, "--json")
    assert list(json.loads(result.stdout)["nlpd"]) == ["std", "fourth", "gplv", "gplc"]


# --- help -----------------------------------------------------------------------------------


def test_version(run):
    assert run("--version").stdout.strip() == gplc.__version__


def test_help_has_an_example_for_every_command(run):
    commands = [entry.callback.__name__ for entry in cli.app.registered_commands]
    assert len(commands) == 10
    for name in commands:
        result = run(name, "--help")
        assert result.exit_code == 0
        assert f"gplc {name}" in result.stdout.split("Examples")[1]


@pytest.mark.parametrize(
    ("command", "names"), [("plot", plots.KINDS), ("paper", paper.PARTS), ("fit", MODELS)]
)
def test_help_names_every_choice(run, command, names):
    told = run(command, "--help").stdout
    assert [name for name in names if name not in told] == []


def test_shells_can_complete_commands(run):
    words = {"_GPLC_COMPLETE": "complete_bash", "COMP_WORDS": "gplc re", "COMP_CWORD": "1"}
    result = CliRunner().invoke(cli.app, [], env=words, prog_name="gplc")
    assert result.stdout.split() == ["resume", "report"]
