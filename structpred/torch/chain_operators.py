"""Sums over padded batches of label chains, and decoding, as operators of PyTorch that can be differentiated twice.

``emissions``: (B, T, m) scores; ``table``: (m + 1, m + 1), transitions, below them a row of scores of first labels, beside them a
column of those of last ones; ``mask``: (B, T), the positions that there are. Minus infinity forbids. Kernels work in float64 on
the CPU, without Python's lock, on ``torch.get_num_threads()`` threads, whose number changes no bit. What comes out is on the
device of the emissions, in float32, or in float64 where that came in.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from structpred.core.weights import padded
from structpred.errors import DataError, InfeasibleError
from structpred.oracles.chain import sum_scratch
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits
from structpred.runtime.threads import run_ranges, split_evenly

_kernels = later("structpred.torch._padded_chain_kernels")

#: in place of minus infinity, whose gradients would be NaN
NEVER = -1e30
#: multiplications of a pass that are worth a thread
_WORTH = 500_000


def _run(kernel: Any, given: tuple[Tensor, Tensor, Tensor], room: Callable[[], Any], out: Any) -> Any:
    """`out`, which the kernel has filled, on threads where there is work for them; room: makes the working memory of one."""
    emissions, table = (own.detach().cpu().double().contiguous().numpy() for own in given[:2])
    (_, longest, m), kept = emissions.shape, given[2].cpu().numpy()
    lengths, faults = kept.sum(1), []

    def ranged(a: int, b: int) -> None:
        places = np.empty(longest, np.int64)
        i, t = kernel(emissions[a:b], table, kept[a:b], places, *room(), *(own[a:b] for own in out))
        faults.extend([(a + i, t)] if i >= 0 else [])

    n_jobs = max(min(torch.get_num_threads(), int(lengths.sum()) * m * padded(m) // _WORTH), 1)
    run_ranges(ranged, split_evenly(lengths + 1, n_jobs), n_jobs)
    for i, t in sorted(faults):
        if t < 0:
            raise InfeasibleError(f"sentence {i}: every label sequence uses a forbidden label or transition (-inf)")
        raise DataError(f"sentence {i}, position {t}: a score is NaN or infinite (only -inf forbids)")
    return out


@torch.library.custom_op("structpred::chain", mutates_args=())
def chain_sums(emissions: Tensor, table: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """log Z (B,), the probabilities of labels (B, T, m), and expected transitions (B, m + 1, m + 1) in the form of the table."""
    n, longest, m = emissions.shape
    check_fits(8 * n * (longest * m + (m + 1) ** 2), f"marginals of {n:,} sentences with {m} labels")
    out = np.zeros(n), np.zeros((n, longest, m)), np.zeros((n, m + 1, m + 1))
    found = _run(_kernels().sums, (emissions, table, mask), lambda: sum_scratch(m, max(longest, 1)).rows, out)
    log_z, tokens, pairs = (
        torch.from_numpy(own).to(emissions.device, torch.promote_types(emissions.dtype, torch.float32)) for own in found
    )
    return log_z, tokens, pairs


@torch.library.custom_op("structpred::chain_best", mutates_args=())
def chain_best(emissions: Tensor, table: Tensor, mask: Tensor, fill: int) -> Tensor:
    """The best label of each position (B, T), `fill` where there is none. Ties go to the first label, at every step."""
    (n, longest, m), width = emissions.shape, padded(emissions.shape[2])
    room = lambda: (tuple(np.zeros((k, width)) for k in (m, longest, longest, 1)), np.empty(longest, np.int64))  # noqa: E731
    (found,) = _run(_kernels().decode, (emissions, table, mask), room, (np.full((n, longest), fill),))
    return torch.from_numpy(found).to(emissions.device)


@torch.library.custom_op("structpred::known_labels", mutates_args=())
def known_labels(labels: Tensor, mask: Tensor, n_labels: int) -> Tensor:
    """Labels with 0 where they are masked. Raises DataError for those not in 0..n_labels - 1, and where all are masked."""
    kept, given = mask.cpu().numpy(), labels.cpu().numpy()
    if kept.size and not kept.any():
        raise DataError(f"all {kept.size} positions of the batch are masked, or have no label: is the mask inverted?")
    for i, t in np.argwhere(kept & ((given < 0) | (given >= n_labels)))[:1].tolist():
        raise DataError(f"sentence {i}, position {t}: expected 0..{n_labels - 1}, got {given[i, t]} (is its padding masked?)")
    return torch.from_numpy(np.where(kept, given, 0).astype(np.int64)).to(labels.device)


def _keep(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*inputs, *output[1:])


def _back(ctx: Any, by_z: Tensor | None, by_tokens: Tensor | None, by_pairs: Tensor | None) -> Any:
    """The marginals, which autograd knows how to differentiate again, and their own pull-back where they were used."""
    emissions, table, mask, tokens, pairs = ctx.saved_tensors
    weight = 0.0 if by_z is None else by_z[:, None, None]
    by_scores, by_table = weight * tokens, weight * pairs
    if by_tokens is not None or by_pairs is not None:
        given = (torch.zeros_like(own) if by is None else by for own, by in ((tokens, by_tokens), (pairs, by_pairs)))
        more = bend(emissions, table, mask, *given)
        by_scores, by_table = by_scores + more[0], by_table + more[1]
    return by_scores, by_table.sum(0), None


def bend(emissions: Tensor, table: Tensor, mask: Tensor, by_tokens: Tensor, by_pairs: Tensor) -> Any:
    """The derivatives of the last two of `chain_sums` in a direction; as they are symmetric, the pull-back from these, too.

    That is the gradient of E[S], S(y) being the sum of the direction over the parts of y. Exact, by autograd through PyTorch's
    operations, which knows further derivatives, too.
    """
    m = table.shape[0] - 1

    def mean(scores: Tensor, moves: Tensor) -> Tensor:
        s = torch.zeros_like(moves[:, 0])  # what is expected of S up to a label; m is that before the first
        alpha = s.index_fill(1, torch.arange(m, device=s.device), NEVER)
        for t in range(mask.shape[1]):
            into, kept = alpha[:, :, None] + moves[:, :, :m], mask[:, t, None]
            one = (into.softmax(1) * (s[:, :, None] + by_pairs[:, :, :m])).sum(1) + by_tokens[:, t]
            row = into.logsumexp(1) + scores[:, t]
            row = row - row.detach().amax(1, keepdim=True)  # changes no derivative, and keeps float32 exact
            alpha, s = torch.where(kept, pad(row, (0, 1), value=NEVER), alpha), torch.where(kept, pad(one, (0, 1)), s)
        return ((alpha + moves[:, :, m]).softmax(1) * (s + by_pairs[:, :, m])).sum()

    given = emissions, table.expand(by_pairs.shape)
    return torch.func.grad(mean, (0, 1))(*(own.to(by_tokens.dtype).clamp(min=NEVER) for own in given))


def _sizes(emissions: Tensor, table: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
    sizes = emissions.shape[:1], emissions.shape, (emissions.shape[0], *table.shape)
    return tuple(emissions.new_empty(own, dtype=torch.promote_types(emissions.dtype, torch.float32)) for own in sizes)


chain_sums.register_fake(_sizes)
chain_best.register_fake(lambda emissions, table, mask, fill: torch.empty_like(mask, dtype=torch.int64))
known_labels.register_fake(lambda labels, mask, n_labels: torch.empty_like(labels, dtype=torch.int64))
chain_sums.register_autograd(_back, setup_context=_keep)


class _Sums(torch.autograd.Function):
    """The operator with its derivative for the transforms of torch.func, which know none of operators (torch 2.13)."""

    forward, setup_context, backward = staticmethod(lambda *given: chain_sums(*given)), staticmethod(_keep), staticmethod(_back)
    generate_vmap_rule = True


def chain(*given: Tensor) -> Any:
    """`chain_sums`, differentiable in every way."""
    return chain_sums(*given) if torch.compiler.is_compiling() else _Sums.apply(*given)
