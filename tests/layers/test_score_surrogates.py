"""Losses of scores as surrogates: trainers minimise them over weights."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layer_cases import Pairs

from structpred.core.instances import Instance
from structpred.core.oracle import Oracle
from structpred.data.sequences import PackedSequences
from structpred.errors import DataError, InfeasibleError, MissingCapabilityError, ParameterError
from structpred.features.fixed_scores import FixedScores
from structpred.features.parts import PartFeatures
from structpred.features.sequences import SequenceFeatures
from structpred.layers.sparsemap import SparseMAPLoss
from structpred.layers.surrogates import LossSurrogate, PerturbedSurrogate, ScoreSurrogate, SoftMargin, SparseMAPSurrogate
from structpred.models import StructuredPredictor
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import ExtraParts, Hamming
from structpred.oracles.chain import ChainOracle
from structpred.oracles.dual_mrf import DualMRF
from structpred.oracles.mrf import graph_shape
from structpred.oracles.multiclass import MulticlassOracle
from structpred.task.callback_task import CallbackTask
from structpred.task.task import Task
from structpred.trainers.bmrm import BMRM
from structpred.trainers.lbfgs import LBFGS
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.problem import Problem
from structpred.trainers.sgd import SGD

SURROGATES = [PerturbedSurrogate(samples=4), SoftMargin(temperature=0.7), SparseMAPSurrogate(temperature=2.0)]


def chains(n: int = 8) -> Task:
    """Chains of several lengths with dense features of parts."""
    rng = np.random.default_rng(0)
    shapes = [(int(length), 3) for length in rng.integers(1, 5, size=n)]
    features = PartFeatures([rng.normal(size=(length * 3 + 9, 6)) for length, _ in shapes])
    return Task(features, ChainOracle(), [rng.integers(3, size=length) for length, _ in shapes], shapes, Hamming())


@pytest.mark.parametrize("surrogate", SURROGATES, ids=lambda one: type(one).__name__)
def test_surrogates_are_losses_of_scores(surrogate: ScoreSurrogate) -> None:
    """Gradients by weights agree with differences; single terms, bulk terms and the gradient of all say the same."""
    rng, task = np.random.default_rng(1), chains()
    w, direction = rng.normal(size=(2, task.dim))
    shares = rng.random(len(task))
    values, gradient = surrogate.gradient(task, w, shares)
    h = 1e-6
    ahead, behind = (shares @ surrogate.values(task, w + t * direction) for t in (h, -h))
    np.testing.assert_allclose((ahead - behind) / (2 * h), gradient @ direction, rtol=1e-7)
    np.testing.assert_allclose(values, [surrogate.term(task, w, i).violation for i in range(len(task))], rtol=1e-12)
    terms = surrogate.terms(task, w, range(len(task)), shares)
    np.testing.assert_allclose(terms.difference, -gradient, atol=1e-12)
    np.testing.assert_allclose(terms.offset - terms.difference @ w, shares @ values, rtol=1e-12)
    np.testing.assert_allclose(surrogate.term(task, 2.0 * w, 1, 0.5).violation, values[1], rtol=1e-12)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("surrogate", SURROGATES, ids=lambda one: type(one).__name__)
def test_trainers_minimise_them(surrogate: ScoreSurrogate) -> None:
    """A quasi-Newton method, a bundle method and stochastic steps come to the same minimum, below that of zero weights."""
    problem = Problem(chains(), surrogate, 0.1)
    primals = []
    for trainer, passes in ((LBFGS(), 40), (BMRM(), 40), (SGD(), 60)):
        result = train(problem, trainer, RunSettings(max_iter=passes, tol=1e-4))
        primals.append(problem.primal(result.weights))
    np.testing.assert_allclose(primals, primals[0], rtol=2e-2)
    assert primals[0] < 0.95 * problem.primal(np.zeros(problem.task.dim))


def test_soft_margins_lie_between_the_log_loss_and_the_hinge() -> None:
    """Without costs it is the log loss; at a low temperature it is the margin-rescaled hinge, and never below it."""
    rng, task = np.random.default_rng(2), chains()
    w = rng.normal(size=task.dim)
    np.testing.assert_allclose(SoftMargin(cost_weight=1e-300).values(task, w), LogLoss().values(task, w), rtol=1e-9)
    hinge = MarginRescaling().values(task, w)
    for temperature, tolerance in ((1.0, np.inf), (1e-3, 1e-2)):
        soft = SoftMargin(temperature=temperature).values(task, w)
        assert (soft >= hinge - 1e-9).all()
        assert (soft <= hinge + tolerance).all()


def test_costs_are_inside_the_log_of_the_sum() -> None:
    """By hand: at scores 1/2 and -1/2 and cost 1 of the wrong label, H = log(1 + exp(-1 + 1)) = log 2 (Gimpel & Smith 2010)."""
    task = Task(PartFeatures([np.eye(2)]), MulticlassOracle(), [[0]], [(2,)], Hamming())
    values, gradient = SoftMargin().gradient(task, np.array([0.5, -0.5]), np.ones(1))
    np.testing.assert_allclose(values, [np.log(2.0)], rtol=1e-15)
    np.testing.assert_allclose(gradient, [-0.5, 0.5], rtol=1e-15)


def test_the_soft_margin_is_the_sum_over_all_outputs_and_above_both_other_losses() -> None:
    """On chains it is log sum_y exp(loss + score) - score of the truth, at least the log loss and the margin-rescaled hinge; for
    costs with a constant, too.
    """
    rng, task = np.random.default_rng(4), chains()
    for loss in (Hamming(), ExtraParts()):
        own = Task(task.features, task.oracle, task.labels, task.shapes, loss)
        w = rng.normal(size=own.dim)
        found = SoftMargin().values(own, w)
        for i, shape in enumerate(own.shapes):
            theta, (constant, costs) = own.scores(w, i), own.costs(i)
            outputs = [own.oracle.parts(np.array(y), shape) for y in itertools.product(range(3), repeat=shape[0])]
            total = np.log(sum(np.exp(theta[parts].sum() + constant + costs[parts].sum()) for parts in outputs))
            np.testing.assert_allclose(found[i], total - theta[own.parts[i]].sum(), rtol=1e-12)
        assert (found >= LogLoss().values(own, w)).all()
        assert (found >= MarginRescaling().values(own, w)).all()


@pytest.mark.parametrize("weights", [False, True], ids=["plain", "token weights"])
def test_costs_as_fixed_scores_give_the_same_soft_margin(weights: bool) -> None:
    """Where costs go into the compiled log loss of a sequence, values and gradient are those of the loss of part scores."""
    rng = np.random.default_rng(5)
    lengths = np.array([3, 1, 4])
    offsets = np.append(0, np.cumsum(lengths))
    features = rng.integers(0, 6, 2 * offsets[-1])
    data = PackedSequences(np.arange(0, 2 * offsets[-1] + 1, 2), features, np.ones(len(features)), offsets, 6)
    edges = np.array([[0.0, -1e30, 0.0], [0.0, 0.0, 0.5], [0.0, 0.0, 0.0]])
    fixed = FixedScores(rng.normal(size=(2, 3)), rng.integers(0, 2, offsets[-1]).astype(np.int32), edges)
    labels = [np.array([0, 2, 2]), np.array([1]), np.array([2, 2, 0, 2])]
    costs = [rng.random(n) for n in lengths] if weights else None
    task = Task(SequenceFeatures(data, 3, fixed=fixed), ChainOracle(), labels, [(n, 3) for n in lengths.tolist()], Hamming(),
                token_weights=costs)  # fmt: skip
    w = np.zeros((task.features.n_rows, task.features.width), np.float32)
    w[:, :3] = rng.normal(size=(len(w), 3))
    surrogate, shares = SoftMargin(cost_weight=0.8), np.array([0.2, 0.5, 0.3])
    values, gradient = surrogate.gradient(task, w.ravel(), shares)
    expected, slope = ScoreSurrogate.gradient(surrogate, task, w.ravel(), shares)
    np.testing.assert_allclose(values, expected, rtol=1e-12)
    np.testing.assert_allclose(gradient, slope, atol=1e-12)
    assert task.features.fixed is fixed


def test_an_oracle_of_three_methods_is_trained_by_them() -> None:
    """The perturbed surrogate trains a user's oracle that has no marginals, until the decisions are right."""
    rng = np.random.default_rng(3)
    shapes, w = [(5,)] * 20, rng.normal(size=4)
    matrices = [rng.normal(size=(5, 4)) for _ in shapes]
    labels = [Pairs().argmax(matrix @ w, (5,)) for matrix in matrices]
    task = Task(PartFeatures(matrices), Pairs(), labels, shapes, Hamming())
    result = train(Problem(task, PerturbedSurrogate(), 1e-3), LBFGS(), RunSettings(max_iter=50))
    right = [
        np.array_equal(Pairs().argmax(matrix @ result.weights, (5,)), own) for matrix, own in zip(matrices, labels, strict=True)
    ]
    assert np.mean(right) >= 0.9


def test_models_take_them_by_name(tmp_path: Path) -> None:
    """A labeler trains with each of the three names, and a saved one remembers the settings of an object."""
    from structpred.models import ChainLabeler, load

    X, y = [np.eye(3), np.eye(3)[::-1]], [["a", "b", "c"], ["c", "b", "a"]]
    for surrogate in ("perturbed", "soft_margin", "sparsemap", PerturbedSurrogate(samples=6, sigma=0.5)):
        model = ChainLabeler(trainer="lbfgs", surrogate=surrogate, max_iter=10).fit(X, y)
        assert [own.tolist() for own in model.predict(X)] == y
    model.save(tmp_path / "model.spz")
    again = load(tmp_path / "model.spz").surrogate
    assert isinstance(again, PerturbedSurrogate)
    assert vars(again) == vars(model.surrogate)


class Refusing(Pairs):
    """An oracle that finds some scores infeasible."""

    def argmax(self, scores: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Refuse those of the third sample, where they are large."""
        if shape == (4,) and scores.max() > 5.0:
            raise InfeasibleError("no two items fit")
        return super().argmax(scores, shape)


def test_errors_name_the_sample_of_the_task() -> None:
    """What goes wrong in a block is told with the number that the sample has in the task."""
    shapes = [(3,), (5,), (4,), (5,)]
    task = Task(PartFeatures([np.ones((n, 1)) for (n,) in shapes]), Refusing(), [[0, 1]] * 4, shapes, Hamming())
    with pytest.raises(InfeasibleError, match="sample 2: no two items fit"):
        PerturbedSurrogate().values(task, 9.0 * np.ones(1))
    with pytest.raises(DataError, match="sample 2: part 0 has the score nan"):
        PerturbedSurrogate()._found(task, np.array([np.nan, 0, 0, 0]), np.array([0, 4]), 2, 3)


def test_tasks_without_part_scores_are_refused() -> None:
    """A task of three functions has no part scores, and a perceptron no use for a smooth loss: errors before any work."""
    task = CallbackTask([1, 2], [0, 1], 1, lambda x, y: np.ones(1), lambda a, b: float(a != b), lambda w, x, y, c: 0)
    with pytest.raises(ParameterError, match="loss of part scores"):
        Problem(task, PerturbedSurrogate(), 1.0)
    with pytest.raises(TypeError, match="smooth"):
        PerturbedSurrogate().offset(PerturbedSurrogate().term(chains(1), np.zeros(6), 0))


class Hasty(MulticlassOracle):
    """An oracle that may miss the best output, and has no bound."""

    exact = False


class Bounding(Hasty):
    """The same with a bound."""

    def argmax_bound(self, scores: np.ndarray, shape: tuple[int, ...]) -> tuple[np.ndarray, float]:
        return self.argmax(scores, shape), float(scores.max()) + 1e-3


@pytest.mark.parametrize("trainer", ["lbfgs", "sgd", "proximal", "bmrm"])
@pytest.mark.parametrize(
    ("oracle", "surrogate", "instead"),
    [
        (DualMRF(), "sparsemap", "'perturbed', whose value argmax_bound bounds"),
        (Bounding(), LossSurrogate(SparseMAPLoss(Bounding())), "'perturbed', whose value argmax_bound bounds"),
        (Hasty(), "sparsemap", "'margin'"),
        (Hasty(), "perturbed", "'margin'"),
    ],
)
def test_no_surrogate_without_a_value_is_trained(oracle: Oracle, surrogate: Any, instead: str, trainer: str) -> None:
    """Where an inexact oracle leaves the objective without a value, that is said before any work, and what to take."""
    shape = graph_shape(3, 2, [(0, 1), (1, 2), (0, 2)]) if isinstance(oracle, DualMRF) else (3,)
    labels = [0, 1, 0] if isinstance(oracle, DualMRF) else [1]
    passes: list[Any] = []
    X = [Instance(np.ones((oracle.n_parts(shape), 2)), shape)] * 2
    model = StructuredPredictor(oracle, surrogate=surrogate, trainer=trainer, callbacks=(passes.append,))
    with pytest.raises(MissingCapabilityError, match=f"needs an exact oracle: {type(oracle).__name__} is not exact.*{instead}"):
        model.fit(X, [labels] * 2)
    assert not passes


def test_noise_over_a_bounding_oracle_trains() -> None:
    """An inexact oracle with bounds serves the perturbed loss, whose upper bounds are then reported."""
    X = [Instance(np.eye(3), (3,))] * 2
    assert (
        StructuredPredictor(Bounding(), surrogate="perturbed", trainer="lbfgs", max_iter=3).fit(X, [[1], [1]]).certificate_.proven
    )
