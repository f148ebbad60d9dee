"""What a user fits: the only place that composes features, an oracle, a loss and a trainer. A name is loaded when it is used."""

from typing import TYPE_CHECKING

from structpred.runtime.lazy_names import lazy_names

if TYPE_CHECKING:
    from structpred.models.chain.labeler import ChainLabeler
    from structpred.models.constrained import Constraint
    from structpred.models.decision.model import DecisionModel
    from structpred.models.fields.graph import GraphLabeler
    from structpred.models.fields.multilabel import HierarchicalMultiLabel, MultiLabelMRF
    from structpred.models.files import load
    from structpred.models.kernels.labeler import GaussianProcessLabeler, KernelChainLabeler
    from structpred.models.latent import LatentSVM
    from structpred.models.linear.classifier import LinearClassifier, LinearOrdinal
    from structpred.models.linear.regressor import LinearRegressor
    from structpred.models.linear.similarities import RandomFeatures, SimilarityFeatures
    from structpred.models.parser.parser import DependencyParser
    from structpred.models.pipeline import ParsingPipeline
    from structpred.models.robust import RobustSVM
    from structpred.models.segments import SegmentLabeler
    from structpred.models.semi_supervised import SemiSupervisedSVM
    from structpred.models.structured import StructuredPredictor

__all__ = [
    "ChainLabeler", "Constraint", "DecisionModel", "DependencyParser", "GaussianProcessLabeler", "GraphLabeler",
    "HierarchicalMultiLabel", "KernelChainLabeler", "LatentSVM", "LinearClassifier", "LinearOrdinal", "LinearRegressor",
    "MultiLabelMRF", "ParsingPipeline", "RandomFeatures", "RobustSVM", "SegmentLabeler", "SemiSupervisedSVM",
    "SimilarityFeatures", "StructuredPredictor", "load",
]  # fmt: skip

__getattr__, __dir__ = lazy_names(__name__)
