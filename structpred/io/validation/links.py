"""Whether the letters of OCR data fit together: words, and what a letter says of its neighbours."""

from array import array
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from structpred.io.validation.lines import Lines
from structpred.io.validation.rows import GOOD


def word_offsets(lines: Lines) -> npt.NDArray[np.int64]:
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
