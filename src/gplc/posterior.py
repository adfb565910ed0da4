"""A model and its posterior draws, asked about new inputs: the components of predictions."""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import ThreadpoolController

from gplc._types import Array
from gplc.components import Rows, normalized_weights
from gplc.models.base import Conditioned, Model, Unknowns

# Models conditioned on their draws are kept if their factors together have at most this many
# numbers (200 MB); otherwise they are made again for every block of rows.
KEPT_NUMBERS = 25_000_000

# Covariances between new rows and cases are computed this many at a time: a megabyte, which
# stays in the processor's cache from the exponentials to the last sum.
CACHED_NUMBERS = 131_072

Ask = Callable[[Conditioned, Array, Array], tuple[Array, ...]]


@functools.cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()  # it looks through all loaded libraries: once is enough


def one_blas_thread() -> AbstractContextManager[Any]:
    """A context in which BLAS has one thread.

    Solves of the size of the data lose with two, far more so where others are at work.
    """
    return _blas().limit(limits=1, user_api="blas")


class Posterior:
    """Draws of one model, ready to predict.

    Parameters
    ----------
    model : Model
    draws : list of (Unknowns, nodes)
        As `Draws.thinned` gives them. Nothing is computed before something is asked.
    weights : (draws,) array-like, optional
        How much each draw counts, brought to sum 1; equally by default. Draws of weight 0 are left
        out.
    """

    def __init__(
        self,
        model: Model,
        draws: Sequence[tuple[Unknowns, Array]],
        weights: ArrayLike | None = None,
    ) -> None:
        self._model = model
        self._draws = draws
        if not draws:
            raise ValueError(
                "no draw can be used for prediction: at none is the covariance matrix positive "
                "definite; raise the prior mean of noise_sd, or check for repeated rows"
            )
        self.weights = normalized_weights(weights, len(self._draws))
        if self.weights is not None:
            used = np.flatnonzero(self.weights)
            self._draws = [self._draws[place] for place in used.tolist()]
            self.weights = self.weights[used]
        self._kept: list[Conditioned] | None = None
        self.n_nodes = model.components_of(self._draws[0][1].size)

    def __len__(self) -> int:
        return len(self._draws)

    @property
    def node_weights(self) -> Array | None:
        """How much each component of one draw counts; None if all count equally."""
        return self._model.component_weights

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_kept": None}

    def conditioned(self) -> Iterator[tuple[Conditioned, Array]]:
        """The model conditioned on each draw, with the nodes of the draw."""
        if self._kept is None:
            if len(self._draws) * self._model.conditioned_size > KEPT_NUMBERS:
                for unknowns, nodes in self._draws:
                    yield self._model.condition(unknowns), nodes
                return
            self._kept = [self._model.condition(unknowns) for unknowns, _ in self._draws]
        for conditioned, (_, nodes) in zip(self._kept, self._draws, strict=True):
            yield conditioned, nodes

    def gather(self, X: Array, width: int, ask: Ask) -> tuple[Array, ...]:
        """What `ask(conditioned, X, nodes)` gives, (rows, width) each, side by side for all draws.

        It is asked about a few rows at a time.
        """
        results: tuple[Array, ...] = ()
        height = max(1, CACHED_NUMBERS // self._model.row_size)
        with one_blas_thread():
            for place, (conditioned, nodes) in enumerate(self.conditioned()):
                columns = slice(place * width, (place + 1) * width)
                for begin in range(0, X.shape[0], height):
                    rows = slice(begin, begin + height)
                    answers = ask(conditioned, X[rows], nodes)
                    if not results:
                        results = tuple(np.empty((X.shape[0], len(self) * width)) for _ in answers)
                    for result, answer in zip(results, answers, strict=True):
                        result[rows, columns] = answer
        return results


class ResponseComponents(NamedTuple):
    """Components of y* at the rows of X: a source for `Predictive`."""

    posterior: Posterior
    X: Array

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.X.shape[0]

    @property
    def n_components(self) -> int:
        """Draws times nodes."""
        return len(self.posterior) * self.posterior.n_nodes

    @property
    def weights(self) -> Array | None:
        """Those of the draws, shared out among the nodes of each."""
        weights, n_nodes = self.posterior.weights, self.posterior.n_nodes
        own = self.posterior.node_weights
        if own is not None:
            draws = np.full(len(self.posterior), 1.0 / len(self.posterior))
            return np.outer(draws if weights is None else weights, own).ravel()
        return None if weights is None else np.repeat(weights / n_nodes, n_nodes)

    def components(self, rows: Rows) -> tuple[Array, Array]:
        """Means and SDs of y* for some rows."""
        means, sds = self.posterior.gather(
            self.X[rows],
            self.posterior.n_nodes,
            lambda given, X, nodes: given.components(X, nodes),
        )
        return means, sds

    def component_means(self, rows: Rows) -> Array:
        """The means alone, for a fraction of the work."""
        (means,) = self.posterior.gather(
            self.X[rows],
            self.posterior.n_nodes,
            lambda given, X, nodes: (given.means(X, nodes),),
        )
        return means


class FunctionComponents(NamedTuple):
    """Components of f(x) = E(y | x) at the rows of X: a source for `Predictive`."""

    posterior: Posterior
    X: Array

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.X.shape[0]

    @property
    def n_components(self) -> int:
        """One for every draw."""
        return len(self.posterior)

    @property
    def weights(self) -> Array | None:
        """Those of the draws."""
        return self.posterior.weights

    def components(self, rows: Rows) -> tuple[Array, Array]:
        """Means and SDs of f(x) for some rows."""

        def ask(given: Conditioned, X: Array, nodes: Array) -> tuple[Array, ...]:
            mean, variance = given.function(X)
            # An SD of exactly zero is rounding: f is known there to the last digits only.
            return mean[:, None], np.sqrt(np.maximum(variance, 1e-24))[:, None]

        means, sds = self.posterior.gather(self.X[rows], 1, ask)
        return means, sds


def residual_band(posterior: Posterior, X: Array, probabilities: Array) -> Array:
    """Mean over the draws, and quantiles, of the SD of y - f(x): (1 + quantiles, rows)."""
    (variances,) = posterior.gather(
        X, 1, lambda given, X, nodes: (given.residual_variance(X, nodes)[:, None],)
    )
    sds = np.sqrt(variances)
    mean = np.average(sds, axis=1, weights=posterior.weights)
    return np.vstack([mean, _quantiles(sds, probabilities, posterior.weights)])


def _quantiles(values: Array, probabilities: Array, weights: Array | None) -> Array:
    """Quantiles of every row of `values`, (quantiles, rows), whose columns may have weights.

    As in `numpy.quantile` the smallest value is the quantile 0, the largest the quantile 1, and
    what is between two values goes on a straight line. A value stands in the middle of its weight.
    """
    if weights is None:
        return np.quantile(values, probabilities, axis=1)
    order = np.argsort(values, axis=1)
    sorted_weights = weights[order]
    places = np.cumsum(sorted_weights, axis=1) - 0.5 * sorted_weights
    places -= places[:, :1]
    # A single value stands for all.
    places /= np.maximum(places[:, -1:], np.finfo(float).tiny)
    ordered = np.take_along_axis(values, order, axis=1)
    rows = zip(places, ordered, strict=True)
    return np.array([np.interp(probabilities, place, value) for place, value in rows]).T
