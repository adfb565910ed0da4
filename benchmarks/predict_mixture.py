"""Speed and memory of the mixture: mean, SD and 90% interval of many rows with 1,000 components.

Run with the number of rows as an argument: ``python benchmarks/predict_mixture.py 100000``. The
components are made up, so that the time is that of the mixture and not of a Gaussian process.
Ratios are what to compare between machines.
"""

import math
import resource
import sys
import time
from collections.abc import Callable

import numpy as np
from numba import njit

from gplc._compiled import mixture
from gplc.predictive import Array, Predictive, Rows

COMPONENTS = 1000


class MadeUpSource:
    """Skewed mixtures from the row number, at the cost of one array copy a block."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self.n_components = COMPONENTS
        rng = np.random.default_rng(0)
        self._means = np.exp(0.5 * rng.standard_normal(COMPONENTS))
        self._sds = 0.1 * np.exp(0.3 * rng.standard_normal(COMPONENTS))

    def components(self, rows: Rows) -> tuple[Array, Array]:
        """Means and SDs (r, M) of some rows."""
        numbers = np.arange(self.n_rows)[rows]
        means = np.sin(numbers)[:, None] + self._means
        return means, np.tile(self._sds, (numbers.size, 1))


@njit
def library_evaluation(t: float, d: Array, precisions: Array, out: Array) -> None:
    """What `_tails_densities_slopes` does, with erfc and exp from the C library."""
    for j in range(d.shape[0]):
        u = (t - d[j]) * precisions[j]
        density = math.exp(-0.5 * u * u) * precisions[j]
        out[j] = 0.5 * math.erfc(-u * math.sqrt(0.5)) + density - u * density * precisions[j]


def seconds(function: Callable[[], object], repeats: int = 5) -> float:
    """Best of several runs: the machine may be busy."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def main(n_rows: int) -> None:
    means, sds = MadeUpSource(1).components(slice(0, 1))
    d, precisions = means[0], 1 / sds[0]
    scratch = [np.empty(COMPONENTS) for _ in range(3)]

    def ours() -> None:
        for _ in range(1000):
            mixture._tails_densities_slopes(1.0, d, precisions, -1.0, *scratch)

    def library() -> None:
        for _ in range(1000):
            library_evaluation(1.0, d, precisions, scratch[0])

    per_component = 1e9 / 1000 / COMPONENTS
    fast, slow = seconds(ours) * per_component, seconds(library) * per_component
    print(f"one evaluation   {fast:.1f} ns a component; C library {slow:.1f}, {slow / fast:.1f} x")

    block = MadeUpSource(500).components(slice(0, 500))
    q = np.array([0.05, 0.95])
    _, evaluations = mixture.quantiles(*block, q)
    taken = seconds(lambda: mixture.quantiles(*block, q))
    print(
        f"quantiles        {evaluations / 1000:.2f} evaluations a root, "
        f"{taken * 1e9 / evaluations / COMPONENTS:.1f} ns a component and evaluation, all included"
    )
    y = np.ones((20, 1))
    taken = seconds(lambda: mixture.crps(block[0][:20], block[1][:20], y)) / 20
    print(f"crps             {taken * 1e3:.2f} ms a row")

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    Predictive(MadeUpSource(n_rows)).summary()
    taken = time.perf_counter() - start
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"summary          {n_rows} rows: {taken:.1f} s, {taken / n_rows * 1e6:.0f} us a row")
    print(f"peak memory      {memory:.0f} MB more")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
