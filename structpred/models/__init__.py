"""What a user fits: the only place that composes features, an oracle, a loss and a trainer."""

from structpred.models.chain import ChainLabeler
from structpred.models.files import load
from structpred.models.graph import GraphLabeler
from structpred.models.hierarchical import HierarchicalMultiLabel
from structpred.models.multilabel import MultiLabelMRF
from structpred.models.parser import DependencyParser
from structpred.models.structured import StructuredPredictor

__all__ = [
    "ChainLabeler",
    "DependencyParser",
    "GraphLabeler",
    "HierarchicalMultiLabel",
    "MultiLabelMRF",
    "StructuredPredictor",
    "load",
]
