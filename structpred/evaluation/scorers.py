"""Scorers of label sequences and of trees for scikit-learn's `scoring=`, whose own take flat labels only."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from structpred.errors import DataError, ParameterError
from structpred.evaluation.chunks import SCHEMES
from structpred.evaluation.parsing import evaluate_treebanks
from structpred.evaluation.parsing_rules import UD
from structpred.evaluation.summary import evaluate_sequences

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
    scorer: Scorer = make_sequence_scorer(name)
    return scorer


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
    found = getattr(evaluate_treebanks(gold, as_treebank(gold, parser.predict(gold)), UD), figure)
    if found is None:
        raise DataError(f"{figure}: it is about relations, which these trees or the parser do not have; use uas")
    return float(found)
