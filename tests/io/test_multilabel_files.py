"""Multi-label files: the real ones have the counts they are known for; what is wrong is named with file and line."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from npz_files import write_npz
from scipy import sparse

from structpred.errors import DataError, ParameterError
from structpred.io.multilabel.arff import read_arff
from structpred.io.multilabel.data import MultiLabelData, read_libsvm_multilabel, read_npz_multilabel
from structpred.io.multilabel.mulan import read_clus, read_label_xml, read_mulan

MULAN = [
    ("yeast", "yeast", (1500, 917), 103, 14, (4.228, 4.252)),
    ("emotions", "emotions", (391, 202), 72, 6, (1.813, 1.975)),
    ("enron", "enron", (1123, 579), 1001, 53, (3.386, 3.363)),
    ("bibtex", "bibtex", (4880, 2515), 1836, 159, (2.380, 2.444)),
    ("tmc2007_500", "tmc2007-500", (21519, 7077), 500, 22, (2.226, 1.952)),
]


@pytest.mark.slow
@pytest.mark.parametrize("known", MULAN, ids=lambda known: known[0])
def test_mulan_files(data_dir: Path, known: Any) -> None:
    """Rows, features, labels and labels per example of five real sets are as published; train and test have the same names."""
    folder, stem, rows, d, n_labels, cardinality = known
    where = data_dir / f"multilabel_{folder}"
    sets = [read_mulan(where / f"{stem}-{part}.arff.gz", where / f"{stem}.xml.gz") for part in ("train", "test")]
    for data, n, mean in zip(sets, rows, cardinality, strict=True):
        assert data.X.shape == (n, d)
        assert data.Y.shape == (n, n_labels)
        assert round(data.cardinality, 3) == mean
        assert data.hierarchy is None
    assert sets[0].label_names == sets[1].label_names
    assert sets[0].feature_names == sets[1].feature_names


def test_yeast_values(data_dir: Path) -> None:
    """The first row of yeast is the text of its line; labels are in the order of the ARFF file, not of the XML."""
    where = data_dir / "multilabel_yeast"
    data = read_mulan(where / "yeast-train.arff.gz", where / "yeast.xml.gz")
    text = gzip.decompress((where / "yeast-train.arff.gz").read_bytes()).decode().split("@data\n", 1)[1]
    fields = [float(x) for x in text.split("\n", 1)[0].split(",")]
    assert data.X[[0]].toarray().ravel().tolist() + data.Y[0].tolist() == fields
    assert data.label_names == [f"Class{k}" for k in range(1, 15)]
    assert len(np.unique(data.Y, axis=0)) == 164


CLUS = [
    ("hierarchical_enron_corr", "Enron_corr_trainvalid", 988, 1001, 56, 2.74),
    ("hierarchical_enron_corr", "Enron_corr_test", 660, 1001, 56, 3.05),
    ("hierarchical_imclef07a", "ImCLEF07A_Train", 10000, 80, 96, 3.0),
    ("hierarchical_imclef07a", "ImCLEF07A_Test", 1006, 80, 96, 3.0),
]


@pytest.mark.mostly_slow
@pytest.mark.parametrize("known", CLUS, ids=lambda known: known[1])
def test_clus_files(data_dir: Path, known: Any) -> None:
    """Rows, features and nodes of two real hierarchies; rows are closed under ancestors and hold what the text says."""
    folder, stem, n, d, n_labels, written = known
    path = data_dir / folder / f"{stem}.arff.gz"
    data = read_clus(path)
    assert data.X.shape == (n, d)
    assert data.Y.shape == (n, n_labels)
    assert data.hierarchy is not None
    assert data.hierarchy.is_tree
    assert data.hierarchy.depths.max() == 2
    assert data.hierarchy.broken(data.Y) is None
    rows = [line for line in gzip.decompress(path.read_bytes()).decode().split("@DATA", 1)[1].split("\n") if line.strip()]
    sets = [line.rsplit(",", 1)[1].strip().split("@") for line in rows]
    assert round(float(np.mean([len(s) for s in sets])), 2) == written
    for listed, row in zip(sets, data.Y, strict=True):
        on = {data.label_names[k] for k in np.flatnonzero(row)}
        assert on == {"/".join(path.split("/")[: k + 1]) for path in listed for k in range(path.count("/") + 1)}


ARFF = """% a comment
@relation 'small: -C 2'
@ATTRIBUTE 'a b' numeric
@attribute colour {red, 'dark blue', green}
@attribute bit {0,1}
@attribute size {10,2}
@attribute "l\\"1" {0,1}
@attribute l2 {1,0}

@data
0.5, green, 1, 2, 1, 0
% between
-1e3,'dark blue',0,10,0,1
{0 2, 4 1}
"""
XML = """<?xml version="1.0"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="l2"></label>
<label name='l"1'/>
</labels>"""


def saved(folder: Path, name: str, text: str) -> Path:
    """A file with this text."""
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_a_small_arff_file(tmp_path: Path) -> None:
    """Quotes, escapes, comments, one-hot columns, numeric nominal values, sparse rows that leave out first values."""
    path, xml = saved(tmp_path, "s.arff", ARFF), saved(tmp_path, "s.xml", XML)
    data = read_mulan(path, xml)
    assert data.feature_names == ["a b", "colour=red", "colour=dark blue", "colour=green", "bit", "size"]
    assert data.label_names == ['l"1', "l2"]
    assert data.X.toarray().tolist() == [[0.5, 0, 0, 1, 1, 2], [-1000.0, 0, 1, 0, 0, 10], [2.0, 1, 0, 0, 0, 10]]
    assert data.Y.tolist() == [[1, 0], [0, 1], [1, 1]]
    for labels in (2, ["l2", 'l"1']):
        assert read_mulan(path, labels).Y.tolist() == data.Y.tolist()
    (tmp_path / "s.arff.gz").write_bytes(gzip.compress(ARFF.replace("\n", "\r\n").encode()))
    assert read_mulan(tmp_path / "s.arff.gz", xml).X.toarray().tolist() == data.X.toarray().tolist()
    first = saved(tmp_path, "f.arff", "@relation x\n@attribute l {0,1}\n@attribute a numeric\n@data\n1,7\n")
    assert read_mulan(first, -1).label_names == ["l"]


def test_labels_within_labels_are_a_hierarchy(tmp_path: Path) -> None:
    """Nested labels in the XML give a tree, and rows are closed."""
    path = saved(tmp_path, "s.arff", ARFF)
    xml = saved(tmp_path, "s.xml", "<labels><label name='l2'><label name='l&quot;1'></label></label></labels>")
    data = read_mulan(path, xml)
    assert data.hierarchy is not None
    assert data.hierarchy.edges.tolist() == [[1, 0]]
    assert data.Y.tolist() == [[1, 1], [0, 1], [1, 1]]


BAD_ARFF: dict[str, tuple[Callable[[str], str], str]] = {
    "cut short in a row": (lambda t: t.replace(", 1, 0\n", "\n", 1), r"s.arff:11: expected 6 values, one per attribute, got 4"),
    "a value too many": (lambda t: t.replace(", 1, 0\n", ", 1, 0, 0\n", 1), r"s.arff:11: expected 6 values, .*got 7"),
    "no data": (lambda t: t.split("@data")[0], "s.arff:9: expected @data, but the file ends"),
    "no rows": (lambda t: t.split("0.5")[0], "s.arff: expected at least one row after @data"),
    "empty": (lambda t: "", "s.arff:1: expected @data"),
    "NaN": (lambda t: t.replace("0.5", "nan"), "s.arff:11: attribute 'a b': expected a finite number, got 'nan'"),
    "infinite": (lambda t: t.replace("0.5", "1e999"), "s.arff:11: attribute 'a b': expected a finite number, got '1e999'"),
    "no number": (lambda t: t.replace("0.5", "0,5"), "s.arff:11: expected 6 values"),
    "text": (lambda t: t.replace("0.5", "half"), "s.arff:11: attribute 'a b': expected a finite number, got 'half'"),
    "underscore": (lambda t: t.replace("0.5", "1_0"), "s.arff:11: attribute 'a b': expected a finite number, got '1_0'"),
    "missing": (lambda t: t.replace("0.5", "?"), r"s.arff:11: attribute 'a b': missing value \(\?\)"),
    "undeclared": (
        lambda t: t.replace(" green, 1", " pink, 1"),
        "s.arff:11: attribute 'colour': expected one of red, dark blue, green",
    ),
    "label": (lambda t: t.replace("2, 1, 0", "2, 2, 0"), "s.arff:11: attribute 'l\"1': expected one of 0, 1, got '2'"),
    "label values": (lambda t: t.replace("l2 {1,0}", "l2 {1,0,2}"), "s.arff:8: label 'l2': expected the values 0 and 1"),
    "label text": (lambda t: t.replace("l2 {1,0}", "l2 string"), "s.arff:8: label 'l2': expected the values 0 and 1, got string"),
    "label number": (
        lambda t: t.replace("l2 {1,0}", "l2 numeric").replace("2, 1, 0", "2, 1, 0.5"),
        "s.arff:11: label 'l2': expected 0 or 1, got 0.5",
    ),
    "text feature": (
        lambda t: t.replace("'a b' numeric", "'a b' string"),
        "s.arff:3: feature 'a b': expected numeric or nominal",
    ),
    "twice": (lambda t: t.replace("bit {", "colour {"), "s.arff:5: the attribute 'colour' is declared twice, first in line 4"),
    "type": (
        lambda t: t.replace("numeric", "date"),
        "s.arff:3: attribute 'a b': expected one of the types numeric, .*got 'date'",
    ),
    "no type": (lambda t: t.replace("'a b' numeric", "'a b'"), "s.arff:3: attribute 'a b': expected one of the types"),
    "no name": (lambda t: t.replace("@attribute bit {0,1}", "@attribute"), "s.arff:5: expected '@attribute NAME TYPE'"),
    "braces": (lambda t: t.replace("{10,2}", "{10,2"), "s.arff:6: expected nominal values within braces"),
    "same values": (lambda t: t.replace("{10,2}", "{10,10}"), "s.arff:6: expected different nominal values"),
    "quotes": (
        lambda t: t.replace("'dark blue',0", "'dark blue,0"),
        "s.arff:13: expected values separated by commas, quotes that close",
    ),
    "header": (lambda t: t.replace("@data", "@rows"), "s.arff:10: expected @relation, @attribute, @data or a comment"),
    "sparse end": (lambda t: t.replace("4 1}", "4 1"), "s.arff:14: expected a sparse row to end with '}'"),
    "sparse index": (
        lambda t: t.replace("{0 2", "{-1 2"),
        "s.arff:14: expected 'index value' with an index from 0 to 5, got '-1 2'",
    ),
    "sparse index too large": (
        lambda t: t.replace("4 1}", "6 1}"),
        "s.arff:14: expected 'index value' with an index from 0 to 5",
    ),
    "sparse order": (lambda t: t.replace("{0 2, 4 1}", "{4 1, 0 2}"), "s.arff:14: expected ascending indices, got 0 after 4"),
    "sparse twice": (lambda t: t.replace("{0 2, 4 1}", "{4 1, 4 1}"), "s.arff:14: expected ascending indices, got 4 after 4"),
    "sparse value": (lambda t: t.replace("{0 2,", "{0 ?,"), "s.arff:14: attribute 'a b': missing value"),
}


@pytest.mark.parametrize("name", BAD_ARFF)
def test_bad_arff_is_named(tmp_path: Path, name: str) -> None:
    """Each way to spoil the small file raises DataError with file, line, what was expected and what came."""
    change, message = BAD_ARFF[name]
    assert change(ARFF) != ARFF
    path, xml = saved(tmp_path, "s.arff", change(ARFF)), saved(tmp_path, "s.xml", XML)
    with pytest.raises(DataError, match=message):
        read_mulan(path, xml)


BAD_XML = {
    "unknown label": (XML.replace('"l2"', '"l3"'), r"s.xml:3: the label 'l3' is not an attribute of .*s.arff"),
    "twice": (XML.replace("name='l\"1'", "name='l2'"), "s.xml:4: the label 'l2' is given twice, first on line 3"),
    "no name": (XML.replace('name="l2"', 'title="l2"'), "s.xml:3: expected a label with a name"),
    "no labels": ("<labels></labels>", "s.xml: expected at least one label"),
    "not closed": (XML.replace("</labels>", ""), "s.xml:[45]: expected XML"),
    "no XML": ("label: l2", "s.xml:1: expected XML"),
    "empty": ("", "s.xml:1: expected XML"),
    "other element": (XML.replace("<labels", "<tags").replace("</labels", "</tags"), "s.xml:2: expected <labels>, got <tags>"),
    "inner element": (XML.replace("<label name='l\"1'/>", "<a name='b'/>"), "s.xml:4: expected <label>, got <a>"),
    "entities": ("<!DOCTYPE a [<!ENTITY x 'y'>]>\n" + XML.split("\n", 1)[1], "s.xml:1: a label file has no document type"),
    "encoding": (XML.replace('version="1.0"', 'version="1.0" encoding="klingon"'), "s.xml.*: expected XML"),
}


@pytest.mark.parametrize("name", BAD_XML)
def test_bad_label_xml_is_named(tmp_path: Path, name: str) -> None:
    """Labels that are no attribute, repeats, other elements, entities and what is no XML raise DataError with file and line."""
    text, message = BAD_XML[name]
    path, xml = saved(tmp_path, "s.arff", ARFF), saved(tmp_path, "s.xml", text)
    with pytest.raises(DataError, match=message):
        read_mulan(path, xml)


def test_bad_label_arguments_are_named(tmp_path: Path) -> None:
    """Numbers out of range, unknown names, repeats and other things are told apart."""
    path = saved(tmp_path, "s.arff", ARFF)
    for labels, error, message in (
        (6, ParameterError, "expected from 1 to 5 of the 6 attributes, got 6"),
        (0, ParameterError, "expected from 1 to 5"),
        (["l9"], DataError, "there is no attribute 'l9'"),
        (["l2", "l2"], ParameterError, "none twice"),
        ([], ParameterError, "at least one"),
        (None, ParameterError, "the path of a label XML, a number or a list"),
        (["a b", "colour", "bit", "size", 'l"1', "l2"], DataError, "every attribute is a label"),
    ):
        with pytest.raises(error, match=message):
            read_mulan(path, labels)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="there is no such file"):
        read_mulan(path, tmp_path / "none.xml")
    with pytest.raises(DataError, match="there is no such file"):
        read_arff(tmp_path / "none.arff")


HIERARCHY = "@RELATION h\n@ATTRIBUTE x numeric\n@ATTRIBUTE class hierarchical 2,1,1/3,2/4/5\n@DATA\n0.5,1/3\n1,2/4/5@1\n"


def test_a_small_hierarchy(tmp_path: Path) -> None:
    """Ancestors that are not declared follow in the list; rows are closed; sparse rows do too."""
    data = read_clus(saved(tmp_path, "h.arff", HIERARCHY + "{0 3,1 2/4}\n"))
    assert data.label_names == ["2", "1", "1/3", "2/4/5", "2/4"]
    assert data.hierarchy is not None
    assert sorted(data.hierarchy.edges.tolist()) == [[0, 4], [1, 2], [4, 3]]
    assert data.Y.tolist() == [[0, 1, 1, 0, 0], [1, 1, 0, 1, 1], [1, 0, 0, 0, 1]]
    assert data.X.toarray().tolist() == [[0.5], [1.0], [3.0]]


def test_a_small_graph_of_labels(tmp_path: Path) -> None:
    """With dag=True the declaration lists edges; a label with two parents has both on; a circle is refused with its labels."""
    text = "@ATTRIBUTE x numeric\n@ATTRIBUTE class hierarchical root/a,root/b,a/c,b/c,c/d\n@DATA\n1,c\n2,d@a\n"
    data = read_clus(saved(tmp_path, "h.arff", text), dag=True)
    assert data.label_names == ["a", "b", "c", "d"]
    assert data.Y.tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
    with pytest.raises(DataError, match=r"h.arff:2: the hierarchy of labels has a cycle: '.' -> '.' -> '.'"):
        read_clus(saved(tmp_path, "h.arff", text.replace("root/b", "d/b")), dag=True)
    with pytest.raises(DataError, match=r"h.arff:2: expected \"root\" above all labels, got 'a' above it"):
        read_clus(saved(tmp_path, "h.arff", text.replace("root/b", "a/root")), dag=True)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0.5,1/3", "0.5,1/4", "h.arff:5: the label '1/4' is not declared in line 3"),
        ("0.5,1/3", "0.5,", "h.arff:5: attribute 'class': expected labels joined by '@', got none"),
        ("0.5,1/3", "0.5,1@@1/3", "h.arff:5: the label '' is not declared"),
        ("0.5,1/3", "{0 0.5}", "h.arff:5: attribute 'class': expected labels joined by '@', got none"),
        ("2,1,1/3", "2,1,1", "h.arff:3: expected labels separated by commas, none empty and none twice"),
        ("2,1,1/3", "2,1,1/", "h.arff:3: expected labels separated by commas"),
        ("class hierarchical 2,1,1/3,2/4/5", "class hierarchical", "h.arff:3: expected labels separated by commas"),
        ("class hierarchical 2,1,1/3,2/4/5", "class string", "h.arff: expected one attribute of type hierarchical, got 0"),
        ("x numeric", "x hierarchical a", "h.arff: expected one attribute of type hierarchical, got 2"),
    ],
)
def test_bad_hierarchies_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    """Undeclared labels, rows without labels, empty and repeated declarations raise DataError with file and line."""
    assert old in HIERARCHY
    with pytest.raises(DataError, match=message):
        read_clus(saved(tmp_path, "h.arff", HIERARCHY.replace(old, new)))


def test_libsvm_text(tmp_path: Path) -> None:
    """Labels before the first space, examples without labels, comments; label order by number; names and sizes can be given."""
    path = saved(tmp_path, "d.txt", "10,2 1:0.5 3:1e2\n# only a comment\n 2:1\n2 # labels only\n1:4 2:5\n")
    data = read_libsvm_multilabel(path)
    assert data.label_names == ["2", "10"]
    assert data.Y.tolist() == [[1, 1], [0, 0], [1, 0], [0, 0]]
    assert data.X.toarray().tolist() == [[0.5, 0, 100], [0, 1, 0], [0, 0, 0], [4, 5, 0]]
    wide = read_libsvm_multilabel(path, label_names=["10", "7", "2"], n_features=5)
    assert wide.X.shape == (4, 5)
    assert wide.Y[0].tolist() == [1, 0, 1]
    assert read_libsvm_multilabel(saved(tmp_path, "z.txt", "b,a 0:1\n"), zero_based=True).label_names == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("1 1:1\n1 0:1\n", {}, "d.txt:2: expected an index of at least 1 .*zero_based=True.*got '0:1'"),
        ("1 2:1 1:1\n", {}, "d.txt:1: expected indices in ascending order, got '1:1'"),
        ("1 2:1 2:1\n", {}, "d.txt:1: expected indices in ascending order"),
        ("1 9:1\n", {"n_features": 3}, "d.txt:1: expected an index of at most 3, got '9:1'"),
        ("1 1:nan\n", {}, "d.txt:1: expected index:value, a whole number and a number, got '1:nan'"),
        ("1 1:inf\n", {}, "d.txt:1: expected a finite value, got '1:inf'"),
        ("1 1:1_0\n", {}, "d.txt:1: expected index:value"),
        ("1 a:1\n", {}, "d.txt:1: expected index:value"),
        ("1 1:1 2\n", {}, "d.txt:1: expected index:value, got '2'"),
        ("1,,2 1:1\n", {}, "d.txt:1: expected labels separated by single commas, none twice, got '1,,2'"),
        ("1,1 1:1\n", {}, "d.txt:1: expected labels separated by single commas, none twice"),
        ("3 1:1\n", {"label_names": ["1"]}, "d.txt:1: unknown label '3'; known are 1: 1"),
        ("1 99999999999:1\n", {}, "d.txt:1: expected an index of at most"),
        ("", {}, "d.txt: expected at least one example"),
    ],
)
def test_bad_libsvm_text_is_named(tmp_path: Path, text: str, settings: Any, message: str) -> None:
    """Indices out of range or order, values that are no numbers, bad label lists: DataError with file and line."""
    with pytest.raises(DataError, match=message):
        read_libsvm_multilabel(saved(tmp_path, "d.txt", text), **settings)


def test_npz_round_trip(tmp_path: Path) -> None:
    """What is written is read back: features, labels, names and the hierarchy; dense X is read too."""
    data = read_clus(saved(tmp_path, "h.arff", HIERARCHY))
    write_npz(data, tmp_path / "d.npz")
    back = read_npz_multilabel(tmp_path / "d.npz")
    assert (back.X != data.X).nnz == 0
    assert back.Y.tolist() == data.Y.tolist()
    assert (back.label_names, back.feature_names) == (data.label_names, data.feature_names)
    assert back.hierarchy is not None
    assert data.hierarchy is not None
    assert back.hierarchy.edges.tolist() == data.hierarchy.edges.tolist()
    np.savez(tmp_path / "dense.npz", X=np.eye(2, dtype=np.float32), Y=[[0, 1], [1, 1]])
    dense = read_npz_multilabel(tmp_path / "dense.npz")
    assert dense.X.toarray().tolist() == np.eye(2).tolist()
    assert dense.label_names == ["0", "1"]
    half = dense.take([1])
    assert (len(half), half.cardinality) == (1, 2.0)


def test_bad_npz_is_named(tmp_path: Path) -> None:
    """Missing arrays, other values, pickles, wrong CSR parts, false headers and other files raise DataError with the name."""
    X, Y = np.eye(2), np.eye(2)
    parts = {"X_data": [1.0], "X_indices": [5], "X_indptr": [0, 1, 1], "X_shape": [2, 2]}
    for arrays, message in (
        ({"X": X}, "expected the arrays X .*and Y, got X"),
        ({"X": X, "Y": 2 * Y}, "expected Y as a 2-d array of 0 and 1"),
        ({"X": X, "Y": Y[0]}, "expected Y as a 2-d array of 0 and 1"),
        ({"X": X * np.nan, "Y": Y}, "X has values that are not finite"),
        ({"X": X[0], "Y": Y}, "expected X as a 2-d array"),
        ({"X": X, "Y": Y[:1]}, "2 rows of features but labels of shape"),
        ({**parts, "Y": Y}, "are not a valid CSR matrix"),
        ({**parts, "X_indices": [0], "X_indptr": [0, 1 << 57, 0], "Y": Y}, "X_indptr must rise from 0 to 1"),
        ({**parts, "X_indices": [0], "X_indptr": [0, 1, -(1 << 60)], "Y": Y}, "X_indptr must rise from 0 to 1"),
        ({**parts, "X_indices": [0], "X_indptr": [0, 1 << 57, 1], "Y": Y}, "X_indptr must rise from 0 to 1"),
        ({"X": np.array([None]), "Y": Y}, "pickled objects"),
        ({"X": X, "Y": Y, "hierarchy": [[0, 1], [1, 0]]}, "cycle"),
        ({"X": X, "Y": Y, "label_names": ["a"]}, "2 labels with 1 names"),
        ({"X": X, "Y": Y, "label_names": ["a", "a"]}, "the label name 'a' comes more than once"),
    ):
        np.savez(tmp_path / "d.npz", **arrays)  # type: ignore[arg-type]
        with pytest.raises(DataError, match=message):
            read_npz_multilabel(tmp_path / "d.npz")
    np.savez(tmp_path / "d.npz", X=X, Y=Y)
    whole = (tmp_path / "d.npz").read_bytes()
    for content in (b"", b"hello", whole[:200], whole.replace(b"'shape': (2, 2)", b"'shape': (9, 9)")):
        (tmp_path / "d.npz").write_bytes(content)
        with pytest.raises(DataError, match=r"d\.npz"):
            read_npz_multilabel(tmp_path / "d.npz")
    with pytest.raises(DataError, match="no such file"):
        read_npz_multilabel(tmp_path / "none.npz")


def test_data_must_fit_together() -> None:
    """MultiLabelData refuses rows, names and hierarchies of other sizes."""
    X = sparse.csr_array(np.eye(2))
    with pytest.raises(DataError, match="2 rows of features but labels of shape"):
        MultiLabelData(X, np.zeros((3, 1), np.uint8), ["a"], ["x", "y"])
    with pytest.raises(DataError, match="2 features with 1 names"):
        MultiLabelData(X, np.zeros((2, 1), np.uint8), ["a"], ["x"])


def test_label_xml_lines(tmp_path: Path) -> None:
    """Each label comes with the label around it and its line."""
    path = saved(tmp_path, "s.xml", "<labels>\n<label name='a'>\n<label name='b'/>\n</label></labels>")
    assert read_label_xml(path) == {"a": (None, 2), "b": ("a", 3)}
