"""The Python of the how-tos runs as it stands, and what they say of it is so (the tutorial: tests/test_docs.py)."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def python_of(page: str, heading: str = "", until: str | None = None) -> str:
    """The Python blocks of a page, from a heading on, and up to another one."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    end = len(text) if until is None else text.index(until)
    return "\n".join(re.findall(r"```python\n(.*?)```", text[text.index(heading) : end], re.DOTALL))


def run(code: str, folder: Path) -> str:
    """The standard output of a fresh process."""
    command = [sys.executable, "-P", "-W", "error", "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, cwd=folder, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_oracle_how_to_runs(tmp_path: Path) -> None:
    """The oracle shown under "Write it" is checked, trained, saved and loaded by the lines that follow it."""
    code = python_of("howto/add_an_oracle.md", "## Write it")
    score = "print(model.score(X, y, shapes)); structpred.check_oracle(MatchingOracle())"
    assert float(run(f"{code}\n{score}", tmp_path)) > 0.9


def test_the_loss_how_to_keeps_the_rules_of_losses(tmp_path: Path) -> None:
    """The how-to's own loss costs nothing for the truth, else the sum of the distances, for every matching; and it trains."""
    code = python_of("howto/add_a_loss.md", "## Check it", "## Use it from the shell")
    scope: dict[str, object] = {}
    exec(compile(code, "add_a_loss.md", "exec"), scope)
    loss, oracle = scope["Displaced"](), scope["AssignmentOracle"]()  # type: ignore[operator]
    truth = np.array([2, 0, 3, 1])
    constant, costs = loss.costs(truth, (4,), oracle)
    for labels in oracle.enumerate((4,)):
        assert constant + costs[oracle.parts(labels, (4,))].sum() == np.abs(labels - truth).sum()
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(16, 3)) for _ in range(6)]
    model = scope["model"].fit(X, [truth] * 6, [(4,)] * 6)  # type: ignore[attr-defined]
    assert model.certificate_.gap >= 0


@pytest.mark.slow
def test_the_feature_map_how_to_runs(tmp_path: Path) -> None:
    """Every block runs. The map satisfies its contract, goes through a grid search. Also many classes."""
    own = python_of("howto/add_a_feature_map.md").split("class SparseVector(")[0]
    lines = run(own, tmp_path).splitlines()
    assert float(lines[0]) > 0.8
    assert float(lines[1]) > 0.8
    assert float(lines[2].split()[0]) > 0.9
    assert "gap" in lines[2]


def test_the_regulariser_of_the_how_to_keeps_its_contract() -> None:
    """The page's own class runs as it stands, and takes the scales of groups by name."""
    code = python_of("howto/add_a_regulariser.md", "What differs from group to group", "Below the estimators")
    scope: dict = {}
    exec(compile(code, "add_a_regulariser.md", "exec"), scope)
    made = scope["Scales"](transitions=10.0).grouped(np.array([0, 8, 24]), ["w[0]", "transitions"])
    assert made.dual_map().scale.tolist() == [1.0, 10.0]
    X, y = [np.ones((4, 1))] * 2, [["a", "b", "a", "b"]] * 2  # told by transitions alone
    free, held = (scope["model"].set_params(regulariser=scope["Scales"](transitions=s)).fit(X, y).coef_ for s in (1.0, 0.0))
    assert free[-16:].any() > held[-16:].any()  # two rows of eight weights each: a scale of zero keeps them at zero
    assert not scope["sparse"].set_params(C=1.0).fit(X, y).coef_.all()
