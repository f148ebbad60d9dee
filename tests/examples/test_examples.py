"""Every example runs as its user would run it, and prints what it promises."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("*.py"))
NUMBER = r"(-?[0-9.]+(?:e-?[0-9]+)?)"


def run(name: str, *arguments: str, folder: Path) -> str:
    """The example's standard output; it must leave nothing on standard error (no warnings either) but that it compiles."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"}
    command = [sys.executable, str(ROOT / "examples" / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, cwd=folder, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if not line.startswith("structpred: compiling kernels, ")] == []
    return done.stdout


def percentages(line: str) -> list[float]:
    """All numbers of a line that a per cent sign follows."""
    return [float(x) for x in re.findall(NUMBER + r" ?%", line)]


def line_with(text: str, start: str) -> str:
    """The one line that starts so."""
    (line,) = [line for line in text.splitlines() if line.startswith(start)]
    return line


def check_digits(printed: str, picture: Path) -> None:
    """The chain is better, the bounds fit each other, the origin of the data is said, a picture is there."""
    alone, chain = percentages(line_with(printed, "each digit alone")), percentages(line_with(printed, "the chain"))
    assert 0 < chain[0] < alone[0] < 30
    assert 0 < chain[1] < alone[1] < 90
    found = re.search(rf"primal {NUMBER}, dual {NUMBER}, gap {NUMBER}:", printed)
    assert found is not None
    primal, dual, gap = map(float, found.groups())
    assert 0 <= gap < 0.05 * primal
    assert primal - dual == pytest.approx(gap, abs=2e-5)
    assert "Images: real" in printed
    assert "synthetic" in printed
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_digits_demo_shows_what_the_chain_gains(tmp_path: Path) -> None:
    """digits_demo: fewer wrong digits and strings with the chain, certificate with a gap >= 0, a picture at the usual place."""
    printed = run("digits_demo.py", "--quick", folder=tmp_path)
    check_digits(printed, tmp_path / "out" / "digits_demo.png")


@pytest.mark.slow
def test_the_digits_demo_compiles_before_its_clock_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The seconds of the chain are those of one fit, after one that compiles."""
    spec = importlib.util.spec_from_file_location("digits_demo", ROOT / "examples" / "digits_demo.py")
    assert spec is not None
    assert spec.loader is not None
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    events = list[str]()

    class Chain(demo.ChainLabeler):
        def fit(self, X: Any, y: Any) -> Any:
            events.append("fit")
            return super().fit(X, y)

    clock = SimpleNamespace(perf_counter=lambda: (events.append("clock"), float(len(events)))[1])
    monkeypatch.setattr(demo, "ChainLabeler", Chain)
    monkeypatch.setattr(demo, "time", clock)
    monkeypatch.setattr(sys, "argv", ["digits_demo", "--quick", "--out", str(tmp_path / "out.png")])
    demo.main()
    assert " ".join(events) == "clock clock clock fit clock fit clock clock"


@pytest.mark.slow
def test_the_full_digits_demo_is_clearly_better(tmp_path: Path) -> None:
    """digits_demo at full size: the chain makes less than 60 % of the wrong digits and of the wrong strings; gap below 1 %.

    The gallery has its figures and its picture: python examples/digits_demo.py --shown 6 --out docs/images/digits_demo.png.
    """
    printed = run("digits_demo.py", "--shown", "6", folder=tmp_path)
    check_digits(printed, tmp_path / "out" / "digits_demo.png")
    alone, chain = percentages(line_with(printed, "each digit alone")), percentages(line_with(printed, "the chain"))
    assert chain[0] < 0.6 * alone[0]
    assert chain[1] < 0.6 * alone[1]
    assert percentages(line_with(printed, "no other weights"))[0] < 1.0
    claimed = percentages(line_with((ROOT / "docs" / "gallery.md").read_text(encoding="utf-8"), "*Noisy digits"))
    assert claimed == pytest.approx([alone[1], chain[1]], abs=1.0)
    drawn, kept = (small(path) for path in (tmp_path / "out" / "digits_demo.png", ROOT / "docs" / "images" / "digits_demo.png"))
    assert np.abs(drawn - kept).mean() < 4


def small(picture: Path) -> np.ndarray:
    """A picture in grey at a quarter of its size, in which letters that moved by a pixel hardly count."""
    with Image.open(picture) as image:
        return np.asarray(image.convert("L").resize((300, 160)), dtype=float)


@pytest.mark.slow
def test_the_own_oracle_example_learns_with_every_trainer(tmp_path: Path) -> None:
    """own_oracle: each trainer is far above chance; sgd and bcfw print bounds that fit; the loaded model predicts the same."""
    printed = run("own_oracle.py", "--quick", folder=tmp_path)
    assert "keeps the contract" in printed
    chance, reach = percentages(line_with(printed, "60 matchings"))
    for trainer in ("perceptron", "sgd", "bcfw"):
        assert 2 * chance < percentages(line_with(printed, trainer))[0] < reach + 5
    assert "no certificate" in line_with(printed, "perceptron")
    for trainer in ("sgd", "bcfw"):
        found = re.search(rf"primal {NUMBER}, dual {NUMBER}, gap {NUMBER}", line_with(printed, trainer))
        assert found is not None
        assert float(found[1]) >= float(found[2])
        assert float(found[3]) >= 0
    assert "predictions are the same" in printed


def test_the_own_oracle_is_about_twenty_lines() -> None:
    """The oracle of own_oracle.py, docstrings included, takes no more than 22 lines."""
    source = (ROOT / "examples" / "own_oracle.py").read_text(encoding="utf-8")
    body = source[source.index("class MatchingOracle") : source.index("HIDDEN =")]
    assert len([line for line in body.splitlines() if line.strip()]) <= 22


@pytest.mark.slow
def test_the_chunking_example_labels_a_new_sentence(tmp_path: Path) -> None:
    """chunking: the chunks of the new sentence are right, and the gap is not negative."""
    printed = run("chunking.py", folder=tmp_path)
    labels = [line.split()[-1] for line in printed.splitlines()[:5]]
    assert labels == ["B-NP", "I-NP", "I-NP", "B-VP", "I-VP"]
    found = re.search(rf"gap {NUMBER}", printed)
    assert found is not None
    assert float(found[1]) >= 0


@pytest.mark.slow
def test_the_own_trainer_example_nears_the_optimum(tmp_path: Path) -> None:
    """own_trainer: above the certified lower bound by less than 5 %, never below it, and the log loss is minimised, too."""
    printed = run("own_trainer.py", folder=tmp_path)
    assert 0 <= percentages(line_with(printed, "above the lower bound"))[0] < 5
    assert min(percentages(line_with(printed, start))[0] for start in ("margin", "log loss")) > 85


@pytest.mark.slow
def test_the_own_loss_example_brings_labels_closer(tmp_path: Path) -> None:
    """own_loss: trained for the distance, predictions are closer to the truth than those trained for the number of errors."""
    printed = run("own_loss.py", folder=tmp_path)
    assert "satisfies its contract" in printed.splitlines()[0]
    hamming, distance = (float(line_with(printed, start).split()[-1]) for start in ("hamming", "distance"))
    assert 0 < distance < hamming


@pytest.mark.slow
def test_the_own_regulariser_example_keeps_to_its_domain(tmp_path: Path) -> None:
    """own_regulariser: no weight is negative, some would be, and the certified optimum is no smaller for it."""
    printed = run("own_regulariser.py", folder=tmp_path)
    free, kept = (line_with(printed, start) for start in ("1/2 |w|^2", "w >= 0"))
    assert "satisfies its contract" in printed.splitlines()[0]
    numbers = [re.search(rf"weight {NUMBER}; primal {NUMBER}, dual {NUMBER}", line) for line in (free, kept)]
    (low, _, dual), (least, primal, _) = (tuple(map(float, found.groups())) for found in numbers if found)
    assert low < 0.0 <= least
    assert dual <= primal


@pytest.mark.slow
def test_the_own_kind_example_runs_from_the_shell(tmp_path: Path) -> None:
    """own_kind: most questions of the test set are answered right, and the feature with the largest hidden weight is first."""
    printed = run("own_kind.py", folder=tmp_path)
    assert percentages(line_with(printed, "100 questions"))[0] > 90
    assert printed.splitlines()[2].endswith("f0")


NO_TORCH = "PyTorch is not installed: pip install torch, then 'structpred[torch]'"


@pytest.mark.slow
def test_the_torch_tagger_reads_strings_of_digits(tmp_path: Path) -> None:
    """torch_tagger: after fifteen epochs the network with its chain reads more than 80 % of the digits of new strings."""
    pytest.importorskip("torch", reason=NO_TORCH)
    printed = run("torch_tagger.py", "--loss", "crf", "--epochs", "15", folder=tmp_path)
    digits, strings = percentages(line_with(printed, "crf"))
    assert 80 < digits <= 100
    assert 30 < strings < digits


@pytest.mark.slow
def test_the_torch_parser_finds_heads(tmp_path: Path) -> None:
    """torch_parser: after fifteen epochs of the toy grammar more than 90 % of the heads of other sentences are right."""
    pytest.importorskip("torch", reason=NO_TORCH)
    printed = run("torch_parser.py", "--loss", "crf", "--epochs", "15", folder=tmp_path)
    assert percentages(line_with(printed, "crf"))[0] > 90


@pytest.mark.slow
def test_the_hinge_trains_the_torch_parser_on_a_treebank(tmp_path: Path, data_dir: Path) -> None:
    """torch_parser: on real sentences, too, the hinge finds heads; it does not shrink all scores to 0."""
    pytest.importorskip("torch", reason=NO_TORCH)
    folder = data_dir / "ud_hungarian_szeged"
    files = [str(folder / f"hu_szeged-ud-{part}.conllu.gz") for part in ("train", "test")]
    printed = run("torch_parser.py", *files, "--loss", "hinge", "--epochs", "3", folder=tmp_path)
    assert percentages(line_with(printed, "hinge"))[0] > 45


def test_every_example_is_tested_here() -> None:
    """A new example needs a test in this file, or in that of compositions."""
    own = Path(__file__).read_text(encoding="utf-8")
    composed = Path(__file__).with_name("test_composed_examples.py").read_text(encoding="utf-8")
    assert [name for name in EXAMPLES if f'run("{name}"' not in own and f'"{name.removesuffix(".py")}"' not in composed] == []


@pytest.mark.slow
def test_five_papers_meet_in_one_model(tmp_path: Path) -> None:
    """five_papers: missing tags are completed, signs hold exactly, and the gap is closed to 1 %."""
    printed = run("five_papers.py", folder=tmp_path)
    assert "completed as they were: True" in printed
    assert "signs kept: True" in printed
    assert 0.0 <= percentages(line_with(printed, "gap"))[0] <= 1.0
