"""Hamiltonian Monte Carlo with a part of the unknowns summed out, which is then drawn anew."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from gplc import _check
from gplc._types import Array
from gplc.samplers.hamiltonian import LARGEST, LEARNED, WINDOW_GROWTH, Hamiltonian
from gplc.samplers.metropolis import adapted_step
from gplc.samplers.protocol import Info, Marginal, MarginalTarget, Point, impossible
from gplc.samplers.slice import Slice, adapted_width

# The step size that new information is tried with, and how much of what all cases tell goes into
# what each tells: as much as so many draws of its own.
INFORMED_STEP, POOLED = 0.3, 10.0


@dataclass(frozen=True)
class MarginalHamiltonian(Hamiltonian):
    """A vector and a scale, moved with other unknowns summed out (`MarginalTarget`).

    First the scale, by slice sampling, `rounds` times, each time with the vector drawn anew; then
    both along their gradient. After each of these the unknowns that were summed out are drawn
    again and the move is accepted with a probability that allows for what is not exact
    about the sum. Warm-up learns the step size and, in windows that grow, what each case tells
    about the vector: the mean square of scores of data drawn from the model, which no data can
    mislead.

    Parameters
    ----------
    leaps, wanted, step_size, since, window, seen
        As in `Hamiltonian`.
    rounds : int
        Updates of the scale.
    width : float
        Of their slices.
    information : float or (n, k, k) array
        Square roots of what each case tells; zero for nothing.
    evidence : float or (n, k, k) array
        What warm-up keeps in mind of it: the sum over the present window.
    """

    leaps: int = 16
    rounds: int = 1
    width: float = 1.0
    information: float | Array = 0.0
    evidence: float | Array = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check.integer("rounds", self.rounds, at_least=0, advice="1 is a good start")
        _check.number("width", self.width, above=0.0, advice="start at 1.0")
        if self.dense or self.conditional:
            raise ValueError(
                "MarginalHamiltonian learns a metric of its own; leave dense and conditional "
                f"False, got {self.dense!r} and {self.conditional!r}"
            )

    def step(  # type: ignore[override]
        self, rng: np.random.Generator, point: Point, target: MarginalTarget
    ) -> tuple[Point, Info]:
        """The scale, then a trajectory of everything."""
        opened = target.opened(rng, point)
        if opened is None:
            return point, Info(0.0, 0, n_impossible=int(impossible(point.log_density)))
        slices = [Info(1.0, 0)]
        for number in range(self.rounds):
            opened = opened.drawn(rng) if number else opened
            opened, info = _with_scale(rng, opened, self.width)
            slices.append(info)
        end, info = super().step(rng, *opened.whitened(self.information))
        possible = not impossible(end.log_density)
        opened, share = opened.settled(rng, end.payload.position if possible else opened.position)
        evidence = opened.evidence(rng)
        return opened.point, Info(
            info.acceptance * share,
            info.n_evaluations + sum(each.n_evaluations for each in slices),
            info.n_impossible + sum(each.n_impossible for each in slices),
            sum(each.n_exhausted for each in slices),
            sum(each.n_out for each in slices),
            sum(each.n_in for each in slices),
            evidence=evidence,
        )

    def tuned(self, info: Info, iteration: int) -> Self:
        """With a step size nearer to the wanted rate and, after a window, new information."""
        if info.evidence is None:
            return self
        since, seen = self.since + 1, self.seen + 1
        scores = np.clip(info.evidence, -(LARGEST**0.25), LARGEST**0.25)
        learned = replace(
            self,
            step_size=float(adapted_step(self.step_size, info.acceptance, self.wanted, since)),
            width=adapted_width(self.width, info, iteration),
            since=since,
            seen=seen,
            evidence=self.evidence + scores[:, :, None] * scores[:, None, :],
        )
        if seen < self.window:
            return learned
        shared = np.mean(learned.evidence, axis=0) / seen
        return replace(
            learned,
            information=_roots((learned.evidence + POOLED * shared) / (seen + POOLED)),
            step_size=max(learned.step_size, INFORMED_STEP),
            since=LEARNED,
            window=int(self.window * WINDOW_GROWTH),
            seen=0,
            evidence=0.0,
        )


@dataclass(frozen=True)
class MarginalSlice:
    """The scale of a `MarginalTarget`, by slice sampling, with what is summed out drawn anew.

    The first step of a `MarginalHamiltonian` alone: it costs little, and lets other unknowns that
    are updated before and after it move against new values.

    Parameters
    ----------
    width : float
        Of the slices; warm-up learns it.
    """

    width: float = 1.0

    def __post_init__(self) -> None:
        _check.number("width", self.width, above=0.0, advice="start at 1.0")

    def step(
        self, rng: np.random.Generator, point: Point, target: MarginalTarget
    ) -> tuple[Point, Info]:
        """The vector drawn, then its scale, then what is summed out."""
        opened = target.opened(rng, point)
        if opened is None:
            return point, Info(0.0, 0, n_impossible=int(impossible(point.log_density)))
        opened, info = _with_scale(rng, opened, self.width)
        return opened.point, info

    def tuned(self, info: Info, iteration: int) -> Self:
        """With a width nearer to that of the scale."""
        return replace(self, width=adapted_width(self.width, info, iteration))


def _with_scale(rng: np.random.Generator, opened: Marginal, width: float) -> tuple[Marginal, Info]:
    """After a slice update of the scale, if there is one, with what is summed out drawn again."""
    scale = opened.scale
    if scale is None:
        opened, share = opened.settled(rng, opened.position)
        return opened, Info(share, 0)
    end, info = Slice(width).step(rng, *scale)
    possible = not impossible(end.log_density)
    opened, share = opened.settled(rng, end.payload if possible else opened.position)
    return opened, info._replace(acceptance=share)


def _roots(matrices: Array) -> Array:
    """R with R R' = each of symmetric matrices, which may be singular."""
    values, vectors = np.linalg.eigh(matrices)
    return vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
