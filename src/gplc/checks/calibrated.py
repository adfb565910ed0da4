"""Calibration along an input: where predictions are too wide, too narrow, or in a wrong place.

Coverage can be right on average and wrong everywhere. In each window of rows that are near each
other along an input, coverage, mean PIT and mean |2 PIT - 1| are compared with what chance does to
a calibrated model. Its PIT values are uniform, so that the same curves can be simulated.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gplc import _check
from gplc._check import interval_probabilities
from gplc._fitted import Piped, as_fitted, feature_index, feature_names, training_data
from gplc._types import Array
from gplc.metrics import pit

# Of all curves together: so often a calibrated model stays inside their envelopes.
ENVELOPE = 0.95
# Simulated curves, and their seed: an envelope is the same whenever it is asked for.
SIMULATIONS, SEED = 2000, 20_221_118
CURVES = ("coverage", "pit", "spread")
# A window has a share of the rows, and no fewer than so many; windows overlap by two thirds.
WINDOW_SHARE, LEAST_WINDOW, STEPS = 1.0 / 6.0, 15, 3


@dataclass(frozen=True)
class Calibration:
    """Coverage, PIT and its spread in windows along an input, with envelopes. Prints as a verdict.

    Attributes
    ----------
    feature : str
        The input.
    places : (w,) array
        Medians of the input in the windows.
    counts : (w,) array of int
        Rows in each.
    coverage, pit, spread : (w,) array
        Share of rows inside their intervals, mean of P = P(Y <= y), and mean of abs(2 P - 1),
        which sees widths that are wrong sooner than coverage does: wanted are `wanted`, 0.5 and
        0.5.
    coverage_band, pit_band, spread_band : (2, w) array
        Envelopes: a calibrated model has all three curves inside with probability 0.95.
    wanted : float
        Coverage of the intervals.
    called : str
        Which rows were judged.
    """

    feature: str
    places: Array
    counts: NDArray[np.intp]
    coverage: Array
    coverage_band: Array
    pit: Array
    pit_band: Array
    spread: Array
    spread_band: Array
    wanted: float
    called: str

    @property
    def coverage_inside(self) -> bool:
        """Whether the curve of coverage is inside its envelope."""
        return _inside(self.coverage, self.coverage_band)

    @property
    def pit_inside(self) -> bool:
        """Whether the curve of the mean PIT is inside its envelope."""
        return _inside(self.pit, self.pit_band)

    @property
    def spread_inside(self) -> bool:
        """Whether the curve of the spread is inside its envelope."""
        return _inside(self.spread, self.spread_band)

    @property
    def ok(self) -> bool:
        """Whether all three are."""
        return self.coverage_inside and self.pit_inside and self.spread_inside

    @property
    def verdict(self) -> str:
        """In words, with the places where curves are outside."""
        low, high = self.coverage < self.coverage_band[0], self.coverage > self.coverage_band[1]
        wide, narrow = self.spread < self.spread_band[0], self.spread > self.spread_band[1]
        found = []
        for word, outside in (
            ("too narrow", low | narrow),
            ("too wide", high | wide),
            ("too high", self.pit < self.pit_band[0]),
            ("too low", self.pit > self.pit_band[1]),
        ):
            if outside.any():
                first, last = self.places[outside][[0, -1]]
                where = f"{first:.3g}" if first == last else f"{first:.3g} to {last:.3g}"
                found.append(f"predictions are {word} near {self.feature} = {where}")
        if not found:
            return f"as sure as they should be, everywhere along {self.feature}"
        return "; ".join(found)

    def __str__(self) -> str:
        worst = int(np.argmin(self.coverage))
        return (
            f"{self.called} in {self.places.size} windows of {self.counts.min()} to "
            f"{self.counts.max()} rows along {self.feature}\n"
            f"{self.wanted:.0%} intervals hold {self.coverage[worst]:.0%} (near "
            f"{self.places[worst]:.3g}) to {self.coverage.max():.0%}; mean PIT "
            f"{self.pit.min():.2f} to {self.pit.max():.2f}, mean |2 PIT - 1| "
            f"{self.spread.min():.2f} to {self.spread.max():.2f}, wanted is 0.5 of both\n"
            f"Verdict: {self.verdict}."
        )

    def to_record(self) -> dict[str, Any]:
        """All of it in JSON's terms."""
        curves = {
            name: np.asarray(getattr(self, name)).tolist()
            for name in ("places", "counts", *CURVES, *(f"{curve}_band" for curve in CURVES))
        }
        return {"feature": self.feature, **curves, "ok": self.ok, "verdict": self.verdict}


def _inside(values: Array, band: Array) -> bool:
    return bool(((values >= band[0]) & (values <= band[1])).all())


def calibration(
    model: Any,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    feature: int | str | None = None,
    *,
    noise_std: ArrayLike | None = None,
    coverage: float = 0.9,
) -> Calibration:
    """Whether predictions are as sure as they should be, along an input.

    Parameters
    ----------
    model : fitted estimator, or a Pipeline that ends in one
    X, y : array-like, optional
        Rows to judge by that were not used in the fit; by default the training rows, each
        predicted without itself (`loo`).
    feature : int or str, optional
        Input to look along; needed if there are several.
    noise_std : float or array-like, optional
        Known noise of the rows given.
    coverage : float
        Probability of the intervals.

    Returns
    -------
    Calibration

    Examples
    --------
    >>> import gplc
    >>> data = gplc.datasets.make_paper("U1", n=40, random_state=0)
    >>> model = gplc.StandardGP(chains=2, draws=50, warmup=50, random_state=0)
    >>> found = calibration(model.fit(data.X, data.y))
    >>> found.coverage.shape == found.places.shape, found.pit_band.shape[0]
    (True, 2)
    """
    model = as_fitted(model)
    k = feature_index(model, feature)
    inputs, probabilities, called = rows_to_judge(model, X, y, noise_std)
    name = feature_names(model)[k]
    return calibration_of(inputs[:, k], probabilities, coverage, name, called)


def rows_to_judge(
    model: Any, X: ArrayLike | None, y: ArrayLike | None, noise_std: ArrayLike | None = None
) -> tuple[Array, Array, str]:
    """Inputs and PIT values of rows to judge a model on, and what to call them.

    Those given, or the training rows, each left out in turn.
    """
    if (X is None) != (y is None):
        raise ValueError("X and y must be given both or neither; neither means leave-one-out")
    if X is None or y is None:
        return training_data(model)[0], model.loo().pit, "rows left out"
    given = model.rows(X) if isinstance(model, Piped) else X
    response = _check.finite_array("y", y, 1)
    probabilities = pit(model.predict_dist(given, noise_std), response)
    return np.asarray(given, dtype=np.float64), probabilities, "given rows"


def calibration_of(
    x: Array, probabilities: Array, coverage: float = 0.9, feature: str = "x", called: str = "rows"
) -> Calibration:
    """The same from values of an input and PIT values of the rows.

    Examples
    --------
    >>> x = np.linspace(0.0, 1.0, 60)
    >>> calibration_of(x, np.random.default_rng(0).random(60)).ok
    True
    >>> calibration_of(x, np.where(x < 0.5, 0.01, 0.5)).verdict
    'predictions are too narrow near x = 0.119 to 0.458; predictions are too wide near ...'
    """
    ends = interval_probabilities(coverage)
    windows = windows_of(x)
    # Any model whose PIT values are independent and uniform is calibrated.
    simulated = np.random.default_rng(SEED).random((SIMULATIONS, x.size))
    bands = envelope(_curves(simulated, ends, windows))
    values = _curves(probabilities[None], ends, windows)[0]
    inside, middle, spread = np.split(values, len(CURVES))
    inside_band, middle_band, spread_band = np.split(bands, len(CURVES), axis=1)
    return Calibration(
        feature,
        np.array([float(np.median(x[rows])) for rows in windows]),
        np.array([rows.size for rows in windows]),
        inside,
        inside_band,
        middle,
        middle_band,
        spread,
        spread_band,
        coverage,
        f"{x.size} {called}",
    )


def _curves(pit_values: Array, ends: Array, windows: list[NDArray[np.intp]]) -> Array:
    """Coverage, mean PIT and spread in the windows, one after the other: (s, 3 w)."""
    inside = (pit_values >= ends[0]) & (pit_values <= ends[1])
    each = (inside.astype(np.float64), pit_values, np.abs(2.0 * pit_values - 1.0))
    return np.hstack([_means(values, windows) for values in each])


def windows_of(x: Array) -> list[NDArray[np.intp]]:
    """Rows near each other along x, in windows that overlap by two thirds.

    Examples
    --------
    >>> [window.tolist() for window in windows_of(np.array([3.0, 1.0, 2.0]))]
    [[1, 2, 0]]
    >>> [window.size for window in windows_of(np.arange(40.0))]
    [15, 15, 15, 15, 15, 15]
    """
    order = np.argsort(x, kind="stable")
    size = min(x.size, max(LEAST_WINDOW, round(WINDOW_SHARE * x.size)))
    count = 1 + int(np.ceil((x.size - size) / max(1, size // STEPS)))
    starts = np.linspace(0, x.size - size, count).round().astype(int)
    return [order[start : start + size] for start in starts.tolist()]


def _means(values: Array, windows: list[NDArray[np.intp]]) -> Array:
    """Means of curves (s, n) in the windows: (s, w)."""
    return np.column_stack([values[:, rows].mean(axis=1) for rows in windows])


def envelope(curves: Array) -> Array:
    """Lower and upper ends (2, w) that hold 95% of whole curves (s, w), drawn independently.

    Pointwise quantiles at the level at which so many of the curves are inside everywhere.

    Examples
    --------
    >>> curves = np.random.default_rng(0).standard_normal((2000, 5))
    >>> envelope(curves).round(1).tolist()
    [[-2.6, -2.5, -2.6, -2.7, -2.6], [2.5, 2.4, 2.5, 2.5, 2.5]]
    """
    count = len(curves)
    ordered = np.sort(curves, axis=0)
    # The rank from either end; ties count as far inside as they can.
    columns = list(zip(ordered.T, curves.T, strict=True))
    above = np.column_stack([np.searchsorted(o, c, side="right") for o, c in columns])
    below = count - np.column_stack([np.searchsorted(o, c, side="left") for o, c in columns])
    least = np.minimum(above, below).min(axis=1)
    depth = int(np.quantile(least, 1.0 - ENVELOPE, method="lower"))
    return np.array([ordered[max(depth, 1) - 1], ordered[count - max(depth, 1)]])
