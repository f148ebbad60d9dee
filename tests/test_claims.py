"""The page of claims says what the files of results say."""

import json
import re
import shutil
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from structpred.experiments.bmrm_lower_bound import BoundTable, LowerBound
from structpred.experiments.experiment import experiments, rebuilt

ROOT = Path(__file__).resolve().parent.parent
PAPERS = ("Saha", "Martins", "Kato", "Choi", "Zhou")


@pytest.fixture
def claims(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program that writes the table."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.delitem(sys.modules, "claims", raising=False)
    import claims as program

    return program


def test_the_page_is_made_from_the_files(claims: ModuleType) -> None:
    """The table of docs/papers.md is what benchmarks/claims.py makes of benchmarks/results, to the letter."""
    page = claims.PAGE.read_text()
    assert claims.with_table(page, claims.table()) == page


def test_what_is_read_off_an_output_is_in_it(claims: ModuleType) -> None:
    """Each listed figure names its file and its lines, which are there; a line that is not is named."""
    assert claims.contradictions() == []


def test_a_wrong_list_is_found(claims: ModuleType, tmp_path: Path) -> None:
    """Lines that are not in the file, and a verdict without a file, are told."""
    (tmp_path / "a.txt").write_text("gap 3\n")
    row = {"paper": "P", "claim": "c", "printed": "2", "ours": "3", "met": False}
    (tmp_path / "claims.json").write_text(json.dumps([row, row | {"file": "a.txt", "lines": ["gap 2"]}]))
    assert claims.contradictions(tmp_path) == ["c: expected the file that shows it", "c: a.txt has no line 'gap 2'"]


def test_every_paper_has_claims_of_every_verdict(claims: ModuleType) -> None:
    """Five papers, each claim once."""
    rows = claims.merged()
    assert [sum(row["paper"].startswith(name) for row in rows) > 5 for name in PAPERS] == [True] * 5
    assert len({(row["paper"], row["claim"]) for row in rows}) == len(rows)
    assert {row["met"] for row in rows} == {True, False, None}


def test_a_bench_replaces_what_was_listed(claims: ModuleType, tmp_path: Path) -> None:
    """A claim of a bench takes the place of the listed one; another of the same paper follows the paper's last."""
    shutil.copytree(claims.RESULTS, tmp_path / "results", ignore=shutil.ignore_patterns("*.md"))
    first, *_, last = [row for row in claims.listed() if row["paper"].startswith("Kato")]
    new = {"paper": first["paper"], "claim": "new", "printed": "1", "ours": "2", "met": False}
    found = [{**new, "claim": first["claim"]}, new]
    (tmp_path / "results" / "papers" / "signs.json").write_text(json.dumps({"claims": found}))
    lines = claims.table(tmp_path / "results").splitlines()
    assert f"|{first['claim']}|1|2|NOT MET|" in lines
    assert lines[lines.index("|new|1|2|NOT MET|") - 1].startswith(f"|{last['claim']}|")


def test_figures_give_their_claims(claims: ModuleType) -> None:
    """Files of whole runs are of experiments, have claims, and are not of quick runs; those of the lower bound follow from its
    figures."""
    for path in (claims.RESULTS / "papers").glob("*.json"):
        found = json.loads(path.read_text())
        assert path.stem in experiments()
        assert found["claims"]
        assert not found.get("quick")
    found = json.loads((claims.RESULTS / "papers" / "bmrm-lower-bound.json").read_text())
    figures = rebuilt(BoundTable, {name: found[name] for name in ("d", "lam", "error", "rows")})
    assert json.loads(LowerBound().shown(figures, as_json=True))["claims"] == found["claims"]


def unfounded(page: str) -> list[str]:
    """What a page names that is not there: paths of code, and tests in files, by their names."""
    found: list[str] = []
    texts = cache(lambda path: (ROOT / path).read_text() if (ROOT / path).is_file() else None)
    for path, _, test in re.findall(r"`((?:structpred|tests|examples)/[\w/]+\.py|pyproject\.toml)(::(\w+))?`", page):
        if (text := texts(path)) is None or (test and f"\ndef {test}(" not in text):
            found.append(f"{path}::{test}" if test else path)
    return found


def test_the_audit_names_what_is_there() -> None:
    """Every path of code and every test of the audit exists, each of the 97 items has both, and the table counts their states."""
    page = (ROOT / "benchmarks" / "results" / "audit.md").read_text()
    assert unfounded(page) == []
    assert unfounded("`structpred/none.py`, `tests/test_claims.py::test_none`") == [
        "structpred/none.py",
        "tests/test_claims.py::test_none",
    ]
    blocks = [[line[2:-2].split(" | ") for line in block.splitlines()] for block in re.findall(r"(?:^\|.*\n)+", page, re.M)]
    (states, *_), papers = blocks[0], blocks[1:6]
    for total, rows in zip(blocks[0][2:7], papers, strict=True):
        items = rows[2:]
        counts = Counter(row[2] for row in items)
        assert set(counts) <= set(states)
        assert total[1:] == [str(len(items)), *(str(counts[state]) for state in states[2:])], total[0]
        assert [row[0] for row in items if "structpred/" not in row[3]] == []
        assert [row[0] for row in items if "::" not in row[4] and row[2] != "missing"] == []
    assert sum(len(rows) - 2 for rows in papers) == 97
