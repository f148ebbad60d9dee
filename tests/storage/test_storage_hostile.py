"""Files made to harm: every one is refused with our error or gives an equal bundle, runs nothing and takes little memory."""

import io
import json
import os
import pickle
import random
import stat
import struct
import sys
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from same_bundles import same

from structpred.errors import FileFormatError, ModelFileError
from structpred.storage import archive
from structpred.storage.bundles import Bundle, read_bundle, write_bundle

FORBIDDEN = ("exec", "compile", "import", "socket", "subprocess", "os.", "pickle", "marshal", "ctypes", "shutil", "tempfile")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
ALLOWANCE = 100 << 20


class Guard:
    """An audit hook that records forbidden events while it is switched on; Python cannot remove hooks, only mute them."""

    def __init__(self) -> None:
        self.on = False
        self.events: list[str] = []
        sys.addaudithook(self.hook)

    def hook(self, event: str, args: tuple[Any, ...]) -> None:
        """Record running or loading code, opening for writing, and talking to the world."""
        if self.on and (
            event.startswith(FORBIDDEN) or (event == "open" and (args[2] & WRITING or set(args[1] or "") & set("wax+")))
        ):
            self.events.append(f"{event} {args}")


EMPTY = b'{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'


@pytest.fixture(scope="module")
def guard() -> Guard:
    """One hook for all tests of this file."""
    return Guard()


def bundle() -> Bundle:
    """A small bundle with every kind of part."""
    arrays = {"w": np.arange(6.0).reshape(2, 3), "m": np.array([True]), "e": np.zeros((0, 2), np.int32)}
    return Bundle({"C": 0.5, "x": [None, "a"]}, arrays, {"labels": ["B", "I"], "f": ["w=a", "w=b"]})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the files go."""
    return tmp_path / "m.spz"


@pytest.fixture
def good(path: Path) -> bytes:
    """The bytes of a valid file."""
    write_bundle(path, bundle(), kind="model")
    read_bundle(path, kind="model")  # whatever is imported or compiled late is so now
    return path.read_bytes()


def attempt(path: Path, data: bytes, guard: Guard) -> Bundle | None:
    """Read the bytes under the guard: a bundle, or None where they were refused; any other outcome fails the test."""
    path.write_bytes(data)
    guard.events.clear()
    guard.on = True
    try:
        return read_bundle(path, kind="model")
    except ModelFileError:
        return None
    finally:
        guard.on = False
        assert not guard.events


def signed(model: bytes, weights: bytes, vocab: bytes) -> bytes:
    """A file whose frame and checksums are right, whatever its entries hold."""
    out = io.BytesIO()
    archive.write(out, [[model], [weights], [vocab]])
    return out.getvalue()


def envelope(header: bytes = b"{}", version: bytes = b"1") -> bytes:
    """A model.json around a raw header."""
    return b'{"format":"structpred","format_version":%s,"kind":"model","structpred":"0","header":%s}' % (version, header)


def tensors(header: Any, body: bytes = b"", length: int | None = None) -> bytes:
    """The bytes of a safetensors file with this header, which may be raw."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text) if length is None else length) + text + body


def entry(dtype: Any, shape: Any, begin: Any, end: Any) -> dict[str, Any]:
    """One line of a safetensors header."""
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


NOTHING = tensors({})
HOSTILE_TENSORS: dict[str, bytes] = {
    "empty": b"",
    "huge header": tensors({}, length=2**63),
    "header past the end": tensors({}, length=16),
    "header not aligned": struct.pack("<Q", 2) + b"{}",
    "header a list": tensors([]),
    "not JSON": tensors(b"{oops}  "),
    "deep": tensors(b"[" * 100_000 + b"]" * 100_000),
    "absurd shape": tensors({"a": entry("F32", [2**40, 2**40], 0, 2**82)}),
    "absurd shape, small offsets": tensors({"a": entry("F32", [2**40], 0, 4)}, bytes(4)),
    "product wraps to 4 bytes": tensors({"a": entry("U8", [2**32, 2**32 + 1], 0, 2**32)}, bytes(8)),
    "absurd empty shape": tensors({"a": entry("F32", [0, 2**61, 2**61], 0, 0)}),
    "negative dimension": tensors({"a": entry("F32", [-1, -1], 0, 4)}, bytes(4)),
    "dimension a float": tensors({"a": entry("F32", [1.0], 0, 4)}, bytes(4)),
    "dimension a truth value": tensors({"a": entry("F32", [True], 0, 4)}, bytes(4)),
    "too many dimensions": tensors({"a": entry("U8", [1] * 100, 0, 1)}, bytes(1)),
    "offsets truth values": tensors({"a": entry("U8", [1], False, True)}, bytes(1)),
    "offsets backwards": tensors({"a": entry("F32", [1], 4, 0)}, bytes(4)),
    "overlap": tensors({"a": entry("F32", [1], 0, 4), "b": entry("F32", [1], 0, 4)}, bytes(4)),
    "partial overlap": tensors({"a": entry("F32", [2], 0, 8), "b": entry("F32", [2], 4, 12)}, bytes(12)),
    "hole": tensors({"a": entry("F32", [1], 0, 4), "b": entry("F32", [1], 8, 12)}, bytes(12)),
    "trailing bytes": tensors({"a": entry("F32", [1], 0, 4)}, bytes(8)),
    "past the end": tensors({"a": entry("F32", [2], 0, 8)}, bytes(4)),
    "not aligned": tensors({"a": entry("U8", [1], 0, 1), "b": entry("F32", [1], 1, 5)}, bytes(5)),
    "duplicate name": tensors(b'{"a":%s,"a":%s}' % (EMPTY, EMPTY)),
    "unknown type": tensors({"a": entry("O", [1], 0, 8)}, bytes(8)),
    "type a list": tensors({"a": entry(["F32"], [1], 0, 4)}, bytes(4)),
    "extra key": tensors({"a": {**entry("U8", [1], 0, 1), "x": 1}}, bytes(1)),
    "metadata": tensors({"__metadata__": {"a": "b"}}),
    "truth value of 2": tensors({"a": entry("BOOL", [1], 0, 1)}, b"\2"),
}  # fmt: skip
HOSTILE_HEADERS: dict[str, bytes] = {
    "duplicate key": envelope(b'{"a":1,"a":1}'),
    "nested duplicate key": envelope(b'{"a":[{"b":1,"b":2}]}'),
    "duplicate kind": envelope().replace(b'"kind":"model"', b'"kind":"checkpoint","kind":"model"'),
    "deep lists": envelope(b"[" * 100_000 + b"]" * 100_000),
    "deep, not closed": envelope(b"[" * 100_000),
    "deep objects": envelope(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    "NaN": envelope(b'{"a":NaN}'),
    "minus infinity": envelope(b'{"a":-Infinity}'),
    "overflow": envelope(b'{"a":1e999}'),
    "endless integer": envelope(b'{"a":' + b"9" * 100_000 + b"}"),
    "very many parts": envelope(b"[" + b"[]," * 3_000_000 + b"[]]"),
    "header a list": envelope(b"[]"),
    "version a truth value": envelope(version=b"true"),
    "version a float": envelope(version=b"1.0"),
    "version zero": envelope(version=b"0"),
    "version huge": envelope(version=b"9" * 4000),
    "not UTF-8": envelope(b'{"a":"\xff"}'),
    "not ASCII": envelope('{"a":"é"}'.encode()),
    "byte order mark": b"\xef\xbb\xbf" + envelope(),
    "trailing text": envelope() + b" 1",
    "control character": envelope(b'{"a":"\n"}'),
    "extra part": envelope()[:-1] + b',"more":1}',
    "pickle": pickle.dumps({"a": 1}),
    "too large": envelope(b'"' + b"a" * (33 << 20) + b'"'),
}
HOSTILE_TEXTS: dict[str, bytes] = {
    "list": b"[]",
    "numbers": b'{"a":[1]}',
    "nested": b'{"a":[["b"]]}',
    "deep": b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "duplicate": b'{"a":["b"],"a":["c"]}',
    "spaces": b'{"a": ["b"]}',
    "control character": b'{"a":["\n"]}',
    "bad escape": b'{"a":["\\x"]}',
    "not closed": b'{"a":["b',
    "constant": b'{"a":[NaN]}',
    "short names past the memory limit": b'{"a":["' + b'","'.join([b"ab"] * 6_000_000) + b'"]}',
    "very many lists": b"{" + b'"a":[],' * 3_000_000 + b'"b":[]}',
    "brackets": b"[" * 5_000_000,
    "empty": b"",
}


def bounded(path: Path, data: bytes, guard: Guard) -> Bundle | None:
    """As `attempt`, and the memory used stays under twice the file and 100 MB."""
    tracemalloc.start()
    try:
        result = attempt(path, data, guard)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 3 * len(data) + ALLOWANCE  # the test itself holds the file once
    return result


@pytest.mark.parametrize("name", HOSTILE_TENSORS)
def test_hostile_tensors(path: Path, good: bytes, guard: Guard, name: str) -> None:
    """Array headers that lie about sizes, overlap, or hold what is not an array are refused, with right checksums too."""
    assert bounded(path, signed(envelope(), HOSTILE_TENSORS[name], b"{}"), guard) is None


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", HOSTILE_HEADERS)
def test_hostile_headers(path: Path, good: bytes, guard: Guard, name: str) -> None:
    """Ambiguous, deep, endless or non-finite JSON is refused, with right checksums too."""
    assert bounded(path, signed(HOSTILE_HEADERS[name], NOTHING, b"{}"), guard) is None


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", HOSTILE_TEXTS)
def test_hostile_texts(path: Path, good: bytes, guard: Guard, name: str) -> None:
    """Name tables of any other shape, or too many for the memory, are refused, with right checksums too."""
    assert bounded(path, signed(envelope(), NOTHING, HOSTILE_TEXTS[name]), guard) is None


def test_the_honest_counterpart_loads(path: Path, good: bytes, guard: Guard) -> None:
    """The pieces that the hostile files are made of load when they are honest, so that the tests above can fail."""
    weights = tensors({"a": entry("F32", [1], 0, 4), "b": entry("BOOL", [1], 4, 5)}, bytes(5))
    loaded = attempt(path, signed(envelope(b'{"a":[{"b":1},{"b":1}]}'), weights, b'{"a":["b"],"c":[]}'), guard)
    assert loaded is not None
    assert loaded.arrays["a"].tolist() == [0.0]
    assert loaded.texts == {"a": ["b"], "c": []}


@pytest.mark.slow
def test_memory_of_a_file_that_loads(path: Path, good: bytes, guard: Guard) -> None:
    """An honest file with a million short names next to its weights loads within twice its size and 100 MB."""
    big = Bundle({}, {"w": np.ones((1_000_000, 12), np.float32)}, {"f": [f"{i:x}" for i in range(1_000_000)]})
    write_bundle(path, big, kind="model")
    size = path.stat().st_size
    del big
    tracemalloc.start()
    read_bundle(path, kind="model")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size < peak <= 2 * size + ALLOWANCE


def repacked(parts: dict[str, bytes], **options: Any) -> bytes:
    """The entries in an archive made by Python's zipfile."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", **options) as file:
        for name, data in parts.items():
            file.writestr(name, data)
    return out.getvalue()


def hostile_archives(good: bytes) -> Iterator[tuple[str, bytes]]:
    """Archives with tricks in the frame."""
    with zipfile.ZipFile(io.BytesIO(good)) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    yield "packed again", repacked(parts)
    yield "compressed", repacked(parts, compression=zipfile.ZIP_DEFLATED)
    yield "bomb", repacked({**parts, "weights.safetensors": bytes(50 << 20)}, compression=zipfile.ZIP_DEFLATED)
    yield "lzma", repacked(parts, compression=zipfile.ZIP_LZMA)
    for name in ("../evil", "/etc/evil", "a/../../evil", "C:\\evil", "evil.pkl", " "):
        yield f"extra {name!r}", repacked({**parts, name: pickle.dumps(1)})
    for missing in parts:
        yield f"without {missing}", repacked({k: v for k, v in parts.items() if k != missing})
    yield "reordered", repacked(dict(reversed(parts.items())))
    link = zipfile.ZipInfo("weights.safetensors")
    link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, data in parts.items():
            file.writestr(link if name == link.filename else name, b"/etc/passwd" if name == link.filename else data)
    yield "symbolic link", out.getvalue()
    twice = bytearray(good)
    yield "same entry twice", bytes(twice).replace(b"vocab.json", b"model.json")
    yield "comment", good[:-2] + struct.pack("<H", 4) + b"evil"
    yield "before", b"#!/bin/sh\n" + good
    yield "after", good + b"\n"
    yield "two files", good + good
    yield "pickle after", good + pickle.dumps(1)
    for flag in (0x1, 0x8, 0x800, 0x2000):
        yield f"flag {flag}", good.replace(b"PK\3\4\x2d\0\0\0", b"PK\3\4\x2d\0" + struct.pack("<H", flag))
    for claim in (2**63, 2**64 - 1, 2**40, 0):
        for size in {len(data) for data in parts.values()}:
            yield f"size {claim}", good.replace(struct.pack("<Q", size), struct.pack("<Q", claim))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_hostile_archives(path: Path, good: bytes, guard: Guard) -> None:
    """Compression, bombs, extra names, path tricks, links, comments, flags and false sizes are all refused."""
    for name, data in hostile_archives(good):
        assert data != good, name
        assert bounded(path, data, guard) is None, name


def test_pipes_do_not_hang(path: Path) -> None:
    """A named pipe is refused at once instead of being waited for."""
    os.mkfifo(path)
    with pytest.raises(FileFormatError, match="not a regular file"):
        read_bundle(path, kind="model")


def test_a_bit_of_many_bytes(path: Path, good: bytes, guard: Guard) -> None:
    """Flipping one bit of every fifth byte of the file gets it refused."""
    for i in range(0, len(good), 5):
        data = bytearray(good)
        data[i] ^= 1 << (i % 8)
        assert attempt(path, bytes(data), guard) is None, f"byte {i}"


@pytest.mark.slow
def test_every_single_bit(path: Path, good: bytes, guard: Guard) -> None:
    """Flipping any one bit of the file gets it refused."""
    for i in range(8 * len(good)):
        data = bytearray(good)
        data[i // 8] ^= 1 << (i % 8)
        assert attempt(path, bytes(data), guard) is None, f"bit {i}"


def test_every_truncation(path: Path, good: bytes, guard: Guard) -> None:
    """Cutting off any number of bytes, at the end or the beginning by turns, gets it refused."""
    for i in range(1, len(good) + 1):
        assert attempt(path, good[:-i] if i % 2 else good[i:], guard) is None


def swapped(data: bytes, rng: random.Random) -> bytes:
    """Two ranges exchanged."""
    a, b, c, d = sorted(rng.randrange(len(data) + 1) for _ in range(4))
    return data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def flipped(data: bytes, rng: random.Random) -> bytes:
    """Up to eight bits flipped."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def spliced(data: bytes, rng: random.Random) -> bytes:
    """A range removed, repeated, zeroed, or overwritten by numbers that matter to parsers."""
    a, b = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    word = struct.pack("<Q", rng.choice([0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1, len(data)]))
    middle = rng.choice([b"", data[a:b] * 2, bytes(b - a), word, word[:4], word[:2], rng.randbytes(b - a)])
    return data[:a] + middle + data[b if rng.random() < 0.5 else min(len(data), a + len(middle)) :]


MUTATIONS: list[Callable[[bytes, random.Random], bytes]] = [swapped, flipped, spliced]
WORDS = [
    b"[",
    b"]",
    b"{",
    b"}",
    b'"',
    b",",
    b":",
    b"\\",
    b"NaN",
    b"1e999",
    b"-1",
    b"2",
    b"null",
    b"true",
    b"\x80",
    b"\0",
    b"\\u0000",
    b'"C":1,',
]


def reworded(data: bytes, rng: random.Random) -> bytes:
    """JSON tokens put in, taken out or repeated."""
    a = rng.randrange(len(data) + 1)
    return data[:a] + rng.choice(WORDS) + data[a + rng.randint(0, 3) :]


@pytest.mark.slow
def test_thirty_thousand_mutated_files(path: Path, good: bytes, guard: Guard) -> None:
    """15,000 mutated files are refused or equal; 15,000 with mutated entries and right checksums are refused or plain data."""
    rng = random.Random(0)
    fast = Path("/dev/shm") / f"structpred-{os.getpid()}.spz" if os.path.isdir("/dev/shm") else path
    original = bundle()
    with zipfile.ZipFile(io.BytesIO(good)) as file:
        parts = [file.read(name) for name in archive.CONTENT]
    loaded = 0
    tracemalloc.start()
    try:
        for i in range(15_000):
            data = rng.choice(MUTATIONS)(good, rng)
            result = attempt(fast, data, guard)
            assert result is None or (data == good and same(result, original)), f"file {i}"
            mutated = list(parts)
            which = rng.randrange(3)
            mutated[which] = rng.choice([*MUTATIONS, reworded, reworded])(parts[which], rng)
            loaded += attempt(fast, signed(*mutated), guard) is not None
        assert tracemalloc.get_traced_memory()[1] < ALLOWANCE
    finally:
        tracemalloc.stop()
        if fast != path:
            fast.unlink(missing_ok=True)
    assert loaded > 25  # harmless changes of values do load: the checks behind the checksums were reached
