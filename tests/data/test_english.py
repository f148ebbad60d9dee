"""Promises of the sentences of the package: 300, with trees that are valid, names that are valid phrases, and a fair test."""

import re
from importlib.resources import files

from structpred.data.tag_schemes import each_violation
from structpred.io import read_treebank, validate_treebank

FOLDER = files("structpred.data") / "english"
PARTS = {part: read_treebank(str(FOLDER / f"{part}.conllu")) for part in ("train", "test")}
#: the tags of Universal Dependencies
UPOS = re.compile("ADJ|ADP|ADV|AUX|CCONJ|DET|INTJ|NOUN|NUM|PART|PRON|PROPN|PUNCT|SCONJ|SYM|VERB|X")


def test_every_sentence_has_a_tree_and_valid_names() -> None:
    """300 sentences of 4 to 13 words: one root each, no crossing arcs, tags and text, and names in IOB2 of three kinds."""
    kinds = set()
    for part, treebank in PARTS.items():
        assert not [problem for problem in validate_treebank(str(FOLDER / f"{part}.conllu")) if problem.severity == "error"]
        assert all(map(UPOS.fullmatch, set(treebank.upos)))
        lines = treebank.raw.decode().splitlines()
        assert [line[9:].replace(" ", "") for line in lines if line.startswith("# text = ")] == list(
            map("".join, treebank.nested(treebank.forms))
        )
        tags = [re.findall(r"NER=(\S-\w+)", lines[number - 1]) for number in treebank.line_numbers.tolist()]
        for labels in treebank.nested([found[0] if found else "O" for found in tags]):
            kinds |= set(labels)
            assert not list(each_violation(labels, "IOB2"))
        for i in range(len(treebank)):
            heads = [0, *treebank.tree(i).heads.tolist()]
            arcs = [(min(h, m), max(h, m)) for m, h in enumerate(heads) if m]
            assert heads[1:].count(0) == 1
            assert not [(a, b) for a in arcs for b in arcs if a[0] < b[0] < a[1] < b[1]]
    assert kinds == {"O", *(f"{letter}-{kind}" for letter in "BI" for kind in ("PER", "LOC", "ORG"))}
    assert {part: len(treebank) for part, treebank in PARTS.items()} == {"train": 240, "test": 60}
    assert all(4 <= n <= 13 for treebank in PARTS.values() for n in treebank.lengths.tolist())


def test_no_sentence_is_in_both_parts() -> None:
    """The test holds no sentence to train on, and no sentence is there twice."""
    sentences = [tuple(forms) for treebank in PARTS.values() for forms in treebank.nested(treebank.forms)]
    assert len(set(sentences)) == 300
