"""A covariance as a function of one latent column: what is free of w, and terms in w.

    K_ij = free_ij + sum_t amplitudes[t]_ij f_t(w_i, w_j)
    f_t(w, w') = (w w')^power (s(w) s(w'))^side exp(-decay (w - w')^2) prod_c phi_c(w, w'),

s being the sign. What is not of that form comes as curves: phi_c is a shape of
t = weight b(w, w') + offset, with b one of a few bases. Shapes and bases are few and general;
kernels choose among them (`gplc.kernels.shapes`).
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gplc._compiled.exponential import exp_of_negative
from gplc._types import Array

Counts = NDArray[np.int64]

# Bases b(w, w') of a curve. SQUARED_GAP: (w - w')^2; SQUARED_SINE: 4 sin^2(pi (w - w') / p).
SQUARED_GAP, SQUARED_SINE = 0, 1
# Shapes phi(t). EXPONENTIAL: exp(-t); RATIONAL: (1 + t / a)^-a; DAMPED: with r^2 = a t,
# (1 + b r + c t) exp(-r). All are 1 at t = 0.
EXPONENTIAL, RATIONAL, DAMPED = 0, 1, 2
# Numbers of a curve: weight, p, a, b, c.
N_NUMBERS = 5


class Forms(NamedTuple):
    """The functions f_t of all terms."""

    decays: Array  # (terms,)
    powers: Counts  # (terms, 3): power, side, and number of curves
    curves: Counts  # (curves, 4): term, shape, basis, and which offset or -1
    numbers: Array  # (curves, N_NUMBERS)


class LatentTerms(NamedTuple):
    """A covariance between n cases, as in the docstring of the module."""

    free: Array  # (n, n)
    amplitudes: Array  # (terms, n, n)
    offsets: Array  # (any number, n, n)
    forms: Forms


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def _multiply_by_smooth(
    row: Array, here: float, w: Array, decay: float, power: int, side: int
) -> None:
    """Multiply row by what is not a curve in f_t(here, w), for each w."""
    if decay > 0.0:
        for r in range(row.size):
            gap = w[r] - here
            row[r] *= exp_of_negative(-decay * gap * gap)
    for _ in range(power):
        for r in range(row.size):
            row[r] *= here * w[r]
    if side == 1:
        for r in range(row.size):
            row[r] *= 1.0 if (here < 0.0) == (w[r] < 0.0) else -1.0


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def _sum(
    t: Array, here: float, w: Array, basis: int, weight: float, period: float, offset: Array
) -> None:
    """The sum t = weight b(here, w) + offset, for each w; `offset` may be empty for none."""
    if basis == SQUARED_SINE:
        for r in range(t.size):
            sine = math.sin(math.pi / period * (w[r] - here))
            t[r] = 4.0 * weight * sine * sine
    else:
        for r in range(t.size):
            gap = w[r] - here
            t[r] = weight * gap * gap
    for r in range(offset.size):
        t[r] += offset[r]


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def _multiply_by_shape(row: Array, t: Array, shape: int, a: float, b: float, c: float) -> None:
    """Multiply row by phi(t)."""
    if shape == EXPONENTIAL:
        for r in range(row.size):
            row[r] *= exp_of_negative(-t[r])
    elif shape == DAMPED:
        for r in range(row.size):
            root = math.sqrt(a * t[r])
            row[r] *= (1.0 + b * root + c * t[r]) * exp_of_negative(-root)
    else:
        for r in range(row.size):
            row[r] *= math.exp(-a * math.log1p(t[r] / a))


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def covariances(
    rows: Array,
    values: Array,
    forms: Forms,
    free: Array,
    amplitudes: Array,
    offsets: Array,
    w: Array,
    scratch: Array,
) -> None:
    """Covariances of one case, at each of some values of its w, with m others.

    `free` (m,), `amplitudes` (terms, m) and `offsets` (any number, m) are the rows of that case,
    and w (m,) those of the others. `rows` (values, m) is overwritten; `scratch` needs two rows of
    at least m entries.
    """
    # Out of the loops, here as elsewhere: every look into a tuple counts a reference.
    decays, powers, curves, numbers = forms
    term_row, t = scratch[0, : w.size], scratch[1, : w.size]
    for term in range(decays.size):
        amplitude, decay = amplitudes[term], decays[term]
        power, side, n_curves = powers[term, 0], powers[term, 1], powers[term, 2]
        for v in range(values.size):
            row, here = rows[v], values[v]
            below = free if term == 0 else row
            if power + side + n_curves == 0:
                # By far the commonest: in one loop.
                for r in range(w.size):
                    gap = w[r] - here
                    row[r] = below[r] + amplitude[r] * exp_of_negative(-decay * gap * gap)
                continue
            term_row[:] = amplitude
            _multiply_by_smooth(term_row, here, w, decay, power, side)
            for c in range(curves.shape[0] if n_curves else 0):
                if curves[c, 0] == term:
                    shape, basis, which = curves[c, 1], curves[c, 2], curves[c, 3]
                    offset = offsets[which] if which >= 0 else t[:0]
                    _sum(t, here, w, basis, numbers[c, 0], numbers[c, 1], offset)
                    _multiply_by_shape(
                        term_row, t, shape, numbers[c, 2], numbers[c, 3], numbers[c, 4]
                    )
            for r in range(w.size):
                row[r] = below[r] + term_row[r]


@njit(cache=True)
def own_variance(value: float, at: int, free: Array, amplitudes: Array, powers: Counts) -> float:
    """K of a case with itself, where its w is `value`: all but powers of w are 1 there.

    `free` (m,) and `amplitudes` (terms, m) are its rows, in which its own place is `at`.
    """
    total = free[at]
    for number in range(powers.shape[0]):
        product = amplitudes[number, at]
        for _ in range(powers[number, 0]):
            product *= value * value
        total += product
    return total
