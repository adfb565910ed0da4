"""A first answer: the mode of the posterior, a Gaussian around it, and draws that are weighed.

A model says in which coordinates (theta, v) its density near a state is nearly Gaussian, with f or
w summed out where it can (`Model.around`). There

    q(theta, v) = t(theta | mode, S) N(v | m(theta), V)

is made from the curvature at the mode, by differences of the gradient. Candidates from q count as

    weight = p(theta, v, y) / q(theta, v),

smoothed by a Pareto distribution, whose shape k tells whether weights can be trusted (Vehtari,
Simpson, Gelman, Yao and Gabry 2024). Draws are chosen from the candidates as often as their
weights say, so that all that follows takes them for draws of the posterior. Where k is too large
and iterations are cheap, short chains begin at some of them and are judged as chains are.
"""

import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, eigsh
from threadpoolctl import threadpool_limits

from gplc._types import Array
from gplc.chains import Chain, Position, advance, chain_seeds, judged_of, start
from gplc.diagnostics import Weighed
from gplc.loo import good_k, smoothed
from gplc.models.base import Model, Unknowns
from gplc.samplers.protocol import GradientTarget, Point, impossible

# Starting points that are tried; rounds of going up, each with coordinates made anew, and steps
# in each; a round that gains less than this is the last.
STARTS, ROUNDS, STEPS, LEAST_GAIN = 3, 6, 40, 0.05
# Curvature is found for every coordinate up to so many; else for so many directions that matter.
MOST_CURVED, DIRECTIONS = 400, 60
DIFFERENCE = 1e-4
# No direction is taken to be flatter than this, in units in which the prior or the data have 1.
LEAST_CURVATURE = 0.1
# Degrees of freedom of the t distribution.
FREEDOM = 10.0
# Candidates: between these, and such that the work is about the same; draws that are kept.
FEWEST, MOST, KEPT = 300, 2000, 400
# Short chains, if weights cannot be trusted: iterations that learn; most rows in a basis, and most
# cases of an exact model, for which they are made.
LEARNING, SETTLED_ROWS, SETTLED_CASES = 60, 5000, 300


class Answer(NamedTuple):
    """Draws as chains, and what is known of how good they are."""

    chains: list[Chain]
    weighed: Weighed


@dataclass(frozen=True)
class Proposal:
    """q: a t distribution of theta, and a Gaussian of v given theta.

    Attributes
    ----------
    centre : (d,) array
        The mode.
    root : (k, k) array
        A root of the scale matrix of theta.
    across : (d - k, k) array
        How the mean of v goes with theta.
    rest : (d - k, d - k) array
        A root of the covariance of v given theta.
    """

    centre: Array
    root: Array
    across: Array
    rest: Array

    @classmethod
    def of(cls, centre: Array, curvature: Array, k: int) -> "Proposal":
        """From a mode and the curvature there, of which the first k coordinates are theta."""
        values, vectors = np.linalg.eigh(curvature)
        values = np.maximum(values, LEAST_CURVATURE)
        curved = (vectors * values) @ vectors.T
        covariance = (vectors / values) @ vectors.T
        rest = np.empty((0, 0))
        across = np.empty((0, k))
        if centre.size > k:
            precision = np.linalg.cholesky(curved[k:, k:])
            rest = np.linalg.inv(precision).T
            across = -rest @ (rest.T @ curved[k:, :k])
        return cls(centre, np.linalg.cholesky(covariance[:k, :k]), across, rest)

    def draw(self, rng: np.random.Generator) -> tuple[Array, float]:
        """A candidate, and its log density up to a constant of q."""
        k = len(self.root)
        normal = rng.standard_normal(self.centre.size)
        shape = normal[:k] / np.sqrt(rng.chisquare(FREEDOM) / FREEDOM)
        step = self.root @ shape
        v = normal[k:]
        position = self.centre + np.concatenate([step, self.across @ step + self.rest @ v])
        density = -0.5 * (FREEDOM + k) * np.log1p(float(shape @ shape) / FREEDOM)
        density -= 0.5 * float(v @ v) + float(np.log(np.diagonal(self.root)).sum())
        return position, density

    def adapted(self, positions: Array, shares: Array) -> "Proposal":
        """With theta where weighted candidates are; too few of them change nothing."""
        k = len(self.root)
        theta = positions[:, :k]
        effective = 1.0 / float(np.sum(shares**2))
        if effective < 10.0 * k:
            return self
        mean = shares @ theta
        gaps = theta - mean
        covariance = (gaps * shares[:, None]).T @ gaps
        try:
            root = np.linalg.cholesky(covariance * (FREEDOM - 2.0) / FREEDOM * 1.1)
        except np.linalg.LinAlgError:
            return self
        centre = self.centre.copy()
        step = mean - centre[:k]
        centre[:k] = mean
        centre[k:] += self.across @ step
        return replace(self, centre=centre, root=np.asarray(root, dtype=np.float64))


def _climbed(point: Point, target: GradientTarget, steps: int) -> Point:
    """The best point on the way up from one, by L-BFGS."""
    best = point

    def downhill(position: Array) -> tuple[float, Array]:
        nonlocal best
        here = target.evaluate(position)
        if impossible(here.log_density):
            return 1e15, np.zeros(position.size)
        if here.log_density > best.log_density:
            best = here
        slope = target.gradient(here)
        if not np.isfinite(slope).all():
            return 1e15, np.zeros(position.size)
        return -here.log_density, -slope

    if not impossible(point.log_density):
        options = {"maxiter": steps, "maxcor": 20}
        search: Any = minimize  # whose types know of no function that gives its gradient too
        search(downhill, point.position, jac=True, method="L-BFGS-B", options=options)
    return best


def _begun(model: Model, rng: np.random.Generator) -> Any:
    """A state to go up from: that of the best of a few starts, or of a part of the rows."""
    smaller = model.smaller(rng)
    if smaller is not None:
        return model.state(_mode(smaller, rng).payload.unknowns)
    found: list[Point] = []
    for number in range(STARTS):
        # Densities in different coordinates for latent values cannot be compared.
        if found and model.n_latent:
            break
        units = rng.uniform(-1.0, 1.0, len(model.names)) * (number > 0)
        theta = model.starting_theta(units)
        state = model.state(Unknowns(theta, model.starting_latent(rng, theta)))
        if not impossible(state.log_density):
            found.append(_climbed(*model.around(state, model.gathered(rng, state)), STEPS))
    if not found:
        raise ValueError(
            "the fast method finds no possible starting point; fit with method='mcmc', or raise "
            "the prior mean of noise_sd"
        )
    return max(found, key=lambda point: point.log_density).payload


def _mode(model: Model, rng: np.random.Generator) -> Point:
    state, last = _begun(model, rng), -np.inf
    for _ in range(ROUNDS):
        point = _climbed(*model.around(state, model.gathered(rng, state)), STEPS)
        if impossible(point.log_density):
            break
        state = point.payload
        if abs(point.log_density - last) < LEAST_GAIN:
            break
        last = point.log_density
    return Point(np.concatenate(state.unknowns), state.log_density, state)


def _curvature(point: Point, target: GradientTarget) -> Array:
    """Minus the second derivatives, by differences of the gradient."""
    size = point.position.size
    slope = target.gradient(point)

    def along(direction: Array) -> Array:
        moved = target.evaluate(point.position + DIFFERENCE * direction.ravel())
        if impossible(moved.log_density):
            return direction.ravel()
        return (slope - target.gradient(moved)) / DIFFERENCE

    if size <= MOST_CURVED:
        found = np.array([along(each) for each in np.eye(size)])
        found = 0.5 * (found + found.T)
    else:
        # Far from where the data tell something, coordinates have curvature 1.
        beyond = LinearOperator(
            (size, size), matvec=lambda v: along(v) - v.ravel(), dtype=np.float64
        )
        values, vectors = eigsh(beyond, k=DIRECTIONS, v0=np.ones(size), tol=1e-2)
        found = np.eye(size) + (vectors * values) @ vectors.T
    return np.where(np.isfinite(found), found, np.eye(size))


class Around(NamedTuple):
    """The neighbourhood of a mode."""

    target: GradientTarget
    proposal: Proposal


def around_mode(model: Model, rng: np.random.Generator) -> Around:
    """The mode of a model's density, and the Gaussian around it."""
    state = _mode(model, rng).payload
    gathered = model.gathered(rng, state)
    point, target = model.around(state, gathered)
    point = _climbed(point, target, 2 * STEPS)
    # With very many rows a part of them, each counted several times, tells the curvature.
    some = model.fewer_rows(rng)
    curved = point, target
    if some is not model:
        curved = some.around(some.state(point.payload.unknowns), gathered)
    return Around(target, Proposal.of(point.position, _curvature(*curved), len(model.names)))


def likely_theta(model: Model, rng: np.random.Generator, count: int) -> Array:
    """Log hyperparameters from the Gaussian around the mode, unweighed: (count, k)."""
    with threadpool_limits(limits=1, user_api="blas"):
        target, proposal = around_mode(model, rng)
        found = []
        for _ in range(count):
            point = target.evaluate(proposal.draw(rng)[0])
            if not impossible(point.log_density):
                found.append(point.payload.theta)
    return np.array(found).reshape(-1, len(model.names))


class _Candidates(NamedTuple):
    positions: Array
    unknowns: list[Unknowns]
    log_weights: Array


def _candidates(around: Around, rng: np.random.Generator, count: int) -> _Candidates:
    positions, unknowns, logs = [], [], []
    for _ in range(count):
        position, density = around.proposal.draw(rng)
        point = around.target.evaluate(position)
        if not impossible(point.log_density):
            positions.append(position)
            unknowns.append(Unknowns(*map(np.ascontiguousarray, point.payload.unknowns)))
            logs.append(point.log_density - density)
    return _Candidates(np.array(positions), unknowns, np.array(logs))


def weighed(log_weights: Array) -> tuple[Array, float]:
    """Smoothed weights of sum one, and k.

    Examples
    --------
    >>> import numpy as np
    >>> shares, k = weighed(np.random.default_rng(0).normal(size=500))
    >>> round(float(shares.sum()), 9), k < 0.7
    (1.0, True)
    """
    if log_weights.size == 0:
        return np.empty(0), np.inf
    relative = log_weights - log_weights.max()
    found = smoothed(-relative[None, :, None])
    shares = np.exp(found.log_weights[0])
    return shares / shares.sum(), float(found.pareto_k[0])


def resampled(rng: np.random.Generator, shares: Array, count: int) -> NDArray[np.intp]:
    """Places, each as often as its share says, in an order that tells nothing.

    Examples
    --------
    >>> import numpy as np
    >>> places = resampled(np.random.default_rng(0), np.array([0.75, 0.25]), 8)
    >>> np.bincount(places).tolist()
    [6, 2]
    """
    wanted = (np.arange(count) + rng.random()) / count
    places = np.searchsorted(np.cumsum(shares), wanted * (1.0 - 1e-12))
    return rng.permutation(np.minimum(places, shares.size - 1))


def n_candidates(model: Model) -> int:
    """How many candidates: fewer where each costs more."""
    work = model.work
    return int(np.clip(MOST * (1.0 / work), FEWEST, MOST))


def first_answer(
    model: Model, seed: np.random.SeedSequence, chains: int, settle: bool = True
) -> Answer:
    """Draws of a model's posterior by the mode, a Gaussian around it, and weights.

    Parameters
    ----------
    model : Model
    seed : SeedSequence
        The same seed gives the same draws.
    chains : int
        Groups that the draws come in; and how many short chains there are, if any.
    settle : bool
        Whether short chains follow where weights cannot be trusted.

    Returns
    -------
    Answer
        Its chains begin at draws, and have learned nothing unless they were settled.

    Examples
    --------
    >>> from gplc.models import Standard
    >>> x = np.linspace(-1.0, 1.0, 15)[:, None]
    >>> model = Standard(x, np.sin(3.0 * x[:, 0]))
    >>> answer = first_answer(model, np.random.SeedSequence(0), chains=2)
    >>> len(answer.chains), answer.chains[0].theta.shape, answer.weighed.k < 0.7
    (2, (200, 3), True)
    """
    began, rng = time.process_time(), np.random.default_rng(seed)
    with threadpool_limits(limits=1, user_api="blas"):
        around, count = around_mode(model, rng), n_candidates(model)
        first = _candidates(around, rng, count // 4)
        shares, k = weighed(first.log_weights)
        if shares.size:
            better = around.proposal.adapted(first.positions, shares)
            around = around._replace(proposal=better)
        found = _candidates(around, rng, count - count // 4)
        shares, k = weighed(found.log_weights)
    if not shares.size:
        raise ValueError(
            "the fast method finds nothing possible near the mode; fit with method='mcmc'"
        )
    told = Weighed(k, 1.0 / float(np.sum(shares**2)), shares.size, False)
    trusted = k < good_k(shares.size) and told.effective > KEPT / 4
    if settle and not trusted and model.may_settle(SETTLED_ROWS, SETTLED_CASES):
        places = resampled(rng, shares, chains)
        starts = [found.unknowns[place] for place in places]
        return settled(model, seed, starts, told, began)
    each = max(1, KEPT // chains)
    places = resampled(rng, shares, each * chains)
    with threadpool_limits(limits=1, user_api="blas"):
        unique, back = np.unique(places, return_inverse=True)
        picked = [found.unknowns[place] for place in unique]
        made = as_chains(model, picked, back.reshape(chains, each), seed)
    made[0].seconds["fast"] = time.process_time() - began
    return Answer(made, told)


def as_chains(
    model: Model,
    unknowns: list[Unknowns],
    places: NDArray[np.intp],
    seed: np.random.SeedSequence,
) -> list[Chain]:
    """Draws (chains, draws), given by their places among unknowns, as chains that can begin."""
    theta = np.array([each.theta for each in unknowns])
    latent = np.array([each.latent for each in unknowns])
    density = np.array([model.log_density(each) for each in unknowns])
    judged = judged_of(model, theta, latent)
    scheme, made = tuple(model.scheme()), []
    for own, each in zip(places, chain_seeds(seed, len(places)), strict=True):
        position = start(model, scheme, each, unknowns[own[-1]])
        position = position._replace(iteration=own.size)
        events: Counter[str] = Counter()
        made.append(
            Chain(
                theta[own],
                latent[own],
                density[own],
                judged[own],
                {},
                events,
                {"fast": 0.0},
                position,
                model.names,
            )
        )
    return made


def settled(
    model: Model,
    seed: np.random.SeedSequence,
    starts: list[Unknowns],
    told: Weighed,
    began: float,
) -> Answer:
    """Short chains from given starts: they learn for some iterations, then give draws."""
    scheme = model.scheme()
    learning = max(LEARNING, LEARNING + max(update.rest for update in scheme))
    made, each = [], max(1, KEPT // len(starts))
    for own, unknowns in zip(chain_seeds(seed, len(starts)), starts, strict=True):
        begun = advance(model, start(model, scheme, own, unknowns), learning, tune=True)
        chain = advance(model, begun.position, each, tune=False)
        chain.position = _counted(chain.position, each)
        made.append(chain)
    made[0].seconds["fast"] = time.process_time() - began
    return Answer(made, told._replace(settled=True))


def _counted(position: Position, iterations: int) -> Position:
    return position._replace(iteration=iterations)
