"""The training task of a chain model: features, labels, loss, weights and constraints, checked against each other."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.costs import PartLoss
from structpred.core.feature_map import FeatureMap
from structpred.core.task import Task
from structpred.data.sequences import PackedSequences
from structpred.errors import ParameterError
from structpred.features.positions import PositionSequences
from structpred.features.sequences import SequenceFeatures
from structpred.models.base import as_floats, checked_sample_weight
from structpred.models.chain.constraints import ChainConstraints, check_gold, fixed_scores
from structpred.models.chain.targets import LabelEncoder
from structpred.oracles.chain import ChainOracle


def chain_task(
    data: PackedSequences | PositionSequences,
    lists: Sequence[Sequence[Any]],
    encoder: LabelEncoder,
    loss: PartLoss,
    constraints: ChainConstraints | None,
    *,
    sample_weight: npt.ArrayLike | None = None,
    token_weight: Sequence[npt.ArrayLike] | None = None,
    allowed: Sequence[Any] | None = None,
    n_jobs: int = 1,
) -> Task:
    """The task of labelling `data` as `lists` says; raises DataError or ParameterError, naming the sample."""
    codes, classes = encoder.encode(lists), encoder.classes.tolist()
    fixed = fixed_scores(classes, data.offsets, constraints, allowed)
    if fixed is not None:
        check_gold(fixed, codes, data.offsets, classes)
    features: FeatureMap
    if isinstance(data, PositionSequences):
        features = data.features(len(classes), fixed)
    else:
        features = SequenceFeatures(data, len(classes), fixed=fixed)
    gold = np.split(codes, data.offsets[1:-1])
    shapes = [(length, len(classes)) for length in data.lengths.tolist()]
    weights = None if token_weight is None else checked_token_weights(token_weight, data.lengths)
    importance = checked_sample_weight(sample_weight, len(data))
    return Task(features, ChainOracle(), gold, shapes, loss, token_weights=weights, sample_weight=importance, n_jobs=n_jobs)


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
