"""Single-site updates of the latent values z_i of GPLV: O(1) a density, O(n^2) a move.

With Q = C_y^-1 and a = Q y, adding d to the i-th diagonal entry of C_y changes

    log det C_y    by  log(1 + d Q_ii)
    y' C_y^-1 y    by  -d a_i^2 / (1 + d Q_ii)

and moving z_i by h changes z' P z (P = C_z^-1, g = P z) by 2 h g_i + h^2 P_ii.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gplc._types import Array

LOG_LINK, ABS_LINK = 0, 1

# Places in the array of counts that a sweep adds to.
EVALUATIONS, IMPOSSIBLE, EXHAUSTED, OUT, IN = 0, 1, 2, 3, 4
N_COUNTS = 5


@njit(cache=True)
def noise_variance(value: float, link: int) -> float:
    """exp(2 z) if z is a log SD, z^2 if the SD is |z|."""
    if link == LOG_LINK:
        return math.exp(min(2.0 * value, 700.0))
    return value * value


class Running(NamedTuple):
    """What a sweep keeps up to date: all arrays change as values of z move."""

    z: Array
    link: int
    inverse: Array  # Q
    alpha: Array  # a = Q y
    precision: Array  # P, which stays
    pull: Array  # g = P z
    counts: NDArray[np.int64]


@njit(cache=True)
def log_ratio(value: float, i: int, running: Running) -> float:
    """Log density with z_i = value, less that at the present z_i."""
    z, link, inverse, alpha, precision, pull, counts = running
    counts[EVALUATIONS] += 1
    change = noise_variance(value, link) - noise_variance(z[i], link)
    growth = 1.0 + change * inverse[i, i]
    step = value - z[i]
    if growth > 0.0:
        ratio = (
            -0.5 * math.log(growth)
            + 0.5 * change * alpha[i] * alpha[i] / growth
            - step * (pull[i] + 0.5 * step * precision[i, i])
        )
        if math.isfinite(ratio):
            return ratio
    counts[IMPOSSIBLE] += 1
    return -math.inf


@njit(cache=True)
def _move(value: float, i: int, running: Running, column: Array) -> None:
    """Set z_i = value and bring Q, a and g up to date (Sherman and Morrison)."""
    z, link, inverse, alpha, precision, pull, _ = running
    change = noise_variance(value, link) - noise_variance(z[i], link)
    factor = change / (1.0 + change * inverse[i, i])
    step = value - z[i]
    z[i] = value
    alpha_i = alpha[i]
    column[:] = inverse[i]
    for j in range(z.size):
        weight = factor * column[j]
        row = inverse[j]
        for k in range(z.size):
            row[k] -= weight * column[k]
        alpha[j] -= factor * alpha_i * column[j]
        pull[j] += step * precision[i, j]


@njit(cache=True)
def metropolis_sweep(
    rng: np.random.Generator, running: Running, steps: Array, accepted: Array
) -> None:
    """Random-walk Metropolis of every z_i in turn, in place; `accepted` tells which moved."""
    z, column = running.z, np.empty(running.z.size)
    for i in range(z.size):
        value = z[i] + steps[i] * rng.standard_normal()
        threshold = -rng.standard_exponential()
        accepted[i] = log_ratio(value, i, running) > threshold
        if accepted[i]:
            _move(value, i, running, column)


@njit(cache=True)
def slice_sweep(
    rng: np.random.Generator, running: Running, width: float, max_steps: int, max_shrinks: int
) -> None:
    """Step-out slice sampling of every z_i in turn, in place."""
    z, counts, column = running.z, running.counts, np.empty(running.z.size)
    for i in range(z.size):
        here = z[i]
        level = -rng.standard_exponential()  # relative to the present density
        left = here - width * rng.random()
        right = left + width
        steps_left = int(max_steps * rng.random())
        steps_right = max_steps - 1 - steps_left
        while steps_left > 0 and log_ratio(left, i, running) > level:
            left -= width
            steps_left -= 1
            counts[OUT] += 1
        while steps_right > 0 and log_ratio(right, i, running) > level:
            right += width
            steps_right -= 1
            counts[OUT] += 1
        found = False
        for _ in range(max_shrinks):
            value = left + rng.random() * (right - left)
            if log_ratio(value, i, running) > level:
                _move(value, i, running, column)
                found = True
                break
            counts[IN] += 1
            if value < here:
                left = value
            else:
                right = value
        if not found:
            counts[EXHAUSTED] += 1
