"""The table of claims in docs/papers.md, from JSON: ``python benchmarks/claims.py`` writes it, and prints contradictions.

Two kinds of files are read. ``benchmarks/results/papers/BENCH.json`` is what ``structpred bench BENCH --output FOLDER`` left in
FOLDER/figures.json: its claims come from its figures. ``benchmarks/results/claims.json`` lists all claims in the order of the
page; where no bench has said anything of one, it holds what an earlier output shows, with that file and the lines of it. A claim
of neither is not tried.
"""

import json
from pathlib import Path
from typing import Any

from structpred.experiments.experiment import Claim

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "papers.md"
FIELDS = ("paper", "claim", "printed", "ours", "met")
HEAD = "|claim|printed|ours|verdict|\n|---|---|---|---|"


def listed(results: Path = RESULTS) -> list[dict[str, Any]]:
    """The list of claims: the fields of `Claim`, and for what is read off an earlier output `file` and `lines`."""
    found: list[dict[str, Any]] = json.loads((results / "claims.json").read_text())
    return found


def measured(results: Path = RESULTS) -> list[dict[str, Any]]:
    """The claims of all benches that were run, with the name of the bench."""
    files = sorted((results / "papers").glob("*.json"))
    return [{**claim, "bench": file.stem} for file in files for claim in json.loads(file.read_text())["claims"]]


def merged(results: Path = RESULTS) -> list[dict[str, Any]]:
    """All claims in the order of the list, those of benches in place of listed ones; a paper's others follow its last one."""
    own = {(claim["paper"], claim["claim"]): claim for claim in measured(results)}
    rows = [own.pop((row["paper"], row["claim"]), row) for row in listed(results)]
    for (paper, _), claim in own.items():
        last = max((k for k, row in enumerate(rows) if row["paper"] == paper), default=len(rows) - 1)
        rows.insert(last + 1, claim)
    return rows


def contradictions(results: Path = RESULTS) -> list[str]:
    """Listed claims whose lines are not in the file that they name, or that say something without one."""
    found = []
    for row in listed(results):
        if row["met"] is not None and "file" not in row:
            found.append(f"{row['claim']}: expected the file that shows it")
        text = (results / row["file"]).read_text() if "file" in row else ""
        found += [f"{row['claim']}: {row['file']} has no line {line!r}" for line in row.get("lines", ()) if line not in text]
    return found


def table(results: Path = RESULTS) -> str:
    """The table as Markdown, a row for each claim below one for its paper."""
    lines, paper = [HEAD], None
    for row in merged(results):
        if row["paper"] != paper:
            paper = row["paper"]
            lines.append(f"|**{paper}**||||")
        verdict = Claim(*(row[name] for name in FIELDS)).verdict
        file = f" ({Path(row['file']).stem})" if "file" in row else ""
        cells = (row["claim"], row["printed"], row["ours"], verdict + file)
        lines.append("".join(f"|{cell.replace('|', chr(92) + '|')}" for cell in cells) + "|")
    return "\n".join(lines)


def with_table(page: str, new: str) -> str:
    """The page with its table in place of the old one."""
    start = page.index(HEAD)
    end = page.find("\n\n", start)
    return page[:start] + new + (page[end:] if end >= 0 else "\n")


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(), table()))
    print("\n".join(contradictions()) or f"{len(merged())} claims")
