"""Known noise through the estimators: fits, predictions, files, scikit-learn's routing."""

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gplc
from gplc import _fitted
from gplc.estimators import ESTIMATORS
from gplc.metrics import nlpd_scorer

FEW = {"chains": 2, "draws": 20, "warmup": 20, "predictive_draws": 20, "random_state": 0}
rng = np.random.default_rng(0)
X = rng.uniform(-2.0, 2.0, size=(30, 1))
SDS = np.where(X[:, 0] < 0.0, 0.5, 5.0)
Y = 10.0 * np.sin(2.0 * X[:, 0]) + SDS * rng.standard_normal(30)
each_estimator = pytest.mark.parametrize("estimator", ESTIMATORS.values())


def fitted(estimator, **settings):
    return estimator(**FEW | settings).fit(X, Y, noise_std=SDS)


@each_estimator
def test_known_noise_reaches_the_model_in_its_own_units(estimator):
    model = fitted(estimator)
    np.testing.assert_allclose(model.model_.known_noise.sds * Y.std(), SDS)
    np.testing.assert_allclose(_fitted.known_noise(model), SDS)
    other = fitted(estimator, standardize=False)
    np.testing.assert_allclose(other.model_.known_noise.sds, SDS)
    one = estimator(**FEW).fit(X, Y, noise_std=0.5)
    np.testing.assert_allclose(_fitted.known_noise(one), np.full(30, 0.5))


@each_estimator
def test_three_kinds_of_prediction(estimator):
    model = fitted(estimator)
    new = [[-1.0], [0.5]]
    plain, noisy = model.predict_dist(new), model.predict_dist(new, noise_std=[1.0, 3.0])
    np.testing.assert_allclose(noisy.mean(), plain.mean())
    np.testing.assert_allclose(noisy.var() - plain.var(), [1.0, 9.0], rtol=1e-9)
    assert (model.regression_function(new).var() < plain.var()).all()
    assert np.array_equal(noisy.components()[0], plain.components()[0])
    np.testing.assert_allclose(model.predict(new, True, noise_std=[1.0, 3.0])[1], noisy.std())
    np.testing.assert_allclose(
        model.predict_interval(new, noise_std=[1.0, 3.0]), noisy.interval(0.9)
    )
    assert np.array_equal(model.predict_dist(new, noise_std=0.0).var(), plain.var())


def test_known_noise_alone_leaves_a_new_measurement_without_noise():
    model = fitted(gplc.StandardGP, learned_noise=False)
    assert "noise_sd" not in model.draws_
    new = [[-1.0], [0.5]]
    np.testing.assert_allclose(model.predict_dist(new).var(), model.regression_function(new).var())
    covariate = fitted(gplc.LatentCovariateGP, learned_noise=False)
    assert "noise_sd" not in covariate.draws_
    with pytest.raises(ValueError, match="learned_noise=False is the standard model"):
        fitted(gplc.LatentVarianceGP, learned_noise=False)
    with pytest.raises(ValueError, match="no noise at all"):
        gplc.StandardGP(**FEW, learned_noise=False).fit(X, Y)


@each_estimator
def test_files_keep_it(estimator, tmp_path):
    model = fitted(estimator)
    model.save(tmp_path / "fit.nc")
    again = gplc.load(tmp_path / "fit.nc")
    assert np.array_equal(again.predict(X), model.predict(X))
    np.testing.assert_allclose(_fitted.known_noise(again), SDS)
    assert np.array_equal(again.extend(5).draws_.theta, model.extend(5).draws_.theta)


def test_checkpoint_of_other_noise_is_refused(tmp_path):
    path = tmp_path / "run.nc"
    gplc.StandardGP(**FEW, checkpoint=path).fit(X, Y, noise_std=SDS)
    with pytest.raises(ValueError, match="noise_std was"):
        gplc.StandardGP(**FEW, checkpoint=path).fit(X, Y)


@each_estimator
def test_routing_through_pipeline_cross_validation_and_grid_search(estimator):
    with config_context(enable_metadata_routing=True):
        model = estimator(**FEW).set_fit_request(noise_std=True)
        pipeline = make_pipeline(StandardScaler(), model)
        whole = pipeline.fit(X, Y, noise_std=SDS)
        np.testing.assert_allclose(_fitted.known_noise(whole[-1]), SDS)
        scorer = nlpd_scorer.set_score_request(noise_std=True)
        scores = cross_val_score(pipeline, X, Y, cv=2, scoring=scorer, params={"noise_std": SDS})
        # By hand: rows and their noise stay together.
        first, second = np.arange(15), np.arange(15, 30)
        for score, train, test in zip(scores, (second, first), (first, second), strict=True):
            by_hand = make_pipeline(StandardScaler(), model).fit(
                X[train], Y[train], noise_std=SDS[train]
            )
            assert score == scorer(by_hand, X[test], Y[test], noise_std=SDS[test])
        search = GridSearchCV(
            model,
            {"warmup": [10, 20]},
            cv=2,
            scoring=scorer.set_score_request(noise_std=False),
        ).fit(X, Y, noise_std=SDS)
        np.testing.assert_allclose(_fitted.known_noise(search.best_estimator_), SDS)


def bad(values, **changes):
    result = np.array(values, dtype=float)
    for row, value in changes.items():
        result[int(row[3:])] = value
    return result


@pytest.mark.parametrize(
    ("noise", "told"),
    [
        (bad(SDS, row3=-0.1), r"noise_std must be above 0, got -0.1 in row 3; give the SD"),
        (
            bad(SDS, row4=0.0, row7=0.0),
            r"must be above 0, got 0.0 in row 4 \(and 1 more",
        ),
        (bad(SDS, row5=np.nan), r"got NaN in row 5"),
        (bad(SDS, row5=np.inf), r"got inf in row 5"),
        (SDS[:4], r"one number or have one for each of 30 rows, got shape \(4,\)"),
        (pd.Series(["a"] * 30, name="error"), r"noise_std \(column 'error'\) must hold numbers"),
        (
            pd.Series(bad(SDS, row3=-0.1), name="error"),
            r"noise_std \(column 'error'\) must be above 0, got -0.1 in row 3",
        ),
    ],
)
def test_bad_noise_is_one_line(noise, told):
    with pytest.raises(ValueError, match=told) as error:
        gplc.StandardGP(**FEW).fit(X, Y, noise_std=noise)
    assert "\n" not in str(error.value)


def test_rows_without_a_response_are_counted(tmp_path):
    response = bad(Y, row2=np.nan, row9=np.nan)
    with pytest.warns(UserWarning, match="2 of 30 rows have no response and are left out"):
        model = gplc.StandardGP(**FEW).fit(pd.DataFrame({"x": X[:, 0]}), response, noise_std=SDS)
    kept = np.delete(np.arange(30), [2, 9])
    np.testing.assert_allclose(_fitted.known_noise(model), SDS[kept])
    alone = gplc.StandardGP(**FEW).fit(pd.DataFrame({"x": X[kept, 0]}), Y[kept], SDS[kept])
    assert np.array_equal(alone.draws_.theta, model.draws_.theta)
    model.save(tmp_path / "fit.nc")
    assert gplc.load(tmp_path / "fit.nc").notes_ == model.notes_
    # The number of a bad row is that of the table, not of what is left.
    with pytest.raises(ValueError, match="row 20"):
        gplc.StandardGP(**FEW).fit(X, response, noise_std=bad(SDS, row20=-1.0))
    with pytest.raises(ValueError, match="2 rows with a response are needed"):
        gplc.StandardGP(**FEW).fit(X, np.full(30, np.nan))


def test_missing_inputs_are_refused_with_their_rows():
    frame = pd.DataFrame({"a": X[:, 0], "b": np.arange(30.0)})
    frame.loc[[4, 11], "b"] = np.nan
    model = gplc.StandardGP(**FEW)
    told = r"X contains NaN in row 4, column 'b' \(rows 4, 11: 2 in all\); drop such rows, or fill"
    with pytest.raises(ValueError, match=told):
        model.fit(frame, Y)
    model.fit(frame.fillna(0.0), Y)
    with pytest.raises(ValueError, match=told):
        model.predict(frame)


def test_pictures_and_report_show_it():
    model = fitted(gplc.StandardGP)
    ax = gplc.plots.fan(model)
    assert len(ax.containers) == 1  # error bars
    page = gplc.report.render_report(model)
    assert "SD goes from 0.5 to" in " ".join(page.split())
    narrow = gplc.metrics.pit(_fitted.training_dist(model), Y)
    wide = gplc.metrics.pit(model.predict_dist(X), Y)
    assert np.abs(narrow - 0.5).max() < np.abs(wide - 0.5).max()
