"""The features of tokens, as training read them: templates over columns, feature dicts and strings, hashed ones, numbers."""

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.data.tokens import FeatureIndex, coalesced, hashed, read_blocks
from structpred.export.light.weights import Arrays, Ints, PredictorError, Rows, ends_of, from_dense, texts_of

Columns = Sequence[Sequence[str]]
_RUNS = re.compile(r"(.)\1+")


def shape(word: str) -> str:
    """X for upper case, x for lower case, 0 for digits; others stand for themselves."""
    return "".join("X" if c.isupper() else "x" if c.isalpha() else "0" if c.isdigit() else c for c in word)


_TESTS: dict[str, Callable[[str], bool]] = {
    "is_digit": str.isdigit,
    "has_digit": lambda word: any(c.isdigit() for c in word),
    "is_title": lambda word: word[:1].isupper() and not word[1:].isupper(),
    "is_upper": str.isupper,
    "has_hyphen": lambda word: "-" in word,
}


def derived(word: str, name: str) -> str | None:
    """What a template's transform makes of a string; None where the feature does not exist."""
    if name in _TESTS:
        return "yes" if _TESTS[name](word) else None
    if name[:6] in ("prefix", "suffix"):
        size = int(name[6:])
        return None if len(word) < size else word[:size] if name[0] == "p" else word[-size:]
    if name in ("shape", "short_shape"):
        return shape(word) if name == "shape" else _RUNS.sub(r"\1", shape(word))
    return word.lower() if name == "lower" else word


def as_columns(sequences: Sequence[Sequence[Any]], at_least: int) -> Columns:
    """The columns of all rows. PredictorError, naming the sample, for anything but rows of as many strings each."""
    rows = list(itertools.chain.from_iterable(sequences))
    width = len(rows[0]) if isinstance(rows[0], list | tuple) else at_least
    if set(map(type, rows)) <= {list, tuple} and set(map(len, rows)) == {width} and width >= at_least:
        columns = list(zip(*rows, strict=True))
        if all(set(map(type, column)) == {str} for column in columns):
            return columns
    for i, sequence in enumerate(sequences):
        for t, row in enumerate(sequence):
            if not isinstance(row, list | tuple) or len(row) != width or not all(isinstance(cell, str) for cell in row):
                cause = ": a token is a tuple of its columns, a sequence a list of tokens" if isinstance(row, str) else ""
                raise PredictorError(f"sample {i}, position {t}: expected a row of {width} columns, strings, got {row!r}{cause}")
    if width < at_least:
        raise PredictorError(f"sample 0: expected rows of at least {at_least} columns, got {width}")
    return list(zip(*rows, strict=True))  # subclasses of str, list or tuple


class Places:
    """Where tokens are in their sentences, and what stands some places away."""

    def __init__(self, offsets: Ints) -> None:
        lengths = np.diff(offsets)
        self.position = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        self.length = np.repeat(lengths, lengths)

    def applies(self, at: str) -> npt.NDArray[np.bool_]:
        """The tokens at which a template has its feature."""
        ends = {"first": 0, "last": self.length - 1}
        return np.ones(len(self.position), bool) if at == "any" else np.asarray(self.position == ends[at])


class Templates:
    """Templates with a dictionary: a feature is the number that its columns' codes make, looked up among those of training."""

    def __init__(self, settings: dict[str, Any], arrays: Arrays) -> None:
        self.templates, self.padding = settings["templates"], settings["padding"]
        self.blocks = [
            (block["templates"], block["sizes"], arrays[f"keys.{k}"], {j: arrays[f"fold.{k}.{j}"] for j in block["folds"]})
            for k, block in enumerate(settings["blocks"])
        ]
        self.indexes = {
            (column, name): {text: code for code, text in enumerate(texts_of(arrays, f"column.{column}.{name}"))}
            for column, name in settings["columns"]
        }

    def rows(self, columns: Columns, offsets: Ints) -> Rows:
        """The features of each token of sentences in columns."""
        places = Places(offsets)
        codes = {key: self._codes(columns[key[0]], *key) for key in self.indexes}
        ids = np.empty((int(offsets[-1]), len(self.templates)), np.int32)
        first = 0
        for numbers_, sizes, keys, folds in self.blocks:
            for k in numbers_:
                found = rank(self._keys(self.templates[k], sizes, folds, codes, places), keys)
                ids[:, k] = np.where(found >= 0, found + first, -1)
            first += len(keys)
        counts = np.full(len(ids), ids.shape[1])
        if len(self.blocks) < len(self.templates):  # only then can a feature occur twice at a token
            return Rows(*coalesced(counts, ids.ravel(), None))
        known = ids >= 0
        return Rows(ends_of(known.sum(axis=1)), ids[known], None)

    def _codes(self, column: Sequence[str], number: int, name: str) -> Ints:
        index = self.indexes[number, name]
        made = {word: derived(word, name) for word in set(column)}
        known = {word: -1 if text is None else index.get(text, -1) for word, text in made.items()}
        return np.fromiter(map(known.__getitem__, column), np.int64, len(column))

    def _keys(self, template: dict[str, Any], sizes: list[int], folds: dict[int, Ints], codes: Any, places: Places) -> Ints:
        keys, missing = np.zeros(len(places.position), np.int64), ~places.applies(template["at"])
        for j, (size, (column, offset, name)) in enumerate(zip(sizes, template["atoms"], strict=True)):
            if j in folds:
                keys = rank(np.where(missing, -1, keys), folds[j])
                missing |= keys < 0
            place = places.position + offset
            n = len(self.indexes[column, name])
            low = n - 1 - place if template["pad"] else -1
            high = n + self.padding + place - places.length if template["pad"] else -1
            code = np.where(place < 0, low, np.where(place >= places.length, high, np.roll(codes[column, name], -offset)))
            missing |= code < 0
            keys = keys * size + code
        return np.where(missing, -1, keys)


def rank(keys: Ints, table: Ints) -> Ints:
    """The place of each key in a sorted table, -1 where it is not there."""
    if not len(table):
        return np.full(len(keys), -1, np.int64)
    ranks = np.minimum(np.searchsorted(table, keys), len(table) - 1)
    return np.where(table[ranks] == keys, ranks, -1)


class _Ids(dict[tuple[str | None, ...], int]):
    """The values of a template's atoms -> the id of its feature, -1 where one of them is missing."""

    def __init__(self, pieces: Sequence[str], n_bits: int) -> None:
        super().__init__()
        self.pieces, self.n_bits = pieces, n_bits

    def __missing__(self, values: tuple[str | None, ...]) -> int:
        texts = [value for value in values if value is not None]
        name = self.pieces[0] + "".join(itertools.chain.from_iterable(zip(texts, self.pieces[1:], strict=False)))
        found = self[values] = -1 if len(texts) < len(values) else hashed(name, self.n_bits)
        return found


class HashedTemplates:
    """Templates whose feature strings are hashed."""

    def __init__(self, settings: dict[str, Any], arrays: Arrays) -> None:
        self.templates, self.n_bits = settings["templates"], settings["n_bits"]

    def rows(self, columns: Columns, offsets: Ints) -> Rows:
        """The features of each token, ascending; an id that n features of a token share has the value n."""
        places = Places(offsets)
        texts = {}
        for column, offset, name, pad in {(*atom, one["pad"]) for one in self.templates for atom in one["atoms"]}:
            texts[column, offset, name, pad] = _shifted(columns[column], places, offset, name, pad)
        ids = np.empty((len(places.position), len(self.templates)), np.int64)
        for k, template in enumerate(self.templates):
            known = _Ids(template["pieces"], self.n_bits)
            values = [texts[(*atom, template["pad"])] for atom in template["atoms"]]
            ids[:, k] = list(map(known.__getitem__, zip(*values, strict=True))) if values else known[()]
            ids[~places.applies(template["at"]), k] = -1
        ids.sort(axis=1)
        known_ids = ids >= 0
        first = known_ids.copy()
        first[:, 1:] &= ids[:, 1:] != ids[:, :-1]
        starts = np.flatnonzero(first[known_ids])
        sums = np.diff(starts, append=np.count_nonzero(known_ids)).astype(np.float32)
        return Rows(ends_of(first.sum(axis=1)), ids[known_ids][starts], sums)


def _shifted(column: Sequence[str], places: Places, offset: int, name: str, pad: bool) -> list[str | None]:
    """What stands `offset` places from each token, through a transform; outside of the sentence None, or with pad its place."""
    made = {word: derived(word, name) for word in set(column)}
    texts, at = list(map(made.__getitem__, column)), (places.position + offset).tolist()
    return [
        texts[t + offset] if 0 <= place < length else f"_B{place if place < 0 else place - length + 1:+d}" if pad else None
        for t, (place, length) in enumerate(zip(at, places.length.tolist(), strict=True))
    ]


class Named:
    """Feature dicts and feature strings, with a dictionary or hashed."""

    def __init__(self, settings: dict[str, Any], arrays: Arrays) -> None:
        n_bits: int | None = settings["n_bits"]
        unseen = None if n_bits is None else lambda index, name: hashed(name, n_bits)
        self.index = FeatureIndex(unseen, texts_of(arrays, "names") if n_bits is None else ())

    def rows(self, sequences: Sequence[Sequence[Any]]) -> Rows:
        """The features of each token of these sequences, in blocks as training takes them."""
        parts = [coalesced(block.lengths, block.ids, block.values) for block in read_blocks(sequences, self.index)]
        counts, ids, values = zip(*((np.diff(ends), ids, values) for ends, ids, values in parts), strict=True)
        return Rows(ends_of(np.concatenate(counts)), np.concatenate(ids), np.concatenate(values))


def numeric_rows(matrices: Sequence[Any], n_columns: int, intercept: bool) -> Rows:
    """Arrays with a row a token, as float32; the intercept is one more feature, the last, that is 1 at every token."""
    parts = [from_dense(matrix, n_columns, f"sample {i}") for i, matrix in enumerate(matrices)]
    counts = np.concatenate([np.diff(part.indptr) for part in parts])
    ids = np.concatenate([part.ids for part in parts])
    values = np.concatenate([part.values for part in parts if part.values is not None]).astype(np.float32)
    ends = ends_of(counts)
    if not intercept:
        return Rows(ends, ids, values)
    return Rows(ends_of(counts + 1), np.insert(ids, ends[1:], n_columns), np.insert(values, ends[1:], np.float32(1.0)))
