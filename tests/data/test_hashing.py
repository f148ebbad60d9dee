"""Feature hashing."""

import os
import subprocess
import sys

import numpy as np
import pytest

from structpred.data import vocabulary
from structpred.data.vocabulary import FeatureHasher
from structpred.errors import DataError, FileFormatError, ParameterError
from structpred.storage.bundles import Bundle


def test_ids_are_fixed_for_good() -> None:
    """The hash is part of the model file's meaning: these ids may never change."""
    hasher = FeatureHasher(18)
    assert [hasher.id(name) for name in ("", "w[0]=the", "é", "\ud800")] == [0, 175167, 119015, 182904]


@pytest.mark.slow
def test_ids_do_not_depend_on_the_process() -> None:
    """Python's own string hash changes from process to process; ours does not."""
    code = "from structpred.data.vocabulary import FeatureHasher; print(FeatureHasher(20).id('w[0]=the'))"
    outputs = set()
    for seed in ("0", "1", "random"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        outputs.add(
            subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True, text=True).stdout
        )
    assert outputs == {f"{FeatureHasher(20).id('w[0]=the')}\n"}


def test_tokens_become_ids_and_values() -> None:
    """Every form of token is hashed by its feature strings, with its values."""
    hasher = FeatureHasher(24)
    packed = hasher.fit([]).fit_transform([[["a", "b"], {"w": "x", "n": 2.5, "no": False}], [{"l": ["p", "q"]}]])
    assert packed.indices.tolist() == [hasher.id(name) for name in ("a", "b", "w:x", "n", "l:p", "l:q")]
    assert packed.values.tolist() == [1.0, 1.0, 1.0, 2.5, 1.0, 1.0]
    assert (packed.n_features, packed.offsets.tolist()) == (1 << 24, [0, 2, 3])


def test_collisions_add_up() -> None:
    """Features that fall on one id at one token are one entry with the sum of their values."""
    packed = FeatureHasher(1).transform([[[f"f{k}" for k in range(10)]]])
    assert packed.indices.tolist() == [0, 1]
    assert packed.values.sum() == 10


def test_ids_spread_evenly() -> None:
    """Names that differ in a few characters fill the ids as evenly as chance would (chi-square within five deviations)."""
    hasher = FeatureHasher(10)
    for pattern in ("w[0]={}", "{}", "pos[-1]|pos[0]=NN|{}", "{:08d}"):
        counts = np.bincount([hasher.id(pattern.format(k)) for k in range(50_000)], minlength=1024)
        chi_square = ((counts - 50_000 / 1024) ** 2 / (50_000 / 1024)).sum()
        assert chi_square < 1023 + 5 * np.sqrt(2 * 1023)


def test_memory_of_strings_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forgetting the strings met so far changes nothing."""
    sequences = [[[f"f{k % 700}", f"g{k}"]] for k in range(3000)]
    expected = FeatureHasher().transform(sequences)
    monkeypatch.setattr(vocabulary, "MAX_REMEMBERED", 10)
    assert FeatureHasher().transform(iter(sequences)).indices.tolist() == expected.indices.tolist()


def test_settings_bundle_and_errors() -> None:
    """The number of bits has its range, survives the model file, and bad tokens are named as the dictionary names them."""
    for n_bits in (0, 31):
        with pytest.raises(ParameterError, match="n_bits must lie between 1 and 30"):
            FeatureHasher(n_bits)
    assert FeatureHasher.from_bundle(FeatureHasher(7).to_bundle()).n_features == 128
    for header in ({}, {"n_bits": 99}, {"n_bits": "x"}):
        with pytest.raises(FileFormatError, match="cannot be used"):
            FeatureHasher.from_bundle(Bundle(header))
    with pytest.raises(DataError, match=r"sample 0, position 0: .*words are no features"):
        FeatureHasher().transform([["a"]])
    assert len(FeatureHasher().transform([])) == 0
