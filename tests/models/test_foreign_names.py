"""Promises on words of other libraries: the message says what does the same here."""

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import structpred
from structpred.errors import DataError, OracleError, ParameterError
from structpred.models import ChainLabeler, DecisionModel, LinearClassifier, LinearRegressor
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.multiclass import MulticlassOracle

X, Y = [[["w=a"], ["w=b"]]], [["D", "N"]]


def decide(loss: str) -> Any:
    """A decision model with that loss, which is refused when it is fitted."""
    return DecisionModel(MulticlassOracle(), loss=loss, shape=(2,)).fit(np.zeros((2, 1)), np.zeros((2, 2)))


SAID: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "algorithm": (lambda: ChainLabeler(algorithm="lbfgs"), ParameterError, "no setting 'algorithm'; here that is trainer"),
    "max_iterations": (lambda: ChainLabeler(max_iterations=5), ParameterError, "here that is max_iter"),
    "epochs": (lambda: LinearClassifier(epochs=5), ParameterError, "has no setting 'epochs'; here that is max_iter"),
    "class_weight": (lambda: ChainLabeler(class_weight={}), ParameterError, "here that is loss=LabelCosts"),
    "crf": (lambda: ChainLabeler("crf").fit(X, Y), ParameterError, "here that is 'lbfgs' or 'oeg': a conditional random"),
    "adam": (lambda: ChainLabeler("adam").fit(X, Y), ParameterError, "got 'adam'; here that is 'sgd'"),
    "bio": (lambda: ChainLabeler(constraints="bio").fit(X, Y), ParameterError, "here that is 'iob2'"),
    "mse": (lambda: decide("mse"), ParameterError, "got 'mse'; here that is a regressor of the costs"),
    "blackbox": (lambda: decide("blackbox"), ParameterError, "here that is structpred.layers.BlackBoxLayer"),
    "predict_proba": (lambda: ChainLabeler().predict_proba, AttributeError, "here that is predict_marginals, after"),
    "predict_proba of a hinge": (lambda: LinearClassifier().predict_proba, AttributeError, "surrogate='logistic', or 'softmax'"),
    "words": (lambda: ChainLabeler().fit([["the", "dog"]], Y), DataError, "words are no features: give template='pos'"),
    "one sequence": (lambda: ChainLabeler().fit(X[0], Y), DataError, "'w=a'; did you pass one sequence"),
    "words as rows": (lambda: ChainLabeler(template="pos").fit([["the", "dog"]], Y), DataError, r"is the row \('the',\)"),
    "a class": (lambda: structpred.check_oracle(AssignmentOracle), OracleError, r"give an instance, AssignmentOracle\(...\)"),
    "a class to fit": (lambda: DecisionModel(AssignmentOracle).fit([], []), ParameterError, "give an instance"),
}  # fmt: skip


@pytest.mark.parametrize("word", SAID)
def test_what_does_the_same_here(word: str) -> None:
    """One line, with the name here."""
    call, kind, message = SAID[word]
    with pytest.raises(kind, match=message):
        call()


def test_what_is_recommended_works() -> None:
    """Words as rows with a template, as the message says."""
    model = ChainLabeler("perceptron", template="pos", max_iter=2).fit([[("the",), ("dog",)]], Y)
    assert model.predict([[("the",), ("dog",)]])[0].tolist() == Y[0]


def test_frames_and_tensors() -> None:
    """A DataFrame and tensors, alone and in a list, are named, with what makes sequences of them."""
    pandas, torch = pytest.importorskip("pandas"), pytest.importorskip("torch")
    with pytest.raises(DataError, match="got pandas's DataFrame; structpred"):
        ChainLabeler(template="pos").fit(pandas.DataFrame({"w": ["a"]}), Y)
    for tensors in (torch.zeros(1, 2, 3), [torch.zeros(2, 3)]):
        with pytest.raises(DataError, match=r"got torch's Tensor; give X = \[x.detach"):
            ChainLabeler().fit(tensors, Y)


def test_other_names_are_as_before() -> None:
    """Unknown names without a meaning here are Python's errors; own settings, signatures, copies and pickles stay."""
    with pytest.raises(TypeError, match="unexpected keyword argument 'depth'"):
        ChainLabeler(depth=3)
    assert not hasattr(ChainLabeler(), "depth")
    assert not hasattr(LinearRegressor(), "predict_proba")
    assert LinearClassifier(class_weight="balanced").class_weight == "balanced"
    assert LinearClassifier(surrogate="logistic").fit([[0.0], [1.0]], [0, 1]).predict_proba([[1.0]]).shape == (1, 2)
    assert "trainer" in inspect.signature(ChainLabeler).parameters
    model = ChainLabeler(C=0.5)
    assert [pickle.loads(pickle.dumps(model)).C, copy.copy(model).C] == [0.5, 0.5]
