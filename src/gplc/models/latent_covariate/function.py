"""g as a function of a latent covariate, drawn, and an update of w and sigma given it.

Where the covariance is a sum of products of a function of x and one of w,

    K((x, w), (x', w')) = F(x, x') + sum_t A_t(x, x') q_t(w) q_t(w') exp(-b_t (w - w')^2),

q_t(w) being a power of w, or one times the sign of w (`gplc.kernels.separable`), g(x_i, .) of all
cases can be drawn given everything else, in O(n^3), as a function of w: smooth functions of one
number have few degrees of freedom. Given g the cases are independent. Each w_i can be summed out
over a pool of values, so that sigma moves freely where it would creep with w held fixed; then each
w_i is drawn from its pool, and g is forgotten. See docs/mathematics.md.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from gplc._compiled import pools
from gplc._linalg import solve_both, thin_root, usable
from gplc._types import Array
from gplc.kernels.separable import Form, whole
from gplc.models.base import State
from gplc.processes.features import LatentBasis, has_features
from gplc.samplers.protocol import Point, ScalarTarget, impossible

if TYPE_CHECKING:
    from gplc.models.latent_covariate.model import LatentCovariate


class Drawable:
    """A term of which functions can be drawn: q(w) k(w)' c, with coefficients c at a few nodes."""

    def __init__(self, amplitude: Array, form: Form) -> None:
        self.amplitude, self.form = amplitude, form
        self._root = thin_root(amplitude)
        self._basis = LatentBasis(form)

    def at_nodes(self, w: Array) -> Array:
        """q(w) k(w)', for the present w: (n, nodes)."""
        return self._basis.at_nodes(w)

    def function(self, coefficients: Array) -> pools.DrawnFunction:
        """The functions that have some coefficients."""
        form, own = self.form, np.ascontiguousarray(coefficients)
        return pools.DrawnFunction(self._basis.nodes, own, form.decay, form.power, form.side)

    def prior_draw(self, rng: np.random.Generator) -> Array:
        """Coefficients (n, nodes) of functions drawn from the prior."""
        nodes = self._basis.nodes.size
        free = self._root @ rng.standard_normal((self._root.shape[1], nodes))
        coefficients, _ = lapack.dtrtrs(self._basis.lower, free.T, lower=1, trans=1)
        return coefficients.T

    def correction(self, at_nodes: Array, pulls: Array) -> Array:
        """Coefficients of sum_k K(., (x_k, w_k)) pulls_k."""
        weights, _ = lapack.dpotrs(self._basis.lower, at_nodes.T, lower=1)
        return self.amplitude @ (pulls[:, None] * weights.T)


class LatentFunction:
    """One latent covariate and sigma, offering an update given g (see the module)."""

    def __init__(self, model: "LatentCovariate", state: State, column: int) -> None:
        self._model = model
        self._column = column
        self._terms: list[Drawable] = []
        solved, W = state.solved[0], model.columns(state.latent)
        own = state.theta[solved.process.place]
        described = model.bound.in_latent(own, solved.pieces, W, column)
        if described is not None and has_features(described, column):
            self._terms = [
                Drawable(whole(term.amplitude, model.n), term.forms[column])
                for term in described.terms
            ]
            self._free = whole(described.free, model.n)
            self._free_root = thin_root(self._free)

    def _draw(self, rng: np.random.Generator, state: State) -> tuple[Array, list[Array]]:
        """The function given all else: what is free of w, (n,), and coefficients of every term.

        A draw from the prior is corrected by what it gets wrong about y (Matheron's rule).
        """
        model = self._model
        w = model.columns(state.latent)[self._column]
        level = self._free_root @ rng.standard_normal(self._free_root.shape[1])
        at_nodes = [term.at_nodes(w) for term in self._terms]
        drawn = [term.prior_draw(rng) for term in self._terms]
        noise = np.sqrt(model.noise_variances(state.theta)) * rng.standard_normal(model.n)
        missed = model.y - level - noise
        for at, coefficients in zip(at_nodes, drawn, strict=True):
            missed -= np.einsum("ij,ij->i", at, coefficients)
        pulls = solve_both(usable(state.solved[0].factor), missed)
        level += self._free @ pulls
        for term, at, coefficients in zip(self._terms, at_nodes, drawn, strict=True):
            coefficients += term.correction(at, pulls)
        return level, drawn

    def _pools(
        self, rng: np.random.Generator, w: Array, size: int, zoom: float
    ) -> tuple[NDArray[np.int64], Array, Array]:
        """Which of its pool each w_i is, all candidates, and their weights."""
        starts = rng.integers(size, size=w.size)
        candidates, weights = np.empty((2, w.size, size))
        pools.fill(w, zoom, starts, rng.random((w.size, size)), candidates, weights)
        return starts, candidates, weights

    def pool(
        self, rng: np.random.Generator, point: Point, size: int, zoom: float
    ) -> "FunctionPool | None":
        """Draw g, and a pool of candidates for every w_i; None where g cannot be drawn."""
        model, state = self._model, point.payload
        w = model.columns(state.latent)[self._column]
        if state.solved[0].factor is None or not self._terms or np.abs(w).max() > pools.END:
            model.ledger["function not drawn"] += 1
            return None
        level, drawn = self._draw(rng, state)
        starts, candidates, weights = self._pools(rng, w, size, zoom)
        values = np.zeros((model.n, size))
        for term, coefficients in zip(self._terms, drawn, strict=True):
            pools.add_function(values, candidates, term.function(coefficients))
        squares = ((model.y - level)[:, None] - values) ** 2
        return FunctionPool(model, state, self._column, starts, candidates, weights, squares)


class FunctionPool(NamedTuple):
    """Candidates for every w_i, with what g says about each."""

    model: "LatentCovariate"
    state: State
    column: int
    starts: NDArray[np.int64]  # which of its candidates each w_i is
    candidates: Array  # (n, size)
    weights: Array  # of candidates, by the prior
    squares: Array  # (y_i - g(x_i, w))^2 at every candidate w

    @property
    def scale(self) -> tuple[Point, ScalarTarget] | None:
        """Log sigma, with every w_i summed out over its pool; None if it is fixed."""
        model, place = self.model, self.model.processes[0].noise_place
        if not model.learns_noise:
            return None
        entry, theta = place.start, self.state.theta.copy()

        def evaluate(value: float) -> Point:
            prior = model.priors.log_density_of(entry, value)
            if impossible(prior):
                return Point(value, prior)
            theta[entry] = value
            variances = model.noise_variances(theta)
            density = pools.log_likelihood(self.squares, self.weights, variances)
            return Point(value, density + prior)

        return evaluate(float(self.state.theta[entry])), ScalarTarget(evaluate)

    def choose(self, rng: np.random.Generator, scale: float | None) -> tuple[Point, float]:
        """Every w_i from its pool; and the share of those that are new."""
        model, theta = self.model, self.state.theta
        if scale is not None:
            theta = theta.copy()
            theta[model.processes[0].noise_place] = scale
        chosen = self.starts.copy()
        variances = model.noise_variances(theta)
        pools.choose(rng.random(model.n), self.squares, self.weights, variances, chosen)
        w = self.state.latent.copy()
        model.columns(w)[self.column] = self.candidates[np.arange(model.n), chosen]
        moved = model.moved(self.state, w, theta)
        return Point(w, moved.log_density, moved), float(np.mean(chosen != self.starts))
