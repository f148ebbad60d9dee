"""What a user fits: the only place that composes features, an oracle, a loss and a trainer. A name is loaded when it is used."""

import importlib
from typing import TYPE_CHECKING, Any

from structpred.models.places import PLACES

if TYPE_CHECKING:
    from structpred.models.chain.labeler import ChainLabeler
    from structpred.models.fields.graph import GraphLabeler
    from structpred.models.fields.hierarchical import HierarchicalMultiLabel
    from structpred.models.fields.multilabel import MultiLabelMRF
    from structpred.models.files import load
    from structpred.models.kernels.gaussian_process import GaussianProcessLabeler
    from structpred.models.kernels.labeler import KernelChainLabeler
    from structpred.models.kernels.random_features import RandomFeatures
    from structpred.models.latent import LatentSVM
    from structpred.models.linear.classifier import LinearClassifier
    from structpred.models.linear.ordinal import LinearOrdinal
    from structpred.models.linear.regressor import LinearRegressor
    from structpred.models.linear.similarities import SimilarityFeatures
    from structpred.models.parser.parser import DependencyParser
    from structpred.models.robust import RobustSVM
    from structpred.models.semi_supervised import SemiSupervisedSVM
    from structpred.models.structured import StructuredPredictor

__all__ = [
    "ChainLabeler",
    "DependencyParser",
    "GaussianProcessLabeler",
    "GraphLabeler",
    "HierarchicalMultiLabel",
    "KernelChainLabeler",
    "LatentSVM",
    "LinearClassifier",
    "LinearOrdinal",
    "LinearRegressor",
    "MultiLabelMRF",
    "RandomFeatures",
    "RobustSVM",
    "SemiSupervisedSVM",
    "SimilarityFeatures",
    "StructuredPredictor",
    "load",
]


def __getattr__(name: str) -> Any:
    """Load a public name: the linear models and the kernel machines import scikit-learn, the models of structures do not."""
    if name in PLACES:
        return getattr(importlib.import_module(PLACES[name]), name)
    raise AttributeError(f"module 'structpred.models' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted({*globals(), *__all__})
