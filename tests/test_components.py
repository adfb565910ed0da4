"""What a `Predictive` stands on: rows, blocks of components, and what is refused at the door."""

import copy
import pickle
import tracemalloc

import numpy as np
import pytest

from gplc.components import BLOCK_COMPONENTS, ArrayComponents
from gplc.predictive import Predictive

Q = np.array([1e-6, 0.05, 0.5, 0.975])


def skewed(rows: int = 4, components: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Means and SDs of skewed mixtures."""
    rng = np.random.default_rng(1)
    means = np.exp(0.5 * rng.standard_normal((rows, components)))
    return means, 0.1 * np.exp(0.2 * rng.standard_normal((rows, components)))


def values_of(dist: Predictive, y: np.ndarray) -> dict[str, np.ndarray]:
    """Everything that can be asked."""
    at_y = ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf", "crps")
    return {
        "moments": np.transpose(dist.moments()),
        "mean": dist.mean(),
        "quantile": dist.quantile(Q),
        "sample": dist.sample(5, random_state=0),
        **{name: getattr(dist, name)(y) for name in at_y},
    }


# Shapes and rows


def test_shapes_of_y():
    dist = Predictive.from_arrays(*skewed())
    for function in (dist.pdf, dist.logpdf, dist.cdf, dist.sf, dist.logcdf, dist.logsf, dist.crps):
        one = function(1.0)
        assert one.shape == (4,)
        np.testing.assert_array_equal(function(np.ones(4)), one)
        np.testing.assert_array_equal(function([1, 1, 1, 1]), one)
        grid = function(np.tile([0.5, 1.0, 2.0], (4, 1)))
        assert grid.shape == (4, 3)
        np.testing.assert_array_equal(grid[:, 1], one)
        np.testing.assert_array_equal(function([[0.5, 1.0, 2.0]]), grid)
        assert function(np.ones((4, 1))).shape == (4, 1)
        assert function(np.ones((4, 0))).shape == (4, 0)


@pytest.mark.parametrize("components", [1, 2, 3, 5, 8, 31, 300])
def test_a_row_does_not_depend_on_the_others(components):
    case = skewed(9, components)
    dist = Predictive.from_arrays(*case)
    y = np.linspace(0, 3, 9)[:, None]
    together = values_of(dist, y)
    del together["sample"]
    for row in (0, 4, 8):
        alone = values_of(Predictive.from_arrays(*case)[row], y[row : row + 1])
        for name, values in together.items():
            np.testing.assert_array_equal(alone[name][0], values[row], err_msg=name)


INDICES = [
    3,
    -1,
    np.int64(2),
    slice(None),
    slice(2, 5),
    slice(None, None, 2),
    slice(None, None, -1),
    slice(0, 0),
    [0, 5, 5, -2],
    [],
    np.array([4, 1]),
    np.arange(6) % 2 == 0,
    [True, False, False, True, False, False],
]


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("kept", [False, True])
def test_indexing_chooses_rows(index, kept):
    means, sds = skewed(6)
    dist = Predictive.from_arrays(means, sds)
    if kept:
        dist.mean()
    rows = np.atleast_1d(np.arange(6)[index if not isinstance(index, list) or index else slice(0)])
    part = dist[index]
    assert isinstance(part, Predictive)
    assert len(part) == rows.size
    np.testing.assert_array_equal(part.components()[0], means[rows])
    np.testing.assert_array_equal(part.interval(), dist.interval()[rows])
    if rows.size > 1:  # a part of a part
        np.testing.assert_array_equal(part[1:].components()[1], sds[rows[1:]])
        np.testing.assert_array_equal(part[[-1, 0]].mean(), dist.mean()[rows[[-1, 0]]])


def test_no_rows_give_empty_results():
    dist = Predictive.from_arrays(*skewed())[0:0]
    assert len(dist) == 0
    assert dist.mean().shape == dist.cdf(0.0).shape == dist.quantile(0.5).shape == (0,)
    assert dist.interval().shape == (0, 2)
    assert dist.sample(3).shape == (0, 3)
    assert dist.components()[0].shape == (0, 60)


def test_iteration_goes_over_rows():
    dist = Predictive.from_arrays(*skewed())
    np.testing.assert_array_equal([row.mean()[0] for row in dist], dist.mean())


def test_repr_and_pickle():
    dist = Predictive.from_arrays(*skewed())[1:3]
    assert repr(dist) == "Predictive(n_rows=2, n_components=60)"
    for other in (pickle.loads(pickle.dumps(dist)), copy.deepcopy(dist)):
        np.testing.assert_array_equal(other.quantile(Q), dist.quantile(Q))


def test_read_only_and_oddly_laid_out_arrays():
    means, sds = skewed()
    expected = Predictive.from_arrays(means, sds).interval()

    class Odd(ArrayComponents):
        def components(self, rows):
            odd_means, odd_sds = (np.asfortranarray(x) for x in super().components(rows))
            odd_means.setflags(write=False)
            return odd_means, odd_sds

    np.testing.assert_array_equal(Predictive(Odd(means, sds)).interval(), expected)


def test_results_and_components_are_the_callers_own():
    means, sds = skewed()
    dist = Predictive.from_arrays(means, sds)
    expected = dist.mean()
    for array in (*dist.components(), dist.mean(), means, sds):
        array += 1.0
    np.testing.assert_array_equal(dist.mean(), expected)


# Laziness


class CountingSource:
    """Components made up from the row number on demand; remembers what was asked for."""

    def __init__(self, n_rows: int, n_components: int) -> None:
        self.n_rows = n_rows
        self.n_components = n_components
        self.asked: list[np.ndarray] = []
        self._nodes = np.linspace(-1, 1, n_components)

    def components(self, rows):
        numbers = np.arange(self.n_rows)[rows]
        self.asked.append(numbers)
        means = np.sin(numbers)[:, None] + self._nodes
        return means, np.full_like(means, 0.3)


def test_blocks_stay_small_and_every_row_is_asked_for_once():
    source = CountingSource(200_000, 50)
    dist = Predictive(source)
    assert source.asked == []
    tracemalloc.start()
    summary = dist.summary()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert max(rows.size for rows in source.asked) * 50 <= BLOCK_COMPONENTS
    np.testing.assert_array_equal(np.concatenate(source.asked), np.arange(200_000))
    # All components at once would be 160 MB; two blocks, their temporaries and the answer:
    assert peak < 60e6
    np.testing.assert_allclose(summary.mean, np.sin(np.arange(200_000)), atol=1e-12)


def test_a_part_evaluates_its_own_rows_only():
    source = CountingSource(1_000_000, 50)
    dist = Predictive(source)
    dist[123:126].interval()
    dist[[7, 999_999]].mean()
    dist[::250_000].mean()
    asked = [rows.tolist() for rows in source.asked]
    assert asked == [[123, 124, 125], [7, 999_999], [0, 250_000, 500_000, 750_000]]


def test_few_components_are_kept_and_many_are_not(monkeypatch):
    source = CountingSource(10, 50)
    dist = Predictive(source)
    dist.mean()
    dist.interval()
    dist[3:5].cdf(0.0)
    assert len(source.asked) == 1

    monkeypatch.setattr("gplc.components.KEPT_COMPONENTS", 499)
    monkeypatch.setattr("gplc.components.BLOCK_COMPONENTS", 200)
    source = CountingSource(10, 50)
    dist = Predictive(source)
    dist.mean()
    dist.interval()
    assert [rows.size for rows in source.asked] == [4, 4, 2] * 2


def test_what_is_kept_and_how_it_is_cut_change_nothing(monkeypatch):
    y = np.linspace(-1, 1, 10)[:, None]
    expected = values_of(Predictive(CountingSource(10, 50)), y)
    monkeypatch.setattr("gplc.components.KEPT_COMPONENTS", 0)
    monkeypatch.setattr("gplc.components.BLOCK_COMPONENTS", 1)  # less than a row: a row at a time
    got = values_of(Predictive(CountingSource(10, 50)), y)
    for name in expected:
        np.testing.assert_array_equal(got[name], expected[name], err_msg=name)


def test_a_source_may_give_the_means_alone():
    class Cheap(CountingSource):
        def component_means(self, rows):
            return super().components(rows)[0]

        def components(self, rows):
            raise AssertionError("the means are enough")

    dist = Predictive(Cheap(10, 50), location=2.0, scale=3.0)
    expected = Predictive(CountingSource(10, 50), location=2.0, scale=3.0).mean()
    np.testing.assert_allclose(dist.mean(), expected, rtol=1e-15)
    np.testing.assert_allclose(dist[[4, 2]].mean(), expected[[4, 2]], rtol=1e-15)


# Bad input


@pytest.fixture
def dist() -> Predictive:
    return Predictive.from_arrays(*skewed())


@pytest.mark.parametrize("method", ["pdf", "logpdf", "cdf", "sf", "logcdf", "logsf", "crps"])
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.nan, "NaN"),
        ([0, 1, np.nan, 2], "NaN"),
        ([0, None, 1, 2], "NaN"),
        ("a", "real numbers"),
        (["a", "b", "c", "d"], "real numbers"),
        (1j, "real numbers"),
        ([1.0, 2.0, 3.0], r"y has shape \(3,\), but there are 4 rows"),
        (np.zeros((3, 4)), "there are 4 rows"),
        (np.zeros((4, 1, 1)), "there are 4 rows"),
        ([], "there are 4 rows"),
        (10**400, "y holds a number too large for a float"),
        ([1, 2, 3, -(10**400)], "too large"),
    ],
)
def test_bad_y(dist, method, y, message):
    with pytest.raises(ValueError, match=message):
        getattr(dist, method)(y)


@pytest.mark.parametrize("q", [-0.1, 1.1, np.nan, [0.5, 2], 95])
def test_bad_q(dist, q):
    with pytest.raises(ValueError, match=r"q must be in \[0, 1\]"):
        dist.quantile(q)


def test_bad_shape_of_q(dist):
    with pytest.raises(ValueError, match="one-dimensional"):
        dist.quantile([[0.5]])
    with pytest.raises(ValueError, match="real numbers"):
        dist.quantile("median")
    with pytest.raises(ValueError, match="q holds a number too large"):
        dist.quantile([10**400])


@pytest.mark.parametrize("coverage", [0, 1, -0.5, 90, np.nan])
def test_bad_coverage(dist, coverage):
    for method in (dist.interval, dist.summary):
        with pytest.raises(ValueError, match="coverage must be between 0 and 1"):
            method(coverage)


def test_bad_n_samples(dist):
    for wrong in (1.5, True, "3"):
        with pytest.raises(TypeError, match="n_samples must be an integer"):
            dist.sample(wrong)
    with pytest.raises(ValueError, match="at least 1"):
        dist.sample(0)


@pytest.mark.parametrize(
    "index",
    [4, -5, [0, 4], [[0]], [True], np.ones(5, bool), True, 1.0, [1.5], None, "a", (1, 2, 9)],
)
def test_bad_index(dist, index):
    with pytest.raises(IndexError, match="row"):
        dist[index]


@pytest.mark.parametrize(
    ("means", "sds", "message"),
    [
        ([0.0], [1.0], "shape"),
        ([[0.0]], [[1.0, 1.0]], "shape"),
        ([[]], [[]], "no components"),
        ([[np.nan]], [[1.0]], "means must be finite"),
        ([[0.0]], [[np.inf]], "sds must be finite"),
        ([[0.0]], [[0.0]], "above 0"),
        ([[0.0, 0.0]], [[1.0, -1.0]], "above 0, the smallest is -1.0"),
        ([["a"]], [[1.0]], "means must hold real numbers"),
        ([[10**400]], [[1.0]], "means holds a number too large for a float"),
        ([[0.0]], [[10**400]], "sds holds a number too large for a float"),
    ],
)
def test_bad_components(means, sds, message):
    with pytest.raises(ValueError, match=message):
        Predictive.from_arrays(means, sds)


def test_bad_units():
    source = ArrayComponents([[0.0]], [[1.0]])
    for location in (np.nan, np.inf, 10**400, "a"):
        with pytest.raises(ValueError, match="location"):
            Predictive(source, location=location)
    for scale in (0.0, -1.0, np.nan, np.inf, 10**400, None):
        with pytest.raises(ValueError, match="scale"):
            Predictive(source, scale=scale)


def test_a_predictive_is_not_an_array(dist):
    with pytest.raises(TypeError, match="not an array"):
        np.asarray(dist)
