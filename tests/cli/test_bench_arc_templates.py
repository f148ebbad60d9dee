"""Promises of `bench arc-templates`, on a small treebank and few templates."""

import gzip
import json
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from treebank_helpers import treebank_text

from structpred.data.arc_templates import ArcTemplate
from structpred.experiments import arc_templates
from structpred.experiments.arc_templates import Run, Training, selected
from structpred.io import read_treebank
from structpred.models import DependencyParser

Here = Callable[..., tuple[int, str, str]]
FAMILY = ["h.upos m.upos | direction", "h.form m.form", "m.upos | distance", "h.lemma m.upos"]


@pytest.fixture
def treebanks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with treebanks under the names of EWT; two numbers of templates, of four."""
    monkeypatch.setattr(arc_templates, "conjunction_family", lambda: [ArcTemplate.parse(text) for text in FAMILY])
    monkeypatch.setattr(arc_templates, "LEFT_OUT", (2, 0))
    folder = tmp_path / "data" / "ud_english_ewt"
    folder.mkdir(parents=True)
    for seed, part in enumerate(("train", "dev")):
        (folder / f"en_ewt-ud-{part}.conllu.gz").write_bytes(gzip.compress(treebank_text(30, seed).encode()))
    return folder


def test_templates_that_weigh_most_come_first() -> None:
    """By the norm in the end; among those that are zero then, by the mean share of all epochs; without tags between."""
    assert selected(Training(0.0, 0.0, [0.1, 0.3, 0.2], [])) == [1, 2, 0]
    assert selected(Training(0.0, 0.0, [0.0, 0.3, 0.0], [[0.1, 0.2, 0.3, 0.4], [0.0, 0.5, 0.0, 0.5]])) == [1, 2, 0]


def test_a_run_that_was_stopped_goes_on(
    treebanks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hears_interrupts: None
) -> None:
    """Stopped within the third training and started again, it ends with the figures of an unbroken run, and does what was done
    not again."""
    train, dev = (read_treebank(treebanks / f"en_ewt-ud-{part}.conllu.gz") for part in ("train", "dev"))
    family = arc_templates.conjunction_family()
    whole = Run(tmp_path / "whole", train, dev, 3, 8).curves(family)
    fits: list[int] = []
    fit = DependencyParser.fit

    def stopped(parser: DependencyParser, *args: object, **options: object) -> DependencyParser:
        fits.append(len(parser.templates or ()))
        if len(fits) == 3:
            parser.callbacks = lambda row: bool(row["passes"] == 2 and signal.raise_signal(signal.SIGINT))
        return fit(parser, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(DependencyParser, "fit", stopped)
    with pytest.raises(KeyboardInterrupt):
        Run(tmp_path / "broken", train, dev, 3, 8).curves(family)
    assert (tmp_path / "broken" / "svm-2-by-mkl.ckpt").exists()
    found = Run(tmp_path / "broken", train, dev, 3, 8).curves(family)
    assert replace(found, cpu_seconds=0.0) == replace(whole, cpu_seconds=0.0)
    assert fits == [4, 4, 2, 2, 2]
    assert not list((tmp_path / "broken").glob("*.ckpt*"))


@pytest.mark.slow
def test_the_table_and_the_picture(here: Here, treebanks: Path, tmp_path: Path) -> None:
    """A line for each number of templates, that EWT stands in for licensed data, all figures as JSON, and the picture."""
    common = ("bench", "arc-templates", "--data", str(treebanks.parent), "--epochs", "2", "--max-bits", "6", "--output", "kept")
    code, out, err = here(*common, "--sentences", "20", "--picture", "weights.svg", cwd=tmp_path)
    assert code == 0, err
    assert "licensed: EWT stands in" in out
    assert [line.split()[0] for line in out.splitlines() if line[:9].strip().isdigit()] == ["2", "4"]
    assert "</svg>" in (tmp_path / "weights.svg").read_text()
    figures = json.loads(here(*common, "--sentences", "20", "--json", cwd=tmp_path)[1])
    assert (figures["sentences"], figures["epochs"], figures["max_bits"]) == (20, 2, 6)
    assert len(figures["group_weights"]) == 2
    assert figures["scores"]["MKL"][-1] == figures["scores"]["SVM"][-1]
