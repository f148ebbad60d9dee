"""Labels that are missing in multi-label files: `?` in ARFF and CLUS files, -1 in npz files; features must be there."""

from pathlib import Path

import numpy as np
import pytest
from npz_files import write_npz

from structpred.errors import DataError
from structpred.io.multilabel.data import read_npz_multilabel
from structpred.io.multilabel.mulan import read_clus, read_mulan

ARFF = "@attribute x numeric\n@attribute colour {red,'?'}\n@attribute a {0,1}\n@attribute b numeric\n@data\n"
TREE = "@attribute x numeric\n@attribute class hierarchical 1,1/1,2\n@data\n0.5,1/1\n1,?\n"


def saved(folder: Path, name: str, text: str) -> Path:
    """A file with this text."""
    (folder / name).write_text(text)
    return folder / name


def test_missing_labels_are_minus_one(tmp_path: Path) -> None:
    """In dense and sparse rows, of nominal and numeric labels; a declared value `?` is a value; npz files keep them."""
    data = read_mulan(saved(tmp_path, "s.arff", ARFF + "0.5,'?',1,?\n-1,red,?,0\n{0 2,2 ?,3 1}\n{}\n"), 2)
    assert data.Y.tolist() == [[1, -1], [-1, 0], [-1, 1], [0, 0]]
    assert data.Y.dtype == np.int8
    assert data.X.toarray().tolist() == [[0.5, 0, 1], [-1, 1, 0], [2, 1, 0], [0, 1, 0]]
    write_npz(data, tmp_path / "d.npz")
    assert read_npz_multilabel(tmp_path / "d.npz").Y.tolist() == data.Y.tolist()
    assert read_mulan(saved(tmp_path, "w.arff", ARFF + "0.5,red,1,0\n"), 2).Y.dtype == np.uint8


def test_all_labels_of_a_clus_row_may_be_missing(tmp_path: Path) -> None:
    """`?` in the place of the labels; other rows are closed as ever."""
    assert read_clus(saved(tmp_path, "h.arff", TREE)).Y.tolist() == [[1, 1, 0], [-1, -1, -1]]


@pytest.mark.parametrize("row", ["?,red,1,0", "{0 ?}"])
def test_missing_features_are_named(row: str, tmp_path: Path) -> None:
    """A feature that is missing is an error with file, line and attribute."""
    with pytest.raises(DataError, match=r"s.arff:7: attribute 'x': missing value \(\?\)"):
        read_mulan(saved(tmp_path, "s.arff", f"{ARFF}1,red,1,?\n{row}\n"), 2)
