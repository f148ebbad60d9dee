"""Sarawagi's search inside cutting planes for each sample: what it reaches, what it misses, and who refuses it."""

from typing import Any

import numpy as np
import pytest
from point_sets import Points
from slack_cases import CONSTRAINED, DIRECT, chains, hinges, slack_optimum, without

from structpred.distributed.fit import plan_of
from structpred.errors import ParameterError
from structpred.oracles.chain import ChainOracle
from structpred.slack.search import search
from structpred.slack.surrogate import SlackRescaling
from structpred.trainers.cccp import CCCP
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.n_slack import NSlackCuttingPlane
from structpred.trainers.names import require_surrogate, trainers
from structpred.trainers.problem import Problem

SARAWAGI = SlackRescaling("sarawagi")


def run(task: Any, lam: float, method: str, precision: float = 1e-2) -> tuple[float, Any]:
    """The objective by enumeration at the weights that n_slack ends with, and the result."""
    result = train(
        Problem(task, SlackRescaling(method), lam), NSlackCuttingPlane(precision=precision), RunSettings(max_iter=40, tol=1e-6)
    )
    w = result.weights
    return float(lam / 2 * w @ w + hinges(task, w).mean()), result


@pytest.mark.parametrize("precision", [1e-6, 1e-2])
def test_sarawagi_trains_where_plain_queries_suffice(precision: float) -> None:
    """At a strong regulariser the optimum of the quadratic program over all outputs, to the precision; the bounds enclose it."""
    pytest.importorskip("cvxpy")
    task = chains(0, n=6, longest=3)
    value, _ = slack_optimum(task, 1.0)
    found, result = run(task, 1.0, "sarawagi", precision)
    assert found == pytest.approx(value, abs=max(precision, 1e-5))
    assert result.certificate.dual <= value * (1 + 1e-6)
    assert result.certificate.primal >= found * (1 - 1e-9)


def test_what_it_misses_is_in_the_gap() -> None:
    """At a weak one it ends above angular search, which reaches the optimum; its gap says so, and that the searches leave it."""
    pytest.importorskip("cvxpy")
    task = chains(0, n=6, longest=3, oracle=without(ChainOracle(), *DIRECT))
    value, _ = slack_optimum(task, 0.1)
    found, result = run(task, 0.1, "sarawagi")
    assert result.certificate.dual <= value < 1.3 * value < found <= result.certificate.primal
    assert (result.stop_reason, result.certificate.proven) == ("search_bound", True)
    exact, by_angles = run(task, 0.1, "angular")
    assert exact == pytest.approx(value, abs=1e-2)
    assert by_angles.certificate.dual <= value * (1 + 1e-6)


def test_every_search_gets_the_slack_and_the_precision() -> None:
    """The threshold of a sample's search is the slack of its planes so far plus the precision: for no weight, the precision."""
    asked: list[tuple[int, float | None]] = []

    class Recording(SlackRescaling):
        def term_above(self, task: Any, w: Any, i: int, threshold: float | None, scale: Any = 1.0) -> Any:
            asked.append((i, threshold))
            return super().term_above(task, w, i, threshold, scale)

    task = chains(1, n=4, oracle=without(ChainOracle(), *DIRECT, *CONSTRAINED), sample_weight=np.array([1.0, 0.0, 2.0, 1.0]))
    problem, trainer = Problem(task, Recording("sarawagi"), 0.3), NSlackCuttingPlane(precision=0.05)
    state = trainer.init_state(problem)
    for n_pass in range(3):
        asked.clear()
        slacks = state.slacks.copy()
        for item in trainer.order(problem, state, np.random.default_rng(0), n_pass):
            state, _ = trainer.update(problem, state, int(item))
        wanted = [0.05 + (slack / p if p else 0.0) for slack, p in zip(slacks, problem.p, strict=True)]
        assert [threshold for _, threshold in asked] == pytest.approx(wanted)
    assert slacks.max() > 0.0


@pytest.mark.parametrize("name", sorted(set(trainers()) - {"n_slack"}))
def test_other_trainers_refuse_it(name: str) -> None:
    """No other trainer knows a slack; each says so, and names the one that does."""
    with pytest.raises(ParameterError, match=r"whose search needs the slack of each sample; trainers that can: n_slack$"):
        require_surrogate(trainers()[name](), SARAWAGI)


def test_it_is_refused_before_training_and_over_shards() -> None:
    """`train` refuses before any step, shards know no slack, a trainer that runs n_slack takes it, and a slack of 0 is none."""
    task = chains(0)
    with pytest.raises(ParameterError, match="trainers that can: n_slack"):
        train(Problem(task, SARAWAGI, 0.1), trainers()["one_slack"]())
    with pytest.raises(ParameterError, match="needs the slack of each sample, which shards do not know"):
        plan_of(NSlackCuttingPlane(), SARAWAGI, 0)
    require_surrogate(CCCP(NSlackCuttingPlane()), SARAWAGI)
    with pytest.raises(ParameterError, match=r"the precision of n_slack; got 0\.0"):
        train(Problem(task, SARAWAGI, 0.1), NSlackCuttingPlane(precision=0.0))
    with pytest.raises(ParameterError, match="needs a threshold > 0"):
        SARAWAGI.term(task, np.zeros(task.dim), 0)


def test_values_need_no_slack() -> None:
    """They are those of hull search: upper bounds of the hinge."""
    task = chains(3, oracle=without(ChainOracle(), *DIRECT))
    w = 0.4 * np.random.default_rng(0).normal(size=task.dim)
    np.testing.assert_array_equal(SARAWAGI.values(task, w), SlackRescaling("hull").values(task, w))
    assert (SARAWAGI.values(task, w) >= hinges(task, w) - 1e-9).all()


def test_a_tiny_slack_is_searched_as_far_as_the_truth_reaches() -> None:
    """An output that the truth hides up to lam = 1/2 is found above a slack of 1e-6, which ends the range of the losses at 1."""
    result = search(Points([1.0, 0.5, -3.0], [0.0, 1.0, 1.5]), "sarawagi", threshold=1e-6)
    assert (result.label, result.phi) == (1, 0.5)
