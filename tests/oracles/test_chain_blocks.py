"""Viterbi block by block: where a sequence is cut changes nothing, and ties go to the first label."""

from typing import Any

import numpy as np
import pytest

from structpred.data.sequences import PackedSequences
from structpred.features.sequences import SequenceFeatures
from structpred.fused.chains import SequencePair, SequenceSteps
from structpred.objectives.part_losses import Hamming
from structpred.oracles import chain
from structpred.oracles.chain import ChainOracle
from structpred.task.task import Task

LENGTHS = (1, 2, 3, 4, 7, 11)


@pytest.mark.parametrize("n_labels", [1, 2, 9, 17])
@pytest.mark.parametrize("block", [1, 3, 1024])
def test_blocks_give_the_first_best_path(n_labels: int, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The best path of plain dynamic programming, with scores that tie often, for blocks shorter and longer than the sequence."""
    monkeypatch.setattr(chain, "BLOCK", block)
    rng = np.random.default_rng(n_labels)
    for length in LENGTHS:
        scores = rng.integers(-2, 3, length * n_labels + n_labels**2).astype(np.float64)
        node, edge = scores[: length * n_labels].reshape(length, -1), scores[length * n_labels :].reshape(n_labels, -1)
        alpha, back = node[0], []
        for t in range(1, length):
            paths = alpha[:, None] + edge
            back.append(paths.argmax(axis=0))
            alpha = paths.max(axis=0) + node[t]
        best = [int(alpha.argmax())]
        for pointers in reversed(back):
            best.append(int(pointers[best[-1]]))
        assert ChainOracle().argmax(scores, (length, n_labels)).tolist() == best[::-1]


def steps_of(data: PackedSequences, labels: list[Any]) -> SequenceSteps:
    """The compiled steps of sequences with these labels."""
    features = SequenceFeatures(data, 5, dtype=np.float64)
    steps = Task(features, ChainOracle(), labels, [(len(y), 5) for y in labels], Hamming()).steps
    assert isinstance(steps, SequenceSteps)
    return steps


def test_welded_decoding_does_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels, losses and violations of sweeps, and labels of decoding, are the same bits for every size of a block."""
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 20, sum(LENGTHS))
    features = rng.integers(0, 30, counts.sum()).astype(np.int32)
    values, ends = rng.normal(size=counts.sum()).astype(np.float32), np.cumsum([0, *LENGTHS])
    data = PackedSequences(np.cumsum([0, *counts]), features, values, ends, 30)
    steps = steps_of(data, [rng.integers(0, 5, length) for length in LENGTHS])
    w, seen = rng.normal(size=steps.features.dim), []
    for block in (1, 2, 1024):
        monkeypatch.setattr(chain, "BLOCK", block)
        swept = steps.pair.sweep(w, 0.7, steps.aim, 0, len(data), 1.0, 1)
        seen.append([array.tobytes() for array in (*swept, steps.pair.decode(w, 1)[0])])
    assert seen[0] == seen[1] == seen[2]


def test_values_that_are_all_one_are_left_out_and_change_no_bit() -> None:
    """Sweeps, log losses and differences are the same bits whether values that are all one are read or not."""
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 20, sum(LENGTHS))
    features, ends = rng.integers(0, 30, counts.sum()).astype(np.int32), np.cumsum([0, *LENGTHS])
    data = PackedSequences(np.cumsum([0, *counts]), features, np.ones(counts.sum(), np.float32), ends, 30)
    labels, seen = [rng.integers(0, 5, length) for length in LENGTHS], []
    w = rng.normal(size=SequenceFeatures(data, 5).dim)
    for reads in (False, True):
        steps = steps_of(data, labels)
        assert len(steps.space[2]) == 0
        if reads:
            space = (data.offsets, data.indices, data.values, data.indptr, *steps.space[4:])
            steps.space = steps.pair.space = space
        made = *steps.pair.sweep(w, 0.7, steps.aim, 0, len(data), 1.0, 1), *steps.log_losses(w, np.ones(len(data)))
        seen.append([array.tobytes() for array in made])
        for i in range(len(data)):
            (idx, val), *numbers = steps.one(w, i, 1.0, 0.7)
            seen[-1] += [idx.tobytes(), val.tobytes(), repr(numbers).encode()]
    assert seen[0] == seen[1]
    values = np.where(np.arange(counts.sum()) == 3, np.float32(2.0), np.float32(1.0))
    other = PackedSequences(data.indptr, features, values, ends, 30)
    assert len(SequencePair(SequenceFeatures(other, 5)).space[2]) == len(values)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_squared_gradients_are_those_of_single_sentences(n_jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum of squares of each weight, with start, stop and transitions, is what the steps of single sentences give."""
    rng = np.random.default_rng(4)
    lengths = [1, 7, 2, 5, 1, 9, 3, 4, 6, 2]
    counts = rng.integers(0, 6, sum(lengths))
    features, ends = rng.integers(0, 12, counts.sum()).astype(np.int32), np.cumsum([0, *lengths])
    values = rng.normal(size=counts.sum()).astype(np.float32)
    data = PackedSequences(np.cumsum([0, *counts]), features, values, ends, 12)
    labels = [rng.integers(0, 4, length) for length in lengths]
    monkeypatch.setattr("structpred.fused.chains.BLOCK_TOKENS", 15)
    tasks = [
        Task(
            SequenceFeatures(data, 4, dtype=np.float64), ChainOracle(), labels, [(length, 4) for length in lengths], Hamming(),
            compiled=compiled, n_jobs=n_jobs,
        ) for compiled in (True, False)
    ]  # fmt: skip
    w, shares = rng.normal(size=tasks[0].dim), rng.uniform(0.1, 2.0, len(lengths))
    found, expected = (task.squared_gradients(w, shares) for task in tasks)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-14)
    single = sum(share * tasks[1].soft_step(w, i).difference.dense(tasks[1].dim) ** 2 for i, share in enumerate(shares))
    np.testing.assert_allclose(expected, single, rtol=1e-12)
    assert (found > 0).sum() > 50
