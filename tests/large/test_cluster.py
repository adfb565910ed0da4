"""Rows on the workers of a Dask cluster."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import gplc
from gplc.chains import advance, start
from gplc.datasets import make_paper
from gplc.models.in_basis import IN_BASIS
from gplc.processes import cluster
from gplc.processes.cluster import ClusterShards, table_of
from gplc.processes.distant import DistantRows
from gplc.processes.rows import ONE_SHARD, RowsHere

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

SMALL = gplc.Hilbert(functions=10, boundary=2.0, latent_functions=5, latent_boundary=2.0)
SETTINGS = {"chains": 2, "draws": 5, "warmup": 5, "random_state": 0, "approximation": SMALL}
LOCAL = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}

pytestmark = [
    pytest.mark.filterwarnings("ignore:covariances in the basis"),
    # Dask's own, of sockets that close after the test and of threads.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture(scope="module")
def client():
    """Four workers in this process."""
    with (
        distributed.LocalCluster(n_workers=4, processes=False, **LOCAL) as local,
        distributed.Client(local) as client,
    ):
        yield client


def lazy(data, chunks=3000):
    return da.from_array(data.X, chunks=(chunks, 1)), da.from_array(data.y, chunks=chunks)


def one_process_and(client, key, n):
    """A model of rows in this process, and the same of rows on workers."""
    data = make_paper("U1", n=n, random_state=1)
    here = RowsHere(data.X, data.y)
    axes = SMALL.axes(here.ranges, None, key == "gplc")
    model = IN_BASIS[key](data.X, data.y, axes=axes)
    table, _ = table_of(*lazy(data))
    rows = DistantRows.of(ClusterShards.of(client, table), here.ranges)
    return model, model.on_rows(rows)


@pytest.mark.parametrize("key", list(IN_BASIS))
def test_four_workers_give_the_draws_of_one_process(client, key):
    model, other = one_process_and(client, key, ONE_SHARD + 1000)
    position = start(model, model.scheme(), 1, model.prior_mean())
    iterations = 20 if key != "gplc" else 6
    chains = [advance(each, position, iterations, tune=True) for each in (model, other)]
    # The sums are the same to the last bit, and so is what follows; asked for is 1e-6.
    assert np.array_equal(chains[0].theta, chains[1].theta)
    assert np.array_equal(chains[0].latent, chains[1].latent)
    assert len(client.has_what()) == 4
    assert all(client.has_what().values())  # everybody has shards


def test_a_fit_on_a_cluster_is_that_of_arrays(client, tmp_path):
    data = make_paper("U1", n=400, random_state=1)
    near = gplc.LatentVarianceGP(**SETTINGS).fit(data.X, data.y)
    far = gplc.LatentVarianceGP(**SETTINGS).fit(*lazy(data, 90))
    assert isinstance(far.model_.rows.shards, ClusterShards)
    assert np.array_equal(far.draws_.theta, near.draws_.theta)
    assert far.chains_[0].events == near.chains_[0].events  # each thread has its own
    far.save(tmp_path / "fit.nc")
    again = gplc.load(tmp_path / "fit.nc")
    more = [each.extend(3).draws_.theta for each in (near, far, again)]
    assert np.array_equal(more[0], more[1])
    assert np.array_equal(more[0], more[2])


def test_a_scheduler_by_its_address(client):
    data = make_paper("U1", n=100, random_state=1)
    settings = SETTINGS | {"scheduler": client.scheduler.address}
    model = gplc.StandardGP(**settings).fit(*lazy(data))
    assert isinstance(model.model_.rows.shards, ClusterShards)


def test_other_versions_are_refused(client, monkeypatch):
    data = make_paper("U1", n=100, random_state=1)
    monkeypatch.setattr(cluster, "__version__", "0.0.1")
    with pytest.raises(ValueError, match=r"has gplc .*, and this process 0.0.1; install"):
        gplc.StandardGP(**SETTINGS).fit(*lazy(data))
    late = cluster.OnWorker(lambda values, begin: 0, 0, "9.9", os.getpid())
    with pytest.raises(ValueError, match="that has joined has gplc"):
        late(np.zeros((1, 2)))


def test_no_scheduler_at_the_address():
    with pytest.raises(OSError, match="no Dask scheduler at"):
        cluster.client_at("nowhere")


def test_without_dask_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ValueError, match=r"pip install 'gplc\[dask\]'"):
        cluster.distributed()


def test_workers_that_are_killed_change_nothing():
    """The same numbers, though a worker is killed again and again."""
    data = make_paper("U1", n=ONE_SHARD + 1000, random_state=1)
    kills = []
    with (
        distributed.LocalCluster(n_workers=2, processes=True, **LOCAL) as local,
        distributed.Client(local) as client,
    ):
        model, other = one_process_and(client, "gplv", data.y.size)
        position = start(model, model.scheme(), 1, model.prior_mean())
        done = threading.Event()

        def kill():
            while not done.wait(1.0) and len(kills) < 3:
                pids = client.run(os.getpid)
                victim = sorted(pids.values())[len(kills) % len(pids)]
                os.kill(victim, signal.SIGKILL)
                kills.append(victim)

        killer = threading.Thread(target=kill)
        killer.start()
        now, found = position, []
        while len(kills) < 3 or len(found) < 4:
            chain = advance(other, now, 3, tune=True)
            now, found = chain.position, [*found, chain.theta]
        done.set()
        killer.join()
    straight = advance(model, position, 3 * len(found), tune=True)
    assert np.array_equal(np.concatenate(found), straight.theta)


CLIENT = """
    import sys, warnings
    import dask.array as da, distributed, gplc
    from gplc.datasets import make_paper
    warnings.simplefilter("ignore")
    data = make_paper("U1", n=3000, random_state=1)
    X, y = da.from_array(data.X, chunks=(900, 1)), da.from_array(data.y, chunks=900)
    basis = gplc.Hilbert(functions=10, boundary=2.0)
    model = gplc.LatentVarianceGP(
        chains=2, draws=120, warmup=40, random_state=0, approximation=basis,
        checkpoint=sys.argv[2], scheduler=sys.argv[1],
    )
    model.fit(X, y).save(sys.argv[3])
"""


def saved_since(path, process, before):
    """Wait until a run has written its checkpoint (again)."""
    while not path.exists() or path.stat().st_mtime_ns == before:
        assert process.poll() is None
        time.sleep(0.05)
    return path.stat().st_mtime_ns


def test_a_lost_client_or_scheduler_leaves_a_checkpoint(tmp_path):
    """First a client is killed, then its scheduler goes: the third gives the same numbers."""
    path, out = tmp_path / "run.ckpt", tmp_path / "fit.nc"
    script = [sys.executable, "-c", textwrap.dedent(CLIENT)]
    local = {"n_workers": 1, "processes": False, "protocol": "tcp"} | LOCAL
    with distributed.LocalCluster(**local) as first:
        command = [*script, first.scheduler_address, str(path), str(out)]
        killed = subprocess.Popen(command)
        before = saved_since(path, killed, None)
        killed.kill()
        killed.wait()
        left = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        saved_since(path, left, before)
    _, said = left.communicate(timeout=120)
    assert left.returncode != 0
    assert "ConnectionError: the Dask scheduler was lost" in said  # Dask's log may follow
    assert not out.exists()
    with distributed.LocalCluster(**local) as second:
        command = [*script, second.scheduler_address, str(path), str(out)]
        assert subprocess.run(command, timeout=300).returncode == 0
    data = make_paper("U1", n=3000, random_state=1)
    basis = gplc.Hilbert(functions=10, boundary=2.0)
    settings = {"chains": 2, "draws": 120, "warmup": 40, "random_state": 0}
    straight = gplc.LatentVarianceGP(**settings, approximation=basis).fit(data.X, data.y)
    assert np.array_equal(gplc.load(out).draws_.theta, straight.draws_.theta)
