"""Leave-one-out: how well each row is predicted by a posterior that has not seen it.

For a draw of the unknowns a model knows the density of y_i given all other responses
(`Model.left_out`). The draws are from the posterior given all rows. Weighted by one over that
density they are draws from the posterior without row i (Gelfand 1996); the weights are smoothed by
a Pareto distribution, whose shape k tells whether they can be trusted (Vehtari, Simpson, Gelman,
Yao and Gabry 2024).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gplc import _html
from gplc._frames import Rows
from gplc._types import Array
from gplc.components import ArrayComponents
from gplc.draws import Draws
from gplc.models import Model
from gplc.models.base import Unknowns
from gplc.posterior import one_blas_thread
from gplc.predictive import Predictive

# Draws that leave-one-out takes, if the chains have more.
MOST_DRAWS = 1000
# Components that are kept of each draw and row for predictive distributions, and of all together.
COMPONENTS, MOST_COMPONENTS = 4, 8_000_000


class Kept(NamedTuple):
    """What is kept of a posterior about rows that are left out; in standard units."""

    log_density: Array  # (chains, draws, n): log p(y_i | y_-i, draw)
    below: Array  # (chains, draws, n): P(Y_i <= y_i | y_-i, draw)
    means: Array  # (chains, draws, n, c): of components of equal weight
    sds: Array

    def of_chain(self, chain: int) -> "Kept":
        """Of one chain alone."""
        return Kept(*(each[chain : chain + 1] for each in self))


def kept_of(
    model: Model, unknowns: Sequence[Sequence[Unknowns]], seed: np.random.SeedSequence
) -> Kept:
    """Ask a model about each draw of each chain."""
    chains, draws = len(unknowns), len(unknowns[0])
    rng = np.random.default_rng(seed)
    count = max(1, min(COMPONENTS, MOST_COMPONENTS // (chains * draws * model.n)))
    shape = chains, draws, model.n
    kept = Kept(*(np.empty(shape) for _ in range(2)), *(np.empty((*shape, count)) for _ in "ms"))
    with one_blas_thread():
        for chain, of_chain in enumerate(unknowns):
            for draw, each in enumerate(of_chain):
                given = model.left_out(each)
                kept.log_density[chain, draw] = given.log_density(model.y)
                kept.below[chain, draw] = given.below(model.y)
                # One in each slice of equal weight, with a shift that belongs to the draw.
                shares = (np.arange(count) + rng.random()) / count
                kept.means[chain, draw], kept.sds[chain, draw] = given.some(shares)
    return kept


def thinned(draws: Draws, most: int) -> NDArray[np.intp]:
    """Numbers of draws, the same in every chain, evenly spaced: at most so many in all chains.

    Examples
    --------
    >>> import numpy as np
    >>> theta, empty = np.zeros((2, 10, 1)), np.empty((2, 10, 0))
    >>> draws = Draws(("noise_sd",), theta, empty, theta[:, :, 0], empty[..., None], empty)
    >>> thinned(draws, 8).tolist()
    [0, 2, 5, 7]
    """
    chains, length = draws.log_density.shape
    count = max(1, min(length, most // chains))
    picked = (np.arange(count) * length) // count
    # A chain that has found no possible state yet is nowhere.
    possible = (draws.log_density[:, picked] > -np.inf).all(axis=0)
    if not possible.any():
        raise ValueError(
            "no draw can be used for leave-one-out: at none is the covariance matrix positive "
            "definite; raise the prior mean of noise_sd, or check for repeated rows"
        )
    return picked[possible]


def unknowns_of(draws: Draws, picked: NDArray[np.intp]) -> list[list[Unknowns]]:
    """The unknowns of some draws, by chain."""
    return [
        [Unknowns(draws.theta[chain, draw], draws.latent[chain, draw]) for draw in picked]
        for chain in range(draws.log_density.shape[0])
    ]


class Weighted(NamedTuple):
    """Smoothed importance weights of draws, for each row."""

    log_weights: Array  # (n, draws), of sum one
    pareto_k: Array  # (n,)
    efficiency: float  # what a draw of the chains is worth, in independent ones


def smoothed(log_density: Array) -> Weighted:
    """Pareto-smoothed weights 1 / p(y_i | y_-i, draw), from their logs (chains, draws, n).

    Examples
    --------
    >>> import numpy as np
    >>> density = np.random.default_rng(0).normal(size=(2, 200, 1))
    >>> weights = smoothed(density)
    >>> round(float(np.exp(weights.log_weights).sum()), 9), bool(weights.pareto_k[0] < 0.7)
    (1.0, True)
    """
    from arviz_stats.base import array_stats  # it takes a second to import: only when needed

    chains, draws, n = log_density.shape
    efficiency = 1.0
    if draws >= 4:
        with np.errstate(all="ignore"):
            effective = array_stats.ess(
                np.exp(log_density - log_density.max(axis=(0, 1))),
                chain_axis=0,
                draw_axis=1,
                method="mean",
            )
        share = float(np.nanmean(effective)) / (chains * draws) if np.size(effective) else 1.0
        efficiency = min(1.0, share) if share > 0.0 else 1.0
    flat = log_density.reshape(-1, n).T
    # The shape of a tail needs a few draws: with less the weights are as they are.
    if flat.shape[1] < 25:
        plain = -flat - logsumexp(-flat, axis=1, keepdims=True)
        return Weighted(plain, np.full(n, np.inf), efficiency)
    # It takes log densities, and one over them itself.
    with np.errstate(all="ignore"):  # draws that were rejected make ties in the tail
        log_weights, found = array_stats.psislw(flat, r_eff=efficiency, axis=-1)
    smooth = np.isfinite(log_weights).all(axis=1, keepdims=True)
    log_weights = np.where(smooth, log_weights, -flat)
    log_weights -= logsumexp(log_weights, axis=1, keepdims=True)
    pareto_k = np.where(smooth[:, 0] & ~np.isnan(found), found, np.inf)
    return Weighted(log_weights, pareto_k, efficiency)


def good_k(draws: int) -> float:
    """Weights can be trusted if k is below min(1 - 1 / log10(draws), 0.7).

    Examples
    --------
    >>> good_k(1000), good_k(100)
    (0.6666666666666667, 0.5)
    """
    return min(1.0 - 1.0 / math.log10(max(draws, 11)), 0.7)


@dataclass(frozen=True)
class LeaveOneOut:
    """What a fit says of each row without that row. Prints as a summary.

    Attributes
    ----------
    log_density : (n,) array
        log p(y_i | y_-i), on the scale of y: large is good. Their sum is `elpd`.
    mcse : (n,) array
        Monte Carlo standard errors of these.
    pareto_k : (n,) array
        Shape of the tail of the importance weights; 0 for rows that were fitted again.
    pit : (n,) array
        P(Y_i <= y_i | y_-i): uniform if the model is right.
    dist : Predictive
        The distribution of each y_i given the others.
    y : (n,) array
        Responses.
    by_draw : (chains, draws, n) array
        log p(y_i | y_-i, draw), on the scale of y, of the draws it comes from.
    picked : (draws,) array of int
        Numbers of these draws, the same in every chain.
    refitted : tuple of int
        Rows for which the model was fitted again without them.

    Examples
    --------
    >>> import gplc
    >>> data = gplc.datasets.make_paper("U1", n=20, random_state=0)
    >>> model = gplc.StandardGP(chains=2, draws=100, warmup=50, random_state=0)
    >>> loo = model.fit(data.X, data.y).loo()
    >>> round(loo.elpd), loo.pareto_k.shape, loo.dist
    (1, (20,), Predictive(n_rows=20, n_components=800))
    >>> loo.interval(0.9).shape
    (20, 2)
    """

    log_density: Array
    mcse: Array
    pareto_k: Array
    pit: Array
    dist: Predictive
    y: Array
    by_draw: Array
    picked: NDArray[np.intp]
    refitted: tuple[int, ...] = ()

    @property
    def n_draws(self) -> int:
        """Posterior draws it comes from."""
        return self.by_draw.shape[0] * self.by_draw.shape[1]

    @property
    def elpd(self) -> float:
        """Expected log density of as many new rows: the sum over rows."""
        return float(self.log_density.sum())

    @property
    def se(self) -> float:
        """Standard error of `elpd`: that of a sum over rows that might have been others."""
        n = self.log_density.size
        return math.sqrt(n) * float(self.log_density.std(ddof=1)) if n > 1 else math.nan

    @property
    def nlpd(self) -> float:
        """Negative log predictive density, the mean over rows; small is good."""
        return -float(self.log_density.mean())

    @property
    def k_threshold(self) -> float:
        """What k has to be below."""
        return good_k(self.n_draws)

    @property
    def bad_rows(self) -> NDArray[np.intp]:
        """Rows whose importance weights cannot be trusted, the worst first."""
        bad = np.flatnonzero(~(self.pareto_k < self.k_threshold))
        return bad[np.argsort(-self.pareto_k[bad], kind="stable")]

    @property
    def surprise(self) -> Array:
        """How far out a row is: -log10 of the two-sided tail probability of its PIT.

        1 for one row in ten, 2 for one in a hundred, whatever the shape of the distribution.

        Examples
        --------
        >>> import types, numpy as np
        >>> LeaveOneOut.surprise.fget(types.SimpleNamespace(pit=np.array([0.5, 0.995]))).round(3)
        array([0., 2.])
        """
        tail = 2.0 * np.minimum(self.pit, 1.0 - self.pit)
        return np.abs(np.log10(np.clip(tail, 1e-16, 1.0)))

    def interval(self, coverage: float = 0.9) -> Array:
        """Equal-tailed intervals of each y_i given all others: (n, 2)."""
        return self.dist.interval(coverage)

    @property
    def verdict(self) -> str:
        """Whether the importance weights can be trusted, in words."""
        bad = self.bad_rows
        if not bad.size:
            return f"fine: every k is below {self.k_threshold:.2f}"
        shown = ", ".join(map(str, bad[:5])) + (", ..." if bad.size > 5 else "")
        many = f"{bad.size} rows have" if bad.size > 1 else "1 row has"
        return (
            f"{many} k above {self.k_threshold:.2f} ({shown}): there the density is uncertain; "
            f"loo(refit={bad.size}) fits again without each"
        )

    @property
    def ok(self) -> bool:
        """Whether all weights can be trusted."""
        return not self.bad_rows.size

    @property
    def _heading(self) -> str:
        again = f", {len(self.refitted)} of them fitted again" if self.refitted else ""
        return (
            f"Leave-one-out of {self.y.size} rows{again}, by importance sampling from "
            f"{self.n_draws} draws"
        )

    def _lines(self) -> Iterator[str]:
        yield f"elpd    {self.elpd:.2f} (SE {self.se:.2f})"
        yield f"NLPD    {self.nlpd:.3f}  in nats a row, small is good"
        error = math.sqrt(float(np.sum(self.mcse**2)))
        yield f"Monte Carlo error of elpd {error:.2f}"
        far = np.argsort(-self.surprise, kind="stable")[:3]
        told = ", ".join(f"row {row} (1 in {10 ** self.surprise[row]:.0f})" for row in far)
        yield f"Most surprising: {told}"
        yield f"Verdict: {self.verdict}."

    def __str__(self) -> str:
        return "\n".join([self._heading, "", *self._lines()])

    def _repr_html_(self) -> str:
        return _html.sentences(self._heading, *self._lines())

    def to_frame(self) -> Any:
        """A table with a row for each row: y, log density, k, PIT, surprise."""
        return Rows().frame(
            {
                "y": self.y,
                "log_density": self.log_density,
                "mcse": self.mcse,
                "pareto_k": self.pareto_k,
                "pit": self.pit,
                "surprise": self.surprise,
            }
        )

    def to_record(self) -> dict[str, Any]:
        """The summary in JSON's terms."""
        return {
            "rows": self.y.size,
            "draws": self.n_draws,
            "elpd": self.elpd,
            "se": self.se,
            "nlpd": self.nlpd,
            "k_threshold": self.k_threshold,
            "bad_rows": self.bad_rows.tolist(),
            "refitted": list(self.refitted),
            "verdict": self.verdict,
        }


class Estimates(NamedTuple):
    """Leave-one-out in standard units."""

    log_density: Array
    mcse: Array
    pareto_k: Array
    pit: Array
    source: ArrayComponents


def estimated(kept: Kept, seed: np.random.SeedSequence) -> Estimates:
    """Averages over draws with the weights of each row.

    log p(y_i | y_-i) = log sum_s weight_is p(y_i | y_-i, draw s); the predictive distribution has
    as many components of equal weight as there are draws, chosen in proportion to their weights.
    """
    weights = smoothed(kept.log_density)
    n = kept.log_density.shape[2]
    logs = kept.log_density.reshape(-1, n).T
    log_density = np.asarray(logsumexp(weights.log_weights + logs, axis=1))
    shares = np.exp(weights.log_weights)
    # Of an average with weights that add up to one.
    spread = np.expm1(np.clip(logs - log_density[:, None], -50.0, 50.0))
    mcse = np.sqrt(np.sum((shares * spread) ** 2, axis=1) / weights.efficiency)
    pit = np.clip(np.sum(shares * kept.below.reshape(-1, n).T, axis=1), 0.0, 1.0)
    return Estimates(log_density, mcse, weights.pareto_k, pit, _resampled(kept, shares, seed))


def _resampled(kept: Kept, shares: Array, seed: np.random.SeedSequence) -> ArrayComponents:
    """Components of equal weight, from draws that are chosen as often as their weights say."""
    n, draws = shares.shape
    count = kept.means.shape[3]
    means, sds = (each.reshape(draws, n, count) for each in (kept.means, kept.sds))
    shifts = np.random.default_rng(seed).random((n,))
    chosen = (np.empty((n, draws * count)), np.empty((n, draws * count)))
    for row in range(n):
        ends = np.cumsum(shares[row])
        wanted = (np.arange(draws) + shifts[row]) / draws
        places = np.searchsorted(ends / ends[-1], wanted)
        places = np.minimum(places, draws - 1)
        chosen[0][row] = means[places, row].ravel()
        chosen[1][row] = sds[places, row].ravel()
    return ArrayComponents(*chosen)


def _error_of_mean(logs: Array) -> float:
    """Monte Carlo standard error of the log of a mean, from logs (chains, draws)."""
    from arviz_stats.base import array_stats

    shares = np.exp(logs - logs.max())
    if logs.shape[1] < 4:
        return math.nan
    return float(array_stats.mcse(shares, chain_axis=0, draw_axis=1) / shares.mean())


Refit = Callable[[int], Sequence[Sequence[Unknowns]]]


def replaced(
    estimates: Estimates,
    model: Model,
    rows: Sequence[int],
    refit: Refit,
    seed: np.random.SeedSequence,
) -> Estimates:
    """The estimates with some rows from fits without them: plain averages over draws.

    `refit` gives unknowns of the whole model, drawn without a row; what they say of the latent
    value of that row does not enter.
    """
    log_density, mcse, pareto_k, pit, source = estimates
    log_density, mcse, pareto_k, pit = (each.copy() for each in (log_density, mcse, pareto_k, pit))
    means, sds = source.means.copy(), source.sds.copy()
    for row in rows:
        kept = kept_of(model, refit(row), seed)
        logs = kept.log_density[:, :, row].ravel()
        log_density[row] = logsumexp(logs) - math.log(logs.size)
        mcse[row] = _error_of_mean(kept.log_density[:, :, row])
        pareto_k[row] = 0.0
        pit[row] = float(np.mean(kept.below[:, :, row]))
        places = np.arange(means.shape[1]) * kept.means[:, :, row].size // means.shape[1]
        means[row] = kept.means[:, :, row].ravel()[places]
        sds[row] = kept.sds[:, :, row].ravel()[places]
    return Estimates(log_density, mcse, pareto_k, pit, ArrayComponents(means, sds))


# Steps of the iteration for stacking weights, and the change at which it ends.
MOST_STEPS, SMALLEST_STEP = 10_000, 1e-9


def stacking_weights(log_density: Array) -> Array:
    """Weights of a mixture of models that predicts left-out rows best: (models,) with sum 1.

    They maximize sum_i log sum_k weight_k p_k(y_i | y_-i) (Yao, Vehtari, Simpson and Gelman 2018),
    by the EM iteration, which goes up at each step; the maximum is the only one.

    Parameters
    ----------
    log_density : (models, n) array
        log p_k(y_i | y_-i).

    Examples
    --------
    >>> import numpy as np
    >>> stacking_weights(np.log([[0.5, 0.5, 0.5], [0.1, 0.1, 0.1]])).round(3).tolist()
    [1.0, 0.0]
    >>> stacking_weights(np.log([[0.9, 0.1], [0.1, 0.9]])).round(3).tolist()
    [0.5, 0.5]
    """
    relative = np.exp(log_density - log_density.max(axis=0))
    weights = np.full(len(relative), 1.0 / len(relative))
    for _ in range(MOST_STEPS):
        shares = weights[:, None] * relative
        shares /= shares.sum(axis=0)
        before, weights = weights, shares.mean(axis=1)
        if np.abs(weights - before).max() < SMALLEST_STEP:
            break
    return weights


def stacked_density(log_density: Array, weights: Array) -> Array:
    """Log density of each row under a mixture of models, from those of each: (n,)."""
    return np.asarray(logsumexp(log_density, axis=0, b=weights[:, None]))
