"""Faults of the machine end a command in one line, or are told in one while it goes on."""

import shutil
import warnings

import pytest

from gplc.estimators import StandardGP

FIT = ("--model", "std", "--chains", "1", "--draws", "14", "--warmup", "8", "--jobs", "1")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("x,y\n" + "".join(f"{k},{k % 5}\n" for k in range(20)))
    return path


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "gplc: not enough memory (no more can be had); give fewer rows"),
        (MemoryError("Unable to allocate 15 GiB"), "gplc: not enough memory (Unable to allocate"),
        (ChildProcessError("workers were lost"), "gplc: workers were lost"),
    ],
    ids=repr,
)
def test_an_error_of_the_machine_is_one_line(run, one_line, table, monkeypatch, error, said):
    def fail(*_):
        raise error

    monkeypatch.setattr(StandardGP, "fit", fail)
    result = run("fit", table, "-y", "y", *FIT, "-o", table.with_name("fit.nc"))
    assert one_line(result).startswith(said)


def test_a_warning_is_one_line_without_a_place_in_the_source(run, table, monkeypatch):
    true_fit = StandardGP.fit

    def warning_fit(self, X, y):
        warnings.warn("checkpoint: run.ckpt cannot be written", stacklevel=2)
        return true_fit(self, X, y)

    monkeypatch.setattr(StandardGP, "fit", warning_fit)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        result = run("fit", table, "-y", "y", *FIT, "-o", table.with_name("fit.nc"))
    assert result.exit_code == 0
    assert result.stderr.splitlines()[0] == "Warning: checkpoint: run.ckpt cannot be written"


def test_a_folder_that_is_gone_when_the_fit_is_saved(run, one_line, table, monkeypatch):
    out = table.parent / "out"
    out.mkdir()
    true_fit = StandardGP.fit

    def slow_fit(self, X, y):
        shutil.rmtree(out)
        return true_fit(self, X, y)

    monkeypatch.setattr(StandardGP, "fit", slow_fit)
    result = run("fit", table, "-y", "y", *FIT, "-o", out / "fit.nc")
    assert "fit.nc cannot be written (No such file or directory); see to" in one_line(result)
