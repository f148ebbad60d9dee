"""Workers killed (-9) in mid-round, and the bits that come out: ``python benchmarks/cluster_kills.py [--kills 40] [--quick]``.

Small data in eight shards on two workers. In each run one worker is killed at another moment of another round, in turns for
L-BFGS after exponentiated gradient, exponentiated gradient and BCFW by CoCoA+, and the mixed perceptron. What the run gives,
weights, history and certificate, is compared with a run in one process that nobody disturbs. Of each run: where the kill fell,
whether the bits are the same, and the rounds that were submitted again.

--quick makes four kills. --every 3 stores the states of the shards in every third round; the run in one process in each.
"""

import argparse
import contextlib
import hashlib
import logging
import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measure import machine, table

TRAINERS = ("lbfgs", "oeg", "bcfw", "perceptron")
ROUNDS = 8


def made_file(folder: Path, n: int = 240) -> Path:
    """Sentences whose words say their labels, but for some noise."""
    rng = np.random.default_rng(3)
    sentences = []
    for _ in range(n):
        words = rng.integers(0, 60, rng.integers(2, 9))
        labels = np.where(rng.random(len(words)) < 0.1, rng.integers(0, 3, len(words)), words % 3)
        sentences.append("".join(f"w{word} L{label}\n" for word, label in zip(words, labels, strict=True)))
    path = folder / "train.txt"
    path.write_text("\n".join(sentences))
    return path


def digest(model: Any) -> str:
    """Of weights, history and certificate; how long it took is left out."""
    rows = [{name: value for name, value in row.items() if "seconds" not in name} for row in model.history_]
    return hashlib.sha256(model.coef_.tobytes() + repr((rows, model.certificate_)).encode()).hexdigest()


def killer(
    cluster: Any, passes: int, delay: float, which: int, killed: list[int], timers: list[threading.Timer]
) -> Callable[[Any], None]:
    """A callback that kills a worker process `delay` seconds after a pass, by one of `timers`."""

    def kill() -> None:
        with contextlib.suppress(ProcessLookupError):
            processes = [pid for worker in cluster.workers.values() if (pid := getattr(worker, "pid", None))]
            if processes:
                os.kill(processes[which % len(processes)], signal.SIGKILL)
                killed.append(passes)

    def callback(row: Any) -> None:
        if row["passes"] == passes:
            timers.append(threading.Timer(delay, kill))
            timers[-1].start()

    return callback


def has_two(client: Any) -> bool:
    """Whether both workers are there again."""
    try:
        client.wait_for_workers(2, timeout=20)
    except TimeoutError:
        return False
    return True


def main() -> None:
    """One run a kill, and a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--every", type=int, default=1, help="rounds between two writes of the states of the shards")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    from distributed import Client

    from structpred.distributed import Shards, fit
    from structpred.distributed.cluster import local_cluster
    from structpred.models import ChainLabeler

    logging.getLogger("structpred.distributed").addHandler(again := Counting())

    def model(trainer: str, **settings: Any) -> Any:
        return ChainLabeler(trainer, C=0.1, template="pos", n_bits=8, max_iter=ROUNDS, check_every=1, **settings)

    print(machine())
    rows, rng, wanted = [], random.Random(0), 4 if options.quick else options.kills
    with tempfile.TemporaryDirectory(prefix="structpred-bench-") as folder:
        shards = Shards.of_file(made_file(Path(folder)), 8)
        with Client(processes=False, dashboard_address="127.0.0.1:0", n_workers=1, threads_per_worker=1) as client:
            expected = {trainer: digest(fit(model(trainer), shards, client=client)) for trainer in TRAINERS}
        while len(rows) < wanted:
            with local_cluster(2, silence_logs=logging.CRITICAL) as cluster, Client(cluster) as client:
                # dask gives some workers up for good: then the next kills are those of another cluster
                while len(rows) < wanted and has_two(client):
                    trainer, passes, delay = TRAINERS[len(rows) % len(TRAINERS)], rng.randrange(1, ROUNDS), rng.uniform(0.0, 0.25)
                    killed: list[int] = []
                    timers: list[threading.Timer] = []
                    begun, before = time.perf_counter(), again.count
                    callback = killer(cluster, passes, delay, rng.randrange(2), killed, timers)
                    found = digest(fit(model(trainer, callbacks=callback), shards, client=client, every=options.every))
                    for timer in timers:
                        timer.cancel()  # a run that was over before it counts for nothing
                        timer.join()
                    if not killed:
                        continue
                    same = "same" if found == expected[trainer] else "DIFFERENT"
                    took = time.perf_counter() - begun
                    rows.append([len(rows) + 1, trainer, passes, f"{delay:.3f}", same, again.count - before, f"{took:.1f}"])
                    print(*rows[-1], flush=True)
    print(table(["kill", "trainer", "after round", "s later", "bits", "submitted again", "wall s"], rows))
    different = sum(row[4] != "same" for row in rows)
    print(f"{len(rows)} kills, {different} different, {wanted - len(rows)} lost")
    raise SystemExit(bool(different))


class Counting(logging.Handler):
    """How many rounds were submitted again."""

    count = 0

    def emit(self, record: logging.LogRecord) -> None:
        """One more."""
        self.count += 1


if __name__ == "__main__":
    main()
