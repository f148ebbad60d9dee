"""Promises of the commands for decision models: trained, applied, scored by regret, inspected, shown on a page."""

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from structpred.data.decisions import shortest_path_data
from structpred.models import DecisionModel
from structpred.oracles.portfolio import PortfolioOracle
from structpred.oracles.shortest_path import ShortestPathOracle

Here = Callable[..., tuple[int, str, str]]

CODE = """
import numpy as np

from structpred import Instance


def read(path):
    data = np.load(path)
    return [Instance(row, (3, 3)) for row in data["X"]], data["costs"] if "costs" in data else None
"""
OWN = ("--oracle", "structpred.oracles.shortest_path:ShortestPathOracle", "--reader", "roads:read")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a module that reads, and data with and without costs."""
    (tmp_path / "roads.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    data = shortest_path_data(80, grid=(3, 3), degree=4, noise=0.3)
    np.savez(tmp_path / "train.npz", X=data.features[:50], costs=data.costs[:50])
    np.savez(tmp_path / "test.npz", X=data.features[50:], costs=data.costs[50:])
    np.savez(tmp_path / "new.npz", X=data.features[50:])
    importlib.invalidate_caches()
    yield tmp_path
    sys.modules.pop("roads", None)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("trainer", ["adam", "one_slack"])
def test_a_decision_model_in_every_command(here: Here, folder: Path, trainer: str) -> None:
    """The commands give what Python gives: decisions, regret, certificate; a command that is not told the oracle asks for it."""
    code, _, err = here("train", "decision", "train.npz", *OWN, "--trainer", trainer, "-C", "0.5", "-o", "m.spz", cwd=folder)
    assert code == 0, err
    read = importlib.import_module("roads").read
    passes = {"adam": 10, "one_slack": 200}[trainer]
    model = DecisionModel(ShortestPathOracle(), C=0.5, trainer=trainer, max_iter=passes, tol=0.0)
    model.fit(*read(folder / "train.npz"))
    code, out, err = here("predict", "m.spz", "new.npz", *OWN, cwd=folder)
    assert code == 0, err
    assert out.splitlines() == [" ".join(map(str, path.tolist())) for path in model.predict(read(folder / "new.npz")[0])]
    found = json.loads(here("evaluate", "m.spz", "test.npz", *OWN, "--json", cwd=folder)[1])
    assert found["score"] == pytest.approx(model.score(*read(folder / "test.npz")))
    assert (found["n"], found["normalised_regret"]) == (30, pytest.approx(1.0 - found["score"]))
    assert "normalised regret" in here("evaluate", "m.spz", "test.npz", *OWN, cwd=folder)[1]
    text = here("inspect", "m.spz", *OWN[:2], cwd=folder)[1]
    assert "read by roads:read" in text
    assert ("no certificate" in text) == (trainer == "adam")
    assert json.loads(here("inspect", "m.spz", *OWN[:2], "--json", cwd=folder)[1])["estimator"] == "DecisionModel"
    assert here("report", "m.spz", "test.npz", *OWN, "-o", "page.html", cwd=folder)[0] == 0
    assert "normalised regret" in (folder / "page.html").read_text()
    code, _, err = here("predict", "m.spz", "new.npz", cwd=folder)
    assert code == 2
    assert "--oracle structpred.oracles.shortest_path:ShortestPathOracle" in err
    code, _, err = here("explain", "m.spz", "test.npz", *OWN, cwd=folder)
    assert (code, "decision models cannot be explained" in err) == (2, True), err


def test_values_and_what_cannot_be_trained(here: Here, folder: Path) -> None:
    """--maximise takes values; an unknown loss, and a trainer that cannot minimise one, are errors before anything is written."""
    code, _, err = here("train", "decision", "train.npz", *OWN, "--maximise", "--loss", "pg", "-o", "v.spz", cwd=folder)
    assert code == 0, err
    assert "values" in here("inspect", "v.spz", *OWN[:2], cwd=folder)[1]
    refused = ((("--loss", "spo"), "did you mean 'spo+'?"), (("--loss", "pg", "--trainer", "bcfw"), "loss='hinge' or 'spo+'"))
    for option, said in refused:
        code, _, err = here("train", "decision", "train.npz", *OWN, *option, "-o", "x.spz", cwd=folder)
        assert (code != 0, said in err) == (True, True), err
    assert not (folder / "x.spz").exists()


SHARES = """
import numpy as np

from structpred import Instance
from structpred.data.decisions import portfolio_data

DATA = portfolio_data(12, n_assets=3, degree=2, seed=1)


def read(path):
    return [Instance(row, DATA.shape) for row in DATA.features], DATA.values
"""


def test_decisions_that_are_points_are_written_as_amounts(here: Here, folder: Path) -> None:
    """A model of portfolios is trained and judged; `predict` writes shares, a line or a JSON object each, and no labels."""
    (folder / "roads.py").write_text(SHARES)
    importlib.invalidate_caches()
    own = ("--oracle", "structpred.oracles.portfolio:PortfolioOracle", "--reader", "roads:read")
    assert here("train", "decision", "train.npz", *own, "--maximise", "--max-iter", "2", "-o", "m.spz", cwd=folder)[0] == 0
    X, values = importlib.import_module("roads").read("")
    model = DecisionModel.load(folder / "m.spz", PortfolioOracle())
    shares = np.array(model.predict_points(X))
    lines = here("predict", "m.spz", "train.npz", *own, cwd=folder)[1].splitlines()
    np.testing.assert_allclose([list(map(float, line.split())) for line in lines], shares, rtol=1e-11)
    entries = here("predict", "m.spz", "train.npz", *own, "--json", cwd=folder)[1].splitlines()
    assert [json.loads(entry)["amounts"] for entry in entries] == shares.tolist()
    found = json.loads(here("evaluate", "m.spz", "train.npz", *own, "--json", cwd=folder)[1])
    assert found["score"] == pytest.approx(model.score(X, values=values))


def test_it_is_not_tuned_by_the_shell(here: Here, folder: Path) -> None:
    """`tune`, which needs held-out data, does not offer the kind; `train` does."""
    assert "decision" in here("train", "--help", cwd=folder)[1]
    assert "decision" not in here("tune", "--help", cwd=folder)[1]
    assert here("tune", "decision", "--train", "train.npz", cwd=folder)[0] == 2
