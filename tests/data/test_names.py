"""Many strings looked up at once."""

import numpy as np
import pytest

from structpred.data.tokens import FeatureIndex
from structpred.data.vocabulary import MANY, FeatureDictionary, NameTable
from structpred.errors import DataError


def test_every_known_name_is_found_and_no_other() -> None:
    """Names of every length, of other alphabets, empty and with lone surrogates give their numbers; all others give -1."""
    rng = np.random.default_rng(0)
    alphabet = list("ab=[]|\x00\t\x0b\x89äß語\U0001f600\ud800")
    words = sorted({"".join(rng.choice(alphabet, size=size)) for size in rng.integers(0, 40, 5000)})
    known, asked = words[::2], list(rng.permutation(words))
    number = {name: i for i, name in enumerate(known)}
    table = NameTable.make(known)
    assert table is not None
    found = table.find(asked, len(asked))
    assert found is not None
    assert found.tolist() == [number.get(name, -1) for name in asked]


@pytest.mark.parametrize("name", ["", "x", "12345678", "1234567\x8a"])
def test_a_single_name_or_none_at_all(name: str) -> None:
    """Tables of one name work, and so does asking for nothing or for a name that only begins like it."""
    table = NameTable.make([name])
    assert table is not None
    for asked, expected in (([], []), ([name], [0]), ([name + "\x00", "other"], [-1, -1])):
        found = table.find(asked, len(asked))
        assert found is not None
        assert found.tolist() == expected


def test_newlines_are_not_taken_for_ends_of_names() -> None:
    """A name with a newline inside cannot be held, and a question with one is not answered, not even when the count fits."""
    assert NameTable.make(["a\nb", "c"]) is None
    table = NameTable.make(["a", "b"])
    assert table is not None
    for asked in (["a\nb"], ["a\nb", "a"], ["\n"], ["a", "b\n"], ["\n" * 8]):
        assert table.find(asked, len(asked)) is None
    assert table.find(["a"], 3) is None


def test_the_same_name_twice_makes_no_table() -> None:
    """Two names of the same hash are refused, so that no look-up can be ambiguous."""
    assert NameTable.make(["a", "b", "a"]) is None


@pytest.mark.parametrize("odd", ["", "w=\n"])
def test_long_and_short_questions_get_the_same_ids(odd: str) -> None:
    """A dictionary packs many strings at once as it packs them sequence by sequence, newlines in names or not."""
    rng = np.random.default_rng(1)
    seen = [[f"w={k}" for k in rng.choice(300, 9, replace=False)] + [odd] for _ in range(40)]
    asked = [[[f"w={k}" for k in rng.choice(600, 9, replace=False)] + [odd] for _ in range(10)] for _ in range(60)]
    dictionary = FeatureDictionary().fit([seen])
    whole = dictionary.transform(asked)
    pieces = [dictionary.transform([x]) for x in asked]
    assert sum(len(t) for x in asked for t in x) >= MANY
    assert whole.indices.tolist() == np.concatenate([p.indices for p in pieces]).tolist()
    assert whole.values.tolist() == np.concatenate([p.values for p in pieces]).tolist()
    assert np.diff(whole.indptr).tolist() == np.concatenate([np.diff(p.indptr) for p in pieces]).tolist()


def test_what_is_no_string_is_still_named() -> None:
    """Among thousands of strings a number is found and said to stand at its sample and position."""
    dictionary = FeatureDictionary().fit([[["a"]]])
    tokens: list[list[object]] = [["a", "b"] for _ in range(MANY)]
    tokens[77] = ["a", 5]
    with pytest.raises(DataError, match="sample 0, position 77"):
        dictionary.transform([tokens])


def test_an_open_index_learns_from_many_strings() -> None:
    """An index that takes new strings does so however many come at once."""
    index = FeatureIndex(lambda self, name: self.setdefault(name, len(self)))
    names = [f"w={k}" for k in range(MANY)]
    assert index.ids([names], len(names)).tolist() == list(range(MANY))
