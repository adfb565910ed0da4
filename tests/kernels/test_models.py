"""The models with kernels of all kinds: densities, sweeps, free moves, predictions."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from scipy.linalg import cholesky, solve_triangular
from scipy.stats import ks_2samp, multivariate_normal, norm

from gplc.chains import run_chain
from gplc.kernels import (
    Constant,
    LatentMoves,
    Linear,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
    Sign,
    SquaredExponential,
)
from gplc.models import LatentCovariate, LatentVariance, Standard, Unknowns, Update
from gplc.samplers import Direct, SliceSweep
from tests.kernels.strategies import Cauchy, Laplace, Negative, kernels

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(7, 2)), RNG.normal(size=7)

# On x and w: with and without parts that multiply, with products, and with a kernel of the user's.
COVARIATE = {
    "default": None,
    "default, written out": Constant(1.0)
    + SquaredExponential(constant=0.0).on("x") * SquaredExponential(constant=0.0, sd=1.0).on("w"),
    "SE + linear": SquaredExponential() + Linear(),
    "standard": SquaredExponential().on("x") + Linear().on("w"),
    "variance": Matern52().on("x")
    + Linear(sd=1.0).on("w") * SquaredExponential(constant=0.5).on("x"),
    "joint Matern": Constant(1.0) + Matern32() + RationalQuadratic(ard=False),
    "periodic": SquaredExponential() * Periodic().on("w") + Linear(ard=False).on(0, "w"),
    "branches": SquaredExponential().on("x") + Sign().on(0, "w") * SquaredExponential(),
    "user's on x": SquaredExponential() + Laplace().on("x"),
    "user's on w": SquaredExponential() + Cauchy().on(0, "w"),
}
ON_X = {
    "Matern": Matern32() + Linear(),
    "product": Constant(1.0) + SquaredExponential(constant=0.0) * Periodic(sd=1.0).on(1),
    "rational": RationalQuadratic().on(0) + Laplace().on(1),
}

MODELS = {
    **{f"gplc {name}": (LatentCovariate, {"kernel": k}) for name, k in COVARIATE.items()},
    "gplc two": (LatentCovariate, {"n_latent": 2}),
    "gplc two, apart": (
        LatentCovariate,
        {"n_latent": 2, "kernel": SquaredExponential().on("x", "w0") + Linear().on("w1")},
    ),
    "gplc two, branches": (
        LatentCovariate,
        {
            "n_latent": 2,
            "kernel": SquaredExponential().on("x")
            + Sign(sd=1.0).on("w0") * Matern32().on("x")
            + Linear(sd=1.0).on("w1") * SquaredExponential().on("x"),
        },
    ),
    "gplc fixed noise": (LatentCovariate, {"noise_sd": 0.3}),
    "gplc linear mean": (LatentCovariate, {"mean": "linear"}),
    **{f"std {name}": (Standard, {"kernel": k}) for name, k in ON_X.items()},
    "std constant mean": (Standard, {"mean": "constant"}),
    "gplv kernels": (
        LatentVariance,
        {"kernel": ON_X["product"], "kernel_z": ON_X["rational"], "jitter": 0.3},
    ),
    "gplv centre": (LatentVariance, {"mean_z": -0.8, "jitter": 0.3}),
    "gplv learned": (LatentVariance, {"link": "learned", "jitter": 0.3}),
}
every_model = pytest.mark.parametrize("name", MODELS)
every_gplc = pytest.mark.parametrize("name", [name for name in MODELS if name.startswith("gplc")])


def build(name, n=7):
    cls, options = MODELS[name]
    return cls(X[:n], Y[:n], **options)


def draw(model, seed=1):
    rng = np.random.default_rng(seed)
    theta = 0.3 * rng.normal(size=len(model.names))
    return model.unknowns(theta, model.sample_latent(rng, theta))


def inputs(model, unknowns):
    if not isinstance(model, LatentCovariate):
        return model.X, 0
    return np.hstack([model.X, model.columns(unknowns.latent).T]), model.n_covariates


def covariance_by_hand(model, unknowns):
    """C from `Kernel.matrix` and the formula of the model."""
    theta, latent = unknowns
    A, q = inputs(model, unknowns)
    size = len(model.processes[0].bound.names)
    matrix = model.processes[0].bound.kernel.matrix(theta[:size], A, A, q)
    if isinstance(model, LatentVariance):
        if model.link.name == "learned":
            weights = np.exp(theta[-3:])
            parts = [np.log1p(np.exp(latent - knot)) for knot in (-2.0, 0.0, 2.0)]
            return matrix + np.diag((weights @ parts) ** 2)
        return matrix + np.diag(np.exp(2.0 * latent))
    noise = getattr(model, "noise_sd", None) or np.exp(theta[-1])
    return matrix + noise**2 * np.eye(model.n)


@every_model
def test_log_density_and_covariance_are_the_formulas(name):
    model = build(name)
    unknowns = draw(model)
    theta, latent = unknowns
    by_hand = covariance_by_hand(model, unknowns)
    np.testing.assert_allclose(model.covariance(unknowns), by_hand, rtol=1e-11, atol=1e-12)
    total = multivariate_normal(np.zeros(model.n), by_hand).logpdf(model.y)
    total += norm.logpdf(theta, model.priors.means, model.priors.sds).sum()
    if isinstance(model, LatentCovariate):
        total += norm.logpdf(latent).sum()
    if isinstance(model, LatentVariance):
        first = len(model.processes[0].bound.names)
        own = theta[first : first + len(model.processes[1].bound.names)]
        c_z = model.kernel_z.matrix(own, model.X, model.X) + model.jitter**2 * np.eye(model.n)
        total += multivariate_normal(np.full(model.n, model.mean_z), c_z).logpdf(latent)
    assert model.log_density(unknowns) == pytest.approx(total, rel=1e-9)


@every_model
def test_gradient_agrees_with_finite_differences(name):
    model, step = build(name), 1e-5
    unknowns = draw(model)
    gradient = model.gradient(unknowns)
    for which in ("theta", "latent"):
        values = getattr(unknowns, which)
        for k in range(values.size):
            move = step * (np.arange(values.size) == k)
            ends = [
                model.log_density(unknowns._replace(**{which: values + sign * move}))
                for sign in (1.0, -1.0)
            ]
            difference = (ends[0] - ends[1]) / (2.0 * step)
            assert getattr(gradient, which)[k] == pytest.approx(difference, rel=1e-4, abs=1e-4), k


@every_model
def test_changing_one_hyperparameter_gives_the_density_of_a_fresh_start(name):
    model = build(name)
    unknowns = draw(model)
    for k, part in enumerate(model.names):
        point, target = model.parts[part](model.state(unknowns))
        changed = target.evaluate(point.position + 0.37)
        theta = unknowns.theta.copy()
        theta[k] += 0.37
        fresh = model.log_density(Unknowns(theta, unknowns.latent))
        assert changed.log_density == pytest.approx(fresh, rel=1e-11), part


@every_model
def test_schemes_run_and_report_the_density_of_the_draw(name):
    model = build(name)
    for scheme in ("paper", "default"):
        chain = run_chain(model, scheme, seed=1, draws=3, warmup=4)
        for theta, latent, value in zip(chain.theta, chain.latent, chain.log_density, strict=True):
            assert value == pytest.approx(model.log_density(Unknowns(theta, latent)), abs=1e-7)


# Sweeps over w.


@every_gplc
def test_factor_after_a_sweep_is_that_of_the_new_covariance(name):
    model = build(name)
    state = model.state(draw(model))
    for _ in range(2):
        state, info = model.step(np.random.default_rng(2), state, Update("w", SliceSweep(4.0)))
    assert info.n_exhausted == info.n_impossible == 0
    assert (state.latent != draw(model).latent).all()
    lower = cholesky(model.covariance(state.unknowns), lower=True)
    np.testing.assert_allclose(np.triu(state.solved[0].factor.upper), lower.T, atol=1e-9)
    whitened = solve_triangular(lower, model.y, lower=True)
    np.testing.assert_allclose(state.solved[0].factor.whitened, whitened, atol=1e-8)


def test_sweep_of_a_users_kernel_has_the_distribution_of_the_compiled_one(monkeypatch):
    # The same model swept both ways, in independent short chains; KS on 3 statistics at 1e-5 each.
    model, ends = build("gplc SE + linear", n=4), {}
    unknowns, sampler = draw(model), SliceSweep(2.0)
    for way in ("compiled", "plain"):
        if way == "plain":
            monkeypatch.setattr(type(model.bound), "in_latent", lambda *_: None)
        rng, ends[way] = np.random.default_rng(len(way)), []
        for _ in range(150):
            state = model.state(unknowns)
            for _ in range(2):
                point, target = model.parts["w"](state)
                state = sampler.step(rng, point, target)[0].payload
            ends[way].append(
                [
                    state.latent @ state.latent,
                    (state.latent[0] - state.latent[3]) ** 2,
                    state.log_density,
                ]
            )
    for one, two in zip(*(np.transpose(each) for each in ends.values()), strict=True):
        assert ks_2samp(one, two).pvalue > 1e-5


# Moves under which the likelihood does not change.

FREE = ("shift", "scale", "reflection", "exchange")


def largest_change(model, unknowns):
    """Most that any free move of the model's default scheme changes the likelihood."""
    worst, rng = 0.0, np.random.default_rng(3)
    state = model.state(unknowns)
    if state.solved[0].factor is None:
        return 0.0
    for update in model.scheme("default"):
        if update.part.split("[")[0] not in FREE:
            continue
        for _ in range(3):
            state, _ = model.step(rng, state, update)
            fresh = model.state(state.unknowns)
            if fresh.solved[0].factor is None:
                return 0.0  # at the edge of what can be factored: nothing to compare
            gap = abs(fresh.solved[0].factor.log_density - state.solved[0].factor.log_density)
            worst = max(worst, gap / (1.0 + abs(fresh.solved[0].factor.log_density)))
    return worst


@settings(max_examples=40, deadline=None, derandomize=True)
@given(kernels(2))
def test_free_moves_are_free_for_random_kernels(kernel):
    try:
        model = LatentCovariate(X, Y, kernel, n_latent=2, noise_sd=0.5)
    except ValueError as error:  # it does not see both
        assume("no term of kernel sees" not in str(error))
        raise
    assert largest_change(model, draw(model)) < 1e-8


@pytest.mark.parametrize("leaf", [Linear(), Periodic().on(0, "w"), Linear(sd=1.0), Sign()])
def test_a_kernel_that_claims_too_much_is_caught(leaf, monkeypatch):
    everything = LatentMoves(shift=True, reflection=True, scale=())
    monkeypatch.setattr(type(leaf), "moves", lambda *_: everything)
    model = LatentCovariate(X, Y, SquaredExponential() + leaf, noise_sd=0.5)
    assert largest_change(model, draw(model)) > 1e-4


def parts(kernel, **options):
    model = LatentCovariate(X, Y, kernel, **options)
    return [p for p in model.parts if p.split("[")[0] in FREE]


def test_which_moves_are_free():
    assert set(parts(None)) == {"shift", "scale", "reflection"}
    assert {"exchange", "shift[1]"} <= set(parts(None, n_latent=2))
    assert set(parts(SquaredExponential() + Linear())) == {"scale", "reflection"}
    assert set(parts(SquaredExponential().on("x") + Linear(sd=1.0).on("w"))) == {"reflection"}
    assert set(parts(SquaredExponential() * Periodic().on(0, "w"))) == {"shift", "reflection"}
    assert set(parts(SquaredExponential() + Sign())) == {"scale", "reflection"}
    assert parts(SquaredExponential() + Cauchy()) == []  # a kernel of the user's claims nothing
    two = parts(SquaredExponential().on("x", "w0") + Linear().on("w1"), n_latent=2)
    assert set(two) == {"shift[0]", "scale[0]", "reflection[0]", "scale[1]", "reflection[1]"}


def test_a_scale_carried_by_several_hyperparameters_moves_all():
    model = LatentCovariate(X, Y, SquaredExponential() + Linear())
    places = dict(model.bound.moves(0).scale)
    assert {model.names[k]: sign for k, sign in places.items()} == {
        "latent_length_scale": 1.0,
        "latent_slope_sd": -1.0,
    }


# Prediction.

NEW = np.random.default_rng(4).normal(size=(3, 2))
GRID = np.linspace(-8.0, 8.0, 320)
WEIGHTS = norm.pdf(GRID) * (GRID[1] - GRID[0])


@every_gplc
def test_prediction_is_the_textbook_formula(name):
    model = build(name)
    unknowns = draw(model)
    A, q = inputs(model, unknowns)
    size, kernel = len(model.bound.names), model.bound.kernel
    theta, inverse = unknowns.theta[:size], np.linalg.inv(covariance_by_hand(model, unknowns))
    noise = model.noise_variances(unknowns.theta)[0]
    nodes = np.array([[-1.1, 0.0, 0.7], [0.4, 2.0, -0.3]])[:q]
    conditioned = model.condition(unknowns)
    means, sds = conditioned.components(NEW, nodes.ravel())
    np.testing.assert_allclose(conditioned.means(NEW, nodes.ravel()), means, atol=1e-9)
    for s, node in enumerate(nodes.T):
        B = np.hstack([NEW, np.tile(node, (len(NEW), 1))])
        cross = kernel.matrix(theta, B, A, q)
        own = np.diagonal(kernel.matrix(theta, B, B, q))
        np.testing.assert_allclose(means[:, s], cross @ inverse @ model.y, atol=1e-8)
        left = own - np.einsum("ij,jk,ik->i", cross, inverse, cross) + noise
        np.testing.assert_allclose(sds[:, s] ** 2, left, atol=1e-8)


@pytest.mark.parametrize("name", [f"gplc {name}" for name in COVARIATE])
def test_regression_function_agrees_with_quadrature_over_w(name):
    model = build(name)
    unknowns = draw(model)
    A, _ = inputs(model, unknowns)
    size, kernel = len(model.bound.names), model.bound.kernel
    theta, inverse = unknowns.theta[:size], np.linalg.inv(covariance_by_hand(model, unknowns))
    mean, variance = model.condition(unknowns).function(NEW)
    for row, x in enumerate(NEW):
        B = np.hstack([np.tile(x, (GRID.size, 1)), GRID[:, None]])
        cross = WEIGHTS @ kernel.matrix(theta, B, A, 1)
        own = WEIGHTS @ kernel.matrix(theta, B, B, 1) @ WEIGHTS
        # Rules are less exact where the kernel has a kink or a step, or a short period.
        rough = {"gplc joint Matern": 5e-4, "gplc periodic": 5e-5, "gplc branches": 2e-3}
        exact = rough.get(name, 1e-6)
        assert mean[row] == pytest.approx(cross @ inverse @ model.y, abs=exact)
        assert variance[row] == pytest.approx(own - cross @ inverse @ cross, abs=exact)


def test_two_latent_covariates_average_over_both():
    # One that matters and one that, at a length scale of a million, does not.
    one, two = build("gplc default"), build("gplc two")
    unknowns = draw(one)
    eta, rho_0, rho_1, rho_w, sigma = unknowns.theta
    both = Unknowns(
        np.array([eta, rho_0, rho_1, rho_w, np.log(1e6), sigma]),
        np.concatenate([unknowns.latent, np.ones(one.n)]),
    )
    for exact, rule in zip(
        one.condition(unknowns).function(NEW), two.condition(both).function(NEW), strict=True
    ):
        np.testing.assert_allclose(exact, rule, atol=1e-5)
    nodes = np.array([-1.0, 0.5, 1.5])
    many = np.concatenate([nodes, [0.3, -0.2, 2.0]])
    for exact, rule in zip(
        one.condition(unknowns).components(NEW, nodes),
        two.condition(both).components(NEW, many),
        strict=True,
    ):
        np.testing.assert_allclose(exact, rule, atol=1e-8)


def test_a_general_kernel_with_the_default_form_is_the_default():
    plain, written = build("gplc default"), build("gplc default, written out")
    theta = np.array([0.1, -0.2, 0.3, 0.4, -0.5])
    latent = draw(plain).latent
    left, right = (m.condition(Unknowns(theta, latent)) for m in (plain, written))
    nodes = np.array([-0.7, 0.1, 1.3])
    for ask in ("components", "residual_variance"):
        np.testing.assert_allclose(
            getattr(left, ask)(NEW, nodes), getattr(right, ask)(NEW, nodes), rtol=1e-6
        )


# Errors.


def test_what_a_model_cannot_use_is_refused_at_the_door():
    with pytest.raises(ValueError, match="no term of kernel sees the latent covariate w0"):
        LatentCovariate(X, Y, SquaredExponential().on("x"))
    with pytest.raises(ValueError, match="w1"):
        LatentCovariate(X, Y, SquaredExponential().on("x", "w0"), n_latent=2)
    with pytest.raises(ValueError, match="kernel must be a Kernel or None, got 'rbf'"):
        Standard(X, Y, "rbf")
    with pytest.raises(ValueError, match="kernel_z must be a Kernel or None, got 3"):
        LatentVariance(X, Y, kernel_z=3)
    with pytest.raises(ValueError, match="no latent covariate"):
        Standard(X, Y, SquaredExponential().on("w"))
    with pytest.raises(ValueError, match=r"n_latent must be .*at most 5, got 0"):
        LatentCovariate(X, Y, n_latent=0)
    with pytest.raises(ValueError, match=r"noise_sd must be .*got 0"):
        LatentCovariate(X, Y, noise_sd=0)
    with pytest.raises(ValueError, match="mean must be one of"):
        Standard(X, Y, mean="quadratic")
    for cls in (Standard, LatentCovariate, LatentVariance):
        with pytest.raises(ValueError, match="not positive semi-definite"):
            cls(X, Y, SquaredExponential(constant=0.0) * Negative())
    with pytest.raises(ValueError, match="not positive semi-definite"):
        LatentVariance(X, Y, kernel_z=Negative())
    learned = build("gplv learned")
    assert "z sites" not in learned.parts
    with pytest.raises(ValueError, match=r"'slice' updates single values of z"):
        learned.scheme("slice")


def test_a_users_prior_counts_and_can_be_replaced():
    model = Standard(X, Y, Laplace(), {"reach": (1.0, 0.2)})
    assert model.names == ("signal_sd", "reach", "noise_sd")
    assert model.priors.means.tolist() == [0.0, 1.0, -1.0]
    assert Standard(X, Y, Laplace()).priors.sds.tolist() == [1.0, 0.5, 1.5]


def test_a_direct_draw_is_what_the_free_moves_need():
    samplers = {u.part: u.sampler for u in build("gplc two").scheme("default")}
    assert isinstance(samplers["shift[1]"], Direct)
