"""A solver of one's own: costs and values, what is called exact, bounds, amounts, threads and processes, wrong answers."""

import numpy as np
import pytest

from structpred import check_oracle
from structpred.core.oracle import capabilities
from structpred.errors import OracleError, ParameterError
from structpred.layers import Scores
from structpred.oracles import SolverOracle
from structpred.task.process_oracle import ProcessOracle


def cheapest_two(costs):
    """The two cheapest of n."""
    return np.isin(np.arange(len(costs)), np.argsort(costs, kind="stable")[:2])


def best_two(values):
    """The two of n that are worth most."""
    return cheapest_two(-values).tolist()


@pytest.mark.parametrize(("solve", "minimises"), [(cheapest_two, True), (best_two, False)])
def test_costs_and_values(solve, minimises: bool) -> None:
    """A minimiser of costs and a maximiser of values keep the contract; with the other sign the check says what is wrong."""
    report = check_oracle(SolverOracle(solve, 5, minimises=minimises, exact=True, threads=True), n_random=3)
    assert report.checked["wrong argmax"] > 20
    assert report.checked["batch different from loop"] > 20
    for exact in (True, False):
        with pytest.raises(OracleError, match="it minimises: scores are taken for costs"):
            check_oracle(SolverOracle(solve, 5, minimises=not minimises, exact=exact), n_random=3)


def test_what_is_known_of_the_answer_must_be_said() -> None:
    """Without exact= or tolerance= nothing is called exact; the sign has no default."""
    with pytest.raises(ParameterError, match="say minimises=True for a function of costs"):
        SolverOracle(cheapest_two, 4)
    assert not SolverOracle(cheapest_two, 4, minimises=True).exact
    gap = SolverOracle(cheapest_two, 4, minimises=True, tolerance=1e-4)
    assert (gap.exact, gap.tolerance) == (True, 1e-4)
    for n, settings in ((0, {}), (4, {"tolerance": -1.0}), (4, {"upper": 0})):
        with pytest.raises(ParameterError, match="expected a"):
            SolverOracle(cheapest_two, n, minimises=True, **settings)


def test_bounds_are_turned_into_scores() -> None:
    """The least cost that a minimiser proves is minus the score that no vector exceeds."""
    oracle = SolverOracle(lambda c: (cheapest_two(c), np.sort(c)[:2].sum() - 0.5), 4, minimises=True, gives_bound=True)
    labels, bound = oracle.argmax_bound(np.array([-5.0, -1.0, -2.0, -9.0]), (4,))
    assert (labels.tolist(), bound) == ([0, 1, 1, 0], -2.5)
    assert not oracle.exact
    assert "argmax_bound" in capabilities(oracle)
    assert check_oracle(oracle, n_random=2).checked["argmax_bound"] > 5
    assert "argmax_bound" not in capabilities(SolverOracle(cheapest_two, 4, minimises=True))


def test_amounts_and_larger_numbers() -> None:
    """whole=False gives points; upper says how often a part may be on."""
    shares = SolverOracle(lambda v: np.exp(v) / np.exp(v).sum(), 3, minimises=False, whole=False)
    assert shares.point(shares.argmax(np.zeros(3), (3,)), (3,)).tolist() == pytest.approx([1 / 3] * 3)
    twice = SolverOracle(lambda v: 2 * (v == v.max()), 3, minimises=False, upper=2, exact=True)
    assert twice.parts(twice.argmax(np.array([0.0, 1.0, 0.5]), (3,)), (3,)).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ([0, 1], "expected 3 labels"),
        ([0, 0.5, 1], "number 1 is 0.5; whole=False is for amounts"),
        ([0, 2, 1], "whole numbers from 0 to 1"),
        ([0, np.nan, 1], "whole numbers from 0 to 1"),
        (None, "solve must give 3 numbers"),
        ("abc", "solve must give 3 numbers"),
    ],
)
def test_answers_that_are_no_vectors(answer, text: str) -> None:
    """Each is an error that says what was expected."""
    with pytest.raises(OracleError, match=text):
        SolverOracle(lambda costs: answer, 3, minimises=True).argmax(np.zeros(3), (3,))
    with pytest.raises(OracleError, match=r"3 numbers and a bound, \(x, bound\)"):
        SolverOracle(lambda costs: [0, 1, 0], 3, minimises=True, gives_bound=True).argmax(np.zeros(3), (3,))


@pytest.mark.slow
def test_threads_and_processes_give_the_same() -> None:
    """A batch on two threads, or in two processes, has the bits of a loop."""
    theta = np.random.default_rng(0).normal(size=(6, 4))
    plain = SolverOracle(cheapest_two, 4, minimises=True, exact=True)
    wanted = [plain.argmax(own, (4,)).tolist() for own in theta]
    threads = SolverOracle(cheapest_two, 4, minimises=True, exact=True, threads=True)
    processes = ProcessOracle(plain, n_jobs=2)
    for oracle in (plain, threads, processes):
        found = Scores.of(oracle, [oracle.only_shape] * 6, n_jobs=2).decide(theta)
        assert [own.tolist() for own in found] == wanted
    processes.close()


def test_what_the_function_raises_names_the_sample() -> None:
    """And the line of the function."""

    def fails(costs):
        raise RuntimeError("no licence")

    broken = SolverOracle(fails, 4, minimises=True, threads=True)
    with pytest.raises(
        OracleError, match=r"sample 0: SolverOracle.argmax raised RuntimeError: no licence \(.*test_solver_oracle"
    ):
        Scores.of(broken, [(4,)] * 2, n_jobs=2).decide(np.zeros((2, 4)))
