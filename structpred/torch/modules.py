"""Losses and layers as `nn.Module`, their autograd functions, and batches of scores: padded, or as flat float64 arrays.

A derivative that is not known raises: it is never taken for a constant.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence, pad_sequence

from structpred.core.oracle import Oracle, Shape
from structpred.errors import DataError, MissingCapabilityError, ParameterError
from structpred.layers import Layer, LayerRecord, Loss, LossRecord, Scores

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


def array(given: torch.Tensor) -> Numbers:
    """A tensor's numbers, flat, on the CPU, without its history; they may share its memory."""
    if given.dtype not in _KNOWN:
        given = given.to(torch.float64)
    return given.numpy(force=True).reshape(-1)


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


def checked_batch(
    given: Any, mask: torch.Tensor | None, batch_first: bool, width: int | None
) -> tuple[torch.Tensor, torch.Tensor]:
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


def beside(given: Any, scores: torch.Tensor, name: str, batch_first: bool) -> torch.Tensor:
    """Whole numbers or truth values, one a position of the scores, else DataError; padded, packed or nested as they may be."""
    own, _ = _padded(given, batch_first)
    if own.shape != scores.shape[:2] or own.is_floating_point() or own.device != scores.device:
        expected, came = (f"{tuple(one.shape[:2])} on {one.device}" for one in (scores, own))
        raise DataError(f"{name}: expected whole numbers or truth values (batch, time) = {expected}, got {own.dtype} {came}")
    return own


def check_some(kept: npt.NDArray[np.bool_]) -> None:
    """DataError where a batch has positions, and none of them is there."""
    if kept.size and not kept.any():
        raise DataError(f"all {kept.size} positions of the batch are masked, or have no label: is the mask inverted?")


def reduced(values: torch.Tensor, mask: torch.Tensor, reduction: str) -> torch.Tensor:
    """The values (B,), their sum, their mean, or the sum by the number of positions that are there."""
    ways = {"none": lambda: values, "sum": values.sum, "mean": values.mean, "token_mean": lambda: values.sum() / mask.sum()}
    if reduction not in ways:
        raise ParameterError(f"reduction: expected one of {', '.join(ways)}, got {reduction!r}")
    return ways[reduction]()


def _padded(given: Any, batch_first: bool) -> tuple[torch.Tensor, torch.Tensor | None]:
    """(B, T, ...), and (B, T) which positions there are; None for a tensor that was padded before."""
    if isinstance(given, PackedSequence):
        values, lengths = pad_packed_sequence(given, batch_first=True)
    elif not isinstance(given, torch.Tensor):
        raise DataError(f"expected a tensor or a PackedSequence, got {type(given).__name__}")
    elif given.is_nested:
        values, lengths = pad_sequence(given.unbind(), batch_first=True), torch.tensor([len(own) for own in given.unbind()])
    else:
        return (given if batch_first or given.dim() < 2 else given.transpose(0, 1)), None
    return values, torch.arange(values.shape[1], device=values.device) < lengths.to(values.device)[:, None]


class _Module(torch.nn.Module):
    """What losses and layers share: the batch, and the number of the step, which is saved with the network."""

    def __init__(self, inner: Loss | Layer, n_jobs: int | None) -> None:
        super().__init__()
        self.n_jobs, self.step, self._inner = n_jobs, 0, inner
        self._kept: tuple[Scores, ...] = ()

    def _batch(self, shapes: Sequence[Shape], fixed: tuple[Any, Any] | None) -> Scores:
        """The batch of these shapes, one of the last two where they are the same: data of one size, whose last batch is short."""
        if fixed is not None:
            return Scores.of(self._inner.oracle, shapes, fixed=(plain(fixed[0]), plain(fixed[1])), n_jobs=self.n_jobs)
        key = tuple(shapes)
        for batch in self._kept:
            if batch.shapes == key:
                return batch
        self._kept = (Scores.of(self._inner.oracle, key, n_jobs=self.n_jobs), *self._kept[:1])
        return self._kept[0]

    def _next_step(self, given: int | None) -> int:
        """The number of the step for noise: as given, else one more each time in training mode, and 0 in evaluation."""
        if given is not None or not self.training:
            return given or 0
        self.step += 1
        return self.step

    def forward(
        self, theta: torch.Tensor, *unnamed: Any, shapes: Sequence[Shape] | None = None, fixed: tuple[Any, Any] | None = None,
        step: int | None = None, **given: Any,
    ) -> torch.Tensor:  # fmt: skip
        """The losses (n,), in float32 at least under autocast, or the points; in the scores' type and device.

        theta: (n, p), flat (size,), or nested. shapes: may be left out beside (n, p) where the oracle has one alone. `given`:
        arrays or tensors; for losses gold, true_scores or true_costs, costs, pool, ids, as for `structpred.layers.Loss`; for
        layers ids, names of instances, for noise and warm starts. step: its number, for noise; without it training
        counts on and evaluation has 0. ParameterError where scores and costs could be mistaken: they are given by name.
        """
        if unnamed:
            name = type(self._inner).__name__
            raise ParameterError(
                f"{name}: write what the second argument is: loss(costs, true_costs=...) for predicted and true costs, "
                "which are minimised (as in PyEPO), or loss(scores, true_scores=...) for scores, which are maximised"
            )
        return self.record(theta, shapes=shapes, fixed=fixed, step=step, **given)[0]

    def record(
        self, theta: torch.Tensor, *, shapes: Sequence[Shape] | None = None, fixed: tuple[Any, Any] | None = None,
        step: int | None = None, **given: Any,
    ) -> tuple[torch.Tensor, Any]:  # fmt: skip
        """What `forward` gives, and the record of the loss or layer: decisions, gaps, the flip rate."""
        if shapes is None:
            only = self._inner.oracle.only_shape
            if only is None or theta.dim() != 2:
                raise ParameterError(
                    "shapes= is missing: one an instance; only (n, p) scores of an oracle with one shape need none"
                )
            shapes = [only] * len(theta)
        batch, asked = self._batch(shapes, fixed), self._next_step(step)
        known = {name: plain(value) for name, value in given.items()}
        found: list[Any] = []

        def call(scores: Any) -> Any:
            found.append(self._inner(batch, scores, step=asked, **known))
            return found[0]

        return self._applied(theta, call, batch), found[0]

    @abstractmethod
    def _applied(self, theta: torch.Tensor, call: Callable[[Any], Any], batch: Scores) -> torch.Tensor:
        """What the autograd function gives, which asks `call` once for a record."""

    def get_extra_state(self) -> dict[str, Any]:
        """The number of the step, and what calls leave behind for later ones: numbers, tensors and texts, for `state_dict`."""
        own = self._inner.get_state()
        return {
            "step": self.step,
            **{name: torch.from_numpy(one) if isinstance(one, np.ndarray) else one for name, one in own.items()},
        }

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Take them from `load_state_dict`. Raises DataError for what does not fit together."""
        self.step = int(state["step"])
        own = {name: one for name, one in state.items() if name != "step"}
        self._inner.set_state({name: one.cpu().numpy() if isinstance(one, torch.Tensor) else one for name, one in own.items()})

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": ()}


class LossModule(_Module):
    """A loss of part scores as a module: ``value = module(net(x), shapes=shapes, gold=labels).mean()``.

    Parameters
    ----------
    loss : structpred.layers.Loss
    n_jobs : int, optional
        Threads for oracles with `argmax_batch`; results do not depend on it.

    Raises
    ------
    DataError
        In the forward pass for what the loss refuses, naming sample and part.

    Examples
    --------
    >>> from structpred.layers import SPOPlus
    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> module = LossModule(SPOPlus(MulticlassOracle()))
    >>> theta = torch.tensor([[0.0, 2.0, 1.0]], requires_grad=True)
    >>> module(theta, shapes=[(3,)], true_scores=torch.tensor([[1.0, 0.0, 0.0]])).tolist()
    [5.0]
    """

    def __init__(self, loss: Loss, *, n_jobs: int | None = None) -> None:
        super().__init__(loss, n_jobs)
        self.loss = loss

    def _applied(self, theta: torch.Tensor, call: Callable[[Any], Any], batch: Scores) -> torch.Tensor:
        theta = checked(theta)
        if theta.dtype not in _KNOWN and torch.is_autocast_enabled(theta.device.type):  # as autocast does with torch's own losses
            theta = theta.float()
        return LossFunction.apply(theta, call, batch, type(self.loss).__name__)


class LayerModule(_Module):
    """A layer as a module: ``mu = module(net(x), shapes=shapes)``, in the form, type and device of the scores.

    Parameters
    ----------
    layer : structpred.layers.Layer
    n_jobs : int, optional
        Threads for oracles with `argmax_batch`; results do not depend on it.

    Raises
    ------
    DataError
        In either pass for numbers that are not finite, naming sample and part.

    Examples
    --------
    >>> from structpred.layers import SparseMAP
    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> LayerModule(SparseMAP(MulticlassOracle()))(torch.tensor([[2.0, 0.0]]), shapes=[(2,)]).tolist()
    [[1.0, 0.0]]
    """

    def __init__(self, layer: Layer, *, n_jobs: int | None = None) -> None:
        super().__init__(layer, n_jobs)
        self.layer = layer

    def _applied(self, theta: torch.Tensor, call: Callable[[Any], Any], batch: Scores) -> torch.Tensor:
        points: torch.Tensor = LayerFunction.apply(checked(theta), call, type(self.layer).__name__)
        if not theta.is_nested:
            return points
        pieces = theta.unbind()
        split = points.split([own.numel() for own in pieces])
        return torch.nested.as_nested_tensor(
            [own.reshape(old.shape) for own, old in zip(split, pieces, strict=True)], layout=theta.layout
        )


@cache
def module_of(kind: type[Loss] | type[Layer]) -> type[_Module]:
    """The module class of a loss or layer: it takes the oracle and the settings of `kind`, and n_jobs."""
    parent: type[Any] = LossModule if issubclass(kind, Loss) else LayerModule

    def __init__(self: Any, oracle: Oracle, *more: Any, n_jobs: int | None = None, **settings: Any) -> None:
        parent.__init__(self, kind(oracle, *more, **settings), n_jobs=n_jobs)

    body = {"__init__": __init__, "__doc__": kind.__doc__, "__module__": "structpred.torch", "__qualname__": kind.__name__}
    return type(kind.__name__, (parent,), body)
