"""Column files."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structpred.errors import DataError, ParameterError
from structpred.io.columns import ColumnCorpus, format_columns, read_columns


def _read(tmp_path: Path, data: bytes, **settings: Any) -> ColumnCorpus:
    path = tmp_path / "train.conll"
    path.write_bytes(data)
    return read_columns(path, name="train.conll", **settings)


def _plain(data: str) -> list[list[tuple[str, ...]]]:
    """The same reading in plain Python."""
    sentences: list[list[tuple[str, ...]]] = [[]]
    for line in data.split("\n"):
        fields = tuple(field for field in line.removesuffix("\r").replace("\t", " ").split(" ") if field)
        if fields:
            sentences[-1].append(fields)
        elif sentences[-1]:
            sentences.append([])
    return [sentence for sentence in sentences if sentence]


def test_codes_offsets_and_lines(tmp_path: Path) -> None:
    """Codes index the vocabularies, offsets part the sentences, and every token knows its line."""
    corpus = _read(tmp_path, b"\nthe DT\ncat NN\n \t\n\nthe  DT\t\n")
    assert corpus.vocabularies == [["the", "cat"], ["DT", "NN"]]
    assert corpus.codes.dtype == np.int32
    assert corpus.codes.tolist() == [[0, 0], [1, 1], [0, 0]]
    assert corpus.offsets.tolist() == [0, 2, 3]
    assert corpus.lines.tolist() == [2, 3, 6]
    assert corpus.where(2) == "train.conll:6"
    assert corpus.labels() == [["DT", "NN"], ["DT"]]
    assert corpus.lengths.tolist() == [2, 1]
    assert (len(corpus), corpus.n_tokens, corpus.n_columns) == (2, 3, 2)


def test_only_space_and_tab_part_columns(tmp_path: Path) -> None:
    """White space of Unicode's, a form feed or a lone carriage return are part of the token."""
    for odd in ("\xa0", "\u2028", "\x85", "\x0c", "\r", "\u3000", "\x1c"):
        corpus = _read(tmp_path, f"10{odd}000 CD\n{odd}x NN\n".encode())
        assert corpus.column(0) == [f"10{odd}000", f"{odd}x"]


def test_tabs_only(tmp_path: Path) -> None:
    """With tabs=True a column may hold spaces, and a line of white space is still blank."""
    corpus = _read(tmp_path, b"New York\tNNP\n  \t \nin\tIN \n   \n of\tIN\n", tabs=True)
    assert corpus.sentences() == [[("New York", "NNP")], [("in", "IN ")], [(" of", "IN")]]


@pytest.mark.parametrize(
    ("data", "settings", "message"),
    [
        (b"", {}, "train.conll: expected at least one sentence, got an empty file"),
        (b"\n \n\r\n", {}, "train.conll: expected at least one sentence, got only blank lines"),
        (b"a b c\na b\n", {}, r"train.conll:2: expected 3 columns \(as in line 1\), got 2: 'a b'"),
        (b"\n\na b\n\na b c\r\n", {}, r"train.conll:5: expected 2 columns \(as in line 3\), got 3: 'a b c'"),
        (b"a b\n", {"n_columns": 3}, "train.conll:1: expected 3 columns, got 2: 'a b'"),
        (b"a\tb\na\t\tb\n", {"tabs": True}, r"train.conll:2: expected 2 columns \(as in line 1\), got 3"),
        (b"a\tb\na\t\n", {"tabs": True}, "train.conll:2: expected 2 columns separated by single tabs, but column 2 is empty"),
        (b"a\t\tb\n", {"tabs": True}, "train.conll:1: expected 3 columns separated by single tabs, but column 2 is empty"),
        (b"a b\n", {"tabs": True, "n_columns": 2}, "train.conll:1: expected 2 columns, got 1"),
        (b"a b\n" + b"x" * 999, {}, r"train.conll:2: expected 2 columns \(as in line 1\), got 1: 'x{60}\.\.\.'$"),
    ],
)
def test_bad_lines(tmp_path: Path, data: bytes, settings: dict[str, Any], message: str) -> None:
    """A bad line raises DataError with file, line, what was expected and what came."""
    with pytest.raises(DataError, match=message):
        _read(tmp_path, data, **settings)


def test_name_defaults_to_the_path(tmp_path: Path) -> None:
    """Without a name the messages say the path as it was given."""
    path = tmp_path / "x.conll"
    path.write_text("a b\nc\n")
    with pytest.raises(DataError) as caught:
        read_columns(path)
    assert str(caught.value).startswith(f"{path}:2: ")


def test_n_columns_out_of_range(tmp_path: Path) -> None:
    """A number of columns below 1 is a bad setting, not bad data."""
    with pytest.raises(ParameterError, match="n_columns"):
        _read(tmp_path, b"a\n", n_columns=0)
    with pytest.raises(ParameterError, match="there is no column 2"):
        _read(tmp_path, b"a b\n").column(2)


_TEXT = st.text(alphabet="ab \t\n\r\xa0é\u2028", max_size=40)


@given(text=_TEXT)
def test_reads_as_plain_python_does(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """The vectorised reader gives what splitting line by line gives, or refuses ragged lines."""
    path = tmp_path_factory.mktemp("columns") / "a"
    path.write_bytes(text.encode())
    expected = _plain(text)
    if len({len(row) for sentence in expected for row in sentence}) != 1:
        with pytest.raises(DataError):
            read_columns(path)
    else:
        assert read_columns(path).sentences() == expected


@given(text=_TEXT)
def test_prediction_column_keeps_every_byte(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """Taking the new column out of the output again gives the input, byte for byte, odd line ends included."""
    path = tmp_path_factory.mktemp("columns") / "a"
    path.write_bytes(text.encode())
    try:
        corpus = read_columns(path)
    except DataError:
        return
    out = format_columns(corpus, [["PRED"] * n for n in corpus.lengths])
    assert out.count("PRED") == corpus.n_tokens
    assert out.replace(" PRED", "").replace("\tPRED", "") == text
    path.write_bytes(out.encode())
    again = read_columns(path)
    assert again.column(-1) == ["PRED"] * corpus.n_tokens
    assert [row[:-1] for s in again.sentences() for row in s] == [row for s in corpus.sentences() for row in s]


def test_prediction_column_takes_the_files_separator(tmp_path: Path) -> None:
    """The new column follows a tab in a file with tabs, and stands before a carriage return."""
    assert format_columns(_read(tmp_path, b"a\tb\r\n\r\nc\td"), [["X"], ["Y"]]) == "a\tb\tX\r\n\r\nc\td\tY"
    assert format_columns(_read(tmp_path, b"a b\n"), [["X"]]) == "a b X\n"


def test_rows_round_trip() -> None:
    """from_rows and sentences are inverse, generators and lists included, and written rows read back."""
    rows = [[("a", "b"), ("c", "d")], [("e", "f")]]
    corpus = ColumnCorpus.from_rows([list(row) for row in sentence] for sentence in rows)
    assert corpus.sentences() == rows
    assert corpus.lines.tolist() == [0, 0, 0]
    assert format_columns(corpus, [["1", "2"], ["3"]]) == "a b 1\nc d 2\n\ne f 3\n"


def test_take_keeps_rows_and_lines(tmp_path: Path) -> None:
    """A part of a corpus has its own offsets, and the lines of the whole."""
    part = _read(tmp_path, b"a b\n\nc d\ne f\n\ng h\n").take(1, 3)
    assert part.sentences() == [[("c", "d"), ("e", "f")], [("g", "h")]]
    assert part.lines.tolist() == [3, 4, 6]
    assert format_columns(part, [["1", "2"], ["3"]]) == "c d 1\ne f 2\n\ng h 3\n"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "expected at least one sentence"),
        ([[("a",)], []], "sample 1: expected a list of rows, got an empty sentence"),
        ([[("a", "b"), ("c",)]], "sample 0, position 1: expected 2 columns, got 1"),
        ([("the", "DT"), ("cat", "NN")], "sample 0, position 0: .*one sequence instead of a list"),
        ("the cat", "expected a list of sentences, got str"),
        ([3], "sample 0: expected a sentence, a list of rows, got int"),
        ([[{"w": "x"}]], "sample 0, position 0: expected a row of columns .*got dict"),
        ([[("a", 3)]], "column 1: expected strings, got 3 of type int"),
        ([[("a", ["b"])]], "column 1: expected strings, got .* of type list"),
        ([[()]], "expected at least 1 columns, got 0"),
    ],
)
def test_bad_rows(rows: Any, message: str) -> None:
    """Rows that cannot be used raise DataError naming the sample, the position and the likely cause."""
    with pytest.raises(DataError, match=message):
        ColumnCorpus.from_rows(rows)


def test_bad_predictions() -> None:
    """Predictions of the wrong lengths, or labels that could not be read back, are refused."""
    corpus = ColumnCorpus.from_rows([[("a",), ("b",)]])
    with pytest.raises(DataError, match="1 sentences, but there are predictions for 2"):
        format_columns(corpus, [["X", "Y"], []])
    with pytest.raises(DataError, match="sample 0: the sentence has 2 tokens, but there are 1 predictions"):
        format_columns(corpus, [["X"]])
    for label in ("", "a b", "a\n"):
        with pytest.raises(DataError, match="cannot be written in a column"):
            format_columns(corpus, [["X", label]])


def test_conll2000(data_dir: Path) -> None:
    """The CoNLL-2000 files have their published numbers of sentences and tokens, and read as plain Python reads them."""
    train = read_columns(data_dir / "conll2000" / "train.txt.gz", n_columns=3)
    assert (len(train), train.n_tokens, [len(v) for v in train.vocabularies]) == (8936, 211727, [19122, 44, 22])
    path = data_dir / "conll2000" / "test.txt.gz"
    test = read_columns(path)
    text = gzip.decompress(path.read_bytes()).decode()
    assert test.sentences() == _plain(text)
    assert test.text == text
    lines = text.split("\n")
    assert all(lines[line - 1].split()[0] == word for line, word in zip(test.lines.tolist(), test.column(0), strict=True))


def test_documents(tmp_path: Path) -> None:
    """Boundary lines, or groups, begin documents; parts of a corpus keep what is left of them."""
    text = b"-DOCSTART- O\n\na O\n\nb O\n-DOCSTART- O\nc O\n\n-DOCSTART- X\n\n-DOCSTART- y\n\nd O\ne O\n\nf O\n\n-DOCSTART- O\n"
    corpus = _read(tmp_path, text)
    assert (corpus.documents.tolist(), corpus.document_of.tolist()) == ([0, 2, 3], [0, 0, 1, 2, 2])
    same = ColumnCorpus.from_rows(corpus.sentences(), groups=[7, 7, None, "z", "z"])
    for start in range(5):
        for stop in range(start + 1, 6):
            number = corpus.document_of[start:stop]
            for part in (corpus.take(start, stop), same.take(start, stop)):
                assert part.document_of.tolist() == (np.cumsum(np.diff(number, prepend=number[0]) != 0)).tolist()
    assert _read(tmp_path, b"a O\n\n-DOCSTART- O\nb O").documents.tolist() == [0, 1]
    assert _read(tmp_path, b"a O\n\nb O\n").document_of.tolist() == [0, 1]
    with pytest.raises(DataError, match="groups: expected one for each of the 2 sentences, got 1"):
        ColumnCorpus.from_rows([[("a",)], [("b",)]], groups=[0])
