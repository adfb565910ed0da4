"""Tables come back as they came in, and names of columns stand where people look."""

import sys
from types import SimpleNamespace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import GroupKFold, RepeatedKFold, TimeSeriesSplit

import gplc
from gplc import plots
from gplc.comparison import compare

SMALL = {"chains": 2, "draws": 20, "warmup": 15, "random_state": 0}
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {"time": RNG.uniform(10, 50, 16), "dose": RNG.uniform(0.1, 0.2, 16)},
    index=[f"row {k}" for k in range(16)],
)
Y = np.sin(TABLE["time"].to_numpy() / 8)


@pytest.fixture(scope="module")
def model():
    return gplc.LatentCovariateGP(**SMALL).fit(TABLE, Y)


# --- tables ---------------------------------------------------------------------------------


ANSWERS = {
    "predict_quantiles": lambda model, X: model.predict_quantiles(X, [0.1, 0.9], as_frame=True),
    "a quantile": lambda model, X: model.predict_quantiles(X, 0.5, as_frame=True),
    "predict_interval": lambda model, X: model.predict_interval(X, as_frame=True),
    "intervals": lambda model, X: model.predict_interval(X, [0.5, 0.9], as_frame=True),
    "predict_dist": lambda model, X: model.predict_dist(X).to_frame(quantiles=[0.25]),
    "regression_function": lambda model, X: model.regression_function(X).to_frame(),
    "residual_sd": lambda model, X: model.residual_sd(X).to_frame(),
}
COLUMNS = {
    "predict_quantiles": ["q0.1", "q0.9"],
    "a quantile": ["q0.5"],
    "predict_interval": ["lower", "upper"],
    "intervals": ["lower_0.5", "upper_0.5", "lower_0.9", "upper_0.9"],
    "predict_dist": ["mean", "sd", "lower", "upper", "q0.25"],
    "regression_function": ["mean", "sd", "lower", "upper"],
    "residual_sd": ["mean", "lower", "upper"],
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_answers_are_tables_of_the_kind_that_was_given(model, answer):
    few = TABLE.iloc[3:6]
    from_pandas = ANSWERS[answer](model, few)
    assert isinstance(from_pandas, pd.DataFrame)
    assert list(from_pandas.columns) == COLUMNS[answer]
    assert list(from_pandas.index) == ["row 3", "row 4", "row 5"]
    from_polars = ANSWERS[answer](model, pl.from_pandas(few))
    assert isinstance(from_polars, pl.DataFrame)
    np.testing.assert_array_equal(from_polars.to_numpy(), from_pandas.to_numpy())


def test_tables_hold_what_the_arrays_do(model):
    quantiles = model.predict_quantiles(TABLE, [0.1, 0.9])
    intervals = model.predict_interval(TABLE, [0.5, 0.8])
    assert intervals.shape == (16, 2, 2)
    np.testing.assert_allclose(intervals[:, 1], quantiles)
    np.testing.assert_array_equal(intervals[:, 0], model.predict_interval(TABLE, 0.5))
    frame = model.predict_interval(TABLE, [0.5, 0.8], as_frame=True)
    np.testing.assert_array_equal(frame.to_numpy(), intervals.reshape(16, 4))
    mean, lower, upper = model.residual_sd(TABLE)
    band = model.residual_sd(TABLE).to_frame()
    np.testing.assert_array_equal(band.to_numpy().T, [mean, lower, upper])


@pytest.mark.parametrize("chosen", [2, -1, slice(1, 3), [0, 5], np.arange(16) > 12])
def test_rows_that_are_chosen_keep_their_labels(model, chosen):
    part = model.predict_dist(TABLE)[chosen].to_frame()
    expected = model.predict_dist(TABLE).to_frame().iloc[np.atleast_1d(np.arange(16)[chosen])]
    pd.testing.assert_frame_equal(part, expected)


@pytest.mark.parametrize("coverage", [[0.5, 1.0], [], "0.9", [[0.5]], None])
def test_wrong_coverages_are_refused(model, coverage):
    with pytest.raises(ValueError, match=r"coverage|q must"):
        model.predict_interval(TABLE, coverage)


def test_draws_and_diagnostics_as_tables(model):
    draws = model.draws_.to_frame()
    assert len(draws) == 40
    assert draws.loc[draws["chain"] == 1, "draw"].tolist() == list(range(20))
    one = draws.query("chain == 1 and draw == 3")["noise_sd"].item()
    assert one == model.draws_["noise_sd"][1, 3]
    told = model.diagnostics_.to_frame()
    assert told.loc["log noise_sd", "rhat"] == model.diagnostics_.rows["log noise_sd"].rhat


SCALES = TABLE.std(ddof=0), Y.std()


def test_hyperparameters_are_in_the_units_of_the_columns(model):
    standard = model.draws_.standardized()
    x, y = SCALES
    np.testing.assert_allclose(
        model.draws_["length_scale"], standard["length_scale"] * x.to_numpy()
    )
    np.testing.assert_allclose(model.draws_["noise_sd"], standard["noise_sd"] * y)
    np.testing.assert_array_equal(
        model.draws_["latent_length_scale"], standard["latent_length_scale"]
    )
    frame = model.draws_.to_frame()
    assert frame.attrs["units"] == {
        "signal_sd": "y",
        "length_scale[time]": "time",
        "length_scale[dose]": "dose",
        "latent_length_scale": "",
        "noise_sd": "y",
    }
    np.testing.assert_array_equal(
        frame["length_scale[dose]"], model.draws_["length_scale"][:, :, 1].ravel()
    )
    posterior = model.draws_.to_arviz()["posterior"]
    assert posterior["input"].to_numpy().tolist() == ["time", "dose"]
    assert posterior["noise_sd"].attrs == {"units": "y"}
    assert "length_scale[dose]" in model.draws_._repr_html_()


def test_diagnostics_are_in_the_units_of_y_and_so_are_pictures(model, tmp_path):
    told, units = model.diagnostics_, model.draws_.units
    assert told.rows["log noise_sd"].mean == pytest.approx(np.log(model.draws_["noise_sd"]).mean())
    row = model.model_.landmarks.rows[0]
    mean = model.regression_function(TABLE.iloc[[row]]).mean()
    assert told.rows[f"f(x) at row {row}"].mean == pytest.approx(mean[0], abs=0.05 * SCALES[1])
    assert units.affine("upper tail at row 3") == (0.0, 1.0)
    model.save(tmp_path / "a.nc")
    again = gplc.load(tmp_path / "a.nc")
    for name, each in told.rows.items():
        np.testing.assert_allclose(again.diagnostics_.rows[name], each)
    np.testing.assert_array_equal(again.draws_["noise_sd"], model.draws_["noise_sd"])


KERNELS = {
    "Linear()": {"slope_sd[time]": "y / time", "noise_sd": "y"},
    "Periodic(inputs=[0])": {"length_scale": "", "period": "", "signal_sd": "y"},
    "Matern32() * Linear()": {"signal_sd": "", "slope_sd[time]": "", "noise_sd": "y"},
    "SquaredExponential(ard=False)": {"length_scale": "", "signal_sd": "y"},
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_units_of_other_kernels(kernel):
    made = eval(kernel, vars(gplc.kernels))
    few = gplc.StandardGP(kernel=made, **SMALL | {"draws": 4, "warmup": 2}).fit(TABLE, Y)
    units = few.draws_.to_frame().attrs["units"]
    assert units | KERNELS[kernel] == units


# --- names, draws of y ----------------------------------------------------------------------


def test_names_of_columns_stand_for_numbers(model):
    assert "log length_scale[dose]" in model.diagnostics_.rows
    assert "length_scale[dose]" in str(model.diagnostics_)
    with mpl.rc_context({"backend": "Agg"}):
        assert plots.trace(model, "log length_scale[dose]").get_ylabel().endswith("[dose]")
        plt.close("all")
    without = gplc.StandardGP(**SMALL).fit(TABLE.to_numpy(), Y)
    assert "log length_scale[1]" in without.diagnostics_.rows


def test_draws_of_y_are_the_same_if_the_model_has_a_seed(model):
    first = model.sample_y(TABLE, 3)
    np.testing.assert_array_equal(first, model.sample_y(TABLE, 3))
    assert not np.array_equal(first, model.sample_y(TABLE, 3, random_state=1))
    free = gplc.StandardGP(**SMALL | {"random_state": None}).fit(TABLE, Y)
    assert not np.array_equal(free.sample_y(TABLE), free.sample_y(TABLE))


def test_ppf_is_quantile(model):
    dist = model.predict_dist(TABLE)
    np.testing.assert_array_equal(dist.ppf([0.1, 0.5]), dist.quantile([0.1, 0.5]))


# --- notebooks ------------------------------------------------------------------------------


def test_notebooks_show_fits_distributions_and_comparisons(model):
    html = model._repr_mimebundle_()["text/html"]
    assert "Verdict: do not use. " in html
    assert "2 chains of 20 draws. " in html
    assert html.endswith(model.diagnostics_._repr_html_())
    assert html.count("f(x)") < 4  # the worst of each kind, not 85 lines
    assert "log length_scale[dose]" in html
    assert "Verdict" not in gplc.StandardGP()._repr_mimebundle_()["text/html"]
    shown = model.predict_dist(TABLE)._repr_html_()
    assert shown.count("<tr>") == 6
    assert "Predictive(n_rows=16, " in shown
    result = compare(TABLE, Y, {"a<b": gplc.StandardGP(**SMALL)}, folds=2)
    assert "<td>a&lt;b</td>" in result._repr_html_()
    assert "16 rows in 2 folds" in result._repr_html_()


@pytest.mark.parametrize("draw", [plots.overview, plots.chains, *plots.KINDS.values()])
def test_a_notebook_shows_a_figure_once(model, draw, monkeypatch):
    """As the value of a cell not while it is open, for then the notebook shows it anyway."""
    shown = []
    # Matplotlib asks whether it runs inside IPython when the first figure is made.
    outside = SimpleNamespace(get_ipython=lambda: None, version_info=(9, 0))
    monkeypatch.setitem(sys.modules, "IPython", outside)
    display = SimpleNamespace(display_png=lambda data, raw: shown.append(data))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    with mpl.rc_context({"backend": "Agg"}):
        figure = draw(model)
        figure._ipython_display_()
        assert shown == []
        plt.close(figure)
        figure._ipython_display_()
    assert shown[0].startswith(b"\x89PNG")


# --- folds ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("folds", "groups", "judged", "count"),
    [
        (TimeSeriesSplit(3), None, 12, 3),
        (GroupKFold(2), np.arange(16) % 4, 16, 2),
        (RepeatedKFold(n_splits=2, n_repeats=2, random_state=0), None, 16, 4),
        ([(np.arange(8), np.arange(8, 16))], None, 8, 1),
        ([(np.arange(16) < 8, np.arange(16) >= 8)], None, 8, 1),
    ],
)
def test_compare_takes_splitters(folds, groups, judged, count):
    model = gplc.StandardGP(**SMALL | {"chains": 1})
    result = compare(TABLE, Y, {"std": model}, folds=folds, groups=groups)
    assert np.isfinite(result.scores["std"]).sum() == judged
    assert f"{judged} rows in {count} folds" in str(result)
    assert np.isfinite(result.nlpd("std"))


def test_rows_left_out_twice_count_once():
    model = gplc.StandardGP(**SMALL | {"chains": 1})
    train, test = np.arange(8), np.arange(8, 16)
    once = compare(TABLE, Y, {"std": model}, folds=[(train, test)])
    twice = compare(TABLE, Y, {"std": model}, folds=[(train, test)] * 2)
    np.testing.assert_allclose(once.scores["std"], twice.scores["std"])


@pytest.mark.parametrize("folds", [1, 2.5, 17, "five", object()])
def test_wrong_folds_are_refused(folds):
    with pytest.raises(ValueError, match="folds must be"):
        compare(TABLE, Y, folds=folds)
