"""What estimators share: the registry, settings with old names, draws that cannot be used."""

import inspect
import warnings
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone

import gplc
from gplc import LatentVarianceGP, StandardGP
from gplc.estimators import ESTIMATORS, BaseGP
from gplc.models import MODELS, Standard, Unknowns

FEW = {"chains": 2, "draws": 6, "warmup": 5, "random_state": 0}
X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(12, 1))
Y = np.sin(3.0 * X[:, 0])


@pytest.fixture
def own_model():
    """A model of one's own, with a setting; forgotten after the test."""

    class Own(Standard):
        """STD with another name."""

        key = "own"
        title = "OWN"

        def __init__(self, X, y, kernel=None, priors=None, mean=None, power=1.0):
            self.power = power
            super().__init__(X, y, kernel, priors, mean)

    yield Own
    MODELS.pop("own")
    ESTIMATORS.pop("own", None)


def test_every_model_has_its_estimator():
    assert {key: each.model_class for key, each in ESTIMATORS.items()} == MODELS


def test_an_estimator_in_three_lines(own_model, tmp_path):
    class OwnGP(BaseGP):
        """The estimator of a model without settings."""

        model_class = own_model

    assert ESTIMATORS["own"] is OwnGP
    model = OwnGP(**FEW).fit(X, Y)
    assert isinstance(model.model_, own_model)
    assert OwnGP().get_params() == StandardGP().get_params()
    model.save(tmp_path / "fit.nc")
    loaded = gplc.load(tmp_path / "fit.nc")
    assert type(loaded) is OwnGP
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_settings_of_ones_own_go_to_the_model(own_model, tmp_path):
    @dataclass(eq=False, repr=False)
    class OwnGP(BaseGP):
        """The estimator of a model with a setting."""

        model_class = own_model
        power: float = 1.0

    model = clone(OwnGP(power=3.0, **FEW)).fit(X, Y)
    assert model.model_.power == 3.0
    assert "power=3.0" in repr(model)
    model.save(tmp_path / "fit.nc")
    assert gplc.load(tmp_path / "fit.nc").model_.power == 3.0


def test_a_variant_of_an_estimator_takes_nobodys_place(tmp_path):
    class Bold(StandardGP):
        """A variant."""

    assert ESTIMATORS["std"] is StandardGP
    Bold(**FEW).fit(X, Y).save(tmp_path / "fit.nc")
    assert type(gplc.load(tmp_path / "fit.nc")) is Bold


def test_two_estimators_of_one_model_are_refused():
    with pytest.raises(ValueError, match="the model 'std' has the estimator StandardGP"):

        class Another(BaseGP):
            """One too many."""

            model_class = Standard


@pytest.mark.parametrize("estimator", ESTIMATORS.values())
def test_the_signature_tells_all_settings(estimator):
    shared = list(inspect.signature(BaseGP).parameters)
    own = list(inspect.signature(estimator).parameters)
    assert own[: len(shared)] == shared
    assert sorted(own) == sorted(estimator().get_params())


def test_the_old_name_of_link_works_and_warns(tmp_path):
    model = clone(LatentVarianceGP(scale="abs", **FEW))
    assert model.get_params()["scale"] == "abs"
    with pytest.warns(FutureWarning, match=r"write LatentVarianceGP\(link='abs'\)") as told:
        model.fit(X, Y)
    assert [each.filename for each in told if each.category is FutureWarning] == [__file__]
    renamed = LatentVarianceGP(link="abs", **FEW).fit(X, Y)
    np.testing.assert_array_equal(model.draws_.latent, renamed.draws_.latent)
    model.save(tmp_path / "fit.nc")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = gplc.load(tmp_path / "fit.nc")
    assert (loaded.link, loaded.scale) == ("abs", None)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


# --- draws that cannot be factorised --------------------------------------------------------


def spoilt_fit(key, theta=None, log_density=None):
    """A fit whose last draw of every chain is spoilt, and its posterior."""
    # Rows that are not quite the same, or they would be taken together.
    rows = np.repeat(X[:6], 2, axis=0) + np.tile([[0.0], [1e-12]], (6, 1))
    model = ESTIMATORS[key](**FEW | {"nodes": 2}).fit(rows, Y)
    for chain in model.chains_:
        if theta is not None:
            chain.theta[-1] = theta(model.model_)
            chain.latent[-1] = -25.0 if key == "gplv" else 0.0  # no noise, no difference
        if log_density is not None:
            chain.log_density[-1] = log_density
    model._take_chains(model.chains_)
    return model


def singular(model):
    """Hyperparameters at which rows that are the same twice leave nothing to factorise."""
    theta = model.priors.means.copy()
    for k, name in enumerate(model.names):
        if "noise" in name:
            theta[k] = -25.0
        elif "signal" in name:
            theta[k] = 15.0
    return theta


@pytest.mark.parametrize("key", MODELS)
def test_a_draw_that_cannot_be_factorised_gets_a_little_more_noise(key):
    model = spoilt_fit(key, theta=singular)
    unknowns = Unknowns(singular(model.model_), model.chains_[0].latent[-1])
    assert model.model_.log_density(unknowns) == -np.inf
    before = model.model_.ledger.copy()
    dist = model.predict_dist(X)
    assert np.isfinite(dist.mean()).all()
    assert np.isfinite(dist.std()).all()
    assert dist.n_components == 12 * model.posterior_.n_nodes  # none was dropped
    raised = model.model_.ledger - before
    assert sum(count for event, count in raised.items() if event.endswith("raised")) >= 2


@pytest.mark.parametrize("key", MODELS)
def test_a_draw_without_a_density_is_left_out(key):
    model = spoilt_fit(key, log_density=-np.inf)
    assert len(model.posterior_) == 10
    assert np.isfinite(model.predict(X)).all()
    for chain in model.chains_:
        chain.log_density[:] = -np.inf
    with pytest.raises(ValueError, match="no draw can be used for prediction"):
        model._take_chains(model.chains_)


@pytest.mark.parametrize("key", MODELS)
def test_nothing_is_factorised_before_something_is_predicted(key, tmp_path):
    ESTIMATORS[key](**FEW).fit(X, Y).save(tmp_path / "fit.nc")
    loaded = gplc.load(tmp_path / "fit.nc")
    assert loaded.model_.ledger == Counter()
    loaded.predict(X)
    assert loaded.model_.ledger
