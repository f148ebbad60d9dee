"""Promises of the first hour: each trade has what it came for after the commands of the pages, and no message misleads."""

import re
from pathlib import Path

import pytest
from strangers import INSTALL, ROOT, TRADES, first_block, hour

#: what a stranger may take for a failure
ALARMING = re.compile(r"traceback|warning|error:|deprecat|bug in structpred", re.IGNORECASE)
#: lines on compiling kernels, which only come the first time
COMPILING = re.compile(r"^structpred: compiling kernels.*$", re.MULTILINE)


def test_the_commands_are_those_of_the_pages() -> None:
    """Each command stands in its page, and so does what is run by `python`; README says how to install."""
    assert INSTALL in (ROOT / "README.md").read_text(encoding="utf-8")
    for commands in TRADES.values():
        for one in commands:
            text = (ROOT / one.page).read_text(encoding="utf-8")
            assert one.command.startswith("python ") or one.command in text, one


def test_a_milp_decision_model_is_fifteen_lines() -> None:
    """The first Python of the page on solvers trains a DecisionModel over a MilpOracle, in 15 lines at most."""
    code = first_block("docs/howto/i_have_a_solver.md")
    assert "MilpOracle(" in code
    assert "DecisionModel(" in code
    assert len(code.strip().splitlines()) <= 15


@pytest.mark.slow
@pytest.mark.parametrize("trade", TRADES)
def test_a_stranger_gets_there(trade: str, tmp_path: Path) -> None:
    """Exit code 0 and what was wanted after each command, the first after installing included; no traceback, no warning."""
    if trade == "parsing":
        pytest.importorskip("spacy", reason="spaCy finds the words of running text")
    for one, done in zip(TRADES[trade], hour(trade, tmp_path), strict=True):
        said = f"{one.command}\n{done.out}\n{done.err}"
        assert done.code == 0, said
        assert re.search(one.wanted, done.out + COMPILING.sub("", done.err)), said
        assert not ALARMING.search(done.out + done.err), said
    if trade == "parsing":
        rows = [line.split("\t") for line in (tmp_path / "work" / "news.conllu").read_text().splitlines() if line[:1].isdigit()]
        assert [row[1] for row in rows][:4] == ["The", "mayor", "opened", "a"]
        assert [row[7] for row in rows].count("root") == 2
