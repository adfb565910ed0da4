r"""The synthetic problems U1, U2, M1 and M2 of Wang and Neal (2012).

=====  ===  ==================  ==============  ==============  ======================
name   p    inputs              mean            residual SD     residual distribution
=====  ===  ==================  ==============  ==============  ======================
U1     1    uniform on [0, 1]   :math:`f(x)`    :math:`r(x)`    Gaussian
U2     1    uniform on [0, 1]   :math:`f(x)`    :math:`r(x)`    extreme value (minima)
M1     3    standard normal     :math:`g(x)`    :math:`s(x)`    Gaussian
M2     3    standard normal     :math:`g(x)`    :math:`s(x)`    extreme value (minima)
=====  ===  ==================  ==============  ==============  ======================

The extreme-value density printed in the paper,
:math:`(1/\sigma)\, e^{(\omega-\mu)/\sigma} \exp(-e^{(\omega-\mu)/\sigma})`, is the Gumbel
distribution for minima, skewed to the left. Its mean is :math:`\mu - \gamma\sigma`; the paper
prints a plus sign. What is used here has mean 0, as the paper intends.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from gplc._types import Array

RandomState: TypeAlias = int | np.random.SeedSequence | np.random.Generator | None

HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)
# Scale of the Gumbel distribution with variance 1: its variance is pi^2 scale^2 / 6.
EXTREME_VALUE_SCALE = np.sqrt(6) / np.pi
# exp() of anything larger is infinite in float64.
LOG_MAX = np.log(np.finfo(np.float64).max)


def univariate_mean(x: ArrayLike) -> Array:
    r"""True mean of U1 and U2, the paper's :math:`f(x) = [1 + \sin(4x)]^{1.1}`.

    Parameters
    ----------
    x : array_like, any shape
        Values of the single input.

    Returns
    -------
    ndarray, the shape of `x`

    Examples
    --------
    >>> from gplc.datasets import univariate_mean
    >>> univariate_mean([0.0, 0.5, 1.0]).round(4)
    array([1.    , 2.0369, 0.2111])
    """
    x = np.asarray(x, dtype=np.float64)
    return np.asarray((1 + np.sin(4 * x)) ** 1.1)


def univariate_sd(x: ArrayLike) -> Array:
    r"""Residual SD of U1 and U2, the paper's :math:`r(x) = 0.2 + 0.3 \exp[-30(x - 0.5)^2]`.

    Parameters
    ----------
    x : array_like, any shape
        Values of the single input.

    Returns
    -------
    ndarray, the shape of `x`

    Examples
    --------
    >>> from gplc.datasets import univariate_sd
    >>> univariate_sd([0.0, 0.5, 1.0]).round(4)
    array([0.2002, 0.5   , 0.2002])
    """
    x = np.asarray(x, dtype=np.float64)
    return np.asarray(0.2 + 0.3 * np.exp(-30 * (x - 0.5) ** 2))


def multivariate_mean(X: ArrayLike) -> Array:
    r"""True mean of M1 and M2, the paper's :math:`g(x)`.

    .. math::
        g(x) = [1 + \sin(x_1/1.5 + 2)]^{0.9} - [1 + \sin(x_2/2 + x_3/3 - 2)]^{1.5}

    Parameters
    ----------
    X : array_like, shape (n, 3)
        One row :math:`(x_1, x_2, x_3)` per case.

    Returns
    -------
    ndarray, shape (n,)

    Raises
    ------
    ValueError
        If `X` does not have three columns.

    Examples
    --------
    >>> from gplc.datasets import multivariate_mean
    >>> multivariate_mean([[0.0, 0.0, 0.0], [1.0, 2.0, -2.0]]).round(4)
    array([1.7624, 1.4031])
    """
    x1, x2, x3 = _three_columns(X)
    first = (1 + np.sin(x1 / 1.5 + 2)) ** 0.9
    second = (1 + np.sin(x2 / 2 + x3 / 3 - 2)) ** 1.5
    return np.asarray(first - second)


def multivariate_sd(X: ArrayLike) -> Array:
    r"""Residual SD of M1 and M2, the paper's :math:`s(x)`.

    .. math::
        s(x) = 0.1 + 0.4 \exp[-0.2(x_1 - 1)^2 - 0.3(x_2 - 2)^2] + 0.3 \exp[-0.3(x_3 + 2)^2]

    Parameters
    ----------
    X : array_like, shape (n, 3)
        One row :math:`(x_1, x_2, x_3)` per case.

    Returns
    -------
    ndarray, shape (n,)

    Raises
    ------
    ValueError
        If `X` does not have three columns.

    Examples
    --------
    >>> from gplc.datasets import multivariate_sd
    >>> multivariate_sd([[0.0, 0.0, 0.0], [1.0, 2.0, -2.0]]).round(4)
    array([0.289, 0.8  ])
    """
    x1, x2, x3 = _three_columns(X)
    first = 0.4 * np.exp(-0.2 * (x1 - 1) ** 2 - 0.3 * (x2 - 2) ** 2)
    second = 0.3 * np.exp(-0.3 * (x3 + 2) ** 2)
    return np.asarray(0.1 + first + second)


def standard_extreme_value_logpdf(t: ArrayLike) -> Array:
    r"""Log density of the extreme-value residual with mean 0 and variance 1.

    With :math:`\sigma = \sqrt{6}/\pi`, :math:`\mu = \gamma\sigma` and
    :math:`u = (t - \mu)/\sigma = \pi t/\sqrt{6} - \gamma`,

    .. math::
        \log p(t) = -\log\sigma + u - e^u .

    The distribution is skewed to the left: its skewness is about -1.14.

    Parameters
    ----------
    t : array_like, any shape
        Residuals divided by their SD.

    Returns
    -------
    ndarray, the shape of `t`
        ``-inf`` where the value is beyond float64; NaN only where `t` is NaN.

    Examples
    --------
    >>> from gplc.datasets import standard_extreme_value_logpdf
    >>> standard_extreme_value_logpdf([-2.0, 0.0, 2.0, 1e6]).round(4)
    array([-2.9366, -0.8898, -5.0633,    -inf])
    """
    t = np.asarray(t, dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):
        u = t / EXTREME_VALUE_SCALE - np.euler_gamma
        # Capped, so that u = inf gives inf - exp(inf) = -inf and not NaN.
        logpdf = np.minimum(u, LOG_MAX) - np.exp(u) - np.log(EXTREME_VALUE_SCALE)
    return np.asarray(logpdf)


def _standard_normal_logpdf(t: Array) -> Array:
    """Log density of N(0, 1); ``-inf`` where the square overflows."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(-0.5 * t**2 - HALF_LOG_2PI)


def _standard_normal(rng: np.random.Generator, n: int) -> Array:
    """Draw `n` residuals with mean 0 and variance 1 from the Gaussian distribution."""
    return rng.standard_normal(n)


def _standard_extreme_value(rng: np.random.Generator, n: int) -> Array:
    """Draw `n` residuals with mean 0 and variance 1 from the extreme-value distribution."""
    # NumPy's Gumbel is the one for maxima, with mean gamma; minima are its mirror image.
    return EXTREME_VALUE_SCALE * (np.euler_gamma - rng.gumbel(size=n))


def _uniform_inputs(rng: np.random.Generator, n: int) -> Array:
    return rng.uniform(size=(n, 1))


def _normal_inputs(rng: np.random.Generator, n: int) -> Array:
    return rng.standard_normal((n, 3))


def _three_columns(X: ArrayLike) -> tuple[Array, Array, Array]:
    """Split `X` in its three columns."""
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != 3:
        raise ValueError(
            f"X must have shape (n, 3), got {X.shape}; pass one row (x1, x2, x3) per case"
        )
    return X[:, 0], X[:, 1], X[:, 2]


class _Inputs(NamedTuple):
    """How inputs are drawn, and what the truth is at them."""

    draw: Callable[[np.random.Generator, int], Array]
    mean: Callable[[Array], Array]
    sd: Callable[[Array], Array]


class _Residuals(NamedTuple):
    """A residual distribution with mean 0 and variance 1."""

    draw: Callable[[np.random.Generator, int], Array]
    logpdf: Callable[[Array], Array]


_UNIVARIATE = _Inputs(
    draw=_uniform_inputs,
    mean=lambda X: univariate_mean(X[:, 0]),
    sd=lambda X: univariate_sd(X[:, 0]),
)
_MULTIVARIATE = _Inputs(draw=_normal_inputs, mean=multivariate_mean, sd=multivariate_sd)
_GAUSSIAN = _Residuals(draw=_standard_normal, logpdf=_standard_normal_logpdf)
_EXTREME_VALUE = _Residuals(draw=_standard_extreme_value, logpdf=standard_extreme_value_logpdf)

_PROBLEMS: dict[str, tuple[_Inputs, _Residuals]] = {
    "U1": (_UNIVARIATE, _GAUSSIAN),
    "U2": (_UNIVARIATE, _EXTREME_VALUE),
    "M1": (_MULTIVARIATE, _GAUSSIAN),
    "M2": (_MULTIVARIATE, _EXTREME_VALUE),
}


@dataclass(frozen=True, eq=False)
class PaperData:
    """A synthetic data set together with the truth it was drawn from.

    Attributes
    ----------
    name : str
        "U1", "U2", "M1" or "M2".
    X : ndarray, shape (n, p)
        Inputs; p is 1 for U1 and U2, 3 for M1 and M2.
    y : ndarray, shape (n,)
        Targets.
    f : ndarray, shape (n,)
        True mean of the target at each row.
    sd : ndarray, shape (n,)
        True SD of the residual at each row.

    Examples
    --------
    >>> from gplc.datasets import make_paper
    >>> data = make_paper("M2", n=5, random_state=0)
    >>> data.X.shape, data.y.shape
    ((5, 3), (5,))
    """

    name: str
    X: Array = field(repr=False)
    y: Array = field(repr=False)
    f: Array = field(repr=False)
    sd: Array = field(repr=False)

    def logpdf(self, y: ArrayLike) -> Array:
        r"""Log of the true density of a target at each row's input.

        .. math::
            \log p(y_i \mid x_i) = \log q\{(y_i - f_i)/\mathrm{sd}_i\} - \log \mathrm{sd}_i ,

        where q is the density of the residual with mean 0 and variance 1.

        Parameters
        ----------
        y : array_like, shape (n,)
            One target for each row of `X`.

        Returns
        -------
        ndarray, shape (n,)
            ``-inf`` where the value is beyond float64; NaN only where `y` is NaN.

        Raises
        ------
        ValueError
            If `y` does not hold one value per row.

        Examples
        --------
        >>> from gplc.datasets import make_paper
        >>> data = make_paper("U1", n=3, random_state=0)
        >>> data.logpdf(data.f).round(4)
        array([0.0729, 0.4236, 0.6878])
        """
        y = np.asarray(y, dtype=np.float64)
        if y.shape != self.f.shape:
            raise ValueError(
                f"y must have shape {self.f.shape}, got {y.shape}; "
                "pass one target for each row of X"
            )
        _, residuals = _PROBLEMS[self.name]
        with np.errstate(over="ignore", under="ignore"):
            standardized = (y - self.f) / self.sd
        return residuals.logpdf(standardized) - np.log(self.sd)

    def oracle_nlpd(self) -> float:
        r"""Negative log predictive density that knowing the truth would give.

        .. math::
            \mathrm{NLPD} = -\frac{1}{n} \sum_{i=1}^n \log p(y_i \mid x_i)

        No method can do better on average over data sets, where the value is 0.1469 for U1,
        0.0564 for U2, 0.1962 for M1 and 0.1056 for M2.

        Returns
        -------
        float

        Examples
        --------
        >>> from gplc.datasets import make_paper
        >>> round(make_paper("U1", n=5000, random_state=0).oracle_nlpd(), 3)
        0.149
        """
        return float(-np.mean(self.logpdf(self.y)))


def make_paper(name: str, n: int = 100, random_state: RandomState = None) -> PaperData:
    r"""Draw one of the synthetic data sets of Wang and Neal (2012), section 4.1.

    The target is :math:`y_i = m(x_i) + \mathrm{sd}(x_i)\, e_i` with independent residuals
    :math:`e_i` of mean 0 and variance 1:

    - U1, U2: :math:`x_i` uniform on [0, 1], `univariate_mean`, `univariate_sd`;
    - M1, M2: three independent standard normal inputs, `multivariate_mean`, `multivariate_sd`;
    - U1, M1: Gaussian residuals;
    - U2, M2: extreme-value residuals, see `standard_extreme_value_logpdf`.

    Parameters
    ----------
    name : {"U1", "U2", "M1", "M2"}
        Which problem.
    n : int, default 100
        Number of rows.
    random_state : None, int, numpy.random.SeedSequence or numpy.random.Generator
        Passed to `numpy.random.default_rng`. The same seed gives the same data, and the same
        inputs to both members of a pair (U1 and U2, M1 and M2).

    Returns
    -------
    PaperData
        The data with the true mean, residual SD and log density.

    Raises
    ------
    ValueError
        If `name` is unknown or `n` is not a positive integer.

    Examples
    --------
    >>> from gplc.datasets import make_paper
    >>> data = make_paper("U1", n=4, random_state=1)
    >>> data
    PaperData(name='U1')
    >>> data.y.round(3)
    array([2.464, 0.441, 1.503, 0.474])
    """
    if not isinstance(name, str) or name not in _PROBLEMS:
        known = ", ".join(repr(key) for key in _PROBLEMS)
        raise ValueError(f"name must be one of {known}, got {name!r}; choose one of these")
    if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
        raise ValueError(
            f"n must be a positive integer, got {n!r}; pass the number of rows you want, "
            "for example n=100"
        )
    inputs, residuals = _PROBLEMS[name]
    rng = np.random.default_rng(random_state)
    # Inputs first: then U1 and U2 (M1 and M2) with one seed differ in their residuals only.
    X = inputs.draw(rng, int(n))
    f = inputs.mean(X)
    sd = inputs.sd(X)
    y = f + sd * residuals.draw(rng, int(n))
    return PaperData(name=name, X=X, y=y, f=f, sd=sd)
