"""Promises of structpred.bridges.datasets, against Hugging Face datasets itself; nothing is downloaded."""

from typing import Any

import numpy as np
import pytest

from structpred.bridges import from_datasets, sentences_from_datasets, to_datasets, trees_to_datasets
from structpred.errors import DataError
from structpred.io import Tree
from structpred.models import ChainLabeler, DependencyParser

hf = pytest.importorskip("datasets", reason="datasets is not installed: pip install 'structpred[datasets]'")

NAMES = ["O", "B-PER", "I-PER"]
RECORDS = {"id": ["0", "1"], "tokens": [["Ada", "Byron", "sleeps"], ["It", "rains"]], "ner_tags": [[1, 2, 0], [0, 0]]}


def entities(kind: str = "Sequence", **changed: Any) -> Any:
    """A dataset as conll2003 is: tokens, and classes of entities."""
    labels = getattr(hf, kind)(hf.ClassLabel(names=NAMES))
    features = {"id": hf.Value("string"), "tokens": hf.Sequence(hf.Value("string")), "ner_tags": labels}
    return hf.Dataset.from_dict(RECORDS | changed, features=hf.Features(features))


@pytest.mark.parametrize("kind", ["Sequence", "List", "LargeList"])
def test_classes_become_names_and_come_back(kind: str) -> None:
    """Labels are the names of the classes; predictions become a column of the same type as the true labels."""
    dataset = entities(kind)
    X, y = from_datasets(dataset)
    assert X == [[("Ada",), ("Byron",), ("sleeps",)], [("It",), ("rains",)]]
    assert y == [["B-PER", "I-PER", "O"], ["O", "O"]]
    predicted = ChainLabeler(template="ner", max_iter=20).fit(X, y).predict(X)
    out = to_datasets(dataset, predicted)
    assert out.features["predicted"] == dataset.features["ner_tags"]
    assert out["predicted"][:] == dataset["ner_tags"][:]
    assert out.remove_columns("predicted").features == dataset.features


def test_strings_and_plain_records() -> None:
    """Labels may be strings, and records plain dicts, which need no library; a stream of records is read as well."""
    records = [{"tokens": ["a", "b"], "ner_tags": ["X", "Y"], "pos": ["1", "2"]}]
    assert from_datasets(records, columns=["tokens", "pos"]) == ([[("a", "1"), ("b", "2")]], [["X", "Y"]])
    assert from_datasets(iter(records), label=None) == ([[("a",), ("b",)]], None)
    dataset = hf.Dataset.from_list(records)
    assert from_datasets(dataset.to_iterable_dataset())[1] == [["X", "Y"]]
    assert to_datasets(dataset, [np.array(["Y", "Y"])])["predicted"][:] == [["Y", "Y"]]
    assert to_datasets(dataset, [["Z", "Z"]], label=None)["predicted"][:] == [["Z", "Z"]]


def test_the_class_that_is_not_known_is_a_missing_label() -> None:
    """-1, which datasets use for labels that are not known, becomes None, which fit completes; it comes back as -1."""
    X, y = from_datasets(entities(ner_tags=[[1, -1, 0], [-1, -1]]))
    assert y == [["B-PER", None, "O"], [None, None]]
    assert to_datasets(entities(), [["B-PER", None, "O"], ["O", "O"]])["predicted"][0] == [1, -1, 0]
    assert ChainLabeler(template="ner", max_iter=3, missing="_").fit(X, y).predict(X)[0].tolist()[0] == "B-PER"


def test_a_record_without_tokens_keeps_its_place() -> None:
    """A record with empty lists is a sequence without labels, in prediction and back."""
    dataset = entities(tokens=[[], ["It", "rains"]], ner_tags=[[], [0, 1]])
    X, y = from_datasets(dataset)
    model = ChainLabeler(template="ner", max_iter=5).fit(X[1:], (y or [])[1:])
    assert to_datasets(dataset, model.predict(X))["predicted"][:] == [[], [0, 1]]


UPOS = ["NOUN", "VERB", "_", "AUX"]
TREES = {  # "cats've slept", and an empty node, as the loader of universal_dependencies lists them
    "tokens": [["cats've", "cats", "'ve", "slept", "gap"], ["go"]],
    "lemmas": [["_", "cat", "have", "sleep", "_"], ["go"]],
    "upos": [[2, 0, 3, 1, 1], [1]],
    "xpos": [[None, "NNS", "VBP", "VBN", None], ["VB"]],
    "feats": [["None", "{'Number': 'Plur'}", "None", "{'Tense': 'Past', 'VerbForm': 'Part'}", "None"], ["None"]],
    "head": [["None", "3", "3", "0", "None"], ["0"]],
    "deprel": [["_", "nsubj", "aux", "root", "_"], ["root"]],
}


def treebank(**changed: Any) -> Any:
    """A dataset as universal_dependencies is: everything strings but the parts of speech."""
    text = hf.Sequence(hf.Value("string"))
    features = {name: text for name in TREES} | {"upos": hf.Sequence(hf.ClassLabel(names=UPOS))}
    return hf.Dataset.from_dict(TREES | changed, features=hf.Features(features))


def test_treebanks_become_sentences_and_trees_and_come_back() -> None:
    """Words without multiword tokens and empty nodes, their trees; and a parser's trees in columns of the same types."""
    dataset = treebank()
    sentences, trees = sentences_from_datasets(dataset)
    assert sentences[0].forms == ["cats", "'ve", "slept"]
    assert sentences[0].upos == ["NOUN", "AUX", "VERB"]
    assert sentences[0].xpos == ["NNS", "VBP", "VBN"]
    assert sentences[0].feats == ["Number=Plur", "_", "Tense=Past|VerbForm=Part"]
    assert trees is not None
    assert trees[0].heads.tolist() == [3, 3, 0]
    found = DependencyParser().fit(sentences, trees).predict(sentences)
    out = trees_to_datasets(dataset, found)
    assert out["predicted_head"][:] == dataset["head"][:]
    assert out["predicted_deprel"][:] == dataset["deprel"][:]
    assert out.features["predicted_head"] == dataset.features["head"]


def test_treebanks_without_trees_have_all_words() -> None:
    """Without a column of heads there are no trees, and without any head in a record all of its tokens are words."""
    sentences, trees = sentences_from_datasets(treebank().remove_columns(["head", "deprel"]))
    assert (len(sentences[0].forms), trees) == (5, None)
    sentences, trees = sentences_from_datasets(treebank(head=[["None"] * 5, ["0"]]))
    assert trees is not None
    assert trees[0].heads.tolist() == [-1] * 5
    plain = hf.Dataset.from_dict({"tokens": [["cats", "sleep"]]})
    out = trees_to_datasets(plain, [Tree(np.array([2, 0]), ["nsubj", "root"])])
    assert out[0] == {"tokens": ["cats", "sleep"], "predicted_head": [2, 0], "predicted_deprel": ["nsubj", "root"]}


BAD: dict[str, tuple[Any, str]] = {
    "all splits": (lambda: from_datasets(hf.DatasetDict(train=entities())), "one split .*train"),
    "text": (lambda: from_datasets("conll2003"), "expected a datasets.Dataset .*got str"),
    "a misspelt column": (lambda: from_datasets(entities(), label="ner_tag"), "did you mean 'ner_tags'"),
    "a missing column": (lambda: from_datasets([{"tokens": ["a"]}]), "record 0: expected a column 'ner_tags', got only tokens"),
    "different lengths": (
        lambda: from_datasets(entities(ner_tags=[[1, 0], [0, 0]])),
        "'tokens' has 3 .*'ner_tags' has 2",
    ),
    "no token": (lambda: from_datasets(entities(tokens=[["Ada", None, "x"], ["a", "b"]])), "record 0, token 1: .*got None"),
    "a string for a list": (lambda: from_datasets([{"tokens": "Ada sleeps", "ner_tags": ["O"]}]), "record 0: expected a list"),
    "an unknown label": (lambda: to_datasets(entities(), [["B-ORG"] * 3, ["O"] * 2]), "'ner_tags' has no class 'B-ORG'"),
    "too few labels": (lambda: to_datasets(entities(), [["O"], ["O"] * 2]), "sentence 0: expected 3 labels"),
    "a column that is there": (lambda: to_datasets(entities(), [["O"] * 3, ["O"] * 2], column="id"), "'id' already"),
    "records": (lambda: to_datasets([{"tokens": []}], [[]]), "expected a datasets.Dataset.*got list"),
    "a head in words": (
        lambda: sentences_from_datasets(treebank(head=[["x"] * 5, ["0"]])),
        "record 0, token 0: .*got 'x'",
    ),
    "bad features": (lambda: sentences_from_datasets(treebank(feats=[["{1"] * 5, ["_"]])), "record 0: expected features"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_records_are_refused_with_their_number(name: str) -> None:
    """What cannot be read is an error that names the record and the column."""
    call, message = BAD[name]
    with pytest.raises(DataError, match=message):
        call()


def test_a_class_beyond_the_names_is_refused() -> None:
    """A number that the ClassLabel has no name for is an error, wherever it came from."""
    table = entities()
    records = [dict(record) for record in table]
    records[1]["ner_tags"] = [0, 7]

    class Records(list[Any]):
        features = table.features

    with pytest.raises(DataError, match="record 1, token 1: expected a class of 'ner_tags' from 0 to 2, or -1"):
        from_datasets(Records(records))
