"""What all estimators share, on scikit-learn's contract: checks, units, fits, predictions."""

import copy
import dataclasses
import inspect
import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from numbers import Integral
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from gplc import _check
from gplc._check import interval_probabilities
from gplc._columns import Columns
from gplc._fitted import HasData, training_data, with_names
from gplc._frames import Rows
from gplc._types import Array
from gplc.chains import Chain, chain_seeds, with_judged
from gplc.components import BLOCK_COMPONENTS, ComponentSource, ShiftedComponents
from gplc.diagnostics import Diagnostics, diagnose
from gplc.draws import NODE_RULES, Draws
from gplc.estimators.cases import DataWarning, cases_of, new_noise, refuse_missing
from gplc.estimators.category_kernels import with_levels
from gplc.estimators.companions import from_prior, groups_of, on_scale_of_data, replicates
from gplc.estimators.distant import distant_of, is_distant, prepared
from gplc.estimators.files import ESTIMATORS, KERNEL_SETTINGS, renamed, save
from gplc.estimators.first_answers import begun_from, first_run, pilot
from gplc.estimators.left_out import chain_weights, leave_one_out
from gplc.estimators.predicting import PredictsRows
from gplc.estimators.prior_table import PriorTable, prior_table
from gplc.estimators.results import Approximated, ApproximationWarning, Band, Interrupted
from gplc.estimators.rounding import (
    atom_of,
    checked_resolution,
    rounding_sd,
    step_of,
    with_rounding,
)
from gplc.estimators.row_order import Ordered, order_of
from gplc.estimators.scaling import Scaling
from gplc.estimators.sizes import (
    EXACT_ROWS,
    MOST_INPUTS,
    MOST_WITH_POINTS,
    ROUNDS,
    TOLERATED_ERROR,
    TOLERATED_SHARE,
    affordable,
    better_points,
    by_chain,
    chosen_axes,
    chosen_points,
    measured_error,
    ranges_of,
    scales_of,
)
from gplc.estimators.units import rows_in, units_of
from gplc.kernels import Constant, Kernel, SquaredExponential
from gplc.loo import MOST_DRAWS, LeaveOneOut, thinned
from gplc.means import Mean, with_mean
from gplc.models import Model, Update
from gplc.models.in_basis import IN_BASIS, SAMPLED_POINTS, WITH_POINTS, InBasis, made_for
from gplc.posterior import FunctionComponents, ResponseComponents, residual_band
from gplc.predictive import Predictive
from gplc.priors import PriorLike
from gplc.processes.distant import DistantRows, RowsGone
from gplc.processes.hilbert import Axes, Hilbert, unsupported
from gplc.processes.inducing import Inducing, Points, without_points
from gplc.processes.interpolated import without_interpolation
from gplc.sampling import Plan, Run, sample
from gplc.storage import Saved, fingerprint
from gplc.transforms import (
    FUNCTIONS,
    TransformedPredictive,
    checked_transform,
    transform_of,
    transformed,
)

MeanFunction = Mean | Callable[[Array], ArrayLike]
Approximation = Hilbert | Inducing | Literal["auto"] | None
RandomState = int | np.random.RandomState | np.random.Generator | np.random.SeedSequence | None

# Nodes of a draw: what is gained ends far below, and a file may not ask for any amount of memory.
MOST_NODES = 10_000

# Leave-one-out keeps at most so many numbers, rows times draws.
MOST_LEFT_OUT = 20_000_000

# Sets the seeds of the nodes apart from those of the chains, which are numbered from 0.
NODE_KEY = 1_000_000
# Sets the seed of draws of y apart from both.
SAMPLE_KEY = 2_000_000


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


@dataclass(eq=False, repr=False)
class BaseGP(PredictsRows, RegressorMixin, BaseEstimator):
    """What the estimators share; `StandardGP` documents the settings.

    A subclass names its model and is entered in `ESTIMATORS` under the model's key. Settings of
    its own, which go to the model, are fields of a dataclass, so that scikit-learn finds all
    settings in the signature of the constructor::

        @dataclass(eq=False, repr=False)
        class MyGP(BaseGP):
            model_class = MyModel
            power: float = 1.0

    One that has none needs no decorator.

    Attributes
    ----------
    model_class : type of Model
        The model that is fitted, set by every subclass.
    old_names : mapping of str to str
        Settings that have another name now: they still work, and warn.
    """

    model_class: ClassVar[type[Model]]
    old_names: ClassVar[Mapping[str, str]] = MappingProxyType({})

    kernel: Kernel | None = None
    priors: Mapping[str, PriorLike] | None = None
    mean: MeanFunction = None
    chains: int = 4
    draws: int | Literal["auto"] = "auto"
    warmup: int = 500
    max_draws: int = 5_000
    max_seconds: float | None = None
    sampler: str | Sequence[Update] = "default"
    standardize: bool = True
    nodes: int = 7
    node_rule: str = "stratified"
    predictive_draws: int | None = 400
    n_jobs: int | None = None
    random_state: RandomState = None
    progress: bool | Literal["auto"] = "auto"
    checkpoint: str | os.PathLike[str] | None = None
    learned_noise: bool = True
    resolution: float | Literal["auto"] | None = None
    target_transform: Any = None
    approximation: Approximation = "auto"
    method: Literal["mcmc", "fast"] = "mcmc"
    scheduler: str | None = None

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if "model_class" not in vars(cls):
            return  # a variant of an estimator
        key = cls.model_class.key
        if key in ESTIMATORS:
            raise ValueError(
                f"the model {key!r} has the estimator {ESTIMATORS[key].__name__}; "
                "make a subclass of that"
            )
        ESTIMATORS[key] = cls

    def set_params(self, **params: Any) -> Self:
        """Change settings, those of a kernel too: ``kernel__ard=False``.

        So that searches can go over them. A kernel is replaced by another one, not changed.
        """
        for name in KERNEL_SETTINGS:
            keys = [key for key in params if key.startswith(f"{name}__")]
            changes = {key.removeprefix(f"{name}__"): params.pop(key) for key in keys}
            if changes:
                kernel = params.get(name, getattr(self, name, None)) or SquaredExponential()
                params[name] = _changed(kernel, name, changes)
        return cast(Self, super().set_params(**params))

    def _model_settings(self) -> dict[str, Any]:
        """What the model is told besides what every model is: the subclass's own settings."""
        shared = {field.name for field in dataclasses.fields(BaseGP)}
        own = [field.name for field in dataclasses.fields(self) if field.name not in shared]
        return renamed({name: getattr(self, name) for name in own}, self.old_names)

    def _warn_of_old_names(self) -> None:
        for old, new in self.old_names.items():
            if (value := getattr(self, old)) is not None:
                warnings.warn(
                    f"{old}= is now called {new}=; write {type(self).__name__}({new}={value!r})",
                    FutureWarning,
                    stacklevel=3,
                )

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        noise_std: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Sample the posterior given data.

        Parameters
        ----------
        X : (n, p) array-like or data frame
            Inputs, n at least 2, none missing. A Dask array or data frame stays where it is, and
            so does what `gplc.open_rows` gives.
        y : (n,) array-like
            Responses. Rows without one (NaN) are left out, with a warning that counts them.
        noise_std : float or (n,) array-like, optional
            SD of the noise that is known for each row, in units of y: that of an instrument. It
            is added to the noise that the model learns, or is all there is with
            ``learned_noise=False``.
        sample_weight : (n,) array-like of whole numbers, optional
            How often each row was seen: the same as if it were given so many times.

        Returns
        -------
        self
        """
        self._check_settings()
        self._warn_of_old_names()
        with _unchanged_on_error(self):
            prepared: tuple[Any, ...]
            if is_distant(X, y):
                prepared = self._prepared_elsewhere(X, y, noise_std, sample_weight)
            else:
                prepared = self._prepared(X, y, noise_std, sample_weight)
            now = datetime.now().astimezone()
            self.origin_ = {"date": now.strftime("%Y-%m-%d %H:%M %z")}
            self._sample(*prepared)
        for note in self.notes_:
            warnings.warn(note, DataWarning, stacklevel=2)
        return self._unless_interrupted()

    def _prepared(
        self,
        X: ArrayLike,
        y: ArrayLike,
        noise_std: ArrayLike | None,
        sample_weight: ArrayLike | None = None,
    ) -> tuple[Array, Array, Array | None]:
        """Inputs, responses and known noise in standard units; what units these are is set."""
        inputs: Array
        response: Array
        self._check_settings()
        cases = cases_of(X, y, noise_std, sample_weight)
        columns = Columns.learned(cases.X)
        given = cases.X if columns is None else columns.encoded(cases.X)
        inputs, response = self._validated(given, cases.y, y_numeric=True, ensure_min_samples=2)
        measured = response.astype(np.float64)
        transform = transform_of(self.target_transform, measured)
        step = step_of(measured) if self.resolution == "auto" else self.resolution
        noise = with_rounding(cases.noise_std, step, measured.size)
        response = measured
        target = str(name) if (name := getattr(y, "name", None)) else None
        if transform is not None:
            response, slopes = transformed(transform, measured, cases.rows, target)
            # To first order, as errors go through any function.
            noise = None if noise is None else noise * slopes
        response = response - self._known_mean(inputs)
        # Sums in the order of sampling, so that repeats are the same wherever they stand.
        order = order_of(inputs, response, noise) if self.model_class.orders_rows else None
        first = slice(None) if order is None else order
        x_scaling = Scaling.none(inputs.shape[1:])
        y_scaling = Scaling.none(())
        if self.standardize:
            x_scaling, y_scaling = Scaling.of(inputs[first]), Scaling.of(response[first])
        if columns is not None:  # levels stay numbers 0, 1, ...
            x_scaling = x_scaling.except_for([*columns.unordered, *columns.ordered])
        noise = None if noise is None else noise / y_scaling.scale
        self.columns_ = columns
        self.x_scaling_ = x_scaling
        self.y_scaling_ = y_scaling
        self.target_name_ = target
        self.n_given_, self.n_dropped_ = cases.given, cases.dropped
        self.resolution_ = None if step is None else float(step)
        self.transform_ = transform
        return x_scaling.apply(inputs), y_scaling.apply(response), noise

    def _prepared_elsewhere(
        self, X: Any, y: Any, noise_std: Any, sample_weight: Any
    ) -> tuple[Array, Array, None, DistantRows]:
        """The rows that are kept here in standard units, and all, where they are."""
        self.columns_ = None  # all are numbers
        self._refuse_elsewhere(X, noise_std, sample_weight)
        distant = distant_of(X, y, self.scheduler)
        if isinstance(self.approximation, str):  # else it was found out before
            self._refuse_elsewhere(np.empty((2, distant.inputs)), None, None)
        ready = prepared(distant, self.standardize, self.mean if callable(self.mean) else None)
        self.x_scaling_, self.y_scaling_ = ready.x_scaling, ready.y_scaling
        self.n_features_in_ = distant.inputs
        if hasattr(self, "feature_names_in_"):
            delattr(self, "feature_names_in_")
        if distant.features is not None:
            self.feature_names_in_ = np.array(distant.features, dtype=object)
        self.target_name_ = distant.target
        self.n_given_, self.n_dropped_ = distant.given, distant.dropped
        self.resolution_ = self.transform_ = None
        self._rows_digest = ready.digest
        return ready.rows.X, ready.rows.y, None, ready.rows

    def _refuse_elsewhere(self, X: Any, noise_std: Any, sample_weight: Any) -> None:
        """Refuse what needs all rows in this process."""
        given = {
            "noise_std": noise_std is not None,
            "sample_weight": sample_weight is not None,
            "resolution": self.resolution is not None,
            "target_transform": self.target_transform is not None,
        }
        why = ""
        if found := [name for name, there in given.items() if there]:
            why = f"{found[0]} is given; leave it out"
        elif self.approximation is None:
            why = "approximation is None, which is exact; leave it at 'auto'"
        elif isinstance(self.approximation, Inducing) and not self._samples_points:
            why = "approximation is Inducing(...), which goes over them too often; use Hilbert()"
        elif told := (
            self._without_points(X) if self._takes_points(X) else self._without_basis(X)
        ):
            why = f"they need a basis, and {told}; change that"
        if why:
            raise ValueError(
                f"rows in a file or on a cluster cannot be fitted as they are: {why}, or give "
                "arrays in memory"
            )

    def _sample(
        self, X: Array, y: Array, noise: Array | None, rows: DistantRows | None = None
    ) -> None:
        """Set all that sampling sets; in a basis twice, if the first turns out too small."""
        seed = _seed(self.random_state)
        if rows is None:
            wanted = self._wanted_basis(X, noise is not None)
        else:
            given, points = self.approximation, self._takes_points(X)
            default = Inducing() if points else Hilbert()
            wanted = given if isinstance(given, Hilbert | Inducing) else default
        axes: Axes | Points | None = None

        def make(X: Array, y: Array, axes: Axes | Points) -> Any:
            return self._model(X, y, None, axes)

        if isinstance(wanted, Inducing) and self._samples_points:
            axes = chosen_points(make, X, y, wanted, self._has_latent)
        elif isinstance(wanted, Inducing):
            axes = wanted.chosen(X)
        elif wanted is not None:
            ranges = ranges_of(X) if rows is None else rows.ranges
            how = pilot if self.method == "fast" else by_chain
            axes = chosen_axes(make, X, y, wanted, self._has_latent, ranges, how)
        for rounds_left in reversed(range(ROUNDS)):
            self.model_ = model = self._model(X, y, noise, axes)
            if rows is not None:
                self.model_ = model = model.on_rows(rows)
            run = self._run(model, seed)
            self.seed_ = run.seed
            self._take_chains(run.chains)
            better = self._better_axes(wanted, last=not rounds_left)
            if better is None or run.stopped.startswith("Interrupted"):
                break
            axes = better
        self._take(run)

    def _run(self, model: Model, seed: np.random.SeedSequence) -> Run:
        plan = self._plan(model)
        if self.method == "fast":
            return first_run(self, model, seed)
        return self._sampled(model, plan, seed)

    def _sampled(
        self,
        model: Model,
        plan: Plan,
        seed: np.random.SeedSequence,
        begun: list[Chain] | None = None,
    ) -> Run:
        """Chains of a model, which run on rows in an order that repeats do not depend on."""

        def run(model: Model, begun: list[Chain] | None) -> Run:
            return sample(model, plan, seed, self._marks(model), begun)

        done = Ordered.of(model, self._model).run(run, begun)
        return done._replace(chains=with_judged(model, done.chains))

    def in_basis(self, X: Any, noise_std: Any = None) -> bool:
        """Whether a fit of these rows would be made in a basis, and so cost no more than they do.

        Parameters
        ----------
        X : (n, p) array-like or data frame
        noise_std : array-like, optional
            As `fit` would get it.

        Returns
        -------
        bool

        Examples
        --------
        >>> import numpy as np
        >>> from gplc import StandardGP
        >>> [StandardGP().in_basis(np.arange(n)[:, None]) for n in (100, 5000)]
        [False, True]
        """
        known = noise_std is not None or self.resolution is not None
        columns = Columns.learned(X)
        if columns is None:
            return self._wanted_basis(X, known) is not None
        return not columns.levels_in and self._wanted_basis(columns.encoded(X), known) is not None

    @property
    def _has_latent(self) -> bool:
        return not self.model_class.noise_is_gaussian

    @property
    def _samples_points(self) -> bool:
        """Whether values at inducing points would be sampled: rows are met as in a basis."""
        return self.model_class.key in SAMPLED_POINTS

    def _takes_points(self, X: Any) -> bool:
        """Whether rows elsewhere are fitted with inducing points."""
        if isinstance(self.approximation, Inducing):
            return True
        many = MOST_INPUTS < X.shape[1] <= MOST_WITH_POINTS
        return self._samples_points and many and not isinstance(self.approximation, Hilbert)

    def _wanted_basis(self, X: Any, known_noise: bool) -> Hilbert | Inducing | None:
        """The basis, or points, to sample in; None for the exact model."""
        if self.approximation is None:
            return None
        points = isinstance(self.approximation, Inducing) or (
            self.approximation == "auto" and X.shape[1] > MOST_INPUTS
        )
        why = self._without_points(X) if points else self._without_basis(X)
        why = "noise_std or resolution is given" if known_noise else why
        if isinstance(self.approximation, Hilbert | Inducing):
            if why:
                raise ValueError(
                    f"approximation={self.approximation!r} cannot be used: {why}; use "
                    "approximation=None"
                )
            return self.approximation
        # Rows with the same inputs cost one of them, where they are merged.
        size = len(np.unique(np.asarray(X), axis=0)) if self.model_class.merges else len(X)
        if why or size <= EXACT_ROWS:
            return None
        return Inducing() if points else Hilbert()

    def _without_basis(self, X: Any) -> str:
        """Why there is no basis for this model; empty if there is one."""
        if X.shape[1] > MOST_INPUTS:
            return f"there are {X.shape[1]} inputs, and a grid of functions ends at {MOST_INPUTS}"
        return self._without_form(X, IN_BASIS, unsupported)

    def _without_points(self, X: Any) -> str:
        """Why there are no inducing points for this model; empty if there are."""
        if X.shape[1] > MOST_WITH_POINTS:
            return (
                f"there are {X.shape[1]} inputs, and points say little beyond {MOST_WITH_POINTS}"
            )
        if not self._samples_points:
            return self._without_form(X, WITH_POINTS, without_points)
        lacks = partial(without_interpolation, inputs=X.shape[1], n_latent=int(self._has_latent))
        return self._without_form(X, WITH_POINTS, lacks)

    def _without_form(
        self, X: Any, models: Mapping[str, type[InBasis]], lacks: Callable[[Kernel], str]
    ) -> str:
        found = models.get(self.model_class.key)
        if found is None or not issubclass(found, self.model_class):
            return f"{self.model_class.__name__} has no such form"
        if self.sampler != "default":
            return f"sampler={self.sampler!r} is of the exact model"
        settings = self._model_settings()
        if settings.get("n_latent", 1) > 1:
            return f"n_latent is {settings['n_latent']}"
        if (columns := getattr(self, "columns_", None)) is not None and columns.levels_in:
            return f"column {columns.levels_in[0]!r} holds levels, which no basis is made for"
        kernels = [self.kernel, settings.get("kernel_z")]
        return next((why for each in kernels if each is not None and (why := lacks(each))), "")

    def _better_axes(self, wanted: Hilbert | Inducing | None, last: bool) -> Axes | Points | None:
        """Axes for the length scales that were found, if those of the fit were too small for them.

        Sets `approximation_`. Sizes that the user chose are theirs, and are warned of, as is the
        error of the `last` fit. Points are what they are, but functions between them can change.
        """
        model = self.model_
        self.approximation_ = None
        if wanted is None or not isinstance(model, InBasis):
            return None
        error = measured_error(model, self.draws_)
        self.approximation_ = Approximated(model.axes, error)
        theta = self.draws_.theta.reshape(-1, len(model.names))
        last = last or self.checkpoint is not None
        if isinstance(model.axes, Points):
            found = None if last else better_points(model, theta, model.axes, error)
            if found is None and error > TOLERATED_SHARE:
                warnings.warn(
                    f"the points leave out {error:.0%} of the variance of f, so that detail may "
                    "be lost; give more, approximation=Inducing(points=...)",
                    ApproximationWarning,
                    stacklevel=5,
                )
            return found
        if error <= TOLERATED_ERROR:
            return None
        assert isinstance(wanted, Hilbert)
        if wanted.is_complete(self._has_latent) or last:
            self._warn_of_error(error)
            return None
        ranges = model.rows.ranges
        halves = [0.5 * (highest - lowest) for lowest, highest in ranges]
        scales = scales_of(model, theta, halves)
        better = affordable(wanted.axes(ranges, scales, self._has_latent), wanted)
        if better != model.axes:
            return better
        self._warn_of_error(error)
        return None

    def _warn_of_error(self, error: float) -> None:
        warnings.warn(
            f"covariances in the basis are off by {error:.1%} of the variance where the "
            "posterior is; give more functions, or a farther boundary, in approximation=",
            ApproximationWarning,
            stacklevel=6,
        )

    def extend(self, draws: int) -> Self:
        """Go on with the chains of a finished fit.

        Parameters
        ----------
        draws : int
            Draws to add to each chain.

        Returns
        -------
        self
            The same as if it had been fitted with so many more draws at once. After the fast
            method chains begin where its draws are, with a warm-up, and theirs take the place of
            these.
        """
        check_is_fitted(self, "posterior_")
        _check.integer("draws", draws, at_least=1, advice="1000 is a good start")
        if isinstance(self.model_, InBasis):
            self.model_.check_rows()
        done, kept = self.chains_[0].position.iteration, self.chains_[0].log_density.size
        begun = self.chains_
        if self.diagnostics_.weighed is not None:
            done, kept = self.warmup, 0
            begun = begun_from(self.model_, begun, self.seed_)
        plan = self._plan(self.model_)._replace(
            chains=len(self.chains_), draws=kept + draws, warmup=done - kept
        )
        with _unchanged_on_error(self):
            self._take(self._sampled(self.model_, plan, self.seed_, begun))
        return self._unless_interrupted()

    @property
    def transform_name(self) -> str | None:
        """What files and reports call the transform of y; None if there is none."""
        named = isinstance(self.target_transform, str) or self.target_transform is None
        return self.target_transform if named else FUNCTIONS

    @property
    def notes_(self) -> list[str]:
        """What was done to the data before the fit, in sentences."""
        check_is_fitted(self, "posterior_")
        notes = [] if self.columns_ is None else self.columns_.told()
        if self.n_dropped_:
            total = f"{self.n_dropped_} of {self.n_given_}"
            notes.append(f"{total} rows have no response and are left out.")
        if self.resolution_ is not None:
            notes.append(
                f"Responses are rounded to steps of {self.resolution_:.4g}: each has a known "
                f"noise of SD {rounding_sd(self.resolution_):.3g}."
            )
        if _is_elsewhere(self.model_) and self.model_.rows.n > self.model_.n:
            notes.append(
                f"Of {self.model_.rows.n} rows {self.model_.n}, chosen at random, are kept with "
                "the fit: leave-one-out, checks and pictures are of these."
            )
        if self.transform_ is not None:
            power = self.transform_.power
            of_power = "" if power is None else f" with power {power:.3g}"
            notes.append(
                f"The model is of the transformed response ({self.transform_name}{of_power}): its "
                "residual SD and hyperparameters are on that scale, predictions on that of the "
                "data."
            )
        if (atom := atom_of(training_data(cast(HasData, self))[1])) is not None:
            notes.append(atom)
        return notes

    def _unless_interrupted(self) -> Self:
        if self.diagnostics_.stopped.startswith("Interrupted"):
            raise Interrupted(self)
        return self

    def _check_settings(self) -> None:
        """Refuse, by name, what only the estimator knows to be wrong."""
        for name in KERNEL_SETTINGS:
            kernel = getattr(self, name, None)
            if not (kernel is None or isinstance(kernel, Kernel)):
                raise ValueError(
                    f"{name} must be a Kernel or None, got {_check.shown(kernel)}; "
                    "try SquaredExponential(ard=False)"
                )
        if not callable(self.mean):
            with_mean(Constant(1.0), self.mean)
        if not (self.priors is None or isinstance(self.priors, Mapping)):
            raise ValueError(
                f"priors must be a mapping of names to (mean, sd) or to a Prior, got "
                f"{_check.shown(self.priors)}; "
                'try {"noise_sd": (-1.0, 1.0)}'
            )
        if isinstance(self.sampler, str):
            _check.one_of("sampler", self.sampler, self.model_class.schemes)
        elif not (
            isinstance(self.sampler, Sequence)
            and self.sampler
            and all(isinstance(update, Update) for update in self.sampler)
        ):
            raise ValueError(
                f"sampler must be the name of a scheme or a list of Update, got "
                f"{_check.shown(self.sampler)}; choose from {list(self.model_class.schemes)}"
            )
        if not (
            self.approximation is None
            or isinstance(self.approximation, Hilbert | Inducing)
            or (isinstance(self.approximation, str) and self.approximation == "auto")
        ):
            raise ValueError(
                f"approximation must be None, 'auto', Hilbert(...) or Inducing(...), got "
                f"{_check.shown(self.approximation)}; 'auto' is a good choice"
            )
        _check.one_of("method", self.method, ("mcmc", "fast"))
        if self.method == "fast" and self.checkpoint is not None:
            raise ValueError("checkpoint is for chains, and method='fast' has none; leave it out")
        for name in ("standardize", "learned_noise"):
            value = getattr(self, name)
            if not isinstance(value, bool | np.bool_):
                raise ValueError(f"{name} must be True or False, got {_check.shown(value)}")
        _check.integer(
            "nodes", self.nodes, at_least=1, at_most=MOST_NODES, advice="7 is a good number"
        )
        _check.one_of("node_rule", self.node_rule, NODE_RULES)
        checked_resolution(self.resolution)
        checked_transform(self.target_transform)
        if self.predictive_draws is not None:
            _check.integer(
                "predictive_draws",
                self.predictive_draws,
                at_least=1,
                advice="400 is a good number; None means all",
            )

    def _model(
        self,
        inputs: Array,
        response: Array,
        noise: Array | None,
        axes: Axes | Points | None = None,
        rows_apart: bool = False,
    ) -> Any:
        """The model of data in standard units, with the SDs that are known of their noise.

        The exact one, or the one in a basis on these axes.
        """
        settings = self._model_settings()
        kernel, mean = self.kernel, None if callable(self.mean) else self.mean
        if self.columns_ is not None and self.columns_.levels_in:
            # Means are part of the kernel here, for they see columns of numbers only.
            sees_w = "n_latent" in settings
            if "kernel_z" in settings:
                own = settings["kernel_z"]
                settings["kernel_z"] = with_levels(own or kernel, self.columns_, False)
            kernel, mean = with_levels(kernel, self.columns_, sees_w, mean), None
        # A model of the user's need not know of known noise if there is none.
        if noise is not None:
            settings["known_sd"] = noise
        if not self.learned_noise:
            settings["learned_noise"] = False
        # Not for sweeps over single latent values, nor for files from before rows were merged.
        rows_apart = rows_apart or self.model_class.rows_apart(self.sampler)
        # ... and a model of the user's need not know of that either.
        knows = "merge_rows" in inspect.signature(self.model_class).parameters
        if knows and self.model_class.merges and axes is None and not rows_apart:
            settings["merge_rows"] = True
        made: Callable[..., Model] = self.model_class
        if axes is not None:
            made = partial(made_for(self.model_class.key, axes), axes=axes)
        return made(
            inputs,
            response,
            kernel=kernel,
            priors=self.priors,
            mean=mean,
            **settings,
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
                name: (float(mean), float(sd), *_family_of(model, place))
                for place, (name, mean, sd) in enumerate(
                    zip(model.names, model.priors.means, model.priors.sds, strict=True)
                )
            },
            # The updates of a scheme with a name are compared when they go on.
            sampler=self.sampler if isinstance(self.sampler, str) else list(self.sampler),
            chains=self.chains,
            warmup=self.warmup,
            random_state=type(self.random_state).__name__ if generator else self.random_state,
            **({"axes": model.axes} if isinstance(model, InBasis) else {}),
            **({"rows": self._rows_digest} if _is_elsewhere(model) else {}),
            **self._model_settings(),
            # Named only if there is any: so older checkpoints go on.
            **({} if model.known_noise is None else {"noise_std": model.known_noise.sds}),
            **({} if self.learned_noise else {"learned_noise": False}),
            # Its values are in y.
            **({} if self.transform_name is None else {"target_transform": self.transform_name}),
        )

    def _take(self, run: Run) -> None:
        """Set everything that follows from a run, and warn unless it is fine."""
        self.seed_ = run.seed
        self._take_chains(run.chains)
        told = diagnose(self.draws_, run.chains, run.stopped, run.weighed)
        rows = {with_names(cast(HasData, self), name): row for name, row in told.rows.items()}
        self.diagnostics_ = self._in_users_units(dataclasses.replace(told, rows=rows))
        if not self.diagnostics_.ok:
            warnings.warn(
                f"Verdict: {self.diagnostics_.verdict}\nprint(model.diagnostics_) tells more.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _in_users_units(self, told: Diagnostics, *, back: bool = False) -> Diagnostics:
        rows = rows_in(self.draws_.units or units_of(self), told.rows, back=back)
        return dataclasses.replace(told, rows=rows)

    def _take_chains(self, chains: list[Chain]) -> None:
        self.chains_ = chains
        seed = self.seed_
        node_seeds = chain_seeds(
            np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, NODE_KEY)),
            len(chains),
        )
        draws = Draws.from_chains(chains, node_seeds, self.model_, self.nodes, self.node_rule)
        self.draws_ = dataclasses.replace(
            draws, units=units_of(self), companions=partial(groups_of, self)
        )
        drawn = self.draws_.thinned(self.predictive_draws)
        self.posterior_ = Ordered.of(self.model_, self._model).posterior(drawn)
        self._left_out_rows: dict[tuple[int, int], LeaveOneOut] = {}

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
        if hasattr(self, "chain_weights_"):
            raise ValueError(
                "weights of chains are not kept in files; save the fit itself, and call stacked() "
                "after loading it"
            )
        save(self, path)

    def _restore(
        self, saved: Saved, axes: Axes | Points | None = None, rows: int | None = None
    ) -> Self:
        """Set all that a fit sets, from a file."""
        self._check_settings()
        arrays, records = saved.arrays, saved.records
        self.x_scaling_ = Scaling(arrays["x_location"], arrays["x_scale"])
        self.y_scaling_ = Scaling(arrays["y_location"], arrays["y_scale"])
        self.columns_ = Columns.from_record(records["data"].get("columns"))
        rows_apart = 0 < len(arrays["y"]) == arrays["latent"].shape[2] and self.model_class.merges
        self.model_ = self._model(
            arrays["X"], arrays["y"], arrays.get("known_sd"), axes, rows_apart
        )
        if rows is not None:
            gone = RowsGone(rows, self.model_.X, self.model_.y)
            self.model_ = self.model_.on_rows(gone).with_told(arrays)
            self._rows_digest = ""
        self.approximation_ = None
        self.n_features_in_ = self.model_.X.shape[1]
        if records["features"]:
            self.feature_names_in_ = np.array(records["features"], dtype=object)
        self.target_name_ = records["target"]
        self.n_dropped_ = records["data"]["dropped"]
        self.n_given_ = records["data"]["given"]
        self.resolution_ = records["data"]["resolution"]
        self.transform_ = transform_of(self.target_transform, record=records["data"]["transform"])
        self.origin_ = records["origin"]
        self.seed_ = saved.seed
        self._take_chains(saved.chains(self.model_))
        if isinstance(self.model_, InBasis):
            error = measured_error(self.model_, self.draws_)
            self.approximation_ = Approximated(self.model_.axes, error)
        told = Diagnostics.from_record(records["diagnostics"])
        self.diagnostics_ = self._in_users_units(told)
        return self

    def _validated(self, *data: Any, **wanted: Any) -> Any:
        """Data that scikit-learn finds in order, as float64."""
        refuse_missing(data[0])
        try:
            # In C order the same table gives the same draws, whatever holds it.
            return validate_data(self, *data, dtype=np.float64, order="C", **wanted)
        except OverflowError as error:
            raise ValueError(
                f"X and y must hold numbers below 1.8e308 ({error}); scale them down"
            ) from error

    def _new_inputs(self, X: ArrayLike) -> tuple[Array, Array | float]:
        """Rows of X in standard units, and the known part of their mean."""
        check_is_fitted(self, "posterior_")
        given = X
        if self.columns_ is not None:
            given = self.columns_.encoded(X)
            if note := self.columns_.unseen(X):
                warnings.warn(note, DataWarning, stacklevel=3)
        inputs: Array = self._validated(given, reset=False)
        scaled = self.x_scaling_.apply(inputs)
        if isinstance(self.model_, InBasis):
            self._check_reach(inputs, scaled)
        return scaled, self._known_mean(inputs)

    def _check_reach(self, inputs: Array, scaled: Array) -> None:
        """Refuse rows at which the functions of a basis say nothing of the process."""
        found = self.model_.outside(scaled)
        if found is None:
            return
        row, column = found
        axis, scaling = self.model_.axes.inputs[column], self.x_scaling_
        ends = np.array([axis.centre - axis.reach, axis.centre + axis.reach])
        low, high = ends * scaling.scale[column] + scaling.location[column]
        names = getattr(self, "feature_names_in_", None)
        name = f"column {column}" if names is None else f"{names[column]!r}"
        raise ValueError(
            f"row {row} of X has {inputs[row, column]:.6g} in {name}, beyond what the basis of "
            f"this fit reaches, {low:.6g} to {high:.6g}; leave such rows out, or fit with "
            "approximation=None, or with a larger boundary"
        )

    def _on_scale_of_y(
        self,
        source: ComponentSource,
        known: Array | float,
        X: ArrayLike,
        noise: Array | None = None,
    ) -> Predictive:
        scale = float(self.y_scaling_.scale)
        if isinstance(known, np.ndarray) or noise is not None:
            offsets = np.broadcast_to(known, source.n_rows) / scale
            noise_sds = None if noise is None else noise / scale
            source = ShiftedComponents(source, offsets, noise_sds)
        plain = Predictive(
            source, location=float(self.y_scaling_.location), scale=scale, rows=Rows.of(X)
        )
        return plain if self.transform_ is None else TransformedPredictive(plain, self.transform_)

    def predict_dist(self, X: ArrayLike, noise_std: ArrayLike | None = None) -> Predictive:
        """Predictive distribution of y at each row of X.

        Parameters
        ----------
        X : (n, p) array-like or data frame
        noise_std : float or (n,) array-like, optional
            SD of the known noise of each new measurement, in units of y. By default there is
            none: y has the noise that the model has learned and no error of an instrument.
            (`regression_function` has neither: it is about the quantity itself.)

        Returns
        -------
        Predictive
            A mixture of Gaussians per row, over draws and values of the latent variable of the
            new case. It is lazy: nothing is computed before something is asked of it.
        """
        inputs, known = self._new_inputs(X)
        noise = new_noise(noise_std, inputs.shape[0])
        if noise is not None and self.transform_ is not None:
            raise ValueError(
                "noise_std of new rows cannot be used with a target_transform, for it is added to "
                "y before that; leave it out"
            )
        return self._on_scale_of_y(ResponseComponents(self.posterior_, inputs), known, X, noise)

    def sample_y(
        self,
        X: ArrayLike,
        n_samples: int = 1,
        random_state: RandomState = None,
        *,
        noise_std: ArrayLike | None = None,
    ) -> Array:
        """Draws from the predictive distribution, independent between rows.

        Parameters
        ----------
        X : (n, p) array-like or data frame
        n_samples : int
        random_state : int, Generator, RandomState or None
            By default the estimator's own if that is an int, so that every call gives the same
            draws; else fresh ones.
        noise_std
            As in `predict_dist`.

        Returns
        -------
        (n, n_samples) array
        """
        if random_state is None and isinstance(self.random_state, Integral):
            random_state = np.random.SeedSequence(int(self.random_state), spawn_key=(SAMPLE_KEY,))
        rng = np.random.default_rng(_seed(random_state))
        return self.predict_dist(X, noise_std).sample(n_samples, rng)

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
        return self._on_scale_of_y(FunctionComponents(self.posterior_, inputs), known, X)

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
        answer = Band(*(band * float(self.y_scaling_.scale)))
        answer.rows = Rows.of(X)
        return answer

    def loo(self, draws: int = MOST_DRAWS, refit: int = 0) -> LeaveOneOut:
        """How well each training row is predicted by a posterior that has not seen it.

        log p(y_i | y_-i) by Pareto-smoothed importance sampling. For each draw the density of y_i
        given the other responses is exact; w_i or z_i, which y_i was fitted with, is summed out.

        Parameters
        ----------
        draws : int
            Posterior draws to take at most.
        refit : int
            Fit again without each of the rows whose importance weights cannot be trusted, as
            many of them as this at most, the worst first.

        Returns
        -------
        LeaveOneOut
            elpd and its standard error, log density, k, PIT and interval of every row.

        Examples
        --------
        >>> from gplc import StandardGP
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.1, 0.9, 2.2, 2.8]
        >>> model = StandardGP(chains=2, draws=50, warmup=20, random_state=0).fit(X, y)
        >>> model.loo().log_density.shape
        (4,)
        """
        check_is_fitted(self, "posterior_")
        _check.integer("draws", draws, at_least=1, advice="1000 is a good number")
        _check.integer("refit", refit, at_least=0, advice="0 fits nothing again")
        if refit and self.diagnostics_.weighed is not None:
            raise ValueError(
                f"refit must be 0 after the fast method, got {refit}: chains that fit rows again "
                "have to learn first; call extend(1000) before"
            )
        # Rows x draws are kept: with very many rows, of which each tells next to nothing, fewer.
        draws = min(draws, max(len(self.chains_), MOST_LEFT_OUT // self.model_.n))
        key = draws, refit
        if key not in self._left_out_rows:
            self._left_out_rows[key] = leave_one_out(self, draws, refit)
        return self._left_out_rows[key]

    def replicate_y(self, draws: int = 200) -> Array:
        """New responses at the training inputs, given the data: for posterior predictive checks.

        Each set is from one draw of the posterior, with the function drawn as a whole, so that
        neighbours go together as they do in y; `sample_y` draws rows independently.

        Parameters
        ----------
        draws : int
            Sets to make at most.

        Returns
        -------
        (draws, n) array
            The same at every call.
        """
        check_is_fitted(self, "posterior_")
        _check.integer("draws", draws, at_least=1, advice="200 is a good number")
        chains = len(self.chains_)
        most = -(-draws // chains) * chains
        made = replicates(self, thinned(self.draws_, most))
        return made.reshape(-1, made.shape[-1])[:draws]

    @property
    def priors_(self) -> PriorTable:
        """The priors of the hyperparameters, in the units of the data. Prints as a table."""
        check_is_fitted(self, "model_")
        return prior_table(self.model_, units_of(self))

    def prior_predictive(
        self,
        X: ArrayLike,
        y: ArrayLike,
        draws: int = 200,
        *,
        noise_std: ArrayLike | None = None,
    ) -> Array:
        """Data that the priors make at the rows of X, before anything is learned from y.

        Of y only location and scale are used, as in `fit`, since priors are in standard units.

        Parameters
        ----------
        X, y, noise_std
            As in `fit`.
        draws : int
            Sets to make: each has hyperparameters, latent values and noise of its own.

        Returns
        -------
        (draws, n) array

        Examples
        --------
        >>> from gplc import StandardGP
        >>> StandardGP(random_state=0).prior_predictive([[0.0], [1.0]], [5.0, 9.0], 3).shape
        (3, 2)
        """
        _check.integer("draws", draws, at_least=1, advice="200 is a good number")
        other = clone(self)
        inputs, response, noise = other._prepared(X, y, noise_std)
        other.model_ = other._model(inputs, response, noise)
        seed = _seed(self.random_state)
        return on_scale_of_data(other, from_prior(other.model_, draws, seed).y)

    def stacked(self, draws: int = MOST_DRAWS) -> Self:
        """The same fit with its chains weighted so that rows left out are predicted best.

        For chains that have found different modes and stay there: their numbers say where they
        began, not how much each mode counts. Weights of chains maximize the log density of rows
        left out under the mixture of chains (Yao, Vehtari and Gelman 2022). They are weights for
        prediction, not probabilities of modes.

        Parameters
        ----------
        draws : int
            Draws of each chain to take at most for leave-one-out.

        Returns
        -------
        estimator
            A copy with ``chain_weights_``, (chains,) of sum 1, whose predictions are weighted. Its
            draws and diagnostics are those of the fit, and it is not saved: save the fit.

        Examples
        --------
        >>> from gplc import StandardGP
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.1, 0.9, 2.2, 2.8]
        >>> model = StandardGP(chains=2, draws=50, warmup=20, random_state=0).fit(X, y)
        >>> round(float(model.stacked().chain_weights_.sum()), 9)
        1.0
        """
        check_is_fitted(self, "posterior_")
        _check.integer("draws", draws, at_least=1, advice="1000 is a good number")
        weights = chain_weights(self, draws)
        other = copy.copy(self)
        drawn = self.draws_.thinned(self.predictive_draws)
        chains, length = self.draws_.log_density.shape
        places = self.draws_.picked(self.predictive_draws)
        counts = np.bincount(places // length, minlength=chains)
        # Each chain has its weight, whatever the number of its draws that can be used.
        each = (weights / np.maximum(counts, 1))[places // length]
        other.posterior_ = Ordered.of(self.model_, self._model).posterior(drawn, each)
        other.chain_weights_ = weights
        other._left_out_rows = {}
        return other

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Scikit-learn's picture of the settings, and what came out below it."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        told = getattr(self, "diagnostics_", None)
        if told is not None and "text/html" in bundle:
            bundle["text/html"] += told._repr_html_()
        return bundle


def _is_elsewhere(model: Model) -> bool:
    """Whether a model has rows that are not in this process."""
    return isinstance(model, InBasis) and not model.rows.here


def _family_of(model: Model, place: int) -> tuple[str, ...]:
    """What a prior is besides mean and SD; nothing if it is log-normal."""
    other = model.priors.others.get(place)
    return () if other is None else (repr(other),)


def _changed(kernel: Kernel, name: str, changes: Mapping[str, Any]) -> Kernel:
    """A kernel with other settings."""
    known = [field.name for field in dataclasses.fields(cast(Any, kernel))]
    for setting in changes:
        if setting not in known:
            raise ValueError(
                f"{name}__{setting} is no setting of {kernel!r}; it has {', '.join(known)}"
            )
    return cast(Kernel, dataclasses.replace(cast(Any, kernel), **changes))


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
            f"random_state must be an integer, a generator or None, got "
            f"{_check.shown(random_state)}; 0 will do"
        ) from error
    numbers = generator.randint(2**31 - 1, size=4)
    return np.random.SeedSequence([int(number) for number in numbers])
