"""Leave-one-out of a fitted estimator, on the scale of its data."""

import math
from typing import TYPE_CHECKING, cast

import numpy as np

from gplc._fitted import HasData, training_data
from gplc._types import Array
from gplc.estimators.companions import spawned
from gplc.loo import LeaveOneOut, estimated, good_k, kept_of, replaced, thinned, unknowns_of
from gplc.models.base import Unknowns
from gplc.sampling import sample

if TYPE_CHECKING:
    from gplc.estimators.base import BaseGP

# Set the seeds of components, and of fits without a row, apart from all others.
COMPONENT_KEY, REFIT_KEY = 3_000_000, 4_000_000


def leave_one_out(estimator: "BaseGP", draws: int, refit: int) -> LeaveOneOut:
    """As `BaseGP.loo` has it."""
    model, seed = estimator.model_, spawned(estimator, COMPONENT_KEY)
    picked = thinned(estimator.draws_, draws)
    kept = kept_of(model, unknowns_of(estimator.draws_, picked), seed)
    found = estimated(kept, seed)
    threshold = good_k(kept.log_density.shape[0] * kept.log_density.shape[1])
    bad = [int(row) for row in np.argsort(-found.pareto_k) if found.pareto_k[row] >= threshold]
    again = tuple(sorted(bad[:refit]))
    if again:
        found = replaced(found, model, again, lambda row: without(estimator, row, draws), seed)
    inputs, y = training_data(cast(HasData, estimator))
    unit = math.log(float(estimator.y_scaling_.scale))
    return LeaveOneOut(
        found.log_density - unit,
        found.mcse,
        found.pareto_k,
        found.pit,
        estimator._on_scale_of_y(found.source, estimator._known_mean(inputs), inputs),
        y,
        kept.log_density - unit,
        picked,
        again,
    )


def without(estimator: "BaseGP", row: int, draws: int) -> list[list[Unknowns]]:
    """Unknowns of the whole model, drawn given all rows but one.

    The latent value of that row is a placeholder: whatever it is, `Model.left_out` does not use
    it.
    """
    model = estimator.model_
    fewer = estimator._model(np.delete(model.X, row, axis=0), np.delete(model.y, row))
    plan = estimator._plan(fewer)._replace(progress=False, checkpoint=None)
    kept = estimator.chains_[0].log_density.size
    seed = spawned(estimator, REFIT_KEY, row)
    chains = sample(fewer, plan._replace(draws=kept), seed, {}).chains
    count = max(1, min(kept, draws // len(chains)))
    places = (np.arange(count) * kept) // count
    return [
        [Unknowns(chain.theta[draw], _with_gap(chain.latent[draw], row, model.n)) for draw in places]
        for chain in chains
    ]


def _with_gap(latent: Array, row: int, n: int) -> Array:
    """Latent values with zero for a row that was left out.

    Examples
    --------
    >>> _with_gap(np.array([1.0, 2.0, 3.0, 4.0]), 1, 3).tolist()
    [1.0, 0.0, 2.0, 3.0, 0.0, 4.0]
    """
    if latent.size == 0:
        return latent
    return np.insert(latent.reshape(-1, n - 1), row, 0.0, axis=1).ravel()

