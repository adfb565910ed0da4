"""A chain that stops and goes on, in memory or through a file, is the same to the last bit."""

import dataclasses
import os
import zlib

import numpy as np
import pytest

import gplc
from gplc import chains, sampling, storage
from gplc.chains import Position, canonical, run_chain
from gplc.estimators import ESTIMATORS
from gplc.kernels import Linear, SquaredExponential
from gplc.models import MODELS, Unknowns
from gplc.samplers import Hamiltonian

# GPLC's hyperparameters begin to learn a metric late: it has to be there when a run is stopped.
WARMUP, DRAWS = 100, 12
SETTINGS = {"chains": 2, "draws": DRAWS, "warmup": WARMUP, "random_state": 5}
MOMENTS = (1, 50, WARMUP - 1, WARMUP, WARMUP + 1, WARMUP + 7, WARMUP + DRAWS)

# The bases here are smaller than they should be, which fits warn of.
pytestmark = pytest.mark.filterwarnings("ignore:covariances in the basis")

CASES = {
    f"{key} {scheme}": (key, {"sampler": scheme})
    for key, model_class in MODELS.items()
    for scheme in model_class.schemes
}
CASES |= {
    "gplv abs": ("gplv", {"link": "abs"}),
    "gplv learned": ("gplv", {"link": "learned"}),
    "gplc two": ("gplc", {"n_latent": 2}),
    "gplc sum": ("gplc", {"kernel": SquaredExponential() + Linear()}),
    "std points": ("std", {"approximation": gplc.Inducing(6)}),
    **{f"{key} basis": (key, {"approximation": gplc.Hilbert(8, 2.0)}) for key in ("std", "gplv")},
    "gplc basis": ("gplc", {"approximation": gplc.Hilbert(8, 2.0, 6, 2.0)}),
}
each_case = pytest.mark.parametrize("case", CASES)


@pytest.fixture(scope="module")
def data():
    made = gplc.datasets.make_paper("U1", n=20, random_state=3)
    return made.X, made.y


def estimator(case, **settings):
    key, own = CASES[case]
    return ESTIMATORS[key](**SETTINGS | own | settings)


@pytest.fixture(scope="module")
def whole(data):
    """Fits without a stop, made when first asked for."""
    made = {}

    def fit(case):
        if case not in made:
            made[case] = estimator(case).fit(*data)
        return made[case]

    return fit


def same_to_the_last_bit(one, other):
    for name in ("theta", "latent", "log_density", "judged", "nodes"):
        np.testing.assert_array_equal(getattr(one.draws_, name), getattr(other.draws_, name))


@each_case
def test_saved_loaded_and_extended(case, data, whole, tmp_path):
    begun = estimator(case, draws=4).fit(*data)
    begun.save(tmp_path / "fit.nc")
    loaded = gplc.load(tmp_path / "fit.nc").extend(3)
    loaded.save(tmp_path / "fit.nc")
    loaded = gplc.load(tmp_path / "fit.nc").extend(DRAWS - 7)
    same_to_the_last_bit(begun.extend(DRAWS - 4), whole(case))
    same_to_the_last_bit(loaded, whole(case))


class StoppedError(Exception):
    pass


def moments(case):
    """When a run is stopped; with GPLC_HEAVY at random, more than 500 times over all cases."""
    if os.environ.get("GPLC_HEAVY") != "1":
        return MOMENTS
    rng = np.random.default_rng(zlib.crc32(case.encode()))
    # A run that goes on makes two iterations before it can be stopped.
    return np.sort(rng.choice(np.arange(2, WARMUP + DRAWS, 2), 40, replace=False))


@each_case
def test_a_checkpoint_of_any_moment_resumes(case, data, whole, tmp_path, monkeypatch):
    """Killed again and again: in warm-up, at its end, and in the middle of the draws."""
    path = tmp_path / "run.ckpt"
    watch = sampling._Watcher.watch
    monkeypatch.setattr(chains, "BATCH_SECONDS", 0.0)  # it can be stopped after any iteration
    for moment in moments(case):

        def stop(self, now, moment=moment):
            reason = watch(self, now)
            if now[0].position.iteration >= moment:
                self.save(now)
                raise StoppedError
            return reason

        monkeypatch.setattr(sampling._Watcher, "watch", stop)
        with pytest.raises(StoppedError):
            estimator(case, checkpoint=path).fit(*data)
    monkeypatch.setattr(sampling._Watcher, "watch", watch)
    same_to_the_last_bit(estimator(case, checkpoint=path).fit(*data), whole(case))


def exactly(value):
    """All that arithmetic can depend on."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.flags.c_contiguous, value.tobytes()
    return type(value), value


@pytest.mark.parametrize("key", MODELS)
def test_what_a_sampler_learned_is_the_same_in_memory_and_in_a_file(key, data):
    for scheme in MODELS[key].schemes:
        model = MODELS[key](*data)
        chain = run_chain(model, scheme, seed=1, draws=1, warmup=WARMUP)
        text = storage._learned_text(chain.position)
        asleep = chain.position._replace(scheme=(), learned=text)
        awake = storage._awake(asleep, model.scheme(scheme))
        for here, there in zip(chain.position.scheme, awake.scheme, strict=True):
            for field in dataclasses.fields(here.sampler):
                one, other = (getattr(each.sampler, field.name) for each in (here, there))
                assert exactly(one) == exactly(other), (scheme, here.part, field.name)


def test_a_metric_in_another_order_is_noticed():
    """The twin: a Fortran-ordered metric gives other numbers than its copy in C order."""
    fortran = Hamiltonian(scales=np.asfortranarray(np.tril(np.ones((3, 3)))))
    assert exactly(fortran.scales) != exactly(canonical(fortran).scales)
    np.testing.assert_array_equal(fortran.scales, canonical(fortran).scales)
    plain = Hamiltonian(scales=np.ones((3, 3)))
    assert canonical(plain) is plain
    assert type(canonical(Hamiltonian(step_size=np.float64(0.1))).step_size) is float


def test_chains_from_a_file_do_not_go_on_without_what_they_learned(data):
    model = MODELS["std"](*data)
    asleep = Position(Unknowns(model.prior_mean().theta, np.empty(0)), {}, (), 0, "[]")
    with pytest.raises(ValueError, match="need storage"):
        chains.go_on(model, asleep, 1, 0)
