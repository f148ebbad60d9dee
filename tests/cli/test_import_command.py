"""`structpred import`: a model of CRFsuite becomes a file that all other commands take."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Here = Callable[..., tuple[int, str, str]]


def test_a_model_of_crfsuite_is_taken_over(here: Here, corpus: Path, tmp_path: Path) -> None:
    """The file predicts what CRFsuite's tagger does, and is inspected, evaluated, explained and exported."""
    peer = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    trainer = peer.Trainer("ap", {"max_iterations": 3}, verbose=False)
    blocks = [
        [line.split("\t") for line in block.split("\n")] for block in (corpus / "test.crf").read_text().strip().split("\n\n")
    ]
    X, y = ([[plain(token[1:]) for token in block] for block in blocks], [[token[0] for token in block] for block in blocks])
    for x, labels in zip(X, y, strict=True):
        trainer.append(x, labels)
    trainer.train(str(tmp_path / "old.crfsuite"))
    code, out, err = here("import", "old.crfsuite", "--algorithm", "ap", "-o", "new.spz", cwd=tmp_path)
    assert (code, out) == (0, ""), err
    assert "wrote new.spz" in err
    tagger = peer.Tagger()
    tagger.open(str(tmp_path / "old.crfsuite"))
    code, out, err = here("predict", "new.spz", str(corpus / "test.crf"), "-q", cwd=tmp_path)
    assert code == 0, err
    found = [[line.partition("\t")[0] for line in block.split("\n")] for block in out.strip().split("\n\n")]
    assert found == [tagger.tag(x) for x in X]
    assert here("evaluate", "new.spz", str(corpus / "test.crf"), cwd=tmp_path)[0] == 0
    assert here("explain", "new.spz", str(corpus / "test.crf"), "--sample", "1", cwd=tmp_path)[0] == 0
    code, out, _ = here("inspect", "new.spz", "--json", cwd=tmp_path)
    assert code == 0
    assert json.loads(out)["estimator"] == "ChainLabeler"
    assert here("export", "new.spz", "-o", "light.py", cwd=tmp_path)[0] == 0


def plain(fields: list[str]) -> dict[str, float]:
    """A token's attributes with their values, as CRFsuite's own reader takes them."""
    found: dict[str, float] = {}
    for field in fields:
        name, _, scale = field.replace("\\:", "\0").partition(":")
        found[name.replace("\0", ":")] = float(scale or 1.0)
    return found


def test_a_model_of_ours_is_no_model_to_import(here: Here, corpus: Path, tmp_path: Path) -> None:
    """A file of another kind is refused in one line and nothing is written; predict says what to do with one of CRFsuite's."""
    code, out, err = here("import", str(corpus / "chunk.spz"), "-o", "new.spz", cwd=tmp_path)
    assert (code, out, (tmp_path / "new.spz").exists()) == (1, "", False)
    assert "expected a model that CRFsuite wrote" in err
    (tmp_path / "theirs").write_bytes(b"lCRF" + bytes(100))
    code, _, err = here("predict", "theirs", str(corpus / "test.crf"), cwd=tmp_path)
    assert code == 1
    assert "it is a CRFsuite model; `structpred import` makes one of ours of it" in err
