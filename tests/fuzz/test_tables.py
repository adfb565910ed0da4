"""Hostile tables: bytes of any kind are read as numbers, or refused in one line."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from typer.testing import CliRunner

from gplc import _tables
from gplc._cells import numbers
from gplc.cli import app
from tests.fuzz.hostile import inputs, outcome

CELLS = [
    *(b"1", b"-2.5", b"1e400", b"-1e-400", b"nan", b"inf", b"NA", b"", b" ", b"1,5", b"0x1f"),
    *(b"1_000", b"9" * 5000, b'"', b'"1"', b'"1', b'"a\nb"', b"\0", b"\xff", b"\xc3\xa9"),
    *(b"\xe2\x80\xa8", b"\xd9\xa1", b"True", b"=1+1", b"z" * 140_000, b'"' + b"z" * 140_000),
]
cells = st.one_of(st.sampled_from(CELLS), st.floats().map(lambda x: repr(x).encode()))
headers = st.sampled_from(
    [
        *(
            b"x,y",
            b"x;y",
            b"x\ty",
            b"y",
            b"x,y,y",
            b"\xef\xbb\xbfx,y",
            b"\xff\xfex\0,\0y\0",
            b'"x,y',
        ),
        *(b"z" * 140_000 + b",x,y", b"", b",", b"1,2", b"mean,x,y", b" x , y "),
    ]
)


@st.composite
def tables(draw):
    """A header and rows, some ragged, in whatever encoding; some bytes changed or cut."""
    separator = draw(st.sampled_from([b",", b",", b";", b"\t", b"|"]))
    end = draw(st.sampled_from([b"\n", b"\r\n", b"\r"]))
    width = st.sampled_from([2, 2, 2, 1, 3])
    rows = draw(st.lists(width.flatmap(lambda w: st.tuples(*[cells] * w)), max_size=5))
    good = [(b"1", b"2"), (b"2", b"3")] if draw(st.booleans()) else []
    body = bytearray(end.join([draw(headers), *map(separator.join, [*good, *rows])]))
    for place in draw(st.lists(st.integers(0, 10**6), max_size=2)):
        if body:
            body[place % len(body)] = draw(st.integers(0, 255))
    encoding = draw(st.sampled_from(["", "", "", "utf-16", "utf-32", "cp037"]))
    text = bytes(body)
    return text.decode("latin-1").encode(encoding, "replace") if encoding else text


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@inputs(60)
@given(
    st.one_of(tables(), st.binary(max_size=200)),
    st.sampled_from(["csv", "csv", "parquet", "xlsx"]),
)
@example(b"z" * 140_000 + b",x,y\n1,2,3\n", "csv")
@example(b"x,y\n1,2\n" + b"z" * 140_000 + b",3\n", "csv")
@example(b"PAR1" + b"\xff" * 40 + b"PAR1", "parquet")
def test_bytes_are_a_table_or_refused(folder, content, ending):
    path = folder / f"table.{ending}"
    path.write_bytes(content)

    def read():
        frame = _tables.read_table(str(path), max_rows=100)
        decimals = (None, ".", ",")
        return [numbers(frame, list(frame.columns), str(path), decimal=d) for d in decimals]

    found = outcome(read)
    assert found is None or np.isfinite(found).all()


@inputs(25)
@given(st.one_of(tables(), st.binary(max_size=200)), st.sampled_from(["fit", "predict"]))
def test_commands_end_with_a_line(folder, content, command):
    path, fit, out = folder / "table.csv", folder / "fit.nc", folder / "out.nc"
    few = ["--chains", "1", "--draws", "2", "--warmup", "2", "--jobs", "1"]
    if not fit.exists():
        (folder / "good.csv").write_text("x,y\n1,2\n2,3\n3,1\n")
        arguments = ["fit", folder / "good.csv", "-y", "y", "-m", "std", "-o", fit, *few]
        assert CliRunner().invoke(app, [*map(str, arguments)]).exit_code == 0
    path.write_bytes(content)
    arguments = {
        "fit": ["fit", path, "-y", "y", "-m", "std", "-o", out, "--force", *few],
        "predict": ["predict", fit, path, "-o", folder / "out.csv"],
    }[command]
    ends_well(CliRunner().invoke(app, [*map(str, arguments)]))


def ends_well(result):
    assert isinstance(result.exception, SystemExit | None), result.exception
    assert result.exit_code in (0, 2, 3)
    if result.exit_code == 2 and "Usage" not in result.stderr:
        lines = result.stderr.splitlines()
        assert len([line for line in lines if not line.startswith("Warning: ")]) == 1, lines


OPTIONS = {
    "fit": [
        "--draws",
        "--warmup",
        "--chains",
        "--seed",
        "--max-seconds",
        "--max-rows",
        "-x",
        "--exclude",
        "--decimal",
        "--encoding",
        "--kernel",
        "--mean",
        "--prior",
    ],
    "predict": [
        "--interval",
        "--quantiles",
        "--prefix",
        "--delimiter",
        "--out",
        "--decimal",
        "--encoding",
    ],
}
TEXTS = ["", "0", "-1", "1e400", "nan", "inf", "9" * 400, "x", "²", "x,y", "a\nb", "0.5", "é"]


@inputs(25)
@given(st.sampled_from([(c, o) for c in OPTIONS for o in OPTIONS[c]]), st.sampled_from(TEXTS))
@example(("fit", "--draws"), "²")
def test_options_of_commands(folder, option, text):
    command, name = option
    good, fit = folder / "good.csv", folder / "fit.nc"
    good.write_text("x,y\n1,2\n2,3\n3,1\n")
    few = ["--chains", "1", "--draws", "2", "--warmup", "2", "--jobs", "1", "-m", "std"]
    if not fit.exists():
        CliRunner().invoke(app, ["fit", str(good), "-y", "y", "-o", str(fit), *few])
    arguments = {
        "fit": ["fit", good, "-y", "y", "-o", folder / "out.nc", "--force", *few],
        "predict": ["predict", fit, good],
    }[command]
    if text == "9" * 400 and name in ("--draws", "--warmup", "--chains"):
        return  # it would start
    if name == "--out":
        text = f"{folder}/{text}"
    ends_well(CliRunner().invoke(app, [*map(str, arguments), name, text]))
