"""Bad input gives an error that says what is wrong; odd input gives a fit."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, NotFittedError

from gplc import LatentVarianceGP, StandardGP
from gplc.estimators import ESTIMATORS, DataWarning

FEW = {"chains": 1, "draws": 10, "warmup": 10, "nodes": 3, "random_state": 0}

RNG = np.random.default_rng(0)
X = RNG.standard_normal((20, 2))
Y = np.sin(2 * X[:, 0]) + 0.2 * RNG.standard_normal(20)


def spoilt(array, value):
    result = array.astype(type(value) if isinstance(value, complex) else object)
    result.flat[3] = value
    return result


BAD_DATA = {
    "NaN in X": (spoilt(X, np.nan), Y, "X contains NaN"),
    "NaN in all of y": (X, np.full(20, np.nan), "2 rows with a response are needed"),
    "inf in X": (spoilt(X, np.inf).astype(float), Y, "X contains infinity"),
    "-inf in X": (spoilt(X, -np.inf).astype(float), Y, "X contains infinity"),
    "inf in y": (X, spoilt(Y, np.inf).astype(float), "y contains infinity"),
    "text in X": (spoilt(X, "seven"), Y, "could not convert string to float: 'seven'"),
    "text in y": (X, spoilt(Y, "seven"), "could not convert string to float: 'seven'"),
    "complex X": (spoilt(X, 1j), Y, "Complex data not supported"),
    "complex y": (X, spoilt(Y, 1j), "Complex data not supported"),
    "None in X": (spoilt(X, None), Y, "X contains NaN"),
    "no rows": (X[:0], Y[:0], r"0 sample\(s\)"),
    "no columns": (X[:, :0], Y, r"0 feature\(s\)"),
    "one row": (X[:1], Y[:1], r"1 sample\(s\).*minimum of 2"),
    "flat X": (X[:, 0], Y, "Expected 2D array, got 1D array"),
    "cube X": (X[:, :, None], Y, "dim 3"),
    "a number": (3.0, Y, "Expected 2D array"),
    "short y": (X, Y[:-1], r"inconsistent numbers of samples: \[20, 19\]"),
    "short X": (X[:-1], Y, r"inconsistent numbers of samples: \[19, 20\]"),
    "two responses": (X, np.c_[Y, Y], r"1d array.*shape \(20, 2\)"),
    "no y": (X, None, "requires y to be passed"),
}

BAD_SETTINGS = [
    ("chains", 0),
    ("chains", 2.5),
    ("draws", 0),
    ("draws", 2.5),
    ("draws", -1),
    ("standardize", "no"),
    ("learned_noise", "yes"),
    ("sampler", []),
    ("warmup", -1),
    ("warmup", 1.5),
    ("sampler", "nope"),
    ("sampler", 3),
    ("kernel", "rbf"),
    ("priors", {"nope": (0.0, 1.0)}),
    ("priors", {"signal_sd": (0.0, -1.0)}),
    ("priors", {"signal_sd": (0.0,)}),
    ("priors", {"signal_sd": 1.0}),
    ("priors", "flat"),
    ("nodes", 0),
    ("nodes", 2.5),
    ("node_rule", "x"),
    ("predictive_draws", 0),
    ("predictive_draws", 1.5),
    ("random_state", "seven"),
]

each_estimator = pytest.mark.parametrize("estimator", ESTIMATORS.values())


def learned(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


@each_estimator
@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data_is_refused_without_a_trace(estimator, case):
    bad_X, bad_y, message = BAD_DATA[case]
    model = estimator(**FEW)
    with pytest.raises(ValueError, match=message):
        model.fit(bad_X, bad_y)
    assert learned(model) == {}
    with pytest.raises(NotFittedError):
        model.predict(X)


@each_estimator
@pytest.mark.parametrize(("name", "value"), BAD_SETTINGS)
def test_bad_settings_are_refused_by_name(estimator, name, value):
    model = estimator(**FEW).set_params(**{name: value})
    with pytest.raises(ValueError, match=name):
        model.fit(X, Y)
    assert learned(model) == {}


def test_bad_link():
    with pytest.raises(ValueError, match="link must be one of"):
        LatentVarianceGP(link="y", **FEW).fit(X, Y)


@pytest.fixture(scope="module", params=ESTIMATORS.values())
def fitted(request):
    return request.param(**FEW).fit(X, Y)


@pytest.mark.parametrize("case", ["NaN in X", "two responses", "one row"])
def test_a_failed_fit_leaves_the_old_one_whole(fitted, case):
    bad_X, bad_y, message = BAD_DATA[case]
    before = learned(fitted)
    prediction = fitted.predict(X)
    with pytest.raises(ValueError, match=message):
        fitted.fit(bad_X, bad_y)
    # More columns, and settings that fail only after the data have been looked at.
    fitted.set_params(sampler="nope")
    with pytest.raises(ValueError, match="nope"):
        fitted.fit(np.c_[X, X], Y)
    fitted.set_params(sampler="default")
    assert learned(fitted) == before
    np.testing.assert_array_equal(fitted.predict(X), prediction)


METHODS = [
    "predict",
    "predict_dist",
    "predict_interval",
    "sample_y",
    "regression_function",
    "residual_sd",
]


@each_estimator
@pytest.mark.parametrize("method", METHODS)
def test_nothing_is_predicted_before_a_fit(estimator, method):
    with pytest.raises(NotFittedError, match=estimator.__name__):
        getattr(estimator(), method)(X)


@pytest.mark.parametrize("method", METHODS)
def test_bad_inputs_at_prediction(fitted, method):
    predict = getattr(fitted, method)
    with pytest.raises(ValueError, match=r"X has 3 features.*expecting 2 features"):
        predict(np.ones((4, 3)))
    with pytest.raises(ValueError, match=r"X has 1 features.*expecting 2 features"):
        predict(np.ones((4, 1)))
    with pytest.raises(ValueError, match="NaN"):
        predict([[1.0, np.nan]])
    with pytest.raises(ValueError, match="infinity"):
        predict([[1.0, np.inf]])
    with pytest.raises(ValueError, match="Expected 2D array"):
        predict([1.0, 2.0])
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        predict(np.empty((0, 2)))
    with pytest.raises(ValueError, match="seven"):
        predict([[1.0, "seven"]])


def test_bad_arguments_of_prediction(fitted):
    with pytest.raises(ValueError, match=r"q must be in \[0, 1\]"):
        fitted.predict_quantiles(X, [0.5, 1.5])
    for coverage in (0.0, 1.0, 90, np.nan):
        with pytest.raises(ValueError, match="coverage must be between 0 and 1"):
            fitted.predict_interval(X, coverage)
        with pytest.raises(ValueError, match="coverage must be between 0 and 1"):
            fitted.residual_sd(X, coverage)
    with pytest.raises(ValueError, match="n_samples"):
        fitted.sample_y(X, 0)


@each_estimator
def test_a_column_for_y_is_flattened_with_a_warning(estimator):
    model = estimator(**FEW)
    with pytest.warns(DataConversionWarning, match="1d array was expected"):
        column = model.fit(X, Y[:, None]).predict(X)
    np.testing.assert_array_equal(column, clone(model).fit(X, Y).predict(X))


LINE = np.linspace(-2, 2, 20)[:, None]
ODD = {
    "constant y": (X, np.full(20, 3.0)),
    "y all zero": (X, np.zeros(20)),
    "constant y of 1e150": (X, np.full(20, 1e150)),
    "y constant but for rounding": (X, 1e150 * (1 + 1e-15 * Y)),
    "constant column": (np.c_[X, np.full(20, 0.1)], Y),
    "every column constant": (np.full((20, 2), 0.1), Y),
    "duplicated rows": (np.repeat(X, 2, axis=0), np.repeat(Y, 2)),
    "rows repeated with other y": (np.repeat(X[:10], 2, axis=0), Y),
    "two equal columns": (X[:, [0, 0]], Y),
    "integers": (RNG.integers(0, 5, (20, 2)), RNG.integers(0, 5, 20)),
    "booleans": (X > 0, Y > 0),
    "float32": (X.astype(np.float32), Y.astype(np.float32)),
    "Fortran order": (np.asfortranarray(X), Y),
    "lists": (X.tolist(), Y.tolist()),
    "X of 1e150": (1e150 * X, Y),
    "X of 1e-150": (1e-150 * X, Y),
    "y of 1e150": (X, 1e150 * Y),
    "y of 1e-150": (X, 1e-150 * Y),
    "all of 1e150": (1e150 * X, 1e150 * Y),
    "columns of 1e150 and 1e-150": (X * [1e150, 1e-150], Y),
    "far from zero": (1e8 + X, 1e8 + Y),
    "more columns than rows": (RNG.standard_normal((6, 15)), RNG.standard_normal(6)),
    "two rows": (X[:2], Y[:2]),
    "two equal rows": (X[[0, 0]], Y[[0, 0]]),
    "no noise": (LINE, np.sin(2 * LINE[:, 0])),
    "a straight line": (LINE, 3 * LINE[:, 0]),
    "an outlier": (LINE, np.r_[1e6, LINE[1:, 0]]),
}


def nothing_is_wrong(model, rows):
    """All that a fit can say of some rows is finite, spreads are positive."""
    dist = model.predict_dist(rows)
    moments, summary = dist.moments(), dist.summary()
    band = model.residual_sd(rows)
    function = model.regression_function(rows)
    mean, std = model.predict(rows, return_std=True)
    said = [
        mean,
        std,
        *moments,
        *summary,
        *band,
        *function.summary(),
        dist.quantile([1e-6, 0.5, 1 - 1e-6]),
        dist.logpdf(summary.mean),
        dist.cdf(summary.mean),
        dist.crps(summary.mean),
        dist.sample(3, random_state=0),
        *dist.components(),
    ]
    assert all(np.isfinite(values).all() for values in said)
    assert (std > 0).all()
    assert (function.std() > 0).all()
    assert (band.mean > 0).all()
    assert (band.lower <= band.upper).all()
    assert (summary.lower <= summary.upper).all()
    assert ((dist.cdf(mean) >= 0) & (dist.cdf(mean) <= 1)).all()


@each_estimator
@pytest.mark.parametrize("case", ODD)
def test_odd_data_give_a_fit(estimator, case):
    rows, response = ODD[case]
    model = estimator(**FEW | {"draws": 20, "warmup": 20})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)  # of course: 20 draws
        warnings.simplefilter("ignore", DataWarning)  # of values that are frequent
        model.fit(rows, response)
        table = np.asarray(rows, dtype=float)
        nothing_is_wrong(model, table)
        centre, spread = table.mean(axis=0), np.ptp(table / 2, axis=0)
        for far in (10.0, 1e6):
            nothing_is_wrong(model, centre + far * spread * [[1.0], [-1.0]])
        nothing_is_wrong(model, np.full((1, table.shape[1]), 1e300))
        nothing_is_wrong(model, np.full((1, table.shape[1]), -1e-300))
    for name in model.draws_:
        assert np.isfinite(model.draws_[name]).all()
    # Predictions are where the data are.
    response = np.asarray(response, dtype=float)
    low, high = response.min() / 2, response.max() / 2
    reach = 2 * (high - low) + 1e-6 * abs(high)
    assert (model.predict(table) / 2 >= low - reach).all()
    assert (model.predict(table) / 2 <= high + reach).all()


def test_a_constant_response_is_predicted():
    for estimator in ESTIMATORS.values():
        dist = estimator(**FEW | {"draws": 50, "warmup": 100}).fit(X, np.full(20, 3.0))
        np.testing.assert_allclose(dist.predict(X), 3.0, atol=0.02)


def test_far_away_the_prior_is_left():
    model = StandardGP(**FEW | {"draws": 50, "warmup": 50}).fit(X, Y)
    far, farther = model.predict_dist([[1e6, 0.0], [1e300, -1e300]]).moments().std
    assert far == farther
    assert far > Y.std() / 2


def test_settings_of_numpy_are_settings():
    settings = {"chains": np.int64(1), "draws": np.int32(5), "warmup": np.int64(0)}
    model = StandardGP(**FEW | settings).fit(X, Y)
    assert model.draws_.log_density.shape == (1, 5)
