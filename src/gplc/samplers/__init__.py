"""Markov chain updates that know nothing of Gaussian processes.

Every sampler is a small frozen object with one method,

    step(rng, point, target) -> (point, info)

and one that says how it learns during warm-up,

    tuned(info, iteration) -> sampler

A `point` carries a position, its log density, and whatever the target wants kept with it (the
sampler passes it on unseen). See `gplc.samplers.protocol`.
"""

from gplc.samplers.choices import LearnedChoices
from gplc.samplers.framed import FramedHamiltonian
from gplc.samplers.gaussian_prior import EllipticalSlice, ModifiedMetropolis
from gplc.samplers.hamiltonian import Hamiltonian, SurrogateHamiltonian
from gplc.samplers.marginal import MarginalHamiltonian, MarginalSlice
from gplc.samplers.metropolis import Metropolis
from gplc.samplers.pools import Pools
from gplc.samplers.protocol import Info, Point, Sampler
from gplc.samplers.slice import OccasionalSlice, Slice
from gplc.samplers.sweeps import Direct, MetropolisSweep, SliceSweep, SymmetricProposal

__all__ = [
    "Direct",
    "EllipticalSlice",
    "FramedHamiltonian",
    "Hamiltonian",
    "Info",
    "LearnedChoices",
    "MarginalHamiltonian",
    "MarginalSlice",
    "Metropolis",
    "MetropolisSweep",
    "ModifiedMetropolis",
    "OccasionalSlice",
    "Point",
    "Pools",
    "Sampler",
    "Slice",
    "SliceSweep",
    "SurrogateHamiltonian",
    "SymmetricProposal",
]
