"""The feature dictionary, and the forms of tokens that it and feature hashing take."""

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structpred.data import tokens
from structpred.data.ragged import coalesced
from structpred.data.sequences import PackedSequences
from structpred.data.vocabulary import FeatureDictionary
from structpred.errors import DataError, FileFormatError, ParameterError
from structpred.storage.bundles import Bundle

Token = dict[str, float]


def _items(packed: PackedSequences, names: list[str]) -> list[list[Token]]:
    """Sequences of {feature: value}."""
    rows = [
        dict(zip([names[k] for k in packed.indices[a:b]], packed.values[a:b].tolist(), strict=True))
        for a, b in itertools.pairwise(packed.indptr)
    ]
    return [rows[a:b] for a, b in itertools.pairwise(packed.offsets)]


def _fitted(sequences: Any) -> list[list[Token]]:
    dictionary = FeatureDictionary()
    return _items(dictionary.fit_transform(sequences), dictionary.names)


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ({"w": "x"}, {"w:x": 1}),
        ({"n": 2.5, "m": 3, "k": np.float32(0.5), "j": np.int64(4)}, {"n": 2.5, "m": 3, "k": 0.5, "j": 4}),
        ({"yes": True, "no": False, "np": np.True_}, {"yes": 1, "np": 1}),
        ({"zero": 0.0, "one": 1}, {"one": 1}),
        ({"a": {"b": "c", "d": {"e": 2, "f": True}}}, {"a:b:c": 1, "a:d:e": 2, "a:d:f": 1}),
        ({"a": ["x", "y"], "b": ("z",), "c": {"v", "u"}}, {"a:x": 1, "a:y": 1, "b:z": 1, "c:u": 1, "c:v": 1}),
        ({"a": {"b": ["x", "x"]}}, {"a:b:x": 2}),
        (["x", "y"], {"x": 1, "y": 1}),
        (("x", "x", "y"), {"x": 2, "y": 1}),
        ({"y", "x"}, {"x": 1, "y": 1}),
        (frozenset({"x"}), {"x": 1}),
        (iter(["x", "y"]), {"x": 1, "y": 1}),
        (Counter("aab"), {"a": 2, "b": 1}),
        ({"": "", "a:b": "c:d"}, {":": 1, "a:b:c:d": 1}),
        ({}, {}),
        ([], {}),
        ([np.str_("x")], {"x": 1}),
    ],
)
def test_forms_of_tokens(token: Any, expected: Token) -> None:
    """Each form that python-crfsuite takes means the same features here; zeros make no entry, doubles add up."""
    assert _fitted([[token]]) == [[expected]]


def test_same_features_as_python_crfsuite() -> None:
    """What python-crfsuite makes of a token is what we make of it (zeros aside)."""
    pycrfsuite = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    sequence = [{"w": "the", "n": 2.5, "t": True}, {"a": {"b": "c"}, "l": ["x", "y"]}, ["p", "q:r"], {"u": {"v": {"w": 3}}}]
    assert _fitted([sequence]) == [pycrfsuite.ItemSequence(sequence).items()]


def test_mixed_kinds_generators_and_order() -> None:
    """Kinds of tokens may be mixed, sequences and tokens may be generators, and ids follow the first appearance."""
    dictionary = FeatureDictionary()
    sequences = (iter(sequence) for sequence in [[["b", "a"], {"w": "x"}], [iter("cb"), {"z", "y"}]])
    packed = dictionary.fit_transform(sequences)
    assert dictionary.names == ["b", "a", "w:x", "c", "y", "z"]
    assert packed.indices.tolist() == [0, 1, 2, 3, 0, 4, 5]
    assert packed.offsets.tolist() == [0, 2, 4]


_VALUE = st.one_of(st.sampled_from(["x", "y", "1", ""]), st.floats(-9, 9, width=32), st.integers(-3, 3), st.booleans())
_NESTED = st.one_of(
    _VALUE, st.lists(st.sampled_from("xy"), max_size=3), st.dictionaries(st.sampled_from("ab"), _VALUE, max_size=2)
)
_TOKEN = st.one_of(
    st.dictionaries(st.sampled_from(["a", "b", "a:x", "c"]), _NESTED, max_size=4),
    st.lists(st.sampled_from(["a", "a:x", "q"]), max_size=4),
)
_SEQUENCES = st.lists(st.lists(_TOKEN, min_size=1, max_size=3), min_size=1, max_size=4)


def _plain(token: Any, prefix: str = "") -> Counter[str]:
    """A token's features in plain Python."""
    out: Counter[str] = Counter()
    for key, value in token.items() if isinstance(token, dict) else ((item, 1.0) for item in token):
        name = prefix + key
        if isinstance(value, dict | list):
            out.update(_plain(value, name + ":"))
        elif isinstance(value, str):
            out[f"{name}:{value}"] += 1
        else:
            out[name] += float(value)
    return out


@pytest.mark.slow
@given(train=_SEQUENCES, test=_SEQUENCES, block=st.integers(1, 3))
def test_equals_plain_python(train: Any, test: Any, block: int) -> None:
    """Fit and transform give what a plain loop gives, however the sequences are cut into blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "BLOCK", block)
        patch.setattr(tokens, "MAX_SEEN", 2)
        dictionary = FeatureDictionary()
        first = _items(dictionary.fit_transform(train), dictionary.names)
        second = _items(dictionary.transform(test), dictionary.names)
        assert FeatureDictionary().fit(iter(train)).names == dictionary.names
    names = set(dictionary.names)
    for sequences, got in ((train, first), (test, second)):
        for sequence, rows in zip(sequences, got, strict=True):
            for token, row in zip(sequence, rows, strict=True):
                plain = _plain(token)
                for name in names & (set(plain) | set(row)):
                    assert row.get(name, 0.0) == pytest.approx(plain[name], rel=1e-6, abs=1e-6)
                assert set(row) <= set(plain)
    assert names >= {name for sequence in train for token in sequence for name, value in _plain(token).items() if value}


def test_unknown_features_are_left_out() -> None:
    """Transform drops what fit has not seen, in lists and dicts, and may be given nothing at all."""
    dictionary = FeatureDictionary().fit([[["a", "b"]]])
    packed = dictionary.transform([[["c", "b"], ["d"]], [{"a": 2, "e": 1}]])
    assert (packed.indptr.tolist(), packed.indices.tolist(), packed.values.tolist()) == ([0, 1, 1, 2], [1, 0], [1.0, 2.0])
    assert packed.n_features == 2
    assert len(dictionary.transform([])) == 0


def test_min_count() -> None:
    """Features that are too rare are dropped, in one pass or two, also next to zero values."""
    sequences = [[["a", "b", "c"]], [["c"], {"c": 2, "a": 0, "d": False}], [["b", "e"]]]
    dictionary = FeatureDictionary(min_count=2)
    packed = dictionary.fit_transform(sequences)
    assert dictionary.names == FeatureDictionary(min_count=2).fit(sequences).names == ["b", "c"]
    assert packed.indices.tolist() == [0, 1, 1, 1, 0]
    assert packed.n_features == 2
    again = dictionary.transform(sequences)
    assert again.indices.tolist() == packed.indices.tolist()


def test_zero_values_are_not_the_last_feature() -> None:
    """A zero next to rare features stays out, even where the last feature is a frequent one."""
    dictionary = FeatureDictionary(min_count=2)
    packed = dictionary.fit_transform([[{"rare": 1, "off": 0, "z": 2}, {"off": 0}], [{"off": False, "z": 3}]])
    assert (dictionary.names, packed.indptr.tolist(), packed.values.tolist()) == (["z"], [0, 1, 1, 2], [2.0, 3.0])


def test_order_inside_a_token_is_kept() -> None:
    """Rows without repetition keep their order, long and short rows side by side."""
    lengths, ids = np.array([3, 1, 2]), np.array([5, 1, 3, 4, 2, 0], np.int32)
    indptr, out, values = coalesced(lengths, ids, None)
    assert (indptr.tolist(), out.tolist(), values.tolist()) == ([0, 3, 4, 6], ids.tolist(), [1.0] * 6)


_ONE = "did you pass one sequence instead of a list of sequences?"


@pytest.mark.parametrize(
    ("sequences", "message"),
    [
        ("abc", f"expected a list of sequences, got str 'abc'; {_ONE}"),
        ({"w": "x"}, "expected a list of sequences, got dict"),
        (3, "expected a list of sequences, got int 3"),
        (None, "expected a list of sequences, got NoneType None"),
        ([{"w": "x"}, {"w": "y"}], f"sample 0: expected a sequence of tokens, got dict .*{_ONE}"),
        (
            [["a", "b"], ["c"]],
            "sample 0, position 0: expected a dict of features or a list of feature strings, got str 'a'; words are no features",
        ),
        (["abc"], "sample 0: expected a sequence of tokens, got str"),
        ([[["a"]], [["b"], 3.5]], "sample 1, position 1: .*got float 3.5"),
        ([[["a"]], [["b"], None]], "sample 1, position 1: .*got NoneType"),
        ([np.zeros((2, 3))], "sample 0, position 0: .*got ndarray"),
        ([[["a"]], []], "sample 1: expected a sequence of tokens, got an empty one"),
        ([[["a"]], [["b"], ["c", 3]]], "sample 1, position 1: expected feature strings, got int 3"),
        ([[["a", ["b"]]]], "sample 0, position 0: expected feature strings, got list .*nested one level too deep"),
        ([[["a", {"b": 1}]]], "sample 0, position 0: .*nested one level too deep"),
        ([[{"a": 1}, {"b": float("nan")}]], "sample 0, position 1: feature 'b' is nan; features must be finite"),
        ([[{"a": float("-inf")}]], "feature 'a' is -inf"),
        ([[{"a": 1e39}]], r"feature 'a' is 1e\+39"),
        ([[{"a": 10**400}]], "feature 'a' is inf"),
        ([[{"a": None}]], "feature 'a': expected a string, a number, or a list of strings, got NoneType"),
        ([[{"a": b"x"}]], "feature 'a': expected a string, a number, or a list of strings, got bytes"),
        ([[{"a": np.zeros(2)}]], "feature 'a': expected .*got ndarray"),
        ([[{"a": 1j}]], "feature 'a': expected .*got complex"),
        ([[{1: "x"}]], "sample 0, position 0: expected feature names that are strings, got int 1"),
        ([[{"a": {1: "x"}}]], "feature 'a': expected keys that are strings, got int 1"),
        ([[{"a": ["x", 1]}]], "feature 'a': expected a list of strings, got int 1 in it"),
        ([[{"a": {"x", 1}}]], "feature 'a': expected a list of strings, got int 1 in it"),
        ([[{"a": {"b": float("nan")}}]], "feature 'a:b' is nan"),
        ([[{1, "a"}]], "expected feature strings, got int 1"),
    ],
)
@pytest.mark.parametrize("transform", [False, True])
def test_bad_input(sequences: Any, message: str, transform: bool) -> None:
    """Input that cannot be used raises DataError with the sample, the position and the likely cause, at fit and later."""
    dictionary = FeatureDictionary().fit([[["a", "b"], {"a": 1}]])
    with pytest.raises(DataError, match=message):
        (dictionary.transform if transform else dictionary.fit)(sequences)


def test_a_dict_that_holds_itself() -> None:
    """A dict nested without end is an error of ours, not a recursion error."""
    token: dict[str, Any] = {}
    token["a"] = token
    with pytest.raises(DataError, match=r"sample 0, position 0: .*nested more than 32 deep"):
        FeatureDictionary().fit([[token]])


def test_dicts_in_dicts_give_the_features_of_their_joined_names() -> None:
    """A dict in a dict, deeper ones, lists in it, and names that come twice, in the ids of first appearance."""
    tokens: list[dict[str, object]] = [
        {"w": "x", "near": {"w": "y", "n": 2.0, "no": False}},
        {"near": {"w": {"w": "z"}, "all": ["p", "q"]}},
        {"near:w": "y", "near": {"w": "y"}},
    ]
    for token, names in zip(
        tokens, (["w:x", "near:w:y", "near:n"], ["near:w:w:z", "near:all:p", "near:all:q"], ["near:w:y"]), strict=True
    ):
        made = FeatureDictionary()
        packed = made.fit_transform([[token]])
        assert made.names == names
        assert packed.values.tolist() == [2.0 if name == "near:n" or token is tokens[2] else 1.0 for name in names]
    for wrong in ({"near": {1: "y"}}, {"near": {"w": None}}, {1: {"w": "y"}}):
        with pytest.raises(DataError, match="sample 0, position 1"):
            FeatureDictionary().fit_transform([[{"near": {"w": "y"}}, wrong]])


def test_nothing_to_fit() -> None:
    """Fitting on nothing, a used-up generator, and using what is not fitted are named."""
    for fit in (FeatureDictionary().fit, FeatureDictionary().fit_transform):
        with pytest.raises(DataError, match="at least one sequence, got none"):
            fit(iter([]))
    with pytest.raises(ParameterError, match="not been fitted"):
        FeatureDictionary().transform([[["a"]]])
    with pytest.raises(ParameterError, match="min_count"):
        FeatureDictionary(0)


def test_bundle_round_trip() -> None:
    """A dictionary comes back the same from its parts; parts that do not fit are refused."""
    made = FeatureDictionary(min_count=2).fit([[["é", "a\n", "b"]], [["b", "é", "a\n"]]])
    saved = made.to_bundle()
    header, texts = saved.header, saved.texts
    again = FeatureDictionary.from_bundle(Bundle(json.loads(json.dumps(header)), saved.arrays, texts))
    assert (again.names, again.min_count, again.n_features) == (["é", "a\n", "b"], 2, 3)
    assert again.transform([[["b", "x"]]]).indices.tolist() == [2]
    for bad_header, bad_texts in (
        ({}, texts),
        (header, {}),
        (header, {"names": ["a", "a"]}),
        (header, {"names": [3]}),
        (header, {"names": 3}),
    ):
        with pytest.raises(FileFormatError, match="cannot be used"):
            FeatureDictionary.from_bundle(Bundle(bad_header, saved.arrays, bad_texts))  # type: ignore[arg-type]


def test_templates_and_strings_agree_on_conll2000(data_dir: Path) -> None:
    """On real sentences the strings that the templates name, given to the dictionary, make the same features."""
    io = pytest.importorskip("structpred.io")
    corpus = io.read_columns(data_dir / "conll2000" / "train.txt.gz").take(0, 300)
    featurizer = io.TemplateFeaturizer(io.load_templates("chunking"))
    by_templates = _items(featurizer.fit_transform(corpus), featurizer.feature_names())
    strings = [[list(token) for token in sequence] for sequence in by_templates]
    assert _fitted(strings) == by_templates
