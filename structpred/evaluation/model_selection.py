"""Sequences in model selection, where scikit-learn expects rows of one length: picking some, scorers, cross-validation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from structpred.core.types import Integers
from structpred.data.ragged import Ragged
from structpred.errors import DataError, ParameterError
from structpred.evaluation.chunks import SCHEMES
from structpred.evaluation.parsing import evaluate_treebanks
from structpred.evaluation.summary import evaluate_sequences
from structpred.evaluation.trees import UD
from structpred.io.columns import ColumnCorpus
from structpred.io.crfsuite import AttributeCorpus
from structpred.io.multilabel.data import MultiLabelData
from structpred.io.ocr import OcrWords
from structpred.io.treebanks.treebank import Treebank
from structpred.runtime.ranges import picked


def select_sequences(X: Any, chosen: Sequence[int] | Integers) -> Any:
    """The samples with these numbers, in this order, as a corpus or an array of the same kind; a list for any other list.

    >>> corpus = ColumnCorpus.from_rows([[("a",)], [("b",), ("c",)]])
    >>> select_sequences(corpus, [1]).column(0), select_sequences(["x", "y"], [1, 0])
    (['b', 'c'], ['y', 'x'])
    """
    numbers = np.asarray(chosen, dtype=np.int64)
    if isinstance(X, OcrWords):
        return X.select(numbers)
    if isinstance(X, ColumnCorpus):
        tokens, offsets = picked(X.offsets, numbers)
        firsts = None if X.documents is None else np.flatnonzero(np.diff(X.document_of[numbers], prepend=-1))
        return replace(X, codes=X.codes[tokens], offsets=offsets, lines=X.lines[tokens], text=None, documents=firsts)
    if isinstance(X, Ragged) and hasattr(X, "gather"):  # packed
        return X.gather(numbers)
    if isinstance(X, AttributeCorpus):
        tokens, offsets = picked(X.offsets, numbers)
        entries, indptr = picked(X.indptr, tokens)
        labels = [X.labels[i] for i in numbers.tolist()]
        codes, values, lines = X.codes[entries], X.values[entries], X.lines[tokens]
        return replace(X, labels=labels, indptr=indptr, codes=codes, values=values, offsets=offsets, lines=lines)
    if isinstance(X, Treebank | MultiLabelData):
        return X.take(numbers)
    return X[numbers] if hasattr(X, "shape") else [X[i] for i in numbers.tolist()]


#: name -> the figure of Evaluation; all are shares, larger is better
FIGURES = ("token_accuracy", "sequence_accuracy", "word_accuracy", "precision", "recall", "f1", "f1_strict")
#: the same of trees: the figures of ParsingScores, by the rules of Universal Dependencies
TREE_FIGURES = ("uas", "las", "label_accuracy", "exact_match")

Scorer = Callable[[Any, Any, Any], float]


def get_scorer(name: str) -> Scorer:
    """The scorer(estimator, X, y) of this name, for GridSearchCV, cross_val_score and the like; it can be pickled and cloned.

    Of sequences the names in FIGURES, of parsers those in TREE_FIGURES (y: trees). For label sets scikit-learn's own names
    work, such as scoring="f1_micro". Raises ParameterError for an unknown name.

    >>> callable(get_scorer("token_accuracy")), callable(get_scorer("las"))
    (True, True)
    """
    if name in TREE_FIGURES:
        return partial(tree_score, figure=name)
    if name not in FIGURES:
        raise ParameterError(f"scorer: expected one of {', '.join((*FIGURES, *TREE_FIGURES))}, got {name!r}")
    return make_sequence_scorer(name)


def make_sequence_scorer(figure: str = "f1", *, scheme: str = "conlleval") -> Any:
    """The scorer of a figure of evaluate_sequences under a scheme of phrases; it can be pickled and cloned.

    figure: one of FIGURES; precision, recall and f1 are of phrases under `scheme`, as evaluate_sequences has them.
    Raises ParameterError for an unknown figure or scheme.

    >>> callable(make_sequence_scorer("token_accuracy"))
    True
    """
    from sklearn.metrics import make_scorer

    if figure not in FIGURES:
        raise ParameterError(f"figure: expected one of {', '.join(FIGURES)}, got {figure!r}")
    if scheme not in SCHEMES:
        raise ParameterError(f"scheme: expected one of {', '.join(SCHEMES)}, got {scheme!r}")
    return make_scorer(sequence_score, figure=figure, scheme=scheme)


def sequence_score(gold: Sequence[Any], predicted: Sequence[Any], *, figure: str = "f1", scheme: str = "conlleval") -> float:
    """One figure of evaluate_sequences; DataError for one of phrases where the labels mark none.

    >>> sequence_score([["B-X", "O"]], [["B-X", "B-X"]], figure="precision")
    0.5
    """
    found = getattr(evaluate_sequences(gold, predicted, scheme), figure)
    if found is None:
        raise DataError(f"{figure}: the labels mark no phrases (B-X, I-X ...), of which it is a score; use token_accuracy")
    return float(found)


def tree_score(parser: Any, X: Any, y: Any = None, *, figure: str = "las") -> float:
    """One figure of evaluate_trees, by the rules of Universal Dependencies, for what a parser predicts for X.

    X, y: as for DependencyParser.score. Raises DataError where trees have no relations and the figure is about them.
    """
    from structpred.models.parser.sentences import as_treebank

    gold = as_treebank(X, y, trees=True)
    found = getattr(evaluate_treebanks(gold, parser.predict(gold), UD), figure)
    if found is None:
        raise DataError(f"{figure}: it is about relations, which these trees or the parser do not have; use uas")
    return float(found)


def cross_val_predict(
    estimator: Any, X: Any, y: Sequence[Any], *, groups: Any = None, cv: Any = None, n_jobs: int | None = None,
    method: str = "predict", params: Mapping[str, Any] | None = None,
) -> list[Any]:  # fmt: skip
    """For each sequence what a model says that was trained on the other folds: one entry per sequence, in the order of X.

    X, y: lists of sequences; X may be a corpus. cv: folds (None: 5), a splitter such as KFold(5, shuffle=True), or pairs of index
    arrays, whose test parts hold every sequence exactly once. method: "predict", "predict_marginals" or any that gives one
    entry per sequence. params: more arguments of fit; those with one entry per sequence, such as sample_weight, are split along.
    n_jobs: folds at a time, in processes of their own. The estimator is cloned, never changed.

    Raises DataError where X and y do not fit each other, ParameterError for folds that are not a partition.
    """
    from joblib import Parallel, delayed

    for name, values in (("X", X), ("y", y)):
        listed = hasattr(values, "__getitem__") or isinstance(values, Ragged)
        if isinstance(values, str | Mapping) or not hasattr(values, "__len__") or not listed:
            raise DataError(f"{name}: expected a list of sequences, got {type(values).__name__}; folds pick from it by number")
    if len(X) != len(y):
        raise DataError(f"X has {len(X)} sequences but y has {len(y)}")
    n = len(X)
    if not hasattr(estimator, method):
        raise ParameterError(f"method: {type(estimator).__name__} has no {method!r}")
    folds = _folds(cv, y, groups, n)
    jobs = (delayed(_fold)(estimator, X, y, train, test, method, dict(params or {})) for train, test in folds)
    found: list[Any] = [None] * n
    for (_, test), predictions in zip(folds, Parallel(n_jobs=n_jobs)(jobs), strict=True):
        for i, prediction in zip(test.tolist(), predictions, strict=True):
            found[i] = prediction
    return found


def _folds(cv: Any, y: Any, groups: Any, n: int) -> list[tuple[Integers, Integers]]:
    from sklearn.model_selection import check_cv

    numbers = np.arange(n)  # splitters look at y: whole sequences would be mistaken for many labels
    try:
        pairs = list(check_cv(cv, numbers, classifier=False).split(numbers, numbers, groups))
    except (TypeError, ValueError) as error:
        raise ParameterError(f"cv: {error}") from None
    folds = [(_numbers(train, n), _numbers(test, n)) for train, test in pairs]
    tested = np.sort(np.concatenate([test for _, test in folds])) if folds else np.empty(0)
    if not np.array_equal(tested, numbers):
        raise ParameterError("cv: the test parts must hold every sequence exactly once")
    return folds


def _numbers(chosen: Any, n: int) -> Integers:
    array = np.asarray(chosen)
    return np.flatnonzero(array) if array.dtype == bool and len(array) == n else array.astype(np.int64)


def _fold(estimator: Any, X: Any, y: Any, train: Integers, test: Integers, method: str, params: dict[str, Any]) -> list[Any]:
    from sklearn.base import clone

    n = len(X)
    more = {
        name: select_sequences(value, train) if isinstance(value, list | np.ndarray) and len(value) == n else value
        for name, value in params.items()
    }
    model = clone(estimator).fit(select_sequences(X, train), select_sequences(y, train), **more)
    return list(getattr(model, method)(select_sequences(X, test)))
