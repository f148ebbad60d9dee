"""How far from the limits of the machine: ``python benchmarks/limits.py``. One thread, CPU seconds of a pass.

A pass has two bounds. Reading: a kernel that does nothing but add up the weights that the pass reads, in the pass's own
order, so that caches and memory serve it as they serve the pass. Operations: the additions and maxima of its scores and of its
search, at the rate of float64 vectors that stay in the first cache. The larger one is its limit; the last column says how many
times as long the pass takes. Reading the corpus itself, and what an update writes, are left out: the limits are on the low side.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from measure import Stopwatch, data_folder, in_child, machine, table
from numba import njit

ROUNDS = 5
CHAIN_TRAINERS = ("sgd", "perceptron", "mira", "bcfw", "corrective")


class Work(NamedTuple):
    """One pass: seconds for reading the weights alone, additions and maxima, seconds that it takes."""

    name: str
    reading: float
    operations: float
    seconds: float


@njit(cache=True, nogil=True)
def _gather_rows(rows: Any, which: Any) -> Any:
    total = np.zeros(rows.shape[1], rows.dtype)
    for k in which:
        for j in range(rows.shape[1]):
            total[j] += rows[k, j]
    return total


@njit(cache=True, nogil=True)
def _gather_numbers(numbers: Any, which: Any) -> Any:
    total = np.zeros(8, numbers.dtype)
    for start in range(0, len(which) - 7, 8):
        for j in range(8):
            total[j] += numbers[which[start + j]]
    return total


@njit(cache=True, nogil=True)
def _add_and_compare(best: Any, scores: Any, times: int) -> None:
    for _ in range(times):
        for row in range(scores.shape[0]):
            for j in range(scores.shape[1]):
                reached = best[0, j] + scores[row, j]
                best[1, j] = reached if reached > best[1, j] else best[1, j]


def operations_a_second(seed: int = 0, times: int = 20_000) -> float:
    """Additions with maxima of float64 vectors of 64 in the first cache."""
    best, scores = np.zeros((2, 64)), np.random.default_rng(seed).random((24, 64))
    return 2.0 * times * scores.size / least(lambda: _add_and_compare(best, scores, times))


def least(call: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """CPU seconds of the fastest of several calls, after one that compiles."""
    call()
    return min(_timed(call) for _ in range(rounds))


def _timed(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def chains(watch: Stopwatch, trainers: list[str], rounds: int) -> dict[str, Any]:
    """A pass of chain trainers on CoNLL-2000, and decoding of packed sentences."""
    from structpred.io import read_columns
    from structpred.models import ChainLabeler
    from structpred.models.chain.decoding import decode_chains

    corpus, test = (read_columns(str(data_folder() / "conll2000" / f"{part}.txt.gz")) for part in ("train", "test"))
    seconds: dict[str, list[float]] = {trainer: [] for trainer in trainers}
    for trainer in trainers * rounds:
        model = ChainLabeler(trainer, 0.5, 6, template="crfsuite", check_every=3, random_state=0).fit(corpus, corpus.labels())
        third, last = (row["cpu_seconds"] for row in model.history_[-2:])
        seconds[trainer].append((last - third) / 3)
    n_labels, packed, tests = len(model.classes_), model.input_.transform(corpus), model.input_.transform(test)
    works = [_chain_work(f"a pass of {trainer}", packed, n_labels, model.coef_, median(seconds[trainer])) for trainer in trainers]
    decoding = least(lambda: decode_chains(tests, n_labels, model.coef_))
    return {"works": [*works, _chain_work("decoding the packed test set", tests, n_labels, model.coef_, decoding)]}


def _chain_work(name: str, data: Any, n_labels: int, w: Any, seconds: float) -> Work:
    rows = w.reshape(-1, -(-n_labels // 8) * 8)
    operations = len(data.indices) * n_labels + 2.0 * data.n_tokens * n_labels**2
    return Work(f"{name}, CoNLL-2000", least(lambda: _gather_rows(rows, data.indices)), operations, seconds)


def sparse_rows(watch: Stopwatch, names: list[str], rounds: int) -> dict[str, Any]:
    """A pass of dual coordinate ascent: each number is read for the product and again for the step."""
    from linear import rows_of

    from structpred.models import LinearClassifier

    works = []
    for name in names:
        X, y = rows_of(name)

        def fit(n: int, X: Any = X, y: Any = y) -> float:
            model = LinearClassifier(fit_intercept=False, tol=0.0, max_iter=n, check_every=n)
            return least(lambda: model.fit(X, y), rounds)

        w, seconds = np.ones(X.shape[1]), (fit(60) - fit(20)) / 40
        works.append(Work(f"a pass of sdca, {name}", 2.0 * least(lambda: _gather_numbers(w, X.indices)), 4.0 * X.nnz, seconds))  # noqa: B023
    return {"works": works}


def trees(watch: Stopwatch, rounds: int, sentences: int = 2_000) -> dict[str, Any]:
    """Parsing with arcs alone: a weight of the hashed table for each arc and template."""
    from structpred.io import read_treebank
    from structpred.models import DependencyParser

    train, gold = (
        read_treebank(str(data_folder() / "ud_english_ewt" / f"en_ewt-ud-{part}.conllu.gz")) for part in ("train", "test")
    )
    parser = DependencyParser("mira", max_iter=3, random_state=0).fit(train.take(range(sentences)))
    parser.relations_ = None  # arcs alone
    seconds = least(lambda: parser.predict(gold), rounds)
    lengths = np.array([len(sentence.forms) for sentence in gold.sentences()])
    features = int((lengths**2).sum()) * len(parser.templates_)
    which = np.random.default_rng(0).integers(0, len(parser.coef_), features)
    reading = least(lambda: _gather_numbers(parser.coef_, which))
    return {"works": [Work("parsing the test set of EWT, arcs alone", reading, float(features), seconds)]}


def line(work: Work, rate: float) -> list[str]:
    """A row of the table."""
    bounds = {"reading": work.reading, "operations": work.operations / rate}
    limit = max(bounds, key=lambda kind: bounds[kind])
    return [
        work.name,
        *(f"{seconds:.4f}" for seconds in (work.seconds, *bounds.values())),
        limit,
        f"{work.seconds / bounds[limit]:.1f}",
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    rate = operations_a_second()
    print(f"Limits ({machine()}), one thread, CPU seconds; {rate / 1e9:.1f} thousand million additions and maxima a second\n")
    works = [
        *in_child("limits:chains", trainers=list(CHAIN_TRAINERS), rounds=rounds)["works"],
        *in_child("limits:sparse_rows", names=["a9a", "w8a"], rounds=rounds)["works"],
        *in_child("limits:trees", rounds=rounds)["works"],
    ]
    head = ("work", "seconds", "reading at least", "operations at least", "limit", "times the limit")
    print(table(head, [line(Work(*row), rate) for row in works]))


if __name__ == "__main__":
    main()
