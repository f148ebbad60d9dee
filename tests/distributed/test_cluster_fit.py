"""Training on shards through a cluster: what it gives, and that workers never show in it."""

import importlib
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster_data import digest, labeler, small_shards
from quiet_clusters import closing_quietly

from structpred.distributed import Shards, fit
from structpred.distributed.cluster import local_cluster
from structpred.errors import CheckpointError, ClusterError, DataError, MissingCapabilityError, ParameterError
from structpred.models import ChainLabeler

# dask first: without it the folder of these tests is found as `distributed`
pytest.importorskip("dask", reason="dask is not installed: pip install 'structpred[distributed]'")
distributed = pytest.importorskip("distributed")
TRAINERS = ("lbfgs", "oeg", "bcfw")


@pytest.fixture(scope="module", autouse=True)
def _small_slices() -> Iterator[None]:
    """Sums are made in slices as soon as there are two workers, of three shards at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("structpred.distributed.rounds.SLICE", 64)
        patch.setattr("structpred.distributed.rounds.TOGETHER", 3)
        yield


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Shards:
    """A small file, cut into eight."""
    return small_shards(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def bits(here: Any, shards: Shards) -> Callable[[str], str]:
    """The digest of a run in this process, by the name of the trainer."""
    return cache(lambda trainer: digest(fit(labeler(trainer), shards, client=here)))


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A client of two worker processes."""
    with local_cluster(2) as cluster, distributed.Client(cluster) as client:
        yield client


def killing(client: Any, passes: int, delay: float) -> Callable[[Any], None]:
    """A callback that kills a worker process some time after a pass, when the next is under way."""

    def callback(row: Any) -> None:
        if row["passes"] == passes:
            process = next(iter(client.cluster.workers.values())).pid
            threading.Timer(delay, os.kill, (process, signal.SIGKILL)).start()

    return callback


@pytest.mark.slow
def test_shards_and_one_machine_bound_the_same_optimum(here: Any, shards: Shards) -> None:
    """The certificate of a run on shards and that of `fit` on all data agree: each lower bound is below the other's objective."""
    data = Shards.of_file(shards[0].path, 1)[0].load()
    alone = labeler("lbfgs", max_iter=20).fit(data.X, data.y)
    spread = fit(labeler("lbfgs", max_iter=20), shards, client=here)
    for one, other in ((alone, spread), (spread, alone)):
        dual, primal = one.certificate_.dual, other.certificate_.primal
        assert dual is not None
        assert primal is not None
        assert 0.9 * primal < dual <= primal
    assert spread.report_["shards"].tolist() == [8.0]
    predicted = np.concatenate(spread.predict(data.X))
    assert np.mean(predicted == np.concatenate([np.array(y) for y in data.y])) > 0.85


def test_what_shards_cannot_do_is_said_at_once(here: Any, shards: Shards) -> None:
    """A trainer without rounds, weights that are not free, a wrong client: one line, before any shard is read."""
    for model, message in (
        (labeler("pragam"), "Pragam cannot be trained on shards; trainers that can: .*bcfw.*lbfgs"),
        (labeler("lbfgs", signs={"*": 1}), "signs: "),
        (labeler("lbfgs", surrogate="margin"), "LBFGS cannot minimise MarginRescaling"),
        (labeler("lbfgs", patience=2), "patience needs held-out data"),
    ):
        with pytest.raises(ParameterError, match=message):
            fit(model, shards, client=here)
    with pytest.raises(MissingCapabilityError, match="trainer CoCoA needs squared_norm, which L1 does not have"):
        fit(labeler("bcfw", regulariser="l1"), shards, client=here)
    with pytest.raises(ParameterError, match="expected Shards, such as"):
        fit(labeler("bcfw"), [1, 2], client=here)  # type: ignore[arg-type]


def test_a_bad_shard_is_named(here: Any, shards: Shards, tmp_path: Path) -> None:
    """A bad line is an error of file and line, a shard without sentences one of the shard; the model stays as it was."""
    bad = tmp_path / "bad.txt"
    bad.write_text("w1 L1\n\nw2\n")
    model = labeler("bcfw")
    with pytest.raises(DataError, match=r"shard 1 \(.*bad\.txt\): .*bad\.txt:3: "):
        fit(model, Shards([shards[0], *Shards.of_files([bad])]), client=here)
    with pytest.raises(DataError, match=r"shard 1 .*expected at least one"):
        fit(model, Shards([shards[0], *Shards.of_functions([lambda: ([], [])])]), client=here)
    with pytest.raises(DataError, match=r"shard 1 .*some labels are missing"):
        fit(model, Shards([shards[0], *Shards.of_functions([lambda: ([[["w1"], ["w2"]]], [["L1", None]])])]), client=here)
    with pytest.raises(ClusterError, match="reading the shards: a worker has no module 'nowhere'"):
        fit(model, Shards.of_functions([lambda: importlib.import_module("nowhere")]), client=here)
    assert not hasattr(model, "coef_")


@pytest.mark.slow
def test_states_that_are_only_in_the_store_give_the_same_bits(
    here: Any, shards: Shards, bits: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that is short of memory, or takes a shard over, reads the state, or loads the shard again: nothing differs."""
    expected = bits("bcfw")
    for most in (0.6, 0.9):  # of its memory is in use: no states are kept, no shards either
        monkeypatch.setattr("structpred.distributed.tasks.is_memory_above", lambda share, most=most: most > share)
        assert digest(fit(labeler("bcfw"), shards, client=here)) == expected


@pytest.mark.slow
def test_workers_never_show_in_the_bits(client: Any, shards: Shards, bits: Callable[[str], str]) -> None:
    """Weights, history and certificate are the same to the last bit in one process, on one worker, on two and on three."""
    runs = ((2, "bcfw", 1), (2, "oeg", 3), (3, "lbfgs", 1), (3, "oeg", 2), (1, "lbfgs", 1), (1, "bcfw", 3), (2, "lbfgs", 2))
    for n_workers, trainer, every in runs:
        client.cluster.scale(n_workers)
        client.wait_for_workers(n_workers)
        found = digest(fit(labeler(trainer), shards, client=client, every=every))
        assert found == bits(trainer), (n_workers, trainer, every)


@pytest.mark.slow
@pytest.mark.parametrize(("trainer", "every"), [*((trainer, 1) for trainer in TRAINERS), ("oeg", 3), ("bcfw", 3)])
def test_a_killed_worker_never_shows_in_the_bits(
    client: Any, shards: Shards, bits: Callable[[str], str], trainer: str, every: int
) -> None:
    """A worker that is killed (-9) in mid-round loses nothing: others take its shards over, and the bits are the same."""
    model = labeler(trainer, callbacks=killing(client, 2, 0.01))
    assert digest(fit(model, shards, client=client, every=every)) == bits(trainer)


@pytest.mark.slow
def test_a_run_continues_on_another_cluster(client: Any, shards: Shards, bits: Callable[[str], str], tmp_path: Path) -> None:
    """After the scheduler has gone, the error says that the run can be resumed; on another cluster it ends with the same bits."""
    settings = {"checkpoint": tmp_path / "run.ckpt"}
    for trainer in ("bcfw", "oeg"):
        first = distributed.LocalCluster(n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0")
        with distributed.Client(first) as lost:

            def stop(row: Any, cluster: Any = first) -> None:
                if row["passes"] == 2:
                    cluster.close()

            with pytest.raises(ClusterError, match=r"scheduler .* resume"):
                fit(labeler(trainer, callbacks=stop, **settings), shards, client=lost)
        model = fit(labeler(trainer, resume=True, **settings), shards, client=client)
        assert digest(model) == bits(trainer)


@pytest.mark.slow
@pytest.mark.usefixtures("hears_interrupts")
def test_ctrl_c_keeps_what_was_learnt(client: Any, shards: Shards, bits: Callable[[str], str], tmp_path: Path) -> None:
    """Ctrl-C gives the round up, and raises KeyboardInterrupt after the model and its checkpoint are written; resume goes on."""

    def press(row: Any) -> None:
        if row["passes"] == 2:
            threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()

    for trainer in TRAINERS:
        path = tmp_path / f"{trainer}.ckpt"
        model = labeler(trainer, callbacks=press, checkpoint=path)
        with pytest.raises(KeyboardInterrupt, match="resume=True"):
            fit(model, shards, client=client)
        assert model.n_iter_ in (2, 3)
        assert digest(fit(labeler(trainer, checkpoint=path, resume=True), shards, client=client)) == bits(trainer)


@pytest.mark.slow
def test_a_store_of_another_round_is_refused(client: Any, shards: Shards, tmp_path: Path) -> None:
    """A checkpoint whose store is gone, or holds other rounds, is an error that says so: nothing is trained from mixed states."""
    path = tmp_path / "run.ckpt"
    fit(labeler("bcfw", checkpoint=path, max_iter=2), shards, client=client)
    (store,) = (tmp_path / "run.ckpt.store").glob("run-*")
    (store / "common.2").unlink()
    with pytest.raises(CheckpointError, match=r"common\.2: .*; the store must be that of the checkpoint"):
        fit(labeler("bcfw", checkpoint=path, resume=True), shards, client=client)


@pytest.mark.slow
def test_a_shard_that_kills_its_workers_is_named() -> None:
    """A shard that takes every worker with it ends the run, with its number and what it is, before it takes the next."""
    import dask

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        local_cluster(1) as cluster,
        distributed.Client(cluster) as client,
        pytest.raises(ClusterError, match=r"shard 0 \(.*\): 2 workers died while they worked on it"),
    ):
        fit(ChainLabeler("bcfw"), Shards.of_functions([partial(os._exit, 1)]), client=client)


@pytest.mark.slow
@pytest.mark.parametrize("asleep", [True, False])
def test_a_cluster_that_loses_its_workers_for_good_ends_the_run(
    asleep: bool, shards: Shards, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether they leave between rounds or in the middle of one, the run waits for others a while, and then says so."""
    monkeypatch.setattr("structpred.distributed.rounds.PATIENCE", 3.0)
    with local_cluster(1) as cluster, distributed.Client(cluster) as client:

        def leave(row: Any) -> None:
            if row["passes"] == 2:
                threading.Timer(0.0 if asleep else 0.2, cluster.scale, (0,)).start()
                time.sleep(1.0 if asleep else 0.0)

        with pytest.raises(ClusterError, match=r"the cluster has no workers any more, .* resume from the checkpoint"):
            fit(labeler("oeg", max_iter=500, tol=0.0, callbacks=leave), shards, client=client)


@pytest.mark.slow
def test_without_a_client_the_cores_of_this_machine_do_it(shards: Shards, bits: Callable[[str], str], tmp_path: Path) -> None:
    """Without a client there are worker processes for the time of the call; the file of the model is that of any other."""
    model = fit(labeler("bcfw"), shards)
    assert digest(model) == bits("bcfw")
    model.save(tmp_path / "m.spz")
    assert ChainLabeler.load(tmp_path / "m.spz").report_["shards"].tolist() == [8.0]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl, which makes certificates, is not installed")
def test_a_cluster_with_tls_is_used_as_it_is(shards: Shards, bits: Callable[[str], str], tmp_path: Path) -> None:
    """A client of a cluster that speaks TLS alone trains through it; the bits are those of any other."""
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "ca.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "1",
         "-subj", "/CN=localhost"], check=True, capture_output=True,
    )  # fmt: skip
    ends = {
        f"tls_{end}_{what}": path
        for end in ("client", "worker", "scheduler")
        for what, path in (("key", key), ("cert", certificate))
    }
    security = distributed.Security(tls_ca_file=certificate, require_encryption=True, **ends)
    with (
        closing_quietly(distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, host="tls://127.0.0.1", dashboard_address="127.0.0.1:0", security=security
        )) as cluster,
        distributed.Client(cluster.scheduler_address, security=security) as client,
    ):  # fmt: skip
        assert cluster.scheduler_address.startswith("tls://")
        assert digest(fit(labeler("bcfw"), shards, client=client)) == bits("bcfw")
