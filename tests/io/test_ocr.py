"""The OCR letters file."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from structpred.errors import DataError
from structpred.io.ocr import OcrWords, read_ocr


def _row(head: str, pixels: str = "01" * 64) -> str:
    return "\t".join([*head.split(), *pixels])


GOOD = [_row("1 a 2 1 1 0"), _row("2 b -1 1 2 0"), _row("3 c -1 2 1 5", "1" * 128)]


def _read(tmp_path: Path, rows: list[str], end: str = "\n") -> OcrWords:
    path = tmp_path / "letter.data"
    path.write_bytes("".join(row + end for row in rows).encode())
    return read_ocr(path)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\t\n"])
def test_words(tmp_path: Path, end: str) -> None:
    """Letters, words, folds, pixels and lines are read, with a trailing tab (as in the original) or without."""
    words = _read(tmp_path, GOOD, end)
    assert words.letters == [["a", "b"], ["c"]]
    assert (words.offsets.tolist(), words.folds.tolist(), words.lines.tolist()) == ([0, 2, 3], [0, 5], [1, 2, 3])
    assert words.pixels.dtype == np.uint8
    assert words.pixels.tolist() == [[0, 1] * 64, [0, 1] * 64, [1] * 128]
    assert [image.shape for image in words.images()] == [(2, 128), (1, 128)]


def test_packed_and_select(tmp_path: Path) -> None:
    """Packed features are the pixels that are on; selected words keep order, folds and lines."""
    words = _read(tmp_path, GOOD)
    packed = words.packed()
    dense = np.zeros((3, 128))
    dense[np.repeat(np.arange(3), np.diff(packed.indptr)), packed.indices] = packed.values
    assert (dense == words.pixels).all()
    picked = words.select([1, 0])
    assert (picked.letters, picked.offsets.tolist(), picked.lines.tolist()) == ([["c"], ["a", "b"]], [0, 1, 3], [3, 1, 2])
    assert picked.pixels.sum(axis=1).tolist() == [128, 64, 64]
    assert words.select(words.folds == 5).letters == [["c"]]
    assert len(words.select(words.folds == 9)) == 0


@pytest.mark.parametrize(
    ("number", "row", "message"),
    [
        (2, "2\tb\t-1", r"letter\.data:2: expected 134 columns separated by tabs, got 3"),
        (2, _row("2 b -1 1 2 0") + "\t0", ":2: expected 134 columns separated by tabs, got 135"),
        (2, _row("2 b -1 1 2 0", "0" * 127 + "2"), ":2: expected 0 or 1 as pixel 127, got '2'"),
        (2, _row("2 b -1 1 2 0", "é" + "0" * 127), ":2: expected 0 or 1 as pixel 0, got 'é'"),
        (2, _row("2 bb -1 1 2 0"), ":2: expected one character as letter, got 'bb'"),
        (1, _row("1 a 2 x 1 0"), ":1: expected a whole number as word_id, got 'x'"),
        (1, _row("1 a 2 1 1 99999999999999999999"), ":1: expected a whole number as fold"),
        (1, _row("1 a 3 1 1 0"), r":1: expected next_id 2 \(the id of the next line\), got 3"),
        (2, _row("2 b -1 1 3 0"), r":2: expected position 2 \(counting from 1 in each word\), got 3"),
        (1, _row("1 a -1 1 1 0"), r":2: expected position 1 .*, got 2"),
        (2, _row("2 b -1 7 2 0"), ":2: expected word_id 1 .*, got 7"),
        (2, _row("2 b -1 1 2 4"), ":2: expected fold 0 .*, got 4"),
        (3, _row("3 c 4 2 1 5"), ":3: expected next_id -1, because the file ends here, got 4; is the file cut short?"),
    ],
)
def test_bad_lines(tmp_path: Path, number: int, row: str, message: str) -> None:
    """A bad row, or a link that does not hold, raises DataError with file and line."""
    with pytest.raises(DataError, match=message):
        _read(tmp_path, [*GOOD[: number - 1], row, *GOOD[number:]])


def test_no_letters(tmp_path: Path) -> None:
    """A file without a letter is said to be so."""
    with pytest.raises(DataError, match="expected at least one letter, got an empty file"):
        _read(tmp_path, [])
    with pytest.raises(DataError, match="only blank lines"):
        _read(tmp_path, ["", ""])


@pytest.mark.slow
def test_letters_of_the_data_set(data_dir: Path) -> None:
    """The real file has its published numbers of letters, words and words per fold, and its rows as they stand."""
    path = data_dir / "ocr_letters" / "letter.data.gz"
    words = read_ocr(path)
    assert (words.n_letters, len(words)) == (52152, 6877)
    assert np.bincount(words.folds).tolist() == [626, 704, 684, 698, 693, 651, 739, 717, 690, 675]
    rows = [line.split("\t") for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
    assert [letter for word in words.letters for letter in word] == [row[1] for row in rows]
    assert (words.pixels[::97] == np.array([row[6:] for row in rows[::97]], np.uint8)).all()
    assert len({"".join(word) for word in words.letters}) == 55
