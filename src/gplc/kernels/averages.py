"""Averages over w ~ N(0, 1) of functions that covariances have: formulas, or a fine rule."""

import math

import numpy as np
from scipy.special import erf

from gplc._types import Array
from gplc.kernels.separable import Form

# The rule where no formula is at hand: trapezoidal, with so many nodes for each of 1, 2, ...
# latent covariates, up to so far out.
RULE_NODES, RULE_END = (120, 22, 10), (7.5, 5.0, 4.0)


def latent_rule(n_covariates: int) -> tuple[Array, Array]:
    """Nodes (n_covariates, s) and weights (s,) of a rule for averages over w ~ N(0, I).

    Examples
    --------
    >>> nodes, weights = latent_rule(1)
    >>> round(float(weights @ nodes[0] ** 4), 6)
    3.0
    """
    which = min(n_covariates, len(RULE_NODES)) - 1
    each = np.linspace(-RULE_END[which], RULE_END[which], RULE_NODES[which])
    axes = np.meshgrid(*[each] * n_covariates, indexing="ij")
    nodes = np.array([axis.ravel() for axis in axes])
    weights = np.exp(-0.5 * np.sum(nodes**2, axis=0))
    return nodes, weights / weights.sum()


def average(form: Form, w: Array) -> Array:
    """E f(v, w) over v ~ N(0, 1), for each w.

    exp(-b (v - w)^2) N(v | 0, 1) is the density N(v | m, t) times sqrt(t) exp(-b t w^2), with
    t = 1 / (1 + 2 b) and m = 2 b t w. What is left are moments of N(m, t).

    Examples
    --------
    >>> import numpy as np
    >>> average(Form(power=2), np.array([3.0])).tolist()
    [9.0]
    """
    if form.curves:
        nodes, weights = latent_rule(1)
        return weights @ form.at(nodes[0][:, None], w)
    b = form.decay
    t = 1.0 / (1.0 + 2.0 * b)
    result = math.sqrt(t) * np.exp(-b * t * w**2)
    if form.power or form.side:
        result *= _moment(form.power, form.side, 2.0 * b * t * w, t)
        result *= w**form.power * np.where(w < 0.0, -1.0, 1.0) ** form.side
    return result


def _moment(power: int, side: int, mean: Array, variance: float) -> Array:
    """E v^power s(v)^side over v ~ N(mean, variance), s being the sign; by partial integration."""
    if side:
        scaled = mean / math.sqrt(2.0 * variance)
        before, last = np.zeros_like(mean), erf(scaled)
        # The step of the sign at zero adds its height times the density there.
        step = 2.0 * math.sqrt(variance / (2.0 * math.pi)) * np.exp(-(scaled**2))
    else:
        before, last, step = np.zeros_like(mean), np.ones_like(mean), np.zeros_like(mean)
    for k in range(1, power + 1):
        more = mean * last + (k - 1) * variance * before + (step if k == 1 else 0.0)
        before, last = last, more
    return last


def average_of_both(form: Form) -> float:
    """E f(v, w) over independent v, w ~ N(0, 1).

    Examples
    --------
    >>> average_of_both(Form(decay=2.0)) == 1 / 3
    True
    """
    if form == Form(decay=form.decay):
        return math.sqrt(1.0 / (1.0 + 4.0 * form.decay))
    nodes, weights = latent_rule(1)
    return float(weights @ average(form, nodes[0]))
