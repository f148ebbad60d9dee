"""The stand-in for sklearn_crfsuite.CRF: its calls, its attributes, and CRFsuite's own weights."""

import inspect
import pickle
from pathlib import Path

import numpy as np
import pytest

from structpred.compat import CRF
from structpred.errors import DataError, ParameterError

X = [
    [{"a": "x", "n": 2.0}, {"a": "y"}, {"a": "x"}],
    [{"a": "y"}, {"a": "z", "n": 1.0}],
    [{"a": "z", "b": False}, {"a": "x", "b": True}],
]
Y = [["A", "B", "A"], ["B", "B"], ["C", "A"]]
EXACT = {"epsilon": 1e-10, "delta": 0.0}


def peer_weights(tmp_path: Path, algorithm: str, params: dict) -> tuple[dict, dict, float]:
    """State features, transitions and loss of python-crfsuite."""
    pycrfsuite = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    trainer = pycrfsuite.Trainer(algorithm=algorithm, verbose=False)
    trainer.set_params({**params, **EXACT})
    for x, y in zip(X, Y, strict=True):
        trainer.append(x, y)
    trainer.train(str(tmp_path / "model"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(tmp_path / "model"))
    info = tagger.info()
    return info.state_features, info.transitions, trainer.logparser.last_iteration["loss"]


@pytest.mark.parametrize("c1", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("min_freq", [0, 2])
def test_the_weights_are_those_of_crfsuite(tmp_path: Path, c1: float, every: bool, min_freq: int) -> None:
    """On a small problem run to its optimum, weights, zeros and loss agree, whatever pairs have a weight."""
    crf = CRF(c1=c1, c2=0.2, min_freq=min_freq, all_possible_states=every, all_possible_transitions=every, **EXACT).fit(X, Y)
    names = {"feature.minfreq": min_freq, "feature.possible_states": every, "feature.possible_transitions": every}
    states, transitions, loss = peer_weights(tmp_path, "lbfgs", {"c1": c1, "c2": 0.2, **names})
    for ours, theirs in ((crf.state_features_, states), (crf.transition_features_, transitions)):
        for key in {*ours, *theirs}:
            assert ours.get(key, 0.0) == pytest.approx(theirs.get(key, 0.0), abs=2e-3), key
    assert crf.training_log_.last_iteration["loss"] == pytest.approx(loss, rel=1e-4)


def test_l2sgd_has_the_objective_of_lbfgs() -> None:
    """With a weight for every pair the two algorithms reach nearly one optimum (l2sgd has start and stop weights too)."""
    sgd = CRF("l2sgd", c2=0.2, delta=1e-7).fit(X, Y)
    gap = sgd.certificate_.relative_gap
    assert gap is not None
    assert gap <= 1e-6
    lbfgs = CRF(c2=0.2, all_possible_states=True, all_possible_transitions=True, **EXACT).fit(X, Y)
    assert sgd.certificate_.primal <= lbfgs.certificate_.primal + 1e-6
    assert sgd.predict(X) == lbfgs.predict(X)


@pytest.mark.parametrize("algorithm", [None, "lbfgs", "l2sgd", "ap", "pa", "arow", "averaged-perceptron", "passive-aggressive"])
def test_every_algorithm_learns(algorithm: str | None) -> None:
    """All names that CRFsuite has are taken, and learn a tiny set by heart; predictions are plain lists."""
    crf = CRF(algorithm, **({"c2": 0.01} if algorithm in (None, "lbfgs", "l2sgd") else {})).fit(X, Y)
    assert crf.predict(X) == Y
    assert crf.predict_single(X[0]) == Y[0]
    assert crf.score(X, Y) == 1.0


def test_parameters_have_the_names_and_the_order_of_the_original() -> None:
    """Positional and keyword calls mean the same; all defaults are None or False."""
    names = (
        "algorithm min_freq all_possible_states all_possible_transitions c1 c2 max_iterations num_memories epsilon period delta "
        "linesearch max_linesearch calibration_eta calibration_rate calibration_samples calibration_candidates "
        "calibration_max_trials pa_type c error_sensitive averaging variance gamma verbose model_filename "
        "keep_tempfiles trainer_cls"
    )
    signature = inspect.signature(CRF)
    assert list(signature.parameters) == names.split()
    assert {p.default for p in signature.parameters.values()} == {None, False}
    assert list(inspect.signature(CRF.fit).parameters)[1:] == ["X", "y", "X_dev", "y_dev"]


ALL = {
    "lbfgs": {"c1": 0.1, "c2": 0.1, "num_memories": 3, "epsilon": 1e-4, "period": 5, "delta": 1e-4, "linesearch": "Backtracking",
              "max_linesearch": 10},
    "l2sgd": {"c2": 0.1, "period": 5, "delta": 1e-2, "calibration_eta": 0.1, "calibration_rate": 2.0, "calibration_samples": 10,
              "calibration_candidates": 3, "calibration_max_trials": 5},
    "ap": {"epsilon": 0.0},
    "pa": {"epsilon": 0.0, "pa_type": 2, "c": 0.5, "error_sensitive": False, "averaging": False},
    "arow": {"epsilon": 0.0, "variance": 2.0, "gamma": 0.5},
}  # fmt: skip


@pytest.mark.parametrize("algorithm", ALL)
def test_every_parameter_of_an_algorithm_is_taken(algorithm: str) -> None:
    """All parameters that CRFsuite documents for an algorithm, at once; and none of another's."""
    shared = {"min_freq": 1, "all_possible_states": True, "all_possible_transitions": True, "max_iterations": 7}
    assert CRF(algorithm, **shared, **ALL[algorithm]).fit(X, Y).n_iter_ <= 7
    for other, settings in ALL.items():
        for name in set(settings) - set(ALL[algorithm]):
            with pytest.raises(ParameterError, match=rf"{name} belongs to algorithm=.*{other}"):
                CRF(algorithm, **{name: settings[name]}).fit(X, Y)


BAD = [
    {"algorithm": "sgd"},
    {"algorithm": 3},
    {"c1": -1.0},
    {"c2": float("nan")},
    {"c2": "0.1"},
    {"min_freq": -1},
    {"max_iterations": 0},
    {"max_iterations": 1.5},
    {"linesearch": "Armijo"},
    {"trainer_cls": object},
    {"algorithm": "pa", "pa_type": 3},
    {"algorithm": "pa", "c": 0.0},
    {"algorithm": "arow", "gamma": 0.0},
]


@pytest.mark.parametrize("settings", BAD, ids=str)
def test_bad_settings_are_refused(settings: dict) -> None:
    """ParameterError, at fit, naming the parameter."""
    name = list(settings)[-1]
    with pytest.raises(ParameterError, match=name):
        CRF(**settings).fit(X, Y)


def test_marginals() -> None:
    """Dicts by label, in the order of classes_ or not, that add up to one; online learners have none and say so."""
    crf = CRF(c2=0.1).fit(X, Y)
    found = crf.predict_marginals(X)
    assert [len(sequence) for sequence in found] == [3, 2, 2]
    assert all(set(position) == set(crf.classes_) for sequence in found for position in sequence)
    assert all(sum(position.values()) == pytest.approx(1.0) for sequence in found for position in sequence)
    assert found[0] == crf.predict_marginals_single(X[0])
    with pytest.raises(ParameterError, match="lbfgs"):
        CRF("ap").fit(X, Y).predict_marginals(X)


def test_attributes() -> None:
    """Labels in order of appearance, and what the weights say of attributes and transitions."""
    crf = CRF(c1=0.05, c2=0.1).fit([X[2], *X[:2]], [Y[2], *Y[:2]])
    assert crf.classes_ == ["C", "A", "B"]
    assert isinstance(crf.classes_, list)
    states = crf.state_features_
    assert set(crf.attributes_) == {attribute for attribute, _ in states}
    assert crf.num_attributes_ == len(crf.attributes_)
    assert all(isinstance(weight, float) and weight for weight in [*states.values(), *crf.transition_features_.values()])
    assert states["a:x", "A"] > 0
    assert crf.size_ > 0
    log = crf.training_log_
    assert [row["num"] for row in log.iterations] == list(range(1, crf.n_iter_ + 1))
    losses = [row["loss"] for row in log.iterations]
    assert losses == sorted(losses, reverse=True)
    assert log.last_iteration == log.iterations[-1]


def test_predictions_follow_from_the_weights_shown() -> None:
    """The best labelling by state_features_ and transition_features_ alone, over all labellings, is the predicted one."""
    from itertools import pairwise, product

    crf = CRF(c1=0.02, c2=0.05, all_possible_states=True).fit(X, Y)
    states, steps = crf.state_features_, crf.transition_features_
    for x in X:
        tokens = [
            {f"{k}:{v}" if isinstance(v, str) else k: 1.0 if isinstance(v, str) else float(v) for k, v in t.items()} for t in x
        ]

        def score(labels: tuple[str, ...], tokens: list = tokens) -> float:
            emitted = sum(states.get((f, label), 0.0) * v for t, label in zip(tokens, labels, strict=True) for f, v in t.items())
            return emitted + sum(steps.get(pair, 0.0) for pair in pairwise(labels))

        assert list(max(product(crf.classes_, repeat=len(x)), key=score)) == crf.predict_single(x)


def test_held_out_data_change_nothing() -> None:
    """X_dev and y_dev take no part in training; the log has their accuracy; one without the other is refused."""
    plain, dev = CRF().fit(X, Y), CRF().fit(X, Y, X_dev=X[:1], y_dev=[["A", "A", "A"]])
    np.testing.assert_array_equal(plain.coef_, dev.coef_)
    assert dev.training_log_.dev_accuracy == dev.score(X[:1], [["A", "A", "A"]])
    assert plain.training_log_.dev_accuracy is None
    with pytest.raises(ParameterError, match="both"):
        CRF().fit(X, Y, X_dev=X)


def test_empty_sequences() -> None:
    """Nothing gets no labels, wherever it stands; training on nothing is refused."""
    crf = CRF().fit(X, Y)
    assert crf.predict([[], X[0], []]) == [[], crf.predict_single(X[0]), []]
    assert crf.predict_marginals_single([]) == []
    with pytest.raises(DataError, match="sample 1"):
        CRF().fit([X[0], []], [Y[0], []])


def test_copies_and_files(tmp_path: Path) -> None:
    """Pickles are the same model; model_filename writes one that another CRF reads; other files are refused."""
    path = tmp_path / "model"
    crf = CRF(model_filename=str(path)).fit(X, Y)
    for copy in (pickle.loads(pickle.dumps(crf)), CRF(model_filename=path)):
        assert copy.predict_marginals(X) == crf.predict_marginals(X)
        assert copy.state_features_ == crf.state_features_
    path.write_bytes(b"lCRF\0\0\0\0FOMC")
    with pytest.raises(DataError):
        CRF(model_filename=path).predict(X)
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_verbose_goes_to_the_log(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    """One line per iteration to the logger structpred.compat, nothing to the standard output."""
    with caplog.at_level("INFO", logger="structpred.compat"):
        crf = CRF(verbose=True, max_iterations=3).fit(X, Y)
    assert len([r for r in caplog.records if r.name == "structpred.compat"]) == crf.n_iter_ == 3
    assert capsys.readouterr().out == ""


def test_no_l2_term_is_possible(tmp_path: Path) -> None:
    """c2=0 with c1 > 0 gives CRFsuite's lasso."""
    crf = CRF(c1=0.3, c2=0, **EXACT).fit(X, Y)
    states, _, loss = peer_weights(tmp_path, "lbfgs", {"c1": 0.3, "c2": 0.0})
    assert crf.training_log_.last_iteration["loss"] == pytest.approx(loss, rel=1e-3)
    assert {key for key, weight in crf.state_features_.items() if abs(weight) > 0.05} <= set(states)
