"""A sampler that learns which of many kinds of proposals are accepted."""

from dataclasses import dataclass, replace

import numpy as np

from gplc import _check
from gplc._types import Array
from gplc.samplers.protocol import ChoicesTarget, Info, Point, impossible

# A kind is chosen in proportion to its rate of acceptance over what it costs, the rate being
# counted as so much at most: many that are nearly always accepted would leave no time for the few
# that matter. What is hardly ever accepted is still tried: from a mode that warm-up has not seen
# it may be the only way back.
MOST, LEAST = 0.03, 0.02
# Before it is tried a kind is believed to be accepted this often, as if that had been seen once.
BELIEVED = 0.03


@dataclass(frozen=True)
class LearnedChoices:
    """Proposals of a kind chosen at random, by weights that warm-up learns (`ChoicesTarget`).

    Each kind leaves the distribution invariant, and which one is made does not depend on the
    state: so does any mixture of them.

    Parameters
    ----------
    attempts : int
        Proposals per step.
    tried, won : float or array
        How often each kind was tried in warm-up, and the sum of its probabilities of acceptance.
    """

    attempts: int = 2
    tried: float | Array = 0.0
    won: float | Array = 0.0

    def __post_init__(self) -> None:
        _check.integer("attempts", self.attempts, at_least=1, advice="2 is a good start")

    def step(
        self, rng: np.random.Generator, point: Point, target: ChoicesTarget
    ) -> tuple[Point, Info]:
        """Some attempts."""
        begun = point
        rates = np.full(target.n_choices, 1.0) * (self.won + BELIEVED) / (self.tried + 1.0)
        cumulative = np.cumsum(np.clip(rates, LEAST, MOST) / target.costs)
        learned = np.zeros((2, target.n_choices))
        for draw in rng.random(self.attempts):
            choice = int(np.searchsorted(cumulative, draw * cumulative[-1]))
            choice = min(choice, target.n_choices - 1)
            point, acceptance = target.attempt(rng, point, choice)
            learned[:, choice] += 1.0, acceptance
        share = float(learned[1].sum()) / self.attempts
        return point, Info(
            share, self.attempts, int(impossible(begun.log_density)), evidence=learned
        )

    def tuned(self, info: Info, iteration: int) -> "LearnedChoices":
        """With what the attempts have shown."""
        if info.evidence is None:
            return self
        tried, won = info.evidence
        return replace(self, tried=self.tried + tried, won=self.won + won)
