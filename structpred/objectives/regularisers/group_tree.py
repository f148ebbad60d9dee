"""A hierarchy of groups: a group is in use only where those that hold it are."""

from collections.abc import Sequence
from functools import partial
from typing import Self

import numpy as np

from structpred.core.types import Floats, Integers
from structpred.objectives.regularisers.group_norms import GroupNorms, dual_norm, nearer_to_the_truth
from structpred.objectives.regularisers.named_groups import Members, Patterns, checked_patterns, members_of, require_nested
from structpred.projections.prox.groups import prox_chain, prox_subset


class GroupTree(GroupNorms):
    """r(w) = sum_g |w_g| over unions g of groups of weights, each two of them disjoint or nested (Zhao, Rocha and Yu 2009).

    The proximal steps of the groups, the inner ones first, are the prox of their sum (Jenatton et al. 2011).

    Parameters
    ----------
    groups : sequence of str, or of sequences of str
        The groups, each by names of groups of weights, or patterns in which * stands for any text. Each group of weights must be
        in one at least.

    Raises
    ------
    ParameterError
        For a group without names; once the weights are known, for names that there are not, groups that overlap without being
        nested, and groups of weights that are left out.

    Examples
    --------
    >>> tree = GroupTree(["*", ["word*"], ["pos*"], "pos[0]"]).grouped(np.array([0, 2, 3, 5]), ["word", "pos[0]", "pos[1]"])
    >>> tree.prox(np.array([3.0, 4.0, 0.5, 0.1, 0.0]), 1.0).round(6).tolist()
    [1.8, 2.4, 0.0, 0.0, 0.0]
    """

    members: tuple[Members, ...] = ()

    def __init__(self, groups: Sequence[Patterns]) -> None:
        self.patterns = checked_patterns(groups)

    def grouped(self, groups: Integers, names: Sequence[str]) -> Self:
        """With the names looked up, the smallest groups first."""
        new = super().grouped(groups, names)
        new.members = tuple(sorted(members_of(self.patterns, names), key=len))
        require_nested(new.members, names)
        return new

    def group_value(self, norms: Floats) -> float:
        """The sum over the groups."""
        return sum(float(np.linalg.norm(norms[list(one)])) for one in self.members)

    def group_prox(self, norms: Floats, step: float) -> Floats:
        """One soft threshold after the other, the inner groups first."""
        return prox_chain([partial(prox_subset, members=one) for one in self.members], norms, step)

    def group_bound(self, loss: float, lam: float, norms: Floats) -> float:
        """The loss, after a move towards the truth to where the conjugate is 0."""
        return nearer_to_the_truth(loss, dual_norm(lambda t: self._residual(t, norms)))

    def reach(self, value: float) -> float:
        """Every weight is in one group at least."""
        return value

    def _residual(self, t: float, norms: Floats) -> tuple[float, float]:
        """(v, dv/dt): the largest norm of a group of t * norms, after those within it have taken what they can.

        The conjugate is 0 where v <= 1: the prox of the step 1 is then 0.
        """
        left, slopes = t * norms, norms.copy()
        largest = (0.0, 0.0)
        for one in map(list, self.members):
            length = float(np.linalg.norm(left[one]))
            slope = float(left[one] @ slopes[one]) / length if length else 0.0
            outer = not any(set(one) < set(other) for other in self.members)
            largest = max(largest, (length, slope)) if outer else largest
            factor = max(0.0, 1.0 - 1.0 / length) if length else 0.0
            slopes[one] = factor * slopes[one] + (left[one] * slope / length**2 if factor else 0.0)
            left[one] *= factor
        return largest
