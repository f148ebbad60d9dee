"""Promises of JSON lines and of standard input: read, detected and labelled as column files are."""

import gzip
import io
import json
import sys
from pathlib import Path

import pytest
from cli_helpers import Shell, column_text

from structpred.io.detection import detect_format, first_lines

SHORT = ("--trainer", "perceptron", "--max-iter", "2")


def names(n_sentences: int, seed: int) -> list[list[tuple[str, str]]]:
    """Sentences of words and labels; words in w are names."""
    words = [[row.split()[0] for row in part.split("\n") if row] for part in column_text(n_sentences, seed).split("\n\n")]
    return [[(word, "B-PER" if word.startswith("w") else "O") for word in part] for part in words if part]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The same sentences in columns, as tokens with tags, and as texts with entities; train and test."""
    for name, seed in (("train", 0), ("test", 1)):
        sentences = names(40, seed)
        (tmp_path / f"{name}.txt").write_text("\n".join("".join(f"{w} {y}\n" for w, y in one) for one in sentences))
        objects = [{"tokens": [w for w, _ in one], "tags": [y for _, y in one]} for one in sentences]
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in objects))
        spans = []
        for one in sentences:
            text, entities = "", []
            for word, label in one:
                if label != "O":
                    entities.append([len(text), len(text) + len(word), "PER"])
                text += f"{word} "
            spans.append({"text": text, "entities": entities})
        (tmp_path / f"{name}-spans.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in spans))
    return tmp_path


def test_the_same_data_give_the_same_model(shell: Shell, folder: Path) -> None:
    """Tokens, spans and columns: detected, trained and scored alike; predictions are objects with tokens and labels."""
    scores = []
    for kind in (".txt", ".jsonl", "-spans.jsonl"):
        done = shell("train", "chain", f"train{kind}", "--dev", f"test{kind}", "-o", "m.spz", *SHORT)
        said = "columns: 2 columns separated by spaces" if kind == ".txt" else "jsonl: JSON objects"
        assert f"train{kind}: format {said}, labels of phrases (B-X, I-X); templates ner\n" in done.stderr
        scores.append(json.loads(shell("evaluate", "m.spz", f"test{kind}", "--json").stdout))
    assert scores[0] == scores[1] == scores[2]
    labelled = [json.loads(line) for line in shell("predict", "m.spz", "test-spans.jsonl").stdout.splitlines()]
    gold = [json.loads(line) for line in (folder / "test.jsonl").read_text().splitlines()]
    assert [one["tokens"] for one in labelled] == [one["tokens"] for one in gold]
    columns = shell("predict", "m.spz", "test.txt", "--format", "columns").stdout
    assert [row.split()[-1] for row in columns.split("\n") if row] == [label for one in labelled for label in one["labels"]]


def test_named_and_without_labels(shell: Shell, folder: Path) -> None:
    """--format jsonl is taken; data to predict need no labels; data to train on do, and their words are no labels."""
    assert shell("train", "chain", "train.jsonl", "--format", "jsonl", "-o", "m.spz", *SHORT).returncode == 0
    (folder / "bare.jsonl").write_text('{"text": "the wug sat."}\n{"text": "so"}\n')
    found = [json.loads(line) for line in shell("predict", "m.spz", "bare.jsonl").stdout.splitlines()]
    assert [one["tokens"] for one in found] == [["the", "wug", "sat", "."], ["so"]]
    refused = {
        ("bare.jsonl",): "bare.jsonl:1: expected tags, or entities, got none",
        ("train.jsonl", "--label-column", "0", "--template", "ner"): "--label-column is for column files, not for --format jsonl",
        ("train.jsonl", "--shards", "2"): "--shards is for column files and CRFsuite text",
        ("train.jsonl", "--format", "conll2003"): "this looks like JSON lines, which sequence labellers read with --format jsonl",
    }
    for options, message in refused.items():
        done = shell("train", "chain", *options, "-o", "n.spz", *SHORT)
        assert done.returncode != 0
        assert message in done.stderr
    assert "not for pixels and JSON lines" in shell("predict", "m.spz", "train.jsonl", "--shards", "2", "-o", "p{shard}").stderr


def test_broken_objects(shell: Shell, folder: Path) -> None:
    """The first is named by file and line; --on-error skip leaves out all of them, and says how many, and their first."""
    lines = (folder / "train.jsonl").read_text().splitlines()
    (folder / "broken.jsonl").write_text("\n".join([*lines[:3], '{"tokens": ["a"], "tags": []}', "{", *lines[3:]]))
    place = "broken.jsonl:4: expected at least one token and a tag for each, got 1 tokens, 0 tags"
    assert f"error: {place}\n" in shell("train", "chain", "broken.jsonl", "-o", "m.spz", *SHORT).stderr
    done = shell("train", "chain", "broken.jsonl", "-o", "m.spz", "--on-error", "skip", *SHORT)
    assert f"warning: broken.jsonl: 2 of 42 sequences with errors left out; first: {place}\n" in done.stderr
    assert "read broken.jsonl: 40 sequences" in done.stderr


@pytest.mark.parametrize("name", ["train.txt", "train.jsonl"])
def test_standard_input_is_detected(shell: Shell, folder: Path, name: str) -> None:
    """What comes through a pipe is looked at as a file is, and then read whole: the same model."""
    done = shell("train", "chain", "-", "-o", "pipe.spz", *SHORT, stdin=(folder / name).read_text())
    assert "<stdin>: format " in done.stderr
    assert "read <stdin>: 40 sequences" in done.stderr
    shell("train", "chain", name, "-o", "file.spz", *SHORT)
    found = [shell("predict", model, name).stdout for model in ("pipe.spz", "file.spz")]
    assert found[0] == found[1]
    assert shell("validate", "-", stdin=(folder / "train.txt").read_text()).stdout.startswith("<stdin>: 40 sequences")


def test_packed_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gzip from a pipe is unpacked for a look, and again to be read; so is text of a stream without bytes."""
    data = gzip.compress(b"a B-X\nb I-X\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert first_lines("-") == ["a B-X", "b I-X"]
    assert sys.stdin.buffer.read() == data
    monkeypatch.setattr(sys, "stdin", io.StringIO("a B-X\n"))
    assert first_lines("-") == first_lines("-") == ["a B-X"]


def test_labels_are_counted_up_to_a_cut() -> None:
    """The first lines of a long file end anywhere: what is no object is left out of the labels, which decide the score."""
    lines = ['{"tokens": ["Oslo", "is"], "tags": ["B-LOC", "O"]}', '{"tokens": ["Os']
    assert detect_format(lines, "a.jsonl").labels(lines) == {"B-LOC": 1, "O": 1}


def test_validate_finds_all_that_is_wrong(shell: Shell, tmp_path: Path) -> None:
    """Objects that cannot be read, labels in some only, broken schemes, repetitions: each with its line; skip writes the rest."""
    lines = [
        b'{"text": "Oslo is big.", "entities": [[0, 4, "LOC"]]}',
        b'{"text": "x"',
        b"",
        b'{"tokens": ["a", "b"], "tags": ["O", "I-PER"]}',
        b'{"tokens": ["a"]}',
        b'{"text": "Oslo is big.", "entities": []}',
        b'{"tokens": ["\xff"], "tags": ["B-PER"]}',
        b'{"tokens": ["b", "c"], "tags": ["B-PER", "I-PER"]}',
    ]
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(lines))
    done = shell("validate", "a.jsonl", "--json", "--rare", "0")
    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert (found["scheme"], found["n_errors"], found["files"][0]["n_sequences"]) == ("IOB2", 4, 7)
    places = {finding["kind"]: [place.split(": ")[0] for place in finding["places"]] for finding in found["findings"]}
    wrong = {"row": ["a.jsonl:2", "a.jsonl:5"], "encoding": ["a.jsonl:7"], "tags": ["a.jsonl:4"]}
    assert places == {**wrong, "duplicate": ["a.jsonl:6"], "contradiction": ["a.jsonl:6"]}
    assert shell("validate", "a.jsonl", "--on-error", "skip", "-o", "clean.jsonl").returncode == 0
    assert (tmp_path / "clean.jsonl").read_bytes().splitlines() == [lines[0], lines[5], lines[7]]
    assert shell("validate", "clean.jsonl", "--rare", "0").returncode == 0


def test_validate_of_objects_without_labels(shell: Shell, tmp_path: Path) -> None:
    """Texts alone are sequences without labels: nothing is wrong with them."""
    (tmp_path / "a.jsonl").write_text('{"text": "It rains"}\n{"text": "It does"}\n')
    done = shell("validate", "a.jsonl", "--format", "jsonl")
    assert (done.returncode, "4 tokens, 0 labels" in done.stdout) == (0, True)
