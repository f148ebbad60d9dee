"""Label sequences as features, an oracle and shapes, and what a model can say of one: labels, probabilities, the k best."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.feature_map import FeatureMap
from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Oracle, Shape
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector, padded
from structpred.data.phrases import PhraseLabels, as_iobes
from structpred.data.sequences import PackedSequences
from structpred.errors import DataError, InfeasibleError, ParameterError
from structpred.features.fixed_scores import FixedScores
from structpred.features.graphs import GraphFeatures
from structpred.features.positions import PositionSequences
from structpred.features.rows import FeatureRows, stack_rows
from structpred.features.sequences import SequenceFeatures
from structpred.models.chain.inputs import Input, around_empty, n_transitions
from structpred.models.constrained import Constraints, constrained
from structpred.oracles.chain import ChainOracle
from structpred.oracles.mrf import graph_shape
from structpred.oracles.tree_mrf import TreeMRF
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits
from structpred.runtime.settings import checked_whole
from structpred.task.inference import Inference


def chain_problem(
    data: PackedSequences | PositionSequences, n_labels: int, fixed: FixedScores | None, dtype: npt.DTypeLike = np.float32
) -> tuple[FeatureMap, Oracle, list[Shape]]:
    """The feature map of some sequences, the oracle for its parts, and their shapes.

    With features of transitions (`n_transitions`) the weights are float64, in the order of the table of `SequenceFeatures`
    without the columns that pad it; behind it n_labels rows (label before) for each of those features.
    """
    lengths = data.lengths.tolist()
    if isinstance(data, PositionSequences):
        return data.features(n_labels, fixed), ChainOracle(), [(length, n_labels) for length in lengths]
    if not data.n_transitions:
        features: FeatureMap = SequenceFeatures(data, n_labels, dtype=dtype, fixed=fixed)
        return features, ChainOracle(), [(length, n_labels) for length in lengths]
    paths = {t: graph_shape(t, n_labels, [(s, s + 1) for s in range(t - 1)]) for t in sorted(set(lengths))}
    shapes = [paths[length] for length in lengths]
    nodes, edges = _rows(data)
    given = None
    if fixed is not None:
        each = pairwise(data.offsets.tolist())
        given = [np.append(fixed.of(a, b, edges=False), np.tile(fixed.edges, (b - a - 1, 1))) for a, b in each]
    features = graphs = GraphFeatures(shapes, nodes, edge_rows=edges, n_states=n_labels, fixed=given)
    starts, names = data.blocks
    n = data.n_features - data.n_transitions
    rows = np.where(starts <= n, starts, starts + 2 + (n_labels - 1) * (starts - n) + n_labels)
    own = int(np.searchsorted(starts, n))
    graphs.groups = np.concatenate((rows[: own + 1], [n + 2, n + 2 + n_labels], rows[own + 1 :])) * n_labels
    graphs.group_names = [*names[:own], "start and stop", "transitions", *names[own:]]
    return features, TreeMRF(), shapes


def table_width(input_: Input, n_labels: int) -> int:
    """The columns of the weight table of a fitted labeler, with those that pad it."""
    return n_labels if n_transitions(input_) else padded(n_labels)


def n_weights(input_: Input, n_labels: int) -> int:
    """The number of its weights."""
    return ((input_.n_features or 0) + 2 + (1 + n_transitions(input_)) * n_labels) * table_width(input_, n_labels)


def _rows(data: PackedSequences) -> tuple[FeatureRows, FeatureRows]:
    """The features of tokens, with two more for the first and the last one, and those of steps behind a constant 1."""
    from scipy import sparse

    n, last = data.n_features - data.n_transitions, data.offsets[1:] - 1
    table = sparse.csr_array((data.values, data.indices, data.indptr), (data.n_tokens, data.n_features))
    ends = np.zeros((data.n_tokens, 2))
    ends[data.offsets[:-1], 0] = ends[last, 1] = 1.0
    steps = np.flatnonzero(ends[:, 0] == 0.0)
    nodes = stack_rows(sparse.hstack((table[:, :n], sparse.csr_array(ends)), format="csr"))
    constant = sparse.csr_array(np.ones((len(steps), 1)))
    edges = stack_rows(sparse.hstack((constant, table[steps, n:]), format="csr"), "features of transitions")
    places: Integers = data.offsets - np.arange(len(data.offsets))
    return nodes._replace(offsets=data.offsets), edges._replace(offsets=places)


def decode_chains(
    data: PackedSequences, n_labels: int, w: Vector, fixed: FixedScores | None = None, n_jobs: int = 1,
    constraints: Constraints = None, classes: Sequence[Any] = (), empty: Sequence[int] = (),
) -> npt.NDArray[np.int64]:  # fmt: skip
    """The best label codes of all tokens, flat. classes: what constraints call labels; empty: samples that they leave alone."""
    if data.n_tokens == 0:
        return np.empty(0, np.int64)
    inference = chain_inference(data, n_labels, w, fixed, n_jobs)
    return constrained(inference, constraints, lambda entry: (entry[0], classes.index(entry[1])), empty).decode(w)[0]


def chain_inference(
    data: PackedSequences, n_labels: int, w: Vector, fixed: FixedScores | None = None, n_jobs: int = 1
) -> Inference:
    """Inference over sequences, for weights of the type of `w`. DataError for a sequence without tokens."""
    if (empty := np.flatnonzero(data.lengths == 0)).size:
        raise DataError(f"sample {int(empty[0])}: the sequence is empty; there is nothing to label")
    return Inference(*chain_problem(data, n_labels, fixed, w.dtype), n_jobs=n_jobs)


def chain_marginals(data: PackedSequences, n_labels: int, w: Vector, fixed: FixedScores | None) -> list[Floats]:
    """p(label at position t | x) of each sequence, (T, n_labels)."""
    inference = chain_inference(data, n_labels, w, fixed)
    lengths = data.lengths.tolist()
    return [mu[: t * n_labels].reshape(t, n_labels) for mu, t in zip(inference.marginals(w), lengths, strict=True)]


def chain_kbest(
    data: PackedSequences, n_labels: int, w: Vector, fixed: FixedScores | None, k: int
) -> list[list[tuple[npt.NDArray[np.int64], float]]]:
    """The k best label codes of each sequence with their scores; InfeasibleError where constraints leave none."""
    found = []
    for i, best in enumerate(chain_inference(data, n_labels, w, fixed).kbest(w, k)):
        _check_possible(len(best) > 0, i)
        found.append(best)
    return found


def chain_score_gaps(data: PackedSequences, n_labels: int, w: Vector, fixed: FixedScores | None) -> list[Floats]:
    """By how much the best sequence outscores the best one with another label at position t; inf where there is none."""
    found, inference = [], chain_inference(data, n_labels, w, fixed)
    step = 0 if isinstance(inference.oracle, ChainOracle) else n_labels**2  # all positions share a table, or each has its own
    for i, (theta, shape) in enumerate(zip(inference.part_scores(w), inference.shapes, strict=True)):
        best = np.empty(shape[:2])
        _chains().max_marginals(theta, *best.shape, step, np.empty((2, n_labels)), best)
        _check_possible(float(best[0].max()) > 0.5 * FORBIDDEN, i)
        ordered = np.sort(best, axis=1)
        second = ordered[:, -2] if n_labels > 1 else np.full(shape[0], -np.inf)
        found.append(np.where(second > -1e29, ordered[:, -1] - second, np.inf))
    return found


def _check_possible(possible: bool, sample: int) -> None:
    if not possible:
        raise InfeasibleError(f"sample {sample}: no label sequence satisfies the constraints")


_chains = later("structpred.oracles.chains._chain_kernels")
_kernels = later("structpred.oracles.chains._phrase_kernels")


class Phrase(NamedTuple):
    """Tokens start to end - 1. probability: that they are a phrase of this label, no longer and no shorter."""

    start: int
    end: int
    label: str
    probability: float


class ChainScores:
    """What a labeler of chains says beside its labels: probabilities of labels and of phrases, other labels, and gaps."""

    def predict_marginals(
        self: Any, X: Any, *, allowed: Sequence[Any] | None = None, fixed: Sequence[Any] | None = None
    ) -> list[npt.NDArray[np.float64]]:
        """One array (T, n_classes) per sequence: the probability of each label at each position, in the order of classes_.

        Only for models trained with the log loss (trainer "oeg" or "lbfgs", or surrogate "log"): scores learnt with a margin
        are not log-probabilities, and ParameterError says so; predict_score_gaps shows how clear their decisions are.
        """
        data, w, scores = self._read(X, allowed, fixed)
        self._check_probabilistic("use predict_score_gaps, or ")
        return chain_marginals(data, len(self.classes_), w, scores)

    def predict_kbest(
        self: Any, X: Any, k: int, *, allowed: Sequence[Any] | None = None, fixed: Sequence[Any] | None = None
    ) -> list[list[tuple[npt.NDArray[Any], float]]]:
        """For each sequence its k best (labels, score), best first; fewer where there are fewer."""
        data, w, scores = self._read(X, allowed, fixed)
        found = chain_kbest(data, len(self.classes_), w, scores, checked_whole(k, "k"))
        return [[(self._encoder.decode(codes, np.array([0, len(codes)]))[0], score) for codes, score in best] for best in found]

    def predict_score_gaps(
        self: Any, X: Any, *, allowed: Sequence[Any] | None = None, fixed: Sequence[Any] | None = None
    ) -> list[npt.NDArray[np.float64]]:
        """One array (T,) per sequence: the score of the prediction less that of the best one with another label there.

        In the units of scores, >= 0, inf where no other label is possible. It is not a probability.
        """
        data, w, scores = self._read(X, allowed, fixed)
        return chain_score_gaps(data, len(self.classes_), w, scores)

    def predict_phrases(
        self: Any, X: Any, *, k: int | None = None, min_probability: float | None = None, max_length: int = 32,
        allowed: Sequence[Any] | None = None, fixed: Sequence[Any] | None = None,
    ) -> list[list[Phrase]]:  # fmt: skip
        """The phrases of each sequence that are at least so probable, in order, with their exact probabilities.

        Labels are B-X, I-X and O in any scheme, read as conlleval reads them. min_probability: 0.5 unless given; phrases above
        that do not overlap. k: the k most probable phrases, best first; min_probability is then 0. max_length: the tokens of
        the longest phrase. allowed, fixed: as in `predict`. O(T L (L + max_length)) for T tokens and L labels.

        Raises ParameterError where labels mark no phrases, and for models trained without the log loss, as predict_marginals.

        >>> from structpred.models import ChainLabeler
        >>> model = ChainLabeler("lbfgs", C=10.0).fit([[["the"], ["cat"], ["sleeps"]]], [["B-NP", "I-NP", "O"]])
        >>> [(p.start, p.end, p.label, round(p.probability, 2)) for p in model.predict_phrases([[["the"], ["cat"]]])[0]]
        [(0, 2, 'NP', 0.66)]
        """
        self._check_fitted()
        self._check_probabilistic("use predict, or ")
        tags = PhraseLabels.of(as_iobes(str(label)) for label in self.classes_.tolist())
        if not tags.marked:
            raise ParameterError(f"predict_phrases: expected labels such as B-X, I-X and O, got {self.classes_[:5].tolist()}")
        if n_transitions(self.input_):
            raise ParameterError("predict_phrases: expected transitions without features (no B lines with %x in the template)")
        least = (0.5 if k is None else 0.0) if min_probability is None else min_probability
        if not 0 <= least <= 1:
            raise ParameterError(f"min_probability: expected a number from 0 to 1, got {least!r}")
        longest, k = checked_whole(max_length, "max_length"), None if k is None else checked_whole(k, "k")
        asked: Any = partial(chain_phrases, tags, least=least, longest=longest, k=k)
        return around_empty(lambda *full: asked(*self._read(*full)), X, allowed, fixed, nothing=[])


def chain_phrases(
    tags: PhraseLabels, data: PackedSequences, w: Vector, rules: FixedScores | None, *, least: float, longest: int, k: int | None
) -> list[list[Phrase]]:
    """The phrases of each sequence that are at least so probable, or the k best of them."""
    (starts, breaks, pairs), found = tags.steps(), []
    inference = chain_inference(data, len(tags.tags), w, rules)
    for i, (theta, (length, _)) in enumerate(zip(inference.part_scores(w), inference.shapes, strict=True)):
        size = length, len(tags.names), min(longest, length)
        check_fits(8 * size[0] * size[1] * size[2], f"sample {i}: all phrases of up to {size[2]:,} of {length:,} tokens")
        table = np.zeros(size)
        if not _kernels().phrases_of_chain(theta, length, starts, breaks, tags.types, pairs, table):
            raise InfeasibleError(f"sample {i}: no label sequence satisfies the constraints")
        at = np.nonzero((table > 0.0) & (table >= least))
        order = slice(None) if k is None else np.argsort(-table[at], kind="stable")[:k]
        rows = zip(*(column[order].tolist() for column in (*at, table[at])), strict=True)
        found.append([Phrase(start, start + d + 1, tags.names[t], p) for start, t, d, p in rows])
    return found
