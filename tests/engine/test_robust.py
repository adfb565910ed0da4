"""Awkward numbers and bad input: never a hang or a crash while sampling, everything counted."""

import numpy as np
import pytest

from gplc.chains import run_chain
from gplc.kernels import SquaredExponential
from gplc.models import MODELS, LatentVariance, Unknowns
from gplc.priors import LogPriors, kind

# Options worth a second round, by model; without an entry there is none.
OPTIONS = {"gplv": [{"link": "abs"}]}
SCHEMES = [
    (key, scheme, options)
    for key, cls in MODELS.items()
    for options in [{}, *OPTIONS.get(key, [])]
    for scheme in cls.schemes
]
every_scheme = pytest.mark.parametrize(
    ("key", "scheme", "options"),
    SCHEMES,
    ids=["-".join([key, scheme, *options.values()]) for key, scheme, options in SCHEMES],
)

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(9, 2)), RNG.normal(size=9)


def run(model, scheme, theta=None, latent=None, draws=20, warmup=5):
    """A short chain, which must end with proper numbers."""
    unknowns = None
    if theta is not None:
        if latent is None:
            latent = np.random.default_rng(2).normal(size=model.n_latent)
        unknowns = Unknowns(np.array(theta, dtype=float), np.array(latent, dtype=float))
    chain = run_chain(model, scheme, seed=1, draws=draws, warmup=warmup, unknowns=unknowns)
    assert np.isfinite(chain.theta).all()
    assert np.isfinite(chain.latent).all()
    assert not np.isnan(chain.log_density).any()
    assert all(count >= 0 for count in chain.events.values())
    return chain


def kinds(key):
    """Kinds of hyperparameters that a model has, whatever they are called in full."""
    return {kind(name) for name in MODELS[key](X, Y).names}


def held(key, options, inputs=X, **values):
    """A model with priors (mean, sd) for hyperparameters that have a word in their kind."""
    priors = {of: prior for of in kinds(key) for word, prior in values.items() if word in of}
    return MODELS[key](inputs, Y, priors=priors, **options)


# Awkward data.


@every_scheme
@pytest.mark.parametrize("how", ["pairs", "all the same"])
def test_duplicated_rows(key, scheme, options, how):
    rows = np.repeat(X[:3], 3, axis=0) if how == "pairs" else np.zeros((9, 2))
    chain = run(MODELS[key](rows, Y, **options), scheme)
    assert np.isfinite(chain.log_density[-1])


@every_scheme
@pytest.mark.parametrize(
    "y",
    [np.zeros(9), np.full(9, 1e8), np.full(9, 1e-200), Y * 1e100],
    ids=["0", "1e8", "0+", "1e100"],
)
def test_responses_of_odd_size(key, scheme, options, y):
    run(MODELS[key](X, y, **options), scheme)


@every_scheme
def test_one_case(key, scheme, options):
    chain = run(MODELS[key]([[0.3]], [1.2], **options), scheme)
    assert np.isfinite(chain.log_density).all()


@every_scheme
@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_inputs_of_odd_size(key, scheme, options, size):
    run(MODELS[key](X * size, Y, **options), scheme)


# Awkward hyperparameters, held there by a narrow prior.


@every_scheme
@pytest.mark.parametrize("rho", [1e-6, 1e-3, 1e3, 1e6])
def test_length_scales_from_a_millionth_to_a_million(key, scheme, options, rho):
    model = held(key, options, length_scale=(np.log(rho), 0.1))
    chain = run(model, scheme, np.zeros(len(model.names)))
    assert np.isfinite(chain.log_density[-1])


@pytest.mark.parametrize("sigma", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("rows", ["distinct", "duplicated"])
@pytest.mark.parametrize(
    ("key", "scheme", "options"),
    [each for each in SCHEMES if any("noise" in of for of in kinds(each[0]))],
)
def test_noise_down_to_a_millionth(key, scheme, options, sigma, rows):
    inputs = X if rows == "distinct" else np.repeat(X[:3], 3, axis=0)
    model = held(key, options, inputs, noise=(np.log(sigma), 0.1))
    run(model, scheme, model.prior_mean().theta)


@pytest.mark.parametrize("scheme", LatentVariance.schemes)
@pytest.mark.parametrize("scale", ["log", "abs"])
def test_gplv_noise_starting_at_a_millionth(scheme, scale):
    model = LatentVariance(np.repeat(X[:3], 3, axis=0), Y, link=scale)
    latent = np.full(9, np.log(1e-6) if scale == "log" else 1e-6)
    run(model, scheme, model.prior_mean().theta, latent)


@pytest.mark.parametrize("scheme", LatentVariance.schemes)
def test_gplv_noise_starting_beyond_what_a_double_holds(scheme):
    model = LatentVariance(X, Y)
    run(model, scheme, model.prior_mean().theta, np.full(9, 400.0))
    run(model, scheme, model.prior_mean().theta, np.full(9, -400.0))


# States that are impossible.


@every_scheme
def test_covariance_that_is_not_positive_definite_is_counted(key, scheme, options):
    # A signal so large, at inputs so close, that the noise is lost in rounding.
    model = held(key, options, signal=(18.0, 2.0), length_scale=(8.0, 1.0), noise=(-8.0, 2.0))
    # What happens in warm-up is not counted, and a chain may be out of there by its end.
    chain = run(model, scheme, model.prior_mean().theta, warmup=0)
    assert sum(n for name, n in chain.events.items() if "not positive definite" in name) > 0
    assert sum(n for name, n in chain.events.items() if name.endswith("impossible")) > 0


# Latent values, by model and option, that mean little noise.
LITTLE_NOISE = {("gplv",): -9.0, ("gplv", "abs"): 1e-4}


@every_scheme
def test_chain_leaves_an_impossible_start(key, scheme, options):
    model = MODELS[key](
        np.zeros((6, 1)), np.arange(6.0), SquaredExponential(constant=0.0), **options
    )
    theta, latent = model.prior_mean().theta, np.zeros(model.n_latent)
    latent += LITTLE_NOISE.get((key, *options.values()), 0.0)
    theta[["noise" in name for name in model.names]] = -9.0
    signal = [name.startswith("signal") for name in model.names].index(True)
    # The smallest signal that drowns the noise at one and the same x.
    while np.isfinite(model.log_density(Unknowns(theta, latent))):
        theta[signal] += 0.1
    chain = run_chain(model, scheme, seed=3, draws=60, warmup=40, unknowns=Unknowns(theta, latent))
    assert not np.isnan(chain.log_density).any()
    assert np.isfinite(chain.log_density[-1])


@pytest.mark.parametrize("scheme", LatentVariance.schemes)
def test_chain_survives_a_secondary_process_that_is_not_positive_definite(scheme):
    model = LatentVariance(np.zeros((6, 1)), np.arange(6.0), SquaredExponential(constant=0.0))
    theta = np.array([0.0, 0.0, 20.0, 0.0])  # C_z = e^40 everywhere, jitter lost
    assert model.state(Unknowns(theta, np.zeros(6))).solved[1].factor is None
    chain = run(model, scheme, theta, np.zeros(6))
    assert sum(n for name, n in chain.events.items() if "C_z not positive definite" in name) > 0


@every_scheme
def test_hopeless_start_is_left_alone_and_visible(key, scheme, options):
    # Not positive definite wherever the hyperparameters can go: y overflows any density.
    model = MODELS[key](X, np.full(9, 1e200), **options)
    chain = run(model, scheme, model.prior_mean().theta, draws=3, warmup=1)
    assert (chain.log_density == -np.inf).all()
    assert sum(n for name, n in chain.events.items() if name.endswith("impossible")) > 0


def test_hyperparameters_beyond_limits_are_impossible_and_counted():
    for cls in MODELS.values():
        model = cls(X, Y)
        state = model.state(model.sample_prior(np.random.default_rng(4)))
        for name in model.names:
            _, target = model.parts[name](state)
            for value in (51.0, -51.0, np.inf, -np.inf, np.nan):
                assert target.evaluate(value).log_density == -np.inf
        assert model.ledger["beyond limits"] == 5 * len(model.names)


# Bad input.

NEW = [
    (
        ([[0.0], [1.0]], [1.0, 2.0, 3.0]),
        r"X and y must have the same .*got X \(2, 1\) and y \(3,\)",
    ),
    (([0.0, 1.0], [1.0, 2.0]), r"X must have 2 dimension\(s\), got shape \(2,\); reshape X"),
    (
        ([[0.0], [1.0]], [[1.0], [2.0]]),
        r"y must have 1 dimension\(s\), got shape \(2, 1\); flatten",
    ),
    (([[0.0], [np.nan]], [1.0, 2.0]), r"X must be finite, got nan at index \(1, 0\); remove"),
    (([[0.0], [np.inf]], [1.0, 2.0]), r"X must be finite, got inf at index \(1, 0\); remove"),
    (([[0.0], [1.0]], [1.0, -np.inf]), r"y must be finite, got -inf at index \(1,\); remove"),
    (([["a"], ["b"]], [1.0, 2.0]), r"X must be an array of real numbers, got list; convert"),
    (([[0.0], [1.0]], ["low", "high"]), r"y must be an array of real numbers, got list; convert"),
    (([[0.0], [1.0]], [None, 1.0]), r"y must be "),
    (([[0.0], [1.0, 2.0]], [1.0, 2.0]), r"X must be an array of real numbers"),
    ((np.empty((0, 1)), []), r"same positive number of rows, got X \(0, 1\)"),
    ((np.empty((2, 0)), [1.0, 2.0]), r"X and y must have .*got X \(2, 0\)"),
]


@pytest.mark.parametrize("key", sorted(MODELS))
@pytest.mark.parametrize(("data", "message"), NEW)
def test_bad_data_is_an_error_that_names_it(key, data, message):
    with pytest.raises(ValueError, match=message):
        MODELS[key](*data)


PRIORS = [
    ({"lengthscale": (0.0, 1.0)}, r"priors has no hyperparameter 'lengthscale'; this model has"),
    ({"signal_sd": (0.0, 1.0, 2.0)}, r"priors\['signal_sd'\] must be \(mean, sd\).*got \(0\.0"),
    ({"signal_sd": 1.0}, r"priors\['signal_sd'\] must be \(mean, sd\).*got 1\.0"),
    ({"signal_sd": (0.0, 0.0)}, r"priors\['signal_sd'\] sd must be .*got 0\.0; try"),
    ({"signal_sd": (0.0, -1.0)}, r"priors\['signal_sd'\] sd must be .*got -1\.0; try"),
    ({"signal_sd": (np.nan, 1.0)}, r"priors\['signal_sd'\] mean must be .*got nan; give"),
    ({"signal_sd": ("a", 1.0)}, r"priors\['signal_sd'\] mean must be .*got 'a'; give"),
    ({"signal_sd": (0.0, np.inf)}, r"priors\['signal_sd'\] sd must be .*got inf; try"),
]


@pytest.mark.parametrize("key", sorted(MODELS))
@pytest.mark.parametrize(("priors", "message"), PRIORS)
def test_bad_prior_is_an_error_that_names_it(key, priors, message):
    with pytest.raises(ValueError, match=message):
        MODELS[key](X, Y, priors=priors)


def test_the_most_specific_prior_counts():
    names = ("length_scale_z[0]", "length_scale_z[1]", "length_scale_y[0]")
    given = {"length_scale": (1.0, 1.0), "length_scale_z": (2.0, 1.0), names[1]: (3.0, 1.0)}
    assert LogPriors(names, given).means.tolist() == [2.0, 3.0, 1.0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SquaredExponential(constant=-1.0), r"constant must be .*got -1\.0; 1\.0 suits"),
        (lambda: SquaredExponential(constant=np.nan), r"constant must be .*got nan; 1\.0 suits"),
        (lambda: LatentVariance(X, Y, link="sqrt"), r"link must be one of .*got 'sqrt'; choose"),
        (lambda: LatentVariance(X, Y, jitter=0.0), r"jitter must be .*got 0\.0; the paper has"),
        (lambda: LatentVariance(X, Y, jitter=-1e-3), r"jitter must be .*got -0\.001; the paper"),
    ],
)
def test_bad_option_is_an_error_that_names_it(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_inputs_are_copied_and_left_alone():
    for cls in MODELS.values():
        inputs, y = X.copy(), Y.copy()
        model = cls(inputs, y)
        run_chain(model, seed=5, draws=3, warmup=2)
        assert np.array_equal(inputs, X)
        assert np.array_equal(y, Y)
        inputs[:] = np.nan
        assert np.isfinite(model.log_density(model.prior_mean()))


@pytest.mark.parametrize("key", MODELS)
def test_a_start_far_from_the_data_stays_where_things_can_be_computed(key):
    """Responses that the prior takes for next to impossible send the first updates far away."""
    rng = np.random.default_rng(8)
    model = MODELS[key](rng.standard_normal((12, 1)), 300.0 * rng.standard_normal(12))
    for scheme in model.schemes:
        chain = run_chain(model, scheme, seed=3, draws=10, warmup=10)
        assert np.isfinite(chain.log_density).all()
        assert all(model.priors.allows(theta) for theta in chain.theta)
