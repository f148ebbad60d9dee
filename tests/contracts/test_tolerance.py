"""Solvers that stop at a gap: a check names the gap, a declared tolerance is allowed, and training takes it for a bound."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import structpred
from structpred import Instance, check_oracle
from structpred.contracts.checks import check_marginals
from structpred.core.oracle import Oracle
from structpred.core.result import Certificate
from structpred.errors import OracleError
from structpred.features.parts import PartFeatures
from structpred.layers import Hinge
from structpred.layers.record import Scores
from structpred.models import StructuredPredictor
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming
from structpred.oracles.chain import ChainOracle
from structpred.oracles.multiclass import MulticlassOracle
from structpred.oracles.solver import SolverOracle
from structpred.slack.surrogate import SlackRescaling
from structpred.task.task import Task
from structpred.task.task_checks import refuse_contradiction
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.names import trainers
from structpred.trainers.problem import Problem


class Gap(Oracle):
    """One of n, found to a gap of 1 %."""

    gap = 0.01

    def n_parts(self, shape):
        return shape[0]

    def argmax(self, scores, shape):
        good = np.flatnonzero(scores >= scores.max() - self.gap * (1.0 + abs(scores.max())) / (1.0 + self.gap))
        return good[:1].astype(np.int64)

    def parts(self, labels, shape):
        if len(labels) != 1 or not 0 <= labels[0] < shape[0]:
            raise ValueError("one of n")
        return labels

    @staticmethod
    def example_shapes():
        return [(3,), (20,), (40,)]


class Declared(Gap):
    """The same, and it says so."""

    tolerance = 0.0101


def test_a_solver_that_stops_at_a_gap_is_told_what_to_declare() -> None:
    """Its small misses are not taken for rounding or for a heuristic; with the tolerance it passes, with less it does not."""
    with pytest.raises(
        OracleError, match=r"a solver that stops at a gap: relative error 0\.00\d+ at most here\..* declare tolerance"
    ):
        structpred.check_oracle(Gap())
    assert structpred.check_oracle(Declared()).checked["wrong argmax"] > 100
    less = Declared()
    less.tolerance = 1e-4
    with pytest.raises(OracleError, match="declare tolerance"):
        structpred.check_oracle(less)


class AtLargeScores(Gap):
    """HiGHS at SciPy's gap: only where scores are large its misses are larger than rounding."""

    gap = 1e-9

    def argmax(self, scores, shape):
        at = np.argsort(-scores, kind="stable")[:2]
        return at[1:] if np.abs(scores).max() > 1e4 and scores[at[0]] - scores[at[1]] < 1e-6 * abs(scores[at[0]]) else at[:1]


def test_a_gap_at_large_scores_is_not_taken_for_whole_numbers() -> None:
    """Misses of 1e-7 of scores of 1e6 and more may be a gap; the advice names it, and never speaks of whole numbers."""
    with pytest.raises(OracleError, match="a solver that stops at a gap") as caught:
        structpred.check_oracle(AtLargeScores())
    assert "whole numbers" not in str(caught.value)


def test_a_gap_that_shows_in_training_is_told_as_one() -> None:
    """Where the true output beats an exact answer, or a tolerance, by little, it is a gap; by much, the sign is in question."""
    small, large, truth, found = np.array([100.0, 99.0]), np.array([100.0, 9.0]), np.array([0]), np.array([1])
    with pytest.raises(OracleError, match=r"a solver that stops at a gap: relative error 0\.01 .*declare tolerance"):
        refuse_contradiction(Gap(), 3, small, truth, found)
    with pytest.raises(OracleError, match=r"with tolerance=0\.0101 has the bound 99\.5.*its gap is larger"):
        refuse_contradiction(Declared(), 3, small, truth, found, 99.5)
    with pytest.raises(OracleError, match="does it minimise"):
        refuse_contradiction(Gap(), 3, large, truth, found)


@pytest.mark.parametrize("tolerance", [-1.0, np.inf, None, "0.1"])
def test_a_tolerance_is_a_number(tolerance) -> None:
    """Finite and not negative."""
    oracle = Gap()
    oracle.tolerance = tolerance
    with pytest.raises(OracleError, match="tolerance to be a finite number >= 0"):
        structpred.check_oracle(oracle)


def problem(oracle: Oracle, surrogate) -> Problem:
    """Fifteen instances of one of five, most of which weights can tell apart."""
    rng, n = np.random.default_rng(0), 15
    rows = rng.normal(size=(n, 5, 4))
    labels = [[int((row @ np.arange(4.0) + rng.normal(size=5)).argmax())] for row in rows]
    return Problem(Task(PartFeatures(list(rows)), oracle, labels, [(5,)] * n, Hamming()), surrogate, 0.02)


@cache
def optimum(surrogate: type) -> Certificate:
    """That of the exact problem."""
    return train(
        problem(MulticlassOracle(), surrogate()), trainers()["n_slack"](), RunSettings(max_iter=100, tol=1e-6)
    ).certificate


@pytest.mark.mostly_slow
@pytest.mark.parametrize("surrogate", [MarginRescaling, SlackRescaling])
@pytest.mark.parametrize("name", ["bcfw", "n_slack", "bmrm", "sgd"])
def test_a_declared_tolerance_keeps_certificates_true(name: str, surrogate) -> None:
    """With misses of up to 5 %, dual <= optimum <= primal, and the primal is at least the true objective at the weights."""
    oracle = Declared()
    oracle.gap, oracle.tolerance = 0.05, 0.0526
    exact, best = problem(MulticlassOracle(), surrogate()), optimum(surrogate)
    assert best.dual < 0.9
    result = train(problem(oracle, surrogate()), trainers()[name](), RunSettings(max_iter=15))
    found = result.certificate
    assert found.proven
    assert found.primal >= exact.primal(result.weights) - 1e-9
    assert found.primal >= best.dual
    assert found.dual <= best.primal + 1e-9
    if name != "sgd":
        assert found.gap > 1e-3  # the bound is not closed: what the solver leaves stays in it


def test_losses_of_scores_have_the_gap() -> None:
    """values + gap is at least the exact loss."""
    oracle, rng = Declared(), np.random.default_rng(0)
    shapes, theta = [(40,)] * 30, rng.normal(size=1200)
    given = {"gold": [[0]] * 30, "costs": np.zeros(1200)}
    loose = Hinge(oracle)(Scores.of(oracle, shapes), theta, **given)
    exact = MulticlassOracle()
    tight = Hinge(exact)(Scores.of(exact, shapes), theta, **given)
    assert loose.proven
    assert (loose.values + loose.gap >= tight.values).all()
    assert (loose.values < tight.values - 1e-6).any()


class TooHigh(ChainOracle):
    """log_z + 0.3."""

    marginals_batch = None

    def marginals(self, scores, shape):
        log_z, mu = super().marginals(scores, shape)
        return log_z + 0.3, mu


class Largest(ChainOracle):
    """The largest score in place of log_z."""

    marginals_batch = None

    def marginals(self, scores, shape):
        best = self.argmax(scores, shape)
        mu = np.zeros(self.n_parts(shape))
        mu[self.parts(best, shape)] = 1.0
        return float(scores @ mu) * 0.9, mu


class HalfMu(ChainOracle):
    """mu at half the scores, of outputs too many to be listed."""

    marginals_batch = enumerate = None

    def marginals(self, scores, shape):
        return super().marginals(scores, shape)[0], super().marginals(scores / 2, shape)[1]


class Ninth(ChainOracle):
    """Off from the ninth instance of a batch on."""

    def marginals_batch(self, scores, offsets, shapes):
        log_z, mu = super().marginals_batch(scores, offsets, shapes)
        log_z[8:] += 0.05
        return log_z, mu


@pytest.mark.parametrize("kind", [TooHigh, Largest, HalfMu, Ninth])
def test_wrong_marginals_are_named_on_the_shapes_of_a_training_set(kind) -> None:
    """In few calls: by the list, by argmax, by differences, by the loop."""
    with pytest.raises(OracleError, match=rf"{kind.__name__} breaks(.|\n)*- marginals"):
        check_marginals(kind(), [(3, 3)] * 40)


def test_right_marginals_pass_on_the_shapes_of_a_training_set() -> None:
    """However large the shapes are, the number of calls is the same."""
    calls = 0

    class Counted(ChainOracle):
        marginals_batch = None

        def marginals(self, scores, shape):
            nonlocal calls
            calls += 1
            return super().marginals(scores, shape)

    check_marginals(Counted(), [(30, 5)] * 200)
    assert 50 < calls <= 260
    assert LogLoss.requires == ("marginals",)


class Outside(Oracle):
    """One of n with a projection that leaves the hull; nothing is listed."""

    n_parts, parts, example_shapes = Gap.n_parts, Gap.parts, staticmethod(Gap.example_shapes)

    def argmax(self, scores, shape):
        return np.array([scores.argmax()])

    def project(self, point, shape):
        return np.maximum(point, 0.0)


def test_a_projection_out_of_the_hull_is_named_without_a_list() -> None:
    """By a direction in which it leads further than the best output."""
    with pytest.raises(OracleError, match="project: point of the hull"):
        structpred.check_oracle(Outside())


N, K = 30, 6


def _nearly(gap: float) -> Callable[[np.ndarray], np.ndarray]:
    """The K largest of N; the next one in place of the last where that costs less than the gap, of which it says nothing."""

    def solve(values: np.ndarray) -> np.ndarray:
        order = np.argsort(-values, kind="stable")
        near = values[order[K - 1]] - values[order[K]] < gap * abs(values[order[:K]].sum())
        return np.isin(np.arange(N), [*order[: K - 1], order[K - 1 + near]]).astype(np.float64)

    return solve


@pytest.mark.parametrize("threads", [False, True], ids=["single", "blocks"])
@pytest.mark.parametrize("gap", [0.0, 0.001])
def test_a_gap_that_only_earlier_answers_show(gap: float, threads: bool) -> None:
    """A solver that stops early without saying so, that passes its check, and that no true output beats: what it found before
    does, in training. An exact one trains, and its certificate says that own code was checked on examples."""
    rng, exact = np.random.default_rng(0), _nearly(0.0)
    rows = [rng.normal(size=(N, 5)) for _ in range(40)]
    X, Y = [Instance(row, (N,)) for row in rows], [exact(row @ np.ones(5) + rng.normal(size=N)).astype(int) for row in rows]
    oracle = SolverOracle(_nearly(gap), N, minimises=False, exact=True, threads=threads)
    check_oracle(oracle)
    model = StructuredPredictor(oracle, trainer="n_slack", max_iter=15)
    if gap:
        with pytest.raises(OracleError, match=r"but an output that it found before has .* a solver that stops at a gap"):
            model.fit(X, Y)
    else:
        assert str(model.fit(X, Y).certificate_).endswith("own classes checked on examples")
