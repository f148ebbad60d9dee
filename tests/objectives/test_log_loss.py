"""The log loss: value and gradient against enumeration and finite differences, compiled sweeps against plain calls."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import logsumexp

from structpred.core.fixed_scores import FORBIDDEN
from structpred.data.sequences import PackedSequences
from structpred.errors import MissingCapabilityError
from structpred.features.fixed_scores import FixedScores
from structpred.features.parts import PartFeatures
from structpred.features.sequences import SequenceFeatures
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.part_losses import Hamming
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.chain import ChainOracle
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.oracles.multiclass import MulticlassOracle
from structpred.oracles.semimarkov import SemiMarkovOracle
from structpred.task.task import Task


def corpus(rng, n, n_features=7, longest=6):
    """n random packed sequences."""
    lengths = rng.integers(1, longest + 1, n)
    counts = rng.integers(0, 4, lengths.sum())
    indices = rng.integers(0, n_features, counts.sum()).astype(np.int32)
    values = rng.normal(size=counts.sum()).astype(np.float32)
    return PackedSequences(np.cumsum([0, *counts]), indices, values, np.cumsum([0, *lengths]), n_features)


def fixed_for(rng, data, n_labels, labels):
    """Priors on tokens, and one forbidden transition that the truth does not use where there is one."""
    edges = rng.normal(size=(n_labels, n_labels))
    used = {(int(a), int(b)) for y in labels for a, b in pairwise(y)}
    for pair in np.ndindex(n_labels, n_labels):
        if pair not in used:
            edges[pair] = FORBIDDEN
            break
    return FixedScores(rng.normal(size=(3, n_labels)), rng.integers(0, 3, data.n_tokens).astype(np.int32), edges)


def chain_task(seed, n_labels=3, n=9, *, dtype=np.float64, fixed=False, n_jobs=1, compiled=True):
    """A random chain task."""
    rng = np.random.default_rng(seed)
    data = corpus(rng, n)
    labels = [rng.integers(0, n_labels, k) for k in data.lengths]
    scores = fixed_for(rng, data, n_labels, labels) if fixed else None
    features = SequenceFeatures(data, n_labels, dtype=dtype, fixed=scores)
    shapes = [(int(k), n_labels) for k in data.lengths]
    return Task(features, ChainOracle(), labels, shapes, Hamming(), n_jobs=n_jobs, compiled=compiled)


def part_task(oracle, shapes, seed=0):
    """A task of parts with random true outputs."""
    rng = np.random.default_rng(seed)
    rows = [rng.normal(size=(oracle.n_parts(shape), 4)) for shape in shapes]
    outputs = [list(oracle.enumerate(shape)) for shape in shapes]
    return Task(PartFeatures(rows), oracle, [y[rng.integers(len(y))] for y in outputs], shapes, Hamming())


TASKS = {
    "chain": lambda: chain_task(0),
    "chain with constraints": lambda: chain_task(1, 4, fixed=True),
    "multiclass": lambda: part_task(MulticlassOracle(), [(3,), (5,), (1,)]),
    "segments": lambda: part_task(SemiMarkovOracle(), [(4, 2, 3), (1, 2, 1), (5, 2, 2)]),
    "listed matchings": lambda: part_task(EnumeratedOracle.of(AssignmentOracle()), [(3,), (2,), (4,)]),
}


def listed_value(task, w, i):
    """-log p(y_i | x_i), by listing all outputs."""
    theta = task.features.scores(w, i)
    fixed = task.features.fixed_scores(i)
    theta = theta if fixed is None else theta + fixed
    totals = [theta[task.oracle.parts(y, task.shapes[i])].sum() for y in task.oracle.enumerate(task.shapes[i])]
    return float(logsumexp(totals) - theta[task.parts[i]].sum())


@pytest.mark.parametrize("name", TASKS)
def test_the_value_is_minus_the_log_probability_of_the_truth(name) -> None:
    """term, values and gradient give the same number as listing all outputs does; at zero weights too, and scaled."""
    task, loss, rng = TASKS[name](), LogLoss(), np.random.default_rng(5)
    for w in (np.zeros(task.dim), rng.normal(size=task.dim), 5.0 * rng.normal(size=task.dim)):
        wanted = [listed_value(task, w, i) for i in range(len(task))]
        np.testing.assert_allclose(loss.values(task, w), wanted, atol=1e-9)
        for i, value in enumerate(wanted):
            step = loss.term(task, w, i)
            assert step.violation == pytest.approx(value, abs=1e-9)
            assert step.bound == step.violation
            assert loss.term(task, 0.5 * w, i, 2.0).violation == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("name", TASKS)
def test_the_gradient_is_that_of_the_value(name) -> None:
    """Central differences along every weight: of one instance (-difference) and of the weighed sum."""
    task, loss, rng = TASKS[name](), LogLoss(), np.random.default_rng(6)
    w, shares = rng.normal(size=task.dim), rng.uniform(0.1, 2.0, len(task))
    gradient = loss.gradient(task, w, shares)[1]
    single = np.array([-loss.term(task, w, i).difference.dense(task.dim) for i in range(len(task))])
    np.testing.assert_allclose(shares @ single, gradient, atol=1e-10)
    for j in range(task.dim):
        shift = np.zeros(task.dim)
        shift[j] = 1e-5
        slopes = (loss.values(task, w + shift) - loss.values(task, w - shift)) / 2e-5
        np.testing.assert_allclose(single[:, j], slopes, atol=1e-7)


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("scale", [0.1, 3.0, 1e4])
def test_compiled_sums_equal_the_plain_path(fixed, scale) -> None:
    """Values and gradient of the compiled sweep equal those of single calls, for weights of any size."""
    for seed in range(4):
        tasks = [chain_task(seed, 3, n=40, fixed=fixed, compiled=compiled) for compiled in (True, False)]
        rng = np.random.default_rng(seed)
        w, shares = scale * rng.normal(size=tasks[0].dim), rng.uniform(0.0, 2.0, 40)
        w.reshape(-1, tasks[0].features.width)[:, 3:] = 0.0
        (values, gradient), (plain_values, plain_gradient) = (LogLoss().gradient(task, w, shares) for task in tasks)
        np.testing.assert_allclose(values, plain_values, rtol=1e-12, atol=1e-11 * scale)
        np.testing.assert_allclose(gradient, plain_gradient, atol=1e-8 if scale < 100 else 1e-6)
        assert gradient.dtype == np.float64


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_bits_for_any_number_of_threads(dtype) -> None:
    """Values and gradient with 1, 2, 3 and 8 threads."""
    w = np.random.default_rng(7).normal(size=chain_task(8, n=100).dim).astype(dtype)
    shares = np.random.default_rng(8).uniform(0.1, 2.0, 100)
    found = [LogLoss().gradient(chain_task(8, n=100, dtype=dtype, n_jobs=n), w, shares) for n in (1, 2, 3, 8)]
    for values, gradient in found[1:]:
        assert values.tobytes() == found[0][0].tobytes()
        assert gradient.tobytes() == found[0][1].tobytes()


def test_blocks_and_pieces_do_not_show(monkeypatch) -> None:
    """Cut into many small blocks, the sums are those of one block."""
    from structpred.fused import chains

    task = chain_task(9, n=60)
    w = np.random.default_rng(9).normal(size=task.dim)
    whole = LogLoss().gradient(task, w, np.ones(60))
    monkeypatch.setattr(chains, "BLOCK_TOKENS", 10)
    cut = LogLoss().gradient(chain_task(9, n=60), w, np.ones(60))
    assert np.array_equal(whole[0], cut[0])
    np.testing.assert_allclose(whole[1], cut[1], atol=1e-12)


def test_marginals_are_asked_for() -> None:
    """An oracle without marginals is refused by name; the log loss has no linear pieces to offset."""
    oracle = AssignmentOracle()
    task = Task(PartFeatures([np.ones((4, 2))]), oracle, [[0, 1]], [(2,)], Hamming())
    with pytest.raises(MissingCapabilityError, match="marginals, which AssignmentOracle does not have"):
        task.require(LogLoss().requires, "surrogate LogLoss")
    with pytest.raises(TypeError, match="not a maximum of linear functions"):
        LogLoss().offset(None)
