"""Where the Gaussian components of predictive distributions come from, and the checks they pass.

A *source* knows the means and SDs of the components of every row, and their weights. `Blocks` asks
it for some rows at a time, so that no array of rows x components grows with the number of rows.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gplc._types import Array

Rows: TypeAlias = "slice | NDArray[np.intp]"

BLOCK_COMPONENTS = 1_000_000
"""Most components (rows x M) evaluated at once: two arrays of 8 MB each."""

KEPT_COMPONENTS = 2_000_000
"""Components (rows x M) are kept after their first use if there are no more of them than this."""

SMALLEST_WEIGHT = 1e-60
"""Weights below this share of the largest count as 0, so that fourth moments cannot overflow."""


class ComponentSource(Protocol):
    """What a `Predictive` needs to know: the Gaussian components of some rows.

    Two things a source may have besides: an attribute ``weights``, the (M,) weights of the
    components, the same for all rows, non-negative and with sum 1 (absent or None: all equal); and
    a method ``component_means(rows) -> (r, M)``, if it can give the means alone for less work.
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
    """Components held in arrays.

    Parameters
    ----------
    means, sds : (n, M) array-like
        Means and SDs of the components of each row; finite, and sds > 0.
    weights : (M,) array-like, optional
        Weights of the components, brought to sum 1; equal by default.

    Examples
    --------
    >>> source = ArrayComponents([[0.0, 3.0]], [[1.0, 0.5]], weights=[3, 1])
    >>> source.n_rows, source.n_components
    (1, 2)
    >>> source.weights
    array([0.75, 0.25])
    """

    def __init__(self, means: ArrayLike, sds: ArrayLike, weights: ArrayLike | None = None) -> None:
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
        self.weights = normalized_weights(weights, self.n_components)

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


class ShiftedComponents(NamedTuple):
    """Components of another source with something added to those of each row.

    A known number, and Gaussian noise of a known SD.
    """

    source: ComponentSource
    offsets: Array  # (rows,)
    noise_sds: Array | None = None  # (rows,)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.source.n_rows

    @property
    def n_components(self) -> int:
        """Those of the source."""
        return self.source.n_components

    @property
    def weights(self) -> Array | None:
        """Those of the source."""
        return getattr(self.source, "weights", None)

    def components(self, rows: Rows) -> tuple[Array, Array]:
        """Means and SDs for some rows."""
        means, sds = self.source.components(rows)
        if self.noise_sds is not None:
            sds = np.hypot(sds, self.noise_sds[rows][:, None])
        return means + self.offsets[rows][:, None], sds

    def component_means(self, rows: Rows) -> Array:
        """The means alone, by the shortest way that the source has."""
        alone = getattr(self.source, "component_means", None)
        means = self.source.components(rows)[0] if alone is None else alone(rows)
        return means + self.offsets[rows][:, None]


class Block(NamedTuple):
    """The components of some rows, in the form that compiled loops take."""

    means: Array  # (r, M)
    sds: Array  # (r, M)
    weights: Array | None  # (M,) with mean 1; None if all are equal


class Blocks:
    """The components of some rows of a source, a block of rows at a time.

    Components without weight are left out. What is evaluated is kept if it is little.

    Parameters
    ----------
    source : ComponentSource

    Examples
    --------
    >>> source = ArrayComponents([[0.0, 3.0, 9.0]], [[1.0, 0.5, 1.0]], weights=[3, 1, 0])
    >>> for here, block in Blocks(source):
    ...     print(here, block.means, block.weights)
    slice(0, 1, None) [[0. 3.]] [1.5 0.5]
    """

    def __init__(self, source: ComponentSource) -> None:
        self._source = source
        # The rows of the source this is about; a range as long as it can be one.
        self._rows: range | NDArray[np.intp] = range(source.n_rows)
        self._columns: slice | NDArray[np.intp] = slice(None)
        self.n_components = source.n_components
        self.weights: Array | None = None  # relative to their mean; None if all are equal
        weights = normalized_weights(getattr(source, "weights", None), source.n_components)
        if weights is not None:
            self._columns = np.flatnonzero(weights > SMALLEST_WEIGHT * weights.max())
            used = weights[self._columns]
            self.n_components = used.size
            self.weights = used / used.mean()
        self._kept: tuple[Array, Array] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Self:
        """Some of the rows, with what is kept of them."""
        chosen = _row_index(index, len(self))
        part = object.__new__(type(self))  # copy.copy takes as long as all the rest
        part.__dict__.update(self.__dict__)
        if isinstance(chosen, slice):
            part._rows = self._rows[chosen]
        else:
            part._rows = np.asarray(self._rows, dtype=np.intp)[chosen]
        if self._kept is not None:
            part._kept = (_for_loops(self._kept[0][chosen]), _for_loops(self._kept[1][chosen]))
        return part

    def __iter__(self) -> Iterator[tuple[slice, Block]]:
        """Yield (place among the rows, components)."""
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
            yield here, Block(means, sds, self.weights)

    def means(self) -> Iterator[tuple[slice, Array]] | None:
        """The same of the means alone, if that is less work."""
        alone: Callable[[Rows], Array] | None = getattr(self._source, "component_means", None)
        if alone is None or self._kept is not None:
            return None
        return ((here, self._chosen(alone(self._source_rows(here)))) for here in self._places())

    def pick(self, uniform: Array) -> NDArray[np.intp]:
        """Numbers of components, each as often as its weight says, from uniform numbers."""
        if self.weights is None:
            return (uniform * self.n_components).astype(np.intp)
        ends = np.cumsum(self.weights)
        return np.searchsorted(ends / ends[-1], uniform, side="right")

    def _places(self) -> Iterator[slice]:
        size = max(1, BLOCK_COMPONENTS // self.n_components)
        for start in range(0, len(self), size):
            yield slice(start, min(start + size, len(self)))

    def _source_rows(self, here: slice) -> Rows:
        """The source's numbers of the rows `here`."""
        rows = self._rows[here]
        if isinstance(rows, range):
            if rows.step == 1:
                return slice(rows.start, rows.stop)
            return np.arange(rows.start, rows.stop, rows.step, dtype=np.intp)
        return rows

    def _chosen(self, values: Array) -> Array:
        return _for_loops(values[:, self._columns])

    def _evaluate(self, here: slice) -> tuple[Array, Array]:
        means, sds = self._source.components(self._source_rows(here))
        return self._chosen(means), self._chosen(sds)


def _for_loops(array: Array) -> Array:
    """A C-contiguous, writable float64 array, copied only if need be.

    The compiled loops only read, but Numba would compile another version for a read-only array.
    """
    return np.require(array, np.float64, ["C", "W"])


def _row_index(index: Any, n: int) -> Rows:
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


def normalized_weights(weights: ArrayLike | None, count: int) -> Array | None:
    """Weights of `count` components or draws, brought to sum 1; None, for equal ones, passes.

    Examples
    --------
    >>> normalized_weights([3, 1], 2)
    array([0.75, 0.25])
    """
    if weights is None:
        return None
    array = real_array("weights", weights)
    if array.shape != (count,):
        raise ValueError(
            f"weights must have shape ({count},), got {array.shape}; give one for each draw or "
            "component, the same for all rows"
        )
    wrong = ~(np.isfinite(array) & (array >= 0.0))
    if wrong.any():
        raise ValueError(
            f"weights must be finite and at least 0, got {array[wrong][0]}; "
            "give weights, not their logs"
        )
    largest = array.max()
    if largest == 0.0:
        raise ValueError("weights are all 0; one must be above 0, and None makes them equal")
    array /= largest  # first, so that the sum cannot overflow
    return array / array.sum()


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
    except OverflowError:
        raise ValueError(
            f"{name} holds a number too large for a float; the largest is about 1.8e308"
        ) from None
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must hold real numbers, got dtype {array.dtype}; convert it to float first"
        ) from None


def values_for_rows(y: ArrayLike, n: int) -> tuple[Array, bool]:
    """Return y as a (n, k) array, and whether the result is to lose its second axis.

    Examples
    --------
    >>> values_for_rows(1.5, 2)
    (array([[1.5],
           [1.5]]), True)
    """
    values = real_array("y", y)
    if np.isnan(values).any():
        raise ValueError(
            f"y has {np.isnan(values).sum()} NaN values; drop those rows from y and from the "
            "predictive, for example dist[keep] and y[keep]"
        )
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
