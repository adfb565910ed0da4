"""The models against plain formulas, written out here by none of the package's code."""

import inspect
import itertools

import numpy as np
import pytest
from scipy.stats import chi2, kstest, multivariate_normal, norm

from gplc.chains import advance, run_chain, start
from gplc.kernels import Matern32, SquaredExponential
from gplc.models import MODELS, LatentCovariate, LatentVariance, Unknowns, Update
from gplc.models.latent_covariate.model import local_ranks
from gplc.priors import default_prior
from gplc.samplers import Direct

VARIANTS = [("std", {}), ("gplc", {}), ("gplv", {"link": "log"}), ("gplv", {"link": "abs"})]
KERNELS = [
    (1, True, 1.0),  # inputs, ARD, constant
    (1, False, 0.0),
    (3, True, 0.0),
    (3, True, 1.0),
    (3, False, 2.5),
]
CASES = [(*variant, *kernel) for variant, kernel in itertools.product(VARIANTS, KERNELS)]
IDS = ["-".join(str(part) for part in (k, *o.values(), p, a, c)) for k, o, p, a, c in CASES]

every_case = pytest.mark.parametrize("case", CASES, ids=IDS)


def build(case, n=7, seed=0, **more):
    key, options, p, ard, constant = case
    rng = np.random.default_rng(seed)
    return MODELS[key](
        rng.normal(size=(n, p)),
        rng.normal(size=n),
        SquaredExponential(ard=ard, constant=constant),
        **options,
        **more,
    )


def draw(model, rng):
    """Unknowns that keep condition numbers moderate, latent values from their prior."""
    theta = rng.normal(size=len(model.names)) * 0.4
    return model.unknowns(theta, model.sample_latent(rng, theta))


# The paper's formulas, entry by entry.


def kernel_entry(kernel, eta, rhos, a, b):
    rhos = np.broadcast_to(rhos, a.shape)
    total = sum((a[k] - b[k]) ** 2 / rhos[k] ** 2 for k in range(len(a)))
    return kernel.constant**2 + eta**2 * np.exp(-total)


def covariances_by_hand(model, unknowns):
    """C (of y), and C_z where there is one."""
    values, latent, n = np.exp(unknowns.theta), unknowns.latent, model.n
    c, c_z = np.empty((n, n)), np.empty((n, n))
    for i in range(n):
        for j in range(n):
            xi, xj = model.X[i], model.X[j]
            if model.key == "std":
                eta, *rhos, sigma = values
                c[i, j] = kernel_entry(model.kernel, eta, rhos, xi, xj) + sigma**2 * (i == j)
            elif model.key == "gplc":
                eta, *rhos, rho_w, sigma = values
                a, b = np.append(xi, latent[i]), np.append(xj, latent[j])
                all_rhos = np.append(np.broadcast_to(rhos, xi.shape), rho_w)
                c[i, j] = kernel_entry(model.kernel, eta, all_rhos, a, b) + sigma**2 * (i == j)
            else:
                half = len(values) // 2
                sd = np.exp(latent[i]) if model.link.name == "log" else abs(latent[i])
                c[i, j] = kernel_entry(model.kernel, values[0], values[1:half], xi, xj)
                c[i, j] += sd**2 * (i == j)
                c_z[i, j] = kernel_entry(
                    model.kernel_z, values[half], values[half + 1 :], xi, xj
                ) + model.jitter**2 * (i == j)
    return c, c_z


def log_density_by_hand(model, unknowns):
    c, c_z = covariances_by_hand(model, unknowns)
    total = multivariate_normal(np.zeros(model.n), c).logpdf(model.y)
    for name, value in zip(model.names, unknowns.theta, strict=True):
        prior = default_prior(name, model.X.shape[1])
        total += norm.logpdf(value, prior.mean, prior.sd)
    if model.key == "gplc":
        total += norm.logpdf(unknowns.latent).sum()
    if model.key == "gplv":
        total += multivariate_normal(np.zeros(model.n), c_z).logpdf(unknowns.latent)
    return total


@every_case
def test_log_density_agrees_with_scipy(case, note):
    model, rng = build(case), np.random.default_rng(1)
    worst = 0.0
    for _ in range(20):
        unknowns = draw(model, rng)
        exact = log_density_by_hand(model, unknowns)
        worst = max(worst, abs(model.log_density(unknowns) - exact) / max(1.0, abs(exact)))
    note("error", float(worst))
    assert worst < 1e-9


@every_case
def test_covariance_is_the_papers_formula(case):
    model, rng = build(case), np.random.default_rng(2)
    for _ in range(3):
        unknowns = draw(model, rng)
        by_hand, _ = covariances_by_hand(model, unknowns)
        np.testing.assert_allclose(model.covariance(unknowns), by_hand, rtol=1e-12, atol=1e-13)


@every_case
def test_gradient_agrees_with_finite_differences(case):
    # A larger jitter keeps the differences themselves accurate; the gradient formula is the same.
    more = {"jitter": 0.3} if case[0] == "gplv" else {}
    model, rng, step = build(case, **more), np.random.default_rng(3), 1e-5
    for _ in range(3):
        unknowns = draw(model, rng)
        gradient = model.gradient(unknowns)
        for which in ("theta", "latent"):
            values = getattr(unknowns, which)
            for k in range(values.size):
                ends = []
                for sign in (1.0, -1.0):
                    moved = values.copy()
                    moved[k] += sign * step
                    ends.append(model.log_density(unknowns._replace(**{which: moved})))
                difference = (ends[0] - ends[1]) / (2.0 * step)
                assert getattr(gradient, which)[k] == pytest.approx(
                    difference, rel=1e-5, abs=1e-5
                ), (which, k)


def test_gradient_of_an_impossible_state_is_nan():
    for key, cls in MODELS.items():
        model = cls(np.zeros((3, 1)), np.ones(3), SquaredExponential(constant=0.0))
        theta = model.prior_mean().theta
        theta[0] = 40.0  # swamps what is on the diagonal
        latent = np.full(model.n_latent, -30.0 if key == "gplv" else 0.0)
        gradient = model.gradient(Unknowns(theta, latent))
        assert model.log_density(Unknowns(theta, latent)) == -np.inf
        assert np.isnan(gradient.theta).all()
        assert gradient.latent.size == model.n_latent


def assert_same_state(left, right):
    """Every array of two states is equal up to rounding, factors in their upper triangle."""
    assert left.log_density == pytest.approx(right.log_density, rel=1e-12, abs=1e-12)
    for a, b in zip(left.unknowns, right.unknowns, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    for one, other in zip(left.solved, right.solved, strict=True):
        np.testing.assert_array_equal(one.theta, left.theta)
        for mine, theirs in zip(one.pieces, other.pieces, strict=True):
            for a, b in zip(mine, theirs, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
        assert (one.factor is None) == (other.factor is None)
        if one.factor is not None:
            a, b = one.factor, other.factor
            np.testing.assert_allclose(np.triu(a.upper), np.triu(b.upper), rtol=0, atol=1e-12)
            np.testing.assert_allclose(a.whitened, b.whitened, rtol=1e-9, atol=1e-9)


@every_case
def test_changing_one_hyperparameter_gives_the_state_of_a_fresh_start(case):
    model, rng = build(case), np.random.default_rng(4)
    unknowns = draw(model, rng)
    for k, name in enumerate(model.names):
        point, target = model.parts[name](model.state(unknowns))
        assert point.position == unknowns.theta[k]
        changed = target.evaluate(point.position + 0.37)
        theta = unknowns.theta.copy()
        theta[k] += 0.37
        fresh = model.state(Unknowns(theta, unknowns.latent))
        assert_same_state(changed.payload, fresh)
        assert changed.log_density == changed.payload.log_density


# Draws. Seeds are fixed; with fresh ones each check below would fail a right model with
# probability below 1e-5.


drawn_cases = pytest.mark.parametrize("case", CASES[::5] + CASES[3::5])


@drawn_cases
def test_prior_draws_have_the_priors_moments(case):
    model, rng = build(case, n=3), np.random.default_rng(5)
    draws = np.array([model.sample_prior(rng).theta for _ in range(2000)])
    for k, name in enumerate(model.names):
        prior = default_prior(name, model.X.shape[1])
        assert kstest((draws[:, k] - prior.mean) / prior.sd, "norm").pvalue > 1e-6, name


@drawn_cases
def test_latent_and_data_draws_have_their_covariance(case):
    more = {"jitter": 0.3} if case[0] == "gplv" else {}
    model, rng, repeats = build(case, n=4, **more), np.random.default_rng(6), 2000
    unknowns = draw(model, rng)
    c, c_z = covariances_by_hand(model, unknowns)
    samples = {"data": (c, [model.sample_data(rng, unknowns) for _ in range(repeats)])}
    if model.n_latent:
        of_latent = c_z if model.key == "gplv" else np.eye(model.n)
        latent = [model.sample_latent(rng, unknowns.theta) for _ in range(repeats)]
        samples["latent"] = (of_latent, latent)
    for what, (covariance, values) in samples.items():
        white = np.linalg.solve(np.linalg.cholesky(covariance), np.array(values).T)
        assert kstest(white.ravel(), "norm").pvalue > 1e-6, what
        total = chi2(white.size).cdf((white**2).sum())
        assert 1e-6 < total < 1.0 - 1e-6, what
        correlation = np.corrcoef(white) - np.eye(model.n)
        assert np.abs(correlation).max() < 5.5 / np.sqrt(repeats), what


# Prediction.


def cross_covariance(model, theta, latent, x, w=None):
    """k(x, cases) of the main process."""
    values = np.exp(theta)
    result = np.empty(model.n)
    for j in range(model.n):
        if model.key == "gplc":
            eta, *rhos, rho_w, _ = values
            result[j] = kernel_entry(
                model.kernel,
                eta,
                np.append(np.broadcast_to(rhos, x.shape), rho_w),
                np.append(x, w),
                np.append(model.X[j], latent[j]),
            )
        else:
            rhos = values[1:-1] if model.key == "std" else values[1 : len(values) // 2]
            result[j] = kernel_entry(model.kernel, values[0], rhos, x, model.X[j])
    return result


@every_case
def test_prediction_is_the_textbook_formula(case):
    more = {"jitter": 0.1} if case[0] == "gplv" else {}
    model, rng = build(case, n=6, **more), np.random.default_rng(7)
    unknowns = draw(model, rng)
    theta, latent = unknowns
    c, c_z = covariances_by_hand(model, unknowns)
    inverse = np.linalg.inv(c)
    new, nodes = rng.normal(size=(4, model.X.shape[1])), np.array([-1.1, 0.0, 0.4, 2.0])
    means, sds = model.condition(unknowns).components(new, nodes)
    f_mean, f_variance = model.condition(unknowns).function(new)
    residual = model.condition(unknowns).residual_variance(new, nodes)
    prior_variance = model.kernel.constant**2 + np.exp(2.0 * theta[0])
    assert means.shape == sds.shape == (4, 1 if model.key == "std" else nodes.size)
    for row, x in enumerate(new):
        if model.key == "gplc":
            for column, node in enumerate(nodes):
                k = cross_covariance(model, theta, latent, x, node)
                variance = prior_variance - k @ inverse @ k + np.exp(2.0 * theta[-1])
                assert means[row, column] == pytest.approx(k @ inverse @ model.y, abs=1e-9)
                assert sds[row, column] ** 2 == pytest.approx(variance, abs=1e-9)
            continue
        k = cross_covariance(model, theta, latent, x)
        mean, variance = k @ inverse @ model.y, prior_variance - k @ inverse @ k
        assert f_mean[row] == pytest.approx(mean, abs=1e-9)
        assert f_variance[row] == pytest.approx(variance, abs=1e-9)
        np.testing.assert_allclose(means[row], mean, atol=1e-9)
        if model.key == "std":
            noise = np.exp(2.0 * theta[-1])
            assert residual[row] == pytest.approx(noise)
        else:
            half = theta.size // 2
            values = np.exp(theta[half:])
            k_z = [kernel_entry(model.kernel_z, values[0], values[1:], x, b) for b in model.X]
            inverse_z = np.linalg.inv(c_z)
            z_mean = k_z @ inverse_z @ latent
            z_variance = (
                model.kernel.constant**2 + values[0] ** 2 + model.jitter**2 - k_z @ inverse_z @ k_z
            )
            z = z_mean + np.sqrt(z_variance) * nodes
            noise = np.exp(2.0 * z) if model.link.name == "log" else z**2
            assert residual[row] == pytest.approx(noise.mean(), rel=1e-7)
        np.testing.assert_allclose(sds[row] ** 2, variance + noise, rtol=1e-7)


# The trapezoidal rule over w ~ N(0, 1): accurate to rounding, at short length scales too.
GRID = np.linspace(-9.0, 9.0, 361)
GRID_WEIGHTS = norm.pdf(GRID) * (GRID[1] - GRID[0])


@pytest.mark.parametrize("kernel", KERNELS)
def test_gplc_function_and_residual_variance_agree_with_quadrature_over_w(kernel):
    model, rng = build(("gplc", {}, *kernel), n=6), np.random.default_rng(8)
    unknowns = draw(model, rng)
    theta, latent = unknowns
    rho_w, noise = np.exp(theta[-2]), np.exp(2.0 * theta[-1])
    inverse = np.linalg.inv(covariances_by_hand(model, unknowns)[0])
    new = rng.normal(size=(3, model.X.shape[1]))
    conditioned = model.condition(unknowns)
    f_mean, f_variance = conditioned.function(new)
    nodes = norm.ppf((np.arange(4000) + 0.5) / 4000)
    residual = conditioned.residual_variance(new, nodes)
    between = np.exp(-((GRID[:, None] - GRID) ** 2) / rho_w**2)
    for row, x in enumerate(new):
        cross = np.array([cross_covariance(model, theta, latent, x, w) for w in GRID])
        g_mean = cross @ inverse @ model.y
        g_covariance = (
            model.kernel.constant**2 + np.exp(2.0 * theta[0]) * between - cross @ inverse @ cross.T
        )
        mean = GRID_WEIGHTS @ g_mean
        variance = GRID_WEIGHTS @ g_covariance @ GRID_WEIGHTS
        second_moment = GRID_WEIGHTS @ (g_mean**2 + np.diag(g_covariance))
        assert f_mean[row] == pytest.approx(mean, abs=1e-8)
        assert f_variance[row] == pytest.approx(variance, abs=1e-8)
        # 4,000 quantiles for an integral: accurate to about 1e-4.
        expected = second_moment - mean**2 - variance + noise
        assert residual[row] == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("scale", ["log", "abs"])
def test_gplv_residual_variance_with_many_nodes_is_the_closed_form(scale):
    model, rng = build(("gplv", {"link": scale}, 1, True, 1.0)), np.random.default_rng(9)
    unknowns = draw(model, rng)
    new = np.array([[-0.7], [0.1], [3.0]])
    conditioned = model.condition(unknowns)
    nodes = norm.ppf((np.arange(4000) + 0.5) / 4000)
    residual = conditioned.residual_variance(new, nodes)
    two = (
        conditioned.residual_variance(new, np.array([0.0])),
        conditioned.residual_variance(new, np.array([1.0])),
    )
    if scale == "log":  # E exp(2z) = exp(2m + 2v), the SD read off the nodes 0 and 1
        mean = 0.5 * np.log(two[0])
        sd = 0.5 * np.log(two[1]) - mean
        np.testing.assert_allclose(residual, np.exp(2 * mean + 2 * sd**2), rtol=0.02)
    else:
        inverse = np.linalg.inv(covariances_by_hand(model, unknowns)[1])
        values = np.exp(unknowns.theta[2:])
        for row, x in enumerate(new):
            k = [kernel_entry(model.kernel_z, values[0], values[1:], x, b) for b in model.X]
            mean = k @ inverse @ unknowns.latent
            variance = 1.0 + values[0] ** 2 + model.jitter**2 - k @ inverse @ k
            assert residual[row] == pytest.approx(mean**2 + variance, rel=2e-3)


def test_a_draw_that_cannot_be_factored_gets_a_little_more_noise():
    model = MODELS["std"](np.zeros((3, 1)), np.ones(3))
    unknowns = model.unknowns([3.0, 0.0, -40.0])
    assert model.log_density(unknowns) == -np.inf
    mean, _ = model.condition(unknowns).function(np.zeros((1, 1)))
    assert mean[0] == pytest.approx(1.0, abs=1e-3)
    assert model.ledger["noise of C raised"] == 1


def test_prediction_from_an_impossible_draw_says_what_to_do():
    model = MODELS["std"](np.zeros((3, 1)), np.ones(3), kernel=Matern32(sd=0.0))
    with pytest.raises(ValueError, match=r"not positive definite.*raise the prior"):
        model.condition(model.unknowns([0.0, -400.0])).function(np.zeros((1, 1)))


# What every model owes the rest of the package.


@pytest.fixture(params=sorted(MODELS))
def model(request):
    rng = np.random.default_rng(10)
    return MODELS[request.param](rng.normal(size=(8, 2)), rng.normal(size=8))


class TestContract:
    def test_names_are_unique_and_have_priors(self, model):
        assert len(set(model.names)) == len(model.names)
        assert len(model.names) == model.priors.means.size == model.prior_mean().theta.size
        assert np.isfinite(model.priors.means).all()
        assert (model.priors.sds > 0.0).all()

    def test_every_hyperparameter_is_a_part(self, model):
        assert set(model.names) <= set(model.parts)

    def test_schemes_have_a_default_and_the_papers(self, model):
        assert {"default", "paper"} <= set(model.schemes)

    def test_schemes_update_known_parts_and_all_unknowns(self, model):
        for name in model.schemes:
            parts = [update.part for update in model.scheme(name)]
            assert set(parts) <= set(model.parts)
            if {"all", "surrogate"} & set(parts):
                continue  # either of them holds every unknown
            assert "hyperparameters" in parts or set(model.names) <= set(parts)
            if model.n_latent:
                assert set(parts) & {"w", "z", "z sites", "function", "marginal"}

    def test_every_scheme_runs_and_moves_everything(self, model):
        for name in model.schemes:
            chain = run_chain(model, name, seed=1, draws=3, warmup=40)
            assert chain.theta.shape == (3, len(model.names))
            assert chain.latent.shape == (3, model.n_latent)
            assert np.isfinite(chain.log_density).all()
            begun = start(model, model.scheme(name), 1).unknowns
            assert (chain.theta[-1] != begun.theta).all()
            assert (chain.latent[-1] != begun.latent).all()

    def test_reported_log_density_is_that_of_the_draw(self, model):
        for name in model.schemes:
            chain = run_chain(model, name, seed=2, draws=5, warmup=5)
            for theta, latent, value in zip(
                chain.theta, chain.latent, chain.log_density, strict=True
            ):
                assert value == pytest.approx(model.log_density(Unknowns(theta, latent)), abs=1e-7)

    def test_every_part_offers_the_present_state(self, model):
        state = model.state(model.sample_prior(np.random.default_rng(3)))
        for open_part in model.parts.values():
            point, _ = open_part(state)
            for same, now in zip(point.payload.unknowns, state.unknowns, strict=True):
                assert np.array_equal(same, now)
            assert point.payload.log_density == state.log_density

    def test_the_same_seed_gives_the_same_draws(self, model):
        for name in model.schemes:
            one, two, other = (
                run_chain(model, name, seed=s, draws=4, warmup=3) for s in (5, 5, 6)
            )
            assert np.array_equal(one.theta, two.theta)
            assert np.array_equal(one.latent, two.latent)
            assert not np.array_equal(one.theta, other.theta)

    @pytest.mark.parametrize("tune", [True, False])
    def test_ten_and_ten_iterations_are_twenty_bit_for_bit(self, model, tune):
        for name in model.schemes:
            begun = start(model, model.scheme(name), 7)
            whole = advance(model, begun, 20, tune)
            first = advance(model, begun, 10, tune)
            second = advance(model, first.position, 10, tune)
            assert np.array_equal(whole.theta, np.concatenate([first.theta, second.theta]))
            assert np.array_equal(whole.latent, np.concatenate([first.latent, second.latent]))
            assert np.array_equal(
                whole.log_density, np.concatenate([first.log_density, second.log_density])
            )
            assert second.position.iteration == 20

    def test_a_step_leaves_the_old_state_alone(self, model):
        for name in model.schemes:
            state = model.state(model.sample_prior(np.random.default_rng(11)))
            for update in model.scheme(name):
                theta, latent = state.unknowns
                kept = theta.copy(), latent.copy(), state.log_density
                model.step(np.random.default_rng(12), state, update)
                assert np.array_equal(theta, kept[0])
                assert np.array_equal(latent, kept[1])
                assert_same_state(state, model.state(state.unknowns))

    def test_with_data_is_the_model_of_other_responses(self, model):
        y = np.linspace(-1.0, 2.0, model.n)
        other = model.with_data(y)
        unknowns = model.sample_prior(np.random.default_rng(13))
        assert np.array_equal(other.y, y)
        assert other.log_density(unknowns) != model.log_density(unknowns)
        assert other.log_density(unknowns) == type(model)(model.X, y).log_density(unknowns)
        point, _ = other.parts[model.names[0]](other.state(unknowns))
        assert point.log_density == other.log_density(unknowns)
        with pytest.raises(ValueError, match=r"y must have 8 entries, got 3"):
            model.with_data([1.0, 2.0, 3.0])

    def test_prediction_has_its_shapes(self, model):
        new, nodes = np.zeros((5, 2)), np.array([-1.0, 0.0, 1.0])
        conditioned = model.condition(model.sample_prior(np.random.default_rng(14)))
        means, sds = conditioned.components(new, nodes)
        assert means.shape == sds.shape
        assert means.shape[0] == 5
        assert (sds > 0).all()
        assert [part.shape for part in conditioned.function(new)] == [(5,), (5,)]
        assert conditioned.residual_variance(new, nodes).shape == (5,)

    def test_unknown_scheme_part_and_setting_are_errors_that_name_them(self, model):
        with pytest.raises(ValueError, match=r"scheme must be one of .*got 'gibbs'"):
            model.scheme("gibbs")
        with pytest.raises(ValueError, match=r"does not take \['depth'\]"):
            model.scheme("paper", depth=3)
        with pytest.raises(ValueError, match=r"scheme part must be one of .*got 'q'"):
            run_chain(model, [Update("q", Direct())], seed=0, draws=1)

    def test_bad_chain_lengths_are_errors_that_name_them(self, model):
        with pytest.raises(ValueError, match=r"draws must be an integer of at least 1, got 0"):
            run_chain(model, draws=0)
        with pytest.raises(ValueError, match=r"warmup must be an integer of at least 0, got -1"):
            run_chain(model, warmup=-1)

    def test_unknowns_of_the_wrong_length_are_an_error(self, model):
        with pytest.raises(ValueError, match=r"theta must have .* got 1 and 0"):
            model.unknowns([0.0])

    def test_a_taken_key_is_an_error(self, model):
        with pytest.raises(ValueError, match=f"{model.key!r} is taken"):
            type("Copy", (type(model),), {"key": model.key})

    def test_a_variant_without_a_key_of_its_own_is_not_entered(self, model):
        variant = type("Variant", (type(model),), {})
        assert MODELS[variant.key] is type(model)


def test_the_papers_settings_are_the_papers():
    defaults = inspect.signature(LatentVariance.paper_scheme).parameters
    assert (defaults["step_size"].default, defaults["repeats"].default) == (0.3, 40)
    model = LatentVariance([[0.0], [1.0]], [0.0, 1.0])
    # m updates of z after each hyperparameter of the secondary process, none after the others.
    assert [update.part for update in model.scheme("paper")] == [
        "signal_sd_y",
        "length_scale_y",
        "signal_sd_z",
        "z",
        "length_scale_z",
        "z",
    ]


def test_priors_can_be_replaced_by_name_and_the_density_follows():
    X, y = np.arange(6.0).reshape(3, 2), np.zeros(3)
    priors = {"length_scale": (0.5, 0.2), "length_scale[1]": (-1.0, 2.0)}
    default, other = MODELS["std"](X, y), MODELS["std"](X, y, priors=priors)
    theta = np.array([0.1, 0.2, 0.3, -0.4])
    change = other.log_density(other.unknowns(theta)) - default.log_density(
        default.unknowns(theta)
    )
    expected = (
        norm.logpdf(0.2, 0.5, 0.2)
        + norm.logpdf(0.3, -1.0, 2.0)
        - norm.logpdf([0.2, 0.3], 0.5 * np.log(2.0), 1.5).sum()
    )
    assert change == pytest.approx(expected, abs=1e-10)


def test_gplc_begins_with_one_direction_of_w_everywhere():
    rng = np.random.default_rng(5)
    X = rng.uniform(-1.0, 1.0, size=(400, 2))
    side, rest = np.where(rng.random(400) < 0.5, -1.0, 1.0), rng.standard_normal(400)
    model = LatentCovariate(X, 0.5 * np.sin(2.0 * X[:, 0]) + 6.0 * side + rest, n_latent=2)
    starts = [model.starting_latent(np.random.default_rng(seed), np.empty(0)) for seed in range(8)]
    # The first tells which half a case is in, the second where in its half.
    for columns, truth in zip(
        np.reshape(starts, (8, 2, 400)).swapaxes(0, 1), (side, rest), strict=True
    ):
        correlations = np.array([np.corrcoef(w, truth)[0, 1] for w in columns])
        assert (np.abs(correlations) > 0.4).all()
        assert set(np.sign(correlations)) == {-1.0, 1.0}
        # Chains are apart, and w is spread as under the prior.
        assert np.abs(np.corrcoef(columns) - np.eye(8)).max() < 0.95
        np.testing.assert_allclose(columns.std(axis=1), 1.0, atol=0.2)


def test_ranks_among_neighbours():
    X = np.repeat([[0.0], [10.0]], 3, axis=0)
    y = np.array([1.0, 2.0, 3.0, 300.0, 200.0, 100.0])
    np.testing.assert_allclose(local_ranks(X, y, 3), np.array([1, 3, 5, 5, 3, 1]) / 6)
    np.testing.assert_allclose(local_ranks(X, np.ones(6), 99), 0.5)  # ties, and few cases
    assert local_ranks(np.ones((1, 2)), np.zeros(1), 5) == 0.5
