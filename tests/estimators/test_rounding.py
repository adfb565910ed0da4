"""Rounded responses: the step is found, becomes known noise, and is told."""

import numpy as np
import pytest
from scipy.stats import norm

import gplc
from gplc import Predictive, _fitted, metrics
from gplc.estimators import ESTIMATORS, DataWarning
from gplc.estimators.rounding import atom_of, step_of

FEW = {"chains": 2, "draws": 20, "warmup": 20, "predictive_draws": 20, "random_state": 0}
DATA = gplc.datasets.make_paper("U1", n=60, random_state=3)


@pytest.mark.parametrize("step", [0.1, 0.25, 1.0 / 3.0, 5.0, 1e-4, 1e6])
@pytest.mark.parametrize("offset", [0.0, 0.04])
def test_a_step_is_found_from_the_ties(step, offset):
    y = (np.round(DATA.y * 8.0) + offset) * step
    assert step_of(y) == pytest.approx(step, rel=1e-3)


def test_a_step_that_was_itself_rounded_is_found():
    data = gplc.datasets.load_motorcycle()
    assert step_of(data.y) == pytest.approx(1.34, abs=0.005)
    # Only every other multiple, or a third of them.
    assert step_of(np.array([0.0, 2.0, 2.0, 5.0, 9.0, 12.0])) == 1.0


def test_data_without_a_step_are_left_alone():
    for seed in range(100):
        for name in ("U1", "U2"):
            y = gplc.datasets.make_paper(name, n=50, random_state=seed).y
            assert step_of(y) is None
    copies = DATA.y.copy()
    copies[:10] = copies[10:20]
    assert step_of(copies) is None
    assert step_of(np.array([0.0, 1.0, 0.0, 1.0, 1.0])) is None  # two values are no grid


@pytest.mark.parametrize("estimator", ESTIMATORS.values())
def test_rounding_is_known_noise(estimator, tmp_path):
    y = np.round(DATA.y, 1)
    with pytest.warns(DataWarning, match="rounded to steps of 0.1: each has a known noise"):
        model = estimator(**FEW, resolution="auto").fit(DATA.X, y, noise_std=0.2)
    np.testing.assert_allclose(_fitted.known_noise(model), np.hypot(0.2, 0.1 / np.sqrt(12.0)))
    model.save(tmp_path / "fit.nc")
    again = gplc.load(tmp_path / "fit.nc")
    assert again.resolution_ == model.resolution_ == 0.1
    assert again.notes_ == model.notes_
    with pytest.warns(DataWarning):
        given = estimator(**FEW, resolution=0.1).fit(DATA.X, y, noise_std=0.2)
    assert np.array_equal(given.draws_.theta, model.draws_.theta)


def test_auto_changes_nothing_without_ties():
    plain = gplc.StandardGP(**FEW).fit(DATA.X, DATA.y)
    auto = gplc.StandardGP(**FEW, resolution="auto").fit(DATA.X, DATA.y)
    assert auto.resolution_ is None
    assert np.array_equal(auto.draws_.theta, plain.draws_.theta)


def test_report_gives_the_probability_of_rounded_values():
    with pytest.warns(DataWarning):
        model = gplc.StandardGP(**FEW, resolution=0.1).fit(DATA.X, np.round(DATA.y, 1))
    page = " ".join(gplc.report.render_report(model).split())
    assert "rounded to steps of 0.1" in page
    assert "as the probability of the rounded value" in page


def test_rounded_nlpd_is_a_difference_of_cdfs():
    means, sds = np.array([[0.0, 1.0], [2.0, -1.0]]), np.array([[1.0, 0.1], [0.5, 2.0]])
    dist = Predictive.from_arrays(means, sds)
    y, step = np.array([0.5, 3.0]), 0.5
    cells = norm.cdf(y[:, None] + 0.25, means, sds) - norm.cdf(y[:, None] - 0.25, means, sds)
    exact = -np.log(cells.mean(axis=1)).mean()
    assert metrics.rounded_nlpd(dist, y, step) == pytest.approx(exact, abs=1e-9)
    # Far out on either side, and beyond the smallest float.
    far = Predictive.from_arrays([[0.0]], [[1.0]])
    exact = -norm.logsf(30.0 - 0.05) - np.log1p(-np.exp(-30.0 * 0.1))
    for end in (30.0, -30.0):
        assert metrics.rounded_nlpd(far, [end], 0.1) == pytest.approx(exact, rel=1e-3)
    assert np.isfinite(metrics.rounded_nlpd(far, [100.0], 0.1))
    # All of one cell: never below 0, though the density is as large as one likes.
    sure = Predictive.from_arrays([[0.0]], [[1e-6]])
    assert metrics.rounded_nlpd(sure, [0.0], 0.1) == pytest.approx(0.0, abs=1e-12)
    assert metrics.nlpd(sure, [0.0]) < -12.0


def test_atoms_are_told():
    y = DATA.y.copy()
    y[:15] = 2.5
    with pytest.warns(DataWarning, match=r"15 of 60 responses are exactly 2.5"):
        gplc.StandardGP(**FEW).fit(DATA.X, y)
    y[10:15] = DATA.y[10:15]
    assert atom_of(y) is None
    assert atom_of(y[:12]) is None


@pytest.mark.parametrize("wrong", [0, -1.0, "coarse", np.nan, [0.1]])
def test_bad_resolution_is_refused(wrong):
    with pytest.raises(ValueError, match="resolution must be a finite number above 0"):
        gplc.StandardGP(**FEW, resolution=wrong).fit(DATA.X, DATA.y)
