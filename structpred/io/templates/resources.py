"""Files that transforms look things up in: word classes and lists of phrases, read within limits, and kept in model files."""

import codecs
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property

from structpred.errors import DataError
from structpred.io.opening import open_bytes
from structpred.io.text import decoded, quoted, split_lines

#: the transforms that name a file, by their kind and the file
FROM_FILE = re.compile(r"(in|cluster(?:[1-9][0-9]?)?):(.+)")
#: what a file may hold: each line becomes many times its size
MOST_BYTES, MOST_LINES, LONGEST_ENTRY = 64 << 20, 2_000_000, 500


class Resource:
    """The lines of a file. path: for messages. What is made of lines of another form is a DataError that names the first one.

    >>> Resource("places.txt", ["New York\\tLOC", "York"]).phrases
    {'New York': '-LOC', 'York': ''}
    """

    def __init__(self, path: str, lines: Sequence[str]) -> None:
        self.path, self.lines = path, lines

    @cached_property
    def classes(self) -> dict[str, str]:
        """The class of each word."""
        found: dict[str, str] = {}
        for where, (name, word, *_) in self._entries("class and word, perhaps a count", 2, 3):
            if found.setdefault(word, name) != name:
                raise DataError(f"{where}: expected each word once, got {quoted(word)} in two classes; is the class in column 0?")
        return found

    @cached_property
    def phrases(self) -> dict[str, str]:
        """For each phrase, its words joined by single spaces, what follows B or I: nothing, or a hyphen and its types."""
        found: dict[str, str] = {}
        for _, (text, *types) in self._entries("a phrase, perhaps its type", 1, 2):
            phrase = " ".join(filter(None, text.split(" ")))
            known = found.setdefault(phrase, "")
            if types and types[0] not in known[1:].split("+"):
                found[phrase] = sys.intern(f"{known or '-'}{'+' * bool(known)}{types[0]}")  # there are few, of many phrases
        return found

    @cached_property
    def _longest(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for phrase in self.phrases:
            word, n = phrase.partition(" ")[0], phrase.count(" ") + 1
            found[word] = max(found.get(word, 0), n)
        return found

    def longest_from(self, word: str) -> int:
        """How many words the longest phrase has that begins with this word, in any case that counts; 0 where none does."""
        return max(self._longest.get(word, 0), self._longest.get(word.lower(), 0))

    def _entries(self, expected: str, least: int, most: int) -> Iterator[tuple[str, list[str]]]:
        """The fields of each line that is not blank, behind its place."""
        for number, line in enumerate(self.lines, 1):
            where, fields = f"{self.path}:{number}", line.split("\t")
            if len(line) > LONGEST_ENTRY:
                raise DataError(f"{where}: expected at most {LONGEST_ENTRY:,} characters, got {len(line):,}: {quoted(line)}")
            if line.strip():
                if not least <= len(fields) <= most or not all(map(str.strip, fields)):
                    raise DataError(f"{where}: expected {expected}, separated by tabs, got {quoted(line)}")
                yield where, fields


def looked_up(table: Mapping[str, str], text: str) -> str | None:
    """What a table has for a text as it is, or else for the text in lower case."""
    return table.get(text, table.get(text.lower()))


def read_resource(path: str) -> Resource:
    """The lines of a file. Raises DataError, naming file and line: what `read_text` raises, and too many bytes or lines."""
    size = 0
    with suppress(OSError, ValueError):  # which opening it names
        size = os.path.getsize(path)
    with open_bytes(path, path) as stream:
        data = b"" if size > MOST_BYTES else stream.read(MOST_BYTES + 1).removeprefix(codecs.BOM_UTF8)
    size = max(size, len(data))
    if size > MOST_BYTES or data.count(b"\n") > MOST_LINES:
        raise DataError(f"{path}: expected at most {MOST_BYTES >> 20} MiB and {MOST_LINES:,} lines, got {size:,} bytes")
    return Resource(path, list(split_lines(decoded(data, path))))
