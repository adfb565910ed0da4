"""The distribution of y given x: for every row a mixture of Gaussians.

A row's density is ``p(y) = sum_j weight_j N(y | mean_j, sd_j^2)``: one component for every kept
posterior draw and every node for the unobserved input (or for the log SD) of that row, all with
weight 1/M unless the source of the components says otherwise. `Predictive` asks a
`ComponentSource` for them, a block of rows at a time.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn, Self, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gplc import _check
from gplc._check import interval_probabilities
from gplc._compiled import mixture, mixture_crps, mixture_quantiles
from gplc._frames import Rows, Tidy
from gplc._types import Array
from gplc.components import (
    ArrayComponents,
    Blocks,
    ComponentSource,
    normalized_weights,
    real_array,
    values_for_rows,
)

RandomState: TypeAlias = (
    "int | np.random.SeedSequence | np.random.Generator | np.random.RandomState | None"
)

MOST_SAMPLES = 1_000_000_000
"""Most draws in one array: 8 GB."""


class Moments(NamedTuple):
    """Four moments of every row, each (n,)."""

    mean: Array
    std: Array
    skewness: Array
    kurtosis: Array


class Summary(NamedTuple):
    """Mean, SD and an equal-tailed interval of every row, each (n,)."""

    mean: Array
    std: Array
    lower: Array
    upper: Array


class _Mixed(NamedTuple):
    """Components of several distributions, side by side, in the units of the first."""

    dists: "tuple[Predictive, ...]"
    shares: Array
    location: float
    scale: float

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.dists[0])

    @property
    def n_components(self) -> int:
        """Those of all."""
        return sum(each.n_components for each in self.dists)

    @property
    def weights(self) -> Array:
        """Each distribution's own, times its share."""
        own = zip(self.shares.tolist(), self.dists, strict=True)
        return np.concatenate([share * each.weights for share, each in own])

    def components(self, rows: Any) -> tuple[Array, Array]:
        """Means and SDs of some rows."""
        parts = [each[rows].components() for each in self.dists]
        means, sds = (np.hstack(each) for each in zip(*parts, strict=True))
        return (means - self.location) / self.scale, sds / self.scale


class Predictive(Tidy):
    """Predictive distributions of n rows, each a mixture of M Gaussians.

    It is lazy: components are asked for in blocks of at most a million, and no method but
    `components` makes an array of rows x M. Two million or fewer are kept after the first use, for
    this object and for what is sliced from it. Otherwise every call evaluates the source again, so
    ask for several things at once where you can: `quantile` with several q, `moments`, `summary`.

    Parameters
    ----------
    source : ComponentSource
        Where the components come from. Those whose weight is 0, or below 1e-60 of the largest,
        are left out.
    location, scale : float
        The source describes t, and ``y = location + scale * t``; scale > 0. Everything returned
        is about y: densities carry the Jacobian 1 / scale. Calculations are made on the scale of
        t, so units of 1e150 or 1e-150 do no harm; `var` alone may then be inf or 0.
    rows : Rows, optional
        Kind of table and labels of `to_frame`.

    Examples
    --------
    Two rows with two components each:

    >>> dist = Predictive.from_arrays([[0.0, 3.0], [1.0, 1.0]], [[1.0, 0.5], [2.0, 2.0]])
    >>> dist
    Predictive(n_rows=2, n_components=2)
    >>> dist.mean()
    array([1.5, 1. ])
    >>> dist[0].interval(0.9).round(3)
    array([[-1.282,  3.641]])
    """

    def __init__(
        self,
        source: ComponentSource,
        *,
        location: float = 0.0,
        scale: float = 1.0,
        rows: Rows | None = None,
    ) -> None:
        self._location = _check.number("location", location, advice="0 leaves it out")
        self._scale = _check.number("scale", scale, above=0.0, advice="1 leaves it out")
        self._blocks = Blocks(source)
        self._rows = rows or Rows()

    @classmethod
    def from_arrays(
        cls, means: ArrayLike, sds: ArrayLike, weights: ArrayLike | None = None
    ) -> "Predictive":
        """Distributions with given components.

        Parameters
        ----------
        means, sds : (n, M) array-like
            Means and SDs of the components of each row; finite, and sds > 0.
        weights : (M,) array-like, optional
            Weights of the components, the same for all rows, brought to sum 1; equal by default.

        Returns
        -------
        Predictive

        Examples
        --------
        >>> Predictive.from_arrays([[0.0, 3.0]], [[1.0, 0.5]]).mean()
        array([1.5])
        >>> Predictive.from_arrays([[0.0, 3.0]], [[1.0, 0.5]], weights=[2, 1]).mean()
        array([1.])
        """
        return cls(ArrayComponents(means, sds, weights))

    @classmethod
    def mixture(cls, dists: "Sequence[Predictive]", weights: ArrayLike) -> "Predictive":
        """The mixture of several distributions of the same rows: p = sum_k weight_k p_k.

        Parameters
        ----------
        dists : sequence of Predictive
            Of as many rows each.
        weights : (k,) array-like
            Not negative, brought to sum 1.

        Returns
        -------
        Predictive
            As lazy as its parts.

        Examples
        --------
        >>> one = Predictive.from_arrays([[0.0, 1.0]], [[1.0, 1.0]])
        >>> other = Predictive.from_arrays([[10.0]], [[1.0]])
        >>> Predictive.mixture([one, other], [3, 1]).mean()
        array([2.875])
        """
        shares = normalized_weights(weights, len(dists))
        lengths = sorted({len(each) for each in dists})
        if shares is None or len(lengths) != 1:
            raise ValueError(
                f"dists must be of the same rows, got {lengths} rows; ask all about the same X"
            )
        first = dists[0]
        if len({getattr(each, "transform", None) for each in dists}) > 1:
            raise ValueError(
                "dists must be of responses with the same transform; fit all models with the "
                "same target_transform"
            )
        plain = tuple(each._plain() for each in dists)
        source = _Mixed(plain, shares, first._location, first._scale)
        made = cls(source, location=first._location, scale=first._scale, rows=first._rows)
        return first._as_this(made)

    # What is a mixture of Gaussians: the distribution itself, unless y was transformed.

    def _plain(self) -> "Predictive":
        return self

    def _as_this(self, plain: "Predictive") -> "Predictive":
        return plain

    @property
    def n_components(self) -> int:
        """Number of components M of every row."""
        return self._blocks.n_components

    @property
    def weights(self) -> Array:
        """Weights of the components, (M,) with sum 1, the same for every row."""
        relative = self._blocks.weights
        return (np.ones(self.n_components) if relative is None else relative) / self.n_components

    def __len__(self) -> int:
        return len(self._blocks)

    def __repr__(self) -> str:
        return f"Predictive(n_rows={len(self)}, n_components={self.n_components})"

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        # Without this NumPy would walk dist[0][0][0]... as a nested sequence.
        raise TypeError(
            "a Predictive is a distribution for each row, not an array; ask it for mean(), "
            "quantile(q) or components()"
        )

    def __getitem__(self, index: int | slice | Sequence[int] | NDArray[Any]) -> Self:
        """The distributions of some rows.

        Parameters
        ----------
        index : int, slice, (n,) boolean mask or (r,) array of int
            Negative numbers count from the end. An int gives a Predictive with one row.

        Returns
        -------
        Predictive

        Examples
        --------
        >>> dist = Predictive.from_arrays([[0.0], [1.0], [2.0]], [[1.0], [1.0], [1.0]])
        >>> dist[1:].mean()
        array([1., 2.])
        >>> dist[[True, False, True]].mean()
        array([0., 2.])
        """
        part = object.__new__(type(self))
        part._location, part._scale = self._location, self._scale
        part._blocks = self._blocks[index]
        part._rows = self._rows.chosen(index)
        return part

    def components(self) -> tuple[Array, Array]:
        """Means and SDs of all components; `weights` says how much each counts.

        The one method that makes arrays of rows x M numbers: slice first if there are many rows.

        Returns
        -------
        means, sds : (n, M) arrays

        Examples
        --------
        >>> dist = Predictive.from_arrays([[0.0, 3.0]], [[1.0, 0.5]])
        >>> means, sds = dist.components()
        >>> means
        array([[0., 3.]])
        """
        means = np.empty((len(self), self.n_components))
        sds = np.empty_like(means)
        for here, block in self._blocks:
            means[here] = self._location + self._scale * block.means
            sds[here] = self._scale * block.sds
        return means, sds

    # Moments

    def moments(self) -> Moments:
        """Mean, SD, skewness and excess kurtosis in one pass over the rows.

        Returns
        -------
        Moments
            NamedTuple (mean, std, skewness, kurtosis) of (n,) arrays.

        Examples
        --------
        >>> Predictive.from_arrays([[0.0, 3.0]], [[1.0, 0.5]]).moments().std.round(4)
        array([1.6956])
        """
        out = np.empty((len(self), 4))
        for here, block in self._blocks:
            out[here] = mixture.moments(*block)
        mean, std, skewness, kurtosis = out.T.copy()
        return Moments(self._location + self._scale * mean, self._scale * std, skewness, kurtosis)

    def mean(self) -> Array:
        """Means: the average of the components' means (the law of total expectation).

        Returns
        -------
        (n,) array

        Examples
        --------
        >>> Predictive.from_arrays([[0.0, 3.0]], [[1.0, 0.5]]).mean()
        array([1.5])
        """
        alone = self._blocks.means()
        if alone is None:
            return self.moments().mean
        out = np.empty(len(self))
        for here, means in alone:
            out[here] = mixture.centres(means, self._blocks.weights)
        return self._location + self._scale * out

    def var(self) -> Array:
        """Variances: the average of sd_j^2 plus the variance of mean_j (law of total variance).

        The square of `std`: inf or 0 when y is so large or so small that its square is.

        Returns
        -------
        (n,) array

        Examples
        --------
        >>> Predictive.from_arrays([[0.0, 3.0]], [[1.0, 0.5]]).var().round(12)
        array([2.875])
        """
        with np.errstate(over="ignore", under="ignore"):
            return self.std() ** 2

    def std(self) -> Array:
        """Standard deviations.

        Returns
        -------
        (n,) array

        Examples
        --------
        >>> Predictive.from_arrays([[0.0, 3.0]], [[1.0, 0.5]]).std().round(4)
        array([1.6956])
        """
        return self.moments().std

    def skewness(self) -> Array:
        """Skewness, E(y - mean)^3 / SD^3.

        Returns
        -------
        (n,) array

        Examples
        --------
        >>> Predictive.from_arrays([[0.0, 3.0]], [[1.0, 0.5]]).skewness().round(4)
        array([-0.3462])
        """
        return self.moments().skewness

    def kurtosis(self) -> Array:
        """Excess kurtosis, E(y - mean)^4 / SD^4 - 3: 0 for a Gaussian, as in SciPy.

        Returns
        -------
        (n,) array

        Examples
        --------
        >>> Predictive.from_arrays([[0.0, 3.0]], [[1.0, 0.5]]).kurtosis().round(4)
        array([-1.1739])
        """
        return self.moments().kurtosis

    # Functions of y

    def _at(self, y: ArrayLike, function: Callable[..., Array], *arguments: float) -> Array:
        """function(means, sds, weights, t, *arguments) at t = (y - location) / scale."""
        targets, flat = values_for_rows(y, len(self))
        out = np.empty(targets.shape)
        for here, block in self._blocks:
            with np.errstate(over="ignore"):  # so far out that t is infinite
                t = (targets[here] - self._location) / self._scale
            out[here] = function(*block, np.ascontiguousarray(t), *arguments)
        return out[:, 0] if flat else out

    def logpdf(self, y: ArrayLike) -> Array:
        """Log density, log sum_j weight_j N(y | mean_j, sd_j^2).

        Summed with the largest term taken out, so that it is right however far out y is.

        Parameters
        ----------
        y : float, (n,), (n, k) or (1, k) array-like
            A value for all rows, one for each row, k for each row, or the same k for all rows.

        Returns
        -------
        (n,) array, or (n, k) if y has two axes

        Examples
        --------
        >>> dist = Predictive.from_arrays([[0.0, 3.0]], [[1.0, 0.5]])
        >>> dist.logpdf([[2.0, 30.0]]).round(3)
        array([[  -2.513, -451.612]])
        """
        return self._at(y, mixture.log_density) - math.log(self._scale)

    def pdf(self, y: ArrayLike) -> Array:
        """Density, sum_j weight_j N(y | mean_j, sd_j^2).

        Parameters
        ----------
        y : float, (n,), (n, k) or (1, k) array-like
            As for `logpdf`.

        Returns
        -------
        (n,) array, or (n, k) if y has two axes

        Examples
        --------
        >>> Predictive.from_arrays([[0.0, 3.0]], [[1.0, 0.5]]).pdf(2.0).round(4)
        array([0.081])
        >>> Predictive.from_arrays([[0.0, 3.0]], [[1.0, 0.5]]).pdf([[2.0, 3.0]]).round(4)
        array([[0.081 , 0.4012]])
        """
        with np.errstate(over="ignore", under="ignore"):
            return np.exp(self.logpdf(y))

    def smooth_pdf(self, y: ArrayLike) -> Array:
        """Density as a curve to look at, without the spikes of single components.

        Narrow components far from each other make spikes that are Monte Carlo error and look like
        modes. Here the SD of a component is at least the distance to its M^(2/3)-th neighbour,
        above or below, whichever is nearer: narrow modes stay narrow, and gaps stay gaps.

        Parameters
        ----------
        y
            As in `logpdf`.

        Returns
        -------
        (n,) array, or (n, k) if y has two axes

        Examples
        --------
        >>> means = np.random.default_rng(0).standard_normal((1, 1000))
        >>> dist = Predictive.from_arrays(means, np.full((1, 1000), 1e-4))
        >>> grid = np.linspace(-1.0, 1.0, 5)[None]
        >>> dist.smooth_pdf(grid).round(2), dist.pdf(grid).round(2)
        (array([[0.24, 0.41, 0.41, 0.34, 0.21]]), array([[0.  , 3.98, 0.  , 0.  , 0.  ]]))
        """
        means, sds = self.components()
        reach = min(round(self.n_components ** (2.0 / 3.0)), self.n_components - 1)
        order = np.argsort(means, axis=1)
        ordered = np.take_along_axis(means, order, axis=1)
        gaps = np.full((2, *means.shape), np.inf)
        gaps[0, :, : means.shape[1] - reach] = ordered[:, reach:] - ordered[:, : -reach or None]
        gaps[1, :, reach:] = gaps[0, :, : means.shape[1] - reach]
        widths = np.empty_like(means)
        np.put_along_axis(widths, order, gaps.min(axis=0), axis=1)
        smooth = Predictive.from_arrays(means, np.maximum(sds, widths), self.weights)
        return smooth.pdf(y)

    def cdf(self, y: ArrayLike) -> Array:
        """Probability of a smaller value, sum_j weight_j Phi((y - mean_j) / sd_j).

        Relative accuracy holds far into the lower tail; for the upper tail use `sf`.

        Parameters
        ----------
        y : float, (n,), (n, k) or (1, k) array-like
            As for `logpdf`.

        Returns
        -------
        (n,) array, or (n, k) if y has two axes

        Examples
        --------
        >>> Predictive.from_arrays([[0.0, 3.0]], [[1.0, 0.5]]).cdf(2.0).round(4)
        array([0.5])
        """
        return self._at(y, mixture.tail_probability, -1.0)

    def sf(self, y: ArrayLike) -> Array:
        """Probability of a larger value, 1 - cdf(y), accurate far into the upper tail.

        Parameters
        ----------
        y : float, (n,), (n, k) or (1, k) array-like
            As for `logpdf`.

        Returns
        -------
        (n,) array, or (n, k) if y has two axes

        Examples
        --------
        >>> Predictive.from_arrays([[0.0, 3.0]], [[1.0, 0.5]]).sf(20.0)
        array([1.37681206e-89])
        """
        return self._at(y, mixture.tail_probability, 1.0)

    def logcdf(self, y: ArrayLike) -> Array:
        """Log of `cdf`, finite where `cdf` underflows to 0.

        Parameters
        ----------
        y : float, (n,), (n, k) or (1, k) array-like
            As for `logpdf`.

        Returns
        -------
        (n,) array, or (n, k) if y has two axes

        Examples
        --------
        >>> Predictive.from_arrays([[0.0, 3.0]], [[1.0, 0.5]]).logcdf(-100.0).round(3)
        array([-5006.217])
        """
        return self._at(y, mixture.log_tail_probability, -1.0)

    def logsf(self, y: ArrayLike) -> Array:
        """Log of `sf`, finite where `sf` underflows to 0.

        Parameters
        ----------
        y : float, (n,), (n, k) or (1, k) array-like
            As for `logpdf`.

        Returns
        -------
        (n,) array, or (n, k) if y has two axes

        Examples
        --------
        >>> Predictive.from_arrays([[0.0, 3.0]], [[1.0, 0.5]]).logsf(100.0).round(3)
        array([-5006.217])
        """
        return self._at(y, mixture.log_tail_probability, 1.0)

    def crps(self, y: ArrayLike) -> Array:
        """Continuous ranked probability score, E|Y - y| - E|Y - Y'| / 2; small is good.

        Y and Y' are independent draws of the row. The first term is a sum over components. The
        second is a sum over pairs of components (exact) up to M = 256; above, it is the integral
        of cdf (1 - cdf) by a trapezoidal rule refined until it is right to about 1e-9 relative,
        unless the pairs are cheaper.

        Parameters
        ----------
        y : float, (n,), (n, k) or (1, k) array-like
            As for `logpdf`.

        Returns
        -------
        (n,) array, or (n, k) if y has two axes

        See Also
        --------
        gplc.metrics.crps : the average over rows.

        Examples
        --------
        >>> Predictive.from_arrays([[0.0, 3.0]], [[1.0, 0.5]]).crps(2.0).round(4)
        array([0.5505])
        """
        with np.errstate(over="ignore"):
            return self._scale * self._at(y, mixture_crps.crps)

    # Quantiles and draws

    def quantile(self, q: ArrayLike) -> Array:
        """Quantiles: the roots y of cdf(y) = q.

        Exact roots of the mixture's cdf, not quantiles of samples: cdf (or sf in the upper half)
        at the root is q to about 1e-12 relative, as far as float64 can place y. For q that are
        further apart than that, quantiles never fall.

        Parameters
        ----------
        q : float or (k,) array-like
            Probabilities in [0, 1]; 0 gives -inf and 1 gives inf. Anything nearer than 1e-300 to
            0 counts as 1e-300.

        Returns
        -------
        (n,) array, or (n, k) if q has an axis

        Examples
        --------
        >>> dist = Predictive.from_arrays([[0.0, 3.0]], [[1.0, 0.5]])
        >>> dist.quantile([0.05, 0.5, 0.95]).round(4)
        array([[-1.2816,  2.    ,  3.6412]])
        """
        probabilities = real_array("q", q)
        if probabilities.ndim > 1:
            raise ValueError(
                f"q must be a number or one-dimensional, got shape {probabilities.shape}; "
                "every row gets the same q"
            )
        outside = ~((probabilities >= 0) & (probabilities <= 1))  # NaN is outside
        if outside.any():
            raise ValueError(
                f"q must be in [0, 1], got {probabilities[outside].flat[0]}; "
                "for percentages divide by 100"
            )
        wanted = np.atleast_1d(probabilities)
        out = np.empty((len(self), wanted.size))
        for here, block in self._blocks:
            roots, _ = mixture_quantiles.quantiles(*block, wanted)
            out[here] = self._location + self._scale * roots
        return out[:, 0] if probabilities.ndim == 0 else out

    ppf = quantile  # as in scipy.stats

    def interval(self, coverage: float | Sequence[float] = 0.9) -> Array:
        """Equal-tailed interval: the quantiles (1 - coverage) / 2 and (1 + coverage) / 2.

        Parameters
        ----------
        coverage : float or sequence of k floats
            Probability of the interval, in (0, 1).

        Returns
        -------
        (n, 2) array, or (n, k, 2) for several coverages
            Lower and upper ends.

        Examples
        --------
        >>> Predictive.from_arrays([[0.0, 3.0]], [[1.0, 0.5]]).interval(0.8).round(3)
        array([[-0.842,  3.421]])
        """
        if np.ndim(coverage) == 0 or np.size(coverage) == 0:
            return self.quantile(interval_probabilities(cast(float, coverage)))
        ends = [interval_probabilities(each) for each in cast(Sequence[float], coverage)]
        return self.quantile(np.concatenate(ends)).reshape(len(self), -1, 2)

    def summary(self, coverage: float = 0.9) -> Summary:
        """Mean, SD and equal-tailed interval in one pass over the rows.

        Parameters
        ----------
        coverage : float
            Probability of the interval, in (0, 1).

        Returns
        -------
        Summary
            NamedTuple (mean, std, lower, upper) of (n,) arrays.

        Examples
        --------
        >>> Predictive.from_arrays([[0.0, 3.0]], [[1.0, 0.5]]).summary(0.9).upper.round(3)
        array([3.641])
        """
        wanted = interval_probabilities(coverage)
        out = np.empty((4, len(self)))
        for here, block in self._blocks:
            out[:2, here] = mixture.moments(*block)[:, :2].T
            out[2:, here] = mixture_quantiles.quantiles(*block, wanted)[0].T
        out *= self._scale
        out[[0, 2, 3]] += self._location
        return Summary(*out)

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> Array:
        """Independent draws of y for each row.

        Parameters
        ----------
        n_samples : int
            Draws for each row, at least 1.
        random_state : int, Generator, RandomState, SeedSequence or None
            The same int gives the same draws. A generator is advanced. None: fresh entropy.

        Returns
        -------
        (n, n_samples) array

        Examples
        --------
        >>> dist = Predictive.from_arrays([[0.0, 3.0]], [[1.0, 0.5]])
        >>> dist.sample(1000, random_state=0).shape
        (1, 1000)
        """
        if isinstance(n_samples, bool) or not isinstance(n_samples, int | np.integer):
            raise TypeError(f"n_samples must be an integer, got {_check.shown(n_samples)}")
        if not 1 <= n_samples * max(1, len(self)) <= MOST_SAMPLES:
            raise ValueError(
                f"n_samples must be at least 1, and no more than {MOST_SAMPLES} in all rows, got "
                f"{_check.shown(n_samples)} for {len(self)} rows; ask for some rows at a time"
            )
        if isinstance(random_state, np.random.RandomState):
            random_state = random_state.randint(2**31 - 1)
        rng = np.random.default_rng(random_state)
        # One stream picks components, one makes normals, so the draws do not depend on how the
        # rows are cut into blocks.
        picks, normals = (np.random.default_rng(seed) for seed in rng.integers(2**63, size=2))
        out = np.empty((len(self), n_samples))
        for here, block in self._blocks:
            shape = (len(block.means), int(n_samples))
            component = self._blocks.pick(picks.random(shape))
            t = np.take_along_axis(block.sds, component, axis=1)
            t *= normals.standard_normal(shape)
            t += np.take_along_axis(block.means, component, axis=1)
            out[here] = self._location + self._scale * t
        return out
