"""Promises of structpred.bridges.spacy: documents to sentences and back, against spaCy itself."""

from typing import Any

import numpy as np
import pytest

from structpred.bridges import from_spacy, sentences_from_spacy, to_spacy
from structpred.bridges.spacy import tokenized
from structpred.errors import DataError, ParameterError
from structpred.io import Sentence, Tree

spacy = pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'structpred[spacy]'")

CATS = Sentence(["cats", "sleep"], ["cat", "sleep"], ["NOUN", "VERB"], ["NNS", "VBP"], ["Number=Plur", "_"])
GO = Sentence(["go"], ["go"], ["VERB"], ["VB"], ["_"])
TREES = [Tree(np.array([2, 0]), ["nsubj", "root"]), Tree(np.array([0]), ["root"])]


def blank(text: str) -> Any:
    """A document with sentences and nothing else."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    return nlp(text)


def test_sentences_and_trees_survive_documents() -> None:
    """Words, lemmas, tags, morphology, heads and relations come back as they went in."""
    docs = to_spacy([CATS, GO], TREES)
    assert [(token.text, token.pos_, token.tag_, token.head.i, token.dep_) for token in docs[0]] == [
        ("cats", "NOUN", "NNS", 1, "nsubj"),
        ("sleep", "VERB", "VBP", 1, "root"),
    ]
    sentences, trees = sentences_from_spacy(docs)
    assert sentences == [CATS, GO]
    assert trees is not None
    assert [(tree.heads.tolist(), tree.labels) for tree in trees] == [(t.heads.tolist(), t.labels) for t in TREES]


def test_one_document_of_several_sentences() -> None:
    """Documents put together by spaCy, with its own vocabulary, give the same sentences one after the other."""
    nlp = spacy.blank("en")
    whole = spacy.tokens.Doc.from_docs(to_spacy([CATS, GO], TREES, vocab=nlp.vocab))
    assert sentences_from_spacy([whole])[0] == [CATS, GO]
    assert from_spacy([whole], ["text", "tag_"], "pos_") == (
        [[("cats", "NNS"), ("sleep", "VBP")], [("go", "VB")]],
        [["NOUN", "VERB"], ["VERB"]],
    )


@pytest.mark.parametrize("scheme", ["iob2", "bilou"])
def test_entities_survive_documents(scheme: str) -> None:
    """Entities go in and come out in the same scheme: neighbours of one type, one at the end, single tokens."""
    words = [["Ada", "Byron", "Rome", "Pisa", "is"], ["in", "New", "York", "City"]]
    tags = {
        "iob2": [["B-PER", "I-PER", "B-LOC", "B-LOC", "O"], ["O", "B-LOC", "I-LOC", "I-LOC"]],
        "bilou": [["B-PER", "L-PER", "U-LOC", "U-LOC", "O"], ["O", "B-LOC", "I-LOC", "L-LOC"]],
    }[scheme]
    docs = to_spacy(words, entities=tags)
    assert [(entity.text, entity.label_) for entity in docs[1].ents] == [("New York City", "LOC")]
    X, y = from_spacy(docs, label="ents", scheme=scheme)
    assert [[word for (word,) in row] for row in X] == words
    assert y == tags


def test_invalid_tags_are_read_as_conlleval_does() -> None:
    """A phrase that begins with I is a phrase; entities of a document are always whole."""
    (doc,) = to_spacy([["a", "b", "c"]], entities=[["I-X", "I-Y", "B-Y"]])
    assert [(entity.text, entity.label_) for entity in doc.ents] == [("a", "X"), ("b", "Y"), ("c", "Y")]


def test_white_space_is_no_word() -> None:
    """Tokens of white space are left out, documents of nothing else have no sentences, and words keep their tags."""
    doc = blank("  The\n\ncat  sleeps.  \n Go!")
    assert [[word for (word,) in row] for row in from_spacy([doc], label=None)[0]] == [["The", "cat", "sleeps", "."], ["Go", "!"]]
    assert from_spacy([blank(""), blank(" \n ")], label=None) == ([], None)
    assert sentences_from_spacy([blank("")]) == ([], None)


def test_a_document_without_sentences_is_one() -> None:
    """Without sentence boundaries the whole document is a sentence."""
    doc = spacy.blank("en")("Go! Stay.")
    assert from_spacy([doc], label=None)[0] == [[("Go",), ("!",), ("Stay",), (".",)]]


BAD: dict[str, tuple[Any, Any, str]] = {
    "no tags": (lambda: from_spacy([blank("Go!")]), DataError, r"document 0, token 0 \('Go'\): tag_ is empty"),
    "no attribute": (lambda: from_spacy([blank("Go!")], label="tga_"), ParameterError, "'tga_'"),
    "no string": (lambda: from_spacy([blank("Go!")], "i", None), ParameterError, "a string.*got 'i'"),
    "a scheme": (lambda: from_spacy([], label="ents", scheme="iob"), ParameterError, "expected iob2 or bilou"),
    "text": (lambda: from_spacy(["Go!"]), DataError, "document 0: expected a spaCy Doc, got str"),
    "no words": (lambda: to_spacy([[]]), DataError, "sentence 0: expected at least one word"),
    "a tree too long": (lambda: to_spacy([GO], TREES[:1]), DataError, "sentence 0: expected 1 heads"),
    "an unknown head": (lambda: to_spacy([GO], [Tree(np.array([-1]), None)]), DataError, "'go' has no head"),
    "too few tags": (lambda: to_spacy([GO], entities=[[]]), DataError, "sentence 0: expected 1 labels"),
    "no language": (lambda: tokenized("Go!", "qq"), ParameterError, "no tokenizer for the language 'qq'"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_fit_is_named(name: str) -> None:
    """What is missing or does not fit is an error that names the document or sentence."""
    call, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        call()


def test_raw_text_becomes_sentences_of_words() -> None:
    """Punctuation ends sentences, blank lines end paragraphs, other line ends do not; no token is white space."""
    text = "A heading\n\nThe cat\nsleeps. It doesn't\tbark!\r\n\r\n  \nGo"
    assert tokenized(text) == [
        ["A", "heading"],
        ["The", "cat", "sleeps", "."],
        ["It", "does", "n't", "bark", "!"],
        ["Go"],
    ]
    assert tokenized(" \n\n ") == []
    assert tokenized("don't", "xx") == [["don't"]]
