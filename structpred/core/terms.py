"""Bulk terms: what the steps of many instances say together, in one vector; a sweep of cutting planes needs no more."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from structpred.core.steps import Step, Terms
from structpred.core.taken import checked_rows
from structpred.errors import DataError

if TYPE_CHECKING:
    from structpred.core.part_steps import Block

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def checked_shares(shares: npt.ArrayLike | None, n: int) -> Floats:
    """n finite weights, one per row, ones if there are none given; else DataError."""
    found = np.ones(n) if shares is None else np.asarray(shares, dtype=np.float64)
    if found.shape != (n,) or not np.isfinite(found).all():
        raise DataError(f"shares: expected {n} finite numbers, one per row, got an array of shape {found.shape}")
    return found


def summed(
    size: tuple[int, int], rows: npt.ArrayLike, shares: npt.ArrayLike | None, term: Callable[[int], Step],
    offset: Callable[[Step], float],
) -> Terms:  # fmt: skip
    """The terms of these rows, one after the other, so that the sum does not depend on who computes it.

    size: (number of instances, length of the weights). Raises DataError for rows that are not instances, or none at all.
    """
    from structpred.core._sparse_kernels import add_into

    at = checked_rows(rows, size[0])
    weights, difference, total = checked_shares(shares, len(at)), np.zeros(size[1]), 0.0
    losses, violations, bounds = np.empty((3, len(at)))
    for k, i in enumerate(at.tolist()):
        step, share = term(i), float(weights[k])
        add_into(difference, *step.difference, share)
        total += share * offset(step)
        losses[k], violations[k], bounds[k] = step.loss, step.violation, step.bound
    return Terms(difference, total, losses, violations, bounds)


def one_run(rows: npt.ArrayLike, n: int) -> range | None:
    """The range that these rows are, where each follows the one before; else None."""
    at = checked_rows(rows, n)
    return range(int(at[0]), int(at[-1]) + 1) if (np.diff(at) == 1).all() else None


def summed_blocks(
    size: tuple[int, int], rows: range, shares: npt.ArrayLike | None, blocks: "Iterable[Block]", loss_weight: float
) -> Terms:
    """What `summed` gives for neighbours, from their blocks, in order: the same additions, one after the other."""
    from structpred.core._sparse_kernels import add_each

    weights, difference, total = checked_shares(shares, len(rows)), np.zeros(size[1]), 0.0
    losses, violations, bounds = np.empty((3, len(rows)))
    for block in blocks:
        here = slice(block.first - rows.start, block.first - rows.start + len(block.losses))
        add_each(difference, block.indices, block.values, block.ends, weights[here])
        losses[here], violations[here], bounds[here] = block.losses, block.violations, block.bounds
    for share, loss in zip(weights.tolist(), losses.tolist(), strict=True):
        total += share * (loss_weight * loss)
    return Terms(difference, total, losses, violations, bounds)


def running_sum(values: npt.NDArray[np.float64]) -> float:
    """The sum in order, one after the other, as compiled loops add it (numpy adds pairwise)."""
    return float(np.add.accumulate(values)[-1]) if len(values) else 0.0
