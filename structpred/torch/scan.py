"""The backends of chains: compiled kernels, or plain tensor operations, a scan over products of log-matrices in log T steps."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from structpred.torch.chain_operators import NEVER, chain, chain_best, check_possible, check_scores


class Compiled:
    """The backend of `ChainCRF` on the CPU; tensors of other devices are copied to it, and results back."""

    log_partition = loss = staticmethod(lambda *given: chain(*given)[0])
    marginals = staticmethod(lambda *given: chain(*given)[1])
    best = staticmethod(chain_best)


class Scan:
    """The backend of `ChainCRF` in PyTorch's own operations: ``ChainCRF(m, backend=Scan())``. O(T m^3) work in log T steps.

    A position is a matrix of scores from the tag before to its own, over the m tags and a start; a masked one is the identity.
    Their products, (log-sum-exp, +) or (max, +), are taken in pairs of neighbours (Särkkä & García-Fernández 2021). It runs
    where the scores are; `ChainCRF.best_tags` then exports to ONNX, for one padded length. The first product has
    2 B T (m + 1)^3 bytes in float32. checked: whether scores that are not finite are refused, as kernels refuse them: this
    reads values, so it is left out in compilation and has to be switched off under `torch.func.vmap`.

    >>> from structpred.torch import ChainCRF
    >>> ChainCRF(3, backend=Scan()).log_partition(torch.zeros(2, 5, 3)).shape
    torch.Size([2])
    """

    def __init__(self, checked: bool = True) -> None:
        self.checked = checked

    def log_partition(self, emissions: Tensor, table: Tensor, mask: Tensor) -> Tensor:
        """log Z (B,)."""
        rows, last = self._matrices(emissions, table, mask)
        while rows.shape[1] > 1:
            rows = torch.logsumexp(rows[:, 0::2, :, :, None] + rows[:, 1::2, None], dim=3)
        return self._possible(torch.logsumexp(rows[:, 0, -1] + last, dim=1))

    def loss(self, emissions: Tensor, table: Tensor, mask: Tensor, gold: Tensor) -> Tensor:
        """log Z less the score of the gold labels (B,)."""
        m = table.shape[0] - 1
        last = torch.where(mask, torch.arange(mask.shape[1], device=mask.device), -1).cummax(1).values
        before = pad(torch.where(last >= 0, gold.gather(1, last.clamp(min=0)), m), (1, 0), value=m)
        steps = torch.where(pad(mask, (0, 1), value=True), before * (m + 1) + pad(gold, (0, 1), value=m), m * (m + 2))
        score = torch.where(mask, emissions.gather(2, gold[..., None])[..., 0], 0.0).sum(1) + table.take(steps).sum(1)
        return self.log_partition(emissions, table, mask) - score

    def marginals(self, emissions: Tensor, table: Tensor, mask: Tensor) -> Tensor:
        """The probabilities of tags (B, T, m): the gradient of log Z by their scores."""
        again = torch.is_grad_enabled() and (emissions.requires_grad or table.requires_grad)
        with torch.inference_mode(False), torch.enable_grad():
            own = emissions if emissions.requires_grad else emissions.detach().clone().requires_grad_()
            table = table.clone() if table.is_inference() else table
            (found,) = torch.autograd.grad(self.log_partition(own, table, mask).sum(), own, create_graph=again)
        return found

    def best(self, emissions: Tensor, table: Tensor, mask: Tensor, fill: int) -> Tensor:
        """The best tags (B, T): products keep the best tag between, so the ends of halves follow from those of the whole."""
        (rows, last), between = self._matrices(emissions.detach(), table.detach(), mask), []
        while rows.shape[1] > 1:
            rows, at = torch.max(rows[:, 0::2, :, :, None] + rows[:, 1::2, None], dim=3)
            between.append(at)
        value, right = torch.max(rows[:, 0, -1] + last, dim=1, keepdim=True)
        self._possible(value[:, 0])
        left = torch.full_like(right, table.shape[0] - 1)
        for at in reversed(between):
            of_left = torch.gather(at, 2, left[:, :, None, None].expand(-1, -1, 1, at.shape[3]))[:, :, 0]
            middle = torch.gather(of_left, 2, right[:, :, None])[:, :, 0]
            left, right = torch.stack((left, middle), 2).flatten(1), torch.stack((middle, right), 2).flatten(1)
        return torch.where(mask, right[:, : mask.shape[1]], fill)

    def _matrices(self, emissions: Tensor, table: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """(B, power of two, m + 1, m + 1), and the scores of the last tag (m + 1,)."""
        if self._checks():
            check_scores(emissions, table, mask)
        m, room = table.shape[0] - 1, (1 << max(mask.shape[1] - 1, 0).bit_length()) - mask.shape[1]
        moves = table.clamp(min=NEVER)
        barred, corner = torch.full_like(moves[:, :1], NEVER), moves.new_zeros(1)
        own = pad(emissions.clamp(min=NEVER), (0, 1))[:, :, None]
        still = torch.where(torch.eye(m + 1, dtype=torch.bool, device=moves.device), 0.0, barred)
        rows = torch.where(mask[:, :, None, None], torch.cat((moves[:, :m], barred), 1) + own, still)
        return torch.cat((rows, still.expand(rows.shape[0], room, m + 1, m + 1)), 1), torch.cat((moves[:m, m], corner))

    def _possible(self, values: Tensor) -> Tensor:
        if self._checks():
            check_possible((values <= 0.5 * NEVER).nonzero()[:, 0].tolist())
        return values

    def _checks(self) -> bool:
        return self.checked and not torch.compiler.is_compiling()
