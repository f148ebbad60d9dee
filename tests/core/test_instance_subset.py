"""Tasks of some rows, tasks with other labels, completed labels and bulk terms: each is what a task made anew says."""

import pickle
from typing import Any

import numpy as np
import pytest
from instance_kinds import KINDS as SHIPPED
from instance_kinds import N, weights

from structpred.core.feature_map import FeatureMap
from structpred.core.fixed_scores import FORBIDDEN
from structpred.errors import DataError, InfeasibleError, ParameterError
from structpred.features.parts import PartFeatures
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming
from structpred.oracles.multiclass import MulticlassOracle
from structpred.slack.surrogate import SlackRescaling
from structpred.task.callback_task import CallbackTask
from structpred.task.inference import Inference
from structpred.task.instance_subset import InstanceSubset
from structpred.task.task import Task
from structpred.trainers.bcfw import BCFW
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.problem import Problem

ROWS = [7, 2, 2, 0, 8]


class Own(FeatureMap):
    """A map of one's own, with obligatory calls alone: a vector of two numbers for each class."""

    def __init__(self, rows: Any) -> None:
        self.rows, self.dim, self.dtype, self.groups = rows, 2, np.dtype(np.float64), np.array([0, 2])

    def __len__(self) -> int:
        return len(self.rows)

    def n_parts(self, i: int) -> int:
        return 3

    def scores(self, w: Any, i: int) -> Any:
        return self.rows[i] @ w

    def adjoint(self, i: int, parts: Any, counts: Any) -> Any:
        from structpred.core.sparse import coalesced

        return coalesced([0, 1], self.rows[i][parts].T @ counts)

    def arrays(self) -> Any:
        return (self.rows,)


def own_map() -> tuple[Any, Any, list[Any]]:
    """Three classes."""
    return Own(np.random.default_rng(6).normal(size=(N, 3, 2))), MulticlassOracle(), [(3,)] * N


KINDS = {**SHIPPED, "own map": own_map}
every_kind = pytest.mark.parametrize("kind", KINDS)


def task_of(kind: str, **options: Any) -> Task:
    """A task with labels that are neither best nor worst, sample weights, and token weights where there are positions."""
    features, oracle, shapes = KINDS[kind]()
    rng = np.random.default_rng(8)
    gold = Inference(features, oracle, shapes).outputs(weights(features)[::-1].copy())
    grid = getattr(oracle, "label_grid", None)
    tokens = None if grid is None else [rng.uniform(0.5, 2.0, grid(shape)[0]) for shape in shapes]
    return Task(features, oracle, gold, shapes, Hamming(), token_weights=tokens, sample_weight=rng.uniform(0.5, 2, N), **options)


def same_steps(one: Task, other: Task) -> None:
    """Both say the same at random weights, to the last bit."""
    w = weights(one.features)
    assert len(one) == len(other)
    assert one.violations(w, 1.0).tobytes() == other.violations(w, 1.0).tobytes()
    for i in range(len(one)):
        a, b = one.step(w, i, 0.7), other.step(w, i, 0.7)
        assert (a.difference.indices.tolist(), a.difference.values.tobytes()) == (
            b.difference.indices.tolist(),
            b.difference.values.tobytes(),
        )
        assert (a.loss, a.violation, a.bound) == (b.loss, b.violation, b.bound)


@every_kind
@pytest.mark.parametrize("compiled", [True, False])
def test_taken_rows_are_a_task_made_anew(kind: str, compiled: bool) -> None:
    """In any order, with repeats: steps, sweeps, training and certificate are those of a task made of these rows."""
    whole = task_of(kind, compiled=compiled)
    taken = whole.take(ROWS).take([4, 0, 1, 2])  # 8, 7, 2, 2
    rows = [8, 7, 2, 2]
    features = InstanceSubset(whole.features, np.array(rows))
    tokens = None if whole.token_weights is None else [whole.token_weights[i] for i in rows]
    anew = Task(
        features, whole.oracle, [whole.labels[i] for i in rows], [whole.shapes[i] for i in rows], whole.loss,
        token_weights=tokens, sample_weight=whole.sample_weight[rows], compiled=compiled,
    )  # fmt: skip
    if "chains" not in kind or not compiled:
        same_steps(taken, anew)
    w = weights(whole.features)
    for k, i in enumerate(rows):
        one, same = whole.step(w, i, 1.0), taken.step(w, k, 1.0)
        assert (one.loss, one.violation) == (same.loss, same.violation)
    results = [train(Problem(t, MarginRescaling(), 0.1), BCFW(), RunSettings(max_iter=3, tol=0.0)) for t in (taken, anew)]
    assert np.array_equal(results[0].weights, results[1].weights)
    assert results[0].certificate == results[1].certificate or "chains" in kind  # of which the sweeps round otherwise


@every_kind
def test_taken_tasks_pickle_without_the_other_rows(kind: str) -> None:
    """A task of one row is smaller than the whole, also after use, and its copy takes the same steps."""
    whole = task_of(kind)
    one = whole.take([3])
    one.violations(weights(one.features), 1.0)
    again = pickle.loads(pickle.dumps(one))
    same_steps(one, again)
    assert kind == "own map" or len(pickle.dumps(one)) < len(pickle.dumps(whole))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "rows: expected at least one row"),
        ([0, N], "numbers of 9 instances, 0..8"),
        ([-1], "got -1"),
        ([0.5], "whole numbers"),
    ],
)
def test_rows_that_are_none_are_refused(rows: Any, message: str) -> None:
    """No rows, rows outside and fractions: an error that says what was expected, in `take` and in `terms`."""
    task = task_of("classes")
    for call in (lambda: task.take(rows), lambda: task.terms(np.zeros(task.dim), rows)):
        with pytest.raises(DataError, match=message):
            call()


def test_rows_that_weigh_nothing_are_refused() -> None:
    """A task needs a positive weight."""
    features, oracle, shapes = KINDS["label rows"]()
    task = Task(features, oracle, [[0]] * N, shapes, Hamming(), sample_weight=[0.0] * 3 + [1.0] * (N - 3))
    with pytest.raises(ParameterError, match="positive sum"):
        task.take([0, 1])


@every_kind
@pytest.mark.parametrize("compiled", [True, False])
def test_other_labels_are_a_task_made_anew(kind: str, compiled: bool) -> None:
    """The task with other true outputs is that of the constructor, and the old one stays as it was."""
    task, old = task_of(kind, compiled=compiled), task_of(kind, compiled=compiled)
    labels = task.inference.outputs(-weights(task.features))
    options = {"token_weights": task.token_weights, "sample_weight": task.sample_weight, "compiled": compiled}
    same_steps(task.with_labels(labels), Task(task.features, task.oracle, labels, task.shapes, task.loss, **options))
    same_steps(task, old)


def test_other_labels_must_fit() -> None:
    """Too few of them, and labels out of range: the error names the sample."""
    task = task_of("classes")
    with pytest.raises(DataError, match="9 samples but 1 labellings"):
        task.with_labels([[0]])
    with pytest.raises(DataError, match="sample 4: the true labels have parts outside"):
        task.with_labels([*task.labels[:4], [7], *task.labels[5:]])


@every_kind
def test_labels_are_completed_under_other_fixed_scores(kind: str) -> None:
    """Each is the argmax at the scores plus the fixed ones; None adds nothing; the task itself is as before."""
    task = task_of(kind)
    w, rng = weights(task.features), np.random.default_rng(3)
    fixed: list[Any] = [None if i == 1 else rng.normal(size=task.features.n_parts(i)) for i in range(N)]
    found = task.complete(w, fixed)
    for i in range(N):
        extra = 0.0 if fixed[i] is None else fixed[i]
        assert found[i].tolist() == task.oracle.argmax(task.scores(w, i) + extra, task.shapes[i]).tolist()
    same_steps(task, task_of(kind))


def test_partial_labels_are_kept() -> None:
    """Where the true part is the only one allowed it is found; where nothing is allowed the error names the sample."""
    task = task_of("classes")
    w = weights(task.features)
    fixed = [np.where(np.arange(task.features.n_parts(i)) == task.labels[i][0], 0.0, FORBIDDEN) for i in range(N)]
    assert [y.tolist() for y in task.complete(w, fixed)] == [y.tolist() for y in task.labels]
    fixed[6] = np.full(task.features.n_parts(6), FORBIDDEN)
    with pytest.raises(InfeasibleError, match="sample 6"):
        task.complete(w, fixed)
    with pytest.raises(DataError, match="sample 2: expected 4 finite fixed scores, one per part, got \\(1,\\)"):
        task.complete(w, [None, None, np.zeros(1), *[None] * (N - 3)])
    with pytest.raises(DataError, match="one entry per sample, 9, got 1"):
        task.complete(w, [None])


@every_kind
@pytest.mark.parametrize("surrogate", [MarginRescaling(), SlackRescaling(), LogLoss()])
def test_bulk_terms_are_the_terms(kind: str, surrogate: Any) -> None:
    """The sum has every row's difference and offset times its share; losses, violations and bounds are the rows' own."""
    task, shares = task_of(kind), np.array([0.5, 1.0, 0.0, 2.0, -1.0])
    if kind == "matchings" and isinstance(surrogate, LogLoss):
        return  # no marginals
    w = weights(task.features)
    found, dense, offset = surrogate.terms(task, w, ROWS, shares), np.zeros(task.dim), 0.0
    for k, i in enumerate(ROWS):
        step = surrogate.term(task, w, i)
        dense += shares[k] * step.difference.dense(task.dim)
        offset += shares[k] * (step.violation + w @ step.difference.dense(task.dim))
        assert (found.losses[k], found.violations[k], found.bounds[k]) == (step.loss, step.violation, step.bound)
    np.testing.assert_allclose(found.difference, dense, atol=1e-12)
    assert found.offset == pytest.approx(offset, abs=1e-9)


def test_bulk_terms_of_three_functions_are_the_steps() -> None:
    """A task of callbacks has them, too; shares of another number are refused."""
    eye = np.eye(3)
    task = CallbackTask(
        [1.0, -1.0], [0, 2], 3, lambda x, y: x * eye[y], lambda y, k: float(y != k),
        lambda w, x, y, c: max(range(3), key=lambda k: w[k] * x + c * (k != y)),
    )  # fmt: skip
    found = MarginRescaling().terms(task, np.zeros(3), [0, 1, 1])
    assert found.violations.tolist() == [1.0, 1.0, 1.0]
    assert found.difference.tolist() == [1.0 + 2.0, -1.0, -2.0]
    with pytest.raises(DataError, match="shares: expected 1 finite numbers"):
        MarginRescaling().terms(task, np.zeros(3), [0], [1.0, 2.0])


def test_a_subclass_that_changes_scores_is_wrapped() -> None:
    """`take` of a parent does not know what a subclass changed: the whole map then stays behind the rows."""

    class Shifted(PartFeatures):
        def scores(self, w: Any, i: int) -> Any:
            return super().scores(w, i) + i

    features = Shifted([np.eye(2)] * 3)
    task = Task(features, MulticlassOracle(), [[0]] * 3, [(2,)] * 3, Hamming())
    assert task.take([2, 0]).scores(np.zeros(2), 0).tolist() == [2.0, 2.0]
