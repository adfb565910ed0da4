"""Updates of a whole vector that has a Gaussian prior N(0, L L')."""

import math
from dataclasses import dataclass, replace

import numpy as np

from gplc import _check
from gplc.samplers.metropolis import accepts, adapted_step
from gplc.samplers.protocol import GaussianTarget, Info, Point, impossible

# However small a becomes, a step does not do more updates than this.
MOST_REPEATS = 200


@dataclass(frozen=True)
class ModifiedMetropolis:
    """The modified Metropolis update of the paper (Neal 1998), done `repeats` times.

    z' = sqrt(1 - a^2) z + a L u,   u ~ N(0, I)

    leaves the prior N(0, L L') invariant, so that only the likelihoods enter the
    acceptance probability.

    Parameters
    ----------
    step_size : float
        a, in (0, 1].
    repeats : int
        m, updates per step.
    wanted : float, optional
        Acceptance rate that a adapts to during warm-up, and with it m, so that the accepted
        updates of a step together move about as far as a draw from the prior would; both stay as
        they are if not given. About 0.25 moves far with few updates.

    Examples
    --------
    >>> import numpy as np
    >>> target = GaussianTarget(lambda u: u, lambda z: Point(z, 0.0))
    >>> sampler = ModifiedMetropolis(step_size=0.3, repeats=5)
    >>> point, info = sampler.step(np.random.default_rng(3), target.evaluate(np.zeros(2)), target)
    >>> info.acceptance, info.n_evaluations
    (1.0, 5)
    """

    step_size: float = 0.3
    repeats: int = 40
    wanted: float | None = None

    def __post_init__(self) -> None:
        _check.number(
            "step_size",
            self.step_size,
            above=0.0,
            at_most=1.0,
            advice="start at 0.1 and halve it while acceptance is low",
        )
        _check.integer("repeats", self.repeats, at_least=1, advice="the paper has 40")
        if self.wanted is not None and not 0.0 < self.wanted < 1.0:
            raise ValueError(f"wanted must be in (0, 1), got {self.wanted!r}; 0.25 is a good rate")

    def step(
        self, rng: np.random.Generator, point: Point, target: GaussianTarget
    ) -> tuple[Point, Info]:
        """`repeats` updates."""
        keep = math.sqrt(1.0 - self.step_size**2)
        n_accepted = n_impossible = 0
        for _ in range(self.repeats):
            noise = target.prior_draw(rng.standard_normal(point.position.size))
            proposal = target.evaluate(keep * point.position + self.step_size * noise)
            n_impossible += impossible(proposal.log_density)
            if accepts(rng, proposal.log_density, point.log_density):
                point = proposal
                n_accepted += 1
        return point, Info(n_accepted / self.repeats, self.repeats, n_impossible)

    def tuned(self, info: Info, iteration: int) -> "ModifiedMetropolis":
        """The same, or with a moved towards the wanted acceptance rate, and m accordingly."""
        if self.wanted is None:
            return self
        step = float(adapted_step(self.step_size, info.acceptance, self.wanted, iteration))
        step = min(step, 1.0)
        # Each accepted update moves by a^2 in units of the prior variance.
        repeats = min(max(math.ceil(1.0 / (self.wanted * step**2)), 1), MOST_REPEATS)
        return replace(self, step_size=step, repeats=repeats)


@dataclass(frozen=True)
class EllipticalSlice:
    """Elliptical slice sampling (Murray, Adams and MacKay 2010).

    Points on the ellipse z cos(t) + L u sin(t) all have the same joint prior density with their
    partner; t is found by a shrinking bracket on a slice of the likelihood. Nothing to tune.

    Parameters
    ----------
    repeats : int
        Updates per step.
    max_shrinks : int
        Most angles tried per update.

    Examples
    --------
    >>> import numpy as np
    >>> target = GaussianTarget(lambda u: u, lambda z: Point(z, 0.0))
    >>> point, info = EllipticalSlice().step(
    ...     np.random.default_rng(4), target.evaluate(np.ones(2)), target
    ... )
    >>> info.n_evaluations
    1
    """

    repeats: int = 1
    max_shrinks: int = 200

    def __post_init__(self) -> None:
        _check.integer("repeats", self.repeats, at_least=1, advice="1 is a good start")
        _check.integer("max_shrinks", self.max_shrinks, at_least=1, advice="200 is plenty")

    def step(
        self, rng: np.random.Generator, point: Point, target: GaussianTarget
    ) -> tuple[Point, Info]:
        """`repeats` updates."""
        n_evaluations = n_impossible = n_exhausted = 0
        for _ in range(self.repeats):
            partner = target.prior_draw(rng.standard_normal(point.position.size))
            level = point.log_density - rng.standard_exponential()
            if math.isnan(level):
                level = -math.inf
            angle = 2.0 * math.pi * rng.random()
            low, high = angle - 2.0 * math.pi, angle
            for _ in range(self.max_shrinks):
                candidate = target.evaluate(
                    point.position * math.cos(angle) + partner * math.sin(angle)
                )
                n_evaluations += 1
                n_impossible += impossible(candidate.log_density)
                if candidate.log_density > level:
                    point = candidate
                    break
                low, high = (angle, high) if angle < 0.0 else (low, angle)
                angle = low + (high - low) * rng.random()
            else:
                n_exhausted += 1
        share = (self.repeats - n_exhausted) / self.repeats
        return point, Info(share, n_evaluations, n_impossible, n_exhausted)

    def tuned(self, info: Info, iteration: int) -> "EllipticalSlice":
        """The same: there is nothing to tune."""
        return self
