"""What every solved process answers, however it is solved: against dense NumPy and SciPy."""

import numpy as np
import pytest
from scipy import stats

from gplc.kernels import Constant, Linear, Matern32, SquaredExponential
from gplc.processes import (
    SOLVERS,
    FixedNoise,
    KnownNoise,
    Layout,
    LearnedNoise,
    Process,
    SumNoise,
)
from gplc.processes.dense import RAISED_NOISE
from gplc.processes.links import LINKS, LinkedNoise

N = 9
X = np.random.default_rng(1).uniform(-2.0, 2.0, (N, 2))
Y = np.sin(X[:, 0]) + 0.3 * X[:, 1]
SDS = np.linspace(0.2, 0.6, N)
Z = np.random.default_rng(2).normal(size=N)

KERNELS = {
    "SE": (SquaredExponential(), 0),
    "SE of x and w": (SquaredExponential(), 1),
    "sum": (Constant(0.5) + Matern32() + Linear().on(0), 0),
    "two latent": (SquaredExponential() + Linear().on("w1"), 2),
}
NOISES = {
    "learned": LearnedNoise(),
    "fixed": FixedNoise(0.3),
    "known": KnownNoise(SDS),
    "known + learned": SumNoise((KnownNoise(SDS), LearnedNoise())),
    "linked": LinkedNoise(LINKS["log"], Z),
    "learned link": LinkedNoise(LINKS["learned"], Z),
    "learned + learned link": SumNoise((LearnedNoise(), LinkedNoise(LINKS["learned"], Z))),
}


class Case:
    """A process, somewhere, with its covariance written out."""

    def __init__(self, solver, kernel, noise, seed=0):
        rng = np.random.default_rng(seed)
        (self.kernel, self.q), self.noise = KERNELS[kernel], NOISES[noise]
        layout = Layout()
        layout.place({"another": LearnedNoise().prior})  # so that places do not begin at 0
        self.process = Process.placed(layout, "C", self.kernel, X, self.noise, self.q)
        self.theta = rng.normal(-0.5, 0.3, len(layout.hyperparameters))
        self.W = rng.normal(size=(self.q, N)) if self.q else None
        self.solver = SOLVERS[solver]

    def solved(self, theta=None, W=None):
        theta = self.theta if theta is None else theta
        return self.solver.at(self.process, theta, Y, self.W if W is None else W)

    def inputs(self, W=None):
        W = self.W if W is None else W
        return X if W is None else np.hstack([X, W.T])

    def between(self, A, B):
        own = self.theta[self.process.place]
        return self.kernel.matrix(own, A, B, self.q)

    @property
    def variances(self):
        return np.broadcast_to(self.noise.variance(self.theta[self.process.noise_place]), (N,))

    @property
    def covariance(self):
        return self.between(self.inputs(), self.inputs()) + np.diag(self.variances)


@pytest.fixture(params=SOLVERS)
def solver(request):
    return request.param


@pytest.fixture(params=KERNELS)
def kernel(request):
    return request.param


@pytest.fixture(params=NOISES)
def case(request, solver, kernel):
    return Case(solver, kernel, request.param)


def test_log_density_is_that_of_scipy(case):
    expected = stats.multivariate_normal(np.zeros(N), case.covariance).logpdf(Y)
    assert case.solved().log_density == pytest.approx(expected, rel=1e-9)


def test_gradient_agrees_with_differences(case):
    gradient, step = case.solved().gradient(), 1e-5
    by_theta = np.zeros(case.theta.size)
    by_theta[case.process.place] = gradient.kernel
    by_theta[case.process.noise_place] = gradient.noise
    for k, move in enumerate(step * np.eye(case.theta.size)):
        change = case.solved(case.theta + move).log_density
        change -= case.solved(case.theta - move).log_density
        assert by_theta[k] == pytest.approx(change / (2 * step), abs=1e-5), k
    for index in np.ndindex(case.W.shape if case.q else (0, 0)):
        move = np.zeros(case.W.shape)
        move[index] = step
        change = case.solved(W=case.W + move).log_density
        change -= case.solved(W=case.W - move).log_density
        assert gradient.latent[index] == pytest.approx(change / (2 * step), abs=1e-5), index
    # On the diagonal: what a little more noise on one case does.
    inverse = np.linalg.inv(case.covariance)
    expected = 0.5 * ((inverse @ Y) ** 2 - np.diagonal(inverse))
    np.testing.assert_allclose(gradient.diagonal, expected, rtol=1e-6, atol=1e-8)


def test_conditional_is_the_textbook_formula(case):
    rng = np.random.default_rng(4)
    new, w = rng.normal(size=(5, 2)), rng.normal(size=case.q)
    rows = np.hstack([new, np.tile(w, (5, 1))])
    cross, own = case.between(rows, case.inputs()), case.between(rows, rows)
    solved = np.linalg.solve(case.covariance, cross.T)
    mean, variance = case.solved().conditional(new, w if case.q else None)
    np.testing.assert_allclose(mean, solved.T @ Y, rtol=1e-8, atol=1e-10)
    expected = np.diagonal(own) - np.einsum("ij,ji->i", cross, solved)
    np.testing.assert_allclose(variance, expected, rtol=1e-7, atol=1e-9)


def test_left_out_density_is_that_of_each_case_given_the_others(case):
    mean, variance = case.solved().left_out()
    for i in range(N):
        rest = np.delete(np.arange(N), i)
        weights = np.linalg.solve(case.covariance[np.ix_(rest, rest)], case.covariance[rest, i])
        assert mean[i] == pytest.approx(weights @ Y[rest], rel=1e-7, abs=1e-9)
        assert variance[i] == pytest.approx(
            case.covariance[i, i] - weights @ case.covariance[rest, i], rel=1e-7
        )


def drawn_scores(case, draw, draws=3000):
    """Probabilities of what many draws say about mean and spread of the function.

    In units in which a draw is N(0, I), the squared distance of their mean from the exact one is
    chi-squared, and so is the sum of all squares.
    """
    K = case.between(case.inputs(), case.inputs())
    gain = K @ np.linalg.inv(case.covariance)
    mean, spread = gain @ Y, K - gain @ K
    values, vectors = np.linalg.eigh(spread)
    kept = values > 1e-6 * values[-1]
    root = vectors[:, kept] / np.sqrt(values[kept])
    rng = np.random.default_rng(11)
    scores = np.array([(draw(rng) - mean) @ root for _ in range(draws)])
    location = draws * float(np.sum(scores.mean(axis=0) ** 2))
    return stats.chi2.sf(location, kept.sum()), stats.chi2(scores.size).cdf(np.sum(scores**2))


@pytest.mark.parametrize("noise", ["learned", "known"])
def test_draws_of_the_function_have_its_mean_and_spread(solver, kernel, noise):
    # False alarm: 3e-6 a case, 8 cases.
    case = Case(solver, kernel, noise)
    location, spread = drawn_scores(case, case.solved().draw)
    assert location > 1e-6
    assert 1e-6 < spread < 1 - 1e-6


@pytest.mark.parametrize("wrong", ["no data", "no noise"])
def test_wrong_draws_are_caught(solver, wrong):
    case = Case(solver, "SE", "learned")
    solved = case.solved()

    def draw(rng):
        if wrong == "no data":
            return solved._replace(y=np.zeros(N)).draw(rng)
        K = case.between(X, X)
        function = np.linalg.cholesky(K + 1e-10 * np.eye(N)) @ rng.standard_normal(N)
        return function + K @ np.linalg.solve(case.covariance, Y - function)

    location, spread = drawn_scores(case, draw)
    assert location < 1e-6 or not 1e-6 < spread < 1 - 1e-6


def test_a_change_is_the_same_as_starting_anew(case):
    solved, rng = case.solved(), np.random.default_rng(5)
    for index in range(case.theta.size):
        theta = case.theta.copy()
        theta[index] += 0.3
        changed = solved.with_hyperparameter(index, theta)
        assert changed.log_density == pytest.approx(case.solved(theta).log_density, rel=1e-10)
        if not case.process.concerns(index):
            assert changed.factor is solved.factor
    if case.q:
        W = rng.normal(size=case.W.shape)
        moved = solved.with_latent(W)
        assert moved.log_density == pytest.approx(case.solved(W=W).log_density, rel=1e-10)
    other = rng.normal(size=N)
    expected = stats.multivariate_normal(np.zeros(N), case.covariance).logpdf(other)
    assert solved.with_data(other).log_density == pytest.approx(expected, rel=1e-9)


def test_what_cannot_be_factored_is_impossible_counted_and_mended(solver):
    layout = Layout()
    twice = np.repeat(X, 2, axis=0)
    process = Process.placed(layout, "C", SquaredExponential(), twice, FixedNoise(1e-12))
    solved = SOLVERS[solver].at(process, np.zeros(3), np.repeat(Y, 2))
    assert solved.log_density == -np.inf
    assert process.ledger["C not positive definite"] == 1
    mended = solved.mended()
    assert np.isfinite(mended.log_density)
    assert process.ledger["noise of C raised"] == 1
    mean, variance = mended.conditional(X)
    np.testing.assert_allclose(mean, Y, atol=1e-3)
    assert (variance < 1e-4).all()
    # No more noise than it takes: with the next smaller share there is no factor.
    raised = [SumNoise((solved.noise, FixedNoise(np.sqrt(2.0) * share))) for share in RAISED_NOISE]
    enough = [solved.with_noise(noise).factor is not None for noise in raised]
    first = enough.index(True)
    assert first < len(RAISED_NOISE) - 1
    assert mended.noise.variance(np.empty(0)) == pytest.approx(raised[first].variance(np.empty(0)))


def test_nothing_to_mend_is_left_alone(case):
    solved = case.solved()
    assert solved.mended() is solved


def test_names_that_are_taken_are_refused():
    layout = Layout()
    layout.place(LearnedNoise().hyperparameters)
    with pytest.raises(ValueError, match="learn noise_sd; give one of them another name"):
        layout.place(LearnedNoise().hyperparameters)


@pytest.mark.parametrize(
    ("sds", "message"),
    [([0.1, -0.2], "got -0.2 at index 1"), ([0.1, np.nan], "finite"), (0.1, "dimension")],
)
def test_known_sds_that_are_none_are_refused(sds, message):
    with pytest.raises(ValueError, match=message):
        KnownNoise(sds)


@pytest.mark.parametrize("name", NOISES)
def test_noise_of_new_cases(name):
    noise = NOISES[name]
    theta = np.full(len(noise.hyperparameters), -0.5)
    if "link" in name:
        with pytest.raises(TypeError, match="depends on its z"):
            noise.at(theta, X)
        return
    expected = {"learned": np.exp(-1.0), "fixed": 0.09, "known": 0.0}
    assert noise.at(theta, X[:3]) == pytest.approx(expected.get(name, np.exp(-1.0)))
