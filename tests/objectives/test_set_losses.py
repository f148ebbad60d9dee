"""Losses of whole label sets: the best output with its loss by trying all, trained with bounds that hold, refused elsewhere."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from structpred.data.hierarchy import LabelHierarchy
from structpred.errors import ParameterError, StructpredError
from structpred.evaluation import evaluate_multilabel
from structpred.models import ChainLabeler, HierarchicalMultiLabel, KernelChainLabeler, MultiLabelMRF
from structpred.models.fields.estimator import LabelSharding
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import SetHinge
from structpred.oracles.tree_mrf import TreeMRF

EDGES: dict[str, Any] = {"none": [], "tree": "tree", "complete": "complete"}
RNG = np.random.default_rng(5)
X = RNG.normal(size=(30, 3))
Y = (X @ RNG.normal(size=(3, 5)) + 0.2 * RNG.normal(size=(30, 5)) > 0.4).astype(np.int64)
Y[:2] = 0


def by_hand(name: str, true: Any, found: Any) -> float:
    """What an output costs, from sets."""
    a, b = set(np.flatnonzero(true).tolist()), set(np.flatnonzero(found).tolist())
    if name == "subset":
        return float(a != b)
    return 1.0 - 2.0 * len(a & b) / (len(a) + len(b)) if a or b else 0.0


def task_of(name: str, edges: str, oracle: Any = None) -> Any:
    """The task of a model with this loss, of features as they are."""
    model, sharding = MultiLabelMRF(edges=EDGES[edges], oracle=oracle, loss=name, scale=None), LabelSharding()
    data = sharding.read(model, X, Y, whole=True)
    return sharding.built(model, sharding.plan(model, [sharding.scanned(model, data)], None), data)


@pytest.mark.parametrize("name", ["f1", "subset"])
@pytest.mark.parametrize(("edges", "oracle"), [("none", None), ("none", TreeMRF()), ("tree", TreeMRF()), ("complete", None)])
def test_no_output_has_a_larger_score_with_its_loss(name: str, edges: str, oracle: Any) -> None:
    """All 32 outputs are tried, for empty true sets, too, at weights of several sizes."""
    plain, hinge = task_of(name, edges, oracle), SetHinge(name)
    outputs = [np.array(y) for y in product((0, 1), repeat=5)]
    for i, size in product((0, 1, *range(5, 12)), (0.0, 0.1, 1.0)):
        w = size * np.random.default_rng(i).normal(size=plain.dim)
        theta, shape = plain.scores(w, i), plain.shapes[i]
        scores = np.array([theta[plain.oracle.parts(y, shape)].sum() for y in outputs])
        costs = np.array([by_hand(name, Y[i], y) for y in outputs])
        step = hinge.term(plain, w, i)
        expected = (scores + costs).max() - theta[plain.oracle.parts(Y[i], shape)].sum()
        assert step.violation == pytest.approx(expected, abs=1e-9)
        assert step.loss in costs.round(12) or step.loss == pytest.approx(costs[abs(costs - step.loss).argmin()])


@pytest.mark.parametrize("name", ["f1", "subset"])
@pytest.mark.parametrize("trainer", ["bcfw", "one_slack", "sgd", "corrective", "bmrm"])
def test_bounds_meet_the_objective_by_hand(name: str, trainer: str) -> None:
    """No gap is below zero, and the primal is the objective with the loss of all outputs, of the weights that are returned."""
    model = MultiLabelMRF(trainer, 5.0, 60, loss=name, edges="tree", check_every=5, random_state=0, scale=None).fit(X, Y)
    assert all(row["gap"] >= -1e-9 for row in model.history_ if row.get("gap") is not None)
    plain = task_of(name, "tree")
    w, hinges = model.coef_.astype(np.float64), []
    for i in range(len(Y)):
        theta, shape = plain.scores(w, i), plain.shapes[i]
        values = [
            theta[plain.oracle.parts(np.array(y), shape)].sum() + by_hand(name, Y[i], np.array(y))
            for y in product((0, 1), repeat=5)
        ]
        hinges.append(max(values) - theta[plain.oracle.parts(Y[i], shape)].sum())
    primal = 0.5 * float(w @ w) / (5.0 * len(Y)) + float(np.mean(hinges))
    assert model.certificate_.primal == pytest.approx(primal, rel=1e-5)
    if model.certificate_.dual is not None:
        assert model.certificate_.dual <= primal + 1e-9
    if trainer == "bcfw":
        assert model.certificate_.relative_gap < 0.5


def test_what_is_trained_is_scored() -> None:
    """On rare labels F1's loss gives the larger F1 of examples than Hamming's."""
    rng = np.random.default_rng(1)
    A = rng.normal(size=(400, 4))
    B = (A[:, [0, 1, 2, 3, 0, 1]] + 1.5 * rng.normal(size=(400, 6)) > 1.2).astype(np.int64)
    found = {}
    for name in ("hamming", "f1"):
        model = MultiLabelMRF("bcfw", 1.0, 10, loss=name, edges=[]).fit(A[:200], B[:200])
        found[name] = evaluate_multilabel(B[200:], model.predict(A[200:]))
    assert found["f1"].example_f1 > found["hamming"].example_f1 + 0.05


def test_closed_sets_take_them() -> None:
    """Along a hierarchy the outputs with the loss are closed, and missing labels are completed."""
    hierarchy = LabelHierarchy.from_parents([-1, 0, 0, 1, 1])
    closed = hierarchy.closed(Y)
    model = HierarchicalMultiLabel(hierarchy=hierarchy, require=None, C=1.0, loss="f1", max_iter=5).fit(X, closed)
    assert hierarchy.broken(model.predict(X)) is None
    partial = MultiLabelMRF(loss="subset", C=5.0).fit(X, np.where(RNG.random(Y.shape) < 0.1, -1, Y))
    assert partial.score(X, Y) > 0.8


def test_what_cannot_be_trained_is_refused() -> None:
    """Many labels whose graph has cycles, labels that weigh differently, other surrogates, trainers and structures."""
    many = RNG.integers(0, 2, (6, 18))
    with pytest.raises(ParameterError, match=r"loss='f1' needs edges=\[\] or 'tree' \(or 16 labels\)"):
        MultiLabelMRF(loss="f1").fit(X[:6], many)
    MultiLabelMRF(loss="f1", edges="tree", max_iter=1).fit(X[:6], many)
    hierarchy = LabelHierarchy.from_parents([-1, 0, 0, 1, 1])
    closed = hierarchy.closed(Y)
    with pytest.raises(ParameterError, match="equal label_weights"):
        HierarchicalMultiLabel(hierarchy=hierarchy, require=None, label_weights="depth", loss="f1").fit(X, closed)
    for settings in ({"surrogate": "slack"}, {"surrogate": "log"}):
        with pytest.raises(ParameterError, match=r"loss='f1' needs .* a margin"):
            MultiLabelMRF(loss="f1", **settings).fit(X, Y)
    for trainer in ("lbfgs", "marginal_bcfw"):
        with pytest.raises(StructpredError):
            MultiLabelMRF(trainer, loss="f1").fit(X, Y)
    with pytest.raises(ParameterError, match="loss: expected"):
        ChainLabeler(loss="f1").fit([np.eye(2)], [["a", "b"]])


def test_an_object_trains_as_its_name_does() -> None:
    """The hinge itself as surrogate has the same default trainer, weights and refusals as the name of its loss."""
    named = MultiLabelMRF(C=5.0, loss="f1", edges="tree").fit(X, Y)
    given = MultiLabelMRF(C=5.0, surrogate=SetHinge("f1"), edges="tree").fit(X, Y)
    assert np.array_equal(named.coef_, given.coef_)
    hierarchy = LabelHierarchy.from_parents([-1, 0, 0, 1, 1])
    with pytest.raises(ParameterError, match="equal label_weights"):
        HierarchicalMultiLabel(hierarchy=hierarchy, require=None, label_weights="depth", surrogate=SetHinge("f1")).fit(
            X, hierarchy.closed(Y)
        )
    paths = hierarchy.closed(np.eye(5, dtype=np.int64)[np.arange(30) % 3 + 2])
    with pytest.raises(ParameterError, match=r"loss='f1' needs .* require=None"):
        HierarchicalMultiLabel(hierarchy=hierarchy, loss="f1").fit(X, paths)
    with pytest.raises(ParameterError, match=r"\(of label sets f1, subset, too\)"):
        MultiLabelMRF(loss="f2").fit(X, Y)


def test_the_log_loss_as_an_object_has_the_trainer_of_its_name() -> None:
    """oeg, for label sets and with a kernel of sequences."""
    assert MultiLabelMRF(surrogate=LogLoss()).fit(X, Y).probabilistic_
    sequences, labels = [X[:4], X[4:9]], [Y[:4, 0], Y[4:9, 0]]
    model = KernelChainLabeler(surrogate="log").fit(sequences, labels)
    assert model.probabilistic_
    assert model.predict_marginals(sequences)[0].shape == (4, 2)
