"""The distribution of y given x: for every row an equally weighted mixture of Gaussians.

A row's density is ``p(y) = (1/M) sum_j N(y | mean_j, sd_j^2)``: one component for every kept
posterior draw and every node for the unobserved input (or for the log SD) of that row.
`Predictive` asks a `ComponentSource` for these components, a block of rows at a time.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gplc._compiled import mixture

Array: TypeAlias = NDArray[np.float64]
Rows: TypeAlias = "slice | NDArray[np.intp]"
RandomState: TypeAlias = (
    "int | np.random.SeedSequence | np.random.Generator | np.random.RandomState | None"
)

BLOCK_COMPONENTS = 1_000_000
"""Most components (rows x M) evaluated at once: two arrays of 8 MB each."""

KEPT_COMPONENTS = 2_000_000
"""A `Predictive` with no more components (rows x M) than this keeps them after the first use."""


class ComponentSource(Protocol):
    """What a `Predictive` needs to know: the Gaussian components of some rows.

    A source that can give the means alone for less work may have a second method
    ``component_means(rows) -> (r, M)``; `Predictive.mean` then uses it.
    """

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    @property
    def n_components(self) -> int:
        """Number of components M, the same for every row."""
        ...

    def components(self, rows: Rows) -> tuple[Array, Array]:
        """Means and SDs of the components of some rows.

        Parameters
        ----------
        rows : slice or (r,) array of int
            A slice with ``0 <= start <= stop <= n_rows`` and step 1, or row numbers in any order,
            repeats allowed.

        Returns
        -------
        means, sds : (r, M) float64 arrays
            Finite, and sds > 0. A row's numbers may not depend on which other rows are asked for.
        """
        ...


class ArrayComponents:
    """Components held in two arrays.

    Parameters
    ----------
    means, sds : (n, M) array-like
        Means and SDs of the components of each row; finite, and sds > 0.

    Examples
    --------
    >>> source = ArrayComponents([[0.0, 3.0]], [[1.0, 0.5]])
    >>> source.n_rows, source.n_components
    (1, 2)
    """

    def __init__(self, means: ArrayLike, sds: ArrayLike) -> None:
        self.means = real_array("means", means)
        self.sds = real_array("sds", sds)
        if self.means.ndim != 2 or self.means.shape != self.sds.shape:
            raise ValueError(
                f"means and sds must both have shape (rows, components), got {self.means.shape} "
                f"and {self.sds.shape}; for a single row pass [means] and [sds]"
            )
        if self.means.shape[1] == 0:
            raise ValueError("means and sds have no components; give at least one for each row")
        if not np.isfinite(self.means).all():
            raise ValueError("means must be finite; remove the components that are not")
        if not (np.isfinite(self.sds).all() and (self.sds > 0).all()):
            raise ValueError(
                f"sds must be finite and above 0, the smallest is {self.sds.min()}; "
                "give SDs, not variances or their logs"
            )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.means.shape[0]

    @property
    def n_components(self) -> int:
        """Number of components of every row."""
        return self.means.shape[1]

    def components(self, rows: Rows) -> tuple[Array, Array]:
        """Means and SDs (r, M) of some rows."""
        return self.means[rows], self.sds[rows]


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


class Predictive:
    """Predictive distributions of n rows, each a mixture of M equally weighted Gaussians.

    It is lazy: components are asked for in blocks of at most `BLOCK_COMPONENTS`, and no method but
    `components` makes an array of rows x M. If all of them are no more than `KEPT_COMPONENTS`
    they are kept after the first use, for this object and for what is sliced from it. Otherwise
    every call evaluates the source again, so ask for several things at once where you can:
    `quantile` with several q, `moments`, `summary`.

    Parameters
    ----------
    source : ComponentSource
        Where the components come from.
    location, scale : float
        The source describes t, and ``y = location + scale * t``; scale > 0. Everything returned
        is about y: densities carry the Jacobian 1 / scale. Calculations are made on the scale of
        t, so units of 1e150 or 1e-150 do no harm; `var` alone may then overflow to inf or
        vanish, and `std` does not.

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
        self, source: ComponentSource, *, location: float = 0.0, scale: float = 1.0
    ) -> None:
        if not math.isfinite(location):
            raise ValueError(f"location must be finite, got {location}")
        if not (math.isfinite(scale) and scale > 0):
            raise ValueError(f"scale must be finite and above 0, got {scale}")
        self._source = source
        self._location = float(location)
        self._scale = float(scale)
        # The rows of the source this object is about; a range as long as it can be one.
        self._rows: range | NDArray[np.intp] = range(source.n_rows)
        self._kept: tuple[Array, Array] | None = None

    @classmethod
    def from_arrays(cls, means: ArrayLike, sds: ArrayLike) -> "Predictive":
        """Distributions with given components.

        Parameters
        ----------
        means, sds : (n, M) array-like
            Means and SDs of the components of each row; finite, and sds > 0.

        Returns
        -------
        Predictive

        Examples
        --------
        >>> Predictive.from_arrays([[0.0, 3.0]], [[1.0, 0.5]]).mean()
        array([1.5])
        """
        return cls(ArrayComponents(means, sds))

    @property
    def n_components(self) -> int:
        """Number of components M of every row."""
        return self._source.n_components

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"Predictive(n_rows={len(self)}, n_components={self.n_components})"

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        # Without this NumPy would walk dist[0][0][0]... as a nested sequence.
        raise TypeError(
            "a Predictive is a distribution for each row, not an array; ask it for mean(), "
            "quantile(q) or components()"
        )

    def __getitem__(self, index: int | slice | Sequence[int] | NDArray[Any]) -> "Predictive":
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
        chosen = _row_index(index, len(self))
        part = Predictive(self._source, location=self._location, scale=self._scale)
        if isinstance(chosen, slice):
            part._rows = self._rows[chosen]
        else:
            part._rows = np.asarray(self._rows, dtype=np.intp)[chosen]
        if self._kept is not None:
            part._kept = (_for_kernels(self._kept[0][chosen]), _for_kernels(self._kept[1][chosen]))
        return part

    # Components, in blocks

    def _source_rows(self, here: slice) -> Rows:
        """The source's numbers of this object's rows `here`."""
        rows = self._rows[here]
        if isinstance(rows, range):
            if rows.step == 1:
                return slice(rows.start, rows.stop)
            return np.arange(rows.start, rows.stop, rows.step, dtype=np.intp)
        return rows

    def _evaluate(self, here: slice) -> tuple[Array, Array]:
        means, sds = self._source.components(self._source_rows(here))
        return _for_kernels(means), _for_kernels(sds)

    def _places(self) -> Iterator[slice]:
        """Where the blocks lie in the result."""
        size = max(1, BLOCK_COMPONENTS // self.n_components)
        for start in range(0, len(self), size):
            yield slice(start, min(start + size, len(self)))

    def _blocks(self) -> Iterator[tuple[slice, Array, Array]]:
        """Yield (place in the result, means, sds), components on the source's scale."""
        shape = (len(self), self.n_components)
        if self._kept is None and shape[0] * shape[1] <= KEPT_COMPONENTS:
            kept = (np.empty(shape), np.empty(shape))
            for here in self._places():
                kept[0][here], kept[1][here] = self._evaluate(here)
            self._kept = kept
        for here in self._places():
            if self._kept is None:
                means, sds = self._evaluate(here)
            else:
                means, sds = self._kept[0][here], self._kept[1][here]
            yield here, means, sds

    def components(self) -> tuple[Array, Array]:
        """Means and SDs of all components.

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
        for here, block_means, block_sds in self._blocks():
            means[here] = self._location + self._scale * block_means
            sds[here] = self._scale * block_sds
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
        for here, means, sds in self._blocks():
            out[here] = mixture.moments(means, sds)
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
        component_means: Callable[[Rows], Array] | None
        component_means = getattr(self._source, "component_means", None)
        if component_means is None or self._kept is not None:
            return self.moments().mean
        out = np.empty(len(self))
        for here in self._places():
            out[here] = mixture.centres(_for_kernels(component_means(self._source_rows(here))))
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

    def _targets(self, y: ArrayLike) -> tuple[Array, bool]:
        """Return y as a (n, k) array, and whether the result is to lose its second axis."""
        values = real_array("y", y)
        if np.isnan(values).any():
            raise ValueError(
                f"y has {np.isnan(values).sum()} NaN values; drop those rows from y and from the "
                "predictive, for example dist[keep] and y[keep]"
            )
        n = len(self)
        if values.ndim == 0:
            return np.broadcast_to(values, (n, 1)), True
        if values.shape == (n,):
            return values[:, None], True
        if values.ndim == 2 and values.shape[0] in (1, n):
            return np.broadcast_to(values, (n, values.shape[1])), False
        raise ValueError(
            f"y has shape {values.shape}, but there are {n} rows: pass a number, an array ({n},), "
            f"or an array ({n}, k); for the same k values in every row pass (1, k), y[None, :]"
        )

    def _at(self, y: ArrayLike, kernel: Callable[[Array, Array, Array], Array]) -> Array:
        """kernel(means, sds, t) at t = (y - location) / scale."""
        targets, flat = self._targets(y)
        out = np.empty(targets.shape)
        for here, means, sds in self._blocks():
            with np.errstate(over="ignore"):  # so far out that t is infinite
                t = (targets[here] - self._location) / self._scale
            out[here] = kernel(means, sds, np.ascontiguousarray(t))
        return out[:, 0] if flat else out

    def logpdf(self, y: ArrayLike) -> Array:
        """Log density, log (1/M) sum_j N(y | mean_j, sd_j^2).

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
        """Density, (1/M) sum_j N(y | mean_j, sd_j^2).

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

    def cdf(self, y: ArrayLike) -> Array:
        """Probability of a smaller value, (1/M) sum_j Phi((y - mean_j) / sd_j).

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
        return self._at(y, lambda means, sds, t: mixture.tail_probability(means, sds, t, -1.0))

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
        return self._at(y, lambda means, sds, t: mixture.tail_probability(means, sds, t, 1.0))

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
        return self._at(y, lambda means, sds, t: mixture.log_tail_probability(means, sds, t, -1.0))

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
        return self._at(y, lambda means, sds, t: mixture.log_tail_probability(means, sds, t, 1.0))

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
            return self._scale * self._at(y, mixture.crps)

    # Quantiles and draws

    def quantile(self, q: ArrayLike) -> Array:
        """Quantiles: the roots y of cdf(y) = q.

        Exact roots of the mixture's cdf, not quantiles of samples: cdf (or sf in the upper half)
        at the root is q to about 1e-12 relative, as far as float64 can place y.

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
        for here, means, sds in self._blocks():
            roots, _ = mixture.quantiles(means, sds, wanted)
            out[here] = self._location + self._scale * roots
        return out[:, 0] if probabilities.ndim == 0 else out

    def interval(self, coverage: float = 0.9) -> Array:
        """Equal-tailed interval: the quantiles (1 - coverage) / 2 and (1 + coverage) / 2.

        Parameters
        ----------
        coverage : float
            Probability of the interval, in (0, 1).

        Returns
        -------
        (n, 2) array
            Lower and upper ends.

        Examples
        --------
        >>> Predictive.from_arrays([[0.0, 3.0]], [[1.0, 0.5]]).interval(0.8).round(3)
        array([[-0.842,  3.421]])
        """
        return self.quantile(interval_probabilities(coverage))

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
        for here, means, sds in self._blocks():
            out[:2, here] = mixture.moments(means, sds)[:, :2].T
            out[2:, here] = mixture.quantiles(means, sds, wanted)[0].T
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
            raise TypeError(f"n_samples must be an integer, got {n_samples!r}")
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1, got {n_samples}")
        if isinstance(random_state, np.random.RandomState):
            random_state = random_state.randint(2**31 - 1)
        rng = np.random.default_rng(random_state)
        # One stream picks components, one makes normals, so the draws do not depend on how the
        # rows are cut into blocks.
        picks, normals = (np.random.default_rng(seed) for seed in rng.integers(2**63, size=2))
        out = np.empty((len(self), n_samples))
        for here, means, sds in self._blocks():
            shape = (len(means), int(n_samples))
            component = (picks.random(shape) * self.n_components).astype(np.intp)
            t = np.take_along_axis(sds, component, axis=1)
            t *= normals.standard_normal(shape)
            t += np.take_along_axis(means, component, axis=1)
            out[here] = self._location + self._scale * t
        return out


def interval_probabilities(coverage: float) -> Array:
    """(1 - coverage) / 2 and (1 + coverage) / 2: the two ends of an equal-tailed interval.

    Parameters
    ----------
    coverage : float
        In (0, 1).

    Returns
    -------
    (2,) array

    Examples
    --------
    >>> interval_probabilities(0.5)
    array([0.25, 0.75])
    """
    if not 0 < coverage < 1:
        raise ValueError(f"coverage must be between 0 and 1, got {coverage}; for 90% pass 0.9")
    return np.array([0.5 * (1.0 - coverage), 0.5 * (1.0 + coverage)])


def real_array(name: str, values: ArrayLike) -> Array:
    """Return values as a new float64 array, refusing what is not a real number.

    Parameters
    ----------
    name : str
        What the error calls the values.
    values : array-like
        NaN and inf pass.

    Returns
    -------
    float64 array

    Examples
    --------
    >>> real_array("y", [1, 2])
    array([1., 2.])
    """
    array = np.asarray(values)
    try:
        if array.dtype.kind not in "biufO":
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must hold real numbers, got dtype {array.dtype}; convert it to float first"
        ) from None


def _for_kernels(array: Array) -> Array:
    """A C-contiguous, writable float64 array, copied only if need be.

    The kernels only read, but Numba would compile another version for a read-only array.
    """
    return np.require(array, np.float64, ["C", "W"])


def _row_index(index: Any, n: int) -> "slice | NDArray[np.intp]":
    """A slice, or row numbers in [0, n), from whatever may stand in dist[...]."""
    if isinstance(index, slice):
        return index
    rows = np.asarray(index)
    if isinstance(index, bool) or rows.ndim > 1 or rows.dtype.kind not in "biuf":
        raise IndexError(
            f"rows are chosen by an int, a slice, a boolean mask or an array of ints, got {index}"
        )
    if rows.dtype.kind == "b":
        if rows.shape != (n,):
            raise IndexError(f"the mask has shape {rows.shape}, but there are {n} rows")
        return np.flatnonzero(rows)
    if rows.dtype.kind == "f" and rows.size:
        raise IndexError(f"rows are chosen by integers, got {index!r}")
    numbers = np.atleast_1d(rows).astype(np.intp)
    if ((numbers < -n) | (numbers >= n)).any():
        raise IndexError(f"row {index} is out of range, there are {n} rows")
    numbers = np.where(numbers < 0, numbers + n, numbers)
    if rows.ndim == 0:
        return slice(int(numbers[0]), int(numbers[0]) + 1)
    return numbers
