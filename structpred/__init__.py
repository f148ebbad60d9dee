"""structpred: structured prediction with pluggable inference oracles.

>>> import structpred
>>> structpred.Oracle.__name__
'Oracle'
"""

import logging
from typing import TYPE_CHECKING, Any

from structpred import errors
from structpred.core import pairs

if TYPE_CHECKING:
    from structpred.core.callback_task import CallbackTask
    from structpred.core.contract_losses import check_loss
    from structpred.core.contracts import check_feature_map, check_oracle
    from structpred.core.features import FeatureMap
    from structpred.core.instances import Instance
    from structpred.core.label_rows import LabelRows
    from structpred.core.oracle import Oracle
    from structpred.core.task import Task

__version__ = "0.1.0"
__all__ = [
    "CallbackTask", "FeatureMap", "Instance", "LabelRows", "Oracle", "Task", "__version__", "check_feature_map", "check_loss",
    "check_oracle", "errors",
]  # fmt: skip

logging.getLogger("structpred").addHandler(logging.NullHandler())

_PUBLIC = {
    "CallbackTask": "structpred.core.callback_task",
    "FeatureMap": "structpred.core.features",
    "Instance": "structpred.core.instances",
    "LabelRows": "structpred.core.label_rows",
    "Oracle": "structpred.core.oracle",
    "Task": "structpred.core.task",
    "check_feature_map": "structpred.core.contracts",
    "check_loss": "structpred.core.contract_losses",
    "check_oracle": "structpred.core.contracts",
}


def _pair_of(features: object, oracle: object) -> pairs.Pair | None:
    from structpred.fused import pair_of

    return pair_of(features, oracle)


pairs.register(_pair_of)


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that importing structpred costs next to nothing."""
    import importlib

    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    if name in ("models", "evaluation", "testing"):
        return importlib.import_module(f"structpred.{name}")
    raise AttributeError(f"module 'structpred' has no attribute {name!r}")
