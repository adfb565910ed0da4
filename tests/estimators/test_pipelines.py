"""A fitted Pipeline with an estimator of ours last is as good as the estimator."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import gplc
from gplc import plots
from gplc._fitted import as_fitted, feature_names, training_data
from gplc.report import render_report

pytestmark = pytest.mark.usefixtures("no_windows")
SMALL = {"chains": 2, "draws": 20, "warmup": 15, "random_state": 0}
RNG = np.random.default_rng(0)
X = pd.DataFrame({"time": RNG.uniform(10, 50, 20), "dose": RNG.uniform(0.1, 0.2, 20)})
Y = pd.Series(np.sin(X["time"] / 8) + X["dose"], name="height")
GROUPS = X.assign(group=np.where(np.arange(20) % 3, "a", "b"))


@pytest.fixture(scope="module")
def scaled():
    """Steps that can be undone."""
    return make_pipeline(StandardScaler(), gplc.LatentCovariateGP(**SMALL)).fit(X, Y)


@pytest.fixture(scope="module")
def encoded():
    """Steps that cannot be undone."""
    columns = make_column_transformer(
        (StandardScaler(), ["time", "dose"]), (OneHotEncoder(drop="first"), ["group"])
    )
    return make_pipeline(columns, gplc.StandardGP(**SMALL)).fit(GROUPS, Y)


def test_steps_are_undone_where_they_can_be(scaled):
    model = as_fitted(scaled)
    inputs, response = training_data(model)
    np.testing.assert_allclose(inputs, X)
    np.testing.assert_allclose(response, Y)
    assert feature_names(model) == ["time", "dose"]
    np.testing.assert_allclose(model.predict_dist(X).mean(), scaled.predict(X))


@pytest.mark.parametrize("kind", plots.KINDS)
def test_every_picture_of_a_pipeline(scaled, kind):
    figure = plots.KINDS[kind](scaled)
    figure.draw_without_rendering()


def test_pictures_have_the_units_of_the_table(scaled):
    low, high = plots.fan(scaled, "time", data=False).get_xlim()
    assert low < 15
    assert high > 45
    ax = plots.coverage(scaled, X=X, y=Y, feature="time", bins=2)
    assert ax.get_xlabel() == "time"


def test_steps_that_cannot_be_undone_leave_their_own_units(encoded):
    model = as_fitted(encoded)
    names = ["standardscaler__time", "standardscaler__dose", "onehotencoder__group_b"]
    assert feature_names(model) == names
    plots.overview(encoded)
    one, other = plots.pit(encoded), plots.pit(encoded, X=GROUPS, y=Y)
    assert one.get_xlabel() == f"PIT of {len(Y)} rows left out"
    assert other.get_xlabel() == f"PIT of {len(Y)} given rows"


def test_a_step_that_only_seems_to_be_undone_is_noticed():
    """FunctionTransformer without an inverse gives back what it gets."""
    for inverse, undone in ((None, False), (np.exp, True)):
        step = FunctionTransformer(np.log, inverse_func=inverse)
        model = make_pipeline(step, gplc.StandardGP(**SMALL)).fit(X.to_numpy(), Y)
        assert as_fitted(model).undone is undone


def test_report_of_a_pipeline(scaled, encoded):
    page = render_report(scaled)
    assert "height given time, dose" in page
    assert "make_pipeline(StandardScaler(), gplc.LatentCovariateGP(" in page
    assert "length_scale[dose]" in render_report(scaled[-1].fit(X, Y))
    assert "onehotencoder__group_b" in render_report(encoded)


def test_compare_takes_pipelines():
    models = {
        "alone": make_pipeline(gplc.StandardGP(**SMALL)),
        "scaled": make_pipeline(StandardScaler(), gplc.StandardGP(**SMALL)),
    }
    result = gplc.compare(X, Y, models, folds=2)
    np.testing.assert_allclose(result.scores["alone"], result.scores["scaled"], rtol=1e-4)
    assert result.rhat["scaled"] > 0


def test_other_pipelines_are_refused():
    with pytest.raises(ValueError, match=r"got a Pipeline that ends in Ridge\(\)"):
        plots.fan(make_pipeline(StandardScaler(), Ridge()).fit(X, Y))
