"""Trees that are known in part: -1 as the head of a word, `_` as its relation."""

from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.types import Integers
from structpred.core.weights import Vector
from structpred.errors import DataError
from structpred.features.arcs import ArcCandidates
from structpred.io.treebanks.treebank import Treebank
from structpred.models.parser.arcs import candidate_heads, choose_projective, tree_oracle
from structpred.models.partial import Ruled, tell_missing
from structpred.task.partial_task import PartialTask
from structpred.task.task import Task


def filled_heads(treebank: Treebank) -> Integers:
    """The heads, with the word before in the place of missing ones: an arc to it crosses no other."""
    place = np.arange(treebank.n_words) - np.repeat(treebank.offsets[:-1], treebank.lengths)
    found: Integers = np.where(treebank.heads < 0, place, treebank.heads)
    return found


def ruled_out(treebank: Treebank) -> Ruled:
    """As `ruled_arcs`, for all data there will be: some heads must be known, and the log says how many are missing."""
    missing = treebank.heads < 0
    if missing.all():
        raise DataError(f"{treebank.where(0)}: expected a head: a parser learns from trees; got none in the whole treebank")
    if missing.any():
        tell_missing(int(missing.sum()), 0, len(missing), "heads")
    return ruled_arcs(treebank)


def choose_kind(projective: bool | None, treebank: Treebank, single_root: bool) -> tuple[bool, npt.NDArray[np.bool_]]:
    """As `choose_projective`, by the arcs that are known; sentences that no projective tree completes count as crossing."""
    chosen, crossing = choose_projective(projective, filled_heads(treebank), treebank.offsets)
    oracle = tree_oracle(chosen, single_root)
    for i, scores in ruled_arcs(treebank).items() if chosen else ():
        shape = (int(treebank.lengths[i]),)
        crossing[i] |= scores[oracle.parts(oracle.argmax(scores, shape), shape)].min() <= 0.5 * FORBIDDEN
    return chosen, crossing


def ruled_arcs(treebank: Treebank) -> Ruled:
    """For sentences with missing heads the scores that forbid the arcs that the others exclude."""
    missing = treebank.heads < 0
    found: dict[int, npt.NDArray[np.float64]] = {}
    sentences = np.repeat(np.arange(len(treebank)), treebank.lengths)
    for i in np.unique(sentences[missing]).tolist():
        heads = treebank.heads[treebank.offsets[i] : treebank.offsets[i + 1]]
        scores = np.zeros((len(heads), len(heads) + 1))
        known = np.flatnonzero(heads >= 0)
        scores[known] = FORBIDDEN
        scores[known, heads[known]] = 0.0
        found[i] = scores.ravel()
    return found


def completed_heads(task: Task, w: Vector, heads: Integers) -> Integers:
    """The heads, with those of the best trees that agree with the others in the place of missing ones."""
    return np.concatenate(task.completed(w)) if isinstance(task, PartialTask) else heads


def training_candidates(pruner: Any, treebank: Treebank, k: int | None, ruled: Ruled) -> tuple[ArcCandidates | None, int]:
    """The heads that pruning keeps in training, None for all; and how many of the true ones it keeps by itself.

    Sentences of which some heads are missing keep all: a few may not do.
    """
    if pruner is None:
        return None, 0
    whole = [i in ruled for i in range(len(treebank))] if ruled else None
    features = pruner._features(pruner.featurizer_.transform(treebank))
    return candidate_heads(features, pruner.coef_, k or 1, filled_heads(treebank), whole=whole)
