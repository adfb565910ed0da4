"""Simulation-based calibration of every model's default scheme (`gplc.checks.simulation`).

Twelve rows, the default priors. Geweke's test is of one step; this one is of whole chains: whether
a warm-up from where users' chains start, and some hundred draws, get to where the data are from.

False alarms: 0.01 a model in the verdict, 1e-4 for the threshold here. Seeds are fixed.
"""

import os
import warnings

import pytest

import gplc
from gplc import checks
from gplc.estimators import ESTIMATORS

HEAVY = os.environ.get("GPLC_HEAVY") == "1"
SETS = 300
THRESHOLD = 1e-4
DATA = gplc.datasets.make_paper("U1", n=12, random_state=1)


@pytest.mark.skipif(not HEAVY, reason="needs GPLC_HEAVY=1")
@pytest.mark.parametrize("key", ESTIMATORS)
def test_what_data_were_made_with_has_its_place_among_the_draws(key, note):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that so short a fit has not converged
        model = ESTIMATORS[key](chains=2, draws=20, warmup=20, random_state=0)
        model.fit(DATA.X, DATA.y)
    found = checks.simulation(model, sets=SETS, rows=12, draws=400, warmup=300)
    note("p", {name: round(row.p_value, 4) for name, row in found.rows.items()})
    assert len(found.rows) * min(row.p_value for row in found.rows.values()) > THRESHOLD, found
