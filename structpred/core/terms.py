"""Bulk terms: what the steps of many instances say together, in one vector; a sweep of cutting planes needs no more."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from structpred.core.steps import Step, Terms
from structpred.core.taken import checked_rows
from structpred.errors import DataError

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
