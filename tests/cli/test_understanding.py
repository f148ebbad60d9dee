"""Promises of inspect, validate, curve, report, and of evaluate's picture."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from structpred.io import read_ocr
from structpred.models import ChainLabeler, GaussianProcessLabeler

Here = Callable[..., tuple[int, str, str]]


def test_help_names_the_commands(here: Here, tmp_path: Path) -> None:
    """The program's help names each of them, and each explains itself."""
    _, out, _ = here("--help", cwd=tmp_path)
    for name in ("inspect", "report", "validate", "curve"):
        assert f"\n  {name} " in out
        assert here(name, "--help", cwd=tmp_path)[0] == 0


def test_inspect_says_what_the_model_is(here: Here, corpus: Path, tmp_path: Path) -> None:
    """Settings, seed, versions, certificate, training, labels and the strongest weights are told; a picture if asked."""
    code, out, _ = here("inspect", str(corpus / "chunk.spz"), "--top", "3", "--picture", "t.png", cwd=tmp_path)
    assert code == 0
    for word in (
        "trainer      sgd",
        "seed         0",
        "certificate  primal",
        "which means",
        "numpy",
        "10 passes",
        "template chunking",
        "w[0]",
    ):
        assert word in out
    model = ChainLabeler.load(corpus / "chunk.spz")
    assert all(f"\nlabel {label}: " in out for label in model.classes_)
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")
    name, weight = model.top_features(1).labels[0].positive[0]
    assert f"{weight:+.4f}  {name}" in out


def test_one_configuration_file_serves_every_command_of_a_model(here: Here, corpus: Path, tmp_path: Path) -> None:
    """inspect takes --encoding like the commands that read data, and refuses a name that is not an encoding."""
    (tmp_path / "c.toml").write_text('encoding = "latin-1"\n')
    model = str(corpus / "chunk.spz")
    for command in (("inspect", model), ("evaluate", model, str(corpus / "test.txt"))):
        assert here(*command, "--config", "c.toml", cwd=tmp_path)[0] == 0
    code, _, err = here("inspect", model, "--encoding", "klingon", cwd=tmp_path)
    assert (code, "expected the name of a text encoding" in err) == (2, True), err


def test_models_with_a_kernel_are_understood(here: Here, corpus: Path, tmp_path: Path) -> None:
    """What was trained in Python with a kernel is predicted with, evaluated, inspected and reported on in the shell."""
    words = read_ocr(corpus / "train.data").select(range(20))
    model = GaussianProcessLabeler(max_iter=2).fit(words, words.letters)
    model.save(tmp_path / "gp.spz")
    data = (str(corpus / "test.data"), "--format", "ocr")
    assert here("predict", "gp.spz", *data, "--json", "--marginals", "-o", "found.json", cwd=tmp_path)[0] == 0
    found = json.loads((tmp_path / "found.json").read_text().splitlines()[0])
    assert found["labels"] == model.predict(read_ocr(data[0]))[0].tolist()
    for command in (("evaluate", "gp.spz", *data), ("inspect", "gp.spz"), ("report", "gp.spz", *data, "-o", "r.html")):
        code, _, err = here(*command, cwd=tmp_path)
        assert code == 0, err
    assert "GaussianProcessLabeler" in here("inspect", "gp.spz", cwd=tmp_path)[1]


def test_inspect_as_json(here: Here, corpus: Path, tmp_path: Path) -> None:
    """The object holds history, transitions and weights; --label keeps the weights of one label."""
    code, out, _ = here("inspect", str(corpus / "chunk.spz"), "--json", "--label", "B-NP", "--top", "2", cwd=tmp_path)
    data = json.loads(out)
    model = ChainLabeler.load(corpus / "chunk.spz")
    assert code == 0
    assert data["transitions"] == model.transitions_.tolist()
    assert data["history"] == model.history_
    assert [entry["label"] for entry in data["weights"]["labels"]] == ["B-NP"]
    assert len(data["weights"]["labels"][0]["positive"]) == 2
    assert data["versions"]["structpred"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--label", "XYZ"), 2, "no label 'XYZ'"),
        (("--picture", "a.pdf"), 2, "ends in .png or .svg"),
        (("--picture", "nowhere/a.png"), 1, "does not exist"),
        (("--top", "0"), 2, "0"),
    ],
)
def test_inspect_refuses(here: Here, corpus: Path, tmp_path: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    """Wrong labels and pictures are told with the exit code of their kind."""
    got, _, err = here("inspect", str(corpus / "chunk.spz"), *arguments, cwd=tmp_path)
    assert got == code
    assert message in err


def test_validate_exit_codes(here: Here, corpus: Path, tmp_path: Path) -> None:
    """Exit code 0 with warnings only, 1 with errors; findings on standard output, every bad line named."""
    code, out, _ = here(
        "validate", str(corpus / "train.txt"), "--format", "conll2000", "--dev", str(corpus / "train.txt"), cwd=tmp_path
    )
    assert code == 0
    assert "tagging scheme: IOB2" in out
    assert "held-out sequences that also occur in the training data" in out
    (tmp_path / "bad.txt").write_text("a b O\nc d\n\ne f g h\n\nx y I-NP\n")
    code, out, err = here("validate", "bad.txt", "--format", "conll2000", cwd=tmp_path)
    assert (code, err) == (1, "")
    assert "bad.txt:2: expected 3 columns, got 2" in out
    assert "bad.txt:4: expected 3 columns, got 4" in out


def test_validate_as_json_and_skip(here: Here, corpus: Path, tmp_path: Path) -> None:
    """--json is one object; --on-error skip writes what is good and ends with exit code 0; it needs -o."""
    (tmp_path / "bad.txt").write_text((corpus / "train.txt").read_text() + "\nx y\n")
    code, out, _ = here("validate", "bad.txt", "--format", "columns", "--json", cwd=tmp_path)
    assert code == 1
    assert json.loads(out)["findings"][0]["kind"] == "columns"
    code, _, err = here("validate", "bad.txt", "--format", "columns", "--on-error", "skip", "-o", "good.txt", cwd=tmp_path)
    assert (code, (tmp_path / "good.txt").read_text()) == (0, (corpus / "train.txt").read_text())
    assert "1 sequences left out, 120 kept" in err
    code, _, err = here("validate", "bad.txt", "--format", "columns", "--on-error", "skip", cwd=tmp_path)
    assert code == 2
    assert "belong together" in err


@pytest.mark.parametrize("format", ["crfsuite", "ocr"])
def test_validate_other_formats(here: Here, corpus: Path, tmp_path: Path, format: str) -> None:
    """CRFsuite text and OCR letters that can be read have no errors."""
    name = {"crfsuite": "train.crf", "ocr": "train.data"}[format]
    assert here("validate", str(corpus / name), "--format", format, cwd=tmp_path)[0] == 0


def test_curve(here: Here, corpus: Path, tmp_path: Path) -> None:
    """A line a fraction, or JSON with every run; and a picture."""
    command = (
        "curve",
        str(corpus / "train.txt"),
        "--test",
        str(corpus / "test.txt"),
        "--format",
        "conll2000",
        "--template",
        "chunking",
    )
    options = ("--trainer", "sgd", "--max-iter", "6", "--fractions", "0.1,1", "--seeds", "2")
    code, out, err = here(*command, *options, "--picture", "c.svg", cwd=tmp_path)
    assert code == 0, err
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [["0.1", "12"], ["1", "120"]]
    assert "<svg" in (tmp_path / "c.svg").read_text()
    (tmp_path / "c.toml").write_text("fractions = [0.1, 1]\n")
    data = json.loads(here(*command, *options[:4], "--config", "c.toml", "--seeds", "2", "--json", cwd=tmp_path)[1])
    assert [(run["fraction"], run["seed"]) for run in data["runs"]] == [(0.1, 0), (0.1, 1), (1.0, 0), (1.0, 1)]


def test_curve_refuses(here: Here, corpus: Path, tmp_path: Path) -> None:
    """Fractions out of range, and templates without columns, are wrong usage."""
    attributes = ("curve", str(corpus / "train.crf"), "--test", str(corpus / "test.crf"))
    assert here(*attributes, "--template", "ner", cwd=tmp_path)[0] == 2
    command = ("curve", str(corpus / "train.txt"), "--test", str(corpus / "test.txt"), "--format", "conll2000")
    for bad in ("0,1", "a", "2"):
        assert here(*command, "--template", "chunking", "--fractions", bad, cwd=tmp_path)[0] == 2


def test_report_of_model_and_data(here: Here, corpus: Path, tmp_path: Path) -> None:
    """The page holds the certificate and the scores that evaluate prints; without data it has no scores."""
    model, data = str(corpus / "chunk.spz"), "data.txt"
    (tmp_path / data).write_text((corpus / "test.txt").read_text().replace("B-VP", "B-XX", 1))
    assert here("report", model, data, "-o", "a.html", "--title", "<My> chunker", cwd=tmp_path)[0] == 0
    page = (tmp_path / "a.html").read_text()
    figures = json.loads(here("evaluate", model, data, "--json", cwd=tmp_path)[1])
    assert f"{100 * figures['f1']:.2f} %" in page
    assert f"{100 * figures['token_accuracy']:.2f} %" in page
    assert str(ChainLabeler.load(model).certificate_) in page
    assert "&lt;My&gt; chunker" in page
    assert page.count('"token wrong"') == figures["n_errors"]
    assert here("report", model, "-o", "b.html", cwd=tmp_path)[0] == 0
    assert "Confusions" not in (tmp_path / "b.html").read_text()


@pytest.mark.parametrize("trainer", ["sgd", "oeg"])
@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_report_of_other_data(here: Here, corpus: Path, tmp_path: Path, trainer: str) -> None:
    """Letters come as strips with probabilities or score gaps, whichever the model has; CRFsuite text shows its words."""
    common = ("--trainer", trainer, "--max-iter", "2", "-q")
    letters, words = str(corpus / "train.data"), str(corpus / "train.crf")
    assert here("train", "chain", letters, "--format", "ocr", "--folds", "0", "-o", "l.spz", *common, cwd=tmp_path)[0] == 0
    assert here("report", "l.spz", letters, "--folds", "1,2", "-o", "l.html", cwd=tmp_path)[0] == 0
    page = (tmp_path / "l.html").read_text()
    assert "Weights of the pixels" in page
    assert ("the darker the more probable" in page) == (trainer == "oeg")
    assert ("It is not a probability" in page) == (trainer == "sgd")
    assert here("train", "chain", words, "--format", "crfsuite", "-o", "w.spz", *common, cwd=tmp_path)[0] == 0
    assert here("report", "w.spz", str(corpus / "test.crf"), "-o", "w.html", cwd=tmp_path)[0] == 0
    assert "<bdi>the</bdi>" in (tmp_path / "w.html").read_text()


def test_report_of_tokens_that_are_markup(here: Here, corpus: Path, tmp_path: Path) -> None:
    """Tokens and labels of the data that look like markup stay text."""
    nasty = '<script>alert(1)</script> NN B-NP\n"><img/src=x/onerror=alert(1)> NN <b>\n\u202etxt NN B-VP\n'
    (tmp_path / "nasty.txt").write_text(nasty)
    assert here("report", str(corpus / "chunk.spz"), "nasty.txt", "-o", "a.html", cwd=tmp_path)[0] == 0
    page = (tmp_path / "a.html").read_text()
    assert "<script" not in page
    assert "<img" not in page
    assert "\u202e" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_report_refuses(here: Here, corpus: Path, tmp_path: Path) -> None:
    """A page over the model, to standard output, or of data without labels is refused; nothing is written."""
    model = str(corpus / "chunk.spz")
    (tmp_path / "plain.txt").write_text("the DT\ncat NN\n")
    assert here("report", model, "-o", "-", cwd=tmp_path)[0] == 2
    assert here("report", model, "-o", model, cwd=tmp_path)[0] == 1
    code, _, err = here("report", model, "plain.txt", "-o", "a.html", cwd=tmp_path)
    assert (code, "expected labels" in err) == (1, True)
    assert not (tmp_path / "a.html").exists()


def test_evaluate_draws_the_confusions(here: Here, corpus: Path, tmp_path: Path) -> None:
    """--confusion writes the picture next to the usual output; another ending is refused before any work."""
    command = ("evaluate", str(corpus / "chunk.spz"), str(corpus / "test.txt"))
    code, out, _ = here(*command, "--confusion", "c.png", cwd=tmp_path)
    assert (code, "accuracy" in out) == (0, True)
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    assert here(*command, "--confusion", "c.gif", cwd=tmp_path)[0] == 2
