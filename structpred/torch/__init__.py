"""PyTorch modules for every loss and layer of `structpred.layers`, under the same names: an oracle behind a neural network.

``SparseMAP(MyOracle())`` here is an `nn.Module` around ``structpred.layers.SparseMAP(MyOracle())``; losses are `LossModule`,
layers `LayerModule`. A loss or layer of your own becomes one by ``LossModule(loss)``, ``LayerModule(layer)``. Scores come as (n,
p), flat with ragged shapes one after the other, or as a nested tensor, in any float type and on any device; the work is done in
float64 on the CPU. `ChainCRF`, `SemiCRF` and `TreeCRF` take padded batches and masks.

>>> import torch
>>> from structpred.oracles.multiclass import MulticlassOracle
>>> from structpred.torch import SparseMAP
>>> theta = torch.tensor([[0.5, 0.0, -1.0]], requires_grad=True)
>>> mu = SparseMAP(MulticlassOracle())(theta, shapes=[(3,)])
>>> mu[0, 0].backward()
>>> mu.tolist(), theta.grad.tolist()
([[0.75, 0.25, 0.0]], [[0.5, -0.5, 0.0]])
"""

from importlib.util import find_spec
from typing import Any

from structpred.errors import DependencyError

if find_spec("torch") is None:
    raise DependencyError(
        "structpred.torch needs PyTorch: pip install torch (where there is no GPU, from PyTorch's CPU index), "
        "then 'structpred[torch]'"
    )

from structpred import layers
from structpred.torch.chain_crf import ChainCRF
from structpred.torch.modules import LayerModule, LossModule, module_of
from structpred.torch.scan import Scan
from structpred.torch.semi_crf import SemiCRF
from structpred.torch.tree_crf import TreeCRF

__all__ = ["ChainCRF", "LayerModule", "LossModule", "Scan", "SemiCRF", "TreeCRF"]


def __getattr__(name: str) -> Any:
    """The module of the loss or layer of that name."""
    kind = getattr(layers, name, None) if name in layers.__all__ else None
    if not (isinstance(kind, type) and issubclass(kind, layers.Loss | layers.Layer)) or kind in (layers.Loss, layers.Layer):
        raise AttributeError(f"module 'structpred.torch' has no {name!r}; it has the losses and layers of structpred.layers")
    return module_of(kind)


def __dir__() -> list[str]:
    return sorted({*__all__, *layers.__all__} - {"Layer", "Loss", "LayerRecord", "LossRecord", "Outputs", "Scores"})
