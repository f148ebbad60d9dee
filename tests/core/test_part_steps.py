"""Steps of many instances in blocks: single steps say the same, on any number of threads."""

import numpy as np
import pytest

from structpred.core import packing
from structpred.errors import OracleError
from structpred.features.graphs import GraphFeatures
from structpred.features.label_rows import LabelRows
from structpred.features.parts import PartFeatures
from structpred.objectives.part_losses import ExtraParts, Hamming
from structpred.oracles.chain import ChainOracle
from structpred.oracles.dual_mrf import DualMRF
from structpred.oracles.mrf import graph_shape
from structpred.oracles.mrf_enumeration import EnumerationMRF
from structpred.oracles.multiclass import MulticlassOracle
from structpred.task.fast.part_steps import adjoint_block
from structpred.task.task import Task


def chains(oracle=None, n=300, **settings):
    """Chains of several lengths under a loss of parts; more of them than a block holds."""
    rng = np.random.default_rng(0)
    shapes = [(int(length), 3) for length in rng.integers(1, 6, n)]
    features = PartFeatures([rng.normal(size=(t * k + k * k, 6)) for t, k in shapes])
    labels = [rng.integers(0, k, t) for t, k in shapes]
    return Task(features, oracle or ChainOracle(), labels, shapes, ExtraParts(), **settings)


def graphs(**settings):
    """Graphs of two patterns, one with a table a node and one without edges, whose differences are many and few."""
    rng = np.random.default_rng(1)
    pair, lone = graph_shape(3, 2, [(0, 1), (1, 2)]), graph_shape(3, 2, [])
    shapes = [pair if k % 3 else lone for k in range(270)]
    rows = [rng.normal(size=(1, 4)) for _ in shapes]
    features = GraphFeatures(
        shapes, rows, [[0, 0, 0]] * 270, [[0, 1, 2 * (k % 2)] for k in range(270)], n_node_types=3, n_states=2
    )
    labels = [rng.integers(0, 2, 3) for _ in shapes]
    return Task(features, EnumerationMRF(), labels, shapes, Hamming(), **settings)


def grids(oracle=None, **settings):
    """Grids of two sizes, whose edges share their tables, for an oracle that gives bounds."""
    rng = np.random.default_rng(5)
    small, large = graph_shape(4, 5, [(0, 1), (2, 3), (0, 2), (1, 3)]), graph_shape(3, 5, [(0, 1), (1, 2), (0, 2)])
    shapes = [small if k % 3 else large for k in range(270)]
    rows, edge_rows = (
        [rng.normal(size=(n, 3)) for n in ns] for ns in zip(*((s[0], len(s) // 2 - 1) for s in shapes), strict=True)
    )
    features = GraphFeatures(shapes, rows, edge_rows=edge_rows, n_states=5)
    labels = [rng.integers(0, 5, shape[0]) for shape in shapes]
    return Task(features, oracle or DualMRF(), labels, shapes, Hamming(), **settings)


def rows(**settings):
    """Feature maps without calls for blocks."""
    rng = np.random.default_rng(2)
    features = LabelRows(rng.normal(size=(270, 4)), 3)
    return Task(features, MulticlassOracle(), [rng.integers(0, 3, 1) for _ in range(270)], features.shapes, Hamming(), **settings)


@pytest.mark.parametrize("make", [chains, graphs, rows])
def test_sweeps_say_what_single_steps_say_on_any_number_of_threads(make, monkeypatch):
    """Violations, bulk terms and log losses by blocks have the bits of plain steps one by one, on one thread and on three."""
    monkeypatch.setattr("structpred.task.steps.FEW_PAIRS", 0)  # threads add up these few, too
    plain, shares = make(compiled=False), np.linspace(0.1, 2.0, len(make()))
    w = np.random.default_rng(3).normal(size=plain.dim)
    wanted = plain.terms(w, range(5, 265), shares[5:265], loss_weight=0.7)
    for n_jobs in (1, 3):
        task = make(n_jobs=n_jobs)
        assert task.violations(w, 0.7).tobytes() == plain.violations(w, 0.7).tobytes()
        terms = task.terms(w, range(5, 265), shares[5:265], loss_weight=0.7)
        assert all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in zip(terms, wanted, strict=True))
        pair = zip(task.log_losses(w, shares), plain.log_losses(w, shares), strict=True)
        assert all(a.tobytes() == b.tobytes() for a, b in pair)


def test_sweeps_of_an_oracle_with_bounds_say_what_single_steps_say(monkeypatch):
    """Violations and bulk terms by blocks have the bits of plain steps, bounds among them, on one thread and on three."""
    monkeypatch.setattr("structpred.task.steps.FEW_PAIRS", 0)
    plain = grids(compiled=False)
    w = np.random.default_rng(3).normal(size=plain.dim)
    wanted = plain.terms(w, range(5, 265), loss_weight=0.7)
    assert (wanted.bounds > wanted.violations + 1e-3).any()
    for n_jobs in (1, 3):
        task = grids(n_jobs=n_jobs)
        assert task.inference.batched
        assert task.violations(w, 0.7).tobytes() == plain.violations(w, 0.7).tobytes()
        terms = task.terms(w, range(5, 265), loss_weight=0.7)
        assert all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in zip(terms, wanted, strict=True))
        assert all(a.tobytes() == b.tobytes() for a, b in zip(task.inference.decode(w), plain.inference.decode(w), strict=True))


class Silent(DualMRF):
    """Its batches have no bounds."""

    def argmax_bound_batch(self, scores, offsets, shapes):
        """What argmax_batch would give."""
        return super().argmax_bound_batch(scores, offsets, shapes)[:2]


class Afresh(DualMRF):
    """A method of its own, which the batches of its parent do not know."""

    def argmax_bound(self, scores, shape):
        """The same, but a method of its own."""
        return super().argmax_bound(scores, shape)


def test_batches_give_bounds_and_know_what_a_subclass_changed():
    """Batches without bounds are an error of ours; where a subclass has its own argmax_bound, batches are not used."""
    w = np.zeros(grids().dim)
    with pytest.raises(OracleError, match=r"Silent\.argmax_bound_batch must return \(labels, label_offsets, bounds\)"):
        grids(Silent()).violations(w, 0.0)
    assert not grids(Afresh()).inference.batched


@pytest.mark.parametrize("make", [chains, graphs, grids])
def test_differences_of_a_block_are_those_of_its_instances(make):
    """adjoint_block gives for each instance the pairs of `adjoint`, whether the map writes it or it is a loop."""
    task, rng = make(), np.random.default_rng(4)
    counts = [rng.integers(-1, 2, task.inference.sizes[i]).astype(float) for i in range(40, 60)]
    at = [np.flatnonzero(own) for own in counts]
    ends = np.cumsum([0, *map(len, at)])
    flat = np.concatenate(at), np.concatenate([own[on] for own, on in zip(counts, at, strict=True)]), ends
    one = [task.features.adjoint(40 + k, on, counts[k][on]) for k, on in enumerate(at)]
    features = task.features
    changed = type("Changed", (type(features),), {"adjoint": type(features).adjoint})
    loop = changed.__new__(changed)
    loop.__dict__.update(features.__dict__)
    for found in (adjoint_block(features, 40, *flat), adjoint_block(loop, 40, *flat)):
        assert found[0].tobytes() == np.concatenate([piece.indices for piece in one]).tobytes()
        assert found[1].tobytes() == np.concatenate([piece.values for piece in one]).tobytes()
        assert found[2].tolist() == np.cumsum([0, *(len(piece.indices) for piece in one)]).tolist()


class Minimises(ChainOracle):
    """Its batches hold the worst outputs."""

    def argmax_batch(self, scores, offsets, shapes):
        return super().argmax_batch(-scores, offsets, shapes)

    def argmax(self, scores, shape):
        return ChainOracle().argmax(scores, shape)


class FarParts(ChainOracle):
    """Its batches have parts that do not exist."""

    def argmax(self, scores, shape):
        return ChainOracle().argmax(scores, shape)

    def argmax_batch(self, scores, offsets, shapes):
        labels, ends = super().argmax_batch(scores, offsets, shapes)
        labels[-1] = 3
        return labels, ends


@pytest.mark.parametrize(("oracle", "message"), [(Minimises(), "sample 0: .*minimise"), (FarParts(), r"sample \d+: .*parts")])
def test_a_batch_that_contradicts_the_truth_names_its_sample(oracle, message):
    """A batch whose outputs score below the truth, or have parts outside, is refused as a single step is, on threads too."""
    for n_jobs in (1, 3):
        task = chains(oracle, n_jobs=n_jobs)
        with pytest.raises(OracleError, match=message):
            task.violations(np.ones(task.dim), 0.0 if isinstance(oracle, Minimises) else 1.0)


def test_parts_of_a_batch_that_do_not_fit_are_an_error_of_the_oracle():
    """packing.parts_batch refuses answers of another length, and says which method gave them."""

    class Short(MulticlassOracle):
        def parts_batch(self, labels, ends, shapes):
            return labels, ends[:-1]

    with pytest.raises(OracleError, match=r"Short\.parts_batch must return 3 ascending part_offsets"):
        packing.parts_batch(Short(), np.array([0, 1]), np.array([0, 1, 2]), [(2,), (2,)])
