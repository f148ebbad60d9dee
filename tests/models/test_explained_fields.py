"""Explanations of label sets, graphs and outputs of one's own add up, find the best alternative, and name features."""

import itertools
from typing import Any

import numpy as np
import pytest

from structpred import Instance
from structpred.data.hierarchy import LabelHierarchy
from structpred.errors import DataError, MissingCapabilityError, ParameterError
from structpred.models import GraphLabeler, HierarchicalMultiLabel, MultiLabelMRF, StructuredPredictor
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.multiclass import MulticlassOracle

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(12, 3))
SETS = np.column_stack([ROWS[:, 0] > 0, ROWS[:, 1] > 0, (ROWS[:, 0] > 0) & (ROWS[:, 2] > 0)]).astype(int)


def total(contributions: Any) -> float:
    """The sum of the addends."""
    return float(sum(c.score for c in contributions))


@pytest.fixture(scope="module")
def labels() -> MultiLabelMRF:
    """Three labels, all pairs joined."""
    return MultiLabelMRF(C=1.0, max_iter=20, scale=None).fit(ROWS, SETS)


def score_of_set(model: MultiLabelMRF, x: Any, row: Any) -> float:
    """The score by the formula of MultiLabelMRF, from the flat weights."""
    wide = np.append(x, model.bias)
    nodes = model.coef_[: 6 * len(wide)].reshape(3, len(wide), 2)
    tables = model.coef_[6 * len(wide) :].reshape(-1, 2, 2)
    own = sum(float(nodes[k, :, state] @ wide) for k, state in enumerate(row))
    return own + sum(float(tables[e, row[i], row[j]]) for e, (i, j) in enumerate(model.edges_.tolist()))


def test_label_sets_add_up(labels: MultiLabelMRF) -> None:
    """For every set and every pair of sets the sum is the score by the formula, or the difference of the two."""
    x = ROWS[0]
    for one, other in itertools.product(itertools.product((0, 1), repeat=3), repeat=2):
        assert labels.explain(x, one).score == pytest.approx(score_of_set(labels, x, one), abs=1e-9)
        why = labels.explain(x, list(one), against=list(other))
        assert total(why.contributions) == pytest.approx(score_of_set(labels, x, one) - score_of_set(labels, x, other), abs=1e-9)
        assert sum(why.by_kind().values()) == pytest.approx(why.score, abs=1e-9)
        assert why.output == [name for name, state in zip("012", one, strict=True) if state]


def test_the_runner_up_is_the_best_other_set(labels: MultiLabelMRF) -> None:
    """Against the runner-up the sum is the margin to the best other set; of one label, to the best one in which it differs."""
    for x in ROWS[:4]:
        scores = {row: score_of_set(labels, x, row) for row in itertools.product((0, 1), repeat=3)}
        best = max(scores, key=scores.__getitem__)
        margin = scores[best] - max(score for row, score in scores.items() if row != best)
        assert labels.explain(x, against="runner-up").score == pytest.approx(margin, abs=1e-9)
        for k in range(3):
            gap = scores[best] - max(score for row, score in scores.items() if row[k] != best[k])
            assert labels.explain(x, label=str(k)).score == pytest.approx(gap, abs=1e-9)


def test_labels_by_name(labels: MultiLabelMRF) -> None:
    """The names of the labels that are on stand for their row, and a contrast says on against off, feature by feature."""
    why = labels.explain(ROWS[0], ["0"], against=[])
    assert why.score == labels.explain(ROWS[0], [1, 0, 0], against=[0, 0, 0]).score
    first = [c for c in why.contributions if c.kind == "node"]
    assert [(c.position, c.label, c.feature, c.instead) for c in first] == [
        (0, "0 on", name, "0 off") for name in ("0", "1", "2", "bias")
    ]
    assert {c.feature for c in why.contributions if c.kind == "edge"} == {"0 - 1", "0 - 2"}
    assert "0 on not 0 off" in why.table()


def test_a_hierarchy_compares_with_closed_sets_only() -> None:
    """The runner-up keeps children below their parents, and a given set that does not is refused."""
    model = HierarchicalMultiLabel(hierarchy=LabelHierarchy(3, [(0, 2)]), max_iter=20, scale=None).fit(ROWS, SETS)
    for x in ROWS[:4]:
        other = model.explain(x, against="runner-up").against
        assert "2" not in other or "0" in other
    with pytest.raises(DataError, match=r"against: .*without its parent"):
        model.explain(ROWS[0], against=["2"])


@pytest.mark.parametrize("directed", [False, True])
def test_graphs_add_up(directed: bool) -> None:
    """With features of edges, directed or not, every pair of labellings differs by the sum; the runner-up is the best other."""
    path = (ROWS[:3], [(0, 1), (2, 1)], RNG.normal(size=(2, 2)))
    model = GraphLabeler(max_iter=20, directed=directed).fit([path] * 2, [["a", "b", "a"], ["b", "b", "a"]])
    field = model._field
    inference = field.inference(field.one(path))
    theta = inference.scores(model.coef_, 0)

    def score(given: Any) -> float:
        return float(theta[inference.oracle.parts(np.array(["ab".index(c) for c in given]), inference.shapes[0])].sum())

    every = {given: score(given) for given in itertools.product("ab", repeat=3)}
    for one, other in itertools.product(every, repeat=2):
        assert total(model.explain(path, one, against=other).contributions) == pytest.approx(every[one] - every[other], abs=1e-9)
    best = max(every, key=every.__getitem__)
    assert model.explain(path).score == pytest.approx(every[best], abs=1e-9)
    for node in range(3):
        gap = every[best] - max(s for given, s in every.items() if given[node] != best[node])
        assert model.explain(path, node=node).score == pytest.approx(gap, abs=1e-9)
    assert {c.feature for c in model.explain(path).contributions if c.kind == "edge"} == {
        f"node {a} - node {b}: {name}" for a, b in ((0, 1), (1, 2)) for name in ("0", "1", "bias")
    }


def test_a_structure_of_ones_own_adds_up() -> None:
    """Parts are explained by the names of their features, for given, predicted and second-best outputs."""
    x = [[{"near": float(RNG.normal()), "same": True} for _ in range(9)] for _ in range(4)]
    X = [Instance(rows, (3,)) for rows in x]
    model = StructuredPredictor(AssignmentOracle(), max_iter=20).fit(X, [[0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 2, 1]])
    weight = dict(zip(model.feature_names_ or [], model.coef_.tolist(), strict=True))
    one, other = [0, 1, 2], [0, 2, 1]
    why = model.explain(X[0], one, against=other)
    sums = [sum(x[0][3 * i + j]["near"] * weight["near"] + weight["same"] for i, j in enumerate(side)) for side in (one, other)]
    assert why.score == pytest.approx(sums[0] - sums[1], abs=1e-9)
    assert {c.position for c in why.contributions} == {4, 8, 5, 7}
    assert model.explain(x[0], one, shape=(3,)).score == pytest.approx(sums[0], abs=1e-9)
    assert model.explain(X[0]).output == model.predict(X[:1])[0].tolist()
    found = model.top_features(1)
    assert {name for name, _ in (*found.positive, *found.negative)} <= set(weight)
    assert found.groups[0].n_weights == 2


def test_the_runner_up_of_a_structure_of_ones_own() -> None:
    """It is the second best of k best; an oracle without `kbest` is told so."""
    X = [Instance(RNG.normal(size=(3, 2)), (3,)) for _ in range(5)]
    model = StructuredPredictor(MulticlassOracle(), max_iter=20).fit(X, [[0], [1], [2], [0], [1]])
    (_, first), (second, score) = model.predict_kbest(X[:1], 2)[0]
    why = model.explain(X[0], against="runner-up")
    assert (why.against, why.score) == (second.tolist(), pytest.approx(first - score))

    plain = StructuredPredictor(AssignmentOracle(), max_iter=2).fit([Instance(np.eye(4), (2,))], [[0, 1]])
    with pytest.raises(MissingCapabilityError, match="kbest"):
        plain.explain(Instance(np.eye(4), (2,)), against="runner-up")


def test_top_features_have_tables(labels: MultiLabelMRF) -> None:
    """Each kind of model says its strongest weights as plain data, as text, and escaped in notebooks."""
    for found in (labels.top_features(2), labels.top_features(2, label="1")):
        assert found.to_dict()["labels"][0]["label"] in found.table()
        assert found._repr_html_().startswith("<pre ")
        assert str(found) == found.table()
    graph = (ROWS[:2], [(0, 1)])
    model = GraphLabeler(max_iter=5).fit([graph], [["<b>", "b"]])
    assert "-> <b>" in model.top_features(3).table()
    assert "<b>" not in model.top_features(3)._repr_html_()


def test_bad_requests(labels: MultiLabelMRF) -> None:
    """What cannot be explained is refused with the name of the argument."""
    for options, error, message in (
        ({"label": "9"}, ParameterError, "there is no label '9'"),
        ({"label": "1", "against": ["0"]}, ParameterError, "leave against out"),
        ({"against": "best"}, ParameterError, "expected 'runner-up'"),
        ({"labels": ["9"]}, DataError, "labels: there is no label '9'"),
        ({"against": [0, 1]}, DataError, "against: .*3 label columns"),
    ):
        with pytest.raises(error, match=message):
            labels.explain(ROWS[0], **options)
    with pytest.raises(DataError, match="expected one example, got 12"):
        labels.explain(ROWS)
    with pytest.raises(ParameterError, match="top"):
        labels.top_features(0)
