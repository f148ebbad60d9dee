"""Treebank formats: what each tab-separated column of a word line holds, which rules the lines keep, and open files in them."""

import codecs
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import BinaryIO, NamedTuple

from structpred.errors import DataError, ParameterError
from structpred.io.opening import Source, open_bytes
from structpred.io.text import check_lines, quoted, stream_name


@dataclass(frozen=True)
class TreebankFormat:
    """One format of treebank files: a word per line, columns separated by single tabs, a blank line after each sentence.

    columns: their names; column 0 is the ID, which counts the words from 1. form, head, deprel: the numbers of these
    columns, from 0. lemma, upos, xpos, feats: likewise, None where the format has none. open_ended: more columns may
    follow, as many on every line of a sentence. comments: lines that begin with ``#`` are comments. extended_ids: there
    are lines of multiword tokens (ID 3-4) and of empty nodes (ID 5.1), which are not words. single_root: exactly one word
    of a sentence has head 0. spaced: the columns that may contain spaces.

    Raises ParameterError for a column that is not there.

    >>> CONLL_U.columns[CONLL_U.deprel], CONLL_2009.columns[CONLL_2009.deprel]
    ('DEPREL', 'DEPREL')
    """

    name: str
    columns: tuple[str, ...]
    form: int
    head: int
    deprel: int
    lemma: int | None = None
    upos: int | None = None
    xpos: int | None = None
    feats: int | None = None
    open_ended: bool = False
    comments: bool = False
    extended_ids: bool = False
    single_root: bool = False
    spaced: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        used = [self.form, self.head, self.deprel, *self.spaced]
        used += [column for column in (self.lemma, self.upos, self.xpos, self.feats) if column is not None]
        for column in used:
            if not 0 < column < len(self.columns):
                raise ParameterError(
                    f"format {self.name}: expected columns from 1 to {len(self.columns) - 1} (0 is the ID), got {column}"
                )
        if self.head == self.deprel:
            raise ParameterError(f"format {self.name}: head and deprel are the same column {self.head}")

    @property
    def n_columns(self) -> int:
        """The number of columns, or the least number where `open_ended`."""
        return len(self.columns)


CONLL_U = TreebankFormat(
    name="conllu", columns=("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC"),
    form=1, lemma=2, upos=3, xpos=4, feats=5, head=6, deprel=7,
    comments=True, extended_ids=True, single_root=True, spaced=(1, 2, 9),
)  # fmt: skip
CONLL_X = replace(
    CONLL_U, name="conllx", columns=("ID", "FORM", "LEMMA", "CPOSTAG", "POSTAG", "FEATS", "HEAD", "DEPREL", "PHEAD", "PDEPREL"),
    comments=False, extended_ids=False, single_root=False,
    spaced=(1, 2),  # eval07.pl takes them, and treebanks of the shared tasks have them
)  # fmt: skip
# The tree of CoNLL-2008 is one of the split forms (hyphenated words in parts); FORM is _ for the later parts.
CONLL_2008 = TreebankFormat(
    name="conll2008",
    columns=("ID", "FORM", "LEMMA", "GPOS", "PPOS", "SPLIT_FORM", "SPLIT_LEMMA", "PPOSS", "HEAD", "DEPREL", "PRED"),
    form=5, lemma=6, upos=3, xpos=7, head=8, deprel=9, open_ended=True,
)  # fmt: skip
# FILLPRED, PRED and the arguments of each predicate follow, or not: parsers alone write the twelve.
CONLL_2009 = TreebankFormat(
    name="conll2009",
    columns=("ID", "FORM", "LEMMA", "PLEMMA", "POS", "PPOS", "FEAT", "PFEAT", "HEAD", "PHEAD", "DEPREL", "PDEPREL"),
    form=1, lemma=2, upos=4, xpos=5, feats=6, head=8, deprel=10, open_ended=True,
)  # fmt: skip

#: the formats by name
TREEBANK_FORMATS = {one.name: one for one in (CONLL_U, CONLL_X, CONLL_2008, CONLL_2009)}

#: how many lines are read to detect the format
LINES_THAT_TELL = 1000

_UNIVERSAL_TAGS = frozenset(
    "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X _".split()  # noqa: SIM905
)
_SPECIAL_ID = re.compile(r"[0-9]+[-.][0-9]+")
_ENHANCED = re.compile(r"[0-9.]+:")
_ID = re.compile(r"[0-9]+([-.][0-9]+)?\Z")
_HEAD = re.compile(r"_|[0-9]+")


def treebank_format_of(lines: Sequence[str], path: str) -> TreebankFormat:
    """The format that the first lines of a file show (`LINES_THAT_TELL` of them are looked at).

    Comments, ids such as 3-4 or 5.1, and enhanced dependencies in column 9 show CoNLL-U. Else most lines have ten columns:
    then it is CoNLL-U if all tags of column 4 are universal ones (or ``_``) and column 9 holds no head, and CoNLL-X if not.
    Or more than ten: then it is CoNLL-2009 if there are at least twelve and column 10 holds heads (or ``_``), as PHEAD
    does, and CoNLL-2008 if not. Raises DataError for other numbers of columns, and where no line begins with an ID.

    >>> treebank_format_of(["1\\tno\\tno\\tRG\\tRG\\t_\\t0\\tROOT\\t_\\t_"], "a.txt").name
    'conllx'
    """
    # the columns that are looked at; the last of them holds the rest, however many columns that is
    numbered = [
        (number, line.split("\t", CONLL_2009.n_columns)) for number, line in enumerate(lines[:LINES_THAT_TELL], 1) if line
    ]
    rows = [row for _, row in numbered if not row[0].startswith("#")]
    if not rows:
        return CONLL_U
    widths = Counter(len(row) for row in rows)
    width = max(widths, key=lambda n: (widths[n], -n))
    with_id = any(_ID.match(row[0]) for row in rows if len(row) > 1)
    if not with_id or (width < CONLL_U.n_columns and len(rows) == len(numbered)):
        number, row = next((number, row) for number, row in numbered if row in rows and len(row) == width)
        raise _no_format(row, f"{path}:{number}", with_id)
    if len(rows) < len(numbered) or any(_SPECIAL_ID.fullmatch(row[0]) for row in rows):
        return CONLL_U
    if width == CONLL_U.n_columns:
        usual = [row for row in rows if len(row) == width]
        enhanced = any(_ENHANCED.match(row[8]) for row in usual)
        universal = all(row[3] in _UNIVERSAL_TAGS and row[8] == "_" for row in usual)
        return CONLL_U if enhanced or universal else CONLL_X
    wide = [row for row in rows if len(row) >= CONLL_2008.n_columns]
    has_phead = width >= CONLL_2009.n_columns and all(_HEAD.fullmatch(row[9]) for row in wide)
    return CONLL_2009 if has_phead else CONLL_2008


def _no_format(row: list[str], where: str, with_id: bool) -> DataError:
    line = quoted(" ".join(row))
    where = f"{where}: no format was named, and the lines show no treebank format"
    if len(row) == 1 and len(row[0].split()) >= CONLL_U.n_columns:
        return DataError(f"{where}: expected columns separated by single tabs, got spaces: {line}")
    if not with_id:
        hint = (
            "; are these columns for a sequence labeller, or running text (predict --text has it tokenized)?"
            if len(row) == 1
            else ""
        )
        return DataError(f"{where}: expected lines that begin with the number of a word and a tab, got none: {line}{hint}")
    return DataError(
        f"{where}: expected 10 columns separated by single tabs (CoNLL-U, CoNLL-X), 11 or more (CoNLL-2008) or 12 or more "
        f"(CoNLL-2009), got {len(row)}: {line}"
    )


#: a longer line is not a line of a treebank, and must not fill the memory
_LONGEST_LINE = 1 << 20


class Chunk(NamedTuple):
    """Whole sentences as bytes. line: the number of the first line. sentence: how many sentences came before."""

    data: bytes
    line: int
    sentence: int
    last: bool


class TreebankSource:
    """An open source, unpacked, after its byte order mark. name: for messages. bom: whether there was one."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self.name = name
        self._stream = stream
        self._head: list[bytes] = []
        self.bom = False
        first = self._read_line()
        if first.startswith(codecs.BOM_UTF8):
            self.bom = True
            first = first.removeprefix(codecs.BOM_UTF8)
        if first:
            self._head.append(first)

    def format(self) -> TreebankFormat:
        """The format that the first lines show; they stay to be read. Raises DataError where they show none."""
        while len(self._head) < LINES_THAT_TELL and (line := self._read_line()):
            self._head.append(line)
        lines = [line.rstrip(b"\n").removesuffix(b"\r").decode("utf-8", "surrogateescape") for line in self._head]
        return treebank_format_of(lines, self.name)

    def lines(self) -> Iterator[bytes]:
        """All lines, with their ends."""
        return itertools.chain(self._head, iter(self._read_line, b""))

    def read(self) -> bytes:
        """All that is there."""
        data = b"".join(self._head) + self._stream.read()
        check_lines(data, self.name, _LONGEST_LINE)
        return data

    def chunks(self, batch_size: int, comments: bool) -> Iterator[Chunk]:
        """The file in pieces of `batch_size` sentences; the last one, which may have fewer, is there even if it is empty.

        What is between two sentences belongs to the second.
        """
        held: list[bytes] = []
        line = start = 1
        sentence = done = 0
        inside = False  # a sentence: a word line was met since the last blank line
        for row in self.lines():
            blank = row in (b"\n", b"\r\n", b"\r")
            if not blank and done == batch_size and not inside:
                yield Chunk(b"".join(held), start, sentence, False)
                held, start, sentence, done = [], line, sentence + done, 0
            if not blank and not inside and not (comments and row.startswith(b"#")):
                inside = True
                done += 1
            inside = inside and not blank
            held.append(row)
            line += 1
        yield Chunk(b"".join(held), start, sentence, True)

    def _read_line(self) -> bytes:
        line = self._stream.readline(_LONGEST_LINE + 1)
        if len(line) > _LONGEST_LINE and not line.endswith(b"\n"):
            raise DataError(f"{self.name}: expected a treebank, got a line of more than {_LONGEST_LINE >> 20} MiB")
        return line


@contextmanager
def open_treebank(source: Source, encoding: str = "utf-8") -> Iterator[TreebankSource]:
    """Open a path (``-`` is standard input) or use an open binary file; gzip is known by its first bytes.

    Raises DataError, naming the source: missing, unreadable, a folder, damaged gzip data or such that unpack to too much.
    """
    name = stream_name(source)
    with open_bytes(source, name, encoding) as stream:
        yield TreebankSource(stream, name)
