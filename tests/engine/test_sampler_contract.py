"""What every sampler keeps to, whatever its target; a new one is found and tested as it is.

A sampler is a class with `step` and `tuned` in a module of `gplc.samplers`. All are tried on one
skewed density, which each kind of target offers in its own way. A sampler with a target of its own
needs an entry in TARGETS; the test says so.

False alarms: t over 64 replicates is beyond 5 with probability 5e-6. With some 40 checks, right
samplers with fresh seeds would fail once in 5,000 runs. Seeds are fixed.
"""

import dataclasses
import importlib
import inspect
import math
import pickle
import pkgutil
from typing import Any, NamedTuple

import numpy as np
import pytest

from gplc import samplers
from gplc.samplers import (
    Direct,
    FramedHamiltonian,
    Hamiltonian,
    Info,
    LearnedChoices,
    MarginalHamiltonian,
    Metropolis,
    ModifiedMetropolis,
    OccasionalSlice,
    Point,
    Pools,
    Slice,
    SurrogateHamiltonian,
)
from gplc.samplers.metropolis import accepts
from gplc.samplers.protocol import (
    ChoicesTarget,
    FrameTarget,
    GaussianTarget,
    GradientTarget,
    MarginalTarget,
    Sampler,
    ScalarTarget,
    SurrogateTarget,
    impossible,
)

SAMPLERS = [
    cls
    for module in pkgutil.iter_modules(samplers.__path__)
    for cls in vars(importlib.import_module(f"gplc.samplers.{module.name}")).values()
    if inspect.isclass(cls)
    and cls.__module__ == f"gplc.samplers.{module.name}"
    and hasattr(cls, "step")
    and hasattr(cls, "tuned")
    and cls is not Sampler
]
every_sampler = pytest.mark.parametrize("cls", SAMPLERS)

REPLICATES, STEPS, LARGEST_T = 64, 120, 5.0

# Settings that show more than the defaults do, or as much for less; without an entry `cls()`.
SETTINGS = {
    FramedHamiltonian: FramedHamiltonian(2, step_size=0.6, frame=np.array([2.0, 0.5])),
    Hamiltonian: Hamiltonian(2, step_size=0.6),
    MarginalHamiltonian: MarginalHamiltonian(
        2, step_size=0.6, rounds=2, information=np.array([[[1.0, 0.0], [0.5, 0.0]]] * 2)
    ),
    ModifiedMetropolis: ModifiedMetropolis(0.3, 4),
    OccasionalSlice: OccasionalSlice(share=0.3),
    Pools: Pools(size=6),
    SurrogateHamiltonian: SurrogateHamiltonian(
        2, step_size=0.6, sites=np.array([[2.0, 0.5], [1.0, -1.0]])
    ),
}


def sampler_of(cls):
    return SETTINGS[cls] if cls in SETTINGS else cls()


# One density: every coordinate is N(0, 1) times exp(1.5 x - exp(x)), which is skewed.


def skewed(x):
    """Log likelihood of the coordinates x; the prior N(0, I) comes on top."""
    return float(np.sum(1.5 * x - np.exp(np.minimum(x, 700.0))))


def prior(x):
    return -0.5 * float(x @ x)


def slope(x):
    return 1.5 - np.exp(np.minimum(x, 700.0)) - x


GRID = np.linspace(-9.0, 4.0, 13_001)
SHARES = np.exp(1.5 * GRID - np.exp(GRID) - 0.5 * GRID**2)
SHARES /= SHARES.sum()


def exact_draw(rng, size):
    return np.interp(rng.random(size), np.cumsum(SHARES), GRID)


# Targets of that density at x, for every kind of sampler: (x, log likelihood) -> (point, target).
# The payload of a point is x there, as it is the state in a model.


def scalar(x, likelihood):
    def evaluate(value):
        there = np.array([value])
        return Point(value, likelihood(there) + prior(there), there)

    return evaluate(float(x[0])), ScalarTarget(evaluate)


def gaussian(x, likelihood):
    def evaluate(z):
        return Point(z, likelihood(z), z)

    return evaluate(x), GaussianTarget(lambda noise: noise, evaluate)


def gradient(x, likelihood):
    def evaluate(q):
        return Point(q, likelihood(q) + prior(q), q)

    return evaluate(x), GradientTarget(evaluate, lambda point: slope(point.payload))


def framed(x, likelihood):
    def given(frame):
        root = (1.0 + np.broadcast_to(frame, x.shape)) ** -0.5

        def evaluate(v):
            return Point(v, likelihood(root * v) + prior(root * v), root * v)

        return evaluate(x / root), GradientTarget(
            evaluate, lambda point: root * slope(point.payload)
        )

    def evidence(rng, point):
        return np.exp(np.minimum(point.payload, 50.0))

    return Point(x, likelihood(x) + prior(x), x), FrameTarget(given, evidence)


def surrogate(x, likelihood):
    def given(sites):
        precisions, pulls = np.broadcast_to(sites, (2, x.size))
        root = (1.0 + precisions) ** -0.5

        def evaluate(v):
            there = root * (v + root * pulls)
            return Point(v, likelihood(there) + prior(there), there)

        return evaluate(x / root - root * pulls), GradientTarget(
            evaluate, lambda point: root * slope(point.payload)
        )

    def evidence(point):
        there = point.payload
        return np.stack([there, slope(there) + there, np.exp(there)])

    return Point(x, likelihood(x) + prior(x), x), SurrogateTarget(given, evidence)


class Whole(NamedTuple):
    """A target that does all the work itself; the sampler has the settings."""

    x: np.ndarray
    likelihood: Any

    def evaluate(self, there):
        return Point(there, self.likelihood(there) + prior(there), there)

    def _sweep(self, samplers):
        point, infos = self.evaluate(self.x), []
        for k, (rng, sampler) in enumerate(samplers):

            def along(value, k=k, here=point.payload):
                there = here.copy()
                there[k] = value
                return self.evaluate(there)._replace(position=value)

            now = point._replace(position=float(point.payload[k]))
            point, info = sampler.step(rng, now, ScalarTarget(along))
            infos.append(info)
        return point, infos

    def slice_sweep(self, rng, width, max_steps, max_shrinks):
        point, infos = self._sweep([(rng, Slice(width, max_steps, max_shrinks))] * self.x.size)
        return point, Info(1.0, sum(info.n_evaluations for info in infos))

    def metropolis_sweep(self, rng, steps):
        point, infos = self._sweep([(rng, Metropolis(step)) for step in steps])
        return point, Info(np.array([info.acceptance for info in infos]), self.x.size)

    def draw(self, rng):
        return self.evaluate(exact_draw(rng, self.x.size))

    def propose(self, rng, point):
        return self.evaluate(point.payload + rng.standard_normal(self.x.size))

    def pool(self, rng, point, size, zoom):
        """The present vector and draws from the prior, one of which is to be chosen."""
        candidates = [point.payload, *rng.standard_normal((size - 1, self.x.size))]
        densities = np.array([self.likelihood(each) for each in candidates])
        densities[~(densities > -np.inf)] = -np.inf
        if (densities == -np.inf).all():
            return None
        return Vectors(self, candidates, np.exp(densities - densities.max()))

    costs = np.array([[1.0, 2.0, 1.0]])

    def attempt(self, rng, point, choice):
        """Random walks with steps of three sizes."""
        noise = rng.standard_normal(self.x.size)
        proposal = self.evaluate(point.payload + (0.1, 0.7, 2.0)[choice] * noise)
        accepted = accepts(rng, proposal.log_density, point.log_density)
        return (proposal if accepted else point), float(accepted)

    def opened(self, rng, point):
        return Widened(self, point.payload, point.payload).drawn(rng)


class Vectors(NamedTuple):
    """A pool of whole vectors, without a scale."""

    target: Whole
    candidates: list
    weights: np.ndarray
    scale: None = None

    def choose(self, rng, scale):
        chosen = rng.choice(len(self.candidates), p=self.weights / self.weights.sum())
        return self.target.evaluate(self.candidates[chosen]), float(chosen > 0)


BLUR = 0.5


class Widened(NamedTuple):
    """v = x + noise of variance BLUR, with x summed out as if there were no likelihood."""

    target: Whole
    x: np.ndarray
    position: np.ndarray  # v

    @property
    def point(self):
        return self.target.evaluate(self.x)

    def drawn(self, rng):
        noise = rng.standard_normal(self.x.size)
        return self._replace(position=self.x + math.sqrt(BLUR) * noise)

    def _log_density(self, v):
        return -0.5 * float(v @ v) / (1.0 + BLUR)

    @property
    def scale(self):
        def evaluate(value):
            v = self.position.copy()
            v[-1] = value
            return Point(value, self._log_density(v), v)

        return evaluate(float(self.position[-1])), ScalarTarget(evaluate)

    def whitened(self, information):
        told = np.sum(np.square(information), axis=(1, 2)) if np.ndim(information) else 0.0
        root = (1.0 + told) ** -0.5

        def evaluate(position):
            v = root * position
            return Point(position, self._log_density(v), Point(v, self._log_density(v)))

        def gradient(point):
            return -root * point.payload.position / (1.0 + BLUR)

        return evaluate(self.position / root), GradientTarget(evaluate, gradient)

    def settled(self, rng, position):
        share = 1.0 / (1.0 + BLUR)
        x = share * position + math.sqrt(BLUR * share) * rng.standard_normal(position.size)
        likelihood = self.target.likelihood
        if accepts(rng, likelihood(x), likelihood(self.x)):
            return self._replace(x=x, position=position), 1.0
        return self, 0.0

    def evidence(self, rng):
        return np.column_stack([self.position, rng.standard_normal(self.x.size)])


def whole(x, likelihood):
    target = Whole(x, likelihood)
    return target.evaluate(x), target


# By what `step` says that its target is.
TARGETS = {
    "ChoicesTarget": whole,
    "ScalarTarget": scalar,
    "GaussianTarget": gaussian,
    "GradientTarget": gradient,
    "SurrogateTarget": surrogate,
    "FrameTarget": framed,
    "DirectTarget": whole,
    "MarginalTarget": whole,
    "MetropolisSweepTarget": whole,
    "PoolTarget": whole,
    "ProposalTarget": whole,
    "SliceSweepTarget": whole,
}


def target_of(cls):
    """What opens a target for a sampler."""
    annotation = inspect.signature(cls.step).parameters["target"].annotation
    name = getattr(annotation, "__name__", annotation)
    if name in TARGETS:
        return TARGETS[name]
    pytest.fail(
        f"{cls.__name__} takes targets of a kind that is not known here ({annotation}): add to "
        f"TARGETS, under {cls.__name__!r}, a function that offers the skewed density to it"
    )


def walk(sampler, x, rng, steps, likelihood=skewed, tune=False):
    """Points of a chain of that sampler, and the sampler it ends with."""
    opened, points = target_of(type(sampler)), []
    for iteration in range(1, steps + 1):
        point, info = sampler.step(rng, *opened(x, likelihood))
        if tune:
            sampler = sampler.tuned(info, iteration)
        x = point.payload
        points.append(point)
    return points, sampler


def size_of(cls):
    return 1 if target_of(cls) is scalar else 2


def start_of(cls):
    return np.full(size_of(cls), 0.25)


def positions(points):
    return np.array([point.payload for point in points])


def test_samplers_are_found():
    exported = [getattr(samplers, name) for name in samplers.__all__]
    assert set(SAMPLERS) <= set(exported), "samplers/__init__.py does not export them all"
    assert len(SAMPLERS) == len(set(SAMPLERS)) > 0


# What they are.


@every_sampler
def test_it_is_a_frozen_dataclass_of_plain_data(cls):
    """Numbers and arrays, also after warm-up, so that a chain can be stored and go on."""
    assert dataclasses.is_dataclass(cls)
    assert cls.__dataclass_params__.frozen
    _, tuned = walk(sampler_of(cls), start_of(cls), np.random.default_rng(1), 60, tune=True)
    for sampler in (cls(), tuned):
        for field in dataclasses.fields(sampler):
            value = getattr(sampler, field.name)
            if isinstance(value, np.ndarray):
                assert value.dtype == np.float64, field.name
            else:
                assert value is None or type(value) in (bool, int, float), field.name
        assert repr(pickle.loads(pickle.dumps(sampler))) == repr(sampler)


# What warm-up keeps in mind, and no user sets.
LEARNED = {
    "frame",
    "since",
    "window",
    "seen",
    "mean",
    "squares",
    "slopes",
    "scales",
    "sites",
    "evidence",
}
LEARNED |= {"information", "tried", "won"}


@every_sampler
def test_settings_are_checked(cls):
    for field in dataclasses.fields(cls):
        if field.name in LEARNED or isinstance(field.default, bool):
            continue
        for wrong in (-1.0, math.nan, math.inf):
            with pytest.raises(ValueError, match=rf"{field.name} must be .*got .*; "):
                cls(**{field.name: wrong})


@every_sampler
def test_tuning_gives_a_sampler_of_the_same_kind_and_leaves_the_old_one(cls):
    rng, first = np.random.default_rng(2), sampler_of(cls)
    before = repr(first)
    point, info = first.step(rng, *target_of(cls)(start_of(cls), skewed))
    assert not impossible(point.log_density)
    second, again = first.tuned(info, 1), first.tuned(info, 1)
    assert type(second) is cls
    assert repr(second) == repr(again)
    assert repr(first) == before


@every_sampler
def test_nothing_is_learned_after_warm_up(cls):
    rng = np.random.default_rng(3)
    points, tuned = walk(sampler_of(cls), start_of(cls), rng, 60, tune=True)
    before = repr(tuned)
    state, x = rng.bit_generator.state, points[-1].payload
    first, _ = walk(tuned, x, rng, 20)
    assert repr(tuned) == before
    # Nor anywhere else: the same sampler, point and generator give the same chain.
    rng.bit_generator.state = state
    again, _ = walk(tuned, x, rng, 20)
    assert np.array_equal(positions(first), positions(again))


# What they do where densities are not numbers.


@every_sampler
@pytest.mark.parametrize("present", [-math.inf, math.nan])
def test_from_an_impossible_point_it_stays_or_leaves_for_a_possible_one(cls, present):
    x = start_of(cls)

    def likelihood(there):
        return present if np.array_equal(there, x) else skewed(there)

    left = 0
    for seed in range(20):
        (point,), _ = walk(sampler_of(cls), x, np.random.default_rng(seed), 1, likelihood)
        left += not impossible(point.log_density)
        assert not impossible(point.log_density) or np.array_equal(point.payload, x)
    assert left > 0


# `Direct` asks for no density: it has what the target draws.
@pytest.mark.parametrize("cls", [cls for cls in SAMPLERS if cls is not Direct])
@pytest.mark.parametrize("beyond", [-math.inf, math.nan])
def test_what_is_impossible_is_never_accepted(cls, beyond):
    def likelihood(x):
        return beyond if x[0] > 0.5 else skewed(x)

    points, _ = walk(sampler_of(cls), start_of(cls), np.random.default_rng(4), 200, likelihood)
    assert positions(points)[:, 0].max() <= 0.5
    assert len(np.unique(positions(points)[:, 0])) > 20
    assert not any(impossible(point.log_density) for point in points)


@every_sampler
def test_where_nothing_is_wrong_no_loop_hits_its_bound(cls):
    """A bracket that shrinks the wrong way never finds a point, and leaves all as it was."""
    sampler, rng, x = sampler_of(cls), np.random.default_rng(3), start_of(cls)
    for _ in range(300):
        point, info = sampler.step(rng, *target_of(cls)(x, skewed))
        x = point.payload
        assert info.n_exhausted == 0


# What they leave invariant.


def largest_t(sampler, seed=5):
    """Over replicates that begin in equilibrium: E x, E x^2 and E log density, against sums."""
    means = []
    for child in np.random.SeedSequence(seed).spawn(REPLICATES):
        rng = np.random.default_rng(child)
        x = positions(walk(sampler, exact_draw(rng, size_of(type(sampler))), rng, STEPS)[0])
        means.append([x.mean(), (x**2).mean(), (1.5 * x - np.exp(x) - 0.5 * x**2).mean()])
    log_density = 1.5 * GRID - np.exp(GRID) - 0.5 * GRID**2
    exact = [SHARES @ GRID, SHARES @ GRID**2, SHARES @ log_density]
    error = np.std(means, axis=0, ddof=1) / math.sqrt(REPLICATES)
    return float(np.max(np.abs(np.mean(means, axis=0) - exact) / error))


@every_sampler
def test_it_leaves_a_skewed_density_invariant(cls, note):
    t = largest_t(sampler_of(cls))
    note("largest t", t)
    assert t < LARGEST_T


def depends_on_a_constant(sampler):
    """Whether a chain is another one where the log density is so much lower or higher."""
    x, chains = start_of(type(sampler)), []
    for constant in (0.0, -1024.0, 1024.0):

        def likelihood(there, constant=constant):
            return skewed(there) + constant

        chains.append(positions(walk(sampler, x, np.random.default_rng(6), 300, likelihood)[0]))
    return any(not np.allclose(each, chains[0], rtol=0.0, atol=1e-9) for each in chains)


@every_sampler
def test_a_constant_added_to_the_log_density_changes_nothing(cls):
    assert not depends_on_a_constant(sampler_of(cls))


# Tests of the tests: samplers that once went unnoticed.

LOW = -1.3  # of one coordinate: a good part of a chain is below


class AcceptsFromFarDown(Metropolis):
    """Accepts anything from a log density below -50."""

    def step(self, rng, point, target: ScalarTarget):
        proposal = target.evaluate(point.position + self.step_size * rng.standard_normal())
        present = -math.inf if point.log_density < -50.0 else point.log_density
        accepted = accepts(rng, proposal.log_density, present)
        return (proposal if accepted else point), Info(float(accepted), 1)


class OftenerWhereLow(OccasionalSlice):
    """Whether it is made depends on where the chain is."""

    def step(self, rng, point, target: ScalarTarget):
        share = self.share * (2.0 if point.log_density < LOW else 0.5)
        return OccasionalSlice(self.width, share=share).step(rng, point, target)


class ShorterWhereLow(Hamiltonian):
    """Short steps are chosen more often where the density is low."""

    def step(self, rng, point, target: GradientTarget):
        short = rng.random() < (0.9 if point.log_density < 2.0 * LOW else 0.1)
        size = self.step_size * (0.25 if short else 1.0)
        return Hamiltonian(self.leaps, step_size=size).step(rng, point, target)


class SettlesWithoutAsking(MarginalHamiltonian):
    """What is summed out is drawn anew and taken as it is."""

    def step(self, rng, point, target: MarginalTarget):
        opened = target.opened(rng, point)
        end, info = Hamiltonian.step(self, rng, *opened.whitened(self.information))
        free = opened._replace(target=opened.target._replace(likelihood=lambda x: 0.0))
        settled, _ = free.settled(rng, end.payload.position)
        return target.evaluate(settled.x), info


class ChoosesByWhereItIs(LearnedChoices):
    """Which kind is tried depends on the state."""

    def step(self, rng, point, target: ChoicesTarget):
        choice = 2 if point.log_density < 2.0 * LOW else 0
        point, acceptance = target.attempt(rng, point, choice)
        return point, Info(acceptance, 1)


BROKEN = [
    AcceptsFromFarDown(),
    OftenerWhereLow(share=0.3),
    ShorterWhereLow(2, step_size=0.6),
    ChoosesByWhereItIs(),
]


@pytest.mark.parametrize("sampler", BROKEN, ids=lambda each: type(each).__name__)
def test_a_broken_sampler_is_caught(sampler, note):
    t = largest_t(sampler)
    note("largest t", t)
    assert depends_on_a_constant(sampler)
    # From where it starts the first never gets as far down as that.
    assert type(sampler) is AcceptsFromFarDown or t > LARGEST_T


def test_unknowns_settled_without_an_acceptance_are_caught(note):
    t = largest_t(SettlesWithoutAsking(2, step_size=0.6))
    note("largest t", t)
    assert t > LARGEST_T
