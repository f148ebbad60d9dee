"""Contract checks of feature maps, and the report itself; the zoo of broken oracles is in tests/contracts."""

import dataclasses

import numpy as np
import pytest

from structpred.contracts.checks import check_feature_map, check_oracle
from structpred.core.sparse import SparseVector
from structpred.errors import OracleError
from structpred.features.parts import PartFeatures
from structpred.oracles.multiclass import MulticlassOracle


class Scaled(PartFeatures):
    """adjoint is not that of scores."""

    def adjoint(self, i, parts, counts):
        idx, val = super().adjoint(i, parts, counts)
        return SparseVector(idx, 2.0 * val)


class Shifted(PartFeatures):
    """Feature numbers one too high."""

    def adjoint(self, i, parts, counts):
        idx, val = super().adjoint(i, parts, counts)
        return SparseVector(idx + 1, val)


class Unsorted(PartFeatures):
    """Pairs in reverse order."""

    def adjoint(self, i, parts, counts):
        idx, val = super().adjoint(i, parts, counts)
        return SparseVector(idx[::-1], val[::-1])


class Buffered(PartFeatures):
    """scores are always the same array."""

    kept = None

    def scores(self, w, i):
        self.kept = {} if self.kept is None else self.kept
        return self.kept.setdefault((i, w.tobytes()), super().scores(w, i))


class Short(PartFeatures):
    """One score too few."""

    def scores(self, w, i):
        return super().scores(w, i)[:-1]


class Single(PartFeatures):
    """float32 scores."""

    def scores(self, w, i):
        return super().scores(w, i).astype(np.float32)


class WritesWeights(PartFeatures):
    """Changes the weights it is given."""

    def scores(self, w, i):
        out = super().scores(w, i)
        w[0] = 0.0
        return out


class NotANumber(PartFeatures):
    """NaN scores."""

    def scores(self, w, i):
        return super().scores(w, i) * np.nan


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        (Scaled, "adjoint"),
        (Shifted, "sparse"),
        (Unsorted, "sparse"),
        (Buffered, "nondeterminism"),
        (Short, "wrong dimension"),
        (Single, "wrong dtype"),
        (WritesWeights, "mutated input"),
        (NotANumber, "NaN"),
    ],
)
def test_broken_feature_maps_are_found(kind, rule) -> None:
    """The error names the map, the rule and the sample."""
    rng = np.random.default_rng(0)
    with pytest.raises(OracleError, match=rf"{kind.__name__} breaks(.|\n)*- {rule}, at sample"):
        check_feature_map(kind([rng.normal(size=(4, 3)) for _ in range(3)]))


def test_groups_must_cover_the_weights() -> None:
    """Groups that do not run from 0 to dim are found."""
    features = PartFeatures([np.eye(2)])
    features.groups = np.array([0, 1])
    with pytest.raises(OracleError, match="groups from 0 to dim = 2"):
        check_feature_map(features)
    features.groups, features.group_names = np.array([0, 2]), ["left", "right"]
    with pytest.raises(OracleError, match="group_names to hold 1 strings"):
        check_feature_map(features)


def test_the_report_is_data_and_text() -> None:
    """Rules, counts and reasons can be read by programs, and print one per line; the same seed gives the same report."""
    report = check_oracle(MulticlassOracle(), shapes=[(2,), (3,)], n_random=5, seed=1)
    assert report.shapes == ((2,), (3,))
    text = str(report)
    assert text.startswith("MulticlassOracle satisfies its contract on 2 shapes: [(2,), (3,)]")
    assert f"held      kbest ({report.checked['kbest']} checks)" in text
    assert "unchecked argmax_relaxed: the oracle does not have it" in text
    again = check_oracle(MulticlassOracle(), shapes=[(2,), (3,)], n_random=5, seed=1)
    assert dataclasses.replace(again, argmax_seconds=report.argmax_seconds) == report
