"""structpred: structured prediction with pluggable inference oracles.

>>> import structpred
>>> structpred.Oracle.__name__, structpred.ChainLabeler.__name__
('Oracle', 'ChainLabeler')
"""

import logging
from typing import TYPE_CHECKING

from structpred import errors, fused  # noqa: F401 - the table of compiled code is filled
from structpred.models.public_names import FILES as _ESTIMATORS
from structpred.runtime.lazy_names import lazy_names
from structpred.runtime.moved import leave_behind

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

_FILES = {
    "contracts.checks": ("check_feature_map", "check_oracle"),
    "contracts.losses": ("check_loss",),
    "contracts.projections": ("check_projection", "check_prox"),
    "contracts.regularisers": ("check_regulariser",),
    "contracts.score_losses": ("check_layer", "check_scalar_loss", "check_score_loss"),
    "contracts.training": ("check_callbacks", "check_surrogate", "check_trainer"),
    "task.callback_task": ("CallbackTask",),
    "core.feature_map": ("FeatureMap",),
    "core.instances": ("Instance",),
    "core.oracle": ("Oracle",),
    "task.task": ("Task",),
    "features.label_rows": ("LabelRows",),
} | {f"models.{file}": names for file, names in _ESTIMATORS.items()}
#: packages that need no import of their own
_PACKAGES = (
    "bridges", "compat", "core", "data", "evaluation", "export", "features", "io", "layers", "models", "nonconvex", "objectives",
    "oracles", "projections", "report", "slack", "testing", "trainers", "tuning",
)  # fmt: skip
__getattr__, __dir__ = lazy_names(__name__, _FILES, ("errors", *_PACKAGES))
leave_behind(__name__, {
    __name__: (
        "contracts.fast_features:contracts.checks", "contracts.labels:contracts.rules", "contracts.report:contracts.engine",
        "data.name_table:data.vocabulary", "distributed.cutting:distributed.reading", "distributed.journal:distributed.predict",
        "distributed.outputs:distributed.predict", "distributed.parquet:distributed.shards", "distributed.plans:distributed.fit",
        "evaluation.parsing_scores:evaluation.parsing", "export.parts:export.programs",
        "io.multilabel.clus:io.multilabel.mulan", "io.templates.template:io.templates.templates",
        "layers.straight_through:layers.blackbox", "models.chain.explain:models.chain.inspection",
        "models.fields.hierarchical:models.fields.multilabel", "models.fields.sharding:models.fields.estimator",
        "models.inspections:models.explanations", "models.kernels.random_features:models.linear.similarities",
        "models.linear.ordinal:models.linear.classifier", "models.parser.inspection:models.parser.explain",
        "models.parser.settings:models.parser.sharding", "models.part_sharding:models.part_inputs",
        "report.groups:report.curves", "report.regret:report.solvers",
        "testing.search_checks:testing.input_checks", "tuning.tuned:tuning.halving",
    )
})  # fmt: skip
