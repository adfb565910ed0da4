"""A run can be killed, resumed, extended, saved and loaded, and the numbers stay the same."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import gplc
from gplc import _files, sampling
from gplc._files import FileError
from gplc.estimators import ESTIMATORS

HEAVY = bool(os.environ.get("GPLC_HEAVY"))

SETTINGS = {"chains": 2, "draws": 40, "warmup": 20, "random_state": 5}


@pytest.fixture(scope="module")
def data():
    made = gplc.datasets.make_paper("U1", n=25, random_state=3)
    return made.X, made.y


def same_draws(one, other):
    for name in one.draws_:
        np.testing.assert_array_equal(one.draws_[name], other.draws_[name], err_msg=name)
    np.testing.assert_array_equal(one.draws_.nodes, other.draws_.nodes)


@pytest.fixture(params=ESTIMATORS.values(), ids=lambda each: each.__name__)
def estimator(request):
    return request.param


def test_extending_equals_fitting_with_more_draws_at_once(estimator, data):
    whole = estimator(**SETTINGS).fit(*data)
    parts = estimator(**{**SETTINGS, "draws": 15}).fit(*data).extend(20).extend(5)
    same_draws(whole, parts)
    np.testing.assert_array_equal(whole.predict(data[0]), parts.predict(data[0]))
    for one, other in zip(whole.chains_, parts.chains_, strict=True):
        assert one.acceptance == pytest.approx(other.acceptance)
        # Evaluations are counted alike, however often a run has begun again.
        counted = [key for key in one.events if key.endswith(": evaluations")]
        assert counted
        assert all(one.events[key] == other.events[key] for key in counted)


def test_a_finished_checkpoint_gives_the_fit_back(estimator, data, tmp_path):
    path = tmp_path / "run.ckpt"
    first = estimator(**SETTINGS, checkpoint=path).fit(*data)
    second = estimator(**SETTINGS, checkpoint=path).fit(*data)
    same_draws(first, second)
    longer = estimator(**{**SETTINGS, "draws": 50}, checkpoint=path).fit(*data)
    same_draws(longer, estimator(**{**SETTINGS, "draws": 50}).fit(*data))


def test_a_run_of_unknown_seed_resumes_with_its_own(data, tmp_path):
    settings = {**SETTINGS, "random_state": None, "checkpoint": tmp_path / "run.ckpt"}
    same_draws(gplc.StandardGP(**settings).fit(*data), gplc.StandardGP(**settings).fit(*data))


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"warmup": 21}, "warmup was 20 and is now 21"),
        ({"chains": 3}, "chains was 2 and is now 3"),
        ({"random_state": 6}, "random_state was 5 and is now 6"),
        ({"priors": {"noise_sd": (0.0, 1.0)}}, "priors was"),
        ({"kernel": gplc.SquaredExponential(constant=2.0)}, "kernel was"),
    ],
)
def test_other_settings_are_refused_by_name(data, tmp_path, changed, named):
    path = tmp_path / "run.ckpt"
    gplc.StandardGP(**SETTINGS, checkpoint=path).fit(*data)
    with pytest.raises(FileError, match=named):
        gplc.StandardGP(**{**SETTINGS, **changed}, checkpoint=path).fit(*data)


def test_other_data_and_another_model_are_refused(data, tmp_path):
    path = tmp_path / "run.ckpt"
    gplc.StandardGP(**SETTINGS, checkpoint=path).fit(*data)
    with pytest.raises(FileError, match="y was array"):
        gplc.StandardGP(**SETTINGS, checkpoint=path).fit(data[0], data[1] ** 2)
    with pytest.raises(FileError, match="estimator was"):
        gplc.LatentCovariateGP(**SETTINGS, checkpoint=path).fit(*data)


SCRIPT = """
    import sys, warnings
    import gplc
    from gplc import chains, sampling
    warnings.simplefilter("ignore")
    chains.BATCH_SECONDS = 0.02
    sampling.CHECKPOINT_SECONDS = sampling.CHECKPOINT_PATIENCE = 0.0
    made = gplc.datasets.make_paper("U1", n=25, random_state=3)
    print("ready", flush=True)
    model = gplc.LatentCovariateGP(
        chains=2, draws=150, warmup=50, random_state=5, checkpoint=sys.argv[1]
    ).fit(made.X, made.y)
    print("done", flush=True)
"""


def start_run(path):
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    return process


def test_kill_at_any_moment_and_resume_bit_for_bit(data, tmp_path):
    """kill -9 at random moments of one run, again and again until it is through."""
    settings = {"chains": 2, "draws": 150, "warmup": 50, "random_state": 5}
    whole = gplc.LatentCovariateGP(**settings).fit(*data)
    rng = np.random.default_rng(0)
    kills = moments = 0
    wanted = 50 if HEAVY else 4
    while kills < wanted:
        path = tmp_path / f"{moments}.ckpt"
        moments += 1
        reached = -1
        for _ in range(5):
            process = start_run(path)
            time.sleep(rng.uniform(0.0, 0.6))
            process.send_signal(signal.SIGKILL)
            out, _ = process.communicate()
            kills += "done" not in out
            if path.exists():
                # What was on disk at the kill is whole, and never less than before.
                count = int(_files.read(path, "checkpoint").arrays["theta"].shape[1])
                assert count >= reached
                reached = count
        resumed = gplc.LatentCovariateGP(**settings, checkpoint=path).fit(*data)
        same_draws(whole, resumed)


def corruptions(content, rng, count):
    """Cut, flipped, overwritten and foreign versions of a file."""
    for number in range(count):
        kind = number % 5
        changed = bytearray(content)
        if kind == 0:
            yield bytes(changed[: rng.integers(len(changed))])
        elif kind == 1:
            changed[rng.integers(len(changed))] ^= 1 << int(rng.integers(8))
            yield bytes(changed)
        elif kind == 2:
            begin = int(rng.integers(len(changed) - 1))
            length = int(rng.integers(1, 200))
            changed[begin : begin + length] = rng.bytes(length)
            yield bytes(changed)
        elif kind == 3:
            yield bytes(changed) + rng.bytes(int(rng.integers(1, 100)))
        else:
            yield rng.bytes(int(rng.integers(0, 2000)))


def test_corrupt_files_are_refused_in_one_sentence(data, tmp_path, note, largest_memory):
    """300 corruptions (1,000 with GPLC_HEAVY): a clear error or the same numbers, nothing else."""
    each = 500 if HEAVY else 150
    checkpoint, fit = tmp_path / "run.ckpt", tmp_path / "fit.nc"
    model = gplc.StandardGP(**SETTINGS, checkpoint=checkpoint).fit(*data)
    model.save(fit)
    rng = np.random.default_rng(1)
    broken = tmp_path / "broken"
    messages, seconds, before = [], [], largest_memory()
    for good, use in (
        (checkpoint, lambda: gplc.StandardGP(**SETTINGS, checkpoint=broken).fit(*data)),
        (fit, lambda: gplc.load(broken)),
    ):
        for content in corruptions(good.read_bytes(), rng, each):
            broken.write_bytes(content)
            began = time.process_time()
            try:
                loaded = use()
            except FileError as error:
                messages.append(str(error))
            else:
                same_draws(model, loaded)
            seconds.append(time.process_time() - began)
    note("files", len(seconds))
    note("longest (CPU s)", round(max(seconds), 3))
    note("memory grew by (MB)", largest_memory() - before)
    assert len(messages) > 1.9 * each
    assert all(str(broken) in message for message in messages)


def test_a_checkpoint_is_not_a_fit_and_a_missing_file_is_named(data, tmp_path):
    path = tmp_path / "run.ckpt"
    gplc.StandardGP(**SETTINGS, checkpoint=path).fit(*data)
    with pytest.raises(FileError, match="is a gplc checkpoint, not a fit"):
        gplc.load(path)
    with pytest.raises(FileError, match=r"absent\.nc cannot be read"):
        gplc.load(tmp_path / "absent.nc")


def test_a_saved_fit_predicts_the_same_in_a_fresh_process(estimator, data, tmp_path):
    path = tmp_path / "fit.nc"
    model = estimator(**SETTINGS, priors={"length_scale": (0.5, 0.5)}).fit(*data)
    model.save(path)
    code = (
        "import sys, gplc, numpy as np\n"
        "model = gplc.load(sys.argv[1])\n"
        "np.save(sys.argv[2], model.predict_quantiles([[0.1], [0.7]], [0.1, 0.5]))\n"
        "print(model.diagnostics_)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(path), str(tmp_path / "q.npy")],
        capture_output=True,
        text=True,
        check=True,
    )
    np.testing.assert_array_equal(
        np.load(tmp_path / "q.npy"), model.predict_quantiles([[0.1], [0.7]], [0.1, 0.5])
    )
    assert result.stdout.strip() == str(model.diagnostics_)


def test_a_loaded_fit_can_be_extended_and_never_writes_where_the_file_says(data, tmp_path):
    path = tmp_path / "fit.nc"
    gplc.StandardGP(**SETTINGS, checkpoint=tmp_path / "run.ckpt").fit(*data).save(path)
    loaded = gplc.load(path)
    assert loaded.checkpoint is None
    whole = gplc.StandardGP(**{**SETTINGS, "draws": 60}).fit(*data)
    same_draws(whole, loaded.extend(20))


def test_a_fit_keeps_feature_names(data, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"speed": data[0][:, 0]})
    gplc.StandardGP(**SETTINGS).fit(frame, data[1]).save(tmp_path / "fit.nc")
    loaded = gplc.load(tmp_path / "fit.nc")
    assert list(loaded.feature_names_in_) == ["speed"]
    loaded.predict(frame)


def test_a_scheme_of_ones_own_cannot_be_saved(data, tmp_path):
    from gplc.models import Update
    from gplc.samplers import Slice

    scheme = [Update(name, Slice()) for name in ("signal_sd", "length_scale", "noise_sd")]
    model = gplc.StandardGP(**SETTINGS, sampler=scheme).fit(*data)
    with pytest.raises(ValueError, match="cannot be saved"):
        model.save(tmp_path / "fit.nc")
    assert not (tmp_path / "fit.nc").exists()


def test_interrupting_keeps_what_there_is_and_stops_the_loop(data, monkeypatch):
    watch = sampling._Watcher.watch

    def interrupted(self, chains):
        watch(self, chains)
        if chains[0].log_density.size > 0:
            raise KeyboardInterrupt

    monkeypatch.setattr(sampling._Watcher, "watch", interrupted)
    begun = []

    def loop():
        for _ in range(2):
            begun.append(gplc.StandardGP(**{**SETTINGS, "draws": 5000}))
            begun[-1].fit(*data)

    with pytest.raises(KeyboardInterrupt, match=r"sys\.last_value\.model") as stop:
        loop()
    (model,) = begun
    assert stop.value.model is model
    elsewhere = pickle.loads(pickle.dumps(stop.value))
    np.testing.assert_array_equal(elsewhere.model.predict(data[0]), model.predict(data[0]))
    kept = model.draws_.log_density.shape[1]
    assert 0 < kept < 5000
    assert f"Interrupted after {kept} draws" in model.diagnostics_.stopped
    model.predict(data[0])


def test_interrupting_warm_up_leaves_nothing_half_fitted(data, monkeypatch):
    def interrupted(self, chains):
        raise KeyboardInterrupt

    monkeypatch.setattr(sampling._Watcher, "watch", interrupted)
    model = gplc.StandardGP(**SETTINGS)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data)
    assert not hasattr(model, "draws_")
