"""A conditional random field over segmentations on top of a network: labelled segments of padded sentences, with masks."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from structpred.oracles.semimarkov import SemiMarkovOracle
from structpred.runtime.settings import checked_whole
from structpred.torch.modules import beside, checked_batch, reduced
from structpred.torch.padded_oracle import PaddedOracle


class SemiCRF(nn.Module):
    """log p(segments | emissions) of padded batches (Sarawagi & Cohen 2004): labelled segments of at most `max_length` positions.

    A segment scores the sum of its label's ``emissions`` (B, T, m), a score of its length and label, and one of the label before.
    ``mask``: (B, T), of any form. ``tags``: (B, T), 2 l + 1 where a segment of label l begins, 2 l where it continues, as
    `from_segments` of `structpred.oracles.semimarkov` gives them. -inf forbids. Second derivatives: central differences.

    >>> crf, emissions = SemiCRF(2, max_length=3), torch.tensor([[[0.0, 9.0], [0.0, 9.0], [9.0, 0.0]]])
    >>> crf.length_scores.data[1] += 9.0  # segments of two positions
    >>> crf.decode(emissions), crf(emissions, torch.tensor([[3, 2, 1]])).item() > -0.1
    ([[3, 2, 1]], True)
    """

    def __init__(self, num_tags: int, max_length: int) -> None:
        super().__init__()
        self._sizes = [checked_whole(num_tags, "num_tags"), checked_whole(max_length, "max_length")]
        random = (nn.Parameter(nn.init.uniform_(torch.empty(size, num_tags), -0.1, 0.1)) for size in self._sizes)
        self.transitions, self.length_scores = random

    def forward(self, emissions: Any, tags: Any, mask: Tensor | None = None, reduction: str = "sum") -> Tensor:
        """The log-likelihood, reduced as by `ChainCRF`. DataError for tags that are no such segments, or all masked."""
        scores, kept = self._given(emissions, mask)
        return reduced(SEGMENTS(scores, beside(tags, kept, "tags", True), kept, self._sizes)[0], kept, reduction)

    def marginals(self, emissions: Any, mask: Tensor | None = None) -> Tensor:
        """(B, T, max_length, m): the probability that a segment of k + 1 positions with label l begins at t. Differentiable."""
        scores, kept = self._given(emissions, mask)
        mu = SEGMENTS(scores, kept[:, :0], kept, self._sizes)[1]
        return mu[:, : -self.transitions.numel()].view(*kept.shape, *self.length_scores.shape)

    def decode(self, emissions: Any, mask: Tensor | None = None) -> list[list[int]]:
        """The tags of the best segments of each sentence, those of the positions that are there."""
        return SEGMENTS.best(*self._given(emissions, mask), self._sizes)

    def _given(self, emissions: Any, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Scores as the operator takes them, and which positions are there."""
        given, kept = checked_batch(emissions, mask, True, self._sizes[0])
        longest, order = self._sizes[1], kept.long().argsort(dim=1, descending=True, stable=True)  # those that are there first
        given = torch.where(kept[:, :, None], given, 0.0).gather(1, order[:, :, None].expand_as(given))
        sums = pad(given, (0, 0, 0, longest)).unfold(1, longest, 1)[:, :-1].cumsum(3).transpose(2, 3)
        rows = sums.gather(1, order.argsort(1)[:, :, None, None].expand_as(sums)) + self.length_scores
        return torch.cat((rows.flatten(1), self.transitions.flatten().expand(kept.shape[0], -1)), 1), kept


def _places(there: Any, length: int, sizes: list[int]) -> Any:
    shape, m, width = (len(there), *sizes), sizes[0], sizes[0] * sizes[1]
    return shape, np.append(there[:, None] * width + np.arange(width), length * width + np.arange(m * m)), width, np.arange(2 * m)


#: rows of scores: (T, M, m) segments by where they begin, and (m, m) transitions; sizes: m, M
SEGMENTS = PaddedOracle("segments", lambda sizes: SemiMarkovOracle(), _places)
