"""Hard constraints on label sequences: transitions, tagging schemes, fixed labels, dictionaries of allowed labels."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.fixed_scores import FORBIDDEN
from structpred.data.tag_schemes import SCHEMES, tables
from structpred.errors import DataError, ParameterError
from structpred.features.fixed_scores import FixedScores
from structpred.models.bundles import LABEL
from structpred.storage.schema import AnyOf, Field, ListOf, Record, Text, maybe
from structpred.text.suggestions import synonym

Bools = npt.NDArray[np.bool_]
_SCHEMES = (*SCHEMES, "places")


@dataclass(frozen=True)
class ChainConstraints:
    """Which label may follow which, and which may be first and last.

    forbidden: pairs (label, next label) that may not be adjacent. required: label -> the only labels that may follow it.
    not_first, not_last: labels that may not begin or end a sequence. scheme: "iob2" or "iobes", all rules of a tagging scheme; or
    "places": a label "3-X" stands at position 3 alone, the first being 0, so positions share no weights, and a kernel becomes
    k(x_t, x_s) [t = s]; transitions likewise. Only labels that y has at a position can be predicted there.

    >>> rules = ChainConstraints(scheme="iob2").tables(["B-X", "I-X", "O"])
    >>> bool(rules[0][2, 1]), bool(rules[1][1])  # O before I-X is forbidden, and so is I-X in front
    (False, False)
    """

    forbidden: Sequence[tuple[Any, Any]] = ()
    required: Mapping[Any, Sequence[Any]] = field(default_factory=dict)
    not_first: Sequence[Any] = ()
    not_last: Sequence[Any] = ()
    scheme: str | None = None

    def __post_init__(self) -> None:
        if self.scheme is not None and self.scheme not in _SCHEMES:
            hint = synonym("constraints", self.scheme)
            raise ParameterError(f"constraints: expected the scheme {', '.join(_SCHEMES)}, got {self.scheme!r}{hint}")

    def tables(self, classes: Sequence[Any]) -> tuple[Bools, Bools, Bools]:
        """(may follow: label before x label after, may be first, may be last) for the labels of a model.

        Labels that the model does not know are ignored: what cannot occur needs no rule.
        """
        labels = list(classes)
        code = {label: k for k, label in enumerate(labels)}
        follow, first, last = np.ones((len(labels), len(labels)), bool), np.ones(len(labels), bool), np.ones(len(labels), bool)
        if self.scheme is not None:
            follow, first, last = _scheme_tables(labels, self.scheme)
        for before, after in self.forbidden:
            if before in code and after in code:
                follow[code[before], code[after]] = False
        for before, afters in self.required.items():
            if before in code:
                follow[code[before]] &= np.array([label in set(afters) for label in labels])
        first &= np.array([label not in set(self.not_first) for label in labels])
        last &= np.array([label not in set(self.not_last) for label in labels])
        return follow, first, last


def resolve_constraints(constraints: Any) -> ChainConstraints | None:
    """None, a scheme's name, or a ChainConstraints as it is."""
    if constraints is None or isinstance(constraints, ChainConstraints):
        return constraints
    if isinstance(constraints, str):
        return ChainConstraints(scheme=constraints)
    raise ParameterError(f"constraints: expected 'iob2', 'iobes', 'places' or a ChainConstraints, got {constraints!r}")


def rules_inside(constraints: Any, coding: tuple[str, str] | None, training: bool = False) -> ChainConstraints | None:
    """The constraints on the labels of the model. In a scheme of its own, coding[0], it has that one; predictions keep to it."""
    rules = resolve_constraints(constraints)
    if coding is None or (rules is None and training):
        return rules
    if rules is not None and (rules.forbidden or rules.required or rules.not_first or rules.not_last):
        raise ParameterError("constraints: with coding= give a scheme alone; rules on labels of y are none on those inside")
    return ChainConstraints(scheme=coding[0])


_PAIRS = ListOf(ListOf(LABEL, 2, 2))
_RULES = Record({
    "forbidden": Field(_PAIRS, "forbidden", lambda pairs: [*map(list, pairs)], lambda saved: [*map(tuple, saved)]),
    "required": Field(
        ListOf(ListOf(AnyOf((LABEL, ListOf(LABEL))), 2, 2)), "required", lambda given: [[a, list(b)] for a, b in given.items()],
        dict,
    ),
    "not_first": Field(ListOf(LABEL), "not_first", list),
    "not_last": Field(ListOf(LABEL), "not_last", list),
    "scheme": Field(maybe(Text()), "scheme"),
})  # fmt: skip
#: the setting in a model file
RULES = Field(
    maybe(_RULES), "constraints", lambda given: _RULES.written(resolve_constraints(given)),
    lambda saved: ChainConstraints(**_RULES.attributes(saved)), None,
)  # fmt: skip


def _scheme_tables(labels: list[Any], scheme: str) -> tuple[Bools, Bools, Bools]:
    """Tagging schemes: what phrases are written as. Places: 0-X comes first, and t + 1 after t."""
    tags = sorted({*SCHEMES.get(scheme, ())})
    for label in labels:
        prefix, _, kind = str(label).partition("-")
        if scheme == "places" and not (prefix.isascii() and prefix.isdigit()):
            raise ParameterError(f"constraints: {label!r} has no place; expected the number of its position in front, as in 3-X")
        if scheme != "places" and (prefix not in ("O", *tags) or (prefix == "O") != (kind == "")):
            raise ParameterError(
                f"constraints: {label!r} is not a valid {scheme.upper()} tag; expected O or {', '.join(tags)} with -TYPE"
            )
    if scheme != "places":
        return tables(labels, scheme)
    places = np.array([int(str(label).partition("-")[0]) for label in labels])
    return places[:, None] + 1 == places, places == 0, np.ones(len(labels), bool)


def fixed_scores(
    classes: Sequence[Any], offsets: npt.NDArray[np.int64], constraints: ChainConstraints | None,
    allowed: Sequence[Any] | None = None, fixed: Sequence[Any] | None = None, known: Sequence[Any] | None = None,
) -> FixedScores | None:  # fmt: skip
    """The constraints as scores of -1e30.

    allowed: nested like y: for each token None (anything), or the labels it may have. fixed: for each token None or its
    label. known: for each token None, or the labels of the model of which one is true. Raises DataError, naming sample and
    position, for labels that the model does not know, wrong lengths, and tokens that are left no label.
    """
    rules = [(name, given) for name, given in (("allowed", allowed), ("fixed", fixed), ("y", known)) if given is not None]
    if constraints is None and not rules:
        return None
    labels, n_tokens = list(classes), int(offsets[-1])
    for name, given in rules:
        if len(given) != len(offsets) - 1:
            raise DataError(f"{name}: expected {len(offsets) - 1} entries, one per sample (None for no limit), got {len(given)}")
    follow, first, last = (constraints or ChainConstraints()).tables(labels)
    may: dict[tuple[Any, ...], int] = {}
    row_of = np.zeros(n_tokens, np.int32)
    any_label = tuple(labels)
    for i, (a, b) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
        some = _token_choices(labels, b - a, i, rules)
        for t, choice in enumerate(some):
            key = (any_label if choice is None else choice, t == 0, t == b - a - 1)
            row_of[a + t] = may.setdefault(key, len(may))
    rows = np.zeros((max(len(may), 1), len(labels)))
    for (choice, is_first, is_last), row in may.items():
        good = np.array([label in set(choice) for label in labels])
        good &= first | (not is_first)
        good &= last | (not is_last)
        rows[row] = np.where(good, 0.0, FORBIDDEN)
    return FixedScores(rows, row_of, np.where(follow, 0.0, FORBIDDEN))


def _token_choices(
    labels: list[Any], length: int, sample: int, rules: Sequence[tuple[str, Sequence[Any]]]
) -> list[tuple[Any, ...] | None]:
    """The labels that each token of a sequence may have; None for any."""
    choices: list[tuple[Any, ...] | None] = [None] * length
    for name, given in rules:
        if given[sample] is None:
            continue
        if len(given[sample]) != length:
            raise DataError(f"{name}, sample {sample}: expected {length} entries, one per token, got {len(given[sample])}")
        for t, entry in enumerate(given[sample]):
            if entry is None:
                continue
            one = name == "fixed" and not isinstance(entry, tuple)  # a label may have several forms inside
            listed = (entry,) if one or isinstance(entry, str) or not isinstance(entry, Iterable) else tuple(entry)
            unknown = [label for label in listed if label not in labels]
            if unknown and (name == "fixed" or len(unknown) == len(listed)):
                raise DataError(f"{name}, sample {sample}, position {t}: the model does not know the label {unknown[0]!r}")
            before, among = choices[t], labels if len(listed) > 1 else listed
            left = tuple(label for label in among if label in listed and (before is None or label in before))
            if not left and name == "y":
                raise DataError(f"sample {sample}, position {t}: `allowed` leaves none of the labels {listed}")
            if not left:
                raise DataError(f"{name}, sample {sample}, position {t}: no label is left")
            choices[t] = left
    return choices


def check_gold(
    scores: FixedScores, codes: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64], classes: Sequence[Any],
    partial: Iterable[int] = (),
) -> None:  # fmt: skip
    """Raise DataError, naming sample and position, where true labels break the constraints; not of the sequences `partial`."""
    bad = scores.rows[scores.row_of, codes] <= 0.5 * FORBIDDEN
    inside = np.ones(len(codes), bool)
    inside[offsets[:-1]] = False
    bad_step = np.zeros(len(codes), bool)
    bad_step[1:] = scores.edges[codes[:-1], codes[1:]] <= 0.5 * FORBIDDEN
    bad |= bad_step & inside
    for i in partial:
        bad[offsets[i] : offsets[i + 1]] = False
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        sample = int(np.searchsorted(offsets, at, side="right") - 1)
        t = at - int(offsets[sample])
        before = f" after {classes[codes[at - 1]]!r}" if t else " in front"
        raise DataError(
            f"sample {sample}, position {t}: the true label {classes[codes[at]]!r}{before} breaks the constraints; "
            "correct the data or relax the constraints"
        )


def tag_dictionary(words: Iterable[Sequence[str]], y: Iterable[Sequence[Any]], *, min_count: int = 1) -> dict[str, list[Any]]:
    """word -> the labels it has in training data, for words seen at least min_count times: use as [d.get(w) for w in words]."""
    counts: dict[str, dict[Any, int]] = {}
    for sentence, labels in zip(words, y, strict=True):
        for word, label in zip(sentence, labels, strict=True):
            seen = counts.setdefault(word, {})
            seen[label] = seen.get(label, 0) + 1
    return {word: sorted(seen) for word, seen in counts.items() if sum(seen.values()) >= min_count}
