"""Promises of what large or odd input costs: input of a megabyte that took minutes or gigabytes is read or refused at once."""

import contextlib
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from structpred.data.hierarchy import LabelHierarchy
from structpred.errors import DataError
from structpred.io import (
    read_clus,
    read_columns,
    read_crfsuite,
    read_libsvm_multilabel,
    read_mulan,
    read_npz_multilabel,
    read_text,
    read_treebank,
    read_uai,
    validate_treebank,
)
from structpred.io.multilabel.arff import split_values
from structpred.io.multilabel.data import MOST_FEATURES
from structpred.io.string_codes import NumberedNames
from structpred.io.validation.columns import validate
from structpred.io.validation.rows import Lines


def saved(tmp_path: Path, data: bytes) -> Path:
    """A file of these bytes."""
    path = tmp_path / "large"
    path.write_bytes(data)
    return path


def test_twenty_million_features_of_a_line(tmp_path: Path) -> None:
    """A large index names its features when they are asked for; reading takes memory for what the file holds."""
    path = saved(tmp_path, b"1,3 4:0.5\n2 20000000:2.5\n")
    read_libsvm_multilabel(path)  # imports
    tracemalloc.start()
    data = read_libsvm_multilabel(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20
    assert (data.X.shape, data.feature_names[0], data.feature_names[-1]) == ((2, 20_000_000), "1", "20000000")
    assert data.take([1]).feature_names is data.feature_names


def test_an_index_beyond_all_measure(tmp_path: Path) -> None:
    """An index that no data set has is refused with its line, unless the number of features was given."""
    path = saved(tmp_path, b"1 1:1\n1 %d:1\n" % (MOST_FEATURES + 1))
    with pytest.raises(DataError, match=rf"large:2: expected an index of at most {MOST_FEATURES} \(n_features=N allows"):
        read_libsvm_multilabel(path)
    assert read_libsvm_multilabel(path, n_features=1 << 30).X.shape == (2, 1 << 30)


def test_names_that_are_numbers() -> None:
    """NumberedNames are the list of the numbers as strings in all that readers of names do."""
    names, listed = NumberedNames(1, 4), ["1", "2", "3", "4"]
    assert (len(names), list(names), names[1], names[-1], names[1:3]) == (4, listed, "2", "4", ["2", "3"])
    assert names == listed
    assert names == NumberedNames(1, 4)
    assert names != NumberedNames(0, 4)
    assert names != listed[:3]
    assert "3" in names
    assert "5" not in names
    with pytest.raises(IndexError):
        names[4]


@pytest.mark.slow
def test_labels_that_are_numbers_of_examples(tmp_path: Path) -> None:
    """A table of labels out of all proportion to its file is refused before it is made."""
    for n, seen in ((20_000, "20,000"), (80_000, "65,537")):  # of a larger file not all is read
        path = saved(tmp_path, b"".join(b"%d\n" % k for k in range(n)))
        with pytest.raises(DataError, match=f"{seen} examples with {seen} labels would make a table of "):
            read_libsvm_multilabel(path)
    attributes = b"".join(b"@attribute a%d {0,1}\n" % k for k in range(2_000))
    path = saved(tmp_path, b"@relation r\n" + attributes + b"@attribute x numeric\n@data\n" + b"{}\n" * 50_000)
    with pytest.raises(DataError, match="50,000 examples with 2,000 labels"):
        read_mulan(path, -2_000)


@pytest.mark.parametrize("front", [b"", b"1", b"."])
def test_a_long_number_that_is_none(front: bytes, tmp_path: Path) -> None:
    """A million digits with a letter behind them are no number, which is said in linear time."""
    with pytest.raises(DataError, match="large:1: expected a finite number after the colon"):
        read_crfsuite(saved(tmp_path, b"O\ta:" + front + b"9" * 1_000_000 + b"x"))


@pytest.mark.parametrize(
    "text", [" " * 1_000_000 + "'", "a" + " " * 1_000_000 + "'", "'" + "\\'" * 500_000, "a,b" + " " * 1_000_000 + '"c"']
)
def test_values_with_bad_quotes(text: str) -> None:
    """Blanks and escapes in front of a quote that does not fit are refused in linear time."""
    with pytest.raises(DataError, match="f:1: expected values separated by commas"):
        split_values(text, "f:1")


def test_a_long_path_of_labels(tmp_path: Path) -> None:
    """A hierarchical label of too many parts is refused: the names above it would grow with the square of its length."""
    text = b"@relation r\n@attribute c hierarchical " + b"a/" * 200_000 + b"a\n@attribute x numeric\n@data\na,1\n"
    with pytest.raises(DataError, match=r"large:2: expected paths of at most 100 labels, got one of 200001"):
        read_clus(saved(tmp_path, text))


@pytest.mark.slow
def test_a_long_circle_of_labels() -> None:
    """A hierarchy that is one circle of many labels is refused with its first few."""
    n = 200_000
    edges = [(k, (k + 1) % n) for k in range(n)]
    with pytest.raises(DataError, match=r"cycle: .{,300}$"):
        LabelHierarchy(n, edges)


def test_text_attributes_that_rows_leave_out(tmp_path: Path) -> None:
    """Rows that leave thousands of text attributes out cost nothing for them."""
    attributes = b"".join(b"@attribute s%d string\n" % k for k in range(1_000))
    path = saved(tmp_path, b"@relation r\n" + attributes + b"@attribute l {0,1}\n@data\n" + b"{}\n" * 20_000)
    with pytest.raises(DataError, match="expected numeric or nominal, got string"):
        read_mulan(path, ["l"])


def test_a_line_of_very_many_columns(tmp_path: Path) -> None:
    """A line of a million words is no row of a table; a treebank has no line of more than a megabyte, no text one of 16."""
    with pytest.raises(DataError, match=r"large:2: expected at most 10,000 columns, got 1,000,000"):
        read_columns(saved(tmp_path, b"\n" + b"a " * 1_000_000))
    with pytest.raises(DataError, match=r"large: expected a treebank, got a line of more than 1 MiB"):
        read_treebank(saved(tmp_path, b"1" + b"\t_" * 1_000_000))
    with pytest.raises(DataError, match=r"large:3: expected lines of at most 16 MiB"):
        read_text(saved(tmp_path, b"a\nb\n" + b"c" * (17 << 20)))


@pytest.mark.parametrize("bent", ["label_names", "feature_names", "Y"])
def test_arrays_that_claim_what_no_file_holds(bent: str, tmp_path: Path) -> None:
    """Names of characters that Unicode lacks, and an axis of millions next to one of no length, are refused by name."""
    arrays = {"X": np.eye(2), "Y": np.eye(2, dtype=np.uint8)}
    wrong = np.zeros((0, 30_000_000), np.uint8) if bent == "Y" else np.array([0x7FFFFFFF, 97], np.uint32).view("<U1")
    np.savez(tmp_path / "d.npz", **{**arrays, bent: wrong})  # type: ignore[arg-type]
    with pytest.raises(DataError, match=rf"d\.npz: .*{bent}"):
        read_npz_multilabel(tmp_path / "d.npz")


def words(n: int) -> list[bytes]:
    """Words of five letters, no two of them alike."""
    return [b"%05x" % k for k in range(0x10000, 0x10000 + n)]


@pytest.mark.parametrize(
    "data",
    [
        b"a\n\n" * 200_000,
        b"O" + b"\ta:1" * 100_000,
        b"O" + b"\t" * 300_000,
        pytest.param(b"\n".join(words(200_000)), marks=pytest.mark.slow),
        pytest.param(b"O\t" + b"\t".join(words(200_000)), marks=pytest.mark.slow),
    ],
)
def test_many_short_items(data: bytes, tmp_path: Path) -> None:
    """Sequences of a letter and items of very many attributes take less than 20 times their size, strings all different 30."""
    path = saved(tmp_path, data)
    tracemalloc.start()
    with contextlib.suppress(DataError):
        read_crfsuite(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < (30 if data.endswith(words(200_000)[-1]) else 20) * len(data)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("tabs", [False, True])
@pytest.mark.parametrize("line", [b"", b"a", b"ab", b"a\r", b"a b\n", pytest.param(b"different", marks=pytest.mark.slow)])
def test_many_short_lines_of_columns(line: bytes, tabs: bool, tmp_path: Path) -> None:
    """A file of very short lines takes less than 20 times its size, though each line has numbers of its own; of new words 30."""
    data = b"x y\n\n" + (line + b"\n") * (700_000 // (len(line) + 1))
    path = saved(tmp_path, b"\n".join(words(200_000)) if line == b"different" else data)
    tracemalloc.start()
    with contextlib.suppress(DataError):
        read_columns(path, tabs=tabs)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < (30 if line == b"different" else 20) * path.stat().st_size


@pytest.mark.slow
def test_very_many_examples_of_a_label(tmp_path: Path) -> None:
    """LIBSVM's text with a letter a line takes less than 20 times its size, and a megabyte."""
    read_libsvm_multilabel(saved(tmp_path, b"a 1:1\n"))  # imports
    path = saved(tmp_path, b"a\n" * 50_000)
    tracemalloc.start()
    data = read_libsvm_multilabel(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * path.stat().st_size + (1 << 20)
    assert (data.Y.shape, data.Y.all()) == ((50_000, 1), True)


@pytest.mark.slow
def test_a_treebank_of_problems(tmp_path: Path) -> None:
    """A file with a problem in each of very many short lines is refused before they are all told."""
    row = b"1\ta\t_\t_\t_\t_\t0\t_\t_\t_\n\n"
    assert len(validate_treebank(saved(tmp_path, row + b"\n" * 1_000))) == 1_000
    with pytest.raises(DataError, match=r"large: expected a treebank, got 65,537 problems before line 65,5.*first: line 3: "):
        validate_treebank(saved(tmp_path, row + b"\n" * 70_000))


@pytest.mark.mostly_slow
@pytest.mark.parametrize(
    ("format", "data"),
    [
        ("columns", b"".join(b"x\t%s\n" % word for word in words(20_000))),
        ("crfsuite", b"".join(b"%s\tx\n" % word for word in words(20_000))),
        ("crfsuite", b"".join(b"N\tx=%s\n" % word for word in words(20_000))),
        ("columns", b"B-ab\n" + b"I-ac\nI-ab\n" * 20_000),
    ],
)
def test_validation_of_odd_labels(format: str, data: bytes, tmp_path: Path) -> None:
    """Validation of labels or words all different, or of a long invalid sequence, takes at most 20 times the file, and 256 kB."""
    validate(saved(tmp_path, b"a b\n"), format)  # imports
    path = saved(tmp_path, data)
    tracemalloc.start()
    found = validate(path, format)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * path.stat().st_size + (1 << 18)
    assert (found.files[0].n_sequences, found.files[0].n_tokens) == (1, data.count(b"\n"))


def test_finding_the_line_of_a_byte() -> None:
    """The line of a byte is found without a copy of all line ends, so that very many are found in little time."""
    lines = Lines(b"ab\n" * 50_000)
    tracemalloc.start()
    found = [lines.number_at(byte) for byte in (0, 2, 3, 149_999, 1 << 40)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (found, peak < 50_000) == ([1, 1, 2, 50_000, 50_001], True)


@pytest.mark.parametrize(("scope", "table"), [(b"1 0 ", b"1 1 "), (b"0 ", b"1 1 ")])
def test_very_many_factors(scope: bytes, table: bytes, tmp_path: Path) -> None:
    """A model of very many factors with an entry each takes less than 20 times its size, and has a table for each."""
    n = 5_000
    path = saved(tmp_path, b"MARKOV 1 1 %d " % n + scope * n + table * n)
    tracemalloc.start()
    model = read_uai(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * path.stat().st_size
    assert (len(model.tables), model.scopes[-1], model.tables[-1].item()) == (n, (0,) * (len(scope) // 4), 1.0)
