"""`structpred export`: the program writes, byte for byte, what `structpred predict` writes."""

import gzip
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Here = Callable[..., tuple[int, str, str]]


def exported(here: Here, model: str, cwd: Path) -> Any:
    """The names of the exported program of a model."""
    code, out, err = here("export", model, "-o", str(cwd / "light.py"), cwd=cwd)
    assert (code, out) == (0, ""), err
    assert "light.npz" in err
    return runpy.run_path(str(cwd / "light.py"))


def test_column_files_come_back_as_predict_writes_them(here: Here, corpus: Path, tmp_path: Path) -> None:
    """With and without labels, spaces or tabs, blank lines of any kind, CRLF, no end of the last line, and gzip."""
    program = exported(here, str(corpus / "chunk.spz"), tmp_path)
    text = (corpus / "test.txt").read_text()
    bare = "\n".join(line.rpartition(" ")[0] for line in text.split("\n"))
    tabs = text.replace(" ", "\t").replace("\n", "\r\n")
    for k, content in enumerate((text, bare, tabs, f"\n\n  {text.rstrip()}", f"{text}\n \n")):
        path = tmp_path / f"{k}.txt"
        path.write_bytes(gzip.compress(content.encode()) if k == 1 else content.encode())
        code, out, _ = here("predict", str(corpus / "chunk.spz"), path.name, "-o", "found.txt", cwd=tmp_path)
        assert (code, out) == (0, "")
        assert program["predict_file"](str(path)).encode() == (tmp_path / "found.txt").read_bytes()
    for text in ("The cat sat\n", "The cat sat\nThe dog ran\n"):
        (tmp_path / "text.txt").write_text(text)
        with pytest.raises(program["PredictorError"], match=r"text.txt:1: .* as a label, which the model does not have"):
            program["predict_file"](str(tmp_path / "text.txt"))
        assert here("predict", str(corpus / "chunk.spz"), "text.txt", cwd=tmp_path)[0] == 1
    (tmp_path / "bad.txt").write_text("the DT B-NP\ncat NN B-NP more\n")
    with pytest.raises(program["PredictorError"], match=r"bad.txt:2: expected 3 columns, got 4: 'cat NN B-NP more'"):
        program["predict_file"](str(tmp_path / "bad.txt"))


def test_files_of_another_kind_are_named(here: Here, corpus: Path, tmp_path: Path) -> None:
    """A program says what a file looks like that it cannot read: CSV, a treebank, running text, one that is no text."""
    program = exported(here, str(corpus / "chunk.spz"), tmp_path)
    for content, message in (
        (b"the,DT,B-NP\ncat,NN,I-NP\n", "got 1: 'the,DT,B-NP'; this looks like CSV"),
        (b"1\tno\tno\tINTJ\t_\t_\t0\troot\t_\t_\n", "this looks like a treebank"),
        (b"The old cat sees birds .\nDogs like the tree .\n", "this looks like running text: one token per line"),
        (b"the DT B-NP\n\x00\xe2\x01\n", "bad.txt:2: expected UTF-8 text, got the byte 0xe2 .*; this is no text file"),
        ("café NN B-NP\n".encode("latin-1"), "bad.txt:1: expected UTF-8 text, got the byte 0xe9 .*; save it as UTF-8"),
    ):
        (tmp_path / "bad.txt").write_bytes(content)
        with pytest.raises(program["PredictorError"], match=message):
            program["predict_file"](str(tmp_path / "bad.txt"))
    with pytest.raises(program["PredictorError"], match=r"expected a row of columns .*got the string 'the'"):
        program["predict"]([["the", "cat"]])


@pytest.mark.parametrize(
    ("data", "options"),
    [("crf", ("--format", "crfsuite")), ("crf", ("--format", "crfsuite", "--n-bits", "6")), ("data", ("--format", "ocr"))],
)
def test_other_formats_of_sequences(here: Here, corpus: Path, tmp_path: Path, data: str, options: tuple[str, ...]) -> None:
    """CRFsuite text, also hashed, and OCR letters; columns in place of attributes are refused by both."""
    command = ("train", "chain", str(corpus / f"train.{data}"), *options, "--trainer", "sgd", "--max-iter", "2", "-o", "m.spz")
    assert here(*command, cwd=tmp_path)[0] == 0
    program, test = exported(here, "m.spz", tmp_path), str(corpus / f"test.{data}")
    assert program["predict_file"](test) == here("predict", "m.spz", test, cwd=tmp_path)[1]
    (tmp_path / "columns.txt").write_text("the DT\ncat NN\n")
    with pytest.raises(program["PredictorError"], match="no line has an attribute" if data == "crf" else "expected 134 columns"):
        program["predict_file"](str(tmp_path / "columns.txt"))
    assert here("predict", "m.spz", "columns.txt", cwd=tmp_path)[0] == 1


@pytest.mark.parametrize("train", ["weather-train.arff", "train.svm", "train.npz", "tree-train.arff"])
def test_label_sets(here: Here, labelled: Path, tmp_path: Path, train: str) -> None:
    """ARFF of Mulan with and without labels, CLUS, LIBSVM's text and npz."""
    assert here("train", "multilabel", str(labelled / train), "--max-iter", "3", "-o", "m.spz", cwd=tmp_path)[0] == 0
    program = exported(here, "m.spz", tmp_path)
    for test in (train.replace("train", "test"), *(["bare.arff"] if train.startswith("weather") else [])):
        path = str(labelled / test)
        assert program["predict_file"](path) == here("predict", "m.spz", path, cwd=tmp_path)[1]


def test_arff_in_all_its_forms(here: Here, tmp_path: Path) -> None:
    """Nominal values that are numbers or words, quotes, sparse rows that leave values out, comments."""
    (tmp_path / "a.arff").write_text(
        "% all kinds\n@RELATION 'a b'\n@ATTRIBUTE 'x, y' REAL\n@attribute n {2, 5}\n@attribute\tw {red,'its', \"deep blue\"}\n"
        "@attribute k {0,1,2}\n@attribute l1 {0,1}\n@attribute 'l 2' {0,1}\n@DATA\n"
        "1.5,5,red,0,1,0\n-2,2,'deep blue',2,0,1\n\n% more\n{0 3.5, 2 'deep blue', 4 1}\n{1 5,5 1}\n{}\n"
    )
    assert here("train", "multilabel", "a.arff", "--labels", "2", "--max-iter", "3", "-o", "m.spz", cwd=tmp_path)[0] == 0
    program = exported(here, "m.spz", tmp_path)
    assert program["predict_file"](str(tmp_path / "a.arff")) == here("predict", "m.spz", "a.arff", cwd=tmp_path)[1]
    text = (tmp_path / "a.arff").read_text()
    for bad, message in (
        (text.replace("1.5,", "?,"), "b.arff:10: attribute 'x, y': missing value \\(\\?\\)"),
        (text.replace("1.5,", ""), "b.arff:10: expected 6 values, one per attribute, got 5"),
        (text.replace("'x, y'", "z"), "b.arff: feature 0 is 'z', but 'x, y' in the training data"),
        (text.replace("{2, 5}", "{2, 5, x}"), "b.arff: expected the 6 features of training, got 8"),
    ):
        (tmp_path / "b.arff").write_text(bad)
        with pytest.raises(program["PredictorError"], match=message):
            program["predict_file"](str(tmp_path / "b.arff"))


def test_parsers_are_refused(here: Here, treebanks: Path, tmp_path: Path) -> None:
    """One line says what cannot be exported and what can; nothing is written."""
    code, _, err = here("export", str(treebanks / "p.spz"), "-o", "light.py", cwd=tmp_path)
    assert code == 2
    assert "error: a DependencyParser cannot be exported; light programs are written for ChainLabeler" in err
    assert list(tmp_path.iterdir()) == []
