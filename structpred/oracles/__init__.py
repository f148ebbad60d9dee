"""Inference oracles: one structure, one file. To add one, write a file here or anywhere else; there is no registry.

>>> from structpred.oracles import ChainOracle
>>> ChainOracle().argmax([0.0, 1.0, 1.0, 0.0, 5.0, 0.0, 0.0, 0.0], (2, 2)).tolist()
[0, 0]
"""

from structpred.runtime.discovery import lazy_classes

__getattr__, __dir__ = lazy_classes(__name__, "structpred.core.oracle:Oracle")
