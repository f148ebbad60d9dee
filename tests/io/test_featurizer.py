"""Templates applied to column files."""

import itertools
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structpred.data.sequences import PackedSequences
from structpred.errors import DataError, FileFormatError, ParameterError
from structpred.evaluation.model_selection import select_sequences
from structpred.features.sequences import SequenceFeatures
from structpred.io.columns import ColumnCorpus, read_columns
from structpred.io.templates import coded as module
from structpred.io.templates.featurizer import TemplateFeaturizer
from structpred.io.templates.templates import DOCUMENT_TRANSFORMS, Atom, Template, load_templates, read_template, transform
from structpred.storage.bundles import Bundle

Row = tuple[str, ...]


def _value(rows: list[Row], t: int, atom: Atom, pad: bool) -> str | None:
    place = t + atom.offset
    if place < 0:
        return f"_B{place}" if pad else None
    if place >= len(rows):
        return f"_B+{place - len(rows) + 1}" if pad else None
    if atom.transform in DOCUMENT_TRANSFORMS:  # which are not known here
        return None
    return transform(atom.transform)(rows[place][atom.column])


def _plain(rows: list[Row], templates: list[Template]) -> list[list[str]]:
    """The features of each token of a sentence, by strings."""
    out = []
    for t in range(len(rows)):
        features = []
        for template in templates:
            if (template.at == "first" and t > 0) or (template.at == "last" and t < len(rows) - 1):
                continue
            values = [_value(rows, t, atom, template.pad) for atom in template.atoms]
            if None not in values:
                features.append(template.render([value for value in values if value is not None]))
        out.append(features)
    return out


def _strings(packed: PackedSequences, names: list[str]) -> list[Counter[str]]:
    """The features of each token, with their values as counts."""
    assert packed.n_features == len(names)
    bounds = packed.indptr.tolist()
    return [
        Counter({names[k]: int(v) for k, v in zip(packed.indices[a:b].tolist(), packed.values[a:b].tolist(), strict=True)})
        for a, b in itertools.pairwise(bounds)
    ]


def _compare(templates: list[Template], train: ColumnCorpus, test: ColumnCorpus, min_count: int = 1) -> TemplateFeaturizer:
    """Fit on train, and hold both transforms against strings."""
    made = TemplateFeaturizer(templates, min_count)
    packed = made.fit_transform(train)
    plain = [features for rows in train.sentences() for features in _plain(rows, templates)]
    counts = Counter(name for features in plain for name in features)
    known = {name for name, count in counts.items() if count >= min_count}
    names = made.feature_names()
    assert sorted(names) == sorted(known)
    assert _strings(packed, names) == [Counter(n for n in features if n in known) for features in plain]
    expected = [Counter(n for n in features if n in known) for rows in test.sentences() for features in _plain(rows, templates)]
    assert _strings(made.transform(test), names) == expected
    return made


@pytest.fixture(scope="module")
def chunks(data_dir: Path) -> ColumnCorpus:
    """The training part of CoNLL-2000."""
    return read_columns(data_dir / "conll2000" / "train.txt.gz", n_columns=3)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", ["chunking", "ner", "pos"])
@pytest.mark.parametrize("min_count", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_built_in_templates_equal_strings_on_real_sentences(chunks: ColumnCorpus, name: str, min_count: int) -> None:
    """On real sentences, known and new words alike, the features are those of a plain implementation with strings."""
    _compare(load_templates(name), chunks.take(0, 150), chunks.take(150, 250), min_count)


def test_crfpp_templates_equal_strings_on_real_sentences(chunks: ColumnCorpus, tmp_path: Path) -> None:
    """CRF++ templates, padding and shared features included, equal a plain implementation with strings."""
    path = tmp_path / "template"
    path.write_text("U00:%x[-2,0]\nU05:%x[-1,0]/%x[0,0]/%x[3,1]\nU:%x[-1,1]\nU:%x[0,1]\nU:%x[1,1]\nU9\nB\n")
    _compare(read_template(path), chunks.take(0, 100), chunks.take(100, 150))


@pytest.mark.parametrize("limit", [1, 50, 3000])
def test_keys_that_would_overflow_are_ranked(chunks: ColumnCorpus, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With any limit on the size of keys the features stay the same, and survive the model file's form."""
    monkeypatch.setattr(module, "KEY_LIMIT", limit)
    templates = [Template("far", tuple((k % 2, k - 2) for k in range(5))), *load_templates("chunking")[:12]]
    made = _compare(templates, chunks.take(0, 60), chunks.take(60, 90))
    monkeypatch.undo()
    again = TemplateFeaturizer.from_bundle(made.to_bundle())
    assert again.feature_names() == made.feature_names()
    part = chunks.take(60, 90)
    assert again.transform(part).indices.tolist() == made.transform(part).indices.tolist()


@pytest.mark.slow
def test_overflow_at_the_real_limit(chunks: ColumnCorpus) -> None:
    """Six words in one template overflow 62 bits unless ranked; nothing is lost or confused."""
    words = Template("six", tuple((0, k) for k in range(-3, 3)))
    assert len(chunks.vocabularies[0]) ** 6 > 2**62
    made = TemplateFeaturizer([words]).fit(chunks)
    rows = [row[0] for row in chunks.sentences()[0]]
    assert made.n_features == len(set(made.feature_names()))
    assert "six=" + "|".join(rows[:6]) in made.feature_names()
    _compare([words], chunks.take(0, 100), chunks.take(90, 120))


@pytest.mark.slow
def test_chunking_attributes_of_conll2000(chunks: ColumnCorpus, data_dir: Path) -> None:
    """CRFsuite's templates give 335,674 attributes on CoNLL-2000, as CRFsuite's own script does, at 3,808,439 places."""
    made = TemplateFeaturizer(load_templates("crfsuite"))
    packed = made.fit_transform(chunks)
    assert packed.n_features == made.n_features == 335_674
    assert len(packed.indices) == 3_808_439
    names = made.feature_names()
    assert len(set(names)) == 335_674
    assert names.index("w[-2]=Confidence") < names.index("w[-1]|w[0]=of|the") < names.index("__BOS__") == len(names) - 2
    test = made.transform(read_columns(data_dir / "conll2000" / "test.txt.gz"))
    assert len(test.indices) == 792_628


def test_ids_follow_the_templates() -> None:
    """Feature ids stand in the order of the templates, inside a token too."""
    templates = [Template("b", ((0, 1),)), Template("a", ((0, 0),)), Template("end", (), at="last")]
    made = TemplateFeaturizer(templates)
    packed = made.fit_transform([[("x",), ("y",)], [("y",)]])
    assert made.feature_names() == ["b=y", "a=x", "a=y", "end"]
    assert packed.indices.tolist() == [0, 1, 2, 3, 2, 3]
    assert packed.offsets.tolist() == [0, 2, 3]


def test_each_template_has_a_named_group() -> None:
    """The corpus carries bounds and names of the blocks, parts of it too; a template without features has an empty one."""
    templates = [Template("b", ((0, 1),)), Template("pair", ((0, 0), (0, 1))), Template("a", ((0, 0),))]
    packed = TemplateFeaturizer(templates, min_count=2).fit_transform([[("x",), ("y",)], [("z",), ("y",)]])
    assert packed.group_names == ("b", "pair", "a")
    assert packed.groups.tolist() == [0, 1, 1, 2]  # y; none; nothing twice
    for part in (packed.take(0, 1), select_sequences(packed, [1])):
        assert (part.groups.tolist(), part.group_names) == ([0, 1, 1, 2], packed.group_names)
    features = SequenceFeatures(packed, 3)
    assert features.groups.tolist() == [0, 8, 8, 16, 32, 56]
    assert features.group_names == ["b", "pair", "a", "start and stop", "transitions"]
    with pytest.raises(DataError, match="3 groups but 1 names"):
        replace(packed, group_names=("b",))
    with pytest.raises(DataError, match="groups must rise from 0 to 2"):
        replace(packed, groups=np.array([0, 1]))


def test_shared_features_add_up() -> None:
    """Templates that write the same strings share features and a group; what stands twice at a token counts twice."""
    templates = [Template(f"U{k}", (Atom(0, k),), pad=True, literals=("U:", "")) for k in (0, 1)]
    made = TemplateFeaturizer(templates)
    packed = made.fit_transform([[("a",), ("a",), ("b",)]])
    assert packed.group_names == ("U0 U1",)
    assert _strings(packed, made.feature_names()) == [
        Counter({"U:a": 2}),
        Counter({"U:a": 1, "U:b": 1}),
        Counter({"U:b": 1, "U:_B+1": 1}),
    ]


_ROWS = st.lists(
    st.lists(st.tuples(*[st.sampled_from(["a", "b", "Cc", "d1", ""])] * 2), min_size=1, max_size=5), min_size=1, max_size=5
)
_ATOM = st.builds(Atom, st.integers(0, 1), st.integers(-3, 3), st.sampled_from(["", "lower", "suffix2", "has_digit"]))
_TEMPLATE = st.builds(
    lambda k, atoms, at, pad: (tuple(atoms), at, pad),
    st.just(0),
    st.lists(_ATOM, max_size=3),
    st.sampled_from(["any", "first", "last"]),
    st.booleans(),
)


@pytest.mark.slow
@settings(max_examples=200)
@given(
    train=_ROWS,
    test=_ROWS,
    shapes=st.lists(_TEMPLATE, min_size=1, max_size=4),
    min_count=st.integers(1, 2),
    limit=st.sampled_from([1, 8, 2**62]),
)
def test_any_templates_equal_strings(
    train: list[list[Row]], test: list[list[Row]], shapes: list[tuple[tuple[Atom, ...], str, bool]], min_count: int, limit: int
) -> None:
    """Any templates on any rows give what a plain implementation with strings gives, whatever the limit on keys."""
    templates = [Template(f"t{k}", atoms, at, pad) for k, (atoms, at, pad) in enumerate(shapes)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "KEY_LIMIT", limit)
        _compare(templates, ColumnCorpus.from_rows(train), ColumnCorpus.from_rows(test), min_count)


def test_unseen_partial_keys_match_nothing() -> None:
    """Where keys are ranked, a beginning that was not seen at fit gives no feature, however many tokens there are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "KEY_LIMIT", 8)
        train = [[("a",), ("a",), ("b",), ("b",), ("a",), ("c",)], [("c",), ("b",), ("b",), ("c",), ("a",)]]
        test = [[(w,) for w in sentence] for sentence in itertools.product("abc", repeat=5)]
        _compare([Template("t", ((0, -1), (0, 0), (0, 1)))], ColumnCorpus.from_rows(train), ColumnCorpus.from_rows(test))


def test_bundle_round_trip(chunks: ColumnCorpus) -> None:
    """A featurizer comes back the same from its parts, the header having been through JSON."""
    made = TemplateFeaturizer(load_templates("ner"), min_count=2).fit(chunks.take(0, 200))
    saved = made.to_bundle()
    again = TemplateFeaturizer.from_bundle(Bundle(json.loads(json.dumps(saved.header)), saved.arrays, saved.texts))
    part = chunks.take(100, 300)
    first, second = made.transform(part), again.transform(part)
    assert first.indices.tolist() == second.indices.tolist()
    assert first.indptr.tolist() == second.indptr.tolist()
    assert again.feature_names() == made.feature_names()
    assert again.min_count == 2


def test_damaged_bundles_are_refused() -> None:
    """Missing, unsorted, negative or too large keys, and templates that are not, raise FileFormatError."""
    made = TemplateFeaturizer([Template("a", ((0, 0), (0, 1)))]).fit([[("x",), ("y",), ("x",)]])
    saved = made.to_bundle()
    header, arrays, texts = saved.header, saved.arrays, saved.texts
    for keys in ([2, 1], [-1, 2], [1, 4], [1.0, 2.0]):
        with pytest.raises(FileFormatError, match="cannot be used"):
            TemplateFeaturizer.from_bundle(Bundle(header, {"keys.0": np.array(keys)}, texts))
    for bad in ({}, header | {"templates": []}, header | {"templates": [3]}, header | {"min_count": 0}):
        with pytest.raises(FileFormatError, match="cannot be used"):
            TemplateFeaturizer.from_bundle(Bundle(bad, arrays, texts))
    for part in (({}, texts), (arrays, {}), (arrays, {"column.0.": ["x"]})):
        with pytest.raises(FileFormatError, match="cannot be used"):
            TemplateFeaturizer.from_bundle(Bundle(header, *part))


def test_misuse() -> None:
    """Transform before fit, no templates, a column that is not there, and one sentence for a list are named."""
    templates = [Template("c", ((2, 0),))]
    with pytest.raises(ParameterError, match="not been fitted"):
        TemplateFeaturizer(templates).transform([[("a",)]])
    with pytest.raises(ParameterError, match="at least one template"):
        TemplateFeaturizer([])
    with pytest.raises(ParameterError, match="min_count"):
        TemplateFeaturizer(templates, 0)
    with pytest.raises(DataError, match="template 'c' asks for column 2, counted from 0, but there are only 1 columns"):
        TemplateFeaturizer(templates).fit([[("a",)]])
    with pytest.raises(DataError, match="one sequence instead of a list"):
        TemplateFeaturizer(templates).fit([("a", "b", "c")])
