"""A process in function space: g(x_i, w) = sum_t phi_t(x_i)' Z_t a_t(w), all Z_t ~ N(0, 1).

Where a covariance is a sum of products of a function of x and one of a latent column w
(`gplc.kernels.separable`), each product has features phi of x, a root of its matrix between cases,
and features a of w. A smooth function of one number has few degrees of freedom: some 15 features
are exact to rounding, and the first five or six of them say nearly all.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from gplc._compiled.cells import Basis
from gplc._compiled.pools import END
from gplc._linalg import pivoted_root, thin_root
from gplc._types import Array
from gplc.kernels.separable import Form, Separable, whole

# Points in w between which a smooth function is interpolated: so many per length scale, so many
# at least, and no features at all if that would be more than so many.
PER_SCALE, FEWEST_POINTS, MOST_POINTS = 6.0, 24, 600


def points_wanted(form: Form) -> float:
    """Points in w between which functions of such a form can be interpolated."""
    return PER_SCALE * (2.0 * END * math.sqrt(form.decay))


def has_features(described: Separable, column: int) -> bool:
    """Whether functions of one latent column can be written with a moderate number of features."""
    forms = [term.forms[column] for term in described.terms]
    return bool(forms) and all(
        form.is_smooth and points_wanted(form) <= MOST_POINTS for form in forms
    )


class LatentBasis:
    """Functions a_r of w with f(w, w') = sum_r a_r(w) a_r(w'), to rounding, for |w| <= END.

    exp(-b (w - w')^2) = k(w)' (L L')^-1 k(w') to rounding, k(w) being its values at a few nodes
    and L L' its matrix there; f has that, times q(w) q(w').

    Examples
    --------
    >>> import numpy as np
    >>> form = Form(decay=0.1, power=1)
    >>> basis, w = LatentBasis(form), np.array([-2.0, 0.5])
    >>> bool(np.allclose(basis.at(w) @ basis.at(w).T, form.at(w[:, None], w)))
    True
    """

    def __init__(self, form: Form) -> None:
        self.form = form
        points = max(FEWEST_POINTS, math.ceil(points_wanted(form))) if form.decay > 0.0 else 1
        grid = np.linspace(-END, END, points) if points > 1 else np.zeros(1)
        root, rows = pivoted_root(np.exp(-form.decay * (grid[:, None] - grid) ** 2))
        self.nodes, self.lower = grid[rows], np.asfortranarray(root[rows])

    def at_nodes(self, w: Array) -> Array:
        """q(w) k(w)': (size of w, nodes)."""
        values = np.exp(-self.form.decay * (w[:, None] - self.nodes) ** 2)
        if self.form.power:
            values *= w[:, None] ** self.form.power
        if self.form.side:
            values[w < 0.0] *= -1.0
        return values

    def at(self, w: Array) -> Array:
        """a(w) = q(w) L^-1 k(w): (size of w, nodes)."""
        values, _ = lapack.dtrtrs(self.lower, self.at_nodes(w).T, lower=1)
        return values.T


class Product(NamedTuple):
    """One term: features of x times features of w."""

    root: Array  # phi: (n, m)
    basis: LatentBasis | None  # None: the constant 1
    turn: Array  # orthogonal: turns features of w so that the first ones say most
    sizes: Array  # root mean square of every feature of w under N(0, 1)
    amplitude: Array  # phi phi'

    def of_latent(self, w: Array) -> Array:
        """Features of w: (size of w, r)."""
        return np.ones((w.size, 1)) if self.basis is None else self.basis.at(w) @ self.turn


class Features:
    """Features of one process at one theta, for one latent column with all else held fixed.

    Parameters
    ----------
    described : Separable
        Its covariance between the n cases.
    column : int
    n : int
    grid, weights : (k,) arrays
        Values of w, and their probabilities, by which features of w are put in order.
    """

    def __init__(
        self, described: Separable, column: int, n: int, grid: Array, weights: Array
    ) -> None:
        self.products = [
            _product(whole(term.amplitude, n), term.forms[column], grid, weights)
            for term in described.terms
        ]
        if np.any(described.free):
            free = whole(described.free, n)
            unit = np.ones(1)
            self.products.append(Product(thin_root(free), None, np.eye(1), unit, free))
        self.shapes = [(each.root.shape[1], each.sizes.size) for each in self.products]
        self.size = sum(m * r for m, r in self.shapes)
        self.sizes = np.concatenate([each.sizes for each in self.products])
        self.on_grid = self.of_latent(grid)
        self.basis = Basis(
            np.ascontiguousarray(np.concatenate([each.root.T for each in self.products])),
            np.ascontiguousarray(self.on_grid.T),
            np.array(self.shapes, dtype=np.int64),
        )

    def of_latent(self, w: Array) -> Array:
        """Features of w, of all terms: (size of w, sum of r)."""
        return np.concatenate([each.of_latent(w) for each in self.products], axis=1)

    def split(self, flat: Array) -> list[Array]:
        """The coefficients Z_t of every term, as views: (m, r) each."""
        ends = np.cumsum([m * r for m, r in self.shapes])[:-1]
        pieces = np.split(flat[: self.size], ends)
        return [piece.reshape(shape) for piece, shape in zip(pieces, self.shapes, strict=True)]

    def at_cases(self, flat: Array) -> Array:
        """phi_t(x_i)' Z_t, of all terms: (n, sum of r)."""
        pairs = zip(self.products, self.split(flat), strict=True)
        return np.concatenate([each.root @ z for each, z in pairs], axis=1)

    def pulled(self, by_case: Array) -> Array:
        """The gradient by the coefficients, from that by `at_cases`."""
        ends = np.cumsum([r for _, r in self.shapes])[:-1]
        pieces = np.split(by_case, ends, axis=1)
        return np.concatenate(
            [
                (each.root.T @ piece).ravel()
                for each, piece in zip(self.products, pieces, strict=True)
            ]
        )

    def observed(self, at_w: Array, pulls: Array) -> Array:
        """sum_i Cov(coefficients, g(x_i, w_i)) pulls_i, given the features of each w_i."""
        return self.pulled(at_w * pulls[:, None])


def _product(amplitude: Array, form: Form, grid: Array, weights: Array) -> Product:
    basis = LatentBasis(form)
    values = basis.at(grid)
    squares, turn = np.linalg.eigh((values * weights[:, None]).T @ values)
    sizes = np.sqrt(np.maximum(squares[::-1], 0.0))
    turned = np.ascontiguousarray(turn[:, ::-1])
    return Product(thin_root(amplitude), basis, turned, sizes, amplitude)
