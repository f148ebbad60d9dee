"""Whether the probabilities of phrases are what they say: of phrases with probability p a share p is right."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from structpred.core.types import Flags, Floats
from structpred.data.phrases import PhraseLabels, as_iobes
from structpred.errors import DataError, ParameterError
from structpred.evaluation.chunks import ChunkCounts
from structpred.evaluation.coding import Sequences, encode
from structpred.models.chain.decoding import Phrase
from structpred.text.markup import Shown
from structpred.text.tables import aligned

#: the reliability table: probabilities from here to the next row, their mean, the share that is right, and of all from here on
COLUMNS = ("from", "phrases", "probability", "right", "precision from here", "recall from here")


@dataclass(frozen=True)
class Calibration(Shown):
    """Probabilities of phrases, the most probable first, and which are right. n_gold: how many phrases there are in truth."""

    probabilities: Floats
    right: Flags
    n_gold: int

    def bins(self) -> list[tuple[float, int, float, float, float, float]]:
        """The reliability table, COLUMNS: ten bins of probabilities of equal width, without empty ones."""
        number, found = np.minimum((self.probabilities * 10).astype(np.int64), 9), []
        for k in np.unique(number).tolist():
            own, kept = number == k, self.at(k / 10)
            shares = float(self.probabilities[own].mean()), float(self.right[own].mean())
            found.append((k / 10, int(own.sum()), *shares, kept.precision, kept.recall))
        return found

    @property
    def error(self) -> float:
        """The expected calibration error: the mean of |mean probability - share right| over bins, weighed by their phrases."""
        return sum(n * abs(mean - right) for _, n, mean, right, *_ in self.bins()) / max(len(self.right), 1)

    def at(self, threshold: float) -> ChunkCounts:
        """Precision and recall of the phrases that are at least so probable."""
        kept = self.probabilities >= threshold
        return ChunkCounts(self.n_gold, int(kept.sum()), int(self.right[kept].sum()))

    def threshold_for(self, precision: float) -> float | None:
        """The least probability from which on this share of phrases is right; None where there is none."""
        if not 0 <= precision <= 1:
            raise ParameterError(f"precision: expected a number from 0 to 1, got {precision!r}")
        shares = np.cumsum(self.right) / np.arange(1, len(self.right) + 1)
        last = np.diff(self.probabilities, append=-1.0) < 0.0  # of those that are equally probable
        good = self.probabilities[last & (shares >= precision)]
        return float(good[-1]) if len(good) else None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"error": self.error, "bins": [dict(zip(COLUMNS, row, strict=True)) for row in self.bins()]}

    def table(self) -> str:
        """The reliability table as plain text, shares in per cent."""
        rows = [(f"{low:.1f}", str(n), *(f"{100 * share:.2f}" for share in shares)) for low, n, *shares in self.bins()]
        return "\n".join([*aligned(COLUMNS, rows, numbers=6), f"Expected calibration error of phrases: {self.error:.4f}"])


def calibration(gold: Sequences, phrases: Sequence[Sequence[Phrase]]) -> Calibration:
    """Compare phrases of `predict_phrases` with gold label sequences. Raises DataError as `encode` does.

    >>> found = calibration([["B-NP", "I-NP", "B-NP"]], [[Phrase(0, 2, "NP", 0.9), Phrase(2, 3, "VP", 0.4)]])
    >>> round(found.error, 2), found.at(0.5).precision, found.threshold_for(0.5)
    (0.25, 1.0, 0.4)
    """
    if len(gold) != len(phrases):
        raise DataError(f"expected the phrases of each of {len(gold)} gold sequences, got {len(phrases)}")
    coded = encode(gold, gold)
    tags = PhraseLabels.of(as_iobes(str(label)) for label in coded.labels)
    spans = tags.spans(coded.gold, coded.offsets, "conlleval")
    starts = spans.starts.tolist(), spans.ends.tolist(), spans.types.tolist()
    true = {(start, end, tags.names[kind]) for start, end, kind in zip(*starts, strict=True)}
    rows = zip(coded.offsets[:-1].tolist(), phrases, strict=True)
    found = sorted(((p.probability, (at + p.start, at + p.end, p.label) in true) for at, own in rows for p in own), reverse=True)
    probabilities, right = np.array(found, dtype=np.float64).reshape(-1, 2).T
    return Calibration(probabilities, right > 0.0, len(true))
