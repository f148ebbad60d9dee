"""Promises of `structpred predict --text` and `explain --text`, and of what is said of running text without it."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_helpers import call

from structpred.bridges import spacy
from structpred.models import ChainLabeler
from structpred.runtime import dependencies

Here = Callable[..., tuple[int, str, str]]
TEXT = "The cat sees birds. A dog\nsleeps!\n\nTrees sleep\n"
COLUMNS = "the DT X\ncat NN X\nsleeps VB Y\n\na DT X\ndog NN X\nsees VB Y\n"
FORMS = "1\tcats\t_\t_\t_\t_\t2\tnsubj\t_\t_\n2\tsleep\t_\t_\t_\t_\t0\troot\t_\t_\n\n"


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with models of words alone, a text, and an empty one."""
    folder = tmp_path_factory.mktemp("text")
    for name, text in (("t.txt", TEXT), ("none.txt", " \n"), ("train.txt", COLUMNS), ("train.conllu", FORMS)):
        (folder / name).write_text(text)
    command = ("train", "chain", "train.txt", "--format", "conll2000", "--template", "ner", "-o", "m.spz")
    call(*command, cwd=folder).check_returncode()
    call("train", "parser", "train.conllu", "-o", "p.spz", "--max-iter", "4", cwd=folder).check_returncode()
    ChainLabeler(template="pos", max_iter=5).fit([[("the",), ("cat",)]], [["DET", "NOUN"]]).save(folder / "python.spz")
    return folder


def needs_spacy() -> None:
    """Skip where spaCy is not installed."""
    pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'structpred[spacy]'")


def test_text_is_labelled_in_the_format_of_the_model(here: Here, words: Path) -> None:
    """Sentences of words with as many columns as the training data had, and the label; from Python-fitted models as well."""
    needs_spacy()
    code, out, err = here("predict", "m.spz", "t.txt", "--text", cwd=words)
    assert (code, err) == (0, "")
    sentences = [[line.split(" ") for line in block.split("\n")] for block in out.strip("\n").split("\n\n")]
    assert [[row[0] for row in rows] for rows in sentences] == [
        ["The", "cat", "sees", "birds", "."],
        ["A", "dog", "sleeps", "!"],
        ["Trees", "sleep"],
    ]
    assert {(len(row), row[1]) for rows in sentences for row in rows} == {(3, "_")}
    code, out, _ = here("predict", "python.spz", "t.txt", "--text", "--format", "columns", cwd=words)
    assert (code, out.split("\n")[0]) == (0, "The _ DET")


def test_text_is_explained(here: Here, words: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """explain takes a sentence of a text, for labels and trees; only spaCy's part is played by a stand-in."""
    monkeypatch.setattr(spacy, "tokenized", lambda text, language: [line.split() for line in text.splitlines() if line])
    (words / "own.txt").write_text("the cat\ncats sleep\n")
    code, out, err = here("explain", "m.spz", "own.txt", "--text", cwd=words)
    assert (code, out.startswith("sample 0: the cat\n"), err) == (0, True, "")
    code, out, _ = here("explain", "p.spz", "own.txt", "--text", "--sample", "1", "-o", "why.html", cwd=words)
    page = (words / "why.html").read_text()
    assert ("<title>cats sleep</title>" in page, "own.txt, sample 1: cats sleep" in page, "</svg>" in page) == (True, True, True)
    assert here("explain", "m.spz", "own.txt", "--language", "de", cwd=words)[0] == 2


def test_text_as_json_and_with_options(here: Here, words: Path) -> None:
    """--json, --kbest and -o work on text; every object holds its tokens."""
    needs_spacy()
    code, _, err = here("predict", "m.spz", "t.txt", "--text", "--json", "--kbest", "2", "-o", "out.json", cwd=words)
    assert code == 0, err
    entries = [json.loads(line) for line in (words / "out.json").read_text().splitlines()]
    assert [entry["tokens"] for entry in entries][2] == ["Trees", "sleep"]
    assert all(len(entry["kbest"]) == 2 and len(entry["labels"]) == len(entry["tokens"]) for entry in entries)


def test_text_is_parsed_by_a_parser_of_forms(here: Here, words: Path) -> None:
    """A parser that was trained on forms alone gives CoNLL-U."""
    needs_spacy()
    code, out, err = here("predict", "p.spz", "t.txt", "--text", cwd=words)
    assert code == 0, err
    rows = [line.split("\t") for line in out.splitlines() if line]
    assert [row[1] for row in rows][-2:] == ["Trees", "sleep"]
    assert {len(row) for row in rows} == {10}
    assert sum(row[6] == "0" for row in rows) == 3


def test_what_text_cannot_give_is_said(here: Here, words: Path, corpus: Path, treebanks: Path, labelled: Path) -> None:
    """Models that read more than words, and options that have no meaning for text, are refused in one line."""
    needs_spacy()
    chunk, parser = str(corpus / "chunk.spz"), str(treebanks / "p.spz")
    refused = {
        (chunk, "t.txt"): "reads the columns 0, 1 of its data, and running text has words only",
        (parser, "t.txt"): "was trained with lemma, upos, feats, and running text has word forms only",
        (str(labelled / "m.spz"), "t.txt"): "--text is for sequence labellers and parsers, not for multi-label models",
        ("m.spz", "none.txt"): "none.txt: expected text with at least one word, got none",
        ("m.spz", "t.txt", "--language", "qq"): "spaCy has no tokenizer for the language 'qq'",
        ("m.spz", "t.txt", "--label-column", "1"): "--label-column is not for --text",
    }
    for arguments, message in refused.items():
        code, out, err = here("predict", *arguments, "--text", cwd=words)
        assert code in (1, 2), arguments
        assert (out, err.count("error: ")) == ("", 1)
        assert message in err.lower() or message in err
    code, _, err = here("predict", "m.spz", "t.txt", "--language", "de", cwd=words)
    assert (code, "--language needs --text" in err) == (2, True)


def test_without_spacy_the_command_that_installs_it_is_said(here: Here, words: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where spaCy is missing, one line says so, with the command; nothing is written."""
    found = dependencies.installed_version
    monkeypatch.setattr(dependencies, "installed_version", lambda name: None if name == "spacy" else found(name))
    monkeypatch.setitem(sys.modules, "spacy", None)
    code, out, err = here("predict", "m.spz", "t.txt", "--text", cwd=words)
    assert (code, out, err.count("error: ")) == (1, "", 1)
    assert "needs spacy, which is not installed: python -m pip install 'structpred[spacy]'" in err


def test_text_without_the_option_is_recognised(here: Here, words: Path, corpus: Path, treebanks: Path) -> None:
    """Running text is refused as what it is, and --text named, for labellers and parsers."""
    texts = ("The cat sat\n", "The cat sees birds in the tree.\n", "The cat sees birds in the tree.\nA dog sleeps.\n")
    for text in texts:
        (words / "running.txt").write_text(text)
        for model in (corpus / "chunk.spz", treebanks / "p.spz", words / "m.spz"):
            code, out, err = here("predict", str(model), "running.txt", cwd=words)
            assert (code, out, err.count("error: ")) == (1, "", 1), (model, text)
            assert "running text" in err, (model, text, err)
            assert "--text" in err, (model, text, err)
