"""Scorers of label sequences inside scikit-learn."""

import pickle

import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from structpred.errors import DataError, ParameterError
from structpred.evaluation import evaluate_sequences
from structpred.evaluation.model_selection import FIGURES, get_scorer, make_sequence_scorer
from structpred.models import ChainLabeler, DependencyParser

X = [[{"w": w} for w in text.split()] for text in ["a b c", "b a", "c c a b", "a c", "b b a", "c a"]]
Y = [[{"a": "B-X", "b": "I-X", "c": "O"}[t["w"]] for t in x] for x in X]
SENTENCES = [[{"form": "cats", "upos": "NOUN"}, {"form": "sleep", "upos": "VERB"}]] * 4
WRONG = [["O", *y[1:]] for y in Y]


class Says(BaseEstimator):
    """An estimator that predicts what it was given."""

    def __init__(self, labels: list[list[str]]) -> None:
        self.labels = labels

    def predict(self, X: object) -> list[list[str]]:
        return self.labels


@pytest.mark.parametrize("figure", FIGURES)
def test_the_figure_is_that_of_the_evaluation(figure: str) -> None:
    """A scorer gives the figure of evaluate_sequences that it is named after."""
    assert make_sequence_scorer(figure)(Says(WRONG), X, Y) == getattr(evaluate_sequences(Y, WRONG), figure)


def test_the_scheme_is_used() -> None:
    """Strict IOB2 finds no phrase where conlleval finds one."""
    says, gold = Says([["I-X"]]), [["I-X"]]
    assert make_sequence_scorer("f1")(says, [[{"w": "b"}]], gold) == 1.0
    assert make_sequence_scorer("f1", scheme="iob2")(says, [[{"w": "b"}]], gold) == 0.0


def test_searches_and_cross_validation_take_it() -> None:
    """GridSearchCV and cross_val_score run with a scorer, in processes of their own too."""
    scorer = make_sequence_scorer("token_accuracy")
    search = GridSearchCV(ChainLabeler(max_iter=5), {"C": [0.1, 1.0]}, scoring=scorer, cv=3).fit(X, Y)
    assert search.best_score_ > 0.5
    assert (cross_val_score(ChainLabeler(max_iter=5), X, Y, scoring=pickle.loads(pickle.dumps(scorer)), cv=KFold(2)) > 0.5).all()


def test_scorers_by_name() -> None:
    """Each name of a figure gives its scorer; those of trees are the figures of evaluate_trees and work in searches."""
    assert get_scorer("f1")(Says(WRONG), X, Y) == make_sequence_scorer("f1")(Says(WRONG), X, Y)
    trees = [[(2, "nsubj"), (0, "root")]] * 4
    search = GridSearchCV(DependencyParser(max_iter=1), {"C": [0.01]}, scoring=get_scorer("las"), cv=2).fit(SENTENCES, trees)
    assert search.best_score_ == 1.0
    swapped = [[(2, "obj"), (0, "root")]] * 4
    parser = pickle.loads(pickle.dumps(search.best_estimator_))
    assert [get_scorer(name)(parser, SENTENCES, swapped) for name in ("uas", "las")] == [1.0, 0.5]
    with pytest.raises(ParameterError, match="las"):
        get_scorer("f2")


def test_no_phrases_have_no_score() -> None:
    """A scorer of phrases refuses labels that mark none, and says what to use."""
    with pytest.raises(DataError, match="use token_accuracy"):
        get_scorer("f1")(Says([["NN"]]), [[{}]], [["NN"]])
    with pytest.raises(DataError, match="use uas"):
        get_scorer("las")(DependencyParser(labelled=False).fit(SENTENCES, [[2, 0]] * 4), SENTENCES, [[2, 0]] * 4)


@pytest.mark.parametrize("bad", [{"figure": "f2"}, {"scheme": "bio"}])
def test_unknown_names_are_refused(bad: dict[str, str]) -> None:
    """The error lists what there is."""
    with pytest.raises(ParameterError, match="expected one of"):
        make_sequence_scorer(**bad)
