"""Learning algorithms. Each is one file, written once over a task; none knows a structure.

>>> from structpred.trainers import BCFW
>>> BCFW().name
'bcfw'
"""

from structpred.runtime.discovery import lazy_classes
from structpred.runtime.moved import leave_behind

__getattr__, __dir__ = lazy_classes(__name__, "structpred.trainers.problem:Trainer")
leave_behind(
    __name__,
    {
        "structpred.trainers.blocks": ("arena", "corner_spaces", "dual_sets"),
        "structpred.trainers.online": ("function_weights:grouped_weights", "grouped_weights", "visits:updates"),
        "structpred.trainers.planes": ("bundles", "cutting_planes", "master_qp"),
        "structpred.trainers.rows": ("column_ascent:label_ascent", "label_ascent"),
        "structpred.trainers.running": ("bounds", "checkpoints", "own_trainers:bounds", "progress", "stream"),
        "structpred.trainers.shards": ("rounds", "sharded:rounds"),
        __name__: ("inner:problem", "power_iteration:pragam", "tangents:lbfgs"),
        "structpred.models": ("pruning:groups",),
    },
)
