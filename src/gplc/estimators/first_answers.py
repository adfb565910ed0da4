"""The fast method for a fitted estimator: of the model itself, or of a twin in a basis."""

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from gplc._types import Array
from gplc.chains import Chain, chain_seeds, start
from gplc.diagnostics import Weighed
from gplc.estimators.sizes import chosen_axes, n_products, ranges_of
from gplc.fast import Answer, as_chains, first_answer, likely_theta, settled
from gplc.models.base import Model, Unknowns
from gplc.models.in_basis import InBasis, LatentCovariateInBasis
from gplc.processes.hilbert import Axes, Hilbert
from gplc.sampling import Run

if TYPE_CHECKING:
    from gplc.estimators.base import BaseGP

# Draws of theta that decide how large a basis is; coefficients that a twin has at most.
PILOT_DRAWS, MOST_COEFFICIENTS = 100, 500
# Sets the seeds of w, given g, apart from all others.
LATENT_KEY = 5_000_000

STOPPED = "By the fast method."


def pilot(model: InBasis) -> Array:
    """Log hyperparameters that a model in a basis may have, from the Gaussian around its mode."""
    return likely_theta(model, np.random.default_rng(0), PILOT_DRAWS)


def narrow_pilot(model: InBasis) -> Array:
    """The same, half as wide: a twin of few rows is a proposal, and each function costs."""
    theta = pilot(model)
    middle = np.median(theta, axis=0)
    return np.asarray(middle + 0.5 * (theta - middle))


def first_run(estimator: "BaseGP", model: Model, seed: np.random.SeedSequence) -> Run:
    """Draws of the fast method, as a run has them."""
    count = estimator.chains
    if isinstance(model, InBasis) or model.noise_is_gaussian:
        answer = first_answer(model, seed, count)
    else:
        answer = _of_covariates(estimator, model, seed, count)
    return Run(answer.chains, seed, STOPPED, answer.weighed)


def _of_covariates(
    estimator: "BaseGP", model: Any, seed: np.random.SeedSequence, count: int
) -> Answer:
    """GPLC: in a basis g has a density with w summed out, and w is drawn given it."""
    twin = _twin(estimator, model)
    if twin is None:
        return _short_chains(model, seed, count)
    # Short chains would take most of the time, and not be long enough (benchmarks/NOTES.md).
    made = first_answer(twin, seed, count, settle=False)
    rng = np.random.default_rng([*_entropy(seed), LATENT_KEY])
    unknowns = [
        Unknowns(chain.theta[draw], twin.drawn_covariate(rng, Unknowns(theta, latent)))
        for chain in made.chains
        for draw, (theta, latent) in enumerate(zip(chain.theta, chain.latent, strict=True))
    ]
    places = np.arange(len(unknowns)).reshape(count, -1)
    chains = as_chains(model, unknowns, places, seed)
    for chain, before in zip(chains, made.chains, strict=True):
        chain.seconds = before.seconds
    return Answer(chains, made.weighed)


def _entropy(seed: np.random.SeedSequence) -> list[int]:
    return [int(each) for each in seed.generate_state(4)]


def _twin(estimator: "BaseGP", model: Any) -> LatentCovariateInBasis | None:
    """The same model in a basis; None if it has none, or too large a one."""
    # A grid of functions of several inputs has more of them than so few rows can tell of.
    if model.known_noise is not None or estimator._without_basis(model.X) or model.X.shape[1] > 1:
        return None

    def make(X: Array, y: Array, axes: Axes) -> Any:
        return estimator._model(X, y, None, axes)

    def small(axes: Axes) -> bool:
        of_w = 1 if axes.latent is None else axes.latent.functions
        return n_products(axes) * of_w <= MOST_COEFFICIENTS

    ranges = ranges_of(model.X)
    axes = chosen_axes(make, model.X, model.y, Hilbert(), True, ranges, narrow_pilot)
    return make(model.X, model.y, axes) if small(axes) else None


def _short_chains(model: Model, seed: np.random.SeedSequence, count: int) -> Answer:
    """Where there is no Gaussian to begin with: short chains, from where chains begin."""
    starts = [start(model, (), each).unknowns for each in chain_seeds(seed, count)]
    told = Weighed(np.inf, 0.0, 0, True)
    return settled(model, seed, starts, told, time.process_time())


def begun_from(model: Model, chains: list[Chain], seed: np.random.SeedSequence) -> list[Chain]:
    """Chains without draws that begin where those of the fast method are."""
    return [
        Chain.begun(model, start(model, model.scheme(), each, chain.position.unknowns))
        for chain, each in zip(chains, chain_seeds(seed, len(chains)), strict=True)
    ]
