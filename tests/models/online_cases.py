"""Data and models that the tests of training in pieces share."""

import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
from labeler_cases import SENTENCES

from structpred.models import ChainLabeler
from structpred.trainers.corrective import Corrective
from structpred.trainers.sgd import SGD

ONLINE = ["perceptron", "mira", "sgd", "pa", "arow"]
ALL = [*ONLINE, "bcfw", "oeg", "lbfgs", "owlqn", Corrective(), SGD(averaged=False)]
X = [[[f"w={w}", f"end={w[-1]}"] for w in words] for words in SENTENCES]
CLASSES = ["ADJ", "DET", "NOUN", "VERB"]


class Stopper:
    """A source that raises SIGINT in this process when it has given `after` pairs in all."""

    def __init__(self, x: list[Any], y: list[Any], after: int) -> None:
        self.pairs, self.left = list(zip(x, y, strict=True)), after

    def __call__(self) -> Iterator[tuple[Any, Any]]:
        for pair in self.pairs:
            self.left -= 1
            if self.left == 0:
                signal.raise_signal(signal.SIGINT)
            yield pair


def noisy(n: int, seed: int = 0) -> tuple[list[Any], list[Any]]:
    """n random sequences over strings whose labels no model gets all right: every pass changes something."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, n)
    return [[[f"w={k}" for k in rng.integers(0, 9, 2)] for _ in range(m)] for m in lengths], [
        rng.choice(["a", "b", "c"], m).tolist() for m in lengths
    ]


def model(trainer: Any, **settings: Any) -> ChainLabeler:
    """A small labeler with hashed features."""
    return ChainLabeler(trainer, C=0.7, n_bits=6, **settings)


def total(trainer: Any) -> dict[str, float]:
    """n_total where the trainer needs it."""
    return {"n_total": 40} if trainer == "sgd" or isinstance(trainer, SGD) else {}


def same(a: ChainLabeler, b: ChainLabeler) -> None:
    """Weights and certificate are equal to the last bit."""
    assert a.coef_.tobytes() == b.coef_.tobytes()
    assert (a.certificate_, a.n_iter_) == (b.certificate_, b.n_iter_)
