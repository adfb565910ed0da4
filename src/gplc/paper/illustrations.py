"""Numbers behind the paper's three illustrations."""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import ncx2, norm

from gplc._types import Array
from gplc.datasets import standard_extreme_value_logpdf
from gplc.kernels import SquaredExponential
from gplc.models import Standard
from gplc.models.base import draw_gaussian

# Heteroscedasticity from an unobserved covariate (figure 2).
SIGNAL_SD, X_SCALE, W_SCALE = 3.0, 0.8, 3.0
X_RANGE = (0.0, 5.0)
N_CASES = 400
PERCENTILES = tuple(range(5, 100, 5))


class Squared(NamedTuple):
    """y = g(x, w) = (x + w)^2 at one x: densities of w and of y."""

    x: float
    w: Array
    w_density: Array
    y: Array
    y_density: Array


def squared(x: float = 2.0) -> Squared:
    """A normal w and the non-central chi-squared y = (x + w)^2 that comes of it.

    p(y) = (phi(sqrt(y) - x) + phi(-sqrt(y) - x)) / (2 sqrt(y)), with one degree of freedom and
    non-centrality x^2.

    Examples
    --------
    >>> import numpy as np
    >>> one = squared()
    >>> bool(np.trapezoid(one.y_density, one.y) > 0.95)
    True
    """
    w = np.linspace(-3.2, 3.2, 641)
    # The density of y is infinite at 0; what is below 0.01 has probability 0.01.
    y = np.linspace(0.01, (x + w[-1]) ** 2, 2000)
    return Squared(x, w, norm.pdf(w), y, ncx2.pdf(y, df=1, nc=x**2))


class Unobserved(NamedTuple):
    """A function g(x, w) from the prior: cases whose w is hidden, and curves of fixed w."""

    x: Array  # (cases,)
    y: Array  # (cases,)
    grid: Array  # (points,)
    curves: Array  # (percentiles, points)


def unobserved(seed: int) -> Unobserved:
    """Cases and percentile curves of one function drawn from GPLC's prior without noise.

    eta = 3, rho_x = 0.8, rho_w = 3; x uniform on [0, 5], w ~ N(0, 1). The function is drawn on a
    lattice and followed from there to the cases, so that both panels show the same one.

    Examples
    --------
    >>> unobserved(1).curves.shape
    (19, 201)
    """
    rng = np.random.default_rng(seed)
    kernel = SquaredExponential(constant=0.0)
    theta = np.log([SIGNAL_SD, X_SCALE, W_SCALE])
    # Lattice steps well below the length scales: what lies between is known to many digits.
    lattice_x, lattice_w = np.linspace(*X_RANGE, 26), np.linspace(-4.0, 4.0, 9)
    known = np.array([[x, w] for x in lattice_x for w in lattice_w])
    drawn = draw_gaussian(rng, kernel.matrix(theta, known, known))
    standard = Standard(known, drawn, kernel)
    conditioned = standard.condition(standard.unknowns([*theta, math.log(1e-4 * SIGNAL_SD)]))

    def g(points: Array) -> Array:
        return conditioned.function(points)[0]

    x = rng.uniform(*X_RANGE, N_CASES)
    w = rng.standard_normal(N_CASES)
    grid = np.linspace(*X_RANGE, 201)
    curves = [
        g(np.column_stack([grid, np.full(grid.size, ndtri(percentile / 100))]))
        for percentile in PERCENTILES
    ]
    return Unobserved(x, g(np.column_stack([x, w])), grid, np.array(curves))


def extreme_value() -> tuple[Array, Array]:
    """Density of the extreme value residual with mean 0 and variance 1.

    Examples
    --------
    >>> import numpy as np
    >>> t, density = extreme_value()
    >>> abs(float(np.trapezoid(t * density, t))) < 1e-3
    True
    """
    t = np.linspace(-12.0, 3.0, 1501)
    return t, np.exp(standard_extreme_value_logpdf(t))


def skewness() -> float:
    """Skewness of the extreme value residual, -12 sqrt(6) zeta(3) / pi^3.

    Examples
    --------
    >>> round(skewness(), 2)
    -1.14
    """
    zeta_3 = 1.2020569031595942
    return -12.0 * math.sqrt(6.0) * zeta_3 / math.pi**3
