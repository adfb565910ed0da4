"""What a fitted estimator knows besides its draws: replicated data, and the prior's.

On the scale of the data throughout.
"""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from gplc._fitted import HasData, training_data
from gplc._types import Array
from gplc.draws import Draws
from gplc.loo import MOST_DRAWS, thinned, unknowns_of
from gplc.models import Model
from gplc.models.base import Unknowns
from gplc.posterior import one_blas_thread

if TYPE_CHECKING:
    from gplc.estimators.base import BaseGP

# Sets the seeds of replicated data, and of the prior, apart from all others.
REPLICATE_KEY, PRIOR_KEY = 5_000_000, 6_000_000
PRIOR_DRAWS = 500


class PriorDraws(NamedTuple):
    """Unknowns drawn from the prior, and data that each of them makes at the inputs."""

    unknowns: list[Unknowns]
    y: Array  # (draws, n), on the scale of the data


def spawned(estimator: "BaseGP", *key: int) -> np.random.SeedSequence:
    """A seed of its own for some purpose, from that of the fit."""
    seed = estimator.seed_
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, *key))


def on_scale_of_data(estimator: "BaseGP", y: Array) -> Array:
    """Responses (..., n) at the training inputs, from standard units."""
    inputs, _ = training_data(cast(HasData, estimator))
    scaling = estimator.y_scaling_
    found = np.asarray(y * scaling.scale + scaling.location + estimator._known_mean(inputs))
    return found if estimator.transform_ is None else estimator.transform_.back(found)


def replicates(estimator: "BaseGP", picked: NDArray[np.intp]) -> Array:
    """New responses at the training inputs, for some draws of every chain: (chains, draws, n)."""
    model = estimator.model_
    rng = np.random.default_rng(spawned(estimator, REPLICATE_KEY))
    with one_blas_thread():
        made = [
            [model.replicate(rng, each) for each in of_chain]
            for of_chain in unknowns_of(estimator.draws_, picked)
        ]
    return on_scale_of_data(estimator, np.array(made))


def from_prior(model: Model, count: int, seed: np.random.SeedSequence) -> PriorDraws:
    """Draws of the unknowns from their prior, and of y given each, in standard units."""
    rng = np.random.default_rng(seed)
    with one_blas_thread():
        unknowns = [model.sample_prior(rng) for _ in range(count)]
        y = np.array([model.sample_data(rng, each) for each in unknowns])
    return PriorDraws(unknowns, y)


def groups_of(estimator: "BaseGP", wanted: Sequence[str]) -> dict[str, Any]:
    """The groups that ArviZ knows, of those wanted, besides the draws themselves."""
    made: dict[str, Any] = {}
    if "observed_data" in wanted:
        made["observed_data"] = _dataset(y=(("case",), training_data(cast(HasData, estimator))[1]))
    if "log_likelihood" in wanted:
        loo = estimator.loo()
        made["log_likelihood"] = _dataset(loo.picked, y=(("chain", "draw", "case"), loo.by_draw))
    if "posterior_predictive" in wanted:
        picked = thinned(estimator.draws_, MOST_DRAWS)
        made["posterior_predictive"] = _dataset(
            picked, y=(("chain", "draw", "case"), replicates(estimator, picked))
        )
    if "prior" in wanted or "prior_predictive" in wanted:
        drawn = from_prior(estimator.model_, PRIOR_DRAWS, spawned(estimator, PRIOR_KEY))
        unknowns = dataclasses.replace(
            _as_draws(estimator.model_, drawn.unknowns), units=estimator.draws_.units
        )
        made["prior"] = unknowns._own_groups()["posterior"]
        y = on_scale_of_data(estimator, drawn.y)[None]
        made["prior_predictive"] = _dataset(y=(("chain", "draw", "case"), y))
    return made


def _dataset(draws: NDArray[np.intp] | None = None, **variables: Any) -> Any:
    """A data set of xarray; its draws are numbered as given, or from 0."""
    import xarray

    made = xarray.Dataset(variables)
    numbers: dict[Any, Any] = {name: np.arange(size) for name, size in made.sizes.items()}
    if draws is not None:
        numbers["draw"] = draws
    return made.assign_coords(numbers)


def _as_draws(model: Model, unknowns: Sequence[Unknowns]) -> Draws:
    """Unknowns as draws of one chain."""
    theta = np.array([[each.theta for each in unknowns]])
    latent = np.array([[each.latent for each in unknowns]])
    nothing = np.empty((*theta.shape[:2], 0))
    density = np.zeros(theta.shape[:2])
    return Draws(
        model.names,
        theta,
        latent,
        density,
        nothing[..., None],
        nothing,
        type(model),
        model.node_size,
    )
