"""Threads: ``python benchmarks/threads.py``. Two threads against one, and how much of the interpreter is left for others.

Prediction and the batch objectives (the violations of all sentences, the log loss with its gradient) on CoNLL-2000, the general
steps of features and oracles that know nothing of each other (multi-label fields of yeast, grids of snakes, chains over
part features), wall clock, one and two threads in turn so that other programs disturb both alike; medians of rounds. Ratios
of wall times only mean something on an idle machine: so the table also has a calibration, the same compiled work in two
threads by hand, which is what
the machine could give at that moment; and the longest chain of work in CPU seconds (the caller's own, plus that of the busiest
thread wherever threads run), which is what the wall clock would show with a processor for each thread. The results must
not depend on the number of threads.

Then a counter in a thread of its own runs free, during fit and during predict: it should keep half of its rate. The fit itself
waits for the counter after each of its short compiled calls, for as long as the interpreter's switch interval (5 ms), so next to
a thread that never rests it is much slower; the last column says how much.
"""

import argparse
import hashlib
import threading
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from measure import Stopwatch, data_folder, in_child, machine, table, verdict

ROUNDS = 9
GOAL = 1.6
#: what the chains over part features are called
CHAINS = "chains of parts"


def timed(call: Callable[[], Any]) -> float:
    """Wall seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def speed(watch: Stopwatch, train_file: str, rounds: int) -> dict[str, Any]:
    """Wall seconds with one and with two threads, in turn, and a digest of every result."""
    import numpy as np

    from structpred.features.sequences import SequenceFeatures
    from structpred.io import read_columns
    from structpred.models import ChainLabeler
    from structpred.models.chain.decoding import decode_chains
    from structpred.objectives.part_losses import Hamming
    from structpred.oracles.chain import ChainOracle
    from structpred.task.task import Task

    corpus = read_columns(train_file)
    model = ChainLabeler("sgd", C=0.3, max_iter=3, template="crfsuite").fit(corpus, corpus.labels())
    data, n_labels, w = model.input_.transform(corpus), len(model.classes_), model.coef_
    codes = {label: k for k, label in enumerate(model.classes_.tolist())}
    gold = [np.array([codes[label] for label in labels]) for labels in corpus.labels()]
    shapes = [(n, n_labels) for n in data.lengths.tolist()]
    tasks = {n: Task(SequenceFeatures(data, n_labels), ChainOracle(), gold, shapes, Hamming(), n_jobs=n) for n in (1, 2)}
    shares = np.full(len(gold), 1.0 / len(gold))
    general = {name: {n: make(n) for n in (1, 2)} for name, make in general_tasks().items()}
    points = {name: np.random.default_rng(0).normal(scale=0.1, size=both[1].dim) for name, both in general.items()}
    calls: dict[str, Callable[[int], Any]] = {
        "prediction (decode packed sentences)": lambda n: decode_chains(data, n_labels, w, n_jobs=n),
        "violations of all sentences": lambda n: tasks[n].violations(w, 1.0),
        "log losses and their gradient": lambda n: tasks[n].log_losses(w, shares),
        "calibration: two halves by hand": lambda n: halves(data, n_labels, w, n),
    }
    for name, both in general.items():
        calls[f"violations, {name}"] = lambda n, both=both, v=points[name]: both[n].violations(v, 1.0)
        calls[f"bulk terms, {name}"] = lambda n, both=both, v=points[name]: both[n].terms(v, np.arange(len(both[n])))[:3]
    both, v = general[CHAINS], points[CHAINS]
    calls[f"log losses, {CHAINS}"] = lambda n: both[n].log_losses(v, np.ones(len(both[n])))
    calls[f"decoding, {CHAINS}"] = lambda n: both[n].inference.decode(v)
    found = {}
    for name, call in calls.items():
        digests = [digest(call(n)) for n in (1, 2)]  # compiled now
        seconds: dict[int, list[float]] = {1: [], 2: []}
        for k in range(rounds):
            for n in (1, 2) if k % 2 else (2, 1):
                seconds[n].append(timed(lambda call=call, n=n: call(n)))
        paths = {n: [longest_chain(lambda call=call, n=n: call(n)) for _ in range(rounds)] for n in (1, 2)}
        found[name] = {"one": seconds[1], "two": seconds[2], "same": digests[0] == digests[1], "paths": [paths[1], paths[2]]}
    return {"found": found}


def general_tasks() -> dict[str, Callable[[int], Any]]:
    """name -> a task with this number of threads, whose steps are welded to nothing."""
    import numpy as np
    from snakes import graph, images

    from structpred.features.graphs import GraphFeatures
    from structpred.features.parts import PartFeatures
    from structpred.io.multilabel.mulan import read_mulan
    from structpred.objectives.part_losses import Hamming
    from structpred.oracles.chain import ChainOracle
    from structpred.oracles.dual_mrf import DualMRF
    from structpred.oracles.mrf import graph_shape
    from structpred.oracles.mrf_enumeration import EnumerationMRF
    from structpred.task.task import Task

    folder = data_folder() / "multilabel_yeast"
    data = read_mulan(str(folder / "yeast-train.arff.gz"), str(folder / "yeast.xml.gz"))
    wanted = [np.asarray(row, dtype=np.int64) for row in np.asarray(data.Y)]
    n_labels, n = len(wanted[0]), len(wanted)
    shape = graph_shape(n_labels, 2, [(i, j) for i in range(n_labels) for j in range(i + 1, n_labels)])
    n_edges = (len(shape) - 2) // 2
    lists = [np.zeros(n_labels, np.int64)] * n, [np.arange(n_labels)] * n
    graphs = GraphFeatures(
        [shape] * n, data.X, *lists, n_node_types=n_labels, n_edge_types=n_edges, edge_type=[np.arange(n_edges)] * n, n_states=2
    )
    rng = np.random.default_rng(0)
    rows = PartFeatures([rng.normal(size=(20 * 6 + 36, 30)) for _ in range(1000)])
    labels = [rng.integers(0, 6, 20) for _ in range(1000)]
    pictures, own = images("train", 100)
    n_colours = 1 + max(int(picture.max()) for picture in pictures)
    nodes, edges, edge_rows = zip(*(graph(picture, n_colours, True) for picture in pictures), strict=True)
    grids = [graph_shape(len(a), 11, b) for a, b in zip(nodes, edges, strict=True)]
    snakes = GraphFeatures(grids, nodes, edge_rows=edge_rows, n_states=11)
    return {
        "images of snakes": lambda jobs: Task(snakes, DualMRF(), own, grids, Hamming(), n_jobs=jobs),
        "labels of yeast": lambda jobs: Task(graphs, EnumerationMRF(), wanted, [shape] * n, Hamming(), n_jobs=jobs),
        CHAINS: lambda jobs: Task(rows, ChainOracle(), labels, [(20, 6)] * 1000, Hamming(), n_jobs=jobs),
    }


def longest_chain(call: Callable[[], Any]) -> float:
    """CPU seconds of the calling thread, plus those of the busiest thread of each group of threads that it waits for."""
    from structpred.fused import chains
    from structpred.runtime import threads
    from structpred.task import inference, steps

    waited = 0.0

    def run_ranges(work: Callable[[int, int], None], ranges: Any, n_jobs: int) -> None:
        nonlocal waited
        used: dict[int, float] = {}

        def measured(start: int, stop: int) -> None:
            before = time.thread_time()
            work(start, stop)
            used[threading.get_ident()] = used.get(threading.get_ident(), 0.0) + time.thread_time() - before

        threads.run_ranges(measured, ranges, n_jobs)
        waited += max((s for ident, s in used.items() if ident != threading.get_ident()), default=0.0)

    kept = chains.run_ranges
    chains.run_ranges = inference.run_ranges = steps.run_ranges = run_ranges
    before = time.thread_time()
    try:
        call()
    finally:
        chains.run_ranges = inference.run_ranges = steps.run_ranges = kept
    return time.thread_time() - before + waited


def halves(data: Any, n_labels: int, w: Any, n: int) -> Any:
    """Decode two halves of the sentences in n plain threads that share nothing."""
    import numpy as np

    from structpred.models.chain.decoding import decode_chains

    cut = int(np.searchsorted(data.offsets, data.n_tokens // 2))
    parts, out = [data.take(0, cut), data.take(cut, len(data))], [None, None]

    def run(k: int) -> None:
        out[k] = decode_chains(parts[k], n_labels, w)

    threads = [threading.Thread(target=run, args=(k,)) for k in (0, 1)]
    for k, thread in enumerate(threads):
        if n == 1:
            run(k)
        else:
            thread.start()
    if n == 2:
        for thread in threads:
            thread.join()
    return np.concatenate(out)


def digest(result: Any) -> str:
    """A digest of an array or a number, or of several."""
    import numpy as np

    arrays = result if isinstance(result, tuple) else (result,)
    return hashlib.sha256(b"".join(np.asarray(a).tobytes() for a in arrays)).hexdigest()


class Counter(threading.Thread):
    """Counts in pure Python until told to stop."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.count, self.on = 0, True

    def run(self) -> None:
        """Count."""
        while self.on:
            self.count += 1

    def rate(self, call: Callable[[], Any]) -> float:
        """Counts a second while `call` runs."""
        before, start = self.count, time.perf_counter()
        call()
        return (self.count - before) / (time.perf_counter() - start)


def counting(watch: Stopwatch, train_file: str, trainer: str, jobs: int, rounds: int) -> dict[str, Any]:
    """The counter's rate: free (the main thread sleeps), during fit, during predict, in turn."""
    from structpred.io import read_columns
    from structpred.models import ChainLabeler

    corpus = read_columns(train_file)
    packed_from = corpus
    if trainer != "lbfgs":  # trainers that go from sentence to sentence wait for the counter after each compiled call
        corpus = corpus.take(0, 300)
    labels = corpus.labels()
    model = ChainLabeler(trainer, C=0.3, max_iter=2, template="crfsuite", n_jobs=jobs).fit(corpus, labels)
    packed = model.input_.transform(packed_from)
    from structpred.models.chain.decoding import decode_chains

    def decode() -> None:
        for _ in range(5):
            decode_chains(packed, len(model.classes_), model.coef_, n_jobs=jobs)

    alone = timed(lambda: model.fit(corpus, labels))
    counter = Counter()
    counter.start()
    rates: dict[str, list[float]] = {"free": [], "fit": [], "predict": [], "slower": []}
    for _ in range(rounds):
        rates["free"].append(counter.rate(lambda: time.sleep(0.7)))
        start = time.perf_counter()
        rates["fit"].append(counter.rate(lambda: model.fit(corpus, labels)))
        rates["slower"].append((time.perf_counter() - start) / alone)
        rates["predict"].append(counter.rate(decode))
    counter.on = False
    return {name: median(values) for name, values in rates.items()}


def main() -> None:
    """Print the tables and the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    rounds = parser.parse_args().rounds
    train_file = str(data_folder() / "conll2000" / "train.txt.gz")
    found = in_child("threads:speed", train_file=train_file, rounds=rounds)["found"]
    rows, verdicts = [], []
    for name, f in found.items():
        ratio = median(f["one"]) / median(f["two"])
        best = min(f["one"]) / min(f["two"])
        chain = median(f["paths"][0]) / median(f["paths"][1])
        figures = [f"{1000 * median(f[k]):.0f}" for k in ("one", "two")]
        by_hand = name.startswith("calibration")
        rows.append(
            [name, *figures, f"{ratio:.2f}", f"{best:.2f}", "-" if by_hand else f"{chain:.2f}", "yes" if f["same"] else "NO"]
        )
        if not name.startswith("calibration"):
            verdicts.append(
                verdict(f"{name}: two threads {GOAL} times one", max(ratio, best) >= GOAL, f"{ratio:.2f}, {best:.2f}")
            )
            verdicts.append(verdict(f"{name}: identical results", f["same"], "to the last bit" if f["same"] else "they differ"))
    print(f"\nOne and two threads ({machine()})\n")
    print(table(["work", "one, ms", "two, ms", "ratio of medians", "ratio of minima", "longest chain", "same bits"], rows))
    rows = []
    for trainer, jobs in (("sgd", 1), ("bcfw", 1), ("oeg", 1), ("lbfgs", 1)):
        rates = in_child("threads:counting", train_file=train_file, trainer=trainer, jobs=jobs, rounds=3)
        shares = [rates[k] / rates["free"] for k in ("fit", "predict")]
        rows.append(
            [trainer, jobs, f"{rates['free'] / 1e6:.1f}", *(f"{100 * s:.0f} %" for s in shares), f"{rates['slower']:.1f}"]
        )
        figure = f"fit {100 * shares[0]:.0f} %, predict {100 * shares[1]:.0f} %"
        verdicts.append(verdict(f"{trainer}: a counter keeps half of its rate", min(shares) >= 0.5, figure))
    print("\nA counting thread next to the work\n")
    print(
        table(["trainer", "threads", "free, millions a second", "during fit", "during predict", "fit takes times as long"], rows)
    )
    print()
    print("\n".join(verdicts))


if __name__ == "__main__":
    main()
