"""One pass over ten thousand to a million sentences: CPU time and peak memory, ``python benchmarks/scaling.py [--quick]``.

The sentences are synthetic: drawn with replacement from the training part of CoNLL-2000, with three words of a hundred replaced
by made-up ones, ever new, so that the set of features grows with the data as it does in real text. Scores on such data mean
little; time and memory are what is measured. They come from a generator and are never held together: `ChainLabeler.fit_stream`
reads them in batches, template="crfsuite" with n_bits=20 hashes the features, and the trainer is sgd. Each size runs in a process
of its own. "training" is all that fit_stream does, less what the generator alone takes; it holds a fixed part, for weights of
2**20 features. The picture is out/scaling.png.

--axes takes random sequences with many labels, then with many features, instead: microseconds a token of the first pass of sgd,
and how many bytes a feature the peak grows by in training. Ten million features take some 4 GB.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from measure import ROOT, Stopwatch, data_folder, in_child, machine, table, verdict

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
QUICK = (1000, 2000, 3000, 5000, 10_000)
REPLACED, MEMORY_LIMIT_MB = 0.03, 2048
Sentence = tuple[list[tuple[str, str]], list[str]]


def sentences(corpus: Any, n: int, seed: int = 0) -> Iterator[Sentence]:
    """n sentences as rows (word, part of speech) with their chunk labels; the same ones for the same seed."""
    rows = [[row[:2] for row in sentence] for sentence in corpus.sentences()]
    labels, lengths, rng = corpus.labels(), corpus.lengths, np.random.default_rng(seed)
    for first in range(0, n, 4096):
        picks = rng.integers(len(rows), size=min(4096, n - first))
        new = rng.random((len(picks), int(lengths.max()))) < REPLACED
        names = iter(rng.integers(1 << 62, size=int(new.sum())).tolist())
        for pick, places in zip(picks.tolist(), new, strict=True):
            sentence = rows[pick]
            if places[: len(sentence)].any():
                sentence = list(sentence)
                for t in np.flatnonzero(places[: len(sentence)]).tolist():
                    sentence[t] = (f"new{next(names) % n}", sentence[t][1])
            yield sentence, labels[pick]


def generate(watch: Stopwatch, train_file: str, n: int) -> dict[str, Any]:
    """The generator alone: its CPU time, and how many tokens and distinct words there are."""
    from structpred.io import read_columns

    corpus = read_columns(train_file)
    with watch("generator"):
        tokens = sum(len(rows) for rows, _ in sentences(corpus, n))
    words = len({word for rows, _ in sentences(corpus, n) for word, _ in rows})
    return {"tokens": tokens, "words": words}


def train(watch: Stopwatch, train_file: str, test_file: str, n: int) -> dict[str, Any]:
    """One pass of sgd over the stream; the score on the test part as a check that it learns."""
    from structpred.evaluation import evaluate_sequences
    from structpred.io import read_columns
    from structpred.models import ChainLabeler

    corpus, test = read_columns(train_file), read_columns(test_file)
    classes = corpus.vocabularies[-1]
    with watch("compile"):  # or load what is compiled
        ChainLabeler("sgd", template="crfsuite", n_bits=10).fit_stream(lambda: sentences(corpus, 64), classes, n_total=64)
    labeler = ChainLabeler("sgd", C=0.3, template="crfsuite", n_bits=20)
    with watch("fit"):
        labeler.fit_stream(lambda: sentences(corpus, n), classes, n_total=n)
    predicted = [labels.tolist() for labels in labeler.predict(test)]
    return {"f1": evaluate_sequences(test.labels(), predicted).f1, "seen": labeler.history_[-1]["oracle_calls"]}


def random_sequences(watch: Stopwatch, n_features: int, n_labels: int, n_tokens: int) -> dict[str, Any]:
    """Sequences of 25 tokens with fifteen of the features each and random labels: one pass of sgd, twice, and its memory."""
    import resource

    from structpred.data.sequences import PackedSequences
    from structpred.features.sequences import SequenceFeatures
    from structpred.objectives.margin import MarginRescaling
    from structpred.objectives.part_losses import Hamming
    from structpred.oracles.chain import ChainOracle
    from structpred.task.task import Task
    from structpred.trainers.loop import RunSettings, train
    from structpred.trainers.problem import Problem
    from structpred.trainers.sgd import SGD

    def problem(n_features: int, n_tokens: int) -> Problem:
        rng, n = np.random.default_rng(0), n_tokens // 25
        ids, ends = rng.integers(0, n_features, 15 * n_tokens, dtype=np.int32), np.arange(0, 15 * n_tokens + 1, 15)
        data = PackedSequences(ends, ids, np.ones(len(ids), np.float32), np.arange(0, n_tokens + 1, 25), n_features)
        labels = [rng.integers(0, n_labels, 25) for _ in range(n)]
        task = Task(SequenceFeatures(data, n_labels), ChainOracle(), labels, [(25, n_labels)] * n, Hamming())
        return Problem(task, MarginRescaling(), 1.0 / n)

    train(problem(10, 100), SGD(), RunSettings(max_iter=1))  # kernels are loaded
    given = problem(n_features, n_tokens)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    history = train(given, SGD(), RunSettings(max_iter=2)).history
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"us": 1e6 * history[0]["cpu_seconds"] / n_tokens, "bytes": 1024 * grown / n_features}


def print_axes() -> None:
    """Time against labels, memory against features."""
    jobs = [(10_000, 23, 50_000), (10_000, 100, 50_000), (10_000, 400, 10_000), (1_000_000, 23, 50_000), (10_000_000, 23, 50_000)]
    found = [in_child("scaling:random_sequences", n_features=f, n_labels=k, n_tokens=n) for f, k, n in jobs]
    print(f"\n{machine()}\n")
    cells = [
        [f"{f:,}", k, f"{r['us']:.1f}", f"{r['bytes']:.0f}" if f >= 1_000_000 else ""]
        for (f, k, _), r in zip(jobs, found, strict=True)
    ]
    print(table(["features", "labels", "us a token, first pass", "bytes a feature"], cells), "\n")
    for row, (labels, limit) in zip(found[1:3], ((100, 8.0), (400, 80.0)), strict=True):
        print(verdict(f"{labels} labels: at most {limit:g} us a token", row["us"] <= limit, f"{row['us']:.1f}"))
    print(verdict("10,000,000 features: at most 200 bytes each", found[-1]["bytes"] <= 200, f"{found[-1]['bytes']:.0f}"))


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """CPU time and memory against the number of sentences."""
    from structpred.report import figures

    n = np.array([row["n"] for row in rows], dtype=np.float64)
    figure = figures.new_figure(9.0, 4.0)
    left, right = figure.subplots(1, 2)
    seconds = np.array([row["training"] for row in rows])
    left.loglog(n, seconds, "o-", color=figures.BLUE, label="measured")
    slope = (seconds[-1] - seconds[0]) / (n[-1] - n[0])
    line = np.geomspace(n[0], n[-1], 100)
    left.loglog(
        line,
        seconds[0] + slope * (line - n[0]),
        "--",
        color=figures.GREY,
        label=f"straight line, {1e6 * slope:.0f} us a sentence",
    )
    left.set_ylabel("CPU seconds of training, one pass")
    left.legend(frameon=False)
    right.semilogx(n, [row["peak_mb"] for row in rows], "o-", color=figures.ORANGE)
    right.axhline(MEMORY_LIMIT_MB, color=figures.WRONG, linestyle=":")
    right.text(n[0], MEMORY_LIMIT_MB, "2 GB", color=figures.WRONG, va="bottom")
    right.set_ylim(0, 1.15 * MEMORY_LIMIT_MB)
    right.set_ylabel("peak memory of the process (MB)")
    for ax in (left, right):
        ax.set_xlabel("sentences")
        ax.grid(alpha=0.3)
    figure.suptitle("Training on a stream: synthetic sentences, resampled from CoNLL-2000")
    path.parent.mkdir(exist_ok=True)
    figures.save(figure, path)


def run(sizes: tuple[int, ...], path: Path) -> None:
    """All sizes, the table, the picture and the verdicts."""
    data, rows = data_folder() / "conll2000", []
    files = {"train_file": str(data / "train.txt.gz"), "test_file": str(data / "test.txt.gz")}
    in_child("scaling:train", **files, n=64)  # what numba compiles is kept
    for n in sizes:
        made = in_child("scaling:generate", train_file=files["train_file"], n=n)
        row = in_child("scaling:train", **files, n=n)
        assert row["seen"] == n
        generator = made["seconds"]["generator"]
        training = row["seconds"]["fit"] - generator
        rows.append({**row, **{k: made[k] for k in ("tokens", "words")}, "n": n, "generator": generator, "training": training})
        print(f"{n} sentences: {row['cpu_seconds']:.1f} CPU s in all", flush=True)
    print(f"\n{machine()}\n")
    head = ["sentences", "tokens", "distinct words", "training (CPU s)", "a sentence (us)", "generator (s)", "peak MB", "test F1"]
    cells = [
        [f"{r['n']:,}", f"{r['tokens']:,}", f"{r['words']:,}", f"{r['training']:.2f}", f"{1e6 * r['training'] / r['n']:.0f}",
         f"{r['generator']:.2f}", f"{r['peak_mb']:.0f}", f"{100 * r['f1']:.2f}"]
        for r in rows
    ]  # fmt: skip
    print(table(head, cells))
    draw(rows, path)
    print(f"\n{path}\n")
    more = [(b["training"] - a["training"]) / (b["n"] - a["n"]) for a, b in zip(rows[::2], rows[2::2], strict=False)]
    print(verdict("peak memory below 2 GB", rows[-1]["peak_mb"] < MEMORY_LIMIT_MB, f"{rows[-1]['peak_mb']:.0f} MB"))
    for a, b, cost in zip(rows[::2], rows[2::2], more, strict=False):
        print(f"each further sentence from {a['n']:,} to {b['n']:,}: {1e6 * cost:.0f} us")
    growth = more[-1] / more[0]
    print(
        verdict(
            "a further sentence costs as much at the end as at the beginning, to 25 %",
            abs(growth - 1) <= 0.25,
            f"{growth:.2f} times",
        )
    )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to 10,000 sentences: a check that everything runs")
    parser.add_argument("--axes", action="store_true", help="many labels and many features instead of many sentences")
    options = parser.parse_args()
    if options.axes:
        print_axes()
        return
    run(QUICK if options.quick else SIZES, ROOT / "out" / ("scaling_quick.png" if options.quick else "scaling.png"))


if __name__ == "__main__":
    main()
