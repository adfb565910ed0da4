"""Bad files and options: one line that says what and where, exit code 2, nothing left behind."""

import tracemalloc

import pandas as pd
import pytest

from gplc import _tables
from gplc._files import FileError

SHORT = ["--chains", "2", "--draws", "14", "--warmup", "8", "--jobs", "1"]

BAD_TABLES = {
    "empty": ("", "is empty"),
    "blank": ("\n\n", "is empty"),
    "header only": ("x,y\n", "no rows"),
    "no header": ("1,2\n3,4\n", "line 1: there are only numbers"),
    "missing column": ("x,z\n1,2\n", "has no column 'y', but x, z"),
    "misspelt column": ("x,Yield,y_\n1,2,3\n", "did you mean 'y_'?"),
    "text in a number column": (
        "x,y\n1,2\n3,four\n",
        "line 3, column 'y': 'four' is not a number",
    ),
    "decimal comma": ("x;y\n1;2\n3;4,5\n", "'4,5' has a decimal comma; give --decimal ,"),
    "thousands": ('x,y\n1,"1,234.5"\n', "marks between thousands; give --decimal ."),
    "comma in doubt": (
        'x,y\n1,"1,234"\n',
        "'1,234' may be 1234 (--decimal .) or 1.234 (--decimal ,); give one of these",
    ),
    "point in doubt": (
        "x;y\n1;17\n2;1.234\n",
        "line 3, column 'y': '1.234' may be 1.234 (--decimal .) or 1234 (--decimal ,); give one",
    ),
    "text column": (
        "x,the name,y\n1,a,2\n2,b,4\n",
        "column 'the name' has as many levels as rows, 2 ('a' in one of them): nothing can be "
        "learned of any; leave the column out (--exclude), or join levels",
    ),
    "missing level": (
        "x,kind,y\n1,a,2\n2,b,4\n3,,4\n",
        "line 4, column 'kind': the value is missing (1 of 3 in this column); fill such entries",
    ),
    "a word among numbers": ("x,y\n1,2\nb,4\n3,4\n", "column 'x': 'b' is not a number; correct"),
    "text target": ("x,y\n1,a\n2,b\n", "'a' is not a number (2 such entries); correct or"),
    "missing value": (
        "x,y\n1,2\n,3\n",
        "line 3, column 'x': the value is missing (1 of 2 in this column); fill such entries in, "
        "or leave such rows out with --drop-missing",
    ),
    "missing responses": ("x,y\n1,2\n3,\n", "has 1 usable rows; 2 are needed"),
    "infinite": ("x,y\n1,2\ninf,2\n", "line 3, column 'x': the value is infinite"),
    "ragged": ("x,y\n1,2\n1,2,3\n", "line 3: 3 fields where the header has 2"),
    "unknown delimiter": (
        "x y\n1 2\n",
        "has no column 'y', but x y; if that is several",
    ),
    "two columns of one name": ("x,y,x\n1,2,3\n", "two columns are named 'x'"),
    "only the target": ("y\n1\n2\n", "an input is needed too"),
    "one row": ("x,y\n1,2\n", "1 usable rows; 2 are needed"),
    "zero bytes": ("x,y\n1,2\0\n", "line 2: this is no text table"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
@pytest.mark.parametrize("command", ["fit", "compare"])
def test_bad_tables_are_refused_in_one_line(run, one_line, tmp_path, monkeypatch, command, case):
    content, message = BAD_TABLES[case]
    path = tmp_path / "bad.csv"
    path.write_text(content)
    monkeypatch.chdir(tmp_path)
    assert message in one_line(run(command, path, "-y", "y"))
    assert [each.name for each in tmp_path.iterdir()] == ["bad.csv"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("label\nfirst\n", "has no column 'x'"),
        ("x\n1\noops\n", "line 3, column 'x': 'oops' is not a number"),
        ("x\n1\ninf\n", "line 3, column 'x': the value is infinite"),
        ('x\n1\n"0,5"\n', "line 3, column 'x': '0,5' has a decimal comma; give --decimal ,"),
        ("x,mean\n1,2\n", "has a column 'mean' already; give a --prefix"),
        ("x\n", "no rows"),
    ],
)
def test_bad_new_rows_leave_no_output(
    run, one_line, fitted, tmp_path, monkeypatch, content, message
):
    """Even if earlier pieces were fine: nothing is written, to a file or to standard output."""
    monkeypatch.setattr("gplc._tables.CHUNK_ROWS", 1)
    path = tmp_path / "bad.csv"
    path.write_text(content)
    for out in ("-", tmp_path / "out.csv"):
        result = run("predict", fitted, path, "-o", out)
        assert message in one_line(result)
        assert result.stdout == ""
    assert [each.name for each in tmp_path.iterdir()] == ["bad.csv"]


def test_an_old_output_survives_a_failure(run, one_line, fitted, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("old")
    one_line(run("predict", fitted, "-", "-o", out, stdin="x\n1\nb\n"))
    assert out.read_text() == "old"


def test_text_column_among_the_inputs(run, one_line, folder):
    result = run("fit", folder / "wide.csv", "-y", "y", "-o", folder / "no.nc")
    told = one_line(result)
    assert "column 'name' has as many levels as rows, 18" in told


def test_levels_and_dates_from_fit_to_prediction(run, tmp_path):
    rows = [f"2024-05-{1 + k % 28:02d},{'abc'[k % 3]},{k % 3 + 0.01 * k}" for k in range(24)]
    (tmp_path / "data.csv").write_text("\n".join(["day,kind,y", *rows]) + "\n")
    short = ("--chains", 1, "--draws", 15, "--warmup", 10, "-m", "std")
    fit = run("fit", tmp_path / "data.csv", "-y", "y", *short, "-o", tmp_path / "fit.nc")
    assert fit.exit_code == 0, fit.stderr
    assert "'day' holds dates, taken as days since 2024-05-01" in fit.stderr
    assert "'kind' is taken as a category with 3 levels: a, b, c" in fit.stderr
    new = "day,kind\n2024-05-03,a\n2024-05-04,\n,b\n2024-05-05,new\n"
    told = run("predict", tmp_path / "fit.nc", "-", stdin=new)
    assert told.exit_code == 0, told.stderr
    lines = told.stdout.splitlines()
    assert lines[0] == "day,kind,mean,sd,lower,upper"
    assert lines[1].startswith("2024-05-03,a,")
    assert [line.endswith(",,,,") for line in lines[1:]] == [False, True, True, False]
    assert "2 of 4 rows have missing entries and have empty predictions" in told.stderr
    assert "'new' in column 'kind'" in told.stderr


def test_missing_and_unreadable_files(run, one_line, tmp_path, fitted):
    absent = tmp_path / "absent.csv"
    assert "cannot be read (No such file" in one_line(run("fit", absent, "-y", "y"))
    assert "cannot be read" in one_line(run("fit", tmp_path, "-y", "y"))
    assert "cannot be read" in one_line(run("diagnose", tmp_path / "absent.nc"))
    (tmp_path / "not.parquet").write_text("x,y\n1,2\n")
    assert "cannot be read as Parquet" in one_line(run("fit", tmp_path / "not.parquet", "-y", "y"))
    (tmp_path / "latin.csv").write_bytes("x,y\n1,caf\xe9\n".encode("latin-1"))
    told = one_line(run("fit", tmp_path / "latin.csv", "-y", "y"))
    assert "line 2: byte 6 is not UTF-8; give the --encoding it has, perhaps latin-1" in told
    (tmp_path / "quote.csv").write_text('x,y\n1,"2\n' + "z" * 200_000)
    assert "line 3" in one_line(run("fit", tmp_path / "quote.csv", "-y", "y"))


@pytest.mark.parametrize("command", ["predict", "resume", "diagnose", "plot", "report"])
def test_a_damaged_fit_is_refused(run, one_line, fitted, tmp_path, command):
    damaged = tmp_path / "damaged.nc"
    damaged.write_bytes(fitted.read_bytes()[:-100])
    more = ["-"] if command == "predict" else []
    assert "is not a whole gplc file" in one_line(run(command, damaged, *more, stdin="x\n1\n"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "DATA", "-y", "y", "--draws", "many"], "--draws must be a whole number"),
        (["fit", "DATA", "-y", "y", "--out", "no/such/fit.nc"], "there is no folder"),
        (["fit", "DATA", "-y", "y", "--out", "-"], "--out cannot be standard output"),
        (["fit", "DATA", "-y", "y", "-x", "x,y"], "--features must not hold the target 'y'"),
        (["fit", "DATA", "-y", "y", "--max-rows", "10"], "has more than 10 rows"),
        (["fit", "DATA", "-y", "y", "--approximation", "some"], "must be auto or none"),
        (["fit", "DATA", "-y", "y", "--delimiter", "::"], "--delimiter must be one character"),
        (
            ["fit", "DATA", "-y", "y", "--max-seconds", "0"],
            "max_seconds must be a finite",
        ),
        (["fit", "DATA", "-y", "y", "--decimal", ";"], "--decimal must be . or ,"),
        (["fit", "DATA", "-y", "y", "--decimal", ",", "--delimiter", ","], "cannot both be ','"),
        (["fit", "DATA", "-y", "y", "--encoding", "klingon"], "--encoding must be one that"),
        (["fit", "DATA", "-y", "y", "--encoding", "base64"], "--encoding must be one that"),
        (["fit", "DATA", "-y", "y", "--exclude", "z"], "--exclude: "),
        (["fit", "DATA", "-y", "y", "--exclude", "x"], "an input is needed too"),
        (["fit", "DATA", "-y", "y", "--kernel", "Matern3"], "did you mean Matern32?"),
        (["fit", "DATA", "-y", "y", "--kernel", "exit()"], "kernel has no part 'exit'"),
        (["fit", "DATA", "-y", "y", "--mean", "cubic"], "mean must be one of"),
        (
            ["fit", "DATA", "-y", "y", "--prior", "noise_sd=1"],
            "--prior must be name=median,factor",
        ),
        (["fit", "DATA", "-y", "y", "--prior", "noise_sd=1,1"], "a factor above 1"),
        (["fit", "DATA", "-y", "y", "--prior", "nose_sd=1,2"], "no hyperparameter 'nose_sd'"),
        (["predict", "FIT", "DATA", "--out", "a.docx"], "cannot be written with the ending .docx"),
        (["predict", "FIT", "DATA", "--out", "a.xls"], "cannot be written with the ending .xls"),
        (["predict", "FIT", "a.jsonl"], "a table cannot be read from .jsonl"),
        (["compare", "DATA", "-y", "y", "--folds", "100"], "folds must be at most the 18 rows"),
        (["predict", "FIT", "DATA", "--interval", "90"], "--interval must be probabilities"),
        (["predict", "FIT", "DATA", "--quantiles", "a,b"], "--quantiles must be probabilities"),
        (["plot", "FIT", "--kind", "pie"], "--kind must be one of"),
        (["plot", "FIT", "--kind", "fan,sd", "--out", "a.png"], "--out names one file"),
        (["plot", "FIT", "--out", "a.docx"], "ends in .png, .pdf or .svg"),
        (["demo", "--data", "iris"], "--data must be one of"),
        (["paper", "--only", "lunch"], "--only must be one of"),
    ],
)
def test_bad_options(run, one_line, folder, fitted, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    names = {"DATA": folder / "data.csv", "FIT": fitted}
    assert message in one_line(run(*(names.get(each, each) for each in arguments)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [["fit"], ["fit", "a.csv"], ["fit", "a.csv", "-y", "y", "-m", "tree"], ["cook"]]
)
def test_wrong_usage_exits_with_2(run, arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Usage" in result.stderr


# --- files that would not fit into memory ---------------------------------------------------


@pytest.fixture
def huge(tmp_path):
    """A file of 1 GB that takes no room on the disk: a header, a row, then zeros."""
    path = tmp_path / "huge.csv"
    with open(path, "wb") as file:
        file.write(b"x,y\n1,2\n")
        file.truncate(1_000_000_000)
    return path


def test_a_huge_file_of_rubbish_is_refused_in_little_memory(huge):
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match="line 3: this is no text table"):
            _tables.read_table(str(huge), max_rows=100)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_reading_stops_at_the_first_row_too_many(tmp_path):
    """A long table is refused without reading on: rubbish further down is never met."""
    path = tmp_path / "long.csv"
    path.write_text("x,y\n" + "1,2\n" * 200 + "rubbish\n")
    with pytest.raises(FileError, match="more than 100 rows"):
        _tables.read_table(str(path), max_rows=100)
    with pytest.raises(FileError, match="line 202: 1 fields"):
        _tables.read_table(str(path), max_rows=1000)


def test_a_long_table_is_read_in_pieces(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("x,y\n" + "1.5,2\n" * 50_000)
    tracemalloc.start()
    try:
        rows = sum(len(piece) for piece in _tables.read_chunks(str(path), rows=1000))
        assert rows == 50_000
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    pd.DataFrame({"x": [1.0]}).to_parquet(tmp_path / "a.parquet")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(FileError, match=r"pip install 'gplc\[parquet\]'"):
        next(_tables.read_chunks(str(tmp_path / "a.parquet")))


def test_traceback_on_request(run, tmp_path, monkeypatch):
    monkeypatch.setenv("GPLC_TRACEBACK", "1")
    result = run("fit", tmp_path / "absent.csv", "-y", "y", *SHORT)
    assert isinstance(result.exception, FileError)
