"""Promises of `auto`: the file says its format, templates and score, and boundaries of documents are no sentences."""

import json
from pathlib import Path

import pytest
from cli_helpers import Shell, column_text

SHORT = ("--trainer", "perceptron", "--max-iter", "2")


def names_text(n_sentences: int, seed: int, boundary: str = "") -> str:
    """Four columns, of which the last has a name here and there; every tenth sentence begins a document."""
    sentences = column_text(n_sentences, seed).split("\n\n")
    out = []
    for k, sentence in enumerate(sentences):
        rows = [f"{row} {'B-PER' if row.startswith('w') else 'O'}\n" for row in sentence.split("\n") if row]
        out += [f"{boundary}\n\n" * (k % 10 == 0 and bool(boundary)) + "".join(rows)]
    return "\n".join(out)


@pytest.fixture
def names(tmp_path: Path) -> Path:
    """A folder with CoNLL-2003's format, with and without its boundaries."""
    for name, size, seed in (("train", 60, 0), ("test", 30, 1)):
        (tmp_path / f"{name}.txt").write_text(names_text(size, seed, "-DOCSTART- -X- -X- O"))
        (tmp_path / f"bare-{name}.txt").write_text(names_text(size, seed))
    return tmp_path


def test_train_is_a_whole_command(shell: Shell, names: Path) -> None:
    """`train chain FILE -o MODEL` finds the format, templates and the score, in a line; the model is that of these options."""
    done = shell("train", "chain", "train.txt", "--dev", "test.txt", "-o", "m.spz", *SHORT)
    seen = "4 columns separated by spaces, -DOCSTART- lines, labels of phrases (B-X, I-X)"
    assert f"train.txt: format conll2003: {seen}; templates ner\n" in done.stderr
    assert "% (f1), these weights" in done.stderr
    named = ("--format", "conll2003", "--template", "ner", "--dev-metric", "f1")
    told = shell("train", "chain", "train.txt", "--dev", "test.txt", "-o", "n.spz", *SHORT, *named)
    assert "format conll2003:" not in told.stderr
    assert shell("predict", "m.spz", "test.txt").stdout == shell("predict", "n.spz", "test.txt").stdout


def test_boundaries_are_no_sentences(shell: Shell, names: Path) -> None:
    """Where templates look at no documents, training, scores, predictions and explanations are those of the file without
    -DOCSTART- lines; one line says how many.
    """
    for data, model in (("train.txt", "m.spz"), ("bare-train.txt", "b.spz")):
        done = shell("train", "chain", data, "-o", model, "--template", "pos", *SHORT)
        assert ("train.txt: 6 -DOCSTART- lines left out: they are boundaries of documents" in done.stderr) == (model == "m.spz")
    scores = [
        json.loads(shell("evaluate", *pair, "--json").stdout) for pair in (("m.spz", "test.txt"), ("b.spz", "bare-test.txt"))
    ]
    assert scores[0] == scores[1]
    assert scores[0]["n_sequences"] == 30
    first = [shell("explain", *pair).stdout for pair in (("m.spz", "test.txt"), ("b.spz", "bare-test.txt"))]
    assert first[0] == first[1]
    lines = shell("predict", "m.spz", "test.txt", "-o", "out.txt").stderr.splitlines()
    assert sum("3 -DOCSTART- lines left out" in line for line in lines) == 1
    out = (names / "out.txt").read_text()
    assert out.startswith("-DOCSTART- -X- -X- O O\n\n")
    assert [line.rsplit(" ", 1)[0] for line in out.split("\n") if line] == [
        line for line in (names / "test.txt").read_text().split("\n") if line
    ]
    assert json.loads(shell("evaluate", "--pred", "out.txt", "--json").stdout)["f1"] == scores[0]["f1"]


def test_validate_knows_columns_and_boundaries(shell: Shell, names: Path) -> None:
    """Without --format the columns are recognised; boundaries are counted, named, and kept in the clean file."""
    done = shell("validate", "train.txt", "--rare", "0")
    assert "train.txt: format conll2003" in done.stderr
    assert "train.txt: 60 sequences" in done.stdout
    assert "-DOCSTART- rows, which are read as boundaries of documents: 6\n  train.txt:1\n" in done.stdout
    assert "empty sequences" not in done.stdout
    assert shell("validate", "train.txt", "--on-error", "skip", "-o", "clean.txt").returncode == 0
    assert (names / "clean.txt").read_text().count("-DOCSTART- -X- -X- O\n") == 6


@pytest.mark.parametrize(
    ("rows", "template", "score"),
    [
        ("Main B-X\nb I-X\n", "ner", "f1"),
        ("Main Noun\nb Verb\n", "pos", "token_accuracy"),
        ("a DT B-NP\nb NN I-NP\n", "chunking", "f1"),
        ("a DT X\nb NN Y\n", "chunking", "token_accuracy"),
        ("a DT O\nb NN B-PER\nc NN O\n", "ner", "f1"),
    ],
)
def test_templates_fit_columns_and_labels(shell: Shell, tmp_path: Path, rows: str, template: str, score: str) -> None:
    """Names, chunks and parts of speech have templates of their own; phrases are scored by F1, and `tune` says so, too."""
    (tmp_path / "t.txt").write_text(f"{rows}\n" * 6)
    done = shell("tune", "chain", "--train", "t.txt", "--cv", "2", "-C", "0.1", "1", *SHORT)
    assert f"; templates {template}\n" in done.stderr
    assert f"The score is {score}." in done.stdout
    assert f"--template {template}" in done.stdout


def test_other_formats(shell: Shell, corpus: Path, tmp_path: Path) -> None:
    """CRFsuite's text and letters need no option, either."""
    for name, seen in (("train.crf", "format crfsuite: labels"), ("train.data", "format ocr: letters")):
        done = shell("train", "chain", str(corpus / name), "-o", "m.spz", *SHORT)
        assert seen in done.stderr
        assert "templates" not in done.stderr.splitlines()[0]
        assert done.returncode == 0


def test_words_alone(shell: Shell, names: Path) -> None:
    """A model of four columns that reads the words labels a file of words, with a warning; what reads more columns refuses it."""
    assert shell("train", "chain", "train.txt", "-o", "m.spz", *SHORT).returncode == 0
    rows = [line.split() for line in (names / "bare-test.txt").read_text().split("\n")]
    (names / "words.txt").write_text("\n".join(row[0] if row else "" for row in rows))
    (names / "csv.txt").write_text("the,DT,O\ncat,NN,O\n")
    done = shell("predict", "m.spz", "words.txt")
    assert "warning: words.txt: words alone, taken for column 0 of 3; the others are filled with _" in done.stderr
    whole = shell("predict", "m.spz", "bare-test.txt").stdout.split("\n")
    assert done.stdout.split("\n") == [f"{line.split()[0]} {line.split()[-1]}" if line else "" for line in whole]
    assert shell("evaluate", "m.spz", "words.txt").returncode == 1
    assert "this looks like CSV" in shell("predict", "m.spz", "csv.txt").stderr
    shell("train", "chain", "train.txt", "-o", "two.spz", "--template", "chunking", *SHORT)
    refused = shell("predict", "two.spz", "words.txt")
    assert (refused.returncode, "expected 4 columns, or 3 without the labels" in refused.stderr) == (1, True)
