"""Promises of the reader of JSON lines: tokens and tags, texts and entities, and errors that name the line and the reason."""

import json
from pathlib import Path

import pytest

from structpred.errors import DataError
from structpred.io import read_jsonl
from structpred.io.jsonl import each_object, parse_jsonl

OSLO = [("Oslo", "B-LOC"), ("is", "O"), ("big", "O"), (".", "O")]


@pytest.mark.parametrize(
    "entry",
    [
        {"tokens": ["Oslo", "is", "big", "."], "tags": ["B-LOC", "O", "O", "O"]},
        {"words": ["Oslo", "is", "big", "."], "labels": ["B-LOC", "O", "O", "O"], "id": 3},
        {"tokens": ["Oslo", "is", "big", "."], "ner_tags": ["B-LOC", "O", "O", "O"], "text": "Oslo is big."},
        {"text": "Oslo is big.", "entities": [[0, 4, "LOC"]]},
        {"text": "Oslo is big.", "label": [[0, 5, "LOC"]]},
        {"text": "Oslo is big.", "spans": [{"start": 0, "end": 4, "label": "LOC", "token_start": 0}]},
    ],
)
def test_the_names_that_other_programs_give(entry: dict[str, object]) -> None:
    """Datasets, Doccano, Prodigy and spaCy name the same things differently; a blank after a name is no word of it."""
    assert parse_jsonl(json.dumps(entry), "a.jsonl").sentences() == [OSLO]


def test_entities_become_phrases() -> None:
    """Each word of an entity has its label, the first B-; no entities are O throughout; characters are counted, not bytes."""
    text = "Zoë Quinn-Hall met Anna."
    lines = [{"text": text, "entities": [[19, 23, "PER"], [0, 14, "PER"]]}, {"text": "It rains", "entities": []}]
    corpus = parse_jsonl("\n\n".join(map(json.dumps, lines)), "a.jsonl")
    assert corpus.labels() == [["B-PER", "I-PER", "I-PER", "I-PER", "O", "B-PER", "O"], ["O", "O"]]
    assert [corpus.where(0), corpus.where(8)] == ["a.jsonl:1", "a.jsonl:3"]
    assert parse_jsonl('{"text": "It rains", "meta": 1}', "b.jsonl").n_columns == 1


WRONG = {
    '{"tokens": ["a"], "tags": ["O"]': "expected a JSON object",
    "[" * 100_000: "expected a JSON object",
    '{"tokens": ["\\ud800"], "tags": ["O"]}': "surrogates not allowed",
    '["a"]': "expected tokens and tags as lists of strings, or a text and its entities",
    '{"sentence": "a"}': "expected tokens and tags as lists of strings, or a text and its entities",
    '{"tokens": ["a"], "tags": [3]}': "as lists of strings",
    '{"tokens": "a", "tags": "O"}': "as lists of strings",
    '{"tokens": ["a", "b"], "tags": ["O"]}': "a tag for each, got 2 tokens, 1 tags",
    '{"tokens": [], "tags": []}': "at least one token",
    '{"text": " ", "entities": []}': "at least one token",
    '{"tokens": ["a"]}': "expected labels in all objects or in none; line 1 differs",
    '{"text": "Anderson", "entities": [[0, 4, "PER"]]}': "the entity 0-4, 'Ande', is not of whole words of 'Anderson'",
    '{"text": "a b", "entities": [[2, 9, "PER"]]}': "the entity 2-9, 'b', is not",
    '{"text": "a b", "entities": [[-1, 1, "PER"]]}': "is not of whole words",
    '{"text": "a b", "entities": [[0, 3, "PER"], [2, 3, "LOC"]]}': "the entity 2-3, 'b', overlaps another one",
    '{"text": "a b", "entities": [[2, "PER"]]}': "expected entities [start, end, kind]",
    '{"text": "a b", "entities": 3}': "expected entities [start, end, kind]",
}


@pytest.mark.parametrize("line", WRONG, ids=lambda line: line[:60])
def test_errors_name_the_line(line: str) -> None:
    """Whatever is wrong is said of its line, in one line; the objects around it are read."""
    good = json.dumps({"tokens": ["a"], "tags": ["O"]})
    with pytest.raises(DataError) as raised:
        parse_jsonl(f"{good}\n\n{line}\n{good}\n", "a.jsonl")
    assert str(raised.value).startswith("a.jsonl:3: ")
    assert WRONG[line] in str(raised.value)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400
    assert [number for number, found in each_object([good, line, "", good]) if not isinstance(found, DataError)][-1] == 4


def test_no_object() -> None:
    """A file of blank lines is refused."""
    with pytest.raises(DataError, match="expected at least one sentence"):
        parse_jsonl("\n \n", "a.jsonl")


def test_files_are_read_where_the_other_readers_are(tmp_path: Path) -> None:
    """`structpred.io.read_jsonl` reads a file, in its encoding, and names it in errors."""
    path = tmp_path / "a.jsonl"
    path.write_bytes('{"tokens": ["Zoë"], "tags": ["B-PER"]}'.encode("latin-1"))
    assert read_jsonl(path, encoding="latin-1").sentences() == [[("Zoë", "B-PER")]]
    path.write_text("{}")
    with pytest.raises(DataError, match=r"a\.jsonl:1: expected"):
        read_jsonl(path)
