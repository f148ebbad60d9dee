"""`--signs FILE` of all kinds of models, and the constraints that bind in `structpred inspect`."""

import json
from pathlib import Path

import pytest
from cli_helpers import Shell

from structpred.errors import DataError
from structpred.io.signs import read_signs
from structpred.models import load

CHUNKS = "".join(f"{word} {word[0].upper()} {tag}\n" for word, tag in (("the", "D"), ("cat", "N"), ("sat", "V"))) + "\n"
TREES = (
    "1\tthe\tthe\tDET\t_\t_\t2\tdet\t_\t_\n2\tcat\tcat\tNOUN\t_\t_\t3\tnsubj\t_\t_\n3\tsat\tsit\tVERB\t_\t_\t0\troot\t_\t_\n\n"
)
SETS = "0,1 1:1.0 2:0.5\n0 1:0.3\n1 2:1.0 3:0.2\n0,1 1:0.9 2:0.9\n"
COLUMNS = ("--format", "conll2000", "--template", "chunking")
TRAIN = {
    "chain": ("train.txt", CHUNKS * 4, COLUMNS, "w[0]=the -> * -\n# rules\n\nstart -> V -\n"),
    "parser": ("train.conllu", TREES * 3, ("--trainer", "bcfw", "--unlabelled"), "h.upos m.upos* -\n"),
    "multilabel": ("train.svm", SETS, (), "1 -> 0 -\npair * -1\n"),
}  # fmt: skip


@pytest.mark.parametrize("kind", TRAIN)
def test_a_file_of_signs_is_obeyed_and_inspect_shows_what_binds(kind: str, shell: Shell, tmp_path: Path) -> None:
    """Trained, written and read again: the weights obey, and text and JSON name the same constraints."""
    name, data, options, signs = TRAIN[kind]
    (tmp_path / name).write_text(data)
    (tmp_path / "signs.txt").write_text(signs)
    done = shell("train", kind, name, *options, "--signs", "signs.txt", "--max-iter", "5", "-q", "-o", "m.spz")
    assert done.returncode == 0, done.stderr
    model = load(tmp_path / "m.spz")
    assert (model.signs_ * model.coef_).min() == 0.0
    told = json.loads(shell("inspect", "m.spz", "--json", "--top", "3").stdout)["signs"]
    names = {entry.name for entry in model.binding_constraints()}
    assert told["binding"] == len(names) > 0
    assert {one["name"] for one in told["strongest"]} <= names
    text = shell("inspect", "m.spz", "--top", "3").stdout
    assert f"{told['constrained']} weights constrained, {told['zero']} of them zero; {len(names)} names bind" in text
    assert all(one["name"][:50] in text for one in told["strongest"])


@pytest.mark.parametrize(
    ("signs", "options", "why"),
    [
        ("w[0]=the -> D ?\n", (), r"signs.txt:1: expected the name of a weight or a pattern, a space, and \+ or -"),
        ("# none\n", (), "signs.txt: expected at least one line"),
        ("start -> D +\nstart -> D -\n", (), "signs.txt:2: duplicate pattern 'start -> D', first given at signs.txt:1"),
        ("\nw[0]=teh +\n", (), r"no weight is called 'w\[0\]=teh' \(signs.txt:2\).*did you mean 'w\[0\]=the'"),
        ("w[0]=* +\n* -> D -\n", (), r"'w\[0\]=\w+ -> D'.*'w\[0\]=\*' \(signs.txt:1\): \+1 and '\* -> D' \(signs.txt:2\): -1"),
        ("start -> D +\n", ("--trainer", "lbfgs"), "LBFGS needs.*gradient.*bcfw, bmrm, corrective, ls_bmrm"),
        ("start -> D +\n", ("--regulariser", "mkl", "--trainer", "sgd"), "SGD cannot minimise Signed.*bcfw, bmrm, corrective"),
    ],
)
def test_errors_name_the_line(signs: str, options: tuple[str, ...], why: str, shell: Shell, tmp_path: Path) -> None:
    """In the file, in what its patterns mean, and in what signs do not go with; no model is written."""
    import re

    name, data, format, _ = TRAIN["chain"]
    (tmp_path / name).write_text(data)
    (tmp_path / "signs.txt").write_text(signs)
    done = shell("train", "chain", name, *format, "--signs", "signs.txt", *options, "-q", "-o", "m.spz")
    assert done.returncode != 0
    assert re.search(why, done.stderr), done.stderr
    assert not (tmp_path / "m.spz").exists()


def test_a_missing_file_is_an_error_of_ours(tmp_path: Path) -> None:
    """It names the file."""
    with pytest.raises(DataError, match=r"nowhere\.txt"):
        read_signs(tmp_path / "nowhere.txt")
