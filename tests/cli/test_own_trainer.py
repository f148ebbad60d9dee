"""Adding a trainer takes one file: a trainer of a temporary package is used from Python and from the shell like those of ours."""

import importlib
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structpred.errors import ParameterError
from structpred.io import read_columns
from structpred.models import ChainLabeler
from structpred.runtime.discovery import public_subclasses
from structpred.trainers.names import trainers
from structpred.trainers.problem import Trainer

Here = Callable[..., tuple[int, str, str]]
EXAMPLE = Path(__file__).resolve().parent.parent.parent / "examples" / "own_trainer.py"
CHUNKING = ("--format", "conll2000", "--template", "chunking", "--max-iter", "3")
OF_THE_LOG_LOSS = "\n\nclass OfLogLoss(Subgradient):\n    surrogates = (LogLoss,)\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A package of one module, which holds the trainer of the example and one that minimises the log loss alone."""
    folder = tmp_path / "trainers_of_mine"
    folder.mkdir()
    (folder / "__init__.py").touch()
    shutil.copy(EXAMPLE, folder / "steps.py")
    (folder / "steps.py").write_text(EXAMPLE.read_text().replace("\n\ndef make_data", f"{OF_THE_LOG_LOSS}\n\ndef make_data"))
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("trainers_of_mine.steps")
    for name in ("trainers_of_mine.steps", "trainers_of_mine"):
        sys.modules.pop(name, None)


def corpus_of(folder: Path) -> tuple[Any, Any]:
    """The small corpus, and its labels."""
    rows = read_columns(folder / "train.txt")
    return rows, rows.labels()


@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_a_trainer_of_ones_own_trains_from_python_and_from_the_shell(
    here: Here, corpus: Path, tmp_path: Path, package: Any
) -> None:
    """The same weights from an object in Python and from --trainer MODULE:CLASS; the model file names it as not its own."""
    X, y = corpus_of(corpus)
    model = ChainLabeler(package.Subgradient(), template="chunking", max_iter=3).fit(X, y)
    command = ("train", "chain", str(corpus / "train.txt"), *CHUNKING, "--coding", "none", "-o", "m.spz", "-q")
    code, _, err = here(*command, "--trainer", "trainers_of_mine.steps:Subgradient", cwd=tmp_path)
    assert code == 0, err
    loaded = ChainLabeler.load(tmp_path / "m.spz")
    assert np.array_equal(loaded.coef_, model.coef_)
    assert not loaded.probabilistic_
    with pytest.raises(ParameterError, match=r"Subgradient \(an object that model files do not hold; give it again\)"):
        loaded.fit(X, y)


@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_a_log_loss_trainer_of_ones_own_gets_the_log_loss(here: Here, corpus: Path, tmp_path: Path, package: Any) -> None:
    """The first of `surrogates` is the default, from Python and from the shell; others are refused before anything is read."""
    X, y = corpus_of(corpus)
    model = ChainLabeler(package.OfLogLoss(), template="chunking", max_iter=2).fit(X, y)
    assert model.probabilistic_
    with pytest.raises(ParameterError, match="OfLogLoss cannot minimise MarginRescaling; trainers that can: arow, bcfw"):
        ChainLabeler(package.OfLogLoss(), template="chunking", surrogate="margin").fit(X, y)
    command = ("train", "chain", str(corpus / "train.txt"), *CHUNKING, "-o", "m.spz", "--json")
    name = ("--trainer", "trainers_of_mine.steps:OfLogLoss")
    code, out, err = here(*command, *name, cwd=tmp_path)
    assert code == 0, err
    assert json.loads(out.splitlines()[0])["options"]["trainer"] == name[1]
    assert ChainLabeler.load(tmp_path / "m.spz").probabilistic_
    (tmp_path / "m.spz").unlink()
    for more, said in (("--surrogate", "margin"), "OfLogLoss cannot minimise"), (("--strict", "--tol", "0.1"), "has none"):
        code, _, err = here(*command, *name, *more, cwd=tmp_path)
        assert (code, said in err) == (2, True), err
        assert not (tmp_path / "m.spz").exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("trainers_of_mine.steps:Missing", "has no 'Missing'"),
        ("trainers_of_nobody:Subgradient", "there is no module 'trainers_of_nobody'"),
        ("trainers_of_mine.steps:SubgradientState.count", "expected a subclass of structpred.trainers.problem.Trainer"),
        ("trainers_of_mine.steps:", "expected MODULE:CLASS"),
        ("subgradient", "trainer: expected one of arow, bcfw"),
    ],
)
def test_a_name_that_names_no_trainer(here: Here, corpus: Path, tmp_path: Path, package: Any, name: str, said: str) -> None:
    """Wrong usage, exit code 2, and the error says what is wrong with the name."""
    code, _, err = here("train", "chain", str(corpus / "train.txt"), *CHUNKING, "-o", "m.spz", "--trainer", name, cwd=tmp_path)
    assert (code, said in err) == (2, True), err


def test_trainers_are_found_by_walking(package: Any) -> None:
    """The walk finds a class in a new file of a package by itself, and each of ours under a name of its own."""
    assert set(public_subclasses("trainers_of_mine", Trainer)) == {package.Subgradient, package.OfLogLoss}
    found = list(public_subclasses("structpred.trainers", Trainer))
    named = [kind for kind in found if kind.name]
    assert len(trainers()) == len(named) == len({kind.name for kind in named})
    assert {"arow", "bcfw", "lbfgs", "mira", "n_slack", "oeg", "one_slack", "owlqn", "pa", "perceptron", "sgd"} <= set(trainers())


def test_the_manual_lists_every_trainer() -> None:
    """The table of options of `train chain` names all trainers there are."""
    text = (EXAMPLE.parent.parent / "docs" / "cli.md").read_text(encoding="utf-8")
    (row,) = [line for line in text.splitlines() if line.startswith("| `--trainer` | max-margin")]
    assert [name for name in trainers() if f"`{name}`" not in row] == []
