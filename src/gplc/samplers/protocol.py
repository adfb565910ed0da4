"""What a sampler is given and what it gives back."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from gplc._types import Array


class Point(NamedTuple):
    """A position with its log density.

    `payload` is the target's: whatever it computed on the way and wants kept if the chain stays
    here. A position that is impossible has log density -inf, never NaN.
    """

    position: Any
    log_density: float
    payload: Any = None


class Info(NamedTuple):
    """What happened in one step; nothing in it influences the chain after warm-up."""

    acceptance: float | Array  # share of proposals accepted, or one entry per coordinate
    n_evaluations: int
    n_impossible: int = 0  # densities that could not be computed
    n_exhausted: int = 0  # updates given up at the bound of a loop, the state left as it was
    n_out: int = 0  # steps out of a slice interval
    n_in: int = 0  # times it shrank
    shown: Array | None = None  # where the step ended and the gradient there, to learn from
    evidence: Array | None = None  # what a `SurrogateTarget` has to say about where it ended


class ScalarTarget(NamedTuple):
    """A one-dimensional density: `evaluate(value)` is the point there."""

    evaluate: Callable[[float], Point]


class GaussianTarget(NamedTuple):
    """A Gaussian prior N(0, L L') times a likelihood.

    `evaluate(vector)` is the point there, its log density the log *likelihood* alone.
    """

    prior_draw: Callable[[Array], Array]  # u -> L u
    evaluate: Callable[[Array], Point]


class Journey(NamedTuple):
    """Where a Hamiltonian trajectory ended."""

    end: Point
    gradient: Array  # there
    log_ratio: float  # by which the end is accepted; -inf if the trajectory was given up
    n_leaps: int  # leaps that were made


class GradientTarget(NamedTuple):
    """A density of a vector, with its gradient.

    `evaluate(vector)` is the point there, `gradient(point)` the gradient at a possible one. A
    target that knows a faster way to leap many times in a row has that as `journey(point,
    momentum, size, leaps)`: the same trajectory, with an identity as the metric.
    """

    evaluate: Callable[[Array], Point]
    gradient: Callable[[Point], Array]
    journey: Callable[[Point, Array, float, int], Journey] | None = None


class SurrogateTarget(NamedTuple):
    """A density of parameters and of a vector with a Gaussian prior, in coordinates to choose.

    `given(sites)` is the point where the chain is, and the target, in coordinates in which the
    vector is N(0, I) if its likelihood is a product of Gaussian ones: `sites` (2, n) has their
    precisions, and precisions times means. `evidence(point)` (3, n) is the vector at a possible
    point, and the gradient and the information of its likelihood there, from which to learn them.
    """

    given: Callable[[float | Array], tuple[Point, GradientTarget]]
    evidence: Callable[[Point], Array]


class FrameTarget(NamedTuple):
    """A density of a vector in coordinates to choose, which evidence tells.

    `evidence(rng, point)` is what a possible point of the chain has to say, one vector that can
    be averaged over points. `given(frame)` is the point where the chain is, and the target, in
    coordinates made for such a vector: nearly N(0, I), if the vector is typical.
    """

    given: Callable[[Array], tuple[Point, GradientTarget]]
    evidence: Callable[[np.random.Generator, Point], Array]


class DirectTarget(Protocol):
    """A distribution that can be drawn from."""

    def draw(self, rng: np.random.Generator) -> Point:
        """A draw."""


class ProposalTarget(Protocol):
    """A density with proposals of its own making."""

    def propose(self, rng: np.random.Generator, point: Point) -> Point:
        """A proposal, as probable from the new point as from the old."""


class SliceSweepTarget(Protocol):
    """A vector whose entries can be slice-sampled in turn, with work shared between them."""

    def slice_sweep(
        self, rng: np.random.Generator, width: float, max_steps: int, max_shrinks: int
    ) -> tuple[Point, Info]:
        """One update of every entry; settings as in `Slice`."""


class MetropolisSweepTarget(Protocol):
    """A vector whose entries can be updated by random walks in turn, with work shared."""

    def metropolis_sweep(self, rng: np.random.Generator, steps: Array) -> tuple[Point, Info]:
        """One update of every entry, with a step size for each; `Info` has a rate for each."""


class Pool(Protocol):
    """Many values, each with candidates, one of which is to be chosen; and a scale to be moved.

    The density of the scale, `scale`, is that with all values summed out over their candidates;
    None if it is fixed.
    """

    @property
    def scale(self) -> tuple[Point, ScalarTarget] | None:
        """Where the scale is, and its target."""

    def choose(self, rng: np.random.Generator, scale: float | None) -> tuple[Point, float]:
        """A candidate for every value, given the scale; and the share of values that moved.

        The point is impossible if nothing can be computed there.
        """


class PoolTarget(Protocol):
    """A target that makes such pools."""

    def pool(self, rng: np.random.Generator, point: Point, size: int, zoom: float) -> Pool | None:
        """A pool with `size` candidates in a window of `zoom` times the range; None: not here."""


class Marginal(Protocol):
    """A vector with other unknowns summed out, at one of its positions, which is `position`."""

    @property
    def position(self) -> Array:
        """Where the vector is."""

    @property
    def point(self) -> Point:
        """The same as a point of the chain: without the vector, if it is no part of that."""

    @property
    def scale(self) -> tuple[Point, ScalarTarget] | None:
        """A scale that is part of the vector; payloads are positions. None if it is fixed."""

    def drawn(self, rng: np.random.Generator) -> "Marginal":
        """The same with the vector drawn anew, given what was summed out."""

    def whitened(self, information: float | Array) -> tuple[Point, GradientTarget]:
        """The vector in coordinates made for some information about it.

        The payload of a point is a point in its own coordinates.
        """

    def settled(self, rng: np.random.Generator, position: Array) -> tuple["Marginal", float]:
        """At another position, with what is summed out drawn anew; or, if rejected, as it is.

        The second is the probability with which it is accepted.
        """

    def evidence(self, rng: np.random.Generator) -> Array:
        """Scores (n, k) of data drawn given the vector, to learn from."""


class MarginalTarget(Protocol):
    """Unknowns of which a part can be summed out, once a vector is drawn."""

    def opened(self, rng: np.random.Generator, point: Point) -> Marginal | None:
        """The vector drawn, given the rest; None: not here."""


class ChoicesTarget(Protocol):
    """Proposals of many kinds, each right by itself, of which some are useful."""

    @property
    def costs(self) -> Array:
        """What an attempt of each kind costs, in any unit: (groups, kinds of each)."""

    def attempt(self, rng: np.random.Generator, point: Point, choice: int) -> tuple[Point, float]:
        """An update of one kind, and the probability with which its proposal was accepted."""


class Sampler(Protocol):
    """One kind of update."""

    def step(self, rng: np.random.Generator, point: Point, target: Any) -> tuple[Point, Info]:
        """One update of `point` that leaves the target's distribution invariant."""

    def tuned(self, info: Info, iteration: int) -> "Sampler":
        """The sampler to use after warm-up iteration number `iteration` (from 1) gave `info`."""


def impossible(log_density: float) -> bool:
    """Whether a log density says that its position cannot be."""
    return not log_density > -np.inf
