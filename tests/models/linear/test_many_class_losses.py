"""Linear classifiers of many classes with any loss of their scores, by name or as an object."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structpred.errors import ParameterError
from structpred.models import LinearClassifier, load
from structpred.objectives.scalar.classes import TopK
from structpred.trainers.pegasos import Pegasos

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = (X @ RNG.normal(size=(3, 4))).argmax(axis=1)


@pytest.mark.parametrize("surrogate", ["softmax", "max_hinge", "top_k", "signed_top_k", TopK(3)])
def test_every_loss_trains_by_name_or_object(surrogate: Any, tmp_path: Path) -> None:
    """To its certificate, better than the largest class alone; files keep the loss with its setting."""
    model = LinearClassifier(surrogate=surrogate, tol=1e-3).fit(X, Y)
    assert model.converged_
    assert model.certificate_.proven
    assert model.score(X, Y) > np.bincount(Y).max() / len(Y) + 0.2
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert getattr(again.surrogate, "k", again.surrogate) == getattr(surrogate, "k", surrogate)


def test_pegasos_trains_two_classes_and_many() -> None:
    """By name and with mini-batches; its weights decide nearly as those of dual ascent."""
    for y in (Y, Y > 1):
        best = LinearClassifier().fit(X, y)
        for trainer in ("pegasos", Pegasos(batch=4)):
            found = LinearClassifier(trainer, max_iter=200).fit(X, y)
            assert np.mean(found.predict(X) == best.predict(X)) >= 0.9
            assert found.certificate_.dual is None


def test_the_soft_max_gives_probabilities() -> None:
    """Of all classes, the largest that of the prediction; at the optimum their sums over the data are near the counts."""
    model = LinearClassifier(surrogate="softmax", C=10.0, tol=1e-6).fit(X, Y)
    found = model.predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_array_equal(found.argmax(axis=1), model.predict(X))
    np.testing.assert_allclose(found.sum(axis=0), np.bincount(Y), atol=1.0)
    assert not hasattr(LinearClassifier(surrogate="max_hinge"), "predict_proba")


def test_k_and_the_number_of_classes_must_fit() -> None:
    """k as large as the number of classes, and losses of many scores for two classes, in words."""
    with pytest.raises(ParameterError, match="TopK: k must be below the number of classes, got k=4 for 4 classes"):
        LinearClassifier(surrogate=TopK(4)).fit(X, Y)
    with pytest.raises(ParameterError, match="for two classes take a loss of one score, such as 'logistic' or 'hinge'"):
        LinearClassifier(surrogate="softmax").fit(X, Y > 1)
