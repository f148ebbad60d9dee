"""Sums over padded batches of label chains, and decoding, as operators of PyTorch that can be differentiated twice.

``emissions``: (B, T, m) scores; ``table``: (m + 1, m + 1), transitions, below them a row of scores of first labels, beside them a
column of those of last ones; ``mask``: (B, T), the positions that there are. Minus infinity forbids. The kernels of `ChainOracle`
work in float64 on the CPU, on ``torch.get_num_threads()`` threads, whose number changes no bit. What comes out is on the device
of the emissions, in float32, or in float64 where that came in.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.weights import padded
from structpred.errors import DataError, InfeasibleError
from structpred.oracles.chain import best_scratch, sum_scratch
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits
from structpred.runtime.threads import split_evenly
from structpred.torch.modules import check_some

_kernels = later("structpred.oracles.chains._padded_chain_kernels")

#: in place of minus infinity, whose gradients would be NaN
NEVER = FORBIDDEN
#: multiplications of a pass that are worth a thread
WORTH = 200_000


def flattened(emissions: Tensor, table: Tensor, mask: Tensor) -> tuple[Tensor, list[int]]:
    """Part scores as `ChainOracle` has them, flat, of the sentences that have positions, and how many these have."""
    m, place = emissions.shape[2], mask.cumsum(1)
    rows = torch.where((place == 1)[..., None], emissions + table[m, :m], emissions)
    rows = torch.where((place == place[:, -1:])[..., None], rows + table[:m, m], rows)[mask]
    lengths = [own for own in mask.sum(1).tolist() if own > 0]
    parts = zip(rows.split(lengths), table[:m, :m].expand(len(lengths), m, m), strict=True)
    return torch.cat((rows[:0], *(part for both in parts for part in both))).clamp(min=NEVER).flatten(), lengths


def check_scores(emissions: Tensor, table: Tensor, mask: Tensor) -> None:
    """Raise DataError for NaN and infinity, which kernels would carry on."""
    for i, t in (mask & ~(emissions < torch.inf).all(2)).nonzero()[:1].tolist():
        raise DataError(f"sentence {i}, position {t}: a score is NaN or infinite (only -inf forbids)")
    if not (table < torch.inf).all():
        raise DataError("a score of transitions, first or last tags is NaN or infinite (only -inf forbids)")


def check_possible(impossible: Any) -> None:
    """Raise InfeasibleError for the first of these sentences, which have no label sequence."""
    for i in impossible[:1]:
        raise InfeasibleError(f"sentence {i}: every label sequence uses a forbidden label or transition (-inf)")


@lru_cache(maxsize=1)
def _threads(process: int, n: int) -> ThreadPoolExecutor:
    """They stay, with their working memory, until another number is asked for; a forked process has its own."""
    return ThreadPoolExecutor(n)


def _fill(kernel: Any, scratch: Callable[[], Any], emissions: Tensor, table: Tensor, mask: Tensor, *more: Tensor) -> None:
    """Call a kernel, on threads where there is work for them. more: what else it reads and writes, a row for each sentence."""
    m, dtype = emissions.shape[2], torch.promote_types(emissions.dtype, torch.float32)
    given = emissions.to(dtype), table.to(dtype), mask, *more
    scores, moves, kept, *rows = (np.ascontiguousarray(own.numpy(force=True)) for own in given)

    def ranged(a: int, b: int) -> list[int]:
        places, room = np.empty((2, kept.shape[1]), np.int64), scratch()
        room[0][..., :m] = moves[:m, :m]
        at = kernel(scores[a:b], moves, kept[a:b], places, room, *(own[a:b] for own in rows))
        return [a + at] if at >= 0 else []

    n_jobs = max(min(torch.get_num_threads(), int(kept.sum()) * m * padded(m) // WORTH), 1)
    ranges = split_evenly(kept.sum(1), n_jobs) or [(0, 0)]
    others = [_threads(os.getpid(), n_jobs - 1).submit(ranged, *own) for own in ranges[1:]]
    wrong = sum((own.result() for own in others), ranged(*ranges[0]))
    if wrong or not moves.max() < np.inf:
        check_scores(emissions, table, mask)
        check_possible(sorted(wrong))


@torch.library.custom_op("structpred::chain", mutates_args=())
def chain_sums(emissions: Tensor, table: Tensor, mask: Tensor, gold: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """log Z (B,), the probabilities of labels (B, T, m), and expected transitions (B, m + 1, m + 1) in the form of the table.

    gold: (B, T), labels whose score and counts are subtracted, which gives a loss and its gradient; (B, 0) for none.
    """
    n, longest, m = emissions.shape
    check_fits(8 * n * (longest * m + (m + 1) ** 2), f"marginals of {n:,} sentences with {m} labels")
    found = _zeros(emissions.cpu(), table, mask, gold)
    _fill(_kernels().sums, lambda: sum_scratch(m, longest).rows, emissions, table, mask, gold, *found)
    value, tokens, pairs = (own.to(emissions.device) for own in found)
    return value, tokens, pairs


@torch.library.custom_op("structpred::chain_best", mutates_args=())
def chain_best(emissions: Tensor, table: Tensor, mask: Tensor, fill: int) -> Tensor:
    """The best label of each position (B, T), `fill` where there is none. Ties go to the first label, at every step."""
    (_, longest, m), found = emissions.shape, torch.full(mask.shape, fill)
    _fill(_kernels().decode, lambda: best_scratch(m, longest, longest), emissions, table, mask, found)
    return found.to(emissions.device)


@torch.library.custom_op("structpred::known_labels", mutates_args=())
def known_labels(labels: Tensor, mask: Tensor, n_labels: int) -> Tensor:
    """Labels with 0 where they are masked. Raises DataError for those not in 0..n_labels - 1, and where all are masked."""
    kept, given = mask.cpu().numpy(), labels.cpu().numpy()
    check_some(kept)
    for i, t in np.argwhere(kept & ((given < 0) | (given >= n_labels)))[:1].tolist():
        raise DataError(f"sentence {i}, position {t}: expected 0..{n_labels - 1}, got {given[i, t]} (is its padding masked?)")
    return torch.from_numpy(np.where(kept, given, 0).astype(np.int64)).to(labels.device)


def _keep(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*inputs, *output[1:])


def _back(ctx: Any, by_z: Tensor | None, by_tokens: Tensor | None, by_pairs: Tensor | None) -> Any:
    """The marginals, which autograd knows how to differentiate again, and their own pull-back where they were used."""
    emissions, table, mask, _, tokens, pairs = ctx.saved_tensors
    weight = 0.0 if by_z is None else by_z[:, None, None]
    by_scores, by_table = weight * tokens, weight * pairs
    if by_tokens is not None or by_pairs is not None:
        given = (torch.zeros_like(own) if by is None else by for own, by in ((tokens, by_tokens), (pairs, by_pairs)))
        more = bend(emissions, table, mask, *given)
        by_scores, by_table = by_scores + more[0], by_table + more[1]
    return by_scores, by_table.sum(0), None, None


def bend(emissions: Tensor, table: Tensor, mask: Tensor, by_tokens: Tensor, by_pairs: Tensor) -> Any:
    """The Hessian product of log Z, the pull-back of marginals, by PyTorch's operations, which know more derivatives."""
    m = table.shape[0] - 1

    def log_z(scores: Tensor, moves: Tensor) -> Tensor:
        alpha = torch.zeros_like(moves[:, 0]).index_fill(1, torch.arange(m, device=moves.device), NEVER)
        for t in range(mask.shape[1]):
            row = (alpha[:, :, None] + moves[:, :, :m]).logsumexp(1) + scores[:, t]
            row = row - row.detach().amax(1, keepdim=True)  # changes no derivative, and keeps float32 exact
            alpha = torch.where(mask[:, t, None], pad(row, (0, 1), value=NEVER), alpha)
        return (alpha + moves[:, :, m]).logsumexp(1).sum()

    def along(*given: Tensor) -> Any:
        return torch.func.jvp(log_z, given, (by_tokens, by_pairs))[1]

    given = emissions, table.expand(by_pairs.shape)
    return torch.func.grad(along, (0, 1))(*(own.to(by_tokens.dtype).clamp(min=NEVER) for own in given))


def _zeros(emissions: Tensor, table: Tensor, mask: Tensor, gold: Tensor) -> tuple[Tensor, ...]:
    sizes = emissions.shape[:1], emissions.shape, (emissions.shape[0], *table.shape)
    return tuple(emissions.new_zeros(own, dtype=torch.promote_types(emissions.dtype, torch.float32)) for own in sizes)


chain_sums.register_fake(_zeros)
chain_best.register_fake(lambda emissions, table, mask, fill: torch.empty_like(mask, dtype=torch.int64))
known_labels.register_fake(lambda labels, mask, n_labels: torch.empty_like(labels, dtype=torch.int64))
chain_sums.register_autograd(_back, setup_context=_keep)


class _Sums(torch.autograd.Function):
    """The operator with its derivative for the transforms of torch.func, which know none of operators (torch 2.13)."""

    forward, setup_context, backward = staticmethod(lambda *given: chain_sums(*given)), staticmethod(_keep), staticmethod(_back)
    generate_vmap_rule = True


def chain(emissions: Tensor, table: Tensor, mask: Tensor, gold: Tensor | None = None) -> Any:
    """`chain_sums`, differentiable in every way."""
    given = emissions, table, mask, mask.new_empty((len(mask), 0), dtype=torch.int64) if gold is None else gold
    return chain_sums(*given) if torch.compiler.is_compiling() else _Sums.apply(*given)
