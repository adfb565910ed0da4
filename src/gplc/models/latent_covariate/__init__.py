"""GPLC: a Gaussian process with a latent covariate.

`model` is what is believed; `sweep`, `moves` and `function` are its updates of w; `prediction` is
the model given one draw.
"""

from gplc.models.latent_covariate.model import LatentCovariate

__all__ = ["LatentCovariate"]
