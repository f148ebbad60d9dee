"""Batches of part scores as tensors, and the flat float64 arrays that losses and layers work on."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from structpred.errors import DataError

#: float types that NumPy has, too, and that are as exact in float64
_KNOWN = (torch.float32, torch.float64)

#: numbers as they are in a tensor; losses and layers turn them into float64
Numbers = npt.NDArray[np.float32 | np.float64]


def checked(theta: torch.Tensor) -> torch.Tensor:
    """The scores of a batch in one or two dimensions, instance after instance; autograd goes on through it.

    theta: (n, p), (size,), or nested with one component an instance, of any shape. Raises DataError for others.
    """
    if not isinstance(theta, torch.Tensor) or not theta.is_floating_point():
        came = f"{theta.dtype}" if isinstance(theta, torch.Tensor) else type(theta).__name__
        raise DataError(f"expected a tensor of floats with the part scores, got {came}")
    if theta.is_nested:
        return torch.cat([own.reshape(-1) for own in theta.unbind()])
    if theta.dim() > 2:
        raise DataError(f"expected scores (n, p), flat, or nested, got shape {tuple(theta.shape)}: reshape them to (n, p)")
    return theta


def precise(theta: torch.Tensor) -> torch.Tensor:
    """The scores in float32 at least where autocast is on, which is what it does with torch's own losses."""
    coarse = theta.dtype not in _KNOWN and torch.is_autocast_enabled(theta.device.type)
    return theta.float() if coarse else theta


def shaped(points: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Numbers as `checked` gives them in the form that the scores had."""
    if not like.is_nested:
        return points
    pieces = like.unbind()
    split = points.split([own.numel() for own in pieces])
    return torch.nested.as_nested_tensor(
        [own.reshape(old.shape) for own, old in zip(split, pieces, strict=True)], layout=like.layout
    )


def array(given: torch.Tensor) -> Numbers:
    """A tensor's numbers, flat, on the CPU, without its history; they may share its memory."""
    if given.dtype not in _KNOWN:
        given = given.to(torch.float64)
    found: Numbers = given.numpy(force=True).reshape(-1)
    return found


def tensor(numbers: npt.NDArray[np.float64], like: torch.Tensor) -> torch.Tensor:
    """Numbers as a tensor of the type and on the device of another one."""
    return torch.from_numpy(numbers).to(like.device, like.dtype)


def plain(given: Any) -> Any:
    """What a loss is given, without tensors: float tensors become flat arrays, others arrays; sequences item by item."""
    if isinstance(given, torch.Tensor):
        return array(checked(given)) if given.is_floating_point() else given.numpy(force=True)
    if isinstance(given, Sequence) and not isinstance(given, str) and any(isinstance(own, torch.Tensor) for own in given):
        return [plain(own) for own in given]
    return given
