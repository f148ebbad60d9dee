"""Promises of the table of stumbles: each is answered as the table says, and the test that it names is there."""

import re
from pathlib import Path

import pytest
from documents import SEEN
from strangers import ROOT
from stumbles import RESULT, STUMBLES, below, prepared, tried

ALL = [one for stumbles in STUMBLES.values() for one in stumbles]


def test_the_tests_that_are_named_are_there() -> None:
    """What holds a stumble is a function of that name in that file."""
    for test in [one.test for one in ALL] + [one.test for seen in SEEN.values() for one in seen]:
        file, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), test


def test_the_table_has_every_stumble() -> None:
    """The table that is kept has a row for each, all mended."""
    text = RESULT.read_text(encoding="utf-8")
    assert f"{len(ALL)} of {len(ALL)} are mended" in text
    assert "as before" not in text
    assert text.endswith(f"\n\n{below()}")


@pytest.mark.slow
def test_every_stumble_is_mended(tmp_path: Path) -> None:
    """Typed anew, each is answered by what was wanted; those whose library is not here are left out."""
    folder = prepared(tmp_path)
    for one in ALL:
        for library in re.findall(r"\bimport (torch|pandas);", one.typed) + ["spacy"] * ("--text" in one.typed):
            pytest.importorskip(library)
        now = tried(one, folder)
        assert re.search(one.wanted, now, re.MULTILINE), f"{one.typed}\n{now}"
