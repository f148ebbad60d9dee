"""Groups of a user's own, unions of the groups of weights, given by their names: nested ones, and ones that overlap."""

import re
from collections.abc import Sequence
from functools import partial
from itertools import combinations
from typing import Self

import numpy as np

from structpred.core.regulariser import Pieces, Regulariser, pieces_of
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import MissingCapabilityError, ParameterError
from structpred.objectives.regularisers.group_norms import Grouped, GroupNorms, Reweighted, dual_norm, nearer_to_the_truth
from structpred.projections.prox.groups import prox_chain, prox_subset
from structpred.text.suggestions import did_you_mean

#: a group: the names of groups of weights, or patterns in which * stands for any text
Patterns = str | Sequence[str]
Members = tuple[int, ...]
#: of dividing a dual point among groups that overlap
ROUNDS = 300


def checked_patterns(groups: Sequence[Patterns]) -> tuple[tuple[str, ...], ...]:
    """The groups as tuples of names. Raises ParameterError for none, for one without names and for what is no text.

    >>> checked_patterns(["pos*", ["word[0]", "word[1]"]])
    (('pos*',), ('word[0]', 'word[1]'))
    """
    if isinstance(groups, str) or not isinstance(groups, Sequence) or not groups:
        raise ParameterError(f"groups: expected a list of groups, each a list of names of groups of weights, got {groups!r}")
    made = tuple((one,) if isinstance(one, str) else tuple(one) for one in groups)
    for k, one in enumerate(made):
        if not one or not all(isinstance(name, str) and name for name in one):
            raise ParameterError(f"groups: number {k} is {groups[k]!r}; a group needs at least one name of a group of weights")
    return made


def members_of(groups: Sequence[tuple[str, ...]], names: Sequence[str]) -> tuple[Members, ...]:
    """The places of each group among the names, in order.

    Raises ParameterError for a name that there is not, with the nearest one, and where a name is in no group.

    >>> members_of([("pos*",), ("word", "pos[0]")], ["word", "pos[0]", "pos[1]"])
    ((1, 2), (0, 1))
    """
    found = tuple(tuple(sorted({k for pattern in one for k in _matches(pattern, names)})) for one in groups)
    left = sorted(set(range(len(names))) - {k for one in found for k in one})
    if left:
        raise ParameterError(
            f"groups: {_listed([names[k] for k in left])} of the groups of weights are in no group, so that nothing would keep "
            "them small; add them as groups of their own"
        )
    return found


def require_nested(members: Sequence[Members], names: Sequence[str]) -> None:
    """Raise ParameterError, which names them, where two groups overlap and neither holds the other.

    >>> require_nested([(0, 1), (1,), (2,)], ["a", "b", "c"])
    """
    for one, other in combinations(map(set, members), 2):
        shared = one & other
        if shared and shared not in (one, other):
            inside = " and ".join(_listed([names[k] for k in sorted(group)]) for group in (one, other))
            raise ParameterError(
                f"groups: {inside} overlap in {_listed([names[k] for k in sorted(shared)])}, and neither holds the other; "
                "OverlappingGroups takes such groups"
            )


def _matches(pattern: str, names: Sequence[str]) -> list[int]:
    """Names are compared as they are, brackets included; only * is special."""
    form = re.compile(".*".join(map(re.escape, pattern.split("*"))))
    found = [k for k, name in enumerate(names) if form.fullmatch(name)]
    if not found:
        hint = did_you_mean(pattern, names)
        raise ParameterError(f"groups: no group of weights is called {pattern!r}; there are {_listed(names)}{hint}")
    return found


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown


class NamedGroups(Reweighted, Grouped):
    """What sums of the norms of named groups share: the names are looked up as soon as the groups of the weights are known.

    >>> r = OverlappingGroups([["a", "b"], ["a"], ["c"]]).grouped(np.arange(4), ["a", "b", "c"])
    >>> r.slopes(np.array([3.0, 4.0, 0.0])).tolist()
    [1.6, 0.8, 0.0]
    """

    members: tuple[Members, ...] = ()

    def __init__(self, groups: Sequence[Patterns]) -> None:
        self.patterns = checked_patterns(groups)

    def grouped(self, groups: Integers, names: Sequence[str]) -> Self:
        """With the names looked up."""
        new = super().grouped(groups, names)
        new.members = members_of(self.patterns, names)
        return new

    def slopes(self, norms: Floats) -> Floats:
        """The part of each norm in those of the groups that hold it: the derivative of sum_g |norms_g| by each norm."""
        slopes = np.zeros(len(norms))
        for one in map(list, self.members):
            length = float(np.linalg.norm(norms[one]))
            slopes[one] += norms[one] / length if length > 0.0 else 0.0
        return slopes

    def group_value(self, norms: Floats) -> float:
        """The sum over the groups."""
        return sum(float(np.linalg.norm(norms[list(one)])) for one in self.members)

    def reach(self, value: float) -> float:
        """Every weight is in one group at least."""
        return value


class GroupTree(NamedGroups, GroupNorms):
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

    def grouped(self, groups: Integers, names: Sequence[str]) -> Self:
        """With the names looked up, the smallest groups first."""
        new = super().grouped(groups, names)
        new.members = tuple(sorted(new.members, key=len))
        require_nested(new.members, names)
        return new

    def group_prox(self, norms: Floats, step: float) -> Floats:
        """One soft threshold after the other, the inner groups first."""
        return prox_chain([partial(prox_subset, members=one) for one in self.members], norms, step)

    def group_bound(self, loss: float, lam: float, norms: Floats) -> float:
        """The loss, after a move towards the truth to where the conjugate is 0."""
        return nearer_to_the_truth(loss, dual_norm(lambda t: self._residual(t, norms)))

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


class OverlappingGroups(NamedGroups, Regulariser):
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

    def terms(self) -> tuple["NormOf", ...]:
        """One for each group."""
        return tuple(NormOf(one, self.ends) for one in self.members)

    def value(self, w: Vector) -> float:
        """The sum over the groups."""
        return self.group_value(self.norms(pieces_of(w)))

    def prox(self, w: Vector, step: float) -> Vector:
        """Raise MissingCapabilityError: only the terms have one."""
        raise no_prox_of_a_sum(self)

    def bound(self, loss: float, lam: float, u: Pieces) -> float:
        """The loss, after a move towards the truth to where the conjugate is 0, at the latest.

        It is 0 where u is a sum of vectors, one for each group, of norms of at most 1. Each division of u gives a bound: equal
        parts, then parts n_k / b_g of the norms n_k = |u_k| / sum_g 1 / b_g, where each b_g moves by what its group has too much.
        """
        norms, holds = self.norms(u), np.zeros((len(self.members), len(self.ends) - 1))
        for row, one in zip(holds, self.members, strict=True):
            row[list(one)] = 1.0
        b, least = np.ones(len(holds)), np.inf
        for _ in range(ROUNDS):
            inverse = holds / b[:, None]
            lengths = np.linalg.norm(inverse * (norms / inverse.sum(axis=0)), axis=1)
            least = min(least, float(lengths.max()))
            if not least > 1.0:
                break
            b = np.maximum(b * lengths, 1e-12 * float((b * lengths).max()))
            b /= b.max()
        return nearer_to_the_truth(loss, least)


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
