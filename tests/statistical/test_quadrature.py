"""Posterior means against numerical quadrature, on cases small enough for it.

The exact values come from grids over densities written out here, by none of the package's
code. The tolerance comes from replicate chains: with R = 24 of them, t has 23 degrees of freedom
and |t| > 5.5 has probability 1.4e-5; with fewer than 100 statistics in the file, right samplers
with fresh seeds would fail it about once in seven hundred runs. Seeds are fixed.
"""

import os

import numpy as np
import pytest

from gplc.chains import run_chain
from gplc.kernels import SquaredExponential
from gplc.models import (
    LatentCovariate,
    LatentVariance,
    Standard,
    Unknowns,
    Update,
)
from gplc.models.latent_covariate import marginal, regrowth, sweep
from gplc.samplers import (
    Direct,
    EllipticalSlice,
    LearnedChoices,
    MarginalHamiltonian,
    Metropolis,
    MetropolisSweep,
    ModifiedMetropolis,
    Pools,
    Slice,
    SliceSweep,
    SymmetricProposal,
)

HEAVY = os.environ.get("GPLC_HEAVY") == "1"
LENGTHS = 10 if HEAVY else 1
REPLICATES, LARGEST_T = 24, 5.5


def gaussian_log_density(y, covariance):
    """log N(y | 0, C) for a stack of covariances (..., n, n), up to a constant."""
    _, log_det = np.linalg.slogdet(covariance)
    solved = np.linalg.solve(covariance, np.broadcast_to(y, covariance.shape[:-1])[..., None])
    return -0.5 * (log_det + (solved[..., 0] * y).sum(axis=-1))


def grid_means(axes, log_density, statistics):
    """Posterior means by the trapezoidal rule, which is spectrally accurate for densities that
    vanish at the ends of the grid."""
    grids = np.meshgrid(*axes, indexing="ij")
    points = np.stack([g.ravel() for g in grids], axis=-1)
    log_values = np.concatenate(
        [log_density(chunk) for chunk in np.array_split(points, 1 + len(points) // 50_000)]
    )
    weights = np.exp(log_values - log_values.max())
    weights /= weights.sum()
    edge = np.zeros(grids[0].shape, dtype=bool)
    for axis in range(edge.ndim):
        np.moveaxis(edge, axis, 0)[[0, -1]] = True
    assert weights[edge.ravel()].sum() < 1e-4  # the grid holds the posterior
    return {name: float(weights @ f(points)) for name, f in statistics.items()}


def assert_chains_agree(model, scheme, start, draws, exact, statistics, read, seed, report):
    """|t| of every statistic over replicate chains is below LARGEST_T."""
    means = {name: [] for name in statistics}
    for stream in np.random.SeedSequence(seed).spawn(REPLICATES):
        chain = run_chain(model, scheme, stream, draws * LENGTHS, 60, start)
        for name, f in statistics.items():
            means[name].append(float(f(read(chain)).mean()))
    t = {
        name: float((np.mean(v) - exact[name]) / (np.std(v, ddof=1) / np.sqrt(REPLICATES)))
        for name, v in means.items()
    }
    report("t", t)
    assert max(map(abs, t.values())) < LARGEST_T, (t, exact)


def test_standard_model_all_hyperparameters(note):
    x = np.array([-1.2, -0.7, 0.0, 0.4, 1.1, 1.6])
    y = np.array([-0.9, -1.3, 0.2, 0.7, 0.5, 1.4])
    priors = {"signal_sd": (0.0, 0.8), "length_scale": (0.0, 0.8), "noise_sd": (-1.0, 0.8)}
    model = Standard(x[:, None], y, SquaredExponential(constant=0.5), priors)
    prior_means, square = np.array([0.0, 0.0, -1.0]), (x[:, None] - x) ** 2

    def log_density(theta):
        eta, rho, sigma = np.exp(theta.T)[:, :, None, None]
        covariance = 0.25 + eta**2 * np.exp(-square / rho**2) + sigma**2 * np.eye(6)
        return gaussian_log_density(y, covariance) - 0.5 * (
            ((theta - prior_means) / 0.8) ** 2
        ).sum(axis=1)

    statistics = {
        **{name: lambda p, k=k: p[:, k] for k, name in enumerate(model.names)},
        "noise_sd^2": lambda p: p[:, 2] ** 2,
        "signal x noise": lambda p: p[:, 0] * p[:, 2],
    }
    axes = [m + 0.8 * np.linspace(-4.5, 4.5, 36) for m in prior_means]
    exact = grid_means(axes, log_density, statistics)
    assert_chains_agree(model, "paper", None, 250, exact, statistics, lambda c: c.theta, 1, note)


GPLC_X = np.array([-0.3, 0.2, 0.6])
GPLC_Y = np.array([0.9, -0.7, 0.1])
GPLC_THETA = np.log([1.2, 1.5, 0.8, 0.35])  # eta, rho, rho_w, sigma


def gplc_log_density(w, log_rho_w, log_sigma=GPLC_THETA[3]):
    """log p(y | w, theta) p(w) up to a constant, for w (..., n)."""
    eta, rho, *_ = np.exp(GPLC_THETA)
    x, y = GPLC_X[: w.shape[-1]], GPLC_Y[: w.shape[-1]]
    by_x = (x[:, None] - x) ** 2 / rho**2
    by_w = (w[..., :, None] - w[..., None, :]) ** 2 * np.exp(-2.0 * log_rho_w)[..., None, None]
    noise = np.exp(2.0 * np.asarray(log_sigma))[..., None, None] * np.eye(len(x))
    covariance = 0.49 + eta**2 * np.exp(-by_x - by_w) + noise
    return gaussian_log_density(y, covariance) - 0.5 * (w**2).sum(axis=-1)


def assert_latents_agree(updates, draws, seed, note):
    """Over (w_0, w_1, w_2), with theta held fixed."""
    model = LatentCovariate(GPLC_X[:, None], GPLC_Y, SquaredExponential(constant=0.7))
    # Signs of w are free under reflection: only what does not change with them has a mean.
    statistics = {
        "w0^2": lambda w: w[:, 0] ** 2,
        "w1^2": lambda w: w[:, 1] ** 2,
        "w0 w1": lambda w: w[:, 0] * w[:, 1],
        "w1 w2": lambda w: w[:, 1] * w[:, 2],
    }
    log_rho_w = np.array(GPLC_THETA[2])
    exact = grid_means(
        [np.linspace(-5, 5, 61)] * 3,
        lambda w: gplc_log_density(w, np.full(len(w), log_rho_w)),
        statistics,
    )
    assert_chains_agree(
        model,
        updates,
        Unknowns(GPLC_THETA, np.array([0.5, -0.5, 0.0])),
        draws,
        exact,
        statistics,
        lambda c: c.latent,
        seed,
        note,
    )


@pytest.mark.parametrize(("block_size", "width"), [(16, 4.0), (1, 0.5), (2, 20.0)])
def test_gplc_latent_sweep(block_size, width, note, monkeypatch):
    monkeypatch.setattr(sweep, "BLOCK_SIZE", block_size)
    assert_latents_agree([Update("w", SliceSweep(width))], 300, 2, note)


@pytest.mark.parametrize("particles", [regrowth.PARTICLES, 1])
def test_gplc_regrowth(particles, note, monkeypatch):
    # By no other update: two of the three cases are drawn anew each time.
    monkeypatch.setattr(regrowth, "PARTICLES", particles)
    assert_latents_agree([Update("regrowth", LearnedChoices(2))], 120, 6, note)


@pytest.mark.parametrize("moves", ["all", "scale alone moves rho_w"])
def test_gplc_free_moves(moves, note):
    # Over (w_0, w_1, log rho_w): the scale move's Jacobian and the shift's variance matter here.
    model = LatentCovariate(
        GPLC_X[:2, None],
        GPLC_Y[:2],
        SquaredExponential(constant=0.7),
        {"latent_length_scale": (0.3, 0.6)},
    )
    scheme = [Update("w", SliceSweep(4.0)), Update("scale", Slice(0.5))]
    if moves == "all":
        scheme += [
            Update("latent_length_scale", Slice()),
            Update("shift", Direct()),
            Update("reflection", Direct()),
            Update("fold", SymmetricProposal(2)),
        ]
    statistics = {
        "w0^2": lambda p: p[:, 0] ** 2,
        "w0 w1": lambda p: p[:, 0] * p[:, 1],
        "log rho_w": lambda p: p[:, 2],
        "squares x log rho_w": lambda p: p[:, 2] * (p[:, :2] ** 2).sum(axis=1),
    }

    def log_density(p):
        return gplc_log_density(p[:, :2], p[:, 2]) - 0.5 * ((p[:, 2] - 0.3) / 0.6) ** 2

    axes = [np.linspace(-5, 5, 81), np.linspace(-5, 5, 81), 0.3 + 0.6 * np.linspace(-4.5, 4.5, 41)]
    exact = grid_means(axes, log_density, statistics)
    assert_chains_agree(
        model,
        scheme,
        Unknowns(GPLC_THETA, np.array([0.5, -0.5])),
        300,
        exact,
        statistics,
        lambda c: np.column_stack([c.latent, c.theta[:, 2]]),
        3,
        note,
    )


@pytest.mark.parametrize(
    "pools",
    [Pools(), Pools(5), Pools(5, repeats=1, zoom=0.2), Pools(2, repeats=3, zoom=0.6)],
    ids=["many", "few", "window", "pairs"],
)
def test_gplc_pools(pools, note):
    # By no other update: exact whatever the size of a pool.
    assert_latents_and_noise_agree([Update("function", pools)], 400, 4, note)


@pytest.mark.parametrize("n_cells", [marginal.N_CELLS, 6])
def test_gplc_function_view(n_cells, note, monkeypatch):
    # By no other update, with what warm-up has learned: exact whatever the number of cells.
    few = marginal.grid(n_cells)
    monkeypatch.setattr(marginal, "grid", lambda: few)
    monkeypatch.setattr(marginal, "N_CELLS", n_cells)
    updates = [Update("marginal", MarginalHamiltonian(8))]
    assert_latents_and_noise_agree(updates, 120, 7, note)


def assert_latents_and_noise_agree(updates, draws, seed, note):
    """Over (w_0, w_1, log sigma), with the rest of theta held fixed."""
    model = LatentCovariate(
        GPLC_X[:2, None], GPLC_Y[:2], SquaredExponential(constant=0.7), {"noise_sd": (-1.0, 0.5)}
    )
    statistics = {
        "w0^2": lambda p: p[:, 0] ** 2,
        "w0 w1": lambda p: p[:, 0] * p[:, 1],
        "log sigma": lambda p: p[:, 2],
        "squares x log sigma": lambda p: p[:, 2] * (p[:, :2] ** 2).sum(axis=1),
    }
    log_rho_w = np.array(GPLC_THETA[2])

    def log_density(p):
        density = gplc_log_density(p[:, :2], np.full(len(p), log_rho_w), p[:, 2])
        return density - 0.5 * ((p[:, 2] + 1.0) / 0.5) ** 2

    axes = [np.linspace(-5, 5, 81), np.linspace(-5, 5, 81), -1 + 0.5 * np.linspace(-4.5, 4.5, 31)]
    exact = grid_means(axes, log_density, statistics)
    assert_chains_agree(
        model,
        updates,
        Unknowns(GPLC_THETA, np.array([0.5, -0.5])),
        draws,
        exact,
        statistics,
        lambda c: np.column_stack([c.latent, c.theta[:, 3]]),
        seed,
        note,
    )


LATENT_SAMPLERS = {
    "modified Metropolis": Update("z", ModifiedMetropolis(0.5, 4)),
    "elliptical slice": Update("z", EllipticalSlice(2)),
    "Metropolis sweep": Update("z sites", MetropolisSweep(1.0)),
    "slice sweep": Update("z sites", SliceSweep(1.0)),
}


@pytest.mark.parametrize("scale", ["log", "abs"])
@pytest.mark.parametrize("sampler", LATENT_SAMPLERS)
def test_gplv_latent_values(sampler, scale, note):
    x, y = np.array([-0.4, 0.5]), np.array([2.2, 0.1])
    theta = np.log([0.4, 1.0, 0.9, 0.7])
    eta_y, rho_y, eta_z, rho_z = np.exp(theta)
    constant, jitter = 0.3, 0.1
    model = LatentVariance(
        x[:, None], y, SquaredExponential(constant=constant), link=scale, jitter=jitter
    )
    square = (x[:, None] - x) ** 2
    k_y = constant**2 + eta_y**2 * np.exp(-square / rho_y**2)
    c_z = constant**2 + eta_z**2 * np.exp(-square / rho_z**2) + jitter**2 * np.eye(2)
    precision = np.linalg.inv(c_z)

    def log_density(z):
        sd = np.exp(z) if scale == "log" else np.abs(z)
        covariance = k_y + sd[:, :, None] ** 2 * np.eye(2)
        return gaussian_log_density(y, covariance) - 0.5 * np.einsum(
            "si,ij,sj->s", z, precision, z
        )

    if scale == "log":
        statistics = {
            "z0": lambda z: z[:, 0],
            "z1": lambda z: z[:, 1],
            "z0^2": lambda z: z[:, 0] ** 2,
            "z0 z1": lambda z: z[:, 0] * z[:, 1],
        }
    else:  # z and -z are the same
        statistics = {
            "|z0|": lambda z: np.abs(z[:, 0]),
            "z1^2": lambda z: z[:, 1] ** 2,
            "z0 z1": lambda z: z[:, 0] * z[:, 1],
        }
    exact = grid_means([np.linspace(-5, 5, 401)] * 2, log_density, statistics)
    assert_chains_agree(
        model,
        [LATENT_SAMPLERS[sampler]],
        Unknowns(theta, np.array([0.4, -0.4])),
        300,
        exact,
        statistics,
        lambda c: c.latent,
        [4, list(LATENT_SAMPLERS).index(sampler)],
        note,
    )


@pytest.mark.parametrize("part", ["signal_sd_z", "length_scale_y"])
def test_gplv_hyperparameters_by_metropolis(part, note):
    # One hyperparameter of each process, the rest fixed: a grid over one dimension.
    x, y = np.array([-0.6, 0.1, 0.5]), np.array([1.2, -0.4, 0.9])
    z = np.array([0.6, -0.9, -0.2])
    theta = np.log([1.1, 0.8, 0.7, 0.6])
    model = LatentVariance(x[:, None], y, priors={part: (0.2, 0.9)}, jitter=0.1)
    place = model.names.index(part)
    square = (x[:, None] - x) ** 2

    def log_density(value):
        full = np.tile(theta, (len(value), 1))
        full[:, place] = value[:, 0]
        eta_y, rho_y, eta_z, rho_z = np.exp(full.T)[:, :, None, None]
        c_y = 1.0 + eta_y**2 * np.exp(-square / rho_y**2) + np.diag(np.exp(2 * z))
        c_z = 1.0 + eta_z**2 * np.exp(-square / rho_z**2) + 0.01 * np.eye(3)
        prior = -0.5 * ((value[:, 0] - 0.2) / 0.9) ** 2
        return gaussian_log_density(y, c_y) + gaussian_log_density(z, c_z) + prior

    statistics = {"value": lambda v: v[:, 0], "square": lambda v: v[:, 0] ** 2}
    exact = grid_means([0.2 + 0.9 * np.linspace(-6, 6, 2001)], log_density, statistics)
    assert_chains_agree(
        model,
        [Update(part, Metropolis())],
        Unknowns(theta, z),
        500,
        exact,
        statistics,
        lambda c: c.theta[:, [place]],
        5,
        note,
    )
