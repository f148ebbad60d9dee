"""Many updates towards labelled graphs in one compiled call: the bits of single updates, and single ones where it must be so."""

from typing import Any

import numpy as np
import pytest
from label_set_cases import task_of_kind

from structpred.core.costs import PartCosts
from structpred.core.fixed_scores import FORBIDDEN
from structpred.errors import DataError
from structpred.features.graphs import GraphFeatures
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming
from structpred.oracles.mrf import graph_shape
from structpred.oracles.mrf_enumeration import EnumerationMRF
from structpred.oracles.qpbo import QPBO
from structpred.oracles.tree_mrf import TreeMRF
from structpred.task.task import Task
from structpred.trainers.arow import AROW
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.mira import MIRA
from structpred.trainers.passive_aggressive import PassiveAggressive
from structpred.trainers.perceptron import AveragedPerceptron
from structpred.trainers.problem import Problem
from structpred.trainers.sgd import SGD

#: label sets, then graphs that differ
LABEL_SETS, GRAPHS = ("complete", "tree", "none", "closed", "tables", "paths"), ("graphs", "forests", "symmetric")
SHAPES = [graph_shape(1, 3, []), graph_shape(4, 3, [(0, 1), (1, 2), (0, 3)]), graph_shape(5, 3, [(0, 4), (1, 3)])]
CYCLE = graph_shape(4, 3, [(0, 1), (1, 2), (2, 3), (0, 3)])


class Share:
    """A loss of parts: the share of wrong states among all nodes."""

    def costs(self, labels: Any, shape: Any, oracle: Any) -> PartCosts:
        own = np.zeros(oracle.n_parts(shape))
        own[np.arange(shape[0]) * shape[1] + labels] = -1.0 / shape[0]
        return PartCosts(1.0, own)


def graphs(kind: str, *, dtype: type = np.float64, barred: int = 1, **options: Any) -> Task:
    """Graphs of three states and several shapes, with rows of nodes and edges, some of which are flipped; of every second one a
    node may not have a state, which is `barred` more than the true one.
    """
    rng = np.random.default_rng(0)
    chosen = SHAPES if kind == "forests" else [*SHAPES, CYCLE]
    shapes = [chosen[k % len(chosen)] for k in range(30)]
    n_edges = [len(shape) // 2 - 1 for shape in shapes]
    rows = [np.round(rng.normal(size=(shape[0], 4))) for shape in shapes]
    labels = [rng.integers(0, 3, shape[0]) for shape in shapes]
    fixed = []
    for k, (shape, y) in enumerate(zip(shapes, labels, strict=True)):
        own = np.zeros(3 * shape[0] + 9 * n_edges[k])
        own[(y[0] + barred) % 3] = FORBIDDEN
        fixed.append(own if k % 2 else None)
    features = GraphFeatures(
        shapes, rows, node_type=[rng.integers(0, 2, len(y)) for y in labels],
        edge_rows=[rng.normal(size=(e, 5)) for e in n_edges],
        edge_flipped=[rng.integers(0, 2, e) for e in n_edges], n_node_types=2, n_states=3, symmetric=kind == "symmetric",
        fixed=fixed, dtype=dtype,
    )  # fmt: skip
    oracle, loss = TreeMRF() if kind == "forests" else EnumerationMRF(), Share() if kind == "symmetric" else Hamming()
    return Task(features, oracle, labels, shapes, loss, sample_weight=1.0 + np.arange(30) % 3, **options)


def task_of(kind: str, **options: Any) -> Task:
    """Label sets with sample weights and, where they are closed, costs of each label; or graphs."""
    return graphs(kind, **options) if kind in GRAPHS else task_of_kind(kind, 30, weighted=True, **options)


def made(task: Task, trainer: Any, loss_weight: float) -> list[Any]:
    """All that a run says and keeps, but for times."""
    settings = RunSettings(max_iter=3, check_every=2, seed=3, keep=True)
    found = train(Problem(task, MarginRescaling(loss_weight), 0.02), trainer, settings)
    assert found.progress is not None
    history = [{key: value for key, value in row.items() if "seconds" not in key} for row in found.history]
    return [found.weights.tobytes(), {k: a.tobytes() for k, a in found.progress.arrays.items()}, history, found.certificate]


def check_updates(task: Task, plain: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits by calls of 30 graphs, by calls broken off, by single updates, and by plain steps."""
    update_many, seen = task.compiled_updates(), []
    assert update_many is not None
    assert plain.compiled_updates() is None
    updates = update_many.__self__  # type: ignore[attr-defined]
    for trainer, weight in ((SGD, 1.0), (MIRA, 1.0), (AROW, 0.0), (PassiveAggressive, 0.0), (AveragedPerceptron, 0.0)):
        monkeypatch.setattr(task, "compiled_updates", lambda: lambda *call: seen.append(found := update_many(*call)) or found)
        whole = made(task, trainer(), weight)
        assert seen == [(30, True)] * 3
        monkeypatch.setattr(updates, "most", 500)
        assert made(task, trainer(), weight) == whole
        assert len(seen) > 12
        monkeypatch.undo()
        monkeypatch.setattr(task, "compiled_updates", lambda: None)
        assert made(task, trainer(), weight) == whole
        assert made(plain, trainer(), weight)[:2] == whole[:2]
        seen.clear()


@pytest.mark.mostly_slow
@pytest.mark.parametrize("kind", LABEL_SETS + GRAPHS)
def test_visited_graphs_move_the_weights_as_single_ones_do(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights, state, history and certificate are those of single updates, bit for bit, in one call a pass or in several; weights
    and state are those of plain steps.
    """
    check_updates(task_of(kind), task_of(kind, compiled=False), monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["graphs", "forests"])
def test_weights_of_single_precision_are_visited_alike(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for float32."""
    check_updates(task_of(kind, dtype=np.float32), task_of(kind, dtype=np.float32, compiled=False), monkeypatch)


@pytest.mark.parametrize("kind", ["graphs", "forests"])
def test_found_outputs_below_the_truth_are_left_to_the_plain_update(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where fixed scores forbid a true state, calls stop before such a graph, and go on after it: the same bits."""
    task = graphs(kind, barred=0)
    update_many, seen = task.compiled_updates(), []
    assert update_many is not None
    monkeypatch.setattr(task, "compiled_updates", lambda: lambda *call: seen.append(found := update_many(*call)) or found)
    whole = made(task, AveragedPerceptron(), 0.0)
    assert 0 in [count for count, _ in seen]
    monkeypatch.setattr(task, "compiled_updates", lambda: None)
    assert made(task, AveragedPerceptron(), 0.0) == whole


class OwnFeatures(GraphFeatures):
    """A map that scores in its own way."""

    def scores(self, w: Any, i: int) -> Any:
        return super().scores(w, i)


class OwnTrees(TreeMRF):
    """An oracle that searches in its own way."""

    def argmax(self, scores: Any, shape: Any) -> Any:
        return super().argmax(scores, shape)


def test_what_visits_do_not_know_is_left_to_single_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other oracles, features and oracles that changed something, a single state, and costs that are too many to be kept."""
    task = task_of_kind("tree")
    known = (task.labels, task.shapes, Hamming())
    own = OwnFeatures(task.shapes, np.ones((len(task), 1)), [np.zeros(5, int)] * len(task), n_states=2)
    one = GraphFeatures([(2, 1)], [np.ones((2, 1))], n_states=1)
    assert task.compiled_updates() is not None
    assert Task(task.features, EnumerationMRF(), *known).compiled_updates() is not None
    assert Task(task.features, QPBO(), *known).compiled_updates() is None
    assert Task(task.features, OwnTrees(), *known).compiled_updates() is None
    assert Task(own, TreeMRF(), *known).compiled_updates() is None
    assert Task(one, TreeMRF(), [np.zeros(2, int)], [(2, 1)], Hamming()).compiled_updates() is None
    monkeypatch.setattr("structpred.core.costs.KEPT_BYTES", 0)
    assert task_of_kind("tree").compiled_updates() is None


def test_a_graph_that_the_oracle_refuses_is_named() -> None:
    """Before the first update, though it is not among the graphs that the task tried the oracle on."""
    shapes = [*[SHAPES[1]] * 12, CYCLE]
    features = GraphFeatures(shapes, [np.ones((4, 2))] * 13, n_states=3)
    task = Task(features, TreeMRF(), [np.zeros(4, int)] * 13, shapes, Hamming())
    with pytest.raises(DataError, match=r"^sample 12: edge 3, \(0, 3\), closes a cycle"):
        task.compiled_updates()


@pytest.mark.parametrize(
    ("kind", "spoilt"), [("graphs", "weights"), ("forests", "weights"), ("forests", "fixed"), ("graphs", "loss")]
)
def test_what_must_be_refused_is_left_to_the_plain_update(kind: str, spoilt: str) -> None:
    """Scores that are not finite, a graph without an output and a negative loss: nothing is visited, and the weights stay."""
    task = graphs(kind)
    problem, update_many = Problem(task, MarginRescaling(), 0.1), task.compiled_updates()
    assert update_many is not None
    updates, state = update_many.__self__, MIRA().init_state(problem)  # type: ignore[attr-defined]
    if spoilt == "weights":
        state.weights.v[:] = np.inf
    elif spoilt == "fixed":
        begins, scores = updates.memory[1]
        scores[begins[1] : begins[1] + 12] = FORBIDDEN
    else:
        updates.memory[2][1][1] = -100.0
    before = state.weights.v.copy()
    with np.errstate(invalid="ignore"):
        assert update_many(np.array([1, 2]), MIRA().update_rule(problem, state), 0.0) == (0, False)
    assert state.weights.v.tobytes() == before.tobytes()
