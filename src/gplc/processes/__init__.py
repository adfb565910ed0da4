"""Gaussian processes as values: a kernel at the inputs of n cases, its place in theta, its noise.

A `Process` is what is believed of a function; solved at values of its hyperparameters it answers
the questions of `Solved`, however it is solved. `SOLVERS` has every way there is.
"""

from gplc.processes.dense import Dense
from gplc.processes.hilbert import Hilbert
from gplc.processes.inducing import Inducing
from gplc.processes.noise import FixedNoise, KnownNoise, LearnedNoise, Noise, SumNoise
from gplc.processes.process import Gradient, Layout, Process, Solved
from gplc.processes.replicates import Replicates

SOLVERS: dict[str, type[Dense]] = {"dense": Dense}

__all__ = [
    "SOLVERS",
    "Dense",
    "FixedNoise",
    "Gradient",
    "Hilbert",
    "Inducing",
    "KnownNoise",
    "Layout",
    "LearnedNoise",
    "Noise",
    "Process",
    "Replicates",
    "Solved",
    "SumNoise",
]
