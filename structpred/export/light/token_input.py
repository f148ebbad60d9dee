"""Feature dicts and feature strings, and CRFsuite's text, read and written as `structpred predict` does."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from structpred.data.ragged import coalesced
from structpred.data.tokens import FeatureIndex, hashed, read_blocks, split_dicts
from structpred.export.light.weights import Arrays, Decoder, Ints, PredictorError, Rows, behind_arrays, texts_of
from structpred.io.crfsuite import parse_crfsuite
from structpred.io.text import label_lines
from structpred.runtime.ranges import ends_of


class Input:
    """Feature dicts and feature strings, with a dictionary or hashed, and arrays beside them."""

    def __init__(self, settings: dict[str, Any], arrays: Arrays) -> None:
        n_bits: int | None = settings["n_bits"]
        self.arrays, self.beside = arrays, settings["arrays"]
        self.closed = n_bits is None and not self.beside["names"]
        unseen = None if n_bits is None else lambda index, name: hashed(name, n_bits)
        self.index = FeatureIndex(unseen, texts_of(arrays, "names") if n_bits is None else ())

    def rows(self, sequences: Sequence[Sequence[Any]], offsets: Ints) -> Rows:
        """The features of each token of these sequences, in blocks as training takes them."""
        strings, beside = split_dicts(sequences, self.beside["names"], self.beside["widths"])
        parts = [coalesced(block.lengths, block.ids, block.values) for block in read_blocks(strings, self.index)]
        counts, ids, values = zip(*((np.diff(ends), ids, values) for ends, ids, values in parts), strict=True)
        rows = Rows(ends_of(np.concatenate(counts)), np.concatenate(ids), np.concatenate(values))
        return behind_arrays(rows, beside, self.arrays)

    def labelled(self, text: str, name: str, decode: Decoder) -> str:
        """The labels of a file in CRFsuite's text, one a line."""
        read = parse_crfsuite(text, name)
        if not read.attributes:  # as of column files, of which every line would be a label without attributes
            raise PredictorError(f"{name}: no line has an attribute: expected a label, then attributes, separated by tabs")
        if self.closed:
            ids = self.index.ids([read.attributes], len(read.attributes))[read.codes]
            rows = Rows(*coalesced(np.diff(read.indptr), ids, read.values))
        else:
            rows = self.rows(read.dicts(), read.offsets)
        labels = read.nested(decode(rows, read.offsets))
        return label_lines(labels)
