"""Geweke's joint distribution test of every model and scheme, and of samplers broken on purpose.

If unknowns and data are drawn from their joint distribution, and then the unknowns are updated
given the data and the data redrawn given the unknowns, over and over, the joint distribution must
stay. Every replicate starts in equilibrium, so replicates are independent draws of what the
sampler leaves behind, and a Kolmogorov-Smirnov test compares them with direct joint draws.

Judged on every hyperparameter, on latent summaries, *and on the data and their log likelihood*: a
sampler that preserves the prior but ignores the data is invisible in the unknowns alone.

Every model in `MODELS` is tested with all of its schemes, on weak and on strong data. A new one
needs no entry here: its priors, draws and covariance are its own.

False alarms: THRESHOLD per statistic, fewer than 475 statistics in the whole file, so that a right
set of samplers with fresh seeds would fail it once in seven hundred runs. Seeds are fixed.
"""

import dataclasses
import functools
import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pytest
from scipy.linalg import solve_triangular
from scipy.stats import ks_2samp

from gplc.kernels import SquaredExponential
from gplc.models import (
    MODELS,
    Model,
    Update,
)
from gplc.models.latent_covariate import marginal, regrowth, sweep
from gplc.models.latent_covariate.function import LatentFunction
from gplc.samplers import (
    EllipticalSlice,
    Hamiltonian,
    Info,
    LearnedChoices,
    MarginalHamiltonian,
    Metropolis,
    ModifiedMetropolis,
    Point,
    Pools,
    Slice,
    SliceSweep,
    SurrogateHamiltonian,
    SymmetricProposal,
)
from gplc.samplers.protocol import (
    GaussianTarget,
    GradientTarget,
    ScalarTarget,
    SurrogateTarget,
)

HEAVY = os.environ.get("GPLC_HEAVY") == "1"
SHORT = (400, 6, 2000)
REPLICATES, ITERATIONS, DIRECT = (3000, 20, 20_000) if HEAVY else SHORT
THRESHOLD = 3e-6

X = np.array([[-1.4], [-0.5], [0.1], [0.8], [1.5]])

# Weak data: few rows and noise that hides nearly everything. Strong data: they show nearly
# everything. Priors are the model's own, but no wider than this, and another one of the noise.
ROWS = {"weak": X[::2], "strong": X, "smooth": X, "repeated": X[[3, 0, 3, 1, 0]]}
NOISE = {"weak": (1.0, 0.5), "strong": (-2.5, 0.5)}
WIDEST = 0.5

# What a model needs beyond this, if anything.
OPTIONS = {"gplv": {"link": "log", "jitter": 0.05}}
PRIORS = {
    # w matters more than it does under the default priors.
    ("gplc", "strong"): {
        "signal_sd": (0.5, 0.5),
        "length_scale": (0.5, 0.5),
        "latent_length_scale": (0.5, 0.5),
    },
    # So smooth that five cases tell where a sixth would be: what a wrong fold shows in.
    ("gplc", "smooth"): {
        "signal_sd": (1.5, 0.3),
        "length_scale": (2.0, 0.3),
        "latent_length_scale": (1.5, 0.3),
        "noise_sd": (-3.0, 0.3),
    },
    # y tells of z through its size: little where f is much larger than the noise, much where f
    # is next to nothing and z varies widely.
    ("gplv", "weak"): {"signal_sd_y": (1.0, 0.5), "signal_sd_z": (-0.5, 0.5)},
    ("gplv", "strong"): {
        "signal_sd_y": (-3.0, 0.5),
        "signal_sd_z": (0.7, 0.4),
        "length_scale_z": (-0.5, 0.5),
    },
}
PRIORS["gplv", "repeated"] = PRIORS["gplv", "strong"]
KERNELS = {("gplv", "strong"): SquaredExponential(constant=0.1)}
# Fewer repeats than the paper's 40: the test is of each update, and 40 only blur a wrong one.
FEWER = {("gplv", "paper"): {"repeats": 5}, ("gplv", "elliptical"): {"repeats": 2}}


@functools.cache
def build(key: str, data: str, **options: object) -> Model:
    """A model, the same one whenever it is asked for."""
    rows = ROWS[data]
    if "known_sd" in options:
        options["known_sd"] = options["known_sd"][: len(rows)]
    make = functools.partial(
        MODELS[key], rows, np.zeros(len(rows)), KERNELS.get((key, data)), **options
    )
    own = make().priors
    priors = {
        name: NOISE[data] if "noise" in name and data in NOISE else (mean, min(sd, WIDEST))
        for name, mean, sd in zip(own.names, own.means, own.sds, strict=True)
    }
    return make(priors=priors | PRIORS.get((key, data), {}))


class Setting(NamedTuple):
    key: str
    scheme: str
    settings: dict[str, float]
    options: dict[str, object]


def settings_of(key: str, scheme: str) -> Setting:
    return Setting(key, scheme, FEWER.get((key, scheme), {}), OPTIONS.get(key, {}))


ABS = {"link": "abs", "jitter": 0.05}
# Every scheme of every model, and more of some.
SETTINGS = {
    f"{key}-{scheme}": settings_of(key, scheme)
    for key, cls in MODELS.items()
    for scheme in cls.schemes
} | {
    # Pools of six: every size is right, and few candidates would show a wrong one.
    "gplc-latents-small-pools": Setting("gplc", "latents", {"size": 6}, {}),
    "gplc-latents-windows": Setting("gplc", "latents", {"size": 6, "repeats": 1}, {}),
    # Blocks of two cases, so that a block has cases outside it; intervals so narrow that stepping
    # out meets points that were not foreseen.
    "gplc-paper-blocks": Setting("gplc", "paper", {"latent_width": 0.7}, {}),
    "gplv-default-surrogate": settings_of("gplv", "default"),
    "gplv-default-abs": Setting("gplv", "default", {}, ABS),
    "gplv-default-abs-surrogate": Setting("gplv", "default", {}, ABS),
    "gplv-paper-abs": Setting("gplv", "paper", {"repeats": 5}, ABS),
    "gplv-slice-abs": Setting("gplv", "slice", {}, ABS),
}
# With noise that is known for each case besides what is learned, or alone.
KNOWN = {"known_sd": (0.05, 0.3, 0.1, 0.6, 0.2)}
KNOWN_SETTINGS = {
    f"{name}-known": setting._replace(options=setting.options | KNOWN)
    for name, setting in SETTINGS.items()
    if name.count("-") == 1
} | {
    f"{key}-default-known-alone": Setting(key, "default", {}, KNOWN | {"learned_noise": False})
    for key in (["std", "gplc"] if HEAVY else ["std"])
}
if HEAVY:
    SETTINGS |= {
        "gplv-paper-40": Setting("gplv", "paper", {}, {}),
        "gplv-elliptical-abs": Setting("gplv", "elliptical", {}, {"link": "abs"}),
        "gplv-metropolis-abs": Setting("gplv", "metropolis", {}, {"link": "abs"}),
    }


def statistics(model: Model, unknowns) -> dict[str, float]:
    """What is compared. The log likelihood is computed here, by none of the model's own code."""
    theta, latent = unknowns
    lower = np.linalg.cholesky(model.covariance(unknowns))
    white = solve_triangular(lower, model.y, lower=True)
    log_likelihood = -0.5 * white @ white - np.log(np.diag(lower)).sum()
    result = dict(zip(model.names, theta, strict=True))
    result |= {"log likelihood": log_likelihood, "size of y": np.log(model.y @ model.y)}
    if latent.size:
        result |= {"latent[0]": latent[0], "sum": latent.sum(), "squares": latent @ latent}
    return result


def direct_draw(model: Model, rng: np.random.Generator) -> dict[str, float]:
    unknowns = model.sample_prior(rng)
    return statistics(model.with_data(model.sample_data(rng, unknowns)), unknowns)


@functools.cache
def direct_draws(model: Model) -> list[dict[str, float]]:
    """Joint draws, made once for all schemes that `build` gave the same model."""
    rng = np.random.default_rng(1998)
    return [direct_draw(model, rng) for _ in range(DIRECT)]


def chain_draw(
    model: Model,
    scheme: Sequence[Update],
    rng: np.random.Generator,
    iterations: int,
    spoil: Callable[[Model], None],
) -> dict[str, float]:
    unknowns = model.sample_prior(rng)
    for _ in range(iterations):
        model = model.with_data(model.sample_data(rng, unknowns))
        spoil(model)
        state = model.state(unknowns)
        for update in scheme:
            state, _ = model.step(rng, state, update)
        unknowns = state.unknowns
    return statistics(model, unknowns)  # with the data the unknowns were updated for


def p_values(
    model: Model,
    scheme: Sequence[Update],
    seed: int,
    spoil: Callable[[Model], None] = lambda model: None,
    short: bool = False,
) -> dict[str, float]:
    """p-value of every statistic: replicates of the chain against direct draws.

    `short` in a heavy run too: what is broken on purpose is caught by few replicates.
    """
    rng = np.random.default_rng(seed)
    replicates, iterations, _ = SHORT if short else (REPLICATES, ITERATIONS, DIRECT)
    chain = [chain_draw(model, scheme, rng, iterations, spoil) for _ in range(replicates)]
    direct = direct_draws(model)
    return {
        name: float(ks_2samp([d[name] for d in chain], [d[name] for d in direct]).pvalue)
        for name in direct[0]
    }


@pytest.mark.parametrize("data", ["weak", "strong"])
@pytest.mark.parametrize("name", SETTINGS)
def test_scheme_keeps_the_joint_distribution(name, data, note, monkeypatch):
    key, scheme, settings, options = SETTINGS[name]
    if name.endswith("blocks"):
        monkeypatch.setattr(sweep, "BLOCK_SIZE", 2)
    model = build(key, data, **options)
    updates = model.scheme(scheme, **settings)
    if name.endswith("windows"):
        updates = in_place_of(Pools, Pools(6, 1, zoom=0.15))(model, updates)
    if name.endswith("surrogate"):
        updates = on_surrogate_data(model, updates)
    p = p_values(model, updates, seed=2012)
    note("smallest p", min(p.values()))
    assert min(p.values()) > THRESHOLD, p


@pytest.mark.parametrize("data", ["weak", "strong"] if HEAVY else ["strong"])
@pytest.mark.parametrize("name", KNOWN_SETTINGS)
def test_scheme_with_known_noise_keeps_the_joint_distribution(name, data, note):
    key, scheme, settings, options = KNOWN_SETTINGS[name]
    model = build(key, data, **options)
    p = p_values(model, model.scheme(scheme, **settings), seed=2021)
    note("smallest p", min(p.values()))
    assert min(p.values()) > THRESHOLD, p


# Models that merge rows, with the schemes that do, and known noise that differs between them.
MERGED_SETTINGS = [
    name
    for name, setting in KNOWN_SETTINGS.items()
    if MODELS[setting.key].merges and not MODELS[setting.key].rows_apart(setting.scheme)
]


@pytest.mark.parametrize("name", MERGED_SETTINGS)
def test_repeated_rows_keep_the_joint_distribution(name, note):
    key, scheme, settings, options = KNOWN_SETTINGS[name]
    model = build(key, "repeated", **options, merge_rows=True)
    assert len(model.bound_rows) == 3
    p = p_values(model, model.scheme(scheme, **settings), seed=2022)
    note("smallest p", min(p.values()))
    assert min(p.values()) > THRESHOLD, p


# Tests of the test: samplers broken on purpose.


class AlwaysAccepts(ModifiedMetropolis):
    def step(self, rng, point, target: GaussianTarget):
        keep = np.sqrt(1.0 - self.step_size**2)
        for _ in range(self.repeats):
            noise = target.prior_draw(rng.standard_normal(point.position.size))
            point = target.evaluate(keep * point.position + self.step_size * noise)
        return point, Info(1.0, self.repeats)


class ForgetsToShrink(ModifiedMetropolis):
    """z' = z + a L u, accepted by the likelihood alone: without the sqrt(1 - a^2)."""

    def step(self, rng, point, target: GaussianTarget):
        for _ in range(self.repeats):
            noise = target.prior_draw(rng.standard_normal(point.position.size))
            proposal = target.evaluate(point.position + self.step_size * noise)
            if -rng.standard_exponential() < proposal.log_density - point.log_density:
                point = proposal
        return point, Info(1.0, self.repeats)


class EllipticalAlwaysAccepts(EllipticalSlice):
    def step(self, rng, point, target: GaussianTarget):
        partner = target.prior_draw(rng.standard_normal(point.position.size))
        angle = 2.0 * np.pi * rng.random()
        return target.evaluate(point.position * np.cos(angle) + partner * np.sin(angle)), Info(
            1.0, 1
        )


class LopsidedMetropolis(Metropolis):
    """Proposes upwards more often than downwards, and does not correct for it."""

    def step(self, rng, point, target: ScalarTarget):
        move = self.step_size * (rng.standard_normal() + 0.6)
        proposal = target.evaluate(point.position + move)
        if -rng.standard_exponential() < proposal.log_density - point.log_density:
            point = proposal
        return point, Info(1.0, 1)


class StepsOutToTheRightOnly(Slice):
    def step(self, rng, point, target: ScalarTarget):
        here = point.position
        level = point.log_density - rng.standard_exponential()
        left = here - self.width * rng.random()
        right = left + self.width
        for _ in range(100):
            if not target.evaluate(right).log_density > level:
                break
            right += self.width
        for _ in range(200):
            candidate = target.evaluate(left + rng.random() * (right - left))
            if candidate.log_density > level:
                return candidate, Info(1.0, 1)
            if candidate.position < here:
                left = candidate.position
            else:
                right = candidate.position
        return point, Info(0.0, 1)


class SweepIgnoresTheData(SliceSweep):
    """Leaves N(0, 1) invariant for every w_i, whatever y is."""

    def step(self, rng, point, target):
        model, state = target._model, target._state
        moved = model.state(state.unknowns._replace(latent=rng.standard_normal(state.latent.size)))
        return Point(moved.latent, moved.log_density, moved), Info(1.0, 0)


class FoldAlwaysAccepts(SymmetricProposal):
    def step(self, rng, point, target):
        return target.propose(rng, point), Info(1.0, 1)


class HamiltonianAlwaysAccepts(Hamiltonian):
    def step(self, rng, point, target: GradientTarget):
        momentum = rng.standard_normal(point.position.size)
        for _ in range(self.leaps):
            momentum = momentum + 0.5 * self.step_size * target.gradient(point)
            proposal = target.evaluate(point.position + self.step_size * momentum)
            if not proposal.log_density > -np.inf:
                break
            point = proposal
            momentum = momentum + 0.5 * self.step_size * target.gradient(point)
        return point, Info(1.0, self.leaps)


def with_another_density(density: Callable[[Point], float]) -> Callable[[Model], None]:
    """Moves of theta and z together under a density that is not theirs."""

    def spoil(model):
        right = model.parts["surrogate"]

        def open_part(state):
            here, target = right(state)

            def given(sites):
                point, whole = target.given(sites)

                def evaluate(position):
                    there = whole.evaluate(position)
                    possible = there.payload is not None
                    return there._replace(log_density=density(there) if possible else -np.inf)

                return evaluate(point.position), GradientTarget(evaluate, whole.gradient)

            return here, SurrogateTarget(given, target.evidence)

        model.parts["surrogate"] = open_part

    return spoil


def on_surrogate_data(model: Model, scheme: Sequence[Update]) -> list[Update]:
    """The update on surrogate data alone; any of them are right, also these."""
    sites = np.array([[1.5, 10.0, 5.0, 0.0, 20.0], [5.0, -10.0, 0.0, 0.0, 15.0]])
    sampler = SurrogateHamiltonian(6, step_size=0.25, sites=sites[:, : model.n])
    changed = in_place_of(SurrogateHamiltonian, sampler)(model, scheme)
    return [update for update in changed if update.sampler is sampler]


def drop_jacobian(model: Model) -> None:
    """The scale move of GPLC without s^n."""
    right = model.parts["scale"]

    def open_part(state):
        point, target = right(state)

        def evaluate(log_s):
            there = target.evaluate(log_s)
            return there._replace(log_density=there.log_density - model.n * log_s)

        return point, ScalarTarget(evaluate)

    model.parts["scale"] = open_part


class DrawnFromThePrior(LatentFunction):
    """g as if y had not been seen."""

    def _draw(self, rng, state):
        level = self._free_root @ rng.standard_normal(self._free_root.shape[1])
        return level, [term.prior_draw(rng) for term in self._terms]


class PoolsWithoutWeights(LatentFunction):
    """Candidates spread evenly in t, taken to be from N(0, 1)."""

    def _pools(self, rng, w, size, zoom):
        starts, candidates, weights = super()._pools(rng, w, size, zoom)
        return starts, candidates, (weights > 0.0).astype(float)


class PoolsAroundTheMiddle(LatentFunction):
    """Windows in which the present value is always in the middle, wherever they lead."""

    def _pools(self, rng, w, size, zoom):
        starts = np.full(w.size, size // 2)
        candidates = w[:, None] + zoom * np.arange(-(size // 2), size - size // 2)
        return starts, candidates, np.ones((w.size, size))


def forget_known_noise(model: Model) -> None:
    """Updates of w that take sigma^2 for all the noise there is."""
    model.noise_variances = lambda theta: np.full(model.n, model.learned_variance(theta))


def with_function(broken: type[LatentFunction]) -> Callable[[Model], None]:
    def spoil(model):
        right = model.parts["function"]
        model.parts["function"] = lambda state: (right(state)[0], broken(model, state, 0))

    return spoil


def nothing(model: Model) -> None:
    pass


def in_place_of(old: type, new: object) -> Callable[[Model, Sequence[Update]], list[Update]]:
    def change(model, scheme):
        changed = [u._replace(sampler=new) if type(u.sampler) is old else u for u in scheme]
        assert changed != scheme
        return changed

    return change


def unchanged(model, scheme):
    return scheme


# name: (setting, data, change of the scheme, change of the model, statistics that must show it)
MUTANTS = {
    "modified Metropolis always accepts": (
        "gplv-paper",
        "strong",
        in_place_of(ModifiedMetropolis, AlwaysAccepts(0.3, 5)),
        nothing,
        ["log likelihood"],
    ),
    "elliptical slice always accepts": (
        "gplv-elliptical",
        "strong",
        in_place_of(EllipticalSlice, EllipticalAlwaysAccepts(1)),
        nothing,
        ["log likelihood"],
    ),
    "modified Metropolis forgets sqrt(1 - a^2)": (
        "gplv-paper",
        "weak",
        in_place_of(ModifiedMetropolis, ForgetsToShrink(0.3, 5)),
        nothing,
        ["squares"],
    ),
    "scale move drops its Jacobian": (
        "gplc-latents-small-pools",
        "weak",
        unchanged,
        drop_jacobian,
        ["squares", "latent_length_scale"],
    ),
    "GPLC sweep ignores the data": (
        "gplc-paper",
        "strong",
        in_place_of(SliceSweep, SweepIgnoresTheData()),
        nothing,
        ["log likelihood"],
    ),
    "fold always accepts": (
        "gplc-latents-small-pools",
        "smooth",
        in_place_of(SymmetricProposal, FoldAlwaysAccepts()),
        nothing,
        ["log likelihood"],
    ),
    "function ignores the data": (
        "gplc-latents-small-pools",
        "strong",
        unchanged,
        with_function(DrawnFromThePrior),
        ["log likelihood"],
    ),
    "pools without weights": (
        "gplc-latents-small-pools",
        "weak",
        unchanged,
        with_function(PoolsWithoutWeights),
        ["squares", "latent_length_scale"],
    ),
    "pools around the present value": (
        "gplc-latents-small-pools",
        "weak",
        unchanged,
        with_function(PoolsAroundTheMiddle),
        ["squares", "latent_length_scale"],
    ),
    "cells forget known noise": (
        "gplc-default-known",
        "strong",
        unchanged,
        forget_known_noise,
        ["log likelihood", "noise_sd"],
    ),
    "slice steps out on one side only": (
        "std-paper",
        "strong",
        in_place_of(Slice, StepsOutToTheRightOnly(0.3)),
        nothing,
        ["signal_sd", "length_scale", "noise_sd"],
    ),
    "Hamiltonian always accepts": (
        "std-default",
        "strong",
        in_place_of(Hamiltonian, HamiltonianAlwaysAccepts(4, step_size=0.5)),
        nothing,
        ["log likelihood"],
    ),
    "density of v taken to be that of z": (
        "gplv-default",
        "strong",
        unchanged,
        with_another_density(lambda there: there.payload.log_density),
        ["signal_sd_z", "length_scale_z", "squares"],
    ),
    "surrogate data without their determinant": (
        "gplv-default",
        "weak",
        on_surrogate_data,
        with_another_density(
            lambda there: there.log_density + there.payload.coordinates.log_determinant
        ),
        ["signal_sd_z", "length_scale_z", "squares"],
    ),
    "Metropolis proposes lopsidedly": (
        "gplv-metropolis",
        "weak",
        in_place_of(Metropolis, LopsidedMetropolis()),
        nothing,
        ["signal_sd_y", "length_scale_y", "signal_sd_z", "length_scale_z"],
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_broken_sampler_is_caught(mutant, note):
    name, data, change, spoil, telltale = MUTANTS[mutant]
    key, scheme, settings, options = (SETTINGS | KNOWN_SETTINGS)[name]
    model = build(key, data, **options)
    updates = change(model, model.scheme(scheme, **settings))
    p = p_values(model, updates, seed=2013, spoil=spoil, short=True)
    note("p", {k: p[k] for k in telltale})
    assert min(p[k] for k in telltale) < THRESHOLD, p
    if mutant == "elliptical slice always accepts":
        # Why the log likelihood is among the statistics: the latent values alone pass this one.
        assert min(p[k] for k in ("latent[0]", "sum", "squares")) > THRESHOLD


# The function view and its folds, each by itself: with all else held fixed nothing makes up for a
# mistake, and a cheap update can be tried with settings that are poor but right.


def function_alone(informed: bool = True, **settings: float) -> Callable[[Model], list[Update]]:
    """G and sigma with w summed out; in coordinates for some information: any is right."""

    def updates(model):
        information = 1.5 * np.random.default_rng(7).standard_normal((model.n, 6, 6))
        sampler = MarginalHamiltonian(5, information=information if informed else 0.0, **settings)
        return [Update("marginal", sampler)]

    return updates


def folds_alone(attempts: int) -> Callable[[Model], list[Update]]:
    return lambda model: [Update("regrowth", LearnedChoices(attempts))]


def four_cells(monkeypatch) -> None:
    """So few that what they get wrong is large."""
    few = marginal.grid(4)
    monkeypatch.setattr(marginal, "grid", lambda: few)
    monkeypatch.setattr(marginal, "N_CELLS", 4)


def cells_without_weights(monkeypatch) -> None:
    """As many cells as ever, taken to be equally probable."""
    right = marginal.grid()
    weights = np.full_like(right.weights, 1.0 / right.weights.size)
    cells = right.cells._replace(log_weights=np.log(weights))
    wrong = right._replace(cells=cells, weights=weights, cumulative=np.cumsum(weights))
    monkeypatch.setattr(marginal, "grid", lambda: wrong)


def coarse_folds(monkeypatch) -> None:
    """One particle, and so few cells that its weight says next to nothing."""
    for name, value in {"N_EDGES": 5, "PARTICLES": 1, "SIZES": (4,)}.items():
        monkeypatch.setattr(regrowth, name, value)
    monkeypatch.setattr(regrowth, "edges", regrowth.edges.__wrapped__)


def folds_by_few_features(monkeypatch) -> None:
    monkeypatch.setattr(regrowth, "LEAST_SIZE", 0.5)


class PartAlone(NamedTuple):
    data: str
    updates: Callable[[Model], list[Update]]
    poorly: Callable[[pytest.MonkeyPatch], None] = lambda monkeypatch: None


PARTS_ALONE = {
    "function, weak data": PartAlone("weak", function_alone(step_size=0.3)),
    "function, strong data": PartAlone("strong", function_alone(step_size=0.3)),
    "function, one step size": PartAlone("weak", function_alone(False, step_size=0.5, rounds=0)),
    "function, four cells": PartAlone("strong", function_alone(step_size=0.3), four_cells),
    "function, cells without weights": PartAlone(
        "weak", function_alone(step_size=0.3), cells_without_weights
    ),
    "folds, strong data": PartAlone("strong", folds_alone(3)),
    "folds, coarse": PartAlone("smooth", folds_alone(8), coarse_folds),
    "folds, few features": PartAlone("smooth", folds_alone(3), folds_by_few_features),
}


def p_values_alone(name: str, monkeypatch, short: bool = False) -> dict[str, float]:
    data, updates, poorly = PARTS_ALONE[name]
    poorly(monkeypatch)
    model = build("gplc", data)
    return p_values(model, updates(model), seed=2013, short=short)


@pytest.mark.parametrize("name", PARTS_ALONE)
def test_part_alone_keeps_the_joint_distribution(name, note, monkeypatch):
    p = p_values_alone(name, monkeypatch)
    note("smallest p", min(p.values()))
    assert min(p.values()) > THRESHOLD, p


def settles_without_asking(monkeypatch) -> None:
    """What cells get wrong is never allowed for."""
    right = marginal.Opened.settled

    def settled(self, rng, flat):
        self._log_excess = -np.inf
        return right(self, rng, flat)

    monkeypatch.setattr(marginal.Opened, "settled", settled)


def whitens_otherwise_than_it_colours(monkeypatch) -> None:
    """L for L' on the way into learned coordinates, so that a trajectory begins elsewhere."""

    def whitened(self, flat):
        position = flat.copy()
        position[self.places] = self.lower @ flat[self.places]
        return position

    monkeypatch.setattr(marginal.Metric, "whitened", whitened)


def goes_on_learning(monkeypatch) -> None:
    """Where the noise is large it has learned a step size that is never accepted."""
    right = MarginalHamiltonian.step

    def step(self, rng, point, target):
        model = target._model
        large = point.payload.theta[-1] > model.priors.means[-1]
        size = 8.0 if large else self.step_size
        return right(dataclasses.replace(self, step_size=size), rng, point, target)

    monkeypatch.setattr(MarginalHamiltonian, "step", step)


class Eager:
    """A generator with which one of the two acceptances of a fold always succeeds."""

    def __init__(self, rng: np.random.Generator, which: int) -> None:
        self._rng, self._which = rng, which

    def random(self, *shape):
        return self._rng.random(*shape)

    def standard_exponential(self, size):
        thresholds = self._rng.standard_exponential(size)
        thresholds[self._which] = np.inf
        return thresholds


def fold_accepts(which: int) -> Callable[[pytest.MonkeyPatch], None]:
    def breaks(monkeypatch):
        right = regrowth.FoldRegrowth.attempt
        monkeypatch.setattr(
            regrowth.FoldRegrowth,
            "attempt",
            lambda self, rng, point, choice: right(self, Eager(rng, which), point, choice),
        )

    return breaks


def fold_forgets_the_present(monkeypatch) -> None:
    """The way back is estimated without the present values among the particles."""
    right = regrowth._Grown.kept

    def kept(self, random, w):
        right(self, random, w)
        given = self.given
        self.drawn(random)
        self.given = given

    monkeypatch.setattr(regrowth._Grown, "kept", kept)


# name: (part alone, what is broken, statistics that must show it)
BROKEN_PARTS = {
    "few cells, no acceptance": ("function, four cells", settles_without_asking, ["squares"]),
    "cells without weights, no acceptance": (
        "function, cells without weights",
        settles_without_asking,
        ["squares"],
    ),
    "coordinates there and back are not the same": (
        "function, strong data",
        whitens_otherwise_than_it_colours,
        ["squares", "log likelihood"],
    ),
    "learning does not end": ("function, one step size", goes_on_learning, ["noise_sd"]),
    "fold always accepts": ("folds, coarse", fold_accepts(0), ["log likelihood", "squares"]),
    "fold accepts by its features alone": (
        "folds, few features",
        fold_accepts(1),
        ["log likelihood"],
    ),
    "estimate of the way back is not conditional": (
        "folds, coarse",
        fold_forgets_the_present,
        ["log likelihood", "squares"],
    ),
}


@pytest.mark.parametrize("mutant", BROKEN_PARTS)
def test_broken_part_is_caught(mutant, note, monkeypatch):
    """With the settings, data and seed with which the right one passes."""
    name, breaks, telltale = BROKEN_PARTS[mutant]
    breaks(monkeypatch)
    p = p_values_alone(name, monkeypatch, short=True)
    note("p", {k: p[k] for k in telltale})
    assert min(p[k] for k in telltale) < THRESHOLD, p
