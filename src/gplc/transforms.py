"""Responses that are modelled on another scale: t = T(y), with everything told of y itself.

Densities carry the Jacobian, p(y) = p(t) T'(y). Quantiles are those of t taken back, exactly.
Means and other moments are those of the mixture: T^-1 of each Gaussian, by a rule of 48 points.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit
from scipy.stats import boxcox_normmax

from gplc import _check
from gplc._types import Array
from gplc.components import values_for_rows
from gplc.predictive import Moments, Predictive, RandomState, Summary

# Points of the rule for moments of a component, and of each half of the integral of the CRPS.
MOMENT_POINTS, CRPS_POINTS = 48, 128
# Probability that the integral leaves out on either side.
TAIL = 1e-9
# Powers that a Box-Cox transform may have: below 0 means would be infinite.
POWERS = (0.0, 3.0)


class Transform(NamedTuple):
    """A rising function of y, its inverse, and its derivative.

    Examples
    --------
    >>> import numpy as np
    >>> log = transform_of("log", np.array([1.0, 2.0]))
    >>> log.back(np.log([5.0])).round(6).tolist(), float(log.slope(np.array(5.0)))
    ([5.0], 0.2)
    """

    name: str
    forward: Callable[[Array], Array]
    inverse: Callable[[Array], Array]
    slope: Callable[[Array], Array]  # dT / dy
    lower: float = -math.inf  # y is between these
    upper: float = math.inf
    power: float | None = None

    def at(self, y: Array) -> Array:
        """T(y), infinite beyond the ends."""
        with np.errstate(all="ignore"):
            inside = np.where(y >= self.upper, np.inf, self.forward(y))
            return np.where(y <= self.lower, -np.inf, inside) if self.lower > -np.inf else inside

    def log_slope(self, y: Array) -> Array:
        """Log T'(y), the Jacobian; -inf beyond the ends, where there is nothing."""
        with np.errstate(all="ignore"):
            inside = (y > self.lower) & (y < self.upper)
            return np.where(inside, np.log(self.slope(y)), -np.inf)

    def back(self, t: Array) -> Array:
        """T^-1(t)."""
        with np.errstate(all="ignore"):
            return np.asarray(self.inverse(t), dtype=np.float64)

    def record(self) -> dict[str, Any]:
        """What a file keeps."""
        return {"name": self.name, "power": self.power}


class _Power(NamedTuple):
    """(y^power - 1) / power, which is the logarithm where the power is 0."""

    power: float

    def forward(self, y: Array) -> Array:
        return np.log(y) if self.power == 0.0 else np.expm1(self.power * np.log(y)) / self.power

    def inverse(self, t: Array) -> Array:
        if self.power == 0.0:
            return np.exp(t)
        # A Gaussian goes on below what the smallest y becomes.
        return np.maximum(1.0 + self.power * t, 0.0) ** (1.0 / self.power)

    def slope(self, y: Array) -> Array:
        return y ** (self.power - 1.0)


def _logit_slope(y: Array) -> Array:
    return 1.0 / (y * (1.0 - y))


def _power(name: str, power: float) -> Transform:
    own = _Power(power)
    kept = power if name == "boxcox" else None
    return Transform(name, own.forward, own.inverse, own.slope, 0.0, power=kept)


def _best_power(y: Array) -> float:
    """The power of Box and Cox whose transformed values are the most likely Gaussian ones."""
    best = float(boxcox_normmax(y / np.median(y), method="mle"))
    return float(np.clip(round(best, 6), *POWERS))


NAMED = ("log", "logit", "boxcox")
FUNCTIONS = "functions"


def checked_transform(value: Any) -> None:
    """Refuse what is no transform."""
    if value is None or (isinstance(value, str) and value in NAMED):
        return
    if isinstance(value, tuple | list) and len(value) == 3 and all(map(callable, value)):
        return
    raise ValueError(
        f"target_transform must be one of {list(NAMED)} or three functions (T, its inverse, its "
        f"derivative), got {_check.shown(value)}; None leaves y as it is"
    )


def transform_of(
    value: Any, y: Array | None = None, record: Mapping[str, Any] | None = None
) -> Transform | None:
    """The transform that a setting asks for; what it learns is from y, or from a record."""
    if value is None:
        return None
    if not isinstance(value, str):
        return Transform(FUNCTIONS, *value)
    if value == "logit":
        return Transform("logit", logit, expit, _logit_slope, 0.0, 1.0)
    if value == "log":
        return _power("log", 0.0)
    if record is not None:
        return _power("boxcox", float(record["power"]))
    positive = np.zeros(0) if y is None else y[y > 0.0]
    return _power("boxcox", _best_power(positive) if np.unique(positive).size > 2 else 1.0)


def transformed(
    transform: Transform, y: Array, rows: Any = None, column: str | None = None
) -> tuple[Array, Array]:
    """T(y) and T'(y) of responses, refused where they are not finite, by row and column name.

    Examples
    --------
    >>> import numpy as np
    >>> transformed(transform_of("log"), np.array([1.0, 0.0]))
    Traceback (most recent call last):
    ValueError: target_transform 'log' is not finite at y = 0.0 in row 1; it takes y above 0. \
Take such rows out, or another transform
    """
    values = transform.at(y)
    with np.errstate(all="ignore"):
        slopes = np.asarray(transform.slope(y), dtype=np.float64)
    wrong = ~(np.isfinite(values) & (slopes > 0.0) & (slopes < np.inf))
    if wrong.any():
        first = int(np.argmax(wrong))
        ends = [f"above {transform.lower:g}"] if transform.lower > -np.inf else []
        ends += [f"below {transform.upper:g}"] if transform.upper < np.inf else []
        takes = f"it takes y {' and '.join(ends)}" if ends else "its derivative must be above 0"
        place = "" if column is None else f" (column {column!r})"
        raise ValueError(
            f"target_transform {transform.name!r} is not finite at y{place} = {y[first]} in row "
            f"{first if rows is None else int(rows[first])}; {takes}. Take such rows out, or "
            "another transform"
        )
    return values, slopes


class TransformedPredictive(Predictive):
    """Distributions of y = T^-1(t), where t is a mixture of Gaussians for each row.

    Parameters
    ----------
    of_transformed : Predictive
        The distributions of t.
    transform : Transform

    Examples
    --------
    >>> import numpy as np
    >>> log = transform_of("log", np.array([1.0, 2.0]))
    >>> dist = TransformedPredictive(Predictive.from_arrays([[0.0]], [[1.0]]), log)
    >>> dist.quantile([0.5]).round(4), dist.mean().round(4), dist.pdf(1.0).round(4)
    (array([[1.]]), array([1.6487]), array([0.3989]))
    """

    def __init__(self, of_transformed: Predictive, transform: Transform) -> None:
        self.of_transformed, self.transform = of_transformed, transform
        self._blocks, self._rows = of_transformed._blocks, of_transformed._rows
        self._location, self._scale = of_transformed._location, of_transformed._scale

    def __getitem__(self, index: Any) -> Self:
        """The distributions of some rows."""
        return type(self)(self.of_transformed[index], self.transform)

    def _plain(self) -> Predictive:
        return self.of_transformed

    def _as_this(self, plain: Predictive) -> Predictive:
        return type(self)(plain, self.transform)

    def components(self) -> NoReturn:
        """Refused: y is no mixture of Gaussians, t is."""
        raise TypeError(
            "y was transformed, so that its distribution is no mixture of Gaussians; ask "
            "dist.of_transformed for the components of the transformed response"
        )

    def _at(self, y: ArrayLike, function: Callable[..., Array], *arguments: float) -> Array:
        """As for t, at T(y)."""
        values, flat = values_for_rows(y, len(self))
        found = super()._at(self.transform.at(values), function, *arguments)
        return found[:, 0] if flat else found

    def _jacobian(self, y: ArrayLike) -> Array:
        values, flat = values_for_rows(y, len(self))
        found = self.transform.log_slope(values)
        return found[:, 0] if flat else found

    def logpdf(self, y: ArrayLike) -> Array:
        """Log p(t) + log T'(y)."""
        return super().logpdf(y) + self._jacobian(y)

    def smooth_pdf(self, y: ArrayLike) -> Array:
        """As for t, times T'(y)."""
        values, flat = values_for_rows(y, len(self))
        at = self.transform.at(values)
        shown = np.where(np.isfinite(at), at, 0.0)
        found = self.of_transformed.smooth_pdf(shown) * np.exp(self.transform.log_slope(values))
        return found[:, 0] if flat else found

    def quantile(self, q: ArrayLike) -> Array:
        """T^-1 of the quantiles of t."""
        return self.transform.back(super().quantile(q))

    ppf = quantile

    def moments(self) -> Moments:
        """Moments of the mixture: T^-1 of each component, by Gauss and Hermite's rule."""
        nodes, shares = np.polynomial.hermite_e.hermegauss(MOMENT_POINTS)
        out, shares = np.empty((len(self), 4)), shares / shares.sum()
        with np.errstate(all="ignore"):
            for here, (means, sds, weights) in self._blocks:
                centre, spread = self._location + self._scale * means, self._scale * sds
                weights = np.ones(means.shape[1]) if weights is None else weights
                weights = weights / weights.size
                rule = list(zip(nodes.tolist(), shares.tolist(), strict=True))

                def at(node: float, centre: Array = centre, spread: Array = spread) -> Array:
                    return self.transform.back(centre + spread * node)

                first = sum(share * (at(node) @ weights) for node, share in rule)
                powers = np.zeros((3, means.shape[0]))
                for node, share in rule:
                    gaps = at(node) - np.asarray(first)[:, None]
                    powers += share * np.stack([gaps**k @ weights for k in (2, 3, 4)])
                sd = np.sqrt(powers[0])
                out[here] = np.column_stack(
                    [first, sd, powers[1] / sd**3, powers[2] / sd**4 - 3.0]
                )
        return Moments(*out.T.copy())

    def mean(self) -> Array:
        """The mean of y, which is not T^-1 of the mean of t."""
        return self.moments().mean

    def crps(self, y: ArrayLike) -> Array:
        """The integral of (cdf(v) - 1{v >= y})^2 dv, on either side of y by Gauss's rule."""
        values, flat = values_for_rows(y, len(self))
        ends = self.of_transformed.quantile([TAIL, 1.0 - TAIL])
        found = np.column_stack([self._crps(column, ends) for column in values.T])
        return found[:, 0] if flat else found

    def _crps(self, y: Array, ends: Array) -> Array:
        nodes, shares = np.polynomial.legendre.leggauss(CRPS_POINTS)
        at = np.clip(self.transform.at(y), -1e300, 1e300)
        low, high = np.minimum(ends[:, 0], at), np.maximum(ends[:, 1], at)
        total = np.zeros(len(self))
        for begin, end, tail in ((low, at, "cdf"), (at, high, "sf")):
            half = 0.5 * (end - begin)[:, None]
            t = begin[:, None] + half * (1.0 + nodes)
            heights = getattr(self.of_transformed, tail)(t) ** 2
            with np.errstate(all="ignore"):
                steps = half * shares / self.transform.slope(self.transform.back(t))
            total += np.sum(np.where(heights > 0.0, heights * steps, 0.0), axis=1)
        return total

    def summary(self, coverage: float = 0.9) -> Summary:
        """Mean, SD and equal-tailed interval."""
        moments = self.moments()
        return Summary(moments.mean, moments.std, *self.interval(coverage).T)

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> Array:
        """T^-1 of draws of t."""
        return self.transform.back(self.of_transformed.sample(n_samples, random_state))
