"""A Gaussian process as a value, and what it answers once it is solved."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from gplc._linalg import add_to_diagonal
from gplc._types import Array
from gplc.kernels import Bound, Kernel, Touches
from gplc.kernels.bound import Pieces
from gplc.priors import LogNormal, LogPriors
from gplc.processes.noise import Noise
from gplc.processes.replicates import Replicates


class Layout:
    """Hands out places in theta, in the order in which they are asked for.

    Examples
    --------
    >>> layout = Layout()
    >>> layout.place({"signal_sd": LogNormal(0.0, 1.0), "length_scale": LogNormal(0.0, 1.0)})
    slice(0, 2, None)
    >>> layout.place({"noise_sd": LogNormal(-1.0, 1.5)})
    slice(2, 3, None)
    """

    def __init__(self) -> None:
        self.hyperparameters: dict[str, LogNormal] = {}

    def place(self, more: Mapping[str, LogNormal]) -> slice:
        """The place of some hyperparameters, which have to have names of their own."""
        taken = sorted(self.hyperparameters.keys() & more.keys())
        if taken:
            raise ValueError(
                f"two parts of a model learn {', '.join(taken)}; give one of them another name"
            )
        first = len(self.hyperparameters)
        self.hyperparameters |= more
        return slice(first, len(self.hyperparameters))


class Gradient(NamedTuple):
    """How a function of a covariance C changes with what C is made of."""

    kernel: Array  # by the hyperparameters of the kernel
    noise: Array  # by those of the noise
    latent: Array  # by the latent inputs: (q, n)
    diagonal: Array  # by the entries on the diagonal of C: (n,)


@dataclass(frozen=True, eq=False)
class Process:
    """A kernel bound to the inputs of n cases, its place in theta, and its noise.

    Parameters
    ----------
    name : str
        What the ledger calls its covariance matrix: ``C``, ``C_y``, ``C_z``.
    bound : Bound
        The kernel at the inputs.
    noise : Noise
        What is added to the diagonal.
    place, noise_place : slice
        Where the hyperparameters of both are in theta.
    ledger : Counter
        Operations done and numerical events met are entered here.
    replicates : Replicates, optional
        Which rows of data are at the same row of X, if X has less rows than the data.

    Examples
    --------
    >>> import numpy as np
    >>> from gplc.kernels import SquaredExponential
    >>> from gplc.processes import LearnedNoise
    >>> layout = Layout()
    >>> process = Process.placed(
    ...     layout, "C", SquaredExponential(), np.array([[0.0], [1.0]]), LearnedNoise()
    ... )
    >>> process.place, process.noise_place
    (slice(0, 2, None), slice(2, 3, None))
    >>> process.covariance(np.zeros(3)).round(3).tolist()
    [[3.0, 1.368], [1.368, 3.0]]
    """

    name: str
    bound: Bound
    noise: Noise
    place: slice
    noise_place: slice
    ledger: Counter[str] = field(default_factory=Counter)
    replicates: Replicates | None = None

    @classmethod
    def placed(
        cls,
        layout: Layout,
        name: str,
        kernel: Kernel,
        X: Array,
        noise: Noise,
        n_latent: int = 0,
        suffix: str = "",
        replicates: Replicates | None = None,
    ) -> "Process":
        """A process whose kernel takes the next place in theta, and its noise the one after."""
        bound = Bound(kernel, X, n_latent, suffix)
        place = layout.place({each.name: each.prior for each in bound.hyperparameters})
        noise_place = layout.place(noise.hyperparameters)
        return cls(name, bound, noise, place, noise_place, replicates=replicates)

    def check(self, X: Array, priors: LogPriors) -> None:
        """Refuse a kernel of the user's that is no covariance function."""
        self.bound.check(X, priors.means[self.place], priors.sds[self.place])

    def pieces(self, theta: Array, W: Array | None = None) -> Pieces:
        """What the covariance of the function is made of, computed from nothing."""
        self.ledger[self.name] += 1
        return self.bound.pieces(theta[self.place], W)

    def changed(self, index: int, theta: Array, pieces: Pieces, W: Array | None = None) -> Pieces:
        """The pieces after theta[index] has changed: the same, if they do not depend on it."""
        if not self.place.start <= index < self.place.stop:
            return pieces
        own = index - self.place.start
        touches = self.bound.touches(own)
        if touches is Touches.SCALE:
            return pieces
        # Latent inputs alone cost little: what is counted is a matrix made anew from all inputs.
        if touches is Touches.INPUTS or self.bound.n_latent == 0:
            self.ledger[self.name] += 1
        return self.bound.changed(own, theta[self.place], pieces, W)

    def moved(self, theta: Array, pieces: Pieces, W: Array) -> Pieces:
        """The pieces after the latent inputs have changed."""
        return self.bound.moved(theta[self.place], pieces, W)

    def covariance(
        self,
        theta: Array,
        W: Array | None = None,
        *,
        pieces: Pieces | None = None,
        noise: Noise | None = None,
    ) -> Array:
        """C = K + diag(noise), as a new array; with another noise, or from pieces, if given.

        Of all rows, if several are at the same place.
        """
        pieces = self.pieces(theta, W) if pieces is None else pieces
        variance = (noise or self.noise).variance(theta[self.noise_place])
        K = self.bound.matrix(theta[self.place], pieces)
        if self.replicates is not None:
            K = K[np.ix_(self.replicates.place, self.replicates.place)]
        return add_to_diagonal(K, variance)

    def concerns(self, index: int) -> bool:
        """Whether C depends on theta[index]."""
        of_kernel, of_noise = self.place, self.noise_place
        return of_kernel.start <= index < of_kernel.stop or of_noise.start <= index < of_noise.stop


class Solved(Protocol):
    """A process at one value of its hyperparameters and latent inputs, with data y.

    The questions are the same however it is solved; all but the first may be asked only where
    the log density is finite.
    """

    @property
    def log_density(self) -> float:
        """Log N(y | 0, C); -inf if it cannot be computed."""

    def gradient(self) -> Gradient:
        """How the log density changes."""

    def conditional(self, X: Array, w: Array | None = None) -> tuple[Array, Array]:
        """Mean and variance of the function at new rows, w being their latent inputs: (rows,)."""

    def left_out(self) -> tuple[Array, Array]:
        """Mean and variance of each y_i given all the others: (n,)."""

    def draw(self, rng: np.random.Generator) -> Array:
        """A draw of the function at the cases, given y: (n,)."""
