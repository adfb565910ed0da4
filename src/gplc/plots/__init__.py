"""Pictures of a fit: each function takes a fitted estimator and gives back matplotlib Axes.

A fitted scikit-learn Pipeline with such an estimator last will do too: inputs are then drawn in
the units before its other steps if these can be undone, and else in those after them.

With one input there is nothing to choose. With several, `feature` says along which one to look,
and the others stay at `at`, by default the medians of the training data.

Examples
--------
>>> import gplc
>>> data = gplc.datasets.make_paper("U1", n=20, random_state=0)
>>> model = gplc.StandardGP(chains=1, draws=20, warmup=20, random_state=0).fit(data.X, data.y)
>>> fan(model).get_ylabel()
'y'
"""

from collections.abc import Callable, Mapping

from matplotlib.figure import Figure

from gplc.plots.beliefs import prior_predictive, priors
from gplc.plots.calibration import coverage, pit
from gplc.plots.checks import calibration, influence, replicates, residuals
from gplc.plots.convergence import autocorrelation, chains, trace
from gplc.plots.figures import alone, each_input, overview
from gplc.plots.inputs import partial_dependence, relevance
from gplc.plots.left_out import surprise
from gplc.plots.noise import latent, residual_sd
from gplc.plots.response import fan, ridge
from gplc.plots.style import Fitted

__all__ = [
    "KINDS",
    "autocorrelation",
    "calibration",
    "chains",
    "coverage",
    "fan",
    "influence",
    "latent",
    "overview",
    "partial_dependence",
    "pit",
    "prior_predictive",
    "priors",
    "relevance",
    "replicates",
    "residual_sd",
    "residuals",
    "ridge",
    "surprise",
    "trace",
]

KINDS: Mapping[str, Callable[[Fitted], Figure]] = {
    "overview": overview,
    "fan": each_input(fan),
    "sd": each_input(residual_sd),
    "dependence": each_input(partial_dependence),
    "ridge": each_input(ridge),
    "pit": alone(pit),
    "coverage": each_input(coverage),
    "calibration": each_input(calibration),
    "surprise": each_input(surprise),
    "residuals": each_input(residuals),
    "replicates": alone(replicates),
    "influence": alone(influence),
    "priors": priors,
    "chains": chains,
    "relevance": alone(relevance),
    "latent": alone(latent),
}
"""What `gplc plot` can draw: a function that gives a whole figure, by name."""
