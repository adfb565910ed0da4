"""Leave-one-out of a fitted estimator, on the scale of its data."""

import math
from typing import TYPE_CHECKING, cast

import numpy as np
from joblib import Parallel, delayed

from gplc._fitted import HasData, training_data
from gplc._types import Array
from gplc.chains import Position, advance
from gplc.estimators.companions import spawned
from gplc.loo import (
    Kept,
    LeaveOneOut,
    estimated,
    good_k,
    kept_of,
    replaced,
    smoothed,
    stacking_weights,
    thinned,
    unknowns_of,
)
from gplc.models.base import Unknowns
from gplc.storage import with_learned

if TYPE_CHECKING:
    from gplc.estimators.base import BaseGP

# Set the seeds of components, and of chains that ignore a row, apart from all others.
COMPONENT_KEY, REFIT_KEY = 3_000_000, 4_000_000
# Iterations that a chain needs to forget a row, from a draw that hardly knew it; and those kept.
SETTLING, REFIT_DRAWS = 50, 500


def leave_one_out(estimator: "BaseGP", draws: int, refit: int) -> LeaveOneOut:
    """As `BaseGP.loo` has it."""
    model, seed = estimator.model_, spawned(estimator, COMPONENT_KEY)
    picked = thinned(estimator.draws_, draws)
    unknowns = unknowns_of(estimator.draws_, picked)
    kept = kept_of(model, unknowns, seed)
    found = estimated(kept, seed)
    threshold = good_k(kept.log_density.shape[0] * kept.log_density.shape[1])
    bad = [int(row) for row in np.argsort(-found.pareto_k) if found.pareto_k[row] >= threshold]
    again = tuple(sorted(bad[:refit]))
    if again:
        found = replaced(
            found, model, again, lambda row: ignoring(estimator, row, unknowns, kept), seed
        )
    inputs, y = training_data(cast(HasData, estimator))
    unit: float | Array = math.log(float(estimator.y_scaling_.scale))
    if estimator.transform_ is not None:
        unit = unit - estimator.transform_.log_slope(y)
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


def ignoring(
    estimator: "BaseGP", row: int, unknowns: list[list[Unknowns]], kept: Kept
) -> list[list[Unknowns]]:
    """Draws given all rows but one: every chain goes on with a model that ignores it.

    A chain begins at one of the draws, chosen with the importance weights of that row, and has
    all that its samplers have learned.
    """
    chains = with_learned(estimator.chains_, estimator._plan(estimator.model_).scheme)
    shares = np.exp(smoothed(kept.log_density[:, :, [row]]).log_weights[0])
    rng = np.random.default_rng(spawned(estimator, REFIT_KEY, row))
    every = [each for of_chain in unknowns for each in of_chain]
    starts = rng.choice(len(every), size=len(chains), p=shares / shares.sum())
    positions = [
        Position(
            every[begin],
            child.bit_generator.state,
            chain.position.scheme,
            chain.position.iteration,
        )
        for begin, child, chain in zip(starts, rng.spawn(len(chains)), chains, strict=True)
    ]
    model, count = estimator.model_.ignoring(row), -(-REFIT_DRAWS // len(chains))
    made = Parallel(n_jobs=estimator.n_jobs)(
        delayed(advance)(model, position, SETTLING + count, tune=False) for position in positions
    )
    return [
        [Unknowns(chain.theta[k], chain.latent[k]) for k in range(SETTLING, SETTLING + count)]
        for chain in made
    ]


def chain_weights(estimator: "BaseGP", draws: int) -> Array:
    """Stacking weights of the chains, each taken as a model of its own: (chains,)."""
    count = len(estimator.chains_)
    picked = thinned(estimator.draws_, draws * count)
    seed = spawned(estimator, COMPONENT_KEY)
    kept = kept_of(estimator.model_, unknowns_of(estimator.draws_, picked), seed)
    logs = [estimated(kept.of_chain(chain), seed).log_density for chain in range(count)]
    return stacking_weights(np.array(logs))
