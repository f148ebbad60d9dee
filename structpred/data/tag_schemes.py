"""Schemes of labels that mark phrases: which one labels are written in, where they break it, and how others write the same.

A label is a tag and a type, "B-NP", or "O". Labels in all schemes, and broken ones, are read as conlleval reads them: a phrase
starts at B, at I or E after O or after a finished phrase, and wherever the type changes. Where the tags E and S occur, the
script of the CoNLL-2000 shared task joins neighbours of one type (E-X B-X, S-X S-X), because it has no rule for them; here E
and S end a phrase and S starts one, which is what these tags mean.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.errors import DataError

OUT, FIRST, INNER, LAST, SINGLE, OTHER = range(6)
TAGS = {"O": OUT, ".": OUT, "B": FIRST, "I": INNER, "E": LAST, "S": SINGLE}
_READ = {**TAGS, "L": LAST, "U": SINGLE, "M": INNER}
_TAG = re.compile(r"([BIESLUM])-(.+)", re.DOTALL)
#: scheme -> its tag for a token that is inside a phrase, at its end, at its start, and all of it; then the same for phrases that
#: follow one of their type
SCHEMES = {"iob1": "IIIIIIBB", "iob2": "IIBBIIBB", "iobes": "IEBSIEBS"}
TABLE = {**SCHEMES, "io": "IIIIIIII", "bilou": "ILBUILBU", "bmes": "MEBSMEBS"}
Flags = npt.NDArray[np.bool_]
#: the labels that a token may have; None for any
Choice = tuple[Any, ...] | None
_EDGE = ("O",)


def lenient(before: Any, tag: Any, same: Any) -> tuple[Flags, Flags]:
    """For tags, those before them and whether the types agree: where phrases start, and where one that is open before ends."""
    closed = np.isin(before, (LAST, SINGLE))
    opens = np.isin(tag, (FIRST, SINGLE))
    inside = np.isin(tag, (INNER, LAST))
    starts = opens | (inside & (closed | (before == OUT))) | ((tag != OUT) & ~same)
    return starts, opens | closed | (tag == OUT) | ~same


#: the same of all tags
_STARTS, _BREAKS = lenient(*np.meshgrid(range(6), range(6), [False, True], indexing="ij"))


def scheme_of(counts: Iterable[tuple[str, int]], sequences: Iterable[Sequence[str]]) -> str | None:
    """The scheme of most labels: "IOB2", "IOB1", "IOBES", "BILOU", "BMES", "IO"; None where labels are not tags of these kinds.

    counts: the number of tokens of each label. Between IOB1 and IOB2, which use the same tags, the one that is broken less often.

    >>> scheme_of([("B-NP", 2), ("O", 1)], [["B-NP", "O", "B-NP"]])
    'IOB2'
    """
    prefixes: Counter[str] = Counter()
    tagged = total = 0
    for label, n in counts:
        total += n
        if (match := _TAG.fullmatch(label)) is not None:
            prefixes[match[1]] += n
        tagged += n if match is not None or label == "O" else 0
    if not prefixes or tagged < 0.9 * total:
        return None
    for name, letters in (("BILOU", "LU"), ("BMES", "M"), ("IOBES", "ES")):
        if any(prefixes[letter] for letter in letters):
            return name
    if not prefixes["B"]:
        return "IO"
    broken = {name: sum(1 for labels in sequences for _ in each_violation(labels, name)) for name in ("IOB2", "IOB1")}
    return "IOB1" if broken["IOB1"] < broken["IOB2"] else "IOB2"


def marks_phrases(labels: Iterable[str]) -> bool:
    """Whether each label is O, or a tag of any scheme and a type."""
    return all(_parse(label) is not None for label in labels)


def each_violation(labels: Sequence[str], scheme: str) -> Iterator[tuple[int, str]]:
    """Where a label sequence breaks a scheme: (position, what is wrong), in order.

    One after the other: a list of them takes many times the memory of a long sequence.

    >>> list(each_violation(["O", "I-NP", "I-VP"], "IOB2"))
    [(1, 'I-NP after O'), (2, 'I-VP after I-NP')]
    """
    parsed = {label: _parse(label, TABLE[scheme.lower()]) for label in set(labels)}
    broken = _rules((parsed[label] or ("O", "") for label in labels), scheme)
    at = next(broken, -1)
    for t, label in enumerate(labels):
        sound = parsed[label] is not None
        if not sound:
            yield t, f"{label!r} is not a valid {scheme} tag"
        if at == t:
            if sound and not (t and parsed[labels[t - 1]] is None):  # else named already, or next to one that is
                yield t, f"{label} after {labels[t - 1] if t else 'the start'}"
            at = next(broken, -1)
    if at >= 0 and parsed[labels[-1]] is not None:
        yield len(labels) - 1, f"{labels[-1]} at the end"


def _parse(label: Any, tags: str = "BIESLUM") -> tuple[str, str] | None:
    if label == "O":
        return "O", ""
    match = _TAG.fullmatch(label) if isinstance(label, str) else None
    return None if match is None or match[1] not in tags else (match[1], match[2])


def _rules(parts: Iterable[tuple[str, str]], scheme: str) -> Iterator[int]:
    """The positions that may not follow what is before them; the length where the sequence may not end as it does."""
    before, t = ("O", ""), -1
    for t, (tag, kind) in enumerate(parts):
        if not _may_follow(before[0], tag, before[1] == kind, scheme.lower()):
            yield t
        before = (tag, kind)
    if not _may_follow(before[0], "O", False, scheme.lower()):
        yield t + 1


@lru_cache(1 << 10)
def _may_follow(before: str, tag: str, same: bool, scheme: str) -> bool:
    a, b = (name if name == "O" else f"{name}-{kind}" for name, kind in ((before, "X"), (tag, "X" if same else "Y")))
    return a in _between(None, a, (b,), scheme, scheme)[0] and b in _between((a,), b, None, scheme, scheme)[0]


def tables(labels: Sequence[str], scheme: str) -> tuple[Flags, Flags, Flags]:
    """(may follow: label before x label after, may be first, may be last) in what is written in a scheme."""
    parts = [_parsed(label) for label in labels]
    follow = [[_may_follow(before, tag, kind == other, scheme) for tag, kind in parts] for before, other in parts]
    ends = [[_may_follow("O", tag, False, scheme), _may_follow(tag, "O", False, scheme)] for tag, _ in parts]
    return np.array(follow, bool), *np.array(ends, bool).T


@lru_cache(1 << 12)
def _parsed(label: Any) -> tuple[str, str]:
    if (found := _parse(label)) is None:
        raise DataError(f"expected labels of phrases, O or a tag and a type such as B-NP, got {label!r}")
    return found


def _read(before: Any, label: Any) -> tuple[int, int, int]:
    """Whether one of its type is right before, whether a phrase starts at the label, and whether one ends in front of it."""
    (last, other), (tag, kind) = _parsed(before), _parsed(label)
    at = _READ[last], _READ[tag], int(kind == other)
    return at[2], int(_STARTS[at]), int(_BREAKS[at])


@lru_cache(1 << 16)
def _between(before: Choice, label: Any, after: Choice, scheme: str, own: str) -> tuple[tuple[str, ...], bool]:
    """How a label is written in a scheme, and whether the scheme `own` has it here. By the tag where neighbours are not known."""
    tag, kind = _parsed(label)
    if tag == "O":
        return _EDGE, True
    said = [divmod(k % 4, 2) for k, one in enumerate(TABLE[own]) if one == tag]
    starts = {_read(before[0], label)[:2]} if before and len(before) == 1 else {*product((0, 1), (a for a, _ in said))}
    ends = {_read(label, after[0])[2]} if after and len(after) == 1 else {b for _, b in said}
    places = {4 * touches + 2 * a + b for touches, a in starts for b in ends}
    return tuple(sorted({f"{TABLE[scheme][k]}-{kind}" for k in places})), any(TABLE[own][k] == tag for k in places)


def written(row: Sequence[Any], scheme: str, own: str = "iob2") -> list[Any]:
    """The phrases of a sequence in a scheme. If it has None, or tuples of labels of the scheme `own`: what each token may have.

    Raises DataError for a label that marks no phrase.

    >>> written(["I-NP", "I-NP", "I-VP"], "iob2"), written(["O", "B-NP", "I-NP", "B-NP"], "iobes")
    (['B-NP', 'I-NP', 'B-VP'], ['O', 'B-NP', 'E-NP', 'S-NP'])
    >>> written([None, "B-NP", None], "iobes")
    [None, ('B-NP', 'S-NP'), None]
    """
    choices: list[Any] = [x if x is None or isinstance(x, tuple) else (x,) for x in row]
    between = zip([_EDGE, *choices], choices, [*choices[1:], _EDGE], strict=False)
    if all(isinstance(label, str) for label in row):
        return [_between(before, here[0], after, scheme, own)[0][0] for before, here, after in between]
    found: list[Any] = []
    for before, here, after in between:
        ways = [] if here is None else [_between(before, x, after, scheme, own) for x in here]
        sound = any(allowed for _, allowed in ways)  # a label that breaks the scheme counts where there is no other
        labels = {new for new_ones, allowed in ways if allowed or not sound for new in new_ones}
        found.append(None if here is None else tuple(sorted(labels)))
    return found


def own_scheme(rows: Sequence[Sequence[Any]]) -> str:
    """The scheme of the first 2,000 sequences, in small letters; IOB1, which can write all phrases, in the place of IO."""
    counts = Counter(label for row in rows for label in row if isinstance(label, str))
    whole = [row for row in rows[:2000] if all(isinstance(label, str) for label in row)]
    found = scheme_of(counts.items(), whole) or "IOB2"
    return "iob1" if found == "IO" else found.lower()


def phrases(row: Sequence[str]) -> set[tuple[int, int, str]]:
    """Start, end and type of each phrase."""
    new = written(row, "iobes")
    starts, ends = ([t for t, label in enumerate(new) if label[0] in tags] for tags in ("BS", "ES"))
    return {(a, b + 1, new[a][2:]) for a, b in zip(starts, ends, strict=True)}
