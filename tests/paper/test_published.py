"""What was copied from the paper, checked against what its text and other sources say of it."""

import numpy as np
import pytest
from scipy.integrate import quad

from gplc.datasets import make_paper, univariate_sd
from gplc.paper import published
from gplc.paper.analysis import paired
from gplc.paper.settings import DATASETS

GAUSSIAN_ENTROPY = 0.5 * np.log(2 * np.pi * np.e)
EXTREME_VALUE_ENTROPY = np.log(np.sqrt(6) / np.pi) + np.euler_gamma + 1


@pytest.mark.parametrize("dataset", DATASETS)
def test_ten_training_sets_of_plausible_numbers(dataset):
    assert published.nlpd(dataset).shape == published.mse(dataset).shape == (10, 3)
    assert (published.nlpd(dataset) > 0.05).all()
    assert (published.nlpd(dataset) < 0.5).all()
    assert (published.mse(dataset) < 0.05).all()


@pytest.mark.parametrize(
    ("dataset", "first", "second", "mean"),
    [
        ("U1", "gplc", "std", -0.074),
        ("U2", "gplc", "std", -0.148),
        ("M1", "gplc", "std", -0.090),
        ("M2", "gplc", "std", -0.130),
        ("U1", "gplc", "gplv", 0.017),
        ("U2", "gplc", "gplv", -0.052),
        ("M1", "gplc", "gplv", -0.004),
        ("M2", "gplc", "gplv", -0.033),
    ],
)
def test_mean_differences(dataset, first, second, mean):
    assert paired(published.nlpd(dataset), first, second).mean == pytest.approx(mean, abs=6e-4)


def test_slips_in_the_text():
    """The appendix does not quite say what section 4.2 says of it."""
    assert paired(published.nlpd("U1"), "gplv", "gplc").wins == 7  # the text has 8
    assert paired(published.nlpd("U1"), "gplc", "std").wins == 9  # "all data sets"
    assert paired(published.mse("U2"), "gplc", "gplv").wins == 4  # "most of the time"


@pytest.mark.parametrize(
    ("dataset", "entropy"), [("U1", GAUSSIAN_ENTROPY), ("U2", EXTREME_VALUE_ENTROPY)]
)
def test_oracle_is_the_expected_entropy(dataset, entropy):
    mean_log_sd, _ = quad(lambda x: float(np.log(univariate_sd(x))), 0.0, 1.0)
    assert published.ORACLE[dataset] == pytest.approx(mean_log_sd + entropy, abs=5e-5)


@pytest.mark.parametrize("dataset", ["M1", "M2"])
def test_oracle_of_many_cases(dataset):
    # SD of the mean of 200,000: below 0.003. Four of them: false alarm 1 in 16,000.
    many = make_paper(dataset, 200_000, random_state=1)
    assert many.oracle_nlpd() == pytest.approx(published.ORACLE[dataset], abs=0.012)
