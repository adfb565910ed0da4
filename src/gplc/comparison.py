"""Which noise model do the data ask for? Cross-validated NLPD, row by row, and plain words.

Every row is predicted by models that did not see it. As all models predict the same rows, their
scores are compared in pairs: the standard error of a mean difference is that of the differences,
which is far smaller than that of either score.
"""

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple, cast

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import _safe_indexing

from gplc import _check, _html
from gplc._fitted import last_step
from gplc._types import Array
from gplc.diagnostics import USABLE_RHAT
from gplc.estimators import ESTIMATORS
from gplc.models import MODELS

# A difference counts as clear at so many standard errors, and as likely at so many.
CLEAR, LIKELY = 3.0, 2.0


class Difference(NamedTuple):
    """Mean of NLPD(first) - NLPD(second) over rows, and its standard error; above 0: second wins.

    Examples
    --------
    >>> Difference(0.5, 0.1).word, Difference(0.1, 0.1).word, Difference(-0.5, 0.1).word
    ('clearly', 'not', 'worse')
    """

    mean: float
    se: float

    @property
    def word(self) -> str:
        """How sure it is that the second model is better."""
        if self.mean > CLEAR * self.se:
            return "clearly"
        if self.mean > LIKELY * self.se:
            return "probably"
        return "worse" if self.mean < -LIKELY * self.se else "not"


@dataclass(frozen=True)
class Comparison:
    """Scores of models on rows they did not see. Prints as a table and an answer.

    Attributes
    ----------
    scores : dict of str to (n,) array
        Negative log predictive density of every row, by model: the average if a row was left out
        several times, nan if it never was.
    folds : int
        Parts the data were divided into.
    rhat : dict of str to float
        Largest R-hat of any fit of each model; nan if it has none.
    """

    scores: Mapping[str, Array]
    folds: int
    rhat: Mapping[str, float]

    def nlpd(self, model: str) -> float:
        """Average of a model's scores; small is good."""
        return float(np.nanmean(self.scores[model]))

    def difference(self, first: str, second: str) -> Difference:
        """How much better the second model is than the first, in nats a row."""
        pairs = (self.scores[first] - self.scores[second])[self._judged]
        return Difference(float(pairs.mean()), float(pairs.std(ddof=1) / np.sqrt(pairs.size)))

    @property
    def _judged(self) -> NDArray[np.bool_]:
        """Rows that were left out at least once."""
        return ~np.isnan(next(iter(self.scores.values())))

    @property
    def best(self) -> str:
        """The model with the smallest NLPD."""
        return min(self.scores, key=self.nlpd)

    @property
    def advice(self) -> str:
        """The simplest model (the first) that is not likely to be worse than the best."""
        return next(
            model
            for model in self.scores
            if self.difference(model, self.best).word not in ("clearly", "probably")
        )

    @property
    def answers(self) -> list[str]:
        """Does the noise depend on x, and is it Gaussian? One sentence each."""
        found = [*self._whether_noise_varies(), *self._whether_noise_is_other_than_gaussian()]
        short = [_title(name) for name in self.scores if self.rhat[name] > USABLE_RHAT]
        if short:
            found.append(
                f"But the chains of {', '.join(short)} have not converged, so that the "
                "scores are uncertain by more than their standard errors: take more draws."
            )
        advised = MODELS.get(self.advice)
        words = "as you set it up" if advised is None else advised.noise_summary
        return [*found, f"Use {_title(self.advice)}: {words}."]

    def _whether_noise_varies(self) -> list[str]:
        """An answer, if some of the models let the noise vary and others do not."""
        same, varying = self._best(noise_varies=False), self._best(noise_varies=True)
        if same is None or varying is None:
            return []
        answer = _answer(
            self.difference(same, varying),
            f"{_title(varying)} predicts better than {_title(same)}",
            "a model with the same noise everywhere predicts as well",
        )
        return [f"Does the noise depend on x? {answer}"]

    def _whether_noise_is_other_than_gaussian(self) -> list[str]:
        """An answer from models that are alike in whether the noise varies, or none."""
        for varies in (True, False):
            gaussian = self._best(noise_varies=varies, noise_is_gaussian=True)
            other = self._best(noise_varies=varies, noise_is_gaussian=False)
            if gaussian is not None and other is not None:
                answer = _answer(
                    self.difference(gaussian, other),
                    f"{_title(other)} predicts better than {_title(gaussian)}",
                    f"{MODELS[gaussian].noise_summary} predicts as well",
                )
                return [f"Is it other than Gaussian at a given x? {answer}"]
        return []

    def _best(self, **saying: bool) -> str | None:
        """The model with the smallest NLPD of those that say this about their noise."""
        fitting = (
            name
            for name in self.scores
            if name in MODELS
            and all(getattr(MODELS[name], what) == value for what, value in saying.items())
        )
        return min(fitting, key=self.nlpd, default=None)

    @property
    def _heading(self) -> str:
        rows = int(self._judged.sum())
        return f"{rows} rows in {self.folds} folds; NLPD in nats a row, small is good"

    @property
    def _table(self) -> tuple[list[str], list[list[str]]]:
        """What each column is, and a row for each model."""
        rows = []
        for model in self.scores:
            gap = self.difference(self.best, model)
            told = "best" if model == self.best else f"+{-gap.mean:.3f} (SE {gap.se:.3f})"
            rows.append([model, f"{self.nlpd(model):.3f}", told, f"{self.rhat[model]:.2f}"])
        return ["model", "NLPD", "to the best", "largest R-hat"], rows

    def __str__(self) -> str:
        width = max(6, *(len(model) for model in self.scores))
        head, rows = self._table
        lines = [
            f"{model:{width}} {nlpd:>8}  {told:>22}  {rhat:>13}"
            for model, nlpd, told, rhat in [head, *rows]
        ]
        return "\n".join([self._heading, "", *lines, "", *self.answers])

    def _repr_html_(self) -> str:
        above, below = _html.sentences(self._heading), _html.sentences(*self.answers)
        return f"{above}{_html.table(*self._table)}{below}"

    def to_record(self) -> dict[str, Any]:
        """The summary in JSON's terms."""
        return {
            "rows": int(self._judged.sum()),
            "folds": self.folds,
            "nlpd": {model: self.nlpd(model) for model in self.scores},
            "differences": {
                f"{first} - {second}": self.difference(first, second)._asdict()
                for first in self.scores
                for second in self.scores
                if first < second
            },
            "rhat": dict(self.rhat),
            "best": self.best,
            "advice": self.advice,
            "answers": self.answers,
        }


def _answer(difference: Difference, better: str, as_well: str) -> str:
    size = f"by {abs(difference.mean):.3f} nats a row (SE {difference.se:.3f})"
    if difference.word == "clearly":
        return f"Yes, clearly: {better} {size}."
    if difference.word == "probably":
        return f"Probably: {better} {size}."
    if difference.word == "worse":
        return f"There is no sign of it: {as_well}, and better {size}."
    return f"It cannot be told from these data: {as_well}, within {size.removeprefix('by ')}."


def _title(name: str) -> str:
    """A model's title, or the name it was given, in capitals as titles are."""
    return MODELS[name].title if name in MODELS else name.upper()


def every_model(**settings: Any) -> dict[str, Any]:
    """An estimator of every model by its key, the simplest first, with the same settings.

    Examples
    --------
    >>> every_model(draws=100)["gplv"]
    LatentVarianceGP(draws=100)
    """
    found = sorted(
        ESTIMATORS.values(),
        # Noise that stays the same is simpler than noise that varies, Gaussian noise than any.
        key=lambda each: (each.model_class.noise_varies, not each.model_class.noise_is_gaussian),
    )
    return {each.model_class.key: each(**settings) for each in found}


def compare(
    X: ArrayLike,
    y: ArrayLike,
    models: Mapping[str, Any] | None = None,
    *,
    noise_std: ArrayLike | None = None,
    folds: Any = 5,
    groups: ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: int = 0,
    watch: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Compare models by the density they give to rows they have not seen.

    Parameters
    ----------
    X : (n, p) array-like or data frame
    y : (n,) array-like
    models : mapping of str to estimator, optional
        Models from the simplest to the most flexible; by default `every_model` with two chains
        of 400 draws. Any estimator with ``predict_dist`` will do, and any Pipeline that ends in
        one.
    noise_std : (n,) array-like, optional
        SD of the known noise of each row: models are fitted with it, and rows judged with it.
    folds : int, splitter of scikit-learn, or iterable of (train, test)
        Parts of the data, each left out in turn; a number divides the rows at random.
    groups : (n,) array-like, optional
        For splitters that need groups, such as ``GroupKFold``.
    n_jobs : int, optional
        Fits at once, as in joblib.
    random_state : int
        Decides the folds, if their number is given.
    watch : callable, optional
        Called after each fit with the number of fits done and of all.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import gplc
    >>> data = gplc.datasets.make_paper("U1", n=20, random_state=0)
    >>> models = every_model(chains=1, draws=20, warmup=20, random_state=0)
    >>> result = compare(data.X, data.y, models, folds=2)
    >>> result.scores["gplv"].shape
    (20,)
    """
    rows = np.shape(y)[0]
    if models is None:
        models = every_model(chains=2, draws=400, warmup=300, random_state=random_state)
    splits = _splits(folds, X, y, groups, random_state)
    tasks = [(name, test, train) for name in models for train, test in splits]
    times = np.bincount(np.concatenate([test for _, test in splits]), minlength=rows)
    scores = {name: np.where(times > 0, 0.0, np.nan) for name in models}
    rhat = dict.fromkeys(models, math.nan)
    done = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_left_out)(models[name], X, y, noise_std, train, test)
        for name, test, train in tasks
    )
    for number, ((name, test, _), (lost, largest)) in enumerate(zip(tasks, done, strict=True)):
        scores[name][test] += lost / times[test]
        rhat[name] = float(np.fmax(rhat[name], largest))
        if watch is not None:
            watch(number + 1, len(tasks))
    return Comparison(scores, len(splits), rhat)


def _splits(folds: Any, X: Any, y: Any, groups: Any, random_state: int) -> list[tuple[Any, Any]]:
    """Numbers of the rows to fit to and of those left out, for each fold."""
    rows = np.shape(y)[0]
    if folds is None or isinstance(folds, Real):
        _check.integer("folds", folds, at_least=2, advice="5 is a good number")
        if cast(int, folds) > rows:
            raise ValueError(
                f"folds must be at most the {rows} rows there are, got {folds}; try 5"
            )
        folds = KFold(folds, shuffle=True, random_state=random_state)
    try:
        splitter = check_cv(folds)
    except ValueError as error:
        raise ValueError(
            f"folds must be a number, a splitter of scikit-learn or pairs of row numbers, got "
            f"{_check.shown(folds)}; try 5"
        ) from error
    return [
        (np.arange(rows)[train], np.arange(rows)[test])
        for train, test in splitter.split(X, y, groups)
    ]


def _left_out(
    model: Any, X: Any, y: Any, noise_std: Any, train: Any, test: Any
) -> tuple[Array, float]:
    """Scores of the rows left out, and the largest R-hat of the fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # R-hat tells
        fitted = clone(model).fit(
            _safe_indexing(X, train), _safe_indexing(y, train), **_known(noise_std, train, model)
        )
    last, rows = last_step(fitted, _safe_indexing(X, test))
    dist = last.predict_dist(rows, **_known(noise_std, test))
    told = getattr(last, "diagnostics_", None)
    rhats = [math.nan] if told is None else [row.rhat for row in told.rows.values()]
    return -dist.logpdf(_safe_indexing(np.asarray(y), test)), float(np.fmax.reduce(rhats))


def _known(noise_std: Any, rows: Any, model: Any = None) -> dict[str, Any]:
    """The known noise of some rows as an argument; for the last step, if it is a pipeline's."""
    if noise_std is None:
        return {}
    step = f"{model.steps[-1][0]}__" if hasattr(model, "steps") else ""
    return {f"{step}noise_std": _safe_indexing(np.asarray(noise_std), rows)}
