"""What a second-order parser does: candidates as shapes, features of siblings and grandparents, and what decoding has proven."""

import logging

import numpy as np

from structpred.core.head_lists import candidate_shape
from structpred.core.oracle import Shape
from structpred.core.types import Integers
from structpred.core.weights import Vector
from structpred.features.arcs import ArcCandidates, ArcFeatures
from structpred.features.second_order import SecondOrderFeatures
from structpred.oracles.second_order_tree import SecondOrderTree
from structpred.task.inference import Inference

log = logging.getLogger("structpred.models")

#: heads a word that are looked at, where the setting `prune` does not say
CANDIDATES = 10


def second_order(arcs: ArcFeatures) -> SecondOrderFeatures:
    """These arcs with siblings and grandparents over their candidates."""
    return SecondOrderFeatures(arcs, shapes_of(arcs.data.offsets, arcs.candidates))


def shapes_of(offsets: Integers, candidates: ArcCandidates) -> list[Shape]:
    """The shape of each sentence; offsets: where its words begin."""
    found = []
    for first, last in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        n = last - first
        allowed = np.full((n, n + 1), candidates.complete)
        if not candidates.complete:
            starts = candidates.starts[first : last + 1]
            allowed[np.repeat(np.arange(n), np.diff(starts)), candidates.heads[starts[0] : starts[-1]]] = True
        found.append(candidate_shape(allowed))
    return found


def second_order_oracle(projective: bool, single_root: bool, *, search: bool) -> SecondOrderTree:
    """The oracle of prediction, which proves its trees by a search, or that of training, which does not."""
    return SecondOrderTree(projective, single_root, max_nodes=1000 if search else None)
