"""The three models in a basis that does not depend on the rows, for many of these."""

from gplc.models.in_basis.base import InBasis, WithCoefficients
from gplc.models.in_basis.latent_covariate import LatentCovariateInBasis
from gplc.models.in_basis.latent_variance import LatentVarianceInBasis
from gplc.models.in_basis.standard import StandardInBasis
from gplc.processes.hilbert import Axes, latent_axis

# By the key of the exact model.
IN_BASIS: dict[str, type[InBasis]] = {
    each.key: each for each in (StandardInBasis, LatentVarianceInBasis, LatentCovariateInBasis)
}

__all__ = [
    "IN_BASIS",
    "Axes",
    "InBasis",
    "LatentCovariateInBasis",
    "LatentVarianceInBasis",
    "StandardInBasis",
    "WithCoefficients",
    "latent_axis",
]
