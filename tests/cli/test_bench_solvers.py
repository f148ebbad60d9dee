"""Promises of `bench bmrm-lower-bound` and `bench linear-solvers`: what they print, and what they need."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from structpred.experiments.linear_solvers import (
    Course,
    LinearSolvers,
    Point,
    SolverTable,
    fit_liblinear,
    read_binary,
    validated,
)

Here = Callable[..., tuple[int, str, str]]


def test_the_lower_bound_needs_no_data(here: Here, tmp_path: Path) -> None:
    """A table for people, one line an iteration; as JSON, gaps equal to 1/(2 lambda t), the printed construction's last one 0."""
    code, out, err = here("bench", "bmrm-lower-bound", "--quick", cwd=tmp_path)
    assert code == 0, err
    assert len([line for line in out.splitlines() if line.split()[0].isdigit()]) == 7
    table = json.loads(here("bench", "bmrm-lower-bound", "--quick", "--json", cwd=tmp_path)[1])
    assert table["error"] < 1e-12
    assert [round(row["gap"], 4) for row in table["rows"]] == [5.0, 2.5, 1.6667, 1.25, 1.0, 0.8333, 0.7143]
    assert abs(table["rows"][-1]["printed"]) < 1e-12


@pytest.mark.slow
def test_solvers_of_linear_machines_are_compared(here: Here, data_dir: Path, tmp_path: Path) -> None:
    """A line for each solver with its certified gap next to liblinear's distance, all figures as JSON, and the picture."""
    common = ("bench", "linear-solvers", "--quick", "--only", "w8a", "--data", str(data_dir))
    code, out, err = here(*common, "--picture", "gaps.svg", cwd=tmp_path)
    assert code == 0, err
    assert {"bmrm", "ls_bmrm", "bcfw", "pegasos-n", "pegasos-1", "liblinear"} <= {
        line.split()[0] for line in out.splitlines() if line
    }
    assert "</svg>" in (tmp_path / "gaps.svg").read_text()
    (table,) = json.loads(here(*common, "--json", cwd=tmp_path)[1])["tables"]
    for course in table["courses"]:
        gaps = [point["gap"] for point in course["points"]]
        assert min(gaps) >= -1e-9
        assert gaps[-1] < 0.2 * gaps[0] or course["solver"] in ("bcfw", "liblinear", "pegasos-n", "pegasos-1")
        errors, seconds = ([point[name] for point in course["points"]] for name in ("error", "seconds"))
        assert errors == sorted(errors, reverse=True)
        assert seconds == sorted(seconds)
        assert -1e-9 <= errors[-1] <= gaps[-1] + 1e-9
    assert here(*common, "--picture", "gaps.txt", cwd=tmp_path)[0] != 0


def test_claims_are_met_only_where_the_goal_is_reached() -> None:
    """A solver that never comes to the goal meets no claim on it, and the line names the set, and when it was given up."""

    def ran(solver: str, *gaps: float, seconds: float = 0.1) -> Course:
        return Course(solver, [Point(k, seconds * k, 1.0, 2 * gap, 0.8, gap) for k, gap in enumerate(gaps, 1)])

    def table(name: str, *pragam: float) -> SolverTable:
        others = (
            ran("pragam_b", 0.1),
            ran("ls_bmrm", 0.1, 0.01, 1e-3),
            ran("pegasos-n", 0.1, 0.1, 0.1),
            ran("liblinear", 1e-3, seconds=0.2),
        )
        return SolverTable(name, 9, 9, 9, 0.1, 0.0, [ran("pragam", *pragam), *others, ran("sdca", 1e-4, seconds=0.01)])

    near, far = table("near", 0.1, 5e-4), table("far", 0.1, 0.01)
    found = LinearSolvers().claims([near, far])
    assert [one.met for one in LinearSolvers().claims([near])] == [True] * 6
    assert [one.met for one in found] == [False, False, False, False, True, True]
    assert [one.ours for one in found[:1] + found[3:5]] == [
        "near 2/3, not far >2/3", "near 2, not far 0.02 after 2", "near, far"
    ]  # fmt: skip
    assert [one.met for one in LinearSolvers().claims([table("fast", 1e-3)])] == [True, True, True, False, False, True]


def test_the_strength_is_that_with_the_fewest_errors_on_held_out_rows() -> None:
    """Of three on labels with noise, as another solver finds it; the largest where all are as good."""
    rng = np.random.default_rng(0)
    X = sparse.csr_matrix(rng.normal(size=(100, 30)))
    easy = np.where(X.toarray()[:, 0] > 0, 1, -1)
    noisy = np.where(rng.random(100) < 0.2, -easy, easy)
    scores = {k: held_out(X, noisy, 2.0**k) for k in (-12, -2, 3)}
    assert len(set(scores.values())) > 1
    assert validated((X, noisy), (-12, -2, 3)) == 2.0 ** max(scores, key=lambda k: (scores[k], k))
    assert validated((sparse.csr_matrix(np.outer(easy, [1.0, 0.0])), easy), (-12, -2)) == 0.25


def held_out(X: Any, y: Any, lam: float) -> float:
    """The share of every fifth row that is right after training on the others, by liblinear."""
    last = np.arange(len(y)) % 5 == 4
    w, _ = fit_liblinear(X[~last], y[~last], 1.0 / (lam * (~last).sum()), 10000, 1e-10)
    return float((np.where(X[last] @ w > 0, 1, -1) == y[last]).mean())


@pytest.mark.parametrize(
    ("name", "sizes"), [pytest.param("web8", (36437, 9109, 300), marks=pytest.mark.slow), ("enron", (1123, 579, 1001))]
)
def test_stand_ins_have_the_sizes_that_are_said(data_dir: Path, name: str, sizes: tuple[int, ...]) -> None:
    """web8 is w8a without its empty rows, 45,546 as in the paper; a class of Enron has both signs, half and half."""
    rows, test = read_binary(data_dir, name)
    assert (rows[0].shape[0], test[0].shape[0], rows[0].shape[1]) == sizes
    assert (np.diff(rows[0].indptr) > 0).all() or name != "web8"
    assert abs((rows[1] > 0).mean() - 0.5) < 0.05 or name == "web8"
