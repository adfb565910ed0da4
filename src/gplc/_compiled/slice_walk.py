"""A step-out slice update as a walk that can wait for densities.

Which points an update looks at is a function of random numbers, drawn beforehand or when first
needed, and of the densities met on the way. So it can be followed as far as densities are known,
say what it wants to know next, and be followed again: with others, it goes another way.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gplc._types import Array

Counts = NDArray[np.int64]

# What a walk asks for at a time: ends of the interval that are not known yet, and so many
# proposals.
PROPOSALS = 2


class Limits(NamedTuple):
    """Of the slice sampler: initial interval, most steps out, most proposals."""

    width: float
    max_steps: int
    max_shrinks: int


class Start(NamedTuple):
    """Where one slice update begins; see `Walks`."""

    exponential: float
    left: float
    steps_left: int


class Walks(NamedTuple):
    """Slice updates of some values: the random numbers dealt to them, and what they have met."""

    points: Array  # (walks, capacity): the present value, then points in any order
    density: Array  # (walks, capacity): log densities at points, as far as they are known
    exponential: Array  # (walks,): how far below the present log density the slice begins
    left: Array  # (walks,): of the first interval
    steps_left: Counts  # (walks,): most steps out to the left
    uniforms: Array  # (walks, max_shrinks): for the proposals, drawn when first needed
    drawn: Counts  # (walks,): how many of these are
    known: Counts  # (walks,): at how many points densities have been foreseen


@njit(cache=True)
def no_walks(most: int, foreseen: int, limits: Limits) -> Walks:
    """Memory for so many walks, of each of which so many points may be foreseen."""
    # Every end comes with the other end and proposals that may turn out to be in vain.
    capacity = foreseen + (PROPOSALS + 2) * (limits.max_steps + 1) + limits.max_shrinks + PROPOSALS
    return Walks(
        np.empty((most, capacity)),
        np.empty((most, capacity)),
        np.empty(most),
        np.empty(most),
        np.empty(most, np.int64),
        np.empty((most, limits.max_shrinks)),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
    )


@njit(cache=True)
def begin_walks(rng: np.random.Generator, w: Array, limits: Limits, walks: Walks) -> None:
    """Begin walks from the present values w, with their first random numbers."""
    for p in range(w.size):
        walks.points[p, 0] = w[p]
        walks.exponential[p] = rng.standard_exponential()
        walks.left[p] = w[p] - limits.width * rng.random()
        walks.steps_left[p] = int(limits.max_steps * rng.random())
        walks.drawn[p] = 0
        walks.known[p] = 0


@njit(cache=True)
def _find(points: Array, known: int, point: float) -> int:
    """Where `point` is among the known points; -1 if nowhere."""
    for k in range(known):
        if points[k] == point:
            return k
    return -1


@njit(cache=True)
def _stepped_out(
    points: Array,
    density: Array,
    known: int,
    end: float,
    stride: float,
    steps: int,
    level: float,
) -> tuple[float, int, bool]:
    """An end of the interval, stepped out as far as the known densities lead.

    Where it is, the densities looked at, and whether that of the last point is known.
    """
    used = 0
    while True:
        at = _find(points, known, end)
        if at < 0:
            return end, used, False
        used += 1
        if not density[at] > level or steps == 0:
            return end, used, True
        end += stride
        steps -= 1


@njit(cache=True)
def _follow(
    rng: np.random.Generator,
    points: Array,
    density: Array,
    known: int,
    start: Start,
    uniforms: Array,
    drawn: Counts,
    limits: Limits,
) -> tuple[int, int, int]:
    """`walk_on`, for rows of what `Walks` holds; `drawn` has one entry."""
    here, (exponential, left, steps_left) = points[0], start
    right = left + limits.width
    steps_right = limits.max_steps - 1 - steps_left
    wanted = 0
    if known == 0:
        wanted = 1  # the present value itself
        level = 0.0
    else:
        level = density[0] - exponential
        if level == -math.inf:
            return 0, 0, 1  # nothing can be said from an impossible state: leave it
    left, used_left, known_left = _stepped_out(
        points, density, known, left, -limits.width, steps_left, level
    )
    if not known_left:
        points[known + wanted] = left
        wanted += 1
    right, used_right, known_right = _stepped_out(
        points, density, known, right, limits.width, steps_right, level
    )
    if not known_right:
        points[known + wanted] = right
        wanted += 1
    used = 1 + used_left + used_right
    # Beyond the first point that is not known, go on as if all were rejected.
    most = wanted + PROPOSALS
    for k in range(uniforms.size):
        if wanted == most:
            break
        if k == drawn[0]:
            uniforms[k] = rng.random()
            drawn[0] += 1
        point = left + uniforms[k] * (right - left)
        at = _find(points, known, point) if wanted == 0 else -1
        if at >= 0:
            used += 1
            if density[at] > level:
                return at, 0, used
        else:
            points[known + wanted] = point
            wanted += 1
        if point < here:
            left = point
        else:
            right = point
    return -1, wanted, used


@njit(cache=True)
def walk_on(
    rng: np.random.Generator, walks: Walks, p: int, known: int, limits: Limits
) -> tuple[int, int, int]:
    """Walk through a step-out slice update as far as the known densities lead.

    Parameters
    ----------
    rng : numpy.random.Generator
    walks : Walks
        Points that the walk wants to know next are written behind the known ones.
    p : int
        Which of the walks.
    known : int
        At how many points the densities are known.
    limits : Limits

    Returns
    -------
    chosen : int
        Place of the new value; 0 if it is the present one; -1 if not known yet or, with no point
        wanted, if all proposals are used up.
    wanted : int
        Number of points written.
    used : int
        Number of densities looked at.
    """
    start = Start(walks.exponential[p], walks.left[p], walks.steps_left[p])
    return _follow(
        rng,
        walks.points[p],
        walks.density[p],
        known,
        start,
        walks.uniforms[p],
        walks.drawn[p : p + 1],
        limits,
    )


@njit(cache=True)
def walk_all(rng: np.random.Generator, walks: Walks, limits: Limits, wanted: Counts) -> int:
    """The same for some walks, from what was foreseen of each: how many want to know more.

    `wanted` becomes the number of points that each has written.
    """
    points, density, uniforms, drawn = walks.points, walks.density, walks.uniforms, walks.drawn
    exponential, left, steps_left = walks.exponential, walks.left, walks.steps_left
    known, wanting = walks.known, 0
    for p in range(wanted.size):
        start = Start(exponential[p], left[p], steps_left[p])
        _, wanted[p], _ = _follow(
            rng, points[p], density[p], known[p], start, uniforms[p], drawn[p : p + 1], limits
        )
        wanting += wanted[p] > 0
    return wanting
