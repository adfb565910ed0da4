"""`approximation=` of the estimators."""

import re

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import gplc
from gplc.datasets import make_paper
from gplc.estimators import base, sizes
from gplc.estimators.results import ApproximationWarning
from gplc.kernels import Periodic
from gplc.models.in_basis import IN_BASIS, InBasis
from gplc.processes.hilbert import Axes, axis_for, latent_axis

SETTINGS = {"chains": 2, "draws": 20, "warmup": 30, "random_state": 0}
SMALL = gplc.Hilbert(functions=12, boundary=2.0, latent_functions=8, latent_boundary=2.0)
ALL = (gplc.StandardGP, gplc.LatentVarianceGP, gplc.LatentCovariateGP)

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:covariances in the basis"),
]


def fitted(cls, n=60, **settings):
    data = make_paper("U1", n=n, random_state=1)
    return cls(**SETTINGS | {"approximation": SMALL} | settings).fit(data.X, data.y), data


@pytest.mark.parametrize("cls", ALL)
def test_a_fit_predicts_and_survives_a_file(cls, tmp_path):
    model, data = fitted(cls)
    assert isinstance(model.model_, InBasis)
    assert np.corrcoef(model.predict(data.X), data.f)[0, 1] > 0.95
    lower, upper = model.predict_interval(data.X, 0.9).T
    assert 0.75 < np.mean((lower < data.y) & (data.y < upper)) <= 1.0
    model.save(tmp_path / "fit.nc")
    again = gplc.load(tmp_path / "fit.nc")
    assert again.approximation == SMALL
    assert again.approximation_ == model.approximation_
    assert np.array_equal(again.predict_dist(data.X).var(), model.predict_dist(data.X).var())
    more = [each.extend(5).draws_.theta for each in (model, again)]
    assert np.array_equal(*more)


@pytest.mark.parametrize("cls", ALL)
def test_a_prediction_does_not_depend_on_the_other_rows(cls):
    model, data = fitted(cls)
    together = model.predict_quantiles(data.X, [0.1, 0.9])
    alone = np.concatenate([model.predict_quantiles(row[None], [0.1, 0.9]) for row in data.X[:3]])
    np.testing.assert_allclose(together[:3], alone, rtol=1e-9)


def test_rows_beyond_the_boundary_are_refused():
    model, data = fitted(gplc.StandardGP)
    for wrong in (5.0, -3.0):
        with pytest.raises(ValueError, match=re.escape("row 1 of X has")) as caught:
            model.predict(np.array([[0.5], [wrong]]))
        assert "approximation=None" in str(caught.value)
    inside = data.X.max() + 0.04 * np.ptp(data.X)
    assert np.isfinite(model.predict([[inside]])[0])


def test_auto_is_exact_for_few_rows_and_a_basis_for_many(monkeypatch):
    model, data = fitted(gplc.StandardGP, approximation="auto")
    assert not isinstance(model.model_, InBasis)
    assert model.approximation_ is None
    monkeypatch.setattr(base, "EXACT_ROWS", 50)
    model.fit(data.X, data.y)
    assert isinstance(model.model_, InBasis)
    assert model.approximation_.error < 0.01
    assert "covariances are good to" in str(model.approximation_)
    # What has no basis stays exact.
    for settings in ({"kernel": Periodic()}, {"sampler": "paper"}, {"approximation": None}):
        assert not isinstance(
            fitted(gplc.StandardGP, **{"approximation": "auto"} | settings)[0].model_, InBasis
        )
    many = np.column_stack([data.X] * 16)
    assert not isinstance(model.fit(many, data.y).model_, InBasis)


@pytest.mark.parametrize(
    ("cls", "settings", "said"),
    [
        (gplc.StandardGP, {"kernel": Periodic()}, "no spectral density"),
        (gplc.StandardGP, {"sampler": "paper"}, "is of the exact model"),
        (gplc.LatentCovariateGP, {"n_latent": 2}, "n_latent is 2"),
        (gplc.StandardGP, {"approximation": "hilbert"}, "approximation must be None"),
    ],
)
def test_what_has_no_basis_is_refused_by_name(cls, settings, said):
    with pytest.raises(ValueError, match=said):
        fitted(cls, **settings)
    with pytest.raises(ValueError, match="4 inputs"):
        gplc.StandardGP(**SETTINGS, approximation=SMALL).fit(np.eye(4), np.arange(4.0))


def test_a_basis_that_is_too_small_is_warned_of():
    with pytest.warns(ApproximationWarning, match="more functions"):
        fitted(gplc.StandardGP, approximation=gplc.Hilbert(functions=2, boundary=1.1))


def test_sizes_depend_on_the_data_alone(tmp_path):
    data = make_paper("U1", n=80, random_state=1)
    settings = SETTINGS | {"approximation": gplc.Hilbert(), "draws": 5}
    first, other = (
        gplc.StandardGP(**settings | {"random_state": seed}).fit(data.X, data.y) for seed in (1, 2)
    )
    assert first.model_.axes == other.model_.axes
    # So that a checkpoint fits, whatever the seed was.
    path = tmp_path / "run.ckpt"
    gplc.StandardGP(**settings, checkpoint=path).fit(data.X, data.y)
    more = gplc.StandardGP(**settings | {"draws": 9}, checkpoint=path).fit(data.X, data.y)
    assert more.draws_.log_density.shape == (2, 9)


@pytest.mark.parametrize("cls", ALL)
def test_odd_data_do_no_harm(cls):
    rng = np.random.default_rng(0)
    same = cls(**SETTINGS, approximation=SMALL).fit(np.zeros((12, 1)), rng.normal(size=12))
    assert np.isfinite(same.predict([[0.0]])[0])
    few = cls(**SETTINGS, approximation=SMALL).fit([[0.0], [1.0]], [0.0, 1.0])
    assert np.isfinite(few.predict([[0.5]])[0])
    constant = cls(**SETTINGS, approximation=SMALL).fit(rng.normal(size=(12, 1)), np.ones(12))
    assert constant.predict([[0.0]])[0] == pytest.approx(1.0, abs=0.5)


def test_every_model_of_the_paper_has_a_basis():
    assert set(IN_BASIS) == {"std", "gplv", "gplc"}
    with pytest.warns(ConvergenceWarning):
        fitted(gplc.LatentCovariateGP, draws=4)


def test_the_command_line_refuses_many_rows_only_where_they_are_exact(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from gplc.cli import app, fitting

    data = make_paper("U1", n=1100, random_state=1)
    path, out = tmp_path / "rows.csv", tmp_path / "fit.nc"
    np.savetxt(path, np.column_stack([data.X, data.y]), delimiter=",", header="x,y", comments="")
    monkeypatch.setattr(fitting.options, "MAX_ROWS", 1000)
    command = ["fit", str(path), "-y", "y", "-m", "std", "--draws", "20", "--warmup", "30"]
    command += ["--chains", "1", "--out", str(out)]
    refused = CliRunner().invoke(app, [*command, "--approximation", "none"])
    assert refused.exit_code != 0
    assert not out.exists()
    assert CliRunner().invoke(app, command).exit_code == 0
    assert "covariances are good to" in str(gplc.load(out).approximation_)


def test_a_basis_for_several_inputs_is_affordable():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (150, 3))
    y = np.sin(4.0 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(150)
    model = gplc.StandardGP(**SETTINGS, approximation=gplc.Hilbert()).fit(X, y)
    assert model.model_.bases[0].size <= 1.2 * sizes.MOST_FUNCTIONS
    assert np.corrcoef(model.predict(X), y)[0, 1] > 0.95
    many = Axes(tuple(axis_for(-1.0, 1.0, 0.1, 1.0) for _ in range(3)), latent_axis(2.0, 4.0))
    few = sizes.affordable(many, gplc.Hilbert())
    assert sizes.n_products(few) * few.latent.functions <= sizes.MOST_WITH_LATENT
    assert sizes.affordable(many, gplc.Hilbert(functions=9)) == many


def test_leave_one_out_keeps_no_more_than_it_may(monkeypatch):
    model, data = fitted(gplc.LatentCovariateGP)
    whole = model.loo()
    assert whole.log_density.shape == data.y.shape
    monkeypatch.setattr(base, "MOST_LEFT_OUT", 60 * 10)
    few = model.loo()
    assert few.log_density == pytest.approx(whole.log_density, abs=1.0)
    assert few is not whole
    assert model.loo() is few
