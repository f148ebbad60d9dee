"""The summary: its figures agree with the single measures, and it can be printed and stored."""

import json

import pytest

from structpred.evaluation import (
    chunk_counts,
    confusion_matrix,
    evaluate_sequences,
    most_confused,
    sequence_accuracy,
    token_accuracy,
)

GOLD = [["B-NP", "I-NP", "O", "B-VP"], ["B-NP", "O"], ["O"]]
PREDICTED = [["I-NP", "I-NP", "O", "B-VP"], ["B-NP", "B-PP"], ["O"]]


def test_agrees_with_the_measures() -> None:
    """Each figure is the one that its own function returns."""
    result = evaluate_sequences(GOLD, PREDICTED)
    lenient, per_type = chunk_counts(GOLD, PREDICTED)
    strict, _ = chunk_counts(GOLD, PREDICTED, "iob2")
    assert result.token_accuracy == token_accuracy(GOLD, PREDICTED) == 5 / 7
    assert result.word_accuracy == result.sequence_accuracy == sequence_accuracy(GOLD, PREDICTED) == 1 / 3
    assert (result.precision, result.recall, result.f1) == (lenient.precision, lenient.recall, lenient.f1) == (3 / 4, 1.0, 6 / 7)
    assert (result.f1_strict, result.strict_scheme) == (strict.f1, "iob2")
    assert (result.n_tokens, result.n_sequences, result.n_errors) == (7, 3, 2)
    assert (result.n_invalid_gold, result.n_invalid_predicted) == (0, 2)
    assert result.per_type == per_type


def test_scheme_is_chosen_by_the_caller_and_strict_by_the_tags() -> None:
    """The asked scheme rules precision, recall and F1; E or S among the labels makes the strict figure IOBES."""
    assert evaluate_sequences(GOLD, PREDICTED, scheme="iob2").f1 == evaluate_sequences(GOLD, PREDICTED).f1_strict
    assert evaluate_sequences([["S-X", "O"]], [["S-X", "O"]]).strict_scheme == "iobes"
    assert evaluate_sequences([["S-X", "O"]], [["S-X", "O"]]).f1_strict == 1.0


def test_iob1_gold_is_noticed() -> None:
    """Gold labels in IOB1 score fully under conlleval and are counted as strangers to strict IOB2."""
    result = evaluate_sequences([["I-X", "O", "I-X"]], [["I-X", "O", "I-X"]])
    assert (result.f1, result.f1_strict, result.n_invalid_gold) == (1.0, 0.0, 2)


def test_json() -> None:
    """The JSON has every figure as plain numbers, the types with their scores."""
    figures = json.loads(evaluate_sequences(GOLD, PREDICTED).to_json())
    assert {"token_accuracy", "f1", "precision", "recall", "sequence_accuracy", "n_tokens"} <= set(figures)
    assert figures["per_type"]["PP"] == {
        "n_gold": 0, "n_predicted": 1, "n_correct": 0, "precision": 0.0, "recall": 0.0, "f1": 0.0,
    }  # fmt: skip
    assert isinstance(figures["n_errors"], int)


def test_table() -> None:
    """The table shows per cent, one line a type, and no phrase lines where there are no phrases."""
    table = evaluate_sequences(GOLD, PREDICTED).table()
    assert "accuracy  71.43 %" in table
    types = [line.split()[0] for line in table.splitlines()[4:-2]]
    assert types == ["NP", "PP", "VP", "all"]
    assert "strict iob2: 66.67" in table
    assert "outside every strict phrase: 0 gold, 2 predicted" in table
    assert "phrases" not in evaluate_sequences([list("cat")], [list("car")]).table()


def test_labels_without_phrases_have_no_phrase_scores() -> None:
    """Tags of parts of speech, -LRB- and letters among them, have None for phrases, and their own precision and recall."""
    gold, predicted = [["DT", "NN", "-LRB-"], ["NN", "B"]], [["DT", "JJ", "-LRB-"], ["JJ", "B"]]
    result = evaluate_sequences(gold, predicted)
    assert (result.precision, result.recall, result.f1, result.f1_strict, result.per_type) == (None, None, None, None, {})
    assert (result.n_gold_phrases, result.n_invalid_gold) == (0, 0)
    assert (result.per_label["NN"].recall, result.per_label["DT"].precision, result.per_label["JJ"].n_predicted) == (0.0, 1.0, 2)
    assert json.loads(result.to_json())["f1"] is None
    assert "JJ" in result.table()
    assert "JJ" not in result.table(details=False)
    assert evaluate_sequences([["B", "I", "O"]], [["B", "O", "O"]]).f1 == 0.0


def test_the_most_frequent_confusions_with_examples() -> None:
    """The worst pair comes first, with its count and its first places, shown within the words around them."""
    gold, predicted = [["DT", "NN", "NN"], ["NN", "VB"]], [["DT", "JJ", "JJ"], ["JJ", "NN"]]
    worst, other = evaluate_sequences(gold, predicted).confusions
    assert (worst.gold, worst.predicted, worst.n, worst.places) == ("NN", "JJ", 3, ((0, 1), (0, 2), (1, 0)))
    assert (other.gold, other.predicted, other.n) == ("VB", "NN", 1)
    words = [["the", "stone", "wall"], ["dogs", "bark"]]
    assert worst.examples(words) == ["the [stone] wall", "the stone [wall]", "[dogs] bark"]
    assert "the [stone] wall" in evaluate_sequences(gold, predicted).confusion_table(words)
    assert "sequence 1, token 1" in evaluate_sequences(gold, predicted).confusion_table()
    assert most_confused(gold, predicted, 1) == [worst]


def test_a_confusion_matrix_is_a_pair_and_a_table() -> None:
    """It unpacks into labels and counts, and shows both as text and, escaped, as HTML."""
    found = confusion_matrix([["<a>", "b"]], [["<a>", "<a>"]])
    labels, counts = found
    assert (found.labels, found.counts.tolist()) == (labels, counts.tolist()) == (("<a>", "b"), [[1, 0], [1, 0]])
    assert found.table().splitlines()[2].split() == ["b", "1", "0"]
    assert "<a>" not in found._repr_html_()
    assert "&lt;a&gt;" in found._repr_html_()


def test_official_test_set_scores_itself_fully(data_dir) -> None:  # type: ignore[no-untyped-def]
    """The CoNLL-2000 test set against itself: 47,377 tokens, 23,852 phrases, all correct, strict and lenient."""
    import gzip

    path = data_dir / "conll2000" / "test.txt.gz"
    if not path.exists():
        pytest.skip("conll2000/test.txt.gz is not here")
    blocks = gzip.decompress(path.read_bytes()).decode().strip().split("\n\n")
    gold = [[line.split()[2] for line in block.splitlines()] for block in blocks]
    result = evaluate_sequences(gold, gold)
    assert (result.n_tokens, result.n_gold_phrases, result.n_correct_phrases) == (47377, 23852, 23852)
    assert result.f1 == result.f1_strict == result.token_accuracy == 1.0
