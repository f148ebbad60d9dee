"""Hashed templates: the same ids as hashing the feature strings one by one."""

import zlib

import numpy as np
import pytest

from structpred.data.sequences import PackedSequences
from structpred.data.vocabulary import FeatureHasher
from structpred.errors import DataError, FileFormatError, ParameterError
from structpred.io.columns import ColumnCorpus
from structpred.io.templates.featurizer import TemplateFeaturizer
from structpred.io.templates.hashed_templates import HashedTemplateFeaturizer, shifted
from structpred.io.templates.templates import Atom, Template, load_templates
from structpred.storage.bundles import Bundle

WORDS = ["the", "Straße", "x" * 70, "", "a|b", "Ω-7", "y" * 300, "\ud800", "of", "McDonald"]


def rows(seed: int, n: int = 30) -> list[list[tuple[str, str]]]:
    """Random sentences over strings of all lengths, also of no byte and of several a character."""
    rng = np.random.default_rng(seed)
    return [[(str(rng.choice(WORDS)), str(rng.choice(["DT", "NN", ""]))) for _ in range(rng.integers(1, 7))] for _ in range(n)]


def table(packed: PackedSequences) -> list[dict[int, float]]:
    """Feature id -> value, a token."""
    parts = np.split(np.arange(len(packed.indices)), packed.indptr[1:-1])
    return [dict(zip(packed.indices[k].tolist(), packed.values[k].tolist(), strict=True)) for k in parts]


def by_strings(templates: list[Template], sentences: list, n_bits: int) -> list[dict[int, float]]:
    """The feature strings that the dictionary of TemplateFeaturizer knows, each hashed by itself."""
    featurizer, hasher = TemplateFeaturizer(templates), FeatureHasher(n_bits)
    packed = featurizer.fit_transform(ColumnCorpus.from_rows(sentences))
    names = featurizer.feature_names()
    found = []
    for features in table(packed):
        out: dict[int, float] = {}
        for feature, value in features.items():
            out[hasher.id(names[feature])] = out.get(hasher.id(names[feature]), 0.0) + value
        found.append(out)
    return found


PADDED = [
    Template("U1:%x", (Atom(0, -3), Atom(1, 2), Atom(0, 0, "suffix2")), pad=True, literals=("U1:", "/", "", "!")),
    Template("b", ()),
]


@pytest.mark.parametrize("name", ["chunking", "ner", "pos", "padded"])
@pytest.mark.parametrize("n_bits", [3, 18, 30])
def test_ids_are_those_of_the_strings(name: str, n_bits: int) -> None:
    """Every token has the hashed ids of its feature strings, with the number of features that share one as its value."""
    templates = PADDED if name == "padded" else load_templates(name)
    sentences = rows(n_bits)
    packed = HashedTemplateFeaturizer(templates, n_bits).transform(sentences)
    assert packed.n_features == 2**n_bits
    assert table(packed) == by_strings(templates, sentences, n_bits)
    assert all(np.all(np.diff(k) > 0) for k in np.split(packed.indices, packed.indptr[1:-1]))


def test_shifting_joins_checksums() -> None:
    """shifted(crc(a), length of b) ^ crc(b) is the CRC of a and b joined, for b from none to a million bytes."""
    rng = np.random.default_rng(0)
    a = rng.bytes(20)
    for n in (0, 1, 63, 64, 65, 127, 1000, 2**20 + 7):
        b = rng.bytes(n)
        moved = shifted(np.array([zlib.crc32(a)], np.uint32), np.array([n]))[0]
        assert int(moved) ^ zlib.crc32(b) == zlib.crc32(a + b)


def test_blocks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """A corpus worked off in pieces of two sentences has the same features as in one piece."""
    from structpred.io.templates import hashed_templates

    featurizer = HashedTemplateFeaturizer(load_templates("chunking"), 12)
    whole = featurizer.transform(rows(1))
    monkeypatch.setattr(hashed_templates, "BLOCK", 2)
    pieces = featurizer.transform(rows(1))
    for name in ("indptr", "indices", "values", "offsets"):
        assert np.array_equal(getattr(whole, name), getattr(pieces, name))


def test_round_trip_and_errors() -> None:
    """to_bundle and from_bundle keep it; broken headers, missing columns and no templates are our errors."""
    featurizer = HashedTemplateFeaturizer(load_templates("ner"), 9)
    again = HashedTemplateFeaturizer.from_bundle(featurizer.to_bundle())
    assert table(again.transform(rows(2))) == table(featurizer.transform(rows(2)))
    with pytest.raises(FileFormatError):
        HashedTemplateFeaturizer.from_bundle(Bundle({"templates": [{}], "n_bits": 9}))
    with pytest.raises(FileFormatError):
        HashedTemplateFeaturizer.from_bundle(Bundle({"templates": [], "n_bits": "many"}))
    with pytest.raises(ParameterError):
        HashedTemplateFeaturizer([])
    with pytest.raises(DataError, match="asks for column 1"):
        HashedTemplateFeaturizer(load_templates("chunking"), 9).transform([[("only",)]])


def test_no_sentences_have_no_features() -> None:
    """An empty part of a corpus packs to an empty one."""
    corpus = ColumnCorpus.from_rows(rows(3)).take(2, 2)
    packed = HashedTemplateFeaturizer(load_templates("chunking"), 9).transform(corpus)
    assert (len(packed), packed.n_tokens, packed.n_features) == (0, 0, 512)
