"""Promises of the detection of formats: the content tells, and what does not tell is refused with what was seen."""

import gzip
from pathlib import Path

import pytest

from structpred.errors import DataError
from structpred.io.detection import detect_format, first_lines

TREE = "1\tcats\tcat\t{}\tN\t_\t0\troot\t{}\t_"
FORMATS = {
    "a DT B-NP\nb NN I-NP": ("conll2000", "3 columns separated by spaces"),
    "a\tDT\tO\n\nb\tNN\tO": ("conll2000", "3 columns separated by tabs"),
    "-DOCSTART- -X- -X- O\n\na DT B-NP O": ("conll2003", "4 columns separated by spaces, -DOCSTART- lines"),
    "-DOCSTART-\n\na DT O": ("conll2000", "3 columns separated by spaces, -DOCSTART- lines"),
    "12\tNumber\nMain\tStreet": ("columns", "2 columns separated by tabs"),
    "a b c d e f": ("columns", "6 columns separated by spaces"),
    "a\nb": ("columns", "1 column separated by spaces"),
    "B\tw=a\tbias\nI\tw=b\tp=N\tbias": ("crfsuite", "labels, then attributes with values, separated by tabs"),
    TREE.format("NOUN", "_"): ("conllu", "numbered words, columns separated by tabs"),
    TREE.format("N", "0"): ("conllx", "numbered words, columns separated by tabs"),
    "# text = cats\n" + TREE.format("N", "_"): ("conllu", "numbered words, columns separated by tabs"),
    '{"tokens": ["a", "b"]}\n\n{"tokens": ["c", "d"]}': ("jsonl", "JSON objects"),
    "\t".join(["1", "a", "-1", "1", "1", "0", *"01" * 64]): ("ocr", "letters of 128 pixels"),
}
UNKNOWN = {
    "a DT\nb": "lines by their number of columns: 1 with 1, 1 with 2",
    "a\tCase=Nom\nb\tCase=Acc": "a word and its features as the label",
    "the,DT,O\ncat,NN,O": "this looks like CSV",
    "The cat sat on the mat.\nA dog barked at it.\nIt ran.": "this looks like running text",
    "": "expected at least one sentence",
}


@pytest.mark.parametrize("text", FORMATS)
def test_the_content_tells(text: str) -> None:
    """Format and what showed it."""
    assert detect_format(text.split("\n"), "a.txt")[:2] == FORMATS[text]


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_does_not_tell_is_refused(text: str) -> None:
    """The message says what was seen; and, unless nothing was, which formats there are."""
    with pytest.raises(DataError, match=UNKNOWN[text]) as refusal:
        detect_format(text.split("\n"), "a.txt")
    assert not text or "Name it with --format: of sequences columns, conll2000, conll2003, jsonl, crfsuite, ocr" in str(
        refusal.value
    )


def test_labels_by_the_format() -> None:
    """Labels are counted in their column, first in CRFsuite's text, without boundaries and broken lines."""
    columns = ["-DOCSTART- O", "a B-X", "b", "c B-X"]
    assert detect_format(columns, "a.txt").labels(columns) == {"B-X": 2}
    assert detect_format(columns, "a.txt").labels(columns, 5) == {}
    crfsuite = ["B-X\tw=a\tbias", "O\tw=b"]
    assert detect_format(crfsuite, "a.txt").labels(crfsuite) == {"B-X": 1, "O": 1}


def test_the_first_lines_are_whole(tmp_path: Path) -> None:
    """Of a long packed file some 64 KiB are read, cut at the end of a line."""
    (tmp_path / "a.gz").write_bytes(gzip.compress("\ufeff".encode() + "æ B-X\n".encode() * 50_000))
    lines = first_lines(tmp_path / "a.gz")
    assert set(lines) == {"æ B-X"}
    assert 9_000 < len(lines) < 10_000
