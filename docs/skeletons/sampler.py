"""A sampler of your own: Metropolis with proposals uniform on (x - width, x + width)."""

from dataclasses import dataclass, replace

from gplc.samplers.metropolis import accepts, adapted_step
from gplc.samplers.protocol import Info, impossible


@dataclass(frozen=True)
class UniformWalk:
    """Random-walk Metropolis of one variable.

    Parameters
    ----------
    width : float
        Half the width of the interval of proposals.
    """

    width: float = 1.0

    def step(self, rng, point, target):
        """One update that leaves the target's distribution as it is; a `ScalarTarget` here."""
        proposal = target.evaluate(point.position + self.width * rng.uniform(-1.0, 1.0))
        accepted = accepts(rng, proposal.log_density, point.log_density)
        info = Info(float(accepted), 1, int(impossible(proposal.log_density)))
        return (proposal if accepted else point), info

    def tuned(self, info, iteration):
        """The sampler to go on with in warm-up: wider if too many proposals are accepted."""
        return replace(
            self, width=float(adapted_step(self.width, info.acceptance, 0.5, iteration))
        )
