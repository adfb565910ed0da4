"""Files as people have them: marks, encodings, workbooks, gaps, and fits that are not lost."""

import io
import math

import numpy as np
import pandas as pd
import pytest

import gplc
from gplc import _cells, _tables, kernels
from gplc._files import FileError
from gplc.cli import oddities

SHORT = ["-y", "y", "-m", "std", "--chains", "2", "--draws", "14", "--warmup", "8", "--jobs", "1"]
ROWS = [(k / 4, math.sin(k) * 3000) for k in range(12)]


def written(decimal, mark, between):
    """ROWS as text with these marks."""

    def cell(value):
        return f"{value:,.3f}".translate(str.maketrans({",": mark, ".": decimal}))

    quote = '"' if between in (decimal, mark) else ""
    lines = [between.join(f"{quote}{cell(v)}{quote}" for v in row) for row in ROWS]
    return f"x{between}y\n" + "\n".join(lines) + "\n"


def y_of(path):
    from gplc._fitted import training_data

    return training_data(gplc.load(path))[1]


# --- marks ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decimal", "mark", "between"),
    [(",", ".", ";"), (",", " ", ";"), (",", ".", ","), (".", ",", ","), (".", "'", "\t")],
)
def test_numbers_with_marks_need_the_option_and_then_are_right(
    run, one_line, tmp_path, decimal, mark, between
):
    data, out = tmp_path / "data.csv", tmp_path / "a.nc"
    data.write_text(written(decimal, mark, between))
    assert f"--decimal {decimal}" in one_line(run("fit", data, "-o", out, *SHORT))
    result = run("fit", data, "-o", out, "--decimal", decimal, *SHORT)
    assert result.exit_code == 0, result.output
    np.testing.assert_allclose(y_of(out), [round(y, 3) for _, y in ROWS])


@pytest.mark.parametrize("cell", ["1.5", "1.2345", "12.34.567", "1,2,3", "1.234.56", ",", "1e"])
def test_with_a_decimal_comma_other_points_are_refused(cell):
    assert _cells.number(cell, ",") is None


@pytest.mark.parametrize("value", ["-0.5", "+1e-3", "17", "1e400", "-inf", ".5", "5."])
def test_plain_numbers_are_the_same_with_a_decimal_point(value):
    assert _cells.number(value, ".") == _cells.number(value) == float(value)


def test_one_decimal_point_settles_the_others():
    """Twins: the same cells are refused without the one that shows what a point means."""
    settled = pd.DataFrame({"x": ["1.234", "0.125"]})
    doubtful = pd.DataFrame({"x": ["1.234", "5"]})
    for frame in (settled, doubtful):
        frame.attrs[_cells.IN_DOUBT] = True
    assert _cells.numbers(settled, ["x"], "a.csv")[:, 0].tolist() == [1.234, 0.125]
    with pytest.raises(FileError, match=r"may be 1\.234"):
        _cells.numbers(doubtful, ["x"], "a.csv")


def test_predictions_have_the_marks_of_what_they_stand_beside(run, fitted, tmp_path):
    (tmp_path / "new.csv").write_text("label;x\na;0,25\nb;0,75\n")
    result = run("predict", fitted, tmp_path / "new.csv", "--decimal", "comma")
    table = pd.read_csv(io.StringIO(result.stdout), sep=";", decimal=",")
    assert table["x"].tolist() == [0.25, 0.75]
    expected = gplc.load(fitted).predict(table[["x"]])
    np.testing.assert_allclose(table["mean"], expected, rtol=1e-8)


# --- encodings ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("encoding", "options"),
    [
        ("utf-8", []),
        ("utf-8-sig", []),
        ("utf-16", []),
        ("utf-32", []),
        ("utf-16-le", ["--encoding", "utf-16-le"]),
        ("latin-1", ["--encoding", "latin-1"]),
        ("cp1252", ["--encoding", "cp1252"]),
    ],
)
def test_encodings(run, tmp_path, encoding, options):
    data, out = tmp_path / "data.csv", tmp_path / "a.nc"
    text = written(".", "", ",").replace("x,", "größe,")
    data.write_bytes(text.replace("\n", "\r\n").encode(encoding))
    assert run("fit", data, "-o", out, *options, *SHORT).exit_code == 0
    assert list(gplc.load(out).feature_names_in_) == ["größe"]
    assert len(y_of(out)) == len(ROWS)


def test_lines_of_utf_16_end_where_their_text_does(tmp_path):
    """The byte of a line feed is part of other letters too."""
    data = tmp_path / "a.csv"
    data.write_bytes("x,\u0a0a\n1,\u010a\n2,b".encode("utf-16"))
    (frame,) = _tables.read_chunks(str(data))
    assert list(frame.columns) == ["x", "\u0a0a"]
    assert frame.index.tolist() == [2, 3]
    assert frame["\u0a0a"].tolist() == ["\u010a", "b"]


# --- Excel ----------------------------------------------------------------------------------


@pytest.fixture
def workbook(tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="comes with gplc[excel]")
    book = openpyxl.Workbook()
    book.active.append(["x", "y", "when"])
    for x, y in ROWS:
        book.active.append([x, y, "2024-05-01"])
    book.active.append([None, None, None])
    path = tmp_path / "data.xlsx"
    book.save(path)
    return path


def test_excel_in_and_out(run, workbook, tmp_path):
    out, predicted = tmp_path / "a.nc", tmp_path / "predicted.xlsx"
    assert run("fit", workbook, "-o", out, "--exclude", "when", *SHORT).exit_code == 0
    np.testing.assert_allclose(y_of(out), [y for _, y in ROWS])
    assert run("predict", out, workbook, "-o", predicted).exit_code == 0
    assert predicted.read_bytes().startswith(b"PK")
    table = pd.read_excel(predicted)
    assert list(table.columns) == ["x", "y", "when", "mean", "sd", "lower", "upper"]
    np.testing.assert_allclose(table["mean"], gplc.load(out).predict(table[["x"]]))


def test_one_of_several_sheets_is_asked_for(run, one_line, workbook, tmp_path):
    import openpyxl

    book = openpyxl.load_workbook(workbook)
    book.create_sheet("notes").append(["nothing here"])
    book.save(workbook)
    told = one_line(run("fit", workbook, "-o", tmp_path / "a.nc", *SHORT))
    assert "has 2 sheets; give --sheet, one of Sheet, notes" in told
    told = one_line(run("fit", workbook, "--sheet", "data", *SHORT))
    assert "has no sheet 'data'; give --sheet" in told
    (frame,) = _tables.read_chunks(str(workbook), _tables.Reading(sheet="Sheet"))
    assert frame.shape == (12, 3)


def test_excel_without_openpyxl_says_what_to_install(run, one_line, fitted, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    for arguments in (
        ["fit", tmp_path / "a.xlsx", *SHORT],
        ["predict", fitted, "-", "-o", tmp_path / "a.xlsx"],
    ):
        assert "pip install 'gplc[excel]'" in one_line(run(*arguments, stdin="x\n1\n"))
    assert list(tmp_path.iterdir()) == []


def test_tables_divided_by_tabs_are_written_so(run, fitted, folder, tmp_path):
    out = tmp_path / "a.tsv"
    assert run("predict", fitted, folder / "new.csv", "-o", out).exit_code == 0
    assert out.read_text().startswith("label\tx\tmean\t")


# --- gaps -----------------------------------------------------------------------------------

GAPS = "x,label\n0.25,a\nNA,b\n,c\n0.75,d\n"


@pytest.mark.parametrize("rows", [1, 3, 100])
def test_predictions_of_rows_with_gaps_are_empty(run, fitted, monkeypatch, rows):
    monkeypatch.setattr("gplc._tables.CHUNK_ROWS", rows)
    result = run("predict", fitted, "-", "--parts", stdin=GAPS)
    assert result.exit_code == 0
    assert result.stderr == "2 of 4 rows have missing entries and have empty predictions.\n"
    table = pd.read_csv(io.StringIO(result.stdout))
    assert table["label"].tolist() == list("abcd")
    assert table["mean"].isna().tolist() == [False, True, True, False]
    expected = gplc.load(fitted).predict(pd.DataFrame({"x": [0.25, 0.75]}))
    np.testing.assert_allclose(table["mean"].dropna(), expected, rtol=1e-8)


def test_rows_with_gaps_are_left_out_of_predictions_when_told(run, fitted):
    result = run("predict", fitted, "-", "--drop-missing", stdin=GAPS)
    assert result.stderr == "2 of 4 rows have missing entries and are left out.\n"
    assert pd.read_csv(io.StringIO(result.stdout))["label"].tolist() == ["a", "d"]


def test_gaps_are_null_in_json(run, fitted):
    result = run("predict", fitted, "-", "--json", stdin=GAPS)
    assert '"label":"b","mean":null' in result.stdout


# --- fits are not lost ----------------------------------------------------------------------


def test_fits_have_names_of_their_own_and_are_not_replaced(
    run, one_line, folder, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert run("fit", folder / "data.csv", *SHORT).exit_code == 0
    before = (tmp_path / "data-y-std.fit.nc").read_bytes()
    told = one_line(run("fit", folder / "data.csv", *SHORT, "--seed", "1"))
    assert "data-y-std.fit.nc is there already; give another --out, or --force" in told
    assert (tmp_path / "data-y-std.fit.nc").read_bytes() == before
    assert run("fit", folder / "data.csv", *SHORT, "--seed", "1", "--force").exit_code == 0
    assert (tmp_path / "data-y-std.fit.nc").read_bytes() != before


def test_resume_replaces_no_other_fit(run, one_line, fitted, tmp_path):
    other = tmp_path / "other.nc"
    other.write_text("mine")
    told = one_line(run("resume", fitted, "--draws", "2", "-o", other))
    assert "other.nc is there already" in told
    assert other.read_text() == "mine"


# --- kernel, mean and priors ----------------------------------------------------------------


def test_kernel_mean_and_priors_reach_the_model(run, folder, tmp_path):
    out = tmp_path / "a.nc"
    options = ["--kernel", "Matern32(ard=False) + Linear", "--mean", "constant"]
    options += ["--prior", "noise_sd=0.1,2", "--prior", "length_scale = 3,1.5"]
    assert run("fit", folder / "data.csv", "-o", out, *options, *SHORT).exit_code == 0
    model = gplc.load(out)
    assert model.kernel == kernels.Matern32(ard=False) + kernels.Linear()
    assert model.mean == "constant"
    priors = {name: model.priors[name] for name in ("noise_sd", "length_scale")}
    assert priors == {
        "noise_sd": pytest.approx([math.log(0.1), math.log(2)]),
        "length_scale": pytest.approx([math.log(3), math.log(1.5)]),
    }


@pytest.mark.parametrize("name", kernels.KERNELS)
def test_every_kernel_is_read_as_it_is_shown(name):
    leaf = kernels.KERNELS[name]()
    for kernel in (leaf, leaf.on("x"), leaf.named("slow"), (leaf + leaf.on(0)) * leaf + 2.0):
        assert kernels.from_text(repr(kernel)) == kernel


@pytest.mark.parametrize(
    "text",
    [
        *("", "1", "Linear(", "Linear ** 2", "Linear - Linear", "lambda: 0", "Linear(ard=open)"),
        *("__import__('os').getcwd()", "Linear.on.named", "(1).on(2)", "Linear(nonsense=1)"),
        *("Linear().value(1)", "(" * 900, "Linear\n+", "Linear(**{})", "[Linear]", "-1 * Linear"),
    ],
)
def test_what_is_no_kernel_is_refused(text):
    with pytest.raises(ValueError, match="kernel"):
        kernels.from_text(text)


# --- what is odd ----------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_oddities_are_told_before_the_fit(run, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd.csv").write_text(",same,x,y\n0,7,1,5\n1,7,2,5\n2,7,4,5\n")
    short = ["--chains", "1", "--draws", "4", "--warmup", "4", "--jobs", "1"]
    options = ["-m", "std"] if command == "fit" else ["--folds", "2"]
    told = run(command, "odd.csv", "-y", "y", *options, *short).stderr
    for oddity in (
        "3 rows are very few",
        "'column 1' counts the rows: if it is no input, leave it out with --exclude 'column 1'",
        "'same' is 7 in every row: it tells nothing",
        "'y' is 5 in every row: there is nothing to predict",
    ):
        assert f"Warning: {oddity}" in told


def test_rows_are_counted_before_some_are_left_out(run, tmp_path):
    (tmp_path / "a.csv").write_text("id,x,y\n1,5,\n2,3,4\n3,,1\n4,1,2\n")
    options = ["-o", tmp_path / "a.nc", "--drop-missing", *SHORT]
    assert "Warning: 'id' counts the rows" in run("fit", tmp_path / "a.csv", *options).stderr


def test_copies_are_told_and_a_few_are_not():
    table = pd.DataFrame({"x": np.repeat(np.arange(10.0), 7), "y": np.tile(np.arange(7.0), 10)})
    assert oddities.of_data(table, "y") == []
    table.loc[table["y"] > 0, "y"] = 1.0
    (told,) = oddities.of_data(table, "y")
    assert told.startswith("50 of 70 rows are exact copies")


def test_good_data_are_not_odd():
    for data in (gplc.datasets.load_motorcycle(), gplc.datasets.load_lidar()):
        table = pd.DataFrame(data.X, columns=data.feature_names).assign(target=data.y)
        assert oddities.of_data(table, "target") == []


def test_predictions_far_outside_are_told(run, fitted):
    near = run("predict", fitted, "-", stdin="x\n0.5\n1.01\n")
    assert near.stderr == ""
    far = run("predict", fitted, "-", stdin="x\n0.5\n7\n-3\n")
    assert "Warning: 2 of 3 rows are far outside the data ('x' from " in far.stderr
