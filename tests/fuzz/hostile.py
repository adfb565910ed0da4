"""What the fuzzers share: how many inputs, hostile values, and what may come of a call."""

import os
import time
import warnings

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

HEAVY = os.environ.get("GPLC_HEAVY") == "1"


def inputs(count):
    """So many inputs in an ordinary run, 34 times as many in a heavy one; the same each time."""
    return settings(
        max_examples=34 * count if HEAVY else count,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


NUMBERS = [
    *(0, 1, -1, 2, 7, 10**400, -(10**400), 2**63, 2**64, True, False),
    *(0.0, -0.0, 0.5, 1.0, -1.5, 1e-320, 1e-300, 1e-150, 1e120, 1e289, 1.7e308, -1e308),
    *(np.nan, np.inf, -np.inf, 1j),
    *(np.float32(0.5), np.float64(1e300), np.int64(3), np.uint64(2**63), np.bool_(True)),
]
OBJECTS = [
    *(None, "", "x", "auto", "line\nbreak", "\0", "é" * 500, b"bytes", object(), type, len),
    *([], (), {}, set(), [[]], [1, [2]], [None], ["a", 1.0], {"a": 1}, {"noise_sd": 1}),
    *(np.array(None), np.array("x"), np.zeros(0), np.zeros((0, 2)), np.zeros((3, 0))),
    *(np.ones((2, 2, 2)), np.full(3, np.nan), np.array([1, 10**400], dtype=object)),
    *(np.array(["a", "b"]), np.zeros((40, 40)), np.array("2020-01-01", dtype="M8[D]")),
]
numbers = st.one_of(st.sampled_from(NUMBERS), st.floats(), st.integers())
anything = st.one_of(
    numbers,
    st.sampled_from(OBJECTS),
    st.text(max_size=5),
    st.lists(numbers, max_size=4),
    st.lists(st.lists(numbers, max_size=3), max_size=3),
)


# CPU seconds of the calls of a test.
SECONDS = []


def outcome(call, *arguments, one_line=True, **named):
    """What a call returns, or None if it refuses in a line; any other error is let through."""
    began = time.process_time()
    try:
        return _outcome(call, arguments, named, one_line)
    finally:
        SECONDS.append(time.process_time() - began)


def _outcome(call, arguments, named, one_line):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return call(*arguments, **named)
        except (ValueError, TypeError) as error:
            message = str(error)
            assert message, "a refusal without a reason"
            assert not one_line or "\n" not in message, message
            assert len(message) < 2000, message[:200]
            return None
