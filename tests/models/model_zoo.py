"""A small fitted model of each kind that has a file, and a small input to predict: for the tests of model files."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from labeler_cases import SENTENCES, Y
from parser_cases import corpus

from structpred import Instance
from structpred.io.templates.templates import Atom, Template
from structpred.models import (
    ChainLabeler,
    GaussianProcessLabeler,
    GraphLabeler,
    HierarchicalMultiLabel,
    KernelChainLabeler,
    LinearClassifier,
    LinearOrdinal,
    LinearRegressor,
    MultiLabelMRF,
    ParsingPipeline,
    SegmentLabeler,
    StructuredPredictor,
)
from structpred.models.chain.constraints import ChainConstraints
from structpred.models.kernels.functions import Polynomial
from structpred.models.parser.parser import DependencyParser
from structpred.objectives.regularisers.l1 import L1
from structpred.objectives.scalar.errors import Huber
from structpred.oracles.multiclass import MulticlassOracle


class Example(NamedTuple):
    """A fitted model, and data that it can predict and be scored on; oracle: what `load` must be given."""

    model: Any
    X: Any
    y: Any
    oracle: Any = None

    def predict(self, model: Any) -> Any:
        """What is compared."""
        return model.predict(self.X)


WORDS = [[{"w": w, "long": float(len(w))} for w in words] for words in SENTENCES]
NAMES = [[[w, w[-1]] for w in words] for words in SENTENCES]
ROWS = [[(w, w[-1]) for w in words] for words in SENTENCES]
TEMPLATES = [
    Template("w[0]", (Atom(0, 0),)),
    Template("w[-1]|w[0]", (Atom(0, -1), Atom(0, 0)), pad=True),
    Template("end", (Atom(1, 1), Atom(0, 0, "lower"))),
]  # fmt: skip


def dense(n: int, d: int, seed: int = 0) -> Any:
    """Rows of numbers."""
    return np.random.default_rng(seed).normal(size=(n, d)).round(2)


def chain_templates() -> Example:
    """A chain over rows of columns, with constraints."""
    rules = ChainConstraints(forbidden=[("DET", "VERB")], required={"DET": ["NOUN", "ADJ"]}, not_last=["DET"])
    model = ChainLabeler(max_iter=5, template=TEMPLATES, constraints=rules).fit(ROWS, Y)
    return Example(model, ROWS, Y)


def chain_stages() -> Example:
    """A chain of two stages over rows of columns."""
    return Example(ChainLabeler(max_iter=5, template=TEMPLATES, stages=2, n_jobs=2).fit(ROWS, Y), ROWS, Y)


def chain_names() -> Example:
    """A chain over feature dicts, with a dictionary of names."""
    return Example(ChainLabeler("lbfgs", max_iter=3, n_jobs=2).fit(WORDS, Y), WORDS, Y)


def chain_hashed() -> Example:
    """A chain over feature lists, hashed; labels are numbers."""
    codes = [[len(label) for label in labels] for labels in Y]
    return Example(ChainLabeler(max_iter=3, n_bits=6).fit(NAMES, codes), NAMES, codes)


def chain_numeric() -> Example:
    """A chain over rows of numbers."""
    X = [dense(len(words), 3, i) for i, words in enumerate(SENTENCES)]
    return Example(ChainLabeler(max_iter=3).fit(X, Y), X, Y)


def segments() -> Example:
    """A semi-Markov chain over rows of columns: each noun ends a phrase."""
    labels = [["I-N" if tag == "NOUN" and t else "O" for t, tag in enumerate(tags)] for tags in Y]
    return Example(SegmentLabeler(max_iter=3, template=TEMPLATES).fit(ROWS, labels), ROWS, labels)


def kernel_rows() -> Example:
    """A chain with a kernel over rows of columns."""
    model = KernelChainLabeler(max_iter=3, template=TEMPLATES, kernel=Polynomial(2, 0.5)).fit(ROWS, Y)
    return Example(model, ROWS, Y)


def several_kernels() -> Example:
    """A chain with kernels over rows of columns, one of them sparse."""
    kernels = ["linear", ("rbf", 5.0), ("b1spline", 0.5)]
    return Example(KernelChainLabeler(C=10.0, max_iter=3, template=TEMPLATES, kernels=kernels).fit(ROWS, Y), ROWS, Y)


def gaussian_process() -> Example:
    """A Gaussian process over kernel values that are given."""
    rows = np.vstack([dense(len(words), 3, i) for i, words in enumerate(SENTENCES)])
    X = np.split(rows @ rows.T, np.cumsum([len(words) for words in SENTENCES])[:-1])
    return Example(GaussianProcessLabeler(max_iter=3, kernel="precomputed").fit(X, Y), X, Y)


def parser() -> Example:
    """A parser with pruning and relations."""
    X, trees = corpus(12, 0, 0.3)
    model = DependencyParser(prune=2, max_bits=8, max_iter=2).fit(X, trees)
    return Example(model, X[:3], trees[:3])


def pipeline() -> Example:
    """A tagger and a parser of tags."""
    X, trees = corpus(12, 0, 0.3)
    model = ParsingPipeline(jackknife=2, max_bits=8, max_iter=2).fit(X, trees)
    return Example(model, X[:3], trees[:3])


def multilabel() -> Example:
    """Three labels, all joined; with a regulariser other than the usual one."""
    X, labels = dense(12, 3), np.random.default_rng(1).integers(0, 2, (12, 3))
    return Example(MultiLabelMRF(max_iter=5, regulariser=L1(0.01)).fit(X, labels), X[:4], labels[:4])


def hierarchical() -> Example:
    """Four labels in a tree."""
    X, parents = dense(12, 3), [-1, 0, 0, 1]
    labels = np.array([[1, k % 2, k % 3 == 0, k % 4 == 1] for k in range(12)], dtype=np.int64)
    model = HierarchicalMultiLabel(max_iter=5, hierarchy=parents, label_weights="depth").fit(X, labels)
    return Example(model, X[:4], labels[:4])


def graph() -> Example:
    """Small graphs with features of edges, one of them a circle."""
    X = [(dense(4, 2, k), [(0, 1), (1, 2), (2, 3), (3, 0)][: 3 + k % 2], dense(3 + k % 2, 1, k)) for k in range(4)]
    labels = [["a", "b", "c", "a"], ["a", "b", "b", "a"]] * 2
    return Example(GraphLabeler(max_iter=5).fit(X, labels), X, labels)


def structured() -> Example:
    """A class each, by an oracle that the file only names."""
    X, y = [Instance(dense(3, 4, k), (3,)) for k in range(6)], [[k % 3] for k in range(6)]
    return Example(StructuredPredictor(MulticlassOracle(), max_iter=5).fit(X, y), X, y, MulticlassOracle())


def linear() -> Example:
    """Four classes with names."""
    X, y = dense(16, 3), np.array(["a", "b", "c", "d"] * 4)
    return Example(LinearClassifier(class_weight="balanced").fit(X, y), X[:4], y[:4])


def ordinal() -> Example:
    """Three classes on a scale."""
    X, y = dense(12, 3), np.arange(12) % 3
    return Example(LinearOrdinal().fit(X, y), X[:4], y[:4])


def regressor() -> Example:
    """Numbers, with a loss that has a setting."""
    X = dense(12, 3)
    return Example(LinearRegressor(Huber(0.5)).fit(X, X.sum(axis=1)), X[:4], X[:4].sum(axis=1))


KINDS: dict[str, Callable[[], Example]] = {
    make.__name__: make
    for make in (
        chain_templates, chain_stages, chain_names, chain_hashed, chain_numeric, segments, kernel_rows, several_kernels,
        gaussian_process,
        parser, pipeline, multilabel, hierarchical, graph, structured, linear, ordinal, regressor,
    )
}  # fmt: skip
