"""Explanations of outputs that an oracle describes: the score of each part taken apart into its features."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from structpred.core.oracle import Labels, Oracle
from structpred.core.requirements import require
from structpred.core.weights import Vector
from structpred.errors import DataError
from structpred.models.explanations import Contribution, Explanation, contrast, wants_runner_up
from structpred.models.inspections import WeightInspection, top_weights
from structpred.models.part_inputs import as_labels
from structpred.models.signs import NameTable, name_of
from structpred.task.inference import Inference


class PartFeature(NamedTuple):
    """A feature of a part of one output: value * weight is what it adds to the score."""

    part: int
    place: int
    value: float
    weight: float


def part_features(inference: Inference, w: Vector, labels: Labels) -> Iterator[PartFeature]:
    """The features of the parts of an output of the first instance; a part that counts twice has twice the value."""
    parts, counts = np.unique(inference.oracle.parts(labels, inference.shapes[0]), return_counts=True)
    for part, count in zip(parts.tolist(), counts.tolist(), strict=True):
        vector = inference.features.adjoint(0, np.array([part], dtype=np.int64), np.array([float(count)]))
        for place, value in zip(vector.indices.tolist(), vector.values.tolist(), strict=True):
            yield PartFeature(part, place, value, float(w[place]))


class FittedPredictor(Protocol):
    """What explaining needs of a StructuredPredictor."""

    coef_: Vector
    oracle: Oracle

    def _read(self, X: Any, shapes: Sequence[Any] | None) -> Inference: ...
    def _name_tables(self) -> Sequence[NameTable]: ...


class ExplainedParts:
    """What a StructuredPredictor says of its weights and its decisions."""

    def explain(self: FittedPredictor, x: Any, labels: Any = None, *, against: Any = None, shape: Any = None) -> Explanation:
        """Why an instance gets its labels: what each feature of each part adds to the score.

        x: an Instance, or the features of one with its shape=. labels: what to explain; None: what is predicted. against: other
        labels, or "runner-up" (the best other ones, for which the oracle needs `kbest`): only what differs, as differences.
        Positions are the numbers of parts. Raises DataError for labels that the oracle does not know.

        >>> from structpred import Instance
        >>> from structpred.models import StructuredPredictor
        >>> from structpred.oracles.multiclass import MulticlassOracle
        >>> X = [Instance([{"rank": 1.0}, {"rank": 2.0}], (2,)), Instance([{"rank": 2.0}, {"rank": 1.0}], (2,))]
        >>> why = StructuredPredictor(MulticlassOracle()).fit(X, [[0], [1]]).explain(X[0], against=[1])
        >>> [(c.position, c.feature, c.value) for c in why.contributions]
        [(0, 'rank', 1.0), (1, 'rank', -2.0)]
        """
        inference = self._read([x], None if shape is None else [shape])
        chosen = inference.outputs(self.coef_)[0] if labels is None else _given(inference, labels, "labels")
        other = None
        if against is not None:
            runner_up = wants_runner_up(against, "labels as the oracle returns them")
            other = _runner_up(inference, self.coef_, chosen) if runner_up else _given(inference, against, "against")
        tables = self._name_tables()
        sides = [
            [
                Contribution("part", f.part, f"part {f.part}", name_of(f.place, tables)[0], f.value, f.weight)
                for f in part_features(inference, self.coef_, side)
            ]
            for side in (chosen, other)
            if side is not None
        ]
        found = contrast(sides[0], sides[1]) if other is not None else sides[0]
        n = inference.features.n_parts(0)
        return Explanation.of(chosen.tolist(), None if other is None else other.tolist(), found, n, "part")

    def top_features(self, n: int = 20) -> WeightInspection:
        """The n strongest positive and negative weights by name."""
        return top_weights(self, n)  # type: ignore[arg-type]


def _given(inference: Inference, labels: Any, name: str) -> Labels:
    try:
        found = as_labels([labels])[0]
        inference.oracle.parts(found, inference.shapes[0])
    except Exception as error:
        raise DataError(f"{name}: {str(error).removeprefix('sample 0: ')}") from error
    return found


def _runner_up(inference: Inference, w: Vector, chosen: Labels) -> Labels:
    require(("kbest",), inference.oracle, 'explain(against="runner-up")')
    for labels, _ in next(iter(inference.kbest(w, 2))):
        if not np.array_equal(labels, chosen):
            return labels
    raise DataError("there is no other output to compare with this one")
