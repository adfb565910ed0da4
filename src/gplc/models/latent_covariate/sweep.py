"""Sweeps over single values of a latent covariate."""

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gplc._compiled import covariate_sweep
from gplc._compiled.triangular import drop_leading, solve_lower_rows
from gplc._linalg import with_whitened
from gplc.kernels.bound import Program
from gplc.models.base import State
from gplc.samplers.protocol import Info, Point, ScalarTarget
from gplc.samplers.slice import Slice

if TYPE_CHECKING:
    from gplc.models.latent_covariate.model import LatentCovariate

Array = NDArray[np.float64]

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
        own = theta[solved.process.place]
        for column, values in enumerate(model.columns(w)):
            program = model.bound.program(own, solved.pieces, model.columns(w), column)
            if program is None:
                sampler = Slice(width, max_steps, max_shrinks)
                plain_sweep(rng, model, theta, w, column, upper, whitened, sampler, counts)
            else:
                self._compiled(
                    rng, values, program, upper, whitened, (width, max_steps, max_shrinks), counts
                )
            del program  # it is as large as what follows
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

    def _compiled(
        self,
        rng: np.random.Generator,
        w: Array,
        program: Program,
        upper: Array,
        whitened: Array,
        limits: tuple[float, int, int],
        counts: NDArray[np.int64],
    ) -> None:
        model = self._model
        covariate_sweep.slice_sweep(
            rng,
            w,
            model.y,
            *program,
            model.noise_variance(self._state.theta),
            upper,
            whitened,
            *limits,
            BLOCK_SIZE,
            counts,
        )


def plain_sweep(
    rng: np.random.Generator,
    model: "LatentCovariate",
    theta: Array,
    w: Array,
    column: int,
    upper: Array,
    whitened: Array,
    sampler: Slice,
    counts: NDArray[np.int64],
) -> None:
    """The compiled sweep over one latent covariate, for kernels it does not know, in place.

    The same algorithm with one case at a time, and with covariances from the kernel itself: exact,
    O(n^3), and slower by what Python costs. See `_compiled.covariate_sweep`.
    """
    n, noise = model.n, model.noise_variance(theta)
    size = n - 1
    own, kernel, placed = theta[model.processes[0].place], model.bound.kernel, model.bound.places
    inputs = np.hstack([model.X, model.columns(w).T])
    place = model.X.shape[1] + column
    rows = np.empty((4, n))
    for case in range(n):
        drop_leading(upper, whitened, 1, rows)
        order = np.r_[case + 1 : n, 0:case]
        others = inputs[order]

        def evaluate(value: float, case: int = case, others: Array = others) -> Point:
            here = inputs[case : case + 1].copy()
            here[0, place] = value
            row = kernel.matrix_at(placed, own, here, np.vstack([others, here]))
            solved, variance = np.ascontiguousarray(row[:, :size]), float(row[0, size]) + noise
            solve_lower_rows(upper, size, solved)
            gap = model.y[case] - float(solved[0] @ whitened[:size])
            variance -= float(solved[0] @ solved[0])
            variance = covariate_sweep._mended(variance, noise, counts)
            density = covariate_sweep._log_density(value, gap, variance)
            return Point(value, density, (solved[0], gap, variance))

        before = evaluate(float(inputs[case, place]))
        point, info = sampler.step(rng, before, ScalarTarget(evaluate))
        counts[covariate_sweep.EVALUATIONS] += info.n_evaluations
        counts[covariate_sweep.IMPOSSIBLE] += info.n_impossible
        counts[covariate_sweep.EXHAUSTED] += info.n_exhausted
        inputs[case, place] = point.position
        solved, gap, variance = point.payload
        upper[:size, size] = solved
        upper[size, size] = math.sqrt(variance)
        whitened[size] = gap / upper[size, size]
    model.columns(w)[column] = inputs[:, place]
