"""What a kernel learns, the columns it sees, and what may be done to latent ones."""

from enum import IntEnum
from typing import NamedTuple

from gplc.priors import LogNormal, default_prior


class Touches(IntEnum):
    """What has to be computed again when a hyperparameter changes; each includes those before."""

    SCALE = 0  # nothing but multiplications
    LATENT = 1  # what depends on the latent columns
    INPUTS = 2  # everything


class Hyperparameter(NamedTuple):
    """A positive number that a kernel learns, sampled as its logarithm."""

    name: str
    prior: LogNormal
    touches: Touches = Touches.INPUTS


def default(name: str, touches: Touches = Touches.INPUTS, inputs: int = 1) -> Hyperparameter:
    """A hyperparameter with the prior that `gplc.priors` has for its kind and so many inputs."""
    return Hyperparameter(name, default_prior(name, inputs), touches)


class Seen(NamedTuple):
    """The columns that a leaf sees, by their numbers, and how many there are of each kind."""

    observed: tuple[int, ...]
    latent: tuple[int, ...]
    n_observed: int
    n_latent: int

    def names(self, stem: str, ard: bool, touches: Touches) -> list[Hyperparameter]:
        """A hyperparameter for each observed column (or one for all), one for each latent one."""
        several = ard and len(self.observed) > 1
        observed = [f"{stem}[{k}]" for k in self.observed] if several else [stem]
        indexed = self.n_latent > 1
        latent = [f"latent_{stem}[{c}]" if indexed else f"latent_{stem}" for c in self.latent]
        return [
            *(default(name, touches, len(self.observed)) for name in observed if self.observed),
            *(default(name, min(touches, Touches.LATENT)) for name in latent),
        ]


class LatentMoves(NamedTuple):
    """Changes of one latent column, of all cases at once, under which a kernel stays the same."""

    shift: bool = False  # w + a
    reflection: bool = False  # -w
    # s w, if log s is added to these places of theta with these signs; None: no such change
    scale: tuple[tuple[int, float], ...] | None = None
