"""The 29 ways in which treebank files come: what each is (an error, a warning, fine), and the line that is named."""

import io
from pathlib import Path
from typing import NamedTuple

import pytest
from treebank_samples import text_of, word

from structpred.errors import DataError
from structpred.io import read_treebank, stream_treebank, validate_treebank, write_treebank

GOOD = text_of("# good", word(1, 2), word(2, 0))  # lines 1 to 4, before and behind each case


class Case(NamedTuple):
    """A file. found: the problems (severity, line, part of the message); without an error it is read. n: its sentences."""

    data: bytes
    found: list[tuple[str, int, str]]
    n: int


def bad(*lines: str, found: list[tuple[str, int, str]]) -> Case:
    """A sentence with errors between two good ones: it begins in line 5."""
    return Case((GOOD + text_of(*lines) + GOOD).encode(), found, 2)


def fine(*lines: str, found: tuple[tuple[str, int, str], ...] = ()) -> Case:
    """A sentence that is read, between two good ones."""
    return Case((GOOD + text_of(*lines) + GOOD).encode(), list(found), 3)


CASES = {
    "byte order mark": Case(b"\xef\xbb\xbf" + GOOD.encode(), [("warning", 1, "byte order mark")], 1),
    "CR LF": Case(GOOD.replace("\n", "\r\n").encode(), [], 1),
    "9 columns": bad(word(1, 2), word(2, 0)[:-2], found=[("error", 6, "expected 10 columns separated by single tabs, got 9")]),
    "11 columns": bad(
        word(1, 2) + "\t_", word(2, 0), found=[("error", 5, "expected 10 columns separated by single tabs, got 11")]
    ),
    "spaces": bad(word(1, 2, upos="NO UN"), word(2, 0), found=[("error", 5, "no spaces in column 4 (UPOS), got 'NO UN'")]),
    "head out of range": bad(word(1, 3), word(2, 0), found=[("error", 5, "expected a head from 0 to 2")]),
    "head negative": bad(word(1, 2), word(2, 0), word(3, -1), found=[("error", 7, "whole number from 0 or _ as HEAD, got '-1'")]),
    "head is the word": bad(word(1, 2), word(2, 0), word(3, 3), found=[("error", 7, "word 3 is its own head")]),
    "head no integer": bad(word(1, "2.0"), word(2, 0), found=[("error", 5, "whole number from 0 or _ as HEAD, got '2.0'")]),
    "head _": bad(
        word(1, 2), word(2, 0), word(3, "_"), found=[("error", 7, "on every word of a sentence or on none, got _ on 1 of 3")]
    ),
    "cycle": bad(
        *(word(1, 3), word(2, 4), word(3, 2), word(4, 3), word(5, 0)),
        found=[("error", 6, "form a cycle: 2 -> 4 -> 3 -> 2")],
    ),
    "two roots": bad(word(1, 0), word(2, 0), found=[("error", 6, "expected one word with head 0, got 2: 1, 2")]),
    "no root": bad(
        *(word(1, 2), word(2, 1)),
        found=[("error", 5, "expected a word with head 0"), ("error", 5, "form a cycle: 1 -> 2 -> 1")],
    ),
    "id gap": bad(word(1, 0), word(3, 1), word(4, 1), found=[("error", 6, "expected id 2, got 3")]),
    "id twice": bad(word(1, 0), word(2, 1), word(2, 1), word(3, 1), found=[("error", 7, "expected id 3, got 2")]),
    "1-1": fine("1-1" + word(1, "_", deprel="_")[1:], word(1, 0), found=(("warning", 5, "a multiword token of one word"),)),
    "2-1": bad("2-1" + word(1, "_", deprel="_")[1:], word(1, 2), word(2, 0), found=[("error", 5, "from a lower to a higher id")]),
    "0.1": fine("0.1" + word(1, "_", deprel="_")[1:], word(1, 0)),
    "empty node inside a multiword token": fine(
        *("1-2" + word(1, "_", deprel="_")[1:], word(1, 0)),
        *("1.1" + word(1, "_", deprel="_")[1:], word(2, 1)),
    ),
    "empty form": bad(word(1, 2), word(2, 0, form=""), found=[("error", 6, "column 2 (FORM) is empty")]),
    "NUL": bad(word(1, 2), word(2, 0, form="a\0b"), found=[("error", 6, "NUL")]),
    "U+2028": fine(word(1, 0, form="a\u2028b"), found=(("warning", 5, "U+2028 LINE SEPARATOR"),)),
    "U+0085": fine(word(1, 0, form="a\x85b"), found=(("warning", 5, "U+0085"),)),
    "no-break space": fine(word(1, 0, form="10\u00a0000"), found=(("warning", 5, "U+00A0 NO-BREAK SPACE"),)),
    "comment inside a sentence": fine(
        word(1, 2), "# here", word(2, 0), found=(("warning", 6, "comments before the first word"),)
    ),
    "comments only": Case(
        b"# a\n# b\n\n",
        [("error", 0, "expected at least one sentence, got only comments"), ("warning", 1, "comments without a sentence")],
        0,
    ),
    "empty file": Case(b"", [("error", 0, "expected at least one sentence, got an empty file")], 0),
    "three empty lines": Case(
        f"{GOOD}\n\n{GOOD}".encode(), [("warning", 5, "an extra empty line"), ("warning", 6, "an extra empty line")], 2
    ),
    "no empty line at the end": Case(GOOD.encode()[:-1], [("warning", 3, "an empty line after the last sentence")], 1),
}

MORE = {
    "no line end at the end": Case(GOOD.encode()[:-2], [("warning", 3, "expected a line end")], 1),
    "all heads _": fine(word(1, "_"), word(2, "_")),
    "mixed line ends": Case(
        (GOOD + GOOD.replace("\n", "\r\n")).encode(), [("warning", 5, "a different line ending: before it was LF")], 2
    ),
    "empty lines at the start": Case(f"\n{GOOD}".encode(), [("warning", 1, "an extra empty line")], 1),
    "comments between sentences": Case(f"{GOOD}# a\n\n{GOOD}".encode(), [("warning", 5, "comments without a sentence")], 2),
    "separated by spaces": bad(word(1, 0).replace("\t", " "), found=[("error", 5, "got 1; are they separated by spaces?")]),
    "a line of spaces": bad(word(1, 0), "  ", found=[("error", 6, "expected 10 columns")]),
    "not UTF-8": Case(
        GOOD.encode() + word(1, 0, form="caf@").encode().replace(b"@", b"\xe9") + b"\n\n" + GOOD.encode(),
        [("error", 5, "expected UTF-8 text, got the byte 0xe9")],
        2,
    ),
    "a lone carriage return": bad(word(1, 2, form="a\rb"), word(2, 0), found=[("error", 5, "carriage return")]),
    "id 0": bad(word(0, 0), found=[("error", 5, "expected as ID")]),
    "id no number": bad(word("a", 0), found=[("error", 5, "expected as ID")]),
    "id with a leading zero": bad(word("01", 0), found=[("error", 5, "expected as ID")]),
    "digits that are not ASCII": bad(word("\u0661", 0), found=[("error", 5, "expected as ID")]),
    "head of a million digits": bad(word(1, "9" * 10**6), found=[("error", 5, "whole number from 0 or _ as HEAD")]),
    "ranges that overlap": bad(
        *("1-2" + word(1, "_", deprel="_")[1:], word(1, 0), word(2, 1)),
        *("2-3" + word(1, "_", deprel="_")[1:], word(3, 1)),
        found=[("error", 8, "begins after the one before, which ends at 2, got 2-3")],
    ),
    "range beyond the end": bad(
        "1-3" + word(1, "_", deprel="_")[1:], word(1, 0), word(2, 1), found=[("error", 5, "the sentence of 2 words, got 1-3")]
    ),
    "range at the wrong place": bad(
        word(1, 0),
        word(2, 1),
        "1-2" + word(1, "_", deprel="_")[1:],
        found=[("error", 7, "expected the range before its first word, 3-")],
    ),
    "empty nodes out of order": bad(word(1, 0), "1.2" + word(1, "_", deprel="_")[1:], found=[("error", 6, "expected 1.1")]),
    "empty nodes alone": bad("0.1" + word(1, "_", deprel="_")[1:], found=[("error", 5, "expected at least one word")]),
    "an empty node alone, with a head": bad(
        "0.1" + word(1, 0)[1:], found=[("warning", 5, "no place in the tree"), ("error", 5, "expected at least one word")]
    ),
    "a multiword token with a head": fine(
        "1-2" + word(1, 0)[1:], word(1, 0), word(2, 1), found=(("warning", 5, "no place in the tree"),)
    ),
    "root where the head is no 0": fine(word(1, 0), word(2, 1, deprel="root"), found=(("warning", 6, "the relation root"),)),
    "odd spaces": fine(word(1, 0, form="a  b"), found=(("warning", 5, "double spaces in column 2 (FORM)"),)),
    "spaces in FORM and MISC": fine(word(1, 0, form="a b", misc="a b")),
    "several errors": bad(
        *(word(1, 9), word(2, 2), word(3, "x"), word(4, 5), word(5, 4)),
        found=[("error", 5, "from 0 to 5"), ("error", 6, "own head"), ("error", 7, "got 'x'"), ("error", 8, "4 -> 5 -> 4")],
    ),
}
ALL = {**CASES, **MORE}


@pytest.fixture(params=sorted(ALL))
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Case, Path]:
    """Each file, written."""
    path = tmp_path / "a.conllu"
    path.write_bytes(ALL[request.param].data)
    return ALL[request.param], path


def _has_errors(case: Case) -> bool:
    return any(severity == "error" for severity, _, _ in case.found)


def test_there_are_29_cases() -> None:
    """The list is complete."""
    assert len(CASES) == 29


def test_all_problems_are_told_with_their_lines(case: tuple[Case, Path]) -> None:
    """`validate_treebank` finds exactly the problems of each file, by line."""
    expected, path = case
    found = validate_treebank(path)
    assert [(problem.severity, problem.line) for problem in found] == [(severity, line) for severity, line, _ in expected.found]
    for problem, (_, line, part) in zip(found, expected.found, strict=True):
        assert part in problem.message
        assert str(problem).startswith(f"{path}:{line}: " if line else f"{path}: ")


def test_reading_stops_at_the_first_error(case: tuple[Case, Path]) -> None:
    """`read_treebank` and `stream_treebank` raise DataError with the line of the first error; warnings stop nobody."""
    expected, path = case
    if not _has_errors(expected):
        assert len(read_treebank(path)) == expected.n
        assert sum(map(len, stream_treebank(path, batch_size=1))) == expected.n
        return
    _, line, part = next(found for found in expected.found if found[0] == "error")
    for read in (read_treebank, lambda path: list(stream_treebank(path, batch_size=1))):
        with pytest.raises(DataError) as caught:
            read(path)
        assert str(caught.value).startswith(f"{path}:{line}: " if line else f"{path}: ")
        assert part in str(caught.value)


def test_skipping_leaves_out_the_bad_sentence(case: tuple[Case, Path], caplog: pytest.LogCaptureFixture) -> None:
    """With on_error="skip" the other sentences are there, the errors are kept in `skipped`, and the log counts."""
    expected, path = case
    if not expected.n:
        with pytest.raises(DataError, match="expected at least one sentence"):
            read_treebank(path, on_error="skip")
        return
    errors = [(line, part) for severity, line, part in expected.found if severity == "error"]
    treebank = read_treebank(path, on_error="skip")
    told = [record.message for record in caplog.records]
    batches = list(stream_treebank(path, batch_size=1, on_error="skip"))
    assert len(treebank) == sum(map(len, batches)) == expected.n
    assert [problem.line for problem in treebank.skipped] == [line for line, _ in errors]
    assert [problem for batch in batches for problem in batch.skipped] == list(treebank.skipped)
    assert {problem.sentence for problem in treebank.skipped} == ({2} if errors else set())
    assert len(told) == bool(errors)
    if errors:
        line, part = errors[0]
        assert told[0].startswith(f"{path}: 1 sentence with errors left out; first: {path}:{line}: ")
        assert part in told[0]


def test_what_is_read_is_written_as_it_was(case: tuple[Case, Path]) -> None:
    """A file without errors comes back byte for byte, with and without its own trees; skipped sentences are gone from it."""
    expected, path = case
    if not expected.n:
        return
    treebank = read_treebank(path, on_error="skip")
    out = io.BytesIO()
    write_treebank(treebank, out, treebank.trees() if treebank.has_trees else None)
    if _has_errors(expected):
        assert out.getvalue() == GOOD.encode() * 2
    else:
        assert out.getvalue() == expected.data


@pytest.mark.parametrize(
    "name", ["head out of range", "head negative", "head is the word", "cycle", "two roots", "no root", "head _"]
)
def test_trees_are_not_checked_on_request(name: str) -> None:
    """With check_trees=False every HEAD is taken as it comes: -1 where it is no number from 0 to n."""
    treebank = read_treebank(io.BytesIO(ALL[name].data), check_trees=False)
    assert len(treebank) == 3
    rows = [line.split("\t") for line in ALL[name].data.decode().split("\n") if "\t" in line]
    sizes = treebank.lengths.repeat(treebank.lengths)
    expected = [int(r[6]) if r[6].isdecimal() and int(r[6]) <= n else -1 for r, n in zip(rows, sizes.tolist(), strict=True)]
    assert treebank.heads.tolist() == expected
