"""Losses of part scores and differentiable layers over any oracle, one a file, over ragged batches.

>>> from structpred.layers import Scores, SPOPlus
>>> from structpred.oracles.multiclass import MulticlassOracle
>>> oracle = MulticlassOracle()
>>> SPOPlus(oracle)(Scores.of(oracle, [(2,)]), [0.0, 1.0], true_scores=[1.0, 0.0]).values.tolist()
[3.0]
"""

from typing import TYPE_CHECKING

from structpred.runtime.lazy_names import lazy_names

if TYPE_CHECKING:
    from structpred.layers.blackbox import BlackBoxLayer, StraightThroughLayer
    from structpred.layers.cone import ConeAlignment
    from structpred.layers.distribution import Distribution
    from structpred.layers.expected_cost import ExpectedCost
    from structpred.layers.fenchel_young import CRF, Entropy, FenchelYoung, Hard, Hinge, Perceptron, SoftMarginCRF, part_costs
    from structpred.layers.loss import Layer, LayerRecord, Loss, LossRecord
    from structpred.layers.perturbation_gradient import PerturbationGradient
    from structpred.layers.perturbed import PerturbedLayer, PerturbedLoss
    from structpred.layers.pooled import PooledOracle
    from structpred.layers.pools import NCE, ContrastiveMAP, ListwiseRanking, PairwiseRanking, PointwiseRanking
    from structpred.layers.record import Outputs, Scores
    from structpred.layers.smoothed_difference import AdaptiveSmoothedDifferenceLayer, SmoothedDifferenceLayer
    from structpred.layers.soft import SoftLayer
    from structpred.layers.sparsemap import SparseMAP, SparseMAPLoss
    from structpred.layers.spo_plus import SPOPlus
    from structpred.layers.surrogates import LossSurrogate, PerturbedSurrogate, ScoreSurrogate, SoftMargin, SparseMAPSurrogate

__all__ = [
    "CRF", "NCE", "AdaptiveSmoothedDifferenceLayer", "BlackBoxLayer", "ConeAlignment", "ContrastiveMAP",
    "Distribution", "Entropy",
    "ExpectedCost", "FenchelYoung", "Hard", "Hinge", "Layer", "LayerRecord", "ListwiseRanking", "Loss", "LossRecord",
    "LossSurrogate", "Outputs", "PairwiseRanking", "Perceptron", "PerturbationGradient", "PerturbedLayer", "PerturbedLoss",
    "PerturbedSurrogate", "PointwiseRanking", "PooledOracle", "SPOPlus", "ScoreSurrogate", "Scores",
    "SmoothedDifferenceLayer", "SoftLayer", "SoftMargin", "SoftMarginCRF", "SparseMAP", "SparseMAPLoss",
    "SparseMAPSurrogate",     "StraightThroughLayer", "part_costs",
]  # fmt: skip

__getattr__, __dir__ = lazy_names(__name__)
