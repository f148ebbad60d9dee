"""What the tests of losses and layers share: structures, ragged batches of them, and every loss with what it must be given."""

from collections.abc import Callable, Iterable
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from structpred import layers
from structpred.core.oracle import Labels, Oracle, Shape
from structpred.core.types import Floats
from structpred.layers.record import Scores
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.chain import ChainOracle
from structpred.oracles.multiclass import MulticlassOracle


class Pairs(Oracle):
    """Two of n: an oracle as a user writes it, of three methods and nothing else."""

    def n_parts(self, shape: Shape) -> int:
        """One part an item."""
        return shape[0]

    def argmax(self, scores: Floats, shape: Shape) -> Labels:
        """The two items with the largest scores."""
        return np.sort(np.argsort(-scores, kind="stable")[:2])

    def parts(self, labels: Labels, shape: Shape) -> Labels:
        """The items."""
        if len(labels) != 2 or labels[0] == labels[1]:
            raise ValueError(f"expected two different items, got {labels.tolist()}")
        return labels

    @staticmethod
    def example_shapes() -> Iterable[Shape]:
        """Some."""
        return [(2,), (3,), (5,)]


class Structure(NamedTuple):
    """An oracle with a ragged batch of shapes, and how to list all outputs."""

    oracle: Oracle
    shapes: list[Shape]
    enumerate: Callable[[Shape], Iterable[Labels]]

    def batch(self, **options: Any) -> Scores:
        """The batch."""
        return Scores.of(self.oracle, self.shapes, **options)

    def vertices(self, shape: Shape) -> Floats:
        """The part counts of all outputs, a row each."""
        rows = [np.bincount(self.oracle.parts(y, shape), minlength=self.oracle.n_parts(shape)) for y in self.enumerate(shape)]
        return np.array(rows, dtype=np.float64)


def structure(name: str) -> Structure:
    """One of STRUCTURES by its name."""
    if name == "pairs":
        return Structure(Pairs(), [(3,), (5,), (2,)], lambda n: [np.array(pair) for pair in combinations(range(n[0]), 2)])
    kind, shapes = {
        "chain": (ChainOracle, [(3, 2), (1, 3), (4, 3)]),
        "tree": (ArborescenceOracle, [(3,), (2,), (4,)]),
        "assignment": (AssignmentOracle, [(3,), (2,), (4,)]),
        "multiclass": (MulticlassOracle, [(4,), (2,), (7,)]),
    }[name]
    oracle = kind()
    return Structure(oracle, shapes, oracle.enumerate)


STRUCTURES = ["chain", "tree", "assignment", "multiclass", "pairs"]
WITH_MARGINALS = ["chain", "tree", "multiclass"]


def random_outputs(batch: Scores, rng: np.random.Generator) -> list[Labels]:
    """An output of each instance."""
    return list(batch.decide(rng.normal(size=batch.size)))


def mixture(batch: Scores, rng: np.random.Generator) -> Floats:
    """A point inside each hull."""
    weights = rng.dirichlet(np.ones(4))
    return sum(w * batch.points(random_outputs(batch, rng)) for w in weights)


def given(loss: layers.Loss, batch: Scores, rng: np.random.Generator) -> dict[str, Any]:
    """What a loss takes, at random."""
    found: dict[str, Any] = {}
    if "gold" in loss.takes:
        found["gold"] = random_outputs(batch, rng)
    if "true_scores" in loss.takes:
        found["true_scores"] = rng.normal(size=batch.size)
    if "costs" in loss.takes:
        found["costs"] = rng.random(batch.size)
    if isinstance(loss, POOLED):
        found["pool"] = [list(own) for own in zip(*(random_outputs(batch, rng) for _ in range(5)), strict=True)]
    return found


POOLED = (layers.NCE, layers.ContrastiveMAP, layers.PointwiseRanking, layers.PairwiseRanking, layers.ListwiseRanking)

#: losses that need argmax alone and whose gradient is the derivative of their value
LOSSES: dict[str, Callable[[Oracle], layers.Loss]] = {
    "spo+": layers.SPOPlus,
    "spo+ of scale 1/2": lambda oracle: layers.SPOPlus(oracle, scale=0.5),
    "pg": lambda oracle: layers.PerturbationGradient(oracle, width=0.7),
    "central pg": lambda oracle: layers.PerturbationGradient(oracle, width=0.7, central=True),
    "perceptron": layers.Perceptron,
    "hinge": layers.Hinge,
    "imitation": lambda oracle: layers.FenchelYoung(oracle, cost_weight=0.7, scale=1.3),
    "perturbed": lambda oracle: layers.PerturbedLoss(oracle, samples=4),
    "perturbed without pairs": lambda oracle: layers.PerturbedLoss(oracle, samples=3, antithetic=False),
    "perturbed, multiplicative": lambda oracle: layers.PerturbedLoss(oracle, samples=4, sigma=0.5, multiplicative=True),
    "nce": layers.NCE,
    "centred nce": lambda oracle: layers.NCE(oracle, centred=True),
    "contrastive map": layers.ContrastiveMAP,
    "pointwise": layers.PointwiseRanking,
    "pairwise": layers.PairwiseRanking,
    "listwise": layers.ListwiseRanking,
    "cone": layers.ConeAlignment,
    "sparsemap": lambda oracle: layers.SparseMAPLoss(oracle, warm=False),
}
#: those that need marginals
SOFT_LOSSES: dict[str, Callable[[Oracle], layers.Loss]] = {
    "crf": layers.CRF,
    "crf at another temperature": lambda oracle: layers.CRF(oracle, temperature=0.4),
    "soft-margin crf": layers.SoftMarginCRF,
}
#: layers that need argmax alone
LAYERS: dict[str, Callable[[Oracle], layers.Layer]] = {
    "perturbed": lambda oracle: layers.PerturbedLayer(oracle, samples=4),
    "perturbed without pairs": lambda oracle: layers.PerturbedLayer(oracle, samples=3, antithetic=False),
    "perturbed, multiplicative": lambda oracle: layers.PerturbedLayer(oracle, samples=4, multiplicative=True),
    "imle": lambda oracle: layers.SmoothedDifferenceLayer(oracle, samples=4),
    "blackbox": layers.BlackBoxLayer,
    "straight_through": layers.StraightThroughLayer,
    "sparsemap": lambda oracle: layers.SparseMAP(oracle, warm=False),
}
