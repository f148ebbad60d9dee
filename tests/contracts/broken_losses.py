"""Losses that break their contract, each in one way, with the rule and what the likely cause must say."""
# ruff: noqa: D101 - the name of a broken loss says what is wrong with it

import numpy as np
from scipy.sparse import csr_array
from structures import AtMost

from structpred.core.costs import GridCosts, PartCosts
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.chain import ChainOracle


class Distance:
    """How far items are from their true places. Right."""

    def costs(self, labels, shape, oracle):
        n = shape[0]
        return PartCosts(0.0, np.abs(np.arange(n)[None, :] - labels[:, None]).astype(float).ravel())


class Missed:
    """The number of true parts that are missed. Right for every oracle."""

    def costs(self, labels, shape, oracle):
        costs = np.zeros(oracle.n_parts(shape))
        parts = oracle.parts(labels, shape)
        costs[parts] = -1.0
        return PartCosts(len(parts), costs)


class Similarity(Missed):
    def costs(self, labels, shape, oracle):
        return PartCosts(0.0, -super().costs(labels, shape, oracle).costs)


class SimilarityTable:
    def costs(self, labels, shape, oracle):
        return GridCosts(np.eye(oracle.label_grid(shape)[1]))


class WrongSign(Missed):
    def costs(self, labels, shape, oracle):
        constant, costs = super().costs(labels, shape, oracle)
        return PartCosts(-constant, -costs)


class NegativeTable:
    def costs(self, labels, shape, oracle):
        return GridCosts(-1.0)


class ConstantForgotten(Missed):
    def costs(self, labels, shape, oracle):
        return PartCosts(0.0, super().costs(labels, shape, oracle).costs)


class TruthCosts(Missed):
    def costs(self, labels, shape, oracle):
        constant, costs = super().costs(labels, shape, oracle)
        return PartCosts(constant + 0.5, costs)


class Rewards(Missed):
    """A bonus for parts that the truth does not have."""

    def costs(self, labels, shape, oracle):
        constant, costs = super().costs(labels, shape, oracle)
        return PartCosts(constant, np.where(costs == 0, -2.0, costs))


class OneCostALabel:
    def costs(self, labels, shape, oracle):
        return PartCosts(0.0, np.zeros(len(labels)))


class MeanOverNothing:
    def costs(self, labels, shape, oracle):
        with np.errstate(all="ignore"):
            return PartCosts(0.0, np.zeros(oracle.n_parts(shape)) / np.float64(len(labels)))


class PlainPair(Missed):
    def costs(self, labels, shape, oracle):
        return tuple(super().costs(labels, shape, oracle))


class NoAnswer:
    def costs(self, labels, shape, oracle):
        Missed().costs(labels, shape, oracle)


class SparseCosts(Missed):
    def costs(self, labels, shape, oracle):
        constant, costs = super().costs(labels, shape, oracle)
        return PartCosts(constant, csr_array(costs[None]))


class Noisy(Missed):
    rng = np.random.default_rng(0)

    def costs(self, labels, shape, oracle):
        constant, costs = super().costs(labels, shape, oracle)
        weight = self.rng.uniform(0.5, 1.5)
        return PartCosts(weight * constant, weight * costs)


class SortsLabels(Missed):
    def costs(self, labels, shape, oracle):
        answer = super().costs(labels, shape, oracle)
        labels[::-1].sort()
        labels -= 1
        return answer


class SharedCosts(Missed):
    buffer = np.zeros(1000)

    def costs(self, labels, shape, oracle):
        constant, costs = super().costs(labels, shape, oracle)
        self.buffer[: len(costs)] = costs
        return PartCosts(constant, self.buffer[: len(costs)])


class SharedTable:
    """One matrix, filled anew for each truth."""

    table = np.zeros((4, 4))

    def costs(self, labels, shape, oracle):
        self.table[:] = (1.0 + len(np.unique(labels))) * (1.0 - np.eye(4))
        return GridCosts(self.table)


class GridForAll:
    def costs(self, labels, shape, oracle):
        return GridCosts(1.0)


class Diagonal:
    def costs(self, labels, shape, oracle):
        return GridCosts(np.ones((oracle.label_grid(shape)[1],) * 2))


class OtherLabels:
    def costs(self, labels, shape, oracle):
        return GridCosts(1.0 - np.eye(7))


class OldProtocol:
    def part_costs(self, labels, shape, oracle, token_weights):
        return 0.0, np.zeros(oracle.n_parts(shape))


class OldAndNew(Missed):
    def label_costs(self, n_labels):
        return 1.0 - np.eye(n_labels)


class Raises(Missed):
    def costs(self, labels, shape, oracle):
        return {1: super().costs(labels, shape, oracle)}[len(labels)]


BROKEN = [
    (Similarity, AtMost, "the truth costs 0", "a similarity"),
    (SimilarityTable, ChainOracle, "the truth costs 0", "a matrix of agreements"),
    (WrongSign, AssignmentOracle, "no output costs less than 0", "a similarity .*, or a wrong sign"),
    (NegativeTable, ChainOracle, "no output costs less than 0", "a similarity .*, or a wrong sign"),
    (ConstantForgotten, AssignmentOracle, "the truth costs 0", "a constant that is left out"),
    (TruthCosts, AssignmentOracle, "the truth costs 0", r"a constant .*: constant - 0\.5 would do"),
    (Rewards, AtMost, "no output costs less than 0", "parts that lower the loss though the truth does not have them"),
    (OneCostALabel, AssignmentOracle, "wrong length", "costs of labels or of positions"),
    (MeanOverNothing, AtMost, "NaN", "a division by zero"),
    (PlainPair, AssignmentOracle, "wrong type", r"return PartCosts\(constant, costs\)"),
    (NoAnswer, AssignmentOracle, "wrong type", "a missing return"),
    (SparseCosts, AssignmentOracle, "wrong type", "a sparse matrix"),
    (Noisy, AssignmentOracle, "nondeterminism", "a random number"),
    (SortsLabels, AssignmentOracle, "mutated input", "work on a copy"),
    (SharedCosts, AssignmentOracle, "shared buffer", "return a copy"),
    (GridForAll, AtMost, "label grid", "return PartCosts"),
    (Diagonal, ChainOracle, "the truth costs 0", "zero diagonal"),
    (OtherLabels, ChainOracle, "wrong length", "another label set"),
    (Raises, AtMost, "no exceptions", "a bug in the method"),
]
