"""Which noise model do the data ask for? NLPD of rows left out, and plain words.

Every row is predicted by models that did not see it: by leave-one-out, for which each model is
fitted once, or by cross-validation. As all models predict the same rows, their scores are compared
in pairs: the standard error of a mean difference is that of the differences, which is far smaller
than that of either score.
"""

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from typing import Any, NamedTuple, cast

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from scipy.stats import kurtosis, skew
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import _safe_indexing

from gplc import _check, _html
from gplc._fitted import last_step
from gplc._types import Array
from gplc.checks.shape import LEAST_ROWS, unlike_gaussian
from gplc.checks.spread import spread_along_inputs
from gplc.diagnostics import USABLE_RHAT
from gplc.estimators import ESTIMATORS
from gplc.estimators.stacking import Stack, same_rows, stack
from gplc.loo import LeaveOneOut, stacking_weights
from gplc.models import MODELS

# A difference counts as clear at so many standard errors, and as likely at so many; and so does
# what chance brings as seldom.
CLEAR, LIKELY = 3.0, 2.0
CLEAR_P, LIKELY_P = 0.00135, 0.0228
# Draws for leave-one-out: fits that are compared are short, and neighbouring draws alike.
LOO_DRAWS = 400


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

    @property
    def sure(self) -> str:
        """The probability that the second model is better, if rows are like those to come.

        From a normal distribution; more than 99.9% is not told from 64 rows or a thousand.

        Examples
        --------
        >>> Difference(0.2, 0.1).sure, Difference(0.9, 0.1).sure
        ('98%', 'more than 99.9%')
        """
        if not self.se > 0.0:
            return "unknown"
        probability = 0.5 * math.erfc(-abs(self.mean) / self.se / math.sqrt(2.0))
        return "more than 99.9%" if probability > 0.999 else f"{100.0 * probability:.0f}%"


@dataclass(frozen=True)
class Comparison:
    """Scores of models on rows they did not see. Prints as a table and an answer.

    Attributes
    ----------
    scores : dict of str to (n,) array
        Negative log predictive density of every row, by model: the average if a row was left out
        several times, nan if it never was.
    folds : int, optional
        Parts the data were divided into; None if each row was left out by itself.
    rhat : dict of str to float
        Largest R-hat of any fit of each model; nan if it has none.
    models : dict of str to fitted estimator
        The fits, to all rows; empty after cross-validation.
    loo : dict of str to LeaveOneOut
        What each fit says of the rows left out; empty after cross-validation.
    """

    scores: Mapping[str, Array]
    folds: int | None
    rhat: Mapping[str, float]
    models: Mapping[str, Any] = field(default_factory=dict)
    loo: Mapping[str, LeaveOneOut] = field(default_factory=dict)

    @property
    def uncertain(self) -> dict[str, int]:
        """Rows whose importance weights cannot be trusted, by model."""
        return {name: int(loo.bad_rows.size) for name, loo in self.loo.items()}

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
        """The simplest model (the first) against which there is no evidence.

        A model that is likely to be worse than the best is never advised. If rows were left out
        one at a time, the answers to the questions decide between those that are left: if the
        noise varies, and nothing is known against Gaussian noise, that is the first that says so.
        """
        open_to = [
            model
            for model in self.scores
            if self.difference(model, self.best).word not in ("clearly", "probably")
        ]
        shape, spread = self._other_than_gaussian, self._varying
        if shape is not None and shape.found and shape.richer in open_to:
            return shape.richer
        if spread is not None and spread.found:
            vary = [m for m in open_to if m in MODELS and MODELS[m].noise_varies]
            return (vary or open_to)[0]
        return open_to[0]

    @cached_property
    def weights(self) -> dict[str, float]:
        """Of each model in the mixture that predicts the rows left out best (stacking).

        A model has little weight if others say what it says; they are no probabilities.
        """
        logs = -np.array([self.scores[model][self._judged] for model in self.scores])
        return dict(zip(self.scores, stacking_weights(logs).tolist(), strict=True))

    def stack(self) -> Stack:
        """The fits as one predictor, with these weights."""
        if not self.models:
            raise ValueError(
                "there are no fits to all rows after cross-validation; leave out folds"
            )
        return stack(self.models, weights=list(self.weights.values()))

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
        found += self._how_sure_weights_are()
        advised = MODELS.get(self.advice)
        words = "as you set it up" if advised is None else advised.noise_summary
        return [*found, f"Use {_title(self.advice)}: {words}."]

    def _how_sure_weights_are(self) -> list[str]:
        """A warning, if importance weights of many rows cannot be trusted."""
        told = [f"{_title(name)} {count}" for name, count in self.uncertain.items() if count]
        if not told:
            return []
        return [
            f"The scores of some rows are uncertain ({', '.join(told)}): refit= samples again "
            "without them."
        ]

    @cached_property
    def _varying(self) -> "Evidence | None":
        """Whether the noise varies; None if no models, or all, let it."""
        same, varying = self._best(noise_varies=False), self._best(noise_varies=True)
        if same is None or varying is None:
            return None
        sign = None
        if same in self.loo:
            sign = sizes_vary(_end(self.models[same]), self.loo[same])
        return Evidence(same, varying, self.difference(same, varying), sign)

    @cached_property
    def _other_than_gaussian(self) -> "Evidence | None":
        """Whether it is other than Gaussian, from models alike in whether the noise varies."""
        for varies in (True, False):
            gaussian = self._best(noise_varies=varies, noise_is_gaussian=True)
            other = self._best(noise_varies=varies, noise_is_gaussian=False)
            if gaussian is not None and other is not None:
                sign = None
                if gaussian in self.loo:
                    sign = shape_of_residuals(self.loo[gaussian], _title(gaussian))
                return Evidence(gaussian, other, self.difference(gaussian, other), sign)
        return None

    def _whether_noise_varies(self) -> list[str]:
        """An answer, if some of the models let the noise vary and others do not."""
        evidence = self._varying
        if evidence is None:
            return []
        answer = evidence.answer("a model with the same noise everywhere predicts as well")
        return [f"Does the noise depend on x? {answer}"]

    def _whether_noise_is_other_than_gaussian(self) -> list[str]:
        """An answer from models that are alike in whether the noise varies, or none."""
        evidence = self._other_than_gaussian
        if evidence is None:
            return []
        answer = evidence.answer(f"{MODELS[evidence.simple].noise_summary} predicts as well")
        return [f"Is it other than Gaussian at a given x? {answer}"]

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
        how = "each left out" if self.folds is None else f"in {self.folds} folds"
        return f"{rows} rows {how}; NLPD in nats a row, small is good"

    @property
    def _table(self) -> tuple[list[str], list[list[str]]]:
        """What each column is, and a row for each model."""
        rows, weights = [], self.weights
        for model in self.scores:
            gap = self.difference(self.best, model)
            told = "best" if model == self.best else f"+{-gap.mean:.3f} (SE {gap.se:.3f})"
            score, weight = f"{self.nlpd(model):.3f}", f"{weights[model]:.2f}"
            rows.append([model, score, told, weight, f"{self.rhat[model]:.2f}"])
        return ["model", "NLPD", "to the best", "weight", "largest R-hat"], rows

    def __str__(self) -> str:
        width = max(6, *(len(model) for model in self.scores))
        head, rows = self._table
        lines = [
            f"{model:{width}} {nlpd:>8}  {told:>22}  {weight:>6}  {rhat:>13}"
            for model, nlpd, told, weight, rhat in [head, *rows]
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
            "weights": self.weights,
            "uncertain": dict(self.uncertain),
            "best": self.best,
            "advice": self.advice,
            "answers": self.answers,
        }


class Sign(NamedTuple):
    """What the residuals of rows left out say themselves, and how often chance would say it."""

    told: str
    p_value: float


class Evidence(NamedTuple):
    """What speaks for a richer model, in one question: scores, and the residuals themselves.

    Mean scores of a few hundred rows often cannot tell models apart whose residuals can be: a sign
    counts as much as a difference of scores that chance would bring as seldom, if the richer model
    does not predict worse.
    """

    simple: str
    richer: str
    difference: Difference
    sign: Sign | None = None

    @property
    def word(self) -> str:
        """How sure it is that the richer model is needed, as in `Difference`."""
        by_scores = self.difference.word
        if self.sign is None or by_scores == "clearly" or not self.difference.mean > 0.0:
            return by_scores
        if self.sign.p_value < CLEAR_P:
            return "clearly"
        return "probably" if self.sign.p_value < LIKELY_P else by_scores

    @property
    def found(self) -> bool:
        """Whether the answer is yes, or probably."""
        return self.word in ("clearly", "probably")

    def answer(self, as_well: str) -> str:
        """A sentence or two."""
        difference = self.difference
        size = f"by {abs(difference.mean):.3f} nats a row (SE {difference.se:.3f})"
        better = f"{_title(self.richer)} predicts better than {_title(self.simple)}"
        word, told = self.word, "" if self.sign is None else f" {self.sign.told}"
        if word == "clearly":
            return f"Yes, clearly: {better} {size}, {difference.sure} sure.{told}"
        if word == "probably":
            return f"Probably: {better} {size}, {difference.sure} sure.{told}"
        if word == "worse":
            return f"There is no sign of it: {as_well}, and better {size}, {difference.sure} sure."
        within = size.removeprefix("by ")
        return f"It cannot be told from these data: {as_well}, within {within}.{told}"


def sizes_vary(model: Any, loo: LeaveOneOut) -> Sign:
    """Whether the sizes of residuals of rows left out change along the inputs."""
    p = spread_along_inputs(model.model_.X, normal_scores(loo.pit))
    return Sign(
        f"The sizes of residuals change along the inputs: so much by chance {_how_often(p)}.", p
    )


def shape_of_residuals(gaussian: LeaveOneOut, title: str) -> Sign:
    """Whether the rows left out fall in their distributions as Gaussian noise would.

    Skewness and kurtosis of the normal scores of the PIT values (`unlike_gaussian`).
    """
    scores = normal_scores(gaussian.pit)
    if scores.size < LEAST_ROWS:
        return Sign("", 1.0)
    p = unlike_gaussian(scores)
    return Sign(
        f"Given {title}, residuals of rows left out have skewness {skew(scores):.1f} and excess "
        f"kurtosis {kurtosis(scores):.1f}: of Gaussian noise {_how_often(p)}.",
        p,
    )


def normal_scores(pit: Array) -> Array:
    """Standard normal numbers with these probabilities below.

    Examples
    --------
    >>> normal_scores(np.array([0.5, 0.975])).round(2).tolist()
    [0.0, 1.96]
    """
    return np.asarray(ndtri(np.clip(pit, 1e-12, 1.0 - 1e-12)))


def _how_often(p_value: float) -> str:
    """A probability in words.

    Examples
    --------
    >>> _how_often(0.23), _how_often(0.012), _how_often(1e-9)
    ('in 23 cases of 100', 'in 1.2 cases of 100', 'in less than 1 case of 10,000')
    """
    if p_value < 1e-4:
        return "in less than 1 case of 10,000"
    cases = 100.0 * p_value
    return f"in {cases:.0f} cases of 100" if cases >= 9.5 else f"in {cases:.2g} cases of 100"


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
    folds: Any = None,
    groups: ArrayLike | None = None,
    refit: int = 0,
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
        of 400 draws. For leave-one-out, estimators of ours or Pipelines that end in one; with
        folds, any estimator with ``predict_dist``.
    noise_std : (n,) array-like, optional
        SD of the known noise of each row: models are fitted with it, and rows judged with it.
    folds : int, splitter of scikit-learn, or iterable of (train, test), optional
        Parts of the data, each left out in turn, for which every model is fitted again; a number
        divides the rows at random. By default each row is left out by itself, which takes one fit
        of each model (`loo`).
    groups : (n,) array-like, optional
        For splitters that need groups, such as ``GroupKFold``. Rows of one group that are left
        out one at a time are predicted from the others of their group.
    refit : int
        Rows of each model, at most, to sample again without, if leave-one-out is uncertain there.
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
    >>> models = every_model(chains=2, draws=30, warmup=30, random_state=0)
    >>> result = compare(data.X, data.y, models)
    >>> result.scores["gplv"].shape, sorted(result.weights)
    ((20,), ['gplc', 'gplv', 'std'])
    """
    if models is None:
        models = every_model(chains=2, draws=400, warmup=300, random_state=random_state)
    if not models:
        raise ValueError("models is empty; give at least one, or None for all")
    if folds is None:
        if groups is not None:
            raise ValueError("groups must come with folds, such as folds=GroupKFold(5)")
        return _by_leaving_one_out(X, y, models, noise_std, refit, n_jobs, watch)
    rows = np.shape(y)[0]
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


def _by_leaving_one_out(
    X: Any,
    y: Any,
    models: Mapping[str, Any],
    noise_std: Any,
    refit: int,
    n_jobs: int | None,
    watch: Callable[[int, int], None] | None,
) -> Comparison:
    """One fit of every model, to all rows."""
    _check.integer("refit", refit, at_least=0, advice="0 samples nothing again")
    for name, model in models.items():
        last = model.steps[-1][1] if hasattr(model, "steps") else model
        if not hasattr(last, "loo"):
            raise ValueError(
                f"models[{name!r}] has no loo(), got {_check.shown(last)}; give folds=5"
            )
    fitted = {}
    for number, (name, model) in enumerate(models.items()):
        known = _known(noise_std, slice(None), model)
        fitted[name] = _fitted_to(model, X, y, known, n_jobs)
        if watch is not None:
            watch(number + 1, len(models))
    return comparison_of(fitted, refit)


def comparison_of(models: Mapping[str, Any], refit: int = 0) -> Comparison:
    """Compare models that have been fitted, to the same rows, by leave-one-out.

    Parameters
    ----------
    models : mapping of str to fitted estimator
        From the simplest to the most flexible. The rows have to be the same in the same order.
    refit : int
        As in `compare`.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import gplc
    >>> data = gplc.datasets.make_paper("U1", n=20, random_state=0)
    >>> models = every_model(chains=2, draws=30, warmup=30, random_state=0)
    >>> fitted = {name: model.fit(data.X, data.y) for name, model in models.items()}
    >>> comparison_of(fitted).folds is None
    True
    """
    ends = {name: _end(model) for name, model in models.items()}
    same_rows(ends)
    found = {name: model.loo(LOO_DRAWS, refit) for name, model in ends.items()}
    return Comparison(
        {name: -loo.log_density for name, loo in found.items()},
        None,
        {name: _largest_rhat(model) for name, model in ends.items()},
        dict(models),
        found,
    )


def _end(model: Any) -> Any:
    return model[-1] if hasattr(model, "steps") else model


def _fitted_to(
    model: Any, X: Any, y: Any, known: Mapping[str, Any], n_jobs: int | None = None
) -> Any:
    """A copy of a model, fitted; its chains run at once if nothing else is said."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # R-hat tells
        copy = clone(model)
        last = _end(copy)
        if n_jobs is not None and getattr(last, "n_jobs", 0) is None:
            last.set_params(n_jobs=n_jobs)
        return copy.fit(X, y, **known)


def _largest_rhat(model: Any) -> float:
    told = getattr(model, "diagnostics_", None)
    rhats = [math.nan] if told is None else [row.rhat for row in told.rows.values()]
    return float(np.fmax.reduce(rhats))


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
    known = _known(noise_std, train, model)
    fitted = _fitted_to(model, _safe_indexing(X, train), _safe_indexing(y, train), known)
    last, rows = last_step(fitted, _safe_indexing(X, test))
    dist = last.predict_dist(rows, **_known(noise_std, test))
    return -dist.logpdf(_safe_indexing(np.asarray(y), test)), _largest_rhat(last)


def _known(noise_std: Any, rows: Any, model: Any = None) -> dict[str, Any]:
    """The known noise of some rows as an argument; for the last step, if it is a pipeline's."""
    if noise_std is None:
        return {}
    step = f"{model.steps[-1][0]}__" if hasattr(model, "steps") else ""
    return {f"{step}noise_std": _safe_indexing(np.asarray(noise_std), rows)}
