"""CoCoA+ in one process: sums over shards that rise to the optimum of the whole, for both trainers of blocks."""

from dataclasses import replace

import numpy as np
import pytest
from label_set_cases import task_of_kind
from scipy.optimize import nnls
from training_cases import PlainChain, chain_task, log_optimum, log_problem, multiclass_task, optimum, problem, sequences

from structpred.errors import ParameterError
from structpred.features.parts import PartFeatures
from structpred.features.sequences import SequenceFeatures
from structpred.objectives.part_losses import Hamming
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.chain import ChainOracle
from structpred.task.task import Task
from structpred.trainers.bcfw import BCFW
from structpred.trainers.cocoa import CoCoA
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.oeg import OnlineEG
from structpred.trainers.perceptron import AveragedPerceptron
from structpred.trainers.shards.rounds import IndexMap, Part, totals

KINDS = {"bcfw": (BCFW, problem), "oeg": (OnlineEG, log_problem)}
EVERY = RunSettings(max_iter=12, check_every=1)


class InOrder:
    """Visits of one shard: that of a run without shards, to compare with."""

    def order(self, problem, state, rng, n_pass):
        return np.random.Generator(np.random.PCG64([3, 0, n_pass])).permutation(len(problem.task))


class OrderedBCFW(InOrder, BCFW):
    """Of max-margin training."""


class OrderedOEG(InOrder, OnlineEG):
    """Of conditional random fields."""


@pytest.mark.parametrize(("name", "ordered"), [("bcfw", OrderedBCFW), ("oeg", OrderedOEG)])
def test_one_shard_is_the_trainer_itself(name, ordered) -> None:
    """With K = 1 bounds and weights of every round are those of the trainer's passes, to 1e-10."""
    kind, make = KINDS[name]
    task = chain_task(0, n=20, weighted=True)
    plain, found = (train(make(task, 0.05), trainer, EVERY) for trainer in (ordered(), CoCoA(kind(), shards=1, seed=3)))
    for key in ("primal", "dual"):
        np.testing.assert_allclose([row[key] for row in found.history], [row[key] for row in plain.history], rtol=1e-10)
    np.testing.assert_allclose(found.weights, plain.weights, atol=1e-10)


def tree_task(seed=0, n=12):
    """Dependency trees of three or four words, every arc with random features."""
    rng = np.random.default_rng(seed)
    oracle, shapes = ArborescenceOracle(), [(3 + i % 2,) for i in range(n)]
    rows = [rng.normal(size=(oracle.n_parts(shape), 4)) for shape in shapes]
    return Task(PartFeatures(rows), oracle, [np.arange(k) for (k,) in shapes], shapes, Hamming())


TASKS = {
    "chain": lambda: chain_task(1, n=17, weighted=True),
    "tree": tree_task,
    "label sets": lambda: task_of_kind("tree", weighted=True),
    "own oracle": lambda: chain_task(2, n=12, oracle=PlainChain()),
}


@pytest.mark.mostly_slow
@pytest.mark.parametrize("n_shards", [2, 5, 8])
@pytest.mark.parametrize(
    ("structure", "name", "sigma"),
    [(structure, "bcfw", sigma) for structure in TASKS for sigma in (None, 1.0, 2.0)]
    + [(structure, "oeg", None) for structure in TASKS if structure != "own oracle"],  # which has no marginals
)
def test_the_dual_never_falls_and_never_passes_the_primal(structure, name, sigma, n_shards) -> None:
    """In no round, on four structures, with adding and with a line search, where samples and tokens have weights."""
    kind, make = KINDS[name]
    rows = train(make(TASKS[structure](), 0.03), CoCoA(kind(), shards=n_shards, sigma=sigma), EVERY).history
    primal, dual = (np.array([row[key] for row in rows]) for key in ("primal", "dual"))
    slack = 1e-12 if TASKS[structure]().dtype == np.float64 else 1e-6
    assert (np.diff(dual) >= -slack).all()
    assert (dual <= primal + slack).all()
    assert dual[-1] > dual[0]


@pytest.mark.parametrize("sigma", [None, 1.0])
def test_blocks_stay_feasible(sigma) -> None:
    """After rounds of adding, and of steps that are cut, every block is a mean of its corners, with the mean of their offsets."""
    task = multiclass_task(2, n=9)
    whole, trainer = problem(task, 0.02), CoCoA(BCFW(), shards=3, sigma=sigma)
    state, etas = trainer.init_state(whole), []
    for _ in range(6):
        state, _ = trainer.update(whole, state, 0)
        etas.append(eta := float(state.common.numbers[1]))
    assert (min(etas) < 1.0) == (sigma is not None)
    total = np.zeros(task.dim)
    for k, (part, shard) in enumerate(zip(trainer.parts(whole), state.shards, strict=True)):
        now = shard.now if sigma is None else BCFW().mixed(shard.before, shard.now, eta)
        for i in range(3):
            u = np.zeros(task.dim)
            u[now.blocks.block(i)[0]] = now.blocks.block(i)[1]
            total += u
            p, (_, ell) = float(part.problem.p[i]), task.costs(3 * k + i)
            corners = [
                np.append(p / 0.02 * task.difference(3 * k + i, np.array([y])).dense(task.dim), [p * ell[y], 1.0])
                for y in range(4)
            ]
            assert nnls(np.array(corners).T, np.append(u, [now.offsets[i], 1.0]))[1] < 1e-10
    np.testing.assert_allclose(total, state.common.vectors[0], atol=1e-12)


def compact(part: Part, counts=None) -> Part:
    """The shard in a numbering of its own: the features that occur in it, then start, stop and transitions."""
    task = part.problem.task
    data, n_labels, width = task.features.data, task.features.n_labels, task.features.width
    rows, indices = np.unique(data.indices, return_inverse=True)
    small = replace(data, indices=indices.astype(np.int32), n_features=len(rows))
    made = Task(
        SequenceFeatures(small, n_labels, dtype=np.float64), ChainOracle(), task.labels, task.shapes, Hamming(),
        sample_weight=task.sample_weight,
    )  # fmt: skip
    at = IndexMap(rows, width, (2 + n_labels) * width, task.dim)
    own = None if counts is None else np.repeat(np.append(counts[rows], [part.n_shards] * (2 + n_labels)), width)
    return part._replace(problem=replace(part.problem, task=made), at=at, shards=None if own is None else lambda: own)


def duals_of(algorithm, parts, dim, rounds):
    """The dual value of each round, and the weights at the end."""
    begun = [algorithm.begin(part) for part in parts]
    states = [state for state, _ in begun]
    common = algorithm.close(None, totals(dim, [(part.at, report) for part, (_, report) in zip(parts, begun, strict=True)]))
    duals = []
    for t in range(rounds):
        reports = []
        for k, part in enumerate(parts):
            states[k], report = algorithm.advance(part, states[k], common.of(part.at), t)
            reports.append((part.at, report))
        common = algorithm.close(common, totals(dim, reports))
        duals.append(algorithm.dual(common, parts[0].problem.lam))
    return np.array(duals), algorithm.weights(common)


@pytest.mark.parametrize(("rows", "width", "tail"), [([0, 2, 5], 3, 4), ([1], 2, 0), ([], 3, 2)])
def test_places_of_weights(rows, width, tail) -> None:
    """What is taken from a vector, added to one, and numbered, is what an index of every weight says."""
    dim = 6 * width + tail
    at = IndexMap(np.array(rows, dtype=np.int64), width, tail, dim)
    index = np.array([row * width + j for row in rows for j in range(width)] + list(range(dim - tail, dim)), dtype=np.int64)
    vector = np.random.default_rng(1).normal(size=dim)
    np.testing.assert_array_equal(at.of(vector), vector[index])
    np.testing.assert_array_equal(at.among(np.arange(len(index))), index)
    out, change = vector.copy(), np.arange(1.0, len(index) + 1)
    at.add_to(out, change)
    before = vector.copy()
    vector[index] += change
    np.testing.assert_array_equal(out, vector)
    ends = [2 * width, 5 * width, dim]
    for start, stop in zip([0, *ends], ends, strict=False):
        own, inside = at.cut(start, stop)
        piece = before[start:stop].copy()
        inside.add_to(piece, change[own])
        np.testing.assert_array_equal(piece, vector[start:stop])


def sparse_chains():
    """Chains of which most features occur in few sentences."""
    rng = np.random.default_rng(5)
    data = sequences(rng, 16, n_features=60)
    lengths = np.diff(data.offsets)
    labels = [rng.integers(0, 3, k) for k in lengths]
    return Task(SequenceFeatures(data, 3, dtype=np.float64), ChainOracle(), labels, [(int(k), 3) for k in lengths], Hamming())


@pytest.mark.parametrize("name", KINDS)
def test_a_numbering_of_its_own_changes_no_bit(name) -> None:
    """Shards that know only the weights that occur in them lead to the same duals and weights as shards that know all."""
    kind, make = KINDS[name]
    whole = make(sparse_chains(), 0.03)
    trainer = CoCoA(kind(), shards=4)
    parts = trainer.parts(whole)
    duals, w = duals_of(trainer.algorithm, parts, whole.task.dim, 4)
    own_duals, own_w = duals_of(trainer.algorithm, [compact(part) for part in parts], whole.task.dim, 4)
    assert duals.tobytes() == own_duals.tobytes()
    assert w.tobytes() == own_w.tobytes()


def test_weights_of_few_shards_are_moved_further() -> None:
    """Where shards know how many have each weight the dual never falls either, and is higher after every round."""
    whole = problem(sparse_chains(), 0.03)
    trainer = CoCoA(BCFW(), shards=4)
    parts = trainer.parts(whole)
    counts = np.sum([np.isin(np.arange(60), part.problem.task.features.data.indices) for part in parts], axis=0)
    plain = duals_of(trainer.algorithm, parts, whole.task.dim, 8)[0]
    by_row = duals_of(trainer.algorithm, [compact(part, counts) for part in parts], whole.task.dim, 8)[0]
    assert (np.diff(by_row) >= -1e-12).all()
    assert (by_row > plain).all()


@pytest.mark.mostly_slow
@pytest.mark.parametrize("make", [lambda: chain_task(4, n=6, longest=3), lambda: multiclass_task(4, n=12)])
def test_the_optimum_is_that_of_the_whole(make) -> None:
    """Convex programs over all outputs of all samples have the optimum that 3 shards enclose, or reach to 1e-6."""
    task = make()
    hinge = train(problem(task, 0.1), CoCoA(BCFW(), shards=3, sigma=1.0), RunSettings(max_iter=300, tol=0.02)).certificate
    assert hinge.dual <= optimum(task, 0.1)[0] <= hinge.primal <= 1.03 * hinge.dual
    log = train(log_problem(task, 0.1), CoCoA(OnlineEG(), shards=3, passes=3), RunSettings(max_iter=150, tol=1e-7)).certificate
    assert log.primal == pytest.approx(log_optimum(task, 0.1)[0], rel=1e-6)


def test_errors_say_what_fits() -> None:
    """Trainers without blocks, numbers out of range, and more shards than samples are refused before any work."""
    for wrong, words in [
        ({"trainer": AveragedPerceptron()}, "BCFW"), ({"shards": 0}, "shards must be"), ({"seed": -1}, "seed must be"),
        ({"sigma": 9.0}, "from 1 to 8"), ({"sigma": 0.5}, "from 1 to 8"), ({"passes": 0.0}, "passes must be"),
        ({"trainer": OnlineEG(), "sigma": 2.0}, "number of shards alone"),
    ]:  # fmt: skip
        with pytest.raises(ParameterError, match=words):
            CoCoA(**wrong)
    with pytest.raises(ParameterError, match="every shard needs an instance, and there are 5"):
        train(problem(chain_task(0, n=5)), CoCoA())
    task = multiclass_task(0, n=8, sample_weight=[1, 1, 0, 0, 1, 1, 1, 1])
    with pytest.raises(ParameterError, match=r"samples 2\.\.3, which are shard 1 of 4"):
        train(problem(task), CoCoA(shards=4))
