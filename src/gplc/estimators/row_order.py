"""Rows in the order in which they are sampled, which is the user's nearly always.

A latent value for each row makes the draws depend on the order of rows: random numbers go to them
one after the other. A row that was counted three times is three rows, and so has to be the same
draws as three rows wherever these stand. Where rows repeat others, the chains therefore run with
the rows in order of their inputs, and what they have drawn is put back.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gplc._types import Array
from gplc.chains import Chain
from gplc.models import Model
from gplc.models.base import Unknowns
from gplc.posterior import Posterior
from gplc.sampling import Run

Order = NDArray[np.intp]


def order_of(X: Array, y: Array, known_sd: Array | None = None) -> Order | None:
    """The order in which rows are sampled; None if it is their own.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[2.0], [1.0], [2.0]])
    >>> order_of(X, np.array([0.0, 1.0, 0.0])).tolist()
    [1, 0, 2]
    >>> order_of(X, np.array([0.0, 1.0, 2.0])) is None  # nothing repeats
    True
    """
    rows = np.column_stack([X, y] if known_sd is None else [X, y, known_sd])
    if len(np.unique(rows, axis=0)) == len(rows):
        return None
    order = np.lexsort(X.T[::-1])  # stable: rows with the same inputs stay as they are
    return None if np.array_equal(order, np.arange(len(rows))) else order


class Ordered(NamedTuple):
    """A model whose rows are in the order of sampling, and what that is; None if it is theirs."""

    model: Model
    order: Order | None

    @classmethod
    def of(cls, model: Model, make: Callable[[Array, Array, Array | None], Model]) -> "Ordered":
        """That of a model; `make` makes the same model of other rows: X, y and known SDs."""
        known = None if model.known_noise is None else model.known_noise.sds
        order = order_of(model.X, model.y, known) if model.orders_rows else None
        if order is None:
            return cls(model, None)
        known = None if known is None else known[order]
        return cls(make(model.X[order], model.y[order], known), order)

    def run(
        self, sampled: Callable[[Model, list[Chain] | None], Run], begun: list[Chain] | None
    ) -> Run:
        """A run, from chains if there are any; these and its own have rows as the user has.

        Parameters
        ----------
        sampled : callable
            Samples a model, from chains or from the beginning.
        begun : list of Chain, optional
        """
        if self.order is None:
            return sampled(self.model, begun)
        order, back = self.order, np.argsort(self.order)
        given = None if begun is None else [_moved(chain, order) for chain in begun]
        done = sampled(self.model, given)
        return done._replace(chains=[_moved(chain, back) for chain in done.chains])

    def posterior(
        self, drawn: list[tuple[Unknowns, Array]], weights: Array | None = None
    ) -> Posterior:
        """The posterior of draws, whose latent values are as the user has rows."""
        if self.order is not None:
            drawn = [(u._replace(latent=_rows(u.latent, self.order)), nodes) for u, nodes in drawn]
        return Posterior(self.model, drawn, weights)


def _rows(latent: Array, order: Order) -> Array:
    """Latent values (..., n) or (..., q n) with their rows in an order."""
    apart = latent.reshape(*latent.shape[:-1], -1, order.size)
    return np.ascontiguousarray(apart[..., order]).reshape(latent.shape)


def _moved(chain: Chain, order: Order) -> Chain:
    """A chain of the same model whose rows are in another order.

    What was judged is of landmarks, which may be other rows there, and is left out.
    """
    unknowns = chain.position.unknowns
    moved = unknowns._replace(latent=_rows(unknowns.latent, order))
    return dataclasses.replace(
        chain,
        latent=_rows(chain.latent, order),
        judged=np.empty((chain.log_density.size, 0, 0)),
        position=chain.position._replace(unknowns=moved),
    )
