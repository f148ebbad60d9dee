"""The rules that outputs along a hierarchy keep: which one is found, what the log says, and what every trainer certifies."""

import logging
from typing import Any

import numpy as np
import pytest
from test_hierarchical import outputs_that, scores_of

from structpred.data.hierarchy import LabelHierarchy
from structpred.models import HierarchicalMultiLabel, MultiLabelMRF, load
from structpred.models.fields.rules import RULES
from structpred.oracles.tree_mrf import TreeMRF

#: two trees, and one whose labels have other numbers than their places
FOREST = LabelHierarchy.from_parents([-1, 0, 0, 1, 1, 2, 2, -1, 7, 7, 8, 8, 9])
TREE = LabelHierarchy.from_parents([4, 4, 0, 0, -1, 1, 1, 3, 3])


def rows_of(tree: LabelHierarchy, per_row: str, n: int = 80, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features, and paths that depend on them: one a row to a leaf, one that is cut at random in 20 % of the rows, two a row, or
    one in each tree that has one."""
    rng = np.random.default_rng(seed)
    leaves = np.array([k for k in range(tree.n) if not tree.children[k]])
    X = rng.normal(size=(n, 5))
    hidden = X @ np.random.default_rng(7).normal(size=(5, len(leaves)))
    root = [next((a for a in np.flatnonzero(tree.ancestors[k]) if not tree.parents[a]), k) for k in leaves]
    Y = np.zeros((n, tree.n), np.int64)
    for i, scores in enumerate(hidden):
        ends = [int(leaves[scores.argmax()])]
        if per_row == "cut" and rng.random() < 0.2:
            above = np.flatnonzero(tree.ancestors[ends[0]])
            ends = [int(rng.choice(above))]
        if per_row == "two":
            ends = leaves[np.argsort(-scores)[:2]].tolist()
        if per_row == "forest":
            best = {r: max((s, k) for s, k, own in zip(scores, leaves, root, strict=True) if own == r) for r in set(root)}
            ends = [k for s, k in best.values() if s > -1.0]
        Y[i, ends] = 1
    return X, tree.closed(Y).astype(np.int64)


@pytest.mark.parametrize(
    ("tree", "per_row", "need", "against"),
    [
        (TREE, "leaf", "path", []),
        (TREE, "cut", "node", ["path"]),
        (TREE, "two", "leaf", ["path", "node", "trees"]),
        (FOREST, "cut", "node", ["path"]),
        (FOREST, "forest", "trees", ["path", "node"]),
        (FOREST, "two", "leaf", ["path", "node", "trees"]),
    ],
)
def test_the_tightest_rule_is_found(
    tree: LabelHierarchy, per_row: str, need: str, against: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Paths that are cut, two a row, one a tree: the rule that all rows keep; the log counts the rows against stricter ones, and
    names the first of them with its labels."""
    X, Y = rows_of(tree, per_row)
    with caplog.at_level(logging.INFO, "structpred.models"):
        model = HierarchicalMultiLabel(max_iter=2, scale=None, hierarchy=tree).fit(X, Y)
    assert model.require_ == need
    assert any(f"(require={need!r})" in line for line in caplog.messages)
    told = [line for line in caplog.messages if line.startswith("not require=")]
    assert [line.split("'")[1] for line in told] == against
    for rule, line in zip(against, told, strict=True):
        allowed = {tuple(row) for row in outputs_that(rule, tree).tolist()}
        bad = [i for i, row in enumerate(Y.tolist()) if tuple(row) not in allowed]
        on = ", ".join(repr(tree.names[k]) for k in np.flatnonzero(Y[bad[0]]))
        assert line.endswith(f"against it {len(bad)} rows, first sample {bad[0]}, the labels {on or 'none'}")


@pytest.mark.mostly_slow
@pytest.mark.parametrize("trainer", ["marginal_bcfw", "bcfw", "n_slack", "sgd"])
@pytest.mark.parametrize(("tree", "per_row", "need"), [(TREE, "cut", "node"), (FOREST, "forest", "trees")], ids=["node", "trees"])
def test_every_trainer_certifies_the_objective_over_what_is_required(
    tree: LabelHierarchy, per_row: str, need: str, trainer: str
) -> None:
    """The primal value is that over all outputs that keep the rule, no bound is above it, and held-out rows are mostly right."""
    X, Y = rows_of(tree, per_row)
    settings: dict[str, Any] = {"C": 0.5, "max_iter": 30, "label_weights": "depth", "random_state": 0, "scale": None}
    model = HierarchicalMultiLabel(trainer, hierarchy=tree, tol=0.0, check_every=5, **settings).fit(X, Y)
    assert model.require_ == need
    outputs, risk = outputs_that(need, tree), 0.0
    for x, truth in zip(X, Y, strict=True):
        gaps = scores_of(model, x, outputs) - scores_of(model, x, truth[None])
        risk += float(((outputs != truth) @ model.label_weights_ + gaps).max())
    wanted = 0.5 / (0.5 * len(X)) * model.coef_ @ model.coef_ + risk / len(X)
    assert model.certificate_.primal == pytest.approx(wanted, rel=1e-6)
    assert all(row["gap"] is None or row["gap"] >= -1e-11 for row in model.history_)  # rounding, at the optimum
    T, truth = rows_of(tree, per_row, 60, 1)
    assert model.score(T, truth) > 0.7
    allowed = {tuple(row) for row in outputs.tolist()}
    assert all(tuple(row) in allowed for row in model.predict(T).tolist())


@pytest.mark.parametrize("surrogate", ["margin", "slack"])
@pytest.mark.parametrize("need", ["node", "trees"])
def test_missing_labels_and_slack_rescaling(need: str, surrogate: str) -> None:
    """Training completes missing labels within the rule; slack rescaling has outputs of it, too."""
    X, Y = rows_of(FOREST, "cut")
    Y[::7, [1, 2, 5]] = -1
    model = HierarchicalMultiLabel(C=0.5, max_iter=5, scale=None, hierarchy=FOREST, require=need, surrogate=surrogate).fit(X, Y)
    assert model.score(*rows_of(FOREST, "cut", 60, 1)) > 0.5


@pytest.mark.parametrize("need", ["path", "node", "trees", "leaf"])
def test_explanations_know_the_rule(need: str) -> None:
    """Scores of explained parts add up to those of the output, and the runner-up is the best other one."""
    X, Y = rows_of(FOREST, "leaf")
    model = HierarchicalMultiLabel(C=0.5, max_iter=5, scale=None, hierarchy=FOREST, require=need).fit(X, Y)
    outputs = outputs_that(need, FOREST)
    scores = scores_of(model, X[0], outputs)
    best = np.argsort(-scores)
    why = model.explain(X[0], against="runner-up")
    assert why.output == [FOREST.names[k] for k in np.flatnonzero(outputs[best[0]])]
    assert why.against == [FOREST.names[k] for k in np.flatnonzero(outputs[best[1]])]
    assert why.score == pytest.approx(scores[best[0]] - scores[best[1]])


@pytest.mark.parametrize(("per_row", "need"), [("cut", "node"), ("forest", "trees")])
def test_files_keep_the_rule_that_was_found(per_row: str, need: str, tmp_path: Any) -> None:
    """A loaded model asks for it, and refuses rows against it."""
    X, Y = rows_of(FOREST, per_row)
    HierarchicalMultiLabel(max_iter=2, scale=None, hierarchy=FOREST).fit(X, Y).save(tmp_path / "m.spz")
    assert load(tmp_path / "m.spz").require == load(tmp_path / "m.spz").require_ == need


def test_the_shell_knows_all_rules() -> None:
    """The choices of --require are the rules, in their order."""
    from structpred.cli.kinds.label_sets import LabelSets

    option = next(option for option in LabelSets.options["train"] if option.name == "require")
    assert tuple(option.type.choices) == ("auto", *RULES, "none")


@pytest.mark.parametrize("edges", ["complete", "tree", [(0, 3), (2, 4)], []], ids=str)
def test_scores_of_labels_on_graphs_are_those_of_all_outputs(edges: Any) -> None:
    """By a pass up and one down where the graph has no cycle, by an inference for each label elsewhere; none for no rows."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 4)), rng.integers(0, 2, (30, 6))
    outputs = np.array(list(np.ndindex(*[2] * 6)))
    for oracle in (None, TreeMRF()) if edges != "complete" else (None,):
        model = MultiLabelMRF(C=1.0, max_iter=5, scale=None, edges=edges, oracle=oracle).fit(X, Y)
        scores = np.array([scores_of(model, x, outputs) for x in X[:8]])
        on = [[s[outputs[:, k] == 1].max() - s[outputs[:, k] == 0].max() for k in range(6)] for s in scores]
        np.testing.assert_allclose(model.predict_scores(X[:8]), on, atol=1e-9)
        assert ((model.predict_scores(X) > 0) == model.predict(X)).all()
        assert model.predict_scores(X[:0]).shape == model.predict(X[:0]).shape == (0, 6)
