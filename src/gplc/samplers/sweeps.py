"""Samplers whose inner loop is the target's own: sweeps over single coordinates, exact draws.

The target offers the sweep (compiled, with whatever it can reuse from one coordinate to the next);
the sampler holds the settings and learns them.
"""

from dataclasses import dataclass, replace

import numpy as np

from gplc import _check
from gplc._types import Array
from gplc.samplers.metropolis import accepts, adapted_step
from gplc.samplers.protocol import (
    DirectTarget,
    Info,
    MetropolisSweepTarget,
    Point,
    ProposalTarget,
    SliceSweepTarget,
    impossible,
)
from gplc.samplers.slice import adapted_width


@dataclass(frozen=True)
class SliceSweep:
    """Step-out slice sampling of every coordinate in turn.

    Parameters
    ----------
    width, max_steps, max_shrinks
        As in `Slice`, the same for every coordinate.
    """

    width: float = 1.0
    max_steps: int = 100
    max_shrinks: int = 200

    def __post_init__(self) -> None:
        _check.number("width", self.width, above=0.0, advice="start at 1.0")
        _check.integer("max_steps", self.max_steps, at_least=1, advice="100 is plenty")
        _check.integer("max_shrinks", self.max_shrinks, at_least=1, advice="200 is plenty")

    def step(
        self, rng: np.random.Generator, point: Point, target: SliceSweepTarget
    ) -> tuple[Point, Info]:
        """One sweep: `target.slice_sweep`."""
        return target.slice_sweep(rng, self.width, self.max_steps, self.max_shrinks)

    def tuned(self, info: Info, iteration: int) -> "SliceSweep":
        """As in `Slice`, if the sweep counted its steps."""
        return replace(self, width=adapted_width(self.width, info, iteration))


@dataclass(frozen=True)
class MetropolisSweep:
    """Random-walk Metropolis of every coordinate in turn, each with a step size of its own.

    Parameters
    ----------
    step_sizes : float or array
        SDs of the proposals; one number is the start for all.
    wanted : float
        Acceptance rate that each adapts to during warm-up.
    """

    step_sizes: float | Array = 1.0
    wanted: float = 0.5

    def __post_init__(self) -> None:
        smallest = float(np.min(self.step_sizes))
        _check.number("step_sizes", smallest, above=0.0, advice="start at 1.0 and let it adapt")
        if not 0.0 < self.wanted < 1.0:
            raise ValueError(f"wanted must be in (0, 1), got {self.wanted!r}; 0.5 is a good rate")

    def step(
        self, rng: np.random.Generator, point: Point, target: MetropolisSweepTarget
    ) -> tuple[Point, Info]:
        """One sweep: `target.metropolis_sweep`."""
        steps = np.full(point.position.shape, self.step_sizes, dtype=np.float64)
        return target.metropolis_sweep(rng, steps)

    def tuned(self, info: Info, iteration: int) -> "MetropolisSweep":
        """Step sizes nearer to the wanted acceptance rate, coordinate by coordinate."""
        steps = adapted_step(self.step_sizes, info.acceptance, self.wanted, iteration)
        return replace(self, step_sizes=steps)


@dataclass(frozen=True)
class SymmetricProposal:
    """Metropolis with proposals of the target's own making: `target.propose`.

    A proposal must be as probable from the new point as from the old.

    Parameters
    ----------
    repeats : int
        Proposals per step.
    """

    repeats: int = 1

    def __post_init__(self) -> None:
        _check.integer("repeats", self.repeats, at_least=1, advice="1 is a good start")

    def step(
        self, rng: np.random.Generator, point: Point, target: ProposalTarget
    ) -> tuple[Point, Info]:
        """`repeats` proposals."""
        n_accepted = n_impossible = 0
        for _ in range(self.repeats):
            proposal = target.propose(rng, point)
            n_impossible += impossible(proposal.log_density)
            if accepts(rng, proposal.log_density, point.log_density):
                point = proposal
                n_accepted += 1
        return point, Info(n_accepted / self.repeats, self.repeats, n_impossible)

    def tuned(self, info: Info, iteration: int) -> "SymmetricProposal":
        """The same."""
        return self


@dataclass(frozen=True)
class Direct:
    """A draw straight from the target's distribution: `target.draw`."""

    def step(
        self, rng: np.random.Generator, point: Point, target: DirectTarget
    ) -> tuple[Point, Info]:
        """One draw."""
        return target.draw(rng), Info(1.0, 0)

    def tuned(self, info: Info, iteration: int) -> "Direct":
        """The same."""
        return self
