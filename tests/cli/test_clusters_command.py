"""`structpred clusters`: text of any format in, a file of word classes out."""

from collections.abc import Callable
from pathlib import Path

import pytest

from structpred.data.clusters import brown_clusters

Here = Callable[..., tuple[int, str, str]]
SENTENCES = [["a", "cat", "ran", "."], ["the", "dog", "sat"], ["the", "cat", "sat", "."], ["a", "dog", "ran"]]
ROWS = "".join(f"{path}\t{word}\t{count}\n" for path, word, count in brown_clusters(SENTENCES, 3))


def treebank(sentences: list[list[str]]) -> str:
    """The sentences in CoNLL-U; each word hangs on the one before."""
    rows = [[f"{k}\t{word}" + "\t_" * 4 + f"\t{k - 1}\tdep\t_\t_\n" for k, word in enumerate(own, 1)] for own in sentences]
    return "\n".join("".join(block) for block in rows)


@pytest.mark.parametrize(
    ("name", "text", "format"),
    [
        ("plain.txt", "".join(f"{' '.join(own)}\n" for own in SENTENCES), "text"),
        ("columns.txt", "-DOCSTART- O\n\n" + "\n".join("".join(f"{word} O\n" for word in own) for own in SENTENCES), "columns"),
        ("words.txt", "\n".join("".join(f"{word}\n" for word in own) for own in SENTENCES), "columns"),
        ("trees.conllu", treebank(SENTENCES), "treebank"),
    ],
)
def test_the_same_words_are_read_from_every_format(name: str, text: str, format: str, here: Here, tmp_path: Path) -> None:
    """Text, columns and treebanks are told apart, and give the same file, path, word and count a line; a line says which."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    code, out, err = here("clusters", name, "-o", "brown.txt", "--classes", "3", cwd=tmp_path)
    assert (code, out) == (0, ""), err
    assert err.startswith(f"{name}: read as --format {format}\n")
    assert (tmp_path / "brown.txt").read_text(encoding="utf-8") == ROWS
    assert here("clusters", name, "-o", "-", "--classes", "3", "--format", format, "-q", cwd=tmp_path)[1] == ROWS


def test_several_files_are_one_text(here: Here, tmp_path: Path) -> None:
    """Files of different formats, one of them standard input's text, are read one after the other."""
    (tmp_path / "trees.conllu").write_text(treebank(SENTENCES[:2]), encoding="utf-8")
    (tmp_path / "rest.txt").write_text("the cat sat .\na dog ran\n", encoding="utf-8")
    code, out, _ = here("clusters", "trees.conllu", "rest.txt", "-o", "-", "--classes", "3", cwd=tmp_path)
    assert (code, out) == (0, ROWS)
    rare = here("clusters", "rest.txt", "-o", "-", "--classes", "2", "--min-count", "2", cwd=tmp_path)
    assert rare[0] == 1
    assert "as many words that occur 2 times or more, got 2 classes and 0 words" in rare[2]


@pytest.mark.parametrize(
    ("data", "options", "code", "said"),
    [
        (b"\x7fELF\x02\x01\x01" + bytes(range(256)), (), 1, "text.txt:"),
        (b"cat\0dog ran\n", (), 1, "text.txt:1: expected text, got a NUL byte"),
        (b"caf\xe9 noir est\n", (), 1, "text.txt:1: expected UTF-8 text"),
        (b"", (), 1, "got 320 classes and 0 words"),
        (b"\n \n", (), 1, "got 320 classes and 0 words"),
        (b"one two\n", ("--classes", "3"), 1, "got 3 classes and 2 words"),
        (b"one two\n", ("--classes", "0"), 2, "0 is not in the range"),
        (b"one two\n", ("--min-count", "0"), 2, "0 is not in the range"),
        (b"one two\n", ("-o", "text.txt"), 1, "this is one of the files to be read"),
        (b"w " * 10_000_000, (), 1, "text.txt:1: expected lines of at most 16 MiB"),
    ],
    ids=["binary", "nul", "latin-1", "empty", "blank", "few words", "no classes", "no count", "own input", "one long line"],
)
def test_what_cannot_be_clustered_is_one_line(
    data: bytes, options: tuple[str, ...], code: int, said: str, here: Here, tmp_path: Path
) -> None:
    """Each is refused with a line that says why, and what stood in the output file stays."""
    (tmp_path / "text.txt").write_bytes(data)
    (tmp_path / "brown.txt").write_text("0\told\t1\n")
    found = here("clusters", "text.txt", "-o", "brown.txt", *options, cwd=tmp_path)
    lines = [line for line in found[2].splitlines() if line.startswith("error: ")]
    assert (found[0], found[1], len(lines)) == (code, "", 1), found[2]
    assert said in lines[0]
    assert (tmp_path / "brown.txt").read_text() == "0\told\t1\n"
    assert (tmp_path / "text.txt").read_bytes() == data
