"""One formula for the mean wherever it is asked for, even where it hangs on the last bits."""

import numpy as np
import pytest

from gplc.models import MODELS, Unknowns
from gplc.posterior import FunctionComponents, Posterior, ResponseComponents
from gplc.predictive import Predictive

X = np.linspace(-1.0, 1.0, 40)[:, None]
NEW = np.linspace(-1.4, 1.4, 9)[:, None]
NODES = np.linspace(-1.5, 1.5, 4)


def nearly_singular(key: str) -> Posterior:
    """One draw with long length scales and hardly any noise, for responses that are noisy."""
    rng = np.random.default_rng(0)
    y = np.sin(2.0 * X[:, 0]) + 0.3 * rng.standard_normal(40)
    model = MODELS[key](X, y)
    theta = model.priors.means.copy()
    for place, name in enumerate(model.names):
        if "noise" in name:
            theta[place] = -14.0
        elif "length_scale" in name:
            theta[place] = 0.7
    # A log SD has to be as low as that of the noise; covariates may be anywhere.
    centre = -14.0 if model.latent_name == "z" else 0.0
    latent = centre + 0.01 * rng.standard_normal(model.n_latent)
    return Posterior(model, [(Unknowns(theta, latent), NODES)])


@pytest.mark.parametrize("key", MODELS)
def test_the_mean_is_one_number(key):
    posterior = nearly_singular(key)
    source = ResponseComponents(posterior, NEW)
    alone = Predictive(source).mean()
    np.testing.assert_array_equal(alone, Predictive(source).moments().mean)
    np.testing.assert_array_equal(alone, Predictive(source).summary().mean)
    np.testing.assert_array_equal(
        source.component_means(slice(0, 9)), source.components(slice(0, 9))[0]
    )
    if key != "gplc":  # there f is the average over w, not over the nodes
        function = Predictive(FunctionComponents(posterior, NEW)).mean()
        np.testing.assert_allclose(function, alone, rtol=1e-14)
