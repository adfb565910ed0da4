"""Weights are counts: a row that was seen three times is three rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import gplc
from gplc import _fitted
from gplc.estimators import ESTIMATORS
from gplc.estimators.row_order import order_of

FEW = {"chains": 1, "draws": 15, "warmup": 15, "predictive_draws": 10, "random_state": 0}
rng = np.random.default_rng(0)
X = rng.uniform(-2.0, 2.0, size=(12, 1))
Y = np.sin(X[:, 0]) + 0.2 * rng.standard_normal(12)
SDS = rng.uniform(0.1, 0.3, size=12)
COUNTS = np.array([1, 3, 0, 2, 1, 1, 1, 4, 1, 1, 1, 1])


@pytest.mark.parametrize("estimator", ESTIMATORS.values())
def test_a_count_is_so_many_rows(estimator):
    weighted = estimator(**FEW).fit(X, Y, noise_std=SDS, sample_weight=COUNTS)
    rows = np.repeat(np.arange(12), COUNTS)
    repeated = estimator(**FEW).fit(X[rows], Y[rows], noise_std=SDS[rows])
    assert np.array_equal(weighted.draws_.theta, repeated.draws_.theta)
    assert np.array_equal(weighted.predict(X), repeated.predict(X))
    assert _fitted.training_data(weighted)[1].size == COUNTS.sum()
    plain = estimator(**FEW).fit(X, Y)
    ones = estimator(**FEW).fit(X, Y, sample_weight=np.ones(12))
    assert np.array_equal(plain.draws_.theta, ones.draws_.theta)


@pytest.mark.parametrize("settings", [{}, {"n_latent": 2}, {"sampler": "paper"}])
def test_counts_are_repeats_wherever_they_stand(settings, tmp_path):
    """Of the model whose draws depend on the order of rows: chains, predictions, going on."""
    rows = np.repeat(np.arange(12), COUNTS)
    rng.shuffle(rows)
    weighted = gplc.LatentCovariateGP(**FEW, **settings)
    weighted.fit(X, Y, noise_std=SDS, sample_weight=COUNTS)
    repeated = gplc.LatentCovariateGP(**FEW, **settings).fit(X[rows], Y[rows], noise_std=SDS[rows])
    assert np.array_equal(weighted.draws_.theta, repeated.draws_.theta)
    assert np.array_equal(weighted.predict(X), repeated.predict(X))
    # Everything by row is as the rows were given.
    for model in (weighted, repeated):
        unknowns = model.chains_[0].position.unknowns
        assert np.array_equal(unknowns.latent, model.draws_.latent[0, -1])
        density = model.model_.state(unknowns).log_density
        assert density == pytest.approx(model.draws_.log_density[0, -1], abs=1e-8)
        assert model.draws_.judged.shape[2:] == model.model_.judged_shape
    repeated.save(tmp_path / "fit.nc")
    again = gplc.load(tmp_path / "fit.nc").extend(5)
    longer = clone(repeated).set_params(draws=20).fit(X[rows], Y[rows], noise_std=SDS[rows])
    assert np.array_equal(again.draws_.theta, longer.draws_.theta)
    assert np.array_equal(again.draws_.latent, longer.draws_.latent)


def test_rows_in_order_of_their_inputs_stay_as_they_are():
    order = np.argsort(X[:, 0])
    assert order_of(X[order][[0, 0, 1, 2]], Y[order][[0, 0, 1, 2]]) is None


def test_counts_and_gaps(tmp_path):
    y = Y.copy()
    y[1] = np.nan
    with pytest.warns(UserWarning, match="1 of 12 rows have no response"):
        model = gplc.StandardGP(**FEW).fit(X, y, sample_weight=COUNTS)
    assert model.model_.n == COUNTS.sum() - 3
    model.save(tmp_path / "fit.nc")
    assert gplc.load(tmp_path / "fit.nc").notes_ == model.notes_


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        (COUNTS + 0.5, r"must be whole numbers, how often each row was seen, got 1.5 in row 0"),
        (-COUNTS, r"got -1.0 in row 0"),
        (np.r_[np.nan, COUNTS[1:]], r"got NaN in row 0"),
        (COUNTS[:5], r"one for each of 12 rows, got shape \(5,\)"),
        (pd.Series(["a"] * 12, name="seen"), r"sample_weight \(column 'seen'\) must hold numbers"),
        (np.zeros(12), r"sample_weight is zero for nearly all rows and leaves 0"),
        (np.full(12, 1e6), r"counts 12000000 rows in all"),
    ],
)
def test_bad_counts_are_one_line(weights, told):
    with pytest.raises(ValueError, match=told) as error:
        gplc.StandardGP(**FEW).fit(X, Y, sample_weight=weights)
    assert "\n" not in str(error.value)
