"""Running a scheme: warm-up that tunes, then draws.

At the start of every iteration the state is computed anew from the unknowns. That costs one
factorisation, keeps rounding errors of running factors from adding up, and makes what follows a
function of (unknowns, generator, samplers) alone, so that a chain can stop and go on bit for bit.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from gplc import _check
from gplc.models.base import Model, Unknowns, Update
from gplc.samplers.protocol import Info

Array = NDArray[np.float64]


class Position(NamedTuple):
    """All that decides what a chain does next."""

    unknowns: Unknowns
    generator: Mapping[str, Any]  # state of the bit generator
    scheme: tuple[Update, ...]  # with whatever its samplers have learned
    iteration: int  # iterations done, warm-up included


@dataclass
class Chain:
    """Draws of one chain, and what happened on the way.

    Attributes
    ----------
    theta : (draws, k) array
        Log hyperparameters.
    latent : (draws, n_latent) array
        w or z.
    log_density : (draws,) array
        Log of prior times likelihood.
    acceptance : dict of str to float
        Mean share of accepted proposals after warm-up, by update.
    events : Counter
        Operations done and numerical events met after warm-up (the model's ledger), and for each
        update the densities it evaluated, those that were impossible, and loops that hit their
        bound.
    seconds : dict of str to float
        CPU time of "warmup" and "draws".
    position : Position
        Where the chain is, to go on from.
    """

    theta: Array
    latent: Array
    log_density: Array
    acceptance: dict[str, float]
    events: Counter[str]
    seconds: dict[str, float]
    position: Position
    names: tuple[str, ...] = field(default=())


def labels(scheme: Sequence[Update]) -> list[str]:
    """A name for every update of a scheme, repeated parts numbered.

    Examples
    --------
    >>> from gplc.samplers import Direct
    >>> labels([Update("w", Direct()), Update("z", Direct()), Update("w", Direct())])
    ['w', 'z', 'w (2)']
    """
    seen: Counter[str] = Counter()
    result = []
    for update in scheme:
        seen[update.part] += 1
        again = seen[update.part]
        result.append(update.part if again == 1 else f"{update.part} ({again})")
    return result


def start(
    model: Model,
    scheme: Sequence[Update],
    seed: int | np.random.SeedSequence | None,
    unknowns: Unknowns | None = None,
) -> Position:
    """Where a chain begins: at given unknowns, or at the prior means.

    Latent values that are not given begin as a draw from their prior: at zero, GPLC sees no
    latent covariate at all and the first sweep has nothing to go on.
    """
    rng = np.random.default_rng(seed)
    if unknowns is None:
        theta = model.prior_mean().theta
        unknowns = Unknowns(theta, model.sample_latent(rng, theta))
    return Position(unknowns, rng.bit_generator.state, tuple(scheme), 0)


def advance(model: Model, position: Position, iterations: int, tune: bool) -> Chain:
    """Go on from a position for some iterations, learning as it goes if `tune`."""
    rng = np.random.default_rng()
    rng.bit_generator.state = position.generator
    scheme = list(position.scheme)
    keys = labels(scheme)
    theta = np.empty((iterations, len(model.names)))
    latent = np.empty((iterations, model.n_latent))
    log_density = np.empty(iterations)
    accepted = dict.fromkeys(keys, 0.0)
    before = model.ledger.copy()
    events: Counter[str] = Counter()
    unknowns = position.unknowns
    began = time.process_time()
    # Two BLAS threads on matrices of this size lose to one, and would change rounding.
    with threadpool_limits(limits=1, user_api="blas"):
        for row in range(iterations):
            state = model.state(unknowns)
            for place, (key, update) in enumerate(zip(keys, scheme, strict=True)):
                state, info = model.step(rng, state, update)
                _enter(events, key, info)
                accepted[key] += float(np.mean(info.acceptance))
                if tune:
                    done = position.iteration + row + 1
                    scheme[place] = update._replace(sampler=update.sampler.tuned(info, done))
            unknowns = state.unknowns
            theta[row], latent[row] = unknowns
            log_density[row] = state.log_density
    spent = time.process_time() - began
    events.update(model.ledger - before)
    return Chain(
        theta,
        latent,
        log_density,
        {key: total / max(iterations, 1) for key, total in accepted.items()},
        events,
        {"warmup" if tune else "draws": spent},
        Position(
            unknowns, rng.bit_generator.state, tuple(scheme), position.iteration + iterations
        ),
        model.names,
    )


def _enter(events: Counter[str], key: str, info: Info) -> None:
    events[f"{key}: evaluations"] += info.n_evaluations
    if info.n_impossible:
        events[f"{key}: impossible"] += info.n_impossible
    if info.n_exhausted:
        events[f"{key}: exhausted"] += info.n_exhausted


def run_chains(
    model: Model,
    scheme: str | Sequence[Update] = "default",
    seed: int | np.random.SeedSequence | None = None,
    chains: int = 4,
    draws: int = 1000,
    warmup: int = 500,
    n_jobs: int | None = None,
) -> list[Chain]:
    """Several chains, each with a generator of its own, in parallel through joblib.

    The draws depend on the seed alone, not on the number of workers or the backend.

    Parameters
    ----------
    model, scheme, draws, warmup
        As in `run_chain`.
    seed : int or SeedSequence, optional
        Every chain gets a seed spawned from it.
    chains : int
    n_jobs : int, optional
        As in joblib: None is 1 unless a `joblib.parallel_config` says otherwise, -1 all cores.

    Returns
    -------
    list of Chain

    Examples
    --------
    >>> from gplc.models import Standard
    >>> model = Standard([[0.0], [1.0]], [0.5, -0.5])
    >>> len(run_chains(model, seed=1, chains=2, draws=5, warmup=5))
    2
    """
    _check.integer("chains", chains, at_least=1, advice="4 lets convergence be judged")
    if not isinstance(seed, np.random.SeedSequence):
        seed = np.random.SeedSequence(seed)
    # Not seed.spawn, which would change the caller's object.
    seeds = [
        np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, number))
        for number in range(chains)
    ]
    return list(
        Parallel(n_jobs=n_jobs)(
            delayed(run_chain)(model, scheme, each, draws, warmup) for each in seeds
        )
    )


def run_chain(
    model: Model,
    scheme: str | Sequence[Update] = "default",
    seed: int | np.random.SeedSequence | None = None,
    draws: int = 1000,
    warmup: int = 500,
    unknowns: Unknowns | None = None,
) -> Chain:
    """One chain: warm-up with tuning, then draws with everything frozen.

    Parameters
    ----------
    model : Model
    scheme : str or list of Update
        Name of one of the model's schemes, or a list of updates.
    seed : int or SeedSequence, optional
        The same seed gives the same draws.
    draws, warmup : int
        Iterations kept, and iterations before them.
    unknowns : Unknowns, optional
        Where to start; by default the prior means, latent values drawn from their prior.

    Returns
    -------
    Chain

    Examples
    --------
    >>> from gplc.models import Standard
    >>> chain = run_chain(Standard([[0.0], [1.0]], [0.5, -0.5]), seed=1, draws=10, warmup=5)
    >>> chain.theta.shape, chain.names
    ((10, 3), ('signal_sd', 'length_scale', 'noise_sd'))
    """
    _check.integer("draws", draws, at_least=1, advice="1000 is a good start")
    _check.integer("warmup", warmup, at_least=0, advice="half of draws is a good start")
    updates = model.scheme(scheme) if isinstance(scheme, str) else list(scheme)
    for update in updates:
        _check.one_of("scheme part", update.part, model.parts)
    begun = advance(model, start(model, updates, seed, unknowns), warmup, tune=True)
    chain = advance(model, begun.position, draws, tune=False)
    chain.seconds |= begun.seconds
    return chain
