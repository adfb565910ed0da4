"""Geweke's test of what the kernels bring: sweeps and free moves, several w, a learned link."""

import numpy as np
import pytest

from gplc.kernels import Constant, LatentMoves, Linear, Matern32, SquaredExponential
from gplc.models import LatentCovariate, LatentVariance
from tests.statistical import test_geweke as geweke

X = np.array([[-1.2], [-0.3], [0.4], [1.3]])
Y = np.zeros(len(X))
PRIORS = {
    "signal_sd": (0.0, 0.4),
    "length_scale": (0.0, 0.4),
    "latent_length_scale": (0.5, 0.4),
    "noise_sd": (-1.5, 0.4),
}
# y is nearly a line in w, so that a shift which ignores it shows.
SLOPES = {
    "signal_sd": (-2.0, 0.4),
    "length_scale": (0.0, 0.4),
    "latent_length_scale": (0.5, 0.4),
    "slope_sd": (-2.0, 0.4),
    "latent_slope_sd": (1.0, 0.3),
    "noise_sd": (-3.0, 0.3),
}
MODELS = {
    "SE + linear": lambda: LatentCovariate(
        X, Y, SquaredExponential(constant=0.0) + Linear(), SLOPES
    ),
    "two covariates": lambda: LatentCovariate(
        X, Y, Constant(1.0) + Matern32(), PRIORS, n_latent=2
    ),
    "learned link": lambda: LatentVariance(
        X,
        Y,
        SquaredExponential(constant=0.3),
        {"signal_sd_y": (-2.0, 0.4), "length_scale": (0.0, 0.4), "signal_sd_z": (0.0, 0.4)},
        link="learned",
        kernel_z=Constant(1.0) + Matern32(),
        mean_z=0.5,
        jitter=0.1,
    ),
}


@pytest.fixture(autouse=True)
def _shorter(monkeypatch):
    if not geweke.HEAVY:
        monkeypatch.setattr(geweke, "REPLICATES", 150)
        monkeypatch.setattr(geweke, "ITERATIONS", 3)
        monkeypatch.setattr(geweke, "DIRECT", 1000)


@pytest.mark.parametrize("name", MODELS)
def test_default_scheme_keeps_the_joint_distribution(name, note):
    model = MODELS[name]()
    p = geweke.p_values(model, model.scheme("default"), seed=7)
    note("smallest p", min(p.values()))
    assert min(p.values()) > geweke.THRESHOLD, p


def test_a_shift_that_is_not_free_is_caught(monkeypatch):
    wrong = LatentMoves(shift=True, reflection=True)
    monkeypatch.setattr(Linear, "moves", lambda *_: wrong)
    model = MODELS["SE + linear"]()
    p = geweke.p_values(model, model.scheme("default"), seed=8)
    assert min(p.values()) < geweke.THRESHOLD
