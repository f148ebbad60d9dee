"""Trainers in model files: every trainer of ours comes back with its settings and trains the same again."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chain_listing import LABELS, iob2_valid, random_corpus

from structpred.core.oracle import capabilities
from structpred.core.requirements import met
from structpred.errors import ParameterError
from structpred.models import ChainLabeler
from structpred.models.settings import resolve_regulariser, settings_of, settings_restored
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.regularisers.l1 import L1
from structpred.oracles.chain import ChainOracle
from structpred.trainers.bcfw import BCFW
from structpred.trainers.lbfgs import LBFGS
from structpred.trainers.names import trainers
from structpred.trainers.oeg import OnlineEG
from structpred.trainers.online_mkl import OnlineMKL
from structpred.trainers.owlqn import OWLQN
from structpred.trainers.sgd import SGD

OBJECTS = {
    **{name: kind() for name, kind in trainers().items() if met(kind.requires, capabilities(ChainOracle()))},
    "bcfw with settings": BCFW(gap_sampling=True, averaged=False),
    "sgd with settings": SGD(averaged=False),
    "oeg with settings": OnlineEG(start=3.0, eta=0.7),
    "lbfgs with settings": LBFGS(memory=2),
}


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_a_loaded_model_trains_the_same_again(name: str, tmp_path: Path) -> None:
    """Fitted with a trainer object, saved, loaded, fitted again: the same weights to the last bit."""
    X, y = random_corpus(0, 12, LABELS, iob2_valid)
    model: Any = ChainLabeler(OBJECTS[name], max_iter=3).fit(X, y)
    model.save(tmp_path / "m.spz")
    loaded = ChainLabeler.load(tmp_path / "m.spz")
    assert type(loaded.trainer) is type(OBJECTS[name])
    assert vars(loaded.trainer) == vars(OBJECTS[name])
    assert loaded.fit(X, y).coef_.tobytes() == model.coef_.tobytes()


def test_what_a_file_does_not_hold_must_be_given_again(tmp_path: Path) -> None:
    """OWLQN's array of free weights is no plain setting: the model loads and predicts, and another fit is refused."""
    X, y = random_corpus(0, 12, LABELS, iob2_valid)
    model: Any = ChainLabeler(OWLQN(l1=0.1, free=np.arange(3)), surrogate="log", max_iter=3).fit(X, y)
    model.save(tmp_path / "m.spz")
    loaded = ChainLabeler.load(tmp_path / "m.spz")
    assert [p.tolist() for p in loaded.predict(X)] == [p.tolist() for p in model.predict(X)]
    with pytest.raises(ParameterError, match="give it again"):
        loaded.fit(X, y)


def test_regularisers_go_by_name_or_as_objects() -> None:
    """Names are found by walking; nonsense is refused with the names there are, and files give objects of ours back."""
    assert type(resolve_regulariser("l1", BCFW())).__name__ == "L1"
    given = L1(0.2)
    assert resolve_regulariser(given, BCFW()) is given
    assert type(resolve_regulariser(None, BCFW())).__name__ == "L2"
    assert type(resolve_regulariser(None, OnlineMKL())).__name__ == "MKL"
    assert vars(settings_restored(settings_of(given))) == {"mu": 0.2}
    for bad, why in (("l11", "one of .*l1, l2.*did you mean 'l1'"), (L1, "an instance"), (3, "an instance")):
        with pytest.raises(ParameterError, match=f"regulariser: expected .*{why}"):
            resolve_regulariser(bad, BCFW())  # type: ignore[arg-type]


@pytest.mark.parametrize("surrogate", ["log", LogLoss(), MarginRescaling(0.5)])
def test_a_loaded_model_keeps_its_surrogate(surrogate: Any, tmp_path: Path) -> None:
    """A second fit of a loaded model trains with the surrogate of the first."""
    x, y = [np.eye(2), np.eye(2)[::-1]], [["a", "b"], ["b", "a"]]
    model = ChainLabeler("sgd", surrogate=surrogate, max_iter=3).fit(x, y)
    model.save(tmp_path / "m.spz")
    loaded = ChainLabeler.load(tmp_path / "m.spz")
    assert loaded.probabilistic_ == model.probabilistic_
    assert np.array_equal(loaded.fit(x, y).coef_, model.coef_)
