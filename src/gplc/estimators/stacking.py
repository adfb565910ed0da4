"""Several fitted models as one: the mixture that predicts rows left out best."""

import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from gplc import _check, _html
from gplc._files import FileError, refusing, replacing
from gplc._fitted import feature_names, training_data
from gplc._types import Array
from gplc._version import __version__
from gplc.components import normalized_weights
from gplc.estimators.predicting import PredictsRows
from gplc.loo import stacked_density, stacking_weights
from gplc.predictive import Predictive, RandomState

# The list of what is in a file of a stack, and the largest number of models in one.
CONTENTS, MOST_MODELS = "stack.json", 100
# No model of a stack is larger in a file than this: 4 GB.
LARGEST_PART = 4 * 2**30


class Stack(PredictsRows):
    """A mixture of fitted models, p(y | x) = sum_k weight_k p_k(y | x).

    `gplc.stack` makes one. It predicts as an estimator does, and has no `fit`.

    Parameters
    ----------
    models : mapping of str to fitted estimator
    weights : (k,) array-like
        Not negative, brought to sum 1.

    Attributes
    ----------
    models_ : dict of str to fitted estimator
    weights_ : dict of str to float
        By the names of the models.
    n_features_in_ : int
    """

    def __init__(self, models: Mapping[str, Any], weights: ArrayLike) -> None:
        self.models_ = dict(models)
        shares = normalized_weights(weights, len(self.models_))
        if shares is None:
            raise ValueError("weights must be given: one number for each model")
        given = np.asarray(weights, dtype=np.float64)
        if np.allclose(given, shares, rtol=1e-12, atol=0.0):
            shares = given  # those of a file are not divided by their sum again
        self.weights_: dict[str, float] = dict(zip(self.models_, shares.tolist(), strict=True))
        first = next(iter(self.models_.values()))
        self.n_features_in_: int = first.n_features_in_
        self.feature_names_in_ = getattr(first, "feature_names_in_", None)
        self.columns_ = getattr(first, "columns_", None)

    def _mixture(self, dists: Callable[[Any], Predictive]) -> Predictive:
        used = [name for name, weight in self.weights_.items() if weight > 0.0]
        return Predictive.mixture(
            [dists(self.models_[name]) for name in used], [self.weights_[name] for name in used]
        )

    def predict_dist(self, X: ArrayLike, noise_std: ArrayLike | None = None) -> Predictive:
        """Predictive distribution of y at each row of X: the mixture of those of the models.

        Parameters
        ----------
        X : (n, p) array-like or data frame
        noise_std
            As the models take it: the SD of known noise of new measurements.

        Returns
        -------
        Predictive
        """
        return self._mixture(lambda model: model.predict_dist(X, noise_std))

    def regression_function(self, X: ArrayLike) -> Predictive:
        """Posterior of f(x) = E(y | x) under each model, mixed.

        Parameters
        ----------
        X : (n, p) array-like or data frame

        Returns
        -------
        Predictive
        """
        return self._mixture(lambda model: model.regression_function(X))

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
        return self.predict_dist(X).sample(n_samples, random_state)

    def score_rows(self, refit: int = 0) -> Array:
        """Log density of each training row given all others, under the mixture: (n,).

        The weights were chosen on the same rows, which flatters the mixture a little.
        """
        logs = np.array([model.loo(refit=refit).log_density for model in self.models_.values()])
        return stacked_density(logs, np.array(list(self.weights_.values())))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the models and their weights to one file that `gplc.load` reads.

        It is a zip archive of the files that the models' own `save` writes, and no code.

        Parameters
        ----------
        path : path
            Replaced if it exists, whole or not at all.
        """
        record = {
            "version": __version__,
            "weights": [
                {"name": name, "weight": weight, "file": f"{number}.nc"}
                for number, (name, weight) in enumerate(self.weights_.items())
            ],
        }
        with (
            tempfile.TemporaryDirectory() as folder,
            replacing(path) as draft,
            zipfile.ZipFile(draft, "w") as archive,
        ):
            archive.writestr(CONTENTS, json.dumps(record))
            for number, model in enumerate(self.models_.values()):
                part = Path(folder) / f"{number}.nc"
                model.save(part)
                archive.write(part, part.name)
                part.unlink()

    def __repr__(self) -> str:
        told = ", ".join(f"{name}: {weight:.2f}" for name, weight in self.weights_.items())
        return f"Stack({told})"

    def _repr_html_(self) -> str:
        rows = [[name, weight] for name, weight in self.weights_.items()]
        return _html.table(["model", "weight"], rows)


def stack(
    models: Sequence[Any] | Mapping[str, Any], *, weights: ArrayLike | None = None, refit: int = 0
) -> Stack:
    """One predictor of several fitted models, weighted so that rows left out are predicted best.

    The weights maximize sum_i log sum_k weight_k p_k(y_i | y_-i) (stacking; Yao, Vehtari, Simpson
    and Gelman 2018). They are weights for prediction, not probabilities of models.

    Parameters
    ----------
    models : sequence, or mapping of str to fitted estimator
        Fitted to the same rows in the same order. Without names they have the keys of their
        models.
    weights : (k,) array-like, optional
        Given, instead of found.
    refit : int
        Rows of each model, at most, to sample again without, if leave-one-out is uncertain there.

    Returns
    -------
    Stack

    Examples
    --------
    >>> import gplc
    >>> data = gplc.datasets.make_paper("U1", n=20, random_state=0)
    >>> settings = {"chains": 2, "draws": 50, "warmup": 30, "random_state": 0}
    >>> models = [gplc.StandardGP(**settings), gplc.LatentVarianceGP(**settings)]
    >>> both = gplc.stack([model.fit(data.X, data.y) for model in models])
    >>> list(both.weights_), round(sum(both.weights_.values()), 9)
    (['std', 'gplv'], 1.0)
    >>> both.predict_interval([[0.5]]).shape
    (1, 2)
    """
    named = _named(models)
    _check.integer("refit", refit, at_least=0, advice="0 samples nothing again")
    same_rows(named)
    if weights is None:
        logs = np.array([model.loo(refit=refit).log_density for model in named.values()])
        weights = stacking_weights(logs)
    return Stack(named, weights)


def _named(models: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any]:
    """Fitted models by name; those of one kind are numbered."""
    listed = list(models.values()) if isinstance(models, Mapping) else list(models)
    if not listed:
        raise ValueError("models is empty; give fitted models, as in stack([one, another])")
    for each in listed:
        if not (hasattr(each, "loo") and hasattr(each, "save")):
            raise ValueError(
                f"models must be fitted estimators of gplc, got {_check.shown(each)}; of a "
                "Pipeline give the last step"
            )
        check_is_fitted(each, "posterior_")
    if isinstance(models, Mapping):
        return {str(name): each for name, each in models.items()}
    found: dict[str, Any] = {}
    for each in listed:
        key = each.model_class.key
        number = 2
        while key in found:
            key, number = f"{each.model_class.key} {number}", number + 1
        found[key] = each
    return found


def same_rows(models: Mapping[str, Any]) -> None:
    """Refuse fitted models that were not fitted to the same rows in the same order."""
    names = list(models)
    X, y = training_data(models[names[0]])
    for name in names[1:]:
        inputs, response = training_data(models[name])
        same = response.shape == y.shape and np.allclose(response, y)
        same = same and inputs.shape == X.shape and np.allclose(inputs, X)
        if not same or feature_names(models[name]) != feature_names(models[names[0]]):
            raise ValueError(
                f"models {names[0]!r} and {name!r} were fitted to different rows or columns; fit "
                "all to the same X and y, in the same order"
            )


def is_stack(path: str | os.PathLike[str]) -> bool:
    """Whether a file is one that `Stack.save` wrote."""
    return os.path.isfile(path) and zipfile.is_zipfile(path)


def load_stack(path: str | os.PathLike[str], load: Callable[[Path], Any]) -> Stack:
    """A stack from its file, whose parts `load` reads."""
    with refusing(path), zipfile.ZipFile(path) as archive:
        record = json.loads(archive.read(CONTENTS))
        entries = record["weights"]
        if not 1 <= len(entries) <= MOST_MODELS:
            raise FileError(f"{path} holds {len(entries)} models; it was not written by gplc")
        models = {}
        with tempfile.TemporaryDirectory() as folder:
            for number, entry in enumerate(entries):
                # Names in an archive decide nothing: every part gets one of its own.
                part = Path(folder) / f"{number}.nc"
                part.write_bytes(_part(archive, str(entry["file"]), path))
                models[str(entry["name"])] = load(part)
        same_rows(models)
        return Stack(models, [float(entry["weight"]) for entry in entries])


def _part(archive: zipfile.ZipFile, name: str, path: str | os.PathLike[str]) -> bytes:
    """The bytes of a part, if they are not too many."""
    if archive.getinfo(name).file_size > LARGEST_PART:
        raise FileError(f"{path} holds a part of more than {LARGEST_PART} bytes")
    return archive.read(name)
