"""Any bytes, given to any reader: a corpus that holds together, or DataError; never another error, never a long wait."""

import contextlib
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crfsuite_text import crfsuite_text
from hostile_readers import FUZZ
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from structpred.data.ragged import coalesced
from structpred.data.vocabulary import FeatureDictionary
from structpred.errors import DataError
from structpred.io import ColumnCorpus, format_columns, read_columns, read_crfsuite, read_ocr, read_template

_OCR = "".join(f"{k}\t{c}\t{n}\t1\t{k}\t0\t" + "\t".join("01" * 64) + "\n" for k, c, n in ((1, "a", 2), (2, "b", -1)))
_SEEDS: dict[str, bytes] = {
    "columns": b"the DT B-NP\ncat NN I-NP\r\n\nso\tRB  O\n",
    "tabs": b"New York\tNNP\tB\n\nin\tIN\tO\r\n  \n",
    "crfsuite": b"B-NP\tw=the\tn:0.5\nO\tw\\:x\t\\\\:2\t\r\n\nI\tw=cat:1e3",
    "ocr": _OCR.encode(),
    "template": b"# c\nU00:%x[-1,0]/%x[0,1]\n\nU\nB\n",
}
_PIECES = [
    *[
        b" ",
        b"\t",
        b"\n",
        b"\r",
        b"\n\n",
        b":",
        b"\\",
        b"\\:",
        b"\0",
        b"\xff",
        b"\xc3\xa9",
        b"\xe2\x80\xa8",
        b"\xef\xbb\xbf",
        b"%",
        b"#",
    ],
    *[
        b"a",
        b"U",
        b"B",
        b"-1",
        b"0",
        b"1",
        b"2",
        b"nan",
        b"inf",
        b"1e999",
        b"%x[0,0]",
        b"%x[-99999,1]",
        b"\x1f\x8b",
        b"9" * 30,
        b"x" * 300,
    ],
    *["\u0661".encode(), "\U0001f600".encode(), b"\x0b", b"\x0c", b"\x1c", b"\xc2\x85", b"\xc2\xa0", b"1\t1\t", b"0\t" * 128],
]
_SOUP = st.lists(st.sampled_from(_PIECES), max_size=25).map(b"".join)
_EDIT = st.tuples(st.floats(0, 1), st.integers(0, 4), st.sampled_from([b"", *_PIECES]))


def _edited(seed: bytes, edits: list[tuple[float, int, bytes]]) -> bytes:
    for place, length, piece in edits:
        start = int(place * len(seed))
        seed = seed[:start] + piece + seed[start + length :]
    return seed


def _packed(data: bytes, edits: list[tuple[float, int, bytes]]) -> bytes:
    return _edited(gzip.compress(data, mtime=0), edits)


def _inputs(name: str) -> st.SearchStrategy[bytes]:
    """Arbitrary bytes, soups of telling pieces, valid files with edits, and packed files with edits."""
    edited = st.builds(_edited, st.just(_SEEDS[name]), st.lists(_EDIT, max_size=4))
    packed = st.builds(_packed, edited, st.lists(_EDIT, max_size=1))
    return st.one_of(edited, _SOUP, edited, st.binary(max_size=60), packed)


def _check_columns(corpus: ColumnCorpus) -> None:
    assert [len(s) for s in corpus.sentences()] == corpus.lengths.tolist()
    assert corpus.lengths.min() > 0
    assert corpus.text is not None
    out = format_columns(corpus, [["X"] * n for n in corpus.lengths])
    assert len(out) == len(corpus.text) + 2 * corpus.n_tokens


def _columns(path: Path) -> None:
    _check_columns(read_columns(path))


def _tabs(path: Path) -> None:
    _check_columns(read_columns(path, tabs=True))


def _crfsuite(path: Path) -> None:
    corpus = read_crfsuite(path)
    assert [len(labels) for labels in corpus.labels] == corpus.lengths.tolist()
    assert corpus.lengths.min() > 0
    assert all(label.strip() for labels in corpus.labels for label in labels)
    try:
        corpus.packed()  # two huge scales of one attribute may add up to infinity
    except DataError:
        return
    if any("\r" in name for name in [*corpus.attributes, *(label for labels in corpus.labels for label in labels)]):
        return  # a carriage return inside a name cannot be written
    path.write_bytes(b"\n" + crfsuite_text(corpus).encode())
    again = read_crfsuite(path)  # behind a blank line, so that U+FEFF in the first label is no byte order mark
    assert (again.labels, again.attributes, again.values.tolist()) == (corpus.labels, corpus.attributes, corpus.values.tolist())


def _ocr(path: Path) -> None:
    words = read_ocr(path)
    assert [len(letters) for letters in words.letters] == words.lengths.tolist()
    assert words.pixels.max() <= 1
    assert words.packed().n_tokens == words.n_letters


def _template(path: Path) -> None:
    assert all(len(t.pieces) == len(t.atoms) + 1 for t in read_template(path))


_READERS: dict[str, Callable[[Path], None]] = {
    "columns": _columns,
    "tabs": _tabs,
    "crfsuite": _crfsuite,
    "ocr": _ocr,
    "template": _template,
}


def _run(name: str, folder: Path, max_examples: int) -> None:
    path = folder / "input"

    @settings(max_examples=max_examples, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(data=_inputs(name))
    def any_input(data: bytes) -> None:
        path.write_bytes(data)
        message = str(path)
        try:
            _READERS[name](path)
        except DataError as error:
            message = str(error)
        assert message.startswith(str(path))

    any_input()


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", sorted(_READERS))
def test_readers_raise_nothing_but_data_error(name: str, tmp_path: Path) -> None:
    """Whatever the bytes, a reader gives a whole corpus or DataError that begins with the file's name."""
    _run(name, tmp_path, 150)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(_READERS))
def test_many_inputs_to_each_reader(name: str, tmp_path: Path) -> None:
    """The same promise over many inputs a reader."""
    _run(name, tmp_path, FUZZ)


_LEAF = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=2),
    st.just(np.float32(1)),
    st.just(np.zeros(2)),
)
_HASHABLE = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.tuples(st.text(max_size=2)))
_ANYTHING = st.recursive(
    _LEAF,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(_HASHABLE, inner, max_size=3),
        st.sets(_HASHABLE, max_size=3),
        st.tuples(inner),
    ),
    max_leaves=8,
)
_NEARLY = st.lists(
    st.lists(st.one_of(st.dictionaries(st.text(max_size=2), _ANYTHING, max_size=3), st.lists(_HASHABLE, max_size=3)), max_size=3),
    max_size=3,
)
_OBJECTS = st.one_of(_ANYTHING, _NEARLY)


def _run_objects(max_examples: int) -> None:
    @settings(max_examples=max_examples, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(sequences=_OBJECTS)
    def any_objects(sequences: Any) -> None:
        dictionary = FeatureDictionary()
        for read in (dictionary.fit_transform, ColumnCorpus.from_rows):
            with contextlib.suppress(DataError):
                read(sequences)

    any_objects()


@pytest.mark.slow
def test_objects_raise_nothing_but_data_error() -> None:
    """Whatever Python objects are given as sequences of tokens or of rows, they are used or refused with DataError."""
    _run_objects(200)


@pytest.mark.slow
def test_many_objects() -> None:
    """The same promise over many nested Python objects."""
    _run_objects(FUZZ)


@given(
    rows=st.lists(st.lists(st.integers(-1, 4), max_size=5), max_size=8),
    weights=st.one_of(st.none(), st.integers(1, 5)),
    spread=st.sampled_from([0, 2000]),
)
def test_coalesced_rows_equal_counters(rows: list[list[int]], weights: int | None, spread: int) -> None:
    """Joining what stands twice in a row equals counting, for rows of like and of very different lengths."""
    rows = [*rows, list(range(spread)) if spread else []]
    ids = np.array([k for row in rows for k in row], np.int32)
    values = None if weights is None else np.arange(len(ids), dtype=np.float32) % weights
    indptr, out, sums = coalesced(np.array([len(row) for row in rows]), ids, values)
    flat = iter(np.ones(len(ids)) if values is None else values)
    for i, row in enumerate(rows):
        expected: dict[int, float] = {}
        for k in row:
            expected[k] = expected.get(k, 0.0) + float(next(flat))
        expected.pop(-1, None)
        got = out[indptr[i] : indptr[i + 1]].tolist()
        assert len(got) == len(set(got))
        assert dict(zip(got, sums[indptr[i] : indptr[i + 1]].tolist(), strict=True)) == expected
