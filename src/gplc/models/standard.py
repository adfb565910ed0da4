"""STD: a Gaussian process with Gaussian noise of constant variance."""

import numpy as np

from gplc._types import Array
from gplc.models.base import LEAST_VARIANCE, Given, Model, State, Unknowns, Update
from gplc.processes import Dense, Layout, LearnedNoise, Noise, Process
from gplc.samplers.hamiltonian import Hamiltonian
from gplc.samplers.slice import Slice


class Standard(Model):
    """y_i = f(x_i) + e_i,  f ~ GP(0, K),  e_i ~ N(0, sigma^2).

    With known noise the variance of e_i is s_i^2 + sigma^2, or s_i^2 alone.

    theta = (theta of the kernel, log sigma). With the default kernel that is (log eta, log rho_1,
    ..., log rho_p, log sigma), `names` = ``signal_sd``, ``length_scale`` (with an index if ARD),
    ``noise_sd``.

    Examples
    --------
    >>> import numpy as np
    >>> model = Standard([[0.0], [1.0]], [0.5, -0.5])
    >>> model.names
    ('signal_sd', 'length_scale', 'noise_sd')
    >>> round(model.log_density(model.prior_mean()), 4)
    -5.8204
    """

    key = "std"
    title = "STD"
    noise_summary = "Gaussian noise, the same everywhere"
    noise_varies = False
    noise_is_gaussian = True
    merges = True

    def _noise(self) -> Noise:
        """What is added to f besides known noise; a subclass may have another one."""
        return LearnedNoise()

    def _processes(self, layout: Layout) -> tuple[Process, ...]:
        noise = self._with_known(self._noise() if self.learned_noise else None)
        kernel, X = self._main_kernel(), self.bound_rows
        return (Process.placed(layout, "C", kernel, X, noise, replicates=self.replicates),)

    def _given(self, unknowns: Unknowns) -> tuple[Given, ...]:
        return (Given(self.y),)

    def _conditioned(self, state: State) -> "ConditionedOnNoise":
        return ConditionedOnNoise(*state.solved)

    def paper_scheme(self, width: float = 1.0) -> list[Update]:
        """Step-out slice sampling of each hyperparameter in turn, as in the paper."""
        return [Update(name, Slice(width)) for name in self.names]

    def default_scheme(self, leaps: int = 2) -> list[Update]:
        """Hamiltonian Monte Carlo of all hyperparameters together."""
        return [Update("all", Hamiltonian(leaps, dense=True)), *self._wide_moves()]

    schemes = {"default": default_scheme, "paper": paper_scheme}  # noqa: RUF012


class ConditionedOnNoise:
    """Prediction for one draw of a model whose noise is Gaussian given that draw and a node.

    Parameters
    ----------
    solved : Dense
        The process of f, at the draw.
    """

    def __init__(self, solved: Dense) -> None:
        self._solved = solved

    def _noise_variance(self, X: Array, nodes: Array) -> Array:
        """Variance of the noise at new rows, (rows, 1): known whatever the nodes."""
        process, theta = self._solved.process, self._solved.theta
        variance = self._solved.noise.at(theta[process.noise_place], X)
        return np.broadcast_to(variance, X.shape[:1])[:, None]

    def components(self, X: Array, nodes: Array) -> tuple[Array, Array]:
        """The mean of f(x), and SDs of f(x) and the noise together."""
        mean, variance = self.function(X)
        # Without learned noise f may be known to rounding at a new row.
        total = np.maximum(variance[:, None] + self._noise_variance(X, nodes), LEAST_VARIANCE)
        sds = np.sqrt(total)
        return np.broadcast_to(mean[:, None], sds.shape), sds

    def means(self, X: Array, nodes: Array) -> Array:
        """The mean of f(x) alone, whatever the node: (rows, 1)."""
        return self._solved.mean(X)[:, None]

    def function(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of f(x)."""
        return self._solved.conditional(X)

    def residual_variance(self, X: Array, nodes: Array) -> Array:
        """Variance of the noise, the mean over the nodes."""
        return self._noise_variance(X, nodes).mean(axis=1)
