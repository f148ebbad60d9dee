"""The two autograd functions: one for all losses, one for all layers. Both can be differentiated once."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.autograd.function import once_differentiable

from structpred.layers import LayerRecord, LossRecord
from structpred.layers.record import Scores
from structpred.torch.tensors import Numbers, array, tensor

Floats = npt.NDArray[np.float64]


class LossFunction(torch.autograd.Function):
    """Scores -> the values of a loss, (n,); backward multiplies the gradient that came with them."""

    @staticmethod
    def forward(ctx: Any, theta: torch.Tensor, call: Callable[[Numbers], LossRecord], batch: Scores) -> torch.Tensor:
        """`call` is asked once; theta: in one or two dimensions."""
        record = call(array(theta))
        ctx.gradient, ctx.batch, ctx.shape = record.gradient, batch, theta.shape
        return tensor(record.values, theta)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """The gradient of each instance, times what came from above."""
        return tensor(ctx.batch.spread(array(upstream)) * ctx.gradient, upstream).view(ctx.shape), None, None


class LayerFunction(torch.autograd.Function):
    """Scores -> points of the hulls, in the form of the scores; backward is the layer's pull-back."""

    @staticmethod
    def forward(ctx: Any, theta: torch.Tensor, call: Callable[[Numbers], LayerRecord]) -> torch.Tensor:
        """`call` is asked once; theta: in one or two dimensions."""
        record = call(array(theta))
        ctx.pull = record.pull
        return tensor(record.mu, theta).view(theta.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: torch.Tensor) -> tuple[torch.Tensor, None]:
        """J^T times what came from above. Raises DataError, naming sample and part, where that is not finite."""
        return tensor(ctx.pull(array(upstream)), upstream).view(upstream.shape), None
