"""A sampler that learns which of many kinds of proposals are accepted."""

from dataclasses import dataclass, replace

import numpy as np

from gplc import _check
from gplc._types import Array
from gplc.samplers.protocol import ChoicesTarget, Info, Point, impossible

# What a kind is worth is the mean of acceptance probabilities to this power, which tells kinds
# that nearly succeed from hopeless ones; all from so much on is worth the same.
TEMPER, ENOUGH = 0.25, 0.1
# Half of all attempts go by worth, the other half round all groups: what fails in the mode that
# warm-up has seen may be the only way back from another.
ROUND = 0.5
# Before it is tried a kind is believed to be worth this much, as if that had been seen once.
BELIEVED = 0.03


@dataclass(frozen=True)
class LearnedChoices:
    """Proposals of a kind chosen at random, by weights that warm-up learns (`ChoicesTarget`).

    Each kind leaves the distribution invariant, and which one is made does not depend on the
    state: so does any mixture of them. Kinds come in groups. A group is chosen by the most that
    one of its kinds is worth, or any of them with the same probability; and then a kind of it by
    its worth over what it costs.

    Parameters
    ----------
    attempts : int
        Proposals per step.
    tried, won : float or array
        How often each kind was tried in warm-up, and the sum of what it was worth.
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
        costs = target.costs
        worth = np.full(costs.size, 1.0) * (self.won + BELIEVED) / (self.tried + 1.0)
        worth = worth.reshape(costs.shape)
        groups = np.minimum(worth.max(axis=1), ENOUGH)
        groups = ROUND / groups.size + (1.0 - ROUND) * groups / groups.sum()
        within = worth / costs
        cumulative = np.cumsum(groups[:, None] * within / within.sum(axis=1, keepdims=True))
        learned, accepted = np.zeros((2, costs.size)), 0.0
        for draw in rng.random(self.attempts):
            choice = int(np.searchsorted(cumulative, draw * cumulative[-1]))
            choice = min(choice, costs.size - 1)
            point, acceptance = target.attempt(rng, point, choice)
            learned[:, choice] += 1.0, acceptance**TEMPER
            accepted += acceptance
        share = accepted / self.attempts
        return point, Info(
            share, self.attempts, int(impossible(begun.log_density)), evidence=learned
        )

    def tuned(self, info: Info, iteration: int) -> "LearnedChoices":
        """With what the attempts have shown."""
        if info.evidence is None:
            return self
        tried, won = info.evidence
        return replace(self, tried=self.tried + tried, won=self.won + won)
