"""All problems of a treebank file at once: lines, ids and trees that are wrong, odd relations, and leaks into held-out data."""

import io
from dataclasses import dataclass
from typing import Any

import numpy as np

from structpred.errors import ParameterError
from structpred.io.opening import open_bytes
from structpred.io.text import HeldBytes, PathLike, source_name
from structpred.io.treebanks.formats import TREEBANK_FORMATS, TreebankFormat
from structpred.io.treebanks.reader import read_good_sentences
from structpred.io.treebanks.rules import ERROR, validate_treebank
from structpred.io.treebanks.treebank import Treebank, write_treebank
from structpred.io.validation.columns import Collector, Validation, warn
from structpred.io.validation.rows import LabelCodes
from structpred.io.validation.scan import Scan, Tokens

_SUMMARIES = {
    ("error", "encoding"): "lines that are not UTF-8 text",
    ("error", "columns"): "lines with another number of columns",
    ("error", "empty-column"): "lines with an empty column",
    ("error", "spaces"): "lines with a space where none is allowed",
    ("error", "line-ends"): "lines with a carriage return inside",
    ("error", "ids"): "lines whose ID does not fit in its sentence",
    ("error", "heads"): "words with an impossible HEAD",
    ("error", "root"): "sentences without a root, or with several",
    ("error", "cycle"): "circles of heads",
    ("error", "empty"): "files without a single sentence",
    ("warning", "bom"): "files that begin with a byte order mark",
    ("warning", "line-ends"): "files with two kinds of line ends",
    ("warning", "blank"): "extra empty lines",
    ("warning", "end"): "files that do not end with an empty line",
    ("warning", "comment"): "comments inside a sentence, or without one",
    ("warning", "unprinted"): "lines with invisible characters (controls, direction marks, odd spaces)",
    ("warning", "spaces"): "columns with leading, trailing or double spaces",
    ("warning", "range"): "multiword tokens of one word",
    ("warning", "no-word"): "multiword tokens and empty nodes with a head",
    ("warning", "root"): "words with the relation root that are not the root",
}


@dataclass(frozen=True)
class TreebankValidation(Validation):
    """What was found in a treebank. format: the name of its format."""

    format: str
    _treebank: Treebank

    def clean(self) -> bytes:
        """The first file without the sentences that have an error, otherwise byte for byte."""
        out = io.BytesIO()
        write_treebank(self._treebank, out)
        return out.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"format": self.format, **super().to_dict()}

    def _kind(self) -> str:
        return f"format: {self.format}"


def validate_trees(
    path: PathLike, format: str | None = None, *, dev: PathLike | None = None, rare: int = 5, max_length: int = 250,
    places: int = 5, encoding: str = "utf-8",
) -> TreebankValidation:  # fmt: skip
    """Look at a whole treebank file, and at the held-out data next to it, as `validate` does for sequences.

    format: a name of `TREEBANK_FORMATS`; None detects it from the lines. The labels are the dependency relations. Errors are
    those of `validate_treebank`. Raises DataError only where a file cannot be opened or its format not be detected.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.conllu"
    ...     _ = path.write_text("1\\tno\\t_\\t_\\t_\\t_\\t1\\t_\\t_\\t_\\n\\n")
    ...     found = validate_trees(path)
    >>> found.ok, found.format, [finding.kind for finding in found.findings]
    (False, 'conllu', ['heads'])
    """
    if format is not None and format not in TREEBANK_FORMATS:
        raise ParameterError(f"format: expected one of {', '.join(TREEBANK_FORMATS)}, got {format!r}")
    collect = Collector(places)
    treebank, scan = _scan(path, None if format is None else TREEBANK_FORMATS[format], collect, encoding)
    scans = [scan]
    if dev is not None:
        scans.append(_scan(dev, treebank.format, collect, encoding)[1])
    files = warn(scans, rare, max_length, None, collect)
    broken = frozenset(np.flatnonzero(scan.tokens.broken).tolist())
    return TreebankValidation(files, None, collect.findings(), scan, broken, treebank.format.name, treebank)


def _scan(path: PathLike, format: TreebankFormat | None, collect: Collector, encoding: str) -> tuple[Treebank, Scan]:
    """The good sentences of a file, and the same as sequences of relations; its problems are collected."""
    name = source_name(path)
    with open_bytes(path, name, encoding) as source:
        stream = HeldBytes(source.read(), name)  # a pipe cannot be read twice
    problems = validate_treebank(stream, format)
    for problem in problems:
        summary = _SUMMARIES[problem.severity, problem.kind]
        collect.add(problem.severity, problem.kind, summary, str(problem))
    stream.seek(0)
    treebank = read_good_sentences(stream, format)
    tokens = _tokens(treebank, len({one.sentence for one in problems if one.severity == ERROR and one.sentence}))
    words = zip(treebank.line_numbers.tolist(), treebank.forms, strict=True)
    documents = [line for line, form in words if form.startswith("-DOCSTART-")]
    return treebank, Scan(
        treebank.path, treebank.format.name, tokens, lambda: iter(()), treebank.format.n_columns, None, documents
    )


def _tokens(treebank: Treebank, n_broken: int) -> Tokens:
    """The relations of the good sentences, and empty sequences in place of the broken ones."""
    offsets = np.append(treebank.offsets, np.full(n_broken, treebank.n_words))
    broken = np.arange(len(offsets) - 1) >= len(treebank)
    labels = LabelCodes()
    labels.extend(treebank.labels)
    excess = None if labels.excess is None else int(treebank.line_numbers[labels.excess])
    label_offsets = offsets if excess is None else np.zeros_like(offsets)

    def content(i: int) -> tuple[str, ...]:
        return tuple(treebank.forms[offsets[i] : offsets[i + 1]])

    hashes = np.fromiter(map(hash, map(content, range(len(broken)))), np.int64, len(broken))
    lines = treebank.line_numbers.astype(np.int32)
    return Tokens(lines, offsets, broken, labels.names, labels.codes, label_offsets, hashes, content, excess)
