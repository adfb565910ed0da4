"""Our estimators in skpro: its own checks, and the same numbers as ours."""

import numpy as np
import pandas as pd
import pytest

import gplc

pytest.importorskip("skpro", reason="comes with gplc[skpro]")

from skpro.metrics import CRPS, LogLoss
from skpro.utils import check_estimator

from gplc.skpro import GPRegressor, PredictedMixture

pytestmark = pytest.mark.filterwarnings("ignore")  # skpro's own, and so short fits
SMALL = {"chains": 2, "draws": 20, "warmup": 15, "random_state": 0}


@pytest.mark.parametrize("kind", [GPRegressor, PredictedMixture])
def test_checks_of_skpro_pass(kind):
    results = check_estimator(kind, raise_exceptions=False, verbose=False)
    failed = {name: told for name, told in results.items() if told != "PASSED"}
    assert results
    assert failed == {}


@pytest.fixture(scope="module")
def data():
    found = gplc.datasets.make_paper("U2", n=24, random_state=0)
    X = pd.DataFrame(found.X, columns=["x"], index=[f"row {k}" for k in range(24)])
    return X, pd.DataFrame({"y": found.y}, index=X.index)


def test_scores_of_skpro_are_ours(data):
    X, y = data
    model = GPRegressor(gplc.LatentCovariateGP(**SMALL)).fit(X, y)
    predicted = model.predict_proba(X)
    ours = model.estimator_.predict_dist(X)
    assert CRPS()(y, predicted) == pytest.approx(ours.crps(y["y"]).mean(), rel=1e-6)
    assert LogLoss()(y, predicted) == pytest.approx(-ours.logpdf(y["y"]).mean(), rel=1e-9)
    quantiles = model.predict_quantiles(X, alpha=[0.1, 0.9])
    np.testing.assert_allclose(quantiles.to_numpy(), ours.quantile([0.1, 0.9]))
    assert list(predicted.mean().index) == list(X.index)
    assert not hasattr(model.estimator, "draws_")


def test_energy_agrees_with_draws():
    """E|Y - Y'| from 200,000 pairs: five standard errors, a false alarm in two million."""
    dist = gplc.Predictive.from_arrays([[0.0, 5.0]], [[1.0, 0.5]], weights=[1, 2])
    pairs = dist.sample(400_000, random_state=0)[0].reshape(2, -1)
    gaps = np.abs(pairs[0] - pairs[1])
    mixture = PredictedMixture(dist, columns=pd.Index(["y"]))
    error = gaps.mean() - mixture.energy().to_numpy().item()
    assert abs(error) < 5 * gaps.std() / np.sqrt(gaps.size)
