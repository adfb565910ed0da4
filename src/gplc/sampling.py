"""A whole run: chains until there are enough draws, watched, saved on the way, and resumed."""

import math
import os
import sys
import time
import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple

import numpy as np

from gplc import _check, storage
from gplc._files import Claim, FileError
from gplc.chains import Chain, run_chains, scheme_of, with_judged
from gplc.diagnostics import Weighed, converged, table, worst_rhat
from gplc.draws import Draws
from gplc.models.base import Model, Update

# draws="auto" looks for convergence at these numbers of draws: each 1.3 times the one before.
FIRST_LOOK = 500
LOOK_GROWTH = 1.3
# A checkpoint is written when this many times the last writing time has passed since: 2% at most.
CHECKPOINT_PATIENCE = 50.0
# ... and never more often than every so many seconds.
CHECKPOINT_SECONDS = 2.0


class Plan(NamedTuple):
    """How a model is to be sampled."""

    scheme: list[Update]
    chains: int
    draws: int | Literal["auto"]
    warmup: int
    max_draws: int
    max_seconds: float
    n_jobs: int | None
    progress: bool | Literal["auto"]
    checkpoint: str | os.PathLike[str] | None

    @classmethod
    def checked(cls, model: Model, sampler: Any, **settings: Any) -> "Plan":
        """A plan from a user's settings, each checked."""
        plan = cls(scheme_of(model, sampler), **settings)
        advice = 'give a number, or "auto" to sample until converged'
        if not (isinstance(plan.draws, str) and plan.draws == "auto"):
            _check.integer("draws", plan.draws, at_least=1, advice=advice)
        _check.integer("warmup", plan.warmup, at_least=0, advice="500 is a good start")
        _check.integer("chains", plan.chains, at_least=1, advice="4 lets convergence be judged")
        _check.integer("max_draws", plan.max_draws, at_least=1, advice="20000 is a good bound")
        if not (isinstance(plan.max_seconds, float) and plan.max_seconds == math.inf):
            _check.number("max_seconds", plan.max_seconds, above=0, advice="None means no bound")
        if not (isinstance(plan.progress, bool) or plan.progress == "auto"):
            raise ValueError(
                "progress must be True, False or 'auto', got "
                f"{_check.shown(plan.progress)}; choose one"
            )
        return plan


class Run(NamedTuple):
    """Chains, the seed they came from, and why sampling stopped."""

    chains: list[Chain]
    seed: np.random.SeedSequence
    stopped: str
    weighed: Weighed | None = None  # of the fast method


def sample(
    model: Model,
    plan: Plan,
    seed: np.random.SeedSequence,
    marks: Mapping[str, str],
    begun: list[Chain] | None = None,
) -> Run:
    """Sample a model as planned, from a checkpoint or from given chains if there are any.

    Parameters
    ----------
    model, plan
    seed : SeedSequence
        Every chain gets one of its own from it. A checkpoint that is resumed brings its own.
    marks : mapping of str to str
        Fingerprint of data and settings, for the checkpoint.
    begun : list of Chain, optional
        Chains to go on with.

    Returns
    -------
    Run
    """
    claim = None if plan.checkpoint is None else Claim(plan.checkpoint)
    if begun is None and claim is not None and claim.path.exists():
        begun, seed = storage.load_checkpoint(claim.path, model, marks, plan.chains, plan.warmup)
    goal = plan.max_draws if plan.draws == "auto" else plan.draws
    if begun is not None:
        begun = with_judged(model, _ready(begun, plan.scheme, goal))
    watcher = _Watcher(model, plan, marks, seed, claim)
    stopped = f"Stopped at the {goal} draws asked for."
    target = min(FIRST_LOOK, goal) if plan.draws == "auto" else goal
    now = begun
    try:
        while True:
            now = run_chains(
                model,
                plan.scheme,
                seed,
                plan.chains,
                target,
                plan.warmup,
                plan.n_jobs,
                watcher.watch,
                now,
            )
            if watcher.reason:
                stopped = watcher.reason
                break
            if plan.draws == "auto":
                if converged(table(_draws_of(now, model))):
                    stopped = f"Converged after {target} draws a chain."
                    break
                stopped = f"Stopped at max_draws = {goal} before convergence."
            if target >= goal:
                break
            target = min(goal, math.ceil(target * LOOK_GROWTH))
    except KeyboardInterrupt:
        now = watcher.latest
        if now is None or now[0].log_density.size == 0:
            raise  # nothing to keep yet
        stopped = f"Interrupted after {now[0].log_density.size} draws a chain, which are kept."
    except ConnectionError:
        # A cluster that was lost: what there is can go on from the checkpoint.
        if watcher.latest is not None:
            watcher.save(watcher.latest)
        raise
    finally:
        watcher.close()
    watcher.save(now)
    return Run(now, seed, stopped)


def _ready(begun: list[Chain], scheme: list[Update], goal: int) -> list[Chain]:
    """Chains that can go on, or those of a file as they are if all their draws are there."""
    try:
        return storage.with_learned(begun, scheme)
    except FileError:
        if begun[0].log_density.size < goal:
            raise
        return begun


def _draws_of(chains: list[Chain], model: Model) -> Draws:
    """Draws to be judged; their nodes do not matter."""
    seeds = [np.random.SeedSequence(0)] * len(chains)
    return Draws.from_chains(chains, seeds, model, 1)


class _Watcher:
    """Looks at running chains: shows progress, writes checkpoints, minds the clock."""

    def __init__(
        self,
        model: Model,
        plan: Plan,
        marks: Mapping[str, str],
        seed: np.random.SeedSequence,
        claim: Claim | None,
    ) -> None:
        self._plan = plan
        self._marks = marks
        self._seed = seed
        self._began = time.perf_counter()
        self._saved = time.perf_counter()
        self._patience = CHECKPOINT_SECONDS
        self._bars = _watched(model, plan) if _shown(plan.progress) else None
        self._claim = claim
        self._warned = False
        self.latest: list[Chain] | None = None
        self.reason = ""

    def watch(self, chains: list[Chain]) -> str | None:
        self.latest = chains
        now = time.perf_counter()
        if self._bars is not None:
            self._bars.show(chains)
        if now - self._saved >= self._patience:
            self.save(chains)
        have_draws = chains[0].log_density.size > 0
        if have_draws and now - self._began > self._plan.max_seconds:
            count = chains[0].log_density.size
            self.reason = f"Stopped by max_seconds after {count} draws a chain."
        return self.reason or None

    def save(self, chains: list[Chain]) -> None:
        if self._claim is None:
            return
        began = time.perf_counter()
        try:
            with self._claim.held():
                storage.save_checkpoint(self._claim.path, chains, self._marks, self._seed)
        except FileError as error:
            # A full disk is no reason to lose the draws, which are still in memory.
            if not self._warned:
                warnings.warn(f"checkpoint: {error}. Sampling goes on.", stacklevel=2)
            self._warned = True
        self._saved = time.perf_counter()
        spent = self._saved - began
        self._patience = max(CHECKPOINT_SECONDS, CHECKPOINT_PATIENCE * spent)

    def close(self) -> None:
        if self._bars is not None:
            self._bars.close()


def _shown(progress: bool | str) -> bool:
    if progress == "auto":
        return sys.stderr.isatty() or "ipykernel" in sys.modules
    return bool(progress)


def _watched(model: Model, plan: Plan) -> "_Bars | _Line":
    """Bars where rich can draw them; else a line that is written again and again."""
    notebook = "ipykernel" in sys.modules
    if find_spec("rich") is None or (notebook and find_spec("ipywidgets") is None):
        return _Line(model, plan)
    return _Bars(model, plan) if notebook or sys.stderr.isatty() else _Line(model, plan)


def _goal(plan: Plan) -> int:
    """Iterations of a chain, if nothing stops it before."""
    return plan.warmup + (plan.max_draws if plan.draws == "auto" else plan.draws)


def _rhat(chains: list[Chain], model: Model) -> float:
    return math.nan if len(chains) < 2 else worst_rhat(_draws_of(chains, model))


class _Line:
    """How far the chains are, in one line: on itself where somebody watches, else below."""

    def __init__(self, model: Model, plan: Plan) -> None:
        self._model, self._total = model, _goal(plan)
        self._again = sys.stderr.isatty() or "ipykernel" in sys.modules

    def show(self, chains: list[Chain]) -> None:
        rhat = _rhat(chains, self._model)
        told = f"{chains[0].position.iteration}/{self._total} iterations, R-hat {rhat:.3f}"
        if self._again:
            print(f"\r{told}", end="", file=sys.stderr, flush=True)
        else:
            print(told, file=sys.stderr)

    def close(self) -> None:
        if self._again:
            print(file=sys.stderr)


class _Bars:
    """One bar per chain: iteration, acceptance, R-hat so far, time left. Gone in the end."""

    def __init__(self, model: Model, plan: Plan) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._model = model
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed}/{task.total}"),
            TextColumn("{task.fields[state]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._tasks = [
            self._progress.add_task(f"chain {k + 1}", total=_goal(plan), state="warm-up")
            for k in range(plan.chains)
        ]
        self._progress.start()

    def show(self, chains: list[Chain]) -> None:
        rhat = _rhat(chains, self._model)
        for task, chain in zip(self._tasks, chains, strict=True):
            state = "warm-up"
            if chain.acceptance:
                rates = list(chain.acceptance.values())
                state = f"accepts {min(rates):.0%} or more, R-hat {rhat:.3f}"
            self._progress.update(task, completed=chain.position.iteration, state=state)

    def close(self) -> None:
        self._progress.stop()
