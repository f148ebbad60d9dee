"""Certificates: what they say in words, and what they say where own classes took part."""

import pytest

from structpred.core.result import Certificate
from structpred.models.bundles import COMMON


@pytest.mark.parametrize(
    ("certificate", "said"),
    [
        (Certificate(10.0, 9.97, proven=True), "The training objective is optimal to 0.3 %."),
        (Certificate(10.0, 0.61, proven=True), "The bounds hold: the optimum of the training objective is at most 93.9 % below"),
        (Certificate(10.0, 10.00001, proven=True), "The training objective is optimal to 0 %."),
        (Certificate(1.981, 2.065, proven=True), "Nothing is certified: the lower bound lies above what was reached"),
    ],
)
def test_the_word_says_what_holds(certificate: Certificate, said: str) -> None:
    """A small gap is called optimal to its share, a large one bounds that hold, and bounds that cross certify nothing."""
    assert certificate.meaning().startswith(said)
    assert certificate.certifies == (not said.startswith("Nothing"))


def test_the_line_says_whether_own_classes_were_checked() -> None:
    """The line of a certificate names the check of own classes where it was made, and where it was turned off."""
    lines = {checked: str(Certificate(2.0, 1.0, proven=True, checked=checked)) for checked in (None, True, False)}
    assert "classes" not in lines[None]
    assert lines[True].endswith("own classes checked on examples")
    assert lines[False].endswith("own classes were not checked")
    assert "not checked" in Certificate(2.0, 1.999, proven=True, checked=False).meaning()
    for dual in (1.0, 1.999):
        assert Certificate(2.0, dual, proven=True, checked=True).meaning().endswith(" Own classes checked on examples.")


def test_headers_of_older_files_have_no_word_on_checks() -> None:
    """The header of a file that was written before certificates told of checks gives one that tells of none."""
    old = {"primal": 2.0, "dual": 1.0, "proven": True, "local": False}
    assert Certificate(**COMMON["certificate"].read(old, "certificate")).checked is None
    assert Certificate(**COMMON["certificate"].read({**old, "checked": False}, "certificate")).checked is False
