"""Moves of all values of a latent covariate at once."""

import math
from typing import TYPE_CHECKING

import numpy as np

from gplc.models.base import State
from gplc.samplers.protocol import Point, ScalarTarget

if TYPE_CHECKING:
    from gplc.models.latent_covariate.model import LatentCovariate


class LatentShift:
    """A shift of all w: given the rest, N(-mean(w), 1/n), because K sees differences only."""

    def __init__(self, model: "LatentCovariate", state: State, column: int) -> None:
        self._model, self._state, self._column = model, state, column

    def draw(self, rng: np.random.Generator) -> Point:
        """The state with w shifted."""
        model, w = self._model, self._state.latent.copy()
        own = model.columns(w)[self._column]
        own += rng.standard_normal() / math.sqrt(model.n) - own.mean()
        moved = model.relabelled(self._state, w)
        return Point(w, moved.log_density, moved)


class LatentReflection:
    """w or -w, each with probability one half."""

    def __init__(self, model: "LatentCovariate", state: State, column: int) -> None:
        self._model, self._state, self._column = model, state, column

    def draw(self, rng: np.random.Generator) -> Point:
        """The state with w as it is or reflected."""
        sign = 1.0 if rng.random() < 0.5 else -1.0
        w = self._state.latent.copy()
        self._model.columns(w)[self._column] *= sign
        moved = self._model.relabelled(self._state, w)
        return Point(w, moved.log_density, moved)


def scale_part(
    model: "LatentCovariate", column: int, scale: tuple[tuple[int, float], ...], state: State
) -> tuple[Point, ScalarTarget]:
    """Joint scaling w -> s w, rho_w -> s rho_w (or the like), as a density of log s.

    The likelihood stays. What is left is the prior of all, and the Jacobian s^n of w (the
    scale of hyperparameters is logarithmic already). `scale` has the entries of theta that
    change, with the signs of the change.
    """
    entries = [entry for entry, _ in scale]
    signs = np.array([sign for _, sign in scale])

    def evaluate(log_s: float) -> Point:
        theta = state.theta.copy()
        theta[entries] += signs * log_s
        if state.solved[0].factor is None or not model.priors.allows(theta):
            return Point(log_s, -np.inf, None)
        w = state.latent.copy()
        model.columns(w)[column] *= math.exp(log_s)
        moved = model.relabelled(state, w, theta)
        return Point(log_s, moved.log_density + model.n * log_s, moved)

    return Point(0.0, state.log_density, state), ScalarTarget(evaluate)


class LatentFold:
    """w of all cases in a random stretch of one input, or on one side of a case, reflected.

    Where the residuals are small g hardly depends on w, and on either side of such a place the
    sign of w can be chosen freely: the posterior has modes that single-site updates cannot
    cross, and this proposal can. It is its own inverse, and N(0, I) does not see it.
    """

    def __init__(self, model: "LatentCovariate", state: State) -> None:
        self._model = model

    def propose(self, rng: np.random.Generator, point: Point) -> Point:
        """The state with w folded between two cases drawn at random, or beyond the lower one."""
        model, state = self._model, point.payload
        values = model.X[:, rng.integers(model.X.shape[1])]
        ends = values[rng.integers(model.n, size=2)]
        inside = values >= ends.min()
        if rng.random() < 0.5:
            inside &= values <= ends.max()
        w = state.latent.copy()
        column = rng.integers(model.n_covariates) if model.n_covariates > 1 else 0
        model.columns(w)[column, inside] *= -1.0
        moved = model.moved(state, w)
        return Point(w, moved.log_density, moved)


class LatentExchange:
    """Two latent covariates, exchanged with their hyperparameters.

    The likelihood does not change, and the prior only if it is not the same for both: without this
    move every chain would settle for one order of them.
    """

    def __init__(
        self, model: "LatentCovariate", state: State, pairs: list[tuple[int, int]]
    ) -> None:
        self._model, self._pairs = model, pairs

    def propose(self, rng: np.random.Generator, point: Point) -> Point:
        """The state with two of them exchanged, or, half of the time, as it is."""
        model, state = self._model, point.payload
        pair = self._pairs[rng.integers(len(self._pairs))]
        if rng.random() < 0.5 or state.solved[0].factor is None:
            return point
        theta, w = state.theta.copy(), state.latent.copy()
        for entries in model.bound.exchanges(*pair) or []:
            theta[list(entries)] = theta[list(reversed(entries))]
        columns = model.columns(w)
        columns[list(pair)] = columns[list(reversed(pair))]
        moved = model.relabelled(state, w, theta)
        return Point(w, moved.log_density, moved)
