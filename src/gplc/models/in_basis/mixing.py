"""Coefficients b that are mixed from independent ones, b = C(theta) e, as `Interpolated` has them.

e = s u has the order of b; C is lower triangular in the functions of x, and the same for every
function of w.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gplc._types import Array
from gplc.processes.interpolated import Interpolated


class Mixed(NamedTuple):
    """A term whose coefficients are mixed."""

    term: Interpolated
    own: slice  # its coefficients among all
    place: slice  # the hyperparameters of its process

    def of(self, vector: Array) -> Array:
        """Its entries of a vector: (functions of x, functions of w)."""
        return vector[self.own].reshape(self.term.shape)

    def root(self, theta: Array) -> "Rooted | None":
        """With C at theta; None if it cannot be computed."""
        lower = self.term.root(theta[self.place])
        return None if lower is None else Rooted(self, lower)


class Rooted(NamedTuple):
    """A term with its C."""

    mixed: Mixed
    lower: Array


class Group(NamedTuple):
    """Coefficients of one term and one function of w, of those with correlations."""

    part: int  # number of the term
    places: NDArray[np.intp]  # among the coefficients with correlations
    functions: NDArray[np.intp]  # which functions of x


def groups_of(mixed: Sequence[Mixed], places: NDArray[np.intp]) -> list[Group]:
    """The groups of the coefficients at these places."""
    found = []
    for number, each in enumerate(mixed):
        inside = np.flatnonzero((places >= each.own.start) & (places < each.own.stop))
        functions, kinds = np.divmod(places[inside] - each.own.start, each.term.shape[1])
        for kind in np.unique(kinds):
            chosen = kinds == kind
            found.append(Group(number, inside[chosen], functions[chosen]))
    return found


class Mixing:
    """All terms that mix their coefficients, at one theta; none, in a Hilbert-space basis."""

    def __init__(self, parts: Sequence[Rooted]) -> None:
        self.parts = tuple(parts)

    @property
    def roots(self) -> list[Array]:
        """C of every term."""
        return [part.lower for part in self.parts]

    def applied(self, e: Array) -> Array:
        """C e."""
        return self._through(e, transposed=False)

    def transposed(self, by_b: Array) -> Array:
        """The gradient by e, C' times that by b."""
        return self._through(by_b, transposed=True)

    def _through(self, vector: Array, transposed: bool) -> Array:
        if not self.parts:
            return vector
        result = vector.copy()
        for part in self.parts:
            lower = part.lower.T if transposed else part.lower
            result[part.mixed.own] = (lower @ part.mixed.of(vector)).ravel()
        return result

    def of_rows(self, functions: Array) -> Array:
        """Functions whose coefficients are e, from those whose are b: (rows, size)."""
        if not self.parts:
            return functions
        result = functions.copy()
        for part in self.parts:
            kinds, own = part.mixed.term.shape[1], result[:, part.mixed.own]
            for kind in range(kinds):
                own[:, kind::kinds] = own[:, kind::kinds] @ part.lower
        return result

    def diagonal(self, size: int) -> Array:
        """C_jj for every coefficient."""
        result = np.ones(size)
        for part in self.parts:
            result[part.mixed.own] = np.repeat(np.diagonal(part.lower), part.mixed.term.shape[1])
        return result

    # Derivatives.

    def products(self, by_b: Array, e: Array) -> list[Array]:
        """The derivative by C of every term of what has the gradient by_b, by b = C e."""
        return [part.mixed.of(by_b) @ part.mixed.of(e).T for part in self.parts]

    def pulled(self, theta: Array, by_roots: Sequence[Array]) -> Array:
        """The gradient by theta, from that by C of every term."""
        result = np.zeros(theta.size)
        for part, each in zip(self.parts, by_roots, strict=True):
            place, term = part.mixed.place, part.mixed.term
            result[place] += term.pulled(theta[place], part.lower, each)
        return result

    # Some of the coefficients, in groups.

    def right(self, matrix: Array, groups: Sequence[Group]) -> Array:
        """F C: the columns of a matrix of some coefficients, mixed."""
        if not self.parts:
            return matrix
        result = matrix.copy()
        for group in groups:
            own = self.parts[group.part].lower[np.ix_(group.functions, group.functions)]
            result[:, group.places] = matrix[:, group.places] @ own
        return result

    def left(self, matrix: Array, groups: Sequence[Group]) -> Array:
        """C' F."""
        return self.right(matrix.T, groups).T if self.parts else matrix

    def by_roots(self, half: Array, weights: Array, groups: Sequence[Group]) -> list[Array]:
        """The derivative by C of the sum of weights times C' F C, with half = F C."""
        result = [np.zeros(part.lower.shape) for part in self.parts]
        for group in groups:
            there = np.ix_(group.functions, group.functions)
            found = half[group.places] @ weights[:, group.places]
            result[group.part][there] += 2.0 * found
        return result

    def add_to_diagonals(self, by_roots: Sequence[Array], by_log: Array) -> None:
        """Add derivatives by log C_jj, of every coefficient."""
        for part, each in zip(self.parts, by_roots, strict=True):
            more = part.mixed.of(by_log).sum(axis=1) / np.diagonal(part.lower)
            each[np.diag_indices_from(each)] += more

    def information(self, theta: Array, slopes: Array, shares: Array) -> Array:
        """What coefficients tell of theta, if so large a share of each is known from rows.

        1/2 sum_jk D_jk E_jk i_j i_k for the derivatives D and E of the covariance of u by two of
        theta; `slopes` are those of log s.
        """
        slopes, result = slopes.copy(), np.zeros((theta.size, theta.size))
        for part in self.parts:
            mixed = part.mixed
            kinds, known = mixed.term.shape[1], mixed.of(shares)
            changes = mixed.term.sensitivities(theta[mixed.place], part.lower)
            diagonals = np.einsum("kjj->kj", changes).copy()
            slopes[mixed.place, mixed.own] += 0.5 * np.repeat(diagonals, kinds, axis=1)
            np.einsum("kjj->kj", changes)[:] = 0.0
            weighted = changes * (known @ known.T)
            found = 0.5 * np.tensordot(weighted, changes, axes=([1, 2], [1, 2]))
            result[mixed.place, mixed.place] += found
        held = slopes * shares
        return np.asarray(result + 2.0 * held @ held.T)
