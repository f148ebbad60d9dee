"""What notebooks show: every result has an HTML form in which tokens, labels and features stay text."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structpred import Instance, check_oracle
from structpred.core.result import Certificate, History
from structpred.data.hierarchy import LabelHierarchy
from structpred.evaluation import (
    UD,
    confusion_matrix,
    evaluate_hierarchy,
    evaluate_multilabel,
    evaluate_sequences,
    evaluate_trees,
)
from structpred.evaluation.curves import CurvePoint, LearningCurve
from structpred.io import Tree
from structpred.models import ChainLabeler, DependencyParser, GraphLabeler, MultiLabelMRF, StructuredPredictor
from structpred.oracles.multiclass import MulticlassOracle
from structpred.report import draw_spans, draw_tree
from structpred.tuning.halving import Rung, Trial, Tuned

EVIL = "<script>alert(1)</script>\"><img/src=x/onerror='x'>\u202e"


def chain() -> list[Any]:
    """A tagger whose tokens and labels are markup."""
    X, y = [[{"w": EVIL}, {"w": "b"}]] * 3, [[EVIL, "B"]] * 3
    model = ChainLabeler(max_iter=5).fit(X, y)
    found = [model.explain(X[0]), model.explain(X[0], against="runner-up"), model.top_features(3), model.certificate_]
    found += [model.history_, evaluate_sequences(y, [["B", EVIL]] * 3), confusion_matrix(y, [["B", "B"]] * 3)]
    return [*found, draw_spans([EVIL, "b"], y[0], gold=["B", "B"])]


def parser() -> list[Any]:
    """A parser whose words, tags and relations are markup."""
    X, y = [[{"form": EVIL, "upos": EVIL}, {"form": "b", "upos": "B"}]] * 2, [[(2, EVIL), (0, "root")]] * 2
    model = DependencyParser(max_iter=2).fit(X, y)
    tree = model.predict(X)[0]
    trees = [Tree(np.array([2, 0]), [EVIL, "root"])] * 2
    scores = evaluate_trees(trees, [tree] * 2, forms=[[EVIL, "b"]] * 2, upos=[[EVIL, "B"]] * 2, rules=UD)
    drawn = draw_tree([EVIL, "b"], tree, tags=[EVIL, "B"])
    return [model.explain(X[0]), model.explain(X[0], 1), model.top_features(), tree, scores, drawn]


def others() -> list[Any]:
    """A graph, a label set and an own structure whose labels and features are markup."""
    graph = (np.eye(2), [(0, 1)])
    graphs = GraphLabeler(max_iter=2).fit([graph], [[EVIL, "b"]])
    sets = MultiLabelMRF(max_iter=2).fit(np.eye(2), np.eye(2, dtype=int))
    X = [Instance([{EVIL: 1.0}, {"a": 1.0}], (2,))] * 2
    own = StructuredPredictor(MulticlassOracle(), max_iter=2).fit(X, [[0], [0]])
    scores = evaluate_multilabel(np.eye(2, dtype=int), np.ones((2, 2), int), [EVIL, "b"])
    found = [own.explain(X[0], against=[1]), own.top_features(), sets.explain([1.0, 0.0]), sets.top_features(), scores]
    return [graphs.explain(graph), graphs.top_features(), *found]


@pytest.mark.parametrize("made", [chain, parser, others])
def test_hostile_text_stays_text(made: Callable[[], list[Any]]) -> None:
    """No token, label, tag or feature becomes an element or an attribute in the HTML of any result."""
    shown = [result._repr_html_() for result in made()]
    assert all(html.startswith("<") for html in shown)
    assert not any("<script" in html or "<img" in html or "\u202e" in html for html in shown)
    assert any("&lt;script" in html for html in shown)


def test_certificates_and_histories() -> None:
    """A certificate shows its bounds; a history is a list that pickles, saves and shows only the columns that are filled."""
    assert '<td class="number">2</td>' in Certificate(2.0, 1.5, proven=True)._repr_html_()
    history = History([{"passes": 1, "gap": None}, {"passes": 2, "gap": None, "primal": 0.5}])
    assert history == [{"passes": 1, "gap": None}, {"passes": 2, "gap": None, "primal": 0.5}]
    assert json.loads(json.dumps(pickle.loads(pickle.dumps(history)))) == history
    assert history._repr_html_().count("<th") == 2


def test_searches_curves_and_checks_have_a_view() -> None:
    """What a search, a learning curve, a check of an oracle and scores along a hierarchy say is shown as text, too."""
    scores = evaluate_hierarchy([[1, 1, 0]], [[1, 0, 1]], LabelHierarchy(3, [(0, 1), (0, 2)]))
    tuned = Tuned([Trial({EVIL: 1}, [0.5], 1, 0.5, 1, 0.1, False)], (Rung(1, 1),))
    curve = LearningCurve([CurvePoint(1.0, 0, 2, 4, 0.1, 0.5, 0.5, None)], has_phrases=False)
    shown = [one._repr_html_() for one in (scores, tuned, curve, check_oracle(MulticlassOracle()))]
    assert all(html.startswith(("<pre ", "<div ", "<p>")) and "<script" not in html for html in shown)
    assert "H-loss" in shown[0]
    assert "&lt;script" in shown[1]


def test_a_loaded_model_has_the_same_views(tmp_path: Path) -> None:
    """The history of a file is one that notebooks show, too."""
    model = ChainLabeler(max_iter=5)
    model.fit([[{"w": "a"}, {"w": "b"}]] * 2, [["A", "B"]] * 2).save(tmp_path / "m.spz")
    assert ChainLabeler.load(tmp_path / "m.spz").history_._repr_html_() == model.history_._repr_html_()  # type: ignore[attr-defined]
