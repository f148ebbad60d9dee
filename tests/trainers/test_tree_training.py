"""Trainers on dependency trees: the same files as for chains, with nothing but the oracle's own methods.

Sentences of three to six words, every arc with a sparse row of random features. What is best is found by listing trees,
by a function of this file that shares nothing with the oracles.
"""

import itertools

import numpy as np
import pytest
from scipy import sparse
from training_cases import log_optimum, log_problem, optimum, problem

from structpred.features.parts import PartFeatures
from structpred.objectives.part_losses import Hamming
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.oracles.projective import ProjectiveOracle
from structpred.task.task import Task
from structpred.trainers.arow import AROW
from structpred.trainers.bcfw import BCFW
from structpred.trainers.corrective import Corrective
from structpred.trainers.lbfgs import LBFGS
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.mira import MIRA
from structpred.trainers.oeg import OnlineEG
from structpred.trainers.passive_aggressive import PassiveAggressive
from structpred.trainers.perceptron import AveragedPerceptron
from structpred.trainers.sgd import SGD

ORACLES = {
    "arborescence": ArborescenceOracle(),
    "arborescence, several roots": ArborescenceOracle(single_root=False),
    "projective": ProjectiveOracle(),
    "projective, several roots": ProjectiveOracle(single_root=False),
}
every_oracle = pytest.mark.parametrize("name", ORACLES)

LENGTHS = (3, 4, 3, 5, 4, 6, 5)
#: (lengths, features, seed, lam) with the optimum inside a face of the dual, where Frank-Wolfe steps converge linearly; elsewhere
#: they need about 1/eps passes
QUICK = {
    "arborescence": [((3, 4, 5, 6), 6, 2, 2.0), ((3, 4, 5, 6), 6, 2, 8.0)],
    "arborescence, several roots": [((3, 4, 5, 6), 6, 1, 8.0), ((4, 3, 4, 3, 5, 6), 12, 1, 2.0)],
    "projective": [((3, 4, 5, 6), 6, 0, 8.0), ((4, 3, 4, 3, 5, 6), 6, 3, 8.0)],
    "projective, several roots": [((3, 4, 5, 6), 6, 2, 8.0), ((4, 3, 4, 3, 5, 6), 6, 1, 8.0)],
}


def is_tree(heads, single_root):
    """Whether every word reaches the root, which has one child only if `single_root`."""
    if single_root and heads.count(0) != 1:
        return False
    for word in range(1, len(heads) + 1):
        seen = 0
        while word and seen <= len(heads):
            word, seen = heads[word - 1], seen + 1
        if word:
            return False
    return True


def is_projective(heads):
    """Whether no two arcs cross, the root to the left of all words."""
    arcs = [(min(m, h), max(m, h)) for m, h in enumerate(heads, 1)]
    return not any(a < c < b < d for a, b in arcs for c, d in arcs)


def listed(oracle):
    """The structure of a tree oracle from its definition: every heads array that is such a tree."""
    projective = isinstance(oracle, ProjectiveOracle)

    def outputs(shape):
        for heads in itertools.product(range(shape[0] + 1), repeat=shape[0]):
            if is_tree(heads, oracle.single_root) and (not projective or is_projective(heads)):
                yield np.array(heads, dtype=np.int64)

    return EnumeratedOracle(
        outputs,
        lambda heads, shape: np.arange(shape[0]) * (shape[0] + 1) + heads,
        lambda shape: shape[0] * (shape[0] + 1),
        example_shapes=[(3,)],
        label_grid=lambda shape: (shape[0], shape[0] + 1),
    )


def tree_task(oracle, seed=0, lengths=LENGTHS, d=12, *, planted=False, **options):
    """Arcs with four features of d in the mean; the true trees are random, or best for hidden weights if `planted`."""
    rng = np.random.default_rng(seed)
    rows = [rng.normal(size=(n * (n + 1), d)) * (rng.random((n * (n + 1), d)) < 4 / d) for n in lengths]
    hidden = rng.normal(size=d)
    scores = [row @ hidden if planted else rng.normal(size=len(row)) for row in rows]
    truth = [oracle.argmax(s, (n,)) for s, n in zip(scores, lengths, strict=True)]
    features = PartFeatures([sparse.csr_array(row) for row in rows])
    return Task(features, oracle, truth, [(n,) for n in lengths], Hamming(), **options)


def twin(task):
    """The same task with its trees listed here instead of searched for."""
    return Task(
        task.features, listed(task.oracle), task.labels, task.shapes, task.loss, sample_weight=task.sample_weight, compiled=False
    )


def right_heads(task, w):
    """The share of words that get their true head."""
    wrong = sum(int((task.argmax(w, i) != task.labels[i]).sum()) for i in range(len(task)))
    return 1.0 - wrong / sum(len(y) for y in task.labels)


def phi(task, i, heads):
    """The features of a tree: the sum of the rows of its arcs, read off the dense matrix of the sentence."""
    n = len(heads)
    dense = np.array([task.features.scores(axis, i) for axis in np.eye(task.dim)]).T.reshape(n, n + 1, -1)
    return sum(dense[m, heads[m]] for m in range(n))


@every_oracle
@pytest.mark.parametrize("kind", ["perceptron", "mira", "pa"])
def test_online_steps_are_those_of_a_dense_implementation(name, kind) -> None:
    """Three passes with sample weights; the trees are found by the oracle, all else is written out: equal to 1e-10."""
    lam = 0.3
    task = tree_task(ORACLES[name], 1, LENGTHS[:5], sample_weight=np.linspace(0.3, 2.0, 5))
    share = task.sample_weight / task.sample_weight.sum()
    trainer, loss_weight = {"perceptron": (AveragedPerceptron(), 0.0), "mira": (MIRA(), 1.0), "pa": (PassiveAggressive(), 0.0)}[
        kind
    ]
    result = train(problem(task, lam, loss_weight), trainer, RunSettings(max_iter=3, seed=5))
    rng, w, total = np.random.Generator(np.random.PCG64(5)), np.zeros(task.dim), np.zeros(task.dim)
    for i in itertools.chain.from_iterable(rng.permutation(5) for _ in range(3)):
        found = task.argmax(w, i, loss_weight)
        psi, wrong = phi(task, i, task.labels[i]) - phi(task, i, found), int((found != task.labels[i]).sum())
        if wrong and kind == "perceptron":
            w = w + task.sample_weight[i] * psi
        elif wrong and kind == "mira" and wrong > w @ psi:
            w = w + min(share[i] / lam, (wrong - w @ psi) / (psi @ psi)) * psi
        elif wrong and kind == "pa":
            w = w + min(task.sample_weight[i], (np.sqrt(wrong) - w @ psi) / (psi @ psi)) * psi
        total += w
    np.testing.assert_allclose(result.weights, total / 15, atol=1e-10)


@pytest.mark.slow
@every_oracle
@pytest.mark.parametrize(
    "trainer", [AveragedPerceptron(), MIRA(), SGD(), BCFW(), PassiveAggressive(), AROW()], ids=lambda t: type(t).__name__
)
def test_planted_weights_are_found(name, trainer) -> None:
    """Trees that are best for hidden weights: nearly all heads of other sentences are right after training."""
    task = tree_task(ORACLES[name], 2, (3, 4, 5, 6, 9) * 30, planted=True)
    train_part, rest = (tree_part(task, part) for part in (range(120), range(120, 150)))
    loss_weight = 0.0 if isinstance(trainer, AveragedPerceptron | PassiveAggressive | AROW) else 1.0
    result = train(problem(train_part, 1e-3, loss_weight), trainer, RunSettings(max_iter=15))
    assert right_heads(rest, np.asarray(result.weights)) > 0.95 > 0.5 > right_heads(rest, np.zeros(task.dim))


def tree_part(task, part):
    """Some samples of a task."""
    rows = [np.array([task.features.scores(axis, i) for axis in np.eye(task.dim)]).T for i in part]
    return Task(PartFeatures(rows), task.oracle, [task.labels[i] for i in part], [task.shapes[i] for i in part], task.loss)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "case"), [(name, case) for name in ORACLES for case in QUICK[name]])
def test_bcfw_reaches_the_optimum_of_the_margin_problem(name, case) -> None:
    """Primal and dual meet at the value of the quadratic program over all trees, to 1e-6; the gap is >= 0 at every pass."""
    pytest.importorskip("cvxpy")
    lengths, d, seed, lam = case
    task = tree_task(ORACLES[name], seed, lengths, d, planted=True)
    result = train(problem(task, lam), BCFW(averaged=False), RunSettings(max_iter=1000, tol=1e-8, check_every=1))
    value, w = optimum(twin(task), lam)
    assert result.certificate.primal == pytest.approx(value, abs=1e-6)
    assert result.certificate.dual == pytest.approx(value, abs=1e-6)
    assert result.certificate.proven
    np.testing.assert_allclose(result.weights, w, atol=1e-3)
    assert result.passes > 2  # not a problem that one step at each sentence solves
    assert np.linalg.norm(w) > 0.1
    assert min(row["gap"] for row in result.history) >= -1e-12


@pytest.mark.slow
@every_oracle
@pytest.mark.parametrize("lam", [1.0, 0.02])
def test_bounds_hold_far_from_the_optimum(name, lam) -> None:
    """Averaged, by gaps, with cached trees: dual <= optimum <= primal at every pass; the optimal w has the optimal primal."""
    pytest.importorskip("cvxpy")
    task = tree_task(ORACLES[name], 4, LENGTHS[:5], sample_weight=np.linspace(0.5, 2.0, 5))
    value, w = optimum(twin(task), lam)
    assert problem(task, lam).primal(w) == pytest.approx(value, abs=1e-6)
    for trainer in (BCFW(), BCFW(gap_sampling=True), Corrective(corners=4)):
        rows = train(problem(task, lam), trainer, RunSettings(max_iter=40, check_every=1)).history
        assert min(row["gap"] for row in rows) >= 0
        assert max(row["dual"] for row in rows) <= value + 1e-7
        assert min(row["primal"] for row in rows) >= value - 1e-7
        assert rows[-1]["gap"] < 0.5 * rows[0]["gap"]


@pytest.mark.slow
@every_oracle
@pytest.mark.parametrize("lam", [0.5, 0.05])
def test_random_fields_of_trees_reach_the_optimum(name, lam) -> None:
    """OEG and L-BFGS, with marginals over trees, against SciPy on the listed log-likelihood: objective and bound to 1e-6."""
    task = tree_task(ORACLES[name], 5, sample_weight=np.linspace(0.5, 2.0, len(LENGTHS)))
    value, w = log_optimum(twin(task), lam)
    for trainer, passes in ((OnlineEG(), 600), (LBFGS(), 200)):
        result = train(log_problem(task, lam), trainer, RunSettings(max_iter=passes, tol=1e-7, check_every=5))
        assert result.certificate.primal == pytest.approx(value, rel=1e-6)
        assert result.certificate.dual == pytest.approx(value, rel=1e-6)
        assert min(row["gap"] for row in result.history if row["gap"] is not None) >= -1e-9
        np.testing.assert_allclose(result.weights, w, atol=1e-3)


@pytest.mark.slow
@every_oracle
def test_sgd_nears_both_optima(name) -> None:
    """The margin problem and the log loss, averaged: within two hundredths of the optimal value."""
    task, lam = tree_task(ORACLES[name], 6, LENGTHS[:5]), 0.2
    for make, best in ((problem, optimum), (log_problem, log_optimum)):
        value, _ = best(twin(task), lam)
        result = train(make(task, lam), SGD(), RunSettings(max_iter=400))
        assert value - 1e-7 <= result.certificate.primal <= 1.02 * value
