"""Constant Gaussian noise (STD)."""

from gplc.estimators.base import BaseGP
from gplc.models import Standard


class StandardGP(BaseGP):
    """Gaussian process regression with Gaussian noise of constant variance, full Bayes (STD).

    y = f(x) + e,  f ~ GP(0, K),  e ~ N(0, sigma^2), or N(0, s^2 + sigma^2) with s known

    Parameters
    ----------
    kernel : Kernel, optional
        Covariance function, from `gplc.kernels`; by default `SquaredExponential`, with one length
        scale per input (ARD) and c = 1.
    priors : mapping of str to (mean, sd) or Prior, optional
        Priors that replace the defaults of `gplc.priors`: mean and SD of the logarithm, or a
        family, as in ``{"noise_sd": HalfNormal(1.0)}``.
    mean : {"zero", "constant", "linear"}, ConstantMean, LinearMean or callable, optional
        Mean of the process, zero by default. Coefficients of a constant or linear mean have wide
        Gaussian priors and are integrated out. A function of yours maps X to n numbers, both on
        the scale of the data, and is taken as known.
    chains : int
        Number of chains.
    draws : int or "auto"
        Draws kept of each chain. "auto", the default, goes on until R-hat is below 1.01 and bulk
        and tail ESS above 400 for everything that is judged, or until `max_draws` or
        `max_seconds`. How many that takes depends on the data and the seed, not on the machine.
    warmup : int
        Iterations before those, in which the samplers tune themselves.
    max_draws : int
        Bound for ``draws="auto"``.
    max_seconds : float, optional
        Sampling stops after this time with the draws it has.
    sampler : str or list of Update
        Name of a scheme of the model (``"default"``, ``"paper"``), or a scheme.
    standardize : bool
        Whether X and y are brought to mean 0 and SD 1 inside. Priors and hyperparameters
        (`draws_`, `diagnostics_`) are on that scale; predictions are on that of the data.
    nodes : int
        Values of the latent variable of a new case per draw (no effect for this model).
    node_rule : {"stratified", "random"}
        How those values are chosen; random is the paper's way.
    predictive_draws : int or None
        Predictions average over at most this many draws, evenly spaced; None means all.
    n_jobs : int, optional
        Chains at once, as in joblib. None is what a `joblib.parallel_config` says; without one, a
        run begins on one core and is given all if it takes longer than a few seconds. The draws
        are the same.
    random_state : int, RandomState, Generator, SeedSequence or None
        Resolved anew at each fit; the same seed gives the same fit.
    progress : bool or "auto"
        Show a bar per chain; "auto" in terminals and notebooks only.
    checkpoint : path, optional
        File that keeps the run as it goes. A fit with the same data and settings resumes it;
        other data or settings are refused. If it cannot be written any more (a full disk), or
        another process has written it, there is a warning, and the run goes on without it.
    learned_noise : bool
        Whether there is noise besides the known one that `fit` is given as `noise_std`.
    resolution : float or "auto", optional
        The step that y was rounded to; "auto" finds it, if y has ties. It is known noise of SD
        step / sqrt(12).
    target_transform : {"log", "logit", "boxcox"} or three functions, optional
        The model is of T(y): for positive responses, or ones between 0 and 1. Of your own give T,
        its inverse and its derivative, each of an array. Predictions are of y: densities have the
        Jacobian, quantiles are exact. A `mean` function is then one of T(y).
    approximation : "auto", None, Hilbert or Inducing
        None is the exact model. A `Hilbert` samples in a basis, in time linear in the rows, for up
        to three inputs; `Inducing` points are for 4 to 15. "auto" does so beyond
        1,000 rows where it can. See docs/large.md.
    method : "mcmc" or "fast"
        "fast" is a first answer in seconds: draws from a Gaussian around the mode of the same
        posterior, weighed, with a verdict; `extend` then begins chains there. See
        docs/diagnostics.md.
    scheduler : str, optional
        Address of the Dask scheduler on whose workers a Dask X and y are fitted; by default that
        of the current `distributed.Client`. Without either they are fitted here, from a file.

    Attributes
    ----------
    draws_ : Draws
        Posterior draws by name.
    diagnostics_ : Diagnostics
        R-hat, effective sample sizes and more; prints as a table with a verdict.
    origin_ : dict of str to str
        Where the fit comes from, for its report: the date, and from the command line also the
        file, the command and how many rows were left out.
    chains_ : list of Chain
        The chains themselves: acceptance rates, numerical events, seconds.
    approximation_ : Approximated or None
        The basis that was used and how good it is; None if the fit is exact.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    resolution_ : float or None
        The step that y was rounded to, if one was given or found.
    notes_ : list of str
        What was done to the data: rows left out, for example.
    target_name_ : str or None
        Name of y, if it is a column that has one.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = StandardGP(chains=1, draws=50, warmup=50, random_state=0).fit(X, y)
    >>> bool(abs(model.predict([[0.25]])[0] - np.sin(1.5)) < 0.1)
    True
    """

    model_class = Standard
