"""Arrays with a row a token, and OCR letters in files, read and written as `structpred predict` does."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from structpred.export.light.weights import Arrays, Decoder, Ints, Rows, from_dense
from structpred.io.ocr import parse_ocr
from structpred.io.text import split_lines
from structpred.runtime.ranges import ends_of


class Input:
    """Numbers, which are features as they are."""

    def __init__(self, settings: dict[str, Any], arrays: Arrays) -> None:
        self.n_columns, self.intercept = settings["n_features"], settings["intercept"]

    def rows(self, matrices: Sequence[Any], offsets: Ints) -> Rows:
        """The features of each token, as float32; the intercept is one more, the last, that is 1 at every token."""
        parts = [from_dense(matrix, self.n_columns, f"sample {i}") for i, matrix in enumerate(matrices)]
        counts = np.concatenate([np.diff(part.indptr) for part in parts])
        ids = np.concatenate([part.ids for part in parts])
        values = np.concatenate([part.values for part in parts if part.values is not None]).astype(np.float32)
        ends = ends_of(counts)
        if not self.intercept:
            return Rows(ends, ids, values)
        return Rows(ends_of(counts + 1), np.insert(ids, ends[1:], self.n_columns), np.insert(values, ends[1:], np.float32(1.0)))

    def labelled(self, text: str, name: str, decode: Decoder) -> str:
        """The id and the label of each letter of an OCR file, one letter a line."""
        words = parse_ocr(text, name)
        labels = decode(self.rows(words.images(), words.offsets), words.offsets)
        ids = (line.partition("\t")[0] for line in split_lines(text) if line)
        return "".join(f"{one}\t{label}\n" for one, label in zip(ids, labels, strict=True))
