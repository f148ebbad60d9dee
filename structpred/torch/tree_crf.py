"""A conditional random field over dependency trees on top of a network: scores of arcs in padded batches, with masks."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from structpred.core.fixed_scores import FORBIDDEN
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.projective import ProjectiveOracle
from structpred.torch.modules import beside, checked_batch, reduced
from structpred.torch.padded_oracle import PaddedOracle


class TreeCRF(nn.Module):
    """log p(heads | arcs) over the dependency trees of each sentence (Koo et al. 2007; projective: Eisner's chart).

    ``arcs``: (B, n, n + 1), for each token the scores of its heads: 0, the root, or token 1..n. ``mask``: (B, n), of any form:
    what is masked is neither token nor head. -inf forbids. Second derivatives: exact, or, projective, central differences.

    >>> crf = TreeCRF()
    >>> crf(torch.zeros(1, 2, 3), torch.tensor([[0, 1]])).exp().item(), crf.decode(torch.tensor([[[0.0, 0, 2], [0, 0, 1]]]))
    (0.5, [[2, 0]])
    """

    def __init__(self, single_root: bool = True, projective: bool = False) -> None:
        super().__init__()
        self._sizes = [int(single_root), int(projective)]

    def forward(self, arcs: Any, heads: Any, mask: Tensor | None = None, reduction: str = "sum") -> Tensor:
        """The log-likelihood, reduced as by `ChainCRF`. DataError for heads that are no tree, and where all is masked."""
        scores, kept = checked_batch(arcs, mask, True, None)
        return reduced(TREES(scores.flatten(1), beside(heads, kept, "heads", True), kept, self._sizes)[0], kept, reduction)

    def marginals(self, arcs: Any, mask: Tensor | None = None) -> Tensor:
        """The probability of each arc, (B, n, n + 1), 0 where masked. Differentiable."""
        scores, kept = checked_batch(arcs, mask, True, None)
        return TREES(scores.flatten(1), kept[:, :0], kept, self._sizes)[1].view(scores.shape)

    def decode(self, arcs: Any, mask: Tensor | None = None) -> list[list[int]]:
        """The heads of the tokens that are there, in the best tree of each sentence."""
        scores, kept = checked_batch(arcs, mask, True, None)
        return TREES.best(scores.flatten(1), kept, self._sizes)


def _places(there: Any, longest: int, sizes: list[int]) -> Any:
    heads = np.append(0, there + 1)
    return (len(there),), (there[:, None] * (longest + 1) + heads).ravel(), len(heads), heads


def _log_determinant(scores: Tensor, kept: Tensor, sizes: list[int]) -> Tensor:
    """Of the Laplacian (Koo et al. 2007), by an elimination that never subtracts (Grassmann, Taksar & Heyman 1985).

    What is masked leads to the root. For a single root all its arcs score 1e4 less, so that no tree has more than it must.
    """
    n = kept.shape[1]
    w = scores.double().view(*kept.shape, n + 1) - pad(scores.new_tensor([1e4 * sizes[0]]), (0, n))
    w = torch.where(pad(kept, (1, 0), value=True)[:, None], w, FORBIDDEN)
    w, total = torch.where(kept[:, :, None], w, pad(w.new_zeros(1), (0, n), value=FORBIDDEN)), w.new_zeros(kept.shape[:1])
    for k in range(n - 1, -1, -1):
        away = w[:, k, : k + 1].logsumexp(1)
        through = w[:, :k, k + 1, None] - away[:, None, None] + w[:, k, None, : k + 1]
        w, total = torch.stack((w[:, :k, : k + 1], through)).logsumexp(0), total + away
    return total


TREES = PaddedOracle(
    "tree", lambda sizes: (ProjectiveOracle if sizes[1] else ArborescenceOracle)(bool(sizes[0])), _places,
    lambda sizes: None if sizes[1] else _log_determinant,
)  # fmt: skip
