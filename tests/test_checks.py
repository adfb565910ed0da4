"""Checks of models: replicated data, calibration with envelopes, influential rows."""

import json

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gplc
from gplc import checks
from gplc.checks.calibrated import ENVELOPE, calibration_of, envelope, windows_of
from gplc.estimators import ESTIMATORS

SMALL = {"chains": 2, "draws": 100, "warmup": 60, "random_state": 0}
DATA = gplc.datasets.make_paper("U1", n=40, random_state=1)


@pytest.fixture(scope="module", params=["std", "gplv", "gplc"])
def fitted(request):
    return ESTIMATORS[request.param](**SMALL).fit(DATA.X, DATA.y)


# Data that the model makes.


def test_replicated_data_look_like_the_data_of_a_right_model(fitted):
    found = checks.posterior_predictive(fitted, draws=150)
    assert found.replicates.shape == (150, 40)
    assert list(found.rows) == list(checks.STATISTICS)
    row = found.rows["SD of y"]
    assert row.observed == pytest.approx(np.std(DATA.y))
    assert row.low < row.high
    assert 0.0 < row.p_value <= 1.0
    assert "Verdict" in str(found)
    assert "<table>" in found._repr_html_()
    json.dumps(found.to_record())


def test_p_values_are_shares_of_replicates():
    model = gplc.StandardGP(**SMALL).fit(DATA.X, DATA.y)
    found = checks.posterior_predictive(model, {"mean": lambda y, f: float(np.mean(y))}, draws=99)
    others = model.replicate_y(99).mean(axis=1)
    as_far = min((others <= DATA.y.mean()).sum(), (others >= DATA.y.mean()).sum())
    assert found.rows["mean"].p_value == pytest.approx(min(1.0, 2 * (as_far + 1) / 100))


def test_a_model_that_is_wrong_is_noticed():
    """Exponential noise: the skewness of residuals is 2, which Gaussian noise never has."""
    rng = np.random.default_rng(0)
    x = rng.random((120, 1))
    y = np.sin(6.0 * x[:, 0]) + rng.exponential(size=120)
    found = checks.posterior_predictive(gplc.StandardGP(**SMALL | {"draws": 250}).fit(x, y))
    assert "skewness of residuals" in found.surprising
    assert not found.ok
    assert "look different: " in found.verdict


def test_what_cannot_be_checked_is_refused_in_one_line(fitted):
    with pytest.raises(ValueError, match="statistics is empty"):
        checks.posterior_predictive(fitted, {})
    with pytest.raises(ValueError, match="draws must be an integer of at least 1, got 0"):
        checks.posterior_predictive(fitted, draws=0)
    with pytest.raises(ValueError, match="X and y must be given both"):
        checks.calibration(fitted, DATA.X)
    with pytest.raises(ValueError, match="coverage"):
        checks.calibration(fitted, coverage=90)


# Calibration along an input.


def stays_inside(sets, make, seed=0):
    """Share of sets of PIT values, made by `make`, all of whose curves are in their envelopes."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.random(90))
    return np.mean([calibration_of(x, make(rng, x)).ok for _ in range(sets)])


def test_calibrated_models_stay_inside_as_often_as_said():
    """120 sets: within 4 SDs of 0.95, false alarm below 1e-3."""
    slack = 4.0 * np.sqrt(ENVELOPE * (1 - ENVELOPE) / 120)
    # Coverage in a window is one of few numbers, so that envelopes hold rather more.
    assert stays_inside(120, lambda rng, x: rng.random(x.size)) > ENVELOPE - slack


def test_models_that_are_not_calibrated_do_not():
    """Noise whose SD goes from half to twice of what the model takes it for; and a shift."""

    def narrow(rng, x):
        return norm.cdf(rng.standard_normal(x.size) * (0.5 + 1.5 * x))

    def shifted(rng, x):
        return norm.cdf(rng.standard_normal(x.size) + 2 * x - 1)

    assert stays_inside(40, narrow) < 0.3
    assert stays_inside(40, shifted) < 0.3


def test_envelopes_are_of_whole_curves():
    """Pointwise quantiles would hold 95% of points, and far fewer curves: the broken twin."""
    rng = np.random.default_rng(1)
    curves, fresh = rng.standard_normal((2, 2000, 12))
    low, high = envelope(curves)
    inside = ((fresh >= low) & (fresh <= high)).all(axis=1).mean()
    assert inside == pytest.approx(ENVELOPE, abs=0.03)
    low, high = np.quantile(curves, [0.025, 0.975], axis=0)
    assert ((fresh >= low) & (fresh <= high)).all(axis=1).mean() < 0.8


def test_every_row_is_in_a_window():
    for n in (2, 10, 17, 100, 333):
        windows = windows_of(np.random.default_rng(n).random(n))
        assert set(np.concatenate(windows).tolist()) == set(range(n))


def test_calibration_of_a_fit(fitted):
    found = checks.calibration(fitted)
    assert found.called == "40 rows left out"
    assert "Verdict" in str(found)
    json.dumps(found.to_record())
    far = checks.calibration(fitted, DATA.X, DATA.y + 100.0)
    assert not far.ok
    assert "predictions are too low near x" in far.verdict
    assert "too narrow" in far.verdict


def test_pipelines_are_checked_in_their_units():
    model = make_pipeline(StandardScaler(), gplc.StandardGP(**SMALL)).fit(100 * DATA.X, DATA.y)
    assert checks.calibration(model).places.max() > 10.0
    assert checks.influence(model).shift.shape == (40,)
    assert checks.posterior_predictive(model, draws=10).replicates.shape == (10, 40)


# Influential rows.


def test_a_row_that_predictions_hang_on_is_named():
    """Against the change of f that a fit without the row shows; other rows change little."""
    X, y = DATA.X.copy(), DATA.y.copy()
    X[0], y[0] = 2.0, 6.0  # far from all others
    model = gplc.StandardGP(**SMALL | {"draws": 400}).fit(X, y)
    found = checks.influence(model)
    assert found.order[0] == 0
    assert 0 in found.influential
    assert "predictions hang on" in found.verdict
    assert "moves by" in str(found)
    json.dumps(found.to_record())


def test_rows_that_say_what_others_say_are_not_influential():
    x = np.tile(np.linspace(0.0, 1.0, 15), 4)[:, None]
    y = np.sin(4 * x[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(60)
    found = checks.influence(gplc.StandardGP(**SMALL | {"draws": 300}).fit(x, y))
    assert found.shift.max() < 1.0
    assert found.verdict.startswith("no single row moves")


def test_replicates_are_the_same_at_every_call(fitted):
    np.testing.assert_array_equal(fitted.replicate_y(7), fitted.replicate_y(7))
    assert fitted.replicate_y(7).shape == (7, 40)
    with pytest.raises(ValueError, match="draws must be an integer"):
        fitted.replicate_y(0)


# Simulation-based calibration.


@pytest.fixture(scope="module")
def small():
    return gplc.StandardGP(**SMALL).fit(DATA.X[:8], DATA.y[:8])


def test_sampler_and_model_agree(small):
    """False alarm: 0.01, as the verdict says; the seed is fixed."""
    found = checks.simulation(small, sets=30, draws=80, warmup=80)
    assert found.ok
    assert found.verdict.startswith("sampler and model agree")
    assert "rank of" in str(found)
    json.dumps(found.to_record())


@pytest.mark.parametrize(
    ("broken", "what"),
    [
        # Data with more noise than the model says, and a sampler that never looks at them.
        (
            lambda make: lambda model, rng, unknowns: 4.0 * make(model, rng, unknowns),
            "log signal_sd",
        ),
        (lambda make: lambda model, rng, unknowns: rng.standard_normal(8), "log_density"),
    ],
)
def test_models_that_do_not_make_their_data_are_caught(small, monkeypatch, broken, what):
    monkeypatch.setattr(type(small.model_), "sample_data", broken(type(small.model_).sample_data))
    found = checks.simulation(small, sets=40, draws=80, warmup=80)
    assert not found.ok
    assert what in found.disagreeing
    assert "do not agree" in found.verdict


def test_bad_settings_of_a_simulation_are_refused(small):
    for name, value in (("sets", 1), ("rows", 1), ("draws", 5), ("warmup", 0)):
        with pytest.raises(ValueError, match=f"{name} must be an integer of at least"):
            checks.simulation(small, **{name: value})
