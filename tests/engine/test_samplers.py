"""The samplers on targets of known mean, and on targets that misbehave.

Means: t over 32 replicate chains has 31 degrees of freedom, |t| > 5 has probability 2.1e-5; with
about 25 such checks, right samplers with fresh seeds would fail once in 2,000 runs.
"""

import math

import numpy as np
import pytest
from scipy.special import digamma, polygamma

from gplc._compiled import slice_walk
from gplc.chains import advance, run_chain, start
from gplc.models import MODELS, LatentVariance, Update
from gplc.models.surrogate import surrogate_of
from gplc.samplers import (
    Direct,
    EllipticalSlice,
    Hamiltonian,
    Info,
    Metropolis,
    MetropolisSweep,
    ModifiedMetropolis,
    OccasionalSlice,
    Point,
    Slice,
    SliceSweep,
    SurrogateHamiltonian,
    SymmetricProposal,
)
from gplc.samplers.protocol import (
    GaussianTarget,
    GradientTarget,
    ScalarTarget,
    SurrogateTarget,
    impossible,
)

REPLICATES, LARGEST_T = 32, 5.0


def run(sampler, point, target, rng, steps):
    positions = []
    for _ in range(steps):
        point, _ = sampler.step(rng, point, target)
        positions.append(point.position)
    return np.array(positions)


def t_of(means, exact):
    means = np.asarray(means)
    return (means.mean(axis=0) - exact) / (means.std(axis=0, ddof=1) / np.sqrt(len(means)))


def streams(seed):
    return [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(REPLICATES)]


# Skewed targets: a symmetric one hides moves that are mirrored.


def log_gamma(shape):
    """Density of the logarithm of a gamma variable: a long tail to the left."""
    return ScalarTarget(lambda x: Point(x, shape * x - math.exp(min(x, 700.0))))


def two_humps(x):
    return Point(
        x, float(np.logaddexp(-0.5 * (x / 0.3) ** 2, -1.0 - 0.5 * ((x - 2.0) / 0.8) ** 2))
    )


def three_spikes(x):
    """Where stepping out by 1 lands depends on where the first interval is placed."""
    gaps = (np.array([0.0, 0.5, 1.2]) - x) / 0.04
    return Point(x, float(np.logaddexp.reduce(-0.5 * gaps**2)))


class Walk:
    """The compiled slice update of one value, told every density that it asks for."""

    def __init__(self, width, max_steps=100):
        self.limits = slice_walk.Limits(width, max_steps, 200)

    def step(self, rng, point, target):
        walks, known, wanted = slice_walk.no_walks(1, 0, self.limits), 0, 1
        slice_walk.begin_walks(rng, np.array([point.position]), self.limits, walks)
        while wanted:
            chosen, wanted, _ = slice_walk.walk_on(rng, walks, 0, known, self.limits)
            for k in range(known, known + wanted):
                walks.density[0, k] = target.evaluate(float(walks.points[0, k])).log_density
            known += wanted
        assert chosen > 0
        return target.evaluate(float(walks.points[0, chosen])), None


SCALAR = {
    "Metropolis": Metropolis(1.5),
    "Metropolis, long steps": Metropolis(6.0),
    "slice": Slice(1.0),
    "slice, narrow": Slice(0.2),
    "slice, narrow and few steps": Slice(0.2, max_steps=3),
    "slice, wide": Slice(50.0),
    "compiled slice": Walk(1.0),
    "compiled slice, narrow and few steps": Walk(0.2, max_steps=3),
}


@pytest.mark.parametrize("name", SCALAR)
def test_scalar_sampler_has_the_mean_and_variance_of_a_skewed_target(name, note):
    target = log_gamma(0.7)
    exact = [digamma(0.7), polygamma(1, 0.7) + digamma(0.7) ** 2]
    means = []
    for rng in streams(1):
        start_at = target.evaluate(math.log(rng.gamma(0.7)))  # in equilibrium
        x = run(SCALAR[name], start_at, target, rng, 250)
        means.append([x.mean(), (x**2).mean()])
    t = t_of(means, exact)
    note("t", t)
    assert np.abs(t).max() < LARGEST_T


@pytest.mark.parametrize("name", ["Metropolis", "slice", "compiled slice"])
@pytest.mark.parametrize("density", [two_humps, three_spikes])
def test_scalar_sampler_has_the_mean_of_a_target_with_several_humps(name, density):
    target, grid = ScalarTarget(density), np.linspace(-6.0, 9.0, 6001)
    weights = np.exp([density(x).log_density for x in grid])
    exact = (weights @ grid) / weights.sum()
    means = [
        run(SCALAR[name], target.evaluate(0.0), target, r, 400)[40:].mean() for r in streams(2)
    ]
    assert abs(t_of(means, exact)) < LARGEST_T


ROOT = np.array([[1.0, 0.0], [0.6, 0.8]])


def skewed_likelihood(z):
    return Point(z, 1.5 * z[0] - math.exp(min(z[0] - 0.5 * z[1], 700.0)))


VECTOR = {
    "modified Metropolis, a = 0.3": ModifiedMetropolis(0.3, 4),
    "modified Metropolis, a = 1": ModifiedMetropolis(1.0, 2),
    "elliptical slice": EllipticalSlice(),
    "elliptical slice, three times": EllipticalSlice(3),
}


@pytest.mark.parametrize("name", VECTOR)
def test_vector_sampler_has_the_means_of_a_skewed_posterior(name, note):
    axis = np.linspace(-7.0, 7.0, 281)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    precision = np.linalg.inv(ROOT @ ROOT.T)
    log_density = (
        1.5 * grid[:, 0]
        - np.exp(grid[:, 0] - 0.5 * grid[:, 1])
        - 0.5 * np.einsum("si,ij,sj->s", grid, precision, grid)
    )
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    exact = [weights @ grid[:, 0], weights @ grid[:, 1], weights @ (grid[:, 0] * grid[:, 1])]
    target = GaussianTarget(lambda u: ROOT @ u, skewed_likelihood)
    means = []
    for rng in streams(3):
        z = run(VECTOR[name], target.evaluate(np.zeros(2)), target, rng, 330)[30:]
        means.append([z[:, 0].mean(), z[:, 1].mean(), (z[:, 0] * z[:, 1]).mean()])
    t = t_of(means, exact)
    note("t", t)
    assert np.abs(t).max() < LARGEST_T


# Tuning.


@pytest.mark.parametrize("first", [1e-3, 1.0, 300.0])
def test_metropolis_adapts_to_half_of_its_proposals_accepted(first):
    target, rng = log_gamma(2.0), np.random.default_rng(4)
    sampler, point = Metropolis(first), target.evaluate(0.5)
    for iteration in range(1, 1001):
        point, info = sampler.step(rng, point, target)
        sampler = sampler.tuned(info, iteration)
    accepted = []
    for _ in range(4000):
        point, info = sampler.step(rng, point, target)
        accepted.append(info.acceptance)
    # The rate itself, within the spread of the last adapted steps and of 4,000 correlated trials.
    assert 0.38 < np.mean(accepted) < 0.62


def test_metropolis_sweep_adapts_every_coordinate():
    sampler = MetropolisSweep(1.0)
    for iteration in range(1, 400):
        steps = np.broadcast_to(sampler.step_sizes, 3)
        # A stand-in for a target: acceptance falls with the step, at another rate for each.
        acceptance = np.exp(-steps / np.array([0.01, 1.0, 50.0]))
        sampler = sampler.tuned(Info(acceptance, 3), iteration)
    np.testing.assert_allclose(
        sampler.step_sizes, np.log(2.0) * np.array([0.01, 1.0, 50.0]), rtol=0.05
    )


def test_nothing_is_tuned_after_warm_up():
    rng = np.random.default_rng(5)
    model = LatentVariance(rng.normal(size=(6, 1)), rng.normal(size=6))
    for name in model.schemes:
        begun = start(model, model.scheme(name), 6)
        tuned = advance(model, begun, 30, tune=True).position
        frozen = advance(model, tuned, 30, tune=False).position
        assert [repr(u) for u in frozen.scheme] == [repr(u) for u in tuned.scheme]
        changed = [
            a != b for a, b in zip(map(repr, begun.scheme), map(repr, tuned.scheme), strict=True)
        ]
        assert any(changed)


def test_chain_of_hyperparameters_accepts_about_half():
    rng = np.random.default_rng(7)
    model = LatentVariance(rng.normal(size=(10, 1)), rng.normal(size=10))
    chain = run_chain(model, "metropolis", seed=8, draws=400, warmup=400)
    for name in (*model.names, "z sites"):
        assert 0.3 < chain.acceptance[name] < 0.7, name


# Bad settings.


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Slice(-1.0), r"width must be .*above 0.*got -1\.0; start at"),
        (lambda: Slice(0.0), r"width must be .*got 0\.0; start at"),
        (lambda: Slice(math.nan), r"width must be .*got nan; start at"),
        (lambda: Slice(math.inf), r"width must be .*got inf; start at"),
        (lambda: Slice("wide"), r"width must be .*got 'wide'; start at"),
        (lambda: Slice(1.0, max_steps=0), r"max_steps must be .*at least 1, got 0; 100"),
        (lambda: Slice(1.0, max_steps=2.5), r"max_steps must be .*got 2\.5; 100"),
        (lambda: Slice(1.0, max_shrinks=0), r"max_shrinks must be .*got 0; 200"),
        (lambda: SliceSweep(-2.0), r"width must be .*got -2\.0; start at"),
        (lambda: SliceSweep(1.0, max_steps=-1), r"max_steps must be .*got -1; 100"),
        (lambda: SliceSweep(1.0, max_shrinks=True), r"max_shrinks must be .*got True; 200"),
        (lambda: Metropolis(0.0), r"step_size must be .*got 0\.0; start at"),
        (lambda: Metropolis(-0.1), r"step_size must be .*got -0\.1; start at"),
        (lambda: Metropolis(1.0, wanted=1.0), r"wanted must be in \(0, 1\), got 1\.0; 0\.5"),
        (lambda: MetropolisSweep(0.0), r"step_sizes must be .*got 0\.0; start at"),
        (lambda: MetropolisSweep(np.array([1.0, -3.0])), r"step_sizes must be .*-3\.0; start"),
        (lambda: ModifiedMetropolis(0.0), r"step_size must be .*at most 1.*got 0\.0; .*halve"),
        (lambda: ModifiedMetropolis(1.5), r"step_size must be .*at most 1.*got 1\.5; .*halve"),
        (lambda: ModifiedMetropolis(0.3, 0), r"repeats must be .*at least 1, got 0; the paper"),
        (lambda: ModifiedMetropolis(0.3, 1.5), r"repeats must be .*got 1\.5; the paper"),
        (lambda: SymmetricProposal(0), r"repeats must be .*at least 1, got 0;"),
        (lambda: EllipticalSlice(0), r"repeats must be .*at least 1, got 0; 1 is"),
        (lambda: EllipticalSlice(1, max_shrinks=0), r"max_shrinks must be .*got 0; 200"),
    ],
)
def test_bad_setting_is_an_error_that_says_what_to_do(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("key", ["std", "gplc", "gplv"])
def test_bad_setting_of_a_scheme_is_the_same_error(key):
    model = MODELS[key]([[0.0], [1.0]], [0.0, 1.0])
    setting = {"step_size": 1.5} if key == "gplv" else {"width": -1.0}
    with pytest.raises(ValueError, match=rf"{next(iter(setting))} must be"):
        model.scheme("paper", **setting)


# Targets that misbehave: every loop ends, every event is counted, and nothing impossible is
# accepted while the present point is possible.

DENSITIES = {
    "always -inf": lambda x: -math.inf,
    "always NaN": lambda x: math.nan,
    "a spike": lambda x: 0.0 if x == 1.0 else -math.inf,
    "a spike in NaN": lambda x: 0.0 if x == 1.0 else math.nan,
    "NaN on one side": lambda x: -0.5 * x * x if x < 1.5 else math.nan,
    "flat for ever": lambda x: 0.0,
    "growing for ever": lambda x: 1e300 * x,
    "steep": lambda x: -1e300 * abs(x - 1.0),
}
PRESENT = {"as evaluated": None, "-inf": -math.inf, "NaN": math.nan}


class Counted:
    def __init__(self, density):
        self.density, self.n, self.n_impossible = density, 0, 0

    def __call__(self, position):
        self.n += 1
        x = position if np.isscalar(position) else position[0]
        value = self.density(float(x))
        self.n_impossible += impossible(value)
        return Point(position, value)


@pytest.mark.parametrize("present", PRESENT)
@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize(
    "sampler",
    [Slice(), Slice(1e-6), Slice(1e6), Metropolis(), ModifiedMetropolis(), EllipticalSlice(2)],
)
def test_misbehaving_density_neither_hangs_nor_goes_unseen(sampler, density, present):
    of_vector = isinstance(sampler, (ModifiedMetropolis, EllipticalSlice))
    target = Counted(DENSITIES[density])
    position = np.array([1.0, 0.0]) if of_vector else 1.0
    log_density = target(position).log_density if PRESENT[present] is None else PRESENT[present]
    point, rng = Point(position, log_density), np.random.default_rng(9)
    wrapped = GaussianTarget(lambda u: u, target) if of_vector else ScalarTarget(target)
    for _ in range(5):
        target.n = target.n_impossible = 0
        was_possible = not impossible(point.log_density)
        point, info = sampler.step(rng, point, wrapped)
        assert target.n == info.n_evaluations <= 1000
        assert info.n_impossible >= target.n_impossible
        if was_possible:
            assert not impossible(point.log_density)
        if density in ("always -inf", "always NaN") and present != "as evaluated":
            assert np.all(point.position == position)
        if not np.array_equal(point.position, position):
            assert not impossible(point.log_density)


def test_giving_up_is_counted_and_leaves_the_point():
    target, rng = Counted(DENSITIES["a spike"]), np.random.default_rng(10)
    point, info = Slice(max_shrinks=5).step(rng, Point(1.0, 0.0), ScalarTarget(target))
    assert (point.position, info.n_exhausted) == (1.0, 1)
    vector = Point(np.array([1.0, 0.0]), 0.0)
    point, info = EllipticalSlice(2, 5).step(rng, vector, GaussianTarget(lambda u: u, target))
    assert point is vector
    assert info.n_exhausted == 2


def test_payload_travels_with_the_point():
    target = ScalarTarget(lambda x: Point(x, -abs(x), payload=("of", x)))
    rng = np.random.default_rng(11)
    for sampler in (Slice(), Metropolis()):
        point = target.evaluate(0.3)
        for _ in range(20):
            point, _ = sampler.step(rng, point, target)
            assert point.payload == ("of", point.position)


def test_direct_sampler_takes_what_the_target_draws():
    class Target:
        def draw(self, rng):
            return Point(42.0, 0.0)

    point, info = Direct().step(np.random.default_rng(0), Point(0.0, 0.0), Target())
    assert point.position == 42.0
    assert info.acceptance == 1.0
    assert Direct().tuned(info, 1) == Direct()
    assert Update("shift", Direct()).part == "shift"


# Hamiltonian Monte Carlo


def log_gammas(shapes):
    """Independent logarithms of gamma variables, squeezed and tied together by a matrix."""
    mix = np.array([[1.0, 0.0], [0.8, 0.1]])
    undo = np.linalg.inv(mix)

    def evaluate(q):
        x = undo @ q
        return Point(q, float(shapes @ x - np.exp(np.minimum(x, 700.0)).sum()))

    def gradient(point):
        x = undo @ point.position
        return undo.T @ (shapes - np.exp(np.minimum(x, 700.0)))

    return GradientTarget(evaluate, gradient), mix @ digamma(shapes)


@pytest.mark.parametrize("dense", [False, True])
def test_hamiltonian_finds_the_means_of_skewed_targets(dense):
    target, exact = log_gammas(np.array([2.0, 5.0]))
    means = []
    for rng in streams(11):
        sampler, point = Hamiltonian(8, dense=dense), target.evaluate(exact)
        for iteration in range(1, 121):
            point, info = sampler.step(rng, point, target)
            sampler = sampler.tuned(info, iteration)
        means.append(run(sampler, point, target, rng, 300).mean(axis=0))
    assert np.abs(t_of(means, exact)).max() < LARGEST_T


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("conditional", [False, True])
def test_hamiltonian_learns_scales_and_step_size(dense, conditional):
    sds = np.array([0.01, 0.2, 1.0]) if dense or conditional else np.array([0.01, 1.0, 100.0])
    target = GradientTarget(
        lambda q: Point(q, -0.5 * float(np.sum((q / sds) ** 2))),
        lambda point: -point.position / sds**2,
    )
    rng, sampler = np.random.default_rng(1), Hamiltonian(10, dense=dense, conditional=conditional)
    point = target.evaluate(sds * rng.standard_normal(3))
    accepted = []
    for iteration in range(1, 401):
        point, info = sampler.step(rng, point, target)
        sampler = sampler.tuned(info, iteration)
        accepted.append(info.acceptance)
    learned = np.asarray(sampler.scales)
    root = learned if dense else np.diag(learned)
    assert np.allclose(np.sqrt(np.diagonal(root @ root.T)) / sds, 1.0, atol=0.4)
    assert 0.6 < np.mean(accepted[-100:]) < 0.95


def test_hamiltonian_learns_the_curvature_of_a_block_and_not_its_spread():
    # The centre wanders far while the block moves little: only the curvature is right for it.
    rng, sampler = np.random.default_rng(2), Hamiltonian(5, dense=True, conditional=True)
    precision = np.linalg.inv(np.array([[0.04, 0.03], [0.03, 0.04]]))
    position = np.zeros(2)
    for iteration in range(1, 401):
        centre = 10.0 * rng.standard_normal(2)
        position = position + centre

        def evaluate(q, centre=centre):
            return Point(q, -0.5 * float((q - centre) @ precision @ (q - centre)))

        target = GradientTarget(evaluate, lambda p, c=centre: -precision @ (p.position - c))
        point, info = sampler.step(rng, evaluate(position), target)
        sampler = sampler.tuned(info, iteration)
        position = point.position - centre
    assert np.allclose(sampler.scales @ sampler.scales.T, np.linalg.inv(precision), atol=0.03)


def test_hamiltonian_survives_cliffs_and_nowhere():
    def gradient(point):
        return -point.position

    def cliff(q):
        return Point(q, -0.5 * float(q @ q) if q[0] > 0.0 else -math.inf)

    rng, target = np.random.default_rng(2), GradientTarget(cliff, gradient)
    positions = run(Hamiltonian(8, step_size=0.3), cliff(np.array([1.0])), target, rng, 500)
    assert positions.min() > 0.0
    assert len(np.unique(positions)) > 100
    nowhere = GradientTarget(lambda q: Point(q, -math.inf), gradient)
    point, info = Hamiltonian().step(rng, nowhere.evaluate(np.ones(2)), nowhere)
    assert np.array_equal(point.position, np.ones(2))
    assert info.n_impossible == 2
    escaped = run(Hamiltonian(), cliff(np.array([-0.1])), target, rng, 50)
    assert escaped[-1] > 0.0


def assert_gradient_is_that_of_the_density(point, target):
    assert target.evaluate(point.position).log_density == pytest.approx(point.log_density)
    exact = target.gradient(point)
    for k, step in enumerate(1e-5 * np.eye(exact.size)):
        ends = [target.evaluate(point.position + s * step).log_density for s in (1, -1)]
        assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(exact[k], rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("key", MODELS)
def test_gradient_of_all_unknowns_together(key):
    rng = np.random.default_rng(3)
    model = MODELS[key](rng.standard_normal((7, 2)), rng.standard_normal(7))
    assert_gradient_is_that_of_the_density(
        *model.parts["all"](model.state(model.sample_prior(rng)))
    )


@pytest.mark.parametrize("scale", ["log", "abs", "learned"])
def test_gradient_on_surrogate_data(scale):
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((7, 2)), rng.standard_normal(7)
    model = LatentVariance(X, y, link=scale, mean_z=0.3, jitter=0.05)
    sites = np.stack([rng.exponential(2.0, 7), rng.standard_normal(7)])
    _, target = model.parts["surrogate"](model.state(model.sample_prior(rng)))
    assert_gradient_is_that_of_the_density(*target.given(sites))


def test_surrogate_data_that_tell_the_truth_leave_a_standard_normal():
    """If the sites are the likelihood, v is N(0, I) whatever C is: density by direct algebra."""
    rng = np.random.default_rng(6)
    precisions, means = rng.exponential(2.0, 5), rng.standard_normal(5)
    root = rng.standard_normal((5, 5))
    C = root @ root.T + 0.1 * np.eye(5)
    lower = np.linalg.cholesky(C)
    surrogate = surrogate_of(lower.T.copy(), np.stack([precisions, precisions * means]))
    posterior = np.linalg.inv(np.linalg.inv(C) + np.diag(precisions))
    u = np.array([surrogate.coloured(v) for v in [*np.eye(5), np.zeros(5)]])
    z = u @ lower.T
    columns = (z[:-1] - z[-1]).T
    assert np.allclose(columns @ columns.T, posterior)
    assert np.allclose(z[-1], posterior @ (precisions * means))
    assert np.allclose(surrogate.whitened(u[2]), np.eye(5)[2])
    sign, expected = np.linalg.slogdet(np.eye(5) + lower.T @ np.diag(precisions) @ lower)
    assert sign == 1.0
    assert surrogate.log_determinant == pytest.approx(0.5 * expected)


def test_surrogate_data_are_learned_from_the_likelihood():
    """z_i ~ N(0, 1), seen with precision F_i around m_i: F and F m are what warm-up finds."""
    precisions, means = np.array([0.5, 4.0, 20.0]), np.array([-1.0, 2.0, 0.5])
    now = {"z": np.zeros(3)}

    def given(sites):
        F, pulls = np.broadcast_to(sites, (2, 3))
        root = (1.0 + F) ** -0.5

        def evaluate(v):
            z = root * (v + root * pulls)
            density = -0.5 * float(z @ z + precisions @ (z - means) ** 2)
            return Point(v, density, z)

        def gradient(point):
            z = point.payload
            return root * (-z - precisions * (z - means))

        return evaluate(now["z"] / root - root * pulls), GradientTarget(evaluate, gradient)

    def evidence(point):
        return np.stack([point.payload, -precisions * (point.payload - means), precisions])

    rng, sampler, draws = np.random.default_rng(7), SurrogateHamiltonian(8), []
    target = SurrogateTarget(given, evidence)
    for iteration in range(1, 1201):
        point, info = sampler.step(rng, Point(None, 0.0), target)
        now["z"] = point.payload
        if iteration <= 200:
            sampler = sampler.tuned(info, iteration)
        else:
            draws.append(now["z"])
    assert np.allclose(sampler.sites, np.stack([precisions, precisions * means]))
    assert (sampler.scales == 1.0).all()
    expected = precisions * means / (1.0 + precisions)
    sd = (1.0 + precisions) ** -0.5
    assert np.all(np.abs(np.mean(draws, axis=0) - expected) < 6.0 * sd / np.sqrt(300))


@pytest.mark.parametrize("link", ["log", "abs", "learned"])
def test_information_about_z_is_the_curvature_of_the_expected_log_likelihood(link):
    """E log N(y | 0, C(z)), y ~ N(0, C), is largest at C, and curved there by the information."""
    rng = np.random.default_rng(3)
    model = LatentVariance(rng.normal(size=(5, 1)), rng.normal(size=5), link=link)
    state = model.state(model.sample_prior(rng))
    process = model.processes[0]

    def covariance(z):
        return process.covariance(state.theta, noise=model.noise(z))

    truth = covariance(state.latent)

    def expected(z):
        C = covariance(z)
        return -0.5 * (np.linalg.slogdet(C)[1] + np.trace(np.linalg.solve(C, truth)))

    step = 1e-3
    curvature = [
        (2 * expected(state.latent) - sum(expected(state.latent + s) for s in (move, -move)))
        / step**2
        for move in step * np.eye(5)
    ]
    np.testing.assert_allclose(model._evidence(state)[2], curvature, rtol=1e-3, atol=1e-6)


def test_surrogate_hamiltonian_from_nowhere_learns_nothing():
    nowhere = GradientTarget(lambda q: Point(q, -math.inf), lambda point: point.position)
    target = SurrogateTarget(
        lambda sites: (nowhere.evaluate(np.ones(2)), nowhere), lambda point: np.ones((3, 2))
    )
    sampler = SurrogateHamiltonian()
    _, info = sampler.step(np.random.default_rng(1), Point(None, -math.inf), target)
    assert info.evidence is None
    assert sampler.tuned(info, 1).seen == 0
    with pytest.raises(ValueError, match="leave dense and conditional False"):
        SurrogateHamiltonian(dense=True)


def test_modified_metropolis_learns_its_step_and_how_often_to_take_it():
    sampler = ModifiedMetropolis(step_size=0.5, repeats=40, wanted=0.25)
    bold = sampler.tuned(Info(1.0, 40), iteration=5)
    shy = sampler.tuned(Info(0.0, 40), iteration=5)
    assert shy.step_size < 0.5 < bold.step_size
    assert bold.repeats < shy.repeats
    for each in (bold, shy):
        assert each.repeats >= 1.0 / (0.25 * each.step_size**2)
    assert ModifiedMetropolis().tuned(Info(1.0, 40), 5) == ModifiedMetropolis()


def test_slice_sweep_learns_its_width_where_steps_are_counted():
    rng = np.random.default_rng(4)
    model = LatentVariance(rng.standard_normal((6, 1)), rng.standard_normal(6))
    begun = start(model, model.scheme("slice", width=50.0), 1)
    widths = [u.sampler.width for u in advance(model, begun, 30, tune=True).position.scheme[-1:]]
    assert widths[0] < 10.0


def test_occasional_slice_updates_in_its_share_of_the_iterations():
    target = ScalarTarget(lambda x: Point(x, -0.5 * x * x))
    rng, sampler = np.random.default_rng(3), OccasionalSlice(share=0.25)
    point, moved = target.evaluate(0.0), 0
    for _ in range(2000):
        after, info = sampler.step(rng, point, target)
        moved += after is not point
        assert (info.n_evaluations > 0) == (after is not point)
        point = after
    assert abs(moved / 2000 - 0.25) < 0.05  # 5 standard errors
    for iteration in range(1, 201):
        sampler = sampler.tuned(Info(1.0, 0), iteration)
        assert sampler.width == 1.0  # nothing was done, nothing was learned
    assert sampler.share == sampler.least
    with pytest.raises(ValueError, match="share must be"):
        OccasionalSlice(share=0.0)
    with pytest.raises(ValueError, match="least must be"):
        OccasionalSlice(least=1.5)
