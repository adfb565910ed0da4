"""Runs that nobody has said anything about are given all cores if they take long."""

import joblib
import numpy as np
import pytest

from gplc import chains
from gplc.models import Standard


@pytest.fixture
def model() -> Standard:
    x = np.linspace(-1.0, 1.0, 12)
    return Standard(x[:, None], np.sin(2.0 * x))


@pytest.fixture
def opened(monkeypatch) -> list[int | None]:
    """How many workers each `Parallel` was asked for; all of them work here, one after another."""
    asked: list[int | None] = []

    def parallel(n_jobs):
        asked.append(n_jobs)
        return joblib.Parallel(n_jobs=1)

    monkeypatch.setattr(chains, "Parallel", parallel)
    return asked


def run(model, **settings):
    watched = {"watch": lambda now: None, "seed": 1, "chains": 2, "draws": 30, "warmup": 10}
    return chains.run_chains(model, **(watched | settings))


def test_a_short_run_stays_on_one_core(model, opened, monkeypatch):
    monkeypatch.setattr(chains, "SHORT_RUN", 1e9)
    run(model)
    assert opened == [None]


def test_a_long_run_gets_all_cores_and_the_same_draws(model, opened, monkeypatch):
    before = run(model)
    monkeypatch.setattr(chains, "SHORT_RUN", 0.0)
    after = run(model)
    assert opened == [None, None, -1]
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a.theta, b.theta)


@pytest.mark.parametrize(
    "settings", [{"n_jobs": 1}, {"n_jobs": 2}, {"chains": 1}, {"watch": None}]
)
def test_whoever_said_something_is_obeyed(model, opened, monkeypatch, settings):
    monkeypatch.setattr(chains, "SHORT_RUN", 0.0)
    run(model, **settings)
    assert opened == [settings.get("n_jobs")]


def test_workers_of_others_are_left_alone(model, opened, monkeypatch):
    monkeypatch.setattr(chains, "SHORT_RUN", 0.0)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        run(model)
    joblib.Parallel(n_jobs=2, backend="threading")(joblib.delayed(run)(model) for _ in range(2))
    assert opened == [None, None, None]
