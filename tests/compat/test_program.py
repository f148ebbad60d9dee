"""A program as people write them for sklearn-crfsuite, start to end, with the import changed: chunks of CoNLL-2000."""

import gzip
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import scipy.stats
from sklearn.metrics import make_scorer
from sklearn.model_selection import RandomizedSearchCV, cross_val_score

from structpred import compat as sklearn_crfsuite
from structpred.compat import metrics, scorers

Sentence = list[list[str]]


def read(path: Path, n: int) -> list[Sentence]:
    """The first n sentences."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        blocks = file.read().split("\n\n")[:n]
    return [[line.split(" ") for line in block.split("\n") if line] for block in blocks]


def describe(sentence: Sentence, i: int) -> dict[str, object]:
    """Features of all kinds that feature dicts may hold: strings, truth values, a number; of a word and its neighbours."""
    features: dict[str, object] = {"bias": 1.0, "first": i == 0, "last": i == len(sentence) - 1}
    for k in (-1, 0, 1):
        if 0 <= i + k < len(sentence):
            word, tag = sentence[i + k][:2]
            features |= {f"{k}.low": word.lower(), f"{k}.tag": tag, f"{k}.title": word.istitle(), f"{k}.digit": word.isdigit()}
    return features | {"end": sentence[i][0][-3:]}


@pytest.fixture(scope="module")
def corpus(data_dir: Path) -> tuple[list, list, list, list]:
    """X_train, y_train, X_test, y_test: 200 and 100 sentences."""
    out: list = []
    for name, n in (("train", 200), ("test", 100)):
        sentences = read(data_dir / "conll2000" / f"{name}.txt.gz", n)
        out += [[[describe(s, i) for i in range(len(s))] for s in sentences], [[row[2] for row in s] for s in sentences]]
    return tuple(out)


@pytest.mark.slow
def test_train_evaluate_inspect(corpus) -> None:
    """Elastic net, F1 over all labels but O, a report by label, the strongest weights."""
    X_train, y_train, X_test, y_test = corpus
    crf = sklearn_crfsuite.CRF(algorithm="lbfgs", c1=0.1, c2=0.1, max_iterations=100, all_possible_transitions=True)
    crf.fit(X_train, y_train)
    labels = list(crf.classes_)
    labels.remove("O")
    y_pred = crf.predict(X_test)
    assert metrics.flat_f1_score(y_test, y_pred, average="weighted", labels=labels, zero_division=0) > 0.8
    by_type = sorted(labels, key=lambda name: (name[1:], name[0]))
    report = metrics.flat_classification_report(y_test, y_pred, labels=by_type, digits=3, zero_division=0)
    assert "B-NP" in report
    (before, after), weight = Counter(crf.transition_features_).most_common(1)[0]
    assert weight > 0
    assert before in crf.classes_
    assert after in crf.classes_
    (attribute, label), weight = Counter(crf.state_features_).most_common()[-1]
    assert weight < 0
    assert attribute in crf.attributes_
    assert label in crf.classes_
    assert crf.size_ / 1000000 < 1


def test_randomized_search(corpus) -> None:
    """c1 and c2 drawn from exponential distributions, scored by cross-validated F1; the best model predicts."""
    X_train, y_train, X_test, y_test = (part[:60] for part in corpus)
    crf = sklearn_crfsuite.CRF(algorithm="lbfgs", max_iterations=10, all_possible_transitions=True)
    space = {"c1": scipy.stats.expon(scale=0.5), "c2": scipy.stats.expon(scale=0.05)}
    scorer = make_scorer(metrics.flat_f1_score, average="weighted", labels=["B-NP", "I-NP", "B-VP"])
    search = RandomizedSearchCV(crf, space, cv=3, verbose=0, n_jobs=1, n_iter=2, scoring=scorer, random_state=0)
    search.fit(X_train, y_train)
    assert 0.5 < search.best_score_ <= 1.0
    assert set(search.best_params_) == {"c1", "c2"}
    best = search.best_estimator_
    assert best.size_ > 0
    assert metrics.flat_accuracy_score(y_test, best.predict(X_test)) > 0.6


def test_cross_validation_with_scorers(corpus) -> None:
    """The two ready scorers in cross_val_score, and the default score."""
    X_train, y_train = (part[:60] for part in corpus[:2])
    for scoring in (None, scorers.flat_accuracy, scorers.sequence_accuracy):
        found = cross_val_score(sklearn_crfsuite.CRF(algorithm="ap", max_iterations=5), X_train, y_train, cv=3, scoring=scoring)
        assert found.shape == (3,)
        assert (found >= 0).all()


@pytest.mark.slow
def test_the_same_as_crfsuite_on_real_data(corpus) -> None:
    """On the 200 sentences: the loss of CRFsuite's lbfgs, nearly all labels alike, with and without c1."""
    pycrfsuite = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    X_train, y_train, X_test, _ = corpus
    for c1 in (0.0, 0.1):
        crf = sklearn_crfsuite.CRF(c1=c1, c2=0.1, all_possible_transitions=True, epsilon=1e-3, delta=1e-7).fit(X_train, y_train)
        trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
        trainer.set_params({"c1": c1, "c2": 0.1, "feature.possible_transitions": True, "delta": 1e-7})
        for x, y in zip(X_train, y_train, strict=True):
            trainer.append(x, y)
        with TemporaryDirectory() as folder:
            trainer.train(f"{folder}/model")
            tagger = pycrfsuite.Tagger()
            tagger.open(f"{folder}/model")
            theirs = [tagger.tag(x) for x in X_test]
        loss = trainer.logparser.last_iteration["loss"]
        assert crf.training_log_.last_iteration["loss"] == pytest.approx(loss, rel=1e-3)
        assert metrics.flat_accuracy_score(theirs, crf.predict(X_test)) > 0.998
