"""Compiled steps are plain steps, for each kind of data: the same bits, but for the sums that task/plain_steps.py names."""

from collections.abc import Callable
from typing import Any

import kernel_cases
import numpy as np
import pytest
from test_graph_updates import task_of
from test_tree_updates import tree_task
from training_cases import chain_task, multiclass_task

from structpred.features.graphs import GraphFeatures
from structpred.fused.chains import ChainSteps, SequenceSteps
from structpred.fused.graphs import GraphSteps
from structpred.fused.trees import TreeSteps
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import ExtraParts, Hamming, LabelCosts
from structpred.objectives.regularisers.l2 import L2
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.dual_mrf import DualMRF
from structpred.oracles.mrf import graph_shape
from structpred.oracles.projective import ProjectiveOracle
from structpred.task import plain_steps
from structpred.task.fast.part_steps import PartSteps
from structpred.task.plain_steps import PlainSteps
from structpred.task.task import Task
from structpred.trainers.corrective import Corrective
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.mira import MIRA
from structpred.trainers.online.updates import updates
from structpred.trainers.problem import Problem

COSTS = np.array([[0.0, 1.0, 2.5], [0.5, 0.0, 1.0], [3.0, 1.5, 0.0]])


def bounded() -> Task:
    """Cycles, for an oracle that gives bounds."""
    rng, shape = np.random.default_rng(5), graph_shape(3, 3, [(0, 1), (1, 2), (0, 2)])
    features = GraphFeatures([shape] * 20, [rng.normal(size=(3, 3)) for _ in range(20)], n_states=3)
    return Task(features, DualMRF(), [rng.integers(0, 3, 3) for _ in range(20)], [shape] * 20, Hamming())


#: each kind of data, and the steps that it has
KINDS: dict[str, tuple[Callable[[], Task], type[PlainSteps]]] = {
    "sequences": (lambda: chain_task(1, 40, weighted=True, loss=LabelCosts(COSTS)), SequenceSteps),
    "sequences, one cost": (lambda: chain_task(2, 40, weighted=True, dtype=np.float32), SequenceSteps),
    "sequences, costs of parts": (lambda: chain_task(3, 40, loss=ExtraParts()), PartSteps),
    "kernels": (lambda: kernel_cases.both(L2())[1].task, ChainSteps),
    "projective trees": (lambda: tree_task(ProjectiveOracle(), "pruned"), TreeSteps),
    "trees": (lambda: tree_task(ArborescenceOracle(), "weighted"), TreeSteps),
    "trees with fixed scores": (lambda: tree_task(ArborescenceOracle(False), "fixed"), TreeSteps),
    "graphs": (lambda: task_of("graphs"), GraphSteps),
    "forests": (lambda: task_of("forests", dtype=np.float32), GraphSteps),
    "label sets": (lambda: task_of("complete"), GraphSteps),
    "paths": (lambda: task_of("paths"), GraphSteps),
    "graphs with bounds": (bounded, PartSteps),
    "classes": (multiclass_task, PartSteps),
}
#: steps whose sweeps, and whose log losses, are summed otherwise than by single steps
OWN_VIOLATIONS, OWN_LIKELIHOOD = (ChainSteps, TreeSteps), (SequenceSteps, TreeSteps)
every_kind = pytest.mark.parametrize("kind", KINDS)


def both(kind: str) -> tuple[Task, Task]:
    """The task, whose steps are those that it should have, and the same one with plain steps."""
    task = KINDS[kind][0]()
    given = task.features, task.oracle, task.labels, task.shapes, task.loss
    plain = Task(*given, token_weights=task.token_weights, sample_weight=task.sample_weight, compiled=False)
    assert type(plain.steps) is PlainSteps
    assert isinstance(task.steps, KINDS[kind][1])
    return task, plain


def weights(task: Task, size: float = 0.5) -> Any:
    """Random ones."""
    return (size * np.random.default_rng(7).normal(size=task.dim)).astype(task.dtype)


def same(found: Any, wanted: Any, exact: bool = True) -> None:
    """The same bits; or 1e-11, relative to the largest."""
    a, b = np.asarray(found), np.asarray(wanted)
    assert a.dtype == b.dtype
    if exact:
        assert a.tobytes() == b.tobytes()
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-11 * (1.0 + np.abs(b).max(initial=0.0)))


@pytest.mark.mostly_slow
@every_kind
def test_one(kind: str) -> None:
    """Difference, loss, violation and bound of every instance, at any scale; and the parts found, where they are kept."""
    task, plain = both(kind)
    for size in (0.0, 1e-6, 0.5, 1e4):
        w = weights(task, size)
        for scale, loss_weight in ((1.0, 1.0), (0.37, 0.0), (1.0, 9.0)):
            for i in range(len(task)):
                ours, others = task.step(w, i, loss_weight, scale), plain.step(w, i, loss_weight, scale)
                same(ours.difference.indices, others.difference.indices)
                same(ours.difference.values, others.difference.values)
                same(ours[1:], others[1:], scale == 1.0 or kind != "kernels")
                if (parts := task.steps.last_parts(i)) is not None and loss_weight:
                    constant, costs = task.costs(i)
                    assert constant + costs[parts].sum() == pytest.approx(ours.loss)


@every_kind
def test_block(kind: str) -> None:
    """Sums of steps have the bits of single ones, and so have violations but for those of chains and trees."""
    task, plain = both(kind)
    w, shares = weights(task), np.linspace(0.1, 2.0, len(task) - 3)
    for loss_weight in (0.0, 0.7):
        rows = range(2, len(task) - 1)
        for a, b in zip(*(one.terms(w, rows, shares, loss_weight=loss_weight) for one in (task, plain)), strict=True):
            same(a, b)
        same(task.violations(w, loss_weight), plain.violations(w, loss_weight), not isinstance(task.steps, OWN_VIOLATIONS))


@every_kind
def test_visit(kind: str) -> None:
    """Weights after updates in compiled calls, where there are any, are those after updates by single plain steps."""
    found = []
    for task in both(kind):
        problem, trainer = Problem(task, MarginRescaling(), 0.05), MIRA()
        state, order = trainer.init_state(problem), np.random.default_rng(3).integers(0, len(task), 100)
        for visited in updates(problem, trainer, state, order):
            state = visited.state
        found.append((state.weights.v, task.compiled_updates()))
    same(found[0][0], found[1][0])
    assert np.abs(found[0][0]).max() > 0.0
    assert (found[0][1] is not None) == (KINDS[kind][1] in (SequenceSteps, TreeSteps, GraphSteps))
    assert found[1][1] is None


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "bounds" not in kind])
def test_likelihood(kind: str) -> None:
    """Log losses, their gradient and its squares have the bits of single steps, but for those of sequences and trees."""
    task, plain = both(kind)
    w, shares = weights(task), np.random.default_rng(2).uniform(0.1, 2.0, len(task))
    exact = not isinstance(task.steps, OWN_LIKELIHOOD)
    for a, b in zip(task.log_losses(w, shares), plain.log_losses(w, shares), strict=True):
        same(a, b, exact)
    same(task.squared_gradients(w, shares), plain.squared_gradients(w, shares), exact)


@pytest.mark.parametrize("kind", ["sequences", "graphs", "label sets"])
def test_corners(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Visits of corners: those of graphs have the bits of plain calls; those of sequences read products off the corners, and what
    differs by rounding may decide in the next pass which corner is taken.
    """
    found, passes = [], 1 if kind == "sequences" else 3
    for compiled in (True, False):
        task = KINDS[kind][0]()
        if not compiled:
            monkeypatch.setattr(task.features, "corner_calls", None, raising=True)
        problem = Problem(task, MarginRescaling(), 0.1)
        found.append(train(problem, Corrective(corners=4), RunSettings(max_iter=passes, seed=3)).weights)
    same(*found, exact=kind != "sequences")
    assert np.abs(found[0]).max() > 0.0


def test_what_is_summed_otherwise_is_named() -> None:
    """The page that says what a step is names each place whose last bits are its own."""
    for name in (
        "ChainSteps.viol",
        "TreeSteps.viol",
        "SequenceSteps.log_losses",
        "add_spread",
        "scale of kernels",
        "corners of seq",
    ):
        assert name in (plain_steps.__doc__ or "")
