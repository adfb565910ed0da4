"""A Hamiltonian trajectory of a function of x and w, with w summed out over cells.

What `gplc.samplers.hamiltonian` does in Python for any target, in one call for this one: a leap
takes so little time that what surrounds it would take longer.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gplc._compiled.cells import Basis, Cells, gradient
from gplc._types import Array


class Data(NamedTuple):
    """Responses, and the variances of their noise: what is known of it, and sigma^2."""

    y: Array  # (n,)
    known: Array  # (n,)
    # Log sigma is location + unit * the last coefficient, if it is one, and between these limits.
    location: float
    unit: float
    lowest: float
    highest: float


class Whitening(NamedTuple):
    """Coefficients flat[places] = position[places] inverse; the others are as they are."""

    places: NDArray[np.int64]
    inverse: Array


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def _evaluate(
    flat: Array, learned: bool, data: Data, cells: Cells, basis: Basis, by_flat: Array
) -> float:
    """Log density of coefficients, a priori N(0, I); `by_flat` gets its gradient."""
    variances, last = data.known.copy(), flat.size - 1
    sigma = 0.0
    if learned:
        log_sigma = data.location + data.unit * flat[last]
        if not (log_sigma >= data.lowest and log_sigma <= data.highest):
            return -np.inf
        sigma = math.exp(log_sigma)
        for i in range(variances.size):
            variances[i] += sigma * sigma
    density, by_variance = gradient(flat, data.y, variances, cells, basis, by_flat)
    if learned:
        by_flat[last] = data.unit * 2.0 * sigma * sigma * by_variance
    for j in range(flat.size):
        by_flat[j] -= flat[j]
        density -= 0.5 * flat[j] * flat[j]
    return density if density < np.inf else -np.inf


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def leapfrog(
    position: Array,
    flat: Array,
    by_flat: Array,
    momentum: Array,
    log_density: float,
    size: float,
    leaps: int,
    diverged: float,
    learned: bool,
    data: Data,
    cells: Cells,
    basis: Basis,
    whitening: Whitening,
) -> tuple[float, float, int]:
    """Go `leaps` steps from a position, whose coefficients and their gradient are given.

    These four arrays are changed in place. The result are the log density at the end, the log of
    the ratio that the end is accepted by, which is -inf if the trajectory came to where nothing
    can be computed or its energy grew by more than `diverged`, and the leaps that were made.
    """
    places, inverse = whitening.places, whitening.inverse
    chosen = np.empty(places.size)
    energy = -log_density
    for j in range(momentum.size):
        energy += 0.5 * momentum[j] * momentum[j]
    push = by_flat.copy()
    _pull(places, inverse, by_flat, chosen, push)
    for j in range(push.size):
        momentum[j] += 0.5 * size * push[j]
    for leap in range(leaps):
        for j in range(position.size):
            position[j] += size * momentum[j]
            flat[j] = position[j]
        for j in range(places.size):
            chosen[j] = position[places[j]]
        moved = np.dot(chosen, inverse)
        for j in range(places.size):
            flat[places[j]] = moved[j]
        log_density = _evaluate(flat, learned, data, cells, basis, by_flat)
        if not log_density > -np.inf:
            return -np.inf, -np.inf, leap + 1
        for j in range(push.size):
            push[j] = by_flat[j]
        _pull(places, inverse, by_flat, chosen, push)
        kinetic = 0.0
        for j in range(push.size):
            arriving = momentum[j] + 0.5 * size * push[j]
            kinetic += 0.5 * arriving * arriving
        log_ratio = energy + log_density - kinetic
        if not log_ratio > -diverged:
            return log_density, -np.inf, leap + 1
        if leap + 1 == leaps:
            return log_density, log_ratio, leaps
        for j in range(push.size):
            momentum[j] += size * push[j]
    return log_density, -np.inf, leaps


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def _pull(
    places: NDArray[np.int64], inverse: Array, by_flat: Array, chosen: Array, push: Array
) -> None:
    """The gradient by the position, from that by the coefficients, in the chosen places."""
    for j in range(places.size):
        chosen[j] = by_flat[places[j]]
    pulled = np.dot(inverse, chosen)
    for j in range(places.size):
        push[places[j]] = pulled[j]
