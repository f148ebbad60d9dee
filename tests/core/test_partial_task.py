"""Tasks whose outputs are known in part: completions, costs that do not depend on them, rows, errors."""

import pickle

import numpy as np
import pytest
from partial_cases import STRUCTURES, partial

from structpred.core.fixed_scores import FORBIDDEN
from structpred.errors import DataError, InfeasibleError, ParameterError
from structpred.fused.chains import ChainSteps
from structpred.objectives.part_losses import ExtraParts, Hamming, LabelCosts
from structpred.task.instance_subset import AddedScores, take_features
from structpred.task.partial_task import PartialTask
from structpred.task.task import Task


@pytest.mark.parametrize("name", STRUCTURES)
def test_completions_are_the_best_of_their_sets(name):
    """The completed outputs are those of each set that score highest, found by listing; what is known stays."""
    task, sets = partial(name)
    w = np.random.default_rng(3).normal(size=task.dim)
    found = task.completed(w)
    for i, options in enumerate(sets):
        theta = task.features.scores(w, i)
        best = max(theta[task.oracle.parts(y, task.shapes[i])].sum() for y in options)
        assert theta[task.oracle.parts(found[i], task.shapes[i])].sum() == pytest.approx(best)
        assert any(np.array_equal(found[i], y) for y in options)


@pytest.mark.parametrize("loss", [Hamming(), ExtraParts()])
@pytest.mark.parametrize("name", STRUCTURES)
def test_no_completion_costs_anything(name, loss):
    """Every output of the set costs nothing, every other one something, whichever of the set is taken for the truth."""
    task, sets = partial(name, loss=loss)
    for w in np.random.default_rng(0).normal(size=(2, task.dim)):
        full = task.with_labels(task.completed(w))
        assert type(full) is Task
        for i in range(1, len(task)):
            constant, costs = full.costs(i)
            np.testing.assert_array_equal(costs, task.costs(i)[1])
            for y in task.oracle.enumerate(task.shapes[i]):
                cost = constant + costs[task.oracle.parts(y, task.shapes[i])].sum()
                assert (cost == 0) == any(np.array_equal(y, other) for other in sets[i])


def chain_with_sets():
    """One chain whose three tokens have a label, a choice of two, and any label."""
    features, oracle, shapes = STRUCTURES["chain"]()
    features = take_features(features, np.array([0]))
    scores = np.zeros(features.n_parts(0))
    scores[[1, 2, 3]] = FORBIDDEN  # token 0 has label 0; token 1 not label 0
    return features, oracle, shapes[:1], scores


def test_a_set_costs_as_its_nearest_label():
    """At a token with a choice a label costs the least that it would from any label of the choice; free tokens cost nothing."""
    features, oracle, shapes, scores = chain_with_sets()
    table = np.array([[0.0, 2.0, 3.0], [5.0, 0.0, 1.0], [4.0, 1.0, 0.0]])
    left = AddedScores(features, [scores])
    task = PartialTask(
        features, oracle, [[]], shapes, LabelCosts(table), allowed=left, rows=[0], token_weights=[np.array([1.0, 2.0, 7.0])]
    )
    np.testing.assert_array_equal(task.costs(0)[1][:9], [0, 2, 3, 8, 0, 0, 0, 0, 0])


def test_sets_take_compiled_steps():
    """Choices of several labels cost rows of one table, so steps and sweeps are compiled; all bits are those of plain calls."""
    rng, table = np.random.default_rng(1), np.array([[0.0, 2.0, 3.0], [5.0, 0.0, 1.0], [4.0, 1.0, 0.0]])
    features, oracle, shapes = STRUCTURES["chain"]()
    scores = [np.where(np.arange(18) < 9, rng.choice([0.0, FORBIDDEN], 18), 0.0) for _ in shapes]
    for own in scores:
        own[[0, 4, 8]] = 0.0  # no token is left without a label
    left, weights = AddedScores(features, scores), [rng.random(3) for _ in shapes]
    task, plain = (
        PartialTask(
            features, oracle, [[]] * len(shapes), shapes, LabelCosts(table), allowed=left, rows=np.arange(len(shapes)),
            token_weights=weights, compiled=compiled,
        )
        for compiled in (True, False)
    )  # fmt: skip
    assert isinstance(task.steps, ChainSteps)
    for k in range(5):
        w = rng.normal(size=task.dim)
        np.testing.assert_allclose(task.violations(w, 1.0), plain.violations(w, 1.0), rtol=1e-12)
        for one, other in ((task, plain), (task.with_labels(task.completed(w)), plain.with_labels(task.completed(w)))):
            for i in range(len(one)):
                first, second = one.step(w, i, 0.5 * k), other.step(w, i, 0.5 * k)
                assert (first.loss, first.violation) == (second.loss, second.violation)
                np.testing.assert_array_equal(first.difference.values, second.difference.values)
    part = pickle.loads(pickle.dumps(task.take([2, 0])))
    np.testing.assert_array_equal(part.violations(w, 1.0), task.violations(w, 1.0)[[2, 0]])


def test_rows_of_a_partial_task():
    """take gives the task of these rows; with none of them in part it is a plain one; pickling keeps everything."""
    task, _ = partial("chain")
    w = np.random.default_rng(3).normal(size=task.dim)
    part = task.take([3, 0, 1])
    assert isinstance(part, PartialTask)
    expected = [task.completed(w)[i].tolist() for i in (3, 0, 1)]
    assert [y.tolist() for y in part.completed(w)] == expected
    assert type(task.take([0, 0])) is Task
    assert [y.tolist() for y in pickle.loads(pickle.dumps(part)).completed(w)] == expected
    assert pickle.loads(pickle.dumps(part)).fingerprint() == part.fingerprint() != task.fingerprint()


def test_what_does_not_fit_is_refused():
    """Labels that are ruled out or change what is known, an empty set, and a loss that needs whole outputs name the sample."""
    task, _ = partial("chain")
    good = task.completed(np.zeros(task.dim))
    with pytest.raises(DataError, match="sample 2: the labels are not among those"):
        task.with_labels([*good[:2], (good[2] + 1) % 3, *good[3:]])
    with pytest.raises(DataError, match="sample 0: expected the labels that are known"):
        task.with_labels([(good[0] + 1) % 3, *good[1:]])
    features, oracle, shapes, scores = chain_with_sets()
    with pytest.raises(InfeasibleError, match="sample 0"):
        PartialTask(features, oracle, [[]], shapes, Hamming(), allowed=AddedScores(features, [scores + FORBIDDEN]), rows=[0])
    with pytest.raises(DataError, match="sample 0: expected 18 finite fixed scores"):
        AddedScores(features, [scores[:4]])

    class Whole:
        def costs(self, labels, shape, oracle):
            return ExtraParts().costs(labels, shape, oracle)

    with pytest.raises(ParameterError, match=r"sample 0.*allowed_costs"):
        PartialTask(features, oracle, [[]], shapes, Whole(), allowed=AddedScores(features, [scores]), rows=[0])
