"""Sums over padded batches of label chains, and decoding, as operators of PyTorch that can be differentiated twice.

``emissions``: (B, T, m) scores; ``table``: (m + 1, m + 1), transitions, below them a row of scores of first labels, beside them a
column of those of last ones; ``mask``: (B, T), the positions that there are. Minus infinity forbids. The kernels of `ChainOracle`
work in float64 on the CPU, on ``torch.get_num_threads()`` threads, whose number changes no bit. What comes out is on the device
of the emissions, in float32, or in float64 where that came in.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.weights import padded
from structpred.errors import DataError, InfeasibleError
from structpred.oracles.chain import ChainOracle, best_scratch, sum_scratch
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits
from structpred.runtime.ranges import ends_of
from structpred.runtime.threads import run_ranges, split_evenly

_kernels = later("structpred.oracles.chains._chain_kernels")
_sum_kernels = later("structpred.oracles.chains._chain_sum_kernels")

#: in place of minus infinity, whose gradients would be NaN
NEVER = FORBIDDEN
#: multiplications of a pass that are worth a thread
WORTH = 500_000


def flattened(emissions: Tensor, table: Tensor, mask: Tensor) -> tuple[Tensor, Any, Tensor]:
    """Part scores as `ChainOracle` has them, in rows of m, of sentences with any; lengths; which rows are positions."""
    m, kept = emissions.shape[2], mask.numpy(force=True)
    lengths = kept.sum(1)
    lengths = lengths[lengths > 0]
    n, first = len(lengths), np.cumsum(lengths + m) - lengths - m
    nodes = np.repeat(np.arange(2 * n) % 2 == 0, np.stack((lengths, np.full(n, m)), 1).ravel())
    index = np.empty(len(nodes), np.int64)
    index[nodes], index[~nodes] = np.flatnonzero(kept), np.tile(kept.size + np.arange(m), n)
    places, starts, stops = (torch.from_numpy(own).to(table.device) for own in (index, first, first + lengths - 1))
    rows = torch.cat((emissions.flatten(0, 1), table[:m, :m])).index_select(0, places)
    rows = rows.index_add(0, starts, table[m, :m].expand(n, m)).index_add(0, stops, table[:m, m].expand(n, m))
    return rows.clamp(min=NEVER), lengths, torch.from_numpy(nodes).to(table.device)


def check_scores(emissions: Tensor, table: Tensor, mask: Tensor) -> None:
    """Raise DataError for NaN and infinity, which kernels would carry on."""
    for i, t in (mask & ~(emissions < torch.inf).all(2)).nonzero()[:1].tolist():
        raise DataError(f"sentence {i}, position {t}: a score is NaN or infinite (only -inf forbids)")
    if not (table < torch.inf).all():
        raise DataError("a score of transitions, first or last tags is NaN or infinite (only -inf forbids)")


def check_possible(impossible: Tensor) -> None:
    """Raise InfeasibleError for the first sentence for which it is true."""
    for (i,) in impossible.nonzero()[:1].tolist():
        raise InfeasibleError(f"sentence {i}: every label sequence uses a forbidden label or transition (-inf)")


def _numbers(emissions: Tensor, table: Tensor, mask: Tensor) -> tuple[Any, ...]:
    """Checked part scores, where those of each sentence begin, lengths and nodes of `flattened`, in NumPy."""
    given = emissions.detach().cpu().double(), table.detach().cpu().double(), mask.cpu()
    found, lengths, nodes = flattened(*given)
    theta = found.numpy()
    if not theta.max(initial=0.0) < np.inf:
        check_scores(*given)
    return theta.ravel(), ends_of((lengths + theta.shape[1]) * theta.shape[1]), lengths, nodes.numpy()


def _on_threads(call: Callable[[int, int], None], lengths: Any, m: int) -> None:
    n_jobs = max(min(torch.get_num_threads(), int(lengths.sum()) * m * padded(m) // WORTH), 1)
    run_ranges(call, split_evenly(lengths, n_jobs), n_jobs)


@torch.library.custom_op("structpred::chain", mutates_args=())
def chain_sums(emissions: Tensor, table: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """log Z (B,), the probabilities of labels (B, T, m), and expected transitions (B, m + 1, m + 1) in the form of the table."""
    n, longest, m = emissions.shape
    check_fits(8 * n * (longest * m + (m + 1) ** 2), f"marginals of {n:,} sentences with {m} labels")
    theta, offsets, lengths, nodes = _numbers(emissions, table, mask)
    log_z, mu = np.zeros(len(lengths)), np.zeros(len(theta))

    def ranged(a: int, b: int) -> None:
        scratch = sum_scratch(m, int(lengths[a:b].max(initial=1))).rows
        _sum_kernels().marginals_of_batch(theta, offsets[a : b + 1], lengths[a:b], m, *scratch, log_z[a:b], mu)

    _on_threads(ranged, lengths, m)
    kept, ends, rows = mask.numpy(force=True), ends_of(lengths), mu.reshape(-1, m)[nodes]
    full, values, tokens, pairs = kept.any(1), np.zeros(n), np.zeros((n, longest, m)), np.zeros((n, m + 1, m + 1))
    values[full], tokens[kept], pairs[full, :m, :m] = log_z, rows, mu.reshape(-1, m)[~nodes].reshape(-1, m, m)
    pairs[full, m, :m], pairs[full, :m, m] = rows[ends[:-1]], rows[ends[1:] - 1]
    check_possible(torch.from_numpy(values == -np.inf))
    dtype = torch.promote_types(emissions.dtype, torch.float32)
    log_zs, of_tokens, of_pairs = (torch.from_numpy(own).to(emissions.device, dtype) for own in (values, tokens, pairs))
    return log_zs, of_tokens, of_pairs


@torch.library.custom_op("structpred::chain_best", mutates_args=())
def chain_best(emissions: Tensor, table: Tensor, mask: Tensor, fill: int) -> Tensor:
    """The best label of each position (B, T), `fill` where there is none. Ties go to the first label, at every step."""
    m = emissions.shape[2]
    theta, offsets, lengths, _ = _numbers(emissions, table, mask)
    ends = ends_of(lengths)
    found = np.empty(ends[-1], np.int64)

    def ranged(a: int, b: int) -> None:
        room = best_scratch(m, int(lengths[a:b].max(initial=1)))
        _kernels().decode_flat(theta, offsets[a : b + 1], lengths[a:b], m, room, found[ends[a] : ends[b]])

    _on_threads(ranged, lengths, m)
    if theta.min(initial=0.0) <= 0.5 * NEVER:
        parts, places = ChainOracle().parts_batch(found, ends, [(own, m) for own in lengths.tolist()])
        spoilt = np.add.reduceat(theta[parts + np.repeat(offsets[:-1], np.diff(places))], places[:-1]) <= 0.5 * NEVER
        full = mask.cpu().any(1)
        check_possible(full.masked_scatter(full, torch.from_numpy(spoilt)))
    out = np.full(mask.shape, fill)
    out[mask.numpy(force=True)] = found
    return torch.from_numpy(out).to(emissions.device)


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
