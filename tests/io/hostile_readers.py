"""Every reader with sound files to begin with, and mutations that know what files are made of: lines, fields, numbers."""

import gzip
import io
import os
import random
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from treebank_samples import SAMPLES

from structpred.data.hierarchy import LabelHierarchy
from structpred.io import (
    ColumnCorpus,
    MultiLabelData,
    Treebank,
    read_clus,
    read_columns,
    read_crfsuite,
    read_label_xml,
    read_libsvm_multilabel,
    read_mulan,
    read_npz_multilabel,
    read_ocr,
    read_template,
    read_treebank,
    read_uai,
    read_uai_evidence,
)
from structpred.io.jsonl import parse_jsonl
from structpred.io.multilabel.by_format import label_format, with_hierarchy
from structpred.io.templates.arc_template_sets import read_arc_templates
from structpred.io.templates.resources import read_resource
from structpred.io.templates.vectors import read_vectors
from structpred.io.text import read_text
from structpred.io.validation.columns import validate
from structpred.io.validation.treebanks import validate_trees

#: inputs a reader in the slow tests; CONTRIBUTING.md tells how to run more
FUZZ = int(os.environ.get("STRUCTPRED_FUZZ", "1000"))

ARFF = b"@relation r\n@attribute 'a b' numeric\n@attribute c {x,'y z'}\n@attribute l1 {0,1}\n@attribute l2 {1,0}\n@data\n" \
    b"1.5,'y z',1,0\n% c\n{0 2,1 x, 2 1}\n-1e3,x,0,1\n"  # fmt: skip
CLUS = b"@RELATION h\n@ATTRIBUTE x numeric\n@ATTRIBUTE class hierarchical 1,1/2,1/2/3,4\n@DATA\n0.5,1/2@4\n{0 1,1 1/2/3}\n"
DAG = CLUS.replace(b"1,1/2,1/2/3,4", b"root/1,root/4,1/2,4/2").replace(b"1/2@4", b"2@4").replace(b"1/2/3", b"2")
XML = b"<?xml version='1.0' encoding='utf-8'?>\n<labels xmlns='m'>\n<label name='l1'><label name='l2'/></label></labels>"
LIBSVM = b"1,2 1:0.5 3:1e2\n 2:1\n3\n# c\n1:4 2:5\n"
OCR = "".join(f"{k}\t{c}\t{n}\t1\t{k}\t0\t" + "\t".join("01" * 64) + "\n" for k, c, n in ((1, "a", 2), (2, "b", -1))).encode()
UAI = b"MARKOV\n3\n2 3 2\n4\n1 0\n2 0 1\n2 2 1\n0\n\n2\n0.5 2\n6\n1 2 3 4 5 6\n6\n1 1 0 2 2 2\n1\n7\n"
COLUMNS = b"the DT B-NP\ncat NN I-NP\r\n\nso\tRB  O\n"
JSONL = b'{"tokens": ["a", "b"], "tags": ["O", "B-X"]}\n\n{"text": "a bc", "entities": [[2, 4, "X"]]}\n'
CRFSUITE = b"B-NP\tw=the\tn:0.5\nO\tw\\:x\t\\\\:2\t\r\n\nI\tw=cat:1e3"


def npz() -> bytes:
    """An npz file with all arrays."""
    buffer = io.BytesIO()
    csr = {"X_data": [1.0, 2.0], "X_indices": [0, 1], "X_indptr": [0, 1, 2], "X_shape": [2, 2]}
    np.savez(buffer, **csr, Y=[[0, 1], [1, 1]], label_names=["a", "b"], hierarchy=[[1, 0]])  # type: ignore[arg-type]
    return buffer.getvalue()


def _hierarchy(path: Path) -> MultiLabelData:
    X = np.zeros((2, 1))
    return with_hierarchy(MultiLabelData(X, np.zeros((2, 4), np.uint8), ["a", "b", "c", "d e"], ["x"]), str(path))


def _sniffed(path: Path) -> Any:
    return label_format(str(path), None)


#: name -> (sound files, what reads them)
READERS: dict[str, tuple[list[bytes], Callable[[Path], Any]]] = {
    "columns": ([COLUMNS], read_columns),
    "tabs": ([b"New York\tNNP\tB\n\nin\tIN\tO\r\n  \n"], lambda path: read_columns(path, tabs=True)),
    "crfsuite": ([CRFSUITE], read_crfsuite),
    "jsonl": ([JSONL], lambda path: parse_jsonl(read_text(path), str(path))),
    "ocr": ([OCR], read_ocr),
    "vectors": ([b"2 2\nthe 1 2\ncat 0.5 -1\n", b"the 1e-3\ncat 2\n"], lambda path: read_vectors(str(path))),
    "template": ([b"# c\nU00:%x[-1,0]/%x[0,1]\n\nU\nB\n"], read_template),
    "phrases": ([b"New York\tLOC\nYork\n\nNew  York\tORG\n"], lambda path: str(read_resource(str(path)).phrases)),
    "classes": ([b"0110\tthe\t3\n01\ta\n"], lambda path: str(read_resource(str(path)).classes)),
    "arc templates": (
        [b"h.upos m.upos | distance direction\n# c\nm.form |\nh.lemma+1\n"],
        lambda path: read_arc_templates(str(path)),
    ),
    "treebank": ([text.encode() for text in SAMPLES.values()], read_treebank),
    "heads as they come": ([text.encode() for text in SAMPLES.values()], lambda path: read_treebank(path, check_trees=False)),
    "validate treebank": ([text.encode() for text in SAMPLES.values()], lambda path: str(validate_trees(path))),
    "validate columns": ([COLUMNS], lambda path: str(validate(path, "columns"))),
    "validate crfsuite": ([CRFSUITE], lambda path: str(validate(path, "crfsuite"))),
    "validate ocr": ([OCR], lambda path: str(validate(path, "ocr"))),
    "uai": ([UAI, b"BAYES\n2\n2 2\n2\n1 0\n2 0 1\n2\n.4 .6\n4\n.1 .9 .5 .5\n", b"MARKOV 1 1 0"], read_uai),
    "evidence": ([b"2 0 1 2 0", b"1\n1 0 1\n"], read_uai_evidence),
    "arff": ([ARFF], lambda path: read_mulan(path, ["l1", "l2"])),
    "arff, last two": ([ARFF], lambda path: read_mulan(path, 2)),
    "clus": ([CLUS], read_clus),
    "clus, a graph": ([DAG], lambda path: read_clus(path, dag=True)),
    "label xml": ([XML], read_label_xml),
    "libsvm": ([LIBSVM], read_libsvm_multilabel),
    "npz": ([npz()], read_npz_multilabel),
    "hierarchy": ([b"# tree\na\tb\nb\td e\na\tc\n", b"a b\nb c\n"], _hierarchy),
    "which format": ([ARFF, CLUS, LIBSVM], _sniffed),
}

_NUMBERS = [
    b"0", b"1", b"-1", b"2147483648", b"99999999999999999999", b"1e999", b"1e-400", b"nan", b"inf", b"1_0", b"0x1", b"-0.0",
    b"9" * 400, b"+1", b"01", "\u0661".encode(),
]  # fmt: skip
_SIGNS = [
    b"\n", b"\r", b"\r\n", b"\n\n", b" ", b"\t", b",", b":", b";", b"|", b"/", b"\\", b"'", b'"', b"{", b"}", b"[", b"]", b"<",
    b">", b"&x;", b"#", b"%", b"@", b"?", b"_", b"-", b".", b"\0", b"\xff", b"\xc3\xa9", b"\xef\xbb\xbf", b"\xe2\x80\xa8",
    b"\xc2\x85", b"\x1c", b"\x0b", b"\xf0\x9f\x98\x80", b"\x1f\x8b", b"PK\x03\x04",
]  # fmt: skip
_WORDS = [
    b"@data", b"@attribute ", b"numeric", b"hierarchical ", b"root/", b"<label name='l1'>", b"</label>", b"<!DOCTYPE a>", b"U",
    b"B", b"%x[0,0]", b"%x[-99999,1]", b"1-2", b"2.1", b"MARKOV", b"h.upos", b"x" * 300,
]  # fmt: skip
_PIECES = [*_NUMBERS, *_SIGNS, *_WORDS, b""]
_FIELD = re.compile(rb"[^ \t\n,:|/@]+")
_NUMBER = re.compile(rb"[0-9]+")


def mutated(rng: random.Random, data: bytes) -> bytes:
    """The file with one to four changes to its bytes, fields, numbers or lines; now and then packed, perhaps damaged.

    An archive mostly gets changes inside its members, with checksums made right again.
    """
    if data.startswith(b"PK") and rng.random() < 0.8:
        return _archive(rng, data)
    for _ in range(rng.randint(1, 4)):
        data = rng.choice((_bytes, _field, _number, _lines))(rng, data)
    if rng.random() < 0.03:
        data = gzip.compress(data, mtime=0)
        data = data if rng.random() < 0.5 else _bytes(rng, data)
    return data


def _bytes(rng: random.Random, data: bytes) -> bytes:
    at = rng.randint(0, len(data))
    kind = rng.randrange(4)
    if kind == 0:
        return data[:at] + data[at + rng.randint(1, 12) :]
    if kind == 1:
        return data[:at] + rng.choice(_PIECES) + data[at:]
    if kind == 2:
        return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
    start = rng.randint(0, len(data))
    return data[:at] + data[start : start + rng.randint(1, 40)] + data[at:]


def _archive(rng: random.Random, data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(list(members))
    if rng.random() < 0.2:
        members[rng.choice([*members, "Y.npy", "X.npy"])] = members.pop(name)
    else:
        members[name] = rng.choice((_bytes, _number, _field))(rng, members[name])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _replaced(rng: random.Random, data: bytes, pattern: re.Pattern[bytes], by: list[bytes]) -> bytes:
    places = [match.span() for match in pattern.finditer(data)]
    if not places:
        return _bytes(rng, data)
    start, end = rng.choice(places)
    return data[:start] + rng.choice(by) + data[end:]


def _field(rng: random.Random, data: bytes) -> bytes:
    others = _FIELD.findall(data)
    return _replaced(rng, data, _FIELD, [rng.choice(_PIECES), rng.choice(others or [b"x"])])


def _number(rng: random.Random, data: bytes) -> bytes:
    return _replaced(rng, data, _NUMBER, _NUMBERS)


def _lines(rng: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(4)
    if kind == 0:
        del lines[one]
    elif kind == 1:
        lines.insert(one, lines[other])
    elif kind == 2:
        lines[one], lines[other] = lines[other], lines[one]
    else:
        lines[one] += rng.choice((b" ", b"\t", b"\r", b",", b"")) + lines[other]
    return b"\n".join(lines)


def check(found: Any) -> None:
    """Raise AssertionError where what was read does not hold together."""
    if isinstance(found, ColumnCorpus):
        assert [len(s) for s in found.sentences()] == found.lengths.tolist()
        assert found.lengths.min() > 0
    elif isinstance(found, Treebank):
        assert len(found.forms) == len(found.heads) == len(found.labels) == int(found.offsets[-1])
        assert found.bounds[-1] == len(found.raw)
    elif isinstance(found, dict) and found and isinstance(next(iter(found)), str):  # of a label XML
        assert all(name and line > 0 and (parent is None or parent in found) for name, (parent, line) in found.items())
    elif isinstance(found, MultiLabelData):
        assert found.X.shape == (len(found), len(found.feature_names))
        assert found.Y.shape == (len(found), len(found.label_names))
        assert set(np.unique(found.Y).tolist()) <= {0, 1}
        if sparse.issparse(found.X):
            assert np.isfinite(found.X.data).all()
            found.X.check_format(full_check=True)
        assert found.hierarchy is None or isinstance(found.hierarchy, LabelHierarchy)
        assert found.hierarchy is None or found.hierarchy.broken(found.Y) is None
