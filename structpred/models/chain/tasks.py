"""The training task of a chain model: features, labels, loss, weights and constraints, checked against each other."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from structpred.core.costs import Cost
from structpred.core.feature_map import FeatureMap
from structpred.data.sequences import PackedSequences
from structpred.errors import ParameterError
from structpred.features.fixed_scores import FixedScores
from structpred.features.positions import PositionSequences
from structpred.features.sequences import SequenceFeatures
from structpred.models.base import as_floats, checked_sample_weight
from structpred.models.chain.constraints import ChainConstraints, check_gold, fixed_scores, resolve_constraints
from structpred.models.chain.partial import PartialLabels, check_left, partial_labels
from structpred.models.chain.targets import LabelEncoder, as_label_lists
from structpred.models.settings import resolve_loss
from structpred.oracles.chain import ChainOracle
from structpred.task.partial_task import PartialTask
from structpred.task.taken import take_features
from structpred.task.task import Task


def chain_task(
    data: PackedSequences | PositionSequences,
    lists: Sequence[Sequence[Any]],
    encoder: LabelEncoder,
    loss: Cost,
    constraints: ChainConstraints | None,
    *,
    sample_weight: npt.ArrayLike | None = None,
    token_weight: Sequence[npt.ArrayLike] | None = None,
    allowed: Sequence[Any] | None = None,
    n_jobs: int = 1,
    partial: PartialLabels | None = None,
) -> Task:
    """The task of labelling `data` as `lists` says, or `partial` where some labels are missing.

    Raises DataError or ParameterError, naming the sample.
    """
    if partial is not None:
        encoder.encode(partial.known())  # refuses labels that are not known
        lists = partial.filled(encoder.classes[0].item())
    codes, classes = encoder.encode(lists), encoder.classes.tolist()
    fixed = fixed_scores(classes, data.offsets, constraints, allowed)
    if fixed is not None:
        check_gold(fixed, codes, data.offsets, classes, () if partial is None else partial.rows)
    features = _features(data, len(classes), fixed)
    gold = np.split(codes, data.offsets[1:-1])
    shapes = [(length, len(classes)) for length in data.lengths.tolist()]
    weights = None if token_weight is None else checked_token_weights(token_weight, data.lengths)
    importance = checked_sample_weight(sample_weight, len(data))
    of_all = {"token_weights": weights, "sample_weight": importance, "n_jobs": n_jobs}
    if partial is None:
        return Task(features, ChainOracle(), gold, shapes, loss, **of_all)  # type: ignore[arg-type]
    narrow = fixed_scores(classes, data.offsets, constraints, allowed, known=partial.choices)
    assert narrow is not None
    check_left(narrow, data.offsets, partial.rows)
    left = take_features(_features(data, len(classes), narrow), partial.rows)
    return PartialTask(
        features, ChainOracle(), gold, shapes, loss, allowed=left, rows=partial.rows, **of_all  # type: ignore[arg-type]
    )  # fmt: skip


def labelled(
    labeler: Any, data: PackedSequences | PositionSequences, y: Any, encoder: LabelEncoder | None = None, *, whole: bool = False,
    **options: Any,
) -> tuple[Task, LabelEncoder]:  # fmt: skip
    """The task of labelling `data` as y says, by the settings of a labeler; and the encoder, where there is none that of y.

    whole: whether these are all data there will be. options: those of chain_task.
    """
    lists = as_label_lists(y, data.lengths)
    known = partial_labels(lists, labeler.missing, whole=whole)
    if encoder is None:
        encoder = LabelEncoder.fit(lists if known is None else known.known())
    loss, rules = resolve_loss(labeler.loss), resolve_constraints(labeler.constraints)
    return chain_task(data, lists, encoder, loss, rules, partial=known, **options), encoder


def _features(data: PackedSequences | PositionSequences, n_labels: int, fixed: FixedScores | None) -> FeatureMap:
    if isinstance(data, PositionSequences):
        return data.features(n_labels, fixed)
    return cast(FeatureMap, SequenceFeatures(data, n_labels, fixed=fixed))


def checked_token_weights(weights: Any, lengths: npt.NDArray[np.int64]) -> list[npt.NDArray[np.float64]]:
    """One array per sequence of finite numbers >= 0, one per token; ParameterError, naming the sample, for anything else."""
    if not isinstance(weights, Iterable):
        raise ParameterError(f"token_weight: expected one list per sequence, nested like y, got {type(weights).__name__}")
    arrays = [as_floats(w, f"token_weight, sample {i}") for i, w in enumerate(weights)]
    if len(arrays) != len(lengths):
        raise ParameterError(f"token_weight: expected one list per sequence, {len(lengths)}, got {len(arrays)}")
    for i, (w, length) in enumerate(zip(arrays, lengths.tolist(), strict=True)):
        if w.shape != (length,) or not np.isfinite(w).all() or (w < 0).any():
            raise ParameterError(
                f"token_weight, sample {i}: expected {length} finite numbers >= 0, got {np.array2string(w, threshold=5)}"
            )
    return arrays
