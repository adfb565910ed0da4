"""The function view: g and sigma, with w summed out, in coordinates of their own.

With w held fixed g is pinned where it passes through y, and with g held fixed so is w: where the
noise is small the two creep together. Here g is drawn given w, in function space
(`gplc.processes.features`); then g and sigma move with every w_i summed out over cells
(`gplc._compiled.cells`); then every w_i is drawn anew, given g, and g is forgotten. See
docs/mathematics.md.

What cells leave of error does not matter. Let Z_i be the density of y_i that they give, and q_i
that of w_i given g and y_i. Moves of (g, sigma, w) that would be right for p(g, sigma) times the
product of Z_i q_i(w_i) are accepted by how much they change

    prod_i N(w_i | 0, 1) N(y_i | g(x_i, w_i), s_i^2) / (Z_i q_i(w_i)),

s_i^2 being sigma^2 and what is known of the noise of that case.

"""

import functools
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from gplc._compiled import cells as compiled
from gplc._compiled import trajectory
from gplc._compiled.cells import Cells
from gplc._compiled.pools import END, SPREAD
from gplc._compiled.trajectory import Whitening
from gplc._linalg import add_to_diagonal, solve_both, usable
from gplc._types import Array
from gplc.models.base import State
from gplc.processes.features import Features, has_features
from gplc.samplers.hamiltonian import DIVERGED
from gplc.samplers.protocol import GradientTarget, Journey, Point, ScalarTarget, impossible

if TYPE_CHECKING:
    from gplc.models.latent_covariate.model import LatentCovariate

# Cells of w, and the SD of w in each as a share of its width: so much that the Gaussians overlap.
N_CELLS, OVERLAP = 96, 0.55
# What a case tells is learned of so many Hermite polynomials of w, and of log sigma.
N_MOMENTS = 5
# Coefficients about which the data say less than this share of what the prior says are moved as
# the prior would have it; and at most so many are not.
LEAST_INFORMATION, MOST_INFORMED = 0.02, 160
# |log sigma - mean| / SD beyond which nothing is computed.
FARTHEST = 50.0


class Grid(NamedTuple):
    """Cells of w, their weights, and Hermite polynomials at their centres."""

    cells: Cells
    weights: Array
    cumulative: Array
    moments: Array  # (N_MOMENTS, cells), orthonormal under N(0, 1)


@functools.cache
def grid(n_cells: int = N_CELLS, end: float = END) -> Grid:
    """Cells that are evenly spread over w / sqrt(SPREAD^2 + w^2), as the values of pools are."""
    last = end / math.hypot(SPREAD, end)
    t = (2.0 * (np.arange(n_cells) + 0.5) / n_cells - 1.0) * last
    rest = 1.0 - t * t
    w = SPREAD * t / np.sqrt(rest)
    widths = SPREAD * rest**-1.5 * 2.0 * last / n_cells
    weights = np.exp(-0.5 * w * w) / math.sqrt(2.0 * math.pi) * widths
    # Where a kernel has a step it is at zero: slopes are never taken across.
    halves = np.split(w, 2)
    gaps = np.concatenate([np.gradient(half) * 2.0 for half in halves])
    ends = [0, n_cells // 2 - 1, n_cells // 2, n_cells - 1]
    gaps[ends] /= 2.0
    moments = [np.ones(n_cells), w]
    for k in range(2, N_MOMENTS):
        moments.append((w * moments[-1] - math.sqrt(k - 1.0) * moments[-2]) / math.sqrt(k))
    cells = Cells(w, np.log(weights), (OVERLAP * widths) ** 2, 1.0 / gaps)
    return Grid(cells, weights, np.cumsum(weights) / weights.sum(), np.array(moments))


class MarginalFunction:
    """One latent covariate's target for a `MarginalHamiltonian` (see the module)."""

    def __init__(self, model: "LatentCovariate", state: State, column: int) -> None:
        self._model, self._column = model, column

    def opened(self, rng: np.random.Generator, point: Point) -> "Opened | None":
        """The state with g drawn given all else; None where it cannot be drawn."""
        model, state = self._model, point.payload
        features = features_of(model, state, self._column)
        if features is None:
            model.ledger["function not drawn"] += 1
            return None
        return Opened(model, state, self._column, features).drawn(rng)


def features_of(model: "LatentCovariate", state: State, column: int) -> Features | None:
    """Features of g as a function of one covariate; None where g cannot be drawn."""
    solved, W = state.solved[0], model.columns(state.latent)
    if solved.factor is None or np.abs(W[column]).max() >= END:
        return None
    own, others = state.theta[solved.process.place], np.delete(W, column, axis=0)
    key = (column, own.tobytes(), others.tobytes())
    # Several updates in a row ask for the same: the last answer is kept with the model. It is
    # looked at once, since chains that are threads of one process share the model.
    latest = model.latest_features
    if latest is not None and latest[0] == key:
        return latest[1]
    described = model.bound.in_latent(own, solved.pieces, W, column)
    features = None
    if described is not None and has_features(described, column):
        cells, weights, *_ = grid()
        features = Features(described, column, model.n, cells.centres, weights)
    model.latest_features = key, features
    return features


class Opened:
    """A state with its function: coefficients Z, and log sigma in units of its prior.

    Positions are (Z, (log sigma - mean) / SD): a priori all are independent N(0, 1).
    """

    def __init__(
        self, model: "LatentCovariate", state: State, column: int, features: Features
    ) -> None:
        self._model, self._state, self._column = model, state, column
        self._features = features
        self._noise = model.processes[0].noise_place
        self._flat = np.empty(0)
        self._log_excess = 0.0

    def drawn(self, rng: np.random.Generator) -> "Opened":
        """The same with g drawn anew, given w: from its prior, and corrected (Matheron's rule)."""
        model, state, features = self._model, self._state, self._features
        at_w = features.of_latent(self._w)
        flat = rng.standard_normal(features.size)
        noise = np.sqrt(self._variances(state.theta)) * rng.standard_normal(model.n)
        missed = model.y - noise - np.einsum("ij,ij->i", features.at_cases(flat), at_w)
        flat += features.observed(at_w, solve_both(usable(state.solved[0].factor), missed))
        other = Opened(model, state, self._column, features)
        other._flat = np.concatenate([flat, self._scaled(state.theta)])
        at_cases = features.at_cases(flat)
        values = at_cases @ features.on_grid.T
        log_shares = other._drawn_from(values, state.theta, self._w)
        other._log_excess = other._excess(at_cases, at_w, state.theta, self._w, log_shares)
        return other

    # Log sigma, if it is learned, is the last entry of a position.

    @property
    def _w(self) -> Array:
        return self._model.columns(self._state.latent)[self._column]

    def _variances(self, theta: Array) -> Array:
        return self._model.noise_variances(theta)

    def _scaled(self, theta: Array) -> Array:
        priors = self._model.priors
        return (theta[self._noise] - priors.means[self._noise]) / priors.sds[self._noise]

    def _theta(self, flat: Array) -> Array:
        """Theta at a position."""
        theta, priors = self._state.theta, self._model.priors
        if flat.size == self._features.size:
            return theta
        theta = theta.copy()
        theta[self._noise] = priors.means[self._noise] + priors.sds[self._noise] * flat[-1]
        return theta

    def _allowed(self, flat: Array) -> bool:
        if flat.size == self._features.size:
            return True
        return abs(float(flat[-1])) < FARTHEST and self._model.priors.allows(self._theta(flat))

    def _values(self, flat: Array) -> Array:
        """G of every case in every cell."""
        return self._features.at_cases(flat) @ self._features.on_grid.T

    def _evaluated(self, values: Array, flat: Array, y: Array) -> tuple[float, Array, Array]:
        """Log likelihood, its scores by g in the cells, and by log sigma: of every case."""
        theta = self._theta(flat)
        variances, learned = self._variances(theta), self._model.learned_variance(theta)
        scores, by_variance = np.empty_like(values), np.empty(values.shape[0])
        density = compiled.log_likelihood(values, y, variances, grid().cells, scores, by_variance)
        return density, scores, 2.0 * learned * by_variance

    def evaluate(self, flat: Array) -> Point:
        """The point at a position; its payload is the gradient there."""
        if not self._allowed(flat):
            self._model.ledger["beyond limits"] += 1
            return Point(flat, -np.inf)
        features, model = self._features, self._model
        theta, gradient = self._theta(flat), np.zeros(flat.size)
        density, by_variance = compiled.gradient(
            flat, model.y, self._variances(theta), grid().cells, features.basis, gradient
        )
        density -= 0.5 * float(flat @ flat)
        if not math.isfinite(density):
            return Point(flat, -np.inf)
        if flat.size > features.size:
            by_scale = 2.0 * model.learned_variance(theta) * by_variance
            entry = self._noise.start
            density += model.priors.beyond_gaussian(entry, theta[entry])
            by_scale += model.priors.slope_beyond_gaussian(entry, theta[entry])
            gradient[-1] = model.priors.sds[self._noise][0] * by_scale
        gradient -= flat
        return Point(flat, density, gradient)

    @property
    def scale(self) -> tuple[Point, ScalarTarget] | None:
        """Log sigma in units of its prior, given g; None if it is fixed."""
        if self._flat.size == self._features.size:
            return None
        values, cells = self._values(self._flat), grid().cells

        def evaluate(value: float) -> Point:
            flat = self._flat.copy()
            flat[-1] = value
            if not self._allowed(flat):
                return Point(value, -np.inf)
            theta, entry = self._theta(flat), self._noise.start
            density = compiled.log_density(values, self._model.y, self._variances(theta), cells)
            density -= 0.5 * value * value
            density += self._model.priors.beyond_gaussian(entry, theta[entry])
            return Point(value, density if math.isfinite(density) else -np.inf, flat)

        return evaluate(float(self._flat[-1])), ScalarTarget(evaluate)

    def whitened(self, information: float | Array) -> tuple[Point, GradientTarget]:
        """Where g and sigma are, and their target, in coordinates that suit the information."""
        metric = Metric.at(self._features, information, self._flat.size)

        def evaluate(position: Array) -> Point:
            point = self.evaluate(metric.coloured(position))
            return Point(position, point.log_density, point)

        def gradient(point: Point) -> Array:
            return metric.pulled(point.payload.payload)

        start = evaluate(metric.whitened(self._flat))
        learned = self._flat.size > self._features.size
        if learned and self._noise.start in self._model.priors.others:
            # The density of sigma is a function in Python.
            return start, GradientTarget(evaluate, gradient)
        return start, GradientTarget(evaluate, gradient, functools.partial(self._journey, metric))

    def _journey(
        self, metric: "Metric", point: Point, momentum: Array, size: float, leaps: int
    ) -> Journey:
        """Many leaps in one compiled call."""
        position, momentum = point.position.copy(), momentum.copy()
        flat, by_flat = point.payload.position.copy(), point.payload.payload.copy()
        log_density, log_ratio, n_done = trajectory.leapfrog(
            position,
            flat,
            by_flat,
            momentum,
            point.log_density,
            size,
            leaps,
            DIVERGED,
            flat.size > self._features.size,
            self._data,
            grid().cells,
            self._features.basis,
            Whitening(metric.places, metric.inverse),
        )
        reached = Point(flat, log_density, by_flat)
        end = Point(position, log_density, reached)
        return Journey(end, metric.pulled(by_flat), log_ratio, n_done)

    @functools.cached_property
    def _data(self) -> trajectory.Data:
        """Responses and noise, as the compiled trajectory takes them."""
        model, theta, priors = self._model, self._state.theta, self._model.priors
        if self._flat.size == self._features.size:
            return trajectory.Data(model.y, self._variances(theta), 0.0, 1.0, 0.0, 0.0)
        entry, known = self._noise.start, theta.copy()
        known[entry] = -np.inf
        mean, sd = float(priors.means[entry]), float(priors.sds[entry])
        return trajectory.Data(
            model.y,
            self._variances(known),
            mean,
            sd,
            max(float(priors.lowest[entry]), mean - FARTHEST * sd),
            min(float(priors.highest[entry]), mean + FARTHEST * sd),
        )

    # W given g, and the way back to a state.

    def _drawn_from(self, values: Array, theta: Array, w: Array, *random: Array) -> Array:
        """Log of Z q(w) of every case; w is drawn first, if there are random numbers."""
        log_shares, nothing = np.empty(w.size), np.empty(0)
        uniforms, normals = random or (nothing, nothing)
        compiled.draw(
            values,
            self._model.y,
            self._variances(theta),
            grid().cells,
            uniforms,
            normals,
            w,
            log_shares,
        )
        return log_shares

    def _excess(
        self, at_cases: Array, at_w: Array, theta: Array, w: Array, log_shares: Array
    ) -> float:
        """Log of what cells get wrong at (g, sigma, w)."""
        variances = self._variances(theta)
        gaps = self._model.y - np.einsum("ij,ij->i", at_cases, at_w)
        exact = -0.5 * (w * w + gaps * gaps / variances + np.log(variances))
        return float(np.sum(exact - log_shares))

    def settled(self, rng: np.random.Generator, flat: Array) -> tuple["Opened", float]:
        """Moved to a position, with w drawn anew given it; or as it is, if that is rejected.

        The second is the probability with which it is accepted.
        """
        model, features, theta = self._model, self._features, self._theta(flat)
        w = np.empty(model.n)
        at_cases = features.at_cases(flat)
        values = at_cases @ features.on_grid.T
        random = rng.random(model.n), rng.standard_normal(model.n)
        log_shares = self._drawn_from(values, theta, w, *random)
        excess = self._excess(at_cases, features.of_latent(w), theta, w, log_shares)
        threshold = -rng.standard_exponential()
        log_ratio = excess - self._log_excess
        # From beyond the end no function can be drawn, so there is no way back.
        if not np.abs(w).max() < END:
            log_ratio = -math.inf
        acceptance = math.exp(min(0.0, log_ratio)) if not math.isnan(log_ratio) else 0.0
        if not log_ratio > threshold:
            return self, acceptance
        latent = self._state.latent.copy()
        model.columns(latent)[self._column] = w
        moved = model.moved(self._state, latent, theta)
        if impossible(moved.log_density):
            return self, 0.0
        other = Opened(model, moved, self._column, self._features)
        other._flat, other._log_excess = flat, excess
        return other, acceptance

    @property
    def position(self) -> Array:
        """Where g and sigma are."""
        return self._flat

    @property
    def point(self) -> Point:
        """The point of the model's own chain: w and theta, g forgotten."""
        return Point(self._state.latent, self._state.log_density, self._state)

    def evidence(self, rng: np.random.Generator) -> Array:
        """What other data, drawn given g and sigma, say about them: scores, (n, N_MOMENTS + 1)."""
        flat, model = self._flat, self._model
        values, weights = self._values(flat), grid()
        cells = np.searchsorted(weights.cumulative, rng.random(model.n))
        cells = np.minimum(cells, N_CELLS - 1)
        noise = np.sqrt(self._variances(self._theta(flat))) * rng.standard_normal(model.n)
        y = values[np.arange(model.n), cells] + noise
        density, scores, by_scale = self._evaluated(values, flat, y)
        if not math.isfinite(density):
            return np.zeros((model.n, N_MOMENTS + 1))
        # In units of the prior, as the positions are.
        unit = model.priors.sds[self._noise]
        of_scale = by_scale * (unit[0] if unit.size else 0.0)
        return np.column_stack([scores @ weights.moments.T, of_scale])


class Metric(NamedTuple):
    """Coordinates in which the coefficients that the data inform are nearly N(0, I).

    P = I + sum_i U_i F_i U_i', F_i being what case i tells of the moments of g(x_i, .) and of
    log sigma, and U_i how these depend on the coefficients; P = L L', and flat = L^-T position.
    """

    places: NDArray[np.intp]  # of the coefficients that are informed
    lower: Array  # L
    inverse: Array  # L^-1

    @classmethod
    def at(cls, features: Features, information: float | Array, size: int) -> "Metric":
        """From square roots of F, (n, k, k); none at all while there is no information."""
        if np.ndim(information) == 0:
            return cls(np.empty(0, dtype=np.intp), np.empty((0, 0)), np.empty((0, 0)))
        roots = np.asarray(information)
        moments = grid().moments @ (grid().weights[:, None] * features.on_grid)
        typical = float(np.mean(roots[:, :-1] ** 2) * N_MOMENTS * roots.shape[2])
        told, columns, kinds = [], [], []
        for number, product in enumerate(features.products):
            squares = np.einsum("ij,ij->j", product.root, product.root)
            told.append(np.outer(squares, product.sizes**2).ravel())
            column, kind = np.divmod(np.arange(told[-1].size), product.sizes.size)
            columns.append(column + sum(m for m, _ in features.shapes[:number]))
            kinds.append(kind + sum(r for _, r in features.shapes[:number]))
        every = np.concatenate(told) * typical
        informed = min(int(np.sum(every > LEAST_INFORMATION)), MOST_INFORMED)
        places = np.sort(np.argsort(-every, kind="stable")[:informed])
        # C_i = (moments of every kind)' root F_i: (kinds, n, k).
        of_kind = (moments.T @ roots[:, :N_MOMENTS]).transpose(1, 0, 2)
        phi = np.concatenate([product.root for product in features.products], axis=1)
        column, kind = np.concatenate(columns)[places], np.concatenate(kinds)[places]
        told_by = phi.T[column][:, :, None] * of_kind[kind]
        if size > features.size:
            places = np.append(places, features.size)
            told_by = np.concatenate([told_by, roots[None, :, N_MOMENTS]])
        flat = told_by.reshape(places.size, -1)
        precision = add_to_diagonal(blas.dsyrk(1.0, flat.T, trans=1, lower=1), 1.0)
        lower, status = lapack.dpotrf(precision, lower=1, clean=1)
        if status != 0:
            return cls.at(features, 0.0, size)
        inverse, _ = lapack.dtrtri(lower, lower=1)
        return cls(places, lower, np.tril(inverse))

    def coloured(self, position: Array) -> Array:
        """Coefficients from a position."""
        flat = position.copy()
        flat[self.places] = position[self.places] @ self.inverse
        return flat

    def whitened(self, flat: Array) -> Array:
        """The position of coefficients."""
        position = flat.copy()
        position[self.places] = flat[self.places] @ self.lower
        return position

    def pulled(self, gradient: Array) -> Array:
        """The gradient by the position."""
        result = gradient.copy()
        result[self.places] = self.inverse @ gradient[self.places]
        return result
