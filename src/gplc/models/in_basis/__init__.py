"""The three models in a basis that does not depend on the rows, for many of these."""

from gplc.models.in_basis.base import InBasis, WithCoefficients
from gplc.models.in_basis.inducing import StandardWithPoints
from gplc.models.in_basis.interpolated import (
    LatentCovariateWithPoints,
    LatentVarianceWithPoints,
)
from gplc.models.in_basis.latent_covariate import LatentCovariateInBasis
from gplc.models.in_basis.latent_variance import LatentVarianceInBasis
from gplc.models.in_basis.standard import StandardInBasis
from gplc.processes.hilbert import Axes, latent_axis
from gplc.processes.inducing import Points

# By the key of the exact model.
IN_BASIS: dict[str, type[InBasis]] = {
    each.key: each for each in (StandardInBasis, LatentVarianceInBasis, LatentCovariateInBasis)
}

# The same with inducing points. All but STD sample the values at these.
WITH_POINTS: dict[str, type[InBasis]] = {
    each.key: each
    for each in (StandardWithPoints, LatentVarianceWithPoints, LatentCovariateWithPoints)
}
SAMPLED_POINTS = frozenset(WITH_POINTS) - {StandardWithPoints.key}


def made_for(key: str, axes: Axes | Points) -> type[InBasis]:
    """The model of a key on such axes, or points."""
    return (WITH_POINTS if isinstance(axes, Points) else IN_BASIS)[key]


__all__ = [
    "IN_BASIS",
    "SAMPLED_POINTS",
    "WITH_POINTS",
    "Axes",
    "InBasis",
    "LatentCovariateInBasis",
    "LatentCovariateWithPoints",
    "LatentVarianceInBasis",
    "LatentVarianceWithPoints",
    "Points",
    "StandardInBasis",
    "StandardWithPoints",
    "WithCoefficients",
    "latent_axis",
    "made_for",
]
