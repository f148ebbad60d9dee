"""Training over shards with an expensive oracle of one's own: two worker processes against one, in turns.

    python benchmarks/cluster_own_oracle.py [--milliseconds 5] [--instances 400] [--rounds 2] [--waiting]

The oracle is pure Python and works for some milliseconds a call; with --waiting it waits as long instead, as for a solver
elsewhere, so that other programs on the machine matter less. Seconds are those of the passes after the first: the start of
processes and the reading of shards are left out.
"""

import argparse
import time
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np
from measure import workers

from structpred import Instance, Oracle
from structpred.distributed import Shards, fit
from structpred.models import StructuredPredictor


class Slow(Oracle):
    """One label out of some, found by pure Python that takes its time. loops: how much it works; seconds: how long it waits."""

    def __init__(self, loops: int, seconds: float) -> None:
        self.loops, self.seconds = loops, seconds

    def n_parts(self, shape: Any) -> int:
        """As many as labels."""
        return int(shape[0])

    def argmax(self, scores: Any, shape: Any) -> Any:
        """The best label."""
        burn(self.loops)
        time.sleep(self.seconds)
        best = max(range(shape[0]), key=scores.tolist().__getitem__)
        return np.array([best], dtype=np.int64)

    def parts(self, labels: Any, shape: Any) -> Any:
        """The label itself."""
        return labels

    @staticmethod
    def example_shapes() -> Any:
        """Two small ones."""
        return [(2,), (3,)]


def burn(loops: int) -> float:
    """Work of about so many additions."""
    total = 0.0
    for k in range(loops):
        total += k * 0.5
    return total


def loops_of(milliseconds: float) -> int:
    """How much work takes so many milliseconds of CPU here."""
    begun = time.thread_time()
    burn(2_000_000)
    return int(2_000_000 * milliseconds / 1000 / (time.thread_time() - begun))


def instances(a: int, b: int) -> tuple[list[Instance], list[list[int]]]:
    """Instances a to b of a made-up set: five labels, 20 features."""
    X, y = [], []
    for i in range(a, b):
        rng = np.random.default_rng(i)
        label = int(rng.integers(5))
        rows = rng.normal(size=(5, 20))
        rows[label, :4] += 1.0
        X.append(Instance(rows, (5,)))
        y.append([label])
    return X, y


def seconds_of(trainer: str, oracle: Slow, shards: Shards, client: Any, passes: int) -> tuple[float, float]:
    """Seconds between the first pass and the last, and the gap in the end."""
    ends: list[float] = []
    model = StructuredPredictor(
        oracle,
        trainer=trainer,
        C=0.1,
        max_iter=passes,
        tol=0.0,
        check_every=passes,
        callbacks=lambda row: ends.append(time.perf_counter()),
    )
    fit(model, shards, client=client)
    return ends[-1] - ends[0], model.certificate_.gap or 0.0


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--milliseconds", type=float, default=5.0)
    parser.add_argument("--instances", type=int, default=400)
    parser.add_argument("--passes", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--waiting", action="store_true")
    asked = parser.parse_args()
    oracle = Slow(0, asked.milliseconds / 1000) if asked.waiting else Slow(loops_of(asked.milliseconds), 0.0)
    bounds = np.linspace(0, asked.instances, asked.shards + 1).astype(int).tolist()
    shards = Shards.of_functions([partial(instances, a, b) for a, b in pairwise(bounds)])
    with workers(1) as first, workers(2) as second:
        for trainer in ("n_slack", "one_slack", "bcfw"):
            runs = [
                [seconds_of(trainer, oracle, shards, client, asked.passes) for client in (first, second)]
                for _ in range(asked.rounds)
            ]
            alone, both = ([run[k][0] for run in runs] for k in range(2))
            ratio = median(a / b for a, b in zip(alone, both, strict=True))
            seconds = f"1 worker {min(alone):6.2f} s  2 workers {min(both):6.2f} s  {min(alone) / min(both):.2f} times"
            gaps = ", ".join(f"{gap:.4g}" for _, gap in runs[0])
            print(f"{trainer:<10} {seconds} (median of ratios {ratio:.2f}); gaps {gaps}", flush=True)


if __name__ == "__main__":
    main()
