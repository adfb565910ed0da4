"""The list of mutants stays in step with the source; `make mutants` tries them."""

import runpy
from pathlib import Path

import pytest

RUNNER = runpy.run_path(str(Path(__file__).with_name("run.py")))
ALL = RUNNER["mutants"]()


@pytest.mark.parametrize("mutant", ALL, ids=lambda each: each["name"])
def test_a_mutant_changes_one_place_and_names_its_tests(mutant):
    assert mutant.keys() - {"equivalent"} == {"name", "file", "old", "new", "tests"}
    compile(RUNNER["changed"](mutant), mutant["file"], "exec")
    for test in mutant["tests"]:
        path, _, function = test.partition("::")
        text = (RUNNER["ROOT"] / path).read_text(encoding="utf-8")
        assert f"def {function.partition('[')[0]}" in text


def test_names_are_different():
    assert len({each["name"] for each in ALL}) == len(ALL)


def test_a_text_that_is_not_there_is_told():
    with pytest.raises(ValueError, match="0 times"):
        RUNNER["changed"](ALL[0] | {"old": "no such text"})


def test_callers_of_a_compiled_function_are_compiled_anew():
    folder = RUNNER["ROOT"] / RUNNER["COMPILED"]
    assert RUNNER["dependents"]("mixture", folder) == {
        "mixture",
        "mixture_crps",
        "mixture_quantiles",
    }
