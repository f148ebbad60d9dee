"""What a chain says beside its labels, such as the exact probability that a phrase of a label stands exactly there."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.weights import Vector
from structpred.data.phrases import PhraseLabels, as_iobes
from structpred.data.sequences import PackedSequences
from structpred.errors import InfeasibleError, ParameterError
from structpred.features.fixed_scores import FixedScores
from structpred.models.chain.decoding import chain_inference, chain_kbest, chain_marginals, chain_score_gaps, checked_k
from structpred.models.chain.inputs import around_empty, n_transitions
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits

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
        found = chain_kbest(data, len(self.classes_), w, scores, checked_k(k))
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
        longest, k = checked_k(max_length, "max_length"), None if k is None else checked_k(k)
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
