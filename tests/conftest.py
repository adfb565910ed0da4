"""Fixtures shared by all tests."""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from threadpoolctl import threadpool_limits

from gplc import chains

# A test that takes long on a busy machine must not start workers, in which nothing is patched.
chains.SHORT_RUN = float("inf")


@pytest.fixture
def note(request: pytest.FixtureRequest) -> Callable[[str, Any], None]:
    """Keep a measured figure with the test's result; `--junitxml=FILE` writes them all down.

    What pytest's own record_property does, without its warning about the report's format.
    """

    def keep(name: str, value: Any) -> None:
        request.node.user_properties.append((name, str(value)))

    return keep


@pytest.fixture
def largest_memory() -> Callable[[], int]:
    """The most memory that this process has had so far, in MB; 0 where nobody knows."""

    def measured() -> int:
        try:
            import resource
        except ImportError:  # on Windows
            return 0
        unit = 2**20 if sys.platform == "darwin" else 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // unit

    return measured


@pytest.fixture
def no_windows() -> Iterator[None]:
    """Draw without a screen, and close what was drawn."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    with mpl.rc_context({"backend": "Agg"}):
        yield
    plt.close("all")


@pytest.fixture(scope="module")
def one_blas_thread() -> Iterator[None]:
    """As in chains: on matrices of a few rows, threads do nothing but wait for each other."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield
