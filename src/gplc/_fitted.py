"""What a fitted estimator was fitted to: its rows, their names, and slices through its inputs."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from gplc import _check
from gplc._types import Array


class HasData(Protocol):
    """What has to be known of a fitted estimator."""

    model_: Any
    x_scaling_: Any
    y_scaling_: Any
    mean: Any
    n_features_in_: int


def training_data(model: HasData) -> tuple[Array, Array]:
    """Inputs (n, p) and responses (n,) a model was fitted to, on their own scale.

    Examples
    --------
    >>> import gplc
    >>> model = gplc.StandardGP(chains=1, draws=10, warmup=10, random_state=0)
    >>> training_data(model.fit([[1.0], [3.0]], [5.0, 9.0]))[1].tolist()
    [5.0, 9.0]
    """
    x, y = model.x_scaling_, model.y_scaling_
    inputs = model.model_.X * x.scale + x.location
    known = model.mean(inputs) if callable(model.mean) else 0.0
    return inputs, model.model_.y * y.scale + y.location + known


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
    base = np.median(X, axis=0) if at is None else _check.finite_array("at", at, 1)
    if base.shape != (X.shape[1],):
        raise ValueError(
            f"at must have a value for each of {X.shape[1]} inputs, got shape {base.shape}"
        )
    rows = np.repeat(base[None, :], np.size(values), axis=0)
    rows[:, k] = np.asarray(values, dtype=np.float64)
    return as_table(model, rows)


def as_table(model: HasData, X: Array) -> Any:
    """Rows of inputs in the form a model was fitted to, so that their names are checked."""
    if getattr(model, "feature_names_in_", None) is None:
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=feature_names(model))


def grid_of(model: HasData, feature: int | str | None, count: int) -> Array:
    """Evenly spaced values of an input, from its smallest to its largest in the data."""
    X, _ = training_data(model)
    column = X[:, feature_index(model, feature)]
    return np.linspace(column.min(), column.max(), count)
