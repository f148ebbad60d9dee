"""Promises that every `bench` keeps: what a quick run says, claims, runs that were stopped, and data that are missing."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import hear_interrupts

from structpred.experiments import experiment as frame
from structpred.experiments.bmrm_lower_bound import BoundTable, LowerBound, lower_bound
from structpred.experiments.experiment import PRINTED, SOURCES, Claim, Experiment, Wanted, experiments
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
    """Theorems 5 and 6 are met and the matrix of (14) is not; gaps that were others would change that."""
    found = lower_bound(16, 0.1)
    assert [claim.met for claim in LowerBound().claims(found)] == [True, True, False]
    worse = BoundTable(found.d, found.lam, 0.1, [row for row in found.rows if row.printed > 1e-9])
    assert [claim.met for claim in LowerBound().claims(worse)] == [True, False, True]


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


KILLED = """
import os, signal, sys
from dataclasses import dataclass
from pathlib import Path
from structpred.experiments.experiment import SOURCES, Experiment, Wanted

@dataclass(frozen=True)
class Part:
    name: str
    pairs: list[tuple[int, float]]
    of: dict[str, float | None]

@dataclass(frozen=True)
class Parts:
    parts: list[Part]
    cpu_seconds: float = 0.0

class Killed(Experiment):
    name, summary, tables = "killed", "", ("parts",)

    def run(self, folder, wanted):
        return Parts([wanted.kept(f"part-{k}", Part, lambda: self.part(k)) for k in range(3)])

    def part(self, k):
        print("part", k, flush=True)
        if k == 2 and sys.argv[2] != "0":
            os.kill(os.getpid(), int(sys.argv[2]))
        return Part(str(k), [(k, 0.1 + 0.2)], {"x": None, "y": 1.5})

    def text(self, figures):
        return repr(figures.parts)

wanted = Wanted(quick=len(sys.argv) > 3, output=Path(sys.argv[1]))
print(Killed().shown(Killed().ran(Path(), wanted), as_json=False))
"""


def run_killed(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The experiment above, in a process of its own."""
    command = [sys.executable, "-c", KILLED, str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=hear_interrupts)


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on(tmp_path: Path) -> None:
    """After Ctrl-C, and after SIGKILL, what was finished is not done again; types are those of an unbroken run, and CPU seconds
    are of all runs. Other settings are refused."""
    whole = run_killed(tmp_path / "whole", "0").stdout.splitlines()
    for number in (signal.SIGINT, signal.SIGKILL):
        folder = tmp_path / number.name
        assert run_killed(folder, str(int(number))).returncode != 0
        first = folder / "part-0.json"
        first.write_text(json.dumps(json.loads(first.read_text()) | {"cpu_seconds": 1000.0}))
        assert run_killed(folder, "0").stdout.splitlines() == ["part 2", whole[-1]]
        assert json.loads((folder / "figures.json").read_text())["cpu_seconds"] > 1000.0
        assert run_killed(folder, "0").stdout.splitlines() == whole[-1:]
        assert "give another --output" in run_killed(folder, "0", "quick").stderr


def test_every_bench_keeps_its_figures(here: Here, tmp_path: Path) -> None:
    """Every experiment has --output; the folder holds the figures in the end, and a run in it is not done again."""
    for name in experiments():
        assert "-o, --output" in here("bench", name, "--help", cwd=tmp_path)[1]
    command = ("bench", "bmrm-lower-bound", "--quick", "-o", "kept")
    assert here(*command, cwd=tmp_path)[0] == 0
    path = tmp_path / "kept" / "table.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"found": {"d": 2, "lam": 1.0, "error": 0.5, "rows": []}}))
    assert "d = 2" in here(*command, cwd=tmp_path)[1]
    assert json.loads((tmp_path / "kept" / "figures.json").read_text())["error"] == 0.5
    code, _, err = here("bench", "bmrm-lower-bound", "-o", "kept", cwd=tmp_path)
    assert code == 1
    assert len(err.strip().splitlines()) == 1
    assert "give another --output" in err


@pytest.mark.slow
def test_simulators_need_no_data(here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They run where there is no folder of data sets."""
    monkeypatch.setenv("STRUCTPRED_DATA", str(tmp_path / "none"))
    for command in (("signs", "--only", "few-samples"), ("pdm", "--only", "moons"), ("pdm", "--only", "wave")):
        code, _, err = here("bench", *command, "--quick", cwd=tmp_path)
        assert code == 0, err


@pytest.mark.parametrize(
    "command", ["arc-templates", "linear-solvers", "ocr-mkl", "pdm --only vowel", "signs --only convergence", "slack"]
)
def test_missing_data_are_named_with_their_source(
    command: str, here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line says which file of which set is wanted, what the set is, and where it comes from."""
    monkeypatch.setenv("STRUCTPRED_DATA", str(tmp_path / "none"))
    code, out, err = here("bench", *command.split(), "--quick", cwd=tmp_path)
    assert (code, out) == (1, "")
    (line,) = (line for line in err.splitlines() if "error" in line)
    (name,) = (name for name in SOURCES if f"{name}/" in line)
    assert all(word in line for word in (*SOURCES[name], ".gz: ", "none: there is no such folder", "--data"))


def test_every_set_of_an_experiment_has_a_source(data_dir: Path) -> None:
    """What experiments read is in the table of sources, under the names that the folder of data gives the sets."""
    index = (data_dir / "README.md").read_text()
    sets = [path.name for path in data_dir.iterdir() if path.is_dir()]
    code = "\n".join(path.read_text() for path in Path(frame.__file__).parent.glob("*.py") if path.stem != "experiment")
    assert [name for name in sets if f'"{name}"' in code and name not in SOURCES] == []
    assert [name for name in SOURCES if f"| {name} |" not in index] == []
    for name, (title, _) in SOURCES.items():
        page = (data_dir / name / "README.md").read_text()
        assert title.split(",")[0].split(" (")[0] in page, name
