"""Treebanks read from files: whole or in batches, with the place of the first thing that is wrong."""

import logging
from collections.abc import Iterator
from typing import Literal

import numpy as np

from structpred.core.types import Integers
from structpred.errors import DataError, ParameterError
from structpred.io.opening import Source, checked_encoding
from structpred.io.treebanks.formats import Chunk, TreebankFormat, TreebankSource, open_treebank
from structpred.io.treebanks.rules import ERROR, Problem, check_sentence
from structpred.io.treebanks.scan import Lines, Mask, bad_lines, find_words, scan_lines
from structpred.io.treebanks.treebank import Treebank

log = logging.getLogger("structpred.io")

OnError = Literal["raise", "skip"]
_PIECE = 4096
#: (a number of lines, the bytes that they must have on average)
_MANY_LINES, _SHORT_LINES = 1 << 16, 5


def read_treebank(
    source: Source,
    format: TreebankFormat | None = None,
    *,
    on_error: OnError = "raise",
    check_trees: bool = True,
    missing_heads: bool = False,
    encoding: str = "utf-8",
) -> Treebank:
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
    with open_treebank(source, encoding) as opened:
        format = format or opened.format()
        treebank = _parse(Chunk(opened.read(), 1, 0, True), opened, format, on_error, check_trees, missing_heads)
    if not len(treebank):
        raise _nothing(treebank.path, treebank.raw, treebank.skipped)
    _log_skipped(treebank.path, len({problem.sentence for problem in treebank.skipped}), treebank.skipped)
    return treebank


def read_good_sentences(source: Source, format: TreebankFormat | None = None) -> Treebank:
    """As ``read_treebank(..., on_error="skip")``, but nothing is logged, and the treebank may be empty."""
    with open_treebank(source) as opened:
        format = format or opened.format()
        return _parse(Chunk(opened.read(), 1, 0, True), opened, format, "skip", check_trees=True)


def stream_treebank(
    source: Source,
    format: TreebankFormat | None = None,
    *,
    batch_size: int = 1000,
    on_error: OnError = "raise",
    check_trees: bool = True,
    encoding: str = "utf-8",
) -> Iterator[Treebank]:
    """Read a treebank in batches of `batch_size` sentences; only one batch is in memory. Otherwise as `read_treebank`.

    With ``on_error="skip"`` a batch is without its bad sentences, and may be empty. The batches written one after the
    other are the file. Line numbers are those of the file.
    """
    _check_mode(on_error)
    if batch_size < 1:
        raise ParameterError(f"batch_size must be at least 1, got {batch_size}")
    checked_encoding(encoding)
    return _stream(source, format, batch_size, on_error, check_trees, encoding)


def _stream(
    source: Source, format: TreebankFormat | None, batch_size: int, on_error: OnError, check_trees: bool, encoding: str
) -> Iterator[Treebank]:
    kept, skipped = 0, 0
    first: tuple[Problem, ...] = ()
    with open_treebank(source, encoding) as opened:
        format = format or opened.format()
        for chunk in opened.chunks(batch_size, format.comments):
            treebank = _parse(chunk, opened, format, on_error, check_trees)
            kept += len(treebank)
            skipped += len({problem.sentence for problem in treebank.skipped})
            first = first or treebank.skipped
            if chunk.last and not kept:
                raise _nothing(opened.name, chunk.data, first)
            yield treebank
        _log_skipped(opened.name, skipped, first)


def _check_mode(on_error: str) -> None:
    if on_error not in ("raise", "skip"):
        raise ParameterError(f"on_error: expected 'raise' or 'skip', got {on_error!r}")


def _nothing(path: str, raw: bytes, skipped: tuple[Problem, ...]) -> DataError:
    if skipped:
        return DataError(f"{path}: expected at least one sentence without an error, got none; the first error: {skipped[0]}")
    got = "only comments or blank lines" if raw else "an empty file"
    return DataError(f"{path}: expected at least one sentence, got {got}")


def _log_skipped(path: str, count: int, problems: tuple[Problem, ...]) -> None:
    if count:
        log.warning("%s: %d sentence%s with errors left out; first: %s", path, count, "" if count == 1 else "s", problems[0])


def _parse(
    chunk: Chunk,
    source: TreebankSource,
    format: TreebankFormat,
    on_error: OnError,
    check_trees: bool,
    missing_heads: bool = False,
) -> Treebank:
    _check_line_lengths(chunk, source.name)
    lines = scan_lines(chunk.data, format)
    text, broken = _decoded(chunk.data)
    bad = bad_lines(chunk.data, lines, format)
    if broken:
        bad[[k for k, line in enumerate(text) if not _is_text(line)]] = True
    words = find_words(lines, bad, format, check_trees, missing_heads)
    skipped: tuple[Problem, ...] = ()
    if words.bad.any():
        errors = _errors(words.bad, lines, text, chunk, source.name, format, (check_trees, missing_heads))
        if on_error == "raise":
            raise DataError(str(next(errors)))
        skipped = tuple(errors)
    opens = np.append(True, words.block[1:] != words.block[:-1]) if len(words.block) else np.zeros(0, np.bool_)
    first = np.flatnonzero(opens)
    raw, bounds = _kept(chunk.data, lines, words.bad, words.block[first])
    del lines, bad, opens  # the places of all tabs, say, are not needed any more
    used = (format.form, format.lemma, format.upos, format.xpos, format.feats, format.deprel)
    forms, lemmas, upos, xpos, feats, labels = _columns(text, words.lines, used)
    return Treebank(
        offsets=np.append(first, len(words.lines)).astype(np.int64),
        forms=forms,
        lemmas=lemmas,
        upos=upos,
        xpos=xpos,
        feats=feats,
        heads=words.heads,
        labels=labels,
        format=format,
        path=source.name,
        line_numbers=words.lines + chunk.line,
        raw=raw,
        bounds=bounds,
        bom=source.bom and chunk.line == 1,
        skipped=skipped,
    )


def _check_line_lengths(chunk: Chunk, name: str) -> None:
    """Each line has numbers of its own; the line of a word has twenty bytes or more, so that two in a line are not a treebank."""
    n = chunk.data.count(b"\n")
    if n > _MANY_LINES and _SHORT_LINES * n > len(chunk.data):
        mean = len(chunk.data) / n
        raise DataError(
            f"{name}:{chunk.line}: expected a treebank, got {n:,} lines of {mean:.1f} bytes on average; are they blank?"
        )


def _decoded(data: bytes) -> tuple[list[str], bool]:
    """The lines as strings, and whether some are not UTF-8."""
    try:
        text, broken = data.decode("utf-8"), False
    except UnicodeDecodeError:
        text, broken = data.decode("utf-8", "surrogateescape"), True
    lines = text.split("\n")
    return ([line.removesuffix("\r") for line in lines] if "\r" in text else lines), broken


def _is_text(line: str) -> bool:
    try:
        line.encode()
    except UnicodeEncodeError:
        return False
    return True


def _errors(
    bad: Mask, lines: Lines, text: list[str], chunk: Chunk, path: str, format: TreebankFormat, heads: tuple[bool, bool]
) -> Iterator[Problem]:
    """The errors of the marked runs of lines, one after the other, on demand. heads: (check_trees, missing_heads)."""
    filled = np.flatnonzero(lines.ends > lines.starts)
    firsts = filled[np.searchsorted(lines.block[filled], np.arange(lines.n_blocks))]
    lasts = filled[np.searchsorted(lines.block[filled], np.arange(lines.n_blocks), side="right") - 1]
    is_sentence = np.zeros(lines.n_blocks, np.bool_)
    is_sentence[lines.block[lines.rows]] = True
    number = np.where(is_sentence, chunk.sentence + np.cumsum(is_sentence), 0)
    for k in np.flatnonzero(bad).tolist():
        first, last = int(firsts[k]), int(lasts[k])
        place = chunk.line + first
        options = dict(zip(("check_trees", "missing_heads"), heads, strict=True))
        problems = check_sentence(text[first : last + 1], place, int(number[k]), format, path, **options)
        errors = [problem for problem in problems if problem.severity == ERROR]
        yield from errors or [Problem(path, place, int(number[k]), ERROR, "sentence", "expected a sentence that can be read")]


def _kept(data: bytes, lines: Lines, bad: Mask, sentences: Integers) -> tuple[bytes, Integers]:
    """The bytes without the bad runs of lines, and where in them the sentences end. sentences: the run of each."""
    opens = np.flatnonzero(np.diff(lines.block, prepend=-1))
    cuts = np.append(lines.starts[opens], len(data))
    cuts[0] = 0
    if bad.any():
        places = cuts.tolist()
        data = b"".join(data[places[k] : places[k + 1]] for k in np.flatnonzero(~bad).tolist())
        cuts = np.append(0, np.cumsum(np.where(bad, 0, np.diff(cuts))))
    if not len(sentences):
        return data, np.zeros(1, np.int64)
    return data, np.concatenate(([0], cuts[sentences[:-1] + 1], [len(data)])).astype(np.int64)


def _columns(text: list[str], lines: Integers, columns: tuple[int | None, ...]) -> list[list[str]]:
    """These columns of these lines; equal strings are one object, which saves memory and makes them quick to compare."""
    out: list[list[str]] = [[] for _ in columns]
    cuts = max(column for column in columns if column is not None) + 1
    known: dict[str, str] = {}
    for start in range(0, len(lines), _PIECE):  # in pieces, so that the many small lists do not live at once
        rows = [text[k].split("\t", cuts) for k in lines[start : start + _PIECE].tolist()]
        for column, entries in zip(columns, out, strict=True):
            if column is None:
                entries.extend(["_"] * len(rows))
            else:
                strings = [row[column] for row in rows]
                entries.extend(map(known.setdefault, strings, strings))
    return out
