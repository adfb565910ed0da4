"""Fixtures of the statistical tests."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def as_in_chains(one_blas_thread: None) -> None:
    """Without threads that wait for each other."""
