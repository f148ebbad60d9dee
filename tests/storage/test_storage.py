"""Model and checkpoint files: what is written comes back exactly, and the errors say what is wrong."""

import json
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from same_bundles import same

from structpred.errors import CheckpointError, DataError, ModelFileError, StructpredError
from structpred.storage import archive
from structpred.storage import bundles as storage
from structpred.storage.bundles import Bundle, read_bundle, write_bundle

DTYPES = ["bool", "u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8"]
SHAPES: list[tuple[int, ...]] = [(), (0,), (1,), (7,), (3, 4), (0, 5), (5, 0), (2, 3, 4), (1, 1, 1, 1)]


def small() -> Bundle:
    """A bundle with a bit of everything."""
    header = {"class": "a.b:C", "params": {"C": 0.1, "tol": None, "on": True}, "seed": 2**127 + 1, "labels": ["é", '"\\\n', ""]}
    arrays = {
        "w": np.arange(12, dtype=np.float32).reshape(3, 4),
        "odd": np.array([np.nan, -0.0, np.inf, 5e-324]),
        "ids": np.arange(5, dtype=np.int64),
        "mask": np.array([True, False, True]),
        "empty": np.zeros((0, 3), np.int32),
        "scalar": np.array(7, dtype=np.uint8),
    }
    texts = {"features": ["w[0]=a", "", "tab\t", "nul\0", "line\n", '"q"', "字\U0001f600", "\ud800", "[{,:"], "none": []}
    return Bundle(header, arrays, texts)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test writes its file."""
    return tmp_path / "m.spz"


def test_round_trip(path: Path) -> None:
    """Headers, arrays and texts come back equal, with every bit of every array and every odd character."""
    write_bundle(path, small(), kind="model")
    assert same(read_bundle(path, kind="model"), small())


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_and_shape(path: Path, dtype: str) -> None:
    """Each stored type comes back in type, shape and bits for 0-d, empty, and many-dimensional arrays."""
    rng = np.random.default_rng(0)
    low = 0 if dtype[0] in "bu" else -100
    arrays = {str(s): np.asarray(rng.uniform(low, low + 200, s)).astype(dtype) for s in SHAPES}
    write_bundle(path, Bundle({}, arrays), kind="model")
    assert same(read_bundle(path, kind="model"), Bundle({}, arrays))


def test_arrays_of_any_layout(path: Path) -> None:
    """Transposed, strided and read-only arrays are stored by value; what is read is writable, aligned and in C order."""
    base = np.arange(24.0).reshape(4, 6)
    frozen = base.copy()
    frozen.flags.writeable = False
    arrays = {"t": base.T, "s": base[::2, ::-3], "f": np.asfortranarray(base), "ro": frozen, "one": np.ones(1, np.uint8)}
    write_bundle(path, Bundle({}, arrays), kind="model")
    back = read_bundle(path, kind="model").arrays
    for name, array in arrays.items():
        assert np.array_equal(back[name], array)
        assert back[name].flags.writeable
        assert back[name].flags.aligned
        assert back[name].flags.c_contiguous
    back["t"][:] = 0
    assert np.array_equal(back["s"], arrays["s"])


def test_same_bundle_same_bytes(path: Path) -> None:
    """Writing is a function of the contents: no times, no random order."""
    write_bundle(path, small(), kind="model")
    first = path.read_bytes()
    shuffled = small()
    shuffled.arrays = dict(reversed(shuffled.arrays.items()))
    write_bundle(path, shuffled, kind="model")
    assert path.read_bytes() == first


def test_large_entries_are_hashed_by_a_thread_of_their_own(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is the same, is read the same, damage is found, and an error of the disk comes through."""
    bundle = Bundle({"C": 1.0}, {"w": np.arange(1000.0)}, {"labels": ["a", "b"]})
    files = [path.with_name(f"{large}.spz") for large in (archive.LARGE, 1)]
    write_bundle(files[0], bundle, kind="model")
    monkeypatch.setattr(archive, "LARGE", 1)
    write_bundle(files[1], bundle, kind="model")
    assert files[0].read_bytes() == files[1].read_bytes()
    assert same(read_bundle(files[0], kind="model"), bundle)
    damaged = bytearray(files[1].read_bytes())
    damaged[-1000] ^= 1
    files[1].write_bytes(damaged)
    with pytest.raises(ModelFileError):
        read_bundle(files[1], kind="model")

    def full(chunk: object) -> None:
        raise OSError(28, "no space")

    with pytest.raises(OSError, match="no space"):
        archive._describe("weights.safetensors", [b"12345678"], full)


def test_ordinary_tools_open_it(path: Path) -> None:
    """The file is a plain zip of plain files: zipfile, json and the safetensors library read it, and the sums check."""
    safetensors = pytest.importorskip("safetensors.numpy")
    write_bundle(path, small(), kind="model")
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert {i.compress_type for i in archive.infolist()} == {zipfile.ZIP_STORED}
        parts = {name: archive.read(name) for name in archive.namelist()}
        archive.extractall(path.parent / "out")
    assert json.loads(parts["model.json"])["header"] == small().header
    assert json.loads(parts["vocab.json"]) == small().texts
    assert same(Bundle({}, safetensors.load(parts["weights.safetensors"])), Bundle({}, small().arrays))
    done = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=path.parent / "out", capture_output=True, text=True, check=False)
    assert done.stdout.count(": OK") == 3


def test_reads_what_safetensors_writes() -> None:
    """The bytes that the safetensors library writes are read alike."""
    safetensors = pytest.importorskip("safetensors.numpy")

    data = np.frombuffer(safetensors.save(small().arrays), dtype=np.uint8)
    assert same(Bundle({}, archive.unpack(data.copy())), Bundle({}, small().arrays))


@pytest.mark.parametrize(
    ("header", "where"),
    [
        ({"a": {"b": [1, float("nan")]}}, r"\['a'\]\['b'\]\[1\]: nan is not a finite"),
        ({"a": float("inf")}, "not a finite"),
        ({"a": np.float64(1)}, "float64 cannot be stored"),
        ({"a": np.zeros(2)}, "ndarray cannot be stored"),
        ({1: 2}, "key 1 is not a plain string"),
        ({"a": b"x"}, "bytes cannot be stored"),
        ({"a": 1 << 3000}, "integer of 3001 bits"),
    ],
)
def test_header_that_cannot_be_stored(path: Path, header: dict[str, Any], where: str) -> None:
    """A header value that JSON would drop or change is refused with its place, and the old file stays."""
    path.write_bytes(b"old")
    with pytest.raises(DataError, match=where):
        write_bundle(path, Bundle(header), kind="model")
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize(
    "array", [np.array([None]), np.array(["a"]), np.array([1j]), np.arange(3, dtype=">i4"), np.array([1], "M8[s]"), [1, 2]]
)
def test_array_that_cannot_be_stored(path: Path, array: Any) -> None:
    """Arrays of objects, strings, complex numbers, dates or foreign byte order are refused by name, never pickled."""
    with pytest.raises(DataError, match="array 'bad'"):
        write_bundle(path, Bundle({}, {"bad": array}), kind="model")
    assert not path.exists()


@pytest.mark.parametrize("texts", [{"t": ["a", 1]}, {"t": [b"a"]}, {3: []}, {"t": ["\ud83d\ude00"]}])
def test_texts_that_cannot_be_stored(path: Path, texts: Any) -> None:
    """Texts that are not strings, or would not come back the same, are refused."""
    with pytest.raises(DataError, match="texts"):
        write_bundle(path, Bundle({}, {}, texts), kind="model")


def test_newer_version(path: Path) -> None:
    """A file of a newer version says which version it has, which one this library reads, and to update."""
    write_bundle(path, small(), kind="model", format_version=7)
    with pytest.raises(ModelFileError, match=r"format version 7 .*reads up to 1; update structpred"):
        read_bundle(path, kind="model")
    assert read_bundle(path, kind="model", format_version=7).format_version == 7


def test_newer_layout(path: Path) -> None:
    """A future archive of another layout is still told apart from a damaged one."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("model.json", '{"format": "structpred", "format_version": 12, "kind": "model"}')
        archive.writestr("more", "x" * 1000)
    with pytest.raises(ModelFileError, match="format version 12, this library reads up to 1; update"):
        read_bundle(path, kind="model")


def test_wrong_kind(path: Path) -> None:
    """A checkpoint is not read as a model, nor a model as a checkpoint; each error has its own class."""
    write_bundle(path, small(), kind="checkpoint")
    with pytest.raises(ModelFileError, match="it is a 'checkpoint' file, expected a 'model' file"):
        read_bundle(path, kind="model")
    write_bundle(path, small(), kind="model")
    with pytest.raises(CheckpointError, match="it is a 'model' file"):
        read_bundle(path, kind="checkpoint")


def test_what_is_no_model_file(path: Path) -> None:
    """Empty files, pickles, other programs' files, folders and missing files are told apart in words."""
    cases = [
        (b"", "it is empty"),
        (pickle.dumps([1]), "looks like a pickle, which structpred never loads"),
        (b"\x1f\x8b\x08" + bytes(2000), "gzip-compressed"),
        (b"lCRF" + bytes(2000), "CRFsuite model"),
        (b"hello " * 1000, "its beginning is damaged"),
    ]
    for data, text in cases:
        path.write_bytes(data)
        with pytest.raises(ModelFileError, match=text):
            read_bundle(path, kind="model")
    with pytest.raises(ModelFileError, match="cannot be read: it is not a regular file"):
        read_bundle(path.parent, kind="model")
    with pytest.raises(ModelFileError, match="No such file"):
        read_bundle(path.parent / "missing", kind="model")


def test_truncated(path: Path) -> None:
    """A truncated file says so."""
    write_bundle(path, small(), kind="model")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelFileError, match="truncated, damaged, or packed again"):
        read_bundle(path, kind="model")


def test_disk_full_keeps_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the disk fills while a bundle is saved, the old file still loads."""
    write_bundle(path, small(), kind="model")
    from structpred.storage import atomic

    def step(name: str) -> None:
        if name == "written":
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic, "step", step)
    with pytest.raises(StructpredError, match="the disk is full; the old file is kept"):
        write_bundle(path, Bundle({"new": 1}), kind="model")
    assert same(read_bundle(path, kind="model"), small())


def test_class_names_are_data(path: Path) -> None:
    """A class named in the header is not imported when the file is read."""
    write_bundle(path, Bundle({"task": "antigravity:Fly", "__reduce__": "os.system"}), kind="model")
    assert read_bundle(path, kind="model").header["task"] == "antigravity:Fly"
    assert "antigravity" not in sys.modules


def test_memory_limit(path: Path) -> None:
    """A file of very many names is refused under a small memory limit, before they are made, and read under a larger."""
    write_bundle(path, Bundle({}, {}, {"t": ["ab"] * 100_000}), kind="model")
    with pytest.raises(ModelFileError, match="memory, the limit leaves"):
        read_bundle(path, kind="model", memory_limit=5 << 20)
    assert len(read_bundle(path, kind="model").texts["t"]) == 100_000


def test_all_is_exported() -> None:
    """The names other packages rely on are where they are said to be."""
    assert set(storage.__all__) == {
        "Bundle", "looks_like_bundle", "read_bundle", "remove_leftovers", "write_atomic", "write_bundle",
    }  # fmt: skip
