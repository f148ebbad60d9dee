"""The stand-in for pycrfsuite: one program, run on python-crfsuite and on ours, with the import changed."""

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from structpred.compat import CRF, pycrfsuite
from structpred.errors import MissingModelError, ModelFileError, ParameterError
from structpred.models.sklearn_bridge import NotFittedError

X = [
    [{"a": "x", "n": 2.0}, {"a": "y"}, {"a": "x", "more": ["p", "q"]}],
    [{"a": "y"}, {"a": "z", "n": 1.0}],
    [{"a": "z", "b": False}, {"a": "x", "b": True}],
]
Y = [["A", "B", "A"], ["B", "B"], ["C", "A"]]
EXACT = {"epsilon": 1e-10, "delta": 0.0}
NAMED = {"feature.minfreq": 2, "feature.possible_states": True, "feature.possible_transitions": True}


def program(module: ModuleType, path: Path, params: dict[str, Any]) -> tuple[list[list[str]], list[float], dict[str, float]]:
    """Trains, opens the file, tags: the labels, the probabilities of all labels of X[0], and those of some whole outputs."""
    trainer = module.Trainer("lbfgs", verbose=False)
    trainer.set_params({**params, **EXACT})
    for x, y in zip(X, Y, strict=True):
        trainer.append(x, y)
    trainer.append(X[0], ["C", "C", "C"], group=7)
    trainer.train(str(path), holdout=7)
    tagger = module.Tagger()
    with tagger.open(str(path)):
        tagged = [tagger.tag(x) for x in X]
        tagger.set(X[0])
        assert tagger.tag() == tagged[0]
        marginals = [tagger.marginal(label, t) for label in "ABC" for t in range(3)]
        outputs = {y: tagger.probability(list(y)) for y in ("ABA", "CCC", "BBA")}
        assert sorted(tagger.labels()) == ["A", "B", "C"]
    with pytest.raises(ValueError, match="not"):
        tagger.tag(X[0])
    assert trainer.logparser.last_iteration["num"] > 1
    return tagged, marginals, outputs


@pytest.mark.parametrize("params", [{"c2": 0.2}, {"c1": 0.1, "c2": 0.2, **NAMED}])
def test_the_program_gives_the_same_on_both(params: dict[str, Any], tmp_path: Path) -> None:
    """Labels are equal, and probabilities of labels and of whole outputs to three places; the group held out is not learnt."""
    peer = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    ours, theirs = program(pycrfsuite, tmp_path / "ours", params), program(peer, tmp_path / "theirs", params)
    assert ours[0] == theirs[0]
    assert ours[1] == pytest.approx(theirs[1], abs=1e-3)
    assert ours[2] == pytest.approx(theirs[2], abs=1e-3)


def test_probabilities_of_all_outputs_add_up_to_one(tmp_path: Path) -> None:
    """Those of two tokens, by enumeration; an empty sequence has one output, which is certain."""
    trainer = pycrfsuite.Trainer(params={"c2": 0.2}, verbose=False)
    for x, y in zip(X, Y, strict=True):
        trainer.append(x, y)
    trainer.train(tmp_path / "model")
    tagger = pycrfsuite.Tagger()
    tagger.open(tmp_path / "model")
    tagger.set(X[1])
    assert sum(tagger.probability(a + b) for a in "ABC" for b in "ABC") == pytest.approx(1.0, abs=1e-6)
    assert (tagger.tag([]), tagger.probability([])) == ([], 1.0)
    assert CRF(model_filename=tmp_path / "model").predict(X) == [tagger.tag(x) for x in X]


@pytest.mark.mostly_slow
@pytest.mark.parametrize("algorithm", ["pa", "lbfgs", "l2sgd", "ap", "arow"])
def test_settings_reach_the_trainer(algorithm: str, tmp_path: Path) -> None:
    """Every parameter that python-crfsuite has for an algorithm is taken by its name there, and decides."""
    peer = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    theirs = peer.Trainer(algorithm=algorithm, verbose=False)
    trainer = pycrfsuite.Trainer(algorithm, {**theirs.get_params(), "max_iterations": 2}, verbose=False)
    trainer.append(X[0], Y[0])
    trainer.train(tmp_path / "model")
    assert 1 <= len(trainer.logparser.iterations) <= 2


def test_a_setting_of_nobody_is_refused() -> None:
    """A name that CRFsuite has for no algorithm is refused at once; one of another algorithm when it is trained."""
    with pytest.raises(ParameterError, match="feature_minfreq: CRFsuite has no such parameter"):
        pycrfsuite.Trainer(params={"feature_minfreq": 1})
    with pytest.raises(ParameterError, match="pa_type belongs to algorithm=pa"):
        pycrfsuite.Trainer("ap", {"type": 1}).train("nowhere")


def test_files_that_are_no_models(tmp_path: Path) -> None:
    """A missing file and one of CRFsuite's own are errors that say so, and a tagger that opened none says that."""
    tagger = pycrfsuite.Tagger()
    with pytest.raises(MissingModelError, match="no such file"):
        tagger.open(tmp_path / "nothing")
    (tmp_path / "theirs").write_bytes(b"lCRF" + bytes(100))
    with pytest.raises(ModelFileError, match="it is a CRFsuite model"):
        tagger.open(tmp_path / "theirs")
    with pytest.raises(NotFittedError):
        pycrfsuite.Tagger().labels()
