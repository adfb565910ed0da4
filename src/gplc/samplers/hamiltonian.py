"""Hamiltonian Monte Carlo: a whole vector moves along its gradient."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from gplc import _check
from gplc._types import Array
from gplc.samplers.metropolis import adapted_step
from gplc.samplers.protocol import (
    GradientTarget,
    Info,
    Journey,
    Point,
    SurrogateTarget,
    impossible,
)

# The metric is learned anew from windows of this many iterations and more.
FIRST_WINDOW, WINDOW_GROWTH = 40, 1.5
# What few draws show is drawn towards this, as if so many draws had shown it: a small variance
# of the draws, or a curvature like that of the prior.
CAUTION, SMALL_VARIANCE, PRIOR_CURVATURE = 5.0, 1e-3, 1.0
# After new scales the step size begins to learn again as if it had done so many steps.
LEARNED = 10
# What is added to a correlation matrix before it is factored, and the largest gradient counted.
ROUNDING, LARGEST = 1e-8, 1e100
# So many trajectories are made with steps so much shorter: a chain that has come to where the
# density is more sharply curved than elsewhere would reject all others for a long time.
CAREFUL_SHARE, CAREFUL_STEP = 0.1, 0.25
# A step size for n independent N(0, 1) is this times n^(-1/4), to be careful.
NORMAL_STEP = 1.0
# Trajectories whose energy has grown by more than this will not come back.
DIVERGED = 1000.0


@dataclass(frozen=True)
class Hamiltonian:
    """Hamiltonian Monte Carlo with a metric that is learned (Duane et al. 1987, Neal 2011).

    q moves with a momentum p ~ N(0, M) by leapfrog steps of H = -log density + p' M^-1 p / 2, and
    the end is accepted with probability min(1, exp(H - H')). The number of leapfrog steps is drawn
    anew from the upper half of 1, ..., `leaps`, and the step size varies by up to a tenth, so that
    no orbit is followed for ever; one in ten trajectories has much shorter steps.

    Warm-up learns the step size and, in windows that grow, the metric from draws q and gradients
    g:

    - M^-1 is diagonal, sqrt(Var(q_k) / E(g_k^2)), which a few dozen draws tell well enough;
    - if `dense`, it is the covariance of the draws;
    - if `conditional`, M is E(g g'), the mean curvature of the log density. Where q is a part of
      the unknowns and moves with the others held fixed, the spread of the draws is too wide.

    Parameters
    ----------
    leaps : int
        Most leapfrog steps, each of which costs one gradient.
    wanted : float
        Acceptance rate that the step size adapts to.
    step_size : float
        In units of `scales`.
    dense : bool
        Whether M is a full matrix. That pays where there are few coordinates.
    conditional : bool
        Whether M is learned from gradients alone.
    scales : float or array
        Scales of the coordinates, or a square root of M^-1; one number is the start for all.
    since, window, seen, mean, squares, slopes
        What warm-up keeps in mind: steps since `scales` changed; of the present window its
        length, the draws seen, their mean, the sum of their squared gaps to it, and that of
        squared gradients.

    Examples
    --------
    >>> import numpy as np
    >>> target = GradientTarget(lambda q: Point(q, -0.5 * q @ q), lambda point: -point.position)
    >>> point, info = Hamiltonian(leaps=8).step(
    ...     np.random.default_rng(5), target.evaluate(np.ones(2)), target
    ... )
    >>> bool(info.acceptance > 0.99), info.n_evaluations
    (True, 7)
    """

    leaps: int = 20
    wanted: float = 0.8
    step_size: float = 0.1
    dense: bool = False
    conditional: bool = False
    scales: float | Array = 1.0
    since: int = 0
    window: int = FIRST_WINDOW
    seen: int = 0
    mean: float | Array = 0.0
    squares: float | Array = 0.0
    slopes: float | Array = 0.0

    def __post_init__(self) -> None:
        _check.integer("leaps", self.leaps, at_least=1, advice="20 is a good start")
        _check.number("step_size", self.step_size, above=0.0, advice="start at 0.1")
        if not 0.0 < self.wanted < 1.0:
            raise ValueError(f"wanted must be in (0, 1), got {self.wanted!r}; 0.8 is a good rate")

    def step(
        self, rng: np.random.Generator, point: Point, target: GradientTarget
    ) -> tuple[Point, Info]:
        """One trajectory; from an impossible point, which has no gradient, a jump."""
        n_leaps = int(rng.integers((self.leaps + 1) // 2, self.leaps + 1))
        size = self.step_size * rng.uniform(0.9, 1.0)
        if rng.random() < CAREFUL_SHARE:
            size *= CAREFUL_STEP
        momentum = rng.standard_normal(point.position.size)
        threshold = -rng.standard_exponential()
        if impossible(point.log_density):
            return self._escape(point, target, momentum)
        before = target.gradient(point)
        if target.journey is not None and np.ndim(self.scales) == 0 and self.scales == 1.0:
            end, gradient, log_ratio, n_done = target.journey(point, momentum, size, n_leaps)
        else:
            journey = self._journey(target, point, before, momentum, size, n_leaps)
            end, gradient, log_ratio, n_done = journey
        n_impossible = int(impossible(end.log_density))
        if not log_ratio > threshold:
            end, gradient = point, before
        shown = np.stack([end.position, gradient])
        return end, Info(math.exp(min(0.0, log_ratio)), n_done, n_impossible, shown=shown)

    def _journey(
        self,
        target: GradientTarget,
        point: Point,
        gradient: Array,
        momentum: Array,
        size: float,
        leaps: int,
    ) -> Journey:
        """A trajectory from a point, whose gradient is given."""
        # In units of `scales` the metric is the identity.
        along, push_of = self._strides(size)
        energy = 0.5 * float(momentum @ momentum) - point.log_density
        momentum = momentum + 0.5 * push_of(gradient)
        now, log_ratio, n_done = point, -math.inf, 0
        for _ in range(leaps):
            n_done += 1
            now = target.evaluate(now.position + along(momentum))
            if impossible(now.log_density):
                return Journey(now, gradient, -math.inf, n_done)
            gradient = target.gradient(now)
            push = push_of(gradient)
            arriving = momentum + 0.5 * push
            log_ratio = energy + now.log_density - 0.5 * float(arriving @ arriving)
            if not log_ratio > -DIVERGED:
                return Journey(now, gradient, -math.inf, n_done)
            momentum = momentum + push
        return Journey(now, gradient, log_ratio, n_done)

    def _escape(self, point: Point, target: GradientTarget, noise: Array) -> tuple[Point, Info]:
        """From an impossible point any possible one is accepted."""
        along, _ = self._strides(1.0)
        jump = target.evaluate(point.position + along(noise))
        escaped = not impossible(jump.log_density)
        return (jump if escaped else point), Info(float(escaped), 1, 2 - escaped)

    def _strides(self, size: float) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
        """What turns momenta into moves, and gradients into changes of momentum."""
        stride = size * np.asarray(self.scales)
        if stride.ndim < 2:
            return (lambda momentum: stride * momentum), (lambda gradient: stride * gradient)
        return (lambda momentum: stride @ momentum), (lambda gradient: gradient @ stride)

    def tuned(self, info: Info, iteration: int) -> Self:
        """With a step size nearer to the wanted rate and, after a window, with new scales."""
        since = self.since + 1
        step = float(adapted_step(self.step_size, info.acceptance, self.wanted, since))
        return replace(self, step_size=step, since=since)._with_draw(info.shown)

    def _with_draw(self, shown: Array | None) -> Self:
        if shown is None:
            return self
        position, gradient = np.clip(shown, -LARGEST, LARGEST)
        square = np.outer if self.dense else np.multiply
        seen = self.seen + 1
        gap = position - self.mean
        mean = self.mean + gap / seen
        squares = self.squares + square(gap, position - mean)
        slopes = self.slopes + square(gradient, gradient)
        if seen < self.window:
            return replace(self, seen=seen, mean=mean, squares=squares, slopes=slopes)
        return replace(
            self,
            scales=self._scales(squares / (seen - 1), slopes / seen, seen / (seen + CAUTION)),
            since=LEARNED,
            window=int(self.window * WINDOW_GROWTH),
            seen=0,
            mean=0.0,
            squares=0.0,
            slopes=0.0,
        )

    def _scales(self, spread: Array, curvature: Array, share: float) -> Array:
        """Scales from what a window has shown, of which only a share is believed."""
        unit = np.eye(len(spread)) if self.dense else 1.0
        spread = share * spread + (1.0 - share) * SMALL_VARIANCE * unit
        if not self.conditional:
            if self.dense:
                return np.asarray(np.linalg.cholesky(spread))
            return (spread / np.maximum(curvature, 1.0 / LARGEST)) ** 0.25
        curvature = share * curvature + (1.0 - share) * PRIOR_CURVATURE * unit
        if not self.dense:
            return curvature**-0.5
        # In units of the diagonal, so that curvatures of any size can be factored.
        units = np.sqrt(np.diagonal(curvature))
        correlation = curvature / units / units[:, None] + ROUNDING * unit
        return np.asarray(np.linalg.inv(np.linalg.cholesky(correlation)).T / units[:, None])


@dataclass(frozen=True)
class SurrogateHamiltonian(Hamiltonian):
    """Hamiltonian Monte Carlo in coordinates that allow for what the data say of a latent vector.

    A vector z with a Gaussian prior whose parameters move too is best written as
    z = mu(theta) + A(theta) v, where N(mu, A A') is its distribution given theta and surrogate
    data: one Gaussian observation of every z_i, with a precision of its own. If these tell of z
    what the true data do, v is nearly N(0, I) whatever theta is, and both move freely. (Murray and
    Adams 2010 have the idea, with surrogate data that are drawn anew each time.) Any surrogate
    data are right; warm-up learns good ones, at the end of each window, from the gradient g and
    the information F of the log likelihood: precisions E(F), and precisions times means
    E(F) E(z) + E(g). The metric is diagonal, and 1 for v. It begins with none, when z = L v.

    Parameters
    ----------
    leaps, wanted, ..., slopes
        As in `Hamiltonian`; neither `dense` nor `conditional`.
    sites : float or (2, n) array
        Precisions, and precisions times means, of the surrogate data; zero for none.
    evidence : float or (3, n) array
        What warm-up keeps in mind of them: sums of z, g and F over the present window.

    Examples
    --------
    One observation of z ~ N(0, 1) with precision 3 and mean 1: given that surrogate, v is N(0, 1).

    >>> import numpy as np
    >>> def given(sites):
    ...     precision, pull = sites[:, 0]
    ...     root = (1.0 + precision) ** -0.5
    ...     def evaluate(v):
    ...         z = root * (v + root * pull)
    ...         return Point(v, float(-0.5 * (z**2 + 3.0 * (z - 1.0) ** 2)[0]))
    ...     return evaluate(np.zeros(1)), GradientTarget(evaluate, lambda point: -point.position)
    >>> from gplc.samplers.protocol import SurrogateTarget
    >>> target = SurrogateTarget(given, lambda point: np.zeros((3, 1)))
    >>> sampler = SurrogateHamiltonian(leaps=8, sites=np.array([[3.0], [3.0]]))
    >>> point, info = sampler.step(np.random.default_rng(5), Point(None, 0.0), target)
    >>> bool(info.acceptance > 0.99)
    True
    """

    sites: float | Array = 0.0
    evidence: float | Array = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dense or self.conditional:
            raise ValueError(
                "SurrogateHamiltonian learns a diagonal metric; leave dense and conditional "
                f"False, got {self.dense!r} and {self.conditional!r}"
            )

    def step(  # type: ignore[override]
        self, rng: np.random.Generator, point: Point, target: SurrogateTarget
    ) -> tuple[Point, Info]:
        """One trajectory in the coordinates that a `SurrogateTarget` has for these `sites`."""
        end, info = super().step(rng, *target.given(self.sites))
        if impossible(end.log_density):
            return end, info
        return end, info._replace(evidence=target.evidence(end))

    def tuned(self, info: Info, iteration: int) -> Self:
        """As `Hamiltonian`; after a window with new surrogate data as well."""
        learned = super().tuned(info, iteration)
        if info.shown is None or info.evidence is None:
            return learned
        evidence = self.evidence + np.clip(info.evidence, -LARGEST, LARGEST)
        if learned.seen > 0:
            return replace(learned, evidence=evidence)
        z, gradient, information = evidence / self.window
        # What has been learned about the vector's scales is of its coordinates so far; in the new
        # ones they should be 1.
        others = np.asarray(learned.scales)[: -z.size]
        step = learned.step_size
        if np.ndim(self.sites) == 0:  # the first ones: the step size is of other coordinates, too
            step = max(step, NORMAL_STEP * z.size**-0.25)
        return replace(
            learned,
            step_size=step,
            scales=np.concatenate([others, np.ones(z.size)]),
            sites=np.stack([information, information * z + gradient]),
            evidence=0.0,
        )
