"""Our estimators for skpro, a library of probabilistic regression (``pip install 'gplc[skpro]'``).

>>> from gplc import StandardGP
>>> from gplc.skpro import GPRegressor
>>> model = GPRegressor(StandardGP(chains=1, draws=10, warmup=10, random_state=0))
"""

from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import ndtr
from sklearn.base import clone

from gplc._types import Array
from gplc.estimators import BaseGP, LatentCovariateGP
from gplc.predictive import Predictive

try:
    from skpro.distributions.base import BaseDistribution
    from skpro.regression.base import BaseProbaRegressor
except ImportError as error:
    raise ImportError("gplc.skpro needs skpro; pip install 'gplc[skpro]'") from error

# Rows whose components are in memory at a time.
BLOCK_ROWS = 100


class PredictedMixture(BaseDistribution):
    """A `Predictive` as a distribution of skpro: a mixture of Gaussians for each row.

    Parameters
    ----------
    dist : Predictive
    index : pandas Index, optional
        Labels of the rows.
    columns : pandas Index, optional
        Name of the response, one.

    Examples
    --------
    >>> import pandas as pd
    >>> from gplc import Predictive
    >>> from gplc.skpro import PredictedMixture
    >>> dist = Predictive.from_arrays([[0.0, 3.0]], [[1.0, 0.5]])
    >>> PredictedMixture(dist, columns=pd.Index(["y"])).mean()
         y
    0  1.5
    """

    _tags: ClassVar[dict[str, Any]] = {
        "capabilities:approx": ["pdfnorm"],
        "capabilities:exact": ["mean", "var", "energy", "pdf", "log_pdf", "cdf", "ppf"],
        "distr:measuretype": "continuous",
        "distr:paramtype": "nonparametric",
    }

    def __init__(self, dist: Predictive, index: Any = None, columns: Any = None) -> None:
        self.dist = dist
        scalar = index is None and columns is None and len(dist) == 1
        index = pd.RangeIndex(len(dist)) if index is None and not scalar else index
        columns = pd.RangeIndex(1) if columns is None and not scalar else columns
        super().__init__(index=index, columns=columns)

    def _shaped(self, values: Array) -> Any:
        return values[:, None] if self.ndim else float(values[0])

    def _at(self, x: Any) -> Array:
        return np.broadcast_to(np.ravel(np.asarray(x, dtype=np.float64)), len(self.dist))

    def _mean(self) -> Any:
        return self._shaped(self.dist.mean())

    def _var(self) -> Any:
        return self._shaped(self.dist.var())

    def _pdf(self, x: Any) -> Any:
        return self._shaped(self.dist.pdf(self._at(x)))

    def _log_pdf(self, x: Any) -> Any:
        return self._shaped(self.dist.logpdf(self._at(x)))

    def _cdf(self, x: Any) -> Any:
        return self._shaped(self.dist.cdf(self._at(x)))

    def _ppf(self, p: Any) -> Any:
        levels = self._at(p)
        found = np.empty(levels.size)
        for level in np.unique(levels):  # mostly one for all rows
            found[levels == level] = self.dist[levels == level].quantile(level)
        return self._shaped(found)

    def _energy_x(self, x: Any) -> Any:
        """E|Y - x|."""
        return self._shaped(self._distance(self._at(x)))

    def _energy_self(self) -> Any:
        """E|Y - Y'|, of which half is what the CRPS takes off E|Y - x|, whatever x is."""
        centre = self.dist.mean()
        return self._shaped(2.0 * (self._distance(centre) - self.dist.crps(centre)))

    def _distance(self, x: Array) -> Array:
        """E|Y - x| = sum_j weight_j ((x - m_j) (2 Phi(t_j) - 1) + 2 s_j phi(t_j)), t in SDs."""
        found = np.empty(x.size)
        for begin in range(0, x.size, BLOCK_ROWS):
            rows = slice(begin, begin + BLOCK_ROWS)
            means, sds = self.dist[rows].components()
            gaps = x[rows, None] - means
            t = gaps / sds
            density = np.exp(-0.5 * t**2) / np.sqrt(2.0 * np.pi)
            found[rows] = (gaps * (2.0 * ndtr(t) - 1.0) + 2.0 * sds * density) @ self.dist.weights
        return found

    def _sample(self, n_samples: int | None = None) -> Any:
        draws = self.dist.sample(n_samples or 1).T
        if not self.ndim:
            return float(draws[0, 0]) if n_samples is None else pd.DataFrame(draws)
        index = self.index
        if n_samples is not None:
            index = pd.MultiIndex.from_product([range(n_samples), index])
        return pd.DataFrame(draws.reshape(-1, 1), index=index, columns=self.columns)

    def _iloc(self, rowidx: Any = None, colidx: Any = None) -> "PredictedMixture":
        rows = np.atleast_1d(np.arange(len(self.dist))[slice(None) if rowidx is None else rowidx])
        return PredictedMixture(self.dist[rows], index=self.index[rows], columns=self.columns)

    def _iat(self, rowidx: int, colidx: int) -> "PredictedMixture":
        return PredictedMixture(self.dist[rowidx])

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Settings for skpro's own tests."""
        means, sds = np.array([[0.0, 3.0], [1.0, 1.5], [2.0, -1.0]]), np.ones((3, 2))
        weighted = Predictive.from_arrays(means, sds, weights=[1, 3])
        return [
            {"dist": Predictive.from_arrays(means, sds), "columns": pd.Index(["a"])},
            {"dist": weighted, "index": pd.Index([1, 2, 5]), "columns": pd.Index(["a"])},
            {"dist": Predictive.from_arrays(means[:1], sds[:1])},
        ]


class GPRegressor(BaseProbaRegressor):
    """An estimator of ours as a probabilistic regressor of skpro.

    Parameters
    ----------
    estimator : BaseGP, optional
        By default `LatentCovariateGP` with its defaults.

    Attributes
    ----------
    estimator_ : BaseGP
        The same, fitted.

    Examples
    --------
    >>> import pandas as pd
    >>> from gplc import StandardGP
    >>> from gplc.skpro import GPRegressor
    >>> model = GPRegressor(StandardGP(chains=1, draws=20, warmup=20, random_state=0))
    >>> X, y = pd.DataFrame({"x": [0.0, 1.0, 2.0]}), pd.DataFrame({"y": [0.0, 1.0, 0.5]})
    >>> model.fit(X, y).predict_proba(X).mean().shape
    (3, 1)
    """

    _tags: ClassVar[dict[str, Any]] = {
        "capability:missing": False,
        "capability:multioutput": False,
    }

    def __init__(self, estimator: BaseGP | None = None) -> None:
        self.estimator = estimator
        super().__init__()

    def _fit(self, X: Any, y: Any, C: Any = None) -> "GPRegressor":
        given = LatentCovariateGP() if self.estimator is None else clone(self.estimator)
        self.columns_ = y.columns
        self.estimator_ = given.fit(_with_names(X), y.iloc[:, 0])
        return self

    def _predict_proba(self, X: Any) -> PredictedMixture:
        dist = self.estimator_.predict_dist(_with_names(X))
        return PredictedMixture(dist, index=X.index, columns=self.columns_)

    def _predict(self, X: Any) -> Any:
        return self.predict_proba(X).mean()

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Settings for skpro's own tests: short fits."""
        from gplc.estimators import ESTIMATORS

        few: dict[str, Any] = {
            "chains": 2,
            "draws": 10,
            "warmup": 5,
            "nodes": 2,
            "random_state": 0,
        }
        return [{"estimator": each(**few)} for each in ESTIMATORS.values()]


def _with_names(X: pd.DataFrame) -> pd.DataFrame:
    """The same table, its columns named by text as scikit-learn wants them."""
    return X.set_axis(X.columns.astype(str), axis=1)
