"""Any bytes, given to the treebank reader: a treebank that holds together, or DataError that names what the validator names."""

import codecs
import gzip
import io
import logging
from typing import Literal

import numpy as np
import pytest
from hostile_readers import FUZZ
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from treebank_samples import SAMPLES, text_of, word

from structpred.errors import DataError
from structpred.io import (
    TREEBANK_FORMATS,
    Problem,
    Treebank,
    TreebankFormat,
    read_treebank,
    stream_treebank,
    validate_treebank,
    write_treebank,
)

_PIECES = [
    *(
        b"\t",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b" ",
        b"_",
        b"#",
        b"# c\n",
        b"\0",
        b"\xff",
        b"\xc3\xa9",
        b"\xe2\x80\xa8",
        b"\xc2\x85",
    ),
    *(
        b"\xef\xbb\xbf",
        b"0",
        b"1",
        b"2",
        b"3",
        b"-",
        b".",
        b"-1",
        b"01",
        b"9" * 12,
        b"1-2",
        b"2-3",
        b"2-1",
        b"0.1",
        b"1.1",
        b"1.2",
    ),
    *("\u0661".encode(), "\U0001f600".encode(), b"\xc2\xa0", b"x" * 80, b"\x1f\x8b", b"\t_", b"_\t", b"\t\t", b"root", b"\x1c"),
    *((word(n, h) + "\n").encode() for n, h in ((1, 0), (2, 1), (1, 2), (3, 2), (2, 3), ("1-2", "_"), ("1.1", "_"), (2, "_"))),
]
_CORPUS = text_of(word(1, 0)) + text_of("# c", word(1, 2), word(2, 0), word(3, 1))
_SEEDS = [text.encode() for text in (*SAMPLES.values(), _CORPUS, _CORPUS)]
_SOUP = st.lists(st.sampled_from(_PIECES), max_size=20).map(b"".join)
_EDIT = st.tuples(st.floats(0, 1), st.integers(0, 4), st.sampled_from([b"", *_PIECES]))


def _edited(seed: bytes, edits: list[tuple[float, int, bytes]]) -> bytes:
    for place, length, piece in edits:
        start = int(place * len(seed))
        seed = seed[:start] + piece + seed[start + length :]
    return seed


def _packed(data: bytes, edits: list[tuple[float, int, bytes]]) -> bytes:
    return _edited(gzip.compress(data, mtime=0), edits)


_VALID_WITH_EDITS = st.builds(_edited, st.sampled_from(_SEEDS), st.lists(_EDIT, max_size=3))
_INPUTS = st.one_of(
    _VALID_WITH_EDITS,
    _VALID_WITH_EDITS,
    _VALID_WITH_EDITS.map(lambda data: data.replace(b"\n", b"\r\n")),
    _SOUP,
    st.binary(max_size=60),
    st.builds(_packed, _VALID_WITH_EDITS, st.lists(_EDIT, max_size=1)),
)
_FORMATS = st.sampled_from([None, None, None, *TREEBANK_FORMATS.values()])


def _written(treebank: Treebank, *, again: bool) -> bytes:
    out = io.BytesIO()
    write_treebank(treebank, out, treebank.trees() if again else None)
    return out.getvalue()


def _check_whole(treebank: Treebank) -> None:
    """The parts fit together, the trees are trees, and what is written can be read again."""
    n = treebank.n_words
    columns = (treebank.forms, treebank.lemmas, treebank.upos, treebank.xpos, treebank.feats, treebank.labels)
    assert all(len(column) == n for column in (*columns, treebank.heads, treebank.line_numbers))
    assert all(all(column) for column in columns)
    assert treebank.offsets[0] == 0
    assert treebank.offsets[-1] == n
    assert treebank.lengths.min() > 0
    assert treebank.bounds[-1] == len(treebank.raw)
    assert (np.diff(treebank.line_numbers) > 0).all()
    for i in range(len(treebank)):
        _check_tree(treebank.heads[treebank.offsets[i] : treebank.offsets[i + 1]].tolist())
    if len(treebank) > 1:
        order = list(range(len(treebank)))[::-1]
        turned = read_treebank(io.BytesIO(_written(treebank.take(order), again=False)), treebank.format)
        assert turned.take(order).forms == treebank.forms
    if treebank.has_trees:
        assert _written(treebank, again=True) == _written(treebank, again=False)


def _check_tree(heads: list[int]) -> None:
    if set(heads) == {-1}:
        return
    for start in range(1, len(heads) + 1):
        word, steps = start, 0
        while word:
            word, steps = heads[word - 1], steps + 1
            assert steps <= len(heads)


def _attempt(data: bytes, format: TreebankFormat | None, on_error: Literal["raise", "skip"]) -> Treebank | str:
    """What is read, or the message of the error."""
    try:
        return read_treebank(io.BytesIO(data), format, on_error=on_error)
    except DataError as error:
        return str(error)


def _problems(data: bytes, format: TreebankFormat | None) -> list[Problem] | str:
    try:
        return validate_treebank(io.BytesIO(data), format)
    except DataError as error:  # damaged gzip data, or no format to be seen
        return str(error)


def _read(data: bytes, format: TreebankFormat | None, batch_size: int) -> None:
    problems, treebank = _problems(data, format), _attempt(data, format, "raise")
    if isinstance(problems, str):
        assert treebank == problems
        return
    errors = [problem for problem in problems if problem.severity == "error"]
    if isinstance(treebank, str):
        assert treebank == str(next((error for error in errors if error.line), errors[0]))
        treebank = _attempt(data, format, "skip")
    else:
        assert not errors
        assert _written(treebank, again=False) == (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    if isinstance(treebank, str):
        assert "expected at least one sentence" in treebank
        return
    assert [problem.message for problem in treebank.skipped] == [problem.message for problem in errors]
    batches = list(stream_treebank(io.BytesIO(data), format, batch_size=batch_size, on_error="skip"))
    assert b"".join(batch.raw for batch in batches) == treebank.raw
    assert [line for batch in batches for line in batch.line_numbers] == treebank.line_numbers.tolist()
    assert [problem for batch in batches for problem in batch.skipped] == list(treebank.skipped)
    _check_whole(treebank)


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No log of what was skipped: lines that nobody reads."""
    monkeypatch.setattr(logging.getLogger("structpred.io"), "disabled", True)


def _run(max_examples: int) -> None:
    @settings(max_examples=max_examples, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(data=_INPUTS, format=_FORMATS, batch_size=st.integers(1, 3))
    def any_input(data: bytes, format: TreebankFormat | None, batch_size: int) -> None:
        _read(data, format, batch_size)

    any_input()


@pytest.mark.slow
def test_treebanks_of_any_bytes() -> None:
    """Whatever the bytes: a whole treebank, or DataError; reader, stream and validator agree on every error and its line."""
    _run(300)


@pytest.mark.slow
def test_many_treebanks() -> None:
    """The same promise over many inputs."""
    _run(FUZZ)


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_the_seeds_are_good(name: str) -> None:
    """The files that the inputs begin with have no problem, so that edits reach every part of the reader."""
    data = SAMPLES[name].encode()
    assert validate_treebank(io.BytesIO(data)) == []
    assert read_treebank(io.BytesIO(codecs.BOM_UTF8 + data)).bom
