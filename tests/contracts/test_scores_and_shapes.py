"""No oracle reads other memory or answers in silence where scores or shapes are not what it was made for."""

import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from test_oracles import discovered

from structpred.core.oracle import Oracle, Shape
from structpred.core.packing import argmax_batch
from structpred.errors import DataError
from structpred.oracles.agreement import Agreement
from structpred.oracles.convex import ConvexOracle
from structpred.oracles.cp_sat_tours import CpSatBoundTravellingSalesman, CpSatTravellingSalesman
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.oracles.head_automaton import HeadAutomaton
from structpred.oracles.knapsack import KnapsackOracle
from structpred.oracles.label_paths import LabelPaths
from structpred.oracles.leaf_sets import LeafSets
from structpred.oracles.multiclass import MulticlassOracle
from structpred.oracles.portfolio import PortfolioOracle
from structpred.oracles.second_order_tree import SecondOrderTree
from structpred.oracles.shortest_path import ShortestPathOracle
from structpred.oracles.travelling_salesman import TravellingSalesmanOracle

#: how each method that takes scores is asked; p is the right number of parts
QUESTIONS: dict[str, Callable[[Any, Any, Shape, int], object]] = {
    "argmax": lambda o, s, shape, p: o.argmax(s, shape),
    "argmax_batch": lambda o, s, shape, p: o.argmax_batch(s, np.array([0, p]), [shape]),
    "argmax_bound": lambda o, s, shape, p: o.argmax_bound(s, shape),
    "argmax_constrained": lambda o, s, shape, p: o.argmax_constrained(s, shape, np.zeros((1, p)), np.zeros(1)),
    "argmax_constrained_bound": lambda o, s, shape, p: o.argmax_constrained_bound(s, shape, np.zeros((1, p)), np.zeros(1)),
    "argmax_relaxed": lambda o, s, shape, p: o.argmax_relaxed(s, shape),
    "argmax_relaxed_constrained": lambda o, s, shape, p: o.argmax_relaxed_constrained(s, shape, np.zeros((1, p)), np.zeros(1)),
    "argmax_per_loss": lambda o, s, shape, p: o.argmax_per_loss(s, np.zeros(p), shape),
    "argmax_per_loss's costs": lambda o, s, shape, p: o.argmax_per_loss(np.zeros(p), s, shape),
    "argmax_product": lambda o, s, shape, p: o.argmax_product(s, np.zeros(p), (0.0, 1.0), shape),
    "argmax_product's costs": lambda o, s, shape, p: o.argmax_product(np.zeros(p), s, (0.0, 1.0), shape),
    "marginals": lambda o, s, shape, p: o.marginals(s, shape),
    "log_partition": lambda o, s, shape, p: o.log_partition(s, shape),
    "kbest": lambda o, s, shape, p: o.kbest(s, shape, 2),
    "project": lambda o, s, shape, p: o.project(s, shape),
}

BAD_SCORES: dict[str, Callable[[np.ndarray], Any]] = {
    "too few": lambda s: s[1:],
    "too many": lambda s: np.append(s, 0.0),
    "none": lambda s: np.zeros(0),
    "2-d": lambda s: s[None, :],
    "0-d": lambda s: np.array(1.0),
    "complex": lambda s: s.astype(complex),
    "objects": lambda s: s.astype(object),
    "words": lambda s: s.astype(str),
    "NaN": lambda s: np.append(s[:-1], np.nan),
    "infinity": lambda s: np.append(s[:-1], np.inf),
    "minus infinity": lambda s: np.append(s[:-1], -np.inf),
}

#: oracles whose shapes are the parents of labels: -1 and the number of another label are right in any place but their own
FORESTS = (LabelPaths, LeafSets)
#: what is said of such shapes where they are no numbers of positions
REFUSED = {
    KnapsackOracle: "capacities do not fit",
    HeadAutomaton: "a shape is",
    SecondOrderTree: "candidate_shape",
    ShortestPathOracle: "would need",
    **dict.fromkeys((TravellingSalesmanOracle, CpSatTravellingSalesman, CpSatBoundTravellingSalesman), "3 to 500 nodes"),
}

OTHER_FORMS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "float32": lambda s: s.astype(np.float32),
    "big-endian": lambda s: s.astype(">f8"),
    "integers": lambda s: s.astype(np.int64),
    "every second of another array": lambda s: np.repeat(s, 2)[::2],
    "not aligned": lambda s: np.frombuffer(b"\0" + s.tobytes(), np.uint8)[1:].view(np.float64),
}


def simplex(shape: Shape) -> tuple[Any, list[Any]]:
    """The convex hull of the labels, as cvxpy knows it."""
    import cvxpy as cp

    mu = cp.Variable(shape[0])
    return mu, [mu >= 0, cp.sum(mu) == 1]


def oracles() -> list[Oracle]:
    """Each oracle of the package; those that are made from a description as multiclass."""
    made: list[Oracle] = [kind() for kind in discovered()]
    return [*made, EnumeratedOracle.of(MulticlassOracle()), ConvexOracle(simplex, example_shapes=[(3,)], exact=True)]


def a_shape(oracle: Oracle) -> Shape:
    """The first example shape with more than two parts."""
    return next(shape for shape in oracle.example_shapes() if oracle.n_parts(shape) > 2)


def questions(oracle: Oracle) -> Iterator[tuple[str, Callable[[Any, Any, Shape, int], object]]]:
    """The questions that an oracle has a method for."""
    return ((name, ask) for name, ask in QUESTIONS.items() if callable(getattr(oracle, name.split("'")[0], None)))


@pytest.mark.parametrize("oracle", oracles(), ids=lambda oracle: type(oracle).__name__)
def test_scores_that_are_no_scores_of_the_shape_are_refused(oracle: Oracle) -> None:
    """Another number of scores, arrays that are not flat, types that are no real numbers, NaN and infinity: DataError."""
    shape = a_shape(oracle)
    p = oracle.n_parts(shape)
    for name, ask in questions(oracle):
        for fault, spoil in BAD_SCORES.items():
            with pytest.raises(DataError, match=r"scores|sample 0|shapes"):
                pytest.fail(f"{name} with scores that are {fault}: {ask(oracle, spoil(np.zeros(p)), shape, p)!r}")


@pytest.mark.slow
@pytest.mark.parametrize("oracle", oracles(), ids=lambda oracle: type(oracle).__name__)
def test_scores_in_another_form_give_the_same_answer(oracle: Oracle) -> None:
    """Single precision, other byte orders, whole numbers and strided arrays of the same numbers are as good as plain float64."""
    shape = a_shape(oracle)
    scores = np.random.default_rng(0).integers(-3, 4, oracle.n_parts(shape)).astype(float)
    if type(oracle).__name__ == "GraphCutMRF":
        scores[2 * shape[0] :] = 0.0
    for name, ask in questions(oracle):
        expected = ask(oracle, np.zeros_like(scores) if "costs" in name else scores, shape, len(scores))
        for form, change in OTHER_FORMS.items():
            given = change(np.zeros_like(scores) if "costs" in name else scores)
            np.testing.assert_equal(ask(oracle, given, shape, len(scores)), expected, err_msg=f"{name}, {form}")


@pytest.mark.mostly_slow
@pytest.mark.parametrize("kind", discovered(), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("size", [-1, 0, 2.5, 2**31 - 2, 2**31, 2**62, 2**80])
def test_shapes_that_do_not_fit_are_refused_before_anything_is_allocated(kind: type[Oracle], size: Any) -> None:
    """Each number of a shape in turn replaced by one that is too small, no whole number or huge: DataError, and no memory."""
    oracle = kind()
    shape = a_shape(oracle)
    p = oracle.n_parts(shape)
    for place in range(min(len(shape), 3)):
        bent = (*shape[:place], size, *shape[place + 1 :])
        if kind in FORESTS and size in (-1, 0) and size != place:
            continue
        if kind is PortfolioOracle and place == 0 and size > 0:  # its risk is a number, not a size
            continue
        for name, ask in questions(oracle):
            tracemalloc.start()
            try:
                with pytest.raises(DataError):
                    pytest.fail(f"{name} with the shape {bent}: {ask(oracle, np.zeros(p), bent, p)!r}")
                assert tracemalloc.get_traced_memory()[1] < 1 << 25, (name, bent)
            finally:
                tracemalloc.stop()


@pytest.mark.parametrize("kind", discovered(), ids=lambda kind: kind.__name__)
def test_outputs_of_huge_shapes_are_not_listed(kind: type[Oracle]) -> None:
    """`enumerate` of two billion positions says so at once, where there is one."""
    oracle: Any = kind()
    if callable(getattr(oracle, "enumerate", None)) and kind not in (Agreement, MulticlassOracle, *FORESTS):
        shape = (2**31 - 2, *a_shape(oracle)[1:])
        with pytest.raises(DataError, match=REFUSED.get(kind, "too many to list")):
            next(iter(oracle.enumerate(shape)))


@pytest.mark.parametrize("oracle", [o for o in oracles() if hasattr(o, "argmax_batch")], ids=lambda oracle: type(oracle).__name__)
def test_a_batch_names_its_sample(oracle: Any) -> None:
    """In a batch the second instance's wrong offsets, NaN and bad shape are told of that instance."""
    shape = a_shape(oracle)
    p = oracle.n_parts(shape)
    scores, offsets = np.zeros(2 * p), np.array([0, p, 2 * p])
    assert len(oracle.argmax_batch(scores, offsets, [shape, shape])[1]) == 3
    with pytest.raises(DataError, match="sample 1"):
        oracle.argmax_batch(scores, np.array([0, p, 2 * p - 1]), [shape, shape])
    with pytest.raises(DataError, match="sample 1"):
        oracle.argmax_batch(np.append(np.zeros(2 * p - 1), np.nan), offsets, [shape, shape])
    with pytest.raises(DataError, match=r"sample 1|graph"):
        oracle.argmax_batch(scores, offsets, [shape, (0, *shape[1:])])
    with pytest.raises(DataError, match=r"sample 1|edge"):
        oracle.argmax_batch(scores, offsets, [shape, (2**31 - 2,) * len(shape)])
    for wrong in (np.array([0, p]), np.array([-p, 0, p]), np.array([p, 2 * p, 3 * p]), offsets + 0.0):
        with pytest.raises(DataError, match="offsets"):
            oracle.argmax_batch(scores, wrong, [shape, shape])
    labels, ends = argmax_batch(oracle, np.zeros(0), np.array([0]), [])
    assert (len(labels), ends.tolist()) == (0, [0])
