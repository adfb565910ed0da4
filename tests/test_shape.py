"""The shape of residuals: what chance does, what is seen, and wrong twins."""

import numpy as np
import pytest
from scipy.stats import kurtosistest, skewtest

from gplc.checks.shape import unlike_gaussian

LEVEL, SETS = 0.1, 1000
# A right test says "yes" in 10% of sets: 3.3 SDs of a count on either side, so that one run in a
# thousand would fail by chance (the seeds are fixed).
MARGIN = 3.3 * np.sqrt(LEVEL * (1.0 - LEVEL) / SETS)


def gaussian(rng, n):
    return rng.standard_normal(n)


def extreme(rng, n):
    """A fifth of it Gaussian, as uncertainty of the function adds to a residual."""
    return 0.9 * -rng.gumbel(size=n) / 1.28 + 0.45 * rng.standard_normal(n)


def heavy(rng, n):
    return rng.standard_t(4, n)


def two_modes(rng, n):
    return 2.0 * rng.choice([-1.0, 1.0], n) + rng.standard_normal(n)


def share_found(made, sets=SETS, n=100, level=LEVEL, test=unlike_gaussian):
    rng = np.random.default_rng(11)
    return np.mean([test(made(rng, n)) <= level for _ in range(sets)])


@pytest.mark.parametrize("n", [20, 100, 1500])
def test_gaussian_noise_is_found_as_often_as_said(n):
    assert share_found(gaussian, n=n) == pytest.approx(LEVEL, abs=MARGIN)


def test_a_twin_that_takes_the_better_of_two_tests_is_caught():
    def twin(scores):
        return min(skewtest(scores).pvalue, kurtosistest(scores).pvalue)

    assert share_found(gaussian, test=twin) > LEVEL + MARGIN


@pytest.mark.parametrize(("made", "at_least"), [(extreme, 0.5), (heavy, 0.4), (two_modes, 0.8)])
def test_other_shapes_are_found(made, at_least):
    """At the level of "probably", in sets of 100 rows."""
    assert share_found(made, sets=200, level=0.0228) > at_least


def test_units_and_signs_do_not_count():
    scores = np.random.default_rng(2).gumbel(size=60)
    found = unlike_gaussian(scores)
    assert unlike_gaussian(3.0 - 2.0 * scores) == found == unlike_gaussian(scores)
    assert unlike_gaussian(np.ones(60)) == unlike_gaussian(scores[:19]) == 1.0
    assert unlike_gaussian(np.repeat([-7.0, 7.0], 50)) < 0.01
