"""A whole reproduction in miniature, made once."""

import pytest

from gplc.paper.jobs import Store
from gplc.paper.runner import PARTS, make
from gplc.paper.settings import SAMPLERS, Settings

TINY = Settings(
    sets=2,
    n_train=12,
    n_test=30,
    iterations={"std": 16, "gplc": 16, "gplv": 16},
    predictive_draws=12,
    nodes=2,
    races=2,
    race_iterations=dict.fromkeys(SAMPLERS, 24),
    jitters={0.1: 1.0, 0.001: 0.5},
    sensitivity_sets=1,
    seed=1,
    quick=True,
)


@pytest.fixture(scope="session")
def tiny() -> Settings:
    return TINY


@pytest.fixture(scope="session")
def made(tmp_path_factory, tiny):
    """The folder of a finished reproduction with all parts."""
    out = tmp_path_factory.mktemp("paper")
    make(out, tiny, PARTS, n_jobs=1)
    return out


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path)
