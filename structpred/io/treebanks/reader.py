"""Treebanks read from files: whole or in batches, with the place of the first thing that is wrong."""

import itertools
import logging
import re
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from structpred.core.types import Flags, Integers
from structpred.errors import DataError, ParameterError
from structpred.io.opening import Source, checked_encoding
from structpred.io.text import check_mean
from structpred.io.treebanks.formats import Chunk, TreebankFormat, TreebankSource, open_treebank
from structpred.io.treebanks.rules import ERROR, WORD_ID, Problem, check_sentence, cycles
from structpred.io.treebanks.treebank import Sentence, Treebank

log = logging.getLogger("structpred.io")

OnError = Literal["raise", "skip"]
_ODD = re.compile("[\0\r\udc80-\udcff]")


def read_treebank(
    source: Source, format: TreebankFormat | None = None, *, on_error: OnError = "raise", check_trees: bool = True,
    missing_heads: bool = False, encoding: str = "utf-8",
) -> Treebank:  # fmt: skip
    """Read a treebank file: CoNLL-U, CoNLL-X, CoNLL-2008, CoNLL-2009 or a `TreebankFormat` of your own.

    source: a path, ``-`` for standard input, or a file opened in binary mode; gzip is unpacked. format: None detects it
    from the lines (`treebank_format_of`). on_error: "raise", or "skip" to leave out the sentences with an error, which
    `Treebank.skipped` names. check_trees: False accepts all heads, with -1 for what is not a number from 0 to the length
    of the sentence; True wants a tree, or ``_`` on every word of a sentence (heads -1). missing_heads: whether ``_`` may also
    stand on some words of a sentence only, as a parser can learn from. encoding: of the file; the treebank, and what is written
    of it, is UTF-8.

    Raises DataError with file and line: see `validate_treebank` for all that is looked at. No sentence at all is an error.
    """
    _check_mode(on_error)
    (treebank,) = _stream(source, format, None, on_error, check_trees, missing_heads, encoding)
    return treebank


def read_good_sentences(source: Source, format: TreebankFormat | None = None) -> Treebank:
    """As ``read_treebank(..., on_error="skip")``, but nothing is logged, and the treebank may be empty."""
    with open_treebank(source) as opened:
        format = format or opened.format()
        return _parse(Chunk(opened.read(), 1, 0, True), opened, format, "skip", check_trees=True)


def stream_treebank(
    source: Source, format: TreebankFormat | None = None, *, batch_size: int = 1000, on_error: OnError = "raise",
    check_trees: bool = True, encoding: str = "utf-8",
) -> Iterator[Treebank]:  # fmt: skip
    """Read a treebank in batches of `batch_size` sentences; only one batch is in memory. Otherwise as `read_treebank`.

    With ``on_error="skip"`` a batch is without its bad sentences, and may be empty. The batches written one after the
    other are the file. Line numbers are those of the file.
    """
    _check_mode(on_error)
    if batch_size < 1:
        raise ParameterError(f"batch_size must be at least 1, got {batch_size}")
    checked_encoding(encoding)
    return _stream(source, format, batch_size, on_error, check_trees, False, encoding)


def _stream(
    source: Source, format: TreebankFormat | None, batch_size: int | None, on_error: OnError, check_trees: bool,
    missing_heads: bool, encoding: str,
) -> Iterator[Treebank]:  # fmt: skip
    """The batches; batch_size None: all of the file is one."""
    kept, skipped = 0, 0
    first: tuple[Problem, ...] = ()
    with open_treebank(source, encoding) as opened:
        format = format or opened.format()
        chunks = [Chunk(opened.read(), 1, 0, True)] if batch_size is None else opened.chunks(batch_size, format.comments)
        for chunk in chunks:
            treebank = _parse(chunk, opened, format, on_error, check_trees, missing_heads)
            kept += len(treebank)
            skipped += len({problem.sentence for problem in treebank.skipped})
            first = first or treebank.skipped
            if chunk.last and not kept:
                if first:
                    message = "expected at least one sentence without an error, got none; the first error"
                    raise DataError(f"{opened.name}: {message}: {first[0]}")
                got = "only comments or blank lines" if chunk.data else "an empty file"
                raise DataError(f"{opened.name}: expected at least one sentence, got {got}")
            yield treebank
        if skipped:
            several = "" if skipped == 1 else "s"
            log.warning("%s: %d sentence%s with errors left out; first: %s", opened.name, skipped, several, first[0])


def _check_mode(on_error: str) -> None:
    if on_error not in ("raise", "skip"):
        raise ParameterError(f"on_error: expected 'raise' or 'skip', got {on_error!r}")


def _parse(
    chunk: Chunk, source: TreebankSource, format: TreebankFormat, on_error: OnError, check_trees: bool,
    missing_heads: bool = False,
) -> Treebank:  # fmt: skip
    check_mean(chunk.data, f"{source.name}:{chunk.line}")
    lines, odd = _lines(chunk.data)
    filled = np.fromiter(map(bool, lines), np.bool_, len(lines))
    runs = np.flatnonzero(np.diff(filled, prepend=False, append=False)).reshape(-1, 2)  # of lines that are not blank
    words = _Words(format, check_trees)
    skipped, bad, sentences = list[Problem](), np.zeros(len(runs), np.bool_), list[int]()
    number, options = chunk.sentence, {"check_trees": check_trees, "missing_heads": missing_heads}
    for run, (first, stop) in enumerate(runs.tolist()):
        block = lines[first:stop]
        places = [k for k, line in enumerate(block, first) if not (format.comments and line[0] == "#")]
        rows = [lines[k] for k in places]
        number += bool(rows)
        if (odd and any(map(_ODD.search, block))) or (rows and not words.taken(rows, places)):
            at = number if rows else 0
            problems = check_sentence(block, chunk.line + first, at, format, source.name, **options)
            if errors := [problem for problem in problems if problem.severity == ERROR]:
                if on_error == "raise":
                    raise DataError(str(errors[0]))
                skipped += errors
                bad[run] = True
                continue
            words.add(rows, places)
        if rows:
            sentences.append(run)
    raw, bounds = _kept(chunk.data, runs[:, 0], bad, np.array(sentences, np.int64))
    columns: dict[str, Any] = dict(zip((*Sentence._fields, "labels"), words.columns, strict=True))
    return Treebank(
        **columns, offsets=np.array(words.offsets, np.int64), heads=np.array(words.heads, np.int64), format=format,
        path=source.name, line_numbers=np.array(words.places, np.int64) + chunk.line, raw=raw, bounds=bounds,
        bom=source.bom and chunk.line == 1, skipped=tuple(skipped),
    )  # fmt: skip


def _lines(data: bytes) -> tuple[list[str], bool]:
    """The lines as strings, without their ends, and whether some may have what no line should have."""
    try:
        text, odd = data.decode("utf-8"), False
    except UnicodeDecodeError:
        text, odd = data.decode("utf-8", "surrogateescape"), True
    text = text.replace("\r\n", "\n").removesuffix("\r") if "\r" in text else text
    return text.split("\n"), odd or "\r" in text or "\0" in text


class _Words:
    """The words of sentences, as they are added. columns: form, lemma, upos, xpos, feats and relation of each."""

    def __init__(self, format: TreebankFormat, check_trees: bool) -> None:
        self.format, self.check_trees = format, check_trees
        self.columns: list[list[str]] = [[] for _ in range(6)]
        self.heads, self.places, self.offsets = array("q"), array("q"), array("q", [0])
        self._numbers: dict[str, int] = {}
        self._known: dict[str, str] = {}  # equal strings are one object, which saves memory and makes them quick to compare

    def taken(self, rows: list[str], places: list[int]) -> bool:
        """Take the lines of a sentence if it is seen at once that they have no error; the rules have to look at all others."""
        format, n, text = self.format, len(rows), "\t".join(rows)
        fields = [row.split("\t") for row in rows]
        width = len(fields[0])
        if set(map(len, fields)) != {width} or width < format.n_columns or (width > format.n_columns and not format.open_ended):
            return False
        columns = list(zip(*fields, strict=True))
        heads, ids = self._heads(columns[format.head]), list(itertools.islice(self._numbers, 1, n + 1))
        if list(columns[0]) != ids or " " in text or "\t\t" in text or text[-1] == "\t":
            return False
        if self.check_trees and set(columns[format.head]) != {"_"}:
            roots = heads.count(0)
            if -1 in heads or not roots or (roots > 1 and format.single_root) or any(cycles(heads)):
                return False
        self._add(columns, heads, places)
        return True

    def add(self, rows: list[str], places: list[int]) -> None:
        """Take the lines of a sentence that has no error; multiword tokens and empty nodes are left out."""
        words = [(k, fields) for k, row in zip(places, rows, strict=True) if WORD_ID.fullmatch((fields := row.split("\t"))[0])]
        columns = list(zip(*[fields for _, fields in words], strict=True))
        self._add(columns, self._heads(columns[self.format.head]), [k for k, _ in words])

    def _add(self, columns: list[tuple[str, ...]], heads: list[int], places: list[int]) -> None:
        format = self.format
        used = (format.form, format.lemma, format.upos, format.xpos, format.feats, format.deprel)
        for found, k in zip(self.columns, used, strict=True):
            strings = ("_",) * len(heads) if k is None else columns[k]
            found.extend(map(self._known.setdefault, strings, strings))
        self.heads.extend(heads)
        self.places.extend(places)
        self.offsets.append(len(self.places))

    def _heads(self, column: Sequence[str]) -> list[int]:
        """The heads of a sentence as numbers, -1 for what is none from 0 to its length."""
        n = len(column)
        for number in range(len(self._numbers), n + 1):
            self._numbers[str(number)] = number
        return [head if (head := self._numbers.get(text, -1)) <= n else -1 for text in column]


def _kept(data: bytes, firsts: Integers, bad: Flags, sentences: Integers) -> tuple[bytes, Integers]:
    """The bytes without the bad runs of lines, and where in them the sentences end.

    firsts: the first line of each run. sentences: the run of each.
    """
    starts = np.append(0, np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")) + 1)
    cuts = np.append(starts[firsts], len(data))
    cuts[0] = 0
    if bad.any():
        places = cuts.tolist()
        data = b"".join(data[places[k] : places[k + 1]] for k in np.flatnonzero(~bad).tolist())
        cuts = np.append(0, np.cumsum(np.where(bad, 0, np.diff(cuts))))
    if not len(sentences):
        return data, np.zeros(1, np.int64)
    return data, np.concatenate(([0], cuts[sentences[:-1] + 1], [len(data)])).astype(np.int64)
