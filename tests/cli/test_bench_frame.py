"""Promises that every `bench` keeps: what a quick run says, what stands beside a paper, and claims."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from structpred.experiments.bmrm_lower_bound import BoundTable, LowerBound, lower_bound
from structpred.experiments.claims import PRINTED, Claim
from structpred.experiments.experiment import Experiment, Wanted, experiments
from structpred.experiments.ocr_mkl import OcrKernels, Row, Table

Here = Callable[..., tuple[int, str, str]]


@dataclass(frozen=True)
class Heights:
    """Figures of an experiment that is no one's."""

    ours: float
    paper: float
    rows: list[dict[str, float]]


class Towers(Experiment):
    """Measure towers."""

    name = "towers"
    summary = "Towers."
    tables = ("heights",)

    def run(self, folder: Path, wanted: Wanted) -> Heights:
        """One tower, and another."""
        return Heights(3.0, 7.0, [{"ours": 2.0, "paper_height": 9.0}])

    def text(self, figures: Heights) -> str:
        """Beside the paper's."""
        return f"height {figures.ours}{PRINTED}   printed {figures.paper}\n\n{PRINTED}all towers are printed\nend"

    def claims(self, figures: Heights) -> list[Claim]:
        """One of each kind."""
        return [Claim("Babel 1", f"claim {k}", "7", "3", met) for k, met in enumerate((True, False, None))]


def test_nothing_of_a_paper_stands_beside_a_quick_run() -> None:
    """Its first line says that its figures mean nothing, as JSON the first key; what is printed, and claims, are left out."""
    experiment = Towers()
    figures = experiment.run(Path(), Wanted())
    first, *lines = experiment.shown(figures, as_json=False, quick=True).splitlines()
    assert "mean nothing" in first
    assert lines == ["height 3.0", "", "end"]
    found = json.loads(experiment.shown(figures, as_json=True, quick=True))
    assert "mean nothing" in found.pop("quick")
    assert found == {"ours": 3.0, "rows": [{"ours": 2.0}], "claims": []}


def test_claims_are_printed_and_are_data() -> None:
    """A full run ends with a line for each claim, and has the claims in its JSON."""
    experiment = Towers()
    figures = experiment.run(Path(), Wanted())
    lines = experiment.shown(figures, as_json=False).splitlines()
    assert lines[:4] == ["height 3.0   printed 7.0", "", "all towers are printed", "end"]
    assert lines[4:] == [
        "met       claim 0: printed 7; here 3", "NOT MET   claim 1: printed 7; here 3", "not tried claim 2: printed 7; here 3",
    ]  # fmt: skip
    found = json.loads(experiment.shown(figures, as_json=True))
    assert found["claims"][1] == {"paper": "Babel 1", "claim": "claim 1", "printed": "7", "ours": "3", "met": False}
    assert found["paper"] == 7.0


def test_a_claim_follows_from_the_figures() -> None:
    """Theorem 6 is met and the matrix of (14) is not; gaps that were others would change that."""
    found = lower_bound(16, 0.1)
    assert [claim.met for claim in LowerBound().claims(found)] == [True, False]
    worse = BoundTable(found.d, found.lam, 0.1, [row for row in found.rows if row.printed > 1e-9])
    assert [claim.met for claim in LowerBound().claims(worse)] == [False, True]


def test_columns_of_a_paper_are_marked() -> None:
    """A table with a paper's figures shows them in a full run alone."""
    row = Row("linear", ["L"], [80.0], 80.0, 0.0, [1.0], [1.0], 1.0, [1.0], (72.8, 4.4, 6), None)
    table = Table(1, 10, 20, 5, [row], 1.0)
    assert "72.8" in OcrKernels().shown(table, as_json=False)
    assert "72.8" not in OcrKernels().shown(table, as_json=False, quick=True)
    assert "72.8" not in OcrKernels().shown(table, as_json=True, quick=True)


@pytest.mark.parametrize("name", sorted(experiments()))
def test_help_says_that_quick_figures_mean_nothing(name: str, here: Here, tmp_path: Path) -> None:
    """Every experiment has the option, and its page says what it is good for."""
    page = " ".join(here("bench", name, "--help", cwd=tmp_path)[1].split())
    assert "the figures mean nothing" in page


def test_a_quick_run_says_so_in_its_first_line(here: Here, tmp_path: Path) -> None:
    """From the shell, as text and as JSON."""
    found: Any = [here("bench", "bmrm-lower-bound", "--quick", *options, cwd=tmp_path)[1] for options in ((), ("--json",))]
    assert "mean nothing" in found[0].splitlines()[0]
    assert next(iter(json.loads(found[1]).items()))[0] == "quick"
