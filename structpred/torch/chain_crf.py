"""A conditional random field over label chains on top of a network: the interface of pytorch-crf, with masks of any form."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from structpred.errors import ParameterError
from structpred.layers import Scores
from structpred.oracles.chain import ChainOracle
from structpred.runtime.settings import checked_whole
from structpred.torch.chain_operators import flattened, known_labels
from structpred.torch.modules import LossModule, beside, checked_batch, plain, reduced
from structpred.torch.scan import Compiled, Scan


class ChainCRF(nn.Module):
    """log p(tags | emissions) of padded batches (Lafferty, McCallum & Pereira 2001), with its first and second derivatives.

    Methods take scores of tags, ``emissions`` (B, T, m), padded, nested or packed, and a ``mask`` (B, T), true where there is a
    token: with holes, a masked first token, empty sentences, whose likelihood is 1. Sums are in float32 unless float64 came in.
    Scores of minus infinity forbid. A `state_dict` of pytorch-crf loads.

    Parameters
    ----------
    num_tags, batch_first : int; bool
        ``batch_first=False``: tensors come and go as (T, B, ...), which is pytorch-crf's default.
    allowed : (m, m), (m,), (m,) truth values, optional
        Which tag may follow which, and which may be first and last: ``ChainConstraints(scheme="iob2").tables(names)``.
    ignore_index : int
        The tag of what has none: padding, further word pieces.
    partial : bool
        Whether the tag of tokens with `ignore_index` is unknown and summed over. False: they are left out of the chain.
    backend : Scan, optional
        In place of compiled kernels.

    Examples
    --------
    >>> crf, tags = ChainCRF(2), torch.tensor([[0, -100, 1]])
    >>> emissions = torch.zeros(1, 3, 2, requires_grad=True)
    >>> (-crf(emissions, tags)).backward()
    >>> emissions.grad[0, 1].tolist(), crf.decode(torch.tensor([[[4.0, 0.0], [0.0, 4.0], [4.0, 0.0]]]))
    ([0.0, 0.0], [[0, 1, 0]])
    """

    def __init__(
        self, num_tags: int, batch_first: bool = True, *, allowed: Sequence[Any] | None = None, ignore_index: int = -100,
        partial: bool = False, backend: Scan | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_tags, self.batch_first = checked_whole(num_tags, "num_tags"), batch_first
        self.ignore_index, self.partial, self.backend = ignore_index, partial, backend or Compiled()
        sizes = (num_tags,), (num_tags,), (num_tags, num_tags)
        random = (nn.Parameter(nn.init.uniform_(torch.empty(size), -0.1, 0.1)) for size in sizes)
        self.start_transitions, self.end_transitions, self.transitions = random
        may = [torch.ones(size) for size in sizes] if allowed is None else [torch.as_tensor(allowed[k]) for k in (1, 2, 0)]
        if tuple(tuple(own.shape) for own in may) != sizes:
            raise ParameterError(f"allowed: expected truth values (m, m), (m,), (m,) with m = {num_tags}")
        self.register_buffer("_barred", _joined(*(own == 0 for own in may)), persistent=False)

    def forward(self, emissions: Any, tags: Any, mask: Tensor | None = None, reduction: str = "sum") -> Tensor:
        """The log-likelihood, which training maximises: (B,) for "none", its "sum", its "mean", or "token_mean".

        It is minus infinity where the true tags are forbidden. Raises DataError for tags out of range and where all is masked.
        """
        (scores, table, kept), m = self._given(emissions, mask), self.num_tags
        known, labels = self._known(tags, scores, kept)
        if not self.partial:
            return reduced(-self.backend.loss(scores, table, known, labels), known, reduction)
        others = known[..., None] & (labels[..., None] != torch.arange(m, device=labels.device))
        value = self.backend.log_partition(torch.where(others, -torch.inf, scores), table, kept)
        return reduced(value - self.backend.log_partition(scores, table, kept), kept, reduction)

    def log_partition(self, emissions: Any, mask: Tensor | None = None) -> Tensor:
        """log Z (B,)."""
        return self.backend.log_partition(*self._given(emissions, mask))

    def marginals(self, emissions: Any, mask: Tensor | None = None) -> Tensor:
        """The probability of each tag at each position, in the form of padded emissions; 0 where masked. Differentiable."""
        found = self.backend.marginals(*self._given(emissions, mask))
        return found if self.batch_first else found.transpose(0, 1)

    def best_tags(self, emissions: Any, mask: Tensor | None = None) -> Tensor:
        """The best tags as a tensor (B, T), `ignore_index` where masked; it compiles and exports."""
        found = self.backend.best(*self._given(emissions, mask), self.ignore_index)
        return found if self.batch_first else found.transpose(0, 1)

    def decode(self, emissions: Any, mask: Tensor | None = None) -> list[list[int]]:
        """The best tags of each sentence, those of the positions that are there."""
        given = self._given(emissions, mask)
        found, kept = (own.numpy(force=True) for own in (self.backend.best(*given, -1), given[2]))
        return [tags[there].tolist() for tags, there in zip(found, kept, strict=True)]

    def kbest(self, emissions: Any, k: int, mask: Tensor | None = None) -> list[list[list[int]]]:
        """The k best taggings of each sentence, best first, fewer where there are fewer."""
        scores, table, kept = self._given(emissions, mask)
        theta, lengths = flattened(scores, table, kept)
        oracle, shapes = ChainOracle(), [(own, self.num_tags) for own in lengths]
        own = iter(zip(Scores.of(oracle, shapes).split(plain(theta.detach().double())), shapes, strict=True))
        return [[y.tolist() for y in oracle.kbest(*next(own), k)] if n else [[]] for n in kept.sum(1)]

    def loss(self, loss: LossModule, emissions: Any, tags: Any, mask: Tensor | None = None, weight: Any = None) -> Tensor:
        """Another loss (B,) of the same scores, 0 for empty sentences: ``crf.loss(SparseMAPLoss(ChainOracle()), x, tags)``.

        Losses with costs get 1 for a wrong tag, or the true one's class ``weight`` (m,). What has `ignore_index` is left out.
        """
        scores, table, kept = self._given(emissions, mask)
        kept, labels = self._known(tags, scores, kept)
        (theta, lengths), m = flattened(scores, table, kept), self.num_tags
        own = theta.new_ones(m) if weight is None else torch.as_tensor(weight).to(theta)
        if own.shape != (m,) or (weight is not None and "costs" not in loss.loss.takes):
            raise ParameterError(f"weight: expected ({m},), a loss with costs; got {(*own.shape,)}, {type(loss.loss).__name__}")
        wrong = (labels[..., None] != torch.arange(m, device=labels.device)) * own[labels, None]
        costs = flattened(wrong, torch.zeros_like(table), kept)[0] if "costs" in loss.loss.takes else None
        values = loss(theta, shapes=[(length, m) for length in lengths], gold=plain(labels[kept].split(lengths)), costs=costs)
        return values.new_zeros(len(scores)).masked_scatter(kept.any(1), values)

    def _given(self, emissions: Any, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Scores, table and mask as operators take them, in the wider type of emissions and parameters."""
        scores, kept = checked_batch(emissions, mask, self.batch_first, self.num_tags)
        table = _joined(self.start_transitions, self.end_transitions, self.transitions)
        dtype = torch.promote_types(scores.dtype, table.dtype)
        return scores.to(dtype), table.to(dtype).masked_fill(self._barred, -torch.inf), kept

    def _known(self, tags: Any, scores: Tensor, kept: Tensor) -> tuple[Tensor, Tensor]:
        """Where there is a tag, and the tags, 0 elsewhere."""
        given = beside(tags, scores, "tags", self.batch_first)
        known = kept & (given != self.ignore_index)
        return known, known_labels(given, known, self.num_tags)


def _joined(first: Tensor, last: Tensor, follow: Tensor) -> Tensor:
    """(m + 1, m + 1): transitions, below them a row of first scores, beside them a column of last ones, 0 in the corner."""
    return torch.cat((torch.cat((follow, first[None])), pad(last, (0, 1))[:, None]), 1)
