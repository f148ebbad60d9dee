"""Promises of `structpred validate` on treebanks: every problem at once, with its line, as text, JSON or a clean file."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_helpers import Shell

from structpred.cli.options import TREEBANK_FORMATS
from structpred.io import TREEBANK_FORMATS as FORMATS_OF_IO

Here = Callable[..., tuple[int, str, str]]

ROW = "{}\t{}\t_\tX\t_\t_\t{}\t{}\t_\t_\n"


def sentence(*rows: tuple[object, str, object, str], comment: str = "") -> str:
    """Rows of id, form, head and relation as CoNLL-U."""
    return comment + "".join(ROW.format(*row) for row in rows) + "\n"


GOOD = sentence((1, "cats", 2, "nsubj"), (2, "sleep", 0, "root"), comment="# text = cats sleep\n")
CYCLE = sentence((1, "a", 0, "root"), (2, "b", 3, "dep"), (3, "c", 2, "dep"))
BAD = GOOD + CYCLE + sentence((1, "a", 0, "root"), (3, "b", 1, "dep")) + sentence((1, "x", 9, "dep"))


def test_all_problems_at_once(here: Here, tmp_path: Path) -> None:
    """Without --format, every bad sentence is named with file and line; exit code 1 and nothing on standard error."""
    (tmp_path / "a.conllu").write_text(BAD)
    code, out, err = here("validate", "a.conllu", cwd=tmp_path)
    assert (code, err) == (1, "")
    assert "format: conllu" in out
    assert "a.conllu:6: the heads form a cycle: 2 -> 3 -> 2" in out
    assert "a.conllu:10: expected id 2, got 3" in out
    assert "a.conllu:12: expected a head from 0 to 1 (the sentence has 1 word), got 9" in out
    assert "3 errors" in out


def test_a_good_file(here: Here, tmp_path: Path) -> None:
    """A good file has exit code 0, packed or not; warnings alone change nothing."""
    (tmp_path / "a.gz").write_bytes(gzip.compress(GOOD.encode()))
    code, out, _ = here("validate", "a.gz", "--rare", "0", cwd=tmp_path)
    assert (code, out.splitlines()[-1]) == (0, "no problems found")
    assert "a.gz: 1 sequences, the longest of 2 tokens, 2 tokens, 2 labels, 10 columns" in out
    (tmp_path / "b.conllu").write_bytes(b"\xef\xbb\xbf" + GOOD.encode()[:-1])
    code, out, _ = here("validate", "b.conllu", cwd=tmp_path)
    assert code == 0
    assert "b.conllu:1: the file begins with a byte order mark" in out
    assert "b.conllu:3: expected an empty line after the last sentence" in out


def test_json(here: Here, tmp_path: Path) -> None:
    """--json is one object: the format, sizes, and the findings with counts and places."""
    (tmp_path / "a.conllu").write_text(BAD)
    code, out, _ = here("validate", "a.conllu", "--json", "--places", "1", cwd=tmp_path)
    found = json.loads(out)
    assert code == 1
    assert (found["format"], found["ok"], found["n_errors"], found["scheme"]) == ("conllu", False, 3, None)
    assert found["files"][0] == {
        **{"name": "a.conllu", "n_sequences": 4, "n_tokens": 2, "n_columns": 10, "longest": 2},
        "labels": {"nsubj": 1, "root": 1},
    }
    errors = [finding for finding in found["findings"] if finding["severity"] == "error"]
    assert [(finding["kind"], finding["count"]) for finding in errors] == [("cycle", 1), ("ids", 1), ("heads", 1)]
    assert errors[0]["places"] == ["a.conllu:6: the heads form a cycle: 2 -> 3 -> 2"]


def test_skip_writes_the_good_sentences(here: Here, tmp_path: Path) -> None:
    """--on-error skip writes the other sentences byte for byte, says how many, and ends with exit code 0."""
    good = ("\ufeff" + GOOD).replace("\n", "\r\n").encode()
    (tmp_path / "a.conllu").write_bytes(good + CYCLE.replace("\n", "\r\n").encode() + good.removeprefix(b"\xef\xbb\xbf"))
    code, _, err = here("validate", "a.conllu", "--on-error", "skip", "-o", "b.conllu", cwd=tmp_path)
    assert (code, (tmp_path / "b.conllu").read_bytes()) == (0, good + good.removeprefix(b"\xef\xbb\xbf"))
    assert "wrote b.conllu: 1 sequences left out, 2 kept" in err
    assert here("validate", "b.conllu", cwd=tmp_path)[0] == 0


def test_the_format_may_be_named(here: Here, tmp_path: Path) -> None:
    """Two roots are an error in CoNLL-U and none in CoNLL-X; a file that shows no format is one error that says so."""
    (tmp_path / "a.conll").write_text(sentence((1, "a", 0, "root"), (2, "b", 0, "root")))
    assert here("validate", "a.conll", cwd=tmp_path)[0] == 1
    assert here("validate", "a.conll", "--format", "conllx", cwd=tmp_path)[0] == 0
    (tmp_path / "b.txt").write_text("the DT B-NP\ncat NN\n")
    code, out, err = here("validate", "b.txt", cwd=tmp_path)
    assert (code, out) == (1, "")
    assert "error: b.txt: the format is unclear from the lines" in err
    assert "of trees conllu, conllx" in err
    code, _, err = here("validate", "a.conll", "--label-column", "2", cwd=tmp_path)
    assert code == 2
    assert "--label-column is for column files" in err


def test_held_out_data(here: Here, tmp_path: Path) -> None:
    """--dev tells relations that are new, sentences that stand in both files, and the errors of the held-out file."""
    (tmp_path / "a.conllu").write_text(GOOD)
    (tmp_path / "b.conllu").write_text(GOOD + sentence((1, "dogs", 2, "obj"), (2, "bark", 0, "root")) + CYCLE)
    code, out, _ = here("validate", "a.conllu", "--dev", "b.conllu", cwd=tmp_path)
    assert code == 1
    assert "b.conllu:5: 'obj'" in out
    assert "b.conllu:2: as a.conllu:2 (2 tokens)" in out
    assert "b.conllu:9: the heads form a cycle" in out


@pytest.mark.parametrize("text", ["", "# only\n\n"])
def test_no_sentence(here: Here, tmp_path: Path, text: str) -> None:
    """An empty file, and one of comments, is one error and not a crash."""
    (tmp_path / "a.conllu").write_text(text)
    code, out, _ = here("validate", "a.conllu", cwd=tmp_path)
    assert code == 1
    assert "a.conllu: expected at least one sentence" in out


def test_standard_input(shell: Shell) -> None:
    """``-`` is read once, though it is looked at twice."""
    run = shell("validate", "-", stdin=BAD)
    assert run.returncode == 1
    assert "<stdin>:6: the heads form a cycle" in run.stdout


def test_the_names_of_formats() -> None:
    """The command knows the formats that the reader knows."""
    assert set(TREEBANK_FORMATS) == set(FORMATS_OF_IO)


def test_real_treebanks_have_no_errors(here: Here, data_dir: Path, tmp_path: Path) -> None:
    """A published treebank is without errors."""
    code, out, _ = here("validate", str(data_dir / "ud_hungarian_szeged/hu_szeged-ud-dev.conllu.gz"), cwd=tmp_path)
    assert code == 0
    assert "441 sequences" in out
