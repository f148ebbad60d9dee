"""Fully corrective blocks: the optimum, bounds at every check, corners that are bounded in number, merged and fit the weights."""

from copy import copy

import numpy as np
import pytest
from regulariser_cases import NonNegative
from training_cases import assignment_task, chain_task, multiclass_task, optimum, problem

from structpred.data.sequences import PackedSequences
from structpred.errors import NoUpdateWarning, ParameterError
from structpred.features.graphs import GraphFeatures
from structpred.features.sequences import SequenceFeatures
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming
from structpred.oracles.mrf import graph_shape
from structpred.oracles.mrf_enumeration import EnumerationMRF
from structpred.oracles.multiclass import MulticlassOracle
from structpred.slack.surrogate import SlackRescaling
from structpred.task.callback_task import CallbackTask
from structpred.task.fast import _corner_kernels as kernels
from structpred.task.task import Task
from structpred.trainers.bcfw import BCFW
from structpred.trainers.blocks.corner_spaces import corner_space
from structpred.trainers.corrective import Corrective
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.problem import Problem

VARIANTS = {
    "default": Corrective,
    "merging": lambda: Corrective(corners=3, averaged=False),
    "cached": lambda: Corrective(cached_passes=100),
    "plain": lambda: Corrective(cached_passes=0, averaged=False),
}


def label_sets(n=6):
    """Sets of three labels, all joined, over two features."""
    rng, shape = np.random.default_rng(1), graph_shape(3, 2, [(0, 1), (0, 2), (1, 2)])
    options = {"n_node_types": 3, "n_edge_types": 3, "n_states": 2}
    rows = [rng.normal(size=(1, 2)) for _ in range(n)]
    features = GraphFeatures([shape] * n, rows, [[0, 0, 0]] * n, [[0, 1, 2]] * n, edge_type=[[0, 1, 2]] * n, **options)
    return Task(features, EnumerationMRF(), [rng.integers(0, 2, 3) for _ in range(n)], [shape] * n, Hamming())


SMALL = {
    "label sets": (label_sets, 0.3),
    "chain": (lambda: chain_task(0, n=6, longest=3, n_labels=2), 0.3),
    "assignment": (lambda: assignment_task(1), 0.3),
}


@pytest.mark.mostly_slow
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("make", "lam"), SMALL.values(), ids=SMALL)
def test_the_optimum_is_that_of_the_quadratic_program(make, lam, variant) -> None:
    """Primal and dual meet at the value that an independent solver finds, to 1e-6; near it where corners are merged."""
    pytest.importorskip("cvxpy")
    task = make()
    result = train(problem(task, lam), VARIANTS[variant](), RunSettings(max_iter=200, tol=2e-7, check_every=10))
    value, w = optimum(task, lam)
    assert result.certificate.dual - 1e-9 <= value <= result.certificate.primal + 1e-9
    assert result.certificate.primal == pytest.approx(value, abs=1e-3 if variant == "merging" else 1e-6)
    np.testing.assert_allclose(result.weights, w, atol=0.05 if variant == "merging" else 5e-3)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dual_never_exceeds_primal_nor_falls(variant, dtype) -> None:
    """At every pass, margin and slack rescaling, sample weights, weights in either type."""
    for surrogate in (MarginRescaling(), SlackRescaling()):
        task = chain_task(1, weighted=True, dtype=dtype)
        settings = RunSettings(max_iter=8, check_every=1)
        rows = train(Problem(task, surrogate, 0.02), VARIANTS[variant](), settings).history
        primal, dual = (np.array([row[key] for row in rows]) for key in ("primal", "dual"))
        assert (dual <= primal + (1e-9 if dtype == np.float64 else 1e-6)).all()
        assert (np.diff(dual) >= 0.0).all()
        assert dual[-1] > dual[0] > 0


def visited(task, trainer, lam=0.01, passes=6):
    """(problem, state) after some passes."""
    prob = problem(task, lam)
    state, rng = trainer.init_state(prob), np.random.default_rng(0)
    for n_pass in range(passes):
        for item in trainer.order(prob, state, rng, n_pass).tolist():
            state, _ = trainer.update(prob, state, item)
        state = trainer.finish_pass(prob, state)
    return prob, state


def corner(task, state, i, k):
    """The difference of features that belongs to a corner, as a dense vector."""
    return task.features.adjoint(i, *state.corners.block(i * state.blocks.alpha.shape[1] + k)).dense(task.dim)


def dual_point(trainer, prob, state):
    """(loss, u)."""
    return (prob.p @ (state.blocks.alpha * state.blocks.offset).sum(axis=1)).item(), trainer.dual_point(prob, state)


@pytest.mark.parametrize("make", [chain_task, assignment_task])
def test_what_is_remembered_fits_together(make) -> None:
    """With merged corners, too: at most K a block, weights on the simplex, w the sum of the corners, Gram matrices theirs."""
    trainer = Corrective(corners=4, cached_passes=2)
    prob, state = visited(make(2), trainer)
    blocks = state.blocks
    assert blocks.counts.max() == 4
    assert blocks.fault(prob.task.dim) is None
    assert state.corners.fault(trainer.state_dim(prob)) is None
    assert state.fault(prob.task.dim) is None
    np.testing.assert_allclose(state.weights.v, dual_point(trainer, prob, state)[1], atol=1e-9)
    for i in range(len(prob.task)):
        rows = np.array([corner(prob.task, state, i, k) for k in range(blocks.counts[i])])
        gram = [[blocks.gram[i, kernels.entry(k, m)] for m in range(len(rows))] for k in range(len(rows))]
        np.testing.assert_allclose(gram, rows @ rows.T, atol=1e-9)


def test_merging_keeps_the_dual_point() -> None:
    """Two corners become their mean with the weight of both: loss, u and so the dual value stay."""
    trainer = Corrective(corners=8)
    prob, state = visited(assignment_task(2), trainer)
    i = int((state.blocks.alpha > 0).sum(axis=1).argmax())
    a, b = (1 + np.flatnonzero(state.blocks.alpha[i, 1:]))[:2]
    before = dual_point(trainer, prob, state)
    corners = state.corners.with_space(2 * trainer.state_dim(prob))
    state = state._replace(corners=corners)
    kernels.merge(corners[:], state.blocks[:], i, a, b)
    kernels.drop(corners[:], state.blocks[:], i, b)
    after = dual_point(trainer, prob, state)
    assert after[0] == pytest.approx(before[0], abs=1e-12)
    np.testing.assert_allclose(after[1], before[1], atol=1e-12)
    assert state.blocks.fault(prob.task.dim) is None


def test_memory_does_not_grow_with_passes() -> None:
    """What is stored stays below K corners a block and their spare room, however long a run is."""
    trainer, task = Corrective(corners=4), assignment_task(2)
    sizes = [int(visited(task, trainer, passes=n)[1].corners.limit) for n in (5, 40)]
    longest = task.inference.sizes.max()
    assert max(sizes) <= 1.25 * len(task) * 4 * longest + 4 * longest


@pytest.mark.slow
def test_fewer_passes_than_plain_blocks() -> None:
    """A gap of a thousandth takes less than half of the oracle calls."""
    settings = RunSettings(max_iter=400, tol=1e-3, check_every=1)
    calls = [train(problem(assignment_task(1), 0.05), t, settings).passes for t in (Corrective(), BCFW(averaged=False))]
    assert 2 * calls[0] < calls[1]


def test_cached_passes_end_when_there_is_little_left_to_do() -> None:
    """They raise the dual without a call of the oracle; with a hundred allowed, few are made."""
    results = [
        train(problem(assignment_task(2, n=20), 0.02), Corrective(cached_passes=k), RunSettings(max_iter=5)) for k in (0, 5)
    ]
    assert {r.history[-1]["oracle_calls"] for r in results} == {100}
    assert results[1].certificate.dual > results[0].certificate.dual
    trainer = Corrective(cached_passes=100)
    prob, state = visited(assignment_task(2, n=20), trainer)
    steps = int(state.steps)
    assert state.cached <= 0.2 * state.gaps.sum()
    assert not trainer.update(prob, state, -1)[1]
    assert state.steps == steps < 6 * 101 * 20 // 2


def test_the_better_of_average_and_last_iterate_is_returned() -> None:
    """The primal of the certificate is the smaller one, and belongs to the weights returned."""
    trainer, seen = Corrective(), set()
    for passes in (1, 3):
        prob = problem(assignment_task(1), 0.3)
        result = train(prob, trainer, RunSettings(max_iter=passes))
        assert result.certificate.primal == prob.primal(result.weights)
        _, state = visited(assignment_task(1), trainer, 0.3, passes)
        primals = prob.primal(state.weights.current()), prob.primal(state.weights.average())
        assert trainer.objective(prob, state)[0] == min(primals) == prob.primal(trainer.weights(prob, state))
        seen.add(bool(state.last))
    assert seen == {True, False}


def test_three_functions_are_enough() -> None:
    """A task of black boxes is trained to the same optimum as the task that splits over parts."""
    task = multiclass_task(1, n=8)

    def best(w, i, y, loss_weight):
        return int(np.argmax(task.scores(w, i) + loss_weight * task.costs(i)[1]))

    def joint(i, y):
        return tuple(task.adjoint(i, np.array([y]), np.ones(1)))

    black = CallbackTask(range(8), [int(y[0]) for y in task.labels], task.dim, joint, lambda y, k: float(abs(y - k)), best)
    ends = [train(problem(made, 0.1), Corrective(), RunSettings(max_iter=300, tol=1e-7)).certificate for made in (task, black)]
    assert ends[0].primal == pytest.approx(ends[1].primal, abs=1e-6)


class Plain(SequenceFeatures):
    """The same features; a method of its own rules out compiled visits."""

    def adjoint(self, i, parts, counts):
        return super().adjoint(i, parts, counts)


@pytest.mark.parametrize("surrogate", [MarginRescaling(), SlackRescaling()], ids=["margin", "slack"])
def test_compiled_visits_do_what_plain_ones_do(surrogate) -> None:
    """Whole visits in compiled calls come to the optimum that visits in Python come to."""
    task, ends = chain_task(0, n=6, longest=3, n_labels=2, weighted=True), []
    plain = copy(task)
    plain.features = copy(task.features)
    plain.features.__class__ = Plain
    for made in (task, plain):
        prob = Problem(made, surrogate, 0.3)
        assert (corner_space(prob).compiled is None) == (made is plain)
        ends.append(train(prob, Corrective(cached_passes=3), RunSettings(max_iter=200, tol=1e-5)))
    assert [end.stop_reason for end in ends] == ["tol", "tol"]
    assert ends[0].certificate.primal == pytest.approx(ends[1].certificate.primal, rel=2e-5)


def test_corners_are_kept_as_parts() -> None:
    """What is stored does not grow with the number of features: three true parts and three found ones are six at most."""
    _, state = visited(assignment_task(2, d=40), Corrective(), passes=3)
    assert 1 < state.corners.length.max() <= 6


def test_expensive_oracles_are_asked_less_often() -> None:
    """One cached pass is allowed after a pass with a cheap oracle, three hundred with an expensive one, or a search."""
    rng = np.random.default_rng(0)
    for make, surrogate, most in (
        (chain_task, MarginRescaling(), 1),
        (chain_task, SlackRescaling(), 300),
        (label_sets, MarginRescaling(), 300),
    ):
        prob = Problem(make(), surrogate, 0.1)
        assert (Corrective().order(prob, Corrective().init_state(prob), rng, 0) < 0).sum() == most


def test_a_corner_with_parts_that_its_sample_lacks_is_refused() -> None:
    """A saved state is looked at block by block: compiled code would read past the end."""
    prob, state = visited(chain_task(2), Corrective(), passes=1)
    shortest = int(state.sizes.argmin())
    slot = shortest * 32 + 1
    state.corners.idx[state.corners.start[slot] + state.corners.length[slot] - 1] = state.sizes.max() - 1
    assert state.fault(prob.task.dim) == "corners.idx: a corner has parts that its sample does not have"


def test_settings_and_regularisers_that_do_not_fit_are_refused() -> None:
    """In words, before any work."""
    for options in ({"corners": 2}, {"cached_passes": -1}):
        with pytest.raises(ParameterError, match="corners must be >= 3 and cached_passes >= 0 or None"):
            Corrective(**options)


def test_maps_that_are_not_linear_train_too() -> None:
    """One-sided weights: the Gram matrix bounds how fast the dual bends, so bounds close and no weight is below zero."""
    made = Problem(assignment_task(), MarginRescaling(), 0.1, regulariser=NonNegative())
    result = train(made, Corrective(), RunSettings(max_iter=60, tol=1e-4))
    assert result.certificate.relative_gap <= 1e-4
    assert result.weights.min() == 0.0


def test_compiled_visits_say_whether_the_weights_moved() -> None:
    """Where every feature value is zero, corners change and the weights do not: the warning comes from compiled visits, too."""
    starts = np.arange(4)
    data = PackedSequences(starts, np.zeros(3, np.int32), np.zeros(3, np.float32), starts, 1)
    features = SequenceFeatures(data, 2, transitions=False, dtype=np.float64)
    zeros = problem(Task(features, MulticlassOracle(), [np.array([1])] * 3, [(2,)] * 3, Hamming()))
    assert corner_space(zeros).compiled is not None
    with pytest.warns(NoUpdateWarning):
        train(zeros, Corrective(), RunSettings(max_iter=1))
