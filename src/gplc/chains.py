"""Running a scheme: warm-up that tunes, then draws.

At the start of every iteration the state is computed anew from the unknowns. That costs one
factorisation, keeps rounding errors of running factors from adding up, and makes what follows a
function of (unknowns, generator, samplers) alone, so that a chain can stop and go on bit for bit.
"""

import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing import parent_process
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from joblib.parallel import get_active_backend
from threadpoolctl import threadpool_limits

from gplc import _check
from gplc._types import Array
from gplc.models.base import Model, Unknowns, Update
from gplc.samplers.protocol import Info, Sampler


class Position(NamedTuple):
    """All that decides what a chain does next."""

    unknowns: Unknowns
    generator: Mapping[str, Any]  # state of the bit generator
    scheme: tuple[Update, ...]  # with whatever its samplers have learned
    iteration: int  # iterations done, warm-up included
    learned: str | None = None  # that, as a file has it, until somebody goes on; scheme is empty


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
    judged : (draws, kinds, landmarks) array
        What `Model.judged` says of each draw after warm-up. Of draws from an older file it was
        not kept, and there are no landmarks; `with_judged` computes it.
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
    judged: Array
    acceptance: dict[str, float]
    events: Counter[str]
    seconds: dict[str, float]
    position: Position
    names: tuple[str, ...] = field(default=())

    @classmethod
    def begun(cls, model: Model, position: Position) -> "Chain":
        """A chain without draws yet."""
        return cls(
            np.empty((0, len(model.names))),
            np.empty((0, model.n_latent)),
            np.empty(0),
            np.empty((0, *model.judged_shape)),
            {},
            Counter(),
            {},
            position,
            model.names,
        )

    def followed_by(self, later: "Chain") -> "Chain":
        """Both, the continuation after its beginning, as one."""
        before, after = self.log_density.size, later.log_density.size
        acceptance = {
            key: (self.acceptance.get(key, 0.0) * before + rate * after) / (before + after)
            for key, rate in later.acceptance.items()
        }
        phases = self.seconds.keys() | later.seconds.keys()
        return Chain(
            np.concatenate([self.theta, later.theta]),
            np.concatenate([self.latent, later.latent]),
            np.concatenate([self.log_density, later.log_density]),
            np.concatenate([self.judged, later.judged]),
            acceptance,
            self.events + later.events,
            {
                phase: self.seconds.get(phase, 0.0) + later.seconds.get(phase, 0.0)
                for phase in sorted(phases)
            },
            later.position,
            self.names,
        )


def with_judged(model: Model, chains: Sequence[Chain]) -> list[Chain]:
    """The chains, each with what is judged of its draws: computed anew where it was not kept."""
    if all(chain.judged.shape[1:] == model.judged_shape for chain in chains):
        return list(chains)
    return [
        dataclasses.replace(chain, judged=judged_of(model, chain.theta, chain.latent))
        for chain in chains
    ]


def judged_of(model: Model, theta: Array, latent: Array) -> Array:
    """What `Model.judged` says of draws (draws, ...), for a factorisation each."""
    with threadpool_limits(limits=1, user_api="blas"):  # as in `advance`
        found = [
            model.judged(model.state(Unknowns(*draw))) for draw in zip(theta, latent, strict=True)
        ]
    return np.array(found).reshape(-1, *model.judged_shape)


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


# Starting points tried until one is possible; from an impossible one a chain has to find out.
START_TRIES = 20
# Iterations with a part of the rows, before those with all. Of several chains with the smallest
# part the one goes on whose last draws have the highest density.
START_ITERATIONS, START_CHAINS, START_JUDGED = 60, 4, 20


def start(
    model: Model,
    scheme: Sequence[Update],
    seed: int | np.random.SeedSequence | None,
    unknowns: Unknowns | None = None,
) -> Position:
    """Where a chain begins: at given unknowns, or at a point of its own.

    Log hyperparameters that are not given begin uniformly within one prior SD of the prior mean,
    wider apart than the posterior usually is, so that chains which end up together have found
    each other; latent values begin as `Model.starting_latent` says. A model of very many rows
    begins where the best of a few chains of a part of them, drawn anew for each chain, has come
    to: the posterior given a part is the wider one.
    """
    rng = np.random.default_rng(seed)
    if unknowns is None:
        with threadpool_limits(limits=1, user_api="blas"):  # as in `advance`
            unknowns = _starting_point(model, rng)
    return Position(unknowns, rng.bit_generator.state, tuple(scheme), 0)


def _starting_point(model: Model, rng: np.random.Generator) -> Unknowns:
    smaller = model.smaller(rng)
    if smaller is not None:
        few = smaller.smaller(rng) is None
        begun = [
            advance(smaller, start(smaller, smaller.scheme(), seed), START_ITERATIONS, tune=True)
            for seed in rng.integers(2**62, size=START_CHAINS if few else 1).tolist()
        ]
        best = max(begun, key=lambda chain: float(np.mean(chain.log_density[-START_JUDGED:])))
        return best.position.unknowns
    for _ in range(START_TRIES):
        theta = model.starting_theta(rng.uniform(-1.0, 1.0, len(model.names)))
        unknowns = Unknowns(theta, model.starting_latent(rng, theta))
        if model.log_density(unknowns) > -np.inf:
            break
    return unknowns


def advance(model: Model, position: Position, iterations: int, tune: bool) -> Chain:
    """Go on from a position for some iterations, learning as it goes if `tune`."""
    if position.learned is not None:
        raise ValueError("chains from a file need storage.with_learned before they can go on")
    rng = np.random.default_rng()
    rng.bit_generator.state = position.generator
    scheme = list(position.scheme)
    keys = labels(scheme)
    theta = np.empty((iterations, len(model.names)))
    latent = np.empty((iterations, model.n_latent))
    log_density = np.empty(iterations)
    judged = np.empty((0 if tune else iterations, *model.judged_shape))
    accepted = dict.fromkeys(keys, 0.0)
    before = model.ledger.copy()
    events: Counter[str] = Counter()
    unknowns = position.unknowns
    began = time.process_time()
    # Two BLAS threads on matrices of this size lose to one, and would change rounding.
    with threadpool_limits(limits=1, user_api="blas"):
        for row in range(iterations):
            state = model.state(unknowns)
            number = position.iteration + row + 1
            for place, (key, update) in enumerate(zip(keys, scheme, strict=True)):
                if tune and number <= update.rest:
                    continue
                state, info = model.step(rng, state, update)
                _enter(events, key, info)
                accepted[key] += _share(info.acceptance)
                if tune:
                    sampler = update.sampler.tuned(info, number - update.rest)
                    scheme[place] = update._replace(sampler=canonical(sampler))
            unknowns = Unknowns(*map(np.ascontiguousarray, state.unknowns))
            theta[row], latent[row] = unknowns
            log_density[row] = state.log_density
            if not tune:
                judged[row] = model.judged(state)
    spent = time.process_time() - began
    events.update(model.ledger - before)
    return Chain(
        theta,
        latent,
        log_density,
        judged,
        {key: total / max(iterations, 1) for key, total in accepted.items()},
        events,
        {"warmup" if tune else "draws": spent},
        Position(
            unknowns, rng.bit_generator.state, tuple(scheme), position.iteration + iterations
        ),
        model.names,
    )


def canonical(sampler: Sampler) -> Sampler:
    """The sampler with its settings as they come back from a file: C order, Python's numbers.

    BLAS adds in another order if a matrix is in another order, so that a chain from a file would
    not stay with one in memory.

    Examples
    --------
    >>> from gplc.samplers import Hamiltonian
    >>> canonical(Hamiltonian(scales=np.ones((2, 3), order="F"))).scales.flags.c_contiguous
    True
    """
    changed = {
        field.name: np.ascontiguousarray(value) if np.ndim(value) else value.item()
        for field in dataclasses.fields(sampler)  # type: ignore[arg-type]
        if isinstance(value := getattr(sampler, field.name), np.ndarray | np.generic)
        and not (np.ndim(value) and value.flags.c_contiguous)
    }
    return dataclasses.replace(sampler, **changed) if changed else sampler  # type: ignore[type-var]


def _share(acceptance: float | Array) -> float:
    # NumPy's mean of one number takes longer than some updates.
    return acceptance if isinstance(acceptance, float) else float(np.mean(acceptance))


def _enter(events: Counter[str], key: str, info: Info) -> None:
    events[f"{key}: evaluations"] += info.n_evaluations
    if info.n_impossible:
        events[f"{key}: impossible"] += info.n_impossible
    if info.n_exhausted:
        events[f"{key}: exhausted"] += info.n_exhausted


def go_on(model: Model, position: Position, iterations: int, warmup: int) -> Chain:
    """The next iterations from a position: those before `warmup` tune and are not kept."""
    tuning = min(iterations, max(0, warmup - position.iteration))
    chain = Chain.begun(model, position)
    if tuning:
        begun = advance(model, position, tuning, tune=True)
        chain.position, chain.seconds = begun.position, begun.seconds
    if iterations > tuning:
        chain = chain.followed_by(advance(model, chain.position, iterations - tuning, tune=False))
    return chain


# Called after every batch with the chains so far; a string stops the run and says why.
Watch = Callable[[list[Chain]], str | None]

# Wall-clock seconds between two looks at a running set of chains.
BATCH_SECONDS = 1.0

# A run that has taken so many seconds, and will take as many more, is given all cores.
SHORT_RUN = 5.0

# A batch is tried so often if workers are killed; those that memory is too small for die again.
WORKER_TRIES = 3


def chain_seeds(seed: np.random.SeedSequence, chains: int) -> list[np.random.SeedSequence]:
    """A seed for every chain; unlike `seed.spawn`, the same at every call.

    Examples
    --------
    >>> import numpy as np
    >>> [each.spawn_key for each in chain_seeds(np.random.SeedSequence(1), 2)]
    [(0,), (1,)]
    """
    return [
        np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, number))
        for number in range(chains)
    ]


def run_chains(
    model: Model,
    scheme: str | Sequence[Update] = "default",
    seed: int | np.random.SeedSequence | None = None,
    chains: int = 4,
    draws: int = 1000,
    warmup: int = 500,
    n_jobs: int | None = None,
    watch: Watch | None = None,
    begun: list[Chain] | None = None,
) -> list[Chain]:
    """Several chains, each with a generator of its own, in parallel through joblib.

    The draws depend on the seed alone: not on the number of workers, on the backend, or on how
    often somebody looks.

    Parameters
    ----------
    model, scheme, draws, warmup
        As in `run_chain`.
    seed : int or SeedSequence, optional
        Every chain gets a seed of its own from it.
    chains : int
    n_jobs : int, optional
        As in joblib: what a `joblib.parallel_config` says, or else 1; -1 is all cores. A watched
        run that nobody has said anything about is given all cores if it takes long.
    watch : callable, optional
        Called about once a second with the chains so far; if it returns a string, the run
        stops. Without it the chains run to the end undisturbed.
    begun : list of Chain, optional
        Chains to go on with, instead of new ones.

    Returns
    -------
    list of Chain
        With fewer draws than asked for if the run was stopped.

    Examples
    --------
    >>> from gplc.models import Standard
    >>> model = Standard([[0.0], [1.0]], [0.5, -0.5])
    >>> len(run_chains(model, seed=1, chains=2, draws=5, warmup=5))
    2
    """
    _check.integer("chains", chains, at_least=1, advice="4 lets convergence be judged")
    _check_lengths(draws, warmup)
    if begun is None:
        if not isinstance(seed, np.random.SeedSequence):
            seed = np.random.SeedSequence(seed)
        updates = scheme_of(model, scheme)
        begun = [
            Chain.begun(model, start(model, updates, each)) for each in chain_seeds(seed, chains)
        ]
    now = begun
    total = warmup + draws
    batch = total if watch is None else 2
    first, workers = time.perf_counter(), n_jobs
    # Each chain holds BLAS to one thread. Where chains are threads of this process, that limit is
    # shared, and the first to end would lift it for the others: so it is held here as well.
    with threadpool_limits(limits=1, user_api="blas"), ExitStack() as stack:
        parallel = stack.enter_context(_parallel(model, workers, len(now)))
        while (left := total - now[0].position.iteration) > 0:
            iterations = min(batch, left)
            began = time.perf_counter()
            later = _batch(parallel, model, now, iterations, warmup)
            now = [chain.followed_by(more) for chain, more in zip(now, later, strict=True)]
            ended = time.perf_counter()
            each = (ended - began) / iterations
            batch = max(1, int(min(BATCH_SECONDS / max(each, 1e-9), 4 * batch)))
            if watch is not None and watch(now) is not None:
                break
            long = min(ended - first, each * (left - iterations)) > SHORT_RUN
            alone = workers is None and not model.in_threads
            if long and alone and len(now) > 1 and _cores_are_ours():
                workers = -1
                parallel = stack.enter_context(Parallel(n_jobs=workers))
    return now


def _parallel(model: Model, workers: int | None, chains: int) -> Parallel:
    """Processes; threads, which mostly wait, if others do the work of the model."""
    if model.in_threads:
        return Parallel(n_jobs=chains, require="sharedmem")
    return Parallel(n_jobs=workers)


def _cores_are_ours() -> bool:
    """Whether nobody has said how many workers there are, or is using them for something else."""
    backend, n_jobs = get_active_backend()
    return n_jobs in (None, 1) and not backend.nesting_level and parent_process() is None


def _batch(
    parallel: Parallel, model: Model, now: list[Chain], iterations: int, warmup: int
) -> list[Chain]:
    """The next iterations of all chains; made again, the same, if a worker is killed."""
    for _ in range(WORKER_TRIES):
        try:
            return parallel(
                delayed(go_on)(
                    model.apart() if model.in_threads else model,
                    chain.position,
                    iterations,
                    warmup,
                )
                for chain in now
            )
        except BrokenExecutor as error:
            lost = error
    raise ChildProcessError(
        f"workers were lost {WORKER_TRIES} times in a row ({str(lost).split('. ')[0]}), perhaps "
        "for want of memory; fit with n_jobs=1, and give a checkpoint to go on from"
    ) from lost


def _check_lengths(draws: int, warmup: int) -> None:
    _check.integer("draws", draws, at_least=1, advice="1000 is a good start")
    _check.integer("warmup", warmup, at_least=0, advice="half of draws is a good start")


def scheme_of(model: Model, scheme: str | Sequence[Update]) -> list[Update]:
    """The updates of a scheme given by name or as a list, each for a part the model has."""
    updates = model.scheme(scheme) if isinstance(scheme, str) else list(scheme)
    for update in updates:
        _check.one_of("scheme part", update.part, model.parts)
    return updates


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
        Where to start; by default a point of its own; see `start`.

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
    _check_lengths(draws, warmup)
    position = start(model, scheme_of(model, scheme), seed, unknowns)
    return go_on(model, position, warmup + draws, warmup)
