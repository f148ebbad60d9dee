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
        "structpred.trainers.blocks": ("arena", "corner_spaces", "dual_sets", "function_weights"),
        "structpred.trainers.online": ("grouped_weights", "visits:updates"),
        "structpred.trainers.planes": ("bundles", "cutting_planes", "master_qp", "tangents"),
        "structpred.trainers.rows": ("column_ascent", "label_ascent"),
        "structpred.trainers.running": ("bounds", "checkpoints", "own_trainers", "progress", "stream"),
        "structpred.trainers.shards": ("rounds", "sharded"),
        __name__: ("inner:problem", "power_iteration:pragam"),
        "structpred.models": ("pruning:groups",),
    },
)
