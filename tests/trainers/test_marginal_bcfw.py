"""Block-coordinate Frank-Wolfe over marginals: a generic solver's optimum, a plain reference, valid bounds, runs that go on."""

from pathlib import Path

import numpy as np
import pytest
from label_set_cases import COSTS, FOREST, KINDS, problem_of_kind, task_of_kind
from test_resume import StopAt, same

from structpred.errors import CheckpointError, MissingCapabilityError, ParameterError
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming
from structpred.objectives.regularisers.l1 import L1
from structpred.oracles.branch_and_bound import BranchAndBoundMRF
from structpred.slack.surrogate import SlackRescaling
from structpred.task.task import Task
from structpred.trainers import loop, marginal_bcfw
from structpred.trainers.bcfw import BCFW
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.marginal_bcfw import MarginalBCFW
from structpred.trainers.problem import Problem


def optimum(problem: Problem) -> float:
    """The optimal value: a constraint for each output of each instance, from the task's plain calls alone."""
    cp = pytest.importorskip("cvxpy")
    task, rows, costs, of = problem.task, [], [], []
    for i in range(len(task)):
        (constant, ell), fixed = task.costs(i), task.features.fixed_scores(i)
        for y in task.oracle.enumerate(task.shapes[i]):
            on = task.oracle.parts(y, task.shapes[i])
            if fixed is not None and fixed[on].any():  # not closed
                continue
            difference, row = task.difference(i, y), np.zeros(task.dim)
            row[difference.indices] = difference.values
            rows.append(row)
            costs.append(constant + ell[on].sum())
            of.append(i)
    w, xi = cp.Variable(task.dim), cp.Variable(len(task))
    value = cp.Minimize(problem.lam / 2 * cp.sum_squares(w) + problem.p @ xi)
    program = cp.Problem(value, [xi[of] >= np.array(costs) - np.array(rows) @ w])
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return float(program.value)


@pytest.mark.parametrize("kind", KINDS)
def test_the_bounds_close_on_the_optimum_of_a_generic_solver(kind: str) -> None:
    """Dual below, primal above the optimum at every check, and both near it in the end; sample weights, zero ones too, count."""
    made = problem_of_kind(kind, weighted=True)
    result = train(made, MarginalBCFW(joint=True), RunSettings(max_iter=100, tol=5e-7, check_every=10))
    value = optimum(made)
    checked = [row for row in result.history if row["primal"] is not None]
    assert all(row["dual"] - 1e-8 <= value <= row["primal"] + 1e-8 for row in checked)
    assert result.certificate.dual == pytest.approx(value, rel=1e-6)
    assert result.certificate.primal == pytest.approx(value, rel=1e-6)
    duals = [row["dual"] for row in checked]
    assert (np.diff(duals) >= -1e-12).all()
    assert result.certificate.primal == pytest.approx(made.primal(result.weights), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [14, 60])
def test_large_c_does_not_keep_the_gap_open(kind: str, n: int) -> None:
    """With and without rows that separate; visits of one block after the other would leave most of the gap."""
    settings = RunSettings(max_iter=100, tol=1e-3, check_every=10)
    result = train(problem_of_kind(kind, 1e-4, n=n, weighted=True), MarginalBCFW(joint=True), settings)
    assert result.stop_reason == "tol"
    assert (np.diff([row["dual"] for row in result.history if row["dual"] is not None]) >= -1e-12).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_point_is_what_its_parts_say(kind: str) -> None:
    """After two passes: weights are the sum of the blocks, H_i is the surrogate's, gaps are those of the primal-dual pair, and
    marginals are feasible."""
    made = problem_of_kind(kind, weighted=True)
    trainer = MarginalBCFW(start=False, joint=True)
    state = trainer.init_state(made)
    for n_pass in range(2):
        for item in trainer.order(made, state, np.random.default_rng(n_pass), n_pass):
            trainer.update(made, state, int(item))
    blocks = marginal_bcfw._blocks(made)
    anew, losses = blocks.summed(state.point)
    np.testing.assert_allclose(anew.table, state.table, atol=1e-12)
    np.testing.assert_allclose(anew.pairs, state.pairs, atol=1e-12)
    w, counted = blocks.weights(state.point), made.p > 0
    np.testing.assert_allclose(blocks.values(state.point), np.maximum(made.surrogate.values(made.task, w), 0.0), atol=1e-12)
    primal, dual = trainer.objective(made, state)
    assert dual == pytest.approx(float(made.p @ losses) - made.lam / 2 * float(w @ w), abs=1e-12)
    before = [array.copy() for array in state.point]
    gaps, values = np.zeros((2, len(made.p)))
    for i in range(len(made.p)):  # one at a time, so that all gaps are those of one point
        blocks.sweep(type(state.point)(*(array.copy() for array in before)), np.array([i]), gaps, values)
    assert float(made.p @ gaps) == pytest.approx(primal - dual, abs=1e-12)
    assert (gaps[counted] >= 0.0).all()
    assert state.nodes.min() >= 0.0
    assert state.nodes.max() <= 1.0 + 1e-12
    if state.listed.size:
        masses = np.add.reduceat(state.nodes, blocks.runs[:, 0], axis=1)  # of each tree
        np.testing.assert_allclose(masses, 1.0, atol=1e-12)


def plain_visit(V: np.ndarray, m: np.ndarray, x: np.ndarray, y: np.ndarray, upper: float) -> None:
    """The steps of closed sets as the page of the trainer says them, for FOREST; V and m change."""
    q, parents = 2 * upper * float(x @ x), FOREST.parents
    below = {v: [k for k in range(5) if k == v or FOREST.ancestors[k, v]] for v in range(5)}

    def slopes() -> np.ndarray:
        return 2 * x @ V + COSTS * (1 - 2 * y)

    def move(labels: list[int], target: np.ndarray) -> None:
        d = np.zeros(5)
        d[labels] = target[labels] - m[labels]
        gain = float(slopes() @ d)
        if gain > 0:
            change = min(1.0, gain / (q * float(d @ d))) * d
            m[:] += change
            V[:] -= upper * np.outer(x, change)

    def best(top: int) -> np.ndarray:
        rows = np.array([r for r in np.ndindex(*[2] * 5) if FOREST.broken(np.array([r])) is None])
        outside = [k for k in range(5) if k not in below[top]]
        above = np.flatnonzero(FOREST.ancestors[top])
        rows = rows[(rows[:, [k for k in outside if k not in above]] == 0).all(axis=1) & (rows[:, above] == 1).all(axis=1)]
        return rows[(rows[:, below[top]] @ slopes()[below[top]]).round(9).argmax()]

    roots = [v for v in range(5) if not parents[v]]
    for top, target in [(v, best(v)) for v in roots]:
        move(below[top], target)
    order = [1, 0, 2, 3, 4]  # depth first
    for v in order[::-1]:
        cap = m[parents[v][0]] if parents[v] else 1.0
        if len(below[v]) > 1:
            move(below[v], cap * best(v))
        low = max((m[k] for k in FOREST.children[v]), default=0.0)
        change = np.zeros(5)
        change[v] = min(max(m[v] + slopes()[v] / q, low), cap) - m[v]
        m[:] += change
        V[:] -= upper * np.outer(x, change)


def test_compiled_visits_are_the_plain_ones() -> None:
    """Three passes over closed sets, label by label in plain NumPy, give the same marginals and weights."""
    made = problem_of_kind("closed", weighted=True)
    trainer, task = MarginalBCFW(start=False, joint=True), made.task
    state = trainer.init_state(made)
    X = task.features.nodes
    dense = np.zeros((len(task), X.n_columns))
    for i in range(len(task)):
        dense[i, X.indices[X.indptr[i] : X.indptr[i + 1]]] = X.values[X.indptr[i] : X.indptr[i + 1]]
    V, m = np.zeros((X.n_columns, 5)), np.stack(task.labels).astype(float)
    for n_pass in range(3):
        items = trainer.order(made, state, np.random.default_rng(n_pass), n_pass)
        for i in state.visits.tolist():
            if made.p[i] > 0:
                plain_visit(V, m[i], dense[i], task.labels[i], made.p[i] / made.lam)
        for item in items[items >= 0]:
            trainer.update(made, state, int(item))
    found = marginal_bcfw._blocks(made).weights(state.point).reshape(5, -1, 2)
    np.testing.assert_allclose(found[:, :, 1], V.T, atol=1e-12)
    np.testing.assert_allclose(found[:, :, 0], -V.T, atol=1e-12)


@pytest.mark.parametrize("kind", ["complete", "closed", "paths"])
def test_it_agrees_with_frank_wolfe_over_features(kind: str) -> None:
    """The certificates of both overlap, and that over marginals is the tighter one after as many passes."""
    made = problem_of_kind(kind)
    ours, theirs = (train(made, t, RunSettings(max_iter=60)).certificate for t in (MarginalBCFW(joint=True), BCFW()))
    assert ours.dual <= theirs.primal
    assert theirs.dual <= ours.primal
    assert ours.gap < theirs.gap


@pytest.mark.parametrize("kind", KINDS)
def test_a_broken_run_ends_like_the_unbroken_one(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped within passes of several compiled calls, and resumed, to the last bit; a short run goes on likewise."""
    monkeypatch.setattr(marginal_bcfw, "CALL", 500)
    settings, file = {"max_iter": 6, "check_every": 4, "seed": 3}, tmp_path / "run.ckpt"
    unbroken = train(problem_of_kind(kind, weighted=True), MarginalBCFW(joint=True), RunSettings(**settings))
    for k, stop in enumerate((1, 3)):
        monkeypatch.setattr(loop, "Interrupts", lambda stop=stop: StopAt(stop))
        again = RunSettings(**settings, checkpoint=file, resume=k > 0)
        assert train(problem_of_kind(kind, weighted=True), MarginalBCFW(joint=True), again).stop_reason == "interrupted"
    monkeypatch.setattr(loop, "Interrupts", lambda: StopAt(10**9))
    same(
        train(
            problem_of_kind(kind, weighted=True), MarginalBCFW(joint=True), RunSettings(**settings, checkpoint=file, resume=True)
        ),
        unbroken,
    )
    other = problem_of_kind("none" if kind != "none" else "closed")
    with pytest.raises(CheckpointError):
        train(other, MarginalBCFW(joint=True), RunSettings(**settings, checkpoint=file, resume=True))


def test_independent_svms_come_first() -> None:
    """The first weights are those of linear SVMs with C_svm = 2 C, later ones the dual's, and never is the objective worse."""
    made = problem_of_kind("complete", n=60)
    svm, value = marginal_bcfw._independent(made)
    first = train(made, MarginalBCFW(joint=True), RunSettings(max_iter=1))
    assert first.weights.tobytes() == svm.tobytes()
    assert first.certificate.primal == value
    assert train(made, MarginalBCFW(start=False, joint=True), RunSettings(max_iter=1)).certificate.primal > value
    last = train(made, MarginalBCFW(joint=True), RunSettings(max_iter=100))
    assert last.certificate.primal < value
    without = task_of_kind("none", n=60)  # the same labels, each a problem of its own
    alone = train(Problem(without, MarginRescaling(), made.lam), MarginalBCFW(joint=True), RunSettings(max_iter=1000, tol=1e-6))
    assert alone.certificate.primal <= value
    assert value == pytest.approx(alone.certificate.primal, rel=0.01)


def test_what_it_does_not_serve_is_refused_before_any_work() -> None:
    """Other surrogates, regularisers, oracles, losses and structures: an error that says what to take."""
    task = task_of_kind("complete")
    with pytest.raises(ParameterError, match="cannot minimise SlackRescaling"):
        train(Problem(task, SlackRescaling(), 0.1), MarginalBCFW(joint=True))
    with pytest.raises(MissingCapabilityError, match="squared_norm"):
        train(Problem(task, MarginRescaling(), 0.1, regulariser=L1(0.1)), MarginalBCFW(joint=True))
    other = Task(task.features, BranchAndBoundMRF(), task.labels, task.shapes, Hamming())
    with pytest.raises(ParameterError, match="not with BranchAndBoundMRF; take bcfw"):
        train(Problem(other, MarginRescaling(), 0.1), MarginalBCFW(joint=True))
    assert not MarginalBCFW.applies(other)
    assert MarginalBCFW.applies(task)


def test_outputs_of_many_labels_are_compared_a_byte_each() -> None:
    """Products of listed outputs on a path of 300 labels, past what a byte counts, are half the distances of their features."""
    from structpred.fused._listed_set_kernels import SLOTS, products

    outputs = np.random.default_rng(0).integers(0, 2, (300, SLOTS)).astype(np.int8)
    outputs[:, 1] = 1 - outputs[:, 0]
    ends, none = np.stack((np.arange(299), np.arange(1, 300)), axis=1), np.empty((0, SLOTS), np.int64)
    room = np.empty((300, 2), np.uint64), np.empty(2, np.uint64), np.zeros(SLOTS, np.bool_), np.empty((SLOTS, SLOTS))
    out = np.empty(SLOTS)
    products((ends, outputs[None], np.array([[0, SLOTS]]), none, np.empty((0, 2), np.int64)), outputs, 0, 2.5, room, out)
    other = outputs != outputs[:, :1]
    np.testing.assert_array_equal(out, -2.5 * other.sum(axis=0) - (other[1:] | other[:-1]).sum(axis=0))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_larger_sets_stay_within_their_bounds(kind: str) -> None:
    """Two hundred instances at three strengths of the regulariser: no gap is negative, and dual values never fall."""
    for lam in (1e-4, 1e-2, 1.0):
        result = train(
            problem_of_kind(kind, lam, n=200, seed=1), MarginalBCFW(joint=True), RunSettings(max_iter=40, check_every=1)
        )
        assert all(row["gap"] >= -1e-10 * row["primal"] for row in result.history)
        assert (np.diff([row["dual"] for row in result.history]) >= -1e-10).all()
