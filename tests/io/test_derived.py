"""Derived columns that look at whole documents, or things up in files, and these files in all that keeps them."""

import json
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from document_loops import of_document

from structpred.data.vocabulary import FeatureHasher
from structpred.errors import DataError, FileFormatError, ParameterError
from structpred.evaluation.model_selection import select_sequences
from structpred.io.columns import ColumnCorpus
from structpred.io.templates import hashed_templates
from structpred.io.templates.coded import columns_of
from structpred.io.templates.featurizer import CountedTemplates, TemplateFeaturizer, merged_templates
from structpred.io.templates.hashed_templates import HashedTemplateFeaturizer
from structpred.io.templates.templates import DOCUMENT_TRANSFORMS, Template, load_templates, write_templates
from structpred.models import ChainLabeler
from structpred.storage.bundles import Bundle

Document = list[list[str]]
CLUSTERS = "0010\toslo\t12\n0011\tBergen\t3\n\n0110\tBy\t7\n01\tby\t9\n"
PLACES = "New York\tLOC\nnew  york city\tLOC\nYork\nOslo\tLOC\nOslo\tORG\nOslo\tLOC\n"


def values(corpus: ColumnCorpus, name: str, templates: list[Template] | None = None) -> list[str | None]:
    """The derived string of each token's first column."""
    strings, codes = columns_of(corpus, templates or named(name))[0, name]
    assert len(set(strings)) == len(strings)
    return [None if code < 0 else strings[code] for code in codes.tolist()]


def corpus_of(documents: list[Document]) -> ColumnCorpus:
    """The words of documents as a corpus."""
    groups = [d for d, document in enumerate(documents) for _ in document]
    return ColumnCorpus.from_rows([[(word,) for word in words] for own in documents for words in own], groups=groups)


def drawn(seed: int) -> list[Document]:
    """A few short documents of few words."""
    rng = random.Random(seed)
    words = ["a", "A", "b", "B", "Ab", "aB", "."]
    sizes = [[rng.randint(1, 6) for _ in range(rng.randint(1, 5))] for _ in range(rng.randint(1, 4))]
    return [[[rng.choice(words) for _ in range(n)] for n in lengths] for lengths in sizes]


@pytest.mark.parametrize("seed", range(40))
def test_documents_equal_loops(seed: int) -> None:
    """What a document says of a word is what loops over its tokens find; no other has a say, and none where none is known."""
    corpus = corpus_of(drawn(seed))
    documents = [tuple(map(tuple, document)) for document in drawn(seed)]
    expected = [row for document in documents for row in of_document(document)]
    assert list(zip(*(values(corpus, name) for name in DOCUMENT_TRANSFORMS), strict=True)) == expected
    alone = ColumnCorpus.from_rows(corpus.sentences())
    assert all(values(alone, name) == [None] * alone.n_tokens for name in DOCUMENT_TRANSFORMS)


def test_chosen_sequences_stay_in_their_documents() -> None:
    """Sequences picked from a corpus are of one document where they were, and follow each other."""
    corpus = corpus_of([[["a"], ["b"], ["c"]], [["d"], ["e"]], [["f"]]])
    assert select_sequences(corpus, [1, 2, 4, 5]).document_of.tolist() == [0, 0, 1, 2]
    assert select_sequences(corpus, [4, 0, 1]).document_of.tolist() == [0, 1, 1]
    assert select_sequences(ColumnCorpus.from_rows(corpus.sentences()), [2, 1]).documents is None


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with a list of places and word classes."""
    (tmp_path / "places.txt").write_text(PLACES)
    (tmp_path / "brown.txt").write_text(CLUSTERS)
    return tmp_path


def named(*transforms: str) -> list[Template]:
    """A template for each transform of column 0."""
    return [Template(f"w[0].{name}", ((0, 0, name),)) for name in transforms]


def test_phrases_of_a_list(files: Path) -> None:
    """The longest phrase counts, left to right, inside one sentence, as it is or in lower case, with all its types."""
    words = [
        ["New", "York", "City", "York"],
        ["New", "York", "New"],
        ["York", "new", "york", "NEW", "YORK", "CITY"],
        ["Oslo", "oslo"],
    ]
    corpus, name = corpus_of([words]), f"in:{files}/places.txt"
    held = load_templates(named(name))
    assert held[0].name == "w[0].in:places.txt"
    assert values(corpus, "in:places.txt", held) == [
        *("B-LOC", "I-LOC", "I-LOC", "B", "B-LOC", "I-LOC", None, "B", None, None, "B-LOC", "I-LOC", "I-LOC"),
        *("B-LOC+ORG", None),
    ]  # fmt: skip


def test_classes_of_words(files: Path) -> None:
    """A word has its own class, or that of its lower case; K characters of a path are fewer where it is shorter."""
    corpus = corpus_of([[["Oslo", "Bergen", "bergen", "By", "BY", "x"]]])
    held = load_templates(named(f"cluster:{files}/brown.txt", f"cluster3:{files}/brown.txt"))
    assert values(corpus, "cluster:brown.txt", held) == ["0010", "0011", None, "0110", "01", None]
    assert values(corpus, "cluster3:brown.txt", held) == ["001", "001", None, "011", "01", None]


def test_files_are_kept(files: Path) -> None:
    """A fitted featurizer, from its parts, pickled, merged or cut, has the features of the first one when the files are gone."""
    transforms = (f"in:{files}/places.txt", f"cluster2:{files}/brown.txt", *DOCUMENT_TRANSFORMS)
    corpus = corpus_of([[["Oslo", "in", "New", "York"], ["oslo", "Oslo", "By"]], [["Oslo"]]])
    made = TemplateFeaturizer(named(*transforms))
    whole = made.fit_transform(corpus)
    hashed, counted = HashedTemplateFeaturizer(named(*transforms), 20), CountedTemplates.of(made.templates, corpus)[0]
    for path in files.iterdir():
        path.unlink()
    names = made.feature_names()
    assert {"w[0].in:places.txt=B-LOC+ORG", "w[0].in:places.txt=I-LOC", "w[0].cluster2:brown.txt=00"} <= set(names)
    saved = made.to_bundle()
    assert str(files) not in repr(saved)
    part = Bundle(json.loads(json.dumps(saved.header)), saved.arrays, saved.texts)
    cut, left = made.without(["w[0].cluster2:brown.txt"])
    assert "resource.brown.txt" not in cut.to_bundle().texts
    for other in (TemplateFeaturizer.from_bundle(part), pickle.loads(pickle.dumps(made)), merged_templates([counted]), cut):
        packed, own = other.transform(corpus), other.feature_names()
        expected = {names[k] for k in left} if other is cut else set(names)
        assert set(own) == expected
        assert sorted(own[k] for k in packed.indices) == sorted(names[k] for k in whole.indices if names[k] in expected)
    again = HashedTemplateFeaturizer.from_bundle(hashed.to_bundle())
    for found in (hashed.transform(corpus), again.transform(corpus)):
        assert sorted(found.indices) == sorted(FeatureHasher(20).id(names[k]) for k in whole.indices)


def test_hashed_blocks_keep_documents_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A corpus worked off in pieces of about two sentences has the same features as in one piece."""
    corpus = corpus_of([document for seed in range(8) for document in drawn(seed)])
    featurizer = HashedTemplateFeaturizer(named(*DOCUMENT_TRANSFORMS), 20)
    whole = featurizer.transform(corpus)
    monkeypatch.setattr(hashed_templates, "BLOCK", 2)
    pieces = featurizer.transform(corpus)
    assert np.array_equal(whole.indices, pieces.indices)
    assert np.array_equal(whole.indptr, pieces.indptr)


def test_a_template_file_names_files_beside_it(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths in a .json file are relative to its folder, those of Template objects to the working directory."""
    (files / "sets").mkdir()
    write_templates(named("in:../places.txt", "cluster:../brown.txt"), files / "sets" / "t.json")
    found = load_templates(files / "sets" / "t.json")
    assert [t.atoms[0].transform for t in found] == ["in:places.txt", "cluster:brown.txt"]
    assert load_templates(found) == found
    with pytest.raises(DataError, match=r"\.\./places\.txt: there is no such file"):
        load_templates(named("in:../places.txt"))
    monkeypatch.chdir(files / "sets")
    assert load_templates(named("in:../places.txt", "cluster:../brown.txt")) == found
    (files / "sets" / "places.txt").write_text("Oslo\n")
    with pytest.raises(ParameterError, match=r"\.\./places\.txt and places\.txt have one name; rename one"):
        load_templates(named("in:../places.txt", "in:places.txt"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("cluster", b"01\tby\n\n01 a\n", r"x\.txt:3: expected class and word, perhaps a count, separated by tabs, got '01 a'"),
        ("cluster", b"01\ta\t1\t2\n", r"x\.txt:1: expected class and word"),
        ("cluster7", b"01\t\n", r"x\.txt:1: expected class and word"),
        ("cluster", b"a\t01\nb\t01\n", r"x\.txt:2: expected each word once, got '01' in two classes; is the class in column 0"),
        ("in", b"a\tb\tc\n", r"x\.txt:1: expected a phrase, perhaps its type, separated by tabs, got 'a\\tb\\tc'"),
        ("in", b"\ta\n", r"x\.txt:1: expected a phrase"),
        ("in", b"caf\xe9\n", r"x\.txt:1: expected UTF-8 text, got the byte 0xe9"),
        ("in", b"a\nb\0\n", r"x\.txt:2: expected text, got a NUL byte"),
        ("in", b"", r"x\.txt: expected at least one line that is not blank, got none"),
        ("cluster", b" \n\n", r"x\.txt: expected at least one line that is not blank, got none"),
        ("in", b"a\n" + b"b" * 501, r"x\.txt:2: expected at most 500 characters, got 501: 'b+\.\.\.'"),
        ("in", b"\n" * 2_000_001, r"x\.txt: expected at most 64 MiB and 2,000,000 lines, got 2,000,001 bytes"),
    ],
)  # fmt: skip
def test_hostile_files(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    """What is wrong with a file is one line that names it and the place."""
    (tmp_path / "x.txt").write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        load_templates(named(f"{name}:{tmp_path}/x.txt"))
    assert "\n" not in str(caught.value)


def test_no_files(tmp_path: Path) -> None:
    """A folder, no file, and one that claims 10 GB are refused before anything is read; so are transforms without a file."""
    with open(tmp_path / "big.txt", "wb") as file:
        file.truncate(10 << 30)
    for name, message in (
        (".", "expected a file, got a folder"),
        ("no.txt", "no such file"),
        ("big.txt", "got 10,737,418,240 bytes"),
    ):
        with pytest.raises(DataError, match=message):
            load_templates(named(f"in:{tmp_path}/{name}"))
    for transform in ("in:", "cluster0:x", "cluster100:x", "clusters:x", "doc_", "in"):
        with pytest.raises(ParameterError, match="expected a transform"):
            named(transform)


def test_damaged_model_files(files: Path) -> None:
    """A model file without the lines of a resource, or with other ones, raises FileFormatError; no file is looked for."""
    saved = TemplateFeaturizer(named(f"in:{files}/places.txt")).fit(corpus_of([[["Oslo"]]])).to_bundle()
    for texts in ({}, {"resource.places.txt": ["a\tb\tc"]}, {"resource.places.txt": []}):
        kept = {name: lines for name, lines in saved.texts.items() if not name.startswith("resource")}
        with pytest.raises(FileFormatError, match="cannot be used"):
            TemplateFeaturizer.from_bundle(Bundle(saved.header, saved.arrays, kept | texts))


def test_a_labeler_learns_from_a_list(files: Path) -> None:
    """Words that training lacks are found by the list, also from a model file, and the explanation names it without a folder."""
    X: list[Any] = [[("in",), ("New",), ("York",)], [("New",), ("York",), ("is",)], [("so",)]]
    y = [["O", "B-LOC", "I-LOC"], ["B-LOC", "I-LOC", "O"], ["O"]]
    model = ChainLabeler(template=named(f"in:{files}/places.txt")).fit(X, y)
    model.save(files / "m.spz")
    (files / "places.txt").unlink()
    again, new = ChainLabeler.load(files / "m.spz"), [[("by",), ("new",), ("york",), ("city",)]]
    assert again.predict(new)[0].tolist() == model.predict(new)[0].tolist() == ["O", "B-LOC", "I-LOC", "I-LOC"]
    assert "'w[0].in:places.txt=B-LOC'" in str(again.explain(new[0]).to_dict())
    assert again.fit(X, y).predict(new)[0].tolist() == ["O", "B-LOC", "I-LOC", "I-LOC"]
