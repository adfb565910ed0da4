"""Covariances of new rows with the cases and with themselves, for one theta."""

from collections.abc import Callable, Iterator
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from gplc._types import Array
from gplc.kernels.averages import average, average_of_both, latent_rule
from gplc.kernels.base import Pairs
from gplc.kernels.separable import Form, Separable, Term

if TYPE_CHECKING:
    from gplc.kernels.bound import Bound

# Entries of covariance matrices that are computed at once where there is a matrix for every row.
AT_ONCE = 1_000_000


class Cross:
    """Of any kernel, by its own formula."""

    def __init__(self, bound: "Bound", theta: Array, X: Array, W: Array) -> None:
        self.bound, self.theta, self.X, self.W = bound, theta, X, W
        self.pairs = [
            Pairs(place.observed(X), cases)
            for place, cases in zip(bound.places, bound.observed, strict=True)
        ]
        self.inner = bound.inner(theta, self.pairs)
        self.shape = X.shape[0], bound.n

    def at(self, w: Array | None = None) -> Array:
        """K((x, w), cases) for every row x, with one value for each latent column: (rows, n)."""
        node = np.empty((0, 1)) if w is None else w[:, None]
        value = self.bound.value(self.theta, self.pairs, self.inner, node, self.W)
        if value.shape == self.shape:
            return value
        return np.array(np.broadcast_to(value, self.shape))

    def each(self, nodes: Array) -> Iterator[Array]:
        """`at` for each of the nodes, the columns of a (q, s) array."""
        return (self.at(w) for w in nodes.T)

    def times(self, nodes: Array, vector: Array) -> Array:
        """`at` times a vector (n,), for each of the nodes: (rows, s)."""
        return np.column_stack([matrix @ vector for matrix in self.each(nodes)])

    def row_products(self, nodes: Array, vectors: Array) -> Array:
        """`at` times a vector of its own for every row, (rows, n), for each node: (rows, s)."""
        return np.column_stack(
            [np.einsum("ij,ij->i", matrix, vectors) for matrix in self.each(nodes)]
        )

    def variances(self, nodes: Array) -> Array:
        """K((x, w), (x, w)) for every row and each of the nodes w: (rows, s)."""
        return np.column_stack([self.bound.variance(self.theta, self.X, w) for w in nodes.T])

    def average(self) -> Array:
        """The average of `at` over w ~ N(0, I), by a rule: (rows, n)."""
        nodes, weights = latent_rule(len(self.W))
        result = np.zeros(self.shape)
        for node, weight in zip(nodes.T, weights, strict=True):
            result += weight * self.at(node)
        return result

    def average_variance(self) -> Array:
        """The average of K((x, w), (x, w')) over w and w', for every row x, by a rule: (rows,).

        A few rows at a time: s^2 entries each are many.
        """
        nodes, weights = latent_rule(len(self.W))
        result = np.empty(self.shape[0])
        height = max(2, AT_ONCE // weights.size**2)
        for begin in range(0, result.size, height):
            rows = self.X[begin : begin + height]
            entries = self.bound.at_rows(self.theta, rows, nodes)
            averages = np.tensordot(entries @ weights, weights, 1)
            if len(averages) < len(rows):  # it is the same for all
                result[:] = averages[0]
                break
            result[begin : begin + height] = averages
        return result


class SeparableCross(Cross):
    """Of a kernel that separates: what depends on x is computed once for all values of w.

    Averages over w are products of averages over one latent column at a time.
    """

    def __init__(self, cross: Cross, described: Separable) -> None:
        self.bound, self.theta, self.X, self.W = cross.bound, cross.theta, cross.X, cross.W
        self.shape, self._with_cases = cross.shape, described

    def at(self, w: Array | None = None) -> Array:
        """K((x, w), cases) for every row x, with one value for each latent column: (rows, n)."""
        return next(self.each(np.empty((0, 1)) if w is None else w[:, None]))

    def each(self, nodes: Array) -> Iterator[Array]:
        """`at` for each of the nodes, the columns of a (q, s) array."""
        of_terms = self._of_latent(lambda c, form: form.at(nodes[c][:, None], self.W[c]))
        return map(self._total, *of_terms)

    def average(self) -> Array:
        """The average of `at` over w ~ N(0, I): (rows, n)."""
        return self._total(*self._of_latent(lambda c, form: average(form, self.W[c])))

    def times(self, nodes: Array, vector: Array) -> Array:
        """`at` times a vector, for all nodes together: matrix products."""
        of_terms = self._of_latent(lambda c, form: form.at(nodes[c][:, None], self.W[c]))
        result = np.empty((self.shape[0], nodes.shape[1]))
        result[:] = self._applied(self._with_cases.free, vector[:, None])
        for term, of_latent in zip(self._with_cases.terms, of_terms, strict=True):
            result += self._applied(term.part, (of_latent * (term.scale * vector)).T)
        return result

    def row_products(self, nodes: Array, vectors: Array) -> Array:
        """`at` times a vector of its own for every row, for all nodes together."""
        of_terms = self._of_latent(lambda c, form: form.at(nodes[c][:, None], self.W[c]))
        result = np.empty((self.shape[0], nodes.shape[1]))
        result[:] = np.sum(self._with_cases.free * vectors, axis=1, keepdims=True)
        for term, of_latent in zip(self._with_cases.terms, of_terms, strict=True):
            result += (term.part * vectors) @ (term.scale * of_latent).T
        return result

    def _of_latent(self, of: Callable[[int, Form], Array]) -> list[Array]:
        """The functions of w in every term, multiplied."""
        return [_product(term, of) for term in self._with_cases.terms]

    def _total(self, *of_terms: Array) -> Array:
        """Covariances with the cases, from the functions of w in every term: (rows, n)."""
        first, *others = map(Term.weighted, self._with_cases.terms, of_terms)
        result = first if first.shape == self.shape else np.broadcast_to(first, self.shape).copy()
        for each in others:
            result += each
        result += self._with_cases.free
        return result

    def _applied(self, matrix: Array | float, right: Array) -> Array:
        """A matrix, which may be the same for all, times `right`."""
        if np.shape(matrix) == self.shape:
            return matrix @ right
        return matrix * right.sum(axis=0, keepdims=True)

    def variances(self, nodes: Array) -> Array:
        """K((x, w), (x, w)) for every row and each of the nodes w: (rows, s)."""
        return self._own(lambda column, form: form.at(nodes[column], nodes[column]))

    def average_variance(self) -> Array:
        """The average of K((x, w), (x, w')) over w and w', for every row x: (rows,)."""
        return self._own(lambda _, form: np.array([average_of_both(form)]))[:, 0]

    def _own(self, of: Callable[[int, Form], Array]) -> Array:
        """Covariances of rows with themselves, from s values of the functions of w: (rows, s)."""
        pairs = [Pairs(place.observed(self.X)) for place in self.bound.places]
        described = self.bound.between(self.theta, pairs, self.bound.inner(self.theta, pairs))
        assert described is not None  # it has the same terms
        total = np.asarray(described.free)
        for term in described.terms:
            total = total + term.weighted(_product(term, of))
        size = total.shape[-1]
        return np.broadcast_to(total.reshape(-1, size), (self.shape[0], size))


def _product(term: Term, of: Callable[[int, Form], Array]) -> Array:
    """The functions of w in a term, multiplied."""
    return reduce(np.multiply, [of(column, form) for column, form in term.forms.items()])
