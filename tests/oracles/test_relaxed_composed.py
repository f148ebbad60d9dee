"""RelaxedComposed: the best point of the local polytope is that of HiGHS over all members' outputs; so is training on it."""

import pickle
from typing import Any

import numpy as np
import pytest
from composed_cases import KINDS, BudgetChain, SecondOrder, SkipChain, TaggedTree, TwoChains, relaxed_point, relaxed_value

from structpred import check_oracle
from structpred.core.oracle import Oracle
from structpred.errors import InfeasibleError, ParameterError
from structpred.features.parts import PartFeatures
from structpred.objectives.part_losses import Hamming
from structpred.oracles.relaxed_composed import RelaxedComposed
from structpred.oracles.second_order_tree import SecondOrderTree
from structpred.slack.surrogate import SlackRescaling
from structpred.task.task import Task
from structpred.trainers.bcfw import BCFW
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.n_slack import NSlackCuttingPlane
from structpred.trainers.one_slack import OneSlackCuttingPlane
from structpred.trainers.problem import Problem


@pytest.mark.mostly_slow
@pytest.mark.parametrize("kind", [TwoChains, BudgetChain, SkipChain, SecondOrder, TaggedTree])
def test_keeps_the_contract(kind: Any) -> None:
    """check_oracle compares its bounds, and its points among each other, with all outputs."""
    assert check_oracle(RelaxedComposed(kind()), n_random=1).checked["argmax_relaxed"] > 10


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", KINDS)
def test_finds_the_best_point(name: str) -> None:
    """Seven kinds: the value of the linear program, at a point that satisfies it."""
    kind, shape, _ = KINDS[name]
    whole, rng = kind(1000), np.random.default_rng(0)
    oracle = RelaxedComposed(whole)
    for scores in rng.normal(size=(6, oracle.n_parts(shape))):
        mu, best = oracle.argmax_relaxed(scores, shape), relaxed_value(whole, scores, shape)
        assert scores @ mu == pytest.approx(best, abs=1e-8)
        # no direction leads further than within the polytope
        for slope in rng.normal(size=(3, len(mu))):
            assert slope @ mu <= relaxed_value(whole, slope, shape) + 1e-8


def test_points_depend_on_the_scores_alone() -> None:
    """The same bits again, after other calls and in another process's copy; an output where one is as good."""
    oracle, rng = RelaxedComposed(SecondOrderTree()), np.random.default_rng(1)
    shape = oracle.example_shapes()[1]
    scores = rng.normal(size=(5, oracle.n_parts(shape)))
    points = [oracle.argmax_relaxed(one, shape) for one in scores]
    again = pickle.loads(pickle.dumps(oracle))
    for one, mu in reversed(list(zip(scores, points, strict=True))):
        assert again.argmax_relaxed(one, shape).tobytes() == mu.tobytes()
    favoured = 2.0 * np.bincount(oracle.parts(np.array([0, 1, 2]), shape), minlength=len(scores[0])) - 1.0
    assert oracle.argmax_relaxed(favoured, shape).tolist() == (favoured > 0).tolist()


def test_second_order_trees_stay_among_candidates() -> None:
    """Arcs that are no candidates have no share; the value bounds the best tree."""
    whole = SecondOrderTree()
    oracle, shape, rng = RelaxedComposed(whole), whole.example_shapes()[2], np.random.default_rng(0)
    closed = [k for k in range(20) if k % 5 != k // 5 and k % 3 == 0]
    for scores in rng.normal(size=(6, oracle.n_parts(shape))):
        mu, tree = oracle.argmax_relaxed(scores, shape), whole.argmax(scores, shape)
        assert mu[closed].max() == 0.0
        assert scores @ mu >= scores[whole.parts(tree, shape)].sum() - 1e-9


def test_says_what_is_wrong() -> None:
    """Members that exclude every output; rounds that are no number."""
    with pytest.raises(InfeasibleError, match="BudgetChain agree"):
        RelaxedComposed(BudgetChain()).argmax_relaxed(np.zeros(12), (4, 2, (1, 2)))
    with pytest.raises(ParameterError, match="max_rounds"):
        RelaxedComposed(BudgetChain(), max_rounds=0)


class ByHighs(Oracle):
    """The same polytope by a general solver, without any composition."""

    exact = False

    def __init__(self, whole: Any) -> None:
        self.whole = whole
        self.argmax_bound, self.label_grid, self.enumerate = whole.argmax_bound, whole.label_grid, whole.enumerate

    def n_parts(self, shape: Any) -> int:
        return self.whole.n_parts(shape)

    def argmax(self, scores: Any, shape: Any) -> Any:
        return self.whole.argmax(scores, shape)

    def parts(self, labels: Any, shape: Any) -> Any:
        return self.whole.parts(labels, shape)

    def example_shapes(self) -> Any:  # type: ignore[override]
        return self.whole.example_shapes()

    def argmax_relaxed(self, scores: Any, shape: Any) -> Any:
        return relaxed_point(self.whole, scores, shape)


@pytest.mark.slow
@pytest.mark.parametrize(("trainer", "tol"), [(NSlackCuttingPlane, 1e-4), (OneSlackCuttingPlane, 1e-3), (BCFW, 2e-2)])
def test_training_on_the_relaxation_is_certified(trainer: Any, tol: float) -> None:
    """Slack rescaling over the local polytope of a cycle: the gap closes at the optimum that a general solver's points give."""
    rng, shape, found = np.random.default_rng(0), (3, 2, ((0, 2),)), []
    rows = [rng.normal(size=(SkipChain().n_parts(shape), 3)) for _ in range(3)]
    labels = [rng.integers(0, 2, 3) for _ in rows]
    for oracle in (RelaxedComposed(SkipChain(None)), ByHighs(SkipChain(None))):
        task = Task(PartFeatures(rows), oracle, labels, [shape] * 3, Hamming())
        result = train(Problem(task, SlackRescaling(relaxed=True), 2.0), trainer(), RunSettings(max_iter=100, tol=tol))
        assert result.stop_reason == "tol"
        assert result.certificate.proven
        found.append(result.certificate)
    assert found[0].dual <= found[1].primal
    assert found[1].dual <= found[0].primal
