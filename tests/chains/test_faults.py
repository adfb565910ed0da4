"""What a machine can do to a run: it goes on or ends in one line, and what was saved stays."""

import errno
import os
import shutil
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import gplc
from gplc import _files, chains, sampling, storage
from gplc._files import FileError

SETTINGS = {"chains": 2, "draws": 40, "warmup": 20, "random_state": 5}
DISK_ERRORS = [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO]


@pytest.fixture(scope="module")
def data():
    made = gplc.datasets.make_paper("U1", n=25, random_state=3)
    return made.X, made.y


@pytest.fixture(scope="module")
def whole(data):
    """A fit without a fault."""
    return gplc.StandardGP(**SETTINGS).fit(*data)


def fit(data, path, **settings):
    return gplc.StandardGP(**SETTINGS | settings, checkpoint=path).fit(*data)


def same_draws(one, other):
    np.testing.assert_array_equal(one.draws_.theta, other.draws_.theta)


def draws_in(path):
    return storage.Saved(path, storage.CHECKPOINT).arrays["theta"].shape[1]


def files_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def at_iteration(monkeypatch):
    """Something that happens while a run goes on, which saves itself after every iteration."""

    def arrange(number, happen):
        watch = sampling._Watcher.watch
        waiting = [happen]

        def watched(self, now):
            reason = watch(self, now)
            if now[0].position.iteration >= number and waiting:
                waiting.pop()()
            return reason

        monkeypatch.setattr(chains, "BATCH_SECONDS", 0.0)
        monkeypatch.setattr(sampling, "CHECKPOINT_SECONDS", 0.0)
        monkeypatch.setattr(sampling, "CHECKPOINT_PATIENCE", 0.0)
        monkeypatch.setattr(sampling._Watcher, "watch", watched)

    return arrange


@pytest.fixture
def broken_disk(monkeypatch):
    """From now on nothing reaches the disk."""

    def break_it(number):
        def refuse(handle):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "fsync", refuse)

    return break_it


# --- disks ---------------------------------------------------------------------------------


@pytest.mark.parametrize("number", DISK_ERRORS, ids=errno.errorcode.get)
def test_a_disk_that_fails_during_a_run(
    number, data, whole, at_iteration, broken_disk, tmp_path, monkeypatch
):
    """The run ends with all its draws; the last checkpoint that could be written stays."""
    path = tmp_path / "run.ckpt"
    at_iteration(35, lambda: broken_disk(number))
    with pytest.warns(UserWarning, match=r"run\.ckpt cannot be written.*goes on") as told:
        same_draws(fit(data, path), whole)
    assert len([each for each in told if "cannot be written" in str(each.message)]) == 1
    assert os.strerror(number) in str(told[0].message)
    assert files_in(tmp_path) == ["run.ckpt"]
    assert draws_in(path) == 15
    monkeypatch.undo()
    same_draws(fit(data, path), whole)


@pytest.mark.parametrize("number", DISK_ERRORS, ids=errno.errorcode.get)
def test_saving_to_a_disk_that_fails(number, whole, broken_disk, tmp_path):
    path = tmp_path / "fit.nc"
    whole.save(path)
    before = path.read_bytes()
    broken_disk(number)
    with pytest.raises(FileError, match=rf"fit\.nc cannot be written \({os.strerror(number)}\)"):
        whole.save(path)
    assert path.read_bytes() == before
    assert files_in(tmp_path) == ["fit.nc"]


LIMITED = """
    import resource, sys, warnings
    import gplc
    warnings.simplefilter("ignore")
    model = gplc.StandardGP(chains=1, draws=50, warmup=5, random_state=0).fit([[0], [1]], [0, 1])
    model.save(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    try:
        model.extend(10).save(sys.argv[1])
    except ValueError as error:
        print(error)
    print(gplc.load(sys.argv[1]).draws_.theta.shape)
"""


def in_a_process(code, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.skipif(sys.platform == "win32", reason="has no limits of processes")
def test_a_write_that_the_system_cuts_off(tmp_path):
    refused, kept = in_a_process(LIMITED, tmp_path / "fit.nc")
    assert "fit.nc cannot be written" in refused
    assert kept == "(1, 50, 3)"
    assert files_in(tmp_path) == ["fit.nc"]


def test_a_checkpoint_that_cannot_be_written_is_refused_before_the_run(
    data, tmp_path, monkeypatch
):
    monkeypatch.delattr(sampling, "run_chains")  # which is not reached
    with pytest.raises(FileError, match=r"absent.*cannot be written \(No such file"):
        fit(data, tmp_path / "absent" / "run.ckpt")
    with pytest.raises(FileError, match="is a folder; give the path of a file"):
        fit(data, tmp_path)

    def read_only(**_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(_files.tempfile, "mkstemp", read_only)
    with pytest.raises(FileError, match=r"cannot be written \(Read-only file system\)"):
        fit(data, tmp_path / "run.ckpt")


# --- others at work ------------------------------------------------------------------------


def test_a_checkpoint_deleted_during_a_run_is_written_anew(data, whole, at_iteration, tmp_path):
    path = tmp_path / "run.ckpt"
    at_iteration(35, path.unlink)
    same_draws(fit(data, path), whole)
    assert draws_in(path) == SETTINGS["draws"]


def test_a_folder_deleted_during_a_run(data, whole, at_iteration, tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    at_iteration(35, lambda: shutil.rmtree(folder))
    with pytest.warns(UserWarning, match="cannot be written"):
        same_draws(fit(data, folder / "run.ckpt"), whole)


@pytest.mark.parametrize("seed", [5, None])
def test_what_another_process_wrote_is_left_alone(data, at_iteration, tmp_path, seed):
    """The other one has come further, or is another run: its file must not be replaced."""
    path, other = tmp_path / "run.ckpt", tmp_path / "other.ckpt"
    fit(data, other, random_state=seed, draws=60)
    at_iteration(35, lambda: shutil.copy(other, path))
    with pytest.warns(UserWarning, match=r"run\.ckpt was written by another process"):
        mine = fit(data, path, random_state=seed)
    assert mine.draws_.theta.shape[1] == SETTINGS["draws"]
    assert path.read_bytes() == other.read_bytes()


RUN = """
    import sys, warnings
    import gplc
    from gplc import chains, sampling
    warnings.simplefilter("ignore")
    chains.BATCH_SECONDS = 0.01
    sampling.CHECKPOINT_SECONDS = sampling.CHECKPOINT_PATIENCE = 0.0
    made = gplc.datasets.make_paper("U1", n=25, random_state=3)
    model = gplc.StandardGP(
        chains=2, draws=40, warmup=20, random_state=5, checkpoint=sys.argv[1]
    ).fit(made.X, made.y)
    print(model.draws_.theta.tobytes() == open(sys.argv[2], "rb").read())
"""


def test_two_processes_on_one_checkpoint(data, whole, tmp_path):
    path, expected = tmp_path / "run.ckpt", tmp_path / "theta"
    expected.write_bytes(whole.draws_.theta.tobytes())
    command = [sys.executable, "-c", textwrap.dedent(RUN), str(path), str(expected)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[0] for process in both] == ["True\n", "True\n"]
    assert files_in(tmp_path) == ["run.ckpt", "theta"]
    same_draws(fit(data, path), whole)


# --- clocks, memory, workers ---------------------------------------------------------------


def test_a_clock_that_jumps(data, whole, tmp_path, monkeypatch):
    """By years, forwards and back: it decides when to look, and never what is drawn."""
    rng = np.random.default_rng(0)
    true_time = time.perf_counter
    monkeypatch.setattr(time, "perf_counter", lambda: true_time() + rng.uniform(-1e8, 1e8))
    monkeypatch.setattr(time, "time", lambda: rng.uniform(0, 1e10))
    same_draws(fit(data, tmp_path / "run.ckpt"), whole)
    same_draws(fit(data, tmp_path / "run.ckpt"), whole)


def test_out_of_memory_during_a_run(data, whole, at_iteration, tmp_path, monkeypatch):
    path = tmp_path / "run.ckpt"

    def exhausted():
        raise MemoryError

    at_iteration(35, exhausted)
    with pytest.raises(MemoryError):
        fit(data, path)
    monkeypatch.undo()
    assert draws_in(path) == 15
    same_draws(fit(data, path), whole)


CRAMPED = """
    import resource, sys, warnings
    import numpy as np
    from gplc.estimators import ESTIMATORS
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    model = ESTIMATORS[sys.argv[1]](chains=1, draws=2, warmup=2, random_state=0)
    model.fit(rng.normal(size=(20, 1)), rng.normal(size=20)).save(sys.argv[2])
    status = open("/proc/self/status").read()
    used = int(status.split("VmSize:")[1].split()[0]) * 1024
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**23, used + 2**23))
    try:
        model.fit(rng.normal(size=(900, 1)), rng.normal(size=900))
    except MemoryError:
        print("refused")
    print(model.draws_.theta.shape)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("key", gplc.models.MODELS)
def test_a_limit_on_memory_is_an_error_and_no_crash(key, tmp_path):
    refused, kept = in_a_process(CRAMPED, key, tmp_path / "fit.nc")
    assert refused == "refused"
    assert kept.startswith("(1, 2, ")


MORTAL = """
    import os, signal, sys
    from pathlib import Path
    import numpy as np
    from gplc.chains import run_chains
    from gplc.models import Standard

    parent = os.getpid()
    orders = Path(sys.argv[1])  # each file kills one worker

    class Mortal(Standard):
        key = "mortal"

        def step(self, rng, state, update):
            if os.getpid() != parent:
                for order in orders.iterdir():
                    order.unlink(missing_ok=True)
                    os.kill(os.getpid(), signal.SIGKILL)
            return super().step(rng, state, update)

    X = np.linspace(-1, 1, 10)[:, None]
    settings = dict(seed=1, chains=2, draws=20, warmup=5, watch=lambda now: None)
    alone = run_chains(Mortal(X, X[:, 0]), n_jobs=1, **settings)
    try:
        run = run_chains(Mortal(X, X[:, 0]), n_jobs=2, **settings)
        print(all((a.theta == b.theta).all() for a, b in zip(alone, run)))
    except ChildProcessError as error:
        print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGKILL")
@pytest.mark.parametrize(
    ("kills", "outcome"), [(1, "True"), (100, "workers were lost 3 times in a row")]
)
def test_a_worker_that_is_killed(kills, outcome, tmp_path):
    for number in range(kills):
        (tmp_path / str(number)).touch()
    (line,) = in_a_process(MORTAL, tmp_path)
    assert line.startswith(outcome)
