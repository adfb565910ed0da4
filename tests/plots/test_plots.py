"""Pictures show what the model says, and say what they cannot draw."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

import gplc
from gplc import plots
from gplc._fitted import slice_inputs, training_data
from gplc.plots import style
from gplc.plots.calibration import _wilson
from gplc.plots.noise import _aligned

pytestmark = pytest.mark.usefixtures("no_windows")
SMALL = {"chains": 2, "draws": 25, "warmup": 15, "random_state": 0}


@pytest.fixture(scope="module")
def covariate():
    """GPLC with one input that has a name."""
    data = gplc.datasets.make_paper("U1", n=24, random_state=0)
    return gplc.LatentCovariateGP(**SMALL).fit(
        pd.DataFrame(data.X, columns=["time"]), pd.Series(data.y, name="height")
    )


@pytest.fixture(scope="module")
def variance():
    """GPLV with three inputs without names."""
    data = gplc.datasets.make_paper("M1", n=24, random_state=0)
    return gplc.LatentVarianceGP(**SMALL).fit(data.X, data.y)


@pytest.fixture(scope="module")
def standard():
    return gplc.StandardGP(**SMALL).fit(np.arange(8.0)[:, None], np.arange(8.0) % 3)


def line(ax, label):
    return next(each for each in ax.get_lines() if each.get_label() == label)


def test_fan_draws_quantiles_and_data(covariate):
    ax = plots.fan(covariate, points=7)
    median = line(ax, "median")
    X, y = training_data(covariate)
    grid = np.linspace(X.min(), X.max(), 7)
    rows = pd.DataFrame({"time": grid})
    np.testing.assert_allclose(median.get_xdata(), grid)
    np.testing.assert_allclose(
        median.get_ydata(), covariate.predict_quantiles(rows, [0.5])[:, 0], rtol=1e-9
    )
    widest = ax.collections[0].get_datalim(ax.transData)
    ends = covariate.predict_interval(rows, 0.9)
    assert (widest.y0, widest.y1) == pytest.approx((ends.min(), ends.max()))
    np.testing.assert_allclose(line(ax, "data (24)").get_ydata(), y)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time", "height")


def test_training_data_are_those_given(covariate):
    data = gplc.datasets.make_paper("U1", n=24, random_state=0)
    X, y = training_data(covariate)
    np.testing.assert_allclose(X, data.X, rtol=1e-12)
    np.testing.assert_allclose(y, data.y, rtol=1e-12)


def test_slices_keep_the_other_inputs(variance):
    X, _ = training_data(variance)
    rows = slice_inputs(variance, "x2", [0.0, 1.0])
    assert rows[:, 1].tolist() == [0.0, 1.0]
    np.testing.assert_allclose(rows[:, [0, 2]], np.tile(np.median(X, axis=0)[[0, 2]], (2, 1)))
    rows = slice_inputs(variance, 0, [5.0], at=[1.0, 2.0, 3.0])
    assert rows.tolist() == [[5.0, 2.0, 3.0]]


def test_residual_sd_is_the_models(variance):
    ax = plots.residual_sd(variance, "x1", points=5)
    grid = line(ax, "posterior mean").get_xdata()
    band = variance.residual_sd(slice_inputs(variance, 0, grid))
    np.testing.assert_allclose(line(ax, "posterior mean").get_ydata(), band.mean)
    assert ax.get_ylim()[0] == 0
    assert ax.get_xlabel() == "x1"


def test_partial_dependence_is_an_average(variance):
    ax = plots.partial_dependence(variance, 1, points=4)
    grid = line(ax, "average").get_xdata()
    X, _ = training_data(variance)
    for place, height in zip(grid, line(ax, "average").get_ydata(), strict=True):
        rows = X.copy()
        rows[:, 1] = place
        assert height == pytest.approx(variance.regression_function(rows).mean().mean())


def test_ridge_has_a_density_for_every_place(covariate):
    ax = plots.ridge(covariate, values=[0.8, 0.2])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0.2", "0.8"]
    heights = [np.nanmax(each.get_ydata()) for each in ax.get_lines()[:2]]
    assert heights == pytest.approx([2.4, 1.4])  # from the back to the front, equally high


def test_pit_is_a_density(covariate):
    ax = plots.pit(covariate)
    bars = [bar.get_height() for bar in ax.patches if bar.get_width() == pytest.approx(0.1)]
    assert np.mean(bars) == pytest.approx(1.0)
    assert "24 rows left out" in ax.get_xlabel()
    X, y = pd.DataFrame({"time": [0.1, 0.9]}), [1e3, 1e3]
    ax = plots.pit(covariate, X, y, bins=4)
    bars = [bar.get_height() for bar in ax.patches if bar.get_width() == pytest.approx(0.25)]
    assert bars == [0, 0, 0, 4]
    assert "2 given rows" in ax.get_xlabel()


def test_surprise_has_a_triangle_for_every_row(covariate, variance):
    ax = plots.surprise(covariate)
    heights = np.concatenate(
        [each.get_ydata() for each in ax.get_lines() if each.get_marker() in "^v"]
    )
    np.testing.assert_allclose(np.sort(heights), np.sort(covariate.loo().surprise))
    above = [each for each in ax.get_lines() if each.get_marker() == "^"]
    assert sum(len(each.get_xdata()) for each in above) == (covariate.loo().pit > 0.5).sum()
    both = plots.surprise({"one": covariate, "other": covariate})
    assert [text.get_text() for text in both.get_legend().get_texts()] == ["one", "other"]
    with pytest.raises(ValueError, match="feature must be given"):
        plots.surprise(variance)
    with pytest.raises(ValueError, match="model has no fitted estimators"):
        plots.surprise({})


def test_coverage_along_an_input(variance):
    X, y = training_data(variance)
    far = y.copy()
    far[np.argsort(X[:, 2])[:12]] += 1e3  # half of the rows, all at one end, lie outside
    ax = plots.coverage(variance, X, far, feature="x3", bins=2)
    shares = ax.containers[0].lines[0].get_ydata()
    assert shares[0] == 0
    assert shares[1] > 0.5


def test_wilson_intervals():
    low, high = _wilson(np.array([1.0, 0.5]), np.array([10, 10]))
    assert (low[0], high[0]) == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert (low[1], high[1]) == pytest.approx((0.2366, 0.7634), abs=1e-4)


def test_trace_and_autocorrelation(covariate):
    ax = plots.trace(covariate, "log noise_sd")
    assert len(ax.get_lines()) == 2
    np.testing.assert_allclose(
        np.exp(ax.get_lines()[1].get_ydata()), covariate.draws_["noise_sd"][1]
    )
    assert plots.autocorrelation(covariate).patches[0].get_height() == pytest.approx(1.0)


def test_relevance_in_the_order_of_the_inputs(variance):
    ax = plots.relevance(variance)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["x1", "x2", "x3"]
    first = ax.containers[0].lines[0]
    scales = variance.draws_.standardized()["length_scale_y"]
    middle = np.median(1 / scales.reshape(-1, 3), axis=0)
    np.testing.assert_allclose(first.get_xdata(), middle)
    assert first.get_ydata()[0] > first.get_ydata()[2]  # the first on top


def test_several_latent_covariates_are_drawn_apart():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9, 1)), rng.normal(size=9)
    model = gplc.LatentCovariateGP(n_latent=2, draws=12, warmup=8, chains=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ax = plots.latent(model.fit(X, y))
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["number 1", "number 2"]
    residuals, w = rng.normal(size=4), rng.normal(size=(2, 3, 8))
    aligned = _aligned(w, residuals)
    pulls = aligned @ residuals
    assert aligned.shape == (6, 2, 4)
    assert (pulls >= 0.0).all()
    assert (np.diff(pulls, axis=1) <= 0.0).all()
    assert np.allclose(np.sort(np.abs(aligned), axis=None), np.sort(np.abs(w), axis=None))


def test_latent_covariates_rise_with_residuals(covariate):
    """Whatever signs the chains have settled on."""
    ax = plots.latent(covariate)
    points = next(each for each in ax.get_lines() if each.get_marker() == "o")
    assert np.corrcoef(points.get_xdata(), points.get_ydata())[0, 1] > 0.5


@pytest.mark.parametrize("kind", plots.KINDS)
def test_every_kind_draws_with_one_input_and_with_several(covariate, variance, kind):
    for model in (covariate, variance):
        figure = plots.KINDS[kind](model)
        figure.canvas.draw()
        assert figure.axes


def test_names_with_dollars_are_not_formulas():
    model = gplc.StandardGP(**SMALL).fit(
        pd.DataFrame({"cost $_{$": np.arange(6.0)}), pd.Series(np.arange(6.0), name="$\\frac$")
    )
    plots.overview(model).canvas.draw()
    plots.relevance(model).get_figure().canvas.draw()


def test_given_axes_are_used(standard):
    _, ax = plt.subplots()
    assert plots.fan(standard, ax=ax) is ax


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda models: plots.fan(models[1]), "feature must be given"),
        (lambda models: plots.fan(models[1], "x9"), "feature must be one of"),
        (lambda models: plots.fan(models[1], 3), "feature must be one of"),
        (lambda models: plots.fan(models[1], 0, at=[1.0]), "at must have a value for each of 3"),
        (lambda models: plots.latent(models[2]), "latent needs latent values of the cases"),
        (lambda models: plots.trace(models[0], "noise"), "name must be one of"),
        (lambda models: plots.pit(models[0], [[1.0]]), "X and y must be given both"),
    ],
)
def test_what_cannot_be_drawn_is_said(covariate, variance, standard, draw, message):
    with pytest.raises(ValueError, match=message):
        draw((covariate, variance, standard))


def test_relevance_needs_a_length_scale_for_each_input():
    data = gplc.datasets.make_paper("M1", n=10, random_state=0)
    kernel = gplc.SquaredExponential(ard=False)
    model = gplc.StandardGP(kernel=kernel, **SMALL).fit(data.X, data.y)
    with pytest.raises(ValueError, match="needs a length scale for each input"):
        plots.relevance(model)


def test_bands_can_be_told_apart_in_grey():
    """Luminance (Rec. 709) of what lies on top of each other differs enough."""
    for dark, middle, light in (
        (style.LINE, style.INNER, style.OUTER),
        (style.SD_LINE, style.SD_BAND, "white"),
    ):
        shades = [np.dot([0.2126, 0.7152, 0.0722], to_rgb(each)) for each in (dark, middle, light)]
        assert np.diff(shades).min() > 0.1
