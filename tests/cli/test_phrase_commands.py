"""Promises of the command line about phrases and their probabilities."""

import json
from pathlib import Path

import pytest
from cli_helpers import Shell, call

from structpred.evaluation import calibration
from structpred.io.columns import read_columns
from structpred.models import ChainLabeler


@pytest.fixture(scope="module")
def crf(corpus: Path) -> Path:
    """A chunking model trained with the log loss."""
    command = ("train", "chain", "train.txt", "--template", "chunking", "-o", "crf.spz", "--trainer", "lbfgs", "--max-iter", "20")
    call(*command, cwd=corpus).check_returncode()
    return corpus / "crf.spz"


def test_phrases_are_lines_or_part_of_the_json(shell: Shell, corpus: Path, crf: Path) -> None:
    """A line for each phrase with sequence, tokens, label, probability and words; in JSON beside labels; both as in Python."""
    done = shell("predict", str(crf), str(corpus / "test.txt"), "--phrases")
    assert done.returncode == 0, done.stderr
    rows = read_columns(corpus / "test.txt")
    words, wanted = rows.labels(0), ChainLabeler.load(crf).predict_phrases(rows)
    lines = [
        f"{i}\t{p.start}\t{p.end}\t{p.label}\t{p.probability:.6f}\t{' '.join(words[i][p.start : p.end])}"
        for i, own in enumerate(wanted)
        for p in own
    ]
    assert done.stdout.splitlines() == lines != []
    entries = shell("predict", str(crf), str(corpus / "test.txt"), "--phrases", "--json").stdout.splitlines()
    assert [json.loads(line)["phrases"] for line in entries] == [[p._asdict() for p in own] for own in wanted]
    assert all({"tokens", "labels"} <= json.loads(line).keys() for line in entries)


def test_evaluate_says_how_reliable_probabilities_are(shell: Shell, corpus: Path, crf: Path, tmp_path: Path) -> None:
    """With --precision: the reliability table, the calibration error, and the threshold; figures as in Python."""
    rows = read_columns(corpus / "test.txt")
    found = calibration(rows.labels(-1), ChainLabeler.load(crf).predict_phrases(rows))
    least = found.threshold_for(0.98)
    assert least is not None
    asked = ("evaluate", str(crf), str(corpus / "test.txt"), "--precision")
    text = shell(*asked, "0.98").stdout
    last = f"98 % are right from {least:.4f} on, {100 * found.at(least).recall:.2f} % of all phrases\n"
    assert text.endswith(f"\n\n{found.table()}\n{last}")
    figures = json.loads(shell(*asked, "0.98", "--json").stdout)["calibration"]
    assert figures == {**found.to_dict(), "threshold": least}
    assert "calibration" not in json.loads(shell(*asked[:-1], "--json").stdout)
    done = shell("report", str(crf), str(corpus / "test.txt"), "-o", "page.html")
    assert done.returncode == 0, done.stderr
    assert f"Expected calibration error: {found.error:.4f}." in (tmp_path / "page.html").read_text()


def test_models_without_probabilities_are_refused_in_a_line(shell: Shell, corpus: Path, crf: Path) -> None:
    """A margin model: one line that names the remedy; --shards and --pred do not go with it; labels must all be known."""
    margin, data = str(corpus / "chunk.spz"), str(corpus / "test.txt")
    for command in (("predict", margin, data, "--phrases"), ("evaluate", margin, data, "--precision", "0.9")):
        done = shell(*command)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
        assert "its scores are not log-probabilities; use predict, or train with trainer='oeg', trainer='lbfgs'" in done.stderr
    done = shell("predict", str(crf), data, "--phrases", "--shards", "2", "-o", "{shard}.txt")
    assert "--phrases cannot be combined with --shards" in done.stderr
    assert "--pred FILE cannot be combined with --precision" in shell("evaluate", "--pred", data, "--precision", "0.9").stderr
    text = Path(data).read_text().replace(" B-VP", " _", 1)
    done = shell("evaluate", str(crf), "-", "--precision", "0.9", stdin=text)
    assert "probabilities of phrases are judged where no label is missing" in done.stderr
