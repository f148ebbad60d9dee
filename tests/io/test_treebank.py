"""Promises of treebanks in memory: what is read of every format, what is written, and what Python data become."""

import gzip
import io
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from treebank_samples import CONLL2008, CONLL2009, CONLLU, CONLLX, SAMPLES, text_of, word

from structpred.errors import DataError, ParameterError
from structpred.io import (
    TREEBANK_FORMATS,
    Sentence,
    Tree,
    Treebank,
    TreebankFormat,
    read_treebank,
    stream_treebank,
    validate_treebank,
    write_treebank,
)


def read(text: str | bytes, format: TreebankFormat | None = None) -> Treebank:
    """A treebank from a string."""
    return read_treebank(io.BytesIO(text.encode() if isinstance(text, str) else text), format)


def written(treebank: Treebank, trees: list[Tree] | None = None) -> bytes:
    """What is written, as bytes."""
    out = io.BytesIO()
    write_treebank(treebank, out, trees)
    return out.getvalue()


READ = {
    "conllu": (
        ["Da", "me", "lo", "ya ya", "No"],
        ["VERB", "PRON", "PRON", "ADV", "INTJ"],
        [0, 1, 1, 1, 0],
        "root iobj obj advmod root",
    ),
    "conllx": (["Die", "Katze", "schläft", ".", "Ja"], ["ART", "N", "V", "$.", "ITJ"], [2, 3, 0, 0, 0], "NK SB ROOT PUNC ROOT"),
    "conll2008": (["pro", "-", "life", "groups", "Yes"], ["JJ", "_", "_", "NNS", "UH"], [3, 3, 4, 0, 0], "HMOD P NMOD ROOT ROOT"),
    "conll2009": (["The", "cats", "sleep", "Yes"], ["DT", "NNS", "VBP", "UH"], [2, 3, 0, 0], "NMOD SBJ ROOT ROOT"),
}


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_each_format_is_known_by_its_lines_and_read_by_its_columns(name: str) -> None:
    """Forms, tags, heads and relations come from the columns of the format, which nobody had to name."""
    treebank = read(SAMPLES[name])
    forms, upos, heads, labels = READ[name]
    assert treebank.format is TREEBANK_FORMATS[name]
    assert (treebank.forms, treebank.upos, treebank.heads.tolist(), treebank.labels) == (forms, upos, heads, labels.split())
    assert len(treebank) == 2
    assert validate_treebank(io.BytesIO(SAMPLES[name].encode())) == []


def test_the_other_columns_of_each_format() -> None:
    """Lemmas, fine tags and features come from the gold columns; a format without features gives ``_``."""
    assert read(CONLLU).feats[:2] == ["Mood=Imp|VerbForm=Fin", "Case=Dat"]
    assert read(CONLLX).xpos[:2] == ["ART", "NN"]
    assert read(CONLL2008).lemmas[:4] == ["pro", "-", "life", "group"]
    assert read(CONLL2008).xpos[:4] == ["JJ", "HYPH", "NN", "NNS"]
    assert set(read(CONLL2008).feats) == {"_"}
    assert read(CONLL2009).feats[1] == "num=pl"


def test_multiword_tokens_and_empty_nodes_are_no_words() -> None:
    """Only lines whose ID is a number are words; line numbers are those of the file."""
    treebank = read(CONLLU)
    assert treebank.lengths.tolist() == [4, 1]
    assert treebank.line_numbers.tolist() == [6, 8, 9, 10, 13]
    assert treebank.where(1) == "<stream>:8"


FORMS = {
    "comments": (text_of("# c", word(1, 0, upos="V-fin")), "conllu"),
    "a range": (text_of("1-2" + word(1, "_")[1:], word(1, 0, upos="V-fin"), word(2, 1)), "conllu"),
    "enhanced dependencies": (text_of(word(1, 0, upos="V-fin")).replace("\t_\t_\n", "\t0:root\t_\n"), "conllu"),
    "universal tags": (text_of(word(1, 0, upos="VERB"), word(2, 1)), "conllu"),
    "no tags": (text_of(word(1, 0)), "conllu"),
    "other tags": (text_of(word(1, 0, upos="V-fin")), "conllx"),
    "universal tags and PHEAD": (text_of(word(1, 0, upos="VERB")).replace("\t_\t_\n", "\t0\tROOT\n"), "conllx"),
    "twelve columns with PHEAD": ("1\ta\ta\ta\tN\tN\t_\t_\t0\t0\tROOT\tROOT\n\n", "conll2009"),
    "twelve columns without": ("1\ta\ta\tN\tN\ta\ta\tN\t0\tROOT\ta.01\t_\n\n", "conll2008"),
}


@pytest.mark.parametrize("name", sorted(FORMS))
def test_what_tells_the_format(name: str) -> None:
    """Each thing that tells one format from another does so by itself."""
    text, expected = FORMS[name]
    assert read(text).format.name == expected


NO_TREEBANKS = {
    "1\ta\tb\n": "2: expected 10 columns .* got 3: '1 a b'",
    "\t".join("123456789") + "\n": "2: expected 10 columns .* got 9",
    "1 a a _ _ _ 0 root _ _\n": "2: expected columns separated by single tabs, got spaces",
    "# # B-NP\n1.5 CD I-NP\n": "3: expected lines that begin with the number of a word and a tab",
    "\t".join(["B", *"abcdefghi"]) + "\n": "2: expected lines that begin with the number",
}


@pytest.mark.parametrize("text", NO_TREEBANKS)
def test_lines_that_show_no_format(text: str) -> None:
    """A file of other columns, or of other lines altogether, is refused with what is known, and its first line."""
    with pytest.raises(DataError, match=f"<stream>:{NO_TREEBANKS[text]}".replace(": ", ": no format was named, .* format: ", 1)):
        read("\n" + text)


def test_an_unpacked_stream_of_a_packed_file(tmp_path: Path) -> None:
    """A file opened by gzip has a name that ends in .gz and plain bytes; that is no error."""
    (tmp_path / "a.gz").write_bytes(gzip.compress(CONLLU.encode()))
    with gzip.open(tmp_path / "a.gz") as file:
        assert read_treebank(file).raw == CONLLU.encode()


def test_the_caller_names_the_format() -> None:
    """Several roots are an error in CoNLL-U and none in CoNLL-X; an own format says where the columns are."""
    text = text_of(word(1, 0), word(2, 0))
    with pytest.raises(DataError, match="expected one word with head 0"):
        read(text)
    assert len(read(text, TREEBANK_FORMATS["conllx"])) == 1
    assert len(read(text, replace(TREEBANK_FORMATS["conllu"], single_root=False))) == 1
    own = TreebankFormat("own", ("ID", "FORM", "HEAD", "DEPREL"), form=1, head=2, deprel=3)
    treebank = read("1\ta\t2\tx\r\n2\tb\t0\ty\r\n", own)
    assert (treebank.forms, treebank.labels, treebank.upos) == (["a", "b"], ["x", "y"], ["_", "_"])
    trees = [Tree(np.array([0, 1]), ["p", "q"])]
    assert written(treebank, trees) == b"1\ta\t0\tp\r\n2\tb\t1\tq\r\n"


def test_formats_that_cannot_be() -> None:
    """A column that is not there, or that is the ID, is refused."""
    for columns in ({"form": 4, "head": 2}, {"form": 0, "head": 2}, {"form": 1, "head": 3}):
        with pytest.raises(ParameterError, match="format own"):
            TreebankFormat("own", ("ID", "FORM", "HEAD", "DEPREL"), deprel=3, **columns)
    with pytest.raises(DataError, match="the format conllx has no comments"):
        read(CONLLU, TREEBANK_FORMATS["conllx"])
    with pytest.raises(DataError, match=r"<stream>:2: expected 15 columns .*the first line of the sentence has 15"):
        read(CONLL2009.replace("\tA0\n", "\n", 1))


@pytest.mark.parametrize("name", sorted(SAMPLES))
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("cut", [0, 1, 2])
def test_round_trips(name: str, ends: str, bom: bytes, cut: int) -> None:
    """Every format comes back byte for byte, with LF or CR LF, with a byte order mark, without the last line ends."""
    data = bom + SAMPLES[name].encode()[: len(SAMPLES[name].encode()) - cut].replace(b"\n", ends.encode())
    treebank = read(data)
    assert treebank.bom == bool(bom)
    assert written(treebank) == data
    assert written(treebank, treebank.trees()) == data
    assert b"".join(map(written, stream_treebank(io.BytesIO(data), batch_size=1))) == data


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_new_trees_change_head_and_relation_only(name: str) -> None:
    """With trees given, HEAD and DEPREL of words are theirs and every other byte is what it was."""
    treebank = read(SAMPLES[name])
    trees = [
        Tree(np.where(tree.heads == 0, 0, 1) + 0 * tree.heads, [f"r{k}" for k in range(len(tree.heads))])
        for tree in treebank.trees()
    ]
    before, after = (data.decode().split("\n") for data in (written(treebank), written(treebank, trees)))
    assert len(before) == len(after)
    flat = [(str(head), label) for tree in trees for head, label in zip(tree.heads.tolist(), tree.labels or [], strict=True)]
    for old, new in zip(before, after, strict=True):
        columns, changed = old.split("\t"), new.split("\t")
        if columns[0].isdecimal():
            columns[treebank.format.head], columns[treebank.format.deprel] = flat.pop(0)
        assert changed == columns
    assert not flat


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_spaces_in_forms_and_lemmas_of_conllx(ends: str) -> None:
    """FORM and LEMMA of CoNLL-X may hold spaces, at their ends too, and come back byte for byte; no other column may."""
    text = CONLLX.replace("Katze\tKatze", "Kat ze\tkat  ze ").replace("1\tJa\tja", "1\t Ja\tja wohl").replace("\n", ends)
    treebank = read(text)
    assert treebank.format.name == "conllx"
    assert (treebank.forms[1], treebank.lemmas[1], treebank.forms[4], treebank.lemmas[4]) == (
        "Kat ze",
        "kat  ze ",
        " Ja",
        "ja wohl",
    )
    assert written(treebank) == written(treebank, treebank.trees()) == text.encode()
    for column in ("N\tNN", "Nom|Sg", "SB\t3"):
        with pytest.raises(DataError, match="expected no spaces in column"):
            read(text.replace(f"\t{column}", f"\t{column[0]} {column[1:]}"))


def test_trees_without_labels_and_trees_that_do_not_fit() -> None:
    """A parse without relations is written with ``_``; wrong numbers and values are refused with the sample."""
    treebank = read(text_of(word(1, 2), word(2, 0)))
    assert read(written(treebank, [Tree(np.array([0, 1]), None)])).tree(0).labels is None
    for heads, labels, message in (
        ([0], None, r"sample 0: expected 2 whole numbers as heads, got shape \(1,\)"),
        ([0, 3], None, r"sample 0: expected heads from 0 to 2, got \[0, 3\]"),
        ([0, -2], None, "expected heads from 0 to 2"),
        ([0, 1], ["a"], "sample 0: expected 2 labels"),
        ([0, 1], ["a", "b c"], "cannot be written in a column"),
        ([0, 1], ["a", ""], "cannot be written in a column"),
    ):
        with pytest.raises(DataError, match=message):
            written(treebank, [Tree(np.array(heads), labels)])
    with pytest.raises(DataError, match="1 sentences, but there are 2 trees"):
        written(treebank, [Tree(np.array([0, 1]), None)] * 2)


def test_heads_that_are_not_there() -> None:
    """``_`` as HEAD on every word of a sentence is -1; asking for the tree then names the word."""
    treebank = read(text_of(word(1, 0)) + text_of(word(1, "_"), word(2, "_")))
    assert treebank.heads.tolist() == [0, -1, -1]
    assert not treebank.has_trees
    assert treebank.tree(0).heads.tolist() == [0]
    with pytest.raises(DataError, match="<stream>:3: expected a head"):
        treebank.trees()
    assert written(treebank, [Tree(np.array([0]), ["root"]), Tree(np.array([2, 0]), ["dep", "root"])]).count(b"\t_\tdep") == 0


def test_take() -> None:
    """Sentences by number, from the end or by mask, with their lines; a last sentence without its blank line gets one."""
    treebank = read(CONLLU[:-1])
    turned = treebank.take([1, -2])
    assert turned.forms == ["No", "Da", "me", "lo", "ya ya"]
    assert turned.line_numbers.tolist() == [13, 6, 8, 9, 10]
    first, second = CONLLU[: CONLLU.index("# sent_id = s2")], CONLLU[CONLLU.index("# sent_id = s2") :]
    assert written(turned) == (second + first).encode()
    assert written(treebank.take(np.array([False, True]))) == second[:-1].encode()
    assert len(treebank.take([])) == 0
    with pytest.raises(DataError, match="has 2 sentences"):
        treebank.take([2])


def test_python_data_become_a_treebank() -> None:
    """`Treebank.of` gives what reading its own lines gives; samples that cannot be written are named."""
    sentences, trees = read(CONLLU).sentences(), read(CONLLU).trees()
    treebank = Treebank.of(sentences, trees)
    again = read(written(treebank))
    assert again.sentences() == treebank.sentences() == sentences
    assert again.heads.tolist() == [head for tree in trees for head in tree.heads]
    assert again.labels == treebank.labels == [label for tree in trees for label in tree.labels or []]
    assert Treebank.of(sentences).heads.tolist() == [-1] * 5
    assert treebank.where(4) == "sample 1, position 0"
    assert len(Treebank.of([])) == 0
    good, one = sentences[1], Tree(np.array([0]), None)
    for sentence, tree, message in (
        (good._replace(forms=[]), one, "sample 1: expected at least one word"),
        (good._replace(upos=["X", "Y"]), one, "sample 1: expected 1 upos, as many as forms, got 2"),
        (good._replace(lemmas=["a\tb"]), one, "sample 1, position 0: lemmas: 'a.tb' cannot be written"),
        (good._replace(xpos=[None]), one, "expected a string, got None"),
        (good._replace(forms=["\udc80"]), one, "UTF-8"),
        (tuple(good), one, "expected a Sentence, got tuple"),
        (good, Tree(np.array([2]), None), "sample 1: expected heads from 0 to 1"),
        (good, Tree(np.array([0.0]), None), "whole numbers"),
        (good, Tree(np.array([0]), ["a", "b"]), "expected 1 labels"),
        (good, [0], "expected a Tree, got list"),
    ):
        with pytest.raises(DataError, match=message):
            Treebank.of([good, sentence], [one, tree])
    with pytest.raises(DataError, match="2 sentences, but 1 trees"):
        Treebank.of(sentences, trees[:1])


def test_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path, a packed file whatever its name, standard input and an open file give the same; the name is in messages."""
    data = CONLLU.encode()
    (tmp_path / "a.txt").write_bytes(gzip.compress(data))
    assert read_treebank(tmp_path / "a.txt").raw == data
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert read_treebank("-").path == "<stdin>"
    with (tmp_path / "a.txt").open("rb") as file:
        assert read_treebank(file).path == str(tmp_path / "a.txt")
    (tmp_path / "b.gz").write_bytes(data)
    (tmp_path / "cut.gz").write_bytes(gzip.compress(data)[:-9])
    for name, message in (
        ("none", "no such file"),
        ("", "a folder"),
        ("b.gz", "expected gzip data"),
        ("cut.gz", "truncated gzip"),
    ):
        for reading in (read_treebank, validate_treebank, lambda path: list(stream_treebank(path))):
            with pytest.raises(DataError, match=f"^{tmp_path / name}.*{message}"):
                reading(tmp_path / name)
    with pytest.raises(DataError, match="binary mode"):
        read_treebank(io.StringIO(CONLLU))  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="got int"):
        read_treebank(3)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="on_error"):
        read_treebank(io.BytesIO(data), on_error="ignore")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="batch_size"):
        stream_treebank(io.BytesIO(data), batch_size=0)


def test_sentence_numbers_out_of_range() -> None:
    """A sentence that is not there is refused; negative numbers count from the end."""
    treebank = read(CONLLU)
    assert treebank.sentence(-1) == Sentence(["No"], ["no"], ["INTJ"], ["I"], ["_"])
    with pytest.raises(DataError, match="there is no sentence 2"):
        treebank.sentence(2)
