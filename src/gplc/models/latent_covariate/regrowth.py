"""Folds: w reflected beyond a place, with the cases near that place drawn anew.

Where the residuals are small, or few, g hardly depends on w, and on either side the sign of w can
be chosen freely: the posterior has modes that are mirrored stretches. A reflection of all w beyond
a place leaves the cases next to it in contradiction. So these are taken out, the rest is
reflected, and they are put back one after the other, with values of w that suit what has
become of their neighbours (`gplc._compiled.regrowth`). The other way the same is done
with the present values held as one of the particles; the ratio of both estimates of the density
is what the move is accepted by (Andrieu, Doucet and Holenstein 2010), and a second acceptance
allows for what the features leave out.
"""

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from gplc._compiled import regrowth as compiled
from gplc._compiled.pools import END, SPREAD
from gplc._compiled.regrowth import Randomness, Window
from gplc._types import Array
from gplc.models.base import State
from gplc.models.latent_covariate.marginal import features_of
from gplc.processes.features import Features
from gplc.samplers.protocol import Point, impossible

if TYPE_CHECKING:
    from gplc.models.latent_covariate.model import LatentCovariate

# Cases that are drawn anew; places along an input, at most, and of all inputs together; particles.
SIZES, MOST_PLACES, ALL_PLACES, PARTICLES = (4, 8, 12, 16, 24), 24, 48, 4
# As many cases as double the time of an attempt.
COSTLY = 12.0
# Cells in t, and features of w that are smaller than this share of the largest are left out.
N_EDGES, LEAST_SIZE = 97, 1e-3


@functools.cache
def edges() -> tuple[float, Array]:
    """The last t, and w at the edges of cells that are evenly spread over t."""
    last = END / math.hypot(SPREAD, END)
    t = np.linspace(-last, last, N_EDGES)
    return last, SPREAD * t / np.sqrt(1.0 - t * t)


class FoldRegrowth:
    """Folds of one latent covariate: a choice is an input, a stretch of it, and a number of cases.

    Examples
    --------
    >>> import numpy as np
    >>> from gplc.models import LatentCovariate
    >>> model = LatentCovariate(np.linspace(0.0, 1.0, 30)[:, None], np.zeros(30))
    >>> _, target = model.parts["regrowth"](model.state(model.prior_mean()))
    >>> target.costs.shape
    (24, 5)
    """

    def __init__(self, model: "LatentCovariate", state: State, column: int) -> None:
        self._model, self._column = model, column
        inputs = model.X.shape[1]
        self._places = max(4, min(MOST_PLACES, ALL_PLACES // inputs))

    @property
    def costs(self) -> Array:
        """Places of each input, times sizes: so much beyond what any attempt takes."""
        of_sizes = 1.0 + (np.array(SIZES) / COSTLY) ** 2
        return np.tile(of_sizes, (self._model.X.shape[1] * self._places, 1))

    def attempt(self, rng: np.random.Generator, point: Point, choice: int) -> tuple[Point, float]:
        """A fold somewhere in a stretch of an input."""
        model, state, column = self._model, point.payload, self._column
        rest, size = divmod(choice, len(SIZES))
        x = model.X[:, rest // self._places]
        along = (rest % self._places + rng.random()) / self._places
        middle = x.min() + along * (x.max() - x.min())
        random = _randomness(rng, min(SIZES[size], model.n - 1))
        thresholds = -rng.standard_exponential(2)
        opened = _Opened.at(model, state, column)
        if opened is None or model.n < 2:
            return point, 0.0
        nearest = np.argsort(np.abs(x - middle), kind="stable")
        m = random[0].cells.shape[1]
        # From both ends of the window towards its middle.
        window, outside = nearest[:m][::-1], np.sort(nearest[m:])
        w, grown = opened.w, opened.growing(window, outside)
        reflected = np.where(x > middle, -w, w)
        new, held = grown(reflected), grown(w)
        if new is None or held is None:
            return point, 0.0
        reflected[window] = new.drawn(random[0])
        held.kept(random[1], w[window])
        log_ratio = new.estimate - held.estimate
        acceptance = math.exp(min(0.0, log_ratio)) if log_ratio > -math.inf else 0.0
        if not log_ratio > thresholds[0]:
            return point, acceptance
        latent = state.latent.copy()
        model.columns(latent)[column] = reflected
        moved = model.moved(state, latent)
        if impossible(moved.log_density):
            return point, 0.0
        left = moved.solved[0].log_density - new.given
        left -= state.solved[0].log_density - held.given
        if not left > thresholds[1]:
            return point, acceptance * math.exp(min(0.0, left))
        return Point(latent, moved.log_density, moved), acceptance


def _randomness(rng: np.random.Generator, m: int) -> list[Randomness]:
    """Numbers for the way there, and for the way back."""
    there, back = rng.random((2, 3, PARTICLES, m))
    last = rng.random(2)
    return [
        Randomness(there[0], there[1], there[2], float(last[0])),
        Randomness(back[0], back[1], back[2], float(last[1])),
    ]


class _Opened:
    """A state with the features of its function: the largest of them."""

    def __init__(self, model: "LatentCovariate", state: State, features: Features, w: Array):
        self._model, self._state, self._features, self.w = model, state, features, w
        self._kept = np.flatnonzero(features.sizes > LEAST_SIZE * features.sizes.max())
        each = [r for _, r in features.shapes]
        self._product = np.repeat(np.arange(len(each)), each)[self._kept]
        self.last, at = edges()
        self.table = np.ascontiguousarray(features.of_latent(at)[:, self._kept])

    @classmethod
    def at(cls, model: "LatentCovariate", state: State, column: int) -> "_Opened | None":
        features = features_of(model, state, column)
        if features is None:
            return None
        return cls(model, state, features, model.columns(state.latent)[column].copy())

    def growing(
        self, window: NDArray[np.intp], outside: NDArray[np.intp]
    ) -> "Callable[[Array], _Grown | None]":
        """What tells of the window given w of the cases outside; None if it cannot be computed."""
        model, m, q = self._model, window.size, self._kept.size
        products, shapes = self._features.products, self._features.shapes
        y, variances = model.y, model.noise_variances(self._state.theta)
        outer, across, inner = (
            [each.amplitude[np.ix_(*places)] for each in products]
            for places in ((outside, outside), (window, outside), (window, window))
        )
        prior = np.zeros((m, q, m, q))
        for k, number in enumerate(self._product):
            prior[:, k, :, k] = inner[number]

        def grown(w: Array) -> "_Grown | None":
            at_w = self._features.of_latent(w[outside])
            covariance = np.diag(variances[outside])
            first = 0
            for amplitude, (_, r) in zip(outer, shapes, strict=True):
                own = at_w[:, first : first + r]
                covariance += amplitude * (own @ own.T)
                first += r
            lower, status = lapack.dpotrf(covariance, lower=1, overwrite_a=1)
            if status != 0:
                return None
            # Cov(features in the window, y outside), as columns.
            crossing = np.empty((m, q, outside.size))
            for k, (kind, number) in enumerate(zip(self._kept, self._product, strict=True)):
                np.multiply(across[number], at_w[:, kind], out=crossing[:, k])
            columns = crossing.reshape(m * q, -1).T
            solved, _ = lapack.dtrtrs(lower, columns, lower=1, overwrite_b=1)
            whitened, _ = lapack.dtrtrs(lower, y[outside], lower=1)
            described = Window(
                y[window],
                variances[window],
                solved.T @ whitened,
                prior.reshape(m * q, -1) - solved.T @ solved,
            )
            log_density = -0.5 * float(whitened @ whitened)
            log_density -= float(np.log(np.diagonal(lower)).sum())
            return _Grown(self, described, log_density) if math.isfinite(log_density) else None

        return grown


class _Grown:
    """A window on its way back: what becomes of it, and how likely that is."""

    def __init__(self, opened: _Opened, window: Window, outside: float) -> None:
        self._opened, self._window, self._outside = opened, window, outside
        self.estimate = self.given = -math.inf

    def drawn(self, random: Randomness) -> Array:
        """New values of w."""
        w = np.empty(self._window.y.size)
        self._run(random, False, w)
        return w

    def kept(self, random: Randomness, w: Array) -> None:
        """The same with present values held."""
        self._run(random, True, w.copy())

    def _run(self, random: Randomness, held: bool, w: Array) -> None:
        opened = self._opened
        found = compiled.run(self._window, opened.table, opened.last, random, held, w)
        self.estimate, self.given = (self._outside + value for value in found)
