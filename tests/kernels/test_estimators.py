"""Estimators with kernels, means, links, several w: fit, predict, save, load."""

import numpy as np
import pytest
from sklearn.base import clone

import gplc
from gplc.draws import latent_nodes
from gplc.kernels import Linear, Matern32, Periodic, SquaredExponential
from gplc.means import LinearMean
from tests.kernels.strategies import Cauchy, Laplace

FEW = {"chains": 2, "draws": 8, "warmup": 8, "random_state": 0}
X = np.random.default_rng(0).uniform(0.0, 10.0, size=(14, 2))
Y = 3.0 + X[:, 0] + np.random.default_rng(1).normal(size=14)
NEW = np.array([[2.0, 1.0], [7.0, 3.0], [20.0, -5.0]])


def trend(X):
    return 100.0 * X[:, 0] - 5.0


CASES = {
    "std": gplc.StandardGP(kernel=Matern32() + Periodic(period=0.7).on(1), **FEW),
    "std user's": gplc.StandardGP(kernel=Laplace() * Cauchy().on(0), **FEW),
    "std linear": gplc.StandardGP(mean="linear", **FEW),
    "std trend": gplc.StandardGP(mean=trend, **FEW),
    "gplc SE + linear": gplc.LatentCovariateGP(kernel=SquaredExponential() + Linear(), **FEW),
    "gplc user's on w": gplc.LatentCovariateGP(kernel=SquaredExponential() + Cauchy(), **FEW),
    "gplc two": gplc.LatentCovariateGP(n_latent=2, noise_sd=0.1, **FEW),
    "gplc mean": gplc.LatentCovariateGP(mean=LinearMean(2.0), **FEW),
    "gplv": gplc.LatentVarianceGP(
        kernel=Matern32().on(0), kernel_z=SquaredExponential(ard=False), mean_z=-1.0, **FEW
    ),
    "gplv learned": gplc.LatentVarianceGP(link="learned", mean="constant", **FEW),
}


@pytest.fixture(scope="module")
def fitted():
    return {name: clone(estimator).fit(X, Y) for name, estimator in CASES.items()}


@pytest.mark.parametrize("name", CASES)
def test_all_that_an_estimator_offers(name, fitted):
    model = fitted[name]
    dist = model.predict_dist(NEW)
    assert np.isfinite(dist.logpdf([1.0, 2.0, 3.0])).all()
    mean, sd = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(model.predict(NEW), mean, rtol=1e-9)
    assert (sd > 0).all()
    assert np.isfinite(model.regression_function(NEW).mean()).all()
    assert (model.residual_sd(NEW).mean > 0).all()
    np.testing.assert_allclose(model.predict(NEW[1:2]), mean[1:2], rtol=1e-9)
    assert set(model.draws_.to_arviz()["posterior"]) == {
        n for n in model.draws_ if n != "log_density"
    }


@pytest.mark.parametrize("name", CASES)
def test_saved_and_loaded_it_predicts_the_same(name, fitted, tmp_path):
    fitted[name].save(tmp_path / "fit.nc")
    again = gplc.load(tmp_path / "fit.nc", kernels=[Laplace, Cauchy], mean=trend)
    np.testing.assert_array_equal(again.predict(NEW), fitted[name].predict(NEW))
    for setting in ("kernel", "mean", "kernel_z", "n_latent", "noise_sd", "mean_z", "link"):
        assert getattr(again, setting, None) == getattr(fitted[name], setting, None)


def test_a_file_without_its_code_says_what_is_missing(fitted, tmp_path):
    fitted["std user's"].save(tmp_path / "kernel.nc")
    with pytest.raises(ValueError, match=r"kernels=\[Laplace\]"):
        gplc.load(tmp_path / "kernel.nc")
    fitted["std trend"].save(tmp_path / "mean.nc")
    with pytest.raises(ValueError, match=r"mean=\.\.\."):
        gplc.load(tmp_path / "mean.nc")


def test_a_known_mean_is_taken_off_and_put_back(fitted):
    rest = clone(CASES["std trend"]).set_params(mean=None).fit(X, Y - trend(X))
    with_trend = fitted["std trend"]
    np.testing.assert_allclose(with_trend.predict(NEW), rest.predict(NEW) + trend(NEW), rtol=1e-9)
    ours, theirs = with_trend.predict_dist(NEW), rest.predict_dist(NEW)
    np.testing.assert_allclose(ours.std(), theirs.std(), rtol=1e-9)
    np.testing.assert_allclose(
        ours.quantile([0.1, 0.9]), theirs.quantile([0.1, 0.9]) + trend(NEW)[:, None], rtol=1e-7
    )
    np.testing.assert_allclose(
        with_trend.regression_function(NEW).mean(),
        rest.regression_function(NEW).mean() + trend(NEW),
        rtol=1e-9,
    )


def test_a_linear_mean_goes_on_where_the_data_end():
    x = np.linspace(0.0, 1.0, 30)[:, None]
    # So far that no length scale which its prior allows can carry the line on.
    y, far = 5.0 * x[:, 0] + 2.0, np.array([[1000.0]])
    options = {"chains": 1, "draws": 60, "warmup": 60, "random_state": 0}
    line = gplc.StandardGP(mean="linear", kernel=SquaredExponential(constant=0.0), **options)
    flat = gplc.StandardGP(kernel=SquaredExponential(constant=0.0), **options)
    assert line.fit(x, y).predict(far)[0] == pytest.approx(5002.0, rel=0.05)
    assert flat.fit(x, y).predict(far)[0] < 2500.0


def test_two_latent_covariates_have_their_axis(fitted):
    model = fitted["gplc two"]
    assert model.draws_["w"].shape == (2, 8, 2, 14)
    assert model.draws_["latent_length_scale"].shape == (2, 8, 2)
    assert model.draws_.to_arviz()["posterior"]["w"].dims == ("chain", "draw", "covariate", "case")
    assert "noise_sd" not in model.draws_
    assert model.predict_dist(NEW).n_components == 16 * 7


def test_nodes_of_several_covariates_are_stratified_each_and_stay():
    few, many = (latent_nodes(np.random.default_rng(0), d, 5, columns=2) for d in (3, 6))
    np.testing.assert_array_equal(few, many[:3])
    assert few.shape == (3, 10)
    for half in (few[:, :5], few[:, 5:]):
        from_slices = np.floor(5 * np.vectorize(lambda z: 0.5 + 0.5 * np.tanh(0.8 * z))(half))
        assert all(len(set(row)) >= 4 for row in from_slices.tolist())  # one in each, about
    assert (np.abs(np.corrcoef(many[:, :5].ravel(), many[:, 5:].ravel())[0, 1])) < 0.6


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (gplc.StandardGP(kernel="rbf"), "kernel must be a Kernel or None, got 'rbf'"),
        (gplc.LatentVarianceGP(kernel_z=1), "kernel_z must be a Kernel or None, got 1"),
        (gplc.StandardGP(mean="cubic"), "mean must be one of"),
        (gplc.StandardGP(mean=lambda X: X), "the values of mean must have 1 dimension"),
        (gplc.StandardGP(mean=lambda X: X[:3, 0]), "one number for each row of X, got 3 for 14"),
        (gplc.LatentCovariateGP(n_latent=0), "n_latent must be an integer of at least 1"),
        (gplc.LatentCovariateGP(noise_sd=-1.0), "noise_sd must be a finite number above 0.0"),
        (gplc.LatentVarianceGP(mean_z=np.inf), "mean_z must be a finite number"),
        (gplc.StandardGP(kernel=SquaredExponential().on(5)), "there are 2 columns of X"),
    ],
)
def test_bad_settings_are_errors_that_name_them(estimator, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, Y)
