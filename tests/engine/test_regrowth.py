"""Particles that put cases back (`gplc._compiled.regrowth`), against quadrature over their w.

Two cases with two features each, so that sums over a fine grid are the integrals. Estimates are
judged by t over independent runs: |t| > 4.5 has probability 7e-6, and there are six of them.
"""

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from gplc._compiled import regrowth as compiled
from gplc._compiled.pools import SPREAD
from gplc._compiled.regrowth import Randomness, Window

RUNS, LARGEST_T = 8000, 4.5
LAST, N_CELLS, PARTICLES = 0.9, 8, 2
EDGES = np.linspace(-LAST, LAST, N_CELLS + 1)
TABLE = np.ascontiguousarray(np.column_stack([1.0 + EDGES, 2.0 * np.sin(3.0 * EDGES)]))

_half = np.random.default_rng(1).normal(size=(4, 4))
WINDOW = Window(
    np.array([0.8, -0.5]),
    np.array([0.1, 0.3]),  # noise that is known is not the same for all
    np.array([0.2, 0.5, -0.1, 0.4]),
    _half @ _half.T,
)


def w_of(t):
    return SPREAD * t / np.sqrt(1.0 - t * t)


def given_w(t):
    """log N(y | what is foretold given w) for t (..., 2), features being linear in between."""
    features = np.stack([np.interp(t, EDGES, column) for column in TABLE.T], axis=-1)
    design = np.zeros((*t.shape[:-1], 2, 4))
    design[..., 0, :2], design[..., 1, 2:] = features[..., 0, :], features[..., 1, :]
    gaps = WINDOW.y - design @ WINDOW.mean
    covariance = design @ WINDOW.covariance @ np.swapaxes(design, -1, -2)
    covariance = covariance + np.diag(WINDOW.variances)
    solved = np.linalg.solve(covariance, gaps[..., None])[..., 0]
    return -0.5 * (np.sum(gaps * solved, axis=-1) + np.linalg.slogdet(covariance)[1])


PER_AXIS = 320
AXIS = (np.arange(PER_AXIS) + 0.5) / PER_AXIS * 2.0 * LAST - LAST
PLACES = np.stack(np.meshgrid(AXIS, AXIS, indexing="ij"), axis=-1).reshape(-1, 2)
# N(w | 0, 1) dw / dt, from SciPy; as in the compiled code without 2 pi.
SLOPE = (w_of(AXIS + 1e-6) - w_of(AXIS - 1e-6)) / 2e-6
PRIOR = norm.pdf(w_of(AXIS)) * SLOPE * math.sqrt(2.0 * math.pi)
JOINT = np.exp(given_w(PLACES)) * np.outer(PRIOR, PRIOR).ravel() * (2.0 * LAST / PER_AXIS) ** 2
DENSITY = JOINT.sum()


def runs(held, seed):
    """Estimates over the density, log density given w, and t of the w, of independent runs.

    Where they are held, values come from the posterior.
    """
    rng = np.random.default_rng(seed)
    begun = rng.choice(JOINT.size, size=RUNS, p=JOINT / DENSITY)
    shares, given, t = np.empty(RUNS), np.empty(RUNS), np.empty((RUNS, 2))
    for k in range(RUNS):
        # Anywhere in its square of the grid, as the density is nearly the same there.
        t[k] = PLACES[begun[k]] + (rng.random(2) - 0.5) * 2.0 * LAST / PER_AXIS
        w = w_of(t[k])
        random = Randomness(*rng.random((3, PARTICLES, 2)), rng.random())
        estimate, given[k] = compiled.run(WINDOW, TABLE, LAST, random, held, w)
        shares[k] = math.exp(estimate) / DENSITY
        assert not held or np.allclose(w, w_of(t[k]), rtol=1e-12)
        t[k] = w / np.sqrt(SPREAD**2 + w**2)
    return shares, given, t


def t_value(values, exact):
    return float((values.mean() - exact) / (values.std(ddof=1) / math.sqrt(values.size)))


@pytest.fixture(scope="module")
def free():
    return runs(held=False, seed=2)


@pytest.fixture(scope="module")
def held():
    return runs(held=True, seed=3)


def test_the_reference_is_scipys():
    one = np.array([0.3, -0.2])
    design = np.zeros((2, 4))
    for case in range(2):
        design[case, 2 * case : 2 * case + 2] = [
            np.interp(one[case], EDGES, column) for column in TABLE.T
        ]
    covariance = design @ WINDOW.covariance @ design.T + np.diag(WINDOW.variances)
    exact = multivariate_normal(design @ WINDOW.mean, covariance).logpdf(WINDOW.y)
    assert given_w(one) == pytest.approx(exact + math.log(2.0 * math.pi))


@pytest.mark.parametrize("kind", ["free", "held"])
def test_density_given_the_values_is_the_exact_one(kind, request):
    _, given, t = request.getfixturevalue(kind)
    np.testing.assert_allclose(given, given_w(t), rtol=1e-8, atol=1e-8)


def test_estimate_is_unbiased(free, note):
    shares, _, _ = free
    t = t_value(shares, 1.0)
    note("t", t)
    note("relative SD of one estimate", float(shares.std()))
    assert shares.std() > 0.1  # it is an estimate
    assert abs(t) < LARGEST_T


def test_values_weighted_by_their_estimate_are_from_the_posterior(free, note):
    shares, _, t = free
    of_t = {
        "t0": lambda t: t[:, 0],
        "t1": lambda t: t[:, 1],
        "t0^2": lambda t: t[:, 0] ** 2,
        "t0 t1": lambda t: t[:, 0] * t[:, 1],
    }
    found = {
        name: t_value(shares * (f(t) - JOINT @ f(PLACES) / DENSITY), 0.0)
        for name, f in of_t.items()
    }
    note("t", found)
    assert max(map(abs, found.values())) < LARGEST_T


def test_estimate_with_posterior_values_held_is_right_upside_down(free, held, note):
    """E(1 / estimate) is 1 / density then, and only then: why a fold's way back is conditional."""
    t = t_value(1.0 / held[0], 1.0)
    wrong = t_value(1.0 / free[0], 1.0)
    note("t", {"held": t, "not held": wrong})
    assert abs(t) < LARGEST_T
    assert abs(wrong) > LARGEST_T
