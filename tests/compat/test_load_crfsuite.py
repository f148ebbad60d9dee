"""Models that CRFsuite trained become ours: the same labels, and all that a ChainLabeler can do."""

import gzip
import sys
from pathlib import Path
from typing import Any

import pytest

from structpred.compat import pycrfsuite
from structpred.compat.pycrfsuite import load_crfsuite
from structpred.errors import DependencyError, MissingModelError, ModelFileError, ParameterError
from structpred.export import export_predictor
from structpred.models import ChainLabeler
from structpred.runtime import dependencies

X = [
    [{"a": "x", "n": 2.0}, {"a": "y"}, {"a": "x --> B: 1.5", "more": ["p", "q "]}],
    [{"a": "y"}, {"a": "z", "n": 1.0}],
    [{"a": " z", "b": False}, {"a": "x", "b": True}, {"a": "z"}],
]
Y = [["no", "B ", "no"], ["B ", "B "], ["(1) A", "no", "(1) A"]]


def trained(path: Path, algorithm: str, X: Any, Y: Any, **params: Any) -> Any:
    """CRFsuite's tagger with the model that it left in the file."""
    peer = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    trainer = peer.Trainer(algorithm, params, verbose=False)
    for x, y in zip(X, Y, strict=True):
        trainer.append(x, y)
    trainer.train(str(path))
    tagger = peer.Tagger()
    tagger.open(str(path))
    return tagger


def labels(model: ChainLabeler, sequences: Any) -> list[list[str]]:
    """What it predicts, as lists."""
    return [found.tolist() for found in model.predict(sequences)]


@pytest.mark.parametrize("algorithm", ["lbfgs", "ap", "arow"])
def test_a_model_moves_over(algorithm: str, tmp_path: Path) -> None:
    """Labels are CRFsuite's, names with odd signs too; it is saved, read, explained and exported as every ChainLabeler."""
    tagger = trained(tmp_path / "theirs", algorithm, X, Y)
    model = load_crfsuite(tmp_path / "theirs", algorithm)
    unseen = [[{"a": "never"}], [["x"], ["y"]]]
    assert labels(model, X + unseen) == [tagger.tag(x) for x in X + unseen]
    model.save(tmp_path / "ours.spz")
    again = ChainLabeler.load(tmp_path / "ours.spz")
    assert labels(again, X) == labels(model, X)
    assert (again.stop_reason_, again.n_iter_, again.coef_.tobytes()) == ("imported", 0, model.coef_.tobytes())
    weights = {(i, j): w for (i, j), w in tagger.info().transitions.items() if w}
    order = model.classes_.tolist()
    shown = model.transitions_
    assert {(order[i], order[j]): pytest.approx(shown[i, j]) for i, j in zip(*shown.nonzero(), strict=True)} == weights
    explained = again.explain(X[0])
    assert explained.score == pytest.approx(again.predict_kbest(X[:1], 1)[0][0][1], rel=1e-5)
    files = export_predictor(again, tmp_path / "light.py")
    names: dict[str, Any] = {"__name__": "light", "__file__": str(files.program)}
    exec(files.program.read_text(), names)
    assert [list(found) for found in names["predict"](X)] == labels(model, X)


def test_probabilities_are_those_of_crfsuite(tmp_path: Path) -> None:
    """After lbfgs marginals agree; after ap there are none. The stand-in for Tagger opens the file that was saved."""
    tagger = trained(tmp_path / "theirs", "lbfgs", X, Y)
    load_crfsuite(tmp_path / "theirs").save(tmp_path / "ours.spz")
    ours = pycrfsuite.Tagger()
    with ours.open(tmp_path / "ours.spz"):
        for x in X:
            tagger.set(x)
            ours.set(x)
            for label in tagger.labels():
                assert ours.marginal(label, 1) == pytest.approx(tagger.marginal(label, 1), abs=1e-5)
    with pytest.raises(ParameterError, match="perceptron"):
        load_crfsuite(tmp_path / "theirs", "averaged-perceptron").predict_marginals(X)


def test_what_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file, a file of another kind, names that its dump cannot hold, an algorithm of nobody, python-crfsuite missing."""
    with pytest.raises(MissingModelError, match="nothing: there is no such file"):
        load_crfsuite(tmp_path / "nothing")
    (tmp_path / "text").write_text("DET\tw=the\n")
    with pytest.raises(ModelFileError, match="which begins with lCRF, got b'DET"):
        load_crfsuite(tmp_path / "text")
    for word, label in (("a\nb", "B"), ("a", "B --> C")):
        trained(tmp_path / "broken", "lbfgs", [[["one"], [word]]], [["A", label]])
        with pytest.raises(ModelFileError, match="is there a line break in an attribute, or an arrow --> in a label"):
            load_crfsuite(tmp_path / "broken")
    with pytest.raises(ParameterError, match="expected one of lbfgs, l2sgd, ap, pa, arow, got 'sgd'"):
        load_crfsuite(tmp_path / "broken", "sgd")
    monkeypatch.setattr(dependencies, "installed_version", lambda name: None)
    with pytest.raises(DependencyError, match=r"needs python-crfsuite, .* 'structpred\[crfsuite\]'"):
        load_crfsuite(tmp_path / "broken")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "name"), [("lbfgs", "addresses_us"), ("ap", "ner_norwegian_nynorsk"), ("arow", "conll2000")]
)
def test_real_models_predict_the_same(algorithm: str, name: str, data_dir: Path, tmp_path: Path) -> None:
    """Three algorithms on three data sets: every label of every test sequence is CRFsuite's, but where its own scores tie."""
    found = {}
    for part in ("train", "dev" if name.startswith("ner") else "test"):
        ending, separator = ("txt", " ") if name == "conll2000" else ("tsv", "\t")
        with gzip.open(data_dir / name / f"{part}.{ending}.gz", "rt", encoding="utf-8") as file:
            blocks = file.read().split("\n\n")
        rows = [[line.split(separator) for line in block.split("\n") if line] for block in blocks]
        found[part] = [block for block in rows if block]
    train, test = found.values()
    X, X_test = ([[described(s, t) for t in range(len(s))] for s in part] for part in (train[:6000], test))
    passes = {"max_iterations": 60 if algorithm == "lbfgs" else 5}
    tagger = trained(tmp_path / "theirs", algorithm, X, [[row[-1] for row in s] for s in train[:6000]], **passes)
    model = load_crfsuite(tmp_path / "theirs", algorithm)
    differ = [
        (x, own) for x, own, ours in zip(X_test, map(tagger.tag, X_test), labels(model, X_test), strict=True) if own != ours
    ]
    assert len(differ) <= 2
    for x, own in differ:  # a tie within the six digits of the dump: CRFsuite shuffles as it likes, so no two models are the same
        (_, best), *others = model.predict_kbest([x], 5)[0]
        assert own in [found.tolist() for found, score in others if score > best - 1e-4]


def described(sentence: list[list[str]], t: int) -> dict[str, Any]:
    """A word, its end and its case, and the words beside it, in a dict in a dict."""
    near = {str(k): sentence[t + k][0].lower() for k in (-1, 1) if 0 <= t + k < len(sentence)}
    word = sentence[t][0]
    return {"word": word, "end": word[-3:], "title": word.istitle(), "digit": word.isdigit(), "near": near}


@pytest.mark.slow
def test_programs_that_switch_are_compared(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """benchmarks/programs.py --quick: four programs, algorithms on both sides of each row, scores as equal as it states."""
    pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    benchmarks = Path(__file__).resolve().parents[2] / "benchmarks"
    monkeypatch.syspath_prepend(str(benchmarks))
    monkeypatch.setenv("PYTHONPATH", str(benchmarks.parent))
    monkeypatch.delitem(sys.modules, "measure", raising=False)
    import programs

    monkeypatch.setattr(sys, "argv", ["programs.py", "--quick"])
    programs.main()
    lines = capsys.readouterr().out.splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")][1:]
    assert {row[0] for row in rows} == set(programs.TITLES.values())
    pairs = {(row[2].removeprefix("CRFsuite "), row[5]) for row in rows}
    assert pairs == {(name, side) for name in ("lbfgs", "ap") for side in (programs.OURS[name], "ChainLabeler sgd")}
    scores = [line for line in lines if "points lower" in line]
    assert len(scores) == 12  # lbfgs beside both of ours, ap beside its own
    assert [line for line in scores if not line.startswith("met ")] == []
