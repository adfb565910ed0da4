"""Random kernels, inputs and hyperparameters, for Hypothesis."""

from dataclasses import dataclass, fields

import numpy as np
from hypothesis import strategies as st

from gplc.kernels import KERNELS, Bound, Leaf
from gplc.priors import LogNormal

N_OBSERVED = 2


@dataclass(frozen=True)
class Laplace(Leaf):
    """A kernel as a user would write it: eta^2 exp(-sum_k |x_k - x'_k| / rho)."""

    def hyperparameters(self, n_columns):
        return {"signal_sd": LogNormal(0.0, 1.0), "reach": LogNormal(0.0, 0.5)}

    def evaluate(self, theta, A, B):
        distance = np.abs(A[:, None, :] - B[None, :, :]).sum(axis=2)
        return np.exp(2.0 * theta[0] - distance / np.exp(theta[1]))


@dataclass(frozen=True)
class Cauchy(Leaf):
    """Another, smooth one: eta^2 prod_k 1 / (1 + (x_k - x'_k)^2)."""

    def hyperparameters(self, n_columns):
        return {"signal_sd": LogNormal(0.0, 1.0)}

    def evaluate(self, theta, A, B):
        gaps = (A[:, None, :] - B[None, :, :]) ** 2
        return np.exp(2.0 * theta[0]) / np.prod(1.0 + gaps, axis=2)


@dataclass(frozen=True)
class Negative(Leaf):
    """Not a covariance: cos(x - x') - 1/2."""

    def hyperparameters(self, n_columns):
        return {"frequency": LogNormal(0.0, 1.0)}

    def evaluate(self, theta, A, B):
        return np.cos(np.exp(theta[0]) * (A[:, :1] - B[:, :1].T)) - 0.5


def settings_of(cls):
    """Any settings of a kernel of the package: numbers that are given or learned, and flags."""
    own = {
        each.name: each
        for each in fields(cls)
        if each.init and each.name not in ("inputs", "label")
    }
    return {
        name: st.booleans()
        if isinstance(each.default, bool)
        else st.sampled_from([each.default, 0.7])
        for name, each in own.items()
    }


def leaves(n_latent, smooth=False, own=True):
    """Any leaf with any settings, on any inputs; `smooth` ones have finite differences."""
    inputs = [(), ("x",), (0,), (1,)]
    if n_latent:
        inputs += [("w",), (0, "w"), ("x", "w0")]
    choices = [st.builds(cls, **settings_of(cls)) for cls in KERNELS.values()]
    if own:
        choices.append(st.just(Cauchy()))
        if not smooth:
            choices.append(st.just(Laplace()))
    return st.tuples(st.one_of(choices), st.sampled_from(inputs)).map(
        lambda pair: pair[0].on(*_seen(pair[0], pair[1]))
    )


def _seen(leaf, inputs):
    """The inputs, without latent ones for a kernel of levels."""
    return tuple(each for each in inputs if not (leaf.of_levels and str(each)[0] == "w"))


def kernels(n_latent, **options):
    """A leaf, or a sum or product of two or three, nested at most once."""
    leaf = leaves(n_latent, **options)
    pair = st.one_of(
        leaf,
        st.tuples(leaf, leaf).map(lambda p: p[0] + p[1]),
        st.tuples(leaf, leaf).map(lambda p: p[0] * p[1]),
    )
    return st.one_of(
        pair,
        st.tuples(pair, leaf).map(lambda p: p[0] + p[1]),
        st.tuples(pair, leaf).map(lambda p: p[0] * p[1]),
    )


@st.composite
def cases(draw, n=6, n_latent=None, **options):
    """A kernel bound to inputs, with theta and W."""
    q = draw(st.integers(0, 2)) if n_latent is None else n_latent
    kernel = draw(kernels(q, **options))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n, N_OBSERVED))
    X[:, 1] = np.rint(X[:, 1])  # levels that are there more than once
    bound = Bound(kernel, X, q)
    return bound, X, rng.normal(size=(q, n)), 0.5 * rng.normal(size=len(bound.names))
