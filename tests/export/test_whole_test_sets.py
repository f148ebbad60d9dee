"""Exported programs on whole test sets: not one label differs, whatever the trainer."""

from pathlib import Path
from typing import Any

import pytest
from light_programs import program_of

from structpred.io import read_clus, read_columns, read_mulan, read_treebank
from structpred.models import ChainLabeler, HierarchicalMultiLabel, MultiLabelMRF

pytestmark = pytest.mark.slow


def differing(model: Any, X: Any, folder: Path) -> int:
    """How many samples the program labels in another way than the model."""
    expected, found = model.predict(X), program_of(model, folder).predict(X)
    return sum(a.tolist() != b.tolist() for a, b in zip(expected, found, strict=True))


@pytest.mark.parametrize(
    ("trainer", "settings"),
    [
        ("sgd", {}),
        ("bcfw", {"constraints": "iob2"}),
        ("perceptron", {}),
        ("lbfgs", {"max_iter": 5, "min_count": 2}),
        ("mira", {"n_bits": 14}),
    ],
)
def test_chunking(trainer: str, settings: dict[str, Any], data_dir: Path, tmp_path: Path) -> None:
    """CoNLL-2000: templates with a dictionary and hashed, weights of 32 and 64 bits, and IOB2."""
    train, test = (read_columns(data_dir / "conll2000" / f"{name}.txt.gz") for name in ("train", "test"))
    train = train.take(0, 500)
    model = ChainLabeler(trainer, template="chunking", random_state=0, **{"max_iter": 2, **settings}).fit(train, train.labels())
    assert differing(model, test.sentences(), tmp_path) == 0
    assert differing(model, [[], *test.sentences()[:600], []], tmp_path) == 0


def test_tagging(data_dir: Path, tmp_path: Path) -> None:
    """English EWT: feature dicts with numbers, and whole numbers of a perceptron's weights, whose scores tie."""
    folder = data_dir / "ud_english_ewt"
    train, test = (read_treebank(folder / f"en_ewt-ud-{name}.conllu.gz").sentences() for name in ("dev", "test"))
    X, X_test = (
        [[{"w": w.lower(), "end": [w[-2:], w[-3:]], "n": 0.1 * len(w), "title": w.istitle()} for w in s.forms] for s in part]
        for part in (train[:600], test)
    )
    model = ChainLabeler("pa", max_iter=1, random_state=0).fit(X, [s.upos for s in train[:600]])
    assert differing(model, X_test, tmp_path) == 0
    model.coef_ = model.coef_.round()
    assert differing(model, X_test, tmp_path) == 0


def test_label_sets(data_dir: Path, tmp_path: Path) -> None:
    """Yeast with all pairs, Enron with a tree of pairs, ImCLEF07A with paths and with sets that have a leaf."""
    models: list[tuple[Any, Any]] = []
    for name, edges in (("yeast", "complete"), ("enron", "tree")):
        folder = data_dir / f"multilabel_{name}"
        train, test = (read_mulan(folder / f"{name}-{part}.arff.gz", folder / f"{name}.xml.gz") for part in ("train", "test"))
        models.append((MultiLabelMRF(edges=edges, max_iter=1, random_state=0).fit(train), test.X))
    folder = data_dir / "hierarchical_imclef07a"
    train, test = (read_clus(folder / f"ImCLEF07A_{part}.arff.gz") for part in ("Train", "Test"))
    for require in ("path", "leaf"):
        made = HierarchicalMultiLabel(require=require, max_iter=1, random_state=0).fit(train.take(range(2000)))
        models.append((made, test.X))
    for model, X in models:
        assert differing(model, X, tmp_path) == 0
