"""Estimators on scikit-learn's contract: the only place that validates and scales data."""

import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from gplc import _check
from gplc._files import FileError
from gplc._version import __version__
from gplc.chains import Chain, chain_seeds, scheme_of
from gplc.components import BLOCK_COMPONENTS, ComponentSource, ShiftedComponents
from gplc.diagnostics import Diagnostics, diagnose
from gplc.draws import NODE_RULES, Draws
from gplc.kernels import Constant, Kernel, Leaf, from_record, to_record
from gplc.means import Mean, from_mean_record, mean_record, with_mean
from gplc.models import LatentCovariate, LatentVariance, Model, Standard, Update
from gplc.posterior import FunctionComponents, Posterior, ResponseComponents, residual_band
from gplc.predictive import Predictive, interval_probabilities
from gplc.sampling import Plan, Run, sample, seed_from_text, seed_to_text
from gplc.storage import SavedFit, fingerprint, save_fit

Array = NDArray[np.float64]
MeanFunction = Mean | Callable[[Array], ArrayLike]
RandomState = int | np.random.RandomState | np.random.Generator | np.random.SeedSequence | None

# Inputs further than this many SDs from the data are all equally far: no correlation is left.
FARTHEST = 1e100

# Settings that are kernels, of any estimator.
KERNEL_SETTINGS = ("kernel", "kernel_z")

# Sets the seeds of the nodes apart from those of the chains, which are numbered from 0.
NODE_KEY = 1_000_000


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
        # A column is constant if it varies by no more than rounding; that may be much, in 1e150.
        constant = sd <= 1e-12 * np.abs(location)
        sd *= largest
        return cls(location * largest, np.where(constant | (sd == 0.0), np.maximum(sd, 1.0), sd))

    @classmethod
    def none(cls, columns: tuple[int, ...]) -> "Scaling":
        """The identity."""
        return cls(np.zeros(columns), np.ones(columns))

    def apply(self, values: Array) -> Array:
        """Values in standard units."""
        with np.errstate(over="ignore"):
            return np.clip((values - self.location) / self.scale, -FARTHEST, FARTHEST)


@contextmanager
def _unchanged_on_error(estimator: BaseEstimator) -> Iterator[None]:
    """An error leaves no trace: an old fit stays whole, and nothing is ever half fitted.

    Scikit-learn's validation sets n_features_in_ and feature_names_in_ before all is known to be
    well.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


class _GaussianProcess(RegressorMixin, BaseEstimator):
    """What the three estimators share; their docstrings tell."""

    _model_class: ClassVar[type[Model]]
    _latent_name: ClassVar[str]

    def __init__(
        self,
        kernel: Kernel | None = None,
        priors: Mapping[str, Sequence[float]] | None = None,
        mean: MeanFunction = None,
        chains: int = 4,
        draws: int | Literal["auto"] = 1000,
        warmup: int = 500,
        max_draws: int = 20_000,
        max_seconds: float | None = None,
        sampler: str | Sequence[Update] = "default",
        standardize: bool = True,
        nodes: int = 7,
        node_rule: str = "stratified",
        predictive_draws: int | None = 400,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        progress: bool | Literal["auto"] = False,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        self.kernel = kernel
        self.priors = priors
        self.mean = mean
        self.chains = chains
        self.draws = draws
        self.warmup = warmup
        self.max_draws = max_draws
        self.max_seconds = max_seconds
        self.sampler = sampler
        self.standardize = standardize
        self.nodes = nodes
        self.node_rule = node_rule
        self.predictive_draws = predictive_draws
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress
        self.checkpoint = checkpoint

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
        self._check_settings()
        with _unchanged_on_error(self):
            inputs, response = validate_data(
                self,
                X,
                y,
                dtype=np.float64,
                order="C",  # the same table gives the same draws, whatever holds it
                y_numeric=True,
                ensure_min_samples=2,
            )
            response = response.astype(np.float64) - self._known_mean(inputs)
            x_scaling = Scaling.of(inputs) if self.standardize else Scaling.none(inputs.shape[1:])
            y_scaling = Scaling.of(response) if self.standardize else Scaling.none(())
            model = self._model(x_scaling.apply(inputs), y_scaling.apply(response))
            plan = self._plan(model)
            run = sample(
                model, plan, _seed(self.random_state), self._latent_name, self._marks(model)
            )
            self.model_ = model
            self.x_scaling_ = x_scaling
            self.y_scaling_ = y_scaling
            self.target_name_ = str(name) if (name := getattr(y, "name", None)) else None
            self._take(run)
        return self

    def extend(self, draws: int) -> Self:
        """Go on with the chains of a finished fit.

        Parameters
        ----------
        draws : int
            Draws to add to each chain.

        Returns
        -------
        self
            The same as if it had been fitted with so many more draws at once.
        """
        check_is_fitted(self, "posterior_")
        _check.integer("draws", draws, at_least=1, advice="1000 is a good start")
        total = self.chains_[0].log_density.size + draws
        plan = self._plan(self.model_)._replace(draws=total, chains=len(self.chains_))
        with _unchanged_on_error(self):
            self._take(
                sample(
                    self.model_,
                    plan,
                    self.seed_,
                    self._latent_name,
                    self._marks(self.model_),
                    self.chains_,
                )
            )
        return self

    def _check_settings(self) -> None:
        """Refuse, by name, what only the estimator knows to be wrong."""
        for name in KERNEL_SETTINGS:
            kernel = getattr(self, name, None)
            if not (kernel is None or isinstance(kernel, Kernel)):
                raise ValueError(
                    f"{name} must be a Kernel or None, got {kernel!r}; "
                    "try SquaredExponential(ard=False)"
                )
        if not callable(self.mean):
            with_mean(Constant(1.0), self.mean)
        if not (self.priors is None or isinstance(self.priors, Mapping)):
            raise ValueError(
                f"priors must be a mapping of names to (mean, sd), got {self.priors!r}; "
                'try {"noise_sd": (-1.0, 1.0)}'
            )
        if isinstance(self.sampler, str):
            _check.one_of("sampler", self.sampler, self._model_class.schemes)
        elif not (
            isinstance(self.sampler, Sequence)
            and self.sampler
            and all(isinstance(update, Update) for update in self.sampler)
        ):
            raise ValueError(
                f"sampler must be the name of a scheme or a list of Update, got {self.sampler!r}; "
                f"choose from {list(self._model_class.schemes)}"
            )
        if not isinstance(self.standardize, bool | np.bool_):
            raise ValueError(f"standardize must be True or False, got {self.standardize!r}")
        _check.integer("nodes", self.nodes, at_least=1, advice="7 is a good number")
        _check.one_of("node_rule", self.node_rule, NODE_RULES)
        if self.predictive_draws is not None:
            _check.integer(
                "predictive_draws",
                self.predictive_draws,
                at_least=1,
                advice="400 is a good number; None means all",
            )

    def _model(self, inputs: Array, response: Array) -> Model:
        return self._model_class(
            inputs,
            response,
            kernel=self.kernel,
            priors=self.priors,
            mean=None if callable(self.mean) else self.mean,
            **self._model_settings(),
        )

    def _known_mean(self, inputs: Array) -> Array | float:
        """The user's mean function at rows of X, both on the scale of the data."""
        if not callable(self.mean):
            return 0.0
        values = _check.finite_array("the values of mean", self.mean(inputs), 1)
        if values.size != inputs.shape[0]:
            raise ValueError(
                f"mean must give one number for each row of X, got {values.size} for "
                f"{inputs.shape[0]} rows; let it map an (n, p) array to n numbers"
            )
        return values

    def _plan(self, model: Model) -> Plan:
        return Plan.checked(
            model,
            self.sampler,
            chains=self.chains,
            draws=self.draws,
            warmup=self.warmup,
            max_draws=self.max_draws,
            max_seconds=math.inf if self.max_seconds is None else self.max_seconds,
            n_jobs=self.n_jobs,
            progress=self.progress,
            checkpoint=self.checkpoint,
        )

    def _marks(self, model: Model) -> dict[str, str]:
        """What a checkpoint must agree on: all that decides the draws, but not how many."""
        generator = isinstance(self.random_state, np.random.RandomState | np.random.Generator)
        return fingerprint(
            X=model.X,
            y=model.y,
            estimator=type(self).__name__,
            kernel=model.kernel,
            # The values of a function are in y.
            mean="a function" if callable(self.mean) else self.mean,
            priors={
                name: (float(mean), float(sd))
                for name, mean, sd in zip(
                    model.names, model.priors.means, model.priors.sds, strict=True
                )
            },
            sampler=[tuple(update) for update in scheme_of(model, self.sampler)],
            chains=self.chains,
            warmup=self.warmup,
            random_state=type(self.random_state).__name__ if generator else self.random_state,
            **self._model_settings(),
        )

    def _take(self, run: Run) -> None:
        """Set everything that follows from a run, and warn if it cannot be trusted."""
        self.seed_ = run.seed
        self._take_chains(run.chains)
        self.diagnostics_ = diagnose(self.draws_, run.chains, run.stopped)
        if not self.diagnostics_.ok:
            warnings.warn(
                f"Do not trust this fit yet: {self.diagnostics_.verdict}. "
                "print(model.diagnostics_) tells more.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _take_chains(self, chains: list[Chain]) -> None:
        self.chains_ = chains
        seed = self.seed_
        node_seeds = chain_seeds(
            np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, NODE_KEY)),
            len(chains),
        )
        self.draws_ = Draws.from_chains(
            chains,
            node_seeds,
            self._latent_name,
            self.nodes,
            self.node_rule,
            self.model_.node_size,
        )
        self.posterior_ = Posterior(self.model_, self.draws_.thinned(self.predictive_draws))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fit to a netCDF file that `gplc.load` reads, in this or another process.

        It holds the version, settings, scaling, training data, draws and diagnostics, and no
        code: a file from a stranger can do no more than be wrong. Kernels and a mean function of
        your own are kept by name, and have to be given to `gplc.load`.

        Parameters
        ----------
        path : path
            Replaced if it exists, whole or not at all.
        """
        check_is_fitted(self, "posterior_")
        if not isinstance(self.sampler, str):
            raise ValueError(
                f"a fit with a scheme of your own cannot be saved, got sampler={self.sampler!r}; "
                "use one of the model's schemes by name, or keep draws_.to_arviz()"
            )
        settings = self.get_params(deep=False)
        for name in KERNEL_SETTINGS:
            if settings.get(name) is not None:
                settings[name] = to_record(settings[name])
        settings["mean"] = mean_record(settings["mean"])
        if settings["priors"] is not None:
            settings["priors"] = {
                name: [float(value) for value in prior]
                for name, prior in settings["priors"].items()
            }
        if not isinstance(settings["random_state"], int | None):
            settings["random_state"] = None  # its seed is kept with the chains
        # A path in a file must never decide where something is written later.
        settings["checkpoint"] = None
        save_fit(
            path,
            self.chains_,
            {
                "X": (("row", "input"), self.model_.X),
                "y": (("row",), self.model_.y),
                "x_location": (("input",), self.x_scaling_.location),
                "x_scale": (("input",), self.x_scaling_.scale),
                "y_location": ((), self.y_scaling_.location),
                "y_scale": ((), self.y_scaling_.scale),
            },
            {
                "version": __version__,
                "estimator": type(self).__name__,
                "settings": settings,
                "seed": seed_to_text(self.seed_),
                "features": list(getattr(self, "feature_names_in_", [])),
                "target": self.target_name_,
                "diagnostics": self.diagnostics_.to_record(),
            },
        )

    def _restore(self, saved: SavedFit) -> Self:
        """Set all that a fit sets, from a file."""
        self.x_scaling_ = Scaling(saved.array("x_location"), saved.array("x_scale"))
        self.y_scaling_ = Scaling(saved.array("y_location"), saved.array("y_scale"))
        self.model_ = self._model(saved.array("X"), saved.array("y"))
        self.n_features_in_ = self.model_.X.shape[1]
        if features := saved.record("features"):
            self.feature_names_in_ = np.array(features, dtype=object)
        self.target_name_ = saved.record("target")
        self.seed_ = seed_from_text(saved.record("seed"))
        self._take_chains(saved.chains(scheme_of(self.model_, self.sampler)))
        self.diagnostics_ = Diagnostics.from_record(saved.record("diagnostics"))
        return self

    def _new_inputs(self, X: ArrayLike) -> tuple[Array, Array | float]:
        """Rows of X in standard units, and the known part of their mean."""
        check_is_fitted(self, "posterior_")
        inputs: Array = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        return self.x_scaling_.apply(inputs), self._known_mean(inputs)

    def _on_scale_of_y(self, source: ComponentSource, known: Array | float) -> Predictive:
        if isinstance(known, np.ndarray):
            source = ShiftedComponents(source, known / float(self.y_scaling_.scale))
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
        inputs, known = self._new_inputs(X)
        return self._on_scale_of_y(ResponseComponents(self.posterior_, inputs), known)

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
        inputs, known = self._new_inputs(X)
        return self._on_scale_of_y(FunctionComponents(self.posterior_, inputs), known)

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
        inputs, _ = self._new_inputs(X)
        posterior = self.posterior_
        band = np.empty((3, inputs.shape[0]))
        height = max(1, BLOCK_COMPONENTS // (len(posterior) * posterior.n_nodes))
        for begin in range(0, inputs.shape[0], height):
            rows = slice(begin, begin + height)
            band[:, rows] = residual_band(posterior, inputs[rows], probabilities)
        return Band(*(band * float(self.y_scaling_.scale)))


def _seed(random_state: RandomState) -> np.random.SeedSequence:
    """A seed sequence, resolved from whatever scikit-learn and NumPy call a random state."""
    if isinstance(random_state, np.random.SeedSequence):
        return np.random.SeedSequence(random_state.entropy, spawn_key=random_state.spawn_key)
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(random_state.integers(2**32, size=4).tolist())
    try:
        generator = check_random_state(random_state)
    except ValueError as error:
        raise ValueError(
            f"random_state must be an integer, a generator or None, got {random_state!r}; "
            "0 will do"
        ) from error
    numbers = generator.randint(2**31 - 1, size=4)
    return np.random.SeedSequence([int(number) for number in numbers])


class StandardGP(_GaussianProcess):
    """Gaussian process regression with Gaussian noise of constant variance, full Bayes (STD).

    y = f(x) + e,  f ~ GP(0, K),  e ~ N(0, sigma^2)

    Parameters
    ----------
    kernel : Kernel, optional
        Covariance function, from `gplc.kernels`; by default `SquaredExponential`, with one length
        scale per input (ARD) and c = 1.
    priors : mapping of str to (mean, sd), optional
        Gaussian priors of log hyperparameters that replace the defaults of `gplc.priors`.
    mean : {"zero", "constant", "linear"}, ConstantMean, LinearMean or callable, optional
        Mean of the process, zero by default. Coefficients of a constant or linear mean have wide
        Gaussian priors and are integrated out. A function of yours maps X to n numbers, both on
        the scale of the data, and is taken as known.
    chains : int
        Number of chains.
    draws : int or "auto"
        Draws kept of each chain. "auto" goes on until R-hat is below 1.01 and bulk and tail ESS
        above 400 for everything that is judged, or until `max_draws` or `max_seconds`.
    warmup : int
        Iterations before those, in which the samplers tune themselves.
    max_draws : int
        Bound for ``draws="auto"``.
    max_seconds : float, optional
        Sampling stops after this time with the draws it has.
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
    progress : bool or "auto"
        Show a bar per chain; "auto" in terminals and notebooks only.
    checkpoint : path, optional
        File that keeps the run as it goes. A fit with the same data and settings resumes it;
        other data or settings are refused.

    Attributes
    ----------
    draws_ : Draws
        Posterior draws by name.
    diagnostics_ : Diagnostics
        R-hat, effective sample sizes and more; prints as a table with a verdict.
    chains_ : list of Chain
        The chains themselves: acceptance rates, numerical events, seconds.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    target_name_ : str or None
        Name of y, if it is a column that has one.

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
    kernel : Kernel, optional
        Covariance function of x and w; by default `SquaredExponential`, of both.
    priors, mean, chains, draws, warmup, max_draws, max_seconds, sampler, standardize
        As in `StandardGP`.
    nodes : int
        Values of w for a new case per draw.
    node_rule, predictive_draws, n_jobs, random_state, progress, checkpoint
        As in `StandardGP`.
    n_latent : int
        Number of latent covariates; 2 for residuals that one cannot describe.
    noise_sd : float, optional
        sigma, fixed, in units of the SD of y; learned by default.

    Attributes
    ----------
    draws_, diagnostics_, chains_, n_features_in_, feature_names_in_, target_name_
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

    def __init__(
        self,
        kernel: Kernel | None = None,
        priors: Mapping[str, Sequence[float]] | None = None,
        mean: MeanFunction = None,
        chains: int = 4,
        draws: int | Literal["auto"] = 1000,
        warmup: int = 500,
        max_draws: int = 20_000,
        max_seconds: float | None = None,
        sampler: str | Sequence[Update] = "default",
        standardize: bool = True,
        nodes: int = 7,
        node_rule: str = "stratified",
        predictive_draws: int | None = 400,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        progress: bool | Literal["auto"] = False,
        checkpoint: str | os.PathLike[str] | None = None,
        n_latent: int = 1,
        noise_sd: float | None = None,
    ) -> None:
        super().__init__(
            kernel=kernel,
            priors=priors,
            mean=mean,
            chains=chains,
            draws=draws,
            warmup=warmup,
            max_draws=max_draws,
            max_seconds=max_seconds,
            sampler=sampler,
            standardize=standardize,
            nodes=nodes,
            node_rule=node_rule,
            predictive_draws=predictive_draws,
            n_jobs=n_jobs,
            random_state=random_state,
            progress=progress,
            checkpoint=checkpoint,
        )
        self.n_latent = n_latent
        self.noise_sd = noise_sd

    def _model_settings(self) -> dict[str, Any]:
        return {"n_latent": self.n_latent, "noise_sd": self.noise_sd}


class LatentVarianceGP(_GaussianProcess):
    """Gaussian process regression whose noise SD is given by a second process (GPLV).

    y = f(x) + e,  e ~ N(0, SD(x)^2),  SD(x) = exp(z(x)) or abs(z(x)),  f and z ~ GPs

    Parameters
    ----------
    scale : {"log", "abs", "learned"}
        Whether the second process is the log SD, or the SD its absolute value, or a positive and
        rising function of it that is learned (see `gplc.models.LatentVariance`).
    kernel, priors, mean, chains, draws, warmup, max_draws, max_seconds, sampler, standardize
        As in `StandardGP`; `kernel` serves both processes unless there is a `kernel_z`.
    nodes : int
        Values of z for a new case per draw.
    node_rule, predictive_draws, n_jobs, random_state, progress, checkpoint
        As in `StandardGP`.
    kernel_z : Kernel, optional
        Covariance function of the second process.
    mean_z : float
        Centre of the second process; with ``scale="log"``, of the log SD of the noise in units of
        the SD of y.

    Attributes
    ----------
    draws_, diagnostics_, chains_, n_features_in_, feature_names_in_, target_name_
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
        kernel: Kernel | None = None,
        priors: Mapping[str, Sequence[float]] | None = None,
        mean: MeanFunction = None,
        chains: int = 4,
        draws: int | Literal["auto"] = 1000,
        warmup: int = 500,
        max_draws: int = 20_000,
        max_seconds: float | None = None,
        sampler: str | Sequence[Update] = "default",
        standardize: bool = True,
        nodes: int = 7,
        node_rule: str = "stratified",
        predictive_draws: int | None = 400,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        progress: bool | Literal["auto"] = False,
        checkpoint: str | os.PathLike[str] | None = None,
        kernel_z: Kernel | None = None,
        mean_z: float = 0.0,
    ) -> None:
        super().__init__(
            kernel=kernel,
            priors=priors,
            mean=mean,
            chains=chains,
            draws=draws,
            warmup=warmup,
            max_draws=max_draws,
            max_seconds=max_seconds,
            sampler=sampler,
            standardize=standardize,
            nodes=nodes,
            node_rule=node_rule,
            predictive_draws=predictive_draws,
            n_jobs=n_jobs,
            random_state=random_state,
            progress=progress,
            checkpoint=checkpoint,
        )
        self.scale = scale
        self.kernel_z = kernel_z
        self.mean_z = mean_z

    def _model_settings(self) -> dict[str, Any]:
        return {"link": self.scale, "kernel_z": self.kernel_z, "mean_z": self.mean_z}


ESTIMATORS: Mapping[str, type[_GaussianProcess]] = {
    each.__name__: each for each in (StandardGP, LatentCovariateGP, LatentVarianceGP)
}


def load(
    path: str | os.PathLike[str],
    *,
    kernels: Iterable[type[Leaf]] = (),
    mean: Callable[[Array], ArrayLike] | None = None,
) -> Any:
    """A fit that `save` wrote: the estimator, fitted, with the same predictions.

    Parameters
    ----------
    path : path
    kernels : iterable of classes
        Kernels of your own that the fit was made with; a file names them and holds no code.
    mean : callable, optional
        The mean function of your own that the fit was made with.

    Returns
    -------
    StandardGP, LatentCovariateGP or LatentVarianceGP

    Examples
    --------
    >>> import tempfile, os
    >>> model = StandardGP(chains=1, draws=10, warmup=10, random_state=0).fit([[0], [1]], [0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "fit.nc"))
    ...     again = load(os.path.join(folder, "fit.nc"))
    >>> bool(again.predict([[0.5]]) == model.predict([[0.5]]))
    True
    """
    saved = SavedFit(path)
    name = saved.record("estimator")
    if name not in ESTIMATORS:
        raise FileError(
            f"{path} holds a fit of {name!r} by gplc {saved.record('version')}, which this "
            f"version ({__version__}) does not know; use that version"
        )
    settings = saved.record("settings")
    for setting in KERNEL_SETTINGS:
        if settings.get(setting) is not None:
            settings[setting] = from_record(settings[setting], kernels)
    settings["mean"] = from_mean_record(settings["mean"], mean)
    return ESTIMATORS[name](**settings)._restore(saved)
