"""The autograd functions of losses and layers. A derivative that is not known raises: it is never taken for a constant."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from structpred.errors import MissingCapabilityError
from structpred.layers import LayerRecord, LossRecord
from structpred.layers.record import Scores
from structpred.torch.tensors import Numbers, array, tensor


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
