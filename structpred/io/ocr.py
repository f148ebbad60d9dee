"""The OCR letters file (Kassel; Taskar, Guestrin and Koller 2003): one letter of 16 x 8 pixels per line, in words."""

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.data.ragged import Ragged
from structpred.data.sequences import PackedSequences
from structpred.errors import DataError
from structpred.io.text import PathLike, first_error, numbered_pieces, quoted, read_text, source_name
from structpred.runtime.ranges import picked

N_PIXELS = 128
_COLUMNS = ("id", "letter", "next_id", "word_id", "position", "fold")
_TAIL = 2 * N_PIXELS  # bytes of "\t0\t1..." at the end of every line
_SHORTEST = _TAIL + 2 * len(_COLUMNS) - 1
#: the strings of one piece are freed before the next is taken apart
_PIECE = 1 << 20


@dataclass(frozen=True, eq=False)
class OcrWords(Ragged):
    """Words of letter images.

    pixels: uint8 (n_letters, 128), 0 or 1, 16 rows of 8. letters: one list of letters per word. offsets: int64
    (n_words + 1), word i is the letters ``offsets[i]:offsets[i+1]``. folds: int64 (n_words). lines: int64 (n_letters),
    1-based. name: the source, for messages.
    """

    pixels: npt.NDArray[np.uint8]
    letters: list[list[str]]
    offsets: npt.NDArray[np.int64]
    folds: npt.NDArray[np.int64]
    lines: npt.NDArray[np.int64]
    name: str

    @property
    def n_letters(self) -> int:
        """The number of letters of all words together."""
        return len(self.pixels)

    def images(self) -> list[npt.NDArray[np.uint8]]:
        """One array (length of the word, 128) per word; views of ``pixels``."""
        return np.split(self.pixels, self.offsets[1:-1])

    def packed(self) -> PackedSequences:
        """The words as packed features: the pixels that are on, with the value 1; 128 features."""
        rows, columns = np.nonzero(self.pixels)
        indptr = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=self.n_letters))))
        values = np.ones(len(columns), np.float32)
        return PackedSequences(indptr, columns.astype(np.int32), values, self.offsets, N_PIXELS)

    def select(self, words: npt.ArrayLike) -> "OcrWords":
        """Some of the words, by number or by mask, in the order given: ``words.select(words.folds == 0)``."""
        chosen = np.asarray(words)
        chosen = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen.astype(np.int64)
        rows, offsets = picked(self.offsets, chosen)
        letters = [self.letters[i] for i in chosen.tolist()]
        return OcrWords(self.pixels[rows], letters, offsets, self.folds[chosen], self.lines[rows], self.name)


def read_ocr(path: PathLike, *, encoding: str = "utf-8") -> OcrWords:
    """Read a ``letter.data`` file: id, letter, next_id, word_id, position, fold and 128 pixels, separated by tabs.

    Raises DataError with file and line: a wrong number of columns, a pixel that is not 0 or 1, something that is not
    a number, a letter that is not one character, links that do not hold (next_id must be the id of the next line or -1
    at the end of a word; position counts from 1; word_id and fold are those of the word), no letter at all.
    """
    return parse_ocr(read_text(path, encoding), source_name(path))


def parse_ocr(text: str, name: str) -> OcrWords:
    """As `read_ocr`, for text that was read already; name: for messages."""
    body = text.replace("\r\n", "\n").removesuffix("\r") if "\r" in text else text
    pieces = [_parse_piece(piece, number, name) for number, piece in numbered_pieces(body, _PIECE)]
    lines = np.concatenate([np.zeros(0, np.int64), *(piece.lines for piece in pieces)])
    if not len(lines):
        raise DataError(f"{name}: expected at least one letter, got {'only blank lines' if text else 'an empty file'}")
    pixels = np.concatenate([piece.pixels for piece in pieces])
    letters = list(itertools.chain.from_iterable(piece.letters for piece in pieces))
    table = np.concatenate([piece.numbers for piece in pieces])
    offsets = _word_offsets(table, lines, name)
    nested = [letters[start:stop] for start, stop in itertools.pairwise(offsets.tolist())]
    return OcrWords(pixels, nested, offsets, table[offsets[:-1], 4], lines, name)


class _Piece(NamedTuple):
    """What one piece of the text gives: of each letter its pixels, itself, the five numbers, its line."""

    pixels: npt.NDArray[np.uint8]
    letters: list[str]
    numbers: npt.NDArray[np.int64]
    lines: npt.NDArray[np.int64]


def _parse_piece(piece: str, number: int, name: str) -> _Piece:
    rows = piece.split("\n")
    lines = np.flatnonzero(np.fromiter(map(bool, rows), np.bool_, len(rows))) + number
    kept = [row.removesuffix("\t") for row in rows if row]
    if min(map(len, kept), default=_SHORTEST) < _SHORTEST:  # before each line is taken apart
        raise _first_error(kept, lines, name)
    heads = [row[:-_TAIL].split("\t", len(_COLUMNS)) for row in kept]
    tails = [row[-_TAIL:] for row in kept]
    if not all(len(head) == len(_COLUMNS) for head in heads):
        raise _first_error(kept, lines, name)
    raw = np.frombuffer("".join(tails).encode("ascii", "replace"), np.uint8).reshape(len(kept), _TAIL)
    pixels = raw[:, 1::2] - np.uint8(48)
    if (raw[:, ::2] != 9).any() or (pixels > 1).any():
        raise _first_error(kept, lines, name)
    try:
        table = np.array([[int(head[k]) for k in (0, 2, 3, 4, 5)] for head in heads], np.int64).reshape(-1, 5)
    except (ValueError, OverflowError):
        raise _first_error(kept, lines, name) from None
    letters = [head[1] for head in heads]
    if any(len(letter) != 1 or letter.isspace() for letter in letters):
        raise _first_error(kept, lines, name)
    return _Piece(np.ascontiguousarray(pixels), letters, table, lines)


def _word_offsets(table: npt.NDArray[np.int64], lines: npt.NDArray[np.int64], name: str) -> npt.NDArray[np.int64]:
    """Where words begin, from the next_id column, once all links have been checked."""
    ids, following, words, positions, folds = table.T
    last = following == -1
    ends = np.flatnonzero(last)
    if not len(ends) or ends[-1] != len(ids) - 1:
        raise DataError(
            f"{name}:{lines[-1]}: expected next_id -1, because the file ends here, got {following[-1]}; is the file cut short?"
        )
    offsets = np.concatenate(([0], ends + 1)).astype(np.int64)
    counted = np.arange(1, len(ids) + 1) - np.repeat(offsets[:-1], np.diff(offsets))
    inner = ~last[:-1]
    same = "that of the line before, in the same word"
    for bad, column, got, expected, reason, at in (
        (inner & (following[:-1] != ids[1:]), "next_id", following[:-1], ids[1:], "the id of the next line", lines),
        (positions != counted, "position", positions, counted, "counting from 1 in each word", lines),
        (inner & (words[:-1] != words[1:]), "word_id", words[1:], words[:-1], same, lines[1:]),
        (inner & (folds[:-1] != folds[1:]), "fold", folds[1:], folds[:-1], same, lines[1:]),
    ):
        if bad.any():
            k = int(np.argmax(bad))
            raise DataError(f"{name}:{at[k]}: expected {column} {expected[k]} ({reason}), got {got[k]}")
    return offsets


def _first_error(rows: list[str], lines: npt.NDArray[np.int64], name: str) -> DataError:
    return first_error(zip(lines.tolist(), rows, strict=True), line_problem, name)


def line_problem(line: str) -> str | None:
    """What is wrong with one line by itself (its links to other lines are not looked at); None for a good one."""
    row, expected = line.removesuffix("\t"), len(_COLUMNS) + N_PIXELS
    if (found := row.count("\t") + 1) != expected:
        shown = row.replace("\t", " ")
        return f"expected {expected} columns separated by tabs, got {found}: {quoted(shown)}"
    fields = row.split("\t")
    for column, field in zip(_COLUMNS, fields, strict=False):
        if column == "letter":
            if len(field) != 1 or field.isspace():
                return f"expected one character as letter, got {quoted(field)}"
        elif not _is_integer(field):
            return f"expected a whole number as {column}, got {quoted(field)}"
    for k, field in enumerate(fields[len(_COLUMNS) :]):
        if field not in ("0", "1"):
            return f"expected 0 or 1 as pixel {k}, got {quoted(field)}"
    return None


def _is_integer(field: str) -> bool:
    try:
        return -(2**63) <= int(field) < 2**63
    except ValueError:
        return False
