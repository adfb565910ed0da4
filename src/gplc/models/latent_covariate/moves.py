"""Moves of all values of a latent covariate at once."""

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gplc.samplers.protocol import Point

if TYPE_CHECKING:
    from gplc.models.latent_covariate.model import CovariateState, LatentCovariate

Array = NDArray[np.float64]


class LatentShift:
    """A shift of all w: given the rest, N(-mean(w), 1/n), because K sees differences only."""

    def __init__(self, model: "LatentCovariate", state: "CovariateState", column: int) -> None:
        self._model = model
        self._state = state
        self._column = column

    def draw(self, rng: np.random.Generator) -> Point:
        """The state with w shifted."""
        state, model = self._state, self._model
        w = state.w.copy()
        own = model.columns(w)[self._column]
        own += rng.standard_normal() / math.sqrt(model.n) - own.mean()
        density = (
            -np.inf if state.factor is None else model._log_density(state.theta, w, state.factor)
        )
        return Point(0.0, density, state._replace(w=w, log_density=density))


class LatentReflection:
    """w or -w, each with probability one half."""

    def __init__(self, model: "LatentCovariate", state: "CovariateState", column: int) -> None:
        self._model = model
        self._state = state
        self._column = column

    def draw(self, rng: np.random.Generator) -> Point:
        """The state with w as it is or reflected."""
        sign = 1.0 if rng.random() < 0.5 else -1.0
        w = self._state.w.copy()
        self._model.columns(w)[self._column] *= sign
        state = self._state._replace(w=w)
        return Point(sign, state.log_density, state)


class LatentFold:
    """w of all cases in a random stretch of one input, or on one side of a case, reflected.

    Where the residuals are small g hardly depends on w, and on either side of such a place the
    sign of w can be chosen freely: the posterior has modes that single-site updates cannot
    cross, and this proposal can. It is its own inverse, and N(0, I) does not see it.
    """

    def __init__(self, model: "LatentCovariate") -> None:
        self._model = model

    def propose(self, rng: np.random.Generator, point: Point) -> Point:
        """The state with w folded between two cases drawn at random, or beyond the lower one."""
        model, state = self._model, point.payload
        values = model.X[:, rng.integers(model.X.shape[1])]
        ends = values[rng.integers(model.n, size=2)]
        inside = values >= ends.min()
        if rng.random() < 0.5:
            inside &= values <= ends.max()
        w = state.w.copy()
        column = rng.integers(model.n_covariates) if model.n_covariates > 1 else 0
        model.columns(w)[column, inside] *= -1.0
        correlation = model._moved(state.theta, w, state.correlation)
        moved = model._state(state.theta, w, correlation)
        return Point(w, moved.log_density, moved)


class LatentExchange:
    """Two latent covariates, exchanged with their hyperparameters.

    The likelihood does not change, and the prior only if it is not the same for both: without this
    move every chain would settle for one order of them.
    """

    def __init__(self, model: "LatentCovariate", pairs: list[tuple[int, int]]) -> None:
        self._model = model
        self._pairs = pairs

    def propose(self, rng: np.random.Generator, point: Point) -> Point:
        """The state with two of them exchanged, or, half of the time, as it is."""
        model, state = self._model, point.payload
        pair = self._pairs[rng.integers(len(self._pairs))]
        if rng.random() < 0.5 or state.factor is None:
            return point
        theta, w = state.theta.copy(), state.w.copy()
        for places in model._bound.exchanges(*pair) or []:
            theta[list(places)] = theta[list(reversed(places))]
        columns = model.columns(w)
        columns[list(pair)] = columns[list(reversed(pair))]
        density = model._log_density(theta, w, state.factor)
        moved = state._replace(theta=theta, w=w, log_density=density)
        return Point(w, density, moved)
