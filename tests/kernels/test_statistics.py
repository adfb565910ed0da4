"""Geweke's test of what the kernels bring: sweeps and free moves, several w, a learned link."""

import numpy as np
import pytest

from gplc.kernels import (
    Category,
    Constant,
    LatentMoves,
    Linear,
    Matern32,
    Ordinal,
    SquaredExponential,
)
from gplc.models import LatentCovariate, LatentVariance, Standard
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
# Two columns of levels, one of them in an order; the first and last row are alike in both.
LEVELS = np.column_stack([X[:, 0], [0.0, 1.0, 1.0, 0.0], [2.0, 0.0, 1.0, 2.0]])
LEVEL_PRIORS = {
    "level_sd[1]": (0.5, 0.4),
    "level_sd[2]": (0.5, 0.4),
    "level_distance[1]": (0.0, 0.4),
    "level_distance[2]": (-0.5, 0.4),
}
BETWEEN = Category(sd=1.0, correlated=True).on(1)
SLOW = ("GPLC of levels",)  # in the heavy checks only
MODELS = {
    "STD of levels": lambda: Standard(
        LEVELS,
        Y,
        SquaredExponential(constant=0.0).on(0) * BETWEEN + Category().on(1) + Ordinal().on(2),
        LEVEL_PRIORS | {"signal_sd": (0.0, 0.4), "noise_sd": (-1.5, 0.4)},
    ),
    "GPLC of levels": lambda: LatentCovariate(
        LEVELS[:, :2],
        Y,
        SquaredExponential(constant=0.0).on(0, "w") * BETWEEN + Category().on(1),
        PRIORS | {"level_sd[1]": (0.5, 0.4), "level_distance[1]": (0.0, 0.4)},
    ),
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
    monkeypatch.setattr(geweke, "REPLICATES", 600 if geweke.HEAVY else 150)
    monkeypatch.setattr(geweke, "ITERATIONS", 3)
    monkeypatch.setattr(geweke, "DIRECT", 4000 if geweke.HEAVY else 1000)


@pytest.mark.parametrize("name", [name for name in MODELS if geweke.HEAVY or name not in SLOW])
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
