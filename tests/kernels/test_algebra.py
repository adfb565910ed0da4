"""Covariance functions: what holds for all of them, and what each of them is."""

import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import sklearn.gaussian_process.kernels as sk
from hypothesis import assume, given, settings

from gplc._compiled import latent_terms
from gplc.kernels import (
    KERNELS,
    Bound,
    Category,
    Constant,
    Leaf,
    Linear,
    Matern32,
    Matern52,
    Ordinal,
    Periodic,
    Product,
    RationalQuadratic,
    Sign,
    SquaredExponential,
    Sum,
    Touches,
    from_record,
    to_record,
)
from gplc.kernels.averages import average, average_of_both
from gplc.kernels.cross import Cross, SeparableCross
from gplc.kernels.separable import Curve, Form
from gplc.kernels.shaped import Shaped
from gplc.kernels.shapes import Exponential, Matern, Rational, SquaredGap, SquaredSine
from gplc.priors import default_prior
from tests.kernels.strategies import N_OBSERVED, Cauchy, Laplace, Negative, cases

few = settings(max_examples=40, deadline=None, derandomize=True)


def whole(bound, X, W, theta):
    """The matrix by the shortest way."""
    A = np.hstack([X, W.T])
    return bound.kernel.matrix(theta, A, A, len(W))


# What holds for all.


@few
@given(cases())
def test_symmetric_and_positive_semi_definite(case):
    matrix = whole(*case)
    scale = np.abs(matrix).max()
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-13 * scale)
    assert np.linalg.eigvalsh(matrix)[0] >= -1e-10 * max(scale, 1e-300) * len(matrix)


@few
@given(cases())
def test_bound_to_its_inputs_it_is_the_same_matrix(case):
    bound, X, W, theta = case
    expected = whole(*case)
    pieces = bound.pieces(theta, W)
    np.testing.assert_allclose(bound.matrix(theta, pieces), expected, rtol=1e-12, atol=1e-14)
    entries = bound.at_rows(theta, X, W)
    for row, x in enumerate(X):
        A = np.hstack([np.tile(x, (len(X), 1)), W.T])
        np.testing.assert_allclose(
            entries[row if len(entries) > 1 else 0],
            bound.kernel.matrix(theta, A, A, len(W)),
            rtol=1e-11,
            atol=1e-13,
        )
    new, node = X[::-1] + 0.3, np.arange(len(W)) - 0.4
    A = np.hstack([new, np.tile(node, (len(new), 1))])
    np.testing.assert_allclose(
        bound.cross(theta, new, W).at(node),
        bound.kernel.matrix(theta, A, np.hstack([X, W.T]), len(W)),
        rtol=1e-11,
        atol=1e-13,
    )
    np.testing.assert_allclose(
        bound.variance(theta, new, node),
        np.diagonal(bound.kernel.matrix(theta, A, A, len(W))),
        rtol=1e-11,
        atol=1e-13,
    )


def assert_same_pieces(left, right):
    for mine, theirs in zip(left.units, right.units, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-14)


@few
@given(cases())
def test_a_change_computes_what_it_touches_and_no_less(case):
    bound, _, W, theta = case
    pieces = bound.pieces(theta, W)
    for index in range(len(theta)):
        other = theta.copy()
        other[index] += 0.4
        changed = bound.changed(index, other, pieces, W)
        assert_same_pieces(changed, bound.pieces(other, W))
        if bound.touches(index) is Touches.SCALE:
            assert changed is pieces
    shifted = W + np.linspace(0.0, 1.0, W.shape[1])
    assert_same_pieces(bound.moved(theta, pieces, shifted), bound.pieces(theta, shifted))


@settings(max_examples=50, deadline=None, derandomize=True)
@given(cases(smooth=True))
def test_gradient_agrees_with_finite_differences(case):
    bound, _, W, theta = case
    n, step = bound.n, 1e-5
    weights = np.random.default_rng(1).normal(size=(n, n))
    weights += weights.T

    def total(theta, W):
        return np.sum(weights * bound.matrix(theta, bound.pieces(theta, W)))

    scale = np.sum(np.abs(weights * bound.matrix(theta, bound.pieces(theta, W)))) + 1.0
    by_theta, by_latent = bound.gradient(theta, bound.pieces(theta, W), W, weights)
    for k in range(theta.size):
        move = step * (np.arange(theta.size) == k)
        difference = (total(theta + move, W) - total(theta - move, W)) / (2.0 * step)
        assert by_theta[k] == pytest.approx(difference, rel=2e-5, abs=1e-7 * scale), k
    for place in np.ndindex(W.shape):
        move = np.zeros(W.shape)
        move[place] = step
        difference = (total(theta, W + move) - total(theta, W - move)) / (2.0 * step)
        # Cauchy's own gradient is a difference too.
        assert by_latent[place] == pytest.approx(difference, rel=2e-5, abs=1e-6 * scale), place


@few
@given(cases(n_latent=1), cases(n_latent=1))
def test_sums_and_products_are_those_of_the_matrices(one, two):
    (first, X, W, theta_1), (second, _, _, theta_2) = one, two
    A = np.hstack([X, W.T])
    left = first.kernel.matrix(theta_1, A, A, 1)
    right = second.kernel.matrix(theta_2, A, A, 1)
    theta = np.concatenate([theta_1, theta_2])
    added, multiplied = first.kernel + second.kernel, first.kernel * second.kernel
    np.testing.assert_allclose(added.matrix(theta, A, A, 1), left + right, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(
        multiplied.matrix(theta, A, A, 1), left * right, rtol=1e-12, atol=1e-14
    )
    names = added.names(N_OBSERVED, n_latent=1)
    assert len(set(names)) == len(names) == theta.size


def rows_of(terms, i, values, w):
    """Covariances of case i at some values of its w, by the code that the sweep runs."""
    rows = np.empty((values.size, w.size))
    own = [np.ascontiguousarray(matrices[:, i]) for matrices in (terms.amplitudes, terms.offsets)]
    scratch = np.empty((2, w.size))
    latent_terms.covariances(rows, values, terms.forms, terms.free[i], *own, w, scratch)
    for value, row in zip(values, rows, strict=True):
        row[i] = latent_terms.own_variance(value, i, terms.free[i], own[0], terms.forms.powers)
    return rows


@few
@given(cases(n_latent=2, own=False))
def test_description_in_w_is_the_matrix(case):
    """Column by column, for values of w that are not those of the state; and compiled."""
    bound, X, W, theta = case
    rng = np.random.default_rng(2)
    for column in range(len(W)):
        assume(bound.sees(column))
        described = bound.in_latent(theta, bound.pieces(theta, W), W, column)
        terms = described.compiled(column, bound.n)
        other, values = W.copy(), rng.normal(size=3)
        for i in range(bound.n):
            for value, row in zip(values, rows_of(terms, i, values, W[column]), strict=True):
                other[:] = W
                other[column, i] = value
                expected = whole(bound, X, other, theta)
                np.testing.assert_allclose(row, expected[i], rtol=1e-10, atol=1e-12)
                w = other[column]
                total = described.free + sum(
                    term.amplitude * term.forms[column].at(w[:, None], w)
                    for term in described.terms
                )
                np.testing.assert_allclose(
                    np.broadcast_to(total, expected.shape), expected, rtol=1e-10, atol=1e-12
                )


@few
@given(cases())
def test_new_rows_have_the_same_covariances_whether_it_separates_or_not(case):
    bound, X, W, theta = case
    assume(len(W))
    new, nodes = X[::-1] + 0.3, np.random.default_rng(3).normal(size=(len(W), 3))
    cross, general = bound.cross(theta, new, W), Cross(bound, theta, new, W)
    vector = np.arange(bound.n) - 2.0
    for ask in (
        lambda of: np.array([*of.each(nodes)]),
        lambda of: of.at(nodes[:, 0]),
        lambda of: of.times(nodes, vector),
        lambda of: of.variances(nodes),
    ):
        np.testing.assert_allclose(ask(cross), ask(general), rtol=1e-10, atol=1e-12)


def test_which_kernels_separate():
    X, W, theta = np.zeros((4, 2)), np.zeros((1, 4)), np.zeros(20)
    for kernel, separates in (
        (SquaredExponential() * Linear() + Matern32().on("x") * Sign(sd=1.0).on("w"), True),
        (SquaredExponential().on("x") * Matern32().on("w"), True),
        (Periodic(), True),
        (Matern32(), False),
        (RationalQuadratic() + SquaredExponential(), False),
        (Laplace().on("x") * SquaredExponential(), True),
        (Laplace(), False),
    ):
        bound = Bound(kernel, X, 1)
        cross = bound.cross(theta[: len(bound.names)], X, W)
        assert isinstance(cross, SeparableCross) == separates, kernel


@dataclass(frozen=True, repr=False)
class General(Shaped):
    """The base of kernels of every phi with every b."""

    ard: bool = True
    sd: float | None = None
    number: float = 1.3
    extra: ClassVar[str] = "number"


class Uncompiled(Exponential):
    code = None


@pytest.mark.parametrize("basis", [SquaredGap(), SquaredSine()])
@pytest.mark.parametrize("phi", [Exponential(), Matern(1), Matern(2), Rational(), Uncompiled()])
def test_every_shape_goes_with_every_basis(phi, basis):
    kernel = type("Kernel", (General,), {"phi": phi, "basis": basis})()
    rng = np.random.default_rng(5)
    X, W, theta = rng.normal(size=(6, 2)), rng.normal(size=(1, 6)), 0.4 * rng.normal(size=4)
    bound = Bound(kernel, X, 1)
    pieces = bound.pieces(theta, W)
    terms = bound.in_latent(theta, pieces, W, 0).compiled(0, 6)
    assert (terms is None) == isinstance(phi, Uncompiled)
    if terms is not None:
        for i in range(6):
            row = rows_of(terms, i, W[0, i : i + 1], W[0])[0]
            np.testing.assert_allclose(row, bound.matrix(theta, pieces)[i], rtol=1e-10)
    weights = np.ones((6, 6))
    by_theta, by_latent = bound.gradient(theta, pieces, W, weights)
    step = 1e-5
    for got, k in ((by_theta[2], 2), (by_theta[3], 3)):
        ends = [theta + sign * step * np.eye(4)[k] for sign in (1, -1)]
        up, down = (bound.matrix(end, bound.pieces(end, W)).sum() for end in ends)
        assert got == pytest.approx((up - down) / (2 * step), rel=1e-5, abs=1e-6)
    move = step * (np.arange(6) == 4)
    up, down = (
        bound.matrix(theta, bound.pieces(theta, W + sign * move)).sum() for sign in (1, -1)
    )
    assert by_latent[0, 4] == pytest.approx((up - down) / (2 * step), rel=1e-5, abs=1e-6)


FORMS = {
    "squared exponential": Form(decay=0.7),
    "line": Form(power=1),
    "square": Form(power=2),
    "step": Form(side=1),
    "bent": Form(power=1, side=1),
    "all of these": Form(decay=0.4, power=3, side=1),
    "quadratic in a window": Form(decay=2.0, power=2),
    "periodic": Form(curves=(Curve(Exponential(), SquaredSine(), 0.6, 2.5),)),
}


@pytest.mark.parametrize("name", FORMS)
def test_averages_over_the_latent_covariate(name):
    form, w = FORMS[name], np.array([-1.7, -0.2, 0.0, 0.9])
    # Gauss's rule on either side of the step, which is smooth there.
    half, weights = np.polynomial.legendre.leggauss(200)
    half, weights = 4.5 * (half + 1.0), 4.5 * weights
    nodes = np.concatenate([half, -half])
    weights = np.concatenate([weights, weights]) * np.exp(-0.5 * nodes**2) / np.sqrt(2 * np.pi)
    matrix = form.at(nodes[:, None], w)
    np.testing.assert_allclose(average(form, w), weights @ matrix, rtol=1e-9, atol=1e-12)
    both = weights @ form.at(nodes[:, None], nodes) @ weights
    # By a rule over one of the two, which does not know of a step that is left.
    rough = 2e-3 if form.side else 1e-9
    assert average_of_both(form) == pytest.approx(both, abs=rough)


@few
@given(cases())
def test_to_json_and_back(case):
    kernel = case[0].kernel
    text = json.dumps(to_record(kernel))
    assert from_record(json.loads(text), [Cauchy, Laplace]) == kernel


@few
@given(cases(n_latent=1, own=False))
def test_its_text_makes_it_again(case):
    kernel = case[0].kernel
    assert eval(repr(kernel), dict(KERNELS)) == kernel


# What each is: scikit-learn's kernels of the same form.

A = np.random.default_rng(3).normal(size=(7, 2))
B = np.random.default_rng(4).normal(size=(5, 2))
ONE_A, ONE_B = A[:, :1], B[:, :1]
ROOT = np.sqrt(2.0)
SAME = {
    "squared exponential": (
        SquaredExponential(constant=0.5),
        np.log([1.3, 0.6, 2.0]),
        0.25 + 1.69 * sk.RBF([0.6 / ROOT, 2.0 / ROOT]),
        (A, B),
    ),
    "isotropic": (
        SquaredExponential(ard=False, constant=0.0, sd=1.0),
        np.log([0.6]),
        sk.RBF(0.6 / ROOT),
        (A, B),
    ),
    "matern 3/2": (
        Matern32(),
        np.log([1.3, 0.6, 2.0]),
        1.69 * sk.Matern([0.6, 2.0], nu=1.5),
        (A, B),
    ),
    "matern 5/2": (
        Matern52(),
        np.log([1.3, 0.6, 2.0]),
        1.69 * sk.Matern([0.6, 2.0], nu=2.5),
        (A, B),
    ),
    "rational quadratic": (
        RationalQuadratic(ard=False),
        np.log([1.3, 0.6, 0.7]),
        1.69 * sk.RationalQuadratic(0.6 / ROOT, alpha=0.7),
        (A, B),
    ),
    "periodic": (
        Periodic(),
        np.log([1.3, 0.6, 1.7]),
        1.69 * sk.ExpSineSquared(0.6 / ROOT, periodicity=1.7),
        (ONE_A, ONE_B),
    ),
    "linear": (Linear(ard=False), np.log([1.3]), 1.69 * sk.DotProduct(sigma_0=0.0), (A, B)),
    "sign": (
        Sign(ard=False),
        np.log([1.3]),
        lambda a, b: 1.69 * sk.DotProduct(sigma_0=0.0)(np.sign(a), np.sign(b)),
        (A, B),
    ),
    "category": (
        Category(correlated=True).on(0),
        np.log([1.3, 0.7]),
        lambda a, b: 1.69 * sk.RBF(1.0 / np.sqrt(1.4))(a[:, :1], b[:, :1]),
        (
            (A > 0.0).astype(float),
            (B > 0.0).astype(float),
        ),  # two levels: the square of a gap is the gap
    ),
    "ordinal": (
        Ordinal().on(1),
        np.log([1.3, 0.7]),
        lambda a, b: 1.69 * sk.Matern(1.0 / 0.7, nu=0.5)(a[:, 1:2], b[:, 1:2]),
        (np.round(A), np.round(B)),
    ),
    "line with intercept": (
        Constant(0.4) + Linear(sd=1.0),
        np.empty(0),
        sk.DotProduct(sigma_0=0.4),
        (A, B),
    ),
    "sum and product": (
        (SquaredExponential(constant=0.0) + Constant()) * Matern32(sd=1.0),
        np.log([1.3, 0.6, 2.0, 0.8, 0.5, 0.9]),
        (1.69 * sk.RBF([0.6 / ROOT, 2.0 / ROOT]) + 0.64) * sk.Matern([0.5, 0.9], nu=1.5),
        (A, B),
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_scikit_learn_has_the_same_matrix(name):
    kernel, theta, theirs, (a, b) = SAME[name]
    np.testing.assert_allclose(kernel.matrix(theta, a, b), theirs(a, b), rtol=1e-12, atol=1e-14)


def test_a_wrong_convention_is_caught():
    kernel, theta, _, (a, b) = SAME["squared exponential"]
    wrong = 0.25 + 1.69 * sk.RBF([0.6, 2.0])
    assert np.abs(kernel.matrix(theta, a, b) - wrong(a, b)).max() > 0.01


def test_every_kernel_of_the_package_is_compared():
    used = {type(leaf).__name__ for kernel, *_ in SAME.values() for leaf in kernel.leaves}
    assert used == set(KERNELS)


# Names, inputs and words.


def test_names_follow_the_inputs():
    kernel = SquaredExponential() + Linear().on(0, "w") * Matern32(ard=False).on("x")
    assert kernel.names(3, n_latent=1) == (
        "signal_sd",
        "length_scale[0]",
        "length_scale[1]",
        "length_scale[2]",
        "latent_length_scale",
        "slope_sd",
        "latent_slope_sd",
        "k3.signal_sd",
        "k3.length_scale",
    )
    assert SquaredExponential().on(0, 2, "w1").names(3, "_y", 2) == (
        "signal_sd_y",
        "length_scale_y[0]",
        "length_scale_y[2]",
        "latent_length_scale_y[1]",
    )
    assert Periodic().named("season").names(1) == (
        "season.signal_sd",
        "season.length_scale",
        "season.period",
    )


def test_every_hyperparameter_has_the_prior_of_its_kind():
    kernel = sum((cls() for cls in KERNELS.values()), Constant(1.0))
    bound = Bound(kernel, np.zeros((2, 2)), 1)
    for each in bound.hyperparameters:
        assert each.prior == default_prior(each.name, inputs=2), each.name


@pytest.mark.parametrize("ard", [True, False])
def test_priors_of_length_scales_go_by_the_inputs_that_a_leaf_sees(ard):
    kernel = SquaredExponential(ard=ard) + SquaredExponential().named("one").on(3)
    bound = Bound(kernel, np.zeros((2, 4)), 0)
    scales = [each for each in bound.hyperparameters if "length_scale" in each.name]
    assert len(scales) == (5 if ard else 2)
    for each in scales:
        inputs = 1 if each.name.startswith("one.") else 4
        assert each.prior == default_prior("length_scale", inputs), each.name


def test_rows_are_as_much_related_whatever_the_number_of_inputs():
    """The correlation of two random rows, a priori: with medians of 1 it would vanish."""
    rng = np.random.default_rng(0)
    typical = []
    for inputs in (2, 5, 10, 20):
        prior = default_prior("length_scale[0]", inputs)
        gaps = rng.normal(scale=np.sqrt(2.0), size=(20_000, inputs))
        at_medians = np.sum((gaps / np.exp(prior.mean)) ** 2, axis=1)
        typical.append(np.exp(-np.median(at_medians)))
    assert 0.1 < min(typical) < max(typical) < 0.3


def test_numbers_stand_for_constants():
    assert 4.0 + Matern32() == Sum((Constant(2.0), Matern32()))
    assert Matern32() * 4.0 == Product((Matern32(), Constant(2.0)))
    with pytest.raises(ValueError, match=r"must be a finite number at least 0.0, got -1"):
        Matern32() + -1
    with pytest.raises(ValueError, match=r"got 'rbf'"):
        Matern32() + "rbf"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Constant(-1.0), "sd must be"),
        (lambda: Linear(sd=np.nan), "sd must be"),
        (lambda: RationalQuadratic(shape=0.0), "shape must be"),
        (lambda: Periodic(period=-1.0), "period must be"),
        (lambda: SquaredExponential(ard="yes"), "ard must be True or False"),
        (lambda: Matern32().on("z").names(1), "'x', 'w'.*got 'z'"),
        (lambda: Matern32().on(2).names(2), "there are 2 columns of X"),
        (lambda: Matern32().on(0, 0).names(2), "at most once"),
        (lambda: Matern32().on("w").names(2), "no latent covariate"),
        (lambda: Matern32().on("w1").names(2, n_latent=1), "there are 1 columns of w"),
    ],
)
def test_bad_settings_are_errors_that_say_so(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# Kernels of the user's.


def test_a_kernel_without_its_formula_says_what_is_missing():
    @dataclass(frozen=True)
    class Empty(Leaf):
        pass

    with pytest.raises(NotImplementedError, match="hyperparameters"):
        Empty().names(1)

    @dataclass(frozen=True)
    class NoFormula(Leaf):
        def hyperparameters(self, n_columns):
            return {}

    with pytest.raises(NotImplementedError, match="evaluate"):
        NoFormula().matrix(np.empty(0), A, B)


def test_a_kernel_in_a_file_needs_its_class():
    with pytest.raises(ValueError, match=r"kernel 'Laplace' .*kernels=\[Laplace\]"):
        from_record(to_record(Laplace()))

    @dataclass(frozen=True)
    class WithArray(Leaf):
        centres: object = None

    with pytest.raises(ValueError, match="WithArray cannot be written to a file: its centres"):
        to_record(WithArray(np.zeros(2)))


@dataclass(frozen=True)
class OneSided(Negative):
    def evaluate(self, theta, A, B):
        return np.exp(-np.exp(theta[0]) * np.maximum(A[:, :1] - B[:, :1].T, 0.0))


@dataclass(frozen=True)
class Undefined(Negative):
    def evaluate(self, theta, A, B):
        with np.errstate(all="ignore"):
            return np.log(A[:, :1] - B[:, :1].T)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Negative(), "not positive semi-definite: at {'frequency'"),
        (Constant(0.1) + Negative(), "not positive semi-definite"),
        (OneSided(), "not symmetric"),
        (Undefined(), "not finite"),
    ],
)
def test_what_is_no_covariance_is_refused(kernel, message):
    bound = Bound(kernel, A)
    prior = [each.prior for each in bound.hyperparameters]
    means, sds = np.transpose(prior)
    with pytest.raises(ValueError, match=message):
        bound.check(A, means, sds)
    Bound(Laplace() * Cauchy(), A).check(A, np.zeros(3), np.ones(3))
