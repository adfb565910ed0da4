"""Data frames with text, categories, booleans and dates."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

import gplc
from gplc._fitted import training_data
from gplc.estimators import DataWarning
from gplc.estimators.files import ESTIMATORS
from gplc.kernels import Category, Matern32, Ordinal, SquaredExponential
from gplc.processes.hilbert import Hilbert

SHORT = {"chains": 1, "draws": 15, "warmup": 10, "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def table():
    rng = np.random.default_rng(1)
    group = rng.integers(0, 3, 30)
    return pd.DataFrame(
        {
            "x": rng.normal(size=30),
            "group": np.array(["a", "b", "c"])[group],
            "on": rng.random(30) < 0.5,
            "when": pd.Timestamp("2024-03-01") + pd.to_timedelta(rng.uniform(0, 90, 30), "D"),
            "y": group + 0.1 * rng.normal(size=30),
        }
    )


@pytest.mark.parametrize("key", ESTIMATORS)
@pytest.mark.filterwarnings("ignore::gplc.estimators.DataWarning")
def test_mixed_columns_work_in_every_model_and_come_back_from_a_file(key, table, tmp_path):
    X = table.drop(columns="y")
    model = ESTIMATORS[key](**SHORT).fit(X, table["y"])
    assert list(model.feature_names_in_) == list(X.columns)
    model.save(tmp_path / "fit.nc")
    again = gplc.load(tmp_path / "fit.nc")
    assert again.columns_ == model.columns_
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    of_polars = model.predict(pl.DataFrame(X.to_dict("list")))
    np.testing.assert_allclose(of_polars, model.predict(X), rtol=1e-9)
    assert [note.split(" ")[0] for note in model.notes_] == ["'group'", "'on'", "'when'"]
    assert "days since 2024-03-0" in model.notes_[2]
    loo = model.loo()
    assert np.isfinite(loo.log_density).all()


@pytest.mark.filterwarnings("ignore::gplc.estimators.DataWarning")
def test_the_names_of_levels_say_nothing(table):
    fits = []
    for names in ({"a": "a", "b": "b", "c": "c"}, {"a": "z", "b": "q", "c": "aa"}):
        X = table[["x", "group"]].assign(group=table["group"].map(names))
        model = gplc.StandardGP(**SHORT).fit(X, table["y"])
        fits.append(model.predict(X))
    np.testing.assert_allclose(*fits, rtol=1e-8)


def test_a_new_level_is_predicted_from_the_prior_with_a_note(table):
    model = gplc.StandardGP(**SHORT)
    with pytest.warns(DataWarning, match="'group' is taken as a category with 3 levels: a, b, c"):
        model.fit(table[["x", "group"]], table["y"])
    new = pd.DataFrame({"x": [0.0, 0.0], "group": ["a", "other"]})
    with pytest.warns(DataWarning, match="not seen in training.*'other' in column 'group'"):
        known, unknown = model.predict_dist(new).std()
    assert unknown > 2.0 * known


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.filterwarnings("ignore::gplc.estimators.DataWarning")
def test_known_and_new_levels_are_predicted_by_the_textbook(ordered, table):
    """Every covariance written out, of levels by name: a new one is like none of the others."""
    levels = ["c", "a", "b"]
    X = table[["x", "group"]].assign(
        group=pd.Categorical(table["group"], levels, ordered=True) if ordered else table["group"]
    )
    model = gplc.StandardGP(**SHORT).fit(X, table["y"])
    new = pd.DataFrame({"x": [0.3, -1.0, 0.3], "group": ["a", "c", "other"]})
    scale, place = model.y_scaling_.scale, model.y_scaling_.location
    y = (table["y"].to_numpy() - place) / scale
    x, x_new = ((t["x"] - table["x"].mean()) / table["x"].std(ddof=0) for t in (X, new))

    def gap(a, b):
        known = a in levels and b in levels
        apart = abs(levels.index(a) - levels.index(b)) if known else np.inf if a != b else 0.0
        return apart if ordered else float(a != b)

    def covariance(theta, a, b):
        gaps = np.array([[gap(one, other) for other in b[1]] for one in a[1]])
        smooth = np.subtract.outer(np.asarray(a[0]), np.asarray(b[0])) / theta["length_scale"]
        between = np.exp(-theta["level_distance[1]"] * gaps)
        own = "k4." if ordered else ""
        offsets = np.exp(-theta[f"{own}level_distance[1]"] * gaps) if ordered else gaps == 0.0
        of_x = theta["signal_sd"] ** 2 * np.exp(-(smooth**2))
        return 1.0 + of_x * between + theta[f"{own}level_sd[1]"] ** 2 * offsets

    means, variances = [], []
    for values in np.exp(model.chains_[0].theta):
        theta = dict(zip(model.model_.names, values, strict=True))
        old, asked = (x, X["group"]), (x_new, new["group"])
        noise = theta["noise_sd"] ** 2
        solved = np.linalg.solve(
            covariance(theta, old, old) + noise * np.eye(30), covariance(theta, old, asked)
        )
        means.append(y @ solved)
        explained = np.sum(covariance(theta, old, asked) * solved, axis=0)
        variances.append(np.diag(covariance(theta, asked, asked)) - explained + noise)
    dist = model.predict_dist(new)
    np.testing.assert_allclose(dist.mean(), place + scale * np.mean(means, axis=0), rtol=1e-7)
    variance = np.mean(variances, axis=0) + np.var(means, axis=0)
    np.testing.assert_allclose(dist.var(), scale**2 * variance, rtol=1e-7)


@pytest.mark.filterwarnings("ignore::gplc.estimators.DataWarning")
def test_ordered_levels_and_kernels_of_ones_own(table):
    X = table[["x", "group"]]
    ordered = X.assign(group=pd.Categorical(X["group"], ["c", "a", "b", "unused"], ordered=True))
    model = gplc.StandardGP(**SHORT).fit(ordered, table["y"])
    assert any(isinstance(leaf, Ordinal) for leaf in model.model_.kernel.leaves)
    assert model.columns_.each[1].levels == ("c", "a", "b", "unused")
    model = gplc.StandardGP(kernel=Matern32(), mean="linear", **SHORT).fit(X, table["y"])
    assert [leaf.inputs for leaf in model.model_.kernel.leaves] == [(0,), (1,), (1,), (), (), (0,)]
    model = gplc.StandardGP(kernel=Matern32() + Category(), **SHORT).fit(X, table["y"])
    assert repr(model.model_.kernel) == "Matern32().on(0) + Category().on(1)"
    with pytest.raises(ValueError, match="on column 'group', which holds levels"):
        gplc.StandardGP(kernel=SquaredExponential().on(1), **SHORT).fit(X, table["y"])


@pytest.mark.parametrize("key", ESTIMATORS)
@pytest.mark.filterwarnings("ignore::gplc.estimators.DataWarning")
def test_levels_alone_will_do(key, table):
    model = ESTIMATORS[key](**SHORT).fit(table[["group"]], table["y"])
    means = model.predict(pd.DataFrame({"group": ["a", "b", "c"]}))
    assert (np.diff(means) > 0.3).all()


def test_what_cannot_be_is_refused_in_one_line(table):
    model = gplc.StandardGP(**SHORT)
    X = table[["x", "group"]]
    with pytest.raises(ValueError, match="column 'id' has as many levels as rows, 30"):
        model.fit(X.assign(id=[f"row {k}" for k in range(30)]), table["y"])
    gap = X.copy()
    gap.loc[4, "group"] = None
    with pytest.raises(ValueError, match="NaN in row 4, column 'group'"):
        model.fit(gap, table["y"])
    with pytest.raises(ValueError, match="column 'group' holds levels"):
        gplc.StandardGP(approximation=Hilbert(), **SHORT).fit(X, table["y"])
    assert not model.in_basis(pd.concat([X] * 100, ignore_index=True).assign(x=range(3000)))


@pytest.mark.filterwarnings("ignore::gplc.estimators.DataWarning")
def test_dates_are_numbers_in_a_unit(table):
    when = pd.Timestamp("2024-03-01 06:00") + pd.to_timedelta(np.arange(30.0) / 10.0, "h")
    X = pd.DataFrame({"when": when.tz_localize("Europe/Paris")})
    model = gplc.StandardGP(**SHORT).fit(X, table["y"])
    assert (model.columns_.each[0].unit, model.columns_.each[0].origin) == ("hours", "2024-03-01")
    np.testing.assert_allclose(training_data(model)[0][:, 0], 5.0 + np.arange(30.0) / 10.0)
    with pytest.raises(ValueError, match="'soon' in row 0, column 'when', which is no date"):
        model.predict(pd.DataFrame({"when": ["soon"]}))


@pytest.mark.filterwarnings("ignore")
def test_reports_and_pictures_go_along_levels_and_dates(table):
    from gplc.report import render_report

    model = gplc.LatentVarianceGP(**SHORT).fit(table[["group", "when"]], table["y"])
    for draw in (gplc.plots.fan, gplc.plots.residual_sd, gplc.plots.surprise):
        ax = draw(model, "group")
        assert ax.get_xlabel() == "group"
        assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "b", "c"]
    assert len(gplc.plots.fan(model, "group").patches) == 6  # bars, not a band across levels
    ridge = gplc.plots.ridge(model, "group")
    assert [label.get_text() for label in ridge.get_yticklabels()] == ["a", "b", "c"]
    gplc.plots.partial_dependence(model, "group")
    gplc.plots.ridge(model, "group")
    assert "days since" in gplc.plots.residual_sd(model, "when").get_xlabel()
    page = render_report(model)
    assert "is taken as a category" in page
    commonest = (
        table["group"].value_counts().sort_index().sort_values(ascending=False, kind="stable")
    )
    cells = ["group", "3", commonest.index[0], str(commonest.iloc[0])]
    assert re.search(r"\s*".join(rf"<t[dh][^>]*>{cell}</t[dh]>" for cell in cells), page)
