"""The models are one family: GPLC with other kernels is STD, or GPLV with SD = |z|.

K_1(x, x') + sigma^2 w w' is the covariance of h(x) + b w, with h ~ GP(0, K_1), b ~ N(0, sigma^2):
given b that is a standard model with noise SD |b|. K_1 + w w' K_2 is that of h(x) + w r(x) with
r ~ GP(0, K_2): given r it is GPLV with z = r(x). Noise of SD zeta is on top of both; the models
are equal for every zeta, so that none has to be too small for the arithmetic.
"""

import os
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import norm, t

from gplc.chains import run_chain
from gplc.kernels import Leaf, Linear, SquaredExponential
from gplc.models import LatentCovariate, LatentVariance, Standard, Unknowns

ZETA = 0.25
GRID = np.linspace(-6.0, 6.0, 41)
WEIGHTS = norm.pdf(GRID) * (GRID[1] - GRID[0])


@dataclass(frozen=True)
class Nugget(Leaf):
    """Variance of its own for every distinct x."""

    variance: float = ZETA**2

    def hyperparameters(self, n_columns):
        return {}

    def evaluate(self, theta, A, B):
        return self.variance * (A[:, None, :] == B[None, :, :]).all(axis=2)


MAIN = SquaredExponential(constant=0.5, sd=1.0)
SECOND = SquaredExponential(constant=0.4)
JITTER = 0.05
AS_STANDARD = MAIN.on("x") + Linear().on("w")
AS_VARIANCE = MAIN.on("x") + Linear(sd=1.0).on("w") * (SECOND + Nugget(JITTER**2)).on("x")


def log_likelihood(model, unknowns):
    lower = np.linalg.cholesky(model.covariance(unknowns))
    white = np.linalg.solve(lower, model.y)
    return -0.5 * (white @ white + model.n * np.log(2.0 * np.pi)) - np.log(np.diag(lower)).sum()


def with_noise(rho, sd):
    """Unknowns of the standard model with noise of this SD and zeta."""
    return Unknowns(np.array([rho, 0.5 * np.log(sd**2 + ZETA**2)]), np.empty(0))


def marginal(model, theta, latents, weights):
    """The likelihood of theta with the latent values summed out."""
    terms = [log_likelihood(model, Unknowns(theta, latent)) for latent in latents]
    return float(weights @ np.exp(terms))


def latent_grid(n):
    """All vectors of n standard normal values on the grid, and their weights."""
    axes = np.meshgrid(*[GRID] * n, indexing="ij")
    of_axes = np.meshgrid(*[WEIGHTS] * n, indexing="ij")
    return np.array([a.ravel() for a in axes]).T, np.prod([a.ravel() for a in of_axes], axis=0)


# Two cases: with one and with two the predictive density of the second is the same too.


@pytest.mark.parametrize("n", [1, 2])
def test_gplc_is_the_standard_model_after_summing_w_out(n):
    X, y = np.array([[-0.4], [0.5]])[:n], np.array([0.2, -0.1])[:n]
    covariate = LatentCovariate(X, y, AS_STANDARD, noise_sd=ZETA)
    standard = Standard(X, y, MAIN)
    rho, sigma = np.log(0.8), np.log(1.5)
    slopes = np.linspace(-9.0, 9.0, 601)
    exact = sum(
        weight * np.exp(log_likelihood(standard, with_noise(rho, b)))
        for b, weight in zip(slopes, norm.pdf(slopes, 0.0, 1.5) * 0.03, strict=True)
    )
    assert covariate.names == ("length_scale", "latent_slope_sd")
    result = marginal(covariate, np.array([rho, sigma]), *latent_grid(n))
    assert result == pytest.approx(exact, rel=1e-6)
    # The noise SD is |b|, not sigma itself: taken literally, the paper's claim fails.
    literal = log_likelihood(standard, with_noise(rho, 1.5))
    assert abs(np.exp(literal) / result - 1.0) > 0.02


@pytest.mark.parametrize("n", [1, 2])
def test_gplc_is_gplv_after_summing_w_and_z_out(n):
    X, y = np.array([[-0.4], [0.5]])[:n], np.array([0.9, -0.6])[:n]
    covariate = LatentCovariate(X, y, AS_VARIANCE, noise_sd=ZETA)
    variance = LatentVariance(X, y, MAIN + Nugget(), link="abs", kernel_z=SECOND, jitter=JITTER)
    theta = np.log([0.8, 0.6, 1.1])  # rho_y, eta_z, rho_z
    assert len(covariate.names) == len(variance.names) == 3
    nodes, weights = latent_grid(n)
    covariance_z = SECOND.matrix(theta[1:], X, X) + JITTER**2 * np.eye(n)
    of_z = nodes @ np.linalg.cholesky(covariance_z).T
    assert marginal(covariate, theta, nodes, weights) == pytest.approx(
        marginal(variance, theta, of_z, weights), rel=1e-6
    )
    other = variance.kernel_z.matrix(theta[1:] + 0.3, X, X) + JITTER**2 * np.eye(n)
    wrong = marginal(variance, theta, nodes @ np.linalg.cholesky(other).T, weights)
    assert abs(wrong / marginal(covariate, theta, nodes, weights) - 1.0) > 0.01


# Chains. Probabilities of being below given values are averages over chains; the difference of two
# such averages, or from an exact value, is judged by the spread of the chains (t at 1e-5).

HEAVY = os.environ.get("GPLC_HEAVY") == "1"
CHAINS, DRAWS, WARMUP = (32, 1000, 200) if HEAVY else (8, 120, 60)
X = np.linspace(-1.5, 1.5, 8)[:, None]
Y = np.random.default_rng(1).normal(size=8) * 0.6 + np.sin(X[:, 0])
NEW, NODES = np.array([[0.4]]), np.array([-1.5, -0.5, 0.5, 1.5])
PRIORS = {"length_scale": (0.0, 0.5), "signal_sd": (-0.7, 0.5)}


def shares(model, names, limits):
    """Share of draws below each limit, and the means of E(y* | draw), E(y*^2 | draw), by chain."""
    result = []
    for seed in range(CHAINS):
        chain = run_chain(model, seed=seed, draws=DRAWS, warmup=WARMUP)
        row = [
            np.mean(chain.theta[:, model.names.index(name)] < limit)
            for name, values in zip(names, limits, strict=True)
            for limit in values
        ]
        moments = []
        for theta, latent in list(zip(chain.theta, chain.latent, strict=True))[::10]:
            mean, sd = model.condition(Unknowns(theta, latent)).components(NEW, NODES)
            f_mean, _ = model.condition(Unknowns(theta, latent)).function(NEW)
            moments.append([f_mean[0], np.mean(mean**2 + sd**2)])
        result.append(row + np.mean(moments, axis=0).tolist())
    return np.array(result)


def test_chains_of_both_models_agree():
    covariate = LatentCovariate(
        X,
        Y,
        AS_VARIANCE,
        PRIORS,
        noise_sd=ZETA,
    )
    priors = {f"{name}_{which}": value for name, value in PRIORS.items() for which in "yz"}
    priors.pop("signal_sd_y")
    variance = LatentVariance(
        X, Y, MAIN + Nugget(), priors, link="abs", kernel_z=SECOND, jitter=JITTER
    )
    limits = [[-0.3, 0.2], [-1.0, -0.5], [-0.3, 0.3]]
    ours = shares(covariate, covariate.names, limits)
    theirs = shares(variance, variance.names, limits)
    gap = ours.mean(axis=0) - theirs.mean(axis=0)
    error = np.sqrt((ours.var(axis=0, ddof=1) + theirs.var(axis=0, ddof=1)) / CHAINS)
    # E(y*^2) has four nodes in place of an integral, the same error in both.
    assert (np.abs(gap) < t.isf(5e-6, 2 * CHAINS - 2) * error).all(), (gap, error)


def test_chain_of_gplc_has_the_posterior_of_the_standard_model():
    covariate = LatentCovariate(
        X,
        Y,
        AS_STANDARD,
        {"length_scale": (0.0, 0.5), "latent_slope_sd": (-0.5, 0.7)},
        noise_sd=ZETA,
    )
    # The exact posterior of rho and sigma, with b summed out, on a grid.
    standard = Standard(X, Y, MAIN)
    rhos, sigmas = np.linspace(-2.5, 2.5, 31), np.linspace(-4.0, 3.0, 71)
    slopes = np.linspace(0.02, 4.0, 80)
    likelihood = np.exp(
        [[log_likelihood(standard, with_noise(rho, b)) for b in slopes] for rho in rhos]
    )
    joint = likelihood @ norm.pdf(slopes[:, None], 0.0, np.exp(sigmas))
    joint *= norm.pdf(rhos, 0.0, 0.5)[:, None] * norm.pdf(sigmas, -0.5, 0.7)
    joint /= joint.sum()
    cumulative = [np.cumsum(joint.sum(axis=axis)) for axis in (1, 0)]
    limits, exact = [], []
    for values, total in zip((rhos, sigmas), cumulative, strict=True):
        places = [int(np.searchsorted(total, q)) for q in (0.2, 0.5, 0.8)]
        # The share of a grid point counts half on either side of it.
        limits.append([values[k] + 0.5 * (values[1] - values[0]) for k in places])
        exact += [total[k] for k in places]
    ours = shares(covariate, covariate.names, limits)[:, :-2]
    gap = ours.mean(axis=0) - np.array(exact)
    error = ours.std(axis=0, ddof=1) / np.sqrt(CHAINS)
    assert (np.abs(gap) < t.isf(5e-6, CHAINS - 1) * error + 0.002).all(), (gap, error)
