"""What follows from a predictive distribution, for all that have one."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gplc._frames import Rows
from gplc._types import Array
from gplc.predictive import Predictive


class PredictsRows(ABC):
    """Predictions as arrays and tables, from `predict_dist`."""

    @abstractmethod
    def predict_dist(self, X: ArrayLike, noise_std: ArrayLike | None = None) -> Predictive:
        """Predictive distribution of y at each row of X."""

    def predict(
        self, X: ArrayLike, return_std: bool = False, noise_std: ArrayLike | None = None
    ) -> Array | tuple[Array, Array]:
        """Predictive mean, and SD if asked for.

        Parameters
        ----------
        X : (n, p) array-like or data frame
        return_std : bool
        noise_std
            As in `predict_dist`.

        Returns
        -------
        mean : (n,) array
        std : (n,) array, only if `return_std`
        """
        dist = self.predict_dist(X, noise_std)
        if not return_std:
            return dist.mean()
        moments = dist.moments()
        return moments.mean, moments.std

    def predict_quantiles(
        self,
        X: ArrayLike,
        q: ArrayLike,
        *,
        noise_std: ArrayLike | None = None,
        as_frame: bool = False,
    ) -> Any:
        """Quantiles of the predictive distribution.

        Parameters
        ----------
        X : (n, p) array-like or data frame
        q : float or (k,) array-like
            Probabilities.
        noise_std
            As in `predict_dist`.
        as_frame : bool
            Whether to return a data frame, of the kind that X is.

        Returns
        -------
        (n,) or (n, k) array, or a data frame with columns q0.05, ...
        """
        found = self.predict_dist(X, noise_std).quantile(q)
        if not as_frame:
            return found
        columns = zip(np.atleast_1d(q), found.reshape(len(found), -1).T, strict=True)
        return Rows.of(X).frame({f"q{level:g}": values for level, values in columns})

    def predict_interval(
        self,
        X: ArrayLike,
        coverage: float | Sequence[float] = 0.9,
        *,
        noise_std: ArrayLike | None = None,
        as_frame: bool = False,
    ) -> Any:
        """Equal-tailed predictive intervals.

        Parameters
        ----------
        X : (n, p) array-like or data frame
        coverage : float or sequence of k floats
            Probability inside, between 0 and 1.
        noise_std
            As in `predict_dist`.
        as_frame : bool
            Whether to return a data frame, of the kind that X is.

        Returns
        -------
        (n, 2) array of lower and upper ends, (n, k, 2) for several coverages
            Or a data frame with columns lower and upper, or lower_0.5, upper_0.5, ...
        """
        found = self.predict_dist(X, noise_std).interval(coverage)
        if not as_frame:
            return found
        several = np.ndim(coverage) > 0
        marks = [f"_{each:g}" for each in np.ravel(coverage)] if several else [""]
        names = [f"{end}{mark}" for mark in marks for end in ("lower", "upper")]
        ends = found.reshape(len(found), -1).T
        return Rows.of(X).frame(dict(zip(names, ends, strict=True)))
