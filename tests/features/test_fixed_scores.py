"""Scores that are added whatever the weights are: in single calls and in compiled sweeps alike, and in the fingerprint."""

import numpy as np
import pytest

from structpred.core.fixed_scores import FORBIDDEN
from structpred.data.sequences import PackedSequences
from structpred.features.fixed_scores import FixedScores
from structpred.features.sequences import SequenceFeatures
from structpred.fused.chains import ChainSteps
from structpred.objectives.part_losses import Hamming
from structpred.oracles.chain import ChainOracle
from structpred.task.task import Task


def made(fixed: FixedScores | None, *, compiled: bool = True) -> Task:
    """Three sentences of 4, 1 and 2 tokens with a feature a token, three labels."""
    data = PackedSequences(np.arange(8), np.arange(7) % 3, np.ones(7), np.array([0, 4, 5, 7]), 3)
    features = SequenceFeatures(data, 3, dtype=np.float64, fixed=fixed)
    return Task(features, ChainOracle(), [[0, 1, 2, 0], [1], [2, 2]], [(4, 3), (1, 3), (2, 3)], Hamming(), compiled=compiled)


def random_fixed(seed: int) -> FixedScores:
    """Two rows and transitions, all random."""
    rng = np.random.default_rng(seed)
    return FixedScores(rng.normal(size=(2, 3)), rng.integers(0, 2, 7).astype(np.int32), rng.normal(size=(3, 3)))


def test_none_adds_nothing() -> None:
    """One row of zeros for all tokens gives the scores, steps and losses of no fixed scores at all."""
    w = np.random.default_rng(0).normal(size=made(None).dim)
    for call in (lambda t: t.violations(w, 1.0), lambda t: t.log_losses(w, np.ones(3))[1], lambda t: t.scores(w, 0)):
        assert np.array_equal(call(made(None)), call(made(FixedScores.none(7, 3))))


@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_they_are_added_to_the_scores_unscaled(scale: float) -> None:
    """scores = scale * <w, features> + fixed: token rows by row_of, transitions once."""
    fixed = random_fixed(1)
    w = np.random.default_rng(2).normal(size=made(None).dim)
    for i, (first, last) in enumerate([(0, 4), (4, 5), (5, 7)]):
        added = made(fixed).scores(w, i, scale) - scale * made(None).scores(w, i)
        wanted = np.concatenate((fixed.rows[fixed.row_of[first:last]].ravel(), fixed.edges.ravel()))
        np.testing.assert_allclose(added, wanted, atol=1e-12)


def test_compiled_and_plain_paths_agree() -> None:
    """Violations, log losses, their gradient, and the differences of single steps."""
    for seed in range(5):
        fixed, rng = random_fixed(seed), np.random.default_rng(seed)
        one, other = made(fixed), made(fixed, compiled=False)
        w = rng.normal(size=one.dim)
        w.reshape(-1, 8)[:, 3:] = 0.0
        assert isinstance(one.steps, ChainSteps)
        best = one.steps.pair.sweep(w, 1.0, one.steps.aim, 0, 3, 1.0, 1)[0]
        listed = np.concatenate([other.argmax(w, i, 1.0) for i in range(3)])
        assert np.array_equal(best, listed)
        for a, b in zip(
            one.log_losses(w, np.array([1.0, 0.5, 2.0])), other.log_losses(w, np.array([1.0, 0.5, 2.0])), strict=True
        ):
            np.testing.assert_allclose(a, b, atol=1e-12)


def test_no_weights_make_up_for_what_is_forbidden() -> None:
    """Even weights of 1e6 in favour of it leave a forbidden label out."""
    rows = np.array([[0.0, 0.0, FORBIDDEN]])
    task = made(FixedScores(rows, np.zeros(7, np.int32), np.zeros((3, 3))))
    w = np.zeros(task.dim)
    w.reshape(-1, 8)[:, 2] = 1e6
    assert not any((task.argmax(w, i) == 2).any() for i in range(3))


def test_they_belong_to_the_fingerprint() -> None:
    """Other fixed scores are another training set: a checkpoint must not fit."""
    prints = [made(fixed).fingerprint() for fixed in (None, random_fixed(0), random_fixed(1))]
    assert len(set(prints)) == 3
    assert made(random_fixed(1)).fingerprint() == prints[2]
