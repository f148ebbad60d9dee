"""What the modules of padded batches share: padded, packed and nested input, masks, checks that need no values, reductions."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence, pad_sequence

from structpred.errors import DataError, ParameterError

_REDUCTIONS = ("none", "sum", "mean", "token_mean")


def checked_batch(given: Any, mask: Tensor | None, batch_first: bool, width: int | None) -> tuple[Tensor, Tensor]:
    """Scores (B, T, width), in float32 or float64, and the mask (B, T), all true where none is given. Raises DataError.

    given: a padded tensor, a nested one, or a PackedSequence. width: None where it is one more than T.
    """
    scores, found = _padded(given, batch_first)
    form = (*scores.shape[:2], scores.shape[1] + 1 if width is None else width)
    if not scores.is_floating_point() or tuple(scores.shape) != form:
        raise DataError(
            f"expected floats (batch, time, {width or 'time + 1'}), got {scores.dtype} of shape {tuple(scores.shape)}"
        )
    if mask is not None:
        own = beside(mask, scores, "mask", batch_first).bool()
        found = own if found is None else found & own
    found = torch.ones(scores.shape[:2], dtype=torch.bool, device=scores.device) if found is None else found
    return scores if scores.dtype == torch.float64 else scores.float(), found


def beside(given: Any, scores: Tensor, name: str, batch_first: bool) -> Tensor:
    """Whole numbers or truth values, one a position of the scores, else DataError; padded, packed or nested as they may be."""
    own, _ = _padded(given, batch_first)
    if own.shape != scores.shape[:2] or own.is_floating_point() or own.device != scores.device:
        expected, came = (f"{tuple(one.shape[:2])} on {one.device}" for one in (scores, own))
        raise DataError(f"{name}: expected whole numbers (batch, time) = {expected}, got {own.dtype} {came}")
    return own


def reduced(values: Tensor, mask: Tensor, reduction: str) -> Tensor:
    """The values (B,), their sum, their mean, or the sum by the number of positions that are there."""
    if reduction not in _REDUCTIONS:
        raise ParameterError(f"reduction: expected one of {', '.join(_REDUCTIONS)}, got {reduction!r}")
    if reduction in ("none", "mean"):
        return values if reduction == "none" else values.mean()
    return values.sum() / (mask.sum() if reduction == "token_mean" else 1)


def _padded(given: Any, batch_first: bool) -> tuple[Tensor, Tensor | None]:
    """(B, T, ...), and (B, T) which positions there are; None for a tensor that was padded before."""
    if isinstance(given, PackedSequence):
        values, lengths = pad_packed_sequence(given, batch_first=True)
    elif given.is_nested:
        values, lengths = pad_sequence(given.unbind(), batch_first=True), torch.tensor([len(own) for own in given.unbind()])
    else:
        return (given if batch_first or given.dim() < 2 else given.transpose(0, 1)), None
    return values, torch.arange(values.shape[1], device=values.device) < lengths.to(values.device)[:, None]
