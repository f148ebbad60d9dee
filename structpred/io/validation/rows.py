"""The lines of a data file by their numbers, and its rows taken apart: labels, a hash of the rest, which are bad and why."""

import re
from array import array
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from structpred.io import crfsuite, ocr
from structpred.io.string_codes import StringCodes

_PIECE = 1 << 16


class Lines:
    """Lines end at ``\\n``, which one ``\\r`` may precede; a last line end opens no further line. The first has the number 1.

    >>> lines = Lines(b"a\\r\\ncaf\\xe9")
    >>> len(lines), lines[1], lines.text(2), list(lines.pieces())
    (2, b'a', 'caf\\ufffd', [(1, 'a\\ncaf\\ufffd')])
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        kind = np.int32 if len(data) < 1 << 31 else np.int64
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == 10).astype(kind)
        self._ends = ends if data.endswith(b"\n") or not data else np.append(ends, kind(len(data)))

    def __len__(self) -> int:
        return len(self._ends)

    def _start(self, number: int) -> int:
        return self.end(number - 1) + 1 if number > 1 else 0

    def __getitem__(self, number: int) -> bytes:
        return self.data[self._start(number) : self.end(number)].removesuffix(b"\r")

    def end(self, number: int) -> int:
        """The byte behind the last one of a line."""
        return int(self._ends[number - 1])

    def text(self, number: int) -> str:
        """A line, with U+FFFD for bytes that are not UTF-8."""
        return self[number].decode("utf-8", "replace")

    def number_at(self, byte: int) -> int:
        """The number of the line that this byte of the data is in."""
        kind = self._ends.dtype.type  # a number of another type makes `searchsorted` copy all ends
        return int(self._ends.searchsorted(kind(min(byte, len(self.data))))) + 1

    def pieces(self) -> Iterator[tuple[int, str]]:
        """Pieces of whole lines as `text` gives them, joined by ``\\n``; each with the number of its first line."""
        number = 1
        while number <= len(self):
            last = min(self.number_at(self._start(number) + _PIECE), len(self))
            piece = self.data[self._start(number) : self.end(last)]
            try:
                yield number, piece.decode("utf-8").replace("\r\n", "\n").removesuffix("\r")
            except UnicodeDecodeError:
                yield number, "\n".join(map(self.text, range(number, last + 1)))
            number = last + 1


#: of a file with more different labels none are counted: it would take many times the memory of the file, and what has so
#: many is hardly ever a column of labels
MOST_LABELS = 10_000


class LabelCodes:
    """Labels numbered in order of first appearance. excess: the place of the first one beyond MOST_LABELS, else None.

    Once there is one, all are forgotten.

    >>> labels = LabelCodes()
    >>> labels.extend(["b", "a", "b"])
    >>> labels.names, labels.codes.tolist(), labels.excess
    (['b', 'a'], [0, 1, 0], None)
    """

    def __init__(self) -> None:
        self.excess: int | None = None
        self._forget()

    def _forget(self) -> None:
        self._codes, self._numbers = array("i"), StringCodes()

    @property
    def names(self) -> list[str]:
        """The distinct labels."""
        return list(self._numbers)

    @property
    def codes(self) -> npt.NDArray[np.int32]:
        """The number of each label."""
        return np.asarray(self._codes)

    def extend(self, labels: Sequence[str]) -> None:
        """Further labels."""
        if self.excess is not None:
            return
        self._codes.extend(map(self._numbers.__getitem__, labels))
        if len(self._numbers) > MOST_LABELS:
            self.excess = self._codes.index(MOST_LABELS)
            self._forget()


_GAP = re.compile("[ \t]+")
#: what a line is; from ENCODING on it is bad
GOOD, BLANK, ENCODING, COLUMNS, ROW, LINKS = range(6)


class Rows:
    """The rows of a text in a format. kinds: what each line is; this tells BLANK, COLUMNS and ROW among those that are GOOD.

    labels: of the good rows. excess: the line of the first label that was too many, else None. hashes: of each line all but the
    label; the strings would take several times the memory of the text. bare: whether no good row has more than a label.
    """

    def __init__(self, lines: Lines, format: str, kinds: npt.NDArray[np.uint8], width: int | None, label: int) -> None:
        self.lines, self.format, self.kinds, self.width, self._label = lines, format, kinds, width, label
        self.hashes = np.zeros(len(lines), np.int64)
        self.bare = True
        self.labels = LabelCodes()
        for number, text in lines.pieces():
            here = slice(number - 1, number + text.count("\n"))
            found, rest, own = list[str](), list[str](), kinds[here]
            for k, line in enumerate(text.split("\n")):
                row = self._row(line) if own[k] == GOOD else int(own[k])
                if isinstance(row, int):
                    own[k] = row
                else:
                    found.append(row[0])
                    rest.append(row[1])
            if any(rest):  # else all are the hash of nothing, 0
                self.bare = False
                self.hashes[here][own == GOOD] = np.fromiter(map(hash, rest), np.int64, len(rest))
            self.labels.extend(found)
        excess = self.labels.excess
        self.excess = None if excess is None else int(np.flatnonzero(kinds == GOOD)[excess]) + 1

    def content(self, number: int) -> str:
        """All but the label of the good row in this line."""
        row = self._row(self.lines.text(number))
        return "" if isinstance(row, int) else row[1]

    def _row(self, line: str) -> tuple[str, str] | int:
        """(label, everything else) of a good row; of another line what it is."""
        if self.width is not None:
            fields = _GAP.split(line.strip(" \t"), self.width)  # no more than one too many: a line may have a million
            if len(fields) != self.width or not fields[0]:
                return COLUMNS if fields[0] else BLANK
            return fields.pop(self._label), " ".join(fields)
        if not line:
            return BLANK
        if (ocr if self.format == "ocr" else crfsuite).line_problem(line) is not None:
            return ROW
        if self.format == "ocr":
            fields = line.split("\t", 6)
            return fields[1], fields[6].rstrip("\t")
        label, _, rest = line.partition("\t")
        return label, rest


def word_ends(lines: Lines) -> npt.NDArray[np.int64]:
    """Where words begin, counted in rows: a word ends where next_id is -1, or the word's number changes."""
    offsets, n = array("q", [0]), 0
    word: str | None = None
    for _, text in lines.pieces():
        for line in filter(None, text.split("\n")):
            fields = line.split("\t", 5)
            here = fields[3] if len(fields) > 5 else word
            if n > offsets[-1] and word is not None and here != word:
                offsets.append(n)
            n += 1
            word = here
            if len(fields) > 2 and fields[2] == "-1":
                offsets.append(n)
                word = None
    if n > offsets[-1]:
        offsets.append(n)
    return np.asarray(offsets)


def broken_links(lines: Lines, kinds: npt.NDArray[np.uint8], words: Iterator[list[int]]) -> Iterator[tuple[int, str]]:
    """The lines whose ids, positions, words or folds do not hold, wherever both neighbours can be read; what is wrong.

    words: the lines of each.
    """
    end = len(lines)
    while end and not lines[end]:
        end -= 1
    for word in words:
        heads = {
            n: [int(text) for k, text in enumerate(lines.text(n).split("\t", 6)[:6]) if k != 1]
            for n in word
            if kinds[n - 1] == GOOD
        }
        for place, number in enumerate(word, 1):
            if number not in heads:
                continue
            _, following, _, position, fold = heads[number]
            last = place == len(word)
            after = None if last else heads.get(word[place])
            if last and following != -1:
                reason = "the file ends here; is it cut short?" if number == end else "the word ends here"
                yield number, f"expected next_id -1, because {reason}, got {following}"
            elif after is not None and following != after[0]:
                yield number, f"expected next_id {after[0]} (the id of the next line), got {following}"
            elif position != place:
                yield number, f"expected position {place} (counting from 1 in each word), got {position}"
            elif after is not None and fold != after[4]:
                yield number, f"expected the fold of the next line, in the same word, {after[4]}, got {fold}"
