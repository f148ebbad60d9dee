"""Training on shards by worker processes of this machine: ``python benchmarks/cluster.py [--quick] [--only PART ...]``.

bytes: what workers read from the store, write to it and get from each other, a round; CoNLL-2000, four shards, 2**16 rows.
growth: by how much the process of client and scheduler grows while the shards hold 1 GB.
speed: wall seconds of two workers beside one, in turns: exponentiated gradient and L-BFGS; CoNLL-2000, 60,000 and 300,000 of it.
rounds: to 10, 3, 1 and 0.1 % gap, for 8, 16 and 64 shards, and scores on the test set beside one machine's.
large: 1,000,000 resampled sentences: seconds, bytes, rounds, the largest memory of a worker, beside what smaller runs predict.

Wall time means something on a quiet machine alone. --quick takes small data: a check that everything runs, no measurement.
"""

import argparse
import os
import random
import resource
import tempfile
import time
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from measure import data_folder, machine, table, workers

PARTS = ("bytes", "growth", "speed", "rounds", "large")
C = 0.1
#: bytes a token: of a shard, with its objects; of what exponentiated gradient needs of the one shard that it begins with
PACKED, STATE = 216, 1740
#: MB of a worker without data
BASE = 300


def traffic(dask_worker: Any) -> dict[str, float]:
    """Of one worker, since it began."""
    from structpred.distributed.store import TRAFFIC

    return {
        "read": TRAFFIC["read"],
        "written": TRAFFIC["written"],
        "between workers": dask_worker.transfer_outgoing_bytes_total,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "cpu": time.process_time(),
    }


def total(client: Any) -> dict[str, float]:
    """Of all workers; the peak is the largest."""
    found = list(client.run(traffic).values())
    sums = {name: sum(one[name] for one in found) for name in found[0]}
    return {**sums, "peak": max(one["peak"] for one in found)}


def sentences(name: str = "train") -> list[str]:
    """CoNLL-2000, a text each."""
    import gzip

    with gzip.open(data_folder() / "conll2000" / f"{name}.txt.gz", "rt", encoding="utf-8") as file:
        return [text.strip() + "\n" for text in file.read().split("\n\n") if text.strip()]


def resampled(path: Path, n: int | None) -> int:
    """A file of n sentences drawn with replacement, or of all as they are; returns its tokens."""
    texts, rng, tokens = sentences(), random.Random(0), 0
    with path.open("w", encoding="utf-8") as file:
        for text in texts if n is None else (rng.choice(texts) for _ in range(n)):
            file.write(text + "\n")
            tokens += text.count("\n")
    return tokens


def labeler(trainer: Any, **settings: Any) -> Any:
    """The chunker of all tables."""
    from structpred.models import ChainLabeler

    return ChainLabeler(trainer, **{"C": C, "template": "crfsuite", "n_bits": 20, "check_every": 1, **settings})


def measure_bytes(folder: Path, quick: bool) -> str:
    """Megabytes a round, by what they are."""
    from structpred.distributed import Shards, fit

    path, rows = folder / "train.txt", []
    resampled(path, 400 if quick else None)
    shards = Shards.of_file(path, 4)
    with workers(2) as client:
        for name in ("oeg", "bcfw", "perceptron", "lbfgs"):
            seen: list[dict[str, float]] = []

            def look(row: Any, seen: list[dict[str, float]] = seen) -> None:
                seen.append(total(client))

            fit(labeler(name, n_bits=16, max_iter=6, callbacks=look), shards, client=client)
            last, before = seen[-1], seen[-2]
            rows.append([name, *(f"{(last[what] - before[what]) / 1e6:.1f}" for what in ("read", "written", "between workers"))])
    return table(["trainer, last round with its certificate", "MB read", "MB written", "MB between workers"], rows)


def numbers(seed: int, n: int) -> tuple[list[Any], list[list[str]]]:
    """A shard of dense features: 100 columns, 20 positions a sequence."""
    import numpy as np

    rng = np.random.default_rng(seed)
    X = [rng.random((20, 100)) for _ in range(n)]
    return X, [[f"L{int(value * 3)}" for value in x[:, 0]] for x in X]


def measure_growth(folder: Path, quick: bool) -> str:
    """The resident memory of this process, which runs client and scheduler, before and after."""
    from structpred.distributed import Shards, fit
    from structpred.models import ChainLabeler

    n = 100 if quick else 8000  # 16 kB a sequence, eight shards
    shards = Shards.of_functions([partial(numbers, k, n) for k in range(8)])
    with workers(2) as client:
        client.run(os.getpid)
        before = resident()
        fit(ChainLabeler("lbfgs", C=C, max_iter=5), shards, client=client)
        after, peak = resident(), total(client)["peak"]
    head = ["shards, MB", "client and scheduler grew by, MB", "largest worker, MB"]
    return table(head, [[f"{n * 8 * 16e3 / 1e6:.0f}", f"{(after - before) / 1e6:.1f}", f"{peak / 1e6:.0f}"]])


def resident() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def measure_speed(folder: Path, quick: bool) -> str:
    """Wall seconds of three rounds of exponentiated gradient, and of five iterations of L-BFGS, medians of turns."""
    from structpred.distributed import Shards, fit

    path, rows = folder / "train.txt", []
    after_oeg = {"oeg": (None, 2), "lbfgs": (2, -1)}  # between which rounds of the history
    alone = {"lbfgs, softmax margin": (0, -1)}
    small, large = (400, 400) if quick else (60_000, 300_000)
    runs = [(None, 4, {"max_iter": 8}, after_oeg), (small, 4, {"max_iter": 8}, after_oeg)]
    runs.append((large, 8, {"max_iter": 6, "surrogate": "soft_margin"}, alone))
    for n_sentences, K, settings, parts in runs[1:] if quick else runs:
        tokens, turns = resampled(path, n_sentences), 1 if quick else 2
        found: dict[int, list[list[float]]] = {1: [], 2: []}
        for _ in range(turns):
            for n, ends in found.items():
                with workers(n) as client:
                    model = fit(labeler("lbfgs", check_every=100, **settings), Shards.of_file(path, K), client=client)
                ends.append([row["seconds"] for row in model.history_])
        for name, (first, last) in parts.items():
            one, two = ([ends[last] - (0.0 if first is None else ends[first]) for ends in found[n]] for n in (1, 2))
            ratios = " ".join(f"{a / b:.2f}" for a, b in zip(one, two, strict=True))
            times = [f"{median(one):.1f}", f"{median(two):.1f}", f"{median(one) / median(two):.2f}", ratios]
            rows.append([f"{tokens:,}", name, *times])
            print(*rows[-1], flush=True)
    return table(["tokens", "part", "one worker, s", "two workers, s", "ratio", "of each turn"], rows)


def rounds_to(history: Any, share: float) -> str:
    """The first round whose gap is at most that share of the primal."""
    reached = (row["passes"] for row in history if row["gap"] is not None and row["gap"] <= share * row["primal"])
    return str(next(reached, "-"))


def measure_rounds(folder: Path, quick: bool) -> str:
    """Rounds to a gap, and F1."""
    from structpred.distributed import Shards, fit
    from structpred.evaluation import evaluate_sequences
    from structpred.io import read_columns

    path, test, rows = folder / "train.txt", folder / "test.txt", []
    resampled(path, 400 if quick else None)
    test.write_text("\n".join(sentences("test")[: 50 if quick else None]), encoding="utf-8")
    large = folder / "large.txt"
    resampled(large, 800 if quick else 100_000)
    corpus = read_columns(test)
    gold = corpus.labels()
    with workers(2) as client:
        runs = [
            ("oeg", path, 8, 15),
            ("lbfgs", path, 16, 40),
            ("lbfgs", path, 1, 40),
            ("oeg", large, 64, 30),
            ("lbfgs", large, 64, 40),
        ]
        for trainer, file, K, most in runs:
            model = labeler(trainer, max_iter=3 if quick else most, tol=0.001)
            begun = time.perf_counter()
            fit(model, Shards.of_file(file, K), client=client)
            f1 = evaluate_sequences(gold, model.predict(corpus)).f1
            gaps = [rounds_to(model.history_, share) for share in (0.1, 0.03, 0.01, 0.001)]
            duals = [row["dual"] for row in model.history_ if row["dual"] is not None]
            fell = sum(b < a for a, b in pairwise(duals)) if trainer == "oeg" else "-"
            rows.append([trainer, file.stem, K, *gaps, fell, f"{100 * f1:.2f}", f"{time.perf_counter() - begun:.0f}"])
            print(*rows[-1], flush=True)
    return table(["trainer", "data", "shards", "to 10 %", "3 %", "1 %", "0.1 %", "dual fell", "F1", "wall s"], rows)


class Run(NamedTuple):
    """seconds: before the first round, of a round of exponentiated gradient, of the start of L-BFGS with its first iteration, and
    of each one after it. peak: bytes of the largest worker.
    """

    tokens: int
    seconds: tuple[float, float, float, float]
    peak: float
    told: str


def one_run(folder: Path, n: int, K: int, most: int) -> Run:
    """On n resampled sentences: three rounds of exponentiated gradient, then L-BFGS up to `most` in all."""
    from structpred.distributed import Shards, fit

    path = folder / "train.txt"
    tokens = resampled(path, n)
    with workers(2, memory_limit="5.5GB") as client:
        seen: list[float] = []
        begun = time.perf_counter()

        def look(row: Any) -> None:
            seen.append(time.perf_counter() - begun)
            gap = f"gap {row['gap'] / row['primal']:.4f}" if row["gap"] else ""
            print(row["passes"], f"{seen[-1]:.0f} s", gap, f"largest worker {total(client)['peak'] / 1e6:.0f} MB", flush=True)

        model = fit(labeler("lbfgs", max_iter=most, tol=0.01, callbacks=look), Shards.of_file(path, K), client=client)
        end = total(client)
    one_round = (seen[2] - seen[0]) / 2
    sizes = ", ".join(f"{name} {end[name] / 1e9:.1f} GB" for name in ("read", "written", "between workers"))
    size = f"{n:,} sentences, {tokens:,} tokens, {K} shards, {len(seen)} rounds, {seen[-1]:.0f} s"
    seconds = seen[0] - one_round, one_round, seen[3] - seen[2], (seen[-1] - seen[3]) / (len(seen) - 4)
    return Run(tokens, seconds, end["peak"], f"{size}: {model.stop_reason_}, {model.certificate_}\n{sizes}")


def measure_large(folder: Path, quick: bool) -> str:
    """A million sentences, beside what runs on 2,000 and 100,000 predict of it: seconds that grow with the tokens, and others."""
    sizes = [(100, 6, 5), (200, 6, 5), (400, 6, 5)] if quick else [(2_000, 6, 8), (100_000, 6, 8), (1_000_000, 48, 45)]
    tiny, small, large = (one_run(folder, *size) for size in sizes)
    names = ["reading, building, first states", "a round of oeg", "start of lbfgs", "an iteration of lbfgs"]
    rows = []
    for name, a, b, c in zip(names, tiny.seconds, small.seconds, large.seconds, strict=True):
        predicted = a + (b - a) * (large.tokens - tiny.tokens) / (small.tokens - tiny.tokens)
        per_token = 1e6 * 2 * (b - a) / (small.tokens - tiny.tokens)
        rows.append([f"{name}, s", f"{c:.1f}", f"{predicted:.1f}", f"{c / predicted:.2f}", f"{per_token:.2f}"])
    memory = (large.tokens * PACKED / 2 + large.tokens / sizes[-1][1] * STATE) / 1e6 + BASE
    rows.append(["largest worker, MB", f"{large.peak / 1e6:.0f}", f"{memory:.0f}", f"{large.peak / 1e6 / memory:.2f}", "-"])
    head = ["part", "measured", "predicted", "ratio", "us of a core, a token"]
    return "\n".join([run.told for run in (tiny, small, large)]) + "\n" + table(head, rows)


def main() -> None:
    """The parts, one after another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    print(machine(), flush=True)
    for part in options.only:
        with tempfile.TemporaryDirectory(prefix="structpred-bench-") as folder:
            print(f"\n{part}\n", flush=True)
            print(globals()[f"measure_{part}"](Path(folder), options.quick), flush=True)


if __name__ == "__main__":
    main()
