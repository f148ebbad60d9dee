"""Any bytes, given to the UAI readers: a model that holds together, or DataError."""

import random

import numpy as np
import pytest
from hostile_readers import FUZZ
from uai_text import format_uai

from structpred.core.fixed_scores import FORBIDDEN
from structpred.errors import DataError
from structpred.io.text import HeldBytes
from structpred.io.uai import read_uai, read_uai_evidence

_SEEDS = [
    b"MARKOV\n3\n2 3 2\n4\n1 0\n2 0 1\n2 2 1\n0\n\n2\n0.5 2\n6\n1 2 3 4 5 6\n6\n1 1 0 2 2 2\n1\n7\n",
    b"BAYES\n2\n2 2\n2\n1 0\n2 0 1\n2\n.4 .6\n4\n.1 .9 .5 .5\n",
    b"MARKOV 3 2 2 2 1 3 0 1 2 8 1 2 3 4 5 6 7 0",
    b"MARKOV 1 1 0",
    b"2 0 1 2 0",
    b"1\n1 0 1\n",
]
_PIECES = [
    b"0",
    b"1",
    b"2",
    b"3",
    b"-1",
    b"9" * 7,
    b"9" * 20,
    b"nan",
    b"inf",
    b"1e999",
    b"1e-400",
    b"-0.0",
    b"1_0",
    b"0x1",
    b"+1",
]
_PIECES += [b"MARKOV", b"BAYES", b"\x00", b"\xff", b"\xd9\xa3", b"\xc2\xa0", b"\n", b"\r", b"\x0b", b" ", b"", b"1.5", b"."]


def _tokens_changed(rng: random.Random, data: bytes) -> bytes:
    tokens = data.split()
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(tokens) + 1)
        tokens[place : place + rng.randint(0, 2)] = rng.choices(_PIECES, k=rng.randint(0, 2))
    return rng.choice([b" ", b"\n", b"\r\n"]).join(tokens)


def _one_replaced(rng: random.Random, data: bytes) -> bytes:
    tokens = data.split()
    tokens[rng.randrange(len(tokens))] = rng.choice(_PIECES[:6])
    return b" ".join(tokens)


def _bytes_changed(rng: random.Random, data: bytes) -> bytes:
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(data) + 1)
        data = data[:place] + rng.choice(_PIECES) + data[place + rng.randint(0, 3) :]
    return data


def _any_bytes(rng: random.Random, data: bytes) -> bytes:
    return rng.randbytes(rng.randint(0, 40)) if rng.random() < 0.3 else b" ".join(rng.choices(_PIECES, k=rng.randint(0, 25)))


def _check(data: bytes) -> int:
    """1 if a model was read. Anything but DataError is an error."""
    try:
        evidence = read_uai_evidence(HeldBytes(data, "<bytes>"))
    except DataError:
        evidence = {}
    try:
        model = read_uai(HeldBytes(data, "<bytes>"))
    except DataError as error:
        if not str(error).startswith("<bytes>:"):
            raise
        return 0
    again = read_uai(HeldBytes(format_uai(model).encode(), "again"))
    assert (again.n_states, again.scopes) == (model.n_states, model.scopes)
    assert all(np.array_equal(a, b) for a, b in zip(model.tables, again.tables, strict=True))
    if sum(model.n_states) > 1000:
        return 1
    try:
        problem = model.paired().pairwise(evidence)
    except DataError:
        return 1
    assert np.isfinite(problem.scores).all()
    if len(problem.n_states) == len(model.n_states) and not evidence:
        labels = [k - 1 for k in model.n_states]
        truth = model.score(labels)
        found = problem.score(labels)
        assert found <= 0.5 * FORBIDDEN if truth == -np.inf else abs(found - truth) <= 1e-9 * max(1.0, abs(truth))
    return 1


def _fuzz(n: int, seed: int) -> int:
    rng = random.Random(seed)
    changes = [_one_replaced, _tokens_changed, _bytes_changed, _any_bytes]
    return sum(_check(rng.choice(changes)(rng, rng.choice(_SEEDS))) for _ in range(n))


def test_any_bytes_in_small_numbers() -> None:
    """A thousand damaged and random inputs: DataError with the place, or a model that survives writing and reading."""
    read = _fuzz(1_000, 0)
    assert 30 < read < 970  # both ends were tried


@pytest.mark.slow
def test_any_bytes_in_large_numbers() -> None:
    """The same for many inputs."""
    assert 0.03 < _fuzz(FUZZ, 1) / FUZZ < 0.97
