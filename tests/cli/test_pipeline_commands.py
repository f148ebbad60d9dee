"""Promises of the command line for pipelines: from words to trees by two commands, scores of predicted tags, and bad input."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from treebank_helpers import others, treebank_text, without_heads

from structpred.cli.kinds.pipelines import Pipelines
from structpred.cli.train import train_command
from structpred.io import read_treebank
from structpred.io.treebanks.treebank import write_treebank
from structpred.models import ParsingPipeline

Here = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with treebanks, one without tags, a text, and a pipeline that was trained by the command."""
    from structpred.cli.app import run
    from structpred.cli.session import Session

    made = tmp_path_factory.mktemp("pipeline")
    for name, n in (("train", 40), ("test", 10)):
        (made / f"{name}.conllu").write_text(treebank_text(n, n))
    lines = [line.split("\t") for line in (made / "train.conllu").read_text().split("\n")]
    (made / "untagged.conllu").write_text("\n".join("\t".join([*c[:3], "_", *c[4:]]) if len(c) > 1 else c[0] for c in lines))
    (made / "empty.conllu").write_text("")
    (made / "t.txt").write_text("the cat sees birds. old dogs sleep!\n")
    command = (
        "train",
        "pipeline",
        str(made / "train.conllu"),
        "-o",
        str(made / "m.spz"),
        "--jackknife",
        "2",
        "--max-iter",
        "3",
        "-q",
    )
    assert run(Session(command)) == 0
    return made


def test_words_come_back_with_tags_and_trees(here: Here, folder: Path) -> None:
    """HEAD, DEPREL and UPOS are what the model gives to the words alone; every other byte stays, and JSON has the tags, too."""
    text = (folder / "test.conllu").read_text()
    code, out, err = here("predict", "m.spz", "test.conllu", cwd=folder)
    assert code == 0, err
    kept = [[c for k, c in enumerate(row) if k != 3 or not row[0].isdigit()] for row in others(out)]
    assert kept == [[c for k, c in enumerate(row) if k != 3 or not row[0].isdigit()] for row in others(text)]
    (folder / "out.conllu").write_text(out)
    model, found = ParsingPipeline.load(folder / "m.spz"), read_treebank(str(folder / "out.conllu"))
    words = read_treebank(str(folder / "test.conllu"))
    assert found.upos == model.tag(words).upos != words.upos
    assert found.heads.tolist() == [head for tree in model.predict(words) for head in tree.heads.tolist()]
    (folder / "bare.conllu").write_text(without_heads((folder / "untagged.conllu").read_text()))
    bare = here("predict", "m.spz", "bare.conllu", "--json", cwd=folder)[1]
    entries = [json.loads(line) for line in bare.splitlines()]
    assert entries == [
        json.loads(line) for line in here("predict", "m.spz", "train.conllu", "--json", cwd=folder)[1].splitlines()
    ]
    assert [tag for entry in entries for tag in entry["tags"]] == model.tag(read_treebank(str(folder / "train.conllu"))).upos


def test_running_text_is_tagged_and_parsed(here: Here, folder: Path) -> None:
    """The second command after training: text in, CoNLL-U with tags and trees out."""
    pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'structpred[spacy]'")
    code, out, err = here("predict", "m.spz", "t.txt", "--text", cwd=folder)
    assert (code, err) == (0, "")
    rows = [line.split("\t") for line in out.splitlines() if line]
    assert [row[1] for row in rows] == ["the", "cat", "sees", "birds", ".", "old", "dogs", "sleep", "!"]
    assert [row[3] for row in rows[:5]] == ["DET", "NOUN", "VERB", "NOUN", "PUNCT"]
    assert [row[6] for row in rows[:5]] == ["2", "3", "0", "3", "3"]


def test_evaluate_gives_tags_and_trees_of_predicted_tags(here: Here, folder: Path) -> None:
    """Tag accuracy, UAS and LAS are those of what `predict` writes; tags in the data have no part in the trees."""
    code, out, err = here("evaluate", "m.spz", "test.conllu", "--json", cwd=folder)
    assert code == 0, err
    found = json.loads(out)
    model, gold = ParsingPipeline.load(folder / "m.spz"), read_treebank(str(folder / "test.conllu"))
    right = [a == b for a, b in zip(model.tag(gold).upos, gold.upos, strict=True)]
    assert found["tag_accuracy"] == sum(right) / len(right) < 1
    trees = model.predict(gold)
    assert found["uas"] == (sum(int((t.heads == g.heads).sum()) for t, g in zip(trees, gold.trees(), strict=True))) / gold.n_words
    assert f"tags {100 * found['tag_accuracy']:.2f} % right" in here("evaluate", "m.spz", "test.conllu", cwd=folder)[1]
    with (folder / "retagged.conllu").open("wb") as file:
        write_treebank(gold.with_tags(["X"] * gold.n_words), file)
    other = json.loads(here("evaluate", "m.spz", "retagged.conllu", "--json", cwd=folder)[1])
    assert (other["uas"], other["las"]) == (found["uas"], found["las"])
    assert other["tag_accuracy"] < 0.1
    code, out, _ = here("evaluate", "--gold", "test.conllu", "m.spz", "--json", cwd=folder)
    assert (code, json.loads(out)["las"]) == (0, found["las"])


def test_events_and_lines_tell_the_stages(here: Here, folder: Path, tmp_path: Path) -> None:
    """Tagger, taggers of parts, arcs and relations, in this order; the summary has a certificate of the tagger."""
    command = ("train", "pipeline", str(folder / "train.conllu"), "-o", "m.spz", "--jackknife", "2", "--max-iter", "1", "--json")
    code, out, err = here(*command, "--dev", str(folder / "test.conllu"), cwd=tmp_path)
    assert code == 0, err
    events = [json.loads(line) for line in out.splitlines()]
    order = list(dict.fromkeys(event.get("stage") for event in events[1:-1]))
    assert order == ["tagger", "tagger of a part", "arcs", "relations"]
    assert events[-1]["tagger"]["dual"] <= events[-1]["tagger"]["primal"]
    for said in ("part 2 of 2", "tagger: trained 10 passes", "arcs: trained 1 pass", "UAS"):
        assert said in err
    assert [path.name for path in tmp_path.iterdir()] == ["m.spz"]


def test_what_is_known_of_a_parser_is_known_of_a_pipeline(here: Here, folder: Path) -> None:
    """inspect, explain and report work."""
    out = here("inspect", "m.spz", cwd=folder)[1]
    assert "attributes form, upos, suffix" in out
    code, out, err = here("explain", "m.spz", "test.conllu", "--word", "1", cwd=folder)
    assert (code, "upos=" in out) == (0, True), err
    assert here("report", "m.spz", "test.conllu", "-o", "p.html", cwd=folder)[0] == 0
    assert "<svg" in (folder / "p.html").read_text()


def test_defaults_are_the_estimators() -> None:
    """What the command line takes by default is what Python takes."""
    given = train_command(Pipelines()).make_context("pipeline", ["-", "-o", "m.spz"]).params
    defaults = ParsingPipeline().get_params(deep=False)
    compared = set(given) & set(defaults) - {"checkpoint"}
    assert len(compared) == 19
    assert {name: given[name] for name in compared} == {name: defaults[name] for name in compared}


BAD: dict[str, tuple[tuple[str, ...], int, str]] = {
    "an empty file": (("train", "pipeline", "empty.conllu", "-o", "x.spz"), 1, "empty.conllu"),
    "no tags": (("train", "pipeline", "untagged.conllu", "-o", "x.spz"), 1, "untagged.conllu:4: expected a tag (UPOS)"),
    "few sentences": (
        ("train", "pipeline", "test.conllu", "-o", "x.spz", "--jackknife", "11"),
        2,
        "as many as sentences, 10, got 11",
    ),
    "one part": (("train", "pipeline", "test.conllu", "-o", "x.spz", "--jackknife", "1"), 2, "--jackknife"),
    "running text": (("train", "pipeline", "t.txt", "-o", "x.spz"), 1, "t.txt:1: "),
    "text without --text": (("predict", "m.spz", "t.txt"), 1, "running text"),
    "an empty text": (("predict", "m.spz", "empty.conllu", "--text"), 1, "expected text with at least one word, got none"),
    "an option of chains": (("evaluate", "m.spz", "test.conllu", "--per-label"), 2, "--per-label is not for pipelines"),
    "shards": (("train", "pipeline", "train.conllu", "-o", "x.spz", "--shards", "2"), 2, "--shards"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line(name: str, here: Here, folder: Path) -> None:
    """The place or the option, and what is wrong; nothing is written."""
    arguments, expected, message = BAD[name]
    if "--text" in arguments:
        pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'structpred[spacy]'")
    code, out, err = here(*arguments, cwd=folder)
    (line,) = (line for line in err.splitlines() if line.startswith("error: "))
    assert (code, out, message in line) == (expected, "", True), err
    assert not (folder / "x.spz").exists()


def test_tags_are_written_where_the_format_has_them(folder: Path) -> None:
    """New tags stand in the lines, with CRLF, too; sentences keep their bytes apart; none and too few are told."""
    (folder / "crlf.conllu").write_bytes((folder / "test.conllu").read_bytes().replace(b"\n", b"\r\n"))
    for name in ("test.conllu", "crlf.conllu"):
        treebank = read_treebank(str(folder / name))
        tags = [f"T{k}" for k in range(treebank.n_words)]
        changed, stream = treebank.with_tags(tags), io.BytesIO()
        assert changed.with_tags(treebank.upos).raw == treebank.raw
        write_treebank(changed.take([3, 1]), stream)
        (folder / "some.conllu").write_bytes(stream.getvalue())
        again = read_treebank(str(folder / "some.conllu"))
        assert again.upos == changed.take([3, 1]).upos
        assert again.forms == treebank.take([3, 1]).forms


def test_shards_are_refused_by_name(here: Here, tmp_path: Path) -> None:
    """Taggers of parts know all sentences: --shards is answered in one line, and nothing is read."""
    (tmp_path / "train.conllu").write_text("")
    code, _, said = here("train", "pipeline", "train.conllu", "-o", "m.spz", "--shards", "2", cwd=tmp_path)
    assert code == 2
    assert said == "error: --shards: models of this kind are trained on all data at once; leave --shards out\n"
