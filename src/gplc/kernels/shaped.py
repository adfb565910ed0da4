"""What all kernels of the package but `Constant` have in common.

Their form is

    K = c^2 + eta^2 phi(t),   t = sum_k s_k b(x_k, x'_k)

Only phi, b (`gplc.kernels.shapes`) and what is learned differ. Length scales are in the paper's
convention: what is squared is (x - x') / rho, without a factor 1/2.
"""

import math
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from gplc import _check
from gplc._types import Array
from gplc.kernels.base import Leaf, Pairs
from gplc.kernels.hyperparameters import Hyperparameter, LatentMoves, Seen, Touches, default
from gplc.kernels.separable import Curve, Form, Separable, Term
from gplc.kernels.shapes import Basis, Shape, SquaredGap

ONE: Array = np.ones((1, 1))
ZERO: Array = np.zeros((1, 1))


class Numbers(NamedTuple):
    """What theta says to a kernel, on the scale of the formula."""

    amplitude: float  # eta^2
    observed: Array  # s of observed columns, or one for all
    latent: Array  # s of latent columns
    extra: float  # one number that shapes phi or b


class Shaped(Leaf):
    """c^2 + eta^2 phi(t); see the docstring of the module.

    theta holds, in this order, what is learned of: eta, s of observed columns, s of latent ones,
    and one number that shapes phi or b.
    """

    phi: ClassVar[Shape]
    basis: ClassVar[Basis] = SquaredGap()
    sign: ClassVar[float] = -2.0  # s = exp(sign theta): a length scale divides, a slope multiplies
    extra: ClassVar[str] = ""  # name of the number that shapes phi or b; that of a field too
    ard: bool
    sd: float | None
    constant: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.ard, bool | np.bool_):
            raise ValueError(f"ard must be True or False, got {_check.shown(self.ard)}")
        learned = "None means that it is learned"
        if self.sd is not None:
            _check.number("sd", self.sd, at_least=0.0, at_most=_check.LARGEST_SD, advice=learned)
        given = getattr(self, self.extra) if self.extra else None
        if given is not None:
            _check.number(self.extra, given, above=0.0, advice=learned)

    # The parts of theta.

    @property
    def _n_scales(self) -> int:
        """1 if theta begins with log eta, 0 if not."""
        return int(self.sd is None)

    @property
    def _learns_extra(self) -> bool:
        return bool(self.extra) and getattr(self, self.extra) is None

    def _amplitude(self, theta: Array) -> float:
        """eta^2."""
        return math.exp(2.0 * theta[0]) if self.sd is None else self.sd**2

    def _numbers(self, theta: Array, n_latent: int) -> Numbers:
        last = theta.size - self._learns_extra
        scales = np.exp(self.sign * theta[self._n_scales : last])
        middle = scales.size - n_latent
        extra = 0.0
        if self.extra:
            extra = math.exp(theta[-1]) if self._learns_extra else getattr(self, self.extra)
        return Numbers(self._amplitude(theta), scales[:middle], scales[middle:], extra)

    def specify(self, seen: Seen) -> list[Hyperparameter]:
        """Eta, then every rho, then what shapes phi or b."""
        amplitude = [default("signal_sd", Touches.SCALE)] if self.sd is None else []
        touches = Touches.INPUTS if self.basis.has_extra else Touches.LATENT
        extra = [default(self.extra, touches)] if self._learns_extra else []
        return amplitude + seen.names("length_scale", self.ard, Touches.INPUTS) + extra

    def _latent_place(self, seen: Seen, column: int) -> int:
        """Where in theta the scale of a latent column is."""
        observed = 0 if not seen.observed else len(seen.observed) if self.ard else 1
        return self._n_scales + observed + seen.latent.index(column)

    def moves(self, seen: Seen, column: int) -> LatentMoves:
        """Only differences of w count, and in units of its length scale."""
        scale = ((self._latent_place(seen, column), 1.0),)
        return LatentMoves(shift=True, reflection=True, scale=scale)

    def exchanged(self, seen: Seen, first: int, second: int) -> tuple[int, int] | None:
        """The two length scales."""
        return self._latent_place(seen, first), self._latent_place(seen, second)

    # Spectral densities.

    @property
    def is_stationary(self) -> bool:
        """Whether it has a spectral density that is known."""
        known = self.phi.log_spectrum(ZERO, 1) is not None
        return known and isinstance(self.basis, SquaredGap)

    def log_spectrum(
        self, theta: Array, observed: Array, latent: Array
    ) -> tuple[Array, list[Array]]:
        """Log spectral density without c, and its derivatives by theta.

        Parameters
        ----------
        theta : (k,) array
        observed, latent : (p, ...) and (q, ...) array
            Squares of the frequencies in the columns that it sees.

        Examples
        --------
        >>> from gplc.kernels import SquaredExponential
        >>> value, _ = SquaredExponential().log_spectrum(
        ...     np.zeros(2), np.zeros((1, 1)), np.zeros((0, 1))
        ... )
        >>> bool(np.isclose(np.exp(value[0]), np.sqrt(np.pi)))
        True
        """
        first, n_latent = self._n_scales, len(latent)
        squares = np.concatenate([observed, latent])
        scales = theta[first:]
        shared = len(observed) > 0 and not self.ard
        if shared:  # one length scale for all observed columns
            scales = np.concatenate([np.repeat(scales[0], len(observed)), scales[1:]])
        weighted = squares * np.exp(2.0 * scales).reshape(-1, *[1] * (squares.ndim - 1))
        found = self.phi.log_spectrum(weighted.sum(axis=0), len(squares))
        assert found is not None  # is_stationary has been asked
        value, slope = found
        value = value + math.log(self._amplitude(theta)) + scales.sum()
        by_scale = list(1.0 + 2.0 * weighted * slope)
        if shared:
            by_scale = [sum(by_scale[: len(observed)]), *by_scale[len(by_scale) - n_latent :]]
        return value, [np.full(value.shape, 2.0)] * first + by_scale

    # Covariances.

    @property
    def _nothing(self) -> Array:
        """What `inner` is without observed columns."""
        return ONE if self.phi.multiplies else ZERO

    def _pooled(self, each: Array) -> Array:
        """Every b, of observed columns, or their sum if these share one s."""
        return each if self.ard or len(each) == 0 else each.sum(axis=0, keepdims=True)

    def bases(self, X: Array, others: Array) -> Array:
        """Every b as far as it is known, of observed columns, or their sum: (d, n, m)."""
        each = self.basis.prepared(X.T[:, :, None], others.T[:, None, :])
        return each if self.basis.has_extra else self._pooled(each)

    def _finished(self, bases: Array, extra: float) -> Array:
        """What `bases` gave, made b."""
        return self._pooled(self.basis.finished(bases, extra)) if self.basis.has_extra else bases

    def inner(self, theta: Array, pairs: Pairs, n_latent: int) -> Array:
        """Of observed columns: their part of t, or phi of it if phi multiplies."""
        X, others, kept = pairs
        if X.shape[1] == 0 or (others is None and self.basis.vanishes):
            return self._nothing
        numbers = self._numbers(theta, n_latent)
        if others is None:
            each = self._pooled(self.basis.value(X, X, numbers.extra).T)
            t = (each.T @ numbers.observed)[:, None, None]
        else:
            each = self._finished(self.bases(X, others) if kept is None else kept, numbers.extra)
            t = np.tensordot(numbers.observed, each, 1)
        return self.phi.value(t, numbers.extra) if self.phi.multiplies else t

    def _latent_sum(self, numbers: Numbers, W: Array, W_other: Array) -> Array:
        """The part of t that comes from latent columns, for all pairs; ZERO if there are none."""
        total = ZERO
        for weight, w, other in zip(numbers.latent, W, W_other, strict=True):
            more = weight * self.basis.value(w[:, None], other, numbers.extra)
            total = more if total is ZERO else total + more
        return total

    def unit(self, theta: Array, inner: Array, pairs: Pairs, W: Array, W_other: Array) -> Array:
        """phi(t)."""
        numbers = self._numbers(theta, len(W))
        t = self._latent_sum(numbers, W, W_other)
        if not self.phi.multiplies:
            return self.phi.value(inner if t is ZERO else inner + t, numbers.extra)
        return inner if t is ZERO else inner * self.phi.value(t, numbers.extra)

    def scaled(self, theta: Array, unit: Array) -> Array:
        """c^2 + eta^2 phi."""
        result = unit * self._amplitude(theta)
        if self.constant:
            result += self.constant**2
        return result

    def in_latent(
        self, theta: Array, inner: Array, seen: Seen, W: Array, columns: Sequence[int]
    ) -> Separable | None:
        """Terms for every column where phi adds, one for all of them where it multiplies.

        Otherwise what is known of t goes into phi with the one column asked for.
        """
        numbers, phi, held = self._numbers(theta, len(seen.latent)), self.phi, ZERO
        weights = {
            c: float(s) for c, s in zip(seen.latent, numbers.latent, strict=True) if c in columns
        }
        if len(weights) < len(seen.latent):
            rest = [own for own, c in enumerate(seen.latent) if c not in weights]
            of_rest = numbers._replace(latent=numbers.latent[rest])
            held = self._latent_sum(of_rest, W[rest], W[rest])
        if phi.adds:
            form = Form(power=self.basis.power, side=self.basis.side)
            terms = tuple(Term(ONE, {c: form}, weight) for c, weight in weights.items())
            return Separable(inner + held, terms)
        offset, part = None, ONE
        if phi.multiplies:
            part = inner if held is ZERO else inner * phi.value(held, numbers.extra)
        elif len(weights) > 1:
            return None
        elif inner is not self._nothing or held is not ZERO:
            offset = inner + held
        forms = {c: self._form(weight, numbers.extra, offset) for c, weight in weights.items()}
        return Separable(self.constant**2, (Term(part, forms, numbers.amplitude),))

    def _form(self, weight: float, extra: float, offset: Array | None) -> Form:
        """phi(weight b(w, w') + offset)."""
        return Form(curves=(Curve(self.phi, self.basis, weight, extra, offset),))

    def gradient(
        self, theta: Array, pairs: Pairs, inner: Array, unit: Array, W: Array, weights: Array
    ) -> tuple[Array, Array]:
        """By the chain rule through t."""
        numbers = self._numbers(theta, len(W))
        extra, first = numbers.extra, self._n_scales
        middle = first + numbers.observed.size
        weighted = weights * numbers.amplitude
        t = self._latent_sum(numbers, W, W)
        if not self.phi.multiplies:
            t = inner + t
        by_t = weighted * self.phi.slope(t, unit, extra)
        result = np.zeros(theta.size)
        if first:
            result[0] = 2.0 * np.sum(weighted * unit)
        if middle > first:
            each = np.einsum("ij,kij->k", by_t, self._finished(pairs.kept, extra))
            result[first:middle] = self.sign * numbers.observed * each
        by_latent = np.zeros(W.shape)
        for c, (s, w) in enumerate(zip(numbers.latent, W, strict=True)):
            b = self.basis.value(w[:, None], w, extra)
            result[middle + c] = self.sign * s * np.sum(by_t * b)
            slopes = self.basis.slope(w[:, None], w, extra)
            by_latent[c] = 2.0 * s * np.sum(by_t * slopes, axis=1)
        if self._learns_extra:
            if self.basis.has_extra:
                by_extra = by_t * self._t_by_extra(numbers, pairs.kept, W)
            else:
                by_extra = weighted * self.phi.by_extra(t, unit, extra)
            result[-1] = np.sum(by_extra)
        return result, by_latent

    def _t_by_extra(self, numbers: Numbers, gaps: Array, W: Array) -> Array:
        """Derivative of t by log extra, for b that are functions of (x - x') / extra.

        That of b is -(x - x') times its derivative by x.
        """
        scales = numbers.observed if self.ard else np.repeat(numbers.observed, len(gaps))
        all_gaps = [*gaps, *(w[:, None] - w for w in W)]
        none = np.zeros(())
        return -sum(
            s * gap * self.basis.slope(gap, none, numbers.extra)
            for s, gap in zip([*scales, *numbers.latent], all_gaps, strict=True)
        )
