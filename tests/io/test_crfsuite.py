"""CRFsuite's text format."""

from pathlib import Path

import numpy as np
import pytest
from crfsuite_text import crfsuite_text
from hypothesis import given
from hypothesis import strategies as st

from structpred.errors import DataError
from structpred.io import crfsuite
from structpred.io.crfsuite import AttributeCorpus, read_crfsuite


def _read(tmp_path: Path, text: str) -> AttributeCorpus:
    path = tmp_path / "a.crfsuite"
    path.write_bytes(text.encode())
    return read_crfsuite(path)


def _items(corpus: AttributeCorpus) -> list[list[tuple[str, list[tuple[str, float]]]]]:
    """Sequences of (label, [(attribute, value)])."""
    out, token = [], 0
    for labels in corpus.labels:
        sequence = []
        for label in labels:
            span = slice(corpus.indptr[token], corpus.indptr[token + 1])
            names = [corpus.attributes[code] for code in corpus.codes[span]]
            sequence.append((label, list(zip(names, corpus.values[span].tolist(), strict=True))))
            token += 1
        out.append(sequence)
    return out


def test_labels_attributes_and_scales(tmp_path: Path) -> None:
    """Labels, attributes, scales, escapes, empty fields, sequences and line numbers are read as the format says."""
    text = "\nB-NP\tw=the\tlen:3\n:\tw=\\:\ta\\\\:0.5\t\n\n\n@bos\n__EOS__\tw=the\tx:-1e-2\tw\\=y\t\tz:.5\n"
    corpus = _read(tmp_path, text)
    assert _items(corpus) == [
        [("B-NP", [("w=the", 1.0), ("len", 3.0)]), (":", [("w=:", 1.0), ("a\\", 0.5)])],
        [("@bos", []), ("__EOS__", [("w=the", 1.0), ("x", float(np.float32(-0.01))), ("w\\=y", 1.0), ("z", 0.5)])],
    ]
    assert corpus.lines.tolist() == [2, 3, 6, 7]
    assert corpus.where(3).endswith("a.crfsuite:7")
    assert corpus.offsets.tolist() == [0, 2, 4]
    assert (corpus.codes.dtype, corpus.values.dtype) == (np.int32, np.float32)


def test_carriage_returns(tmp_path: Path) -> None:
    """Files with carriage returns read as those without."""
    text = "A\tx\ty:2\n\nB\tx"
    assert _items(_read(tmp_path, text.replace("\n", "\r\n") + "\r")) == _items(_read(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected at least one sequence, got an empty file"),
        ("\n\n", "expected at least one sequence, got only blank lines"),
        ("A\tx\n\tx\n", r"a\.crfsuite:2: expected a label in front of the first tab"),
        ("A\tx\n \n", r"a\.crfsuite:2: expected a label"),
        ("A\tx\n\nA\ty\tx:abc\n", r"a\.crfsuite:3: expected a finite number after the colon, got 'abc' in 'x:abc'"),
        ("A\tx:nan\n", r"a\.crfsuite:1: expected a finite number"),
        ("A\tx:1e39\n", r"a\.crfsuite:1: expected a finite number"),
        ("A\tx:1_0\n", r"a\.crfsuite:1: expected a finite number"),
        ("A\tx:\n", r"a\.crfsuite:1: expected a finite number"),
        ("A\tw=a:b:1\n", r"a\.crfsuite:1: .*a colon that belongs to the name is written \\:"),
        ("A\t:1\n", r"a\.crfsuite:1: expected an attribute name in front of the colon"),
    ],
)
def test_bad_lines(tmp_path: Path, text: str, message: str) -> None:
    """A bad line raises DataError with file and line."""
    with pytest.raises(DataError, match=message):
        _read(tmp_path, text)


def test_bad_line_in_a_later_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Line numbers stay right when the text is worked through in many pieces, and so does everything else."""
    lines = [f"L{k % 3}\ta{k % 7}\tb:{k}" if k % 5 else "" for k in range(1, 400)]
    whole = _read(tmp_path, "\n".join(lines))
    monkeypatch.setattr(crfsuite, "PIECE", 50)
    monkeypatch.setattr(crfsuite, "FIELDS", 20)
    parts = _read(tmp_path, "\n".join(lines))
    assert _items(parts) == _items(whole)
    assert parts.lines.tolist() == whole.lines.tolist()
    lines[333] = "A\tb:x"
    with pytest.raises(DataError, match=r"a\.crfsuite:334:"):
        _read(tmp_path, "\n".join(lines))


_NAME = st.text(alphabet="ab:\\= é\u2028", min_size=1, max_size=6).filter(str.strip)
_SCALE = st.floats(width=32, allow_nan=False, allow_infinity=False)
_ITEM = st.tuples(_NAME, st.lists(st.tuples(_NAME, _SCALE), max_size=4))


@pytest.mark.slow
@given(sequences=st.lists(st.lists(_ITEM, min_size=1, max_size=4), min_size=1, max_size=4))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, sequences: list[list[tuple[str, list[tuple[str, float]]]]]) -> None:
    """What is written reads back the same: any label, name and value, colons and backslashes included."""
    items = [item for sequence in sequences for item in sequence]
    names = list(dict.fromkeys(name for _, attributes in items for name, _ in attributes))
    corpus = AttributeCorpus(
        [[label for label, _ in sequence] for sequence in sequences],
        names,
        np.cumsum([0] + [len(attributes) for _, attributes in items]),
        np.array([names.index(name) for _, attributes in items for name, _ in attributes], np.int32),
        np.array([value for _, attributes in items for _, value in attributes], np.float32),
        np.cumsum([0] + [len(sequence) for sequence in sequences]),
        np.zeros(len(items), np.int64),
        "made",
    )
    path = tmp_path_factory.mktemp("crfsuite") / "a"
    path.write_bytes(crfsuite_text(corpus).encode())
    assert _items(read_crfsuite(path)) == sequences


def test_items_as_dicts_of_attributes(tmp_path: Path) -> None:
    """Each item is a dict from names to values, in which an attribute that occurs twice counts with the sum."""
    corpus = _read(tmp_path, "A\tx:2\ty\tx\nB\n\nA\ty\n")
    assert corpus.dicts() == [[{"x": 3.0, "y": 1.0}, {}], [{"y": 1.0}]]


def test_packed(tmp_path: Path) -> None:
    """Packed features sum what stands twice, and know only the names asked for."""
    corpus = _read(tmp_path, "A\tx\ty:2\tx:0.5\nB\tz\n\nA\ty\n")
    packed = corpus.packed()
    assert packed.indptr.tolist() == [0, 2, 3, 4]
    assert packed.indices.tolist() == [0, 1, 2, 1]
    assert packed.values.tolist() == [1.5, 2.0, 1.0, 1.0]
    assert packed.offsets.tolist() == [0, 2, 3]
    chosen = corpus.packed(["q", "z", "x"])
    assert (chosen.n_features, chosen.indptr.tolist(), chosen.indices.tolist()) == (3, [0, 1, 2, 2], [2, 1])
    assert chosen.values.tolist() == [1.5, 1.0]
