"""What a second-order parser does: candidates as shapes, features of siblings and grandparents, and what decoding has proven."""

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.head_lists import candidate_shape
from structpred.core.oracle import Shape
from structpred.core.packing import parts_batch
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import InfeasibleError
from structpred.features.arcs import ArcFeatures
from structpred.features.second_order import SecondOrderFeatures
from structpred.models.parser.arcs import TreeOracle, tree_oracle
from structpred.oracles.second_order_tree import SecondOrderTree
from structpred.task.inference import Inference

#: heads a word that are looked at, where the setting `prune` does not say
CANDIDATES = 10


def second_order(arcs: ArcFeatures) -> SecondOrderFeatures:
    """These arcs with siblings and grandparents over their candidates."""
    shapes, (starts, heads) = [], (arcs.candidates.starts, arcs.candidates.heads)
    for first, n in zip(arcs.data.offsets.tolist(), arcs.data.lengths.tolist(), strict=False):
        allowed = np.full((n, n + 1), arcs.candidates.complete)
        if not arcs.candidates.complete:
            own = starts[first : first + n + 1]
            allowed[np.repeat(np.arange(n), np.diff(own)), heads[own[0] : own[-1]]] = True
        shapes.append(candidate_shape(allowed))
    return SecondOrderFeatures(arcs, shapes)


def structure(
    arcs: ArcFeatures, order: int, projective: bool, single_root: bool, *, search: bool = True
) -> tuple[ArcFeatures | SecondOrderFeatures, TreeOracle | SecondOrderTree, list[Shape]]:
    """Features, oracle and shapes of trees of an order. search: whether trees of second order are proven, as in prediction."""
    if order == 1:
        return arcs, tree_oracle(projective, single_root), [(n,) for n in arcs.data.lengths.tolist()]
    features = second_order(arcs)
    return features, SecondOrderTree(projective, single_root, max_nodes=1000 if search else None), features.shapes


def proven_trees(inference: Inference, w: Vector) -> tuple[Integers, int]:
    """The heads of the best trees, flat, and how many of them are proven best among the candidates, to 1e-6 of their scores.

    Raises InfeasibleError, naming the sample, where there is no tree without a forbidden arc.
    """

    def decode(first: int, last: int, places: Integers) -> tuple[Integers, int]:
        scores = inference.score_block(w, 1.0, first, last, places)
        labels, ends, bounds = inference.best_of_block(scores, first, last, places)
        parts, part_ends = parts_batch(inference.oracle, labels, ends, inference.shapes[first:last], first)
        found = scores[parts + np.repeat(places[:-1], np.diff(part_ends))]
        if (barred := np.flatnonzero(found <= 0.5 * FORBIDDEN)).size:
            sample = first + int(np.searchsorted(part_ends, barred[0], side="right")) - 1
            raise InfeasibleError(f"sample {sample}: no tree satisfies the constraints")
        values: Floats = np.add.reduceat(found, part_ends[:-1])
        gaps = bounds - values  # type: ignore[operator]  # the oracle gives bounds
        return labels, int(np.count_nonzero(gaps <= 1e-6 * np.maximum(np.abs(values), 1.0)))

    found = list(inference.in_blocks(decode, 0, len(inference), inference.n_jobs))
    return np.concatenate([np.empty(0, np.int64), *(heads for heads, _ in found)]), sum(proven for _, proven in found)
