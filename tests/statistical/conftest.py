"""Fixtures of the statistical tests."""

from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread() -> Iterator[None]:
    """As in chains: on matrices of a few rows, threads do nothing but wait for each other."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield
