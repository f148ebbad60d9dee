"""Structures of one's own in the shell: an oracle and a reader are named, and no file makes their code run."""

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from structpred.models import StructuredPredictor

Here = Callable[..., tuple[int, str, str]]

CODE = '''
import numpy as np

from structpred import Instance
from structpred.oracles.multiclass import MulticlassOracle


class Chooser(MulticlassOracle):
    """Which of three is the largest?"""


def read(path):
    X, y = [], []
    for line in open(path):
        values, _, label = line.partition("=")
        X.append(Instance([{"<size>": float(v)} for v in values.split()], (3,)))
        y.append([int(label)] if label.strip() else None)
    return X, None if None in y else y


def broken(path):
    return []
'''
OWN = ("--oracle", "choosers:Chooser", "--reader", "choosers:read")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a module, and with data with and without labels."""
    (tmp_path / "choosers.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    rows = np.random.default_rng(0).normal(size=(8, 3)).round(2)
    lines = [" ".join(map(str, row)) for row in rows.tolist()]
    (tmp_path / "train.txt").write_text("".join(f"{line} = {row.argmax()}\n" for line, row in zip(lines, rows, strict=True)))
    (tmp_path / "new.txt").write_text("".join(f"{line}\n" for line in lines))
    importlib.invalidate_caches()
    yield tmp_path
    sys.modules.pop("choosers", None)


def test_a_structure_of_ones_own_in_every_command(here: Here, folder: Path) -> None:
    """Trained, applied, evaluated, inspected and shown on a page, with what Python gives; data on the page stay text."""
    code, _, err = here("train", "structure", "train.txt", *OWN, "--dev", "train.txt", "-o", "m.spz", cwd=folder)
    assert code == 0, err
    module = importlib.import_module("choosers")
    model = StructuredPredictor.load(folder / "m.spz", module.Chooser())
    X, y = module.read(folder / "train.txt")
    found = [labels.tolist() for labels in model.predict(X)]
    assert found == y
    assert here("predict", "m.spz", "new.txt", *OWN, cwd=folder)[1] == "".join(f"{k}\n" for (k,) in y)
    entries = here("predict", "m.spz", "new.txt", *OWN, "--json", "--kbest", "2", cwd=folder)[1].splitlines()
    assert [json.loads(entry)["kbest"][0]["labels"] for entry in entries] == y
    judged = json.loads(here("evaluate", "m.spz", "train.txt", *OWN, "--json", cwd=folder)[1])
    assert judged == {"n": 8, "score": model.score(X, y), "scoring": None, "exact": 1.0}
    assert "wholly right" in here("evaluate", "m.spz", "train.txt", *OWN, cwd=folder)[1]
    said = here("inspect", "m.spz", "--oracle", "choosers:Chooser", cwd=folder)[1]
    assert "<size>" in said
    assert "read by choosers:read" in said
    weights = json.loads(here("inspect", "m.spz", "--oracle", "choosers:Chooser", "--json", cwd=folder)[1])["weights"]
    assert weights["positive"] == [["<size>", float(model.coef_[0])]]
    why = here("explain", "m.spz", "new.txt", *OWN, "--sample", "2", "--against", "runner-up", cwd=folder)[1]
    assert why == f"sample 2: instance 2\n\n{model.explain(X[2], against='runner-up').text()}\n"
    assert here("report", "m.spz", "train.txt", *OWN, "-o", "p.html", cwd=folder)[0] == 0
    page = (folder / "p.html").read_text()
    assert "&lt;size&gt;" in page
    assert "<size>" not in page
    assert "Worst outputs" not in page


def test_the_page_shows_the_worst_outputs_and_why(here: Here, folder: Path) -> None:
    """A wrong output comes with its labels, and with what its features add over those of the truth."""
    assert here("train", "structure", "train.txt", *OWN, "-o", "m.spz", cwd=folder)[0] == 0
    (folder / "odd.txt").write_text("2 0 1 = 1\n0 5 1 = 1\n9 8 7 = 2\n")
    assert here("report", "m.spz", "odd.txt", *OWN, "--examples", "1", "-o", "p.html", cwd=folder)[0] == 0
    page = (folder / "p.html").read_text()
    module = importlib.import_module("choosers")
    model = StructuredPredictor.load(folder / "m.spz", module.Chooser())
    X, y = module.read(folder / "odd.txt")
    why = model.explain(X[0], against=y[0])
    assert f"instance 0: 1 of 1 labels wrong, preferred to the truth by {why.score:.4g}" in page
    assert "instance 2" not in page
    assert f"{why.strongest(1)[0].score:+.4f}".replace("-", "\N{MINUS SIGN}") in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("inspect", "m.spz"), "trained with the oracle Chooser; name it with --oracle choosers:Chooser: its code is run"),
        (("predict", "m.spz", "new.txt", *OWN[:2]), "name what reads DATA with --reader choosers:read: its code is run"),
        (("evaluate", "m.spz", "new.txt", *OWN), "new.txt: --reader choosers:read gives no labels"),
        (("predict", "m.spz", "new.txt", *OWN[:3], "choosers:broken"), "expected a pair (X, y)"),
        (("predict", "m.spz", "none.txt", *OWN), "there is no such file"),
        (("predict", "m.spz", "new.txt", *OWN[:3], "choosers:nothing"), "choosers.py) has no 'nothing'"),
    ],
)
def test_what_is_missing_is_said(here: Here, folder: Path, arguments: tuple[str, ...], message: str) -> None:
    """Each command says which option is missing, by the name that training had, and runs nothing that was not named."""
    assert here("train", "structure", "train.txt", *OWN, "-o", "m.spz", cwd=folder)[0] == 0
    code, _, err = here(*arguments, cwd=folder)
    assert code in (1, 2)
    assert message in err
