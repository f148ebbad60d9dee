"""`--coding` of sequences: IOBES inside by default where labels are IOB2, which no answer, table or choice shows."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from structpred.io import read_columns
from structpred.models import ChainLabeler

Here = Callable[..., tuple[int, str, str]]
ROWS = {
    "iob2": "a B-X\nb I-X\nc O\n\nb B-X\na I-X\nb I-X\nc O\n\n",
    "iob1": "a I-X\nb I-X\nc O\n\nb I-X\na B-X\nb I-X\nc O\n\n",
    "iobes": "a B-X\nb E-X\nc O\n\nb S-X\nc O\n\n",
    "io": "a I-X\nb I-X\nc O\n\nb I-X\nc O\n\n",
    "no phrases": "a DT\nb NN\nc O\n\nb NN\nc O\n\n",
    "another label too": "a B-X\nb I-X\nc O\n\nb B-X\nc MISC\n\n",
    "few phrases": "a B-X\nb O\nc O\n\nb B-X\na I-X\nb O\nc O\n\n",
    "nothing": "a O\nb O\n\nb O\nc O\n\n",
}


def model_of(here: Here, folder: Path, rows: str, *options: str) -> ChainLabeler:
    """What `train chain` makes of these rows."""
    (folder / "t.txt").write_text(rows * 4)
    command = ("train", "chain", "t.txt", "--format", "columns", "--template", "pos", "-o", "m.spz", *options)
    code, _, err = here(*command, cwd=folder)
    assert code == 0, err
    assert ("learned as IOBES" in err) == (ChainLabeler.load(folder / "m.spz").coding_ is not None and "--coding" not in options)
    return ChainLabeler.load(folder / "m.spz")


@pytest.mark.parametrize("name", list(ROWS))
@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_only_iob2_is_recoded(here: Here, tmp_path: Path, name: str) -> None:
    """By default, where phrases cover most tokens and no file of signs names labels; --coding says otherwise."""
    assert model_of(here, tmp_path, ROWS[name]).coding_ == (("iobes", "iob2") if name == "iob2" else None)
    if name == "iob2":
        assert model_of(here, tmp_path, ROWS[name], "--coding", "none").coding_ is None
        assert model_of(here, tmp_path, ROWS[name], "--coding", "iob1").coding_ == ("iob1", "iob2")
        (tmp_path / "signs.txt").write_text("w[0]=a -> B-X +\n")
        assert model_of(here, tmp_path, ROWS[name], "--signs", "signs.txt").coding_ is None


def test_tables_are_over_labels_of_users(here: Here, corpus: Path, tmp_path: Path) -> None:
    """Probabilities in JSON are the sums over labels inside with the same answer, and those of the labels that are predicted."""
    command = ("train", "chain", str(corpus / "train.txt"), "--format", "conll2000", "--template", "chunking", "-o", "m.spz")
    assert here(*command, "--trainer", "oeg", "--max-iter", "3", cwd=tmp_path)[0] == 0
    model, data = ChainLabeler.load(tmp_path / "m.spz"), read_columns(corpus / "test.txt")
    assert model.coding_ == ("iobes", "iob2")
    out = here("predict", "m.spz", str(corpus / "test.txt"), "--json", "--marginals", cwd=tmp_path)[1]
    answer = {"S": "B", "E": "I"}
    for line, table in zip(out.splitlines(), model.predict_marginals(data), strict=True):
        entry = json.loads(line)
        for label, p, found, row in zip(entry["labels"], entry["probabilities"], entry["marginals"], table, strict=True):
            sums = dict.fromkeys(found, 0.0)
            for inside, share in zip(model.classes_.tolist(), row.tolist(), strict=True):
                sums[answer.get(inside[0], inside[0]) + inside[1:]] += share
            assert found.keys() == set(data.column(-1)) | found.keys()
            assert np.allclose([sums[k] for k in found], list(found.values()), atol=1e-12)
            assert p == found[label]


def test_a_choice_holds_its_labels_alone() -> None:
    """Of labels that are allowed, one that would break the scheme here is not read as another; alone it is, as conlleval does."""
    model = ChainLabeler(coding="iobes", C=10.0, max_iter=50).fit(
        [[{"a"}, {"b"}], [{"a"}, {"c"}]], [["B-X", "I-X"], ["B-X", "O"]]
    )
    assert model.predict([[{"a"}, {"c"}]], allowed=[[["I-X", "O"], None]])[0][0] == "O"
    assert model.predict([[{"a"}, {"c"}]], allowed=[[["I-X"], None]])[0][0] == "B-X"
