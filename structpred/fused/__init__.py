"""Compiled code that is welded to one feature map and one oracle: an option above both, never a duty of either."""

import logging

from structpred.core.block_steps import BlockSteps
from structpred.core.pairs import Pair
from structpred.core.part_steps import PartSteps
from structpred.core.stand_ins import redefined
from structpred.core.steps import Visits

log = logging.getLogger("structpred.fused")
_FEATURES = ("scores", "fixed_scores", "adjoint", "n_parts")
_GRAPHS = (*_FEATURES, "score_block")
_ARCS = (*_FEATURES, "score_into", "emit_difference", "block_scratch")
_ORACLE = ("argmax", "argmax_batch", "parts", "n_parts", "marginals", "label_grid")
_SEARCH = (*_ORACLE, "_best", "_rows")


def pair_of(features: object, oracle: object) -> Pair | None:
    """The pair of these two objects; None where there is none, or where a subclass changed what it was written for."""
    from structpred.features.positions import PositionFeatures
    from structpred.features.sequences import SequenceFeatures

    if not (isinstance(features, SequenceFeatures) and features.transitions) and not isinstance(features, PositionFeatures):
        return None
    from structpred.oracles.chain import ChainOracle

    if not isinstance(oracle, ChainOracle):
        return None
    kind = PositionFeatures if isinstance(features, PositionFeatures) else SequenceFeatures
    for thing, written, names in ((oracle, ChainOracle, _ORACLE), (features, kind, _FEATURES)):
        if (changed := redefined(thing, written, names)) is not None:
            log.info("no compiled steps for %s.%s, which was overridden: using plain steps", type(thing).__name__, changed)
            return None
    if isinstance(features, PositionFeatures):
        from structpred.fused.positions import PositionPair

        return PositionPair(features)
    from structpred.fused.chains import ChainPair

    return ChainPair(features)


def visits_of(steps: BlockSteps | PartSteps) -> Visits | None:
    """The compiled visits of these steps, towards trees or graphs; None for others, and where a subclass changed something."""
    return _tree_visits(steps) if isinstance(steps, BlockSteps) else _graph_visits(steps)


def _tree_visits(steps: BlockSteps) -> Visits | None:
    from structpred.features.arcs import ArcFeatures

    features, oracle = steps.features, steps.oracle
    if not isinstance(features, ArcFeatures) or features.fixed.rows is not None:
        return None
    from structpred.fused.trees import TreeVisits
    from structpred.oracles.arborescence import ArborescenceOracle
    from structpred.oracles.projective import ProjectiveOracle

    kind = next((kind for kind in (ProjectiveOracle, ArborescenceOracle) if isinstance(oracle, kind)), None)
    if kind is None or redefined(oracle, kind, _ORACLE) or redefined(features, ArcFeatures, _ARCS):
        return None
    return TreeVisits(steps, features, oracle).visit


def _graph_visits(steps: PartSteps) -> Visits | None:
    from structpred.features.graphs import GraphFeatures

    features, oracle = steps.inference.features, steps.inference.oracle
    if not isinstance(features, GraphFeatures) or steps.inference.bounded or redefined(features, GraphFeatures, _GRAPHS):
        return None
    from structpred.fused.graphs import graph_visits
    from structpred.oracles.label_paths import LabelPaths
    from structpred.oracles.mrf_enumeration import EnumerationMRF
    from structpred.oracles.tree_mrf import TreeMRF

    kind = next((kind for kind in (TreeMRF, EnumerationMRF, LabelPaths) if isinstance(oracle, kind)), None)
    return None if kind is None or redefined(oracle, kind, _SEARCH) else graph_visits(steps, features, oracle)
