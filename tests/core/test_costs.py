"""Losses are asked once, by one method, obeyed by every estimator, and refused where they break their rules."""

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loss_cases import chains

from structpred.core.costs import GridCosts, PartCosts, TaskCosts
from structpred.core.oracle import Oracle
from structpred.errors import CheckpointError, LossError, ParameterError
from structpred.features.parts import PartFeatures
from structpred.fused.chains import ChainSteps
from structpred.models import ChainLabeler, DependencyParser, StructuredPredictor
from structpred.objectives.part_losses import Hamming, LabelCosts
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.oracles.multiclass import MulticlassOracle
from structpred.task.task import Task

X = [[["a"], ["b"], ["a"]], [["b"], ["c"]], [["c"], ["a"], ["b"], ["b"]]]
Y = [["x", "y", "x"], ["y", "z"], ["z", "x", "x", "y"]]
SENTENCES = [[{"form": "cats", "upos": "NOUN"}, {"form": "sleep", "upos": "VERB"}, {"form": "well", "upos": "ADV"}]] * 2
TREES = [[2, 0, 2], [2, 0, 1]]


class Double(Hamming):
    """Twice the Hamming loss, as a user would write it."""

    def costs(self, labels: Any, shape: Any, oracle: Any) -> GridCosts | PartCosts:
        found = super().costs(labels, shape, oracle)
        return GridCosts(2.0 * found.cost) if isinstance(found, GridCosts) else PartCosts(2 * found.constant, 2 * found.costs)


class Pairs:
    """A chain's loss on label pairs: what follows the wrong label costs half."""

    def costs(self, labels: Any, shape: Any, oracle: Any) -> PartCosts:
        length, n_labels = shape
        costs = np.full(oracle.n_parts(shape), 1.0)
        costs[np.arange(length) * n_labels + labels] = 0.0
        costs[length * n_labels :] = 0.5
        return PartCosts(-0.5 * (length - 1), costs)


def test_a_subclassed_loss_is_obeyed_by_chains() -> None:
    """Twice the loss gives steps of twice the loss, compiled and plain, and other weights than the loss itself."""
    w = np.random.default_rng(1).normal(size=chains(Hamming()).dim).astype(np.float32)
    for compiled in (True, False):
        once, twice = (chains(loss, compiled=compiled).step(0.0 * w, 0, 1.0).loss for loss in (Hamming(), Double()))
        assert twice == 2.0 * once > 0.0
    settings: dict[str, Any] = {"max_iter": 20, "tol": 0.0, "C": 0.5}
    one, two = (ChainLabeler(loss=loss, **settings).fit(X, Y) for loss in ("hamming", Double()))
    same = ChainLabeler(loss=LabelCosts(2.0 * (1.0 - np.eye(3))), **settings).fit(X, Y)
    assert not np.array_equal(one.coef_, two.coef_)
    assert np.array_equal(two.coef_, same.coef_)
    assert two.certificate_ == replace(same.certificate_, checked=True)


def test_a_subclassed_loss_is_obeyed_by_trees() -> None:
    """A parser trained with twice the loss has other weights and twice the primal at zero."""
    settings: dict[str, Any] = {"trainer": "bcfw", "max_iter": 5, "tol": 0.0, "max_bits": 8, "C": 0.1}
    one, two = (DependencyParser(loss=loss, **settings).fit(SENTENCES, TREES) for loss in ("hamming", Double()))
    assert not np.array_equal(one.coef_, two.coef_)
    assert two.certificate_.primal > 1.5 * one.certificate_.primal


def test_costs_of_label_pairs_are_obeyed() -> None:
    """A loss that is no grid is trained by plain steps, which weigh every part of it."""
    task = chains(Pairs())
    assert not isinstance(task.steps, ChainSteps)
    for i in range(len(task)):
        constant, ell = task.costs(i)
        best = max(
            constant + ell[task.oracle.parts(y, task.shapes[i])].sum()
            for y in task.oracle.enumerate(task.shapes[i])  # type: ignore[attr-defined]
        )
        assert task.step(np.zeros(task.dim, np.float32), i, 1.0).violation == pytest.approx(best, abs=1e-12)
    ChainLabeler(loss=Pairs(), max_iter=3).fit(X, Y)


def test_a_loss_is_asked_once_an_instance() -> None:
    """However many steps are taken, the loss answers once for each instance."""
    asked = []

    class Counted(Hamming):
        def costs(self, labels: Any, shape: Any, oracle: Any) -> GridCosts | PartCosts:
            asked.append(shape)
            return super().costs(labels, shape, oracle)

    task = chains(Counted(), compiled=False)
    for _ in range(3):
        for i in range(len(task)):
            task.step(np.zeros(task.dim, np.float32), i, 1.0)
    assert len(asked) == len(task)


def test_hamming_over_many_labels_needs_no_matrix() -> None:
    """A million classes: the costs of one instance take what its parts take, not their square."""
    answer = Hamming().costs(np.array([3]), (1_000_000,), MulticlassOracle())
    assert isinstance(answer, GridCosts)
    assert answer.cost == 1.0


class Old:
    """The earlier protocol."""

    def part_costs(self, labels: Any, shape: Any, oracle: Any, token_weights: Any) -> Any:
        return 0.0, np.zeros(oracle.n_parts(shape))


class HalfOld(Hamming):
    """The earlier protocol over the present one: what it says would be ignored."""

    def part_costs(self, labels: Any, shape: Any, oracle: Any, token_weights: Any) -> Any:
        return 0.0, np.zeros(oracle.n_parts(shape))


def answering(answer: Any) -> Any:
    """A loss that gives what `answer` makes of (labels, parts, n_parts)."""

    class Answering:
        def costs(self, labels: Any, shape: Any, oracle: Any) -> Any:
            return answer(labels, oracle.parts(labels, shape), oracle.n_parts(shape))

    return Answering()


def similarity(labels: Any, parts: Any, n: int) -> PartCosts:
    """The truth costs most."""
    costs = np.zeros(n)
    costs[parts] = 1.0
    return PartCosts(0.0, costs)


def paid(labels: Any, parts: Any, n: int) -> PartCosts:
    """Wrong outputs cost less than nothing."""
    costs = np.full(n, -1.0)
    costs[parts] = 0.0
    return PartCosts(0.0, costs)


def second_wrong(labels: Any, parts: Any, n: int) -> PartCosts:
    """The truth of the second sample costs something."""
    if labels[0] == 0:
        costs = np.ones(n)
        costs[parts] = 0.0
        return PartCosts(0.0, costs)
    return PartCosts(0.0, np.ones(n))


BROKEN = {
    "similarity": (answering(similarity), r"sample 0: Answering: the true output costs 3\b.*similarity"),
    "negative": (answering(paid), "sample 0: Answering: an output costs -.*less than the true one"),
    "truth that costs, second sample": (answering(second_wrong), "sample 1: .*the true output costs 3"),
    "wrong length": (answering(lambda y, p, n: PartCosts(0.0, np.zeros(n - 1))), "sample 0: .*expected 9 part costs.*\\(8,\\)"),
    "nan": (answering(lambda y, p, n: PartCosts(0.0, np.full(n, np.nan))), "sample 0: .*finite, found NaN"),
    "infinite constant": (answering(lambda y, p, n: PartCosts(np.inf, np.zeros(n))), "sample 0: .*finite"),
    "texts": (answering(lambda y, p, n: PartCosts("none", np.zeros(n))), "sample 0: .*must be numbers"),
    "a tuple": (answering(lambda y, p, n: (0.0, np.zeros(n))), "sample 0: .*must return GridCosts or PartCosts, got tuple"),
    "raises": (answering(lambda y, p, n: 1 / 0), "sample 0: Answering.costs raised ZeroDivisionError"),
    "negative grid": (answering(lambda y, p, n: GridCosts(-1.0)), "sample 0: .*finite and >= 0"),
    "grid of another size": (answering(lambda y, p, n: GridCosts(np.zeros((2, 2)))), r"sample 0: .*\(2, 2\), but there are 3"),
    "grid with a diagonal": (answering(lambda y, p, n: GridCosts(np.ones((3, 3)))), "sample 0: .*zero on the diagonal"),
    "earlier protocol": (Old(), "expected an object with costs"),
    "earlier protocol beside": (HalfOld(), "HalfOld has part_costs, which is never called"),
    "a class": (Hamming, "expected an object with costs"),
}


@pytest.mark.parametrize(("loss", "message"), BROKEN.values(), ids=BROKEN)
def test_a_loss_that_breaks_the_rules_is_refused_by_sample(loss: Any, message: str) -> None:
    """Before training starts, with the sample, what was expected and what came."""
    rng = np.random.default_rng(0)
    features = PartFeatures([rng.normal(size=(9, 2)) for _ in range(2)])
    with pytest.raises(LossError, match=message):
        Task(features, AssignmentOracle(), [[0, 1, 2], [2, 0, 1]], [(3,), (3,)], loss)
    model = StructuredPredictor(AssignmentOracle(), loss=loss)
    with pytest.raises((LossError, ParameterError), match=message.removeprefix("sample 0: ")):
        model.fit([rng.normal(size=(9, 2)) for _ in range(2)], [[0, 1, 2], [2, 0, 1]], [(3,), (3,)])


def test_hamming_over_parts_that_repeat_is_refused_where_it_falls_below_zero() -> None:
    """An output that repeats a true part more often than the truth does would cost less than nothing: an error, no training."""
    outputs = [np.array([0, 1]), np.array([0, 0])]
    oracle = EnumeratedOracle(lambda s: outputs, lambda y, s: y, lambda s: 2, example_shapes=[(1,)])
    features = PartFeatures([np.eye(2)])
    Task(features, oracle, [[0, 0]], [(1,)], Hamming())
    extra = [*outputs, np.array([0, 0, 0])]
    oracle = EnumeratedOracle(lambda s: extra, lambda y, s: y, lambda s: 2, example_shapes=[(1,)])
    with pytest.raises(LossError, match="an output costs -1"):
        Task(features, oracle, [[0, 0]], [(1,)], Hamming())


def test_losses_see_the_shape() -> None:
    """A loss may depend on what the shape says of the instance."""

    class Steep:
        def costs(self, labels: Any, shape: Any, oracle: Oracle) -> GridCosts:
            return GridCosts(float(shape[0]))

    task = chains(Steep())
    assert [task.step(np.zeros(task.dim, np.float32), i, 1.0).loss / n**2 for i, (n, _) in enumerate(task.shapes)] == [1.0] * 4


@pytest.mark.parametrize("kept", [True, False])
def test_costs_are_the_same_kept_or_written_anew(kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit in the memory meant for it is written at each call, and pickles leave it out."""
    monkeypatch.setattr("structpred.core.costs.KEPT_BYTES", 1 << 28 if kept else 0)
    for loss in (Hamming(), LabelCosts([[0, 3, 1], [1, 0, 1], [2, 1, 0]]), Pairs()):
        weights = None if isinstance(loss, Pairs) else [np.full(n, 0.5) for n in (3, 1, 4, 2)]
        task = chains(loss, token_weights=weights, compiled=False)
        for i in range(len(task)):
            constant, ell = task.costs(i)
            own = task.costs(i)[1][task.parts[i]]
            assert constant + own.sum() == pytest.approx(0.0, abs=1e-12)
            again = pickle.loads(pickle.dumps(task)).costs(i)
            assert constant == again[0]
            assert np.array_equal(ell, again[1])


def test_units_are_told_once() -> None:
    """The largest whole number that divides all costs, and 0 where they are not whole."""
    for loss, unit in ((Hamming(), 1), (LabelCosts(6 * (1 - np.eye(3))), 6), (LabelCosts(0.5 * (1 - np.eye(3))), 0)):
        task = chains(loss)
        assert [task.cost_unit(i) for i in range(len(task))] == [unit] * len(task)


def test_another_loss_refuses_the_checkpoint(tmp_path: Path) -> None:
    """The loss is part of the digest of a run, also where it only doubles."""
    where = tmp_path / "run.ckpt"
    ChainLabeler(checkpoint=where, max_iter=2).fit(X, Y)
    with pytest.raises(CheckpointError, match="belongs to another run"):
        ChainLabeler(checkpoint=where, max_iter=4, resume=True, loss=Double()).fit(X, Y)
    ChainLabeler(checkpoint=where, max_iter=4, resume=True).fit(X, Y)


def test_answers_that_are_equal_have_equal_digests() -> None:
    """The digest is of the costs, not of the objects that hold them."""

    def digest(loss: Any) -> bytes:
        oracle, truth = MulticlassOracle(), np.array([1])
        return TaskCosts(loss, oracle, [truth] * 2, [(3,)] * 2, [truth] * 2, [3, 3], None).digest()

    fresh = answering(lambda y, p, n: GridCosts(1.0 - np.eye(3)))
    assert digest(fresh) == digest(LabelCosts(1.0 - np.eye(3)))
    assert digest(fresh) != digest(LabelCosts(2.0 * (1.0 - np.eye(3))))
    assert digest(Hamming()) != digest(Double())
