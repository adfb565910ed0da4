"""Stacks of models and of chains: mixtures, their weights, and their files."""

import dataclasses
import json
import zipfile

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.exceptions import NotFittedError

import gplc
from gplc._files import FileError
from gplc.estimators import Stack

SMALL = {"chains": 2, "draws": 60, "warmup": 40, "random_state": 0}
DATA = gplc.datasets.make_paper("U1", n=25, random_state=0)
NEW = np.linspace(0.1, 0.9, 7)[:, None]


@pytest.fixture(scope="module")
def models():
    classes = (gplc.StandardGP, gplc.LatentVarianceGP, gplc.LatentCovariateGP)
    return [each(**SMALL).fit(DATA.X, DATA.y) for each in classes]


@pytest.fixture(scope="module")
def both(models):
    return gplc.stack(models)


def test_a_stack_is_the_mixture_of_its_models(models):
    both = gplc.stack(models, weights=[0.5, 0.3, 0.2])
    dist, y = both.predict_dist(NEW), np.linspace(-1.0, 3.0, 7)
    logs = [model.predict_dist(NEW).logpdf(y) for model in models]
    expected = logsumexp(logs, axis=0, b=np.array([[0.5], [0.3], [0.2]]))
    np.testing.assert_allclose(dist.logpdf(y), expected, rtol=1e-10)
    means = [model.predict(NEW) for model in models]
    np.testing.assert_allclose(both.predict(NEW), np.dot([0.5, 0.3, 0.2], means))
    np.testing.assert_allclose(both.regression_function(NEW).mean(), both.predict(NEW), atol=0.05)
    ends = both.predict_interval(NEW, 0.8)
    np.testing.assert_allclose(dist.cdf(ends), [[0.1, 0.9]] * 7, atol=1e-9)
    assert both.sample_y(NEW, 3, random_state=0).shape == (7, 3)
    assert both.predict_quantiles(NEW, [0.5], as_frame=True).shape == (7, 1)


def test_weights_are_those_of_stacking(models, both):
    logs = np.array([model.loo().log_density for model in models])
    assert list(both.weights_) == ["std", "gplv", "gplc"]
    best = both.score_rows().sum()
    assert best >= logs.sum(axis=1).max() - 1e-6
    for other in np.random.default_rng(0).dirichlet(np.ones(3), size=100):
        assert logsumexp(logs, axis=0, b=other[:, None]).sum() <= best + 1e-6
    assert "std: " in repr(both)
    assert "<table>" in both._repr_html_()


def test_models_of_one_kind_are_numbered(models):
    assert list(gplc.stack([models[0], models[0]]).weights_) == ["std", "std 2"]
    assert list(gplc.stack({"mine": models[0]}).weights_) == ["mine"]


def test_a_stack_comes_back_from_its_file(both, tmp_path):
    path = tmp_path / "both.nc"
    both.save(path)
    again = gplc.load(path)
    assert isinstance(again, Stack)
    assert again.weights_ == both.weights_
    np.testing.assert_array_equal(again.predict(NEW), both.predict(NEW))


def test_files_that_are_no_stacks_are_refused_in_one_line(both, tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other.txt", "no stack")
    with pytest.raises(FileError, match=r"a\.zip is damaged"):
        gplc.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("stack.json", json.dumps({"weights": []}))
    with pytest.raises(FileError, match="holds 0 models"):
        gplc.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        entry = {"name": "a", "weight": 1.0, "file": "../../a.nc"}
        archive.writestr("stack.json", json.dumps({"weights": [entry]}))
        archive.writestr("../../a.nc", b"nothing")
    with pytest.raises(FileError, match=r"a\.zip|0\.nc"):
        gplc.load(path)


def test_what_cannot_be_stacked_is_refused_in_one_line(models):
    other = gplc.StandardGP(**SMALL).fit(DATA.X, DATA.y + 1.0)
    with pytest.raises(ValueError, match="'std' and 'std 2' were fitted to different rows"):
        gplc.stack([models[0], other])
    with pytest.raises(ValueError, match="models is empty"):
        gplc.stack([])
    with pytest.raises(ValueError, match="models must be fitted estimators of gplc, got 'std'"):
        gplc.stack(["std"])
    with pytest.raises(NotFittedError):
        gplc.stack([gplc.StandardGP()])
    with pytest.raises(ValueError, match=r"weights must have shape \(3,\)"):
        gplc.stack(models, weights=[1.0])


# Chains in different modes, by construction: two of four say that everything is noise.


@pytest.fixture(scope="module")
def in_two_modes():
    model = gplc.StandardGP(**SMALL | {"chains": 4}).fit(DATA.X, DATA.y)
    noise, signal = (model.model_.names.index(name) for name in ("noise_sd", "signal_sd"))
    chains = list(model.chains_)
    for number in (1, 3):
        theta = chains[number].theta.copy()
        theta[:, noise], theta[:, signal] = 0.0, -6.0
        theta += 0.01 * np.random.default_rng(number).standard_normal(theta.shape)
        chains[number] = dataclasses.replace(chains[number], theta=theta)
    model._take_chains(chains)
    return model


def test_chains_that_predict_badly_lose_their_weight(in_two_modes):
    plain, stacked = in_two_modes, in_two_modes.stacked()
    weights = stacked.chain_weights_
    assert weights.sum() == pytest.approx(1.0)
    assert weights[[1, 3]].max() < 0.01
    new = gplc.datasets.make_paper("U1", n=300, random_state=9)
    scores = [-each.predict_dist(new.X).logpdf(new.y).mean() for each in (plain, stacked)]
    assert scores[1] < scores[0] - 0.03
    assert not hasattr(plain, "chain_weights_")
    band = stacked.residual_sd(NEW)
    assert (band.mean < plain.residual_sd(NEW).mean).all()


def test_equal_chains_keep_their_predictions():
    """Weights of chains that agree may be any, and hardly change what is predicted."""
    model = gplc.StandardGP(**SMALL | {"draws": 200}).fit(DATA.X, DATA.y)
    np.testing.assert_allclose(model.stacked().predict(NEW), model.predict(NEW), atol=0.1)


def test_weights_of_chains_are_not_saved(in_two_modes, tmp_path):
    with pytest.raises(ValueError, match="weights of chains are not kept in files; save the fit"):
        in_two_modes.stacked().save(tmp_path / "fit.nc")
    with pytest.raises(ValueError, match="draws must be an integer of at least 1"):
        in_two_modes.stacked(draws=0)
