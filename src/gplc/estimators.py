"""Estimators on scikit-learn's contract: the only place that validates and scales data."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from gplc import _check
from gplc.chains import run_chains
from gplc.draws import Draws
from gplc.kernels import SquaredExponential
from gplc.models import LatentCovariate, LatentVariance, Model, Standard, Update
from gplc.posterior import FunctionComponents, Posterior, ResponseComponents, residual_sds
from gplc.predictive import BLOCK_COMPONENTS, ComponentSource, Predictive, interval_probabilities

Array = NDArray[np.float64]
RandomState = int | np.random.RandomState | np.random.Generator | np.random.SeedSequence | None

# Inputs further than this many SDs from the data are all equally far: no correlation is left.
FARTHEST = 1e100


class Band(NamedTuple):
    """Posterior of a quantity at every row: its mean and an equal-tailed interval, each (n,)."""

    mean: Array
    lower: Array
    upper: Array


class Scaling(NamedTuple):
    """An affine map to standard units: (value - location) / scale."""

    location: Array
    scale: Array

    @classmethod
    def of(cls, values: Array) -> "Scaling":
        """Mean and SD of each column; SD 1 where a column is constant."""
        # Divided by the largest first, so that squares of 1e200 or 1e-200 do no harm.
        largest = np.max(np.abs(values), axis=0)
        largest = np.where(largest > 0.0, largest, 1.0)
        inside = values / largest
        location = inside.mean(axis=0)
        sd = inside.std(axis=0)
        constant = sd <= 1e-12 * np.abs(location)
        return cls(location * largest, np.where(constant | (sd == 0.0), 1.0, sd * largest))

    @classmethod
    def none(cls, columns: tuple[int, ...]) -> "Scaling":
        """The identity."""
        return cls(np.zeros(columns), np.ones(columns))

    def apply(self, values: Array) -> Array:
        """Values in standard units."""
        with np.errstate(over="ignore"):
            return np.clip((values - self.location) / self.scale, -FARTHEST, FARTHEST)


class _GaussianProcess(RegressorMixin, BaseEstimator):
    """What the three estimators share; their docstrings tell."""

    _model_class: ClassVar[type[Model]]
    _latent_name: ClassVar[str]

    def __init__(
        self,
        kernel: SquaredExponential | None = None,
        priors: Mapping[str, Sequence[float]] | None = None,
        chains: int = 4,
        draws: int = 1000,
        warmup: int = 500,
        sampler: str | Sequence[Update] = "default",
        standardize: bool = True,
        nodes: int = 7,
        node_rule: str = "stratified",
        predictive_draws: int | None = 400,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.priors = priors
        self.chains = chains
        self.draws = draws
        self.warmup = warmup
        self.sampler = sampler
        self.standardize = standardize
        self.nodes = nodes
        self.node_rule = node_rule
        self.predictive_draws = predictive_draws
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _model_settings(self) -> dict[str, Any]:
        return {}

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Sample the posterior given data.

        Parameters
        ----------
        X : (n, p) array-like or data frame
            Inputs, n at least 2.
        y : (n,) array-like
            Responses.

        Returns
        -------
        self
        """
        inputs: Array
        response: Array
        inputs, response = validate_data(
            self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2
        )
        response = response.astype(np.float64)
        nodes = _check.integer("nodes", self.nodes, at_least=1, advice="7 is a good number")
        rule = _check.one_of("node_rule", self.node_rule, ("stratified", "random"))
        if self.predictive_draws is not None:
            _check.integer(
                "predictive_draws",
                self.predictive_draws,
                at_least=1,
                advice="400 is a good number; None means all",
            )
        x_scaling = Scaling.of(inputs) if self.standardize else Scaling.none(inputs.shape[1:])
        y_scaling = Scaling.of(response) if self.standardize else Scaling.none(())
        model = self._model_class(
            x_scaling.apply(inputs),
            y_scaling.apply(response),
            kernel=self.kernel,
            priors=self.priors,
            **self._model_settings(),
        )
        chain_seed, node_seed = _seed(self.random_state).spawn(2)
        chains = run_chains(
            model,
            self.sampler,
            chain_seed,
            chains=self.chains,
            draws=self.draws,
            warmup=self.warmup,
            n_jobs=self.n_jobs,
        )
        # All that a fit leaves is set here, at once: nothing is ever half fitted.
        self.model_ = model
        self.x_scaling_ = x_scaling
        self.y_scaling_ = y_scaling
        self.chains_ = chains
        self.draws_ = Draws.from_chains(
            chains,
            np.random.default_rng(node_seed),
            self._latent_name,
            nodes,
            rule,  # type: ignore[arg-type]
        )
        self.posterior_ = Posterior(model, self.draws_.thinned(self.predictive_draws))
        return self

    def _new_inputs(self, X: ArrayLike) -> Array:
        check_is_fitted(self)
        inputs: Array = validate_data(self, X, dtype=np.float64, reset=False)
        return self.x_scaling_.apply(inputs)

    def _on_scale_of_y(self, source: ComponentSource) -> Predictive:
        return Predictive(
            source,
            location=float(self.y_scaling_.location),
            scale=float(self.y_scaling_.scale),
        )

    def predict_dist(self, X: ArrayLike) -> Predictive:
        """Predictive distribution of y at each row of X.

        Parameters
        ----------
        X : (n, p) array-like or data frame

        Returns
        -------
        Predictive
            A mixture of Gaussians per row, over draws and values of the latent variable of the
            new case. It is lazy: nothing is computed before something is asked of it.
        """
        inputs = self._new_inputs(X)
        return self._on_scale_of_y(ResponseComponents(self.posterior_, inputs))

    def predict(self, X: ArrayLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Predictive mean, and SD if asked for.

        Parameters
        ----------
        X : (n, p) array-like or data frame
        return_std : bool

        Returns
        -------
        mean : (n,) array
        std : (n,) array, only if `return_std`
        """
        dist = self.predict_dist(X)
        if not return_std:
            return dist.mean()
        moments = dist.moments()
        return moments.mean, moments.std

    def predict_quantiles(self, X: ArrayLike, q: ArrayLike) -> Array:
        """Quantiles of the predictive distribution.

        Parameters
        ----------
        X : (n, p) array-like or data frame
        q : float or (k,) array-like
            Probabilities.

        Returns
        -------
        (n,) or (n, k) array
        """
        return self.predict_dist(X).quantile(q)

    def predict_interval(self, X: ArrayLike, coverage: float = 0.9) -> Array:
        """Equal-tailed predictive intervals.

        Parameters
        ----------
        X : (n, p) array-like or data frame
        coverage : float
            Probability inside, between 0 and 1.

        Returns
        -------
        (n, 2) array
            Lower and upper ends.
        """
        return self.predict_dist(X).interval(coverage)

    def sample_y(
        self, X: ArrayLike, n_samples: int = 1, random_state: RandomState = None
    ) -> Array:
        """Draws from the predictive distribution, independent between rows.

        Parameters
        ----------
        X : (n, p) array-like or data frame
        n_samples : int
        random_state : int, Generator, RandomState or None

        Returns
        -------
        (n, n_samples) array
        """
        rng = np.random.default_rng(_seed(random_state))
        return self.predict_dist(X).sample(n_samples, rng)

    def regression_function(self, X: ArrayLike) -> Predictive:
        """Posterior of the regression function f(x) = E(y | x): what is not known of the mean.

        Parameters
        ----------
        X : (n, p) array-like or data frame

        Returns
        -------
        Predictive
            A distribution of f at each row: ``.mean()``, ``.std()``, ``.interval(0.9)``.
        """
        inputs = self._new_inputs(X)
        return self._on_scale_of_y(FunctionComponents(self.posterior_, inputs))

    def residual_sd(self, X: ArrayLike, coverage: float = 0.9) -> Band:
        """Posterior of the SD of y - f(x) given x: what would stay if f were known.

        Parameters
        ----------
        X : (n, p) array-like or data frame
        coverage : float
            Posterior probability of the band.

        Returns
        -------
        Band
            Mean, lower and upper end of the band, each (n,). For a latent covariate or variance
            the SD of a draw is the root of its expected square.
        """
        probabilities = interval_probabilities(coverage)
        inputs = self._new_inputs(X)
        posterior = self.posterior_
        band = np.empty((3, inputs.shape[0]))
        height = max(1, BLOCK_COMPONENTS // (len(posterior) * posterior.n_nodes))
        for begin in range(0, inputs.shape[0], height):
            rows = slice(begin, begin + height)
            sds = residual_sds(posterior, inputs[rows])
            band[0, rows] = sds.mean(axis=1)
            band[1:, rows] = np.quantile(sds, probabilities, axis=1)
        return Band(*(band * float(self.y_scaling_.scale)))


def _seed(random_state: RandomState) -> np.random.SeedSequence:
    """A seed sequence, resolved from whatever scikit-learn and NumPy call a random state."""
    if isinstance(random_state, np.random.SeedSequence):
        return np.random.SeedSequence(random_state.entropy, spawn_key=random_state.spawn_key)
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(random_state.integers(2**32, size=4).tolist())
    numbers = check_random_state(random_state).randint(2**31 - 1, size=4)
    return np.random.SeedSequence([int(number) for number in numbers])


class StandardGP(_GaussianProcess):
    """Gaussian process regression with Gaussian noise of constant variance, full Bayes (STD).

    y = f(x) + e,  f ~ GP(0, K),  e ~ N(0, sigma^2)

    Parameters
    ----------
    kernel : SquaredExponential, optional
        Covariance function; by default one length scale per input (ARD) and c = 1.
    priors : mapping of str to (mean, sd), optional
        Gaussian priors of log hyperparameters that replace the defaults of `gplc.priors`.
    chains, draws, warmup : int
        Number of chains, draws kept of each, and iterations before those.
    sampler : str or list of Update
        Name of a scheme of the model (``"default"``, ``"paper"``), or a scheme.
    standardize : bool
        Whether X and y are brought to mean 0 and SD 1 inside. Priors are on that scale;
        everything returned is on the scale of the data.
    nodes : int
        Values of the latent variable of a new case per draw (no effect for this model).
    node_rule : {"stratified", "random"}
        How those values are chosen; random is the paper's way.
    predictive_draws : int or None
        Predictions average over at most this many draws, evenly spaced; None means all.
    n_jobs : int, optional
        Chains at once, as in joblib.
    random_state : int, RandomState, Generator, SeedSequence or None
        Resolved anew at each fit; the same seed gives the same fit.

    Attributes
    ----------
    draws_ : Draws
        Posterior draws by name.
    chains_ : list of Chain
        The chains themselves: acceptance rates, numerical events, seconds.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = StandardGP(chains=1, draws=50, warmup=50, random_state=0).fit(X, y)
    >>> bool(abs(model.predict([[0.25]])[0] - np.sin(1.5)) < 0.1)
    True
    """

    _model_class = Standard
    _latent_name = ""


class LatentCovariateGP(_GaussianProcess):
    """Gaussian process regression with a latent covariate (GPLC).

    y = g(x, w) + e,  g ~ GP(0, K),  w ~ N(0, 1),  e ~ N(0, sigma^2)

    The unobserved input w makes the residuals y - E(y | x) change with x in variance and in
    shape: they can be skewed, or have several modes.

    Parameters
    ----------
    kernel, priors, chains, draws, warmup, sampler, standardize
        As in `StandardGP`.
    nodes : int
        Values of w for a new case per draw.
    node_rule, predictive_draws, n_jobs, random_state
        As in `StandardGP`.

    Attributes
    ----------
    draws_, chains_, n_features_in_, feature_names_in_
        As in `StandardGP`; ``draws_["w"]`` are the latent covariates.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = LatentCovariateGP(chains=1, draws=50, warmup=50, random_state=0).fit(X, y)
    >>> model.predict_interval([[0.25], [0.75]]).shape
    (2, 2)
    """

    _model_class = LatentCovariate
    _latent_name = "w"


class LatentVarianceGP(_GaussianProcess):
    """Gaussian process regression whose noise SD is given by a second process (GPLV).

    y = f(x) + e,  e ~ N(0, SD(x)^2),  SD(x) = exp(z(x)) or abs(z(x)),  f and z ~ GPs

    Parameters
    ----------
    scale : {"log", "abs"}
        Whether the second process is the log SD, or the SD its absolute value.
    kernel, priors, chains, draws, warmup, sampler, standardize
        As in `StandardGP`; `kernel` serves both processes.
    nodes : int
        Values of z for a new case per draw.
    node_rule, predictive_draws, n_jobs, random_state
        As in `StandardGP`.

    Attributes
    ----------
    draws_, chains_, n_features_in_, feature_names_in_
        As in `StandardGP`; ``draws_["z"]`` are the latent values.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = LatentVarianceGP(chains=1, draws=50, warmup=50, random_state=0).fit(X, y)
    >>> model.residual_sd([[0.25], [0.75]]).mean.shape
    (2,)
    """

    _model_class = LatentVariance
    _latent_name = "z"

    def __init__(
        self,
        scale: str = "log",
        kernel: SquaredExponential | None = None,
        priors: Mapping[str, Sequence[float]] | None = None,
        chains: int = 4,
        draws: int = 1000,
        warmup: int = 500,
        sampler: str | Sequence[Update] = "default",
        standardize: bool = True,
        nodes: int = 7,
        node_rule: str = "stratified",
        predictive_draws: int | None = 400,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            kernel=kernel,
            priors=priors,
            chains=chains,
            draws=draws,
            warmup=warmup,
            sampler=sampler,
            standardize=standardize,
            nodes=nodes,
            node_rule=node_rule,
            predictive_draws=predictive_draws,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.scale = scale

    def _model_settings(self) -> dict[str, Any]:
        return {"scale": self.scale}
