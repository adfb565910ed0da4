"""NumPyro's NUTS on the posteriors of gplc's models: the peer of `benchmarks/race.py`.

The densities are written as a user of NumPyro would (GPLV whitened, which is what works), in
double precision. That they are the model's own is checked at the draws themselves, see
`check_density`.

Three things decide how fast NumPyro looks, none of which has to do with its sampler; all are
settled in its favour here.

- `MCMC.run` compiles anew at every call, 4 to 7 CPU seconds each. Here `NUTS.sample` is compiled
  once for a model, inside a `lax.scan`, and serves warm-up and draws of all seeds.
- JAX borrows SciPy's LAPACK. More than one thread of it makes n = 100 ten times slower and more.
- XLA's own pool of threads costs CPU time too: with a pool of one (NPROC) leaps take 1.3 to 1.8
  times less.
"""

import functools
import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from gplc._compiled import cells as compiled_cells
from gplc._compiled.pools import END
from gplc.models import Model
from gplc.models.latent_covariate.marginal import grid

Array = NDArray[np.float64]

TARGET_ACCEPTANCE = 0.9
# Draws between two looks at the clock.
BATCH = 20
# Largest gap between NumPyro's log density and the model's own.
DENSITY_GAP = 1e-4


class PeerDraws(NamedTuple):
    """Draws after warm-up, and the CPU time of these alone."""

    theta: Array  # (draws, k)
    latent: Array  # (draws, n_latent)
    log_density: Array  # the model's own
    seconds: float
    leaps: float  # steps of a trajectory, on average
    divergences: int


class Compiled(NamedTuple):
    """NUTS for one model."""

    start: Callable[[Any], Any]  # random key to state
    batch: Callable[[Any], Any]  # state to state and what `compiled_for` records of BATCH draws
    finish: Callable[[Any], Any]  # values as sampled to all sites of the model


def sampler(
    warmup: int, of_function: bool = False
) -> Callable[[Model, int, float], PeerDraws] | None:
    """NUTS on a model with a seed, for so many CPU seconds; None if NumPyro is not installed.

    With `of_function` it samples g of GPLC, with w summed out; w is drawn afterwards.
    """
    # Read when JAX starts: one thread for everything.
    os.environ.setdefault("NPROC", "1")
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    try:
        import jax
        import numpyro  # noqa: F401
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)
    program = function_program_of if of_function else program_of
    compiled = functools.cache(lambda model: compiled_for(model, program(model), warmup))

    def run(model: Model, seed: int, seconds: float) -> PeerDraws:
        with threadpool_limits(limits=1):
            return draws(model, compiled(model), warmup, seed, seconds)

    return run


def program_of(model: Model) -> Callable[[], None]:
    """The model, written for NumPyro."""
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    X, y, eye = jnp.asarray(model.X), jnp.asarray(model.y), jnp.eye(model.n)
    gaps = (X.T[:, :, None] - X.T[:, None, :]) ** 2
    priors = model.priors

    def covariance(theta: Any, distances: Any) -> Any:
        decay = jnp.tensordot(jnp.exp(-2.0 * theta[1:]), distances, 1)
        return 1.0 + jnp.exp(2.0 * theta[0]) * jnp.exp(-decay)

    def program() -> None:
        theta = numpyro.sample("theta", dist.Normal(priors.means, priors.sds))
        if model.key == "gplv":
            split = theta.size // 2
            root = jnp.linalg.cholesky(covariance(theta[split:], gaps) + 1e-6 * eye)
            u = numpyro.sample("u", dist.Normal(jnp.zeros(model.n), 1.0))
            z = numpyro.deterministic("latent", root @ u)
            C = covariance(theta[:split], gaps) + jnp.diag(jnp.exp(2.0 * z))
            # The density of z, which the model gives, is that of u over the determinant.
            numpyro.deterministic("log_determinant", jnp.log(jnp.diag(root)).sum())
        else:
            distances = gaps
            if model.key == "gplc":
                w = numpyro.sample("latent", dist.Normal(jnp.zeros(model.n), 1.0))
                distances = jnp.concatenate([gaps, ((w[:, None] - w) ** 2)[None]])
            C = covariance(theta[:-1], distances) + jnp.exp(2.0 * theta[-1]) * eye
        numpyro.sample("y", dist.MultivariateNormal(0.0, C), obs=y)

    return program


def function_program_of(model: Model) -> Callable[[], None]:
    """GPLC with g sampled in whitened form, and w summed out over the cells of our own scheme.

    g = c xi + eta Phi Z A', with roots Phi of the correlation in x and A of that in w, both from
    points: evenly spread for one input and for w, the cases themselves for more inputs.
    """
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from jax.scipy.linalg import solve_triangular
    from jax.scipy.special import logsumexp

    cells = grid().cells
    X, y, priors, p = jnp.asarray(model.X), jnp.asarray(model.y), model.priors, model.X.shape[1]
    points = jnp.linspace(X.min(), X.max(), 40)[:, None] if p == 1 else X
    knots = jnp.linspace(-END, END, 16)[:, None]
    centres = jnp.asarray(cells.centres)[:, None]
    half = centres.size // 2
    first = np.r_[0, np.arange(half - 1), half, np.arange(half, 2 * half - 1)]
    last = np.r_[np.arange(1, half), half - 1, np.arange(half + 1, 2 * half), 2 * half - 1]

    def root(a: Any, b: Any, log_rho: Any) -> Any:
        def correlation(c: Any, d: Any) -> Any:
            gaps = (c[:, None, :] - d[None]) * jnp.exp(-log_rho)
            return jnp.exp(-jnp.sum(gaps**2, axis=2))

        lower = jnp.linalg.cholesky(correlation(b, b) + 1e-7 * jnp.eye(len(b)))
        return solve_triangular(lower, correlation(b, a), lower=True).T

    def program() -> None:
        theta = numpyro.sample("theta", dist.Normal(priors.means, priors.sds))
        shape = (len(points), len(knots))
        Z = numpyro.sample("Z", dist.Normal(jnp.zeros(shape), 1.0).to_event(2))
        xi = numpyro.sample("xi", dist.Normal(0.0, 1.0))
        phi, a = root(X, points, theta[1 : 1 + p]), root(centres, knots, theta[1 + p])
        values = xi + jnp.exp(theta[0]) * phi @ Z @ a.T
        numpyro.deterministic("values", values)
        slopes = (values[:, last] - values[:, first]) * cells.inverse_gaps
        v = jnp.exp(2.0 * theta[-1]) + cells.variances * slopes**2
        each = cells.log_weights - 0.5 * (y[:, None] - values) ** 2 / v - 0.5 * jnp.log(v)
        numpyro.factor("y", logsumexp(each, axis=1).sum())

    return program


def latents_given(model: Model, theta: Array, values: Array, seed: int) -> Array:
    """W of every case, given g in the cells at each draw."""
    rng = np.random.default_rng(seed)
    result = np.empty(values.shape[:2])
    for own, at, w in zip(theta, values, result, strict=True):
        variances = np.full(model.n, np.exp(2.0 * own[-1]))
        random = rng.random(model.n), rng.standard_normal(model.n)
        compiled_cells.draw(
            np.ascontiguousarray(at),
            model.y,
            variances,
            grid().cells,
            *random,
            w,
            np.empty(w.size),
        )
    return result


def compiled_for(model: Model, program: Callable[[], None], warmup: int) -> Compiled:
    """NUTS for a program, compiled; whether it still warms up is in its state."""
    import jax
    from numpyro.infer import NUTS

    kernel = NUTS(program, target_accept_prob=TARGET_ACCEPTANCE)

    def start(key: Any) -> Any:
        return kernel.init(key, warmup, None, (), {})

    def one(state: Any, _: None) -> Any:
        state = kernel.sample(state, (), {})
        return state, (state.z, state.potential_energy, state.num_steps, state.diverging)

    first = start(jax.random.PRNGKey(0))
    batch = jax.jit(lambda state: jax.lax.scan(one, state, None, length=BATCH))
    finish = jax.jit(jax.vmap(kernel.postprocess_fn((), {})))
    return Compiled(start, batch.lower(first).compile(), finish)


def draws(model: Model, nuts: Compiled, warmup: int, seed: int, seconds: float) -> PeerDraws:
    """Warm-up, then draws until their CPU time is used up."""
    import jax

    state = nuts.start(jax.random.PRNGKey(seed))
    for _ in range(-(-warmup // BATCH)):
        state, _ = jax.block_until_ready(nuts.batch(state))
    recorded = []
    spent = 0.0
    while spent < seconds:
        began = time.process_time()
        state, batch = jax.block_until_ready(nuts.batch(state))
        spent += time.process_time() - began
        recorded.append(batch)
    values, potential, leaps, diverging = jax.tree.map(
        lambda *parts: np.concatenate(parts), *recorded
    )
    sites = {name: np.asarray(value) for name, value in nuts.finish(values).items()}
    theta = sites["theta"]
    if "values" in sites:
        latent = latents_given(model, theta, sites["values"], seed)
    else:
        latent = sites.get("latent", np.empty((len(theta), 0)))
    log_density = np.array(
        [model.log_density(model.unknowns(*pair)) for pair in zip(theta, latent, strict=True)]
    )
    # GPLV's density is that of z in the model, that of u = L^-1 z here. That of a function has no
    # counterpart: posterior means show whether it is the same model.
    if "values" not in sites:
        check_density(log_density, -potential - sites.get("log_determinant", 0.0))
    return PeerDraws(
        theta, latent, log_density, spent, float(leaps.mean()), int(np.sum(diverging))
    )


def check_density(own: Array, peers: Array) -> None:
    """Both samplers have to have the same posterior, at every draw, constants apart."""
    gap = own - peers
    gap = np.max(np.abs(gap - np.median(gap)))
    if not gap < DENSITY_GAP:
        raise RuntimeError(
            f"NumPyro's log density differs from the model's by up to {gap:.2g}: program_of does "
            "not say what the model says"
        )
