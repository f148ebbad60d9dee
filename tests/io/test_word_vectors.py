"""Files of word vectors: both forms, and what is wrong with hostile ones in one line each."""

import io
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structpred.errors import DataError, ParameterError
from structpred.io.templates import vectors
from structpred.io.templates.templates import Template, load_templates, write_templates
from structpred.io.templates.vectors import VectorTemplates, read_vectors


def saved(array: Any) -> bytes:
    """The bytes of a .npy file."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def claiming(shape: str) -> bytes:
    """A .npy file of some bytes whose header claims this shape."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(64)


@pytest.mark.parametrize("head", ["", "2 3\n"])
@pytest.mark.parametrize("end", ["\n", " \r\n"])
def test_text_with_and_without_sizes(tmp_path: Path, head: str, end: str) -> None:
    """The first line may be the sizes; word2vec itself writes a space before each line end. The last line end may be missing."""
    path = tmp_path / "v.txt"
    for text in (f"{head}the 1 2 3{end}caf\u00e9\u00a0x 0.5 -1e-3 0{end}", f"{head}the 1 2 3{end}caf\u00e9\u00a0x 0.5 -1e-3 0"):
        path.write_bytes(text.encode())
        words, table = read_vectors(str(path))
        assert words == {"the": 0, "caf\u00e9\u00a0x": 1}
        assert table.dtype == np.float32
        assert np.allclose(table, [[1, 2, 3], [0.5, -0.001, 0]])


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", "<f2"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_beside_their_words(tmp_path: Path, dtype: str, order: Any) -> None:
    """NAME.npy of any floats, with its words in NAME.txt; what is float32 already stays on disk."""
    table = np.asarray([[1, 2, 3], [4, 5, 6]], dtype, order=order)
    np.save(tmp_path / "v.npy", table)
    (tmp_path / "v.txt").write_text("a\nb\n")
    words, found = read_vectors(str(tmp_path / "v.npy"))
    assert words == {"a": 0, "b": 1}
    assert found.dtype == np.dtype(np.float32)
    assert found.tolist() == table.tolist()
    base: Any = found
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap) == (dtype == "<f4" and order == "C")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a 1 2\nb 1\n", "v.txt:2: expected a word and 2 numbers, spaces between: 'b 1'"),
        (b"a 1 2\nb 1 2 3\n", "v.txt:2: expected a word and 2 numbers, spaces between: 'b 1 2 3'"),
        (b"2 3\na 1 2\n", "v.txt:2: expected a word and 3 numbers, spaces between: 'a 1 2'"),
        (b"a 1 2\nb 1 x\n", "v.txt:2: expected a word and 2 numbers"),
        (b"a 1 2\n\nb 1 2\n", "v.txt:2: expected a word and 2 numbers"),
        (b"a\n", "v.txt:1: expected a word and some numbers"),
        (b"", "v.txt:1: expected vectors, got 0"),
        (b"1 2\na 1 nan\n", "v.txt:2: expected numbers that are finite in 32 bits"),
        (b"a 1 2\nb 1 1e39\n", "v.txt:2: expected numbers that are finite in 32 bits"),
        (b"a 1 2\nb -inf 2\n", "v.txt:2: expected numbers that are finite in 32 bits"),
        (b"a 1\nb 1\na 1\n", "v.txt:3: expected each word once, got 'a', as in line 1"),
        (b"3 1\na 1\nb 1\n", "v.txt:1: expected 3 vectors, as it says, got 2; was the file cut"),
        (b"1 1\na 1\nb 1\n", "v.txt:1: expected 1 vectors, as it says, got 2"),
        (b"a 1\n\xff 1\n", "v.txt:2: expected UTF-8 text, got the byte 0xff"),
        (b"a 1\n\0 1\n", "v.txt:2: expected text, got a NUL byte"),
        (b"25000000 100\na 1\n", "v.txt:1: 25,000,000 vectors of 100 numbers take 9.3 GiB, a model file 1 at most: keep"),
        (b"9" * 30 + b" 1\n", "v.txt:1: 9{3},.* vectors of 1 numbers take"),
    ],
)  # fmt: skip
def test_hostile_text(tmp_path: Path, data: bytes, message: str) -> None:
    """One line with the file and the line of what is wrong; sizes that are claimed are not allocated."""
    path = tmp_path / "v.txt"
    path.write_bytes(data)
    tracemalloc.start()
    with pytest.raises(DataError, match=message) as caught:
        read_vectors(str(path))
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("array", "words", "message"),
    [
        (saved(np.ones((2, 2))), "a\n", "v.txt: expected 2 words, one for each row of .*v.npy, got 1"),
        (saved(np.ones((2, 2))), "a\na\n", "v.txt:2: expected each word once, got 'a', as in line 1"),
        (saved(np.array([[1.0], [np.nan]])), "a\nb\n", "v.txt:2: expected numbers that are finite"),
        (saved(np.array([[1.0], [1e39]])), "a\nb\n", "v.txt:2: expected numbers that are finite"),
        (saved(np.ones(2)), "a\nb\n", r"v.npy: expected a 2-d array of floats, .* shape \(2,\)"),
        (saved(np.ones((2, 2), int)), "a\nb\n", "v.npy: expected a 2-d array of floats, .* got int64"),
        (saved(np.ones((2, 0))), "a\nb\n", "v.npy: expected a 2-d array of floats"),
        (saved(np.array([["a"]], object)), "a\n", "v.npy: expected an array that NumPy wrote, complete and without objects"),
        (b"abc", "a\n", "v.npy: expected an array that NumPy wrote"),
        (saved(np.ones((2, 2)))[:-1], "a\nb\n", "v.npy: expected an array that NumPy wrote, complete"),
        (claiming("(25000000, 100)"), "a\n", "v.npy: expected an array that NumPy wrote, complete"),
        (claiming("(99999999999999999999, 100)"), "a\n", "v.npy: expected an array that NumPy wrote, complete"),
        (claiming("(-3, 100)"), "a\n", "v.npy: expected an array that NumPy wrote, complete"),
        (claiming("(" * 5000), "a\n", "v.npy: expected an array that NumPy wrote, complete"),
    ],
)
def test_hostile_arrays(tmp_path: Path, array: bytes, words: str, message: str) -> None:
    """So are files of NumPy: none is read as a pickle, and a claim beyond the end of the file is refused."""
    (tmp_path / "v.npy").write_bytes(array)
    (tmp_path / "v.txt").write_text(words)
    with pytest.raises(DataError, match=message):
        read_vectors(str(tmp_path / "v.npy"))


def test_what_a_model_file_may_not_hold_is_not_read_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without sizes ends where its vectors are too many; an array is judged by its shape."""
    monkeypatch.setattr(vectors, "MOST_BYTES", 16)
    (tmp_path / "v.txt").write_text("a 1 2\nb 1 2\nc 1 2\nd 1\n")
    with pytest.raises(DataError, match=r"v.txt:3: 3 vectors of 2 numbers take .* keep the first 2"):
        read_vectors(str(tmp_path / "v.txt"))
    np.save(tmp_path / "v.npy", np.ones((3, 2)))
    with pytest.raises(DataError, match=r"v.npy: 3 vectors of 2 numbers take"):
        read_vectors(str(tmp_path / "v.npy"))
    for name in ("none.npy", "none.txt"):
        with pytest.raises(DataError, match=rf"{name}: .*[Nn]o such file"):
            read_vectors(str(tmp_path / name))


@pytest.mark.parametrize(
    "settings",
    [{"atoms": ((0, 0, "vec:v.txt"), (0, 1))}, {"atoms": ((0, 0, "vec:v.txt"),), "at": "first"},
     {"atoms": ((0, 0, "vec:v.txt"),), "transition": True}],
)  # fmt: skip
def test_a_vector_stands_alone(settings: dict[str, Any]) -> None:
    """A vector beside other atoms, at the first token alone or in transitions is refused by the template's name."""
    with pytest.raises(ParameterError, match="template 'v': a vector stands alone"):
        VectorTemplates([Template("v", **settings)])


def test_a_template_file_names_a_vectors_file(tmp_path: Path) -> None:
    """JSON templates with `vec:FILE` are read as all others, whether the file is there or not."""
    given = [Template("w", ((0, 0),)), Template("v", ((0, -1, "vec:glove.txt"),))]
    write_templates(given, tmp_path / "t.json")
    plain, vector = load_templates(tmp_path / "t.json")
    assert (plain, vector.atoms[0].transform) == (given[0], f"vec:{tmp_path / 'glove.txt'}")


def test_paths_are_those_beside_the_template_file(tmp_path: Path) -> None:
    """A JSON template file names vectors by paths from its own folder; then they go by names; two of one are refused."""
    for folder, number in (("one", 1), ("two", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "v.txt").write_text(f"the {number} 0\n")
    both = [Template(f"{folder}[{k}]", ((0, k, f"vec:{folder}/v.txt"),)) for folder in ("one", "two") for k in (0, 1)]
    write_templates(both[:2], tmp_path / "t.json")
    made = VectorTemplates(load_templates(tmp_path / "t.json"))
    assert {template.atoms[0].transform for template in made.templates} == {"vec:v.txt"}
    assert made.files["vec:v.txt"][1].tolist() == [[1.0, 0.0]]
    assert VectorTemplates.from_bundle(made.to_bundle()).templates == made.templates
    write_templates(both, tmp_path / "t.json")
    with pytest.raises(ParameterError, match=r"one.v\.txt and .*two.v\.txt have one name; rename one of these files"):
        VectorTemplates(load_templates(tmp_path / "t.json"))
