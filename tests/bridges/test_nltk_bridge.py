"""Promises of structpred.bridges.nltk, against NLTK itself."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from structpred import bridges
from structpred.errors import DataError
from structpred.models import ChainLabeler, load

nltk = pytest.importorskip("nltk", reason="NLTK is not installed: pip install 'structpred[nltk]'")

TAGGED = [[("the", "DET"), ("cat", "NOUN")], [("a", "DET"), ("dog", "NOUN"), ("barks", "VERB")]]


@pytest.fixture(scope="module")
def tagger() -> Any:
    """A tagger trained on two sentences."""
    trained = bridges.ChainTagger()
    trained.train(TAGGED)
    return trained


def test_it_is_a_tagger_of_nltk(tagger: Any) -> None:
    """It is a TaggerI, and tags one sentence or many as NLTK's taggers do; a sentence without tokens has no tags."""
    assert isinstance(tagger, nltk.tag.TaggerI)
    assert tagger.tag(["the", "dog"]) == [("the", "DET"), ("dog", "NOUN")]
    assert tagger.tag_sents(iter([["a", "cat"], []])) == [[("a", "DET"), ("cat", "NOUN")], []]
    assert tagger.tag([]) == []


def test_the_measures_of_nltk(tagger: Any) -> None:
    """NLTK's own accuracy, confusions and scores by tag work on it, and agree with what it predicts."""
    gold = [*TAGGED, [("the", "X")]]
    assert tagger.accuracy(gold) == 5 / 6
    assert tagger.accuracy(TAGGED) == 1.0
    assert tagger.confusion(gold)["X", "DET"] == 1
    assert tagger.recall(gold)["X"] == 0.0
    assert tagger.precision(gold)["NOUN"] == 1.0
    assert "DET" in tagger.evaluate_per_tag(gold)


def test_a_model_file_tags(tagger: Any, tmp_path: Path) -> None:
    """A labeler from a model file is a tagger; taggers can be pickled."""
    tagger.labeler.save(tmp_path / "m.spz")
    sentence = ["the", "dog", "barks"]
    assert bridges.ChainTagger(load(tmp_path / "m.spz")).tag(sentence) == tagger.tag(sentence)
    assert pickle.loads(pickle.dumps(tagger)).tag(sentence) == tagger.tag(sentence)


def test_tokens_may_be_pairs_as_for_chunkers() -> None:
    """Tokens that are tuples, words with parts of speech, are the columns of a chunker's templates."""
    chunks = [[(("the", "DT"), "B-NP"), (("cat", "NN"), "I-NP"), (("sleeps", "VB"), "B-VP")]]
    chunker = bridges.ChainTagger(ChainLabeler(template="chunking", max_iter=20))
    chunker.train(chunks)
    assert chunker.tag([("the", "DT"), ("cat", "NN")]) == [(("the", "DT"), "B-NP"), (("cat", "NN"), "I-NP")]


def test_features_of_ones_own() -> None:
    """A function from the tokens of a sentence to feature dicts takes the place of templates."""
    tagger = bridges.ChainTagger(ChainLabeler(max_iter=20), features=lambda tokens: [{"w": w.lower()} for w in tokens])
    tagger.train(TAGGED)
    assert tagger.tag(["THE", "Cat"]) == [("THE", "DET"), ("Cat", "NOUN")]


def test_sentences_without_tokens_are_left_out_of_training_and_bad_pairs_named() -> None:
    """An empty sentence teaches nothing and stops nothing; a token without a tag is named."""
    tagger = bridges.ChainTagger()
    tagger.train([[], *TAGGED])
    assert tagger.tag(["the"]) == [("the", "DET")]
    with pytest.raises(DataError, match=r"sentence 1, token 0: expected a pair \(token, tag\), got 'cat'"):
        tagger.train([TAGGED[0], ["cat"]])
