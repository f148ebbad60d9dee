"""The rows of a data file taken apart: the label of each, a hash of the rest, and which of them are bad."""

import re

import numpy as np
import numpy.typing as npt

from structpred.io import crfsuite_text, ocr
from structpred.io.columns import fields_of_lines
from structpred.io.validation.labels import LabelCodes
from structpred.io.validation.lines import Lines

_FIELD = re.compile("[^ \t\n]+")
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
            found, rest = (self._columns if self.width is not None else self._others)(text, kinds[here])
            if any(rest):  # else all are the hash of nothing, 0
                self.bare = False
                self.hashes[here][kinds[here] == GOOD] = np.fromiter(map(hash, rest), np.int64, len(rest))
            self.labels.extend(found)
        excess = self.labels.excess
        self.excess = None if excess is None else int(np.flatnonzero(kinds == GOOD)[excess]) + 1

    def content(self, number: int) -> str:
        """All but the label of the good row in this line."""
        line = self.lines.text(number)
        if self.width is None:
            return self._split(line)[1]
        fields = _FIELD.findall(line)
        del fields[self._label]
        return " ".join(fields)

    def _columns(self, text: str, kinds: npt.NDArray[np.uint8]) -> tuple[list[str], list[str]]:
        """The labels and the contents of good rows; the kinds of the others are noted."""
        width = self.width or 0
        counts = fields_of_lines(text)
        sound = kinds == GOOD
        kinds[sound & (counts != width)] = COLUMNS
        kinds[sound & (counts == 0)] = BLANK
        if (kinds > BLANK).any():
            rows = text.split("\n")
            text = "\n".join(rows[k] for k in np.flatnonzero(kinds == GOOD).tolist())
        fields = _FIELD.findall(text)
        columns = [fields[j::width] for j in range(width)]
        labels = columns.pop(self._label)
        return labels, list(map(" ".join, zip(*columns, strict=True))) if columns else [""] * len(labels)

    def _others(self, text: str, kinds: npt.NDArray[np.uint8]) -> tuple[list[str], list[str]]:
        """The same for formats whose rows are looked at one by one."""
        problem = (ocr if self.format == "ocr" else crfsuite_text).line_problem
        labels, contents = [], []
        for k, line in enumerate(text.split("\n")):
            if not line:
                kinds[k] = BLANK
            elif kinds[k] == GOOD:
                if problem(line) is not None:
                    kinds[k] = ROW
                    continue
                label, rest = self._split(line)
                labels.append(label)
                contents.append(rest)
        return labels, contents

    def _split(self, line: str) -> tuple[str, str]:
        """(label, everything else)."""
        if self.format == "ocr":
            fields = line.split("\t", 6)
            return fields[1], fields[6].rstrip("\t")
        label, _, rest = line.partition("\t")
        return label, rest
