"""A Hilbert-space basis against the kernels it stands for."""

import numpy as np
import pytest
from scipy.integrate import quad

from gplc.kernels import Constant, Linear, Matern32, Matern52, Sign, SquaredExponential
from gplc.processes.hilbert import (
    Axes,
    Axis,
    Basis,
    Hilbert,
    Scales,
    axis_for,
    latent_axis,
    unsupported,
)
from gplc.processes.rows import BLOCK_ROWS, RowsHere

KERNELS = {
    "SE": SquaredExponential(),
    "one length scale": SquaredExponential(ard=False),
    "sum": SquaredExponential(constant=0.5) + Linear() + Constant(),
    "of single inputs": SquaredExponential().on(0).named("a") + SquaredExponential().on(1),
    "step": SquaredExponential().on(0) + Sign().on(1),
}


def theta_of(kernel, n_observed, n_latent=0):
    """Length scales of 1, all else near 1."""
    names = kernel.names(n_observed, n_latent=n_latent)
    return np.array([0.1 if "length_scale" not in name else 0.0 for name in names])


def axes_for(count, shortest=0.9, longest=1.1):
    return [axis_for(-1.5, 1.0, shortest, longest)] * count


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("latent", [None, latent_axis(0.9, 1.1)], ids=["x", "x and w"])
def test_covariances_are_those_of_the_kernel(kernel, latent):
    basis = Basis(kernel, axes_for(2), latent)
    n_latent = 0 if latent is None else 1
    assert basis.error(theta_of(kernel, 2, n_latent)) < 1e-3 * (3 if n_latent else 2)


@pytest.mark.parametrize("kernel", [Matern32(), Matern52()], ids=repr)
def test_rough_kernels_need_more_functions(kernel):
    errors = [
        Basis(kernel, [Axis(0.0, 1.0, 5.0, count)]).error(np.zeros(2)) for count in (10, 40, 160)
    ]
    assert errors[0] > 5 * errors[1] > 25 * errors[2]
    assert errors[2] < 1e-3


def test_error_falls_with_functions_and_boundary():
    kernel, theta = SquaredExponential(), np.array([0.0, -0.5])
    by_size = [Basis(kernel, [Axis(0.0, 1.0, 3.0, m)]).error(theta) for m in (5, 10, 20)]
    assert by_size[0] > 10 * by_size[1] > 100 * by_size[2]
    by_boundary = [
        Basis(kernel, [Axis(0.0, 1.0, edge, 80)]).error(theta) for edge in (1.1, 1.4, 2)
    ]
    assert by_boundary[0] > 3 * by_boundary[1] > 30 * by_boundary[2]


@pytest.mark.parametrize("kernel", [SquaredExponential(constant=0.0), Matern32(), Matern52()])
def test_spectral_density_is_the_fourier_transform(kernel):
    theta, frequency = np.array([0.2, -0.3]), 1.7
    value, _ = kernel.log_spectrum(theta, np.full((1, 1), frequency**2), np.empty((0, 1)))

    def covariance(gap):
        return float(kernel.matrix(theta, np.zeros((1, 1)), np.full((1, 1), gap))[0, 0])

    expected, _ = quad(lambda r: 2.0 * np.cos(frequency * r) * covariance(r), 0.0, 15.0)
    assert np.exp(value[0]) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("kernel", [*KERNELS.values(), Matern52()])
def test_slopes_of_log_sds_agree_with_differences(kernel):
    basis = Basis(kernel, axes_for(2), latent_axis(1.5, 3.0))
    theta = np.random.default_rng(1).normal(0.0, 0.3, len(kernel.names(2, n_latent=1)))
    slopes = basis.slopes(theta)
    for k, move in enumerate(1e-6 * np.eye(theta.size)):
        change = (basis.log_sds(theta + move) - basis.log_sds(theta - move)) / 2e-6
        np.testing.assert_allclose(slopes[k], change, atol=1e-6)


def test_functions_of_rows_and_their_pull_are_transposes():
    rng = np.random.default_rng(0)
    basis = Basis(KERNELS["sum"], axes_for(2), latent_axis(1.5, 3.0))
    features = basis.features(rng.uniform(-1.5, 1.0, (7, 2)))
    b, weights = (
        rng.normal(size=basis.size),
        rng.normal(size=(7, basis.of_latent(np.zeros(1)).size)),
    )
    assert np.sum(basis.at_rows(features, b) * weights) == pytest.approx(
        basis.pulled(features, weights) @ b
    )


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (SquaredExponential() * Linear(), "is not one leaf"),
        (SquaredExponential() + SquaredExponential().named("a") * Constant(), "is not one leaf"),
    ],
)
def test_kernels_without_a_basis_say_so(kernel, said):
    assert said in unsupported(kernel)
    assert unsupported(SquaredExponential() + Sign()) == ""


def test_sizes_of_the_user_count():
    scales = Scales(((0.5, 1.0), (0.5, 1.0)))
    axes = Hilbert(functions=(9, 12), boundary=1.5).axes([(0.0, 2.0), (0.0, 4.0)], scales)
    assert [axis.functions for axis in axes.inputs] == [9, 12]
    assert axes.inputs[0].boundary == pytest.approx(1.5 * 1.05)
    with pytest.raises(ValueError, match="one for each of the 1 inputs"):
        Hilbert(functions=(9, 12)).axes([(0.0, 2.0)], scales)
    for wrong in ({"functions": 1}, {"boundary": 1.0}, {"latent_functions": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Hilbert(**wrong)


def test_axes_survive_a_record():
    axes = Axes((axis_for(0.0, 1.0, 0.3, 0.9),), latent_axis(1.0, 3.0))
    assert Axes.from_record(axes.record()) == axes


def test_totals_are_sums_over_all_rows():
    n = 2 * BLOCK_ROWS + 17
    rows = RowsHere(np.arange(2.0 * n).reshape(n, 2), np.arange(float(n)))
    squares, last = rows.total(lambda X, y: (X.T @ X, y.size))
    np.testing.assert_allclose(squares, rows.X.T @ rows.X)
    assert last == n
    X, y = rows.some(np.random.default_rng(0), 100)
    assert 90 <= len(y) <= 100
    assert np.array_equal(X, rows.X[y.astype(int)])
