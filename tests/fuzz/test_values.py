"""Hostile values at every door: a call works, or refuses in one line that says why."""

import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import gplc
from gplc import metrics
from gplc.draws import NODE_RULES
from gplc.estimators import ESTIMATORS
from gplc.kernels import KERNELS, Kernel, from_record, to_record
from gplc.means import ConstantMean, LinearMean
from gplc.priors import DEFAULTS, LogPriors
from tests.fuzz.hostile import anything, inputs, numbers, outcome
from tests.kernels.strategies import kernels

X = np.linspace(-1.0, 1.0, 6)[:, None]
Y = np.array([0.1, 0.5, 0.2, -0.3, 0.4, 0.0])
FEW = {"chains": 1, "draws": 2, "warmup": 2, "nodes": 2, "random_state": 0}
# How long a run may take is the user's to say: these get hostile values that are not large.
COSTLY = ("chains", "draws", "warmup", "nodes", "n_latent", "max_draws")


def not_large(value):
    return not (isinstance(value, int | np.integer) and value > 7)


few = anything.filter(not_large)


def settings_of(estimator):
    return sorted(set(estimator().get_params(deep=False)) - {"n_jobs", "checkpoint"})


# Settings that are in order, some of them extreme: so that many fits are made.
SOUND = {
    "kernel": st.one_of(kernels(0, own=False), kernels(1, own=False)),
    "mean": st.sampled_from(["zero", "constant", "linear", ConstantMean(1e-9), LinearMean(1e9)]),
    "standardize": st.booleans(),
    "noise_sd": st.floats(1e-300, 1e300),
    "n_latent": st.integers(1, 3),
    "link": st.sampled_from(["log", "abs", "learned"]),
    "mean_z": st.floats(-1e300, 1e300),
    "nodes": st.integers(1, 7),
    "node_rule": st.sampled_from(NODE_RULES),
    "resolution": st.sampled_from([None, "auto", 1e-300, 0.1, 1e300]),
    "target_transform": st.sampled_from([None, "boxcox", (np.sinh, np.arcsinh, np.cosh)]),
    "approximation": st.sampled_from([None, gplc.Hilbert(3, 1.1, 3, 1.3), gplc.Inducing(3)]),
    "method": st.sampled_from(["mcmc", "mcmc", "mcmc", "fast"]),
    "learned_noise": st.booleans(),
}


@st.composite
def estimator_settings(draw):
    """An estimator with sound settings, and perhaps one that is anything."""
    estimator = draw(st.sampled_from(list(ESTIMATORS.values())))
    sound = draw(st.fixed_dictionaries({}, optional=SOUND))
    names = draw(st.lists(st.sampled_from(settings_of(estimator)), max_size=1))
    given = {n: draw(few if n in COSTLY else anything) for n in names}
    known = settings_of(estimator)
    return estimator, {n: value for n, value in sound.items() if n in known} | given


@inputs(50)
@given(estimator_settings())
def test_settings_of_estimators(case):
    estimator, given = case
    model = outcome(lambda: estimator(**FEW | given).fit(X, Y))
    if model is not None:
        assert np.isfinite(outcome(model.predict, X)).all()


@inputs(40)
@given(
    st.sampled_from(list(ESTIMATORS.values())),
    st.dictionaries(
        st.sampled_from([*DEFAULTS, "noise_sd", "signal_sd", "length_scale", 3, None]),
        st.one_of(st.tuples(numbers, numbers), anything),
        max_size=2,
    ),
)
def test_priors(estimator, priors):
    model = outcome(lambda: estimator(**FEW, priors=priors).fit(X, Y))
    if model is not None:
        mean, sd = outcome(model.predict, X, return_std=True)
        assert np.isfinite(mean).all()
        assert np.isfinite(sd).all()
    found = outcome(LogPriors, list(DEFAULTS), priors)
    if found is not None:
        assert np.isfinite(found.means).all()
        assert (found.sds > 0).all()


def records(depth):
    """Kernel records: right ones, with entries that are not."""
    kinds = st.one_of(st.sampled_from([*KERNELS, "+", "*", "Nope"]), anything)
    names = ["kind", "sd", "constant", "ard", "inputs", "label", "shape", "period", "nonsense"]
    leaf = st.dictionaries(st.sampled_from(names), anything, max_size=4)
    parts = st.lists(records(depth - 1), max_size=3) if depth else anything
    return st.one_of(
        anything,
        leaf,
        st.tuples(kinds, leaf).map(lambda pair: pair[1] | {"kind": pair[0]}),
        st.fixed_dictionaries({"kind": st.sampled_from(["+", "*"]), "parts": parts}),
    )


@inputs(50)
@given(records(2))
@example({})
@example({"kind": []})
@example({"kind": "Constant", "nonsense": 1})
@example({"kind": "+"})
@example({"kind": "+", "parts": []})
@example({"kind": "*", "parts": [3]})
@example({"kind": "Linear", "inputs": 5})
def test_kernel_records(record):
    kernel = outcome(from_record, record)
    if kernel is None:
        return
    assert isinstance(kernel, Kernel)
    names = outcome(kernel.names, 1, n_latent=1)
    if names is not None:
        json.dumps(to_record(kernel))
        matrix = outcome(kernel.matrix, np.zeros(len(names)), np.c_[X, X], np.c_[X, X], 1)
        assert matrix.shape == (6, 6)


def test_kernel_records_without_end():
    record = {"kind": "Constant", "sd": 1.0}
    for _ in range(2000):
        record = {"kind": "+", "parts": [record]}
    with pytest.raises(ValueError, match="nested at most 50 deep"):
        from_record(record)


@inputs(20)
@given(st.sampled_from([ConstantMean, LinearMean, *KERNELS.values()]), anything)
def test_numbers_in_kernels_and_means(make, value):
    kernel = outcome(make, value)
    if isinstance(kernel, Kernel):
        for call in (lambda k: k + value, lambda k: value * k, lambda k: k.on(value)):
            made = outcome(call, kernel)
            if made is not None:
                outcome(made.names, 1, n_latent=1)


sizes = st.floats(-300.0, 300.0).map(lambda power: 10.0**power)
finite = st.one_of(st.just(0.0), sizes, sizes.map(lambda size: -size))


def tables_of(entries):
    return st.lists(st.lists(entries, min_size=2, max_size=2), min_size=1, max_size=2)


arrays = st.one_of(tables_of(numbers), anything)
METHODS = ["logpdf", "pdf", "cdf", "sf", "logcdf", "logsf", "crps", "quantile", "interval"]
SCORES = [metrics.nlpd, metrics.mse, metrics.rmse, metrics.crps, metrics.pit]
SCORES += [metrics.coverage, metrics.interval_score]


@inputs(50)
@given(
    st.one_of(tables_of(finite), arrays),
    st.one_of(tables_of(sizes), arrays),
    st.one_of(st.none(), anything),
    st.one_of(finite, st.floats(0.0, 1.0), anything),
)
def test_predictive_of_hostile_components(means, sds, weights, y):
    dist = outcome(gplc.Predictive.from_arrays, means, sds, weights)
    if dist is None:
        dist = gplc.Predictive.from_arrays([[0.0, 3.0], [1.0, 1.0]], [[1.0, 0.5], [2.0, 2.0]])
    assert not np.isnan(dist.mean()).any()
    for name in [*METHODS, "sample", "summary"]:
        values = outcome(getattr(dist, name), y if name != "sample" or not_large(y) else 10**12)
        assert values is None or not np.isnan(values).any(), (name, values)
    for score in SCORES:
        values = outcome(score, dist, y)
        assert values is None or not np.isnan(values).any(), (score, values)


@inputs(50)
@given(
    st.lists(st.tuples(finite, sizes), min_size=1, max_size=4),
    st.lists(st.floats(0.0, 1.0), min_size=2, max_size=6),
)
def test_quantiles_never_fall(components, q):
    """For any finite mixture, of whatever scales."""
    means, sds = np.array(components).T
    found = gplc.Predictive.from_arrays([means], [sds]).quantile(np.sort(q))[0]
    assert (np.diff(found[np.isfinite(found)]) >= 0).all()
    assert not np.isnan(found).any()


@inputs(20)
@given(
    anything,
    few,
    st.sampled_from(["predict", "predict_quantiles", "residual_sd", "sample_y", "extend"]),
)
def test_arguments_of_predictions(fitted, rows, argument, method):
    if method == "extend":
        outcome(fitted.extend, argument)
        return
    more = () if method == "predict" else (argument,)
    for new in (rows, X):
        outcome(getattr(fitted, method), new, *more, one_line=new is X)


@pytest.fixture(scope="module")
def fitted():
    return gplc.LatentVarianceGP(**FEW).fit(X, Y)


@inputs(20)
@given(
    st.one_of(st.lists(st.tuples(finite), min_size=6, max_size=6), arrays),
    st.one_of(st.lists(finite, min_size=6, max_size=6), arrays),
    st.sampled_from(list(ESTIMATORS.values())),
)
def test_data_of_fits(rows, response, estimator):
    """Scikit-learn's own messages may have several lines."""
    for data in ((rows, Y), (X, response), (rows, response)):
        model = outcome(lambda data=data: estimator(**FEW).fit(*data), one_line=False)
        if model is not None:
            assert np.isfinite(model.predict(data[0])).all()


@pytest.mark.parametrize("digits", [400, 5000])
def test_integers_too_large_for_floats_are_refused(digits):
    number = 10**digits  # Python refuses to write down the longer one
    for call in (
        lambda: LogPriors(["noise_sd"], {"noise_sd": (0, number)}),
        lambda: gplc.Predictive.from_arrays([[number]], [[1]]),
        lambda: ConstantMean(number),
        lambda: gplc.LatentCovariateGP(**FEW, noise_sd=number).fit(X, Y),
    ):
        with pytest.raises(ValueError, match=r"priors|means|sd|noise_sd") as refused:
            call()
        assert "\n" not in str(refused.value)
        assert len(str(refused.value)) < 600
