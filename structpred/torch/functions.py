"""The autograd functions of losses and layers, and batches of part scores as tensors and as flat float64 arrays.

A derivative that is not known raises: it is never taken for a constant.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from structpred.errors import DataError, MissingCapabilityError
from structpred.layers import LayerRecord, LossRecord
from structpred.layers.record import Scores

#: float types that NumPy has, too, and that are as exact in float64
_KNOWN = (torch.float32, torch.float64)

#: numbers as they are in a tensor; losses and layers turn them into float64
Numbers = npt.NDArray[np.float32 | np.float64]


class LossFunction(torch.autograd.Function):
    """Scores -> the values of a loss, (n,); backward multiplies the gradient that came with them."""

    @staticmethod
    def forward(ctx: Any, theta: torch.Tensor, call: Callable[[Numbers], LossRecord], batch: Scores, name: str) -> torch.Tensor:
        """`call` is asked once; theta: in one or two dimensions; name: of the loss."""
        record = call(array(theta))
        ctx.save_for_backward(theta)
        ctx.given = record, batch, name
        return tensor(record.values, theta)

    @staticmethod
    def backward(ctx: Any, upstream: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        """The gradient of each instance, times what came from above; the Hessian product is its derivative, if it is known."""
        record, batch, name = ctx.given
        (theta,) = ctx.saved_tensors

        def gradient() -> torch.Tensor:
            return tensor(batch.spread(array(upstream)) * record.gradient, theta).view(theta.shape)

        def second(above: torch.Tensor, first: torch.Tensor, theta: torch.Tensor) -> Any:
            def products() -> tuple[torch.Tensor, torch.Tensor]:
                v = array(above)
                bent = batch.spread(array(first)) * record.curvature(v)
                return tensor(batch.dots(record.gradient, v), first), tensor(bent, theta).view(theta.shape)

            return _Derivative.apply(products, partial(_refuse, name, "third"), above, first, theta)

        further = second if record.curvature is not None else partial(_refuse, name, "second")
        return _Derivative.apply(gradient, further, upstream, theta), None, None, None


class LayerFunction(torch.autograd.Function):
    """Scores -> points of the hulls, in the form of the scores; backward is the layer's pull-back."""

    @staticmethod
    def forward(ctx: Any, theta: torch.Tensor, call: Callable[[Numbers], LayerRecord], name: str) -> torch.Tensor:
        """`call` is asked once; theta: in one or two dimensions; name: of the layer."""
        record = call(array(theta))
        ctx.save_for_backward(theta)
        ctx.given = record.pull, name
        return tensor(record.mu, theta).view(theta.shape)

    @staticmethod
    def backward(ctx: Any, upstream: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """J^T times what came from above. Raises DataError, naming sample and part, where that is not finite."""
        pull, name = ctx.given
        (theta,) = ctx.saved_tensors

        def pulled() -> torch.Tensor:
            return tensor(pull(array(upstream)), theta).view(theta.shape)

        return _Derivative.apply(pulled, partial(_refuse, name, "second"), upstream, theta), None, None


class _Derivative(torch.autograd.Function):
    """found(), which hangs on the tensors behind it; its own derivative is further(what came from above, these tensors)."""

    @staticmethod
    def forward(ctx: Any, found: Callable[[], Any], further: Callable[..., Any], *behind: torch.Tensor) -> Any:
        ctx.save_for_backward(*behind)
        ctx.further = further
        return found()

    @staticmethod
    def backward(ctx: Any, *upstream: torch.Tensor) -> Any:
        return None, None, *ctx.further(*upstream, *ctx.saved_tensors)


def _refuse(name: str, order: str, *tensors: torch.Tensor) -> Any:
    raise MissingCapabilityError(
        f"{name} has no {order} derivative here: a gradient of its gradient was asked for (a gradient penalty, a Hessian, "
        "create_graph=True). CRF and SoftMarginCRF have the second, nothing has a third; detach() what shall be constant"
    )


def checked(theta: torch.Tensor) -> torch.Tensor:
    """The scores of a batch in one or two dimensions, instance after instance; autograd continues through it.

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
