"""The regulariser of an estimator: it reaches every problem that is solved, and model files hold it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_zoo import KINDS
from sklearn.base import clone

from structpred.errors import MissingCapabilityError, ParameterError
from structpred.models import ChainLabeler, load
from structpred.models.bundles import to_bundle
from structpred.objectives.regularisers.l1 import L1

#: so much of the l1 norm leaves no weight but zero
ALL_ZERO = 1e9


@pytest.mark.parametrize("name", ["chain_numeric", "parser", "multilabel", "hierarchical", "graph", "structured"])
@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_the_regulariser_reaches_every_problem(name: str, tmp_path: Path) -> None:
    """With a heavy l1 norm all weights are zero, those of a parser's relations and pruning, too; files bring it back."""
    example = KINDS[name]()
    assert ("regulariser" in to_bundle(example.model).header) == (name == "multilabel")  # the others have the usual one
    model: Any = clone(example.model).set_params(trainer="bcfw", regulariser=L1(ALL_ZERO), max_iter=1)
    model.fit(example.X, example.y).save(tmp_path / "m.spz")
    loaded = load(tmp_path / "m.spz", oracle=example.oracle)
    for one in (model, loaded):
        for part in (one, getattr(one, "relations_", None), getattr(one, "pruner_", None)):
            assert part is None or (not part.coef_.any() and vars(part.regulariser) == {"mu": ALL_ZERO})
    loaded.set_params(regulariser=None).fit(example.X, example.y)
    assert loaded.coef_.any()


def test_a_regulariser_of_ones_own_is_not_in_the_file(tmp_path: Path) -> None:
    """The model predicts, and a second fit asks for the object."""

    class Mine(L1):
        name = ""

    X, y = [np.eye(2)] * 2, [["a", "b"]] * 2
    ChainLabeler(regulariser=Mine(0.01)).fit(X, y).save(tmp_path / "m.spz")
    model = ChainLabeler.load(tmp_path / "m.spz")
    assert model.predict(X)[0].tolist() == ["a", "b"]
    with pytest.raises(ParameterError, match=r"regulariser: .*Mine \(an object that model files do not hold; give it again\)"):
        model.fit(X, y)


def test_learning_in_pieces_keeps_to_the_regulariser() -> None:
    """partial_fit and fit_stream refuse one that the trainer cannot minimise, and partial_fit another one than at first."""
    X, y = [np.eye(2)] * 2, [["a", "b"]] * 2
    for fit in (
        lambda model: model.partial_fit(X, y),
        lambda model: model.fit_stream(lambda: zip(X, y, strict=True), ["a", "b"]),
    ):
        with pytest.raises(MissingCapabilityError, match=r"Trainers for L1: .*proximal"):
            fit(ChainLabeler("perceptron", regulariser="l1"))
    model = ChainLabeler("perceptron").partial_fit(X, y).set_params(regulariser="l1")
    with pytest.raises(ParameterError, match="regulariser, C and n_total must stay"):
        model.partial_fit(X, y)


def test_what_online_mkl_learnt_is_in_the_file(tmp_path: Path) -> None:
    """The weights of the groups after each pass, the names of the groups and their places come back."""
    X, y = [[{"a": 1.0, "b": 0.5}, {"b": 2.0}], [{"b": 1.0}, {"a": 1.0}]] * 3, [["p", "q"], ["q", "p"]] * 3
    model = ChainLabeler("online_mkl", C=10.0, max_iter=4, check_every=1).fit(X, y)
    assert model.report_["group_weights"].shape == (4, 3)
    np.testing.assert_allclose(model.report_["group_weights"].sum(axis=1), 1.0)
    assert model.group_names_ == ["features", "start and stop", "transitions"]
    assert model.history_[-1]["gap"] >= 0.0
    model.save(tmp_path / "m.spz")
    loaded = load(tmp_path / "m.spz")
    assert np.array_equal(loaded.report_["group_weights"], model.report_["group_weights"])
    assert loaded.groups_.tolist() == model.groups_.tolist()
    assert loaded.group_names_ == model.group_names_
