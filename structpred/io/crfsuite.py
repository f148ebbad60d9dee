"""Files in CRFsuite's text format, read and written; `crfsuite_text.py` says what it is."""

import itertools

import numpy as np

from structpred.data.coalescing import coalesced
from structpred.data.sequences import PackedSequences
from structpred.errors import DataError
from structpred.io.crfsuite_text import AttributeItems, parse_items
from structpred.io.text import PathLike, read_text, source_name


class AttributeCorpus(AttributeItems):
    """Labelled sequences of items with named, weighted attributes, integer-coded.

    labels: one list of strings per sequence; those read from a file are made on demand. attributes: the distinct
    attribute names in order of appearance. indptr: int64 (n_tokens + 1), codes: int32 (nnz) into attributes, values: float32
    (nnz). offsets: int64 (n_sequences + 1). lines: int64 (n_tokens), 1-based. name: the source, for messages.
    """

    def packed(self, names: list[str] | None = None) -> PackedSequences:
        """The corpus as packed features; names gives the feature of each id (those of a trained model, say).

        Without names the ids are those of ``attributes``. Attributes that are not among the names are left out. An
        attribute that occurs twice at one item counts with the sum of its values, as in CRFsuite.
        """
        ids = self.codes
        if names is not None:
            index = dict(zip(names, range(len(names)), strict=True))
            table = np.fromiter((index.get(name, -1) for name in self.attributes), np.int32, len(self.attributes))
            ids = table[self.codes]
        indptr, ids, values = coalesced(np.diff(self.indptr), ids, self.values)
        return PackedSequences(indptr, ids, values, self.offsets, len(self.attributes if names is None else names))


def read_crfsuite(path: PathLike, *, encoding: str = "utf-8") -> AttributeCorpus:
    """Read a file in CRFsuite's text format (training and tagging files alike: the first field is always a label).

    An attribute without a scale has the value 1. Empty fields (a trailing tab) are ignored. Raises DataError with
    file and line: an empty label, an empty attribute name, a scale that is not a finite number, no item at all, and
    what `read_text` raises.
    """
    return parse_crfsuite(read_text(path, encoding), source_name(path))


def format_crfsuite(corpus: AttributeCorpus) -> str:
    """The corpus in CRFsuite's text format; `read_crfsuite` gives the same labels, attributes and values back.

    Raises DataError for a name or label that the format cannot hold (empty, or with a tab or a line break).
    """
    names = [_escaped(name, "attribute") for name in corpus.attributes]
    fields = list(map(names.__getitem__, corpus.codes.tolist()))
    for k in np.flatnonzero(corpus.values != 1).tolist():
        fields[k] = f"{fields[k]}:{corpus.values[k]!s}"
    bounds = corpus.indptr.tolist()
    escaped = {label: _escaped(label, "label") for label in set(itertools.chain.from_iterable(corpus.labels))}
    out: list[str] = []
    token = 0
    for labels in corpus.labels:
        for label in labels:
            out.append("\t".join((escaped[label], *fields[bounds[token] : bounds[token + 1]])))
            token += 1
        out.append("")
    return "\n".join(out) + "\n" if out else ""


def _escaped(name: str, kind: str) -> str:
    if not name.strip() or any(c in name for c in "\t\n\r"):
        raise DataError(f"the {kind} {name!r} cannot be written in CRFsuite's format: it is empty or holds a tab or a line break")
    return name.replace("\\", "\\\\").replace(":", "\\:")


def parse_crfsuite(text: str, name: str) -> AttributeCorpus:
    """As `read_crfsuite`, for text that was read already; name: for messages."""
    return AttributeCorpus(**vars(parse_items(text, name)))
