"""Threads: the same bits for any number of them, at fit and predict, and the global lock is free while compiled code runs."""

import sys
import threading
import time
from typing import Any

import numpy as np
import pytest
from chain_listing import LABELS, iob2_valid, random_corpus

from structpred.errors import InfeasibleError, ParameterError
from structpred.models import ChainLabeler

JOBS = (1, 2, 8)
X, Y = random_corpus(0, 60, LABELS, iob2_valid)
NEW = random_corpus(1, 50, LABELS, iob2_valid, longest=6)[0]


@pytest.mark.mostly_slow
@pytest.mark.parametrize("constraints", [None, "iob2"])
@pytest.mark.parametrize("trainer", ["bcfw", "sgd", "mira", "perceptron", "oeg", "lbfgs"])
def test_training_gives_the_same_bits(trainer: str, constraints: str | None) -> None:
    """Weights, certificate and history with 1, 2 and 8 threads."""
    settings: dict[str, Any] = {"max_iter": 4, "check_every": 2, "constraints": constraints, "random_state": 3}
    models = [ChainLabeler(trainer, n_jobs=n, **settings).fit(X, Y) for n in JOBS]
    for other in models[1:]:
        assert other.coef_.tobytes() == models[0].coef_.tobytes()
        assert other.certificate_ == models[0].certificate_
        for a, b in zip(models[0].history_, other.history_, strict=True):
            assert {k: v for k, v in a.items() if "seconds" not in k} == {k: v for k, v in b.items() if "seconds" not in k}


@pytest.mark.parametrize("constraints", [None, "iob2"])
def test_predictions_are_the_same(constraints: str | None) -> None:
    """Labels of the best sequences with 1, 2 and 8 threads, also with fewer sentences than threads."""
    model = ChainLabeler(max_iter=3, constraints=constraints).fit(X, Y)
    for sentences in (NEW, NEW[:3], NEW[:1]):
        found = []
        for n in JOBS:
            model.n_jobs = n
            found.append([labels.tolist() for labels in model.predict(sentences)])
        assert found[0] == found[1] == found[2]
    model.n_jobs = 8
    assert model.predict([]) == []


def test_an_error_in_a_thread_names_the_sample() -> None:
    """What is impossible for one sentence is reported with its number, whichever thread had it."""
    model = ChainLabeler(max_iter=3, constraints="iob2", n_jobs=4).fit(X, Y)
    fixed = [[None] * len(x) for x in NEW]
    fixed[37][0] = "I-X"
    with pytest.raises(InfeasibleError, match="sample 37"):
        model.predict(NEW, fixed=fixed)


@pytest.mark.parametrize("n_jobs", [0, -2, 1.5, True, "2", 1025])
def test_bad_numbers_of_threads_are_refused(n_jobs: Any) -> None:
    """n_jobs is a whole number in 1..1024, or -1, or None."""
    with pytest.raises(ParameterError, match="n_jobs must be"):
        ChainLabeler(n_jobs=n_jobs).fit(X, Y)


def test_no_thread_is_left_behind() -> None:
    """After fit and predict there are as many threads as before."""
    before = threading.active_count()
    model = ChainLabeler("lbfgs", max_iter=2, n_jobs=8).fit(X, Y)
    model.predict(NEW)
    assert threading.active_count() == before


@pytest.mark.parametrize("what", ["decode", "sums", "segments"])
def test_the_lock_is_free_while_compiled_code_runs(what: str) -> None:
    """One long compiled call lets another thread run in between: with a switch interval of 1000 s nobody else would hand over."""
    from structpred.oracles.chain import ChainOracle
    from structpred.oracles.semimarkov import SemiMarkovOracle

    chain, length = (120_000, 20), 40_000
    rng = np.random.default_rng(0)
    calls: dict[str, Any] = {
        "decode": (ChainOracle().argmax, ChainOracle().n_parts, chain),
        "sums": (ChainOracle().marginals, ChainOracle().n_parts, (30_000, 20)),
        "segments": (SemiMarkovOracle().argmax, SemiMarkovOracle().n_parts, (length, 10, 5)),
    }
    call, size, shape = calls[what]
    small = (3, *shape[1:])
    call(np.zeros(size(small)), small)  # compiled or loaded before the clock matters
    theta = rng.normal(size=size(shape))
    running, ticks = threading.Event(), 0
    stop = threading.Event()

    def count() -> None:
        nonlocal ticks
        running.set()
        while not stop.is_set():
            ticks += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    interval = sys.getswitchinterval()
    try:
        thread.start()
        running.wait()
        sys.setswitchinterval(1000.0)
        before = ticks
        call(theta, shape)
        during = ticks - before
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        thread.join()
    assert during > 20
