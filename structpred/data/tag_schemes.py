"""Which tagging scheme label sequences are written in, and where they break it."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

_TAG = re.compile(r"([BIESLUM])-(.+)", re.DOTALL)
#: scheme -> how its tags read as IOBES; IOB1 and IO have rules of their own
_AS_IOBES = {
    "IOBES": {"B": "B", "I": "I", "E": "E", "S": "S"},
    "BILOU": {"B": "B", "I": "I", "L": "E", "U": "S"},
    "BMES": {"B": "B", "M": "I", "E": "E", "S": "S"},
}
_PREFIXES = {"IOB2": "BI", "IOB1": "BI", "IO": "I", **{name: "".join(tags) for name, tags in _AS_IOBES.items()}}


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


def each_violation(labels: Sequence[str], scheme: str) -> Iterator[tuple[int, str]]:
    """Where a label sequence breaks a scheme: (position, what is wrong), in order.

    One after the other: a list of them takes many times the memory of a long sequence.

    >>> list(each_violation(["O", "I-NP", "I-VP"], "IOB2"))
    [(1, 'I-NP after O'), (2, 'I-VP after I-NP')]
    """
    parsed = {label: _parse(label, scheme) for label in set(labels)}
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


def _parse(label: str, scheme: str) -> tuple[str, str] | None:
    if label == "O":
        return "O", ""
    match = _TAG.fullmatch(label)
    return None if match is None or match[1] not in _PREFIXES[scheme] else (match[1], match[2])


def _rules(parts: Iterable[tuple[str, str]], scheme: str) -> Iterator[int]:
    """The positions that may not follow what is before them; the length where the sequence may not end as it does."""
    if scheme == "IO":
        return
    before, t = ("O", ""), -1
    tags = _AS_IOBES.get(scheme)
    for t, (prefix, kind) in enumerate(parts):
        prefix = prefix if tags is None or prefix == "O" else tags[prefix]
        goes_on = before[0] in "BI" and before[1] == kind
        if scheme == "IOB1":
            bad = prefix == "B" and not goes_on
        elif scheme == "IOB2":
            bad = prefix == "I" and not goes_on
        else:
            inside = prefix in "IE"
            bad = (inside and not goes_on) or (before[0] in "BI" and not inside)
        if bad:
            yield t
        before = (prefix, kind)
    if tags is not None and before[0] in "BI":
        yield t + 1
