"""Promises of `bench arc-templates`, on a small treebank and few templates."""

import gzip
import json
import signal
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from treebank_helpers import treebank_text

from structpred.data.arc_templates import ArcTemplate
from structpred.experiments import arc_templates
from structpred.experiments.arc_templates import ArcTemplates, Curves, Run, Training, selected
from structpred.io import read_treebank
from structpred.models import DependencyParser

Here = Callable[..., tuple[int, str, str]]
FAMILY = ["h.upos m.upos | direction", "h.form m.form", "m.upos | distance", "h.lemma m.upos"]


@pytest.fixture
def treebanks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with treebanks under the names of EWT; two numbers of templates, of four, and two C."""
    monkeypatch.setattr(arc_templates, "conjunction_family", lambda: [ArcTemplate.parse(text) for text in FAMILY])
    monkeypatch.setattr(arc_templates, "LEFT_OUT", (2, 0))
    monkeypatch.setattr(arc_templates, "GRIDS", {"mkl": (0.01, 1.0), "svm": (0.05,)})
    folder = tmp_path / "data" / "ud_english_ewt"
    folder.mkdir(parents=True)
    for seed, part in enumerate(("train", "dev", "test")):
        (folder / f"en_ewt-ud-{part}.conllu.gz").write_bytes(gzip.compress(treebank_text(30, seed).encode()))
    return folder


def test_templates_that_weigh_most_come_first() -> None:
    """By the norm in the end; among those that are zero then, by the mean share of all epochs; without tags between."""
    assert selected(Training(0.0, 0.0, [0.1, 0.3, 0.2], [])) == [1, 2, 0]
    assert selected(Training(0.0, 0.0, [0.0, 0.3, 0.0], [[0.1, 0.2, 0.3, 0.4], [0.0, 0.5, 0.0, 0.5]])) == [1, 2, 0]


def test_a_run_that_was_stopped_goes_on(
    treebanks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hears_interrupts: None
) -> None:
    """Stopped within the sixth training and started again, it ends with the figures of an unbroken run, and does what was done
    not again."""
    train, dev, test = (read_treebank(treebanks / f"en_ewt-ud-{part}.conllu.gz") for part in ("train", "dev", "test"))
    family = arc_templates.conjunction_family()
    whole = Run(tmp_path / "whole", train, test, 3, 8).curves(family, dev)
    fits: list[int] = []
    fit = DependencyParser.fit

    def stopped(parser: DependencyParser, *args: object, **options: object) -> DependencyParser:
        fits.append(len(parser.templates or ()))
        if len(fits) == 6:
            parser.callbacks = lambda row: bool(row["passes"] == 2 and signal.raise_signal(signal.SIGINT))
        return fit(parser, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(DependencyParser, "fit", stopped)
    with pytest.raises(KeyboardInterrupt):
        Run(tmp_path / "broken", train, test, 3, 8).curves(family, dev)
    assert (tmp_path / "broken" / "svm-2-by-mkl.ckpt").exists()
    found = Run(tmp_path / "broken", train, test, 3, 8).curves(family, dev)
    assert replace(found, cpu_seconds=0.0) == replace(whole, cpu_seconds=0.0)
    assert fits == [4, 4, 4, 4, 4, 2, 2, 2]
    assert not list((tmp_path / "broken").glob("*.ckpt*"))


def test_C_is_chosen_on_dev_and_scores_are_of_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the C that are near to the best on the dev file, the one with most zero templates; where none is near, the best."""
    seen: list[tuple[str, object, float]] = []
    known = {"mkl-C-0.01": (0.5, [0.0, 0.0, 0.0]), "mkl-C-0.1": (0.896, [0.0, 0.0, 1.0]), "mkl-C-1": (0.9, [0.0, 1.0, 1.0])}

    def trained(run: Run, name: str, templates: list[ArcTemplate], trainer: object, C: float) -> Training:
        seen.append((name, run.test, C))
        uas, norms = known.get(name, (0.7, [0.0, 1.0, 1.0]))
        return Training(uas, 1.0, norms, [[*norms, 1.0]])

    monkeypatch.setattr(Run, "trained", trained)
    monkeypatch.setattr(arc_templates, "LEFT_OUT", (1, 0))
    monkeypatch.setattr(arc_templates, "GRIDS", {"mkl": (0.01, 0.1, 1.0), "svm": (0.5,)})
    family = [ArcTemplate.parse(text) for text in FAMILY[:3]]
    train, dev, test = (read_treebank(BytesIO(treebank_text(2, seed).encode())) for seed in range(3))
    for near, chosen in ((0.005, 0.1), (0.003, 1.0)):
        seen.clear()
        monkeypatch.setattr(arc_templates, "NEAR", near)
        figures = Run(tmp_path, train, test, 3, 8).curves(family, dev)
        assert figures.chosen == {"mkl": chosen, "svm": 0.5}
        assert {name for name, scored, _ in seen if scored is dev} == {*known, "svm-C-0.5"}
        assert [(name, C) for name, scored, C in seen if scored is test][:2] == [("mkl", chosen), ("svm", 0.5)]
        assert (figures.choices["mkl"][1], figures.idle, figures.test_words) == ((0.1, 0.896, 2), 1, test.n_words)


def test_each_claim_of_the_figure_is_met_or_not() -> None:
    """What any tree has is no template that MKL dropped; its score may be .25 below that of all templates."""
    scores = {"MKL": [(107, 0.8), (507, 0.9)], "SVM": [(107, 0.7), (507, 0.9)]}
    weights = [[0.0] * 112 + [1.0] * 395 + [1.0]]
    figures = Curves(1, 1, 1, 1, 1, [], weights, 0.8975, scores, {}, {}, 12, 1.0)
    assert [one.met for one in ArcTemplates().claims(figures)] == [True, True, True]
    worse = replace(figures, mkl_uas=0.8974, idle=13, scores=scores | {"SVM": [(107, 0.8), (507, 0.9)]})
    assert [one.met for one in ArcTemplates().claims(worse)] == [False, False, False]
    assert [one.ours for one in ArcTemplates().claims(worse)] == ["80.00 and 80.00", "-0.26", "112 of 507, 13 in every tree"]


def test_a_size_that_no_block_can_have_is_refused_before_any_work(here: Here, treebanks: Path, tmp_path: Path) -> None:
    """One line, and no progress before it."""
    command = ("bench", "arc-templates", "--data", str(treebanks.parent), "--max-bits", "99")
    code, out, err = here(*command, cwd=tmp_path)
    assert (code, out, err) == (2, "", "error: max_bits: expected a whole number in 1..28, got 99\n")


@pytest.mark.slow
def test_the_table_and_the_picture(here: Here, treebanks: Path, tmp_path: Path) -> None:
    """A line for each number of templates, that EWT stands in for licensed data, all figures as JSON, and the picture."""
    common = ("bench", "arc-templates", "--data", str(treebanks.parent), "--epochs", "2", "--max-bits", "6", "--output", "kept")
    code, out, err = here(*common, "--sentences", "20", "--picture", "weights.svg", cwd=tmp_path)
    assert code == 0, err
    assert "licensed: EWT stands in" in out
    assert "MKL: C = " in out
    assert [line.split()[0] for line in out.splitlines() if line[:9].strip().isdigit()] == ["2", "4"]
    assert "</svg>" in (tmp_path / "weights.svg").read_text()
    figures = json.loads(here(*common, "--sentences", "20", "--json", cwd=tmp_path)[1])
    assert (figures["sentences"], figures["epochs"], figures["max_bits"]) == (20, 2, 6)
    assert len(figures["group_weights"]) == 2
    assert figures["scores"]["MKL"][-1] == figures["scores"]["SVM"][-1]
