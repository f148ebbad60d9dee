"""structpred: structured prediction with pluggable inference oracles.

>>> import structpred
>>> structpred.Oracle.__name__, structpred.ChainLabeler.__name__
('Oracle', 'ChainLabeler')
"""

import logging
from typing import TYPE_CHECKING

from structpred import errors, fused  # noqa: F401 - the table of compiled code is filled
from structpred.runtime.lazy_names import lazy_names

if TYPE_CHECKING:
    from structpred.contracts.checks import check_feature_map, check_oracle
    from structpred.contracts.losses import check_loss
    from structpred.contracts.projections import check_projection, check_prox
    from structpred.contracts.regularisers import check_regulariser
    from structpred.contracts.score_losses import check_layer, check_scalar_loss, check_score_loss
    from structpred.contracts.training import check_callbacks, check_surrogate, check_trainer
    from structpred.core.feature_map import FeatureMap
    from structpred.core.instances import Instance
    from structpred.core.oracle import Oracle
    from structpred.features.label_rows import LabelRows
    from structpred.models import *  # noqa: F403 - for type checkers: the estimators and `load`
    from structpred.task.callback_task import CallbackTask
    from structpred.task.task import Task

__version__ = "0.1.0"
__all__ = [
    "CallbackTask", "FeatureMap", "Instance", "LabelRows", "Oracle", "Task", "__version__", "check_callbacks",
    "check_feature_map", "check_layer", "check_loss", "check_oracle", "check_projection", "check_prox", "check_regulariser",
    "check_scalar_loss", "check_score_loss", "check_surrogate", "check_trainer", "errors",
]  # fmt: skip

logging.getLogger("structpred").addHandler(logging.NullHandler())

#: packages that need no import of their own
_PACKAGES = (
    "bridges", "compat", "core", "data", "evaluation", "export", "features", "io", "layers", "models", "nonconvex", "objectives",
    "oracles", "projections", "report", "slack", "trainers", "tuning",
)  # fmt: skip
__getattr__, __dir__ = lazy_names(__name__, ("errors", *_PACKAGES))
