"""What each fuzzer tells: how many calls there were, the longest, and the most memory."""

import pytest

from tests.fuzz.hostile import SECONDS


@pytest.fixture(autouse=True)
def told(note, largest_memory):
    SECONDS.clear()
    yield
    if SECONDS:
        note("calls", len(SECONDS))
        note("longest call (CPU s)", round(max(SECONDS), 3))
        note("largest memory of the process (MB)", largest_memory())
