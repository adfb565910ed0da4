"""What the page on extending shows, whole: a model, a kernel and a sampler of one's own.

The model goes through everything that the package does with a model. It is entered in the
registries of another process, so that other tests do not see it.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gplc
from gplc.models import Standard, Update

ROOT = Path(__file__).parents[1]
SKELETONS = ROOT / "docs" / "skeletons"


def run_with_model(*arguments: str, code: int = 0, timeout: float = 560.0) -> str:
    """Run Python with the skeleton of a model on its path; what it prints before exit `code`."""
    path = os.pathsep.join([str(SKELETONS), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": path, "COLUMNS": "200"},
        timeout=timeout,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def gplc_with_model(*arguments: object, code: int = 0) -> str:
    """The command `gplc` of somebody who has imported the model."""
    return run_with_model(
        "-c", "import model; from gplc.cli import main; main()", *map(str, arguments), code=code
    )


def test_the_model_is_short():
    assert len((SKELETONS / "model.py").read_text().splitlines()) <= 80


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(3)
    x = rng.uniform(-2.0, 2.0, 40)
    y = np.sin(x) + 0.5 * np.abs(x) * rng.standard_normal(40)
    path = tmp_path_factory.mktemp("fourth") / "data.csv"
    np.savetxt(path, np.column_stack([x, y]), delimiter=",", header="x,y", comments="")
    return path


SHORT = ("--chains", "2", "--draws", "30", "--warmup", "20")


def test_a_fourth_model_goes_through_every_command(table):
    fit, page = table.with_suffix(".nc"), table.with_suffix(".html")
    out = table.with_name("predictions.csv")
    told = gplc_with_model("fit", table, "-y", "y", "-m", "prop", "-o", fit, *SHORT)
    assert "verdict" in told.lower()
    # So few draws do not converge, which has an exit code of its own.
    assert "log noise_rate" in gplc_with_model("diagnose", fit, code=3)
    gplc_with_model("predict", fit, table, "-o", out)
    assert len(out.read_text().splitlines()) == 41
    gplc_with_model("report", fit, "-o", page)
    assert "PROP: Gaussian noise whose SD is proportional to an input" in page.read_text()
    compared = gplc_with_model("compare", table, "-y", "y", "--folds", "2", "--jobs", "1", *SHORT)
    assert "PROP" in compared


def test_a_fourth_model_is_an_estimator_that_saves_and_loads(table):
    code = f"""
import warnings
import numpy as np, gplc, model
warnings.simplefilter("ignore")
x, y = np.loadtxt({str(table)!r}, delimiter=",", skiprows=1).T
fit = model.ProportionalGP(chains=2, draws=150, warmup=100, random_state=0).fit(x[:, None], y)
near, far = fit.residual_sd([[0.1], [1.9]]).mean
assert far > 3 * near, (near, far)
fit.save({str(table.with_suffix(".again.nc"))!r})
again = gplc.load({str(table.with_suffix(".again.nc"))!r})
assert np.array_equal(again.predict(x[:, None]), fit.predict(x[:, None]))
print(type(again).__name__)
"""
    assert run_with_model("-c", code).strip() == "ProportionalGP"


@pytest.mark.parametrize(
    "tests",
    [
        "tests/engine/test_robust.py",
        "tests/engine/test_models.py",
        "tests/chains/test_resuming.py",
        "tests/statistical/test_geweke.py",
    ],
)
def test_a_fourth_model_is_tested_like_the_others(tests):
    told = run_with_model("-m", "pytest", "-q", "-p", "model", "-k", "prop", "-n", "0", tests)
    assert " passed" in told
    assert "failed" not in told


def test_the_sampler_of_the_page_samples(monkeypatch):
    monkeypatch.syspath_prepend(str(SKELETONS))
    from sampler import UniformWalk

    data = gplc.datasets.make_paper("U1", n=20, random_state=0)
    scheme = [Update(name, UniformWalk()) for name in Standard(data.X, data.y).names]
    model = gplc.StandardGP(sampler=scheme, chains=2, draws=300, warmup=100, random_state=0)
    fitted = model.fit(data.X, data.y)
    reference = gplc.StandardGP(chains=2, draws=300, warmup=100, random_state=0)
    gap = fitted.predict(data.X) - reference.fit(data.X, data.y).predict(data.X)
    assert np.abs(gap).max() < 0.2
    rates = list(fitted.diagnostics_.acceptance.values())
    assert 0.2 < min(rates) <= max(rates) < 0.8


def test_the_kernels_of_the_page_work(monkeypatch):
    monkeypatch.syspath_prepend(str(SKELETONS))
    from kernel import PeriodicMatern, Rough

    names = PeriodicMatern().names(n_observed=1, n_latent=1)
    assert names == ("signal_sd", "length_scale", "latent_length_scale", "period")
    a, b = np.zeros((1, 1)), np.array([[0.5], [1.0]])
    assert Rough().matrix(np.zeros(2), a, b)[0] == pytest.approx(np.exp([-0.5, -1.0]))
    data = gplc.datasets.make_paper("U1", n=20, random_state=0)
    kernel = PeriodicMatern(period=1.0).on("x") + Rough(sd=0.5).on("w")
    model = gplc.LatentCovariateGP(kernel, draws=20, warmup=10, chains=1, random_state=0)
    assert np.isfinite(model.fit(data.X, data.y).predict(data.X)).all()
