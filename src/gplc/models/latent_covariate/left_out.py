"""GPLC given one draw without the case that is asked about: its w is summed out over N(0, 1)."""

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from gplc._compiled.cells import slopes_of
from gplc._linalg import inverse, solve_lower, usable
from gplc._types import Array
from gplc.kernels.cross import Cross
from gplc.models.landmarks import standard_nodes
from gplc.models.latent_covariate.marginal import grid
from gplc.models.left_out import LeftOut

if TYPE_CHECKING:
    from gplc.models.latent_covariate.model import LatentCovariate
    from gplc.processes import Dense

# Cells of w_i. The variance of y_i takes triangular solves: it is computed in so many of the cells
# of each half, and its logarithm goes smoothly between them.
N_CELLS, FEW_CELLS = 128, 14
# Points on either side of zero for several covariates, where there are no cells.
HALF_POINTS = 64


def left_out(model: "LatentCovariate", solved: "Dense") -> LeftOut:
    """Each y_i given the other responses and their w: a mixture over the cells of w_i.

    With q_i column i of Q = C^-1 and a = C^-1 y, the responses of the others pull with
    a_j - Q_ij a_i / Q_ii. What they tell of g(x_i, w_i) is the square of the part of L^-1 k that
    is orthogonal to L^-1 e_i: a projection, and no difference of large numbers.
    """
    own, W = solved.theta[solved.process.place], usable(solved.W)
    cross = solved.process.bound.cross(own, model.X, W)
    noise = np.broadcast_to(
        solved.noise.variance(solved.theta[solved.process.noise_place]), (model.n,)
    )
    pulls = _pulls_of_others(solved)
    if len(W) > 1:
        nodes = standard_nodes(len(W), HALF_POINTS).reshape(len(W), -1)
        variances = _variances(solved, cross, nodes) + noise[:, None]
        weights = np.full(nodes.shape[1], 1.0 / nodes.shape[1])
        return LeftOut(cross.row_products(nodes, pulls), np.sqrt(variances), weights)
    cells, weights, *_ = grid(N_CELLS)
    few, between = _between_cells()
    means = cross.row_products(cells.centres[None, :], pulls)
    at_few = _variances(solved, cross, cells.centres[None, few]) + noise[:, None]
    # Nothing is below the noise, whatever goes on between the cells that were looked at.
    variances = np.maximum(np.exp(np.log(at_few) @ between), noise[:, None])
    spread = cells.variances * slopes_of(np.ascontiguousarray(means), cells) ** 2
    return LeftOut(means, np.sqrt(variances + spread), weights / weights.sum())


@cache
def _between_cells() -> tuple[NDArray[np.intp], Array]:
    """Some cells of either half, and the matrix that takes values there to all cells."""
    half = N_CELLS // 2
    # Between even spacing and that of Chebyshev: a spline is least sure of itself near its ends.
    even = np.linspace(0.0, 1.0, FEW_CELLS)
    places = 0.5 * even + 0.5 * np.sin(0.5 * np.pi * even) ** 2
    some = ((half - 1) * places).round().astype(np.intp)
    inside = CubicSpline(some, np.eye(FEW_CELLS))(np.arange(half)).T
    nothing = np.zeros_like(inside)
    return np.concatenate([some, half + some]), np.block([[inside, nothing], [nothing, inside]])


def _pulls_of_others(solved: "Dense") -> Array:
    """C_-i^-1 y_-i in row i, with zero in the place of i: (n, n)."""
    Q, pulls = inverse(usable(solved.factor)), solved.pulls()
    result = pulls - Q * (pulls / np.diagonal(Q))[:, None]
    np.fill_diagonal(result, 0.0)
    return result


def _variances(solved: "Dense", cross: Cross, nodes: Array) -> Array:
    """Variance of g(x_i, w) given the other cases, for every case and node: (n, nodes)."""
    factor = usable(solved.factor)
    n = solved.y.size
    own = cross.variances(nodes)
    alone = solve_lower(factor, np.eye(n, order="F"), overwrite=True)  # columns L^-1 e_i
    sizes = np.einsum("ji,ji->i", alone, alone)
    result = np.empty(own.shape)
    for s, matrix in enumerate(cross.each(nodes)):
        np.fill_diagonal(matrix, 0.0)
        seen = solve_lower(factor, matrix.T, overwrite=True)
        seen -= alone * (np.einsum("ji,ji->i", alone, seen) / sizes)
        result[:, s] = own[:, s] - np.einsum("ji,ji->i", seen, seen)
    return np.maximum(result, 0.0)
