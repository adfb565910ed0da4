"""A covariance as a function of latent columns: the one description that all its users share.

    K = free + sum_t scale_t part_t prod_c f_tc(w_c, w'_c)

`free` and the parts, of x, depend on neither w nor w': they are matrices between cases (for the
sweep and for the function given everything else) or between new rows and cases (for prediction).
Kernels say what they are (`Leaf.in_latent`); sums and products of descriptions are descriptions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gplc._compiled.latent_terms import N_NUMBERS, Forms, LatentTerms
from gplc._types import Array
from gplc.kernels.shapes import Basis, Shape


class Curve(NamedTuple):
    """phi(weight b(w, w') + offset): a function of two values of a latent column."""

    phi: Shape
    basis: Basis
    weight: float
    extra: float
    offset: Array | None = None  # what other columns add to t; a function of x and w at once

    def at(self, w: Array, other: Array) -> Array:
        """Its values, for arrays that broadcast."""
        t = self.weight * self.basis.value(w, other, self.extra)
        return self.phi.value(t if self.offset is None else t + self.offset, self.extra)


class Form(NamedTuple):
    """f(w, w') = (w w')^power (s(w) s(w'))^side exp(-decay (w - w')^2) prod curves, s the sign.

    Examples
    --------
    >>> import numpy as np
    >>> Form(power=1).times(Form(side=1)).at(np.array([-2.0, 2.0]), np.array([3.0, 3.0])).tolist()
    [6.0, 6.0]
    """

    decay: float = 0.0
    power: int = 0
    side: int = 0
    curves: tuple[Curve, ...] = ()

    @property
    def is_smooth(self) -> bool:
        """Whether it has no curves: then functions of w that have it can be drawn."""
        return not self.curves

    @property
    def separates(self) -> bool:
        """Whether it is a function of w and w' alone, and not of x too."""
        return all(curve.offset is None for curve in self.curves)

    def times(self, other: "Form") -> "Form":
        """The product of two."""
        return Form(
            self.decay + other.decay,
            self.power + other.power,
            (self.side + other.side) % 2,
            self.curves + other.curves,
        )

    def at(self, w: Array, other: Array) -> Array:
        """Its values, for arrays that broadcast."""
        result = np.exp(-self.decay * (w - other) ** 2)
        if self.power:
            result *= (w * other) ** self.power
        if self.side:
            result = np.where((w < 0.0) == (other < 0.0), result, -result)
        for curve in self.curves:
            result = result * curve.at(w, other)
        return result


class Term(NamedTuple):
    """A part of x times one function of each latent column that the term depends on."""

    part: Array | float
    forms: Mapping[int, Form]
    scale: float = 1.0

    @property
    def amplitude(self) -> Array | float:
        """What multiplies the functions of w."""
        return self.part if self.scale == 1.0 else self.part * self.scale

    def weighted(self, of_latent: Array) -> Array:
        """The term where the functions of w have a product `of_latent`, of few entries."""
        return self.part * (of_latent if self.scale == 1.0 else self.scale * of_latent)

    def times(self, other: "Term") -> "Term":
        """The product of two."""
        forms = dict(self.forms)
        for column, form in other.forms.items():
            forms[column] = forms[column].times(form) if column in forms else form
        return Term(self.amplitude * other.amplitude, forms)


@dataclass(frozen=True, eq=False)
class Separable:
    """free + sum of terms; `+` and `*` are those of the covariances."""

    free: Array | float = 0.0
    terms: tuple[Term, ...] = ()

    def __add__(self, other: "Separable") -> "Separable":
        return Separable(self.free + other.free, self.terms + other.terms)

    def __mul__(self, other: "Separable") -> "Separable":
        products = [one.times(two) for one in self._all() for two in other._all()]
        free = next((term.amplitude for term in products if not term.forms), 0.0)
        return Separable(free, tuple(term for term in products if term.forms))

    def _all(self) -> tuple[Term, ...]:
        """The terms, and what is free of w as one more, if it is not zero."""
        return (*self.terms, Term(self.free, {})) if np.any(self.free) else self.terms

    @property
    def separates(self) -> bool:
        """Whether it depends on w, and every term is a function of x times functions of w."""
        forms = [form for term in self.terms for form in term.forms.values()]
        return bool(forms) and all(form.separates for form in forms)

    def compiled(self, column: int, n: int) -> LatentTerms | None:
        """The same between n cases, in one latent column, for compiled code.

        None if a curve has no compiled twin.
        """
        each = [term.forms[column] for term in self.terms]
        curves = [(t, curve) for t, form in enumerate(each) for curve in form.curves]
        codes: list[tuple[int, int, int, int]] = []
        numbers: list[tuple[float, ...]] = []
        offsets: list[Array | float] = []
        for term, (phi, basis, weight, extra, offset) in curves:
            if phi.code is None or basis.code is None:
                return None
            codes.append((term, phi.code, basis.code, -1 if offset is None else len(offsets)))
            numbers.append((weight, extra, *phi.numbers(extra)))
            if offset is not None:
                offsets.append(offset)
        forms = Forms(
            np.array([form.decay for form in each]),
            np.array([(f.power, f.side, len(f.curves)) for f in each], dtype=np.int64),
            np.array(codes, dtype=np.int64).reshape(-1, 4),
            np.array(numbers).reshape(-1, N_NUMBERS),
        )
        amplitudes = _stacked([term.amplitude for term in self.terms], n)
        return LatentTerms(whole(self.free, n), amplitudes, _stacked(offsets, n), forms)


def whole(matrix: Array | float, n: int) -> Array:
    """A new matrix (n, n) from one that may be a number, or the same for all cases."""
    result = np.empty((n, n))
    result[:] = matrix
    return result


def _stacked(matrices: list[Array | float], n: int) -> Array:
    """Matrices as one array (m, n, n); one that is whole already is not copied."""
    if len(matrices) == 1 and np.shape(matrices[0]) == (n, n):
        return np.ascontiguousarray(matrices[0])[None]
    result = np.empty((len(matrices), n, n))
    for place, matrix in zip(result, matrices, strict=True):
        place[:] = matrix
    return result
