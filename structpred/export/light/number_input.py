"""Arrays with a row a token, and OCR letters in files, read and written as `structpred predict` does."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from structpred.export.light.weights import Arrays, Decoder, Ints, PredictorError, Rows, from_dense
from structpred.runtime.ranges import ends_of

_N_PIXELS = 128


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
        letters = parse_ocr(text, name)
        labels = decode(self.rows(np.split(letters.pixels, letters.offsets[1:-1]), letters.offsets), letters.offsets)
        return "".join(f"{one}\t{label}\n" for one, label in zip(letters.ids, labels, strict=True))


class Letters(NamedTuple):
    """Letters of the OCR file: their ids, their pixels, where words begin."""

    ids: list[str]
    pixels: Any
    offsets: Ints


def parse_ocr(text: str, name: str) -> Letters:
    """A letter per line: id, letter, id of the next letter or -1, three numbers, and 128 pixels of 0 and 1."""
    ids, pixels, ends = list[str](), list[list[int]](), list[int]()
    for number, line in enumerate(text.split("\n"), 1):
        fields = line.removesuffix("\r").removesuffix("\t").split("\t")
        if fields == [""]:
            continue
        if len(fields) != 6 + _N_PIXELS or not set(fields[6:]) <= {"0", "1"}:
            raise PredictorError(f"{name}:{number}: expected 6 columns and {_N_PIXELS} pixels of 0 and 1, separated by tabs")
        ids.append(fields[0])
        pixels.append(list(map(int, fields[6:])))
        if fields[2] == "-1":
            ends.append(len(ids))
    if not ids or not ends or ends[-1] != len(ids):
        raise PredictorError(f"{name}: expected whole words of letters, the last of each with the next id -1")
    return Letters(ids, np.array(pixels, dtype=np.float64), np.array([0, *ends], np.int64))
