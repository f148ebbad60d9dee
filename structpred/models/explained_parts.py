"""Explanations of outputs that an oracle describes: the score of each part taken apart into its features."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from structpred.core.oracle import Labels
from structpred.core.requirements import require
from structpred.core.weights import Vector
from structpred.errors import DataError
from structpred.models.explanations import Contribution, Explanation, contrast, wants_runner_up
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


def explain_parts(inference: Inference, w: Vector, tables: Sequence[NameTable], labels: Any, against: Any) -> Explanation:
    """The score of one output of the only instance taken apart, or the difference between two. tables: names of the weights."""
    chosen = inference.outputs(w)[0] if labels is None else _given(inference, labels, "labels")
    other = None
    if against is not None:
        runner_up = wants_runner_up(against, "labels as the oracle returns them")
        other = _runner_up(inference, w, chosen) if runner_up else _given(inference, against, "against")
    sides = [
        [
            Contribution("part", f.part, f"part {f.part}", name_of(f.place, tables)[0], f.value, f.weight)
            for f in part_features(inference, w, side)
        ]
        for side in (chosen, other)
        if side is not None
    ]
    found = contrast(sides[0], sides[1]) if other is not None else sides[0]
    n = inference.features.n_parts(0)
    return Explanation.of(chosen.tolist(), None if other is None else other.tolist(), found, n, "part")


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
