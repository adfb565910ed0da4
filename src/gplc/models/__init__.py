"""What is believed: three models of a response whose noise may depend on the inputs."""

from gplc.models.base import MODELS, Model, Part, State, Unknowns, Update
from gplc.models.latent_covariate import LatentCovariate
from gplc.models.latent_variance import LatentVariance
from gplc.models.standard import Standard

__all__ = [
    "MODELS",
    "LatentCovariate",
    "LatentVariance",
    "Model",
    "Part",
    "Standard",
    "State",
    "Unknowns",
    "Update",
]
