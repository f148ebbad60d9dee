"""Any bytes, given to the readers of multi-label files: data that hold together, or DataError; never another error."""

import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structpred.errors import DataError
from structpred.io.clus import read_clus
from structpred.io.mulan import read_label_xml, read_mulan
from structpred.io.multilabel import MultiLabelData, read_libsvm_multilabel, read_npz_multilabel

ARFF = b"@relation r\n@attribute 'a b' numeric\n@attribute c {x,'y z'}\n@attribute l1 {0,1}\n@attribute l2 {1,0}\n@data\n" \
    b"1.5,'y z',1,0\n% c\n{0 2,1 x, 2 1}\n-1e3,x,0,1\n"  # fmt: skip
CLUS = b"@RELATION h\n@ATTRIBUTE x numeric\n@ATTRIBUTE class hierarchical 1,1/2,1/2/3,4\n@DATA\n0.5,1/2@4\n{0 1,1 1/2/3}\n"
DAG = CLUS.replace(b"1,1/2,1/2/3,4", b"root/1,root/4,1/2,4/2").replace(b"1/2@4", b"2@4").replace(b"1/2/3", b"2")
XML = b"<?xml version='1.0' encoding='utf-8'?>\n<labels xmlns='m'>\n<label name='l1'><label name='l2'/></label></labels>"
LIBSVM = b"1,2 1:0.5 3:1e2\n 2:1\n3\n# c\n1:4 2:5\n"


def npz() -> bytes:
    """An npz file with all arrays."""
    buffer = io.BytesIO()
    csr = {"X_data": [1.0, 2.0], "X_indices": [0, 1], "X_indptr": [0, 1, 2], "X_shape": [2, 2]}
    np.savez(buffer, **csr, Y=[[0, 1], [1, 1]], label_names=["a", "b"], hierarchy=[[1, 0]])  # type: ignore[arg-type]
    return buffer.getvalue()


READERS: dict[str, tuple[bytes, Callable[[Path], Any]]] = {
    "arff": (ARFF, lambda path: read_mulan(path, ["l1", "l2"])),
    "count": (ARFF, lambda path: read_mulan(path, 2)),
    "clus": (CLUS, read_clus),
    "dag": (DAG, lambda path: read_clus(path, dag=True)),
    "xml": (XML, read_label_xml),
    "libsvm": (LIBSVM, read_libsvm_multilabel),
    "npz": (npz(), read_npz_multilabel),
}
PIECES = [
    b"\n", b"\r", b" ", b"\t", b",", b"{", b"}", b"'", b'"', b"\\", b"%", b"?", b"@", b"/", b"@data", b"@attribute ", b"numeric",
    b"hierarchical ", b"0", b"1", b"-1", b"99999999999999999999", b"nan", b"inf", b"1e999", b"1_0", b"\0", b"\xff", b"\xc3\xa9",
    b"\xef\xbb\xbf", b"<", b">", b"<label name='l1'>", b"</label>", b"&x;", b"<!DOCTYPE a>", b":", b"#", b"root/",
]  # fmt: skip


def mutated(rng: np.random.Generator, seed: bytes) -> bytes:
    """The bytes with some cut out, some put in, some changed; now and then packed or cut short."""
    data = bytearray(seed)
    for _ in range(int(rng.integers(1, 6))):
        at = int(rng.integers(0, len(data) + 1))
        kind = rng.integers(4)
        if kind == 0:
            del data[at : at + int(rng.integers(1, 10))]
        elif kind == 1:
            data[at:at] = PIECES[rng.integers(len(PIECES))]
        elif kind == 2 and data:
            data[min(at, len(data) - 1)] = int(rng.integers(256))
        else:
            start = int(rng.integers(0, len(data) + 1))
            data[at:at] = data[start : start + int(rng.integers(1, 30))]
    if rng.random() < 0.05:
        packed = gzip.compress(bytes(data))
        return packed if rng.random() < 0.5 else packed[: int(rng.integers(len(packed)))]
    return bytes(data)


def check(found: Any) -> None:
    """Data that were read hold together."""
    if isinstance(found, dict):
        assert all(name and line > 0 and (parent is None or parent in found) for name, (parent, line) in found.items())
        return
    assert isinstance(found, MultiLabelData)
    assert found.X.shape == (len(found), len(found.feature_names))
    assert found.Y.shape == (len(found), len(found.label_names))
    assert found.Y.dtype == np.uint8
    assert set(np.unique(found.Y).tolist()) <= {0, 1}
    assert np.isfinite(found.X.data).all()
    found.X.check_format(full_check=True)
    assert found.hierarchy is None or found.hierarchy.broken(found.Y) is None


def run(tmp_path: Path, name: str, times: int) -> None:
    """Read so many mutations; each gives data that hold together, or DataError with the file's name."""
    seed, reader = READERS[name]
    path = tmp_path / "hostile"
    path.write_bytes(seed)
    check(reader(path))
    rng = np.random.default_rng(1)
    sound = 0
    for _ in range(times):
        path.write_bytes(mutated(rng, seed))
        problem = None
        try:
            check(reader(path))
        except DataError as error:
            problem = str(error)
        assert problem is None or "hostile" in problem
        sound += problem is None
    assert 0 < sound < times


@pytest.mark.parametrize("name", READERS)
def test_any_bytes(tmp_path: Path, name: str) -> None:
    """Three hundred mutations of a sound file."""
    run(tmp_path, name, 300)


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_very_many_bytes(tmp_path: Path, name: str) -> None:
    """Twenty thousand mutations of a sound file."""
    run(tmp_path, name, 20_000)
