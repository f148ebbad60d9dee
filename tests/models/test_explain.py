"""Explanations add up to scores, contrasts hold the differences only, and inspections show the weights as they are."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from labeler_cases import CASE_NAMES, SENTENCES, Y, all_cases

from structpred.errors import DataError, ParameterError
from structpred.models import ChainLabeler

DICTS = [[{"w": word, "length": 0.1 * len(word), "end": word[-1]} for word in words] for words in SENTENCES]


@pytest.fixture(scope="module")
def model() -> ChainLabeler:
    """A small tagger that makes no mistakes on its training data."""
    return ChainLabeler(max_iter=20).fit(DICTS, Y)


def naive_score(model: ChainLabeler, x: list[dict[str, Any]], labels: list[Any]) -> float:
    """The score, from the flat weights and the names of the features, by loops that share no code with the package."""
    classes, names = model.classes_.tolist(), model.input_.feature_names()
    width = len(model.coef_) // (len(names) + 2 + len(classes))
    weight = lambda row, label: float(model.coef_[row * width + classes.index(label)])  # noqa: E731
    total = weight(len(names), labels[0]) + weight(len(names) + 1, labels[-1])
    for token, label in zip(x, labels, strict=True):
        for key, value in token.items():
            name, size = (f"{key}:{value}", 1.0) if isinstance(value, str) else (key, float(np.float32(value)))
            total += size * weight(names.index(name), label)
    for before, after in itertools.pairwise(labels):
        total += weight(len(names) + 2 + classes.index(before), after)
    return total


def test_contributions_add_up_to_the_score(model: ChainLabeler) -> None:
    """For predicted and for any given labels the sum is the score, as worked out naively and as k-best reports it."""
    rng = np.random.default_rng(0)
    for x in DICTS:
        why = model.explain(x)
        labels, score = model.predict_kbest([x], 1)[0][0]
        assert why.labels == labels.tolist() == model.predict([x])[0].tolist()
        assert why.score == pytest.approx(score, abs=1e-9)
        for _ in range(20):
            given = rng.choice(model.classes_, len(x)).tolist()
            found = model.explain(x, given)
            assert sum(c.score for c in found.contributions) == pytest.approx(naive_score(model, x, given), abs=1e-9)
            assert found.score == pytest.approx(naive_score(model, x, given), abs=1e-9)
            assert sum(found.by_kind().values()) == pytest.approx(found.score, abs=1e-9)


def test_contributions_name_every_part(model: ChainLabeler) -> None:
    """A sentence of n tokens has one start, one stop, n - 1 transitions, and an emission a feature, with value and weight."""
    why = model.explain(DICTS[0])
    kinds = [c.kind for c in why.contributions]
    assert [kinds.count(kind) for kind in ("start", "stop", "transition", "emission")] == [1, 1, 2, 9]
    token = next(c for c in why.contributions if c.feature == "length" and c.position == 1)
    assert (token.label, token.value) == ("NOUN", pytest.approx(0.3))
    step = [c for c in why.contributions if c.kind == "transition"]
    assert [(c.position, c.feature) for c in step] == [(1, "DET -> NOUN"), (2, "NOUN -> VERB")]
    det, noun = model.classes_.tolist().index("DET"), model.classes_.tolist().index("NOUN")
    assert step[0].weight == model.transitions_[det, noun]


def test_contrast_with_the_runner_up(model: ChainLabeler) -> None:
    """Against the runner-up the sum is the margin, only what differs is listed, and it is that of the k best."""
    for x in DICTS:
        (best, first), (other, second) = model.predict_kbest([x], 2)[0]
        why = model.explain(x, against="runner-up")
        assert (why.labels, why.against) == (best.tolist(), other.tolist())
        assert why.score == pytest.approx(first - second, abs=1e-9)
        assert why.score == pytest.approx(sum(c.score for c in why.contributions), abs=1e-9)
        differ = {t for t in range(len(x)) if best[t] != other[t]}
        assert {c.position for c in why.contributions if c.kind == "emission"} == differ
        assert all(c.label != c.instead for c in why.contributions)


def test_contrast_with_given_labels(model: ChainLabeler) -> None:
    """Against any labels the sum is the difference of the two scores; against the same labels it is nothing."""
    x = DICTS[2]
    other = ["NOUN", "NOUN", "VERB", "DET", "VERB"]
    why = model.explain(x, Y[2], against=other)
    assert why.score == pytest.approx(naive_score(model, x, Y[2]) - naive_score(model, x, other), abs=1e-9)
    assert "NOUN -> NOUN" in [c.instead for c in why.contributions]
    same = model.explain(x, Y[2], against=Y[2])
    assert (same.score, same.contributions) == (0.0, [])


def test_runner_up_of_given_labels(model: ChainLabeler) -> None:
    """Labels that are not the prediction are set against the prediction, and their score is lower."""
    why = model.explain(DICTS[0], ["VERB", "VERB", "VERB"], against="runner-up")
    assert why.against == model.predict([DICTS[0]])[0].tolist()
    assert why.score < 0


@pytest.mark.parametrize("name", CASE_NAMES)
def test_every_form_of_input(tmp_path: Path, name: str) -> None:
    """One sequence of every kind of input can be explained, and its score is that of the decoder."""
    case = next(c for c in all_cases(tmp_path) if c.name == name)
    model = ChainLabeler(max_iter=5, **case.settings).fit(case.X, case.y)
    if hasattr(case.X, "take"):
        one = case.X.take(0, 1)
    elif hasattr(case.X, "select"):
        one = case.X.select([0])
    elif isinstance(case.X, list):
        one = case.X[0]
    else:
        with pytest.raises(DataError, match="expected one sequence, got a corpus"):
            model.explain(case.X)
        return
    why = model.explain(one)
    assert why.score == pytest.approx(model.predict_kbest([one] if isinstance(case.X, list) else one, 1)[0][0][1], abs=1e-9)
    assert str(why)


def test_constraints_decide_what_is_explained() -> None:
    """With constraints the explained prediction keeps to them, and the score is that of the weights alone."""
    y = [["B-X", "I-X", "O"]] * 3
    x = [{"w": "a"}, {"w": "b"}, {"w": "c"}]
    model = ChainLabeler(max_iter=10, constraints="iob2").fit([x] * 3, y)
    why = model.explain([{"w": "b"}, {"w": "a"}, {"w": "b"}], against="runner-up")
    for labels in (why.labels, why.against or []):
        assert all(label != "I-X" or before != "O" for before, label in zip(["O", *labels], labels, strict=False))
    assert abs(why.score) < 1e6


def test_table_reads_and_adds_up(model: ChainLabeler) -> None:
    """The table shows the strongest, one line for the rest, and the sum; its first column adds up to it."""
    why = model.explain(DICTS[4])
    lines = why.table(top=5).splitlines()
    assert lines[0].split() == ["adds", "value", "weight", "position", "label", "feature"]
    assert len(lines) == 8
    assert "more)" in lines[6]
    numbers = [float(line.split()[0]) for line in lines[1:]]
    assert sum(numbers[:-1]) == pytest.approx(numbers[-1], abs=1e-3)
    assert [abs(n) for n in numbers[:5]] == sorted((abs(n) for n in numbers[:5]), reverse=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": ["DET"]}, "labels: x has 3 tokens but y has 1 labels"),
        ({"labels": ["DET", "NOUN", "XYZ"]}, "labels: label 'XYZ' was not in the training data"),
        ({"against": ["DET", "NOUN", "XYZ"]}, "against: label 'XYZ'"),
        ({"labels": "abc"}, "labels: .*expected a sequence of labels"),
        ({"against": "second"}, "expected 'runner-up' or a list"),
    ],
)
def test_bad_requests(model: ChainLabeler, arguments: dict[str, Any], message: str) -> None:
    """Wrong lengths and unknown labels are errors that name the argument."""
    with pytest.raises((DataError, ParameterError), match=message):
        model.explain(DICTS[0], **arguments)


@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_no_other_sequence() -> None:
    """A model of one label has no runner-up, and says so."""
    model = ChainLabeler(max_iter=2).fit([[{"w": "a"}]] * 2, [["X"]] * 2)
    with pytest.raises(DataError, match="no other label sequence"):
        model.explain([{"w": "a"}], against="runner-up")


def test_strongest_weights_are_the_strongest(model: ChainLabeler) -> None:
    """The listed weights of each label are the largest and smallest of its column, in order, without zeros."""
    n = model.n_features_in_
    table = model.coef_.reshape(-1, len(model.coef_) // (n + 2 + len(model.classes_)))
    names = model.input_.feature_names()
    found = model.top_features(4)
    for k, entry in enumerate(found.labels):
        column = table[:n, k].astype(float)
        assert [w for _, w in entry.positive] == sorted(column[column > 0], reverse=True)[:4]
        assert [w for _, w in entry.negative] == sorted(column[column < 0])[:4]
        assert all(column[names.index(name)] == w for name, w in entry.positive + entry.negative)
        assert (entry.start, entry.stop) == (table[n, k], table[n + 1, k])
        assert entry.n_nonzero == np.count_nonzero(column)
    before, after, weight = found.positive_transitions[0]
    classes = model.classes_.tolist()
    assert weight == model.transitions_.max() == model.transitions_[classes.index(before), classes.index(after)]


def test_groups_add_up(model: ChainLabeler) -> None:
    """Norms of groups make up the norm of the weights, and the kinds of features that of the emissions."""
    found = model.top_features()
    assert sum(g.norm**2 for g in found.groups) == pytest.approx(float(model.coef_.astype(float) @ model.coef_), rel=1e-6)
    assert {g.name for g in found.kinds} == {"w", "length", "end"}
    assert sum(g.norm**2 for g in found.kinds) == pytest.approx(found.groups[0].norm ** 2, rel=1e-6)
    assert sum(g.n_weights for g in found.kinds) == found.groups[0].n_weights
    assert found.n_features_used <= found.n_features == model.n_features_in_


def test_one_label_only(model: ChainLabeler) -> None:
    """With a label, its weights alone are listed, and the transitions that touch it."""
    found = model.top_features(5, label="VERB")
    assert [entry.label for entry in found.labels] == ["VERB"]
    assert all("VERB" in pair[:2] for pair in found.positive_transitions + found.negative_transitions)
    with pytest.raises(ParameterError, match="no label 'XYZ'; it has ADJ, DET"):
        model.top_features(5, label="XYZ")
    with pytest.raises(ParameterError, match="top"):
        model.top_features(0)
