"""Jobs are done once, whole or not at all, and give the same numbers however often interrupted."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from gplc.paper.experiments import Fit, fits, races
from gplc.paper.jobs import CPU, facts, run_all
from gplc.paper.settings import CHOSEN, Beliefs


@dataclass(frozen=True)
class Roll:
    """A job that draws numbers, and may fail."""

    seed: int
    fails: bool = False
    made_by: str = "slice"

    @property
    def name(self):
        return f"roll-{self.seed}"

    def scheme(self):
        return self.made_by

    def run(self):
        if self.fails:
            raise KeyboardInterrupt
        rng = np.random.default_rng(self.seed)
        return {"numbers": rng.random((2, 3)), "one": np.asarray(rng.random())}


def test_a_result_comes_back_as_it_was(store):
    job = Roll(1)
    assert store.load(job) is None
    assert run_all(store, [job], 1) == 1
    result = store.load(job)
    for name, value in job.run().items():
        np.testing.assert_array_equal(result[name], value)
    assert result[CPU] >= 0.0


def test_what_is_done_is_not_done_again(store):
    run_all(store, [Roll(1), Roll(2)], 1)
    before = {path.name: path.stat().st_mtime_ns for path in store.folder.iterdir()}
    assert run_all(store, [Roll(1), Roll(2), Roll(3)], 1) == 1
    assert {name: (store.folder / name).stat().st_mtime_ns for name in before} == before


def test_an_interrupted_run_goes_on(store):
    jobs = [Roll(1), Roll(2), Roll(3)]
    with pytest.raises(KeyboardInterrupt):
        run_all(store, [jobs[0], replace(jobs[1], fails=True), jobs[2]], 1)
    assert store.load(jobs[0]) is not None
    run_all(store, jobs, 1)
    for job in jobs:
        np.testing.assert_array_equal(store.load(job)["numbers"], job.run()["numbers"])


@pytest.mark.parametrize("damage", ["cut", "changed", "empty"])
def test_a_damaged_result_is_made_again(store, damage):
    job = Roll(1)
    run_all(store, [job], 1)
    path = store.path(job)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes({"cut": content[:-9], "changed": content, "empty": b""}[damage])
    assert store.load(job) is None
    assert run_all(store, [job], 1) == 1
    np.testing.assert_array_equal(store.load(job)["numbers"], job.run()["numbers"])


def test_other_settings_are_another_file(store):
    assert store.path(Roll(1)) != store.path(Roll(1, made_by="something new"))


def test_every_field_of_a_fit_counts(store, tiny):
    job = fits(tiny, CHOSEN, 1)["U1", 1, "gplv"]
    changed = {
        "dataset": "U2",
        "number": 2,
        "method": "gplc",
        "beliefs": Beliefs(constant=2.0),
        "n_train": 11,
        "n_test": 31,
        "iterations": 9,
        "predictive_draws": 4,
        "nodes": 1,
        "seed": 3,
        "sampler": "default",
        "repeat": 1,
    }
    assert set(changed) == set(Fit.__dataclass_fields__)
    paths = {store.path(replace(job, **{name: value})) for name, value in changed.items()}
    assert len(paths | {store.path(job)}) == len(changed) + 1


def test_schemes_are_spelled_out(tiny):
    job = races(tiny)[0.1, "paper", 1]
    assert "step_size=0.3" in facts(job)["scheme in full"]
    assert "repeats=40" in facts(job)["scheme in full"]


def test_progress_is_told_without_a_terminal(store, capsys):
    run_all(store, [Roll(1), Roll(2)], 1)
    assert "2 of 2 jobs done; last: roll-2" in capsys.readouterr().err
