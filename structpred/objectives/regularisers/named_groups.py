"""Groups of a user's own: unions of the groups of weights, given by their names."""

import re
from collections.abc import Sequence
from itertools import combinations

from structpred.errors import ParameterError
from structpred.text.suggestions import did_you_mean

#: a group: the names of groups of weights, or patterns in which * stands for any text
Patterns = str | Sequence[str]
Members = tuple[int, ...]


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
