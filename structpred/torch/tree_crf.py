"""A conditional random field over dependency trees on top of a network: scores of arcs in padded batches, with masks."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Shape
from structpred.errors import DataError
from structpred.layers import CRF, Scores, SoftLayer
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.projective import ProjectiveOracle
from structpred.torch.modules import LayerModule, LossModule, beside, checked_batch, reduced


class TreeCRF(nn.Module):
    """log p(heads | arcs) over the dependency trees of each sentence (Koo et al. 2007; projective: Eisner's chart).

    ``arcs``: (B, n, n + 1), for each token the scores of its heads: 0, the root, or token 1..n. ``mask``: (B, n), of any form:
    what is masked is neither token nor head. -inf forbids. Second derivatives are central differences of marginals.

    >>> crf = TreeCRF()
    >>> crf(torch.zeros(1, 2, 3), torch.tensor([[0, 1]])).exp().item(), crf.decode(torch.tensor([[[0.0, 0, 2], [0, 0, 1]]]))
    (0.5, [[2, 0]])
    """

    def __init__(self, single_root: bool = True, projective: bool = False) -> None:
        super().__init__()
        oracle = (ProjectiveOracle if projective else ArborescenceOracle)(single_root)
        self._crf, self._soft = LossModule(CRF(oracle)), LayerModule(SoftLayer(oracle))

    def forward(self, arcs: Any, heads: Any, mask: Tensor | None = None, reduction: str = "sum") -> Tensor:
        """The log-likelihood, reduced as by `ChainCRF`. Raises DataError for heads that are no token, or no tree."""
        flat, index, shapes, kept, there = self._arcs(arcs, mask)
        given, gold = beside(heads, kept, "heads", True).cpu().numpy(), []
        for i, known in enumerate(there):
            true = given[i, known[1:] - 1]
            for at in known[1:][~np.isin(true, known)][:1] - 1:
                raise DataError(f"sentence {i}, position {at}: its head {given[i, at]} is neither 0 nor a token that is there")
            gold.append(np.searchsorted(known, true) if len(true) else np.zeros(1, np.int64))
        return reduced(-self._crf(flat[index], shapes=shapes, gold=gold), kept, reduction)

    def marginals(self, arcs: Any, mask: Tensor | None = None) -> Tensor:
        """The probability of each arc, (B, n, n + 1), 0 where masked. Differentiable once."""
        flat, index, shapes, kept, _ = self._arcs(arcs, mask)
        mu = self._soft(flat[index], shapes=shapes)
        return torch.zeros_like(flat).scatter(0, index, mu)[:-2].view(*kept.shape, kept.shape[1] + 1)

    def decode(self, arcs: Any, mask: Tensor | None = None) -> list[list[int]]:
        """The heads of the tokens that are there, in the best tree of each sentence."""
        flat, index, shapes, _, there = self._arcs(arcs, mask)
        found = Scores.of(self._crf.loss.oracle, shapes).decide(flat[index].detach().cpu().numpy())
        return [known[y][: len(known) - 1].tolist() for known, y in zip(there, found, strict=True)]

    def _arcs(self, arcs: Any, mask: Tensor | None) -> tuple[Tensor, Tensor, list[Shape], Tensor, list[Any]]:
        """All scores, flat; where the oracle's are, its shapes; which tokens, and of each sentence which heads, are there."""
        scores, kept = checked_batch(arcs, mask, True, None)
        n, length, width = scores.shape
        there = [np.append(0, own.nonzero()[0] + 1) for own in kept.cpu().numpy()]
        rows = [(i * length + own[1:, None] - 1) * width + own for i, own in enumerate(there)]
        none = n * length * width + np.arange(2)  # zeros, of the one tree without tokens
        index = np.concatenate([none[:0], *(own.ravel() if own.size else none for own in rows)])
        flat = pad(scores.reshape(-1).clamp(min=FORBIDDEN), (0, 2))
        return flat, torch.from_numpy(index).to(flat.device), [(max(len(own) - 1, 1),) for own in there], kept, there
