"""The estimators among scikit-learn's tools."""

import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from gplc import LatentCovariateGP, LatentVarianceGP, SquaredExponential, StandardGP
from gplc.estimators import ESTIMATORS
from gplc.metrics import nlpd, nlpd_scorer

FEW = {"chains": 1, "draws": 10, "warmup": 10, "predictive_draws": 10, "nodes": 3}
ISOTROPIC = SquaredExponential(ard=False)

each_estimator = pytest.mark.parametrize("estimator", ESTIMATORS.values())


@parametrize_with_checks(
    [
        # With ten inputs, a length scale for each takes longer to find than ten iterations.
        StandardGP(**FEW | {"kernel": ISOTROPIC}),
        LatentCovariateGP(**FEW),
        # GPLV updates z after each of its length scales: with ten inputs that takes long.
        LatentVarianceGP(**FEW | {"draws": 5, "warmup": 5, "kernel": ISOTROPIC}),
        LatentVarianceGP(**FEW | {"draws": 5, "warmup": 5, "kernel": ISOTROPIC, "link": "abs"}),
    ]
)
# Its responses are often one of three integers.
@pytest.mark.filterwarnings("ignore::gplc.estimators.DataWarning")
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(24, 2))
    return X, np.sin(2 * X[:, 0]) + 0.2 * rng.standard_normal(24)


def few(estimator, **settings):
    return estimator(**FEW | {"random_state": 0} | settings)


def all_draws(model):
    draws = model.draws_
    return np.concatenate(
        [part.ravel() for part in (draws.theta, draws.latent, draws.log_density, draws.nodes)]
    )


@each_estimator
def test_cross_validation_with_r2_and_nlpd(estimator, data):
    model = few(estimator, draws=200, warmup=100, predictive_draws=100)
    data = data[0][:, :1], data[1]
    r2 = cross_val_score(model, *data, cv=2)
    assert r2.shape == (2,)
    assert (r2 > 0.2).all()
    scores = cross_val_score(model, *data, cv=2, scoring=nlpd_scorer)
    # A Gaussian of the right SD would score -(1 + log(2 pi)) / 2 - log(SD of y).
    assert (scores > -1.4189 - np.log(data[1].std())).all()


@each_estimator
def test_grid_search(estimator, data):
    grid = {"kernel": [SquaredExponential(ard=True), SquaredExponential(ard=False)]}
    if estimator is LatentVarianceGP:
        grid["link"] = ["log", "abs"]
    search = GridSearchCV(few(estimator), grid, scoring=nlpd_scorer, cv=2).fit(*data)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_params_["kernel"] in grid["kernel"]
    assert search.predict(data[0]).shape == (24,)
    # The winner was fitted again on everything, with what was searched for.
    best = few(estimator, **search.best_params_).fit(*data)
    np.testing.assert_array_equal(search.predict(data[0]), best.predict(data[0]))


@each_estimator
def test_pipelines(estimator, data):
    X, y = data
    pipeline = make_pipeline(StandardScaler(), PolynomialFeatures(2), few(estimator))
    pipeline.fit(X, y)
    features = pipeline[:-1].transform(X)
    alone = few(estimator).fit(features, y)
    np.testing.assert_array_equal(pipeline.predict(X), alone.predict(features))
    mean, std = pipeline.predict(X, return_std=True)
    assert mean.shape == std.shape == (24,)
    assert nlpd_scorer(pipeline, X, y) == -nlpd(alone.predict_dist(features), y)
    scores = cross_val_score(pipeline, X, y, cv=2, scoring=nlpd_scorer)
    assert np.isfinite(scores).all()
    bare = make_pipeline(few(estimator)).fit(X, y)
    assert nlpd_scorer(bare, X, y) == nlpd_scorer(few(estimator).fit(X, y), X, y)


@each_estimator
def test_parameters_go_round(estimator):
    settings = {
        "kernel": SquaredExponential(ard=False, constant=0.5),
        "priors": {"signal_sd": (0.0, 0.5)},
        "chains": 3,
        "draws": 7,
        "warmup": 3,
        "sampler": "paper",
        "standardize": False,
        "nodes": 5,
        "node_rule": "random",
        "predictive_draws": None,
        "n_jobs": 2,
        "random_state": 11,
    }
    if estimator is LatentVarianceGP:
        settings["link"] = "abs"
    model = estimator(**settings)
    assert settings.items() <= model.get_params(deep=False).items()
    # Everything is stored as given: no copies, no conversions.
    assert all(getattr(model, name) is value for name, value in settings.items())
    assert estimator().set_params(**settings).get_params() == model.get_params()
    copy = clone(model)
    assert copy is not model
    assert copy.get_params() == model.get_params()
    with pytest.raises(ValueError, match="nonsense"):
        model.set_params(nonsense=1)


@each_estimator
def test_a_clone_is_not_fitted_and_fits_the_same(estimator, data):
    model = few(estimator).fit(*data)
    copy = clone(model)
    assert not hasattr(copy, "posterior_")
    np.testing.assert_array_equal(all_draws(copy.fit(*data)), all_draws(model))


@each_estimator
def test_a_fit_travels_to_another_process(estimator, data, tmp_path):
    X, y = data
    model = few(estimator).fit(X, y)
    here = model.predict_dist(X).summary()
    joblib.dump(model, tmp_path / "model.joblib")
    program = (
        "import sys, joblib, numpy as np\n"
        "model = joblib.load(sys.argv[1])\n"
        "np.save(sys.argv[3], np.array(model.predict_dist(np.load(sys.argv[2])).summary()))\n"
    )
    np.save(tmp_path / "X.npy", X)
    names = [str(tmp_path / name) for name in ("model.joblib", "X.npy", "there.npy")]
    subprocess.run([sys.executable, "-c", program, *names], check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "there.npy"), np.array(here))


@each_estimator
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_data_frames(estimator, frame, data):
    X, y = data
    table = frame({"dose": X[:, 0], "age": X[:, 1]})
    series = (pd if frame is pd.DataFrame else pl).Series(y)
    model = few(estimator).fit(table, series)
    assert model.n_features_in_ == 2
    assert list(model.feature_names_in_) == ["dose", "age"]
    plain = few(estimator).fit(X, y)
    assert not hasattr(plain, "feature_names_in_")
    np.testing.assert_array_equal(model.predict(table), plain.predict(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame({"dose": X[:, 0], "weight": X[:, 1]}))
    with pytest.raises(ValueError, match="same order"):
        model.predict(frame({"age": X[:, 1], "dose": X[:, 0]}))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)


@each_estimator
def test_an_int_gives_the_same_fit_again(estimator, data):
    model = few(estimator, random_state=5)
    first = all_draws(model.fit(*data))
    np.testing.assert_array_equal(all_draws(model.fit(*data)), first)
    other = few(estimator, random_state=6).fit(*data)
    assert (all_draws(other) != first).any()


@each_estimator
@pytest.mark.parametrize("kind", [np.random.RandomState, np.random.default_rng])
def test_a_generator_moves_on_with_every_fit(estimator, kind, data):
    model = few(estimator, random_state=kind(5))
    first = all_draws(model.fit(*data))
    second = all_draws(model.fit(*data))
    assert (first != second).any()
    again = few(estimator, random_state=kind(5))
    np.testing.assert_array_equal(all_draws(again.fit(*data)), first)
    np.testing.assert_array_equal(all_draws(again.fit(*data)), second)


def test_a_seed_sequence_is_left_as_it_was(data):
    seed = np.random.SeedSequence(3)
    model = few(StandardGP, random_state=seed)
    first = all_draws(model.fit(*data))
    np.testing.assert_array_equal(all_draws(model.fit(*data)), first)
    assert seed.n_children_spawned == 0


def test_without_a_random_state_fits_differ(data):
    model = few(StandardGP, random_state=None)
    first = all_draws(model.fit(*data))
    assert (all_draws(model.fit(*data)) != first).any()


@each_estimator
def test_workers_do_not_change_a_bit(estimator, data):
    alone = few(estimator, chains=3, n_jobs=1).fit(*data)
    together = few(estimator, chains=3, n_jobs=2).fit(*data)
    np.testing.assert_array_equal(all_draws(together), all_draws(alone))
    np.testing.assert_array_equal(together.predict(data[0]), alone.predict(data[0]))


def test_samples_of_y(data):
    model = few(StandardGP).fit(*data)
    first = model.sample_y(data[0], 5, random_state=1)
    assert first.shape == (24, 5)
    np.testing.assert_array_equal(model.sample_y(data[0], 5, random_state=1), first)
    rng = np.random.default_rng(1)
    one, two = (model.sample_y(data[0], 5, random_state=rng) for _ in range(2))
    assert (one != two).all()
