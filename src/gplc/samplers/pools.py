"""A sampler that chooses among many values of every latent covariate at once."""

import math
from dataclasses import dataclass, replace

import numpy as np

from gplc import _check
from gplc.samplers.protocol import Info, Point, PoolTarget, impossible
from gplc.samplers.slice import Slice, adapted_width

# The narrowest window of a pool, as a share of the whole range.
LEAST_ZOOM = 2.0**-12


@dataclass(frozen=True)
class Pools:
    """Joint update of a scale and of many values, each of which has a pool of candidates.

    The target makes the pools; the scale is slice-sampled with all values summed out over their
    pools; then each value is drawn from its pool (Neal 2010, "MCMC using ensembles of states",
    has the idea). Pools that span the whole range, so that values can
    jump, alternate with windows, which warm-up makes so narrow that most values have another
    likely member to move to.

    Parameters
    ----------
    size : int
        Values in a pool.
    repeats : int
        Updates per step.
    wanted : float
        Share of values that move, to which windows adapt.
    zoom : float
        Width of a window, as a share of the whole range; 1 is all of it.
    width : float
        Of the slice for the scale.
    """

    size: int = 64
    repeats: int = 4
    wanted: float = 0.9
    zoom: float = 1.0
    width: float = 0.5

    def __post_init__(self) -> None:
        _check.integer("size", self.size, at_least=2, advice="64 is a good start")
        _check.integer("repeats", self.repeats, at_least=1, advice="4 is a good start")
        _check.number("zoom", self.zoom, above=0.0, advice="1 spans the whole range")
        _check.number("width", self.width, above=0.0, advice="start at 0.5")
        if not 0.0 < self.wanted < 1.0:
            raise ValueError(f"wanted must be in (0, 1), got {self.wanted!r}; 0.9 is a good share")

    def step(
        self, rng: np.random.Generator, point: Point, target: PoolTarget
    ) -> tuple[Point, Info]:
        """`repeats` updates, with windows and wide pools in turn."""
        infos = []
        for k in range(self.repeats):
            point, info = self._update(rng, point, target, self.zoom if k % 2 == 0 else 1.0)
            infos.append(info)
        moved = infos[0].acceptance  # in a window, which is what can be made narrower
        return point, Info(
            moved,
            sum(info.n_evaluations for info in infos),
            sum(info.n_impossible for info in infos),
            sum(info.n_exhausted for info in infos),
            sum(info.n_out for info in infos),
            sum(info.n_in for info in infos),
        )

    def _update(
        self, rng: np.random.Generator, point: Point, target: PoolTarget, zoom: float
    ) -> tuple[Point, Info]:
        """The scale given the pools, and then a value from each of these."""
        pool = target.pool(rng, point, self.size, zoom)
        if pool is None:
            return point, Info(0.0, 0, n_impossible=int(impossible(point.log_density)))
        scale, info = None, Info(0.0, 0)
        if pool.scale is not None:
            end, info = Slice(self.width).step(rng, *pool.scale)
            scale = float(end.position)
        chosen, share = pool.choose(rng, scale)
        if impossible(chosen.log_density):
            return point, info._replace(acceptance=0.0, n_impossible=info.n_impossible + 1)
        return chosen, info._replace(acceptance=share)

    def tuned(self, info: Info, iteration: int) -> "Pools":
        """Narrower windows if too few values moved in them, and a better slice."""
        change = math.exp(iteration**-0.6 * (float(info.acceptance) - self.wanted))
        return replace(
            self,
            zoom=min(max(self.zoom * change, LEAST_ZOOM), 1.0),
            width=adapted_width(self.width, info, iteration),
        )
