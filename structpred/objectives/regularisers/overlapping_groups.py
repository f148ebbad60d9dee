"""Groups that overlap in any way."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from structpred.core.regulariser import Pieces, Regulariser, pieces_of
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import MissingCapabilityError
from structpred.objectives.regularisers.group_norms import Grouped, GroupNorms, nearer_to_the_truth
from structpred.objectives.regularisers.named_groups import Members, Patterns, checked_patterns, members_of
from structpred.projections.prox.groups import prox_subset


class OverlappingGroups(Grouped, Regulariser):
    """r(w) = sum_g |w_g| over unions g of groups of weights (Jenatton, Audibert and Bach 2009), as its terms.

    The prox of the sum has no closed form: trainers take a step for each group. Where each two groups are disjoint or nested,
    `GroupTree` has it, and a better bound.

    Parameters
    ----------
    groups : sequence of str, or of sequences of str
        As for `GroupTree`.

    Raises
    ------
    ParameterError
        For a group without names; once the weights are known, for names that there are not, and groups of weights that are left
        out.

    Examples
    --------
    >>> r = OverlappingGroups([["a", "b"], ["b", "c"]]).grouped(np.array([0, 1, 2, 3]), ["a", "b", "c"])
    >>> r.value(np.array([3.0, 4.0, 0.0])), len(r.terms())
    (9.0, 2)
    """

    members: tuple[Members, ...] = ()

    def __init__(self, groups: Sequence[Patterns]) -> None:
        self.patterns = checked_patterns(groups)

    def grouped(self, groups: Integers, names: Sequence[str]) -> Self:
        """With the names looked up."""
        new = super().grouped(groups, names)
        new.members = members_of(self.patterns, names)
        return new

    def terms(self) -> tuple["NormOf", ...]:
        """One for each group."""
        return tuple(NormOf(one, self.ends) for one in self.members)

    def value(self, w: Vector) -> float:
        """The sum over the groups."""
        norms = self.norms(pieces_of(w))
        return sum(float(np.linalg.norm(norms[list(one)])) for one in self.members)

    def prox(self, w: Vector, step: float) -> Vector:
        """Raise MissingCapabilityError: only the terms have one."""
        raise no_prox_of_a_sum(self)

    def bound(self, loss: float, lam: float, u: Pieces) -> float:
        """The loss, after a move towards the truth to where the conjugate is 0, at the latest.

        It is 0 where u is a sum of vectors, one for each group, of norms of at most 1; what several groups hold is divided
        equally among them, so the conjugate may be 0 farther out.
        """
        shared = self.norms(u) / np.bincount(np.concatenate([np.array(one) for one in self.members]))
        return nearer_to_the_truth(loss, max(float(np.linalg.norm(shared[list(one)])) for one in self.members))

    def reach(self, value: float) -> float:
        """Every weight is in one group at least."""
        return value


class NormOf(GroupNorms):
    """r(w) = |w_g| for one union g of groups of weights, by their numbers. Its conjugate is inf where u is not zero elsewhere."""

    def __init__(self, members: Members, groups: Integers) -> None:
        self.members, self.groups = members, groups

    def group_value(self, norms: Floats) -> float:
        """Its norm."""
        return float(np.linalg.norm(norms[list(self.members)]))

    def group_prox(self, norms: Floats, step: float) -> Floats:
        """A soft threshold; the others stay."""
        return prox_subset(norms, step, self.members)

    def group_bound(self, loss: float, lam: float, norms: Floats) -> float:
        """The loss, after a move towards the truth that makes the norm at most 1."""
        elsewhere = np.delete(norms, list(self.members)).any()
        return nearer_to_the_truth(loss, np.inf if elsewhere else self.group_value(norms))


def no_prox_of_a_sum(regulariser: Regulariser) -> MissingCapabilityError:
    """What to say where only the terms of a sum have proximal operators."""
    return MissingCapabilityError(
        f"the proximal operator of {type(regulariser).__name__} is not known in closed form, only those of its terms(): take a "
        "trainer that steps along one term after the other"
    )
