"""Hamiltonian Monte Carlo in coordinates that a model makes from evidence it gathers."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from gplc._types import Array
from gplc.samplers.hamiltonian import LEARNED, Hamiltonian
from gplc.samplers.metropolis import adapted_step
from gplc.samplers.protocol import FrameTarget, Info, Point, impossible

# Windows after which the frame is learned anew, and the step size that the first one begins with.
FIRST_WINDOW, WINDOW_GROWTH, FRAMED_STEP = 10, 1.5, 0.1


@dataclass(frozen=True)
class FramedHamiltonian(Hamiltonian):
    """A trajectory in coordinates made from evidence (`FrameTarget`), which warm-up averages.

    Until the first window is full the evidence is that of the present state. That is not exact,
    and belongs to warm-up.

    Parameters
    ----------
    leaps, wanted, step_size, since, window, seen
        As in `Hamiltonian`; neither `dense` nor `conditional`.
    frame : float or array
        The evidence from which coordinates are made; zero for none yet.
    evidence : float or array
        What warm-up keeps in mind of it: the sum over the present window.
    """

    leaps: int = 12
    window: int = FIRST_WINDOW
    frame: float | Array = 0.0
    evidence: float | Array = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dense or self.conditional:
            raise ValueError(
                "FramedHamiltonian has a metric of its own; leave dense and conditional False, "
                f"got {self.dense!r} and {self.conditional!r}"
            )

    def step(  # type: ignore[override]
        self, rng: np.random.Generator, point: Point, target: FrameTarget
    ) -> tuple[Point, Info]:
        """One trajectory in the coordinates of the frame."""
        told = None if impossible(point.log_density) else target.evidence(rng, point)
        frame = told if np.ndim(self.frame) == 0 else np.asarray(self.frame)
        if frame is None:
            return point, Info(0.0, 0, n_impossible=1)
        end, info = super().step(rng, *target.given(frame))
        return end, info._replace(shown=None, evidence=told)

    def tuned(self, info: Info, iteration: int) -> Self:
        """With a step size nearer to the wanted rate and, after a window, another frame."""
        if info.evidence is None:
            return self
        since, seen = self.since + 1, self.seen + 1
        step = float(adapted_step(self.step_size, info.acceptance, self.wanted, since))
        evidence = self.evidence + info.evidence
        if seen < self.window:
            return replace(self, step_size=step, since=since, seen=seen, evidence=evidence)
        if np.ndim(self.frame) == 0:  # steps so far were made in coordinates of the moment
            step = max(step, FRAMED_STEP)
        return replace(
            self,
            step_size=step,
            since=LEARNED,
            window=int(self.window * WINDOW_GROWTH),
            seen=0,
            frame=evidence / seen,
            evidence=0.0,
        )
