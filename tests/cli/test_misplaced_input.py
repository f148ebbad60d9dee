"""Promises on input of another kind, misspelt names, other encodings and bad sentences: what is said, and what comes out."""

import json
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from structpred.cli.app import COMMANDS, program
from structpred.cli.options import Choice
from structpred.cli.session import Session

Here = Callable[..., tuple[int, str, str]]

TRAIN = ("train", "chain", "--template", "chunking", "-o", "m.spz")
TREEBANK = "# text = no\n1\tno\tno\tINTJ\t_\t_\t0\troot\t_\t_\n\n"
FILES = {
    "bank.conllu": TREEBANK,
    "bare.conllu": TREEBANK.split("\n", 1)[1],
    "a.csv": "the,DT,B-NP\ncat,NN,I-NP\n",
    "spaced.csv": "the cat,DT,B-NP\ncat,NN,I-NP\n",
    "text.txt": "The old cat sees birds under the tree .\nA dog likes the tree .\n",
    "three.txt": "The cat sat\n",
    "alike.txt": "The cat sat\nA dog ran\n",
    "tree.txt": "0\t1\n1\t2\n0\t1\n",
}
# what is misplaced -> (arguments, what the message says); {c}, {t}, {m} are the folders of good files
COLUMNS, CONLL = (*TRAIN, "--format", "columns"), (*TRAIN, "--format", "conll2000")
PREDICT, GOLD = ("predict", "{c}/chunk.spz"), ("evaluate", "--gold", "bank.conllu", "bank.conllu")
MISPLACED = {
    "treebank for a chain": ((*CONLL, "bank.conllu"), "this looks like a treebank"),
    "treebank for a chain model": ((*PREDICT, "bank.conllu"), "which parsers read"),
    "bare treebank for a chain model": ((*PREDICT, "bare.conllu"), "this looks like a treebank"),
    "columns for a parser": (("train", "parser", "{c}/train.txt", "-o", "m.spz"), "are these columns for a sequence labeller"),
    "CSV as crfsuite": (("train", "chain", "--format", "crfsuite", "-o", "m.spz", "a.csv"), "this looks like CSV"),
    "CSV": ((*COLUMNS, "a.csv"), "a.csv:1: expected at least 2 columns, one of them the labels, got 1; this looks like CSV"),
    "CSV of three columns": ((*CONLL, "a.csv"), "got 1: 'the,DT,B-NP'; this looks like CSV"),
    "CSV with a space": ((*COLUMNS, "spaced.csv"), "this looks like CSV"),
    "running text": ((*COLUMNS, "text.txt"), "this looks like running text: one token per line"),
    "text for a chain model": ((*PREDICT, "text.txt"), "this looks like running text"),
    "three words for a chain model": (
        (*PREDICT, "three.txt"),
        "three.txt:1: expected one token per line, in 3 columns with a label of the model or 2 without, as in the training data; "
        "got 'sat' as a label",
    ),
    "lines of three words": ((*PREDICT, "alike.txt"), "is this running text?"),
    "an edge twice": (
        ("train", "multilabel", "{m}/train.svm", "--hierarchy", "tree.txt", "-o", "m.spz"),
        "tree.txt:3: duplicate edge, first given on line 1",
    ),
    "trian": (("trian", "x"), "there is no command 'trian' of 'structpred'; did you mean 'train'?"),
    "no kind of model": (
        ("train", "tr.txt"),
        "no command 'tr.txt' of 'structpred train'; say which: chain, decision, multilabel, parser, pipeline, structure",
    ),
    "a value of an option": (
        (*PREDICT, "text.txt", "--format", "conll200"),
        "; did you mean 'conll2000' or 'conll2003' or 'conll2008' or 'conll2009'?",
    ),
    "a value in training": ((*CONLL, "{c}/train.txt", "--surrogate", "slak"), "'sparsemap'; did you mean 'slack'?"),
    "MODEL and DATA swapped": (
        ("predict", "{c}/train.txt", "{c}/chunk.spz"),
        "train.txt: not a model file, or its beginning is damaged (its directory does not list model.json where structpred puts "
        "it); {c}/chunk.spz looks like a model: the order is MODEL DATA",
    ),
    "swapped to explain": (("explain", "bank.conllu", "{c}/chunk.spz"), "chunk.spz looks like a model: the order is MODEL DATA"),
    "trainer": ((*CONLL, "--trainer", "bcwf", "{c}/train.txt"), "did you mean 'bcfw'?"),
    "template": (
        ("train", "chain", "--format", "columns", "--template", "chunkng", "-o", "m", "{c}/train.txt"),
        "did you mean 'chunking'?",
    ),
    "encoding": ((*CONLL, "--encoding", "latin-99", "{c}/train.txt"), "expected the name of a text encoding"),
    "on-error of sets": (("predict", "{m}/m.spz", "{m}/bare.arff", "--on-error", "skip"), "is not for multi-label models"),
    "on-error of two files": ((*GOLD, "--on-error", "skip"), "is not for two treebanks"),
}


@pytest.fixture(scope="session")
def misplaced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of files of the wrong kind."""
    folder = tmp_path_factory.mktemp("misplaced")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("name", MISPLACED)
def test_what_was_meant_is_said(name: str, here: Here, misplaced: Path, corpus: Path, labelled: Path) -> None:
    """A file of another format, or a misspelt name, is answered with what it looks like, in one line and without output."""
    arguments, message = MISPLACED[name]
    folders = {"{c}": str(corpus), "{m}": str(labelled)}
    for short, folder in folders.items():
        arguments = tuple(argument.replace(short, folder) for argument in arguments)
        message = message.replace(short, folder)
    code, out, err = here(*arguments, cwd=misplaced)
    assert code in (1, 2), err
    assert out == ""
    assert err.count("error: ") == 1
    assert message in err


def test_every_option_with_choices_suggests_the_nearest() -> None:
    """No command, nor any kind of model, has an option of choices that leaves a misspelt value without a suggestion."""
    found = 0
    for name in COMMANDS:
        commands = [program.get_command(click.Context(program, obj=Session()), name)]
        while commands:
            command = commands.pop()
            assert command is not None
            if isinstance(command, click.Group):
                context = click.Context(command, obj=Session())
                commands += [command.get_command(context, own) for own in command.list_commands(context)]
            kinds = [option.type for option in command.params if isinstance(option.type, click.Choice)]
            assert all(isinstance(kind, Choice) for kind in kinds), (name, command.name)
            found += len(kinds)
    assert found > 10


def test_a_model_where_no_data_are_looked_for_is_not_taken_for_a_swap(here: Here, corpus: Path, tmp_path: Path) -> None:
    """Where MODEL is a model but damaged, or DATA is none, nothing is said of their order."""
    raw = (corpus / "chunk.spz").read_bytes()
    (tmp_path / "cut.spz").write_bytes(raw[:-100])
    for model, data in (("cut.spz", str(corpus / "chunk.spz")), (str(corpus / "test.txt"), str(corpus / "test.txt"))):
        code, _, err = here("predict", model, data, cwd=tmp_path)
        assert code == 1
        assert "the order is" not in err


def test_labels_that_stand_in_for_none(here: Here, corpus: Path, tmp_path: Path) -> None:
    """A placeholder in the label column is no running text."""
    for placeholder in ("_", "X", "NONE"):
        (tmp_path / "a.txt").write_text(f"the DT {placeholder}\ncat NN {placeholder}\n")
        code, out, _ = here("predict", str(corpus / "chunk.spz"), "a.txt", cwd=tmp_path)
        assert (code, out.splitlines()[0]) == (0, f"the DT {placeholder} B-NP")


def test_other_encodings_in_the_shell(here: Here, corpus: Path, tmp_path: Path) -> None:
    """--encoding reads what UTF-8 cannot wherever data are read; what is written is UTF-8; the error names the option."""
    model = str(corpus / "chunk.spz")
    (tmp_path / "a.txt").write_bytes("café NN B-NP\n".encode("latin-1"))
    code, _, err = here("predict", model, "a.txt", cwd=tmp_path)
    assert code == 1
    assert "a.txt:1: expected UTF-8 text" in err
    assert "--encoding latin-1" in err
    code, out, _ = here("predict", model, "a.txt", "--encoding", "latin-1", cwd=tmp_path)
    assert (code, out[:13]) == (0, "café NN B-NP ")
    for command in (
        ("evaluate", model, "a.txt"),
        ("validate", "a.txt", "--format", "conll2000"),
        ("report", model, "a.txt", "-o", "p.html"),
    ):
        assert here(*command, cwd=tmp_path)[0] == 1
        code, _, err = here(*command, "--encoding", "latin-1", cwd=tmp_path)
        assert code == 0, err
    assert "café" in (tmp_path / "p.html").read_text(encoding="utf-8")


def test_encodings_of_treebanks_in_the_shell(here: Here, treebanks: Path, tmp_path: Path) -> None:
    """A treebank in another encoding is parsed as its copy in UTF-8 is, and comes back in UTF-8."""
    text = (treebanks / "test.conllu").read_text().replace("cat", "café")
    (tmp_path / "utf.conllu").write_text(text, encoding="utf-8")
    (tmp_path / "latin.conllu").write_text(text, encoding="latin-1")
    model = str(treebanks / "p.spz")
    expected = here("predict", model, "utf.conllu", cwd=tmp_path)[1]
    assert here("predict", model, "latin.conllu", "--encoding", "latin-1", cwd=tmp_path)[:2] == (0, expected)
    for command in (("evaluate", model, "latin.conllu"), ("validate", "latin.conllu")):
        assert here(*command, cwd=tmp_path)[0] == 1
        assert here(*command, "--encoding", "latin-1", cwd=tmp_path)[0] == 0


def test_bad_sequences_are_left_out(here: Here, corpus: Path, tmp_path: Path) -> None:
    """--on-error skip leaves the sequences with an error out: blank lines stand where they were, and stderr tells how many."""
    model = str(corpus / "chunk.spz")
    (tmp_path / "a.txt").write_bytes(b"the DT B-NP\r\ncat NN I-NP\r\n\nsees VB\nthe DT B-NP\n\na\xff DT B-NP\n\ndog NN B-NP\n")
    assert here("predict", model, "a.txt", cwd=tmp_path)[0] == 1
    code, out, err = here("predict", model, "a.txt", "--on-error", "skip", cwd=tmp_path)
    assert code == 0
    lines = out.split("\n")
    assert [line.split(" ")[0] for line in lines] == ["the", "cat", "", "", "", "", "", "", "dog", ""]
    assert lines[0].endswith("B-NP\r")
    assert "a.txt: 2 of 4 sequences with errors left out; first: a.txt:4: expected 3 columns, got 2" in err
    code, out, _ = here("predict", model, "a.txt", "--on-error", "skip", "--json", cwd=tmp_path)
    assert [json.loads(line)["tokens"] for line in out.splitlines()] == [["the", "cat"], ["dog"]]
    code, out, _ = here("evaluate", model, "a.txt", "--on-error", "skip", "--json", cwd=tmp_path)
    assert json.loads(out)["n_tokens"] == 3
    (tmp_path / "b.txt").write_text("sees VB\nthe DT B-NP\nthe DT B-NP\n")
    code, _, err = here("predict", model, "b.txt", "--on-error", "skip", cwd=tmp_path)
    assert code == 1
    assert "b.txt: expected at least one sequence without an error, got none; the first error: b.txt:1" in err


def test_bad_sentences_of_treebanks_are_left_out(here: Here, treebanks: Path, tmp_path: Path) -> None:
    """--on-error skip leaves bad sentences of a treebank out of the output and of the scores, and tells how many."""
    text = (treebanks / "test.conllu").read_text()
    (tmp_path / "a.conllu").write_text("1\tno\t_\t_\n\n" + text)
    model = str(treebanks / "p.spz")
    expected = here("predict", model, str(treebanks / "test.conllu"), cwd=tmp_path)[1]
    assert here("predict", model, "a.conllu", cwd=tmp_path)[0] == 1
    code, out, err = here("predict", model, "a.conllu", "--on-error", "skip", cwd=tmp_path)
    assert (code, out) == (0, expected)
    assert "a.conllu: 1 sentence with errors left out; first: a.conllu:1: expected 10 columns" in err
    assert here("evaluate", model, "a.conllu", cwd=tmp_path)[0] == 1
    assert here("evaluate", model, "a.conllu", "--on-error", "skip", cwd=tmp_path)[0] == 0


def test_json_lines_hold_the_tokens(here: Here, corpus: Path, treebanks: Path, tmp_path: Path) -> None:
    """Each line of predict --json can be read by itself: it has as many tokens as labels or heads, those of the file."""
    (tmp_path / "a.txt").write_text("the DT\ncat NN\n\nso RB\n")
    _, out, _ = here("predict", str(corpus / "chunk.spz"), "a.txt", "--json", cwd=tmp_path)
    assert [json.loads(line)["tokens"] for line in out.splitlines()] == [["the", "cat"], ["so"]]
    _, out, _ = here("predict", str(treebanks / "p.spz"), str(treebanks / "test.conllu"), "--json", cwd=tmp_path)
    entry = json.loads(out.splitlines()[0])
    assert len(entry["tokens"]) == len(entry["heads"])
    assert entry["tokens"][0] in (treebanks / "test.conllu").read_text()


def test_scaled_features_in_the_shell(here: Here, labelled: Path, tmp_path: Path) -> None:
    """train multilabel --scale gives a model that scales what it is given: the labels do not change with the features' unit."""
    text = (labelled / "weather-train.arff").read_text().split("@data\n")
    rows = [line.split(",") for line in text[1].splitlines()]
    large = [",".join([repr(float(row[0]) * 1e6 + 1e6), *row[1:]]) for row in rows]
    (tmp_path / "large.arff").write_text(text[0] + "@data\n" + "\n".join(large) + "\n")
    common = ("--labels", "4", "--scale", "standard", "--max-iter", "100", "--tol", "1e-6")
    for path, model in ((labelled / "weather-train.arff", "a.spz"), (tmp_path / "large.arff", "b.spz")):
        code, _, err = here("train", "multilabel", str(path), *common, "-o", model, cwd=tmp_path)
        assert code == 0, err
    first = here("predict", "a.spz", str(labelled / "weather-train.arff"), cwd=tmp_path)
    assert first == here("predict", "b.spz", "large.arff", cwd=tmp_path)
    assert first[0] == 0
