"""`argmax_bound_from` of compositions: bounds hold from any start, a good start saves calls, and cold answers know none."""

from typing import Any

import numpy as np
import pytest
from composed_cases import KINDS, BudgetChain, Family, SecondOrder, SkipChain, TaggedTree, TwoChains, best_of_all

from structpred.core.oracle import capabilities
from structpred.core.packing import argmax_bound_from
from structpred.errors import DataError, OracleError
from structpred.oracles.chain import ChainOracle
from structpred.oracles.composed import Composed
from structpred.oracles.composition.layout import layout_of


def warm(kind: type[Family], max_nodes: int | None = None) -> Any:
    """A composition of this kind that has the call."""

    class Warm(kind):  # type: ignore[misc,valid-type]
        def __init__(self) -> None:
            super().__init__(max_nodes)
            self.argmax_bound_from = Composed.argmax_bound_from.__get__(self)

    return Warm()


def asked(oracle: Any, scores: Any, shape: Any, start: Any) -> tuple[Any, float, Any]:
    """(labels, bound, state) of one instance."""
    labels, _, bounds, (state,) = argmax_bound_from(oracle, scores, np.array([0, len(scores)]), [shape], [start])
    return labels, float(bounds[0]), state


@pytest.mark.parametrize("kind", [TwoChains, BudgetChain, SkipChain, SecondOrder, TaggedTree])
@pytest.mark.parametrize("max_nodes", [1000, None])
def test_bounds_hold_from_any_start(kind: Any, max_nodes: int | None) -> None:
    """Random numbers of any size, float32, infinite ones: no bound below the best output; with a search it is its score."""
    oracle, rng = warm(kind, max_nodes), np.random.default_rng(0)
    for shape in oracle.example_shapes():
        size = len(layout_of(oracle.members(shape), "tests").part_of)
        for k, power in enumerate((-3, 0, 1, 4, 30)):
            scores = rng.normal(size=oracle.n_parts(shape)) * (1e6 if k == 2 else 1.0)
            start = (rng.normal(size=size) * 10.0**power).astype(np.float32)
            start[0] = np.inf if k == 3 else start[0]
            labels, bound, _ = asked(oracle, scores, shape, start)
            best, slack = best_of_all(oracle, scores, shape), 1e-9 * (1.0 + np.abs(scores).max())
            assert bound >= best - slack
            assert scores[oracle.parts(labels, shape)].sum() <= best + slack
            if max_nodes:
                assert bound == pytest.approx(best, abs=slack)


def test_states_sum_to_zero_and_prove_the_bound_again() -> None:
    """The multipliers of each part cancel, and one look at the members there gives a bound that is no worse."""
    kind, shape, _ = KINDS["two chains"]
    oracle, rng = warm(kind, None), np.random.default_rng(1)
    layout = layout_of(oracle.members(shape), "tests")
    for _ in range(5):
        scores = rng.normal(size=oracle.n_parts(shape))
        start = rng.normal(size=len(layout.part_of))
        _, bound, state = asked(oracle, scores, shape, start)
        assert np.abs(np.bincount(layout.part_of, state)).max() <= 1e-12
        assert np.abs(state[layout.holders[layout.part_of] == 1]).max() == 0.0
        shares = scores[layout.part_of] / layout.holders[layout.part_of] + state
        dual = 0.0
        for k, (member, own, _) in enumerate(layout.members):
            theirs = shares[layout.copy_ends[k] : layout.copy_ends[k + 1]]
            dual += theirs[member.parts(member.argmax(theirs, own), own)].sum()
        assert bound - 1e-9 <= dual <= bound + 0.5


def test_a_start_saves_calls_over_passes() -> None:
    """Scores that move a little from visit to visit, as in training: a third fewer calls of a skip chain's members."""
    shape, rng = (6, 3, ((0, 2), (2, 4))), np.random.default_rng(0)
    oracle, spent = warm(SkipChain, 1000), np.zeros(2)
    for _ in range(6):
        scores, state = rng.normal(size=oracle.n_parts(shape)), None
        for _ in range(6):
            scores = scores + 0.03 * rng.normal(size=len(scores))
            before = oracle.calls
            _, bound = oracle.argmax_bound(scores, shape)
            between = oracle.calls
            _, same, state = asked(oracle, scores, shape, None if state is None else state.astype(np.float32))
            spent += between - before, oracle.calls - between
            assert same == pytest.approx(bound, abs=1e-9)
    assert spent[1] < 0.67 * spent[0], spent


def test_without_a_start_answers_are_those_of_any_history() -> None:
    """From None the bits of `argmax_bound`; these are the same whatever was asked before; states do not depend on the batch."""
    oracle, fresh, rng = warm(TaggedTree), TaggedTree(None), np.random.default_rng(2)
    shapes = list(oracle.example_shapes()) * 3
    scores = [rng.normal(size=oracle.n_parts(shape)) for shape in shapes]
    states = [asked(oracle, theta, shape, None)[2] for theta, shape in zip(scores, shapes, strict=True)]
    ends = np.cumsum([0, *map(len, scores)])
    labels, label_ends, bounds, found = argmax_bound_from(oracle, np.concatenate(scores), ends, shapes, states)
    for k, (theta, shape, state) in enumerate(zip(scores, shapes, states, strict=True)):
        own, bound, after = asked(oracle, theta, shape, state)
        assert labels[label_ends[k] : label_ends[k + 1]].tolist() == own.tolist()
        assert (bounds[k], found[k].tobytes()) == (bound, after.tobytes())
        cold, none = fresh.argmax_bound(theta, shape), asked(oracle, theta, shape, None)
        for again in (oracle.argmax_bound(theta, shape), none[:2]):
            assert (again[0].tolist(), again[1]) == (cold[0].tolist(), cold[1])


def test_what_is_no_start_is_refused() -> None:
    """Another length, and NaN; an oracle that gives something else; and the call is there only where it is wanted."""
    oracle, shape = warm(SkipChain), (4, 2, ((0, 2), (1, 3)))
    scores = np.zeros(oracle.n_parts(shape))
    state = asked(oracle, scores, shape, None)[2]
    for wrong in (state[1:], np.full(len(state), np.nan), state[None]):
        with pytest.raises(DataError, match=rf"sample 0: expected a start of {len(state)} numbers"):
            asked(oracle, scores, shape, wrong)
    oracle.argmax_bound_from = lambda *batch: batch[:3]
    with pytest.raises(OracleError, match="must return"):
        asked(oracle, scores, shape, None)
    places = [(ChainOracle(), lambda shape: (shape, np.arange(shape[0] * shape[1] + shape[1] ** 2)))]
    assert "argmax_bound_from" in capabilities(Composed(places, warm=True))
    assert "argmax_bound_from" not in capabilities(Composed(places))
