"""Promises of the multi-label commands on bad input: exit code, one line that names the place, no traceback, nothing written."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from label_helpers import arff_text, clus_text, examples, libsvm_text, xml_text

Here = Callable[..., tuple[int, str, str]]

TRAIN = ("train", "multilabel", "-o", "m.spz")
GOOD, MODEL, TEST = "{l}/weather-train.arff", "{l}/m.spz", "{l}/weather-test.arff"

# what is wrong -> (arguments, exit code, what the message says); {l} is the folder of good data, {c} that of sequences
USAGE = {
    "no data": (TRAIN, 2, "Missing argument 'TRAIN'"),
    "no output": (("train", "multilabel", GOOD), 2, "--output"),
    "unknown trainer": ((*TRAIN, GOOD, "--trainer", "adam"), 2, "bcfw"),
    "unknown format": ((*TRAIN, GOOD, "--format", "csv"), 2, "'libsvm'"),
    "unknown surrogate": ((*TRAIN, GOOD, "--surrogate", "hinge"), 2, "'slack'"),
    "surrogate of another trainer": ((*TRAIN, GOOD, "--trainer", "oeg", "--surrogate", "slack"), 2, "OnlineEG cannot minimise"),
    "C is no number": ((*TRAIN, GOOD, "-C", "nan"), 2, "finite"),
    "C is zero": ((*TRAIN, GOOD, "-C", "0"), 2, "--C"),
    "edges of no kind": ((*TRAIN, GOOD, "--edges", "some"), 2, "expected complete, tree, none or a number"),
    "edges and a hierarchy": (
        (*TRAIN, GOOD, "--edges", "tree", "--hierarchy", "{l}/edges.txt"),
        2,
        "--edges cannot be combined with --hierarchy",
    ),
    "edges of a tree": ((*TRAIN, "{l}/tree-train.arff", "--edges", "tree"), 2, "brings its own edges"),
    "a requirement without a hierarchy": ((*TRAIN, GOOD, "--require", "leaf"), 2, "is for labels with a hierarchy"),
    "rows that are no paths": (
        (*TRAIN, GOOD, "--hierarchy", "{l}/edges.txt", "--require", "path"),
        1,
        "require='path' expects one path from a root to a leaf, got the labels",
    ),
    "label weights without a hierarchy": ((*TRAIN, GOOD, "--label-weights", "depth"), 2, "is for labels with a hierarchy"),
    "patience without dev": ((*TRAIN, GOOD, "--patience", "2"), 2, "--dev"),
    "strict without tol": ((*TRAIN, GOOD, "--strict", "--tol", "0"), 2, "--strict needs --tol"),
    "strict without a certificate": ((*TRAIN, GOOD, "--strict", "--trainer", "mira"), 2, "needs a trainer with a certificate"),
    "model to stdout": (("train", "multilabel", GOOD, "-o", "-"), 2, "must be a file"),
    "two streams": ((*TRAIN, "-", "--dev", "-"), 2, "standard input"),
    "a stream of unknown format": ((*TRAIN, "-"), 2, "need --format"),
    "labels of another format": ((*TRAIN, "{l}/train.svm", "--labels", "{l}/weather.xml"), 2, "libsvm says so itself"),
    "numbers of features in ARFF": ((*TRAIN, GOOD, "--zero-based"), 2, "--zero-based is for"),
    "more labels than attributes": ((*TRAIN, GOOD, "--labels", "9"), 2, "expected from 1 to 8"),
    "config key": ((*TRAIN, GOOD, "--config", "bad.toml"), 2, "did you mean 'edges'"),
    "folds of sets": (("predict", MODEL, TEST, "--folds", "1"), 2, "--folds is not for multi-label models"),
    "k best sets": (("predict", MODEL, TEST, "--json", "--kbest", "2"), 2, "--kbest is not for multi-label models"),
    "marginals of a margin": (
        ("predict", MODEL, TEST, "--json", "--marginals"),
        2,
        "oeg, or without probabilities: --json alone",
    ),
    "format of a treebank": (("predict", MODEL, TEST, "--format", "conllu"), 2, "multi-label data: --format must be"),
    "rules of sets": (("evaluate", MODEL, TEST, "--rules", "ud"), 2, "--rules is not for multi-label models"),
    "confusion of sets": (("evaluate", MODEL, TEST, "--confusion", "c.png"), 2, "--confusion is not for multi-label models"),
    "picture of sets": (("inspect", MODEL, "--picture", "p.png"), 2, "--picture is not for multi-label models"),
    "label that is none": (("inspect", MODEL, "--label", "snow"), 2, "there is no label 'snow'"),
    "arff of a chain": (("predict", "{c}/chunk.spz", "{c}/test.txt", "--format", "arff"), 2, "another kind of data"),
}
FILES = {
    "train missing": ((*TRAIN, "none.arff"), 1, "none.arff: there is no such file"),
    "dev missing": ((*TRAIN, GOOD, "--dev", "none.arff"), 1, "--dev none.arff: there is no such file"),
    "labels missing": ((*TRAIN, GOOD, "--labels", "none.xml"), 1, "none.xml: there is no such file"),
    "no labels beside": ((*TRAIN, "alone.arff"), 1, "There is no alone.xml (.gz) next to it; give --labels"),
    "wrong label name": ((*TRAIN, "wrong.arff"), 1, "wrong.xml:4: the label 'snow' is not an attribute of wrong.arff"),
    "no XML": ((*TRAIN, "alone.arff", "--labels", "alone.arff"), 1, "alone.arff:1: expected XML"),
    "label with three values": (
        (*TRAIN, "three.arff", "--labels", "xml.xml"),
        1,
        "three.arff:7: label 'sun': expected the values 0",
    ),
    "NaN": ((*TRAIN, "nan.arff", "--labels", "4"), 1, "nan.arff:12: "),
    "infinite": ((*TRAIN, "inf.svm"), 1, "inf.svm:2: expected a finite value"),
    "missing value": ((*TRAIN, "gap.arff", "--labels", "4"), 1, "gap.arff:13: "),
    "short row": ((*TRAIN, "short.arff", "--labels", "4"), 1, "short.arff:12: "),
    "no rows": ((*TRAIN, "empty.arff", "--labels", "4"), 1, "expected at least one row after @data"),
    "empty file": ((*TRAIN, "empty.svm"), 1, "empty.svm: expected at least one example, got none"),
    "not UTF-8": ((*TRAIN, "latin.svm"), 1, "latin.svm:1: expected UTF-8"),
    "damaged gzip": ((*TRAIN, "cut.arff.gz", "--labels", "4"), 1, "cut.arff.gz: damaged or truncated gzip data"),
    "damaged npz": ((*TRAIN, "bad.npz"), 1, "bad.npz: expected an npz file"),
    "pickles": ((*TRAIN, "pickle.npz"), 1, "pickle.npz: "),
    "NaN in npz": ((*TRAIN, "nan.npz"), 1, "nan.npz: X has values that are not finite"),
    "Y with a two": ((*TRAIN, "two.npz"), 1, "two.npz: expected Y as a 2-d array of 0 and 1"),
    "a tree with a cycle": (
        (*TRAIN, GOOD, "--hierarchy", "cycle.txt"),
        1,
        "cycle.txt: the hierarchy of labels has a cycle: 'sun' -> 'rain' -> ",
    ),
    "its own parent": ((*TRAIN, GOOD, "--hierarchy", "own.txt"), 1, "makes label 'rain' its own parent"),
    "edge of an unknown label": ((*TRAIN, GOOD, "--hierarchy", "snow.txt"), 1, "has no label 'snow'"),
    "edge of three labels": ((*TRAIN, GOOD, "--hierarchy", "three.txt"), 1, "three.txt:1: expected a parent and a child"),
    "edge twice": ((*TRAIN, GOOD, "--hierarchy", "twice.txt"), 1, "twice.txt:2: duplicate edge, first given on line 1"),
    "a graph with a cycle": ((*TRAIN, "dag.arff", "--format", "clus-dag"), 1, "dag.arff:7: the hierarchy of labels has a cycle"),
    "undeclared path": ((*TRAIN, "path.arff"), 1, "path.arff:9: the label '3/1' is not declared in line 7"),
    "output folder missing": (("train", "multilabel", GOOD, "-o", "no/m.spz"), 1, "the folder no does not exist"),
    "output is the input": (("train", "multilabel", "nan.arff", "-o", "nan.arff"), 1, "files to be read"),
    "output is the label file": ((*TRAIN[:2], GOOD, "--labels", "xml.xml", "-o", "xml.xml"), 1, "files to be read"),
    "nothing to resume": ((*TRAIN, GOOD, "--resume"), 1, "m.spz.ckpt: there is no checkpoint"),
    "dev of other features": ((*TRAIN, GOOD, "--dev", "fewer.arff"), 1, "fewer.arff: expected the 5 features of the training"),
    "dev of other labels": ((*TRAIN, GOOD, "--dev", "alone.arff"), 1, "alone.arff: there is no attribute 'sun'"),
    "other features": (("predict", MODEL, "fewer.arff"), 1, "fewer.arff: expected the 5 features of the training data, got 4"),
    "features of other names": (("predict", MODEL, "renamed.arff"), 1, "feature 1 is 'g1', but 'f1' in the training data"),
    "features in excess": (("predict", "{l}/m.spz", "more.svm"), 1, "more.svm:1: expected an index of at most 5"),
    "unknown gold label": (("evaluate", MODEL, "{l}/test.svm"), 1, "unknown label"),
    "labels of another file": (("evaluate", MODEL, "named.npz"), 1, "'x' is not among them"),
    "evaluate without labels": (("evaluate", MODEL, "{l}/bare.arff"), 1, "there is no attribute 'sun' to be a label"),
    "report without labels": (("report", MODEL, "{l}/bare.arff", "-o", "p.html"), 1, "there is no attribute 'sun'"),
    "model truncated": (("evaluate", "truncated.spz", TEST), 1, "truncated.spz: this model file was truncated"),
    "predictions over the data": (("predict", MODEL, "nan.arff", "-o", "nan.arff"), 1, "files to be read"),
}


@pytest.fixture(scope="session")
def bad_labels(labelled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of files that are wrong in one way each."""
    folder = tmp_path_factory.mktemp("bad_labels")
    X, Y = examples(6, 3)
    good, svm = arff_text(X, Y), libsvm_text(X, Y)
    rows = good.splitlines()
    texts = {
        "alone.arff": good.replace("'sun'", "'star'"),
        "wrong.arff": good,
        "wrong.xml": xml_text("sun", "snow"),
        "xml.xml": xml_text("sun", "rain", "wind", "storm cloud"),
        "three.arff": good.replace("'sun' {0,1}", "'sun' {0,1,2}"),
        "nan.arff": "\n".join([*rows[:11], "NaN,1,1,1,1,0,0,0,0", *rows[11:]]),
        "gap.arff": "\n".join([*rows[:12], "?,1,1,1,1,0,0,0,0", *rows[12:]]),
        "short.arff": "\n".join([*rows[:11], "1,2,3"]),
        "empty.arff": "\n".join(rows[:11]),
        "renamed.arff": good.replace("attribute f1", "attribute g1"),
        "fewer.arff": arff_text(X[:, :4], Y),
        "inf.svm": svm.splitlines()[0] + "\n1 1:inf\n",
        "more.svm": "1 1:2.0 6:1.0\n",
        "empty.svm": "\n\n",
        "cycle.txt": "rain\twind\nwind\tsun\nsun\train\n",
        "own.txt": "rain\train\n",
        "snow.txt": "rain\tsnow\n",
        "three.txt": "rain wind sun\n",
        "twice.txt": "rain\tsun\nrain\tsun\n",
        "dag.arff": clus_text(X, Y).replace("1,1/1,1/2,2", "root/a,a/b,b/c,c/a"),
        "path.arff": clus_text(X, Y).replace("@DATA\n", "@DATA\n1,1,1,1,1,3/1\n"),
        "bad.toml": "edge = 3\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    model = (labelled / "m.spz").read_bytes()
    (folder / "truncated.spz").write_bytes(model[: len(model) // 2])
    (folder / "latin.svm").write_bytes(b"\xe9,1 1:2\n")
    (folder / "cut.arff.gz").write_bytes(b"\x1f\x8b\x08\x00\x00")
    (folder / "bad.npz").write_bytes(b"PK\x03\x04 and then nothing")
    np.savez(folder / "pickle.npz", X=np.array([{}, {}], dtype=object), Y=Y)
    np.savez(folder / "nan.npz", X=np.where(X > 0, np.nan, X), Y=Y)
    np.savez(folder / "two.npz", X=X, Y=2 * Y)
    np.savez(folder / "named.npz", X=X, Y=Y, label_names=np.array(["x", "rain", "wind", "storm cloud"]))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", [*USAGE, *FILES])
def test_bad_input_is_one_clear_line(name: str, here: Here, labelled: Path, corpus: Path, bad_labels: Path) -> None:
    """The exit code is that of the kind of mistake, the message says what and where, and no file appears or changes."""
    arguments, code, message = {**USAGE, **FILES}[name]
    before = {path.name: path.read_bytes() for path in bad_labels.iterdir()}
    filled = [argument.format(l=labelled, c=corpus) for argument in arguments]
    got, out, err = here(*filled, cwd=bad_labels)
    assert (got, out) == (code, ""), err
    assert "Traceback" not in err
    assert "this is a bug" not in err
    assert message in err
    errors = [line for line in err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert {path.name: path.read_bytes() for path in bad_labels.iterdir()} == before


def test_a_failed_training_leaves_the_old_model(here: Here, labelled: Path, bad_labels: Path, tmp_path: Path) -> None:
    """Where the held-out data turn out to be wrong, the model of an earlier run stays byte for byte."""
    shutil.copy(labelled / "m.spz", tmp_path / "m.spz")
    before = (tmp_path / "m.spz").read_bytes()
    train, dev = str(labelled / "weather-train.arff"), str(bad_labels / "fewer.arff")
    code, _, _ = here("train", "multilabel", train, "--dev", dev, "-o", "m.spz", cwd=tmp_path)
    assert code == 1
    assert (tmp_path / "m.spz").read_bytes() == before
    assert os.listdir(tmp_path) == ["m.spz"]
