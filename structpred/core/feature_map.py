"""The joint feature map that tasks need: from flat weights to part scores, theta = Psi(x) w, and back, phi = Psi(x)^T mu."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from structpred.core.sparse import SparseVector, squared_norm
from structpred.core.stand_ins import stand_in
from structpred.core.types import AnyArray, Floats, Integers
from structpred.core.weights import Vector

#: Optional calls and attributes: the name, and what it promises. `check_feature_map` tries each call beside the plain one.
OPTIONAL: dict[str, str] = {
    "score_block": "(w, scale, start, stop, places, out): scale * scores + fixed_scores at out[places[i - start]]; on threads",
    "adjoint_block": "(start, parts, counts, ends) -> (indices, values, offsets): adjoints, flat, from start on, on threads",
    "group_scores": "(w, scales, i) -> theta: scores at the weights scales * w, without a copy of all weights",
    "take": "(rows) -> map: the instances with these numbers, in this order; repeats are allowed",
    "with_scores": "(added) -> map | None: the map with one array an instance added to its fixed scores; None if it cannot",
    "corner_calls": "() -> (kernels, arguments): whole visits of bcfw in compiled calls",
    "add_spread": "(i, mu, coef, out): out += coef * Psi_i^T mu for dense mu",
    "capabilities": "names of further methods that a trainer may require, as it may of an oracle (`label_rows`)",
    "group_names": "what the groups are called, one name each",
    "shapes": "the shape of each instance; then no shapes= is needed",
    "space": "the space of functions that the weights stand for (`core.function_space`)",
}


@runtime_checkable
class FeatureMap(Protocol):
    """What a task needs of features. The two calls must be adjoint: <mu, scores(w, i)> = <w, adjoint(i, mu)>.

    A subclass sets the attributes and writes __len__, n_parts, scores, adjoint and arrays. It inherits the rest, and may
    replace it by something faster; OPTIONAL has what else it may have. `structpred.check_feature_map` tests it.

    Attributes
    ----------
    dim : int
        The number of weights.
    dtype : numpy.dtype
        The type of the weights, float32 or float64.
    groups : ndarray of int64
        Group k of the flat weights is groups[k]:groups[k+1], for example one kernel of multiple kernel learning.
    group_names : list of str, optional
        What the groups are called; else they are numbered.
    shapes : list, optional
        The shape of each instance; then no shapes= is needed.
    """

    dim: int
    dtype: np.dtype[Any]
    groups: Integers

    def __len__(self) -> int:
        """The number of instances."""
        ...

    def n_parts(self, i: int) -> int:
        """The number of parts of instance i."""
        ...

    def scores(self, w: Vector, i: int) -> Floats:
        """theta of instance i, a new array."""
        ...

    def adjoint(self, i: int, parts: Integers, counts: Floats) -> SparseVector:
        """Psi_i^T mu for the sparse mu that has `counts` at `parts`."""
        ...

    def fixed_scores(self, i: int) -> Floats | None:
        """Scores added to theta of instance i whatever the weights are (constraints, priors); None for none."""
        return None

    def scratch(self) -> Floats:
        """Zeros in which `spread` can work."""
        return np.zeros(self.dim)

    def spread(self, i: int, mu: Floats, scratch: Floats) -> float:
        """scratch = Psi_i^T mu for dense mu, where scratch was zero; returns its squared norm."""
        at = np.flatnonzero(mu)
        delta = self.adjoint(i, at, mu[at])
        scratch[delta.indices] = delta.values
        return squared_norm(delta)

    def flush(self, i: int, scratch: Floats, coef: float, w: Vector) -> None:
        """w += coef * scratch; scratch, which `spread` filled for instance i, becomes zero again."""
        at = np.flatnonzero(scratch)
        w[at] += (coef * scratch[at]).astype(w.dtype)
        scratch[at] = 0.0

    def total(self, mu: Floats, places: Integers, coefs: Floats) -> Floats:
        """sum_i coefs[i] Psi_i^T mu_i, float64, for the dense mu_i = mu[places[i]:places[i+1]] of all instances."""
        out, add = np.zeros(self.dim), stand_in(self, "add_spread", ("adjoint", "n_parts"))
        for i in range(len(self)):
            own = mu[places[i] : places[i + 1]]
            if add is not None:
                add(i, own, float(coefs[i]), out)
                continue
            at = np.flatnonzero(own)
            delta = self.adjoint(i, at, own[at])
            out[delta.indices] += coefs[i] * delta.values
        return out

    def arrays(self) -> Sequence[AnyArray]:
        """The data, for a fingerprint of the training set."""
        ...


def names_of_groups(features: FeatureMap) -> list[str]:
    """What a feature map calls its groups: its `group_names`, else their numbers."""
    return list(getattr(features, "group_names", None) or map(str, range(len(features.groups) - 1)))
