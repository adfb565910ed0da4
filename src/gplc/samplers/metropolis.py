"""Univariate random-walk Metropolis."""

import math
from dataclasses import dataclass, replace

import numpy as np

from gplc import _check
from gplc._types import Array
from gplc.samplers.protocol import Info, Point, ScalarTarget, impossible


def adapted_step(
    step: float | Array, acceptance: float | Array, wanted: float, iteration: int
) -> float | Array:
    """A step size moved so that acceptance comes nearer to what is wanted.

    Robbins and Monro: log step += gain (acceptance - wanted), with a gain that falls as
    iteration^-0.6, so that the step settles. Steps stay within 1e-8 and 1e4.

    Examples
    --------
    >>> bool(adapted_step(1.0, 1.0, 0.5, iteration=1) > 1.0)
    True
    """
    gain = 2.0 * iteration**-0.6
    return np.clip(step * np.exp(gain * (np.asarray(acceptance) - wanted)), 1e-8, 1e4)


@dataclass(frozen=True)
class Metropolis:
    """Random-walk Metropolis for one variable: propose x + step_size * N(0, 1).

    During warm-up the step size adapts to an acceptance rate of about one half, as in the paper.

    Parameters
    ----------
    step_size : float
        SD of the proposal.
    wanted : float
        Acceptance rate to adapt to.

    Examples
    --------
    >>> import numpy as np
    >>> target = ScalarTarget(lambda x: Point(x, -0.5 * x * x))
    >>> point, info = Metropolis(1.0).step(np.random.default_rng(2), target.evaluate(3.0), target)
    >>> info.n_evaluations
    1
    """

    step_size: float = 1.0
    wanted: float = 0.5

    def __post_init__(self) -> None:
        _check.number(
            "step_size", self.step_size, above=0.0, advice="start at 1.0 and let it adapt"
        )
        if not 0.0 < self.wanted < 1.0:
            raise ValueError(f"wanted must be in (0, 1), got {self.wanted!r}; 0.5 is a good rate")

    def step(
        self, rng: np.random.Generator, point: Point, target: ScalarTarget
    ) -> tuple[Point, Info]:
        """One update. From an impossible point any possible one is accepted."""
        proposal = target.evaluate(point.position + self.step_size * rng.standard_normal())
        accepted = accepts(rng, proposal.log_density, point.log_density)
        info = Info(float(accepted), 1, int(impossible(proposal.log_density)))
        return (proposal if accepted else point), info

    def tuned(self, info: Info, iteration: int) -> "Metropolis":
        """A step size nearer to the wanted acceptance rate."""
        return replace(
            self,
            step_size=float(adapted_step(self.step_size, info.acceptance, self.wanted, iteration)),
        )


def accepts(rng: np.random.Generator, proposed: float, present: float) -> bool:
    """Metropolis' rule on log densities; what is NaN is never accepted."""
    threshold = -rng.standard_exponential()
    if impossible(present):
        return not impossible(proposed)
    ratio = proposed - present
    return bool(ratio > threshold) and not math.isnan(ratio)
