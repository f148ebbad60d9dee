"""Feature dicts and feature strings, and CRFsuite's text, read and written as `structpred predict` does."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from structpred.data.coalescing import coalesced
from structpred.data.tokens import FeatureIndex, hashed, read_blocks
from structpred.export.light.weights import Arrays, Decoder, Ints, PredictorError, Rows, ends_of, texts_of

_ESCAPED = re.compile(r"\\([:\\])")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


class Input:
    """Feature dicts and feature strings, with a dictionary or hashed."""

    def __init__(self, settings: dict[str, Any], arrays: Arrays) -> None:
        n_bits: int | None = settings["n_bits"]
        self.closed = n_bits is None
        unseen = None if n_bits is None else lambda index, name: hashed(name, n_bits)
        self.index = FeatureIndex(unseen, texts_of(arrays, "names") if n_bits is None else ())

    def rows(self, sequences: Sequence[Sequence[Any]], offsets: Ints) -> Rows:
        """The features of each token of these sequences, in blocks as training takes them."""
        parts = [coalesced(block.lengths, block.ids, block.values) for block in read_blocks(sequences, self.index)]
        counts, ids, values = zip(*((np.diff(ends), ids, values) for ends, ids, values in parts), strict=True)
        return Rows(ends_of(np.concatenate(counts)), np.concatenate(ids), np.concatenate(values))

    def labelled(self, text: str, name: str, decode: Decoder) -> str:
        """The labels of a file in CRFsuite's text, one a line."""
        read = parse_crfsuite(text, name)
        if not read.names:  # as of column files, of which every line would be a label without attributes
            raise PredictorError(f"{name}: no line has an attribute: expected a label, then attributes, separated by tabs")
        ends = ends_of(np.array(read.counts))
        if self.closed:
            ids = self.index.ids([read.names], len(read.names))
            rows = Rows(*coalesced(np.array(read.counts), ids, np.array(read.values, np.float32)))
        else:  # as dicts, whose values of one name are summed
            tokens = []
            for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
                token: dict[str, float] = {}
                for attribute, value in zip(read.names[a:b], read.values[a:b], strict=True):
                    token[attribute] = token.get(attribute, 0.0) + value
                tokens.append(token)
            bounds = zip(read.offsets[:-1].tolist(), read.offsets[1:].tolist(), strict=True)
            rows = self.rows([tokens[a:b] for a, b in bounds], read.offsets)
        labels = decode(rows, read.offsets)
        bounds = zip(read.offsets[:-1].tolist(), read.offsets[1:].tolist(), strict=True)
        return "\n".join("".join(f"{label}\n" for label in labels[a:b]) for a, b in bounds)


class Attributes(NamedTuple):
    """Tokens of CRFsuite's text: the name and value of each attribute, how many each token has, where sequences begin."""

    names: list[str]
    values: list[float]
    counts: list[int]
    offsets: Ints


def parse_crfsuite(text: str, name: str) -> Attributes:
    """A label, then attributes, separated by tabs; blank lines between sequences. The labels are not looked at."""
    found, starts, before = Attributes([], [], [], np.zeros(0, np.int64)), [0], 0
    known: dict[str, tuple[str, float]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        label, *fields = line.removesuffix("\r").split("\t")
        if not label and not fields:
            continue
        if found.counts and number > before + 1:
            starts.append(len(found.counts))
        fields = [field for field in fields if field]
        try:
            if not label.strip():
                raise ValueError("expected a label in front of the first tab, got none")
            for field in fields:
                if field not in known:
                    known[field] = _attribute(field)
        except ValueError as error:
            raise PredictorError(f"{name}:{number}: {error}") from None
        found.names.extend(known[field][0] for field in fields)
        found.values.extend(known[field][1] for field in fields)
        found.counts.append(len(fields))
        before = number
    if not found.counts:
        raise PredictorError(f"{name}: expected at least one sequence, got none")
    return found._replace(offsets=np.array([*starts, len(found.counts)], np.int64))


def _attribute(field: str) -> tuple[str, float]:
    """The name and the value of `name:value`; in names a backslash stands before a colon or a backslash."""
    colon = next((match.start() for match in re.finditer(r"\\.|:", field) if match.group() == ":"), len(field))
    name, separator, scale = _ESCAPED.sub(r"\1", field[:colon]), field[colon : colon + 1], field[colon + 1 :]
    if not separator:
        return name, 1.0
    if not name or not _NUMBER.fullmatch(scale) or not np.isfinite(np.float32(float(scale))):
        raise ValueError(f"expected an attribute name, a colon and a finite number, got {field[:60]!r}")
    return name, float(np.float32(float(scale)))
