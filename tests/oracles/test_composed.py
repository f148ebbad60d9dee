"""Composed: the best output on which all members agree, with a bound that holds, and a proof."""

import pickle
from itertools import product
from typing import Any

import numpy as np
import pytest
from composed_cases import (
    KINDS,
    BudgetChain,
    SecondOrder,
    SkipChain,
    TaggedTree,
    TwoChains,
    best_of_all,
    relaxed_value,
)

from structpred import check_oracle
from structpred.core.packing import argmax_bound_batch
from structpred.errors import ConvergenceError, InfeasibleError, OracleError
from structpred.oracles.composed import Composed
from structpred.oracles.composition.bundle import Bundle
from structpred.oracles.composition.layout import Batch, Member, layout_of
from structpred.oracles.composition.rounds import Rounds
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.oracles.multiclass import MulticlassOracle
from structpred.oracles.qpbo import QPBO

CLOSED = [TwoChains, BudgetChain, SkipChain, SecondOrder, TaggedTree]


def instances(name: str, n: int, max_nodes: int | None) -> Any:
    """The composition, its shape, and normal scores."""
    kind, shape, _ = KINDS[name]
    oracle, rng = kind(max_nodes), np.random.default_rng(0)
    return oracle, shape, [rng.normal(size=oracle.n_parts(shape)) for _ in range(n)]


@pytest.mark.mostly_slow
@pytest.mark.parametrize(("kind", "max_nodes"), [*product(CLOSED, (1000, None))])
def test_keeps_the_contract(kind: Any, max_nodes: int | None) -> None:
    """check_oracle compares it with all outputs, also as an inexact oracle with a bound."""
    report = check_oracle(kind(max_nodes), n_random=1)
    assert report.checked["wrong argmax" if max_nodes else "no exceptions"] > 10


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", KINDS)
def test_finds_and_proves_the_best(name: str) -> None:
    """Seven kinds of compositions, 20 instances each: the best of all outputs, and its score as the bound."""
    oracle, shape, thetas = instances(name, 20, 1000)
    for scores in thetas:
        labels, bound = oracle.argmax_bound(scores, shape)
        best = best_of_all(oracle, scores, shape)
        assert scores[oracle.parts(labels, shape)].sum() == pytest.approx(best, abs=1e-9)
        assert bound == pytest.approx(best, abs=1e-9)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", KINDS)
def test_bounds_reach_the_linear_program(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a search no bound lies below the best output, nor above the LP over all members' outputs by more than 1e-6. The
    members are asked at most 60 times each, apart from the check of outputs; half of the instances need few calls until the bound
    is within .01 % of the LP: at most a fifth more than a prototype.
    """
    oracle, shape, thetas = instances(name, 20, None)
    passed: list[tuple[int, float]] = []

    def settle(rounds: Rounds, *args: Any, **options: Any) -> Any:
        calls = oracle.calls
        left = original(rounds, *args, **options)
        passed.append((calls, float(rounds.low[0])))
        return left

    original, needed, n_members = Rounds.settle, [], len(oracle.members(shape))
    monkeypatch.setattr(Rounds, "settle", settle)
    for scores in thetas:
        passed.clear()
        for one in oracle.oracles_by_name.values():
            one.calls = 0
        labels, bound = oracle.argmax_bound(scores, shape)
        # members that exclude what is offered are searched for some output
        assert name == "budgets" or oracle.calls <= 64 * n_members
        best, relaxed = best_of_all(oracle, scores, shape), relaxed_value(oracle, scores, shape)
        assert scores[oracle.parts(labels, shape)].sum() <= best + 1e-9
        assert best - 1e-9 <= bound <= relaxed + 1e-6
        needed.append(min(calls for calls, low in passed if low <= relaxed + 1e-4 * abs(relaxed)) / n_members)
    assert np.median(needed) <= 1.2 * KINDS[name][2]


#: crossing trees with one root: words, the best tree, its score, the bound of the relaxation
TEST_VALUES = [
    (2, [2, 0], 2.050812, 2.050812),
    (3, [0, 3, 1], 1.822368, 2.458976),
    (4, [2, 3, 4, 0], 2.792674, 3.432656),
    (5, [2, 3, 5, 2, 0], 4.886526, 5.711517),
]


@pytest.mark.parametrize(("n", "heads", "value", "relaxed"), TEST_VALUES)
def test_second_order_trees_have_the_known_values(n: int, heads: list[int], value: float, relaxed: float) -> None:
    """Scores that are sines and cosines of the words' numbers: the best tree and the bound are those computed independently."""
    shape, oracle = (n, True), SecondOrder()
    arcs, siblings, seconds = SecondOrder.numbers(shape)
    scores = np.zeros(oracle.n_parts(shape))
    for h, m in product(range(n + 1), range(1, n + 1)):
        scores[arcs[m - 1, h]] = np.sin(7 * h + 3 * m)
    for (h, s, m, side), part in siblings.items():
        scores[part] = np.cos(5 * h + 2 * s + 3 * (m if m <= n else 0) + side)
    for (g, h, m), part in seconds.items():
        scores[part] = np.sin(2 * g + 5 * h + 11 * m)
    labels, bound = oracle.argmax_bound(scores, shape)
    assert labels.tolist() == heads
    assert bound == pytest.approx(value, abs=1e-6)
    loose = SecondOrder(None).argmax_bound(scores, shape)[1]
    assert loose == pytest.approx(relaxed, abs=1e-6)


@pytest.mark.parametrize("name", ["two chains", "budgets", "tagged tree"])
def test_the_state_proves_the_bound(name: str) -> None:
    """Multipliers of a part sum to zero, and the members' answers there are worth the bound."""
    oracle, shape, thetas = instances(name, 5, None)
    layout = layout_of(oracle.members(shape), "tests")
    for scores in thetas:
        zeros = np.zeros(len(scores), np.int64)
        rounds = Rounds(
            oracle, [shape], Batch([layout]), scores, np.array([1.0 + np.abs(scores).sum()]), zeros,
            np.zeros(len(layout.part_of)), np.full(1, -np.inf),
        )  # fmt: skip
        bundle = Bundle(rounds)
        bundle.run(np.arange(1), 30)
        sums = np.bincount(layout.part_of, rounds.multipliers)
        assert np.abs(sums).max() <= 1e-12 * max(np.abs(rounds.multipliers).max(), 1.0)
        shares = scores[layout.part_of] / layout.holders[layout.part_of] + rounds.multipliers
        dual = 0.0
        for k, (member, own, _) in enumerate(layout.members):
            theirs = shares[layout.copy_ends[k] : layout.copy_ends[k + 1]]
            dual += theirs[member.parts(member.argmax(theirs, own), own)].sum()
        assert dual == pytest.approx(bundle.level[0], abs=1e-9)
        assert rounds.low[0] <= bundle.level[0] + 1e-12


@pytest.mark.parametrize("kind", [BudgetChain, TaggedTree])
def test_results_do_not_depend_on_the_batch(kind: Any) -> None:
    """One by one, in any order, by one thread and two: the same labels and the same bits of bounds."""
    oracle, rng = kind(), np.random.default_rng(1)
    shapes = list(oracle.example_shapes()) * 5
    scores = [rng.normal(size=oracle.n_parts(shape)) for shape in shapes]
    alone = [oracle.argmax_bound(theta, shape) for theta, shape in zip(scores, shapes, strict=True)]
    for jobs in (1, 2):
        order = rng.permutation(len(shapes)).tolist()
        offsets = np.cumsum([0, *(len(scores[k]) for k in order)])
        flat = np.concatenate([scores[k] for k in order])
        labels, ends, bounds = argmax_bound_batch(oracle, flat, offsets, [shapes[k] for k in order], jobs)
        for place, k in enumerate(order):
            assert labels[ends[place] : ends[place + 1]].tolist() == alone[k][0].tolist()
            assert bounds[place] == alone[k][1]


def test_members_are_asked_in_batches() -> None:
    """All members of one oracle that see new scores are asked in one call a round, whatever the number of instances."""

    class Batched(MulticlassOracle):
        calls = 0

        def argmax_batch(self, *batch: Any) -> Any:
            self.calls += 1
            return super().argmax_batch(*batch)

    def places(oracle: Any) -> Composed:
        same = [(oracle, lambda shape: ((3,), np.arange(3))), (oracle, lambda shape: ((3,), np.arange(3)))]
        return Composed(same, example_shapes=[()])

    one = Batched()
    flat = np.random.default_rng(0).normal(size=3 * 50)
    places(one).argmax_batch(flat, np.arange(51) * 3, [()] * 50)
    assert one.calls == 1  # equal shares: both agree in the first round


def test_projects_onto_the_hull_of_joint_outputs() -> None:
    """As the listed outputs do; an inexact composition has no `project`."""
    oracle, shape = BudgetChain(), (4, 2, (1, 3))
    point = np.random.default_rng(0).normal(size=oracle.n_parts(shape))
    np.testing.assert_allclose(oracle.project(point, shape), EnumeratedOracle.of(oracle).project(point, shape), atol=1e-9)
    assert BudgetChain(None).project is None


def test_forbidden_parts() -> None:
    """Scores of -1e30 forbid parts; the best of the outputs that are left is found."""
    oracle, shape, rng = BudgetChain(), (4, 2, (2, 3)), np.random.default_rng(0)
    listed = EnumeratedOracle.of(oracle)
    for part in range(8):
        scores = rng.normal(size=oracle.n_parts(shape))
        scores[part] = -1e30
        assert oracle.argmax(scores, shape).tolist() == listed.argmax(scores, shape).tolist()


def test_parts_that_count_often() -> None:
    """Transitions are counted, so that outputs may score less than minus the sum of |theta|: none is taken for impossible."""
    oracle, shape, rng = BudgetChain(), (6, 2, (3, 3)), np.random.default_rng(0)
    listed = EnumeratedOracle.of(oracle)
    for k in range(10):
        scores = rng.normal(size=oracle.n_parts(shape))
        scores[12:] -= 10.0
        if k > 4:
            scores[k] = -1e30
        assert oracle.argmax(scores, shape).tolist() == listed.argmax(scores, shape).tolist()


def test_says_what_is_wrong() -> None:
    """Members that exclude every output; too few subproblems; a part that nobody holds; parts that do not fit a member."""
    oracle = BudgetChain()
    with pytest.raises(InfeasibleError, match="BudgetChain agree"):
        oracle.argmax(np.zeros(oracle.n_parts((4, 2, (1, 2)))), (4, 2, (1, 2)))
    few, shape, thetas = instances("skip chain", 20, 1)
    short = 0
    for scores in thetas:
        labels, bound = few.argmax_bound(scores, shape)
        if bound > scores[few.parts(labels, shape)].sum() + 1e-9:
            short += 1
            with pytest.raises(ConvergenceError, match="max_nodes"):
                few.argmax(scores, shape)
    assert short > 0
    with pytest.raises(OracleError, match="no member holds part 0"):
        Composed([(MulticlassOracle(), lambda shape: ((2,), np.array([1, 2])))]).n_parts(())
    with pytest.raises(OracleError, match=r"member 0 \(QPBO\) may miss its best output"):
        Composed([(QPBO(), lambda shape: ((2, 2, ()), np.arange(4)))]).argmax(np.zeros(4), ())
    with pytest.raises(OracleError, match="as many whole numbers >= 0"):
        Composed([(MulticlassOracle(), lambda shape: ((2,), np.array([1])))]).n_parts(())
    with pytest.raises(ValueError, match="excludes"):
        oracle.parts(np.array([0, 0, 0, 0]), (4, 2, (2, 3)))


class Twice(Composed):
    """The same oracle two times."""

    def members(self, shape: Any) -> list[Member]:
        return [Member(MulticlassOracle(), shape, np.arange(shape[0]))] * 2


def test_can_be_copied_to_other_processes() -> None:
    """Pickled without what it keeps for shapes."""
    oracle = Twice([], example_shapes=[(3,)])
    assert oracle.argmax(np.arange(3.0), (3,)).tolist() == [2]
    assert pickle.loads(pickle.dumps(oracle)).argmax(np.arange(3.0), (3,)).tolist() == [2]
