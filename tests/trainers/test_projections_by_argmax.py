"""Excessive gaps and projected ascent over oracles that have no projection: active sets of what argmax finds."""

from typing import Any

import numpy as np
import pytest
from label_set_cases import task_of_kind
from training_cases import PlainChain, chain_task, optimum, problem

from structpred.errors import MissingCapabilityError
from structpred.models import MultiLabelMRF
from structpred.oracles.branch_and_bound import BranchAndBoundMRF
from structpred.oracles.qpbo import QPBO
from structpred.task.callback_task import CallbackTask
from structpred.task.task import Task
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.pragam import Pragam
from structpred.trainers.projected_ascent import ProjectedAscent

LAM = 0.2
TRAINERS: dict[str, tuple[Any, int]] = {"pragam": (Pragam, 120), "projected_ascent": (ProjectedAscent, 120)}


def label_sets(oracle: Any) -> Task:
    """Five labels, all pairs joined, by this oracle."""
    task = task_of_kind("complete", n=6, weighted=True)
    return Task(task.features, oracle, task.labels, task.shapes, task.loss, sample_weight=task.sample_weight)


CASES: dict[str, Any] = {
    "three methods": lambda: chain_task(1, n=3, longest=3, oracle=PlainChain(), weighted=True),
    "enumerated": lambda: task_of_kind("complete", n=6),
    "branch and bound": lambda: label_sets(BranchAndBoundMRF()),
    "paths": lambda: task_of_kind("paths", n=6),
}


@pytest.mark.mostly_slow
@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("case", CASES)
def test_bounds_enclose_the_optimum_and_meet_there(case: str, trainer: str) -> None:
    """At every step the dual is below, the primal above the value of a convex program over all outputs; the gap closes."""
    task = CASES[case]()
    assert not hasattr(task.oracle, "project")
    known = chain_task(1, n=3, longest=3, weighted=True) if case == "three methods" else task
    best, w = optimum(known, LAM)
    kind, passes = TRAINERS[trainer]
    result = train(problem(task, LAM), kind(), RunSettings(max_iter=passes, tol=1e-4, check_every=1))
    for row in result.history:
        assert row["dual"] <= best + 1e-7 <= row["primal"] + 2e-7
    assert result.certificate.gap <= 2e-3 * best
    np.testing.assert_allclose(result.weights, w, atol=0.1)


@pytest.mark.parametrize("trainer", TRAINERS)
def test_an_inexact_argmax_with_bounds_is_certified(trainer: str) -> None:
    """Points stay mixtures of outputs and values are bounds: the dual is below the optimum over outputs, the primal above it."""
    task = label_sets(QPBO())
    best = optimum(task, LAM)[0]
    result = train(problem(task, LAM), TRAINERS[trainer][0](), RunSettings(max_iter=30, check_every=1))
    for row in result.history:
        assert row["dual"] <= best + 1e-7 <= row["primal"] + 2e-7
    assert result.certificate.gap < 0.5 * best


@pytest.mark.parametrize("kind", [Pragam, ProjectedAscent])
def test_three_callbacks_have_no_parts_to_project(kind: Any) -> None:
    """A task without an oracle is refused in words."""
    eye = np.eye(2)
    task = CallbackTask([1.0], [0], 2, lambda x, y: x * eye[y], lambda y, k: float(y != k), lambda w, x, y, more: 1)
    with pytest.raises(MissingCapabilityError, match=r"needs .*project, but a three-callback task offers argmax alone"):
        train(problem(task), kind())


def test_label_sets_take_them_by_name(tmp_path: Any) -> None:
    """Whatever graph joins the labels; a resumed run has the same bits."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3))
    Y = (X @ rng.normal(size=(3, 4)) > 0).astype(int)
    for edges in ("tree", "complete"):
        model = MultiLabelMRF("pragam", edges=edges, max_iter=60, tol=1e-2, C=0.1).fit(X, Y)
        assert 0.0 <= model.certificate_.relative_gap <= 0.05
    settings = {"edges": "tree", "tol": 0.0, "checkpoint": tmp_path / "run"}
    MultiLabelMRF("pragam", max_iter=4, **settings).fit(X, Y)
    resumed = MultiLabelMRF("pragam", max_iter=8, resume=True, **settings).fit(X, Y)
    whole = MultiLabelMRF("pragam", max_iter=8, edges="tree", tol=0.0).fit(X, Y)
    assert resumed.coef_.tobytes() == whole.coef_.tobytes()
