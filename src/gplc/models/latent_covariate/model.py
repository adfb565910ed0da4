"""GPLC: a Gaussian process with a latent covariate."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from gplc import _check
from gplc._linalg import LOG_2PI, Factor
from gplc.kernels import Bound, Kernel, Touches
from gplc.kernels.bound import Pieces
from gplc.means import Mean
from gplc.models.base import (
    Model,
    Part,
    Unknowns,
    Update,
    add_to_diagonal,
    priors_of,
    weights_of_gradient,
)
from gplc.models.latent_covariate.function import LatentFunction
from gplc.models.latent_covariate.moves import (
    LatentExchange,
    LatentFold,
    LatentReflection,
    LatentShift,
)
from gplc.models.latent_covariate.prediction import ConditionedCovariate
from gplc.models.latent_covariate.sweep import CovariateSweep
from gplc.models.standard import usable
from gplc.priors import DEFAULTS, LogNormal
from gplc.samplers.hamiltonian import Hamiltonian
from gplc.samplers.pools import Pools
from gplc.samplers.protocol import Point, Sampler, ScalarTarget
from gplc.samplers.slice import Slice
from gplc.samplers.sweeps import Direct, SliceSweep, SymmetricProposal

Array = NDArray[np.float64]

# Noise variance that is tried for prediction if C cannot be factored, in units of K(x, x).
RAISED_NOISE = (1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10)

# A chain begins with w_i correlated so much with the rank of y_i among so many cases near it, and
# with the default scheme holds it for so many iterations, until the hyperparameters suit it.
START_CORRELATION, START_NEIGHBOURS, START_HELD = 0.95, 21, 40


class CovariateState(NamedTuple):
    """theta and w, with correlations and the factor of C."""

    theta: Array
    w: Array  # all latent covariates, one after the other
    correlation: Pieces
    factor: Factor | None
    log_density: float

    @property
    def unknowns(self) -> Unknowns:
        """Theta and w."""
        return Unknowns(self.theta, self.w)


class LatentCovariate(Model):
    """y_i = g(x_i, w_i) + e_i,  g ~ GP(0, K),  w_i ~ N(0, 1),  e_i ~ N(0, sigma^2).

    By default

    K((x, w), (x', w')) = c^2 + eta^2 exp(-sum_k (x_k - x'_k)^2 / rho_k^2 - (w - w')^2 / rho_w^2)

    with theta = (log eta, log rho_1, ..., log rho_p, log rho_w, log sigma); `names` =
    ``signal_sd``, ``length_scale`` (with an index if ARD), ``latent_length_scale``, ``noise_sd``.

    Besides its hyperparameters it has these parts: ``w`` (sweep over single values); ``function``
    (w and sigma given g, if the kernel separates); ``fold``, a reflection of w in a stretch of
    one input; and those of three moves under which the likelihood does not change at all that are
    right for its kernel: ``shift`` of all w, joint ``scale`` of w and rho_w, and ``reflection`` of
    w. With several latent covariates all but the first and ``fold`` have an index, and there is an
    ``exchange`` of two of them, if the kernel is the same function of all.

    Parameters
    ----------
    X, y, kernel, priors, mean
        As in every model; `kernel` is a function of x and w.
    n_latent : int
        Number of latent covariates of a case.
    noise_sd : float, optional
        sigma, fixed; learned by default. The paper's zeta = 0 is a small number here: without any
        noise C has no inverse where g is smooth.

    Examples
    --------
    >>> import numpy as np
    >>> model = LatentCovariate([[0.0], [1.0]], [0.5, -0.5])
    >>> model.names
    ('signal_sd', 'length_scale', 'latent_length_scale', 'noise_sd')
    >>> round(model.log_density(model.prior_mean()), 4)
    -8.5772
    """

    key = "gplc"
    title = "GPLC"
    noise_summary = "noise whose size and shape depend on the inputs"
    noise_varies = True
    noise_is_gaussian = False
    latent_name = "w"

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        kernel: Kernel | None = None,
        priors: Mapping[str, Sequence[float]] | None = None,
        mean: Mean = None,
        n_latent: int = 1,
        noise_sd: float | None = None,
    ) -> None:
        self.n_covariates = _check.integer("n_latent", n_latent, at_least=1, advice="try 1")
        if noise_sd is not None:
            _check.number("noise_sd", noise_sd, above=0.0, advice="0.01 is little; None: learned")
        self.noise_sd = noise_sd
        super().__init__(X, y, kernel, priors, mean)

    @property
    def n_latent(self) -> int:
        """One w per case, or several."""
        return self.n * self.n_covariates

    @staticmethod
    def judged(latent: Array) -> dict[str, Array]:
        """The sum of squares: the model is the same under w -> -w."""
        return {"sum w^2": np.sum(latent**2, axis=-1)}

    @property
    def node_size(self) -> int:
        """One number for each w*."""
        return self.n_covariates

    def _hyperparameters(self) -> dict[str, LogNormal]:
        self._bound = self._bind_main(self.n_covariates)
        self._size = len(self._bound.names)
        for column in range(self.n_covariates):
            if not self._bound.sees(column):
                raise ValueError(
                    f"no term of kernel sees the latent covariate w{column}, got {self.kernel!r}; "
                    "let a term see it (kernels are on all inputs unless .on(...) says "
                    "otherwise), or use the standard model"
                )
        noise = {} if self.noise_sd is not None else {"noise_sd": DEFAULTS["noise_sd"]}
        return priors_of(self._bound) | noise

    def _kernels(self) -> list[Bound]:
        return [self._bound]

    def _latent_parts(self) -> dict[str, Part]:
        parts: dict[str, Part] = {
            "w": lambda state: (
                Point(state.w, state.log_density, state),
                CovariateSweep(self, state),
            ),
            "fold": lambda state: (
                Point(state.w, state.log_density, state),
                LatentFold(self),
            ),
        }
        for column in range(self.n_covariates):
            parts |= self._free_parts(column)
        pairs = list(itertools.combinations(range(self.n_covariates), 2))
        if pairs and all(self._bound.exchanges(*pair) is not None for pair in pairs):
            parts["exchange"] = lambda state: (
                Point(state.w, state.log_density, state),
                LatentExchange(self, pairs),
            )
        return parts

    def _free_parts(self, column: int) -> dict[str, Part]:
        """Moves of one latent covariate under which the likelihood does not change."""
        moves = self._bound.moves(column)
        index = f"[{column}]" if self.n_covariates > 1 else ""
        parts: dict[str, Part] = {}
        if self._bound.separates(column):
            parts[f"function{index}"] = lambda state: (
                Point(state.w, state.log_density, state),
                LatentFunction(self, state, column),
            )
        if moves.shift:
            parts[f"shift{index}"] = lambda state: (
                Point(0.0, state.log_density, state),
                LatentShift(self, state, column),
            )
        if moves.scale is not None:
            scale = moves.scale
            parts[f"scale{index}"] = lambda state: self._scale_part(state, column, scale)
        if moves.reflection:
            parts[f"reflection{index}"] = lambda state: (
                Point(1.0, state.log_density, state),
                LatentReflection(self, state, column),
            )
        return parts

    def columns(self, w: Array) -> Array:
        """The latent covariates as rows: (n_covariates, n), a view."""
        return w.reshape(self.n_covariates, self.n)

    def state(self, unknowns: Unknowns) -> CovariateState:
        """The state at theta and w, computed from nothing."""
        theta, w = unknowns
        return self._state(theta, w, self._correlation(theta, w))

    def _correlation(self, theta: Array, w: Array) -> Pieces:
        self.ledger["C"] += 1
        return self._bound.pieces(theta[: self._size], self.columns(w))

    def _moved(self, theta: Array, w: Array, correlation: Pieces) -> Pieces:
        """Correlations after w has changed."""
        return self._bound.moved(theta[: self._size], correlation, self.columns(w))

    def noise_variance(self, theta: Array) -> float:
        """sigma^2."""
        return self.noise_sd**2 if self.noise_sd is not None else math.exp(2.0 * theta[-1])

    def _state(
        self, theta: Array, w: Array, correlation: Pieces, noise: float | None = None
    ) -> CovariateState:
        matrix = self._bound.matrix(theta[: self._size], correlation)
        noise = self.noise_variance(theta) if noise is None else noise
        factor = self._factorise(add_to_diagonal(matrix, noise), self.y, "C")
        density = -np.inf if factor is None else self._log_density(theta, w, factor)
        return CovariateState(theta, w, correlation, factor, density)

    def _log_density(self, theta: Array, w: Array, factor: Factor) -> float:
        return factor.log_density + self.log_latent_prior(w) + self.priors.log_density(theta)

    def log_latent_prior(self, w: Array) -> float:
        """Log N(w | 0, I)."""
        return -0.5 * (float(w @ w) + w.size * LOG_2PI)

    def _with_hyperparameter(
        self, state: CovariateState, index: int, theta: Array
    ) -> CovariateState:
        correlation = state.correlation
        if index < self._size:
            self.ledger["C"] += self._bound.touches(index) is Touches.INPUTS
            correlation = self._bound.changed(
                index, theta[: self._size], correlation, self.columns(state.w)
            )
        return self._state(theta, state.w, correlation)

    def gradient_at(self, state: CovariateState) -> Unknowns:
        """Gradient with respect to theta and w."""
        theta, w = state.unknowns
        weights = weights_of_gradient(usable(state.factor))
        by_theta, by_w = self._bound.gradient(
            theta[: self._size], state.correlation, self.columns(w), weights
        )
        if self.noise_sd is None:
            by_noise = 2.0 * self.noise_variance(theta) * np.trace(weights)
            by_theta = np.append(by_theta, by_noise)
        return Unknowns(by_theta + self.priors.gradient(theta), by_w.ravel() - w)

    def sample_latent(self, rng: np.random.Generator, theta: Array) -> Array:
        """W ~ N(0, I)."""
        return rng.standard_normal(self.n_latent)

    def starting_latent(self, rng: np.random.Generator, theta: Array) -> Array:
        """The first covariate rises with y where x is the same, or falls; and noise on top.

        From signs at random a chain can stay for long where w rises with y in some places and
        falls in others, at a lower density. A second covariate rises with y within
        the upper and the lower half of cases that are near each other, a third within quarters.
        """
        W = self.sample_latent(rng, theta).reshape(self.n_covariates, self.n)
        ranks = local_ranks(self.X, self.y, START_NEIGHBOURS)
        edge = 0.5 / START_NEIGHBOURS
        for w in W:
            w *= math.sqrt(1.0 - START_CORRELATION**2)
            rising = START_CORRELATION * ndtri(np.clip(ranks, edge, 1.0 - edge))
            w += rising if rng.random() < 0.5 else -rising
            ranks = 2.0 * ranks % 1.0
        return W.ravel()

    def covariance(self, unknowns: Unknowns) -> Array:
        """K((x_i, w_i), (x_j, w_j)) + sigma^2 [i = j]."""
        theta, w = unknowns
        matrix = self._bound.matrix(theta[: self._size], self._correlation(theta, w))
        return add_to_diagonal(matrix, self.noise_variance(theta))

    def _scale_part(
        self, state: CovariateState, column: int, scale: tuple[tuple[int, float], ...]
    ) -> tuple[Point, ScalarTarget]:
        """Joint scaling w -> s w, rho_w -> s rho_w (or the like), as a density of log s.

        The likelihood stays. What is left is the prior of all, and the Jacobian s^n of w (the
        scale of hyperparameters is logarithmic already).
        """
        places = [place for place, _ in scale]
        signs = np.array([sign for _, sign in scale])

        def evaluate(log_s: float) -> Point:
            theta = state.theta.copy()
            theta[places] += signs * log_s
            if state.factor is None or not self.priors.allows(theta):
                return Point(log_s, -np.inf, None)
            w = state.w.copy()
            self.columns(w)[column] *= math.exp(log_s)
            density = self._log_density(theta, w, state.factor)
            moved = state._replace(theta=theta, w=w, log_density=density)
            return Point(log_s, density + self.n * log_s, moved)

        return Point(0.0, state.log_density, state), ScalarTarget(evaluate)

    def condition(self, unknowns: Unknowns) -> ConditionedCovariate:
        """Fix theta and w, for prediction.

        Where responses have hardly any noise, chains live at the edge of what can be factored,
        and a factor that a sweep left may not be had again. Then sigma is raised, to the least
        of a few values with which it can.
        """
        theta, w = unknowns
        noise = self.noise_variance(theta)
        state = self.state(unknowns)
        if state.factor is None:
            matrix = self._bound.matrix(theta[: self._size], state.correlation)
            largest = float(np.max(np.diagonal(matrix)))
            for share in RAISED_NOISE:
                noise = max(noise, share * largest)
                state = self._state(theta, w, state.correlation, noise)
                if state.factor is not None:
                    break
        return ConditionedCovariate(self, state, noise)

    def paper_scheme(self, width: float = 1.0, latent_width: float = 4.0) -> list[Update]:
        """Step-out slice sampling of each hyperparameter, then of each w_i, as in the paper."""
        return [
            *(Update(name, Slice(width)) for name in self.names),
            self._sweep(latent_width),
        ]

    def _sweep(self, width: float) -> Update:
        return Update("w", SliceSweep(width))

    def default_scheme(
        self,
        leaps: int = 3,
        size: int = 64,
        repeats: int = 4,
        folds: int = 1,
        latent_width: float = 4.0,
    ) -> list[Update]:
        """Hyperparameters along their gradient; w and sigma given g; free moves; folds.

        Where a covariate cannot be updated given g, for a kernel that does not separate, it is the
        paper's sweep over single w_i.
        """
        functions = [part for part in self.parts if part.split("[")[0] == "function"]
        latent_updates = [
            *(Update(part, Pools(size, repeats)) for part in functions),
            *([] if len(functions) == self.n_covariates else [self._sweep(latent_width)]),
            *self._free_moves(),
            *([Update("fold", SymmetricProposal(folds))] if folds else []),
        ]
        return [
            Update("hyperparameters", Hamiltonian(leaps, dense=True, conditional=True)),
            *self._wide_moves(),
            *(update._replace(rest=START_HELD) for update in latent_updates),
        ]

    def _free_moves(self) -> list[Update]:
        samplers: dict[str, Sampler] = {
            "shift": Direct(),
            "scale": Slice(0.5),
            "reflection": Direct(),
        }
        free = [
            Update(part, samplers[kind])
            for kind in samplers
            for part in self.parts
            if part.split("[")[0] == kind
        ]
        exchange = [Update("exchange", SymmetricProposal())] if "exchange" in self.parts else []
        return [*free, *exchange]

    schemes = {"default": default_scheme, "paper": paper_scheme}  # noqa: RUF012


def local_ranks(X: Array, y: Array, neighbours: int) -> Array:
    """The share of cases near to each one, itself among them, that have a smaller y.

    Examples
    --------
    >>> import numpy as np
    >>> local_ranks(np.zeros((5, 1)), np.array([5.0, 1.0, 2.0, 3.0, 4.0]), 5).tolist()
    [0.9, 0.1, 0.3, 0.5, 0.7]
    """
    count = min(neighbours, y.size)
    scaled = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), np.finfo(float).tiny)
    squares = np.sum(scaled**2, axis=1)
    # |a - b|^2 less |a|^2, which is the same for all neighbours of a.
    nearest = np.argpartition(squares - 2.0 * scaled @ scaled.T, count - 1, axis=1)[:, :count]
    below = np.sum(y[nearest] < y[:, None], axis=1)
    level = np.sum(y[nearest] == y[:, None], axis=1)
    return (below + 0.5 * level) / count
