"""CCCP: rounds that lower the objective, to where none can; resumed and interrupted runs; what it refuses."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "core"))
from partial_cases import STRUCTURES, partial

from structpred.errors import ParameterError
from structpred.objectives.margin import MarginRescaling
from structpred.trainers.bcfw import BCFW
from structpred.trainers.cccp import CCCP
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.mira import MIRA
from structpred.trainers.one_slack import OneSlackCuttingPlane
from structpred.trainers.problem import Problem
from structpred.trainers.sgd import SGD


def objective(task, sets, w, lam):
    """lam/2 |w|^2 + the mean of max_y [loss(y) + score(y)] - max of the set, by listing all outputs."""
    total = 0.5 * lam * float(w @ w)
    for i, shape in enumerate(task.shapes):
        theta, (constant, costs) = task.features.scores(w, i), task.costs(i)
        score = {tuple(y.tolist()): theta[p := task.oracle.parts(y, shape)].sum() for y in task.oracle.enumerate(shape)}
        most = max((theta + costs)[task.oracle.parts(y, shape)].sum() for y in task.oracle.enumerate(shape)) + constant
        assert len(p)
        total += (most - max(score[tuple(y.tolist())] for y in sets[i])) / len(task)
    return total


@pytest.mark.mostly_slow
@pytest.mark.parametrize("trainer", [BCFW(averaged=False), OneSlackCuttingPlane(), SGD()], ids=lambda t: t.name)
@pytest.mark.parametrize("name", STRUCTURES)
def test_rounds_lower_the_objective(name, trainer):
    """The objective, checked by listing, falls from round to round, and the run ends where a round cannot lower it."""
    task, sets = partial(name)
    settings = RunSettings(max_iter=400, check_every=20)
    result = train(Problem(task, MarginRescaling(), 0.5), CCCP(trainer, passes=10, tol=2e-2), settings)
    found = result.report["round_objectives"]
    assert (np.diff(found) <= 0).all()
    assert result.certificate.primal == pytest.approx(objective(task, sets, result.weights, 0.5), rel=1e-6)
    assert result.certificate.primal == pytest.approx(found[-1])
    assert (result.certificate.dual, result.certificate.proven, result.certificate.local) == (None, False, True)
    if not isinstance(trainer, SGD):
        assert result.stop_reason == "tol"


def test_a_round_goes_on_from_the_blocks_that_are_still_true():
    """BCFW keeps the blocks whose truth did not change: its dual value bounds the new optimum."""
    task, _ = partial("tree")
    rng, trainer = np.random.default_rng(0), BCFW(averaged=False)
    first, second = (Problem(task.with_labels(task.completed(w)), MarginRescaling(), 0.1) for w in rng.normal(size=(2, task.dim)))
    state = trainer.init_state(first)
    for i in [*range(len(task))] * 20:
        state, _ = trainer.update(first, state, i)
    rows = [i for i in range(len(task)) if not np.array_equal(first.task.labels[i], second.task.labels[i])]
    assert 0 < len(rows) < len(task)
    state = trainer.relabelled(second, state, np.array(rows))
    assert state.blocks.length[rows].max() == 0 < state.blocks.length.max()
    optimum = train(second, BCFW(averaged=False), RunSettings(max_iter=300, tol=1e-6)).certificate
    primal, dual = trainer.objective(second, state)
    assert dual <= optimum.primal + 1e-9
    assert optimum.dual <= primal + 1e-9


def test_online_learners_go_on_from_their_weights():
    """A learner without a dual value keeps its weights from round to round, and takes all the passes."""
    task, _ = partial("chain")
    trainer = MIRA()
    problem = Problem(task.with_labels(task.completed(np.zeros(task.dim))), MarginRescaling(), 0.1)
    state = trainer.init_state(problem)
    assert trainer.relabelled(problem, state, np.array([1])) is state
    result = train(Problem(task, MarginRescaling(), 0.1), CCCP(trainer, passes=3, start=1), RunSettings(max_iter=13))
    assert (result.stop_reason, result.passes, len(result.report["round_objectives"])) == ("max_iter", 13, 4)


def test_the_first_passes_are_worth_something():
    """A run that ends before the first round returns the weights of the latent perceptron."""
    task, _ = partial("chain")
    problem = Problem(task, MarginRescaling(), 0.1)
    for passes in (2, 3):
        assert train(problem, CCCP(MIRA(), start=3), RunSettings(max_iter=passes)).weights.any()


def test_resumed_runs_have_the_same_bits(tmp_path):
    """A run that is continued from its checkpoint, within the first passes or a round, gives the weights of one run."""
    task, _ = partial("tree")
    for stop in (1, 2, 6):
        path, problem = tmp_path / f"{stop}.ckpt", Problem(task, MarginRescaling(), 0.05)
        whole = train(problem, CCCP(BCFW(), start=2), RunSettings(max_iter=14))
        train(Problem(task, MarginRescaling(), 0.05), CCCP(BCFW(), start=2), RunSettings(max_iter=stop, checkpoint=path))
        again = Problem(partial("tree")[0], MarginRescaling(), 0.05)
        resumed = train(again, CCCP(BCFW(), start=2), RunSettings(max_iter=14, checkpoint=path, resume=True))
        np.testing.assert_array_equal(resumed.weights, whole.weights)


def test_what_it_refuses():
    """Settings out of range, something that is no trainer, a task of which all is known."""
    for bad in (lambda: CCCP("bcfw"), lambda: CCCP(BCFW(), passes=0), lambda: CCCP(BCFW(), tol=-1.0), lambda: CCCP(CCCP(BCFW()))):
        with pytest.raises(ParameterError):
            bad()
    task, _ = partial("chain")
    with pytest.raises(ParameterError, match="all outputs are known"):
        train(Problem(task.take([0]), MarginRescaling(), 0.1), CCCP(BCFW()))
