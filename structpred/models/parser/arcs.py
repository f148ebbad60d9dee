"""What a parser does with arc features: heads that are not known, decoding with constraints, pruning."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.data.sequences import AttributedSentences
from structpred.errors import DataError
from structpred.features.arcs import ArcCandidates, ArcFeatures
from structpred.features.fixed_scores import FixedParts
from structpred.io.treebanks.treebank import Treebank
from structpred.models.partial import Ruled
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.projective import ProjectiveOracle
from structpred.runtime.memory import check_fits
from structpred.runtime.settings import is_whole
from structpred.task.inference import part_scores

TreeOracle = ArborescenceOracle | ProjectiveOracle
#: where heads are chosen by marginals: what scores are multiplied by, and the least share of the best head's marginal
SHARPNESS, SHARE = 2.0, 3e-4


def tree_oracle(projective: bool, single_root: bool) -> TreeOracle:
    """The oracle of projective trees, or of all."""
    return ProjectiveOracle(single_root=single_root) if projective else ArborescenceOracle(single_root=single_root)


def is_projective(projective: bool | None, crossing: int, n_words: int) -> bool:
    """Whether to look for projective trees only. None: if less than one arc in a hundred crosses another one."""
    return crossing / max(n_words, 1) < 0.01 if projective is None else bool(projective)


def crossing_arcs(heads: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """1 for each word whose arc crosses another one of its sentence."""
    from structpred.oracles.trees._tree_kernels import mark_crossing

    crossing = np.zeros(len(heads), np.uint8)
    mark_crossing(heads, offsets, crossing)
    return crossing


def fixed_arcs(
    lengths: Sequence[int], fixed: Sequence[Mapping[int, int] | None] | None, forbidden: Sequence[Any] | None
) -> FixedParts | None:
    """Constraints as scores. fixed[i]: modifier -> its head; forbidden[i]: pairs (head, modifier); None for none.

    Raises DataError, naming the sample, for unknown words and malformed entries.
    """
    if fixed is None and forbidden is None:
        return None
    for name, given in (("fixed", fixed), ("forbidden", forbidden)):
        if given is not None and (isinstance(given, str | Mapping) or not isinstance(given, Sequence)):
            raise DataError(f"{name}: expected a list with an entry for each sentence, got {type(given).__name__}")
        if given is not None and len(given) != len(lengths):
            raise DataError(f"{name}: expected one entry per sentence, {len(lengths)}, got {len(given)}")
    found: list[Floats | None] = []
    for i, n in enumerate(lengths):
        arcs, barred = _pairs("fixed", fixed, n, i), _pairs("forbidden", forbidden, n, i)
        if not arcs and not barred:
            found.append(None)
            continue
        check_fits(8 * n * (n + 1), f"sample {i}: the constraints on a sentence of {n:,} words")
        scores = np.zeros((n, n + 1))
        for h, m in arcs:
            scores[m - 1] = FORBIDDEN
            scores[m - 1, h] = 0.0
        for h, m in barred:
            scores[m - 1, h] = FORBIDDEN
        found.append(scores.ravel())
    return FixedParts(found)


def _pairs(name: str, rules: Any, n: int, i: int) -> list[tuple[int, int]]:
    """The (head, modifier) pairs of sentence i in `fixed` or `forbidden`."""
    given = None if rules is None else rules[i]
    kind, form = (Mapping, "{word: its head}") if name == "fixed" else (Iterable, "a list of pairs (head, word)")
    if given is not None and (not isinstance(given, kind) or (kind is Iterable and isinstance(given, str | Mapping))):
        raise DataError(f"{name}, sample {i}: expected {form} or None, got {given!r}")
    pairs = [(h, m) for m, h in given.items()] if isinstance(given, Mapping) else list(given or ())
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise DataError(f"{name}, sample {i}: expected pairs (head, word), got {pair!r}")
        head, modifier = pair
        if not (is_whole(head) and is_whole(modifier)) or not (0 <= head <= n and 1 <= modifier <= n and head != modifier):
            expected = f"expected an arc from a head in 0..{n} to another word in 1..{n}"
            raise DataError(f"{name}, sample {i}: {expected}, got head {head!r}, modifier {modifier!r}")
    return pairs


def candidate_heads(
    features: ArcFeatures, w: Vector, k: int, heads: npt.NDArray[np.int64] | None = None, *, whole: Sequence[bool] | None = None,
    trees: TreeOracle | None = None,
) -> tuple[ArcCandidates, int]:  # fmt: skip
    """The k heads that a first model scores highest for each word, and the left neighbour, so that a tree always exists.

    heads: the true ones (flat), which are kept while training. whole: which sentences keep all heads. trees: not the scores of
    arcs decide but the marginals of these trees, and heads that are far less probable than the best one are left out, too.
    Returns also how many of the true arcs were among the candidates of the other sentences by themselves: what pruning loses is
    the rest.
    """
    from structpred.oracles.trees._tree_kernels import top_heads

    data = features.data
    starts, kept, end = np.zeros(data.n_tokens + 1, np.int64), 0, 0
    most = np.minimum(data.lengths, k + 2) if whole is None else np.where(whole, data.lengths, np.minimum(data.lengths, k + 2))
    check_fits(4 * int(most @ data.lengths), "the candidates of pruning")
    listed = np.empty(int(most @ data.lengths), np.int32)
    gold = np.empty(0, np.int64) if heads is None else heads
    for i, n in enumerate(data.lengths.tolist()):
        first = int(data.offsets[i])
        if whole is not None and whole[i]:
            listed[end : end + n * n] = np.nonzero(~np.eye(n, n + 1, 1, dtype=np.bool_))[1]  # all but the word itself
            starts[first + 1 : first + n + 1] = end + n * np.arange(1, n + 1)
            end += n * n
            continue
        scores, least = part_scores(features, w, i), 0.0
        if trees is not None:
            scores, least = trees.marginals(SHARPNESS * scores, (n,))[1], SHARE
        end, found = top_heads(scores, n, k, least, first, gold, starts, listed, end)
        kept += found
    return ArcCandidates(starts, listed[:end].copy()), kept


def kept_heads(parser: Any, pruner: Any, data: AttributedSentences, rules: FixedParts | None = None) -> ArcCandidates | None:
    """The heads that pruning keeps: all of them where there are constraints, for which those it likes may not do."""
    if pruner is None:
        return None
    ruled = [rules is not None and rules.of(i) is not None for i in range(len(data))]
    features, trees = pruner._features(data), _summed_trees(parser, pruner)
    return candidate_heads(features, pruner.coef_, parser._n_candidates or 1, whole=ruled, trees=trees)[0]


def _summed_trees(parser: Any, pruner: Any) -> TreeOracle | None:
    """The trees whose marginals say which heads a parser of second order looks at; one of first order saves the sums."""
    return tree_oracle(pruner.projective_, pruner.single_root) if parser.order == 2 else None


def filled_heads(treebank: Treebank) -> Integers:
    """The heads, with the word before in the place of missing ones: an arc to it crosses no other."""
    place = np.arange(treebank.n_words) - np.repeat(treebank.offsets[:-1], treebank.lengths)
    return np.where(treebank.heads < 0, place, treebank.heads)


def not_projective(treebank: Treebank, crossing: npt.NDArray[np.uint8], single_root: bool) -> npt.NDArray[np.bool_]:
    """The sentences that no projective tree completes, by the words whose arcs cross among those that are known."""
    found = np.zeros(len(treebank), np.bool_)
    found[np.repeat(np.arange(len(treebank)), treebank.lengths)[crossing > 0]] = True
    oracle = tree_oracle(True, single_root)
    for i, scores in ruled_arcs(treebank).items():
        shape = (int(treebank.lengths[i]),)
        found[i] |= scores[oracle.parts(oracle.argmax(scores, shape), shape)].min() <= 0.5 * FORBIDDEN
    return found


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


def training_candidates(parser: Any, pruner: Any, treebank: Treebank) -> tuple[ArcCandidates, int]:
    """The heads that pruning keeps in training; and how many of the true ones it keeps by itself.

    Sentences of which some heads are missing keep all: a few may not do.
    """
    missing = np.append(treebank.heads < 0, False)
    whole = np.add.reduceat(missing, treebank.offsets[:-1]).astype(bool).tolist() if missing.any() else None
    features, trees = pruner._features(pruner.featurizer_.transform(treebank)), _summed_trees(parser, pruner)
    return candidate_heads(features, pruner.coef_, parser._n_candidates, filled_heads(treebank), whole=whole, trees=trees)
