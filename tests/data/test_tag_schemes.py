"""Tagging schemes are recognised, and the places that break them are the ones that a naive automaton finds."""

import itertools
from collections import Counter
from collections.abc import Sequence

import pytest

from structpred.data.tag_schemes import SCHEMES, TABLE, each_violation, own_scheme, phrases, scheme_of, written
from structpred.evaluation import chunk_counts


def detect_scheme(sequences: list[list[str]]) -> str | None:
    """The scheme of these sequences."""
    return scheme_of(Counter(label for labels in sequences for label in labels).items(), sequences)


def violations(labels: Sequence[str], scheme: str) -> list[tuple[int, str]]:
    """All places where a sequence breaks a scheme."""
    return list(each_violation(labels, scheme))


@pytest.mark.parametrize(
    ("labels", "scheme"),
    [
        ("B-X I-X O B-Y", "IOB2"),
        ("I-X I-X O I-Y I-X B-X I-X", "IOB1"),
        ("I-X I-X O I-Y", "IO"),
        ("B-X I-X E-X O S-Y", "IOBES"),
        ("B-X I-X L-X O U-Y", "BILOU"),
        ("B-X M-X E-X O S-Y", "BMES"),
        ("DT NN VB", None),
        ("O O O", None),
        ("B I O", None),
        ("DT NN VB B-X", None),
    ],
)
def test_schemes_are_recognised(labels: str, scheme: str | None) -> None:
    """Each scheme is recognised by its tags; plain labels, and few tags among many others, are none."""
    assert detect_scheme([labels.split()]) == scheme


def test_one_slip_does_not_change_the_scheme() -> None:
    """A single I- after O in IOB2 data is a slip, and IOB1 data with a single lone B- stay IOB1."""
    good = ["B-X", "I-X", "O", "B-Y", "B-Y"]
    assert detect_scheme([good, good, ["O", "I-X"]]) == "IOB2"
    assert detect_scheme([["I-X", "I-X", "B-X"]] * 3 + [["O", "B-X"]]) == "IOB1"


def spans_of(spans: tuple[tuple[int, str], ...], scheme: str) -> list[str]:
    """Write spans (length, type; type "" outside) in a scheme: what is written so can break nothing."""
    first, middle, last, single = {"IOB2": "BIIB", "IOBES": "BIES", "BILOU": "BILU", "BMES": "BMES"}[scheme]
    labels = []
    for length, kind in spans:
        inner = [single] if length == 1 else [first, *[middle] * (length - 2), last]
        labels += ["O"] * length if not kind else [f"{tag}-{kind}" for tag in inner]
    return labels


@pytest.mark.parametrize("scheme", ["IOB2", "IOBES", "BILOU", "BMES"])
def test_a_sequence_is_valid_exactly_if_spans_give_it(scheme: str) -> None:
    """Of all sequences of four tags, those without violations are exactly the ones that some spans are written as."""
    pieces = [(n, kind) for n in (1, 2, 3, 4) for kind in ("X", "Y")] + [(1, "")]
    valid = {
        tuple(spans_of(spans, scheme))
        for k in range(1, 5)
        for spans in itertools.product(pieces, repeat=k)
        if sum(n for n, _ in spans) == 4
    }
    tags = sorted({label for labels in valid for label in labels})
    found = {labels for labels in itertools.product(tags, repeat=4) if not violations(labels, scheme)}
    assert found == valid


def test_violations_name_place_and_cause() -> None:
    """The place is the label that may not stand there, with what is before it; a phrase left open is told at the end."""
    assert violations(["I-X", "O", "I-Y"], "IOB2") == [(0, "I-X after the start"), (2, "I-Y after O")]
    assert violations(["B-X", "O"], "IOBES") == [(1, "O after B-X")]
    assert violations(["S-X", "B-X"], "IOBES") == [(1, "B-X at the end")]
    assert violations(["O", "B-X"], "IOB1") == [(1, "B-X after O")]
    assert violations(["I-X", "O", "I-Y"], "IO") == []


def test_a_label_that_is_no_tag_is_told_once() -> None:
    """A label outside the scheme is one violation, not two more at its neighbours."""
    assert violations(["B-X", "XX", "I-X"], "IOB2") == [(1, "'XX' is not a valid IOB2 tag")]
    assert violations(["B-X", "E-X", "O"], "IOB2") == [(1, "'E-X' is not a valid IOB2 tag")]
    assert violations(["O", "XX"], "IOBES") == [(1, "'XX' is not a valid IOBES tag")]


ANY = [list(labels) for labels in itertools.product(["O", "B-X", "I-X", "E-X", "S-X", "I-Y"], repeat=4)]


@pytest.mark.parametrize("inside", SCHEMES)
@pytest.mark.parametrize("own", ["iob1", "iob2", "iobes", "bilou", "bmes"])
def test_phrases_survive_every_scheme(inside: str, own: str) -> None:
    """Of all sequences of four labels, good and bad: coded and decoded they have the phrases that conlleval reads in them."""
    back = [written(written(labels, inside), own) for labels in ANY]
    assert not any(violations(labels, own.upper()) for labels in back)
    assert [phrases(labels) for labels in back] == [phrases(labels) for labels in ANY]
    total, _ = chunk_counts(ANY, [written(labels, "iobes") for labels in back])
    assert total.n_correct == total.n_gold == total.n_predicted > 1000


@pytest.mark.parametrize("inside", SCHEMES)
@pytest.mark.parametrize("own", ["iob1", "iob2", "iobes", "bilou", "bmes"])
def test_labels_that_keep_to_a_scheme_come_back(inside: str, own: str) -> None:
    """Of all sequences of three labels those without violations, and no others, are what they were after coding and decoding."""
    labels = ["O", *(f"{tag}-{kind}" for tag in sorted({*TABLE[own]}) for kind in "XY")]
    kept = 0
    for row in map(list, itertools.product(labels, repeat=3)):
        sound = not violations(row, own.upper())
        assert (written(written(row, inside), own) == row) == sound
        kept += sound
    assert kept > 40


def test_a_scheme_of_ones_own() -> None:
    """By what is broken less often; IOB1 where there is no B; E and S show IOBES; unknown labels show nothing."""
    assert own_scheme([["I-X", "B-X"], ["I-X"], [None, "B-X"]]) == "iob1"
    assert own_scheme([["I-X", "I-Y", "O"]]) == "iob1"
    assert own_scheme([["B-X", "I-X"], ["O", "I-X"], ["O", "B-Y"]]) == "iob2"
    assert own_scheme([["B-X", None], [None, "S-Y"]]) == "iobes"
    assert own_scheme([["U-X", "O"]]) == "bilou"


def test_choices_are_what_the_neighbours_leave() -> None:
    """Of labels that are known in part: each choice holds exactly the labels of some completion that keeps to the scheme."""
    given = [("B-X", "O"), None, ("I-X",), ("I-X", "O")]
    rows = [r for r in itertools.product(["O", "B-X", "I-X"], repeat=4) if not violations(r, "IOB2")]
    rows = [r for r in rows if all(g is None or y in g for y, g in zip(r, given, strict=True))]
    wanted = [{written(list(r), "iobes")[t] for r in rows} for t in range(4)]
    found = written(given, "iobes", "iob2")
    assert found[1] is None
    assert all(set(own) >= wanted[t] for t, own in enumerate(found) if own is not None)
    assert [set(own) for own in (found[0], found[2], found[3])] == [{"B-X", "S-X", "O"}, wanted[2], wanted[3]]
