"""Sweeps over single values of a latent covariate."""

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gplc._compiled import covariate_sweep
from gplc._compiled.latent_terms import LatentTerms
from gplc._compiled.slice_walk import Limits
from gplc._compiled.triangular import drop_leading, solve_lower_rows
from gplc._linalg import with_whitened
from gplc._types import Array
from gplc.kernels.bound import Pieces
from gplc.models.base import State
from gplc.samplers.protocol import Info, Point, ScalarTarget
from gplc.samplers.slice import Slice

if TYPE_CHECKING:
    from gplc.models.latent_covariate.model import LatentCovariate

Cases = NDArray[np.int64]

# Cases per block of the compiled sweep: a matter of speed only.
BLOCK_SIZE = 16


class CovariateSweep:
    """The latent covariates of a state, offering a sweep over single ones."""

    def __init__(self, model: "LatentCovariate", state: State) -> None:
        self._model = model
        self._state = state

    def slice_sweep(
        self, rng: np.random.Generator, width: float, max_steps: int, max_shrinks: int
    ) -> tuple[Point, Info]:
        """One slice-sampling update of every w_i; O(n^3) for all, without a factorisation."""
        model, state = self._model, self._state
        solved = state.solved[0]
        if solved.factor is None:
            # Without a factor there is nothing to sweep over; a hyperparameter has to move first.
            return Point(state.latent, state.log_density, state), Info(0.0, 0, n_impossible=1)
        theta, w = state.theta, state.latent.copy()
        upper, whitened = solved.factor.upper.copy(), solved.factor.whitened.copy()
        counts = np.zeros(covariate_sweep.N_COUNTS, dtype=np.int64)
        limits = Limits(width, max_steps, max_shrinks)
        noise = model.noise_variances(theta)
        for column, values in enumerate(model.columns(w)):
            running = (upper, whitened, counts)
            terms = self._terms(solved.pieces, w, column)
            if terms is None:
                row = self._rows(w, column)
                PlainSweep(values, model.y, row, noise, *running).run(rng, Slice(*limits))
            else:
                sweep = covariate_sweep.Sweep(values, model.y, terms, noise, *running)
                covariate_sweep.slice_sweep(rng, sweep, limits, BLOCK_SIZE)
                del sweep  # it is as large as what follows
            del terms
            solved = solved.moved(model.columns(w))
        model.ledger["sweep of chol(C)"] += model.n_covariates
        model.ledger["conditional variance mended"] += int(counts[covariate_sweep.CLAMPED])
        solved = solved._replace(factor=with_whitened(upper, whitened))
        moved = model._assembled(theta, w, (solved,))
        info = Info(
            float(np.mean(w != state.latent)),
            int(counts[covariate_sweep.EVALUATIONS]),
            int(counts[covariate_sweep.IMPOSSIBLE]),
            int(counts[covariate_sweep.EXHAUSTED]),
        )
        return Point(w, moved.log_density, moved), info

    def _terms(self, pieces: Pieces, w: Array, column: int) -> LatentTerms | None:
        """C as a function of one latent covariate; None if compiled code does not know it."""
        model = self._model
        own, W = self._state.theta[model.processes[0].place], model.columns(w)
        described = model.bound.in_latent(own, pieces, W, column)
        return None if described is None else described.compiled(column, model.n)

    def _rows(self, w: Array, column: int) -> Callable[[int, float, Cases], Array]:
        """Covariances of a case, its w being a value, with some cases and with itself."""
        model, bound = self._model, self._model.bound
        own, W = self._state.theta[model.processes[0].place], model.columns(w)

        def row(case: int, value: float, others: Cases) -> Array:
            inputs = np.hstack([model.X, W.T])
            here = inputs[case : case + 1].copy()
            here[0, model.X.shape[1] + column] = value
            return bound.kernel.matrix_at(
                bound.places, own, here, np.vstack([inputs[others], here])
            )

        return row


class PlainSweep(NamedTuple):
    """The compiled sweep over one latent covariate, for kernels it does not know.

    The same algorithm with one case at a time, and with covariances from the kernel itself: exact,
    O(n^3), and slower by what Python costs. See `_compiled.covariate_sweep`, and its `Sweep` for
    what is updated in place.
    """

    w: Array
    y: Array
    row: Callable[[int, float, Cases], Array]
    noise: Array
    upper: Array
    whitened: Array
    counts: NDArray[np.int64]

    def run(self, rng: np.random.Generator, sampler: Slice) -> None:
        """Update every w_i once."""
        n = self.w.size
        work = np.empty((4, n))
        for case in range(n):
            drop_leading(self.upper, self.whitened, 1, work)
            target = ScalarTarget(partial(self._conditional, case))
            before = target.evaluate(float(self.w[case]))
            point, info = sampler.step(rng, before, target)
            self.counts[covariate_sweep.EVALUATIONS] += info.n_evaluations
            self.counts[covariate_sweep.IMPOSSIBLE] += info.n_impossible
            self.counts[covariate_sweep.EXHAUSTED] += info.n_exhausted
            self.w[case] = point.position
            self._append(*point.payload)

    def _conditional(self, case: int, value: float) -> Point:
        """The density of one w_i given all else, with what would be appended to the factor."""
        size = self.w.size - 1
        others = np.r_[case + 1 : size + 1, 0:case]
        row = self.row(case, value, others)
        solved, variance = np.ascontiguousarray(row[:, :size]), float(row[0, size])
        solve_lower_rows(self.upper, size, solved)
        gap = self.y[case] - float(solved[0] @ self.whitened[:size])
        noise = float(self.noise[case])
        variance = (variance + noise) - float(solved[0] @ solved[0])
        variance = covariate_sweep.mended(variance, noise, self.counts)
        density = covariate_sweep.log_density(value, gap, variance)
        return Point(value, density, (solved[0], gap, variance))

    def _append(self, solved: Array, gap: float, variance: float) -> None:
        """Append a case at the back of the factor."""
        size = solved.size
        self.upper[:size, size] = solved
        self.upper[size, size] = math.sqrt(variance)
        self.whitened[size] = gap / self.upper[size, size]
