"""Promises of the parser's commands on bad input: the exit code, one line that names the place, no traceback, nothing written."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from treebank_helpers import without_heads

Here = Callable[..., tuple[int, str, str]]

TRAIN = ("train", "parser", "-o", "m.spz")
GOOD = "{t}/train.conllu"
MODEL, TEST = "{t}/p.spz", "{t}/test.conllu"

# what is wrong -> (arguments, exit code, what the message says); {t} is the folder of good treebanks, {c} that of sequences
USAGE = {
    "no data": (TRAIN, 2, "Missing argument 'TRAIN'"),
    "no output": (("train", "parser", GOOD), 2, "--output"),
    "unknown trainer": ((*TRAIN, GOOD, "--trainer", "adam"), 2, "bcfw"),
    "unknown format": ((*TRAIN, GOOD, "--format", "conll"), 2, "'conllu'"),
    "format of sequences": ((*TRAIN, GOOD, "--format", "conll2000"), 2, "'conllu'"),
    "C is no number": ((*TRAIN, GOOD, "-C", "nan"), 2, "finite"),
    "C is zero": ((*TRAIN, GOOD, "--label-C", "0"), 2, "--label-C"),
    "no heads kept": ((*TRAIN, GOOD, "--prune", "0"), 2, "--prune"),
    "tiny blocks": ((*TRAIN, GOOD, "--max-bits", "2"), 2, "--max-bits"),
    "two sets of templates": ((*TRAIN, GOOD, "--templates", "t.txt", "--conjunctions"), 2, "--conjunctions"),
    "surrogate of another trainer": ((*TRAIN, GOOD, "--trainer", "bcfw", "--surrogate", "log"), 2, "BCFW cannot minimise"),
    "patience without dev": ((*TRAIN, GOOD, "--patience", "2"), 2, "--dev"),
    "model to stdout": (("train", "parser", GOOD, "-o", "-"), 2, "must be a file"),
    "two streams": ((*TRAIN, "-", "--dev", "-"), 2, "standard input"),
    "config key": ((*TRAIN, GOOD, "--config", "bad.toml"), 2, "did you mean 'max-bits'"),
    "folds of a treebank": (("predict", MODEL, TEST, "--folds", "1"), 2, "--folds is not for parsers"),
    "another format": (("predict", MODEL, TEST, "--format", "ocr"), 2, "a parser reads treebanks"),
    "trees of a chain": (
        ("predict", "{c}/chunk.spz", "{c}/test.txt", "--multi-root"),
        2,
        "--multi-root is not for sequence labellers",
    ),
    "rules of a chain": (
        ("evaluate", "{c}/chunk.spz", "{c}/test.txt", "--rules", "ud"),
        2,
        "--rules is not for sequence labellers",
    ),
    "scheme of a parser": (("evaluate", MODEL, TEST, "--scheme", "iob2"), 2, "--scheme is not for parsers"),
    "unknown rules": (("evaluate", MODEL, TEST, "--rules", "conll06"), 2, "'conllx'"),
    "gold alone": (("evaluate", "--gold", TEST), 2, "--gold GOLD takes one more file"),
    "gold and too much": (("evaluate", "--gold", TEST, MODEL, TEST), 2, "--gold GOLD takes one more file"),
    "picture of a parser": (("inspect", MODEL, "--picture", "p.png"), 2, "--picture is not for parsers"),
    "report without data": (("report", MODEL, "-o", "p.html"), 2, "needs DATA"),
    "marginals without json": (("predict", MODEL, TEST, "--marginals"), 2, "--json"),
}
FILES = {
    "train missing": ((*TRAIN, "none.conllu"), 1, "none.conllu: there is no such file"),
    "dev missing": ((*TRAIN, GOOD, "--dev", "none.conllu"), 1, "--dev none.conllu: there is no such file"),
    "output folder missing": (("train", "parser", GOOD, "-o", "no/m.spz"), 1, "the folder no does not exist"),
    "output is the input": (("train", "parser", "cycle.conllu", "-o", "cycle.conllu"), 1, "files to be read"),
    "nothing to resume": ((*TRAIN, GOOD, "--resume"), 1, "m.spz.ckpt: there is no checkpoint"),
    "cycle": ((*TRAIN, "cycle.conllu"), 1, "cycle.conllu:1: "),
    "two roots": ((*TRAIN, "roots.conllu"), 1, "roots.conllu:7: expected one word with head 0"),
    "its own head": ((*TRAIN, "own.conllu"), 1, "own.conllu:2: word 2 is its own head"),
    "head out of range": ((*TRAIN, "range.conllu"), 1, "range.conllu:1: "),
    "head that is no number": ((*TRAIN, "word.conllu"), 1, "word.conllu:2: "),
    "no heads": ((*TRAIN, "bare.conllu"), 1, "bare.conllu:4: expected a head: a parser learns from trees"),
    "dev without heads": ((*TRAIN, GOOD, "--dev", "bare.conllu"), 1, "bare.conllu:4: expected a head"),
    "empty file": ((*TRAIN, "empty.conllu"), 1, "empty.conllu: expected at least one sentence, got an empty file"),
    "no treebank": ((*TRAIN, "{c}/train.txt"), 1, "train.txt:1: "),
    "spaces for tabs": ((*TRAIN, "spaces.conllu"), 1, "spaces.conllu:1: "),
    "not UTF-8": ((*TRAIN, "latin.conllu"), 1, "latin.conllu:1: "),
    "damaged gzip": ((*TRAIN, "cut.gz"), 1, "cut.gz: damaged or truncated gzip data"),
    "all sentences cross": ((*TRAIN, "crossing.conllu", "--projective"), 1, "every sentence has crossing arcs"),
    "templates missing": ((*TRAIN, GOOD, "--templates", "none.txt"), 1, "none.txt: there is no such file"),
    "unknown attribute": (
        (*TRAIN, GOOD, "--templates", "attribute.txt"),
        1,
        "attribute.txt:3: expected attributes of words",
    ),
    "no template": ((*TRAIN, GOOD, "--templates", "atom.txt"), 1, "atom.txt:1: arc template"),
    "unknown property": ((*TRAIN, GOOD, "--templates", "property.txt"), 1, "property.txt:2: arc template"),
    "template twice": (
        (*TRAIN, GOOD, "--templates", "twice.txt"),
        1,
        "twice.txt:2: duplicate template 'h.upos', first given on line 1",
    ),
    "no templates": ((*TRAIN, GOOD, "--templates", "empty.txt"), 1, "empty.txt: expected at least one template"),
    "model missing": (("predict", "none.spz", TEST), 1, "none.spz: there is no such file"),
    "model is a treebank": (("predict", TEST, TEST), 1, "not a model file"),
    "model truncated": (("evaluate", "truncated.spz", TEST), 1, "truncated.spz: this model file was truncated"),
    "predictions over the data": (("predict", MODEL, "cycle.conllu", "-o", "cycle.conllu"), 1, "files to be read"),
    "predict a short line": (("predict", MODEL, "short.conllu"), 1, "short.conllu:2: "),
    "predict nothing": (("predict", MODEL, "empty.conllu"), 1, "empty.conllu: expected at least one sentence"),
    "evaluate without heads": (("evaluate", MODEL, "bare.conllu"), 1, "bare.conllu:4: expected a head"),
    "other sentences": (("evaluate", "--gold", TEST, "{t}/dev.conllu"), 1, "were the predictions made on another file"),
    "other words": (("evaluate", "--gold", "own_gold.conllu", "words.conllu"), 1, "words.conllu:2"),
    "cycle under UD's rules": (("evaluate", "--gold", "own_gold.conllu", "cycle.conllu"), 1, "cycle"),
    "against a chain": (("evaluate", MODEL, TEST, "--against", "{c}/chunk.spz"), 1, "expected a DependencyParser"),
    "against nothing": (("evaluate", MODEL, TEST, "--against", "none"), 1, "none: there is no such file"),
    "report without heads": (("report", MODEL, "bare.conllu", "-o", "p.html"), 1, "bare.conllu:4: expected a head"),
}


def sentence(*heads: object, forms: tuple[str, ...] = ("a", "b", "c", "d")) -> str:
    """A sentence of CoNLL-U with these heads."""
    rows = zip(forms, heads, strict=False)
    return "".join(f"{k}\t{form}\t_\tX\t_\t_\t{head}\tdep\t_\t_\n" for k, (form, head) in enumerate(rows, 1)) + "\n"


@pytest.fixture(scope="session")
def bad_treebanks(treebanks: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of files that are wrong in one way each."""
    folder = tmp_path_factory.mktemp("bad_trees")
    good = sentence(0, 1, 1)
    texts = {
        "cycle.conllu": sentence(2, 1, 0),
        "roots.conllu": good + sentence(0, 1, 0),
        "own.conllu": sentence(0, 2),
        "own_gold.conllu": good,
        "words.conllu": sentence(0, 1, 1, forms=("a", "x", "c")),
        "range.conllu": sentence(7, 0),
        "word.conllu": sentence(0, "a"),
        "bare.conllu": "# a comment\n\n# another one\n" + without_heads(good),
        "empty.conllu": "",
        "spaces.conllu": good.replace("\t", " "),
        "short.conllu": good.replace("2\tb\t", "2\t", 1),
        "crossing.conllu": sentence(3, 4, 0, 3),
        "attribute.txt": "h.upos m.upos\n# the next line is wrong\nh.tag m.upos\n",
        "atom.txt": "upos m.upos\n",
        "property.txt": "h.upos\nm.upos | length\n",
        "twice.txt": "h.upos # once\nh.upos\n",
        "empty.txt": "# nothing\n",
        "t.txt": "h.upos\n",
        "bad.toml": "max-bit = 3\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    model = (treebanks / "p.spz").read_bytes()
    (folder / "truncated.spz").write_bytes(model[: len(model) // 2])
    (folder / "latin.conllu").write_bytes(good.replace("a", "\xe9", 1).encode("latin-1"))
    (folder / "cut.gz").write_bytes(b"\x1f\x8b\x08\x00\x00")
    return folder


@pytest.mark.parametrize("name", [*USAGE, *FILES])
def test_bad_input_is_one_clear_line(name: str, here: Here, treebanks: Path, corpus: Path, bad_treebanks: Path) -> None:
    """The exit code is that of the kind of mistake, the message says what and where, and no file appears or changes."""
    arguments, code, message = {**USAGE, **FILES}[name]
    before = {path.name: path.read_bytes() for path in bad_treebanks.iterdir()}
    filled = [argument.replace("{t}", str(treebanks)).replace("{c}", str(corpus)) for argument in arguments]
    found, out, err = here(*filled, cwd=bad_treebanks)
    assert found == code, err
    assert out == ""
    assert "Traceback" not in err
    assert err.count("error: ") == 1
    assert message in err
    assert {path.name: path.read_bytes() for path in bad_treebanks.iterdir()} == before


def test_a_file_that_breaks_off_leaves_the_old_predictions(here: Here, treebanks: Path, tmp_path: Path) -> None:
    """Where a later batch cannot be read, the output file stays as it was, with nothing next to it."""
    text = (treebanks / "test.conllu").read_text()
    (tmp_path / "half.conllu").write_text(text + "1\tbroken\n\n")
    (tmp_path / "out.conllu").write_text("old")
    code, _, err = here("predict", str(treebanks / "p.spz"), "half.conllu", "-o", "out.conllu", cwd=tmp_path)
    assert code == 1
    assert f"half.conllu:{text.count(chr(10)) + 1}: " in err
    assert (tmp_path / "out.conllu").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["half.conllu", "out.conllu"]


def test_a_folder_that_cannot_be_written(here: Here, treebanks: Path, tmp_path: Path) -> None:
    """What could not be written in the end is refused before anything is read."""
    shutil.copy(treebanks / "train.conllu", tmp_path / "train.conllu")
    code, _, err = here("train", "parser", "train.conllu", "-o", "train.conllu/m.spz", cwd=tmp_path)
    assert code == 1
    assert "read train.conllu" not in err
