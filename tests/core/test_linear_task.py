"""Binary linear classification as a task: the numbers of a task with two labels, and errors that name the sample."""

import numpy as np
import pytest
from scipy import sparse

from structpred.errors import DataError, MissingCapabilityError, ParameterError
from structpred.features.label_rows import LabelRows
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming
from structpred.oracles.multiclass import MulticlassOracle
from structpred.rows.linear_task import LinearTask
from structpred.task.steps import summed
from structpred.task.task import Task
from structpred.trainers.bcfw import BCFW
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.oeg import OnlineEG
from structpred.trainers.one_slack import OneSlackCuttingPlane
from structpred.trainers.problem import Problem

N, D = 30, 6
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D)) * (RNG.random((N, D)) < 0.5)
Y = np.where(X @ RNG.normal(size=D) + 0.5 * RNG.normal(size=N) > 0, 1, -1)
SHARES = RNG.random(N)


def test_signed_rows_give_margins_and_their_adjoint():
    """margins is A w, combined A' s, squared norms |x|^2, with the constant feature last."""
    task, dense = LinearTask(sparse.csr_matrix(X), Y, intercept=2.0), np.column_stack((X, np.full(N, 2.0))) * Y[:, None]
    w = RNG.normal(size=D + 1)
    assert task.margins(w) == pytest.approx(dense @ w, abs=1e-14)
    assert task.combined(SHARES) == pytest.approx(dense.T @ SHARES, abs=1e-14)
    assert task.squared_norms() == pytest.approx((dense**2).sum(axis=1), abs=1e-14)
    assert list(task.group_names) == ["features", "intercept"]
    assert task.groups.tolist() == [0, D, D + 1]


def test_bulk_terms_are_the_sum_of_the_steps():
    """One fused pass gives what steps give one by one, for some rows in any order."""
    task, w, rows = LinearTask(X, Y), RNG.normal(size=D), [3, 3, 0, 17]
    found = task.terms(w, rows, SHARES[:4], loss_weight=0.7)
    expected = summed((N, D), rows, SHARES[:4], lambda i: task.step(w, i, 0.7), lambda step: 0.7 * step.loss)
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other, abs=1e-14)


@pytest.mark.slow
def test_trainers_reach_the_optimum_of_the_support_vector_machine():
    """Two trainers that know nothing of linear tasks bracket liblinear's optimum."""
    from sklearn.svm import LinearSVC

    problem = Problem(LinearTask(X, Y, sample_weight=SHARES), MarginRescaling(), 0.05)
    C = SHARES / SHARES.sum() / 0.05
    svm = LinearSVC(loss="hinge", C=1.0, fit_intercept=False, tol=1e-10, max_iter=100_000).fit(X, Y, sample_weight=C)
    best = problem.primal(svm.coef_[0])
    for trainer in (BCFW(), OneSlackCuttingPlane()):
        certificate = train(problem, trainer, RunSettings(max_iter=2000, tol=1e-7)).certificate
        assert certificate.proven
        assert certificate.dual - 1e-9 <= best <= certificate.primal + 1e-9
        assert certificate.gap <= 1e-6


def test_two_labels_and_an_oracle_are_the_same_problem():
    """A LinearTask and a Task over two labels have the same hinges, at weights that score both labels symmetrically."""
    labels = [np.array([int(sign > 0)]) for sign in Y]
    two = Task(LabelRows(sparse.csr_matrix(X), 2, dtype=np.float64), MulticlassOracle(), labels, [(2,)] * N, Hamming())
    w = RNG.normal(size=D)
    assert LinearTask(X, Y).violations(w, 1.0) == pytest.approx(
        two.violations(np.column_stack((-w / 2, w / 2)).ravel(), 1.0), abs=1e-12
    )


@pytest.mark.parametrize(
    ("X", "y", "error", "words"),
    [
        ([[1.0], [np.nan]], [1, -1], DataError, "sample 1 has a value that is not finite"),
        ([[1.0], [2.0]], [1, 0], DataError, r"expected \+1 or -1, got 0 for sample 1"),
        ([[1.0], [2.0]], [1], DataError, r"one sign per row, shape \(2,\)"),
        (np.zeros((0, 3)), [], DataError, "at least one row"),
        ([["a"]], [1], DataError, "2-d matrix of numbers"),
    ],
)
def test_bad_input_is_refused(X, y, error, words):
    """The error says which sample, and what was expected."""
    with pytest.raises(error, match=words):
        LinearTask(X, y)


def test_what_a_linear_task_lacks_is_named():
    """A trainer that needs marginals is refused before any work; so are weights that are none."""
    problem = Problem(LinearTask(X, Y), OnlineEG.surrogates[0](), 0.1)
    with pytest.raises(MissingCapabilityError, match="needs marginals, but a linear task offers"):
        train(problem, OnlineEG(), RunSettings(max_iter=1))
    with pytest.raises(ParameterError, match="finite and >= 0"):
        LinearTask(X, Y, sample_weight=-np.ones(N))


def test_other_rows_signs_or_weights_have_another_fingerprint():
    """A checkpoint of other data is refused by it."""
    known = {
        task.fingerprint()
        for task in (
            LinearTask(X, Y),
            LinearTask(X, -Y),
            LinearTask(2 * X, Y),
            LinearTask(X, Y, sample_weight=SHARES),
            LinearTask(X, Y, intercept=1.0),
        )
    }
    assert len(known) == 5
