"""What a fitted estimator was fitted to: its rows, their names, and slices through its inputs."""

import re
import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import KDTree
from sklearn.utils.validation import check_is_fitted

from gplc import _check
from gplc._types import Array

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

# Hyperparameters that belong to an input, by its number; latent ones are numbered too.
OF_INPUT = re.compile(
    r"\b((?:length_scale|slope_sd|step_sd|level_sd|level_distance)(?:_[yz])?)\[(\d+)\]"
)


class HasData(Protocol):
    """What has to be known of a fitted estimator."""

    model_: Any
    x_scaling_: Any
    y_scaling_: Any
    mean: Any
    n_features_in_: int
    transform_: Any


class Piped:
    """The last estimator of a fitted pipeline, asked in the units before the other steps.

    If these steps cannot be undone (as encoders of categories cannot), it is asked in the units
    after them. Everything that is not about inputs is the estimator's own.

    Parameters
    ----------
    pipeline : Pipeline
        Fitted, with an estimator of ours last.

    Attributes
    ----------
    estimator : BaseGP
    undone : bool
        Whether inputs are in the units before the steps.
    """

    def __init__(self, pipeline: "Pipeline") -> None:
        self.before, self.estimator = pipeline[:-1], pipeline[-1]
        self.undone = self._original is not None
        if self.undone:
            self.n_features_in_ = pipeline.n_features_in_
            self.feature_names_in_ = getattr(pipeline, "feature_names_in_", None)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["estimator"], name)

    @cached_property
    def _original(self) -> Array | None:
        """Training inputs before the steps; None if going back and forth changes anything."""
        after = training_data(self.estimator)[0]
        given = as_table(self.estimator, after)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of what goes wrong on a way that is not taken
                return self._back_and_forth(given, after)
        except (AttributeError, TypeError, ValueError):
            return None

    def _back_and_forth(self, given: Any, after: Array) -> Array | None:
        inputs = np.asarray(self.before.inverse_transform(given), dtype=np.float64)
        again = np.asarray(self.before.transform(self._named(inputs)), dtype=np.float64)
        return inputs if again.shape == after.shape and np.allclose(again, after) else None

    def _named(self, inputs: Array) -> Any:
        return _table(inputs, getattr(self.before, "feature_names_in_", None))

    def training_data(self) -> tuple[Array, Array]:
        """As `training_data`."""
        inputs, response = training_data(self.estimator)
        return (inputs if self._original is None else self._original), response

    def labels(self) -> list[str] | None:
        """Names of the inputs after the steps, if these say so."""
        if self.undone or getattr(self.estimator, "feature_names_in_", None) is not None:
            return None
        try:
            return [str(name) for name in self.before.get_feature_names_out()]
        except (AttributeError, ValueError):
            return None

    def rows(self, X: Any) -> Any:
        """Rows as the pipeline takes them, in the units in which it is asked."""
        return X if self.undone else self.before.transform(X)

    def _asked(self, X: Any) -> Any:
        return self.before.transform(X) if self.undone else X

    def predict_dist(self, X: Any, noise_std: Any = None) -> Any:
        """Distribution of y."""
        return self.estimator.predict_dist(self._asked(X), noise_std)

    def regression_function(self, X: Any) -> Any:
        """Posterior of f."""
        return self.estimator.regression_function(self._asked(X))

    def residual_sd(self, X: Any, coverage: float = 0.9) -> Any:
        """Posterior of the residual SD."""
        return self.estimator.residual_sd(self._asked(X), coverage)


def as_fitted(model: Any) -> Any:
    """A fitted estimator of ours, or one that stands for a pipeline with such an estimator last.

    Examples
    --------
    >>> import gplc
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> last = gplc.StandardGP(chains=1, draws=10, warmup=10, random_state=0)
    >>> pipeline = make_pipeline(StandardScaler(), last).fit([[10.0], [30.0]], [5.0, 9.0])
    >>> training_data(as_fitted(pipeline))[0].tolist()
    [[10.0], [30.0]]
    """
    if isinstance(model, Piped) or not hasattr(model, "steps"):
        return model
    estimator = model.steps[-1][1]
    if not hasattr(estimator, "predict_dist"):
        raise ValueError(
            "model must be an estimator of gplc, or a Pipeline that ends in one, got a Pipeline "
            f"that ends in {_check.shown(estimator)}"
        )
    check_is_fitted(estimator)
    return estimator if len(model.steps) == 1 else Piped(model)


def last_step(model: Any, X: Any) -> tuple[Any, Any]:
    """The estimator at the end of a fitted pipeline and rows as it takes them.

    What is no pipeline is its own end.
    """
    if not hasattr(model, "steps"):
        return model, X
    return model[-1], X if len(model.steps) == 1 else model[:-1].transform(X)


def with_names(model: HasData, text: str) -> str:
    """Text with the names of columns where hyperparameters have their numbers.

    Examples
    --------
    >>> import types
    >>> model = types.SimpleNamespace(feature_names_in_=["age", "dose"])
    >>> with_names(model, "log length_scale[1], latent_length_scale[1]")
    'log length_scale[dose], latent_length_scale[1]'
    """
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return text
    return OF_INPUT.sub(lambda found: f"{found[1]}[{names[int(found[2])]}]", text)


def training_data(model: HasData) -> tuple[Array, Array]:
    """Inputs (n, p) and responses (n,) a model was fitted to, on their own scale.

    Examples
    --------
    >>> import gplc
    >>> model = gplc.StandardGP(chains=1, draws=10, warmup=10, random_state=0)
    >>> training_data(model.fit([[1.0], [3.0]], [5.0, 9.0]))[1].tolist()
    [5.0, 9.0]
    """
    if isinstance(model, Piped):
        return model.training_data()
    x, y = model.x_scaling_, model.y_scaling_
    inputs = model.model_.X * x.scale + x.location
    known = model.mean(inputs) if callable(model.mean) else 0.0
    response = model.model_.y * y.scale + y.location + known
    return inputs, response if model.transform_ is None else model.transform_.back(response)


def n_rows(model: HasData) -> int:
    """Rows that a model was fitted to, of which `training_data` has some if they are very many."""
    rows = getattr(model.model_, "rows", None)
    return len(model.model_.y) if rows is None else int(rows.n)


def known_noise(model: HasData) -> Array | None:
    """SDs of the noise that is known of the training rows, in units of y; None if none is.

    Examples
    --------
    >>> import gplc
    >>> model = gplc.StandardGP(chains=1, draws=10, warmup=10, random_state=0)
    >>> known_noise(model.fit([[1.0], [3.0]], [5.0, 9.0], noise_std=[0.5, 1.0])).tolist()
    [0.5, 1.0]
    """
    known = model.model_.known_noise
    if known is None:
        return None
    sds = known.sds * float(model.y_scaling_.scale)
    if model.transform_ is None:
        return np.asarray(sds)
    # To first order, as it went in.
    return np.asarray(sds / model.transform_.slope(training_data(model)[1]))


def training_dist(model: Any) -> Any:
    """Predictive distribution of every training row, as it was measured.

    With a transform it is without the known noise, which cannot be added to y then.
    """
    known = known_noise(model) if model.transform_ is None else None
    return model.predict_dist(as_table(model, training_data(model)[0]), known)


def feature_names(model: HasData) -> list[str]:
    """Names of the inputs: those of the columns, or x, or x1, x2, ...

    Examples
    --------
    >>> import gplc
    >>> model = gplc.StandardGP(chains=1, draws=10, warmup=10, random_state=0)
    >>> feature_names(model.fit([[1.0, 2.0], [3.0, 5.0]], [5.0, 9.0]))
    ['x1', 'x2']
    """
    given = getattr(model, "feature_names_in_", None)
    if given is None and isinstance(model, Piped):
        given = model.labels()
    if given is not None:
        return [str(name) for name in given]
    count = model.n_features_in_
    return ["x"] if count == 1 else [f"x{k + 1}" for k in range(count)]


def target_name(model: HasData) -> str:
    """Name of the response, or y."""
    return getattr(model, "target_name_", None) or "y"


def feature_index(model: HasData, feature: int | str | None) -> int:
    """Number of an input given by its number or name; it must be given if there are several."""
    names = feature_names(model)
    if feature is None:
        if len(names) == 1:
            return 0
        raise ValueError(f"feature must be given, for there are several inputs; choose of {names}")
    if isinstance(feature, str):
        return names.index(_check.one_of("feature", feature, names))
    if not -len(names) <= feature < len(names):
        raise ValueError(f"feature must be one of {names} or its number, got {feature!r}")
    return feature % len(names)


def slice_inputs(
    model: HasData, feature: int | str | None, values: ArrayLike, at: ArrayLike | None = None
) -> Any:
    """Rows with given values of one input, the others at `at` (medians by default).

    Returns
    -------
    (len(values), p) array, or a data frame if the model was fitted to one
    """
    X, _ = training_data(model)
    k = feature_index(model, feature)
    base = _middle(model, X) if at is None else _check.finite_array("at", at, 1)
    if base.shape != (X.shape[1],):
        raise ValueError(
            f"at must have a value for each of {X.shape[1]} inputs, got shape {base.shape}"
        )
    rows = np.repeat(base[None, :], np.size(values), axis=0)
    rows[:, k] = np.asarray(values, dtype=np.float64)
    return as_table(model, rows)


def _middle(model: HasData, X: Array) -> Array:
    """Medians of numbers, and the commonest of levels."""
    base = np.median(X, axis=0)
    columns = getattr(model, "columns_", None)
    for k in () if columns is None else (*columns.unordered, *columns.ordered):
        base[k] = np.argmax(np.bincount(X[:, k].astype(int)))
    return base


def as_numbers(model: HasData, rows: Any) -> Array:
    """Rows of a table as the model sees them, before they are scaled."""
    columns = getattr(model, "columns_", None)
    return np.asarray(rows if columns is None else columns.encoded(rows), dtype=np.float64)


# Rows that are drawn with a slice: this share of all, and at least so many.
NEAR_SHARE, LEAST_NEAR = 0.25, 10
# A place has data near if it is no farther from them than they are from each other, most of them.
MOST_APART = 0.95


def near_slice(
    model: HasData, feature: int | str | None, at: ArrayLike | None = None
) -> NDArray[np.intp]:
    """Numbers of the rows nearest to a slice, in SDs of the other inputs; all if there are none.

    Examples
    --------
    >>> import gplc
    >>> model = gplc.StandardGP(chains=1, draws=10, warmup=10, random_state=0)
    >>> X = np.column_stack([np.arange(48.0), np.arange(48.0) % 4])
    >>> near_slice(model.fit(X, X[:, 0]), 0, at=[0.0, 3.0])
    array([ 3,  7, 11, 15, 19, 23, 27, 31, 35, 39, 43, 47])
    """
    X, _ = training_data(model)
    k = feature_index(model, feature)
    if X.shape[1] == 1:
        return np.arange(len(X))
    place = as_numbers(model, slice_inputs(model, k, [0.0], at))[0]
    others = np.delete((X - place) / spreads(X), k, axis=1)
    count = min(len(X), max(LEAST_NEAR, round(NEAR_SHARE * len(X))))
    nearest = np.argsort((others**2).sum(axis=1), kind="stable")[:count]
    return np.sort(nearest)


def has_data(model: HasData, rows: Any) -> NDArray[np.bool_]:
    """Which rows have data near; with one input all, for there one sees it.

    Examples
    --------
    >>> import gplc
    >>> model = gplc.StandardGP(chains=1, draws=10, warmup=10, random_state=0)
    >>> line = np.linspace(0.0, 1.0, 20)
    >>> model = model.fit(np.column_stack([line, line]), line)
    >>> has_data(model, np.array([[0.5, 0.5], [0.0, 1.0]]))
    array([ True, False])
    """
    X, _ = training_data(model)
    given = as_numbers(model, rows)
    if X.shape[1] == 1:
        return np.ones(len(given), dtype=bool)
    different = np.unique(X / spreads(X), axis=0)
    tree = KDTree(different)
    apart = np.asarray(tree.query(different, k=[min(2, len(different))])[0])
    distance = np.asarray(tree.query(given / spreads(X), k=[1])[0])[:, 0]
    return distance <= 2.0 * np.quantile(apart, MOST_APART)


def spreads(X: Array) -> Array:
    """SD of each column; 1 where a column is constant."""
    sds = X.std(axis=0)
    return np.where(sds > 0.0, sds, 1.0)


def as_table(model: HasData, X: Array) -> Any:
    """Rows of inputs in the form a model was fitted to, so that their names are checked."""
    columns = getattr(model, "columns_", None)
    if columns is not None:
        return columns.decoded(X)
    return _table(X, getattr(model, "feature_names_in_", None))


def _table(X: Array, names: Any) -> Any:
    if names is None:
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=[str(name) for name in names])


def grid_of(model: HasData, feature: int | str | None, count: int) -> Array:
    """Evenly spaced values of an input, from its smallest to its largest; or all its levels."""
    X, _ = training_data(model)
    columns, k = getattr(model, "columns_", None), feature_index(model, feature)
    if columns is not None and (levels := columns.grid(k)) is not None:
        return np.asarray(levels)
    column = X[:, k]
    return np.linspace(column.min(), column.max(), count)
