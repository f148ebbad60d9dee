"""Learning algorithms. Each is one file, written once over a task; none knows a structure.

>>> from structpred.trainers import BCFW
>>> BCFW().name
'bcfw'
"""

from structpred.runtime.discovery import lazy_classes

__getattr__, __dir__ = lazy_classes(__name__, "structpred.trainers.problem:Trainer")
