"""Rows that this process does not hold: in a file, or in chunks of Dask that become one."""

import copy
import itertools
import os
import pickle
import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest

import gplc
from gplc.chains import advance, start
from gplc.datasets import make_paper
from gplc.estimators import DataWarning
from gplc.models.in_basis import IN_BASIS
from gplc.processes import distant
from gplc.processes.distant import DistantRows, FileShards, RowsGone, kept_numbers
from gplc.processes.rows import BLOCK_ROWS, ONE_SHARD, RowsHere, shard_places, shard_rows

SETTINGS = {"chains": 1, "draws": 4, "warmup": 4, "random_state": 0}
SMALL = gplc.Hilbert(functions=10, boundary=2.0, latent_functions=5, latent_boundary=2.0)
ALL = (gplc.StandardGP, gplc.LatentVarianceGP, gplc.LatentCovariateGP)

pytestmark = pytest.mark.filterwarnings("ignore:covariances in the basis")


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 3))


def sums(X, y):
    return X.sum(axis=0), y @ y, len(y)


@pytest.fixture
def few_kept(monkeypatch):
    """As if 300 rows were too many to keep."""
    monkeypatch.setattr(distant, "KEPT_ROWS", 300)


@pytest.mark.parametrize("n", [1, 5, ONE_SHARD, ONE_SHARD + 1, 100_000, 10**6, 10**9])
def test_shards_have_every_row_once(n):
    places = shard_places(n)
    assert places[0][0] == 0
    assert places[-1][1] == n
    assert all(end == begin for (_, end), (begin, _) in itertools.pairwise(places))
    assert len(places) <= 150
    if len(places) > 1:
        assert len(places) >= 5
        assert shard_rows(n) % BLOCK_ROWS == 0


@pytest.mark.parametrize("n", [40, 2 * ONE_SHARD + 777])
def test_sums_are_the_same_to_the_last_bit_wherever_rows_are(n):
    values = table(n)
    here = RowsHere(np.ascontiguousarray(values[:, :-1]), values[:, -1].copy())
    # However the parts were cut.
    parts = [values[:7], values[7:1000], values[1000:]]
    rows = DistantRows.of(FileShards.written(parts), here.ranges)
    assert rows.n == here.n == n
    for one, other in zip(rows.total(sums), here.total(sums), strict=True):
        assert np.array_equal(one, other)
    again = pickle.loads(pickle.dumps(rows))
    assert np.array_equal(again.total(sums)[0], here.total(sums)[0])


def test_fewer_rows_are_every_kth_of_all(few_kept):
    values = table(ONE_SHARD + 500)
    values[:, 0] = np.arange(len(values))
    rows = DistantRows.of(FileShards.written([values]), [(0.0, 1.0)] * 2)
    rng = np.random.default_rng(1)
    fewer = rows.fewer(rng, 2000)
    total, _, count = fewer.total(sums)
    expected = np.arange(fewer.first, len(values), fewer.stride)
    assert (total[0], count) == (expected.sum(), expected.size)
    assert fewer.n == expected.size
    again = fewer.fewer(rng, 700)
    numbers = np.arange(again.first, len(values), again.stride)
    assert set(numbers) <= set(expected)
    assert again.total(sums)[0][0] == numbers.sum()
    # Few come from those that are here.
    assert again.fewer(rng, 100).here
    picked = kept_numbers(len(values))
    assert picked.size == 300
    assert np.array_equal(rows.X[:, 0], picked)


def test_the_file_goes_with_the_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    shards = FileShards.written([table(10)])
    copied = pickle.loads(pickle.dumps(shards))
    assert len(os.listdir(tmp_path)) == 1
    del shards
    assert os.listdir(tmp_path) == []
    with pytest.raises(ValueError, match="is gone; fit them again"):
        list(copied.each(len))

    def broken():
        yield table(10)
        raise OSError(28, "No space left on device")

    with pytest.raises(ValueError, match=r"No space left on device.*TMPDIR"):
        FileShards.written(broken())
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("key", list(IN_BASIS))
def test_a_chain_is_the_same_wherever_rows_are(key):
    data = make_paper("U1", n=2500, random_state=1)
    with_latent = key == "gplc"
    here = RowsHere(data.X, data.y)
    axes = SMALL.axes(here.ranges, None, with_latent)
    model = IN_BASIS[key](data.X, data.y, axes=axes)
    shards = FileShards.written([np.column_stack([data.X, data.y])])
    other = model.on_rows(DistantRows.of(shards, here.ranges))
    position = start(model, model.scheme(), 1, model.prior_mean())
    chains = [advance(each, position, 6, tune=True) for each in (model, other)]
    assert np.array_equal(chains[0].theta, chains[1].theta)
    assert np.array_equal(chains[0].latent, chains[1].latent)


@pytest.mark.parametrize("cls", ALL)
def test_a_fit_of_a_file_is_that_of_arrays(cls, tmp_path):
    data = make_paper("U1", n=60, random_state=1)
    frame = pd.DataFrame({"x": data.X[:, 0], "y": data.y})
    frame.to_parquet(tmp_path / "a.parquet")
    settings = SETTINGS | {"approximation": SMALL}
    X, y = gplc.open_rows(tmp_path / "a.parquet", target="y")
    far = cls(**settings).fit(X, y)
    near = cls(**settings).fit(frame[["x"]], frame["y"])
    assert np.array_equal(far.draws_.theta, near.draws_.theta)
    assert far.target_name_ == "y"
    assert np.array_equal(far.predict(frame[["x"]]), near.predict(frame[["x"]]))
    lazy = da.from_array(data.X, chunks=(25, 1)), da.from_array(data.y, chunks=40)
    assert np.array_equal(cls(**settings).fit(*lazy).draws_.theta, near.draws_.theta)


@pytest.mark.parametrize("cls", ALL)
def test_what_comes_after_a_fit_takes_the_rows_that_are_kept(cls, few_kept, tmp_path):
    data = make_paper("U1", n=600, random_state=1)
    X, y = da.from_array(data.X, chunks=(200, 1)), da.from_array(data.y, chunks=200)
    with pytest.warns(DataWarning, match="Of 600 rows 300, chosen at random, are kept"):
        model = cls(**SETTINGS | {"approximation": SMALL, "chains": 2}).fit(X, y)
    assert model.model_.rows.n == 600
    assert model.model_.n == 300
    assert model.loo(draws=8).log_density.size == model.model_.n
    assert model.replicate_y(2).shape == (2, model.model_.n)
    model.save(tmp_path / "fit.nc")
    for again in (gplc.load(tmp_path / "fit.nc"), copy.deepcopy(model)):
        assert again.model_.rows.n == 600
        assert np.array_equal(again.predict(data.X[:5]), model.predict(data.X[:5]))
    loaded = gplc.load(tmp_path / "fit.nc")
    assert isinstance(loaded.model_.rows, RowsGone)
    if cls is gplc.StandardGP:  # which needs its rows no more
        more = [each.extend(3).draws_.theta for each in (model, loaded)]
        assert np.array_equal(*more)
    else:
        with pytest.raises(ValueError, match=r"keeps \d+ of its 600 rows.*checkpoint="):
            loaded.extend(3)


def test_a_checkpoint_knows_its_rows(tmp_path):
    data = make_paper("U1", n=60, random_state=1)
    settings = SETTINGS | {"approximation": SMALL, "checkpoint": tmp_path / "a.ckpt"}

    def fitted(y, **more):
        rows = da.from_array(data.X), da.from_array(y)
        return gplc.LatentVarianceGP(**settings | more).fit(*rows)

    fitted(data.y)
    longer = fitted(data.y, draws=8)
    straight = gplc.LatentVarianceGP(**settings | {"draws": 8, "checkpoint": None})
    assert np.array_equal(longer.draws_.theta, straight.fit(data.X, data.y).draws_.theta)
    other = data.y.copy()
    other[[3, 4]] = other[[4, 3]]
    with pytest.raises(ValueError, match="is of another run"):
        fitted(other, draws=8)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"approximation": None}, "approximation is None, which is exact"),
        ({"kernel": gplc.kernels.Periodic()}, "no spectral density"),
        ({"sampler": "paper"}, "is of the exact model"),
        ({"target_transform": "log"}, "target_transform is given; leave it out"),
        ({"resolution": 0.1}, "resolution is given"),
    ],
)
def test_what_needs_all_rows_here_is_refused(settings, said):
    X, y = da.ones((100, 1)), da.ones(100)
    with pytest.raises(ValueError, match=said) as caught:
        gplc.StandardGP(**SETTINGS | settings).fit(X, y)
    assert "\n" not in str(caught.value)
    assert "give arrays in memory" in str(caught.value)
    for more in ({"noise_std": 0.1}, {"sample_weight": [1] * 100}):
        with pytest.raises(ValueError, match=f"{next(iter(more))} is given"):
            gplc.StandardGP(**SETTINGS).fit(X, y, **more)
    with pytest.raises(ValueError, match="there are 4 inputs"):
        gplc.StandardGP(**SETTINGS).fit(da.ones((100, 4)), y)


def test_numbers_that_are_none_are_named_with_their_chunk():
    values = np.random.default_rng(0).random((100, 2))
    values[57, 1] = np.nan
    y = np.random.default_rng(1).random(100)
    for X in (values, pd.DataFrame(values, columns=["a", "b"])):
        if isinstance(X, pd.DataFrame):
            import dask.dataframe as dd

            lazy, column = dd.from_pandas(X, npartitions=4), "'b'"
        else:
            lazy, column = da.from_array(X, chunks=(25, 2)), "1"
        with pytest.raises(
            ValueError, match=rf"X contains NaN in row 57 \(chunk 2, row 7 .*{column}"
        ):
            gplc.StandardGP(**SETTINGS).fit(lazy, da.from_array(y))
    y[99] = np.inf
    with pytest.raises(ValueError, match="y contains inf in row 99"):
        gplc.StandardGP(**SETTINGS).fit(da.from_array(values[:, :1]), da.from_array(y))


@pytest.mark.parametrize(
    "values", [["a", "b"], pd.Categorical(["a", "b"]), pd.to_datetime([0, 1])]
)
def test_columns_that_are_not_numbers_are_refused(values):
    import dask.dataframe as dd

    frame = dd.from_pandas(pd.DataFrame({"x": [0.0, 1.0], "c": values}), npartitions=1)
    with pytest.raises(ValueError, match="column 'c' of a Dask data frame holds"):
        gplc.StandardGP(**SETTINGS).fit(frame, da.ones(2))


@pytest.mark.parametrize("cls", ALL)
def test_the_fast_method_is_the_same_wherever_rows_are(cls):
    data = make_paper("U1", n=60, random_state=1)
    settings = {"method": "fast", "chains": 2, "random_state": 0, "approximation": SMALL}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        near = cls(**settings).fit(data.X, data.y)
        far = cls(**settings).fit(da.from_array(data.X, chunks=(25, 1)), da.from_array(data.y))
    assert np.array_equal(far.draws_.theta, near.draws_.theta)
    assert far.diagnostics_.weighed == near.diagnostics_.weighed


def test_an_estimator_of_levels_can_be_fitted_to_rows_elsewhere():
    frame = pd.DataFrame({"x": np.arange(8.0), "c": list("abababab")})
    settings = SETTINGS | {"approximation": "auto"}
    with pytest.warns(DataWarning, match="'c' is taken as a category"):
        model = gplc.StandardGP(**settings).fit(frame, np.arange(8.0) % 3)
    assert model.columns_ is not None
    data = make_paper("U1", n=60, random_state=1)
    model.set_params(approximation=SMALL).fit(da.from_array(data.X), da.from_array(data.y))
    assert model.columns_ is None


def test_odd_chunks_and_odd_rows():
    data = make_paper("U1", n=80, random_state=1)
    settings = SETTINGS | {"approximation": SMALL}
    X, y = da.from_array(data.X, chunks=(30, 1)), da.from_array(data.y, chunks=80)
    known = gplc.StandardGP(**settings).fit(X, y)
    unknown = X[da.from_array(np.ones(80, dtype=bool), chunks=30)]
    assert np.isnan(unknown.shape[0])
    found = gplc.StandardGP(**settings).fit(unknown, y)
    assert np.array_equal(found.draws_.theta, known.draws_.theta)
    assert np.isnan(unknown.shape[0])  # what is the user's stays as it was
    with pytest.raises(ValueError, match=r"X \(80, 1\) and y \(79, 1\)"):
        gplc.StandardGP(**settings).fit(X, y[:79])
    for cls in ALL:  # all the same
        model = cls(**settings).fit(da.ones((50, 1)), da.ones(50))
        assert abs(model.predict([[1.0]])[0] - 1.0) < 0.2
