"""Promises of what is opened: packed data stop at a limit, and other encodings come out as UTF-8."""

import gzip
import io
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile_readers import READERS

from structpred.errors import DataError, ParameterError
from structpred.io import (
    read_columns,
    read_crfsuite,
    read_libsvm_multilabel,
    read_mulan,
    read_npz_multilabel,
    read_text,
    read_treebank,
    stream_treebank,
    validate_treebank,
)
from structpred.io.multilabel.by_format import label_format
from structpred.io.opening import LIMIT_VARIABLE, MAX_UNPACKED

# two hundred members, each a line of half a megabyte: 100 MB in 100 kB
BOMB = gzip.compress(b"#" + b"a" * (1 << 19) + b"\n", mtime=0) * 200


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in READERS if name not in ("npz", "which format")])
def test_every_reader_stops_at_the_limit(name: str, tmp_path: Path) -> None:
    """A packed file that unpacks to a thousand times its size is refused, naming the file, the limit and what to do."""
    path = tmp_path / "bomb.gz"
    path.write_bytes(BOMB)
    with pytest.raises(DataError, match=rf"bomb\.gz: .*more than the limit of {MAX_UNPACKED:,} bytes.*{LIMIT_VARIABLE}"):
        READERS[name][1](path)


def test_a_format_is_recognised_by_the_beginning_alone(tmp_path: Path) -> None:
    """However much a packed file unpacks to, no more than the longest line is looked at."""
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"@relation x\n" + b"%" * 1000, mtime=0) + BOMB)
    tracemalloc.start()
    assert label_format(str(path), None) == "arff"
    assert tracemalloc.get_traced_memory()[1] < 100 << 20
    tracemalloc.stop()


@pytest.mark.slow
def test_the_limit_can_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment variable lowers and raises the limit; what is no number in it is refused."""
    path = tmp_path / "a.gz"
    path.write_bytes(BOMB)
    monkeypatch.setenv(LIMIT_VARIABLE, str(200 << 20))
    assert len(read_text(path)) > 100 << 20
    path.write_bytes(gzip.compress(b"a b\n"))
    monkeypatch.setenv(LIMIT_VARIABLE, "4")
    assert read_text(path) == "a b\n"
    monkeypatch.setenv(LIMIT_VARIABLE, "3")
    with pytest.raises(DataError, match="the limit of 3 bytes"):
        read_text(path)
    monkeypatch.setenv(LIMIT_VARIABLE, "3 GB")
    with pytest.raises(ParameterError, match=LIMIT_VARIABLE):
        read_text(path)


def test_what_is_unpacked_before_the_limit_is_little(tmp_path: Path) -> None:
    """A bomb of gigabytes costs no more memory than the limit allows: a thousand members are never unpacked."""
    unpacked = 0

    class Counting(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            nonlocal unpacked
            data = super().read(size)
            unpacked += len(data)
            return data

    with pytest.raises(DataError, match="limit"):
        read_treebank(Counting(BOMB * 10))
    assert unpacked < len(BOMB) * 5


@pytest.mark.slow
def test_npz_files_have_the_same_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of an archive that would unpack to more than the limit are refused before they are unpacked."""
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, X=np.zeros((200_000, 50)), Y=np.zeros((200_000, 2), np.uint8))
    with pytest.raises(DataError, match=rf"bomb\.npz: .*{LIMIT_VARIABLE}"):
        read_npz_multilabel(path)


TREEBANK = "# für\n1\tcafé\tcafé\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
ARFF = "@relation r\n@attribute 'größe' numeric\n@attribute é {0,1}\n@data\n1,1\n"
ENCODED: dict[str, tuple[str, Callable[..., Any], Callable[[Any], Any]]] = {
    "text": ("é\n", read_text, lambda found: found),
    "columns": ("é B\n", read_columns, lambda found: found.column(0)),
    "crfsuite": ("B\té:2\n", read_crfsuite, lambda found: found.attributes),
    "treebank": (TREEBANK, read_treebank, lambda found: (found.forms, found.raw)),
    "stream": (TREEBANK, lambda path, **k: list(stream_treebank(path, **k)), lambda found: found[0].forms),
    "validate": (TREEBANK, validate_treebank, lambda found: [problem.message for problem in found]),
    "arff": (ARFF, lambda path, **k: read_mulan(path, ["é"], **k), lambda found: found.feature_names),
    "libsvm": ("é 1:2\n", read_libsvm_multilabel, lambda found: found.label_names),
}


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-8-sig"])
@pytest.mark.parametrize("name", ENCODED)
def test_other_encodings(name: str, encoding: str, tmp_path: Path) -> None:
    """A file in another encoding gives what the same file in UTF-8 gives, packed or not."""
    text, read, shown = ENCODED[name]
    plain, other = tmp_path / "plain", tmp_path / "other"
    plain.write_text(text, encoding="utf-8")
    expected = shown(read(plain))
    other.write_bytes(text.encode(encoding))
    assert shown(read(other, encoding=encoding)) == expected
    other.write_bytes(gzip.compress(text.encode(encoding)))
    assert shown(read(other, encoding=encoding)) == expected


def test_text_that_is_not_in_the_encoding(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are answered with the option that names another encoding; so are bytes not of that one."""
    path = tmp_path / "a.txt"
    path.write_bytes("ok\ncafé\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"a\.txt:2: expected UTF-8 text, got the byte 0xe9.*--encoding latin-1"):
        read_text(path)
    path.write_bytes(b"a\x81\n")
    with pytest.raises(DataError, match=r"a\.txt: in line 1 .*expected cp1252 text"):
        read_text(path, "cp1252")


@pytest.mark.parametrize("encoding", ["latin-99", "base64", "undefined", "", "a\0b"])
def test_an_unknown_encoding(encoding: str, tmp_path: Path) -> None:
    """What is no encoding of text is a wrong setting, whatever the file."""
    with pytest.raises(ParameterError, match="encoding: expected the name of a text encoding"):
        read_text(tmp_path / "missing", encoding)
