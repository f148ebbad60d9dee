"""Gram matrices that are made once, for many fits: whole, in parts, in folds, in files, and what is refused."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from structpred.errors import DataError
from structpred.evaluation import cross_val_predict, select_sequences
from structpred.features.positions import PositionSequences
from structpred.models import KernelChainLabeler, load
from structpred.models.chain.inputs import NumericInput
from structpred.models.kernels.expansion import KernelExpansion
from structpred.models.kernels.functions import listed_kernels

RNG = np.random.default_rng(4)
LENGTHS = (3, 1, 2, 4, 2, 3, 2)
SEQUENCES = [RNG.normal(size=(n, 2)).round(2) for n in LENGTHS]
Y = [["ab"[int(a * b > 0)] for a, b in x] for x in SEQUENCES]
X = KernelExpansion(NumericInput(), listed_kernels(["quadratic", ("b1spline", 0.3)])).fit_transform(SEQUENCES)


def labeler(**settings: Any) -> KernelChainLabeler:
    """With given values of two kernels."""
    return KernelChainLabeler(kernels=["precomputed"] * 2, **{"C": 10.0, "max_iter": 6, "check_every": 6, **settings})


def as_lists(some: Any, columns: Any) -> list[list[Any]]:
    """Kernel values of some sequences with some positions, sequence by sequence."""
    packed = X.gather(np.asarray(some))
    return [[gram[packed.rows[a:b]][:, columns] for gram in X.grams] for a, b in pairwise(packed.offsets.tolist())]


def test_the_same_model_as_of_lists() -> None:
    """Packed or as a list of arrays: the same weights and predictions; names are those of the kernels."""
    listed = as_lists(range(len(X)), np.arange(X.n_tokens))
    packed, other = labeler().fit(X, Y), labeler().fit(listed, Y)
    assert packed.group_names_[:2] == ["quadratic", "b1spline"]
    np.testing.assert_allclose(packed.coef_, other.coef_, rtol=1e-4, atol=1e-6)
    assert [y.tolist() for y in packed.predict(X)] == [y.tolist() for y in other.predict(listed)]
    assert packed.predict_kbest(X, 2)[0][0][1] == packed.predict_kbest(listed, 2)[0][0][1]


def test_a_part_is_what_its_matrices_are(tmp_path: Path) -> None:
    """Trained on some sequences, in another order: as with the rows and columns of these alone; also in files."""
    some, rest = [5, 0, 3, 2], [6, 1, 4]
    columns = X.gather(np.array(some)).rows
    model = labeler().fit(select_sequences(X, some), [Y[i] for i in some])
    given = as_lists(some, columns)
    dense = [[one.toarray() if sparse.issparse(one) else one for one in each] for each in given]
    other = labeler().fit(dense, [Y[i] for i in some])
    part = select_sequences(X, rest)

    def scores(one: Any, sequences: Any) -> list[float]:
        return [found[0][1] for found in one.predict_kbest(sequences, 1)]

    np.testing.assert_allclose(scores(model, part), scores(other, as_lists(rest, columns)), rtol=1e-5)
    model.save(tmp_path / "model.spz")
    assert scores(load(tmp_path / "model.spz"), part) == scores(model, part)
    nested = select_sequences(select_sequences(X, [0, 6, 4, 1]), [1, 3, 2])
    assert scores(model, nested) == scores(model, part)
    unpacked = PositionSequences([gram[part.rows] for gram in X.grams], part.offsets, X.names)  # other rows than columns
    assert scores(model, unpacked) == scores(model, part)


def test_folds_share_the_matrices() -> None:
    """cross_val_predict takes parts of packed values; each sequence is labelled by a model of the others."""
    found = cross_val_predict(labeler(), X, Y, cv=3)
    kept = [0, 1, 2, 5, 6]
    alone = labeler().fit(select_sequences(X, kept), [Y[i] for i in kept])
    assert [y.tolist() for y in found[3:5]] == [y.tolist() for y in alone.predict(select_sequences(X, [3, 4]))]


def test_explicit_features_go_along() -> None:
    """Parts of sequences that have features beside kernels have those of their positions."""
    mixed = KernelExpansion(NumericInput(), listed_kernels(["quadratic", "features"])).fit_transform(SEQUENCES)
    part = mixed.gather(np.array([4, 1]))
    assert part.features(2, None).explicit.data.n_tokens == part.n_tokens == 3
    np.testing.assert_array_equal(part.features(2, None).space.grams[0], mixed.grams[0][np.ix_(part.rows, part.rows)])
    with pytest.raises(DataError, match="matrices of 1 kernels alone"):
        KernelChainLabeler(kernels=["precomputed"]).fit(mixed, Y)


def test_what_is_refused() -> None:
    """Another number of kernels, and matrices of other positions."""
    with pytest.raises(
        DataError, match=r"matrices of 1 kernels alone, .* of the 17 positions, got .* \[\(17, 17\), \(17, 17\)\]"
    ):
        KernelChainLabeler(kernels=["precomputed"]).fit(X, Y)
    short = PositionSequences([gram[:, :9] for gram in X.grams], X.offsets, X.names)
    with pytest.raises(DataError, match=r"for each of the 17 positions, got the shapes \[\(17, 9\), \(17, 9\)\]"):
        labeler().fit(short, Y)
    with pytest.raises(DataError, match=r"X: expected matrices of kernel values with \[17, 17\] columns, got \[9, 9\]"):
        labeler().fit(X, Y).predict(short)
