"""Steps compare two computations of one score difference: by an output's parts and by its features."""

import numpy as np

from structpred.core.feature_map import FeatureMap
from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.group_scales import GroupScales, Scale, scaled_dot
from structpred.core.sparse import SparseVector
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import OracleError
from structpred.runtime.lazy_names import later

#: parts and how often each is counted
Counts = tuple[Integers, Floats]
#: what they score, and the sum of the sizes of its terms
Scored = tuple[float, float]

#: by how much, relative to the sizes of all terms, the two may differ by rounding (weights may be float32)
DRIFT = 1e-5
#: what the truth may cost by rounding (1e-9 of 1 + |constant|, core/costs.py), as a size
FREE = 2e-4
#: sums this small have lost digits: what a confident model's probabilities leave lies near the smallest float
TINY = 1e-290
#: the halves of a step: they compare an output with the truth, and give an inner product with the size of its terms
kernels = later("structpred.task.fast._part_kernels")


def checked_product(
    features: FeatureMap, i: int, mu: Counts, by_scores: Scored, phi: SparseVector, w: Vector, scale: Scale
) -> float:
    """<scale * w, phi>, added in order, for phi = adjoint(mu); OracleError where that is not what the parts score."""
    product, terms = kernels().weigh(w, *phi)  # NaN for indices beyond the weights
    if not isinstance(scale, GroupScales):
        product, terms = scale * product, abs(scale) * terms
    elif product == product:
        product, terms = scaled_dot(w, phi, scale), 0.0
    if not abs(by_scores[0] - product) <= DRIFT * (by_scores[1] + terms):
        refuse_inconsistent(features, i, mu, by_scores, phi, w, scale)
    return float(product)


def refuse_inconsistent(
    features: FeatureMap, i: int, mu: Counts, by_scores: Scored, phi: SparseVector, w: Vector, scale: Scale = 1.0
) -> None:
    """OracleError where the two differ indeed: a second look leaves out fixed scores, and counts what cancels within a part."""
    (at, counts), (found, size), name = mu, by_scores, type(features).__name__
    if len(phi.indices) and not 0 <= phi.indices.min() <= phi.indices.max() < len(w):
        came = f"{phi.indices.min()}..{phi.indices.max()}"
        raise OracleError(f"sample {i}: {name}.adjoint gave the indices {came}, but there are {len(w)} weights")
    if (fixed := features.fixed_scores(i)) is not None:
        if len(at) and fixed[at].min() <= 0.5 * FORBIDDEN:
            return  # nothing else can be seen beside 1e30
        found -= float(fixed[at] @ counts)
    product = scaled_dot(w, phi, scale)
    for part, count in zip(at.tolist(), counts.tolist(), strict=True):
        one = features.adjoint(i, np.array([part]), np.ones(1))
        size += abs(count) * scaled_dot(np.abs(w), SparseVector(one.indices, np.abs(one.values)), scale)
    if abs(found - product) > DRIFT * size + TINY and np.isfinite(size):
        raise OracleError(
            f"sample {i}: the true output scores {found:.9g} above what was found by {name}.scores, and {product:.9g} by its "
            "adjoint: the two do not belong together, or score_block or adjoint_block does something else than they do, or one "
            "of them is random (dropout?), or the data changed; run check_feature_map on it"
        )
