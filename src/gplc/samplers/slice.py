"""Univariate slice sampling with stepping out (Neal 2003)."""

import math
from dataclasses import dataclass, replace

import numpy as np

from gplc import _check
from gplc.samplers.protocol import Info, Point, ScalarTarget, impossible

# Of the share of iterations with an update this much is left after each one of warm-up.
FEWER = 0.95


@dataclass(frozen=True)
class Slice:
    """Step-out slice sampling of one variable (Neal 2003, figures 3 and 5).

    A level is drawn under the density at the present point; an interval of the given width,
    placed at random around the point, is stepped out until both ends are below the level; then
    points are drawn from the interval, which shrinks towards the present point with every one
    that is below the level.

    Parameters
    ----------
    width : float
        Width of the first interval.
    max_steps : int
        Most steps out, shared at random between the two sides.
    max_shrinks : int
        Most points tried. The bound is there so that no density, however broken, can hang a
        chain; reaching it leaves the point as it was and is counted.

    Examples
    --------
    >>> import numpy as np
    >>> target = ScalarTarget(lambda x: Point(x, -0.5 * x * x))
    >>> point, info = Slice(width=2.0).step(np.random.default_rng(1), target.evaluate(0.0), target)
    >>> point.position != 0.0, info.n_exhausted
    (True, 0)
    """

    width: float = 1.0
    max_steps: int = 100
    max_shrinks: int = 200

    def __post_init__(self) -> None:
        _check.number("width", self.width, above=0.0, advice="start at 1.0")
        _check.integer("max_steps", self.max_steps, at_least=1, advice="100 is plenty")
        _check.integer("max_shrinks", self.max_shrinks, at_least=1, advice="200 is plenty")

    def step(
        self, rng: np.random.Generator, point: Point, target: ScalarTarget
    ) -> tuple[Point, Info]:
        """One update. From an impossible point any possible one is accepted."""
        here = point.position
        n_evaluations = 0
        n_impossible = int(impossible(point.log_density))

        def evaluate(value: float) -> Point:
            nonlocal n_evaluations, n_impossible
            candidate = target.evaluate(value)
            n_evaluations += 1
            n_impossible += impossible(candidate.log_density)
            return candidate

        # NaN compares false with everything, so that it counts as below the level.
        level = point.log_density - rng.standard_exponential()
        if math.isnan(level):
            level = -math.inf
        left = here - self.width * rng.random()
        right = left + self.width
        steps_left = int(self.max_steps * rng.random())
        steps_right = self.max_steps - 1 - steps_left
        n_out = 0
        while steps_left > 0 and evaluate(left).log_density > level:
            left -= self.width
            steps_left -= 1
            n_out += 1
        while steps_right > 0 and evaluate(right).log_density > level:
            right += self.width
            steps_right -= 1
            n_out += 1
        for n_in in range(self.max_shrinks):
            candidate = evaluate(left + rng.random() * (right - left))
            if candidate.log_density > level:
                info = Info(1.0, n_evaluations, n_impossible, n_out=n_out, n_in=n_in)
                return candidate, info
            if candidate.position < here:
                left = candidate.position
            else:
                right = candidate.position
        return point, Info(0.0, n_evaluations, n_impossible, n_exhausted=1)

    def tuned(self, info: Info, iteration: int) -> "Slice":
        """A width at which stepping out and shrinking are about as frequent."""
        return replace(self, width=adapted_width(self.width, info, iteration))


@dataclass(frozen=True)
class OccasionalSlice(Slice):
    """`Slice` in a share of the iterations, at random: in all when warm-up begins, then in fewer.

    It steps out as far as the density goes, and so takes a chain out of a place that samplers with
    steps of one size leave only after a long time. Done rarely, it costs little.

    Parameters
    ----------
    share : float
        Probability of an update, now.
    least : float
        Probability that warm-up ends with.
    """

    share: float = 1.0
    least: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("share", "least"):
            if not 0.0 < getattr(self, name) <= 1.0:
                raise ValueError(
                    f"{name} must be in (0, 1], got {getattr(self, name)!r}; 0.1 is a good start"
                )

    def step(
        self, rng: np.random.Generator, point: Point, target: ScalarTarget
    ) -> tuple[Point, Info]:
        """One update, or none."""
        if rng.random() < self.share:
            return super().step(rng, point, target)
        return point, Info(1.0, 0)

    def tuned(self, info: Info, iteration: int) -> "OccasionalSlice":
        """With the width of `Slice`, and a smaller share."""
        width = adapted_width(self.width, info, iteration)
        return replace(self, width=width, share=max(self.least, FEWER * self.share))


def adapted_width(width: float, info: Info, iteration: int) -> float:
    """A width at which stepping out and shrinking are more nearly as frequent.

    Any width is right; one that is far off wastes evaluations. The same width if neither was
    counted.

    Examples
    --------
    >>> adapted_width(1.0, Info(1.0, 5, n_out=2), iteration=1) > 1.0
    True
    """
    moves = info.n_out + info.n_in
    if moves == 0:
        return width
    # Robbins and Monro, with bounds so that no density can lead it astray.
    change = math.exp(iteration**-0.6 * (info.n_out - info.n_in) / moves)
    return min(max(width * change, 1e-6), 1e3)
