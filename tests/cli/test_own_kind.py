"""Adding a kind of model to the shell takes one file: every command works with one of a temporary package."""

import importlib
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structpred.cli.kinds.kind import Kind, found_kinds
from structpred.models import StructuredPredictor
from structpred.oracles.multiclass import MulticlassOracle
from structpred.runtime.discovery import public_subclasses

Here = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).resolve().parent.parent.parent
OWN = ("--kind", "kinds_of_mine.choices:Choices")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A package of one module, which holds the kind of the example, and data for it in the folder of the test."""
    folder = tmp_path / "path" / "kinds_of_mine"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    shutil.copy(ROOT / "examples" / "own_kind.py", folder / "choices.py")
    monkeypatch.syspath_prepend(tmp_path / "path")
    module = importlib.import_module("kinds_of_mine.choices")
    for name, seed in (("train.txt", 0), ("test.txt", 1)):
        (tmp_path / name).write_text(module.make_data(40, np.random.default_rng(seed)))
    yield module
    for name in ("kinds_of_mine.choices", "kinds_of_mine"):
        sys.modules.pop(name, None)


def test_every_command_works_with_a_kind_of_ones_own(here: Here, tmp_path: Path, package: Any) -> None:
    """Trained, applied, evaluated, inspected and shown on a page from the shell, with the weights that Python gives."""
    said = ("train", "choices", "train.txt", "-o", "m.spz", "--dev", "test.txt", "--json")
    code, out, err = here(*OWN, *said, cwd=tmp_path)
    assert code == 0, err
    events = [json.loads(line) for line in out.splitlines()]
    assert (events[0]["questions"], events[-1]["event"]) == (40, "end")
    assert re.search(r"wrote m.spz: 3 features, \d", err)
    X, y = package.read_choices(str(tmp_path / "train.txt"))
    dev = package.read_choices(str(tmp_path / "test.txt"))
    model = StructuredPredictor(MulticlassOracle(), max_iter=10, tol=0.0, random_state=0).fit(X, y, dev=dev)
    assert np.array_equal(StructuredPredictor.load(tmp_path / "m.spz", MulticlassOracle()).coef_, model.coef_)
    chosen = [int(labels[0]) for labels in model.predict(dev[0])]
    assert here(*OWN, "predict", "m.spz", "test.txt", "--from-zero", cwd=tmp_path)[1] == "".join(f"{k}\n" for k in chosen)
    found = json.loads(here(*OWN, "evaluate", "m.spz", "test.txt", "--json", cwd=tmp_path)[1])
    assert found == {"n": 40, "right": model.score(*dev)}
    assert "f0" in here(*OWN, "inspect", "m.spz", "--top", "1", cwd=tmp_path)[1]
    code, _, err = here(*OWN, "explain", "m.spz", "test.txt", cwd=tmp_path)  # which it does not define
    assert (code, "cannot be explained" in err) == (2, True)
    assert here(*OWN, "report", "m.spz", "test.txt", "-o", "p.html", cwd=tmp_path)[0] == 0
    assert f"{100 * found['right']:.2f} % right" in (tmp_path / "p.html").read_text()


def test_its_options_are_its_own(here: Here, tmp_path: Path, package: Any) -> None:
    """Help shows them with --kind only; those of other kinds, and shared ones that it does not take, are refused."""
    assert "--from-zero" in here(*OWN, "predict", "--help", cwd=tmp_path)[1]
    assert "--from-zero" not in here("predict", "--help", cwd=tmp_path)[1]
    help_page = here(*OWN, "train", "choices", "--help", cwd=tmp_path)[1]
    assert "chooses one of the candidates" in help_page
    assert "--n-jobs" not in help_page
    assert here(*OWN, "train", "choices", "train.txt", "-o", "m.spz", "-q", cwd=tmp_path)[0] == 0
    for option in ("--multi-root", "--n-jobs=2"):
        code, _, err = here(*OWN, "predict", "m.spz", "test.txt", option, cwd=tmp_path)
        assert (code, f"{option.partition('=')[0]} is not for models of choices" in err) == (2, True), err
    code, _, err = here("predict", "m.spz", "test.txt", cwd=tmp_path)
    assert (code, "name it with --oracle" in err) == (2, True), err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("kinds_of_mine.choices:Missing", "has no 'Missing'"),
        ("kinds_of_nobody:Choices", "there is no module 'kinds_of_nobody'"),
        ("kinds_of_mine.choices:make_data", "expected a subclass of structpred.cli.kinds.kind.Kind"),
        ("choices", "expected MODULE:CLASS"),
    ],
)
def test_a_name_that_names_no_kind(here: Here, tmp_path: Path, package: Any, name: str, said: str) -> None:
    """Wrong usage, exit code 2, and the error says what is wrong with the name."""
    code, _, err = here("--kind", name, "predict", "m.spz", "test.txt", cwd=tmp_path)
    assert (code, said in err) == (2, True), err


def test_kinds_are_found_by_walking(package: Any) -> None:
    """The walk finds a class in a new file of a package by itself; ours have names and estimators of their own."""
    assert list(public_subclasses("kinds_of_mine", Kind)) == [package.Choices]  # type: ignore[type-abstract]
    assert [kind.name for kind in found_kinds()] == ["chain", "decision", "multilabel", "parser", "pipeline", "structure"]
    estimators = [name for kind in found_kinds() for name in kind.estimators]
    assert len(estimators) == len(set(estimators)) == 9


@pytest.mark.parametrize("command", ["train", "predict", "training", "model_command"])
def test_no_command_knows_a_kind_by_name(command: str) -> None:
    """The files of the commands name no estimator, no kind and no file of one: a new kind changes none of them."""
    code = (ROOT / "structpred" / "cli" / f"{command}.py").read_text(encoding="utf-8")
    known = [word for kind in found_kinds() for word in (*kind.estimators, f'"{kind.name}"')]
    assert [word for word in known if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", code)] == []
    assert re.findall(r"structpred\.cli\.(sequences|dependencies|label_sets|kinds\.(?!kind\b)\w+)", code) == []


def test_a_kind_of_ones_own_is_tuned(here: Here, tmp_path: Path, package: Any) -> None:
    """A kind that says nothing about tuning is tuned on held-out data; folds it must know how to make."""
    command = (*OWN, "tune", "choices", "--train", "train.txt", "-C", "0.01", "1")
    code, out, err = here(*command, "--dev", "test.txt", cwd=tmp_path)
    assert code == 0, err
    assert out.splitlines()[-1].startswith(f"  structpred {' '.join(OWN)} train choices train.txt -o best.spz --C ")
    code, _, err = here(*command, "--cv", "2", cwd=tmp_path)
    assert (code, err) == (2, "error: --cv: this kind of model has no folds; give held-out data, --dev FILE\n")
