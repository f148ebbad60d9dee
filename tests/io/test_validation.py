"""Validation tells every problem of a file with its line, and nothing of a good file."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from structpred.errors import DataError, ParameterError
from structpred.io import read_columns, read_crfsuite, read_ocr
from structpred.io.text import ENCODING_HINT
from structpred.io.validation.columns import Validation, validate
from structpred.io.validation.treebanks import validate_trees

GOOD = "the DT B-NP\ncat NN I-NP\nsees VB B-VP\n\na DT B-NP\ndog NN I-NP\nsleeps VB B-VP\n"
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes text (or bytes) to a file of the test and returns its path."""

    def inner(text: str | bytes, name: str = "train.txt") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return inner


def kinds(found: Validation) -> dict[str, int]:
    """How many of each kind were found."""
    return {finding.kind: finding.count for finding in found.findings}


def places(found: Validation, kind: str) -> list[str]:
    """The places of one kind, without the folder."""
    return [place.rsplit("/", 1)[-1] for finding in found.findings if finding.kind == kind for place in finding.places]


def test_a_good_file_has_no_findings(write: Write) -> None:
    """A file that is read without error has no finding; sizes, labels and scheme are told."""
    found = validate(write(GOOD), "conll2000", rare=0)
    assert (found.findings, found.ok, found.scheme) == ([], True, "IOB2")
    assert (found.files[0].n_sequences, found.files[0].n_tokens, found.files[0].longest) == (2, 6, 3)
    assert found.files[0].labels == {"B-NP": 2, "B-VP": 2, "I-NP": 2}
    assert "no problems found" in str(found)


def test_all_problems_at_once(write: Write) -> None:
    """Bad rows, bytes, tags and labels are all told with their lines, errors first, in one go."""
    text = GOOD + "\none two\nx y z w\n\n" + "a DT O\nb NN I-NP\n\n" + "c DT O\n\n\n" + "d\u202ee NN b-np\n"
    found = validate(write(text.encode() + b"\nbad\xff NN O\n"), "columns", rare=2, places=9)
    assert not found.ok
    severities = [finding.severity for finding in found.findings]
    assert severities == sorted(severities)
    assert kinds(found) == {"encoding": 1, "columns": 2, "tags": 2, "blank": 1, "unprinted": 1, "rare": 1, "case": 1}
    assert places(found, "columns") == [
        "train.txt:9: expected 3 columns, got 2: 'one two'",
        "train.txt:10: expected 3 columns, got 4: 'x y z w'",
    ]
    assert places(found, "tags")[0] == "train.txt:13: I-NP after O"
    assert "not a valid IOB2 tag" in places(found, "tags")[1]
    assert places(found, "blank") == ["train.txt:17"]
    assert places(found, "unprinted") == ["train.txt:18: U+202E RIGHT-TO-LEFT OVERRIDE"]
    assert places(found, "encoding") == [f"train.txt:20: expected UTF-8 text, got the byte 0xff; {ENCODING_HINT}"]


@pytest.mark.parametrize(
    "text",
    ["", "\n\n", "a b\n", "a b c\na b\n", "a b c\n\n a b c \n", "a b c\r\n\r\nd e f\r\n", "\ufeffa b c\n", "a b c\n \t \nd e f"],
)
def test_errors_are_those_of_the_reader(write: Write, text: str) -> None:
    """A column file has errors exactly if the reader refuses it."""
    path = write(text)
    try:
        read_columns(path, n_columns=3)
    except DataError:
        assert not validate(path, "conll2000").ok
    else:
        assert validate(path, "conll2000").ok


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        ("B\tw=a\tx:y", "expected a finite number"),
        ("\tw=a", "expected a label"),
        ("O\t:3", "expected an attribute name"),
        (" ", "label"),
    ],
)
def test_crfsuite_rows(write: Write, bad: str, expected: str) -> None:
    """Every bad line of CRFsuite text is told as the reader would tell the first one."""
    path = write(f"O\tw=a\n{bad}\n\nO\tw=b\nO\tw=c\n{bad}\n")
    found = validate(path, "crfsuite", rare=0)
    assert [place.split(": ")[0] for place in places(found, "row")] == ["train.txt:2", "train.txt:6"]
    with pytest.raises(DataError, match=expected):
        read_crfsuite(path)
    assert all(expected in place for place in places(found, "row"))


def test_crfsuite_without_attributes(write: Write) -> None:
    """A file without any attribute is an error: it is most likely of another format."""
    assert kinds(validate(write("O w=a\nO w=b\n"), "crfsuite", rare=0)) == {"no-attributes": 1}


def ocr_rows() -> list[list[str]]:
    """Two words, cab and ba."""
    rows, number = [], 1
    for word, text in enumerate(["cab", "ba"], 1):
        for position, letter in enumerate(text, 1):
            follows = number + 1 if position < len(text) else -1
            rows.append([str(x) for x in (number, letter, follows, word, position, word % 2, *[0, 1] * 64)])
            number += 1
    return rows


@pytest.mark.parametrize(
    ("row", "column", "value", "lines"),
    [
        (1, 2, "7", [2]),
        (2, 4, "9", [3]),
        (1, 6, "2", [2]),
        (0, 0, "x", [1]),
        (4, 2, "6", [5]),
        (3, 5, "1", [4]),
        (2, 2, "4", [3]),
        (0, 1, "", [1]),
    ],
)
def test_ocr_rows(write: Write, row: int, column: int, value: str, lines: list[int]) -> None:
    """Each fault in a letter's row is told once, at its line; the reader refuses the same file."""
    rows = ocr_rows()
    path = write("".join("\t".join(r) + "\n" for r in rows))
    assert validate(path, "ocr", rare=0).ok
    rows[row][column] = value
    path = write("".join("\t".join(r) + "\n" for r in rows))
    with pytest.raises(DataError):
        read_ocr(path)
    found = validate(path, "ocr", rare=0)
    assert not found.ok
    assert [int(p.split(":")[1]) for p in [*places(found, "row"), *places(found, "links")]] == lines


def test_labels(write: Write) -> None:
    """Rare labels, labels alike but for case, and labels that only the held-out data have are told."""
    text = "\n\n".join(f"w{i} N" for i in range(9)) + "\n\nx n\n\ny V\n"
    dev = write("q N\n\nr ADJ\ns ADJ\n", "dev.txt")
    found = validate(write(text), "columns", dev=dev, rare=2)
    assert places(found, "rare") == ["train.txt:21: 'V', 1 of them", "train.txt:19: 'n', 1 of them"]
    assert "'N' (9, first in line 1), 'n' (1, first in line 19)" in places(found, "case")[0]
    assert places(found, "unseen") == ["dev.txt:3: 'ADJ'", "dev.txt:4: 'ADJ'"]
    assert found.ok


@pytest.mark.parametrize(("format", "row"), [("columns", "x L%d\n"), ("crfsuite", "L%d\tx\n")])
def test_too_many_labels(format: str, row: str, write: Write) -> None:
    """Ten thousand labels are counted; of a file with one more, the line of that is told, and nothing else of its labels."""
    few, many = ("".join(map(row.__mod__, range(n))) for n in (10_000, 10_001))
    found = validate(write(few), format)
    assert len(found.files[0].labels or ()) == kinds(found)["rare"] == 10_000
    assert "labels" not in kinds(found)
    found = validate(write("\n" + many + row % 1), format, dev=write(row % 1, "dev.txt"))
    assert found.ok
    assert kinds(found) == {"long": 1, "blank": 1, "labels": 1}
    assert places(found, "labels") == ["train.txt:10002: label number 10,001"]
    assert "10002 tokens, more than 10,000 labels" in str(found)
    assert [file["labels"] for file in found.to_dict()["files"]] == [None, {"L1": 1}]
    found = validate(write(row % 1), format, dev=write(many, "dev.txt"), rare=0)
    assert kinds(found) == {"long": 1, "labels": 1}
    assert places(found, "labels") == ["dev.txt:10001: label number 10,001"]


def test_too_many_labels_next_to_errors(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows with errors do not shift the line that is told, in files of letters and in treebanks either."""
    monkeypatch.setattr("structpred.io.validation.rows.MOST_LABELS", 1)
    rows = ocr_rows()
    rows[0][7], rows[1][4] = "5", "9"
    found = validate(write("".join("\t".join(r) + "\n" for r in rows)), "ocr")
    assert places(found, "labels") == ["train.txt:3: label number 10,001"]
    tree = "1\ta\t_\t_\t_\t_\t%d\t%s\t_\t_\n\n"
    trees = validate_trees(write(tree % (1, "x") + tree % (0, "root") + tree % (0, "b")))
    assert (places(trees, "labels"), trees.files[0].labels) == (["train.txt:5: label number 10,001"], None)


def test_duplicates_and_leaks(write: Write) -> None:
    """Sequences that stand twice are told, those with other labels again, and those that stand in the held-out data too."""
    text = "a x N\nb x N\n\nc x V\n\na x N\nb x N\n\nc x N\n"
    dev = write("q x N\n\na x V\nb x V\n", "dev.txt")
    found = validate(write(text), "columns", dev=dev, rare=0)
    assert places(found, "duplicate") == ["train.txt:6: as line 1 (2 tokens)", "train.txt:9: as line 4 (1 token)"]
    assert places(found, "contradiction") == ["train.txt:9: as line 4 (1 token)"]
    assert found.findings[-1].places[0].startswith(f"{dev}:3: as ")
    assert kinds(found)["leak"] == 1


def test_equal_hashes_are_compared(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sequences that only their hashes make equal are neither repeats nor leaks."""
    monkeypatch.setattr("structpred.io.validation.rows.hash", lambda text: 7, raising=False)
    train, dev = write("a N\n\nb N\n\na N\n"), write("c N\n\nb N\n", "dev.txt")
    found = validate(train, "columns", dev=dev, rare=0)
    assert kinds(found) == {"duplicate": 1, "leak": 1}
    assert places(found, "duplicate") == ["train.txt:5: as line 1 (1 token)"]
    assert places(found, "leak") == ["train.txt:3 (1 token)"]


def test_held_out_data_follow_the_training_data(write: Write) -> None:
    """The held-out file must have as many columns, and is held to the scheme of the training data."""
    found = validate(write(GOOD), "columns", dev=write("a DT X O\n\nb NN I-NP\n", "dev.txt"), rare=0)
    assert places(found, "columns") == ["dev.txt:1: expected 3 columns, got 4: 'a DT X O'"]
    assert places(found, "tags") == ["dev.txt:3: I-NP after the start"]


def test_shapes(write: Write) -> None:
    """Long sequences and document rows are told, with their lines."""
    found = validate(write("-DOCSTART- O\n\n" + "w O\n" * 8), "columns", rare=0, max_length=7)
    assert places(found, "long") == ["train.txt:3: 8 tokens"]
    assert places(found, "docstart") == ["train.txt:1"]


def test_only_the_first_places_are_kept(write: Write) -> None:
    """All are counted, and as many as asked for are shown."""
    found = validate(write("a b c\n\n" * 20 + "a b\n" * 7), "columns", places=3, rare=0)
    finding = next(f for f in found.findings if f.kind == "columns")
    assert (finding.count, len(finding.places)) == (7, 3)
    assert "\n  ...\n" in str(found)


def test_the_label_column_is_not_content(write: Write) -> None:
    """With another label column, labels and sentences are taken from the right places."""
    found = validate(write("N a\n\nV a\n"), "columns", label_column=0, rare=0)
    assert found.files[0].labels == {"N": 1, "V": 1}
    assert kinds(found) == {"duplicate": 1, "contradiction": 1}
    with pytest.raises(ParameterError, match="label column 5"):
        validate(write("N a\n"), "columns", label_column=5)


def test_clean_leaves_the_bad_sequences_out(write: Write, tmp_path: Path) -> None:
    """What is left is read without error, has no errors, and holds the good sequences byte for byte."""
    text = GOOD + "\nbad row\n\n\nx DT O\ny NN I-NP\n\nz DT O\r\n"
    found = validate(write(text), "conll2000")
    again = write(found.clean(), "clean.txt")
    assert (found.n_broken, found.n_kept, again.read_text()) == (2, 3, GOOD + "\nz DT O\n")
    assert validate(again, "conll2000").ok
    rows = ocr_rows()
    rows[0][7] = "5"
    found = validate(write("".join("\t".join(r) + "\n" for r in rows)), "ocr")
    assert read_ocr(write(found.clean(), "clean.data")).letters == [["b", "a"]]


def test_gzip_and_json(tmp_path: Path) -> None:
    """Packed files are unpacked, and all findings survive JSON."""
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress((GOOD + "\nx\n").encode()))
    data = json.loads(json.dumps(validate(path, "columns").to_dict()))
    assert (data["ok"], data["n_errors"], data["scheme"]) == (False, 1, "IOB2")
    assert data["findings"][0]["kind"] == "columns"


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    """A missing file and an unknown format are errors at once."""
    with pytest.raises(DataError, match="no such file"):
        validate(tmp_path / "x", "columns")
    with pytest.raises(ParameterError, match="format: expected one of columns"):
        validate(tmp_path / "x", "tsv")


@pytest.mark.slow
def test_conll2000(data_dir: Path) -> None:
    """The real chunking data have no errors, are in IOB2, and the two known oddities are told."""
    folder = data_dir / "conll2000"
    found = validate(folder / "train.txt.gz", "conll2000", dev=folder / "test.txt.gz")
    assert (found.ok, found.scheme) == (True, "IOB2")
    assert (found.files[0].n_sequences, found.files[1].n_tokens) == (8936, 47377)
    assert kinds(found)["unseen"] == 2
    assert {"duplicate", "leak", "rare"} <= kinds(found).keys()
