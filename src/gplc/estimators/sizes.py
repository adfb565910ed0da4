"""How large a basis has to be: from fits of a few rows, and checked after the run."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from gplc._types import Array
from gplc.chains import run_chain
from gplc.draws import Draws
from gplc.models.in_basis import InBasis
from gplc.priors import kind
from gplc.processes.hilbert import Axes, Hilbert, Scales, latent_axis
from gplc.processes.inducing import Inducing, Points

# A model of these rows and inputs, in a basis on these axes, or with these points.
Make = Callable[[Array, Array, Any], InBasis]

# Up to so many rows a model is exact, by default; from there on a basis is faster (docs/large.md).
EXACT_ROWS = 1000
# Inputs that products of functions are made for, and how many of these there may be in all;
# together with functions of w, so many.
MOST_INPUTS, MOST_FUNCTIONS, MOST_WITH_LATENT = 3, 1000, 4000
# Inputs that inducing points are for; leaving out more than this share of f is warned of.
MOST_WITH_POINTS, TOLERATED_SHARE = 15, 0.3
# The first fits: rows, iterations, how often they are made at most. With points: how many, and
# coefficients whose correlations count.
PILOT_ROWS, PILOT_DRAWS, PILOTS = 800, 60, 3
PILOT_POINTS, PILOT_DENSE = 100, 150
# Functions between points are made anew if log hyperparameters are further off than this; after
# the run, if more than this share of f is wrong and new functions halve it.
NEAR, WORTH_ANOTHER = 0.5, 0.1
# Length scales from the first to the last of these quantiles, and so much beyond, have to be
# covered; in one sample there are few rows, so that all of them may turn out to be shorter.
QUANTILES, BEYOND = (0.02, 0.98), 1.15
# Longer ones are as good as straight lines: so many times half the range of an input.
LONGEST = 3.0
# A relative error of covariances of more than this is worth another run, and at most so many.
TOLERATED_ERROR, ROUNDS = 0.01, 2


def ranges_of(X: Array) -> list[tuple[float, float]]:
    """Smallest and largest value of every input."""
    return list(zip(X.min(axis=0).tolist(), X.max(axis=0).tolist(), strict=True))


def by_chain(model: InBasis) -> Array:
    """Log hyperparameters from a short chain: (draws, k)."""
    return run_chain(model, seed=0, draws=PILOT_DRAWS, warmup=PILOT_DRAWS).theta


def chosen_axes(
    make: Make,
    X: Array,
    y: Array,
    wanted: Hilbert,
    with_latent: bool,
    ranges: list[tuple[float, float]],
    pilot: Callable[[InBasis], Array] = by_chain,
) -> Axes:
    """Axes that suit the length scales which a few rows have, where they are not given.

    The answer depends on the data alone. `pilot` draws hyperparameters of a model of a few rows.
    """
    halves = [max(0.5 * (highest - lowest), 1e-3) for lowest, highest in ranges]
    if wanted.is_complete(with_latent):
        return wanted.axes(ranges, None, with_latent)
    scales = Scales(
        tuple((0.6 * len(halves) ** 0.75 * half, 1.5 * half) for half in halves), (2.0, 4.0)
    )
    scales = _ordered(scales)
    rng = np.random.default_rng(0)
    picked = rng.permutation(len(y))[:PILOT_ROWS]
    for _ in range(PILOTS):
        axes = affordable(wanted.axes(ranges, scales, with_latent), wanted)
        model = make(X[picked], y[picked], axes)
        found = scales_of(model, pilot(model), halves)
        if _covers(scales, found):
            break
        scales = found
    return affordable(wanted.axes(ranges, found, with_latent), wanted)


def chosen_points(make: Make, X: Array, y: Array, wanted: Inducing, with_latent: bool) -> Points:
    """Points, with functions between them for the hyperparameters that a few rows have.

    The answer depends on the data alone.
    """
    rng = np.random.default_rng(0)
    picked = rng.permutation(len(y))[:PILOT_ROWS]
    some = replace(wanted, points=min(wanted.points, PILOT_POINTS)).chosen(X[picked])
    some = replace(some, latent=latent_axis(2.0, 4.0) if with_latent else None)
    for _ in range(PILOTS):
        model: Any = make(X[picked], y[picked], some)
        theta = by_chain(model.with_fewer_correlations(PILOT_DENSE))
        last, some = some, with_functions_for(model, theta, some)
        gaps = [
            np.abs(np.subtract(new, old)).max()
            for new, old in zip(some.references, last.references, strict=False)
        ]
        if gaps and max(gaps) < NEAR:
            break
    return replace(some, rows=wanted.chosen(X).rows)


def with_functions_for(model: InBasis, theta: Array, points: Points) -> Points:
    """The points, with functions for draws of theta (draws, k)."""
    middle = np.median(theta, axis=0)
    references = tuple(tuple(middle[each.place].tolist()) for each in model.processes)
    if points.latent is None:
        return replace(points, references=references)
    found = scales_of(model, theta, [1.0] * model.X.shape[1]).latent
    return replace(points, references=references, latent=latent_axis(*found))


def better_points(model: InBasis, theta: Array, points: Points, error: float) -> Points | None:
    """Points with better functions after a run, if they are worth another; theta is (draws, k)."""
    if error <= WORTH_ANOTHER or not points.references:
        return None
    found = with_functions_for(model, theta, points)
    again = model.on_axes(found)
    return found if again.errors(np.median(theta, axis=0)) < 0.5 * error else None


def affordable(axes: Axes, wanted: Hilbert) -> Axes:
    """The axes, with fewer functions of the inputs where together they would be too many.

    Each time the axis with the most functions loses a tenth. Functions that the user has asked
    for stay. What is lost shows in the error that is measured after the run.
    """
    most = MOST_FUNCTIONS if axes.latent is None else MOST_WITH_LATENT // axes.latent.functions
    while wanted.functions is None and n_products(axes) > most:
        largest = max(range(len(axes.inputs)), key=lambda k: axes.inputs[k].functions)
        fewer = int(0.9 * axes.inputs[largest].functions)
        inputs = list(axes.inputs)
        inputs[largest] = inputs[largest]._replace(functions=fewer)
        axes = axes._replace(inputs=tuple(inputs))
    return axes


def n_products(axes: Axes) -> float:
    """About how many products of functions of the inputs there are within an ellipsoid."""
    share = {1: 1.0, 2: math.pi / 4.0, 3: math.pi / 6.0}[len(axes.inputs)]
    return share * math.prod(axis.functions for axis in axes.inputs)


def _ordered(scales: Scales) -> Scales:
    return scales._replace(inputs=tuple((min(low, high), high) for low, high in scales.inputs))


def _covers(made_for: Scales, found: Scales) -> bool:
    pairs = zip((*made_for.inputs, made_for.latent), (*found.inputs, found.latent), strict=True)
    return all(low <= short and long <= high for (low, high), (short, long) in pairs)


def scales_of(model: InBasis, theta: Array, halves: list[float]) -> Scales:
    """Ranges of length scales among draws (draws, k): of every input, in all processes; of w."""
    inputs: list[list[tuple[float, float]]] = [[] for _ in halves]
    latent: list[tuple[float, float]] = []
    for process in model.processes:
        for place in process.bound.places:
            names = [each.name for each in place.hyperparameters]
            own = theta[:, process.place][:, place.where]
            for name, values in zip(names, own.T, strict=True):
                if kind(name) == "latent_length_scale":
                    latent.append(_range(values))
                elif kind(name) == "length_scale":
                    for column in _columns(name, place.seen.observed):
                        inputs[column].append(_range(values))
    return Scales(
        tuple(
            _joined(found, 0.1 * h, LONGEST * h) for found, h in zip(inputs, halves, strict=True)
        ),
        _joined(latent, 0.5, 8.0),
    )


def _columns(name: str, observed: tuple[int, ...]) -> tuple[int, ...]:
    return (int(name.split("[")[1].rstrip("]")),) if "[" in name else observed


def _range(values: Array) -> tuple[float, float]:
    low, high = np.exp(np.quantile(values, QUANTILES))
    return float(low) / BEYOND, float(high) * BEYOND


def _joined(found: list[tuple[float, float]], least: float, most: float) -> tuple[float, float]:
    """The range that has all of these, within limits; any, if there are none."""
    low = min((low for low, _ in found), default=0.5 * most)
    high = max((high for _, high in found), default=0.5 * most)
    return min(max(low, least), most), min(max(high, least), most)


def measured_error(model: InBasis, draws: Draws) -> float:
    """The relative error of covariances at 20 draws: the median."""
    theta = draws.theta.reshape(-1, draws.theta.shape[-1])
    picked = theta[:: max(1, len(theta) // 20)]
    return float(np.median([model.errors(each) for each in picked]))
