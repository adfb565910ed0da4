"""Coordinates for theta and the coefficients of a basis, made for what the rows tell.

Where data say much of the coefficients b = s u, they should stay as they are when theta moves;
where data say nothing, u should. With F what the rows tell of b,

    v = L(theta)' u,   L L' = I + s F s,

does both, and whatever F is, it is right: log p(theta, v) = log p(theta, u) - log det L. Given
theta, v is nearly N(., I). Of theta the precision is about

    1 / SD^2 + F of the noise + 2 sum_k i_k^2 d_k d_k',

i_k being the share of what is known of u_k that comes from the data, and d_k the derivative of
log s_k by theta. (Where b = C s u, C' F C takes the place of F: `Mixing`.) Positions are
(theta, v) in units in which all of this is the identity. Between the less important of many
coefficients no correlations are allowed for: of them F is diagonal.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from gplc._linalg import weights_through_lower
from gplc._types import Array
from gplc.models.base import Unknowns
from gplc.models.in_basis.mixing import Mixing, groups_of
from gplc.samplers.protocol import impossible

if TYPE_CHECKING:
    from gplc.models.in_basis.base import BasisState, WithCoefficients

# Coefficients between which correlations are allowed for; of the others each is by itself.
MOST_DENSE = 400
# No score counts for more than this.
LARGEST_SCORE = 1e8
# Log SDs are taken to be no further from zero than this.
LARGEST_LOG = 300.0


def dense_places(importance: Array, most: int = MOST_DENSE) -> NDArray[np.intp]:
    """The coefficients between which correlations are allowed for."""
    return np.sort(np.argsort(importance, kind="stable")[:most])


class Evidence(NamedTuple):
    """Where a state is, and what rows tell of its coefficients; kept as one vector."""

    theta: Array
    u: Array
    diagonal: Array  # F_kk of all coefficients
    dense: Array  # F of some, and of what the noise learns

    @classmethod
    def of(
        cls,
        theta: Array,
        u: Array,
        told: Array,
        of_noise: Array,
        share: float,
        places: NDArray[np.intp],
    ) -> Array:
        """From scores (rows, size) of some rows, each of which stands for `share` of them."""
        told = np.nan_to_num(np.clip(told, -LARGEST_SCORE, LARGEST_SCORE))
        of_noise = np.nan_to_num(np.clip(of_noise, -LARGEST_SCORE, LARGEST_SCORE))
        diagonal = share * np.einsum("ij,ij->j", told, told)
        some = np.hstack([told[:, places], of_noise])
        dense = blas.dsyrk(share, np.asfortranarray(some), trans=1, lower=0)
        dense = dense + np.triu(dense, 1).T
        return np.concatenate([theta, u, diagonal, dense.ravel()])

    @classmethod
    def read(cls, vector: Array, n_theta: int, n_coefficients: int) -> "Evidence":
        """From one vector."""
        ends = np.cumsum([n_theta, n_coefficients, n_coefficients])
        theta, u, diagonal, dense = np.split(vector, ends)
        side = round(dense.size**0.5)
        return cls(theta, u, diagonal, dense.reshape(side, side))


class Whitened(NamedTuple):
    """What coordinates are at one theta."""

    sds: Array  # s
    lower: Array  # L, with L L' = I + s F s, of some coefficients
    told: Array  # s^2 F_kk of the others
    log_determinant: float
    mixing: Mixing
    half: Array  # F C of some
    dense: Array  # C' F C of some


class Frame:
    """The coordinates that go with some evidence (see the module)."""

    def __init__(self, model: "WithCoefficients", vector: Array) -> None:
        k, size = len(model.names), model.n_latent
        theta, _, diagonal, dense = Evidence.read(vector, k, size)
        self._model, self._noise = model, model.noise_place
        self._some = model.dense_places
        self._others = np.setdiff1d(np.arange(size), self._some)
        count = self._some.size
        self._dense, self._diagonal = dense[:count, :count], diagonal[self._others]
        self._groups = groups_of(model.mixed, self._some)
        # How theta goes with v: through what the noise learns, in the same rows.
        at = self._at(theta)
        if at is None:  # a frame that cannot be used is as good as none
            self._dense, self._diagonal = 0.0 * self._dense, 0.0 * self._diagonal
            at = self._at(theta)
            assert at is not None
        noise = np.arange(self._noise.start, self._noise.stop)
        crossed = at.mixing.right(dense[count:, :count], self._groups) * at.sds[self._some]
        self._across = np.zeros((count, k))
        self._across[:, noise] = blas.dtrsm(1.0, at.lower, np.asfortranarray(crossed.T), lower=1)
        precision = np.diag(model.priors.sds**-2.0)
        precision[np.ix_(noise, noise)] += dense[count:, count:]
        inverse, _ = lapack.dtrtri(at.lower, lower=1)
        shares = np.empty(size)
        shares[self._some] = 1.0 - np.einsum("ij,ij->j", inverse, inverse)
        shares[self._others] = at.told / (1.0 + at.told)
        precision += at.mixing.information(theta, model.slopes(theta), shares)
        left = precision - self._across.T @ self._across
        try:
            self._root = np.linalg.cholesky(left)
        except np.linalg.LinAlgError:
            self._across[:] = 0.0
            self._root = np.diag(np.sqrt(np.diagonal(precision)))

    def _at(self, theta: Array) -> Whitened | None:
        """What the coordinates are at theta; None if they cannot be computed."""
        with np.errstate(all="ignore"):
            sds = np.exp(np.clip(self._model.log_sds(theta), -LARGEST_LOG, LARGEST_LOG))
            mixing = self._model.mixing(theta)
            if mixing is None:
                return None
            some = sds[self._some]
            half = mixing.right(self._dense, self._groups)
            dense = mixing.left(half, self._groups)
            matrix = dense * (some[:, None] * some)
            matrix[np.diag_indices_from(matrix)] += 1.0
            lower, status = lapack.dpotrf(matrix.T, lower=1, clean=1, overwrite_a=1)
            mixed = mixing.diagonal(sds.size)[self._others] if mixing.parts else 1.0
            told = self._diagonal * (mixed * sds[self._others]) ** 2
            if status != 0:
                return None
            log_determinant = float(np.log(np.diagonal(lower)).sum())
            log_determinant += 0.5 * float(np.log1p(told).sum())
        return Whitened(sds, lower, told, log_determinant, mixing, half, dense)

    def entered(self, state: "BasisState") -> tuple[Array, float, "BasisState"]:
        """Position and log density of a state, and the state with its coordinates."""
        at = self._at(state.theta)
        if at is None:
            return np.zeros(state.theta.size + state.latent.size), -np.inf, state
        some = blas.dtrmv(at.lower, state.latent[self._some], lower=1, trans=1)
        position = np.concatenate(
            [
                self._root.T @ state.theta,
                some + self._across @ state.theta,
                state.latent[self._others] * np.sqrt(1.0 + at.told),
            ]
        )
        return position, self._density(state, at), state._replace(coordinates=at)

    def _density(self, state: "BasisState", at: Whitened) -> float:
        """Log p(theta, v), up to a constant."""
        if impossible(state.log_density):
            return -np.inf
        return state.log_density - at.log_determinant

    def evaluated(self, position: Array) -> tuple[float, "BasisState | None"]:
        """Log density and state at a position."""
        model, k = self._model, len(self._root)
        theta = np.linalg.solve(self._root.T, position[:k])
        if not model.priors.allows(theta):
            model.ledger["beyond limits"] += 1
            return -np.inf, None
        at = self._at(theta)
        if at is None:
            return -np.inf, None
        count = self._some.size
        v, u = position[k : k + count] - self._across @ theta, np.empty(model.n_latent)
        u[self._some], _ = lapack.dtrtrs(at.lower, v, lower=1, trans=1)
        u[self._others] = position[k + count :] / np.sqrt(1.0 + at.told)
        state = model.state(Unknowns(theta, u), at.mixing)
        return self._density(state, at), state._replace(coordinates=at)

    def gradient(self, state: "BasisState") -> Array:
        """The gradient of the log density by the position."""
        model, at = self._model, state.coordinates
        assert state.sums is not None
        u, by_e = state.latent, state.sums.by_e
        by_u = at.sds * by_e - u
        # By log s: through e = s u, then through u, which depends on it with v held fixed.
        by_log_sds = at.sds * u * by_e
        through_others = np.zeros(u.size)
        other = by_u[self._others] * u[self._others] + 1.0
        through_others[self._others] = -other * at.told / (1.0 + at.told)
        by_log_sds += through_others
        by_v, _ = lapack.dtrtrs(at.lower, by_u[self._some], lower=1)
        v = blas.dtrmv(at.lower, u[self._some], lower=1, trans=1)
        inside = np.tril(np.outer(v, by_v))
        inside[np.diag_indices_from(inside)] += 1.0
        inside[np.diag_indices_from(inside)] *= -0.5
        inside -= np.tril(inside, -1) * 2.0
        weights = weights_through_lower(at.lower, np.asfortranarray(inside))
        some = at.sds[self._some]
        scale = some[:, None] * some
        by_log_sds[self._some] += 2.0 * np.sum(weights * at.dense * scale, axis=1)
        by_theta = model.slopes(state.theta) @ by_log_sds
        if at.mixing.parts:  # by C in the same ways
            by_roots = at.mixing.by_roots(at.half, weights * scale, self._groups)
            at.mixing.add_to_diagonals(by_roots, through_others)
            direct = at.mixing.products(state.sums.by_b, at.sds * u)
            by_roots = [one + more for one, more in zip(by_roots, direct, strict=True)]
            by_theta += at.mixing.pulled(state.theta, by_roots)
        by_theta[self._noise] += state.sums.by_noise
        by_theta += model.priors.gradient(state.theta) - self._across.T @ by_v
        return np.concatenate(
            [
                np.linalg.solve(self._root, by_theta),
                by_v,
                by_u[self._others] / np.sqrt(1.0 + at.told),
            ]
        )
