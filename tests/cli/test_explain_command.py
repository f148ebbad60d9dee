"""`structpred explain`: what Python's `explain` gives, for each kind of model."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from structpred.data.tag_schemes import written
from structpred.io import read_columns
from structpred.io.multilabel.by_format import Source, read_training
from structpred.io.treebanks.reader import read_treebank
from structpred.models import ChainLabeler, DependencyParser, MultiLabelMRF
from structpred.text.tables import cut

Here = Callable[..., tuple[int, str, str]]


def test_a_sequence(here: Here, corpus: Path, tmp_path: Path) -> None:
    """The predicted labels, against the runner-up, and against the best labels in which one token has another, or a given one."""
    chunk, test = str(corpus / "chunk.spz"), str(corpus / "test.txt")
    model, data = ChainLabeler.load(chunk), read_columns(test)
    x = data.take(3, 4)
    tokens = " ".join(data.labels(0)[3])
    code, out, _ = here("explain", chunk, test, "--sample", "3", "--top", "2", cwd=tmp_path)
    assert code == 0
    assert out == f"sample 3: {tokens}\n\n{model.explain(x).text(2)}\n"
    said = here("explain", chunk, test, "--sample", "3", "--against", "runner-up", "--json", cwd=tmp_path)[1]
    assert json.loads(said) == {"sample": 3, "title": tokens, **model.explain(x, against="runner-up").to_dict()}
    own = model.predict(x)[0]
    others = sorted(set(read_columns(corpus / "train.txt").column(-1)) - {own[1]})
    for against, allowed in (((), others), (("--against", "O"), ["O"])):
        command = ("explain", chunk, test, "--sample", "3", "--position", "1", *against, "--json")
        found = json.loads(here(*command, cwd=tmp_path)[1])
        limits = [[None, allowed, *[None] * (len(own) - 2)]]
        assert written(found["against"], "iob2") == model.predict(x, allowed=limits)[0].tolist()
        assert written(found["output"], "iob2")[1] != written(found["against"], "iob2")[1]
        assert found["score"] == pytest.approx(sum(c["score"] for c in found["contributions"]), abs=1e-9)


def test_a_page(here: Here, corpus: Path, tmp_path: Path) -> None:
    """With -o the table is an HTML page, in which tokens stay text."""
    (tmp_path / "odd.txt").write_text("<b>the</b> DT\ncat NN\n")
    command = ("explain", str(corpus / "chunk.spz"), "odd.txt", "-o", "why.html")
    assert here(*command, cwd=tmp_path)[0] == 0
    page = (tmp_path / "why.html").read_text()
    assert "&lt;b&gt;the&lt;/b&gt; cat" in page
    assert "<td" in page
    assert "<b>the" not in page


@pytest.mark.parametrize("data", ["crf", "data"])
@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_other_formats(here: Here, corpus: Path, tmp_path: Path, data: str) -> None:
    """CRFsuite text and OCR letters, too."""
    kind = {"crf": "crfsuite", "data": "ocr"}[data]
    command = ("train", "chain", str(corpus / f"train.{data}"), "--format", kind, "--trainer", "sgd", "--max-iter", "1")
    assert here(*command, "-o", "m.spz", cwd=tmp_path)[0] == 0
    found = json.loads(here("explain", "m.spz", str(corpus / f"test.{data}"), "--position", "0", "--json", cwd=tmp_path)[1])
    assert found["output"][0] != found["against"][0]


def test_a_tree(here: Here, treebanks: Path, tmp_path: Path) -> None:
    """The predicted tree, and why a word has its head and not another one."""
    parser, test = DependencyParser.load(treebanks / "p.spz"), read_treebank(treebanks / "test.conllu")
    command = ("explain", str(treebanks / "p.spz"), str(treebanks / "test.conllu"), "--sample", "2")
    sentence = test.take([2])
    assert here(*command, cwd=tmp_path)[1].endswith(f"\n\n{parser.explain(sentence).text()}\n")
    head = int(parser.predict(sentence)[0].heads[0])
    other = 0 if head else 2
    found = json.loads(here(*command, "--word", "1", "--against", str(other), "--json", cwd=tmp_path)[1])
    why = parser.explain(sentence, 1, against=other)
    assert (found["output"]["heads"], found["against"]["heads"]) == (why.output.heads.tolist(), why.against.heads.tolist())
    assert found["score"] == why.score


def test_the_page_of_a_tree_draws_both(here: Here, treebanks: Path, tmp_path: Path) -> None:
    """The tree, and the one that it is compared with, beside that of the data where it has one; its title is the sentence."""
    data = treebanks / "test.conllu"
    sentence = read_treebank(data).take([2])
    command = ("explain", str(treebanks / "p.spz"), str(data), "--sample", "2", "-o", "why.html")
    for more, n in (((), 1), (("--word", "1"), 2)):
        assert here(*command, *more, cwd=tmp_path)[0] == 0
        page = (tmp_path / "why.html").read_text()
        assert page.count("</svg>") == page.count("red and dashed: not so in the data") == n
        assert f"<title>{cut(' '.join(sentence.forms), 60)}</title>" in page
        assert str(treebanks) not in page
    (tmp_path / "bare.conllu").write_text(sentence.raw.decode().replace("\t0\troot", "\t_\troot"))
    assert here(*command[:2], "bare.conllu", "-o", "why.html", cwd=tmp_path)[0] == 0
    page = (tmp_path / "why.html").read_text()
    assert ("</svg>" in page, "not so in the data" in page) == (True, False)


def test_a_set_of_labels(here: Here, labelled: Path, tmp_path: Path) -> None:
    """The predicted set, and why one label is on or off."""
    path = str(labelled / "weather-test.arff")
    model = MultiLabelMRF.load(labelled / "m.spz")
    data, _ = read_training(path, Source(labels=str(labelled / "weather.xml")))
    command = ("explain", str(labelled / "m.spz"), path, "--sample", "4")
    row = data.X[[4]]
    for options, why in (
        ((), model.explain(row)),
        (("--against", "runner-up"), model.explain(row, against="runner-up")),
        (("--label", "rain"), model.explain(row, label="rain")),
    ):
        assert here(*command, *options, cwd=tmp_path)[1] == f"sample 4: example 4\n\n{why.text()}\n"
    assert np.isfinite(why.score)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--sample", "99"), "--sample 99: "),
        (("--position", "99"), "--position 99: sample 0 has"),
        (("--against", "O"), "--against O: expected runner-up here, or a label with --position N"),
        (("--position", "0", "--against", "Q"), "--against Q: the model does not know this label; it has B-NP"),
        (("--word", "1"), "--word is not for sequence labellers, which have --position N, counted from 0"),
        (("--label", "O"), "--label is not for sequence labellers, which have --position N, counted from 0"),
        (("--json", "-o", "p.html"), "-o PAGE must be a file, and is not for --json"),
    ],
)
def test_what_cannot_be_explained_is_said(
    here: Here, corpus: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    """Samples, positions and labels that do not exist, and options of other models, end with exit code 2 and one message."""
    code, out, err = here("explain", str(corpus / "chunk.spz"), str(corpus / "test.txt"), *arguments, cwd=tmp_path)
    assert (code, out) == (2, "")
    assert message in err


def test_the_option_of_another_kind_names_the_right_one(here: Here, treebanks: Path, labelled: Path, tmp_path: Path) -> None:
    """--position for a parser, and --word for label sets, are answered with the option that is meant, and how it counts."""
    for model, data, option, right in (
        (treebanks / "p.spz", treebanks / "test.conllu", "--position", "parsers, which have --word N, counted from 1"),
        (labelled / "m.spz", labelled / "weather-test.arff", "--word", "multi-label models, which have --label LABEL"),
    ):
        code, out, err = here("explain", str(model), str(data), option, "1", cwd=tmp_path)
        assert (code, out) == (2, "")
        assert f"{option} is not for {right}" in err
