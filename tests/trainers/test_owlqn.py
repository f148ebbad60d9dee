"""Quasi-Newton with an l1 term: optimal by an independent solver, and by what defines an optimum."""

import numpy as np
import pytest
from training_cases import sequences

from structpred.errors import ParameterError
from structpred.features.sequences import SequenceFeatures
from structpred.models import ChainLabeler
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming
from structpred.oracles.chain import ChainOracle
from structpred.task.task import Task
from structpred.trainers.lbfgs import LBFGS, objective
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.owlqn import OWLQN
from structpred.trainers.problem import Problem


def make_problem(seed: int = 0, lam: float = 0.05, weights=None) -> Problem:
    """Twenty sequences, three labels that depend on the features."""
    rng = np.random.default_rng(seed)
    data = sequences(rng, 20)
    truth = rng.normal(size=(12, 3))
    rows = np.zeros((data.n_tokens, 12))
    np.add.at(rows, (np.repeat(np.arange(data.n_tokens), np.diff(data.indptr)), data.indices), data.values)
    gold = np.split((rows @ truth).argmax(axis=1), data.offsets[1:-1])
    features = SequenceFeatures(data, 3, dtype=np.float64)
    shapes = [(n, 3) for n in data.lengths.tolist()]
    task = Task(features, ChainOracle(), gold, shapes, Hamming(), sample_weight=weights)
    return Problem(task, LogLoss(), lam)


def run(problem: Problem, trainer: OWLQN, passes: int = 400):
    """Train without looking at the gap on the way."""
    return train(problem, trainer, RunSettings(max_iter=passes, check_every=passes))


def proximal(problem: Problem, l1: float, free: np.ndarray, steps: int = 2000) -> np.ndarray:
    """FISTA: gradient steps on the smooth part, soft thresholds for the l1 term; shares nothing with the trainer."""
    w = v = np.zeros(problem.task.dim)
    step, t = 0.1, 1.0
    for _ in range(steps):
        moved = v - step * objective(problem, v)[1]
        new = np.sign(moved) * np.maximum(np.abs(moved) - step * problem.lam * l1, 0.0)
        new[~free] = 0.0
        after = (1 + np.sqrt(1 + 4 * t * t)) / 2
        v, w, t = new + (t - 1) / after * (new - w), new, after
    return w


@pytest.mark.mostly_slow
@pytest.mark.parametrize("l1", [0.1, 0.5, 2.0])
def test_the_optimum_is_that_of_a_proximal_method(l1: float) -> None:
    """Weights and zeros agree with FISTA, which knows nothing of orthants."""
    problem = make_problem()
    result = run(problem, OWLQN(l1=l1))
    other = proximal(problem, l1, np.ones(problem.task.dim, bool))
    np.testing.assert_allclose(result.weights, other, atol=2e-5)
    assert 0 < np.count_nonzero(result.weights) < 12 * 3 + 15
    assert np.abs(other[result.weights == 0.0]).max() < 1e-5


@pytest.mark.mostly_slow
@pytest.mark.parametrize("l1", [0.0, 0.3])
def test_only_free_weights_move(l1: float) -> None:
    """Weights that are not free stay zero, and the others are optimal among themselves."""
    problem = make_problem(1)
    free = np.zeros(problem.task.dim, bool)
    free[: problem.task.dim : 2] = True
    result = run(problem, OWLQN(l1=l1, free=np.flatnonzero(free)))
    assert (result.weights[~free] == 0.0).all()
    np.testing.assert_allclose(result.weights, proximal(problem, l1, free), atol=2e-5)


@pytest.mark.parametrize("l1", [0.2, 1.0])
def test_the_subgradient_condition_holds(l1: float) -> None:
    """At the optimum the gradient is -lam l1 sign(w) where w is not zero, and at most lam l1 in size elsewhere."""
    problem = make_problem(2)
    w = np.asarray(run(problem, OWLQN(l1=l1)).weights)
    gradient, kink = objective(problem, w)[1], problem.lam * l1
    np.testing.assert_allclose(gradient[w != 0], -kink * np.sign(w[w != 0]), atol=1e-6)
    assert (np.abs(gradient[w == 0]) <= kink + 1e-6).all()


def test_without_l1_it_is_lbfgs() -> None:
    """With l1=0 and all weights free the steps are those of L-BFGS, to the last bit."""
    problem = make_problem(3)
    one, other = (train(problem, t, RunSettings(max_iter=15)) for t in (OWLQN(), LBFGS()))
    np.testing.assert_array_equal(one.weights, other.weights)


@pytest.mark.parametrize("regulariser", ["l1", "l2"])
@pytest.mark.parametrize("seed", [12, 13, 14])
def test_where_labels_are_missing_it_ends_when_no_step_helps(
    regulariser: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step so short that nothing changes is no success: one search for a decrease finds none, and the run ends there."""
    rng, evaluations, own = np.random.default_rng(seed), [0], OWLQN._objective
    X = [rng.normal(size=(n, 3)) for n in rng.integers(2, 6, 30)]
    whole = [np.where(x.sum(axis=1) > 0, "a", "b").tolist() for x in X]
    y = [[None if rng.random() < 0.3 and i % 3 else label for label in labels] for i, labels in enumerate(whole)]

    def counted(self, problem, z):
        evaluations[0] += 1
        return own(self, problem, z)

    monkeypatch.setattr(OWLQN, "_objective", counted)
    model = ChainLabeler("owlqn", regulariser=regulariser, C=0.3, max_iter=200, missing="?").fit(X, y)
    assert model.stop_reason_ == "tol"
    assert model.n_iter_ < 40
    assert evaluations[0] < model.n_iter_ + 20 + 40  # the last search, and steps that are too long: rounding decides how many


@pytest.fixture(scope="module")
def best() -> float:
    """The optimum of the problem below."""
    problem = make_problem(4)
    return OWLQN(l1=0.3).primal(problem, proximal(problem, 0.3, np.ones(problem.task.dim, bool)))


@pytest.mark.mostly_slow
@pytest.mark.parametrize("passes", [1, 3, 10, 200])
def test_the_certificate_brackets_the_optimum(passes: int, best: float) -> None:
    """dual <= optimum <= primal after any number of iterations, and the primal falls."""
    problem = make_problem(4)
    certificate = run(problem, OWLQN(l1=0.3), passes).certificate
    assert certificate.dual - 1e-9 <= best <= certificate.primal + 1e-9
    assert certificate.proven


def test_the_primal_of_kept_weights_has_its_l1_term() -> None:
    """Where held-out data choose earlier weights, the certificate is about them with the l1 term."""
    problem = make_problem(5)
    trainer = OWLQN(l1=1.0)
    result = train(problem, trainer, RunSettings(max_iter=20, check_every=1, dev=lambda w: -float(np.abs(w).sum())))
    assert result.certificate.primal == pytest.approx(trainer.primal(problem, result.weights))
    assert result.certificate.primal > problem.primal(result.weights)


def test_sample_weights_count_as_shares() -> None:
    """Five times all weights is the same problem; a weight of 0 is not the same as a weight of 1."""
    weights = np.ones(20)
    weights[:3] = 0.0
    one, five, even = (run(make_problem(6, weights=v), OWLQN(l1=0.2)).weights for v in (weights, 5 * weights, None))
    np.testing.assert_allclose(one, five, atol=1e-5)
    assert np.abs(one - even).max() > 1e-3


@pytest.mark.parametrize("bad", [{"l1": -1.0}, {"l1": float("nan")}, {"l1": "x"}, {"free": [2, 1]}, {"free": [0, 10**6]}])
def test_bad_settings_are_refused(bad: dict) -> None:
    """Nonsense gives ParameterError before training."""
    with pytest.raises(ParameterError):
        run(make_problem(), OWLQN(**bad), 1)


def test_it_refuses_surrogates_without_gradient() -> None:
    """The hinge has kinks everywhere."""
    problem = make_problem()
    with pytest.raises(ParameterError, match="OWLQN cannot minimise MarginRescaling"):
        run(Problem(problem.task, MarginRescaling(), 0.1), OWLQN(), 1)
