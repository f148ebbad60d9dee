"""What outputs along a hierarchy may have to be besides closed: a rule is an entry of one table."""

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from structpred.core.types import Integers
from structpred.data.hierarchy import LabelHierarchy
from structpred.errors import DataError, ParameterError
from structpred.oracles.fields._label_forest import ForestOracle, forest_of
from structpred.oracles.label_paths import LabelPaths
from structpred.oracles.leaf_sets import LeafSets

log = logging.getLogger("structpred.models")


class Rule(NamedTuple):
    """oracle: over the outputs that keep it. words: what they are. trains: whether training is over them, too, not over all."""

    oracle: ForestOracle
    words: str
    trains: bool = True


#: the strictest first
RULES = {
    "path": Rule(LabelPaths(), "one path from a root to a leaf"),
    "node": Rule(LabelPaths("label"), "one path from a root to any label"),
    "trees": Rule(LabelPaths("tree"), "in each tree one path from its root to any label, or none"),
    "leaf": Rule(LeafSets(), "a set with a leaf on", trains=False),
}
Against = dict[str, tuple[int, str]]  # for each rule that is asked about the number of rows against it, and the first of them


def rows_against(model: Any, hierarchy: LabelHierarchy, Y: Integers) -> Against:
    """The rows against the rules that `require` asks about, without those with missing labels; DataError where it is one rule."""
    require, auto, found = model.require, model.require == "auto", Against()
    if not isinstance(model.tables, bool):
        raise ParameterError(f"tables: expected True or False, got {model.tables!r}")
    other = "tables=True" if model.tables else "an oracle of your own" if model.oracle is not None else None
    if require is None or (auto and (other or not hierarchy.is_tree or (Y < 0).any())):
        return found
    if not auto and require not in RULES:
        raise ParameterError(f"require: expected {', '.join(map(repr, RULES))}, 'auto' or None, got {require!r}")
    if other:
        raise ParameterError(f"require={require!r} cannot be combined with {other}")
    hierarchy.require_tree()
    forest = forest_of(tuple(next(iter(above), -1) for above in hierarchy.parents))
    for name in RULES if auto else (require,):
        if auto and name == "trees" and all(len(below) < 2 for below in hierarchy.children):
            continue  # any closed set has one path a tree
        bad = np.flatnonzero(~RULES[name].oracle.allowed(Y, forest) & (Y >= 0).all(axis=1))
        on = ", ".join(repr(hierarchy.names[k]) for k in np.flatnonzero(Y[bad[:1]].any(axis=0))[:10].tolist()) or "none"
        if len(bad) and not auto:
            raise DataError(f"sample {bad[0]}: require={name!r} expects {RULES[name].words}, got the labels {on}")
        found[name] = len(bad), f"sample {bad[0]}, the labels {on}" if len(bad) else ""
    return found


def tightest(shards: Sequence[Against]) -> str | None:
    """The first rule that all rows keep; the log says which, and what stands against the stricter ones."""
    for name in shards[0]:
        if not (n := sum(one[name][0] for one in shards)):
            log.info("outputs are %s (require=%r)", RULES[name].words, name)
            return name
        first = next(f"shard {k}, " * (k > 0) + one[name][1] for k, one in enumerate(shards) if one[name][0])
        log.info("not require=%r, %s: against it %s rows, first %s", name, RULES[name].words, f"{n:,}", first)
    if shards[0]:
        log.info("outputs are any closed sets (require=None)")
    return None
