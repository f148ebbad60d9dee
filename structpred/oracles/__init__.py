"""Inference oracles: one structure, one file. To add one, write a file here or anywhere else; there is no registry.

>>> from structpred.oracles import ChainOracle
>>> ChainOracle(n_labels=2).argmax([0.0, 1.0, 0.0, 0.0, 0.0, 0.0], (1,)).tolist()
[1]
"""

from structpred.core.discovery import lazy_classes

__getattr__, __dir__ = lazy_classes(__name__, "structpred.core.oracle:Oracle")
