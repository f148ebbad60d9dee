"""An exported model of label sets predicts the sets of the model, bit for bit, with every inference that it has."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from light_programs import full_of_ties, program_of
from scipy import sparse

from structpred.data.hierarchy import LabelHierarchy
from structpred.models import HierarchicalMultiLabel, MultiLabelMRF

#: two trees, one of whose parents comes after its children
PARENTS = [2, 0, -1, 2, -1, 4, 4]
TREE = LabelHierarchy.from_parents(PARENTS)


def examples(n: int, rng: np.random.Generator) -> np.ndarray:
    """Whole numbers, many of them zero."""
    return rng.integers(-2, 3, size=(n, 8)) * rng.integers(0, 2, size=(n, 8)) * 1.0


def sets(n: int, n_labels: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of 0 and 1."""
    return rng.integers(0, 2, size=(n, n_labels))


def paths(n: int, rng: np.random.Generator) -> np.ndarray:
    """Rows that are one path from a root to a leaf."""
    return TREE.closed(np.eye(7, dtype=int)[rng.choice([1, 3, 5, 6], size=n)])


def fitted(case: str, rng: np.random.Generator) -> Any:
    """A model of each inference."""
    X = examples(30, rng)
    short: dict[str, Any] = {"max_iter": 2, "random_state": 0}
    if case == "path":
        return HierarchicalMultiLabel(hierarchy=TREE, **short).fit(X, paths(30, rng))
    if case in ("node", "trees"):
        return HierarchicalMultiLabel(hierarchy=TREE, require=case, **short).fit(X, paths(30, rng))
    if case == "leaf":
        return HierarchicalMultiLabel(hierarchy=TREE, require="leaf", scale="maxabs", **short).fit(X, paths(30, rng))
    if case in ("closed", "tables"):
        own = {"hierarchy": TREE, "tables": case == "tables", "require": None}
        return HierarchicalMultiLabel(bias=0.0, **own, **short).fit(X, TREE.closed(sets(30, 7, rng)))
    if case == "directed graph":
        graph = LabelHierarchy(4, [(0, 2), (1, 2), (2, 3)])
        return HierarchicalMultiLabel(hierarchy=graph, **short).fit(X, graph.closed(sets(30, 4, rng)))
    edges, n_labels, scale = {
        "complete": ("complete", 5, "standard"), "one label": ("complete", 1, None), "some pairs": (7, 11, "maxabs"),
        "tree": ("tree", 20, None), "forest": ([(3, 18), (0, 3)], 19, "standard"), "independent": ([], 17, None),
    }[case]  # fmt: skip
    return MultiLabelMRF(edges=edges, scale=scale, **short).fit(X, sets(30, n_labels, rng))


CASES = (
    "path", "node", "trees", "leaf", "closed", "tables", "directed graph", "complete", "one label", "some pairs", "tree",
    "forest", "independent",
)  # fmt: skip


@pytest.mark.mostly_slow
@pytest.mark.parametrize("case", CASES)
def test_sets_are_those_of_the_model(case: str, tmp_path: Path) -> None:
    """Trained weights and whole numbers full of ties give the same sets, for arrays and for sparse matrices."""
    rng = np.random.default_rng(2)
    model, X = fitted(case, rng), examples(300, rng)
    for _ in range(3):
        program = program_of(model, tmp_path)
        expected = model.predict(X)
        assert np.array_equal(program.predict(X), expected)
        assert np.array_equal(program.predict(sparse.csr_array(X)), expected)
        full_of_ties(model, rng)
    assert program.predict(X[:0]).shape == (0, model.n_labels_)
    with pytest.raises(program.PredictorError, match="X: expected 8 feature columns, got 7"):
        program.predict(X[:, 1:])
    with pytest.raises(program.PredictorError, match="X: features must be finite"):
        program.predict(X + np.inf)
