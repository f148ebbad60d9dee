"""Compiled code that is welded to one feature map and one oracle: an option above both, never a duty of either."""

from structpred.task.fast.welds import Weld, register

_FEATURES = ("scores", "fixed_scores", "adjoint", "n_parts")
_BLOCKS = (*_FEATURES, "score_block")
_PARTS = ("argmax", "argmax_batch", "parts", "n_parts")
_ORACLE = (*_PARTS, "marginals", "label_grid")
_SEARCH = (*_ORACLE, "_best", "_rows")

_CHAINS = ("structpred.oracles.chain:ChainOracle",)
_TREES = ("structpred.oracles.projective:ProjectiveOracle", "structpred.oracles.arborescence:ArborescenceOracle")
_SEGMENTS = ("structpred.oracles.semimarkov:SemiMarkovOracle",)
_FIELDS = (
    "structpred.oracles.tree_mrf:TreeMRF",
    "structpred.oracles.mrf_enumeration:EnumerationMRF",
    "structpred.oracles.label_paths:LabelPaths",
)
_SEQUENCES, _POSITIONS, _ARC_MAP, _GRAPH_MAP, _SEGMENT_MAP = (
    f"structpred.features.{name}Features"
    for name in ("sequences:Sequence", "positions:Position", "arcs:Arc", "graphs:Graph", "segments:Segment")
)

register(
    Weld("pair", "structpred.fused.chains:chain_pair", _SEQUENCES, _FEATURES, _CHAINS, _ORACLE),
    Weld("pair", "structpred.fused.chains:PositionPair", _POSITIONS, _FEATURES, _CHAINS, _ORACLE),
    Weld("steps", "structpred.fused.chains:chain_steps", _SEQUENCES, _FEATURES, _CHAINS, _ORACLE),
    Weld("steps", "structpred.fused.chains:chain_steps", _POSITIONS, _FEATURES, _CHAINS, _ORACLE),
    Weld("steps", "structpred.fused.trees:tree_steps", _ARC_MAP, _BLOCKS, _TREES, _ORACLE),
    Weld("steps", "structpred.fused.graphs:graph_steps", _GRAPH_MAP, _BLOCKS, _FIELDS, _SEARCH),
    Weld("steps", "structpred.fused.segments:SegmentSteps", _SEGMENT_MAP, _BLOCKS, _SEGMENTS, _PARTS),
    Weld("marginal blocks", "structpred.fused.label_sets:layout_of", _GRAPH_MAP, _BLOCKS, _FIELDS, _PARTS),
)
